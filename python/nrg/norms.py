"""Row norms (nrg/norm.h, nrg/norm_backward.h): RMSNorm, LayerNorm and L2, with residual, gate, groups and quantized results.

    normalize rows        rms_norm  layer_norm  l2_normalize  norm (all options)
    with the residual     residual= of these"""
from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple, Optional, Sequence, Tuple, Union, overload

import numpy as np

from . import _arrays as arrays
from . import _quantized as quantized
from ._library import CONSTANTS, enum, new, planned, share, struct
from ._types import (Accuracy, Activation, Array, ArrayLike, DType, EpsMode, F32Array, GateMode, ResidualMode, Rounding, Shape, Store,
                     Weights)

_ENUMS = {"eps_mode": ("nrg_eps_mode", "NRG_EPS_"), "residual_mode": ("nrg_residual_mode", "NRG_RESIDUAL_"),
          "weights": ("nrg_weights", "NRG_WEIGHTS_"), "activation": ("nrg_activation", "NRG_ACT_"),
          "accuracy": ("nrg_accuracy", "NRG_ACCURACY_")}
_DEFAULTS = {"eps": 1e-6, "c": None, "centred": False, "weight_offset": 0.0, "groups": 1, "eps_mode": "mean", "residual_mode": "before",
             "weights": "row", "activation": "identity", "accuracy": "fast"}
_EPSILON = {arrays.F32: 2.0 ** -23, arrays.F16: 2.0 ** -10, arrays.BF16: 2.0 ** -7}


class NormGradients(NamedTuple):
    """The gradients of a norm: dx, dresidual and dgate [..., dim], dweight and dbias float32 [dim]. None for an operand that was not given.

    >>> x = np.ones((1, 4), np.float32)
    >>> nrg.rms_norm_backward(x, x).dweight is None
    True
    """
    dx: Array
    dresidual: Optional[Array]
    dgate: Optional[Array]
    dweight: Optional[F32Array]
    dbias: Optional[F32Array]


def _spec_of(dim: int, dtype: int, **given: Any) -> Any:
    """Returns an nrg_norm_spec from the names of norm()'s options: a copy, which the caller may change."""
    try:
        made = _spec(dim, dtype, **given)
    except TypeError:
        for name, value in given.items():
            if type(value).__hash__ is None:  # a list or an array
                raise TypeError(f"{name}: expected one value, got {value!r}") from None
        raise
    return type(made).from_buffer_copy(made)


@functools.lru_cache(256)
def _spec(dim: int, dtype: int, **given: Any) -> Any:
    """A model has few different norms. Copying a spec is faster than making one: 16 of 54 µs of rms_norm on 64 elements."""
    given = {**_DEFAULTS, **given}
    fields = {name: given[name] for name in ("eps", "c", "centred", "weight_offset", "groups")}
    fields.update(arrays.options(_ENUMS, given))
    fields["centred"] = int(bool(fields["centred"]))
    fields["c_mode"] = 0 if given["c"] is None else CONSTANTS["NRG_C_GIVEN"]
    if fields["eps"] is None:
        fields["eps"] = _EPSILON[dtype]
    if fields["eps_mode"] == CONSTANTS["NRG_EPS_NONE"]:
        fields["eps"] = 0.0
    fields["gate"] = enum("nrg_gate", given.get("gate", "none"), "NRG_GATE_", "gate_mode")
    return struct("nrg_norm_spec", dim=dim, dtype=dtype, y_dtype=given.get("y_dtype", 0), r_dtype=given.get("r_dtype", 0),
                  w_dtype=given.get("w_dtype", 0), **fields)


def _store_of(store: str) -> int:
    return enum("nrg_store", store, "NRG_STORE_", "store")


