"""What the ablation runs: training scripts on simulated cards, under rows of settings.

A case is a script on a card. Its rows are runs that differ in deepum's settings alone, the first of
them on-demand paging.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from main_job import ROOT, JobError

ON_DEMAND, UNLIMITED = "on-demand", "unlimited"
PUBLISHED = ("prediction=tables", "eviction_order=least-recently-migrated", "prefetch_degree=32")
PAPER = (*PUBLISHED, "advice=none")
LAST_USE = "eviction_order=oldest-last-use"
# Tunables; their degree is swept.
SYSTEMS = {"paper": (*PAPER, "invalidation=1"), "ours": (LAST_USE, "invalidation=1")}


def _tuned(tunables: Iterable[str]) -> list[str]:
    return ["--tune", ",".join(tunables)]


ROWS: dict[str, list[str]] = {
    ON_DEMAND: ["--policy", "on-demand"],
    "+ prefetch": _tuned((*PAPER, "pre_eviction=0", "invalidation=0")),
    "+ pre-eviction": _tuned((*PAPER, "invalidation=0")),
    "+ invalidation": _tuned(SYSTEMS["paper"]),
    "+ advice": _tuned((*PUBLISHED, "invalidation=1", "advice=remote")),
    "ours, no inval.": _tuned((LAST_USE, "invalidation=0")),
    "ours": _tuned(SYSTEMS["ours"]),
    "ours, next use": _tuned(("invalidation=1",)),
    "ours, clean": [*_tuned(("invalidation=1", "advice=all")), "--faults", "auto"],
}
DEGREES = [1, *(2**power for power in range(1, 12, 2))]  # 1, 2, 8, ... 2048


@dataclass(frozen=True)
class Case:
    """A script of examples/ with its arguments, on a machine preset; `gibibytes` of memory, 0: what
    the card has. Figures are of the steps after the first `warm_up`. `waiting`: as
    wait_at_modules.py runs it, which gives what is predicted all the work.
    """

    job: str
    script: tuple[str, ...]
    machine: str
    gibibytes: float = 0
    steps: int = 5
    warm_up: int = 3
    waiting: bool = False
    sparse: bool = False  # a step uses little of the memory: what exceeds the card need not move

    @property
    def name(self) -> str:
        memory = f" with {self.gibibytes:g} GiB" if self.gibibytes else ""
        return f"{self.job} on {self.machine}{memory}" + (", waiting" if self.waiting else "")

    @property
    def command(self) -> list[str]:
        """The script with its arguments."""
        wrapper = [str(ROOT / "benchmarks" / "wait_at_modules.py")] if self.waiting else []
        return [
            *wrapper,
            str(ROOT / "examples" / self.script[0]),
            *self.script[1:],
            "--steps",
            str(self.steps),
        ]

    def with_steps(self, steps: int) -> Case:
        """Another number of them. Raises JobError if none is left after the warm-up."""
        if steps <= self.warm_up:
            raise JobError(
                f"--steps: {steps} leaves none after the warm-up of {self.name}; give at "
                f"least {self.warm_up + 1}"
            )
        return replace(self, steps=steps)


def _on_cards(case: Case, *cards: tuple[str, float]) -> list[Case]:
    return [replace(case, machine=machine, gibibytes=gibibytes) for machine, gibibytes in cards]


V100S = ("v100-32gb", 0.0), ("v100-16gb", 0.0)
GPT2_SMALL = Case("gpt2-small b8", ("train_gpt2.py", "--model", "small", "--batch", "8"), "")
GPT2_XL = Case("gpt2-xl b5", ("train_gpt2.py", "--model", "xl", "--batch", "5"), "")
BERT = Case("bert-large b16", ("train_bert.py", "--model", "large", "--batch", "16"), "")
# A row of each table a sample, as of Criteo's 26 categories; the simulated GPU draws 4096 rows a
# launch at most. On-demand paging takes a while to settle there, since each step leaves other parts
# of the tables on the card.
ONE_ROW = ("--batch", "4096", "--lookups", "1")
DLRM = Case(
    "dlrm 50 GiB",
    ("dlrm_like.py", "--tables", "26", "--rows", "4000000", *ONE_ROW),
    "",
    steps=40,
    warm_up=32,
    sparse=True,
)
DLRM_SMALL = Case(
    "dlrm 4 GiB", ("dlrm_like.py", "--tables", "8", *ONE_ROW), "", steps=40, warm_up=32, sparse=True
)
TINY = Case(
    "tiny",
    ("train_gpt2.py", "--model", "tiny", "--batch", "8", "--sequence", "256"),
    "v100-16gb",
    1,
)

MECHANISMS = [
    *_on_cards(GPT2_SMALL, *V100S, ("v100-16gb", 8)),
    *_on_cards(GPT2_XL, *V100S),
    *_on_cards(BERT, *V100S),
    *_on_cards(DLRM, *V100S),
    *_on_cards(DLRM_SMALL, ("v100-16gb", 2)),
]
# Where the host never runs ahead of the GPU; and as it is, for comparison.
SWEPT = [
    replace(case, steps=4)
    for case in (
        *_on_cards(replace(GPT2_SMALL, waiting=True), ("v100-16gb", 8)),
        *_on_cards(replace(BERT, waiting=True), ("v100-16gb", 0)),
        *_on_cards(GPT2_SMALL, ("v100-16gb", 8)),
    )
]


def sweep_rows() -> dict[str, list[str]]:
    """On-demand paging, and each system with each degree."""
    rows = {
        degree_row(system, degree): _tuned((*_without_degree(given), f"prefetch_degree={degree}"))
        for system, given in SYSTEMS.items()
        for degree in DEGREES
    }
    return {ON_DEMAND: ROWS[ON_DEMAND], **rows}


def degree_row(system: str, degree: int) -> str:
    """Its name."""
    return f"{system}, N = {degree}"


def _without_degree(tunables: Iterable[str]) -> list[str]:
    return [one for one in tunables if not one.startswith("prefetch_degree=")]
