"""Sessions as lines of text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sources import GIB, NOW, REAL, SIMULATED, later

from deepum.client.rates import Looks, rates
from deepum.client.table import duration, lines, row, short_program
from deepum.top import panel
from deepum.top.history import History, Seen


def seen(*sessions: object) -> list[Seen]:
    """Of two looks, a second apart."""
    history = History()
    history.take([SIMULATED, REAL])
    return history.take([later(SIMULATED), later(REAL)])


def test_rates_are_by_the_clock_that_moves_the_memory() -> None:
    virtual, real = rates(SIMULATED, later(SIMULATED)), rates(REAL, later(REAL))
    assert (virtual.clock, virtual.seconds, virtual.bytes_in) == ("virtual", 2.0, 4.5 * GIB)
    assert (real.clock, real.seconds, real.bytes_in) == ("real", 1.0, 9.0 * GIB)
    assert virtual.step_s == 2.0
    assert real.step_s is None and real.faults is None


def test_no_time_makes_no_rate() -> None:
    assert rates(REAL, REAL).bytes_in is None
    assert rates(None, REAL).bytes_in is None
    assert rates(None, SIMULATED).bytes_in == 400 * GIB / 80


def test_rates_of_a_window_hold_steps_that_take_longer_than_a_look() -> None:
    looks, session = Looks(window_s=8), SIMULATED
    looks.take([session])
    for number in range(6):  # a step every third second
        session = replace(
            session,
            at_s=session.at_s + 1,
            gpu_time_s=(session.gpu_time_s or 0) + 1,
            steps=session.steps + (number % 3 == 2),
        )
        found = looks.take([session])[1]
    assert found.steps == pytest.approx(2 / 6)


def test_a_session_that_is_gone_is_forgotten() -> None:
    looks = Looks()
    looks.take([SIMULATED, REAL])
    assert set(looks.take([REAL])) == {2}
    assert looks.take([replace(REAL, at_s=9e9), SIMULATED])[1].seconds == 80.0


@pytest.mark.parametrize("width", [80, 110, 160, 250])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    long = replace(SIMULATED, program="python train.py " + "--option value " * 40)
    history = History()
    sessions = history.take([long, replace(REAL, pid=4194304, began_at=0.0)])
    assert all(len(line) <= width for line in panel.page(sessions, width, NOW))


def test_a_wide_terminal_has_more_columns() -> None:
    narrow, wide = panel.columns(80), panel.columns(160)
    assert {each.title for each in narrow} < {each.title for each in wide}


def test_virtual_figures_are_marked_and_others_are_not() -> None:
    simulated, real = (
        "\n".join(panel.plain(line) for line in panel.detail(each, 100)) for each in seen()
    )
    assert (
        "4.5 GiB/s v" in simulated
        and "82.0 s v of the GPU, of which kernels compute 78%; v: virtual" in simulated
    )
    assert "9.0 GiB/s, " in real and "virtual" not in real
    assert "accuracy -, coverage -, predictions 100%; faults -" in real


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0.0, "····"), (0.5, "██··"), (1.0, "████"), (2.0, "████"), (-1.0, "····"), (0.3, "█▎··")],
)
def test_bars(share: float, drawn: str) -> None:
    assert panel.bar(share, 4) == drawn


def test_a_course_is_drawn_to_its_highest_value() -> None:
    assert panel.spark([0.0, 3.5, 7.0], 10) == "▁▅█"
    assert panel.spark([1.0, 0.0, 0.0], 2) == "▁▁"
    assert panel.spark([], 5) == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3900, "1 h 05 min"), (90000, "1 d 1 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("command_line", "text"),
    [
        ("/usr/bin/python3 /home/me/train.py --steps 3", "train.py --steps 3"),
        ("python -m train", "python -m train"),
        ("./a/sweep 3", "sweep 3"),
        ("?", "?"),
    ],
)
def test_names_of_programs(command_line: str, text: str) -> None:
    assert short_program(command_line) == text


def test_the_table_of_ps_has_its_columns_below_each_other() -> None:
    rows = [row(each.figures, each.rates, NOW) for each in seen()]
    head, first, second = lines(rows)
    at = head.index("PROGRAM")
    assert first[at:].startswith("/usr/bin/python3") and second[at:].startswith("./sweep")
