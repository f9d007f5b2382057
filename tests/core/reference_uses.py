"""What launches do with what they touch, in plain Python: what native/core/prediction/use_tracker.cpp and use_trials.cpp do.

The use of a run by an execution is known (what the program says, what a fault showed, or what no fault contradicted), and so is the use
that follows it: by how many launches, and what for.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from deepum._core import lib
from reference_block import FIRST, INNER, LAST, NextUse, Run, RunUse, Span, UmBlock, Use
from reference_commands import Commands
from reference_history import Execution
from reference_pace import Pace, RemoteTrial

from deepum.core import CoreSettings, Progress

DUPLICATE = 2
MOST_TRIALS = 1 << 14  # of a stream
SETTLED = 256  # launches, and two iterations
MOST_IN_VAIN = 64
STREAMS = lib.DEEPUM_MAX_STREAMS


@dataclass
class Argument:
    """What a launch touches, and what for."""

    span: Span
    run: Run
    use: Use
    learned: RunUse | None = None  # None: it came before in the same launch
    leaves: bool = False  # what it touches, later, before it is written again
    creates: bool = False  # nobody used the content before


@dataclass
class Trial:
    """A launch that used a duplicate. Whether it faults tells whether it writes."""

    sequence: int
    learned: RunUse
    block: UmBlock


class Uses(Commands):
    """Next uses by their distance, and writes by trial."""

    def __init__(self, settings: CoreSettings) -> None:
        super().__init__(settings)
        self.faults_are_told = False
        self.times_are_told = False
        self.pace = Pace()  # with and without clean copies
        self.remote = RemoteTrial()  # with tensors on the device and on the host
        self.dropped = 0  # blocks, or copied out ahead
        self.completed = [0] * STREAMS
        self.reported = [0] * STREAMS  # completed at the look before: their faults have been reported
        self.begun = [0] * STREAMS
        self.begun_at_all = 0  # no launch behind that sequence had, on any stream
        self.trials: list[deque[Trial]] = [deque(maxlen=MOST_TRIALS) for _ in range(STREAMS)]
        self.untold = 0  # the latest launch of which it was not known whether it writes a duplicate
        self.taken_at = 0  # the latest launch before which blocks were seen to have been taken by the driver
        self.taken_lately = False  # since the latest launch
        self.iteration = 0
        self.longest_lately = 0
        self.measured = 0
        self.touched = 0  # UM blocks, by all launches, each of which is one more
        self.touched_lately = 0  # in an iteration
        self.touched_before = 0  # the present one,
        self.touched_from = 0  # which began at that launch
        self.surprised = 0
        self.longest_period = 0
        self.sparse = False  # the launch being placed touches rows of tables

    # Iterations.

    def measure_iteration(self, period: int) -> None:
        """The longest way back to the same launch, of late."""
        self.longest_lately = max(self.longest_lately, period)
        self.iteration = max(self.iteration, self.longest_lately)
        if self.position - self.measured > 2 * max(self.longest_lately, SETTLED):
            self.iteration, self.longest_lately, self.measured = self.longest_lately, 0, self.position

    def count_touched(self, arguments: list[Argument]) -> None:
        self.touched += 1 + sum(argument.span[2] for argument in arguments)
        self.touched_lately = max(self.touched_lately, self.touched - self.touched_before)
        if self.position - self.touched_from >= self.iteration:
            self.touched_lately = self.touched - self.touched_before
            self.touched_before, self.touched_from = self.touched, self.position

    def watch_learning(self, execution: Execution, restarted: bool) -> None:
        if execution.launches == 1 or restarted:
            self.surprised, self.longest_period = self.position, 0
        if self.taken_lately:
            self.taken_at, self.taken_lately = self.position, False
        if self.wants_faults:
            self.longest_period = max(self.longest_period, execution.period)

    def learns(self) -> bool:
        return self.position - self.surprised <= SETTLED + 2 * self.longest_period

    @property
    def wants_faults(self) -> bool:
        lately = self.position - SETTLED - 2 * self.iteration
        trying = bool(self.settings.advice & DUPLICATE and self.untold and self.untold >= lately)
        taken = self.taken_at > 0 and self.taken_at >= lately
        return trying or taken or self.pace.under_way() or self.remote.phase is not None or self.learns()

    # What is used next.

    def learn_uses(self, execution: Execution, arguments: list[Argument]) -> None:
        seen: set[Run] = set()
        for argument in arguments:
            again = argument.run in seen
            seen.add(argument.run)
            learned = argument.learned = None if again else execution.uses[argument.run]
            if learned is not None:
                learned.now = argument.use = learned.now if argument.use is Use.UNKNOWN else argument.use
                argument.leaves = learned.leaves()
            blocks = self.blocks(argument.span)
            argument.creates = self.middle(argument.span).user is None
            told: tuple[RunUse | None, int] = (None, FIRST)  # by the block before
            for block in blocks:
                if block.used != self.position and (block.user, block.part) != told and not self.passes_over(block):
                    self.learn_next(block, argument.use, argument.leaves)
                    told = (block.user, block.part)
            for i, block in enumerate(blocks):
                if (block.used == self.position and learned is None) or self.passes_over(block):
                    continue  # an argument before this one told more
                block.left = False
                block.used, block.user, block.touched = self.position, learned, self.touched
                if argument.use is Use.WRITES or (argument.use is Use.UNKNOWN and not block.copied):
                    self.judge_copy(block, left=False)
                    block.writer = learned
                block.part = FIRST if i == 0 else LAST if i == len(blocks) - 1 else INNER
                following = learned.next[block.part] if learned is not None else NextUse()
                block.awaited = self.position + following.gap if following.gap else 0
                block.next_use = following.use

    def passes_over(self, block: UmBlock) -> bool:
        """A table of which it touches rows, and which it reaches where it is."""
        return self.sparse and block.mapped

    def judge_copy(self, block: UmBlock, left: bool) -> None:
        """If it was copied out ahead: for nothing, if it was written before it left."""
        ahead, block.copied_ahead = block.copied_ahead, False
        writer = block.writer
        if ahead and writer is not None and not writer.forgotten and self.pace.representative():
            writer.in_vain = max(0, writer.in_vain - 1) if left else min(writer.in_vain + 1, MOST_IN_VAIN)

    def learn_next(self, block: UmBlock, use: Use, leaves: bool) -> None:
        """Whoever used the block last learns what came next: of what one launch of it used as one part, the longest wait."""
        if block.user is None:
            return
        known = block.user.next[block.part]
        gap = self.position - block.used + (use is Use.DIES)
        again = known.round == block.used
        representative = self.pace.representative()
        if not again or gap > known.gap:
            stands = again or not representative
            known = NextUse(use, gap, self.touched - block.touched, block.used, stands and known.left, stands and known.leaves)
        if representative:
            leaves = block.left or (leaves and use is not Use.WRITES)
            known = replace(known, left=known.left or block.left, leaves=known.leaves or leaves)
        block.user.next[block.part] = known

    def blocks(self, span: Span) -> list[UmBlock]:
        slot, first, count = span
        return self.allocations[slot].blocks[first : first + count]

    def middle(self, span: Span) -> UmBlock:
        slot, first, count = span
        return self.allocations[slot].blocks[first + count // 2]

    def lives(self, block: UmBlock) -> bool:
        allocation = self.allocations.get(block.slot)
        return allocation is not None and block.index < len(allocation.blocks) and allocation.blocks[block.index] is block

    # What is written.

    def try_uses(self, arguments: list[Argument], stream: int) -> None:
        for argument in arguments:
            block = self.middle(argument.span)
            if not self.faults_are_told or argument.learned is None or not block.copied:
                continue
            if argument.use is Use.UNKNOWN:
                self.untold = self.position
            self.trials[stream].append(Trial(self.sequence, argument.learned, block))

    def on_progress(self, event: Progress) -> None:
        """Who ran before the look before this one, and was not blamed since, reads."""
        if event.stream >= STREAMS:
            return
        self.faults_are_told = True
        trials = self.trials[event.stream]
        while trials and trials[0].sequence <= self.completed[event.stream]:
            trial = trials.popleft()
            valid = self.lives(trial.block) and trial.block.single_since < trial.sequence
            if valid and trial.learned.now is Use.UNKNOWN:
                trial.learned.now = Use.READS
        self.reported[event.stream] = self.completed[event.stream]
        self.completed[event.stream], self.begun[event.stream] = event.completed, event.begun
        self.begun_at_all = max(self.begun_at_all, event.begun)
        self.times_are_told |= event.completed_at != 0
        self.pace.completed(event.completed, event.completed_at)
        self.remote.completed(event.completed, event.completed_at)

    def note_written(self, span: Span) -> None:
        """A write was seen to fault: one of those that may have been running did it, rather not one that is known to read."""
        if not self.faults_are_told:
            return
        written = self.blocks(span)
        suspects = [
            (trial.learned, trial.block, stream)
            for stream, (trials, begun) in enumerate(zip(self.trials, self.begun, strict=True))
            for trial in trials
            if trial.sequence <= begun and trial.block in written and not trial.learned.forgotten
        ]
        first: dict[tuple[int, int], RunUse] = {}  # by stream and block
        for learned, block, stream in [one for one in suspects if one[0].now is not Use.READS] or suspects:
            first.setdefault((stream, block.index), learned)
        for learned in first.values():
            learned.now = Use.WRITES
        for block in written:
            if block.mostly and block.copied_since <= self.begun_at_all:
                self.judge_copy(block, left=False)
                block.single_since = self.sequence
                self.memory_of(block).uncopy(block)

    def forget_trials(self) -> None:
        """Faults may have been lost, so that nobody is known to read for want of one."""
        for trials in self.trials:
            trials.clear()
