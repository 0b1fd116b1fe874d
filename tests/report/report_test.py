#!/usr/bin/env python3
"""nrg-bench --report within seconds, and --compare: valid JSON of what was asked for, which a comparison reads; exit statuses; no
half of a file when it is interrupted. nrg-bench --scan: every drawn case is accepted, and a number gives the same case again.

    report_test.py NRG-BENCH
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

bench = sys.argv[1]
failed = 0
FILTER = ["--kernel", "norm_forward,activation", "--op", "rms,silu"]


def expect(condition, text):
    global failed
    if not condition:
        failed += 1
        print(f"FAILED: {text}")


def run(*arguments):
    return subprocess.run([bench, *map(str, arguments)], capture_output=True, text=True, check=False)


def write(path, report):
    path.write_text(json.dumps(report))
    return path


def paths_of(report):
    return {row[report["columns"].index("path")] for row in report["rows"]}


def test_report(directory):
    # on a busy machine a report has no time for the slower paths, and rightly leaves them out: then a longer one is asked for
    for seconds in (4, 16, 64):
        done = run("--report", directory / "r", "--seconds-total", seconds, *FILTER)
        if done.returncode or len(paths_of(json.loads((directory / "r/report.json").read_text()))) > 1:
            break
    expect(done.returncode == 0, f"--report: {done.returncode}: {done.stderr}")
    expect("left" in done.stderr, "a line of how far it is")
    names = sorted(p.name for p in (directory / "r").iterdir())
    expect(names == ["report.html", "report.json"], f"its files: {names}")
    text = (directory / "r/report.json").read_text()
    report = json.loads(text)
    page = (directory / "r/report.html").read_text()
    inside = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    expect(json.loads(inside)["rows"] == report["rows"], "the page has the rows of the JSON")
    rows = [dict(zip(report["columns"], row)) for row in report["rows"]]
    expect(len(rows) == report["measured"] > 0, f"{len(rows)} rows, {report['measured']} measured")
    expect(report["measured"] <= report["cases"], "no more than there are")
    expect({r["op"] for r in rows} <= {"rms", "silu"}, "the ops asked for, and no other")
    expect(len(paths_of(report)) > 1 or len(report["paths"]) == 1, "more than one path")
    for row in rows:
        expect(row["ns"] > 0 and row["elements"] > 0 and row["bytes"] > 0, f"a time: {row}")
    # those that there was time for; all of them: nrg-bench --errors
    for _, op, dtype, _, who, ulp in report["errors"]:
        expect(ulp > 0 and (who != "nrg" or ulp < (3 if dtype == "f32" else 0.51)), f"{who} {op} {dtype} is off by {ulp} ulp")
    expect(report["seconds"] < 5 * seconds, f"{seconds} seconds took {report['seconds']}")
    return report


def test_compare(directory, report):
    a = write(directory / "a.json", report)
    at = report["columns"].index("ns")
    slower = json.loads(json.dumps(report))
    slower["rows"][0][at] *= 2
    b = write(directory / "b.json", slower)
    same = run("--compare", a, a, "--worse-than", 1.01)
    expect(same.returncode == 0, f"a report against itself: {same.returncode}: {same.stderr}")
    expect(f"{len(report['rows'])} cases in both, 0 in A alone, 0 in B alone" in same.stdout, "every case in both")
    expect("B is 1.000 times as fast" in same.stdout, "as fast as itself")
    for arguments, status in (((a, b, "--worse-than", 1.5), 1), ((a, b, "--worse-than", 2.5), 0), ((a, b), 0),
                              ((b, a, "--worse-than", 1.5), 0)):
        done = run("--compare", *arguments)
        expect(done.returncode == status, f"--compare {arguments}: {done.returncode}, not {status}: {done.stderr}")
    expect(run("--compare", a, b, "--worse-than", 1.5).stdout.count("  worse\n") == 1, "one line is worse")
    fewer = write(directory / "fewer.json", {**report, "rows": report["rows"][1:]})
    expect(" 1 in A alone, 0 in B alone" in run("--compare", a, fewer).stdout, "a case that is missing")
    for name, text in (("none.json", None), ("half.json", a.read_text()[:-20]), ("other.json", "{}"), ("deep.json", "[" * 100000),
                       ("row.json", json.dumps({**report, "rows": [[1, 2]]}))):
        path = directory / name
        if text is not None:
            path.write_text(text)
        done = run("--compare", a, path)
        expect(done.returncode == 2 and name in done.stderr, f"{name}: {done.returncode}: {done.stderr}")
    expect(run("--compare", a).returncode == 2, "one report alone")
    expect(run("--report", directory / "r", "--seconds-total", "soon").returncode == 2, "a time that is none")
    expect("below 1000000" in run("--report", directory / "r", "--seconds-total", "1e9").stderr, "a time of years")
    done = run("--report", "--quick")
    expect(done.returncode == 2 and "--report" in done.stderr, f"an option for a directory: {done.returncode}: {done.stderr}")


def test_scan():
    """Drawn cases are accepted, whatever their layout, and the same numbers give the same cases."""
    scan = ["--scan", 3, 150, "--quick", "--seconds", 0.0005]
    done = run(*scan)
    expect(done.returncode == 0 and "150 cases of" in done.stdout and " 0 refused" in done.stdout, f"--scan: {done.stdout}{done.stderr}")
    lines = [line.split() for line in done.stdout.splitlines() if "/f32/" in line or "/f16/" in line or "/bf16/" in line]
    expect(len(lines) > 10, f"{len(lines)} lines of cases")
    expect(any("=" in field or "+" in field for line in lines for field in line[7:]), "no case has a layout")
    for line in lines[:2]:
        again = run(*scan, "--only", line[1]).stdout
        expect(" ".join(line[6:]) in " ".join(again.split()) and "1 cases of" in again, f"--only {line[1]}: {again}")
    for wrong in (["--scan", 1], ["--scan", 0, 5], ["--scan", 1, "some"], ["--scan", 1, 5, "--only", -1], ["--only", 1]):
        expect(run(*wrong).returncode == 2, f"{wrong} is accepted")


def test_no_directory(directory):
    (directory / "file").write_text("")
    for place in (directory / "file", directory / "file/r", directory / "nowhere/r"):
        begun = time.monotonic()
        done = run("--report", place, "--seconds-total", 20, *FILTER)
        expect(done.returncode == 1 and str(place) in done.stderr, f"--report {place.name}: {done.returncode}: {done.stderr}")
        expect(time.monotonic() - begun < 10 and "left" not in done.stderr, "said after measuring")


def test_interrupted(directory):
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen([bench, "--report", directory / "i", "--seconds-total", "60"], stderr=subprocess.PIPE, text=True) as process:
            while "quick_rivals" in process.stderr.readline():  # what a build for tests says first
                pass  # and then it has begun
            time.sleep(0.3)
            process.send_signal(number)
            said = process.stderr.read()
        expect("100 %" not in said, f"interrupted and done: {said}")
        expect(process.returncode == 130 and "nothing is written" in said, f"interrupted: {process.returncode}: {said}")
        expect(not (directory / "i").exists() or not list((directory / "i").iterdir()), "and left files")


with tempfile.TemporaryDirectory() as place:
    test_compare(pathlib.Path(place), test_report(pathlib.Path(place)))
    test_scan()
    test_no_directory(pathlib.Path(place))
    test_interrupted(pathlib.Path(place))
print("nrg-bench --report, --compare and --scan:", f"{failed} wrong" if failed else "as described")
sys.exit(failed != 0)
