"""`deepum.remat(budget="auto")` on the CPU, with a card, a link and times of steps that are made up:
what it does to a program's numbers, and when it looks at its operators at all.
"""

from __future__ import annotations

import gc
import random
import types
from collections.abc import Callable, Iterator
from typing import Any

import comparing  # skips without a PyTorch that can
import pytest

import deepum
from deepum.errors import UsageError
from deepum.rematerialise.choice import FIRST, Step

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn
pytestmark = pytest.mark.torch

_STEPS = 60  # in which all is tried that is to be


class Card:
    """bytes: of the card. peak: bytes that the program is said to take. ns: of a step, in order."""

    def __init__(self, size: int, peak: int, ns: Iterator[float]) -> None:
        self.bytes, self.peak, self.ns = size, peak, ns
        self.allocated = 0
        self.measured = 0

    def link_ns(self, _device: Any) -> float:
        self.measured += 1
        return 1e9  # whatever is computed again is cheaper

    def read(self, what: str) -> int:
        self.allocated += 1000
        return self.allocated if what == "allocated" else self.peak


class _Timer:
    def __init__(self, card: Card) -> None:
        self._card = card

    def is_captured(self) -> bool:
        return False

    def end(self, step: Step) -> None:
        step.ns = next(self._card.ns)

    def collect(self) -> None:
        pass

    def wait(self, step: Step) -> None:
        raise AssertionError("all times are known at once")


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[Card], None]:
    """From now on "auto" finds this card."""

    def use(card: Card) -> None:
        from deepum.rematerialise.pytorch import automatic, limits

        monkeypatch.setattr(automatic, "check_unified", lambda device: None)
        monkeypatch.setattr(automatic, "memory_bytes", lambda device: card.bytes)
        monkeypatch.setattr(automatic, "link_ns", card.link_ns)
        monkeypatch.setattr(automatic, "Timer", lambda device: _Timer(card))
        monkeypatch.setattr(automatic.Automatic, "_read", lambda self, what: card.read(what))
        monkeypatch.setattr(limits, "LEAST_BYTES", 1)

    return use


def random_times(seed: int) -> Iterator[float]:
    """Settings are tried and given up at random."""
    drawn = random.Random(seed)
    while True:
        yield drawn.uniform(50.0, 150.0)


