"""Static allocation: buffers with known lifetimes in one arena (docs/arena.md)."""

from deepum.arena.buffers import Buffer
from deepum.arena.problem import Fit, Problem

__all__ = ["Buffer", "Fit", "Problem"]
