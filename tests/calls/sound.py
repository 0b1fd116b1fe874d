#!/usr/bin/env python3
"""Writes the sound calls of sound.txt, which has the form of its lines, as C: usage: sound.py OUT.c sound.txt functions.def DEPFILE"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "check"))
from functions import description, files, text_of  # noqa: E402


class Call:
    """What stands below a call, of the text and of its description; a place is a line of the text."""

    def __init__(self, name, described, begin):
        text = description(described)
        operands = re.findall(r"^(?:OPERAND|NAMED)\((\w+),", text, re.M)
        self.name, self.bits = name, {operand.lower(): 1 << i for i, operand in enumerate(operands)}
        self.parts = re.findall(r"^PART\(\w+, (\w+), (\w+),", text, re.M)
        self.begin, self.described, self.fields = begin, described, {}
        self.variants, self.wrong, self.ids, self.set_up, self.count = [], {}, [], f"set_up_{name}", 0

    def mask(self, words):
        if words.strip() == "all":
            return "UINT32_MAX"
        for word in set(words.split()) - set(self.bits):
            sys.exit(f"sound.txt: {self.name} has no operand {word}")
        return f"{sum(self.bits[word] for word in words.split()):#x}"

    def set(self, field, value):
        """A field of sound_call."""
        if field == "no_kernel":
            self.fields.update({"has_no_kernel": "1", "own": "UINT32_MAX"})
        elif field == "unread":
            self.fields[field] = f'"{value}"'
        elif field in ("own", "spared"):
            self.fields[field] = self.mask(value)
        else:
            self.fields[field] = f"&invoke_{value}" if field == "workspace" else f"sound_{field}_{value}" if value else "1"

    def function(self, begin, place, statements, switch, cases, end):
        """C that runs statements and those of a case; begin: what the function begins with; cases: {label: (place, statements, result)}."""
        used = " ".join([statements] + [text for _, text, _ in cases.values()])
        code = [f"static {begin}", "{", "    (void)part;"]
        code += [f"    {struct} *const {part} = part[{i}];"
                 for i, (part, struct) in enumerate(self.parts) if re.search(rf"(?<![>.])\b{part}\b", used)]
        code += source(place, statements) + [f"    switch ({switch}) {{"]
        for case, (place_, text, result) in cases.items():
            code += [f"    case {case}:", *source(place_, text), f"        return {result};"]
        return code + ["    default:", f"        return {end};", "    }", "}"]

    def code(self):
        code = []
        if self.variants:
            code += self.function(f"uint32_t {self.set_up}(void *const *part, int variant)", *self.begin, "variant",
                                  dict(enumerate(self.variants)), "0")
        if self.wrong:
            code += self.function(f"int wrong_{self.name}(void *const *part, int variant, int n)", 0, "", f"{MOST} * variant + n",
                                  self.wrong, "SOUND_NO_MORE")
        if self.ids:
            code += self.function(f"int ids_{self.name}(void *const *part, int n, sound_ids *ids_)", 0, "", "n",
                                  dict(enumerate(self.ids)), "0")
        return code


def source(place, statements):
    """Statements with the line of the text where they stand."""
    return [f"#line {place}", f"        {statements};"] if statements else []


def status(name):
    return f"NRG_{'' if name == 'OK' else 'ERR_'}{name}"


MOST = 100  # changes of a variant


def read(path, known):
    """[(family, [calls])] of the text; known: {call: its description}."""
    lets, families, calls, call, variant, lines = {}, [], {}, None, 0, []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if re.match(r" {8}(?!then )\S", line):
            lines[-1][1] += " " + line.strip()
        elif line.strip() and not line.lstrip().startswith("#"):
            lines.append([f'{number} "{path}"', line.rstrip()])
    for place, line in lines:
        line = re.sub(r"@(\w+)", lambda match: lets[match[1]], line)
        if match := re.fullmatch(r"family (\w+)", line):
            families.append((match[1], []))
        elif match := re.fullmatch(r"let (\w+) = (.*)", line):
            lets[match[1]] = match[2]
        elif match := re.fullmatch(r"(\w+)(?: (as|like) (\w+))?:\s*(.*)", line):
            call = calls[match[1]] = Call(match[1], known[match[1]], (place, match[4]))
            families[-1][1].append(call)
            if other := calls.get(match[3]):
                call.set_up, call.count = other.set_up, other.count
                call.fields = dict(other.fields) if match[2] == "as" else {"bind": other.fields["bind"]} if "bind" in other.fields else {}
                if other.bits and not call.bits:
                    call.fields["like"] = f"&nrg_call_{other.described}"
        elif match := re.fullmatch(r"    with([^:]*):\s*(.*)", line):
            for statements in match[2].split(" or "):
                variant = call.count
                call.variants.append((place, statements, call.mask(match[1])))
                call.count += 1
        elif match := re.fullmatch(r"    variant (\d+)", line):
            variant = int(match[1])
        elif match := re.fullmatch(r"        then (.*) -> (\w+)(?: \(32 bits: (\w+)\))?", line):
            for statements in match[1].split(" or "):
                n = MOST * variant + sum(key // MOST == variant for key in call.wrong)
                call.wrong[n] = place, statements, f"SIZE_MAX > UINT32_MAX ? {status(match[2])} : {status(match[3] or match[2])}"
            call.fields["wrong"] = f"wrong_{call.name}"
        elif match := re.fullmatch(r"    ids (\w+) < (.*?)(?: or (.*))?", line):
            operand = call.bits[match[1]].bit_length() - 1
            call.ids.append((place, f"*ids_ = (sound_ids){{{operand}, {match[2]}, {match[3] or 0}}}", "1"))
            call.fields["ids"] = f"ids_{call.name}"
        elif match := re.fullmatch(r"    has (.*)", line):
            for field in match[1].split(", "):
                call.set(*field.partition(" ")[::2])
        else:
            sys.exit(f"line {place}: {line}")
    return families


def main(out, path, functions, depfile):
    known = dict(re.findall(r"^(?:SHARES|WHOLE|WORKSPACE)\((\w+), (\w+),", text_of(pathlib.Path(functions)), re.M))
    known["rope_pairs"] = "rope_pairs"  # it returns no status
    families, code = read(pathlib.Path(path), known), ['#include "calls/contents.h"']
    missing = set(known) - {call.name for _, calls in families for call in calls}
    if missing:
        sys.exit(f"{path} has no call {' '.join(sorted(missing))}")
    for name, calls in families:
        for call in calls:
            code += call.code() + ([f"extern const nrg_call {call.fields['like'][1:]};"] if "like" in call.fields else [])
        code.append(f"static const sound_call calls_{name}[] = {{")
        for call in calls:
            fields = "".join(f", .{field} = {value}" for field, value in call.fields.items())
            structs = ", ".join(f'"{struct}"' for _, struct in call.parts)
            code.append(f"    {{.function = &invoke_{call.name}, .structs = {{{structs}}}, .variants = {call.count}, .set_up = {call.set_up}{fields}}},")
        code.append("};")
    code.append("const sound_family sound_families[] = {")
    code += [f'    {{"{name}", calls_{name}, NRG_COUNT(calls_{name})}},' for name, _ in families] + ["    {NULL, NULL, 0}};"]
    pathlib.Path(out).write_text("\n".join(code + [""]), encoding="utf-8")
    pathlib.Path(depfile).write_text(f"{out}: {' '.join(sorted(set(files)))}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
