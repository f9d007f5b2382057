"""`scripts/gpu_acceptance` on the simulated GPU, in its short form; and what keeps it safe and
honest.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from running import wait_until

from deepum.device import Device
from deepum.doctor.driver import SAFE_SHARE
from deepum.launcher.environment import device_environment
from deepum.machines import machines

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = {
    "links",
    "locks",
    "calls",
    "discards",
    "clean",
    "remote",
    "order",
    "gates",
    "launches",
    "faults",
    "capture",
    "observe",
    "resolver",
}
QUESTIONS |= {"sharing"}


@pytest.fixture
def acceptance(
    environment: dict[str, str], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs it on the simulated V100 with what is built: acceptance("--only", "doctor")."""

    def run(
        *arguments: object, device: str = "sim:v100-16gb", timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        command = [
            str(ROOT / "scripts" / "gpu_acceptance"),
            "--device",
            device,
            "--short",
            "--build",
            "never",
            *map(str, arguments),
        ]
        env = environment | {"PYTHON": sys.executable}
        return subprocess.run(
            command,
            env=env,
            cwd=tmp_path,
            text=True,
            capture_output=True,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """benchmarks/acceptance can be imported."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "acceptance"]:
        del sys.modules[name]


def results_of(folder: Path) -> dict[str, Any]:
    """What the one file says."""
    (path,) = folder.glob("*.json")
    assert path.name.startswith("simulated-")
    found = json.loads(path.read_text())
    assert found["simulated"] is True
    return dict(found)


def test_questions_and_programs_run_to_their_end(
    acceptance: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    sections = ("doctor", "questions", "correctness")
    ran = acceptance(
        *(word for section in sections for word in ("--only", section)),
        "--results",
        tmp_path / "results",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = results_of(tmp_path / "results")
    assert ran.stdout.startswith("SIMULATED")
    assert set(found["sections"]) == {"build", "preset", *sections}
    answers = found["sections"]["questions"]
    assert set(answers) == QUESTIONS
    assert not [name for name, answer in answers.items() if "error" in answer]
    # What the questions make of the machine is what it was made from.
    made = next(asdict(machine) for machine in machines() if machine.name == "v100-16gb")
    for name in ("h2d_gbps", "d2h_gbps", "fault_batch_ns", "fault_ns_per_byte"):
        assert found["sections"]["preset"][name] == pytest.approx(made[name], rel=0.1), name
    assert found["sections"]["preset"]["blocking_calls"] == 0
    assert answers["links"]["both_prefetch_one_thread_gbps"] == pytest.approx(25.8, rel=0.05)
    assert (
        answers["discards"]["discard_and_prefetch_to_host"]["free_bytes_won"]
        == answers["discards"]["bytes"]
    )
    assert answers["discards"]["discard"]["written_after"]["right_after_leaving"] == 1
    assert answers["clean"]["prefetch_to_host_duplicates"]["free_bytes_won"] == 0
    assert answers["order"]["to_gpu"]["returns_before_the_event"] is True
    assert answers["order"]["to_gpu"]["moved_before_the_event"] is False
    assert answers["order"]["discard"]["returns_before_the_event"] is True
    assert answers["gates"]["gated"]["gpu_us"] >= answers["gates"]["plain"]["gpu_us"] > 0
    beside = answers["gates"]["while_a_stream_waits"]
    assert (beside["streams"], beside["streams_held_up"], beside["prefetch_held_up"]) == (
        64,
        0,
        False,
    )
    assert answers["capture"]["global_same_stream"]["prefetch"].startswith(
        "STREAM_CAPTURE_UNSUPPORTED"
    )
    assert answers["capture"]["relaxed_other_stream"]["prefetch"] == "SUCCESS"
    assert answers["launches"]["launch_host_us"] > 0
    probe = answers["observe"]["uvm_tools"]["probe"]
    for does in ("read", "write"):
        assert sum(probe[does]["faults"].values()) > probe["blocks"] > 0
        assert [
            probe[does][name] for name in ("blocks_missed", "blocks_besides", "strange", "dropped")
        ] == [0] * 4
    assert [answers["sharing"][kind]["ipc"] for kind in ("device", "managed")] == [
        "SUCCESS",
        "INVALID_VALUE",
    ]
    assert [answers["sharing"][kind]["says_ipc"] for kind in ("device", "managed")] == [True, False]
    assert answers["sharing"]["own_handle_opened"] == "INVALID_CONTEXT"
    programs = found["sections"]["correctness"]["programs"]
    assert programs["wrong"] == []
    assert programs["right"] == {"plain": 60, "deepum": 67}
    assert programs["moved"]["bytes_evicted"] > 0


@pytest.mark.torch
def test_training_is_compared(
    acceptance: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    words = ("--only", "overhead", "--only", "budgets", "--model", "resnet", "--share", "50")
    ran = acceptance(*words, "--results", tmp_path / "results")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    sections = results_of(tmp_path / "results")["sections"]
    (compared,) = sections["overhead"]["compared"]
    assert compared["same_bits"] is True
    assert abs(compared["overhead"]) < 0.05  # all fits, in virtual time
    rows = {row["what"]: row for row in sections["budgets"]["rows"]}
    assert set(rows) == {"plain", "offload", "checkpoint", "deepum", "budgeted on-demand, emulated"}
    assert not [row for row in rows.values() if "error" in row]
    half = rows["plain"]["peak_allocated_bytes"] // 2
    under, emulated = rows["deepum"], rows["budgeted on-demand, emulated"]
    assert under["budget_bytes"] == emulated["budget_bytes"] == half
    assert under["bound_ms"] <= under["step_ms"] < emulated["step_ms"]
    assert emulated["statistics"]["bytes_prefetched"] == 0 < emulated["statistics"]["faults"]
    assert under["statistics"]["bytes_evicted"] > 0
    assert rows["checkpoint"]["peak_allocated_bytes"] < rows["plain"]["peak_allocated_bytes"]


def test_a_simulated_result_cannot_be_where_measurements_are(
    acceptance: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    for folder in (ROOT / "benchmarks" / "results", ROOT / "benchmarks" / "results" / "below"):
        ran = acceptance("--only", "doctor", "--results", folder)
        assert ran.returncode == 2
        assert (
            ran.stderr.startswith("deepum: error: ")
            and "simulated results have to go elsewhere" in ran.stderr
        )


def test_the_simulated_driver_is_not_taken_for_a_real_one(
    acceptance: Callable[..., subprocess.CompletedProcess[str]],
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    environment["LD_LIBRARY_PATH"] = device_environment(Device("v100-16gb"), {})["LD_LIBRARY_PATH"]
    ran = acceptance("--only", "questions", "--results", tmp_path / "results", device="cuda")
    assert ran.returncode == 1
    assert "is the simulated one" in ran.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(
    acceptance: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    ran = acceptance("--only", "questions", "--results", tmp_path / "results", device="cuda")
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith("deepum: error: GPU: none that answers")


def test_no_more_managed_memory_than_is_safe(environment: dict[str, str]) -> None:
    script = (
        "from deepum.doctor.driver import Cuda, UnsafeError\n"
        "cuda = Cuda()\n"
        f"safe = int({SAFE_SHARE} * cuda.free_bytes())\n"
        "first = cuda.managed(safe // 2)\n"
        "try: cuda.managed(safe)\n"
        "except UnsafeError as error: print(error)\n"
        "cuda.free(first)\n"
        "cuda.managed(safe - 4096)\n"
        "print('taken')\n"
    )
    env = device_environment(Device("v100-16gb"), environment) | {"DEEPUM_SIM_MEMORY": str(1 << 30)}
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    refused, taken = ran.stdout.splitlines()
    assert "are more than 60% of what is free, 614 MiB" in refused and taken == "taken"


def test_the_cards_memory_is_watched(
    package: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from acceptance.place import Place
    from acceptance.watch import Watch

    monkeypatch.setenv(
        "LD_LIBRARY_PATH", device_environment(Device("v100-16gb"), {})["LD_LIBRARY_PATH"]
    )
    taken = Watch(Place("cuda", str(tmp_path), True, 1 << 30)).take()
    assert taken == (0, 0)  # the process beside the others has a card of its own here
    assert Watch(Place("sim:v100-16gb", str(tmp_path), True, 1 << 30)).take() is None


def test_on_a_real_card_programs_have_its_driver_and_a_soft_budget(package: None) -> None:
    from acceptance.sections.correctness import OnCard

    settings = {"gpu_memory": "64MiB", "policy": "correlation"}
    made = OnCard(0, "streams", (0,), settings, lock_step=False).environment(
        {"DEEPUM_RUNTIME_DIR": "/x", "LD_LIBRARY_PATH": "/driver"}
    )
    assert made["LD_LIBRARY_PATH"] == "/driver"
    assert made["LD_PRELOAD"].endswith("/lib/libdeepum.so")
    assert (made["DEEPUM_GPU_MEMORY"], made["DEEPUM_SYNC"], made["DEEPUM_RUNTIME_DIR"]) == (
        str(64 << 20),
        "0",
        "/x",
    )
    assert not [name for name in made if name.startswith("DEEPUM_SIM")]


def test_what_hangs_is_cut_off_with_what_it_started(package: None, tmp_path: Path) -> None:
    from acceptance import processes

    script = f"sleep 600 & echo $! > {tmp_path}/child; echo said; wait"
    ran = processes.run(["sh", "-c", script], os.environ, 1)
    assert ran.code is None and ran.trouble is not None and ran.trouble.startswith("was cut off")
    assert ran.out == "said\n"
    state = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")

    def gone() -> bool:
        try:
            return state.read_text().split()[2] == "Z"
        except OSError:
            return True

    assert wait_until(gone), "it was killed, and ends as soon as it has a processor"


def test_what_the_build_lacks_is_named(package: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from acceptance import build

    monkeypatch.setattr(shutil, "which", lambda name: f"/nowhere/{name}")
    assert build.missing() == []
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name in ("cffi", "nvidia") else real(name),
    )
    monkeypatch.setattr(shutil, "which", lambda name: None)
    lacking = [line.partition(":")[0] for line in build.missing()]
    assert {"cmake", "g++", "cffi"} <= set(lacking)
    assert build.build(Path("/nowhere"), 1)["built"] is False


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_programs_kernels_compile_for_a_card(tmp_path: Path) -> None:
    source, include = (
        ROOT / "benchmarks" / "acceptance" / "native" / "proof_kernels.cu",
        ROOT / "tests" / "proof" / "executor",
    )
    command = [
        "nvcc",
        "-cubin",
        "-arch=sm_90",
        f"-I{include}",
        str(source),
        "-o",
        str(tmp_path / "kernels.cubin"),
    ]
    subprocess.run(command, check=True)
    names = (tmp_path / "kernels.cubin").read_bytes()
    assert all(
        b".text." + name in names
        for name in (b"fill", b"update", b"combine", b"reduce", b"gather", b"sparse")
    )
