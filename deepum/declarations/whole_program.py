"""A whole program whose operators declare what they only read (`deepum run --tune
writes=operators`).
"""

from __future__ import annotations

from deepum.declarations.messages import warn


def begin() -> None:
    """From now on, PyTorch being imported; without the shim nothing happens. An error ends that,
    and never the program.
    """
    try:
        # Only here: a PyTorch of another version may lack what it needs.
        from deepum.declarations.program import Declarations, check_version
        from deepum.declarations.shim import find

        shim = find()
        if shim is not None:
            check_version()
            Declarations(shim).install()
    except Exception as error:
        warn(error)
