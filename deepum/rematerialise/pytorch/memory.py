"""Memory of contents: PyTorch's storages, which lose their bytes and get them back.

A storage that is evicted keeps its size, so that views of it are made as ever, and has no memory:
whatever reads or writes it past PyTorch's operators gets an error, not garbage.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from deepum.pytorch import version
from deepum.pytorch.arguments import storage_of
from deepum.rematerialise.graph import Content

_MESSAGE = (
    "deepum.remat evicted the memory of this tensor; read it by PyTorch's operators, in the block "
    "(and thread) of deepum.remat, or clone() it there before"
)
_NEEDED = (
    (torch.UntypedStorage, "_swap_data_ptr_"),
    (torch._C, "_set_storage_data_ptr_access_error_msg"),
    (torch._C, "_clear_storage_data_ptr_access_error_msg"),
    (torch._C, "_construct_storage_from_data_pointer"),
    (torch._C, "_has_storage"),
    (torch._C, "_storage_Use_Count"),
)


def check_version() -> None:
    """Raises UsageError where PyTorch lacks what it takes to move memory between storages."""
    version.check(_NEEDED, "deepum.remat needs")


def existing_tensors() -> list[Any]:
    """All tensors that Python knows."""
    return [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor)]


class Home(weakref.ref[Any]):
    """A storage of the program's, not kept alive, and the content it has now.

    is_shared: somebody may change it past PyTorch's operators. is_parameter: of a leaf that
    requires gradients, which optimizers change in place.
    """

    __slots__ = ("content", "is_parameter", "is_shared", "key", "snapshot")

    def __new__(cls, storage: Any, gone: Callable[[Any], None], content: Content) -> Home:
        return super().__new__(cls, storage, gone)

    def __init__(self, storage: Any, gone: Callable[[Any], None], content: Content) -> None:
        super().__init__(storage, gone)  # type: ignore[call-arg]
        self.key: int = storage._cdata
        self.content = content
        self.is_parameter = False
        self.is_shared = False
        self.snapshot: tuple[Content, Any] | None = None  # and its storage


class Memory:
    """Where a content is: in the program's storage while the program holds it, else (an input of
    what is being computed again) in one of ours. defined: bytes from its begin that an operator
    wrote; behind them is whatever was there before.
    """

    __slots__ = ("defined", "digest", "home", "own")

    def __init__(self, home: Home | None, defined: int = 0) -> None:
        self.home = home
        self.defined = defined
        self.own: Any = None
        self.digest: int | None = None

    def storage(self) -> Any:
        """The storage that has the content; the caller's reference keeps it."""
        storage = self.own if self.own is not None else self.home and self.home()
        if storage is None:
            raise AssertionError("a content has no memory")
        return storage


def empty_storage(device: Any, size: int) -> Any:
    """A storage of a size, without memory."""
    return torch._C._construct_storage_from_data_pointer(0, device, size)


def take_away(storage: Any) -> None:
    """Free the memory of a storage, which keeps its size."""
    storage._swap_data_ptr_(empty_storage(storage.device, storage.nbytes()))
    torch._C._set_storage_data_ptr_access_error_msg(storage._cdata, _MESSAGE)


def give_back(storage: Any, source: Any) -> None:
    """An evicted storage gets the memory of another, which has none then."""
    if storage.nbytes() != source.nbytes():
        raise AssertionError(
            f"computed again, {storage.nbytes()} bytes have become {source.nbytes()}"
        )
    torch._C._clear_storage_data_ptr_access_error_msg(storage._cdata)
    storage._swap_data_ptr_(source)


def bytes_of(storage: Any) -> Any:
    """A tensor of all bytes of a storage."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def copy_of(storage: Any) -> Any:
    """Another storage with the same bytes."""
    return storage_of(bytes_of(storage).clone())


class Homes:
    """The program's storages on one device, by address of their implementation."""

    def __init__(self) -> None:
        self._homes: dict[int, Home] = {}
        self._gone: list[Home] = []
        self._forget: Callable[[Any], None] = self._on_death

    def _on_death(self, home: Home) -> None:
        # Any thread, in the middle of anything: only the address, which may be used anew, goes now.
        if self._homes.get(home.key) is home:
            del self._homes[home.key]
        self._gone.append(home)

    def get(self, storage: Any) -> Home | None:
        """The home of a storage that is known."""
        return self._homes.get(storage._cdata)

    def add(self, storage: Any, content: Content) -> Home:
        """A storage with its first content."""
        home = Home(storage, self._forget, content)
        self._homes[home.key] = home
        return home

    def remove(self, home: Home) -> None:
        """It is not known any more."""
        if self._homes.get(home.key) is home:
            del self._homes[home.key]

    def gone(self) -> Iterator[Home]:
        """Homes whose storages died since this was last asked."""
        while self._gone:
            yield self._gone.pop()

    def living(self) -> list[tuple[Home, Any]]:
        """All that live, with their storages."""
        pairs = ((home, home()) for home in list(self._homes.values()))
        return [(home, storage) for home, storage in pairs if storage is not None]
