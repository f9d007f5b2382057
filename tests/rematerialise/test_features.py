"""What PyTorch programs do beside calling operators, under budgets: the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from comparing import in_use, run, same, torch

from deepum.rematerialise.heuristics import BY_NAME

nn: Any = torch.nn
functional: Any = torch.nn.functional


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def training(
    build: Callable[[], Any],
    inputs: Callable[[], Any],
    steps: int = 2,
    optimizer: Callable[[Any], Any] | None = None,
) -> Callable[[], Any]:
    """A program: a model is built and trained; losses, gradients, parameters and buffers."""

    def program() -> Any:
        model = build()
        chosen = (optimizer or (lambda given: torch.optim.SGD(given, 0.05)))(model.parameters())
        losses = []
        for _ in range(steps):
            loss = model(inputs()).float().square().mean()
            chosen.zero_grad()
            loss.backward()
            chosen.step()
            losses.append(loss.detach())
        grads = [one.grad for one in model.parameters()]
        return losses, grads, list(model.parameters()), list(model.buffers())

    return program


def layers(*inner: Callable[[], Any], width: int = 32) -> Callable[[], Any]:
    """A model with linear layers around others."""

    def build() -> Any:
        made: list[Any] = []
        for one in inner:
            made += [nn.Linear(width, width), one()]
        return nn.Sequential(*made, nn.Linear(width, width))

    return build


def rows(count: int = 64, width: int = 32) -> Callable[[], Any]:
    return lambda: torch.randn(count, width)


def image_model(*inner: Callable[[], Any]) -> Callable[[], Any]:
    def build() -> Any:
        made: list[Any] = [nn.Conv2d(3, 8, 3, padding=1)]
        for one in inner:
            made += [one(), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)]
        return nn.Sequential(*made)

    return build


def images() -> Any:
    return torch.randn(4, 3, 12, 12)


# Modules.


def test_dropout_draws_the_same_numbers() -> None:
    same(training(layers(nn.Dropout, nn.Tanh, nn.Dropout, nn.AlphaDropout), rows()))


def test_a_generator_of_the_programs_own() -> None:
    def program() -> Any:
        own = torch.Generator().manual_seed(3)
        kept = []
        for _ in range(8):
            noise = torch.rand(500, generator=own)
            kept += [noise * 2, torch.empty(500).normal_(generator=own), torch.randn(500)]
            kept.append(torch.randperm(500, generator=own))
        total = sum(one.sum() for one in kept)
        return kept, total, own.get_state()

    same(program)


@pytest.mark.parametrize("momentum", [0.1, None], ids=["moving", "cumulative"])
def test_batch_norm_updates_its_statistics_once(momentum: float | None) -> None:
    build = image_model(
        lambda: nn.BatchNorm2d(8, momentum=momentum), lambda: nn.BatchNorm2d(8, momentum=momentum)
    )
    same(training(build, images, steps=3))


def test_batch_norm_in_evaluation_and_back() -> None:
    def program() -> Any:
        model = image_model(lambda: nn.BatchNorm2d(8), lambda: nn.BatchNorm2d(8))()
        results = []
        for train in (True, False, True, False):
            model.train(train)
            out = model(images())
            out.square().sum().backward()
            results.append(out.detach().mean())
        return results, list(model.buffers()), [one.grad for one in model.parameters()]

    same(program)


def test_instance_and_group_norm() -> None:
    build = image_model(
        lambda: nn.InstanceNorm2d(8, affine=True, track_running_stats=True),
        lambda: nn.GroupNorm(2, 8),
    )
    same(training(build, images))


def test_transposed_convolutions_and_pooling() -> None:
    build = image_model(
        lambda: nn.ConvTranspose2d(8, 8, 3, padding=1),
        lambda: nn.MaxPool2d(2),
        lambda: nn.AdaptiveAvgPool2d(5),
        lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
    )
    same(training(build, images), recomputes=False)


class _First(nn.Module):  # type: ignore[misc]
    """A recurrent module, without its last state."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, given: Any) -> Any:
        return self.inner(given)[0]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_modules(kind: str) -> None:
    def build() -> Any:
        made = getattr(nn, kind)(16, 16, num_layers=2, dropout=0.2)
        return nn.Sequential(nn.Linear(16, 16), _First(made), nn.Linear(16, 16))

    same(training(build, lambda: torch.randn(12, 4, 16)))


