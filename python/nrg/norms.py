"""Row norms (nrg/norm.h, nrg/norm_backward.h): RMSNorm, LayerNorm, L2, with residual, gate, groups, and bytes with scales."""
import ctypes
from typing import NamedTuple, Optional

import numpy as np

from . import _arrays as arrays
from . import _quantized as quantized
from ._library import CONSTANTS, call, enum, share, struct, with_options

_ENUMS = {"eps_mode": ("nrg_eps_mode", "NRG_EPS_"), "residual_mode": ("nrg_residual_mode", "NRG_RESIDUAL_"),
          "weights": ("nrg_weights", "NRG_WEIGHTS_"), "activation": ("nrg_activation", "NRG_ACT_"),
          "accuracy": ("nrg_accuracy", "NRG_ACCURACY_")}
_NUMBERS = {"eps": 1e-6, "c": None, "centred": False, "weight_offset": 0.0, "groups": 1}
_DEFAULTS = {"eps_mode": "mean", "residual_mode": "before", "store": "auto", "weights": "row", "activation": "identity",
             "accuracy": "fast", **_NUMBERS}

OPTIONS = """
      eps            added below the root, unless eps_mode is "none"; 1e-6, of layer_norm 1e-5, of l2_normalize 1e-12
      weight_offset  added to every weight: 1 for Gemma; 0 without a weight
      centred        subtract the mean
      eps_mode       "mean": √(σ² + eps), "sum", "sigma", "max", "none" (nrg/norm.h: nrg_eps_mode)
      c              constant of the formula; None stands for √dim, 1 gives unit length
      groups         a row is normalized in so many equal parts
      weights        "row": weight is [dim]; "group": [dim / groups]
      activation     of the gate, or of the result where there is no gate: "silu", "gelu", …
      residual_mode  "before": norm(x + residual); "after": residual + norm(x)
      accuracy       "fast", within 5.5 ulp (centred: 12), or "exact", within 0.501 (centred: 1); float32, nrg/norm.h
      store          "auto", "keep", "stream": a hint
      dtype          "bf16" where uint16 arrays hold that
      threads        how many share the work; the bits are the same for any number
    """


def spec(dim, dtype, **given):
    """An nrg_norm_spec by the names of the options above."""
    unknown = set(given) - set(_DEFAULTS) - {"y_dtype", "r_dtype", "w_dtype", "gate"}
    if unknown:
        raise TypeError(f"a norm has no option {', '.join(sorted(unknown))}")
    given = {**_DEFAULTS, **given}
    fields = {name: given[name] for name in _NUMBERS}
    fields.update(arrays.options(_ENUMS, given))
    fields["centred"] = int(bool(fields["centred"]))
    fields["c_mode"] = 0 if given["c"] is None else CONSTANTS["NRG_C_GIVEN"]
    if fields["eps_mode"] == CONSTANTS["NRG_EPS_NONE"]:
        fields["eps"] = 0.0
    fields["gate"] = enum("nrg_gate", given.get("gate", "none"), "NRG_GATE_", "gate_mode")
    return struct("nrg_norm_spec", dim=dim, dtype=dtype, y_dtype=given.get("y_dtype", 0), r_dtype=given.get("r_dtype", 0),
                  w_dtype=given.get("w_dtype", 0), **fields)


def store(given):
    """The nrg_store of the options, which the args hold."""
    return enum("nrg_store", given.get("store", "auto"), "NRG_STORE_", "store")


class _Operands:
    """What forward and backward pass have in common: x, residual, gate, weight and bias, and the spec."""

    def __init__(self, x, weight, bias, residual, gate, gate_mode, dtype, given, r=None):
        self.x = arrays.as_array(x, "x")
        if self.x.ndim == 0 or self.x.shape[-1] == 0:
            raise arrays.unexpected("x", "[..., dim] with one element or more in a row", self.x)
        self.dim, self.leading = self.x.shape[-1], self.x.shape[:-1]
        self.number = arrays.number(self.x, "x", dtype)
        self.residual = None if residual is None else arrays.as_array(residual, "residual")
        self.gate = None if gate is None else arrays.as_array(gate, "gate")
        self.groups = arrays.count(given.get("groups", 1), "groups")
        if self.groups == 0 or self.dim % self.groups:
            raise arrays.unexpected("groups", f"a divisor of the {self.dim} elements of a row", self.groups)
        length = self.dim // self.groups if given.get("weights") == "group" else self.dim
        self.weight, self.bias = (arrays.dense(v, n, (length,), None) for v, n in ((weight, "weight"), (bias, "bias")))
        w_dtype = arrays.number_of_vectors({"weight": self.weight, "bias": self.bias}, dtype, self.number)
        stream, name = (self.residual, "residual") if self.residual is not None else (r, "r")
        self.stream = arrays.number_beside(stream, name, dtype, self.number) if stream is not None else self.number
        self.after = given.get("residual_mode", "before") == "after"
        self.spec = spec(self.dim, self.number, y_dtype=self.stream, r_dtype=self.number if self.after else self.stream,
                         w_dtype=w_dtype, gate=gate_mode if gate is not None else "none", **given)
        if self.gate is not None and self.gate.dtype != self.x.dtype:
            raise arrays.unexpected("gate", f"{self.x.dtype.name} like x", self.gate)
        self.rows = arrays.Rows(self.leading)

    def inputs(self):
        self.rows.add("x", self.x, self.dim)
        self.rows.add("residual", self.residual, self.dim, repeats=True, field="y")
        self.rows.add("gate", self.gate, self.dim, repeats=True, field="z")


