"""Ways in which programs launch work, each with more memory than the card has."""

from launching import driver, host_module, python, run

__all__ = ["driver", "host_module", "python", "run"]
