"""Takes out of a recording what must not leave the machine: secrets, accounts, addresses.

A recording is made to be given away, so whatever looks like a secret is masked, by its form, by
the name that it stands under, or by the flag that stands before it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import singledispatch
from typing import Any, Final

from tpudash.domain.masking import MASK, without_addresses
from tpudash.store.changes import Connected, NodesListed, RequestsListed

_NAME: Final = (
    r"[\w.-]{0,64}(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|credential|authorization)[\w.-]{0,64}"
)
_SECRET_NAME: Final = re.compile(_NAME, re.IGNORECASE)
_FLAG: Final = re.compile(rf"--?{_NAME}", re.IGNORECASE)
_FORMS: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
    r"|\bya29\.[\w.-]{8,}|\bAIza[\w-]{30,}|\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}|\bhf_\w{16,}"
    r"|\bsk-[\w-]{16,}|\bAKIA[0-9A-Z]{16}|\bxox[a-z]-[\w-]{10,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|\bGOCSPX-[\w-]{10,}|\b1//[\w-]{20,}",
    re.DOTALL,
)
_BEARER: Final = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE)
_NAMED: Final = re.compile(
    rf"""(?<![\w.-])({_NAME}["']?\s{{0,4}}[=:]\s{{0,4}})("[^"]*"|'[^']*'|[^\s"',;&\]}})]+)""",
    re.IGNORECASE,
)
_FLAGGED: Final = re.compile(rf"(?<!\S)(--?{_NAME}\s{{1,4}})(?!-)(\S+)", re.IGNORECASE)
_LOGIN_IN_URL: Final = re.compile(r"(\w{2,12}://)[^\s/@]{1,200}@")
_HINTS: Final = re.compile(
    r"token|secret|passw|passphrase|key|credential|authorization|bearer|basic|://"
    r"|ya29|gh[pousr]_|github_pat|hf_|sk-|AKIA|xox|eyJ|GOCSPX|1//|AIza",
    re.IGNORECASE,
)
"""Most texts hold none of these, and are not looked at any further."""


def without_secrets(text: str) -> str:
    """Return a text in which secrets, e-mail and IP addresses are masked."""
    if _HINTS.search(text):
        text = _FORMS.sub(MASK, text)
        text = _LOGIN_IN_URL.sub(rf"\1{MASK}@", text)
        text = _BEARER.sub(rf"\1 {MASK}", text)
        text = _NAMED.sub(rf"\1{MASK}", text)
        text = _FLAGGED.sub(rf"\1{MASK}", text)
    return without_addresses(text)


def without_secrets_in(value: Any) -> Any:
    """Return JSON-like data in which no text holds a secret, at any depth."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {without_secrets(str(key)): _under(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return _in_order(value)
    return value


def _under(key: str, value: Any) -> Any:
    if isinstance(value, str) and value and _SECRET_NAME.fullmatch(key):
        return MASK
    if key == "environment" and isinstance(value, dict):
        # Whatever a user puts into the trainer's environment may be a key to something.
        return dict.fromkeys(value, MASK)
    return without_secrets_in(value)


def _in_order(values: list[Any] | tuple[Any, ...]) -> list[Any]:
    masked = []
    is_secret = False
    for value in values:
        masked.append(MASK if is_secret and isinstance(value, str) else without_secrets_in(value))
        is_secret = isinstance(value, str) and _FLAG.fullmatch(value) is not None
    return masked


@singledispatch
def slimmed(change: Any) -> Any:
    """Return a change without what nobody needs to look back at, and what may hold anything."""
    return change


@slimmed.register
def _(change: Connected) -> Connected:
    return Connected(replace(change.info, account=None, endpoint=None))


@slimmed.register
def _(change: NodesListed) -> NodesListed:
    nodes = tuple(replace(node, raw={}, metadata={}) for node in change.listing.nodes)
    return replace(change, listing=replace(change.listing, nodes=nodes))


@slimmed.register
def _(change: RequestsListed) -> RequestsListed:
    requests = tuple(replace(one, raw={}, metadata={}) for one in change.listing.requests)
    return replace(change, listing=replace(change.listing, requests=requests))
