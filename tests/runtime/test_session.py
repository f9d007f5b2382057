"""How a program finds its daemon, does without one, and leaves."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_side import (
    ALLOCATE,
    DEVICE,
    EXECUTE,
    PREFETCH,
    PROGRAM_LEFT,
    Command,
    Event,
    FakeDaemon,
    socket_of,
)
from runtime_tools import Ran

Run = Callable[..., Ran]
Start = Callable[..., "subprocess.Popen[str]"]

ALONE = "; going on with plain unified memory, without prefetching\n"


def test_the_hello_brings_the_settings_and_sealed_memory_and_the_device_comes_first(
    run: Run, runtime_folder: Path
) -> None:
    with FakeDaemon(runtime_folder) as daemon:
        ran = run(
            "enter(); enter(); allocate(4); execute()",
            DEEPUM_POLICY="on-demand",
            OTHER="x",
            DEEPUM_GPU_MEMORY="8GiB",
        )
        session = daemon.finished()
    assert ran.code == 0 and ran.err == ""
    assert session.settings["DEEPUM_POLICY"] == "on-demand" and "OTHER" not in session.settings
    assert session.seals & 0b110 == 0b110  # neither shrinks nor grows
    assert [event.kind for event in session.events] == [DEVICE, ALLOCATE, EXECUTE]
    assert session.events[0].words == (16 << 30, 8 << 30)
    assert session.load(PROGRAM_LEFT, "I") == 1


def test_capacity_is_the_free_memory_when_no_budget_is_given(
    run: Run, runtime_folder: Path
) -> None:
    with FakeDaemon(runtime_folder) as daemon:
        run("enter()", DEEPUM_GPU_RESERVE="0")
        assert daemon.finished().events[0].words == (16 << 30, 15 << 30)


def test_memory_from_before_the_session_is_announced(run: Run, runtime_folder: Path) -> None:
    with FakeDaemon(runtime_folder) as daemon:
        run("allocate(4); enter()")
        assert [event.kind for event in daemon.finished().events] == [DEVICE, ALLOCATE]


def test_a_refusal_is_told_once_and_the_program_goes_on(run: Run, runtime_folder: Path) -> None:
    with FakeDaemon(runtime_folder, refuse="too many\tprograms; end one"):
        ran = run("enter(); enter(1); tell(sequence=execute())")
    assert ran.facts()["sequence"] == 0
    assert ran.err == "deepum: warning: daemon: refused this program: too many programs; end one\n"


@pytest.mark.parametrize(
    "answer", [b"DEEPUMOK" + b"\3\0\0\0" + b"\0\0\0\0", b"HTTP/1.1 200 OK\r\n", b"x", b""]
)
def test_an_answer_of_another_version_or_kind_is_no_welcome(
    run: Run, runtime_folder: Path, answer: bytes
) -> None:
    with FakeDaemon(runtime_folder, answer=answer):
        ran = run("enter(); tell(sequence=execute())")
    assert ran.facts()["sequence"] == 0
    assert ran.err.count("\n") == 1 and ran.err.endswith(ALONE)


def test_without_a_daemon_the_program_runs_at_once(run: Run) -> None:
    began = time.monotonic()
    ran = run(
        "enter(); allocate(4); tell(sequence=execute()); synchronise(); call('destroy', 0); free()",
        DEEPUM_SYNC="1",
    )
    assert ran.facts()["sequence"] == 0
    assert ran.err == "deepum: warning: daemon: it could not be started" + ALONE
    assert time.monotonic() - began < 4


def test_a_starter_that_does_not_exist_is_named(run: Run) -> None:
    ran = run("enter()", DEEPUM_DAEMON="/nonexistent/python")
    assert (
        ran.err == "deepum: warning: daemon: /nonexistent/python: No such file or directory" + ALONE
    )


def test_silence_is_a_setting(run: Run) -> None:
    assert run("enter()", DEEPUM_LOG="0").err == ""


def test_disabled_it_does_nothing(run: Run, runtime_folder: Path) -> None:
    with FakeDaemon(runtime_folder) as daemon:
        ran = run("enter(); tell(sequence=execute())", DEEPUM_DISABLE="1")
        assert ran.facts()["sequence"] == 0 and ran.err == "" and daemon.sessions == []


STARTER = """#!{python}
import os, sys
sys.path[:0] = [{here!r}, {package!r}]
assert sys.argv[1:] == ["-m", "deepum.daemon"], sys.argv
if os.fork():
    os._exit(0)
