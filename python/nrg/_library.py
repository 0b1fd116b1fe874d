"""The C library: loading, calling with threads, errors, paths."""
from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import functools
import operator
import os
import pathlib
import sys
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Type, TypeVar

import numpy as np

from ._types import Array

try:
    from . import _abi
except ImportError:
    raise ImportError("nrg: expected an installed package, got the source tree: start Python in another folder, or pip install ./python") from None

try:
    from . import _replay  # type: ignore[attr-defined]
except ImportError:  # PyPy, Windows: each call runs as Python
    _replay = None

CONSTANTS = _abi.CONSTANTS
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Error(ValueError):
    """An error that the C library returned. The call wrote nothing.

    `status` is the name of the nrg_status (nrg/base.h).

    >>> try:
    ...     nrg.rms_norm(np.ones(4, np.float32), eps=-1)
    ... except nrg.Error as error:
    ...     print(error.status)
    NRG_ERR_EPS
    """

    def __init__(self, function: str, status: int, given: str = "") -> None:
        super().__init__(f"{function}: {text(_library.nrg_status_string(status))}{f' ({given})' if given else ''}")
        self._made_of = function, status, given
        self.status: str = next((name for name in _abi.ENUMS["nrg_status"] if CONSTANTS[name] == status), str(status))

    def __reduce__(self) -> Tuple[Type[Error], Tuple[str, int, str]]:
        return type(self), self._made_of  # multiprocessing pickles errors


Error.__module__ = "nrg"  # the name in tracebacks


def text(string: Optional[bytes]) -> str:
    return string.decode("utf-8") if string is not None else ""


def _numbers(status: int, arguments: Tuple[Any, ...]) -> str:
    """Returns the numbers in the structs of a call that a status is about, for its error."""
    if status not in (CONSTANTS["NRG_ERR_EPS"], CONSTANTS["NRG_ERR_CONSTANT"]):
        return ""
    found = []
    for made in arguments:
        if isinstance(made, ctypes.Structure):
            for field, kind in getattr(made, "_fields_"):
                value = getattr(made, field)
                usual = value in (0, _abi.DEFAULTS.get(type(made).__name__, {}).get(field)) and field != "eps"
                if kind in (ctypes.c_float, ctypes.c_double) and not usual and (("eps" in field) == (status == CONSTANTS["NRG_ERR_EPS"])):
                    found.append(f"{field} is {value:g}")
    return ", ".join(dict.fromkeys(found))


def _load() -> ctypes.CDLL:
    folder = pathlib.Path(__file__).parent
    for name in ("libnrg.so", "libnrg.dylib", "nrg.dll"):
        if (folder / name).exists():
            break
    else:
        raise ImportError(f"no nrg library in {folder}: pip install the folder python/ of the source tree")
    library = ctypes.CDLL(str(folder / name))
    for function, (result, arguments) in _abi.FUNCTIONS.items():
        try:
            pointer = getattr(library, function)
        except AttributeError:
            continue  # this build excludes the family; function() reports it
        pointer.restype = result
        pointer.argtypes = [kind for _, kind in arguments]
    return library


_library = _load()


def function(name: str) -> Any:
    try:
        return getattr(_library, name)
    except AttributeError:
        raise NotImplementedError(f"{name}: this build of the library excludes it (NRG_FAMILIES)") from None


def struct(name: str, **fields: Any) -> Any:
    """Returns a struct of the ABI with its size, these fields, and the defaults of the C constructors in the others. An unknown field
    is an error. None leaves a field at its default."""
    made = _abi.STRUCTS[name]()
    if made._fields_[0][0] == "size":
        made.size = ctypes.sizeof(made)
    put(made, **fields)
    for field, default in _abi.DEFAULTS.get(name, {}).items():
        if fields.get(field) is None:
            setattr(made, field, default(made, function) if callable(default) else default)
    return made


