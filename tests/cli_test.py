#!/usr/bin/python3
"""The nrg command from outside: usage: cli_test.py [--this-program-only [--without=TEST,...]] PATH-TO-nrg

--this-program-only: not those tests that link the objects beside it again, with kernels that go wrong (tests/faulty.c).

Needs NumPy, and a C compiler ($CC or cc) for two small helpers: one lets the system calls that put files in place fail, the
other lets kernels go wrong, which nrg check has to find. SPDX-License-Identifier: MIT"""
import concurrent.futures
import math
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


def succeeds(*arguments, **more):
    run = Run(*arguments, **more)
    assert run.status == 0 and not run.out and not run.err, str(run)
    assert not [name for name in os.listdir(".") if name.startswith(".nrg")], "temporary files are left"


def norm(*arguments, **more):
    succeeds("norm", *arguments, **more)


def options(*names):
    return tuple(part for name in names for part in ("--" + name.replace("_", "-"), f"{name}.npy"))


def done(command, *arguments, outputs=("o",), **more):
    """A run that succeeds without a word, and what it wrote."""
    succeeds(*command.split(), *arguments, *options(*outputs), **more)
    found = [np.load(f"{name}.npy") for name in outputs]
    return found[0] if len(found) == 1 else found


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


SIGMOID = lambda v: 0.5 * (1 + np.tanh(v / 2))
PHI = lambda v: 0.5 * (1 + np.vectorize(math.erf, otypes=["f8"])(v / math.sqrt(2)))
BELL = lambda v: np.exp(-v * v / 2) / math.sqrt(2 * math.pi)
INNER = lambda v: math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)
SLOPE = lambda v: math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * v**2)
# g and its derivative, of doubles
ACTIVATIONS = {
    "identity": (lambda v: v, lambda v: np.ones_like(v)),
    "sigmoid": (SIGMOID, lambda v: SIGMOID(v) * SIGMOID(-v)),
    "silu": (lambda v: v * SIGMOID(v), lambda v: SIGMOID(v) * (1 + v * SIGMOID(-v))),
    "relu": (lambda v: np.maximum(v, 0), lambda v: (v > 0) * 1.0),
    "relu2": (lambda v: np.maximum(v, 0)**2, lambda v: 2 * np.maximum(v, 0)),
    "tanh": (np.tanh, lambda v: 1 - np.tanh(v)**2),
    "gelu": (lambda v: v * PHI(v), lambda v: PHI(v) + v * BELL(v)),
    "gelu_tanh": (lambda v: v / 2 * (1 + np.tanh(INNER(v))),
                  lambda v: (1 + np.tanh(INNER(v))) / 2 + v / 2 * (1 - np.tanh(INNER(v))**2) * SLOPE(v)),
    "softplus": (lambda v: np.logaddexp(0, v), SIGMOID),
    "gelu_quick": (lambda v: v * SIGMOID(1.702 * v), lambda v: SIGMOID(1.702 * v) * (1 + 1.702 * v * SIGMOID(-1.702 * v))),
    "hard_swish": (lambda v: v * np.clip((v + 3) / 6, 0, 1), lambda v: np.where(v <= -3, 0, np.where(v >= 3, 1, v / 3 + 0.5))),
    "hard_sigmoid": (lambda v: np.clip((v + 3) / 6, 0, 1), lambda v: (np.abs(v) < 3) / 6),
    "elu": (lambda v: np.where(v > 0, v, np.expm1(v)), lambda v: np.where(v > 0, 1, np.exp(v))),
    "leaky_relu": (lambda v: np.where(v > 0, v, 0.01 * v), lambda v: np.where(v > 0, 1, 0.01)),
    "mish": (lambda v: v * np.tanh(np.logaddexp(0, v)),
             lambda v: np.tanh(np.logaddexp(0, v)) + v * SIGMOID(v) / np.cosh(np.logaddexp(0, v))**2),
    "exp": (np.exp, np.exp),
    "expm1": (np.expm1, np.exp),
    "softsign": (lambda v: v / (1 + np.abs(v)), lambda v: 1 / (1 + np.abs(v))**2),
}


