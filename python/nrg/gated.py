"""Gated linear units (nrg/glu.h): o = g(a) ⊙ b."""
from . import _arrays as arrays
from . import _quantized as quantized
from ._library import enum, share, struct, with_options


def _inputs(a, b, pairs, swapped, dtype):
    """(fields and their arrays, leading shape, dim, number): of two tensors, halves of rows, or pairs."""
    a = arrays.as_array(a, "a")
    number = arrays.number(a, "a", dtype)
    if a.ndim == 0 or a.shape[-1] == 0:
        raise arrays.unexpected("a", "[..., dim] with one element or more in a row", a)
    if b is not None:
        for name, value in (("pairs", pairs), ("swapped", swapped)):
            if value:
                raise arrays.unexpected(name, "False, since b is given", value)
        return {"a": a, "b": arrays.like(b, "b", a, "a")}, a.shape[:-1], a.shape[-1], number
    if a.shape[-1] % 2:
        raise arrays.unexpected("a", "[..., 2·dim], since b is not given", a)
    dim = a.shape[-1] // 2
    if pairs:
        if swapped:
            raise arrays.unexpected("swapped", "False with pairs", swapped)
        return {"x": a}, a.shape[:-1], dim, number
    first, second = a[..., :dim], a[..., dim:]
    return {"a": second if swapped else first, "b": first if swapped else second}, a.shape[:-1], dim, number


def _args(activation, number, dim, limit, b_offset, alpha):
    return struct("nrg_glu_args", activation=enum("nrg_activation", activation, "NRG_ACT_", "activation"), dtype=number, dim=dim, limit=limit,
                  b_offset=b_offset, alpha=alpha)


def glu(a, b=None, *, activation="sigmoid", pairs=False, swapped=False, limit=None, b_offset=0.0, alpha=None, out=None, format=None,
        rounding="to_even", dtype=None, threads=1):
    """g(a) ⊙ b.

    a         [..., dim], beside b [..., dim]; or alone [..., 2·dim], whose rows are a and then b
    swapped   of a row alone: b and then a, as torch.nn.functional.glu has it
    pairs     of a row alone: a0 b0 a1 b1 …
    activation   any of nrg.activation
    limit     min(a, limit) and max(-limit, min(b, limit)) stand for a and b; None: no limit
    b_offset  added to b
    alpha     of the activation, as in nrg.activation
    out       [..., dim]; it may be a or b
    format    "q8_0", "int8", …: bytes with scales instead of numbers, as nrg.quantize makes them of the float32 result

    Returns o [..., dim]; with a format the bytes, of int8 (bytes, scales).
    """
    tensors, leading, dim, number = _inputs(a, b, pairs, swapped, dtype)
    rows = arrays.Rows(leading)
    args = _args(activation, number, dim, limit, b_offset, alpha)
    for name, array in tensors.items():
        rows.add("a" if name == "x" or b is None else name, array, 2 * dim if name == "x" else dim, field=name)
    if format is None:
        results = [arrays.output(out, "out", leading + (dim,), next(iter(tensors.values())).dtype)]
        rows.add("out", results[0], dim, field="o")
    elif out is not None:
        raise arrays.unexpected("out", "None with a format, whose bytes are returned", out)
    else:
        results = quantized.fill(args, format, rounding, leading, dim, name="a")
    rows.fill(args)
    share("nrg_glu_forward", args, threads=threads)
    return results[0] if len(results) == 1 else tuple(results)


def glu_backward(d_o, a, b=None, *, activation="sigmoid", pairs=False, swapped=False, limit=None, b_offset=0.0, alpha=None, out=None,
                 dtype=None, threads=1):
    """The gradients of glu(), for what it was called with.

    d_o   [..., dim]
    a, b  as in the forward pass, with its options
    out   where they are written: (da, db) of two tensors, an array like a of one; these may be the inputs

    Returns (da, db), each [..., dim]; or of a alone one array like it.
    """
    tensors, leading, dim, number = _inputs(a, b, pairs, swapped, dtype)
    kind = next(iter(tensors.values())).dtype
    d_o = arrays.exactly(d_o, "d_o", leading + (dim,), kind)
    if b is not None:
        results = tuple(arrays.output(each, "out", leading + (dim,), kind) for each in arrays.pair(out))
        gradients = dict(zip(("da", "db"), results))
    else:
        results = arrays.output(out, "out", leading + (2 * dim,), kind)
        gradients = {"d" + name: array for name, array in _inputs(results, None, pairs, swapped, dtype)[0].items()}
    rows = arrays.Rows(leading)
    for name, array in {**tensors, **gradients}.items():
        argument = "out" if name in gradients else "a" if name == "x" or b is None else name
        rows.add(argument, array, 2 * dim if name in ("x", "dx") else dim, field=name)
    rows.add("d_o", d_o, dim)
    args = _args(activation, number, dim, limit, b_offset, alpha)
    rows.fill(args)
    share("nrg_glu_backward", args, threads=threads)
    return results


def _named(name, formula, **fixed):
    def forward(a, b=None, **given):
        return glu(a, b, **{**fixed, **given})

    def backward(d_o, a, b=None, **given):
        return glu_backward(d_o, a, b, **{**fixed, **given})

    forward.__name__ = forward.__qualname__ = name
    backward.__name__ = backward.__qualname__ = name + "_backward"
    forward.__doc__ = f"{formula}\n" + glu.__doc__.split("\n", 1)[1]
    backward.__doc__ = f"The gradients of {name}(), for what it was called with.\n" + glu_backward.__doc__.split("\n", 1)[1]
    forward.__signature__, backward.__signature__ = with_options(glu, fixed), with_options(glu_backward, fixed)
    return forward, backward


swiglu, swiglu_backward = _named("swiglu", "silu(a) ⊙ b.", activation="silu")
geglu, geglu_backward = _named("geglu", "gelu(a) ⊙ b.", activation="gelu")
geglu_tanh, geglu_tanh_backward = _named("geglu_tanh", "gelu_tanh(a) ⊙ b.", activation="gelu_tanh")
reglu, reglu_backward = _named("reglu", "relu(a) ⊙ b.", activation="relu")
bilinear, bilinear_backward = _named("bilinear", "a ⊙ b.", activation="identity")
swiglu_oai, swiglu_oai_backward = _named("swiglu_oai", "gpt-oss's: gelu_quick(min(a, 7)) ⊙ (max(-7, min(b, 7)) + 1).",
                                         activation="gelu_quick", alpha=1.702, limit=7.0, b_offset=1.0)
