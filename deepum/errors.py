"""Errors a person sees: one line that names the thing, the cause and the next step; and the exit
codes.
"""

from __future__ import annotations

EXIT_FINDINGS = 1  # `deepum doctor` found something that fails; `deepum log replay`, a difference
EXIT_USAGE = 2
EXIT_FAILED = 125  # deepum itself failed, as with env(1) and timeout(1)
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_FOUND = 127
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as a shell shows it


class DeepumError(Exception):
    """Carries the text after `deepum: error: `, and the exit code."""

    def __init__(self, text: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(text)
        self.exit_code = exit_code

    @property
    def line(self) -> str:
        """The whole line, on one line whatever the parts contain."""
        return f"deepum: error: {' '.join(str(self).split())}"


class UsageError(DeepumError):
    """A setting or argument that cannot be used."""

    def __init__(self, text: str) -> None:
        super().__init__(text, EXIT_USAGE)
