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
    """A run of the command in the current directory."""

    def __init__(self, *arguments, env=None, stdout=subprocess.PIPE, before=None, program=NRG, timeout=900):
        # a preloaded helper has to come before a sanitizer's own library
        full = {**os.environ, "ASAN_OPTIONS": SANITIZER, **(env or {})}
        done = subprocess.run([program, *map(str, arguments)], env=full, stdout=stdout, stderr=subprocess.PIPE, text=True,
                              errors="replace", preexec_fn=before, timeout=timeout)
        # of a command that takes more than ten seconds, as some do on a busy machine, this is no complaint
        self.status, self.out, self.err = done.returncode, done.stdout, PROGRESS.sub("", done.stderr)

    def __str__(self):
        return f"status {self.status}, stderr {self.err!r}, stdout {self.out!r}"


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


def norm(*arguments, **more):
    run = Run("norm", *arguments, **more)
    assert run.status == 0 and not run.out and not run.err, str(run)
    assert not [name for name in os.listdir(".") if name.startswith(".nrg")], "temporary files are left"


def draw(*shape, dtype="f4"):
    return random.standard_normal(shape).astype(dtype)


def save(**arrays):
    for name, array in arrays.items():
        np.save(name + ".npy", array)


def expected(x, y=None, w=None, b=None, centred=False, eps=1e-6, mode="mean", c=0.0, offset=0.0, after=False, r_dtype=None):
    """o, r, mean, rstd in double precision, and how far a float32 or float16 o may be from it."""
    d = x.shape[-1]
    r = x
    if y is not None and not after:
        r = (x.astype("f4") + y.astype("f4")).astype(r_dtype or x.dtype)
    e = r.astype("f8")
    mean = e.mean(-1, keepdims=True) if centred else np.zeros(x.shape[:-1] + (1,))
    q = e - mean
    square = (q * q).sum(-1, keepdims=True)
    s = {"mean": lambda: np.sqrt(square / d + eps), "sum": lambda: np.sqrt((square + eps) / d),
         "sigma": lambda: np.sqrt(square / d) + eps, "max": lambda: np.maximum(np.sqrt(square), eps) / np.sqrt(d),
         "none": lambda: np.sqrt(square / d)}[mode]()
    k = c / np.sqrt(d) if c else 1.0
    factor = k * (w.astype("f8") + offset if w is not None else np.ones(d))
    with np.errstate(divide="ignore", invalid="ignore"):
        rstd = np.where(s > 0, 1 / s, 0)
    o = q * rstd * factor
    allowed = np.abs(o) * 2.0**-23 + (np.abs(factor) * 2.0**-24 if centred else 0) + 2.0**-149
    for term in (b, y if after else None):
        if term is not None:
            o = o + term.astype("f8")
            allowed = allowed + np.abs(term.astype("f8")) * 2.0**-23
    allowed = allowed + np.abs(o) * 2.0**-23
    if x.dtype == np.float16:
        allowed = allowed + np.abs(o) * 2.0**-11 + 2.0**-25
    return o, r, mean[..., 0], rstd[..., 0], allowed


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


def options_of(centred=False, gate=None, act="identity", groups=1, eps=None, mode=None, c=None, offset=None, after=False):
    """The command line for what Gated is told."""
    line = ["--layer" if centred else "--rms"]
    for name, value in (("gate", gate), ("eps", eps), ("eps-mode", mode), ("c", c), ("weight-offset", offset)):
        line += [f"--{name}", value] if value is not None else []
    line += ["--act", act] if act != "identity" else []
    line += ["--groups", groups] if groups != 1 else []
    return line + (["--residual", "after"] if after else [])


GRADIENTS = ("dx", "dy", "dz", "dw", "db")


def backward(*arguments, outputs=GRADIENTS, **more):
    """Runs nrg norm --backward, and loads what it wrote."""
    norm("--backward", *arguments, *(part for name in outputs for part in (f"--{name}", f"{name}.npy")), **more)
    return {name: np.load(f"{name}.npy") for name in outputs}


def compare(o, answer):
    want, _, _, _, allowed = answer
    error = np.abs(o.astype("f8") - want)
    assert o.shape == want.shape, f"shape {o.shape}, not {want.shape}"
    assert (error <= allowed).all(), f"off by {(error / allowed).max():.3g} of what is allowed"


def compare_rows(got, want, shape):
    assert got.dtype == np.dtype("<f4") and got.shape == shape, f"{got.dtype} {got.shape}"
    assert np.allclose(got.astype("f8"), want, rtol=2.0**-23, atol=1e-7), f"{got} is not {want}"


# ---- results -------------------------------------------------------------------------------------------------------------------


@test
def rms_is_the_default():
    x, w = draw(7, 100), draw(100)
    save(x=x, w=w)
    norm("x.npy", "--w", "w.npy", "--o", "o.npy")
    compare(np.load("o.npy"), expected(x, w=w))
    norm("-x", "x.npy", "--rms", "--w=w.npy", "-o", "p.npy")
    assert open("o.npy", "rb").read() == open("p.npy", "rb").read()


@test
def layer_with_weight_and_bias():
    x, w, b = draw(3, 5, 130) + np.float32(3), draw(130), draw(130)
    save(x=x, w=w, b=b)
    norm("--layer", "x.npy", "--w", "w.npy", "--b", "b.npy", "--o", "o.npy", "--mean", "m.npy", "--rstd", "s.npy")
    answer = expected(x, w=w, b=b, centred=True, eps=1e-5)
    compare(np.load("o.npy"), answer)
    compare_rows(np.load("m.npy"), answer[2], (3, 5))
    compare_rows(np.load("s.npy"), answer[3], (3, 5))


@test
def l2_gives_unit_length():
    x = draw(9, 77)
    x[4] = 0
    save(x=x)
    norm("--l2", "x.npy", "--o", "o.npy")
    compare(np.load("o.npy"), expected(x, eps=1e-12, mode="max", c=1.0))
    lengths = np.sqrt((np.load("o.npy").astype("f8")**2).sum(-1))
    assert np.allclose(np.delete(lengths, 4), 1) and lengths[4] == 0, lengths


@test
def residual_before_and_r():
    x, y, w = draw(6, 300), draw(6, 300), draw(300)
    save(x=x, y=y, w=w)
    norm("x.npy", "--y", "y.npy", "--w", "w.npy", "--residual", "before", "--o", "o.npy", "--r", "r.npy", "--rstd", "s.npy")
    answer = expected(x, y=y, w=w)
    compare(np.load("o.npy"), answer)
    assert np.load("r.npy").tobytes() == (x + y).tobytes()
    compare_rows(np.load("s.npy"), answer[3], (6,))


@test
def residual_after():
    x, y = draw(6, 64), draw(6, 64)
    save(x=x, y=y)
    norm("x.npy", "--y", "y.npy", "--residual", "after", "--o", "o.npy")
    compare(np.load("o.npy"), expected(x, y=y, after=True))


@test
def every_eps_mode():
    x = draw(4, 50)
    save(x=x)
    for mode in ("mean", "sum", "sigma", "max", "none"):
        for kind, eps in (("--rms", 0.75), ("--layer", 20.0)):
            norm(kind, "x.npy", *(("--eps", eps) if mode != "none" else ()), "--eps-mode", mode, "--o", "o.npy")
            compare(np.load("o.npy"), expected(x, eps=eps, mode=mode, centred=kind == "--layer"))


@test
def exact_is_the_nearest_float_almost_always():
    x, w = draw(9, 4096), draw(4096)
    save(x=x, w=w)
    norm("x.npy", "--w", "w.npy", "--o", "o.npy")
    norm("x.npy", "--w", "w.npy", "--exact", "--o", "p.npy")
    want = expected(x, w=w)[0]
    off = [np.abs(np.load(name).astype("f8") - want) / np.spacing(np.abs(want).astype("f4")) for name in ("o.npy", "p.npy")]
    assert off[1].max() < 0.51 < off[0].max() < 3.1, f"exact is off by {off[1].max()} ulp, fast by {off[0].max()}"


@test
def constant_and_weight_offset():
    x, w = draw(4, 96), draw(96)
    save(x=x, w=w)
    norm("x.npy", "--c", "-2.5", "--w", "w.npy", "--weight-offset", "1", "--o", "o.npy")
    compare(np.load("o.npy"), expected(x, w=w, c=-2.5, offset=1.0))
    norm("x.npy", "--c", "0", "--o", "o.npy")
    assert not np.load("o.npy").any()
    for line in (("--weight-offset", 1), ("--eps-mode", "none", "--eps", 1)):
        refused("norm", "x.npy", *line, "--o", "o.npy", says="an unused operand or field is set")


@test
def f16_with_r_in_either_dtype():
    x, y, w = draw(5, 200, dtype="f2"), draw(5, 200, dtype="f2"), draw(200, dtype="f2")
    save(x=x, y=y, w=w)
    for name, dtype in (("same", "<f2"), ("f16", "<f2"), ("f32", "<f4")):
        norm("x.npy", "--y", "y.npy", "--w", "w.npy", "--r-dtype", name, "--o", "o.npy", "--r", "r.npy")
        answer = expected(x, y=y, w=w, r_dtype=dtype)
        compare(np.load("o.npy"), answer)
        assert np.load("o.npy").dtype == np.dtype("<f2") and np.load("r.npy").dtype == np.dtype(dtype)
        assert np.load("r.npy").tobytes() == answer[1].tobytes()


@test
def f16_beside_f32_operands():
    x, y = draw(5, 64, dtype="f2"), draw(5, 64)
    for w_dtype in ("f2", "f4"):
        for b_dtype in ("f2", "f4"):
            w, b = draw(64, dtype=w_dtype), draw(64, dtype=b_dtype)
            w[:4] = (0.0, -2.0**-24, 2.0**-14, 1000)  # zero, subnormal, the least normal
            b[4:] = 0
            save(x=x, y=y, w=w, b=b)
            norm("x.npy", "--y", "y.npy", "--w", "w.npy", "--b", "b.npy", "--r-dtype", "f32", "--o", "o.npy")
            compare(np.load("o.npy"), expected(x, y=y, w=w, b=b, r_dtype="<f4"))


@test
def shapes_of_one_axis_many_axes_and_no_rows():
    for shape in ((8,), (1, 1, 1, 8), (2, 3, 4, 5), (1,), (0, 8), (3, 0, 8)):
        x = draw(*shape)
        save(x=x)
        norm("x.npy", "--o", "o.npy", "--r", "r.npy", "--mean", "m.npy", "--rstd", "s.npy")
        answer = expected(x)
        compare(np.load("o.npy"), answer)
        assert np.load("r.npy").shape == shape
        compare_rows(np.load("m.npy"), answer[2], shape[:-1])
        compare_rows(np.load("s.npy"), answer[3], shape[:-1])


