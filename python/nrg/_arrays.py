"""NumPy arrays as the C library's tensors: dtypes, addresses, and strides in up to four dimensions. Nothing here copies an array: what
the library cannot read in place is an error that names a remedy."""
from __future__ import annotations

import ctypes
import inspect
import math
import operator
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._library import CONSTANTS, Error, call, enum, new, share
from ._types import Array, ArrayLike, DType, F32Array

F32: int = CONSTANTS["NRG_F32"]
F16: int = CONSTANTS["NRG_F16"]
BF16: int = CONSTANTS["NRG_BF16"]
NAMES = {"f32": F32, "float32": F32, "f16": F16, "float16": F16, "bf16": BF16, "bfloat16": BF16}
LONG_NAMES = {F32: "float32", F16: "float16", BF16: "bfloat16"}
COPY = "np.ascontiguousarray makes a copy"


def described(array: Array) -> str:
    """Returns "float32 [2, 3]", for errors."""
    return f"{array.dtype.name} {list(array.shape)}"


def unexpected(name: str, wanted: object, got: object) -> ValueError:
    """Returns the error for a wrong argument: it names the argument, the expected value and the given value."""
    return ValueError(f"{name}: expected {wanted}, got {described(got) if isinstance(got, np.ndarray) else repr(got)}")


def sizes(*of: object) -> str:
    """Returns "[2, heads, 64]", for errors: str() of a list would quote names."""
    return f"[{', '.join(map(str, of))}]"


def as_array(value: ArrayLike, name: str) -> Array:
    """Returns an ndarray over the memory of value: an array, or an object that exposes one, such as a CPU tensor of torch."""
    if value is None:
        raise unexpected(name, "an array", None)
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if not array.dtype.isnative:
        raise unexpected(name, "an array in this machine's byte order (array.astype(array.dtype.newbyteorder('=')))", array.dtype.str)
    return array


def named(dtype: DType) -> int:
    """Returns the nrg_dtype of "f32", "f16", "bf16", or of a NumPy dtype."""
    found = NAMES.get(str(dtype)) or NAMES.get(getattr(dtype, "__name__", ""))
    if found is None:
        raise unexpected("dtype", "f32, f16 or bf16", dtype)
    return found


def kind_of(array: Array, name: str, dtype: DType) -> int:
    """Returns the nrg_dtype of an array. bf16 is bfloat16 of ml_dtypes, or uint16 if the call specifies dtype="bf16"."""
    kind = array.dtype
    is_bf16 = dtype is not None and named(dtype) == BF16
    if kind == np.float32:
        return F32
    if kind == np.float16:
        return F16
    if kind.name == "bfloat16" or (kind == np.uint16 and is_bf16):
        return BF16
    error = unexpected(name, "float32, float16, bfloat16 of ml_dtypes, or uint16 with dtype='bf16'", array)
    raise ValueError(f"{error}; {name}.astype(np.float32) converts it") if kind == np.float64 else error


def number(array: Array, name: str, dtype: DType = None) -> int:
    """Returns the nrg_dtype of the array that `dtype` describes, and checks that the two agree."""
    kind = kind_of(array, name, dtype)
    if dtype is not None and kind != named(dtype):
        raise unexpected(name, f"{LONG_NAMES[named(dtype)]}, as dtype specifies", array)
    return kind


def number_beside(array: Array, name: str, dtype: DType, other: int, of: str = "x") -> int:
    """Returns the nrg_dtype of an array that is float32 or has the dtype of another argument."""
    kind = kind_of(array, name, dtype)
    if kind not in (F32, other):
        raise unexpected(name, f"float32{f' or {LONG_NAMES[other]}' if other != F32 else ''}, since {of} is {LONG_NAMES[other]}", array)
    return kind


def number_of_vectors(vectors: Mapping[str, Optional[Array]], dtype: DType, other: int, of: str = "x") -> int:
    """Returns the nrg_dtype that all of {name: weight or bias} have: float32 or that of another argument. 0 for none."""
    first: Optional[Tuple[str, int]] = None
    for name, array in vectors.items():
        if array is None:
            continue
        kind = number_beside(array, name, dtype, other, of)
        if first is not None and first[1] != kind:
            raise unexpected(name, f"{LONG_NAMES[first[1]]} like {first[0]}", array)
        first = first or (name, kind)
    return first[1] if first else 0