def put(made: ctypes.Structure, **fields: Any) -> None:
    """Sets fields of a struct; None leaves one as it is. A value out of a field's range is an error; ctypes would cut it off."""
    for field, value in fields.items():
        if not hasattr(type(made), field):
            raise TypeError(f"{type(made).__name__} has no field {field}")
        if value is None:
            continue
        if type(value) is int or (type(value) is not float and hasattr(value, "__index__")):  # NumPy's integers among them
            value = operator.index(value)
            setattr(made, field, value)
            if (getattr(made, field) or 0) != value:
                raise ValueError(f"{field}: expected an integer in the range of the C type, got {value}")
        else:
            try:
                setattr(made, field, value)
            except TypeError:
                raise TypeError(f"{field}: expected a number, got {value!r}") from None


def enum(kind: str, value: Optional[str], prefix: str, name: str) -> int:
    """Returns the number of a name, as in enum("nrg_gate", "post", "NRG_GATE_", "gate_mode"); None: 0. An unknown name is a ValueError for
    the argument `name`, which lists the names."""
    if value is None:
        return 0
    if prefix + str(value).upper() not in _abi.ENUMS[kind]:
        names = [each[len(prefix):].lower() for each in _abi.ENUMS[kind] if each.startswith(prefix)]
        raise ValueError(f"{name}: expected one of {', '.join(names)}, got {value!r}")
    return CONSTANTS[prefix + str(value).upper()]


# ---- threads ----

MOST_THREADS = 1024  # each is a thread of the system, and every share an object of Python's
_pool_lock = threading.Lock()
_pool: Optional[concurrent.futures.ThreadPoolExecutor] = None
_pool_size = 0


def _workers(count: int) -> concurrent.futures.ThreadPoolExecutor:
    """Returns a pool of at least `count` threads. The caller holds the lock."""
    global _pool, _pool_size
    if _pool is None or _pool_size < count:
        if _pool is not None:
            _pool.shutdown(wait=False)  # submitted shares still run
        _pool, _pool_size = concurrent.futures.ThreadPoolExecutor(count, "nrg"), count
    return _pool


def _wait(shares: List[concurrent.futures.Future[Any]]) -> None:
    """Waits for all shares, even after an interrupt: they use memory that the caller frees afterwards."""
    interrupt: Optional[KeyboardInterrupt] = None
    while not all(share.done() for share in shares):
        try:
            concurrent.futures.wait(shares)
        except KeyboardInterrupt as caught:
            interrupt = caught
    if interrupt is not None:
        raise interrupt


def _forget_workers() -> None:
    """Resets the pool: a child of fork() has no threads of its parent."""
    global _pool, _pool_size, _pool_lock
    _pool, _pool_size, _pool_lock = None, 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


def _pointers(arguments: Tuple[Any, ...]) -> List[Any]:
    return [ctypes.byref(argument) if isinstance(argument, ctypes.Structure) else argument for argument in arguments]


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status and takes no share."""
    status = function(name)(*_pointers(arguments))
    if status:
        raise Error(name, status, _numbers(status, arguments))


def thread_count(threads: Any) -> int:
    try:
        number = operator.index(threads)
    except TypeError:
        raise TypeError(f"threads: expected an integer from 1 to {MOST_THREADS}, got {threads!r}") from None
    if not 1 <= number <= MOST_THREADS:
        raise ValueError(f"threads: expected 1 to {MOST_THREADS}, got {number}")
    return number


def share(name: str, *arguments: Any, threads: int = 1) -> None:
    """Calls a function whose last arguments are (ith, nth): share 0 here, the others in threads of a pool. ctypes releases the GIL.
    The caller keeps the memory that the structs point to."""
    threads = thread_count(threads)
    pointer, given = function(name), _pointers(arguments)
    if threads == 1:
        status = pointer(*given, 0, 1)
        if _recording.steps is not None:
            structs = [(type(argument), b"" if argument is None else bytes(argument)) for argument in arguments]
            _recording.steps.append((ctypes.cast(pointer, ctypes.c_void_p).value, structs))
    else:
        _recording.steps = None
        others: List[concurrent.futures.Future[Any]] = []
        try:
            with _pool_lock:
                for ith in range(1, threads):
                    others.append(_workers(threads - 1).submit(pointer, *given, ith, threads))
            status = pointer(*given, 0, threads)
        finally:
            _wait(others)
        for other in others:
            status = other.result() or status
    if status:
        raise Error(name, status, _numbers(status, arguments))


# ---- replays ----

class _Recording(threading.local):
    """The call that this thread records: [(address of a function, [(type, bytes) of each struct])], the new arrays, each with what makes
    another one, and the constant arrays."""
    steps: Optional[List[Tuple[Any, List[Any]]]] = None
    made: List[Tuple[Any, Any]] = []
    kept: List[Any] = []


_recording = _Recording()


def make(function: Callable[..., T], *args: Any, **named: Any) -> T:
    """Returns the new array that a function makes. A replay makes another one."""
    made = function(*args, **named)
    if _recording.steps is not None:
        _recording.made.append((made, functools.partial(function, *args, **named)))
    return made


def new(shape: Any, dtype: Any) -> Array:
    """Returns a new array, for a result or for work."""
    return make(np.empty, shape, dtype)


def keep(constant_array: Any) -> Any:
    """Returns an array of an object's own, which replays of the recorded call read at its address."""
    if _recording.steps is not None and constant_array is not None:
        _recording.kept.append(constant_array)
    return constant_array


