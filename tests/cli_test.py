#!/usr/bin/python3
"""The nrg command from outside: usage: cli_test.py [--this-program-only [--without=TEST,...]] PATH-TO-nrg

--this-program-only: not those tests that link the objects beside it again, with kernels that go wrong (tests/faulty.c).

Needs NumPy, and a C compiler ($CC or cc) for two small helpers: one lets the system calls that put files in place fail, the
other lets kernels go wrong, which nrg check has to find. SPDX-License-Identifier: MIT"""
import concurrent.futures
import multiprocessing
import os
import pathlib
import pty
import re
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zlib

import numpy as np

ONLY = "--this-program-only" in sys.argv[1:2]
WITHOUT = sys.argv[2].removeprefix("--without=").split(",") if ONLY and sys.argv[2].startswith("--without=") else []
NRG = os.path.abspath(sys.argv[-1]) if len(sys.argv) == 2 + ONLY + bool(WITHOUT) else sys.exit(__doc__.splitlines()[0])
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CC = os.environ.get("CC", "cc").split()
SANITIZER = "detect_stack_use_after_return=0:strict_string_checks=1:verify_asan_link_order=0"
random = np.random.default_rng(1)  # outcome() gives every test its own
tests = []


def test(function):
    tests.append(function)
    return function


def test_of_a_faulty_library(function):
    return function if ONLY else test(function)


PROGRESS = re.compile(r"^nrg [a-z0-9 -]+: .*, \d+ s\n", re.M)


class Run:
    """A run of the command in the current directory: its status, what it wrote to stdout, as bytes too, and to stderr."""

    def __init__(self, *arguments, env=None, before=None, program=NRG, timeout=900, **more):
        # a preloaded helper has to come before a sanitizer's own library
        full = {**os.environ, "ASAN_OPTIONS": SANITIZER, **(env or {})}
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        done = subprocess.run([program, *map(str, arguments)], env=full, preexec_fn=before, timeout=timeout, **more)
        self.status, self.bytes = done.returncode, done.stdout or b""
        # of a command that takes more than ten seconds, as some do on a busy machine, this is no complaint
        self.out, self.err = self.bytes.decode(errors="replace"), PROGRESS.sub("", (done.stderr or b"").decode(errors="replace"))

    def __str__(self):
        return f"status {self.status}, stderr {self.err!r}, stdout {self.out[:9999]!r}"


def files():
    """Every file here and below, with its content."""
    found = {}
    for directory, _, names in os.walk("."):
        for name in names:
            path = os.path.join(directory, name)
            found[path] = os.readlink(path) if os.path.islink(path) else open(path, "rb").read()
    return found


def one_line(run):
    assert run.err.count("\n") == 1 and run.err.endswith("\n") and run.err.startswith("nrg"), str(run)


def refused(*arguments, status=2, says="", **more):
    """The run fails as it should: one line on stderr, and every file is what it was."""
    before = files()
    # what a refusal leaves to exit is no leak, and the search for leaks is a third of its time under AddressSanitizer
    more["env"] = {"ASAN_OPTIONS": SANITIZER + ":detect_leaks=0", **more.get("env", {})}
    run = Run(*arguments, **more)
    assert run.status == status and not run.out, str(run)
    one_line(run)
    assert says in run.err, f"{says!r} is not in {run.err!r}"
    assert files() == before, f"files changed: {sorted(files())} were {sorted(before)}"
    return run


def succeeds(*arguments, **more):
    run = Run(*arguments, **more)
    assert run.status == 0 and not run.out and not run.err, str(run)
    assert not [name for name in os.listdir(".") if name.startswith(".nrg")], "temporary files are left"


def norm(*arguments, **more):
    succeeds("norm", *arguments, **more)


def options(*names):
    return tuple(part for name in names for part in ("--" + name.replace("_", "-"), f"{name}.npy"))


def with_old(*names):
    """Options for outputs, in whose place there are files."""
    for name in names:
        open(f"{name}.npy", "w").write("old " + name)
    return options(*names)


def draw(*shape, dtype="f4"):
    return random.standard_normal(shape).astype(dtype)


def save(**arrays):
    for name, array in arrays.items():
        np.save(name + ".npy", array)


GRADIENTS = ("dx", "dy", "dz", "dw", "db")


# ---- what is read and written ------------------------------------------------------------------------------------------------


@test
def headers_of_every_version_and_style():
    x = draw(3, 16)
    save(x=x)
    norm("x.npy", "--o", "want.npy")
    want = np.load("want.npy")
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 16), }"
    styles = {(1, text): 10, (2, text): 12, (3, text): 12, (1, '{"shape":(3,16,),"fortran_order":False,"descr":"<f4"}\n\n'): 10,
              (1, " { 'shape' : ( 3L , 16L ) , 'descr' : '<f4' , 'fortran_order' : False } "): 10, (2, text + " " * 9000): 12}
    for (version, header) in styles:
        write_npy("v.npy", header, x.tobytes(), version)
        norm("v.npy", "--o", "o.npy")
        assert np.load("o.npy").tobytes() == want.tobytes()


@test
def written_headers_are_numpys_own():
    for shape in ((16,), (3, 16), (2, 3, 4, 5, 6), (1,) * 31 + (4,)):
        x = draw(*shape)
        save(x=x)
        norm("x.npy", "--o", "o.npy")
        o, same = open("o.npy", "rb").read(), np.load("o.npy")
        np.save("same.npy", same)
        size = 10 + int.from_bytes(o[8:10], "little")
        assert o[:8] == b"\x93NUMPY\x01\x00" and size % 64 == 0 and o[size - 1:size] == b"\n", o[:size]
        assert eval(o[10:size]) == eval(open("same.npy", "rb").read()[10:size]), o[10:size]


