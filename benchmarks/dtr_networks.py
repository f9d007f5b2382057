"""The four networks of the DTR paper's simulated figures that are convolutional (Kirisame et al.,
ICLR 2021), as programs that compute gradients of a batch, and change no weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from deepum.workloads.registry import Job

CLASSES = 1000


class Gradients:
    """Of a model, for batches of those shapes, images and what they are compared with."""

    def __init__(
        self, model: nn.Module, loss: Callable[..., Any], batch: Callable[[], tuple[Any, ...]]
    ) -> None:
        self._model = model
        self._loss = loss
        self._batch = batch

    def step(self) -> None:
        """One batch."""
        images, wanted = self._batch()
        self._loss(self._model(images), wanted).backward()
        self._model.zero_grad(set_to_none=True)


def _convolution(
    inputs: int, outputs: int, size: int | tuple[int, int], stride: int = 1, padded: bool = True
) -> nn.Sequential:
    high, wide = (size, size) if isinstance(size, int) else size
    padding = (high // 2, wide // 2) if padded else (0, 0)
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, (high, wide), stride, padding, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class Concatenated(nn.Module):
    """What several paths make of the input, behind each other."""

    def __init__(self, *paths: nn.Module) -> None:
        super().__init__()
        self.paths = nn.ModuleList(paths)

    def forward(self, x: Any) -> Any:
        """[batch, channels, height, width]."""
        return torch.cat([path(x) for path in self.paths], 1)


# --- ResNet-32: He et al., 2016, for CIFAR


class Basic(nn.Module):
    """Two convolutions beside the input, of which channels are added with zeros."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.stride, self.more = (2, width // 4) if inputs != width else (1, 0)
        self.first = nn.Conv2d(inputs, width, 3, self.stride, 1, bias=False)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])

    def forward(self, x: Any) -> Any:
        """[batch, channels, height, width]."""
        y = functional.relu(self.norms[0](self.first(x)))
        y = self.norms[1](self.second(y))
        if self.more:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.more, self.more))
        y += x
        return functional.relu(y)


def resnet32() -> nn.Module:
    """Three stages of five blocks, 16 to 64 channels."""
    layers: list[nn.Module] = [_convolution(3, 16, 3)]
    inputs = 16
    for width in (16, 32, 64):
        for _ in range(5):
            layers.append(Basic(inputs, width))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


# --- DenseNet-121: Huang et al., 2017; as in torchvision


