"""What PyTorch's operators change, from their schemas, and where those say too little."""

from __future__ import annotations

from typing import Any

import torch

_KNOWN_LIBRARIES = {"aten", "torchvision"}
# Running statistics that the schema does not say are changed: by position, where `training` is.
_RUNNING = {
    "native_batch_norm": ((3, 4), 5),
    "cudnn_batch_norm": ((3, 4), 5),
    "miopen_batch_norm": ((3, 4), 5),
    "_native_batch_norm_legit": ((3, 4), 5),
    "_batch_norm_with_update": ((3, 4), None),
    "batch_norm_gather_stats": ((3, 4), None),
    "batch_norm_gather_stats_with_counts": ((3, 4), None),
    "batch_norm_update_stats": ((1, 2), None),
}
# Arguments that are read and changed, where the schema does not say so: the numbers that cuDNN
# draws for dropout, and what its backward pass keeps where the forward pass kept something.
_CHANGED_UNSAID = {
    "_cudnn_rnn": ("dropout_state",),
    "_cudnn_rnn_backward": ("dropout_state", "reserve"),
    "miopen_rnn": ("dropout_state",),
    "miopen_rnn_backward": ("dropout_state", "reserve"),
}


class ChangingOperator:
    """changed: positions of arguments that are changed in place, and names of those given by name.
    An operator that is named as one that changes something, and whose schema does not say what (as
    those of torch.distributed), changes all. makes_beside: it has results beside what it changes
    unsaid, and changes nothing where it is not given that.
    is_view: its results are views of arguments, no memory is read. is_composite: it is made of
    other operators, and comes here whole in inference mode only. is_known: it is of a library whose
    schemas, and the tables here, tell all that its operators do.
    """

    __slots__ = (
        "changed",
        "changed_names",
        "is_composite",
        "is_known",
        "is_view",
        "makes_beside",
        "name",
        "running",
    )

    def __init__(self, function: Any) -> None:
        schema = function._schema
        library, _, name = schema.name.partition("::")
        self.name = name
        self.is_known = library in _KNOWN_LIBRARIES
        written = [
            place
            for place, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        unsaid = _CHANGED_UNSAID.get(name, ()) if library == "aten" else ()
        self.makes_beside = bool(unsaid)
        written += [
            place for place, argument in enumerate(schema.arguments) if argument.name in unsaid
        ]
        if not written and name.endswith("_") and not name.endswith("__"):
            written = [
                place
                for place, argument in enumerate(schema.arguments)
                if "Tensor" in str(argument.type)
            ]
        self.changed = tuple(written)
        self.changed_names = frozenset(schema.arguments[place].name for place in written)
        self.is_view = not written and any(
            argument.alias_info is not None for argument in schema.arguments
        )
        self.is_composite = _has_kernel(function, "CompositeImplicitAutograd") and not any(
            _has_kernel(function, key) for key in ("CPU", "CUDA")
        )
        self.running = _RUNNING.get(name) if library == "aten" else None

    def running_statistics(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """Positions of running statistics that this call updates and does not use."""
        if self.running is None:
            return ()
        places, training = self.running
        if training is not None and not args[training]:
            return ()
        return places


def _has_kernel(function: Any, key: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(function.name(), key))
