"""When operators declare what they only read, and that nothing of it stands in a program's way."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from checking import dispatch, memory, torch

from deepum.declarations.mode import DeclaringMode
from deepum.declarations.program import Declarations
from deepum.declarations.reads import only_read
from deepum.declarations.shim import Shim, find

pytestmark = pytest.mark.torch
nn: Any = torch.nn
depth: Callable[[], int] = torch._C._len_torch_dispatch_stack
ON_CPU = partial(only_read, device="cpu", least=1)


class FakeShim:
    """Notes what each thread declares, and whether anything was declared when operators were over.
    is_wanted: as the daemon says.
    """

    def __init__(self) -> None:
        self.is_wanted = True
        self.declared: list[tuple[int, list[tuple[int, int]]]] = []  # thread, ranges
        self.stands = threading.local()
        self.shim = Shim(self._declare, lambda: int(self.is_wanted))

    def _declare(self, address: int | None, count: int) -> None:
        flat = list((ctypes.c_uint64 * (2 * count)).from_address(address)) if address else []
        assert len(flat) == 2 * count
        self.stands.now = flat
        if flat:
            ranges = list(zip(flat[::2], flat[1::2], strict=True))
            self.declared.append((threading.get_ident(), ranges))

    @property
    def ranges(self) -> list[list[tuple[int, int]]]:
        return [ranges for _, ranges in self.declared]

    @property
    def is_clear(self) -> bool:
        return not getattr(self.stands, "now", [])


@pytest.fixture
def fake() -> FakeShim:
    return FakeShim()


@pytest.fixture
def declarations(fake: FakeShim, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(torch, "compile", torch.compile)
    made = Declarations(fake.shim, ON_CPU)
    made.install()
    yield made
    made.stay_out("the test is over")
    made._boundaries.remove()
    assert depth() == 0


def fail(error: Exception) -> None:
    raise AssertionError from error


def training() -> Callable[[], None]:
    """A step of one."""
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.ones(4, 8)).square().mean().backward()
        optimizer.step()

    return step


def test_an_operator_declares_what_it_only_reads_while_it_runs(fake: FakeShim) -> None:
    x, y = torch.ones(8), torch.ones(8)
    with DeclaringMode(fake.shim, fail, ON_CPU):
        x.add_(y)
        assert fake.is_clear
        with pytest.raises(RuntimeError):
            torch.mm(x, y)
        assert fake.is_clear
    x.add_(y)
    assert fake.ranges == [memory(y), memory(x, y)]
    assert fake.is_clear


def test_backward_passes_declare_as_well(fake: FakeShim) -> None:
    weight, x = torch.ones(8, 8, requires_grad=True), torch.ones(8, 8)
    with DeclaringMode(fake.shim, fail, ON_CPU):
        (x @ weight).sum().backward()
    assert [memory(x, weight), memory(x)] == [
        [one for one in ranges if one in memory(x, weight)]
        for ranges in fake.ranges
        if set(ranges) & set(memory(x, weight))
    ]


def test_composite_operators_of_inference_are_taken_apart(fake: FakeShim) -> None:
    x, mean = torch.randn(3, 4, 2), torch.zeros(4)
    with torch.inference_mode(), DeclaringMode(fake.shim, fail, ON_CPU):
        nn.functional.batch_norm(x, mean, torch.ones(4), training=True)
    assert mean.abs().max() > 0
    declared = {one for ranges in fake.ranges for one in ranges}
    assert declared.issuperset(memory(x)) and declared.isdisjoint(memory(mean))


def test_tensor_subclasses_come_as_what_they_are_made_of(fake: FakeShim) -> None:
    class Wrapper(torch.Tensor):  # type: ignore[misc]
        @staticmethod
        def __new__(cls, inner: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
            plain = [one.inner if isinstance(one, Wrapper) else one for one in args]
            return Wrapper(function(*plain, **(kwargs or {})))

    inner, other = torch.ones(8), torch.ones(8)
    with DeclaringMode(fake.shim, fail, ON_CPU):
        result = Wrapper(inner) * other
    assert isinstance(result, Wrapper) and torch.equal(result.inner, inner * other)
    assert fake.ranges[0] == memory(inner, other)


def test_higher_order_operators_pass_by(fake: FakeShim) -> None:
    x = torch.ones(8)
    with DeclaringMode(fake.shim, fail, ON_CPU):
        result = torch.ops.higher_order.out_dtype(
            torch.ops.aten.mm.default, torch.int32, *[torch.ones(8, 8, dtype=torch.int8)] * 2
        )
        x + x
    assert result.dtype == torch.int32 and fake.ranges[-1] == memory(x)


def test_they_declare_from_the_end_of_a_step_on_while_it_is_wanted(
    fake: FakeShim, declarations: Declarations
) -> None:
    step, counts = training(), []
    for wanted in (False, True, True, False, False, True):
        fake.is_wanted = wanted
        before = len(fake.declared)
        step()
        counts.append((len(fake.declared) > before, depth()))
    assert counts == [(False, 0), (False, 1), (True, 1), (True, 0), (False, 0), (False, 1)]
    assert fake.is_clear


class Other(dispatch.TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
        self.seen += 1
        return function(*args, **(kwargs or {}))


def test_a_mode_of_the_programs_around_steps_is_never_touched(
    fake: FakeShim, declarations: Declarations
) -> None:
    step, other = training(), Other()
    with other:
        step()
        step()
        assert depth() == 1
    assert depth() == 0 and other.seen and not fake.declared


def test_a_mode_of_the_programs_on_top_stays_and_ours_rests_below(
    fake: FakeShim, declarations: Declarations
) -> None:
    step, other = training(), Other()
    step()
    assert depth() == 1
    with other:
        fake.is_wanted = False
        step()
        assert depth() == 2
        count = len(fake.declared)
        step()
        assert len(fake.declared) == count
        fake.is_wanted = True
        step()
        step()
        assert len(fake.declared) > count
        fake.is_wanted = False
        step()
    assert depth() == 1
    step()
    assert depth() == 0


def test_each_thread_has_its_own(fake: FakeShim, declarations: Declarations) -> None:
    depths = []

    def train() -> None:
        step = training()
        step()
        step()
        depths.append(depth())

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert depths == [1] and depth() == 0
    assert {one for one, _ in fake.declared} == {thread.ident}


def test_with_the_compiler_they_stay_out_for_good(
    fake: FakeShim,
    declarations: Declarations,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEEPUM_LOG", "2")
    step = training()
    step()
    assert depth() == 1
    torch.compile(lambda x: x, backend="eager")
    assert depth() == 0
    count = len(fake.declared)
    step()
    torch.compile(lambda x: x, backend="eager")
    assert depth() == 0 and len(fake.declared) == count
    assert capsys.readouterr().err == (
        "deepum: operators do not declare what they only read: torch.compile is used\n"
    )


def test_an_error_is_one_warning_and_the_program_goes_on(
    fake: FakeShim,
    declarations: Declarations,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("no\nsuch thing")

    declarations._reads = broken
    step = training()
    step()
    step()
    step()
    assert depth() == 0
    assert capsys.readouterr().err == (
        "deepum: warning: operators do not declare what they only read: ValueError: no such thing\n"
    )


def test_a_shim_that_fails_ends_no_program(
    fake: FakeShim, declarations: Declarations, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> int:
        raise OSError("gone")

    declarations._shim = Shim(fake.shim.declare, broken)
    step = training()
    step()
    step()
    assert depth() == 0
    assert capsys.readouterr().err.count("\n") == 1


def test_a_forked_child_does_not_declare(fake: FakeShim, declarations: Declarations) -> None:
    code = f"""
import os, sys
sys.path[:0] = [{str(Path(__file__).parent)!r}]
from test_program import ON_CPU, FakeShim, Declarations, training, depth
fake = FakeShim()
Declarations(fake.shim, ON_CPU).install()
step = training()
step()
assert depth() == 1
child = os.fork()
if child == 0:
    step()
    os._exit(40 + depth())
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 40
assert depth() == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_without_the_shim_there_is_nothing_to_declare_to() -> None:
    assert find() is None