class Dense(nn.Module):
    """32 channels more."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            *(nn.BatchNorm2d(inputs), nn.ReLU(inplace=True)),
            nn.Conv2d(inputs, 128, 1, bias=False),
            *(nn.BatchNorm2d(128), nn.ReLU(inplace=True)),
            nn.Conv2d(128, 32, 3, padding=1, bias=False),
        )

    def forward(self, features: list[Any]) -> Any:
        """Of what was made before in the block."""
        return self.path(torch.cat(features, 1))


class DenseBlock(nn.Module):
    """So many, each of all before."""

    def __init__(self, inputs: int, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Dense(inputs + 32 * number) for number in range(count))

    def forward(self, x: Any) -> Any:
        """[batch, channels, height, width]."""
        features = [x]
        for layer in self.layers:
            features.append(layer(features))
        return torch.cat(features, 1)


def densenet121() -> nn.Module:
    """Four dense blocks, with halvings in between."""
    layers: list[nn.Module] = [_convolution(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for count in (6, 12, 24, 16):
        layers.append(DenseBlock(inputs, count))
        inputs += 32 * count
        layers += [nn.BatchNorm2d(inputs), nn.ReLU(inplace=True)]
        if count != 16:
            layers += [nn.Conv2d(inputs, inputs // 2, 1, bias=False), nn.AvgPool2d(2)]
            inputs //= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


# --- Inception-v4: Szegedy et al., 2017, figures 3 to 8


def _path(inputs: int, *layers: tuple[int, int | tuple[int, int]], last: int = 1) -> nn.Sequential:
    """Convolutions of those (channels, size); `last`: stride of the last, unpadded if above 1."""
    made = []
    for number, (outputs, size) in enumerate(layers):
        ends = number == len(layers) - 1 and last > 1
        made.append(_convolution(inputs, outputs, size, last if ends else 1, not ends))
        inputs = outputs
    return nn.Sequential(*made)


def _pooled(inputs: int, outputs: int) -> nn.Sequential:
    pool = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
    return nn.Sequential(pool, _convolution(inputs, outputs, 1))


class Forked(nn.Module):
    """A path whose end is two, behind each other."""

    def __init__(self, stem: nn.Module, *ends: nn.Module) -> None:
        super().__init__()
        self.stem, self.ends = stem, Concatenated(*ends)

    def forward(self, x: Any) -> Any:
        """[batch, channels, height, width]."""
        return self.ends(self.stem(x))


def _forked(inputs: int, *layers: tuple[int, int | tuple[int, int]]) -> Forked:
    width = layers[-1][0]
    ends = [_convolution(width, 256, size) for size in ((1, 3), (3, 1))]
    return Forked(_path(inputs, *layers), *ends)


def _a() -> nn.Module:
    return Concatenated(
        _path(384, (96, 1)),
        _path(384, (64, 1), (96, 3)),
        _path(384, (64, 1), (96, 3), (96, 3)),
        _pooled(384, 96),
    )


def _b() -> nn.Module:
    return Concatenated(
        _path(1024, (384, 1)),
        _path(1024, (192, 1), (224, (1, 7)), (256, (7, 1))),
        _path(1024, (192, 1), (192, (7, 1)), (224, (1, 7)), (224, (7, 1)), (256, (1, 7))),
        _pooled(1024, 128),
    )


def _c() -> nn.Module:
    return Concatenated(
        _path(1536, (256, 1)),
        _forked(1536, (384, 1)),
        _forked(1536, (384, 1), (448, (3, 1)), (512, (1, 3))),
        _pooled(1536, 256),
    )


def inception_v4() -> nn.Module:
    """The stem, and 4, 7 and 3 blocks with halvings in between."""
    stem = [
        _convolution(3, 32, 3, 2, padded=False),
        _convolution(32, 32, 3, padded=False),
        _convolution(32, 64, 3),
        Concatenated(nn.MaxPool2d(3, 2), _convolution(64, 96, 3, 2, padded=False)),
        Concatenated(
            nn.Sequential(_path(160, (64, 1)), _convolution(64, 96, 3, padded=False)),
            nn.Sequential(
                _path(160, (64, 1), (64, (1, 7)), (64, (7, 1))),
                _convolution(64, 96, 3, padded=False),
            ),
        ),
        Concatenated(_convolution(192, 192, 3, 2, padded=False), nn.MaxPool2d(3, 2)),
    ]
    halved_a = Concatenated(
        _path(384, (384, 3), last=2),
        _path(384, (192, 1), (224, 3), (256, 3), last=2),
        nn.MaxPool2d(3, 2),
    )
    halved_b = Concatenated(
        _path(1024, (192, 1), (192, 3), last=2),
        _path(1024, (256, 1), (256, (1, 7)), (320, (7, 1)), (320, 3), last=2),
        nn.MaxPool2d(3, 2),
    )
    blocks = [*(_a() for _ in range(4)), halved_a, *(_b() for _ in range(7)), halved_b]
    return nn.Sequential(
        *stem,
        *blocks,
        *(_c() for _ in range(3)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(1536, CLASSES),
    )


# --- U-Net: Ronneberger et al., 2015, with batch norms, padded, and bilinear on the way up


class UNet(nn.Module):
    """Down four times and up again, beside what was there on the way down."""

    def __init__(self) -> None:
        super().__init__()
        widths = (64, 128, 256, 512, 512)
        self.inside = self._double(3, 64, 64)
        self.down = nn.ModuleList(
            self._double(one, other, other) for one, other in pairwise(widths)
        )
        up = ((1024, 512, 256), (512, 256, 128), (256, 128, 64), (128, 64, 64))
        self.up = nn.ModuleList(self._double(*one) for one in up)
        self.outside = nn.Conv2d(64, 1, 1)

    @staticmethod
    def _double(inputs: int, between: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            *(nn.Conv2d(inputs, between, 3, padding=1), nn.BatchNorm2d(between)),
            nn.ReLU(inplace=True),
            *(nn.Conv2d(between, outputs, 3, padding=1), nn.BatchNorm2d(outputs)),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: Any) -> Any:
        """[batch, 3, height, width]."""
        beside = [self.inside(x)]
        for layer in self.down:
            beside.append(layer(functional.max_pool2d(beside[-1], 2)))
        x = beside.pop()
        for layer in self.up:
            larger = functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
            x = layer(torch.cat([beside.pop(), larger], 1))
        return self.outside(x)


def _classifier(model: Callable[[], nn.Module], batch: int, image: int) -> Callable[[str], Job]:
    def build(device: str) -> Job:
        def data() -> tuple[Any, ...]:
            return (
                torch.randn(batch, 3, image, image, device=device),
                torch.randint(10, (batch,), device=device),
            )

        with torch.device(device):
            return Gradients(model(), functional.cross_entropy, data)

    return build


def _masks(batch: int, shape: Sequence[int]) -> Callable[[str], Job]:
    def build(device: str) -> Job:
        def data() -> tuple[Any, ...]:
            return (
                torch.randn(batch, 3, *shape, device=device),
                torch.rand(batch, 1, *shape, device=device),
            )

        with torch.device(device):
            return Gradients(UNet(), functional.binary_cross_entropy_with_logits, data)

    return build


def resnet(batch: int) -> Callable[[str], Job]:
    """ResNet-32 for images of 224 x 224."""
    return _classifier(resnet32, batch, 224)


def densenet(batch: int) -> Callable[[str], Job]:
    """DenseNet-121, the same."""
    return _classifier(densenet121, batch, 224)


def inception(batch: int) -> Callable[[str], Job]:
    """Inception-v4, 299 x 299."""
    return _classifier(inception_v4, batch, 299)


def unet(batch: int) -> Callable[[str], Job]:
    """U-Net, 416 x 608."""
    return _masks(batch, (416, 608))
