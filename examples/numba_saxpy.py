"""y = a x + y with numba-cuda, several times over: python numba_saxpy.py --elements 100000000

On the simulated GPU the kernel is compiled and launched, but not executed, so no result is checked
there.
"""

import argparse

import numpy
from numba import cuda


@cuda.jit("void(float32, float32[::1], float32[::1])")
def saxpy(a, x, y):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=16 << 20)
    parser.add_argument("--arrays", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    pairs = [
        (
            cuda.device_array(arguments.elements, numpy.float32),
            cuda.device_array(arguments.elements, numpy.float32),
        )
        for _ in range(arguments.arrays)
    ]
    threads = 256
    blocks = (arguments.elements + threads - 1) // threads
    for round_number in range(1, arguments.rounds + 1):
        begin, end = cuda.event(), cuda.event()
        begin.record()
        for x, y in pairs:
            saxpy[blocks, threads](numpy.float32(2.0), x, y)
        end.record()
        end.synchronize()
        print(f"round {round_number}: {cuda.event_elapsed_time(begin, end):.3f} ms", flush=True)


if __name__ == "__main__":
    main()
