"""The shortest program that still fails: programs before it are left out, then operations, in ever
smaller pieces (delta debugging).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from proof_batches import Batch
from proof_programs import Operation, Program
from proof_running import Runner

Item = TypeVar("Item")
SECONDS = 90.0  # that shrinking may take


def reduce(items: Sequence[Item], fails: Callable[[list[Item]], bool], until: float) -> list[Item]:
    """A shorter list that fails, found by leaving out pieces: halves first, single items last."""
    left = list(items)
    piece = max(1, len(left) // 2)
    while left and time.monotonic() < until:
        at, shorter = 0, False
        while at < len(left) and time.monotonic() < until:
            tried = left[:at] + left[at + piece :]
            if fails(tried):
                left, shorter = tried, True
            else:
                at += piece
        if piece == 1 and not shorter:
            break
        piece = max(1, piece // 2) if not shorter or piece > 1 else 1
    return left


def flat(operations: list[Operation]) -> list[Operation]:
    """Without parallel stretches: one operation after the other."""
    return [
        part
        for operation in operations
        for part in (operation.body if operation.verb == "parallel" else (operation,))
    ]


def shortest(
    runner: Runner, batch: Batch, programs: list[Program], failing: int
) -> list[Program] | None:
    """The failing program made short, behind those without which it does not fail. None: it did not
    fail again.
    """
    until = time.monotonic() + SECONDS
    times = 1 if batch.lock_step else 4

    def still(tried: list[Program]) -> bool:
        return bool(tried) and runner.fails(tried, batch, times) is not None

    last = programs[failing]
    before = programs[:failing]
    if still([last]):
        before = []
    elif still([*before, last]):
        before = reduce(before, lambda some: still([*some, last]), until)
    else:
        return None

    def with_operations(operations: list[Operation], of: Program) -> Program:
        return replace(of, operations=operations)

    def last_fails(operations: list[Operation]) -> bool:
        return still([*before, with_operations(operations, last)])

    if last_fails(flat(last.operations)):
        last = with_operations(flat(last.operations), last)
    last = with_operations(reduce(last.operations, last_fails, until), last)
    for i, program in enumerate(before):
        head, tail = before[:i], [*before[i + 1 :], last]

        def fails(some: list[Operation]) -> bool:
            return still([*head, with_operations(some, program), *tail])  # noqa: B023 - called here

        shorter = reduce(program.operations, fails, until)
        before[i] = with_operations(shorter, program)
    return [*before, last]


def describe(runner: Runner, batch: Batch, programs: list[Program], command: str) -> str:
    """What a person needs: the seed, the settings, the operations, where they differ."""
    path = runner.write(programs, "failing.txt")
    meant, ran = runner.meant(path, trace=True), runner.under_deepum(path, batch, trace=True)
    lines = [
        (
            f"programs of seed {', '.join(str(program.seed) for program in programs)}, batch "
            f"{batch}, once more by: {command}"
        )
    ]
    lines.append(
        f"settings: {batch.settings}, lock-step {batch.lock_step}, streams (device, kind) "
        f"{programs[-1].streams}"
    )
    for program in programs:
        lines += [f"  {operation}" for operation in program.operations] + ["  --"]
    lines += [
        f"what the executor does: {path}",
        *_differences(meant.messages, ran.messages),
        f"exit code {ran.code}",
    ]
    return "\n".join(lines)


def _differences(meant: str, ran: str) -> list[str]:
    """The first cells that are wrong, and all else that was said."""
    lines = [line for line in ran.splitlines() if not line.startswith("line ")]
    for ours, theirs in zip(
        meant.splitlines(),
        (line for line in ran.splitlines() if line.startswith("line ")),
        strict=False,
    ):
        wrong = [
            i
            for i, (a, b) in enumerate(zip(ours.split()[2:], theirs.split()[2:], strict=False))
            if a != b
        ]
        if wrong:
            poison = sum(word == "d5" * 8 for word in theirs.split())
            lines.append(
                f"{ours.split(':')[0]}: {len(wrong)} cells wrong, from cell {wrong[0]} on; "
                f"{poison} are poison (discarded memory)"
            )
    return lines[:12]
