"""The tables of benchmarks/paper.py, as Markdown, from what it wrote down."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

import paper_published
from paper_cases import DEGREES, SYSTEMS, degree_name
from paper_energy import SOURCES, joules

from deepum.sizes import size

Figures = Mapping[str, Any]
_NONE = "-"
_GIB = 1 << 30
# Gains a hundred times what the others do, or nothing: means are told without it as well.
_APART = "dlrm"
_POWER = {
    "busy_w": "GPU, kernels running, W",
    "waiting_w": "GPU, waiting, W",
    "host_w": "host, W",
    "device_memory_pj": "device memory, pJ a bit moved",
    "host_memory_pj": "host memory, pJ a bit moved",
    "link_pj": "link, pJ a bit moved",
}


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], rule: str = "--:") -> list[str]:
    """A table, its first column names, the others numbers unless another rule is given."""
    line = "| {} |".format
    return [
        line(" | ".join(head)),
        line(" | ".join(["---", *[rule] * (len(head) - 1)])),
        *(line(" | ".join(row)) for row in rows),
    ]


def _value(one: Figures, policy: str, key: str) -> float | None:
    """Of a policy; None where it was not run, or found no room."""
    value = one["policies"].get(policy, {}).get(key)
    return float(value) if value else None


def _mean(values: Iterable[float | None], digits: int = 2) -> str:
    """Geometric, of those that there are, with their number where some are missing."""
    every = list(values)
    there = [value for value in every if value is not None]
    if not there:
        return _NONE
    return f"{geometric_mean(there):.{digits}f}" + (
        f" ({len(there)})" if len(there) < len(every) else ""
    )


def _cell(value: float | None, digits: int = 2) -> str:
    return _NONE if value is None else f"{value:.{digits}f}"


def label(one: Figures) -> str:
    """The workload as short as it can be told: its name and batch, and the rows of tables."""
    name, _, rest = one["workload"].partition(":")
    numbers = dict(part.split("=") for part in rest.split(",") if "=" in part)
    rows = f" x {int(numbers['rows']) / 1e6:g} M rows" if "rows" in numbers else ""
    return f"`{name}` b{numbers['batch']}{rows}" if "batch" in numbers else f"`{name}`"


def shown(results: Figures) -> list[str]:
    """The policies that were compared, but for unlimited memory."""
    return [name for name in results["compared"] if name != "unlimited"]


def _by_machine(results: Figures) -> Iterable[tuple[str, list[Figures]]]:
    return (
        (machine, list(group))
        for machine, group in itertools.groupby(
            results["simulations"], lambda one: str(one["machine"])
        )
    )


def _card(machine: str, group: Sequence[Figures]) -> str:
    cards = dict.fromkeys(size(one["memory_bytes"]) for one in group)
    return f"{machine}, {next(iter(cards)) if len(cards) == 1 else 'cut to size'}"


def _per_card(
    results: Figures,
    head: Sequence[str],
    row: Callable[[Figures], Sequence[str]],
    last: Callable[[list[Figures]], Sequence[str]] | None,
) -> list[str]:
    lines = []
    for machine, group in _by_machine(results):
        rows = [[label(one), *row(one)] for one in group]
        if last is not None:
            others = [one for one in group if not one["workload"].startswith(_APART)]
            rows.append(_bold(["geometric mean", *last(group)]))
            rows += (
                [_bold([f"without `{_APART}`", *last(others)])]
                if 0 < len(others) < len(group)
                else []
            )
        lines += [*markdown((_card(machine, group), *head), rows), ""]
    return lines


def _bold(cells: Iterable[str]) -> list[str]:
    return [f"**{cell}**" if cell else "" for cell in cells]


def _most(one: Figures) -> float | None:
    base = _value(one, "on-demand", "step_ms")
    return base / one["bound_ms"] if base is not None and one["bound_ms"] else None


def speed_ups(results: Figures) -> list[str]:
    """Over on-demand paging."""
    names = shown(results)

    def row(one: Figures) -> list[str]:
        base, *others = [_value(one, name, "step_ms") for name in names]
        ratios = [_cell(base / other if base and other else None) for other in others]
        return [f"{one['allocated_bytes'] / _GIB:.1f}", _cell(base, 0), *ratios, _cell(_most(one))]

    def last(group: list[Figures]) -> list[str]:
        means = [
            _mean(_value(one, name, "speed_up_over_on_demand") for one in group)
            for name in names[1:]
        ]
        return ["", "", *means, _mean(map(_most, group))]

    return _per_card(results, ["GiB", "on-demand, ms", *names[1:], "bound"], row, last)


def tables(results: Figures) -> list[str]:
    """Memory of the core's tables, MiB, under the published system and ours."""
    names = [name for name in ("deepum-paper", "deepum") if name in results["compared"]]

    def row(one: Figures) -> list[str]:
        found = [_value(one, name, "table_bytes") for name in names]
        return [_cell(value and value / (1 << 20), 1) for value in found]

    return _per_card(results, [f"{name}, MiB" for name in names], row, None)


