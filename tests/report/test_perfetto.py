"""`deepum trace export`: what the Trace Event Format asks for, checked by hand, and all that
happened in it.
"""

from __future__ import annotations

import gzip
import json
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deepum._core import lib
from small import MIB, training

from deepum.report import perfetto
from deepum.report.timeline import KINDS, Timeline, observe
from deepum.simulate.policies import BY_NAME
from deepum.simulate.workload import load

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
Events = list[dict[str, Any]]


def valid(events: Events) -> None:
    """Each event has what its phase needs; slices of a thread nest; by time; every thread has a
    name.
    """
    latest = 0
    slices: dict[int, list[tuple[int, int]]] = defaultdict(list)
    threads, named = set(), set()
    for event in events:
        assert isinstance(event["name"], str) and event["name"]
        assert event["pid"] == 1 and isinstance(event["tid"], int)
        assert event["ph"] in ("M", "X", "i", "C")
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
            named |= {event["tid"]} if event["name"] == "thread_name" else set()
            continue
        at = round(event["ts"] * 1000)
        assert at >= latest >= 0
        latest = at
        assert isinstance(event["args"], dict)
        if event["ph"] == "X":
            duration = round(event["dur"] * 1000)
            assert duration >= 0
            slices[event["tid"]].append((at, at + duration))
        elif event["ph"] == "i":
            assert event["s"] == "t"
        else:
            assert event["args"] and all(
                isinstance(value, int) and value >= 0 for value in event["args"].values()
            )
        threads |= {event["tid"]} if event["ph"] != "C" else set()
    assert threads <= named
    for spans in slices.values():
        open_ends: list[int] = []
        for start, end in spans:
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1], (
                "slices of one thread overlap without nesting"
            )
            open_ends.append(end)


