"""How the daemon starts and ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from fake_program import FakeProgram
from running import socket_of, wait_until

ON_DEMAND = [sys.executable, "-P", "-m", "deepum.daemon"]


def test_on_demand_it_leaves_the_program_at_once_and_ends_when_idle(
    environment: dict[str, str], runtime_dir: Path
) -> None:
    # Its streams are pipes: if the daemon kept them open, this would not return.
    subprocess.run(
        ON_DEMAND,
        env=environment | {"DEEPUM_DAEMON_IDLE": "1"},
        check=True,
        capture_output=True,
        timeout=30,
    )
    socket = socket_of(runtime_dir)
    assert wait_until(socket.exists)
    program = FakeProgram(runtime_dir)
    program.train(2)
    assert socket.exists()
    program.close()
    assert wait_until(lambda: not socket.exists())
    assert wait_until(lambda: (runtime_dir / "daemon.log").read_text().rstrip().endswith("ended"))


def test_there_is_only_one(
    environment: dict[str, str],
    runtime_dir: Path,
    daemon: subprocess.Popen[str],
    deepum: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    second = deepum("daemon")
    assert second.returncode == 125
    assert second.stderr.count("\n") == 1
    assert "another daemon" in second.stderr
    assert subprocess.run(ON_DEMAND, env=environment, check=False, timeout=30).returncode == 0
    FakeProgram(runtime_dir).close()


def test_a_killed_daemon_leaves_nothing_in_the_way(
    environment: dict[str, str], runtime_dir: Path, daemon: subprocess.Popen[str]
) -> None:
    daemon.send_signal(signal.SIGKILL)
    daemon.wait(20)
    subprocess.run(ON_DEMAND, env=environment, check=True, timeout=30)
    program = None
    for _ in range(500):
        try:
            program = FakeProgram(runtime_dir)
            break
        except OSError:
            wait_until(lambda: False, 0.02)
    assert program is not None
    program.train(1)
    program.close()


def test_told_to_end_it_tells_its_programs(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path
) -> None:
    program = FakeProgram(runtime_dir, {"DEEPUM_STATS_DIR": str(tmp_path)}, pid=9)
    program.train(2)
    daemon.terminate()
    assert daemon.wait(20) == 0
    assert program.daemon_left
    assert (tmp_path / "session-9.json").exists()
    assert not socket_of(runtime_dir).exists()
    program.close()


def test_a_killed_program_is_cleaned_up(
    daemon: subprocess.Popen[str], environment: dict[str, str], runtime_dir: Path, tmp_path: Path
) -> None:
    before = _descriptors(daemon.pid)
    script = (
        "import sys, os; sys.path.insert(0, sys.argv[1]); from pathlib import Path; from "
        "fake_program import FakeProgram\n"
        "program = FakeProgram(Path(sys.argv[2]), {'DEEPUM_STATS_DIR': sys.argv[3]}, "
        "pid=os.getpid()); program.train(3)\n"
        "os.kill(os.getpid(), 9)"
    )
    arguments = [
        sys.executable,
        "-c",
        script,
        str(Path(__file__).parent),
        str(runtime_dir),
        str(tmp_path),
    ]
    killed = subprocess.run(arguments, env=environment, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert wait_until(lambda: len(list(tmp_path.glob("session-*.json"))) == 1)
    assert not list(tmp_path.glob("*.open")) or wait_until(
        lambda: not list(tmp_path.glob("*.open"))
    )
    assert wait_until(lambda: _descriptors(daemon.pid) == before)


def _descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_a_folder_open_to_others_is_closed(environment: dict[str, str], runtime_dir: Path) -> None:
    runtime_dir.chmod(0o777)
    subprocess.run(ON_DEMAND, env=environment | {"DEEPUM_DAEMON_IDLE": "1"}, check=True, timeout=30)
    assert wait_until(lambda: runtime_dir.stat().st_mode & 0o777 == 0o700)


def test_a_folder_that_cannot_be_used_is_one_line(
    deepum: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    result = deepum("daemon", env={"DEEPUM_RUNTIME_DIR": str(tmp_path / "file" / "x")})
    assert result.returncode == 125
    assert result.stderr.startswith("deepum: error: ") and result.stderr.count("\n") == 1
