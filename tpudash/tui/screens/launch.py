"""The launch form: only what fits together can be chosen, and the price is on the screen."""

from __future__ import annotations

import logging
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import on
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.suggester import SuggestFromList
from textual.widgets import Button, Input, OptionList, Select, Static

from tpudash.cost.what_if import what_if
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.node import Scheduling
from tpudash.domain.operation import LaunchChoices
from tpudash.domain.recipes import RECIPES
from tpudash.domain.runtimes import default_runtime
from tpudash.errors import TpudashError
from tpudash.tui.launch_form import (
    CHOICES,
    HOLDERS,
    LABELS,
    FormValues,
    problems_of,
    request_of,
    summary_of,
)
from tpudash.tui.screens.overlay import Overlay
from tpudash.tui.screens.plan import PlanDialog
from tpudash.tui.widgets.line import Line
from tpudash.tui.widgets.what_if import what_if_lines
from tpudash.wording.text import safe_block, safe_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.widget import Widget

    from tpudash.domain.operation import OperationsPort
    from tpudash.tui.pane import HostApp
    from tpudash.tui.settings import LaunchDefaults

logger = logging.getLogger(__name__)

FRAME_ROWS: Final = 13
"""Border, title, summary, problems and buttons."""
WHAT_IF_ROWS: Final = 6
"""Rows of the comparison where it stands below the fields."""
LEAST_BELOW: Final = 22
"""On lower screens there is no room for it below the fields."""
LEAST_BESIDE: Final = 132
"""From this width on the comparison stands beside the fields, for as long as the form is open."""
MOST_PROBLEMS: Final = 2
_OFFERED: Final = ("recipe", "accelerator_type", "zone", "scheduling", "runtime_version")
_CHOICES: Final = (*_OFFERED, *CHOICES)
_COMPARED: Final = frozenset(
    f"launch-{name}" for name in ("accelerator_type", "zone", "scheduling")
)


