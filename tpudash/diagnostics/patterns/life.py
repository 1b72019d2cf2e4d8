"""Texts about the life of nodes, operations and workers."""

from __future__ import annotations

from typing import Final

from tpudash.diagnostics.patterns.row import Row, regex
from tpudash.domain.failure import ErrorClass, RetryPolicy

_LOST_WORKER: Final = (
    "The program lost its TPU worker, most often because it was preempted or restarted. Look at"
    " the node's state now: if it is PREEMPTED, resume the run."
)
_LOST_HOST: Final = (
    "One host of the slice went silent, so the whole slice stopped. Find the worker that was"
    " silent first, and look at the node's state: if it is PREEMPTED resume, else recreate it."
)
_BAD_NODE: Final = (
    "This looks like a bad node: delete it and create a new one rather than try again here. Keep"
    " this line for Google's support."
)
_NO_BACKEND: Final = (
    "The framework did not get at the TPU, so it ends or goes on on the CPU while the TPU is paid"
    " for. Check that this is a TPU VM, that no other process holds the chips, and that framework"
    " and libtpu fit each other on every worker."
)

LIFE: Final = (
    Row(
        ErrorClass.PREEMPTED_IN_CREATE,
        "not supported while in state preempted",
        regex(r"\b(?:update|create|creat\w+) is not supported while in state PREEMPTED"),
    ),
    Row(ErrorClass.PREEMPTED, "not supported while in state preempted"),
    Row(ErrorClass.PREEMPTED, "not supported while in state terminated"),
    Row(ErrorClass.MAINTENANCE, "not supported while in state repairing"),
    Row(
        ErrorClass.BAD_REQUEST,
        "is not supported while in state",
        regex(r"(?P<verb>\w+) is not supported while in state (?P<state>\w+)"),
        advice="The node is {state}; `{verb}` is only possible in another state. Look at the node"
        " and wait for its state to change.",
    ),
    Row(
        ErrorClass.NAME_TAKEN,
        "already exists",
        regex(
            r"(?:resource|node|entity|queued ?resource|instance|tpu|name|id)\b[^\n]{0,200}already"
            r" exists|ALREADY_EXISTS"
        ),
    ),
    Row(ErrorClass.NAME_TAKEN, "already_exists"),
    Row(ErrorClass.NAME_TAKEN, "alreadyexists"),
    Row(
        ErrorClass.UNKNOWN_OUTCOME,
        "409",
        regex(r"(?:\bhttp(?: error)?|\bcode|\bstatus|\berror)['\"]?[ :=]{1,3}409\b|\b409 conflict"),
        advice="It was changed or deleted while this was under way, as when a node is deleted"
        " during its creation. Look whether it exists, and then do it again.",
        in_text_only=True,
    ),
    Row(ErrorClass.MAINTENANCE, "onhostmaintenance"),
    Row(ErrorClass.MAINTENANCE, "unhealthy_maintenance"),
    Row(
        ErrorClass.MAINTENANCE,
        "maintenance",
        regex(
            r"(?:host|upcoming|scheduled|unscheduled|due to|under|for) maintenance"
            r"|maintenance (?:event|window)s?\b(?!:? (?:none|no)\b)|state:? ?repairing"
        ),
    ),
    Row(ErrorClass.PARTIAL_SLICE, "heartbeat timeout", advice=_LOST_HOST),
    Row(ErrorClass.PARTIAL_SLICE, "remote task has failed", advice=_LOST_HOST),
    Row(
        ErrorClass.PARTIAL_SLICE,
        "did you run your code on all tpu hosts",
        advice="The program runs on some workers of the slice only: start it on all of them"
        " (JAX, PyTorch), and see that no worker is down.",
    ),
    Row(ErrorClass.PARTIAL_SLICE, "mesh_build_fail"),
    Row(
        ErrorClass.PARTIAL_SLICE,
        "worker",
        regex(
            r"(?:missing|lost|unreachable|unhealthy|failed) workers?\b[^\n]{0,60}(?:slice|pod)"
            r"|\d+ (?:of|out of|/) ?\d+ workers (?:are |is )?(?:missing|down|failed|unhealthy|dead"
            r"|silent)"
        ),
    ),
    Row(ErrorClass.PARTIAL_SLICE, "barrier timed out", advice=_LOST_HOST),
    Row(
        ErrorClass.PARTIAL_SLICE,
        "coordination service",
        regex(
            r"coordination service[^\n]{0,80}(?:error|deadline|unavailable|failed|stopp)"
            r"|(?:error|failed|stopping|disconnect)[^\n]{0,40}coordination service"
        ),
        advice=_LOST_HOST,
    ),
    Row(
        ErrorClass.PARTIAL_SLICE,
        "/task:",
        regex(r"/task:\d+ (?:seems|is|went) (?:down|dead|lost|unreachable)"),
        advice=_LOST_HOST,
    ),
    Row(ErrorClass.PARTIAL_SLICE, "failed to get global tpu topology", advice=_LOST_HOST),
    Row(ErrorClass.PREEMPTED, "compute.instances.preempted"),
    Row(ErrorClass.PREEMPTED, "tpu.nodes.terminate"),
    Row(ErrorClass.PREEMPTED, "in preempted state"),
    Row(ErrorClass.PREEMPTED, "interrupted_by_no_capacity"),
    Row(ErrorClass.STOCKOUT, "no_capacity", regex(r"(?:\b|_)NO_CAPACITY\b")),
    Row(
        ErrorClass.PREEMPTED,
        "instance/preempted",
        regex(r"instance/preempted['\"]?\s{0,3}(?:[:=]|is|reads|->)\s{0,3}['\"]?TRUE\b"),
    ),
    Row(
        ErrorClass.PREEMPTED,
        "suspended",
        regex(
            r"queued[ _-]?(?:resource|request)[^\n]{0,80}\bSUSPENDED\b"
            r"|\bstate['\"]?[:=\" ]{1,4}SUSPENDED\b"
        ),
        advice="This request is over and never comes back: its nodes were preempted or deleted. It"
        " holds quota until it is deleted; delete it, then ask again.",
    ),
    Row(
        ErrorClass.PREEMPTED,
        "preempt",
        regex(
            r"\b(?:was|been|got|is|were|being) preempted|state[:=\" ]+PREEMPTED|preemption notice"
            r"|due to (?:a )?preemption|preempted (?:by|at|and)|spot (?:vm|instance|node|tpu)s?"
            r" (?:was|were|been) reclaimed|\"event\": ?\"preempt\""
        ),
    ),
    Row(
        ErrorClass.PREEMPTED,
        "not yet ready; state:",
        regex(r"not yet ready; state: ?(?:PREEMPTED|TERMINATED)"),
    ),
    Row(ErrorClass.MAINTENANCE, "not yet ready; state:", regex(r"state: ?REPAIRING")),
    Row(
        ErrorClass.CONNECT,
        "is not yet ready; state:",
        advice="The node is not READY yet: wait until it is, then start again.",
        retry=RetryPolicy.SAME_PLACE,
    ),
    Row(ErrorClass.PREEMPTED, "unavailable: socket closed", in_text_only=True, advice=_LOST_WORKER),
    Row(
        ErrorClass.PREEMPTED,
        "unavailableerror",
        regex(r"UnavailableError[^\n]{0,40}socket closed"),
        in_text_only=True,
        advice=_LOST_WORKER,
    ),
    Row(ErrorClass.PREEMPTED, "unable to find a context_id", advice=_LOST_WORKER),
    Row(ErrorClass.PREEMPTED, "different device incarnation", advice=_LOST_WORKER),
    Row(
        ErrorClass.PREEMPTED,
        "aborted: session",
        regex(r"Aborted: Session [0-9a-f]{8,32} is not found"),
        advice=_LOST_WORKER,
    ),
    Row(ErrorClass.STALLED, "lame workers found"),
    Row(ErrorClass.STALLED, "stalled", regex(r"\bstalled")),
    Row(ErrorClass.STALLED, "detected", regex(r"\b(?:hang|deadlock) (?:was )?detected")),
    Row(ErrorClass.STALLED, "no progress", regex(r"no progress (?:for|in|since|within)")),
    Row(ErrorClass.STALLED, "no step", regex(r"no step (?:for|in|since|within)")),
    Row(
        ErrorClass.STALLED,
        "watchdog",
        regex(
            r"watchdog[^\n]{0,60}(?:timeout|timed out|expired"
            r"|fired|hung|hang|no )"
        ),
    ),
    Row(ErrorClass.INTERNAL, "core halted unexpectedly", advice=_BAD_NODE),
    Row(ErrorClass.INTERNAL, "halt is unexpected", advice=_BAD_NODE),
    Row(ErrorClass.INTERNAL, "couldn't mmap", advice=_BAD_NODE),
    Row(ErrorClass.INTERNAL, "sigsegv", advice=_BAD_NODE),
    Row(ErrorClass.INTERNAL, "segmentation fault", advice=_BAD_NODE),
    Row(
        ErrorClass.INTERNAL,
        "139",
        regex(r"(?:exit(?:ed)?(?: with)?(?: code| status)?|returned)[ :=]*139\b"),
        advice=_BAD_NODE,
    ),
    Row(ErrorClass.INTERNAL, "instances.hosterror", advice=_BAD_NODE),
    Row(
        ErrorClass.INTERNAL,
        "/dev/accel",
        regex(r"/dev/accel\d*\S*:? [^\n]{0,40}(?:no such file|not found|does not exist|absent)"),
        advice="The chips are missing on this worker, as after some restarts: delete the node and"
        " create a new one.",
    ),
    Row(
        ErrorClass.VERSION,
        "backend",
        regex(
            r"unable to initialize backend ['\"]?tpu|backend ['\"]?tpu\w*['\"]?[^\n]{0,40}failed to"
            r" initialize"
        ),
        advice=_NO_BACKEND,
    ),
    Row(ErrorClass.VERSION, "tpu initialization failed", advice=_NO_BACKEND),
    Row(ErrorClass.VERSION, "failed to initialize tpu", advice=_NO_BACKEND),
    Row(
        ErrorClass.INTERNAL,
        "failedscaleup",
        advice="The companion machine could not be made, which says nothing about the TPUs: check"
        " that its machine type exists in {zone}.",
    ),
    Row(
        ErrorClass.BAD_REQUEST,
        '"guestattributes" value',
        advice="No worker has published this guest attribute: wait for the VM to boot, or ask for"
        " another path.",
    ),
)
