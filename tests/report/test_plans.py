"""`deepum report PLAN`: what is drawn adds up to what the replay counts, and what cannot be drawn
is refused with the reason.
"""

from __future__ import annotations

import json
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from parsed import Parsed
from required import needed
from small import MIB, training

from deepum.core import Plan, plan_files
from deepum.errors import DeepumError
from deepum.planners import Event, Item, Iteration, Link
from deepum.planners.core_plans import core_plan, problem_of
from deepum.planners.outline import Outline, Provenance
from deepum.planners.recorded import Run
from deepum.report import inputs, plan_charts, run_charts, series
from deepum.report.plans import Content, PlanReplay, replay_plan
from deepum.report.write import main_chart, report
from deepum.simulate import recorded

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
MEMORY = 192 * MIB


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """Of a training step that a card of 192 MiB cannot hold."""
    folder = tmp_path_factory.mktemp("made") / "training"
    training(folder)
    iteration, problem = problem_of(recorded.recorded(str(folder), None, "a100-40gb-g10", MEMORY))
    gaps = problem.belady()
    assert gaps is not None
    return core_plan(iteration, problem, gaps, Provenance("belady", 0.5, 1e8, None, "<i>", "card"))


@pytest.fixture(scope="module")
def of(plan: Plan) -> PlanReplay:
    return replay_plan(plan_files.encode(plan))


@pytest.mark.parametrize("out", [False, True])
def test_bytes_that_are_drawn_are_those_that_the_replay_counts(of: PlanReplay, out: bool) -> None:
    """But for what crosses the iteration's ends, which is drawn on this side of them alone."""
    at = series.edges(0.0, of.replayed.ns, 480)
    area = float((series.rate(of.crossing(out), at) * np.diff(at)).sum())
    moved = of.crossing(out)
    size, took = moved["bytes"], moved["end_ns"] - moved["start_ns"]
    head = (size * np.maximum(-moved["start_ns"], 0) / took).sum()
    tail = (size * np.maximum(moved["end_ns"] - of.replayed.ns, 0) / took).sum()
    assert area == pytest.approx(size.sum() - head - tail, rel=1e-6)
    began = size[moved["start_ns"] >= 0].sum()
    assert began == (of.replayed.out_bytes if out else of.replayed.in_bytes) > 0


def test_what_crosses_the_ends_of_an_iteration_counts_once() -> None:
    """200 bytes that launch 0 changes, and that leave behind it, slower than launch 1 takes."""
    item = Item(200, (Event(0, reads=True, writes=True),), 200)
    iteration, link = Iteration((10.0, 150.0), (item,)), Link(250, 1.0, 1.0)
    outline = Outline(
        Provenance("all", 0.0), iteration, link, np.ones(1, np.uint8), [[Run(7, 0, 1)]]
    )
    made = replay_plan(plan_files.encode(Plan((1, 2), (), outline.encode())))
    assert made.replayed.ns == 160.0  # the link lags behind, and launch 0 finds them still there
    assert made.crossing(True).tolist() == [(-110.0, 90.0, 200.0), (90.0, 290.0, 200.0)]
    assert made.crossing(False).tolist() == []
    assert made.contents() == [Content([Run(7, 0, 1)], 200, 1, [(0, 0)], 0, 200)]
    assert series.rate(made.crossing(True), np.array([0.0, 90.0, 160.0])).tolist() == [1.0, 1.0]
    (row,) = plan_charts.contents(made)[1]
    assert row[0] == "0000000000000007, block 0" and row[3] == "0 to 0 of the next"


def test_the_chart_shows_both_directions_and_no_more_than_there_is(of: PlanReplay) -> None:
    waiting, link, memory = plan_charts.timeline(of)["vconcat"]
    rows = link["layer"][0]["data"]["values"]
    limits = {"to the GPU": of.outline.link.in_gbps, "to the host": of.outline.link.out_gbps}
    for direction, most in limits.items():
        rates = [abs(row["GB/s"]) for row in rows if row["direction"] == direction]
        assert 0.9 * most < max(rates) <= 1.0001 * most
    amounts: dict[str, list[float]] = {what: [] for what in ("held", "live", "used")}
    for row in memory["layer"][0]["data"]["values"]:
        amounts[row["what"]].append(row["GiB"] * 2**30)
    assert max(amounts["held"]) <= 1.0001 * of.outline.link.memory_bytes < max(amounts["live"])
    assert max(amounts["held"]) == pytest.approx(int(of.levels["bytes"].max()), rel=1e-4)
    assert max(amounts["used"]) == pytest.approx(int(of.used.max()), rel=1e-4)
    values = [row["waiting"] for row in waiting["data"]["values"]]
    assert (max(values) > 0) == (of.replayed.stall_ns.max() > 0) and max(values) <= 100
    assert rows[-1]["t"] == pytest.approx(of.replayed.ns / 1e9)


