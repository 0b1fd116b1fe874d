"""Replays (python/replay.c): calls like earlier ones run little Python, and give what the Python functions give."""
import inspect
import sys
import threading
import weakref

import numpy as np

import nrg
from nrg import _library
from support import Case, of_examples, random

ROPE = nrg.Rope(16, base=500.0, freq_factors=np.linspace(1, 2, 8, dtype=np.float32))


def calls(seed):
    """Calls whose arrays have other contents and addresses for another seed, and nothing else."""
    x, y, z, r, out = (random(5, 3, 64, seed=seed + i) for i in range(5))
    w, b = random(64, seed=seed), random(64, seed=seed + 1)
    a, c, e, da, db = (random(4, 96, seed=seed + i) for i in range(5))
    heads, positions = random(2, 4, 3, 16, seed=seed), np.arange(seed, seed + 4, dtype=np.int32)
    q8, (int8, scales) = nrg.quantize(a), nrg.quantize(a, "int8")
    half, bf16 = x.astype(np.float16), nrg.to_bf16(x)
    values, keys, cache = random(4, 2, 16, seed=seed), np.zeros((9, 3, 16), np.float32), np.zeros((9, 2, 16), np.float32)
    slots, bias = np.arange(3, -1, -1) + seed % 5, random(4, 18, seed=seed)
    return [lambda: nrg.rms_norm(x, w), lambda: nrg.rms_norm(x, (64,), w, eps=1e-3), lambda: nrg.layer_norm(x, w, b, residual=y, out=out),
            lambda: nrg.layer_norm(x[:, 1], gate=z[:, 0], activation="silu"), lambda: nrg.l2_normalize(r, out=r),
            lambda: nrg.rms_norm(x, w, format="int8"), lambda: nrg.rms_norm(half, accuracy="exact"), lambda: nrg.rms_norm(bf16, dtype="bf16"),
            lambda: nrg.rms_norm(x, residual=y[:1]), lambda: nrg.layer_norm_backward(y, z, w, b),
            lambda: nrg.rms_norm_backward(y, z, w, residual=r, d_r=z, out=y), lambda: nrg.sandwich_norm(x, z, w, b),
            lambda: nrg.silu(a), lambda: nrg.gelu(c, out=c), lambda: nrg.tanh_backward(a, e), lambda: nrg.leaky_relu(e, 0.2),
            lambda: nrg.swiglu(a), lambda: nrg.swiglu(a[:, :48], a[:, 48:]), lambda: nrg.swiglu(a[:, 8:40], a[:, 24:56]),
            lambda: nrg.swiglu(a, out=a[:, 48:]), lambda: nrg.swiglu_backward(c, a, e, out=(da, db)),
            lambda: nrg.softmax(e, causal=True, first_position=50), lambda: nrg.log_softmax(e, out=e), lambda: nrg.softmax(heads, mask=heads[0, 0]),
            lambda: nrg.softmax_backward(a, e), lambda: nrg.quantize(a), lambda: nrg.quantize(a, "int8"), lambda: nrg.dequantize(q8),
            lambda: nrg.dequantize(int8, scales, "int8"), lambda: nrg.rope(heads, positions), lambda: nrg.rope(heads, 7, base=500.0),
            lambda: nrg.rope(heads, positions, k=heads[:, :, :1]), lambda: nrg.rope_backward(heads, positions, angles=ROPE),
            lambda: nrg.norm_rope(heads, positions=positions, angles=ROPE), lambda: nrg.batch_norm(x, w[:3], w[3:6] ** 2),
            lambda: nrg.group_norm(x, 3, stats=True), lambda: nrg.instance_norm_backward(y, z),
            lambda: nrg.qkv(heads[0], heads[1], values, positions=positions, slots=slots, k_cache=keys, v_cache=cache, eps=1e-6),
            lambda: nrg.score_bias(heads, bias), lambda: nrg.relative_shift(x, 40, 1)]


def functions_of_python(function):
    """The result of a call, and the names of the Python functions that run in it."""
    names = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        return function(), names
    finally:
        sys.setprofile(None)


