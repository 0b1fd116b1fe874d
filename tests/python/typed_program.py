"""A user's program, which `mypy --strict` accepts. Each `type: ignore` marks a mistake that mypy finds: strict mode rejects an ignore
without an error. scripts/test.sh runs mypy and the program."""
import numpy as np
import numpy.typing as npt

import nrg

Floats = npt.NDArray[np.float32]


def layer(x: Floats, weight: Floats, gate_up: Floats, stream: Floats) -> Floats:
    normed, stream = nrg.rms_norm(x, weight, residual=stream, threads=2)
    up: Floats = nrg.swiglu(normed @ gate_up)
    return up + stream[..., : up.shape[-1]]


def training_step(logits: Floats, target: npt.NDArray[np.int64]) -> Floats:
    loss, m, others = nrg.cross_entropy(logits, target, stats=True)
    print("loss", round(float(loss), 4))
    each = nrg.cross_entropy(logits, target, reduction="none")
    assert each.shape == target.shape
    return nrg.cross_entropy_backward(1.0, logits, target, m, others)


def attention(q: Floats, k: Floats) -> Floats:
    q, k = nrg.rope(q, np.arange(q.shape[1]), k=k, base=10000.0)
    return nrg.softmax(q.transpose(0, 2, 1, 3) @ k.transpose(0, 2, 3, 1), dim=-1, causal=True)


def norms(x: Floats, w: Floats) -> None:
    print(nrg.layer_norm(x, (8,), w, w).shape, nrg.layer_norm(x, 8, w, w, 1e-5).shape, nrg.layer_norm(x, w, [0.0] * 8).shape)
    gradients = nrg.layer_norm_backward(x, x, w, w)
    if gradients.dweight is not None:
        w -= 0.1 * gradients.dweight
    result, statistics = nrg.group_norm(x.reshape(1, 8, -1), 2, stats=True)
    print(result.shape, statistics.shape, nrg.gelu(x, approximate="tanh").shape)
    packed, scales = nrg.quantize(x, "int8")
    print(nrg.dequantize(packed, scales, "int8").shape, nrg.quantize(nrg.rms_norm(nrg.embedding([[1, 2]], np.ones((4, 32), np.float32)))).shape)
    with nrg.use_isa("scalar"):
        print(nrg.isa())


def mistakes(x: Floats) -> None:
    nrg.silu(x, epsilon=1)  # type: ignore[call-arg]
    nrg.rms_norm(x, epsilon=1)  # type: ignore[call-overload]
    nrg.cross_entropy(x, [0], reduction="average")  # type: ignore[call-overload]
    nrg.gelu(x, approximate="erf")  # type: ignore[arg-type]
    nrg.swish(x)  # type: ignore[attr-defined]
    nrg.rms_norm(x, threads="all")  # type: ignore[call-overload]


if __name__ == "__main__":
    ones = np.ones((4, 8), np.float32)
    print(layer(ones, np.ones(8, np.float32), np.ones((8, 16), np.float32), ones).shape)
    print(training_step(ones, np.arange(4)).shape)
    print(attention(np.ones((1, 4, 2, 8), np.float32), np.ones((1, 4, 2, 8), np.float32)).shape)
    norms(ones, np.ones(8, np.float32))
