"""Operators that are given functions, and what the compiler has to do with operators at all."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from comparing import same, torch

import deepum

ROOT = Path(__file__).resolve().parents[2]
operators: Any = pytest.importorskip("torch._higher_order_ops")
nn: Any = torch.nn


def trained(function: Callable[[Any], Any], shape: tuple[int, ...] = (6, 512)) -> Any:
    """A program: a step through a function, with layers and tensors that are kept around it."""

    def program() -> Any:
        before, after = nn.Linear(shape[-1], shape[-1]), nn.Linear(shape[-1], shape[-1])
        kept = [before(torch.randn(*shape)).tanh() for _ in range(6)]
        out = after(function(kept[2]).sin().exp())
        (out.square().mean() + sum(one.mean() for one in kept)).backward()
        return out.detach(), before.weight.grad, after.weight.grad

    return program


def _cond(given: Any) -> Any:
    return torch.cond(
        given.sum() > 0,
        lambda one: (one.sin() * 2).tanh(),
        lambda one: (one.cos() * 3).exp(),
        (given,),
    )


def _scan(given: Any) -> Any:
    def combine(carry: Any, one: Any) -> Any:
        made = (carry + one).tanh()
        return made, made * 2

    return operators.scan(combine, torch.zeros(given.shape[1]), given)[1]


def _map(given: Any) -> Any:
    other = torch.ones(given.shape[1])
    return operators.map(lambda one, other: (one * other).sin(), given, other)


def _wrap(given: Any) -> Any:
    return torch.ops.higher_order.wrap(lambda one: one.sin() * one.exp(), given)


def _tagged(given: Any) -> Any:
    checkpoint = torch.utils.checkpoint.checkpoint
    inner = nn.Sequential(nn.Tanh(), nn.GELU(), nn.Dropout(0.1))
    tagged = torch.ops.higher_order.tag_activation_checkpoint
    hidden = checkpoint(inner, given, use_reentrant=False)
    return tagged(torch.fx.symbolic_trace(inner), hidden, use_reentrant=False)


def _selective(given: Any) -> Any:
    from torch.utils import checkpoint

    def contexts() -> Any:
        return checkpoint.create_selective_checkpoint_contexts([torch.ops.aten.tanh.default])

    return checkpoint.checkpoint(
        lambda one: (one.tanh() * 3).sin(), given, use_reentrant=False, context_fn=contexts
    )


@pytest.mark.parametrize("function", [_cond, _scan, _map, _wrap, _tagged, _selective])
def test_with_gradients(function: Callable[[Any], Any]) -> None:
    same(trained(function), (0.6, 0.9))


def test_while_loop() -> None:
    def program() -> Any:
        kept = [torch.randn(64, 64).tanh() for _ in range(6)]
        count, out = operators.while_loop(
            lambda count, one: (count < 5) & (one.sum() > -1e9),
            lambda count, one: (count + 1, (one @ one).tanh()),
            (torch.tensor(0), kept[1]),
        )
        none = operators.while_loop(lambda one: one.sum() > 1e9, lambda one: (one.sin(),), (out,))
        return kept, count, out, none, sum(one.sum() for one in kept)

    same(program)


def test_associative_scan() -> None:
    def program() -> Any:
        kept = [torch.randn(64, 64).tanh() for _ in range(6)]
        made = operators.associative_scan(
            lambda one, two: one + two, kept[0], 0, combine_mode="generic"
        )
        return kept, made, sum(one.sum() for one in kept)

    same(program)


def test_flex_attention() -> None:
    from torch.nn.attention import flex_attention

    def program() -> Any:
        project = nn.Linear(16, 48)
        bias = torch.randn(2, 32)
        mask = flex_attention.create_block_mask(
            lambda _b, _h, query, key: query >= key, None, None, 32, 32, device="cpu"
        )
        with torch.no_grad():  # PyTorch has no gradient of it on a CPU
            kept = [project(torch.randn(4, 2, 32, 16)).tanh() for _ in range(4)]
            out = flex_attention.flex_attention(
                *kept[1].chunk(3, -1),
                score_mod=lambda score, _b, head, _q, key: score + bias[head, key],
                block_mask=mask,
            )
            return out, out.tanh().exp(), kept, sum(one.sum() for one in kept)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(program, (0.6, 0.9))


def test_what_an_operator_reads_past_its_functions_stays_till_it_is_over() -> None:
    """`scan` stacks what its function made, behind its last call."""

    def program() -> Any:
        kept = [torch.randn(16, 1024).tanh() for _ in range(8)]

        def combine(carry: Any, one: Any) -> Any:
            return carry + 1, (carry + one).sin() * 2

        with torch.no_grad():
            return kept, operators.scan(combine, torch.zeros(1024), kept[0])

    same(program, (0.5, 0.6, 0.7, 0.8, 0.9), heuristic="lru")


def test_an_operator_of_the_programs_own_gets_the_error_it_gets_without() -> None:
    class Own(torch._ops.HigherOrderOperator):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__("deepum_test_own")

        def __call__(self, function: Any, given: Any) -> Any:
            return super().__call__(function, given)

    own = Own()
    with pytest.raises(NotImplementedError, match="deepum_test_own"):
        own(torch.sin, torch.ones(3))
    with (
        deepum.remat("1GiB", device="cpu"),
        pytest.raises(NotImplementedError, match="deepum_test_own"),
    ):
        own(torch.sin, torch.ones(3))


def test_nothing_is_said_of_compiling_that_the_program_did_not_ask_for() -> None:
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        with deepum.remat("1GiB", device="cpu"):
            _cond(torch.ones(4))
    assert not [one for one in records if "torch.compile has no effect" in str(one.message)]


def _python(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_the_compiler_is_not_imported_for_the_mode() -> None:
    program = """
import sys, torch, deepum
with deepum.remat("1GiB", device="cpu"):
    torch.ones(8, 8) @ torch.ones(8, 8)
print("torch._dynamo" in sys.modules)
"""
    assert _python(program).split() == ["False"]


def test_the_compiler_takes_no_frame_of_the_mode() -> None:
    program = """
import torch, deepum
import torch._dynamo.utils
with deepum.remat("1GiB", device="cpu"):
    for inline in (False, True):
        with torch._dynamo.config.patch(inline_torch_dispatch_torch_compile=inline):
            torch.compile(lambda one: one.sin() + inline, backend="eager")(torch.ones(8))
print(sum(torch._dynamo.utils.counters["frames"].values()))
"""
    assert _python(program).split() == ["0"]