@test
def every_gate_activation_and_grouping():
    x, y, z, w, b = draw(5, 96), draw(5, 96), draw(5, 96) * np.float32(3), draw(96), draw(96)
    for dtype in ("f4", "f2"):
        inputs = dict(x=x.astype(dtype), y=y.astype(dtype), z=z.astype(dtype), w=w.astype(dtype), b=b.astype(dtype))
        save(**inputs)
        for gate in (None, "pre", "post"):
            for number, act in enumerate(ACTIVATIONS):
                options = dict(gate=gate, act=act, groups=(1, 4, 1, 96, 3)[number % 5], centred=number % 2 == 1, eps=1e-5)
                if dtype == "f2" and number % 3:
                    continue
                norm("x.npy", "--y", "y.npy", "--w", "w.npy", "--b", "b.npy", *(["--z", "z.npy"] if gate else []), *options_of(**options),
                     "--o", "o.npy", "--r", "r.npy")
                r = np.load("r.npy")
                assert r.tobytes() == (inputs["x"].astype("f4") + inputs["y"].astype("f4")).astype(dtype).tobytes()
                want = Gated(inputs["x"], z=inputs["z"] if gate else None, w=inputs["w"], b=inputs["b"], r=r, **options)
                near(np.load("o.npy"), want.o, want.size, f"{dtype} {options}")


@test
def groups_have_a_mean_and_rstd_each():
    x, z = draw(2, 3, 60) + np.float32(2), draw(2, 3, 60)
    save(x=x, z=z)
    for groups, shape in ((1, (2, 3)), (4, (2, 3, 4)), (60, (2, 3, 60))):
        for gate in (None, "pre"):
            norm("x.npy", *options_of(groups=groups, gate=gate, centred=True, eps=1e-5), *(["--z", "z.npy"] if gate else []),
                 "--o", "o.npy", "--mean", "m.npy", "--rstd", "s.npy")
            want = Gated(x, z=z if gate else None, centred=True, eps=1e-5, groups=groups, gate=gate)
            near(np.load("o.npy"), want.o, want.size)
            compare_rows(np.load("m.npy"), np.reshape(want.mean, shape), shape)
            compare_rows(np.load("s.npy"), np.reshape(want.rstd, shape), shape)


@test
def a_gate_after_the_norm_comes_before_the_residual_after():
    x, y, z = draw(4, 40), draw(4, 40), draw(4, 40)
    save(x=x, y=y, z=z)
    norm("x.npy", "--y", "y.npy", "--z", "z.npy", *options_of(gate="post", act="gelu", after=True), "--o", "o.npy")
    want = Gated(x, y=y, z=z, gate="post", act="gelu", after=True)
    near(np.load("o.npy"), want.o, want.size)


@test
def backward_of_every_gate_activation_and_grouping():
    inputs = dict(x=draw(70, 48), y=draw(70, 48), z=draw(70, 48), w=draw(48), b=draw(48), do=draw(70, 48), dr=draw(70, 48))
    save(**inputs)
    do, dr = inputs.pop("do"), inputs.pop("dr")
    for gate in (None, "pre", "post"):
        for number, act in enumerate(ACTIVATIONS):
            options = dict(gate=gate, act=act, groups=(1, 4, 3)[number % 3], centred=number % 2 == 1, eps=1e-5)
            names = [name for name in GRADIENTS if gate or name != "dz"]
            got = backward("x.npy", "--y", "y.npy", "--w", "w.npy", "--b", "b.npy", "--do", "do.npy", "--dr-in", "dr.npy",
                           *(["--z", "z.npy"] if gate else []), *options_of(**options), outputs=names)
            given = {**inputs, "z": inputs["z"] if gate else None, "r": inputs["x"] + inputs["y"]}
            want = Gated(**given, **options).backward(do, dr)
            for name in names:
                near(got[name], *want[name], f"{name} {options}")


@test
def backward_of_every_eps_mode_and_constant():
    x, w, do = draw(6, 50), draw(50), draw(6, 50)
    x[2] = 0
    x[4] *= 1000
    save(x=x, w=w, do=do)
    for mode in ("mean", "sum", "sigma", "max", "none"):
        for centred in (False, True):
            for eps, c, offset in ((0.75, None, None), (20.0, -2.5, 1.0), (0.0, 1.0, None)):
                options = dict(mode=mode, centred=centred, eps=0.0 if mode == "none" else eps, c=c, offset=offset)
                got = backward("x.npy", "--w", "w.npy", "--do", "do.npy", *options_of(**options), outputs=("dx", "dy", "dw", "db"))
                want = Gated(x, w=w, **{name: value for name, value in options.items() if value is not None}).backward(do)
                for name, gradient in got.items():
                    near(gradient, *want[name], f"{name} {options}")


@test
def backward_is_the_slope_of_forward():
    """Against the forward formula alone: differences of o·do, each way a step of every input."""
    inputs = dict(x=draw(2, 2, 12), y=draw(2, 2, 12), z=draw(2, 2, 12), w=draw(12), b=draw(12))
    do = draw(2, 2, 12)
    save(do=do, **inputs)
    ways = [dict(gate=gate, act=act) for gate in (None, "pre", "post") for act in ACTIVATIONS if act != "relu"]
    ways += [dict(mode=mode, centred=centred, eps=0.5) for mode in ("mean", "sum", "sigma", "max") for centred in (False, True)]
    ways += [dict(mode="none", centred=centred, eps=0.0) for centred in (False, True)]
    ways += [dict(groups=2, c=-3.0, offset=1.0), dict(groups=2, centred=True, gate="pre", act="silu", eps=0.5), dict(after=True, centred=True)]
    for options in ways:
        given = {name: array.astype("f8") for name, array in inputs.items() if name != "z" or options.get("gate")}
        names = [f"d{name}" for name in given]
        got = backward("x.npy", *([] if options.get("after") else ["--y", "y.npy"]), "--w", "w.npy", "--b", "b.npy", "--do", "do.npy",
                       *(["--z", "z.npy"] if "z" in given else []), *options_of(**options), outputs=names)
        for name, array in given.items():
            slope, step = np.zeros_like(array), 1e-5
            for index in np.ndindex(array.shape):
                value = array[index]
                ends = []
                for array[index] in (value + step, value - step):
                    ends.append((Gated(**given, **options).o * do).sum())
                array[index] = value
                slope[index] = (ends[0] - ends[1]) / (2 * step)
            error = np.abs(got[f"d{name}"] - slope).max()
            assert error <= 1e-5 * (1 + np.abs(slope).max()), f"d{name} {options}: off by {error:.3g}"


@test
def backward_in_f16_with_f32_beside_it():
    x, z, w, b, do = (draw(*shape, dtype="f2") for shape in ((9, 64), (9, 64), (64,), (64,), (9, 64)))
    for y_dtype in ("f2", "f4"):
        for r_dtype in ("f2", "f4"):
            y, dr = draw(9, 64, dtype=y_dtype), draw(9, 64, dtype=r_dtype)
            save(x=x, y=y, z=z, w=w, b=b.astype("f4"), do=do, dr=dr)
            options = dict(gate="post", act="silu", centred=True, eps=1e-5)
            line = ["--z", "z.npy", "--w", "w.npy", "--b", "b.npy", "--do", "do.npy", "--dr-in", "dr.npy", *options_of(**options)]
            got = backward("x.npy", "--y", "y.npy", "--r-dtype", "f32" if r_dtype == "f4" else "f16", *line)
            r = (x.astype("f4") + y.astype("f4")).astype(r_dtype)
            want = Gated(x, z=z, w=w, b=b, r=r, **options).backward(do, dr)
            for name, dtype in (("dx", "f2"), ("dy", y_dtype), ("dz", "f2"), ("dw", "f4"), ("db", "f4")):
                assert got[name].dtype == np.dtype(dtype), f"{name} is {got[name].dtype}"
                near(got[name], *want[name], name)
            # the same from r, instead of the sum that gives it
            save(r=r)
            same = backward("--r-in", "r.npy", "--y-dtype", "f32" if y_dtype == "f4" else "same", *line)
            for name in GRADIENTS:
                assert same[name].dtype == got[name].dtype and same[name].tobytes() == got[name].tobytes(), name


@test
def backward_of_a_residual_after():
    x, w, do = draw(5, 32), draw(32), draw(5, 32)
    save(x=x, y=draw(5, 32), w=w, do=do)
    line = ["--w", "w.npy", "--do", "do.npy", "--residual", "after"]
    got = backward("x.npy", *line, outputs=("dx", "dy", "dw", "db"))
    want = Gated(x, w=w).backward(do)
    for name in ("dx", "dw", "db"):
        near(got[name], *want[name], name)
    assert got["dy"].tobytes() == do.tobytes()
    refused("norm", "--backward", "x.npy", "--y", "y.npy", *line, "--dx", "dx.npy", says="an unused operand or field is set")


@test
def backward_from_a_saved_mean_has_the_same_bits():
    save(x=draw(4, 5, 66) + np.float32(3), y=draw(4, 5, 66), z=draw(4, 5, 66), w=draw(66), do=draw(4, 5, 66))
    for kind, groups in (("--rms", 1), ("--layer", 1), ("--layer", 3)):
        line = ["x.npy", "--y", "y.npy", "--z", "z.npy", "--w", "w.npy", "--gate", "pre", "--act", "silu", kind, "--groups", groups]
        norm(*line, "--o", "o.npy", "--r", "r.npy", "--mean", "m.npy")
        want = backward(*line, "--do", "do.npy")
        mean = ["--mean-in", "m.npy"] if kind == "--layer" else []
        for inputs in (line, ["--r-in", "r.npy", *line[3:]]):
            got = backward(*inputs, "--do", "do.npy", *mean)
            for name in GRADIENTS:
                assert got[name].tobytes() == want[name].tobytes(), f"{name} {kind} {groups}"


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


# ---- results of channel-norm ---------------------------------------------------------------------------------------------------


def channel_norm(*arguments, outputs=("o",), **more):
    """Runs nrg channel-norm, and loads what it wrote: all of outputs, an underline of whose names is a dash of the option's."""
    run = Run("channel-norm", *arguments, *(part for name in outputs for part in ("--" + name.replace("_", "-"), f"{name}.npy")), **more)
    assert run.status == 0 and not run.out and not run.err, str(run)
    assert not [name for name in os.listdir(".") if name.startswith(".nrg")], "temporary files are left"
    return {name: np.load(f"{name}.npy") for name in outputs}


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
def channel_norms_have_two_grades():
    x = channel_inputs((2, 3, 64, 64), 3)["x"]
    fast, exact = (channel_norm("x.npy", "--over", "instance", *more)["o"] for more in ((), ("--exact",)))
    e = x.astype("f8").reshape(2, 3, -1)
    q = e - e.mean(-1, keepdims=True)
    want = (q / np.sqrt((q * q).mean(-1, keepdims=True) + 1e-5)).reshape(x.shape)
    allowed = np.spacing(np.abs(want).astype("f4")) + 2.0**-24
    assert (np.abs(exact - want) <= allowed).all() and (fast != exact).any() and np.allclose(fast, exact, rtol=4e-7, atol=4e-7)


@test
def batch_norm_of_x_is_the_default():
    x = channel_inputs((5, 3, 7, 6), 3)["x"]
    got = channel_norm("x.npy", outputs=("o", "mean", "rstd"))
    want = Channels(x)
    near(got["o"], want.o, want.size)
    compare_rows(got["mean"], want.statistics(want.mean), (3,))
    compare_rows(got["rstd"], want.statistics(want.rstd), (3,))
    same = Run("channel-norm", "-x", "x.npy", "-o", "p.npy", "--over=batch", "--layout", "nchw", "--eps", "1e-5")
    assert same.status == 0 and open("p.npy", "rb").read() == open("o.npy", "rb").read(), str(same)


