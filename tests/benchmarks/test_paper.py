"""benchmarks/paper.py: the search for the largest batch, the power model, its tables, and that
docs/research/paper.md has them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "benchmarks" / "results" / "paper-simulated.json"
PAGE = ROOT / "docs" / "research" / "paper.md"
MARKS = "".join(
    f"# {name}\n<!-- paper: {name} -->\n<!-- end -->\n"
    for name in (
        "published",
        "speed-ups",
        "batches",
        "tables",
        "faults",
        "ablation",
        "degrees",
        "energy",
    )
)
Call = Callable[..., None]


@pytest.fixture
def call(
    benchmarks: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Call:
    """The script, with these arguments, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))

    def call(*arguments: object) -> None:
        import paper

        monkeypatch.setattr(sys, "argv", ["paper.py", *map(str, arguments)])
        paper.main()

    return call


def policy(step_ms: float, base_ms: float, faults: float = 0, moved: float = 0) -> dict[str, Any]:
    """As `deepum simulate --json` tells of one."""
    counts = {"faults": faults, "bytes_h2d": moved, "bytes_d2h": moved}
    return {
        "step_ms": step_ms,
        "speed_up_over_on_demand": base_ms / step_ms,
        "a_step": counts,
        "table_bytes": 3 << 20,
    }


def simulation(workload: str, on_demand: float, **steps: float | None) -> dict[str, Any]:
    """The same of one workload; None: does not fit."""
    policies = {
        name.replace("_", "-"): policy(ms, on_demand) if ms else {"does_not_fit": "out of memory"}
        for name, ms in steps.items()
    }
    policies |= {
        "on-demand": policy(on_demand, on_demand, 5000, 1e9),
        "unlimited": policy(20.0, on_demand),
    }
    head = {
        "workload": workload,
        "machine": "v100-32gb",
        "memory_bytes": 32 << 30,
        "allocated_bytes": 48 << 30,
        "bound_ms": 25.0,
    }
    return head | {"policies": policies}


@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize("seed", range(40))
def test_the_largest_batch_is_found_in_few_tries(seed: int) -> None:
    from paper_batches import last_that_fits

    random = Random(seed)
    base, slope = random.randrange(0, 1000), random.uniform(0.5, 300)
    jitter = [random.random() * slope * random.choice((0, 0.9)) for _ in range(4000)]
    sizes = [0, *(round(base + slope * batch + jitter[batch]) for batch in range(1, 4000))]
    limit = random.randrange(sizes[1], sizes[3000]) if random.random() < 0.9 else sizes[1] - 1
    tried: list[int] = []

    def bytes_of(batch: int) -> int:
        tried.append(batch)
        return sizes[batch] if batch < 4000 else round(base + slope * batch)

    found = last_that_fits(bytes_of, limit, random.randrange(1, 400), 1 << 20)
    assert found.exact
    assert found.batch == 0 or (sizes[found.batch] <= limit and found.bytes == sizes[found.batch])
    assert sizes[found.batch + 1] > limit
    assert len(tried) == len(set(tried)) <= 24


@pytest.mark.usefixtures("benchmarks")
def test_beyond_what_is_captured_the_line_answers_and_says_so() -> None:
    from paper_batches import Answer, last_that_fits

    def bytes_of(batch: int) -> int:
        assert batch <= 64
        return 100 + 3 * batch

    assert last_that_fits(bytes_of, 1000, 8, 64) == Answer(300, False, 1000)
    assert last_that_fits(bytes_of, 160, 8, 64) == Answer(20, True, 160)


@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize("last", [0, 1, 2, 7, 64, 100, 1000])
def test_where_only_running_tells_it_is_bisected(last: int) -> None:
    from paper_batches import last_that_runs

    tried: list[int] = []

    def runs(batch: int) -> bool:
        tried.append(batch)
        return batch <= last

    assert last_that_runs(runs, 8).batch == last
    assert len(tried) <= 20 and min(tried) > 0


@pytest.mark.usefixtures("benchmarks")
def test_energy_is_of_time_kernels_and_bytes() -> None:
    from paper_energy import Power, joules

    power = Power(
        "", busy_w=200, waiting_w=50, host_w=100, device_memory_pj=1, host_memory_pj=2, link_pj=3
    )
    assert power.joules(1000, 600, 0) == pytest.approx(0.6 * 300 + 0.4 * 150)
    assert power.joules(0, 0, 1e9) == pytest.approx(8e9 * 6e-12)
    one = simulation("w", 1000.0, deepum=40.0, lms=None)
    assert joules(one, "on-demand", power) == pytest.approx(1 * 150 + 0.02 * 150 + 2e9 * 48e-12)
    assert joules(one, "deepum", power) == pytest.approx(0.04 * 150 + 0.02 * 150)
    assert joules(one, "lms", power) is None and joules(one, "luck", power) is None