def integers(value: Optional[ArrayLike], name: str, shape: Sequence[int], kind: Any = np.int32, optional: bool = True, of: str = "") -> Any:
    """Returns ids, positions or slots as an array of the library's integer type, in C order. Other integers are converted if they fit.
    The caller keeps the array. of: the names of the dimensions, for errors."""
    wanted = f"{np.dtype(kind).name} (or other integers that fit) {of and of + ' = '}{list(shape)}"
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


def explained(error: Error, name: str, ids: Array, rows: int, ignored: Optional[int] = None) -> Error:
    """Returns the error for an id that is outside of a table, with the id; otherwise the same error."""
    outside = ids[((ids < 0) | (ids >= rows)) & (True if ignored is None else ids != ignored)] if error.status == "NRG_ERR_POSITION" else ids[:0]
    if not outside.size:
        return error
    function, status, _ = error._made_of
    return Error(function, status, f"{name}: expected integers from 0 to {rows - 1}, got {outside.flat[0]}")


def name_function(function: Any, name: str, text: str) -> None:
    """Gives a function that another one has made its public name and its text."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = inspect.cleandoc(text)


def counted(value: Any, name: str) -> Tuple[int, Any]:
    """Splits a number of rows, or their positions, into the number and the positions or None."""
    if np.ndim(value) == 0:
        return count(value.item() if isinstance(value, np.ndarray) else value, name), None
    positions = integers(value, name, np.shape(value)[-1:])
    return len(positions), positions


def count(value: Any, name: str, least: int = 0) -> int:
    """Returns a number of elements as an int."""
    try:
        number_of = operator.index(value)
    except TypeError:
        raise unexpected(name, "an integer", value) from None
    if number_of < least:
        raise unexpected(name, f"an integer from {least}", number_of)
    return number_of


def pair(out: Any, name: str = "out") -> Tuple[Any, Any]:
    """Returns two arrays for results; two None for None."""
    if out is None:
        return None, None
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise unexpected(name, "two arrays, or None", out)
    return out[0], out[1]


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """Returns the NumPy dtype of "f32", "f16", "bf16", or of a NumPy dtype. bf16 without ml_dtypes is uint16."""
    wanted = named(dtype)
    if wanted == BF16:
        try:
            import ml_dtypes  # type: ignore[import]  # pylint: disable=import-outside-toplevel
        except ImportError:
            return np.dtype(np.uint16)
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(np.float32 if wanted == F32 else np.float16)


def to_bf16(x: ArrayLike) -> Array:
    """Converts float32 to bfloat16 in uint16, for programs without ml_dtypes. Rounds to nearest, ties to even.

    Parameters:
    - x: float32 [...], or a list.

    Returns uint16 [...].

    >>> nrg.to_bf16(np.array([1, 1.5], np.float32))
    array([16256, 16320], dtype=uint16)
    """
    array = np.array(x, np.float32) if isinstance(x, (list, tuple)) else as_array(x, "x")
    if array.dtype != np.float32:
        raise unexpected("x", "float32", array)
    bits = np.ascontiguousarray(array).view(np.uint32)
    rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16
    nan = (bits & 0x7fffffff) > 0x7f800000
    return np.asarray(np.where(nan, (bits >> 16) | 0x40, rounded)).astype(np.uint16)


def from_bf16(x: ArrayLike) -> F32Array:
    """Converts bfloat16 to float32, exactly.

    Parameters:
    - x: uint16 [...], or bfloat16 of ml_dtypes.

    Returns float32 [...].

    >>> nrg.from_bf16(np.array([16256, 16320], np.uint16))
    array([1. , 1.5], dtype=float32)
    """
    array = as_array(x, "x")
    if array.dtype != np.uint16 and array.dtype.name != "bfloat16":
        raise unexpected("x", "uint16, or bfloat16 of ml_dtypes", array)
    return (np.ascontiguousarray(array).view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def address(array: Any) -> Any:
    return array.__array_interface__["data"][0] if array is not None else None


def output(out: Any, name: str, shape: Sequence[int], dtype: Any) -> Array:
    """Returns `out` if it can hold a result of this shape and dtype, or a new array for None."""
    if out is None:
        return new(shape, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name}: expected an ndarray, got {type(out).__name__}")
    if out.shape != tuple(shape) or out.dtype != dtype:
        raise unexpected(name, f"{np.dtype(dtype).name} {list(shape)}", out)
    if not out.flags.writeable:
        raise ValueError(f"{name}: expected a writable array, got a read-only one")
    return out


def result(out: Any, shape: Sequence[int], dtype: DType) -> Array:
    """Returns `out`, or a new array of a dtype that the caller selects, float32 by default."""
    if out is None or not isinstance(out, np.ndarray):
        return output(out, "out", shape, numpy_dtype(dtype or "f32"))
    number(out, "out", dtype)
    return output(out, "out", shape, out.dtype)


def dense(value: Optional[ArrayLike], name: str, shape: Sequence[int], dtype: Any, optional: bool = True) -> Any:
    """Returns an array of this shape and dtype (None: any that nrg has) whose elements are adjacent; None for None."""
    if value is None:
        if optional:
            return None
        raise unexpected(name, f"an array {list(shape)}", None)
    array = as_array(value, name)
    if array.shape != tuple(shape) or (dtype is not None and array.dtype != dtype):
        raise unexpected(name, f"{'' if dtype is None else np.dtype(dtype).name + ' '}{list(shape)}", array)
    if not array.flags.c_contiguous:
        raise unexpected(name, f"adjacent elements ({COPY})", f"strides {array.strides}")
    return array


def weights(value: Optional[ArrayLike], name: str, shape: Sequence[int], like: Array) -> Any:
    """Returns a weight or bias as dense() does. A list becomes an array of float32."""
    if isinstance(value, list) and len(value) != shape[-1] and all(type(each) is int for each in value):  # layer_norm(x, [64])
        raise unexpected(name, f"{shape[-1]} elements, since a list is a weight (write a shape as a tuple: {tuple(value)})", value)
    if isinstance(value, (list, tuple)):
        value = np.array(value, np.float32)
    return dense(value, name, shape, None)


def adjacent(array: Array, name: str) -> Array:
    """Checks that the elements of each row are adjacent and that rows are not in reverse order; other strides are free."""
    if array.ndim == 0:
        raise unexpected(name, "rows of elements [..., dim]", array)
    if array.size and array.shape[-1] > 1 and array.strides[-1] != array.itemsize:
        raise ValueError(f"{name}: expected rows of adjacent elements ({COPY}), got {described(array)} with strides {array.strides}")
    if array.size and any(stride < 0 for stride, size in zip(array.strides[:-1], array.shape[:-1]) if size > 1):
        raise ValueError(f"{name}: expected rows in ascending order ({COPY}), got {described(array)} with strides {array.strides} in reverse")
    return array


def last_axis(array: Array, name: str, dim: Optional[int], axis: Optional[int]) -> None:
    """Checks dim= (PyTorch) and axis= (NumPy): the last dimension is the only one that nrg computes over."""
    for argument, value in (("dim", dim), ("axis", axis)):
        if value is None:
            continue
        if isinstance(value, (tuple, list)) and len(value) == 1:
            value = value[0]
        if not isinstance(value, (tuple, list)):
            value = count(value, argument, -max(array.ndim, 1))
        if not isinstance(value, (tuple, list)) and value >= array.ndim:
            raise unexpected(argument, f"the last dimension of {name}, -1 or {array.ndim - 1}", value)
        if value not in (-1, array.ndim - 1):
            raise ValueError(f"{argument}: expected the last dimension of {name}, -1 or {array.ndim - 1}, got {value}; move another one there first: "
                             f"np.ascontiguousarray(np.moveaxis({name}, {value}, -1))")


def normalized(shape: Any, weight: Any, bias: Any) -> Tuple[Optional[Tuple[int, ...]], Any, Any]:
    """Sorts the arguments of a norm: (x, normalized_shape, weight, bias) of PyTorch, and (x, weight, bias). A tuple or an int is a
    shape. A list or an array is a weight."""
    if shape is None:
        return None, weight, bias
    for name, value in (("weight", weight), ("bias", bias)):
        if isinstance(value, (int, float)):  # layer_norm(x, weight, bias, 1e-6)
            raise unexpected(name, f"an array, or eps by name (eps={value!r})", value)
    if isinstance(shape, tuple) or (hasattr(shape, "__index__") and np.ndim(shape) == 0 and not isinstance(shape, np.ndarray)):
        return tuple(count(size, "normalized_shape") for size in (shape if isinstance(shape, tuple) else (shape,))), weight, bias
    if weight is not None and bias is not None:
        if isinstance(shape, list):
            raise unexpected("normalized_shape", f"a tuple or an int before weight and bias, such as {tuple(shape)}", shape)
        raise unexpected("normalized_shape", "a tuple or an int before weight and bias", shape if isinstance(shape, np.ndarray) else type(shape).__name__)
    return None, shape, weight if bias is None else bias


def trailing(array: Array, name: str, shape: Optional[Tuple[int, ...]]) -> Array:
    """Returns array with its last len(shape) dimensions as one, a view. None: array."""
    if shape is None:
        return array
    if not shape or array.shape[-len(shape):] != shape:
        raise unexpected(name, f"[..., {', '.join(map(str, shape))}], as normalized_shape specifies", array)
    return joined(array, name, array.ndim - len(shape), array.ndim)


def joined(array: Array, name: str, first: int, end: int) -> Array:
    """Returns a view with dimensions first to end - 1 as one; an error if the memory does not permit that."""
    if end - first == 1:
        return array
    size, stride = 1, array.itemsize
    for length, step in reversed(list(zip(array.shape[first:end], array.strides[first:end]))):
        if length != 1 and array.size:
            if size == 1:
                stride = step
            elif step != stride * size:
                raise unexpected(name, f"dimensions {first} to {end - 1} that merge into one ({COPY})", f"strides {array.strides}")
        size *= length
    return np.lib.stride_tricks.as_strided(array, array.shape[:first] + (size,) + array.shape[end:],
                                           array.strides[:first] + (stride,) + array.strides[end:], writeable=array.flags.writeable)


class Rows:
    """Tensors [..., dim] that a call reads as rows in planes in volumes (nrg/base.h). The dimensions before the last are common to all;
    each tensor has its own strides. Dimensions that are adjacent in all tensors merge, so three are enough for dense ones."""

    def __init__(self, leading: Sequence[int]) -> None:
        self.leading = tuple(leading)
        self.tensors: Dict[str, Array] = {}  # by field
        self.names: Dict[str, str] = {}  # field: the argument of the Python function

    def add(self, name: str, array: Optional[Array], last: Optional[int] = None, repeats: bool = False, field: Optional[str] = None) -> Any:
        """Adds a tensor by the name of its argument, and of its field if that differs. last: the elements of a row. repeats: it may be
        broadcast to the others."""
        if array is None:
            return None
        kind = array.dtype

        def wanted() -> str:  # only for an error: a dtype's name takes microseconds
            return f"{kind.name} {sizes(*self.leading, 'dim' if last is None else last)}{', or a shape that broadcasts to it' if repeats else ''}"

        if array.ndim == 0 or array.ndim > len(self.leading) + 1 or (last is not None and array.shape[-1] != last):
            raise unexpected(name, wanted(), array)
        if array.shape[:-1] != self.leading and repeats:
            try:
                array = np.broadcast_to(array, self.leading + array.shape[-1:])
            except ValueError:
                raise unexpected(name, wanted(), array) from None
        if array.shape[:-1] != self.leading:
            raise unexpected(name, wanted(), array)
        adjacent(array, name)
        if not repeats and any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape)) and array.size:
            raise ValueError(f"{name}: expected rows that do not repeat ({COPY}), got {described(array)} with a stride of 0")
        self.tensors[field or name] = array
        self.names[field or name] = name
        return array

    def dimensions(self) -> List[Tuple[int, Dict[str, int]]]:
        """Returns [(size, {name: stride})], outermost first, at most three."""
        if 0 in self.leading:
            return [(0, {name: 0 for name in self.tensors})]
        merged: List[Tuple[int, Dict[str, int]]] = []
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
            raise ValueError(f"{names}: expected at most three dimensions of rows after merging adjacent ones ({COPY}), got {len(merged)} "
                             f"in {[*self.leading]}")
        return merged

    def one_stride(self, args: Any) -> None:
        """Sets sizes, addresses and strides of a struct whose call has no planes."""
        dimensions = self.dimensions()
        if len(dimensions) > 1:
            names = ", ".join(dict.fromkeys(self.names.values()))
            raise ValueError(f"{names}: expected rows with one common stride ({COPY}), got {len(dimensions)} dimensions of rows in {[*self.leading]}")
        args.rows = dimensions[0][0] if dimensions else 1
        for name, array in self.tensors.items():
            setattr(args, name, address(array))
            setattr(args, name + "_stride", dimensions[0][1][name] if dimensions else 0)

    def fill(self, args: Any) -> None:
        """Sets sizes, addresses and strides of a struct."""
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


def row_stride(array: Array, name: str) -> int:
    """Returns the stride of the rows of [rows, dim]."""
    rows = Rows(array.shape[:-1])
    rows.add(name, array)
    dimensions = rows.dimensions()
    if len(dimensions) > 1:
        raise unexpected(name, f"rows with one common stride ({COPY})", array)
    return dimensions[0][1][name] if dimensions else 0


def workspace(size: int) -> Any:
    """Returns bytes at an address that is a multiple of 8, or None for none."""
    return new(math.ceil(size / 8), np.uint64) if size else None


def reduce(name: str, specs: Sequence[Any], args: Any, threads: int, sums: bool) -> None:
    """Runs both phases of a backward pass, with a workspace if there are sums over rows."""
    memory = None
    if sums:
        size = ctypes.c_size_t()
        call(name + "_workspace", *specs, args, ctypes.addressof(size))
        memory = workspace(size.value)
        args.workspace, args.workspace_size = address(memory), size.value
    share(name, *specs, args, threads=threads)
    if sums:
        share(name + "_reduce", *specs, args, threads=threads)


def options(kinds: Mapping[str, Tuple[str, str]], given: Mapping[str, Any]) -> Dict[str, int]:
    """Converts names to numbers: kinds is {field: (enum, prefix)}."""
    return {field: enum(kind, given[field], prefix, field) for field, (kind, prefix) in kinds.items() if field in given}


def four(array: Array, name: str, repeats: bool = False) -> Tuple[Tuple[int, ...], List[int], int]:
    """Returns sizes, strides and repeats (nrg_repeat bits) of the first three of [batch, heads, queries, keys], or of the last of these.
    It is for calls that give each dimension a meaning, so it merges none."""
    adjacent(array, name)
    if array.ndim > 4:
        raise unexpected(name, "[batch, heads, queries, keys] or the last of these", array)
    missing = 4 - array.ndim
    sizes, strides = (1,) * missing + array.shape[:-1], [0] * missing + list(array.strides[:-1])
    repeat = 0
    for i, (size, stride) in enumerate(zip(sizes, strides)):
        if size > 1 and stride == 0 and array.size:
            if not repeats:
                raise ValueError(f"{name}: expected rows that do not repeat ({COPY}), got {described(array)} with a stride of 0")
            repeat |= 1 << (2 - i)
        strides[i] = stride if size > 1 else 0
    return sizes, strides, repeat


def fill_four(args: Any, name: str, array: Optional[Array], argument: Optional[str] = None, repeats: bool = False) -> None:
    """Sets {name} and {name}_strides. argument: the argument of the Python function, if its name differs."""
    if array is not None:
        _, strides, _ = four(array, argument or name, repeats)
        setattr(args, name, address(array))
        of = getattr(args, name + "_strides")
        of.batch, of.head, of.row = strides


def like(value: ArrayLike, name: str, x: Array, what: str = "x") -> Array:
    """Returns an array of x's shape and dtype."""
    array = as_array(value, name)
    if array.shape != x.shape or array.dtype != x.dtype:
        raise unexpected(name, f"{described(x)} like {what}", array)
    return array


def broadcast(value: ArrayLike, name: str, shape: Sequence[int]) -> Array:
    """Returns an array, broadcast to shape; its rows are adjacent."""
    array = adjacent(as_array(value, name), name)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise unexpected(name, f"{list(shape)}, or a shape that broadcasts to it", array) from None


def batches(tensors: Mapping[str, Optional[Array]]) -> Iterable[Tuple[Any, Dict[str, Any]]]:
    """Splits tensors of more than four dimensions into calls of four. The dimensions before the last three become one batch if the memory
    of all permits that. Otherwise each index becomes a call. Yields (index, {name: array})."""
    given = {name: array for name, array in tensors.items() if array is not None}
    try:
        merged = {name: joined(array, name, 0, array.ndim - 3) for name, array in given.items()}
    except ValueError:
        first = next(iter(given.values()))
        for index in np.ndindex(first.shape[:-4]):
            yield index, {name: array[index] if name in given else None for name, array in tensors.items()}  # type: ignore[index]
        return
    yield None, {name: merged.get(name) for name in tensors}