@test
def every_kind_of_set_layout_shape_and_activation():
    number = 0
    for dtype in ("f4", "f2"):
        for layout in ("nchw", "nhwc"):
            for positions in ((), (1,), (9,), (4, 5), (2, 3, 4)):
                given = channel_inputs(shape_of(layout, 4, 12, *positions), 12, dtype)
                for over, groups in SETS:
                    if over == "instance" and not positions:
                        continue  # sets of one element: below
                    number += 1
                    options = dict(over=over, groups=groups, layout=layout, act=list(ACTIVATIONS)[number % 9], centred=number % 5 != 0)
                    got = channel_norm("x.npy", "--y", "y.npy", *WEIGHTS, *channel_options(**options), outputs=("o", "mean", "rstd"))
                    want = Channels(*(given[name] for name in "xywb"), **options)
                    assert got["o"].dtype == np.dtype(dtype)
                    near(got["o"], want.o, want.size, f"{dtype} {positions} {options}")
                    for name, value in (("mean", want.mean), ("rstd", want.rstd)):
                        value = want.statistics(value)
                        assert value.shape == {"batch": (12,), "group": (4, groups), "instance": (4, 12), "layer": (4,)}[over]
                        compare_rows(got[name], value, value.shape)


@test
def weights_of_channels_in_either_dtype():
    x, y = draw(3, 8, 5, dtype="f2"), draw(3, 8, 5, dtype="f2")
    for w_dtype in (None, "f2", "f4"):
        for b_dtype in (None, "f2", "f4"):
            w, b = (draw(8, dtype=dtype) if dtype else None for dtype in (w_dtype, b_dtype))
            save(x=x, y=y, **{name: array for name, array in (("w", w), ("b", b)) if array is not None})
            line = [part for name, array in (("w", w), ("b", b)) if array is not None for part in (f"--{name}", f"{name}.npy")]
            got = channel_norm("x.npy", "--y", "y.npy", *line, *channel_options(over="group", groups=2))
            want = Channels(x, y, w, b, over="group", groups=2)
            near(got["o"], want.o, want.size, f"{w_dtype} {b_dtype}")


@test
def sets_of_one_element_are_b():
    given = channel_inputs((4, 6), 6)
    got = channel_norm("x.npy", *WEIGHTS, "--over", "instance", outputs=("o", "mean", "rstd"))
    assert got["o"].tobytes() == np.broadcast_to(given["b"], (4, 6)).tobytes() and got["mean"].tobytes() == given["x"].tobytes()
    compare_rows(got["rstd"], np.full((4, 6), 1e-5**-0.5), (4, 6))
    got = channel_norm("x.npy", "--over", "instance", "--eps", 0, outputs=("o", "rstd"))
    assert not got["o"].any() and not got["rstd"].any()


@test
def layouts_differ_by_an_ulp_and_not_at_all_without_positions():
    x = draw(3, 20, 50)
    save(x=x, t=np.ascontiguousarray(np.moveaxis(x, 1, -1)), flat=x[:, :, 0].copy())
    for over, groups in SETS[:3]:
        line = channel_options(over=over, groups=groups and 4)
        one = channel_norm("x.npy", *line)["o"]
        other = np.moveaxis(channel_norm("t.npy", *channel_options(over=over, groups=groups and 4, layout="nhwc"))["o"], -1, 1)
        assert (np.abs(one - other) <= 2.0**-23 * np.maximum(np.abs(one), 1)).all(), over
        one = channel_norm("flat.npy", *line)["o"]
        assert one.tobytes() == channel_norm("flat.npy", *channel_options(over=over, groups=groups and 4, layout="nhwc"))["o"].tobytes(), over


@test
def inference_of_running_statistics():
    for layout in ("nchw", "nhwc"):
        for over in ("batch", "instance"):
            for dtype in ("f4", "f2"):
                given = channel_inputs(shape_of(layout, 3, 7, 5, 4), 7, dtype)
                running = (draw(7), (draw(7)**2 + 0.1).astype("f4"))
                save(running_mean=running[0], running_var=running[1])
                options = dict(over=over, layout=layout, act="relu")
                got = channel_norm("x.npy", "--y", "y.npy", *WEIGHTS, *RUNNING, *channel_options(**options), outputs=("o", "mean", "rstd"))
                want = Channels(*(given[name] for name in "xywb"), running=running, **options)
                near(got["o"], want.o, want.size, f"{dtype} {options}")
                shape = (7,) if over == "batch" else (3, 7)
                assert got["mean"].tobytes() == np.broadcast_to(running[0], shape).tobytes()
                compare_rows(got["rstd"], want.statistics(want.rstd), shape)


@test
def inference_folded_to_scale_and_shift():
    for dtype in ("f4", "f2"):
        given = channel_inputs((3, 7, 11), 7, dtype)
        running = (draw(7), (draw(7)**2 + 0.1).astype("f4"))
        save(running_mean=running[0], running_var=running[1])
        rstd = 1 / np.sqrt(running[1].astype("f8") + 0.25)
        for weights, w, b in ((WEIGHTS, given["w"], given["b"]), ((), None, None)):
            line = ["x.npy", "--y", "y.npy", *weights, *RUNNING, "--fold", "--eps", "0.25", "--act", "silu"]
            got = channel_norm(*line, outputs=("o", "scale", "shift"))
            scale = rstd * (1 if w is None else w.astype("f8"))
            shift = (0 if b is None else b.astype("f8")) - running[0].astype("f8") * scale
            assert np.allclose(got["scale"], scale, rtol=2.0**-24, atol=0) and got["scale"].dtype == np.dtype("<f4")
            assert np.allclose(got["shift"], shift, rtol=2.0**-23, atol=1e-12) and got["shift"].dtype == np.dtype("<f4")
            want = Channels(given["x"], given["y"], w, b, running=running, eps=0.25, act="silu")
            near(got["o"], want.o, want.size)
            # without the two files
            assert channel_norm(*line)["o"].tobytes() == got["o"].tobytes()


def unbiased(want, x, over):
    a = want.inside(x)
    return a.mean((0, 2)), (a.var((0, 2), ddof=1) if over == "batch" else a.var(2, ddof=1).mean(0))


@test
def training_updates_running_statistics():
    for over in ("batch", "instance"):
        for layout in ("nchw", "nhwc"):
            for momentum in (None, 0.1, 0.75, 0, 1):
                given = channel_inputs(shape_of(layout, 4, 5, 6, 3), 5)
                running = (draw(5), draw(5)**2)
                save(running_mean=running[0], running_var=running[1])
                f = 0.1 if momentum is None else momentum
                line = ["x.npy", *WEIGHTS, *channel_options(over=over, layout=layout)]
                got = channel_norm(*line, *RUNNING, "--train", *(["--momentum", momentum] if momentum is not None else []),
                                   outputs=("o", "mean", *UPDATED))
                want = Channels(given["x"], None, given["w"], given["b"], over=over, layout=layout)
                near(got["o"], want.o, want.size)
                assert got["o"].tobytes() == channel_norm(*line)["o"].tobytes(), "the running statistics have no part in o"
                for new, old, batch in zip(UPDATED, running, unbiased(want, given["x"], over)):
                    exact = (1 - f) * old.astype("f8") + f * batch
                    assert got[new].dtype == np.dtype("<f4") and np.allclose(got[new], exact, rtol=2.0**-23, atol=1e-7), f"{new} {over} {f}"
                for new, old in zip(("running_mean", "running_var"), running):
                    assert np.load(f"{new}.npy").tobytes() == old.tobytes()


@test
def training_starts_with_zero_and_one_and_goes_on_in_place():
    batches = [channel_inputs((4, 5, 6), 5)["x"] + np.float32(i) for i in range(3)]
    mean, var = np.zeros(5), np.ones(5)
    for i, x in enumerate(batches):
        save(x=x)
        channel_norm("x.npy", "--train", *(RUNNING if i else ()), "--running-mean-out", "running_mean.npy", "--running-var-out",
                     "running_var.npy")
        batch = unbiased(Channels(x), x, "batch")
        mean, var = 0.9 * mean + 0.1 * batch[0], 0.9 * var + 0.1 * batch[1]
    assert np.allclose(np.load("running_mean.npy"), mean, rtol=1e-6) and np.allclose(np.load("running_var.npy"), var, rtol=1e-6)


@test
def cumulative_running_statistics_are_the_average():
    batches = [channel_inputs((4, 5, 6), 5)["x"] + np.float32(i) for i in range(4)]
    for i, x in enumerate(batches):
        save(x=x)
        channel_norm("x.npy", "--train", "--cumulative", *(("--batches", i, *RUNNING) if i else ()), "--running-mean-out", "running_mean.npy",
                     "--running-var-out", "running_var.npy")
    each = [unbiased(Channels(x), x, "batch") for x in batches]
    assert np.allclose(np.load("running_mean.npy"), np.mean([mean for mean, _ in each], 0), rtol=1e-6)
    assert np.allclose(np.load("running_var.npy"), np.mean([var for _, var in each], 0), rtol=1e-6)
    # the first batch leaves nothing of what was there before
    got = channel_norm("x.npy", "--train", "--cumulative", "--batches", 0, *RUNNING, outputs=UPDATED + ("o",))
    for new, batch in zip(UPDATED, each[-1]):
        assert np.allclose(got[new], batch, rtol=1e-6), new


@test
def segments_of_channels():
    channel_inputs((6, 24, 40, 9), 24)
    for over, groups in SETS[1:4]:
        line = ["x.npy", *WEIGHTS, "--y", "y.npy", *channel_options(over=over, groups=groups, act="gelu")]
        want = channel_norm(*line)["o"]
        assert channel_norm(*line, "--segment", 4096)["o"].tobytes() == want.tobytes()
        assert np.allclose(channel_norm(*line, "--segment", 100)["o"], want, rtol=1e-6, atol=1e-6)
    # within a segment, in double, 2^60 swallows the 1 that it meets; segments are added exactly
    save(x=np.array([[[2.0**60, -2.0**60, 1, 0, 0, 0, 0, 0]]], "f4"))
    for segment, mean in ((None, 0), (4096, 0), (1, 1 / 8)):
        line = ["--segment", segment] if segment else []
        assert channel_norm("x.npy", "--over", "layer", *line, outputs=("o", "mean"))["mean"] == mean, segment


@test
def backward_of_every_kind_of_set_layout_and_activation():
    number = 0
    for dtype in ("f4", "f2"):
        for layout in ("nchw", "nhwc"):
            for positions in ((), (9,), (4, 5)):
                given = channel_inputs(shape_of(layout, 5, 12, *positions), 12, dtype)
                do = given.pop("do")
                for over, groups in SETS:
                    number += 1
                    options = dict(over=over, groups=groups, layout=layout, act=list(ACTIVATIONS)[number % 9], centred=number % 5 != 0, eps=0.01)
                    got = channel_norm("--backward", "x.npy", "--y", "y.npy", *WEIGHTS, "--do", "do.npy", *channel_options(**options),
                                       outputs=CHANNEL_GRADIENTS)
                    want = Channels(*(given[name] for name in "xywb"), **options).backward(do)
                    for name, gradient in got.items():
                        assert gradient.dtype == np.dtype(dtype if name in ("dx", "dy") else "f4")
                        near(gradient, *want[name], f"{name} {dtype} {positions} {options}")


