"""Positions that are added or looked up: sinusoids (nrg/sinusoidal.h), embeddings (nrg/embed.h), biases of scores by distance
(nrg/score_bias.h), positions by recursion (nrg/recurrent.h)."""
import ctypes

import numpy as np

from . import _arrays as arrays
from ._library import CONSTANTS, call, enum, function, share, struct


# ---- sinusoids ----

def sinusoidal(positions, dim, *, base=10000.0, layout="interleaved", spread="below_base", first_position=0, dtype=None, out=None, threads=1):
    """The sinusoidal table of Vaswani et al., p[k, 2i] = sin(k · base^(-2i/dim)), and its variants.

    positions  a number of rows, counted from `first_position`, or integers [rows]
    layout     "interleaved": sin, cos, sin, cos; "concatenated": sines, then cosines; "cosines_first"
    spread     "below_base": the paper's exponents; "to_base": from 0 to 1 (tensor2tensor, fairseq, Whisper)
    dtype      of the result: "f32", "f16", "bf16"; None: out's, or float32
    out        [rows, dim]

    Returns [rows, dim].
    """
    rows, given = arrays.counted(positions, "positions")
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
    """A term of embed(): rows of a table by ids, or counted up from `first`, times a scale.

    table   [rows, dim]
    ids     integers [tokens], or with a period [period]; None: first, first + 1, …
    scale   of what is picked; None: 1
    period  tokens after which ids, or the count, begin anew; 0: never
    """

    def __init__(self, table, ids=None, *, first=0, scale=None, period=0):
        self.table, self.first, self.scale, self.period = arrays.as_array(table, "table"), first, scale, period
        if self.table.ndim != 2:
            raise arrays.unexpected("table", "[rows, dim]", self.table)
        self.ids = None if ids is None else arrays.integers(ids, "ids", (np.size(ids),))

    def fields(self, tokens):
        if self.ids is not None:
            arrays.dense(self.ids, "ids", (min(self.period, tokens),) if self.period else (tokens,), np.int32)
        return {"rows": self.table.shape[0], "ids": arrays.address(self.ids), "first_position": self.first, "scale": self.scale,
                "period": self.period or None}


def _stride(array, name):
    """Of the rows of [rows, dim]."""
    rows = arrays.Rows(array.shape[:-1])
    rows.add(name, array)
    dimensions = rows.dimensions()
    if len(dimensions) > 1:
        raise ValueError(f"{name}: rows are not at one distance from each other; np.ascontiguousarray makes a copy whose rows are")
    return dimensions[0][1][name] if dimensions else 0


def embed(terms, *, x=None, tokens=None, out=None, dtype=None, threads=1):
    """x + A[a] + B[b] + C[c]: up to three Terms, for every token.

    terms   a Term or a list of them
    x       [tokens, dim], or None
    tokens  how many, where neither x nor ids say
    out     [tokens, dim]; it may be x

    Returns [tokens, dim], of x's dtype, or the tables'.
    """
    terms = [terms] if isinstance(terms, Term) else list(terms)
    if not 1 <= len(terms) <= CONSTANTS["NRG_EMBED_TABLES"]:
        raise ValueError(f"terms: expected 1 to {CONSTANTS['NRG_EMBED_TABLES']}, got {len(terms)}")
    x = None if x is None else arrays.as_array(x, "x")
    table = terms[0].table
    kind, dim = table.dtype if x is None else x.dtype, table.shape[1]
    if x is not None and x.ndim != 2:
        raise arrays.unexpected("x", f"[tokens, {dim}]", x)
    if tokens is None:
        tokens = x.shape[0] if x is not None else next((len(t.ids) for t in terms if t.ids is not None and not t.period), None)
        if tokens is None:
            raise arrays.unexpected("tokens", "a number, since neither x nor ids have one", None)
    tokens = arrays.count(tokens, "tokens")
    if x is not None and x.shape != (tokens, dim):
        raise arrays.unexpected("x", [tokens, dim], x)
    for term in terms[1:]:
        if term.table.dtype != table.dtype or term.table.shape[1] != dim:
            raise arrays.unexpected("table", f"{table.dtype.name} [rows, {dim}] like the first one", term.table)
    o = arrays.output(out, "out", (tokens, dim), kind)
    number = arrays.number(o, "table" if x is None else "x", dtype)
    args = struct("nrg_embed_args", rows=tokens, dim=dim, dtype=number,
                  table_dtype=arrays.number_beside(table, "table", dtype, number, "x"), x=arrays.address(x), o=arrays.address(o), o_stride=_stride(o, "out"),
                  x_stride=0 if x is None else _stride(x, "x"))
    tables = [struct("nrg_embed_table", table=arrays.address(term.table), stride=_stride(term.table, "table"), **term.fields(tokens))
              for term in terms]
    array = (type(tables[0]) * len(tables))(*tables)
    args.tables, args.table_count = ctypes.addressof(array), len(tables)
    share("nrg_embed_forward", args, threads=threads)
    return o


