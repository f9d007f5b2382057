"""For Lightning:

from deepum.callbacks.lightning import DeepumCallback
trainer = lightning.Trainer(callbacks=[DeepumCallback()])
"""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from deepum.callbacks.metrics import of_steps
from deepum.inside import api


class DeepumCallback(Callback):
    """Logs our figures with the model's own, as often as the trainer logs: means of the steps since
    it did last.
    """

    def __init__(self) -> None:
        self._batches = 0

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """Steps begin to count."""
        self._batches = 0
        api.step()

    def on_train_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_index: int
    ) -> None:
        """A batch is done."""
        self._batches += 1
        if (trainer.global_step + 1) % max(1, trainer.log_every_n_steps):
            return
        figures = api.step()
        if figures is not None:
            module.log_dict(of_steps(figures, self._batches))
        self._batches = 0
