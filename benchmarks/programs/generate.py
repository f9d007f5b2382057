"""transformers' `generate` with a GPT-2 of random weights: `generate.py [MAX_NEW_TOKENS]`; without
it, up to the model's own limit.
"""

from __future__ import annotations

import sys

import torch
from steps import finish
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config()).cuda().eval()
prompt = torch.randint(50257, (8, 64), device="cuda")
options = {"max_new_tokens": int(sys.argv[1])} if len(sys.argv) > 1 else {}
print(
    "tokens:",
    tuple(
        model.generate(
            prompt, attention_mask=torch.ones_like(prompt), pad_token_id=0, **options
        ).shape
    ),
)
finish()
