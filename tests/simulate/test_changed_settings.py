"""What somebody set while a recorded program ran is none of the simulation's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from deepum._core import lib
from small import MIB, training

from deepum.core import EventWriter, events
from deepum.simulate.mode import MODES
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import machine, replay
from deepum.trace import Trace, g10

CARD = 160 * MIB


def changed(trace: Trace) -> Trace:
    """As a session's log has it: settings behind each seventh launch, for all devices."""
    made, at, launches = bytearray(), 0, 0
    for event in events(trace.events):
        length = int.from_bytes(trace.events[at : at + 2], "little") * 8
        made += trace.events[at : at + length]
        at += length
        launches += event.kind == "execute"
        if event.kind == "execute" and launches % 7 == 0:
            for setting, value, device in (
                (lib.DEEPUM_SETTING_BUDGET, 64 * MIB, 0),
                (lib.DEEPUM_SETTING_BUDGET, 64 * MIB, 15),
                (lib.DEEPUM_SETTING_POLICY, lib.DEEPUM_POLICY_ON_DEMAND, 0),
            ):
                writer = EventWriter(event.sequence - 1)
                writer.setting(setting, value, device)
                made += writer.take()
    return replace(trace, events=bytes(made))


def test_it_changes_nothing(tmp_path: Path) -> None:
    trace = g10.trace(training(tmp_path / "w"), 6)
    other = changed(trace)
    assert len(other.events) > len(trace.events)
    for mode in MODES.values():
        alone, steered = (
            replay(
                each,
                machine("v100-16gb"),
                BY_NAME["deepum"].settings(1024),
                CARD,
                mode=mode,
                keep_commands=True,
            )
            for each in (trace, other)
        )
        assert alone.commands and alone == steered, mode.name
