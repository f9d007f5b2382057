"""What it costs the host that PyTorch's operators declare what they only read: microseconds an
operator, with and without.

On tiny tensors of the CPU, so that the operator itself takes hardly any time; all of them are
declared, whatever their size, and what is called in the shim's place does nothing. The least of
several rounds is told.

    python benchmarks/declared_reads.py
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from deepum.declarations.mode import DeclaringMode
from deepum.declarations.reads import only_read
from deepum.declarations.shim import Shim

_ROUNDS = 9
_CALLS = 3000


def shim() -> Shim:
    """Calls of the same kind, which do nothing."""
    libc: Any = ctypes.CDLL(None)
    declare = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)
    address = ctypes.cast(libc.labs, ctypes.c_void_p).value
    assert address is not None
    return Shim(declare(address), lambda: 1)


def microseconds(call: Callable[[], object], calls: int) -> float:
    """Of one call."""
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, time.perf_counter() - began)
    return best / calls * 1e6


def main() -> None:
    """Prints a row for each operator."""
    torch.set_num_threads(1)

    def fail(error: Exception) -> None:
        raise error

    x, y, out = (torch.ones(4, 4) for _ in range(3))
    many, others = ([torch.ones(4) for _ in range(100)] for _ in range(2))
    cases: list[tuple[str, Callable[[], object], int]] = [
        ("view, of which nothing is read", lambda: x.view(16), _CALLS),
        ("add, of two tensors", lambda: torch.add(x, y), _CALLS),
        ("addmm, of three", lambda: torch.addmm(x, y, out), _CALLS),
        ("add in place", lambda: x.add_(y), _CALLS),
        ("foreach add in place, of 100 and 100", lambda: torch._foreach_add_(many, others), 300),
    ]
    declaring = DeclaringMode(shim(), fail, partial(only_read, device="cpu", least=1))
    print(f"{'us an operator':36}  without    with   more")
    with torch.no_grad():
        for name, call, calls in cases:
            call()
            without = microseconds(call, calls)
            with declaring:
                call()
                while_declaring = microseconds(call, calls)
            more = while_declaring - without
            print(f"{name:36}  {without:7.2f} {while_declaring:7.2f} {more:6.2f}")


if __name__ == "__main__":
    main()