@functools.lru_cache(None)
def _addresses(kind: Any) -> List[int]:
    """Returns the offsets of all addresses in a struct."""
    if kind is ctypes.c_void_p:
        return [0]
    if issubclass(kind, ctypes.Array):
        size = ctypes.sizeof(kind._type_)
        return [i * size + offset for i in range(kind._length_) for offset in _addresses(kind._type_)]
    return [getattr(kind, name).offset + offset for name, of in getattr(kind, "_fields_", ()) for offset in _addresses(of)]


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or type(value) in _replay.tensors


def _extent(array: Any) -> Tuple[int, int]:
    """Returns the addresses of the first and the last element."""
    if isinstance(array, np.ndarray):
        begin, strides = array.__array_interface__["data"][0], array.strides
    else:
        begin, strides = array.data_ptr(), tuple(stride * array.itemsize for stride in array.stride())
    return begin, begin + sum((n - 1) * stride for n, stride in zip(array.shape, strides))


def _plan(result: Any, arguments: List[Any]) -> Any:
    """Returns the plan for replays of the recorded call (replay.c), or False: each address in a struct must be in an array of the arguments,
    in a new or a constant one. Each array of the first two must begin at such an address, and each result must be one of them."""
    results = result if isinstance(result, tuple) else (result,)
    arguments = [each for value in arguments for each in (value if isinstance(value, tuple) else (value,))]
    arrays = [value for value in arguments if _is_array(value)] + [made for made, _ in _recording.made]
    extents = [_extent(each) for each in arrays + _recording.kept]
    begins = [begin for begin, _ in extents]
    words, patches, image, pointers = [], [], b"", set()
    for function_address, structs in _recording.steps or ():
        offsets = []
        for kind, data in structs:
            offsets.append(len(image) if data else -1)
            for offset in _addresses(kind):
                pointer = int.from_bytes(data[offset:offset + ctypes.sizeof(ctypes.c_void_p)], sys.byteorder)
                if pointer:
                    pointers.add(pointer)
                    source = next((i for i, (begin, end) in enumerate(extents) if begin <= pointer <= end), None)
                    if source is None:
                        return False
                    if source < len(arrays):
                        patches += [len(image) + offset, source, pointer - begins[source]]
            image += data + bytes(-len(data) % 8)
        words += [function_address, len(structs), *offsets, *[0] * (5 - len(structs))]  # no function has more than five structs
    indices = [-1 if value is None else next((i for i, each in enumerate(arrays) if each is value), -2) for value in results]
    if not words or -2 in indices or not pointers.issuperset(begins[:len(arrays)]) or len(image) > 4096:
        return False
    words = [len(_recording.steps or ()), len(patches) // 3, len(indices), len(image), *words, *patches, *indices]
    kept = [value.dtype if _is_array(value) else value for value in arguments] + _recording.kept
    return (bytes((ctypes.c_int64 * len(words))(*words)) + image, tuple(again for _, again in _recording.made),
            type(result) if isinstance(result, tuple) else None, kept)


def _record(function: Callable[..., Any], args: Tuple[Any, ...], named: Dict[str, Any]) -> Tuple[Any, Any]:
    """Calls a function. Returns its result and the plan for replays, or False."""
    _recording.steps, _recording.made, _recording.kept = [], [], []
    try:
        result = function(*args, **named)
        return result, _plan(result, [*args, *named.values(), *named])
    finally:
        _recording.steps, _recording.made, _recording.kept = None, [], []


def planned(function: F) -> F:
    """Makes calls of a function fast that differ from an earlier one in the arrays' contents only (replay.c). The function must call the
    library by share() with structs, make its arrays by new() or make(), and read no element of an array. A public one stays a function of
    Python, with its signature and text."""
    run: Any = _replay.planned(function, _record) if _replay is not None else function
    if _replay is None or function.__name__.startswith("_"):
        return run  # type: ignore[no-any-return]

    @functools.wraps(function)
    def planned_function(*args: Any, **named: Any) -> Any:
        return run(*args, **named)

    return planned_function  # type: ignore[return-value]


def planned_as(function: F, implementation: Callable[..., Any], *tensors: Any) -> F:
    """Makes calls of a function fast, as planned(). `implementation`, which has the same results, is recorded in its place.
    tensors: further types of arrays."""
    if _replay is None:
        return function
    _replay.tensors.update(tensors)
    return _replay.planned(function, lambda _, args, named: _record(implementation, args, named))  # type: ignore[no-any-return]


def constant(kind: Type[T]) -> Type[T]:
    """Allows objects of a class as arguments of planned functions. They must not change."""
    if _replay is not None:
        _replay.constants.add(kind)
    return kind


# ---- what runs ----

def version() -> str:
    """Returns the version of the C library.

    >>> nrg.version() == nrg.__version__
    True
    """
    return text(_library.nrg_version())


def numbers_version() -> int:
    """Returns the version of the results. It increases when a released function returns a different bit for the same input.

    >>> nrg.numbers_version()
    1
    """
    return int(_library.nrg_numbers_version())


def isa() -> str:
    """Returns the active path: "scalar", "generic", "avx2", "avx512" or "neon".

    >>> nrg.isa() in nrg.isas()
    True
    """
    return text(_library.nrg_isa_name(_library.nrg_isa_active()))


def isas() -> List[str]:
    """Returns the paths that this machine can run.

    >>> nrg.isas()[0]
    'scalar'
    """
    return [text(_library.nrg_isa_name(i)) for i in range(len(_abi.ENUMS["nrg_isa"])) if _library.nrg_isa_supported(i)]


def isa_reason() -> str:
    """Returns the reason for the active path, as a sentence.

    >>> len(nrg.isa_reason()) > 10
    True
    """
    return text(_library.nrg_isa_reason())


def set_isa(name: str) -> None:
    """Selects the path of all further calls of this process. Results are bit-identical on every path.

    Parameters:
    - name: one of nrg.isas().

    >>> nrg.set_isa(nrg.isa())
    """
    path = ctypes.c_int()
    call("nrg_isa_from_name", name.encode("utf-8"), ctypes.addressof(path))
    call("nrg_isa_set", path.value)


@contextlib.contextmanager
def use_isa(name: str) -> Iterator[None]:
    """Selects a path inside a `with` block, for all threads of this process.

    Parameters:
    - name: one of nrg.isas().

    >>> with nrg.use_isa("scalar"):
    ...     nrg.isa()
    'scalar'
    """
    before = isa()
    set_isa(name)
    try:
        yield
    finally:
        set_isa(before)


def fp_environment() -> Optional[str]:
    """Returns None if this thread's floating-point environment keeps nrg's results bit-identical, or a sentence about what differs.

    Some modules flush subnormals to zero for the whole process (-ffast-math).

    >>> nrg.fp_environment()
    """
    environment = _library.nrg_fp_environment()
    return text(_library.nrg_fp_environment_string(environment)) if environment else None
