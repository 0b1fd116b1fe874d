#!/usr/bin/python3
"""examples/transformer from outside: usage: transformer_test.py PATH-TO-transformer

Gradients of the whole model against differences in double, the loss curve against the same model in double (reference.py), one
hash for every path, number of threads, and way to hear a prompt; resumed as if never interrupted; what is wrong, refused. Needs
NumPy. SPDX-License-Identifier: MIT"""
import csv
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

sys.dont_write_bytecode = True
import reference

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) == 2 else sys.exit("usage: transformer_test.py PATH-TO-transformer")
SIZES = dict(layers=2, dim=40, heads=4, kv_heads=2, head=12, ff=72, context=24)
SHAPE = reference.Shape(**SIZES)
OPTIONS = [part for name, size in SIZES.items() for part in ("--" + name.replace("_", "-"), str(size))]
TEXT = " ".join(f"{n} times {m} is {n * m}, and {m} and {n} are {n + m}." for n in range(23) for m in range(31)).encode()
tests = []


def test(function):
    tests.append(function)
    return function


def run(*arguments, status=0, isa=None):
    environment = {**os.environ, **({"NRG_ISA": isa} if isa else {})}
    done = subprocess.run([PROGRAM, *map(str, arguments)], env=environment, capture_output=True, timeout=600)
    assert done.returncode == status, f"{arguments}: status {done.returncode}, {done.stderr.decode()}"
    return done.stdout.decode(errors="replace") if status == 0 else done.stderr.decode()


def train(*arguments, **more):
    return run("train", "text", *OPTIONS, "--warmup", 5, "--threads", 2, *arguments, **more)


def hash_in(said):
    return re.findall(r"hash ([0-9a-f]{16})", said)[-1]


def paths():
    """The library's paths that run here."""
    return [line.split()[0] for line in run("check").splitlines() if " 1 threads" in line]


@test
def gradients_of_the_whole_model():
    train("--sequences", 2, "--steps", 9, "--until", 4, "--dump", "dump")
    flat = np.fromfile("dump", "f4").astype("f8")
    w, d = SHAPE.split(flat[:flat.size // 2].copy()), SHAPE.split(flat[flat.size // 2:])
    given, wanted = reference.windows(TEXT, 1, 4, 2, SHAPE.context)
    _, exact = reference.run(SHAPE, w, given, wanted)
    random, worst_difference, worst = np.random.default_rng(1), 0, 0
    for name, tensor in w.items():
        length = np.sqrt((exact[name]**2).mean())
        worst = max(worst, np.abs(d[name] - exact[name]).max() / length)
        rows = given[0, :4] if name == "embedding" else None  # other bytes of the table have next to no gradient
        for _ in range(6):
            at = tuple(random.integers(0, n) for n in tensor.shape)
            at = (random.choice(rows), at[1]) if rows is not None else at
            kept, h = tensor[at], 1e-5
            tensor[at] = kept + h
            above = reference.run(SHAPE, w, given, wanted, gradients=False)[0]
            tensor[at] = kept - h
            below = reference.run(SHAPE, w, given, wanted, gradients=False)[0]
            tensor[at] = kept
            worst_difference = max(worst_difference, abs((above - below) / (2 * h) - d[name][at]) / length)
    print(f"  gradients: worst error {worst:.2g} against double, {worst_difference:.2g} against differences,"
          " of a tensor's root mean square")
    assert worst < 2e-5 and worst_difference < 2e-5, (worst, worst_difference)


@test
def the_loss_curve_is_that_of_double_precision():
    steps = 120
    train("--sequences", 4, "--steps", steps, "--rate", "2e-3", "--curve", "curve")
    said = [float(row["learned_bits_per_byte"]) for row in csv.DictReader(open("curve.csv"))]
    w = SHAPE.first_weights(1)
    adamw, curve = reference.AdamW(w, 2e-3, steps, 5, 0.1), []
    for step in range(1, steps + 1):
        given, wanted = reference.windows(TEXT, 1, step, 4, SHAPE.context)
        loss, d = reference.run(SHAPE, w, given, wanted)
        adamw.take(d)
        curve.append(loss / np.log(2))
    means = np.array(curve).reshape(-1, 10).mean(1)
    off = np.abs(means - said)
    print(f"  loss curve: from {said[0]:.3f} to {said[-1]:.3f} bits; worst difference {off.max():.2g} bits")
    assert len(said) == steps // 10 and said[-1] < said[0] - 2 and off.max() < 1e-5, (said, off)
    assert open("curve.svg").read().rstrip().endswith("</svg>")


@test
def one_hash():
    one = {hash_in(train("--sequences", 3, "--steps", 12, "--threads", threads, isa=isa))
           for isa, threads in [(isa, 2) for isa in paths()] + [(None, 1), (None, 7)]}
    assert len(one) == 1, one
    said = {run("generate", "transformer.ckpt", "3 times 14 is", "--bytes", 60, "--threads", threads, *way, isa=isa)
            for isa, threads, way in [(isa, 2, []) for isa in paths()] + [(None, 1, ["--one-by-one"]), (None, 7, [])]}
    assert len(said) == 1, said
    other = run("generate", "transformer.ckpt", "3 times 14 is", "--bytes", 60, "--seed", 2)
    assert hash_in(other) != hash_in(said.pop())
    greedy = {run("generate", "transformer.ckpt", "3 times", "--temperature", 0, "--seed", seed) for seed in (1, 2)}
    assert len(greedy) == 1, greedy


@test
def resumed_is_not_interrupted():
    whole = train("--steps", 20, "--out", "whole.ckpt")
    train("--steps", 20, "--until", 9, "--out", "part.ckpt")
    rest = train("--resume", "part.ckpt", "--out", "part.ckpt", "--threads", 1)
    assert hash_in(whole) == hash_in(rest)
    assert open("whole.ckpt", "rb").read() == open("part.ckpt", "rb").read()


@test
def what_is_wrong_is_refused():
    train("--steps", 1)
    good = open("transformer.ckpt", "rb").read()
    open("short", "wb").write(good[:-5])
    open("other", "wb").write(b"x" + good[1:])
    open("shape", "wb").write(good[:8] + b"\xff" * 4 + good[12:])
    open("text2", "wb").write(TEXT + b".")
    open("little", "wb").write(b"abc")
    for arguments, says in ((("generate", "absent", "x"), "No such file"), (("generate", "short", "x"), "not as long as its header says"),
                            (("generate", "other", "x"), "not a checkpoint"), (("generate", "shape", "x"), "layers"),
                            (("train", "text2", "--resume", "transformer.ckpt"), "another text"),
                            (("train", "little"), "3 bytes of text"), (("train", "absent"), "No such file"),
                            (("train", "text", "--steps", "1", "--out", "no/such"), "No such file")):
        said = run(*arguments, status=1 if "little" not in arguments else 2)
        assert says in said and said.count("\n") == 1, said
    for arguments in ((), ("train", "--steps", "0"), ("train", "--dim", "x"), ("train", "text", "--heads", 3, "--kv-heads", 2),
                      ("generate", "transformer.ckpt"), ("train", "--rate", "nan"), ("check", "more")):
        run(*arguments, status=2)
    assert open("transformer.ckpt", "rb").read() == good


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for function in tests:
            os.mkdir(os.path.join(scratch, function.__name__))
            os.chdir(os.path.join(scratch, function.__name__))
            open("text", "wb").write(TEXT)
            try:
                function()
                print(f"ok {function.__name__}")
            except AssertionError as wrong:
                failed += 1
                print(f"FAILED {function.__name__}: {wrong}")
        os.chdir("/")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
