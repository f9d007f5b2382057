"""One question, in a process of its own: `python -m acceptance.ask NAME ORDINAL simulated|real
short|whole` prints the answer as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from acceptance.bench import Bench
from deepum.doctor.driver import Cuda, CudaError, UnsafeError

# In the order of their weight, so that what is cut off at the end is what matters least; those that
# may hang come late.
QUESTIONS = (
    *(
        "links",
        "calls",
        "discards",
        "clean",
        "remote",
        "order",
        "gates",
        "locks",
        "launches",
        "faults",
        "capture",
        "observe",
        "resolver",
        "sharing",
    ),
)


def main() -> None:
    name, ordinal, kind, length = sys.argv[1:5]
    module = importlib.import_module(f"acceptance.questions.{name}")
    try:
        answer = module.answer(Bench(Cuda(int(ordinal)), kind == "simulated", length == "short"))
    except (CudaError, UnsafeError) as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
    os._exit(0)  # CUPTI may still call back, into an interpreter that is being taken down


if __name__ == "__main__":
    main()
