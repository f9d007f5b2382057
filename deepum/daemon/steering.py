"""Settings of a session that change while it runs: its budget, how far it prefetches ahead, and
whether it prefetches at all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from deepum._core import lib
from deepum.configuration.setting import Value
from deepum.configuration.settings import BY_NAME
from deepum.core import EventWriter
from deepum.errors import UsageError

ON_DEMAND = "on-demand"
POLICIES: tuple[str, ...] = BY_NAME["policy"].choices
_LEAST_BUDGET = BY_NAME["gpu_memory"].low
_MOST_BUDGET = (1 << 63) - 1


@dataclass(frozen=True)
class Changes:
    """What is to change; None: nothing of that kind.

    `budget_bytes` is what managed memory may occupy of each GPU, 0 what it could when the session
    began. `policy` is `on-demand`, which gives no commands any more, or the session's own.
    """

    budget_bytes: int | None = None
    prefetch_degree: int | None = None
    policy: str | None = None

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Changes:
        """Of a request's members; others are left alone. Raises UsageError."""
        changes = cls(**{field.name: request.get(field.name) for field in fields(cls)})
        changes.check()
        return changes

    def check(self) -> None:
        """Raises UsageError when a value cannot be, or nothing is to change."""
        if self == Changes():
            raise UsageError(
                f"set: nothing is to change; give one of {', '.join(f.name for f in fields(self))}"
            )
        budget, degree, most = self.budget_bytes, self.prefetch_degree, BY_NAME["prefetch_degree"]
        if budget is not None and not (
            _whole(budget) and (budget == 0 or _LEAST_BUDGET <= budget <= _MOST_BUDGET)
        ):
            raise UsageError(
                f"budget_bytes: {budget!r:.60} is none; give {_LEAST_BUDGET} bytes or more, or 0 "
                f"for that which the session began with"
            )
        if degree is not None and not (_whole(degree) and most.low <= degree <= most.high):
            raise UsageError(
                f"prefetch_degree: {degree!r:.60} is none; give {most.range_text} launches"
            )
        if self.policy is not None and self.policy not in POLICIES:
            raise UsageError(
                f"policy: {self.policy!r:.60} is none; give one of {', '.join(POLICIES)}"
            )

    def check_policy(self, own: str) -> None:
        """own: the policy that the session began with. Raises UsageError when it cannot change to
        the one that is asked for.
        """
        if self.policy in (None, own) or (self.policy == ON_DEMAND and own != ON_DEMAND):
            return
        step = (
            "start the program anew with that policy"
            if own == ON_DEMAND
            else f"give {ON_DEMAND} or {own}, or start the program anew"
        )
        raise UsageError(f"policy: the session began with {own}; {step}")

    def records(self, sequence: int) -> bytes:
        """SETTING events behind that of that sequence (native/wire/records.h)."""
        return b"".join(
            _record(sequence, setting, value, device) for setting, value, device in self._settings()
        )

    def _settings(self) -> Iterator[tuple[int, int, int]]:
        if self.budget_bytes is not None:
            # Those of them that come into use later get it, too.
            for device in range(int(lib.DEEPUM_MAX_DEVICES)):
                yield lib.DEEPUM_SETTING_BUDGET, self.budget_bytes, device
        if self.prefetch_degree is not None:
            yield lib.DEEPUM_SETTING_PREFETCH_DEGREE, self.prefetch_degree, 0
        if self.policy is not None:
            policy = (
                lib.DEEPUM_POLICY_ON_DEMAND
                if self.policy == ON_DEMAND
                else lib.DEEPUM_POLICY_CORRELATION
            )
            yield lib.DEEPUM_SETTING_POLICY, policy, 0


@dataclass(frozen=True)
class LiveSettings:
    """The settings of a session that may change: as they are, and as it began."""

    policy: str
    own_policy: str
    prefetch_degree: int
    budget_bytes: int | None
    own_budget_bytes: int | None

    @classmethod
    def first(cls, values: Mapping[str, Value], environment: Mapping[str, str]) -> LiveSettings:
        """values: the daemon's settings of the session; environment: all of its variables. The
        budget is None where there are several, one for each GPU.
        """
        policy, budget = str(values["policy"]), None
        with contextlib.suppress(UsageError):  # the shim says so
            if given := environment.get(BY_NAME["gpu_memory"].variable):
                parsed = BY_NAME["gpu_memory"].parse(given, "")
                budget = parsed if isinstance(parsed, int) else None
        return cls(policy, policy, int(values["prefetch_degree"] or 0), budget, budget)

    def changed(self, changes: Changes) -> LiveSettings:
        """What they are afterwards."""
        return replace(
            self,
            policy=self.policy if changes.policy is None else changes.policy,
            prefetch_degree=(
                self.prefetch_degree if changes.prefetch_degree is None else changes.prefetch_degree
            ),
            budget_bytes=(
                self.budget_bytes
                if changes.budget_bytes is None
                else changes.budget_bytes or self.own_budget_bytes
            ),
        )


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _record(sequence: int, setting: int, value: int, device: int) -> bytes:
    writer = EventWriter(sequence - 1)
    writer.setting(setting, value, device)
    return writer.take()
