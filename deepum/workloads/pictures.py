"""Models that make images: DCGAN (Radford et al. 2015; as in PyTorch's example), a diffusion
model's U-Net (Rombach et al. 2021).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from deepum.workloads.registry import Job
from deepum.workloads.training import Training, adam, adamw

_NOISE = 100


class Adversaries:
    """A generator and a discriminator of 64 x 64 images, trained in turn."""

    def __init__(self, device: str, batch: int, width: int) -> None:
        self._device, self._batch = device, batch
        with torch.device(device):
            self._generator, self._discriminator = self._models(width)
        self._of_generator, self._of_discriminator = (
            adam(self._generator.parameters()),
            adam(self._discriminator.parameters()),
        )

    @staticmethod
    def _models(width: int) -> tuple[Any, Any]:
        widths = [8 * width, 4 * width, 2 * width, width]
        up: list[nn.Module] = [
            nn.ConvTranspose2d(_NOISE, widths[0], 4, 1, 0, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.ReLU(True),
        ]
        for inputs, outputs in itertools.pairwise(widths):
            up += [
                nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(True),
            ]
        up += [nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh()]
        down: list[nn.Module] = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True)]
        for inputs, outputs in zip(widths[::-1], widths[-2::-1], strict=False):
            down += [
                nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.LeakyReLU(0.2, True),
            ]
        down += [nn.Conv2d(widths[0], 1, 4, 1, 0, bias=False), nn.Sigmoid()]
        return nn.Sequential(*up), nn.Sequential(*down)

    def _judge(self, images: Any, truth: float) -> None:
        verdict = self._discriminator(images).view(-1)
        functional.binary_cross_entropy(verdict, torch.full_like(verdict, truth)).backward()

    def step(self) -> None:
        """The discriminator on true and made images, then the generator."""
        true = torch.randn(self._batch, 3, 64, 64, device=self._device)
        noise = torch.randn(self._batch, _NOISE, 1, 1, device=self._device)
        self._of_discriminator.zero_grad(set_to_none=True)
        self._judge(true, 1.0)
        made = self._generator(noise)
        self._judge(made.detach(), 0.0)
        self._of_discriminator.step()
        self._of_generator.zero_grad(set_to_none=True)
        self._judge(made, 1.0)
        self._of_generator.step()


def dcgan(device: str, batch: int, width: int) -> Job:
    """Trains a DCGAN."""
    return Adversaries(device, batch, width)


class Residual(nn.Module):
    """Two convolutions, told the time between them."""

    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.norm_1, self.convolve_1 = (
            nn.GroupNorm(32, inputs),
            nn.Conv2d(inputs, outputs, 3, padding=1),
        )
        self.norm_2, self.convolve_2 = (
            nn.GroupNorm(32, outputs),
            nn.Conv2d(outputs, outputs, 3, padding=1),
        )
        self.time = nn.Linear(time, outputs)
        self.beside = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Any, time: Any) -> Any:
        """[batch, channels, height, width], [batch, time]."""
        y = (
            self.convolve_1(functional.silu(self.norm_1(x)))
            + self.time(functional.silu(time))[:, :, None, None]
        )
        return self.beside(x) + self.convolve_2(functional.silu(self.norm_2(y)))


class Attention(nn.Module):
    """Self-attention over places, then attention to a text, then an MLP."""

    def __init__(self, width: int, heads: int, text: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.enter, self.leave = (
            nn.GroupNorm(32, width),
            nn.Conv2d(width, width, 1),
            nn.Conv2d(width, width, 1),
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.queries = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.keys = nn.ModuleList(nn.Linear(source, width, bias=False) for source in (width, text))
        self.values = nn.ModuleList(
            nn.Linear(source, width, bias=False) for source in (width, text)
        )
        self.combine = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.widen, self.narrow = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def _attend(self, number: int, x: Any, source: Any) -> Any:
        batch, length, width = x.shape
        query, key, value = (
            part(y).view(batch, y.shape[1], self.heads, -1).transpose(1, 2)
            for part, y in (
                (self.queries[number], x),
                (self.keys[number], source),
                (self.values[number], source),
            )
        )
        attended = functional.scaled_dot_product_attention(query, key, value)
        return self.combine[number](attended.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x: Any, text: Any) -> Any:
        """[batch, channels, height, width], [batch, tokens, text]."""
        batch, channels, height, width = x.shape
        y = self.enter(self.norm(x)).flatten(2).transpose(1, 2)
        z = self.norms[0](y)
        y = y + self._attend(0, z, z)
        y = y + self._attend(1, self.norms[1](y), text)
        value, gate = self.widen(self.norms[2](y)).chunk(2, dim=-1)
        y = y + self.narrow(value * functional.gelu(gate))
        return x + self.leave(y.transpose(1, 2).reshape(batch, channels, height, width))


class UNet(nn.Module):
    """The noise in a latent image: Stable Diffusion 1's at width 320, two blocks a level, attention
    on all levels but the last.
    """

    _FACTORS = (1, 2, 4, 4)

    def __init__(self, width: int, heads: int, text: int) -> None:
        super().__init__()
        time = 4 * width
        self.width = width
        self.embed = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv2d(4, width, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        kept, inputs = [width], width
        for level, factor in enumerate(self._FACTORS):
            last = level == len(self._FACTORS) - 1
            for _ in range(2):
                outputs = factor * width
                self.down.append(
                    nn.ModuleList(
                        [
                            Residual(inputs, outputs, time),
                            *([] if last else [Attention(outputs, heads, text)]),
                        ]
                    )
                )
                kept.append(outputs)
                inputs = outputs
            if not last:
                self.down.append(nn.Conv2d(inputs, inputs, 3, 2, 1))
                kept.append(inputs)
        self.middle = nn.ModuleList(
            [
                Residual(inputs, inputs, time),
                Attention(inputs, heads, text),
                Residual(inputs, inputs, time),
            ]
        )
        for level, factor in reversed(list(enumerate(self._FACTORS))):
            last = level == len(self._FACTORS) - 1
            for number in range(3):
                outputs = factor * width
                parts = [
                    Residual(inputs + kept.pop(), outputs, time),
                    *([] if last else [Attention(outputs, heads, text)]),
                ]
                if number == 2 and level:
                    parts.append(nn.Conv2d(outputs, outputs, 3, padding=1))
                self.up.append(nn.ModuleList(parts))
                inputs = outputs
        self.leave = nn.Sequential(
            nn.GroupNorm(32, inputs), nn.SiLU(), nn.Conv2d(inputs, 4, 3, padding=1)
        )

    def forward(self, x: Any, times: Any, text: Any) -> Any:
        """[batch, 4, height, width], [batch], [batch, tokens, text]."""
        half = self.width // 2
        frequencies = torch.exp(torch.arange(half, device=x.device) * (-math.log(10000) / half))
        angles = times[:, None] * frequencies[None]
        time = self.embed(torch.cat([angles.cos(), angles.sin()], dim=1))
        x = self.enter(x)
        kept = [x]
        for part in self.down:
            x = part(x) if isinstance(part, nn.Conv2d) else self._block(part, x, time, text)
            kept.append(x)
        x = self._block(self.middle, x, time, text)
        for part in self.up:
            x = self._block(part, torch.cat([x, kept.pop()], dim=1), time, text)
        return self.leave(x)

    @staticmethod
    def _block(parts: Any, x: Any, time: Any, text: Any) -> Any:
        for part in parts:
            if isinstance(part, Residual):
                x = part(x, time)
            elif isinstance(part, Attention):
                x = part(x, text)
            else:
                x = part(functional.interpolate(x, scale_factor=2.0, mode="nearest"))
        return x


def unet(
    device: str, batch: int, latent: int, width: int, heads: int, text: int, tokens: int
) -> Job:
    """Trains it to foretell noise."""
    with torch.device(device):
        model = UNet(width, heads, text)

    def loss(noisy: Any, times: Any, condition: Any, noise: Any) -> Any:
        return functional.mse_loss(model(noisy, times, condition), noise)

    def data() -> tuple[Any, ...]:
        image = torch.randn(batch, 4, latent, latent, device=device)
        noise = torch.randn_like(image)
        return (
            image + noise,
            torch.rand(batch, device=device),
            torch.randn(batch, tokens, text, device=device),
            noise,
        )

    return Training(loss, data, adamw(model.parameters()))
