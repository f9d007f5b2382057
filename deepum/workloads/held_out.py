"""Workloads that nothing is tuned on: each named one with another batch, width, depth, length, or
number of experts.

Constants of the core and of the mover are chosen by the named workloads (`registry`); whether they
hold elsewhere is asked of these, beside them (`python benchmarks/workloads.py --set both`). Whoever
changes a constant because of one of these has to put another in its place.
"""

from __future__ import annotations

HELD_OUT = (
    "resnet152:batch=160",
    "resnet200:batch=96,stage2=28",
    "mobilenet:batch=320,image=256",
    "dcgan:batch=9216,width=96",
    "bert-base:batch=64,seq=384",
    "bert-large:batch=32,seq=384,layers=20",
    "gpt2-l:batch=4,seq=768",
    "gpt2-xl:batch=3,layers=40",
    "dlrm:rows=1500000,width=160,lookups=4",
    "gpt2-small:batch=20,seq=768",
    "dlrm-dense:rows=800000,width=160",
    "llama-7b:batch=2,seq=512,layers=24",
    "llama-7b-lora:batch=6,seq=768",
    "vit-huge:batch=40,layers=28",
    "unet:batch=10,width=288",
    "t5-large:batch=6,seq=640",
    "experts:batch=3,experts=24,seed=2",
    "lstm:batch=256,width=1536,seed=2",
    "llama-decode:batch=8,layers=36",
    "llama-long:piece=1024,layers=36",
)
