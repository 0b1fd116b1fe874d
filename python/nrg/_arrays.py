"""NumPy arrays as the C library has tensors: dtypes, addresses, and strides in up to four dimensions. Nothing is copied here: what
the library cannot take as it lies is refused, with a sentence."""
import math
import operator

import numpy as np

from ._library import CONSTANTS, enum

F32, F16, BF16 = (CONSTANTS[name] for name in ("NRG_F32", "NRG_F16", "NRG_BF16"))
NAMES = {"f32": F32, "float32": F32, "f16": F16, "float16": F16, "bf16": BF16, "bfloat16": BF16}
LONG_NAMES = {F32: "float32", F16: "float16", BF16: "bfloat16"}


def described(array):
    """"float32 [2, 3]", for errors."""
    return f"{array.dtype.name} {list(array.shape)}"


def unexpected(name, wanted, got):
    """The error for an argument that is not what was expected: it names the argument, and what was given."""
    return ValueError(f"{name}: expected {wanted}, got {described(got) if isinstance(got, np.ndarray) else repr(got)}")


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
        raise unexpected("dtype", "f32, f16 or bf16", dtype)
    return found


def kind_of(array, name, dtype):
    """The nrg_dtype of an array. bf16 is ml_dtypes' bfloat16, or uint16 where the call specifies dtype="bf16"."""
    kind = array.dtype
    is_bf16 = dtype is not None and named(dtype) == BF16
    if kind == np.float32:
        return F32
    if kind == np.float16:
        return F16
    if kind.name == "bfloat16" or (kind == np.uint16 and is_bf16):
        return BF16
    raise unexpected(name, "float32, float16, bfloat16 of ml_dtypes, or uint16 with dtype='bf16'", array)


def number(array, name, dtype=None):
    """The nrg_dtype of the array that `dtype` is about: it holds that, or no dtype is given."""
    kind = kind_of(array, name, dtype)
    if dtype is not None and kind != named(dtype):
        raise unexpected(name, f"{LONG_NAMES[named(dtype)]}, as dtype specifies", array)
    return kind


def number_beside(array, name, dtype, other, of="x"):
    """The nrg_dtype of an array that has the dtype of another argument, or is float32."""
    kind = kind_of(array, name, dtype)
    if kind not in (F32, other):
        raise unexpected(name, f"float32{f' or {LONG_NAMES[other]}' if other != F32 else ''}, beside {LONG_NAMES[other]} of {of}", array)
    return kind


def number_of_vectors(vectors, dtype, other, of="x"):
    """The nrg_dtype that all of {name: weight or bias} have, which is that of another argument or float32; 0 for none."""
    first = None
    for name, array in vectors.items():
        if array is None:
            continue
        kind = number_beside(array, name, dtype, other, of)
        if first is not None and first[1] != kind:
            raise unexpected(name, f"{LONG_NAMES[first[1]]} like {first[0]}", array)
        first = first or (name, kind)
    return first[1] if first else 0


def integers(value, name, shape, kind=np.int32, optional=True):
    """Ids, positions or slots as an array of the library's type; another type of integers is converted, with a check. What is not an
    array of these in C order is copied, since the library has no strides for it. The caller keeps the array."""
    wanted = f"{np.dtype(kind).name} (or other integers that fit) {list(shape)}"
    if value is None:
        if optional:
            return None
        raise unexpected(name, wanted, None)
    array = as_array(value, name)
    if array.shape != tuple(shape) or not (np.issubdtype(array.dtype, np.integer) or (array.size == 0 and not isinstance(value, np.ndarray))):
        raise unexpected(name, wanted, array)
    if array.dtype != kind:
        limits = np.iinfo(kind)
        outside = array[(array < limits.min) | (array > limits.max)]
        if outside.size:
            raise ValueError(f"{name}: expected {wanted}, got {array.dtype.name} with {outside.flat[0]}")
    return np.ascontiguousarray(array, kind).reshape(shape)


def counted(value, name):
    """Of a number of rows, or their positions: the number, and the positions or None."""
    if np.ndim(value) == 0:
        return count(value.item() if isinstance(value, np.ndarray) else value, name), None
    positions = integers(value, name, np.shape(value)[-1:])
    return len(positions), positions


def count(value, name, least=0):
    """A number of elements, as an int."""
    try:
        number_of = operator.index(value)
    except TypeError:
        raise unexpected(name, "an integer", value) from None
    if number_of < least:
        raise unexpected(name, f"an integer from {least}", number_of)
    return number_of


def pair(out, name="out"):
    """Two arrays for results, or None for two new ones."""
    if out is None:
        return None, None
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise unexpected(name, "two arrays, or None", out)
    return tuple(out)


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
        raise TypeError(f"{name}: expected an ndarray, got {type(out).__name__}")
    if out.shape != tuple(shape) or out.dtype != dtype:
        raise unexpected(name, f"{np.dtype(dtype).name} {list(shape)}", out)
    if not out.flags.writeable:
        raise ValueError(f"{name}: expected an array that can be written, got one that is read-only")
    return out