@test
def a_replaced_file_keeps_its_mode_and_a_link_its_target():
    save(x=draw(4, 32))
    os.mkdir("elsewhere")
    open("elsewhere/o.npy", "w").write("old")
    os.chmod("elsewhere/o.npy", 0o640)
    os.symlink("elsewhere/o.npy", "link.npy")
    norm("x.npy", "--o", "link.npy")
    assert os.path.islink("link.npy") and np.load("elsewhere/o.npy").shape == (4, 32)
    assert os.stat("elsewhere/o.npy").st_mode & 0o777 == 0o640
    assert os.listdir("elsewhere") == ["o.npy"]
    os.umask(0o027)
    norm("x.npy", "--o", "new.npy")
    assert os.stat("new.npy").st_mode & 0o777 == 0o640


CHANNEL_GRADIENTS = ("dx", "dy", "dw", "db")
RUNNING = ("--running-mean", "running_mean.npy", "--running-var", "running_var.npy")
UPDATED = ("running_mean_out", "running_var_out")


# ---- refusals ------------------------------------------------------------------------------------------------------------------


def write_npy(name, header, data=b"", version=1, length=None, minor=0):
    raw = header if isinstance(header, bytes) else header.encode()
    length = len(raw) if length is None else length
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY" + bytes([version, minor]) + length.to_bytes(2 if version == 1 else 4, "little") + raw + data)


def with_old_outputs():
    save(x=draw(3, 16))
    return with_old("o", "r", "mean", "rstd")


@test
def refuses_what_is_no_npy_file():
    outputs = with_old_outputs()
    good = read("x.npy")
    os.mkdir("directory")
    for says, *contents in (("not a .npy", b"", b"hello, this is no array", good[:7], b"PK\3\4" + good[4:]),
                            ("too long", good + b"\0", 2 * good), ("got 9.0", good[:6] + b"\x09\0" + good[8:]),
                            ("got 1.1", good[:6] + b"\1\1" + good[8:])):
        for content in contents:
            open("bad", "wb").write(content)
            refused("norm", "bad", *outputs, says=says)
    for name, says in (("missing.npy", "missing.npy: No such file"), ("directory", "not a regular file"),
                       ("/dev/zero", "not a regular file"), ("", "No such file"), ("new\nline", "new?line")):
        refused("norm", name, *outputs, says=says)
    for length in range(len(good)):
        open("cut.npy", "wb").write(good[:length])
        refused("norm", "cut.npy", "--o", "o.npy", says="cut.npy: ")
    # which is not waited for
    os.mkfifo("pipe")
    run = Run("norm", "pipe", "--o", "new.npy")
    one_line(run)
    assert run.status == 2 and not os.path.exists("new.npy"), str(run)


@test
def refuses_hostile_headers():
    outputs = with_old_outputs()

    def dict_of(shape="(3, 16)", descr="'<f4'", order="False", more=""):
        return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}{more}, }}"

    def refuses(text, says, *more):
        write_npy("bad.npy", text, data, *more)
        refused("norm", "bad.npy", *outputs, says=says)

    data = bytes(3 * 16 * 4)
    write_npy("good.npy", dict_of(), data)
    norm("good.npy", "--o", "fine.npy")
    for shape in ("(3, -16)", "(3 16)", "(3, 16", "3, 16)", "(48)", "48", "[3, 16]", "(3,, 16)", "(,)", "(,3, 16)", "(3.0, 16)",
                  "(0x3, 16)", "(03, 16)", "(3_0, 16)", "(99999999999999999999999, 16)", "(18446744073709551616,)", "()()", "None", "(3, 16),",
                  "(" + "1, " * 65 + "48)", "(3, 'a')", ""):
        refuses(dict_of(shape=shape), "broken .npy header")
    for shape in ("(18446744073709551615, 16)", "(4294967296, 4294967296)", "(4611686018427387904, 4)", "(4611686018427387904,)",
                  "(2305843009213693952, 8, 3)", "(2305843009213693952, 0, 16)"):
        refuses(dict_of(shape=shape), "does not fit in memory")
    for shape in ("(1000000000000, 16)", "(3, 17)", "(3, 15)", "(2305843009213693951,)", "(0, 16)", "()"):
        refuses(dict_of(shape=shape), "bytes of data")
    for text in ("", "{", "{}", "}", "{'descr': '<f4'}", dict_of()[:-1], dict_of() + "x", dict_of() + dict_of(), dict_of(more=", 'x': 1"),
                 dict_of(more=", 'shape': (3, 16)"), dict_of(order="Maybe"), dict_of(order="0"), dict_of(descr="<f4"),
                 dict_of(descr="'<f4"), dict_of(descr="'<f\\x34'"), dict_of().replace(":", " "), dict_of().replace(", 'shape'", " 'shape'"),
                 "\0" * 64, b"\xff" * 64, "(" * 60000, "{'" + "a" * 60000):
        refuses(text, "broken .npy header")
    for length, version in ((65535, 1), (0xffffffff, 2), (0x7fffffff, 3), (10**6, 2)):
        refuses(dict_of(), "truncated", version, length)
    refuses(dict_of() + " " * 70000, "70", 2)