def faults(results: Figures) -> list[str]:
    """A step."""
    # Plain device memory has none.
    names = [name for name in shown(results) if not name.startswith("lms")]

    def row(one: Figures) -> list[str]:
        return [
            f"{one['policies'][name]['a_step']['faults']:.0f}"
            if _value(one, name, "step_ms")
            else _NONE
            for name in names
        ]

    return _per_card(results, names, row, None)


def energy(results: Figures) -> list[str]:
    """Over on-demand paging's, by the power model."""
    names = shown(results)

    def ratios(one: Figures) -> list[float | None]:
        base, *others = [joules(one, name) for name in names]
        return [other / base if base and other else None for other in others]

    def row(one: Figures) -> list[str]:
        return [_cell(joules(one, "on-demand"), 0), *(_cell(ratio, 3) for ratio in ratios(one))]

    def last(group: list[Figures]) -> list[str]:
        return ["", *(_mean(column, 3) for column in zip(*map(ratios, group), strict=True))]

    watts = [(_POWER[key], f"{results['power'][key]:g}", source) for key, source in SOURCES.items()]
    model = markdown(("power model", "value", "from"), watts, "---")
    return [*model, "", *_per_card(results, ["on-demand, J", *names[1:]], row, last)]


def batches(results: Figures) -> list[str]:
    """The largest, for each host."""
    found = results["batches"]
    hosts = list(dict.fromkeys(one["host_bytes"] for one in found))
    names = list(dict.fromkeys(one["policy"] for one in found))
    answers = {(one["workload"], one["policy"], one["host_bytes"]): one for one in found}
    columns = [(host, name) for host in hosts for name in names]

    def cell(workload: str, host: int, name: str) -> str:
        one = answers.get((workload, name, host))
        return _NONE if one is None else f"{'' if one['exact'] else 'about '}{one['batch']}"

    workloads = dict.fromkeys(one["workload"] for one in found)
    head = [f"{name}, {host / _GIB:g} GiB host" for host, name in columns]
    return [
        *markdown(
            ("model", *head),
            [[f"`{name}`", *(cell(name, *column) for column in columns)] for name in workloads],
        ),
        "",
    ]


def ablation(results: Figures) -> list[str]:
    """Speed-up over on-demand paging with one mechanism more from column to column."""
    found = results["ablation"]
    names = [name for name in found[0]["policies"] if name not in ("on-demand", "unlimited")]

    def row(one: Figures) -> list[str]:
        return [
            *(_cell(_value(one, name, "speed_up_over_on_demand")) for name in names),
            _cell(_most(one)),
        ]

    head = (_card(str(found[0]["machine"]), found), *names, "bound")
    last = [
        "geometric mean",
        *(_mean(_value(one, name, "speed_up_over_on_demand") for one in found) for name in names),
        _mean(map(_most, found)),
    ]
    return [*markdown(head, [*([label(one), *row(one)] for one in found), _bold(last)]), ""]


def degrees(results: Figures) -> list[str]:
    """Speed-up over on-demand paging, and energy over that with N = 8, by prefetch degree."""
    found = results["degrees"]
    known = [
        n
        for n in DEGREES
        if any(degree_name(system, n) in one["policies"] for one in found for system in SYSTEMS)
    ]
    lines = []
    for what, cell in (
        ("speed-up over on-demand", _speed_up_at),
        ("energy over that of N = 8", _energy_at),
    ):
        rows = [
            [f"{label(one)}, {system}", *(cell(one, system, n) for n in known)]
            for one in found
            for system in SYSTEMS
            if degree_name(system, known[0]) in one["policies"]
        ]
        lines += [*markdown((what, *(f"N = {n}" for n in known)), rows), ""]
    return lines


def _speed_up_at(one: Figures, system: str, degree: int) -> str:
    return _cell(_value(one, degree_name(system, degree), "speed_up_over_on_demand"))


def _energy_at(one: Figures, system: str, degree: int) -> str:
    base, there = joules(one, degree_name(system, 8)), joules(one, degree_name(system, degree))
    return _cell(there / base if base and there else None, 3)


def published(results: Figures) -> list[str]:
    """What is published beside what it is here."""
    return [*markdown(("what", "published", "here"), paper_published.rows(results), "---"), ""]


# Title, what of the results it is made of, and how.
SECTIONS: dict[str, tuple[str, tuple[str, ...], Callable[[Figures], list[str]]]] = {
    "published": ("Published, and here", ("simulations", "batches", "degrees"), published),
    "speed-ups": ("Speed-up over on-demand unified memory", ("simulations",), speed_ups),
    "batches": ("Largest batch", ("batches",), batches),
    "tables": ("Memory of the correlation tables", ("simulations",), tables),
    "faults": ("Page faults a training iteration", ("simulations",), faults),
    "ablation": ("Ablation", ("ablation",), ablation),
    "degrees": ("Prefetch degree", ("degrees",), degrees),
    "energy": ("Energy a step, by the power model", ("simulations",), energy),
}
