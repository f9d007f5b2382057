"""Programs of PyTorch's run as they are, and under budgets of deepum.remat."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
if not hasattr(torch.UntypedStorage, "_swap_data_ptr_"):
    pytest.skip(
        "needs a PyTorch that moves memory between storages (2.12 or later)",
        allow_module_level=True,
    )

import deepum  # noqa: E402

gc.collect()
gc.freeze()  # PyTorch's own objects: deepum.remat looks for tensors among all others

Program = Callable[[], Any]
TIGHT = (0.5, 0.65, 0.8, 0.9, 0.96)  # of what the program takes beyond what was there before


def bits(value: Any) -> Any:
    """Everything in a result, so that == compares it bit by bit."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            value = value.coalesce()
            return "sparse", bits(value.indices()), bits(value.values())
        dense = value.detach().resolve_conj().resolve_neg().contiguous()
        raw = dense.reshape(-1).view(torch.uint8) if dense.numel() else dense
        return str(value.dtype), tuple(value.shape), raw.numpy().tobytes()
    if isinstance(value, dict):
        return [(key, bits(one)) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [bits(one) for one in value]
    return value


@dataclass
class Comparison:
    """statistics: of the run under each budget in which the program had enough."""

    expected: Any
    statistics: list[Any] = field(default_factory=list)

    @property
    def recomputed(self) -> int:
        return sum(one.recomputed for one in self.statistics)


def run(program: Program, budget: int | None = None, **options: Any) -> tuple[Any, Any]:
    """What a program gives, with the state of the random numbers behind it; its statistics."""
    gc.collect()
    torch.manual_seed(7)
    statistics = None
    if budget is None:
        result = program()
    else:
        with deepum.remat(budget, device="cpu", **options) as session:
            result = program()
            statistics = session.statistics()
    return [bits(result), bits(torch.get_rng_state())], statistics


def in_use() -> int:
    """Bytes of tensors that there are now."""
    gc.collect()
    with deepum.remat(1 << 40, device="cpu") as session:
        return int(session.statistics().used_bytes)


def same(
    program: Program,
    fractions: Sequence[float] = TIGHT,
    expected: Any = None,
    recomputes: bool = True,
    **options: Any,
) -> Comparison:
    """Asserts that a program gives the same bits under the two tightest budgets that it runs in,
    and, unless it is one that is known not to, computes something again there.
    """
    options = {"smallest": 1, "verify": True} | options
    if expected is None:
        expected, _ = run(program)
    before = in_use()
    found, roomy = run(program, 1 << 40, **options)
    assert found == expected
    assert roomy.evictions == roomy.recomputed == 0
    beyond = roomy.peak_bytes - before
    comparison = Comparison(expected)
    for fraction in fractions:
        budget = in_use() + int(beyond * fraction)
        try:
            found, statistics = run(program, budget, **options)
        except torch.OutOfMemoryError as error:
            assert "deepum.remat: the budget of" in str(error)
            continue
        assert found == expected
        assert statistics.peak_bytes <= budget or statistics.late
        comparison.statistics.append(statistics)
        if len(comparison.statistics) == 2 and comparison.recomputed > 0:
            break
    assert comparison.recomputed > 0 or not recomputes
    return comparison
