#!/usr/bin/env python3
"""Writes what the public headers state of functions, as C for header.c: usage: headers.py OUT.c NRG.h

- Statuses: bullets of the comment before a function, "- NRG_ERR_A, NRG_ERR_B: ...", and those of other functions that it refers
  to, "the statuses of nrg_x and nrg_y, except NRG_ERR_A".
- Which operands its outputs may lie over: a line of names, and lines of an output with yes or no below each name; of the header
  above the function, the last one counts.
- The fields of structs that are enums or reserved: where they are, and the values that they may have."""
import pathlib
import re
import sys

LIST = r"{0}(?:[, ]+(?:and )?{0})*"
STATUSES, FUNCTIONS = LIST.format(r"NRG_ERR_\w+"), LIST.format(r"nrg_\w+")
DECLARATION = re.compile(r"((?:/\*(?:(?!\*/).)*\*/\s*)*)(?:NRG_API |NRG_NODISCARD )*(?:nrg_status|size_t) (nrg_\w+)\(", re.S)


def statuses_of(function, comments):
    """Their names; of the comments of all functions."""
    text = re.sub(r"\n *(?:\*(?!/) *)?", " ", comments[function])
    found = {name for bullet in re.findall(rf"- ({STATUSES}):", text) for name in re.findall(r"\w+", bullet) if name != "and"}
    for functions, excepted in re.findall(rf"he statuses of ({FUNCTIONS})(?:,? except ({STATUSES}))?", text):
        for other in re.findall(r"nrg_\w+", functions):
            found |= statuses_of(other, comments) - set(re.findall(r"NRG_ERR_\w+", excepted))
    return found


def rows_of(text):
    """Where each row of a matrix begins; its output, the names above the rows, and those with a yes."""
    columns, above = [], ""
    for line in re.finditer(r".*", text):
        if row := re.match(r"[ *]*([\w.\[\]' ]+?) +(?:yes|no)\b", line[0]):
            if re.fullmatch(r"[\w.\[\] *]+", above) and not re.search(r"\b(?:yes|no)\b", above):
                columns = [(name.start(), name[0]) for name in re.finditer(r"[^ *]+", above)]
            yield line.start(), row[1], [name for _, name in columns], [name for at, name in columns if line[0][at:at + 3] == "yes"]
        above = line[0] or above


def fields_of(text):
    """Of the text of all headers: (struct, field, its values, the status of any other). A comment before a field may say that it has
    few of its enum's values: "NRG_A or NRG_B, no other"."""
    comment = r"/\*(?:(?!\*/).)*\*/"
    enums = {name: re.findall(r"NRG_\w+", re.sub(comment, "", body, flags=re.S))
             for body, name in re.findall(r"typedef enum nrg_\w+ \{(.*?)\n\} (\w+);", text, re.S)}
    for body, struct in re.findall(r"typedef struct nrg_\w+ \{(.*?)\n\} (\w+);", text, re.S):
        for match in re.finditer(r"^ +(\w+) (\w+);", body, re.M):
            before = re.findall(comment, body[:match.start()], re.S)[-1:]
            few = re.search(r"((?:NRG_\w+(?:, | or )?)+), no other", before[0]) if before else None
            if match[1] in enums:
                yield struct, match[2], re.findall(r"NRG_\w+", few[1]) if few else enums[match[1]], "NRG_ERR_ENUM"
            elif match[2] == "reserved":
                yield struct, match[2], ["0"], "NRG_ERR_STRUCT_SIZE"


def main(out, nrg_h):
    folder, comments, functions, texts = pathlib.Path(nrg_h).parent, {}, [], ""
    code = ["#include <nrg/nrg.h>\n", '#include "calls/header.h"\n']
    for header in re.findall(r'^#include "(\w+)\.h"', pathlib.Path(nrg_h).read_text(encoding="utf-8"), re.M):
        text = (folder / f"{header}.h").read_bytes().decode("latin-1")  # columns are bytes
        rows, texts = list(rows_of(text)), texts + text
        code += [f"static const header_row {header}[] = {{"]
        code += [f'    {{"{output}", " {" ".join(names)} ", " {" ".join(yes)} "}},' for _, output, names, yes in rows] + ["    {0}};"]
        for match in DECLARATION.finditer(text):
            if match[2] not in comments:
                comments[match[2]] = match[1]
                functions.append((match[2], header, sum(at < match.start(2) for at, *_ in rows)))
    code += ["const header_function header_functions[] = {"]
    for name, header, count in functions:
        bits = " | ".join(f"1u << {status}" for status in sorted(statuses_of(name, comments))) or "0"
        code += [f'    {{"{name}", {bits}, {header}, {count}}},']
    code += ["    {0}};", "const header_field header_fields[] = {"]
    for struct, field, values, status in fields_of(texts):
        list_ = f"(const int[]){{{', '.join(values)}}}, {len(values)}"
        code.append(f'    {{"{struct}", "{field}", NRG_AT({struct}, {field}), {status}, {list_}}},')
    pathlib.Path(out).write_text("\n".join(code + ["    {0}};", ""]), encoding="latin-1")


if __name__ == "__main__":
    main(*sys.argv[1:])
