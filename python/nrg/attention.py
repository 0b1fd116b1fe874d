"""Softmax with the options of attention, and cross-entropy (nrg/softmax.h, nrg/cross_entropy.h).

    attend                softmax  log_softmax
    compute the loss      cross_entropy"""
from __future__ import annotations

import math
from typing import Any, Dict, Literal, Optional, Tuple, Union, overload

import numpy as np

from . import _arrays as arrays
from ._library import Error, enum, planned, share, struct
from ._types import Array, ArrayLike, DType, F32Array, F64Array, Reduction, Store


def _sizes(x: Array, name: str, dtype: DType) -> Dict[str, int]:
    (batch, heads, queries), _, _ = arrays.four(x, name)
    return {"batch": batch, "heads": heads, "queries": queries, "keys": x.shape[-1], "dtype": arrays.number(x, name, dtype)}


@planned
def softmax(x: ArrayLike, dim: Optional[int] = None, *, axis: Optional[int] = None, mask: Optional[ArrayLike] = None,
            scale: Optional[float] = None, cap: Optional[float] = None, causal: bool = False, first_position: Optional[int] = None,
            window: Optional[int] = None, diagonals: Optional[ArrayLike] = None, slopes: Optional[ArrayLike] = None,
            sinks: Optional[ArrayLike] = None, log: bool = False, store: Store = "auto", out: Optional[Array] = None, dtype: DType = None,
            threads: int = 1) -> Array:
    """Applies softmax to each row: softmax(cap(x · scale) + bias + slope · mask). As torch.nn.functional.softmax over the last dimension.

    Parameters:
    - x: [..., batch, heads, queries, keys], or the last of these: [rows, classes], [heads, queries, keys].
    - dim, axis: the last dimension, as PyTorch and NumPy name it.
    - mask: float32, float16 or bf16, added to the scores; may broadcast. For a boolean mask that is True for keys to read, pass
      np.where(mask, np.float32(0), np.float32(-np.inf)).
    - scale: multiplies each score. None: 1.
    - cap: cap · tanh(score / cap) replaces a score. None: no cap.
    - causal: query i reads keys up to first_position + i.
    - first_position: the position of query 0. None: keys - queries.
    - window: the number of last keys that a query reads. None: all.
    - diagonals: float32 [heads, queries + keys - 1], biases by distance from t5_diagonals or alibi_diagonals.
    - slopes: float32 [heads], which multiply the mask.
    - sinks: float32 [heads], logits that only the sum includes.
    - log: True returns log-softmax.
    - store: "auto", "keep" or "stream", a hint for the cache.
    - out: the array for the result. It may be x.

    Returns an array like x. A key that a query does not read has 0, as has a row without keys.

    >>> nrg.softmax(np.array([[0, 0, 0], [0, 0, 0]], np.float32), causal=True).round(4)
    array([[0.5   , 0.5   , 0.    ],
           [0.3333, 0.3333, 0.3333]], dtype=float32)
    """
    x = arrays.as_array(x, "x")
    if x.ndim == 0:
        raise arrays.unexpected("x", "rows of elements [..., dim]", x)
    arrays.last_axis(x, "x", dim, axis)
    o = arrays.output(out, "out", x.shape, x.dtype)
    mask_dtype = None
    if mask is not None:
        mask = arrays.as_array(mask, "mask")
        if mask.dtype == bool:
            raise ValueError(f"{arrays.unexpected('mask', 'numbers that are added to the scores', mask)}; for True on keys to read, pass "
                             "np.where(mask, np.float32(0), np.float32(-np.inf))")
        mask_dtype = arrays.kind_of(mask, "mask", dtype)
        mask = arrays.broadcast(mask, "mask", x.shape)
    given = {"x": x, "o": o, "mask": mask}
    options = {"mask_dtype": mask_dtype, "scale": scale, "cap": cap, "causal": int(bool(causal)), "first_position": first_position, "window": window,
               "log": int(bool(log)), "store": enum("nrg_store", store, "NRG_STORE_", "store")}
    for _, tensors in [(None, given)] if x.ndim <= 4 else arrays.batches(given):
        _softmax(tensors, options, diagonals, slopes, sinks, dtype, threads)
    return o


