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
        nrg.rms_norm(x[:, 1], out=out[:, 1])
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
        """A batch of 0 is one of 1 to nrg_rope, groups of 0 are 1, a table of no rows has as many as there are tokens: none of these
        may come from an array that is empty."""
        rope, empty = nrg.Rope(8), np.empty((0, 3, 2, 8), np.float32)
        table = rope.table(3)
        self.assertEqual(nrg.rope(rope, empty, table=table).shape, empty.shape)
        self.assertEqual(nrg.rope(rope, empty, table=table, positions=np.empty((0, 3), np.int32)).shape, empty.shape)
        self.assertEqual(nrg.norm_rope_backward(rope, empty, None, empty, table=table).dq.shape, empty.shape)
        with self.assertRaisesRegex(ValueError, "table has 0 rows"):
            nrg.rope(rope, random(3, 2, 8), table=table[:0], positions=np.zeros(3, np.int32))
        with self.assertRaisesRegex(ValueError, "num_groups is 0"):
            nrg.group_norm(random(2, 6, 4), 0, stats=True)
        with self.assertRaisesRegex(ValueError, "v: "):
            nrg.qkv(rope, random(3, 2, 8), random(3, 2, 8), np.empty((3, 2, 0), np.float32))
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
        self.refused("nrg_norm_forward: eps is negative, infinite or NaN", nrg.rms_norm, x, eps=-1)
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
        self.refused("id", nrg.embedding, np.array([4], np.int32), x)
        self.refused("position or an id", nrg.cross_entropy, x, np.array([0, 1, 2, 8], np.int32))
        self.refused("multiple of groups", nrg.group_norm, random(2, 6, 4), 4)
        self.refused("multiple of groups", nrg.rms_norm, x, groups=3)
        self.refused("path has this name", nrg.set_isa, "mmx")

    def test_dtypes(self):
        x = random(4, 8)
        self.refused("float64 is none of", nrg.rms_norm, x.astype(np.float64))
        self.refused("bf16", nrg.rms_norm, nrg.to_bf16(x))
        self.refused("dtype 'bf17' is none of", nrg.rms_norm, x, dtype="bf17")
        self.refused("none of f32, f16, bf16", nrg.silu, x, dtype=np.float64)
        self.refused("order of bytes", nrg.rms_norm, x.astype(x.dtype.newbyteorder()))
        self.refused("float16", nrg.rms_norm, x, out=np.empty((4, 8), np.float16))
        self.refused("dtype", nrg.rms_norm, x, residual=x.astype(np.float16))
        self.refused("gate", nrg.rms_norm, x, gate=x.astype(np.float16))

    def test_shapes(self):
        x = random(4, 8)
        self.refused("weight", nrg.rms_norm, x, random(7))
        self.refused("repeat", nrg.rms_norm, x, residual=random(3, 8))
        self.refused("out", nrg.rms_norm, x, out=random(4, 7))
        self.refused("a number", nrg.softmax, np.float32(1))
        self.refused("rows", nrg.rms_norm, np.float32(1))
        self.refused("d_o", nrg.softmax_backward, random(4, 7), x)
        self.refused("multiples of 32", nrg.quantize, x)
        self.refused("lie together by 4", nrg.quantize, random(3, 32), "q8_0_4x4")

    def test_memory(self):
        x = random(4, 8)
        self.refused("not adjacent", nrg.rms_norm, x.T)
        self.refused("not adjacent", nrg.rms_norm, x[:, ::-1])
        self.refused("reverse", nrg.rms_norm, x[::-1])
        self.refused("repeats", nrg.rms_norm, np.broadcast_to(x[0], (4, 8)))
        self.refused("three", nrg.rms_norm, random(4, 4, 4, 4, 4, 8)[:, ::2, ::2, ::2, ::2])
        frozen = x.copy()
        frozen.flags.writeable = False
        self.refused("read-only", nrg.rms_norm, x, out=frozen)

    def test_names(self):
        x = random(4, 8)
        self.refused("none of identity, sigmoid", nrg.activation, x, "swishy")
        self.refused("none of", nrg.rms_norm, x, accuracy="perfect")
        for threads in (0, -1, 1025, 10 ** 12):  # the last of them was a process without memory
            self.refused(f"threads is {threads}", nrg.rms_norm, x, threads=threads)
            self.refused(f"threads is {threads}", nrg.rms_norm_backward, x, x, x[0], threads=threads)
        for threads in (1.5, "2", None):
            with self.assertRaises(TypeError):
                nrg.rms_norm(x, threads=threads)
        self.refused("window is -1, which is out of range", nrg.softmax, x, window=-1)
        self.refused("query_offset", nrg.softmax, x, query_offset=2 ** 63)
        self.refused("out of range", nrg.sinusoidal, 4, 8, first=2 ** 31)
        self.bits(nrg.softmax(x, window=np.int64(3), causal=True), nrg.softmax(x, window=3, causal=True))
        with self.assertRaisesRegex(TypeError, "no option epsilon"):
            nrg.rms_norm(x, epsilon=1)

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
        self.assertGreaterEqual(nrg.numbers_version(), 3)
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
