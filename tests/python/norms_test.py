"""Row norms and sandwiches against NumPy in float64."""
import numpy as np

import nrg
from support import BF16, Case, exact, numeric, random

SHAPE = (3, 5, 48)


def rms(x, w=1.0, eps=1e-6):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def layer(x, w=1.0, b=0.0, eps=1e-5):
    q = x - x.mean(-1, keepdims=True)
    return q / np.sqrt((q * q).mean(-1, keepdims=True) + eps) * w + b


def silu(x):
    return x / (1 + np.exp(-x))


class Norms(Case):
    def setUp(self):
        self.x, self.y, self.z = (random(*SHAPE, seed=seed) for seed in range(3))
        self.w, self.b, self.d_o = random(48, seed=3), random(48, seed=4), random(*SHAPE, seed=5)

    def test_rms_norm_of_every_dtype(self):
        for dtype in ("f32", "f16", "bf16"):
            x, w = random(*SHAPE, dtype=dtype), random(48, seed=3, dtype=dtype)
            given = BF16 if dtype == "bf16" else {}
            o = self.for_threads(lambda threads: nrg.rms_norm(x, w, threads=threads, **given))
            self.assertEqual(o.dtype, x.dtype)
            self.within(o, rms(exact(x), exact(w)))

    def test_exact_grade(self):
        self.within(nrg.rms_norm(self.x, self.w, accuracy="exact"), rms(exact(self.x), exact(self.w)), 1.01)

    def test_layer_norm(self):
        o, mean, rstd = self.for_threads(lambda threads: nrg.layer_norm(self.x, self.w, self.b, stats=True, threads=threads))
        x = exact(self.x)
        self.within(o, layer(x, exact(self.w), exact(self.b)), 6, 1 + np.abs(x) * 4)
        self.within(mean[..., 0], x.mean(-1), 4, 1 + np.abs(x.mean(-1)))
        self.within(rstd[..., 0], 1 / np.sqrt(x.var(-1) + 1e-5))

    def test_l2_normalize(self):
        x = exact(self.x)
        self.within(nrg.l2_normalize(self.x), x / np.linalg.norm(x, axis=-1, keepdims=True))

    def test_residual(self):
        o, r = self.for_threads(lambda threads: nrg.rms_norm(self.x, self.w, residual=self.y, threads=threads))
        self.bits(r, self.x + self.y)
        self.bits(o, nrg.rms_norm(r, self.w))
        after = nrg.rms_norm(self.x, self.w, residual=self.y, residual_mode="after")
        self.within(after, exact(self.y) + rms(exact(self.x), exact(self.w)), 4, np.abs(self.y) + np.abs(rms(exact(self.x), exact(self.w))))

    def test_residual_of_f32_beside_f16(self):
        x = self.x.astype(np.float16)
        o, r = nrg.rms_norm(x, self.w, residual=self.y)
        self.assertEqual((o.dtype, r.dtype), (np.float16, np.float32))
        self.bits(r, x.astype(np.float32) + self.y)

    def test_residual_that_repeats(self):
        o, r = nrg.rms_norm(self.x, self.w, residual=self.y[1])
        self.bits(r, self.x + self.y[1])
        self.bits(nrg.rms_norm(self.x, self.w, residual=self.y[:, :1])[1], self.x + self.y[:, :1])
        self.bits(o, nrg.rms_norm(self.x + self.y[1], self.w))

    def test_gates(self):
        x, z, w = exact(self.x), exact(self.z), exact(self.w)
        self.within(nrg.rms_norm(self.x, self.w, gate=self.z, activation="silu"), rms(x, w) * silu(z), 10)
        self.within(nrg.rms_norm(self.x, self.w, gate=self.z, gate_mode="pre", activation="silu"), rms(x * silu(z), w), 12)
        self.within(nrg.rms_norm(self.x, self.w, activation="silu"), silu(rms(x, w)), 12, np.abs(rms(x, w)) + 1)

    def test_groups_and_offset(self):
        x, w = exact(self.x).reshape(3, 5, 4, 12), exact(self.w)
        self.within(nrg.rms_norm(self.x, self.w, groups=4), rms(x).reshape(SHAPE) * w)
        self.within(nrg.rms_norm(self.x, self.w[:12], groups=4, weights="group"), (rms(x) * w[:12]).reshape(SHAPE))
        self.within(nrg.rms_norm(self.x, self.w, weight_offset=1.0), rms(exact(self.x)) * (w + 1), 5, np.abs(rms(exact(self.x))) * (np.abs(w) + 1))

    def test_bytes(self):
        self.bits(nrg.rms_norm(random(6, 64), format="q8_0"), nrg.quantize(nrg.rms_norm(random(6, 64)), "q8_0"))
        q, scales = nrg.layer_norm(self.x, self.w, format="int8_32")
        expected = nrg.quantize(nrg.layer_norm(self.x, self.w), "int8_32")
        self.bits(q, expected[0])
        self.bits(scales, expected[1])
        rows = random(2, 8, 64)
        self.bits(nrg.rms_norm(rows, format="q8_0_4x8"), nrg.quantize(nrg.rms_norm(rows), "q8_0_4x8"))

    def test_bytes_of_strided_rows(self):
        rows = random(8, 2, 64).transpose(1, 0, 2)
        for name in ("q8_0", "q8_0_4x8"):
            self.bits(nrg.rms_norm(rows, format=name), nrg.rms_norm(np.ascontiguousarray(rows), format=name))


