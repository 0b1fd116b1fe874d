#!/usr/bin/env python3
"""No code holds an instruction that its CPU may lack.

    instructions.py BUILD

Looks at the code of each path in a build for x86-64, by the first byte of every instruction: 0xC4 and 0xC5 begin those of AVX
and AVX2, 0x62 those of AVX-512 (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, sections 2.3 and 2.7;
in 64-bit mode they begin nothing else). An emulator of an older CPU stumbles over those that its tests happen to reach; this
sees all.
"""
import pathlib
import re
import subprocess
import sys

VEX, EVEX = "AVX", "AVX-512"
FIRST_BYTE = {"c4": VEX, "c5": VEX, "62": EVEX}
# What each library may hold, which it also does: where it does not, this program reads the listing wrongly.
ALLOWED = {"core": set(), "scalar": set(), "generic": set(), "avx2": {VEX}, "avx512": {VEX, EVEX}}
# `  1f:	c5 fc 58 c1          	vaddps ...`; a line without a mnemonic continues the bytes of the one before it
LINE = re.compile(r"^ *[0-9a-f]+:\t([0-9a-f]{2}) [0-9a-f ]*\t(\S.*)$")
NAME = re.compile(r"^[0-9a-f]+ <(.*)>:$")


def instructions(listing):
    function = "?"
    for line in listing:
        name, code = NAME.match(line), LINE.match(line)
        if name:
            function = name[1]
        elif code:
            # segment and address-size prefixes may stand before the first byte
            opcode = re.match(r"(?:(?:26|2e|36|3e|64|65|67) )*([0-9a-f]{2})", line.split("\t")[1])[1]
            yield function, opcode, code[2]


def main():
    source = pathlib.Path(sys.argv[1], "src")
    libraries = sorted(source.glob("libnrg-*.a"))
    wrong, seen = [], []
    for library in libraries:
        path = library.stem.removeprefix("libnrg-")
        found, count = {}, 0
        with subprocess.Popen(["objdump", "-d", "-w", library], stdout=subprocess.PIPE, text=True) as process:
            for function, opcode, text in instructions(process.stdout):
                count += 1
                kind = FIRST_BYTE.get(opcode)
                if kind:
                    found.setdefault(kind, (function, text))
        if process.returncode or not count:
            sys.exit(f"{library.name}: objdump shows no code")
        for kind in found.keys() - ALLOWED[path]:
            wrong.append(f"{library.name}: {kind} in {found[kind][0]}: {found[kind][1]}")
        for kind in ALLOWED[path] - found.keys():
            wrong.append(f"{library.name}: nothing of {kind} is in it")
        seen.append(f"{path} {count}")
    if not {"core", "scalar"} <= {library.stem.removeprefix("libnrg-") for library in libraries}:
        sys.exit(f"{source}: no build of the library")
    print("\n".join(wrong) or "instructions of each path: " + ", ".join(seen))
    sys.exit(bool(wrong))


main()
