#!/usr/bin/env python3
"""Creates the arrays of demo.sh and compares the results of nrg with NumPy in double precision.

    demo_norm.py make FOLDER              writes the inputs of nrg norm (x, y, z, w, do) and of nrg channel-norm (images, residual,
                                          cw, cb, cdo)
    demo_norm.py compare FOLDER EPS       compares r.npy and o.npy; fails beyond the bound of nrg/norm.h
    demo_norm.py gate FOLDER EPS GROUPS   compares g.npy: RMSNorm of x * SiLU(z) in groups
    demo_norm.py backward FOLDER EPS      compares dx, dy and dw of add + RMSNorm
    demo_norm.py group FOLDER EPS GROUPS  compares co.npy of nrg channel-norm: GroupNorm, then SiLU
    demo_norm.py batch FOLDER EPS         compares co.npy of batch norm + add + ReLU, its running statistics and its gradients
"""
import os
import sys

import numpy as np

ROWS, DIM = 512, 4096
SAMPLES, CHANNELS, SIDE = 4, 320, 32
BOUND = 3.0  # ulps of the result: nrg/norm.h on norms that are not centred, in the fast grade


def make(folder):
    random = np.random.default_rng(2607)
    # like activations of models: rows of very different size, and a few channels far above the others
    scale = np.exp(random.normal(0, 2, (ROWS, 1)))
    x = random.normal(0, 1, (ROWS, DIM)) * scale
    x[:, random.choice(DIM, 8, replace=False)] *= 100
    y = random.normal(0, 1, (ROWS, DIM)) * scale
    z = random.normal(0, 2, (ROWS, DIM))
    do = random.normal(0, 1, (ROWS, DIM))
    w = random.normal(1, 0.3, DIM)
    for name, array in (("x", x), ("y", y), ("z", z), ("do", do), ("w", w)):
        np.save(os.path.join(folder, name + ".npy"), array.astype(np.float32))
    print(f"NumPy {np.__version__} wrote x.npy, y.npy, z.npy and do.npy ({ROWS} x {DIM}, float32) and w.npy,")
    # channels of very different size, with means other than 0
    shape, channel = (SAMPLES, CHANNELS, SIDE, SIDE), (1, CHANNELS, 1, 1)
    images = random.normal(0, 1, shape) * np.exp(random.normal(0, 1, channel)) + random.normal(0, 2, channel)
    for name, array in (("images", images), ("residual", random.normal(0, 1, shape)), ("cdo", random.normal(0, 1, shape)),
                        ("cw", random.normal(1, 0.3, CHANNELS)), ("cb", random.normal(0, 0.3, CHANNELS))):
        np.save(os.path.join(folder, name + ".npy"), array.astype(np.float32))
    print(f"and images.npy, residual.npy and cdo.npy ({SAMPLES} x {CHANNELS} x {SIDE} x {SIDE}, float32), cw.npy and cb.npy.")


def load(folder, *names):
    """As doubles."""
    return [np.load(os.path.join(folder, name + ".npy")).astype(np.float64) for name in names]


def report(name, result, exact, size, what):
    """Prints the error in units in the last place (ulp) of a float32 as large as size. Fails beyond 8: three for the norm and three
    for SiLU, which count double if another factor follows."""
    error = np.abs(result - exact) / np.ldexp(1.0, np.maximum(np.frexp(size)[1] - 24, -149))
    print(f"{name}: error at most {error.max():.3f} ulp of {what}, compared with NumPy in double precision")
    if not error.max() <= 8:
        sys.exit(f"{name}: expected an error of at most 8 ulp")


def gate(folder, eps, groups):
    x, z, w, o = load(folder, "x", "z", "w", "g")
    p = (x * (z / (1 + np.exp(-z)))).reshape(ROWS, groups, -1)
    exact = (p / np.sqrt(np.mean(p * p, axis=2, keepdims=True) + eps)).reshape(ROWS, DIM) * w
    report("g", o, exact, np.abs(exact), "the result")


def backward(folder, eps):
    x, y, w, do, dx, dy, dw = load(folder, "x", "y", "w", "do", "dx", "dy", "dw")
    r = (x + y).astype(np.float32).astype(np.float64)
    s = np.sqrt(np.mean(r * r, axis=1, keepdims=True) + eps)
    h, dh = r / s, do * w
    slope = h * np.mean(dh * h, axis=1, keepdims=True)
    terms = np.abs(dh) + np.abs(h) * np.mean(np.abs(dh * h), axis=1, keepdims=True)  # the sum has terms, too
    report("dx", dx, (dh - slope) / s, terms / s, "the sum of its terms' sizes")
    print("dy:", "bit-identical to dx" if dx.tobytes() == dy.tobytes() else sys.exit("dy differs from dx"))
    report("dw", dw, np.sum(do * h, axis=0), np.sum(np.abs(do * h), axis=0), "the sum of its terms' sizes")


