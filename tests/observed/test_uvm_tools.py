"""Faults through /dev/nvidia-uvm-tools: the same as through CUPTI, and no more than a word where it
cannot be had.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from touching import TOUCH

from deepum.core import Fault
from deepum.core.records import FAULT_WRITE

Run = Callable[..., Any]
FIRST_LAYOUT, CHOICE_OF_LAYOUTS, SECOND_LAYOUT = "550.40.07", "550.163.01", "580.65.06"
RING = (1 << 16) - 1  # records that a queue holds

# Arrays that come and go on a card of 32 blocks, read and written in any order, looked at or not.
RANDOM = (
    TOUCH
    + """
    import random
    rng = random.Random(SEED)
    live = []
    for step in range(120):
        what = rng.random()
        if not live or what < 0.1:
            blocks = rng.randint(1, 16)
            live.append((device(blocks * n), blocks))
        elif what < 0.15:
            ck(d.cuCtxSynchronize())  # what a kernel that still runs faults on is not told once it is freed
            ck(d.cuMemFree(live.pop(rng.randrange(len(live)))[0]))
        elif what < 0.3:
            ck(d.cuCtxSynchronize())
        else:
            (p, b), (q, c) = rng.choice(live), rng.choice(live)
            i, j = rng.randrange(b), rng.randrange(c)
            count = rng.randint(1, (b - i) * n)
            ck(m.add(0, at(p, i), at(q, j), at(q, j), n) if rng.random() < 0.5 else m.scale(0, at(p, i), count, 2.0))
    ck(d.cuCtxSynchronize())
"""
)
PROGRAM = (
    TOUCH
    + """
    a = device(12 * n)
    for block in range(12):
        ck(m.scale(0, at(a, block), n, 2.0))
        ck(d.cuCtxSynchronize())
