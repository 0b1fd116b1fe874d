#!/usr/bin/env python3
"""The NumPy half of demo.sh.

    demo_norm.py make FOLDER              writes x, y, z, w and do .npy: what nrg norm gets
    demo_norm.py compare FOLDER EPS       holds its r.npy and o.npy against NumPy's answer; fails beyond the bound of nrg/norm.h
    demo_norm.py gate FOLDER EPS GROUPS   holds its g.npy, RMSNorm of x * SiLU(z) in groups, against NumPy's
    demo_norm.py backward FOLDER EPS      holds its dx, dy and dw, of add + RMSNorm, against NumPy's
"""
import os
import sys

import numpy as np

ROWS, DIM = 512, 4096
BOUND = 1.0  # ulp of the result, as nrg/norm.h promises for norms that are not centred


def make(folder):
    random = np.random.default_rng(2607)
    # activations as models have them: rows of very different size, and a few channels far above the rest
    scale = np.exp(random.normal(0, 2, (ROWS, 1)))
    x = random.normal(0, 1, (ROWS, DIM)) * scale
    x[:, random.choice(DIM, 8, replace=False)] *= 100
    y = random.normal(0, 1, (ROWS, DIM)) * scale
    z = random.normal(0, 2, (ROWS, DIM))
    do = random.normal(0, 1, (ROWS, DIM))
    w = random.normal(1, 0.3, DIM)
    for name, array in (("x", x), ("y", y), ("z", z), ("do", do), ("w", w)):
        np.save(os.path.join(folder, name + ".npy"), array.astype(np.float32))
    print(f"NumPy {np.__version__} made x.npy, y.npy, z.npy and do.npy, {ROWS} x {DIM} float32, and w.npy")


def load(folder, *names):
    """As doubles."""
    return [np.load(os.path.join(folder, name + ".npy")).astype(np.float64) for name in names]


def report(name, result, exact, size, what):
    """The error, in units of the last place of a float32 as large as size; fails beyond 4, which leaves room for SiLU's own."""
    error = np.abs(result - exact) / np.ldexp(1.0, np.maximum(np.frexp(size)[1] - 24, -149))
    print(f"{name}: at most {error.max():.3f} ulp of {what} from NumPy in double precision")
    if not error.max() <= 4:
        sys.exit(f"{name} is not what NumPy says")


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
    largest = np.abs(h) * np.mean(np.abs(dh * h), axis=1, keepdims=True)  # the sum has terms, too
    report("dx", dx, (dh - slope) / s, np.maximum(np.abs(dh), largest) / s, "the largest term")
    print("dy:", "the bits of dx" if dx.tobytes() == dy.tobytes() else sys.exit("differs from dx"))
    report("dw", dw, np.sum(do * h, axis=0), np.sum(np.abs(do * h), axis=0), "the sum of its terms' sizes")


def compare(folder, eps):
    x, y, w, o, r = (np.load(os.path.join(folder, name + ".npy")) for name in "xywor")
    if o.dtype != np.float32 or o.shape != x.shape or r.dtype != np.float32 or r.shape != x.shape:
        sys.exit(f"o is {o.dtype} {o.shape}, r is {r.dtype} {r.shape}; both should be like x, {x.dtype} {x.shape}")
    # the sum is rounded to float32, once, as adding in NumPy rounds it
    different = np.count_nonzero((x + y).view(np.uint32) != r.view(np.uint32))
    print(f"r: {different} of {r.size} elements differ from NumPy's float32 x + y")

    exact = r.astype(np.float64)
    exact = exact / np.sqrt(np.mean(exact * exact, axis=1, keepdims=True) + eps) * w
    # one ulp of a float32 of this size
    ulp = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 24, -149))
    error = np.abs(o.astype(np.float64) - exact) / ulp
    worst = float(error.max())
    nearest = np.count_nonzero(o.view(np.uint32) == exact.astype(np.float32).view(np.uint32))
    print(f"o: at most {worst:.3f} ulp from NumPy in double precision (bound {BOUND:g}, best possible 0.5); "
          f"{100 * nearest / o.size:.1f} % are the nearest float32")
    if different or not worst <= BOUND:  # so that a NaN fails
        sys.exit("this is not what nrg/norm.h promises")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "make":
        make(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "compare":
        compare(sys.argv[2], float(sys.argv[3]))
    elif len(sys.argv) == 5 and sys.argv[1] == "gate":
        gate(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
    elif len(sys.argv) == 4 and sys.argv[1] == "backward":
        backward(sys.argv[2], float(sys.argv[3]))
    else:
        sys.exit(__doc__)
