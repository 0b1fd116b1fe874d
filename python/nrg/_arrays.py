"""NumPy arrays as the C library has tensors: dtypes, addresses, and strides in up to four dimensions. Nothing is copied here: what
the library cannot take as it lies is refused, with a sentence."""
import math

import numpy as np

from ._library import CONSTANTS, enum

F32, F16, BF16 = (CONSTANTS[name] for name in ("NRG_F32", "NRG_F16", "NRG_BF16"))
NAMES = {"f32": F32, "float32": F32, "f16": F16, "float16": F16, "bf16": BF16, "bfloat16": BF16}


def as_array(value, name):
    """An ndarray of what is one, or shows its memory as one (a tensor of torch on the CPU). The memory is the same."""
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if not array.dtype.isnative:
        raise ValueError(f"{name}: dtype {array.dtype.str} is not in this machine's order of bytes")
    return array


def named(dtype):
    """The nrg_dtype of "f32", "f16", "bf16", or of a NumPy dtype."""
    found = NAMES.get(str(dtype)) or NAMES.get(getattr(dtype, "__name__", ""))
    if found is None:
        raise ValueError(f"dtype {dtype!r} is none of f32, f16, bf16")
    return found


def number(array, name, dtype=None):
    """The nrg_dtype of an array. bf16 is ml_dtypes' bfloat16, or uint16 where the call says dtype="bf16"."""
    kind = array.dtype
    is_bf16 = dtype is not None and named(dtype) == BF16
    if kind == np.float32:
        return F32
    if kind == np.float16:
        return F16
    if kind.name == "bfloat16" or (kind == np.uint16 and is_bf16):
        return BF16
    raise ValueError(f"{name}: dtype {kind.name} is none of float32, float16, bfloat16 of ml_dtypes, or uint16 with dtype='bf16'")


def numpy_dtype(dtype):
    """The NumPy dtype of "f32", "f16", "bf16", or of a NumPy dtype. bf16 without ml_dtypes: uint16."""
    wanted = named(dtype)
    if wanted == BF16:
        try:
            import ml_dtypes  # pylint: disable=import-outside-toplevel
        except ImportError:
            return np.dtype(np.uint16)
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(np.float32 if wanted == F32 else np.float16)


def to_bf16(x):
    """float32 to bfloat16 as uint16, rounded to nearest, ties to even: for who has no ml_dtypes.

    x [...] float32  ->  [...] uint16"""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16
    nan = (bits & 0x7fffffff) > 0x7f800000
    return np.where(nan, (bits >> 16) | 0x40, rounded).astype(np.uint16)


