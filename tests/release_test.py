#!/usr/bin/env python3
"""scripts/release.sh in a clone of this checkout: what it refuses, and that a commit gives the same bytes twice.

    tests/release_test.py WORK [--quick]    --quick: also releases it, tested as --quick has it (minutes)

WORK is made anew. What is tested is the last commit, not what has been changed since."""
import datetime
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

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
    return subprocess.run([CLONE / "scripts/release.sh", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


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
    good(done.returncode and sentence in done.stdout, f"{words}: should say '{sentence}', and says: {done.stdout}")
    good(not (WORK / "refused").exists(), f"{words}: refused, and yet there are files")


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
refuses("is another commit", VERSION)
git("tag", "-d", f"v{VERSION}")

for other in ("letter.txt", "nrg-0.0.1.tar.gz"):
    (WORK / "other").mkdir()
    (WORK / "other" / other).write_text("")
    for place in (WORK / "other", WORK / "other" / other):
        done = release("--untested", VERSION, place)
        good(done.returncode and "more in it than" in done.stdout and (WORK / "other" / other).exists(),
             f"{place}, where something else is: {done.stdout}")
    shutil.rmtree(WORK / "other")

for name in ("once", "twice"):
    done = release("--untested", VERSION, WORK / name)
    good(done.returncode == 0, done.stdout)
once = contents(WORK / "once")
good(once == contents(WORK / "twice"), "the same commit gives other bytes")
good(set(once) == {f"{NAME}.tar.gz", f"{NAME}-amalgamation.tar.gz", f"{NAME}-hashes.txt", f"{NAME}-notes.md"}, f"the files are {set(once)}")
tracked = {f"{NAME}/{name}" for name in git("ls-files").split("\n") if name}
with tarfile.open(WORK / "once" / f"{NAME}.tar.gz") as tar:
    good({member.name for member in tar if not member.isdir()} == tracked, "the tar ball does not hold the files of the commit")
with tarfile.open(WORK / "once" / f"{NAME}-amalgamation.tar.gz") as tar:
    good({pathlib.Path(member.name).name for member in tar if member.isfile()} == {"nrg.c", "nrg.h", "LICENSE"}, "files beside nrg.c and nrg.h")
good(once[f"{NAME}-hashes.txt"] == (CLONE / "tests/hashes.txt").read_bytes(), "other hashes than those of the tests")
good(b"\n- " in once[f"{NAME}-notes.md"], "the notes have no list")

if "--quick" in sys.argv[2:]:
    done = release("--quick", VERSION, WORK / "released")
    print(done.stdout)
    good(done.returncode == 0, "the quick release failed")
    good(set(contents(WORK / "released")) - set(once) == {"SHA256SUMS", f"{NAME}-x86_64.abi.gz"}, "what a release has beside it")
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=WORK / "released", check=True)
    count += 1
print(f"scripts/release.sh: {count} things looked at, 0 wrong")
