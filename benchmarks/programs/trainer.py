"""The Trainer of transformers on models with random weights: `trainer.py bert|gpt2|llama [--bf16]
[--checkpointing] [--steps N]`.
"""

from __future__ import annotations

import argparse
import tempfile

import torch
from steps import finish
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainingArguments,
)

LENGTH = 256
MODELS = {
    "bert": lambda: BertForMaskedLM(BertConfig(num_hidden_layers=6)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(n_layer=6, n_positions=LENGTH)),
    "llama": lambda: LlamaForCausalLM(
        LlamaConfig(
            hidden_size=512,
            intermediate_size=1408,
            num_hidden_layers=12,
            num_attention_heads=8,
            num_key_value_heads=4,
            vocab_size=16000,
        )
    ),
}


class Sentences(torch.utils.data.Dataset):
    """Random tokens."""

    def __init__(self, words: int) -> None:
        self.tokens = torch.randint(words, (96, LENGTH))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, at: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[at], "labels": self.tokens[at]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    model = MODELS[options.model]()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            max_steps=options.steps,
            per_device_train_batch_size=16 if options.model == "llama" else 8,
            bf16=options.bf16,
            gradient_checkpointing=options.checkpointing,
            logging_steps=2,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        Trainer(model, arguments, train_dataset=Sentences(model.config.vocab_size)).train()
    finish()


if __name__ == "__main__":
    main()
