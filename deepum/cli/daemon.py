"""`deepum daemon`: the daemon in the foreground, and what becomes of the one that runs."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict

import click


@click.group("daemon", invoke_without_command=True)
@click.option(
    "--detach",
    is_flag=True,
    help=(
        "Go to the background, and end when no program has needed it for DEEPUM_DAEMON_IDLE "
        "seconds."
    ),
)
@click.pass_context
def command(context: click.Context, detach: bool) -> None:
    """Serve the programs of this user until interrupted.

    Programs start a daemon of their own accord; this is for watching one at work.
    """
    if context.invoked_subcommand is not None:
        return
    if detach:
        from deepum.daemon.__main__ import main

        main()
    from deepum.daemon.run import foreground

    foreground(os.environ)


@command.command("status")
@click.option("--json", "as_json", is_flag=True, help="The same for programs (docs/watching.md).")
def status(as_json: bool) -> None:
    """Tell of the daemon that runs: process, version, socket, sessions, memory.

    \b
    Exit codes: 0 one runs; 1 none does.
    """
    from deepum.client.channel import Channel
    from deepum.client.table import duration
    from deepum.sizes import size

    with Channel(os.environ) as channel:
        figures = channel.daemon()
    if as_json:
        click.echo(json.dumps({"version": 1, "daemon": asdict(figures)}, indent=2))
        return
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(figures.began_at))
    metrics = (
        f"http://127.0.0.1:{figures.metrics_port}/metrics"
        if figures.metrics_port is not None
        else "none (DEEPUM_METRICS)"
    )
    ends = f"{figures.idle_s} s after the last one" if figures.idle_s else "when it is asked to"
    for name, value in (
        ("process", f"{figures.pid}, since {began} ({duration(figures.uptime_s)})"),
        ("version", f"{figures.version} of {figures.package}"),
        ("socket", figures.socket),
        ("programs", f"{figures.sessions} now, {figures.served} in all, {figures.refused} refused"),
        ("memory", size(figures.memory_bytes)),
        ("metrics", metrics),
        ("ends", ends),
    ):
        click.echo(f"{name:<9} {value}")


@command.command("stop")
def stop() -> None:
    """End the daemon that runs, in order. Programs that it serves go on as plain unified memory.

    \b
    Exit codes: 0 it ends; 1 none runs.
    """
    from deepum.client.channel import Channel

    with Channel(os.environ) as channel:
        pid = channel.daemon().pid
        channel.stop()
    click.echo(f"{pid} ends")