def _softmax(tensors: Dict[str, Any], options: Dict[str, Any], diagonals: Any, slopes: Any, sinks: Any, dtype: DType, threads: int) -> None:
    x, mask = tensors["x"], tensors["mask"]
    sizes = _sizes(x, "x", dtype)
    heads, columns = sizes["heads"], max(sizes["queries"] + sizes["keys"] - 1, 0)
    args = struct("nrg_softmax_args", **options, **sizes)
    if mask is not None:
        args.mask_repeat = arrays.four(mask, "mask", True)[2]
        arrays.fill_four(args, "mask", mask, repeats=True)
    diagonals = arrays.dense(diagonals, "diagonals", (heads, columns), np.float32)
    slopes = arrays.dense(slopes, "slopes", (heads,), np.float32)
    sinks = arrays.dense(sinks, "sinks", (heads,), np.float32)
    args.diagonals, args.slopes, args.sinks = (arrays.address(array) for array in (diagonals, slopes, sinks))
    arrays.fill_four(args, "x", x)
    arrays.fill_four(args, "o", tensors["o"], "out")
    share("nrg_softmax_forward", args, threads=threads)


def log_softmax(x: ArrayLike, dim: Optional[int] = None, *, axis: Optional[int] = None, mask: Optional[ArrayLike] = None,
                scale: Optional[float] = None, cap: Optional[float] = None, causal: bool = False, first_position: Optional[int] = None,
                window: Optional[int] = None, diagonals: Optional[ArrayLike] = None, slopes: Optional[ArrayLike] = None,
                sinks: Optional[ArrayLike] = None, store: Store = "auto", out: Optional[Array] = None, dtype: DType = None,
                threads: int = 1) -> Array:
    """Applies log-softmax to each row, as softmax(x, log=True): t - ln Σ e^t. As torch.nn.functional.log_softmax over the last dimension.

    Parameters:
    - x: [..., keys].
    - options: as in softmax().

    Returns an array like x. A key that a query does not read has -inf.

    >>> nrg.log_softmax(np.zeros((1, 2), np.float32)).round(4)
    array([[-0.6931, -0.6931]], dtype=float32)
    """
    return softmax(x, dim, axis=axis, mask=mask, scale=scale, cap=cap, causal=causal, first_position=first_position, window=window,
                   diagonals=diagonals, slopes=slopes, sinks=sinks, log=True, store=store, out=out, dtype=dtype, threads=threads)


