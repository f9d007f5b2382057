"""Names and numbers; no PyTorch is needed for any of it, and what needs it says so."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from captured import SMALL

from deepum.errors import UsageError
from deepum.workloads import WORKLOADS, parse

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
PAPER = {
    "resnet152",
    "resnet200",
    "mobilenet",
    "dcgan",
    "bert-base",
    "bert-large",
    "gpt2-l",
    "gpt2-xl",
    "dlrm",
}


def test_the_nine_of_the_paper_are_there() -> None:
    assert {name for name, one in WORKLOADS.items() if one.paper} == PAPER
    assert set(SMALL) == set(WORKLOADS)


def test_numbers_are_those_given_and_the_workloads_own() -> None:
    request = parse("gpt2-xl: batch=3,seq=512")
    assert (request.numbers["batch"], request.numbers["seq"], request.numbers["layers"]) == (
        3,
        512,
        48,
    )
    assert parse(str(request)) == request
    assert parse("gpt2-xl").numbers == WORKLOADS["gpt2-xl"].numbers


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "gpt2-xxl",
            "workload 'gpt2-xxl': is unknown; did you mean gpt2-xl? `deepum workloads` lists them",
        ),
        ("zzz", "workload 'zzz': is unknown; `deepum workloads` lists them"),
        (
            "gpt2-xl:bach=3",
            "workload gpt2-xl: has no number 'bach'; it has batch, seq, layers, width, heads",
        ),
        ("gpt2-xl:batch", "workload gpt2-xl: 'batch' is no number; write batch=5"),
        ("gpt2-xl:batch=-1", "workload gpt2-xl: 'batch=-1' is no number; write batch=5"),
        ("gpt2-xl:batch=many", "workload gpt2-xl: 'batch=many' is no number; write batch=5"),
    ],
)
def test_what_is_no_workload_is_said(text: str, cause: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(text)
    assert str(error.value) == cause


def test_the_list_is_shown(deepum: Deepum) -> None:
    shown = deepum("workloads")
    assert shown.returncode == 0
    names = [line.split()[0] for line in shown.stdout.splitlines() if not line.startswith(" ")]
    assert names == list(WORKLOADS)
    workloads = json.loads(deepum("workloads", "--json").stdout)
    assert {name for name, one in workloads.items() if one["paper"]} == PAPER
    assert workloads["gpt2-xl"]["numbers"]["batch"] == 5
    assert workloads["experts"]["steps_differ"]


@pytest.fixture
def no_torch(tmp_path: Path) -> None:
    """An installation without PyTorch."""
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent" / "torch.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
    )


@pytest.mark.usefixtures("no_torch")
@pytest.mark.parametrize(
    "command", [("record", "--model", "gpt2-small", "out"), ("simulate", "gpt2-small")]
)
def test_without_pytorch_one_line_names_what_to_install(
    deepum: Deepum, environment: dict[str, str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    path = f"{tmp_path / 'absent'}:{environment.get('PYTHONPATH', '')}"
    result = deepum(*command, env={"PYTHONPATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert result.returncode == 125
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("deepum: error: workload gpt2-small")
    assert result.stderr.endswith("needs PyTorch; pip install 'deepum[torch]'\n")
    assert not (tmp_path / "out").exists()
