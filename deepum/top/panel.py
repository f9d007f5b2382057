"""Sessions as lines of text, in parts that have a role each: bars, courses, figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deepum.client.table import (
    UNKNOWN,
    duration,
    mark,
    percent,
    short_program,
    speed,
    step_time,
)
from deepum.sizes import size
from deepum.top.history import Seen

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_PROGRAM = "PROGRAM"
_MOST_NAME = 50  # characters of it in the table
_LABEL = 10  # characters of a line's name


@dataclass(frozen=True)
class Part:
    """A piece of a line. role: a name that a screen may give a colour."""

    text: str
    role: str = ""


Line = list[Part]


def plain(line: Line) -> str:
    """The line without its roles."""
    return "".join(part.text for part in line).rstrip()


def bar(share: float, width: int) -> str:
    """That share, 0 to 1, of a bar of so many characters."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    whole, rest = divmod(eighths, 8)
    return (_EIGHTHS[8] * whole + (_EIGHTHS[rest] if rest else "")).ljust(width, "·")[:width]


def spark(course: Sequence[float], width: int) -> str:
    """The latest values as heights, the highest of them full."""
    latest = list(course)[-width:]
    most = max(latest, default=0.0)
    if not most:
        return "▁" * len(latest)
    return "".join(_HEIGHTS[round(value / most * (len(_HEIGHTS) - 1))] for value in latest)


def _named(name: str, *parts: Part) -> Line:
    return [Part(f"{name:<{_LABEL}}", "name"), *parts]


def _bars(seen: Seen, width: int) -> list[Line]:
    figures = seen.figures
    whole = max(figures.capacity_bytes, figures.allocated_bytes, 1)
    lines = []
    for name, count, note in (
        ("resident", figures.resident_bytes, f" of {size(figures.capacity_bytes)} on the GPU"),
        ("allocated", figures.allocated_bytes, ""),
        ("dead", figures.dead_bytes, ""),
    ):
        room = max(8, min(60, width - _LABEL - 36))
        lines.append(
            _named(name, Part(bar(count / whole, room), name), Part(f" {size(count)}{note}"))
        )
    return lines


def _link(seen: Seen, width: int) -> list[Line]:
    room = max(8, min(60, width - _LABEL - 36))
    lines = []
    for name, course, now, total in (
        ("link in", seen.course.bytes_in, seen.rates.bytes_in, seen.figures.bytes_in),
        ("link out", seen.course.bytes_out, seen.rates.bytes_out, seen.figures.bytes_out),
    ):
        text = f" {speed(now, seen.rates):>13}, {size(total)} in all"
        lines.append(_named(name, Part(f"{spark(course, room):>{room}}", "link"), Part(text)))
    return lines


def _settings(seen: Seen) -> str:
    figures = seen.figures
    budget = size(figures.budget_bytes) if figures.budget_bytes is not None else "none"
    return f"{figures.policy}, degree {figures.prefetch_degree}, budget {budget}"


def _time(seconds: float | None, compute_s: float | None) -> str:
    if not seconds or compute_s is None:
        return "v: virtual"
    return (
        f"{seconds:.1f} s v of the GPU, of which kernels compute {percent(compute_s / seconds)}; "
        "v: virtual"
    )


def detail(seen: Seen, width: int) -> list[Line]:
    """Everything of one session, in lines of that width or less."""
    figures, of = seen.figures, seen.rates
    faults = UNKNOWN if of.faults is None else f"{of.faults:,.0f}/s{mark(of)}"
    lines = [
        _named("program", Part(f"{figures.pid} {figures.program}", "program")),
        _named("settings", Part(f"{figures.device}, {_settings(seen)}")),
        _named(
            "steps",
            Part(
                f"{figures.steps}, {step_time(of)} each, {figures.step_launches} launches; "
                f"{figures.launches:,} launches in all"
            ),
        ),
        *_bars(seen, width),
        *_link(seen, width),
        _named(
            "prefetch",
            Part(
                f"accuracy {percent(figures.prefetch_accuracy)}, coverage "
                f"{percent(figures.prefetch_coverage)}, predictions "
                f"{percent(figures.prediction_accuracy)}; faults {faults}"
            ),
        ),
        _named(
            "mover",
            Part(
                f"{figures.moves_untaken} untaken, {figures.moves_waiting} waiting, "
                f"{figures.moves_given:,} given; {figures.holds:,} launches held"
            ),
        ),
    ]
    if figures.virtual:
        lines.append(_named("time", Part(_time(figures.gpu_time_s, figures.compute_s), "virtual")))
    return [_cut(line, width) for line in lines]


