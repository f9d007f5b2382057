"""The lower bound with recomputation: never above the best schedule of a small program, found by
trying all; at or below the bound of moving, and above the launches' own time where that says more.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from random import Random

from recomputing import training

from deepum.recomputation.reading import items
from deepum.simulate import bound
from deepum.simulate.bound import Link, Use, Work
from deepum.simulate.recomputed_bound import Stretch, between, stretches


@dataclass(frozen=True)
class Kernel:
    """On contents of one byte, each written once."""

    ns: int
    reads: str
    writes: str


@dataclass(frozen=True)
class State:
    """`engines`: until when launches, copies in and copies out take. `device`, `host`: since when a
    content is there; `used`: until when it is in use on the device; `places`: since when each free
    one is.
    """

    kernel: int
    engines: tuple[int, int, int]
    device: tuple[tuple[str, int], ...]
    host: tuple[tuple[str, int], ...]
    used: tuple[tuple[str, int], ...]
    places: tuple[int, ...]


def _set(pairs: tuple[tuple[str, int], ...], key: str, value: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted({**dict(pairs), key: value}.items()))


def _without(pairs: tuple[tuple[str, int], ...], key: str) -> tuple[tuple[str, int], ...]:
    return tuple(pair for pair in pairs if pair[0] != key)


def _run(state: State, kernel: Kernel, writes: str) -> State | None:
    """The launch as soon as it can be, if its inputs are there and there is room for its outputs."""
    device = dict(state.device)
    if not set(kernel.reads) <= set(device) or len(state.places) < len(writes):
        return None
    places = sorted(state.places)
    taken, places = places[: len(writes)], places[len(writes) :]
    start = max([state.engines[0], *taken, *(device[key] for key in kernel.reads)])
    end = start + kernel.ns
    made, used = state.device, state.used
    for key in writes:
        made = _set(made, key, end)
    for key in kernel.reads + writes:
        used = _set(used, key, max(end, dict(used).get(key, 0)))
    return State(state.kernel, (end, *state.engines[1:]), made, state.host, used, tuple(places))


def _moves(state: State, kernels: list[Kernel], copy: int, again: bool) -> list[State]:
    launches, into, out = state.engines
    device, host, used = dict(state.device), dict(state.host), dict(state.used)
    found = []
    after = _run(state, kernels[state.kernel], kernels[state.kernel].writes)
    if after is not None:
        found.append(State(after.kernel + 1, *list(after.__dict__.values())[1:]))
    for earlier in kernels[: state.kernel] if again else ():
        gone = "".join(key for key in earlier.writes if key not in device)
        if gone and (repeated := _run(state, earlier, gone)) is not None:
            found.append(repeated)
    for key, since in host.items():
        if key not in device and state.places:
            place, *rest = sorted(state.places)
            end = max(into, since, place) + copy
            found.append(
                State(
                    state.kernel,
                    (launches, end, out),
                    _set(state.device, key, end),
                    state.host,
                    _set(state.used, key, end),
                    tuple(rest),
                )
            )
    for key, since in device.items():
        if key not in host:
            end = max(out, since) + copy
            found.append(
                State(
                    state.kernel,
                    (launches, into, end),
                    state.device,
                    _set(state.host, key, end),
                    _set(state.used, key, max(end, used[key])),
                    state.places,
                )
            )
        free = tuple(sorted((*state.places, used[key])))
        found.append(
            State(
                state.kernel,
                state.engines,
                _without(state.device, key),
                state.host,
                _without(state.used, key),
                free,
            )
        )
    return found


def best_schedule(kernels: list[Kernel], memory: int, copy: int, again: bool) -> int:
    """ns from the start to the end of the last kernel; what no kernel writes is on the host."""
    made = {key for kernel in kernels for key in kernel.writes}
    given = sorted({key for kernel in kernels for key in kernel.reads} - made)
    start = State(0, (0, 0, 0), (), tuple((key, 0) for key in given), (), (0,) * memory)
    order = count()
    heap = [(0, 0, next(order), start)]
    known = {start}
    while heap:
        _, _, _, state = heapq.heappop(heap)
        if state.kernel == len(kernels):
            return max(state.engines)  # of all that is under way: nothing that is of use ends later
        for following in _moves(state, kernels, copy, again):
            if following not in known:
                known.add(following)
                heapq.heappush(
                    heap, (max(following.engines), -following.kernel, next(order), following)
                )
        assert len(known) < 200_000
    raise AssertionError("there is no schedule")


def limits(kernels: list[Kernel], memory: int, copy: int) -> tuple[float, float, int]:
    """With recomputation, of moving, and the launches' own time."""
    works = [
        Work(
            k.ns, tuple(Use(key, 1, key in k.reads, key in k.writes) for key in k.reads + k.writes)
        )
        for k in kernels
    ]
    maker = {key: kernel for kernel in kernels for key in kernel.writes}
    used: dict[str, int] = {}
    droppable = []
    for number, kernel in enumerate(kernels):
        for key in kernel.reads:
            if key in maker:
                ns = maker[key].ns / len(maker[key].writes)
                droppable.append(Stretch(used[key], number, 1, ns))
        used |= dict.fromkeys(kernel.reads + kernel.writes, number)
    link = Link(memory, 1 / copy, 1 / copy)
    gaps = range(len(kernels) + 1)
    found = between(works, link, 0, len(kernels), droppable, gaps)
    return found, bound.bound(works, link).ns, sum(kernel.ns for kernel in kernels)


