"""For Hugging Face's Trainer:

from deepum.callbacks.transformers import attach
attach(trainer)
"""

from __future__ import annotations

from typing import Any

import transformers

from deepum.callbacks.metrics import of_steps
from deepum.inside import api


class DeepumCallback(transformers.TrainerCallback):
    """Adds our figures to what the Trainer logs: means of the steps since it logged last."""

    def __init__(self) -> None:
        self._step = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Steps begin to count."""
        self._step = state.global_step
        api.step()

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **more: Any
    ) -> None:
        """The Trainer logs."""
        steps = state.global_step - self._step
        if logs is None or "loss" not in logs or steps <= 0:
            return
        self._step = state.global_step
        figures = api.step()
        if figures is None:
            return
        metrics = of_steps(figures, steps)
        logs.update(metrics)
        if state.log_history:
            state.log_history[-1].update(metrics)


def attach(trainer: Any) -> None:
    """Before all other callbacks of the trainer, so that what these report has our figures, too."""
    trainer.callback_handler.callbacks.insert(0, DeepumCallback())
