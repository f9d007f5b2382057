"""Dead memory in a process of its own, and discards of it by the ordinal of the launch that causes
them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from daemon_side import DISCARD, EXECUTE, Command, Event, FakeDaemon, Session
from runtime_tools import Ran

Run = Callable[..., Ran]
DEAD = "enter(); call('discards'); allocate(64); block(64); unblock(64)\n"


def lock_step(
    run: Run, folder: Path, plan: dict[int, list[Command]], snippet: str, **settings: str
) -> tuple[list[str], Session]:
    """Commands by the ordinal of the launch that causes them; `after` -1 stands for that launch, -2
    for the one before.
    """
    launches: list[int] = []

    def decide(event: Event) -> list[Command]:
        if event.kind != EXECUTE:
            return []
        launches.append(event.sequence)
        commands = plan.get(len(launches) - 1, [])
        for command in commands:
            command.cause = event.sequence
            command.after = launches[command.after] if command.after < 0 else command.after
        return commands

    with FakeDaemon(folder, decide) as daemon:
        settings = {"DEEPUM_SYNC": "1"} | settings
        calls = run(f"{DEAD}{snippet}\ntell(calls=calls())", **settings).calls()
        return calls, daemon.finished()


def discard(blocks: int = 4, **changes: int) -> Command:
    return Command(DISCARD, count=blocks, **changes)
