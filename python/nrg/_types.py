"""Types of the public functions, for annotations. Nothing here exists at run time but names."""
from __future__ import annotations

from typing import Any, Literal, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
ArrayLike = npt.ArrayLike
DType = npt.DTypeLike
Positions = Union[int, ArrayLike, None]
Shape = Union[int, Tuple[int, ...]]
# Two arrays for results, or None for new ones.
Pair = Union[Tuple[Array, Array], Sequence[Array]]

Accuracy = Literal["fast", "exact"]
Activation = Literal["identity", "sigmoid", "silu", "relu", "relu2", "tanh", "gelu", "gelu_tanh", "softplus", "gelu_quick", "hard_swish",
                     "hard_sigmoid", "elu", "leaky_relu", "mish", "exp", "expm1", "softsign"]
BlockFormat = Literal["q8_0", "q8_0_4x4", "q8_0_4x8", "q8_0_8x4", "q8_0_8x8", "q8_k", "q8_K", "q8_k_4x4", "q8_k_4x8", "q8_k_8x4", "q8_k_8x8",
                      "q8_K_4x4", "q8_K_4x8", "q8_K_8x4", "q8_K_8x8"]
ByteFormat = Literal["int8", "int8_32", "int8_64", "int8_128"]
EpsMode = Literal["mean", "sum", "sigma", "max", "none"]
GateMode = Literal["post", "pre"]
Layout = Literal["nchw", "nhwc"]
Reduction = Literal["mean", "sum", "none"]
ResidualMode = Literal["before", "after"]
RopeMode = Literal["neox", "normal", "mrope", "vision", "imrope", "imrope_time"]
RopeScaling = Literal["none", "ntk", "llama3"]
Rounding = Literal["to_even", "away"]
Store = Literal["auto", "keep", "stream"]
Weights = Literal["row", "group"]
Path = Literal["scalar", "generic", "avx2", "avx512", "neon"]

F32Array = npt.NDArray[np.float32]
F64Array = npt.NDArray[np.float64]
