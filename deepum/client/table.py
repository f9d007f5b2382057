"""What of a session's figures fits a line, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from deepum.client.rates import Rates
from deepum.daemon.figures import SessionFigures
from deepum.sizes import size

UNKNOWN = "-"
COLUMNS = (
    *("PID", "DEVICE", "POLICY", "UP", "STEPS", "STEP", "RESIDENT", "ALLOCATED", "DEAD"),
    *("IN", "OUT", "PROGRAM"),
)
_VIRTUAL = " v"  # behind figures by the clock of the simulated GPU
NOTE = "v: by the virtual clock of a simulated GPU"


def duration(seconds: float) -> str:
    """As people tell it: `42 s`, `7 min`, `3 h 05 min`, `2 d 4 h`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def step_time(rates: Rates) -> str:
    """Mean of a step, with `v` where the clock is virtual."""
    if rates.step_s is None:
        return UNKNOWN
    seconds = rates.step_s
    text = f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"
    return text + mark(rates)


def speed(per_second: float | None, rates: Rates) -> str:
    """Bytes a second, with `v` likewise."""
    return UNKNOWN if per_second is None else f"{size(per_second)}/s{mark(rates)}"


def mark(rates: Rates) -> str:
    """What stands behind a figure by the virtual clock."""
    return _VIRTUAL if rates.clock == "virtual" else ""


def short_program(command_line: str) -> str:
    """Without the interpreter and folders: `train.py --steps 9`."""
    words = command_line.split(" ")
    name = words[0].rpartition("/")[2]
    if name.startswith("python") and len(words) > 1 and not words[1].startswith("-"):
        words = words[1:]
        name = words[0].rpartition("/")[2]
    return " ".join([name, *words[1:]])


def percent(share: float | None) -> str:
    """A share, of 1."""
    return UNKNOWN if share is None else f"{share:.0%}"


def row(figures: SessionFigures, rates: Rates, now: float) -> tuple[str, ...]:
    """The cells of COLUMNS. now: seconds since the epoch."""
    return (
        str(figures.pid),
        figures.device,
        figures.policy,
        duration(max(0.0, now - figures.began_at)),
        str(figures.steps) if figures.steps else UNKNOWN,
        step_time(rates),
        size(figures.resident_bytes),
        size(figures.allocated_bytes),
        size(figures.dead_bytes),
        speed(rates.bytes_in, rates),
        speed(rates.bytes_out, rates),
        figures.program,
    )


def lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """The columns below each other; the program comes last and has the rest of the line."""
    table = [COLUMNS, *rows]
    widths = [max(len(cells[i]) for cells in table) for i in range(len(COLUMNS) - 1)]
    left = {0, 1, 2}
    return [
        "  ".join(
            [
                f"{cell:<{width}}" if i in left else f"{cell:>{width}}"
                for i, (cell, width) in enumerate(zip(cells, widths, strict=False))
            ]
            + [cells[-1]]
        ).rstrip()
        for cells in table
    ]


def document(
    sessions: Sequence[SessionFigures], rates: Mapping[int, Rates]
) -> list[dict[str, Any]]:
    """The same for programs: all figures, and `rates` of each."""
    return [{**asdict(each), "rates": asdict(rates[each.session])} for each in sessions]
