"""The summary answers a person: what is counted is told as counted, what is asked for or believed
as that, and what nobody knows as not known.
"""

from __future__ import annotations

from typing import Any

import pytest
from made_runs import FAULTS, FITS, GIB, KERNELS, LINK, merged, run, session, simulator, timeline

from deepum.statistics.summary import places, summary


def line(lines: list[str], begins: str) -> str:
    (found,) = [one for one in lines if one.startswith(begins)]
    return found


def real(**changed: Any) -> dict[str, Any]:
    """Of a run on a real GPU, where the driver tells nothing of faults and transfers."""
    core = {
        "launches": 7,
        "iterations": 2,
        "iteration_launches": 3,
        "bytes_prefetched": 3 * GIB,
        "bytes_evicted": 2 * GIB,
        "peak_resident_bytes": GIB,
        "peak_allocated_bytes": 20 * GIB,
        "budget_overshoot_bytes": 5 * GIB,
    }
    return merged([session(core=core)], [], gpu_memory=str(16 * GIB)) | changed


def test_on_a_real_gpu_nothing_is_said_to_have_moved() -> None:
    lines = summary(real())
    assert lines[0] == "cuda, correlation: 7 launches; the program took 12.5 s by the real clock"
    assert (
        "asked to prefetch 3.0 GiB, to evict 2.0 GiB; peak 1.0 GiB believed on the GPU"
    ) in lines
    assert (
        "up to 5.0 GiB more than the budget were not free of the GPU; the driver may count "
        "what was evicted among them"
    ) in lines
    assert line(lines, "time lost to memory: not known, since a real driver tells neither")
    assert line(lines, "try: deepum compare -- COMMAND")
    assert line(lines, "2 steps were found in the launches; what one takes is not known: a real ")
    assert not any(one.startswith("in all") or "virtual" in one for one in lines)


def test_what_fits_is_one_line() -> None:
    fitting: dict[str, Any] = {"peak_managed_bytes": GIB, "bytes_prefetched_out": 0}
    assert summary(run(FITS, **fitting)) == [
        f"sim:v100-16gb, correlation: {8 * KERNELS} kernels in 0.240 s of virtual GPU time; it "
        f"fits in GPU memory (1.0 GiB of 16.0 GiB at most): nothing had to be moved, nothing is "
        f"to be done"
    ]


def test_what_does_not_fit_is_told_with_what_it_cost() -> None:
    lines = summary(run(LINK))
    assert lines[0] == (
        f"sim:v100-16gb, correlation: {8 * KERNELS} kernels in 0.640 s of virtual GPU time; "
        f"kernels computed for 0.240 s, lost to memory: 0.400 s (62%)"
    )
    assert line(lines, "it needs more than GPU memory holds (24.0 GiB allocated, 16.0 GiB there, ")
    assert line(lines, "a step takes").startswith(
        "a step takes 80.0 ms (the mean of 5 of 8), lost to memory: 50.0 ms (62%); 0 faults, "
        "512.0 MiB to the GPU, 512.0 MiB back"
    )
    assert line(lines, "limit: the link to the host: ")
    assert [one.split(":")[1] for one in lines if one.startswith("try")] == [
        " another batch size",
        " --policy planned",
    ]
    assert line(
        lines, "in all 0 faults, 4.0 GiB to the GPU, 4.0 GiB back; prefetched 4.0 GiB, 100%"
    )
    assert len(lines) <= 10


def test_a_pytorch_program_is_told_of_recomputing() -> None:
    tries = [one for one in summary(run(LINK, bytes_discarded=GIB)) if one.startswith("try")]
    assert tries[0].startswith("try: --remat auto: ") and len(tries) == 2


def test_of_a_program_that_failed_not_all_is_said_to_be_well() -> None:
    fitting: dict[str, Any] = {"peak_managed_bytes": GIB, "bytes_prefetched_out": 0}
    statistics = run(FITS, **fitting) | {"ended": "exited with code 1"}
    (line,) = summary(statistics)
    assert line.endswith(
        "it fitted in GPU memory (1.0 GiB of 16.0 GiB at most) until the program exited with code 1"
    )


def test_a_run_on_demand_only_watched() -> None:
    lines = summary(run(FAULTS, policy="on-demand", bytes_driver_evicted=8 * GIB))
    assert line(lines, "limit: page faults: ")
    assert line(lines, "try: ") == "try: --policy correlation: the default; this run only watched"


def test_time_that_memory_does_not_explain_is_not_called_lost_to_it() -> None:
    lines = summary(run(timeline([0.08] * 8, bytes_out=1 << 20)))
    assert line(lines, "limit: neither link nor faults: ")
    assert "no kernel computed: 50.0 ms" in line(lines, "a step takes")
    assert "no kernel computed: 0.400 s" in lines[0]


