"""What operators change that their schemas do not tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from comparing import same, torch

from deepum.rematerialise.pytorch.operators import Operator
from deepum.rematerialise.pytorch.unordered import (
    UNORDERED_ON_CPU,
    UNORDERED_ON_GPU,
    writes_once,
)

aten: Any = torch.ops.aten
# Arguments by whose names operators of PyTorch's keep something from call to call.
_STATE = {"running_mean", "running_var", "dropout_state", "reserve"}
# That only read it: gradients, evaluation, and what gives the new statistics as results.
_READ = (
    *("native_batch_norm_backward", "cudnn_batch_norm_backward", "miopen_batch_norm_backward"),
    *("batch_norm_backward", "_batch_norm_impl_index_backward"),
    *("_batch_norm_no_update", "_native_batch_norm_legit_no_training"),
    *("_batch_norm_with_update_functional", "_native_batch_norm_legit_functional"),
)


def overloads() -> Iterator[Any]:
    """All operators of PyTorch's own that the dispatcher knows."""
    for full in torch._C._dispatch_get_all_op_names():
        library, _, rest = full.partition("::")
        if library == "aten":
            name, _, overload = rest.partition(".")
            yield getattr(getattr(aten, name), overload or "default")


def test_what_is_written_is_never_taken_for_an_input_alone() -> None:
    """In place, by `out` and by `foreach`: whatever a schema says, and whatever is named so."""
    for overload in overloads():
        operator = Operator(overload)
        written = {
            place
            for place, argument in enumerate(overload._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        }
        assert written <= set(operator.changed), overload
        name = operator.name
        if name.endswith("_") and not name.endswith("__"):
            assert operator.changed, overload


def test_state_that_schemas_do_not_tell_of_is_known() -> None:
    for overload in overloads():
        operator = Operator(overload)
        names = [argument.name for argument in overload._schema.arguments]
        if not _STATE.intersection(names) or operator.name in _READ or operator.is_composite:
            continue
        training = [True if name in ("training", "train") else 0.5 for name in names]
        known = {*operator.changed, *operator.running_statistics(tuple(training))}
        kept = {place for place, name in enumerate(names) if name in _STATE}
        assert kept <= known, overload


@pytest.mark.parametrize(
    ("overload", "places"),
    [
        (aten._cudnn_rnn.default, (15,)),
        (aten._cudnn_rnn_backward.default, (19, 20)),
        (aten.rrelu_with_noise.default, (1,)),
        (aten.embedding_renorm_.default, (0,)),
        (aten._foreach_add_.Scalar, (0,)),
        (aten._fused_adam_.default, (0, 1, 2, 3, 4)),
        (aten.record_stream.default, (0,)),
        (aten._fused_moving_avg_obs_fq_helper.default, (3, 4, 5, 6)),
    ],
)
def test_changed_arguments(overload: Any, places: tuple[int, ...]) -> None:
    assert set(places) <= set(Operator(overload).changed)


@pytest.mark.parametrize(
    "overload",
    [
        aten.resize_.default,
        aten.set_.source_Tensor,
        aten._cudnn_rnn_flatten_weight.default,
        torch.ops.aten._standard_gamma_grad.out,
        torch.ops.prims.convert_element_type.default,
    ],
)
def test_what_is_not_run_again(overload: Any) -> None:
    operator = Operator(overload)
    assert not operator.may_repeat or operator.changed


@pytest.mark.parametrize(
    "overload",
    [aten._embedding_bag.default, aten._ctc_loss.default, aten._thnn_fused_lstm_cell.default],
)
def test_what_has_no_effect_is_run_again(overload: Any) -> None:
    operator = Operator(overload)
    assert operator.may_repeat and not operator.changed


@pytest.mark.parametrize("overload", [aten.native_dropout.default, aten.normal_.default])
def test_random_numbers_are_known_by_tags(overload: Any) -> None:
    assert Operator(overload).is_random


def test_an_operator_named_in_place_whose_schema_does_not_say_so() -> None:
    """As those of torch.distributed."""
    library = torch.library.Library("deepum_test_unsaid", "DEF")
    library.define("change_(Tensor one) -> ()")

    def change(one: Any) -> None:
        one.add_(1)

    library.impl("change_", change, "CPU")

    def program() -> Any:
        kept = [torch.randn(1000).sin() for _ in range(8)]
        for one in kept[::2]:
            torch.ops.deepum_test_unsaid.change_(one)
        rest = [torch.randn(1000).exp() * place for place in range(8)]
        return kept, rest, sum(one.sum() for one in (*kept, *rest))

    same(program)
    library._destroy()


@pytest.mark.parametrize(
    ("once", "name", "args", "kwargs"),
    [
        (True, "index_put_", (None, [torch.tensor([True, False])], None), {}),
        (True, "_index_put_impl_", (None, [None, torch.tensor([True])], None, False, True), {}),
        (False, "index_put_", (None, [torch.tensor([True])], None, True), {}),
        (False, "index_put", (None, [torch.tensor([True])], None), {"accumulate": True}),
        (False, "index_put", (None, [torch.tensor([True]), torch.tensor([0])], None), {}),
        (True, "scatter_", (None, 0, torch.tensor([0, 0]), 1.0), {}),
        (False, "scatter_", (None, 0, torch.tensor([0, 0]), 1.0), {"reduce": "add"}),
        (False, "scatter", (None, 0, torch.tensor([0, 0]), torch.tensor([1.0, 2.0])), {}),
        (False, "index_copy", (None, 0, torch.tensor([0, 0]), torch.tensor([1.0, 2.0])), {}),
    ],
)
def test_what_writes_each_place_once(once: bool, name: str, args: Any, kwargs: Any) -> None:
    assert writes_once(name, args, kwargs) is once


@pytest.mark.parametrize("name", sorted(UNORDERED_ON_CPU | UNORDERED_ON_GPU))
def test_each_unordered_operator_is_one_of_pytorch(name: str) -> None:
    assert hasattr(aten, name)
