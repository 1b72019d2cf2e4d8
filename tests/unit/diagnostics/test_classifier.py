"""Every error text of the field, by itself and in each wrapper that it was seen in."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.diagnostics.error_texts import CLOUD, EID, Case, api_off, stock_out
from tests.unit.diagnostics.error_texts_elsewhere import OTHER
from tpudash.diagnostics.classifier import classify, classify_text
from tpudash.diagnostics.classifier_codes import CODES
from tpudash.domain.failure import CloudStatus, ErrorClass, Origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.domain.failure import Failure

HTTP = {
    "RESOURCE_EXHAUSTED": 429,
    "PERMISSION_DENIED": 403,
    "UNAUTHENTICATED": 401,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


def number_of(case: Case) -> int:
    return CODES.index(case.code) if case.code else 2


def as_grpc(case: Case) -> str:
    return (
        "<AioRpcError of RPC that terminated with:\n"
        f"\tstatus = StatusCode.{case.code or 'UNKNOWN'}\n"
        f'\tdetails = "{case.text}"\n'
        '\tdebug_error_string = "UNKNOWN:Error received from peer  {grpc_status:8}"\n>'
    )


def as_python_error(case: Case) -> str:
    return (
        "Traceback (most recent call last):\n"
        '  File "launch.py", line 3, in <module>\n'
        f"google.api_core.exceptions.GoogleAPICallError: {HTTP.get(case.code, 400)} {case.text}"
    )


def as_rest(case: Case) -> str:
    error = {"code": HTTP.get(case.code, 400), "message": case.text, "status": case.code}
    return json.dumps({"error": error}, indent=2)


def as_operation(case: Case) -> str:
    name = "projects/demo/locations/us-west9-z/operations/operation-1-2-3"
    return json.dumps(
        {"name": name, "done": True, "error": {"code": number_of(case), "message": case.text}}
    )


def as_gcloud(case: Case) -> str:
    return f"ERROR: (gcloud.compute.tpus.tpu-vm.create) {case.code}: {case.text}"


def as_gcloud_json(case: Case) -> str:
    body = json.dumps({"code": number_of(case), "message": case.text}, indent=2)
    return f"Create request issued for: [n]\nERROR: (gcloud.compute.tpus.tpu-vm.start) {body}"


def as_escaped_json(case: Case) -> str:
    body = json.dumps({"code": number_of(case), "message": case.text})
    return f'time="10:00" level=error msg={json.dumps("failed: " + body)}'


def as_terraform(case: Case) -> str:
    text = (
        f"Error: Error waiting to create Node: Error code {number_of(case)}, message: {case.text}"
    )
    lines = textwrap.wrap(text, 78, break_on_hyphens=False, break_long_words=False)
    framed = "\n".join(f"│ {line}" for line in lines)
    return f"╷\n{framed}\n│ \n│   with google_tpu_v2_vm.tpu,\n│   on main.tf line 1\n╵\n"


def as_log_entry(case: Case) -> str:
    return json.dumps(
        {
            "insertId": "a1",
            "severity": "ERROR",
            "resource": {"type": "audited_resource", "labels": {"method": "CreateNode"}},
            "protoPayload": {
                "status": {"code": number_of(case), "message": case.text},
                "methodName": "x",
            },
        }
    )


def as_log(case: Case) -> str:
    before = "".join(f"2026-12-01 10:00:{n:02} INFO step {n} of 60, loss 0.5\n" for n in range(30))
    return f"{before}2026-12-01 10:01:00 ERROR launch: {case.text}\n2026-12-01 10:01:01 INFO bye\n"


WRAPPERS = (
    as_grpc,
    as_python_error,
    as_rest,
    as_operation,
    as_gcloud,
    as_gcloud_json,
    as_escaped_json,
    as_terraform,
    as_log_entry,
    as_log,
)


def check(failure: Failure, case: Case) -> None:
    assert failure.error_class is case.expected, failure
    if case.retry is not None:
        assert failure.retry is case.retry
    for name, value in case.scope.items():
        assert getattr(failure.scope, name) == value, (name, failure)
    for words in case.advice:
        assert words in failure.advice
    assert "EID" not in failure.evidence
    if EID in case.text:
        assert failure.eid == "0x191e4b746b2c69a9"


@pytest.mark.parametrize("case", [*CLOUD, *OTHER], ids=lambda case: case.id)
def test_a_text_by_itself(case: Case) -> None:
    (failure,) = classify_text(case.text)
    check(failure, case)
    assert failure.evidence
    assert failure.evidence in " ".join(case.text.replace(EID, "").split())


@pytest.mark.parametrize("case", CLOUD, ids=lambda case: case.id)
def test_a_status_of_the_cloud(case: Case) -> None:
    failure = classify(CloudStatus(case.code, case.text))
    check(failure, case)
    assert failure.evidence == " ".join(case.text.replace(EID, "").split())


@pytest.mark.parametrize("wrap", WRAPPERS, ids=lambda wrap: wrap.__name__)
@pytest.mark.parametrize("case", CLOUD, ids=lambda case: case.id)
def test_a_text_in_a_wrapper(case: Case, wrap: Callable[[Case], str]) -> None:
    failures = classify_text(wrap(case))
    assert [failure.error_class for failure in failures] == [case.expected], failures
    check(failures[0], case)


@pytest.mark.parametrize("case", OTHER, ids=lambda case: case.id)
def test_a_text_in_a_log(case: Case) -> None:
    for wrap in (as_log, as_log_line):
        failures = classify_text(wrap(case))
        assert [failure.error_class for failure in failures] == [case.expected], failures


def as_log_line(case: Case) -> str:
    return json.dumps({"severity": "ERROR", "textPayload": case.text, "timestamp": "2026-12-01"})


def detail(kind: str, **fields: Any) -> dict[str, Any]:
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (CloudStatus("RESOURCE_EXHAUSTED", "no", origin=Origin.OPERATION), ErrorClass.STOCKOUT),
        (CloudStatus("RESOURCE_EXHAUSTED", "no", origin=Origin.CALL), ErrorClass.QUOTA),
        (CloudStatus("RESOURCE_EXHAUSTED", "no", origin=Origin.TEXT), ErrorClass.UNCLASSIFIED),
        (
            CloudStatus(
                "RESOURCE_EXHAUSTED", "no", (detail("QuotaFailure"),), origin=Origin.OPERATION
            ),
            ErrorClass.QUOTA,
        ),
        (
            CloudStatus(
                "RESOURCE_EXHAUSTED",
                stock_out("us-east1-b"),
                origin=Origin.CALL,
            ),
            ErrorClass.STOCKOUT,
        ),
    ],
)
def test_quota_and_stock_out_are_told_apart(status: CloudStatus, expected: ErrorClass) -> None:
    assert classify(status).error_class is expected


def test_details_name_the_quota_and_its_limit() -> None:
    info = detail(
        "ErrorInfo",
        reason="RATE_LIMIT_EXCEEDED",
        metadata={
            "quota_limit": "CreateNodePerMinutePerProject",
            "quota_limit_value": "60",
            "quota_location": "us-central1",
            "consumer": "projects/123456",
        },
    )
    failure = classify(CloudStatus("RESOURCE_EXHAUSTED", "Too much.", (info,)))
    assert failure.error_class is ErrorClass.RATE_LIMIT
    assert failure.scope.quota == "CreateNodePerMinutePerProject"
    assert (failure.scope.region, failure.scope.project) == ("us-central1", "123456")


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("1/min/{project}", ErrorClass.RATE_LIMIT),
        ("1/{project}/{region}", ErrorClass.QUOTA),
        (None, ErrorClass.RATE_LIMIT),
    ],
)
def test_the_unit_of_a_quota_tells_a_rate_from_a_sum(
    unit: str | None, expected: ErrorClass
) -> None:
    metadata = {"quota_limit": "X"} | ({"quota_unit": unit} if unit else {})
    info = detail("ErrorInfo", reason="RATE_LIMIT_EXCEEDED", metadata=metadata)
    assert classify(CloudStatus("RESOURCE_EXHAUSTED", "no", (info,))).error_class is expected


def test_words_that_name_a_sum_outrank_a_reason_that_names_a_rate() -> None:
    text = (
        "Quota limit 'TPUV2sPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 8 in zone a-b1-c."
    )
    info = detail("ErrorInfo", reason="RATE_LIMIT_EXCEEDED", metadata={})
    assert (
        classify(CloudStatus("RESOURCE_EXHAUSTED", text, (info,))).error_class is ErrorClass.QUOTA
    )


def test_a_rate_of_zero_is_a_quota_that_no_waiting_restores() -> None:
    info = detail("ErrorInfo", reason="RATE_LIMIT_EXCEEDED", metadata={"quota_limit_value": "0"})
    failure = classify(CloudStatus("RESOURCE_EXHAUSTED", "Too much.", (info,)))
    assert failure.error_class is ErrorClass.QUOTA
    assert "won't help" in failure.advice


def test_two_quotas_in_one_text_are_two_failures_and_the_lower_one_blocks() -> None:
    zone = "TPUV5sLitepodPerProjectPerZoneForTPUAPI"
    region = "TPUV5sLitepodPerProjectPerRegionForTPUAPI"
    text = (
        f"Quota limit '{zone}' has been exceeded. Limit: 16 in zone us-east5-a."
        f" Quota limit '{region}' has been exceeded. Limit: 0 in region us-east5."
    )
    assert [item.scope.quota for item in classify_text(text)] == [zone, region]
    assert classify(CloudStatus("RESOURCE_EXHAUSTED", text)).scope.quota == region


@pytest.mark.parametrize(
    "code", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "PERMISSION_DENIED", "UNAUTHENTICATED", "INTERNAL"]
)
def test_only_a_definite_answer_means_gone(code: str) -> None:
    for text in ("Resource 'projects/p/nodes/x' was not found", "node x not found", "404"):
        assert classify(CloudStatus(code, text)).error_class is not ErrorClass.GONE


def test_a_lost_connection_of_a_call_is_no_preemption() -> None:
    assert classify(CloudStatus("UNAVAILABLE", "Socket closed")).error_class is ErrorClass.CONNECT


def test_gclouds_details_do_not_become_failures_of_their_own() -> None:
    text = (
        f"ERROR: (gcloud.compute.tpus.tpu-vm.list) PERMISSION_DENIED: {api_off('123456')}\n"
        "- '@type': type.googleapis.com/google.rpc.Help\n  links:\n  - description: Activation\n"
        "- '@type': type.googleapis.com/google.rpc.ErrorInfo\n  domain: googleapis.com\n"
        "  metadata:\n    consumer: projects/123456\n    service: tpu.googleapis.com\n"
        "  reason: SERVICE_DISABLED\n"
    )
    (failure,) = classify_text(text)
    assert failure.error_class is ErrorClass.API_OFF
    assert failure.scope.project == "123456"


def test_a_log_of_many_lines_gives_each_failure_once_and_in_order() -> None:
    line = "2026-12-01T10:00:{:02}Z worker {} {}"
    texts = [
        stock_out("us-central1-a"),
        "loss 0.25",
        stock_out("us-central1-a"),
        stock_out("europe-west4-a"),
        "Ran out of memory in memory space hbm. Used 8.38G of 8.00G hbm.",
        "all is well",
    ]
    log = "\n".join(line.format(second, 0, text) for second, text in enumerate(texts))
    found = [(item.error_class, item.scope.zone) for item in classify_text(log)]
    assert found == [
        (ErrorClass.STOCKOUT, "us-central1-a"),
        (ErrorClass.STOCKOUT, "europe-west4-a"),
        (ErrorClass.HBM_OOM, None),
    ]


def test_the_trainers_own_class_is_taken_as_it_is() -> None:
    event = {
        "event": "error",
        "class": "HOST_OOM",
        "detail": "the input pipeline took 60 GiB",
        "hint": "Cache less.",
    }
    (failure,) = classify_text(f"{json.dumps(event)}\n")
    assert failure.error_class is ErrorClass.HOST_OOM
    assert failure.evidence == "the input pipeline took 60 GiB"
    assert failure.advice == "Cache less."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "2026-12-01 INFO step 100 loss 0.1",
        '{"event": "step", "step": 3, "loss": 0.2}',
        '{"nodes": [{"name": "projects/p/locations/us-east1-b/nodes/n", "state": "READY"}]}',
    ],
)
def test_a_text_without_a_failure_gives_none(text: str) -> None:
    assert classify_text(text) == []


def test_an_unknown_failure_is_named_as_such_with_its_words() -> None:
    (failure,) = classify_text("INFO starting\nERROR: the frobnicator is out of grease\nINFO end\n")
    assert failure.error_class is ErrorClass.UNCLASSIFIED
    assert failure.evidence == "ERROR: the frobnicator is out of grease"


def test_every_class_has_a_text_or_comes_from_elsewhere() -> None:
    shown = {case.expected for case in (*CLOUD, *OTHER)}
    assert set(ErrorClass) - shown == {ErrorClass.UNCLASSIFIED}


TF_ERROR = """Traceback (most recent call last):
  File "x.py", line 2, in f