"""
)


@pytest.mark.parametrize(
    ("seed", "release"), [(0, FIRST_LAYOUT), (1, CHOICE_OF_LAYOUTS), (2, SECOND_LAYOUT)]
)
def test_both_sources_tell_the_same_in_both_layouts(run: Run, seed: int, release: str) -> None:
    program = RANDOM.replace("SEED", str(seed))
    interval = {"DEEPUM_FAULT_INTERVAL": "7"}
    cupti = run(program, "--faults", "on", "--tune", "fault_source=cupti", env=interval)
    assert len(cupti.faults) > 10 and cupti.observed == cupti.statistics["faults"]
    uvm_tools = run(
        program,
        "--faults",
        "on",
        "--tune",
        "fault_source=uvm-tools",
        env=interval | {"DEEPUM_SIM_UVM_TOOLS": release},
    )
    assert uvm_tools.log == cupti.log
    assert uvm_tools.statistics["warnings"] == [] and "faults are" not in uvm_tools.err


def test_it_is_on_only_while_tables_learn(run: Run) -> None:
    loop = (
        "    a = device(64 * n)\n"
        + "    for step in range(24):\n        for block in range(0, 64, 4):\n"
    )
    loop = (
        TOUCH
        + loop
        + "            ck(m.set(0, at(a, block), 4 * n, 1.0))\n        ck(d.cuCtxSynchronize())\n"
    )
    ran = run(loop, "--tune", "fault_source=uvm-tools")
    assert 0 < ran.observed < ran.statistics["faults"]
    # One iteration to learn in, two in which nothing was new, 256 launches, and at most a look
    # later; as with CUPTI.
    assert ran.launches_before_last_fault <= 16 + 2 * 16 + 256 + 64


def test_several_devices_are_told_apart(run: Run) -> None:
    ran = run(
        """
        ck(d.cuInit(0))
        n = (2 << 20) // 4
        for ordinal, blocks in ((1, 3), (0, 2)):
            ck(d.cuCtxSetCurrent(ck(d.cuDevicePrimaryCtxRetain(ordinal))))
            m = Module()
            p = device(8 * n)
            ck(m.set(0, p, blocks * n, 1.0))
            ck(d.cuCtxSynchronize())
        """,
        "--faults",
        "on",
        "--tune",
        "fault_source=uvm-tools",
        env={"DEEPUM_SIM_DEVICES": "2"},
    )
    assert [(f.device, f.range.count, f.flags) for f in ran.faults] == [
        (1, 3, FAULT_WRITE),
        (0, 2, FAULT_WRITE),
    ]
    assert ran.observed == ran.statistics["faults"]


def test_what_finds_no_room_is_left_out_and_said(run: Run) -> None:
    # A card of 32 blocks, 64 blocks in turns, and nobody looks before the end.
    ran = run(
        TOUCH
        + """
    a = device(64 * n)
    for step in range(384):
        ck(m.set(0, at(a, step % 2 * 32), 32 * n, 1.0))
    ck(d.cuCtxSynchronize())
    """,
        *("--faults", "on", "--tune", "fault_source=uvm-tools"),
        env={"DEEPUM_LOG": "2", "DEEPUM_FAULT_INTERVAL": str(1 << 20)},
    )
    lost = ran.statistics["faults"] - RING
    assert lost > 0 and ran.observed == RING
    warning = (
        f"deepum: some faults are not observed: uvm-tools: its queue was full, {lost} were left out"
    )
    assert ran.err.count("some faults are not observed") == ran.err.count(warning) == 1


UNUSABLE = {
    "595.71.05": (
        "the events' layout is not known for driver 595.71.05, but for 550, 555, 565, 570, 575 "
        "and 580"
    ),
    "absent": "/dev/nvidia-uvm-tools: No such file or directory",
    "forbidden": "/dev/nvidia-uvm-tools: Permission denied",
    "refusing": "its queue was refused with NV_STATUS 0x1b",
    "mute": "its events were refused with error 0x5",
}


@pytest.mark.parametrize("driver", UNUSABLE)
def test_where_it_cannot_be_had_one_line_says_why(run: Run, driver: str) -> None:
    ran = run(PROGRAM, "--tune", "fault_source=uvm-tools", env={"DEEPUM_SIM_UVM_TOOLS": driver})
    assert ran.faults == [] and ran.statistics["faults"] > 0
    assert [line for line in ran.err.splitlines() if "faults are" in line] == [
        f"deepum: faults are not observed: uvm-tools: {UNUSABLE[driver]}"
    ]


def test_events_that_are_laid_out_otherwise_end_it(run: Run) -> None:
    ran = run(PROGRAM, "--tune", "fault_source=uvm-tools", env={"DEEPUM_SIM_UVM_TOOLS": "skewed"})
    assert ran.observed < ran.statistics["faults"]
    assert ran.blocks == {} or set(ran.blocks) == {(0, 0)}
    warning = (
        "deepum: faults are not observed any more: uvm-tools: its events are not laid out as this "
        "driver's should be"
    )
    assert [line for line in ran.err.splitlines() if "faults are" in line] == [warning]


@pytest.mark.parametrize("lock_step", ["0", "1"])
def test_a_cupti_that_refuses_is_replaced(
    by_hand: Run, spy: Callable[..., Path], tmp_path: Path, lock_step: str
) -> None:
    from deepum.core import EventLog, events

    calls, log = tmp_path / "calls", tmp_path / "log"
    settings = {
        "CUPTI_SPY": str(calls),
        "DEEPUM_SYNC": lock_step,
        "DEEPUM_RECORD": str(log),
        "DEEPUM_POLICY": "on-demand",
    }
    done = by_hand(PROGRAM + "    import time; time.sleep(0.5)\n", spy(), **settings)
    assert calls.read_text().split() == ["cuptiSubscribe"]
    warning = (
        "deepum: faults are observed through uvm-tools: CUPTI: cuptiSubscribe answered with error "
        "35"
    )
    assert done.stderr.count(warning) == 1
    faults = [event for event in events(EventLog.read(log).records) if isinstance(event, Fault)]
    assert {
        block for f in faults for block in range(f.range.first, f.range.first + f.range.count)
    } == set(range(12))


def test_a_child_process_lets_go_of_the_queue(run: Run) -> None:
    ran = run(
        PROGRAM
        + """
    def queues():
        return {fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2 and os.path.realpath(f"/proc/self/fd/{fd}") == "/dev/null"}
    own = queues()
    assert len(own) == 1, own
    child = os.fork()
    if child == 0:
        os._exit(0 if not queues() and d.cuCtxSynchronize()[0] != 0 else 1)
    assert os.waitpid(child, 0)[1] == 0 and queues() == own
    ck(m.set(0, a, n, 1.0))
    b = device(4 * n)
    ck(m.set(0, b, 4 * n, 1.0))
    ck(d.cuCtxSynchronize())
    """,
        "--faults",
        "on",
        "--tune",
        "fault_source=uvm-tools",
    )
    assert {block for slot, block in ran.blocks if slot == 1} == set(range(4))
    assert ran.observed == ran.statistics["faults"]


def test_without_asking_the_device_is_not_opened(run: Run) -> None:
    ran = run(
        PROGRAM
        + (
            '    assert "/dev/null" not in {os.path.realpath(f.path) for f in '
            'os.scandir("/proc/self/fd") if int(f.name) > 2}\n'
        ),
        *("--faults", "off", "--tune", "fault_source=uvm-tools"),
    )
    assert ran.faults == []