@planned
def softmax_backward(d_o: ArrayLike, o: ArrayLike, dim: Optional[int] = None, *, axis: Optional[int] = None, x: Optional[ArrayLike] = None,
                     scale: Optional[float] = None, cap: Optional[float] = None, causal: bool = False, first_position: Optional[int] = None,
                     window: Optional[int] = None, log: bool = False, store: Store = "auto", out: Optional[Array] = None,
                     dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of softmax(), called with the same options.

    Parameters:
    - d_o, o: [..., batch, heads, queries, keys], or the last of these: the gradient of the result, and the result.
    - x: the input of softmax(). Required with a cap; must be None without one.
    - dim, axis, scale, cap, causal, first_position, window, log, store: as in softmax().
    - out: the array for the result. It may be o, d_o or x.

    Returns an array like o.

    >>> o = nrg.softmax(np.zeros((1, 2), np.float32))
    >>> nrg.softmax_backward(np.array([[1, 0]], np.float32), o)
    array([[ 0.25, -0.25]], dtype=float32)
    """
    o = arrays.as_array(o, "o")
    if o.ndim == 0:
        raise arrays.unexpected("o", "rows of elements [..., dim]", o)
    arrays.last_axis(o, "o", dim, axis)
    if cap and x is None:
        raise arrays.unexpected("x", "the input of softmax(), since cap is given", x)
    if not cap and x is not None:
        raise arrays.unexpected("x", "None, since cap is not given", arrays.as_array(x, "x"))
    given = {"o": o, "d_o": arrays.like(d_o, "d_o", o, "o"), "x": None if x is None else arrays.like(x, "x", o, "o"),
             "dx": arrays.output(out, "out", o.shape, o.dtype)}
    options = {"scale": scale, "cap": cap, "causal": int(bool(causal)), "first_position": first_position, "window": window,
               "log": int(bool(log)), "store": enum("nrg_store", store, "NRG_STORE_", "store")}
    for _, tensors in [(None, given)] if o.ndim <= 4 else arrays.batches(given):
        args = struct("nrg_softmax_backward_args", **options, **_sizes(tensors["o"], "o", dtype))
        for name in ("o", "d_o", "x"):
            arrays.fill_four(args, name, tensors[name])
        arrays.fill_four(args, "dx", tensors["dx"], "out")
        share("nrg_softmax_backward", args, threads=threads)
    return given["dx"]  # type: ignore[return-value]


def log_softmax_backward(d_o: ArrayLike, o: ArrayLike, dim: Optional[int] = None, *, axis: Optional[int] = None,
                         x: Optional[ArrayLike] = None, scale: Optional[float] = None, cap: Optional[float] = None, causal: bool = False,
                         first_position: Optional[int] = None, window: Optional[int] = None, store: Store = "auto",
                         out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of log_softmax(), called with the same options.

    Parameters:
    - d_o, o: [..., keys]: the gradient of the result, and the result.
    - options: as in softmax_backward().

    Returns an array like o.

    >>> o = nrg.log_softmax(np.zeros((1, 2), np.float32))
    >>> nrg.log_softmax_backward(np.array([[1, 0]], np.float32), o)
    array([[ 0.5, -0.5]], dtype=float32)
    """
    return softmax_backward(d_o, o, dim, axis=axis, x=x, scale=scale, cap=cap, causal=causal, first_position=first_position, window=window,
                            log=True, store=store, out=out, dtype=dtype, threads=threads)


def _logits(x: ArrayLike, target: ArrayLike, ignore_index: int, dtype: DType) -> Tuple[Array, Array, Any, arrays.Rows]:
    x = arrays.adjacent(arrays.as_array(x, "x"), "x")
    if x.shape[-1] == 0 and x.shape[:-1] != (0,) * (x.ndim - 1):
        raise arrays.unexpected("x", "[..., classes] with one class or more", x)
    if x.ndim > 1 and np.shape(target) == x.shape[:1] + x.shape[2:] != x.shape[:-1]:
        error = arrays.unexpected("target", f"integers {list(x.shape[:-1])}, since classes are last", arrays.as_array(target, "target"))
        raise ValueError(f"{error}; move them there: np.ascontiguousarray(np.moveaxis(x, 1, -1))")
    target = arrays.integers(target, "target", x.shape[:-1], optional=False)
    args = struct("nrg_cross_entropy_args", classes=x.shape[-1] or 1, dtype=arrays.number(x, "x", dtype), ignore_index=ignore_index,
                  ids=arrays.address(target))
    rows = arrays.Rows(x.shape[:-1])
    rows.add("x", x)
    return x, np.asarray(target), args, rows


def _checked(reduction: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise arrays.unexpected("reduction", "'mean', 'sum' or 'none'", reduction)


@overload
def cross_entropy(x: ArrayLike, target: ArrayLike, *, ignore_index: int = -100, reduction: Literal["mean", "sum"] = "mean",
                  stats: Literal[False] = False, dtype: DType = None, threads: int = 1) -> np.float32:
    ...


@overload
def cross_entropy(x: ArrayLike, target: ArrayLike, *, ignore_index: int = -100, reduction: Literal["none"],
                  stats: Literal[False] = False, dtype: DType = None, threads: int = 1) -> F32Array:
    ...


@overload
def cross_entropy(x: ArrayLike, target: ArrayLike, *, ignore_index: int = -100, reduction: Literal["mean", "sum"] = "mean",
                  stats: Literal[True], dtype: DType = None, threads: int = 1) -> Tuple[np.float32, F32Array, F64Array]:
    ...


@overload
def cross_entropy(x: ArrayLike, target: ArrayLike, *, ignore_index: int = -100, reduction: Literal["none"], stats: Literal[True],
                  dtype: DType = None, threads: int = 1) -> Tuple[F32Array, F32Array, F64Array]:
    ...


def cross_entropy(x: ArrayLike, target: ArrayLike, *, ignore_index: int = -100, reduction: Reduction = "mean", stats: bool = False,
                  dtype: DType = None, threads: int = 1) -> Any:
    """Returns the cross-entropy loss: ln Σ e^x - x[target] for each row. As torch.nn.functional.cross_entropy, with classes last.

    Parameters:
    - x: [..., classes], logits. PyTorch has classes in dimension 1: np.ascontiguousarray(np.moveaxis(x, 1, -1)).
    - target: integers [...], the class of each row. For the next token, pass all logits and no slice, which would need a copy:
      target[:, :-1] = ids[:, 1:] and target[:, -1] = -100.
    - ignore_index: a target with loss 0, which "mean" does not count. It may be a class.
    - reduction: "mean" and "sum" return one number, "none" the loss of each row.
    - stats: True also returns m and others, which cross_entropy_backward() takes. m is the largest logit of each row. others is the
      sum of e^x over the other classes, divided by a power of 2 or by e^m.

    Returns the loss, float32, or (loss, m float32 [...], others float64 [...]). "mean" of no rows is NaN, as in PyTorch.

    >>> x = np.array([[0, 0], [0, 2]], np.float32)
    >>> print(nrg.cross_entropy(x, [0, 1]).round(4))
    0.41
    >>> nrg.cross_entropy(x, [0, 1], reduction="none").round(4)
    array([0.6931, 0.1269], dtype=float32)
    """
    _checked(reduction)
    x, target, args, rows = _logits(x, target, ignore_index, dtype)
    rows.one_stride(args)
    loss, m, others = np.empty(x.shape[:-1], np.float32), np.empty(x.shape[:-1], np.float32), np.empty(x.shape[:-1], np.float64)
    args.loss, args.m, args.others = arrays.address(loss), arrays.address(m), arrays.address(others)
    try:
        share("nrg_cross_entropy_forward", args, threads=threads)
    except Error as error:
        raise arrays.explained(error, "target", target, x.shape[-1], ignore_index) from None
    result: Any = loss
    if reduction != "none":
        kept = int((target != ignore_index).sum())
        total = _sum(loss)
        result = np.float32(total if reduction == "sum" else total / kept if kept else math.nan)
    return (result, m, others) if stats else result


def _sum(values: Array) -> float:
    """The correctly rounded sum, which is bit-identical on every CPU. np.sum adds in an order that depends on the CPU."""
    try:
        return math.fsum(values.ravel().tolist())
    except (OverflowError, ValueError):  # +inf and -inf
        return float(values.sum(dtype=np.float64))


def cross_entropy_backward(d_loss: Union[ArrayLike, float], x: ArrayLike, target: ArrayLike, m: ArrayLike, others: ArrayLike, *,
                           ignore_index: int = -100, reduction: Reduction = "mean", out: Optional[Array] = None, dtype: DType = None,
                           threads: int = 1) -> Array:
    """Returns the gradient of cross_entropy(), called with the same arguments: (softmax(x) - onehot(target)) · d_loss for each row.

    Parameters:
    - d_loss: the gradient of the loss: a number, or with reduction "none" float32 [...].
    - x, target, ignore_index, reduction: as in cross_entropy().
    - m, others: the results of cross_entropy() with stats=True.
    - out: the array for the result, [..., classes]. It may be x.

    Returns an array like x.

    >>> x = np.array([[0, 0]], np.float32)
    >>> loss, m, others = nrg.cross_entropy(x, [0], stats=True)
    >>> nrg.cross_entropy_backward(1.0, x, [0], m, others)
    array([[-0.5,  0.5]], dtype=float32)
    """
    _checked(reduction)
    x, target, args, rows = _logits(x, target, ignore_index, dtype)
    dx = rows.add("out", arrays.output(out, "out", x.shape, x.dtype), field="dx")
    rows.one_stride(args)
    if reduction == "none":
        d_loss = arrays.dense(d_loss, "d_loss", x.shape[:-1], np.float32, optional=False)
    else:
        if np.ndim(d_loss):
            raise arrays.unexpected("d_loss", f"a number, since reduction is {reduction!r}", d_loss)
        kept = int((target != ignore_index).sum()) if reduction == "mean" else 1
        d_loss = np.full(x.shape[:-1], np.float32(float(d_loss) / max(kept, 1)), np.float32)  # type: ignore[arg-type]
    m = arrays.dense(m, "m", x.shape[:-1], np.float32, optional=False)
    others = arrays.dense(others, "others", x.shape[:-1], np.float64, optional=False)
    args.d_loss, args.m_in, args.others_in = arrays.address(d_loss), arrays.address(m), arrays.address(others)
    share("nrg_cross_entropy_backward", args, threads=threads)
    return dx  # type: ignore[no-any-return]
