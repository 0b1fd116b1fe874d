"""The files of a build that meson tests run, for ninja to make: where a few suites run, the rest need not be compiled.

    test_targets.py BUILD-DIR MESON-TEST-ARGUMENT ...

Arguments are names of tests, and --suite with one name. Any other option, or no argument at all: what all tests run.
SPDX-License-Identifier: MIT
"""
import json
import os
import sys

build, arguments = sys.argv[1], sys.argv[2:]


def information(name):
    with open(os.path.join(build, "meson-info", f"intro-{name}.json")) as file:
        return json.load(file)


suites, names, everything = set(), set(), not arguments
words = iter(arguments)
for word in words:
    if word == "--suite":
        suites.add(next(words))
    elif word.startswith("-"):
        everything = True
    else:
        names.add(word)

files = {target["id"]: target["filename"] for target in information("targets")}
made = set()
for test in information("tests"):
    of_suites = {suite.split(":")[-1] for suite in test["suite"]}
    if everything or test["name"] in names or of_suites & suites:
        for target in test["depends"]:
            made.update(os.path.relpath(file, os.path.realpath(build)) for file in files[target])
print("\n".join(sorted(made)))
