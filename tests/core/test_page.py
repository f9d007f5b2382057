"""docs/core.md and docs/core-reference.md keep up with the core."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from deepum.core import CoreSettings, CoreStatistics, default_parameters

ROOT = Path(__file__).resolve().parents[2]
PAGE = "\n".join(
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("core.md", "core-reference.md")
)
CHOICES = ("policy", "prediction", "eviction_order", "advice", "writes", "parameters")
GROUPS = {name.partition(".")[0] for name in default_parameters()}
SOURCES = "\n".join(
    path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "native" / "core").rglob("*.[ch]pp"))
)


@pytest.mark.parametrize(
    "name", [field.name for field in (*fields(CoreSettings), *fields(CoreStatistics))]
)
def test_every_setting_and_statistic_is_named(name: str) -> None:
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize(
    "name", [field.name for field in fields(CoreSettings) if field.name not in CHOICES]
)
def test_the_defaults_are_those_of_the_core(name: str) -> None:
    found = re.search(rf"`{name}` \((?:N, )?(\d+)", PAGE)
    assert found is not None
    assert int(found[1]) == getattr(CoreSettings.default(), name)


@pytest.mark.parametrize(("name", "value"), re.findall(r"`(k[A-Z]\w+)` \((\d+)\)", PAGE))
def test_constants_have_the_values_of_the_sources(name: str, value: str) -> None:
    found = re.search(rf"{name} = (\d+);", SOURCES)
    assert found is not None
    assert found[1] == value


@pytest.mark.parametrize(("name", "value"), re.findall(r"`(\w+\.\w+)`(?:th)? \((\d+)\)", PAGE))
def test_parameters_have_the_values_of_the_core(name: str, value: str) -> None:
    assert default_parameters()[name] == int(value)


@pytest.mark.parametrize(
    "name",
    sorted(
        {name for name in re.findall(r"`(\w+\.\w+)`", PAGE) if name.partition(".")[0] in GROUPS}
    ),
)
def test_parameters_are_those_of_the_core(name: str) -> None:
    assert name in default_parameters()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(k[A-Z]\w+)`", PAGE))))
def test_constants_are_those_of_the_sources(name: str) -> None:
    assert re.search(rf"\b{name} = ", SOURCES)
