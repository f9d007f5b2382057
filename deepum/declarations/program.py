"""A program whose operators declare what they only read whenever the daemon wants to know, which is
asked at the end of each step of its training.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from deepum.declarations.messages import inform, warn
from deepum.declarations.mode import DeclaringMode
from deepum.declarations.reads import Reads, only_read
from deepum.declarations.shim import Shim
from deepum.pytorch import version
from deepum.pytorch.steps import Boundaries

_NEEDED = (
    (torch._C, "_data_address"),
    (torch._C, "_len_torch_dispatch_stack"),
    (torch._C, "_get_dispatch_stack_at"),
    (TorchDispatchMode, "supports_higher_order_operators"),
)


def check_version() -> None:
    """Raises UsageError where PyTorch lacks what it takes."""
    version.check(_NEEDED, "declarations need")


class Declarations:
    """Of this process: operators of a thread declare from the end of one of its steps on, until
    that of a later one.
    """

    def __init__(self, shim: Shim, reads: Reads = only_read) -> None:
        self._shim = shim
        self._reads = reads
        self._boundaries = Boundaries(self.end_step)
        self._mode_of = threading.local()
        self._is_out = False  # for good

    def install(self) -> None:
        """From the next end of a step on."""
        original = torch.compile

        @functools.wraps(original)
        def compile_without(*args: Any, **kwargs: Any) -> Any:
            self.stay_out("torch.compile is used")
            return original(*args, **kwargs)

        torch.compile = compile_without
        os.register_at_fork(after_in_child=self._leave_for_good)
        self._boundaries.install()

    def end_step(self) -> None:
        """A step of the program's training ended on this thread."""
        try:
            if not self._is_out and self._shim.wanted():
                self._enter()
            else:
                self._leave()
        except Exception as error:
            self._fail(error)

    def stay_out(self, why: str) -> None:
        """No operator declares anything from now on."""
        if self._is_out:
            return
        inform(why)
        self._leave_for_good()

    def _leave_for_good(self) -> None:
        self._is_out = True
        self._leave()

    def _enter(self) -> None:
        mode: DeclaringMode | None = getattr(self._mode_of, "mode", None)
        if mode is not None:
            mode.is_idle = False
        elif torch._C._len_torch_dispatch_stack() == 0:
            mode = DeclaringMode(self._shim, self._fail, self._reads)
            mode.__enter__()
            self._mode_of.mode = mode

    def _leave(self) -> None:
        """The program's own modes stay: below one of them ours lets operators pass by."""
        mode: DeclaringMode | None = getattr(self._mode_of, "mode", None)
        if mode is None:
            return
        mode.is_idle = True
        depth = torch._C._len_torch_dispatch_stack()
        if depth and torch._C._get_dispatch_stack_at(depth - 1) is mode:
            mode.__exit__(None, None, None)
            self._mode_of.mode = None

    def _fail(self, error: Exception) -> None:
        if not self._is_out:
            self._is_out = True
            warn(error)
