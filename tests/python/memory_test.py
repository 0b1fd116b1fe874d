"""Nothing is copied: results are where they were asked for, views are worked on where they lie, threads change no bit, and what
cannot be done is refused with a sentence and nothing written."""
import concurrent.futures
import copy
import os
import pickle
import signal
import threading
import time
import tracemalloc
import unittest.mock

import numpy as np

import nrg
from nrg import _library
from support import Case, random


def address(array):
    return array.__array_interface__["data"][0]


class Memory(Case):
    def test_out_is_what_is_returned(self):
        x, y, out, r = random(6, 32), random(6, 32, seed=1), np.empty((6, 32), np.float32), np.empty((6, 32), np.float32)
        o, s = nrg.rms_norm(x, residual=y, out=out, residual_out=r)
        self.assertIs(o, out)
        self.assertIs(s, r)
        self.bits(out, nrg.rms_norm(x + y))
        for function in (nrg.silu, nrg.softmax, nrg.quantize):
            expected = function(x)
            out = np.empty_like(expected)
            self.assertIs(function(x, out=out), out)
            self.bits(out, expected)

    def test_in_place(self):
        for function in (nrg.rms_norm, nrg.layer_norm, nrg.gelu, nrg.softmax, nrg.l2_normalize):
            x = random(5, 24)
            expected, before = function(x), address(x)
            self.assertIs(function(x, out=x), x)
            self.assertEqual(address(x), before)
            self.bits(x, expected)

    def test_into_a_view(self):
        whole = np.full((4, 3, 40), 7, np.float32)
        view = whole[:, 1, 4:36]
        x = random(4, 32)
        self.assertTrue(np.shares_memory(nrg.rms_norm(x, out=view), whole))
        self.bits(np.ascontiguousarray(view), nrg.rms_norm(x))
        rest = np.ones(whole.shape, bool)
        rest[:, 1, 4:36] = False
        self.assertTrue((whole[rest] == 7).all())

    def test_strided_views(self):
        """Rows of a part of a matrix, in another order of dimensions, in steps: the bits of a copy."""
        big = random(4, 6, 5, 48)
        for view in (big[:, :, 2, 8:40], big[::2, 1::2], big.transpose(2, 0, 1, 3), big.transpose(1, 2, 0, 3)[..., :16], big[:1, :, :1], big[1]):
            copy = np.ascontiguousarray(view)
            self.assertTrue(np.shares_memory(view, big))
            for function in (nrg.rms_norm, nrg.silu, nrg.softmax, nrg.quantize if view.shape[-1] % 32 == 0 else nrg.tanh,
                             lambda v: nrg.rms_norm(v, residual=v)[1], lambda v: nrg.rms_norm_backward(v, v, r=v).dx,
                             lambda v: nrg.swiglu(v), lambda v: nrg.swiglu(v, v), lambda v: nrg.swiglu_backward(v, v, v)[0]):
                self.bits(np.ascontiguousarray(function(view)), np.ascontiguousarray(function(copy)))

    def test_no_hidden_copy(self):
        """A call on 16 MB of strided views allocates next to nothing."""
        x = random(2048, 2, 1024)
        out = np.empty_like(x)
        nrg.rms_norm(x[:, 1], out=out[:, 1], threads=2)  # the pool is there
        tracemalloc.start()
        nrg.rms_norm(x[:, 1], residual=x[:, 0], out=out[:, 1], residual_out=out[:, 0])
        nrg.silu(x[:, 1], out=out[:, 1])
        nrg.softmax(x[:, 1], out=out[:, 1])
        nrg.rms_norm_backward(x[:, 1], x[:, 0], out=out[:, 0], threads=2)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.assertLess(peak, 100_000)

    def test_broadcast_residual_is_not_expanded(self):
        x, y = random(64, 4096), random(4096, seed=1)
        out, r = np.empty_like(x), np.empty_like(x)
        tracemalloc.start()
        nrg.rms_norm(x, residual=y, out=out, residual_out=r)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.assertLess(peak, 100_000)
        self.bits(r, x + y)

    def test_other_arrays(self):
        """What shows its memory as an array is read there."""
        class Tensor:
            def __init__(self, array):
                self.__array_interface__ = array.__array_interface__

        x = random(4, 16)
        self.bits(nrg.rms_norm(Tensor(x)), nrg.rms_norm(x))

    def test_empty(self):
        self.assertEqual(nrg.rms_norm(np.empty((0, 8), np.float32)).shape, (0, 8))
        self.assertEqual(nrg.silu(np.empty((3, 0), np.float32)).shape, (3, 0))
        gradients = nrg.layer_norm_backward(np.empty((0, 8), np.float32), np.empty((0, 8), np.float32), random(8), random(8))
        self.assertFalse(gradients.dweight.any())

    def test_where_zero_means_another_thing_to_c(self):
        """Groups of 0 are 1: none of these
        may come from an array that is empty."""
        rope, empty = nrg.Rope(8), np.empty((0, 3, 2, 8), np.float32)
        table = rope.table(3)
        self.assertEqual(nrg.rope(empty, angles=rope, table=table).shape, empty.shape)
        self.assertEqual(nrg.rope(empty, np.empty((0, 3), np.int32), angles=rope, table=table).shape, empty.shape)
        self.assertEqual(nrg.norm_rope_backward(empty, None, empty, angles=rope, table=table).dq.shape, empty.shape)
        with self.assertRaisesRegex(ValueError, "position"):
            nrg.rope(random(3, 2, 8), np.zeros(3, np.int32), angles=rope, table=table[:0])
        with self.assertRaisesRegex(ValueError, "num_groups: expected an integer from 1, got 0"):
            nrg.group_norm(random(2, 6, 4), 0, stats=True)
        with self.assertRaisesRegex(ValueError, "v: "):
            nrg.qkv(random(3, 2, 8), random(3, 2, 8), np.empty((3, 2, 0), np.float32), angles=rope)
        for function in (nrg.softmax, nrg.score_bias_backward, nrg.silu, nrg.rms_norm, lambda x: nrg.relative_shift(x, 5, 1)):
            for shape in ((0, 2, 3, 4), (2, 0, 3, 4), (2, 3, 0, 4)):
                function(np.empty(shape, np.float32))
        self.assertEqual(nrg.softmax(np.empty((2, 0), np.float32)).shape, (2, 0))