@test
def refuses_other_dtypes_and_orders():
    outputs = with_old_outputs()
    x = draw(3, 16)
    for dtype, says in ((">f4", "'>f4' (big-endian); convert"), (">f2", "'>f2' (big-endian); convert"),
                        ("<f8", "bad.npy: expected dtype '<f4' or '<f2', got '<f8'; convert"), ("<i4", "'<i4'; convert"),
                        ("?", "convert"), ("<c8", "convert"), ("U3", "convert"), ("V2", "convert"), ("u1", "convert")):
        np.save("bad.npy", (x * 10).astype(dtype) if dtype != "V2" else np.zeros((3, 16), "V2"))
        refused("norm", "bad.npy", *outputs, says=says)
    np.save("bad.npy", np.zeros(4, [("a", "<f4"), ("b", "<f4")]))
    refused("norm", "bad.npy", *outputs, says="bad.npy: expected dtype '<f4' or '<f2', got a structured array")
    np.save("bad.npy", np.array([None]), allow_pickle=True)
    refused("norm", "bad.npy", *outputs, says="convert")
    np.save("bad.npy", np.asfortranarray(x))
    refused("norm", "bad.npy", *outputs, says="bad.npy: expected C order, got Fortran order; convert")
    write_npy("bad.npy", "{'descr': '\r\x1b[2J', 'fortran_order': False, 'shape': (3, 16), }")
    refused("norm", "bad.npy", *outputs, says="'??[2J'")


@test
def refuses_outputs_that_cannot_be():
    save(x=draw(3, 16))
    open("old.npy", "w").write("old")
    os.link("x.npy", "hard.npy")
    os.symlink("old.npy", "link.npy")
    os.symlink("nowhere.npy", "dangling.npy")
    os.mkdir("directory")
    open("directory/old.npy", "w").write("old")
    for first, second in (("a.npy", "a.npy"), ("a.npy", "./a.npy"), ("old.npy", "link.npy"), ("a.npy", "directory/../a.npy")):
        refused("norm", "x.npy", "--o", first, "--mean", second, says="two outputs")
    for name, says in (("directory", "not a regular file"), ("/dev/null", "not a regular file"), ("/dev/full", "not a regular file"),
                       ("nosuch/o.npy", "No such file"), ("x.npy/o.npy", "Not a directory"), ("dangling.npy", "link to nowhere"),
                       ("nosuch/", "no such directory"), ("/dev/stdout", "a file named - is standard output"), ("", "expected a name, got ''")):
        status = 1 if name else 2  # what cannot be written is a failure, and no name is a wrong argument
        refused("norm", "x.npy", "--o", name, status=status, says=says)
        refused("norm", "x.npy", "--o", "old.npy", "--rstd", name, status=status, says=says)
    assert not os.path.isfile("/dev/null")


@test
def refuses_files_one_may_not_touch():
    save(x=draw(3, 16))
    os.chmod(".", 0o755)
    user = 65534 if os.geteuid() == 0 else None

    def as_user():
        if user:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

    os.mkdir("closed")
    open("closed/o.npy", "w").write("old")
    open("readonly.npy", "w").write("old")
    os.chmod("readonly.npy", 0o444)
    os.chmod("closed", 0o555)
    for name in ("readonly.npy", "closed/new.npy"):
        refused("norm", "x.npy", "--o", name, status=1, says="Permission denied", before=as_user)
    if user:
        os.mkdir("sticky")
        os.chmod("sticky", 0o1777)
        open("sticky/o.npy", "w").write("old")
        os.chmod("sticky/o.npy", 0o666)
        refused("norm", "x.npy", "--o", "sticky/o.npy", status=1, says="sticky", before=as_user)
        refused("norm", "x.npy", "--o", "sticky/new.npy", "--r", "sticky/o.npy", status=1, says="sticky", before=as_user)


@test
def refuses_what_no_recorded_case_can_hold():
    """Types that cases do not have, and what depends on the machine."""
    outputs = with_old_outputs()
    other = "neon" if os.uname().machine == "x86_64" else "avx2"
    refused("norm", "x.npy", "--isa", other, *outputs, says="--isa: expected a path of this build, got")
    refused("norm", "x.npy", "--" + "e" * 1000, *outputs, says="unknown option")
    save(x=draw(6, 2, 8), p=np.arange(6))
    for dtype, says in (("f4", "bad.npy: expected dtype '<i4' or '<i8', got '<f4'; convert"), ("u4", "got '<u4'; convert"), (">i4", "(big-endian); convert"), ("i2", "got '<i2'; convert")):
        np.save("bad.npy", np.zeros(6, dtype))
        refused("rope", "x.npy", "--positions", "bad.npy", "--o", "o.npy", says=says)
    open("cut.npy", "wb").write(open("p.npy", "rb").read()[:-1])
    refused("rope", "x.npy", "--positions", "cut.npy", "--o", "o.npy", says="truncated: expected 48 bytes of data for shape (6,), got ")


# ---- outputs that fail while they are written --------------------------------------------------------------------------------

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* FAIL="rename 2": the second rename fails. FAIL="term 1": the first fsync finds a SIGTERM waiting. FAIL="slow 1": it takes seconds. */
static int fails(const char *what)
{
    static int calls[128];
    const char *fail = getenv("FAIL"), *space = fail ? strchr(fail, ' ') : NULL;
    return space && strlen(what) == (size_t)(space - fail) && !strncmp(fail, what, strlen(what)) &&
           (++calls[(int)*what] == atoi(space) || atoi(space) == 0);
}

#define REAL(name, ...) ((int (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))
#define FAIL(call, error) \
    if (fails(call)) \
        return errno = error, -1;

int rename(const char *from, const char *to)
{
    FAIL("rename", EIO)
    return REAL(rename, const char *, const char *)(from, to);
}

int link(const char *from, const char *to)
{
    FAIL("link", EPERM)
    return REAL(link, const char *, const char *)(from, to);
}

