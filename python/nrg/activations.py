"""Activations (nrg/activation.h): a function for each, its backward pass, and activation() for any by name."""
from __future__ import annotations

from typing import Dict, Literal, Optional, Tuple

from . import _arrays as arrays
from ._library import enum, planned, share, struct
from ._types import Activation, Array, ArrayLike, DType


def _rows(x: Array, others: Dict[str, Array], dtype: DType) -> Tuple[int, int, arrays.Rows]:
    """Joins all elements into one row if every tensor is contiguous; otherwise rows are those of the last dimension."""
    number = arrays.number(x, "x", dtype)
    tensors = {"x": x, **others}
    if all(array.flags.c_contiguous for array in tensors.values()):
        tensors = {name: array.reshape(-1) for name, array in tensors.items()}  # contiguous, so these are views
    dim = tensors["x"].shape[-1]
    rows = arrays.Rows(tensors["x"].shape[:-1])
    for name, array in tensors.items():
        rows.add(name if name in ("x", "d_o") else "out", array, dim, field=name)
    return number, dim, rows


@planned
def activation(x: ArrayLike, name: Activation, *, alpha: Optional[float] = None, out: Optional[Array] = None, dtype: DType = None,
               threads: int = 1) -> Array:
    """Applies an activation to each element of x.

    Parameters:
    - x: [...].
    - name: "silu", "gelu", "gelu_tanh", "relu", "sigmoid", "tanh", "softplus", "mish", … (nrg/activation.h).
    - alpha: the parameter of gelu_quick, elu and leaky_relu. None: 1.702, 1 and 0.01.
    - out: the array for the result. It may be x.

    Returns an array like x.

    >>> nrg.activation(np.array([-1, 2], np.float32), "relu")
    array([0., 2.], dtype=float32)
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


@planned
def activation_backward(d_o: ArrayLike, x: ArrayLike, name: Activation, *, alpha: Optional[float] = None, out: Optional[Array] = None,
                        dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of activation(): d_o ⊙ g′(x).

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - name, alpha: as in activation().
    - out: the array for the result. It may be d_o or x.

    Returns an array like x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.activation_backward(d_o, np.array([-1, 2], np.float32), "relu")
    array([0., 1.], dtype=float32)
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


def _gelu(approximate: str) -> Activation:
    if approximate not in ("none", "tanh"):
        raise arrays.unexpected("approximate", "'none' or 'tanh'", approximate)
    return "gelu" if approximate == "none" else "gelu_tanh"


def sigmoid(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns 1 / (1 + e^-x) for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.sigmoid(np.array([-1, 2], np.float32)).round(4)
    array([0.2689, 0.8808], dtype=float32)
    """
    return activation(x, "sigmoid", out=out, dtype=dtype, threads=threads)


def sigmoid_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of sigmoid() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.sigmoid_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0.1966, 0.105 ], dtype=float32)
    """
    return activation_backward(d_o, x, "sigmoid", out=out, dtype=dtype, threads=threads)


def silu(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns x · sigmoid(x) for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.silu(np.array([-1, 2], np.float32)).round(4)
    array([-0.2689,  1.7616], dtype=float32)
    """
    return activation(x, "silu", out=out, dtype=dtype, threads=threads)


def silu_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of silu() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.silu_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0.0723, 1.0908], dtype=float32)
    """
    return activation_backward(d_o, x, "silu", out=out, dtype=dtype, threads=threads)


def relu(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns max(x, 0) for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.relu(np.array([-1, 2], np.float32)).round(4)
    array([0., 2.], dtype=float32)
    """
    return activation(x, "relu", out=out, dtype=dtype, threads=threads)


def relu_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of relu() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.relu_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0., 1.], dtype=float32)
    """
    return activation_backward(d_o, x, "relu", out=out, dtype=dtype, threads=threads)


def relu2(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns max(x, 0)² for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.relu2(np.array([-1, 2], np.float32)).round(4)
    array([0., 4.], dtype=float32)
    """
    return activation(x, "relu2", out=out, dtype=dtype, threads=threads)


def relu2_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of relu2() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.relu2_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0., 4.], dtype=float32)
    """
    return activation_backward(d_o, x, "relu2", out=out, dtype=dtype, threads=threads)


def tanh(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns tanh x for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.tanh(np.array([-1, 2], np.float32)).round(4)
    array([-0.7616,  0.964 ], dtype=float32)
    """
    return activation(x, "tanh", out=out, dtype=dtype, threads=threads)