def embedding(ids, table, *, scale=None, out=None, dtype=None, threads=1):
    """Rows of a table by their ids: torch.nn.functional.embedding.

    ids integers [tokens], table [rows, dim]  ->  [tokens, dim]
    """
    if ids is None:
        raise arrays.unexpected("ids", "integers [tokens]", None)
    return embed(Term(table, ids, scale=scale), out=out, dtype=dtype, threads=threads)


def embedding_backward(d_o, ids, rows, *, scale=None, out=None, accumulate=False, dtype=None, threads=1):
    """The gradient of embedding()'s table: d_table[k] = scale · Σ d_o[t] over the tokens with ids[t] = k.

    d_o   [tokens, dim]
    ids   integers [tokens]
    rows  of the table
    out   [rows, dim], of d_o's dtype or float32; with accumulate it is added to

    Returns [rows, dim], float32 unless out is there.
    """
    d_o = arrays.as_array(d_o, "d_o")
    if d_o.ndim != 2:
        raise arrays.unexpected("d_o", "[tokens, dim]", d_o)
    if accumulate and out is None:
        raise arrays.unexpected("out", "an array with accumulate", None)
    tokens, dim = d_o.shape
    rows = arrays.count(rows, "rows")
    ids = arrays.integers(ids, "ids", (tokens,), optional=False)
    number = arrays.number(d_o, "d_o", dtype)
    table = arrays.output(out, "out", (rows, dim), np.float32 if out is None else out.dtype)
    args = struct("nrg_embed_backward_args", rows=tokens, dim=dim, dtype=number,
                  table_dtype=arrays.number_beside(table, "out", dtype, number, "d_o"), d_o=arrays.address(d_o), d_o_stride=_stride(d_o, "d_o"))
    gradient = struct("nrg_embed_gradient", d_table=arrays.address(table), stride=_stride(table, "out"), rows=rows,
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

def alibi_slopes(heads, max_bias=8.0):
    """ALiBi's slopes.

    heads  ->  float32 [heads]
    """
    heads = arrays.count(heads, "heads")
    slopes = np.empty(heads, np.float32)
    call("nrg_alibi_slopes", heads, max_bias, arrays.address(slopes))
    return slopes


def _bias_spec(heads, queries, keys, first_position, causal, bidirectional, buckets, max_distance):
    """The spec of T5; of ALiBi, if the last three are 0."""
    return struct("nrg_score_bias_spec", heads=heads, queries=queries, keys=keys, first_position=first_position, causal=int(bool(causal)),
                  bidirectional=int(bool(bidirectional)), buckets=buckets, max_distance=max_distance)


def _diagonals(heads, queries, keys):
    queries, keys = arrays.count(queries, "queries"), arrays.count(keys, "keys")
    return (heads, queries + keys - 1 if queries and keys else 0)


def alibi_diagonals(slopes, queries, keys, *, first_position=None, causal=False, threads=1):
    """ALiBi's biases, a number for each head and distance of key and query: what score_bias() and softmax() take.

    slopes        float32 [heads]
    first_position  of query 0, where that of key 0 is 0; None: keys - queries
    causal        -infinity where the key comes after the query

    Returns float32 [heads, queries + keys - 1].
    """
    slopes = arrays.as_array(slopes, "slopes")
    slopes = arrays.dense(slopes, "slopes", (slopes.size,), np.float32)
    diagonals = np.empty(_diagonals(slopes.size, queries, keys), np.float32)
    spec = _bias_spec(slopes.size, queries, keys, first_position, causal, 0, 0, 0)
    share("nrg_alibi_diagonals", spec, arrays.address(slopes), arrays.address(diagonals), 0, threads=threads)
    return diagonals


def t5_bucket(distance, *, bidirectional=True, buckets=32, max_distance=128):
    """T5's bucket of a distance, key minus query; -1 where buckets or max_distance are refused.

    int  ->  int
    """
    return function("nrg_t5_bucket")(distance, int(bool(bidirectional)), buckets, max_distance)


def t5_diagonals(table, queries, keys, *, first_position=None, causal=False, bidirectional=True, max_distance=128, dtype=None, threads=1):
    """T5's biases from its table of numbers, as alibi_diagonals().

    table  [buckets, heads]

    Returns float32 [heads, queries + keys - 1].
    """
    table = arrays.as_array(table, "table")
    if table.ndim != 2 or table.size == 0:
        raise arrays.unexpected("table", "[buckets, heads], one or more of each", table)
    buckets, heads = table.shape
    diagonals = np.empty(_diagonals(heads, queries, keys), np.float32)
    spec = _bias_spec(heads, queries, keys, first_position, causal, bidirectional, buckets, max_distance)
    share("nrg_t5_diagonals_forward", spec, arrays.number(table, "table", dtype), arrays.address(table), _stride(table, "table"),
          arrays.address(diagonals), 0, threads=threads)
    return diagonals


def t5_diagonals_backward(d_diagonals, queries, keys, buckets=32, *, first_position=None, causal=False, bidirectional=True, max_distance=128,
                threads=1):
    """The gradient of T5's table from that of the diagonals, which score_bias_backward() makes.

    d_diagonals float64 [heads, queries + keys - 1]  ->  float32 [buckets, heads]
    """
    d_diagonals = arrays.as_array(d_diagonals, "d_diagonals")
    if d_diagonals.ndim != 2:
        raise arrays.unexpected("d_diagonals", "float64 [heads, queries + keys - 1]", d_diagonals)
    heads, buckets = d_diagonals.shape[0], arrays.count(buckets, "buckets", 1)
    d_diagonals = arrays.dense(d_diagonals, "d_diagonals", _diagonals(heads, queries, keys), np.float64)
    d_table = np.empty((buckets, heads), np.float32)
    spec = _bias_spec(heads, queries, keys, first_position, causal, bidirectional, buckets, max_distance)
    share("nrg_t5_diagonals_backward", spec, arrays.address(d_diagonals), 0, arrays.address(d_table), 0, 0, threads=threads)
    return d_table


def score_bias(scores, diagonals, *, scale=None, store="auto", out=None, dtype=None, threads=1):
    """scores · scale + diagonals at their distance.

    scores     [batch, heads, queries, keys], or the last of these
    diagonals  float32 [heads, queries + keys - 1]
    scale      None: 1
    out        it may be scores

    Returns an array like scores.
    """
    scores = arrays.as_array(scores, "scores")
    (batch, heads, queries), _, _ = arrays.four(scores, "scores")
    keys = scores.shape[-1]
    diagonals = arrays.dense(diagonals, "diagonals", _diagonals(heads, queries, keys), np.float32, optional=False)
    o = arrays.output(out, "out", scores.shape, scores.dtype)
    args = struct("nrg_score_bias_args", batch=batch, heads=heads, queries=queries, keys=keys, dtype=arrays.number(scores, "scores", dtype),
                  store=enum("nrg_store", store, "NRG_STORE_", "store"), diagonals=arrays.address(diagonals), scale=scale)
    arrays.fill_four(args, "scores", scores)
    arrays.fill_four(args, "o", o, "out")
    share("nrg_score_bias_forward", args, threads=threads)
    return o


def score_bias_backward(d_o, *, out=None, accumulate=False, dtype=None, threads=1):
    """The gradient of the diagonals: the sum of d_o along each.

    d_o  [batch, heads, queries, keys], or the last of these
    out  float64 [heads, queries + keys - 1]; with accumulate it is added to

    Returns float64 [heads, queries + keys - 1].
    """
    d_o = arrays.as_array(d_o, "d_o")
    (batch, heads, queries), _, _ = arrays.four(d_o, "d_o")
    keys = d_o.shape[-1]
    if accumulate and out is None:
        raise arrays.unexpected("out", "an array with accumulate", None)
    shape = _diagonals(heads, queries, keys)
    sums = arrays.dense(arrays.output(out, "out", shape, np.float64), "out", shape, None)
    args = struct("nrg_score_bias_backward_args", batch=batch, heads=heads, queries=queries, keys=keys,
                  dtype=arrays.number(d_o, "d_o", dtype), accumulate=int(bool(accumulate)), d_diagonals=arrays.address(sums))
    arrays.fill_four(args, "d_o", d_o)
    share("nrg_score_bias_backward", args, threads=threads)
    return sums


# ---- by recursion ----

def recurrent_positions(w, p0, positions, *, b=None, out=None, dtype=None, threads=1):
    """p_k = tanh(W p_(k-1) + b), k = 1 … positions, of one or several chains.

    w    [dim, dim]
    p0   [chains, dim] or [dim], of one dtype with the result
    b    [dim], or None, of w's dtype
    out  [chains, positions, dim] or [positions, dim]

    Returns p like out.
    """
    w, p0 = arrays.as_array(w, "w"), arrays.as_array(p0, "p0")
    if p0.ndim not in (1, 2) or p0.shape[-1] == 0:
        raise arrays.unexpected("p0", "[dim] or [chains, dim] with one element or more", p0)
    dim, positions = p0.shape[-1], arrays.count(positions, "positions")
    number = arrays.number(p0, "p0", dtype)
    w = arrays.dense(w, "w", (dim, dim), None)
    b = arrays.dense(b, "b", (dim,), w.dtype)
    p0 = arrays.dense(p0, "p0", p0.shape, None)
    p = arrays.output(out, "out", p0.shape[:-1] + (positions, dim), p0.dtype)
    p = arrays.dense(p, "out", p.shape, None)
    args = struct("nrg_recurrent_args", dim=dim, positions=positions, chains=p0.shape[0] if p0.ndim == 2 else 1, dtype=number,
                  w_dtype=arrays.number_beside(w, "w", dtype, number, "p0"), w=arrays.address(w), b=arrays.address(b), p0=arrays.address(p0),
                  p=arrays.address(p))
    share("nrg_recurrent_forward", args, threads=threads)
    return p


def recurrent_positions_backward(dp, p, w, p0, *, dtype=None, threads=1):
    """The gradients of recurrent_positions().

    dp, p   [chains, positions, dim] or [positions, dim]: the gradient of p, and p
    w, p0   as in the forward pass

    Returns (dw [dim, dim], db [dim], d_p0 like p0), float32.
    """
    p = arrays.as_array(p, "p")
    if p.ndim not in (2, 3) or p.shape[-1] == 0:
        raise arrays.unexpected("p", "[positions, dim] or [chains, positions, dim] with one element or more", p)
    number = arrays.number(p, "p", dtype)
    dp = arrays.like(dp, "dp", p, "p")
    p, dp = arrays.dense(p, "p", p.shape, None), arrays.dense(dp, "dp", p.shape, None)
    dim = p.shape[-1]
    w = arrays.dense(w, "w", (dim, dim), None, optional=False)
    p0 = arrays.dense(p0, "p0", p.shape[:-2] + (dim,), p.dtype, optional=False)
    dw, db, d_p0 = (np.empty(shape, np.float32) for shape in ((dim, dim), (dim,), p0.shape))
    args = struct("nrg_recurrent_backward_args", dim=dim, positions=p.shape[-2], chains=p.shape[0] if p.ndim == 3 else 1,
                  dtype=number, w_dtype=arrays.number_beside(w, "w", dtype, number, "p"), w=arrays.address(w), p0=arrays.address(p0),
                  p=arrays.address(p), dp=arrays.address(dp), dw=arrays.address(dw), db=arrays.address(db), d_p0=arrays.address(d_p0))
    size = ctypes.c_size_t()
    call("nrg_recurrent_backward_workspace", args, ctypes.addressof(size))
    memory = arrays.workspace(size.value)
    args.workspace, args.workspace_size = arrays.address(memory), size.value
    share("nrg_recurrent_backward", args, threads=threads)
    share("nrg_recurrent_backward_reduce", args, threads=threads)
    return dw, db, d_p0
