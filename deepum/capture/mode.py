"""What stands between a captured program and PyTorch: operators on the device are told, choices
that depend on the device are CUDA's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from deepum.capture.device import Device
from deepum.capture.launch import span
from deepum.capture.operators import ALLOCATE, Call, launches

DEVICE = "meta"
_FLASH_MOST_DEPTH = 256
_BIAS_ALIGNMENT = 16  # elements, of a mask's rows: attention.cu


class _Operator:
    """What an operator's schema tells."""

    def __init__(self, function: Any) -> None:
        schema = function._schema
        self.name: str = schema.name.partition("::")[2]
        self.arguments: list[str] = [argument.name for argument in schema.arguments]
        self.changed = [
            argument.name
            for argument in schema.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
        ]


def _tensors(value: Any) -> Iterator[Any]:
    """Tensors of the device in an argument or a result; of sparse ones their indices and values."""
    if isinstance(value, torch.Tensor):
        if value.device.type != DEVICE:
            return
        if value.layout is torch.sparse_coo:
            yield value._indices()
            yield value._values()
        else:
            yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)


def _in_backward() -> bool:
    return bool(torch._C._current_graph_task_id() != -1)


def _uses(tensor: Any) -> tuple[int, int]:
    """References to a tensor, where PyTorch tells them (since 2.10 or so), and to its storage."""
    count = getattr(tensor, "_use_count", None)
    return 0 if count is None else count(), torch._C._storage_Use_Count(
        tensor.untyped_storage()._cdata
    )


