"""What the tests of the Python package share: random tensors, bounds, gradients by differences."""
import doctest
import inspect
import types
import unittest

import numpy as np

import nrg

ULP = {"float32": 2.0 ** -24, "float16": 2.0 ** -11, "uint16": 2.0 ** -8}
BF16 = {"dtype": "bf16"}


def random(*shape, seed=0, dtype="f32"):
    """Normal numbers as f32, f16, or bf16 in uint16."""
    x = np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)
    return nrg.to_bf16(x) if dtype == "bf16" else x.astype({"f32": np.float32, "f16": np.float16}[dtype])


def exact(x):
    """Any of these as float64."""
    return nrg.from_bf16(x).astype(np.float64) if x.dtype == np.uint16 else x.astype(np.float64)


def same(a, b):
    """Equal to the bit."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def numeric(function, x, d_o, step=1e-5):
    """The gradient of Σ d_o ⊙ function(x) in float64, by central differences."""
    gradient = np.empty_like(x)
    for i in np.ndindex(x.shape):
        old = x[i]
        x[i] = old + step
        above = (d_o * function(x)).sum()
        x[i] = old - step
        below = (d_o * function(x)).sum()
        x[i] = old
        gradient[i] = (above - below) / (2 * step)
    return gradient


def of_example(function):
    """The arguments of the function's call in the example of its docstring, with an array `out` if its result is one."""
    signature, calls = inspect.signature(function), []

    def record(*arguments, **options):
        result = function(*arguments, **options)
        out = {"out": np.empty_like(result)} if "out" in signature.parameters and isinstance(result, np.ndarray) else {}
        calls.append(out | signature.bind(*arguments, **options).arguments)
        return result

    names = {"np": np, "nrg": types.SimpleNamespace(**{**vars(nrg), function.__name__: record})}
    test = doctest.DocTestParser().get_doctest(function.__doc__, names, function.__name__, None, 0)
    doctest.DocTestRunner(verbose=False).run(test)
    return calls[0]


def of_examples():
    """{name: arguments of its example} of the functions that take arrays."""
    given = {name: of_example(function) for name, function in vars(nrg).items() if name in nrg.__all__ and inspect.isfunction(function)}
    return {name: call for name, call in given.items() if any(isinstance(value, np.ndarray) for value in call.values())}


class Case(unittest.TestCase):
    def within(self, actual, expected, ulps=4.0, terms=None):
        """|actual - expected| ≤ ulps · 2^-24 · terms, and half a last place of a 16-bit type; terms: |expected|, or a bound of what
        is added up."""
        self.assertEqual(actual.shape, expected.shape)
        bound = np.abs(expected) if terms is None else terms
        bound = ulps * ULP["float32"] * np.broadcast_to(bound, expected.shape) + 2.0 ** -126
        if actual.dtype not in (np.float32, np.float64):
            bound = bound + 1.02 * ULP[actual.dtype.name] * np.abs(expected) + 2.0 ** -24
        error = np.abs(exact(actual) - expected)
        worst = np.unravel_index(np.argmax(error / bound), error.shape) if error.size else ()
        self.assertTrue(bool((error <= bound).all()), error.size and
                        f"at {worst}: {exact(actual)[worst]!r}, expected {expected[worst]!r}, {error[worst] / bound[worst]:.3g} times the bound")

    def bits(self, a, b):
        self.assertTrue(same(a, b), "bits differ")

    def for_threads(self, function):
        """function(threads) has the same bits for 1, 2 and 7; what it gives."""
        results = [function(threads) for threads in (1, 2, 7)]
        for other in results[1:]:
            for a, b in zip(*(result if isinstance(result, tuple) else (result,) for result in (results[0], other))):
                if a is None:
                    self.assertIsNone(b)
                else:
                    self.bits(a, b)
        return results[0]
