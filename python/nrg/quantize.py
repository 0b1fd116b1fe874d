"""Rows as bytes with scales, and back (nrg/quantize.h). `_quantized` has the shapes."""
from . import _arrays as arrays
from . import _quantized as quantized
from ._library import share, struct

FORMATS = """"q8_0", "q8_K": blocks of 32 and 256 with ggml's layout; "q8_0_4x4", "q8_0_4x8", "q8_0_8x4", "q8_0_8x8" and the same
              of q8_K: interleaved; "int8", "int8_32", "int8_64", "int8_128": bytes, and a scale for each row or so many elements"""


def quantize(x, format="q8_0", *, rounding="to_even", out=None, dtype=None, threads=1):
    """Rows of x as bytes with scales.

    x         [..., dim]
    format    {formats}
    rounding  "to_even" or "away": where ties go. docs/ops/quantize.md lists the functions of ggml with the same bytes as either
    out       packed, or of int8 (packed, scales): C-contiguous arrays for them

    Returns packed, uint8 [..., bytes of a row]; of int8 (packed int8 [..., dim], scales float32 [..., scales of a row]). Of
    interleaved formats a row of packed holds 4 or 8 rows of x.
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


def dequantize(packed, scales=None, format="q8_0", *, dtype=None, out=None, threads=1):
    """The numbers that bytes with scales stand for.

    packed, scales  as quantize() returned them; scales for int8 only
    format          {formats}
    dtype           of the result: "f32", "f16", "bf16"; None: out's, or float32
    out             [..., dim]

    Returns [..., dim].
    """
    packed = arrays.adjacent(arrays.as_array(packed, "packed"), "packed")
    number = quantized.number(format)
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
    if scales is not None and not scales_shape:
        raise arrays.unexpected("scales", f"None, since the bytes of {format} contain the scales", scales)
    o = arrays.result(out, leading + (dim,), dtype)
    rows = arrays.Rows(leading)
    rows.add("out", o, dim, field="o")
    args = struct("nrg_dequantize_args", format=number, dtype=arrays.number(o, "out", dtype), dim=dim, packed=arrays.address(packed),
                  scales=arrays.address(scales))
    rows.fill(args)
    share("nrg_dequantize", args, threads=threads)
    return o


for _function in (quantize, dequantize):
    _function.__doc__ = _function.__doc__.replace("{formats}", FORMATS)
