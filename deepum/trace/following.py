"""Whether a program's memory can be followed block by block, by those who place it anew."""

from __future__ import annotations

from deepum._core import lib
from deepum.core import Block, Execute, events
from deepum.trace.trace import Trace


def refusal(trace: Trace) -> str | None:
    """Why PyTorch's blocks of a program cannot be given other places, one stream's launch after
    another; None if they can be. Raises ValueError for a damaged trace.
    """
    reported = False
    streams = set()
    for event in events(trace.events):
        reported = reported or isinstance(event, Block)
        if event.device != 0:
            return "uses several GPUs"
        if event.kind == "lost":
            return "has lost events"
        if isinstance(event, Execute):
            if event.flags & lib.DEEPUM_EXECUTE_GRAPH:
                return "launches graphs, whose memory stays where it is"
            streams.add(event.stream)
    if not reported:
        return "has no blocks of PyTorch's allocator"
    return "puts work on several streams" if len(streams) > 1 else None
