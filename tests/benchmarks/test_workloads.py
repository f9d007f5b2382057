"""benchmarks/workloads.py: its table, what it names at the end, its file, and that a workload which
fails costs its line only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deepum.workloads import WORKLOADS, parse
from deepum.workloads.held_out import HELD_OUT

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """In G10's form: eight layers, forward and back, each with 40 MiB."""
    folder = tmp_path / "layers"
    folder.mkdir()
    forward = [f"{n},forward,3000,{n - 1 if n else ''},{n},0" for n in range(8)]
    backward = [f"{8 + n},backward,3000,{7 - n};8,8,0" for n in range(8)]
    (folder / "kernels.csv").write_text(
        "\n".join(["kernel_id,name,duration_us,reads,writes,workspace_bytes", *forward, *backward])
        + "\n"
    )
    tensors = [f"{n},{40 * MIB},{int(n == 8)}" for n in range(9)]
    (folder / "tensors.csv").write_text(
        "\n".join(["tensor_id,size_bytes,is_global", *tensors]) + "\n"
    )
    return folder


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "benchmarks" / "workloads.py", *arguments]
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=120, env=dict(os.environ)
    )


def test_a_line_a_workload_and_machine_and_what_stands_out(workload: Path, tmp_path: Path) -> None:
    options = (
        "--machine",
        "v100-16gb,h200",
        "--policy",
        "on-demand,deepum",
        "--pressure",
        "1.5",
        "--steps",
        "4",
        "--jobs",
        "2",
    )
    result = run(
        "--only", f"{workload},nowhere", *options, "--markdown", "--json", tmp_path / "out.json"
    )
    assert result.returncode == 1
    assert result.stderr.count("deepum: error: workload nowhere: ") == 2
    assert (
        result.stderr.splitlines()[-1]
        == "deepum: error: 2 of 4 simulations failed; see their lines above"
    )
    lines = result.stdout.splitlines()
    assert [line.split(",")[0] for line in lines if "ms a step;" in line] == ["v100-16gb", "h200"]
    rows = [line.split() for line in lines if line.startswith("layers ")]
    assert [row[1:3] for row in rows] == [["360.0", "MiB"]] * 2
    assert lines[-4].startswith("|") and lines[-1].startswith("| `layers` | h200 | ")
    (summary,) = [line for line in lines if line.startswith("deepum: ")]
    assert summary.endswith("over on-demand (geometric means of 2)")
    assert " of the bound, " in summary and " of the bound (UM), " in summary
    simulations = json.loads((tmp_path / "out.json").read_text())["simulations"]
    assert [(one["workload"], one["machine"], one["memory_bytes"]) for one in simulations] == [
        ("layers", "v100-16gb", 240 * MIB),
        ("layers", "h200", 240 * MIB),
    ]
    for row, one in zip(rows, simulations, strict=True):
        assert row[3] == f"{one['policies']['unlimited']['step_ms']:.1f}"
        assert row[4:6] == [f"{one[bound]:.1f}" for bound in ("bound_ms", "kept_bound_ms")]
        assert row[-2:] == [
            f"{one['policies']['deepum'][ratio]:.2f}" for ratio in ("of_bound", "of_kept_bound")
        ]


def test_a_warm_up_of_less_than_nothing_is_refused(workload: Path) -> None:
    result = run("--only", workload, "--warm-up", "-1")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1].endswith(
        "error: --warm-up -1: is negative; give how many steps do not count"
    )


