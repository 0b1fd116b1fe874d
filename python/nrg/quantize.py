"""Quantized rows (nrg/quantize.h): bytes with scales, and back. `_quantized` has the shapes.

    quantize              quantize  dequantize (no backward)  format= of norms and gates"""
from __future__ import annotations

from typing import Any, Optional, Tuple, Union, overload

from . import _arrays as arrays
from . import _quantized as quantized
from ._library import planned, share, struct
from ._types import Array, ArrayLike, BlockFormat, ByteFormat, DType, F32Array, Rounding


@overload
def quantize(x: ArrayLike, format: BlockFormat = "q8_0", *, rounding: Rounding = "to_even", out: Optional[Array] = None,
             dtype: DType = None, threads: int = 1) -> Array:
    ...


@overload
def quantize(x: ArrayLike, format: ByteFormat, *, rounding: Rounding = "to_even", out: Optional[Tuple[Array, Array]] = None,
             dtype: DType = None, threads: int = 1) -> Tuple[Array, F32Array]:
    ...


@overload
def quantize(x: ArrayLike, format: str, *, rounding: Rounding = "to_even", out: Any = None, dtype: DType = None, threads: int = 1) -> Any:
    ...


@planned
def quantize(x: ArrayLike, format: str = "q8_0", *, rounding: Rounding = "to_even", out: Any = None, dtype: DType = None,
             threads: int = 1) -> Any:
    """Converts each row to bytes with scales.

    Parameters:
    - x: [..., dim].
    - format: "q8_0" and "q8_K": blocks of 32 and 256 elements in ggml's layout. "q8_0_4x4", "q8_0_4x8", "q8_0_8x4", "q8_0_8x8", and the
      same of q8_K: blocks of 4 or 8 rows, interleaved. "int8": one scale per row. "int8_32", "int8_64", "int8_128": one scale per 32, 64
      or 128 elements.
    - rounding: "to_even" or "away", the direction of ties. docs/ops/quantize.md lists ggml's functions with equal bytes.
    - out: a contiguous array for the bytes. For int8: (bytes, scales).

    Returns uint8 [..., bytes of a row]. For int8: (int8 [..., dim], float32 [..., scales of a row]). A row of an interleaved format holds
    4 or 8 rows of x.

    >>> nrg.quantize(np.ones((2, 64), np.float32)).shape       # q8_0: 34 bytes for 32 elements
    (2, 68)
    >>> q, scales = nrg.quantize(np.array([[127, -64]], np.float32), "int8")
    >>> q, scales
    (array([[127, -64]], dtype=int8), array([[1.]], dtype=float32))
    """
    x = arrays.adjacent(arrays.as_array(x, "x"), "x")
    rows = arrays.Rows(x.shape[:-1])
    dim = x.shape[-1]
    args = struct("nrg_quantize_args", dtype=arrays.number(x, "x", dtype), dim=dim)
    rows.add("x", x)
    given = arrays.pair(out) if isinstance(out, (tuple, list)) else (out, None)
    results = quantized.fill(args, format, rounding, x.shape[:-1], dim, *given)
    rows.fill(args)
    share("nrg_quantize", args, threads=threads)
    return results[0] if len(results) == 1 else tuple(results)


@planned
def dequantize(packed: ArrayLike, scales: Optional[ArrayLike] = None, format: Union[BlockFormat, ByteFormat, str] = "q8_0", *,
               dtype: DType = None, out: Optional[Array] = None, threads: int = 1) -> Array:
    """Converts bytes with scales to numbers.

    Parameters:
    - packed, scales: as quantize() returned them. Only int8 has scales.
    - format: as in quantize().
    - dtype: "f32", "f16" or "bf16", the dtype of the result. None: that of out, or float32.
    - out: the array for the result, [..., dim].

    Returns an array [..., dim].

    >>> nrg.dequantize(nrg.quantize(np.full((1, 32), 127, np.float32)))[0, :3]
    array([127., 127., 127.], dtype=float32)
    >>> nrg.dequantize(*nrg.quantize(np.array([[127, -64]], np.float32), "int8"), "int8")
    array([[127., -64.]], dtype=float32)
    """
    packed = arrays.adjacent(arrays.as_array(packed, "packed"), "packed")
    number = quantized.number(format)
    if scales is not None and not quantized.is_int8(number):
        raise arrays.unexpected("scales", f"None with format={format!r}, whose bytes contain the scales; for bytes of int8 pass format='int8'",
                                arrays.as_array(scales, "scales"))
    leading, length = packed.shape[:-1], packed.shape[-1]
    together = quantized.rows_together(number)
    if together > 1:
        if not leading:
            raise arrays.unexpected("packed", f"[..., rows / {together}, bytes]", packed)
        leading = leading[:-1] + (leading[-1] * together,)
    block = quantized.block(number)
    size = 1 if quantized.is_int8(number) else quantized.row_bytes(number, block)
    if length == 0 or length % size:
        raise arrays.unexpected("packed", f"rows of a multiple of {size} bytes", packed)
    dim = length if quantized.is_int8(number) else length // size * block
    packed_shape, scales_shape = quantized.shapes(number, leading, dim, "packed")
    packed = arrays.dense(packed, "packed", packed_shape, "int8" if scales_shape else "uint8")
    scales = arrays.dense(scales, "scales", scales_shape, "float32", optional=False) if scales_shape else scales
    o = arrays.result(out, leading + (dim,), dtype)
    rows = arrays.Rows(leading)
    rows.add("out", o, dim, field="o")
    args = struct("nrg_dequantize_args", format=number, dtype=arrays.number(o, "out", dtype), dim=dim, packed=arrays.address(packed),
                  scales=arrays.address(scales))
    rows.fill(args)
    share("nrg_dequantize", args, threads=threads)
    return o
