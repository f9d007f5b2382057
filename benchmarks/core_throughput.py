"""Launch events a second through the decision core, on one core: a stream like GPT-2's, eight
ranges a launch.

Per layer of the made-up model: forward and backward launches over the layer's weights, gradients
and activations; every step repeats the same launches and ends with a wait, as a training loop that
reads its loss does. `fits`: everything fits the device. `pressure`: twice as much as fits, so that
every step evicts and prefetches. `ahead`: the same with `launch_queue` 0, so that the core fetches
ahead at every launch, not at waits only. `migrated`: that with the paper's order of eviction. The
first steps learn; what is printed is a later stretch. Clocks here are noisy: the best of several
stretches counts. Exit code 1 where one of the first two stays below a million.

`--instructions` counts instructions a launch instead, under valgrind, which does not depend on what
else the machine does: two runs of different length, and the difference of both.

Usage: python benchmarks/core_throughput.py [--layers 48] [--launches 2000000] [--only NAME]
[--instructions]
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np

from deepum.core import BlockRange, Core, CoreSettings, EventWriter

RANGES = 8
WARM_UP = 6  # steps
PER_LAYER = 40  # launches of a layer, forward and backward


def step(writer: EventWriter, layers: int, blocks: int) -> None:
    """One training step's launches. Slot 0 holds weights, 1 gradients, 2 optimizer state, 3
    activations; `blocks` a layer in each.
    """
    rng = random.Random(0)
    number = 0
    for layer in [*range(layers), *reversed(range(layers))]:
        for _ in range(PER_LAYER // 2):
            ranges = []
            for i in range(RANGES):
                # Mostly the layer's own tensors; one in eight is small and shared by all layers.
                at = 0 if i == RANGES - 1 else layer * blocks + rng.randrange(blocks)
                count = min(rng.choice((1, 1, 1, 2, 2, 4)), (at // blocks + 1) * blocks - at)
                ranges.append(BlockRange(rng.choice((0, 3, 3, 1)), at, count))
            number += 1
            writer.execute(number, ranges)
    writer.synchronise()


def measure(name: str, layers: int, launches: int, fits: int, **changes: int) -> float:
    """Prints one line; returns launches a second."""
    blocks = 16
    core = Core(CoreSettings.default(**changes))
    writer = EventWriter()
    total = 4 * layers * blocks
    # A quarter is the optimizer's, which this stream leaves alone.
    writer.device(total + 64 if fits else total * 3 // 8)
    for slot in range(4):
        writer.allocate(slot, layers * blocks)
    core.process(writer.take())
    first = writer.sequence
    step(writer, layers, blocks)
    records = np.frombuffer(writer.take(), dtype=np.uint64).copy()
    starts = [0]
    while starts[-1] < len(records):
        starts.append(starts[-1] + int(records[starts[-1]] & 0xFFFF))
    sequences = np.array(starts[:-1]) + 1
    in_step = len(sequences) - 1  # launches; the last record is the wait
    # The wait has none.
    touched = sum(int(word) & 0xFFFFF for a, b in pairwise(starts) for word in records[a + 5 : b])

    def run(steps: int) -> float:
        nonlocal first
        spent = 0.0
        for _ in range(steps):
            records[sequences] = np.arange(first + 1, first + 1 + len(sequences), dtype=np.uint64)
            first += len(sequences)
            batch = records.tobytes()
            begin = time.perf_counter()
            core.process(batch)
            core.take_command_bytes()
            spent += time.perf_counter() - begin
        return spent

    run(WARM_UP)
    before = core.statistics()
    steps = max(1, launches // in_step // 5)
    best = min(run(steps) for _ in range(5))
    after = core.statistics()
    count = after.launches - before.launches
    right = after.predictions_right - before.predictions_right
    print(
        f"{name:9s} {steps * in_step / best / 1e6:6.2f} M launches/s   {touched / in_step:.1f} "
        f"blocks a launch   {(after.commands - before.commands) / count:.3f} commands a launch   "
        f"right {100 * right / max(1, after.predictions - before.predictions):.1f} %   "
        f"{(after.operations - before.operations) / count:.1f} operations a launch   "
        f"{after.execution_ids} execution IDs   tables {after.table_bytes / 2**20:.2f} MiB"
    )
    return steps * in_step / best


STREAMS: dict[str, dict[str, int]] = {
    "fits": {"fits": True},
    "pressure": {"fits": False},
    "ahead": {"fits": False, "launch_queue": 0},
    "migrated": {"fits": False, "launch_queue": 0, "eviction_order": 0},
}


def instructions(name: str, layers: int, launches: int) -> float:
    """Prints one line; returns instructions a launch. Raises SystemExit without valgrind."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        sys.exit("core_throughput: error: --instructions: valgrind is missing; install it")
    tool = [valgrind, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    counted = []
    in_step = 2 * layers * (PER_LAYER // 2)
    for steps in (1, 1 + max(1, launches // in_step // 5)):
        run = [
            *tool,
            sys.executable,
            __file__,
            "--layers",
            str(layers),
            "--only",
            name,
            "--launches",
            str(steps * in_step * 5),
        ]
        output = subprocess.run(run, capture_output=True, text=True, check=False).stderr
        found = re.search(r"I\s+refs:\s+([\d,]+)", output)
        assert found, output
        counted.append((5 * steps * in_step, int(found[1].replace(",", ""))))
    (few, least), (many, most) = counted
    each = (most - least) / (many - few)
    print(f"{name:9s} {each:8.0f} instructions a launch", flush=True)
    return each


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--launches", type=int, default=2_000_000)
    parser.add_argument("--only", choices=STREAMS, help="one stream")
    parser.add_argument("--instructions", action="store_true", help="count them, under valgrind")
    arguments = parser.parse_args()
    names = [arguments.only] if arguments.only else list(STREAMS)
    if arguments.instructions:
        for name in names:
            instructions(name, arguments.layers, arguments.launches)
        return
    reached = {
        name: measure(name, arguments.layers, arguments.launches, **STREAMS[name]) for name in names
    }
    sys.exit(not arguments.only and min(reached["fits"], reached["pressure"]) < 1e6)


if __name__ == "__main__":
    main()
