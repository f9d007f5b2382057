"""Tables of simulated workloads, as text and as docs/research/workloads.md has them
(benchmarks/workloads.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import geometric_mean

from deepum.simulate.comparison import Comparison, means
from deepum.sizes import size

_SLOWER = 1.005  # than on-demand
_WORST = 6
_WIDTH = 35  # of a policy's columns


def _short(found: Comparison) -> str:
    return found.workload.partition(":")[0]


def _unlimited_ms(found: Comparison) -> float:
    return found.rows["unlimited"].ns / 1e6


def _ms(ns: float | None, digits: int) -> str:
    return "-" if ns is None else f"{ns / 1e6:.{digits}f}"


def head(on: str, names: Iterable[str]) -> str:
    """Of the lines below."""
    columns = f"{'':<14}{'peak':>10}{'unlimited':>10}{'bound':>10}{'bound (UM)':>12}"
    columns += "".join(f"{name:>{_WIDTH}}" for name in ("on-demand", *names))
    return (
        f"{on}, ms a step; each policy: ms, over on-demand, of the bound, of the bound "
        f"(UM)\n{columns}"
    )


def _fits(found: Comparison, name: str) -> bool:
    return found.rows[name].does_not_fit is None


def line(found: Comparison, names: Iterable[str]) -> str:
    """Of one workload on one machine."""
    bounds = f"{_ms(found.bound_ns, 1):>10}{_ms(found.kept_bound_ns, 1):>12}"
    cells = [
        f"{_short(found):<14}{size(found.footprint.allocated):>10}{_unlimited_ms(found):10.1f}{bounds}"
    ]
    for name in names:
        _, over_on_demand, of_bound = found.ratios(name)
        ratios = "".join(
            f"{ratio:8.2f}" if ratio is not None else f"{'-':>8}"
            for ratio in (of_bound, found.of_kept_bound(name))
        )
        fitting = f"{found.rows[name].ns / 1e6:10.1f}{over_on_demand:9.2f}{ratios}"
        cells.append(fitting if _fits(found, name) else f"{'does not fit':>{_WIDTH}}")
    return "".join(cells)


def markdown(every: list[Comparison], names: list[str]) -> list[str]:
    """For docs/research/workloads.md: ms a step, and of the bounds."""
    lines = [
        (
            f"| workload | machine | unlimited | bound | bound (UM) | on-demand | "
            f"{' | '.join(names)} |"
        ),
        f"|{'---|' * (6 + len(names))}",
    ]
    for found in every:
        cells = [f"`{_short(found)}`", found.machine, f"{_unlimited_ms(found):.0f}"]
        cells += [_ms(found.bound_ns, 0), _ms(found.kept_bound_ns, 0)]
        for name in ("on-demand", *names):
            both = [
                f"{ratio:.2f}"
                for ratio in (found.ratios(name)[2], found.of_kept_bound(name))
                if ratio is not None
            ]
            cell = _ms(found.rows[name].ns, 0) + (f" ({', '.join(both)})" if both else "")
            cells.append(cell if _fits(found, name) else "does not fit")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def summary(every: list[Comparison], names: list[str]) -> list[str]:
    """Geometric means of each policy, and what it is worst at."""
    lines = []
    for name in names:
        fitting = [found for found in every if _fits(found, name)]
        pressed = [
            found
            for found in fitting
            if found.footprint.allocated > found.memory_bytes and found.bound_ns is not None
        ]
        mean = means(pressed, name)
        if mean is not None:
            figures = (
                f"{mean.of_bound:.3f} of the bound, {mean.of_kept_bound:.3f} of the bound (UM), "
                f"{mean.over_on_demand:.2f} over on-demand"
            )
            lines.append(f"{name}: {figures} (geometric means of {mean.count})")
        whole = means([found for found in fitting if found.bound_ns is not None], name)
        if mean is not None and whole is not None and whole.count > mean.count:
            figures = (
                f"{whole.of_bound:.3f} of the bound, {whole.of_kept_bound:.3f} of the bound (UM)"
            )
            lines.append(f"  with those that fit the card: {figures} (of {whole.count})")
        where = [
            (f"{_short(found)} on {found.machine}", found.ratios(name)[1]) for found in fitting
        ]
        slower = [
            f"{place} ({1 / speed_up:.2f})" for place, speed_up in where if speed_up * _SLOWER < 1
        ]
        lines.append(f"  slower than on-demand: {', '.join(slower) or 'none'}")
        far = sorted(
            (
                (found.ratios(name)[2] or 0.0, f"{_short(found)} on {found.machine}")
                for found in pressed
            ),
            reverse=True,
        )
        lines.append(
            "  farthest above the bound: "
            f"{', '.join(f'{place} ({of_bound:.2f})' for of_bound, place in far[:_WORST])}"
        )
    return lines


def band_table(by_driver: Mapping[str, Sequence[Comparison]], name: str) -> list[str]:
    """Of one policy, for that page: ms a step and, in brackets, of the bound under each driver;
    speed-ups over on-demand from the least to the most. Only workloads that exceed the card, and
    ran under all drivers.
    """
    found = [
        {(one.workload, one.machine): one for one in every if _fits(one, name)}
        for every in by_driver.values()
    ]
    rows = {
        key: [each[key] for each in found] for key in found[0] if all(key in each for each in found)
    }
    head = ["workload", "bound", *(f"{name}, {driver}" for driver in by_driver), "over on-demand"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    machines = list(dict.fromkeys(on for _, on in rows))
    pressed = [
        each
        for each in rows.values()
        if each[0].bound_ns and each[0].footprint.allocated > each[0].memory_bytes
    ]
    for each in pressed:
        on = f" on {each[0].machine}" if len(machines) > 1 else ""
        cells = [f"{one.rows[name].ns / 1e6:.0f} ({_of_bound(one, name):.2f})" for one in each]
        lines.append(
            _cells(
                f"`{_short(each[0])}`{on}",
                _ms(each[0].bound_ns, 0),
                cells,
                [one.ratios(name)[1] for one in each],
            )
        )
    means_of = {
        f"geometric mean on {on}": [each for each in pressed if each[0].machine == on]
        for on in machines
        if len(machines) > 1
    }
    means_of |= {
        "geometric mean": pressed,
        "without `dlrm`": [each for each in pressed if _short(each[0]) != "dlrm"],
    }
    for title, counted in means_of.items():
        if counted:
            cells = [
                f"{geometric_mean(_of_bound(one, name) for one in column):.3f}"
                for column in zip(*counted, strict=True)
            ]
            gains = [
                geometric_mean(one.ratios(name)[1] for one in column)
                for column in zip(*counted, strict=True)
            ]
            lines.append(_cells(f"{title}, {len(counted)}", "", cells, gains))
    return lines


def _cells(title: str, bound: str, cells: Sequence[str], gains: Sequence[float]) -> str:
    return f"| {' | '.join([title, bound, *cells])} | {min(gains):.2f} to {max(gains):.2f} |"


def _of_bound(found: Comparison, name: str) -> float:
    return found.ratios(name)[2] or 0.0
