"""Builds the site, strictly: a broken link or anchor, a page in no menu, or an asset on another
host is an error.

Usage: python build.py FOLDER builds into FOLDER, with the staged pages in FOLDER-source beside it;
python build.py --tables writes the generated tables into the pages of docs/. Exit status 1 where
the site has faults, which are printed, 2 where a page cannot be made.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import assets
import click
import staging

from deepum.errors import EXIT_USAGE, DeepumError


def _by_sphinx(source: Path, target: Path) -> list[str]:
    """Builds the staged pages; gives what Sphinx warns of, a line each."""
    command = [sys.executable, "-m", "sphinx", "-q", "--fail-on-warning", "--builder", "html"]
    command += ["--conf-dir", str(staging.SITE), "--doctree-dir", f"{target}-doctrees"]
    done = subprocess.run(
        [*command, str(source), str(target)], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if line.strip()]
    if done.returncode != 0 and not said:
        return [f"Sphinx ended with {done.returncode}"]
    return [line.replace(f"{source.resolve()}/", "") for line in said]


def build(target: Path) -> list[str]:
    """Builds the site into `target`, which is emptied first; gives its faults, a line each. Raises
    DeepumError where a page cannot be made.
    """
    source = target.with_name(f"{target.name}-source")
    for folder in (target, source, target.with_name(f"{target.name}-doctrees")):
        shutil.rmtree(folder, ignore_errors=True)
    staging.stage(source)
    return [*_by_sphinx(source, target), *assets.fetched_from_elsewhere(target)]


def main() -> int:
    """Runs the command line and gives its exit status."""
    if len(sys.argv) != 2:
        click.echo("deepum: error: usage: build.py FOLDER|--tables", err=True)
        return EXIT_USAGE
    try:
        if sys.argv[1] == "--tables":
            staging.write_tables()
            return 0
        target = Path(sys.argv[1]).resolve()
        faults = build(target)
    except DeepumError as error:
        click.echo(error.line, err=True)
        return EXIT_USAGE
    for fault in faults:
        click.echo(fault, err=True)
    if faults:
        click.echo(
            "deepum: error: the site: has the faults above; a page in no menu wants a line in "
            "docs/index.md",
            err=True,
        )
        return 1
    click.echo(target / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
