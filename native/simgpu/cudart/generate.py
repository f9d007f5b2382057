"""Write what of the runtime stand-in is not done by hand. For the objects that both majors share
(`shared`):

- changed_define.inc, changed_undefine.inc: the names of changed.names, as macros.
- driver_forwards.inc: the driver functions that forwards.names needs.
- error_names.inc, the table of error names.

For one major's library (`12`, `13`):

- cudart_forwards.cpp: functions whose arguments are the driver function's, type by type
  (forwards.names pairs them), CUDA 13's forms of
  changed.names, and the _ptsz and _ptds forms of all functions, for programs compiled with
  per-thread default streams.
- cudart_stubs.c: all others; each says once that it is not simulated and returns 801,
  cudaErrorNotSupported.
- cudart_functions.c: all of them by name (functions.h).
- cudart.map, the linker's version script.

cudart.names lists what the real libraries export; a name with 12 or 13 behind it is in that one
alone. changed.names pairs functions whose form CUDA 13 changed with what CUDA 12 calls the form of
CUDA 13; where it has no name for it, one that is not exported.

Usage: generate.py shared|12|13 INCLUDE_DIR OUT_DIR SOURCE... with the sources that both share and,
behind --, those of this major
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
PYTORCH = {  # of cudnn_off.cpp and pytorch_blocks.cpp
    "_ZNK2at7Context16userEnabledCuDNNEv",
    "_ZNK2at7Context19userEnabledCuDNNSDPEv",
    "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
}


def prototypes(header: str) -> dict[str, str]:
    """Parameter lists of the functions that cuda_runtime_api.h declares, without default values."""
    declared = {}
    for name, parameters in re.findall(
        r"extern __host__ (?:__cudart_builtin__ )?cudaError_t CUDARTAPI (\w+)\s*\(([^;]*)\);",
        header,
    ):
        declared.setdefault(name, " ".join(re.sub(r"__dv\([^)]*\)|=[^,]*", "", parameters).split()))
    return declared


def definitions(source: str) -> dict[str, str]:
    """Parameter lists of the exported functions that a source defines, in the same form."""
    return {
        name: " ".join(parameters.split())
        for name, parameters in re.findall(r"CUDARTAPI (_*cuda\w+)\(([^{;]*)\) \{", source)
    }


def arguments(parameters: str) -> str:
    """The names in a parameter list."""
    if parameters == "void":
        return ""
    found = [re.search(r"(\w+)\s*$", parameter) for parameter in parameters.split(",")]
    return ", ".join(match.group(1) for match in found if match)


def pairs(name: str) -> dict[str, str]:
    """The two columns of one of the lists beside this script."""
    return dict(line.split() for line in (HERE / name).read_text().splitlines())


def names_of(major: str) -> set[str]:
    """What the real library of that major exports."""
    entries = [line.split() for line in (HERE / "cudart.names").read_text().splitlines()]
    return {entry[0] for entry in entries if entry[1:] in ([], [major])}


def write_shared(
    include: pathlib.Path, out: pathlib.Path, forwards: dict[str, str], changed: dict[str, str]
) -> None:
    (out / "changed_define.inc").write_text(
        "".join(f"#define {name} {form}\n" for name, form in changed.items())
    )
    (out / "changed_undefine.inc").write_text("".join(f"#undef {name}\n" for name in changed))
    loaded = set(re.findall(r"DRIVER\((\w+)\)", (HERE / "driver.def").read_text()))
    (out / "driver_forwards.inc").write_text(
        "".join(f"DRIVER({function})\n" for function in sorted(set(forwards.values()) - loaded))
    )

    enum = re.search(
        r"enum __device_builtin__ cudaError\s*\{(.*?)\};",
        (include / "driver_types.h").read_text(),
        re.S,
    )
    if enum is None:
        sys.exit("no enum cudaError in driver_types.h")
    entries = sorted(
        (int(value), name) for name, value in re.findall(r"(cuda\w+)\s*=\s*(\d+)", enum.group(1))
    )
    table = [
        "struct ErrorName { int code; const char* name; };",
        "constexpr ErrorName kErrorNames[] = {",
    ]
    table += [f'    {{{value}, "{name}"}},' for value, name in entries] + ["};"]
    (out / "error_names.inc").write_text("\n".join(table) + "\n")


def write_major(
    major: str,
    declared: dict[str, str],
    forwards: dict[str, str],
    changed: dict[str, str],
    shared: dict[str, str],
    own: dict[str, str],
    out: pathlib.Path,
) -> None:
    names = names_of(major)
    form = (
        {name: changed.get(name, name) for name in declared}
        if major == "12"
        else {name: name for name in declared}
    )
    # The parameters of what may be called here.
    known = {form[name]: parameters for name, parameters in declared.items()} | own
    done = {changed.get(name, name) for name in shared} | set(own)

    lines = [
        '#include "runtime.hpp"',
        '#include "changed_undefine.inc"',
        "using namespace deepum::simgpu::cudart;",
        'extern "C" {',
    ]
    lines += [f"cudaError_t CUDARTAPI {name}({parameters});" for name, parameters in own.items()]
    for name, function in sorted(forwards.items()):
        if form[name] in names - done:
            call = ", ".join(filter(None, [f"&Driver::{function}", arguments(declared[name])]))
            lines.append(
                f"cudaError_t CUDARTAPI {form[name]}({declared[name]}) {{ return "
                f"forward({call}); }}"
            )
            done.add(form[name])
    if major == "13":
        for name in sorted(set(changed) - done):
            lines.append(f"cudaError_t CUDARTAPI {changed[name]}({declared[name]});")
            lines.append(
                f"cudaError_t CUDARTAPI {name}({declared[name]}) {{ return "
                f"{changed[name]}({arguments(declared[name])}); }}"
            )
            done.add(name)
    for name in sorted(names - done):
        base = re.sub(r"_pt[sd][sz]$", "", name)
        if base != name and base in done and base in known:
            body = f"const PerThreadDefault scope; return {base}({arguments(known[base])});"
            lines.append(f"cudaError_t CUDARTAPI {name}({known[base]}) {{ {body} }}")
            done.add(name)
    (out / "cudart_forwards.cpp").write_text("\n".join([*lines, "}"]) + "\n")

    lines = [
        "#include <stdio.h>",
        "#define STUB(name) \\",
        '  __attribute__((visibility("default"))) int name(void) { \\',
        "    static int said; \\",
        (
            "    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) fprintf(stderr, "
            '"deepum-sim: " #name " is not simulated\\n"); \\'
        ),
        "    return 801; \\",
        "  }",
    ]
    lines += [f"STUB({name})" for name in sorted(names - done)]
    (out / "cudart_stubs.c").write_text("\n".join(lines) + "\n")
    lines = ['#include "functions.h"', *(f"void {name}(void);" for name in sorted(names))]
    lines += [f"const struct deepum_sim_function deepum_sim_cudart{major}_functions[] = {{"]
    lines += [f'    {{"{name}", (const void*){name}}},' for name in sorted(names)] + [
        "    {0, 0}};"
    ]
    (out / "cudart_functions.c").write_text("\n".join(lines) + "\n")
    exported = "".join(
        f"    {name};\n"
        for name in sorted(names | PYTORCH | {f"deepum_sim_cudart{major}_functions"})
    )
    (out / "cudart.map").write_text(
        f"libcudart.so.{major} {{\n  global:\n{exported}  local: *;\n}};\n"
    )


def main() -> None:
    what, include, out, *sources = sys.argv[1:]
    split = sources.index("--") if "--" in sources else len(sources)
    shared, own = (
        {
            name: parameters
            for source in part
            for name, parameters in definitions(pathlib.Path(source).read_text()).items()
        }
        for part in (sources[:split], sources[split + 1 :])
    )
    forwards, changed = pairs("forwards.names"), pairs("changed.names")
    every = names_of("12") | names_of("13")
    if unknown := (set(shared) | set(own) | set(forwards) | set(changed)) - every:
        sys.exit(f"not in cudart.names: {', '.join(sorted(unknown))}")
    if twice := set(shared) & (set(forwards) | set(own) - set(changed)):
        sys.exit(f"by hand twice, or by hand and in forwards.names: {', '.join(sorted(twice))}")
    pathlib.Path(out).mkdir(parents=True, exist_ok=True)
    if what == "shared":
        write_shared(pathlib.Path(include), pathlib.Path(out), forwards, changed)
    else:
        declared = prototypes(pathlib.Path(include, "cuda_runtime_api.h").read_text())
        write_major(what, declared, forwards, changed, shared, own, pathlib.Path(out))


if __name__ == "__main__":
    main()
