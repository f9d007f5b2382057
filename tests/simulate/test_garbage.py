"""Collections of Python's while programs are simulated."""

from __future__ import annotations

import gc

import pytest

from deepum.simulate.garbage import rare_collections


def test_collections_are_as_before_behind_a_simulation() -> None:
    before = gc.get_threshold()
    with pytest.raises(ZeroDivisionError), rare_collections():
        assert gc.get_threshold() > before
        _ = 1 / 0
    assert gc.get_threshold() == before
