#!/usr/bin/env python3
"""The lines of C that common cases take: counted in examples/snippets against what they may take, and shown in docs/howto/snippets.md as they
stand there. Their programs are tests of their own.

    tests/snippets_test.py"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples/snippets"
PAGE = ROOT / "docs/howto/snippets.md"
MOST = {"rms_norm": 1, "rms_norm_threads": 3, "add_rms_norm_bf16": 7, "softmax_cache": 4, "rope_positions": 6, "swiglu": 2, "quantize_q8_0": 2,
        "layer_norm_backward": 8, "qkv_cache": 16}
COLUMNS = 130

failures = []


def expect(condition, text):
    if not condition:
        failures.append(text)


def lines_of(path):
    """The lines between the two comments, without their indentation."""
    parts = re.split(r"^ *\/\* snippet \*\/\n", path.read_text(encoding="utf-8"), flags=re.M)
    if len(parts) != 3:
        sys.exit(f"{path.name}: {len(parts) - 1} comments `snippet`, not 2")
    return [line.removeprefix("    ") for line in parts[1].splitlines()]


files = {path.stem: path for path in FOLDER.glob("*.c")}
expect(set(files) == set(MOST), f"not both a file and a limit: {sorted(set(files) ^ set(MOST))}")
shown = {name: text.splitlines() for name, text in
         re.findall(r"^<!-- checked by tests/snippets_test.py: (\w+) -->\n```c\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)}
expect(set(shown) == set(MOST), f"{PAGE.name}: {sorted(set(shown) ^ set(MOST))}")
for name, most in MOST.items():
    lines = lines_of(files[name])
    count = sum(bool(line.strip()) for line in lines)
    expect(1 <= count <= most, f"{name}: {count} lines, and may have {most}")
    expect(all(line.count(";") == 1 and not line.startswith(" ") and "//" not in line and "/*" not in line for line in lines),
           f"{name}: a line is not one statement")
    expect(max(map(len, files[name].read_text(encoding="utf-8").splitlines())) <= COLUMNS, f"{name}: a line is longer than {COLUMNS} columns")
    expect(shown.get(name) == lines, f"{PAGE.name} does not show the lines of {name}")
if shutil.which("clang-format"):
    for path in sorted(FOLDER.iterdir()):
        done = subprocess.run(["clang-format", path], capture_output=True, text=True, check=True)
        expect(done.stdout == path.read_text(encoding="utf-8"), f"{path.name} is not as clang-format has it")
for failure in failures:
    print(failure, file=sys.stderr)
print(f"{len(MOST)} snippets, {len(failures)} things wrong")
sys.exit(bool(failures))
