"""A driver's answer to work from: that of the simulated GPU, asked once."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest

from deepum.device import Device
from deepum.doctor.ask import Answer, ask
from deepum.launcher.environment import device_environment


@pytest.fixture(scope="session")
def _simulated() -> Answer:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DEEPUM_") and name != "LD_LIBRARY_PATH"
    }
    return ask(device_environment(Device("v100-16gb"), clean), True)


@pytest.fixture
def known(_simulated: Answer) -> dict[str, Any]:
    """What is known of the simulated V100; each test's own."""
    assert _simulated.trouble is None
    return copy.deepcopy(_simulated.known)
