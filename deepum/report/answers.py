"""What a report says first: whether it works, how much faster it is, what limits, what to try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from deepum.statistics import verdict
from deepum.statistics.comparison import Comparison, compared, faster
from deepum.statistics.outcome import Outcome, costs, outcome
from deepum.statistics.verdict import EXPLAINED, NAMES, Advice, Interval, Limit, Run

_ALIKE = 0.02  # by which the kernels of runs of one program may differ
_QUESTIONS = (
    "Is it working?",
    "How much faster is it?",
    "What is the limit?",
    "What to try next?",
)
_UNKNOWN_GAIN = (
    "Not known",
    ("one run does not tell: deepum compare -- COMMAND runs it on demand as well",),
)


@dataclass(frozen=True)
class Answer:
    """A question, its answer in a few words, and what there is to say beside it."""

    question: str
    answer: str
    details: tuple[str, ...] = ()


def of_runs(statistics: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Answer]:
    """Of the run that is asked about: of those that are comparable the first that is neither on
    demand nor with memory for all.
    """
    result = comparison(statistics)
    if result is not None:
        at = result.subject
        row, came = result.rows[at], result.outcomes[at]
        gain = row.over_on_demand if len(result.rows) > 1 else None
        faster_than = _gain(result)
    else:
        came, gain, faster_than = outcome(statistics[0][1]), None, _UNKNOWN_GAIN
    if came.run.fits and gain is None:
        faster_than = ("Nothing to gain", ("on demand nothing has to move either",))
    return _answers(
        verdict.working(came.run, gain), faster_than, _limit(came), came.advice, came.run.fits
    )


def _answers(
    working: tuple[str, str],
    gain: tuple[str, tuple[str, ...]],
    limit: tuple[str, tuple[str, ...]],
    tries: Sequence[Advice],
    fits: bool | None,
) -> list[Answer]:
    nothing = Advice("Nothing", "all fits" if fits else "there is little to gain from memory")
    first, *others = tries or [nothing]
    details = (first.why, *(f"or {one}" for one in others))
    what = f"deepum run {first.what}" if first.what.startswith("--") else first.what
    found = [(working[0], (working[1],)), gain, limit, (what, details)]
    return [
        Answer(question, _sentence(answer), details)
        for question, (answer, details) in zip(_QUESTIONS, found, strict=True)
    ]


def _sentence(text: str) -> str:
    """A command begins as it is typed."""
    return text if text.startswith("deepum ") else f"{text[:1].upper()}{text[1:]}"


def comparison(statistics: Sequence[tuple[str, Mapping[str, Any]]]) -> Comparison | None:
    """Runs of one program on one device beside each other, as `deepum compare` has them; None where
    there are no two. Which of them is on demand, and which has memory for all, their figures tell.
    """
    used = [(name, one) for name, one in statistics if one["processes"] and one["kernels"]]
    if len(used) < 2:
        return None
    outcomes = {name: outcome(one) for name, one in used}
    subject = next(
        (one for name, one in used if _is_subject(outcomes[name])),
        next((one for name, one in used if not outcomes[name].run.fits), used[0][1]),
    )
    alike = [
        (name, one)
        for name, one in used
        if one["device"] == subject["device"]
        and abs(one["kernels"] - subject["kernels"]) <= _ALIKE * subject["kernels"]
    ]
    paged = [name for name, one in alike if _is_paged(one, subject, outcomes[name])]
    whole = [name for name, one in alike if outcomes[name].run.fits and one is not subject]
    if len(alike) < 2 or len({name for name, _ in alike}) < len(alike):
        return None
    return compared(alike, *(names[0] if names else None for names in (paged, whole)))


def _is_subject(result: Outcome) -> bool:
    return result.run.policy != "on-demand" and not result.run.fits


def _is_paged(one: Mapping[str, Any], subject: Mapping[str, Any], result: Outcome) -> bool:
    """On demand, on a card that is as small."""
    memory = "gpu_memory_bytes"
    return (
        result.run.policy == "on-demand"
        and not result.run.fits
        and one.get(memory) == subject.get(memory)
    )


def _gain(result: Comparison) -> tuple[str, tuple[str, ...]]:
    row = result.rows[result.subject]
    if row.over_on_demand is None or row.ms is None:
        return _UNKNOWN_GAIN
    details = [faster(row.name, row.over_on_demand)]
    paged = row.over_on_demand * row.ms
    details.append(f"{row.ms:.1f} ms a {result.per} instead of {paged:.1f}, {result.clock} time")
    if row.of_unlimited is not None:
        details.append(f"{row.of_unlimited:.2f} times what unlimited memory takes")
    return f"{row.over_on_demand:.2f} x", tuple(details)


def _limit(result: Outcome) -> tuple[str, tuple[str, ...]]:
    if result.run.fits:
        return "Not memory", ("all of it fits in the GPU's",)
    details = [EXPLAINED[result.limit]]
    took = result.step.interval if result.step is not None else result.whole
    if took is not None:
        what = "a step" if result.step is not None else "the run"
        details.append(
            f"kernels compute in {(took.seconds - took.lost_s) * 1e3:.1f} of "
            f"{took.seconds * 1e3:.1f} ms of {what}, {result.clock} time"
        )
    if result.step is not None and result.step.doubt:
        details.append(f"doubtful: {result.step.doubt}")
    return NAMES[result.limit], tuple(details)


def of_simulations(simulations: Sequence[Mapping[str, Any]]) -> list[Answer]:
    """Of replays: of deepum, or of the fastest policy where it was not simulated. Of several, of
    their mean.
    """
    runs = [found for one in simulations if (found := _simulated(one)) is not None]
    if not runs:
        return []
    gains = [gain for _, _, gain, _ in runs if gain is not None]
    if len(runs) == 1:
        run, limited, gain, of_bound = runs[0]
        near = f"{of_bound:.2f} times the lower bound" if of_bound is not None else ""
        faster_than = (
            (f"{gain:.2f} x", tuple(filter(None, ("as fast as on-demand paging", near))))
            if gain is not None
            else ("Not known", ("on-demand paging was not simulated",))
        )
        return _answers(
            verdict.working(run, gain),
            faster_than,
            (NAMES[limited], (EXPLAINED[limited],)),
            verdict.advice(run, limited),
            run.fits,
        )
    slower = sum(gain < verdict.ALIKE[0] for gain in gains)
    limits = Counter(limited for _, limited, _, _ in runs)
    most = limits.most_common(1)[0][0]
    counts = ", ".join(f"{NAMES[limited]} {count} times" for limited, count in limits.most_common())
    run = next(run for run, limited, _, _ in runs if limited is most)
    mean = f"{geometric_mean(gains):.2f} x" if gains and min(gains) > 0 else "Not known"
    return _answers(
        _working_of(len(runs), slower),
        (mean, (f"the geometric mean of {len(gains)} over on-demand paging",)),
        (NAMES[most], (counts,)),
        verdict.advice(run, most),
        False,
    )


def _working_of(count: int, slower: int) -> tuple[str, str]:
    if not slower:
        return "Yes", f"none of {count} is slower than on demand"
    return "In part", f"{slower} of {count} are slower than on demand"


def _simulated(
    simulation: Mapping[str, Any],
) -> tuple[Run, Limit, float | None, float | None] | None:
    """The run, its limit, times as fast as on demand, times the bound."""
    ran = {
        name: figures
        for name, figures in simulation["policies"].items()
        if name != "unlimited" and "does_not_fit" not in figures
    }
    if not ran:
        return None
    name = "deepum" if "deepum" in ran else min(ran, key=lambda one: float(ran[one]["step_ms"]))
    figures, unlimited = ran[name], simulation["policies"].get("unlimited", {})
    counts = figures["a_step"]
    prefetched = counts.get("bytes_h2d", 0) - counts.get("bytes_demand", 0)
    moved = counts.get("bytes_h2d", 0)
    run = Run(
        policy=name,
        fits=not counts.get("bytes_d2h") and not moved,
        steps=len(figures["steps_ms"]),
        simulated=True,
        coverage=prefetched / moved if moved else None,
    )
    interval = None
    if unlimited.get("step_ms"):
        interval = Interval(
            figures["step_ms"] / 1e3,
            unlimited["step_ms"] / 1e3,
            *(
                counts.get(key, 0)
                for key in ("faults", "fault_batches", "bytes_demand", "bytes_h2d", "bytes_d2h")
            ),
        )
    limited = verdict.limit(interval, costs(f"sim:{simulation['machine']}"))
    return run, limited, figures["speed_up_over_on_demand"], figures.get("of_bound")
