"""No byte is ever wrong, whatever is moved, dropped or mispredicted: random programs end as they do
one operation after the other.
"""

from __future__ import annotations

import re

import pytest
from proof_batches import Batch, batches
from proof_lowering import lower
from proof_programs import FLAVOURS, random_program
from proof_running import HERE, Outcome, Runner
from proof_shrinking import describe, shortest

BLOCK = 2 << 20
FLOORS = {  # UM blocks a program, asked for by the core
    "bytes_prefetched": 15.0,
    "bytes_evicted": 5.0,
    "bytes_invalidated": 6.0,
    "bytes_copied_out": 0.05,
    "bytes_dropped": 0.2,
}
DROPPED = 2.5  # UM blocks a program that were on the GPU when they were dropped


def test_random_programs_end_as_on_plain_memory(
    runner: Runner, batch: Batch, proof_seed: int
) -> None:
    programs = batch.programs()
    path = runner.write(programs)
    meant = runner.meant(path)
    assert len(meant.results) == len(programs), meant.messages
    ran = runner.under_deepum(path, batch)
    failing = ran.first_difference(meant, len(programs))
    if failing is not None:
        command = f"python -m pytest tests/proof --proof-seed {proof_seed} -k '{batch}'"
        short = shortest(runner, batch, programs, failing)
        remark = "made shorter:" if short else f"seen once and not again: {ran.messages}"
        pytest.fail(
            f"{remark}\n{describe(runner, batch, short or programs[: failing + 1], command)}",
            pytrace=False,
        )
    assert ran.code == 0, ran.messages
    runner.counted["programs"] += len(programs)
    runner.counted["batches of silent blocks"] += batch.flavour == "silent"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_without_deepum_they_mean_the_same(runner: Runner, flavour: str, proof_seed: int) -> None:
    """The generator orders all that has to be ordered, and the simulated GPU keeps the order."""
    path = runner.write(
        [random_program(proof_seed * 1_000_000 + seed, flavour) for seed in range(150)]
    )
    meant, ran = runner.meant(path), runner.plain(path)
    assert ran.first_difference(meant, 150) is None, ran.messages
    assert ran.code == 0


def test_they_were_under_pressure_and_much_was_dropped(runner: Runner) -> None:
    """Else all of the above would prove nothing. Floors for each program that was run, about half
    of what is usual; seeds differ.
    """
    ran = runner.counted
    if ran["programs"] == 0:
        pytest.skip("no batch was run")
    reports = runner.reports()
    cores = [session["core"] for session in reports.sessions]
    assert all(core["malformed_events"] == core["events_lost"] == 0 for core in cores)
    assert sum(core["block_mismatches"] > 0 for core in cores) == ran["batches of silent blocks"]
    assert sum(simulator["discarded_uses"] for simulator in reports.simulators) == 0
    total = {name: sum(core[name] for core in cores) for name in FLOORS}
    dropped = sum(simulator["bytes_discarded"] for simulator in reports.simulators)
    if ran["programs"] >= 1000:
        for name, floor in FLOORS.items():
            assert total[name] > floor * BLOCK * ran["programs"], name
        assert dropped > DROPPED * BLOCK * ran["programs"]
        predicted, right = (
            sum(core[name] for core in cores) for name in ("predictions", "predictions_right")
        )
        assert 0.2 * predicted < right < 0.9 * predicted


def test_programs_use_all_there_is_to_use() -> None:
    text = "".join(
        lower(program)
        for flavour in FLAVOURS
        for program in (random_program(seed, flavour) for seed in range(40))
    )
    names = set(re.findall(r"(?m)^  OP\((\w+)\)", (HERE / "executor" / "executor.h").read_text()))
    used = {line.split()[1] for line in text.splitlines()}
    assert len(names) > 30 and names <= used


def test_a_wrong_result_is_noticed(runner: Runner) -> None:
    """A program that reads what it never wrote differs from what it means."""
    path = runner.folder / "unwritten.txt"
    path.write_text(
        "0 program 0 0 1 1 0\n0 sn 0 0 0\n0 mal 0 0 40\n0 pin 1 0 40\n0 cp 3 0 1 0 0 0 40\n0 "
        "ssy 0\n0 hr 1 0 40\n0 fre 0\n0 fre 1\n"
    )
    meant, ran = runner.meant(path), runner.under_deepum(path, batches(1, 0)[0])
    assert set(meant.results) == set(ran.results) == {0}
    assert ran.first_difference(meant, 1) == 0
    # One that tells nothing has failed too.
    assert Outcome({}, 0, "").first_difference(meant, 1) == 0
