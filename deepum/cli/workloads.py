"""`deepum workloads`: list the named workloads."""

from __future__ import annotations

import json

import click

from deepum.workloads import WORKLOADS


@click.command("workloads")
@click.option("--json", "as_json", is_flag=True, help="As JSON, one object.")
def command(as_json: bool) -> None:
    """List the workloads that `deepum simulate` and `deepum record` know by name, with their
    numbers.

    Numbers are changed behind the name: gpt2-xl:batch=3,seq=512.
    """
    if as_json:
        document = {
            one.name: {
                "description": one.description,
                "numbers": dict(one.numbers),
                "paper": one.paper,
                "steps_differ": one.differs,
            }
            for one in WORKLOADS.values()
        }
        click.echo(json.dumps(document, indent=1))
        return
    width = max(map(len, WORKLOADS))
    for one in WORKLOADS.values():
        click.echo(
            f"{one.name:<{width}}  {one.description}{' (DeepUM paper)' if one.paper else ''}"
        )
        click.echo(
            f"{'':<{width}}  {','.join(f'{name}={number}' for name, number in one.numbers.items())}"
        )