class Backward(Case):
    def setUp(self):
        self.x, self.y, self.z, self.d_o = (random(2, 3, 16, seed=seed) for seed in range(4))
        self.w, self.b = random(16, seed=5), random(16, seed=6)

    def gradients(self, forward, given, backward):
        """Each gradient against differences of `forward` in float64, of which it is a function by keyword."""
        d_o = exact(self.d_o)
        operands = {name: exact(value) for name, value in given.items()}
        terms = 24 * np.abs(d_o).max()
        got = self.for_threads(backward)
        for name, actual in zip(("x", "residual", "gate", "weight", "bias"), got):
            if name in operands:
                expected = numeric(lambda v, name=name: forward(**{**operands, name: v}), operands[name].copy(), d_o)
                self.within(actual, expected, 1, terms)
                self.assertGreater(np.abs(expected).max(), 1e-3)
            else:
                self.assertIsNone(actual)

    def test_rms_norm(self):
        self.gradients(lambda x, weight: rms(x, weight), {"x": self.x, "weight": self.w},
                       lambda threads: nrg.rms_norm_backward(self.d_o, self.x, self.w, threads=threads))

    def test_layer_norm(self):
        self.gradients(lambda x, weight, bias: layer(x, weight, bias), {"x": self.x, "weight": self.w, "bias": self.b},
                       lambda threads: nrg.layer_norm_backward(self.d_o, self.x, self.w, self.b, threads=threads))

    def test_l2_normalize(self):
        self.gradients(lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True), {"x": self.x},
                       lambda threads: nrg.l2_normalize_backward(self.d_o, self.x, threads=threads))

    def test_residual_and_gate(self):
        self.gradients(lambda x, residual, gate, weight: rms(x + residual, weight) * silu(gate),
                       {"x": self.x, "residual": self.y, "gate": self.z, "weight": self.w},
                       lambda threads: nrg.rms_norm_backward(self.d_o, self.x, self.w, residual=self.y, gate=self.z, activation="silu",
                                                             threads=threads))

    def test_residual_after(self):
        self.gradients(lambda x, residual, weight: residual + rms(x, weight), {"x": self.x, "residual": self.y, "weight": self.w},
                       lambda threads: nrg.rms_norm_backward(self.d_o, self.x, self.w, residual=self.y, residual_mode="after",
                                                             threads=threads))

    def test_r_and_its_gradient(self):
        _, r = nrg.rms_norm(self.x, self.w, residual=self.y)
        whole = nrg.rms_norm_backward(self.d_o, self.x, self.w, residual=self.y)
        self.bits(nrg.rms_norm_backward(self.d_o, self.x, self.w, residual=self.y, r=r).dx, whole.dx)
        self.bits(nrg.rms_norm_backward(self.d_o, self.x, self.w, r=r, d_r=self.z).dx, whole.dx + self.z)

    def test_sandwich(self):
        x, y, w1, w2 = self.x, self.y, self.w, self.b
        o, r = self.for_threads(lambda threads: nrg.sandwich_norm(x, y, w1, w2, threads=threads))
        self.bits(r, nrg.rms_norm(x, w1, residual=y, residual_mode="after"))
        self.bits(o, nrg.rms_norm(r, w2))
        got = self.for_threads(lambda threads: nrg.sandwich_norm_backward(self.d_o, x, r, w1, w2, d_r=self.z, threads=threads))
        second = nrg.rms_norm_backward(self.d_o, r, w2, d_r=None, r=r)
        dr = second.dx + self.z
        first = nrg.rms_norm_backward(dr, x, w1)
        for a, b in ((got.dresidual, dr), (got.dx, first.dx), (got.dweight1, first.dweight), (got.dweight2, second.dweight)):
            self.bits(a, b)
        self.bits(nrg.sandwich_norm(random(2, 32), random(2, 32, seed=1), format="q8_0")[0],
                  nrg.quantize(nrg.sandwich_norm(random(2, 32), random(2, 32, seed=1))[0]))
