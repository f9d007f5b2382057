"""What a core is made with: its settings, and the numbers that it was tuned with."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from deepum._core import ffi, lib


@dataclass(frozen=True)
class CoreSettings:
    """Settings of a core; the names and units are those of `deepum_core_settings` in
    native/core/core.h.
    """

    policy: int
    eviction_order: int
    prefetch_degree: int
    execution_ids: int
    execution_records: int
    block_table_rows: int
    block_table_ways: int
    block_table_successors: int
    chain_steps: int
    headroom_blocks: int
    pre_eviction: int
    confidence_launches: int
    invalidation: int
    launch_queue: int
    prediction: int
    advice: int
    writes: int
    table_mebibytes: int
    parameters: tuple[tuple[str, int], ...] = ()
    """Those of native/core/parameters.h that are not the core's own, by name:
    `("planner.least_idle", 3)`.
    """

    @classmethod
    def default(cls, **changes: Any) -> CoreSettings:
        """The core's own defaults, with some changed by name; `parameters` may be any pairs, as
        they come from JSON.
        """
        native = ffi.new("deepum_core_settings *")
        lib.deepum_core_default_settings(native)
        values = {
            field.name: int(getattr(native, field.name))
            for field in fields(cls)
            if field.name != "parameters"
        }
        parameters = tuple((str(name), int(value)) for name, value in changes.pop("parameters", ()))
        return cls(**{**values, **changes}, parameters=parameters)

    def native(self) -> Any:
        """As a `deepum_core_settings *`. ValueError: there is no parameter of that name."""
        native = ffi.new("deepum_core_settings *")
        lib.deepum_core_default_settings(native)
        for field in fields(self):
            if field.name != "parameters":
                setattr(native, field.name, getattr(self, field.name))
        for name, value in self.parameters:
            group, _, parameter = name.partition(".")
            if name not in default_parameters():
                raise ValueError(
                    f"the core has no parameter '{name}'; native/core/parameters.h has all of them"
                )
            setattr(getattr(native.parameters, group), parameter, value)
        return native


@cache
def default_parameters() -> dict[str, int]:
    """The numbers that the core was tuned with, by name: `planner.least_idle`.
    native/core/parameters.h says what each is.
    """
    native = ffi.new("deepum_core_settings *")
    lib.deepum_core_default_settings(native)
    groups = ffi.typeof("deepum_core_parameters").fields
    return {
        f"{group}.{name}": int(getattr(getattr(native.parameters, group), name))
        for group, of_group in groups
        for name, _ in of_group.type.fields
    }
