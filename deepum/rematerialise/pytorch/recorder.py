"""Keeps what computes each content, where it can be computed again with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from deepum.pytorch.arguments import storage_or_none, tensors_in
from deepum.rematerialise.engine import Engine
from deepum.rematerialise.graph import Content, Operation
from deepum.rematerialise.pytorch.calls import Call
from deepum.rematerialise.pytorch.invocation import Invocation
from deepum.rematerialise.pytorch.memory import Home, Homes, Memory, bytes_of, copy_of
from deepum.rematerialise.pytorch.unordered import writes_once

_DEEPEST = 20_000  # operations from the sources, beyond which a content is kept
_PLAIN = (int, float, bool, complex, str, type(None))


def _end_of(tensor: Any) -> int:
    """Bytes of its storage up to its last element."""
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return int((tensor.storage_offset() + last + 1) * tensor.element_size())


def _is_plain(result: Any) -> bool:
    """Whether it is made of tensors and numbers alone."""
    if isinstance(result, (list, tuple)):
        return all(_is_plain(one) for one in result)
    return isinstance(result, (torch.Tensor, *_PLAIN))


def _is_gradient() -> bool:
    """Whether autograd computes gradients, in this thread, that nobody will differentiate: they are
    used next, or added up until the optimizer takes them, while what they were computed from goes.
    To compute one again is to go through the model again, so that they are kept.
    """
    return torch._C._current_graph_task_id() != -1 and not torch.is_grad_enabled()


class _Inputs:
    """Of a call: contents in order, and where each storage's is. held: storages of sources."""

    def __init__(self) -> None:
        self.contents: list[Content] = []
        self.places: dict[int, int] = {}
        self.held: list[Any] = []
        self.held_bytes = 0  # of sources that are no parameters

    def add(self, key: int, content: Content, storage: Any, is_parameter: bool = False) -> None:
        self.places[key] = len(self.contents)
        self.contents.append(content)
        if content.producer is None:
            self.held.append(storage)
            if not is_parameter:
                self.held_bytes += content.bytes

    def are_too_deep(self) -> bool:
        return any(one.depth >= _DEEPEST for one in self.contents)


