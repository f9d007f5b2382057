"""What a captured program launches and when its memory lives, on programs small enough to tell it
by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from required import needed

torch = needed("torch")

from captured import Launch, allocated, capture, events_of, launches  # noqa: E402

from deepum.core import UM_BLOCK_BYTES, Block  # noqa: E402
from deepum.trace import work  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
MEBI = 1 << 18  # elements of four bytes


def of(body: Callable[[Any], object], **options: Any) -> list[Launch]:
    """Launches of a step that does this with a tensor of 1 MiB, without the one that made the
    tensor.
    """

    def make(device: str) -> Callable[[], object]:
        tensor = torch.zeros(512, 512, device=device)
        return lambda: body(tensor)

    return launches(capture(make, **options).trace)[1:]


def test_an_operator_reads_its_inputs_and_writes_its_outputs() -> None:
    (launch,) = of(lambda x: x * 2)
    assert launch.sizes == [("r", MIB), ("w", MIB)]
    (launch,) = of(lambda x: x.mul_(2))
    assert launch.sizes == [("rw", MIB)]
    (launch,) = of(lambda x: x.fill_(2))
    assert launch.sizes == [("w", MIB)]
    (launch,) = of(lambda x: torch.add(x, x[:1]))
    assert launch.sizes == [("r", MIB), ("r", 2 * KIB), ("w", MIB)]


def test_views_launch_nothing_and_are_their_tensors_memory() -> None:
    (launch,) = of(lambda x: x.view(-1)[1024:2048].view(2, 512).t().contiguous().view(-1).detach())
    source, result = launch.places
    assert (source.offset, source.bytes) == (1024 * 4, 1024 * 4)
    assert result.bytes == 1024 * 4
    assert (
        of(lambda x: (torch.empty_like(x), x.expand(3, 512, 512), x.unbind(), x.split(7), x.t()))
        == []
    )


def test_strided_tensors_are_met_from_their_first_to_their_last_element() -> None:
    (launch,) = of(lambda x: x[:, 5] * 2)
    assert launch.sizes == [("r", (511 * 512 + 1) * 4), ("w", 512 * 4)]


def test_nothing_is_launched_for_nothing() -> None:
    assert of(lambda x: x[:0] * 2) == []


def test_a_copy_of_dense_memory_is_the_drivers() -> None:
    (copy,) = of(lambda x: x.clone())
    assert copy.work.flags & work.UNCOUNTED
    assert copy.sizes == [("w", MIB), ("r", MIB)]
    assert len(copy.event.written) == len(copy.event.read) == 1
    assert copy.event.unknown == ()
    for kernel in (lambda x: x.t().contiguous(), lambda x: x.to(torch.float16)):
        (launch,) = of(kernel)
        assert not launch.work.flags & work.UNCOUNTED


def test_the_host_brings_data_and_waits_for_what_it_reads() -> None:
    def make(device: str) -> Callable[[], object]:
        def step() -> None:
            there = torch.ones(MEBI).to(device)
            total = (there * 2).sum()
            assert total.item() == 0
            assert total.cpu().device.type == "cpu"

        return step

    trace = capture(make).trace
    kinds = [
        (one.work.kind, bool(one.work.flags & work.TO_DEVICE))
        for one in launches(trace)
        if one.work.kind == work.COPY
    ]
    assert kinds == [(work.COPY, True), (work.COPY, False), (work.COPY, False)]
    assert launches(trace)[0].work.device_bytes == MIB
    assert len(events_of(trace, "synchronise")) == 2


def test_what_is_on_the_host_is_not_the_devices() -> None:
    assert of(lambda _x: torch.ones(100) + torch.ones(100)) == []


def test_memory_lives_as_long_as_python_holds_it() -> None:
    def make(device: str) -> Callable[[], object]:
        def step() -> None:
            first = torch.zeros(MEBI, device=device)
            second = first * 2
            alias = first.view(2, -1)
            del first
            third = second * 2
            del alias, second
            _ = third * 2

        return step

    trace = capture(make, steps=1).trace
    blocks = [
        event
        for event in events_of(trace, "block_active", "block_inactive")
        if isinstance(event, Block)
    ]
    assert [(block.kind == "block_active", block.allocated_bytes // MIB) for block in blocks] == [
        (True, 1),
        (True, 2),
        (True, 3),
        (False, 2),  # the alias held the first
        (False, 1),
        (True, 2),
        (False, 1),
        (False, 0),
    ]
    assert allocated(trace) == 0


def test_the_peak_is_that_of_the_tensors() -> None:
    def make(device: str) -> Callable[[], object]:
        weight = torch.zeros(512, 512, device=device)

        def step() -> None:
            x = torch.zeros(512, 512, device=device)
            for _ in range(5):
                x = x * weight

        return step

    assert capture(make, steps=3).peak_bytes == 3 * MIB  # weight, a product and the one before


def test_what_backward_needs_lives_until_then() -> None:
    def make(device: str) -> Callable[[], object]:
        weight = torch.zeros(512, 512, device=device, requires_grad=True)

        def step() -> None:
            x = weight
            for _ in range(4):
                x = torch.sin(x)  # keeps its input
            x.sum().backward()
            weight.grad = None

        return step

    captured = capture(make, steps=2)
    assert 5 * MIB < captured.peak_bytes < 8 * MIB
    assert allocated(captured.trace) == MIB


def test_gradients_of_several_uses_are_added_in_place() -> None:
    def make(device: str) -> Callable[[], object]:
        weight = torch.zeros(512, 512, device=device, requires_grad=True)

        def step() -> None:
            x = weight * 2
            (x.sin() + x.cos()).sum().backward()
            weight.grad = None

        return step

    adds = [
        one.sizes for one in launches(capture(make).trace) if one.sizes == [("r", MIB), ("rw", MIB)]
    ]
    assert adds == [[("r", MIB), ("rw", MIB)]]


def test_executions_are_known_by_kernel_and_shapes_and_layers_by_their_memory() -> None:
    """As the shim tells them: what lies where in PyTorch's memory is the core's to name."""

    def make(device: str) -> Callable[[], object]:
        layers = [torch.zeros(2048, 2048, device=device) for _ in range(3)]
        x = torch.zeros(2048, 2048, device=device)
        return lambda: [torch.mm(x, layer) for layer in layers]

    trace = capture(make, steps=3, differs=True).trace
    launch_events = [one.event for one in launches(trace)][4:]
    assert len(launch_events) == 9
    assert len({event.execution_hash for event in launch_events}) == 1
    places = [tuple(event.unknown) for event in launch_events]
    assert len(set(places[:3])) == 3


def test_a_step_that_is_like_the_one_before_is_repeated_to_the_byte() -> None:
    def make(device: str) -> Callable[[], object]:
        model = torch.nn.Sequential(
            torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)
        ).to(device)
        table = torch.nn.Embedding(5000, 256, device=device)
        optimizer = torch.optim.AdamW([*model.parameters(), *table.parameters()], foreach=True)

        def step() -> None:
            model(table(torch.randint(5000, (64, 8), device=device))).sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        return step

    repeated, step_by_step = (
        capture(make, steps=9, differs=differs, synchronise=True).trace for differs in (False, True)
    )
    assert repeated.events == step_by_step.events
    assert repeated.work == step_by_step.work
    assert len(events_of(repeated, "synchronise")) == 9


def test_steps_end_with_their_last_launch() -> None:
    trace = capture(
        lambda device: lambda: [torch.zeros(9, device=device).add_(1) for _ in range(3)],
        steps=4,
        differs=True,
    ).trace
    ends = [bool(one.work.flags & work.ENDS_STEP) for one in launches(trace)]
    assert ends == ([False] * 5 + [True]) * 4


def test_launches_tell_the_blocks_of_their_tensors() -> None:
    def make(device: str) -> Callable[[], object]:
        large = torch.zeros(24 * MEBI, device=device)
        return lambda: large[: 2 * MEBI].mul_(2)

    launch = launches(capture(make).trace)[-1]
    (block_range,) = launch.event.unknown
    assert block_range.count == 24 * MIB // UM_BLOCK_BYTES, "PyTorch's block, as the shim tells it"
    assert launch.sizes == [("rw", 2 * MIB)]
