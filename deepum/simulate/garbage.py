"""Python's cyclic garbage collector while programs are simulated."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = (200_000, 20, 20)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collections come seldom. A simulation makes millions of objects that live for a while, few of
    them in cycles; to look through all of them takes a fifth of the time of policy `remat`.
    """
    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
