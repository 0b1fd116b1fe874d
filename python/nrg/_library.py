"""The C library: loading, calling with threads, errors, paths."""
import concurrent.futures
import contextlib
import ctypes
import inspect
import operator
import os
import pathlib
import threading

from . import _abi

CONSTANTS = _abi.CONSTANTS


class Error(ValueError):
    """What the C library refuses; nothing was written. `status` is the name of the nrg_status."""

    def __init__(self, function, status):
        super().__init__(f"{function}: {text(_library.nrg_status_string(status))}")
        self._made_of = function, status
        self.status = next((name for name in _abi.ENUMS["nrg_status"] if CONSTANTS[name] == status), str(status))

    def __reduce__(self):
        return type(self), self._made_of  # from another process, as multiprocessing hands errors over


def text(string):
    return string.decode("utf-8") if string is not None else None


def _load():
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
            continue  # a family that this build leaves out; who calls it is told so by function()
        pointer.restype = result
        pointer.argtypes = [kind for _, kind in arguments]
    return library


_library = _load()


def function(name):
    try:
        return getattr(_library, name)
    except AttributeError:
        raise NotImplementedError(f"this build of the library has no {name}") from None


def struct(name, **fields):
    """A struct of the ABI with its size, these fields, and in the others what the C constructors set. A field that it does not
    have is an error, and None leaves one at its default."""
    made = _abi.STRUCTS[name]()
    if made._fields_[0][0] == "size":
        made.size = ctypes.sizeof(made)
    put(made, **fields)
    for field, default in _abi.DEFAULTS.get(name, {}).items():
        if fields.get(field) is None:
            setattr(made, field, default(made, function) if callable(default) else default)
    return made


def put(made, **fields):
    """Fields into a struct; None leaves one as it is. What a field cannot hold is an error, where ctypes would cut it off."""
    for field, value in fields.items():
        if not hasattr(type(made), field):
            raise TypeError(f"{type(made).__name__} has no field {field}")
        if value is None:
            continue
        if type(value) is int or (type(value) is not float and hasattr(value, "__index__")):  # NumPy's integers among them
            value = operator.index(value)
            setattr(made, field, value)
            if (getattr(made, field) or 0) != value:
                raise ValueError(f"{field} is {value}, which is out of range")
        else:
            setattr(made, field, value)


def enum(kind, value, prefix, name):
    """The number of a name, as in enum("nrg_gate", "post", "NRG_GATE_", "gate_mode"); None: 0. A ValueError for the argument `name`
    lists the names otherwise."""
    if value is None:
        return 0
    if prefix + str(value).upper() not in _abi.ENUMS[kind]:
        names = [each[len(prefix):].lower() for each in _abi.ENUMS[kind] if each.startswith(prefix)]
        raise ValueError(f"{name}: expected one of {', '.join(names)}, got {value!r}")
    return CONSTANTS[prefix + str(value).upper()]


def with_options(of, options):
    """The signature of a function whose **given are these options, for help() and editors."""
    signature = inspect.signature(of)
    parameters = {name: parameter for name, parameter in signature.parameters.items() if parameter.kind != parameter.VAR_KEYWORD}
    for name, default in options.items():
        parameters[name] = (parameters[name].replace(default=default) if name in parameters else
                            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
    return signature.replace(parameters=list(parameters.values()))


# ---- threads ----

MOST_THREADS = 1024  # each is a thread of the system, and every share an object of Python's
_pool_lock = threading.Lock()
_pool = None
_pool_size = 0


def _workers(count):
    """A pool of at least so many; called with the lock held."""
    global _pool, _pool_size
    if _pool_size < count:
        if _pool is not None:
            _pool.shutdown(wait=False)  # what was handed to it is still done
        _pool, _pool_size = concurrent.futures.ThreadPoolExecutor(count, "nrg"), count
    return _pool


def _wait(shares):
    """Until all shares are done, whatever arrives meanwhile: they work on memory that the caller lets go of afterwards."""
    interrupt = None
    while not all(share.done() for share in shares):
        try:
            concurrent.futures.wait(shares)
        except KeyboardInterrupt as caught:
            interrupt = caught
    if interrupt is not None:
        raise interrupt


def _forget_workers():
    """A child of fork() has none of its parent's threads."""
    global _pool, _pool_size, _pool_lock
    _pool, _pool_size, _pool_lock = None, 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


def _pointers(arguments):
    return [ctypes.byref(argument) if isinstance(argument, ctypes.Structure) else argument for argument in arguments]


def call(name, *arguments):
    """A function that returns a status, without shares."""
    status = function(name)(*_pointers(arguments))
    if status:
        raise Error(name, status)


def share(name, *arguments, threads=1):
    """A function whose last arguments are (ith, nth): share 0 here, the others by threads of a pool. ctypes lets go of the GIL
    meanwhile. Structs are not changed while this runs, and what they point to is held by the caller."""
    threads = operator.index(threads)
    if not 1 <= threads <= MOST_THREADS:
        raise ValueError(f"threads: expected 1 to {MOST_THREADS}, got {threads}")
    pointer, arguments = function(name), _pointers(arguments)
    if threads == 1:
        status = pointer(*arguments, 0, 1)
    else:
        others = []
        try:
            with _pool_lock:
                for ith in range(1, threads):
                    others.append(_workers(threads - 1).submit(pointer, *arguments, ith, threads))
            status = pointer(*arguments, 0, threads)
        finally:
            _wait(others)
        for other in others:
            status = other.result() or status
    if status:
        raise Error(name, status)


# ---- what runs ----

def version():
    """The version of the C library: "0.3.0"."""
    return text(_library.nrg_version())


def numbers_version():
    """The version of the numbers: another one wherever a call gives another bit than before (docs/reproducibility.md)."""
    return _library.nrg_numbers_version()


def isa():
    """The path that calls go through now: "scalar", "generic", "avx2", "avx512" or "neon"."""
    return text(_library.nrg_isa_name(_library.nrg_isa_active()))


def isas():
    """The paths that this machine can run."""
    return [text(_library.nrg_isa_name(i)) for i in range(len(_abi.ENUMS["nrg_isa"])) if _library.nrg_isa_supported(i)]


def isa_reason():
    """Why the active path is the active one, as a sentence."""
    return text(_library.nrg_isa_reason())


def set_isa(name):
    """Sends the calls of this process through another path from now on. The bits are the same on all."""
    path = ctypes.c_int()
    call("nrg_isa_from_name", name.encode("utf-8"), ctypes.addressof(path))
    call("nrg_isa_set", path.value)


@contextlib.contextmanager
def use_isa(name):
    """`with nrg.use_isa("scalar"):` another path inside of it. For the whole process, other threads included."""
    before = isa()
    set_isa(name)
    try:
        yield
    finally:
        set_isa(before)


def fp_environment():
    """A sentence on this thread's floating-point environment, or None where all that nrg promises holds: some modules switch
    on flushing of subnormals to zero (-ffast-math) for the whole process."""
    environment = _library.nrg_fp_environment()
    return text(_library.nrg_fp_environment_string(environment)) if environment else None
