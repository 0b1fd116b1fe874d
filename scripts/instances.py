#!/usr/bin/env python3
"""Compares the code of row norms with its limits (docs/design.md, "The loops of a row norm").

    instances.py BUILD

- On paths with vectors a function of SOURCES takes at most 8,192 bytes, except those in LARGE.
- An instance of src/template/norm/instances.def takes at most 4,096 bytes, or 8,192 if it gains at least 20 % or was not timed.
- The comment above an instance states the case with the highest gain, that gain, and the bytes on each path, at most 10 % wrong:
  /* 4096x64: 1.27 x; 2157 bytes avx2, 1702 avx512 */

BUILD is a build by gcc 12 with meson's defaults. Fails if something is not so."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FUNCTION, INSTANCE, GAINING, GAIN, ERROR = 8192, 4096, 8192, 1.2, 0.1
SOURCES = ["norm", "norm_backward"]
# Larger functions: bytes that they may take, and why.
LARGE = {"general_layer_bf16": (10500, "bf16 in pairs of vectors, two sums of them, and every option")}

failures = []


def expect(condition, text):
    if not condition:
        failures.append(text)


def sizes_of(build, path, source):
    """Bytes of each function of an object; with the parts that gcc splits off."""
    sizes = {}
    for file in build.glob(f"src/libnrg-{path}.a.p/*{path}_{source}.c.o"):
        listed = subprocess.run(["nm", "-S", "-t", "d", file], capture_output=True, text=True, check=True).stdout
        for size, name in re.findall(r"^\d+ (\d+) [tT] ([\w.]+)$", listed, re.M):
            name = name.split(".")[0]
            sizes[name] = sizes.get(name, 0) + int(size)
    return sizes


def listed_instances():
    """Name, gain and bytes by path of each instance."""
    text = (ROOT / "src/template/norm/instances.def").read_text()
    for comment, name in re.findall(r"(?:/\*((?:(?!\*/).)*)\*/\n)?^INSTANCE\((\w+),", text, re.M):
        stated = re.fullmatch(r" .+: (?:(\d\.\d\d) x|not timed); (\d+ bytes \w+(?:, \d+ \w+)*) ", comment)
        expect(stated, f"instances.def: {name}: no comment of the form /* 4096x64: 1.27 x; 2157 bytes avx2, 1702 avx512 */")
        if stated:
            yield name, float(stated[1] or GAIN), {path: int(size) for size, path in re.findall(r"(\d+) (?:bytes )?(\w+)", stated[2])}


def main():
    build = pathlib.Path(sys.argv[1])
    paths = sorted(folder.name[len("libnrg-"):-len(".a.p")] for folder in build.glob("src/libnrg-*.a.p"))
    code = {path: sizes_of(build, path, "norm") for path in paths}
    code = {path: sizes for path, sizes in code.items() if sizes}
    expect("scalar" in code and len(code) > 1, f"{build}: no objects of norm.c")
    large = set()
    for path, source in ((path, source) for path in paths if path not in ("scalar", "core") for source in SOURCES):
        for name, size in sizes_of(build, path, source).items():
            if size > FUNCTION:
                limit, reason = LARGE.get(name, (FUNCTION, "no reason"))
                large.add(name)
                print(f"{path}/{source}.c: {name}: {size} bytes: {reason}")
                expect(size <= limit, f"{path}/{source}.c: {name}: {size} bytes of {limit}")
    for name in set(LARGE) - large:
        expect(False, f"{name} is in LARGE, and smaller than {FUNCTION} bytes")
    count = total = 0
    for name, gain, stated in listed_instances():
        for path, size in ((path, sizes[f"instance_{name}"]) for path, sizes in code.items() if f"instance_{name}" in sizes):
            limit = GAINING if gain >= GAIN else INSTANCE
            expect(size <= limit, f"{path}: {name}: {size} bytes of {limit}")
            expect(path in stated and abs(stated[path] - size) <= ERROR * size, f"{path}: {name}: {size} bytes, and not {stated.get(path)}")
            count, total = count + 1, total + size
    for failure in failures:
        print(failure)
    print(f"{count} instances, {total} bytes, {len(failures)} not within limits")
    sys.exit(bool(failures))


main()
