"""Write the runtime functions that are not done by hand (each says once that it is not simulated and returns 801,
cudaErrorNotSupported), the linker's version script, and the table of error names.

Usage: generate.py INCLUDE_DIR NAMES OUT_DIR SOURCE...
"""

import pathlib
import re
import sys


def main() -> None:
    include, names_file, out, *sources = map(pathlib.Path, sys.argv[1:])
    done = {name for source in sources for name in re.findall(r"CUDARTAPI (_*cuda\w+)\(", source.read_text())}
    names = set(names_file.read_text().split())
    if unknown := done - names:
        sys.exit(f"not in {names_file}: {', '.join(sorted(unknown))}")
    lines = ["#include <stdio.h>", "#define STUB(name) \\", '  __attribute__((visibility("default"))) int name(void) { \\', "    static int said; \\",
             '    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) fprintf(stderr, "deepum-sim: " #name " is not simulated\\n"); \\',
             "    return 801; \\", "  }"]
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
