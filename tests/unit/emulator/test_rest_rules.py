"""HTTP rules and the building of requests from them."""

from __future__ import annotations

import pytest
from google.cloud.tpu_v2.types import cloud_tpu

from tpudash.emulator.errors import ApiError
from tpudash.emulator.rest.rules import VERSIONS, compile_rule, rules_of
from tpudash.emulator.rest.transcode import request_of

PARENT = "projects/p/locations/z"


def test_every_rpc_of_the_client_has_a_rule() -> None:
    named = {rule.rpc for rule in rules_of("v2")}
    assert {"CreateNode", "ListQueuedResources", "GetOperation", "ListLocations"} <= named
    assert {rule.rpc for rule in rules_of("v2alpha1")} - named == {
        "SimulateMaintenanceEvent",
        "PerformMaintenance",
        "PerformMaintenanceQueuedResource",
        "ListReservations",
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("verb", "path", "rpc", "bound"),
    [
        ("GET", f"{PARENT}/nodes", "ListNodes", {"parent": PARENT}),
        ("GET", f"{PARENT}/nodes/n", "GetNode", {"name": f"{PARENT}/nodes/n"}),
        ("PATCH", f"{PARENT}/nodes/n", "UpdateNode", {"node.name": f"{PARENT}/nodes/n"}),
        ("POST", f"{PARENT}/nodes/n:stop", "StopNode", {"name": f"{PARENT}/nodes/n"}),
        ("GET", "projects/p/locations", "ListLocations", {"name": "projects/p"}),
        ("GET", f"{PARENT}/nodes/a%25b", "GetNode", {"name": f"{PARENT}/nodes/a%b"}),
    ],
)
def test_paths_find_their_rpc(
    version: str, verb: str, path: str, rpc: str, bound: dict[str, str]
) -> None:
    matches = {}
    for rule in rules_of(version):
        found = rule.match(verb, f"/{version}/{path}")
        if found is not None:
            matches[rule.rpc] = found
    assert matches == {rpc: bound}


def test_templates_of_other_shapes() -> None:
    rule = compile_rule("Get", "get", "/v9/{a.b}/x/{c=k/**}", "")
    assert rule.match("GET", "/v9/1/x/k/2/3") == {"a.b": "1", "c": "k/2/3"}
    assert rule.match("GET", "/v9/1/2/x/k/3") is None


def test_query_fills_what_path_and_body_do_not() -> None:
    rule = compile_rule("UpdateNode", "patch", "/v2/{node.name=**}", "node")
    request = request_of(
        rule,
        cloud_tpu.UpdateNodeRequest.pb(),
        {"node.name": "n"},
        [("updateMask", "labels,networkConfig.enableExternalIps"), ("alt", "json")],
        b'{"labels": {"a": "b"}, "name": "other"}',
    )
    assert request.node.name == "n"
    assert dict(request.node.labels) == {"a": "b"}
    assert list(request.update_mask.paths) == ["labels", "network_config.enable_external_ips"]


@pytest.mark.parametrize(
    "query",
    [
        [("queued_resource_id", "q"), ("force", "true")],
        [("force", "maybe")],
        [("name.x", "y")],
    ],
)
def test_queries_that_do_not_fit(query: list[tuple[str, str]]) -> None:
    rule = compile_rule("DeleteQueuedResource", "delete", "/v2/{name=**}", "")
    with pytest.raises(ApiError):
        request_of(rule, cloud_tpu.DeleteQueuedResourceRequest.pb(), {"name": "n"}, query, b"")


def test_lists_numbers_and_booleans_in_a_query() -> None:
    rule = compile_rule("X", "get", "/v2/{name=**}", "")
    query = [("workerIds", "0"), ("worker_ids", "1"), ("queryPath", "p")]
    kind = cloud_tpu.GetGuestAttributesRequest.pb()
    request = request_of(rule, kind, {"name": "n"}, query, b"")
    assert (list(request.worker_ids), request.query_path) == (["0", "1"], "p")
    deletion = request_of(
        rule, cloud_tpu.DeleteQueuedResourceRequest.pb(), {"name": "n"}, [("force", "true")], b""
    )
    assert deletion.force
