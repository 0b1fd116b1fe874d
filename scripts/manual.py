#!/usr/bin/env python3
"""Writes a manual page made of what a program says of itself, so that neither can drift from the other.

    manual.py PAGE.1 VERSION PROGRAM [ARGUMENT ...]

Of a program that has commands (`PROGRAM help --words` lists them) every command has a section, and so has every kind of a command
that has kinds. The layout of a help stays as it is: its columns are made for a terminal, which is where pages are read."""
import pathlib
import re
import subprocess
import sys

SUMMARIES = {"nrg": "SIMD kernels for norms, gates, positions and softmax: from the command line",
             "nrg-bench": "measures the kernels of nrg against the memory roofline and plain C"}


def said_by(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def escaped(line):
    line = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    return "\\&" + line if line.startswith((".", "\\(aq")) else line


def verbatim(text):
    return "\n".join([".nf", *map(escaped, text.strip("\n").splitlines()), ".fi"])


def words_of(program, *words):
    """What may follow: names of commands or kinds, not options."""
    found = said_by(*program, "help", "--words", *words).split()
    return [word for word in found if not word.startswith("-") and word != "help"]


def sections_of_commands(program):
    for command in words_of(program):
        for words in ([command], *([command, kind] for kind in words_of(program, command))):
            text = said_by(*program, *words, "--help")
            yield f".SH {escaped('nrg ' + ' '.join(words)).upper()}\n{verbatim(text)}"


def page(name, version, program):
    text = said_by(*program, "--help").split("\nGoogle Benchmark's options:")[0]
    if name == "nrg":
        usage, _, rest = text.partition("\n\n")
        usage = re.sub(r"^usage: ", "", usage)
    else:
        usage, rest = f"{name} [OPTION]...", text
    parts = [f".\\\" Made by scripts/manual.py from what {name} says of itself.",
             f'.TH {escaped(name).upper()} 1 "" "nrg {version}" "User Commands"',
             f".SH NAME\n{escaped(name)} \\- {escaped(SUMMARIES[name])}",
             f".SH SYNOPSIS\n{verbatim(usage)}",
             f".SH DESCRIPTION\n{verbatim(rest)}"]
    if name == "nrg":
        parts += sections_of_commands(program)
    other = "nrg-bench" if name == "nrg" else "nrg"
    return "\n".join([*parts, f".SH SEE ALSO\n.BR {escaped(other)} (1)", ""])


def main():
    target, version, *program = sys.argv[1:]
    name = pathlib.Path(target).name.removesuffix(".1")
    pathlib.Path(target).write_text(page(name, version, program))


main()
