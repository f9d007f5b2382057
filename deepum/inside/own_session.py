"""The daemon's session of this process, by the control channel."""

from __future__ import annotations

import os
import warnings

from deepum import shim
from deepum.client.channel import Channel, NoDaemonError
from deepum.daemon.figures import SessionFigures
from deepum.daemon.steering import Changes

_warned = False


def warn_if_absent(what: str) -> bool:
    """Whether this program does not run under deepum; the first function of all that has nothing to
    do for that says so, to its caller's caller.
    """
    global _warned
    if shim.is_loaded() and not shim.is_disabled():
        return False
    if not _warned:
        _warned = True
        warnings.warn(
            f"deepum.{what}: does nothing, since this program does not run under deepum; start it "
            f"with `deepum run -- ...`",
            RuntimeWarning,
            stacklevel=3,
        )
    return True


def figures() -> SessionFigures | None:
    """Of this process, as of now; None before it uses a GPU, or where nobody serves it. Raises
    DeepumError where the daemon cannot be asked.
    """
    try:
        with Channel(os.environ) as channel:
            return _own(channel)
    except NoDaemonError:
        return None


def change(changes: Changes) -> bool:
    """Changes settings of this process's session; whether there is one. Raises DeepumError where
    the daemon refuses them, with the reason.
    """
    try:
        with Channel(os.environ) as channel:
            found = _own(channel)
            if found is None:
                return False
            channel.set(found.session, changes)
            return True
    except NoDaemonError:
        return False


def _own(channel: Channel) -> SessionFigures | None:
    pid = os.getpid()
    return next((each for each in channel.sessions() if each.pid == pid), None)
