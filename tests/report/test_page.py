"""`deepum report`: one page that needs nothing else, with a chart for everything it is given; and
its errors.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from parsed import Parsed
from required import needed
from small import MIB, training

from deepum.errors import DeepumError
from deepum.report import charts, inputs, speed_ups
from deepum.report.page import Page, figures, picture
from deepum.report.timeline import observe
from deepum.report.write import main_chart, report
from deepum.simulate.comparison import compare
from deepum.simulate.policies import BY_NAME
from deepum.simulate.workload import load

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
POLICIES = [BY_NAME[name] for name in ("on-demand", "deepum", "unlimited")]


def drawing() -> Any:
    return needed("vl_convert", "report")


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """As `deepum simulate --json` writes it."""
    folder = tmp_path_factory.mktemp("simulation") / "training"
    training(folder)
    loaded = load(str(folder), 5, False)
    document = compare(loaded, loaded.machine, POLICIES, 192 * MIB).as_json()
    assert isinstance(json.loads(json.dumps(document)), dict)
    return document


def gain(html: str) -> float:
    """What the first chart says of deepum."""
    rows = Parsed(html).charts["chart-0"]["data"]["values"]
    (value,) = [row["value"] for row in rows if row["policy"] == "deepum"]
    return float(value)


def test_a_workload_becomes_a_page(deepum: Deepum, workload: Path, tmp_path: Path) -> None:
    drawing()
    result = deepum(
        "report",
        workload,
        "--gpu-memory",
        "192MiB",
        "--output",
        tmp_path / "out.html",
        "--image",
        tmp_path / "out.png",
    )
    assert result.returncode == 0, result.stderr
    html = (tmp_path / "out.html").read_text()
    assert len(html) < 3 << 20
    page = Parsed(html)
    assert [heading.strip() for heading in page.headings] == [
        "deepum report",
        "Speed-up over on-demand paging",
        "training on a100-40gb-g10, 192.0 MiB",
        "Faults per iteration",
        "Time per iteration",
        "on-demand: memory and link over the run",
        "on-demand: a step",
        "deepum: memory and link over the run",
        "deepum: a step",
    ]
    assert len(page.charts) == 7
    targets = {attributes.get("href") for tag, attributes in page.elements if tag == "a"}
    assert targets == {
        f"#{attributes['id']}" for tag, attributes in page.elements if tag == "h2"
    }, "the contents lead to every section"
    first = html.partition("<nav>")[0].partition("<h1>")[2]
    answers, _, outcome = first.partition('class="outcome"')
    assert re.findall(r'class="question">(.*?)</p><strong>(.*?)</strong>', answers) == [
        ("Is it working?", "Yes"),
        ("How much faster is it?", f"{gain(html):.2f} x"),
        ("What is the limit?", "The kernels"),
        ("What to try next?", "Nothing"),
    ]
    assert re.search(
        r"<li>training on a100-40gb-g10, 192.0 MiB: \d+\.\d ms a step under deepum, \d\.\d\d times as fast as on-demand",
        outcome,
    )
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_asks_nobody_for_anything(simulation: dict[str, Any]) -> None:
    drawing()
    html = report(inputs.Inputs([("a.json", simulation)]), []).html()
    page = Parsed(html)
    (policy,) = (
        attributes["content"]
        for _, attributes in page.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy == (
        "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src "
        "'unsafe-inline'; img-src data: blob:"
    )
    assert not any(
        "src" in attributes or not (attributes.get("href") or "#").startswith("#")
        for _, attributes in page.elements
    )
    assert len(page.charts) == 3
    assert all("url" not in spec.get("data", {}) for spec in page.charts.values())


def test_names_cannot_become_code(simulation: dict[str, Any]) -> None:
    drawing()
    hostile = simulation | {"workload": "</script><img src=x>&", "machine": "<b>"}
    html = report(inputs.Inputs([("<i>.json", hostile)]), []).html()
    page = Parsed(html)
    assert not {"img", "b", "i"} & {tag for tag, _ in page.elements}
    assert page.headings[2].strip() == "</script><img src=x>& on <b>, 192.0 MiB (<i>.json)"
    assert any(
        row["workload"].startswith("</script><img src=x>& on <b>")
        for row in page.charts["chart-0"]["data"]["values"]
    )


def test_every_chart_can_be_drawn(
    simulation: dict[str, Any], workload: Path, recorded_run: Path
) -> None:
    """By Vega-Lite itself: it refuses what it does not understand."""
    vega = drawing()
    given = inputs.read([str(recorded_run / "run.json")])
    loaded = load(str(workload), 5, False)
    timelines = [
        observe(loaded, loaded.machine, BY_NAME[name], 192 * MIB)
        for name in ("on-demand", "deepum")
    ]
    given.simulations.append(("a.json", simulation))
    page = Parsed(report(given, [(simulation, timelines)]).html()).charts
    assert len(page) == 1 + 2 + (2 + 4) + 1
    for spec in page.values():
        assert "<svg" in vega.vegalite_to_svg(json.dumps(spec))
    stacked = [spec for spec in page.values() if "vconcat" in spec]
    assert len(stacked) == 5
    for spec in stacked:  # dragging one of them moves all
        assert vega.vegalite_to_vega(json.dumps(spec))["scales"][0]["domainRaw"] == {
            "signal": 'zoom["t"]'
        }


def test_what_does_not_fit_is_said(simulation: dict[str, Any], tmp_path: Path) -> None:
    cause = "out of memory after 3 launches: 1.0 GiB asked for, 1.0 GiB of 2.0 GiB in use"
    document = simulation | {"policies": simulation["policies"] | {"lms": {"does_not_fit": cause}}}
    (tmp_path / "a.json").write_text(json.dumps(document))
    ((_, again),) = inputs.read([str(tmp_path / "a.json")]).simulations
    assert again["policies"]["lms"] == {"does_not_fit": cause}
    (row,) = (row for row in figures(again)[1] if row[0] == "lms")
    assert row == ("lms", "does not fit", *"-------")
    spec = speed_ups.chart([again, simulation])
    assert [row["missing"] for row in spec["data"]["values"] if row["policy"] == "lms"] == [
        "does not fit"
    ]
    vega = drawing()
    svg = vega.vegalite_to_svg(json.dumps(spec))
    assert svg.count("does not fit</text>") == 1
    assert "undefined" not in svg
    assert f"lms does not fit: {cause}." in report(inputs.Inputs([("a.json", again)]), []).html()


def test_speed_ups_are_beside_the_bound(simulation: dict[str, Any]) -> None:
    rows = speed_ups.chart([simulation])["data"]["values"]
    bars = {row["policy"]: row for row in rows}
    assert bars["on-demand"]["value"] == 1 < bars["deepum"]["value"] <= bars["unlimited"]["value"]
    assert all(
        row["bound"]
        == pytest.approx(
            simulation["policies"]["on-demand"]["step_ms"] / simulation["bound_ms"], rel=1e-4
        )
        for row in rows
    )
    assert all(
        "bound" not in row
        for row in speed_ups.chart([simulation | {"bound_ms": None}])["data"]["values"]
    )


def test_the_bound_of_unified_memory_is_drawn_where_it_is_another(
    simulation: dict[str, Any],
) -> None:
    other = simulation | {"kept_bound_ms": 1.25 * simulation["bound_ms"]}
    # As it was when there was one bound.
    before = {key: value for key, value in simulation.items() if not key.startswith("kept")}
    for variant, is_drawn in (
        (other, True),
        (simulation | {"kept_bound_ms": simulation["bound_ms"]}, False),
        (before, False),
    ):
        rows = speed_ups.bars([variant])["data"]["values"]
        assert all(("kept" in row) == is_drawn for row in rows)
        assert not is_drawn or rows[0]["kept"] == pytest.approx(rows[0]["bound"] / 1.25, rel=1e-3)
        spec = speed_ups.lines([variant] * 7)
        assert ("; red: " in spec["title"]["subtitle"]) == is_drawn == (len(spec["layer"]) == 5)
        assert ("; red: " in drawing().vegalite_to_svg(json.dumps(spec))) == is_drawn
    strokes = speed_ups.lines([other] * 7)["layer"][2]["data"]["values"]
    most = simulation["policies"]["on-demand"]["step_ms"] / other["kept_bound_ms"]
    assert [row["most"] for row in strokes] == pytest.approx([most] * 8, rel=1e-3)


def test_two_cards_of_one_name_are_told_apart(simulation: dict[str, Any]) -> None:
    rows = speed_ups.chart([simulation, simulation])["data"]["values"]
    assert len({row["workload"] for row in rows}) == 2


def several(simulation: dict[str, Any], **bounds: float | None) -> list[dict[str, Any]]:
    """The simulation under other names with other bounds, ms."""
    return [
        simulation | {"workload": f"{name}:batch=1", "bound_ms": bound, "kept_bound_ms": bound}
        for name, bound in bounds.items()
    ]


def test_many_simulations_have_a_line_each_and_a_mean(simulation: dict[str, Any]) -> None:
    simulations = several(
        simulation, **{f"w{number}": simulation["bound_ms"] for number in range(7)}
    )
    spec = speed_ups.chart(simulations)
    _, points, strokes, beyond = (layer["data"]["values"] for layer in spec["layer"])
    names = [f"w{number}" for number in range(7)] + ["geometric mean"]
    assert [row["workload"] for row in points] == names, (
        "on-demand is where the axis begins, unlimited beyond the bound"
    )
    assert {row["policy"] for row in points} == {"deepum"}
    value = simulation["policies"]["deepum"]["speed_up_over_on_demand"]
    assert [row["value"] for row in points] == pytest.approx([value] * 8, rel=1e-4)
    most = simulation["policies"]["on-demand"]["step_ms"] / simulation["bound_ms"]
    assert [(row["workload"], row["most"]) for row in strokes] == [
        (name, pytest.approx(most, rel=1e-4)) for name in names
    ]
    assert beyond == []
    vega = drawing()
    assert all(f">{name}<" in vega.vegalite_to_svg(json.dumps(spec)) for name in names)


def test_one_that_is_far_from_the_others_stands_at_the_end_in_figures(
    simulation: dict[str, Any],
) -> None:
    bound = simulation["bound_ms"]
    spec = speed_ups.chart(
        several(simulation, a=bound, b=bound, c=bound, d=bound, e=bound, f=bound, g=bound / 1e6)
    )
    _, points, strokes, beyond = (layer["data"]["values"] for layer in spec["layer"])
    (label,) = [row for row in beyond if row["workload"] == "g"]
    most = simulation["policies"]["on-demand"]["step_ms"] / bound * 1e6
    assert label["text"] == f"bound {most:.0f} >"
    assert "g" not in {row["workload"] for row in strokes} and "g" in {
        row["workload"] for row in points
    }
    assert all(row["most"] <= label["at"] for row in strokes)


def test_without_all_bounds_their_mean_is_not_told(simulation: dict[str, Any]) -> None:
    bounds = dict.fromkeys("abcdef", simulation["bound_ms"])
    _, points, strokes, _ = (
        layer["data"]["values"]
        for layer in speed_ups.chart(several(simulation, **bounds, g=None))["layer"]
    )
    assert [row["workload"] for row in strokes] == list("abcdef")
    assert [row["workload"] for row in points][-1] == "geometric mean"


def names_of_lines(simulations: list[dict[str, Any]]) -> list[str]:
    return list(
        dict.fromkeys(
            row["workload"] for row in speed_ups.lines(simulations)["layer"][1]["data"]["values"]
        )
    )[:-1]


def test_lines_of_one_name_are_told_apart(simulation: dict[str, Any]) -> None:
    two = simulation | {"workload": "b:batch=1,image=2"}
    simulations = [
        *several(simulation, a=1.0, b=1.0),
        simulation | {"workload": "b:batch=2,image=2"},
        two,
        simulation,
        simulation,
    ]
    assert names_of_lines(simulations[:3]) == ["a", "b batch=1", "b batch=2 image=2"]
    assert names_of_lines(simulations[2:4]) == ["b batch=2", "b batch=1"], "images are alike"
    assert names_of_lines(simulations[4:]) == ["training (1)", "training (2)"]
    on = f"on {simulation['machine']}"
    assert names_of_lines(
        [simulations[0], simulations[1], simulations[1] | {"machine": "h200"}]
    ) == [
        f"a {on}",
        f"b {on}",
        "b on h200",
    ]


def test_a_file_of_several_simulations_is_read_as_each(
    deepum: Deepum, simulation: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "s.json").write_text(
        json.dumps({"version": 1, "simulations": [simulation, simulation | {"workload": "other"}]})
    )
    found = inputs.read([str(tmp_path / "s.json")])
    assert [(name, document["workload"]) for name, document in found.simulations] == [
        ("s.json", "training"),
        ("s.json", "other"),
    ]
    (tmp_path / "bad.json").write_text(json.dumps({"version": 1, "simulations": [simulation, 3]}))
    result = deepum("report", tmp_path / "bad.json")
    assert result.returncode == 2 and "the simulation's figures make no sense" in result.stderr


def test_faults_of_each_iteration(simulation: dict[str, Any]) -> None:
    policies = simulation["policies"]
    rows = charts.by_iteration(simulation, "steps_faults", "faults", "symlog")["data"]["values"]
    assert [row["value"] for row in rows if row["policy"] == "on-demand"] == pytest.approx(
        policies["on-demand"]["steps_faults"], rel=1e-4
    )
    assert (
        sum(policies["on-demand"]["steps_faults"][3:-1]) / 2
        == policies["on-demand"]["a_step"]["faults"]
    )


def test_inputs_are_told_apart_by_their_content(
    workload: Path, recorded_run: Path, simulation: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "s.json").write_text(json.dumps(simulation))
    names = [
        str(path)
        for path in (
            recorded_run / "run.log",
            tmp_path / "s.json",
            workload,
            recorded_run / "run.json",
        )
    ]
    found = inputs.read(names, steps=2)
    assert [one.name for one in found.workloads] == ["run.log", "training"]
    assert [name for name, _ in found.simulations] == ["s.json"]
    assert [name for name, _ in found.statistics] == ["run.json"]


def test_a_run_is_drawn_from_its_statistics(recorded_run: Path) -> None:
    (found,) = inputs.read([str(recorded_run / "run.json")]).statistics
    page = report(inputs.Inputs(statistics=[found]), [])
    (chart,) = page._charts.values()
    link, faults = chart["vconcat"]
    process = found[1]["processes"][0]["simulated"]
    rows = link["layer"][0]["data"]["values"]
    assert {row["direction"] for row in rows} == {"to the GPU", "to the host"}
    assert max(abs(row["GB/s"]) for row in rows) <= 12.9 * 1.001, "of v100-16gb's link"
    assert rows[-1]["t"] == pytest.approx(process["timeline"][-1]["t_s"])
    assert faults["data"]["values"]


def test_runs_are_compared_by_their_gpu_time(recorded_run: Path) -> None:
    (name, statistics), *_ = inputs.read([str(recorded_run / "run.json")]).statistics
    slow = statistics | {"policy": "on-demand", "gpu_time_s": 2 * statistics["gpu_time_s"]}
    chart = main_chart(inputs.Inputs(statistics=[(name, statistics), ("slow.json", slow)]), [])
    assert [row["text"].split(", ")[1] for row in chart["data"]["values"]] == ["2.00 x", "1.00 x"]


def test_a_picture_is_of_the_kind_asked_for(simulation: dict[str, Any]) -> None:
    drawing()
    assert picture(speed_ups.chart([simulation]), "png").startswith(b"\x89PNG")
    assert b"deepum" in picture(speed_ups.chart([simulation]), "svg")


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ((), "Missing argument 'INPUT...'"),
        (("nowhere",), "nowhere: No such file or directory; "),
        (("text",), "text: is neither JSON nor an event log; name what "),
        (("list.json",), "list.json: is JSON, but neither of a simulation nor of a run; "),
        (("deep",), "deep: is neither JSON nor an event log; name what "),
        (("endless.json",), "endless.json: the simulation's figures make no sense: "),
        (("older.json",), "older.json: the statistics of another version, without "),
        (("half.json",), "half.json: the simulation's figures make no sense: "),
        (("training", "--policy", "luck"), "policy 'luck': is unknown; "),
        (("training", "--timeline", "luck"), "policy 'luck': is unknown; "),
        (("training", "--image", "out.bmp"), "--image out.bmp: is neither .png nor .svg; "),
        (("training", "--machine", "abacus"), "machine 'abacus': "),
    ],
)
def test_what_cannot_be_used_is_one_line(
    deepum: Deepum, workload: Path, arguments: tuple[str, ...], cause: str
) -> None:
    drawing()
    (workload.parent / "text").write_text("no")
    (workload.parent / "list.json").write_text("[1]")
    (workload.parent / "deep").write_text("[" * 100_000)
    endless = {"version": 1, "policies": {"on-demand": {"step_ms": 10**400}}}
    (workload.parent / "endless.json").write_text(json.dumps(endless))
    (workload.parent / "older.json").write_text('{"version": 1, "processes": [], "kernels": 3}')
    (workload.parent / "half.json").write_text('{"policies": {"deepum": {}}}')
    result = deepum("report", *arguments, cwd=workload.parent)
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert result.stderr.startswith("deepum: error: ") and cause in result.stderr


def damaged(value: Any, random: Random) -> Any:
    """The same with one thing in it replaced."""
    if isinstance(value, (dict, list)) and value and random.random() < 0.8:
        copied: Any = dict(value) if isinstance(value, dict) else list(value)
        key = random.choice(list(copied) if isinstance(copied, dict) else range(len(copied)))
        copied[key] = damaged(copied[key], random)
        return copied
    return random.choice([None, -1, 0, "x", [], {}, [1], {"a": 1}, float("inf"), True])


def test_damaged_files_are_refused_or_drawn(
    simulation: dict[str, Any], recorded_run: Path, tmp_path: Path
) -> None:
    random = Random(11)
    statistics = json.loads((recorded_run / "run.json").read_text())
    refused = 0
    for whole in (simulation, statistics):
        for _ in range(300):
            (tmp_path / "d.json").write_text(json.dumps(damaged(whole, random)))
            try:
                given = inputs.read([str(tmp_path / "d.json")])
                json.dumps(report(given, [])._charts)
            except DeepumError as error:
                assert error.line.startswith("deepum: error: ")
                refused += 1
    assert 0 < refused < 600


def test_a_place_that_cannot_be_written_is_said(deepum: Deepum, recorded_run: Path) -> None:
    drawing()
    result = deepum(
        "report", recorded_run / "run.json", "--output", recorded_run / "no" / "out.html"
    )
    assert result.returncode == 125
    assert "no/out.html: No such file or directory; name a file" in result.stderr


def test_without_numpy_the_laboratory_is_refused_in_one_line(
    deepum: Deepum, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError('not here', name='numpy')\n")
    path = {"PYTHONPATH": f"{tmp_path}:{environment['PYTHONPATH']}"}
    for command, extra in (("simulate", "lab"), ("report", "report"), ("trace", "lab")):
        result = deepum(command, "--any", "thing", "--help", env=path)
        line = (
            f"deepum: error: deepum {command}: needs numpy; install it with `pip install "
            f"deepum[{extra}]`\n"
        )
        assert (result.returncode, result.stdout, result.stderr) == (125, "", line)
    needed("torch", "torch")
    result = deepum("record", "--model", "lstm", tmp_path / "lstm.trace", env=path)
    assert (result.returncode, result.stdout) == (125, "")
    assert (
        result.stderr
        == "deepum: error: this command: needs numpy; install it with `pip install deepum[lab]`\n"
    )


def test_without_numpy_the_help_says_what_needs_it(
    deepum: Deepum, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError('not here', name='numpy')\n")
    path = {"PYTHONPATH": f"{tmp_path}:{environment['PYTHONPATH']}"}
    result = deepum("--help", env=path)
    assert result.returncode == 0 and [
        result.stdout.count(f"Needs the extra `{extra}`.") for extra in ("lab", "plan", "report")
    ] == [3, 2, 1]
    assert deepum("machines", env=path).returncode == 0


@pytest.mark.parametrize("package", ["vl_convert", "pyarrow"])
def test_a_missing_package_is_one_line_with_the_extra_that_has_it(
    deepum: Deepum, environment: dict[str, str], workload: Path, tmp_path: Path, package: str
) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / f"{package}.py").write_text("raise ImportError('not here')\n")
    path = {"PYTHONPATH": f"{tmp_path / 'without'}:{environment['PYTHONPATH']}"}
    commands = {
        "vl_convert": ("report", workload),
        "pyarrow": ("trace", "convert", workload, "--output", "x.parquet"),
    }
    result = deepum(*commands[package], env=path)
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (125, "", 1)
    extra = {"vl_convert": "deepum[report]", "pyarrow": "deepum[columns]"}[package]
    assert re.match(
        rf"deepum: error: \S+: is missing, .*; install it with `pip install {re.escape(extra)}`$",
        result.stderr.strip(),
    )


def test_tables_and_texts_are_escaped() -> None:
    page = Page("a & b")
    page.table(("<h>",), [("<c>",)])
    page.verbatim(["<v>"])
    page.text("<t>")
    page.heading("<n>")
    assert not re.findall(r"<[hcvtn]>", "".join(page._body))