os.setsid()
import json, threading
from pathlib import Path
from daemon_side import LIBRARIES, FakeDaemon
folder = Path(os.environ["DEEPUM_RUNTIME_DIR"])
LIBRARIES[folder] = Path(os.environ["RUNTIME_HARNESS"])
fds = [os.readlink(f"/proc/self/fd/{{fd}}") for fd in (0, 1, 2)]
(folder / "seen").write_text(json.dumps([dict(os.environ), fds]))
daemon = FakeDaemon(folder)
daemon.session()
daemon.finished()
(folder / "served").touch()
"""


def test_the_daemon_is_started_on_demand_with_a_clean_environment(
    run: Run,
    runtime_folder: Path,
    tmp_path: Path,
    preloading: Callable[..., dict[str, str]],
    package: Path,
) -> None:
    starter = tmp_path / "python"
    starter.write_text(
        STARTER.format(
            python=sys.executable, here=str(Path(__file__).parent), package=str(package.parent)
        )
    )
    starter.chmod(0o755)
    snippet = """
enter(); tell(sequence=execute())
try:
    os.waitpid(-1, os.WNOHANG); tell(child=True)
except ChildProcessError:
    tell(child=False)
"""
    ran = run(
        snippet,
        DEEPUM_DAEMON=str(starter),
        DEEPUM_DAEMON_IDLE="7",
        DEEPUM_POLICY="on-demand",
        **({"LD_PRELOAD": ""} | preloading()),
    )
    assert ran.facts()["sequence"] > 0 and ran.err == ""
    assert ran.facts()["child"] is False  # neither a running child nor a zombie
    environment, descriptors = json.loads((runtime_folder / "seen").read_text())
    ours = {name: value for name, value in environment.items() if name.startswith("DEEPUM_")}
    assert ours == {"DEEPUM_RUNTIME_DIR": str(runtime_folder), "DEEPUM_DAEMON_IDLE": "7"}
    assert "LD_PRELOAD" not in environment and environment["PYTHONSAFEPATH"] == "1"
    assert descriptors == ["/dev/null"] * 3
    until = time.monotonic() + 10
    while not (runtime_folder / "served").exists():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_missing_runtime_folder_is_made_and_somebody_elses_is_not_used(
    run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "new"
    run("enter()", DEEPUM_RUNTIME_DIR=str(folder))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    ran = run("enter(); tell(sequence=execute())", DEEPUM_RUNTIME_DIR="/proc/self/fdinfo")
    assert ran.facts()["sequence"] == 0 and ran.err.count("\n") == 1


def test_a_socket_with_nobody_behind_it_is_no_daemon(run: Run, runtime_folder: Path) -> None:
    FakeDaemon(runtime_folder).close()
    ran = run("enter(); execute()")
    assert (ran.code, ran.err) == (0, "deepum: warning: daemon: it could not be started" + ALONE)


@pytest.mark.parametrize("lock_step", ["0", "1"])
def test_a_daemon_that_dies_is_done_without(
    run: Run, start: Start, runtime_folder: Path, lock_step: str
) -> None:
    with FakeDaemon(runtime_folder) as daemon:
        snippet = """
enter(); allocate(4); execute(); tell(ready=True); sys.stdin.readline()
for _ in range(1000):
    last = execute(); time.sleep(0.001)
synchronise(); tell(last=last)
"""
        process = start("import sys\n" + snippet, DEEPUM_SYNC=lock_step)
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        session = daemon.session()
        process.stdin.write("\n")
        process.stdin.flush()
        session.connection.shutdown(2)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0 and out == '{"last": 0}\n'
    assert err == "deepum: warning: daemon: it is gone" + ALONE


@pytest.mark.parametrize("lock_step", ["0", "1"])
def test_a_daemon_that_is_stopped_is_given_up_after_ten_seconds(
    start: Start, runtime_folder: Path, lock_step: str
) -> None:
    with FakeDaemon(runtime_folder) as daemon:
        snippet = """
