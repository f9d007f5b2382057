"""The engine of rematerialisation over recorded programs: whatever it evicts, launches read the
same content, and what is resident stays within its budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from recomputing import (
    MIB,
    Followed,
    Keeping,
    Made,
    Soft,
    at_random,
    joined_up,
    random_program,
    training,
)

from deepum.core import Block, Execute, events
from deepum.recomputation.account import disagreement
from deepum.recomputation.contents import Item
from deepum.recomputation.reading import items
from deepum.recomputation.within import (
    FragmentationError,
    OutOfMemoryError,
    Within,
    within_card,
)
from deepum.rematerialise.engine import Engine
from deepum.rematerialise.heuristics import HEURISTICS, PricedPath, named
from deepum.rematerialise.soft import SoftEngine
from deepum.simulate.policies import BY_NAME
from deepum.simulate.policy_run import DoesNotFitError, run
from deepum.simulate.workload import Workload
from deepum.trace import Trace


def within(trace: Trace, ns: dict[int, int], budget: int, heuristic: str) -> tuple[Trace, Within]:
    """The program within a hard budget."""
    program = Within(budget, named(heuristic))
    return joined_up(program.run(items(trace, ns))), program


def launches(trace: Trace) -> int:
    return sum(isinstance(event, Execute) for event in events(trace.events))


def test_without_evictions_it_is_the_same_to_the_byte() -> None:
    for made in (training(), random_program(1), random_program(2)):
        found = Followed(made, lambda backend: SoftEngine(0, backend))
        assert found.trace.events == found.original.events
        assert found.trace.work == found.original.work


@pytest.mark.parametrize("kind", [Soft, Keeping])
@pytest.mark.parametrize("part", [0.1, 0.5, 1.0])
def test_whatever_is_evicted_launches_read_the_same(kind: type[Engine], part: float) -> None:
    again = banished = 0
    for seed in range(12):
        found = Followed(random_program(seed), at_random(seed, part, kind))
        assert disagreement(found.original, found.trace) is None, seed
        assert launches(found.trace) == launches(found.original) + found.backend.launches
        assert found.engine.used == found.resident_bytes
        again += found.backend.launches
        banished += found.engine.counters.banished
    assert again > 100
    assert banished > 0 or kind is Keeping


@pytest.mark.parametrize("heuristic", [one.name for one in HEURISTICS])
def test_a_hard_budget_is_kept_by_each_heuristic(heuristic: str) -> None:
    made = training(12)
    original = made.trace()
    peak = within(original, made.ns, 1 << 60, "lru")[1].counters.peak_bytes
    budget = int(0.6 * peak)
    trace, program = within(original, made.ns, budget, heuristic)
    assert 0.5 * peak < program.counters.peak_bytes <= budget
    assert program.counters.recomputations > 0
    assert disagreement(original, trace) is None


def test_two_runs_are_alike() -> None:
    made = training(12)
    trace = made.trace()
    first, second = (within(trace, made.ns, 100 * MIB, "dtr-eq")[0] for _ in range(2))
    assert (first.events, first.work) == (second.events, second.work)


def evicting(made: Made, name: str) -> None:
    """Memory is asked for, so that all that may be evicted is."""
    made.new(name, 1)
    made.run("other work", writes=name)


def test_what_cannot_be_computed_again_is_never_evicted() -> None:
    """Content from the host, what two things are changed in place for, and what outlives a step."""
    made = Made()
    for name in "habcw":
        made.new(name)
    made.program.writer.copy(1, made.access("h", 0), made.blocks["h"].range, to_device=True)
    made.run("w", writes="w", ns=7)
    made.run("a and b", writes="ab", ns=70)
    made.run("both", reads="h", changes="ab", ns=700)
    made.run("c", reads="hab", writes="c", ns=7000)
    evicting(made, "d")
    made.run("use", reads="habcw")
    made.end_step()
    evicting(made, "e")
    made.run("use", reads="habcw")
    made.end_step()
    found = Followed(made, at_random(1, 1.0))
    assert disagreement(found.original, found.trace) is None
    assert found.engine.counters.recomputed_ns == 7007, "w and c, within their first step"


def test_what_the_program_lets_go_of_stays_while_something_needs_it() -> None:
    """Content from the host that is given back before what was computed of it is used again: what
    needs it is kept, or it is.
    """
    for kind, again in ((Keeping, 7), (Soft, 0)):
        made = Made()
        made.new("h", 2)
        made.new("a", 8)
        made.program.writer.copy(1, made.access("h", 0), made.blocks["h"].range, to_device=True)
        made.run("a", reads="h", writes="a", ns=7)
        made.free("h")
        evicting(made, "b")
        made.run("use", reads="a")
        made.end_step()
        found = Followed(made, at_random(1, 1.0, kind))
        assert disagreement(found.original, found.trace) is None
        assert found.engine.counters.recomputed_ns == again


def test_what_would_become_dear_comes_back_before_that() -> None:
    """What was cheap to compute again as long as what it is computed from was there."""
    made = Made()
    made.new("w", 4)
    made.run("weights", writes="w")
    made.end_step()
    made.new("x", 4)
    made.run("dear", reads="w", writes="x", ns=1000 * MIB)
    made.new("a", 8)
    made.run("cheap", reads="x", writes="a", ns=MIB)
    evicting(made, "b")
    made.free("x")
    made.run("use", reads="a")
    made.end_step()
    found = Followed(made, lambda backend: SoftEngine(0, backend, price=1.0))
    assert disagreement(found.original, found.trace) is None
    assert found.engine.counters.evictions >= 1
    assert found.engine.counters.recomputed_ns == MIB


def test_the_policy_fits_the_card_or_says_where_it_does_not() -> None:
    made = Workload("made", training(12, 8, 8).trace(), "v100-16gb")
    fits = run(made, "v100-16gb", BY_NAME["dtr"], 120 * MIB)
    assert fits.counters["bytes_h2d"] == fits.counters["bytes_d2h"] == 0
    with pytest.raises(DoesNotFitError, match=r"out of memory in step 1: \d+ bytes too few"):
        run(made, "v100-16gb", BY_NAME["dtr"], 30 * MIB)


def test_gaps_between_blocks_count_where_nothing_is_moved() -> None:
    """Halves of segments are given back; a larger block that comes then does not fit their gaps."""
    made = Made()
    made.new("x", 2)
    made.run("input", writes="x")
    for name in "abcdefghij":
        made.new(name, 8)
        made.run(f"make {name}", reads="x", writes=name)
    for name in "bdfhj":
        made.free(name)
    made.new("y", 40)
    made.run("make y", reads="x", writes="y")
    made.run("use", reads="acegi")
    made.end_step()
    trace, card = made.trace(), 100 * MIB

    def program() -> Iterator[Item]:
        return items(trace, made.ns)

    def most(chunks: Iterable[tuple[bytes, bytes]]) -> int:
        made = events(b"".join(body for body, _ in chunks))
        return max(one.reserved_bytes for one in made if isinstance(one, Block))

    heuristic = PricedPath()
    assert most(Within(card * 31 // 32, heuristic).run(program())) > card
    with pytest.raises(FragmentationError, match=r"in step 1: PyTorch's allocator has no room for"):
        list(Within(card * 31 // 32, heuristic, card=card).run(program()))
    assert most(within_card(card, heuristic, program)) <= card
    with pytest.raises(OutOfMemoryError):
        within_card(50 * MIB, heuristic, program)


def test_a_program_that_hardly_gets_on_is_given_up() -> None:
    made = training(12, 3, 8, 10**9)
    with pytest.raises(OutOfMemoryError, match="computes more than 0 times"):
        for _ in Within(100 * MIB, named("dtr-eq"), most_times=0).run(items(made.trace(), made.ns)):
            pass
