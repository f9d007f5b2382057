"""What a call makes and costs, known by its operator and the sizes of its arguments."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Any

import torch

from deepum.pytorch.arguments import storage_of, tensors_in

_SAMPLES = 3  # of a call's time on a GPU
_MOST_KNOWN = 100_000  # calls; a program whose sizes never repeat begins anew
_SCALARS = (int, float, bool, str, complex, type(None))


class CallCost:
    """bytes: memory that a call's results take. workspace: what it takes beside that while it runs;
    None: not known yet. cost: nanoseconds; the least that was seen.
    """

    __slots__ = ("bytes", "cost", "pending", "samples", "workspace")

    def __init__(self, size: int) -> None:
        self.bytes = size
        self.workspace: int | None = None
        self.cost = 0.0
        self.samples = 0
        self.pending: tuple[Any, Any] | None = None

    @property
    def room(self) -> int:
        """Bytes that the call takes while it runs, as far as is known."""
        return self.bytes + (self.workspace or 0)

    def sample(self, nanoseconds: float) -> None:
        """One more time."""
        self.cost = nanoseconds if self.samples == 0 else min(self.cost, nanoseconds)
        self.samples += 1


def _shape(tensor: Any) -> Hashable:
    if tensor.is_nested:
        return tensor.dtype, "nested"
    return tensor.dtype, tensor.shape, tensor.stride()


def _signature(values: Any) -> Hashable:
    parts: list[Hashable] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            parts.append(_shape(value))
        elif isinstance(value, _SCALARS):
            parts.append(value)
        elif isinstance(value, (list, tuple)):
            parts.append(_signature(value))
        else:
            parts.append(str(value))
    return tuple(parts)


def _on_meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, (list, tuple)):
        return [_on_meta(one) for one in value]
    if isinstance(value, torch.device):
        return torch.device("meta")
    return value


def _predict(function: Any, args: Any, kwargs: dict[str, Any], device: Any) -> int:
    """Bytes of the results, by the shape function of the operator; 0 where it has none."""
    try:
        on_meta = {name: _on_meta(one) for name, one in kwargs.items() if name != "generator"}
        if "device" in kwargs or not tensors_in([*args, *kwargs.values()]):
            on_meta["device"] = torch.device("meta")
        on_meta.pop("pin_memory", None)
        given = [_on_meta(one) for one in args]
        before = {storage_of(one)._cdata for one in tensors_in(given)}
        made = {
            storage._cdata: storage.nbytes()
            for one in tensors_in(function(*given, **on_meta))
            for storage in (storage_of(one),)
        }
    except Exception:  # an operator without a shape function says so in many ways
        return 0
    return sum(size for key, size in made.items() if key not in before)


class Measures:
    """By signature. device: of the tensors."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._known: dict[Hashable, CallCost] = {}

    def of_change(self, function: Any, args: Any) -> CallCost:
        """What is known of a call that changes its arguments and makes nothing."""
        key = (function, tuple([_shape(one) for one in tensors_in(args)]))
        known = self._known.get(key)
        return known if known is not None else self._keep(key, CallCost(0))

    def of(self, function: Any, args: Any, kwargs: dict[str, Any]) -> CallCost:
        """What is known of such a call; what its shape function says, the first time."""
        key = (
            function,
            _signature(args),
            (tuple(kwargs), _signature(kwargs.values())) if kwargs else None,
        )
        known = self._known.get(key)
        if known is None:
            known = self._keep(key, CallCost(_predict(function, args, kwargs, self._device)))
        return known

    def _keep(self, key: Hashable, known: CallCost) -> CallCost:
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known[key] = known
        return known

    def begin(self, known: CallCost) -> Any:
        """Before the call."""
        if self._device.type != "cuda":
            return time.perf_counter_ns()
        if known.pending is not None and known.pending[1].query():
            began, ended = known.pending
            known.sample(began.elapsed_time(ended) * 1e6)
            known.pending = None
        if known.samples >= _SAMPLES or known.pending is not None:
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def end(self, known: CallCost, began: Any) -> float:
        """Behind it: nanoseconds that it is taken to cost."""
        if self._device.type != "cuda":
            known.sample(float(time.perf_counter_ns() - began))
        elif began is not None:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            known.pending = began, event
        return known.cost
