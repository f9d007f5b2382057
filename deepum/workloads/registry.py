"""The names, what they stand for, and how a request for one is read."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from deepum.errors import DeepumError, UsageError


class Job(Protocol):
    """Something that is done over and over on a device."""

    def step(self) -> None:
        """Once."""


@dataclass(frozen=True)
class Named:
    """`build`: module of this package and function in it, which takes the device and the numbers.
    `paper`: one of the nine of DeepUM's evaluation. `differs`: steps are not alike, beyond which
    rows they gather. `steps`: so many are simulated if nothing else is said.
    """

    name: str
    description: str
    build: str
    numbers: Mapping[str, int]
    paper: bool = False
    differs: bool = False
    steps: int = 6


@dataclass(frozen=True)
class Request:
    """A workload with all its numbers."""

    named: Named
    numbers: Mapping[str, int]

    def __str__(self) -> str:
        """As it is written."""
        numbers = ",".join(f"{name}={number}" for name, number in self.numbers.items())
        return f"{self.named.name}:{numbers}"

    def build(self, device: str) -> Job:
        """Makes it on that device. Raises DeepumError without PyTorch, and where the numbers fit no
        model.
        """
        module, _, function = self.named.build.partition(".")
        try:
            made = importlib.import_module(f"deepum.workloads.{module}")
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise DeepumError(
                f"workload {self.named.name}: needs PyTorch; pip install 'deepum[torch]'"
            ) from None
        try:
            job: Job = getattr(made, function)(device, **self.numbers)
        except (ValueError, ZeroDivisionError) as error:
            raise UsageError(f"workload {self}: {error}; choose other numbers") from None
        return job


def _numbers(text: str) -> Mapping[str, int]:
    return MappingProxyType(
        {name: int(number) for name, _, number in (part.partition("=") for part in text.split(","))}
    )


_LLAMA_7B = "layers=32,width=4096,heads=32,hidden=11008"
_LIST = (
    Named(
        "resnet152",
        "ResNet-152",
        "images.resnet",
        _numbers("batch=128,image=224,stage1=3,stage2=8,stage3=36,stage4=3"),
        paper=True,
    ),
    Named(
        "resnet200",
        "ResNet-200",
        "images.resnet",
        _numbers("batch=128,image=224,stage1=3,stage2=24,stage3=36,stage4=3"),
        paper=True,
    ),
    Named(
        "mobilenet", "MobileNetV2", "images.mobilenet", _numbers("batch=384,image=224"), paper=True
    ),
    Named(
        "dcgan",
        "DCGAN, images of 64 x 64",
        "pictures.dcgan",
        _numbers("batch=12288,width=64"),
        paper=True,
    ),
    Named(
        "bert-base",
        "BERT Base, masked tokens",
        "bert.bert",
        _numbers("batch=48,seq=512,layers=12,width=768,heads=12"),
        paper=True,
    ),
    Named(
        "bert-large",
        "BERT Large, masked tokens",
        "bert.bert",
        _numbers("batch=24,seq=512,layers=24,width=1024,heads=16"),
        paper=True,
    ),
    Named(
        "gpt2-l",
        "GPT-2 L, 0.77 G parameters",
        "gpt.gpt2",
        _numbers("batch=3,seq=1024,layers=36,width=1280,heads=20"),
        paper=True,
    ),
    Named(
        "gpt2-xl",
        "GPT-2 XL, 1.6 G parameters",
        "gpt.gpt2",
        _numbers("batch=5,seq=1024,layers=48,width=1600,heads=25"),
        paper=True,
    ),
    Named(
        "dlrm",
        "DLRM, sparse gradients, random rows",
        "recommender.dlrm",
        _numbers("batch=8192,tables=26,rows=2000000,width=128,lookups=1,sparse=1"),
        paper=True,
    ),
    Named(
        "gpt2-small",
        "GPT-2, 0.12 G parameters",
        "gpt.gpt2",
        _numbers("batch=15,seq=1024,layers=12,width=768,heads=12"),
    ),
    Named(
        "dlrm-dense",
        "DLRM, gradients as large as the tables",
        "recommender.dlrm",
        _numbers("batch=8192,tables=26,rows=1000000,width=128,lookups=1,sparse=0"),
    ),
    Named(
        "llama-7b",
        "Llama 7B, bfloat16, all of it trained",
        "llama.training",
        _numbers(f"batch=1,seq=1024,rank=0,{_LLAMA_7B}"),
    ),
    Named(
        "llama-7b-lora",
        "Llama 7B, bfloat16, by LoRA",
        "llama.training",
        _numbers(f"batch=4,seq=1024,rank=16,{_LLAMA_7B}"),
    ),
    Named(
        "vit-huge",
        "ViT-H/14",
        "images.vit",
        _numbers("batch=32,image=224,patch=14,layers=32,width=1280,heads=16"),
    ),
    Named(
        "unet",
        "a diffusion model's U-Net",
        "pictures.unet",
        _numbers("batch=8,latent=64,width=320,heads=8,text=768,tokens=77"),
    ),
    Named(
        "t5-large",
        "T5 1.1 Large",
        "t5.t5",
        _numbers("batch=8,seq=512,answer=128,layers=24,width=1024,heads=16,hidden=2816"),
    ),
    Named(
        "experts",
        "a mixture of experts, routed at random",
        "experts.mixture",
        _numbers("batch=4,seq=1024,layers=12,width=1024,heads=16,experts=16,seed=1"),
        differs=True,
    ),
    Named(
        "lstm",
        "an LSTM on sentences of varying lengths",
        "lstm.lstm",
        _numbers("batch=192,least=24,most=192,layers=2,width=2048,seed=1"),
        differs=True,
    ),
    Named(
        "llama-decode",
        "Llama 13B decoding, a token a step: 26 GB of weights, read over and over",
        "llama.decoding",
        _numbers(
            "batch=4,prompt=512,tokens=1,room=1024,layers=40,width=5120,heads=40,hidden=13824"
        ),
        differs=True,
    ),
    Named(
        "llama-long",
        "Llama 7B reading long texts, a piece a step: caches grow",
        "llama.reading",
        _numbers(f"batch=1,piece=2048,room=16384,{_LLAMA_7B}"),
        differs=True,
        steps=19,  # two texts of eight pieces, after those that are not counted
    ),
)
WORKLOADS: Mapping[str, Named] = MappingProxyType({one.name: one for one in _LIST})


def parse(text: str) -> Request:
    """NAME or NAME:number=value,...; numbers that are not given are the workload's own. Raises
    UsageError.
    """
    name, _, given = text.partition(":")
    named = WORKLOADS.get(name)
    if named is None:
        near = difflib.get_close_matches(name, WORKLOADS, 1)
        raise UsageError(
            f"workload '{name}': is unknown; {f'did you mean {near[0]}? ' if near else ''}`deepum "
            "workloads` lists them"
        )
    numbers = dict(named.numbers)
    for part in filter(None, (part.strip() for part in given.split(","))):
        key, separator, value = part.partition("=")
        if key not in numbers:
            raise UsageError(f"workload {name}: has no number '{key}'; it has {', '.join(numbers)}")
        if (
            not separator
            or not value.isascii()
            or not value.isdigit()
            or not 0 <= int(value) < 1 << 40
        ):
            raise UsageError(f"workload {name}: '{part}' is no number; write {key}={numbers[key]}")
        numbers[key] = int(value)
    return Request(named, MappingProxyType(numbers))
