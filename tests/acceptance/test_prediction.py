"""Step times that the model predicts from an event log and measured figures: what they are made of,
and that a wrong figure shows.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acceptance import traces
from acceptance.prediction import Training, later_ms, step_ends
from acceptance.preset import machine
from acceptance.trainings import DEEPUM, EMULATED
from trained import BUDGET, HIDDEN, MEASURED, SETTINGS, SLOWER, STEPS, WHOLE, program, results

from deepum.core import EventLog
from deepum.machines import Named, named

ROOT = Path(__file__).resolve().parents[2]
Predict = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def predict(environment: dict[str, str]) -> Predict:
    """`python -m acceptance.predict` with these arguments."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        env = environment | {"PYTHONPATH": f"{ROOT / 'benchmarks'}:{environment['PYTHONPATH']}"}
        command = [sys.executable, "-P", "-m", "acceptance.predict", *map(str, arguments)]
        return subprocess.run(
            command, env=env, text=True, capture_output=True, timeout=120, check=False
        )

    return run


def training(on: Named = HIDDEN, budget: int = BUDGET) -> Training:
    return Training("program", program(budget), budget, STEPS, on)


def test_kernels_are_made_as_long_as_the_plain_step_says() -> None:
    one = training()
    assert one.unlimited_ms(2 * SLOWER) > 1.8 * one.unlimited_ms(SLOWER)
    one.fit(one.unlimited_ms(SLOWER))
    assert one.factor == pytest.approx(SLOWER, rel=0.01)


def test_a_step_that_is_shorter_than_its_launches_is_refused() -> None:
    with pytest.raises(ValueError, match=r"launches alone take longer than the 0\.01 ms"):
        training().fit(0.01)


@pytest.mark.parametrize("without_prefetch", [False, True])
def test_another_budget_than_the_recorded_is_as_if_it_had_been_recorded(
    without_prefetch: bool,
) -> None:
    half = WHOLE // 2
    assert training().under(SETTINGS, half, without_prefetch) == training(budget=half).under(
        SETTINGS, half, without_prefetch
    )


def test_a_budget_costs_what_must_move() -> None:
    one = training()
    free, tight, paged = (
        one.under(SETTINGS, *case)
        for case in ((2 * WHOLE, False), (WHOLE // 2, False), (WHOLE // 2, True))
    )
    assert (free.bytes_evicted, free.bytes_d2h) == (0, 0)
    assert free.step_ms == pytest.approx(one.unlimited_ms(1.0), rel=0.01)
    assert tight.bytes_evicted > 0 and tight.bytes_d2h > 0
    assert paged.step_ms > tight.step_ms > free.step_ms


@pytest.mark.parametrize("without_prefetch", [False, True])
@pytest.mark.parametrize("share", [75, 50, 40])
def test_a_budget_is_kept_by_those_who_fault_too(share: int, without_prefetch: bool) -> None:
    """The card has room for all of it: only what launches wait for keeps them within the budget."""
    budget = WHOLE * share // 100
    found = training(budget=budget).under(SETTINGS, budget, without_prefetch)
    assert 0.9 * budget < found.peak_resident_bytes <= budget


def test_settings_of_another_version_are_refused() -> None:
    with pytest.raises(ValueError, match="not those of this version"):
        training().under({**SETTINGS, "foresight": 1}, BUDGET, False)


def test_steps_of_the_second_half_count_but_for_the_last() -> None:
    assert later_ms([100, 50, 20, 10, 12, 99]) == 11
    assert later_ms([7]) == 7


def test_steps_end_where_waits_are_regular() -> None:
    """A wait that ends a step and one for the loss, a beginning of another length, and waits
    without steps in the end.
    """
    ends = [1808 + 913 * number for number in range(10)]
    waits = sorted({*ends, *(end + 1 for end in ends), *range(ends[-1] + 5, ends[-1] + 150)})
    assert step_ends(waits) == ends
    assert step_ends([5, 17]) == []


def test_a_log_of_other_steps_than_were_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="9 steps can be told apart in a log of 20"):
        Training("program", program(), BUDGET, 20, HIDDEN).unlimited_ms(1.0)


def test_what_was_measured_becomes_a_machine() -> None:
    document: dict[str, Any] = {
        "simulated": False,
        "gpu": "NVIDIA H200",
        "date": "today",
        "free_bytes": 1 << 36,
        "sections": {"preset": MEASURED},
    }
    made = machine(document)
    assert (made["like"], made["h2d_gbps"], made["memory_bytes"], made["launch_ns"]) == (
        "h200",
        20.0,
        1 << 36,
        2500,
    )
    assert "launch_queue" not in made  # was not answered
    unknown = machine(document | {"gpu": "NVIDIA B999"})
    assert unknown["like"] == "rtx4090"  # whose link is nearest
    assert "launch_ns" not in machine(document | {"simulated": True})  # this host's own time
    with pytest.raises(ValueError, match="the link was not measured"):
        machine(document | {"sections": {"preset": {"h2d_gbps": None}}})


def test_predictions_are_printed_and_kept(predict: Predict, tmp_path: Path) -> None:
    path = results(tmp_path)
    ran = predict(path, "--save-machine", tmp_path / "card.json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads(path.read_text())["sections"]["prediction"]
    assert (found["count"], found["left_out"], found["machine"]["like"]) == (4, {}, "a100-40gb")
    assert found["largest"] < 0.02
    assert found["models"]["gpt2"]["kernels_factor"] == pytest.approx(SLOWER, rel=0.01)
    assert all(
        row["measured_bytes_evicted"] == row["predicted_bytes_evicted"] for row in found["rows"]
    )
    assert [row["share"] for row in found["speed_ups"]] == [75, 50]
    lines = ran.stdout.splitlines()
    assert [line.split()[-1] for line in lines if " plain " in line] == ["given"]
    assert lines[-1].startswith("largest difference ") and lines[-1].endswith(
        "of 4 step times; the aim is 15%"
    )
    assert named(str(tmp_path / "card.json")).figures["h2d_gbps"] == MEASURED["h2d_gbps"]


@pytest.mark.parametrize(
    "figures",
    [{"h2d_gbps": 10.0, "d2h_gbps": 9.0}, {"fault_batch_ns": 400_000.0, "fault_ns_per_byte": 0.5}],
)
def test_a_wrong_figure_is_noticed(
    predict: Predict, tmp_path: Path, figures: dict[str, float]
) -> None:
    """A link half as fast, faults that take longer: predictions are off by more than the aim, and
    nothing is kept.
    """
    path, wrong = results(tmp_path), tmp_path / "wrong.json"
    before = path.read_bytes()
    wrong.write_text(json.dumps({"like": HIDDEN.preset, **HIDDEN.figures, **figures}))
    ran = predict(path, "--machine", wrong)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    off = [line for line in ran.stdout.splitlines() if line.endswith("beyond")]
    assert off and all("emulated" in line for line in off if "fault_batch_ns" in figures)
    assert path.read_bytes() == before


def test_the_plain_step_is_no_prediction(predict: Predict, tmp_path: Path) -> None:
    """Whatever the machine, kernels are made to fit it: it is not among what is compared."""
    path = results(tmp_path)
    ran = predict(path, "--machine", "v100-16gb")
    plain = json.loads(path.read_text())["sections"]["budgets"]["rows"][0]["steps_ms"][0]
    assert f"{plain:.2f} ms      given" in ran.stdout
    assert "of 4 step times" in ran.stdout


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (lambda document: document["sections"].pop("preset"), 2, "the link was not measured"),
        (lambda document: document.pop("version"), 2, "holds no results"),
        (lambda document: document["sections"].pop("budgets"), 1, "nothing to predict"),
        (
            lambda document: document["sections"]["preset"].update(launch_queue=-1),
            2,
            "launch_queue: '-1' is no whole number",
        ),
    ],
)
def test_results_that_cannot_be_used_are_one_line(
    predict: Predict,
    tmp_path: Path,
    change: Callable[[dict[str, Any]], object],
    code: int,
    text: str,
) -> None:
    path = results(tmp_path)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    ran = predict(path)
    assert ran.returncode == code
    assert ran.stderr.startswith("deepum: error: ") and ran.stderr.count("\n") == 1
    assert text in ran.stderr