@test
def backward_of_many_samples_and_each_gradient_alone():
    """More samples than there are blocks of them."""
    given = channel_inputs((150, 6, 4), 6)
    for over, groups in SETS[:3]:
        line = ["--backward", "x.npy", "--y", "y.npy", *WEIGHTS, "--do", "do.npy", *channel_options(over=over, groups=groups, act="silu")]
        got = channel_norm(*line, outputs=CHANNEL_GRADIENTS)
        want = Channels(*(given[name] for name in "xywb"), over=over, groups=groups, act="silu").backward(given["do"])
        for name in CHANNEL_GRADIENTS:
            near(got[name], *want[name], f"{name} {over}")
            assert channel_norm(*line, outputs=(name,))[name].tobytes() == got[name].tobytes(), name
        for isa in re.findall(r"^  (\w+) +yes +yes$", Run("info").out, re.M):
            same = channel_norm(*line, "--isa", isa, "--store", "stream", outputs=CHANNEL_GRADIENTS)
            for name in CHANNEL_GRADIENTS:
                assert same[name].tobytes() == got[name].tobytes(), f"{isa} {name}"


@test
def backward_of_running_statistics():
    for over in ("batch", "instance"):
        for layout in ("nchw", "nhwc"):
            given = channel_inputs(shape_of(layout, 3, 7, 5), 7)
            running = (draw(7), (draw(7)**2 + 0.1).astype("f4"))
            save(running_mean=running[0], running_var=running[1])
            options = dict(over=over, layout=layout, act="tanh")
            got = channel_norm("--backward", "x.npy", "--y", "y.npy", *WEIGHTS, *RUNNING, "--do", "do.npy", *channel_options(**options),
                               outputs=CHANNEL_GRADIENTS)
            want = Channels(*(given[name] for name in "xywb"), running=running, **options).backward(given["do"])
            for name, gradient in got.items():
                near(gradient, *want[name], f"{name} {options}")


@test
def backward_of_channels_is_the_slope_of_forward():
    """Against the forward formula alone: differences of o·do, each way a step of every input."""
    ways = [dict(over=over, groups=groups, layout=layout, centred=centred, eps=0.1) for layout in ("nchw", "nhwc") for centred in (True, False)
            for over, groups in (("batch", 1), ("group", 2), ("instance", 1), ("layer", 1))]
    ways += [dict(over="group", groups=2, act=act) for act in ACTIVATIONS if act != "relu"]
    ways += [dict(act="silu", running=True), dict(over="instance", running=True)]
    for options in ways:
        given = {**channel_inputs(shape_of(options.get("layout", "nchw"), 3, 4, 5), 4)}
        do, running = given.pop("do"), ()
        if options.pop("running", False):
            options["running"] = (draw(4), (draw(4)**2 + 0.5).astype("f4"))
            save(running_mean=options["running"][0], running_var=options["running"][1])
            running = RUNNING
        line = channel_options(**{name: value for name, value in options.items() if name != "running"})
        got = channel_norm("--backward", "x.npy", "--y", "y.npy", *WEIGHTS, "--do", "do.npy", *running, *line, outputs=CHANNEL_GRADIENTS)
        given = {name: array.astype("f8") for name, array in given.items()}
        for name, array in given.items():
            slope, step = np.zeros_like(array), 1e-5
            for index in np.ndindex(array.shape):
                value = array[index]
                ends = []
                for array[index] in (value + step, value - step):
                    ends.append((Channels(**given, **options).o * do).sum())
                array[index] = value
                slope[index] = (ends[0] - ends[1]) / (2 * step)
            error = np.abs(got[f"d{name}"] - slope).max()
            assert error <= 1e-5 * (1 + np.abs(slope).max()), f"d{name} {options}: off by {error:.3g}"


# ---- results of sandwich ----------------------------------------------------------------------------------------------------------


@test
def sandwich_is_two_norms_in_turn():
    for number, (one, two) in enumerate((("rms", "rms"), ("layer", "rms"), ("rms", "layer"), ("l2", "rms"))):
        dtype = ("f4", "f2")[number % 2]
        x, y, do, dr = (draw(3, 5, 24, dtype=dtype) for _ in range(4))
        save(x=x, y=y, do=do, dr=dr, **{name: draw(24, dtype=dtype) for name in ("w1", "b1", "w2", "b2")})
        kinds = ("--norm1", one, "--norm2", two)
        weights = [part for name in ("w1", "b1", "w2", "b2") for part in (f"--{name}", f"{name}.npy")]
        o, r = done("sandwich", "x.npy", "--y", "y.npy", *kinds, *weights, outputs=("o", "r"))
        again = done("norm", "x.npy", "--y", "y.npy", "--residual", "after", f"--{one}", "--w", "w1.npy", "--b", "b1.npy")
        assert again.tobytes() == r.tobytes(), kinds
        save(r=r)
        assert done("norm", "r.npy", f"--{two}", "--w", "w2.npy", "--b", "b2.npy").tobytes() == o.tobytes(), kinds
        for isa in re.findall(r"^  (\w+) +yes +yes$", Run("info").out, re.M):
            assert done("sandwich", "x.npy", "--y", "y.npy", *kinds, *weights, "--isa", isa).tobytes() == o.tobytes(), isa
        names = ("dx", "dy", "dw1", "db1", "dw2", "db2")
        got = dict(zip(names, done("sandwich", "--backward", "x.npy", "--r-in", "r.npy", "--do", "do.npy", "--dr-in", "dr.npy", *kinds,
                                   "--w1", "w1.npy", "--w2", "w2.npy", outputs=names)))
        second = done("norm", "--backward", "--r-in", "r.npy", "--do", "do.npy", "--dr-in", "dr.npy", f"--{two}", "--w", "w2.npy", outputs=("dx", "dw", "db"))
        save(through=second[0])
        first = done("norm", "--backward", "x.npy", "--do", "through.npy", f"--{one}", "--w", "w1.npy", outputs=("dx", "dw", "db"))
        for name, want in zip(names, (first[0], second[0], *first[1:], *second[1:])):
            assert got[name].tobytes() == want.tobytes(), f"{name} of {kinds}"
    save(none=np.zeros((0, 4), "f4"))
    assert done("sandwich", "none.npy", "--y", "none.npy").shape == (0, 4)


# ---- results of glu ---------------------------------------------------------------------------------------------------------------


def glu_of(a, b, act="silu", limit=math.inf, offset=0.0, alpha=1.702):
    """o, and the gradients of a and b for do = 1, in double precision."""
    u, v = np.minimum(a.astype("f8"), limit), np.clip(b.astype("f8"), -limit, limit) + offset
    g, slope = ACTIVATIONS[act]
    if act == "gelu_quick":
        g = lambda v: v * SIGMOID(alpha * v)
        slope = lambda v: SIGMOID(alpha * v) * (1 + alpha * v * SIGMOID(-alpha * v))
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


