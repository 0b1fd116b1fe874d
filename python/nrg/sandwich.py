"""A norm, the residual, and the next norm, in one call (nrg/norm_sandwich.h).

    two norms, residual   sandwich_norm"""
from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Tuple, overload

import numpy as np

from . import _arrays as arrays
from . import _quantized as quantized
from ._library import new, planned, share, struct
from ._types import Accuracy, Array, ArrayLike, DType, F32Array, Rounding, Store
from .norms import _spec_of, _store_of


class _Operands:
    def __init__(self, x: ArrayLike, stream: ArrayLike, name: str, vectors: Dict[str, Any], dim: Optional[int], axis: Optional[int],
                 dtype: DType, store: str, **given: Any) -> None:
        self.x = arrays.as_array(x, "x")
        if self.x.ndim == 0:
            raise arrays.unexpected("x", "[..., dim]", self.x)
        arrays.last_axis(self.x, "x", dim, axis)
        self.stream = arrays.as_array(stream, name)
        self.dim = self.x.shape[-1]
        self.rows = arrays.Rows(self.x.shape[:-1])
        self.vectors = {name: arrays.weights(value, name, (self.dim,), self.x) for name, value in vectors.items()}
        number = arrays.number(self.x, "x", dtype)
        stream_dtype = arrays.number_beside(self.stream, name, dtype, number)
        numbers = [arrays.number_of_vectors({name: v for name, v in self.vectors.items() if name.endswith(which)}, dtype, number)
                   for which in "12"]
        self.store = _store_of(store)
        missing = [self.vectors["weight" + which] is None for which in "12"]
        self.specs = tuple(_spec_of(self.dim or 1, number, y_dtype=stream_dtype, r_dtype=stream_dtype, w_dtype=each, **given) for each in numbers)
        for each, is_missing in zip(self.specs, missing):
            if is_missing and not all(missing):  # the offset is that of the other norm's weight
                each.weight_offset = 0

    def addresses(self) -> Dict[str, Any]:
        short = {"weight": "w", "bias": "b"}
        return {short[name[:-1]] + name[-1]: arrays.address(v) for name, v in self.vectors.items()}


@overload
def sandwich_norm(x: ArrayLike, residual: ArrayLike, weight1: Optional[ArrayLike] = None, weight2: Optional[ArrayLike] = None, *,
                  bias1: Optional[ArrayLike] = None, bias2: Optional[ArrayLike] = None, eps: Optional[float] = 1e-6, centred: bool = False,
                  weight_offset: float = 0.0, accuracy: Accuracy = "fast", dim: Optional[int] = None, axis: Optional[int] = None,
                  store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None, format: None = None,
                  rounding: Rounding = "to_even", dtype: DType = None, threads: int = 1) -> Tuple[Array, Array]:
    ...


@overload
def sandwich_norm(x: ArrayLike, residual: ArrayLike, weight1: Optional[ArrayLike] = None, weight2: Optional[ArrayLike] = None, *,
                  bias1: Optional[ArrayLike] = None, bias2: Optional[ArrayLike] = None, eps: Optional[float] = 1e-6, centred: bool = False,
                  weight_offset: float = 0.0, accuracy: Accuracy = "fast", dim: Optional[int] = None, axis: Optional[int] = None,
                  store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None, format: Optional[str] = None,
                  rounding: Rounding = "to_even", dtype: DType = None, threads: int = 1) -> Tuple[Array, ...]:
    ...


@planned
def sandwich_norm(x: ArrayLike, residual: ArrayLike, weight1: Optional[ArrayLike] = None, weight2: Optional[ArrayLike] = None, *,
                  bias1: Optional[ArrayLike] = None, bias2: Optional[ArrayLike] = None, eps: Optional[float] = 1e-6, centred: bool = False,
                  weight_offset: float = 0.0, accuracy: Accuracy = "fast", dim: Optional[int] = None, axis: Optional[int] = None,
                  store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None, format: Optional[str] = None,
                  rounding: Rounding = "to_even", dtype: DType = None, threads: int = 1) -> Tuple[Array, ...]:
    """Applies a norm, adds the residual, and applies the next norm: r = residual + norm1(x), o = norm2(r). Gemma 2 has this.

    Parameters:
    - x: [..., dim].
    - residual: [..., dim], of x's dtype or float32; may broadcast.
    - weight1, weight2, bias1, bias2: [dim].
    - eps: added to the mean square in both norms. None: the machine epsilon of x's dtype.
    - centred: both norms subtract the mean.
    - weight_offset, accuracy, dim, axis, store: as in rms_norm().
    - out, residual_out: the arrays for o and r. Each may be x or residual.
    - format, rounding: as in nrg.quantize. With a format, the call returns bytes in place of o.

    Returns (o, r). With a format: (bytes, r). With format="int8": (bytes, scales, r).

    >>> x, residual = np.array([[3, 3]], np.float32), np.array([[1, 1]], np.float32)
    >>> o, r = nrg.sandwich_norm(x, residual)
    >>> r
    array([[2., 2.]], dtype=float32)
    """
    of = _Operands(x, residual, "residual", {"weight1": weight1, "weight2": weight2, "bias1": bias1, "bias2": bias2}, dim, axis, dtype, store,
                   eps=eps, centred=centred, weight_offset=weight_offset, accuracy=accuracy)
    of.rows.add("x", of.x, of.dim)
    of.rows.add("residual", of.stream, of.dim, repeats=True, field="y")
    args = struct("nrg_norm_sandwich_args", store=of.store, **of.addresses())
    if format is None:
        results = [of.rows.add("out", arrays.output(out, "out", of.x.shape, of.x.dtype), of.dim, field="o")]
    elif out is not None:
        raise arrays.unexpected("out", "None with a format, whose bytes the call returns", out)
    else:
        results = quantized.fill(args, format, rounding, of.x.shape[:-1], of.dim, options=of.specs[1])
    r = of.rows.add("residual_out", arrays.output(residual_out, "residual_out", of.x.shape, of.stream.dtype), of.dim, field="r")
    if of.dim:
        of.rows.fill(args)
        share("nrg_norm_sandwich_forward", *of.specs, args, threads=threads)
    return (*results, r)


