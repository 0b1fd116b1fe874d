#!/usr/bin/python3
r"""The nrg command against recorded cases: usage: cli_cases.py [--record] PATH-TO-nrg [FILE ...]

Without FILE: all of tests/cli/*.txt. --record writes into them what the command prints now, for `git diff` to show. Their lines,
of which \ at the end continues one:

    # ...                  a comment
    == NAME                a section, which has a directory of its own
    @ TYPE SHAPE FILE...   makes .npy files: f4 (2,3) x.npy; f4+ (3,) var.npy, above 0; i8 [4,0,1] ids.npy; text o.npy, which is none
    @ nrg WORDS            makes files by the command, which has to succeed
    f4_3x16.npy            in a command is there without a line: the name is its type and shape
    NAME = WORDS           what $NAME is in the lines below
    $ WORDS                the command line of a case. {a,b} makes a case of each, in this order; {=a,b} runs each, all with one
                           result, and {=ISA} each path that runs here; < FILE is standard input
    $$ WORDS               the same for many results: all cases succeed, and their number and one hash are recorded

Each case finds the files that stand above it in its section. Below it, indented, is what was recorded: exit status and stderr,
standard output (its hash, where it is long), and each file that the command wrote or changed. SPDX-License-Identifier: MIT"""
import ast
import concurrent.futures
import difflib
import glob
import hashlib
import math
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import zlib

PROGRESS = re.compile(r"^nrg [a-z0-9 -]+: .*, \d+ s\n", re.M)
SANITIZER = "detect_stack_use_after_return=0:strict_string_checks=1:detect_leaks="
LONG = 12  # lines


def array(kind, shape, name):
    """The bytes of a .npy file: integers count up, all else is drawn from a generator that begins with the name."""
    values, seed = shape, zlib.crc32(name.encode())
    if isinstance(shape, tuple):
        values = []
        for i in range(math.prod(shape)):
            seed = (seed * 1103515245 + 12345) % 2**31
            values.append(i if kind[0] == "i" else (seed >> 8) % 256 if kind[0] == "u" else ((seed >> 8) % 4001 - 2000) / 1024)
        values = [abs(value) + 1 / 1024 for value in values] if kind.endswith("+") else values
    code = {"f4": "f", "f2": "e", "i4": "i", "i8": "q", "u1": "B"}[kind[:2]]
    descr = ("|" if kind == "u1" else "<") + kind[:2]
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape if isinstance(shape, tuple) else (len(values),)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values)


def shown(name, content):
    """A line that stands for a file: type, shape and hash of an array."""
    header = re.match(rb"\x93NUMPY\x01\x00..\{'descr': '([^']+)', 'fortran_order': False, 'shape': (\([^)]*\)), \} *\n", content, re.S)
    kind, content = (header[1].decode() + " " + header[2].decode() + " ", content[header.end():]) if header else ("", content)
    return f"    > {name} {kind}{hashlib.sha256(content).hexdigest()[:8]}\n"


def expanded(line, mark=""):
    """The lines that {a,b} stands for, or with the mark {=a,b}."""
    found = re.search(r"\{%s([^={}][^{}]*|)\}" % mark, line)
    return [all for part in found[1].split(",") for all in expanded(line[:found.start()] + part + line[found.end():], mark)] if found else [line]


