"""Write the functions of the stand-in libcupti that are not done by hand: each answers 27,
CUPTI_ERROR_NOT_SUPPORTED. Also writes the version that the library answers, and the linker's
version script. A name with 12 or 13 behind it in NAMES is in that major's library alone.

Usage: stubs.py NAMES MAJOR OUT.c OUT.map SOURCE
"""

import pathlib
import re
import sys

API_VERSIONS = {"12": 28, "13": 130001}  # CUPTI_API_VERSION of CUDA 12.9 and 13.0


def main() -> None:
    names_file, major, out, version_script, source = sys.argv[1:]
    done = set(re.findall(r"^API (cupti\w+)\(", pathlib.Path(source).read_text(), re.M))
    entries = [line.split() for line in pathlib.Path(names_file).read_text().splitlines()]
    names = {entry[0] for entry in entries if entry[1:] in ([], [major])}
    if unknown := done - {entry[0] for entry in entries}:
        sys.exit(f"not in {names_file}: {', '.join(sorted(unknown))}")
    stubs = [f"const unsigned deepum_sim_cupti_version = {API_VERSIONS[major]};"]
    stubs += [
        f'__attribute__((visibility("default"))) int {name}(void) {{ return 27; }}'
        for name in sorted(names - done)
    ]
    pathlib.Path(out).write_text("\n".join(stubs) + "\n")
    exported = "".join(f"    {name};\n" for name in sorted(names | {"deepum_sim_cupti_state"}))
    pathlib.Path(version_script).write_text(
        f"libcupti.so.{major} {{\n  global:\n{exported}  local: *;\n}};\n"
    )


if __name__ == "__main__":
    main()
