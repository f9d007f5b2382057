"""The metrics that callbacks log."""

from __future__ import annotations

from deepum.inside.steps import StepFigures

_GIB = float(1 << 30)


def of_steps(figures: StepFigures, steps: int) -> dict[str, float]:
    """By name, a mean of so many steps; what nobody knows is left out."""
    metrics = {
        "deepum/step_s": figures.seconds / steps,
        "deepum/gib_in": figures.bytes_in / _GIB / steps,
        "deepum/gib_out": figures.bytes_out / _GIB / steps,
        "deepum/gib_discarded": figures.bytes_discarded / _GIB / steps,
        "deepum/resident_gib": figures.resident_bytes / _GIB,
        "deepum/allocated_gib": figures.allocated_bytes / _GIB,
    }
    if figures.gpu_seconds is not None:
        metrics["deepum/virtual_step_s"] = figures.gpu_seconds / steps
    if figures.faults is not None:
        metrics["deepum/faults"] = figures.faults / steps
    return metrics