@pytest.mark.parametrize(
    "damage", [lambda traces: traces.unlink(), lambda traces: traces.write_bytes(b"PK")]
)
def test_a_model_without_its_trace_is_left_out_by_name(
    predict: Predict, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    path = results(tmp_path)
    damage(path.with_suffix(".traces.zip"))
    ran = predict(path)
    assert ran.returncode == 1
    assert ran.stdout.startswith("not predicted: gpt2: ")
    assert ran.stderr.endswith(
        "nothing to predict; run scripts/gpu_acceptance with the section budgets\n"
    )


def test_traces_take_no_more_room_than_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that fit are kept."""
    logs = tmp_path / "traces"
    logs.mkdir()
    header = EventLog.header({})
    for name, records in (("a", b""), ("b", random.Random(1).randbytes(1 << 16)), ("c", b"")):
        (logs / f"{name}.log").write_bytes(header + records)
    monkeypatch.setattr(traces, "_MOST_BYTES", 4096)
    assert traces.pack(tmp_path, tmp_path / "r.json") == ["b"]
    assert (
        traces.read(tmp_path / "r.json", "a")
        == traces.read(tmp_path / "r.json", "c")
        == EventLog({}, b"")
    )
    with pytest.raises(KeyError):
        traces.read(tmp_path / "r.json", "b")


def test_a_file_that_is_not_there_is_one_line(predict: Predict, tmp_path: Path) -> None:
    ran = predict(tmp_path / "none.json")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "No such file" in ran.stderr and ran.stderr.count("\n") == 1


@pytest.mark.torch
def test_the_acceptance_predicts_the_simulated_gpu_from_its_logs_alone(
    environment: dict[str, str], predict: Predict, tmp_path: Path
) -> None:
    """The model knows of the simulated GPU what it would of a real one: an event log, and what the
    questions found.
    """
    words = (
        "--only",
        "questions",
        "--only",
        "budgets",
        "--model",
        "bert",
        "--share",
        "25",
        "--results",
        str(tmp_path),
    )
    command = [
        str(ROOT / "scripts" / "gpu_acceptance"),
        "--device",
        "sim:v100-16gb",
        "--short",
        "--build",
        "never",
        *words,
    ]
    ran = subprocess.run(
        command,
        env=environment | {"PYTHON": sys.executable},
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (path,) = tmp_path.glob("*.json")
    found = json.loads(path.read_text())["sections"]["prediction"]
    assert (found["count"], found["left_out"]) == (2, {})
    assert {row["what"] for row in found["rows"]} == {DEEPUM, EMULATED}
    assert found["largest"] < 0.04
    assert [row["measured_bytes_evicted"] for row in found["rows"]] == [
        row["predicted_bytes_evicted"] for row in found["rows"]
    ]
    assert "largest difference " in ran.stdout
    half = tmp_path / "half" / "machine.json"
    half.parent.mkdir()
    content = found["machine"]
    half.write_text(
        json.dumps(
            content | {"h2d_gbps": content["h2d_gbps"] / 2, "d2h_gbps": content["d2h_gbps"] / 2}
        )
    )
    assert "beyond" in predict(path, "--machine", half).stdout