int fsync(int fd)
{
    FAIL("fsync", EIO)
    FAIL("unsupported", EINVAL)
    for (time_t end = fails("slow") ? time(NULL) + 3 : 0; time(NULL) < end;)
        ;
    if (fails("term"))
        kill(getpid(), SIGTERM);
    return REAL(fsync, int)(fd);
}
"""


def shim(fail):
    library = os.path.join(SCRATCH, f"shim-{os.getpid()}.so")
    if not os.path.exists(library):
        subprocess.run([*CC, "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-ldl"], input=SHIM, text=True, check=True)
    return {"LD_PRELOAD": library, "FAIL": fail}


def file_size(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@test
def a_full_disk_leaves_nothing():
    outputs = with_old_outputs()
    save(x=draw(64, 1024, dtype="f2"))
    # o alone fits: r, in f32, does not
    for size in (0, 64, 1000, 100000, 200000):
        for names in (outputs, ("--o", "new.npy", "--r", "r.npy")):
            refused("norm", "x.npy", *names, "--r-dtype", "f32", status=1, says="cannot write", before=file_size(size))
    norm("x.npy", *outputs, "--r-dtype", "f32", before=file_size(300000))


@test
def outputs_that_cannot_be_written_leave_nothing():
    save(x=draw(4, 6, 5), do=draw(4, 6, 5), z=draw(4, 6, 5), running_mean=draw(6), running_var=draw(6)**2)
    train = ("channel-norm", "x.npy", *RUNNING, "--train")
    lines = ((("norm", "x.npy", *with_old("o", "r", "mean", "rstd")), 4),
             # nothing stands where o, mean and rstd go
             (("norm", "x.npy", "--o", "a.npy", "--r", "r.npy", "--mean", "b.npy", "--rstd", "c.npy"), 4),
             (("norm", "--backward", "x.npy", "--do", "do.npy", "--z", "z.npy", "--gate", "post", *with_old(*GRADIENTS)), 5),
             ((*train, *with_old("o", "mean", "rstd", *UPDATED)), 5),
             (("channel-norm", "--backward", "x.npy", "--do", "do.npy", *with_old(*CHANNEL_GRADIENTS)), 4),
             ((*train, "--o", "x.npy", "--running-mean-out", "running_mean.npy", "--running-var-out", "running_var.npy"), 3))
    for line, written in lines:
        for n in range(1, written + 1):
            for call in ("fsync", "rename"):
                refused(*line, status=1, says="Input/output error", env=shim(f"{call} {n}"))
        for n in (1, written):
            refused(*line, status=-signal.SIGTERM, says="Interrupted", env=shim(f"term {n}"))
        for size in (0, 100):
            refused(*line, status=1, says="cannot write", before=file_size(size))
    norm("x.npy", "--o", "n.npy", env=shim("unsupported 0"))
    # file systems without links
    norm("x.npy", *with_old("o", "r", "mean", "rstd"), env=shim("link 0"))
    assert read("r.npy") == read("x.npy") and read("o.npy") == read("n.npy") and np.load("rstd.npy").shape == (4, 6)
    for line, _ in lines:
        succeeds(*line)


# ---- standard input and output ---------------------------------------------------------------------------------------------------


def read(name):
    return open(name, "rb").read()


@test
def standard_input_and_output_stand_for_files():
    save(x=draw(3, 32), y=draw(3, 32), s=draw(2, 3, 3), t=draw(5, 2, 8), c=draw(2, 4, 3), table=draw(9, 8), k=draw(3, 2, 8),
         ids=np.arange(3), wide=np.arange(5) + 7)
    for input, *arguments in (("x", "norm", "-"), ("y", "norm", "x.npy", "--y", "-"), ("x", "sandwich", "-", "--y", "y.npy"),
                              ("c", "channel-norm", "-", "--over", "group", "--groups", "2"), ("x", "glu", "--rows", "halves", "-"), ("x", "glu", "y.npy", "--b", "-"),
                              ("s", "softmax", "-", "--causal"), ("t", "rope", "-", "--n-dims", "8"),
                              ("wide", "rope", "t.npy", "--positions", "-", "--n-dims", "8"), ("s", "position", "alibi", "-"),
                              ("ids", "position", "embedding", "--table", "table.npy", "--ids", "-")):
        files_alone = [input + ".npy" if word == "-" else word for word in arguments]
        run = Run(*files_alone, "--o", "o.npy")
        assert run.status == 0 and not run.out and not run.err, f"{files_alone}: {run}"
        for stdin in ({"input": read(input + ".npy")}, {"stdin": open(input + ".npy", "rb")}):
            run = Run(*arguments, "--o", "-", **stdin)
            assert run.status == 0 and not run.err and run.bytes == read("o.npy"), f"{arguments}: {run}"
    norm("x.npy", "--format", "q8_0", "--packed", "q.npy")
    normed = Run("norm", "x.npy", "--o", "-").bytes
    assert Run("quantize", "--format", "q8_0", "-", "--packed", "-", input=normed).bytes == read("q.npy")
    assert Run("dequantize", "--format", "q8_0", "q.npy", "--o", "o.npy").status == 0
    assert Run("dequantize", "--format", "q8_0", "-", "--o", "-", input=read("q.npy")).bytes == read("o.npy")
    assert sorted(os.listdir(".")) == sorted(["o.npy", "q.npy"] + [n + ".npy" for n in "x y s t c table k ids wide".split()])
    # "-" elsewhere is a part of a name
    norm("x.npy", "--o", "./-")
    norm("./-", "--o", "o.npy")


@test
def standard_input_of_every_length():
    """Memory grows from a megabyte on."""
    for count in (0, 1, 2**18 - 1, 2**18, 2**18 + 1, 3 * 2**18 + 5):
        save(x=draw(count, 1))
        norm("x.npy", "--layer", "--o", "o.npy")
        run = Run("norm", "--layer", "-", "--o", "-", input=read("x.npy"))
        assert run.status == 0 and not run.err and run.bytes == read("o.npy"), f"{count}: {run}"


@test
def refuses_wrong_standard_input():
    save(x=draw(300, 1000))
    good = read("x.npy")
    for given, says in ((b"", "standard input: not a .npy file"), (b"hello, this is no array", "standard input: not a .npy file"),
                        (good[:7], "not a .npy file"), (good[:9], "truncated"), (good[:100], "truncated"), (good[:-1], "truncated: expected 1200000 bytes of data for shape (300, 1000)"),
                        (good[:128], ", got 0\n"), (good + b"\0", "too long: expected 1200000 bytes of data for shape (300, 1000), got at least 1200001"), (good + good, "too long"),
                        (good.replace(b"(300, 1000)", b"(40000000,)"), "truncated: expected 160000000 bytes of data for shape (40000000,), got 1200000\n"),
                        (good.replace(b"(300, 1000)", b"(9999999,9)"), "expected 359999964 bytes of data for shape (9999999, 9)"),
                        (good.replace(b"<f4", b"<f8"), "standard input: expected dtype '<f4' or '<f2', got '<f8'; convert")):
        refused("norm", "-", "--o", "o.npy", says=says, input=given)
    refused("norm", "/dev/stdin", "--o", "o.npy", says="a file named - is standard input")
    save(y=draw(3, 4))
    for name, beside, says in (("-", "x.npy", "standard input: expected shape (300, 1000) to match x.npy, got (3, 4)"),
                               ("y.npy", "-", "y.npy: expected shape (300, 1000) to match standard input, got (3, 4)")):
        refused("norm", beside, "--y", name, "--o", "o.npy", says=says, input=read("y.npy") if name == "-" else good)


@test
def standard_input_and_output_are_for_one_file_each():
    save(x=draw(3, 8))
    for arguments, says in ((("-", "--y", "-", "--o", "o.npy"), "standard input: given for two inputs"),
                            (("x.npy", "--o", "-", "--mean", "-"), "standard output: given for two outputs")):
        refused("norm", *arguments, says=says, input=read("x.npy"))
    norm("x.npy", "--layer", "--o", "o.npy", "--mean", "m.npy", "--rstd", "s.npy")
    for which, others in (("o", "ms"), ("m", "os"), ("s", "om")):
        outputs = [part for name, option in zip("oms", ("--o", "--mean", "--rstd")) for part in (option, "-" if name == which else name + "2.npy")]
        run = Run("norm", "x.npy", "--layer", *outputs)
        assert run.status == 0 and not run.err and run.bytes == read(which + ".npy"), str(run)
        assert all(read(name + "2.npy") == read(name + ".npy") for name in others)


def closed(*numbers):
    return lambda: [os.close(number) for number in numbers]


def without_a_reader(*arguments):
    reader, writer = os.pipe()
    os.close(reader)
    run = Run(*arguments, stdout=writer)
    os.close(writer)
    return run


@test
def standard_output_that_cannot_be_written_is_a_failure():
    outputs = with_old_outputs()
    old = files()
    with open("/dev/full", "w") as full:
        runs = [("No space left on device", Run("norm", "x.npy", "--o", "-", *more, stdout=full)) for more in ((), outputs[2:])]
    runs += [("Broken pipe", without_a_reader("norm", "x.npy", "--o", "-", *more)) for more in ((), outputs[2:])]
    runs.append(("Bad file descriptor", Run("norm", "x.npy", "--o", "-", *outputs[2:], before=closed(1))))
    for says, run in runs:
        one_line(run)
        assert run.status == 1 and "nrg norm: standard output: cannot write: " + says in run.err and files() == old, f"{says}: {run}"
    for arguments in (("info",), ("--help",), ("norm", "--help"), ("position", "t5", "--list"), ("check", "--quick", "--hash", "--op", "rope")):
        for run in (without_a_reader(*arguments), Run(*arguments, before=closed(1))):
            one_line(run)
            assert run.status == 1 and "cannot write to standard output" in run.err, f"{arguments}: {run}"


@test
def closed_streams_are_nothing_to_a_command_that_needs_none():
    save(x=draw(3, 8))
    norm("x.npy", "--o", "want.npy")
    for numbers in ((0,), (1,), (2,), (0, 1, 2)):
        run = Run("norm", "x.npy", "--o", "o.npy", before=closed(*numbers))
        assert run.status == 0 and not run.out and not run.err and read("o.npy") == read("want.npy"), f"{numbers}: {run}"
        os.remove("o.npy")
    # a complaint goes nowhere, and not into the file that is open at that time
    run = Run("norm", "x.npy", "--o", "o.npy", "--mean", "m.npy", before=lambda: (closed(2)(), file_size(140)()))
    assert run.status == 1 and sorted(os.listdir(".")) == ["want.npy", "x.npy"], str(run)
    refused("norm", "-", "--o", "o.npy", says="standard input: Bad file descriptor", before=closed(0))


# ---- info, check, help ----------------------------------------------------------------------------------------------------------


@test
def info_lists_features_paths_and_families():
    run = Run("info", env={"NRG_ISA": ""})
    assert run.status == 0 and not run.err, str(run)
    for feature in ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "neon"):
        assert re.search(rf"^  {feature} +(yes|no)$", run.out, re.M), feature
    for path in ("scalar", "avx2", "avx512", "neon", "generic"):
        assert re.search(rf"^  {path} +(yes|no) +(yes|no)$", run.out, re.M), path
    for family in ("norm", "activation", "channel_norm", "rope", "recurrent", "embed", "relative", "score_bias", "backward"):
        assert re.search(rf"^  {family} +yes$", run.out, re.M), family
    assert re.search(r"^nrg \d+\.\d+\.\d+, version \d+ of the numbers$", run.out, re.M) and re.search(r"^  scalar +yes +yes$", run.out, re.M)
    active = re.search(r"^Active path (\w+): the best", run.out, re.M)
    assert active and re.search(rf"^  {active[1]} +yes +yes$", run.out, re.M), run.out


@test
def info_obeys_the_environment():
    assert "Active path scalar: selected by NRG_ISA\n" in Run("info", env={"NRG_ISA": "scalar"}).out
    assert re.search(r"Active path \w+: .*NRG_ISA.*ignored", Run("info", env={"NRG_ISA": "mmx"}).out)


@test
def check_passes_here():
    run = Run("check", "--quick")
    assert run.status == 0 and not run.err, str(run)
    supported = re.findall(r"^  (\w+) +yes +yes$", Run("info").out, re.M)
    for path in ("scalar", "avx2", "avx512", "neon", "generic"):
        word = "pass" if path in supported else "SKIP"
        assert re.search(rf"^{path} +{word}: ", run.out, re.M), run.out
    assert run.out.endswith(f"{len(supported)} passed, 0 failed, {5 - len(supported)} skipped\n"), run.out
    if supported == ["scalar"]: # a build without the others
        assert "nothing to compare it with" in run.out, run.out
    # every line of the list of kernels has been run
    assert len(OPS) >= 22
    for op in OPS:
        assert re.search(rf"^  {op} .*\bf32 [1-9].*\bf16 [1-9].*\bbf16 [1-9]", run.out, re.M), f"{op}: {run.out}"
    run = Run("check", "--quick", "--isa", "scalar", "--op", "rope")
    assert run.status == 0 and run.out.endswith("1 passed, 0 failed, 4 skipped\n"), str(run)
    assert re.findall(r"^  (\w+) ", run.out, re.M) == ["rope"], run.out


KERNELS = re.findall(r"^NRG_(KERNEL|SUBKERNEL)\(\w+, (\w+), \w+\)", open(os.path.join(ROOT, "src", "kernels.def")).read(), re.M)
OPS = [op for word, op in KERNELS if word == "KERNEL"]
DTYPES = ("f32", "f16", "bf16")


def link_faulty(program, *more):
    """The command of this build, whose objects lie beside it, with tests/faulty.c."""
    build = pathlib.Path(NRG).parent.parent
    paths = re.findall(r"^  (\w+) +yes +(?:yes|no)$", Run("info").out, re.M)
    kernels = (f"nrg_{path}_{op}_{dtype}" for path in paths for _, op in KERNELS for dtype in DTYPES)
    archives = [str(path) for folder in ("tools", "check", "src") for path in (build / folder).glob("*.a")]
    sources = [f"-I{ROOT}/include", f"-I{build}/check", f"{ROOT}/tests/faulty.c", *more, build / "tools/nrg.p/main.c.o"]
    wraps = [f"-Wl,--wrap={name}" for name in ("sweep_run", "nrg_isa_supported", *kernels)]
    linked = [*wraps, "-Wl,--start-group", *archives, "-Wl,--end-group", "-lm"]
    return subprocess.run([*CC, "-std=gnu11", "-O2", *sources, *linked, "-o", program], text=True, stderr=subprocess.PIPE)


def faulty(fault, op=None, program=None):
    """A path's run with a fault, and the counts that tests/faulty.c prints."""
    path = re.search(r"^Active path (\w+)", Run("info").out, re.M)[1]
    line = ("check", "--quick", "--isa", path, *(("--op", op) if op else ()))
    run = Run(*line, program=program or os.path.join(SCRATCH, "faulty"), env={"FAULT": fault})
    run.counts = dict((name, int(count)) for name, count in re.findall(r"^(\w+): (\d+)$", run.err, re.M))
    outputs = re.findall(r"^output: (\d+) (\d) (.*)$", run.err, re.M)
    run.outputs = [(int(wrong), int(added), name) for wrong, added, name in outputs]
    run.kernels = re.findall(r"^kernel: (\w+)$", run.err, re.M)
    run.err = re.sub(r"^(?!nrg).*\n", "", run.err, flags=re.M)
    return run


