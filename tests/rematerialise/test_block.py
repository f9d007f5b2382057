"""The block itself: arguments, errors, what goes on in it for long, and what it says."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import comparing  # skips without a PyTorch that can
import pytest

import deepum
from deepum.errors import UsageError

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn
pytestmark = pytest.mark.torch
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": "lots"}, "budget: 'lots' is not a size"),
        ({"budget": 0}, "budget 0: has to be more than 0 bytes"),
        ({"budget": "1GiB", "heuristic": "best"}, "heuristic 'best': is unknown; choose from"),
        ({"budget": "1GiB", "device": "meta"}, "device 'meta': only cpu and cuda are known"),
        ({"budget": "1GiB", "device": "gpu9"}, "device 'gpu9'"),
        ({"budget": "1GiB", "smallest": "x"}, "smallest: 'x' is not a size"),
    ],
)
def test_arguments_that_cannot_be_used(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        deepum.remat(**arguments)


def test_a_block_in_a_block_is_refused_and_the_outer_one_goes_on() -> None:
    with deepum.remat("1GiB", device="cpu") as outer:
        with pytest.raises(UsageError, match="is active already"), deepum.remat("1GiB"):
            pass
        torch.ones(4) + 1
        assert outer.statistics().operators >= 2
    with deepum.remat("1GiB", device="cpu"):
        pass


def test_a_budget_that_is_too_small_says_what_is_pinned_and_the_program_may_go_on() -> None:
    model = nn.Linear(512, 512)
    with deepum.remat(comparing.in_use() + (2 << 20), device="cpu") as remat:
        with pytest.raises(torch.OutOfMemoryError) as records:
            model(torch.randn(4096, 512))
        small = model(torch.randn(16, 512))
        assert small.shape == (16, 512) and remat.statistics().operators > 0
    text = str(records.value)
    assert "deepum.remat: the budget of" in text and "parameters " in text
    assert "or take a smaller batch" in text and "\n" not in text


def test_an_error_of_the_programs_own_leaves_all_in_order() -> None:
    with deepum.remat(comparing.in_use() + (2 << 20), device="cpu", smallest=1):
        tensors = [torch.ones(1 << 16) * number for number in range(20)]
        with pytest.raises(RuntimeError):
            tensors[0] @ tensors[1].view(4, -1)
        assert all(one[0].item() == number for number, one in enumerate(tensors))


def _steps(count: int, update: Any) -> tuple[int, int]:
    """Bytes and operations that are kept after so many steps of a model that is built in the block."""
    torch.manual_seed(0)
    with deepum.remat("1GiB", device="cpu", smallest=1) as remat:
        model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64))
        optimizer = torch.optim.AdamW(model.parameters())
        averages = [p.detach().clone() for p in model.parameters()]
        for _ in range(count):
            optimizer.zero_grad()
            model(torch.randn(32, 64)).square().mean().backward()
            optimizer.step()
            averages = update(averages, list(model.parameters()))
        gc.collect()
        torch.ones(1) + 1  # what died is noticed with the next operator
        from deepum.rematerialise.graph import Operation

        kept = sum(type(one) is Operation for one in gc.get_objects())
        return remat.statistics().used_bytes, kept


@pytest.mark.parametrize(
    "update",
    [
        lambda averages, parameters: [
            a * 0.9 + p.detach() * 0.1 for a, p in zip(averages, parameters, strict=True)
        ],
        lambda averages, parameters: [
            a.mul_(0.9).add_(p.detach(), alpha=0.1)
            for a, p in zip(averages, parameters, strict=True)
        ],
    ],
    ids=["out of place", "in place"],
)
def test_nothing_grows_with_the_steps(update: Any) -> None:
    few, many = _steps(20, update), _steps(120, update)
    assert many[0] <= few[0] * 1.05
    assert many[1] <= few[1] + 20


def test_compiling_has_no_effect_and_one_warning_says_so() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    compiled = torch.compile(model, backend="eager")
    x = torch.randn(4, 8)
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        with deepum.remat("1GiB", device="cpu"):
            for _ in range(3):
                assert torch.equal(compiled(x), model(x))
    assert [str(one.message) for one in records if "deepum.remat" in str(one.message)] == [
        "deepum.remat: torch.compile has no effect while it is active: functions run operator by "
        "operator, with the numbers of eager PyTorch"
    ]


FORK = """
import os
import torch
import deepum

