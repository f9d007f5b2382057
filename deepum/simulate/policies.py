"""The policies that a simulation knows: each is settings of the one core and, at most, another card
or launch queue; or another program: the same under a library that swaps tensors
(deepum.simulate.lms), or under one that computes some again (deepum.recomputation).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deepum._core import lib
from deepum.core import CoreSettings, Plan
from deepum.errors import UsageError

_WATCH = {"policy": lib.DEEPUM_POLICY_ON_DEMAND}
_PAPER = {
    "prediction": lib.DEEPUM_PREDICT_TABLES,
    "eviction_order": lib.DEEPUM_EVICT_LEAST_RECENTLY_MIGRATED,
    "prefetch_degree": 32,
    "invalidation": 1,
    "advice": lib.DEEPUM_ADVISE_NOTHING,
}
_LOOK_AHEAD = {
    "prefetch_degree": 0,
    "eviction_order": lib.DEEPUM_EVICT_OLDEST_LAST_USE,
    "invalidation": 1,
    "advice": lib.DEEPUM_ADVISE_NOTHING,
}
_DECLARED = {
    "advice": lib.DEEPUM_ADVISE_ALL,
    "writes": lib.DEEPUM_WRITES_BY_OPERATORS,
}
_EMPTY_CACHE_EVERY = 1000  # launches: "periodically" is all that DeepUM's evaluation says of it [?]


@dataclass(frozen=True)
class Policy:
    """`changes` of the core's settings. `launch_queue`: the driver's, if not the machine's.
    `unlimited`: all memory fits. `observe_faults`: the core is told of faults while it learns
    (`--faults auto`). `declares_reads`: it is told what launches only read, as PyTorch's
    operators declare it (`--tune writes=operators`). `swaps`: the program is rewritten, its memory
    not managed, and its cache emptied every so many launches, if at all (`empty_cache_every`).
    `plans`: the iteration is planned (deepum.core.planned); `plan`: followed from the start.
    `recomputes`: the program gives memory back early and computes it again
    (deepum.recomputation), at a price found by trial, or without `moves` so that it fits the card;
    by the `heuristic` of that name (deepum.rematerialise) where there is one.

    Goes to other processes and machines: plain data.
    """

    name: str
    description: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    launch_queue: int | None = None
    unlimited: bool = False
    observe_faults: bool = False
    declares_reads: bool = False
    swaps: bool = False
    empty_cache_every: int | None = None
    plans: bool = False
    plan: Plan | None = None
    recomputes: bool = False
    moves: bool = True
    heuristic: str | None = None

    def settings(self, launch_queue: int) -> CoreSettings:
        """The core's settings on a machine with that launch queue."""
        return CoreSettings.default(**{"launch_queue": launch_queue, **self.changes})


# The look-ahead is that of G10's "DeepUM+": the kernels launched next are known, N of them, and
# nothing else. A driver's queue of N launches is just that: a launch is decided on when the kernel
# N before it has run, what is queued is not evicted, the dead is dropped. The core does not
# predict, and is not told of the short queue, for which it would.
_DTR = {
    "dtr": ("dtr-eq", "dynamic tensor rematerialisation, by h_DTR^eq: nothing is moved"),
    "dtr-exact": ("dtr", "the same by h_DTR: evicted neighbours are searched for"),
    "dtr-path": ("path", "by the time of what is missing on the way, as deepum.remat does"),
    "dtr-local": ("local", "by h_local: a tensor's own cost alone"),
    "dtr-megengine": ("megengine", "by MegEngine's score"),
    "dtr-lru": ("lru", "what was used longest ago first"),
    "dtr-size": ("size", "the largest first"),
}
POLICIES: tuple[Policy, ...] = (
    Policy("on-demand", "unified memory with the driver's prefetcher and eviction", _WATCH),
    Policy(
        "deepum-paper",
        "DeepUM as published: correlation tables, N = 32, least recently migrated, invalidation",
        _PAPER,
    ),
    Policy(
        "lookahead-8",
        "the next 8 kernels are known: G10's idealised DeepUM",
        {**_LOOK_AHEAD, "launch_queue": 1024},
        launch_queue=8,
    ),
    Policy(
        "deepum", "ours: predicted by history, furthest next use, invalidation", {"invalidation": 1}
    ),
    Policy("deepum-no-invalidation", "ours without invalidation", {"invalidation": 0}),
    Policy(
        "deepum-last-use",
        "ours, by oldest last use",
        {"invalidation": 1, "eviction_order": lib.DEEPUM_EVICT_OLDEST_LAST_USE},
    ),
    Policy("deepum-faults", "ours, faults observed", {"invalidation": 1}, observe_faults=True),
    Policy(
        "deepum-clean",
        "ours, with clean copies: what is read is on the host as well; faults observed",
        {"advice": lib.DEEPUM_ADVISE_ALL},
        observe_faults=True,
    ),
    Policy(
        "deepum-declared",
        "the same without faults: PyTorch's operators declare what they only read",
        _DECLARED,
        declares_reads=True,
    ),
    Policy(
        "planned",
        "ours, and the iteration that repeats is planned (docs/planned.md)",
        {"invalidation": 1},
        plans=True,
    ),
    Policy(
        "planned-clean",
        "the same, with clean copies; faults observed",
        {"advice": lib.DEEPUM_ADVISE_ALL},
        observe_faults=True,
        plans=True,
    ),
    Policy(
        "planned-declared",
        "the same without faults: PyTorch's operators declare what they only read",
        _DECLARED,
        declares_reads=True,
        plans=True,
    ),
    Policy(
        "remat",
        "ours, and what is cheaper computed again than moved is (docs/recomputation.md)",
        {"invalidation": 1},
        recomputes=True,
    ),
    Policy(
        "remat-alone",
        "no memory is moved: what does not fit the card is computed again",
        _WATCH,
        unlimited=True,
        recomputes=True,
        moves=False,
    ),
    *(
        Policy(
            name, text, _WATCH, unlimited=True, recomputes=True, moves=False, heuristic=heuristic
        )
        for name, (heuristic, text) in _DTR.items()
    ),
    Policy(
        "lms",
        "tensors swapped, no unified memory: IBM's Large Model Support for PyTorch",
        _WATCH,
        swaps=True,
    ),
    Policy(
        "lms-mod",
        "the same, and the allocator's cache is emptied now and then",
        _WATCH,
        swaps=True,
        empty_cache_every=_EMPTY_CACHE_EVERY,
    ),
    Policy("unlimited", "all memory fits", _WATCH, unlimited=True),
)
BY_NAME = {policy.name: policy for policy in POLICIES}
DEFAULT = ("on-demand", "deepum-paper", "lookahead-8", "deepum", "unlimited")


def parse(text: str) -> tuple[Policy, ...]:
    """The policies of a list with commas. Raises UsageError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in BY_NAME:
            raise UsageError(f"policy '{name}': is unknown; choose from {', '.join(BY_NAME)}")
    if not names:
        raise UsageError("--policy: is empty; name one or more with commas between them")
    return tuple(BY_NAME[name] for name in dict.fromkeys(names))
