"""`deepum run`: what passes through, what is refused, what is left behind. These programs use no
GPU.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deepum.configuration.resolve import resolve
from deepum.device import Device
from deepum.launcher.environment import child_environment

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
SIM = ("run", "--device", "sim")
PLANNED = (*SIM, "--policy", "planned")


@pytest.mark.parametrize("code", [0, 1, 2, 7, 125, 255])
def test_the_exit_code_is_the_programs(deepum: Deepum, code: int) -> None:
    assert deepum(*SIM, "--", "sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_program_ended_by_a_signal_ends_the_launcher_alike(
    deepum: Deepum, number: signal.Signals
) -> None:
    assert deepum(*SIM, "--", "sh", "-c", f"kill -{int(number)} $$").returncode == -number


def test_a_shell_sees_128_and_the_signal(environment: dict[str, str]) -> None:
    script = f"{sys.executable} -P -m deepum run --device sim -- sh -c 'kill -TERM $$'; echo $?"
    shell = subprocess.run(
        ["sh", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert shell.stdout == "143\n"


def test_standard_streams_are_the_programs(environment: dict[str, str]) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "deepum",
        "run",
        "--device",
        "sim",
        "--",
        "sh",
        "-c",
        "cat; echo told >&2",
    ]
    run = subprocess.run(
        command,
        env=environment,
        input=b"\0\xff bytes\n",
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert run.stdout == b"\0\xff bytes\n"
    lines = run.stderr.decode().splitlines()
    assert lines.count("told") == 1
    assert all(line.startswith("deepum: ") for line in lines if line != "told")


@pytest.mark.parametrize(("log", "times"), [("1", 1), ("0", 0)])
def test_that_results_are_zeros_is_said_once(deepum: Deepum, log: str, times: int) -> None:
    assert (
        deepum(*SIM, "--log", log, "--", "sh", "-c", "true; true").stderr.count(
            "results read as zeros"
        )
        == times
    )


def test_arguments_reach_the_program_as_they_are(deepum: Deepum) -> None:
    arguments = ["--device", "a b", "", "--", "-h", "*"]
    result = deepum(
        *SIM,
        "--",
        sys.executable,
        "-c",
        "import json, sys; print(json.dumps(sys.argv[1:]))",
        *arguments,
    )
    assert json.loads(result.stdout) == arguments


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_to_the_launcher_reaches_the_program(
    environment: dict[str, str], number: signal.Signals
) -> None:
    # Not by print: the handler may run while 'ready' is still being flushed, and a buffer may not
    # be entered twice.
    program = (
        "import os, signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: (os.write(1, b'got it\\n'), sys.exit(9)))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.05)"
    )
    command = [
        sys.executable,
        "-P",
        "-m",
        "deepum",
        "run",
        "--device",
        "sim",
        "--",
        sys.executable,
        "-c",
        program,
    ]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        run.send_signal(number)
        assert run.stdout.read() == "got it\n"
        assert run.wait(30) == 9


def test_the_program_starts_with_the_callers_signal_mask(deepum: Deepum) -> None:
    program = (
        "import signal; print(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])), "
        "signal.getsignal(signal.SIGPIPE))"
    )
    bare = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert deepum(*SIM, "--", sys.executable, "-c", program).stdout == bare.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("run",), 2, "COMMAND"),
        (("run", "--frobnicate", "--", "true"), 2, "--frobnicate"),
        (
            ("run", "--gpu-memory", "8 parsecs", "--", "true"),
            2,
            "--gpu-memory: '8 parsecs' is not a size",
        ),
        (("run", "--gpu-memory", "1KiB", "--", "true"), 2, "out of range"),
        (
            ("run", "--tune", "prefetch_degree=-1", "--", "true"),
            2,
            "--tune prefetch_degree: '-1' is out of range",
        ),
        (("run", "--policy", "psychic", "--", "true"), 2, "on-demand, correlation"),
        (("run", "--device", "tpu", "--", "true"), 2, "device 'tpu'"),
        (("run", "--device", "sim:", "--", "true"), 2, "device 'sim:'"),
        (
            ("run", "--device", "sim:pdp11", "--", "true"),
            2,
            "machine 'pdp11': is unknown; choose one of v100-16gb",
        ),
        ((*SIM, "--", "no-such-program"), 127, "no-such-program"),
        ((*SIM, "--", "./no-such-program"), 127, "no-such-program"),
        ((*SIM, "--", "/"), 126, "folder"),
        ((*SIM, "--", "./plain-file"), 126, "not executable"),
        ((*SIM, "--", "./bad-interpreter"), 127, "bad-interpreter"),
        ((*SIM, "--", "./not-a-program"), 126, "not-a-program"),
        ((*SIM, "--record", "no/such/folder/log", "--", "true"), 2, "record"),
        ((*SIM, "--stats", "/", "--", "true"), 2, "stats"),
        ((*SIM, "--stats", "x", "--record", "x", "--", "true"), 2, "two of"),
        ((*SIM, "--profile", "corrupt", "--", "true"), 2, "profile"),
        ((*SIM, "--profile", "no/such/folder/p", "--", "true"), 2, "profile"),
        ((*SIM, "--policy", "planned", "--faults", "off", "--", "true"), 2, "leave --faults out"),
        ((*SIM, "--tune", "plan=p", "--", "true"), 2, "p: is for --policy planned"),
        ((*PLANNED, "--tune", "plan=corrupt", "--", "true"), 2, "corrupt: not a plan"),
        ((*PLANNED, "--tune", "plan=no/such/p", "--", "true"), 2, "plan"),
        ((*PLANNED, "--tune", "plan=x", "--stats", "x", "--", "true"), 2, "two of"),
        ((*SIM, "--config", "missing.toml", "--", "true"), 2, "missing.toml"),
        ((*SIM, "--config", "bad.toml", "--", "true"), 2, "bad.toml"),
        ((*SIM, "--config", "deep.toml", "--", "true"), 2, "deep.toml"),
        (("frobnicate",), 2, "frobnicate"),
        (("log", "replay", "corrupt"), 2, "not an event log"),
        (("log", "show", "missing"), 2, "missing"),
    ],
)
def test_what_cannot_be_used_is_one_line_with_a_documented_code(
    deepum: Deepum,
    tmp_path: Path,
    runtime_dir: Path,
    arguments: tuple[str, ...],
    code: int,
    text: str,
) -> None:
    (tmp_path / "plain-file").write_text("x")
    (tmp_path / "corrupt").write_bytes(b"\1\2\3" * 100)
    (tmp_path / "bad.toml").write_text("colour = 'blue'\n")
    (tmp_path / "deep.toml").write_text("colours = " + "[" * 5000)
    for name, content in (
        ("bad-interpreter", "#!/no/such/interpreter\n"),
        ("not-a-program", "\x7fELF junk"),
    ):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    before = sorted(tmp_path.iterdir())
    temporary = tmp_path.parent / f"{tmp_path.name}-tmp"
    temporary.mkdir()
    result = deepum(*arguments, env={"TMPDIR": str(temporary)})
    assert result.returncode == code, result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("deepum: error: ")
    assert text in result.stderr
    assert result.stdout == ""
    assert sorted(tmp_path.iterdir()) == before
    assert not list(temporary.iterdir())
    assert not list(runtime_dir.iterdir())


def test_environment_variables_say_the_same_as_options(deepum: Deepum) -> None:
    by_variable = deepum("run", "--", "true", env={"DEEPUM_DEVICE": "sim:pdp11"})
    assert (by_variable.returncode, "machine 'pdp11'" in by_variable.stderr) == (2, True)
    bad = deepum(*SIM, "--", "true", env={"DEEPUM_GPU_MEMORY": "lots"})
    assert "DEEPUM_GPU_MEMORY: 'lots' is not a size" in bad.stderr
    # The flag goes first.
    assert deepum(*SIM, "--", "true", env={"DEEPUM_DEVICE": "sim:pdp11"}).returncode == 0


def _child_environment(
    deepum: Deepum, *flags: str, env: dict[str, str] | None = None
) -> dict[str, str]:
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    result = deepum(*SIM, *flags, "--", sys.executable, "-c", program, env=env)
    assert result.returncode == 0, result.stderr
    return dict(json.loads(result.stdout))


def test_lock_step_is_the_simulated_gpus_default_alone(deepum: Deepum) -> None:
    values = [
        _child_environment(deepum, *flags, env=env)["DEEPUM_SYNC"]
        for flags, env in (
            ((), {}),
            (("--sync",), {"DEEPUM_SYNC": "0"}),
            (("--no-sync",), {}),
            ((), {"DEEPUM_SYNC": "0"}),
        )
    ]
    assert values == ["1", "1", "0", "0"]
    on_a_gpu, _ = child_environment(resolve({}, {}), Device(None), {})
    assert "DEEPUM_SYNC" not in on_a_gpu


def test_the_policy_that_plans_has_the_times_of_launches_told(deepum: Deepum) -> None:
    values = [
        _child_environment(deepum, *flags).get("DEEPUM_FAULTS")
        for flags in (
            (),
            ("--policy", "planned"),
            ("--policy", "planned", "--faults", "auto"),
            ("--faults", "off"),
        )
    ]
    assert values == [None, "times", "auto", "off"]


def test_without_numpy_the_policy_that_plans_is_refused(deepum: Deepum, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'numpy' else find(name, *more)\n"
    )
    path = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    refused = deepum(*PLANNED, "--", "true", env=path)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert refused.stderr.startswith("deepum: error: --policy planned: needs numpy; install it ")
    assert "deepum[lab]" in refused.stderr
    assert deepum(*SIM, "--", "true", env=path).returncode == 0


def test_the_shim_gets_its_settings_in_plain_numbers(
    deepum: Deepum, package: Path, tmp_path: Path
) -> None:
    (tmp_path / "settings.toml").write_text(
        'host-memory = "1GiB"\n[tune]\ngates = 0\nprefetch_degree = 7\n'
    )
    flags = (
        "--gpu-memory",
        "1.5GiB",
        "--tune",
        "prefetch-degree=9",
        "--config",
        "settings.toml",
        "--record",
        "log",
    )
    made = _child_environment(deepum, *flags, env={"DEEPUM_STATS": str(tmp_path / "stats.json")})
    assert made["DEEPUM_SIM_MEMORY"] == str(3 << 29)
    assert made["DEEPUM_HOST_MEMORY"] == str(1 << 30)
    assert (made["DEEPUM_GATES"], made["DEEPUM_PREFETCH_DEGREE"], made["DEEPUM_SYNC"]) == (
        "0",
        "9",
        "1",
    )
    assert made["DEEPUM_RECORD"] == str(tmp_path / "log")
    assert "DEEPUM_STATS" not in made and "DEEPUM_GPU_MEMORY" not in made
    assert made["LD_PRELOAD"].split(":")[0] == str(package / "lib" / "libdeepum.so")
    assert made["LD_LIBRARY_PATH"].split(":")[0] == str(package / "sim")


def test_preloads_of_the_caller_stay(deepum: Deepum) -> None:
    made = _child_environment(deepum, env={"LD_LIBRARY_PATH": "/somewhere"})
    assert made["LD_LIBRARY_PATH"].endswith(":/somewhere")


def test_pytorch_allocators_that_go_around_cudamalloc_are_turned_off(deepum: Deepum) -> None:
    made = _child_environment(
        deepum,
        env={
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,max_split_size_mb:64",
            "PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync",
        },
    )
    assert made["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:False,max_split_size_mb:64"
    assert made["PYTORCH_ALLOC_CONF"] == "backend:native"


def test_statistics_are_written_even_without_cuda(deepum: Deepum, tmp_path: Path) -> None:
    assert deepum(*SIM, "--stats", "s.json", "--", "true").returncode == 0
    statistics = json.loads((tmp_path / "s.json").read_text())
    assert statistics["device"] == "sim:v100-16gb" and statistics["processes"] == []


def test_a_program_left_running_does_not_hold_the_launcher(deepum: Deepum) -> None:
    began = time.monotonic()
    result = deepum(*SIM, "--", "sh", "-c", "sleep 30 >/dev/null 2>&1 & exit 3")
    assert result.returncode == 3
    assert time.monotonic() - began < 25


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
@pytest.mark.parametrize(
    "flags", [(), ("--device", "auto"), ("--device", "cuda")], ids=["default", "auto", "cuda"]
)
def test_without_a_gpu_a_program_is_refused_unless_a_simulated_one_is_asked_for(
    deepum: Deepum, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    result = deepum("run", *flags, "--", "touch", "started")
    assert result.returncode == 125 and result.stderr.count("\n") == 1
    assert "no working GPU: no NVIDIA driver is loaded" in result.stderr
    assert "`deepum doctor`" in result.stderr and "--device sim" in result.stderr
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("DEEPUM_GPU_MEMROY", "did you mean DEEPUM_GPU_MEMORY?"),
        ("DEEPUM_SIM_DEVICE", "did you mean DEEPUM_SIM_DEVICES?"),
        ("DEEPUM_COLOUR", "see docs/configuration.md"),
    ],
)
def test_a_variable_that_nothing_reads_is_warned_of(deepum: Deepum, name: str, remedy: str) -> None:
    result = deepum(*SIM, "--", "true", env={name: "1"})
    assert result.returncode == 0
    assert f"deepum: warning: {name}: there is no such variable; {remedy}\n" in result.stderr


def test_variables_that_are_read_are_not_warned_of(deepum: Deepum) -> None:
    program = (
        "import os, subprocess, sys; sys.exit(subprocess.call(['deepum', 'run', '--device', "
        "'sim', '--', 'true']))"
    )
    bin_folder = str(Path(sys.executable).parent)
    env = {
        "DEEPUM_TEST_ANYTHING": "1",
        "DEEPUM_SIM_SOFT_BUDGET": "1",
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
    }
    assert (
        "no such variable" not in deepum(*SIM, "--", sys.executable, "-c", program, env=env).stderr
    )


def test_a_budget_beyond_the_card_is_remarked(deepum: Deepum) -> None:
    line = (
        "deepum: warning: --gpu-memory 20.0 GiB: the simulated card has that much then, more than "
        "a v100-16gb has (16.0 GiB)\n"
    )
    assert (
        line
        in deepum(
            "run", "--device", "sim:v100-16gb", "--gpu-memory", "1GiB,20GiB", "--", "true"
        ).stderr
    )
    assert (
        "more than"
        not in deepum(
            "run", "--device", "sim:v100-16gb", "--gpu-memory", "16GiB", "--", "true"
        ).stderr
    )


def test_a_simulated_machine_has_as_many_gpus_as_asked_for(deepum: Deepum) -> None:
    assert _child_environment(deepum)["DEEPUM_SIM_DEVICES"] == "1"
    assert _child_environment(deepum, env={"DEEPUM_SIM_DEVICES": ""})["DEEPUM_SIM_DEVICES"] == "1"
    assert _child_environment(deepum, env={"DEEPUM_SIM_DEVICES": "2"})["DEEPUM_SIM_DEVICES"] == "2"
    for wrong in ("0", "17"):
        result = deepum(*SIM, "--", "true", env={"DEEPUM_SIM_DEVICES": wrong})
        assert (
            result.returncode == 2
            and "DEEPUM_SIM_DEVICES" in result.stderr
            and result.stderr.count("\n") == 1
        )


def test_nothing_is_said_at_log_level_0(deepum: Deepum) -> None:
    assert deepum(*SIM, "--log", "0", "--", "true").stderr == ""


def test_a_launcher_inside_a_launcher_preloads_once(deepum: Deepum) -> None:
    inner = [
        sys.executable,
        "-P",
        "-m",
        "deepum",
        *SIM,
        "--",
        sys.executable,
        "-c",
        "import os; print(os.environ['LD_PRELOAD'])",
    ]
    outer = deepum(*SIM, "--", *inner)
    assert outer.stdout.count("libdeepum.so") == 1


def test_ctrl_c_reaches_the_program_once(environment: dict[str, str]) -> None:
    """From a terminal, the whole foreground group gets the signal: passing it on would
    double it.
    """
    import pty

    program = (
        "import signal, sys, time; count = []\n"
        "signal.signal(signal.SIGINT, lambda *_: count.append(1)); print('ready', flush=True)\n"
        "while not count: time.sleep(0.05)\n"
        "time.sleep(0.5); print('count', len(count), flush=True)"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(
            sys.executable,
            [sys.executable, "-P", "-m", "deepum", *SIM, "--", sys.executable, "-c", program],
            environment,
        )
    output = b""
    while b"ready" not in output:
        output += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    try:
        while chunk := os.read(terminal, 1000):
            output += chunk
    except OSError:
        pass  # the terminal's other end is closed
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"count 1" in output
