"""What bytes with scales look like (nrg/quantize.h): shapes, and the fields packed and scales of the structs that write them."""
import numpy as np

from . import _arrays as arrays
from ._library import CONSTANTS, enum, function


def number(name):
    value = enum("nrg_quant_format", name, "NRG_QUANT_", "format")
    if value == CONSTANTS["NRG_QUANT_NONE"]:
        raise ValueError(f"format: expected one that has bytes, got {name!r}")
    return value


def is_int8(number):
    """Whether scales are a tensor beside the bytes."""
    return bool(function("nrg_quant_has_scales")(number))


def rows_together(number):
    return function("nrg_quant_rows")(number)


def block(number):
    """Elements of a block, 0 for a whole row."""
    return function("nrg_quant_block")(number)


def row_bytes(number, dim):
    return function("nrg_quant_bytes")(number, dim)


def row_scales(number, dim):
    return function("nrg_quant_scales")(number, dim)


def shapes(number, leading, dim, name="x"):
    """The shapes of the bytes and of scales, the latter None where the bytes have them. name: of the argument whose rows these are."""
    together = rows_together(number)
    if together > 1:
        if not leading or leading[-1] % together:
            raise ValueError(f"{name}: expected a multiple of {together} rows, which this format interleaves, got {[*leading, dim]}")
        leading = leading[:-1] + (leading[-1] // together,)
    if dim == 0 or (not is_int8(number) and dim % block(number)):
        wanted = "at least one element" if is_int8(number) else f"a multiple of {block(number)} elements"
        raise ValueError(f"{name}: expected rows of {wanted}, got {[*leading, dim]}")
    packed = leading + (row_bytes(number, dim),)
    return packed, leading + (row_scales(number, dim),) if is_int8(number) else None


def fill(args, format, rounding, leading, dim, packed=None, scales=None, name="x", options=None):
    """New bytes (and scales), or those given, into a struct that writes them, dense. options: the struct with the format, if another."""
    options = args if options is None else options
    options.format = number(format)
    options.rounding = enum("nrg_quant_rounding", rounding, "NRG_QUANT_ROUND_", "rounding")
    packed_shape, scales_shape = shapes(options.format, tuple(leading), dim, name)
    packed = arrays.output(packed, "out (packed)" if scales_shape else "out", packed_shape, np.int8 if scales_shape else np.uint8)
    results = [packed]
    if scales_shape:
        results.append(arrays.output(scales, "out (scales)", scales_shape, np.float32))
    elif scales is not None:
        raise arrays.unexpected("out", f"one array, since the bytes of {format} contain the scales", scales)
    for array in results:
        if not array.flags.c_contiguous:
            raise arrays.unexpected("out", "elements without gaps", array)
    args.packed = arrays.address(packed)
    args.scales = arrays.address(results[1]) if scales_shape else None
    return results