class _Count(TorchDispatchMode):
    """How many references there are to a gradient that nobody holds but autograd, when another is
    added to it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.uses: tuple[int, int] | None = None

    def __torch_dispatch__(
        self,
        function: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if function is torch.ops.aten.add.Tensor and _in_backward():
            self.uses = _uses(args[0])
        return function(*args, **(kwargs or {}))


@functools.cache
def _uses_of_autograds_own() -> tuple[int, int]:
    source = torch.empty(1, device=DEVICE, requires_grad=True)
    with _Count() as count:
        twice = source * 1
        (twice.sin() + twice.cos()).sum().backward()
    return count.uses or (0, 0)


class Capture(TorchDispatchMode):
    """Tells a Device of every operator."""

    def __init__(self, device: Device, multiprocessors: int) -> None:
        super().__init__()
        self._device = device
        self._multiprocessors = multiprocessors
        self._operators: dict[Any, _Operator] = {}
        self._add = _Operator(torch.ops.aten.add_.Tensor)
        _uses_of_autograds_own()

    def __torch_dispatch__(
        self,
        function: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        operator = self._operators.get(function)
        if operator is None:
            operator = self._operators[function] = _Operator(function)
        inputs = [tensor for value in (*args, *kwargs.values()) for tensor in _tensors(value)]
        if inputs and operator.name in ("_to_copy", "_local_scalar_dense", "copy_"):
            answer = self._to_host(operator.name, function, args, kwargs)
            if answer is not None:
                return answer[0]
        if operator.name == "add" and self._accumulates(args):
            # input_buffer.cpp, can_accumulate_inplace: what autograd does itself where no dispatch
            # mode watches.
            function, operator = torch.ops.aten.add_.Tensor, self._add
        result = self._run(operator, function, args, kwargs)
        made = self._births(result)
        if operator.name not in ALLOCATE and (made or operator.changed):
            self._tell(
                operator,
                dict(zip(operator.arguments, args, strict=False)) | dict(kwargs),
                inputs,
                made,
            )
        return result

    @staticmethod
    def _run(
        operator: _Operator, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """The result; of sparse tensors by hand where there is no shape function, or one that
        forgets how many rows there are.
        """
        if operator.name == "clone" and args[0].layout is torch.sparse_coo and _in_backward():
            # accumulate_grad.h takes a sparse gradient over as it is; beside a dispatch mode it
            # sees more references, and copies.
            return torch.ops.aten._sparse_coo_tensor_unsafe(
                args[0]._indices(), args[0]._values(), args[0].shape
            )
        if operator.name == "add_" and getattr(args[1], "layout", None) is torch.sparse_coo:
            return args[0]
        return function(*args, **kwargs)

    def _births(self, result: Any) -> list[Any]:
        """Tensors of the result whose storages are new."""
        made = []
        for tensor in _tensors(result):
            storage = tensor.untyped_storage()
            if not self._device.knows(storage):
                self._device.birth(storage)
                made.append(tensor)
        return made

    def _tell(
        self,
        operator: _Operator,
        arguments: Mapping[str, Any],
        inputs: Sequence[Any],
        made: Sequence[Any],
    ) -> None:
        changed = [tensor for name in operator.changed for tensor in _tensors(arguments.get(name))]
        if not changed and not made:  # on the host alone
            return
        if (operator.name == "_to_copy" and not inputs) or (
            operator.name == "copy_" and arguments["src"].device.type != DEVICE
        ):
            self._device.copy(made[0] if made else changed[0], to_device=True)
            return
        rows, same_rows = self._device.rows, self._device.same_rows
        call = Call(
            operator.name,
            arguments,
            inputs,
            changed,
            made,
            self._multiprocessors,
            rows,
            same_rows,
            _in_backward(),
        )
        self._device.carry_out(launches(call))

    @staticmethod
    def _accumulates(args: Sequence[Any]) -> bool:
        old, new = args[0], args[1] if len(args) > 1 else None
        return (
            isinstance(new, torch.Tensor)
            and _in_backward()
            and old.layout is torch.strided
            and old.shape == new.shape
            and old.dtype == new.dtype
            and span(old) == old.numel() * old.itemsize
            and all(
                found <= alone
                for found, alone in zip(_uses(old), _uses_of_autograds_own(), strict=True)
            )
        )

    def _to_host(
        self, name: str, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any] | None:
        """What is read back is zero: nothing computes it."""
        source = args[1] if name == "copy_" else args[0]
        if source.device.type != DEVICE:
            return None
        if name == "_local_scalar_dense":
            self._device.copy(source, to_device=False)
            return (0 if not source.dtype.is_floating_point else 0.0,)
        if name == "copy_":
            if args[0].device.type == DEVICE:
                return None
            self._device.copy(source, to_device=False)
            return (args[0].zero_(),)
        wanted = kwargs.get("device")
        if wanted is None or torch.device(wanted).type == DEVICE:
            return None
        self._device.copy(source, to_device=False)
        return (
            torch.zeros(source.shape, dtype=kwargs.get("dtype") or source.dtype, device=wanted),
        )


class Choices(TorchFunctionMode):
    """Functions that are other operators on a GPU than on the device "meta"."""

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        other = _CHOICES.get(function)
        if other is not None:
            chosen = other(*args, **kwargs)
            if chosen is not NotImplemented:
                return chosen
        return function(*args, **kwargs)


def _dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout.cpp, is_fused_kernel_acceptable: CUDA has it in one kernel."""
    if inplace or not training or not 0 < p < 1 or input.device.type != DEVICE:
        return NotImplemented
    return torch.native_dropout(input, p, training)[0]


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """sdp_utils.cpp: FlashAttention for half precision without a mask, else the memory-efficient
    kernels.
    """
    if query.device.type != DEVICE:
        return NotImplemented
    trains = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
    if attn_mask is None and query.itemsize == 2 and query.shape[-1] <= _FLASH_MOST_DEPTH:
        return torch.ops.aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, False, scale=scale
        )[0]
    if enable_gqa:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    bias = None if attn_mask is None else _bias(attn_mask, query, key)
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        query, key, value, bias, trains, dropout_p, is_causal, scale=scale
    )[0]


def _bias(mask: Any, query: Any, key: Any) -> Any:
    """attention.cu, convert_boolean_attn_mask and pad_bias."""
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(
            mask.logical_not(), float("-inf")
        )
    length = mask.shape[-1]
    if length % _BIAS_ALIGNMENT:
        mask = torch.nn.functional.pad(mask, (0, _BIAS_ALIGNMENT - length % _BIAS_ALIGNMENT))[
            ..., :length
        ]
    return mask.expand(*query.shape[:-1], key.shape[-2])


def _lstm_cell(
    row: Any, state: Sequence[Any], w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
) -> Any:
    """RNN.cpp: two products, and one kernel for all that is pointwise."""
    if row.device.type != DEVICE or b_ih is None or b_hh is None:
        return NotImplemented
    hidden, cell = state
    linear = torch.nn.functional.linear
    return torch.ops.aten._thnn_fused_lstm_cell(
        linear(row, w_ih), linear(hidden, w_hh), cell, b_ih, b_hh
    )[:2]


_CHOICES: dict[Any, Callable[..., Any]] = {
    torch.nn.functional.dropout: _dropout,
    torch.nn.functional.scaled_dot_product_attention: _attention,
    torch.lstm_cell: _lstm_cell,
}
