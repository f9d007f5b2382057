"""Runs a PyTorch script that waits for the GPU behind every module, forward and backward: python
wait_at_modules.py SCRIPT ARGUMENTS...

The host of an ordinary training script runs up to a whole step ahead of the GPU, so that what is
needed next is known without prediction. Here it never does, as under a profiler or a debugger: what
is fetched ahead is what is predicted, N launches at most.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_full_backward_hook


def wait(*_: Any) -> None:
    torch.cuda.synchronize()


if __name__ == "__main__":
    register_module_forward_hook(wait)
    register_module_full_backward_hook(wait)
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
