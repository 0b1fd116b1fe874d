"""Activations, gated units, softmax, cross-entropy, channel norms, RoPE, bytes and positions against NumPy in float64."""
import math

import numpy as np

import nrg
from support import BF16, Case, exact, numeric, random

erf = np.vectorize(math.erf)
ACTIVATIONS = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "tanh": np.tanh,
    "gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "gelu_quick": lambda x: x / (1 + np.exp(-1.702 * x)),
    "hard_swish": lambda x: x * np.clip((x + 3) / 6, 0, 1),
    "hard_sigmoid": lambda x: np.clip((x + 3) / 6, 0, 1),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "exp": np.exp,
    "expm1": np.expm1,
    "softsign": lambda x: x / (1 + np.abs(x)),
}


class Activations(Case):
    def test_all_of_them(self):
        """A name of the C library that has no function here, or no reference, is a failure."""
        from nrg import _abi  # pylint: disable=import-outside-toplevel
        names = {name[len("NRG_ACT_"):].lower() for name in _abi.ENUMS["nrg_activation"]} - {"identity"}
        self.assertEqual(names, set(ACTIVATIONS))
        for name, reference in ACTIVATIONS.items():
            for dtype in ("f32", "f16", "bf16"):
                x, d_o = random(7, 33, dtype=dtype), random(7, 33, seed=1, dtype=dtype)
                given = BF16 if dtype == "bf16" else {}
                o = self.for_threads(lambda threads: getattr(nrg, name)(x, threads=threads, **given))
                self.within(o, reference(exact(x)), 6)
                dx = self.for_threads(lambda threads: getattr(nrg, name + "_backward")(d_o, x, threads=threads, **given))
                slope = (reference(exact(x) + 1e-6) - reference(exact(x) - 1e-6)) / 2e-6
                self.within(dx, exact(d_o) * slope, 64, (1 + np.abs(slope)) * np.abs(exact(d_o)))

    def test_alpha(self):
        x = random(64)
        self.within(nrg.elu(x, 2.5), np.where(x > 0, exact(x), 2.5 * np.expm1(exact(x))), 6)
        for name in ("elu", "leaky_relu"):
            g, g_backward = getattr(nrg, name), getattr(nrg, name + "_backward")
            self.bits(g(x, 0), nrg.relu(x))
            self.bits(g_backward(x, x, 0), nrg.relu_backward(x, x))
            self.bits(g(x, {"elu": 1, "leaky_relu": 0.01}[name]), g(x))
            self.bits(nrg.glu(x, x, activation=name, alpha=0), nrg.reglu(x, x))
        self.bits(nrg.gelu_quick(x, 1.702), nrg.gelu_quick(x))
        with self.assertRaisesRegex(nrg.Error, "out of its range"):
            nrg.gelu_quick(x, 0)

    def test_glu(self):
        a, b, d_o = random(4, 6, 20), random(4, 6, 20, seed=1), random(4, 6, 20, seed=2)
        both = np.concatenate([a, b], -1)
        for function, gate in ((nrg.swiglu, "silu"), (nrg.geglu, "gelu"), (nrg.geglu_tanh, "gelu_tanh"), (nrg.reglu, "relu"), (nrg.glu, "sigmoid")):
            o = self.for_threads(lambda threads: function(a, b, threads=threads))
            self.within(o, ACTIVATIONS[gate](exact(a)) * exact(b), 8)
            self.bits(function(both, swapped=False), o)
            self.bits(function(np.concatenate([b, a], -1), swapped=True), o)
            self.bits(function(np.concatenate([b, a], -1)) if function is nrg.glu else function(both), o)
            self.bits(function(np.stack([a, b], -1).reshape(4, 6, 40), pairs=True), o)
        self.bits(nrg.bilinear(a, b), a * b)
        da, db = self.for_threads(lambda threads: nrg.swiglu_backward(d_o, a, b, threads=threads))
        self.within(db, exact(d_o) * ACTIVATIONS["silu"](exact(a)), 8)
        slope = (ACTIVATIONS["silu"](exact(a) + 1e-6) - ACTIVATIONS["silu"](exact(a) - 1e-6)) / 2e-6
        self.within(da, exact(d_o) * exact(b) * slope, 64, np.abs(exact(d_o) * exact(b)) * 2)
        self.bits(nrg.swiglu_backward(d_o, both), np.concatenate([da, db], -1))
        self.bits(nrg.swiglu_backward(d_o, np.concatenate([b, a], -1), swapped=True), np.concatenate([db, da], -1))
        self.bits(nrg.swiglu_backward(d_o, np.stack([a, b], -1).reshape(4, 6, 40), pairs=True), np.stack([da, db], -1).reshape(4, 6, 40))
        half = [v.astype(np.float16) for v in (a, b)]
        self.within(nrg.swiglu(*half), ACTIVATIONS["silu"](exact(half[0])) * exact(half[1]), 8)
        self.bits(nrg.glu(a, b, format="int8")[0], nrg.quantize(nrg.glu(a, b), "int8")[0])

    def test_swiglu_oai(self):
        a, b = random(5, 40) * np.float32(6), random(5, 40, seed=1) * np.float32(6)
        gate, up = np.minimum(exact(a), 7), np.clip(exact(b), -7, 7) + 1
        self.within(nrg.swiglu_oai(a, b), gate / (1 + np.exp(-1.702 * gate)) * up, 12, np.abs(gate) * (np.abs(up) + 1))
        self.bits(nrg.reglu(a, b, limit=0, b_offset=1), np.zeros_like(a))
        self.bits(nrg.bilinear(a, b, limit=0, b_offset=2), np.minimum(a, 0) * np.float32(2))


