"""The core finds the iteration of each named workload that repeats, within four of them, and of no
other.
"""

from __future__ import annotations

import pytest
from required import needed

torch = needed("torch")

from captured import SMALL, launches  # noqa: E402

from deepum.capture.record import capture  # noqa: E402
from deepum.core import Core, CoreSettings, Execute, events  # noqa: E402
from deepum.trace import Trace, work  # noqa: E402
from deepum.workloads import WORKLOADS, parse  # noqa: E402

DIFFER = ("experts", "lstm", "llama-long")
# Too few launches where they are small: these may be layers of something.
WHOLE = ("dlrm", "dlrm-dense", "vit-huge")


def captured(name: str) -> Trace:
    return capture(parse(name if name in WHOLE else f"{name}:{SMALL[name]}"), steps=6).trace


def found(trace: Trace) -> tuple[list[tuple[int, int]], int]:
    """Launches after which another period was known, and the period; iterations in all."""
    core = Core(CoreSettings.default(policy=0))
    at, before, changes = 0, 0, []
    for event in events(trace.events):
        size = int.from_bytes(trace.events[at : at + 2], "little") * 8
        core.process(trace.events[at : at + size])
        at += size
        if isinstance(event, Execute):
            period = core.statistics().iteration_launches
            if period != before:
                changes.append((core.statistics().launches, period))
            before = period
    return changes, core.statistics().iterations


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name not in DIFFER])
def test_it_is_found_within_four_iterations(name: str) -> None:
    trace = captured(name)
    ends = [
        number
        for number, launch in enumerate(launches(trace), 1)
        if launch.work.flags & work.ENDS_STEP
    ]
    changes, iterations = found(trace)
    assert len(ends) == 6
    assert [period for _, period in changes] == [ends[-1] - ends[-2]]
    assert changes[0][0] <= ends[3]
    assert 4 <= iterations <= 6  # the first step may be another


@pytest.mark.parametrize("name", DIFFER)
def test_none_is_found_where_steps_differ(name: str) -> None:
    assert found(captured(name)) == ([], 0)