def random_kernels(random: Random) -> list[Kernel]:
    """Forward and back: what is made is read at once, and once more later."""
    layers = random.randrange(2, 4)
    keys = "abcd"[: layers + 1]
    forward = [Kernel(random.choice((1, 1, 4, 9)), keys[at], keys[at + 1]) for at in range(layers)]
    forward[0] = Kernel(forward[0].ns, random.choice(("", "w")), keys[1])
    back = [Kernel(random.choice((1, 3)), key, "") for key in reversed(keys[1:])]
    return [*forward, *back]


def test_it_is_at_or_below_the_best_schedule() -> None:
    says_more = lower = 0
    for seed in range(20):
        random = Random(seed)
        kernels, copy = random_kernels(random), random.choice((2, 6, 12))
        for memory in (2, 3):
            found, moving, own = limits(kernels, memory, copy)
            assert found <= moving + 1e-9
            assert own <= found + 1e-9
            if memory == 3 and len(kernels) > 4:
                continue  # takes long
            assert found <= best_schedule(kernels, memory, copy, again=True) + 1e-9, seed
            says_more += found > own + 1e-9
            lower += found < moving - 1e-9
    assert says_more, "it says more than the launches' own time"
    assert lower, "recomputation may be faster than moving"


def test_what_is_dear_is_moved_and_what_is_cheap_is_not() -> None:
    for dear, copies in ((1000, True), (1, False)):
        kernels = [
            Kernel(dear, "", "a"),
            Kernel(dear, "", "b"),
            Kernel(1, "b", ""),
            Kernel(1, "a", ""),
        ]
        found, moving, own = limits(kernels, 1, 10)
        assert found >= own
        best = best_schedule(kernels, 1, 10, again=True)
        assert best == (best_schedule(kernels, 1, 10, again=False) if copies else own + 1)
        assert found <= best <= moving + dear


def test_stretches_of_a_program() -> None:
    """Products and activations of a step, each used twice; neither weights nor batches that nothing
    in the step makes again are among them.
    """
    made = training(2, 2, 8, 1000)
    of_first_step = 2 + 1 + 4 + 1 + 2  # in which weights are made
    found = [one for one in stretches(items(made.trace(), made.ns)) if one.first >= of_first_step]
    sizes = {one.bytes for one in found}
    assert sizes == {8 << 20}
    assert {50.0, 1000.0} <= {one.ns for one in found}
    assert all(one.first < one.last for one in found)