def results() -> dict[str, Any]:
    """Of a policy that fits one workload only."""
    several = [
        simulation("a:batch=8", 100.0, lms=50.0, deepum=25.0),
        simulation("b:batch=2,rows=3000000", 400.0, lms=None, deepum=25.0),
    ]
    return {"compared": ["on-demand", "lms", "deepum", "unlimited"], "simulations": several}


@pytest.mark.usefixtures("benchmarks")
def test_what_does_not_fit_is_left_out_and_means_say_of_how_many_they_are() -> None:
    from paper_tables import faults, speed_ups, tables

    assert speed_ups(results()) == [
        "| v100-32gb, 32.0 GiB | GiB | on-demand, ms | lms | deepum | bound |",
        "| --- | --: | --: | --: | --: | --: |",
        "| `a` b8 | 48.0 | 100 | 2.00 | 4.00 | 4.00 |",
        "| `b` b2 x 3 M rows | 48.0 | 400 | - | 16.00 | 16.00 |",
        "| **geometric mean** |  |  | **2.00 (1)** | **8.00** | **8.00** |",
        "",
    ]
    assert faults(results())[2:4] == ["| `a` b8 | 5000 | 0 |", "| `b` b2 x 3 M rows | 5000 | 0 |"]
    assert tables(results())[2:4] == ["| `a` b8 | 3.0 |", "| `b` b2 x 3 M rows | 3.0 |"]


@pytest.mark.usefixtures("benchmarks")
def test_means_are_told_without_dlrm_as_well() -> None:
    from paper_tables import speed_ups

    figures = results()
    figures["simulations"].append(simulation("dlrm:batch=8", 64000.0, lms=40.0, deepum=20.0))
    *_, every, without, _ = speed_ups(figures)
    assert every == "| **geometric mean** |  |  | **56.57 (2)** | **58.94** | **54.72** |"
    assert without == "| **without `dlrm`** |  |  | **2.00 (1)** | **8.00** | **8.00** |"


@pytest.mark.usefixtures("benchmarks")
def test_what_is_published_stands_beside_what_is_here() -> None:
    from paper_published import rows

    several = [
        simulation(f"{name}:batch=8", 100.0, deepum_paper=ms, lookahead_8=ms)
        for name, ms in (("dlrm", 100.0), ("resnet152", 25.0))
    ]
    several[0]["policies"]["deepum-paper"]["a_step"]["faults"] = 25
    swept = simulation("gpt2-l:batch=8", 100.0)
    swept["policies"] |= {
        f"paper, N = {n}": policy(ms, 100.0) for n, ms in ((8, 50.0), (32, 30.0), (64, 31.0))
    }
    batch = {
        "workload": "a",
        "policy": "unified memory",
        "exact": True,
        "bytes": 96,
        "host_bytes": 128,
        "batch": 3,
    }
    values = {
        what: here
        for what, _, here in rows({"simulations": several, "batches": [batch], "degrees": [swept]})
    }
    assert values["DeepUM over naive UM, ResNets"] == "4.00 (4.00 to 4.00)"
    assert values["DeepUM over naive UM, DLRM"] == "1.00 (1.00 to 1.00)"
    assert values["idealised look-ahead over base UVM, geometric mean"] == "2.00 (1.00 to 4.00)"
    assert values["memory of the largest batch under DeepUM"] == "75.0% to 75.0% of it"
    assert values["page faults under DeepUM"] == "0.25% of on-demand paging's are left"
    assert values["memory of the correlation tables"] == "3.0 to 3.0 MiB"
    assert values["best N by time"] == values["best N by energy"] == "32 on `gpt2-l`"
    swept["policies"]["paper, N = 64"] = policy(27.0, 100.0)
    (best,) = (
        here
        for what, _, here in rows({"simulations": several, "batches": [batch], "degrees": [swept]})
        if what == "best N by time"
    )
    assert best == "64 on `gpt2-l` (by 10.0%)"


