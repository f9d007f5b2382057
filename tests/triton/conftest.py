"""Programs whose kernels Triton makes."""

from launching import host_module, python, run

__all__ = ["host_module", "python", "run"]
