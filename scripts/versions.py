#!/usr/bin/env python3
"""Holds the places that name the version together.

    scripts/versions.py            they name the same one, and CHANGELOG.md begins with it
    scripts/versions.py --number   the same, and prints it alone
    scripts/versions.py VERSION    it is VERSION, and CHANGELOG.md is ready for its release; prints its section
"""
import datetime
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADING = re.compile(r"^## (\S+)(?: \((.*)\))?$", re.M)
NUMBERS = "NRG_NUMBERS_VERSION"

failures = []


def expect(condition, text):
    if not condition:
        failures.append(text)


def one(name, pattern):
    """What the only group of the pattern's only match in a file is."""
    found = re.findall(pattern, (ROOT / name).read_text(), re.M)
    expect(len(found) == 1, f"{name}: {len(found)} places say the version, not one")
    return found[0] if found else None


def macros():
    text = (ROOT / "include/nrg/base.h").read_text()
    return ".".join(re.search(rf"^#define NRG_VERSION_{part} (\d+)$", text, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def number(version):
    return tuple(map(int, version.split(".")))


def sections():
    """(version, what stands in brackets, text) of each section of CHANGELOG.md, the newest first."""
    text = (ROOT / "CHANGELOG.md").read_text()
    found = list(HEADING.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return [(match[1], match[2], text[match.end():end].strip()) for match, end in zip(found, ends)]


def changelog(version, release):
    log = sections()
    names = [name for name, _, _ in log]
    for name in names:
        if not re.fullmatch(r"\d+\.\d+\.\d+", name):
            failures.append(f"CHANGELOG.md: a section for {name}, which is no version")
            return ""
    expect(names == sorted(set(names), key=number, reverse=True), "CHANGELOG.md: the sections are not in order, or one is there twice")
    if not log or log[0][0] != version:
        failures.append(f"CHANGELOG.md begins with {names[0] if names else 'nothing'}, not with {version}")
        return ""
    _, when, text = log[0]
    expect(re.search(r"^- ", text, re.M), f"CHANGELOG.md says nothing about {version}")
    if release:
        try:
            ahead = datetime.date.fromisoformat(when or "") > datetime.date.today()
            expect(not ahead, f"CHANGELOG.md: {version} is of {when}, which is yet to come")
        except ValueError:
            failures.append(f"CHANGELOG.md has \"## {version} ({when})\" where a release has its date, as 2026-01-31")
        numbers = one("include/nrg/base.h", rf"^#define {NUMBERS} (\d+)$")
        expect(re.search(rf"{NUMBERS}\W+is {numbers}\b", text), f"CHANGELOG.md does not say, for {version}, that {NUMBERS} is {numbers}")
    return text


number_alone = sys.argv[1:] == ["--number"]
release = sys.argv[1] if len(sys.argv) > 1 and not number_alone else None
built = one("meson.build", r"^  version: '(.*)',$")
for place, version in {"include/nrg/base.h, NRG_VERSION_*": macros(),
                       "include/nrg/base.h, nrg_version()": one("include/nrg/base.h", r'^/\* Returns the version of the linked library, "(\d+\.\d+\.\d+)"'),
                       "CITATION.cff": one("CITATION.cff", r"^version: (\S+)$")}.items():
    expect(version == built, f"{place}: {version}; meson.build: {built}")
expect(release in (None, built), f"meson.build has version {built}, not {release}")
text = "" if number_alone else changelog(release or built or "", release is not None)
for failure in failures:
    print(failure, file=sys.stderr)
if not failures:
    print(built if number_alone else text if release else f"version {built}, everywhere")
sys.exit(bool(failures))
