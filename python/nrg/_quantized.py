"""Quantized rows (nrg/quantize.h): shapes, and the fields packed and scales of the structs that write them."""
from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from . import _arrays as arrays
from ._library import CONSTANTS, enum, function
from ._types import Array

Shapes = Tuple[Tuple[int, ...], Optional[Tuple[int, ...]]]


def number(name: str) -> int:
    try:
        value = enum("nrg_quant_format", name, "NRG_QUANT_", "format")
    except ValueError as error:  # with ggml's spelling of q8_K
        listed, _, got = str(error).rpartition(", got ")
        raise ValueError(f"{listed.replace('none, ', '').replace('q8_k', 'q8_K')}, got {got}") from None
    if value == CONSTANTS["NRG_QUANT_NONE"]:
        raise ValueError(f"format: expected a format of bytes, got {name!r}")
    return value


def is_int8(number: int) -> bool:
    """Whether scales are a tensor in addition to the bytes."""
    return bool(function("nrg_quant_has_scales")(number))


def rows_together(number: int) -> int:
    return int(function("nrg_quant_rows")(number))


def block(number: int) -> int:
    """Elements of a block, 0 for a full row."""
    return int(function("nrg_quant_block")(number))


def row_bytes(number: int, dim: int) -> int:
    return int(function("nrg_quant_bytes")(number, dim))


def row_scales(number: int, dim: int) -> int:
    return int(function("nrg_quant_scales")(number, dim))


def shapes(number: int, leading: Tuple[int, ...], dim: int, name: str = "x") -> Shapes:
    """Returns the shapes of the bytes and of the scales, None if the bytes contain them. name: the argument with these rows."""
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


def fill(args: Any, format: str, rounding: Optional[str], leading: Sequence[int], dim: int, packed: Any = None, scales: Any = None,
         name: str = "x", options: Any = None) -> List[Array]:
    """Sets dense bytes (and scales), new or given, in a struct that writes them. options: the struct with the format, if it differs."""
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
            raise arrays.unexpected("out", f"adjacent elements ({arrays.COPY})", array)
    args.packed = arrays.address(packed)
    args.scales = arrays.address(results[1]) if scales_shape else None
    return results
