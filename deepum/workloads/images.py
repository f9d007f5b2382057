"""Image classifiers: ResNet (He et al. 2015; as in torchvision), MobileNetV2 (Sandler et al. 2018),
ViT (Dosovitskiy et al. 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from deepum.workloads.registry import Job
from deepum.workloads.training import Training, adamw, sgd

CLASSES = 1000


def _convolution(
    inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3, 1 x 1, beside the input."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.path = nn.Sequential(
            *_convolution(inputs, width, 1),
            nn.ReLU(inplace=True),
            *_convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(width, outputs, 1),
        )
        self.beside = (
            nn.Sequential(*_convolution(inputs, outputs, 1, stride))
            if stride != 1 or inputs != outputs
            else None
        )

    def forward(self, x: Any) -> Any:
        """[batch, channels, height, width]."""
        y = self.path(x)
        y += x if self.beside is None else self.beside(x)
        return functional.relu_(y)


class Basic(nn.Module):
    """3 x 3 twice, beside the input: the blocks of ResNet-18 and ResNet-34."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            *_convolution(inputs, width, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(width, width, 3),
        )
        self.beside = (
            nn.Sequential(*_convolution(inputs, width, 1, stride))
            if stride != 1 or inputs != width
            else None
        )

    def forward(self, x: Any) -> Any:
        """[batch, channels, height, width]."""
        y = self.path(x)
        y += x if self.beside is None else self.beside(x)
        return functional.relu_(y)


class ResNet(nn.Module):
    """Images to logits. widened: channels that a block gives, over its width."""

    def __init__(
        self, blocks: Sequence[int], block: type[nn.Module] = Bottleneck, widened: int = 4
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            *_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        layers, inputs = [], 64
        for stage, count in enumerate(blocks):
            for number in range(count):
                layers.append(block(inputs, 64 << stage, 2 if stage and number == 0 else 1))
                inputs = widened * (64 << stage)
        self.layers = nn.Sequential(*layers)
        self.classify = nn.Linear(inputs, CLASSES)

    def forward(self, x: Any) -> Any:
        """[batch, 3, height, width]."""
        return self.classify(
            functional.adaptive_avg_pool2d(self.layers(self.stem(x)), 1).flatten(1)
        )


class InvertedResidual(nn.Module):
    """Widened, convolved channel by channel, narrowed."""

    def __init__(self, inputs: int, outputs: int, stride: int, widen: int) -> None:
        super().__init__()
        hidden = inputs * widen
        first = [*_convolution(inputs, hidden, 1), nn.ReLU6(inplace=True)] if widen != 1 else []
        middle = [*_convolution(hidden, hidden, 3, stride, hidden), nn.ReLU6(inplace=True)]
        self.path = nn.Sequential(*first, *middle, *_convolution(hidden, outputs, 1))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Any) -> Any:
        """[batch, channels, height, width]."""
        return x + self.path(x) if self.adds else self.path(x)


class MobileNetV2(nn.Module):
    """Images to logits."""

    def __init__(self) -> None:
        super().__init__()
        # Table 2.
        stages = (
            (1, 16, 1, 1),
            (6, 24, 2, 2),
            (6, 32, 3, 2),
            (6, 64, 4, 2),
            (6, 96, 3, 1),
            (6, 160, 3, 2),
            (6, 320, 1, 1),
        )
        layers: list[nn.Module] = [*_convolution(3, 32, 3, 2), nn.ReLU6(inplace=True)]
        inputs = 32
        for widen, outputs, count, stride in stages:
            for number in range(count):
                layers.append(
                    InvertedResidual(inputs, outputs, stride if number == 0 else 1, widen)
                )
                inputs = outputs
        self.layers = nn.Sequential(*layers, *_convolution(inputs, 1280, 1), nn.ReLU6(inplace=True))
        self.classify = nn.Linear(1280, CLASSES)

    def forward(self, x: Any) -> Any:
        """[batch, 3, height, width]."""
        x = functional.adaptive_avg_pool2d(self.layers(x), 1).flatten(1)
        return self.classify(functional.dropout(x, 0.2, self.training))


class Encoder(nn.Module):
    """A layer of a vision transformer, normalised before."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.combine = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        """[batch, patches, width]."""
        batch, length, width = x.shape
        query, key, value = (
            self.project(self.norm_1(x))
            .view(batch, length, 3, self.heads, -1)
            .permute(2, 0, 3, 1, 4)
            .unbind(0)
        )
        attended = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.combine(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(functional.gelu(self.widen(self.norm_2(x))))


class ViT(nn.Module):
    """Images to logits."""

    def __init__(self, image: int, patch: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, width))
        self.layers = nn.ModuleList(Encoder(width, heads) for _ in range(layers))
        self.norm, self.classify = nn.LayerNorm(width), nn.Linear(width, CLASSES)

    def forward(self, x: Any) -> Any:
        """[batch, 3, height, width]."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.classify(self.norm(x)[:, 0])


def _classifier(device: str, model: Any, batch: int, image: int, optimizer: Any) -> Job:
    def loss(images: Any, classes: Any) -> Any:
        return functional.cross_entropy(model(images), classes)

    def data() -> tuple[Any, ...]:
        return torch.randn(batch, 3, image, image, device=device), torch.randint(
            CLASSES, (batch,), device=device
        )

    return Training(loss, data, optimizer(model.parameters()))


def resnet(
    device: str, batch: int, image: int, stage1: int, stage2: int, stage3: int, stage4: int
) -> Job:
    """Trains a ResNet of so many bottlenecks in its four stages."""
    with torch.device(device):
        model = ResNet((stage1, stage2, stage3, stage4))
    return _classifier(device, model, batch, image, sgd)


def basic_resnet(
    device: str, batch: int, image: int, stage1: int, stage2: int, stage3: int, stage4: int
) -> Job:
    """Trains a ResNet of so many basic blocks in its four stages."""
    with torch.device(device):
        model = ResNet((stage1, stage2, stage3, stage4), Basic, 1)
    return _classifier(device, model, batch, image, sgd)


def mobilenet(device: str, batch: int, image: int) -> Job:
    """Trains a MobileNetV2."""
    with torch.device(device):
        model = MobileNetV2()
    return _classifier(device, model, batch, image, sgd)


def vit(
    device: str, batch: int, image: int, patch: int, layers: int, width: int, heads: int
) -> Job:
    """Trains a vision transformer."""
    with torch.device(device):
        model = ViT(image, patch, layers, width, heads)
    return _classifier(device, model, batch, image, adamw)