def tanh_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of tanh() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.tanh_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0.42  , 0.0707], dtype=float32)
    """
    return activation_backward(d_o, x, "tanh", out=out, dtype=dtype, threads=threads)


def gelu(x: ArrayLike, approximate: Literal["none", "tanh"] = "none", *, out: Optional[Array] = None, dtype: DType = None,
         threads: int = 1) -> Array:
    """Returns x · Φ(x) for each element of x.

    Parameters:
    - x: [...].
    - approximate: "none", or "tanh" for gelu_tanh(), as in torch.nn.functional.gelu.
    - out: the array for the result. It may be x.

    >>> nrg.gelu(np.array([-1, 2], np.float32)).round(4)
    array([-0.1587,  1.9545], dtype=float32)
    """
    return activation(x, _gelu(approximate), out=out, dtype=dtype, threads=threads)


def gelu_backward(d_o: ArrayLike, x: ArrayLike, approximate: Literal["none", "tanh"] = "none", *, out: Optional[Array] = None,
                  dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of gelu() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - approximate: "none", or "tanh" for gelu_tanh(), as in torch.nn.functional.gelu.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.gelu_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([-0.0833,  1.0852], dtype=float32)
    """
    return activation_backward(d_o, x, _gelu(approximate), out=out, dtype=dtype, threads=threads)


def gelu_tanh(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns x/2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³))) for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.gelu_tanh(np.array([-1, 2], np.float32)).round(4)
    array([-0.1588,  1.9546], dtype=float32)
    """
    return activation(x, "gelu_tanh", out=out, dtype=dtype, threads=threads)


def gelu_tanh_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of gelu_tanh() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.gelu_tanh_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([-0.083 ,  1.0861], dtype=float32)
    """
    return activation_backward(d_o, x, "gelu_tanh", out=out, dtype=dtype, threads=threads)


def softplus(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns ln(1 + e^x) for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.softplus(np.array([-1, 2], np.float32)).round(4)
    array([0.3133, 2.1269], dtype=float32)
    """
    return activation(x, "softplus", out=out, dtype=dtype, threads=threads)


def softplus_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of softplus() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.softplus_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0.2689, 0.8808], dtype=float32)
    """
    return activation_backward(d_o, x, "softplus", out=out, dtype=dtype, threads=threads)


def gelu_quick(x: ArrayLike, alpha: float = 1.702, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns x · sigmoid(alpha · x) for each element of x.

    Parameters:
    - x: [...].
    - alpha: the factor in the formula.
    - out: the array for the result. It may be x.

    >>> nrg.gelu_quick(np.array([-1, 2], np.float32)).round(4)
    array([-0.1542,  1.9357], dtype=float32)
    """
    return activation(x, "gelu_quick", alpha=alpha, out=out, dtype=dtype, threads=threads)


def gelu_quick_backward(d_o: ArrayLike, x: ArrayLike, alpha: float = 1.702, *, out: Optional[Array] = None, dtype: DType = None,
                        threads: int = 1) -> Array:
    """Returns the gradient of gelu_quick() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - alpha: the factor in the formula.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.gelu_quick_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([-0.0678,  1.0738], dtype=float32)
    """
    return activation_backward(d_o, x, "gelu_quick", alpha=alpha, out=out, dtype=dtype, threads=threads)


def hard_swish(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns x · min(1, max(0, (x + 3)/6)) for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.hard_swish(np.array([-1, 2], np.float32)).round(4)
    array([-0.3333,  1.6667], dtype=float32)
    """
    return activation(x, "hard_swish", out=out, dtype=dtype, threads=threads)


def hard_swish_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of hard_swish() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.hard_swish_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0.1667, 1.1667], dtype=float32)
    """
    return activation_backward(d_o, x, "hard_swish", out=out, dtype=dtype, threads=threads)


def hard_sigmoid(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns min(1, max(0, (x + 3)/6)) for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.hard_sigmoid(np.array([-1, 2], np.float32)).round(4)
    array([0.3333, 0.8333], dtype=float32)
    """
    return activation(x, "hard_sigmoid", out=out, dtype=dtype, threads=threads)


