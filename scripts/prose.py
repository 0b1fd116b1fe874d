#!/usr/bin/env python3
"""Counts the sentences of README, docs and public headers that are too long, and lists words that the style guide avoids.

    prose.py            all pages: prints the share of sentences over 30 words, and fails at 2 %
    prose.py FILE ...   lists the sentences over 25 words and the words to avoid, with file and line

Code, tables, formulas, headings and link targets are left out. A list item, a table and a code block end a sentence.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONG, VERY_LONG, LIMIT = 25, 30, 0.02
AVOID = re.compile(
    r"\b(who|whoever|nobody|somebody|whose callers|what there is|where there is (?:one|none|no)|looked at|of its own|of their own|"
    r"beside|in turn|by turns|but for|anew|in vain|at hand|holds? against|lies over|comes? to|wants|serves|knows|says|asks|refuses)\b",
    re.I)
ITEM = re.compile(r"(?:[-*+]|\d+\.) +")
END = re.compile(r"(?<![.!?])[.!?:;]?[.!?][\"')\]]*(?=\s+[\"'(\[`]*[A-Z0-9`\"(]|\s*$)")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|cf|vs|etc|Fig|Eq|no|al)\.$")


def markdown_blocks(text):
    """(line, text) of each paragraph and list item, without code, tables, headings and comments."""
    fenced = comment = False
    block, start = [], 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
            line = ""
        elif fenced:
            continue
        if "<!--" in line:
            comment = True
        skipped = comment or re.match(r"\s*(\||#|<|\[!\[|!\[|    \S)", line) and not (line.startswith("    ") and block)
        if "-->" in line:
            comment = False
        item = ITEM.match(line.strip())
        if (not line.strip() or skipped or item) and block:
            yield start, " ".join(block)
            block = []
        if line.strip() and not skipped:
            if not block:
                start = number
            block.append(line.strip()[item.end() if item else 0:])


def header_blocks(text):
    """(line, text) of each paragraph, list item and field's comment, without indented formulas and tables."""
    for comment in re.finditer(r"/\*(.*?)\*/", text, re.S):
        start = text.count("\n", 0, comment.start()) + 1
        block, first = [], start
        for number, line in enumerate([*comment[1].split("\n"), ""], start):
            line = re.sub(r"^\s*\*", "", line) if number > start else line
            item = ITEM.match(line.strip())
            indented = re.match(r"\s{4,}", line) and not item or "SPDX-" in line
            continues = re.match(r"\s{2,3}\S", line)
            if (not line.strip() or indented or item) and not (continues and not item and block) and block:
                yield first, " ".join(block)
                block = []
            if line.strip() and not indented:
                if not block:
                    first = number
                block.append(line.strip()[item.end() if item else 0:])


def sentences(block):
    block = re.sub(r"`[^`]*`", "code", block)
    block = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", block)
    begin = 0
    for end in END.finditer(block):
        if not ABBREVIATION.search(block[begin:end.end()]):
            yield block[begin:end.end()].strip()
            begin = end.end()
    if block[begin:].strip():
        yield block[begin:].strip()


def words(sentence):
    return sum(bool(re.search(r"[^\W\d_]", word)) for word in sentence.split())


def read(path):
    text = path.read_text(encoding="utf-8")
    blocks = header_blocks(text) if path.suffix == ".h" else markdown_blocks(text)
    return [(line, sentence) for line, block in blocks for sentence in sentences(block)]


def pages():
    return [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "include/nrg").glob("*.h")]


def main():
    if len(sys.argv) > 1:
        for name in sys.argv[1:]:
            for line, sentence in read(pathlib.Path(name)):
                count = words(sentence)
                avoided = sorted({word.lower() for word in AVOID.findall(sentence)})
                if count > LONG or avoided:
                    print(f"{name}:{line}: {count} words{'; avoid ' + ', '.join(avoided) if avoided else ''}: {sentence[:100]}")
        return 0
    counts = {path: [words(sentence) for _, sentence in read(path)] for path in pages()}
    total = sum(map(len, counts.values()))
    long = sum(count > VERY_LONG for page in counts.values() for count in page)
    for path, page in sorted(counts.items(), key=lambda pair: -sum(count > VERY_LONG for count in pair[1]))[:10]:
        if any(count > VERY_LONG for count in page):
            print(f"{path.relative_to(ROOT)}: {sum(count > VERY_LONG for count in page)} of {len(page)} sentences over {VERY_LONG} words")
    print(f"{long} of {total} sentences have more than {VERY_LONG} words: {100 * long / total:.1f} %, less than {100 * LIMIT:.0f} % is the limit")
    return int(long >= LIMIT * total)


if __name__ == "__main__":
    sys.exit(main())
