"""What a program's operators do to its tensors, call by call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from deepum.pytorch.arguments import storage_or_none, tensors_in
from deepum.rematerialise.engine import BudgetError
from deepum.rematerialise.graph import Content
from deepum.rematerialise.pytorch.backend import TensorBackend
from deepum.rematerialise.pytorch.invocation import Invocation, is_parameter
from deepum.rematerialise.pytorch.limits import Limit
from deepum.rematerialise.pytorch.measures import CallCost, Measures
from deepum.rematerialise.pytorch.memory import Home, Homes, Memory
from deepum.rematerialise.pytorch.operators import Operators
from deepum.rematerialise.pytorch.recorder import Recorder
from deepum.rematerialise.pytorch.shortage import shortage

_TRIES = 3  # of an operator, when the device itself is out of memory


class Tracker:
    """All tensors on one device. For any thread, one at a time.

    verify: what is computed again is compared with what was evicted. is_idle: operators are none of
    its business, and nothing is evicted.
    """

    def __init__(self, device: torch.device, limit: Limit, *, verify: bool = False) -> None:
        self.device = device
        self.homes = Homes()
        self.calls = 0
        self.is_idle = False
        self.backend = TensorBackend(self.homes, verify)
        self.engine = limit.begin(self.backend, device)
        self._limit = limit
        self._lock = threading.RLock()
        self._operators = Operators()
        self._measures = Measures(device)
        self._recorder = Recorder(
            device, self.homes, self.engine, self.backend.note_source, limit.smallest
        )

    def is_composite(self, function: Any) -> bool:
        """Whether an operator is to be taken apart into those that it calls."""
        return self._operators[function].is_composite

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of an operator."""
        operator = self._operators[function]
        if operator.is_view:
            return function(*args, **kwargs)
        invocation = Invocation(operator, function, args, kwargs)
        with self._lock:
            if self.is_idle:  # since a moment ago
                return function(*args, **kwargs)
            self.calls += 1
            self._forget_the_dead()
            self._look_up(invocation)
            locked: list[Content] = []
            try:
                locked = self.engine.acquire(invocation.contents())
                return self._run(invocation)
            except BudgetError as error:
                raise shortage(self.homes, self.engine, str(function), error) from None
            finally:
                self.engine.free_locks(locked)
                self.engine.settle()

    @contextmanager
    def keeping(self) -> Iterator[Callable[[list[Any]], None]]:
        """In this block tensors that are handed to what it gives are resident and stay. Raises
        RematOutOfMemoryError.
        """
        locked: list[Content] = []

        def keep(tensors: list[Any]) -> None:
            with self._lock:
                self._forget_the_dead()
                try:
                    homes = [home for one in tensors if (home := self.adopt(one)) is not None]
                    with torch._C._DisableTorchDispatch():
                        locked.extend(self.engine.acquire(one.content for one in homes))
                        self._limit.settle()
                except BudgetError as error:
                    raise shortage(self.homes, self.engine, "that", error) from None

        try:
            yield keep
        finally:
            with self._lock:
                self.engine.free_locks(locked)
                self.engine.settle()

    def adopt(self, tensor: Any) -> Home | None:
        """The home of a tensor's storage, made if it was not known; None if it is not on the
        device, or has no memory.
        """
        storage = storage_or_none(tensor)
        if storage is None or storage.device != self.device or not storage.nbytes():
            return None
        return self._adopt(tensor, storage)

    def expose(self, tensor: Any, may_change: bool, spares_parameters: bool) -> None:
        """The program gets at a tensor's memory past PyTorch's operators: it stays where it is from
        now on. may_change: it can be changed that way, unless it is a parameter's and those are to
        be spared. Raises RematOutOfMemoryError.
        """
        with self._lock:
            home = self.adopt(tensor)
            if home is None or (spares_parameters and home.is_parameter):
                return
            shares = may_change and not home.is_shared
            content = home.content
            if content.producer is None and content.is_resident and not shares:
                return
            try:
                with torch._C._DisableTorchDispatch():
                    self.engine.pin(content, "tensors read past PyTorch's operators")
                    if shares:
                        self.engine.overwrite(content)
                        home.is_shared = True
                    self.engine.settle()
            except BudgetError as error:
                raise shortage(self.homes, self.engine, "that", error) from None

    def forked(self) -> None:
        """In a child process: it has contents of its own now, and another thread's lock is gone."""
        self._lock = threading.RLock()

    def restore(self) -> None:
        """Everything that was evicted comes back, whatever the budget says."""
        with self._lock:
            self.engine.budget = 1 << 62
            self._forget_the_dead()
            with torch._C._DisableTorchDispatch():
                for home, _ in self.homes.living():
                    self.engine.materialise(home.content)
                self.engine.settle()

    def rest(self) -> None:
        """What was evicted comes back, and operators pass by from now on: what computes contents is
        forgotten, since the program changes them unseen.
        """
        with self._lock:
            self.restore()
            self.is_idle = True
            for home, _ in self.homes.living():
                if not home.is_shared:
                    self.homes.remove(home)
                    self.engine.forget(home.content)
                    home.content.handle.home = None
            self.backend.forget_sources()

    def resume(self, tensors: Iterable[Any]) -> None:
        """Operators are recorded again. tensors: that there are."""
        with self._lock:
            self._forget_the_dead()
            for tensor in tensors:
                self.adopt(tensor)
            self.is_idle = False

    def _forget_the_dead(self) -> None:
        for home in self.homes.gone():
            memory: Memory = home.content.handle
            self.engine.release(home.content)
            memory.own = memory.home = None

    def _adopt(self, tensor: Any, storage: Any) -> Home:
        home = self.homes.get(storage)
        if home is None:
            parameter = is_parameter(tensor)
            why = "parameters" if parameter else "tensors made outside of deepum.remat"
            content = Content(storage.nbytes(), Memory(None), why)
            home = self.homes.add(storage, content)
            content.handle.home = home
            home.is_parameter = parameter
            # Memory of somebody else's (numpy, a file, another process), who may change it.
            home.is_shared = not parameter and not storage.resizable()
            self.engine.add(content)
        elif not home.is_parameter and is_parameter(tensor):
            home.is_parameter = True
            if home.content.producer is not None:
                self.engine.pin(home.content, "parameters")
        return home

    def _look_up(self, invocation: Invocation) -> None:
        homes = invocation.homes
        device = self.device
        try:
            for tensor in tensors_in((invocation.args, *invocation.kwargs.values())):
                storage = storage_or_none(tensor)
                if storage is None:
                    invocation.is_opaque = True
                elif storage.device != device:
                    if tensor.dim():
                        invocation.is_opaque = True
                elif storage.nbytes():
                    home = self._adopt(tensor, storage)
                    homes[home.key] = home, storage
        except BudgetError as error:
            raise shortage(self.homes, self.engine, str(invocation.function), error) from None
        if invocation.operator.changed or invocation.statistics:
            invocation.find_changed()

    def _run(self, invocation: Invocation) -> Any:
        for home in invocation.changed.values():
            if home.content.producer is None and home.content.readers:
                self.engine.overwrite(home.content)
        function, args, kwargs = invocation.function, invocation.args, invocation.kwargs
        if invocation.operator.changed and not invocation.operator.makes_beside:
            known = self._measures.of_change(function, args)
        else:
            known = self._measures.of(function, args, kwargs)
        self._limit.make_room(known)
        self._recorder.prepare(invocation)
        measures = self._limit.begin_call(known)
        began = self._measures.begin(known)
        try:
            result = self._attempt(invocation, known)
        finally:
            cost = self._measures.end(known, began)
            if measures:
                self._limit.end_call(known)
        self.engine.elapse(cost)
        self._recorder.record(invocation, result, cost, known.room)
        self._limit.settle()
        return result

    def _attempt(self, invocation: Invocation, known: CallCost) -> Any:
        """The call; again with more room if the device is out of memory all the same."""
        for _ in range(_TRIES - 1 if not invocation.changed else 0):
            try:
                return invocation.function(*invocation.args, **invocation.kwargs)
            except torch.OutOfMemoryError:
                self._limit.make_more_room(known)
        return invocation.function(*invocation.args, **invocation.kwargs)
