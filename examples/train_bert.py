"""Trains BERT (transformers, random weights, random tokens) as a masked language model for a few
steps and prints each step's time.

An ordinary script: python train_bert.py --model large --batch 16
"""

import argparse

import torch
from transformers import BertConfig, BertForMaskedLM

# layers, width, heads: "BERT: Pre-training of Deep Bidirectional Transformers", section 3.
SIZES = {
    "tiny": (2, 128, 2),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=SIZES, default="base")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--sequence", type=int, default=512)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument(
        "--bf16", action="store_true", help="matrix products in bfloat16, by autocast"
    )
    arguments = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    layers, width, heads = SIZES[arguments.model]
    config = BertConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    model = BertForMaskedLM(config).to(device)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(
        (
            f"BERT {arguments.model}: {parameters / 1e6:.1f} M parameters, batch "
            f"{arguments.batch} x {arguments.sequence}"
        ),
        flush=True,
    )

    for step in range(1, arguments.steps + 1):
        tokens = torch.randint(
            config.vocab_size, (arguments.batch, arguments.sequence), device=device
        )
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=arguments.bf16):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        end.record()
        end.synchronize()
        print(f"step {step}: {start.elapsed_time(end):.2f} ms, loss {loss.item():.4f}", flush=True)

    allocated, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    print(
        f"peak memory: {allocated / 2**30:.2f} GiB allocated, {reserved / 2**30:.2f} GiB reserved"
    )


if __name__ == "__main__":
    main()
