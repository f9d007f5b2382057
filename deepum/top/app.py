"""The screen of `deepum top`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Static
from textual.worker import get_current_worker

from deepum.client.table import NOTE, duration
from deepum.configuration.settings import BY_NAME
from deepum.daemon.figures import DaemonFigures, SessionFigures
from deepum.daemon.steering import ON_DEMAND, Changes
from deepum.errors import DeepumError
from deepum.top import panel
from deepum.top.history import History, Seen
from deepum.top.questions import Help, Question
from deepum.top.source import Source

_STYLES = {
    "name": "dim",
    "program": "bold",
    "resident": "green",
    "allocated": "blue",
    "dead": "yellow",
    "link": "cyan",
    "virtual": "italic",
}
_ERROR_SECONDS = 8.0  # that an error stays on the screen
_WIDE = 110  # characters: there is room for notes
_NOBODY = "No program is served. Start one: deepum run -- python train.py"


class Sessions(Screen[None]):
    """All sessions in a table, the chosen one in detail below."""

    CSS = """
    #head { height: 1; background: $primary-background; padding: 0 1; }
    #sessions { height: auto; max-height: 45%; min-height: 3; }
    #detail { height: 1fr; padding: 1 1 0 1; }
    #said { height: auto; background: $warning-muted; color: $text-warning; padding: 0 1; }
    #said.nothing { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "Sort"),
        Binding("b", "budget", "Budget"),
        Binding("d", "degree", "Degree"),
        Binding("p", "policy", "Policy"),
        Binding("x", "stop", "Stop"),
        Binding("D", "detach", "Detach", show=False),
        Binding("question_mark", "help", "Help"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, source: Source, every_s: float, clock: Callable[[], float]) -> None:
        super().__init__()
        self._source, self._every_s, self._clock = source, every_s, clock
        self._history = History()
        self._seen: list[Seen] = []
        self._ordered: list[Seen] = []  # as the table has them
        self._daemon: DaemonFigures | None = None
        self._sorted_by = 0  # a column
        self._error_count = 0  # errors

    def compose(self) -> ComposeResult:
        """Head, table, detail, keys."""
        yield Static(id="head", markup=False)
        yield DataTable(id="sessions", cursor_type="row", zebra_stripes=True)
        with VerticalScroll(id="detail", can_focus=False):
            yield Static(id="lines", markup=False)
        yield Static(id="said", classes="nothing", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Looks from now on."""
        self.look()
        self.set_interval(self._every_s, self.look)

    def on_resize(self) -> None:
        """The table has other columns."""
        self._draw()

    def on_data_table_row_highlighted(self) -> None:
        """Another session was chosen."""
        self._draw_detail()

    # What is seen.

    @work(thread=True, exclusive=True, group="look")
    def look(self) -> None:
        """Asks the daemon, beside the screen's own thread."""
        try:
            daemon, sessions = self._source.look()
        except DeepumError as error:
            self._have(self._say, str(error))
        else:
            self._have(self._take, daemon, sessions)

    def _have(self, do: Callable[..., None], *arguments: Any) -> None:
        """In the screen's own thread, from another one; not once the screen is left."""
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(do, *arguments)

    def _take(self, daemon: DaemonFigures | None, sessions: Sequence[SessionFigures]) -> None:
        self._daemon = daemon
        self._seen = self._history.take(sessions)
        self._draw()

    def _say(self, text: str) -> None:
        notice = self.query_one("#said", Static)
        notice.update(text)
        notice.remove_class("nothing")
        self._error_count += 1
        self.set_timer(_ERROR_SECONDS, lambda number=self._error_count: self._forget(number))

    def _forget(self, number: int) -> None:
        if number == self._error_count:  # nothing else was told since
            self.query_one("#said", Static).add_class("nothing")

    # What is drawn.

    def _chosen(self) -> Seen | None:
        row = self.query_one(DataTable).cursor_row
        return self._ordered[row] if 0 <= row < len(self._ordered) else None

    def _draw(self) -> None:
        table, chosen = self.query_one(DataTable), self._chosen()
        shown, now = panel.columns(self.size.width), self._clock()
        self._sorted_by %= len(shown)
        self._ordered = sorted(self._seen, key=shown[self._sorted_by].key)
        table.clear(columns=True)
        for title in panel.titles(shown):
            table.add_column(title)
        for seen in self._ordered:
            table.add_row(*map(Text, panel.cells(seen, shown, now)))
        numbers = [seen.figures.session for seen in self._ordered]
        if chosen is not None and chosen.figures.session in numbers:
            table.move_cursor(row=numbers.index(chosen.figures.session))
        self._draw_head(shown[self._sorted_by].title)
        self._draw_detail()

    def _draw_head(self, order: str) -> None:
        if self._daemon is None:
            state = "no daemon runs"
        else:
            programs = f"{self._daemon.sessions} program{'s' * (self._daemon.sessions != 1)}"
            state = f"daemon {self._daemon.pid}, up {duration(self._daemon.uptime_s)}, {programs}"
        virtual = any(seen.figures.virtual for seen in self._seen)
        note = f" · {NOTE}" if virtual and self.size.width >= _WIDE else ""
        text = f"deepum top · {state} · by {order.lower()}{note}"
        self.query_one("#head", Static).update(text)

    def _draw_detail(self) -> None:
        chosen, text = self._chosen(), Text(no_wrap=True)
        if chosen is None:
            text.append(_NOBODY)
        else:
            for line in panel.detail(chosen, self.size.width - 2):
                for part in line:
                    text.append(part.text, _STYLES.get(part.role, ""))
                text.append("\n")
        self.query_one("#lines", Static).update(text)

    # Keys.

    def action_sort(self) -> None:
        """By the next column."""
        self._sorted_by += 1
        self._draw()

    def action_help(self) -> None:
        """Says what the keys do."""
        self.app.push_screen(Help())

    def action_budget(self) -> None:
        """Asks for a budget of the chosen session."""
        self._ask_for("Budget of each GPU (a size like 8GiB; own: as it began)", _budget)

    def action_degree(self) -> None:
        """Asks how far it may prefetch ahead."""
        self._ask_for("Launches that prefetching may run ahead (0: none)", _degree)

    def action_policy(self) -> None:
        """Stops its prefetching and pre-eviction, or lets it go on."""
        if (chosen := self._chosen()) is not None:
            figures = chosen.figures
            other = figures.own_policy if figures.policy == ON_DEMAND else ON_DEMAND
            self._change(figures.session, Changes(policy=other))

    def action_stop(self) -> None:
        """Asks its program to end, once that is confirmed."""
        self._confirm_end("asked to end (SIGTERM)", detach=False)

    def action_detach(self) -> None:
        """Ends its serving, likewise."""
        self._confirm_end("left alone: it goes on as plain unified memory", detach=True)

    def _ask_for(self, question: str, read: Callable[[str], Changes]) -> None:
        if (chosen := self._chosen()) is None:
            return
        session = chosen.figures.session

        def answered(text: str | None) -> None:
            if text:
                try:
                    changes = read(text.strip())
                    changes.check()
                except (DeepumError, ValueError) as error:
                    self._say(str(error))
                else:
                    self._change(session, changes)

        self.app.push_screen(Question(question), answered)

    def _confirm_end(self, what: str, *, detach: bool) -> None:
        if (chosen := self._chosen()) is None:
            return
        session = chosen.figures.session

        def answered(text: str | None) -> None:
            if text == "yes":
                self._end(session, detach)

        self.app.push_screen(Question(f"{chosen.figures.pid} is {what}. Write yes"), answered)

    @work(thread=True, group="change")
    def _change(self, session: int, changes: Changes) -> None:
        self._try(lambda: self._source.set(session, changes))

    @work(thread=True, group="change")
    def _end(self, session: int, detach: bool) -> None:
        self._try(lambda: self._source.end(session, detach))

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except DeepumError as error:
            self._have(self._say, str(error))
        self._have(self._look_again)

    def _look_again(self) -> None:
        self.look()


def _budget(text: str) -> Changes:
    """Raises UsageError."""
    if text == "own":
        return Changes(budget_bytes=0)
    value = BY_NAME["gpu_memory"].parse(text, "budget")
    return Changes(budget_bytes=value if isinstance(value, int) else -1)


def _degree(text: str) -> Changes:
    """Raises UsageError."""
    value = BY_NAME["prefetch_degree"].parse(text, "degree")
    return Changes(prefetch_degree=value if isinstance(value, int) else -1)


class TopApp(App[None]):
    """`deepum top` in a terminal."""

    TITLE = "deepum top"
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self, source: Source, every_s: float = 1.0, clock: Callable[[], float] = time.time
    ) -> None:
        """every_s: seconds between two looks. clock: seconds since the epoch."""
        super().__init__()
        self.sessions = Sessions(source, every_s, clock)

    def on_mount(self) -> None:
        """Shows them."""
        self.push_screen(self.sessions)
