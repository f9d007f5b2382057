"""`deepum arena` of files."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from instances import apart, dense

from deepum.arena.allocator import ALLOCATORS
from deepum.arena.buffers import parse, table
from deepum.cli.arena import command
from deepum.errors import UsageError

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    buffers = dense(4, 50)
    file = tmp_path / "dense.csv"
    file.write_text(table(buffers, [0] * len(buffers)))
    return file


def test_every_allocator_has_a_line_and_the_best_is_written(
    deepum: Deepum, instance: Path, tmp_path: Path
) -> None:
    result = deepum("arena", instance, "--compare", "--output", "out.csv", "--json", "out.json")
    assert result.returncode == 0, result.stderr
    head, _, *rows = result.stdout.splitlines()
    assert head.startswith("dense.csv: 50 buffers, at most ") and "(4096 bytes)" in head
    assert [row.split()[0] for row in rows] == [allocator.name for allocator in ALLOCATORS]
    kept = json.loads((tmp_path / "out.json").read_text())
    by_name = {one["allocator"]: one for one in kept["found"]}
    assert by_name["search"]["bytes"] == kept["load_bytes"] == 4096
    assert all(one["bytes"] >= one["bound_bytes"] for one in kept["found"])
    text = (tmp_path / "out.csv").read_text()
    offsets = [int(line.rpartition(",")[2]) for line in text.splitlines()[1:]]
    buffers = parse(text)
    assert buffers == dense(4, 50) and apart(buffers, offsets)
    assert max(at + one.size for at, one in zip(offsets, buffers, strict=True)) == 4096


def test_one_allocator_tells_all_its_incumbents(deepum: Deepum, instance: Path) -> None:
    result = deepum("arena", instance, "--allocator", "best-fit")
    rows = [line.split() for line in result.stdout.splitlines()[2:]]
    assert result.returncode == 0 and rows and {row[0] for row in rows} == {"best-fit"}
    sizes = [int(row[3]) for row in rows]
    assert sizes == sorted(sizes, reverse=True)


def test_a_capacity_that_is_not_reached_is_code_1(deepum: Deepum, instance: Path) -> None:
    found = deepum("arena", instance, "--capacity", "4KiB")
    assert found.returncode == 0 and "  fits" in found.stdout
    result = deepum("arena", instance, "--allocator", "greedy", "--capacity", "4KiB")
    assert result.returncode == 1 and "does not fit" in result.stdout


def test_arguments_that_cannot_be_used_are_refused(instance: Path) -> None:
    for arguments, cause in (
        (["missing.csv"], "missing.csv: No such file"),
        (["no-such-workload"], "no-such-workload"),
        ([str(instance), "--capacity", "much"], "--capacity: 'much' is not a size"),
        ([str(instance), "--machine", "v100-16gb"], "--machine: is for workloads"),
    ):
        with pytest.raises(UsageError, match=cause):
            command.main(arguments, standalone_mode=False)


def test_bad_input_is_one_line_and_code_2(deepum: Deepum, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("id,lower,upper,size\na,0,three,4\n")
    for arguments, cause in (
        (["bad.csv"], "arena bad.csv: line 2: upper 'three' is no whole number"),
        (["bert-base", "--machine", "abacus"], "abacus"),
    ):
        result = deepum("arena", *arguments)
        assert result.returncode == 2 and result.stdout == ""
        assert result.stderr.count("\n") == 1 and cause in result.stderr
