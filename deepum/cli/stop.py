"""`deepum stop`: ends programs, or their serving."""

from __future__ import annotations

import os

import click

from deepum.errors import UsageError


@click.command("stop")
@click.argument("pids", metavar="PID...", nargs=-1, type=click.IntRange(min=1))
@click.option("--all", "every", is_flag=True, help="All programs that the daemon serves.")
@click.option(
    "--detach",
    is_flag=True,
    help="Only the serving ends: the program goes on as plain unified memory.",
)
def command(pids: tuple[int, ...], every: bool, detach: bool) -> None:
    """Ask programs that the daemon serves to end (SIGTERM). `deepum ps` names them.

    \b
    Exit codes: 0 all were asked; 1 one of them is not served; 2 unusable arguments.
    """
    from deepum.client.channel import Channel
    from deepum.client.choosing import choose

    if bool(pids) == every:
        raise UsageError("stop: names no program; give PIDs that `deepum ps` lists, or --all")
    with Channel(os.environ) as channel:
        for session in choose(channel.sessions(), None if every else pids):
            channel.end(session.session, detach=detach)
            what = "goes on without deepum" if detach else "was asked to end"
            click.echo(f"{session.pid} {what}")
