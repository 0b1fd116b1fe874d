#!/usr/bin/env python3
"""Writes functions.def, which invoke.h includes: how each public function that has a description is called with the parts of it.

    functions.py OUTPUT [DEPFILE]

The first line of a description (src/operands/*.def) names its functions. An argument is the next part of its type. Otherwise it is a
field, or an operand, of its name in a part that is the library's own. Those of ABSENT are 0. A line depends on the families of the file in
src/sources.txt that defines the function."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ABSENT = ("accumulate", "norm")  # parameters that a description of their function may leave out
files = []  # that were read


def text_of(path):
    files.append(str(path))
    return path.read_text(encoding="utf-8")


def description(name):
    """The lines of a description and of those that it includes; macros that name a type or a term are replaced."""
    text = re.sub(r'^#include "(\w+)\.def"$', lambda match: description(match[1]), text_of(ROOT / f"src/operands/{name}.def"), flags=re.M)
    for macro, value in re.findall(r"^#define (NRG_\w+_ARGS|NRG_TERM_X) (\w+)$", text, re.M):
        text = re.sub(rf"\b{macro}\b", value, text)
    return text


def conditions():
    """{function: families that it needs}, as the preprocessor tests them."""
    found = {}
    for families, sources in re.findall(r"^(?!always)(\S+) core (.*)", text_of(ROOT / "src/sources.txt"), re.M):
        for source in re.findall(r"calls/\w+\.c", sources):
            for function in re.findall(r"^nrg_status nrg_(\w+)\(", text_of(ROOT / "src" / source), re.M):
                names = families.split("+") + ["backward"] * ("backward" in function)
                found[function] = " && ".join(f"!defined NRG_NO_{name.upper()}" for name in names)
    return found


def arguments(parameters, text, structs, given):
    """The values of parameters, [(type, name)], in parentheses; given: names that the caller has."""
    parts, fields, values = [], {}, []
    for i, (struct, kind) in enumerate(re.findall(r"^PART\(\w+, \w+, (\w+), (\w+)\)", text, re.M)):
        parts.append(f"const {struct} *")
        if kind == "OWN":
            names = [(name, name) for name in re.findall(r"(\w+)[,;]", re.search(rf"typedef struct {struct} {{(.*?)}}", structs, re.S)[1])]
            names += re.findall(r'^NAMED\(\w+, "(\w+)", \w+, (\w+)', text, re.M)
            fields.update({name: f"((const {struct} *)part[{i}])->{field}" for name, field in names})
    for kind, name in parameters:
        if name in given:
            values.append(name)
        elif kind in parts:
            values.append(f"part[{parts.index(kind)}]")
            parts[parts.index(kind)] = None
        elif name in fields and "*" in kind and "const" not in kind:
            values.append(f"own_memory({fields[name]})")
        elif name in fields or name in ABSENT:
            values.append(fields.get(name, "0"))
        else:
            sys.exit(f"functions.py: no part has {name}: {text.partition(chr(10))[0]}")
    return f"({', '.join(values)})"


def main(output, depfile=None):
    headers = "".join(re.sub(r"/\*.*?\*/", "", text_of(path), flags=re.S) for path in sorted((ROOT / "include/nrg").glob("*.h")))
    prototypes = {name: [re.fullmatch(r"\s*(.*?)(\w+)", parameter).groups() for parameter in parameters.split(",")]
                  for name, parameters in re.findall(r"nrg_status nrg_(\w+)\(([^)]*)\);", headers)}
    structs = "".join(text_of(path) for path in sorted((ROOT / "src/operands").glob("*.h")))
    needs, lines, known = conditions(), [], set()
    for path in sorted((ROOT / "src/operands").glob("*.def")):
        text = description(path.stem)
        for function in re.findall(r"nrg_(\w+)", text.partition("\n")[0]) if text.startswith("/* nrg_") else ():
            if function not in prototypes:
                continue  # it returns no status
            name = path.stem if function in known else function
            known.add(function)
            begin, parameters = f"({name}, {path.stem}, {function}, ", prototypes[function]
            if function + "_check" in prototypes:
                check = arguments(prototypes[function + "_check"], text, structs, ())
                line = f"SHARES{begin}{arguments(parameters, text, structs, ('ith', 'nth'))}, {check})"
            else:
                line = f"{'WORKSPACE' if parameters[-1][1] == 'bytes' else 'WHOLE'}{begin}{arguments(parameters, text, structs, ('bytes',))})"
            lines += [f"#if {needs[function]}", line, "#endif"]
    missing = [function for function in prototypes if function + "_check" in prototypes and function not in known]
    if missing:
        sys.exit(f"functions.py: no description begins with the names of {', '.join(missing)}")
    pathlib.Path(output).write_text("\n".join(lines + [""]), encoding="utf-8")
    if depfile:
        pathlib.Path(depfile).write_text(f"{output}: {' '.join(files)}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
