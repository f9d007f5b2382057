"""Callbacks of training libraries, driven by the libraries' own code."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from deepum.inside import api
from deepum.inside.steps import StepFigures

GIB = 1 << 30


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Calls of `deepum.step`: the first has no figures, as in a program."""
    calls: list[int] = []

    def step() -> StepFigures | None:
        calls.append(len(calls))
        if len(calls) == 1:
            return None
        return StepFigures(len(calls) - 1, 4.0, 2.0, 6 * GIB, 2 * GIB, 0, None, GIB, 3 * GIB)

    monkeypatch.setattr(api, "step", step)
    return calls


@pytest.mark.torch
def test_the_trainers_logs_have_our_figures(steps: list[int]) -> None:
    transformers: Any = pytest.importorskip("transformers")
    handlers: Any = pytest.importorskip("transformers.trainer_callback")

    from deepum.callbacks.transformers import attach

    seen: list[dict[str, Any]] = []

    class Report(transformers.TrainerCallback):  # type: ignore[misc]
        def on_log(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            seen.append(dict(more["logs"]))

    handler = handlers.CallbackHandler([Report()], None, None, None, None)
    attach(SimpleNamespace(callback_handler=handler))
    state = transformers.TrainerState()
    control = transformers.TrainerControl()
    handler.on_train_begin(None, state, control)
    state.global_step = 2
    logs: dict[str, Any] = {"loss": 0.5}
    state.log_history.append({**logs, "step": 2})
    handler.on_log(None, state, control, logs)
    expected = {
        "deepum/step_s": 2.0,
        "deepum/virtual_step_s": 1.0,
        "deepum/gib_in": 3.0,
        "deepum/gib_out": 1.0,
        "deepum/gib_discarded": 0.0,
        "deepum/resident_gib": 1.0,
        "deepum/allocated_gib": 3.0,
    }
    assert seen == [{"loss": 0.5, **expected}]
    assert state.log_history == [{"loss": 0.5, "step": 2, **expected}]
    handler.on_log(None, state, control, {"train_runtime": 3.0})
    assert len(steps) == 2


@pytest.mark.torch
def test_lightning_logs_our_figures(steps: list[int]) -> None:
    pytest.importorskip("lightning", reason="lightning is not installed")
    from deepum.callbacks.lightning import DeepumCallback

    logged: list[dict[str, float]] = []
    module = SimpleNamespace(log_dict=logged.append)
    trainer = SimpleNamespace(global_step=0, log_every_n_steps=2)
    callback = DeepumCallback()
    callback.on_train_start(trainer, module)
    for number in range(1, 5):
        trainer.global_step = number
        callback.on_train_batch_end(trainer, module, None, None, number)
    assert [each["deepum/step_s"] for each in logged] == [4.0, 2.0]