def norm(x, weight=None, bias=None, *, residual=None, gate=None, gate_mode="post", out=None, residual_out=None, stats=False,
         format=None, rounding="to_even", dtype=None, threads=1, **given):
    """A norm of every row, of any kind that nrg/norm.h has; rms_norm, layer_norm and l2_normalize are named cases of it.

    x         [..., dim]
    weight, bias   [dim], or None
    residual  [..., dim], of x's dtype or float32, may repeat: r = x + residual is normalized, and returned beside the result
    gate      [..., dim], may repeat; gate_mode "post": norm ⊙ g(gate), "pre": the norm of r ⊙ g(gate)
    out, residual_out   arrays to write the result and r to; they may be x or residual
    stats     True: mean and 1/s are returned as well, [..., groups] float32 each
    format    "q8_0", "int8", …: bytes with scales instead of numbers, as nrg.quantize makes them of the float32 result

    Returns o [..., dim], or a tuple of what there is of (o, r, mean, rstd); with a format o is the bytes, and with int8 bytes, scales.

    Options by name:
    """
    of = _Operands(x, weight, bias, residual, gate, gate_mode, dtype, given)
    of.inputs()
    results = []
    args = struct("nrg_norm_args", store=store(given))
    if format is None:
        o = arrays.output(out, "out", of.x.shape, of.x.dtype)
        of.rows.add("out", o, of.dim, field="o")
        results.append(o)
    else:
        if out is not None:
            raise arrays.unexpected("out", "None with a format, whose bytes are returned", out)
        results += quantized.fill(args, format, rounding, of.leading, of.dim, options=of.spec)
    r = None
    if of.residual is not None and not of.after:
        r = arrays.output(residual_out, "residual_out", of.x.shape, of.residual.dtype)
        of.rows.add("residual_out", r, of.dim, field="r")
        results.append(r)
    elif residual_out is not None:
        raise arrays.unexpected("residual_out", "None without a residual before the norm", residual_out)
    if stats:
        shape = of.leading + (of.groups,)
        mean, rstd = np.empty(shape, np.float32), np.empty(shape, np.float32)
        args.mean, args.rstd = arrays.address(mean), arrays.address(rstd)
        results += [mean, rstd]
    of.rows.fill(args)
    args.w, args.b = arrays.address(of.weight), arrays.address(of.bias)
    share("nrg_norm_forward", of.spec, args, threads=threads)
    return results[0] if len(results) == 1 else tuple(results)


class NormGradients(NamedTuple):
    """dx [..., dim], and the gradients of what else was given, or None. dweight and dbias are float32."""
    dx: np.ndarray
    dresidual: Optional[np.ndarray]
    dgate: Optional[np.ndarray]
    dweight: Optional[np.ndarray]
    dbias: Optional[np.ndarray]