enter(); allocate(4); execute(); tell(ready=True); sys.stdin.readline()
began = time.monotonic()
while execute(): time.sleep(0.01)
tell(seconds=time.monotonic() - began)
"""
        process = start("import sys\n" + snippet, DEEPUM_SYNC=lock_step)
        assert process.stdout is not None
        process.stdout.readline()
        daemon.session().paused.set()
        _, err = process.communicate("\n", timeout=30)
        assert err == "deepum: warning: daemon: it has been silent for 10 s" + ALONE
        assert process.returncode == 0
        daemon.finished()  # the program closed the connection


def test_a_daemon_that_decides_nothing_is_given_up_however_often_it_wakes_the_mover(
    start: Start, runtime_folder: Path
) -> None:
    """It takes the events; and whenever the mover was awake, those that wait for decisions look
    again.
    """
    stuck = threading.Event()

    def decide(event: Event) -> list[Command]:
        until = time.monotonic() + 30
        while (
            event.kind == EXECUTE
            and event.words[0] == 8
            and not stuck.wait(0.2)
            and time.monotonic() < until
        ):
            os.eventfd_write(daemon.session().mover_fd, 1)
        return []

    with FakeDaemon(runtime_folder, decide) as daemon:
        process = start(
            "enter(); execute(); execute(hash=8); tell(last=execute())", DEEPUM_SYNC="1"
        )
        try:
            out, err = process.communicate(timeout=25)
        finally:
            stuck.set()
            process.kill()
        assert (out, err) == (
            '{"last": 0}\n',
            "deepum: warning: daemon: it has been silent for 10 s" + ALONE,
        )
        daemon.finished()


def test_a_daemon_that_accepts_but_never_answers_delays_the_start_only(
    run: Run, runtime_folder: Path
) -> None:
    with FakeDaemon(runtime_folder, mute=True):
        ran = run("enter(); tell(sequence=execute())")
    assert ran.facts()["sequence"] == 0
    assert ran.err == "deepum: warning: daemon: it does not answer" + ALONE


def test_looks_for_faults_and_old_markers_are_asked_for_in_a_way_that_spoils_no_capture(
    run: Run, runtime_folder: Path
) -> None:
    """Another thread may capture in the mode GLOBAL, and a question about an event would
    end that.
    """
    snippet = """
enter(); allocate(4)
for _ in range(3): execute(); call('look')
looked = queries()
for number in range(2050): execute(1, handle=100 + number); call('destroy_as', 1, 100 + number)
tell(looked=looked, asked=queries(), calls=[line for line in calls() if "not relaxed" in line])
"""
    with FakeDaemon(runtime_folder) as daemon:
        facts = run(snippet, DEEPUM_SYNC="0").facts()
        daemon.finished()
    assert facts["looked"] > 0 and facts["asked"] > facts["looked"]
    assert facts["calls"] == []


def test_a_slow_daemon_is_waited_for_in_lock_step_and_not_otherwise(
    run: Run, runtime_folder: Path
) -> None:
    snippet = """
enter(); allocate(4); execute(); began = time.monotonic()
for _ in range(5): execute()
tell(seconds=time.monotonic() - began)
"""
    with FakeDaemon(runtime_folder, delay=0.1) as daemon:
        assert run(snippet, DEEPUM_SYNC="1").facts()["seconds"] > 0.45
        assert len(daemon.finished().events) == 8
    socket_of(runtime_folder).unlink()
    with FakeDaemon(runtime_folder, delay=0.1) as daemon:
        assert run(snippet).facts()["seconds"] < 0.4
        assert len(daemon.finished().events) == 8


def test_a_killed_program_ends_its_session(start: Start, runtime_folder: Path) -> None:
    with FakeDaemon(runtime_folder) as daemon:
        process = start("enter(); execute(); tell(ready=True); time.sleep(60)")
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        process.wait()
        assert [event.kind for event in daemon.finished().events] == [DEVICE, EXECUTE]


def test_leaving_twice_and_launching_afterwards_is_harmless(run: Run, runtime_folder: Path) -> None:
    with FakeDaemon(runtime_folder) as daemon:
        ran = run(
            "enter(); execute(); call('leave'); call('leave'); tell(sequence=execute()); "
            "synchronise(); enter(1)"
        )
        assert ran.facts()["sequence"] == 0 and ran.err == ""
        daemon.finished()


def _left_behind() -> set[Path]:
    """What is of deepum's, but for the folders of launchers and tests that run beside this one."""
    found = {path for folder in ("/dev/shm", "/tmp") for path in Path(folder).glob("deepum*")}
    return {path for path in found if not path.name.startswith(("deepum-run-", "deepum-t-"))}


def test_after_the_end_nothing_is_left(run: Run, runtime_folder: Path) -> None:
    before = _left_behind()
    with FakeDaemon(runtime_folder) as daemon:
        assert run("enter(); allocate(4); execute()").code == 0
        daemon.finished()
    assert sorted(path.name for path in runtime_folder.iterdir()) == [
        socket_of(runtime_folder).name
    ]
    assert _left_behind() <= before


