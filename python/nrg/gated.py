"""Gated linear units (nrg/glu.h): o = g(a) ⊙ b.

    gate                  swiglu  geglu  geglu_tanh  reglu  bilinear  swiglu_oai  glu"""
from __future__ import annotations

from typing import Any, Dict, Optional, Protocol, Tuple, overload

from . import _arrays as arrays
from . import _quantized as quantized
from ._library import enum, planned, share, struct
from ._types import Activation, Array, ArrayLike, DType, Rounding


def _inputs(a: ArrayLike, b: Optional[ArrayLike], dim: Optional[int], axis: Optional[int], pairs: bool, swapped: bool,
            dtype: DType) -> Tuple[Dict[str, Array], Tuple[int, ...], int, int]:
    """Returns (fields and their arrays, leading shape, dim, number): of two tensors, halves of rows, or pairs."""
    a = arrays.as_array(a, "a")
    number = arrays.number(a, "a", dtype)
    if a.ndim == 0:
        raise arrays.unexpected("a", "[..., dim]", a)
    arrays.last_axis(a, "a", dim, axis)
    if b is not None:
        for name, value in (("pairs", pairs), ("swapped", swapped)):
            if value:
                raise arrays.unexpected(name, "False, since b is given", value)
        return {"a": a, "b": arrays.like(b, "b", a, "a")}, a.shape[:-1], a.shape[-1], number
    if a.shape[-1] % 2:
        raise arrays.unexpected("a", "[..., 2·dim], since b is not given", a)
    half = a.shape[-1] // 2
    if pairs:
        if swapped:
            raise arrays.unexpected("swapped", "False with pairs", swapped)
        return {"x": a}, a.shape[:-1], half, number
    first, second = a[..., :half], a[..., half:]
    return {"a": second if swapped else first, "b": first if swapped else second}, a.shape[:-1], half, number


def _args(activation: str, number: int, dim: int, limit: Optional[float], b_offset: float, alpha: Optional[float]) -> Any:
    return struct("nrg_glu_args", activation=enum("nrg_activation", activation, "NRG_ACT_", "activation"), dtype=number, dim=dim, limit=limit,
                  b_offset=b_offset, alpha=alpha)


@overload
def glu(a: ArrayLike, b: Optional[ArrayLike] = None, dim: Optional[int] = None, *, axis: Optional[int] = None,
        activation: Activation = "sigmoid", pairs: bool = False, swapped: Optional[bool] = None, limit: Optional[float] = None,
        b_offset: float = 0.0, alpha: Optional[float] = None, out: Optional[Array] = None, format: None = None,
        rounding: Rounding = "to_even", dtype: DType = None, threads: int = 1) -> Array:
    ...


@overload
def glu(a: ArrayLike, b: Optional[ArrayLike] = None, dim: Optional[int] = None, *, axis: Optional[int] = None,
        activation: Activation = "sigmoid", pairs: bool = False, swapped: Optional[bool] = None, limit: Optional[float] = None,
        b_offset: float = 0.0, alpha: Optional[float] = None, out: Optional[Array] = None, format: Optional[str] = None,
        rounding: Rounding = "to_even", dtype: DType = None, threads: int = 1) -> Any:
    ...


