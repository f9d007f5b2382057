"""torch.compile beside rematerialisation: PyTorch compiles nothing while a dispatch mode is active,
and says so to nobody. Here it is said once.
"""

from __future__ import annotations

import functools
import sys
import warnings
from typing import Any

import torch

_MODULE = "torch._dynamo.convert_frame"
# Which of them PyTorch asks before it compiles a function depends on its settings.
_QUESTIONS = (
    "is_in_any_mode_without_ignore_compile_internals",
    "any_torch_dispatch_mode_on_stack",
)
# Operators that are given functions compile those for themselves; the program did not ask for it.
_THEIR_OWN = "torch._higher_order_ops.utils", "_hop_compile_tls"
_TEXT = (
    "deepum.remat: torch.compile has no effect while it is active: functions run operator by "
    "operator, with the numbers of eager PyTorch"
)


class CompilerNotice:
    """Warns when PyTorch is about to compile, and does not."""

    def __init__(self) -> None:
        self._warned = False
        self._compile: Any = None
        self._questions: dict[str, Any] = {}

    def install(self) -> None:
        """From now on."""
        self._compile = original = torch.compile

        @functools.wraps(original)
        def compile_and_watch(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._watch()  # the compiler has been imported now
            return result

        torch.compile = compile_and_watch
        self._watch()

    def remove(self) -> None:
        """As it was before."""
        torch.compile = self._compile
        module = sys.modules.get(_MODULE)
        for name, question in self._questions.items():
            setattr(module, name, question)
        self._questions.clear()

    def _watch(self) -> None:
        module = sys.modules.get(_MODULE)
        for name in _QUESTIONS:
            question = getattr(module, name, None)
            if question is not None and name not in self._questions:
                self._questions[name] = question
                setattr(module, name, self._wrapper(question))

    def _wrapper(self, question: Any) -> Any:
        @functools.wraps(question)
        def ask() -> Any:
            answer = question()
            if answer and _is_operators_own() and torch._C._len_torch_dispatch_stack() == 1:
                return False
            if answer and not self._warned:
                self._warned = True
                warnings.warn(_TEXT, stacklevel=2)
            return answer

        return ask


def _is_operators_own() -> bool:
    module, name = _THEIR_OWN
    here = getattr(sys.modules.get(module), name, None)
    return getattr(here, "in_hop_compile", False)
