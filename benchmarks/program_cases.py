"""The programs that benchmarks/programs.py runs: scripts of benchmarks/programs, most of them
around other people's training loops.
"""

from __future__ import annotations

from dataclasses import dataclass

RANKS = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@dataclass(frozen=True)
class Case:
    """`script`: of benchmarks/programs, with its arguments. `memory`: of the card, less than the
    program needs. `packages`: distributions that it is about, the first of which the table names;
    all have to be installed. `launcher`: what stands before the script.
    """

    key: str
    what: str
    script: tuple[str, ...]
    memory: str
    packages: tuple[str, ...]
    launcher: tuple[str, ...] = ()


def _of(
    key: str,
    what: str,
    script: str,
    memory: str,
    packages: str = "torch",
    launcher: tuple[str, ...] = (),
) -> Case:
    return Case(key, what, tuple(script.split()), memory, tuple(packages.split()), launcher)


CASES = [
    _of("randn", "SGD on linear layers, `torch.randn` in the loop", "plain.py linear", "1GiB"),
    _of("conv-32", "convolutions and batch norm, images of 32 x 32", "plain.py conv 32", "256MiB"),
    _of("conv-96", "the same, 96 x 96", "plain.py conv 96", "320MiB"),
    _of("conv-224", "the same, 224 x 224", "plain.py conv 224", "320MiB"),
    _of("compile", "`torch.compile` of a transformer", "compiled.py default", "1GiB"),
    _of(
        "compile-graphs",
        "the same, `reduce-overhead` (CUDA graphs)",
        "compiled.py reduce-overhead",
        "1536MiB",
    ),
    _of(
        "compile-dynamic",
        "the same, dynamic shapes: three lengths in turn",
        "compiled.py dynamic",
        "1GiB",
    ),
    _of(
        "ddp",
        "`torchrun`, gloo, 2 ranks: DDP of a transformer",
        "ranks.py ddp",
        "1GiB",
        launcher=RANKS,
    ),
    _of(
        "fsdp2",
        "`torchrun`, gloo, 2 ranks: `fully_shard` of it, layer by layer",
        "ranks.py fsdp",
        "1GiB",
        launcher=RANKS,
    ),
    _of("trainer-bert", "Trainer: BERT", "trainer.py bert", "1GiB", "transformers accelerate"),
    _of(
        "trainer-gpt2",
        "Trainer: GPT-2, bf16",
        "trainer.py gpt2 --bf16",
        "1GiB",
        "transformers accelerate",
    ),
    _of(
        "trainer-llama",
        "Trainer: Llama, gradient checkpointing",
        "trainer.py llama --checkpointing",
        "1GiB",
        "transformers accelerate",
    ),
    _of("generate-16", "`generate`, GPT-2, 16 tokens", "generate.py 16", "384MiB", "transformers"),
    _of(
        "generate",
        "`generate`, GPT-2, as far as it goes by itself",
        "generate.py",
        "384MiB",
        "transformers",
    ),
    _of("lora", "LoRA on a frozen Llama", "adapters.py", "768MiB", "peft transformers"),
    _of("resnet50", "ResNet-50, AMP", "images.py resnet50 24 --amp", "1GiB", "timm"),
    _of("vit", "ViT, AMP", "images.py vit_small_patch16_224 48 --amp", "1GiB", "timm"),
    _of("convnext", "ConvNeXt", "images.py convnext_tiny 16", "1536MiB", "timm"),
    _of("swin", "Swin Transformer", "images.py swin_tiny_patch4_window7_224 16", "1536MiB", "timm"),
    _of("efficientnet", "EfficientNet", "images.py efficientnet_b0 32", "2GiB", "timm"),
    _of(
        "lightning",
        "Trainer on Lightning's demo transformer, with validation",
        "lightning_fit.py",
        "1GiB",
        "lightning",
    ),
    _of(
        "diffusion",
        "a diffusion model's U-Net, conditioned on text",
        "diffusion.py",
        "2GiB",
        "diffusers",
    ),
    _of("adam8bit", "Adam of 8 bits", "quantised.py adam8bit", "1GiB", "bitsandbytes"),
    _of("nf4", "frozen weights of 4 bits", "quantised.py nf4", "256MiB", "bitsandbytes"),
    _of("numba", "kernels over arrays", "numba_sweep.py", "384MiB", "numba-cuda"),
]
