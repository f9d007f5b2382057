"""benchmarks/parameters.py: every parameter of the core has a meaning and a row, and a change of
one changes what is simulated.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

from deepum.core import Core, CoreSettings, default_parameters


@pytest.fixture
def parameters(benchmarks: Path) -> ModuleType:
    assert (benchmarks / "parameters.py").is_file()
    return importlib.import_module("parameters")


def test_the_header_names_what_the_core_has(parameters: ModuleType) -> None:
    found = parameters.parameters()
    assert [one.name for one in found] == list(default_parameters())
    assert all(one.meaning and one.classes for one in found)


def test_the_page_is_that_of_what_is_kept(parameters: ModuleType) -> None:
    assert parameters.PAGE.read_text() == parameters.page(json.loads(parameters.FILE.read_text()))


def test_variants_are_smaller_and_larger_and_never_nothing(parameters: ModuleType) -> None:
    assert parameters.variants(["planner.least_idle"], 4) == [
        "planner.least_idle=1",
        "planner.least_idle=8",
    ]
    assert parameters.variants(["planner.least_idle", "invalidation.longest_pause"], 2) == [
        "planner.least_idle=1",
        "planner.least_idle=4",
        f"invalidation.longest_pause={1 << 19}",
    ]
    assert {name.partition(".")[0] for name in parameters.variants(["window", "order"], 4)} == {
        "window",
        "order",
    }
    assert parameters.variants(["nothing"], 4) == []


def test_a_parameter_changes_what_is_simulated(parameters: ModuleType) -> None:
    times = parameters.simulate(parameters.Point("dlrm", "v100-16gb", ("", "host.proven_sparse=1")))
    kept = json.loads(parameters.FILE.read_text())["ms"]["dlrm"]
    assert times == {variant: kept[variant] for variant in times}
    assert times["host.proven_sparse=1"] > 1.1 * times[""]


@pytest.mark.parametrize(
    "parameter",
    [
        ("planner.least_idle", 0),
        ("planner.least_idle", (1 << 20) + 1),
        ("planner.nothing", 1),
        ("nothing", 1),
    ],
)
def test_what_is_out_of_range_or_no_parameter_is_refused(parameter: tuple[str, int]) -> None:
    with pytest.raises(ValueError, match=r"refuses its settings|has no parameter"):
        Core(CoreSettings.default(parameters=[parameter]))
