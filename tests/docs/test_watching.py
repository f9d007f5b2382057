"""The page about watching has each figure, key and command that there is."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from deepum.daemon.figures import DaemonFigures, SessionFigures

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "watching.md").read_text()


def test_each_figure_has_a_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \| \S", PAGE[PAGE.index("## Figures") :], re.MULTILINE)
    assert rows == [
        field.name for kind in (SessionFigures, DaemonFigures) for field in fields(kind)
    ]


def test_each_key_of_top_is_named() -> None:
    app = pytest.importorskip("deepum.top.app")
    keys = {binding.key.replace("question_mark", "?") for binding in app.Sessions.BINDINGS}
    table = PAGE[PAGE.index("| key | does |") : PAGE.index("It fits 80 columns")]
    assert keys <= set(re.findall(r"`(.)`", table))


def test_the_picture_is_whole_and_reaches_for_nothing() -> None:
    picture = (ROOT / "docs" / "top.svg").read_text()
    assert "train_gpt2.py" in picture and picture.rstrip().endswith("</svg>")
    assert not re.search(r"url\(['\"]?http|<script|<image", picture)
