"""What a recorded run of programs/optimizer_steps.py tells of its second optimizer step."""

from __future__ import annotations

from pathlib import Path

from deepum.core import EventLog, Execute, Stream, events

ALL_STREAMS = 63
# Of each weight: 2 MiB blocks, and chunks of 65536 elements.
WEIGHTS, UM_BLOCKS, CHUNKS = 30, 12, 96


def named_in_second_step(log: Path) -> list[int]:
    """How many UM blocks each launch names."""
    log_events = list(events(EventLog.read(log).records))
    waits = [
        i
        for i, event in enumerate(log_events)
        if isinstance(event, Stream) and event.kind == "synchronise" and event.stream == ALL_STREAMS
    ]
    return [
        _um_blocks(event) for event in log_events[waits[2] : waits[3]] if isinstance(event, Execute)
    ]


def _um_blocks(execution: Execute) -> int:
    return len(
        {
            (run.slot, block)
            for run in execution.unknown
            for block in range(run.first, run.first + run.count)
        }
    )
