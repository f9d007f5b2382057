"""What launches do with what they touch: whether they write it, and how many launches later it is
touched again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from deepum._core import lib

from deepum.core import CoreSettings, Progress
from reference.clock import Clock
from reference.memory.address_space import AddressSpace, ContentListener
from reference.memory.um_block import FIRST, INNER, LAST, Access, NextUse, Run, RunUse, UmBlock, Use
from reference.prediction.execution_table import Execution
from reference.prediction.launch_chain import LaunchChain
from reference.settings import BY_OPERATORS

MOST_TRIALS = 1 << 14  # of a stream
STREAMS = lib.DEEPUM_MAX_STREAMS


@dataclass
class Trial:
    """A launch that used a clean block."""

    event: int
    use: RunUse
    block: UmBlock


class UseTrials:
    def __init__(self, settings: CoreSettings, now: Clock, memory: AddressSpace) -> None:
        self.now, self.memory = now, memory
        self.by_faults = settings.writes != BY_OPERATORS
        self.observed = False  # faults are told, or times of launches alone
        self.completed = [0] * STREAMS
        # Completed at the look before: their faults have been reported.
        self.reported = [0] * STREAMS
        self.begun = [0] * STREAMS
        self.begun_at_all = 0  # no launch behind that event had, on any stream
        self.trials: list[deque[Trial]] = [deque(maxlen=MOST_TRIALS) for _ in range(STREAMS)]
        self.latest_unknown = 0  # launch of which it was not known whether it writes a clean block

    def begin(self, block: UmBlock, use: RunUse, stream: int, unknown: bool) -> None:
        if not self.observed or not self.by_faults:
            return
        if unknown:
            self.latest_unknown = self.now.launch
        self.trials[stream].append(Trial(self.now.event, use, block))

    def progress(self, event: Progress) -> None:
        """Who ran before the look before this one, and was not blamed since, reads."""
        self.observed = True
        trials = self.trials[event.stream]
        while trials and trials[0].event <= self.completed[event.stream]:
            trial = trials.popleft()
            valid = self.memory.lives(trial.block) and trial.block.single_since < trial.event
            if valid and trial.use.now is Use.UNKNOWN:
                trial.use.now = Use.READS
        self.reported[event.stream] = self.completed[event.stream]
        self.completed[event.stream], self.begun[event.stream] = event.completed, event.begun
        self.begun_at_all = max(self.begun_at_all, event.begun)

    def blame(self, blocks: list[UmBlock]) -> None:
        """A write of them faulted: one of those that may have been running did it, rather not one
        that is known to read.
        """
        suspects = [
            (trial.use, trial.block, stream)
            for stream, (trials, begun) in enumerate(zip(self.trials, self.begun, strict=True))
            for trial in trials
            if trial.event <= begun and trial.block in blocks and not trial.use.is_past
        ]
        first: dict[tuple[int, int], RunUse] = {}  # by stream and block
        for use, block, stream in [
            one for one in suspects if one[0].now is not Use.READS
        ] or suspects:
            first.setdefault((stream, block.index), use)
        for use in first.values():
            use.now = Use.WRITES

    def forget(self) -> None:
        """Faults may have been lost, so that nobody is known to read for want of one."""
        for trials in self.trials:
            trials.clear()


class UseTracker(ContentListener):
    def __init__(
        self,
        settings: CoreSettings,
        now: Clock,
        memory: AddressSpace,
        wasted: Callable[[UmBlock], None],
    ) -> None:
        self.now, self.memory = now, memory
        # What was never declared to be read may be written.
        self.reads_are_declared = settings.writes == BY_OPERATORS
        # Hears of blocks that were written back ahead of need and are written again before they
        # left.
        self.wasted = wasted
        self.representative = True  # what leaves the device now tells what will

    def learn(self, accesses: list[Access], execution: Execution, chain: LaunchChain) -> None:
        """Of the launch at hand: the uses of its accesses are completed by what was learned."""
        self.inherit(execution, chain)
        seen: set[Run] = set()
        for access in accesses:
            run_use = access.run_use = None if access.run in seen else execution.uses[access.run]
            seen.add(access.run)
            if run_use is not None:
                run_use.now = access.use = run_use.now if access.use is Use.UNKNOWN else access.use
                access.leaves = run_use.leaves()
            if self.reads_are_declared and access.use is Use.UNKNOWN:
                access.use = Use.WRITES
            access.creates = self.memory.middle(access.span).user is None
            blocks = list(enumerate(self.memory.blocks(access.span)))
            last = len(blocks) - 1
            elsewhere = [
                (i, block) for i, block in blocks if not block.read_in_place(execution.sparse)
            ]
            last_use: tuple[RunUse | None, int] = (None, FIRST)  # by the block before
            for _, block in elsewhere:
                if block.last_launch != self.now.launch and (block.user, block.part) != last_use:
                    self.learn_next(block, access.use, access.leaves)
                    last_use = (block.user, block.part)
            for i, block in elsewhere:
                # Else an access before this one told more.
                if run_use is not None or block.last_launch != self.now.launch:
                    self.note_use(block, access, FIRST if i == 0 else LAST if i == last else INNER)

    def inherit(self, execution: Execution, chain: LaunchChain) -> None:
        """What is used on as nobody knows yet, as what was expected in its place."""
        at = None if execution.knows_next() else chain.find(execution)
        if at is not None:
            like = chain.launches[at].execution
            if like is not execution and not like.given_up:
                execution.inherit(like)

    def note_use(self, block: UmBlock, access: Access, part: int) -> None:
        now = self.now
        block.left_since = False
        block.last_launch, block.user, block.work_before, block.part = (
            now.launch,
            access.run_use,
            now.work,
            part,
        )
        if access.use is Use.WRITES or (access.use is Use.UNKNOWN and not block.clean):
            if block.ahead_of_need:
                self.wasted(block)
            block.writer = access.run_use
        following = access.run_use.next[part] if access.run_use is not None else NextUse()
        block.next_launch = now.launch + following.gap if following.gap else 0
        block.next_use = following.use

    def learn_next(self, block: UmBlock, use: Use, leaves: bool) -> None:
        """Whoever used the block last learns what came next: of what one launch of it used as one
        part, the longest wait.
        """
        if block.user is None:
            return
        known = block.user.next[block.part]
        gap = self.now.launch - block.last_launch + (use is Use.DIES)
        again = known.round == block.last_launch
        if not again or gap > known.gap:
            stands = again or not self.representative
            known = NextUse(
                use,
                gap,
                self.now.work - block.work_before,
                block.last_launch,
                stands and known.left,
                stands and known.leaves,
            )
        if self.representative:
            leaves = block.left_since or (leaves and use is not Use.WRITES)
            known = replace(
                known, left=known.left or block.left_since, leaves=known.leaves or leaves
            )
        block.user.next[block.part] = known

    def begin_trials(self, accesses: list[Access], stream: int, trials: UseTrials) -> None:
        """Of its clean blocks, which are in place: whether the launch at hand writes them."""
        for access in accesses:
            block = self.memory.middle(access.span)
            if access.run_use is not None and block.clean:
                trials.begin(block, access.run_use, stream, access.use is Use.UNKNOWN)

    def content_died(self, block: UmBlock, died_now: bool) -> None:
        self.learn_next(block, Use.DIES, leaves=False)
        block.user, block.next_launch = None, 0
