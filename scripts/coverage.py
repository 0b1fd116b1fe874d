#!/usr/bin/env python3
"""What tests reach of src/: reads gcovr's JSON, names every line that no test reaches, and says of which branches both ways are
taken, by folder, and in which files the fewest.

    scripts/coverage.py REPORT.json

A line of a template is compiled for every path, dtype and set of options, and has its branches once more in each, of which most
know the answer; it and its branches count once, and are reached where one of them is. A branch is a way out of a condition, of
which && and || have one each; where copies have unlike numbers of them, since some know part of the answer, it is a way out of
one of the line's."""
import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FEWEST = 12  # files that are named


def folder(file):
    parts = pathlib.PurePath(file).parts[1:-1]
    return "/".join(parts[:2]) or "src"


def share(taken, all_of_them):
    return f"{100 * taken / all_of_them:5.1f} %  {taken:5d} of {all_of_them:5d}"


def fold(counts, code):
    """The branches of a line once, however often it has been compiled: two of each condition, in the order of the code."""
    conditions = len(re.findall(r"&&|\|\||\?", code))
    conditions += bool(re.search(r"\b(if|for|while)\b", code) or (conditions and not "?" in code))
    ways = 2 * max(conditions, 1)
    if len(counts) % ways:
        ways = 2
    return [max(counts[way::ways]) for way in range(min(ways, len(counts)))]


def main():
    missed_lines, files = 0, {}
    for file in json.loads(pathlib.Path(sys.argv[1]).read_text())["files"]:
        text = (ROOT / file["file"]).read_text().splitlines()
        taken = known = 0
        missed = []
        for line in file["lines"]:
            number, code = line["line_number"], text[line["line_number"] - 1].strip()
            if line.get("gcovr/noncode"):
                continue
            counts = fold([branch["count"] for branch in line["branches"]], code)
            known += len(counts)
            taken += sum(count > 0 for count in counts)
            if line["count"] == 0:
                print(f"WARNING {file['file']}:{number}: no test reaches: {code}")
                missed_lines += 1
                continue
            missed += [f"{number}: {code}"] * any(count == 0 for count in counts)
        if known:
            files[file["file"]] = (taken, known, missed)

    folders = collections.defaultdict(lambda: [0, 0])
    for name, (taken, known, _) in files.items():
        for key in (folder(name), "all"):
            folders[key][0] += taken
            folders[key][1] += known
    print("branches that tests take, by folder of src/:")
    for name in sorted(folders, key=lambda name: (name == "all", name)):
        print(f"  {name:24} {share(*folders[name])}")
    print("where the fewest are:")
    for name, (taken, known, missed) in sorted(files.items(), key=lambda item: item[1][0] - item[1][1])[:FEWEST]:
        print(f"  {name:48} {share(taken, known)}")
        for line in missed:
            print(f"      {line}")
    print(f"{missed_lines} lines of src/ that no test reaches; the goal is 0")
    print(f"branches: {100 * folders['all'][0] / folders['all'][1]:.1f}%")


main()
