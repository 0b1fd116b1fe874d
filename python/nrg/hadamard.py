"""The Hadamard rotation of rows (nrg/hadamard.h), which spreads outliers before rows are quantized.

    rotate to quantize    hadamard"""
from __future__ import annotations

from typing import Optional

from . import _arrays as arrays
from ._library import planned, share, struct
from ._types import Array, ArrayLike, DType


def _rotate(function: str, name: str, value: ArrayLike, out: Optional[Array], dtype: DType, threads: int) -> Array:
    x = arrays.adjacent(arrays.as_array(value, name), name)
    if x.shape[-1] not in (64, 128, 256, 512):
        raise arrays.unexpected(name, "rows of 64, 128, 256 or 512 elements", x)
    o = arrays.output(out, "out", x.shape, x.dtype)
    rows = arrays.Rows(x.shape[:-1])
    rows.add(name, x, field="x")
    rows.add("out", o, field="o")
    args = struct("nrg_hadamard_args", dtype=arrays.number(x, name, dtype), dim=x.shape[-1])
    rows.one_stride(args)
    share(function, args, threads=threads)
    return o


@planned
def hadamard(x: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Rotates each row by the Hadamard matrix in Sylvester's order, divided by √dim.

    The rotation is its own inverse. It spreads outliers over a row, so that quantize() loses less.

    Parameters:
    - x: [..., dim] with dim 64, 128, 256 or 512. Its rows have one common stride.
    - out: the array for the result. It may be x.

    Returns an array like x.

    >>> x = np.zeros((1, 64), np.float32)
    >>> x[0, 3] = 8
    >>> nrg.hadamard(x)[0, :6]
    array([ 1., -1., -1.,  1.,  1., -1.], dtype=float32)
    """
    return _rotate("nrg_hadamard_forward", "x", x, out, dtype, threads)


@planned
def hadamard_backward(d_o: ArrayLike, *, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    """Returns the gradient of hadamard(): the same rotation of d_o.

    Parameters:
    - d_o: [..., dim], as x in hadamard().
    - out: the array for the result. It may be d_o.

    Returns an array like d_o.

    >>> x = np.ones((2, 128), np.float32)
    >>> nrg.hadamard_backward(nrg.hadamard(x)).round(3)[0, :3]
    array([1., 1., 1.], dtype=float32)
    """
    return _rotate("nrg_hadamard_backward", "d_o", d_o, out, dtype, threads)
