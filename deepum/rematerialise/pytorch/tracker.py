"""What a program's operators do to its tensors, call by call."""

from __future__ import annotations

import threading
from typing import Any

import torch

from deepum.rematerialise.engine import BudgetError, Engine
from deepum.rematerialise.graph import Content
from deepum.rematerialise.heuristics import Heuristic
from deepum.rematerialise.pytorch.backend import TensorBackend
from deepum.rematerialise.pytorch.calls import tensors_in
from deepum.rematerialise.pytorch.invocation import Invocation, is_parameter, storage_or_none
from deepum.rematerialise.pytorch.measures import CallCost, Measures
from deepum.rematerialise.pytorch.memory import Home, Homes, Memory
from deepum.rematerialise.pytorch.operators import Operators
from deepum.rematerialise.pytorch.recorder import Recorder
from deepum.rematerialise.pytorch.shortage import shortage
from deepum.rematerialise.pytorch.workspace import workspace_of

_TRIES = 3  # of an operator, when the device itself is out of memory
_GUESS = 2  # workspace of a call that was never made before, by the bytes of its results
_NEAR = 0.9  # of the budget
_LEAST_ROOM = 1 / 20  # of the budget, that is made for another try


class Tracker:
    """All tensors on one device. For any thread, one at a time.

    budget: bytes. smallest: bytes of the smallest content that is evicted. sampling: see Engine.
    verify: what is computed again is compared with what was evicted.
    """

    def __init__(
        self,
        device: torch.device,
        budget: int,
        heuristic: Heuristic,
        *,
        smallest: int,
        sampling: bool = True,
        verify: bool = False,
    ) -> None:
        self.device = device
        self.homes = Homes()
        self.calls = 0
        self.late = 0  # operators that made more than was foreseen
        self._lock = threading.RLock()
        self._operators = Operators()
        self._measures = Measures(device)
        self._workspace = workspace_of(device)
        backend = TensorBackend(self.homes, verify)
        self.engine = Engine(budget, backend, heuristic, smallest=smallest, sampling=sampling)
        self._recorder = Recorder(device, self.homes, self.engine, backend.note_source, smallest)

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
            if home.content.producer is None and home.content.dependants:
                self.engine.overwrite(home.content)
        function, args, kwargs = invocation.function, invocation.args, invocation.kwargs
        if invocation.operator.changed:
            known = self._measures.of_change(function, args)
        else:
            known = self._measures.of(function, args, kwargs)
        self._make_room(known)
        self._recorder.prepare(invocation)
        measures = self._measures_workspace(known)
        began = self._measures.begin(known)
        try:
            result = self._attempt(invocation, known)
        finally:
            cost = self._measures.end(known, began)
            workspace = self._workspace.end() if measures else 0
        if measures:
            known.workspace = max(known.workspace or 0, workspace)
        self.engine.elapse(cost)
        self._recorder.record(invocation, result, cost, known.room)
        if self.engine.used > self.engine.budget:
            self.late += 1
            self.engine.make_room(0)
        return result

    def _make_room(self, known: CallCost) -> None:
        """For the results and the workspace of a call; for a guess of the latter the first time, if
        that can be had.
        """
        engine = self.engine
        if engine.used + known.room > engine.budget * _NEAR:
            allocated = self._workspace.allocated()
            if allocated is not None:
                engine.overhead = max(0, allocated - engine.used)
        if known.workspace is None:
            try:
                self.engine.make_room(known.bytes * (1 + _GUESS))
                return
            except BudgetError:
                pass
        self.engine.make_room(known.room)

    def _measures_workspace(self, known: CallCost) -> bool:
        """Whether the workspace of this call is measured: the first time, and on a GPU, where it
        shows only as a peak, whenever it could be one that matters.
        """
        if known.workspace is not None and (
            self.device.type == "cpu" or self.engine.used + known.room < self.engine.budget * _NEAR
        ):
            return False
        return self._workspace.begin()

    def _attempt(self, invocation: Invocation, known: CallCost) -> Any:
        """The call; again with more room if the device is out of memory all the same."""
        engine = self.engine
        for _ in range(_TRIES - 1 if not invocation.changed else 0):
            try:
                return invocation.function(*invocation.args, **invocation.kwargs)
            except torch.OutOfMemoryError:
                more = max(2 * known.bytes, int(engine.budget * _LEAST_ROOM))
                engine.make_room(engine.budget - engine.overhead - engine.used + more)
        return invocation.function(*invocation.args, **invocation.kwargs)
