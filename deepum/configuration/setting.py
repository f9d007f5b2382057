"""What a setting is: its name, its kind, its default and range, and how its text is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deepum.configuration.plain_rules import parse_rules
from deepum.errors import UsageError
from deepum.sizes import format_size, parse_size

Value = int | bool | str | None

MOST_DEVICES = 16  # DEEPUM_MAX_DEVICES, native/wire/records.h

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


@dataclass(frozen=True)
class Setting:
    """One setting. `kind` is size, sizes (one a GPU), count, boolean, choice, path, text or rules
    (plain_rules.py).

    `low` and `high` are inclusive and in the kind's unit. A size may be one of the `choices` as
    well.
    """

    name: str
    kind: str
    help: str
    default: Value = None
    readers: tuple[str, ...] = ("daemon",)  # of launcher, shim, daemon, program
    low: int = 0
    high: int = (1 << 63) - 1
    choices: tuple[str, ...] = ()
    unset: str = ""  # what holds while it is not set, for those without a default

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"DEEPUM_{self.name.upper()}"

    @property
    def option(self) -> str:
        """The option of `deepum run`, if it has one of its own (deepum.configuration.settings,
        OPTIONS).
        """
        return f"--{self.name.replace('_', '-')}"

    @property
    def default_text(self) -> str:
        """The default as people read it: in words where there is none, sizes with a unit."""
        return self.unset or (
            format_size(int(self.default or 0)) if self.kind == "size" else self.text(self.default)
        )

    def parse(self, text: str, source: str) -> Value:
        """The value of a text; `source` names where it came from in the error. Raises
        UsageError.
        """
        try:
            return self._value(text)
        except ValueError as error:
            raise UsageError(f"{source}: {error}") from None

    def _value(self, text: str) -> Value:
        if self.kind == "boolean":
            if text.strip().lower() not in _TRUE | _FALSE:
                raise ValueError(f"'{text}' is neither true nor false; write 1 or 0")
            return text.strip().lower() in _TRUE
        if self.kind == "choice":
            if text not in self.choices:
                raise ValueError(f"'{text}' is unknown; choose one of {', '.join(self.choices)}")
            return text
        if self.kind in ("path", "text"):
            if not text or "\0" in text:
                raise ValueError("is empty; give a value or leave it out")
            return text
        if self.kind == "rules":
            return parse_rules(text)
        if self.kind == "sizes":
            return self._sizes(text)
        if self.kind == "size" and text in self.choices:
            return text
        if self.kind == "size":
            value = self._size(text)
        else:
            if not re.fullmatch(r"-?\d{1,18}", text.strip()):
                raise ValueError(
                    f"'{text}' is not a whole number; write one like "
                    f"{self.default if self.default is not None else 1}"
                )
            value = int(text)
        if not self.low <= value <= self.high:
            raise ValueError(f"'{text}' is out of range; give {self.range_text}")
        return value

    def _size(self, text: str) -> int:
        try:
            return parse_size(text)
        except ValueError as error:
            raise ValueError(", or ".join([str(error), *self.choices])) from None

    def _sizes(self, text: str) -> Value:
        """Bytes; of several sizes, which are for one GPU each and the last for all further ones,
        the text with commas between.
        """
        parts = text.split(",")
        values = [parse_size(part) for part in parts]
        if len(values) > MOST_DEVICES:
            raise ValueError(f"'{text}' has more than {MOST_DEVICES} sizes; give one for each GPU")
        for part, value in zip(parts, values, strict=True):
            if not self.low <= value <= self.high:
                raise ValueError(f"'{part}' is out of range; give {self.range_text}")
        return values[0] if len(values) == 1 else ",".join(map(str, values))

    @property
    def range_text(self) -> str:
        """What may be given, in words."""
        shown = format_size if self.kind in ("size", "sizes") else str
        if self.kind == "choice":
            return ", ".join(self.choices)
        if self.kind == "sizes":
            return (
                f"at least {shown(self.low)}; several with commas between: one for each GPU, the "
                f"last for all further ones"
            )
        if self.kind not in ("size", "count"):
            words = {
                "boolean": "0 or 1",
                "text": "text",
                "rules": "sizes, size ranges, libraries, LIBRARY:SIZES, none",
            }
            return words.get(self.kind, "a path")
        if (self.low, self.high) == (0, 1):
            return "0 or 1"
        ends = (
            f"at least {shown(self.low)}"
            if self.high >= (1 << 63) - 1
            else f"{shown(self.low)} to {shown(self.high)}"
        )
        return ", or ".join([ends, *self.choices])

    def text(self, value: Value) -> str:
        """The value as an environment variable carries it; sizes in bytes."""
        return str(int(value)) if isinstance(value, bool) else str(value)
