"""Every machine of `deepum machines` trains a language model and a CNN: none lacks code that the
others have.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_torch import preload

from deepum.machines import machines

pytestmark = pytest.mark.torch
PROGRAM = Path(__file__).with_name("machines.py")


def test_all_machines_train_a_language_model_and_a_cnn(
    run_sim: Callable[..., Any], sim: Path
) -> None:
    # Which code runs depends on the compute capability alone: of those that share one, the first is
    # tried in all precisions.
    capabilities: set[tuple[int, int]] = set()
    names = []
    for machine in machines():
        capability = (machine.presented_major, machine.presented_minor)
        names.append(machine.name + "+" * (capability not in capabilities))
        capabilities.add(capability)
    ran = run_sim(sys.executable, PROGRAM, *names, env={"LD_PRELOAD": preload(sim)}, timeout=240)
    assert ran.out.splitlines() == [f"{name} ok" for name in names], ran.err
    assert "deepum-sim:" not in ran.err
