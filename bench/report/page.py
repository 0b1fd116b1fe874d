#!/usr/bin/env python3
"""Puts style and scripts into the page, and the page into C: report_page_head is what stands before the data, report_page_tail
what stands after it.

    page.py OUT.c page.html page.css SCRIPT.js ...
"""
import pathlib
import sys

out, html, css, *scripts = sys.argv[1:]


def text(name):
    return pathlib.Path(name).read_text(encoding="utf-8")


script = "\n".join(text(name) for name in scripts)
for end, content in (("</script", script), ("</style", text(css))):
    if end in content:
        sys.exit(f"page.py: {end} within what it would end")
page = text(html).replace("/*STYLE*/", text(css)).replace("/*SCRIPT*/", script)
head, mark, tail = page.partition("/*DATA*/")
if not mark or "/*DATA*/" in tail:
    sys.exit("page.py: the page has not one place for the data")


def array(name, content):
    data = content.encode("utf-8") + b"\0"
    lines = [", ".join(map(str, data[i:i + 24])) for i in range(0, len(data), 24)]
    return f"extern const unsigned char {name}[];\nconst unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"


pathlib.Path(out).write_text(array("report_page_head", head) + array("report_page_tail", tail))
