"""What has to be built, with what is there: the shim, the core and the simulated GPU, and the
questions' loops. Nothing is fetched.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from acceptance import processes
from acceptance.place import HERE, ROOT, TREE


def cuda_include() -> Path | None:
    """The folder of cuda.h: of the toolkit whose nvcc is there, a named one, or a wheel."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    places = [
        Path(os.environ[name], "include")
        for name in ("CUDA_HOME", "CUDA_PATH")
        if os.environ.get(name)
    ]
    places += [Path(nvcc).resolve().parent.parent / "include", Path("/usr/local/cuda/include")]
    places += [
        place / "targets/x86_64-linux/include" for place in [folder.parent for folder in places]
    ]
    found = importlib.util.find_spec("nvidia")
    places += [
        Path(place, "cu13", "include")
        for place in (found.submodule_search_locations or () if found else ())
    ]
    if os.access(nvcc, os.X_OK):  # it may be a script that calls the real one
        result = processes.run([nvcc, "--dryrun", "-E", "-x", "cu", os.devnull], os.environ, 20)
        places += [
            Path(line.split("=", 1)[1].strip(), "include")
            for line in result.err.splitlines()
            if line.startswith("#$ TOP=")
        ]
    return next((place.resolve() for place in places if (place / "cuda.h").is_file()), None)


def missing() -> list[str]:
    """What the build lacks, a line each; empty if it can be tried."""
    lacks = [
        f"{tool}: is missing; install {what}"
        for tool, what in (("cmake", "CMake 3.25 or later"), ("g++", "a C++20 compiler"))
        if not shutil.which(tool)
    ]
    for module, why in (
        ("cffi", "the core's Python face"),
        ("pycparser", "cffi"),
        ("click", "the command"),
        ("numpy", "the daemon"),
    ):
        if importlib.util.find_spec(module) is None:
            lacks.append(
                f"{module}: is missing, which {why} needs; pip install {module}, or unpack "
                f"its wheel and name the folder in PYTHONPATH"
            )
    if cuda_include() is None:
        lacks.append(
            "cuda.h: was not found; name a toolkit of CUDA 13 in CUDA_HOME, or pip install "
            "nvidia-cuda-runtime nvidia-cuda-crt"
        )
    return lacks


def usable() -> bool:
    """Whether this Python finds a deepum that is built."""
    script = (
        "import deepum._core; from deepum import paths; paths.shim(); paths.simulator_preloads()"
    )
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([*TREE, os.environ.get("PYTHONPATH", "")])
    }
    return processes.run([sys.executable, "-P", "-c", script], environment, 60).code == 0


def build(folder: Path, seconds: float) -> dict[str, Any]:
    """Into the tree, as scripts/build does. What was done, or `error`."""
    lacks = missing()
    if lacks:
        return {"built": False, "error": "; ".join(lacks)}
    make = ["-G", "Ninja"] if shutil.which("ninja") else []
    configure = [
        "cmake",
        "-S",
        ROOT,
        "-B",
        folder,
        *make,
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DDEEPUM_CUDA_INCLUDE={cuda_include()}",
        "-DDEEPUM_BATCHES=ON",
    ]
    steps: list[list[Any]] = [
        configure,
        ["cmake", "--build", folder, "--parallel", str(os.cpu_count() or 2)],
    ]
    steps += [
        ["cmake", "--install", folder, "--prefix", ROOT, "--component", part]
        for part in ("shim", "sim", "core")
    ]
    spent = 0.0
    for step in steps:
        ran = processes.run(step, os.environ, seconds - spent)
        spent += ran.seconds
        if ran.trouble is not None:
            messages = [
                line for line in (ran.err + ran.out).splitlines() if "error" in line.lower()
            ]
            return {"built": False, "error": f"{step[0]} {ran.trouble}", "said": messages[:10]}
    return {"built": True, "seconds": round(spent, 1)}


def compile_loops(folder: Path) -> Path | None:
    """native/loops.c as a shared object; None without a compiler or cuda.h."""
    include = cuda_include()
    target = folder / "loops.so"
    if include is None or not shutil.which("gcc"):
        return None
    command = [
        "gcc",
        "-O2",
        "-shared",
        "-fPIC",
        f"-I{include}",
        str(HERE / "native" / "loops.c"),
        "-o",
        str(target),
        "-ldl",
    ]
    return (
        target
        if subprocess.run(command, check=False, capture_output=True).returncode == 0
        else None
    )