class Softmax(Case):
    @staticmethod
    def reference(t, axis=-1):
        e = np.exp(t - t.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    def test_rows(self):
        for dtype in ("f32", "f16", "bf16"):
            x = random(5, 33, dtype=dtype)
            given = BF16 if dtype == "bf16" else {}
            self.within(self.for_threads(lambda threads: nrg.softmax(x, threads=threads, **given)), self.reference(exact(x)))
            self.within(nrg.log_softmax(x, **given), np.log(self.reference(exact(x))), 8)
            zeros = np.zeros_like(x)
            self.bits(nrg.softmax(x, scale=0, **given), nrg.softmax(zeros, **given))
            self.bits(exact(nrg.softmax_backward(x, x, scale=0, **given)) == 0, np.ones(x.shape, bool))

    def test_attention(self):
        x, sinks = random(2, 3, 4, 9), random(3)
        mask = np.where(np.arange(9) == 7, np.float32(-np.inf), np.float32(0.25))
        t = exact(x) * 0.5
        seen = np.arange(9)[None, :] <= np.arange(4)[:, None] + 5
        t = np.where(seen, np.tanh(t / 2) * 2, -np.inf) + mask
        whole = np.concatenate([t, np.broadcast_to(exact(sinks)[None, :, None, None], (2, 3, 4, 1))], -1)
        o = self.for_threads(lambda threads: nrg.softmax(x, scale=0.5, cap=2.0, causal=True, first_position=5, mask=mask, sinks=sinks,
                                                         threads=threads))
        self.within(o, self.reference(whole)[..., :-1], 12)

    def test_biases(self):
        x, slopes = random(2, 4, 3, 7), nrg.alibi_slopes(4)
        diagonals = nrg.alibi_diagonals(slopes, 3, 7)
        distance = np.abs(np.arange(7)[None, :] - (np.arange(3)[:, None] + 4))
        biased = exact(x) - exact(slopes)[:, None, None] * distance
        self.within(nrg.softmax(x, diagonals=diagonals), self.reference(biased), 16)
        self.within(nrg.score_bias(x, diagonals), biased, 2, np.abs(exact(x)) + 4)
        self.within(nrg.score_bias(x, diagonals, scale=0), biased - exact(x), 2, np.full_like(x, 4))
        self.bits(slopes, (2.0 ** -np.arange(2, 9, 2)).astype(np.float32))

    def test_backward(self):
        x, d_o = random(2, 3, 8), random(2, 3, 8, seed=1)
        o = nrg.softmax(x)
        dx = self.for_threads(lambda threads: nrg.softmax_backward(d_o, o, threads=threads))
        self.within(dx, numeric(self.reference, exact(x), exact(d_o)), 1, 8)
        dx = nrg.log_softmax_backward(d_o, nrg.log_softmax(x))
        self.within(dx, numeric(lambda v: np.log(self.reference(v)), exact(x), exact(d_o)), 1, 16)

    def test_cross_entropy(self):
        x, ids = random(4, 5, 11), np.random.default_rng(0).integers(0, 11, (4, 5)).astype(np.int32)
        ids[1, 2] = -100
        kept = ids >= 0

        def reference(v):
            picked = np.take_along_axis(v, np.maximum(ids, 0)[..., None], -1)[..., 0]
            return np.where(kept, np.log(np.exp(v).sum(-1)) - picked, 0)

        loss, m, others = self.for_threads(lambda threads: nrg.cross_entropy(x, ids, reduction="none", stats=True, threads=threads))
        self.within(loss, reference(exact(x)), 8, 4 + np.zeros((4, 5)))
        d_loss = np.full((4, 5), 1 / 19, np.float32)
        dx = self.for_threads(lambda threads: nrg.cross_entropy_backward(d_loss, x, ids, m, others, reduction="none", threads=threads))
        self.within(dx, numeric(reference, exact(x), exact(d_loss)), 1, 0.5)


class Channels(Case):
    def norm(self, x, axes, w, b):
        x = exact(x)
        o = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
        return o * exact(w)[:, None, None] + exact(b)[:, None, None]

    def setUp(self):
        self.x, self.y = random(4, 6, 5, 7), random(4, 6, 5, 7, seed=1)
        self.w, self.b = random(6), random(6, seed=1)

    def test_batch_norm(self):
        mean, var = np.zeros(6, np.float32), np.ones(6, np.float32)
        o = nrg.batch_norm(self.x, mean, var, self.w, self.b, training=True)
        self.within(o, self.norm(self.x, (0, 2, 3), self.w, self.b), 16, 8 + np.abs(exact(self.x)))
        x = exact(self.x)
        self.within(mean, 0.1 * x.mean((0, 2, 3)), 4, 1 + np.zeros(6))
        self.within(var, 0.9 + 0.1 * x.var((0, 2, 3), ddof=1), 4)
        o = self.for_threads(lambda threads: nrg.batch_norm(self.x, mean, var, self.w, self.b, residual=self.y, activation="relu",
                                                            threads=threads))
        scale = exact(self.w) / np.sqrt(exact(var) + 1e-5)
        expected = (x - exact(mean)[:, None, None]) * scale[:, None, None] + exact(self.b)[:, None, None] + exact(self.y)
        self.within(o, np.maximum(expected, 0), 8, 8 + np.abs(expected))

    def test_group_norm(self):
        o = self.for_threads(lambda threads: nrg.group_norm(self.x, 3, self.w, self.b, threads=threads))
        grouped = self.x.reshape(4, 3, 2, 5, 7)
        x = exact(grouped)
        expected = ((x - x.mean((2, 3, 4), keepdims=True)) / np.sqrt(x.var((2, 3, 4), keepdims=True) + 1e-5)).reshape(self.x.shape)
        expected = expected * exact(self.w)[:, None, None] + exact(self.b)[:, None, None]
        self.within(o, expected, 16, 8 + np.abs(expected))
        last = nrg.group_norm(np.ascontiguousarray(self.x.transpose(0, 2, 3, 1)), 3, self.w, self.b, layout="nhwc")
        self.within(last.transpose(0, 3, 1, 2), expected, 16, 8 + np.abs(expected))
        self.within(nrg.instance_norm(self.x, weight=self.w, bias=self.b), self.norm(self.x, (2, 3), self.w, self.b), 16, 8 + np.abs(expected))

    def test_backward(self):
        x, d_o, w, b = random(3, 4, 5), random(3, 4, 5, seed=1), random(4), random(4, seed=1)

        def batch(x, w, b):
            o = (x - x.mean((0, 2), keepdims=True)) / np.sqrt(x.var((0, 2), keepdims=True) + 1e-5)
            return o * w[:, None] + b[:, None]

        def instance(x, w, b):
            o = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
            return o * w[:, None] + b[:, None]

        _, statistics = nrg.batch_norm(x, weight=w, bias=b, training=True, stats=True)
        for reference, backward in ((batch, lambda threads: nrg.batch_norm_backward(d_o, x, weight=w, bias=b, threads=threads)),
                                    (batch, lambda threads: nrg.batch_norm_backward(d_o, x, weight=w, bias=b, statistics=statistics,
                                                                                    threads=threads)),
                                    (instance, lambda threads: nrg.instance_norm_backward(d_o, x, weight=w, bias=b, threads=threads))):
            got = self.for_threads(backward)
            values = [exact(v) for v in (x, w, b)]
            for i, actual in ((0, got.dx), (1, got.dweight), (2, got.dbias)):
                expected = numeric(lambda v, i=i: reference(*values[:i], v, *values[i + 1:]), values[i].copy(), exact(d_o))
                self.within(actual, expected, 1, 40)


class Rotary(Case):
    def rotated(self, x, angles):
        half = x.shape[-1] // 2
        a, b = x[..., :half], x[..., half:]
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    def setUp(self):
        self.rope = nrg.Rope(16, base=10000.0)
        self.angles = np.arange(6)[:, None] * 10000.0 ** (-np.arange(8) / 8)
        self.table = self.for_threads(lambda threads: self.rope.table(6, threads=threads))

    def test_table(self):
        self.within(self.table, np.concatenate([np.cos(self.angles), np.sin(self.angles)], -1), 2)
        self.bits(self.rope.table(np.array([5, 2], np.int32)), self.table[[5, 2]])
        self.bits(self.rope.table(2, first_position=3), self.table[3:5])

    def test_yarn(self):
        """gpt-oss's, as _compute_yarn_parameters of transformers has it."""
        pairs, theta = np.arange(32), 150000.0 ** (-np.arange(32) / 32)
        low, high = (64 * np.log(4096 / (beta * 2 * np.pi)) / (2 * np.log(150000)) for beta in (32, 1))
        for truncate in (True, False):
            ends = (np.floor(low), np.ceil(high)) if truncate else (low, high)
            ramp = np.clip((pairs - ends[0]) / (ends[1] - ends[0]), 0, 1)
            expected = theta / 32 * ramp + theta * (1 - ramp)
            for mscale, magnitude in ((True, 1.25 * (1 + 0.1 * np.log(32))), (False, 1.25)):
                rope = nrg.Rope(64, base=150000.0, freq_scale=1 / 32, ext_factor=1.0, n_ctx_orig=4096, attn_factor=1.25, truncate=truncate,
                                mscale=mscale)
                self.assertTrue(np.allclose(rope.frequencies[0] * 2 * np.pi, expected, rtol=1e-12, atol=0))
                self.assertAlmostEqual(rope.magnitude, magnitude, delta=1e-12)

    def test_rotation(self):
        q, k = random(2, 6, 4, 16), random(2, 6, 2, 16, seed=1)
        q_o, k_o = self.for_threads(lambda threads: nrg.rope(q, k=k, angles=self.rope, table=self.table, threads=threads))
        for x, o in ((q, q_o), (k, k_o)):
            self.within(o, self.rotated(exact(x), self.angles), 4, np.abs(exact(x)) + np.abs(exact(np.roll(x, 8, -1))))
        back, _ = nrg.rope_backward(q_o, d_k=k_o, angles=self.rope, table=self.table)
        self.within(back, exact(q), 8, np.abs(exact(q)) + np.abs(exact(np.roll(q, 8, -1))))
        heads_first = np.ascontiguousarray(q.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
        self.bits(np.ascontiguousarray(nrg.rope(heads_first, angles=self.rope, table=self.table)), q_o)
        for dtype, given in (("f16", {}), ("bf16", BF16)):
            x = random(6, 4, 16, dtype=dtype)
            self.within(nrg.rope(x, angles=self.rope, table=self.table, **given), self.rotated(exact(x), self.angles), 4, 2 + np.abs(exact(x)))
        order = np.array([3, 3, 0, 1, 5, 2], np.int32)
        self.bits(nrg.rope(q, order, angles=self.rope, table=self.table), nrg.rope(q, angles=self.rope, table=self.table[order]))

    def test_norm_rope(self):
        q, k, w = random(6, 4, 16), random(6, 2, 16, seed=1), random(16)
        got = self.for_threads(lambda threads: nrg.norm_rope(q, k, w, w, angles=self.rope, table=self.table, threads=threads))
        self.bits(got[0], nrg.rope(nrg.rms_norm(q, w), angles=self.rope, table=self.table))
        self.bits(got[1], nrg.rope(nrg.rms_norm(k, w), angles=self.rope, table=self.table))

    def test_norm_rope_backward(self):
        q, k, w = random(6, 4, 16), random(6, 2, 16, seed=1), random(16)
        d_q, d_k, b = random(6, 4, 16, seed=2), random(6, 2, 16, seed=3), random(16, seed=4)
        got = self.for_threads(lambda threads: nrg.norm_rope_backward(d_q, d_k, q, k, w, w, angles=self.rope, table=self.table, q_bias=b,
                                                                      centred=True, eps=1e-5, threads=threads))
        for x, d_o, dx, dw in ((q, d_q, got.dq, got.dq_weight), (k, d_k, got.dk, got.dk_weight)):
            expected = nrg.layer_norm_backward(nrg.rope_backward(d_o, angles=self.rope, table=self.table), x, w, b)
            self.bits(dx, expected.dx)
            self.bits(dw, expected.dweight)
            if d_o is d_q:
                self.bits(got.dq_bias, expected.dbias)
        self.assertIsNone(got.dk_bias)
        self.bits(nrg.norm_rope_backward(d_q, None, q, None, w, angles=self.rope, table=self.table, centred=True, eps=1e-5).dq, got.dq)
        # heads before tokens
        views = [np.ascontiguousarray(x.transpose(1, 0, 2)).transpose(1, 0, 2) for x in (d_q, q)]
        self.bits(np.ascontiguousarray(nrg.norm_rope_backward(views[0], None, views[1], None, w, angles=self.rope, table=self.table,
                                                              centred=True, eps=1e-5).dq), got.dq)

    def test_qkv(self):
        q, k, v, w = random(6, 4, 16), random(6, 2, 16, seed=1), random(6, 2, 32, seed=2), random(16)
        slots = np.array([9, 1, 3, 0, 7, 4])
        k_cache, v_cache = np.zeros((10, 2, 16), np.float16), np.zeros((10, 2, 34), np.uint8)
        plain = nrg.norm_rope(q, k, w, w, angles=self.rope, table=self.table)
        for threads in (1, 2, 7):
            q_o, _, _ = nrg.qkv(q, k, v, angles=self.rope, slots=slots, k_cache=k_cache, v_cache=v_cache, q_weight=w, k_weight=w, eps=1e-6,
                                threads=threads)
            self.bits(q_o, plain[0])
            self.bits(k_cache[slots], plain[1].astype(np.float16))
            self.bits(v_cache[slots], nrg.quantize(v))
        self.assertFalse(k_cache[2].any() or v_cache[5].any())
        k_cache[0], v_cache[0] = 5, 5
        before = k_cache.copy(), v_cache.copy()
        slots[3] = -1  # a padding token
        q_o, _, _ = nrg.qkv(q, k, v, angles=self.rope, slots=slots, k_cache=k_cache, v_cache=v_cache, q_weight=w, k_weight=w, eps=1e-6)
        self.bits(q_o, plain[0])
        self.bits(k_cache, before[0])
        self.bits(v_cache, before[1])


class Bytes(Case):
    def test_q8_0(self):
        x = random(3, 64)
        q = self.for_threads(lambda threads: nrg.quantize(x, "q8_0", threads=threads))
        blocks = q.reshape(3, 2, 34)
        d = x.reshape(3, 2, 32).__abs__().max(-1) / np.float32(127)
        self.bits(np.ascontiguousarray(blocks[..., :2]).view(np.float16)[..., 0], d.astype(np.float16))
        expected = np.rint(x.reshape(3, 2, 32) * (np.float32(1) / d)[..., None])
        self.assertTrue((blocks[..., 2:].view(np.int8) == expected).all())
        numbers = (expected * d.astype(np.float16).astype(np.float32)[..., None]).reshape(3, 64)
        self.bits(nrg.dequantize(q), numbers.astype(np.float32))

    def test_there_and_back(self):
        x = random(2, 8, 512)
        for name in ("q8_0", "q8_0_4x4", "q8_0_8x8", "q8_k", "q8_k_4x8", "int8", "int8_32", "int8_128"):
            got = self.for_threads(lambda threads: nrg.quantize(x, name, threads=threads))
            q, scales = got if isinstance(got, tuple) else (got, None)
            back = nrg.dequantize(q, scales, name)
            self.assertLess(np.abs(back - x).max(), np.abs(x).max() / 250)
            self.bits(nrg.dequantize(q, scales, name, dtype="f16"), back.astype(np.float16))
        half = random(2, 64, dtype="bf16")
        self.bits(nrg.quantize(half, dtype="bf16"), nrg.quantize(nrg.from_bf16(half)))

    def test_hadamard(self):
        for dim in (64, 128, 256, 512):
            h = np.array([[1.0]])
            while len(h) < dim:
                h = np.block([[h, h], [h, -h]])
            x = random(5, dim)
            terms = np.abs(exact(x)).sum(-1, keepdims=True) / dim ** 0.5
            for function in (nrg.hadamard, nrg.hadamard_backward):
                o = self.for_threads(lambda threads: function(x, threads=threads))
                self.within(o, exact(x) @ h / dim ** 0.5, 12, terms)
                half = x.astype(np.float16)
                self.bits(function(half), function(half.astype(np.float32)).astype(np.float16))
                self.bits(function(nrg.to_bf16(x), dtype="bf16"), nrg.to_bf16(function(nrg.from_bf16(nrg.to_bf16(x)))))
                view = np.zeros((5, dim + 9), np.float32)[:, 3:dim + 3]
                view[:] = x
                self.assertIs(function(view, out=view), view)
                self.bits(np.ascontiguousarray(view), o)
        with self.assertRaisesRegex(ValueError, r"^d_o: expected rows of 64, 128, 256 or 512 elements, got float32 \[2, 96\]"):
            nrg.hadamard_backward(random(2, 96))


class Positions(Case):
    def test_sinusoids(self):
        angles = np.arange(9)[:, None] * 10000.0 ** (-np.arange(6) / 6)
        expected = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(9, 12)
        self.within(self.for_threads(lambda threads: nrg.sinusoidal(9, 12, threads=threads)), expected, 2)
        self.bits(nrg.sinusoidal(np.array([4, 0], np.int32), 12), nrg.sinusoidal(9, 12)[[4, 0]])
        self.bits(nrg.sinusoidal(9, 12, dtype="f16"), nrg.sinusoidal(9, 12).astype(np.float16))

    def test_embeddings(self):
        table, places, x = random(10, 12), random(20, 12, seed=1), random(6, 12, seed=2)
        ids = np.array([3, 3, 9, 0, 1, 3], np.int32)
        self.bits(nrg.embedding(ids, table), table[ids])
        self.bits(nrg.embedding(ids, table, scale=0) == 0, np.ones((6, 12), bool))
        self.bits(nrg.embedding_backward(x, ids, 10, scale=0) == 0, np.ones((10, 12), bool))
        self.bits(nrg.embed([nrg.Term(table, ids), nrg.Term(places, first=4)], x=x), (x + table[ids]) + places[4:10])
        self.bits(nrg.embed(nrg.Term(places, period=3), tokens=6), places[[0, 1, 2, 0, 1, 2]])
        d = np.zeros((10, 12))
        np.add.at(d, ids, exact(x))
        self.within(self.for_threads(lambda threads: nrg.embedding_backward(x, ids, 10, threads=threads)), d, 2)

    def test_score_biases(self):
        table, d_o = random(32, 3), random(2, 3, 4, 9)
        diagonals = nrg.t5_diagonals(table, 4, 9, first_position=2)
        buckets = np.array([[nrg.t5_bucket(j - i - 2) for j in range(9)] for i in range(4)])
        self.bits(nrg.score_bias(np.zeros_like(d_o), diagonals)[0], np.ascontiguousarray(table[buckets].transpose(2, 0, 1)))
        d_diagonals = self.for_threads(lambda threads: nrg.score_bias_backward(d_o, threads=threads))
        d_table = np.zeros((32, 3))
        np.add.at(d_table, buckets, exact(d_o).sum(0).transpose(1, 2, 0))
        self.within(nrg.t5_diagonals_backward(d_diagonals, 4, 9, first_position=2), d_table, 2, np.abs(d_table) + 1e-6)

    def test_relative(self):
        q, table, a = random(2, 3, 4, 8), random(5, 8), random(2, 3, 4, 6)
        classes = np.clip(np.arange(4)[:, None] + 2 - np.arange(6)[None, :], -2, 2) + 2
        chosen = exact(table)[classes]
        expected = np.einsum("bhid,ijd->bhij", exact(q), chosen)
        self.within(self.for_threads(lambda threads: nrg.relative_scores(q, table, 6, -2, 2, first_position=2, threads=threads)), expected, 2,
                    np.abs(expected) + 1e-6)
        expected = np.einsum("bhij,ijd->bhid", exact(a), chosen)
        self.within(nrg.relative_values(a, table, -2, 2, first_position=2), expected, 2, np.abs(expected) + 1e-6)
        d_table = np.zeros((5, 8))
        np.add.at(d_table, classes, np.einsum("bhij,bhid->ijd", exact(a), exact(q)))
        self.within(nrg.relative_backward(a, q, -2, 2, first_position=2), d_table, 2, np.abs(d_table) + 1e-6)

    def test_relative_shift(self):
        x = random(2, 3, 4, 6)
        scores = nrg.relative_shift(x, 6, 3)
        for i in range(4):
            for j in range(6):
                column = j - i + 3
                self.assertTrue((scores[:, :, i, j] == (x[:, :, i, column] if column < 6 else 0)).all())
        self.bits(nrg.relative_shift_backward(scores, 6, 3)[:, :, 0, 3:], scores[:, :, 0, :3])

    def test_head_bias(self):
        q, u, v = random(2, 3, 4, 8), random(3, 8), random(3, 8, seed=1)
        for view in (q, np.ascontiguousarray(q.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3), q[:1], q[0], q[:, :, :1]):
            a, b = self.for_threads(lambda threads: nrg.head_bias(view, u, v, threads=threads))
            self.bits(a, np.ascontiguousarray(view) + u[:, None])
            self.bits(b, np.ascontiguousarray(view) + v[:, None])
        dq, du, dv = self.for_threads(lambda threads: nrg.head_bias_backward(q, q * 2, threads=threads))
        self.bits(dq, q + q * 2)
        self.within(du, exact(q).sum((0, 2)), 1, np.abs(exact(q)).sum((0, 2)))
        self.within(dv, exact(q * 2).sum((0, 2)), 1, np.abs(exact(q)).sum((0, 2)) * 2)

    def test_recurrence(self):
        w, b, p0 = random(6, 6) * np.float32(0.3), random(6), random(2, 6)
        p = self.for_threads(lambda threads: nrg.recurrent_positions(w, p0, 3, b=b, threads=threads))

        def chain(w, b, p0):
            steps = []
            for _ in range(3):
                p0 = np.tanh(p0 @ w.T + b)
                steps.append(p0)
            return np.stack(steps, 1)

        self.within(p, chain(exact(w), exact(b), exact(p0)), 24, 1 + np.zeros((2, 3, 6)))
        dp = random(2, 3, 6, seed=9)
        got = self.for_threads(lambda threads: nrg.recurrent_positions_backward(dp, p, w, p0, threads=threads))
        values = [exact(v) for v in (w, b, p0)]
        for i in range(3):
            expected = numeric(lambda v, i=i: chain(*values[:i], v, *values[i + 1:]), values[i].copy(), exact(dp))
            self.within(got[i], expected, 1, 60)