class SandwichGradients(NamedTuple):
    """The gradients of sandwich_norm(): dx and dresidual [..., dim]; of weights and biases float32 [dim], or None.

    >>> x = np.ones((1, 4), np.float32)
    >>> nrg.sandwich_norm_backward(x, x, x).dweight1 is None
    True
    """
    dx: Array
    dresidual: Array
    dweight1: Optional[F32Array]
    dweight2: Optional[F32Array]
    dbias1: Optional[F32Array]
    dbias2: Optional[F32Array]


@planned
def sandwich_norm_backward(d_o: ArrayLike, x: ArrayLike, r: ArrayLike, weight1: Optional[ArrayLike] = None,
                           weight2: Optional[ArrayLike] = None, *, bias1: Optional[ArrayLike] = None, bias2: Optional[ArrayLike] = None,
                           d_r: Optional[ArrayLike] = None, eps: Optional[float] = 1e-6, centred: bool = False, weight_offset: float = 0.0,
                           accuracy: Accuracy = "fast", dim: Optional[int] = None, axis: Optional[int] = None, store: Store = "auto",
                           out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> SandwichGradients:
    """Returns the gradients of sandwich_norm(), called with the same arguments.

    Parameters:
    - d_o: [..., dim], of x's dtype: the gradient of o.
    - x: [..., dim], as in sandwich_norm().
    - r: [..., dim], as sandwich_norm() returned it.
    - weight1, weight2, bias1, bias2 and options: as in sandwich_norm().
    - d_r: [..., dim], of r's dtype: the gradient of r from the residual stream. None: 0.
    - out: the array for dx. It may be d_o.

    Returns SandwichGradients(dx, dresidual, dweight1, dweight2, dbias1, dbias2); None for an operand that was not given.

    >>> x, w = np.ones((1, 4), np.float32), np.ones(4, np.float32)
    >>> nrg.sandwich_norm_backward(x, x, x, w, w).dweight2.round(4)
    array([1., 1., 1., 1.], dtype=float32)
    """
    vectors = {"weight1": weight1, "weight2": weight2, "bias1": bias1, "bias2": bias2}
    of = _Operands(x, r, "r", vectors, dim, axis, dtype, store, eps=eps, centred=centred, weight_offset=weight_offset, accuracy=accuracy)
    d_o = arrays.as_array(d_o, "d_o")
    d_r = None if d_r is None else arrays.as_array(d_r, "d_r")
    for given, name, like, of_what in ((d_o, "d_o", of.x, "x"), (d_r, "d_r", of.stream, "r")):
        if given is not None and given.dtype != like.dtype:
            raise arrays.unexpected(name, f"{like.dtype.name} like {of_what}", given)
    rows = of.rows
    dx = rows.add("out", arrays.output(out, "out", of.x.shape, of.x.dtype), of.dim, field="dx")
    dy = rows.add("dy", new(of.x.shape, of.stream.dtype), of.dim)
    for name, array, field in (("x", of.x, "x"), ("r", of.stream, "r"), ("d_o", d_o, "d_o"), ("d_r", d_r, "dr_in")):
        rows.add(name, array, of.dim, field=field)
    sums = {name: None if of.vectors[name] is None else new(of.dim, np.float32) for name in vectors}
    if of.dim:
        args = struct("nrg_norm_sandwich_backward_args", store=of.store, dw1=arrays.address(sums["weight1"]), dw2=arrays.address(sums["weight2"]),
                      db1=arrays.address(sums["bias1"]), db2=arrays.address(sums["bias2"]),
                      **{name: place for name, place in of.addresses().items() if name.startswith("w")})
        rows.fill(args)
        arrays.reduce("nrg_norm_sandwich_backward", of.specs, args, threads, any(array is not None for array in sums.values()))
    return SandwichGradients(dx, dy, sums["weight1"], sums["weight2"], sums["bias1"], sums["bias2"])
