"""`deepum run --tune advice=all,writes=operators`: programs that know nothing of it, on the simulated
GPU, whose record of the run says what their launches wrote.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deepum.core import UM_BLOCK_BYTES, Allocate, EventLog, Execute, events
from deepum.trace import joined, work, work_path

pytestmark = pytest.mark.torch
Deepum = Callable[..., subprocess.CompletedProcess[str]]
OPERATORS = ("--tune", "advice=all,writes=operators")

# A model of which most is only read: adapters are trained.
TRAIN = """
import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(16)]
model = nn.Sequential(*layers).cuda().requires_grad_(False)
adapters = nn.ParameterList(nn.Parameter(torch.zeros(1024, 1024, device="cuda")) for _ in range(4))
optimizer = torch.optim.Adam(adapters.parameters())
norm = nn.BatchNorm1d(1024).cuda()
x = torch.randn(512, 1024, device="cuda")
for _ in range(8):
    h = x
    for i, layer in enumerate(model):
        h = layer(h)
        if i % 4 == 0:
            h = h + h @ adapters[i // 4]
    loss = nn.functional.dropout(norm(h), 0.1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
print(norm.running_mean.sum().item())
"""
# One whose memory is the same in each step, so that it is soon known.
STEADY = """
import torch

weights = [torch.randn(1024, 1024, device="cuda") for _ in range(40)]
rows = [torch.randn(1024, 1024, device="cuda") for _ in range(2)]
parameter = torch.nn.Parameter(torch.zeros(1024, 1024, device="cuda"))
parameter.grad = torch.zeros_like(parameter)
optimizer = torch.optim.SGD([parameter], lr=0.1)
for _ in range(24):
    for i, weight in enumerate(weights):
        torch.mm(rows[i % 2], weight, out=rows[1 - i % 2])
    optimizer.step()
"""
LAUNCHES = 41  # of a step of it


@pytest.fixture
def run(deepum: Deepum, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(program: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.py").write_text(program, encoding="utf-8")
        command = ("--", sys.executable, str(tmp_path / "program.py"))
        result = deepum("run", "--device", "sim", *options, *command, timeout=300)
        assert result.returncode == 0, result.stderr
        return result

    return run


def launches(log: EventLog) -> list[Execute]:
    """Of kernels."""
    return [one for one in events(log.records) if isinstance(one, Execute) and not one.flags & 1]


def written(log: EventLog, raw: bytes) -> Iterator[tuple[Execute, set[tuple[int, int]]]]:
    """Launches, and the UM blocks (slot, block) that each wrote."""
    by_launch: dict[int, list[work.Access]] = {}
    for one in work.decode(joined.join("program", log, raw).work):
        by_launch.setdefault(one.sequence, []).extend(one.accesses)
    offsets: dict[int, int] = {}
    for event in events(log.records):
        if isinstance(event, Allocate):
            offsets[event.slot] = event.first_offset
        elif isinstance(event, Execute):
            blocks = set()
            for access in by_launch.get(event.sequence, []):
                if access.flags & work.WRITE and access.slot in offsets:
                    first = offsets[access.slot] + access.offset
                    last = first + access.bytes - 1
                    blocks |= {
                        (access.slot, block)
                        for block in range(first // UM_BLOCK_BYTES, last // UM_BLOCK_BYTES + 1)
                    }
            yield event, blocks


def figures(path: Path) -> dict[str, Any]:
    """The core's, of the one process."""
    (process,) = json.loads(path.read_text(encoding="utf-8"))["processes"]
    found: dict[str, Any] = process["session"]["core"]
    return found


def test_a_training_leaves_what_it_only_reads_without_a_copy_and_without_faults(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    memory = ("--gpu-memory", "96MiB")
    plain = run(TRAIN, *memory, "--stats", str(tmp_path / "plain.json"))
    with_reads = run(
        TRAIN,
        *memory,
        *OPERATORS,
        *("--record", str(tmp_path / "run.log"), "--stats", str(tmp_path / "told.json")),
    )
    assert with_reads.stdout == plain.stdout
    without, given = figures(tmp_path / "plain.json"), figures(tmp_path / "told.json")
    assert without["bytes_dropped"] == 0 < given["bytes_dropped"]
    assert given["faults_observed"] == 0
    assert given["bytes_evicted"] + given["bytes_copied_out"] < 0.8 * without["bytes_evicted"]

    log = EventLog.read(tmp_path / "run.log")
    raw = work.of_file(work_path(tmp_path / "run.log").read_bytes())
    declared = 0
    for launch, blocks in written(log, raw):
        for place in launch.declared:
            where = launch.unknown[place]
            edge = 1 if where.count > 2 else 0
            inner = range(where.first + edge, where.first + where.count - edge)
            assert not blocks & {(where.slot, block) for block in inner}
            declared += 1
    assert declared > len(launches(log)) / 2


def test_nothing_is_declared_once_it_is_known(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    options = ("--gpu-memory", "128MiB", "--record", str(tmp_path / "run.log"))
    run(STEADY, *options, *OPERATORS, "--stats", str(tmp_path / "told.json"))
    declared = [bool(one.declared) for one in launches(EventLog.read(tmp_path / "run.log"))]
    assert not any(declared[:LAUNCHES]) and sum(declared) >= 2 * (LAUNCHES - 1)
    assert not any(declared[-8 * LAUNCHES :])
    counters = figures(tmp_path / "told.json")
    # The weights stay on the host for as long as the program runs.
    assert counters["bytes_dropped"] > 5 * counters["bytes_evicted"]


def test_nothing_is_declared_where_all_fits(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    run(STEADY, *OPERATORS, "--record", str(tmp_path / "run.log"))
    assert not any(one.declared for one in launches(EventLog.read(tmp_path / "run.log")))


def test_a_program_without_pytorch_runs_as_ever(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    result = run("import sys; print('torch' in sys.modules, 'deepum' in sys.modules)", *OPERATORS)
    assert result.stdout == "False False\n"


def test_a_pytorch_that_lacks_what_it_takes_is_one_warning(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("version = 7", encoding="utf-8")
    result = run("import torch; print(torch.version)", *OPERATORS)
    assert result.stdout == "7\n"
    warnings = [line for line in result.stderr.splitlines() if "declare" in line]
    assert len(warnings) == 1
    assert warnings[0].startswith("deepum: warning: operators do not declare what they only read: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--tune", "writes=operators"),
            "--tune writes=operators: is for clean pages; write --tune advice=all,writes=operators",
        ),
        (
            (*OPERATORS, "--faults", "off"),
            "--faults off: --tune writes=operators needs the times of launches; leave --faults out",
        ),
        (
            (*OPERATORS, "--remat", "1GiB"),
            "--remat 1073741824: cannot be combined with --tune writes=operators; leave one of "
            "them out",
        ),
    ],
)
def test_what_cannot_be_is_one_line(deepum: Deepum, options: tuple[str, ...], message: str) -> None:
    result = deepum("run", "--device", "sim", *options, "--", "true")
    assert result.returncode == 2 and result.stderr == f"deepum: error: {message}\n"
