#!/usr/bin/env python3
"""Writes two plots of a report's page as SVG, by a headless Chromium.

    report_plots.py DIR      DIR: of report.html; writes DIR/sweep.svg and DIR/errors.svg
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/report"))
import browser  # noqa: E402

PLOTS = {"sweep.svg": "sweepFile('norm_forward rms f32')", "errors.svg": "accuracyFile('activation', best, '4096')"}

directory = pathlib.Path(sys.argv[1]).resolve()
program = browser.find()
if not program:
    sys.exit("report_plots.py: no Chromium")
with browser.Browser(program) as chromium:
    page = chromium.open((directory / "report.html").as_uri(), ready="document.documentElement?.dataset.ready === 'yes'")
    for name, plot in PLOTS.items():
        (directory / name).write_text(page.run(plot), encoding="utf-8")
        print(directory / name)
