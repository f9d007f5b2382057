"""Checks of deepum itself: the shim, and a place for the daemon's socket."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from deepum import __version__, paths
from deepum.doctor.check import Check
from deepum.errors import DeepumError

_MOST_SOCKET_PATH = 107  # bytes: sun_path of unix(7)


def shim() -> Check:
    """That it was built, and no place on the way that LD_PRELOAD cannot name."""
    try:
        path = paths.shim()
    except DeepumError as error:
        return Check(
            "deepum",
            "fail",
            str(error).split(";")[0],
            "reinstall deepum, or run scripts/build in a checkout",
        )
    data = {"version": __version__, "shim": str(path)}
    if any(character in str(path) for character in ": \t"):
        cause = f"{path}: LD_PRELOAD cannot name a path with spaces or colons"
        return Check("deepum", "fail", cause, "install deepum elsewhere", data)
    return Check("deepum", "ok", f"{__version__}, {path}", data=data)


def runtime_folder(environment: Mapping[str, str]) -> Check:
    """Where daemon and programs meet. Nothing is created."""
    folder = paths.runtime_folder(environment)
    data = {"folder": str(folder)}
    remedy = "set DEEPUM_RUNTIME_DIR to a folder of your own with a short name"
    if len(os.fsencode(paths.daemon_files(folder).socket)) > _MOST_SOCKET_PATH:
        return Check(
            "runtime folder", "fail", f"{folder}: is too long for a socket's path", remedy, data
        )
    there: Path = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Check("runtime folder", "fail", f"{there}: cannot be written", remedy, data)
    if there == folder and folder.stat().st_uid != os.getuid():
        return Check("runtime folder", "fail", f"{folder}: belongs to somebody else", remedy, data)
    return Check("runtime folder", "ok", str(folder), data=data)
