"""What all panes share: their base class, the view context, and the app that hosts them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, cast

from rich.style import Style
from textual.app import App
from textual.color import Color, ColorParseError
from textual.widget import Widget

from tpudash.domain.masking import without_addresses, without_names
from tpudash.store.masked import account_names
from tpudash.tui.ascii_filter import AsciiFilter
from tpudash.tui.hints import KeyHints
from tpudash.tui.looks import LOOK_VARIABLES, Look, look_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from tpudash.clock import Clock
    from tpudash.cost.prices import PriceBook
    from tpudash.store.changes import ChangeSet
    from tpudash.store.snapshot import Snapshot
    from tpudash.store.store import Store


class PaneId(StrEnum):
    """The five panes, in the order of their number keys."""

    NODES = "nodes"
    UTILIZATION = "utilization"
    LOGS = "logs"
    COST = "cost"
    CHECKLIST = "checklist"

    @property
    def number(self) -> int:
        """The digit that focuses the pane, 1 to 5."""
        return tuple(PaneId).index(self) + 1


class SubjectKind(StrEnum):
    """What kind of thing a row of the nodes pane stands for."""

    RUN = "run"
    NODE = "node"
    REQUEST = "request"
    TOMBSTONE = "tombstone"


@dataclass(frozen=True, slots=True)
class Subject:
    """The selected thing.

    Attributes:
        name: Run name, or full resource name of the node or request.
        run: The run that it belongs to, or None.
        node: Full name of the node that it stands for (a run's newest node), or None.
    """

    kind: SubjectKind
    name: str
    run: str | None = None
    node: str | None = None

    @property
    def short_name(self) -> str:
        """The last segment of the name."""
        return self.name.rsplit("/", 1)[-1]

    @property
    def node_id(self) -> str | None:
        """The last segment of the node's name, or None."""
        return None if self.node is None else self.node.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """How things are drawn.

    Attributes:
        is_watch: Nothing can be changed; accounts and addresses are masked.
        ascii: Draw with ASCII characters only.
    """

    is_watch: bool = False
    ascii: bool = False


@dataclass(slots=True)
class ViewContext:
    """What every pane may read. Only the app writes to it.

    Attributes:
        price_source: Returns the prices as they are known now.
        subject: The selected thing, or None.
        held: The snapshot that a paused display goes on showing, or None.
    """

    store: Store
    clock: Clock
    price_source: Callable[[], PriceBook]
    options: ViewOptions = field(default_factory=ViewOptions)
    subject: Subject | None = None
    held: Snapshot | None = None

    @property
    def snapshot(self) -> Snapshot:
        """What is to be shown: the newest snapshot, or the held one while paused."""
        return self.store.snapshot if self.held is None else self.held

    @property
    def prices(self) -> PriceBook:
        """The prices as they are known now."""
        return self.price_source()

    @property
    def is_paused(self) -> bool:
        """Whether the display stands still while data keeps coming."""
        return self.held is not None

    def shown(self, text: str) -> str:
        """Return a text as it may be seen: in watch mode without addresses and accounts."""
        if not self.options.is_watch:
            return text
        return without_names(without_addresses(text), account_names(self.snapshot))

    def now(self) -> datetime:
        """Return the clock's time."""
        return self.clock.now()


class HostApp(App[None]):
    """An app that panes can live in: it has a view context and our theme variables.

    Args:
        keymap: The keys of every action by its id, for texts that name them; the registry's own
            by default.

    Attributes:
        theme_glyphs: The theme's own (glyph, ASCII glyph) by kind of state.
    """

    def __init__(
        self,
        context: ViewContext,
        *,
        ansi_color: bool | None = None,
        keymap: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.context = context
        self.hints = KeyHints(_default_keys() if keymap is None else keymap)
        self._styles_known: dict[tuple[str, bool, bool], Style] = {}
        self.theme_glyphs: Mapping[str, tuple[str, str]] = {}
        super().__init__(ansi_color=ansi_color)
        if context.options.ascii:
            self._filters.append(AsciiFilter())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return a colour for each variable of ours that the theme leaves out."""
        base = self.current_theme.to_color_system().generate()
        return {name: base[fallback] for name, fallback in LOOK_VARIABLES.items()}

    def mark_of(self, state: str | Look) -> str:
        """Return the glyph of a state's word, as the theme has it."""
        look = look_of(state) if isinstance(state, str) else state
        glyphs = self.theme_glyphs.get(look.kind, (look.glyph, look.plain_glyph))
        return glyphs[1 if self.context.options.ascii else 0]

    def style_of(self, variable: str, *, bold: bool = False, dim: bool = False) -> Style:
        """Return the present theme's style for one variable, for use in `rich.text.Text`."""
        key = (self.theme_variables.get(variable, ""), bold, dim)
        style = self._styles_known.get(key)
        if style is None:
            style = self._styles_known[key] = _make_style(*key)
        return style


def _default_keys() -> dict[str, tuple[str, ...]]:
    from tpudash.tui.actions import ACTIONS

    return {action.id: action.keys for action in ACTIONS}


def _make_style(value: str, bold: bool, dim: bool) -> Style:
    color = None
    if value:
        with contextlib.suppress(ColorParseError):
            color = Color.parse(value).rich_color
    return Style(color=color, bold=bold or None, dim=dim or None)


class Pane(Widget):
    """One of the five panes. It draws what the context says and does no I/O.

    A pane mounts with what `context.snapshot` holds at that moment and is then told what changed.
    While the display is paused the app calls none of `apply` and `tick`.
    """

    pane_id: ClassVar[PaneId]
    title: ClassVar[str]
    help_text: ClassVar[str] = ""
    """A few sentences for the help screen: what is shown, and the keys of this pane as `{id}`."""

    DEFAULT_CSS = """
    Pane { height: 1fr; width: 1fr; }
    """

    @property
    def host(self) -> HostApp:
        """The app, with its context."""
        return cast("HostApp", self.app)

    @property
    def context(self) -> ViewContext:
        """What may be read."""
        return self.host.context

    def apply(self, changes: ChangeSet) -> None:
        """Bring the pane up to date, touching only what `changes` names."""

    def selection_changed(self, subject: Subject | None) -> None:
        """Another run, node or request was selected in the nodes pane."""

    def tick(self, now: datetime) -> None:
        """Bring visible ages and dollars up to date; called at most once a second."""

    def filter(self, text: str) -> None:
        """Show only what matches; the empty text shows everything."""

    def empty_reason(self) -> str:
        """Say why the pane is empty and what to press; "" when it is not empty."""
        return ""

    def copy_text(self) -> str:
        """Return what `y` copies: the selected row, or what is visible."""
        return ""

    def perform(self, action_id: str) -> None:
        """Carry out an action of this pane's own scope in the registry (`tui/pane_actions.py`)."""

    def title_note(self) -> str:
        """Return a few characters beside the title, such as a count of failures, or ""."""
        return ""
