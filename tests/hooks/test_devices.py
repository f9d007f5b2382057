"""A device comes into use with the first context, and is told of when the driver can tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_daemon import FakeDaemon
from running import Ran

Run = Callable[..., Ran]


@pytest.mark.parametrize("times", [1, 4])
def test_it_is_asked_again_while_its_context_is_not_initialised(
    run: Run, listener: FakeDaemon, times: int
) -> None:
    snippet = """
start(); a = alloc(4 * MiB); kernel = function("k:8")
for _ in range(8): launch(kernel, a)
"""
    done = run(snippet, FAKE_NOT_YET=str(times))
    assert done.code == 0, done.err
    kinds = [event.kind for event in listener.events()]
    assert kinds.count("device") == 1
    assert kinds[kinds.index("device") + 1] == "allocate"
    assert kinds[-1] == "execute"
