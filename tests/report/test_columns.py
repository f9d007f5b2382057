"""`deepum trace convert`: the tables have all that the records have."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deepum._core import lib
from required import needed
from small import MIB, training

from deepum.core import BlockRange, Event, events, records
from deepum.simulate.workload import load
from deepum.trace import Trace, TraceWriter, columns, g10, work

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
arrow = needed("pyarrow", "columns")
CLASSES = (
    *(
        records.Device,
        records.Usage,
        records.Allocate,
        records.Free,
        records.Block,
        records.Execute,
        records.Stream,
        records.Program,
    ),
    *(records.Fault, records.Moved, records.Lost, records.Progress, records.FreeMemory),
)


def everything() -> Trace:
    """An event of each kind, at the ends of what its fields can hold."""
    most = (1 << 64) - 1
    writer = TraceWriter()
    writer.device(64)
    writer.capacity(63, device=15)
    writer.allocate(0, 4, name=most, generation=(1 << 32) - 1, flags=1)
    writer.block(True, 0, 0, MIB, MIB, 2 * MIB, generation=(1 << 32) - 1)
    far = BlockRange((1 << 20) - 1, (1 << 24) - 1, (1 << 20) - 1)
    writer.execute(
        most, [far], 62, [BlockRange(0, 0, 1), far], [BlockRange(1, 2, 3)], flags=8, declared=[0]
    )
    writer.execute(0, [])
    writer.fault(far, most)
    writer.program_prefetch(BlockRange(0, 1, 2), -1)
    writer.program_advise(BlockRange(0, 1, 2), -1, 6)
    writer.moved(most, 3, 700)
    writer.usage(most, most - 1)
    writer.lost(9)
    writer.synchronise()
    writer.block(False, 0, 0, MIB, 0, 2 * MIB, generation=(1 << 32) - 1)
    writer.record(lib.DEEPUM_EVENT_STREAM_DESTROYED, bytes(8))
    writer.free(0, generation=(1 << 32) - 1)
    made = writer.trace("everything")
    access = work.Access((1 << 32) - 1, 31, most, most)
    items = [
        work.Work(
            lib.DEEPUM_WORK_LAUNCH,
            most,
            1,
            (1 << 32) - 1,
            3,
            -1,
            1.5,
            2e30,
            0.25,
            most,
            most,
            (access, access),
        ),
        work.Work(lib.DEEPUM_WORK_SPEND, 1, ns=0.1),
    ]
    return Trace(made.name, made.events, b"".join(one.encode() for one in items))


def event_of(row: dict[str, Any]) -> Event:
    """The event that a row is of: the class that has these fields."""

    def run(values: dict[str, int]) -> BlockRange:
        return BlockRange(values["slot"], values["first"], values["count"])

    fields = {name: value for name, value in row.items() if value is not None}
    for name in ("written", "read", "unknown"):
        if name in fields:
            fields[name] = tuple(run(one) for one in fields[name])
    if "declared" in fields:
        fields["declared"] = tuple(fields["declared"])
    if "range" in fields:
        fields["range"] = run(fields["range"])
    for cls in (*CLASSES, Event):
        if set(cls.__dataclass_fields__) == set(fields):
            return cls(**fields)
    raise AssertionError(f"no event has the fields {sorted(fields)}")


def work_of(row: dict[str, Any]) -> work.Work:
    numbers = {name: number for number, name in columns._WORK_KINDS.items()}
    return work.Work(
        **{
            **row,
            "kind": numbers[row["kind"]],
            "accesses": tuple(work.Access(**one) for one in row["accesses"]),
        }
    )


def same(trace: Trace, table: Any, worked: Any) -> None:
    assert [event_of(row) for row in table.to_pylist()] == list(events(trace.events))
    assert b"".join(work_of(row).encode() for row in worked.to_pylist()) == trace.work


def test_every_kind_of_event_comes_back_as_it_was() -> None:
    trace = everything()
    same(trace, columns.event_table(trace), columns.work_table(trace))


def test_a_workload_comes_back_from_its_files(tmp_path: Path) -> None:
    from pyarrow import parquet

    trace = g10.trace(training(tmp_path / "w"), 2)
    written = columns.write(trace, tmp_path / "w.parquet")
    assert [path.name for path, _ in written] == ["w.parquet", "w.work.parquet"]
    tables = [parquet.read_table(path) for path, _ in written]
    assert [table.num_rows for table in tables] == [rows for _, rows in written]
    same(trace, *tables)
    assert all(
        table.schema.metadata[b"deepum_columns"] == str(columns.VERSION).encode()
        for table in tables
    )
    assert tables[0].schema.metadata[b"workload"] == b"w"


def test_a_recorded_run_comes_back_from_its_files(
    deepum: Deepum, recorded_run: Path, tmp_path: Path
) -> None:
    from pyarrow import parquet

    result = deepum(
        "trace", "convert", recorded_run / "run.log", "--output", tmp_path / "run.parquet"
    )
    assert result.returncode == 0, result.stderr
    tables = [parquet.read_table(tmp_path / name) for name in ("run.parquet", "run.work.parquet")]
    same(load(str(recorded_run / "run.log"), None, False).trace, *tables)
    assert result.stdout.splitlines() == [
        f"{tmp_path / name}: {table.num_rows} rows"
        for name, table in zip(("run.parquet", "run.work.parquet"), tables, strict=True)
    ]


def test_columns_have_a_type_whether_or_not_a_trace_has_such_events() -> None:
    writer = TraceWriter()
    writer.device(64)
    bare = Trace("bare", writer.take())
    assert columns.event_table(bare).schema.equals(columns.event_table(everything()).schema)
    assert columns.work_table(bare).schema.equals(columns.work_table(everything()).schema)


def test_a_trace_without_work_is_one_file(tmp_path: Path) -> None:
    written = columns.write(Trace("bare", everything().events), tmp_path / "bare.parquet")
    assert (
        [path.name for path, _ in written]
        == ["bare.parquet"]
        == [path.name for path in tmp_path.iterdir()]
    )


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        (("nowhere", "--output", "x.parquet"), 2, "nowhere: No such file or directory; "),
        (("training/kernels.csv", "--output", "x.parquet"), 2, "not an event log; record it anew"),
        (("training", "--output", "no/x.parquet"), 125, "no/x.parquet: "),
    ],
)
def test_what_cannot_be_used_is_one_line(
    deepum: Deepum, workload: Path, arguments: tuple[str, ...], code: int, cause: str
) -> None:
    result = deepum("trace", "convert", *arguments, cwd=workload.parent)
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (code, "", 1)
    assert result.stderr.startswith("deepum: error: ") and cause in result.stderr
