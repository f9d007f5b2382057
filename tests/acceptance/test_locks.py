"""Which calls stand still beside which: the question runs to its end where all of it is asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from deepum.device import Device
from deepum.launcher.environment import device_environment

ROOT = Path(__file__).resolve().parents[2]
SITUATIONS = {
    "nothing",
    "synchronise",
    "full_queue",
    "memset_of_managed",
    "copy_from_pageable",
    "copy_to_pageable",
    "allocate_managed",
    "free",
}
# As on a real GPU, but for times, which mean nothing here.
ASK = """
import json
from acceptance.bench import Bench
from acceptance.questions import locks
from deepum.doctor.driver import Cuda
locks._HELD_S, locks._BEFORE_S = 0.05, 0.01
print(json.dumps(locks.answer(Bench(Cuda(0), simulated=False, short=True))))
"""


def test_each_call_is_timed_beside_each_situation_and_moves_both_ways(
    environment: dict[str, str],
) -> None:
    env = device_environment(Device("v100-16gb"), environment) | {
        "PYTHONPATH": f"{ROOT / 'benchmarks'}:{environment['PYTHONPATH']}"
    }
    ran = subprocess.run(
        [sys.executable, "-P", "-c", ASK],
        env=env,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), "another thread's troubles show there as well"
    findings = json.loads(ran.stdout)
    assert set(findings) == {"held_us", "moves", *SITUATIONS}
    assert findings["held_us"] == 40_000
    for situation in SITUATIONS:
        assert set(findings[situation]) == {"prefetch_us", "write_value_us", "event_us", "query_us"}
        assert all(took > 0 for took in findings[situation].values()), situation
    moves = findings["moves"]
    assert set(moves) == {"calls", "out", "in", "both"}
    for way in ("out", "in", "both"):
        assert moves[way]["longest_us"] > 0 and isinstance(moves[way]["done_before"], bool)