def test_attention() -> None:
    class Attends(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True)

        def forward(self, given: Any) -> Any:
            out, _ = self.inner(given, given, given)
            causal = functional.scaled_dot_product_attention(out, given, out, is_causal=True)
            return causal + out

    def build() -> Any:
        return nn.Sequential(Attends(), nn.LayerNorm(16), Attends(), nn.GELU())

    same(training(build, lambda: torch.randn(4, 12, 16)))


def test_a_transformer_encoder_with_a_mask_in_evaluation() -> None:
    def program() -> Any:
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        model = nn.TransformerEncoder(layer, 2).eval()
        given = torch.randn(4, 12, 16)
        mask = torch.arange(12).expand(4, 12) >= torch.tensor([[12], [7], [9], [3]])
        kept = [given * float(place) for place in range(8)]
        with torch.no_grad():
            results = [model(one, src_key_padding_mask=mask) for one in kept]
        return kept, results

    same(program, recomputes=False)


def test_embeddings_with_dense_and_sparse_gradients() -> None:
    def program() -> Any:
        dense, sparse = nn.Embedding(50, 16), nn.Embedding(50, 16, sparse=True)
        bag = nn.EmbeddingBag(50, 16, mode="mean")
        words = torch.randint(50, (40, 6))
        chosen = torch.optim.SGD(
            [*dense.parameters(), *sparse.parameters(), *bag.parameters()], 0.1
        )
        for _ in range(2):
            chosen.zero_grad()
            hidden = torch.tanh(dense(words) * sparse(words)).sum(1) * bag(words)
            hidden.exp().sum().backward()
            chosen.step()
        return dense.weight, sparse.weight, bag.weight, sparse.weight.grad

    same(program)


# Optimizers.


@pytest.mark.parametrize(
    "make",
    [
        lambda given: torch.optim.SGD(given, 0.05, momentum=0.9, nesterov=True),
        lambda given: torch.optim.AdamW(given, 0.01, foreach=False),
        lambda given: torch.optim.AdamW(given, 0.01, foreach=True),
        lambda given: torch.optim.AdamW(given, 0.01, fused=True, amsgrad=True),
        lambda given: torch.optim.SGD(given, 0.05, momentum=0.9, fused=True),
        lambda given: torch.optim.RMSprop(given, 0.01, centered=True),
        lambda given: torch.optim.Adagrad(given, 0.01),
    ],
    ids=["momentum", "adamw", "foreach", "fused", "fused-sgd", "rmsprop", "adagrad"],
)
def test_optimizers(make: Callable[[Any], Any]) -> None:
    same(training(layers(nn.Tanh, nn.Dropout, nn.GELU), rows(256), 3, make))


def test_clipped_and_accumulated_gradients() -> None:
    def program() -> Any:
        model = layers(nn.Tanh, nn.GELU, nn.Sigmoid)()
        chosen = torch.optim.Adam(model.parameters(), 0.01)
        norms = []
        for _ in range(2):
            chosen.zero_grad(set_to_none=False)
            for _ in range(3):
                (model(torch.randn(256, 32)).square().mean() / 3).backward()
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.01))
            chosen.step()
        return norms, [(one, one.grad) for one in model.parameters()]

    same(program)


# Autograd.


class _Cube(torch.autograd.Function):  # type: ignore[misc]
    """Saves an input and a result, and has a gradient that can be differentiated."""

    @staticmethod
    def forward(ctx: Any, given: Any) -> Any:
        square = given * given
        ctx.save_for_backward(given, square)
        ctx.mark_non_differentiable(square)
        return square * given, square

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        given, square = ctx.saved_tensors
        return grad * (given * given + 2 * square)


def test_functions_of_the_programs_own() -> None:
    def program() -> Any:
        given = torch.randn(2000, requires_grad=True)
        value = given
        others = []
        for _ in range(5):
            value, square = _Cube.apply(value.sin())
            others.append(square)
        value.sum().backward()
        return value, given.grad, others

    same(program)