@pytest.fixture(scope="module", params=["on-demand", "deepum"])
def timeline(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    folder = tmp_path_factory.mktemp("perfetto") / "training"
    training(folder)
    return observe(load(str(folder), 5, False), "a100-40gb-g10", BY_NAME[request.param], 192 * MIB)


def test_the_format_is_kept(timeline: Timeline) -> None:
    valid(list(perfetto.events(timeline)))


def test_all_that_happened_is_in_it(timeline: Timeline) -> None:
    events = list(perfetto.events(timeline))
    moved = sum(event["args"]["bytes"] for event in events if event.get("cat") == "move")
    assert moved == timeline.of("prefetch", "evict", "fault", "driver_evict")["bytes"].sum()
    assert (
        sum(event["args"].get("faults", 0) for event in events if event.get("cat") == "move")
        == timeline.of("fault")["count"].sum()
    )
    for category, kind in (("kernel", "kernel"), ("hold", "hold"), ("decision", "decision")):
        assert sum(event.get("cat") == category for event in events) == len(timeline.of(kind))
    assert sum(event.get("cat") == "iteration" for event in events) == 6
    kernels = [event for event in events if event.get("cat") == "kernel"]
    assert [event["args"]["launch"] for event in kernels] == timeline.launches.sequence.tolist()
    assert {event["name"] for event in kernels} >= {"forward", "backward", "update"}
    counters = [event for event in events if event["ph"] == "C"]
    assert max(event["args"].get("resident", 0) for event in counters) <= 192 * MIB
    assert max(event["args"].get("dead", 0) for event in counters) > 0


def test_threads_have_the_kernels_of_one_stream_and_the_moves_of_one_cause(
    timeline: Timeline,
) -> None:
    events = list(perfetto.events(timeline))
    names = {
        event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"
    }
    where = {
        (event["cat"], event["name"]): names[event["tid"]] for event in events if event["ph"] == "X"
    }
    assert where["kernel", "forward"] == "stream 0"
    if timeline.policy == "deepum":
        assert where["hold", "held for prefetches"] == "stream 0"
        assert where["move", "prefetch"] == "to the GPU: prefetches"
        assert where["move", "evict"] == "to the host: evictions ahead of need"
    else:
        assert where["move", "fault"] == "to the GPU: fault batches"
        assert where["move", "driver evict"] == "to the host: evictions by the driver"


def test_what_would_overlap_gets_a_thread_of_its_own(timeline: Timeline) -> None:
    """Fault batches of a copy while those of a kernel are serviced: never nested, so side
    by side.
    """
    activities = timeline.activities.copy()
    faults = activities[activities["kind"] == KINDS["fault"]][:3].copy()
    for fault, (start, end) in zip(
        faults, ((100.0, 200.0), (150.0, 300.0), (200.0, 250.0)), strict=True
    ):
        fault["start_ns"], fault["end_ns"] = start, end
    events = list(perfetto.events(Timeline(**{**vars(timeline), "activities": faults})))
    valid(events)
    names = {
        event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"
    }
    assert [names[event["tid"]] for event in events if event["name"] == "fault"] == [
        "to the GPU: fault batches",
        "to the GPU: fault batches (2)",
        "to the GPU: fault batches",
    ]


def test_every_command_has_its_name() -> None:
    assert perfetto._COMMANDS[lib.DEEPUM_COMMAND_PREFETCH] == "prefetch"
    assert perfetto._COMMANDS[lib.DEEPUM_COMMAND_HOLD] == "hold"


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_the_command_writes_it(deepum: Deepum, workload: Path, tmp_path: Path, name: str) -> None:
    result = deepum(
        "trace",
        "export",
        workload,
        "--gpu-memory",
        "192MiB",
        "--steps",
        "2",
        "--output",
        tmp_path / name,
    )
    assert result.returncode == 0, result.stderr
    data = (tmp_path / name).read_bytes()
    document = json.loads(gzip.decompress(data) if name.endswith(".gz") else data)
    valid(document["traceEvents"])
    assert result.stdout == f"{tmp_path / name}: {len(document['traceEvents'])} events\n"
    assert document["traceEvents"][0]["args"]["name"] == "training, deepum on a100-40gb-g10"


def test_a_recorded_run_is_exported_with_its_copies(recorded_run: Path) -> None:
    loaded = load(str(recorded_run / "run.log"), None, False)
    events = list(perfetto.events(observe(loaded, "v100-16gb", BY_NAME["deepum"], 256 * MIB)))
    valid(events)
    copied = [event["args"] for event in events if event["name"] == "copy out"]
    assert [one["copies"] for one in copied] == [1] * 10, "each array is read back"
    assert 0 < sum(one["bytes"] for one in copied) <= 10 * 40 * MIB, (
        "over the link, the part that was not on the host already"
    )
    assert sum(event.get("cat") == "kernel" for event in events) == 40


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("nowhere", "--output", "x.json"), "nowhere: No such file or directory; "),
        (("training",), "Missing option '-o' / '--output'"),
        (("training", "--output", "x.json", "--policy", "luck"), "policy 'luck': is unknown; "),
        (
            ("training", "--output", "x.json", "--policy", "deepum,on-demand"),
            "is more than one; name one of ",
        ),
        (("training", "--output", "x.json", "--machine", "abacus"), "machine 'abacus': "),
        (
            ("training", "--output", "x.json", "--gpu-memory", "much"),
            "--gpu-memory: 'much' is not a size; ",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line(
    deepum: Deepum, workload: Path, arguments: tuple[str, ...], cause: str
) -> None:
    result = deepum("trace", "export", *arguments, cwd=workload.parent)
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert result.stderr.startswith("deepum: error: ") and cause in result.stderr


def test_a_place_that_cannot_be_written_is_said(deepum: Deepum, workload: Path) -> None:
    result = deepum(
        "trace", "export", workload, "--steps", "1", "--output", workload / "no" / "out.json"
    )
    assert result.returncode == 125
    assert "no/out.json: No such file or directory; name a file" in result.stderr
