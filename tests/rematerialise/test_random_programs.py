"""Random programs of PyTorch's operators, plain and under tight budgets: everything that they
compute is equal bit by bit.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from comparing import bits, in_use
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

import deepum
from deepum.rematerialise.heuristics import BY_NAME

torch: Any = pytest.importorskip("torch")
functional: Any = torch.nn.functional
pytestmark = pytest.mark.torch

_SIDE = 64  # of the square matrices that programs compute with
_BYTES = _SIDE * _SIDE * 4


def _views(t: Any, draw: random.Random) -> Any:
    views: list[Callable[[], Any]] = [
        lambda: t.t(),
        lambda: t.view(-1).view(_SIDE, _SIDE),
        lambda: t[:, :1].expand(_SIDE, _SIDE),
        lambda: t[draw.randrange(_SIDE)].expand(_SIDE, _SIDE),
        lambda: t.unsqueeze(0).squeeze(0),
        lambda: t.flip(0),
        lambda: t.detach() * 1.0 + t,
    ]
    return draw.choice(views)()


def _two(function: Callable[[Any, Any], Any]) -> Callable[[list[Any], random.Random], Any]:
    return lambda held, draw: function(draw.choice(held), draw.choice(held))


def _one(function: Callable[[Any], Any]) -> Callable[[list[Any], random.Random], Any]:
    return lambda held, draw: function(draw.choice(held))


def _in_place(function: Callable[[Any, Any], Any]) -> Callable[[list[Any], random.Random], Any]:
    """Of a fresh tensor or a view of one, which nobody has saved."""

    def run(held: list[Any], draw: random.Random) -> Any:
        fresh = draw.choice(held) * 0.5
        function(draw.choice([fresh, fresh[:3], fresh.t()[1:2]]), draw)
        return fresh

    return run


def _convolution(held: list[Any], draw: random.Random) -> Any:
    image = draw.choice(held).reshape(1, 4, 32, 32)
    kernel = draw.choice(held).reshape(-1)[: 4 * 4 * 9].reshape(4, 4, 3, 3)
    return functional.conv2d(image, kernel, padding=1).reshape(_SIDE, _SIDE)


def _by_value(held: list[Any], draw: random.Random) -> Any:
    one = draw.choice(held)
    return one + 1 if one.detach().sum().item() > 0 else one.sin()


def _parts(held: list[Any], draw: random.Random) -> Any:
    parts = list(draw.choice(held).chunk(4))
    draw.shuffle(parts)
    return torch.cat(parts)


OPERATORS: tuple[Callable[[list[Any], random.Random], Any], ...] = (
    _two(lambda a, b: a + b),
    _two(lambda a, b: a * b),
    _two(lambda a, b: (a @ b) / _SIDE),
    _two(lambda a, b: torch.where(a > b, a, b * 0.5)),
    _two(lambda a, b: a.clone().copy_(b.t())),
    _one(torch.tanh),
    _one(functional.gelu),
    _one(functional.relu),
    _one(lambda a: functional.dropout(a, 0.3)),
    _one(lambda a: functional.layer_norm(a, (_SIDE,))),
    _one(lambda a: functional.softmax(a, 0)),
    _one(lambda a: a.cumsum(1) / _SIDE),
    _one(lambda a: a.masked_fill(a > 1, 0.1)),
    _one(lambda a: a.index_select(0, torch.randperm(_SIDE))),
    _one(lambda a: a.double().sin().float()),
    _one(lambda a: torch.view_as_complex(a.reshape(-1, 2)).conj().real.repeat(2).reshape(64, 64)),
    _one(lambda a: a.sort(0).values),
    _one(lambda a: a + torch.randn_like(a)),
    _one(lambda a: a.clamp(-2, 2)),
    _in_place(lambda a, draw: a.add_(1.5)),
    _in_place(lambda a, draw: a.mul_(draw.random())),
    _in_place(lambda a, draw: a.zero_()),
    _in_place(lambda a, draw: a.relu_()),
    _in_place(lambda a, draw: a.normal_() if not a.requires_grad else a.sigmoid_()),
    lambda held, draw: _views(draw.choice(held), draw),
    _convolution,
    _by_value,
    _parts,
)


def program(numbers: list[int], steps: int) -> Callable[[], Any]:
    """numbers: the operators, in order. Leaves are trained for so many steps."""

    def run() -> Any:
        draw = random.Random(len(numbers) + sum(numbers))
        torch.manual_seed(3)
        leaves = [torch.nn.Parameter(torch.randn(_SIDE, _SIDE)) for _ in range(2)]
        kept: list[Any] = []
        for _ in range(steps):
            held = [*leaves, torch.randn(_SIDE, _SIDE)]
            for number in numbers:
                held.append(OPERATORS[number](held, draw))
                if len(held) > 6 and draw.random() < 0.4:
                    held.pop(draw.randrange(len(held)))
            loss = sum(one.square().mean() for one in [*held, *leaves])
            loss.backward()
            with torch.no_grad():
                for leaf in leaves:
                    leaf.sub_(0.01 * leaf.grad)
            kept += [bits(one) for one in held] + [bits(leaf.grad) for leaf in leaves]
            if draw.random() < 0.5:
                for leaf in leaves:
                    leaf.grad = None
        return [*kept, *(bits(leaf) for leaf in leaves), bits(torch.get_rng_state())]

    return run


@settings(
    max_examples=40,
    phases=[Phase.generate],
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.lists(st.integers(0, len(OPERATORS) - 1), min_size=4, max_size=24),
    st.integers(1, 3),
    st.integers(9, 22),
    st.sampled_from(sorted(BY_NAME)),
    st.booleans(),
)
def test_everything_is_equal_bit_by_bit(
    numbers: list[int], steps: int, matrices: int, heuristic: str, sampling: bool
) -> None:
    torch.set_num_threads(1)
    run = program(numbers, steps)
    try:
        expected = run()
    except RuntimeError:  # it changes in place what autograd has saved
        reject()
    # `bits` reads tensors past operators, which keeps them: the budget leaves room for that.
    for spare in (matrices, matrices * 2, matrices * 4):
        budget = (spare + len(numbers) * steps) * _BYTES
        try:
            with deepum.remat(
                budget, device="cpu", smallest=1, heuristic=heuristic, sampling=sampling
            ):
                found = run()
        except torch.OutOfMemoryError:
            continue
        assert found == expected


def test_the_programs_make_it_compute_again() -> None:
    torch.set_num_threads(1)
    run = program(list(range(len(OPERATORS))), 2)
    expected = run()
    recomputed = 0
    for matrices in (24, 32, 40, 56):
        try:
            # What was used longest ago, since measured times are others each time.
            with deepum.remat(
                in_use() + matrices * _BYTES,
                device="cpu",
                smallest=1,
                heuristic="lru",
                sampling=False,
            ) as remat:
                found = run()
        except torch.OutOfMemoryError:
            continue
        assert found == expected
        recomputed += remat.statistics().recomputed
    assert recomputed > 5
