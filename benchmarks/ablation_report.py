"""An ablation's figures for people: tables, a plot, and the page docs/research/figures.md with
both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ablation_cases import (
    DEGREES,
    MECHANISMS,
    ON_DEMAND,
    ROWS,
    SWEPT,
    SYSTEMS,
    UNLIMITED,
    degree_row,
)
from ablation_results import Results
from main_job import JobError

ALIKE = 0.01  # part by which rows of a case that fits its card may differ


def _row(name: str, one: dict[str, Any]) -> str:
    counts = one["a_step"]
    moved = (
        f"{counts['faults']:>9.0f}{counts['bytes_h2d'] / 2**30:>8.2f}"
        f"{counts['bytes_d2h'] / 2**30:>8.2f}"
        if counts is not None
        else f"{'?':>9}{'?':>8}{'?':>8}"
    )
    ratios = "".join(
        f"{one[name]:>10.2f}" if one[name] is not None else f"{'?':>10}"
        for name in ("speed_up", "of_bound")
    )
    return f"  {name:<16}{one['step_ms']:>10.1f}{moved}{ratios}"


def fits(record: dict[str, Any]) -> bool:
    """Whether all rows take the same time and nothing moves, since the model fits the card."""
    rows = list(record["rows"].values())
    footprint = record["footprint_bytes"]
    times = [one["step_ms"] for one in rows]
    still = all(
        one["a_step"] is not None
        and max(one["a_step"]["bytes_h2d"], one["a_step"]["bytes_d2h"]) < 2**20
        for one in rows
    )
    return (
        footprint is not None
        and footprint <= record["memory_bytes"]
        and still
        and max(times) <= (1 + ALIKE) * min(times)
    )


def table(record: dict[str, Any]) -> str:
    """Of one case of `mechanisms`."""
    rows, footprint, best = record["rows"], record["footprint_bytes"], record["bound_ms"]
    lines = [
        f"{record['case']}: "
        + (
            f"footprint {footprint / 2**30:.1f} of {record['memory_bytes'] / 2**30:g} GiB"
            if footprint
            else "?"
        )
    ]
    if fits(record):
        lines[0] += (
            f"; it fits the card: all rows alike, {rows[ON_DEMAND]['step_ms']:.1f} ms a step, "
            f"and nothing moves"
        )
    else:
        lines[0] += f"; lower bound {best:.1f} ms a step" if best else ""
        lines.append(
            f"  "
            f"{'':<16}{'ms':>10}{'faults':>9}{'GiB in':>8}{'out':>8}"
            f"{'speed-up':>10}{'of bound':>10}"
        )
        lines += [_row(name, rows[name]) for name in (*ROWS, UNLIMITED) if name in rows]
    lines += [f"  {name:<16}failed: {cause}" for name, cause in record["failed"].items()]
    return "\n".join(lines)


def curves(record: dict[str, Any]) -> dict[str, list[tuple[int, float]]]:
    """Of one case of `degrees`: for each system, the speed-up over on-demand paging by degree."""
    rows = record["rows"]
    found = {
        system: [
            (n, rows[degree_row(system, n)]["speed_up"])
            for n in DEGREES
            if degree_row(system, n) in rows
        ]
        for system in SYSTEMS
    }
    return {
        system: points for system, points in found.items() if points and points[0][1] is not None
    }


def sweep_table(record: dict[str, Any]) -> str:
    """Of one case of `degrees`."""
    width = max(map(len, SYSTEMS)) + 2
    lines = [
        f"{record['case']}: speed-up over on-demand",
        f"  {'N =':<{width}}" + "".join(f"{n:>6}" for n in DEGREES),
    ]
    for system, points in curves(record).items():
        known = dict(points)
        lines.append(
            f"  {system:<{width}}"
            + "".join(f"{known[n]:>6.2f}" if n in known else f"{'?':>6}" for n in DEGREES)
        )
    lines += [f"  {name:<{width}}failed: {cause}" for name, cause in record["failed"].items()]
    return "\n".join(lines)


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """The curves, a panel for each case, as what the file's ending says. Raises JobError without
    matplotlib.
    """
    try:
        import matplotlib  # type: ignore[import-not-found, unused-ignore]

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise JobError(
            "--plot: matplotlib is missing; install it with `pip install deepum[figures]`"
        ) from None
    # The same figures give the same file: text as text, no date, ids that are not drawn by chance.
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "deepum"})
    figure, panels = plt.subplots(
        1, len(records), figsize=(5 * len(records), 4), layout="constrained", squeeze=False
    )
    for axes, record in zip(panels[0], records, strict=True):
        found = curves(record)
        for (system, points), marker in zip(found.items(), "osd^v", strict=False):
            axes.plot(*zip(*points, strict=True), marker=marker, label=system)
        axes.set_xscale("log", base=2)
        axes.set_title(record["case"])
        axes.set_xlabel("prefetch degree N (launches)")
        axes.set_ylabel("speed-up over on-demand paging")
        axes.set_xticks(DEGREES, [str(n) for n in DEGREES])
        axes.set_ylim(0, 1.1 * max(speed_up for points in found.values() for _, speed_up in points))
        axes.legend()
    figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def fill(text: str, what: str, body: str) -> str:
    """The page with that between its marks `<!-- ablation: WHAT -->` and `<!-- end -->`. Raises
    JobError without them.
    """
    before, mark, rest = text.partition(f"<!-- ablation: {what} -->\n")
    _, end, after = rest.partition("<!-- end -->")
    if not mark or not end:
        raise JobError(
            f"the page: no place is marked for {what}; put `<!-- ablation: {what} -->` and "
            f"`<!-- end -->` there"
        )
    return before + mark + body + end + after


def page(results: Results, text: str) -> str:
    """The page with the tables of these results. Raises JobError."""
    for what, cases, render in (("mechanisms", MECHANISMS, table), ("degrees", SWEPT, sweep_table)):
        parts = [
            render(record)
            for case in cases
            if (record := results.cases.get(f"{what}: {case.name}")) is not None
        ]
        text = fill(text, what, "".join(f"```text\n{part}\n```\n\n" for part in parts))
    return text