class Replays(Case):
    def setUp(self):
        if _library._replay is None:
            self.assertTrue(sys.platform == "win32" or sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)())
            self.skipTest("this build has no replays")

    def same(self, got, expected):
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, expected)), strict=True):
            if b is None:
                self.assertIsNone(a)
            else:
                self.bits(a, b)

    def test_results(self):
        made = [[call() for call in calls(seed)] for seed in (1, 5, 9)]  # the first as Python, the second recorded
        for seed, results in zip((1, 5, 9), made):
            for call, expected in zip(calls(seed), results, strict=True):
                got, names = functions_of_python(call)
                self.same(got, expected)
                self.assertFalse({"share", "as_array", "struct"} & set(names), inspect.getsource(call))

    def test_examples(self):
        """The calls in the docstrings of planned functions, of which those with lists and two more stay Python's."""
        slow = []
        for name, given in of_examples().items():
            function = getattr(nrg, name)
            if function.__code__.co_name == "planned_function":
                _, expected = function(**given), function(**given)
                got, names = functions_of_python(lambda: function(**given))  # pylint: disable=cell-var-from-loop
                self.same(got, expected)
                slow += [name] if {"share", "as_array", "struct"} & set(names) else []
        self.assertEqual(sorted(slow), ["group_norm_backward", "instance_norm_backward", "norm_rope", "qkv", "rope"])

    def test_results_are_new_arrays(self):
        x = random(3, 24)
        made = [nrg.silu(x) for _ in range(6)]
        self.assertEqual(len({each.ctypes.data for each in made}), 6)
        before = sys.getrefcount(x), sys.getrefcount(made[0])
        for _ in range(100):
            nrg.silu(x, out=made[0])
        self.assertEqual((sys.getrefcount(x), sys.getrefcount(made[0])), before)
        self.assertIs(nrg.silu(x, out=made[0]), made[0])
        alive = weakref.ref(nrg.silu(x))
        self.assertIsNone(alive())

    def test_shapes_and_dtypes(self):
        """Other arrays at equal addresses, with equal strides."""
        x = random(6, 32).astype(np.float16)
        for _ in range(4):
            for rows in range(1, 7):
                for columns in (8, 32):
                    self.bits(nrg.silu(x[:rows, :columns]), nrg.silu(x)[:rows, :columns].copy())
            with self.assertRaisesRegex(ValueError, "^x: expected float32, .*, got uint16"):
                nrg.silu(x.view(np.uint16))

    def test_distance_of_arrays(self):
        """The same shapes at other distances: halves of one array, the same array twice, a result over one of the inputs, or none of these."""
        memory = random(12, 96)
        whole, rows = memory[:4], [memory[4:8, :48], memory[8:, :48], memory[8:, 48:]]

        def places():
            for a in (whole[:, :48], rows[0], rows[1]):
                for b in (whole[:, 48:], whole[:, :48], rows[0], rows[2]):
                    for out in (a, b, rows[2], None):
                        yield a, b, out
        start = memory.copy()
        for _ in range(4):
            for a, b, out in places():
                memory[:] = start
                expected = nrg.swiglu(a.copy(), b.copy())
                got = nrg.swiglu(a, b, out=out)
                self.bits(np.ascontiguousarray(got), expected)
                self.assertTrue(out is None or got is out)

    def test_types_of_options(self):
        """1, 1.0 and True are equal, and not the same option."""
        x = random(4, 32)
        for _ in range(4):
            nrg.rms_norm(x, groups=1, eps=1)
            with self.assertRaisesRegex(ValueError, "^groups: expected an integer, got 1.0"):
                nrg.rms_norm(x, groups=1.0, eps=1)
            self.bits(nrg.softmax(x, scale=2), nrg.softmax(x, scale=2.0))
            self.bits(nrg.softmax(x, causal=False, scale=0.5), nrg.softmax(x, scale=np.float32(0.5)))
            self.assertFalse(np.array_equal(nrg.elu(x, 1.0), nrg.elu(x, 2.0)))

    def test_errors(self):
        """What the library finds is an error again, and what replays cannot do is one of Python."""
        x, out, angles = random(4, 16), np.empty((4, 16), np.float32), nrg.Rope(16)
        table, ids = angles.table(4), np.arange(4, dtype=np.int32)
        for _ in range(4):
            nrg.rms_norm(x, out=out)
            nrg.rope(x, ids, table=table)
        self.assertFalse({"share"} & set(functions_of_python(lambda: nrg.rope(x, ids, table=table))[1]))
        ids[3] = 4
        with self.assertRaisesRegex(nrg.Error, r"\(positions: expected integers from 0 to 3, got 4\)$"):
            nrg.rope(x, ids, table=table)
        out.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "^out: expected a writable array, got a read-only one"):
            nrg.rms_norm(x, out=out)
        x.flags.writeable = False
        self.bits(nrg.rms_norm(x), nrg.rms_norm(x.copy()))
        with self.assertRaisesRegex(TypeError, "nope"):
            nrg.silu(x, nope=1)

    def test_values_are_not_kept(self):
        """An option that is read from an array counts anew each time."""
        x, position = random(1, 3, 8), np.array(0)
        for i in range(5):
            position[...] = i
            self.bits(nrg.rope(x, position), nrg.rope(x, i))

    def test_more_calls_than_plans(self):
        x = random(2, 8)
        for _ in range(3):
            for i in range(1, 1400):
                self.assertEqual(nrg.elu(x, i / 64)[0, 0], nrg.elu(x[:1], i / 64)[0, 0])

    def test_threads_and_paths(self):
        x, w = random(64, 32), random(32)
        expected, failures = nrg.rms_norm(x, w), []

        def work():
            for _ in range(300):
                if nrg.rms_norm(x, w).tobytes() != expected.tobytes():
                    failures.append(1)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertFalse(failures)
        for name in nrg.isas():
            with nrg.use_isa(name):
                self.bits(nrg.rms_norm(x, w), expected)
                self.bits(nrg.rms_norm(x, w, threads=2), expected)


if __name__ == "__main__":
    import unittest
    unittest.main()
