"""Relative positions in attention (nrg/relative.h, nrg/relative_shift.h): Shaw's, and Transformer-XL's and XLNet's."""
import numpy as np

from . import _arrays as arrays
from ._library import share, struct


def _classes(p_min, p_max):
    if p_max < p_min:
        raise arrays.unexpected("p_max", f"an integer from p_min = {p_min}", p_max)
    return p_max - p_min + 1


def _strides(array, name):
    sizes, (batch, head, row), _ = arrays.four(array, name)
    return sizes, struct("nrg_head_strides", batch=batch, head=head, row=row)


def _table(table, heads, dim, p_min, p_max):
    """Fields of [classes, dim] or [heads, classes, dim]; dim None: any."""
    if dim is None:
        if np.ndim(table) not in (2, 3):
            raise arrays.unexpected("table", "[p_max - p_min + 1, dim], or [heads, …, …]", arrays.as_array(table, "table"))
        dim = np.shape(table)[-1]
    shape = (_classes(p_min, p_max), dim)
    table = arrays.dense(table, "table", shape if np.ndim(table) == 2 else (heads, *shape), None)
    return table, int(table.ndim == 3)


def relative_scores(q, table, keys, p_min, p_max, *, first_position=None, scores=None, dtype=None, threads=1):
    """q_i · table[class(i, j)] for every query and key; class is clip(first_position + i - j, p_min, p_max) - p_min.

    q       [batch, heads, queries, dim], or the last of these
    table   [p_max - p_min + 1, dim], or [heads, …, …] with one for each head; q's dtype or float32
    first_position  position of query 0, where that of key 0 is 0; None: keys - queries
    scores  [batch, heads, queries, keys], which it is added to, in place; None: a new array

    Returns [batch, heads, queries, keys].
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


def relative_values(a, table, p_min, p_max, *, first_position=None, out=None, accumulate=False, dtype=None, threads=1):
    """Σ_j a_ij table[class(i, j)] for every query.

    a      [batch, heads, queries, keys], or the last of these
    table  [p_max - p_min + 1, dim], or [heads, …, …]
    out    [batch, heads, queries, dim]; with accumulate it is added to

    Returns [batch, heads, queries, dim].
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


def relative_backward(a, q, p_min, p_max, *, first_position=None, table_per_head=False, dtype=None, threads=1):
    """The gradient of a table: Σ q_i a_ij over the queries and keys of each class (nrg/relative.h says which a and q).

    a  [batch, heads, queries, keys], or the last of these
    q  [batch, heads, queries, dim], likewise

    Returns float32 [p_max - p_min + 1, dim], or with table_per_head [heads, …, …].
    """
    a, q = arrays.as_array(a, "a"), arrays.as_array(q, "q")
    (batch, heads, queries), a_strides = _strides(a, "a")
    if q.ndim == 0 or q.shape[-1] == 0 or a.dtype != q.dtype or a.shape[:-1] != q.shape[:-1]:
        raise arrays.unexpected("q", f"{a.dtype.name} {[*a.shape[:-1], 'dim']} beside a", q)
    shape = (_classes(p_min, p_max), q.shape[-1])
    d_table = np.empty((heads, *shape) if table_per_head else shape, np.float32)
    args = struct("nrg_relative_args", batch=batch, heads=heads, queries=queries, keys=a.shape[-1], dim=q.shape[-1],
                  first_position=first_position, p_min=p_min, p_max=p_max, dtype=arrays.number(a, "a", dtype), a=arrays.address(a),
                  q=arrays.address(q), d_table=arrays.address(d_table), a_strides=a_strides, q_strides=_strides(q, "q")[1],
                  table_per_head=int(bool(table_per_head)))
    share("nrg_relative_backward", args, threads=threads)
    return d_table


def relative_shift(x, keys, shift, *, scores=None, dtype=None, threads=1):
    """scores[…, i, j] (+)= x[…, i, j - i + shift]: scores by distance, to the keys at those distances.

    x       [batch, heads, queries, rel], or the last of these
    shift   queries - 1 of Transformer-XL, queries of XLNet
    scores  [batch, heads, queries, keys], which it is added to, in place; None: a new array

    Returns [batch, heads, queries, keys].
    """
    x = arrays.as_array(x, "x")
    (batch, heads, queries), x_strides = _strides(x, "x")
    o = arrays.output(scores, "scores", x.shape[:-1] + (arrays.count(keys, "keys"),), x.dtype)
    args = struct("nrg_relative_shift_args", batch=batch, heads=heads, queries=queries, keys=keys, rel=x.shape[-1], shift=shift,
                  dtype=arrays.number(x, "x", dtype), x=arrays.address(x), scores=arrays.address(o), x_strides=x_strides,
                  scores_strides=_strides(o, "scores")[1], accumulate=int(scores is not None))
    share("nrg_relative_shift_forward", args, threads=threads)
    return o


