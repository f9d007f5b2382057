"""Lightning's Trainer fits the transformer of Lightning's own demos, with validation between."""

from __future__ import annotations

import lightning
import torch
from lightning.pytorch.demos import Transformer
from steps import finish
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

WORDS, LENGTH = 16000, 256


class Language(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = Transformer(vocab_size=WORDS, ninp=768, nhead=12, nhid=3072, nlayers=4)

    def training_step(self, batch: list[torch.Tensor], _index: int) -> torch.Tensor:
        (tokens,) = batch
        loss = functional.nll_loss(self.model(tokens, tokens), tokens.view(-1))
        self.log("loss", loss, prog_bar=False)
        return loss

    validation_step = training_step

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


tokens = TensorDataset(torch.randint(WORDS, (48, LENGTH)))
trainer = lightning.Trainer(
    max_steps=6,
    accelerator="gpu",
    devices=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    gradient_clip_val=1.0,
)
trainer.fit(Language(), DataLoader(tokens, batch_size=8), DataLoader(tokens, batch_size=8))
finish()
