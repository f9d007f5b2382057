"""What DeepUM's evaluation and others publish, as far as it is known in figures or words, beside
what the simulation makes of it.

Known are notes that quote the text of the paper (DeepUM: Tensor Migration and Prefetching in
Unified Memory, ASPLOS'23, section 6); most of its figures and tables are pictures there, so their
numbers are not. G10's are those of its simulator (MICRO'23): A100 40 GB, with an SSD behind 128 GiB
of host memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from paper_batches import UNIFIED
from paper_cases import DEGREES, degree_name
from paper_energy import joules

Figures = Mapping[str, Any]
_CARD = "v100-32gb"
_PUBLISHED_N = 32
_PAPER, _LOOK_AHEAD = "deepum-paper", "lookahead-8"


@dataclass(frozen=True)
class Statement:
    """Of a source; `here`: the same from our results."""

    what: str
    published: str
    here: Callable[[Figures], str]


def _over(results: Figures, policy: str, *models: str, card: str = _CARD) -> list[float]:
    """Speed-ups over on-demand paging, of models by name, or of all."""
    return [
        float(one["policies"][policy]["speed_up_over_on_demand"])
        for one in results["simulations"]
        if one["machine"] == card and (not models or one["workload"].partition(":")[0] in models)
    ]


def _mean(results: Figures, policy: str, *models: str) -> str:
    found = _over(results, policy, *models)
    return f"{geometric_mean(found):.2f} ({min(found):.2f} to {max(found):.2f})" if found else "-"


def _faults_left(results: Figures) -> str:
    simulations = [one["policies"] for one in results["simulations"]]
    before, after = (
        sum(policies[name]["a_step"]["faults"] for policies in simulations)
        for name in ("on-demand", _PAPER)
    )
    return f"{after / before:.2%} of on-demand paging's are left"


def _table_bytes(results: Figures) -> str:
    found = [one["policies"][_PAPER]["table_bytes"] / (1 << 20) for one in results["simulations"]]
    return f"{min(found):.1f} to {max(found):.1f} MiB"


def _of_host(results: Figures) -> str:
    found = [
        one["bytes"] / one["host_bytes"]
        for one in results["batches"]
        if one["exact"] and one["policy"] == UNIFIED
    ]
    return f"{min(found):.1%} to {max(found):.1%} of it" if found else "-"


def _best(results: Figures, value: Callable[[Figures, str], float | None]) -> str:
    """For each workload the N with which the paper's system has the least of something, and how
    much less than with 32.
    """
    parts = []
    for one in results["degrees"]:
        found = {
            n: there for n in DEGREES if (there := value(one, degree_name("paper", n))) is not None
        }
        if _PUBLISHED_N in found:
            best = min(found, key=lambda n: (found[n], n))
            less = 1 - found[best] / found[_PUBLISHED_N]
            parts.append(
                f"{best} on `{one['workload'].partition(':')[0]}`"
                + (f" (by {less:.1%})" if best != _PUBLISHED_N else "")
            )
    return ", ".join(parts) or "-"


def _time(one: Figures, policy: str) -> float | None:
    row = one["policies"].get(policy)
    return None if row is None else float(row["step_ms"])


STATEMENTS = (
    Statement(
        "DeepUM over naive UM, ResNets",
        "small gains: kernels dominate",
        lambda r: _mean(r, _PAPER, "resnet152", "resnet200"),
    ),
    Statement(
        "DeepUM over naive UM, DLRM",
        "hardly any gain: irregular look-ups",
        lambda r: _mean(r, _PAPER, "dlrm"),
    ),
    Statement(
        "idealised look-ahead over base UVM, geometric mean",
        "3.12 (G10; five models, 2.15 to 3.78)",
        lambda r: _mean(r, _LOOK_AHEAD),
    ),
    Statement("memory of the largest batch under DeepUM", "nearly all of the host's", _of_host),
    Statement(
        "memory of the correlation tables", "varies with model and batch, on the host", _table_bytes
    ),
    Statement("page faults under DeepUM", "significantly fewer", _faults_left),
    Statement("best N by time", "32", lambda r: _best(r, _time)),
    Statement("best N by energy", "32", lambda r: _best(r, joules)),
)


def rows(results: Figures) -> list[tuple[str, str, str]]:
    """Each statement with both sides."""
    return [(one.what, one.published, one.here(results)) for one in STATEMENTS]
