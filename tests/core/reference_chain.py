"""The chain of predicted launches in plain Python: what native/core/prediction does, and the execution correlation table."""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import accumulate

from reference_advice import Advice
from reference_block import Place, UmBlock, Use
from reference_commands import CORRELATION, FURTHEST_NEXT_USE, HISTORY
from reference_history import Execution, History, Link
from reference_memory import Memory
from reference_victims import EVICTION_BATCH, EXPECTED_SCAN

from deepum.core import CoreSettings

PROVEN = 2  # launches of an ID before it is fetched for ahead
ASTRAY = 20  # of the latest 32 launches in the chain, those that lay elsewhere, by which it is left
KNOWN = 3  # agreement from which on half of the trust remains
LATE_SCAN, SWEEP = 4096, 16  # blocks looked at for one needed late; part of a device by which content may grow in a sweep
SKIPPED, SKIPPED_KERNELS, INSERTED = 64, 8, 8  # launches that may be missing from, or new to, what came before
NEAR = 64  # launches that are looked at for new content
IDLE_PART, LEAST_IDLE = 64, 2  # part of an iteration, and launches, in which nothing left for want of space
LOWER = 8  # part of what content rises by, by which it may be less than in another iteration
FALLEN = 4  # parts of what content has risen by, of which all but one die again in an iteration
TRUST = 2  # launches placed ahead for each prediction in a row that was right


