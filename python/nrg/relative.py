"""Relative positions in attention (nrg/relative.h, nrg/relative_shift.h): Shaw's, Transformer-XL's and XLNet's.

    relative positions    relative_scores  relative_values  (relative_backward)  relative_shift  head_bias"""
from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from . import _arrays as arrays
from ._library import new, planned, share, struct
from ._types import Array, ArrayLike, DType, F32Array, Pair


def _classes(p_min: int, p_max: int) -> int:
    if p_max < p_min:
        raise arrays.unexpected("p_max", f"an integer from p_min = {p_min}", p_max)
    return p_max - p_min + 1


def _strides(array: Array, name: str) -> Tuple[Tuple[int, ...], Any]:
    sizes, (batch, head, row), _ = arrays.four(array, name)
    return sizes, struct("nrg_head_strides", batch=batch, head=head, row=row)


def _table(table: Any, heads: int, dim: Optional[int], p_min: int, p_max: int) -> Tuple[Array, int]:
    """Returns the array [classes, dim] or [heads, classes, dim], and whether it has heads; dim None: any."""
    if dim is None:
        if np.ndim(table) not in (2, 3):
            raise arrays.unexpected("table", "[p_max - p_min + 1, dim], or [heads, …, …]", arrays.as_array(table, "table"))
        dim = np.shape(table)[-1]
    shape: Tuple[int, ...] = (_classes(p_min, p_max), dim)
    array: Array = arrays.dense(table, "table", shape if np.ndim(table) == 2 else (heads, *shape), None, optional=False)
    return array, int(array.ndim == 3)