class Recorder:
    """On one device. note_source: is told of sources whose storages operations hold, but for
    parameters. smallest: an operator all of whose results have fewer bytes is not kept; what it
    made is a source.
    """

    def __init__(
        self,
        device: torch.device,
        homes: Homes,
        engine: Engine,
        note_source: Callable[[Content], None],
        smallest: int,
    ) -> None:
        self._device = device
        self._homes = homes
        self._engine = engine
        self._note_source = note_source
        self._smallest = smallest

    def prepare(self, invocation: Invocation) -> None:
        """Right before the call."""
        if not self._may_repeat(invocation):
            return
        invocation.prepare(self._device)
        for home, storage in invocation.homes.values():
            if home.is_shared and home.key not in invocation.changed:
                self._take_snapshot(home, storage)

    def record(self, invocation: Invocation, result: Any, cost: float, room: int) -> None:
        """Right behind it; cost: nanoseconds; room: bytes that it took."""
        made, places = self._made(invocation, result)
        if not made and len(invocation.changed) == 1:
            (home,) = invocation.changed.values()
            self._change(invocation, home, cost, room)
            return
        for home in invocation.changed.values():
            self._renew(home, f"changed by {invocation.operator.name}")
        if made:
            self._keep(invocation, made, places, cost, room)
            for one in made:
                self._engine.add(one)

    # What was made.

    def _made(self, invocation: Invocation, result: Any) -> tuple[list[Content], list[int]]:
        """New contents, and which tensors of the result they are in."""
        made: list[Content] = []
        places: list[int] = []
        for place, tensor in enumerate(tensors_in(result)):
            storage = storage_or_none(tensor)
            if storage is None:
                self._pin_all(invocation)
            elif (
                storage.device == self._device
                and storage.nbytes()
                and self._homes.get(storage) is None
            ):
                defined = 0 if invocation.operator.leaves_bytes else _end_of(tensor)
                content = Content(
                    storage.nbytes(),
                    Memory(None, defined),
                    f"results of {invocation.operator.name}",
                )
                content.handle.home = self._homes.add(storage, content)
                made.append(content)
                places.append(place)
        if not _is_plain(result):
            self._pin_all(invocation)  # an object that may hold what it was given
        return made, places

    def _pin_all(self, invocation: Invocation) -> None:
        invocation.settings = None
        for home, _ in invocation.homes.values():
            self._engine.pin(home.content, f"held by the result of {invocation.operator.name}")

    def _keep(
        self,
        invocation: Invocation,
        made: list[Content],
        places: list[int],
        cost: float,
        room: int,
    ) -> None:
        """Keep the call as what computes the contents, if it can be repeated and is worth it."""
        operator = invocation.operator
        changes = invocation.changed if operator.makes_beside else operator.changed
        if invocation.settings is None or (changes and not invocation.statistics):
            return
        if max(one.bytes for one in made) < self._smallest:
            for one in made:
                one.why = "small tensors"
            return
        inputs = self._inputs(invocation)
        if inputs.are_too_deep():
            return
        call = self._call(invocation, inputs, tuple(places))
        operation = Operation(tuple(inputs.contents), tuple(made), cost, call, room=room)
        operation.held = inputs.held

    # What was changed.

    def _change(self, invocation: Invocation, home: Home, cost: float, room: int) -> None:
        """One storage was changed in place: it has a new content."""
        old = home.content
        renewed = (
            invocation.settings is not None
            and not home.is_parameter
            and not home.is_shared
            and old.bytes >= self._smallest
        )
        overwritten = renewed and self._is_overwritten(invocation, home)
        if not renewed or (old.producer is None and not overwritten):
            self._renew(home, f"changed by {invocation.operator.name}")
            return
        inputs = self._inputs(invocation, without=home.key)
        if overwritten:
            inputs.places[home.key] = len(inputs.contents)
        else:
            inputs.add(home.key, old, None)
        # What is added up in place, such as an optimizer's state, would keep what was added in each
        # step.
        if inputs.are_too_deep() or inputs.held_bytes >= old.bytes:
            self._renew(home, f"changed by {invocation.operator.name}")
            return
        call = self._call(invocation, inputs, None)._replace(
            fresh=old.bytes if overwritten else 0, device=self._device
        )
        defined = old.bytes if overwritten else old.handle.defined
        new = Content(old.bytes, Memory(home, defined), f"changed by {invocation.operator.name}")
        operation = Operation(
            tuple(inputs.contents),
            (new,),
            cost,
            call,
            overwrites=None if overwritten else old,
            room=old.bytes + room,
        )
        operation.held = inputs.held
        self._replace(home, new)

    def _renew(self, home: Home, why: str) -> None:
        """The storage has a content that cannot be computed."""
        old = home.content
        if old.producer is None and not old.readers:
            old.last_use = self._engine.clock
            return
        self._replace(home, Content(old.bytes, Memory(home), why))

    def _replace(self, home: Home, new: Content) -> None:
        old = home.content
        self._engine.release(old)
        old.handle.home = None
        home.content = new
        self._engine.add(new)

    @staticmethod
    def _is_overwritten(invocation: Invocation, home: Home) -> bool:
        """Whether all of the storage is written and nothing of it is read."""
        if not invocation.operator.is_overwriting:
            return False
        own = [
            one
            for one in tensors_in((invocation.args, *invocation.kwargs.values()))
            for storage in (storage_or_none(one),)
            if storage is not None and storage._cdata == home.key
        ]
        return len(own) == 1 and own[0].numel() * own[0].element_size() == home.content.bytes

    # Inputs.

    def _may_repeat(self, invocation: Invocation) -> bool:
        operator = invocation.operator
        if _is_gradient():
            return False
        if not operator.may_repeat or invocation.is_opaque:
            return False
        if self._device.type == "cpu":
            is_unordered = operator.is_unordered_on_cpu and torch.get_num_threads() > 1
        elif torch.cuda.current_stream(self._device) != torch.cuda.default_stream(self._device):
            return False
        else:
            is_unordered = operator.is_unordered_on_gpu
        return not is_unordered or writes_once(operator.name, invocation.args, invocation.kwargs)

    def _inputs(self, invocation: Invocation, without: int | None = None) -> _Inputs:
        inputs = _Inputs()
        if invocation.operator.is_metadata_only:
            return inputs
        for key, (home, storage) in invocation.homes.items():
            if key == without or (invocation.statistics and key in invocation.changed):
                continue
            if home.is_shared and home.snapshot is not None:
                inputs.add(key, *home.snapshot)
            else:
                content = home.content
                inputs.add(key, content, storage, home.is_parameter)
                is_source = content.producer is None and not home.is_parameter
                if is_source and content.bytes >= self._smallest:
                    self._note_source(content)
        return inputs

    @staticmethod
    def _call(invocation: Invocation, inputs: _Inputs, made: tuple[int, ...] | None) -> Call:
        args, kwargs = invocation.templates(inputs.places)
        return Call(
            invocation.function,
            args,
            kwargs,
            made,
            invocation.settings,
            invocation.generator,
            invocation.state,
        )

    def _take_snapshot(self, home: Home, storage: Any) -> None:
        """A copy of what somebody may change, unless there is one that is as it is now."""
        if home.snapshot is not None and torch.equal(bytes_of(home.snapshot[1]), bytes_of(storage)):
            return
        self._engine.make_room(storage.nbytes())
        copy = copy_of(storage)
        content = Content(storage.nbytes(), Memory(None), "copies of memory shared with others")
        content.handle.home = self._homes.add(copy, content)
        home.snapshot = content, copy
        self._engine.add(content)
