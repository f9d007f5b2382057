"""Every named workload, small: captured, simulated, and never below its bound; the cache; the
commands.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from required import needed

torch = needed("torch")

from captured import SMALL, allocated, launches  # noqa: E402

from deepum.capture import cache  # noqa: E402
from deepum.capture.record import capture  # noqa: E402
from deepum.errors import UsageError  # noqa: E402
from deepum.simulate.batches import fits, largest_batch  # noqa: E402
from deepum.simulate.comparison import compare  # noqa: E402
from deepum.simulate.policies import BY_NAME  # noqa: E402
from deepum.simulate.workload import Workload, load  # noqa: E402
from deepum.trace import Trace, work  # noqa: E402
from deepum.workloads import WORKLOADS, parse  # noqa: E402

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
UM_BLOCK = 2 << 20
POLICIES = [
    BY_NAME[name]
    for name in (
        "on-demand",
        "deepum-paper",
        "deepum",
        *(name for name in BY_NAME if name.endswith("-use")),
    )
]
SWAPPED = ("gpt2-l", "dlrm", "llama-7b")  # fit when tensors are swapped


def small(name: str) -> str:
    """As it is asked for."""
    return f"{name}:{SMALL[name]}"


@pytest.mark.parametrize("name", WORKLOADS)
def test_no_policy_is_below_the_bound(name: str) -> None:
    captured = capture(parse(small(name)), steps=6)
    steps = sum(one.work.flags & work.ENDS_STEP != 0 for one in launches(captured.trace))
    assert steps == 6
    assert 0 < allocated(captured.trace) <= captured.peak_bytes <= captured.reserved_bytes
    memory = max(captured.reserved_bytes * 2 // 3 // UM_BLOCK, 32) * UM_BLOCK
    swapping = [BY_NAME["lms"]] if name in SWAPPED else []
    found = compare(
        Workload(name, captured.trace, "v100-16gb"), "v100-16gb", POLICIES + swapping, memory
    )
    assert all(row.does_not_fit is None for row in found.rows.values())
    assert found.bound_ns is not None
    assert found.moving_bound_ns is not None
    assert found.kept_bound_ns is not None
    assert found.kept_bound_ns >= found.bound_ns > 0
    for policy, row in found.rows.items():
        if policy != "unlimited":  # of a card of that size
            assert row.ns >= found.kept_bound_ns * (1 - 1e-9), policy
        if policy in ("on-demand", "deepum-paper"):  # they use nothing in place over the link
            assert row.ns >= found.moving_bound_ns * (1 - 1e-9), policy


def test_the_largest_batch_is_the_last_that_runs() -> None:
    """Under LMS the card decides, under unified memory the host."""
    name, memory = small("bert-large"), 300 << 20
    swapping, managed = (
        largest_batch(name, BY_NAME[policy], memory, 1 << 30, most=64, steps=2)
        for policy in ("lms", "deepum")
    )
    assert swapping is not None
    assert managed is not None
    assert 1 < swapping < managed < 64
    for batch in (swapping, swapping + 1):
        trace = capture(parse(name.replace("batch=4", f"batch={batch}")), 2).trace
        assert fits(trace, BY_NAME["lms"], memory, 1 << 30) == (batch == swapping)
    assert largest_batch(name, BY_NAME["lms"], 64 << 20, steps=2) is None


@pytest.mark.parametrize("name", ["experts", "lstm", "llama-long"])
def test_steps_differ_where_it_is_said(name: str) -> None:
    trace = capture(parse(small(name)), steps=5).trace
    counts, count = [], 0
    for one in launches(trace):
        count += sum(size for _, size in one.sizes)
        if one.work.flags & work.ENDS_STEP:
            counts.append(count)
            count = 0
    assert len(set(counts)) > 2
    assert WORKLOADS[name].differs


def test_weights_of_a_decoder_are_only_read() -> None:
    trace = capture(parse(small("llama-decode")), steps=3).trace
    made = launches(trace)
    first = next(number for number, one in enumerate(made) if one.work.flags & work.ENDS_STEP)
    matrices = {
        (a.slot, a.offset)
        for one in made[:first]
        if one.work.flops
        for a in one.places
        if a.flags == work.READ
    }
    written = {
        (a.slot, a.offset)
        for one in made[first + 1 :]
        for a in one.places
        if a.flags & work.WRITE and a.bytes > 256 << 10
    }
    read = {
        (a.slot, a.offset)
        for one in made[first + 1 :]
        for a in one.places
        if a.flags == work.READ and a.bytes > 256 << 10
    }
    assert len(read & matrices) >= 10
    assert not written & read & matrices


def test_the_cache_gives_the_same_trace_without_capturing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = parse(small("gpt2-small"))
    first = cache.captured(request, 3, within=tmp_path)

    def never(*_: object) -> None:
        raise AssertionError("captured again")

    monkeypatch.setattr(cache, "capture", never)
    again = cache.captured(request, 3, within=tmp_path)
    assert (again.name, again.events, again.work) == (first.name, first.events, first.work)
    others: tuple[tuple[Any, ...], ...] = (
        (request, 4),
        (request, 3, True),
        (request, 3, False, 108),
        (parse("gpt2-small:batch=2"), 3),
    )
    for other in others:
        with pytest.raises(AssertionError, match="captured again"):
            cast(Any, cache.captured)(*other, within=tmp_path)


def test_a_damaged_or_unwritable_cache_is_none(tmp_path: Path) -> None:
    request = parse(small("dlrm"))
    first = cache.captured(request, 2, within=tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(b"?")
    assert cache.captured(request, 2, within=tmp_path).work == first.work
    (tmp_path / "file").write_text("")
    assert cache.captured(request, 2, within=tmp_path / "file").work == first.work


def test_the_oldest_traces_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MOST_BYTES", 1)
    cache.captured(parse(small("dlrm")), 1, within=tmp_path)
    cache.captured(parse(small("lstm")), 1, within=tmp_path)
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == {"lstm"}


def test_what_is_recorded_is_what_is_simulated(
    deepum: Deepum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = small("gpt2-small")
    result = deepum("record", "--model", name, "--steps", 5, "out.log")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("gpt2-small:batch=4,seq=256,")
    assert " launches a step, 0." in result.stdout
    of_file = deepum(
        "simulate",
        "out.log",
        "--gpu-memory",
        "512MiB",
        "--policy",
        "deepum,on-demand",
        "--json",
        "file.json",
    )
    assert of_file.returncode == 0, of_file.stderr
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    by_name = load(name, 4, False)
    assert by_name.name == str(parse(name))
    assert list((tmp_path / "cache" / "deepum" / "traces").iterdir())
    file = json.loads((tmp_path / "file.json").read_text())
    named = compare(by_name, by_name.machine, [BY_NAME["deepum"]], 512 << 20).as_json()
    assert file["policies"] == named["policies"]
    assert file["bound_ms"] == named["bound_ms"] > 0


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        (("record", "--model", "gpt5", "out"), 2, "workload 'gpt5': is unknown; "),
        (
            ("record", "--model", small("dlrm"), "--steps", "1", "no/out"),
            125,
            "no/out: No such file or directory; name a file",
        ),
        (("record", "out"), 2, "--model"),
        (
            ("simulate", "gpt2-small:bath=2"),
            2,
            "workload gpt2-small: has no number 'bath'; it has batch, ",
        ),
        (("simulate", "gpt5"), 2, "or one of `deepum workloads`"),
    ],
)
def test_what_cannot_be_captured_is_one_line(
    deepum: Deepum, arguments: tuple[str, ...], code: int, cause: str
) -> None:
    result = deepum(*arguments)
    assert result.returncode == code
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("deepum: error: ")
    assert cause in result.stderr


def test_numbers_that_make_no_model_are_said() -> None:
    for text, cause in (
        ("gpt2-small:width=10,heads=3", "width 10 is no multiple of 3 heads"),
        ("lstm:least=9,most=8", "no lengths from 9 to 8"),
        ("llama-decode:prompt=4,room=4", "a cache of 4 has no room behind a prompt of 4"),
        ("gpt2-small:heads=0", "zero"),
    ):
        with pytest.raises(UsageError, match=cause):
            capture(parse(text), steps=1)


def test_a_file_goes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Trace("x", b"").save(Path("dlrm"))
    assert load("dlrm", None, False).trace.events == b""
    with pytest.raises(UsageError, match="is no single iteration"):
        load("dlrm", 3, False)