def from_bf16(x):
    """bfloat16 (uint16 or ml_dtypes) to float32, exactly.

    x [...]  ->  [...] float32"""
    return (np.ascontiguousarray(x).view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def address(array):
    return array.__array_interface__["data"][0] if array is not None else None


def output(out, name, shape, dtype):
    """`out` if it can take a result of this shape and dtype, or a new array where it is None."""
    if out is None:
        return np.empty(shape, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} has to be an ndarray")
    if out.shape != tuple(shape) or out.dtype != dtype:
        raise ValueError(f"{name}: {out.dtype.name} {list(out.shape)} where {np.dtype(dtype).name} {list(shape)} is written")
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only")
    return out


def dense(value, name, shape, dtype, optional=True):
    """An array of exactly this shape and dtype (None: any that nrg has) whose elements follow each other."""
    if value is None:
        if optional:
            return None
        raise ValueError(f"{name} is needed")
    array = as_array(value, name)
    if array.shape != tuple(shape) or (dtype is not None and array.dtype != dtype):
        wanted = "" if dtype is None else np.dtype(dtype).name + " "
        raise ValueError(f"{name}: {array.dtype.name} {list(array.shape)} where {wanted}{list(shape)} is read")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: elements are not adjacent (strides {array.strides}); np.ascontiguousarray makes a copy that is")
    return array


def adjacent(array, name):
    """Whether elements of a row are, which is all that a stride cannot say."""
    if array.ndim == 0:
        raise ValueError(f"{name}: a number, where rows of elements are read")
    if array.size and array.shape[-1] > 1 and array.strides[-1] != array.itemsize:
        raise ValueError(f"{name}: elements of a row are not adjacent (strides {array.strides}); np.ascontiguousarray makes a copy that is")
    if array.size and any(stride < 0 for stride, size in zip(array.strides[:-1], array.shape[:-1]) if size > 1):
        raise ValueError(f"{name}: rows in reverse order (strides {array.strides}); np.ascontiguousarray makes a copy that is not")
    return array


class Rows:
    """Tensors [..., dim] of a call that sees them as rows in planes in volumes (nrg/base.h): the dimensions before the last, which
    all of them share, become rows, rows2 and rows3, and each keeps its own strides. Dimensions that follow each other in all
    tensors count as one, so that three are enough for what is dense, however many there are."""

    def __init__(self, leading):
        self.leading = tuple(leading)
        self.tensors = {}  # name: (array, multiple of rows that lie together)

    def add(self, name, array, last=None, repeats=False):
        """A tensor by the name of its field. last: of how many elements a row is. repeats: it may be broadcast to the others."""
        if array is None:
            return None
        if repeats and array.shape[:-1] != self.leading:
            if array.ndim > len(self.leading) + 1:
                raise ValueError(f"{name}: {list(array.shape)} does not repeat to {list(self.leading + array.shape[-1:])}")
            try:
                array = np.broadcast_to(array, self.leading + array.shape[-1:])
            except ValueError:
                raise ValueError(f"{name}: {list(array.shape)} does not repeat to {list(self.leading + array.shape[-1:])}") from None
        if array.shape[:-1] != self.leading or (last is not None and array.shape[-1] != last):
            raise ValueError(f"{name}: {list(array.shape)} where {list(self.leading) + [last]} is expected")
        adjacent(array, name)
        if not repeats and any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape)) and array.size:
            raise ValueError(f"{name} repeats rows (a stride of 0); np.ascontiguousarray makes a copy that does not")
        self.tensors[name] = array
        return array

    def dimensions(self):
        """[(size, {name: stride})], outermost first, at most three."""
        if 0 in self.leading:
            return [(0, {name: 0 for name in self.tensors})]
        merged = []
        for axis, size in enumerate(self.leading):
            if size == 1:
                continue
            strides = {name: array.strides[axis] for name, array in self.tensors.items()}
            if merged and all(merged[-1][1][name] == stride * size for name, stride in strides.items()):
                merged[-1] = (merged[-1][0] * size, strides)
            else:
                merged.append((size, strides))
        if len(merged) > 3:
            raise ValueError(f"rows of {list(self.leading)} lie in {len(merged)} dimensions, and nrg takes three: "
                             "np.ascontiguousarray makes a copy whose dimensions are one")
        return merged

    def fill(self, args, multiple=()):
        """Sizes, addresses and strides into the struct. multiple: names whose field of a row counts another tensor's rows."""
        dimensions = self.dimensions()[::-1]
        names = ["rows", "rows2", "rows3"]
        args.rows, args.rows2, args.rows3 = 1, 1, 1
        for i, (size, strides) in enumerate(dimensions):
            setattr(args, names[i], size)
            for name, stride in strides.items():
                if stride == 0 and size > 1:
                    setattr(args, name + "_repeat", getattr(args, name + "_repeat") | 1 << i)
                setattr(args, name + "_stride" + ["", "2", "3"][i], stride)
        for name, array in self.tensors.items():
            setattr(args, name, address(array))


def workspace(size):
    """Bytes that begin at a multiple of 8, or None for none."""
    return np.empty(math.ceil(size / 8), np.uint64) if size else None


def options(kinds, given):
    """Names to numbers: kinds is {field: (enum, prefix)}."""
    return {field: enum(kind, given[field], prefix) for field, (kind, prefix) in kinds.items() if field in given}


def four(array, name, repeats=False):
    """Of [batch, heads, queries, keys] or the last of these dimensions: the sizes and the strides of the first three, and which
    of them repeat as nrg_repeat bits. For calls where these dimensions mean something, so that none may be merged."""
    adjacent(array, name)
    if array.ndim > 4:
        raise ValueError(f"{name}: {list(array.shape)} has more dimensions than [batch, heads, queries, keys]")
    missing = 4 - array.ndim
    sizes, strides = (1,) * missing + array.shape[:-1], [0] * missing + list(array.strides[:-1])
    repeat = 0
    for i, (size, stride) in enumerate(zip(sizes, strides)):
        if size > 1 and stride == 0 and array.size:
            if not repeats:
                raise ValueError(f"{name} repeats rows (a stride of 0); np.ascontiguousarray makes a copy that does not")
            repeat |= 1 << (2 - i)
        strides[i] = stride if size > 1 else 0
    return sizes, strides, repeat


def fill_four(args, name, array, sizes=("batch", "head", "query")):
    """Address and strides of such a tensor into {name}, {name}_batch_stride, {name}_head_stride, {name}_query_stride."""
    if array is not None:
        _, strides, _ = four(array, name)
        setattr(args, name, address(array))
        for size, stride in zip(sizes, strides):
            setattr(args, f"{name}_{size}_stride", stride)


def like(value, name, x, what="x"):
    """An array of x's shape and dtype."""
    array = as_array(value, name)
    if array.shape != x.shape or array.dtype != x.dtype:
        raise ValueError(f"{name}: {array.dtype.name} {list(array.shape)} where {what} has {x.dtype.name} {list(x.shape)}")
    return array