# ---- results of quantize ---------------------------------------------------------------------------------------------------------


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
def quantize_to_int8_and_back():
    x = draw(5, 70)
    save(x=x)
    for name, group in (("int8", 70), ("int8_32", 32), ("int8_64", 64), ("int8_128", 128)):
        q, scales = done("quantize", "x.npy", "--format", name, outputs=("packed", "scales"))
        assert q.dtype == np.int8 and q.shape == x.shape and scales.dtype == np.float32 and scales.shape == (5, -(-70 // group))
        save(q=q, scales=scales)
        each = np.repeat(scales, group, -1)[:, :70]
        assert np.abs(x - each * q).max() <= scales.max() * 0.50002 and np.abs(q).max() == 127
        assert np.array_equal(done("dequantize", "q.npy", "--scales", "scales.npy", "--format", name), each * q)
        half = done("dequantize", "q.npy", "--scales", "scales.npy", "--format", name, "--dtype", "f2")
        assert half.dtype == np.float16 and np.array_equal(half, (each * q).astype("f2"))
    save(wide=draw(2, 512), none=np.zeros((0, 256), "f4"))
    q = done("quantize", "wide.npy", "--format", "q8_K", outputs=("packed",))
    assert q.shape == (2, 584)
    save(q=q)
    assert np.abs(done("dequantize", "q.npy", "--format", "q8_K") - np.load("wide.npy")).max() < 0.02
    assert done("quantize", "none.npy", "--format", "q8_K", outputs=("packed",)).shape == (0, 292)


@test
def norms_and_glu_write_the_bytes_of_quantize():
    save(x=draw(2, 8, 256), y=draw(2, 8, 256), w=draw(256), half=draw(3, 256, dtype="f2"))
    for name, outputs in (("q8_0", ("packed",)), ("q8_K_4x8", ("packed",)), ("int8_64", ("packed", "scales")), ("int8", ("packed", "scales"))):
        for line in (("norm", "x.npy", "--y", "y.npy", "--w", "w.npy"), ("norm", "--layer", "x.npy", "--act", "gelu"), ("glu", "x.npy", "--b", "y.npy"),
                     ("sandwich", "x.npy", "--y", "y.npy", "--w1", "w.npy", "--r", "r.npy")):
            save(o=done(*line))
            for away in ((), ("--away",)):
                wanted = done("quantize", "o.npy", "--format", name, *away, outputs=outputs)
                got = done(*line, "--format", name, *away, outputs=outputs)
                for one, other in zip(got, wanted) if len(outputs) > 1 else ((got, wanted),):
                    assert one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes(), (line, name)
    for isa in re.findall(r"^  (\w+) +yes +yes$", Run("info").out, re.M):
        assert done("norm", "half.npy", "--format", "q8_0", "--isa", isa, outputs=("packed",)).tobytes() == done("norm", "half.npy", "--format", "q8_0", outputs=("packed",)).tobytes(), isa


# ---- results of qkv ---------------------------------------------------------------------------------------------------------------


@test
def qkv_is_a_norm_a_rotation_and_slots():
    for number, (mode, norm) in enumerate((mode, norm) for mode in ("normal", "neox") for norm in ((), ("--norm", "rms"))):
        dtype = ("f4", "f2")[number // 2]
        q, k, v, w = draw(5, 3, 16, dtype=dtype), draw(5, 2, 16, dtype=dtype), draw(5, 2, 7, dtype=dtype), draw(16)
        k_cache, v_cache = draw(9, 2, 16, dtype="f2"), draw(9, 2, 7)
        slots, positions = np.array([8, 1, 0, 5, 3]), np.array([3, 4, 100, -7, 8], "i4")
        save(q=q, k=k, v=v, w=w, kc=k_cache, vc=v_cache, slots=slots, positions=positions, q32=q.astype("f4"), k32=k.astype("f4"))
        turn = ("--mode", mode, "--positions", "positions.npy", "--freq-base", 500000, *norm)
        weights = ("--q-w", "w.npy", "--k-w", "w.npy") if norm else ()
        q_o, k_o, v_o = done("qkv", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--k-cache", "kc.npy", "--v-cache", "vc.npy", "--slots", "slots.npy",
                             *turn, *weights, outputs=("q-o", "k-o", "v-o"))
        # the same in f32, step by step
        of_q, of_k = (done("rope", f"{x}32.npy", *turn, *(("--w", "w.npy") if norm else ())) for x in "qk")
        k_cache[slots], v_cache[slots] = of_k.astype("f2"), v
        for got, wanted in ((q_o, of_q.astype(dtype)), (k_o, k_cache), (v_o, v_cache)):
            assert got.dtype == wanted.dtype and got.tobytes() == wanted.tobytes(), (mode, norm)
        # a padding token
        k_cache[0], v_cache[0] = 7, 7
        save(kc=k_cache, vc=v_cache, slots=np.array([8, 1, -1, 5, 3]))
        for got, wanted in zip(done("qkv", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--k-cache", "kc.npy", "--v-cache", "vc.npy", "--slots", "slots.npy",
                                    *turn, *weights, outputs=("q-o", "k-o", "v-o")), (q_o, k_cache, v_cache)):
            assert got.tobytes() == wanted.tobytes(), (mode, norm)
        for isa in re.findall(r"^  (\w+) +yes +yes$", Run("info").out, re.M):
            assert done("qkv", "--q", "q.npy", *turn, *weights[:2], "--isa", isa, outputs=("q-o",)).tobytes() == q_o.tobytes(), isa
    save(none=np.zeros((0, 4, 8), "f4"))
    assert done("qkv", "--q", "none.npy", outputs=("q-o",)).shape == (0, 4, 8)
    assert done("qkv", "--v", "v.npy", outputs=("v-o",)).tobytes() == v.tobytes()


# ---- results of softmax ------------------------------------------------------------------------------------------------------------


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


# ---- results of rope -------------------------------------------------------------------------------------------------------------


def done(command, *arguments, outputs=("o",), **more):
    """A run that succeeds without a word, and what it wrote."""
    run = Run(*command.split(), *arguments, *(part for name in outputs for part in (f"--{name}", f"{name}.npy")), **more)
    assert run.status == 0 and not run.out and not run.err, str(run)
    assert not [name for name in os.listdir(".") if name.startswith(".nrg")], "temporary files are left"
    found = [np.load(f"{name}.npy") for name in outputs]
    return found[0] if len(found) == 1 else found


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
def rope_positions_of_files_and_counted():
    x = draw(5, 2, 8)
    save(x=x, wide=np.arange(5) + 70, narrow=np.arange(70, 75, dtype="i4"), row=np.arange(70, 75)[None])
    for first, count in ((70, 5), (-3, 5), (2**31 - 5, 5), (-2**31, 5)):
        o = done("rope", "x.npy", "--first-position", first)
        want, size = Angles(np.arange(first, first + count), 8).turn(x)
        near(o, want, size * (1 if abs(first) < 100 else 64), str(first))
    counted = done("rope", "x.npy", "--first-position", 70)
    for name in ("wide", "narrow", "row"):
        assert done("rope", "x.npy", "--positions", f"{name}.npy").tobytes() == counted.tobytes(), name
    assert done("rope", "x.npy").tobytes() == done("rope", "x.npy", "--first-position", "0").tobytes()
    # one position for all axes is the rotation without sections
    plain = done("rope", "x.npy", "--mode", "neox", "--first-position", 70)
    for mode in ("mrope", "imrope", "imrope-time"):
        assert done("rope", "x.npy", "--mode", mode, "--sections", "2,1,1", "--positions", "wide.npy").tobytes() == plain.tobytes(), mode
    assert done("rope", "--table", "--n-dims", 8, "--tokens", 5, "--first-position", 70).tobytes() == done("rope", "--table", "--n-dims", 8, "--positions",
                                                                                                 "wide.npy").tobytes()


@test
def rope_layouts_change_no_bit():
    x = draw(7, 3, 40, dtype="f2")
    save(x=x, t=np.ascontiguousarray(np.moveaxis(x, 0, 1)), one=x[:, :1], none=x[:, 0])
    o = done("rope", "x.npy", "--mode", "neox", "--first-position", 3)
    assert np.moveaxis(done("rope", "t.npy", "--heads-first", "--mode", "neox", "--first-position", 3), 0, 1).tobytes() == o.tobytes()
    assert done("rope", "one.npy").tobytes() == done("rope", "none.npy").tobytes()


@test
def rope_backward_turns_back():
    x = draw(7, 3, 40)
    save(x=x)
    done("rope", "x.npy", "--first-position", 1000, outputs=("o",))
    near(done("rope", "--backward", "o.npy", "--first-position", 1000), x.astype("f8"), 2 * np.abs(x).max() * np.ones(x.shape))


@test
def rope_after_a_norm_has_the_bits_of_the_two():
    for dtype in ("f4", "f2"):
        x, w, b = draw(6, 3, 64, dtype=dtype), draw(64, dtype=dtype), draw(64)
        save(x=x, w=w, b=b)
        for kind, line in (("rms", ("--w", "w.npy", "--eps", "1e-3")), ("rms", ()), ("layer", ("--w", "w.npy", "--b", "b.npy")), ("l2", ()),
                           ("layer", ("--b", "b.npy")), ("rms", ("--w", "w.npy", "--weight-offset", 1))):
            o = done("rope", "--norm", kind, *line, "x.npy", "--mode", "neox", "--first-position", 9)
            norm(f"--{kind}", *line, "x.npy", "--o", "n.npy")
            assert o.tobytes() == done("rope", "n.npy", "--mode", "neox", "--first-position", 9).tobytes(), f"{dtype} {kind} {line}"
            assert o.tobytes() != x.tobytes()


# ---- results of position ---------------------------------------------------------------------------------------------------------


def sinusoidal(positions, dim, base=1e4, layout="interleaved", to_base=()):
    exponents = np.arange(dim // 2) / (dim // 2 - 1) if to_base else 2 * np.arange((dim + 1) // 2) / dim
    angle = np.asarray(positions, "f8")[:, None] * base**-exponents
    if layout == "concatenated":
        return np.concatenate([np.sin(angle), np.cos(angle)], -1)
    if layout == "cosines-first":
        return np.concatenate([np.cos(angle), np.sin(angle)], -1)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(len(angle), -1)[:, :dim]


@test
def sinusoidal_tables_and_sums():
    save(p=np.array([5, 0, 100000, -7, 2], "i4"))
    for dim, layout, base, *to_base in ((8, "interleaved", 1e4), (7, "interleaved", 1e4), (12, "concatenated", 1e4), (64, "interleaved", 500.0),
                                        (12, "concatenated", 1e4, "--to-base"), (8, "cosines-first", 1e4, "--to-base"), (8, "cosines-first", 1e4)):
        line = ("--layout", layout, "--base", base, *to_base)
        want = sinusoidal(np.arange(9) + 3, dim, base, layout, to_base)
        table = done("position sinusoidal", "--rows", 9, "--dim", dim, "--first-position", 3, *line)
        assert table.dtype == np.float32
        near(table, want, np.ones((9, dim)))
        half = done("position sinusoidal", "--rows", 9, "--dim", dim, "--first-position", 3, "--dtype", "f16", *line)
        assert half.tobytes() == table.astype("f2").tobytes()
        near(done("position sinusoidal", "--dim", dim, "--positions", "p.npy", *line), sinusoidal(np.load("p.npy"), dim, base, layout, to_base), np.ones((5, dim)))
        for shape in ((9, dim), (2, 9, dim), (2, 3, 9, dim)):
            for dtype in ("f4", "f2"):
                x = draw(*shape, dtype=dtype)
                save(x=x)
                o = done("position sinusoidal", "x.npy", "--first-position", 3, *line)
                assert o.dtype == x.dtype and o.tobytes() == (x.astype("f4") + table).astype(dtype).tobytes()
    for shape in ((0, 4), (3, 0, 4), (3, 0)):
        np.save("x.npy", np.zeros(shape, "f4"))
        assert done("position sinusoidal", "x.npy").shape == shape
    assert done("position sinusoidal", "--rows", 0, "--dim", 4).shape == (0, 4)


@test
def learned_positions():
    for dtype, table_dtype in (("f4", "f4"), ("f2", "f2"), ("f2", "f4")):
        x, table = draw(3, 5, 24, dtype=dtype), draw(11, 24, dtype=table_dtype)
        save(x=x, table=table, p=np.array([10, 0, 3, 3, 9]), q=random.integers(0, 11, (3, 5)).astype("i4"))
        sum_of = lambda ids, scale=1: (x.astype("f4") + (np.float32(scale) * table.astype("f4"))[ids]).astype(dtype).tobytes()
        line = ("x.npy", "--table", "table.npy")
        assert done("position learned", *line).tobytes() == sum_of(np.arange(5))
        assert done("position learned", *line, "--first", 6).tobytes() == sum_of(np.arange(6, 11))
        assert done("position learned", *line, "--positions", "p.npy").tobytes() == sum_of(np.load("p.npy"))
        assert done("position learned", *line, "--positions", "q.npy", "--scale", 4.9).tobytes() == sum_of(np.load("q.npy"), 4.9)
        assert done("position learned", *line, "--scale", 0).tobytes() == x.tobytes()
        rows = done("position learned", "--table", "table.npy", "--positions", "q.npy")
        assert rows.dtype == table.dtype and rows.tobytes() == table[np.load("q.npy")].tobytes()
        for ids, line in ((np.broadcast_to(np.arange(2, 7), (3, 5)), ("--first", 2)), (np.load("q.npy"), ("--positions", "q.npy", "--scale", 0.5))):
            d_table = done("position learned", "--backward", "x.npy", "--rows", 13, *line)
            want, size = np.zeros((13, 24)), np.zeros((13, 24))
            np.add.at(want, ids, x.astype("f8") * (0.5 if "--scale" in line else 1))
            np.add.at(size, ids, np.abs(x.astype("f8")))
            near(d_table, want, size)
    np.save("x.npy", np.zeros((0, 5, 24), "f4"))
    assert done("position learned", "x.npy", "--table", "table.npy").shape == (0, 5, 24)
    assert not done("position learned", "--backward", "x.npy", "--rows", 4).any()


@test
def embedding_of_tokens_positions_and_types():
    for dtype in ("f4", "f2"):
        tables = {"t": draw(20, 48, dtype=dtype), "p": draw(9, 48, dtype=dtype), "s": draw(2, 48, dtype=dtype)}
        w, b = draw(48), draw(48, dtype=dtype)
        for shape in ((6,), (3, 6), (2, 2, 6)):
            ids, types = random.integers(0, 20, shape), random.integers(0, 2, shape).astype("i4")
            save(ids=ids, types=types, row=np.array([8, 1, 1, 0, 2, 5]), w=w, b=b, **tables)
            f4 = {name: table.astype("f4") for name, table in tables.items()}
            line = ("ids.npy", "--table", "t.npy")
            add = lambda *terms: np.broadcast_to(sum(terms[1:], terms[0]), (*shape, 48)).astype(dtype)
            tokens, counted = f4["t"][ids], f4["p"][np.arange(6) + 3]
            for more, want in (((), add(tokens)), (("--scale", 3), add(np.float32(3) * tokens)),
                               (("--position-table", "p.npy", "--first", 3), add(tokens, counted)),
                               (("--position-table", "p.npy", "--positions", "row.npy"), add(tokens, f4["p"][np.load("row.npy")])),
                               (("--type-table", "s.npy", "--types", "types.npy"), add(tokens, f4["s"][types])),
                               (("--position-table", "p.npy", "--first", 3, "--type-table", "s.npy", "--types", "types.npy"),
                                add(tokens, counted, f4["s"][types]))):
                o = done("position embedding", *line, *more)
                assert o.dtype == np.dtype(dtype) and o.shape == want.shape and o.tobytes() == want.tobytes(), f"{more} {shape} {dtype}"
                # the norm of what comes out has the bits of the fused call
                for kind, weights in (("layer", ("--w", "w.npy", "--b", "b.npy")), ("rms", ("--eps", 0.1)), ("l2", ())):
                    done("position embedding", *line, *more)
                    norm(f"--{kind}", *weights, "o.npy", "--o", "n.npy")
                    assert done("position embedding", *line, *more, "--norm", kind, *weights).tobytes() == np.load("n.npy").tobytes(), kind


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
            assert done("position rnn", "--backward", "--w", "w.npy", "--p0", "p0.npy", "--p", "p.npy", "--dp", "dp.npy",
                        outputs=("db",)).tobytes() == db.tobytes()
    assert done("position rnn", "--w", "w.npy", "--p0", "p0.npy", "--positions", 0).shape == (3, 0, 20)


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
        heads, queries, keys = 3, 7, 50
        distance = distances(queries, keys, offset)
        bucket = np.vectorize(lambda d: t5_bucket(int(d), not causal, buckets, max_distance))(distance)
        line = ("--max-distance", max_distance, "--first-position", offset, *(("--one-sided",) if causal else ()))
        for dtype in ("f4", "f2"):
            beta, scores = draw(buckets, heads, dtype=dtype), draw(2, heads, queries, keys, dtype=dtype)
            save(beta=beta, scores=scores, one=scores[0])
            want = np.moveaxis(beta.astype("f4")[bucket], -1, 0)
            bias = done("position t5", "beta.npy", "--queries", queries, "--keys", keys, *line)
            assert bias.dtype == np.float32 and bias.tobytes() == np.ascontiguousarray(want).tobytes()
            o = done("position t5", "beta.npy", "--scores", "scores.npy", *line)
            assert o.dtype == scores.dtype and o.tobytes() == (scores.astype("f4") + want).astype(dtype).tobytes()
            assert done("position t5", "beta.npy", "--scores", "one.npy", *line).tobytes() == o[0].tobytes()
            near(done("position t5", "beta.npy", "--scores", "scores.npy", "--scale", 0.3, *line), np.float32(0.3) * scores.astype("f8") + want,
                 np.abs(scores) + np.abs(want))
            masked = done("position t5", "beta.npy", "--queries", queries, "--keys", keys, "--causal", *line)
            assert masked.tobytes() == np.where(distance > 0, np.float32(-np.inf), want).tobytes()
            d_beta = done("position t5", "--backward", "--scores", "scores.npy", "--buckets", buckets, *line)
            want, size = np.zeros((buckets, heads)), np.zeros((buckets, heads))
            for h in range(heads):
                np.add.at(want[:, h], np.broadcast_to(bucket, (2, queries, keys)), scores[:, h].astype("f8"))
                np.add.at(size[:, h], np.broadcast_to(bucket, (2, queries, keys)), np.abs(scores[:, h].astype("f8")))
            assert d_beta.dtype == np.float32
            near(d_beta, want, size)


@test
def t5_lists_its_buckets():
    for line, buckets, causal, most in (((), 32, False, 128), (("--one-sided",), 32, True, 128), (("--buckets", 9, "--max-distance", 30), 9, False, 30),
                                        (("--one-sided", "--buckets", 2, "--max-distance", 2), 2, True, 2)):
        run = Run("position", "t5", "--list", *line)
        assert run.status == 0 and not run.err, str(run)
        found = {}
        for bucket, first, last in re.findall(r"^ +(\d+)  (-?\d+|\.\.\.)(?: to (-?\d+|\.\.\.))?$", run.out, re.M):
            first, last = (sign * 3 * most if text == "..." else int(text) for text, sign in ((first, -1), (last or first, 1)))
            found.update({distance: int(bucket) for distance in range(first, last + 1)})
        assert len(run.out.splitlines()) <= buckets
        assert found == {d: t5_bucket(d, not causal, buckets, most) for d in range(-3 * most, 3 * most + 1) if d <= 0 or not causal or d in found}, run.out
        assert set(range(-3 * most, 1)) <= set(found)


@test
def t5_lists_the_buckets_of_any_distance_at_once():
    most = 2**31 - 1
    for buckets, causal in ((32, False), (32, True), (1000, False)):
        run = Run("position", "t5", "--list", "--max-distance", most, "--buckets", buckets, *(("--one-sided",) if causal else ()), timeout=60)
        assert run.status == 0 and not run.err, str(run)
        end = None
        for line in run.out.splitlines():
            bucket, first, last = re.fullmatch(r" +(\d+)  (-?\d+|\.\.\.)(?: to (-?\d+|\.\.\.))?", line).groups()
            first, last = (sign * most if text == "..." else int(text) for text, sign in ((first, -1), (last or first, 1)))
            assert end is None or first == end + 1, line
            end = last if (last != most or not causal) else 0
            for distance in (first, end):
                assert t5_bucket(distance, not causal, buckets, most) == int(bucket), (line, distance)


@test
def alibi_slopes_and_biases():
    def slopes_of(heads, max_bias=8.0):
        power = 2**int(np.log2(heads))
        even = 2.0**(-max_bias * np.arange(1, power + 1) / power)
        return np.concatenate([even, 2.0**(-max_bias * np.arange(1, 2 * power + 1) / (2 * power))[::2]])[:heads]

    for heads, line in ((8, ()), (1, ()), (12, ()), (5, ("--max-bias", 3)), (16, ("--max-bias", 0))):
        want = slopes_of(heads, line[1] if line else 8)
        slopes = done("position alibi", "--heads", heads, *line)
        assert slopes.dtype == np.float32
        near(slopes, want, want / 10)
        distance = distances(6, 11, 5)
        bias = done("position alibi", "--heads", heads, "--queries", 6, "--keys", 11, *line)
        assert bias.dtype == np.float32
        near(bias, -want[:, None, None] * np.abs(distance), want[:, None, None] * np.abs(distance))
        scores = draw(2, heads, 6, 11, dtype="f2")
        save(scores=scores, slopes=slopes, other=draw(heads))
        o = done("position alibi", "--scores", "scores.npy", "--first-position", 5, *line)
        assert o.dtype == np.float16 and o.tobytes() == (scores.astype("f4") + bias).astype("f2").tobytes()
        assert done("position alibi", "--scores", "scores.npy", "--first-position", 5, "--slopes", "slopes.npy").tobytes() == o.tobytes()
        own = done("position alibi", "--slopes", "other.npy", "--queries", 6, "--keys", 11, "--causal", "--first-position", 0)
        masked = np.where(distances(6, 11) > 0, np.float32(-np.inf), -np.load("other.npy")[:, None, None] * np.abs(distances(6, 11)))
        assert np.array_equal(own, masked.astype("f4")), "other slopes"


@test
def shaw_scores_and_values():
    for dtype in ("f4", "f2"):
        q, a, add_s, add_o = (draw(2, 3, 5, n, dtype=dtype) for n in (16, 9, 9, 16))
        for table, p_min, offset in ((draw(7, 16), -3, 0), (draw(3, 7, 16, dtype=dtype), -3, 4), (draw(1, 16), 0, 0), (draw(30, 16), -14, -2)):
            save(q=q, a=a, r=table, s=add_s, v=add_o)
            classes = table.shape[-2]
            for least in (None, p_min, p_min - 2, p_min + 3):
                index = np.clip(-distances(5, 9, offset), p_min if least is None else least, (p_min if least is None else least) + classes - 1)
                index = index - (p_min if least is None else least)
                rows = np.broadcast_to(table, (3, classes, 16)).astype("f8")[:, index]
                line = ("--table", "r.npy", *(() if offset == 9 - 5 else ("--first-position", offset)), *(() if least is None else ("--p-min", least)))
                want, size = (np.einsum("bhid,hijd->bhij", f(q.astype("f8")), f(rows)) for f in (lambda v: v, np.abs))
                for more, sum_of in (((), 0), (("--add", "s.npy"), add_s.astype("f8"))):
                    o = done("position shaw", "q.npy", "--keys", 9, *line, *more)
                    assert o.dtype == q.dtype
                    near(o, want + sum_of, size + np.abs(sum_of))
                want, size = (np.einsum("bhij,hijd->bhid", f(a.astype("f8")), f(rows)) for f in (lambda v: v, np.abs))
                for more, sum_of in (((), 0), (("--add", "v.npy"), add_o.astype("f8"))):
                    near(done("position shaw", "--values", "a.npy", *line, *more), want + sum_of, size + np.abs(sum_of))


@test
def shifts_of_transformer_xl_and_xlnet():
    queries, keys = 5, 8
    for dtype in ("f4", "f2"):
        for kind, rel, shift in (("transformer-xl", keys, queries - 1), ("xlnet", queries + keys, queries)):
            x, d_scores = draw(2, 3, queries, rel, dtype=dtype), draw(2, 3, queries, keys, dtype=dtype)
            save(x=x, d=d_scores, s=draw(2, 3, queries, keys, dtype=dtype), t=draw(2, 3, queries, rel, dtype=dtype))
            want, back = np.zeros_like(d_scores), np.zeros_like(x)
            for i in range(queries):
                for j in range(keys):
                    if 0 <= j - i + shift < rel:
                        want[..., i, j], back[..., i, j - i + shift] = x[..., i, j - i + shift], d_scores[..., i, j]
            line = ("--kind", kind)
            assert done("position shift", "x.npy", *line).tobytes() == want.tobytes(), kind
            assert done("position shift", "--backward", "d.npy", *line).tobytes() == back.tobytes(), kind
            assert done("position shift", "x.npy", "--shift", shift, "--keys", keys).tobytes() == want.tobytes()
            assert done("position shift", "--backward", "d.npy", "--shift", shift, "--rel", rel).tobytes() == back.tobytes()
            assert done("position shift", "x.npy", "--add", "s.npy", *line).tobytes() == (np.load("s.npy").astype("f4") + want).astype(dtype).tobytes()
            assert done("position shift", "--backward", "d.npy", "--add", "t.npy", *line).tobytes() == (np.load("t.npy").astype("f4") + back).astype(
                dtype).tobytes()


# ---- refusals ------------------------------------------------------------------------------------------------------------------


def write_npy(name, header, data=b"", version=1, length=None, minor=0):
    raw = header if isinstance(header, bytes) else header.encode()
    length = len(raw) if length is None else length
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY" + bytes([version, minor]) + length.to_bytes(2 if version == 1 else 4, "little") + raw + data)


def with_old_outputs():
    save(x=draw(3, 16))
    for name in ("o.npy", "r.npy", "m.npy", "s.npy"):
        open(name, "w").write("old " + name)
    return ("--o", "o.npy", "--r", "r.npy", "--mean", "m.npy", "--rstd", "s.npy")


@test
def refuses_what_is_no_npy_file():
    outputs = with_old_outputs()
    good = open("x.npy", "rb").read()
    os.mkdir("directory")
    for name, content, says in (("empty", b"", "not a .npy"), ("text", b"hello, this is no array", "not a .npy"),
                                ("short", good[:7], "not a .npy"), ("zip", b"PK\3\4" + good[4:], "not a .npy"),
                                ("version 9", good[:6] + b"\x09\0" + good[8:], "got 9.0"),
                                ("version 1.1", good[:6] + b"\1\1" + good[8:], "got 1.1")):
        open("bad", "wb").write(content)
        refused("norm", "bad", *outputs, says=says)
    refused("norm", "missing.npy", *outputs, says="missing.npy: No such file")
    refused("norm", "directory", *outputs, says="not a regular file")
    refused("norm", "/dev/zero", *outputs, says="not a regular file")
    refused("norm", "", *outputs, says="No such file")
    refused("norm", "new\nline", *outputs, says="new?line")


@test
def refuses_a_pipe_without_waiting_for_it():
    os.mkfifo("pipe")
    run = Run("norm", "pipe", "--o", "o.npy")
    one_line(run)
    assert run.status == 2 and os.listdir(".") == ["pipe"], str(run)


@test
def refuses_truncated_files_at_every_byte():
    save(x=draw(2, 3))
    good = open("x.npy", "rb").read()
    for length in range(len(good)):
        open("cut.npy", "wb").write(good[:length])
        refused("norm", "cut.npy", "--o", "o.npy", says="cut.npy: ")
    open("cut.npy", "wb").write(good)
    norm("cut.npy", "--o", "o.npy")


@test
def refuses_too_much_data():
    outputs = with_old_outputs()
    good = open("x.npy", "rb").read()
    for more in (b"\0", good):
        open("long.npy", "wb").write(good + more)
        refused("norm", "long.npy", *outputs, says="too long")


@test
def refuses_hostile_headers():
    outputs = with_old_outputs()

    def dict_of(shape="(3, 16)", descr="'<f4'", order="False", more=""):
        return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}{more}, }}"

    data = bytes(3 * 16 * 4)
    write_npy("good.npy", dict_of(), data)
    norm("good.npy", "--o", "fine.npy")
    for shape in ("(3, -16)", "(3 16)", "(3, 16", "3, 16)", "(48)", "48", "[3, 16]", "(3,, 16)", "(,)", "(,3, 16)", "(3.0, 16)",
                  "(0x3, 16)", "(03, 16)", "(3_0, 16)", "(99999999999999999999999, 16)", "(18446744073709551616,)", "()()", "None", "(3, 16),",
                  "(" + "1, " * 65 + "48)", "(3, 'a')", ""):
        write_npy("bad.npy", dict_of(shape=shape), data)
        refused("norm", "bad.npy", *outputs, says="broken .npy header")
    for shape in ("(18446744073709551615, 16)", "(4294967296, 4294967296)", "(4611686018427387904, 4)", "(4611686018427387904,)",
                  "(2305843009213693952, 8, 3)", "(2305843009213693952, 0, 16)"):
        write_npy("bad.npy", dict_of(shape=shape), data)
        refused("norm", "bad.npy", *outputs, says="does not fit in memory")
    for shape in ("(1000000000000, 16)", "(3, 17)", "(3, 15)", "(2305843009213693951,)", "(0, 16)", "()"):
        write_npy("bad.npy", dict_of(shape=shape), data)
        refused("norm", "bad.npy", *outputs, says="bytes of data")
    for text in ("", "{", "{}", "}", "{'descr': '<f4'}", dict_of()[:-1], dict_of() + "x", dict_of() + dict_of(), dict_of(more=", 'x': 1"),
                 dict_of(more=", 'shape': (3, 16)"), dict_of(order="Maybe"), dict_of(order="0"), dict_of(descr="<f4"),
                 dict_of(descr="'<f4"), dict_of(descr="'<f\\x34'"), dict_of().replace(":", " "), dict_of().replace(", 'shape'", " 'shape'"),
                 "\0" * 64, b"\xff" * 64, "(" * 60000, "{'" + "a" * 60000):
        write_npy("bad.npy", text, data)
        refused("norm", "bad.npy", *outputs, says="broken .npy header")
    for length, version, says in ((65535, 1, "truncated"), (0xffffffff, 2, "truncated"), (0x7fffffff, 3, "truncated"), (10**6, 2, "truncated")):
        write_npy("bad.npy", dict_of(), data, version, length)
        refused("norm", "bad.npy", *outputs, says=says)
    write_npy("bad.npy", dict_of() + " " * 70000, data, 2)
    refused("norm", "bad.npy", *outputs, says="70")


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


def with_old_gradients():
    save(x=draw(3, 16), y=draw(3, 16), z=draw(3, 16), w=draw(16), do=draw(3, 16), dr=draw(3, 16))
    for name in GRADIENTS:
        open(f"{name}.npy", "w").write("old " + name)
    return tuple(part for name in GRADIENTS for part in (f"--{name}", f"{name}.npy"))


def with_old_channels():
    """Everything that channel-norm reads, and files where it would write."""
    channel_inputs((4, 6, 5), 6)
    save(running_mean=draw(6), running_var=draw(6)**2, half=draw(4, 6, 5, dtype="f2"), half_w=draw(6, dtype="f2"))
    names = ("o", "mean", "rstd", *UPDATED, "scale", "shift", *CHANNEL_GRADIENTS)
    for name in names:
        open(f"{name}.npy", "w").write("old " + name)
    return {name: (f"--{name.replace('_', '-')}", f"{name}.npy") for name in names}


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

int rename(const char *from, const char *to)
{
    if (fails("rename"))
        return errno = EIO, -1;
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}

int link(const char *from, const char *to)
{
    if (fails("link"))
        return errno = EPERM, -1;
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "link"))(from, to);
}

