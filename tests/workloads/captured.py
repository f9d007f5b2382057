"""What a captured trace tells, as Python objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deepum.capture.record import Captured, capture_job
from deepum.core import Block, Event, Execute, events
from deepum.trace import Trace, work
from deepum.trace.work import Access, Work

# Numbers that make each named workload small enough for a test.
SMALL = {
    "resnet152": "batch=4,image=64,stage1=1,stage2=1,stage3=2,stage4=1",
    "resnet200": "batch=4,image=64,stage1=1,stage2=2,stage3=1,stage4=1",
    "mobilenet": "batch=4,image=64",
    "dcgan": "batch=64,width=16",
    "bert-base": "batch=8,seq=128,layers=2,width=256,heads=4",
    "bert-large": "batch=4,seq=128,layers=3,width=256,heads=4",
    "gpt2-l": "batch=2,seq=128,layers=2,width=256,heads=4",
    "gpt2-xl": "batch=2,seq=128,layers=3,width=256,heads=4",
    "gpt2-small": "batch=4,seq=256,layers=2,width=256,heads=4",
    "dlrm": "batch=256,tables=4,rows=100000,width=64",
    "dlrm-dense": "batch=256,tables=4,rows=100000,width=64",
    "llama-7b": "batch=2,seq=128,layers=2,width=256,heads=4,hidden=512",
    "llama-7b-lora": "batch=2,seq=128,layers=2,width=256,heads=4,hidden=512,rank=8",
    "vit-huge": "batch=8,image=112,layers=2,width=256,heads=4",
    "unet": "batch=1,latent=16,width=64,heads=4,text=64,tokens=16",
    "t5-large": "batch=2,seq=64,answer=32,layers=1,width=256,heads=4,hidden=512",
    "experts": "batch=2,seq=128,layers=2,width=256,heads=4,experts=4",
    "lstm": "batch=16,least=3,most=8,layers=1,width=256",
    "llama-decode": "batch=2,prompt=16,tokens=2,room=24,layers=2,width=512,heads=8,hidden=1024",
    "llama-long": "batch=1,piece=64,room=256,layers=2,width=512,heads=8,hidden=1024",
}


class Loop:
    """A job made of a function."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function

    def step(self) -> None:
        """Once."""
        self._function()


def capture(
    make: Callable[[str], Callable[[], object]],
    steps: int = 1,
    differs: bool = False,
    **options: Any,
) -> Captured:
    """`make(device)` gives the function that is a step."""
    return capture_job("test", lambda device: Loop(make(device)), steps, differs=differs, **options)


@dataclass(frozen=True)
class Launch:
    """An execution as it was told, and what it does."""

    event: Execute
    work: Work

    @property
    def sizes(self) -> list[tuple[str, int]]:
        """How each access is and how long: ("r", 4096)."""
        return [
            (("", "r", "w", "rw")[access.flags & 3], access.bytes) for access in self.work.accesses
        ]

    @property
    def places(self) -> list[Access]:
        """Its accesses."""
        return list(self.work.accesses)


def launches(trace: Trace) -> list[Launch]:
    """Kernels, copies and memsets."""
    executions = {
        event.sequence: event for event in events(trace.events) if isinstance(event, Execute)
    }
    kinds = (work.LAUNCH, work.COPY)
    return [
        Launch(executions[one.sequence], one)
        for one in work.decode(trace.work)
        if one.kind in kinds and one.sequence in executions
    ]


def events_of(trace: Trace, *kinds: str) -> list[Event]:
    """Events of those kinds."""
    return [event for event in events(trace.events) if event.kind in kinds]


def allocated(trace: Trace) -> int:
    """Bytes in blocks at the end."""
    blocks = [event for event in events(trace.events) if isinstance(event, Block)]
    return blocks[-1].allocated_bytes if blocks else 0
