"""Tensor swapping as IBM's PyTorch Large Model Support (LMS) does it: a program's trace becomes
that of the same program under LMS.

The source is the patch for PyTorch 1.5.0, the last that was published
(github.com/IBM/pytorch-large-model-support): `TensorGuard.h`, `LargeModelSupport.h`,
`CUDACachingAllocator.cpp`. Nothing of a machine is here: what comes out is a trace again, of plain
device memory, copies on streams of their own and waits of the host, which the same replay gives to
the same model.
"""

from deepum.simulate.lms.rewrite import Swapped, refusal, rewrite
from deepum.simulate.lms.swapper import OutOfMemoryError

__all__ = ["OutOfMemoryError", "Swapped", "refusal", "rewrite"]
