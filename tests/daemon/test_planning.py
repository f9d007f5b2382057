"""Plans beside a session: when the policy is asked to go on, the process that plans, and its end."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_program import SYNCHRONISE, FakeProgram, RefusedError
from running import wait_until

from deepum.core import (
    BlockRange,
    Core,
    CoreSettings,
    EventWriter,
    LaunchTime,
    Plan,
    Recording,
    plan_files,
)
from deepum.core.plan_requests import PlanInput
from deepum.daemon.background import BackgroundPlanning
from deepum.daemon.link import LinkRates, link_rates
from deepum.daemon.planning import SessionPlanning

PROGRESS, WAITED = 16, 18
ARRAYS, BLOCKS, CARD_BLOCKS = 6, 32, 128
PLANNED = {
    "DEEPUM_POLICY": "planned",
    "DEEPUM_FAULTS": "times",
    "DEEPUM_SIM_MACHINE": "v100-16gb",
    "DEEPUM_SYNC": "1",
}


class FakePlanning:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.requests: list[int] = []
        self.answer: Plan | str | None = None
        self.polls = 0
        self.stops = 0

    def begin(self, asked: PlanInput) -> None:
        self.requests.append(asked.memory_bytes)

    def poll(self) -> Plan | str | None:
        self.polls += 1
        return self.answer

    def stop(self) -> None:
        self.stops += 1


class Sweep:
    """A program in the process of the test: arrays of which the card holds two thirds."""

    def __init__(self) -> None:
        self.core = Core(CoreSettings.default())
        self.writer = EventWriter()
        self.now = 1000
        self.writer.device(CARD_BLOCKS)
        for slot in range(ARRAYS):
            self.writer.allocate(slot, BLOCKS)

    def round(self) -> None:
        for slot in range(ARRAYS):
            launch = self.writer.execute(100 + slot, [BlockRange(slot, 0, BLOCKS)])
            self.now += 5000
            self.writer.waited(0, launch, 0)
            self.writer.progress(0, launch, launch, self.now)
        self.writer.synchronise()
        self.core.process(self.writer.take())
        self.core.take_commands()


@pytest.fixture
def warned() -> list[str]:
    return []


def test_the_policy_is_polled_every_few_milliseconds_and_while_a_plan_is_made(
    warned: list[str],
) -> None:
    sweep, planning, now = Sweep(), FakePlanning(), [10.0]
    session = SessionPlanning(sweep.core, planning, warned.append, clock=lambda: now[0])
    assert not session.turned(busy=False) and session.sleep_ms == -1
    for _ in range(30):
        sweep.round()
        now[0] += 0.01
        assert session.turned(busy=True)
        if planning.requests:
            break
    assert planning.requests and planning.requests[0] < CARD_BLOCKS << 21
    assert session.sleep_ms == 5
    # Nothing happens but that the plan is made.
    polls = planning.polls
    for _ in range(10):
        now[0] += 0.001
        session.turned(busy=False)
    assert 1 <= planning.polls - polls <= 3
    planning.answer = "there is none"
    now[0] += 0.01
    assert session.turned(busy=False)
    assert [one["reason"] for one in session.summary()] == ["there is none"]
    assert session.sleep_ms == -1 and session.plan is None and warned == []
    # Events that came just after a poll are not left lying.
    session.turned(busy=True)
    assert session.sleep_ms == 5


def test_a_policy_that_fails_ends_plans_and_nothing_else(warned: list[str]) -> None:
    class Broken(FakePlanning):
        def begin(self, asked: PlanInput) -> None:
            raise ValueError("no room")

    sweep, planning, now = Sweep(), Broken(), [0.0]
    session = SessionPlanning(sweep.core, planning, warned.append, clock=lambda: now[0])
    for _ in range(30):
        sweep.round()
        now[0] += 1
        session.turned(busy=True)
    assert warned == ["no plans are made any more: ValueError('no room')"]
    assert planning.stops >= 1 and session.sleep_ms == -1 and session.plan is None
    assert sweep.core.launch_times() == []


def recorded() -> tuple[Recording, list[LaunchTime]]:
    """An iteration of the sweep, and when its launches were done."""
    sweep = Sweep()
    for _ in range(6):
        sweep.round()
    sweep.core.want_times(True)
    sweep.core.record(ARRAYS)
    for _ in range(3):
        sweep.round()
    recording = sweep.core.recorded()
    assert recording is not None
    return recording, sweep.core.launch_times()


Make = Callable[..., BackgroundPlanning]


@pytest.fixture
def planning() -> Iterator[Make]:
    """A planner in the background; of a Python text with script="..."."""
    made: list[BackgroundPlanning] = []

    def make(script: str | None = None, **options: Any) -> BackgroundPlanning:
        if script is not None:
            options["command"] = [sys.executable, "-c", script]
        made.append(BackgroundPlanning(lambda: LinkRates(12, 12), **options))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def answer_of(planning: BackgroundPlanning) -> Plan | str:
    """What comes of what was asked for."""
    answer: list[Plan | str | None] = [None]

    def came() -> bool:
        answer[0] = planning.poll()
        return answer[0] is not None

    assert wait_until(came, 60) and answer[0] is not None
    assert planning.poll() is None  # it is told once
    return answer[0]


def ask(planning: BackgroundPlanning) -> Plan | str:
    """Asks for a plan of the sweep, and waits for it."""
    planning.begin(PlanInput(*recorded(), (CARD_BLOCKS - 16) << 21))
    return answer_of(planning)


def test_the_worker_makes_a_plan_that_a_core_takes(planning: Make) -> None:
    made = planning()
    plan = ask(made)
    assert isinstance(plan, Plan), plan
    assert list(plan.launches) == [100 + slot for slot in range(ARRAYS)] and plan.moves
    Core(CoreSettings.default()).follow_plan(plan.launches, plan.moves)
    assert isinstance(ask(made), Plan)  # and again


def test_a_worker_that_refuses_tells_why(planning: Make) -> None:
    made = planning()
    made.begin(PlanInput(Recording(b"", b""), [], 1 << 30))
    assert answer_of(made) == "recording: has no launches"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import sys; print('one\\ntwo\\n', file=sys.stderr); sys.exit(3)", "two"),
        ("import sys; sys.exit(3)", "the planner ended with code 3"),
        ("print('nonsense')", "the planner gave not a plan"),
        ("pass", "the planner gave not a plan"),
        ("import os; os.kill(os.getpid(), 9)", "the planner ended with code -9"),
    ],
)
def test_what_a_worker_that_fails_leaves_is_the_reason(
    planning: Make, script: str, reason: str
) -> None:
    assert ask(planning(script)) == reason


def test_a_worker_that_cannot_be_started_is_a_reason(planning: Make) -> None:
    made = planning(command=["/no/such/planner"])
    assert ask(made) == "the planner cannot be started: No such file or directory"


def test_a_slow_worker_is_ended(planning: Make, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    script = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    made = planning(script, most_seconds=1)
    assert ask(made) == "planning took longer than 1 s"
    assert not Path(f"/proc/{mark.read_text()}").exists()


def test_nobody_waits_for_a_worker_that_does_not_read(planning: Make) -> None:
    made = planning("import time; time.sleep(60)")
    recording = Recording(bytes(64 << 20), b"")  # more than a pipe holds
    began = time.monotonic()
    made.begin(PlanInput(recording, [], 1 << 30))
    assert made.poll() is None
    made.stop()
    assert time.monotonic() - began < 10 and made.poll() is None


def test_the_worker_has_neither_the_shim_nor_our_variables(
    planning: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("DEEPUM_POLICY", "planned")
    message = ask(
        planning("import json, os, sys; print(json.dumps(dict(os.environ)), file=sys.stderr); 1/0")
    )
    assert message == "ZeroDivisionError: division by zero"
    script = "import json, os, sys; print(json.dumps(dict(os.environ)), file=sys.stderr); exit(1)"
    environment = json.loads(str(ask(planning(script))))
    assert environment["OMP_NUM_THREADS"] == "1"
    assert not {name for name in environment if name.startswith(("DEEPUM_", "LD_PRELOAD"))}


def card(root: Path, name: str, **files: str) -> None:
    folder = root / "sys/bus/pci/devices" / name
    folder.mkdir(parents=True)
    attributes = {"vendor": "0x10de\n", "class": "0x030200\n", **files}
    for file, text in attributes.items():
        (folder / file).write_text(text)


def test_the_links_rate_is_that_of_the_slowest_card(tmp_path: Path) -> None:
    link = {"current_link_width": "16\n"}
    card(tmp_path, "0000:01:00.0", current_link_speed="16.0 GT/s PCIe\n", **link)
    assert link_rates({}, tmp_path).in_gbps == pytest.approx(25.2, abs=0.01)
    card(tmp_path, "0000:02:00.0", current_link_speed="8.0 GT/s PCIe\n", **link)
    card(tmp_path, "0000:03:00.0", current_link_speed="2.5 GT/s PCIe\n", vendor="0x8086\n", **link)
    sound = {"class": "0x040300\n"}
    card(tmp_path, "0000:04:00.1", current_link_speed="2.5 GT/s PCIe\n", **sound, **link)
    found = link_rates({}, tmp_path)
    assert found == LinkRates(found.in_gbps, found.in_gbps)
    assert found.in_gbps == pytest.approx(12.6, abs=0.01)


def test_a_link_that_nobody_tells_is_guessed_with_a_warning(tmp_path: Path) -> None:
    card(tmp_path, "0000:01:00.0", current_link_speed="Unknown\n", current_link_width="0\n")
    for root in (tmp_path, tmp_path / "empty"):
        found = link_rates({}, root)
        assert (found.in_gbps, found.out_gbps) == (12, 12)
        assert found.warning and found.warning.startswith("plans are made for a link of 12 GB/s: ")


def test_a_simulated_machine_has_its_own_rates() -> None:
    plain = link_rates({"DEEPUM_SIM_MACHINE": "v100-16gb"})
    changed = link_rates(
        {"DEEPUM_SIM_MACHINE": "v100-16gb", "DEEPUM_SIM_FIGURES": "launch_ns=1.0,d2h_gbps=3.5"}
    )
    assert plain.warning is changed.warning is None and plain.in_gbps > 1
    assert (changed.in_gbps, changed.out_gbps) == (plain.in_gbps, 3.5)
    for machine, figures in (
        ("pdp11", ""),
        ("v100-16gb", "h2d_gbps=1-2"),
        ("v100-16gb", "h2d_gbps=0"),
    ):
        variables = {"DEEPUM_SIM_MACHINE": machine, "DEEPUM_SIM_FIGURES": figures}
        assert link_rates(variables).warning is not None


class Timed:
    """A fake program that sweeps and says when its launches were done."""

    def __init__(self, folder: Path, settings: dict[str, str], pid: int) -> None:
        self.program = FakeProgram(folder, settings, pid)
        self.now = 1000
        self.program.device(CARD_BLOCKS << 21)
        for slot in range(ARRAYS):
            self.program.allocate(slot, BLOCKS << 21)

    def round(self) -> None:
        for slot in range(ARRAYS):
            launch = self.program.execute(100 + slot, slot, BLOCKS)
            self.program.wait_decided(launch)
            self.now += 5000
            self.program.emit(WAITED, struct.pack("<IIQQ", 0, 0, launch, 0))
            body = struct.pack("<IIQQQ", 0, 0, launch, launch, self.now)
            self.program.emit(PROGRESS, body)
        self.program.wait_decided(self.program.emit(SYNCHRONISE, b""))
        self.program.commands()


def workers(daemon: subprocess.Popen[str]) -> list[int]:
    """Processes of the daemon that plan."""
    children = Path(f"/proc/{daemon.pid}/task").glob("*/children")
    found = [int(child) for file in children for child in file.read_text().split()]
    return [pid for pid in found if b"deepum.planners.worker" in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def until_planning(timed: Timed, daemon: subprocess.Popen[str]) -> list[int]:
    for _ in range(400):
        timed.round()
        time.sleep(0.006)
        if found := workers(daemon):
            return found
    raise AssertionError("nothing is planned")


@pytest.mark.parametrize("end", ["program", "daemon"])
def test_the_sessions_end_ends_its_worker(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path, end: str
) -> None:
    timed = Timed(runtime_dir, {"DEEPUM_STATS_DIR": str(tmp_path), **PLANNED}, 61)
    (worker,) = until_planning(timed, daemon)
    if end == "program":
        timed.program.close()
    else:
        daemon.terminate()
    assert wait_until((tmp_path / "session-61.json").exists)
    assert wait_until(lambda: b"deepum" not in _command(worker))
    (plan_entry,) = json.loads((tmp_path / "session-61.json").read_text())["plans"]
    assert plan_entry["launches"] == ARRAYS and not plan_entry["kept"]
    if end == "daemon":
        timed.program.close()


def test_a_plan_is_tried_and_judged_though_the_program_is_idle_while_it_is_made(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path
) -> None:
    timed = Timed(runtime_dir, {"DEEPUM_STATS_DIR": str(tmp_path), **PLANNED}, 62)
    until_planning(timed, daemon)
    assert wait_until(lambda: not workers(daemon), 60)  # its answer has been taken
    for _ in range(12):
        timed.round()
        time.sleep(0.006)
    timed.program.close()
    assert wait_until((tmp_path / "session-62.json").exists)
    session = json.loads((tmp_path / "session-62.json").read_text())
    assert session["core"]["planned_launches"] > 0 and session["warnings"] == []
    # Iterations take as long with it, so it is not kept.
    first = session["plans"][0]
    assert first["before_us"] == first["with_us"] == ARRAYS * 5000
    assert first["moves"] > 0 and not first["kept"]


def test_without_times_the_policy_is_refused(
    daemon: subprocess.Popen[str], runtime_dir: Path
) -> None:
    with pytest.raises(RefusedError, match=r"policy planned: .*DEEPUM_FAULTS=times"):
        FakeProgram(runtime_dir, {"DEEPUM_POLICY": "planned"})


def test_a_plan_is_followed_from_the_start_and_left_as_it_was(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path, planning: Make
) -> None:
    plan = ask(planning())
    assert isinstance(plan, Plan)
    file = tmp_path / "plan"
    file.write_bytes(plan_files.encode(plan))
    before = file.read_bytes()
    settings = {"DEEPUM_STATS_DIR": str(tmp_path), "DEEPUM_PLAN": str(file), **PLANNED}
    timed = Timed(runtime_dir, settings, 63)
    timed.round()
    timed.program.close()
    assert wait_until((tmp_path / "session-63.json").exists)
    session = json.loads((tmp_path / "session-63.json").read_text())
    assert session["core"]["planned_launches"] > 0
    assert [one["kept"] for one in session["plans"]] == [True]
    assert file.read_bytes() == before
    file.write_bytes(before[:-1])
    with pytest.raises(RefusedError, match="a plan that was cut off"):
        FakeProgram(runtime_dir, settings)
