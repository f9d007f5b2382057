"""Sweeps: each point's result in the order of the points, whoever runs it; a point that fails is
told and the others go on.
"""

from __future__ import annotations

import functools
import io
import json
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from required import needed
from small import MIB, training
from sweeping import after_the_second, ends, half

from deepum.core import EventLog, EventWriter
from deepum.errors import DeepumError, UsageError
from deepum.simulate.comparison import Comparison, Means, compare, means
from deepum.simulate.footprint import Footprint, footprint
from deepum.simulate.host import Host
from deepum.simulate.point import Point, simulate
from deepum.simulate.policies import BY_NAME, POLICIES
from deepum.simulate.sweep import Failure, sweep
from deepum.simulate.workload import load
from deepum.trace import Trace

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a Dask cluster of two processes on this machine."""
    distributed = needed("dask.distributed", "cluster")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        host="127.0.0.1",
        silence_logs=50,
    ) as local:
        yield local.scheduler_address


@pytest.fixture(params=["this process", "processes", "cluster"])
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    """How a sweep is run."""
    if request.param == "cluster":
        return {"cluster": request.getfixturevalue("cluster")}
    return {"jobs": 1 if request.param == "this process" else 2}


def test_results_come_in_the_order_of_the_points_and_a_failure_ends_nothing(
    where: dict[str, Any],
) -> None:
    points = [8, 3, 2, 13, 6, 4]
    found = list(sweep(half, points, **where))
    assert [done.point for done in found] == points
    assert [done.result[0] for done in found if not isinstance(done.result, Failure)] == [
        4,
        1,
        3,
        2,
    ]
    assert found[1].result == Failure("deepum: error: 3: is odd; give an even number", 2)
    assert isinstance(found[3].result, Failure) and found[3].result.exit_code == 125
    assert found[3].result.line.startswith(
        "deepum: error: 13: ZeroDivisionError: nobody expected that; "
    )
    others = {done.result[1] for done in found if not isinstance(done.result, Failure)} - {
        os.getpid()
    }
    assert bool(others) == (where != {"jobs": 1})


@pytest.mark.parametrize("where", ["processes", "cluster"], indirect=True)
def test_points_run_side_by_side_and_are_told_in_order(
    where: dict[str, Any], tmp_path: Path
) -> None:
    found = list(
        sweep(functools.partial(after_the_second, tmp_path), [("a", "b"), ("b", "")], **where)
    )
    assert [done.result for done in found] == ["a", "b"]


def test_a_worker_that_dies_is_told_for_each_point_that_it_took_along() -> None:
    found = list(sweep(ends, [0, 1, 2], jobs=2))
    assert [done.point for done in found] == [0, 1, 2]
    assert isinstance(found[0].result, Failure)
    assert found[0].result.line.startswith("deepum: error: 0: BrokenProcessPool: ")
    assert all(done.result == done.point or isinstance(done.result, Failure) for done in found)


def test_a_single_point_that_breaks_shows_where() -> None:
    with pytest.raises(ZeroDivisionError):
        list(sweep(half, [13]))


def test_no_points_give_nothing() -> None:
    assert list(sweep(half, [])) == []


def test_a_cluster_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    needed("dask.distributed", "cluster")
    monkeypatch.setattr("deepum.simulate.sweep._CONNECTING_S", 0.2)
    for address in ("tcp://127.0.0.1:9", "no address"):
        with pytest.raises(
            UsageError,
            match=r"--cluster .*; give the address of a Dask scheduler, as tcp://HOST:8786",
        ):
            list(sweep(half, [2, 4], cluster=address))


def test_without_dask_a_cluster_is_refused_and_what_to_install_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(
        DeepumError, match=r"Dask is missing; install it with `pip install deepum\[cluster\]`"
    ):
        list(sweep(half, [2, 4], cluster="tcp://127.0.0.1:9"))


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_counts_points_on_a_terminal_only(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    assert len(list(sweep(half, [2, 4], jobs=1, label="halving"))) == 2
    if terminal:
        assert "halving" in stream.getvalue() and "100%" in stream.getvalue()
        assert stream.getvalue().endswith("\r\x1b[2K\x1b[?25h"), (
            "the line is empty, the cursor shown"
        )
    else:
        assert stream.getvalue() == ""
    stream.truncate(0)
    assert len(list(sweep(half, [2]))) == 1
    assert stream.getvalue() == "", "one point has no bar"


def test_every_policy_can_go_to_another_process() -> None:
    assert [pickle.loads(pickle.dumps(policy)) for policy in POLICIES] == list(POLICIES)


def test_a_sweep_simulates_as_one_simulation_does(where: dict[str, Any], tmp_path: Path) -> None:
    training(tmp_path / "training")
    chosen = (BY_NAME["deepum"],)
    point = Point(str(tmp_path / "training"), chosen, memory_bytes=192 * MIB, steps=4)
    host = Host(128 * MIB, 3.2)
    points = [
        point,
        Point(point.workload, chosen, "h200", 256 * MIB, 32, 4, True),
        replace(point, host=host),
        Point("nowhere", chosen),
    ]
    alone = [
        compare(load(points[0].workload, 4, False), "a100-40gb-g10", chosen, 192 * MIB),
        compare(load(points[1].workload, 4, True, "h200"), "h200", chosen, 256 * MIB, 32),
        compare(load(points[0].workload, 4, False), "a100-40gb-g10", chosen, 192 * MIB, host=host),
    ]
    results = [done.result for done in sweep(simulate, points, **where)]
    assert results[:3] == alone
    assert alone[2].rows["deepum"].ns > alone[0].rows["deepum"].ns
    assert isinstance(results[3], Failure) and "nowhere: No such file" in results[3].line
    with pytest.raises(UsageError, match="nowhere"):
        simulate(points[3])


def test_the_footprint_is_the_most_at_a_time() -> None:
    writer = EventWriter()
    writer.allocate(1, blocks=3)
    writer.allocate(2, blocks=2)
    writer.allocate(2, blocks=2)  # announced again
    writer.free(1)
    writer.allocate(1, blocks=2, generation=2)
    assert footprint(Trace("", writer.take())) == Footprint(0, 10 * MIB)


def test_pressure_divides_what_is_allocated_by_the_card(tmp_path: Path) -> None:
    training(tmp_path / "training")
    found = simulate(Point(str(tmp_path / "training"), (BY_NAME["deepum"],), steps=2, pressure=1.5))
    allocated = footprint(load(str(tmp_path / "training"), 2, False).trace).allocated
    assert found.footprint.allocated == allocated > 12 * 24 * MIB, (
        "all activations are there at the end of the forward pass"
    )
    assert found.memory_bytes == allocated * 2 // 3 // (2 * MIB) * (2 * MIB)
    (tmp_path / "log").write_bytes(EventLog.header({}))
    with pytest.raises(UsageError, match="reports no allocated memory"):
        simulate(Point(str(tmp_path / "log"), (BY_NAME["deepum"],), pressure=1.5))


@dataclass
class Row:
    """A row with that time a step."""

    ns: float


def nearly(
    over_on_demand: float, of_bound: float | None, count: int, of_kept_bound: float | None = None
) -> Any:
    """Means that are about these."""
    values: list[Any] = [
        None if value is None else pytest.approx(value)
        for value in (over_on_demand, of_bound, of_kept_bound)
    ]
    return Means(values[0], values[1], count, values[2])


def test_means_are_geometric_and_of_bounds_that_all_have() -> None:
    def one(on_demand: float, bound: float | None, kept: float | None = None) -> Comparison:
        rows: Any = {"on-demand": Row(on_demand), "unlimited": Row(1.0), "deepum": Row(4.0)}
        return Comparison("", "", 0, rows, bound, bound, Footprint(0, 0), kept_bound_ns=kept)

    mean = means([one(8.0, 2.0), one(32.0, 4.0)], "deepum")
    assert mean == nearly(4.0, 2**0.5, 2)
    assert means([one(8.0, None), one(8.0, 4.0)], "deepum") == nearly(2.0, None, 2)
    nowhere = one(8.0, 4.0)
    rows: Any = nowhere.rows
    rows["deepum"] = Row(math.inf)  # did not fit
    assert means([one(8.0, 4.0), nowhere], "deepum") == nearly(2.0, 1.0, 1)
    assert means([nowhere], "deepum") is None
    alone = one(math.inf, 4.0)  # it fits, on demand does not
    assert alone.ratios("deepum") == (0.25, math.inf, 1.0)
    assert alone.ratios("on-demand") == (0.0, 0.0, math.inf)
    assert means([one(8.0, 4.0), alone], "deepum") == nearly(2.0, 1.0, 1)
    assert means([alone], "deepum") is None
    both = means([one(8.0, 1.0, 2.0), one(8.0, 1.0, 4.0)], "deepum")
    assert both == nearly(2.0, 4.0, 2, 2**0.5)
    mean = means([one(8.0, 1.0, 2.0), one(8.0, 1.0)], "deepum")
    assert mean is not None and mean.of_kept_bound is None


def _two(tmp_path: Path) -> list[Path]:
    training(tmp_path / "training")
    training(tmp_path / "smaller", layers=6)
    return [tmp_path / "training", tmp_path / "smaller"]


def test_the_command_takes_several_workloads_and_machines(
    deepum: Deepum, tmp_path: Path, where: dict[str, Any]
) -> None:
    chosen = ("--policy", "on-demand,deepum", "--steps", "4", "--gpu-memory", "128MiB")
    options = (
        *chosen,
        "--machine",
        "a100-40gb-g10,h200",
        *(word for key, value in where.items() for word in (f"--{key}", value)),
    )
    result = deepum("simulate", *_two(tmp_path), *options, "--json", tmp_path / "out.json")
    assert (result.returncode, result.stderr) == (
        0,
        f"deepum: to see it drawn: deepum report {tmp_path / 'out.json'}\n",
    )
    *tables, last = result.stdout.split("\n\n")
    assert [table.split(",")[0] for table in tables] == [
        f"{name} on {on}" for on in ("a100-40gb-g10", "h200") for name in ("training", "smaller")
    ]
    head, *rows = last.splitlines()
    assert head == "geometric means of 4:"
    assert [row.split(":")[0].strip() for row in rows] == ["on-demand", "deepum"]
    assert rows[0].endswith("of bound (UM)") and " 1.00 over on-demand" in rows[0]
    figures = json.loads((tmp_path / "out.json").read_text())
    assert [(one["workload"], one["machine"]) for one in figures["simulations"]] == [
        tuple(table.split(",")[0].split(" on ")) for table in tables
    ]
    alone = deepum(
        "simulate",
        tmp_path / "training",
        *chosen,
        "--machine",
        "h200",
        "--json",
        tmp_path / "one.json",
    )
    assert alone.stdout == tables[2] + "\n"
    assert json.loads((tmp_path / "one.json").read_text()) == figures["simulations"][2]


def test_the_command_tells_what_failed_and_goes_on(deepum: Deepum, tmp_path: Path) -> None:
    first, second = _two(tmp_path)
    result = deepum("simulate", first, "nowhere", second, "--json", tmp_path / "out.json")
    assert result.returncode == 2
    failed, pointer = result.stderr.splitlines()
    assert failed.startswith("deepum: error: workload nowhere: No such file")
    assert pointer == f"deepum: to see it drawn: deepum report {tmp_path / 'out.json'}"
    assert "training on " in result.stdout and "smaller on " in result.stdout
    assert len(json.loads((tmp_path / "out.json").read_text())["simulations"]) == 2


def test_an_unknown_machine_is_said_once_and_before_the_work(
    deepum: Deepum, tmp_path: Path
) -> None:
    for machines in ("h200,abacus", "h200,"):
        result = deepum("simulate", *_two(tmp_path), "--machine", machines)
        assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
        assert result.stderr.startswith(
            f"deepum: error: machine '{machines.split(',')[1]}': no machine is called "
        )