def of_every_op(function):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, OPS))


@test_of_a_faulty_library
def check_finds_what_is_wrong_in_a_path():
    """A wrong bit or sign in an output, an input or a byte beside an output that is written, a share that is left out, and sums
    that forget what they are added to: in every output of every op, by every kernel. And an output that no path writes."""
    runs = of_every_op(lambda op: faulty("wrong", op))
    for op, run in zip(OPS, runs):
        found = re.search(r"FAIL: (\d+) of \d+ cases differ from scalar;.*\n.*(scalar has 0x|a byte of no operand)", run.out)
        assert run.status == 1 and run.out.endswith("0 passed, 1 failed, 4 skipped\n"), f"{op}: {run}"
        # more where what was put right has done harm before
        kinds = ("bit", "input", "beside", "skips")
        assert all(run.counts[kind] for kind in kinds), f"{op}: {run.counts}"
        assert found and int(found[1]) >= sum(run.counts[kind] for kind in (*kinds, "sign", "forgets")), f"{op}: {run}"
        assert run.outputs and all(wrong for wrong, _, _ in run.outputs), f"{op}: {run.outputs}"
        if any(added for _, added, _ in run.outputs):
            assert run.counts["forgets"] or faulty("forgets", op).counts["forgets"], f"{op} adds to nothing"
        # of a cache there is more than what is written
        for name in [name for _, _, name in run.outputs if op != "qkv" or name == "q_o"]:
            left = faulty(f"leaves {name}", op)
            one_line(left)
            assert left.status == 1 and f"scalar leaves {name} unwritten" in left.err, f"{op} {name}: {left}"
    assert sum(run.counts["sign"] for run in runs) > 200 and runs[OPS.index("activation")].counts["values"] == 1
    assert {name for run in runs for name in run.kernels} >= {f"{op}_{dtype}" for op in OPS for dtype in DTYPES}


