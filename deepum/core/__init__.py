"""Typed face of the native decision core: events in, commands out.

`Core` is the decision core, `Ring` and `Turn` the daemon's end of a session's shared memory,
`events` and `commands` read what crosses between them, `replay` runs a recorded event log
through a core.
"""

from deepum.core.decoding import commands, events, events_of
from deepum.core.engine import Core, CoreStatistics
from deepum.core.plan import LaunchTime, Plan, PlannedKind, PlannedMove, PlanPoint, Recording
from deepum.core.records import (
    Allocate,
    Block,
    BlockRange,
    Command,
    Device,
    Event,
    Execute,
    Fault,
    Free,
    FreeMemory,
    Lost,
    Moved,
    Program,
    Progress,
    Setting,
    Stream,
    Usage,
    Waited,
)
from deepum.core.replay import EventLog, replay
from deepum.core.ring import Ring, RingError, Turn
from deepum.core.settings import CoreSettings, default_parameters
from deepum.core.writer import UM_BLOCK_BYTES, EventWriter

__all__ = [
    "UM_BLOCK_BYTES",
    "Allocate",
    "Block",
    "BlockRange",
    "Command",
    "Core",
    "CoreSettings",
    "CoreStatistics",
    "Device",
    "Event",
    "EventLog",
    "EventWriter",
    "Execute",
    "Fault",
    "Free",
    "FreeMemory",
    "LaunchTime",
    "Lost",
    "Moved",
    "Plan",
    "PlanPoint",
    "PlannedKind",
    "PlannedMove",
    "Program",
    "Progress",
    "Recording",
    "Ring",
    "RingError",
    "Setting",
    "Stream",
    "Turn",
    "Usage",
    "Waited",
    "commands",
    "default_parameters",
    "events",
    "events_of",
    "replay",
]