def norm_backward(d_o, x, weight=None, bias=None, *, residual=None, gate=None, gate_mode="post", r=None, d_r=None, mean=None, out=None,
                  dtype=None, threads=1, **given):
    """The gradients of norm(), for what it was called with.

    d_o       [..., dim], of x's dtype: the gradient of the result
    r         [..., dim]: x + residual as norm() returned it, or None: it is added up again
    d_r       [..., dim], of r's dtype: the gradient that arrives at r from elsewhere (the residual stream), or None
    mean      [..., groups] as norm() returned it, or None: it is computed again
    out       where dx is written; it may be d_o, d_r or x

    Returns NormGradients(dx, dresidual, dgate, dweight, dbias): a gradient of each operand that was given, None for the others. A
    residual before the norm has the gradient of x, in the same array where both have one dtype; one after it has d_o. Of a residual
    or gate that repeats it is that of every row, whose sum is the caller's.

    Options by name:
    """
    r = None if r is None else arrays.as_array(r, "r")
    of = _Operands(x, weight, bias, residual, gate, gate_mode, dtype, given, r)
    d_o = arrays.as_array(d_o, "d_o")
    d_r = None if d_r is None else arrays.as_array(d_r, "d_r")
    stream = of.x if of.residual is None and r is None else of.residual if of.residual is not None else r
    for array, name, wanted, like in ((d_o, "d_o", of.x, "x"), (r, "r", stream, "residual"), (d_r, "d_r", stream, "r")):
        if array is not None and array.dtype != wanted.dtype:
            raise arrays.unexpected(name, f"{wanted.dtype.name} like {like}", array)
    if r is None:
        of.rows.add("x", of.x, of.dim)
        if not of.after:
            of.rows.add("residual", of.residual, of.dim, repeats=True, field="y")
    of.rows.add("gate", of.gate, of.dim, repeats=True, field="z")
    rows = of.rows
    dx = rows.add("out", arrays.output(out, "out", of.x.shape, of.x.dtype), of.dim, field="dx")
    rows.add("d_o", d_o, of.dim)
    rows.add("r", r, of.dim)
    rows.add("d_r", d_r, of.dim, field="dr_in")
    dy = None
    if of.residual is not None:
        dy = d_o if of.after else dx
        if of.residual.dtype != of.x.dtype:
            dy = rows.add("dy", np.empty(of.x.shape, of.residual.dtype), of.dim)
    dz = None if of.gate is None else rows.add("dz", np.empty(of.x.shape, of.x.dtype), of.dim)
    dw, db = (None if v is None else np.empty(v.shape, np.float32) for v in (of.weight, of.bias))
    args = struct("nrg_norm_backward_args", store=store(given), w=arrays.address(of.weight), b=arrays.address(of.bias), dw=arrays.address(dw),
                  db=arrays.address(db))
    rows.fill(args)
    mean = arrays.dense(mean, "mean", of.leading + (of.groups,), np.float32)
    args.mean = arrays.address(mean) if given.get("centred") else None
    reduce("nrg_norm_backward", (of.spec,), args, threads, bool(weight is not None or bias is not None))
    return NormGradients(dx, dy, dz, dw, db)


def reduce(name, specs, args, threads, sums):
    """Both phases of a backward pass, with a workspace where there are sums over rows."""
    memory = None
    if sums:
        size = ctypes.c_size_t()
        call(name + "_workspace", *specs, args, ctypes.addressof(size))
        memory = arrays.workspace(size.value)
        args.workspace, args.workspace_size = arrays.address(memory), size.value
    share(name, *specs, args, threads=threads)
    if sums:
        share(name + "_reduce", *specs, args, threads=threads)


for _function in (norm, norm_backward):
    _function.__doc__ = _function.__doc__.rstrip() + OPTIONS
    _function.__signature__ = with_options(_function, _DEFAULTS)


def _named(name, formula, torch, **fixed):
    """rms_norm and its like, and their backward passes: norm() with defaults of their own."""

    def forward(x, weight=None, bias=None, **given):
        return norm(x, weight, bias, **{**fixed, **given})

    def backward(d_o, x, weight=None, bias=None, **given):
        return norm_backward(d_o, x, weight, bias, **{**fixed, **given})

    forward.__name__ = forward.__qualname__ = name
    backward.__name__ = backward.__qualname__ = name + "_backward"
    forward.__doc__ = f"{formula}, of every row; {torch}.\n" + norm.__doc__.split("\n", 1)[1]
    backward.__doc__ = f"The gradients of {name}(), for what it was called with.\n" + norm_backward.__doc__.split("\n", 1)[1]
    forward.__signature__ = with_options(norm, {**_DEFAULTS, **fixed})
    backward.__signature__ = with_options(norm_backward, {**_DEFAULTS, **fixed})
    return forward, backward


rms_norm, rms_norm_backward = _named("rms_norm", "x / √(mean(x²) + eps) ⊙ weight", "torch.nn.functional.rms_norm")
layer_norm, layer_norm_backward = _named("layer_norm", "(x - mean) / √(variance + eps) ⊙ weight + bias",
                                         "torch.nn.functional.layer_norm", eps=1e-5, centred=True)
l2_normalize, l2_normalize_backward = _named("l2_normalize", "x / max(‖x‖, eps)", "torch.nn.functional.normalize",
                                                       eps=1e-12, eps_mode="max", c=1.0)