def test_the_table_has_what_moves_most_and_all_of_it(of: PlanReplay) -> None:
    found = of.contents()
    assert sum(one.in_bytes for one in found) == of.replayed.in_bytes
    assert sum(one.out_bytes for one in found) == of.replayed.out_bytes
    moved = [one.in_bytes + one.out_bytes for one in found]
    assert moved == sorted(moved, reverse=True) and moved[-1] > 0
    assert all(one.away for one in found)
    head, rows = plan_charts.contents(of)
    assert len(rows) == min(len(found), 15) and all(len(row) == len(head) for row in rows)
    parts = [float(row[-1].removesuffix(" %")) for row in rows]
    assert sum(parts) == pytest.approx(100 * sum(moved[:15]) / sum(moved), abs=1)
    assert rows[0][0].startswith(f"{found[0].names[0].name:016x}, block")


def test_a_plan_becomes_a_page(deepum: Deepum, plan: Plan, of: PlanReplay, tmp_path: Path) -> None:
    drawing = needed("vl_convert", "report")
    file = tmp_path / "p.plan"
    file.write_bytes(plan_files.encode(plan))
    result = deepum("report", file, "--output", tmp_path / "o.html", "--image", tmp_path / "o.svg")
    assert result.returncode == 0, result.stderr
    page = Parsed((tmp_path / "o.html").read_text())
    assert [heading.strip() for heading in page.headings] == [
        "deepum report",
        "Plan p.plan: <i> on card",
        "An iteration",
        "What moves most",
    ]
    assert not {"i"} & {tag for tag, _ in page.elements}
    (chart,) = page.charts.values()
    assert chart == json.loads(json.dumps(plan_charts.timeline(of)))
    assert "<svg" in drawing.vegalite_to_svg(json.dumps(chart))
    assert "<svg" in (tmp_path / "o.svg").read_text()
    text = (tmp_path / "o.html").read_text()
    assert f"{of.replayed.ns / 1e6:.1f} ms an iteration, planned by belady, " in text
    assert f"{of.replayed.ns / 1e8:.3f} times the lower bound" in text
    assert "<td>of the bound by linear programming</td><td>not known</td>" in text
    assert f"<td>moves</td><td>{len(plan.moves)}</td>" in text
    # It is as wide as the window, and what is wider scrolls in itself.
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in (
        page.elements
    )
    assert main_chart(inputs.Inputs(plans=[("p", of)]), []) == plan_charts.timeline(of)


def test_what_cannot_be_drawn_is_refused_with_the_reason(
    deepum: Deepum, plan: Plan, tmp_path: Path
) -> None:
    needed("vl_convert", "report")
    made = Outline.decode(plan.outline)
    small = replace(made, link=replace(made.link, memory_bytes=2 * MIB)).encode()
    shorter = replace(plan, launches=plan.launches[:-1])
    for data, cause in (
        (plan_files.encode(plan)[:-1], "a plan that was cut off"),
        (plan_files.encode(replace(plan, outline=b"")), "a plan without an outline"),
        (plan_files.encode(replace(plan, outline=b"nothing")), "its outline makes no sense"),
        (plan_files.encode(replace(plan, outline=small)), "it needs more memory than it was made"),
        (plan_files.encode(shorter), "its outline is of another iteration"),
    ):
        (tmp_path / "p").write_bytes(data)
        result = deepum("report", tmp_path / "p", cwd=tmp_path)
        assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
        assert result.stderr.startswith(f"deepum: error: plan {tmp_path / 'p'}: {cause}")
        assert "make it anew with `deepum plan --output`" in result.stderr
        assert not (tmp_path / "report.html").exists()


def test_damaged_outlines_are_refused_or_drawn(plan: Plan, tmp_path: Path) -> None:
    needed("vl_convert", "report")
    chance, text = Random(3), zlib.decompress(plan.outline)
    refused = 0
    for _ in range(150):
        damaged = bytearray(text)
        damaged[chance.randrange(len(text))] = chance.choice(b'0123456789,:[]{}"-.')
        whole = replace(plan, outline=zlib.compress(bytes(damaged)))
        (tmp_path / "p").write_bytes(plan_files.encode(whole))
        try:
            json.dumps(report(inputs.read([str(tmp_path / "p")]), [])._charts)
        except DeepumError as error:
            assert error.line.startswith("deepum: error: plan ")
            refused += 1
    assert 0 < refused < 150


def test_plans_of_a_run_are_a_table() -> None:
    tried = {"launches": 9, "moves": 4, "before_us": 2500.0, "with_us": None, "kept": False}
    kept = tried | {"with_us": 2000.0, "kept": True, "reason": None}
    found = run_charts.plans({"plans": [tried | {"reason": "no room"}, kept]})
    assert found is not None and [row[1:] for row in found[1]] == [
        ("9", "4", "2.5", "-", "no room"),
        ("9", "4", "2.5", "2.0", "kept"),
    ]
    assert run_charts.plans({"plans": None}) is run_charts.plans({}) is None