tensorflow.python.framework.errors_impl.PermissionDeniedError: Error executing an HTTP request: \
HTTP response code 403 with body '{
  "error": {
    "code": 403,
    "message": "service-123@cloud-tpu.iam.gserviceaccount.com does not have storage.objects.get \
access to the Google Cloud Storage object.",
    "errors": [{"message": "x", "domain": "global", "reason": "forbidden"}]
  }
}
' when reading metadata of gs://my-bucket/data/train.tfrecord
"""
GO_QUOTA = (
    "rpc error: code = ResourceExhausted desc = Quota limit"
    " 'TPUV5sLitepodPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 16 in zone us-west4-a."
)
HTTP_ERROR = """ERROR: (gcloud.compute.tpus.tpu-vm.create) HttpError accessing \
<https://tpu.googleapis.com/v2/projects/pro-1/locations/us-central1-b/nodes?alt=json&nodeId=x>: \
response: <{'content-type': 'application/json'}>, content <{
  "error": {
    "code": 409,
    "message": "Resource 'projects/pro-1/locations/us-central1-b/nodes/x' already exists",
    "status": "ALREADY_EXISTS"
  }
}>
"""


@pytest.mark.parametrize(
    ("text", "expected", "evidence", "scope"),
    [
        (TF_ERROR, ErrorClass.BUCKET_ACCESS, "service-123@", {"bucket": "my-bucket"}),
        (GO_QUOTA, ErrorClass.QUOTA, "Quota limit", {"zone": "us-west4-a", "limit": 16.0}),
        (HTTP_ERROR, ErrorClass.NAME_TAKEN, "Resource", {"project": "pro-1"}),
        (
            "code: 8\nmessage: 'There is no more capacity in the zone \"us-east1-d\"; you can'",
            ErrorClass.STOCKOUT,
            "There is",
            {"zone": "us-east1-d"},
        ),
        (
            "{'code': 8, 'message': 'There is no more capacity in the zone \"us-east1-d\"'}",
            ErrorClass.STOCKOUT,
            "There is",
            {"zone": "us-east1-d"},
        ),
        ("HTTPError 404: Not Found", ErrorClass.GONE, "HTTPError 404", {}),
        ("google.api_core.exceptions.Forbidden: 403 no", ErrorClass.PERMISSION, "", {}),
        ("bash: line 1:  1234 Killed                  python3 -m t", ErrorClass.HOST_OOM, "", {}),
        ("Insufficient 'TPUV5E' quota. Requested 8", ErrorClass.QUOTA, "", {"quota": "TPUV5E"}),
    ],
)
def test_wrappers_of_other_tools(
    text: str, expected: ErrorClass, evidence: str, scope: dict[str, Any]
) -> None:
    (failure,) = classify_text(text)
    assert failure.error_class is expected
    assert evidence in failure.evidence[:80]
    for name, value in scope.items():
        assert getattr(failure.scope, name) == value


def test_an_error_object_does_not_hide_the_lines_of_its_log() -> None:
    status = json.dumps({"protoPayload": {"status": {"code": 8, "message": stock_out("a-b1-c")}}})
    other = json.dumps({"textPayload": "StatusCode.UNAUTHENTICATED"})
    found = [item.error_class for item in classify_text(f"{status}\n{other}\n")]
    assert found == [ErrorClass.STOCKOUT, ErrorClass.AUTH_EXPIRED]
