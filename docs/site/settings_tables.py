"""The tables of docs/configuration.md, made of the settings' definitions."""

from __future__ import annotations

import tables

from deepum.configuration.setting import Setting
from deepum.configuration.settings import OPTIONS, TUNABLES, VARIABLES, VARIED_BY_TESTS

_MEANING = ("meaning", "values", "default", "read by")


def _meaning(setting: Setting) -> tuple[str, ...]:
    readers = ", ".join(setting.readers)
    return setting.help, setting.range_text, setting.default_text, readers


def written(text: str) -> str:
    """The page with its four tables as the definitions have them."""
    parts = {
        "options": tables.markdown(
            ("option", "variable", *_MEANING),
            [(f"`{s.option}`", f"`{s.variable}`", *_meaning(s)) for s in OPTIONS],
        ),
        "tunables": tables.markdown(
            ("tunable", "variable", *_MEANING),
            [(f"`{s.name}`", f"`{s.variable}`", *_meaning(s)) for s in TUNABLES],
        ),
        "variables": tables.markdown(
            ("variable", *_MEANING), [(f"`{s.variable}`", *_meaning(s)) for s in VARIABLES]
        ),
        "constants": tables.markdown(
            ("variable", *_MEANING), [(f"`{s.variable}`", *_meaning(s)) for s in VARIED_BY_TESTS]
        ),
    }
    for name, table in parts.items():
        text = tables.replaced(text, name, table)
    return text
