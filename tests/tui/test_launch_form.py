"""The launch form: every way of asking for a node, checked while it is typed, at any size."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import Button, Input, Select

from tests.tui.conftest import Console
from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import make_spec, make_world, read_runs
from tpudash.cost.prices import PriceBook
from tpudash.domain.node import Scheduling
from tpudash.domain.run import Placement
from tpudash.store.store import Store
from tpudash.tui.launch_form import (
    AT_ONCE,
    GUARANTEED,
    LABELS,
    QUEUED,
    YES,
    FormValues,
    problems_of,
    request_of,
    summary_of,
)
from tpudash.tui.screens.launch import LaunchScreen
from tpudash.tui.settings import ConsoleSettings, LaunchDefaults

if TYPE_CHECKING:
    from textual.widget import Widget

BOOK = PriceBook.bundled()
FILLED = FormValues(
    run="new-run", zone="us-central1-b", accelerator_type="v2-8", bucket="gs://bucket"
)


def test_a_form_that_asks_for_everything_means_all_of_it() -> None:
    values = replace(
        FILLED,
        recipe="jax",
        scheduling="on-demand",
        asked=GUARANTEED,
        valid_until="6h",
        more_zones="us-east1-d, us-west4-a us-east1-d",
        service_account="trainer@demo.iam.gserviceaccount.com",
        network="lab",
        subnetwork="lab-east",
        external_ips="no",
        tags="allow-ssh tpu",
        labels="team=vision, cost=lab",
        max_cost="25",
        delete_when_done=YES,
        validate_first=YES,
    )
    assert problems_of(values) == {}
    request = request_of(values)
    assert request.zones == ("us-central1-b", "us-east1-d", "us-west4-a")
    assert request.scheduling is Scheduling.ON_DEMAND
    assert (request.recipe, request.max_cost_usd) == ("jax", 25.0)
    assert request.delete_node_when_done
    assert request.validate_first
    assert request.placement == Placement(
        queued=True,
        guaranteed=True,
        valid_until_s=6 * 3600,
        service_account="trainer@demo.iam.gserviceaccount.com",
        network="lab",
        subnetwork="lab-east",
        tags=("allow-ssh", "tpu"),
        external_ips=False,
        labels={"team": "vision", "cost": "lab"},
    )


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"valid_until": "6h", "asked": AT_ONCE}, "asked", "only a queued resource"),
        ({"reservation": "r1", "asked": AT_ONCE}, "asked", "only a queued resource"),
        ({"asked": QUEUED, "scheduling": "preemptible"}, "asked", "can't be preemptible"),
        ({"asked": GUARANTEED, "scheduling": "spot"}, "asked", "never guaranteed"),
        ({"asked": QUEUED, "reservation": "r1"}, "asked", "reserved capacity"),
        ({"asked": QUEUED, "valid_until": "soon"}, "valid_until", "90s, 15m"),
        ({"asked": QUEUED, "valid_until": "0h"}, "valid_until", "more than 0"),
        ({"labels": "team"}, "labels", "KEY=VALUE"),
        ({"labels": "Team=x"}, "labels", "can't be a label"),
        ({"labels": "tpudash-run=x"}, "labels", "tpudash's own"),
        ({"tags": "Not_A_Tag"}, "tags", "can't be a network tag"),
        ({"more_zones": "mars"}, "more_zones", "mars is no zone"),
    ],
)
def test_what_does_not_go_together_is_said_at_its_field(
    changes: dict[str, str], field: str, words: str
) -> None:
    problems = problems_of(replace(FILLED, **changes))
    assert list(problems) == [field]
    assert words in problems[field]


@given(st.dictionaries(st.sampled_from([one.name for one in fields(FormValues)]), st.text()))
def test_whatever_is_typed_is_judged_and_what_passes_can_be_asked_for(typed: Any) -> None:
    choices = {"recipe", "scheduling", "asked", "external_ips", "delete_when_done"}
    values = replace(FILLED, **{name: text for name, text in typed.items() if name not in choices})
    problems = problems_of(values)
    assert problems.keys() <= LABELS.keys()
    if not problems:
        request_of(values)
    summary_of(values, BOOK)


def test_a_cap_that_nobody_can_hold_is_said() -> None:
    values = replace(FILLED, scheduling="reserved", max_cost="10")
    text = summary_of(values, BOOK)
    assert "reserved capacity costs what its commitment says" in text
    assert "nobody can hold the run to its cap" in text


def is_focused(it: Console, field: str) -> bool:
    return it.app.focused is not None and it.app.focused.id == f"launch-{field}"


def is_visible(widget: Widget) -> bool:
    return widget.region.height == 1


async def open_form(it: Console) -> LaunchScreen:
    await it.press("L")
    assert isinstance(it.app.screen, LaunchScreen)
    form = it.app.screen
    await it.until(lambda: form.values.runtime_version)
    return form


async def test_every_field_can_be_reached_and_seen_at_80_by_24() -> None:
    async with console(size=(80, 24)) as it:
        form = await open_form(it)
        for field in LABELS:
            await it.until(partial(is_focused, it, field), field)
            widget = form.query_one(f"#launch-{field}")
            await it.until(partial(is_visible, widget))
            row = widget.region.y
            assert LABELS[field] in it.screen_text.splitlines()[row], field
            assert "Show the plan" in it.screen_text
            await it.press("tab")


async def test_types_stand_side_by_side_while_one_is_chosen() -> None:
    async with console(size=(80, 24)) as it:
        form = await open_form(it)
        assert "$/H PER TF" not in it.screen_text
        form.query_one("#launch-accelerator_type").focus()
        await it.until(lambda: "$/H PER TF" in it.screen_text)
        assert "> v2-8" in it.screen_text
        assert "v3-8" in it.screen_text
        assert "example prices" in it.screen_text
        form.query_one("#launch-scheduling", Select).value = "on-demand"
        await it.until(lambda: "$4.50" in it.screen_text)
        form.query_one("#launch-run").focus()
        await it.until(lambda: "$/H PER TF" not in it.screen_text)


async def test_on_a_wide_screen_they_stay_beside_the_fields() -> None:
    async with console(size=(200, 60)) as it:
        form = await open_form(it)
        await it.until(lambda: "$/H PER TF" in it.screen_text)
        form.query_one("#launch-accelerator_type", Select).value = "v3-8"
        await it.until(lambda: "> v3-8" in it.screen_text)


async def test_the_bucket_begins_with_what_is_set_or_with_that_of_the_newest_run() -> None:
    store = make_world()
    known = store.snapshot.runs["demo"]
    read_runs(store, replace(known, spec=make_spec(bucket="gs://of-the-run")))
    async with console(store) as it:
        assert (await open_form(it)).values.bucket == "gs://of-the-run"
    defaults = LaunchDefaults(bucket="gs://set", zones=("us-central1-b", "us-east1-d"))
    async with console(store, settings=ConsoleSettings(launch=defaults)) as it:
        form = await open_form(it)
        assert form.values.bucket == "gs://set"
        assert form.values.more_zones == "us-east1-d"
        field = form.query_one("#launch-bucket", Input)
        field.focus()
        field.value = "gs://of"
        await it.until(lambda: field._suggestion)
        await it.press("right")
        assert field.value == "gs://of-the-run"


async def test_the_image_follows_the_recipe() -> None:
    async with console(Store()) as it:
        images = ("tpu-ubuntu2204-base", "tpu-vm-tf-2.18.0-pjrt")
        it.operations.choices = replace(it.operations.choices, runtime_versions=images)
        form = await open_form(it)
        assert form.values.runtime_version == "tpu-vm-tf-2.18.0-pjrt"
        form.query_one("#launch-recipe", Select).value = "jax"
        await it.until(lambda: "tf" not in form.values.runtime_version)


async def test_a_queued_launch_is_asked_for_as_it_stands_in_the_form() -> None:
    async with console() as it:
        form = await open_form(it)
        form.query_one("#launch-run", Input).value = "queued-run"
        form.query_one("#launch-bucket", Input).value = "gs://bucket"
        form.query_one("#launch-valid_until", Input).value = "2h"
        await it.until(lambda: "only a queued resource" in it.screen_text)
        form.query_one("#launch-asked", Select).value = QUEUED
        await it.until(lambda: not form.query_one("#launch-plan", Button).disabled)
        await it.press("ctrl+l")
        await it.until(lambda: it.operations.calls[-1][0] == "plan_launch")
        placement = it.operations.calls[-1][1].placement
        assert (placement.queued, placement.valid_until_s) == (True, 7200)


async def test_a_page_down_leaps_over_several_fields_and_back() -> None:
    async with console(size=(80, 24)) as it:
        await open_form(it)
        order = list(LABELS)
        await it.press("pagedown")
        await it.until(partial(is_focused, it, order[8]))
        await it.press("pageup")
        await it.until(partial(is_focused, it, order[0]))


async def test_on_a_tiny_screen_the_buttons_stay_visible_whatever_has_the_focus() -> None:
    async with console(size=(60, 15)) as it:
        form = await open_form(it)
        for field in ("accelerator_type", "labels"):
            form.query_one(f"#launch-{field}").focus()
            await it.until(partial(is_visible, form.query_one(f"#launch-{field}")))
            await it.until(lambda: "Show the plan" in it.screen_text)