class Refusals(Case):
    def refused(self, pattern, function, *arguments, **given):
        with self.assertRaisesRegex(ValueError, pattern):
            function(*arguments, **given)

    def test_the_library_s_sentences(self):
        x = random(4, 8)
        self.refused(r"^nrg_norm_forward: eps is negative, infinite or NaN \(eps is -1\)$", nrg.rms_norm, x, eps=-1)
        with self.assertRaises(nrg.Error) as caught:
            nrg.rms_norm(x, eps=float("nan"))
        self.assertEqual(caught.exception.status, "NRG_ERR_EPS")
        there = pickle.loads(pickle.dumps(caught.exception))  # as multiprocessing hands it over
        self.assertEqual((type(there), str(there), there.status), (nrg.Error, str(caught.exception), "NRG_ERR_EPS"))
        rope = nrg.Rope(8, sections=(2, 2), mode="mrope", freq_factors=np.array([1, 2, 3, 4], np.float32))
        for copied in (pickle.loads(pickle.dumps(rope)), copy.deepcopy(rope)):
            self.assertTrue(np.array_equal(copied.frequencies, rope.frequencies))
            self.assertEqual((copied.axes, copied.spec.freq_base), (rope.axes, rope.spec.freq_base))
            self.assertEqual(copied.spec.freq_factors, copied._freq_factors.ctypes.data)
        self.refused("overlap", nrg.rms_norm, x[:-1], out=x[1:])
        self.refused(r"id .*\(ids: expected integers from 0 to 3, got 4\)$", nrg.embedding, np.array([4], np.int32), x)
        self.refused(r"position or an id .*\(target: expected integers from 0 to 7, got 8\)$", nrg.cross_entropy, x, np.array([0, 1, 2, 8], np.int32))
        self.refused(r"\(positions: expected integers from 0 to 2, got 3\)$", nrg.rope, x, np.array([0, 1, 2, 3]), table=nrg.Rope(8).table(3))
        self.refused(r"\(scale is inf\)$", nrg.softmax, x, scale=float("inf"))
        self.refused("path has this name", nrg.set_isa, "mmx")

    def test_dtypes(self):
        x = random(4, 8)
        self.refused(r"^x: expected float32, .*, got float64 \[4, 8\]", nrg.rms_norm, x.astype(np.float64))
        self.refused("bf16", nrg.rms_norm, nrg.to_bf16(x))
        self.refused("^dtype: expected f32, f16 or bf16, got 'bf17'", nrg.rms_norm, x, dtype="bf17")
        self.refused("^dtype: expected f32, f16 or bf16, got <class", nrg.silu, x, dtype=np.float64)
        for function in (nrg.rms_norm, nrg.layer_norm, nrg.silu, nrg.softmax, nrg.quantize, nrg.swiglu):
            self.refused(r"expected bfloat16, as dtype specifies, got float32 \[4, 8\]", function, x, dtype="bf16")
            self.refused(r"expected float16, as dtype specifies, got float32 \[4, 8\]", function, x, dtype=np.float16)
        self.refused(r"^out: expected bfloat16, as dtype", nrg.sinusoidal, 4, 8, dtype="bf16", out=np.empty((4, 8), np.float32))
        self.assertEqual(nrg.sinusoidal(4, 8, out=np.empty((4, 8), np.float16)).dtype, np.float16)
        self.bits(nrg.rms_norm(x, dtype="f32"), nrg.rms_norm(x))
        self.refused("^x: expected an array in this machine's byte order .*, got '[<>]f4'", nrg.rms_norm, x.astype(x.dtype.newbyteorder()))
        self.refused("float16", nrg.rms_norm, x, out=np.empty((4, 8), np.float16))
        self.refused(r"^residual: expected float32, since x is float32, got float16 \[4, 8\]", nrg.rms_norm, x, residual=x.astype(np.float16))
        self.refused(r"^gate: expected float32 like x, got float16 \[4, 8\]", nrg.rms_norm, x, gate=x.astype(np.float16))
        self.refused(r"^bias: expected float32 like weight, got float16", nrg.layer_norm, x.astype(np.float16), x[0], x[0].astype(np.float16))

    def test_ids(self):
        """NumPy's integers are int64; those that the library has no type for are converted, if they fit."""
        table, x = random(5, 8), random(4, 8)
        expected = table[[3, 0, 4]]
        for kind in (np.int32, np.int64, np.uint8, np.uint64, np.int16):
            self.bits(nrg.embedding(np.array([3, 0, 4], kind), table), expected)
            self.bits(nrg.embedding(np.array([3, 9, 0, 9, 4, 9], kind)[::2], table), expected)
        self.bits(nrg.embedding([3, 0, 4], table), expected)
        self.bits(nrg.embed([nrg.Term(table, [3, 0, 4]), nrg.Term(table, np.arange(3))]), expected + table[:3])
        self.bits(nrg.cross_entropy(x, np.arange(4)), nrg.cross_entropy(x, np.arange(4, dtype=np.int32)))
        self.bits(nrg.sinusoidal(np.arange(4), 8), nrg.sinusoidal(4, 8))
        self.bits(nrg.embedding_backward(x, np.arange(4), 5), np.concatenate([x, np.zeros((1, 8), np.float32)]))
        rope = nrg.Rope(8)
        heads, table8 = random(4, 2, 8), rope.table(np.arange(4))
        self.bits(table8, rope.table(4))
        self.bits(nrg.rope(heads, np.arange(4), angles=rope, table=table8), nrg.rope(heads, angles=rope, table=table8))
        caches = [nrg.qkv(heads, heads, None, angles=rope, positions=np.arange(4), slots=np.arange(4, dtype=kind), k_cache=np.zeros((6, 2, 8), np.float32))[1]
                  for kind in (np.int64, np.int32)]
        self.bits(*caches)
        for wrong in (2 ** 31, -2 ** 31 - 1, 2 ** 32):  # the last would be 0, if bits were cut off
            self.refused(f"^ids: expected int32 .*, got int64 with {wrong}", nrg.embedding, np.array([0, wrong]), table)
        for wrong in (np.zeros(3, np.float32), np.zeros(3, bool), np.zeros((3, 1)), 1.5, ["a"], None):
            self.refused("^ids: expected", nrg.embedding, wrong, table)
        self.refused(r"^target: expected int32 .* \[4\], got int64 \[3\]", nrg.cross_entropy, x, np.arange(3))

    def test_a_class_may_be_ignored(self):
        x, ids = random(4, 8), np.array([0, 3, 0, 5])
        loss, m, others = nrg.cross_entropy(x, ids, ignore_index=0, reduction="none", stats=True)
        expected = np.where(ids == 0, np.float32(0), nrg.cross_entropy(x, ids, reduction="none"))
        self.bits(loss, expected)
        dx = nrg.cross_entropy_backward(np.ones(4, np.float32), x, ids, m, others, ignore_index=0, reduction="none")
        self.assertEqual(dx.any(-1).tolist(), [False, True, False, True])

    def test_shapes(self):
        x = random(4, 8)
        self.refused(r"^weight: expected \[8\], got float32 \[7\]", nrg.rms_norm, x, random(7))
        self.refused(r"^residual: expected float32 \[4, 8\], or a shape that broadcasts to it, got float32 \[3, 8\]", nrg.rms_norm, x,
                     residual=random(3, 8))
        self.refused(r"^out: expected float32 \[4, 8\], got float32 \[4, 7\]", nrg.rms_norm, x, out=random(4, 7))
        self.refused(r"^x: expected rows of elements \[..., dim\], got float32 \[\]", nrg.softmax, np.float32(1))
        self.refused(r"^x: expected \[..., dim\], got float32 \[\]", nrg.rms_norm, np.float32(1))
        self.refused(r"^d_o: expected float32 \[8\], got float32 \[\]", nrg.rms_norm_backward, np.array(1, np.float32), x[0])
        self.refused(r"^d_o: expected float32 \[4, 8\] like o, got float32 \[4, 7\]", nrg.softmax_backward, random(4, 7), x)
        self.refused(r"^x: expected rows of a multiple of 32 elements, got \[4, 8\]", nrg.quantize, x)
        self.refused(r"^x: expected a multiple of 4 rows, .*, got \[3, 32\]", nrg.quantize, random(3, 32), "q8_0_4x4")
        self.refused("^num_groups: expected a divisor of the 6 channels, got 4", nrg.group_norm, random(2, 6, 4), 4)
        self.refused("^groups: expected a divisor of the 8 elements of a row, got 3", nrg.rms_norm, x, groups=3)
        for function in (nrg.instance_norm, lambda empty: nrg.instance_norm_backward(empty, empty)):
            self.refused(r"^x: expected one position or more in each channel, got float32 \[2, 3, 0\]", function, np.empty((2, 3, 0), np.float32))
        self.refused("^positions: expected an integer from 0, got -1", nrg.recurrent_positions, random(8, 8), x, -1)
        self.refused("^heads: expected an integer from 0, got -3", nrg.alibi_slopes, -3)
        self.refused("^out: expected two arrays, or None, got", nrg.swiglu_backward, x, x, x, out=x)

    def test_memory(self):
        x = random(4, 8)
        self.refused(r"^x: expected rows of adjacent elements \(np.ascontiguousarray .*\), got float32 \[8, 4\] with strides", nrg.rms_norm, x.T)
        self.refused("adjacent", nrg.rms_norm, x[:, ::-1])
        self.refused("ascending order .* in reverse", nrg.rms_norm, x[::-1])
        self.refused("^x: expected rows that do not repeat", nrg.rms_norm, np.broadcast_to(x[0], (4, 8)))
        self.refused("three", nrg.rms_norm, random(4, 4, 4, 4, 4, 8)[:, ::2, ::2, ::2, ::2])
        frozen = x.copy()
        frozen.flags.writeable = False
        self.refused("read-only", nrg.rms_norm, x, out=frozen)

    def test_names(self):
        x = random(4, 8)
        self.refused("^name: expected one of identity, sigmoid, .*, got 'swishy'", nrg.activation, x, "swishy")
        self.refused("^accuracy: expected one of fast, exact, got 'perfect'", nrg.rms_norm, x, accuracy="perfect")
        for threads in (0, -1, 1025, 10 ** 12):  # the last of them was a process without memory
            self.refused(f"threads: expected 1 to 1024, got {threads}", nrg.rms_norm, x, threads=threads)
            self.refused(f"threads: expected 1 to 1024, got {threads}", nrg.rms_norm_backward, x, x, x[0], threads=threads)
        for threads in (1.5, "2", None):
            with self.assertRaisesRegex(TypeError, "^threads: expected an integer from 1 to 1024, got "):
                nrg.rms_norm(x, threads=threads)
        with self.assertRaisesRegex(TypeError, "^eps: expected a number, got 'a'"):
            nrg.rms_norm(x, eps="a")
        with self.assertRaisesRegex(TypeError, r"^eps: expected one value, got \[1\]"):
            nrg.rms_norm(x, eps=[1])
        with self.assertRaisesRegex(TypeError, "^threads: expected an integer from 1 to 1024, got 2.0"):
            nrg.qkv(random(4, 2, 8), None, None, threads=2.0)
        self.refused("^window: expected an integer in the range of the C type, got -1", nrg.softmax, x, window=-1)
        self.refused("first_position", nrg.softmax, x, first_position=2 ** 63)
        self.refused("^first_position: .* got 2147483648", nrg.sinusoidal, 4, 8, first_position=2 ** 31)
        self.bits(nrg.softmax(x, window=np.int64(3), causal=True), nrg.softmax(x, window=3, causal=True))
        with self.assertRaisesRegex(TypeError, "epsilon"):
            nrg.rms_norm(x, epsilon=1)

    def test_remedies(self):
        """Mistakes of a first program, each with what to write."""
        x, w, q = random(4, 64), random(64), random(2, 6, 3, 64)
        out_of_order = random(3, 5, 7), np.zeros((3, 7), int)
        for pattern, function, arguments, options in (
                ("^x: expected an array, got None", nrg.rms_norm, (None,), {}),
                (r"^x: expected float32, .*, got float64 \[4, 64\]; x.astype\(np.float32\) converts it", nrg.rms_norm, (x.astype(float),), {}),
                (r"^weight: expected 64 elements, since a list is a weight \(write a shape as a tuple: \(32,\)\), got \[32\]", nrg.layer_norm, (x, [32]), {}),
                (r"^weight: .* tuple: \(4, 64\)", nrg.layer_norm, (x, [4, 64]), {}),
                (r"^weight: expected an array, or eps by name \(eps=1e-06\), got 1e-06", nrg.rms_norm, (x, w, 1e-6), {}),
                (r"^bias: expected an array, or eps by name \(eps=1e-06\), got 1e-06", nrg.layer_norm, (x, w, w, 1e-6), {}),
                (r"^mask: expected numbers .*, got bool \[64\]; .*np.where\(mask, ", nrg.softmax, (x,), {"mask": w > 0}),
                ("^x: expected the input of softmax.*, got None", nrg.softmax_backward, (x, x), {"cap": 2.0}),
                (r"^x: expected None, since cap is not given, got float32 \[4, 64\]", nrg.softmax_backward, (x, x), {"x": x}),
                (r"^target: expected integers \[3, 5\], since classes are last.*moveaxis", nrg.cross_entropy, out_of_order, {}),
                (r"^q: expected an even head dim, got float32 \[2, 6, 3, 63\]", nrg.norm_rope, (q[..., :63],), {}),
                (r"^q: expected an even head dim, got float32 \[6, 3, 63\]", nrg.qkv, (q[0, ..., :63], None, None), {}),
                (r"^normalized_shape: expected a tuple or an int before weight and bias, such as \(64,\), got \[64\]", nrg.layer_norm,
                 (x, [64], w, w), {}),
                (r"^k: expected float32 \[2, 6, heads, 64\], since", nrg.rope, (q,), {"k": q[:1]}),
                ("^scales: expected None with format='q8_0'.*pass format='int8'", nrg.dequantize, nrg.quantize(x, "int8"), {}),
                ("^format: expected one of q8_0, .* q8_K, .*, got 'q4'", nrg.quantize, (x, "q4"), {}),
                (r"^x: expected uint16, or bfloat16 of ml_dtypes, got float32 \[64\]", nrg.from_bf16, (w,), {}),
                (r"^x: expected float32, got float64 \[64\]", nrg.to_bf16, (w.astype(float),), {})):
            self.refused(pattern, function, *arguments, **options)
        self.bits(nrg.to_bf16([1, 1.5]), nrg.to_bf16(np.array([1, 1.5], np.float32)))

    def test_nothing_is_written(self):
        x, out = random(4, 8), np.full((4, 8), 3, np.float32)
        self.refused("eps", nrg.rms_norm, x, eps=-1, out=out, threads=3)
        self.assertTrue((out == 3).all())


