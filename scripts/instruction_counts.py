#!/usr/bin/env python3
"""Compares how many instructions one-row calls take with the counts in tests/instructions/counts.txt.

    instruction_counts.py BUILD             fails if a call takes 3 % more; prints calls that take 3 % less
    instruction_counts.py BUILD --refresh   writes the counts of this build to the file

Counts are of the AVX2 path under callgrind, whose CPU is the same on every machine. They depend on compiler, C library and valgrind,
which the first line of the file names. Exits with 77 if this machine has others, or no AVX2.
A new call is a new line with a name (tests/instructions/instructions.c) before a refresh.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COUNTS = pathlib.Path(__file__).resolve().parent.parent / "tests/instructions/counts.txt"
LIMIT = 1.03


def skip(reason):
    print(f"not here: {reason}")
    sys.exit(77)


def tools(program):
    """What the counts depend on, in addition to the code."""
    def output(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    compilers = sorted(set(re.findall(r"\[ *[0-9a-f]+\]  (.*)", output("readelf", "-p", ".comment", program))))
    return ", ".join(compilers + [os.confstr("CS_GNU_LIBC_VERSION"), output("valgrind", "--version").strip()])


def count(program, names):
    """Instructions of each call."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "callgrind.out")
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--combine-dumps=yes",
                               "--toggle-collect=counted_call", "--dump-after=counted_call",
                               program, COUNTS],
                              capture_output=True, text=True)
        if done.returncode == 77:
            skip("the CPU has no AVX2")
        if done.returncode:
            sys.exit(done.stderr)
        parts = out.read_text().split("\npart: ")[1:]
    counts = [int(re.search(r"^(?:totals|summary): (\d+)", part, re.M)[1]) for part in parts if "--dump-after=counted_call" in part]
    if len(counts) != len(names):
        sys.exit(f"callgrind counted {len(counts)} calls of {len(names)}:\n{done.stderr}")
    return counts


def main():
    program, refresh = pathlib.Path(sys.argv[1], "bench/nrg-instructions"), sys.argv[2:] == ["--refresh"]
    lines = COUNTS.read_text().splitlines()
    kept = dict((line.split() + ["0"])[:2] for line in lines if line and not line.startswith("#"))
    found = tools(program)
    if not refresh and lines[0] != f"# {found}":
        skip(f"{COUNTS.name} is for {lines[0][2:]}, and this is {found}")
    counts = dict(zip(kept, count(program, kept)))
    if refresh:
        COUNTS.write_text("\n".join([f"# {found}"] + [f"{name} {n}" for name, n in counts.items()]) + "\n")
        return
    grown = 0
    for name, n in counts.items():
        before = int(kept[name])
        if n > before * LIMIT:
            grown += 1
            print(f"{name}: {n} instructions, {n / before - 1:.1%} more than {before}")
        elif n * LIMIT < before:
            print(f"less: {name}: {n} instructions, {1 - n / before:.1%} less than {before}")
    print(f"{len(counts)} calls, {grown} of them grown")
    sys.exit(grown > 0)


main()
