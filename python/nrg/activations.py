"""Activations (nrg/activation.h): a function for each, its backward pass, and activation() for any by name.

    activate              silu  gelu  gelu_tanh  relu  sigmoid  tanh  softplus  mish  …  activation (by name)"""
from __future__ import annotations

from typing import Dict, Literal, Optional, Protocol, Tuple

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


class _Forward(Protocol):
    def __call__(self, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
        ...


class _Backward(Protocol):
    def __call__(self, d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
        ...


def _element_wise(name: Activation, formula: str, results: str, gradients: str) -> Tuple[_Forward, _Backward]:
    """Returns the functions of an activation without parameters. results, gradients: of the examples."""
    def forward(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
        return activation(x, name, out=out, dtype=dtype, threads=threads)

    def backward(d_o: ArrayLike, x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
        return activation_backward(d_o, x, name, out=out, dtype=dtype, threads=threads)

    arrays.name_function(forward, name, f"""Returns {formula} for each element of x.

        Parameters:
        - x: [...].
        - out: the array for the result. It may be x.

        >>> nrg.{name}(np.array([-1, 2], np.float32)).round(4)
        array({results}, dtype=float32)
        """)
    arrays.name_function(backward, f"{name}_backward", f"""Returns the gradient of {name}() for each element: d_o times the slope at x.

        Parameters:
        - d_o, x: [...], of one shape and dtype.
        - out: the array for the result. It may be d_o or x.

        >>> d_o = np.ones(2, np.float32)
        >>> nrg.{name}_backward(d_o, np.array([-1, 2], np.float32)).round(4)
        array({gradients}, dtype=float32)
        """)
    return forward, backward


sigmoid, sigmoid_backward = _element_wise("sigmoid", "1 / (1 + e^-x)", "[0.2689, 0.8808]", "[0.1966, 0.105 ]")
silu, silu_backward = _element_wise("silu", "x · sigmoid(x)", "[-0.2689,  1.7616]", "[0.0723, 1.0908]")
relu, relu_backward = _element_wise("relu", "max(x, 0)", "[0., 2.]", "[0., 1.]")
relu2, relu2_backward = _element_wise("relu2", "max(x, 0)²", "[0., 4.]", "[0., 4.]")
tanh, tanh_backward = _element_wise("tanh", "tanh x", "[-0.7616,  0.964 ]", "[0.42  , 0.0707]")
gelu_tanh, gelu_tanh_backward = _element_wise("gelu_tanh", "x/2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))",
                                              "[-0.1588,  1.9546]", "[-0.083 ,  1.0861]")
softplus, softplus_backward = _element_wise("softplus", "ln(1 + e^x)", "[0.3133, 2.1269]", "[0.2689, 0.8808]")
hard_swish, hard_swish_backward = _element_wise("hard_swish", "x · min(1, max(0, (x + 3)/6))",
                                                "[-0.3333,  1.6667]", "[0.1667, 1.1667]")
hard_sigmoid, hard_sigmoid_backward = _element_wise("hard_sigmoid", "min(1, max(0, (x + 3)/6))",
                                                    "[0.3333, 0.8333]", "[0.1667, 0.1667]")
mish, mish_backward = _element_wise("mish", "x · tanh(ln(1 + e^x))", "[-0.3034,  1.944 ]", "[0.0592, 1.0693]")
exp, exp_backward = _element_wise("exp", "e^x", "[0.3679, 7.3891]", "[0.3679, 7.3891]")
expm1, expm1_backward = _element_wise("expm1", "e^x - 1", "[-0.6321,  6.3891]", "[0.3679, 7.3891]")
softsign, softsign_backward = _element_wise("softsign", "x / (1 + |x|)", "[-0.5   ,  0.6667]", "[0.25  , 0.1111]")


def _gelu(approximate: str) -> Activation:
    if approximate not in ("none", "tanh"):
        raise arrays.unexpected("approximate", "'none' or 'tanh'", approximate)
    return "gelu" if approximate == "none" else "gelu_tanh"


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
