"""Random shapes and views: each is refused, or has the bits of a copy, for any number of threads. It may not fall between the two,
reach beyond an array, or take a view whose copy is refused."""
import numpy as np

import nrg
from support import Case

ROUNDS = 100


def ids(x):
    return np.zeros(x.shape[:-1], np.int32)


def rotated(x, threads):
    return nrg.rope(x, n_dims=max(x.shape[-1] // 2 * 2, 2), threads=threads)


OPS = {
    "rms_norm": lambda x, threads: nrg.rms_norm(x, threads=threads),
    "rms_norm, bytes": lambda x, threads: nrg.rms_norm(x, format="int8_32", threads=threads)[0],
    "layer_norm, residual": lambda x, threads: nrg.layer_norm(x, residual=x, threads=threads)[1],
    "layer_norm_backward": lambda x, threads: nrg.layer_norm_backward(x, x, np.ones(x.shape[-1], x.dtype), threads=threads).dweight,
    "sandwich_norm": lambda x, threads: nrg.sandwich_norm(x, x, threads=threads)[0],
    "silu": lambda x, threads: nrg.silu(x, threads=threads),
    "silu in place": lambda x, threads: nrg.silu(x, out=x, threads=threads),
    "swiglu": lambda x, threads: nrg.swiglu(x, threads=threads),
    "quantize": lambda x, threads: nrg.quantize(x, "q8_0", threads=threads),
    "softmax": lambda x, threads: nrg.softmax(x, causal=True, threads=threads),
    "cross_entropy": lambda x, threads: nrg.cross_entropy(x, ids(x), reduction="none", threads=threads),
    "group_norm": lambda x, threads: nrg.group_norm(x, 1, layout="nhwc", threads=threads),
    "instance_norm": lambda x, threads: nrg.instance_norm(x, threads=threads),
    "rope": rotated,
    "embedding": lambda x, threads: nrg.embedding(np.zeros(3, np.int32), x, threads=threads),
    "score_bias_backward": lambda x, threads: nrg.score_bias_backward(x, threads=threads),
    "relative_scores": lambda x, threads: nrg.relative_scores(x, np.ones((3, x.shape[-1]), x.dtype), 5, -1, 1, threads=threads),
}


def random_view(rng):
    """Of f32 or f16, one to five dimensions in any order, in steps and parts, some empty, some of one element."""
    shape = [int(size) for size in rng.choice([0, 1, 2, 3, 4, 16], rng.integers(0, 5), p=[.04, .26, .3, .2, .15, .05])]
    shape.append(int(rng.choice([1, 2, 31, 32, 64])))
    view = rng.standard_normal(shape).astype(rng.choice([np.float32, np.float16]))
    view = view.transpose([*rng.permutation(view.ndim - 1), view.ndim - 1])
    steps = [slice(None), slice(None, None, 2), slice(1, None), slice(None, 1), slice(None, None, -1)]
    view = view[tuple(steps[i] for i in rng.choice(5, view.ndim - 1, p=[.3, .3, .2, .15, .05]))]
    if rng.random() < 0.1:
        view = np.broadcast_to(view, (3, *view.shape))
    return view[..., ::2] if rng.random() < 0.05 else view


def tried(op, x, threads):
    try:
        return op(x, threads)
    except ValueError:
        return None


class Views(Case):
    def test_random_views(self):
        for name, op in OPS.items():
            rng, taken, strided = np.random.default_rng(len(name)), 0, 0
            for _ in range(ROUNDS):
                view = random_view(rng)
                of_copy = tried(op, np.array(view, order="C"), 1)
                result = tried(op, view, int(rng.choice([1, 2, 7])))
                if result is not None:
                    self.assertIsNotNone(of_copy, f"{name}: {view.shape} {view.strides} is taken, and its copy is not")
                    self.assertEqual(np.ascontiguousarray(result).tobytes(), of_copy.tobytes(), f"{name}: {view.shape} {view.strides}")
                    taken += 1
                    strided += not view.flags.c_contiguous
            self.assertGreater(taken, ROUNDS // 20, name)
            self.assertGreater(strided, 0, name)
