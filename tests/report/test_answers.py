"""The first screen of a report: four answers, from the figures of runs and of simulations."""

from __future__ import annotations

from typing import Any

import pytest
from made_runs import FAULTS, FITS, GIB, LINK, run, timeline

from deepum.report.answers import comparison, of_runs, of_simulations
from deepum.report.write import of_what

Runs = list[tuple[str, dict[str, Any]]]
FITTING: dict[str, Any] = {"peak_managed_bytes": GIB, "bytes_prefetched_out": 0}


def paged() -> dict[str, Any]:
    statistics: dict[str, Any] = run(FAULTS, policy="on-demand", bytes_driver_evicted=8 * GIB)
    return statistics


def whole() -> dict[str, Any]:
    """With memory for all."""
    statistics: dict[str, Any] = run(FITS, policy="on-demand", **FITTING)
    return statistics | {"gpu_memory_bytes": 64 * GIB}


def answers(runs: Runs) -> list[str]:
    return [one.answer for one in of_runs(runs)]


def test_of_three_runs_in_any_order_it_is_the_one_under_deepum_that_is_asked_about() -> None:
    runs: Runs = [("p.json", paged()), ("d.json", run(LINK)), ("u.json", whole())]
    for order in (runs, runs[::-1]):
        found = of_runs(order)
        assert [one.question for one in found] == [
            "Is it working?",
            "How much faster is it?",
            "What is the limit?",
            "What to try next?",
        ]
        assert [one.answer for one in found[:3]] == ["Yes", "5.00 x", "The link to the host"]
        assert found[1].details == (
            "d.json is 5.00 times as fast as on-demand paging",
            "80.0 ms a step instead of 400.0, virtual time",
            "2.67 times what unlimited memory takes",
        )
        assert "kernels compute in 30.0 of 80.0 ms of a step, virtual time" in found[2].details


def test_a_run_alone_does_not_say_how_much_faster() -> None:
    assert answers([("d.json", run(LINK))])[:3] == ["Yes", "Not known", "The link to the host"]
    assert answers([("p.json", paged())])[::2] == ["It only watched", "Page faults"]
    assert answers([("p.json", paged())])[3] == "deepum run --policy correlation"


def test_the_page_says_what_it_is_of_and_whose_times_these_are() -> None:
    simulated, real = paged(), run(LINK) | {"device": "cuda"}
    assert of_what([("a.json", simulated)]) == (
        "a.json on sim:v100-16gb, a simulated GPU: times are virtual"
    )
    assert of_what([("a.json", simulated), ("b.json", real)]) == (
        "a.json, b.json on sim:v100-16gb, cuda"
    )


def test_what_fits_has_nothing_to_do() -> None:
    fitting = run(FITS, **FITTING)
    assert answers([("d.json", fitting)]) == [
        "Nothing to do",
        "Nothing to gain",
        "Not memory",
        "Nothing",
    ]


def test_a_failure_comes_first() -> None:
    failed = run(LINK) | {"ended": "was ended by SIGSEGV"}
    first, *_ = of_runs([("p.json", paged()), ("d.json", failed)])
    assert (first.answer, first.details) == ("It failed", ("the program was ended by SIGSEGV",))


@pytest.mark.parametrize(
    "other",
    [
        paged() | {"device": "sim:rtx4090"},
        paged() | {"kernels": 7},
        paged() | {"processes": []},
        paged() | {"kernels": 0},
    ],
    ids=["card", "program", "no GPU", "no kernels"],
)
def test_runs_of_something_else_are_not_compared(other: dict[str, Any]) -> None:
    runs: Runs = [("p.json", other), ("d.json", run(LINK))]
    assert comparison(runs) is None
    assert answers([one for one in runs if one[1]["processes"]])[1] == "Not known"


def test_on_demand_with_more_memory_is_no_measure() -> None:
    larger = paged() | {"gpu_memory_bytes": 20 * GIB}
    result = comparison([("p.json", larger), ("d.json", run(LINK))])
    assert result is not None and result.rows[result.subject].over_on_demand is None
    assert answers([("p.json", larger), ("d.json", run(LINK))])[1] == "Not known"


def test_no_gain_is_said() -> None:
    slow = run(timeline([0.5] * 8, bytes_in=GIB, bytes_out=GIB))
    assert answers([("p.json", paged()), ("d.json", slow)])[:2] == ["No", "0.80 x"]


def simulation(
    step_ms: float = 80, bytes_moved: int = GIB // 2, /, **policies: Any
) -> dict[str, Any]:
    """As the report reads one; on demand takes 400 ms a step, unlimited memory 30."""

    def policy(ms: float, moved: int, demand: int = 0) -> dict[str, Any]:
        counts = {"faults": 0, "fault_batches": 0, "bytes_demand": demand}
        return {
            "step_ms": ms,
            "steps_ms": [ms] * 7,
            "of_bound": ms / 40,
            "speed_up_over_on_demand": 400 / ms,
            "a_step": counts | {"bytes_h2d": moved, "bytes_d2h": moved},
        }

    defaults = {
        "on-demand": policy(400, GIB, GIB),
        "deepum": policy(step_ms, bytes_moved),
        "unlimited": policy(30, 0),
    }
    return {"workload": "w", "machine": "v100-16gb", "policies": defaults | policies}


def test_a_simulation_is_answered_by_the_same_rules() -> None:
    found = of_simulations([simulation()])
    assert [one.answer for one in found[:3]] == ["Yes", "5.00 x", "The link to the host"]
    assert "2.00 times the lower bound" in found[1].details
    found = of_simulations([simulation(31)])
    assert [one.answer for one in found[2:]] == ["The kernels", "Nothing"]
    found = of_simulations([simulation(30, 0)])
    assert found[0].answer == "Nothing to do"
    assert of_simulations([]) == []


def test_of_several_simulations_there_is_a_mean() -> None:
    found = of_simulations([simulation(), simulation(20), simulation(500)])
    assert [one.answer for one in found[:2]] == ["In part", "4.31 x"]
    assert found[0].details == ("1 of 3 are slower than on demand",)
    assert of_simulations([simulation(), simulation(20)])[0].details == (
        "none of 2 is slower than on demand",
    )


def test_what_does_not_fit_is_left_out() -> None:
    out = {"does_not_fit": "out of memory"}
    (first, *_) = of_simulations([simulation(deepum=out)])
    assert first.answer == "It only watched"
    nothing = simulation(**dict.fromkeys(("on-demand", "deepum"), out))
    assert of_simulations([nothing]) == []
