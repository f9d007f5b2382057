"""`deepum top`: all programs that are served, live."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time

import click

from deepum.errors import DeepumError, UsageError


def _screen(seconds: float) -> None:
    """Raises DeepumError without textual."""
    try:
        from deepum.top.app import TopApp
    except ModuleNotFoundError as error:
        if error.name not in ("textual", "rich"):
            raise
        raise DeepumError(
            "top: needs textual; install it with `pip install deepum[top]`, or use --once"
        ) from None
    from deepum.top.source import DaemonSource

    source = DaemonSource(os.environ)
    try:
        TopApp(source, seconds).run()
    finally:
        source.close()


@click.command("top")
@click.option("--once", is_flag=True, help="Look once, and print it as text.")
@click.option("--json", "as_json", is_flag=True, help="The same, as JSON (docs/watching.md).")
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 3600),
    default=1.0,
    show_default=True,
    help="Between two looks.",
)
def command(once: bool, as_json: bool, seconds: float) -> None:
    """Watch the programs that the daemon serves, and steer them: ? shows the keys.

    The screen needs the extra `top`; --once and --json do not.
    """
    if not once and not as_json:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("top: is on no terminal; use --once or --json")
        _screen(seconds)
        return
    from deepum.client.looking import look
    from deepum.client.table import document

    sessions, rates = look(os.environ)
    if as_json:
        listing = {"version": 1, "sessions": document(sessions, rates)}
        click.echo(json.dumps(listing, indent=2))
        return
    from deepum.top.history import Course, Seen
    from deepum.top.panel import page

    seen = [Seen(each, rates[each.session], Course()) for each in sessions]
    width = shutil.get_terminal_size((120, 24)).columns
    click.echo("\n".join(page(seen, width, time.time())))