@planned
def glu(a: ArrayLike, b: Optional[ArrayLike] = None, dim: Optional[int] = None, *, axis: Optional[int] = None,
        activation: Activation = "sigmoid", pairs: bool = False, swapped: Optional[bool] = None, limit: Optional[float] = None,
        b_offset: float = 0.0, alpha: Optional[float] = None, out: Optional[Array] = None, format: Optional[str] = None,
        rounding: Rounding = "to_even", dtype: DType = None, threads: int = 1) -> Any:
    """Returns g(a) ⊙ b for each element. glu(x) is torch.nn.functional.glu(x): the second half of each row is the gate.

    Parameters:
    - a, b: [..., dim]. Or only a, [..., 2·dim], whose rows have both.
    - dim, axis: the last dimension, as PyTorch and NumPy name it.
    - activation: g, any of nrg.activation.
    - pairs: a row is a0 b0 a1 b1 …
    - swapped: a row is b, then a. None: True for sigmoid without b and pairs, as in PyTorch; otherwise False.
    - limit: a becomes min(a, limit) and b max(-limit, min(b, limit)). None: no limit.
    - b_offset: added to b.
    - alpha: of the activation, as in nrg.activation.
    - out: the array for the result. It may be a or b.
    - format, rounding: as in nrg.quantize. With a format, the call returns bytes in place of the result.

    Returns an array [..., dim]; with a format, bytes; with format="int8", (bytes, scales).

    >>> a, b = np.array([0, 2], np.float32), np.array([4, 4], np.float32)
    >>> nrg.glu(a, b).round(4)
    array([2.    , 3.5232], dtype=float32)
    >>> nrg.glu(np.concatenate([b, a])).round(4)
    array([2.    , 3.5232], dtype=float32)
    """
    if swapped is None:
        swapped = b is None and not pairs and activation == "sigmoid"
    tensors, leading, length, number = _inputs(a, b, dim, axis, pairs, swapped, dtype)
    rows = arrays.Rows(leading)
    args = _args(activation, number, length, limit, b_offset, alpha)
    for name, array in tensors.items():
        rows.add("a" if name == "x" or b is None else name, array, 2 * length if name == "x" else length, field=name)
    if format is None:
        results = [arrays.output(out, "out", leading + (length,), next(iter(tensors.values())).dtype)]
        rows.add("out", results[0], length, field="o")
    elif out is not None:
        raise arrays.unexpected("out", "None with a format, whose bytes the call returns", out)
    else:
        results = quantized.fill(args, format, rounding, leading, length, name="a")
    if length:
        rows.fill(args)
        share("nrg_glu_forward", args, threads=threads)
    return results[0] if len(results) == 1 else tuple(results)


@planned
def glu_backward(d_o: ArrayLike, a: ArrayLike, b: Optional[ArrayLike] = None, dim: Optional[int] = None, *, axis: Optional[int] = None,
                 activation: Activation = "sigmoid", pairs: bool = False, swapped: Optional[bool] = None, limit: Optional[float] = None,
                 b_offset: float = 0.0, alpha: Optional[float] = None, out: Any = None, dtype: DType = None, threads: int = 1) -> Any:
    """Returns the gradients of glu(), called with the same arguments.

    Parameters:
    - d_o: [..., dim]: the gradient of the result.
    - a, b and options: as in glu().
    - out: (da, db); if b is None, one array like a. These may be the inputs.

    Returns (da, db), each [..., dim]; if b is None, one array like a.

    >>> d_o, a, b = np.ones(1, np.float32), np.zeros(1, np.float32), np.ones(1, np.float32)
    >>> nrg.glu_backward(d_o, a, b)
    (array([0.25], dtype=float32), array([0.5], dtype=float32))
    """
    if swapped is None:
        swapped = b is None and not pairs and activation == "sigmoid"
    tensors, leading, length, number = _inputs(a, b, dim, axis, pairs, swapped, dtype)
    kind = next(iter(tensors.values())).dtype
    d_o = arrays.as_array(d_o, "d_o")
    if d_o.dtype != kind:
        raise arrays.unexpected("d_o", f"{kind.name} like a", d_o)
    results: Any
    if b is not None:
        results = tuple(arrays.output(each, "out", leading + (length,), kind) for each in arrays.pair(out))
        gradients = dict(zip(("da", "db"), results))
    else:
        results = arrays.output(out, "out", leading + (2 * length,), kind)
        gradients = {"d" + name: array for name, array in _inputs(results, None, None, None, pairs, swapped, dtype)[0].items()}
    rows = arrays.Rows(leading)
    for name, array in {**tensors, **gradients}.items():
        argument = "out" if name in gradients else "a" if name == "x" or b is None else name
        rows.add(argument, array, 2 * length if name in ("x", "dx") else length, field=name)
    rows.add("d_o", d_o, length)
    args = _args(activation, number, length, limit, b_offset, alpha)
    if length:
        rows.fill(args)
        share("nrg_glu_backward", args, threads=threads)
    return results


class _Forward(Protocol):
    @overload
    def __call__(self, a: ArrayLike, b: Optional[ArrayLike] = None, *, dim: Optional[int] = None, axis: Optional[int] = None,
                 pairs: bool = False, swapped: bool = False, limit: Optional[float] = ..., b_offset: float = ...,
                 out: Optional[Array] = None, format: None = None, rounding: Rounding = "to_even", dtype: DType = None,
                 threads: int = 1) -> Array:
        ...

    @overload
    def __call__(self, a: ArrayLike, b: Optional[ArrayLike] = None, *, dim: Optional[int] = None, axis: Optional[int] = None,
                 pairs: bool = False, swapped: bool = False, limit: Optional[float] = ..., b_offset: float = ...,
                 out: Optional[Array] = None, format: Optional[str] = None, rounding: Rounding = "to_even", dtype: DType = None,
                 threads: int = 1) -> Any:
        ...