def test_hooks_of_tensors_and_modules() -> None:
    def program() -> Any:
        model = layers(nn.Tanh, nn.GELU, nn.Tanh)()
        seen: list[Any] = []

        def twice(_module: Any, _given: Any, out: Any) -> Any:
            seen.append(out)
            return out * 2

        def double(one: Any) -> None:
            one.grad.mul_(2)

        for one in model:
            one.register_forward_hook(twice)
            one.register_full_backward_hook(lambda _m, grads, _o: seen.append(grads[0]))
        given = torch.randn(256, 32, requires_grad=True)
        given.register_hook(lambda grad: grad * 3)
        model[0].weight.register_post_accumulate_grad_hook(double)
        out = model(given)
        out.retain_grad()
        out.square().sum().backward()
        return out.grad, given.grad, seen, [one.grad for one in model.parameters()]

    same(program)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    def program() -> Any:
        model = layers(nn.Dropout, nn.GELU, nn.Dropout, nn.Tanh)()
        given = torch.randn(256, 32, requires_grad=True)
        hidden = checkpoint(model[:4], given, use_reentrant=reentrant)
        hidden = checkpoint(model[4:], hidden, use_reentrant=reentrant)
        hidden.square().sum().backward()
        return given.grad, [one.grad for one in model.parameters()]

    same(program)


def test_hooks_of_saved_tensors() -> None:
    def program() -> Any:
        model = layers(nn.Tanh, nn.GELU, nn.Tanh)()
        given = torch.randn(256, 32, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda one: one * 2, lambda one: one / 2):
            hidden = model(given)
        with torch.autograd.graph.save_on_cpu():
            hidden = model(hidden)
        hidden.square().sum().backward()
        return given.grad, [one.grad for one in model.parameters()]

    same(program)


def test_second_derivatives_and_kept_graphs() -> None:
    def program() -> Any:
        given = torch.randn(1000, requires_grad=True)
        out = (given.sin() * given.exp()).tanh().pow(3)
        (first,) = torch.autograd.grad(out.sum(), given, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), given, create_graph=True)
        second.sum().backward(retain_graph=True)
        second.sum().backward()
        return out, first, second, given.grad

    same(program)


def test_a_tensor_that_was_changed_is_the_same_error() -> None:
    def program() -> Any:
        given = torch.randn(1000, requires_grad=True)
        middle = given.sin()
        out = middle.exp()
        rest = [out * place for place in range(6)]
        out.add_(1)
        try:
            sum(rest).sum().backward()
        except RuntimeError as error:
            return rest, out, str(error).split(" is at version")[0]
        raise AssertionError("no error")

    same(program)


def test_forward_mode() -> None:
    def program() -> Any:
        def function(one: Any, two: Any) -> Any:
            return (one.sin() * two.exp()).tanh() + one.detach() * two

        given = torch.randn(1000), torch.randn(1000)
        kept = [one * 3 for one in given]
        out = torch.func.jvp(function, given, (torch.ones(1000), torch.zeros(1000)))
        return kept, out

    same(program)


def test_transforms_of_functions() -> None:
    def program() -> Any:
        weight = torch.randn(16, 16)
        given = torch.randn(40, 16)

        def loss(weight: Any, one: Any) -> Any:
            return (one @ weight).tanh().square().sum()

        each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weight, given)
        hessian = torch.func.hessian(loss)(weight[:4, :4], given[0, :4])
        drawn = torch.func.vmap(lambda one: functional.dropout(one, 0.5), randomness="different")(
            given
        )
        return each, hessian, drawn

    same(program)


# Modes.


@pytest.mark.parametrize("kind", ["autocast", "outer autocast"])
def test_autocast(kind: str) -> None:
    def program() -> Any:
        model = layers(nn.GELU, nn.Dropout, nn.Tanh)()
        losses = []
        for _ in range(2):
            given = torch.randn(256, 32)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out = model(given)
                loss = functional.mse_loss(out.float(), given)
                if kind == "outer autocast":
                    loss.backward()
            if kind == "autocast":
                loss.backward()
            losses.append(loss)
        return losses, [one.grad for one in model.parameters()]

    same(program)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode: Any) -> None:
    def program() -> Any:
        model = image_model(lambda: nn.BatchNorm2d(8), nn.Dropout2d)()
        with mode():
            kept = [model(images()) for _ in range(6)]
            turned = [one.transpose(1, 2).reshape(4, -1) for one in kept]
            wide = [one.permute(0, 2, 3, 1).contiguous() for one in kept]
            halves = [one.to(torch.bfloat16) for one in kept]
            products = [one @ one.t() for one in turned]
            for one in kept:
                one.mul_(2)
        return kept, turned, wide, halves, products

    same(program)


def test_tensors_of_inference_outside_of_it() -> None:
    def program() -> Any:
        with torch.inference_mode():
            kept = [torch.randn(1000).sin() for _ in range(6)]
        return kept, [one.clone().exp() for one in kept]

    same(program)