class Process(Case):
    def test_paths(self):
        x = random(64, 100)
        before, expected = nrg.isa(), nrg.layer_norm(x)
        self.assertIn(before, nrg.isas())
        for path in nrg.isas():
            with nrg.use_isa(path):
                self.assertEqual(nrg.isa(), path)
                self.bits(nrg.layer_norm(x), expected)
            self.assertEqual(nrg.isa(), before)

    def test_versions(self):
        self.assertRegex(nrg.version(), r"^\d+\.\d+\.\d+$")
        self.assertEqual(nrg.numbers_version(), 1)
        self.assertIsNone(nrg.fp_environment())

    def test_calls_from_many_threads(self):
        x = random(200, 64)
        expected = nrg.rms_norm(x)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for o in pool.map(lambda i: nrg.rms_norm(x, threads=1 + i % 5), range(200)):
                self.bits(o, expected)

    def test_interrupted(self):
        """Ctrl-C while shares run: it is heard when they are done, since they write to memory that is let go of then."""
        # in the background of a shell it is ignored, and Python then leaves it so
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            shares = [pool.submit(time.sleep, 0.3), pool.submit(time.sleep, 0.2)]
            timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                _library._wait(shares)
            self.assertTrue(all(share.done() for share in shares))

    def test_an_exception_waits_for_the_other_shares(self):
        done = []

        def slow(ith, _):
            if ith == 0:
                raise KeyboardInterrupt
            time.sleep(0.1)
            done.append(ith)
            return 0

        with unittest.mock.patch.object(_library, "function", lambda name: slow), self.assertRaises(KeyboardInterrupt):
            _library.share("a call", threads=3)
        self.assertEqual(sorted(done), [1, 2])

    def test_threads_after_fork(self):
        x = random(200, 64)
        expected = nrg.rms_norm(x, threads=4)
        child = os.fork()
        if child == 0:
            os._exit(0 if nrg.rms_norm(x, threads=4).tobytes() == expected.tobytes() else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_bf16_of_ml_dtypes(self):
        try:
            import ml_dtypes  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("no ml_dtypes here")
        x = random(4, 32).astype(ml_dtypes.bfloat16)
        o = nrg.rms_norm(x)
        self.assertEqual(o.dtype, x.dtype)
        self.bits(o.view(np.uint16), nrg.rms_norm(x.view(np.uint16), dtype="bf16"))

    def test_bf16_there_and_back(self):
        x = np.array([1, 1 + 2 ** -9, 1 + 3 * 2 ** -9, -0.0, np.inf, 3.4e38, 1e-40], np.float32)
        expected = np.array([0x3f80, 0x3f80, 0x3f81, 0x8000, 0x7f80, 0x7f80, 0x0001], np.uint16)
        self.assertEqual(nrg.to_bf16(x).tolist()[:6], expected.tolist()[:6])
        self.assertTrue(np.isnan(nrg.from_bf16(nrg.to_bf16(np.array([np.nan], np.float32))))[0])
        every = np.arange(65536, dtype=np.uint16)
        numbers = nrg.from_bf16(every)
        self.assertTrue((nrg.to_bf16(numbers) == every)[~np.isnan(numbers)].all())
