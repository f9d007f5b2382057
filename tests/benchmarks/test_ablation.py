"""benchmarks/ablation.py: what it runs, what it keeps, and that it goes on where it stopped."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def ablation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module; its runs are written down, not made."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("ablation", ROOT / "benchmarks" / "ablation.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: list[tuple[str, list[str]]] = []

    def run(name: str, options: list[str], script: list[str]) -> Any:
        made.append((name, options))
        step = module.Run.__dataclass_fields__  # the real class, so that what is kept of it exists
        assert {"name", "steps", "peak_allocated_bytes", "statistics"} <= set(step)
        from main_job import Step

        counts = {"faults": 10, "bytes_h2d": 2**30, "bytes_d2h": 2**31, "fault_batches": 1, "kernels": 5}
        ms = 100.0 if "on-demand" in name else 40.0 if "unlimited" in name else 50.0
        return module.Run(name, [Step(ms, counts)] * 5, 3 * 2**30, {"peak_resident_bytes": 1, "bytes_discarded": 0})

    monkeypatch.setattr(module, "run", run)
    module.made = made  # type: ignore[attr-defined]
    return module


def call(module: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["ablation.py", *arguments])
    module.main()


def test_each_row_is_run_with_its_mechanisms_and_told_beside_the_bound(
    ablation: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call(ablation, monkeypatch, "mechanisms", "--tiny")
    options = {name.rsplit(": ", 1)[1]: " ".join(given) for name, given in ablation.made}
    assert set(options) == {"unlimited", *ablation.ROWS}
    assert "--policy on-demand" in options["on-demand"]
    assert "--headroom-blocks 0" in options["+ prefetch"] and "--headroom-blocks" not in options["+ pre-eviction"]
    assert "--invalidation 1" in options["+ invalidation"] and "tables" in options["+ invalidation"]
    assert "tables" not in options["ours"] and "--invalidation 1" in options["ours"]
    out = capsys.readouterr().out
    # 3 GiB on a card of 1: 2 GiB must move at 12.9 GB/s, more than the 40 ms of unlimited memory.
    assert "lower bound 166.5 ms" in out
    ours = next(line for line in out.splitlines() if line.strip().startswith("ours "))
    assert ours.split()[1:] == ["50.0", "10", "1.00", "2.00", "2.00", "0.30"]


def test_what_is_in_the_file_is_not_run_again(ablation: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    call(ablation, monkeypatch, "degrees", "--tiny", "--json", str(results))
    first = len(ablation.made)
    assert first == 1 + 2 * len(ablation.DEGREES)
    told = json.loads(results.read_text())
    forgotten = sorted(told["runs"])[0]
    del told["runs"][forgotten]
    results.write_text(json.dumps(told))
    call(ablation, monkeypatch, "degrees", "--tiny", "--json", str(results))
    assert [name for name, _ in ablation.made[first:]] == [forgotten]


@pytest.mark.parametrize("content", ["", "[]", '{"version": 1}', "no json"])
def test_another_file_is_refused_in_one_line(ablation: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str) -> None:
    results = tmp_path / "results.json"
    results.write_text(content)
    with pytest.raises(SystemExit) as ended:
        call(ablation, monkeypatch, "mechanisms", "--tiny", "--json", str(results))
    assert str(results) in str(ended.value) and "\n" not in str(ended.value)
    assert results.read_text() == content
