#!/usr/bin/env python3
"""One way down: what the files of src/ may include and name.

    layers.py [SRC]

Fails, and says where, if
- files include each other in a circle,
- a file includes one of a room that is not below its own (ROOMS),
- a header is reached both from the scalar path and from the vector paths, beyond the contract of both (SHARED),
- anything but the scalar path names a kernel of it.
"""
import pathlib
import re
import sys

# Each room, and the rooms it may include beside itself. Files of src/ itself are listed by name.
CONTRACT = {"compiler.h", "internal.h", "kernels.h", "kernels.def", "paths.h", "job"}
ROOMS = {
    "compiler.h": set(),
    "paths.h": set(),
    "kernels.def": set(),
    "kernels.h": {"compiler.h", "paths.h", "kernels.def"},
    "job": {"paths.h"},
    "internal.h": {"paths.h", "kernels.h"},
    "cpu.c": CONTRACT,
    "dispatch.c": CONTRACT,
    "operands": CONTRACT | {"exact"},
    "exact": CONTRACT,
    "calls": CONTRACT | {"operands", "exact"},
    "scalar": CONTRACT | {"exact"},
    "template": CONTRACT | {"exact"},
    "avx2": CONTRACT | {"template"},
    "avx512": CONTRACT | {"template"},
    "neon": CONTRACT | {"template"},
    "generic": CONTRACT | {"template"},
}
VECTORS = {"template", "avx2", "avx512", "neon", "generic"}
# What the scalar path and the vector paths are both told: jobs, the units that shares are counted in, and names. No rule of the
# arithmetic is in them, so that paths which agree have come to it by two ways.
SHARED = CONTRACT
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SCALAR_KERNEL = re.compile(r"\bnrg_scalar_\w+")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def main():
    source = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "src").resolve()
    files = sorted(p for p in source.rglob("*") if p.suffix in (".c", ".h", ".def"))
    if not files:
        sys.exit(f"{source}: no files")
    faults, includes = [], {}
    for file in files:
        text = file.read_text()
        found = [(file.parent / name).resolve() for name in INCLUDE.findall(text)]
        includes[file] = [to for to in found if to.is_relative_to(source)]
        faults += [f"{file.relative_to(source)}: includes {to}, which is not there" for to in found if not to.exists()]

    def room(file):
        return file.relative_to(source).parts[0]

    def short(file):
        return str(file.relative_to(source))

    def reach(file, seen):
        for to in includes.get(file, ()):
            if to not in seen:
                seen.add(to)
                reach(to, seen)
        return seen

    for file in files:
        if file in reach(file, set()):
            faults.append(f"{short(file)}: includes itself, by way of others")
        if room(file) not in ROOMS:
            faults.append(f"{short(file)}: no room of this name is in scripts/layers.py")
            continue
        for to in includes[file]:
            if room(to) != room(file) and room(to) not in ROOMS[room(file)]:
                faults.append(f"{short(file)}: includes {short(to)}, and {room(to)} is not below {room(file)}")
        names = set() if room(file) == "scalar" else set(SCALAR_KERNEL.findall(COMMENT.sub("", file.read_text())))
        faults += [f"{short(file)}: names {name}" for name in sorted(names)]

    reached = {}
    for file in files:
        side = "scalar" if room(file) == "scalar" else "vectors" if room(file) in VECTORS else None
        for to in reach(file, {file}) if side else ():
            reached.setdefault(to, {}).setdefault(side, file)
    for to, sides in sorted(reached.items()):
        if len(sides) == 2 and room(to) not in SHARED:
            faults.append(f"{short(to)}: reached from {short(sides['scalar'])} and from {short(sides['vectors'])}")

    for fault in faults:
        print(fault)
    shared = sorted(short(to) for to, sides in reached.items() if len(sides) == 2)
    print(f"{len(files)} files, {sum(map(len, includes.values()))} includes; the scalar path shares with the others: {', '.join(shared)}")
    sys.exit(bool(faults))


main()
