"""nrg: the layers between a neural network's matrix multiplications, as SIMD kernels over NumPy arrays.

>>> import numpy as np, nrg
>>> x, weight = np.array([[1, 2, 3, 4]], np.float32), np.ones(4, np.float32)
>>> nrg.rms_norm(x, weight).round(2)
array([[0.37, 0.73, 1.1 , 1.46]], dtype=float32)

Every function reads arrays of numbers in place. Most functions accept these arguments:

    out      the array for the result. None: a new one.
    dtype    "bf16" if uint16 arrays hold bfloat16. Otherwise the dtype of the arrays counts.
    threads  the number of threads for the call, 1 to 1024.

Arrays are float32, float16, or bfloat16 of ml_dtypes. Results are bit-identical on every CPU and for every number of threads. A wrong
argument raises ValueError; it names the argument, the expected value and the given one. nrg.Error is a ValueError from the C library.
docs/reference/python.md compares nrg with PyTorch. The headers in include/nrg have formulas and error bounds.

Functions by task. Each forward function f has a backward function f_backward, unless noted.

"""

from . import _public
from ._arrays import from_bf16, to_bf16
from ._library import Error, fp_environment, isa, isa_reason, isas, numbers_version, set_isa, use_isa, version
from ._public import *

__all__ = ["Error", "fp_environment", "from_bf16", "isa", "isa_reason", "isas", "numbers_version", "set_isa", "to_bf16", "use_isa", "version"]
__all__ += _public.__all__
__doc__ += _public.INDEX + """\
    convert bf16          to_bf16  from_bf16 (no backward)
    inspect               isa  isas  set_isa  use_isa  isa_reason  version  numbers_version  fp_environment
    use with PyTorch      nrg.torch
"""
__version__ = version()
