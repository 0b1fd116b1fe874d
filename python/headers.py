"""Reads include/nrg/*.h and writes their constants, structs and functions for ctypes, as the Python module nrg/_abi.py. Each build
(nrg_build.py) writes it again, so that it matches the library.

    headers.py INCLUDE-DIR [OUTPUT]

It parses only the C that these headers contain. An unknown declaration is an error, so that none is omitted silently.
"""
import pathlib
import re
import sys

SCALARS = {"void": None, "char": "c_char_p", "int": "c_int", "unsigned": "c_uint", "float": "c_float", "double": "c_double",
           "size_t": "c_size_t", "int8_t": "c_int8", "uint8_t": "c_uint8", "int32_t": "c_int32", "uint32_t": "c_uint32",
           "int64_t": "c_int64", "uint64_t": "c_uint64"}


LIMITS = {"FLT_MAX": 'float.fromhex("0x1.fffffep127")', "INFINITY": 'float("inf")', "SIZE_MAX": "c_size_t(-1).value"}


class Headers:
    def __init__(self, include):
        self.constants = {}  # every enumerator, and every macro that is a number
        self.enums = {}  # name: its enumerators
        self.structs = {}  # name: [(field, type)], as Python writes them
        self.defaults = {}  # name: {field: default}, as Python writes them, of the fields that the constructors do not set to 0
        self.functions = {}  # name: (result, [(argument, type)])
        self.callbacks = set()  # pointers to functions
        texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(pathlib.Path(include, "nrg").glob("*.h"))}
        if "nrg.h" not in texts:
            raise SystemExit(f"{include}/nrg has no nrg.h")
        done = set()

        def read(name):
            """Headers in the order in which they include each other."""
            if name not in done:
                done.add(name)
                for other in re.findall(r'^#include "(\w+\.h)"', texts[name], re.M):
                    read(other)
                self.header(texts[name])

        for name in texts:
            read(name)

    def header(self, text):
        text = re.sub(r"/\*.*?\*/", self.comment, text, flags=re.S)
        for name, value in re.findall(r"^#define (NRG_(?!HAS_)\w+) (0x[0-9a-f]+u?|\d+u?)\s*$", text, re.M):
            self.constants[name] = int(value.rstrip("u"), 0)
        text = re.sub(r"^\s*#.*(\\\n.*)*$", "", text, flags=re.M)
        text = re.sub(r'extern "C" \{|\bNRG_NODISCARD\b', "", text)
        position = 0
        while True:
            text = text[position:].lstrip(" \n}")
            if not text:
                return
            position = self.declaration(text)

    @staticmethod
    def comment(match):
        """Nothing is left of a comment but the default value of a field, with which it ends."""
        default = re.search(r"\bDefault: ([^:]*?)\.?\s*\*/$", match[0])
        return "@" + re.sub(r"\s+\*?\s*", " ", default[1]) + "@" if default else " "

    def declaration(self, text):
        """Takes the declaration that text begins with; its length."""
        match = re.match(r"static inline [^{]*\{", text)
        if match:  # Python has its own
            depth, position = 1, match.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(text[position], 0)
                position += 1
            return position
        match = re.match(r"(?:typedef )?enum (?:\w+ )?\{(.*?)\}\s*(\w*);", text, re.S)
        if match:
            self.enum(match[2], match[1])
            return match.end()
        match = re.match(r"typedef struct (\w+) \{(.*?)\}\s*\1;", text, re.S)
        if match:
            self.struct(match[1], match[2])
            return match.end()
        match = re.match(r"typedef char \w+\[[^;]*;", text)  # what is asserted
        if match:
            return match.end()
        match = re.match(r"typedef [^;{]*?\(\*(\w+)\)\([^;]*;", text, re.S)
        if match:
            self.callbacks.add(match[1])
            return match.end()
        match = re.match(r"NRG_API ([^;]*?)(\w+)\(([^;]*)\);", text, re.S)
        if match:
            arguments = [] if match[3].strip() == "void" else [field for part in match[3].split(",") for field in self.fields(part)]
            self.functions[match[2]] = self.type(match[1].replace("*", " * ").split()), arguments
            return match.end()
        raise SystemExit("headers.py does not know this declaration:\n" + text[:200])

    def enum(self, name, body):
        value, names = -1, []
        for part in filter(None, (item.strip() for item in body.split(","))):
            enumerator, _, given = (word.strip() for word in part.partition("="))
            value = sum(self.constants.get(term.strip()) if not term.strip().isdigit() else int(term)
                        for term in given.split("+")) if given else value + 1
            self.constants[enumerator] = value
            names.append(enumerator)
        if name:
            self.enums[name] = names

    def struct(self, name, body):
        fields, expressions = [], {}
        for before, line, after in re.findall(r"(?:@([^@]*)@)?([^;@]*);(?: *@([^@]*)@)?", body):  # a comment is above its fields, or behind
            declared = self.fields(line)
            fields += declared
            expressions.update({field: before or after for field, _ in declared if before or after})
        self.structs[name] = fields
        self.defaults[name] = {field: self.default(name, expression) for field, expression in expressions.items()}

    def default(self, struct, expression):
        """The default of a field as Python writes it: a number, or a function of the struct and of what calls the library."""
        fields, is_number = {field for field, _ in self.structs[struct]}, True
        written = []
        for token in re.findall(r"[A-Za-z_]\w*|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|\S", expression):
            if token in fields:
                is_number = False
                token = "of." + token
            elif token in self.functions:
                is_number = False
                token = f"function({token!r})"
            elif token in LIMITS or token in self.constants:
                token = LIMITS.get(token) or str(self.constants[token])
            elif re.match(r"[^\W\d]|[^\w.+\-*()]", token):
                raise SystemExit(f"headers.py does not know {token} in a default of {struct}: {expression}")
            written.append(token)
        return " ".join(written) if is_number else "lambda of, function: " + " ".join(written)

    def fields(self, line):
        """`const void *q, *k` and `int sections[4]`: [(name, type)]."""
        declarators = line.split(",")
        words = declarators[0].replace("*", " * ").split()
        base = [word for word in words[:-1] if word != "*"]
        fields = []
        for i, declarator in enumerate(declarators):
            match = re.fullmatch(r"(.*?)(\w+)(?:\[(\w+)\])?", declarator.strip(), re.S)
            kind = self.type(base + ["*"] * (match[1].count("*")))
            if match[3]:
                kind += " * %d" % (int(match[3]) if match[3].isdigit() else self.constants[match[3]])
            fields.append((match[2], kind))
        return fields

    def type(self, words):
        words = [word for word in words if word != "const"]
        pointers = words.count("*")
        (name,) = (word for word in words if word != "*")
        if name in self.callbacks:
            return "c_void_p"
        if pointers:
            # structs and data alike: what is handed over are addresses. Strings come back as bytes
            return SCALARS["char"] if name == "char" else "c_void_p"
        if name in self.enums:
            return "c_int"
        if name in self.structs:
            return name
        return SCALARS[name]

    def module(self):
        kinds = sorted({kind for kind in SCALARS.values() if kind} | {"c_void_p"})
        lines = ['"""Made by headers.py from include/nrg/*.h. Do not edit."""', "# pylint: skip-file",
                 "from __future__ import annotations", "",
                 "from ctypes import Structure, " + ", ".join(kinds), "from typing import Any, Dict, List, Tuple, Type",
                 "", "CONSTANTS: Dict[str, int] = {"]
        lines += [f"    {name!r}: {value}," for name, value in self.constants.items()]
        lines += ["}", "", "ENUMS: Dict[str, List[str]] = {"]
        lines += [f"    {name!r}: {names!r}," for name, names in self.enums.items()]
        lines += ["}"]
        for name, fields in self.structs.items():
            lines += ["", "", f"class {name}(Structure):", "    _fields_ = ["]
            lines += [f"        ({field!r}, {kind})," for field, kind in fields]
            lines += ["    ]"]
        lines += ["", "", "STRUCTS: Dict[str, Type[Structure]] = {"]
        lines += [f"    {name!r}: {name}," for name in self.structs]
        lines += ["}", "", "DEFAULTS: Dict[str, Dict[str, Any]] = {  # of fields that the constructors do not set to 0"]
        lines += [f"    {name!r}: {{" + ", ".join(f"{field!r}: {default}" for field, default in defaults.items()) + "},"
                  for name, defaults in self.defaults.items() if defaults]
        lines += ["}", "", "FUNCTIONS: Dict[str, Tuple[Any, List[Tuple[str, Any]]]] = {  # the result, and the arguments by name"]
        for name, (result, arguments) in self.functions.items():
            lines += [f"    {name!r}: ({result}, [" + ", ".join(f"({argument!r}, {kind})" for argument, kind in arguments) + "]),"]
        return "\n".join(lines + ["}", ""])


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    module = Headers(sys.argv[1]).module()
    if len(sys.argv) == 3:
        pathlib.Path(sys.argv[2]).write_text(module, encoding="utf-8")
    else:
        print(module, end="")


if __name__ == "__main__":
    main()
