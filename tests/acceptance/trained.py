"""A program that trains nothing, as an event log, and results of which its model is the truth."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from acceptance import traces
from acceptance.place import Place
from acceptance.prediction import Training
from acceptance.trainings import DEEPUM, EMULATED, PLAIN

from deepum.core import UM_BLOCK_BYTES, BlockRange, CoreSettings, EventLog
from deepum.machines import Named
from deepum.trace import TraceWriter

MIB = 1 << 20
STEPS = 10
ARRAYS, BLOCKS = 24, 4  # of so many UM blocks
WHOLE = ARRAYS * BLOCKS * UM_BLOCK_BYTES
BUDGET = WHOLE * 3 // 4
SETTINGS = asdict(CoreSettings.default())
MEASURED = {
    "h2d_gbps": 20.0,
    "d2h_gbps": 18.0,
    "fault_batch_ns": 50_000,
    "fault_ns_per_byte": 0.15,
    "launch_ns": 2500,
    "launch_queue": None,
}
HIDDEN = Named("a100-40gb", {name: value for name, value in MEASURED.items() if value is not None})
SLOWER = 6.0  # than their bytes say, kernels are


def program(budget: int = BUDGET, steps: int = STEPS) -> EventLog:
    """Each step uses the arrays in turn, then waits."""
    writer = TraceWriter()
    writer.device(budget // UM_BLOCK_BYTES)
    for slot in range(ARRAYS):
        writer.allocate(slot, BLOCKS)
    for _ in range(steps):
        for slot in range(ARRAYS):
            writer.execute(
                100 + slot,
                [BlockRange(slot, 0, BLOCKS), BlockRange((slot + 1) % ARRAYS, 0, BLOCKS)],
            )
        writer.synchronise()
    return EventLog({"settings": SETTINGS}, writer.take())


def results(folder: Path, model: str = "gpt2") -> Path:
    """A file of results with its trace beside it, of a card that is as HIDDEN and SLOWER say."""
    place = Place("cuda", str(folder / "work"), False, 1 << 30)
    Path(place.folder).mkdir()
    place.log.write_bytes(EventLog.header({"settings": SETTINGS}) + program().records)
    truth = Training(model, program(), BUDGET, STEPS, HIDDEN)
    truth.factor = SLOWER
    rows: list[dict[str, Any]] = [
        {"model": model, "what": PLAIN, "steps_ms": [truth.unlimited_ms(SLOWER)] * STEPS}
    ]
    for share in (75, 50):
        budget = WHOLE * share // 100
        for what in (DEEPUM, EMULATED):
            found = truth.under(SETTINGS, budget, what == EMULATED)
            row = {
                "model": model,
                "what": what,
                "share": share,
                "budget_bytes": budget,
                "settings": SETTINGS,
            }
            rows.append(
                row
                | {
                    "steps_ms": [found.step_ms] * STEPS,
                    "statistics": {"bytes_evicted_asked": found.bytes_evicted},
                }
            )
    document = {
        "version": 1,
        "simulated": False,
        "gpu": "NVIDIA A100-PCIE-40GB",
        "date": "today",
        "free_bytes": 39 << 30,
        "sections": {
            "budgets": {"rows": rows, "traces": {model: traces.keep(place, model, BUDGET)}},
            "preset": MEASURED,
        },
    }
    path = folder / "acceptance.json"
    path.write_text(json.dumps(document))
    assert traces.pack(Path(place.folder), path) == []
    return path
