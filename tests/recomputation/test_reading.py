"""A trace as storages and operations, and the account that says whether two programs do the same."""

from __future__ import annotations

import dataclasses

from recomputing import Followed, Made, at_random, training

from deepum.recomputation.account import disagreement
from deepum.recomputation.contents import Operation, Storage
from deepum.recomputation.reading import items, refusal
from deepum.trace import Trace, work
from deepum.trace.work import READ, WRITE


def test_the_account_notices_what_is_wrong() -> None:
    made = training()
    followed = Followed(made, at_random(3, 0.5))
    trace, found = followed.original, followed.trace
    assert disagreement(trace, found) is None
    works = list(work.decode(found.work))
    launched = [at for at, one in enumerate(works) if one.kind == work.LAUNCH]
    noticed = 0
    for at in launched[5::7]:
        one = works[at]
        target = next((a for a in one.accesses if a.flags & READ), None)
        if target is None:
            continue
        other = next(
            (
                a
                for w in works
                for a in w.accesses
                if (a.slot, a.offset) != (target.slot, target.offset) and a.bytes >= target.bytes
            ),
        )
        changed = tuple(
            a._replace(slot=other.slot, offset=other.offset) if a is target else a
            for a in one.accesses
        )
        wrong = [*works]
        wrong[at] = dataclasses.replace(one, accesses=changed)
        damaged = Trace("damaged", found.events, b"".join(w.encode() for w in wrong))
        noticed += disagreement(trace, damaged) is not None
    assert noticed >= 3
    without = [one for at, one in enumerate(works) if at != launched[10]]
    assert disagreement(trace, Trace("cut", found.events, b"".join(w.encode() for w in without)))


def test_versions_and_recipes() -> None:
    made = Made()
    made.new("a", 4)
    made.launch("part", made.access("a", WRITE, 0, 2))
    made.launch("rest", made.access("a", WRITE, 2, 2))
    made.launch("over", made.access("a", WRITE))
    made.run("change", changes="a")
    made.end_step()
    operations = [one for one in items(made.trace(), made.ns) if isinstance(one, Operation)]
    storage: Storage = operations[0].uses[0].storage
    assert [(one.uses[0].reads, one.uses[0].makes) for one in operations] == [
        (None, 1),
        (1, 2),
        (None, 3),
        (3, 4),
    ]
    assert list(storage.recipe(2)) == operations[:2]
    assert list(storage.recipe(4)) == operations[2:]


def test_programs_that_cannot_be_followed() -> None:
    made = training()
    trace = made.trace()
    assert refusal(trace) is None
    assert refusal(Trace("", trace.events)) == "does not tell where its steps end"
    without = b"".join(one.encode() for one in list(work.decode(trace.work))[1:])
    assert refusal(Trace("", trace.events, without)) == (
        "does not tell what its launches read and write"
    )
    assert refusal(Trace("", b"", trace.work)) == "has no blocks of PyTorch's allocator"