class Chain(Advice):
    """What is launched next, and how far ahead it is placed."""

    def __init__(self, settings: CoreSettings) -> None:
        super().__init__(settings)
        self.executions: OrderedDict[int, Execution] = OrderedDict()  # by hash, longest unused first
        self.by_id: dict[int, Execution] = {}
        self.context: list[int | None] = [None] * 4
        self.chain: deque[Link] = deque()
        self.history = History()
        self.match: tuple[int | None, int] = (None, 0)
        self.inserted = 0
        self.astray: deque[bool] = deque(maxlen=32)
        self.claimed = 0
        self.fullest = 0
        self.looked = self.looked_over = 0
        self.sweeping = False
        self.reserving = 0
        self.chain_context: list[int | None] = [None] * 4
        self.right = 0
        self.restarts = 0

    def identify(self, execution_hash: int) -> Execution:
        if execution_hash in self.executions:
            self.executions.move_to_end(execution_hash)
            return self.executions[execution_hash]
        number = len(self.executions)
        if number >= self.settings.execution_ids:
            _, old = self.executions.popitem(last=False)
            number = old.id
            old.forget_uses()
            # What names the ID means the hash that it then had.
            for link in (*self.chain, *self.history.launches):
                link.id = -1 if link.id == number else link.id
        execution = Execution(number)
        self.executions[execution_hash] = self.by_id[number] = execution
        return execution

    def learn(self, following: int) -> None:
        if self.context[0] is None:
            return
        before = tuple(self.context[1:])
        records = self.by_id[self.context[0]].records
        kept = [record for record in records if record[0] != before]
        if len(kept) == len(records):
            kept = kept[: self.settings.execution_records - 1]
        self.by_id[self.context[0]].records = [(before, following), *kept]

    def predict(self, context: list[int | None]) -> int | None:
        if context[0] is None:
            return None
        best, longest = None, -1
        for before, following in self.by_id[context[0]].records:
            agree = 0
            while agree < 3 and before[agree] == context[agree + 1]:
                agree += 1
            if agree > longest:
                best, longest = following, agree
        return best

    def follow(self, number: int) -> None:
        self.context = [number, *self.context[:3]]
        if self.settings.policy != CORRELATION:
            return
        now = self.history.recalled
        if self.chain:
            at = self.find_in_chain(number)
            right = at == 0 and self.chain[0].id == number
            if at is not None:
                self.right += right
                self.astray.append(not right)
                self.inserted = 0
                for _ in range(at + 1):
                    self.pop_link()
                if self.settings.prediction != HISTORY or not self.mistaken(now, right):
                    return
            else:
                if self.settings.prediction == HISTORY and not self.agrees_better(now):
                    self.inserted += 1
                    if self.inserted <= INSERTED:
                        return
                self.right = self.right // 2 if self.settings.prediction == HISTORY and now[1] >= KNOWN else 0
            self.restarts += 1
            self.drop_chain()
            self.expect_nothing()
        self.chain_context = self.context
        self.match = now

    def inherit_uses(self, execution: Execution) -> None:
        """What is used on as nobody knows yet, as what was expected in its place."""
        if not self.chain or execution.knows_next():
            return
        at = self.find_in_chain(execution.id)
        if at is not None and self.chain[at].id not in (-1, execution.id):
            execution.inherit(self.by_id[self.chain[at].id])

    def find_in_chain(self, number: int) -> int | None:
        links = list(self.chain)[:SKIPPED]
        kernel = self.by_id[number].kernel
        if self.settings.prediction != HISTORY:
            return 0 if links[0].id == number else None
        if links[0].id == number or links[0].kernel == kernel:
            return 0
        exact = [i for i, link in enumerate(links) if link.id == number]
        alike = [i for i, link in enumerate(links[:SKIPPED_KERNELS]) if link.kernel == kernel]
        return next(iter(exact or alike), None)

    def agrees_better(self, now: tuple[int | None, int]) -> bool:
        if now[1] != self.match[1] or now[0] is None or self.match[0] is None:
            return now[1] > self.match[1]
        return now[0] < self.match[0]

    def mistaken(self, now: tuple[int | None, int], right: bool) -> bool:
        if now[0] == self.match[0]:
            self.match = (self.match[0], max(self.match[1], now[1]))
            return False
        return not right and (now[1] > self.match[1] or (now[1] > KNOWN and sum(self.astray) >= ASTRAY))

    def pop_link(self) -> None:
        front = self.chain.popleft()
        memory = self.memory(front.device)
        memory.reserved -= front.reserved
        memory.most_reserved = memory.most_reserved - front.reserved if self.position < self.fullest else memory.reserved
        self.match = (front.place, self.match[1])
        self.claimed = max(0, self.claimed - 1)
        self.placed = max(0, self.placed - 1)
        self.promised = max(0, self.promised - 1)
        self.reserving = max(0, self.reserving - 1)

    def drop_chain(self) -> None:
        self.chain.clear()
        self.claimed = self.placed = self.promised = self.reserving = self.inserted = self.looked = self.fullest = 0
        self.match = (None, 0)
        self.astray.clear()
        for memory in self.devices.values():
            memory.reserved = memory.most_reserved = 0

    def expect_nothing(self) -> None:
        for memory in self.devices.values():
            memory.expect_nothing()

    def next_link(self) -> Link | None:
        if self.settings.prediction != HISTORY:
            if not self.chain:
                self.chain_context = self.context
            following = self.predict(self.chain_context)
            if following is None:
                return None
            self.chain_context = [following, *self.chain_context[:3]]
            return Link(following, self.by_id[following].kernel, None)
        before = self.chain[-1].place if self.chain else self.match[0]
        if before is None or self.match[0] is None:
            return None
        place = before + 1
        if place >= len(self.history.launches):
            return None
        past = self.history.launches[place]
        return Link(past.id, past.kernel, place)

    def extend(self) -> None:
        for _ in range(self.settings.chain_steps):
            if len(self.chain) >= self.settings.prefetch_degree:
                return
            link = self.next_link()
            if link is None:
                return
            self.chain.append(link)

    def trusted(self) -> int:
        return min(len(self.chain), TRUST * self.right)

    def claim_ahead(self, most: int) -> None:
        expecting = self.settings.eviction_order == FURTHEST_NEXT_USE or self.sweeping
        until = min(self.trusted(), self.claimed + most)
        while self.claimed < until:
            link = self.chain[self.claimed]
            if link.id >= 0 and self.by_id[link.id].launches >= PROVEN:
                self.sparse = self.by_id[link.id].sparse
                for span, _ in self.locate(self.by_id[link.id], self.claimed + 1):
                    for block in self.blocks(span):
                        memory = self.memory_of(block)
                        later = block.place is Place.KEPT and memory.overdue(block)
                        if memory.under_pressure() and block.resident and expecting and not self.passes_over(block) and not later:
                            memory.expect(block, self.position + self.claimed + 1)
            self.claimed += 1

    def find_fullest(self) -> None:
        """Of the next iteration: where content has risen most, about as high as ever, before most of that dies again, or the chain ends.
        Where it never rises by much, where there is the most."""
        front = self.history.launches[self.chain[0].place] if self.chain and self.chain[0].place is not None else None
        capacity = self.memory(front.device if front else 0).capacity
        growth = [self.history.launches[link.place].growth if link.place is not None else 0 for link in self.chain]
        totals = list(accumulate(growth))
        highest = max(totals, default=0)
        self.looked, self.looked_over, self.sweeping = self.position, len(totals), True
        self.fullest = self.position + (totals.index(highest) + 1 if highest > 0 else 0)
        least = most = 0
        at = self.position
        for i, content in enumerate(totals):
            rise = most - least
            dies = rise > 0 and rise * SWEEP >= capacity and (most - content) * FALLEN >= rise * (FALLEN - 1)
            if dies and (highest - most) * LOWER <= rise:
                break
            if dies or content < least:
                least = most = content
            elif content > most:
                most, at = content, self.position + i + 1
        rise = most - least
        if rise > 0 and rise * SWEEP >= capacity and (highest - most) * LOWER <= rise:
            self.sweeping, self.fullest = False, at

    def knows_fullest(self) -> bool:
        passed = not self.sweeping and self.looked < self.fullest <= self.position
        return self.looked != 0 and self.position - self.looked < self.looked_over // 8 and not passed

    def new_content_soon(self, device: int) -> int:
        content = most = 0
        for link in list(self.chain)[:NEAR]:
            past = self.history.launches[link.place] if link.place is not None else None
            if past is not None and past.device == device:
                content += past.growth
                most = max(most, content)
        return most

    def reserve_ahead(self, most: int) -> None:
        if not self.knows_fullest():
            self.find_fullest()
        until = min(self.trusted(), self.reserving + most, max(0, self.fullest - self.position))
        while self.reserving < until:
            self.reserve(self.chain[self.reserving])
            self.reserving += 1

    def reserve(self, link: Link) -> None:
        if link.place is None:
            return
        past = self.history.launches[link.place]
        memory = self.memory(past.device)
        link.device, link.reserved = past.device, past.needs()
        memory.reserved += link.reserved
        memory.most_reserved = max(memory.most_reserved, memory.reserved)

    def make_reserved_room(self, memory: Memory) -> None:
        """While the program waits, by what is needed only when there is the most content, and before what is trusted ends."""
        if not memory.reserved_blocks() or not memory.under_pressure() or not self.settings.pre_eviction:
            return
        late = max(self.fullest, self.position)
        while memory.free() + len(memory.dead) < memory.reserved_blocks() + self.headroom(memory):
            expected = [*memory.expected.beyond(late)[:LATE_SCAN], *memory.expected_copied.beyond(late)[:LATE_SCAN]]
            waiting = [*memory.copied[:LATE_SCAN], *memory.kept[:LATE_SCAN], *memory.resting[:LATE_SCAN]]
            known = self.position + self.trusted()
            victims = [block for block in expected if block.next_use is not Use.DIES or block.awaited <= self.position]
            victims += [block for block in waiting if block.next_use is not Use.DIES and late < block.awaited <= known]
            if not victims:
                return
            self.evict(memory, victims[0], late)

    def leave_ahead(self, memory: Memory) -> None:
        """While nothing is in the way: of what is needed only when there is the most content, what left before in this place."""
        idle = self.position - memory.demanded >= max(self.iteration // IDLE_PART, LEAST_IDLE)
        if not memory.reserved_blocks() or not idle or not memory.under_pressure() or not self.settings.pre_eviction:
            return

        def left_before(block: UmBlock) -> bool:
            dies = block.next_use is Use.DIES and block.awaited > self.position
            used = block.user is not None and not block.user.forgotten and block.user.next[block.part].left
            return used and not dies and not block.fetched

        lacking = memory.reserved_blocks() + self.headroom(memory) - memory.free() - len(memory.dead)
        if lacking <= 0:
            return
        memory.wake(self.position, self.iteration)
        late = filter(left_before, memory.expected.beyond(max(self.fullest, self.position))[:EXPECTED_SCAN])
        oldest = sorted(late, key=lambda block: block.used)[: min(lacking, EVICTION_BATCH)]
        leaving = [(block, block.copied) for block in oldest]
        for block in oldest:
            memory.drop(block)
        self.leave_in_order(memory, leaving, self.position)