FORK = """
{before}
child = os.fork()
if child == 0:
    {child}
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
{after}
"""


def test_the_child_of_a_fork_has_no_session_and_does_not_keep_its_parents_open(
    run: Run, runtime_folder: Path
) -> None:
    snippet = FORK.format(
        before="enter(); allocate(4); execute(); fds = len(os.listdir('/proc/self/fd'))",
        child=(
            "tell(child=execute(), closed=fds - len(os.listdir('/proc/self/fd'))); synchronise(); "
            "enter(1); free(); call('leave')"
        ),
        after="tell(parent=execute())",
    )
    with FakeDaemon(runtime_folder) as daemon:
        facts = run(snippet, DEEPUM_SYNC="1").facts()
        session = daemon.finished()
    assert facts["child"] == 0 and facts["parent"] > 0
    assert facts["closed"] == 3  # the socket and two eventfds
    assert [event.kind for event in session.events] == [DEVICE, ALLOCATE, EXECUTE, EXECUTE]


def test_a_child_that_is_forked_while_another_thread_looks_for_the_daemon_keeps_nothing_of_it_open(
    run: Run, runtime_folder: Path
) -> None:
    snippet = """
import threading
def opened(): return sorted(link.split(":")[0] for link in map(link_of, os.listdir("/proc/self/fd")) if link)
def link_of(fd):
    try: return os.readlink(f"/proc/self/fd/{fd}")
    except OSError: return ""
before = opened()
thread = threading.Thread(target=enter)
thread.start()
while len(opened()) < len(before) + 4: time.sleep(0.01)
time.sleep(0.2)
child = os.fork()
if child == 0:
    tell(child=opened() == before)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
thread.join()
"""
    with FakeDaemon(runtime_folder, mute=True):
        assert run(snippet).facts() == {"child": True}


@pytest.mark.parametrize("lock_step", ["0", "1"])
def test_a_program_that_closes_all_it_finds_gets_nothing_into_its_files(
    run: Run, runtime_folder: Path, lock_step: str
) -> None:
    """It closes ours with them, and its own get the lowest numbers: what wakes the mover is not
    written there.
    """
    snippet = """
import socket, tempfile
enter(); allocate(4); execute()
os.closerange(3, 256)
files = [tempfile.TemporaryFile() for _ in range(8)]
pairs = [socket.socketpair() for _ in range(8)]
for ours, its in pairs: its.send(b"x")
for _ in range(40): execute(); synchronise(); time.sleep(0.002)
call("leave")
tell(read=[its.recv(9, socket.MSG_DONTWAIT).decode() for its, _ in pairs], sizes=[os.fstat(file.fileno()).st_size for file in files])
"""
    with FakeDaemon(runtime_folder) as daemon:
        ran = run(snippet, DEEPUM_SYNC=lock_step, DEEPUM_LOG="0")
        daemon.finished()
    assert ran.facts() == {"read": ["x"] * 8, "sizes": [0] * 8}


def test_a_child_of_a_parent_that_had_no_session_may_have_one(
    run: Run, runtime_folder: Path
) -> None:
    snippet = FORK.format(
        before="",
        child="enter(); tell(child=execute()); call('leave')",
        after="enter(); tell(parent=execute())",
    )
    with FakeDaemon(runtime_folder) as daemon:
        facts = run(snippet).facts()
        assert facts["child"] > 0 and facts["parent"] > 0
        assert len(daemon.sessions) == 2


def test_signals_go_to_the_programs_threads(start: Start, runtime_folder: Path) -> None:
    snippet = """
import signal, sys
hits = []
signal.signal(signal.SIGUSR1, lambda *_: hits.append(1))
enter(); tell(ready=True); sys.stdin.readline()
mover = [t for t in os.listdir("/proc/self/task") if open(f"/proc/self/task/{t}/comm").read() == "deepum-mover\\n"]
blocked = [line.split()[1] for line in open(f"/proc/self/task/{mover[0]}/status") if line.startswith("SigBlk")][0]
tell(movers=len(mover), blocked=blocked)
while not hits: time.sleep(0.01)
"""
    with FakeDaemon(runtime_folder):
        process = start(snippet)
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGUSR1)
        out, _ = process.communicate("\n", timeout=20)
    assert process.returncode == 0
    facts = json.loads(out)
    assert facts["movers"] == 1
    assert int(facts["blocked"], 16) & 0x7FFFFFFF == 0x7FFBFEFF  # all but SIGKILL and SIGSTOP


