"""The error when a budget is too small: it says what cannot be evicted."""

from __future__ import annotations

from collections import Counter

import torch

from deepum.rematerialise.engine import BudgetError, Engine
from deepum.rematerialise.pytorch.memory import Homes
from deepum.sizes import size

_SHOWN = 4  # kinds of what is pinned


class RematOutOfMemoryError(torch.OutOfMemoryError):
    """The budget of deepum.remat is too small for what a program needs at one time. It is PyTorch's
    own error of that kind, so that programs which take a smaller batch then do so.
    """


def shortage(
    homes: Homes, engine: Engine, operator: str, error: BudgetError
) -> RematOutOfMemoryError:
    """The error of an operator for which bytes are missing."""
    pinned: Counter[str] = Counter()
    if error.in_use:
        pinned[f"in use by {operator}"] = error.in_use
    for home, _ in homes.living():
        content = home.content
        if content.is_resident and content.producer is None:
            pinned[content.why] += content.bytes
    missing = error.missing
    parts = ", ".join(f"{why} {size(count)}" for why, count in pinned.most_common(_SHOWN))
    return RematOutOfMemoryError(
        f"deepum.remat: the budget of {size(engine.budget)} is {size(missing)} too small for "
        f"{operator}; pinned: {parts or 'nothing'}; "
        f"give it {size(engine.budget + missing)} or more, or take a smaller batch"
    )