@test_of_a_faulty_library
def check_lets_any_nan_equal_any_nan_and_scratch_be_anything():
    runs = of_every_op(lambda op: faulty("harmless", op))
    for op, run in zip(OPS, runs):
        assert run.status == 0 and run.out.endswith("1 passed, 0 failed, 4 skipped\n"), f"{op}: {run}"
    assert all(sum(run.counts[kind] for run in runs) > 500 for kind in ("nan", "scratch"))


@test_of_a_faulty_library
def check_reports_a_path_that_dies_refuses_or_is_alone():
    run = faulty("dies")
    assert run.status == -signal.SIGTRAP or (run.status == -signal.SIGILL and " path died in case" in run.err), str(run)
    headers = "".join(path.read_text() for path in sorted(pathlib.Path(ROOT, "include/nrg").glob("*.h")))
    shared = re.findall(r"^(?:NRG_NODISCARD )?NRG_API nrg_status (nrg_\w+)\([^;]*\bint ith,\s+int nth\)", headers, re.M)
    compiled = link_faulty("refusing", *(f"-Wl,--wrap={name},--defsym=__wrap_{name}=refuse" for name in shared))
    assert len(shared) > 40 and compiled.returncode == 0, compiled.stderr
    for op, run in zip(OPS, of_every_op(lambda op: faulty("", op, "./refusing"))):
        one_line(run)
        assert run.status == 1 and "refuses a case" in run.err and f" {op}_f32" in run.err, f"{op}: {run}"
    run = Run("check", "--quick", "--op", "rope", program=os.path.join(SCRATCH, "faulty"), env={"FAULT": "no path"})
    assert run.status == 0 and "nothing to compare it with\n" in run.out, str(run)
    assert run.out.endswith("1 passed, 0 failed, 4 skipped\n"), str(run)


