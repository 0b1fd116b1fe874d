#!/usr/bin/env python3
"""Runs the commands and programs of pages as a reader does: in order, in a fresh folder, with an installed library.

    tests/docs_test.py WORK PREFIX [--full]

WORK is a folder for what the pages write. PREFIX is an installation of nrg, which is copied to ~/nrg of a new HOME. The Python that
runs this file has the nrg package. A page marks what is run; each mark stands directly before a fenced block:

    <!-- checked by tests/docs_test.py: file NAME -->    writes the block to NAME
    <!-- checked by tests/docs_test.py: run -->          runs it in the shell of the page: exported variables stay
    <!-- checked by tests/docs_test.py: python -->       runs the block as a Python program
    <!-- checked by tests/docs_test.py: output -->       the exact output of the previous run
    <!-- checked by tests/docs_test.py: install -->      installs nrg from a copy of the tree: with --full only
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = {"README.md": 6, "docs/tutorial.md": 25, "python/README.md": 2, "docs/howto/install.md": 4,
         "docs/howto/other-languages.md": 5} # and the least number of marked blocks
MARK = re.compile(r"^<!-- checked by tests/docs_test\.py: (\w+)(?: (\S+))? -->\n```\w*\n(.*?)^```$", re.M | re.S)


def blocks(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    found, marks = MARK.findall(text), text.count("<!-- checked by tests/docs_test.py")
    if len(found) != marks or marks < PAGES[page]:
        sys.exit(f"{page}: {marks} marks, of which {len(found)} stand before a block; expected at least {PAGES[page]}")
    return found


def install(prefix, place):
    """Copies an installation to a place of its own, and makes nrg.pc name that."""
    shutil.copytree(prefix, place, symlinks=True)
    library = next(place.rglob("nrg.pc")).parent.parent
    if library != place / "lib": # lib/x86_64-linux-gnu
        for entry in list(library.iterdir()):
            entry.rename(place / "lib" / entry.name)
    config = place / "lib/pkgconfig/nrg.pc"
    text = re.sub(r"^prefix=.*$", f"prefix={place}", config.read_text(), flags=re.M)
    config.write_text(re.sub(r"^libdir=.*$", "libdir=${prefix}/lib", text, flags=re.M))


def environment(home):
    """What a reader has who installed nrg where compilers find it, and nothing of this test's."""
    own = dict(os.environ, HOME=str(home), LC_ALL="C.UTF-8", PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1",
               PATH=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
               PKG_CONFIG_PATH=str(home / "nrg/lib/pkgconfig"), LD_LIBRARY_PATH=str(home / "nrg/lib"))
    for name in ("PYTHONPATH", "NRG_LIBRARY", "NRG_ISA"):
        own.pop(name, None)
    return own


def run(page, folder, prefix, full):
    """True if every command succeeds and prints what the page shows."""
    home, place, output = folder / "home", folder / "run", folder / "output"
    for new in (home, place, output):
        new.mkdir(parents=True)
    install(prefix, home / "nrg")
    script, shown, last = ["set -e"], {}, None
    for number, (kind, name, text) in enumerate(blocks(page)):
        log = shlex.quote(str(output / str(number)))
        if kind == "file":
            script.append(f"cat >{shlex.quote(name)} <<'END_OF_FILE'\n{text}END_OF_FILE")
        elif kind == "run":
            script.append(f"exec >{log} 2>&1\n{text}")
            last = number
        elif kind == "python":
            script.append(f"exec >{log} 2>&1\npython - <<'END_OF_FILE'\n{text}END_OF_FILE")
            last = number
        elif kind == "output":
            shown[last] = text
        elif kind != "install":
            sys.exit(f"{page}: a block is marked {kind}")
        elif full:
            tree, destination = folder / "tree", folder / "destination"
            if not tree.exists():
                shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", "build*", "__pycache__"))
            if "--prefix" in text: # over the copy, which it replaces
                destination = ""
                shutil.rmtree(home / "nrg")
            script.append(f"exec >{log} 2>&1\ncd {shlex.quote(str(tree))}\nexport DESTDIR={shlex.quote(str(destination))}\n{text}\ncd "
                          + shlex.quote(str(place)))
    status = subprocess.run(["bash", "-c", "\n".join(script)], cwd=place, env=environment(home), stdin=subprocess.DEVNULL).returncode
    if status:
        log = max(output.iterdir(), key=lambda path: int(path.name))
        print(f"{page}: status {status} of\n{blocks(page)[int(log.name)][2]}which prints\n{log.read_text()}")
        return False
    right = True
    for number, text in shown.items():
        printed = (output / str(number)).read_text(encoding="utf-8")
        if printed != text:
            print(f"{page}: after\n{blocks(page)[number][2]}the page shows\n{text}and this was printed:\n{printed}")
            right = False
    return right


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--full"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    work, prefix = (pathlib.Path(argument).resolve() for argument in arguments)
    wrong = 0
    for page in PAGES:
        begin = time.monotonic()
        right = run(page, work / page.replace("/", "-"), prefix, "--full" in sys.argv)
        wrong += not right
        print(f"{page}: {f'{len(blocks(page))} blocks' if right else 'WRONG'}, {time.monotonic() - begin:.1f} s")
    sys.exit(bool(wrong))


main()