def train(steps: int) -> Any:
    """A training with all that is hard: dropout, batch norm, changes in place, momentum, an average
    of parameters, tensors that outlive steps, memory that is read past operators.
    """
    torch.set_num_threads(1)
    model = nn.Sequential(
        *(
            nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(inplace=True))
            for _ in range(4)
        ),
        nn.Dropout(0.2),
        nn.Linear(64, 8),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    average = [one.detach().clone() for one in model.parameters()]
    state = torch.zeros(64, 64)
    array = torch.randn(64, 64)
    shared = array.numpy()
    held: list[Any] = []
    found = []
    for number in range(steps):
        x = torch.randn(64, 64) + state
        held.append(state * 3 + array)
        loss = model(x).square().mean() + held[number // 2].mean() * 1e-3
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        state.mul_(0.5).add_(x, alpha=0.1)
        shared[number % 64] += 1.0
        with torch.no_grad():
            for mean, one in zip(average, model.parameters(), strict=True):
                mean.mul_(0.9).add_(one, alpha=0.1)
        found.append(loss.detach())
        if number % 7 == 0:
            with torch.no_grad():
                model.eval()
                found.append(model(held[number // 3]).sum())
                model.train()
    return [*found, *held, *average, model.state_dict(), state, array]


@pytest.mark.parametrize("seed", range(6))
def test_numbers_are_equal_bit_by_bit_whatever_is_tried(on: Any, seed: int) -> None:
    torch.manual_seed(7)
    expected = comparing.bits(train(_STEPS))
    gc.collect()
    on(Card(1 << 17, 1 << 30, random_times(seed)))
    torch.manual_seed(7)
    with deepum.remat("auto", device="cpu") as remat:
        result = train(_STEPS)
        statistics = remat.statistics()
    assert comparing.bits(result) == expected
    assert statistics.recomputed > 0 and statistics.evictions > 0
    assert statistics.choice is not None and len(statistics.choice.trials) > 2


def test_where_all_fits_operators_pass_by(on: Any) -> None:
    card = Card(1 << 30, 1 << 20, random_times(0))
    on(card)
    with deepum.remat("auto", device="cpu") as remat:
        train(_STEPS)
        statistics = remat.statistics()
        tracker = remat._tracker
        assert tracker is not None and tracker.is_idle
    assert statistics.operators == statistics.evictions == card.measured == 0
    assert statistics.choice is not None
    assert statistics.choice.outcome == "fits" and statistics.choice.steps == _STEPS - 1


def test_where_moving_alone_is_best_operators_pass_by_again(on: Any) -> None:
    times = iter([100.0] * (FIRST + 6) + [200.0] * 1000)
    card = Card(1 << 17, 1 << 30, times)
    on(card)
    with deepum.remat("auto", device="cpu") as remat:
        train(_STEPS)
        before = remat.statistics()
        train(5)
        after = remat.statistics()
        assert remat._tracker is not None and remat._tracker.is_idle
    assert before.choice is not None and before.choice.outcome == "move"
    assert before.operators == after.operators > 0
    assert card.measured == 1


def test_what_was_recorded_is_forgotten_before_it_can_become_wrong(on: Any) -> None:
    """x changes while nobody looks; y, which was computed from it before, must not be computed from
    it again.
    """
    on(Card(1 << 16, 0, random_times(0)))
    with deepum.remat("auto", device="cpu") as remat:
        tracker, automatic = remat._tracker, remat._automatic
        assert tracker is not None and automatic is not None
        x = torch.ones(1 << 12)
        tracker.resume([x])
        automatic.limit.set(1e9, 1 << 16)
        y = x + 1
        w = y * 2
        tracker.rest()
        x.fill_(5.0)
        y.mul_(3.0)
        tracker.resume([x, y, w])
        automatic.limit.set(1e9, 1 << 15)
        filling = [torch.ones(1 << 12) * number for number in range(20)]
        assert remat.statistics().evictions > 0
        assert y.eq(6.0).all() and w.eq(4.0).all() and filling[3].eq(3.0).all()


def test_memory_that_was_asked_for_while_operators_passed_by_is_others_to_change(on: Any) -> None:
    on(Card(1 << 16, 0, random_times(0)))
    with deepum.remat("auto", device="cpu") as remat:
        tracker, automatic = remat._tracker, remat._automatic
        assert tracker is not None and automatic is not None
        x = torch.ones(1 << 12)
        array = x.numpy()
        for _ in range(2):
            tracker.resume([x])
            tracker.rest()
        tracker.resume([x])
        automatic.limit.set(1e9, 1 << 16)
        y = x + 1
        array[:] = 7.0
        filling = [torch.ones(1 << 12) * number for number in range(20)]
        assert remat.statistics().evictions > 0
        assert y.eq(2.0).all() and filling[3].eq(3.0).all()


def test_nothing_is_left_of_what_was_recorded(on: Any) -> None:
    on(Card(1 << 20, 0, random_times(0)))
    with deepum.remat("auto", device="cpu") as remat:
        tracker, automatic = remat._tracker, remat._automatic
        assert tracker is not None and automatic is not None
        tracker.resume([])
        automatic.limit.set(1e9, 1 << 16)
        tensors = [torch.ones(1 << 12) * number for number in range(20)]
        assert tracker.engine.used > 0
        tracker.rest()
        assert tracker.engine.used == 0 and not len(tracker.engine._evictable)
        del tensors
        gc.collect()
        tracker.resume([])
        torch.ones(4) + 1
        assert 0 <= tracker.engine.used <= 64


@pytest.mark.parametrize("optimizers", [1, 2, 3])
def test_all_optimizers_of_a_step_are_in_it(on: Any, optimizers: int) -> None:
    on(Card(1 << 30, 1 << 20, random_times(0)))
    parts = [nn.Linear(4, 4) for _ in range(optimizers)]
    every = [torch.optim.SGD(one.parameters(), lr=0.1) for one in parts]
    with deepum.remat("auto", device="cpu") as remat:
        for _ in range(10):
            for part, optimizer in zip(parts, every, strict=True):
                part(torch.randn(2, 4)).sum().backward()
                optimizer.step()
        choice = remat.statistics().choice
    assert choice is not None and choice.steps == 9
    every[0].step()
    assert remat.statistics().choice == choice  # the block is over


def descend(steps: int) -> Any:
    """A training without an optimizer."""
    torch.set_num_threads(1)
    weights = [torch.randn(64, 64, requires_grad=True) for _ in range(6)]
    for _ in range(steps):
        x = torch.randn(64, 64)
        for weight in weights:
            x = (x @ weight).tanh()
        x.square().mean().backward()
        with torch.no_grad():
            for weight in weights:
                weight -= 0.1 * weight.grad
                weight.grad = None
    return weights


def test_a_program_that_updates_its_parameters_itself_is_tried_and_gets_the_same_numbers(
    on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deepum.pytorch import steps

    monkeypatch.setattr(steps, "PASSES", 4)
    torch.manual_seed(7)
    expected = comparing.bits(descend(_STEPS))
    on(Card(1 << 17, 1 << 30, random_times(3)))
    torch.manual_seed(7)
    with deepum.remat("auto", device="cpu") as remat:
        result = descend(_STEPS)
        statistics = remat.statistics()
    assert comparing.bits(result) == expected
    assert statistics.choice is not None and statistics.choice.steps == _STEPS - 5
    assert statistics.recomputed > 0


def test_it_is_refused_where_nothing_moves_memory() -> None:
    with pytest.raises(UsageError, match=r"'auto': is for a GPU, .* give a size, such as '8GiB'"):
        deepum.remat(budget="auto", device="cpu")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, 16 << 30),
        ({"DEEPUM_GPU_MEMORY": "4GiB"}, 4 << 30),
        ({"DEEPUM_GPU_MEMORY": "64GiB"}, 16 << 30),
        ({"DEEPUM_GPU_MEMORY": "8GiB,2GiB"}, 2 << 30),
        ({"DEEPUM_GPU_MEMORY": "8GiB,6GiB,4GiB"}, 6 << 30),
    ],
)
def test_the_card_is_as_large_as_the_session_may_use_of_it(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: int
) -> None:
    from deepum.rematerialise.pytorch.card import memory_bytes

    monkeypatch.delenv("DEEPUM_GPU_MEMORY", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    properties = types.SimpleNamespace(total_memory=16 << 30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    assert memory_bytes(torch.device("cuda", 1)) == expected


@pytest.mark.parametrize("given", [{"heuristic": "lru"}, {"smallest": 5}, {"sampling": False}])
def test_it_chooses_what_leaves_itself(on: Any, given: dict[str, Any]) -> None:
    on(Card(1 << 30, 0, random_times(0)))
    with pytest.raises(UsageError, match="leave out heuristic, smallest and sampling"):
        deepum.remat("auto", device="cpu", **given)