@pytest.mark.parametrize(
    ("launches", "doubt"),
    [
        (KERNELS, None),
        (KERNELS // 2, "doubtful: the program waits once in 2 iterations of its launches"),
        (KERNELS // 3, "doubtful: the program waits once in 3 iterations of its launches"),
        (3 * KERNELS, "doubtful: the launches repeat in longer parts than the program's waits"),
    ],
)
def test_a_step_that_is_doubtful_is_said_to_be(launches: int, doubt: str | None) -> None:
    core = {"launches": 8 * KERNELS, "iterations": 5, "iteration_launches": launches}
    lines = summary(merged([session(core=core)], [simulator(LINK)]))
    found = [one for one in lines if one.startswith("doubtful")]
    assert len(found) == (doubt is not None) and all(one.startswith(doubt or "") for one in found)
    if launches == KERNELS // 2:
        assert found[0].endswith("as where every second step is logged: one may be 40.0 ms")


def test_steps_without_times_are_counted() -> None:
    core = {"launches": 9, "iterations": 4, "iteration_launches": 2}
    at = "4 steps were found in the launches; what one takes is not known: "
    unknown = simulator(LINK) | {"timeline": []}
    lines = summary(merged([session(core=core)], [unknown]))
    assert line(lines, at).endswith("the simulated GPU left no timeline")
    nothing = summary(merged([session()], [unknown]))
    assert "no steps were found: nothing in its launches repeats until the end" in nothing


def test_times_of_several_processes_do_not_add_up() -> None:
    both = [simulator(LINK), simulator(timeline([0.01] * 3), pid=2)]
    lines = summary(merged([session(), session(2)], both))
    assert (
        f"{11 * KERNELS} kernels of 2 processes in 0.640 s of virtual GPU time in the" in lines[0]
    )
    assert line(lines, "each process had simulated GPUs of its own: the times do not add up")
    assert line(lines, "process 2: 180 kernels in 0.030 s")
    assert line(
        lines, "a step takes 80.0 ms (the mean of 5 of 8, of the process that took longest)"
    )
    many = [simulator(LINK, pid=number) for number in range(20)]
    lines = summary(merged([], many))
    assert "and 12 further processes (--stats has them)" in lines and len(lines) < 20


@pytest.mark.parametrize("refused", [0, 2])
def test_the_setting_that_gives_more_memory_is_named(refused: int) -> None:
    core = {"launches": 8 * KERNELS, "peak_allocated_bytes": 23 * GIB}
    report = session(core=core, allocatable_bytes=24 * GIB, allocations_refused=refused)
    lines = summary(merged([report], [simulator(LINK)]))
    begins = "memory ran out: 2 allocations were refused, beyond the 24.0 GiB that GPU and host"
    near = "memory is nearly used up: 24.0 GiB of the 24.0 GiB that GPU and host memory (--host-"
    assert line(lines, begins if refused else near)
    assert lines.count("try: --host-memory SIZE: more of the host's memory than it takes now") == 1
    enough = session(core=core, allocatable_bytes=256 * GIB)
    assert not any("--host-memory" in one for one in summary(merged([enough], [simulator(LINK)])))


def test_where_to_look_next_is_a_command() -> None:
    assert places(run(LINK), ["a b.json"], True) == [
        "next: charts: deepum report 'a b.json'; while it runs: deepum top; these lines: "
        "docs/usage.md"
    ]
    (text,) = places(run(LINK), [], False)
    assert text.startswith("next: charts: --stats FILE, then deepum report FILE; these lines")
    fitting: dict[str, Any] = {"peak_managed_bytes": GIB, "bytes_prefetched_out": 0}
    assert places(run(FITS, **fitting), ["a.json"], True) == ["next: charts: deepum report a.json"]
    assert places(run(FITS, **fitting), [], True) == places(merged([], []), [], True) == []


def test_a_program_without_a_gpu_says_how_it_ended() -> None:
    assert summary(merged([], [])) == ["the program used no GPU"]
    assert summary(merged([], [], ended="was ended by SIGKILL")) == [
        "the program used no GPU; it was ended by SIGKILL"
    ]


def test_many_warnings_are_counted() -> None:
    statistics = run(LINK) | {"warnings": [f"w{number}" for number in range(9)]}
    lines = summary(statistics)
    assert [one for one in lines if one.startswith("warning")] == [
        f"warning: w{number}" for number in range(4)
    ]
    assert "and 5 further warnings (--stats has them)" in lines


def test_statistics_of_an_earlier_version_are_told() -> None:
    from deepum.statistics.keys import ADDED_KEYS

    before = {key: value for key, value in run(LINK).items() if key not in ADDED_KEYS}
    assert summary(before)[0].startswith(f"sim:v100-16gb, correlation: {8 * KERNELS} kernels")


def plan(**fields: Any) -> dict[str, Any]:
    """What a session reports of one."""
    unknown = {"launches": 9, "moves": 4, "before_us": None, "with_us": None}
    return unknown | {"kept": False, "reason": None} | fields


@pytest.mark.parametrize(
    ("plans", "text"),
    [
        ([], "none, since no iteration was seen to repeat that memory is short for"),
        ([plan()], "none kept: the program ended before one had been tried"),
        ([plan(before_us=5e3, reason="no plan was found")], "none kept: no plan was found"),
        ([plan(kept=True)], "one was given (4 moves an iteration)"),
        (
            [plan(before_us=1.31e6, with_us=1.12e6, kept=True)],
            "kept (1.31 s an iteration before, 1.12 s with it)",
        ),
        (
            [
                plan(reason="the iteration changed", launches=8, before_us=1e3),
                plan(before_us=2e4, with_us=1.9e4),
                plan(before_us=1.9e4, with_us=1.8e4, kept=True),
                plan(before_us=1.8e4, with_us=2e4, reason="iterations are not shorter with it"),
            ],
            "kept (20.00 ms an iteration before, 18.00 ms with it)",
        ),
    ],
)
def test_what_became_of_plans_is_a_line(plans: list[dict[str, Any]], text: str) -> None:
    assert f"plans: {text}" in summary(real(plans=plans))


@pytest.mark.parametrize("changed", [{}, {"plans": None}])
def test_without_the_policy_that_plans_there_is_no_such_line(changed: dict[str, Any]) -> None:
    assert not [one for one in summary(real(**changed)) if one.startswith("plans")]
