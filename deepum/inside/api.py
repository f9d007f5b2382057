"""The functions of `deepum.` for a program that runs under deepum (docs/python.md)."""

from __future__ import annotations

from typing import Any

from deepum.daemon.figures import SessionFigures
from deepum.daemon.steering import Changes
from deepum.errors import UsageError
from deepum.inside import hints, own_session
from deepum.inside.steps import StepFigures, Steps
from deepum.sizes import parse_size

_steps = Steps()


def stats() -> SessionFigures | None:
    """Figures of this program's session as of now (docs/watching.md has each of them); None before
    it uses a GPU. Takes about a millisecond, and waits for nothing. Raises DeepumError where the
    daemon cannot be asked.
    """
    return None if own_session.warn_if_absent("stats") else own_session.figures()


def budget(size: int | str | None) -> bool:
    """From now on managed memory may occupy so much of each GPU: bytes, or a size such as "8GiB";
    None: what it could when the program began. What is beyond leaves at once. Whether there is a
    session that takes it. Raises UsageError for a size that cannot be.
    """
    if isinstance(size, str):
        try:
            size = parse_size(size)
        except ValueError as error:
            raise UsageError(f"deepum.budget: {error}") from None
    elif size is not None and size <= 0:
        raise UsageError(f"deepum.budget: {size}: has to be more than 0 bytes; or None")
    changes = Changes(budget_bytes=size or 0)
    try:
        changes.check()
    except UsageError as error:
        raise UsageError(f"deepum.budget: {error}") from None
    return not own_session.warn_if_absent("budget") and own_session.change(changes)


def hint(tensor: Any, what: str) -> bool:
    """Advice about a PyTorch tensor on a GPU. "keep": it leaves the GPU behind all else, until it
    is freed; "cold": it leaves now, behind what was launched on the current stream, and comes back
    when it is needed, or is predicted to be; "none": it is as any other. Whether it was taken:
    memory that deepum does not manage cannot be advised. Numbers are the same whatever is hinted.
    Raises UsageError for another hint, and for a tensor that is on no GPU.
    """
    return not own_session.warn_if_absent("hint") and hints.give(tensor, what)


def step() -> StepFigures | None:
    """Ends a step of the program: figures since the one before, None at the first. Raises
    DeepumError where the daemon cannot be asked.
    """
    now = None if own_session.warn_if_absent("step") else own_session.figures()
    return None if now is None else _steps.end(now)
