"""What does a prefetch call cost the host, from 2 MiB to 1 GiB: single and in batches, either way,
and where nothing is to be moved?
"""

from __future__ import annotations

from typing import Any

from acceptance.bench import BLOCK, Bench, host_us
from deepum.doctor.driver import MIB

_SIZES = (2, 8, 32, 128, 512, 1024)  # MiB
_RANGES = (1, 8, 64, 256)


def answer(bench: Bench) -> dict[str, Any]:
    cuda = bench.cuda
    most = bench.whole(1024 * MIB)
    memory = cuda.managed(most)
    bench.fill(memory, most, 1)
    single = []
    for size in [mib * MIB for mib in _SIZES if mib * MIB <= most]:
        row: dict[str, Any] = {"bytes": size}
        for name, place in (
            ("to_host", cuda.host),
            ("to_host_again", cuda.host),
            ("to_gpu", cuda.gpu),
            ("to_gpu_again", cuda.gpu),
        ):

            def call(size: int = size, place: Any = place) -> None:
                cuda.prefetch(memory, size, place, bench.stream)

            row[f"{name}_host_us"] = host_us(call)
            row[f"{name}_done_us"] = round(row[f"{name}_host_us"] + host_us(bench.wait), 2)
        single.append(row)
    batched = []
    for count in [
        count
        for count in _RANGES
        if 2 * count * BLOCK <= most and bench.has("cuMemPrefetchBatchAsync")
    ]:
        # Apart: neighbours could be taken together.
        ranges = [(memory + 2 * i * BLOCK, BLOCK) for i in range(count)]
        bench.put(memory, most, cuda.gpu)  # all of it: the calls before left most on the host
        row = {"ranges": count, "bytes": count * BLOCK}
        for name, place in (("to_host", cuda.host), ("to_gpu", cuda.gpu)):

            def call_batch(ranges: list[tuple[int, int]] = ranges, place: Any = place) -> None:
                bench.batch("cuMemPrefetchBatchAsync", ranges, place)

            def call_each(ranges: list[tuple[int, int]] = ranges, place: Any = place) -> None:
                for address, size in ranges:
                    cuda.prefetch(address, size, place, bench.stream)

            row[f"{name}_batch_host_us"] = host_us(call_batch)
            row[f"{name}_batch_done_us"] = round(
                row[f"{name}_batch_host_us"] + host_us(bench.wait), 2
            )
            # back, for the calls one by one.
            bench.put(memory, most, cuda.gpu if place is cuda.host else cuda.host)
            row[f"{name}_each_host_us"] = host_us(call_each)
            row[f"{name}_each_done_us"] = round(
                row[f"{name}_each_host_us"] + host_us(bench.wait), 2
            )
        batched.append(row)
    return {"single": single, "batched": batched}
