"""Where steps of a program's training end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
checkpoint: Any = pytest.importorskip("torch.utils.checkpoint").checkpoint
pytestmark = pytest.mark.torch


class Ends:
    """How many there were."""

    def __init__(self) -> None:
        from deepum.pytorch.steps import PASSES, Boundaries

        self.passes = PASSES
        self.count = 0
        self.boundaries = Boundaries(self.ended)
        self.weight = torch.ones(2, requires_grad=True)

    def ended(self) -> None:
        self.count += 1

    def go_back(self, times: int) -> int:
        """Steps that ended with so many backward passes."""
        before = self.count
        for _ in range(times):
            self.weight.square().sum().backward()
        return self.count - before


@pytest.fixture
def ends() -> Iterator[Ends]:
    originals = torch.autograd.backward, torch.autograd.grad
    made = Ends()
    made.boundaries.install()
    yield made
    made.boundaries.remove()
    assert (torch.autograd.backward, torch.autograd.grad) == originals
    assert made.go_back(2 * made.passes) == 0


def test_two_optimizers_that_take_turns_are_in_one_step(ends: Ends) -> None:
    one, other = (torch.optim.SGD([ends.weight], lr=0.1) for _ in range(2))
    for _ in range(4):
        ends.go_back(1)
        one.step()
        other.step()
    assert ends.count == 4


def test_gradients_that_are_added_up_end_no_step(ends: Ends) -> None:
    optimizer = torch.optim.SGD([ends.weight], lr=0.1)
    for _ in range(3):
        assert ends.go_back(ends.passes) == 0
        optimizer.step()
    assert ends.count == 3


def test_an_optimizer_of_its_own_that_derives_from_pytorchs_is_seen(ends: Ends) -> None:
    class Own(torch.optim.Optimizer):  # type: ignore[misc]
        def step(self, closure: Any = None) -> None:
            ends.weight.data -= 0.1 * ends.weight.grad

    optimizer = Own([ends.weight], {})
    ends.go_back(1)
    optimizer.step()
    assert ends.count == 1


def test_backward_passes_end_steps_where_there_is_no_optimizer(ends: Ends) -> None:
    assert ends.go_back(ends.passes) == 0
    assert ends.go_back(5) == 5
    torch.optim.SGD([ends.weight], lr=0.1).step()
    assert ends.go_back(5) == 0, "there is one after all"


def test_a_backward_pass_within_another_ends_none(ends: Ends) -> None:
    ends.go_back(ends.passes)
    found = checkpoint(lambda x: x * x, ends.weight, use_reentrant=True)
    found.sum().backward()
    assert ends.count == 1
    with pytest.raises(RuntimeError):
        torch.ones(2).sum().backward()
    assert ends.count == 1, "it came to nothing"


def test_so_do_gradients_that_a_program_asks_for(ends: Ends) -> None:
    def step() -> None:
        (gradient,) = torch.autograd.grad(ends.weight.square().sum(), [ends.weight])
        ends.weight = (ends.weight - 0.1 * gradient).detach().requires_grad_()

    for _ in range(ends.passes + 5):
        step()
    assert ends.count == 5
    torch.optim.SGD([ends.weight], lr=0.1).step()
    before = ends.count
    step()
    assert ends.count == before, "there is an optimizer after all"


@pytest.mark.parametrize("by_place", [True, False])
def test_a_gradient_that_goes_into_a_loss_ends_no_step(ends: Ends, by_place: bool) -> None:
    ends.go_back(ends.passes)
    before = ends.count
    loss = ends.weight.square().sum()
    if by_place:
        (gradient,) = torch.autograd.grad(loss, [ends.weight], None, True, True)
    else:
        (gradient,) = torch.autograd.grad(loss, [ends.weight], create_graph=True)
    assert ends.count == before
    gradient.square().sum().backward()
    assert ends.count == before + 1
