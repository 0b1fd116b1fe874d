#!/usr/bin/env python3
"""Compares the tree with the documentation: the files of an op and the lists that contain it (docs/howto/adding-a-kernel.md), the same
files on every path, and the pages of docs/reference with headers and build files. layers.py checks what may include what."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATHS = ("avx2", "avx512", "neon", "generic")
# Ops that have every file of the list under their own name; the others share some with them.
WHOLE = {"norm": "norm", "channel_norm": "channel_norm", "activation": "activation", "rope": "rope", "embed": "embed", "score_bias": "score_bias",
         "relative": "relative", "recurrent": "recurrent", "quantize": "quantize",
         "softmax": "softmax"}

failures = []


def expect(condition, text):
    if not condition:
        failures.append(text)


def kernels():
    text = (ROOT / "src/kernels.def").read_text()
    return re.findall(r"^NRG_KERNEL\((\w+), (\w+), (\w+)\)", text, re.M)


def files_of_an_op():
    """docs/howto/adding-a-kernel.md: each new or edited file is there for one op of every family; those of tests/ and python/ for some op. A family
    may have a file a direction: norm_forward.c in place of norm.c."""
    text = (ROOT / "docs/howto/adding-a-kernel.md").read_text()
    families = {family for family, _, _ in kernels()}
    expect(families == set(WHOLE), f"families of kernels.def: {sorted(families)}")

    def is_there(pattern, family, file):
        path = ROOT / pattern.replace("{family}", family).replace("{file}", file).replace("{op}", file)
        return path.exists() or any(path.parent.glob(f"{path.stem}_*{path.suffix}"))

    for kind in ("new", "edited"):
        block = text.split(f"<!-- checked by scripts/house.py: {kind} files -->\n```\n")[1].split("```")[0]
        patterns = [line.split()[0] for line in block.splitlines()]
        expect(len(patterns) > 4, f"docs/howto/adding-a-kernel.md lists no {kind} files")
        for pattern in patterns:
            missing = [family for family, file in WHOLE.items() if not is_there(pattern, family, file)]
            expect(len(missing) < len(WHOLE) and (pattern.startswith(("tests/", "python/")) or not missing),
                   f"{pattern}: listed in docs/howto/adding-a-kernel.md, and not there for {' '.join(missing)}")


def same_names():
    """The folders of the paths hold the same files, of three lines each; scalar has one for each as well."""
    names = {path: sorted(p.name for p in (ROOT / "src" / path).iterdir()) for path in PATHS}
    for path in PATHS[1:]:
        expect(names[path] == names[PATHS[0]], f"src/{path} and src/{PATHS[0]} hold different files")
    for path in PATHS:
        for name in names[path]:
            if name != "vec.h":
                lines = [line for line in (ROOT / "src" / path / name).read_text().splitlines()
                         if line.strip() and not line.lstrip().startswith(("/*", "*", " *"))]
                expect(len(lines) <= 3, f"src/{path}/{name} has {len(lines)} lines")


def lists():
    """nrg/nrg.h, from which meson installs, has every public header."""
    all_of_it = (ROOT / "include/nrg/nrg.h").read_text()
    for header in sorted(p.name for p in (ROOT / "include/nrg").iterdir() if p.name != "config.h"): # which each build makes for itself
        expect(header == "nrg.h" or f'"{header}"' in all_of_it, f"include/nrg/{header} is not in nrg/nrg.h")


def references():
    """The reference pages name exactly the exported functions, the options of both builds, the commands and the status codes."""
    def table_names(text):
        return re.findall(r"^\| `(\w+)` \|.*?(\| yes )?\|$", text, re.M)

    def section(name, heading):
        return (ROOT / name).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]

    def compare(page, listed, found, what):
        for name in sorted(set(listed) ^ set(found)):
            expect(False, f"{page}: {name} is {'no ' + what if name in listed else 'missing'}")
        expect(len(listed) == len(set(listed)), f"{page}: a {what} is listed twice")

    page = "docs/reference/functions.md"
    headers = "".join(path.read_text() for path in sorted((ROOT / "include/nrg").glob("*.h")))
    functions = set(re.findall(r"NRG_API [^;(]*?\b(nrg_\w+)\(", headers))
    expect(len(functions) > 100, "no functions found in include/nrg")
    rows = table_names((ROOT / page).read_text())
    compare(page, [name for name, _ in rows] + [f"{name}_check" for name, check in rows if check], functions, "exported function")

    for definition in sorted((ROOT / "docs/ops").glob("*.md")):
        expect(f"(../ops/{definition.name})" in (ROOT / page).read_text(), f"{page}: no link to {definition.name}")

    page = "docs/reference/build-options.md"
    options = re.findall(r"^option\('(\w+)'", (ROOT / "meson_options.txt").read_text(), re.M)
    compare(page, [name for name, _ in table_names(section(page, "meson").split("\nThese options of meson ")[0])], options, "option of meson_options.txt")
    options = re.findall(r"(?:^\s*option\(|set\()(NRG_\w+|BUILD_SHARED_LIBS|CMAKE_BUILD_TYPE)(?= )", (ROOT / "CMakeLists.txt").read_text(), re.M)
    compare(page, [name for name, _ in table_names(section(page, "CMake"))], set(options), "option of CMakeLists.txt")

    page = "docs/reference/command-line.md"
    commands = re.findall(r'^    \{"([\w-]+)", command_', (ROOT / "tools/nrg.c").read_text(), re.M)
    compare(page, re.findall(r"^\| `nrg ([\w-]+)` \|", (ROOT / page).read_text(), re.M), commands, "command")

    page = "docs/howto/fix-a-status.md"
    compare(page, re.findall(r"^### (\w+ \(\d+\))$", (ROOT / page).read_text(), re.M),
            [f"{name} ({number})" for name, number in re.findall(r"^    (NRG_ERR_\w+) = (\d+)", headers, re.M)], "status")


def comments():
    """clang-format leaves comments as they are (ReflowComments), so that lists stay lists: this keeps them within its columns, and
    finds a list that something has merged into a paragraph."""
    columns = int(re.search(r"ColumnLimit: (\d+)", (ROOT / ".clang-format").read_text())[1])
    merged = re.compile(r"^ *\* [^ *].*\S {3,}\S")
    for folder in ("bench", "check", "examples", "include", "src", "tests", "tools"):
        for path in sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in (".c", ".h", ".cc", ".def")):
            text = path.read_text()
            for comment in re.finditer(r"/\*.*?\*/", text, re.S):
                first = text.count("\n", 0, comment.start()) + 1
                for number, line in enumerate(comment[0].split("\n"), first):
                    expect(number == first or not merged.match(line), f"{path.relative_to(ROOT)}:{number}: a list in a paragraph")
            for number, line in enumerate(text.split("\n"), 1):
                expect(len(line) <= columns, f"{path.relative_to(ROOT)}:{number}: {len(line)} columns, more than {columns}")


FUNCTION = re.compile(r"(/\*(?:(?!\*/).)*\*/\s*)?^(?:(?:NRG_NODISCARD )?NRG_API|static inline) ([\w *]*?)(\w+)\(([^)]*)\)\s*[;{]", re.S | re.M)


def public_comments():
    """The comment of every public function has a summary and a bullet for each parameter. If the function returns a status, the
    comment lists the statuses; tests/calls/bad_input_test.c compares them with the code."""
    for path in sorted((ROOT / "include/nrg").glob("*.h")):
        text = path.read_text()
        for match in FUNCTION.finditer(text):
            kind, name = match[2].strip(), match[3]
            where = f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start(2)) + 1}: {name}"
            lines = [re.sub(r"^(/\*| \*) ?", "", line) for line in (match[1] or "").split("\n")]
            comment = " ".join(line.strip() for line in lines)
            if name.endswith("_check"):
                expect(re.match(rf"Validates the arguments of {name.removesuffix('_check')}[.,] ", comment), f"{where}: does not begin as a _check does")
                continue
            expect(re.match(r"[A-Z][a-z]+s ", comment), f"{where}: no summary that begins with a verb")
            bullets = {word for line in lines for bullet in [re.match(r"- ([\w, ]+):", line)] if bullet for word in bullet[1].split(", ")}
            for parameter in match[4].split(",") if match[4] != "void" else ():
                parameter = re.search(r"(\w+)(?:\[\w*\])?$", parameter.strip())[1]
                expect(parameter in bullets, f"{where}: no bullet for {parameter}")
            if kind == "nrg_status":
                expect(re.search(r"- NRG_ERR_\w+[:,]|[Tt]he statuses of nrg_", comment), f"{where}: no statuses")


files_of_an_op()
same_names()
comments()
lists()
references()
public_comments()
for failure in failures:
    print(failure)
print(f"{len(kernels())} ops: {'the house is as described' if not failures else f'{len(failures)} things are not as described'}")
sys.exit(bool(failures))