def hard_sigmoid_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of hard_sigmoid() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.hard_sigmoid_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0.1667, 0.1667], dtype=float32)
    """
    return activation_backward(d_o, x, "hard_sigmoid", out=out, dtype=dtype, threads=threads)


def elu(x: ArrayLike, alpha: float = 1.0, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns x if x > 0, else alpha · (e^x - 1) for each element of x.

    Parameters:
    - x: [...].
    - alpha: the factor in the formula.
    - out: the array for the result. It may be x.

    >>> nrg.elu(np.array([-1, 2], np.float32)).round(4)
    array([-0.6321,  2.    ], dtype=float32)
    """
    return activation(x, "elu", alpha=alpha, out=out, dtype=dtype, threads=threads)


def elu_backward(d_o: ArrayLike, x: ArrayLike, alpha: float = 1.0, *, out: Optional[Array] = None, dtype: DType = None,
                 threads: int = 1) -> Array:
    """Returns the gradient of elu() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - alpha: the factor in the formula.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.elu_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0.3679, 1.    ], dtype=float32)
    """
    return activation_backward(d_o, x, "elu", alpha=alpha, out=out, dtype=dtype, threads=threads)


def leaky_relu(x: ArrayLike, negative_slope: float = 0.01, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns x if x > 0, else negative_slope · x for each element of x.

    Parameters:
    - x: [...].
    - negative_slope: the factor in the formula.
    - out: the array for the result. It may be x.

    >>> nrg.leaky_relu(np.array([-1, 2], np.float32)).round(4)
    array([-0.01,  2.  ], dtype=float32)
    """
    return activation(x, "leaky_relu", alpha=negative_slope, out=out, dtype=dtype, threads=threads)


def leaky_relu_backward(d_o: ArrayLike, x: ArrayLike, negative_slope: float = 0.01, *, out: Optional[Array] = None, dtype: DType = None,
                        threads: int = 1) -> Array:
    """Returns the gradient of leaky_relu() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - negative_slope: the factor in the formula.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.leaky_relu_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0.01, 1.  ], dtype=float32)
    """
    return activation_backward(d_o, x, "leaky_relu", alpha=negative_slope, out=out, dtype=dtype, threads=threads)


def mish(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns x · tanh(ln(1 + e^x)) for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.mish(np.array([-1, 2], np.float32)).round(4)
    array([-0.3034,  1.944 ], dtype=float32)
    """
    return activation(x, "mish", out=out, dtype=dtype, threads=threads)


def mish_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of mish() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.mish_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0.0592, 1.0693], dtype=float32)
    """
    return activation_backward(d_o, x, "mish", out=out, dtype=dtype, threads=threads)


def exp(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns e^x for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.exp(np.array([-1, 2], np.float32)).round(4)
    array([0.3679, 7.3891], dtype=float32)
    """
    return activation(x, "exp", out=out, dtype=dtype, threads=threads)


def exp_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of exp() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.exp_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0.3679, 7.3891], dtype=float32)
    """
    return activation_backward(d_o, x, "exp", out=out, dtype=dtype, threads=threads)


def expm1(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns e^x - 1 for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.expm1(np.array([-1, 2], np.float32)).round(4)
    array([-0.6321,  6.3891], dtype=float32)
    """
    return activation(x, "expm1", out=out, dtype=dtype, threads=threads)


def expm1_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of expm1() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.expm1_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0.3679, 7.3891], dtype=float32)
    """
    return activation_backward(d_o, x, "expm1", out=out, dtype=dtype, threads=threads)


def softsign(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns x / (1 + |x|) for each element of x.

    Parameters:
    - x: [...].
    - out: the array for the result. It may be x.

    >>> nrg.softsign(np.array([-1, 2], np.float32)).round(4)
    array([-0.5   ,  0.6667], dtype=float32)
    """
    return activation(x, "softsign", out=out, dtype=dtype, threads=threads)


def softsign_backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of softsign() for each element: d_o times the slope at x.

    Parameters:
    - d_o, x: [...], of one shape and dtype.
    - out: the array for the result. It may be d_o or x.

    >>> d_o = np.ones(2, np.float32)
    >>> nrg.softsign_backward(d_o, np.array([-1, 2], np.float32)).round(4)
    array([0.25  , 0.1111], dtype=float32)
    """
    return activation_backward(d_o, x, "softsign", out=out, dtype=dtype, threads=threads)
