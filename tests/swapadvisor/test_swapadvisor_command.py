"""`deepum swapadvisor`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "simulate"))
from small import training

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    training(tmp_path / "training")
    return tmp_path / "training"


def test_the_search_has_a_line_beside_default_and_unlimited_memory(
    deepum: Deepum, workload: Path, tmp_path: Path
) -> None:
    arguments = ("swapadvisor", workload, "--gpu-memory", "192MiB", "--generations", "3")
    result = deepum(
        *arguments,
        *("--workers", "1", "--plan", "2"),
        *("--json", tmp_path / "out.json", "--output", tmp_path / "plan.json"),
    )
    assert result.returncode == 0, result.stderr
    head, _, *rows = result.stdout.splitlines()
    assert head.startswith("training on a100-40gb-g10, 192.0 MiB: ")
    names = ("default", "swapadvisor", "unlimited memory", "plan, program's order")
    assert all(row.strip().startswith(name) for row, name in zip(rows, names, strict=False))
    assert rows[-1].startswith("best order for `deepum plan`: ")
    assert result.stderr.startswith("generation 0: ")
    kept = json.loads((tmp_path / "out.json").read_text())
    assert kept["compute_ns"] <= kept["swapadvisor"]["ns"] <= kept["default"]["ns"]
    assert kept["generations"] == 3 and kept["memory_bytes"] == 192 << 20
    for name in ("default", "swapadvisor"):
        assert 0 < kept[name]["arena_bytes"] <= kept[name]["pool_bytes"] <= 192 << 20
    assert all(kept["plan"][order]["ns"] > 0 for order in ("program", "swapadvisor"))
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert sum(one["bytes"] * one["objects"] for one in plan["classes"]) <= 192 << 20
    assert len(set(plan["schedule"])) == len(plan["schedule"])
    moved = {"in": 0, "out": 0}
    assert {move["kind"] for move in plan["moves"]} <= {"in", "out", "place", "held"}
    for move in plan["moves"]:
        moved[move["kind"]] = moved.get(move["kind"], 0) + 1
    assert moved["in"] > 0 and kept["swapadvisor"]["in_bytes"] > 0
    again = deepum(*arguments, "--workers", "2")
    for mine, other in zip(
        result.stdout.splitlines()[2:5], again.stdout.splitlines()[2:5], strict=True
    ):
        assert mine.split() == other.split()


def test_a_card_too_small_for_an_operator_is_refused(deepum: Deepum, tmp_path: Path) -> None:
    training(tmp_path / "large", activations_mib=40)
    result = deepum("swapadvisor", tmp_path / "large", "--gpu-memory", "64MiB", "--workers", "1")
    assert result.returncode == 2 and result.stdout == ""
    assert "in no pool every operator can run; give --gpu-memory " in result.stderr


def test_unusable_arguments_are_refused(deepum: Deepum, workload: Path, tmp_path: Path) -> None:
    assert deepum("swapadvisor", "no-such-workload").returncode == 2
    result = deepum("swapadvisor", workload, "--machine", "abacus")
    assert result.returncode == 2 and "abacus" in result.stderr
    result = deepum(
        *("swapadvisor", workload, "--gpu-memory", "192MiB", "--generations", "0"),
        *("--workers", "1", "--output", tmp_path / "no" / "plan.json"),
    )
    assert result.returncode == 125 and "name a file that can be written" in result.stderr


@pytest.mark.torch
def test_an_exported_program_is_a_workload(deepum: Deepum, tmp_path: Path) -> None:
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    torch.export.save(torch.export.export(model, (torch.ones(4, 64),)), tmp_path / "model.pt2")
    result = deepum(
        *("swapadvisor", tmp_path / "model.pt2", "--generations", "1", "--workers", "1"),
    )
    assert result.returncode == 0, result.stderr
    assert "model.pt2 on v100-16gb, 16.0 GiB: 3 operators, " in result.stdout
