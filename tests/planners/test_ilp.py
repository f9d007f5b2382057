"""The integer programs: their optimum is that of going through all states, transfers may span
operations where they may, and what is stopped early works.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from state_sequences import BEFORE, least_stall, random_pattern

from deepum.planners import Link
from deepum.planners.ilp.pattern import Access, Pattern, Stretch, Tensor
from deepum.planners.ilp.program import Solved
from deepum.planners.ilp.spans import Rules, SpansProgram
from deepum.planners.ilp.thesis import Form, State, ThesisProgram
from deepum.planners.linear_program import LinearProgram

READ, CHANGE, OVERWRITE = Access.READ, Access.CHANGE, Access.OVERWRITE
ONE = Link(memory_bytes=100, in_gbps=1.0, out_gbps=1.0)  # a byte takes a nanosecond each way
SEEDS = range(40)


def stall(program: ThesisProgram | SpansProgram) -> float:
    """The optimum, infinite where there is none."""
    solved = program.solve(60.0)
    if solved is None:
        return math.inf
    assert solved.optimal and solved.bound_ns <= solved.cost_ns + 1e-3
    return solved.stall_ns


@pytest.mark.parametrize("drops_dirty", [False, True])
@pytest.mark.parametrize("own_sums", [False, True])
def test_the_optimum_is_that_of_all_states(own_sums: bool, drops_dirty: bool) -> None:
    waiting = 0
    for seed in SEEDS:
        pattern = random_pattern(seed)
        least = least_stall(pattern, own_sums, drops_dirty)
        found = stall(ThesisProgram(pattern, Form(own_sums, True, drops_dirty)))
        assert found == pytest.approx(least, abs=1e-3), seed
        waiting += 0 < least < math.inf
    assert waiting >= 5  # where something is to be chosen


def test_without_versions_the_optimum_is_the_same() -> None:
    for seed, own in itertools.product(SEEDS, (True, False)):
        pattern = random_pattern(seed)
        plain = stall(ThesisProgram(pattern, Form(own_sums=own, versions=False)))
        assert plain == pytest.approx(stall(ThesisProgram(pattern, Form(own))), abs=1e-3)


def test_solved_states_follow_each_other_and_fit() -> None:
    checked = 0
    for seed in SEEDS:
        pattern = random_pattern(seed)
        program = ThesisProgram(pattern)
        solved = program.solve(60.0)
        if solved is None:
            continue
        checked += 1
        states = program.states(solved.values)
        for tensor, at in enumerate(states):
            for operation, state in enumerate(at):
                assert at[operation - 1].value in BEFORE[state.value]
                if operation in pattern.tensors[tensor].accesses:
                    assert state in (State.STAY_CLEAN, State.STAY_DIRTY)
        for operation in range(len(pattern)):
            held = sum(
                one.bytes
                for one, at in zip(pattern.tensors, states, strict=True)
                if at[operation] is not State.OUT
            )
            assert held <= pattern.link.memory_bytes
    assert checked > 10


def wrapping(first: int, second: int) -> Pattern:
    """Two tensors of 60 bytes in 100, each read by one operation of six."""
    tensors = (Tensor(60, {first: READ}), Tensor(60, {second: READ}))
    return Pattern((60.0,) * 6, tensors, ONE)


def test_the_pattern_wraps_round() -> None:
    # Each is away while the other is there, with the end of the pattern between them.
    solved = ThesisProgram(wrapping(0, 3)).solve(60.0)
    assert solved is not None and solved.stall_ns == pytest.approx(0.0, abs=1e-6)
    assert solved.evicted == ((True,), (True,))
    shifted = ThesisProgram(wrapping(5, 2)).solve(60.0)
    assert shifted is not None and shifted.stall_ns == pytest.approx(0.0, abs=1e-6)


def test_transfers_may_span_operations() -> None:
    # 60 bytes behind operations of 20 ns: within one there are 40 ns to wait for, each.
    pattern = Pattern((20.0,) * 10, wrapping(0, 5).tensors, ONE)
    assert stall(ThesisProgram(pattern)) == pytest.approx(80.0)
    assert stall(SpansProgram(pattern)) == pytest.approx(0.0, abs=1e-6)


def test_a_write_is_copied_before_the_tensor_leaves() -> None:
    tensors = (Tensor(60, {0: CHANGE}), Tensor(60, {4: READ}))
    # Operations 1 to 3: the copy, and then 60 bytes come; both may not be there at once.
    pattern = Pattern((0.0, 20.0, 20.0, 20.0, 0.0, 60.0, 60.0, 60.0), tensors, ONE)
    assert stall(SpansProgram(pattern)) == pytest.approx(120.0 - 60.0)
    clean = Pattern(pattern.durations_ns, (Tensor(60, {0: READ}), tensors[1]), ONE)
    assert stall(SpansProgram(clean)) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("program", [ThesisProgram, SpansProgram])
def test_two_writes_in_a_row_make_the_copy_unnecessary(
    program: type[ThesisProgram | SpansProgram],
) -> None:
    # The remark of chapter 7: what operation 6 overwrites may be dropped dirty behind operation 0.
    tensors = (Tensor(60, {0: OVERWRITE, 6: OVERWRITE}), Tensor(60, {3: READ}))
    pattern = Pattern((10.0,) * 10, tensors, ONE)
    if program is ThesisProgram:
        written = stall(ThesisProgram(pattern))
        dropped = stall(ThesisProgram(pattern, Form(drops_dirty=True)))
        # One copy out and two fetches; without it one fetch, that of the other tensor.
        assert written == pytest.approx(150.0) and dropped == pytest.approx(50.0)
    else:
        written = stall(SpansProgram(pattern))
        dropped = stall(SpansProgram(pattern, Rules(drops_dirty=True)))
        assert written > dropped + 30.0


def test_content_that_the_program_gave_up_has_no_memory() -> None:
    alive = Tensor(60, {0: OVERWRITE, 1: READ})
    dead = Tensor(60, {0: OVERWRITE, 1: READ}, {1: 2})
    other = Tensor(60, {3: READ})
    for program in (ThesisProgram, SpansProgram):
        assert stall(program(Pattern((5.0,) * 6, (dead, other), ONE))) > 0  # it is in the way at 0
        assert stall(program(Pattern((5.0,) * 6, (alive, other), ONE))) > stall(
            program(Pattern((5.0,) * 6, (dead, other), ONE))
        )


def test_spans_never_wait_longer_than_the_thesis_form() -> None:
    shorter = 0
    for seed in SEEDS:
        pattern = random_pattern(seed)
        least = least_stall(pattern, own_sums=True, drops_dirty=False)
        if least < math.inf:
            found = stall(SpansProgram(pattern))
            assert found <= least + 1e-3
            shorter += found < least - 1e-3
    assert shorter >= 3


def reference(pattern: Pattern, leaves: dict[Stretch, tuple[int, int] | None]) -> float:
    """With tensors that leave before an operation and have their room again before another, or
    stay: Hall's condition, operations of any arc of the circle take at least what has to move
    within it.
    """
    count = len(pattern)
    for operation in range(count):
        held = 0
        for tensor, one in enumerate(pattern.tensors):
            away = any(
                steps is not None
                and any((k - operation) % count == 0 for k in range(steps[0], steps[1]))
                for stretch, steps in leaves.items()
                if stretch.tensor == tensor
            )
            held += 0 if away else one.bytes
        if held > pattern.link.memory_bytes:
            return math.inf
    moves: tuple[list[tuple[int, int, float]], ...] = ([], [])  # first, last operation, ns
    copies: dict[tuple[int, int], tuple[int, int]] = {}
    for stretch, steps in leaves.items():
        if steps is None:
            continue
        if stretch.fetches:
            moves[0].append((steps[1], stretch.end - 1, pattern.in_ns(stretch.tensor)))
        if stretch.writer is not None:
            key = stretch.tensor, stretch.writer % count
            until = steps[0] - stretch.writer  # operations since the write, without the end
            earlier = copies.get(key, (0, until))[1]
            copies[key] = stretch.writer % count, min(until, earlier)
    for (tensor, writer), (_, until) in copies.items():
        if until < 2:
            return math.inf
        moves[1].append((writer + 1, writer + until - 1, pattern.out_ns(tensor)))
    program = LinearProgram()
    times = [program.column(1.0, least=duration) for duration in pattern.durations_ns]
    for way in moves:
        for first, length in itertools.product(range(count), range(1, count + 1)):
            within = sum(
                ns for begin, last, ns in way if (begin - first) % count + last - begin < length
            )
            arc = [times[(first + i) % count] for i in range(length)]
            program.row([(column, 1.0) for column in arc], least=within)
    solution = program.solve(10.0)
    assert solution is not None
    return solution.cost - pattern.compute_ns


def choices(stretch: Stretch) -> list[tuple[int, int] | None]:
    """Operations before which it leaves and has its room again; None: it stays."""
    last = stretch.end if not stretch.fetches else stretch.end - 1
    steps = itertools.combinations(range(stretch.start + 1, last + 1), 2)
    if not stretch.fetches:
        return [None, *((left, stretch.end) for left in range(stretch.start + 1, last))]
    return [None, *steps]


@pytest.mark.parametrize("seed", range(10))
def test_spans_find_the_best_of_all_steps(seed: int) -> None:
    pattern = random_pattern(seed + 100, operations=5, tensors=2)
    stretches = [one for number in range(2) for one in pattern.stretches(number)]
    best = min(
        reference(pattern, dict(zip(stretches, steps, strict=True)))
        for steps in itertools.product(*map(choices, stretches))
    )
    found = stall(SpansProgram(pattern))
    if math.isinf(best):
        assert math.isinf(found)
    else:
        assert found == pytest.approx(best, abs=0.05)


def test_a_solver_that_is_stopped_has_its_best_so_far() -> None:
    pattern = random_pattern(7, operations=12, tensors=8)
    program = ThesisProgram(pattern)
    seen: list[tuple[Solved | None, float]] = []

    def until_the_first(found: Solved | None, bound_ns: float) -> bool:
        seen.append((found, bound_ns))
        return found is None

    stopped = program.solve(60.0, on_progress=until_the_first)
    whole = ThesisProgram(pattern).solve(60.0)
    assert stopped is not None and whole is not None and seen
    assert stopped.stall_ns >= whole.stall_ns - 1e-3
    assert stopped.bound_ns <= whole.stall_ns + 1e-3
    states = program.states(stopped.values)
    assert all(
        at[operation - 1].value in BEFORE[at[operation].value]
        for at in states
        for operation in range(len(pattern))
    )
    assert "gap" in str(stopped) and "bound" in str(stopped)


def test_no_time_gives_no_solution_or_one_that_works() -> None:
    found = ThesisProgram(random_pattern(7, operations=12, tensors=8)).solve(0.0)
    assert found is None or np.isfinite(found.stall_ns)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ((Tensor(8, {9: READ}),), "an access of no operation"),
        ((Tensor(8, {}),), "or none"),
        ((Tensor(8, {0: READ}, {0: 1}),), "is used after its content ended"),
        ((Tensor(8, {0: OVERWRITE}, {0: 0}),), "is used after its content ended"),
    ],
)
def test_a_pattern_that_cannot_be_is_refused(tensors: tuple[Tensor, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Pattern((1.0, 1.0), tensors, ONE)
