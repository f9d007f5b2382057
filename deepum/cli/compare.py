"""`deepum compare`: a program on demand, under deepum and with unlimited memory."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from deepum.cli.groups import Group
from deepum.cli.output import aligned, write, write_json
from deepum.cli.run_options import RunCommand, groups_without, run_options, settings_of
from deepum.errors import EXIT_INTERRUPTED, DeepumError
from deepum.launcher import child, compare
from deepum.launcher.execute import say
from deepum.launcher.launch import writable
from deepum.statistics.comparison import Comparison, compared, conclusion, table

_VERSION = 1  # of --json
GROUPS = (
    Group(
        "What is compared",
        "The runs, and where their figures go beside the table.",
        ("policies", "output", "json_file"),
    ),
    *groups_without(compare.OWN),
)


@click.command(
    "compare", cls=RunCommand, groups=GROUPS, context_settings={"allow_interspersed_args": False}
)
@click.option(
    "--policies",
    metavar="P,...",
    help=(
        f"Which runs, in this order: of {', '.join(compare.POLICIES)}.  [default: "
        f"{','.join(compare.DEFAULT)}; on a real GPU the first two]"
    ),
)
@click.option(
    "-o", "--output", metavar="FILE.html", help="Also a page with charts, as of `deepum report`."
)
@click.option("--json", "json_file", metavar="FILE", help="Also all figures, as JSON.")
@run_options(without=compare.OWN)
def command(
    program: tuple[str, ...],
    policies: str | None,
    output: str | None,
    json_file: str | None,
    config: str | None,
    tune: tuple[str, ...],
    **options: str | None,
) -> int:
    """Run COMMAND on demand, under deepum and, on a simulated GPU, with unlimited memory.

    The runs are one after another, with the same command; the table of what they came to is printed
    at the end. The exit code is that of the first run that fails, at which the comparison ends.
    """
    names = compare.policies_of(policies)
    if output is not None:
        _drawing()
    for name, what in ((output, "--output"), (json_file, "--json")):
        if name is not None:
            writable(Path(name), what)
    values = settings_of(options, tune, config)
    planned = compare.plans(names, program, values, os.environ)
    runs = compare.run_all(planned, say if values["log"] != 0 else _silent)
    used = [(name, report) for name, report in runs.ended if report["processes"]]
    if used:
        comparison = compared(used)
        click.echo("\n".join(_lines(comparison)))
        if json_file is not None:
            write_json(json_file, _document(program, comparison, used))
        if output is not None:
            _draw(output, used)
            say(f"charts: {output}")
    elif runs.ended:
        say("the program used no GPU: there is nothing to compare")
    if runs.failed is None:
        return 0
    name, status = runs.failed
    left = [other for other, _ in planned[len(runs.ended) + 1 :]]
    rest = f"; not run: {', '.join(left)}" if left else ""
    if status is None:
        say(f"run {name}: was interrupted{rest}")
        return EXIT_INTERRUPTED
    say(f"run {name}: the program {child.how_it_ended(status)}{rest}")
    return child.end_like(status)


def _silent(_text: str) -> None:
    """Instead of `say`, with --log 0."""


def _lines(comparison: Comparison) -> list[str]:
    head, rows = table(comparison)
    lines = [*aligned([head, *rows]), "", *conclusion(comparison), *comparison.remarks]
    return [
        *lines,
        *(f"try: {text}" for text in comparison.outcomes[comparison.subject].advice[:2]),
    ]


def _document(
    program: tuple[str, ...], comparison: Comparison, used: list[tuple[str, dict[str, Any]]]
) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "command": list(program),
        "per": comparison.per,
        "clock": comparison.clock,
        "remarks": list(comparison.remarks),
        "rows": [asdict(row) for row in comparison.rows],
        "runs": [{"name": name, "statistics": report} for name, report in used],
    }


def _drawing() -> None:
    """Raises DeepumError where the page could not be made: said before the runs, not after them."""
    try:
        from deepum.report.page import library
    except ModuleNotFoundError as error:
        raise DeepumError(
            f"--output: needs {error.name}; install it with `pip install deepum[report]`"
        ) from None
    library()


def _draw(name: str, used: list[tuple[str, dict[str, Any]]]) -> None:
    from deepum.report.inputs import Inputs
    from deepum.report.write import report

    write(name, report(Inputs(statistics=used), [], "deepum compare").html().encode())
