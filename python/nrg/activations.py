"""Activations (nrg/activation.h): one function for each, its backward pass, and activation() for any by its name."""
from . import _arrays as arrays
from ._library import enum, share, struct


def _rows(x, others, dtype):
    """Elements that follow each other in all tensors are one row; otherwise rows are those of the last dimension."""
    number = arrays.number(x, "x", dtype)
    tensors = {"x": x, **others}
    if all(array.flags.c_contiguous for array in tensors.values()):
        tensors = {name: array.reshape(-1) for name, array in tensors.items()}  # views, being contiguous
    dim = tensors["x"].shape[-1]
    rows = arrays.Rows(tensors["x"].shape[:-1])
    for name, array in tensors.items():
        rows.add(name if name in ("x", "d_o") else "out", array, dim, field=name)
    return number, dim, rows


def activation(x, name, *, alpha=None, out=None, dtype=None, threads=1):
    """g(x), element by element.

    x      [...]
    name   "silu", "gelu", "gelu_tanh", "relu", "sigmoid", "tanh", "softplus", "mish", … (nrg/activation.h)
    alpha  of gelu_quick, elu and leaky_relu; None: 1.702, 1, 0.01
    out    where the result is written; it may be x

    Returns an array like x.
    """
    given = arrays.as_array(x, "x")
    o = arrays.output(out, "out", given.shape, given.dtype)
    number, dim, rows = _rows(given, {"o": o}, dtype)
    if not dim:
        return o
    args = struct("nrg_activation_args", activation=enum("nrg_activation", name, "NRG_ACT_", "name"), dtype=number, dim=dim, alpha=alpha)
    rows.fill(args)
    share("nrg_activation_rows_forward", args, threads=threads)
    return o


def activation_backward(d_o, x, name, *, alpha=None, out=None, dtype=None, threads=1):
    """d_o ⊙ g′(x): the gradient of activation().

    d_o, x  [...], of one shape and dtype
    out     where the result is written; it may be x or d_o

    Returns an array like x.
    """
    x = arrays.as_array(x, "x")
    d_o = arrays.like(d_o, "d_o", x)
    dx = arrays.output(out, "out", x.shape, x.dtype)
    number, dim, rows = _rows(x, {"d_o": d_o, "dx": dx}, dtype)
    if not dim:
        return dx
    args = struct("nrg_activation_args", activation=enum("nrg_activation", name, "NRG_ACT_", "name"), dtype=number, dim=dim, alpha=alpha)
    rows.fill(args)
    share("nrg_activation_rows_backward", args, threads=threads)
    return dx


def _named(name, formula, takes_alpha=False):
    """silu(x, *, out, dtype, threads) and silu_backward(d_o, x, …)."""
    if takes_alpha:
        def forward(x, alpha=None, *, out=None, dtype=None, threads=1):
            return activation(x, name, alpha=alpha, out=out, dtype=dtype, threads=threads)

        def backward(d_o, x, alpha=None, *, out=None, dtype=None, threads=1):
            return activation_backward(d_o, x, name, alpha=alpha, out=out, dtype=dtype, threads=threads)
    else:
        def forward(x, *, out=None, dtype=None, threads=1):
            return activation(x, name, out=out, dtype=dtype, threads=threads)

        def backward(d_o, x, *, out=None, dtype=None, threads=1):
            return activation_backward(d_o, x, name, out=out, dtype=dtype, threads=threads)
    forward.__name__ = forward.__qualname__ = name
    backward.__name__ = backward.__qualname__ = name + "_backward"
    forward.__doc__ = f"{formula}\n\n    x [...]  ->  [...]; out may be x\n    "
    backward.__doc__ = f"The gradient of {name}(): d_o ⊙ its slope at x.\n\n    d_o [...], x [...]  ->  [...]; out may be x or d_o\n    "
    return forward, backward


sigmoid, sigmoid_backward = _named("sigmoid", "1/(1 + e^-x)")
silu, silu_backward = _named("silu", "x·sigmoid(x)")
relu, relu_backward = _named("relu", "max(x, 0)")
relu2, relu2_backward = _named("relu2", "max(x, 0)²")
tanh, tanh_backward = _named("tanh", "tanh x")
gelu, gelu_backward = _named("gelu", "x·Φ(x), by erf")
gelu_tanh, gelu_tanh_backward = _named("gelu_tanh", "x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))")
softplus, softplus_backward = _named("softplus", "ln(1 + e^x)")
gelu_quick, gelu_quick_backward = _named("gelu_quick", "x·sigmoid(alpha·x); alpha None: 1.702", True)
hard_swish, hard_swish_backward = _named("hard_swish", "x·min(1, max(0, (x + 3)/6))")
hard_sigmoid, hard_sigmoid_backward = _named("hard_sigmoid", "min(1, max(0, (x + 3)/6))")
elu, elu_backward = _named("elu", "x where x > 0, else alpha·(e^x - 1); alpha None: 1", True)
leaky_relu, leaky_relu_backward = _named("leaky_relu", "x where x > 0, else alpha·x; alpha None: 0.01", True)
mish, mish_backward = _named("mish", "x·tanh(ln(1 + e^x))")
exp, exp_backward = _named("exp", "e^x")
expm1, expm1_backward = _named("expm1", "e^x - 1")
softsign, softsign_backward = _named("softsign", "x/(1 + |x|)")

__all__ = [_name for _name, _value in globals().items() if callable(_value) and not _name.startswith("_") and _value.__module__ == __name__]