class LaunchScreen(Overlay[None]):
    """Stays open below the plan, so that nothing typed is lost when the plan is not possible."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
        Binding("pagedown", "jump(8)", show=False, priority=True),
        Binding("pageup", "jump(-8)", show=False, priority=True),
        Binding("ctrl+l", "plan", show=False),
    ]

    def __init__(self, host: HostApp, operations: OperationsPort, defaults: LaunchDefaults) -> None:
        super().__init__(host, id="launch-screen")
        self._operations = operations
        self._defaults = defaults
        self._choices: LaunchChoices | None = None
        self._note = ""
        self._is_comparing = False

    def compose(self) -> ComposeResult:
        """Lay out one row for each field, the comparison, the summary and the buttons."""
        with Vertical(id="launch-box", classes="dialog"):
            yield Line(id="launch-title", classes="dialog-title")
            with Horizontal(id="launch-middle"):
                with VerticalScroll(id="launch-fields", can_focus=False):
                    for field, label in LABELS.items():
                        with Horizontal(classes="form-row"):
                            yield Static(label, classes="form-label", markup=False)
                            yield self._widget(field)
                yield Static(id="launch-beside", classes="what-if", markup=False)
            yield Static(id="launch-below", classes="what-if", markup=False)
            yield Static(id="launch-summary", markup=False)
            yield Static(id="launch-problems", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Cancel", id="launch-cancel", compact=True)
                yield Button("Show the plan", id="launch-plan", compact=True, variant="primary")
                yield Line(id="launch-keys", classes="dialog-keys")

    def _widget(self, field: str) -> Widget:
        if field in CHOICES:
            first = CHOICES[field][0]
            rows = [(name, name) for name in CHOICES[field]]
            return Select(rows, value=first, allow_blank=False, id=f"launch-{field}", compact=True)
        if field in _OFFERED:
            select: Select[str] = Select([], id=f"launch-{field}", compact=True, prompt="choose")
            return select
        buckets = self._buckets() if field == "bucket" else []
        start = {
            "steps": FormValues().steps,
            "checkpoint_every": FormValues().checkpoint_every,
            "bucket": next(iter(buckets), ""),
            "more_zones": ", ".join(self._defaults.zones[1:]),
        }
        return Input(
            start.get(field, ""),
            placeholder=HOLDERS.get(field, ""),
            suggester=SuggestFromList(buckets) if buckets else None,
            id=f"launch-{field}",
            compact=True,
        )

    def _buckets(self) -> list[str]:
        """Return the bucket that is set, and those of the runs that are known, newest first."""
        runs = self.host.context.store.snapshot.runs.values()
        specs = [run.spec for run in runs if run.spec is not None]
        newest = sorted(specs, key=lambda spec: spec.created, reverse=True)
        found = [self._defaults.bucket, *(spec.bucket for spec in newest)]
        return list(dict.fromkeys(bucket for bucket in found if bucket))

    def on_mount(self) -> None:
        """Offer what is known without asking anybody; the cloud is asked for the zone's own."""
        keys = Text("tab moves  enter opens  ctrl+l plans  esc cancels", self._muted)
        self.query_one("#launch-keys", Line).show(keys)
        for line in self.query(Input):
            line.cursor_blink = False
        zones = self._zones()
        self._offer("zone", zones, zones[0] if zones else None)
        self._offer("recipe", RECIPES, FormValues().recipe)
        self._offer("scheduling", (one.value for one in Scheduling), Scheduling.SPOT.value)
        self.query_one("#launch-run", Input).focus()
        self._review()

    def on_resize(self, event: events.Resize) -> None:
        """Leave room for comparison, summary and buttons on a low screen."""
        self._arrange(event.size.width, event.size.height)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Compare the types below the fields while what they hang on is being chosen."""
        self._is_comparing = event.widget.id in _COMPARED
        self._arrange(*self.host.size)

    def action_jump(self, fields: int) -> None:
        """Move on by several fields at once, or back; by a page in a list that is open."""
        if isinstance(self.focused, OptionList):
            self.focused.scroll_relative(y=fields, animate=False)
            return
        for _ in range(abs(fields)):
            if fields > 0:
                self.focus_next()
            else:
                self.focus_previous()

    def _arrange(self, width: int, height: int) -> None:
        is_wide = width >= LEAST_BESIDE
        is_below = self._is_comparing and not is_wide and height >= LEAST_BELOW
        self.query_one("#launch-beside").display = is_wide
        self.query_one("#launch-below").display = is_below
        rows = height - FRAME_ROWS - (WHAT_IF_ROWS if is_below else 0)
        self.query_one("#launch-fields").styles.max_height = max(3, rows)
        below = "" if rows >= len(LABELS) else "  more fields below: tab goes on"
        title = Text(" Launch a training run", "bold").append(below, self._muted)
        self.query_one("#launch-title", Line).show(title)
        self._compare()

    @property
    def _muted(self) -> str:
        return str(self.host.style_of("muted"))

    def _zones(self) -> list[str]:
        snapshot = self.host.context.snapshot
        seen = [*self._defaults.zones, *sorted({node.zone for node in snapshot.nodes.values()})]
        return list(dict.fromkeys([*seen, *load_catalog().zones]))

    def _select(self, field: str) -> Select[str]:
        return self.query_one(f"#launch-{field}", Select)

    def _offer(self, field: str, options: Iterable[str], chosen: str | None) -> None:
        """Offer these options; keeps the present choice if it is still one of them."""
        select = self._select(field)
        names = list(options)
        before = self._chosen(field)
        with select.prevent(Select.Changed):
            select.set_options((Content(safe_text(name, 80)), name) for name in names)
        if before in names:
            select.value = before
        elif chosen in names:
            select.value = str(chosen)

    def _chosen(self, field: str) -> str:
        value = self._select(field).value
        return value if isinstance(value, str) else ""

    @property
    def values(self) -> FormValues:
        """The fields as they stand; what is not chosen yet is as in an empty form."""
        found = {
            one.name: self._chosen(one.name) or str(one.default)
            if one.name in _CHOICES
            else self.query_one(f"#launch-{one.name}", Input).value
            for one in fields(FormValues)
        }
        return FormValues(**found)

    @on(Select.Changed, "#launch-zone")
    def _zone_changed(self) -> None:
        zone = self._chosen("zone")
        self._note = ""
        if zone:
            known = tuple(kind.name for kind in load_catalog().in_zone(zone))
            self._take(LaunchChoices(zone, known, ()))
            self.run_worker(self._ask(zone), name="choices", exclusive=True, exit_on_error=False)
        self._review()

    async def _ask(self, zone: str) -> None:
        try:
            choices = await self._operations.launch_choices(zone)
        except TpudashError as error:
            self._note = f"{error.title}. The bundled table is shown. {error.hint}".strip()
        except Exception as error:
            logger.exception("asking for the choices of %s failed", zone)
            self._note = f"{zone} could not be asked: {error}. The bundled table is shown."
        else:
            self._take(choices)
        self._review()

    def _take(self, choices: LaunchChoices) -> None:
        self._choices = choices
        wanted = self._defaults.accelerator_type
        types = choices.accelerator_types
        first = wanted if wanted in types else next(iter(types), None)
        self._offer("accelerator_type", types, first)
        self._offer_runtimes()

    @on(Select.Changed, "#launch-accelerator_type")
    @on(Select.Changed, "#launch-recipe")
    def _type_changed(self) -> None:
        self._offer_runtimes()
        self._review()

    def _offer_runtimes(self) -> None:
        kind = load_catalog().find(self._chosen("accelerator_type"))
        names = self._choices.runtime_versions if self._choices else ()
        recipe = RECIPES[self.values.recipe]
        best = None
        if kind is not None:
            best = default_runtime(kind, names, wants_tensorflow=recipe.wants_tensorflow)
        rest = [name for name in names if name != best]
        self._offer("runtime_version", [*([best] if best else []), *rest], best)
        if best and self._chosen("runtime_version") != best:
            self._select("runtime_version").value = best

    @on(Select.Changed)
    @on(Input.Changed)
    def _review(self) -> None:
        """Say what it would be, what it would cost, and what is missing."""
        values = self.values
        summary = summary_of(values, self.host.context.prices)
        self.query_one("#launch-summary", Static).update(Text(safe_block(summary)))
        found = self._problems(values)
        fill = self.host.hints.fill
        words = [f"{LABELS[field]}: {fill(problem)}" for field, problem in found.items()]
        if len(words) > MOST_PROBLEMS:
            words[MOST_PROBLEMS - 1 :] = [
                f"{words[MOST_PROBLEMS - 1]} (+{len(words) - MOST_PROBLEMS} more)"
            ]
        self._remark("\n".join([*([self._note] if self._note else []), *words]))
        self.query_one("#launch-plan", Button).disabled = bool(found)
        self._compare()

    def _compare(self) -> None:
        """Put the types of the zone side by side, with the one that is chosen among them."""
        panels = [one for one in self.query(".what-if").results(Static) if one.display]
        zone = self._chosen("zone")
        if not panels or not zone:
            return
        context, values = self.host.context, self.values
        offered = self._choices.accelerator_types if self._choices else None
        rows = what_if(zone, Scheduling(values.scheduling), context.prices, offered=offered)
        for panel in panels:
            is_beside = panel.id == "launch-beside"
            most = max(4, self.host.size.height - FRAME_ROWS - 3) if is_beside else WHAT_IF_ROWS - 2
            lines = what_if_lines(
                rows, values.accelerator_type, most=most, plain=context.options.ascii
            )
            panel.update(Text("\n".join(lines), no_wrap=True))

    def _problems(self, values: FormValues) -> dict[str, str]:
        runs = self.host.context.store.snapshot.runs
        return problems_of(values, tuple(runs))

    def _remark(self, words: str) -> None:
        self.query_one("#launch-problems", Static).update(Text(safe_block(words)))

    @on(Button.Pressed, "#launch-cancel")
    def _cancelled(self) -> None:
        self.action_close()

    @on(Button.Pressed, "#launch-plan")
    @on(Input.Submitted)
    def action_plan(self) -> None:
        """Go on to the plan, if nothing is missing."""
        values = self.values
        problems = self._problems(values)
        if problems:
            first = next(iter(problems))
            self.query_one(f"#launch-{first}").focus()
            return
        request = request_of(values)
        self.host.push_screen(
            PlanDialog(
                self.host,
                self._operations,
                f"Launch {request.run}",
                partial(self._operations.plan_launch, request),
            ),
            self._planned,
        )

    def _planned(self, is_started: bool | None) -> None:
        if is_started:
            self.dismiss(None)
