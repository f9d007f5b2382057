"""Prefetch, discard and advice while a stream captures: on that stream and on another, in each
mode. Does the capture live on?
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acceptance.bench import BLOCK, Bench

_MODES = ("GLOBAL", "THREAD_LOCAL", "RELAXED")


def answer(bench: Bench) -> dict[str, Any]:
    cuda = bench.cuda
    memory = cuda.managed(4 * BLOCK)
    bench.fill(memory, 4 * BLOCK, 1)
    addresses, sizes = [cuda.api.CUdeviceptr(memory)], [BLOCK]
    batch = (addresses, sizes, 1, [cuda.host], [0], 1, 0)
    host = cuda.host
    calls: dict[str, Callable[[Any], str]] = {
        "prefetch": lambda s: cuda.answer("cuMemPrefetchAsync", memory, BLOCK, host, 0, s),
        "prefetch_batch": lambda s: cuda.answer("cuMemPrefetchBatchAsync", *batch, s),
        "discard_and_prefetch": lambda s: cuda.answer(
            "cuMemDiscardAndPrefetchBatchAsync", *batch, s
        ),
        "discard": lambda s: cuda.answer("cuMemDiscardBatchAsync", addresses, sizes, 1, 0, s),
        "advise": lambda _: cuda.answer(
            "cuMemAdvise",
            memory,
            BLOCK,
            cuda.api.CUmem_advise.CU_MEM_ADVISE_SET_ACCESSED_BY,
            cuda.gpu,
        ),
        "free_memory": lambda _: cuda.answer("cuMemGetInfo"),
    }
    findings: dict[str, Any] = {}
    for mode in _MODES:
        for where in ("same_stream", "other_stream"):
            findings[f"{mode.lower()}_{where}"] = {
                name: _under_capture(bench, mode, where == "same_stream", call)
                for name, call in calls.items()
            }
    return findings


def _under_capture(bench: Bench, mode: str, same: bool, call: Callable[[Any], str]) -> str:
    """What the call answers, and what the capture's end does if that is no success."""
    cuda = bench.cuda
    stream, other = cuda.stream(), cuda.stream()
    cuda(
        "cuStreamBeginCapture",
        stream,
        getattr(cuda.api.CUstreamCaptureMode, f"CU_STREAM_CAPTURE_MODE_{mode}"),
    )
    answered = call(stream if same else other)
    ended = cuda.answer("cuStreamEndCapture", stream)
    cuda.answer("cuStreamSynchronize", other)
    cuda.answer("cuStreamDestroy", stream)
    cuda.answer("cuStreamDestroy", other)
    return answered if ended == "SUCCESS" else f"{answered}, then {ended}"