def test_gradients_of_complex_numbers() -> None:
    def program() -> Any:
        given = torch.randn(500, dtype=torch.complex64, requires_grad=True)
        out = given.conj() * given.exp()
        spectrum = torch.fft.fft(out)
        total = (spectrum.imag * spectrum.conj().real).sum() + torch.view_as_real(out).sum()
        total.backward()
        return out, spectrum, given.grad, out.conj().imag.neg()

    same(program)


def test_the_deterministic_setting_is_that_of_the_call() -> None:
    def program() -> Any:
        kept = []
        for place in range(6):
            torch.use_deterministic_algorithms(place % 2 == 0)
            index = torch.randint(50, (500,))
            kept.append(torch.zeros(50, 8).index_add(0, index, torch.randn(500, 8)))
            kept.append(torch.randn(2000).cumsum(0))
        torch.use_deterministic_algorithms(False)
        return kept, sum(one.sum() for one in kept)

    same(program)


def test_a_setting_that_only_warns_is_left_as_it_is() -> None:
    """An error would end a program that asked for a warning."""

    def program() -> Any:
        kept = []
        for place in range(6):
            torch.use_deterministic_algorithms(place % 2 == 0, warn_only=True)
            kept.append(torch.randn(40_000).exp())
        torch.use_deterministic_algorithms(True, warn_only=True)
        total = sum(one.sum() for one in kept)
        found = torch.is_deterministic_algorithms_warn_only_enabled()
        torch.use_deterministic_algorithms(False)
        return total, found

    same(program)


def test_the_number_of_threads_is_that_of_the_call() -> None:
    def program() -> Any:
        kept = []
        for place in range(6):
            torch.set_num_threads(1 + place % 2)
            kept.append(torch.randn(40_000).sum())
            kept.append(torch.randn(40_000).softmax(0))
        torch.set_num_threads(1)
        return kept, sum(one.sum() for one in kept)

    same(program)


def test_decisions_by_values() -> None:
    def program() -> Any:
        value = torch.randn(1000)
        kept = [value]
        for _ in range(12):
            value = value.sin() * 3 if value.sum().item() > 0 else value.cos() - 0.5
            if bool((value > 1).any()):
                kept.append(value[value > 1])
            kept += [value, value.nonzero()]
        return kept, [len(one) for one in kept]

    same(program, recomputes=False)


@pytest.mark.parametrize("heuristic", BY_NAME)
def test_all_heuristics(heuristic: str) -> None:
    same(training(layers(nn.Dropout, nn.GELU, nn.Tanh), rows(256)), heuristic=heuristic)
    program = training(layers(nn.Dropout, nn.GELU, nn.Tanh), rows(256))
    expected, _ = run(program)
    same(program, expected=expected, heuristic=heuristic, sampling=False, verify=False)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(
    ("change", "is_ordered"),
    [
        (lambda place, index, given: place.index_put((index,), given, accumulate=True), False),
        (lambda place, index, given: place.index_put((index,), given), False),
        (lambda place, index, given: place.index_copy(0, index, given), False),
        (lambda place, index, given: place.put(index, given[:, 0].contiguous()), False),
        (lambda place, index, given: place.index_put((place > 0,), torch.tensor(2.0)), True),
        (lambda place, index, given: place.index_add(0, index, given), True),
        (
            lambda place, index, given: place.scatter_add(0, index[:, None].expand(-1, 64), given),
            True,
        ),
    ],
)
def test_what_several_threads_write_in_any_order_is_not_run_again(
    threads: int, change: Callable[[Any, Any, Any], Any], is_ordered: bool
) -> None:
    """Run again it would give another content than what the program read before: it stays, and
    takes the room of what comes then.
    """

    def content(of: Any) -> int:
        return int(of.view(torch.int32).sum(dtype=torch.int64).item())

    def program() -> Any:
        torch.set_num_threads(threads)
        place, index = torch.zeros(20_000, 64), torch.randint(500, (20_000,))
        made = change(place, index, torch.randn(20_000, 64))
        before = content(made)
        torch.randn(40_000, 64).exp().sum().item()
        return content(made) == before

    budget = in_use() + 23_000_000
    if not is_ordered and threads > 1:
        with pytest.raises(torch.OutOfMemoryError, match="pinned"):
            run(program, budget)
        return
    found, statistics = run(program, budget)
    assert found[0]
    assert statistics.recomputed > 0
