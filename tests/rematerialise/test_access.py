"""Memory of tensors that is read or changed past PyTorch's operators, in the block and behind it."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from typing import Any

import comparing  # skips without a PyTorch that can
import numpy as np
import pytest

import deepum

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

_COUNT = 1 << 16  # elements of a tensor: 256 KiB


def many() -> list[Any]:
    """More tensors than fit, each with its number in it."""
    return [torch.ones(_COUNT) * number for number in range(20)]


@pytest.mark.parametrize(
    "read",
    [
        lambda t: t.numpy()[0],
        lambda t: np.asarray(t)[-1],
        lambda t: t.tolist()[0],
        lambda t: copy.deepcopy(t)[0].item(),
        lambda t: pickle.loads(pickle.dumps(t))[0].item(),
        lambda t: np.from_dlpack(t)[0],
        lambda t: torch.from_dlpack(t)[0].item(),
        lambda t: torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(t))[0].item(),
        lambda t: t.untyped_storage()[3],
        lambda t: t.view(2, -1)[1].numpy()[0],
    ],
)
def test_an_evicted_tensor_that_is_read_comes_back_and_stays(read: Any) -> None:
    expected = read(torch.ones(_COUNT) * 3)
    with deepum.remat(comparing.in_use() + (2 << 20), device="cpu", smallest=1) as remat:
        tensors = many()
        assert remat.statistics().evictions > 0
        assert read(tensors[3]) == expected
        more = many()
        assert tensors[3].sum().item() == 3 * _COUNT  # nobody took it away meanwhile
        assert more[19][0].item() == 19


def test_it_is_saved_as_it_is() -> None:
    with deepum.remat(comparing.in_use() + (2 << 20), device="cpu", smallest=1):
        tensors = many()
        file = io.BytesIO()
        torch.save({"five": tensors[5]}, file)
    file.seek(0)
    assert torch.load(file)["five"].eq(5).all()


def test_numpy_sees_what_operators_change_and_they_what_it_changes() -> None:
    with deepum.remat(comparing.in_use() + (2 << 20), device="cpu", smallest=1):
        tensor = torch.zeros(_COUNT)
        array = tensor.numpy()
        made = tensor + 1
        array[:] = 5
        filling = many()
        assert made.eq(1).all() and tensor.eq(5).all()
        tensor.add_(1)
        assert (array == 6).all()
        assert filling[7][0].item() == 7


def test_what_came_from_numpy_may_be_changed_there() -> None:
    array = np.ones(_COUNT, dtype=np.float32)
    with deepum.remat(comparing.in_use() + (2 << 20), device="cpu", smallest=1) as remat:
        tensor = torch.from_numpy(array)
        doubled = [tensor * 2 for _ in range(10)]
        array[:] = 7
        assert remat.statistics().evictions > 0
        assert all(one.eq(2).all() for one in doubled)
        assert (tensor * 2).eq(14).all()


def test_another_thread_gets_numbers_or_an_error_and_no_others() -> None:
    found: list[float | str] = []

    def read(tensors: list[Any]) -> None:
        for one in tensors:
            try:
                found.append((one + 1)[0].item())
            except RuntimeError as error:
                found.append(str(error))

    with deepum.remat(comparing.in_use() + (2 << 20), device="cpu", smallest=1):
        tensors = many()
        thread = threading.Thread(target=read, args=(tensors,))
        thread.start()
        thread.join()
        assert all(one.eq(number).all() for number, one in enumerate(tensors))
    errors = [one for one in found if isinstance(one, str)]
    assert errors and all("deepum.remat evicted the memory of this tensor" in one for one in errors)
    assert all(one == number + 1 for number, one in enumerate(found) if not isinstance(one, str))


def test_each_thread_leaves_the_mode_that_it_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of two threads to enter is the first to leave."""
    from deepum.rematerialise.pytorch import session
    from deepum.rematerialise.pytorch.mode import Mode

    entered: dict[int, Mode] = {}
    left: dict[int, Mode] = {}

    class Watched(Mode):
        def __enter__(self) -> Any:
            entered[threading.get_ident()] = self
            return super().__enter__()

        def __exit__(self, *reason: Any) -> None:
            left[threading.get_ident()] = self
            super().__exit__(*reason)

    monkeypatch.setattr(session, "Mode", Watched)
    second_is_in, first_left = threading.Event(), threading.Event()

    def first() -> None:
        remat.enter_thread()
        second.start()
        second_is_in.wait(20)
        remat.leave_thread()
        first_left.set()

    def then() -> None:
        remat.enter_thread()
        second_is_in.set()
        first_left.wait(20)
        remat.leave_thread()

    second = threading.Thread(target=then)
    with deepum.remat(comparing.in_use() + (2 << 20), device="cpu") as remat:
        thread = threading.Thread(target=first)
        thread.start()
        thread.join()
        second.join()
    assert len(entered) == 3 and left == entered


def test_behind_the_block_everything_is_there() -> None:
    with deepum.remat(comparing.in_use() + (2 << 20), device="cpu", smallest=1) as remat:
        tensors = many()
        views = [one.view(2, -1)[1] for one in tensors]
    assert remat.statistics().evictions > 0
    for number, (one, view) in enumerate(zip(tensors, views, strict=True)):
        assert one.eq(number).all() and (view.numpy() == number).all()


def test_methods_are_as_before_behind_the_block() -> None:
    before = dict(torch.Tensor.__dict__)
    functions = torch.to_dlpack, torch.utils.dlpack.to_dlpack, torch.compile
    with deepum.remat(comparing.in_use() + (2 << 20), device="cpu"):
        assert torch.Tensor.__dict__["data_ptr"] is not before.get("data_ptr")
    assert dict(torch.Tensor.__dict__) == before
    assert (torch.to_dlpack, torch.utils.dlpack.to_dlpack, torch.compile) == functions
