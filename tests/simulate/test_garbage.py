"""Collections of Python's while programs are simulated."""

from __future__ import annotations

import gc

import pytest

from deepum.simulate.garbage import seldom_collected


def test_collections_are_as_before_behind_a_simulation() -> None:
    before = gc.get_threshold()
    with pytest.raises(ZeroDivisionError), seldom_collected():
        assert gc.get_threshold() > before
        _ = 1 / 0
    assert gc.get_threshold() == before