int fsync(int fd)
{
    if (fails("fsync"))
        return errno = EIO, -1;
    if (fails("unsupported"))
        return errno = EINVAL, -1;
    if (fails("slow"))
        for (time_t end = time(NULL) + 3; time(NULL) < end;)
            ;
    if (fails("term"))
        kill(getpid(), SIGTERM);
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
"""


def shim(fail):
    library = os.path.join(SCRATCH, f"shim-{os.getpid()}.so")
    if not os.path.exists(library):
        subprocess.run([*CC, "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-ldl"], input=SHIM, text=True, check=True)
    return {"LD_PRELOAD": library, "FAIL": fail}


@test
def a_full_disk_leaves_nothing():
    outputs = with_old_outputs()
    save(x=draw(64, 1024, dtype="f2"))

    def limit(size):
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    # o alone fits: r, in f32, does not
    for size in (0, 64, 1000, 100000, 200000):
        refused("norm", "x.npy", *outputs, "--r-dtype", "f32", status=1, says="cannot write", before=limit(size))
        refused("norm", "x.npy", "--o", "new.npy", "--r", "r.npy", "--r-dtype", "f32", status=1, says="cannot write", before=limit(size))
    norm("x.npy", *outputs, "--r-dtype", "f32", before=limit(300000))


@test
def a_disk_error_leaves_nothing():
    outputs = with_old_outputs()
    for n in (1, 2, 3, 4):
        refused("norm", "x.npy", *outputs, status=1, says="Input/output error", env=shim(f"fsync {n}"))
    norm("x.npy", "--o", "n.npy", env=shim("unsupported 0"))
    assert np.load("n.npy").shape == (3, 16)


@test
def a_rename_that_fails_is_undone():
    outputs = with_old_outputs()
    for n in (1, 2, 3, 4):
        refused("norm", "x.npy", *outputs, status=1, says="Input/output error", env=shim(f"rename {n}"))
        # nothing stands where o, mean and rstd go
        refused("norm", "x.npy", "--o", "a.npy", "--r", "r.npy", "--mean", "b.npy", "--rstd", "c.npy", status=1,
                says="Input/output error", env=shim(f"rename {n}"))


@test
def file_systems_without_links_do():
    outputs = with_old_outputs()
    x = np.load("x.npy")
    norm("x.npy", *outputs, env=shim("link 0"))
    compare(np.load("o.npy"), expected(x))
    assert np.load("r.npy").tobytes() == x.tobytes() and np.load("m.npy").shape == np.load("s.npy").shape == (3,)


@test
def a_signal_waits_and_leaves_nothing():
    outputs = with_old_outputs()
    for n in (1, 4):
        refused("norm", "x.npy", *outputs, status=-signal.SIGTERM, says="Interrupted", env=shim(f"term {n}"))


@test
def gradients_that_cannot_be_written_leave_nothing():
    line = ("norm", "--backward", "x.npy", "--do", "do.npy", "--z", "z.npy", "--gate", "post", *with_old_gradients())
    for n in (1, 2, 3, 4, 5):
        for call in ("fsync", "rename"):
            refused(*line, status=1, says="Input/output error", env=shim(f"{call} {n}"))
    for n in (1, 5):
        refused(*line, status=-signal.SIGTERM, says="Interrupted", env=shim(f"term {n}"))
    for size in (0, 100, 200):
        refused(*line, status=1, says="cannot write", before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
    norm(*line[1:])


@test
def outputs_of_channels_that_cannot_be_written_leave_nothing():
    out = with_old_channels()
    train = ("channel-norm", "x.npy", *RUNNING, "--train", *(part for name in ("o", "mean", "rstd", *UPDATED) for part in out[name]))
    gradients = ("channel-norm", "--backward", "x.npy", "--do", "do.npy", *(part for name in CHANNEL_GRADIENTS for part in out[name]))
    in_place = ("channel-norm", "x.npy", *RUNNING, "--train", "--o", "x.npy", "--running-mean-out", "running_mean.npy", "--running-var-out",
                "running_var.npy")
    for line, files_written in ((train, 5), (gradients, 4), (in_place, 3)):
        for n in range(1, files_written + 1):
            for call in ("fsync", "rename"):
                refused(*line, status=1, says="Input/output error", env=shim(f"{call} {n}"))
        refused(*line, status=-signal.SIGTERM, says="Interrupted", env=shim(f"term {files_written}"))
        refused(*line, status=1, says="cannot write", before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
    for line in (train, gradients, in_place):
        assert Run(*line).status == 0


# ---- standard input and output ---------------------------------------------------------------------------------------------------


class Piped:
    """A run with bytes for standard input, and the bytes of standard output."""

    def __init__(self, *arguments, given=b"", **more):
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **({} if "stdin" in more else {"input": given}), **more}
        done = subprocess.run([NRG, *map(str, arguments)], env={**os.environ, "ASAN_OPTIONS": SANITIZER}, timeout=900, **more)
        self.status, self.out, self.err = done.returncode, done.stdout, PROGRESS.sub("", (done.stderr or b"").decode(errors="replace"))

    def __str__(self):
        return f"status {self.status}, stderr {self.err!r}, {len(self.out or b'')} bytes on stdout"


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
        for stdin in ({"given": read(input + ".npy")}, {"stdin": open(input + ".npy", "rb")}):
            run = Piped(*arguments, "--o", "-", **stdin)
            assert run.status == 0 and not run.err and run.out == read("o.npy"), f"{arguments}: {run}"
    norm("x.npy", "--format", "q8_0", "--packed", "q.npy")
    assert Piped("quantize", "--format", "q8_0", "-", "--packed", "-", given=Piped("norm", "x.npy", "--o", "-").out).out == read("q.npy")
    assert Run("dequantize", "--format", "q8_0", "q.npy", "--o", "o.npy").status == 0
    assert Piped("dequantize", "--format", "q8_0", "-", "--o", "-", given=read("q.npy")).out == read("o.npy")
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
        run = Piped("norm", "--layer", "-", "--o", "-", given=read("x.npy"))
        assert run.status == 0 and not run.err and run.out == read("o.npy"), f"{count}: {run}"


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
        run = Piped("norm", "-", "--o", "o.npy", given=given)
        one_line(run)
        assert run.status == 2 and not run.out and says in run.err and os.listdir(".") == ["x.npy"], f"{says}: {run}"
    refused("norm", "/dev/stdin", "--o", "o.npy", says="a file named - is standard input")
    save(y=draw(3, 4))
    for name, beside, says in (("-", "x.npy", "standard input: expected shape (300, 1000) to match x.npy, got (3, 4)"),
                               ("y.npy", "-", "y.npy: expected shape (300, 1000) to match standard input, got (3, 4)")):
        run = Piped("norm", beside, "--y", name, "--o", "o.npy", given=read("y.npy") if name == "-" else good)
        one_line(run)
        assert run.status == 2 and says in run.err, str(run)


@test
def standard_input_and_output_are_for_one_file_each():
    save(x=draw(3, 8))
    for arguments, says in ((("-", "--y", "-", "--o", "o.npy"), "standard input: given for two inputs"),
                            (("x.npy", "--o", "-", "--mean", "-"), "standard output: given for two outputs")):
        run = Piped("norm", *arguments, given=read("x.npy"))
        one_line(run)
        assert run.status == 2 and not run.out and says in run.err and os.listdir(".") == ["x.npy"], str(run)
    norm("x.npy", "--layer", "--o", "o.npy", "--mean", "m.npy", "--rstd", "s.npy")
    for which, others in (("o", "ms"), ("m", "os"), ("s", "om")):
        outputs = [part for name, option in zip("oms", ("--o", "--mean", "--rstd")) for part in (option, "-" if name == which else name + "2.npy")]
        run = Piped("norm", "x.npy", "--layer", *outputs)
        assert run.status == 0 and not run.err and run.out == read(which + ".npy"), str(run)
        assert all(read(name + "2.npy") == read(name + ".npy") for name in others)


def closed(*numbers):
    return lambda: [os.close(number) for number in numbers]


def without_a_reader(*arguments):
    reader, writer = os.pipe()
    os.close(reader)
    run = Piped(*arguments, stdout=writer)
    os.close(writer)
    return run


@test
def standard_output_that_cannot_be_written_is_a_failure():
    outputs = with_old_outputs()
    old = files()
    with open("/dev/full", "w") as full:
        runs = [("No space left on device", Piped("norm", "x.npy", *names, stdout=full)) for names in (("--o", "-"), ("--o", "-", *outputs[2:]))]
    runs += [("Broken pipe", without_a_reader("norm", "x.npy", *names)) for names in (("--o", "-"), ("--o", "-", *outputs[2:]))]
    runs.append(("Bad file descriptor", Piped("norm", "x.npy", "--o", "-", *outputs[2:], preexec_fn=closed(1))))
    for says, run in runs:
        one_line(run)
        assert run.status == 1 and "nrg norm: standard output: cannot write: " + says in run.err and files() == old, f"{says}: {run}"
    for arguments in (("info",), ("--help",), ("norm", "--help"), ("position", "t5", "--list"), ("check", "--quick", "--hash", "--op", "rope")):
        for run in (without_a_reader(*arguments), Piped(*arguments, preexec_fn=closed(1))):
            one_line(run)
            assert run.status == 1 and "cannot write to standard output" in run.err, f"{arguments}: {run}"


@test
def closed_streams_are_nothing_to_a_command_that_needs_none():
    save(x=draw(3, 8))
    norm("x.npy", "--o", "want.npy")
    for numbers in ((0,), (1,), (2,), (0, 1, 2)):
        run = Piped("norm", "x.npy", "--o", "o.npy", preexec_fn=closed(*numbers))
        assert run.status == 0 and not run.out and not run.err and read("o.npy") == read("want.npy"), f"{numbers}: {run}"
        os.remove("o.npy")
    # a complaint goes nowhere, and not into the file that is open at that time
    run = Piped("norm", "x.npy", "--o", "o.npy", "--mean", "m.npy", preexec_fn=lambda: (closed(2)(), resource.setrlimit(resource.RLIMIT_FSIZE, (140, 140))))
    assert run.status == 1 and sorted(os.listdir(".")) == ["want.npy", "x.npy"], str(run)
    run = Piped("norm", "-", "--o", "o.npy", preexec_fn=closed(0))
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


def link_faulty(program, *more):
    """The command of this build, whose objects lie beside it, with tests/faulty.c."""
    build = pathlib.Path(NRG).parent.parent
    wraps = [f"nrg_{path}_{op}_{dtype}" for path in re.findall(r"^  (\w+) +yes +(?:yes|no)$", Run("info").out, re.M) for _, op in KERNELS
             for dtype in ("f32", "f16", "bf16")]
    wraps += ["sweep_run", "nrg_isa_supported"]
    archives = [str(path) for folder in ("tools", "check", "src") for path in (build / folder).glob("*.a")]
    return subprocess.run([*CC, "-std=gnu11", "-O2", "-I", os.path.join(ROOT, "include"), os.path.join(ROOT, "tests", "faulty.c"), *more,
                           build / "tools/nrg.p/main.c.o", *(f"-Wl,--wrap={name}" for name in wraps), "-Wl,--start-group", *archives,
                           "-Wl,--end-group", "-lm", "-o", program], text=True, stderr=subprocess.PIPE)


def faulty(fault, op=None, program=None):
    """A path's run with a fault, and the counts that tests/faulty.c prints."""
    path = re.search(r"^Active path (\w+)", Run("info").out, re.M)[1]
    run = Run("check", "--quick", "--isa", path, *(("--op", op) if op else ()), program=program or os.path.join(SCRATCH, "faulty"), env={"FAULT": fault})
    run.counts = dict((name, int(count)) for name, count in re.findall(r"^(\w+): (\d+)$", run.err, re.M))
    run.outputs = [(int(wrong), int(added), name) for wrong, added, name in re.findall(r"^output: (\d+) (\d) (.*)$", run.err, re.M)]
    run.kernels = re.findall(r"^kernel: (\w+)$", run.err, re.M)
    run.err = re.sub(r"^(?!nrg).*\n", "", run.err, flags=re.M)
    return run


def of_every_op(function):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, OPS))


