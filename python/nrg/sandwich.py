"""A norm, the residual, and the next norm, in one call (nrg/norm_sandwich.h)."""
from typing import NamedTuple, Optional

import numpy as np

from . import _arrays as arrays
from . import _quantized as quantized
from ._library import share, struct
from .norms import reduce, spec, store


class _Operands:
    def __init__(self, x, stream, name, vectors, dtype, given):
        self.x = arrays.as_array(x, "x")
        if self.x.ndim == 0 or self.x.shape[-1] == 0:
            raise arrays.unexpected("x", "[..., dim] with one element or more in a row", self.x)
        self.stream = arrays.as_array(stream, name)
        self.dim = self.x.shape[-1]
        self.rows = arrays.Rows(self.x.shape[:-1])
        self.vectors = {name: arrays.dense(value, name, (self.dim,), None) for name, value in vectors.items()}
        number = arrays.number(self.x, "x", dtype)
        stream = arrays.number_beside(self.stream, name, dtype, number)
        numbers = [arrays.number_of_vectors({name: v for name, v in self.vectors.items() if name.endswith(which)}, dtype, number)
                   for which in "12"]
        self.store = store(given)
        missing = [self.vectors["weight" + which] is None for which in "12"]
        self.specs = tuple(spec(self.dim, number, y_dtype=stream, r_dtype=stream, w_dtype=each, **given) for each in numbers)
        for each, is_missing in zip(self.specs, missing):
            if is_missing and not all(missing):  # the offset is that of the other norm's weight
                each.weight_offset = 0

    def addresses(self):
        short = {"weight": "w", "bias": "b"}
        return {short[name[:-1]] + name[-1]: arrays.address(v) for name, v in self.vectors.items()}


def sandwich_norm(x, residual, weight1=None, weight2=None, *, bias1=None, bias2=None, out=None, residual_out=None, format=None,
                  rounding="to_even", dtype=None, threads=1, **given):
    """r = residual + norm1(x), o = norm2(r): Gemma 2 and its kind.

    x                 [..., dim]
    residual          [..., dim], of x's dtype or float32
    weight1, weight2  [dim], or None; bias1 and bias2 likewise
    out, residual_out   arrays for o and r; each may be x or residual
    format            "q8_0", "int8", …: bytes with scales instead of o, as nrg.quantize makes them of the float32 result

    Returns (o, r); with a format (bytes, r), of int8 (bytes, scales, r). The norms are RMSNorms with eps=1e-6; options
    as in nrg.norm hold for both: eps, centred, weight_offset, accuracy.
    """
    of = _Operands(x, residual, "residual", {"weight1": weight1, "weight2": weight2, "bias1": bias1, "bias2": bias2}, dtype, given)
    of.rows.add("x", of.x, of.dim)
    of.rows.add("residual", of.stream, of.dim, repeats=True, field="y")
    args = struct("nrg_norm_sandwich_args", store=of.store, **of.addresses())
    if format is None:
        results = [of.rows.add("out", arrays.output(out, "out", of.x.shape, of.x.dtype), of.dim, field="o")]
    elif out is not None:
        raise arrays.unexpected("out", "None with a format, whose bytes are returned", out)
    else:
        results = quantized.fill(args, format, rounding, of.x.shape[:-1], of.dim, options=of.specs[1])
    r = of.rows.add("residual_out", arrays.output(residual_out, "residual_out", of.x.shape, of.stream.dtype), of.dim, field="r")
    of.rows.fill(args)
    share("nrg_norm_sandwich_forward", *of.specs, args, threads=threads)
    return (*results, r)


class SandwichGradients(NamedTuple):
    """dx and dresidual [..., dim]; of the weights and biases float32 [dim], or None."""
    dx: np.ndarray
    dresidual: np.ndarray
    dweight1: Optional[np.ndarray]
    dweight2: Optional[np.ndarray]
    dbias1: Optional[np.ndarray]
    dbias2: Optional[np.ndarray]


def sandwich_norm_backward(d_o, x, r, weight1=None, weight2=None, *, bias1=None, bias2=None, d_r=None, out=None, dtype=None, threads=1,
                           **given):
    """The gradients of sandwich_norm().

    d_o  [..., dim], of x's dtype: the gradient of o
    r    [..., dim] as the forward pass returned it
    d_r  [..., dim], of r's dtype: the gradient that arrives at r from elsewhere, or None
    out  where dx is written; it may be d_o

    Returns SandwichGradients(dx, dresidual, dweight1, dweight2, dbias1, dbias2); of the last four those of what was given.
    """
    vectors = {"weight1": weight1, "weight2": weight2, "bias1": bias1, "bias2": bias2}
    of = _Operands(x, r, "r", vectors, dtype, given)
    d_o = arrays.as_array(d_o, "d_o")
    d_r = None if d_r is None else arrays.as_array(d_r, "d_r")
    for array, name, like, of_what in ((d_o, "d_o", of.x, "x"), (d_r, "d_r", of.stream, "r")):
        if array is not None and array.dtype != like.dtype:
            raise arrays.unexpected(name, f"{like.dtype.name} like {of_what}", array)
    rows = of.rows
    dx = rows.add("out", arrays.output(out, "out", of.x.shape, of.x.dtype), of.dim, field="dx")
    dy = rows.add("dy", np.empty(of.x.shape, of.stream.dtype), of.dim)
    for name, array, field in (("x", of.x, "x"), ("r", of.stream, "r"), ("d_o", d_o, "d_o"), ("d_r", d_r, "dr_in")):
        rows.add(name, array, of.dim, field=field)
    sums = {name: None if of.vectors[name] is None else np.empty(of.dim, np.float32) for name in vectors}
    args = struct("nrg_norm_sandwich_backward_args", store=of.store, dw1=arrays.address(sums["weight1"]), dw2=arrays.address(sums["weight2"]),
                  db1=arrays.address(sums["bias1"]), db2=arrays.address(sums["bias2"]),
                  **{name: place for name, place in of.addresses().items() if name.startswith("w")})
    rows.fill(args)
    reduce("nrg_norm_sandwich_backward", of.specs, args, threads, any(array is not None for array in sums.values()))
    return SandwichGradients(dx, dy, *sums.values())
