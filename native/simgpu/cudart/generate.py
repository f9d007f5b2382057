"""Write what of the runtime stand-in is not done by hand:

- cudart_forwards.cpp: functions whose arguments are the driver function's, type by type (forwards.names pairs them), and the _ptsz and
  _ptds forms of all functions, for programs compiled with per-thread default streams.
- driver_forwards.inc: the driver functions that the former need.
- cudart_stubs.c: all others; each says once that it is not simulated and returns 801, cudaErrorNotSupported.
- cudart.map, the linker's version script, and error_names.inc, the table of error names.

Usage: generate.py INCLUDE_DIR NAMES FORWARDS OUT_DIR SOURCE...
"""

import pathlib
import re
import sys


def prototypes(header: str) -> dict[str, str]:
    """Parameter lists of the functions that cuda_runtime_api.h declares, without default values."""
    declared = {}
    for name, parameters in re.findall(r"extern __host__ (?:__cudart_builtin__ )?cudaError_t CUDARTAPI (\w+)\s*\(([^;]*)\);", header):
        declared.setdefault(name, " ".join(re.sub(r"__dv\([^)]*\)|=[^,]*", "", parameters).split()))
    return declared


def arguments(parameters: str) -> str:
    """The names in a parameter list."""
    if parameters == "void":
        return ""
    found = [re.search(r"(\w+)\s*$", parameter) for parameter in parameters.split(",")]
    return ", ".join(match.group(1) for match in found if match)


def main() -> None:
    include, names_file, forwards_file, out, *sources = map(pathlib.Path, sys.argv[1:])
    names = set(names_file.read_text().split())
    declared = prototypes((include / "cuda_runtime_api.h").read_text())
    forwards = dict(line.split() for line in forwards_file.read_text().splitlines())
    by_hand = {name for source in sources for name in re.findall(r"CUDARTAPI (_*cuda\w+)\(", source.read_text())}
    if unknown := (by_hand | set(forwards)) - names:
        sys.exit(f"not in {names_file}: {', '.join(sorted(unknown))}")
    if twice := by_hand & set(forwards):
        sys.exit(f"by hand and in {forwards_file}: {', '.join(sorted(twice))}")
    done = by_hand | set(forwards)

    lines = ['#include "runtime.hpp"', "using namespace deepum::simgpu::cudart;", 'extern "C" {']
    for name, function in sorted(forwards.items()):
        call = ", ".join(filter(None, [f"&Driver::{function}", arguments(declared[name])]))
        lines.append(f"cudaError_t CUDARTAPI {name}({declared[name]}) {{ return forward({call}); }}")
    for name in sorted(names - done):
        base = re.sub(r"_pt[sd][sz]$", "", name)
        if base != name and base in done and base in declared:
            body = f"const PerThreadDefault scope; return {base}({arguments(declared[base])});"
            lines.append(f"cudaError_t CUDARTAPI {name}({declared[base]}) {{ {body} }}")
            done.add(name)
    (out / "cudart_forwards.cpp").write_text("\n".join([*lines, "}"]) + "\n")
    loaded = set(re.findall(r"DRIVER\((\w+)\)", (names_file.parent / "driver.def").read_text()))
    (out / "driver_forwards.inc").write_text("".join(f"DRIVER({function})\n" for function in sorted(set(forwards.values()) - loaded)))

    lines = [
        "#include <stdio.h>",
        "#define STUB(name) \\",
        '  __attribute__((visibility("default"))) int name(void) { \\',
        "    static int said; \\",
        '    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) fprintf(stderr, "deepum-sim: " #name " is not simulated\\n"); \\',
        "    return 801; \\",
        "  }",
    ]
    lines += [f"STUB({name})" for name in sorted(names - done)]
    (out / "cudart_stubs.c").write_text("\n".join(lines) + "\n")
    (out / "cudart.map").write_text("libcudart.so.13 { global: cuda*; __cuda*; _ZNK2at7Context16userEnabledCuDNNEv; local: *; };\n")

    enum = re.search(r"enum __device_builtin__ cudaError\s*\{(.*?)\};", (include / "driver_types.h").read_text(), re.S)
    if enum is None:
        sys.exit("no enum cudaError in driver_types.h")
    entries = sorted((int(value), name) for name, value in re.findall(r"(cuda\w+)\s*=\s*(\d+)", enum.group(1)))
    table = ["struct ErrorName { int code; const char* name; };", "constexpr ErrorName kErrorNames[] = {"]
    table += [f'    {{{value}, "{name}"}},' for value, name in entries] + ["};"]
    (out / "error_names.inc").write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
