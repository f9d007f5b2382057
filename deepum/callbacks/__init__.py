"""Callbacks of training libraries that log what deepum did beside the loss: `transformers` for
Hugging Face's Trainer, `lightning` for Lightning. Each imports its library, and nothing else does.
"""