@test_of_a_faulty_library
def check_finds_what_is_wrong_in_a_path():
    """A wrong bit or sign in an output, an input or a byte beside an output that is written, a share that is left out, and sums that
    forget what they are added to: in every output of every op, by every kernel. And an output that nobody writes on any path."""
    runs = of_every_op(lambda op: faulty("wrong", op))
    for op, run in zip(OPS, runs):
        found = re.search(r"FAIL: (\d+) of \d+ cases differ from scalar; the first:\n.*case \d+: .*(scalar has 0x|a byte of no operand)", run.out)
        assert run.status == 1 and run.out.endswith("0 passed, 1 failed, 4 skipped\n"), f"{op}: {run}"
        # more where what was put right has done harm before
        assert found and int(found[1]) >= sum(run.counts[kind] for kind in ("bit", "sign", "input", "beside", "skips", "forgets")), f"{op}: {run}"
        assert all(run.counts[kind] for kind in ("bit", "input", "beside", "skips")), f"{op}: {run.counts}"
        assert run.outputs and all(wrong for wrong, _, _ in run.outputs), f"{op}: {run.outputs}"
        if any(added for _, added, _ in run.outputs):
            assert run.counts["forgets"] or faulty("forgets", op).counts["forgets"], f"{op} adds to nothing"
        # of a cache there is more than what is written
        for name in [name for _, _, name in run.outputs if op != "qkv" or name == "q_o"]:
            left = faulty(f"leaves {name}", op)
            one_line(left)
            assert left.status == 1 and f"scalar leaves {name} unwritten" in left.err, f"{op} {name}: {left}"
    assert sum(run.counts["sign"] for run in runs) > 200 and runs[OPS.index("activation")].counts["values"] == 1
    assert {name for run in runs for name in run.kernels} >= {f"{op}_{dtype}" for op in OPS for dtype in ("f32", "f16", "bf16")}


