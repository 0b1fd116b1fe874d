"""nrg: the layers between a neural network's matrix multiplications, as SIMD kernels over NumPy arrays.

>>> import numpy as np, nrg
>>> x, weight = np.array([[1, 2, 3, 4]], np.float32), np.ones(4, np.float32)
>>> nrg.rms_norm(x, weight).round(2)
array([[0.37, 0.73, 1.1 , 1.46]], dtype=float32)

Functions by task. Each forward function f has a backward function f_backward, unless noted.

    normalize rows        rms_norm  layer_norm  l2_normalize  norm (all options)
    with the residual     residual= of these  sandwich_norm
    normalize channels    batch_norm  group_norm  instance_norm
    activate              silu  gelu  gelu_tanh  relu  sigmoid  tanh  softplus  mish  …  activation (by name)
    gate                  swiglu  geglu  geglu_tanh  reglu  bilinear  swiglu_oai  glu
    attend                softmax  log_softmax
    compute the loss      cross_entropy
    rotate positions      rope  norm_rope  qkv (no backward)  Rope (angles, tables)
    embed, add positions  embedding  embed (no backward)  sinusoidal (no backward)  recurrent_positions
    bias scores           alibi_slopes  alibi_diagonals  t5_bucket (no backward)  t5_diagonals  score_bias
    relative positions    relative_scores  relative_values  (relative_backward)  relative_shift  head_bias
    quantize              quantize  dequantize (no backward)  format= of norms and gates
    rotate before it      hadamard
    convert bf16          to_bf16  from_bf16 (no backward)
    inspect               isa  isas  set_isa  use_isa  isa_reason  version  numbers_version  fp_environment
    use with PyTorch      nrg.torch

Every function reads arrays of numbers in place. Most functions accept these arguments:

    out      the array for the result. None: a new one.
    dtype    "bf16" if uint16 arrays hold bfloat16. Otherwise the dtype of the arrays counts.
    threads  the number of threads for the call, 1 to 1024.

Arrays are float32, float16, or bfloat16 of ml_dtypes. Results are bit-identical on every CPU and for every number of threads. A wrong
argument raises ValueError; it names the argument, the expected value and the given one. nrg.Error is a ValueError from the C library.
docs/reference/python.md compares nrg with PyTorch. The headers in include/nrg have formulas and error bounds.
"""

from ._arrays import from_bf16, to_bf16
from ._library import Error, fp_environment, isa, isa_reason, isas, numbers_version, set_isa, use_isa, version
from .activations import (activation, activation_backward, elu, elu_backward, exp, exp_backward, expm1, expm1_backward, gelu,
                          gelu_backward, gelu_quick, gelu_quick_backward, gelu_tanh, gelu_tanh_backward, hard_sigmoid,
                          hard_sigmoid_backward, hard_swish, hard_swish_backward, leaky_relu, leaky_relu_backward, mish, mish_backward,
                          relu, relu2, relu2_backward, relu_backward, sigmoid, sigmoid_backward, silu, silu_backward, softplus,
                          softplus_backward, softsign, softsign_backward, tanh, tanh_backward)
from .attention import cross_entropy, cross_entropy_backward, log_softmax, log_softmax_backward, softmax, softmax_backward
from .channels import (STATISTICS, ChannelGradients, batch_norm, batch_norm_backward, group_norm, group_norm_backward, instance_norm,
                       instance_norm_backward)
from .gated import (bilinear, bilinear_backward, geglu, geglu_backward, geglu_tanh, geglu_tanh_backward, glu, glu_backward, reglu,
                    reglu_backward, swiglu, swiglu_backward, swiglu_oai, swiglu_oai_backward)
from .hadamard import hadamard, hadamard_backward
from .norms import (NormGradients, l2_normalize, l2_normalize_backward, layer_norm, layer_norm_backward, norm, norm_backward, rms_norm,
                    rms_norm_backward)
from .positions import (Term, alibi_diagonals, alibi_slopes, embed, embedding, embedding_backward, recurrent_positions,
                        recurrent_positions_backward, score_bias, score_bias_backward, sinusoidal, t5_bucket, t5_diagonals,
                        t5_diagonals_backward)
from .quantize import dequantize, quantize
from .relative import (head_bias, head_bias_backward, relative_backward, relative_scores, relative_shift, relative_shift_backward,
                       relative_values)
from .rotary import NormRopeGradients, Rope, norm_rope, norm_rope_backward, qkv, rope, rope_backward
from .sandwich import SandwichGradients, sandwich_norm, sandwich_norm_backward

__all__ = ["activation", "activation_backward", "alibi_diagonals", "alibi_slopes", "batch_norm", "batch_norm_backward", "bilinear",
           "bilinear_backward", "ChannelGradients", "cross_entropy", "cross_entropy_backward", "dequantize", "elu", "elu_backward",
           "embed", "embedding", "embedding_backward", "Error", "exp", "exp_backward", "expm1", "expm1_backward", "fp_environment",
           "from_bf16", "geglu", "geglu_backward", "geglu_tanh", "geglu_tanh_backward", "gelu", "gelu_backward", "gelu_quick",
           "gelu_quick_backward", "gelu_tanh", "gelu_tanh_backward", "glu", "glu_backward", "group_norm", "group_norm_backward", "hadamard",
           "hadamard_backward", "hard_sigmoid", "hard_sigmoid_backward", "hard_swish", "hard_swish_backward", "head_bias", "head_bias_backward",
           "instance_norm", "instance_norm_backward", "isa", "isa_reason", "isas", "l2_normalize", "l2_normalize_backward", "layer_norm",
           "layer_norm_backward", "leaky_relu", "leaky_relu_backward", "log_softmax", "log_softmax_backward", "mish", "mish_backward",
           "norm", "norm_backward", "norm_rope", "norm_rope_backward", "NormGradients", "NormRopeGradients", "numbers_version", "qkv",
           "quantize", "recurrent_positions", "recurrent_positions_backward", "reglu", "reglu_backward", "relative_backward",
           "relative_scores", "relative_shift", "relative_shift_backward", "relative_values", "relu", "relu2", "relu2_backward",
           "relu_backward", "rms_norm", "rms_norm_backward", "Rope", "rope", "rope_backward", "sandwich_norm", "sandwich_norm_backward",
           "SandwichGradients", "score_bias", "score_bias_backward", "set_isa", "sigmoid", "sigmoid_backward", "silu", "silu_backward",
           "sinusoidal", "softmax", "softmax_backward", "softplus", "softplus_backward", "softsign", "softsign_backward", "STATISTICS",
           "swiglu", "swiglu_backward", "swiglu_oai", "swiglu_oai_backward", "t5_bucket", "t5_diagonals", "t5_diagonals_backward", "tanh",
           "tanh_backward", "Term", "to_bf16", "use_isa", "version"]

__version__ = version()
