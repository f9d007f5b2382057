"""`deepum set`: changes settings of programs while they run."""

from __future__ import annotations

import os

import click

from deepum.configuration.settings import BY_NAME
from deepum.errors import UsageError


def _budget(text: str | None) -> int | None:
    """Raises UsageError."""
    if text is None:
        return None
    if text == "own":
        return 0
    value = BY_NAME["gpu_memory"].parse(text, "--budget")
    if not isinstance(value, int):
        raise UsageError("--budget: takes one size, for each GPU; write one like 8GiB, or own")
    return value


@click.command("set")
@click.argument("pids", metavar="PID...", nargs=-1, required=True, type=click.IntRange(min=1))
@click.option(
    "--budget",
    metavar="SIZE|own",
    help="GPU memory that managed memory may occupy, of each GPU; own: as the program began.",
)
@click.option(
    "--degree", metavar="N", type=int, help="Launches that prefetching may run ahead; 0: none."
)
@click.option(
    "--policy",
    metavar="on-demand|OWN",
    help="on-demand: no more prefetching and pre-eviction; or the policy that it began with.",
)
def command(
    pids: tuple[int, ...], budget: str | None, degree: int | None, policy: str | None
) -> None:
    """Change settings of programs while they run. `deepum ps` names them.

    \b
    Exit codes: 0 changed; 1 one of the programs is not served; 2 unusable arguments.
    """
    from deepum.client.channel import Channel
    from deepum.client.choosing import choose
    from deepum.daemon.steering import Changes

    changes = Changes(_budget(budget), degree, policy)
    changes.check()
    with Channel(os.environ) as channel:
        sessions = choose(channel.sessions(), pids)
        for session in sessions:
            changes.check_policy(session.own_policy)
        for session in sessions:
            channel.set(session.session, changes)
