"""`deepum ps`: the programs that are served now."""

from __future__ import annotations

import json
import os
import time

import click


@click.command("ps")
@click.option("--json", "as_json", is_flag=True, help="All figures, as JSON (docs/watching.md).")
def command(as_json: bool) -> None:
    """List the programs that the daemon serves now: memory, steps, and what the link moves.

    Rates are of half a second; `deepum top` goes on looking.
    """
    from deepum.client.looking import look
    from deepum.client.table import NOTE, document, lines, row

    sessions, rates = look(os.environ)
    if as_json:
        listing = {"version": 1, "sessions": document(sessions, rates)}
        click.echo(json.dumps(listing, indent=2))
        return
    now = time.time()
    rows = [row(each, rates[each.session], now) for each in sessions]
    click.echo("\n".join(lines(rows)))
    if any(each.virtual for each in sessions):
        click.echo(NOTE, err=True)
