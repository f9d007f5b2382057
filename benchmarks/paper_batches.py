"""The largest batch that runs, by bisection over captured programs.

Under unified memory it is limited by the host: all that the program has allocated from the driver
at a time must fit there, since any of it may have to leave the card; or, where it can be counted on
that the card is full, by both together. Under tensor swapping it is limited by the card, too: what
one operator needs has to be there in one piece.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

from paper_cases import SWAPPING

from deepum.capture import cache
from deepum.capture.record import MULTIPROCESSORS
from deepum.simulate.batches import fits
from deepum.simulate.footprint import footprint
from deepum.simulate.policies import BY_NAME
from deepum.simulate.preset import preset_of
from deepum.workloads import parse

UNIFIED = "unified memory"  # whichever policy moves it
WITH_CARD = "unified memory, and the card's"
_STEPS = 3  # optimizer states come with the first, the most is there in the second
_SWAPPING_STEPS = 6  # fragments add up over steps
_MOST_CAPTURED = {"dlrm": 1 << 16}  # rows are drawn one by one


@dataclass(frozen=True)
class Question:
    """Of a workload under a policy with so much host memory (bytes). `machine`: that of policies
    which the card limits.
    """

    workload: str
    policy: str
    host_bytes: int
    machine: str


@dataclass(frozen=True)
class Answer:
    """`batch`: 0 where none runs. `exact`: that batch was captured and runs, and one more does not;
    else it is by the line through the largest that were captured. `bytes`: allocated from the
    driver at that batch.
    """

    batch: int
    exact: bool
    bytes: int


def _named(workload: str, batch: int) -> str:
    name, _, numbers = workload.partition(":")
    return f"{name}:{','.join([*filter(None, [numbers]), f'batch={batch}'])}"


def managed_bytes(workload: str, batch: int) -> int:
    """That the workload with that batch has allocated from the driver at most. Raises
    DeepumError.
    """
    return footprint(
        cache.captured(parse(_named(workload, batch)), _STEPS, False, MULTIPROCESSORS)
    ).managed


def last_that_fits(bytes_of: Callable[[int], int], limit: int, start: int, most: int) -> Answer:
    """The largest batch with no more than `limit` bytes, which rise with the batch, nearly along a
    line: the next one tried is where the line through the two that are nearest to the limit meets
    it, every fourth time the middle. Beyond `most` the line is the answer.
    """
    known: dict[int, int] = {}
    least, above = 0, 0  # the largest that fits, the smallest that does not (0: none known)
    guess = min(start, most - 1)
    for turn in itertools.count():
        known[guess] = bytes_of(guess)
        least, above = (guess, above) if known[guess] <= limit else (least, guess)
        if above == least + 1:
            return Answer(least, True, known.get(least, 0))
        near = sorted(known, key=lambda batch: abs(known[batch] - limit))[:2]
        slope, there = (known[near[0]] - known[near[-1]]) / ((near[0] - near[-1]) or 1), near[0]
        meets = there + math.floor((limit - known[there]) / slope) if slope > 0 else 2 * guess
        if least == most:
            return Answer(meets, False, round(known[there] + slope * (meets - there)))
        guess = (least + above) // 2 if turn % 4 == 3 and above else meets
        guess = max(least + 1, min(guess, above - 1 if above else most))
    raise AssertionError("there is always one more to try")


def last_that_runs(runs: Callable[[int], bool], start: int) -> Answer:
    """The same where it is only known whether a batch runs."""
    least, above = 0, 0
    guess = start
    while above != least + 1:
        least, above = (guess, above) if runs(guess) else (least, guess)
        guess = (least + above) // 2 if above else 2 * least
    return Answer(least, True, 0)


def _runs(question: Question, batch: int) -> bool:
    """Whether a program that swaps tensors does."""
    trace = cache.captured(
        parse(_named(question.workload, batch)), _SWAPPING_STEPS, False, MULTIPROCESSORS
    )
    return fits(
        trace,
        BY_NAME[question.policy],
        int(preset_of(question.machine).memory_bytes),
        question.host_bytes,
    )


def largest(question: Question) -> Answer:
    """Answers it. Raises DeepumError."""
    request = parse(question.workload)
    start = int(request.numbers["batch"])
    if question.policy in SWAPPING:
        return last_that_runs(lambda batch: _runs(question, batch), start)
    most = _MOST_CAPTURED.get(request.named.name, 1 << 20)
    card = int(preset_of(question.machine).memory_bytes) if question.policy == WITH_CARD else 0
    return last_that_fits(
        lambda batch: managed_bytes(question.workload, batch),
        question.host_bytes + card,
        start,
        most,
    )
