"""`deepum log`: look at a recorded session, or run it through the core again."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from deepum.core import BlockRange, Command, Core, CoreSettings, Event, EventLog, commands, events
from deepum.errors import DeepumError, UsageError

EXIT_DIFFERENT = 1


def _read(path: str) -> EventLog:
    try:
        return EventLog.read(Path(path))
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}; name a file written by `deepum run --record`"
        ) from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}; name a file written by `deepum run --record`") from None


def _sound(file: str, log: EventLog) -> Iterator[Event]:
    try:
        yield from events(log.records)
    except ValueError as error:
        raise UsageError(f"{file}: {error}; copy the file anew, it is damaged") from None


def _run(run: BlockRange) -> str:
    return f"{run.slot}:{run.first}x{run.count}"


def _line(record: Event | Command) -> str:
    fields = dict(vars(record))
    kind = fields.pop("kind")
    if isinstance(record, Command):
        return f"    -> {kind} " + " ".join(f"{name}={value}" for name, value in fields.items())
    accesses = {name: fields.pop(name) for name in ("written", "read", "unknown") if name in fields}
    ranges = [f"{name}={'+'.join(map(_run, runs))}" for name, runs in accesses.items() if runs]
    if "range" in fields:
        fields["range"] = _run(fields["range"])
    for name in ("execution_hash", "name"):
        if name in fields:
            fields[name] = f"{fields[name]:016x}"
    return f"{fields.pop('sequence'):>10} {kind} " + " ".join(
        [f"{name}={value}" for name, value in fields.items()] + ranges
    )


def _core(log: EventLog, profile: str | None) -> Core:
    """A core as the session's was at its start. Raises DeepumError."""
    try:
        core = Core(CoreSettings.default(**log.settings["settings"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DeepumError(
            f"log: its settings cannot be used: {error}; record it anew with this version"
        ) from None
    wanted = log.settings.get("profile_sha256")
    if wanted is None:
        return core
    if profile is None:
        raise UsageError("log: the session began with a profile; give it with --profile")
    try:
        data = Path(profile).read_bytes()
        core.load_tables(data)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"profile {profile}: {error}; give the file that the session began with"
        ) from None
    if hashlib.sha256(data).hexdigest() != wanted:
        raise UsageError(
            f"profile {profile}: is not the one that the session began with; give that one"
        )
    return core


@click.group("log")
def command() -> None:
    """Work with an event log, as written by `deepum run --record FILE`."""


@command.command("show")
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option(
    "--commands",
    "with_commands",
    is_flag=True,
    help="Also the commands that the core gives, after the event that caused them.",
)
@click.option("--profile", metavar="FILE", help="The profile that the session began with.")
@click.option("--limit", type=click.IntRange(min=1), help="Only so many events.")
def show(
    file: str, as_json: bool, with_commands: bool, profile: str | None, limit: int | None
) -> None:
    """Print the events of FILE, one a line: UM block ranges as slot:first x count."""
    log = _read(file)
    caused: dict[int, list[Command]] = {}
    if with_commands:
        core = _core(log, profile)
        core.process(log.records)
        for given in core.take_commands():
            caused.setdefault(given.cause, []).append(given)
    if not as_json:
        click.echo(f"# {json.dumps(log.settings)}")
    with contextlib.suppress(BrokenPipeError):
        for number, event in enumerate(_sound(file, log)):
            if limit is not None and number >= limit:
                break
            records: list[Event | Command] = [event, *caused.pop(event.sequence, [])]
            for record in records:
                click.echo(json.dumps(asdict(record)) if as_json else _line(record))


@command.command("replay")
@click.argument("file")
@click.option("--profile", metavar="FILE", help="The profile that the session began with.")
def replay(file: str, profile: str | None) -> int:
    """Run the events of FILE through the core and compare its commands with the session's.

    Exit codes: 0 the same, 1 different, 2 unusable file.
    """
    log = _read(file)
    if log.settings.get("planned"):
        raise DeepumError(
            f"{file}: the session had --policy planned, and what was planned when is in no log; "
            f"record it with --policy correlation"
        )
    core = _core(log, profile)
    core.process(log.records)
    given = core.take_command_bytes()
    count = sum(1 for _ in commands(given))
    recorded, digest = log.settings.get("commands"), log.settings.get("commands_sha256")
    if digest is None:
        raise DeepumError(
            f"{file}: the session did not end in order, so its commands are unknown; {count} "
            f"are given now"
        )
    if len(log.records) != log.settings.get("events_bytes"):
        raise DeepumError(f"{file}: events are missing at its end; copy the whole file")
    if hashlib.sha256(given).hexdigest() != digest:
        click.echo(f"different: {count} commands now, {recorded} in the session", err=True)
        return EXIT_DIFFERENT
    click.echo(f"the same {count} commands, from {core.statistics().events} events")
    return 0