class Section:
    """Its lines, and in `result` these lines with what the command does now."""

    def __init__(self, lines):
        self.lines, self.files, self.names, self.result = lines, {}, {}, []

    def words(self, line):
        return re.sub(r"\$(\w+)", lambda name: self.names[name[1]], re.sub(r"\\\n *", "", line))

    def write(self, wanted):
        for name in set(os.listdir(self.directory)) - set(wanted):
            os.remove(os.path.join(self.directory, name))
        for name, content in wanted.items():
            with open(os.path.join(self.directory, name), "wb") as file:
                file.write(content)

    def run(self, line, leaks=1):
        """Runs a command: what it printed, and files that it changed."""
        words, given = shlex.split(line), b""
        for name, kind, shape in re.findall(r"\b((f4|f2|i4|i8|u1)_((?:\d+x?)*)\.npy)", line):
            self.files[name] = array(kind, tuple(map(int, filter(None, shape.split("x")))), name)
        self.write(self.files)
        if words[-2:-1] == ["<"]:
            words, given = words[:-2], self.files[words[-1]]
        done = subprocess.run([NRG, *words], cwd=self.directory, input=given, capture_output=True, timeout=900,
                              env={**os.environ, "ASAN_OPTIONS": SANITIZER + str(leaks)})
        found = {}
        for name in os.listdir(self.directory):
            with open(os.path.join(self.directory, name), "rb") as file:
                found[name] = file.read()
        changed = {name: found.get(name) for name in sorted(found | self.files) if found.get(name) != self.files.get(name)}
        return done, changed

    def case(self, line, leaks):
        done, changed = self.run(line, leaks)
        text, err = [], PROGRESS.sub("", done.stderr.decode(errors="replace")).splitlines()
        text.append(f"  {done.returncode} {err[0] if err else ''}".rstrip() + "\n")
        text += [f"    ! {more}\n" for more in err[1:]]
        if done.stdout[:1] == b"\x93":
            text.append(shown("-", done.stdout))
        elif len(lines := done.stdout.decode(errors="replace").splitlines()) > LONG:
            text.append(f"    | {len(lines)} lines {hashlib.sha256(done.stdout).hexdigest()[:8]}\n")
        else:
            text += [f"    | {more}".rstrip() + "\n" for more in lines]
        return text + [f"    > {name} is gone\n" if content is None else shown(name, content) for name, content in changed.items()]

    def go(self, isas):
        with tempfile.TemporaryDirectory(prefix="nrg-cli-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as self.directory:
            for number, line in enumerate(self.lines):
                if line.startswith(" "):
                    continue
                self.result.append(line)
                if line.startswith("@ nrg "):
                    done, changed = self.run(self.words(line[6:]))
                    assert not done.returncode, f"{line}{done.stderr}"
                    self.files |= changed
                elif line.startswith("@ "):
                    kind, rest = line[2:].split(None, 1)
                    shape, names = (None, rest) if kind == "text" else re.match(r"(\([^)]*\)|\[[^]]*\]) (.*)", rest).groups()
                    for name in names.split():
                        self.files[name] = b"old " + name.encode() if kind == "text" else array(kind, ast.literal_eval(shape), name)
                elif line.startswith("$ "):
                    old = [status for status in self.lines[number + 1:number + 2] if status.startswith("  0")]
                    for command in expanded(self.words(line[2:]).replace("{=ISA}", "{=" + ",".join(isas) + "}")):
                        results = [self.case(each, int(bool(old))) for each in expanded(command, "=")]
                        self.result += next((result for result in results if result != results[0]), results[0])
                elif line.startswith("$$ "):
                    results = [self.case(each, 1) for each in expanded(self.words(line[3:]))]
                    refused = ["    ! " + result[0] for result in results if result[0] != "  0\n"]
                    all_of_it = hashlib.sha256("".join(sum(results, [])).encode()).hexdigest()[:16]
                    self.result += [f"  0 {len(results)} cases {all_of_it}\n", *refused]
                elif re.match(r"\w+ = ", line):
                    name, value = line.rstrip().split(" = ", 1)
                    self.names[name] = self.words(value)
                else:
                    assert line[0] in "#=\n", line
        return self.result


def main():
    isas = re.findall(r"^  (\w+) +yes +yes$", subprocess.run([NRG, "info"], capture_output=True, text=True, check=True).stdout, re.M)
    files = FILES or sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cli", "*.txt")))
    texts = [re.split(r"^(?===)", open(name).read(), flags=re.M) for name in files]
    with concurrent.futures.ThreadPoolExecutor(2 * os.cpu_count()) as pool:
        results = [pool.map(lambda text: Section(re.findall(r"(?:.*\\\n)*.*\n", text)).go(isas), sections) for sections in texts]
        results = [list(sections) for sections in results]
    wrong = cases = 0
    for name, sections, result in zip(files, texts, results):
        cases += sum(line.startswith("  ") and line[2] != " " for lines in result for line in lines)
        for text, lines in zip(sections, result):
            difference = list(difflib.unified_diff(text.splitlines(True), "".join(lines).splitlines(True), name, name))
            wrong += bool(difference)
            sys.stdout.writelines([] if RECORD else difference)
        if RECORD:
            with open(name, "w") as file:
                file.writelines(line for lines in result for line in lines)
    print(f"{cases} cases, {wrong} sections {'recorded anew' if RECORD else 'differ'}")
    return bool(wrong) and not RECORD


if __name__ == "__main__":
    RECORD = "--record" in sys.argv[1:2]
    NRG, *FILES = map(os.path.abspath, sys.argv[1 + RECORD:]) if len(sys.argv) > 1 + RECORD else sys.exit(__doc__.splitlines()[0])
    sys.exit(main())