def test_what_fits_the_card_is_counted_in_a_line_of_its_own(workload: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.json"
    small.write_text(json.dumps({"like": "v100-16gb", "memory_bytes": 240 * MIB}))
    result = run(
        "--only",
        workload,
        "--machine",
        f"{small},h200",
        "--policy",
        "on-demand,deepum",
        "--steps",
        "4",
        "--json",
        tmp_path / "out.json",
    )
    pressed, whole = [
        line
        for line in result.stdout.splitlines()
        if (" of the bound, " in line and "geometric" in line) or "with those" in line
    ]
    simulations = json.loads((tmp_path / "out.json").read_text())["simulations"]
    of_bound = [one["policies"]["deepum"]["of_bound"] for one in simulations]
    assert (
        pressed.endswith("(geometric means of 1)")
        and f" {of_bound[0]:.3f} of the bound, " in pressed
    )
    assert whole.startswith(
        f"  with those that fit the card: {(of_bound[0] * of_bound[1]) ** 0.5:.3f} of the bound, "
    )
    assert whole.endswith("(of 2)")


def test_a_band_is_all_of_it_with_a_kind_driver_the_expected_one_and_an_unkind_one(
    workload: Path, tmp_path: Path
) -> None:
    options = (
        "--policy",
        "deepum",
        "--pressure",
        "1.5",
        "--steps",
        "6",
        "--json",
        tmp_path / "out.json",
    )
    result = run("--only", workload, "--band", *options)
    assert result.returncode == 0, result.stderr
    simulations = json.loads((tmp_path / "out.json").read_text())["simulations"]
    assert [one["driver"]["costs"] for one in simulations] == ["kind", "expected", "unkind"]
    assert [one["mode"] for one in simulations] == ["gated"] * 3
    made = [one["policies"]["deepum"] for one in simulations]
    assert made[0]["step_ms"] <= made[1]["step_ms"] <= made[2]["step_ms"]
    paging = [one["policies"]["on-demand"]["step_ms"] for one in simulations]
    assert paging[0] > paging[1] > paging[2]
    head, _, row, mean, without = [
        line.strip("| ").split(" | ") for line in result.stdout.splitlines() if line.startswith("|")
    ]
    assert head == [
        "workload",
        "bound",
        "deepum, kind",
        "deepum, expected",
        "deepum, unkind",
        "over on-demand",
    ]
    gains = sorted(each["speed_up_over_on_demand"] for each in made)
    assert row[2:] == [
        *(f"{each['step_ms']:.0f} ({each['of_bound']:.2f})" for each in made),
        f"{gains[0]:.2f} to {gains[-1]:.2f}",
    ]
    assert mean[2:5] == without[2:5] == [f"{each['of_bound']:.3f}" for each in made]
    result = run("--only", workload, "--band", "--costs", "kind")
    assert result.returncode == 2 and "--band: has its own costs" in result.stderr


def test_where_all_fits_nothing_is_summed_up(workload: Path) -> None:
    result = run("--only", workload, "--policy", "on-demand,deepum", "--steps", "4")
    assert result.returncode == 0, result.stderr
    assert "geometric means" not in result.stdout and "slower than on-demand: none" in result.stdout


def test_an_unknown_machine_or_policy_is_one_line(workload: Path) -> None:
    for options in (("--machine", "abacus"), ("--policy", "luck")):
        result = run("--only", workload, *options)
        assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (1, "", 1)
        assert result.stderr.startswith("deepum: error: ")


def test_the_picture_in_the_readme_is_of_the_file_and_has_every_workload() -> None:
    from deepum.workloads import WORKLOADS

    simulations = json.loads(
        (ROOT / "benchmarks" / "results" / "workloads-v100-16gb.json").read_text()
    )["simulations"]
    assert [one["workload"].partition(":")[0] for one in simulations] == list(WORKLOADS)
    drawn = (ROOT / "docs" / "research" / "speed-up.svg").read_text()
    readme = (ROOT / "README.md").read_text()
    assert (
        "](docs/research/speed-up.svg)" in readme
        and (
            "deepum report benchmarks/results/workloads-v100-16gb.json --image "
            "docs/research/speed-up.svg"
        )
        in readme
    )
    assert all(f">{name}<" in drawn for name in [*WORKLOADS, "geometric mean"])
    # Vega writes into each mark what it shows, for those who cannot see it.
    for one in simulations:
        name = one["workload"].partition(":")[0]
        for policy in one["policies"].keys() - {"on-demand", "unlimited"}:
            speed_up = one["policies"][policy].get("speed_up_over_on_demand")
            if not speed_up:  # it does not fit, or nothing fits on demand
                assert f'workload: {name}; policy: {policy}"' not in drawn
                continue
            label = (
                f'"speed-up over on-demand paging: {float(f"{speed_up:.5g}"):g}; workload: '
                f'{name}; policy: {policy}"'
            )
            assert label in drawn or f"{policy} {speed_up:.0f}" in drawn, label


def test_the_held_out_set_has_each_named_workload_with_other_numbers() -> None:
    requests = [parse(text) for text in HELD_OUT]
    assert [request.named.name for request in requests] == list(WORKLOADS)
    assert all(dict(request.numbers) != dict(request.named.numbers) for request in requests)
    assert all(str(request) == str(parse(str(request))) for request in requests)


def test_a_set_and_single_workloads_exclude_each_other(workload: Path) -> None:
    result = run("--only", workload, "--set", "both")
    assert result.returncode == 2 and "not allowed with argument" in result.stderr


def test_the_readme_tells_what_the_page_of_workloads_has() -> None:
    """The means of README's table, from the kind driver to the unkind one, are those of
    docs/research/workloads.md, rounded.
    """
    page = (ROOT / "docs" / "research" / "workloads.md").read_text()
    readme = (ROOT / "README.md").read_text()
    keys = {
        "`deepum`, named": "named, `deepum`",
        "`deepum`, held out": "held out, `deepum`",
        "the published system, named": "named, `deepum-paper`",
    }
    for title, key in keys.items():
        (row,) = [
            line.strip("| ").split(" | ")
            for line in page.splitlines()
            if line.startswith(f"| {key} | ")
        ]
        _, kind, _, unkind, gains, _, without = row
        (cells,) = [
            line.strip("| ").split(" | ")
            for line in readme.splitlines()
            if line.startswith(f"| {title} | ")
        ]
        assert cells[1] == f"{float(kind):.2f} to {float(unkind):.2f}"
        for cell, span in zip(cells[2:4], (gains, without), strict=True):
            least, most = (float(end) for end in span.split(" to "))
            assert cell.removesuffix(" times as fast") == f"{least:.1f} to {most:.1f}"
