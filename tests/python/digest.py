"""Prints a line for each op that the installed library has: its name and a hash of what it makes, so that two builds can be
compared. scripts/test.sh holds what pip compiles against the meson build."""
import hashlib

import numpy as np

import nrg
from support import random

x, y, w = random(9, 192), random(9, 192, seed=1), random(192)
OPS = {
    "rms_norm": lambda: nrg.rms_norm(x, w, residual=y),
    "layer_norm": lambda: nrg.layer_norm(x, w, w, accuracy="exact", stats=True),
    "layer_norm_backward": lambda: nrg.layer_norm_backward(x, y, w, w),
    "rms_norm f16": lambda: nrg.rms_norm(x.astype(np.float16), gate=y.astype(np.float16), activation="silu"),
    "sandwich_norm bf16": lambda: nrg.sandwich_norm(nrg.to_bf16(x), nrg.to_bf16(y), w, w, dtype="bf16"),
    "gelu": lambda: nrg.gelu(x),
    "swiglu_backward": lambda: nrg.swiglu_backward(x[:, :96], y),
    "softmax": lambda: nrg.softmax(x, cap=5.0, causal=True, first_position=100),
    "cross_entropy": lambda: nrg.cross_entropy(x, np.arange(9, dtype=np.int32), reduction="none", stats=True),
    "group_norm": lambda: nrg.group_norm(x.reshape(3, 12, 48), 4, activation="silu"),
    "group_norm_backward": lambda: nrg.group_norm_backward(x.reshape(3, 12, 48), y.reshape(3, 12, 48), 4, w[:12], w[:12]).dweight,
    "rope": lambda: nrg.rope(x.reshape(9, 3, 64), base=10000.0),
    "quantize": lambda: nrg.quantize(x),
    "embedding_backward": lambda: nrg.embedding_backward(x, np.array([3, 1, 3, 0, 3, 2, 1, 1, 0], np.int32), 4),
    "score_bias": lambda: nrg.score_bias(x.reshape(9, 12, 16), nrg.alibi_diagonals(nrg.alibi_slopes(9), 12, 16)),
    "relative_scores": lambda: nrg.relative_scores(x.reshape(3, 12, 48), random(5, 48), 10, -2, 2),
    "recurrent_positions": lambda: nrg.recurrent_positions(random(24, 24) / np.float32(5), random(3, 24), 5),
}
for name, op in OPS.items():
    try:
        made = op()
    except NotImplementedError:
        continue
    digest = hashlib.sha256(b"".join(a.tobytes() for a in (made if isinstance(made, tuple) else (made,)) if a is not None))
    print(name, digest.hexdigest()[:16])
