"""Random numbers: one kernel that writes them and reads nothing (DistributionTemplates.h)."""

from __future__ import annotations

from deepum.capture.launch import Launch, write
from deepum.capture.operators.call import Call, handles, one_kernel
from deepum.trace.work import Cost

_FLOPS_OF_A_NUMBER = 25.0  # as on the simulated GPU: native/simgpu/kernels/random.cpp
_CHANGES = (
    "uniform_",
    "normal_",
    "bernoulli_",
    "random_",
    "exponential_",
    "log_normal_",
    "cauchy_",
    "geometric_",
)
_MAKES = ("rand", "randn", "randint", "rand_like", "randn_like", "randint_like")


@handles(*_CHANGES, *_MAKES)
def _random(call: Call) -> list[Launch]:
    # bernoulli_ with a probability for each element.
    if call["p"] is not None and not isinstance(call["p"], float):
        return one_kernel(call)
    out = [*call.made, *call.changed]
    return [
        Launch(
            call.name,
            write(*out),
            Cost(flops=_FLOPS_OF_A_NUMBER * sum(tensor.numel() for tensor in out)),
        )
    ]
