"""`deepum daemon`: the daemon in the foreground."""

from __future__ import annotations

import os

import click


@click.command("daemon")
@click.option(
    "--detach",
    is_flag=True,
    help=(
        "Go to the background, and end when no program has needed it for DEEPUM_DAEMON_IDLE "
        "seconds."
    ),
)
def command(detach: bool) -> None:
    """Serve the programs of this user until interrupted.

    Programs start a daemon of their own accord; this is for watching one at work.
    """
    if detach:
        from deepum.daemon.__main__ import main

        main()
    from deepum.daemon.run import foreground

    foreground(os.environ)
