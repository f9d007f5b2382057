"""How much of the card is in use at most, until the standard input ends: `python -m acceptance.watch ORDINAL`, beside the others.

Prints what is in use at the start, and the most at the end: bytes, of all processes, managed memory on the card included.
"""

from __future__ import annotations

import select
import sys

from deepum.doctor.driver import Cuda

_SECONDS = 0.01


def main() -> None:
    cuda = Cuda(int(sys.argv[1]))
    total = int(cuda("cuMemGetInfo")[1])
    most = total - cuda.free_bytes()
    print(most, flush=True)
    while not select.select([sys.stdin], [], [], _SECONDS)[0]:
        most = max(most, total - cuda.free_bytes())
    print(most, flush=True)


if __name__ == "__main__":
    main()
