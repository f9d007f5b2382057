"""Files of buffers: what is read, written and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepum.arena import Buffer
from deepum.arena.buffers import parse, read, table
from deepum.errors import UsageError


def test_buffers_are_read_in_any_order_of_columns() -> None:
    assert parse("id,lower,upper,size\na,0,3,16\n\nb,2,5,8\n") == [
        Buffer("a", 0, 3, 16),
        Buffer("b", 2, 5, 8),
    ]
    assert parse("size,alignment,id,upper,lower\n16,64,a,3,0\n") == [Buffer("a", 0, 3, 16, 64)]
    assert parse("id,lower,upper,size\n") == []


def test_what_is_written_is_read_again() -> None:
    plain = [Buffer("a, b", 0, 3, 16), Buffer("c", 2, 5, 8)]
    assert table(plain, [0, 16]).splitlines() == [
        "id,lower,upper,size,offset",
        '"a, b",0,3,16,0',
        "c,2,5,8,16",
    ]
    assert parse(table(plain, [0, 16])) == plain
    aligned = [Buffer("a", 0, 3, 16, 64)]
    assert parse(table(aligned, [128])) == aligned


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; write id,lower,upper,size"),
        ("id,lower,upper\n", "line 1: has 0 columns 'size'"),
        ("id,lower,upper,size,colour\n", "line 1: 'colour' is no column"),
        ("id,id,lower,upper,size\n", "line 1: has 2 columns 'id'"),
        ("id,lower,upper,size,offset,offset\n", "line 1: has 2 columns 'offset'"),
        ("id,lower,upper,size\na,0,3\n", "line 2: has 3 cells; write 4"),
        ("id,lower,upper,size\na,0,3,4\nb,0,x,4\n", "line 3: upper 'x' is no whole number"),
        ("id,lower,upper,size\na,-1,3,4\n", "line 2: lower '-1'"),
        ("id,lower,upper,size\na,0,3,1.5\n", "line 2: size '1.5'"),
        ("id,lower,upper,size\na,0,3,4611686018427387904\n", "below 2\\^62"),
        ("id,lower,upper,size\na,3,3,4\n", "line 2: lives from 3 to 3; upper has to be beyond"),
        ("id,lower,upper,size\na,0,3,4\na,5,6,4\n", "line 3: id 'a' comes twice"),
        ("id,lower,upper,size,alignment\na,0,3,4,0\n", "line 2: alignment '0'"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.csv: No such file"):
        read(str(tmp_path / "missing.csv"))
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"binary\.csv: is no text"):
        read(str(tmp_path / "binary.csv"))
    (tmp_path / "huge.csv").write_text("id,lower,upper,size\n" + "a" * 200000 + ",0,1,1\n")
    with pytest.raises(UsageError, match=r"huge\.csv: line"):
        read(str(tmp_path / "huge.csv"))
