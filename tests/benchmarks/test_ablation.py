"""benchmarks/ablation.py: what it runs, what it keeps and tells, and that it goes on where it
stopped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Call = Callable[..., None]
MECHANISMS = [
    "unlimited",
    "on-demand",
    "+ prefetch",
    "+ pre-eviction",
    "+ invalidation",
    "+ advice",
    "ours, no inval.",
    "ours",
    "ours, next use",
    "ours, clean",
]


def only_case(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text())
    assert document["version"] == 3
    (record,) = document["cases"].values()
    return dict(record)


def test_each_row_has_one_mechanism_more(ablation: ModuleType, call: Call) -> None:
    call("mechanisms")
    assert ablation.made.rows == MECHANISMS
    given = {
        row: " ".join(options)
        for row, (_, options, _) in zip(ablation.made.rows, ablation.made.runs, strict=True)
    }
    assert (
        all(f"--gpu-memory {2**30} " in given[row] for row in MECHANISMS[1:])
        and "--gpu-memory 1TiB" in given["unlimited"]
    )
    assert "--policy on-demand" in given["on-demand"]
    assert "pre_eviction=0" in given["+ prefetch"] and "invalidation=0" in given["+ prefetch"]
    assert (
        "pre_eviction" not in given["+ pre-eviction"]
        and "invalidation=0" in given["+ pre-eviction"]
    )
    assert (
        "invalidation=1" in given["+ invalidation"]
        and "prediction=tables" in given["+ invalidation"]
    )
    assert "tables" not in given["ours"] and "invalidation=1" in given["ours"]


def test_figures_are_of_the_steps_after_the_warm_up_beside_the_bound(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    call("mechanisms")
    out = capsys.readouterr().out
    # 3 GiB on a card of 1: 2 GiB must move at 12.9 GB/s, more than the 40 ms of unlimited memory.
    assert "footprint 3.0 of 1 GiB; lower bound 166.5 ms" in out
    ours = next(line for line in out.splitlines() if line.strip().startswith("ours "))
    assert ours.split()[1:] == ["50.0", "10", "1.00", "2.00", "2.00", "0.30"]


def test_what_a_step_does_not_use_need_not_move(
    ablation: ModuleType,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(ablation, "TINY", replace(ablation.TINY, sparse=True))
    call("mechanisms")
    assert "lower bound 40.0 ms" in capsys.readouterr().out


def test_where_all_fits_one_line_says_so(
    ablation: ModuleType, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    ablation.made.still = True
    call("mechanisms")
    (line,) = capsys.readouterr().out.splitlines()
    assert "0.5 of 1 GiB" in line and "fits the card: all rows alike, 100.0 ms" in line


def test_the_file_tells_what_was_run_on_what(call: Call, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    call("mechanisms", "--json", results)
    record = only_case(results)
    assert (
        record["what"],
        record["job"],
        record["memory_bytes"],
        record["steps"],
        record["warm_up"],
    ) == (
        "mechanisms",
        "tiny",
        2**30,
        5,
        3,
    )
    assert record["script"][0] == "train_gpt2.py" and record["failed"] == {}
    assert record["machine"]["name"] == "v100-16gb" and record["machine"]["h2d_gbps"] == 12.9
    assert list(record["rows"]) == MECHANISMS
    assert record["bound_ms"] == pytest.approx(2 * 2**31 / 2 / 12.9e6)
    one = record["rows"]["ours"]
    assert one["options"][:2] == ["--gpu-memory", str(2**30)]
    assert len(one["date"]) == 10 and one["deepum"] and len(one["steps_ms"]) == 5
    assert (one["step_ms"], one["speed_up"], one["a_step"]["bytes_d2h"]) == (50.0, 2.0, 2**31)
    assert one["of_bound"] == pytest.approx(50 / record["bound_ms"])
    assert not results.with_suffix(".parts").exists()


def test_an_interrupted_table_goes_on_where_it_stopped(
    ablation: ModuleType, call: Call, tmp_path: Path
) -> None:
    results = tmp_path / "results.json"
    ablation.made.fails = {": ours": KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        call("mechanisms", "--json", results)
    assert not results.exists() and len(list(results.with_suffix(".parts").glob("*.json"))) == 1
    ablation.made.fails = {}
    ablation.made.runs.clear()
    call("mechanisms", "--json", results)
    assert ablation.made.rows == ["ours", "ours, next use", "ours, clean"]
    assert list(only_case(results)["rows"]) == MECHANISMS


def test_a_run_that_fails_costs_its_row_and_is_tried_again(
    ablation: ModuleType, call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from main_job import JobError

    results = tmp_path / "results.json"
    ablation.made.fails = {": + prefetch": JobError("+ prefetch: the script ended with 1")}
    with pytest.raises(SystemExit) as ended:
        call("mechanisms", "--json", results)
    assert (
        str(ended.value).startswith("deepum: error: 1 runs failed")
        and ablation.made.rows == MECHANISMS
    )
    message = "the script ended with 1 | RuntimeError: CUDA error"
    assert (
        message in only_case(results)["failed"]["+ prefetch"] and message in capsys.readouterr().out
    )
    ablation.made.fails = {}
    ablation.made.runs.clear()
    call("mechanisms", "--json", results)
    assert ablation.made.rows == ["+ prefetch"] and only_case(results)["failed"] == {}
    assert list(only_case(results)["rows"]) == MECHANISMS


def test_other_settings_or_steps_are_run_again(
    ablation: ModuleType, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results.json"
    call("mechanisms", "--json", results)
    ablation.made.runs.clear()
    monkeypatch.setitem(ablation.ROWS, "ours", ["--tune", "invalidation=1,headroom_blocks=4"])
    call("mechanisms", "--json", results)
    assert ablation.made.rows == ["ours"]
    ablation.made.runs.clear()
    call("mechanisms", "--json", results, "--steps", 6)
    assert ablation.made.rows == MECHANISMS and only_case(results)["steps"] == 6


def test_each_degree_is_run_with_each_system(
    ablation: ModuleType, call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("degrees", "--json", tmp_path / "results.json")
    degrees = [1, 2, 8, 32, 128, 512, 2048]
    assert ablation.made.rows == [
        "on-demand",
        *[f"{system}, N = {n}" for system in ("paper", "ours") for n in degrees],
    ]
    for row, (_, options, _) in zip(ablation.made.rows[1:], ablation.made.runs[1:], strict=True):
        (tunables,) = (
            options[at + 1].split(",") for at, option in enumerate(options) if option == "--tune"
        )
        assert [one for one in tunables if one.startswith("prefetch_degree=")] == [
            f"prefetch_degree={row.rsplit(' ', 1)[1]}"
        ]
        assert ("prediction=tables" in tunables) == row.startswith("paper")
    assert "  paper" in capsys.readouterr().out


def test_a_terminal_sees_a_bar_instead_of_the_scripts_lines(
    ablation: ModuleType, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    call("mechanisms")
    assert "100%" in terminal.getvalue() and "step 5" not in terminal.getvalue()


@pytest.mark.parametrize(
    "content", ["", "[]", '{"version": 1, "runs": {}}', '{"version": 2}', "no json"]
)
def test_another_file_is_refused_in_one_line(call: Call, tmp_path: Path, content: str) -> None:
    results = tmp_path / "results.json"
    results.write_text(content)
    with pytest.raises(SystemExit) as ended:
        call("mechanisms", "--json", results)
    assert str(results) in str(ended.value) and "\n" not in str(ended.value)
    assert results.read_text() == content


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [(("--steps", 3), "leaves none after the warm-up"), (("--only", "vgg"), "no case has 'vgg'")],
)
def test_what_cannot_be_run_is_refused_in_one_line(
    ablation: ModuleType, call: Call, arguments: tuple[object, ...], cause: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        call("mechanisms", *arguments)
    assert (
        str(ended.value).startswith("deepum: error: --")
        and cause in str(ended.value)
        and ablation.made.runs == []
    )


@pytest.mark.torch
def test_a_tiny_model_on_the_simulated_gpu(
    benchmarks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs are made: prefetching alone is better than what the driver does, and not as good as
    unlimited memory.
    """
    import ablation
    from ablation_cases import ROWS

    kept = {row: ROWS[row] for row in ("on-demand", "+ prefetch")}
    monkeypatch.setattr(ablation, "ROWS", kept)
    monkeypatch.setenv("DEEPUM_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("DEEPUM_DAEMON_IDLE", "5")
    results = tmp_path / "results.json"
    monkeypatch.setattr(
        sys, "argv", ["ablation.py", "mechanisms", "--tiny", "--steps", "4", "--json", str(results)]
    )
    ablation.main()
    rows = only_case(results)["rows"]
    steps = {row: one["step_ms"] for row, one in rows.items()}
    assert steps["unlimited"] < steps["+ prefetch"] < steps["on-demand"]
    assert (
        rows["unlimited"]["a_step"]["faults"]
        == 0
        < rows["+ prefetch"]["a_step"]["faults"]
        < rows["on-demand"]["a_step"]["faults"]
    )
