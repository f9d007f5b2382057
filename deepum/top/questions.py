"""Windows over the screen: a question with a line for the answer, and the help."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

_HELP = """\
up, down  choose a session
s         sort by the next column
b         budget of the chosen session: GPU memory that its
          managed memory may occupy
d         degree: launches that prefetching may run ahead
p         policy: prefetching and pre-eviction off, or on again
x         stop: asks the program to end (SIGTERM)
D         detach: the program goes on as plain unified memory
?         this help
q         quit

MEMORY    resident, of what may be on the GPU
v         by the virtual clock of a simulated GPU
-         not known: no step was found, or nothing moved

On a real GPU the driver tells neither what is resident nor what
was moved: these are what deepum believes and has asked for."""


class Window(ModalScreen[str | None]):
    """What lies over the screen until Escape, or an answer."""

    DEFAULT_CSS = """
    Window { align: center middle; }
    Window > Vertical {
        width: 68; max-width: 100%; height: auto; max-height: 100%;
        border: round $primary; background: $surface; padding: 0 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave", show=False)]

    def action_leave(self) -> None:
        """Without an answer."""
        self.dismiss(None)


class Question(Window):
    """Its result is what was written, None where somebody left."""

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question, and the line."""
        with Vertical():
            yield Static(f"{self._question}; Escape leaves.", markup=False)
            yield Input()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The answer."""
        self.dismiss(event.value)


class Help(Window):
    """What the keys do; any of some leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,q,enter", "leave", "Leave", show=False)
    ]

    def compose(self) -> ComposeResult:
        """A page of text."""
        with Vertical():
            yield Static(_HELP, markup=False)
