"""From what happened to what a chart shows: nothing is lost in it, and it does not grow with the
run.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
from small import MIB, training

from deepum.core import UM_BLOCK_BYTES, BlockRange
from deepum.errors import UsageError
from deepum.report import charts, perfetto, series
from deepum.report.timeline import KINDS, Timeline, launches, observe
from deepum.simulate.mode import GATED, LOCK_STEP, Mode
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import ACTIVITY
from deepum.simulate.workload import Workload, load
from deepum.trace import Trace, TraceWriter


def of_training(
    folder: Path, policy: str = "deepum", steps: int = 5, layers: int = 12, mode: Mode = GATED
) -> Timeline:
    training(folder, layers=layers)
    return observe(
        load(str(folder), steps, False), "a100-40gb-g10", BY_NAME[policy], 192 * MIB, mode=mode
    )


def records(rows: list[tuple[float, float, int]]) -> np.ndarray:
    made = np.zeros(len(rows), ACTIVITY)
    for i, (start, end, size) in enumerate(rows):
        made[i]["start_ns"], made[i]["end_ns"], made[i]["bytes"] = start, end, size
    return made


def test_a_rate_has_all_bytes_where_they_were_moved() -> None:
    at = np.array([0.0, 10.0, 20.0, 30.0, 40.0])
    found = series.rate(records([(0, 10, 100), (15, 35, 200), (38, 38, 7)]), at)
    assert found.tolist() == pytest.approx([10.0, 5.0, 10.0, 5.0 + 0.7])
    assert series.rate(records([]), at).tolist() == [0, 0, 0, 0]


def test_rates_of_records_that_overlap_add_up() -> None:
    random = Random(3)
    rows = [
        (start := random.uniform(0, 900), start + random.uniform(0, 99), random.randrange(1000))
        for _ in range(200)
    ]
    at = series.edges(0, 1000, 37)
    assert (series.rate(records(rows), at) * np.diff(at)).sum() == pytest.approx(
        sum(size for _, _, size in rows)
    )


def test_the_highest_value_of_a_step_function_in_each_part() -> None:
    times, values = np.array([5.0, 12.0, 13.0, 41.0]), np.array([3, 9, 1, 4])
    assert series.highest(
        times, values, np.array([0.0, 10.0, 20.0, 30.0, 40.0, 50.0])
    ).tolist() == [3, 9, 1, 1, 4]


@pytest.mark.parametrize("policy", ["on-demand", "deepum"])
def test_link_use_adds_up_to_the_bytes_moved(tmp_path: Path, policy: str) -> None:
    timeline = of_training(tmp_path / "w", policy)
    at = series.edges(0, timeline.activities["end_ns"].max(), 300)
    for kinds in (("prefetch", "fault"), ("evict", "driver_evict")):
        moved = timeline.of(*kinds)
        assert (series.rate(moved, at) * np.diff(at)).sum() == pytest.approx(
            moved["bytes"].sum(), rel=1e-6
        )
        assert moved["bytes"].sum() > 0


def test_no_moves_are_faster_than_the_link(tmp_path: Path) -> None:
    timeline = of_training(tmp_path / "w", mode=LOCK_STEP)
    at = series.edges(0, timeline.ns, 200)
    assert series.rate(timeline.of("prefetch", "fault"), at).max() <= timeline.gbps[0] * (1 + 1e-6)
    assert series.rate(timeline.of("evict"), at).max() <= timeline.gbps[1] * (1 + 1e-6)


def test_nor_are_they_behind_gates_each_by_itself(tmp_path: Path) -> None:
    """A fault takes its share of the link from a prefetch under way, which is drawn as slower over
    all of its time.
    """
    timeline = of_training(tmp_path / "w", mode=GATED)
    at = series.edges(0, timeline.ns, 200)
    for kind, gbps in (
        ("prefetch", timeline.gbps[0]),
        ("fault", timeline.gbps[0]),
        ("evict", timeline.gbps[1]),
    ):
        assert 0 < series.rate(timeline.of(kind), at).max() <= gbps * (1 + 1e-6)


def test_memory_of_a_program_at_its_launches() -> None:
    writer = TraceWriter()
    writer.device(64)
    writer.allocate(0, 4)  # PyTorch's: reports follow
    writer.allocate(1, 2)  # the program's own, in use as long as it lives
    whole = BlockRange(0, 0, 1)
    writer.block(True, 0, 0, 3 * MIB, 3 * MIB)
    writer.execute(1, [whole])
    writer.block(True, 0, 4 * MIB, MIB, 4 * MIB)
    writer.block(False, 0, 0, 3 * MIB, MIB)
    writer.execute(2, [whole])
    writer.free(1)
    writer.execute(3, [whole], stream=5)
    writer.free(0)
    writer.execute(4, [])
    found = launches(writer.trace("memory"))
    block = UM_BLOCK_BYTES
    assert found.allocated.tolist() == [6 * block, 6 * block, 4 * block, 0]
    assert found.used.tolist() == [3 * MIB + 2 * block, MIB + 2 * block, MIB, 0]
    assert found.execution_hash.tolist() == [1, 2, 3, 4]
    assert found.stream.tolist() == [0, 0, 5, 0]


def test_memory_over_time_is_within_its_limits(tmp_path: Path) -> None:
    timeline = of_training(tmp_path / "w")
    memory = series.memory(timeline, series.edges(0, timeline.ns, 100))
    assert (
        memory["resident"].max()
        == timeline.activities["resident_bytes"].max()
        <= 192 * MIB
        < memory["allocated"].max()
    )
    assert np.all(memory["dead"] <= memory["allocated"])
    assert memory["dead"].max() > 0


@pytest.mark.parametrize("parts", [10, 100, 10_000])
def test_bars_cover_all_that_happened(tmp_path: Path, parts: int) -> None:
    timeline = of_training(tmp_path / "w")
    found = series.segments(timeline, 0, timeline.ns, parts)
    for kind in ("kernel", "prefetch", "evict", "hold"):
        bars = [one for one in found if one.kind == kind]
        records = timeline.of(kind)
        assert sum(one.count for one in bars) == records["count"].sum()
        assert sum(one.bytes for one in bars) == records["bytes"].sum()
        assert 0 < len(bars) <= min(2 * parts + 1, len(records))
        assert all(a.end <= b.start + 1e-6 for a, b in itertools.pairwise(bars))


def test_a_steady_step_is_the_last_but_one(tmp_path: Path) -> None:
    timeline = of_training(tmp_path / "w")
    assert series.steady_step(timeline) == (timeline.steps[-3], timeline.steps[-2])
    assert len(timeline.steps) == 6


def test_charts_do_not_grow_with_the_run(tmp_path: Path) -> None:
    """Four times the launches, and not much more to draw."""
    small, large = (
        of_training(tmp_path / str(steps), steps=steps, layers=24) for steps in (12, 48)
    )
    assert len(large.activities) > 3.5 * len(small.activities)
    for draw in (charts.whole_run, charts.one_step):
        assert len(json.dumps(draw(large))) < 1.3 * len(json.dumps(draw(small))) < 400_000


def test_kernels_have_the_names_of_the_workload(tmp_path: Path) -> None:
    timeline = of_training(tmp_path / "w")
    assert {timeline.kernel_name(i) for i in range(-48, 0)} == {"forward", "backward", "update"}
    bare = Timeline(**{**vars(timeline), "names": {}})
    assert bare.kernel_name(0) == f"{int(timeline.launches.execution_hash[0]):016x}"


def test_a_trace_of_nothing_can_be_drawn() -> None:
    writer = TraceWriter()
    writer.device(64)
    timeline = observe(
        Workload("nothing", writer.trace("nothing"), "v100-16gb"), "v100-16gb", BY_NAME["deepum"]
    )
    assert len(timeline.activities) == 0
    assert charts.whole_run(timeline)["vconcat"] and charts.one_step(timeline)["vconcat"]
    assert timeline.launched(np.array([7], dtype=np.uint64)).tolist() == [-1]


def test_every_kind_of_activity_is_known() -> None:
    from deepum._core import ffi

    native = {
        name.removeprefix("DEEPUM_ACTIVITY_").lower()
        for name in ffi.typeof("enum deepum_activity_kind").relements
    }
    assert native == set(KINDS)


def test_damaged_traces_are_refused_or_drawn(tmp_path: Path) -> None:
    training(tmp_path / "w", layers=3)
    whole = load(str(tmp_path / "w"), 2, False)
    random = Random(13)
    refused = 0
    for _ in range(60):
        broken_events, broken_work = bytearray(whole.trace.events), bytearray(whole.trace.work)
        for _ in range(random.randrange(1, 4)):
            target = random.choice((broken_events, broken_work))
            target[random.randrange(len(target))] = random.randrange(256)
        broken = Workload(
            "broken", Trace("broken", bytes(broken_events), bytes(broken_work)), whole.machine
        )
        try:
            timeline = observe(broken, broken.machine, BY_NAME["deepum"], 64 * MIB)
        except UsageError:
            refused += 1
            continue
        json.dumps([charts.whole_run(timeline), charts.one_step(timeline)], allow_nan=False)
        assert sum(1 for _ in perfetto.events(timeline)) >= len(timeline.of("kernel"))
    assert 0 < refused < 60