@test_of_a_faulty_library
def check_lets_any_nan_equal_any_nan_and_scratch_be_anything():
    runs = of_every_op(lambda op: faulty("harmless", op))
    for op, run in zip(OPS, runs):
        assert run.status == 0 and run.out.endswith("1 passed, 0 failed, 4 skipped\n"), f"{op}: {run}"
    assert all(sum(run.counts[kind] for run in runs) > 500 for kind in ("nan", "scratch"))


@test_of_a_faulty_library
def check_reports_a_path_that_dies_or_refuses():
    run = faulty("dies")
    assert run.status in (-signal.SIGILL, -signal.SIGTRAP) and (" path died in case" in run.err or run.status == -signal.SIGTRAP), str(run)
    headers = "".join(path.read_text() for path in sorted(pathlib.Path(ROOT, "include/nrg").glob("*.h")))
    shared = re.findall(r"^(?:NRG_NODISCARD )?NRG_API nrg_status (nrg_\w+)\([^;]*\bint ith,\s+int nth\)", headers, re.M)
    compiled = link_faulty("refusing", *(f"-Wl,--wrap={name},--defsym=__wrap_{name}=refuse" for name in shared))
    assert len(shared) > 40 and compiled.returncode == 0, compiled.stderr
    for op, run in zip(OPS, of_every_op(lambda op: faulty("", op, "./refusing"))):
        one_line(run)
        assert run.status == 1 and "refuses a case" in run.err and f" {op}_f32" in run.err, f"{op}: {run}"


@test_of_a_faulty_library
def check_says_when_there_is_only_scalar():
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


@test
def help_and_version():
    run = Run("--version")
    assert run.status == 0 and re.fullmatch(r"nrg \d+\.\d+\.\d+\n", run.out) and not run.err, str(run)
    general = Run("--help").out
    for command in [word for word in Run("help", "--words").out.split() if not word.startswith("-") and word != "help"]:
        assert f"nrg {command} " in general
        kinds = [word for word in Run("help", "--words", command).out.split() if not word.startswith("-")] if command == "position" else []
        for words in (command, *(f"{command} {kind}" for kind in kinds)):
            text = Run(*words.split(), "--help").out
            assert text.startswith(f"usage: nrg {words}") and max(map(len, text.splitlines())) <= 120
            if words not in ("info", "check", "position"):
                assert "named - is standard" in text and "exit status: 0 done; 1 an output cannot be written" in text, words


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
    commands = [[word] for word in Run("help", "--words").out.split() if not word.startswith("-") and word != "help"]
    kinds = [["position", word] for word in Run("help", "--words", "position").out.split() if not word.startswith("-")]
    for words in ([], *commands, *kinds):
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
        for arguments in (("info",), ("--help",), ("--version",), ("norm", "--help"), ("sandwich", "--help"), ("channel-norm", "--help"), ("glu", "--help"), ("quantize", "--help"), ("dequantize", "--help"), ("softmax", "--help"), ("rope", "--help"), ("qkv", "--help"), ("position", "--help"),
                          ("check", "--quick", "--isa", "scalar", "--op", "rope")):
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
