"""Argument names and forms of PyTorch and NumPy, empty arrays, and more than four dimensions."""
import subprocess
import sys

import numpy as np

import nrg
from support import Case, random


class Forms(Case):
    def test_normalized_shape(self):
        x, w, b = random(3, 4, 96), random(96), random(96, seed=1)
        expected = nrg.layer_norm(x, w, b)
        for result in (nrg.layer_norm(x, (96,), w, b), nrg.layer_norm(x, 96, w, b), nrg.layer_norm(x, np.int64(96), w, b), nrg.layer_norm(x, (96,), w, b, 1e-5),
                       nrg.layer_norm(x, weight=w, bias=b), nrg.layer_norm(x, (96,), weight=w, bias=b), nrg.layer_norm(x, w, bias=b),
                       nrg.layer_norm(x, w.tolist(), b.tolist())):
            self.bits(result, expected)
        self.bits(nrg.rms_norm(x, (96,), w), nrg.rms_norm(x, w))
        self.bits(nrg.rms_norm(x, (96,), w, 1e-3), nrg.rms_norm(x, w, eps=1e-3))
        self.bits(nrg.rms_norm(x, 96), nrg.rms_norm(x))
        self.bits(nrg.layer_norm_backward(x, x, (96,), w, b).dx, nrg.layer_norm_backward(x, x, w, b).dx)

    def test_normalized_shape_of_two_dimensions(self):
        x, y, d = random(3, 4, 96), random(3, 4, 96, seed=1), random(3, 4, 96, seed=2)
        w = random(4, 96)
        flat = x.reshape(3, 384), w.reshape(384)
        self.bits(nrg.layer_norm(x, (4, 96), w), nrg.layer_norm(*flat).reshape(x.shape))
        o, r = nrg.rms_norm(x, (4, 96), w, residual=y)
        self.bits(r, x + y)
        self.bits(o, nrg.rms_norm(r, (4, 96), w))
        self.bits(nrg.rms_norm(x, (4, 96), residual=y[:1])[1], x + y[:1])
        out = np.empty_like(x)
        self.assertIs(nrg.rms_norm(x, (4, 96), out=out), out)
        got, expected = nrg.rms_norm_backward(d, x, (4, 96), w), nrg.rms_norm_backward(d.reshape(3, 384), *flat)
        self.bits(got.dx, expected.dx.reshape(x.shape))
        self.bits(got.dweight, expected.dweight.reshape(w.shape))
        for pattern, arguments in ((r"^x: expected \[..., 5\], as normalized_shape specifies, got float32 \[3, 4, 96\]", ((5,),)),
                                   (r"^weight: expected \[96\], got float32 \[95\]", ((96,), w[0, :95])),
                                   ("^x: expected dimensions 1 to 2 that merge into one", None),
                                   ("^normalized_shape: expected a tuple or an int before weight and bias", (w[0], w[0], w[0])),
                                   ("^normalized_shape: expected an integer, got 96.0", ((96.0,),))):
            with self.assertRaisesRegex(ValueError, pattern):
                nrg.layer_norm(*((x, *arguments) if arguments else (random(3, 8, 96)[:, ::2], (4, 96))))

    def test_eps_of_none(self):
        """The machine epsilon of x's dtype."""
        for x, eps in ((random(3, 8), 2.0 ** -23), (random(3, 8).astype(np.float16), 2.0 ** -10)):
            self.bits(nrg.rms_norm(x, eps=None), nrg.rms_norm(x, eps=eps))
        x = random(3, 8, dtype="bf16")
        self.bits(nrg.rms_norm(x, eps=None, dtype="bf16"), nrg.rms_norm(x, eps=2.0 ** -7, dtype="bf16"))

    def test_dim_and_axis(self):
        x = random(2, 3, 4, 8)
        target = np.zeros((2, 3, 4), int)
        for function in (nrg.softmax, nrg.log_softmax, nrg.rms_norm, nrg.layer_norm, nrg.l2_normalize, nrg.norm, nrg.swiglu, nrg.glu):
            for given in ({"dim": -1}, {"dim": 3}, {"axis": -1}, {"axis": 3}, {"dim": -1, "axis": 3}):
                self.bits(function(x, **given), function(x))
            for name, value in (("dim", 0), ("dim", 1), ("axis", -2), ("axis", 2)):
                with self.assertRaisesRegex(ValueError, rf"^{name}: expected the last dimension of [xa], -1 or 3, got {value}; .*moveaxis\([xa], {value}, -1\)"):
                    function(x, **{name: value})
            with self.assertRaisesRegex(ValueError, "^dim: expected the last dimension of [xa], -1 or 3, got 4$"):
                function(x, dim=4)
        self.bits(nrg.softmax(x, -1), nrg.softmax(x))
        self.bits(nrg.l2_normalize(x, -1), nrg.l2_normalize(x))
        self.bits(np.moveaxis(nrg.softmax(np.ascontiguousarray(np.moveaxis(x, 1, -1))), -1, 1)[0, :, 0, 0], nrg.softmax(x[0, :, 0, 0].copy()))
        self.assertEqual(nrg.cross_entropy(x, target, reduction="none").shape, (2, 3, 4))

    def test_cross_entropy(self):
        x, target = random(6, 11), np.array([3, -100, 0, 10, 5, -100])
        each, m, others = nrg.cross_entropy(x, target, reduction="none", stats=True)
        mean, total = nrg.cross_entropy(x, target), nrg.cross_entropy(x, target, reduction="sum")
        self.assertEqual((type(mean), type(total)), (np.float32, np.float32))
        self.assertEqual((float(mean), float(total)), (float(np.float32(each.astype(float).sum() / 4)), float(np.float32(each.astype(float).sum()))))
        for reduction, d_loss, rows in (("mean", 3.0, np.float32(0.75)), ("sum", 3.0, np.float32(3)), ("sum", np.float32(3), np.float32(3))):
            self.bits(nrg.cross_entropy_backward(d_loss, x, target, m, others, reduction=reduction),
                      nrg.cross_entropy_backward(np.full(6, rows), x, target, m, others, reduction="none"))
        self.assertTrue(np.isnan(nrg.cross_entropy(x[:0], target[:0])))
        self.assertEqual(nrg.cross_entropy(x[:0], target[:0], reduction="sum"), 0)
        self.assertTrue(np.isinf(nrg.cross_entropy(np.array([[0, np.inf], [0, -np.inf]], np.float32), [0, 1], reduction="none")).any())
        with self.assertRaisesRegex(ValueError, "^reduction: expected 'mean', 'sum' or 'none', got 'avg'"):
            nrg.cross_entropy(x, target, reduction="avg")
        with self.assertRaisesRegex(ValueError, r"^d_loss: expected a number, since reduction is 'mean', got float32 \[6\]"):
            nrg.cross_entropy_backward(each, x, target, m, others)

    def test_rope_in_one_call(self):
        x, angles = random(2, 6, 3, 16), nrg.Rope(16, base=500.0)
        table = angles.table(20)
        positions = np.array([3, 3, 0, 1, 5, 2])
        self.bits(nrg.rope(x, positions, base=500.0), nrg.rope(x, positions, angles=angles, table=table))
        self.bits(nrg.rope(x, base=500.0), nrg.rope(x, angles=angles, table=table))
        self.bits(nrg.rope(x, 7, base=500.0), nrg.rope(x, np.arange(7, 13), angles=angles, table=table))
        self.bits(nrg.rope(x, np.int64(7), base=500.0), nrg.rope(x, 7, base=500.0))
        self.bits(nrg.rope(x, positions.tolist(), base=500.0), nrg.rope(x, positions, angles=angles))
        of_batch = np.stack([positions, positions + 14])
        self.bits(nrg.rope(x, of_batch, base=500.0), nrg.rope(x, of_batch, angles=angles, table=table))
        self.bits(nrg.rope(x, of_batch), nrg.rope(x, of_batch, angles=nrg.Rope(16)))
        self.bits(nrg.rope(x[0, :, 0], positions), nrg.rope(x[:1, :, :1], positions)[0, :, 0])
        self.bits(nrg.rope(x, positions[None], base=500.0), nrg.rope(x, positions, base=500.0))
        self.bits(nrg.rope(x, positions[None], base=500.0, table=None), nrg.rope(x, positions[None], table=table))
        out = np.empty_like(x[0, :, 0])
        self.assertIs(nrg.rope(x[0, :, 0], positions, out=out), out)
        self.bits(nrg.rope(x[None], of_batch[None]), nrg.rope(x, of_batch)[None])
        self.bits(nrg.rope(x, n_dims=8)[..., 8:], x[..., 8:])
        self.bits(nrg.rope(x, rotate_from=8)[..., :8], x[..., :8])
        self.bits(nrg.rope(x, mode="normal"), nrg.rope(x, angles=nrg.Rope(16, mode="normal")))
        self.bits(nrg.rope(x, table=table), nrg.rope(x, angles=angles))
        self.within(nrg.rope_backward(nrg.rope(x, positions), positions), x.astype(float), 8, np.abs(x) + 4)
        mrope = nrg.Rope(16, mode="mrope", sections=(4, 4))
        of_axes = np.stack([positions, positions[::-1]])
        self.bits(nrg.rope(x, of_axes, angles=mrope), nrg.rope(x, angles=mrope, table=mrope.table(of_axes)))
        q, k, w = x, random(2, 6, 2, 16, seed=5), random(16)
        self.bits(nrg.norm_rope(q, k, w, w, positions=positions, base=500.0)[1], nrg.rope(nrg.rms_norm(k, w), positions, base=500.0))
        self.bits(nrg.qkv(q[0], None, None, base=500.0)[0], nrg.rope(q[0], base=500.0))
        for pattern, given in ((r"^positions: expected int32 .* \[6\], got int64 \[5\]", {"positions": positions[:5]}),
                               (r"^positions: expected int32 .* \[batch, tokens\] = \[2, 6\], got int64 \[3, 6\]", {"positions": np.zeros((3, 6), int)}),
                               (r"^positions: expected integers \[6\], or the first position, got 1.5", {"positions": 1.5}),
                               ("^base: expected None, since angles specifies it, got 3.0", {"base": 3.0, "angles": angles}),
                               ("^base: expected None, since table contains the angles, got 3.0", {"base": 3.0, "table": table}),
                               ("^angles: expected a Rope, got 'float'", {"angles": 10000.0})):
            with self.assertRaisesRegex(ValueError, pattern):
                nrg.rope(x, **given)

    def test_activations(self):
        x = random(5, 7)
        self.bits(nrg.gelu(x, approximate="tanh"), nrg.gelu_tanh(x))
        self.bits(nrg.gelu_backward(x, x, approximate="tanh"), nrg.gelu_tanh_backward(x, x))
        self.bits(nrg.leaky_relu(x, negative_slope=0.2), nrg.activation(x, "leaky_relu", alpha=0.2))
        with self.assertRaisesRegex(ValueError, "^approximate: expected 'none' or 'tanh', got 'erf'"):
            nrg.gelu(x, "erf")

    def test_embedding(self):
        ids, weight = np.array([[3, 0, 1], [1, 1, 2]]), random(4, 8)
        self.bits(nrg.embedding(ids, weight), weight[ids])
        self.bits(nrg.embedding(2, weight), weight[2])
        out = np.zeros((2, 3, 8), np.float32)
        self.assertIs(nrg.embedding(ids, weight, out=out), out)
        d = random(2, 3, 8)
        self.bits(nrg.embedding_backward(d, ids, 4), nrg.embedding_backward(d.reshape(6, 8), ids.reshape(6), 4))


