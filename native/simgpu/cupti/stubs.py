"""Write the functions of the stand-in libcupti that are not done by hand: each answers 27, CUPTI_ERROR_NOT_SUPPORTED. Also writes the
linker's version script.

Usage: stubs.py NAMES VERSION_NODE OUT.c OUT.map SOURCE
"""

import pathlib
import re
import sys


def main() -> None:
    names_file, node, out, version_script, source = sys.argv[1:]
    done = set(re.findall(r"^API (cupti\w+)\(", pathlib.Path(source).read_text(), re.M))
    names = set(pathlib.Path(names_file).read_text().split())
    if unknown := done - names:
        sys.exit(f"not in {names_file}: {', '.join(sorted(unknown))}")
    stubs = [f'__attribute__((visibility("default"))) int {name}(void) {{ return 27; }}' for name in sorted(names - done)]
    pathlib.Path(out).write_text("\n".join(stubs) + "\n")
    pathlib.Path(version_script).write_text(f"{node} {{ global: cupti*; local: *; }};\n")


if __name__ == "__main__":
    main()
