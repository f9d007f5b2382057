"""`deepum doctor`: what works here, what does not, and what to do about it."""

from __future__ import annotations

import json
import os

import click

from deepum.configuration.settings import BY_NAME
from deepum.device import Device, choose
from deepum.errors import EXIT_FINDINGS


def _device(wanted: str) -> Device:
    # Without a GPU that works, that is what is to be found out; `run` would take the simulated one.
    return Device(None) if wanted in ("auto", "cuda") else choose(wanted)


@click.command("doctor")
@click.option(
    "--device",
    default=None,
    metavar="cuda|sim|sim:MACHINE",
    help="What to examine.  [DEEPUM_DEVICE; default: cuda]",
)
@click.option("--json", "as_json", is_flag=True, help="The same for programs (docs/doctor.md).")
def command(device: str | None, as_json: bool) -> int:
    """Examine GPU, driver, host, container and PyTorch: ok, warn or fail, with the remedy.

    \b
    Exit codes: 0 nothing failed; 1 something did, as told; 2 unusable arguments.
    """
    from deepum.doctor.examine import examine  # only here: it is not needed for --help

    wanted = device or os.environ.get(BY_NAME["device"].variable) or "cuda"
    checks = []
    for check in examine(_device(wanted), os.environ):
        checks.append(check)
        if not as_json:
            click.echo(check.line)
    failed = any(check.level == "fail" for check in checks)
    if as_json:
        document = {
            "version": 1,
            "device": wanted,
            "failed": failed,
            "checks": [check.as_dict() for check in checks],
        }
        click.echo(json.dumps(document, indent=2))
    return EXIT_FINDINGS if failed else 0