def exactly(value, name, shape, dtype):
    """An array of this shape and dtype, with any strides."""
    array = as_array(value, name)
    if array.shape != tuple(shape) or array.dtype != dtype:
        raise unexpected(name, f"{np.dtype(dtype).name} {list(shape)}", array)
    return array


def result(out, shape, dtype):
    """`out`, or a new array of a dtype that the caller chooses, float32 by default."""
    if out is None or not isinstance(out, np.ndarray):
        return output(out, "out", shape, numpy_dtype(dtype or "f32"))
    number(out, "out", dtype)
    return output(out, "out", shape, out.dtype)


def dense(value, name, shape, dtype, optional=True):
    """An array of exactly this shape and dtype (None: any that nrg has) whose elements follow each other."""
    if value is None:
        if optional:
            return None
        raise unexpected(name, f"an array {list(shape)}", None)
    array = as_array(value, name)
    if array.shape != tuple(shape) or (dtype is not None and array.dtype != dtype):
        raise unexpected(name, f"{'' if dtype is None else np.dtype(dtype).name + ' '}{list(shape)}", array)
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: elements are not adjacent (strides {array.strides}); np.ascontiguousarray makes a copy that is")
    return array


def adjacent(array, name):
    """Whether elements of a row are, which is all that a stride cannot say."""
    if array.ndim == 0:
        raise unexpected(name, "rows of elements [..., dim]", array)
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
        self.tensors = {}  # field: array
        self.names = {}  # field: the argument of the Python function

    def add(self, name, array, last=None, repeats=False, field=None):
        """A tensor by the name of its argument, and of its field if that is another one. last: the elements of a row. repeats: it may
        be broadcast to the others."""
        if array is None:
            return None
        shape = f"{array.dtype.name} {[*self.leading, 'dim' if last is None else last]}"
        if array.ndim == 0 or array.ndim > len(self.leading) + 1 or (last is not None and array.shape[-1] != last):
            raise unexpected(name, f"{shape}{', or what repeats to that' if repeats else ''}", array)
        if array.shape[:-1] != self.leading and repeats:
            try:
                array = np.broadcast_to(array, self.leading + array.shape[-1:])
            except ValueError:
                raise unexpected(name, f"{shape}, or what repeats to that", array) from None
        if array.shape[:-1] != self.leading:
            raise unexpected(name, shape, array)
        adjacent(array, name)
        if not repeats and any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape)) and array.size:
            raise ValueError(f"{name}: rows repeat (a stride of 0); np.ascontiguousarray makes a copy whose rows do not")
        self.tensors[field or name] = array
        self.names[field or name] = name
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
            names = ", ".join(dict.fromkeys(self.names.values()))
            raise ValueError(f"{names}: rows of {list(self.leading)} lie in {len(merged)} dimensions, and nrg takes three: "
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
                getattr(args, name + "_stride")[i] = stride
        for name, array in self.tensors.items():
            setattr(args, name, address(array))


def workspace(size):
    """Bytes that begin at a multiple of 8, or None for none."""
    return np.empty(math.ceil(size / 8), np.uint64) if size else None


def options(kinds, given):
    """Names to numbers: kinds is {field: (enum, prefix)}."""
    return {field: enum(kind, given[field], prefix, field) for field, (kind, prefix) in kinds.items() if field in given}


def four(array, name, repeats=False):
    """Of [batch, heads, queries, keys] or the last of these dimensions: the sizes and the strides of the first three, and which
    of them repeat as nrg_repeat bits. For calls where these dimensions mean something, so that none may be merged."""
    adjacent(array, name)
    if array.ndim > 4:
        raise unexpected(name, "[batch, heads, queries, keys] or the last of these", array)
    missing = 4 - array.ndim
    sizes, strides = (1,) * missing + array.shape[:-1], [0] * missing + list(array.strides[:-1])
    repeat = 0
    for i, (size, stride) in enumerate(zip(sizes, strides)):
        if size > 1 and stride == 0 and array.size:
            if not repeats:
                raise ValueError(f"{name}: rows repeat (a stride of 0); np.ascontiguousarray makes a copy whose rows do not")
            repeat |= 1 << (2 - i)
        strides[i] = stride if size > 1 else 0
    return sizes, strides, repeat


def fill_four(args, name, array, argument=None, repeats=False):
    """Address and strides of such a tensor into {name} and {name}_strides. argument: of the Python function, if that has another
    name."""
    if array is not None:
        _, strides, _ = four(array, argument or name, repeats)
        setattr(args, name, address(array))
        of = getattr(args, name + "_strides")
        of.batch, of.head, of.row = strides


def like(value, name, x, what="x"):
    """An array of x's shape and dtype."""
    array = as_array(value, name)
    if array.shape != x.shape or array.dtype != x.dtype:
        raise unexpected(name, f"{described(x)} like {what}", array)
    return array
