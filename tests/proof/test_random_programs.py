"""No byte is ever wrong, whatever is moved, dropped or mispredicted: random programs end as they do one operation after the other."""

from __future__ import annotations

import re

import pytest
from proof_lowering import lower
from proof_programs import FLAVOURS, random_program
from proof_running import HERE, Batch, Outcome, Runner, batches
from proof_shrinking import describe, shortest


def test_random_programs_end_as_on_plain_memory(runner: Runner, batch: Batch, proof_seed: int) -> None:
    programs = batch.programs()
    path = runner.write(programs)
    meant = runner.meant(path)
    assert len(meant.results) == len(programs), meant.said
    ran = runner.under_deepum(path, batch)
    failing = ran.first_difference(meant, len(programs))
    if failing is not None:
        command = f"python -m pytest tests/proof --proof-seed {proof_seed} -k '{batch}'"
        short = shortest(runner, batch, programs, failing)
        remark = "made shorter:" if short else f"seen once and not again: {ran.said}"
        pytest.fail(f"{remark}\n{describe(runner, batch, short or programs[: failing + 1], command)}", pytrace=False)
    assert ran.code == 0, ran.said


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_without_deepum_they_mean_the_same(runner: Runner, flavour: str, proof_seed: int) -> None:
    """The generator orders all that has to be ordered, and the simulated GPU keeps the order."""
    path = runner.write([random_program(proof_seed * 1_000_000 + seed, flavour) for seed in range(150)])
    meant, ran = runner.meant(path), runner.plain(path)
    assert ran.first_difference(meant, 150) is None, ran.said
    assert ran.code == 0


def test_they_put_every_part_to_work(runner: Runner) -> None:
    """What the proof is about took place: sessions moved, dropped and mispredicted, and programs used all there is to use."""
    batch = batches(50, 0)[0]
    programs = batch.programs()
    path = runner.write(programs)
    assert runner.under_deepum(path, batch).code == 0
    session = runner.reports().sessions[-1]["core"]
    for counter in ("bytes_prefetched", "bytes_evicted", "bytes_invalidated"):
        assert session[counter] > 100 * (2 << 20), counter
    assert 0 < session["predictions_right"] < 0.9 * session["predictions"]
    assert session["block_mismatches"] == session["malformed_events"] == session["events_lost"] == 0
    text = "".join(lower(program) for flavour in FLAVOURS for program in (random_program(seed, flavour) for seed in range(40)))
    names = set(re.findall(r"OP\((\w+)\) ", (HERE / "executor" / "executor.h").read_text()))
    used = {line.split()[1] for line in text.splitlines()}
    assert len(names) > 30 and names <= used


def test_a_wrong_result_is_noticed(runner: Runner) -> None:
    """A program that reads what it never wrote differs from what it means."""
    path = runner.folder / "unwritten.txt"
    path.write_text(
        "0 program 0 0 1 1 0\n0 sn 0 0 0\n0 mal 0 0 40\n0 pin 1 0 40\n0 cp 3 0 1 0 0 0 40\n0 ssy 0\n0 hr 1 0 40\n0 fre 0\n0 fre 1\n"
    )
    meant, ran = runner.meant(path), runner.under_deepum(path, batches(1, 0)[0])
    assert set(meant.results) == set(ran.results) == {0}
    assert ran.first_difference(meant, 1) == 0
    assert Outcome({}, 0, "").first_difference(meant, 1) == 0  # one that tells nothing has failed too
