"""The screen of `deepum top`, by its text."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sources import GIB, NOW, MadeUp
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

import deepum.cli.top as command
from deepum.daemon.steering import Changes
from deepum.errors import DeepumError
from deepum.top.app import TopApp

SNAPSHOTS = Path(__file__).parent / "snapshots"


def text(app: App[None]) -> str:
    """What the screen shows, without colours."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips).rstrip() + "\n"


def with_screen(
    source: MadeUp, size: tuple[int, int], do: Callable[[Pilot[None], TopApp], Awaitable[None]]
) -> None:
    """Runs the application; it looks once at its start, and when it is asked to."""

    async def run() -> None:
        app = TopApp(source, every_s=1000, clock=lambda: NOW)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await do(pilot, app)

    asyncio.run(run())


async def settle(pilot: Pilot[None]) -> None:
    """Until looks and changes have come back, and are drawn."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (160, 40)], ids=["80x24", "160x40"])
def test_what_it_shows(size: tuple[int, int]) -> None:
    async def do(pilot: Pilot[None], app: TopApp) -> None:
        for _ in range(5):
            app.sessions.look()
            await settle(pilot)
        kept = SNAPSHOTS / f"{size[0]}x{size[1]}.txt"
        assert text(app) == kept.read_text()

    with_screen(MadeUp(), size, do)


def test_help_is_kept() -> None:
    async def do(pilot: Pilot[None], app: TopApp) -> None:
        await pilot.press("question_mark")
        await settle(pilot)
        assert text(app) == (SNAPSHOTS / "help.txt").read_text()
        await pilot.press("question_mark")
        await settle(pilot)
        assert app.screen is app.sessions

    with_screen(MadeUp(), (80, 24), do)


def test_without_programs_it_says_how_to_start_one() -> None:
    async def do(pilot: Pilot[None], app: TopApp) -> None:
        assert "No program is served. Start one: deepum run -- python train.py" in text(app)
        assert "daemon 4711, up 10 min, 0 programs" in text(app)

    with_screen(MadeUp(()), (80, 24), do)


def test_without_a_daemon_it_goes_on_looking() -> None:
    source = MadeUp()
    source.running = False

    async def do(pilot: Pilot[None], app: TopApp) -> None:
        assert "no daemon runs" in text(app)
        source.running = True
        app.sessions.look()
        await settle(pilot)
        assert "train_gpt2" in text(app)

    with_screen(source, (80, 24), do)


def test_the_chosen_session_is_shown_and_stays_chosen() -> None:
    async def do(pilot: Pilot[None], app: TopApp) -> None:
        assert "program   101 /usr/bin/python3" in text(app)
        await pilot.press("down")
        await settle(pilot)
        assert "program   102 ./sweep" in text(app)
        await pilot.press("s", "s")  # by steps: it comes last, as before
        await settle(pilot)
        assert "program   102 ./sweep" in text(app)

    with_screen(MadeUp(), (80, 24), do)


def test_sorting() -> None:
    async def do(pilot: Pilot[None], app: TopApp) -> None:
        def order() -> list[str]:
            return [line.split()[0] for line in text(app).splitlines()[2:4]]

        assert order() == ["101", "102"] and "by pid" in text(app)
        await pilot.press("s")
        await settle(pilot)
        assert order() == ["102", "101"] and "by program" in text(app)
        await pilot.press(*"ss")
        await settle(pilot)
        assert order() == ["101", "102"] and "by step" in text(app)

    with_screen(MadeUp(), (80, 24), do)


@pytest.mark.parametrize(
    ("key", "answer", "changes"),
    [
        ("b", "8GiB", Changes(budget_bytes=8 * GIB)),
        ("b", " own ", Changes(budget_bytes=0)),
        ("d", "100", Changes(prefetch_degree=100)),
    ],
)
def test_settings_are_changed(key: str, answer: str, changes: Changes) -> None:
    source = MadeUp()

    async def do(pilot: Pilot[None], app: TopApp) -> None:
        await pilot.press("down", key)
        await settle(pilot)
        app.screen.query_one(Input).value = answer
        await pilot.press("enter")
        await settle(pilot)
        assert source.done == [(2, changes)]

    with_screen(source, (80, 24), do)


@pytest.mark.parametrize(
    ("key", "answer", "error"),
    [
        ("b", "much", "'much' is not a size"),
        ("b", "1GiB,2GiB", "budget_bytes: -1 is none"),
        ("d", "-3", "'-3' is out of range"),
    ],
)
def test_a_bad_answer_is_told_and_changes_nothing(key: str, answer: str, error: str) -> None:
    source = MadeUp()

    async def do(pilot: Pilot[None], app: TopApp) -> None:
        await pilot.press(key)
        await settle(pilot)
        app.screen.query_one(Input).value = answer
        await pilot.press("enter")
        await settle(pilot)
        assert source.done == []
        assert error in text(app)

    with_screen(source, (110, 24), do)


def test_the_policy_goes_off_and_on() -> None:
    source = MadeUp()

    async def do(pilot: Pilot[None], app: TopApp) -> None:
        await pilot.press("p")
        await settle(pilot)
        await pilot.press("down", "p")
        await settle(pilot)
        assert source.done == [(1, Changes(policy="on-demand")), (2, Changes(policy="correlation"))]

    with_screen(source, (80, 24), do)


@pytest.mark.parametrize(
    ("key", "answer", "done"),
    [
        ("x", "yes", [(1, "end")]),
        ("D", "yes", [(1, "detach")]),
        ("x", "y", []),
        ("x", "", []),
        ("x", None, []),
    ],
)
def test_a_program_is_stopped_once_that_is_confirmed(
    key: str, answer: str | None, done: list[object]
) -> None:
    source = MadeUp()

    async def do(pilot: Pilot[None], app: TopApp) -> None:
        await pilot.press(key)
        await settle(pilot)
        if answer is None:
            await pilot.press("escape")
        else:
            app.screen.query_one(Input).value = answer
            await pilot.press("enter")
        await settle(pilot)
        assert source.done == done

    with_screen(source, (80, 24), do)


def test_what_the_daemon_refuses_is_told() -> None:
    source = MadeUp()
    source.refuses = "policy: the session began with on-demand; start the program anew"

    async def do(pilot: Pilot[None], app: TopApp) -> None:
        await pilot.press("p")
        await settle(pilot)
        assert "the session began with" in text(app)

    with_screen(source, (120, 24), do)


def test_another_size_has_other_columns() -> None:
    async def do(pilot: Pilot[None], app: TopApp) -> None:
        assert "DEVICE" not in text(app)
        await pilot.resize_terminal(160, 40)
        await settle(pilot)
        assert "DEVICE" in text(app) and "QUEUE" in text(app)

    with_screen(MadeUp(), (80, 24), do)


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "deepum.top.app")
    monkeypatch.setitem(sys.modules, "textual", None)
    with pytest.raises(DeepumError) as refused:
        command._screen(1.0)
    assert refused.value.line == (
        "deepum: error: top: needs textual; install it with `pip install deepum[top]`, or use --once"
    )
