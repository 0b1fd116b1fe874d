#!/usr/bin/env python3
"""The page of nrg-bench --report in a real browser: that it loads without a word on the console and asks nobody for anything,
draws, sorts and filters what the JSON beside it says, in both schemes and on a phone.

    page_test.py DIR [PICTURES]      DIR: of report.html and report.json; PICTURES: a directory for screenshots

Ends with 77 where there is no Chromium.
"""
import json
import pathlib
import sys

import browser

PHONE, DESK = 390, 1200
directory = pathlib.Path(sys.argv[1]).resolve()
pictures = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
url = (directory / "report.html").as_uri()
data = json.loads((directory / "report.json").read_text())
rows = [dict(zip(data["columns"], row)) for row in data["rows"]]
checked = failed = 0

# In the page: the cells of a column of the table, by its key.
CELLS = "[...document.querySelectorAll('#cases tbody tr')].map(r => r.cells[COLUMNS.findIndex(c => c[0] === '%s')].textContent)"


def expect(condition, text):
    global checked, failed
    checked += 1
    if not condition:
        failed += 1
        print(f"FAILED: {text}")


def set_value(page, selector, value):
    page.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)};"
             " (e.oninput || e.onchange).call(e); })()")


def shown(page):
    return page.run("document.getElementById('table-count').textContent")


def show_all(page):
    page.run("(() => { const more = document.getElementById('more'); while (!more.hidden) more.click(); })()")


def test_table(page):
    expect(shown(page).startswith(f"{len(rows)} of {len(rows)} rows"), f"all rows at first: {shown(page)}")
    kernel = rows[0]["kernel"]
    set_value(page, "#table-filters [name=kernel]", kernel)
    count = sum(row["kernel"] == kernel for row in rows)
    expect(shown(page).startswith(f"{count} of {len(rows)} rows"), f"rows of {kernel}: {shown(page)}, not {count}")
    show_all(page)
    expect(set(page.run(CELLS % "kernel")) == {kernel}, f"rows of {kernel} alone")
    set_value(page, "#table-filters [name=kernel]", "")
    op = rows[-1]["op"]
    set_value(page, "#table-filters [name=text]", f"{op} {rows[-1]['shape']}")
    count = sum(all(word in f"{row['op']} {row['shape']}" for word in (op, rows[-1]["shape"])) for row in rows)
    expect(shown(page).startswith(f"{count} of"), f"rows with {op}: {shown(page)}, not {count}")
    set_value(page, "#table-filters [name=text]", "no such op")
    expect(shown(page).startswith("0 of"), f"rows of nothing: {shown(page)}")
    set_value(page, "#table-filters [name=text]", "")

    show_all(page)
    for key, title in (("ns", "time"), ("kernel", "kernel")):
        for direction in ("first", "second"):
            page.run(f"document.querySelector('#cases th[data-key={key}] button').click()")
            show_all(page)
            order = page.run(f"document.querySelector('#cases th[data-key={key}]').getAttribute('aria-sort')")
            names = [f"{a}/{b}/{c}/{d}/{e}" for a, b, c, d, e in
                     zip(*(page.run(CELLS % k) for k in ("kernel", "op", "dtype", "path", "shape")))]
            value = {f"{r['kernel']}/{r['op']}/{r['dtype']}/{r['path']}/{r['shape']}": r[key] for r in rows}
            values = [value[name] for name in names]
            expect(values == sorted(values, reverse=order == "descending"), f"by {title}, {direction} click: {order}")
            expect(len(values) == len(rows), f"{len(values)} of {len(rows)} rows by {title}")


def test_plots(page):
    for place in ("sweep", "bars", "accuracy"):
        expect(page.run(f"!!document.querySelector('#{place} svg')"), f"the plot {place} is drawn")
    lines = "document.querySelectorAll('#sweep path.mark').length"
    before = page.run(lines)
    page.run("document.querySelector('#sweep-filters input').click()")
    expect(page.run(lines) == before - 1, "a path that is switched off has no line")
    page.run("document.querySelector('#sweep-filters input').click()")
    kernels = page.run("[...document.querySelector('#bars-filters [name=kernel]').options].map(o => o.value)")
    for kernel in kernels:
        set_value(page, "#bars-filters [name=kernel]", kernel)
        expect(page.run("!!document.querySelector('#bars svg [data-tip]')"), f"bars of {kernel}")
    set_value(page, "#bars-filters [name=kernel]", kernels[0])
    alone = page.run("sweepFile(keyOf(sweep[0]))")
    expect(page.run(f"new DOMParser().parseFromString({json.dumps(alone)}, 'image/svg+xml').querySelector('parsererror') === null"),
           "a plot that is saved is whole XML")


def test_schemes(page, dark):
    back = "getComputedStyle(document.body).backgroundColor"
    of_system = page.run(back)
    expect((of_system == "rgb(13, 13, 13)") == dark, f"the system's scheme, dark: {dark}: {of_system}")
    seen = []
    for _ in range(3):
        page.run("document.getElementById('scheme').click()")
        seen.append(page.run(back))
    expect(seen[0] != seen[1] and seen[2] == of_system, f"the switch: {seen}")


def test_width(page, name):
    wide = page.run("document.documentElement.scrollWidth - innerWidth")
    expect(wide <= 0, f"{name}: {wide} pixels stick out")


def fresh(chromium, width, dark):
    return chromium.open(url, width=width, dark=dark, ready="document.documentElement?.dataset.ready === 'yes'")


program = browser.find()
if not program:
    print("not here: no Chromium")
    sys.exit(77)
expect((directory / "report.html").stat().st_size < 1 << 20, "the page has less than 1 MB")
with browser.Browser(program) as chromium:
    for name, width, is_dark in (("light", DESK, False), ("dark", DESK, True), ("phone", PHONE, False), ("phone-dark", PHONE, True)):
        shot = fresh(chromium, width, is_dark)
        test_width(shot, name)
        if pictures:
            pictures.mkdir(exist_ok=True)
            shot.picture(pictures / f"{name}.png")
        test_plots(shot)
        test_table(shot)
        test_schemes(shot, is_dark)
        expect(not shot.faults(), f"{name}: the console: {shot.faults()}")
        asked = [to for to in shot.requests() if to != url and not to.startswith("data:")]
        expect(not asked, f"{name}: the page asks for {asked}")
print(f"the page of a report: {checked} things looked at, {failed} wrong")
sys.exit(failed != 0)