class Gated:
    """The formulas of nrg/norm.h and nrg/norm_backward.h in double precision, for all options, with the size of what is added up on
    the way: what the error of a result is measured by."""

    def __init__(self, x, y=None, z=None, w=None, b=None, r=None, centred=False, eps=1e-6, mode="mean", c=0.0, offset=0.0, gate=None,
                 act="identity", groups=1, after=False):
        f8 = lambda a: None if a is None else a.astype("f8")
        self.after, self.gate, self.centred, self.mode, self.groups = after, gate, centred, mode, groups
        self.r = f8(r) if r is not None else f8(x) + (f8(y) if y is not None and not after else 0)
        shape, dim = self.r.shape, self.r.shape[-1]
        self.split = lambda a: np.reshape(np.broadcast_to(a, shape), shape[:-1] + (groups, dim // groups))
        self.join = lambda a: np.reshape(np.broadcast_to(a, shape[:-1] + (groups, dim // groups)), shape)
        d = dim // groups
        act, slope = ACTIVATIONS[act]
        self.g, self.dg = (act(f8(z)), slope(f8(z))) if z is not None else (np.ones(shape), np.zeros(shape))
        self.p = self.split(self.r * self.g if gate == "pre" else self.r)
        self.mean = self.p.mean(-1, keepdims=True) if centred else np.zeros(self.p.shape[:-1] + (1,))
        q = self.p - self.mean
        self.sigma = np.sqrt((q * q).mean(-1, keepdims=True))
        self.eps_max = eps / np.sqrt(d)
        self.s = {"mean": np.sqrt(self.sigma**2 + eps), "sum": np.sqrt(self.sigma**2 + eps / d), "sigma": self.sigma + eps,
                  "max": np.maximum(self.sigma, self.eps_max), "none": self.sigma}[mode]
        with np.errstate(divide="ignore", invalid="ignore"):
            self.rstd = np.where(self.s > 0, 1 / self.s, 0)
        self.h = q * self.rstd
        self.k = c / np.sqrt(d) if c else 1.0
        self.factor = self.split(np.broadcast_to(self.k * (f8(w) + offset if w is not None else np.ones(dim)), shape))
        self.o1 = self.join(self.h * self.factor) + (f8(b) if b is not None else 0)
        size = self.join((np.abs(self.p) + np.abs(self.mean)) * self.rstd * np.abs(self.factor)) + (np.abs(f8(b)) if b is not None else 0)
        self.o1_size = size
        if gate == "post":
            self.o, size = self.o1 * self.g, size * (np.abs(self.g) + 0.1)
        elif gate is None and act is not ACTIVATIONS["identity"][0]:
            self.o, self.dg = act(self.o1), slope(self.o1)
            size = size * (np.abs(self.dg) + 1) + np.abs(self.o) + 0.1
        else:
            self.o, self.dg = self.o1, np.ones(shape) if gate is None else self.dg
        if after:
            self.o, size = self.o + f8(y), size + np.abs(f8(y))
        self.size = size + np.abs(self.o)

    def backward(self, do, dr_in=None):
        """Name: gradient, size of its terms."""
        do = do.astype("f8")
        do1 = do * self.g if self.gate == "post" else do * self.dg if self.gate is None else do
        found = {"dz": (do * self.o1 * self.dg, np.abs(do) * self.o1_size * np.maximum(1, np.abs(self.dg)))} if self.gate == "post" else {}
        over = tuple(range(do.ndim - 1))
        terms = np.abs(do1) + np.abs(do) * 0.1
        found["db"] = do1.sum(over), terms.sum(over)
        kh = self.join(self.k * self.h)
        found["dw"] = (do1 * kh).sum(over), (terms * (np.abs(kh) + self.join((np.abs(self.p) + np.abs(self.mean)) * self.rstd))).sum(over)
        dh = self.split(do1) * self.factor
        with np.errstate(divide="ignore", invalid="ignore"):
            a = {"sigma": np.where(self.sigma > 0, self.s / self.sigma, 0), "max": (self.sigma >= self.eps_max) * 1.0}.get(self.mode, 1.0)
        dq = (dh - self.h * a * (dh * self.h).mean(-1, keepdims=True)) * self.rstd
        size = self.split(terms) * np.abs(self.factor)
        size = (size + np.abs(self.h) * a * (size * np.abs(self.h)).mean(-1, keepdims=True)) * self.rstd
        if self.centred:
            dq, size = dq - dq.mean(-1, keepdims=True), size + size.mean(-1, keepdims=True)
        size = size * (1 + (np.abs(self.p).max(-1, keepdims=True) + np.abs(self.mean)) * self.rstd)
        dx, size = self.join(dq), self.join(size)
        if self.gate == "pre":
            found["dz"] = dx * self.r * self.dg, size * np.abs(self.r)
            dx, size = dx * self.g, size * (np.abs(self.g) + 0.1)
        if dr_in is not None:
            dx, size = dx + dr_in.astype("f8"), size + np.abs(dr_in.astype("f8"))
        found["dx"] = dx, size
        found["dy"] = (do, np.abs(do)) if self.after else (dx, size)
        return found


class Channels:
    """The formulas of nrg/channel_norm.h and nrg/channel_norm_backward.h in double precision, as Gated has those of rows. Within, an
    array is [n, c, s]."""

    def __init__(self, x, y=None, w=None, b=None, over="batch", groups=1, layout="nchw", centred=True, eps=1e-5, act="identity", running=None):
        self.nhwc, self.shape, self.centred, self.running, self.over = layout == "nhwc", x.shape, centred, running, over
        x, y = self.inside(x), self.inside(y) if y is not None else 0.0
        n, c, s = x.shape
        self.sets = (n, {"instance": c, "layer": 1}.get(over, groups))
        column = lambda a, absent: np.full((1, c, 1), absent) if a is None else a.astype("f8").reshape(1, c, 1)
        self.w, b = column(w, 1.0), column(b, 0.0)
        if running:
            self.mean, self.var = column(running[0], 0.0), column(running[1], 0.0)
        else:
            self.mean = self.average(x) if centred else np.zeros((1, 1, 1))
            self.var = self.average((x - self.mean)**2)
        with np.errstate(divide="ignore"):
            self.rstd = np.where(self.var + eps > 0, 1 / np.sqrt(self.var + eps), 0)
        self.h = (x - self.mean) * self.rstd
        self.h_size = (np.abs(x) + np.abs(self.mean)) * self.rstd
        before = self.h * self.w + b + y
        g, slope = ACTIVATIONS[act]
        self.slope = slope(before)
        size = self.h_size * np.abs(self.w) + np.abs(b) + np.abs(y)
        self.o = self.outside(g(before))
        # how far a rounding of what g is of moves g's slope
        self.slope_size = 0.1 + 0.25 * size if act != "identity" else 0
        self.size = self.outside(size * (np.abs(self.slope) + (act != "identity"))) + np.abs(self.o) + (0.1 if act != "identity" else 0)

    def inside(self, a):
        a = a.astype("f8")
        a = np.moveaxis(a, -1, 1) if self.nhwc else a
        return a.reshape(a.shape[0], a.shape[1], int(np.prod(a.shape[2:])))

    def outside(self, a):
        if not self.nhwc:
            return a.reshape(self.shape)
        return np.moveaxis(a, 1, -1).reshape(self.shape)

    def average(self, a):
        """Of every set, at each of its elements."""
        if self.over == "batch":
            return np.broadcast_to(a.mean((0, 2), keepdims=True), a.shape)
        sets = a.reshape(*self.sets, -1)
        return np.broadcast_to(sets.mean(-1, keepdims=True), sets.shape).reshape(a.shape)

    def statistics(self, a):
        """mean, var or rstd, one for each set, in the shape in which they are written."""
        a = np.broadcast_to(a, self.h.shape)
        if self.over == "batch":
            return a[0, :, 0]
        return a.reshape(*self.sets, -1)[:, :, 0].reshape(self.sets if self.over != "layer" else self.sets[:1])

    def backward(self, do):
        do = self.inside(do)
        do1, terms = do * self.slope, np.abs(do * self.slope) + np.abs(do) * self.slope_size
        found = {"dy": (self.outside(do1), self.outside(terms)), "db": (do1.sum((0, 2)), terms.sum((0, 2)))}
        found["dw"] = (do1 * self.h).sum((0, 2)), (terms * (np.abs(self.h) + self.h_size)).sum((0, 2))
        dh, size = do1 * self.w, terms * np.abs(self.w) * (1 + self.h_size)
        if not self.running:
            dh, size = dh - self.h * self.average(dh * self.h), size + self.h_size * self.average(size * (np.abs(self.h) + self.h_size))
            if self.centred:
                dh, size = dh - self.average(do1 * self.w), size + self.average(size)
        found["dx"] = self.outside(dh * self.rstd), self.outside(size * self.rstd)
        return found


def near(got, want, size, what=""):
    """Within a few roundings of the terms, and the one to f16."""
    allowed = 16 * 2.0**-24 * size + (2.0**-11 * np.abs(want) + 2.0**-25 if got.dtype == np.float16 else 2.0**-140)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, not {want.shape}"
    error = np.abs(got.astype("f8") - want)
    if got.dtype == np.float16:  # what is beyond it is infinite
        error = np.where((np.abs(want) >= 65500) & (got == np.copysign(np.inf, want)), 0, error)
    assert (error <= allowed).all(), f"{what}: off by {(error / allowed).max():.3g} of what is allowed"


GRADIENTS = ("dx", "dy", "dz", "dw", "db")


def compare_rows(got, want, shape):
    assert got.dtype == np.dtype("<f4") and got.shape == shape, f"{got.dtype} {got.shape}"
    assert np.allclose(got.astype("f8"), want, rtol=2.0**-22, atol=1e-7), f"{got} is not {want}"


# ---- results -------------------------------------------------------------------------------------------------------------------


def norm_options(number, gate, act):
    """One of many combinations, as Gated has it and as the command line has it."""
    mode = ("mean", "sum", "sigma", "max", "none")[number % 5]
    options = dict(gate=gate, act=act, groups=(1, 4, 1, 48, 3)[number % 5], centred=number % 2 == 1, mode=mode,
                   eps=0.0 if mode == "none" else 0.01, c=(0.0, -2.5)[number % 3 == 1], offset=(0.0, 1.0)[number % 4 == 2])
    line = ["--layer" if options["centred"] else "--rms", "--eps-mode", mode, "--groups", options["groups"], "--act", act]
    line += [] if mode == "none" else ["--eps", options["eps"]]
    line += (["--c", options["c"]] if options["c"] else []) + (["--weight-offset", 1] if options["offset"] else [])
    return options, line + (["--gate", gate, "--z", "z.npy"] if gate else [])


@test
def norms_of_every_gate_activation_mode_and_grouping():
    for dtype in ("f4", "f2"):
        inputs = {name: draw(70, 48, dtype=dtype) for name in ("x", "y", "z", "do", "dr")}
        inputs.update(w=draw(48, dtype=dtype), b=draw(48, dtype=dtype))
        save(**inputs)
        do, dr = inputs.pop("do"), inputs.pop("dr")
        for gate in (None, "pre", "post"):
            for number, act in enumerate(ACTIVATIONS):
                if dtype == "f2" and number % 3:
                    continue
                options, line = norm_options(number, gate, act)
                given = {**inputs, "z": inputs["z"] if gate else None}
                line = ["x.npy", "--y", "y.npy", "--w", "w.npy", "--b", "b.npy", *line]
                o, r, mean, rstd = done("norm", *line, outputs=("o", "r", "mean", "rstd"))
                assert r.tobytes() == (inputs["x"].astype("f4") + inputs["y"].astype("f4")).astype(dtype).tobytes()
                want = Gated(**given, r=r, **options)
                near(o, want.o, want.size, f"{dtype} {options}")
                shape = (70,) if options["groups"] == 1 else (70, options["groups"])
                compare_rows(mean, np.reshape(want.mean, shape), shape)
                compare_rows(rstd, np.reshape(want.rstd, shape), shape)
                names = [name for name in GRADIENTS if gate or name != "dz"]
                got = done("norm --backward", "--do", "do.npy", "--dr-in", "dr.npy", *line, outputs=names)
                exact = want.backward(do, dr)
                for name, gradient in zip(names, got):
                    near(gradient, *exact[name], f"{name} {dtype} {options}")
        after = Gated(**inputs, gate="post", after=True)
        line = ("x.npy", "--y", "y.npy", "--residual", "after", "--gate", "post", "--z", "z.npy", "--w", "w.npy", "--b", "b.npy")
        near(done("norm", *line), after.o, after.size)


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
WEIGHTS = ("--w", "w.npy", "--b", "b.npy")
RUNNING = ("--running-mean", "running_mean.npy", "--running-var", "running_var.npy")
UPDATED = ("running_mean_out", "running_var_out")


def channel_options(over="batch", groups=1, layout="nchw", centred=True, eps=None, act="identity"):
    """The command line for what Channels is told."""
    line = ["--over", over, "--layout", layout, "--act", act] + ([] if centred else ["--rms"])
    return line + (["--groups", groups] if over == "group" else []) + (["--eps", eps] if eps is not None else [])


def shape_of(layout, n, c, *positions):
    return (n, c, *positions) if layout == "nchw" else (n, *positions, c)


def channel_inputs(shape, c, dtype="f4"):
    """x that is off its mean, and all that can come with it."""
    shift = random.standard_normal((c, *[1] * (len(shape) - 2))) if shape[1] == c else random.standard_normal(c)
    made = {name: draw(*shape, dtype=dtype) for name in ("x", "y", "do")}
    made["x"] = (made["x"] * 2 + shift).astype(dtype)
    made.update(w=draw(c, dtype=dtype), b=draw(c, dtype=dtype))
    save(**made)
    return made


SETS = (("batch", 1), ("group", 1), ("group", 3), ("group", 12), ("instance", 1), ("layer", 1))


@test
def channel_norms_of_every_kind_of_set_layout_shape_and_activation():
    number = 0
    for dtype in ("f4", "f2"):
        for layout in ("nchw", "nhwc"):
            for positions in ((), (1,), (9,), (4, 5), (2, 3, 4)):
                given = channel_inputs(shape_of(layout, 5, 12, *positions), 12, dtype)
                for over, groups in SETS:
                    if over == "instance" and np.prod(positions) == 1:
                        continue  # sets of one element
                    number += 1
                    options = dict(over=over, groups=groups, layout=layout, act=list(ACTIVATIONS)[number % 9], centred=number % 5 != 0, eps=0.01)
                    line = ("x.npy", "--y", "y.npy", *WEIGHTS, *channel_options(**options))
                    o, mean, rstd = done("channel-norm", *line, outputs=("o", "mean", "rstd"))
                    want = Channels(*(given[name] for name in "xywb"), **options)
                    assert o.dtype == np.dtype(dtype)
                    near(o, want.o, want.size, f"{dtype} {positions} {options}")
                    shapes = {"batch": (12,), "group": (5, groups), "instance": (5, 12), "layer": (5,)}
                    for got, value in ((mean, want.mean), (rstd, want.rstd)):
                        compare_rows(got, want.statistics(value), shapes[over])
                    got = done("channel-norm --backward", "--do", "do.npy", *line, outputs=CHANNEL_GRADIENTS)
                    exact = want.backward(given["do"])
                    for name, gradient in zip(CHANNEL_GRADIENTS, got):
                        assert gradient.dtype == np.dtype(dtype if name in ("dx", "dy") else "f4")
                        near(gradient, *exact[name], f"{name} {dtype} {positions} {options}")


@test
def running_statistics():
    for layout in ("nchw", "nhwc"):
        for over in ("batch", "instance"):
            for dtype, momentum in (("f4", 0.1), ("f2", 0.75)):
                given = channel_inputs(shape_of(layout, 3, 7, 5, 4), 7, dtype)
                running = (draw(7), (draw(7)**2 + 0.1).astype("f4"))
                save(running_mean=running[0], running_var=running[1])
                options = dict(over=over, layout=layout, act="silu")
                line = ["x.npy", *WEIGHTS, *RUNNING, *channel_options(**options)]
                o, mean, rstd = done("channel-norm", "--y", "y.npy", *line, outputs=("o", "mean", "rstd"))
                want = Channels(*(given[name] for name in "xywb"), running=running, **options)
                near(o, want.o, want.size, f"{dtype} {options}")
                shape = (7,) if over == "batch" else (3, 7)
                assert mean.tobytes() == np.broadcast_to(running[0], shape).tobytes()
                compare_rows(rstd, want.statistics(want.rstd), shape)
                got = done("channel-norm --backward", "--y", "y.npy", "--do", "do.npy", *line, outputs=CHANNEL_GRADIENTS)
                exact = want.backward(given["do"])
                for name, gradient in zip(CHANNEL_GRADIENTS, got):
                    near(gradient, *exact[name], f"{name} {options}")
                if over == "batch":
                    _, scale, shift = done("channel-norm", *line, "--fold", "--eps", "0.25", outputs=("o", "scale", "shift"))
                    exact = given["w"] / np.sqrt(running[1].astype("f8") + 0.25)
                    compare_rows(scale, exact, (7,))
                    compare_rows(shift, given["b"] - running[0] * exact, (7,))
                # training: the variance is unbiased, and o that of the batch alone
                trained, *new = done("channel-norm", *line, "--train", "--momentum", momentum, outputs=("o", *UPDATED))
                a = want.inside(given["x"])
                batch = a.mean((0, 2)), (a.var((0, 2), ddof=1) if over == "batch" else a.var(2, ddof=1).mean(0))
                for got, old, value in zip(new, running, batch):
                    compare_rows(got, (1 - momentum) * old.astype("f8") + momentum * value, (7,))
                assert trained.tobytes() == done("channel-norm", "x.npy", *WEIGHTS, *channel_options(**options)).tobytes()


def glu_of(a, b, act="silu", limit=math.inf, offset=0.0):
    """o, and the gradients of a and b for do = 1, in double precision."""
    u, v = np.minimum(a.astype("f8"), limit), np.clip(b.astype("f8"), -limit, limit) + offset
    g, slope = ACTIVATIONS[act]
    return g(u) * v, np.where(a > limit, 0, v * slope(u)), np.where(np.abs(b) > limit, 0, g(u))


@test
def glu_of_every_activation_layout_and_dtype():
    for number, act in enumerate(ACTIVATIONS):
        dtype = ("f4", "f2")[number % 2]
        a, b, do = (draw(3, 5, 21, dtype=dtype) for _ in range(3))
        limits = {"limit": 0.8, "offset": 1.0} if number % 3 else {}
        options = ["--activation", act] + (["--limit", 0.8, "--b-offset", 1] if limits else [])
        o, da, db = (part * do_ for part, do_ in zip(glu_of(a, b, act, **limits), (1, do.astype("f8"), do.astype("f8"))))
        size = 1 + np.abs(o) + np.abs(da) + np.abs(db)
        save(a=a, b=b, do=do, halves=np.concatenate((a, b), -1), swapped=np.concatenate((b, a), -1), pairs=np.stack((a, b), -1).reshape(3, 5, 42))
        plain = done("glu", "a.npy", "--b", "b.npy", *options)
        near(plain, o, size, f"o of {act}")
        back = done("glu", "--backward", "--do", "do.npy", "a.npy", "--b", "b.npy", *options, outputs=("da", "db"))
        near(back[0], da, size, f"da of {act}")
        near(back[1], db, size, f"db of {act}")
        for rows in ("halves", "swapped", "pairs"):
            assert done("glu", "--rows", rows, f"{rows}.npy", *options).tobytes() == plain.tobytes(), rows
            dx = done("glu", "--backward", "--do", "do.npy", "--rows", rows, f"{rows}.npy", *options, outputs=("dx",))
            both = (dx[..., ::2], dx[..., 1::2]) if rows == "pairs" else np.split(dx, 2, -1)
            assert [part.tobytes() for part in both[:: -1 if rows == "swapped" else 1]] == [part.tobytes() for part in back], rows


def q8_0_of(x):
    """ggml's blocks of 32, ties to even: scales in f32, and the bytes."""
    blocks = x.astype("f4").reshape(*x.shape[:-1], -1, 32)
    d = (np.abs(blocks).max(-1, keepdims=True) / np.float32(127)).astype("f4")
    return d, np.rint(blocks * (np.float32(1) / d)).astype("i1")


@test
def quantize_has_the_bytes_of_ggml():
    for dtype in ("f4", "f2"):
        x = draw(3, 8, 96, dtype=dtype)
        x[0, 0, :4] = (127, 0.5, 1.5, -2.5)
        save(x=x)
        d, q = q8_0_of(x)
        blocks = np.concatenate((d.astype("f2").view("u1"), q.view("u1")), -1)
        plain = done("quantize", "x.npy", "--format", "q8_0", outputs=("packed",))
        assert plain.dtype == np.uint8 and plain.shape == (3, 8, 102)
        assert plain.tobytes() == blocks.tobytes()
        away = done("quantize", "x.npy", "--format", "q8_0", "--away", outputs=("packed",))
        assert list(plain[0, 0, 2:6].view("i1")) == [127, 0, 2, -2] and list(away[0, 0, 2:6].view("i1")) == [127, 1, 2, -3]
        for together, chunk in ((4, 4), (4, 8), (8, 4), (8, 8)):
            scales = d.astype("f2").reshape(3, 8 // together, together, 3).swapaxes(2, 3).copy().view("u1")
            bytes_ = q.reshape(3, 8 // together, together, 3, 32 // chunk, chunk).transpose(0, 1, 3, 4, 2, 5).reshape(3, 8 // together, 3, -1)
            got = done("quantize", "x.npy", "--format", f"q8_0_{together}x{chunk}", outputs=("packed",))
            assert got.tobytes() == np.concatenate((scales.reshape(3, 8 // together, 3, -1), bytes_.view("u1")), -1).tobytes()
            save(q=got)
            o = done("dequantize", "q.npy", "--format", f"q8_0_{together}x{chunk}")
            assert np.array_equal(o, (d.astype("f2").astype("f4") * q).reshape(x.shape))
        for isa in re.findall(r"^  (\w+) +yes +yes$", Run("info").out, re.M):
            assert done("quantize", "x.npy", "--format", "q8_0", "--isa", isa, outputs=("packed",)).tobytes() == plain.tobytes(), isa


@test
def softmax_of_scores_and_its_gradient():
    for dtype in ("f4", "f2"):
        x, mask, do = draw(2, 3, 5, 70, dtype=dtype), draw(5, 70), draw(2, 3, 5, 70, dtype=dtype)
        save(x=x, mask=mask, do=do)
        away = np.arange(70) - (np.arange(5)[:, None] + 60)
        for options, seen in (((), away < 1000), (("--causal", "--first-position", 60), away <= 0),
                              (("--causal", "--first-position", 60, "--window", 9), (away <= 0) & (away > -9))):
            t = 2 * np.tanh(x.astype("f8") * 3 / 2) + mask
            e = np.where(seen, np.exp(t), 0)
            p = e / e.sum(-1, keepdims=True)
            o = done("softmax", "x.npy", "--mask", "mask.npy", "--scale", 3, "--cap", 2, *options)
            near(o, p, 1 + p, f"softmax {options}")
            logs = done("softmax", "x.npy", "--mask", "mask.npy", "--scale", 3, "--cap", 2, "--log", *options)
            assert (np.isneginf(logs) == ~np.broadcast_to(seen, logs.shape)).all()
            exact = np.log(np.where(p > 0, p, 1))
            near(np.where(p > 0, logs, 0).astype(dtype), exact, 8 + np.abs(exact), f"log-softmax {options}")
            save(p=o)
            q, g = o.astype("f8"), do.astype("f8")
            dx = done("softmax", "--backward", "--do", "do.npy", "p.npy", "--scale", 3, *options, outputs=("dx",))
            near(dx, 3 * q * (g - (q * g).sum(-1, keepdims=True)), 4 + 4 * q, f"dx of softmax {options}")


class Angles:
    """The formulas of nrg/rope.h in double precision: cos and sin of every token and pair, times the magnitude."""

    def __init__(self, positions, n_dims, mode="normal", sections=(), freq_base=1e4, freq_scale=1.0, ext_factor=0.0, attn_factor=1.0, beta_fast=32.0,
                 beta_slow=1.0, n_ctx_orig=0, scaling="none", factor=1.0, low_freq_factor=1.0, high_freq_factor=4.0, factors=None,
                 no_truncate=False, no_mscale=False):
        self.mode, self.pairs = mode, n_dims if mode == "vision" else n_dims // 2
        sections = tuple(sections) + (0,) * (4 - len(sections))
        # of each pair, which position it takes and the power of the base it has
        axes, powers = [], []
        for pair in range(self.pairs):
            sector = pair % (sum(sections) or 1)
            axis = 0 if not sum(sections) else next(i for i in range(4) if sector < sum(sections[:i + 1]))
            power = sector - sum(sections[:axis]) if mode == "vision" else pair
            if mode == "imrope":
                axis = sector % 3 if sector < 3 * sections[sector % 3] else 3
            if mode == "imrope-time":
                axis = pair % 3 if pair < 3 * sections[pair % 3] else 0
            axes.append(axis)
            powers.append(power)
        if scaling == "ntk":
            freq_base *= factor**(n_dims / (n_dims - 2))
        theta = freq_base**(-2 * np.array(powers) / n_dims)
        if scaling == "llama3":
            turns = n_ctx_orig * theta / (2 * np.pi)
            blend = np.clip((turns - low_freq_factor) / (high_freq_factor - low_freq_factor), 0, 1)
            theta = (1 - blend) * theta / factor + blend * theta
        if factors is not None:
            theta = theta / factors.astype("f8")
        if ext_factor:
            corner = lambda beta: n_dims * np.log(n_ctx_orig / (2 * np.pi * beta)) / (2 * np.log(freq_base))
            down, up = (float, float) if no_truncate else (np.floor, np.ceil)
            low, high = max(0, down(corner(beta_fast))), min(n_dims - 1, up(corner(beta_slow)))
            ramp = ext_factor * (1 - np.clip((np.arange(self.pairs) - low) / max(0.001, high - low), 0, 1))
            theta = theta * freq_scale * (1 - ramp) + theta * ramp
            attn_factor *= 1 if no_mscale else 1 + 0.1 * np.log(1 / freq_scale)
        else:
            theta = theta * freq_scale
        positions = np.broadcast_to(np.atleast_2d(positions), (4, np.shape(positions)[-1])) if np.ndim(positions) == 1 else positions
        angle = np.stack([positions[axis] * theta[pair] for pair, axis in enumerate(axes)], -1)
        self.cos, self.sin, self.magnitude = np.cos(angle) * attn_factor, np.sin(angle) * attn_factor, attn_factor

    def turn(self, x, offset=0, backward=False):
        """x is [tokens, heads, dim]. The result, and the size of its terms."""
        o, size = x.astype("f8"), np.abs(x.astype("f8"))
        step = 2 if self.mode == "normal" else 1
        first = [offset + (2 * p if step == 2 else p) for p in range(self.pairs)]
        second = [offset + (2 * p + 1 if step == 2 else p + self.pairs) for p in range(self.pairs)]
        a, b, cos, sin = o[..., first], o[..., second], self.cos[:, None], self.sin[:, None] * (-1 if backward else 1)
        size[..., first] = size[..., second] = (np.abs(a) + np.abs(b)) * abs(self.magnitude)
        o[..., first], o[..., second] = a * cos - b * sin, a * sin + b * cos
        return o, size


def rope_options(**options):
    """Of Angles, and of the command line."""
    line = []
    for name, value in options.items():
        line += [f"--{name.replace('_', '-')}", *([] if value is True else [",".join(map(str, value)) if isinstance(value, tuple) else value])]
    return line


@test
def rope_of_every_mode():
    for mode, sections in (("normal", None), ("neox", None), ("mrope", (3, 2, 2)), ("mrope", (2, 1)), ("vision", (5, 3)), ("imrope", (3, 2, 2)),
                           ("imrope", (1, 1, 1, 1)), ("imrope", (1, 3, 3)), ("imrope-time", (1, 3, 3)), ("imrope-time", (3, 1)),
                           ("mrope", (1, 2, 3, 1))):
        options = {"mode": mode, **({"sections": sections} if sections else {})}
        for dtype in ("f4", "f2"):
            x = draw(6, 3, 20, dtype=dtype)
            save(x=x, p=random.integers(0, 3000, (4, 6)).astype("i4"), q=random.integers(0, 3000, 6))
            for file in ("p.npy", "q.npy") if sections else ("q.npy",):
                n_dims = 8 if mode == "vision" else 14
                for backward in (False, True):
                    o = done("rope", "x.npy", "--rotate-from", 3, "--n-dims", n_dims, *rope_options(**options), "--positions", file,
                             *(["--backward"] if backward else []))
                    want, size = Angles(np.load(file), n_dims, **options).turn(x, 3, backward)
                    near(o, want, size, f"{mode} {dtype}")
                    assert o.dtype == x.dtype and o[..., :3].tobytes() == x[..., :3].tobytes()


@test
def rope_with_every_scaling():
    factors = (1 + random.random(16) * 30).astype("f4")
    x, p = draw(9, 32), random.integers(0, 100000, 9)
    save(x=x, p=p, f=factors)
    for options in ({"freq_base": 5e5}, {"freq_scale": 0.25}, {"attn_factor": 1.5}, {"scaling": "ntk", "factor": 8.0},
                    {"freq_scale": 1 / 16, "ext_factor": 1.0, "n_ctx_orig": 4096}, {"freq_scale": 0.5, "ext_factor": 0.5, "n_ctx_orig": 512, "beta_fast": 16.0,
                                                                                    "beta_slow": 2.0, "attn_factor": 0.9},
                    {"freq_base": 1.5e5, "freq_scale": 1 / 32, "ext_factor": 1.0, "n_ctx_orig": 4096, "no_truncate": True, "attn_factor": 1.25, "no_mscale": True},
                    {"freq_scale": 0.25, "ext_factor": 0.75, "n_ctx_orig": 4}, {"freq_base": 0.5, "freq_scale": 0.25, "ext_factor": 0.75, "n_ctx_orig": 4},
                    {"scaling": "llama3", "factor": 8.0, "n_ctx_orig": 8192, "freq_base": 5e5},
                    {"scaling": "llama3", "factor": 32.0, "n_ctx_orig": 1000, "low_freq_factor": 2.0, "high_freq_factor": 9.0}):
        for given in (None, factors):
            line = rope_options(**options) + ([] if given is None else ["--freq-factors", "f.npy"])
            angles = Angles(p, 32, factors=given, **options)
            o = done("rope", "x.npy", "--positions", "p.npy", *line)
            want, size = angles.turn(x[:, None])
            near(o, want[:, 0], size[:, 0], str(line))
            table = done("rope", "--table", "--n-dims", 32, "--positions", "p.npy", *line)
            assert table.dtype == np.float32 and table.shape == (9, 32)
            near(table, np.concatenate([angles.cos, angles.sin], -1), np.full((9, 32), abs(angles.magnitude)), str(line))


@test
def embedding_of_tokens_positions_and_types():
    for dtype, shape in (("f4", (2, 2, 6)), ("f2", (3, 6)), ("f2", (6,))):
        t, p, s = (draw(rows, 48, dtype=dtype) for rows in (20, 9, 2))
        ids, types, row = random.integers(0, 20, shape), random.integers(0, 2, shape).astype("i4"), np.array([8, 1, 1, 0, 2, 5])
        save(ids=ids, types=types, row=row, t=t, p=p, s=s)
        counted = ("--position-table", "p.npy", "--first", 3)
        for more, *terms in (((),), (counted, p[3:]), (("--position-table", "p.npy", "--positions", "row.npy"), p[row]),
                             ((*counted, "--type-table", "s.npy", "--types", "types.npy"), p[3:], s[types])):
            o = done("position embedding", "ids.npy", "--table", "t.npy", *more)
            want = sum((term.astype("f4") for term in terms), t[ids].astype("f4")).astype(dtype)
            assert o.dtype == want.dtype and o.shape == want.shape and o.tobytes() == want.tobytes(), f"{more} {shape} {dtype}"


@test
def recurrent_chains():
    for dtype in ("f4", "f2"):
        w, b = (draw(20, 20) / 6).astype(dtype), draw(20)
        for shape in ((20,), (3, 20)):
            p0 = draw(*shape, dtype=dtype)
            save(w=w, b=b, p0=p0)
            for more in ((), ("--b", "b.npy")):
                p = done("position rnn", "--w", "w.npy", "--p0", "p0.npy", "--positions", 7, *more)
                assert p.dtype == p0.dtype and p.shape == (*shape[:-1], 7, 20)
                before = np.concatenate([p0[..., None, :], p[..., :-1, :]], -2).astype("f8")
                near(p, np.tanh(before @ w.astype("f8").T + (b if more else 0)), np.ones(p.shape))
            dp = draw(*p.shape, dtype=dtype)
            save(p=p, dp=dp)
            dw, db, dp0 = done("position rnn", "--backward", "--w", "w.npy", "--p0", "p0.npy", "--p", "p.npy", "--dp", "dp.npy",
                               outputs=("dw", "db", "dp0"))
            g, next_g = np.zeros(p.shape), np.zeros(p0.shape)
            for k in range(6, -1, -1):
                g[..., k, :] = next_g = (dp[..., k, :].astype("f8") + (next_g @ w.astype("f8") if k < 6 else 0)) * (1 - p[..., k, :].astype("f8")**2)
            rows = g.reshape(-1, 20)
            near(dw, rows.T @ before.reshape(-1, 20), 8 * np.abs(rows).T @ np.abs(before.reshape(-1, 20)) + 1)
            near(db, rows.sum(0), 8 * np.abs(rows).sum(0) + 1)
            near(dp0, g[..., 0, :] @ w.astype("f8"), 8 * np.abs(g[..., 0, :]) @ np.abs(w.astype("f8")) + 1)


def t5_bucket(distance, bidirectional, buckets, max_distance):
    """From the paper's code, with whole numbers for the logarithms."""
    bucket, n = 0, -distance
    if bidirectional:
        buckets //= 2
        bucket, n = (buckets, -n) if n < 0 else (0, n)
    n = max(n, 0)
    exact = buckets // 2
    if n < exact:
        return bucket + n
    more = sum(n**(buckets - exact) >= max_distance**k * exact**(buckets - exact - k) for k in range(1, buckets - exact))
    return bucket + exact + more


def distances(queries, keys, offset=0):
    return np.arange(keys)[None] - np.arange(queries)[:, None] - offset


@test
def t5_bias_of_buckets():
    for buckets, max_distance, causal, offset in ((32, 128, False, 0), (32, 128, True, 40), (8, 20, False, -3), (5, 9, True, 0)):
        distance = distances(7, 50, offset)
        bucket = np.vectorize(lambda d: t5_bucket(int(d), not causal, buckets, max_distance))(distance)
        line = ("--max-distance", max_distance, "--first-position", offset, *(("--one-sided",) if causal else ()))
        for dtype in ("f4", "f2"):
            beta, scores = draw(buckets, 3, dtype=dtype), draw(2, 3, 7, 50, dtype=dtype)
            save(beta=beta, scores=scores)
            want = np.moveaxis(beta.astype("f4")[bucket], -1, 0)
            masked = done("position t5", "beta.npy", "--queries", 7, "--keys", 50, "--causal", *line)
            assert masked.dtype == np.float32 and masked.tobytes() == np.where(distance > 0, np.float32(-np.inf), want).tobytes()
            o = done("position t5", "beta.npy", "--scores", "scores.npy", *line)
            assert o.dtype == scores.dtype and o.tobytes() == (scores.astype("f4") + want).astype(dtype).tobytes()
            want, size = np.zeros((buckets, 3)), np.zeros((buckets, 3))
            for h in range(3):
                np.add.at(want[:, h], np.broadcast_to(bucket, (2, 7, 50)), scores[:, h].astype("f8"))
                np.add.at(size[:, h], np.broadcast_to(bucket, (2, 7, 50)), np.abs(scores[:, h].astype("f8")))
            near(done("position t5", "--backward", "--scores", "scores.npy", "--buckets", buckets, *line), want, size)


@test
def shaw_scores_and_values():
    for dtype in ("f4", "f2"):
        q, a, add_s, add_o = (draw(2, 3, 5, n, dtype=dtype) for n in (16, 9, 9, 16))
        for shape, least, offset in (((7, 16), -3, 0), ((3, 7, 16), -5, 4), ((1, 16), 0, 0), ((30, 16), -11, -2)):
            table = draw(*shape, dtype=dtype if shape[0] == 3 else "f4")
            save(q=q, a=a, r=table, s=add_s, v=add_o)
            index = np.clip(-distances(5, 9, offset), least, least + table.shape[-2] - 1) - least
            rows = np.broadcast_to(table, (3, *table.shape[-2:])).astype("f8")[:, index]
            line = ("--table", "r.npy", "--first-position", offset, "--p-min", least)
            for formula, x, add, start in (("bhid,hijd->bhij", q, add_s, ("q.npy", "--keys", 9, "--add", "s.npy")),
                                           ("bhij,hijd->bhid", a, add_o, ("--values", "a.npy", "--add", "v.npy"))):
                want, size = (np.einsum(formula, f(x.astype("f8")), f(rows)) + f(add.astype("f8")) for f in (lambda v: v, np.abs))
                near(done("position shaw", *start, *line), want, size)


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
    channel_inputs((4, 6, 5), 6)
    save(running_mean=draw(6), running_var=draw(6)**2, z=draw(4, 6, 5))
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
        run = Run("norm", "-", "--o", "o.npy", input=given)
        one_line(run)
        assert run.status == 2 and not run.out and says in run.err and os.listdir(".") == ["x.npy"], f"{says}: {run}"
    refused("norm", "/dev/stdin", "--o", "o.npy", says="a file named - is standard input")
    save(y=draw(3, 4))
    for name, beside, says in (("-", "x.npy", "standard input: expected shape (300, 1000) to match x.npy, got (3, 4)"),
                               ("y.npy", "-", "y.npy: expected shape (300, 1000) to match standard input, got (3, 4)")):
        run = Run("norm", beside, "--y", name, "--o", "o.npy", input=read("y.npy") if name == "-" else good)
        one_line(run)
        assert run.status == 2 and says in run.err, str(run)


@test
def standard_input_and_output_are_for_one_file_each():
    save(x=draw(3, 8))
    for arguments, says in ((("-", "--y", "-", "--o", "o.npy"), "standard input: given for two inputs"),
                            (("x.npy", "--o", "-", "--mean", "-"), "standard output: given for two outputs")):
        run = Run("norm", *arguments, input=read("x.npy"))
        one_line(run)
        assert run.status == 2 and not run.out and says in run.err and os.listdir(".") == ["x.npy"], str(run)
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
    run = Run("norm", "-", "--o", "o.npy", before=closed(0))
    one_line(run)
    assert run.status == 2 and "standard input: Bad file descriptor" in run.err, str(run)


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
    text = open(os.path.join(ROOT, "src", "kernels.def")).read()
    ops = re.findall(r"^NRG_KERNEL\(\w+, (\w+), \w+\)", text, re.M)
    assert len(ops) >= 22
    for op in ops:
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
    sources = [f"-I{ROOT}/include", f"{ROOT}/tests/faulty.c", *more, build / "tools/nrg.p/main.c.o"]
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
        run = Run("norm", "x.npy", "--o", "o.npy")
        one_line(run)
        program, *arguments = shlex.split(run.err[run.err.index("python3 -c"):])
        assert run.status == 2 and program == "python3", str(run)
        subprocess.run([sys.executable, *arguments], check=True)
        norm("new.npy", "--o", "o.npy")
        assert np.load("o.npy").dtype == np.float32 and np.array_equal(np.load("new.npy"), array), run.err


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
