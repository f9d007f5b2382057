"""Trains GPT-2 (transformers, random weights, random tokens) for a few steps and prints each step's
time.

An ordinary script: python train_gpt2.py --model medium --batch 16
"""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel

SIZES = {  # layers, width, heads: "Language Models are Unsupervised Multitask Learners", table 2
    "tiny": (2, 256, 4),
    "small": (12, 768, 12),
    "medium": (24, 1024, 16),
    "large": (36, 1280, 20),
    "xl": (48, 1600, 25),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=SIZES, default="small")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument(
        "--bf16", action="store_true", help="matrix products in bfloat16, by autocast"
    )
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    layers, width, heads = SIZES[arguments.model]
    config = GPT2Config(
        n_layer=layers,
        n_embd=width,
        n_head=heads,
        n_positions=max(1024, arguments.sequence),
        use_cache=False,
    )
    model = GPT2LMHeadModel(config).to(device)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.learning_rate)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(
        (
            f"GPT-2 {arguments.model}: {parameters / 1e6:.1f} M parameters, batch "
            f"{arguments.batch} x {arguments.sequence}"
        ),
        flush=True,
    )

    for step in range(1, arguments.steps + 1):
        tokens = torch.randint(
            config.vocab_size, (arguments.batch, arguments.sequence), device=device
        )
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        with torch.autocast("cuda", torch.bfloat16, enabled=arguments.bf16):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end.record()
        end.synchronize()
        print(f"step {step}: {begin.elapsed_time(end):.2f} ms, loss {loss.item():.4f}", flush=True)
    allocated, reserved = (
        torch.cuda.max_memory_allocated() / 2**30,
        torch.cuda.max_memory_reserved() / 2**30,
    )
    print(f"peak memory: {allocated:.2f} GiB allocated, {reserved:.2f} GiB reserved", flush=True)


if __name__ == "__main__":
    main()
