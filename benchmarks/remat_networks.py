"""Trainings whose memory is measured: an image network, one of a thousand layers, a language model,
one of diffusion, and one whose steps differ.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from deepum.workloads.registry import Job


def _named(text: str) -> Callable[[int], Job]:
    def build(batch: int) -> Job:
        from deepum.workloads import parse

        return parse(text.format(batch=batch)).build("cuda")

    return build


def _narrow(batch: int) -> Job:
    """A ResNet of 1202 layers for images of 32 x 32: 3 stages of 200 blocks of two convolutions, 16
    to 64 channels wide (He et al., 2016).
    """
    import torch
    from torch import nn
    from torch.nn import functional

    from deepum.workloads.images import Basic
    from deepum.workloads.training import Training, sgd

    with torch.device("cuda"):
        blocks: list[Any] = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)]
        inputs = 16
        for width in (16, 32, 64):
            for number in range(200):
                stride = 2 if number == 0 and width > 16 else 1
                blocks.append(Basic(inputs, width, stride))
                inputs = width
        model = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))

    def data() -> tuple[Any, ...]:
        return (
            torch.randn(batch, 3, 32, 32, device="cuda"),
            torch.randint(10, (batch,), device="cuda"),
        )

    def loss(images: Any, classes: Any) -> Any:
        return functional.cross_entropy(model(images), classes)

    return Training(loss, data, sgd(model.parameters()))


def _random_path(batch: int) -> Job:
    """A supernet of 20 places with four choices each, of which every step takes another path, as in
    single path one-shot architecture search (Guo et al., 2020).
    """
    import torch
    from torch import nn
    from torch.nn import functional

    from deepum.workloads.images import InvertedResidual
    from deepum.workloads.training import Training, sgd

    drawn = random.Random(1)

    class Supernet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
            self.places = nn.ModuleList()
            inputs = 16
            for place in range(20):
                outputs, stride = 16 << place // 5, 2 if place % 5 == 0 else 1
                self.places.append(
                    nn.ModuleList(
                        InvertedResidual(inputs, outputs, stride, widen) for widen in (1, 2, 4, 6)
                    )
                )
                inputs = outputs
            self.head = nn.Linear(inputs, 1000)

        def forward(self, x: Any) -> Any:
            x = self.stem(x)
            for place in self.places:
                x = place[drawn.randrange(4)](x)
            return self.head(x.mean((2, 3)))

    with torch.device("cuda"):
        model = Supernet()

    def data() -> tuple[Any, ...]:
        return (
            torch.randn(batch, 3, 224, 224, device="cuda"),
            torch.randint(1000, (batch,), device="cuda"),
        )

    def loss(images: Any, classes: Any) -> Any:
        return functional.cross_entropy(model(images), classes)

    return Training(loss, data, sgd(model.parameters()))


@dataclass(frozen=True)
class Network:
    """build: a training with a batch. batch: at which its slowdown is measured. blocks: names of
    the classes that checkpoints are put around. card: bytes, for the largest batch.
    """

    build: Callable[[int], Job]
    batch: int
    blocks: tuple[str, ...]
    card: int = 11 << 30


NETWORKS: Mapping[str, Network] = MappingProxyType(
    {
        "resnet50": Network(
            _named("resnet152:batch={batch},image=224,stage1=3,stage2=4,stage3=6,stage4=3"),
            64,
            ("Bottleneck",),
        ),
        "resnet1202": Network(_narrow, 64, ("Basic",)),
        "gpt2-small": Network(_named("gpt2-small:batch={batch}"), 8, ("Block",)),
        "unet": Network(_named("unet:batch={batch}"), 32, ("Residual", "Attention"), 24 << 30),
        "random path": Network(_random_path, 64, ("InvertedResidual",)),
    }
)