torch.set_num_threads(1)  # OpenMP's threads do not come along
with deepum.remat("2MiB", device="cpu", smallest=1) as remat:
    tensors = [torch.ones(1 << 16) * number for number in range(20)]
    assert remat.statistics().evictions > 0
    child = os.fork()
    if child == 0:
        right = all(one.eq(number).all().item() for number, one in enumerate(tensors))
        os._exit(0 if right else 3)
    _, status = os.waitpid(child, 0)
    assert tensors[4][0].item() == 4
    print("child", os.waitstatus_to_exitcode(status))
"""


def test_a_forked_child_has_all_tensors() -> None:
    result = subprocess.run(
        [sys.executable, "-c", FORK],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.stdout.split() == ["child", "0"], result.stderr


class _Loud(torch.Tensor):  # type: ignore[misc]
    """A subclass that stands around another tensor."""

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        bare = [one.inner if isinstance(one, cls) else one for one in args]
        result = function(*bare, **(kwargs or {}))
        return cls(result) if isinstance(result, torch.Tensor) else result


def test_a_subclass_around_tensors_reads_what_was_evicted() -> None:
    with deepum.remat(comparing.in_use() + (2 << 20), device="cpu", smallest=1) as remat:
        tensors = [_Loud(torch.ones(1 << 16) * number) for number in range(20)]
        assert remat.statistics().evictions > 0
        assert all((one + 1).inner.eq(number + 1).all() for number, one in enumerate(tensors))


def test_what_ran_without_autocast_runs_again_without_it() -> None:
    torch.manual_seed(0)
    x = torch.randn(256, 256)
    expected = x @ x
    # The oldest leaves first, whatever computing it took.
    with deepum.remat(
        comparing.in_use() + (3 << 20), device="cpu", smallest=1, heuristic="lru"
    ) as remat:
        product = x @ x
        with torch.autocast("cpu", dtype=torch.bfloat16):
            filling = [torch.ones(1 << 16) * number for number in range(20)]
            before = remat.statistics().recomputed
            array = product.numpy()  # past operators, which all run without autocast down there
        assert remat.statistics().recomputed > before
        assert (array == expected.numpy()).all() and filling[3][0].item() == 3


def _leaf_steps(count: int) -> int:
    """Operations that are kept after so many steps of a leaf that is no module's parameter."""
    from deepum.rematerialise.graph import Operation

    with deepum.remat("1GiB", device="cpu", smallest=1):
        weight = torch.randn(64, 64, requires_grad=True)
        for _ in range(count):
            (torch.randn(32, 64) @ weight).square().mean().backward()
            with torch.no_grad():
                weight.sub_(0.1 * weight.grad)
            weight.grad = None
        gc.collect()
        torch.ones(1) + 1
        return sum(type(one) is Operation for one in gc.get_objects())


def test_nothing_grows_with_the_steps_of_a_leaf() -> None:
    assert _leaf_steps(100) <= _leaf_steps(10) + 10


def test_parameters_stay_whatever_was_written_to_them() -> None:
    with deepum.remat(comparing.in_use() + (2 << 20), device="cpu", smallest=1) as remat:
        model = nn.Linear(256, 256)
        nn.init.constant_(model.weight, 0.5)  # could be computed again for next to nothing
        tensors = [torch.ones(1 << 16) * number for number in range(20)]
        assert remat.statistics().evictions > 0
        tracker = remat._tracker
        assert tracker is not None
        assert not [
            home
            for home, _ in tracker.homes.living()
            if home.is_parameter and not home.content.is_resident
        ]
        assert tensors[3][0].item() == 3
    assert model.weight.eq(0.5).all()
