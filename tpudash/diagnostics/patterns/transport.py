"""Texts about connections and answers that did not come, and faults inside the service."""

from __future__ import annotations

from typing import Final

from tpudash.diagnostics.patterns.row import Row, regex
from tpudash.domain.failure import ErrorClass, RetryPolicy

_TLS: Final = (
    "The other side does not speak TLS as expected. For a local emulator use --endpoint HOST:PORT;"
    " otherwise look for a proxy in between."
)
_SSH: Final = (
    "SSH to the worker failed and hides why: check that the node is READY, its IP address, the"
    " firewall (tcp:22) and the key."
)

_NOT_THE_API: Final = (
    "What answers there is not the API: look for a proxy, a network's sign-in page or another"
    " program at the address."
)
_NO_STATUS: Final = frozenset({"UNKNOWN", "UNIMPLEMENTED", "UNAVAILABLE", "INTERNAL"})

TRANSPORT: Final = (
    Row(
        ErrorClass.CONNECT,
        "received http2 header with status",
        codes=_NO_STATUS,
        advice=_NOT_THE_API,
    ),
    Row(
        ErrorClass.CONNECT,
        "stream removed",
        regex(r"stream removed[^\n]{0,40}(?:data frame|header)"),
        codes=_NO_STATUS,
        advice=_NOT_THE_API,
    ),
    Row(ErrorClass.CONNECT, "stream removed", codes=_NO_STATUS),
    Row(ErrorClass.CONNECT, "failed parsing http/2", advice=_NOT_THE_API),
    Row(
        ErrorClass.INTERNAL,
        "message larger than max",
        advice="The answer is larger than what is taken in. Ask for less at a time.",
        retry=RetryPolicy.NEVER,
    ),
    Row(
        ErrorClass.CONNECT,
        "connect to",
        regex(r"(?:failed|unable|fails) to connect to|(?:could not|couldn't|cannot) connect to"),
    ),
    Row(ErrorClass.CONNECT, "return code [255]", advice=_SSH),
    Row(
        ErrorClass.CONNECT,
        "ssh:",
        regex(r"\bssh: (?:connect to host|could not resolve)"),
        advice=_SSH,
    ),
    Row(ErrorClass.CONNECT, "wrong_version_number", advice=_TLS),
    Row(ErrorClass.CONNECT, "ssl handshake failed", advice=_TLS),
    Row(ErrorClass.CONNECT, "certificate verify failed", advice=_TLS),
    Row(ErrorClass.CONNECT, "connection refused"),
    Row(ErrorClass.CONNECT, "connection reset"),
    Row(ErrorClass.CONNECT, "connection aborted"),
    Row(ErrorClass.CONNECT, "connection closed"),
    Row(ErrorClass.CONNECT, "remote end closed connection"),
    Row(ErrorClass.CONNECT, "broken pipe"),
    Row(ErrorClass.CONNECT, "socket closed"),
    Row(ErrorClass.CONNECT, "goaway"),
    Row(ErrorClass.CONNECT, "no route to host"),
    Row(ErrorClass.CONNECT, "network is unreachable"),
    Row(ErrorClass.CONNECT, "name resolution"),
    Row(ErrorClass.CONNECT, "name or service not known"),
    Row(ErrorClass.CONNECT, "dns resolution failed"),
    Row(ErrorClass.CONNECT, "failed to resolve"),
    Row(ErrorClass.CONNECT, "errors resolving"),
    Row(ErrorClass.CONNECT, "address lookup failed"),
    Row(ErrorClass.CONNECT, "domain name not found"),
    Row(ErrorClass.CONNECT, "could not resolve host"),
    Row(ErrorClass.CONNECT, "nodename nor servname provided"),
    Row(ErrorClass.CONNECT, "max retries exceeded with url"),
    Row(ErrorClass.CONNECT, "failed to establish a new connection"),
    Row(ErrorClass.CONNECT, "failed to retrieve", regex(r"failed to retrieve https?://metadata")),
    Row(
        ErrorClass.UNKNOWN_OUTCOME,
        "deadline",
        regex(r"deadline[ _]?(?:exceeded|expired|of \S+ exceeded)"),
    ),
    Row(
        ErrorClass.UNKNOWN_OUTCOME,
        "timed out",
        regex(
            r"(?:operation|request|call|creat\w+|delet\w+|waiting|read|connection|polling|tpu)\b"
            r"[^\n]{0,160}timed out|timed out (?:after|waiting|while)"
        ),
    ),
    Row(
        ErrorClass.UNKNOWN_OUTCOME,
        "did not",
        regex(r"did not (?:complete|finish|become|reach|get)\b[^\n]{0,40}\bwithin \d"),
    ),
    Row(ErrorClass.UNKNOWN_OUTCOME, "gateway timeout"),
    Row(ErrorClass.UNKNOWN_OUTCOME, "gateway time-out"),
    Row(ErrorClass.INTERNAL, "internal error has occurred"),
    Row(
        ErrorClass.INTERNAL,
        "internal error",
        regex(
            r"internal error (?:occurred|encountered)"
            r"|\ban internal error|internal error\."
        ),
    ),
    Row(ErrorClass.INTERNAL, "internal server error"),
    Row(ErrorClass.INTERNAL, "backenderror"),
    Row(ErrorClass.INTERNAL, "bad gateway"),
    Row(ErrorClass.INTERNAL, "service is currently unavailable"),
    Row(ErrorClass.INTERNAL, "service unavailable"),
    Row(ErrorClass.INTERNAL, "encountered a temporary error"),
)
