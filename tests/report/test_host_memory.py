"""Simulations on a host that was too small for some policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deepum.errors import UsageError
from deepum.report import inputs
from deepum.report.page import figures


def document(fitting: dict[str, bool]) -> dict[str, Any]:
    """What `deepum simulate --json` writes of policies that fit, and of those that do not."""
    times = {
        "step_ms": 2.0,
        "steps_ms": [2.0],
        "of_unlimited": 0.5,
        "speed_up_over_on_demand": 1.0,
        "of_bound": None,
        "a_step": {},
    }
    none = {"does_not_fit": "100.0 MiB of host memory are too little"}
    policies = {name: times if fits else none for name, fits in fitting.items()}
    return {
        "version": 1,
        "workload": "w",
        "machine": "m",
        "memory_bytes": 1,
        "policies": policies,
        "bound_ms": None,
        "moving_bound_ms": None,
    }


def test_what_does_not_fit_is_told_without_times(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_text(json.dumps(document({"on-demand": True, "deepum": False, "unlimited": True})))
    found = inputs.read((str(file),), None, False, None)
    read = found.simulations[0][1]["policies"]
    assert list(read) == ["on-demand", "deepum", "unlimited"]
    assert read["deepum"] == {"does_not_fit": "100.0 MiB of host memory are too little"}


def test_a_ratio_to_what_does_not_fit_is_a_dash(tmp_path: Path) -> None:
    """Unlimited memory of the card does not help a host that is too small for what the program
    pins.
    """
    file = tmp_path / "out.json"
    simulation = document({"on-demand": True, "unlimited": False})
    simulation["policies"]["on-demand"]["of_unlimited"] = None
    file.write_text(json.dumps(simulation))
    _, rows = figures(inputs.read((str(file),)).simulations[0][1])
    assert rows[0][-4:] == ("-", "1.00", "-", "-")
    assert rows[1] == ("unlimited", "does not fit", *"-------")


def test_without_on_demand_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_text(json.dumps(document({"on-demand": False, "deepum": True})))
    with pytest.raises(
        UsageError, match="on-demand paging is not there, or did not fit in the host's memory"
    ):
        inputs.read((str(file),), None, False, None)