@planned
def relative_scores(q: ArrayLike, table: ArrayLike, keys: int, p_min: int, p_max: int, *, first_position: Optional[int] = None,
                    scores: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns q_i · table[class(i, j)] for each query i and key j, with class(i, j) = clip(first_position + i - j, p_min, p_max) - p_min.

    Parameters:
    - q: [batch, heads, queries, dim], or the last of these.
    - table: [p_max - p_min + 1, dim], or [heads, …, …] with one per head; q's dtype or float32.
    - keys: the number of keys.
    - p_min, p_max: the least and the greatest distance that has its own row of the table.
    - first_position: the position of query 0; key 0 has position 0. None: keys - queries.
    - scores: [batch, heads, queries, keys]. The call adds the result to it. None: a new array.

    Returns an array [batch, heads, queries, keys].

    >>> q, table = np.array([[2]], np.float32), np.array([[10], [20], [30]], np.float32)
    >>> nrg.relative_scores(q, table, 2, -1, 1)
    array([[60., 40.]], dtype=float32)
    """
    q = arrays.as_array(q, "q")
    (batch, heads, queries), q_strides = _strides(q, "q")
    table, per_head = _table(table, heads, q.shape[-1], p_min, p_max)
    keys, number = arrays.count(keys, "keys"), arrays.number(q, "q", dtype)
    o = arrays.output(scores, "scores", q.shape[:-1] + (keys,), q.dtype)
    args = struct("nrg_relative_args", batch=batch, heads=heads, queries=queries, keys=keys, dim=q.shape[-1], first_position=first_position,
                  p_min=p_min, p_max=p_max, dtype=number, table_dtype=arrays.number_beside(table, "table", dtype, number, "q"),
                  q=arrays.address(q), table=arrays.address(table), scores=arrays.address(o), q_strides=q_strides,
                  scores_strides=_strides(o, "scores")[1], table_per_head=per_head, accumulate=int(scores is not None))
    share("nrg_relative_scores", args, threads=threads)
    return o


@planned
def relative_values(a: ArrayLike, table: ArrayLike, p_min: int, p_max: int, *, first_position: Optional[int] = None,
                    out: Optional[Array] = None, accumulate: bool = False, dtype: DType = None, threads: int = 1) -> Array:
    """Returns Σ_j a_ij table[class(i, j)] for each query i.

    Parameters:
    - a: [batch, heads, queries, keys], or the last of these.
    - table: [p_max - p_min + 1, dim], or [heads, …, …].
    - p_min, p_max, first_position: as in relative_scores().
    - out: the array for the result.
    - accumulate: add to out.

    Returns an array [batch, heads, queries, dim].

    >>> a, table = np.array([[1, 2]], np.float32), np.array([[10], [20], [30]], np.float32)
    >>> nrg.relative_values(a, table, -1, 1)
    array([[70.]], dtype=float32)
    """
    a = arrays.as_array(a, "a")
    (batch, heads, queries), a_strides = _strides(a, "a")
    if accumulate and out is None:
        raise arrays.unexpected("out", "an array with accumulate", None)
    table, per_head = _table(table, heads, None, p_min, p_max)
    dim, number = table.shape[-1], arrays.number(a, "a", dtype)
    o = arrays.output(out, "out", a.shape[:-1] + (dim,), a.dtype)
    args = struct("nrg_relative_args", batch=batch, heads=heads, queries=queries, keys=a.shape[-1], dim=dim, first_position=first_position,
                  p_min=p_min, p_max=p_max, dtype=number, table_dtype=arrays.number_beside(table, "table", dtype, number, "a"),
                  a=arrays.address(a), table=arrays.address(table), o=arrays.address(o), a_strides=a_strides,
                  o_strides=_strides(o, "out")[1], table_per_head=per_head, accumulate=int(accumulate))
    share("nrg_relative_values", args, threads=threads)
    return o


@planned
def relative_backward(a: ArrayLike, q: ArrayLike, p_min: int, p_max: int, *, first_position: Optional[int] = None,
                      table_per_head: bool = False, dtype: DType = None, threads: int = 1) -> F32Array:
    """Returns the gradient of a table: Σ q_i a_ij over the queries and keys of each class. nrg/relative.h specifies a and q.

    Parameters:
    - a: [batch, heads, queries, keys], or the last of these.
    - q: [batch, heads, queries, dim], likewise.
    - p_min, p_max, first_position: as in relative_scores().
    - table_per_head: True returns a table per head.

    Returns float32 [p_max - p_min + 1, dim], or [heads, …, …].

    >>> a, q = np.array([[1, 2]], np.float32), np.array([[3]], np.float32)
    >>> nrg.relative_backward(a, q, -1, 1)
    array([[0.],
           [6.],
           [3.]], dtype=float32)
    """
    a, q = arrays.as_array(a, "a"), arrays.as_array(q, "q")
    (batch, heads, queries), a_strides = _strides(a, "a")
    if q.ndim == 0 or q.shape[-1] == 0 or a.dtype != q.dtype or a.shape[:-1] != q.shape[:-1]:
        raise arrays.unexpected("q", f"{a.dtype.name} {arrays.sizes(*a.shape[:-1], 'dim')}, since a is {arrays.described(a)}", q)
    shape = (_classes(p_min, p_max), q.shape[-1])
    d_table = new((heads, *shape) if table_per_head else shape, np.float32)
    args = struct("nrg_relative_args", batch=batch, heads=heads, queries=queries, keys=a.shape[-1], dim=q.shape[-1],
                  first_position=first_position, p_min=p_min, p_max=p_max, dtype=arrays.number(a, "a", dtype), a=arrays.address(a),
                  q=arrays.address(q), d_table=arrays.address(d_table), a_strides=a_strides, q_strides=_strides(q, "q")[1],
                  table_per_head=int(bool(table_per_head)))
    share("nrg_relative_backward", args, threads=threads)
    return d_table


@planned
def relative_shift(x: ArrayLike, keys: int, shift: int, *, scores: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Moves scores by distance to the keys at those distances: scores[…, i, j] (+)= x[…, i, j - i + shift].

    Parameters:
    - x: [batch, heads, queries, distances], or the last of these.
    - keys: the number of keys.
    - shift: queries - 1 in Transformer-XL, queries in XLNet.
    - scores: [batch, heads, queries, keys]. The call adds the result to it. None: a new array.

    Returns an array [batch, heads, queries, keys].

    >>> nrg.relative_shift(np.array([[1, 2, 3], [4, 5, 6]], np.float32), 2, 1)
    array([[2., 3.],
           [4., 5.]], dtype=float32)
    """
    x = arrays.as_array(x, "x")
    (batch, heads, queries), x_strides = _strides(x, "x")
    o = arrays.output(scores, "scores", x.shape[:-1] + (arrays.count(keys, "keys"),), x.dtype)
    args = struct("nrg_relative_shift_args", batch=batch, heads=heads, queries=queries, keys=keys, rel=x.shape[-1], shift=shift,
                  dtype=arrays.number(x, "x", dtype), x=arrays.address(x), scores=arrays.address(o), x_strides=x_strides,
                  scores_strides=_strides(o, "scores")[1], accumulate=int(scores is not None))
    share("nrg_relative_shift_forward", args, threads=threads)
    return o


@planned
def relative_shift_backward(d_scores: ArrayLike, rel: int, shift: int, *, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of relative_shift().

    Parameters:
    - d_scores: [batch, heads, queries, keys], or the last of these.
    - rel: the number of distances.
    - shift: as in relative_shift().

    Returns an array [batch, heads, queries, rel].

    >>> nrg.relative_shift_backward(np.array([[2, 3], [4, 5]], np.float32), 3, 1)
    array([[0., 2., 3.],
           [4., 5., 0.]], dtype=float32)
    """
    d = arrays.as_array(d_scores, "d_scores")
    (batch, heads, queries), strides = _strides(d, "d_scores")
    dx = new(d.shape[:-1] + (arrays.count(rel, "rel"),), d.dtype)
    args = struct("nrg_relative_shift_args", batch=batch, heads=heads, queries=queries, keys=d.shape[-1], rel=rel, shift=shift,
                  dtype=arrays.number(d, "d_scores", dtype), d_scores=arrays.address(d), dx=arrays.address(dx), d_scores_strides=strides,
                  dx_strides=_strides(dx, "dx")[1])
    share("nrg_relative_shift_backward", args, threads=threads)
    return dx


@planned
def head_bias(q: ArrayLike, u: ArrayLike, v: ArrayLike, *, out: Optional[Pair] = None, dtype: DType = None,
              threads: int = 1) -> Tuple[Array, Array]:
    """Returns (q + u, q + v), the two biased queries of Transformer-XL, in one pass.

    Parameters:
    - q: [batch, heads, rows, dim], or the last of these, with any strides.
    - u, v: [heads, dim], of q's dtype or float32.
    - out: two arrays like q.

    Returns two arrays like q.

    >>> q, u, v = np.zeros((1, 1, 2), np.float32), np.ones((1, 2), np.float32), np.full((1, 2), 2, np.float32)
    >>> nrg.head_bias(q, u, v)
    (array([[[1., 1.]]], dtype=float32), array([[[2., 2.]]], dtype=float32))
    """
    q = arrays.as_array(q, "q")
    (batch, heads, rows), q_strides = _strides(q, "q")
    dim = q.shape[-1]
    results = [arrays.output(each, "out", q.shape, q.dtype) for each in arrays.pair(out)]
    u, v = (arrays.dense(bias, name, (heads, dim), None, optional=False) for bias, name in ((u, "u"), (v, "v")))
    number = arrays.number(q, "q", dtype)
    bias_dtype = arrays.number_of_vectors({"u": u, "v": v}, dtype, number, "q")  # type: ignore[dict-item]
    if dim:
        args = struct("nrg_head_bias_args", batch=batch, heads=heads, rows=rows, dim=dim, dtype=number, bias_dtype=bias_dtype,
                      q=arrays.address(q), u=arrays.address(u), v=arrays.address(v),
                      o_u=arrays.address(results[0]), o_v=arrays.address(results[1]), q_strides=q_strides,
                      o_u_strides=_strides(results[0], "out")[1], o_v_strides=_strides(results[1], "out")[1])
        share("nrg_head_bias_forward", args, threads=threads)
    return results[0], results[1]


@planned
def head_bias_backward(d_o_u: ArrayLike, d_o_v: ArrayLike, *, dtype: DType = None, threads: int = 1) -> Tuple[Array, F32Array, F32Array]:
    """Returns the gradients of head_bias().

    Parameters:
    - d_o_u, d_o_v: [batch, heads, rows, dim], or the last of these: the gradients of the two results.

    Returns (dq like d_o_u, du float32 [heads, dim], dv float32 [heads, dim]).

    >>> d = np.ones((1, 3, 2), np.float32)
    >>> dq, du, dv = nrg.head_bias_backward(d, d)
    >>> du
    array([[3., 3.]], dtype=float32)
    """
    d_o_u = arrays.as_array(d_o_u, "d_o_u")
    d_o_v = arrays.like(d_o_v, "d_o_v", d_o_u, "d_o_u")
    (batch, heads, rows), strides = _strides(d_o_u, "d_o_u")
    dim = d_o_u.shape[-1]
    dq, du, dv = new(d_o_u.shape, d_o_u.dtype), new((heads, dim), np.float32), new((heads, dim), np.float32)
    args = struct("nrg_head_bias_args", batch=batch, heads=heads, rows=rows, dim=dim, dtype=arrays.number(d_o_u, "d_o_u", dtype),
                  d_o_u=arrays.address(d_o_u), d_o_v=arrays.address(d_o_v), dq=arrays.address(dq), du=arrays.address(du),
                  dv=arrays.address(dv), d_o_u_strides=strides, d_o_v_strides=_strides(d_o_v, "d_o_v")[1],
                  dq_strides=_strides(dq, "dq")[1])
    if dim:
        share("nrg_head_bias_backward", args, threads=threads)
    return dq, du, dv
