"""Errors of rematerialisation that a program's author sees."""

from __future__ import annotations

from deepum.errors import DeepumError


class RematerialisationError(DeepumError):
    """Rematerialisation cannot go on, or would give other numbers than the program without it."""
