"""Texts as they are found in terminals, journals and web pages, and pages that are no API's."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.unit.diagnostics.error_texts import CLOUD, Case
from tests.unit.diagnostics.test_classifier import HTTP, check, number_of
from tpudash.diagnostics.classifier import classify_text
from tpudash.domain.failure import ErrorClass

if TYPE_CHECKING:
    from collections.abc import Callable


def body_of(case: Case) -> str:
    return json.dumps({"code": number_of(case), "message": case.text}, indent=2)


def as_quoted_json_of_several_lines(case: Case) -> str:
    return f"ERROR: (gcloud.compute.tpus.tpu-vm.start) {json.dumps(body_of(case))}"


def as_json_quoted_twice(case: Case) -> str:
    return f"launch failed: {json.dumps(json.dumps(body_of(case)))}"


def as_json_with_its_line_breaks_spelled_out(case: Case) -> str:
    return "ERROR: (gcloud.compute.tpus.tpu-vm.start) " + body_of(case).replace("\n", "\\n")


def as_gcloud_with_details(case: Case) -> str:
    return (
        f"ERROR: (gcloud.compute.tpus.tpu-vm.create) {case.code}: {case.text} This command is"
        " authenticated as me@example.com which is the active account specified by the"
        " [core/account] property\n- '@type': type.googleapis.com/google.rpc.ErrorInfo\n"
        "  domain: googleapis.com\n  metadata:\n    service: tpu.googleapis.com\n  reason: OTHER"
    )


def as_chained_traceback(case: Case) -> str:
    quoted = case.text.replace('"', '\\"')
    return (
        "Traceback (most recent call last):\n"
        '  File "grpc_helpers.py", line 72, in error_remapped_callable\n'
        "    return callable_(*args, **kwargs)\n"
        "grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:\n"
        f'\tstatus = StatusCode.{case.code or "UNKNOWN"}\n\tdetails = "{quoted}"\n'
        '\tdebug_error_string = "UNKNOWN:Error received from peer ipv4:142.250.1.95:443'
        ' {created_time:\\"2026-12-01T00:00:00+00:00\\"}"\n>\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "launch.py", line 1, in <module>\n    main()\n'
        f"google.api_core.exceptions.GoogleAPICallError: {HTTP.get(case.code, 400)} {case.text}"
    )


def as_coloured_terraform(case: Case) -> str:
    text = f"Error waiting to create Node: Error code {number_of(case)}, message: {case.text}"
    red, off = "\x1b[31m", "\x1b[0m"
    return f"{red}╷{off}\n{red}│{off} \x1b[1m{red}Error: {off}{off}{text}{off}\n{red}╵{off}"


def as_journal(case: Case) -> str:
    who = "t1v-n-abc-w-0 google_metadata_script_runner[812]: startup-script:"
    return f"Dec 01 10:00:00 {who} {case.text}\nDec 01 10:00:01 {who} exit status 0\n"


def as_container_log(case: Case) -> str:
    line = f"2026-12-01 10:00:00 ERROR {case.text}\n"
    return json.dumps({"log": line, "stream": "stderr", "time": "2026-12-01T10:00:00.0Z"})


def as_build_log(case: Case) -> str:
    return (
        f"2026-12-01T10:00:00.1234567Z ##[error]Process failed: {case.text}\r\n"
        "2026-12-01T10:00:00.2Z ##[error]Process completed.\r\n"
    )


def as_failed_request(case: Case) -> str:
    error = {"code": number_of(case), "message": case.text}
    return json.dumps({"state": {"state": "FAILED", "failedData": {"error": error}}})


@pytest.mark.parametrize(
    "wrap",
    [
        as_quoted_json_of_several_lines,
        as_json_quoted_twice,
        as_json_with_its_line_breaks_spelled_out,
        as_gcloud_with_details,
        as_chained_traceback,
        as_coloured_terraform,
        as_journal,
        as_container_log,
        as_build_log,
        as_failed_request,
    ],
    ids=lambda wrap: str(wrap.__name__),
)
@pytest.mark.parametrize("case", CLOUD, ids=lambda case: case.id)
def test_a_text_of_the_cloud(case: Case, wrap: Callable[[Case], str]) -> None:
    (failure,) = classify_text(wrap(case))
    check(failure, case)
    assert "\\" not in failure.evidence
    assert "\x1b" not in failure.evidence


PAGES = {
    "401": ("<html><title>401 Unauthorized</title></html>", ErrorClass.AUTH_EXPIRED),
    "403": (
        (
            "<html><head><title>403 Forbidden</title></head><body><h2>Your client does not have"
            " permission to get URL <code>/v2/x</code> from this server.</h2></body></html>"
        ),
        ErrorClass.PERMISSION,
    ),
    "404": (
        (
            "<!DOCTYPE html><html lang=en><title>Error 404 (Not Found)!!1</title><p><b>404.</b>"
            " <ins>That&#39;s an error.</ins><p>The requested URL"
            " <code>/v2/projects/p/locations/-/nodes</code> was not found on this server."
        ),
        ErrorClass.BAD_REQUEST,
    ),
    "429": ("<html><title>Error 429 (Too Many Requests)!!1</title></html>", ErrorClass.RATE_LIMIT),
    "502": (
        (
            "<!DOCTYPE html>\n<html lang=en>\n  <title>Error 502 (Server Error)!!1</title>\n"
            "  <p>The server encountered a temporary error and could not complete your request.\n"
        ),
        ErrorClass.INTERNAL,
    ),
    "503": ("<html>\n<h1>503 Service Unavailable</h1>\n</html>", ErrorClass.INTERNAL),
}


@pytest.mark.parametrize(("page", "expected"), PAGES.values(), ids=PAGES.keys())
def test_a_web_page(page: str, expected: ErrorClass) -> None:
    (failure,) = classify_text(page)
    assert failure.error_class is expected
    assert "<" not in failure.evidence


ADVICE = {
    "no quota project": (
        (
            "403 Your application is authenticating by using local Application Default"
            " Credentials. The tpu.googleapis.com API requires a quota project, which is not set"
            " by default."
        ),
        ErrorClass.PERMISSION,
        "gcloud auth application-default set-quota-project",
    ),
    "counted against Google's project": (
        "Cloud TPU API has not been used in project 764086051850 before or it is disabled.",
        ErrorClass.API_OFF,
        "set-quota-project YOUR-PROJECT",
    ),
    "another's quota project": (
        (
            "Caller does not have required permission to use project team-a. Grant the caller the"
            " roles/serviceusage.serviceUsageConsumer role."
        ),
        ErrorClass.PERMISSION,
        "counted against team-a",
    ),
    "gcloud's own sign-in": (
        (
            "ERROR: (gcloud.compute.tpus.tpu-vm.list) There was a problem refreshing your current"
            " auth tokens: Reauthentication failed. cannot prompt during non-interactive execution."
        ),
        ErrorClass.AUTH_EXPIRED,
        "gcloud auth login",
    ),
    "no project": (
        (
            "ERROR: (gcloud.compute.tpus.tpu-vm.list) The required property [project] is not"
            " currently set."
        ),
        ErrorClass.BAD_REQUEST,
        "gcloud config set project ID",
    ),
    "deleted while being created": (
        "HTTP 409: the operation was cancelled",
        ErrorClass.UNKNOWN_OUTCOME,
        "Look whether it exists",
    ),
    "chips that are missing": (
        "open(/dev/accel0): No such file or directory",
        ErrorClass.INTERNAL,
        "create a new one",
    ),
}


@pytest.mark.parametrize(("text", "expected", "words"), ADVICE.values(), ids=ADVICE.keys())
def test_what_to_do(text: str, expected: ErrorClass, words: str) -> None:
    (failure,) = classify_text(text)
    assert failure.error_class is expected
    assert words in failure.advice


def test_each_of_two_quotas_has_its_own_words() -> None:
    text = textwrap.dedent(
        """\
        Quota limit 'TPUV6EPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 4 in zone us-east5-a.
        Quota limit 'TPUV6EPerProjectPerRegionForTPUAPI' has been exceeded. Limit: 0 in region us-east5.
        """  # noqa: E501
    )
    zone, region = classify_text(text)
    assert (zone.scope.zone, zone.scope.limit) == ("us-east5-a", 4)
    assert (region.scope.region, region.scope.limit) == ("us-east5", 0)
    assert "PerZone" in zone.evidence
    assert "PerRegion" in region.evidence


GCLOUD = "ERROR: (gcloud.compute.tpus.tpu-vm.create) "
RPC = "type.googleapis.com/google.rpc."
PRINTED = {
    "a rate": (
        (
            f"{GCLOUD}RESOURCE_EXHAUSTED: Quota exceeded.\n- '@type': {RPC}ErrorInfo\n"
            "  domain: googleapis.com\n  metadata:\n    quota_limit: CreateNodePerMinute\n"
            "    quota_limit_value: '60'\n    quota_unit: 1/min/{project}\n"
            "  reason: RATE_LIMIT_EXCEEDED"
        ),
        ErrorClass.RATE_LIMIT,
        {"quota": "CreateNodePerMinute", "limit": 60.0},
    ),
    "a sum": (
        (
            f"{GCLOUD}RESOURCE_EXHAUSTED: no\n- '@type': {RPC}QuotaFailure\n  violations:\n"
            "  - description: Quota limit 'X' exceeded\n    subject: project:1"
        ),
        ErrorClass.QUOTA,
        {},
    ),
    "a service": (
        (
            f"{GCLOUD}PERMISSION_DENIED: The caller does not have permission\n"
            f"- '@type': {RPC}ErrorInfo\n  metadata:\n    consumer: projects/my-proj\n"
            f"  reason: SERVICE_DISABLED\n- '@type': {RPC}LocalizedMessage\n  locale: en-US\n"
            "  message: Cloud TPU API has not been used in project my-proj before."
        ),
        ErrorClass.API_OFF,
        {"project": "my-proj"},
    ),
    "a place": (
        (
            f"{GCLOUD}PERMISSION_DENIED: no\n- '@type': {RPC}ErrorInfo\n  metadata:\n"
            "    location: us-central2-b\n  reason: LOCATION_POLICY_VIOLATED"
        ),
        ErrorClass.LOCATION,
        {"zone": "us-central2-b"},
    ),
}


@pytest.mark.parametrize(("text", "expected", "scope"), PRINTED.values(), ids=PRINTED.keys())
def test_details_that_gcloud_prints_below_the_message(
    text: str, expected: ErrorClass, scope: dict[str, object]
) -> None:
    (failure,) = classify_text(text)
    assert failure.error_class is expected
    assert "gcloud" not in failure.evidence
    for name, value in scope.items():
        assert getattr(failure.scope, name) == value


@pytest.mark.parametrize(
    "before",
    [
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n\r\n",
        "< HTTP/2 429 \r\n< date: Tue\r\n\r\n",
        "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://x/v2\n",
    ],
)
def test_what_http_says_of_an_answer_is_no_failure_beside_its_body(before: str) -> None:
    quota = "TPUV2sPreemptiblePodPerProjectPerRegionForTPUAPI"
    body = {"code": 429, "message": f"Quota '{quota}' exhausted. Limit 0 in region us-west4."}
    found = classify_text(before + json.dumps({"error": body}))
    assert [one.error_class for one in found] == [ErrorClass.QUOTA]


def test_a_status_line_without_a_body_is_all_that_is_known() -> None:
    found = classify_text("HTTP/1.1 429 Too Many Requests\r\n")
    assert [one.error_class for one in found] == [ErrorClass.RATE_LIMIT]