class Imports(Case):
    def test_torch_is_optional(self):
        """`import nrg` loads no PyTorch. Without it, nrg.torch names what is missing."""
        program = "import sys, nrg; assert 'torch' not in sys.modules; sys.modules['torch'] = None; import nrg.torch"
        result = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=False)
        self.assertRegex(result.stderr, r"ImportError: nrg.torch: expected PyTorch, which is not installed: pip install torch\s*$")


class Dimensions(Case):
    def test_five_dimensions(self):
        """The result of each is that of the same rows in two dimensions."""
        x, w = random(2, 3, 2, 4, 32), random(32)
        rows = x.reshape(-1, 32)
        for function in (lambda v: nrg.rms_norm(v, w), lambda v: nrg.layer_norm(v, w, w, residual=v)[0], lambda v: nrg.l2_normalize(v), nrg.silu,
                         nrg.swiglu, nrg.softmax, nrg.log_softmax, lambda v: nrg.softmax_backward(v, v), nrg.quantize, lambda v: nrg.quantize(v, "int8")[0],
                         lambda v: nrg.rms_norm_backward(v, v, w).dx, lambda v: nrg.sandwich_norm(v, v, w, w)[0],
                         lambda v: nrg.cross_entropy(v, np.ones(v.shape[:-1], int), reduction="none")):
            result, expected = function(x), function(rows)
            self.assertEqual(result.shape[:4], x.shape[:4])
            self.bits(result.reshape(expected.shape), expected)
        self.bits(nrg.rope(x[:, :, :, :, None]), np.stack([[nrg.rope(b[:, :, None]) for b in a] for a in x]))

    def test_softmax_of_more_dimensions(self):
        x, mask = random(2, 3, 2, 4, 5, 6), random(3, 1, 1, 5, 6, seed=1)
        sinks = random(4)
        expected = np.stack([[nrg.softmax(b, mask=m, causal=True, sinks=sinks) for b, m in zip(a, mask)] for a in x])
        self.bits(nrg.softmax(x, mask=mask, causal=True, sinks=sinks), expected)
        view = np.ascontiguousarray(x.transpose(1, 0, 2, 3, 4, 5)).transpose(1, 0, 2, 3, 4, 5)
        self.bits(np.ascontiguousarray(nrg.softmax(view, mask=mask, causal=True, sinks=sinks)), expected)
        out = view.copy(order="K")
        self.assertIs(nrg.softmax(out, mask=mask, causal=True, sinks=sinks, out=out), out)
        self.bits(np.ascontiguousarray(out), expected)
        self.bits(nrg.softmax_backward(x, expected, causal=True), np.stack([nrg.softmax_backward(a, b, causal=True)
                                                                          for a, b in zip(x.reshape(6, 2, 4, 5, 6), expected.reshape(6, 2, 4, 5, 6))]).reshape(x.shape))

    def test_empty_arrays(self):
        w0 = np.empty(0, np.float32)
        for shape in ((0,), (3, 0), (0, 0), (2, 3, 4, 5, 0), (0, 8), (2, 0, 4, 3, 8)):
            x = np.empty(shape, np.float32)
            w = np.ones(shape[-1], np.float32)
            for function in (nrg.silu, nrg.softmax, nrg.log_softmax, nrg.swiglu, nrg.glu, nrg.rms_norm, nrg.l2_normalize, lambda v: nrg.layer_norm(v, w, w),
                             lambda v: nrg.rms_norm(v, residual=v)[1], lambda v: nrg.rms_norm_backward(v, v, w).dx, lambda v: nrg.softmax_backward(v, v),
                             lambda v: nrg.sandwich_norm(v, v)[0], lambda v: nrg.swiglu_backward(nrg.swiglu(v), v), lambda v: nrg.silu_backward(v, v)):
                result = function(x)
                self.assertEqual(result.size, 0)
                self.assertEqual(result.shape[:-1], shape[:-1])
        gradients = nrg.layer_norm_backward(np.empty((3, 0), np.float32), np.empty((3, 0), np.float32), w0, w0)
        self.assertEqual((gradients.dweight.shape, gradients.dbias.shape), ((0,), (0,)))
        _, mean, _ = nrg.layer_norm(np.empty((3, 0), np.float32), stats=True)
        self.assertTrue(np.isnan(mean).all())
        self.assertEqual(nrg.embedding([], random(4, 8)).shape, (0, 8))
        self.assertEqual(nrg.embedding(np.empty((0, 3), int), random(4, 8)).shape, (0, 3, 8))
        self.assertFalse(nrg.embedding_backward(np.empty((0, 8), np.float32), [], 4).any())
        self.assertEqual(nrg.cross_entropy(np.empty((0, 0), np.float32), np.empty(0, int), reduction="none").shape, (0,))
        self.assertEqual(nrg.rope(np.empty((2, 0, 3, 8), np.float32)).shape, (2, 0, 3, 8))
        self.assertEqual(nrg.quantize(np.empty((0, 32), np.float32)).shape, (0, 34))
        self.assertEqual(nrg.group_norm(np.empty((0, 4, 3), np.float32), 2).shape, (0, 4, 3))
        self.assertEqual(nrg.sinusoidal(0, 8).shape, (0, 8))
        self.assertEqual(nrg.head_bias(np.empty((2, 3, 0), np.float32), np.empty((2, 0), np.float32), np.empty((2, 0), np.float32))[0].shape, (2, 3, 0))


if __name__ == "__main__":
    import unittest
    unittest.main()
