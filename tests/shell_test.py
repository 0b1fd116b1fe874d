#!/usr/bin/python3
"""What shells and manual pages say of the programs: usage: shell_test.py BUILD

Completion offers what the parsers take and the helps explain; the pages hold every line of the helps. SPDX-License-Identifier: MIT"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1]) if len(sys.argv) == 2 else sys.exit("usage: shell_test.py BUILD")
SHELL = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools", "shell")
NRG, BENCH = os.path.join(BUILD, "tools", "nrg"), os.path.join(BUILD, "bench", "nrg-bench")
ENVIRONMENT = {**os.environ, "PATH": os.path.dirname(NRG) + ":" + os.path.dirname(BENCH) + ":" + os.environ["PATH"], "MANROFFSEQ": "",
               "LC_ALL": "C.UTF-8"}
# Of other commands, in the text of a help.
FOREIGN = {"rope": {"--backward"}}


def run(*command, text=""):
    return subprocess.run(command, input=text, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def words(*before):
    done = run(NRG, "help", "--words", *before)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout.split()


def commands():
    """Each command, and each kind of one that has kinds, as words."""
    for command in words():
        if command not in ("help", "--help", "--version"):
            kinds = [word for word in words(command) if not word.startswith("-")]
            yield from ([command, kind] for kind in kinds)
            if not kinds:
                yield [command]


def options_are_those_of_parser_and_help():
    count = 0
    for command in commands():
        offered = words(*command)
        text = run(NRG, *command, "--help").stdout
        assert offered and text.startswith("usage: nrg " + " ".join(command)), command
        explained = set(re.findall(r"--[a-z][a-z0-9-]*", text))
        for option in offered:
            complaint = run(NRG, *command, option, "x", "--not-an-option").stderr
            assert f"unknown option {option};" not in complaint, (command, option)
            assert option in explained or option == "--help", f"nrg {' '.join(command)} takes {option}, and its help has no word of it"
        strange = explained - set(offered) - FOREIGN.get(command[0], set())
        assert not strange, f"nrg {' '.join(command)} --help speaks of {strange}, which it does not take"
        count += len(offered)
    assert words("no-such-command") == []
    return f"{count} options"


def complete_in_bash(*line):
    """What bash offers for the last word."""
    script = f"""
        compopt() {{ :; }}
        source {SHELL}/nrg.bash
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
        _nrg "$1" "${{!#}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = run("bash", "--norc", "-euc", script, "bash", *line)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout.split()


# a line, and what is offered for its last word
LINES = {
    ("nrg", ""): ["info", "check", "norm", "position", "help", "--version"],
    ("nrg", "no"): ["norm"],
    ("nrg", "help", "ro"): ["rope"],
    ("nrg", "position", "t"): ["t5"],
    ("nrg", "position", "t5", "--max"): ["--max-distance"],
    ("nrg", "norm", "x.npy", "--eps-"): ["--eps-mode"],
}


def offers(complete):
    for line, expected in LINES.items():
        found = complete(*line)
        assert set(expected) <= set(found), (line, found)
        assert line[-1] == "" or found == expected, (line, found)


def bash_completes():
    offers(complete_in_bash)
    paths = ["scalar", "avx2", "avx512", "neon", "generic"]
    assert sorted(complete_in_bash("nrg", "rope", "--isa", "")) == sorted(paths)
    assert complete_in_bash("nrg", "rope", "--isa", "=", "avx5") == ["avx512"]
    assert complete_in_bash("nrg", "rope", "--isa", "=") == complete_in_bash("nrg", "rope", "--isa", "")
    assert complete_in_bash("nrg", "norm", "--o", "") == [], "there files are to be offered"
    registered = run("bash", "--norc", "-ec", f"source {SHELL}/nrg.bash; complete -p nrg nrg-bench").stdout
    assert registered.count("-o default -F _nrg") == 2, registered
    return f"{len(LINES) + 4} lines"


def bash_completes_the_benchmark():
    if not os.path.exists(BENCH):
        return "SKIP: no nrg-bench in this build"
    offered = complete_in_bash("nrg-bench", "--")
    text = run(BENCH, "--help").stdout
    assert {"--table", "--selfcheck", "--seconds", "--benchmark_filter="} <= set(offered), offered
    for option in offered:
        assert option in text, f"{option} is not in nrg-bench --help"
        # complains of the first that it does not know, and runs nothing
        complaint = run(BENCH, "--table", option, "x", "--not-an-option").stderr
        assert option.startswith("--benchmark_") or re.search("unknown option (x|--not-an-option);", complaint), (option, complaint)
    own = text.split("Google Benchmark's options")[0]
    strange = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", own)) - set(offered) - {"--benchmark"}
    assert not strange, f"nrg-bench --help speaks of {strange}"
    return f"{len(offered)} options"


def fish_completes():
    if not shutil.which("fish"):
        return "SKIP: no fish"

    def complete(*line):
        done = run("fish", "--no-config", "-c", f"source {SHELL}/nrg.fish; complete -C '{' '.join(line)}'")
        assert done.returncode == 0 and not done.stderr, done
        return done.stdout.split()

    offers(complete)
    return f"{len(LINES)} lines"


def zsh_completes():
    if not shutil.which("zsh"):
        return "SKIP: no zsh"

    def complete(*line):
        # compadd is zsh's own: what is handed to it is what matters here
        script = f"compadd() {{ print -l -- ${{@[2,-1]}} }}; _files() {{ : }}; words=(\"$@\"); CURRENT=$#; service=$1; source {SHELL}/_nrg"
        done = run("zsh", "-fc", script, "zsh", *line)
        assert done.returncode == 0 and not done.stderr, done
        return [word for word in done.stdout.split() if word.startswith(line[-1])]

    offers(complete)
    return f"{len(LINES)} lines"


def pages_hold_every_line_of_the_helps():
    if not shutil.which("groff"):
        return "SKIP: no groff"
    count = 0
    for page, programs in ((os.path.join(BUILD, "tools", "nrg.1"), [[NRG], *([NRG, *command] for command in commands())]),
                           (os.path.join(BUILD, "bench", "nrg-bench.1"), [[BENCH]])):
        if not os.path.exists(BENCH) and programs == [[BENCH]]:
            continue
        done = run("groff", "-man", "-ww", "-Kutf8", "-Tutf8", "-P-cbou", "-rLL=200n", page)
        assert done.returncode == 0 and not done.stderr, done.stderr
        lines = {line.strip() for line in done.stdout.splitlines()}
        for program in programs:
            text = run(*program, "--help").stdout.split("\nGoogle Benchmark's options")[0]
            for line in text.splitlines():
                line = line.strip().removeprefix("usage: ") if program == [NRG] else line.strip()
                assert line in lines, f"{os.path.basename(page)} has no line {line!r}"
                count += bool(line)
    return f"{count} lines"


def main():
    failed = 0
    os.chdir(tempfile.mkdtemp(prefix="nrg-shell-")) # no files, which shells would offer as well
    for test in (options_are_those_of_parser_and_help, bash_completes, bash_completes_the_benchmark, fish_completes, zsh_completes,
                 pages_hold_every_line_of_the_helps):
        try:
            print(f"{test.__name__}: {test()}")
        except AssertionError as wrong:
            print(f"FAIL {test.__name__}: {wrong}")
            failed += 1
    os.rmdir(os.getcwd())
    return bool(failed)


sys.exit(main())