@test_of_a_faulty_library
def check_cannot_leave_a_kernel_out():
    """A line more in kernels.def, or an op without cases."""
    for folder in ("check", "src", "include", "tools"):
        shutil.copytree(os.path.join(ROOT, folder), f"copy/{folder}")
    last = "NRG_KERNEL(activation, activation_backward, activation)"
    text = open("copy/src/kernels.def").read()
    assert last in text
    open("copy/src/kernels.def", "w").write(text.replace(last, f"{last}\nNRG_KERNEL(activation, scale, scale)"))
    compiled = link_faulty("more", "copy/check/sweep.c")
    assert compiled.returncode != 0 and "sweep_family_scale" in compiled.stderr, compiled.stderr
    open("none.h", "w").write('#include "copy/check/family.h"\n#undef SWEEP_LENGTHS\n#define SWEEP_LENGTHS(...) .ways = {0}\n')
    compiled = link_faulty("empty", "-include", "none.h", "copy/check/activation/activation.c")
    assert compiled.returncode == 0, compiled.stderr
    run = faulty("", "activation", "./empty")
    one_line(run)
    assert run.status == 1 and "no case runs activation_f32" in run.err, str(run)


def commands():
    """The words of each command, and of each kind of position."""
    words = lambda *of: [word for word in Run("help", "--words", *of).out.split() if not word.startswith("-") and word != "help"]
    return [[word] for word in words()] + [["position", word] for word in words("position")]


@test
def help_and_version():
    run = Run("--version")
    assert run.status == 0 and re.fullmatch(r"nrg \d+\.\d+\.\d+\n", run.out) and not run.err, str(run)
    general = Run("--help").out
    for words in commands():
        text, name = Run(*words, "--help").out, " ".join(words)
        assert f"nrg {words[0]} " in general and text.startswith(f"usage: nrg {name}") and max(map(len, text.splitlines())) <= 120
        if name not in ("info", "check", "position"):
            assert "named - is standard" in text and "exit status: 0 done; 1 an output cannot be written" in text, name


# inputs of the examples in the helps
EXAMPLES = {
    "": {}, "info": {}, "check": {}, "position": {}, "position sinusoidal": {},
    "norm": {"x": (3, 16), "y": (3, 16), "w": (16,)}, "sandwich": {"x": (3, 16), "y": (3, 16), "w1": (16,), "w2": (16,)},
    "channel-norm": {"x": (2, 64, 5), "w": (64,), "b": (64,)}, "glu": {"x": (3, 16)}, "quantize": {"x": (3, 64)}, "dequantize": {"p": "q8_0"},
    "softmax": {"scores": (2, 3, 7, 7)}, "rope": {"q": (5, 2, 8)}, "qkv": {"q": (5, 4, 8), "k": (5, 2, 8)},
    "position learned": {"x": (2, 7, 8), "table": (9, 8)}, "position embedding": {"ids": "ids", "table": (9, 8), "positions": (9, 8)},
    "position rnn": {"w": (8, 8), "b": (8,), "p0": (8,)}, "position t5": {"beta": (32, 2)}, "position alibi": {"scores": (2, 7, 7)},
    "position shaw": {"q": (2, 7, 8), "r": (5, 8)}, "position shift": {"x": (2, 7, 7)},
}


@test
def examples_in_helps_run():
    for words in ([], *commands()):
        text = Run(*words, "--help").out
        example = re.search(r"^example:.*\n((?:  .*\n)+)", text, re.M)
        assert example, f"nrg {' '.join(words)} --help has no example"
        for name, shape in EXAMPLES[" ".join(words)].items():
            save(**{name: np.arange(5) % 3 if shape == "ids" else np.zeros((3, 68), "u1") if shape == "q8_0" else draw(*shape)})
        for line in example[1].splitlines():
            program, *arguments = shlex.split(line)
            if program == "python3":
                subprocess.run([sys.executable, *arguments], check=True)
                continue
            # one op is enough: check_passes_here runs all
            run = Run(*arguments, *(("--op", "rope", "--isa", "scalar") if words == ["check"] else ()))
            assert program == "nrg" and run.status == 0 and not run.err, f"{line}: {run}"
            for name in [argument for argument in arguments if argument.endswith(".npy")]:
                np.load(name)


