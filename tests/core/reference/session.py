"""The decision core: what native/core decides, said as simply as possible. Events in, commands out.

It owns the parts and the order in which an event passes them. Left out, because they change nothing
in what is decided within the limits that the tests use: rows and ways of the block tables (they
only forget), the limit on table memory, bounds against hostile events, profiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from deepum._core import lib

import deepum.core as events
from deepum.core import UM_BLOCK_BYTES, Command, CoreSettings
from deepum.core.records import FAULT_ATOMIC, FAULT_WRITE
from reference.clock import Clock
from reference.command_stream import SET_READ_MOSTLY, CommandStream
from reference.extras.copy_back import CopyBack
from reference.extras.host_groups import HostGroups
from reference.extras.host_residents import HostResidents
from reference.extras.invalidation import Invalidation
from reference.iteration.iteration_detector import IterationDetector
from reference.memory.address_space import AddressSpace, Allocation, ContentListener
from reference.memory.torch_blocks import mix, name_hash
from reference.memory.um_block import Access, UmBlock, Use
from reference.placement.chain_planner import ChainPlanner
from reference.placement.departures import Departures
from reference.placement.device_memory import Devices
from reference.placement.growth_forecast import GrowthForecast
from reference.placement.placer import Placer
from reference.placement.room_maker import DriverEviction, PreEviction, RoomMaker, Urgency
from reference.prediction.execution_table import NO_CONTEXT, Execution, ExecutionTable, pushed
from reference.prediction.history import LaunchHistory, PastLaunch
from reference.prediction.iteration_meter import IterationMeter, LearningMonitor
from reference.prediction.launch_chain import (
    HistoryPredictor,
    LaunchChain,
    LaunchPredictor,
    Step,
    TablePredictor,
)
from reference.prediction.use_tracker import STREAMS, UseTracker, UseTrials
from reference.settings import BY_OPERATORS, CORRELATION, DUPLICATE, HISTORY, by_next_use

SHAKEN = 16  # neighbours on each side of a fault
MOST_PREFETCH_DEGREE = 1 << 20  # launches
FAILED, CANCELLED, REFUSED = 2, 3, 4  # what became of a command


class Reference(ContentListener):
    def __init__(self, settings: CoreSettings) -> None:
        self.settings = settings
        self.now = now = Clock(decides=settings.policy == CORRELATION)
        self.command_stream = commands = CommandStream(now)
        self.memory = memory = AddressSpace(now)
        self.devices = devices = Devices(settings, now)

        self.executions = ExecutionTable(settings.execution_ids, settings.execution_records)
        self.history = LaunchHistory()
        self.context = NO_CONTEXT  # of the latest launches
        by_history = settings.prediction == HISTORY
        self.predictor: LaunchPredictor = (
            HistoryPredictor(self.history) if by_history else TablePredictor(self.executions)
        )
        self.chain = chain = LaunchChain(
            self.predictor, settings.chain_steps, settings.prefetch_degree
        )
        self.iterations = IterationMeter(now)
        self.detector = IterationDetector()
        self.learning = LearningMonitor(now)
        self.trials = UseTrials(settings, now, memory)

        self.growth = growth = GrowthForecast(now, devices, chain, self.history)
        self.departures = departures = Departures(
            now, commands, devices, sorts=by_next_use(settings)
        )
        self.room: RoomMaker = (
            PreEviction(settings, now, departures, growth)
            if settings.pre_eviction
            else DriverEviction(settings, now, departures, growth, commands)
        )
        self.placer = Placer(
            settings, now, commands, memory, devices, departures, growth, self.room
        )
        self.planner = ChainPlanner(
            settings, now, chain, memory, devices, departures, growth, self.room, self.placer
        )

        self.invalidation = Invalidation(settings, now, memory, devices, departures)
        self.copy_back = copy_back = CopyBack(
            settings, now, commands, memory, devices, self.iterations, self.trials
        )
        self.uses = UseTracker(
            settings, now, memory, lambda block: copy_back.judge(block, left=False)
        )
        self.host_residents = HostResidents(settings, now, commands, memory, devices, copy_back)
        self.host_groups = HostGroups(
            settings, now, memory, devices, departures, copy_back, self.host_residents
        )
        self.wants_free_memory = False

        self.room.promises = self.planner
        departures.rules = [self.invalidation, copy_back]
        self.placer.rules = [copy_back]
        # What write-backs and advice do to a block comes before its place in the order changes.
        memory.listeners = [
            growth,
            copy_back,
            self.host_residents,
            self.uses,
            self.invalidation,
            self,
        ]

    @property
    def commands(self) -> list[Command]:
        return self.command_stream.commands

    @property
    def wants_faults(self) -> bool:
        unknown = self.trials.latest_unknown
        trying = bool(
            self.settings.advice & DUPLICATE and unknown and self.learning.lately(unknown)
        )
        timing = self.copy_back.pace.under_way() or self.host_groups.trial.under_way()
        return trying or self.learning.lost_blocks_lately() or timing or self.learning.learning()

    @property
    def wants_reads(self) -> bool:
        declared = self.settings.writes == BY_OPERATORS and bool(self.settings.advice & DUPLICATE)
        return declared and self.devices.under_pressure() and self.learning.learning()

    def process(self, event: events.Event) -> None:
        self.now.event = event.sequence
        self.uses.representative = self.copy_back.pace.representative()
        handlers: dict[type[events.Event], Callable[[Any], None]] = {
            events.Device: self.on_device,
            events.Allocate: self.on_allocate,
            events.Free: lambda event: self.memory.release(event.slot, event.generation),
            events.Block: self.memory.report,
            events.Execute: self.on_launch,
            events.Stream: self.on_stream,
            events.Program: self.on_program,
            events.Fault: self.on_fault,
            events.Progress: self.on_progress,
            events.Moved: self.on_moved,
            events.Lost: self.on_lost,
            events.Setting: self.on_setting,
            events.FreeMemory: lambda event: self.devices[event.device].residency.read_free_memory(
                event
            ),
        }
        if type(event) in handlers:
            handlers[type(event)](event)

    # Launches.

    def on_launch(self, event: events.Execute) -> None:
        accesses, ages, execution_hash = self.resolve(event)
        self.begin_launch(accesses)
        self.detector.launched(event.execution_hash, execution_hash)
        self.now.period = self.detector.period
        execution = self.learn_accesses(event, execution_hash, accesses, ages)
        self.follow(execution)

        if not event.flags & lib.DEEPUM_EXECUTE_COPY:
            self.copy_back.note_reads(accesses)
        self.copy_back.before(accesses)
        self.placer.place(
            accesses, self.placer.placement(self.now.launch, Urgency.AT_HAND, execution)
        )
        self.uses.begin_trials(accesses, event.stream, self.trials)
        self.growth.launched(event.device)
        self.placer.hold(accesses, event.stream)
        self.placer.end_holds(self.now.period or self.now.iteration)
        self.note_uses(event, accesses)
        self.iterations.touched(accesses)

        if self.now.decides:
            self.chain.extend()
            self.copy_back.after(accesses, event.device, event.stream)
            self.planner.launched(self.devices[event.device])
        wanted = [
            device.residency.note_fill_point(self.learning.learning())
            for device in self.devices.in_use()
        ]
        self.wants_free_memory = any(wanted)

    def resolve(self, event: events.Execute) -> tuple[list[Access], list[int], int]:
        """Its accesses, how many launches before it the memory of each was handed out, and its
        hash: the names of PyTorch's blocks stand for places in them.
        """
        accesses: list[Access] = []
        ages: list[int] = []
        execution_hash = event.execution_hash
        uses = (
            [Use.WRITES] * len(event.written)
            + [Use.READS] * len(event.read)
            + [
                Use.READS if place in event.declared else Use.UNKNOWN
                for place in range(len(event.unknown))
            ]
        )
        for r, use in zip(event.ranges, uses, strict=True):
            allocation = self.memory.resolve(r)
            if allocation is None or r.count == 0:
                continue
            span = (r.slot, r.first, r.count)
            run, born, regularity = self.memory.name_run(allocation, r.first, r.count)
            self.host_groups.note_use(self.memory.blocks(span), regularity)
            accesses.append(Access(span, run, use))
            ages.append(self.now.launch - born)
            if allocation.reported and run[0] != allocation.name:
                execution_hash = mix(execution_hash ^ name_hash(run[0]))
        return accesses, ages, execution_hash

    def exceeds_capacity(self, accesses: list[Access]) -> bool:
        touched = {block for access in accesses for block in self.memory.blocks(access.span)}
        blocks = Counter(map(self.devices.of, touched))
        return any(
            device.residency.known and count > device.residency.capacity
            for device, count in blocks.items()
        )

    def begin_launch(self, accesses: list[Access]) -> None:
        over_capacity = self.exceeds_capacity(accesses)
        self.now.launch += 1
        for device in self.devices.in_use():
            if over_capacity:
                device.residency.doubt_all_once()
            device.order.launch_passed()
            device.window.launch_passed()

    def learn_accesses(
        self, event: events.Execute, execution_hash: int, accesses: list[Access], ages: list[int]
    ) -> Execution:
        """The tables learn what the launch is and what it touches."""
        execution = self.executions.identify(execution_hash)
        self.executions.learn(self.context, execution.id)
        self.context = pushed(self.context, execution.id)
        execution.period = self.now.launch - execution.last if execution.last else 0
        execution.last = self.now.launch
        execution.launches += 1
        execution.kernel = event.execution_hash
        execution.sparse = bool(event.flags & lib.DEEPUM_EXECUTE_SPARSE)
        if accesses:
            execution.touch([(access.run, age) for access, age in zip(accesses, ages, strict=True)])
        self.host_residents.observe(accesses, event.flags)
        self.uses.learn(accesses, execution, self.chain)
        self.iterations.launched(execution.period)
        self.copy_back.launched()
        self.host_groups.launched()
        self.history.append(
            PastLaunch(execution_hash, event.execution_hash, execution, event.device)
        )
        return execution

    def follow(self, execution: Execution) -> None:
        self.predictor.observe(execution)
        step = Step()
        if self.now.decides:
            step = self.chain.follow(execution)
            self.planner.followed(step)
            if step.restarted:
                self.expect_nothing()
        self.learning.launched(execution.launches == 1 or step.restarted)
        if self.wants_faults:
            self.learning.observe_period(execution.period)

    def expect_nothing(self) -> None:
        for device in self.devices.in_use():
            device.order.prediction_failed()

    def note_uses(self, event: events.Execute, accesses: list[Access]) -> None:
        """Later moves of the blocks wait for the launch at hand."""
        self.departures.used_streams |= 1 << event.stream
        self.invalidation.graphs |= bool(event.flags & lib.DEEPUM_EXECUTE_GRAPH)
        for access in accesses:
            for block in self.memory.blocks(access.span):
                block.last_use = event.sequence
                if not block.first_use:
                    block.first_use, block.first_stream = event.sequence, event.stream
                block.streams |= 1 << event.stream
                block.populated = True

    def on_stream(self, event: events.Stream) -> None:
        if event.kind == "synchronise":
            self.detector.waited()
        if event.kind == "synchronise" and self.now.decides:
            self.planner.about_to_wait()

    # Memory.

    def on_device(self, event: events.Device) -> None:
        device = self.devices[event.device]
        known = device.residency.known
        device.residency.report_capacity(event)
        if not known:
            device.window.begin(device.residency.capacity)

    def on_allocate(self, event: events.Allocate) -> None:
        self.memory.allocate(event)
        self.devices[event.device].residency.allocated += len(
            self.memory.allocations[event.slot].blocks
        )

    def memory_gone(self, allocation: Allocation) -> None:
        """The space of the blocks is free with the allocation."""
        device = self.devices[allocation.device]
        for block in allocation.blocks:
            if block.resident:
                device.drop(block)
        device.residency.allocated -= len(allocation.blocks)

    def on_program(self, event: events.Program) -> None:
        allocation = self.memory.resolve(event.range)
        if allocation is None:
            return
        device = self.devices[allocation.device]
        for block in allocation.blocks[event.range.first : event.range.first + event.range.count]:
            if event.kind == "program_advise":
                if event.advice in (3, 4):  # preferred location: set, unset
                    block.by_program = event.advice == 3 and event.location < 0
                    here = event.advice == 3 and event.location == allocation.device
                    device.order.pin(block, here)
            elif event.location < 0 and block.resident:
                device.residency.end_filling()
                device.drop(block)
            elif (
                event.location == allocation.device
                and not block.resident
                and device.residency.free()
            ):
                device.residency.take_space(by_next_use(self.settings))
                device.add(block)
                device.order.will_be_used(block)
                block.populated = True
                device.residency.confirm(block)

    def on_fault(self, event: events.Fault) -> None:
        """The blocks are there now; but the belief about their neighbours is shaken. The write of a
        duplicate faults though it is there.
        """
        allocation = self.memory.resolve(event.range)
        if allocation is None:
            return
        wrote = event.flags & (FAULT_WRITE | FAULT_ATOMIC) != 0
        first, end = event.range.first, event.range.first + event.range.count
        residency, taken = self.devices[allocation.device].residency, 0
        evident = not (wrote and self.copy_back.may_ever_duplicate())
        for block in allocation.blocks[max(0, first - SHAKEN) : end + SHAKEN]:
            if not first <= block.index < end:
                residency.shake(block)
                continue
            taken += evident and residency.was_taken(
                block, self.trials.reported[block.first_stream]
            )
            residency.confirm(block)
            block.faulted = True
            block.write_faulted |= wrote
        if taken:
            residency.note_taken(taken)
            self.learning.taken_lately = True
        if wrote and self.trials.observed:
            self.trials.blame(allocation.blocks[first:end])
            self.copy_back.write_faulted(allocation.blocks[first:end])

    def on_progress(self, event: events.Progress) -> None:
        if event.stream < STREAMS:
            self.trials.progress(event)
            self.copy_back.pace.completed(event.completed, event.completed_at)
            self.host_groups.completed(event.completed, event.completed_at)

    def on_lost(self, _event: events.Lost) -> None:
        self.trials.forget()
        self.copy_back.pace.meter.forget()
        self.host_groups.trial.abandon()
        for device in range(lib.DEEPUM_MAX_DEVICES):
            self.devices[device].residency.end_filling()
        self.memory.forget_everything()
        self.context = NO_CONTEXT
        self.detector.forget()
        self.forget_chain()

    def forget_chain(self) -> None:
        self.chain.forget()
        self.planner.forget()
        self.expect_nothing()

    # Settings that change.

    def on_setting(self, event: events.Setting) -> None:
        match event.setting:
            case "budget":
                device = self.devices[event.device]
                device.residency.set_budget(event.value // UM_BLOCK_BYTES if event.value else None)
                residency = device.residency
                if self.now.decides and residency.known and residency.used > residency.capacity:
                    self.forget_chain()
                    self.room.evict_surplus(device, all_may_leave=True)
            case "prefetch_degree":
                if event.value <= MOST_PREFETCH_DEGREE:
                    self.chain.prefetch_degree = event.value
            case "policy":
                self.set_policy(event.value)

    def set_policy(self, policy: int) -> None:
        began = self.settings.policy
        if began == CORRELATION and policy <= CORRELATION and self.now.decides != (policy == 1):
            self.now.decides = policy == CORRELATION
            self.forget_chain()
            for device in self.devices.in_use():
                device.residency.doubt_all_once()

    # What was not carried out is not believed any longer.

    def on_moved(self, event: events.Moved) -> None:
        given, refused = self.command_stream.find(event.command), event.status == REFUSED
        if (
            event.status not in (FAILED, CANCELLED, REFUSED)
            or given is None
            or (refused and given.kind != "discard")
        ):
            return
        if refused:
            self.invalidation.refused()
        allocation = self.memory.allocations.get(given.slot)
        if allocation is None or allocation.generation != given.generation:
            return
        for block in allocation.blocks[given.first_block : given.first_block + given.block_count]:
            self.undo(given, block, refused)
        if given.kind == "discard":
            self.room.evict_surplus(self.devices[allocation.device], all_may_leave=False)

    def undo(self, given: Command, block: UmBlock, refused: bool) -> None:
        device, resident = self.devices.of(block), block.resident
        if given.kind == "advise" and given.advice == SET_READ_MOSTLY:
            self.copy_back.forget_duplicate(block)
        elif given.kind == "advise":
            self.host_residents.advice_failed(block)
        elif given.kind == "copy_out":
            self.copy_back.lose_host_copy(block)
        elif given.kind == "collapse":
            block.read_mostly = True
        elif block.move_in == given.id > block.move_out and resident:
            device.drop(block)
        elif given.kind == "discard" and block.discard == given.id:
            block.populated = True
            if block.dead and not refused:
                self.invalidation.failed(given.id)
            if not resident and block.discard > max(block.move_in, block.move_out):
                device.residency.reclaim_space(given.id)
                device.add(block)
        elif block.move_out == given.id > block.move_in and not resident:
            device.residency.reclaim_space(0)
            device.add(block)