@pytest.mark.usefixtures("benchmarks")
def test_degrees_are_told_against_on_demand_and_against_eight() -> None:
    from paper_tables import degrees

    one = simulation("a:batch=8", 100.0)
    one["policies"] |= {"paper, N = 8": policy(50.0, 100.0), "paper, N = 32": policy(25.0, 100.0)}
    lines = degrees({"degrees": [one]})
    assert lines[0] == "| speed-up over on-demand | N = 8 | N = 32 |"
    assert lines[2] == "| `a` b8, paper | 2.00 | 4.00 |"
    _, base, less = (cell.strip() for cell in lines[6].strip("|").split("|"))
    assert base == "1.000" and 0.5 < float(less) < 1


@pytest.mark.usefixtures("benchmarks")
def test_the_file_is_json_with_a_line_a_simulation() -> None:
    from paper import written

    document = results() | {"version": 1, "batches": [{"batch": 3}]}
    assert json.loads(written(document)) == document
    assert len([line for line in written(document).splitlines() if line.startswith("  {")]) == 3


def test_what_cannot_be_used_is_one_line(call: Call, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    for arguments, cause in (
        (("--only", "luck"), "--only: there is no section luck; there are speed-ups, "),
        (
            ("--only", "", "--json", tmp_path / "other.json"),
            "other.json: is not a file of this script's results",
        ),
        (("--only", "", "--page", tmp_path / "none.md"), "No such file"),
        (
            ("--only", "", "--page", tmp_path / "other.json"),
            "no place is marked for published; put ",
        ),
    ):
        with pytest.raises(SystemExit) as ended:
            call(*arguments)
        assert (
            str(ended.value).startswith("deepum: error: ")
            and cause in str(ended.value)
            and "\n" not in str(ended.value)
        )


@pytest.mark.torch
def test_a_tiny_run_makes_every_table_and_the_page(
    call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.md").write_text(MARKS)
    call("--tiny", "--jobs", "1", "--json", tmp_path / "out.json", "--page", tmp_path / "page.md")
    document = json.loads((tmp_path / "out.json").read_text())
    for one in document["simulations"]:
        steps = {name: row["step_ms"] for name, row in one["policies"].items() if "step_ms" in row}
        assert steps["on-demand"] > steps["deepum"] >= one["bound_ms"] > 0
        assert (
            one["policies"]["on-demand"]["a_step"]["faults"]
            > one["policies"]["deepum"]["a_step"]["faults"]
        )
    batches = {
        (one["workload"], one["host_bytes"] >> 30, one["policy"]): one["batch"]
        for one in document["batches"]
    }
    assert all(
        0 < batches[name, 1, policy] < batches[name, 2, policy] for name, _, policy in batches
    )
    assert all(one["exact"] for one in document["batches"])
    assert all(one["bytes"] <= one["host_bytes"] for one in document["batches"])
    (ablation,), (degrees,) = document["ablation"], document["degrees"]
    assert (
        ablation["policies"]["+ invalidation"]["step_ms"]
        == document["simulations"][1]["policies"]["deepum-paper"]["step_ms"]
    )
    assert {name.split(",")[0] for name in degrees["policies"]} == {
        "paper",
        "ours",
        "on-demand",
        "unlimited",
    }
    printed = capsys.readouterr().out
    text = (tmp_path / "page.md").read_text()
    tables = [line for line in printed.splitlines() if line.startswith("|")]
    assert len(tables) > 30 and all(line in text for line in tables)
    # A part made anew leaves the others.
    call("--tiny", "--jobs", "1", "--only", "ablation", "--json", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == document


@pytest.mark.usefixtures("benchmarks")
def test_the_page_tells_the_file() -> None:
    from paper import fill

    text = PAGE.read_text()
    assert fill(text, json.loads(FILE.read_text())) == text


@pytest.mark.usefixtures("benchmarks")
def test_the_file_has_every_point() -> None:
    from paper import questions
    from paper_cases import ablation, degrees, speed_ups

    document = json.loads(FILE.read_text())

    def names(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
        return [(row["workload"].partition(":")[0], row["machine"]) for row in rows]

    for rows, points in (
        (document["simulations"], speed_ups(False)),
        (document["ablation"], ablation(False)),
        (document["degrees"], degrees(False)[::2]),
    ):
        assert names(rows) == [
            (point.workload.partition(":")[0], point.machine) for point in points
        ]
    expected = {(one.workload, one.host_bytes) for one in questions(False)}
    assert {(one["workload"], one["host_bytes"]) for one in document["batches"]} == expected
