"""Write the functions of a stand-in library that are not done by hand: each says once that it is not simulated and returns 15,
CUBLAS_STATUS_NOT_SUPPORTED. Also writes the linker's version script.

Usage: stubs.py NAMES VERSION_NODE OUT.c OUT.map SOURCE...
"""

import pathlib
import re
import sys


def by_hand(sources: list[str]) -> set[str]:
    """Names that the sources define: API(name), extern "C" ... name(), and what the ACCESSORS and GEMM macros make."""
    done: set[str] = set()
    for source in sources:
        text = pathlib.Path(source).read_text()
        done |= set(re.findall(r"^API\((cublas\w+)\)", text, re.M)) | set(re.findall(r'^extern "C".* (cublas\w+)\(', text, re.M))
        for pair in re.findall(r"^ACCESSORS\((\w+), (\w+)", text, re.M):
            done |= set(pair)
        for letter in re.findall(r"^GEMM\((\w),", text, re.M):
            done |= {f"cublas{letter}gemm_v2", f"cublas{letter}gemmStridedBatched", f"cublas{letter}gemv_v2"}
    return done


def main() -> None:
    names_file, node, out, version_script, *sources = sys.argv[1:]
    done = by_hand(sources)
    names = set(pathlib.Path(names_file).read_text().split())
    if unknown := done - names:
        sys.exit(f"not in {names_file}: {', '.join(sorted(unknown))}")
    lines = [
        "#include <stdio.h>",
        "#define STUB(name) \\",
        '  __attribute__((visibility("default"))) int name(void) { \\',
        "    static int said; \\",
        '    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) fprintf(stderr, "deepum-sim: " #name " is not simulated\\n"); \\',
        "    return 15; \\",
        "  }",
    ]
    lines += [f"STUB({name})" for name in sorted(names - done)]
    pathlib.Path(out).write_text("\n".join(lines) + "\n")
    pathlib.Path(version_script).write_text(f"{node} {{ global: cublas*; deepum_host_module; local: *; }};\n")


if __name__ == "__main__":
    main()