@test
def the_hint_converts_an_array():
    x = np.arange(12.0).reshape(3, 4)
    for array in (x, x.astype(">f4"), np.asfortranarray(x.astype("f4"))):
        np.save("x.npy", array)
        said = refused("norm", "x.npy", "--o", "o.npy", says="python3 -c").err
        subprocess.run([sys.executable, *shlex.split(said[said.index("python3 -c"):])[1:]], check=True)
        norm("new.npy", "--o", "o.npy")
        assert np.load("o.npy").dtype == np.float32 and np.array_equal(np.load("new.npy"), array), said


@test
def a_program_that_flushes_subnormals_is_told_so():
    library = os.path.join(SCRATCH, "flush.so")
    source = """#include <xmmintrin.h>
                __attribute__((constructor)) static void flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }"""
    subprocess.run([*CC, "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=source, text=True, check=True)
    says = "results and operands below 2^-126 count as 0"
    assert says not in Run("info").out and "Floating point: IEEE 754" in Run("info").out
    assert says in Run("info", env={"LD_PRELOAD": library}).out
    run = Run("check", "--quick", "--op", "rope", env={"LD_PRELOAD": library})
    assert run.out.startswith("floating point: ") and says in run.out, str(run)
    assert not Run("check", "--quick", "--op", "rope").out.startswith("floating point")


def on_a_terminal(*arguments, until, limit=60, env=None):
    """What the command writes to a terminal that stderr is, up to the text `until`, or to its end; and its status, where it ended."""
    mine, its = pty.openpty()
    run = subprocess.Popen([NRG, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=its,
                           env={**os.environ, "ASAN_OPTIONS": SANITIZER, **(env or {})})
    os.close(its)
    seen, deadline = b"", time.monotonic() + limit
    try:
        while (not until or until not in seen) and time.monotonic() < deadline:
            if select.select([mine], [], [], 1)[0]:
                seen += os.read(mine, 4096)
    except OSError: # EIO: the command has ended
        pass
    finally:
        if until:
            run.kill()
        status = run.wait(limit)
        os.close(mine)
    return seen, status


# 800 MB of frequencies and minutes of work, of which the tests see the first seconds
LONG = ("rope", "--table", "--tokens", 1, "--n-dims", 100000000, "--o", "o.npy")


@test
def long_work_shows_on_a_terminal():
    seen, _ = on_a_terminal(*LONG, until=b", 2 s")
    assert seen == b"\rnrg rope: computing, 1 s\x1b[K\rnrg rope: computing, 2 s\x1b[K", seen
    assert not os.listdir(".")
    seen, _ = on_a_terminal("check", "--full", until=b"1 s")
    assert re.fullmatch(rb"\rnrg check: comparing, \d+ %, 1 s(\x1b\[K)?", seen), seen
    seen, _ = on_a_terminal("check", "--full", "--hash", until=b"1 s")
    assert re.fullmatch(rb"\rnrg check: hashing, \d+ %, 1 s(\x1b\[K)?", seen), seen


@test
def long_work_is_wiped_from_a_terminal():
    save(x=draw(3, 8))
    seen, status = on_a_terminal("norm", "x.npy", "--o", "o.npy", until=b"", env=shim("slow 1"))
    assert status == 0 and seen.startswith(b"\rnrg norm: writing o.npy, 100 %, 1 s\x1b[K") and seen.endswith(b"s\x1b[K\r\x1b[K"), seen
    assert os.path.exists("o.npy")


@test
def short_work_leaves_a_terminal_alone():
    save(x=draw(3, 8))
    for arguments in (("norm", "x.npy", "--o", "o.npy"), ("info",), ("position", "t5", "--list")):
        assert on_a_terminal(*arguments, until=b"") == (b"", 0), arguments


@test
def long_work_has_a_line_in_a_log_after_ten_seconds():
    begin = time.monotonic()
    run = subprocess.Popen([NRG, *map(str, LONG)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    line = run.stderr.readline()
    run.kill()
    assert line == b"nrg rope: computing, 10 s\n", line
    assert time.monotonic() - begin > 9
    run.communicate()


@test
def a_report_nobody_receives_is_a_failure():
    with open("/dev/full", "w") as full:
        helps = ([*words, "--help"] for words in commands())
        for arguments in (["info"], ["--help"], ["--version"], ["check", "--quick", "--isa", "scalar", "--op", "rope"], *helps):
            run = Run(*arguments, stdout=full)
            one_line(run)
            assert run.status == 1 and "standard output" in run.err, str(run)


@test
def recorded_cases_are_as_they_were():
    run = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "cli_cases.py"), NRG], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def outcome(number):
    """What went wrong in a test; runs in a process of its own."""
    global random
    function = tests[number]
    random = np.random.default_rng(zlib.crc32(function.__name__.encode()))
    os.umask(0o022)
    os.mkdir(os.path.join(SCRATCH, function.__name__))
    os.chdir(os.path.join(SCRATCH, function.__name__))
    try:
        function()
    except Exception:
        return f"FAIL {function.__name__}\n{traceback.format_exc()}"
    return ""


def main():
    global SCRATCH
    for name in WITHOUT:
        tests.remove(next(test for test in tests if test.__name__ == name))
    SCRATCH = tempfile.mkdtemp(prefix="nrg-cli-")
    os.chmod(SCRATCH, 0o755)
    if not ONLY:
        compiled = link_faulty(os.path.join(SCRATCH, "faulty"))
        if compiled.returncode:
            sys.exit(compiled.stderr)
    # the longest are the last ones: they begin
    with multiprocessing.get_context("fork").Pool() as pool:
        failures = list(filter(None, pool.imap_unordered(outcome, reversed(range(len(tests))))))
    shutil.rmtree(SCRATCH)
    print("".join(failures) + f"{len(tests) - len(failures)} passed, {len(failures)} failed")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
