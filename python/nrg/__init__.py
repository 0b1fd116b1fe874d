"""nrg: SIMD kernels for what a neural network does between its matrix products, over NumPy arrays.

Every function works on the arrays' own memory, takes out= and threads= where it writes tensors, gives the same bits on every CPU and
for every number of threads, and raises ValueError with the library's sentence where it refuses. dtypes are float32, float16, and
bfloat16 of ml_dtypes or uint16 arrays with dtype="bf16". docs/reference/python.md has the tour; the headers in include/nrg/ have formulas and
error bounds.
"""
from ._arrays import from_bf16, to_bf16
from ._library import Error, fp_environment, isa, isa_reason, isas, numbers_version, set_isa, use_isa, version
from .activations import *  # noqa: F403
from .attention import cross_entropy, cross_entropy_backward, log_softmax, log_softmax_backward, softmax, softmax_backward
from .channels import (STATISTICS, ChannelGradients, batch_norm, batch_norm_backward, group_norm, group_norm_backward, instance_norm,
                       instance_norm_backward)
from .gated import (bilinear, bilinear_backward, geglu, geglu_backward, geglu_tanh, geglu_tanh_backward, glu, glu_backward, reglu,
                    reglu_backward, swiglu, swiglu_backward, swiglu_oai, swiglu_oai_backward)
from .norms import (NormGradients, l2_normalize, l2_normalize_backward, layer_norm, layer_norm_backward, norm, norm_backward, rms_norm,
                    rms_norm_backward)
from .positions import (Term, alibi_diagonals, alibi_slopes, embed, embedding, embedding_backward, recurrent_positions,
                        recurrent_positions_backward, score_bias, score_bias_backward, sinusoidal, t5_diagonals_backward, t5_bucket, t5_diagonals)
from .quantize import dequantize, quantize
from .relative import (head_bias, head_bias_backward, relative_backward, relative_scores, relative_shift, relative_shift_backward,
                       relative_values)
from .rotary import NormRopeGradients, Rope, norm_rope, norm_rope_backward, qkv, rope, rope_backward
from .sandwich import SandwichGradients, sandwich_norm, sandwich_norm_backward

__version__ = version()
