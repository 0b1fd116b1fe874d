"""Positions that are added or looked up: sinusoids (nrg/sinusoidal.h), embeddings (nrg/embed.h), biases of scores by distance
(nrg/score_bias.h), positions by recursion (nrg/recurrent.h).

    embed, add positions  embedding  embed (no backward)  sinusoidal (no backward)  recurrent_positions
    bias scores           alibi_slopes  alibi_diagonals  t5_bucket (no backward)  t5_diagonals  score_bias"""
from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Literal, Optional, Tuple, Union

import numpy as np

from . import _arrays as arrays
from ._library import CONSTANTS, Error, call, enum, function, new, planned, share, struct
from ._types import Array, ArrayLike, DType, F32Array, F64Array, Store


# ---- sinusoids ----

def sinusoidal(positions: Union[int, ArrayLike], dim: int, *, base: float = 10000.0,
               layout: Literal["interleaved", "concatenated", "cosines_first"] = "interleaved",
               spread: Literal["below_base", "to_base"] = "below_base", first_position: int = 0, dtype: DType = None,
               out: Optional[Array] = None, threads: int = 1) -> Array:
    """Returns the sinusoidal table of Vaswani et al., p[k, 2i] = sin(k · base^(-2i/dim)), or a variant of it.

    Parameters:
    - positions: the number of rows, or integers [rows].
    - dim: the elements of a row.
    - base: of the frequencies.
    - layout: "interleaved": sin, cos, sin, cos. "concatenated": sines, then cosines. "cosines_first": cosines, then sines.
    - spread: "below_base": the paper's exponents. "to_base": exponents from 0 to 1 (tensor2tensor, fairseq, Whisper).
    - first_position: the position of the first row, if positions is a number.
    - dtype: "f32", "f16" or "bf16", the dtype of the result. None: that of out, or float32.
    - out: the array for the result, [rows, dim].

    Returns an array [rows, dim].

    >>> nrg.sinusoidal(2, 2).round(4)
    array([[0.    , 1.    ],
           [0.8415, 0.5403]], dtype=float32)
    """
    rows, given = arrays.counted(positions, "positions")
    if given is not None and first_position:
        raise arrays.unexpected("first_position", "0, since positions is an array", first_position)
    dim = arrays.count(dim, "dim", 1)
    spec = struct("nrg_sinusoidal_spec", dim=dim, base=base, spread=enum("nrg_sinusoidal_spread", spread, "NRG_SINUSOIDAL_", "spread"),
                  layout=enum("nrg_sinusoidal_layout", layout, "NRG_SINUSOIDAL_", "layout"))
    frequencies = np.empty((2, max((dim + 1) // 2, 1)), np.float64)
    call("nrg_sinusoidal_frequencies", spec, arrays.address(frequencies))
    table = arrays.result(out, (rows, dim), dtype)
    lines = arrays.Rows((rows,))
    lines.add("out", table, field="table")
    dimensions = lines.dimensions()
    args = struct("nrg_sinusoidal_args", rows=rows, dtype=arrays.number(table, "out", dtype), first_position=first_position,
                  frequencies=arrays.address(frequencies), positions=arrays.address(given), table=arrays.address(table),
                  table_stride=dimensions[0][1]["table"] if dimensions else 0)
    share("nrg_sinusoidal_table", spec, args, threads=threads)
    return table


# ---- embeddings ----

class Term:
    """A term of embed(): rows of a table, selected by ids or by counting, times a scale.

    Parameters:
    - table: [rows, dim].
    - ids: integers [tokens], or with a period [period]. None: first, first + 1, …
    - first: the row of the first token, without ids.
    - scale: multiplies the rows. None: 1.
    - period: the number of tokens after which ids, or the count, start again. 0: never.

    >>> table = np.array([[1], [2], [3]], np.float32)
    >>> nrg.embed([nrg.Term(table, [2, 0]), nrg.Term(table, first=1)])
    array([[5.],
           [4.]], dtype=float32)
    """

    def __init__(self, table: ArrayLike, ids: Optional[ArrayLike] = None, *, first: int = 0, scale: Optional[float] = None,
                 period: int = 0) -> None:
        self.table, self.first, self.scale, self.period = arrays.as_array(table, "table"), first, scale, period
        if self.table.ndim != 2:
            raise arrays.unexpected("table", "[rows, dim]", self.table)
        self.ids: Any = None if ids is None else arrays.integers(ids, "ids", (np.size(ids),))

    def _fields(self, tokens: int) -> Dict[str, Any]:
        if self.ids is not None:
            arrays.dense(self.ids, "ids", (min(self.period, tokens),) if self.period else (tokens,), np.int32)
        return {"rows": self.table.shape[0], "ids": arrays.address(self.ids), "first_position": self.first, "scale": self.scale,
                "period": self.period or None}


def embed(terms: Union[Term, List[Term], Tuple[Term, ...]], *, x: Optional[ArrayLike] = None, tokens: Optional[int] = None,
          out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Adds up to three tables for each token: x + A[a] + B[b] + C[c].

    Parameters:
    - terms: one Term or several.
    - x: [tokens, dim].
    - tokens: the number of tokens, if neither x nor ids determine it.
    - out: the array for the result, [tokens, dim]. It may be x.

    Returns an array [tokens, dim], of x's dtype, or the tables'.

    >>> table = np.array([[1], [2], [3]], np.float32)
    >>> nrg.embed(nrg.Term(table, [2, 0]), x=np.zeros((2, 1), np.float32))
    array([[3.],
           [1.]], dtype=float32)
    """
    terms = [terms] if isinstance(terms, Term) else list(terms)
    if not 1 <= len(terms) <= CONSTANTS["NRG_EMBED_TABLES"]:
        raise ValueError(f"terms: expected 1 to {CONSTANTS['NRG_EMBED_TABLES']}, got {len(terms)}")
    given = None if x is None else arrays.as_array(x, "x")
    table = terms[0].table
    kind, dim = table.dtype if given is None else given.dtype, table.shape[1]
    if given is not None and given.ndim != 2:
        raise arrays.unexpected("x", f"[tokens, {dim}]", given)
    if tokens is None:
        known = [len(t.ids) for t in terms if t.ids is not None and not t.period] if given is None else [given.shape[0]]
        if not known:
            raise arrays.unexpected("tokens", "a number, since neither x nor ids have one", None)
        tokens = known[0]
    tokens = arrays.count(tokens, "tokens")
    if given is not None and given.shape != (tokens, dim):
        raise arrays.unexpected("x", [tokens, dim], given)
    for term in terms[1:]:
        if term.table.dtype != table.dtype or term.table.shape[1] != dim:
            raise arrays.unexpected("table", f"{table.dtype.name} [rows, {dim}] like the first one", term.table)
    o = arrays.output(out, "out", (tokens, dim), kind)
    number = arrays.number(o, "table" if given is None else "x", dtype)
    args = struct("nrg_embed_args", rows=tokens, dim=dim, dtype=number, table_dtype=arrays.number_beside(table, "table", dtype, number, "x"),
                  x=arrays.address(given), o=arrays.address(o), o_stride=arrays.row_stride(o, "out"),
                  x_stride=0 if given is None else arrays.row_stride(given, "x"))
    tables = [struct("nrg_embed_table", table=arrays.address(term.table), table_stride=arrays.row_stride(term.table, "table"), **term._fields(tokens))
              for term in terms]
    array = (type(tables[0]) * len(tables))(*tables)
    args.tables, args.table_count = ctypes.addressof(array), len(tables)
    share("nrg_embed_forward", args, threads=threads)
    return o


def embedding(ids: ArrayLike, weight: ArrayLike, *, scale: Optional[float] = None, out: Optional[Array] = None, dtype: DType = None,
              threads: int = 1) -> Array:
    """Returns the rows of a table with these ids. As torch.nn.functional.embedding.

    Parameters:
    - ids: integers [...].
    - weight: the table, [rows, dim].
    - scale: multiplies the rows. None: 1.
    - out: the array for the result.

    Returns an array [..., dim].

    >>> weight = np.array([[1, 2], [3, 4]], np.float32)
    >>> nrg.embedding([[1], [0]], weight)
    array([[[3., 4.]],
    <BLANKLINE>
           [[1., 2.]]], dtype=float32)
    """
    table = arrays.as_array(weight, "weight")
    if table.ndim != 2:
        raise arrays.unexpected("weight", "[rows, dim]", table)
    numbers = arrays.integers(ids, "ids", np.shape(ids) if ids is not None else (), optional=False)
    o = arrays.output(out, "out", numbers.shape + table.shape[1:], table.dtype)
    number = arrays.number(table, "weight", dtype)
    rows = arrays.Rows(numbers.shape)
    rows.add("out", o, field="o")
    dimensions = rows.dimensions()
    if len(dimensions) > 1:
        raise arrays.unexpected("out", f"rows with one common stride ({arrays.COPY})", o)
    args = struct("nrg_embed_args", rows=numbers.size, dim=table.shape[1], dtype=number, table_dtype=number, o=arrays.address(o),
                  o_stride=dimensions[0][1]["o"] if dimensions else 0)
    term = struct("nrg_embed_table", table=arrays.address(table), table_stride=arrays.row_stride(table, "weight"), rows=table.shape[0],
                  ids=arrays.address(numbers), scale=scale)
    args.tables, args.table_count = ctypes.addressof(term), 1
    try:
        share("nrg_embed_forward", args, threads=threads)
    except Error as error:
        raise arrays.explained(error, "ids", numbers, table.shape[0]) from None
    return o


def embedding_backward(d_o: ArrayLike, ids: ArrayLike, num_embeddings: int, *, scale: Optional[float] = None, out: Optional[Array] = None,
                       accumulate: bool = False, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of embedding()'s table: row k is scale · Σ d_o[t] over the tokens t with id k.

    Parameters:
    - d_o: [..., dim].
    - ids: integers [...].
    - num_embeddings: the number of rows of the table.
    - scale: as in embedding().
    - out: the array for the result, of d_o's dtype or float32.
    - accumulate: add to out.

    Returns an array [num_embeddings, dim], float32 if out is None.

    >>> nrg.embedding_backward(np.array([[1], [2], [3]], np.float32), [1, 0, 1], 2)
    array([[2.],
           [4.]], dtype=float32)
    """
    d_o = arrays.as_array(d_o, "d_o")
    if d_o.ndim == 0:
        raise arrays.unexpected("d_o", "[..., dim]", d_o)
    if accumulate and out is None:
        raise arrays.unexpected("out", "an array with accumulate", None)
    dim = d_o.shape[-1]
    rows = arrays.count(num_embeddings, "num_embeddings")
    ids = arrays.integers(ids, "ids", d_o.shape[:-1], optional=False)
    number = arrays.number(d_o, "d_o", dtype)
    table = arrays.output(out, "out", (rows, dim), np.float32 if out is None else out.dtype)
    gradients = arrays.Rows(d_o.shape[:-1])
    gradients.add("d_o", d_o)
    args = struct("nrg_embed_backward_args", dim=dim, dtype=number, table_dtype=arrays.number_beside(table, "out", dtype, number, "d_o"))
    gradients.one_stride(args)
    gradient = struct("nrg_embed_gradient", d_table=arrays.address(table), d_table_stride=arrays.row_stride(table, "out"), rows=rows,
                      ids=arrays.address(ids), scale=scale, accumulate=int(bool(accumulate)))
    args.tables, args.table_count = ctypes.addressof(gradient), 1
    size = ctypes.c_size_t()
    call("nrg_embed_backward_workspace", args, ctypes.addressof(size))
    memory = arrays.workspace(size.value)
    args.workspace, args.workspace_size = arrays.address(memory), size.value
    call("nrg_embed_backward_order", args)
    share("nrg_embed_backward", args, threads=threads)
    return table


# ---- biases of scores ----

def alibi_slopes(heads: int, max_bias: float = 8.0) -> F32Array:
    """Returns ALiBi's slopes.

    Parameters:
    - heads: the number of heads.
    - max_bias: the slopes are 2^(-max_bias · i / heads) for a power of two.

    Returns float32 [heads].

    >>> nrg.alibi_slopes(2)
    array([0.0625    , 0.00390625], dtype=float32)
    """
    heads = arrays.count(heads, "heads")
    slopes = np.empty(heads, np.float32)
    call("nrg_alibi_slopes", heads, max_bias, arrays.address(slopes))
    return slopes


def _bias_spec(heads: int, queries: int, keys: int, first_position: Optional[int], causal: bool, bidirectional: bool, buckets: int,
               max_distance: int) -> Any:
    """Returns the spec of T5, or of ALiBi if the last three are 0."""
    return struct("nrg_score_bias_spec", heads=heads, queries=queries, keys=keys, first_position=first_position, causal=int(bool(causal)),
                  bidirectional=int(bool(bidirectional)), buckets=buckets, max_distance=max_distance)


def _diagonals(heads: int, queries: int, keys: int) -> Tuple[int, int]:
    queries, keys = arrays.count(queries, "queries"), arrays.count(keys, "keys")
    return (heads, queries + keys - 1 if queries and keys else 0)


def alibi_diagonals(slopes: ArrayLike, queries: int, keys: int, *, first_position: Optional[int] = None, causal: bool = False,
                    threads: int = 1) -> F32Array:
    """Returns ALiBi's biases, one per head and distance of key and query, for score_bias() and softmax().

    Parameters:
    - slopes: float32 [heads].
    - queries, keys: the numbers of queries and keys.
    - first_position: the position of query 0; key 0 has position 0. None: keys - queries.
    - causal: -inf for keys after the query.

    Returns float32 [heads, queries + keys - 1].

    >>> nrg.alibi_diagonals(np.array([0.5], np.float32), 2, 2)
    array([[-0.5, -0. , -0.5]], dtype=float32)
    """
    slopes = arrays.as_array(slopes, "slopes")
    slopes = arrays.dense(slopes, "slopes", (slopes.size,), np.float32)
    diagonals = np.empty(_diagonals(slopes.size, queries, keys), np.float32)  # type: ignore[union-attr]
    spec = _bias_spec(diagonals.shape[0], queries, keys, first_position, causal, False, 0, 0)
    share("nrg_alibi_diagonals", spec, arrays.address(slopes), arrays.address(diagonals), 0, threads=threads)
    return diagonals


def t5_bucket(distance: int, *, bidirectional: bool = True, buckets: int = 32, max_distance: int = 128) -> int:
    """Returns T5's bucket of a distance.

    Parameters:
    - distance: the position of the key minus that of the query.
    - bidirectional, buckets, max_distance: as in t5_diagonals().

    Returns an int; -1 if buckets or max_distance is out of range.

    >>> nrg.t5_bucket(-3), nrg.t5_bucket(3)
    (3, 19)
    """
    return int(function("nrg_t5_bucket")(distance, int(bool(bidirectional)), buckets, max_distance))


def t5_diagonals(table: ArrayLike, queries: int, keys: int, *, first_position: Optional[int] = None, causal: bool = False,
                 bidirectional: bool = True, max_distance: int = 128, dtype: DType = None, threads: int = 1) -> F32Array:
    """Returns T5's biases, one per head and distance of key and query, for score_bias() and softmax().

    Parameters:
    - table: [buckets, heads], the model's biases.
    - queries, keys, first_position, causal: as in alibi_diagonals().
    - bidirectional: half of the buckets are for keys after the query.
    - max_distance: the distance from which all share one bucket.

    Returns float32 [heads, queries + keys - 1].

    >>> table = np.arange(32, dtype=np.float32).reshape(32, 1)
    >>> nrg.t5_diagonals(table, 2, 2)
    array([[ 1.,  0., 17.]], dtype=float32)
    """
    table = arrays.as_array(table, "table")
    if table.ndim != 2 or table.size == 0:
        raise arrays.unexpected("table", "[buckets, heads], one or more of each", table)
    buckets, heads = table.shape
    diagonals = np.empty(_diagonals(heads, queries, keys), np.float32)
    spec = _bias_spec(heads, queries, keys, first_position, causal, bidirectional, buckets, max_distance)
    share("nrg_t5_diagonals_forward", spec, arrays.number(table, "table", dtype), arrays.address(table), arrays.row_stride(table, "table"),
          arrays.address(diagonals), 0, threads=threads)
    return diagonals


def t5_diagonals_backward(d_diagonals: ArrayLike, queries: int, keys: int, buckets: int = 32, *, first_position: Optional[int] = None,
                          causal: bool = False, bidirectional: bool = True, max_distance: int = 128, threads: int = 1) -> F32Array:
    """Returns the gradient of T5's table.

    Parameters:
    - d_diagonals: float64 [heads, queries + keys - 1], from score_bias_backward().
    - buckets: the rows of the table.
    - the others: as in t5_diagonals().

    Returns float32 [buckets, heads].

    >>> nrg.t5_diagonals_backward(np.array([[1.0, 2.0, 3.0]]), 2, 2)[:2]
    array([[2.],
           [1.]], dtype=float32)
    """
    d_diagonals = arrays.as_array(d_diagonals, "d_diagonals")
    if d_diagonals.ndim != 2:
        raise arrays.unexpected("d_diagonals", "float64 [heads, queries + keys - 1]", d_diagonals)
    heads, buckets = d_diagonals.shape[0], arrays.count(buckets, "buckets", 1)
    d_diagonals = arrays.dense(d_diagonals, "d_diagonals", _diagonals(heads, queries, keys), np.float64)
    d_table = np.empty((buckets, heads), np.float32)
    spec = _bias_spec(heads, queries, keys, first_position, causal, bidirectional, buckets, max_distance)
    share("nrg_t5_diagonals_backward", spec, arrays.address(d_diagonals), 0, arrays.address(d_table), 0, 0,
          threads=threads)
    return d_table


@planned
def score_bias(scores: ArrayLike, diagonals: ArrayLike, *, scale: Optional[float] = None, store: Store = "auto",
               out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns scores · scale, plus the bias of each distance.

    Parameters:
    - scores: [batch, heads, queries, keys], or the last of these.
    - diagonals: float32 [heads, queries + keys - 1], from alibi_diagonals() or t5_diagonals().
    - scale: multiplies the scores. None: 1.
    - store: "auto", "keep" or "stream", a hint for the cache.
    - out: the array for the result. It may be scores.

    Returns an array like scores.

    >>> diagonals = nrg.alibi_diagonals(np.array([0.5], np.float32), 2, 2)
    >>> nrg.score_bias(np.zeros((2, 2), np.float32), diagonals)
    array([[ 0. , -0.5],
           [-0.5,  0. ]], dtype=float32)
    """
    scores = arrays.as_array(scores, "scores")
    (batch, heads, queries), _, _ = arrays.four(scores, "scores")
    keys = scores.shape[-1]
    diagonals = arrays.dense(diagonals, "diagonals", _diagonals(heads, queries, keys), np.float32, optional=False)
    o = arrays.output(out, "out", scores.shape, scores.dtype)
    args = struct("nrg_score_bias_args", batch=batch, heads=heads, queries=queries, keys=keys, dtype=arrays.number(scores, "scores", dtype),
                  store=enum("nrg_store", store, "NRG_STORE_", "store"), diagonals=arrays.address(diagonals),
                  scale=scale)
    arrays.fill_four(args, "scores", scores)
    arrays.fill_four(args, "o", o, "out")
    share("nrg_score_bias_forward", args, threads=threads)
    return o


@planned
def score_bias_backward(d_o: ArrayLike, *, out: Optional[Array] = None, accumulate: bool = False, dtype: DType = None,
                        threads: int = 1) -> F64Array:
    """Returns the gradient of the diagonals of score_bias(): the sum of d_o along each.

    Parameters:
    - d_o: [batch, heads, queries, keys], or the last of these.
    - out: the array for the result.
    - accumulate: add to out.

    Returns float64 [heads, queries + keys - 1].

    >>> nrg.score_bias_backward(np.array([[1, 2], [3, 4]], np.float32))
    array([[3., 5., 2.]])
    """
    d_o = arrays.as_array(d_o, "d_o")
    (batch, heads, queries), _, _ = arrays.four(d_o, "d_o")
    keys = d_o.shape[-1]
    if accumulate and out is None:
        raise arrays.unexpected("out", "an array with accumulate", None)
    shape = _diagonals(heads, queries, keys)
    sums: F64Array = arrays.dense(arrays.output(out, "out", shape, np.float64), "out", shape, None)
    args = struct("nrg_score_bias_backward_args", batch=batch, heads=heads, queries=queries, keys=keys,
                  dtype=arrays.number(d_o, "d_o", dtype), accumulate=int(bool(accumulate)), d_diagonals=arrays.address(sums))
    arrays.fill_four(args, "d_o", d_o)
    share("nrg_score_bias_backward", args, threads=threads)
    return sums


# ---- by recursion ----

@planned
def recurrent_positions(w: ArrayLike, p0: ArrayLike, positions: int, *, b: Optional[ArrayLike] = None, out: Optional[Array] = None,
                        dtype: DType = None, threads: int = 1) -> Array:
    """Returns p_k = tanh(W p_(k-1) + b) for k = 1 … positions, of one or several chains.

    Parameters:
    - w: [dim, dim].
    - p0: [chains, dim] or [dim].
    - positions: the number of steps.
    - b: [dim], of w's dtype.
    - out: the array for the result.

    Returns an array [chains, positions, dim] or [positions, dim], of p0's dtype.

    >>> nrg.recurrent_positions(np.ones((1, 1), np.float32), np.ones(1, np.float32), 2).round(4)
    array([[0.7616],
           [0.642 ]], dtype=float32)
    """
    w, p0 = arrays.as_array(w, "w"), arrays.as_array(p0, "p0")
    if p0.ndim not in (1, 2) or p0.shape[-1] == 0:
        raise arrays.unexpected("p0", "[dim] or [chains, dim] with one element or more", p0)
    dim, positions = p0.shape[-1], arrays.count(positions, "positions")
    number = arrays.number(p0, "p0", dtype)
    matrix: Array = arrays.dense(w, "w", (dim, dim), None)
    bias = arrays.dense(b, "b", (dim,), matrix.dtype)
    first: Array = arrays.dense(p0, "p0", p0.shape, None)
    p: Array = arrays.output(out, "out", first.shape[:-1] + (positions, dim), first.dtype)
    p = arrays.dense(p, "out", p.shape, None)
    args = struct("nrg_recurrent_args", dim=dim, positions=positions, chains=first.shape[0] if first.ndim == 2 else 1, dtype=number,
                  w_dtype=arrays.number_beside(matrix, "w", dtype, number, "p0"), w=arrays.address(matrix), b=arrays.address(bias),
                  p0=arrays.address(first), p=arrays.address(p))
    share("nrg_recurrent_forward", args, threads=threads)
    return p


@planned
def recurrent_positions_backward(dp: ArrayLike, p: ArrayLike, w: ArrayLike, p0: ArrayLike, *, dtype: DType = None,
                                 threads: int = 1) -> Tuple[F32Array, F32Array, F32Array]:
    """Returns the gradients of recurrent_positions().

    Parameters:
    - dp, p: [chains, positions, dim] or [positions, dim]: the gradient of the result, and the result.
    - w, p0: as in recurrent_positions().

    Returns (dw [dim, dim], db [dim], d_p0 like p0), float32.

    >>> w, p0 = np.ones((1, 1), np.float32), np.ones(1, np.float32)
    >>> p = nrg.recurrent_positions(w, p0, 1)
    >>> dw, db, d_p0 = nrg.recurrent_positions_backward(np.ones((1, 1), np.float32), p, w, p0)
    >>> dw.round(4)
    array([[0.42]], dtype=float32)
    """
    p = arrays.as_array(p, "p")
    if p.ndim not in (2, 3) or p.shape[-1] == 0:
        raise arrays.unexpected("p", "[positions, dim] or [chains, positions, dim] with one element or more", p)
    number = arrays.number(p, "p", dtype)
    dp = arrays.like(dp, "dp", p, "p")
    result: Array = arrays.dense(p, "p", p.shape, None)
    gradient: Array = arrays.dense(dp, "dp", p.shape, None)
    dim = result.shape[-1]
    matrix: Array = arrays.dense(w, "w", (dim, dim), None, optional=False)
    first: Array = arrays.dense(p0, "p0", result.shape[:-2] + (dim,), result.dtype, optional=False)
    dw, db, d_p0 = new((dim, dim), np.float32), new(dim, np.float32), new(first.shape, np.float32)
    args = struct("nrg_recurrent_backward_args", dim=dim, positions=result.shape[-2], chains=result.shape[0] if result.ndim == 3 else 1,
                  dtype=number, w_dtype=arrays.number_beside(matrix, "w", dtype, number, "p"), w=arrays.address(matrix),
                  p0=arrays.address(first), p=arrays.address(result), dp=arrays.address(gradient), dw=arrays.address(dw),
                  db=arrays.address(db), d_p0=arrays.address(d_p0))
    size = ctypes.c_size_t()
    call("nrg_recurrent_backward_workspace", args, ctypes.addressof(size))
    memory = arrays.workspace(size.value)
    args.workspace, args.workspace_size = arrays.address(memory), size.value
    share("nrg_recurrent_backward", args, threads=threads)
    share("nrg_recurrent_backward_reduce", args, threads=threads)
    return dw, db, d_p0
