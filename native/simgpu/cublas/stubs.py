"""Write the functions of a stand-in library that are not done by hand: each says once that it is
not simulated and returns 15, CUBLAS_STATUS_NOT_SUPPORTED. Also writes the versions that the library
answers, and the linker's version script. A name with 12 or 13 behind it in NAMES is in that major's
library alone.

Usage: stubs.py NAMES LIBRARY MAJOR OUT.c OUT.map SOURCE...
"""

import pathlib
import re
import sys

# cublasGetVersion, cublasLtGetCudartVersion.
VERSIONS = {"12": (120900, 12090), "13": (130100, 13000)}


def by_hand(sources: list[str]) -> set[str]:
    """Names that the sources define: API(name), extern "C" ... name(), and what the ACCESSORS and
    GEMM macros make.
    """
    done: set[str] = set()
    for source in sources:
        text = pathlib.Path(source).read_text()
        done |= set(re.findall(r"^API\((cublas\w+)\)", text, re.M)) | set(
            re.findall(r'^extern "C".* (cublas\w+)\(', text, re.M)
        )
        for pair in re.findall(r"^ACCESSORS\((\w+), (\w+)", text, re.M):
            done |= set(pair)
        for letter in re.findall(r"^GEMM\((\w),", text, re.M):
            done |= {
                f"cublas{letter}gemm_v2",
                f"cublas{letter}gemmStridedBatched",
                f"cublas{letter}gemv_v2",
            }
    return done


def main() -> None:
    names_file, library, major, out, version_script, *sources = sys.argv[1:]
    done = by_hand(sources)
    entries = [line.split() for line in pathlib.Path(names_file).read_text().splitlines()]
    names = {entry[0] for entry in entries if entry[1:] in ([], [major])}
    if unknown := done - {entry[0] for entry in entries}:
        sys.exit(f"not in {names_file}: {', '.join(sorted(unknown))}")
    version, cudart = VERSIONS[major]
    lines = [
        (
            f"const int deepum_sim_blas_version = {version}, deepum_sim_blas_cudart_version = "
            f"{cudart};"
        ),
        "#include <stdio.h>",
        "#define STUB(name) \\",
        '  __attribute__((visibility("default"))) int name(void) { \\',
        "    static int said; \\",
        (
            "    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) fprintf(stderr, "
            '"deepum-sim: " #name " is not simulated\\n"); \\'
        ),
        "    return 15; \\",
        "  }",
    ]
    lines += [f"STUB({name})" for name in sorted(names - done)]
    pathlib.Path(out).write_text("\n".join(lines) + "\n")
    exported = "".join(f"    {name};\n" for name in sorted(names | {"deepum_host_module"}))
    pathlib.Path(version_script).write_text(
        f"{library}.so.{major} {{\n  global:\n{exported}  local: *;\n}};\n"
    )


if __name__ == "__main__":
    main()