def relative_shift_backward(d_scores, rel, shift, *, dtype=None, threads=1):
    """The gradient of relative_shift()'s x.

    d_scores [batch, heads, queries, keys], or the last of these  ->  [batch, heads, queries, rel]
    """
    d = arrays.as_array(d_scores, "d_scores")
    (batch, heads, queries), strides = _strides(d, "d_scores")
    dx = np.empty(d.shape[:-1] + (arrays.count(rel, "rel"),), d.dtype)
    args = struct("nrg_relative_shift_args", batch=batch, heads=heads, queries=queries, keys=d.shape[-1], rel=rel, shift=shift,
                  dtype=arrays.number(d, "d_scores", dtype), d_scores=arrays.address(d), dx=arrays.address(dx), d_scores_strides=strides,
                  dx_strides=_strides(dx, "dx")[1])
    share("nrg_relative_shift_backward", args, threads=threads)
    return dx


def head_bias(q, u, v, *, out=None, dtype=None, threads=1):
    """(q + u, q + v): the two biases of Transformer-XL's query, in one pass.

    q     [batch, heads, rows, dim], or the last of these; any strides
    u, v  [heads, dim], of q's dtype or float32
    out   two arrays like q

    Returns two arrays like q.
    """
    q = arrays.as_array(q, "q")
    (batch, heads, rows), q_strides = _strides(q, "q")
    dim = q.shape[-1]
    if dim == 0:
        raise arrays.unexpected("q", "[..., dim] with one element or more in a row", q)
    u, v = (arrays.dense(bias, name, (heads, dim), None, optional=False) for bias, name in ((u, "u"), (v, "v")))
    number = arrays.number(q, "q", dtype)
    bias_dtype = arrays.number_of_vectors({"u": u, "v": v}, dtype, number, "q")
    results = tuple(arrays.output(each, "out", q.shape, q.dtype) for each in arrays.pair(out))
    args = struct("nrg_head_bias_args", batch=batch, heads=heads, rows=rows, dim=dim, dtype=number, bias_dtype=bias_dtype, q=arrays.address(q), u=arrays.address(u), v=arrays.address(v),
                  o_u=arrays.address(results[0]), o_v=arrays.address(results[1]), q_strides=q_strides,
                  o_u_strides=_strides(results[0], "out")[1], o_v_strides=_strides(results[1], "out")[1])
    share("nrg_head_bias_forward", args, threads=threads)
    return results


def head_bias_backward(d_o_u, d_o_v, *, dtype=None, threads=1):
    """The gradients of head_bias().

    d_o_u, d_o_v  [batch, heads, rows, dim], or the last of these

    Returns (dq like them, du float32 [heads, dim], dv float32 [heads, dim]).
    """
    d_o_u = arrays.as_array(d_o_u, "d_o_u")
    d_o_v = arrays.like(d_o_v, "d_o_v", d_o_u, "d_o_u")
    (batch, heads, rows), strides = _strides(d_o_u, "d_o_u")
    dim = d_o_u.shape[-1]
    dq, du, dv = np.empty(d_o_u.shape, d_o_u.dtype), np.empty((heads, dim), np.float32), np.empty((heads, dim), np.float32)
    args = struct("nrg_head_bias_args", batch=batch, heads=heads, rows=rows, dim=dim, dtype=arrays.number(d_o_u, "d_o_u", dtype),
                  d_o_u=arrays.address(d_o_u), d_o_v=arrays.address(d_o_v), dq=arrays.address(dq), du=arrays.address(du),
                  dv=arrays.address(dv), d_o_u_strides=strides, d_o_v_strides=_strides(d_o_v, "d_o_v")[1],
                  dq_strides=_strides(dq, "dq")[1])
    share("nrg_head_bias_backward", args, threads=threads)
    return dq, du, dv
