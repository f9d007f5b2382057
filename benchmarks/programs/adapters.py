"""peft's LoRA on a frozen Llama of random weights."""

from __future__ import annotations

import torch
from peft import LoraConfig, get_peft_model
from steps import repeat
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    hidden_size=1024,
    intermediate_size=2816,
    num_hidden_layers=12,
    num_attention_heads=16,
    num_key_value_heads=8,
    vocab_size=16000,
)
model = (
    get_peft_model(
        LlamaForCausalLM(config),
        LoraConfig(r=16, target_modules=["q_proj", "v_proj"], lora_dropout=0.05),
    )
    .cuda()
    .train()
)
optimizer = torch.optim.AdamW(
    (parameter for parameter in model.parameters() if parameter.requires_grad), lr=1e-4
)


def step() -> None:
    tokens = torch.randint(16000, (4, 256), device="cuda")
    optimizer.zero_grad()
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()


repeat(step, 6)