@pytest.mark.parametrize(
    ("variable", "text", "index", "value"),
    [
        ("DEEPUM_DISABLE", "Yes", 0, 1),
        ("DEEPUM_SYNC", "on", 1, 1),
        ("DEEPUM_LOG", "3", 2, 3),
        ("DEEPUM_MANAGED_LIMIT", "1.5GiB", 3, 3 << 29),
        ("DEEPUM_GPU_MEMORY", "16g", 4, 16 << 30),
        ("DEEPUM_GPU_MEMORY", "16g", 9, 16 << 30),
        ("DEEPUM_GPU_MEMORY", "16g, 8GiB", 4, 16 << 30),
        ("DEEPUM_GPU_MEMORY", "16g, 8GiB", 9, 8 << 30),
        ("DEEPUM_HOST_MEMORY", " 512 MB ", 5, 512 << 20),
        ("DEEPUM_MANAGED_THRESHOLD", "4096", 6, 4096),
        ("DEEPUM_MARKER_INTERVAL", "1", 7, 1),
        ("DEEPUM_HANDOVER_BYTES", "2MiB", 8, 2 << 20),
    ],
)
def test_settings_are_read_as_the_launcher_reads_them(
    run: Run, variable: str, text: str, index: int, value: int
) -> None:
    ran = run("tell(all=settings())", **{variable: text})
    assert ran.facts()["all"][index] == value and ran.err == ""


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("DEEPUM_SYNC", "perhaps"),
        ("DEEPUM_LOG", "4"),
        ("DEEPUM_GPU_MEMORY", "1MiB"),
        ("DEEPUM_GPU_MEMORY", "16g,"),
        ("DEEPUM_GPU_MEMORY", "16g,1MiB"),
        (
            "DEEPUM_GPU_MEMORY",
            "16g,16g,16g,16g,16g,16g,16g,16g,16g,16g,16g,16g,16g,16g,16g,16g,16g",
        ),
        ("DEEPUM_GPU_MEMORY", "12 parsecs"),
        ("DEEPUM_GPU_MEMORY", "99999999999T"),
        ("DEEPUM_MARKER_INTERVAL", "0"),
        ("DEEPUM_MARKER_INTERVAL", "-1"),
        ("DEEPUM_HANDOVER_BYTES", "1.GiB"),
        ("DEEPUM_FAULTS", "sometimes"),
        ("DEEPUM_FAULT_SOURCE", "uvm_tools"),
    ],
)
def test_a_bad_setting_is_told_in_one_line_and_the_default_holds(
    run: Run, variable: str, text: str
) -> None:
    default = run("tell(all=settings())").facts()["all"]
    ran = run("settings(); tell(all=settings())", **{variable: text})
    assert ran.facts()["all"] == default
    assert (
        ran.err.startswith(f"deepum: warning: {variable}: '{text}' is not usable; write ")
        and ran.err.count("\n") == 1
    )


def test_a_round_that_takes_long_does_not_end_the_session(run: Run, runtime_folder: Path) -> None:
    """Nor is it waited for again: the launches that follow go on, and are decided on, and once it
    is over they wait as ever.
    """
    moves = [Command(PREFETCH)]

    def decide(event: Event) -> list[Command]:
        return [moves.pop()] if event.kind == EXECUTE and moves else []

    snippet = """
enter(); allocate(64); call("prefetch_delay", 12500)
began = time.monotonic(); execute(); first = time.monotonic() - began
began = time.monotonic(); [execute() for _ in range(50)]; next = time.monotonic() - began
wait_calls(lambda all: any(c.startswith("prefetch") for c in all)); call("prefetch_delay", 0); time.sleep(0.2)
last = execute()
tell(first=first, next=next, last=last)
"""
    with FakeDaemon(runtime_folder, decide) as daemon:
        ran = run(snippet, DEEPUM_SYNC="1")
        session = daemon.finished()
    facts = json.loads(ran.out)
    assert 9 < facts["first"] < 12
    assert facts["next"] < 1.5
    assert [event.kind for event in session.events].count(EXECUTE) == 52
    assert facts["last"] == session.events[-1].sequence
    assert ran.err == (
        "deepum: warning: mover: a move has taken more than 10 s; launches go on without "
        "waiting for such\n"
    )
