"""The core finds the iteration of each named workload that repeats, within four of them, and of no
other.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from required import needed

torch = needed("torch")

from captured import SMALL  # noqa: E402

from deepum.capture.record import capture  # noqa: E402
from deepum.trace import Trace  # noqa: E402
from deepum.workloads import WORKLOADS, parse  # noqa: E402

DIFFER = ("experts", "lstm", "llama-long")
# Too few launches where they are small: these may be layers of something.
WHOLE = ("dlrm", "dlrm-dense", "vit-huge")


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))


def captured(name: str) -> Trace:
    return capture(parse(name if name in WHOLE else f"{name}:{SMALL[name]}"), steps=6).trace


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name not in DIFFER])
def test_it_is_found_within_four_iterations(name: str) -> None:
    from iterations import changes_of_period, ends_of_steps

    trace = captured(name)
    ends, (changes, iterations) = ends_of_steps(trace), changes_of_period(trace)
    assert len(ends) == 6
    assert [period for _, period in changes] == [ends[-1] - ends[-2]]
    assert changes[0][0] <= ends[3]
    assert 4 <= iterations <= 6  # the first step may be another


@pytest.mark.parametrize("name", DIFFER)
def test_none_is_found_where_steps_differ(name: str) -> None:
    from iterations import changes_of_period

    assert changes_of_period(captured(name)) == ([], 0)
