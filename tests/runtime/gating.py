"""Launches that wait at gates, as the daemon's side and snippets make them."""

from __future__ import annotations

from collections.abc import Callable

from daemon_side import EXECUTE, HOLD, PREFETCH, Command, Event

Decide = Callable[[Event], list[Command]]


def held(after_own: bool = False, behind_others: bool = False) -> Decide:
    """Each launch is held for a prefetch of its own; `after_own`: which follows the launches before
    it; `behind_others`: it is said that the prefetch may follow launches of other streams.
    """
    made = {"id": 0, "launches": 0}

    def decide(event: Event) -> list[Command]:
        if event.kind != EXECUTE:
            return []
        made["launches"] += 1
        made["id"] += 2
        after = event.sequence - 1 if after_own and made["launches"] > 1 else 0
        move = Command(
            PREFETCH,
            first=made["launches"] % 16,
            after=after,
            id=made["id"] - 1,
            cause=event.sequence,
        )
        return [
            move,
            Command(
                HOLD,
                id=made["id"],
                after_move=made["id"] - 1,
                cause=event.sequence,
                count=0,
                advice=int(behind_others),
            ),
        ]

    return decide


def first(decide: Decide) -> Decide:
    """Of all launches, only the first causes commands."""
    launches: list[int] = []

    def once(event: Event) -> list[Command]:
        if event.kind != EXECUTE or launches:
            return []
        launches.append(event.sequence)
        return decide(event)

    return once


# The first launch begins it: gates are there from the second on.
BEGIN = (
    "enter(); allocate(64); execute(); began = wait_calls(lambda all: "
    "any(c.startswith('register') for c in all))\n"
    "while not call('waits_at_gates'): time.sleep(0.002)\n"
)


def waits(calls: list[str], word: str = "w0") -> list[int]:
    return [
        int(call.split()[-1])
        for call in calls
        if call.startswith("gate") and call.split()[2] == word
    ]
