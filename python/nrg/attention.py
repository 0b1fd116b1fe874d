"""Softmax with what attention puts in front of it, and cross-entropy (nrg/softmax.h, nrg/cross_entropy.h)."""
import numpy as np

from . import _arrays as arrays
from ._library import enum, share, struct


def _seen(x, name, dtype):
    x = arrays.as_array(x, name)
    (batch, heads, queries), _, _ = arrays.four(x, name)
    return x, {"batch": batch, "heads": heads, "queries": queries, "keys": x.shape[-1], "dtype": arrays.number(x, name, dtype)}


def softmax(x, *, mask=None, scale=None, cap=None, causal=False, first_position=None, window=None, diagonals=None, slopes=None, sinks=None,
            log=False, store="auto", out=None, dtype=None, threads=1):
    """softmax(cap(x · scale) + bias + slope · mask) over the last dimension.

    x             [batch, heads, queries, keys], or the last of these: [rows, classes], [heads, queries, keys]
    mask          of float32, float16 or bf16, added; repeats to x
    scale, cap    None: none; cap(v) = cap · tanh(v/cap)
    causal        query i sees keys up to first_position + i; None: keys - queries
    window        only so many of the last keys; None: all
    diagonals     float32 [heads, queries + keys - 1]: biases by distance, of t5_diagonals or alibi_diagonals
    slopes, sinks   float32 [heads]: factors of the mask, and logits that are in the sum and nowhere else
    log           log-softmax
    out           may be x

    Returns an array like x. What a query does not see is 0; so is a row in which nothing is seen.
    """
    x, sizes = _seen(x, "x", dtype)
    heads, columns = sizes["heads"], max(sizes["queries"] + sizes["keys"] - 1, 0)
    o = arrays.output(out, "out", x.shape, x.dtype)
    args = struct("nrg_softmax_args", scale=scale, cap=cap, causal=int(bool(causal)), first_position=first_position, window=window,
                  log=int(bool(log)), store=enum("nrg_store", store, "NRG_STORE_", "store"), **sizes)
    if mask is not None:
        mask = arrays.as_array(mask, "mask")
        args.mask_dtype = arrays.kind_of(mask, "mask", dtype)
        try:
            mask = np.broadcast_to(arrays.adjacent(mask, "mask"), x.shape)
        except ValueError:
            raise arrays.unexpected("mask", f"{list(x.shape)}, or what repeats to that", mask) from None
        args.mask_repeat = arrays.four(mask, "mask", True)[2]
        arrays.fill_four(args, "mask", mask, repeats=True)
    diagonals = arrays.dense(diagonals, "diagonals", (heads, columns), np.float32)
    slopes = arrays.dense(slopes, "slopes", (heads,), np.float32)
    sinks = arrays.dense(sinks, "sinks", (heads,), np.float32)
    args.diagonals, args.slopes, args.sinks = (arrays.address(array) for array in (diagonals, slopes, sinks))
    arrays.fill_four(args, "x", x)
    arrays.fill_four(args, "o", o, "out")
    share("nrg_softmax_forward", args, threads=threads)
    return o


def log_softmax(x, **given):
    """softmax(x, log=True): t - log Σ e^t. Of what is not seen -infinity.

    x [..., keys]  ->  [..., keys]; all options of softmax()
    """
    return softmax(x, log=True, **given)


def softmax_backward(d_o, o, *, x=None, scale=None, cap=None, causal=False, first_position=None, window=None, log=False, store="auto", out=None,
                     dtype=None, threads=1):
    """The gradient of x, for what softmax() was called with.

    d_o, o  [batch, heads, queries, keys] or the last of these: the gradient of the result, and the result
    x       as in the forward pass, with a cap only
    out     may be o, d_o or x

    Returns an array like o.
    """
    o, sizes = _seen(o, "o", dtype)
    d_o = arrays.like(d_o, "d_o", o, "o")
    x = None if x is None else arrays.like(x, "x", o, "o")
    dx = arrays.output(out, "out", o.shape, o.dtype)
    args = struct("nrg_softmax_backward_args", scale=scale, cap=cap, causal=int(bool(causal)), first_position=first_position, window=window,
                  log=int(bool(log)), store=enum("nrg_store", store, "NRG_STORE_", "store"), **sizes)
    for name, array in (("o", o), ("d_o", d_o), ("x", x)):
        arrays.fill_four(args, name, array)
    arrays.fill_four(args, "dx", dx, "out")
    share("nrg_softmax_backward", args, threads=threads)
    return dx


