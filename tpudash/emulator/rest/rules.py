"""HTTP rules: which method and path stand for which RPC.

They are read from Google's own client for Cloud TPU, whose REST transport carries the
`google.api.http` rules of `google/cloud/tpu/v2/cloud_tpu.proto` and of the mixins in `tpu_v2.yaml`.
The other versions of the API have the same rules under another first word; what only they offer
follows the same pattern.
Syntax: https://github.com/googleapis/googleapis/blob/master/google/api/http.proto
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARIABLE = re.compile(r"\{([^=}]+)(?:=([^}]*))?\}")
_LOCATION = "projects/*/locations/*"
_ONLY_IN_V2ALPHA1 = {
    "SimulateMaintenanceEvent": (
        "post",
        f"/v2alpha1/{{name={_LOCATION}/nodes/*}}:simulateMaintenanceEvent",
        "*",
    ),
    "PerformMaintenance": (
        "post",
        f"/v2alpha1/{{name={_LOCATION}/nodes/*}}:performMaintenance",
        "*",
    ),
    "PerformMaintenanceQueuedResource": (
        "post",
        f"/v2alpha1/{{name={_LOCATION}/queuedResources/*}}:performMaintenanceQueuedResource",
        "*",
    ),
    "ListReservations": ("get", f"/v2alpha1/{{parent={_LOCATION}}}/reservations", ""),
}
_ONLY_IN = {
    "v1": {
        "ListTensorFlowVersions": (
            "get",
            f"/v1/{{parent={_LOCATION}}}/tensorflowVersions",
            "",
        )
    },
    "v2alpha1": _ONLY_IN_V2ALPHA1,
}
VERSIONS = ("v1", "v2", "v2alpha1")


@dataclass(frozen=True, slots=True)
class HttpRule:
    """One binding of an RPC to HTTP."""

    rpc: str
    """Name of the RPC without its service, e.g. `CreateNode`."""

    verb: str
    """HTTP method in capitals."""

    path: re.Pattern[str]
    fields: tuple[str, ...]
    """Field paths that the pattern's groups bind, in order."""

    body: str
    """Field that the body holds; `*` is the whole request, the empty string no body."""

    def match(self, verb: str, path: str) -> dict[str, str] | None:
        """Return the bound fields of a raw path, or None."""
        found = self.path.fullmatch(path) if verb == self.verb else None
        if found is None:
            return None
        values = (unquote(text) for text in found.groups())
        return dict(zip(self.fields, values, strict=True))


def compile_rule(rpc: str, verb: str, template: str, body: str) -> HttpRule:
    """Read one rule in the syntax of google.api.http."""
    fields = []
    pattern = ""
    position = 0
    for variable in _VARIABLE.finditer(template):
        fields.append(variable[1])
        pattern += re.escape(template[position : variable.start()])
        pattern += f"({_segments(variable[2] or '*')})"
        position = variable.end()
    pattern += re.escape(template[position:])
    return HttpRule(rpc, verb.upper(), re.compile(pattern), tuple(fields), body)


def _segments(template: str) -> str:
    """Return the pattern of path segments; a colon begins the custom verb and ends the last."""
    kinds = {"*": "[^/:]+", "**": ".+"}
    return "/".join(kinds.get(part, re.escape(part)) for part in template.split("/"))


@cache
def rules_of(version: str) -> tuple[HttpRule, ...]:
    """Return the rules of one version of the Cloud TPU API."""
    rules = [
        compile_rule(rpc, verb, uri.replace("/v2/", f"/{version}/", 1), body)
        for rpc, verb, uri, body in _client_rules()
    ]
    rules += [compile_rule(rpc, *rule) for rpc, rule in _ONLY_IN.get(version, {}).items()]
    return tuple(rules)


def _client_rules() -> Iterator[tuple[str, str, str, str]]:
    """Yield (rpc, verb, uri, body) of every rule in the installed client.

    Raises:
        RuntimeError: The client keeps them elsewhere than all releases since 1.20 do.
    """
    from google.cloud.tpu_v2.services.tpu.transports import rest_base

    transport: Any = rest_base._BaseTpuRestTransport  # noqa: SLF001  (the rules' only home)
    found = False
    for name, holder in vars(transport).items():
        options = getattr(holder, "_get_http_options", None)
        if options is None:
            continue
        for rule in options():
            found = True
            yield name.removeprefix("_Base"), rule["method"], rule["uri"], rule.get("body", "")
    if not found:
        raise RuntimeError("the installed google-cloud-tpu carries no HTTP rules")