def group(folder, eps, groups):
    x, w, b, o = load(folder, "images", "cw", "cb", "co")
    w, b = (a.reshape(1, CHANNELS, 1, 1) for a in (w, b))
    sets = x.reshape(SAMPLES, groups, -1)
    mean, var = sets.mean(2, keepdims=True), sets.var(2, keepdims=True)
    h = ((sets - mean) / np.sqrt(var + eps)).reshape(x.shape)
    o1 = h * w + b
    # SiLU passes the error of o1 on, times its slope, which is at most 1.1; o1 is as exact as the larger of its terms
    report("co", o, o1 / (1 + np.exp(-o1)), np.maximum(np.maximum(np.abs(o1), np.abs(b)), np.abs(w)), "the largest term of the norm")


def batch(folder, eps):
    x, y, w, b, do, o, dx, dy, dw, db, running_mean, running_var = load(
        folder, "images", "residual", "cw", "cb", "cdo", "co", "cdx", "cdy", "cdw", "cdb", "running_mean", "running_var")
    w, b = (a.reshape(1, CHANNELS, 1, 1) for a in (w, b))
    of_channel = dict(axis=(0, 2, 3), keepdims=True)
    mean, var = x.mean(**of_channel), x.var(**of_channel)
    s = np.sqrt(var + eps)
    h = (x - mean) / s
    before = h * w + b + y
    size = np.maximum.reduce([np.abs(h * w) + np.abs(w), np.abs(b + 0 * y), np.abs(y)])
    report("co", o, np.maximum(before, 0), size, "the largest term")
    # a new batch norm's running statistics are 0 and 1; the momentum is 0.1
    count = SAMPLES * SIDE * SIDE
    exact_mean, exact_var = 0.1 * mean.ravel(), 0.9 + 0.1 * var.ravel() * count / (count - 1)
    report("running mean", running_mean, exact_mean, np.maximum(np.abs(exact_mean), np.sqrt(var.ravel())), "itself or a deviation")
    report("running var", running_var, exact_var, exact_var, "itself")
    # where before is 0 but for rounding, either slope of ReLU is right: the sign of the output decides
    do1 = do * (o > 0)
    print("dy:", "equal to do where o > 0, else 0" if dy.tobytes() == do1.tobytes() else sys.exit("dy differs from do where o > 0"))
    total, product = do1.sum(**of_channel), (do1 * h).sum(**of_channel)
    report("db", db, total.ravel(), np.abs(do1).sum((0, 2, 3)), "the sum of its terms' sizes")
    report("dw", dw, product.ravel(), np.abs(do1 * h).sum((0, 2, 3)), "the sum of its terms' sizes")
    slope, sizes = total / count + h * product / count, (np.abs(do1).sum(**of_channel) + np.abs(h) * np.abs(do1 * h).sum(**of_channel)) / count
    report("dx", dx, (do1 - slope) * w / s, (np.abs(do1) + sizes) * np.abs(w) / s, "the sum of its terms' sizes")


def compare(folder, eps):
    x, y, w, o, r = (np.load(os.path.join(folder, name + ".npy")) for name in "xywor")
    if o.dtype != np.float32 or o.shape != x.shape or r.dtype != np.float32 or r.shape != x.shape:
        sys.exit(f"o and r: expected {x.dtype} {x.shape}, got {o.dtype} {o.shape} and {r.dtype} {r.shape}")
    # the sum is rounded to float32 once, as in NumPy
    different = np.count_nonzero((x + y).view(np.uint32) != r.view(np.uint32))
    print(f"r: {different} of {r.size} elements differ from x + y of NumPy in float32")

    exact = r.astype(np.float64)
    exact = exact / np.sqrt(np.mean(exact * exact, axis=1, keepdims=True) + eps) * w
    # one ulp of a float32 of this size
    ulp = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 24, -149))
    error = np.abs(o.astype(np.float64) - exact) / ulp
    worst = float(error.max())
    nearest = np.count_nonzero(o.view(np.uint32) == exact.astype(np.float32).view(np.uint32))
    print(f"o: error at most {worst:.3f} ulp, compared with NumPy in double precision (bound {BOUND:g}, best possible 0.5); "
          f"{100 * nearest / o.size:.1f} % of the elements are the nearest float32")
    if different or not worst <= BOUND:  # so that a NaN fails
        sys.exit("the result exceeds the error bound of nrg/norm.h")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "make":
        make(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "compare":
        compare(sys.argv[2], float(sys.argv[3]))
    elif len(sys.argv) == 5 and sys.argv[1] == "gate":
        gate(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
    elif len(sys.argv) == 4 and sys.argv[1] == "backward":
        backward(sys.argv[2], float(sys.argv[3]))
    elif len(sys.argv) == 5 and sys.argv[1] == "group":
        group(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
    elif len(sys.argv) == 4 and sys.argv[1] == "batch":
        batch(sys.argv[2], float(sys.argv[3]))
    else:
        sys.exit(__doc__)
