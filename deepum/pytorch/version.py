"""Whether a version of PyTorch has what something is built on that its documentation leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from deepum.errors import UsageError


def check(needed: Iterable[tuple[Any, str]], what: str) -> None:
    """needed: owners and names of their attributes; what: needs them. Raises UsageError where
    PyTorch lacks one.
    """
    for owner, name in needed:
        if not hasattr(owner, name):
            raise UsageError(
                f"PyTorch {torch.__version__}: has no {name}, which {what}; install PyTorch 2.12 "
                "or later"
            )