class _Backward(Protocol):
    def __call__(self, d_o: ArrayLike, a: ArrayLike, b: Optional[ArrayLike] = None, *, dim: Optional[int] = None,
                 axis: Optional[int] = None, pairs: bool = False, swapped: bool = False, limit: Optional[float] = ...,
                 b_offset: float = ..., out: Any = None, dtype: DType = None, threads: int = 1) -> Any:
        ...


def _unit(name: str, activation: Activation, formula: str, result: str, gradients: str, limit: Optional[float] = None,
          b_offset: float = 0.0, alpha: Optional[float] = None) -> Tuple[_Forward, _Backward]:
    """Returns the functions of a gated unit. result, gradients: of the examples. limit, b_offset: the defaults."""
    def forward(a: ArrayLike, b: Optional[ArrayLike] = None, *, dim: Optional[int] = None, axis: Optional[int] = None,
                pairs: bool = False, swapped: bool = False, limit: Optional[float] = limit, b_offset: float = b_offset,
                out: Optional[Array] = None, format: Optional[str] = None, rounding: Rounding = "to_even", dtype: DType = None,
                threads: int = 1) -> Any:
        return glu(a, b, activation=activation, dim=dim, axis=axis, pairs=pairs, swapped=swapped, limit=limit, b_offset=b_offset,
                   alpha=alpha, out=out, format=format, rounding=rounding, dtype=dtype, threads=threads)

    def backward(d_o: ArrayLike, a: ArrayLike, b: Optional[ArrayLike] = None, *, dim: Optional[int] = None, axis: Optional[int] = None,
                 pairs: bool = False, swapped: bool = False, limit: Optional[float] = limit, b_offset: float = b_offset,
                 out: Any = None, dtype: DType = None, threads: int = 1) -> Any:
        return glu_backward(d_o, a, b, activation=activation, dim=dim, axis=axis, pairs=pairs, swapped=swapped, limit=limit,
                            b_offset=b_offset, alpha=alpha, out=out, dtype=dtype, threads=threads)

    arrays.name_function(forward, name, f"""Returns {formula}, for each element.

        Parameters:
        - a, b: [..., dim]. Or only a, [..., 2·dim]: each row has the gate, then the other half.
        - dim, axis, pairs, swapped, limit, b_offset, out, format, rounding: as in glu().

        Returns an array [..., dim], or bytes if there is a format.

        >>> nrg.{name}(np.array([[2, 3]], np.float32)).round(4)
        array({result}, dtype=float32)
        """)
    arrays.name_function(backward, f"{name}_backward", f"""Returns the gradients of {name}(), called with the same arguments.

        Parameters:
        - d_o: [..., dim]: the gradient of the result.
        - a, b and options: as in {name}().
        - out: arrays for the result, as in glu_backward().

        Returns (da, db), each [..., dim]; if b is None, one array like a.

        >>> d_o = np.ones((1, 1), np.float32)
        >>> nrg.{name}_backward(d_o, np.array([[2, 3]], np.float32)).round(4)
        array({gradients}, dtype=float32)
        """)
    return forward, backward


swiglu, swiglu_backward = _unit("swiglu", "silu", "silu(a) ⊙ b", "[[5.2848]]", "[[3.2724, 1.7616]]")
geglu, geglu_backward = _unit("geglu", "gelu", "gelu(a) ⊙ b", "[[5.8635]]", "[[3.2557, 1.9545]]")
geglu_tanh, geglu_tanh_backward = _unit("geglu_tanh", "gelu_tanh", "gelu_tanh(a) ⊙ b", "[[5.8638]]", "[[3.2583, 1.9546]]")
reglu, reglu_backward = _unit("reglu", "relu", "relu(a) ⊙ b", "[[6.]]", "[[3., 2.]]")
bilinear, bilinear_backward = _unit("bilinear", "identity", "a ⊙ b", "[[6.]]", "[[3., 2.]]")
swiglu_oai, swiglu_oai_backward = _unit("swiglu_oai", "gelu_quick", "gpt-oss's unit: gelu_quick(min(a, 7)) ⊙ (max(-7, min(b, 7)) + 1)",
                                        "[[7.7426]]", "[[4.2953, 1.9357]]", limit=7.0, b_offset=1.0, alpha=1.702)
