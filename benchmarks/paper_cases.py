"""What benchmarks/paper.py simulates: the models of DeepUM's evaluation on its two cards, and the
rows of its tables.

Batch sizes are ours: the paper's are in its Table 2, which the notes at hand have as a picture.
Each card gets three a model, at which PyTorch has allocated about 1.4, 2 and 2.8 times the card's
memory; DLRM's memory is its tables, so there the rows differ.
"""

from __future__ import annotations

from deepum._core import lib

from deepum.simulate.driver import BAND
from deepum.simulate.mode import LOCK_STEP
from deepum.simulate.point import Point
from deepum.simulate.policies import BY_NAME, Policy
from deepum.workloads import WORKLOADS

MODELS = tuple(name for name, named in WORKLOADS.items() if named.paper)
_BATCHES: dict[str, dict[str, tuple[int, int, int]]] = {
    "v100-32gb": {
        "resnet152": (256, 384, 512),
        "resnet200": (192, 256, 384),
        "mobilenet": (576, 768, 1280),
        "dcgan": (24576, 36864, 49152),
        "bert-base": (96, 128, 192),
        "bert-large": (40, 56, 80),
        "gpt2-l": (6, 8, 12),
        "gpt2-xl": (3, 5, 8),
    },
    "v100-16gb": {
        "resnet152": (128, 192, 256),
        "resnet200": (96, 128, 192),
        "mobilenet": (288, 384, 640),
        "dcgan": (12288, 18432, 24576),
        "bert-base": (48, 64, 96),
        "bert-large": (16, 24, 40),
        "gpt2-l": (3, 4, 6),
        "gpt2-xl": (1, 2, 4),
    },
}
# Of each of DLRM's 26 tables.
_ROWS = {"v100-32gb": (4_000_000, 6_000_000), "v100-16gb": (2_000_000, 3_000_000)}
MACHINES = tuple(_BATCHES)

# Compared in each table; those that the version at hand does not have are left out.
COMPARED = tuple(
    name
    for name in (
        "on-demand",
        "lms",
        "lms-mod",
        "deepum-paper",
        "lookahead-8",
        "deepum",
        "unlimited",
    )
    if name in BY_NAME
)
SWAPPING = tuple(name for name in ("lms", "lms-mod") if name in BY_NAME)

_PAPER = {**BY_NAME["deepum-paper"].changes}
_OURS = {**BY_NAME["deepum"].changes}
ABLATION = (
    Policy(
        "+ prefetch",
        "predicted by the paper's tables, N = 32; the driver evicts",
        {**_PAPER, "pre_eviction": 0, "invalidation": 0},
    ),
    Policy(
        "+ pre-eviction",
        "space is made ahead, least recently migrated first",
        {**_PAPER, "invalidation": 0},
    ),
    Policy("+ invalidation", "dead PyTorch blocks are dropped: the paper's system", _PAPER),
    Policy(
        "+ advice",
        "tables used by the row stay on the host",
        {**_PAPER, "advice": lib.DEEPUM_ADVISE_REMOTE},
    ),
    Policy(
        "ours, no invalidation",
        "predicted by history, evicted in the order of `deepum`, advice",
        {**_OURS, "invalidation": 0},
    ),
    Policy("ours", "with invalidation: `deepum`", _OURS),
)
DEGREES = tuple(2**power for power in range(12))
SYSTEMS = {"paper": _PAPER, "ours": _OURS}

TINY = ("dcgan:batch=64,width=8", "bert-base:batch=2,seq=64,layers=2,width=128,heads=2")
_TINY_CARD = {"machine": "v100-16gb", "pressure": 1.5}


DRIVER = BAND["expected"]


def point(workload: str, policies: tuple[Policy, ...], **card: object) -> Point:
    """On the machine itself or, tiny, on a card that is too small for it; with the driver that is
    expected.
    """
    return Point(workload, policies, driver=DRIVER, **card)  # type: ignore[arg-type]


def _names(machine: str) -> list[str]:
    names = [
        f"{model}:batch={batch}"
        for model, batches in _BATCHES[machine].items()
        for batch in batches
    ]
    return names + [f"dlrm:batch=8192,rows={rows}" for rows in _ROWS[machine]]


def speed_ups(tiny: bool) -> list[Point]:
    """Each model at its batches on each card, under all policies."""
    chosen = tuple(BY_NAME[name] for name in COMPARED)
    if tiny:
        return [point(name, chosen, **_TINY_CARD) for name in TINY]
    return [
        point(name, chosen, machine=machine) for machine in MACHINES for name in _names(machine)
    ]


def ablation(tiny: bool) -> list[Point]:
    """Some of them, under one mechanism more from row to row."""
    if tiny:
        return [point(TINY[1], ABLATION, **_TINY_CARD)]
    names = (
        "resnet152:batch=384",
        "bert-large:batch=56",
        "gpt2-xl:batch=5",
        "dlrm:batch=8192,rows=4000000",
    )
    return [point(name, ABLATION, machine="v100-32gb") for name in names]


def degree_name(system: str, degree: int) -> str:
    """Of the policy."""
    return f"{system}, N = {degree}"


def degrees(tiny: bool) -> list[Point]:
    """Some, under the paper's system and ours by prefetch degree; a point a system, so that they
    run side by side.

    The driver's queue holds one launch: the published driver learns of a kernel when it is about to
    run, so that all of the lead is predicted. With a longer queue what is in it is known, and N
    decides little. In lock-step, since such a driver decides at once.
    """
    swept = [
        tuple(
            Policy(
                degree_name(system, n), f"{system} with N = {n}", {**changes, "prefetch_degree": n}
            )
            for n in DEGREES
        )
        for system, changes in SYSTEMS.items()
    ]
    if tiny:
        return [
            point(TINY[1], policies[2:5], launch_queue=1, mode=LOCK_STEP, **_TINY_CARD)
            for policies in swept
        ]
    names = ("resnet152:batch=384", "bert-large:batch=56", "gpt2-l:batch=8")
    return [
        point(name, policies, machine="v100-32gb", launch_queue=1, mode=LOCK_STEP)
        for name in names
        for policies in swept
    ]
