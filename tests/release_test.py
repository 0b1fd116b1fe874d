#!/usr/bin/env python3
"""Tests scripts/release.sh in a clone of this checkout: its errors, its files, and that a commit gives the same bytes twice.

    tests/release_test.py WORK [--quick]    --quick: also runs a release with --quick (minutes)

It deletes and creates WORK. It tests the last commit, without later changes."""
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = pathlib.Path(sys.argv[1]).resolve()
CLONE = WORK / "clone"
VERSION = re.search(r"version: '(.*)'", (ROOT / "meson.build").read_text())[1]
NAME = f"nrg-{VERSION}"
TODAY = datetime.date.today()

count = 0


def git(*words):
    author = ("-c", "user.name=release_test", "-c", "user.email=release_test@localhost")
    return subprocess.run(["git", "-C", CLONE, *author, *words], check=True, capture_output=True, text=True).stdout


def release(*words):
    # a wheel of few files, which compiles in seconds; only --untested reads these variables
    return subprocess.run([CLONE / "scripts/release.sh", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env={**os.environ, "NRG_FAMILIES": "quantize", "NRG_PATHS": ""})


def changed(name, pattern, replacement):
    text = (CLONE / name).read_text()
    new, times = re.subn(pattern, replacement, text, count=1, flags=re.M)
    assert times == 1 and new != text, f"{name} has no {pattern}, or has been so before"
    (CLONE / name).write_text(new)


def good(condition, text):
    global count
    if not condition:
        sys.exit(f"release_test: {text}")
    count += 1


def refuses(sentence, *words):
    """A sentence, another status than 0, and no file."""
    done = release("--untested", *words, WORK / "refused")
    good(done.returncode and sentence in done.stdout, f"{words}: expected '{sentence}', got: {done.stdout}")
    good(not (WORK / "refused").exists(), f"{words}: an error, and yet there are files")


def refuses_commit(sentence, name, pattern, replacement):
    changed(name, pattern, replacement)
    git("commit", "-qam", "test")
    refuses(sentence, VERSION)
    git("reset", "-q", "--hard", "HEAD^")


def contents(path):
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


if WORK.exists() and any(WORK.iterdir()) and not (WORK / ".of-nrg").exists():
    sys.exit(f"release_test: {WORK} is not empty, and not marked as made by these scripts")
shutil.rmtree(WORK, ignore_errors=True)
WORK.mkdir(parents=True)
(WORK / ".of-nrg").touch()
subprocess.run(["git", "clone", "-q", "--no-tags", ROOT, CLONE], check=True)
if f"## {VERSION} ({TODAY})\n" not in (CLONE / "CHANGELOG.md").read_text():
    changed("CHANGELOG.md", rf"^## {re.escape(VERSION)}.*$", f"## {VERSION} ({TODAY})")
git("commit", "-qam", "test: a date", "--allow-empty")

refuses("usage:", VERSION, "one too many")
refuses("meson.build has version", "99.0.0")
refuses_commit("where a release has its date", "CHANGELOG.md", r"^## (\S+) \(.*\)$", r"## \1 (unreleased)")
refuses_commit("yet to come", "CHANGELOG.md", r"^## (\S+) \(.*\)$", rf"## \1 ({TODAY + datetime.timedelta(days=2)})")
refuses_commit("CHANGELOG.md begins with", "CHANGELOG.md", r"^## \S+ \(.*\)$", f"## 0.0.1 ({TODAY})")
refuses_commit("CITATION.cff", "CITATION.cff", r"^version: .*$", "version: 0.0.1")
refuses_commit("include/nrg/base.h", "include/nrg/base.h", r"(#define NRG_VERSION_PATCH) \d+", r"\1 77")
(CLONE / "forgotten.c").write_text("")
refuses("not committed", VERSION)
(CLONE / "forgotten.c").unlink()
git("tag", "-a", "-m", "test", f"v{VERSION}", "HEAD^")
refuses("names another commit", VERSION)
git("tag", "-d", f"v{VERSION}")

for other in ("letter.txt", "nrg-0.0.1.tar.gz"):
    (WORK / "other").mkdir()
    (WORK / "other" / other).write_text("")
    for place in (WORK / "other", WORK / "other" / other):
        done = release("--untested", VERSION, place)
        good(done.returncode and "contains files that are not part of" in done.stdout and (WORK / "other" / other).exists(),
             f"{place} contains other files: {done.stdout}")
    shutil.rmtree(WORK / "other")

for name in ("once", "twice"):
    done = release("--untested", VERSION, WORK / name)
    good(done.returncode == 0, done.stdout)
once = contents(WORK / "once")
twice = contents(WORK / "twice")
differ = [file for file in once if once[file] != twice.get(file)]
good(once.keys() == twice.keys() and not differ, f"the same commit gives other bytes: {differ}")
wheels = [file for file in once if re.fullmatch(re.escape(NAME) + r"-cp311-abi3-\w+\.whl", file)]
good(len(wheels) == 1 and set(once) - set(wheels) == {f"{NAME}-source.tar.gz", f"{NAME}.tar.gz", f"{NAME}-amalgamation.tar.gz",
                                                      f"{NAME}-hashes.txt", f"{NAME}-notes.md"}, f"the files are {set(once)}")
tracked = {f"{NAME}/{name}" for name in git("ls-files").split("\n") if name}
with tarfile.open(WORK / "once" / f"{NAME}-source.tar.gz") as tar:
    good({member.name for member in tar if not member.isdir()} == tracked, "the source archive does not contain exactly the files of the commit")
with tarfile.open(WORK / "once" / f"{NAME}.tar.gz") as tar:
    members = {member.name: member for member in tar}
    expected = {f"{NAME}/PKG-INFO", f"{NAME}/tree/LICENSE"}
    for file in git("ls-files", "python", "src", "include", ":!python/examples").split("\n"):
        if file.startswith("python/"):
            expected |= {file.replace("python", NAME, 1)}
        elif file:
            expected |= {f"{NAME}/tree/{file}"}
    good({name for name, member in members.items() if not member.isdir()} == expected, f"the sdist lacks {expected - set(members)} or has more files")
    good(all(member.uid == member.gid == 0 and not member.uname for member in members.values()), "the sdist names a user")
with zipfile.ZipFile(WORK / "once" / wheels[0]) as wheel:
    good({"nrg/__init__.py", "nrg/_abi.py", "nrg/_public.py", "nrg/_replay.abi3.so", "nrg/libnrg.so", f"{NAME}.dist-info/METADATA", f"{NAME}.dist-info/RECORD"} <= set(wheel.namelist()),
         f"the wheel contains only {wheel.namelist()}")
    good({f"nrg/{file.name}" for file in (CLONE / "python/nrg").iterdir()} <= set(wheel.namelist()), "the wheel lacks files of python/nrg")
    good(f"\nVersion: {VERSION}\n" in wheel.read(f"{NAME}.dist-info/METADATA").decode(), "the wheel has another version")
with tarfile.open(WORK / "once" / f"{NAME}-amalgamation.tar.gz") as tar:
    good({pathlib.Path(member.name).name for member in tar if member.isfile()} == {"nrg.c", "nrg.h", "LICENSE"}, "files other than nrg.c, nrg.h and the licence")
hashes = [line.split() for line in (CLONE / "tests/hashes.txt").read_text().splitlines()]
good(once[f"{NAME}-hashes.txt"].decode() == "".join(f"{op} {cases} {all_of_it}\n" for op, _, _, cases, all_of_it in hashes), "the hashes differ from those of the tests")
good(b"\n- " in once[f"{NAME}-notes.md"], "the notes have no list")

if "--quick" in sys.argv[2:]:
    done = release("--quick", VERSION, WORK / "released")
    print(done.stdout)
    good(done.returncode == 0, "the quick release failed")
    good(set(contents(WORK / "released")) - set(once) == {"SHA256SUMS", f"{NAME}-x86_64.abi.gz"}, "a release lacks SHA256SUMS or the ABI")
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=WORK / "released", check=True)
    count += 1
print(f"scripts/release.sh: {count} checks, 0 failed")
