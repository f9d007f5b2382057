"""One call of an operator, as it is seen: what it reads, changes and makes."""

from __future__ import annotations

from typing import Any

import torch

from deepum.pytorch.arguments import storage_of, storage_or_none, tensors_in
from deepum.rematerialise.graph import Content
from deepum.rematerialise.pytorch.calls import (
    NO_MEMORY,
    ZEROS,
    generator_of,
    settings,
    view_of,
)
from deepum.rematerialise.pytorch.memory import Home
from deepum.rematerialise.pytorch.operators import Operator

_PARAMETER = torch.nn.Parameter


class Invocation:
    """homes: of the storages that it is given, by key, each with the storage. changed: of those
    whose content it changes. is_opaque: it is given what is not tracked, or gives it: it cannot be
    repeated.
    """

    __slots__ = (
        "args",
        "changed",
        "function",
        "generator",
        "homes",
        "is_opaque",
        "kwargs",
        "operator",
        "settings",
        "state",
        "statistics",
    )

    def __init__(
        self, operator: Operator, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.operator = operator
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.homes: dict[int, tuple[Home, Any]] = {}
        self.changed: dict[int, Home] = {}
        self.statistics = operator.running_statistics(args)
        self.is_opaque = False
        self.settings: Any = None
        self.generator: Any = None
        self.state: Any = None

    def find_changed(self) -> None:
        """Fill `changed`, when `homes` is known."""
        operator = self.operator
        for place in (*operator.changed, *self.statistics):
            if place < len(self.args):
                self._change(self.args[place])
        for name in operator.changed_names.intersection(self.kwargs):
            self._change(self.kwargs[name])

    def _change(self, value: Any) -> None:
        for tensor in tensors_in(value):
            storage = storage_or_none(tensor)
            known = self.homes.get(storage._cdata) if storage is not None else None
            if known is not None:
                home = known[0]
                self.changed[home.key] = home
                if tensor.requires_grad and tensor.is_leaf:
                    home.is_parameter = True

    def prepare(self, device: torch.device) -> None:
        """Note what it depends on beside its arguments, right before it is called."""
        self.settings = settings()
        if self.operator.is_random:
            self.generator = generator_of(device, self.kwargs, self.args)
            self.state = self.generator.get_state()

    def templates(self, places: dict[int, int]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments and named arguments with views for tensors; places: of inputs, by key."""
        known = None if self.operator.is_metadata_only else places
        args = tuple(
            view_of(one, ZEROS)
            if at in self.statistics and one is not None
            else _template(one, known)
            for at, one in enumerate(self.args)
        )
        return args, {name: _template(one, known) for name, one in self.kwargs.items()}

    def contents(self) -> list[Content]:
        """Of its arguments, that are read."""
        if self.operator.is_metadata_only:
            return []
        return [home.content for home, _ in self.homes.values()]


# A function of its own, not one within `templates` that would call itself: that were a cycle of
# references, which kept the tensors until the next garbage collection.
def _template(value: Any, places: dict[int, int] | None) -> Any:
    if isinstance(value, torch.Tensor):
        if places is None:
            return view_of(value, NO_MEMORY)
        place = places.get(storage_of(value)._cdata)
        # Without a place: a number that lies on another device, or a tensor without elements.
        return value.clone() if place is None else view_of(value, place)
    if isinstance(value, (list, tuple)):
        return [_template(one, places) for one in value]
    return value


def is_parameter(tensor: Any) -> bool:
    """Whether it is a module's parameter."""
    # As nn.Parameter's own check of instances, which is slow, does it.
    return type(tensor) is _PARAMETER or getattr(tensor, "_is_param", False)