def log_softmax_backward(d_o, o, **given):
    """softmax_backward(d_o, o, log=True): o is the result of log_softmax().

    d_o, o [..., keys]  ->  [..., keys]
    """
    return softmax_backward(d_o, o, log=True, **given)


def _logits(x, ids, ignore_index, dtype):
    x = arrays.adjacent(arrays.as_array(x, "x"), "x")
    if x.shape[-1] == 0:
        raise arrays.unexpected("x", "[..., classes] with one class or more", x)
    ids = arrays.integers(ids, "ids", x.shape[:-1], optional=False)
    args = struct("nrg_cross_entropy_args", classes=x.shape[-1], dtype=arrays.number(x, "x", dtype), ignore_index=ignore_index,
                  ids=arrays.address(ids))
    rows = arrays.Rows(x.shape[:-1])
    rows.add("x", x)
    return x, ids, args, rows


def _fill(args, rows):
    """Rows of one stride: this call has no planes."""
    dimensions = rows.dimensions()
    if len(dimensions) > 1:
        raise ValueError(f"{', '.join(rows.names.values())}: rows are not at one distance from each other; np.ascontiguousarray makes a "
                         "copy whose rows are")
    args.rows = dimensions[0][0] if dimensions else 1
    for name, array in rows.tensors.items():
        setattr(args, name, arrays.address(array))
        setattr(args, name + "_stride", dimensions[0][1][name] if dimensions else 0)


def cross_entropy(x, ids, *, ignore_index=-100, dtype=None, threads=1):
    """log Σ e^x - x[id], of every row.

    x    [..., classes] logits
    ids  integers [...]; rows of ignore_index, which may be a class, have a loss of 0

    Returns (loss float32 [...], m float32 [...], others float64 [...]): m is the largest logit, others the sum of e^x over the
    other classes, divided by a power of 2 or by e^m. cross_entropy_backward() takes both.
    """
    x, ids, args, rows = _logits(x, ids, ignore_index, dtype)
    _fill(args, rows)
    loss, m, others = (np.empty(x.shape[:-1], kind) for kind in (np.float32, np.float32, np.float64))
    args.loss, args.m, args.others = arrays.address(loss), arrays.address(m), arrays.address(others)
    share("nrg_cross_entropy_forward", args, threads=threads)
    return loss, m, others


def cross_entropy_backward(d_loss, x, ids, m, others, *, ignore_index=-100, out=None, dtype=None, threads=1):
    """(softmax(x) - onehot(id)) · d_loss, of every row.

    d_loss     float32 [...]; of a mean over the rows 1/rows
    x, ids     as in cross_entropy()
    m, others  what cross_entropy() has returned
    out        [..., classes]; it may be x

    Returns an array like x.
    """
    x, ids, args, rows = _logits(x, ids, ignore_index, dtype)
    dx = rows.add("out", arrays.output(out, "out", x.shape, x.dtype), field="dx")
    _fill(args, rows)
    d_loss = arrays.dense(d_loss, "d_loss", x.shape[:-1], np.float32, optional=False)
    m = arrays.dense(m, "m", x.shape[:-1], np.float32, optional=False)
    others = arrays.dense(others, "others", x.shape[:-1], np.float64, optional=False)
    args.d_loss, args.m_in, args.others_in = arrays.address(d_loss), arrays.address(m), arrays.address(others)
    share("nrg_cross_entropy_backward", args, threads=threads)
    return dx
