"""A trace as tables for analysis: Parquet, by pyarrow, which pandas, Polars and DuckDB read.

Two tables, as a trace is two files: events, one row each, with the columns of all kinds (null where
a kind has no such field); and work, one row each, with the memory that it touches as a list.
Integers keep the width and sign of the records' (hashes are unsigned).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deepum._core import ffi
from deepum.core import BlockRange, Event, events
from deepum.errors import DeepumError
from deepum.trace import Trace, work

VERSION = 1
_SUFFIX = ".work.parquet"
_RANGES = ("written", "read", "unknown")
_UNSIGNED: tuple[str, ...] = (
    *("free_bytes", "reserve_bytes", "completed", "begun", "completed_at"),
    *(
        "sequence",
        "execution_hash",
        "name",
        "bytes",
        "offset",
        "first_offset",
        "allocated_bytes",
        "reserved_bytes",
    ),
    *("total_bytes", "capacity_bytes", "used_bytes", "budget_bytes", "faults", "command", "events"),
)
_SIGNED = ("location",)
_SMALL = ("flags", "device", "slot", "generation", "stream", "advice", "status", "error")
_WORK_KINDS = {
    number: name.removeprefix("DEEPUM_WORK_").lower()
    for number, name in ffi.typeof("enum deepum_work_kind").elements.items()
}


def _library() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DeepumError(
            "pyarrow: is missing, and writes Parquet; install it with `pip install deepum[columns]`"
        ) from None
    return pyarrow, pyarrow.parquet


def work_path(path: Path) -> Path:
    """Where the work of events in that file goes: FILE.work.parquet beside FILE.parquet."""
    return path.with_name(path.name.removesuffix(".parquet") + _SUFFIX)


def event_table(trace: Trace) -> Any:
    """The events as a pyarrow table. Raises DeepumError without pyarrow, ValueError for a damaged
    trace.
    """
    arrow, _ = _library()
    run = arrow.struct(
        [("slot", arrow.uint32()), ("first", arrow.uint32()), ("count", arrow.uint32())]
    )
    fields = [("kind", arrow.string())]
    fields += [(name, arrow.uint64()) for name in _UNSIGNED]
    fields += [(name, arrow.int32()) for name in _SIGNED]
    fields += [(name, arrow.uint32()) for name in _SMALL]
    fields += [(name, arrow.list_(run)) for name in _RANGES] + [("range", run)]
    fields += [("declared", arrow.list_(arrow.uint32()))]  # places in `unknown`
    rows = (_event_row(event) for event in events(trace.events))
    return _table(arrow, fields, rows, {"workload": trace.name})


def _event_row(event: Event) -> dict[str, Any]:
    row = dict(vars(event))
    for name in _RANGES:
        if name in row:
            row[name] = [_run(one) for one in row[name]]
    if "range" in row:
        row["range"] = _run(row["range"])
    return row


def _run(one: BlockRange) -> dict[str, int]:
    return {"slot": one.slot, "first": one.first, "count": one.count}


def work_table(trace: Trace) -> Any:
    """The work likewise; empty where it is not known."""
    arrow, _ = _library()
    access = [
        ("slot", arrow.uint32()),
        ("flags", arrow.uint32()),
        ("offset", arrow.uint64()),
        ("bytes", arrow.uint64()),
    ]
    fields = [("kind", arrow.string()), ("sequence", arrow.uint64())]
    fields += [(name, arrow.uint32()) for name in ("flags", "stream", "event")] + [
        ("location", arrow.int32())
    ]
    fields += [(name, arrow.float64()) for name in ("ns", "flops", "peak_fraction")]
    fields += [(name, arrow.uint64()) for name in ("tiles", "device_bytes")] + [
        ("accesses", arrow.list_(arrow.struct(access)))
    ]
    names = [name for name, _ in fields[1:-1]]
    rows = (
        {name: getattr(one, name) for name in names}
        | {
            "kind": _WORK_KINDS.get(one.kind, f"kind_{one.kind}"),
            "accesses": [
                {"slot": a.slot, "flags": a.flags, "offset": a.offset, "bytes": a.bytes}
                for a in one.accesses
            ],
        }
        for one in work.decode(trace.work)
    )
    return _table(arrow, fields, rows, {"workload": trace.name})


def _table(
    arrow: Any,
    fields: list[tuple[str, Any]],
    rows: Iterable[Mapping[str, Any]],
    metadata: dict[str, str],
) -> Any:
    columns: dict[str, list[Any]] = {name: [] for name, _ in fields}
    for row in rows:
        for name, column in columns.items():
            column.append(row.get(name))
    arrays = [arrow.array(columns[name], kind) for name, kind in fields]
    arrays[0] = arrays[0].dictionary_encode()  # the kind
    table = arrow.Table.from_arrays(arrays, names=list(columns))
    return table.replace_schema_metadata(metadata | {"deepum_columns": str(VERSION)})


def write(trace: Trace, path: Path) -> list[tuple[Path, int]]:
    """Writes FILE.parquet, and FILE.work.parquet where the work is known; the files and how many
    rows each has.

    Raises DeepumError without pyarrow, ValueError for a damaged trace, OSError.
    """
    _, parquet = _library()
    tables = [(path, event_table(trace))] + (
        [(work_path(path), work_table(trace))] if trace.work else []
    )
    for where, table in tables:
        parquet.write_table(table, where, compression="zstd")
    return [(where, int(table.num_rows)) for where, table in tables]
