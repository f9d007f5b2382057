"""Calls of operators, kept so that they can be made again with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from deepum.pytorch.arguments import tensors_in

_AUTOCAST = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet(
    torch._C.DispatchKey.AutocastCUDA
)


class View(NamedTuple):
    """A tensor argument, as a view of the call's input number `place`; or of no memory, where its
    content is not read (NO_MEMORY), or of zeros.
    """

    place: int
    dtype: Any
    device: Any
    shape: Any
    stride: Any
    offset: int
    requires_grad: bool
    is_conjugate: bool
    is_negative: bool


NO_MEMORY = -1
ZEROS = -2


def view_of(tensor: Any, place: int) -> View:
    """What it takes to make the tensor again."""
    return View(
        place,
        tensor.dtype,
        tensor.device,
        tensor.shape,
        tensor.stride(),
        tensor.storage_offset(),
        tensor.requires_grad,
        tensor.is_conj(),
        tensor.is_neg(),
    )


def restore(view: View, storages: list[Any]) -> Any:
    """The tensor of a view."""
    if view.place == ZEROS:
        return torch.zeros(view.shape, dtype=view.dtype, device=view.device)
    if view.place == NO_MEMORY:
        last = sum((n - 1) * s for n, s in zip(view.shape, view.stride, strict=True))
        storage = torch._C._construct_storage_from_data_pointer(
            0, view.device, max(0, last + 1) * view.dtype.itemsize
        )
        tensor = torch.empty(0, dtype=view.dtype, device=view.device)
        tensor.set_(storage, 0, view.shape, view.stride)
    else:
        tensor = torch.empty(0, dtype=view.dtype, device=view.device)
        tensor.set_(storages[view.place], view.offset, view.shape, view.stride)
    if view.is_conjugate:
        tensor = torch._conj(tensor)
    if view.is_negative:
        tensor = torch._neg_view(tensor)
    if view.requires_grad:
        tensor.requires_grad_(True)
    return tensor


def _argument(value: Any, storages: list[Any]) -> Any:
    if isinstance(value, View):
        return restore(value, storages)
    if isinstance(value, list):
        return [_argument(one, storages) for one in value]
    return value


class Settings(NamedTuple):
    """What changes bits beside the arguments."""

    grad: bool
    threads: int
    inference: bool
    deterministic: bool
    warns: bool  # and goes on where an operator cannot be
    matmul: str


def settings() -> Settings:
    """As they are now, in this thread."""
    return Settings(
        torch.is_grad_enabled(),
        torch.get_num_threads(),
        torch.is_inference_mode_enabled(),
        torch._C._get_deterministic_algorithms(),
        torch._C._get_deterministic_algorithms_warn_only(),
        torch._C._get_float32_matmul_precision(),
    )


class _Under:
    """In this block operators run as they did under the settings, past autograd, autocast and
    modes.
    """

    def __init__(self, wanted: Settings) -> None:
        self._wanted = wanted
        self._now = settings()
        self._guards: list[Any] = []

    def __enter__(self) -> None:
        for guard in (
            torch.inference_mode(self._wanted.inference),  # first: it lets autograd in
            torch._C._DisableTorchDispatch(),
            torch._C._AutoDispatchBelowADInplaceOrView(),
            torch._C._ExcludeDispatchKeyGuard(_AUTOCAST),
        ):
            guard.__enter__()
            self._guards.append(guard)
        self._set(self._wanted, self._now)

    def __exit__(self, *reason: object) -> None:
        self._set(self._now, self._wanted)
        while self._guards:
            self._guards.pop().__exit__(None, None, None)

    @staticmethod
    def _set(to: Settings, since: Settings) -> None:
        torch._C._set_grad_enabled(to.grad)
        if to.threads != since.threads:
            torch.set_num_threads(to.threads)
        if (to.deterministic, to.warns) != (since.deterministic, since.warns):
            torch.use_deterministic_algorithms(to.deterministic, warn_only=to.warns)
        if to.matmul != since.matmul:
            torch._C._set_float32_matmul_precision(to.matmul)


under: Callable[[Settings], _Under] = _Under


class Call(NamedTuple):
    """function: an operator of PyTorch's. args, kwargs: with views for tensors. made: which of the
    tensors of the result have the outputs; None: the first argument, changed in place, has the
    output. fresh: bytes of the memory that is made for that first, if nothing of what it was is
    read, on a device. generator, state: of random numbers, before the call.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    made: tuple[int, ...] | None
    settings: Settings
    generator: Any = None
    state: Any = None
    fresh: int = 0
    device: Any = None

    def again(self, storages: list[Any]) -> list[Any]:
        """The tensors of the result, computed from inputs in these storages."""
        with under(self.settings):
            args = [_argument(one, storages) for one in self.args]
            kwargs = {name: _argument(one, storages) for name, one in self.kwargs.items()}
            if self.generator is None:
                return tensors_in(self.function(*args, **kwargs))
            before = self.generator.get_state()
            self.generator.set_state(self.state)
            try:
                return tensors_in(self.function(*args, **kwargs))
            finally:
                self.generator.set_state(before)


def generator_of(device: Any, kwargs: dict[str, Any], args: tuple[Any, ...]) -> Any:
    """The generator that a random operator on a device draws from."""
    given = kwargs.get("generator")
    if given is None:
        given = next((one for one in args if isinstance(one, torch.Generator)), None)
    if given is not None:
        return given
    if device.type == "cuda":
        index = device.index if device.index is not None else torch.cuda.current_device()
        return torch.cuda.default_generators[index]
    return torch.default_generator