class _Operands:
    """The operands that both passes have: x, residual, gate, weight and bias, and the spec."""

    def __init__(self, x: ArrayLike, shape: Optional[Tuple[int, ...]], weight: Any, bias: Any, residual: Any, gate: Any, gate_mode: str,
                 dim: Optional[int], axis: Optional[int], dtype: DType, given: Any, r: Any = None) -> None:
        whole = arrays.as_array(x, "x")
        if whole.ndim == 0:
            raise arrays.unexpected("x", "[..., dim]", whole)
        arrays.last_axis(whole, "x", dim, axis)
        self.shape, self.normalized = whole.shape, shape
        self.x = arrays.trailing(whole, "x", shape)
        self.dim, self.leading = self.x.shape[-1], self.x.shape[:-1]
        self.number = arrays.number(self.x, "x", dtype)
        self.residual, self.gate = self.operand(residual, "residual", True), self.operand(gate, "gate", True)
        r = self.operand(r, "r")
        self.groups = arrays.count(given["groups"], "groups")
        if self.groups == 0 or self.dim % self.groups:
            raise arrays.unexpected("groups", f"a divisor of the {self.dim} elements of a row", self.groups)
        length: Sequence[int] = (self.dim // self.groups,) if given["weights"] == "group" else shape or (self.dim,)
        self.weight, self.bias = (arrays.weights(v, n, length, self.x) for v, n in ((weight, "weight"), (bias, "bias")))
        w_dtype = arrays.number_of_vectors({"weight": self.weight, "bias": self.bias}, dtype, self.number)
        stream, name = (self.residual, "residual") if self.residual is not None else (r, "r")
        self.stream = arrays.number_beside(stream, name, dtype, self.number) if stream is not None else self.number
        self.after = given["residual_mode"] == "after"
        self.store = _store_of(given.pop("store"))
        self.spec = None if self.dim == 0 else _spec_of(self.dim, self.number, y_dtype=self.stream, r_dtype=self.number if self.after else self.stream,
                                                    w_dtype=w_dtype, gate=gate_mode if gate is not None else "none", **given)
        if self.gate is not None and self.gate.dtype != self.x.dtype:
            raise arrays.unexpected("gate", f"{self.x.dtype.name} like x", self.gate)
        self.rows = arrays.Rows(self.leading)

    def operand(self, value: Any, name: str, repeats: bool = False) -> Any:
        """Returns a tensor like x, with the dimensions of normalized_shape as one."""
        if value is None or self.normalized is None or len(self.normalized) == 1:
            return None if value is None else arrays.as_array(value, name)
        array = arrays.as_array(value, name)
        return arrays.trailing(np.broadcast_to(array, self.shape) if repeats and array.shape != self.shape else array, name, self.normalized)

    def new(self, out: Any, name: str, dtype: Any) -> Tuple[Array, Array]:
        """Returns `out` or a new array, and the view with rows as one dimension."""
        array = arrays.output(out, name, self.shape, dtype)
        return array, arrays.trailing(array, name, self.normalized)

    def inputs(self) -> None:
        self.rows.add("x", self.x, self.dim)
        self.rows.add("residual", self.residual, self.dim, repeats=True, field="y")
        self.rows.add("gate", self.gate, self.dim, repeats=True, field="z")


@planned
def _forward(x: ArrayLike, shape: Any, weight: Any, bias: Any, *, dim: Optional[int], axis: Optional[int], residual: Any,
             gate: Any, gate_mode: str, format: Optional[str], rounding: str, out: Any, residual_out: Any, stats: bool, dtype: DType,
             threads: int, **given: Any) -> Any:
    of = _Operands(x, *arrays.normalized(shape, weight, bias), residual, gate, gate_mode, dim, axis, dtype, given)
    of.inputs()
    results = []
    args = struct("nrg_norm_args", store=of.store)
    if format is None:
        o, rows = of.new(out, "out", of.x.dtype)
        of.rows.add("out", rows, of.dim, field="o")
        results.append(o)
    else:
        if out is not None:
            raise arrays.unexpected("out", "None with a format, whose bytes the call returns", out)
        results += quantized.fill(args, format, rounding, of.leading, of.dim, options=of.spec)
    if of.residual is not None and not of.after:
        r, rows = of.new(residual_out, "residual_out", of.residual.dtype)
        of.rows.add("residual_out", rows, of.dim, field="r")
        results.append(r)
    elif residual_out is not None:
        raise arrays.unexpected("residual_out", "None without a residual before the norm", residual_out)
    if stats:
        mean, rstd = (np.full(of.leading + (of.groups,), np.nan, np.float32) for _ in range(2))
        args.mean, args.rstd = arrays.address(mean), arrays.address(rstd)
        results += [mean, rstd]
    if of.dim:
        of.rows.fill(args)
        args.w, args.b = arrays.address(of.weight), arrays.address(of.bias)
        share("nrg_norm_forward", of.spec, args, threads=threads)
    return results[0] if len(results) == 1 else tuple(results)


@planned
def _backward(d_o: ArrayLike, x: ArrayLike, shape: Any, weight: Any, bias: Any, *, dim: Optional[int],
              axis: Optional[int], residual: Any, gate: Any, gate_mode: str, r: Any, d_r: Any, mean: Any, out: Any, dtype: DType,
              threads: int, **given: Any) -> NormGradients:
    of = _Operands(x, *arrays.normalized(shape, weight, bias), residual, gate, gate_mode, dim, axis, dtype, given, r)
    gradient, r, d_r = of.operand(d_o, "d_o"), of.operand(r, "r"), of.operand(d_r, "d_r")
    stream = of.x if of.residual is None and r is None else of.residual if of.residual is not None else r
    for array, name, wanted, like in ((gradient, "d_o", of.x, "x"), (r, "r", stream, "residual"), (d_r, "d_r", stream, "r")):
        if array is not None and array.dtype != wanted.dtype:
            raise arrays.unexpected(name, f"{wanted.dtype.name} like {like}", array)
    rows = of.rows
    if r is None:
        rows.add("x", of.x, of.dim)
        if not of.after:
            rows.add("residual", of.residual, of.dim, repeats=True, field="y")
    rows.add("gate", of.gate, of.dim, repeats=True, field="z")
    dx, view = of.new(out, "out", of.x.dtype)
    rows.add("out", view, of.dim, field="dx")
    rows.add("d_o", gradient, of.dim)
    rows.add("r", r, of.dim)
    rows.add("d_r", d_r, of.dim, field="dr_in")
    dy, dz = None, None
    if of.residual is not None:
        dy = gradient.reshape(of.shape) if of.after else dx
        if of.residual.dtype != of.x.dtype:
            dy, view = of.new(None, "dy", of.residual.dtype)
            rows.add("dy", view, of.dim)
    if of.gate is not None:
        dz, view = of.new(None, "dz", of.x.dtype)
        rows.add("dz", view, of.dim)
    dw, db = (None if v is None else new(v.shape, np.float32) for v in (of.weight, of.bias))
    mean = arrays.dense(mean, "mean", of.leading + (of.groups,), np.float32)
    if of.dim:
        args = struct("nrg_norm_backward_args", store=of.store, w=arrays.address(of.weight), b=arrays.address(of.bias),
                      dw=arrays.address(dw), db=arrays.address(db), mean=arrays.address(mean) if given["centred"] else None)
        rows.fill(args)
        arrays.reduce("nrg_norm_backward", (of.spec,), args, threads, dw is not None or db is not None)
    return NormGradients(dx, dy, dz, dw, db)


@overload
def norm(x: ArrayLike, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, *, eps: Optional[float] = 1e-6,
         centred: bool = False, eps_mode: EpsMode = "mean", c: Optional[float] = None, dim: Optional[int] = None,
         axis: Optional[int] = None, residual: None = None, residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None,
         gate_mode: GateMode = "post", activation: Activation = "identity", groups: int = 1, weights: Weights = "row",
         weight_offset: float = 0.0, accuracy: Accuracy = "fast", format: None = None, rounding: Rounding = "to_even",
         store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None, stats: Literal[False] = False,
         dtype: DType = None, threads: int = 1) -> Array:
    ...


@overload
def norm(x: ArrayLike, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, *, residual: ArrayLike,
         eps: Optional[float] = 1e-6, centred: bool = False, eps_mode: EpsMode = "mean", c: Optional[float] = None,
         dim: Optional[int] = None, axis: Optional[int] = None, residual_mode: Literal["before"] = "before",
         gate: Optional[ArrayLike] = None, gate_mode: GateMode = "post", activation: Activation = "identity", groups: int = 1,
         weights: Weights = "row", weight_offset: float = 0.0, accuracy: Accuracy = "fast", format: None = None,
         rounding: Rounding = "to_even", store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None,
         stats: Literal[False] = False, dtype: DType = None, threads: int = 1) -> Tuple[Array, Array]:
    ...


@overload
def norm(x: ArrayLike, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, *, eps: Optional[float] = 1e-6,
         centred: bool = False, eps_mode: EpsMode = "mean", c: Optional[float] = None, dim: Optional[int] = None,
         axis: Optional[int] = None, residual: Optional[ArrayLike] = None, residual_mode: ResidualMode = "before",
         gate: Optional[ArrayLike] = None, gate_mode: GateMode = "post", activation: Activation = "identity", groups: int = 1,
         weights: Weights = "row", weight_offset: float = 0.0, accuracy: Accuracy = "fast", format: Optional[str] = None,
         rounding: Rounding = "to_even", store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None,
         stats: bool = False, dtype: DType = None, threads: int = 1) -> Any:
    ...


def norm(x: ArrayLike, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, *, eps: Optional[float] = 1e-6,
         centred: bool = False, eps_mode: EpsMode = "mean", c: Optional[float] = None, dim: Optional[int] = None,
         axis: Optional[int] = None, residual: Optional[ArrayLike] = None, residual_mode: ResidualMode = "before",
         gate: Optional[ArrayLike] = None, gate_mode: GateMode = "post", activation: Activation = "identity", groups: int = 1,
         weights: Weights = "row", weight_offset: float = 0.0, accuracy: Accuracy = "fast", format: Optional[str] = None,
         rounding: Rounding = "to_even", store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None,
         stats: bool = False, dtype: DType = None, threads: int = 1) -> Any:
    """Normalizes each row: any option of nrg/norm.h. rms_norm, layer_norm and l2_normalize are named cases.

    Parameters:
    - x: [..., dim].
    - weight, bias: [dim].
    - eps: added to the mean square. None: the machine epsilon of x's dtype, as in torch.nn.functional.rms_norm.
    - centred: subtract the mean.
    - eps_mode: "mean": √(σ² + eps), or "sum", "sigma", "max", "none" (nrg/norm.h: nrg_eps_mode).
    - c: the constant of the formula. None: √dim. 1 gives unit length.
    - dim, axis: the last dimension, as PyTorch and NumPy name it.
    - residual: [..., dim], of x's dtype or float32; may broadcast. The norm is of r = x + residual, and the call returns r too.
    - residual_mode: "before", or "after": the result is residual + norm(x), and there is no r.
    - gate: [..., dim]; may broadcast.
    - gate_mode: "post" multiplies the result by g(gate), "pre" multiplies r by it.
    - activation: g of the gate. Without a gate, the result is g(norm).
    - groups: the number of equal parts of a row, normalized separately.
    - weights: "row": weight has [dim] elements. "group": [dim / groups].
    - weight_offset: added to each weight, 1 for Gemma.
    - accuracy: "fast" or "exact" (docs/numerics.md).
    - format, rounding: as in nrg.quantize. With a format, the call returns bytes in place of the result.
    - store: "auto", "keep" or "stream", a hint for the cache.
    - out, residual_out: the arrays for the result and r. Each may be x or residual.
    - stats: True also returns mean and 1/s, float32 [..., groups].

    Returns the result, like x. With a residual: (result, r). With stats: (result, [r,] mean, rstd). With format="int8": (bytes, scales, …).

    >>> x = np.array([[3, 4]], np.float32)
    >>> nrg.norm(x, c=1, eps_mode="none")
    array([[0.6, 0.8]], dtype=float32)
    """
    return _forward(x, None, weight, bias, dim=dim, axis=axis, residual=residual, gate=gate, gate_mode=gate_mode, format=format,
                    rounding=rounding, out=out, residual_out=residual_out, stats=stats, dtype=dtype, threads=threads, eps=eps,
                    residual_mode=residual_mode, activation=activation, groups=groups, weights=weights, weight_offset=weight_offset,
                    accuracy=accuracy, store=store, centred=centred, eps_mode=eps_mode, c=c)


def norm_backward(d_o: ArrayLike, x: ArrayLike, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, *,
                  eps: Optional[float] = 1e-6, centred: bool = False, eps_mode: EpsMode = "mean", c: Optional[float] = None,
                  dim: Optional[int] = None, axis: Optional[int] = None, residual: Optional[ArrayLike] = None,
                  residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None, gate_mode: GateMode = "post",
                  activation: Activation = "identity", groups: int = 1, weights: Weights = "row", weight_offset: float = 0.0,
                  accuracy: Accuracy = "fast", r: Optional[ArrayLike] = None, d_r: Optional[ArrayLike] = None,
                  mean: Optional[ArrayLike] = None, store: Store = "auto", out: Optional[Array] = None, dtype: DType = None,
                  threads: int = 1) -> NormGradients:
    """Returns the gradients of norm(), called with the same arguments.

    Parameters:
    - d_o: [..., dim], of x's dtype: the gradient of the result.
    - x: [..., dim].
    - weight, bias: [dim].
    - eps: added to the mean square. None: the machine epsilon of x's dtype, as in torch.nn.functional.rms_norm.
    - centred: subtract the mean.
    - eps_mode: "mean": √(σ² + eps), or "sum", "sigma", "max", "none" (nrg/norm.h: nrg_eps_mode).
    - c: the constant of the formula. None: √dim. 1 gives unit length.
    - dim, axis: the last dimension, as PyTorch and NumPy name it.
    - residual: [..., dim], of x's dtype or float32; may broadcast. The norm is of r = x + residual, and the call returns r too.
    - residual_mode: "before", or "after": the result is residual + norm(x), and there is no r.
    - gate: [..., dim]; may broadcast.
    - gate_mode: "post" multiplies the result by g(gate), "pre" multiplies r by it.
    - activation: g of the gate. Without a gate, the result is g(norm).
    - groups: the number of equal parts of a row, normalized separately.
    - weights: "row": weight has [dim] elements. "group": [dim / groups].
    - weight_offset: added to each weight, 1 for Gemma.
    - accuracy: "fast" or "exact" (docs/numerics.md).
    - r: x + residual as the forward pass returned it. None: computed again.
    - d_r: [..., dim], of r's dtype: the gradient of r from the residual stream. None: 0.
    - mean: [..., groups], as the forward pass returned it. None: computed again.
    - store: "auto", "keep" or "stream", a hint for the cache.
    - out: the array for dx. It may be d_o, d_r or x.

    Returns NormGradients(dx, dresidual, dgate, dweight, dbias); None for an operand that was not given. A residual before the norm has
    the gradient of x, in the same array if the dtypes are equal. A residual after it has d_o. The gradient of a residual or gate that
    broadcasts has one row per row of x; the caller adds them up.

    >>> d_o, x = np.array([[1, 0]], np.float32), np.array([[3, 4]], np.float32)
    >>> nrg.norm_backward(d_o, x, c=1, eps_mode="none").dx.round(3)
    array([[ 0.128, -0.096]], dtype=float32)
    """
    return _backward(d_o, x, None, weight, bias, dim=dim, axis=axis, residual=residual, gate=gate, gate_mode=gate_mode, r=r, d_r=d_r,
                     mean=mean, out=out, dtype=dtype, threads=threads, eps=eps, residual_mode=residual_mode, activation=activation,
                     groups=groups, weights=weights, weight_offset=weight_offset, accuracy=accuracy, store=store, centred=centred,
                     eps_mode=eps_mode, c=c)


@overload
def rms_norm(x: ArrayLike, normalized_shape: Union[Shape, ArrayLike, None] = None, weight: Optional[ArrayLike] = None,
             eps: Optional[float] = 1e-6, *, bias: Optional[ArrayLike] = None, dim: Optional[int] = None, axis: Optional[int] = None,
             residual: None = None, residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None, gate_mode: GateMode = "post",
             activation: Activation = "identity", groups: int = 1, weights: Weights = "row", weight_offset: float = 0.0,
             accuracy: Accuracy = "fast", format: None = None, rounding: Rounding = "to_even", store: Store = "auto",
             out: Optional[Array] = None, residual_out: Optional[Array] = None, stats: Literal[False] = False, dtype: DType = None,
             threads: int = 1) -> Array:
    ...


@overload
def rms_norm(x: ArrayLike, normalized_shape: Union[Shape, ArrayLike, None] = None, weight: Optional[ArrayLike] = None,
             eps: Optional[float] = 1e-6, *, residual: ArrayLike, bias: Optional[ArrayLike] = None, dim: Optional[int] = None,
             axis: Optional[int] = None, residual_mode: Literal["before"] = "before", gate: Optional[ArrayLike] = None,
             gate_mode: GateMode = "post", activation: Activation = "identity", groups: int = 1, weights: Weights = "row",
             weight_offset: float = 0.0, accuracy: Accuracy = "fast", format: None = None, rounding: Rounding = "to_even",
             store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None, stats: Literal[False] = False,
             dtype: DType = None, threads: int = 1) -> Tuple[Array, Array]:
    ...


@overload
def rms_norm(x: ArrayLike, normalized_shape: Union[Shape, ArrayLike, None] = None, weight: Optional[ArrayLike] = None,
             eps: Optional[float] = 1e-6, *, bias: Optional[ArrayLike] = None, dim: Optional[int] = None, axis: Optional[int] = None,
             residual: Optional[ArrayLike] = None, residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None,
             gate_mode: GateMode = "post", activation: Activation = "identity", groups: int = 1, weights: Weights = "row",
             weight_offset: float = 0.0, accuracy: Accuracy = "fast", format: Optional[str] = None, rounding: Rounding = "to_even",
             store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None, stats: bool = False,
             dtype: DType = None, threads: int = 1) -> Any:
    ...


def rms_norm(x: ArrayLike, normalized_shape: Union[Shape, ArrayLike, None] = None, weight: Optional[ArrayLike] = None,
             eps: Optional[float] = 1e-6, *, bias: Optional[ArrayLike] = None, dim: Optional[int] = None, axis: Optional[int] = None,
             residual: Optional[ArrayLike] = None, residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None,
             gate_mode: GateMode = "post", activation: Activation = "identity", groups: int = 1, weights: Weights = "row",
             weight_offset: float = 0.0, accuracy: Accuracy = "fast", format: Optional[str] = None, rounding: Rounding = "to_even",
             store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None, stats: bool = False,
             dtype: DType = None, threads: int = 1) -> Any:
    """Applies RMSNorm to each row: x / √(mean(x²) + eps) ⊙ weight. As torch.nn.functional.rms_norm.

    Parameters:
    - x: [..., dim].
    - normalized_shape: a tuple or an int: the last dimensions, which form a row. It may be omitted: rms_norm(x, weight).
    - weight: [dim], or a list.
    - eps: added to the mean square. None: the machine epsilon of x's dtype, PyTorch's default.
    - bias: [dim].
    - dim, axis: the last dimension, as PyTorch and NumPy name it.
    - residual: [..., dim], of x's dtype or float32; may broadcast. The norm is of r = x + residual, and the call returns r too.
    - residual_mode: "before", or "after": the result is residual + norm(x), and there is no r.
    - gate: [..., dim]; may broadcast.
    - gate_mode: "post" multiplies the result by g(gate), "pre" multiplies r by it.
    - activation: g of the gate. Without a gate, the result is g(norm).
    - groups: the number of equal parts of a row, normalized separately.
    - weights: "row": weight has [dim] elements. "group": [dim / groups].
    - weight_offset: added to each weight, 1 for Gemma.
    - accuracy: "fast" or "exact" (docs/numerics.md).
    - format, rounding: as in nrg.quantize. With a format, the call returns bytes in place of the result.
    - store: "auto", "keep" or "stream", a hint for the cache.
    - out, residual_out: the arrays for the result and r. Each may be x or residual.
    - stats: True also returns mean and 1/s, float32 [..., groups].

    Returns the result, like x. With a residual: (result, r). With stats: (result, [r,] mean, rstd). With format="int8": (bytes, scales, …).

    >>> x, w = np.array([[1, 2, 3, 4]], np.float32), np.ones(4, np.float32)
    >>> nrg.rms_norm(x, w).round(4)
    array([[0.3651, 0.7303, 1.0954, 1.4606]], dtype=float32)
    >>> o, r = nrg.rms_norm(x, (4,), w, residual=x)
    >>> r
    array([[2., 4., 6., 8.]], dtype=float32)
    """
    return _forward(x, normalized_shape, weight, bias, dim=dim, axis=axis, residual=residual, gate=gate, gate_mode=gate_mode, format=format,
                    rounding=rounding, out=out, residual_out=residual_out, stats=stats, dtype=dtype, threads=threads, eps=eps,
                    residual_mode=residual_mode, activation=activation, groups=groups, weights=weights, weight_offset=weight_offset,
                    accuracy=accuracy, store=store, centred=False, eps_mode="mean", c=None)


def rms_norm_backward(d_o: ArrayLike, x: ArrayLike, normalized_shape: Union[Shape, ArrayLike, None] = None,
                      weight: Optional[ArrayLike] = None, eps: Optional[float] = 1e-6, *, bias: Optional[ArrayLike] = None,
                      dim: Optional[int] = None, axis: Optional[int] = None, residual: Optional[ArrayLike] = None,
                      residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None, gate_mode: GateMode = "post",
                      activation: Activation = "identity", groups: int = 1, weights: Weights = "row", weight_offset: float = 0.0,
                      accuracy: Accuracy = "fast", r: Optional[ArrayLike] = None, d_r: Optional[ArrayLike] = None,
                      mean: Optional[ArrayLike] = None, store: Store = "auto", out: Optional[Array] = None, dtype: DType = None,
                      threads: int = 1) -> NormGradients:
    """Returns the gradients of rms_norm(), called with the same arguments.

    Parameters:
    - d_o: [..., dim], of x's dtype: the gradient of the result.
    - x: [..., dim].
    - normalized_shape: a tuple or an int: the last dimensions, which form a row. It may be omitted: rms_norm(x, weight).
    - weight: [dim], or a list.
    - eps: added to the mean square. None: the machine epsilon of x's dtype, PyTorch's default.
    - bias: [dim].
    - dim, axis: the last dimension, as PyTorch and NumPy name it.
    - residual: [..., dim], of x's dtype or float32; may broadcast. The norm is of r = x + residual, and the call returns r too.
    - residual_mode: "before", or "after": the result is residual + norm(x), and there is no r.
    - gate: [..., dim]; may broadcast.
    - gate_mode: "post" multiplies the result by g(gate), "pre" multiplies r by it.
    - activation: g of the gate. Without a gate, the result is g(norm).
    - groups: the number of equal parts of a row, normalized separately.
    - weights: "row": weight has [dim] elements. "group": [dim / groups].
    - weight_offset: added to each weight, 1 for Gemma.
    - accuracy: "fast" or "exact" (docs/numerics.md).
    - r: x + residual as the forward pass returned it. None: computed again.
    - d_r: [..., dim], of r's dtype: the gradient of r from the residual stream. None: 0.
    - mean: [..., groups], as the forward pass returned it. None: computed again.
    - store: "auto", "keep" or "stream", a hint for the cache.
    - out: the array for dx. It may be d_o, d_r or x.

    Returns NormGradients(dx, dresidual, dgate, dweight, dbias); None for an operand that was not given. A residual before the norm has
    the gradient of x, in the same array if the dtypes are equal. A residual after it has d_o. The gradient of a residual or gate that
    broadcasts has one row per row of x; the caller adds them up.

    >>> x, w = np.array([[1, 2, 3, 4]], np.float32), np.ones(4, np.float32)
    >>> nrg.rms_norm_backward(x, x, w).dweight.round(4)
    array([0.3651, 1.4606, 3.2863, 5.8424], dtype=float32)
    """
    return _backward(d_o, x, normalized_shape, weight, bias, dim=dim, axis=axis, residual=residual, gate=gate, gate_mode=gate_mode, r=r, d_r=d_r,
                     mean=mean, out=out, dtype=dtype, threads=threads, eps=eps, residual_mode=residual_mode, activation=activation,
                     groups=groups, weights=weights, weight_offset=weight_offset, accuracy=accuracy, store=store,
                     centred=False, eps_mode="mean", c=None)


@overload
def layer_norm(x: ArrayLike, normalized_shape: Union[Shape, ArrayLike, None] = None, weight: Optional[ArrayLike] = None,
               bias: Optional[ArrayLike] = None, eps: Optional[float] = 1e-5, *, dim: Optional[int] = None, axis: Optional[int] = None,
               residual: None = None, residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None,
               gate_mode: GateMode = "post", activation: Activation = "identity", groups: int = 1, weights: Weights = "row",
               weight_offset: float = 0.0, accuracy: Accuracy = "fast", format: None = None, rounding: Rounding = "to_even",
               store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None, stats: Literal[False] = False,
               dtype: DType = None, threads: int = 1) -> Array:
    ...


@overload
def layer_norm(x: ArrayLike, normalized_shape: Union[Shape, ArrayLike, None] = None, weight: Optional[ArrayLike] = None,
               bias: Optional[ArrayLike] = None, eps: Optional[float] = 1e-5, *, residual: ArrayLike, dim: Optional[int] = None,
               axis: Optional[int] = None, residual_mode: Literal["before"] = "before", gate: Optional[ArrayLike] = None,
               gate_mode: GateMode = "post", activation: Activation = "identity", groups: int = 1, weights: Weights = "row",
               weight_offset: float = 0.0, accuracy: Accuracy = "fast", format: None = None, rounding: Rounding = "to_even",
               store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None, stats: Literal[False] = False,
               dtype: DType = None, threads: int = 1) -> Tuple[Array, Array]:
    ...


@overload
def layer_norm(x: ArrayLike, normalized_shape: Union[Shape, ArrayLike, None] = None, weight: Optional[ArrayLike] = None,
               bias: Optional[ArrayLike] = None, eps: Optional[float] = 1e-5, *, dim: Optional[int] = None, axis: Optional[int] = None,
               residual: Optional[ArrayLike] = None, residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None,
               gate_mode: GateMode = "post", activation: Activation = "identity", groups: int = 1, weights: Weights = "row",
               weight_offset: float = 0.0, accuracy: Accuracy = "fast", format: Optional[str] = None, rounding: Rounding = "to_even",
               store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None, stats: bool = False,
               dtype: DType = None, threads: int = 1) -> Any:
    ...


def layer_norm(x: ArrayLike, normalized_shape: Union[Shape, ArrayLike, None] = None, weight: Optional[ArrayLike] = None,
               bias: Optional[ArrayLike] = None, eps: Optional[float] = 1e-5, *, dim: Optional[int] = None, axis: Optional[int] = None,
               residual: Optional[ArrayLike] = None, residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None,
               gate_mode: GateMode = "post", activation: Activation = "identity", groups: int = 1, weights: Weights = "row",
               weight_offset: float = 0.0, accuracy: Accuracy = "fast", format: Optional[str] = None, rounding: Rounding = "to_even",
               store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None, stats: bool = False,
               dtype: DType = None, threads: int = 1) -> Any:
    """Applies LayerNorm to each row: (x - mean) / √(variance + eps) ⊙ weight + bias. As torch.nn.functional.layer_norm.

    Parameters:
    - x: [..., dim].
    - normalized_shape: a tuple or an int: the last dimensions, which form a row. It may be omitted: layer_norm(x, weight, bias).
    - weight, bias: [dim], or lists.
    - eps: added to the variance. None: the machine epsilon of x's dtype.
    - dim, axis: the last dimension, as PyTorch and NumPy name it.
    - residual: [..., dim], of x's dtype or float32; may broadcast. The norm is of r = x + residual, and the call returns r too.
    - residual_mode: "before", or "after": the result is residual + norm(x), and there is no r.
    - gate: [..., dim]; may broadcast.
    - gate_mode: "post" multiplies the result by g(gate), "pre" multiplies r by it.
    - activation: g of the gate. Without a gate, the result is g(norm).
    - groups: the number of equal parts of a row, normalized separately.
    - weights: "row": weight has [dim] elements. "group": [dim / groups].
    - weight_offset: added to each weight, 1 for Gemma.
    - accuracy: "fast" or "exact" (docs/numerics.md).
    - format, rounding: as in nrg.quantize. With a format, the call returns bytes in place of the result.
    - store: "auto", "keep" or "stream", a hint for the cache.
    - out, residual_out: the arrays for the result and r. Each may be x or residual.
    - stats: True also returns mean and 1/s, float32 [..., groups].

    Returns the result, like x. With a residual: (result, r). With stats: (result, [r,] mean, rstd). With format="int8": (bytes, scales, …).

    >>> x, w, b = np.array([[1, 2, 3, 4]], np.float32), np.ones(4, np.float32), np.zeros(4, np.float32)
    >>> nrg.layer_norm(x, (4,), w, b).round(4)
    array([[-1.3416, -0.4472,  0.4472,  1.3416]], dtype=float32)
    """
    return _forward(x, normalized_shape, weight, bias, dim=dim, axis=axis, residual=residual, gate=gate, gate_mode=gate_mode, format=format,
                    rounding=rounding, out=out, residual_out=residual_out, stats=stats, dtype=dtype, threads=threads, eps=eps,
                    residual_mode=residual_mode, activation=activation, groups=groups, weights=weights, weight_offset=weight_offset,
                    accuracy=accuracy, store=store, centred=True, eps_mode="mean", c=None)


def layer_norm_backward(d_o: ArrayLike, x: ArrayLike, normalized_shape: Union[Shape, ArrayLike, None] = None,
                        weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, eps: Optional[float] = 1e-5, *,
                        dim: Optional[int] = None, axis: Optional[int] = None, residual: Optional[ArrayLike] = None,
                        residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None, gate_mode: GateMode = "post",
                        activation: Activation = "identity", groups: int = 1, weights: Weights = "row", weight_offset: float = 0.0,
                        accuracy: Accuracy = "fast", r: Optional[ArrayLike] = None, d_r: Optional[ArrayLike] = None,
                        mean: Optional[ArrayLike] = None, store: Store = "auto", out: Optional[Array] = None, dtype: DType = None,
                        threads: int = 1) -> NormGradients:
    """Returns the gradients of layer_norm(), called with the same arguments.

    Parameters:
    - d_o: [..., dim], of x's dtype: the gradient of the result.
    - x: [..., dim].
    - normalized_shape: a tuple or an int: the last dimensions, which form a row. It may be omitted: layer_norm(x, weight, bias).
    - weight, bias: [dim], or lists.
    - eps: added to the variance. None: the machine epsilon of x's dtype.
    - dim, axis: the last dimension, as PyTorch and NumPy name it.
    - residual: [..., dim], of x's dtype or float32; may broadcast. The norm is of r = x + residual, and the call returns r too.
    - residual_mode: "before", or "after": the result is residual + norm(x), and there is no r.
    - gate: [..., dim]; may broadcast.
    - gate_mode: "post" multiplies the result by g(gate), "pre" multiplies r by it.
    - activation: g of the gate. Without a gate, the result is g(norm).
    - groups: the number of equal parts of a row, normalized separately.
    - weights: "row": weight has [dim] elements. "group": [dim / groups].
    - weight_offset: added to each weight, 1 for Gemma.
    - accuracy: "fast" or "exact" (docs/numerics.md).
    - r: x + residual as the forward pass returned it. None: computed again.
    - d_r: [..., dim], of r's dtype: the gradient of r from the residual stream. None: 0.
    - mean: [..., groups], as the forward pass returned it. None: computed again.
    - store: "auto", "keep" or "stream", a hint for the cache.
    - out: the array for dx. It may be d_o, d_r or x.

    Returns NormGradients(dx, dresidual, dgate, dweight, dbias); None for an operand that was not given. A residual before the norm has
    the gradient of x, in the same array if the dtypes are equal. A residual after it has d_o. The gradient of a residual or gate that
    broadcasts has one row per row of x; the caller adds them up.

    >>> x, w, b = np.array([[1, 2, 3, 4]], np.float32), np.ones(4, np.float32), np.zeros(4, np.float32)
    >>> nrg.layer_norm_backward(x, x, (4,), w, b).dbias
    array([1., 2., 3., 4.], dtype=float32)
    """
    return _backward(d_o, x, normalized_shape, weight, bias, dim=dim, axis=axis, residual=residual, gate=gate, gate_mode=gate_mode, r=r, d_r=d_r,
                     mean=mean, out=out, dtype=dtype, threads=threads, eps=eps, residual_mode=residual_mode, activation=activation,
                     groups=groups, weights=weights, weight_offset=weight_offset, accuracy=accuracy, store=store,
                     centred=True, eps_mode="mean", c=None)


@overload
def l2_normalize(x: ArrayLike, dim: int = -1, eps: Optional[float] = 1e-12, *, weight: Optional[ArrayLike] = None,
                 bias: Optional[ArrayLike] = None, axis: Optional[int] = None, residual: None = None,
                 residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None, gate_mode: GateMode = "post",
                 activation: Activation = "identity", groups: int = 1, weights: Weights = "row", weight_offset: float = 0.0,
                 accuracy: Accuracy = "fast", format: None = None, rounding: Rounding = "to_even", store: Store = "auto",
                 out: Optional[Array] = None, residual_out: Optional[Array] = None, stats: Literal[False] = False, dtype: DType = None,
                 threads: int = 1) -> Array:
    ...


@overload
def l2_normalize(x: ArrayLike, dim: int = -1, eps: Optional[float] = 1e-12, *, residual: ArrayLike, weight: Optional[ArrayLike] = None,
                 bias: Optional[ArrayLike] = None, axis: Optional[int] = None, residual_mode: Literal["before"] = "before",
                 gate: Optional[ArrayLike] = None, gate_mode: GateMode = "post", activation: Activation = "identity", groups: int = 1,
                 weights: Weights = "row", weight_offset: float = 0.0, accuracy: Accuracy = "fast", format: None = None,
                 rounding: Rounding = "to_even", store: Store = "auto", out: Optional[Array] = None, residual_out: Optional[Array] = None,
                 stats: Literal[False] = False, dtype: DType = None, threads: int = 1) -> Tuple[Array, Array]:
    ...


@overload
def l2_normalize(x: ArrayLike, dim: int = -1, eps: Optional[float] = 1e-12, *, weight: Optional[ArrayLike] = None,
                 bias: Optional[ArrayLike] = None, axis: Optional[int] = None, residual: Optional[ArrayLike] = None,
                 residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None, gate_mode: GateMode = "post",
                 activation: Activation = "identity", groups: int = 1, weights: Weights = "row", weight_offset: float = 0.0,
                 accuracy: Accuracy = "fast", format: Optional[str] = None, rounding: Rounding = "to_even", store: Store = "auto",
                 out: Optional[Array] = None, residual_out: Optional[Array] = None, stats: bool = False, dtype: DType = None,
                 threads: int = 1) -> Any:
    ...


def l2_normalize(x: ArrayLike, dim: int = -1, eps: Optional[float] = 1e-12, *, weight: Optional[ArrayLike] = None,
                 bias: Optional[ArrayLike] = None, axis: Optional[int] = None, residual: Optional[ArrayLike] = None,
                 residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None, gate_mode: GateMode = "post",
                 activation: Activation = "identity", groups: int = 1, weights: Weights = "row", weight_offset: float = 0.0,
                 accuracy: Accuracy = "fast", format: Optional[str] = None, rounding: Rounding = "to_even", store: Store = "auto",
                 out: Optional[Array] = None, residual_out: Optional[Array] = None, stats: bool = False, dtype: DType = None,
                 threads: int = 1) -> Any:
    """Scales each row to unit length: x / max(‖x‖, eps) ⊙ weight. As torch.nn.functional.normalize with p=2, dim=-1.

    Parameters:
    - x: [..., dim].
    - eps: the least length.
    - weight, bias: [dim].
    - dim, axis: the last dimension, as PyTorch and NumPy name it.
    - residual: [..., dim], of x's dtype or float32; may broadcast. The norm is of r = x + residual, and the call returns r too.
    - residual_mode: "before", or "after": the result is residual + norm(x), and there is no r.
    - gate: [..., dim]; may broadcast.
    - gate_mode: "post" multiplies the result by g(gate), "pre" multiplies r by it.
    - activation: g of the gate. Without a gate, the result is g(norm).
    - groups: the number of equal parts of a row, normalized separately.
    - weights: "row": weight has [dim] elements. "group": [dim / groups].
    - weight_offset: added to each weight, 1 for Gemma.
    - accuracy: "fast" or "exact" (docs/numerics.md).
    - format, rounding: as in nrg.quantize. With a format, the call returns bytes in place of the result.
    - store: "auto", "keep" or "stream", a hint for the cache.
    - out, residual_out: the arrays for the result and r. Each may be x or residual.
    - stats: True also returns mean and 1/s, float32 [..., groups].

    Returns the result, like x. With a residual: (result, r). With stats: (result, [r,] mean, rstd). With format="int8": (bytes, scales, …).

    >>> nrg.l2_normalize(np.array([[3, 4]], np.float32))
    array([[0.6, 0.8]], dtype=float32)
    """
    return _forward(x, None, weight, bias, dim=dim, axis=axis, residual=residual, gate=gate, gate_mode=gate_mode, format=format,
                    rounding=rounding, out=out, residual_out=residual_out, stats=stats, dtype=dtype, threads=threads, eps=eps,
                    residual_mode=residual_mode, activation=activation, groups=groups, weights=weights, weight_offset=weight_offset,
                    accuracy=accuracy, store=store, centred=False, eps_mode="max", c=1.0)


def l2_normalize_backward(d_o: ArrayLike, x: ArrayLike, dim: int = -1, eps: Optional[float] = 1e-12, *, weight: Optional[ArrayLike] = None,
                          bias: Optional[ArrayLike] = None, axis: Optional[int] = None, residual: Optional[ArrayLike] = None,
                          residual_mode: ResidualMode = "before", gate: Optional[ArrayLike] = None, gate_mode: GateMode = "post",
                          activation: Activation = "identity", groups: int = 1, weights: Weights = "row", weight_offset: float = 0.0,
                          accuracy: Accuracy = "fast", r: Optional[ArrayLike] = None, d_r: Optional[ArrayLike] = None,
                          mean: Optional[ArrayLike] = None, store: Store = "auto", out: Optional[Array] = None, dtype: DType = None,
                          threads: int = 1) -> NormGradients:
    """Returns the gradients of l2_normalize(), called with the same arguments.

    Parameters:
    - d_o: [..., dim], of x's dtype: the gradient of the result.
    - x: [..., dim].
    - eps: the least length.
    - weight, bias: [dim].
    - dim, axis: the last dimension, as PyTorch and NumPy name it.
    - residual: [..., dim], of x's dtype or float32; may broadcast. The norm is of r = x + residual, and the call returns r too.
    - residual_mode: "before", or "after": the result is residual + norm(x), and there is no r.
    - gate: [..., dim]; may broadcast.
    - gate_mode: "post" multiplies the result by g(gate), "pre" multiplies r by it.
    - activation: g of the gate. Without a gate, the result is g(norm).
    - groups: the number of equal parts of a row, normalized separately.
    - weights: "row": weight has [dim] elements. "group": [dim / groups].
    - weight_offset: added to each weight, 1 for Gemma.
    - accuracy: "fast" or "exact" (docs/numerics.md).
    - r: x + residual as the forward pass returned it. None: computed again.
    - d_r: [..., dim], of r's dtype: the gradient of r from the residual stream. None: 0.
    - mean: [..., groups], as the forward pass returned it. None: computed again.
    - store: "auto", "keep" or "stream", a hint for the cache.
    - out: the array for dx. It may be d_o, d_r or x.

    Returns NormGradients(dx, dresidual, dgate, dweight, dbias); None for an operand that was not given. A residual before the norm has
    the gradient of x, in the same array if the dtypes are equal. A residual after it has d_o. The gradient of a residual or gate that
    broadcasts has one row per row of x; the caller adds them up.

    >>> d_o, x = np.array([[1, 0]], np.float32), np.array([[3, 4]], np.float32)
    >>> nrg.l2_normalize_backward(d_o, x).dx.round(3)
    array([[ 0.128, -0.096]], dtype=float32)
    """
    return _backward(d_o, x, None, weight, bias, dim=dim, axis=axis, residual=residual, gate=gate, gate_mode=gate_mode, r=r, d_r=d_r,
                     mean=mean, out=out, dtype=dtype, threads=threads, eps=eps, residual_mode=residual_mode, activation=activation,
                     groups=groups, weights=weights, weight_offset=weight_offset, accuracy=accuracy, store=store,
                     centred=False, eps_mode="max", c=1.0)
