"""timm's image models, trained by its own parts: `images.py MODEL BATCH [--amp]`."""

from __future__ import annotations

import argparse

import timm
import torch
from steps import repeat
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    model = timm.create_model(options.model, pretrained=False).cuda().train()
    size = model.default_cfg["input_size"]
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3)
    loss_of, scaler = LabelSmoothingCrossEntropy(0.1), torch.amp.GradScaler(enabled=options.amp)

    def step() -> None:
        images = torch.randn(options.batch, *size, device="cuda")
        labels = torch.randint(1000, (options.batch,), device="cuda")
        optimizer.zero_grad()
        with torch.amp.autocast("cuda", enabled=options.amp):
            loss = loss_of(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    repeat(step, options.steps)


if __name__ == "__main__":
    main()