def _cut(line: Line, width: int) -> Line:
    kept: Line = []
    for part in line:
        text = part.text[: max(0, width)]
        width -= len(part.text)
        kept.append(Part(text, part.role))
    return kept


def compact(count: float | None) -> str:
    """A number of bytes in five characters."""
    if count is None:
        return UNKNOWN
    for power, unit in ((3, "G"), (2, "M"), (1, "K")):
        if count >= 1024**power:
            value = count / 1024**power
            return f"{value:.1f}{unit}" if value < 100 else f"{value:.0f}{unit}"
    return f"{count:.0f}"


@dataclass(frozen=True)
class Column:
    """A column of the table: how wide, from which width of the terminal on, and what is in it."""

    title: str
    width: int
    cell: Callable[[Seen, float], str]
    key: Callable[[Seen], Any]
    least: int = 0
    left: bool = False


def _memory(seen: Seen, _now: float) -> str:
    figures = seen.figures
    return bar(figures.resident_bytes / max(1, figures.capacity_bytes), 10)


def _rate(value: float | None, seen: Seen) -> str:
    return UNKNOWN if value is None else compact(value) + mark(seen.rates)


COLUMNS: tuple[Column, ...] = (
    Column("PID", 7, lambda s, _: str(s.figures.pid), lambda s: s.figures.pid),
    Column(
        _PROGRAM,
        17,
        lambda s, _: short_program(s.figures.program),
        lambda s: short_program(s.figures.program),
        left=True,
    ),
    Column("DEVICE", 14, lambda s, _: s.figures.device, lambda s: s.figures.device, 110, left=True),
    Column("POLICY", 11, lambda s, _: s.figures.policy, lambda s: s.figures.policy, 130, left=True),
    Column(
        "UP",
        10,
        lambda s, now: duration(max(0.0, now - s.figures.began_at)),
        lambda s: -s.figures.began_at,
        150,
    ),
    Column("STEPS", 6, lambda s, _: str(s.figures.steps), lambda s: -s.figures.steps),
    Column("STEP", 10, lambda s, _: step_time(s.rates), lambda s: -(s.rates.step_s or 0.0)),
    Column("MEMORY", 10, _memory, lambda s: -s.figures.resident_bytes, left=True),
    Column(
        "ALLOC",
        6,
        lambda s, _: compact(s.figures.allocated_bytes),
        lambda s: -s.figures.allocated_bytes,
        110,
    ),
    Column("IN/S", 8, lambda s, _: _rate(s.rates.bytes_in, s), lambda s: -(s.rates.bytes_in or 0)),
    Column(
        "OUT/S", 8, lambda s, _: _rate(s.rates.bytes_out, s), lambda s: -(s.rates.bytes_out or 0)
    ),
    Column(
        "FAULTS/S",
        9,
        lambda s, _: UNKNOWN if s.rates.faults is None else f"{s.rates.faults:.0f}",
        lambda s: -(s.rates.faults or 0),
        130,
    ),
    Column(
        "QUEUE",
        5,
        lambda s, _: str(s.figures.moves_untaken + s.figures.moves_waiting),
        lambda s: -(s.figures.moves_untaken + s.figures.moves_waiting),
        150,
    ),
)
_BETWEEN = 2  # characters


def columns(width: int) -> list[Column]:
    """Those that a terminal of that width has room for; the program's name gets what is left."""
    shown = [column for column in COLUMNS if column.least <= width]
    left = width - sum(column.width + _BETWEEN for column in shown)
    return [
        replace(each, width=min(each.width + max(0, left), _MOST_NAME))
        if each.title == _PROGRAM
        else each
        for each in shown
    ]


def cells(seen: Seen, shown: Sequence[Column], now: float) -> list[str]:
    """A session's, each as wide as its column."""
    made = []
    for column in shown:
        text = column.cell(seen, now)
        text = text if len(text) <= column.width else text[: column.width - 1] + "…"
        made.append(f"{text:<{column.width}}" if column.left else f"{text:>{column.width}}")
    return made


def titles(shown: Sequence[Column]) -> list[str]:
    """Of the columns, likewise."""
    return [
        f"{each.title:<{each.width}}" if each.left else f"{each.title:>{each.width}}"
        for each in shown
    ]


def page(all_seen: Sequence[Seen], width: int, now: float) -> list[str]:
    """The table and each session's detail, as plain lines."""
    shown, gap = columns(width), " " * _BETWEEN
    lines = [gap.join(titles(shown)).rstrip()]
    lines += [gap.join(cells(seen, shown, now)).rstrip() for seen in all_seen]
    for seen in all_seen:
        lines += ["", *(plain(line) for line in detail(seen, width))]
    return lines
