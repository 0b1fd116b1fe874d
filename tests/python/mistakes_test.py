"""Arguments that are wrong: every array argument of every function, with another number of dimensions, size, dtype, or without elements.
Each is an error that names the argument, what was expected and what was given; or a call that has a meaning."""
import inspect
import re

import numpy as np

import nrg
from support import Case, of_examples, random

ROPE = nrg.Rope(8)
TABLE = ROPE.table(6)
IDS = np.array([1, 0, 2, 1])


def calls():
    """{name of a function: arguments of a call} of those with more arrays than in their examples; some functions with several calls."""
    x, y, z, w, b = random(4, 64), random(4, 64, seed=1), random(4, 64, seed=2), random(64), random(64, seed=1)
    image, c, heads, scores = random(2, 6, 5), random(6), random(6, 4, 8), random(2, 3, 4, 9)
    o, (_, m, others) = nrg.softmax(x), nrg.cross_entropy(x, IDS, stats=True)
    q8, p = nrg.quantize(x), nrg.recurrent_positions(random(6, 6), random(2, 6), 3)
    int8, scales = nrg.quantize(x, "int8")
    norm = {"x": x, "weight": w, "bias": b, "residual": y, "gate": z, "out": np.empty_like(x), "residual_out": np.empty_like(x)}
    back = {"d_o": x, "x": y, "weight": w, "bias": b, "residual": z, "r": y + z, "d_r": x, "out": np.empty_like(x)}
    channel = {"x": image, "weight": c, "bias": c, "residual": image, "out": np.empty_like(image)}
    channel_back = {"d_o": image, "x": image, "weight": c, "bias": c, "residual": image, "out": np.empty_like(image)}
    running = {"running_mean": np.zeros(6, np.float32), "running_var": np.ones(6, np.float32)}
    statistics = {"batch": nrg.batch_norm(image, training=True, stats=True)[1], "group": nrg.group_norm(image, 2, stats=True)[1],
                  "instance": nrg.instance_norm(image, stats=True)[1]}
    return {
        **{name: norm for name in ("norm", "rms_norm", "layer_norm", "l2_normalize")},
        **{name + "_backward": back for name in ("norm", "rms_norm", "layer_norm", "l2_normalize")},
        "sandwich_norm": {"x": x, "residual": y, "weight1": w, "weight2": w, "bias1": b, "bias2": b, "out": np.empty_like(x),
                          "residual_out": np.empty_like(x)},
        "sandwich_norm_backward": {"d_o": x, "x": y, "r": z, "weight1": w, "weight2": w, "bias1": b, "bias2": b, "d_r": x,
                                   "out": np.empty_like(x)},
        "batch_norm": {**channel, **running}, "batch_norm_backward": {**channel_back, "statistics": statistics["batch"]},
        "group_norm": {**channel, "num_groups": 2}, "instance_norm": channel,
        "group_norm_backward": {**channel_back, "num_groups": 2, "statistics": statistics["group"]},
        "instance_norm_backward": {**channel_back, "statistics": statistics["instance"]},
        "activation": {"x": x, "name": "silu", "out": np.empty_like(x)},
        "activation_backward": {"d_o": x, "x": y, "name": "silu", "out": np.empty_like(x)},
        "glu": {"a": x, "b": y, "out": np.empty_like(x)}, "swiglu": {"a": x}, "glu_backward": {"d_o": x, "a": y, "b": z},
        "swiglu_backward": {"d_o": random(4, 32), "a": x, "out": np.empty_like(x)},
        "quantize": {"x": x, "out": np.empty_like(q8)}, "dequantize": {"packed": q8, "out": np.empty_like(x)},
        "dequantize ": {"packed": int8, "scales": scales, "format": "int8"},
        "softmax": {"x": scores, "mask": scores[0, 0], "diagonals": random(3, 12), "slopes": random(3), "sinks": random(3),
                    "out": np.empty_like(scores)},
        "log_softmax": {"x": x}, "softmax_backward": {"d_o": x, "o": o, "x": y, "cap": 2.0, "out": np.empty_like(x)},
        "log_softmax_backward": {"d_o": x, "o": o},
        "cross_entropy": {"x": x, "target": IDS},
        "cross_entropy_backward": {"d_loss": random(4), "x": x, "target": IDS, "m": m, "others": others, "reduction": "none",
                                   "out": np.empty_like(x)},
        "sinusoidal": {"positions": IDS, "dim": 8, "out": np.empty((4, 8), np.float32)},
        "embedding": {"ids": IDS, "weight": random(5, 8), "out": np.empty((4, 8), np.float32)},
        "embedding_backward": {"d_o": x, "ids": IDS, "num_embeddings": 5, "out": np.empty((5, 64), np.float32)},
        "embed": {"terms": nrg.Term(random(5, 64), IDS), "x": x, "out": np.empty_like(x)},
        "Term": {"table": random(5, 8), "ids": IDS},
        "alibi_diagonals": {"slopes": random(3), "queries": 4, "keys": 9},
        "t5_diagonals": {"table": random(32, 3), "queries": 4, "keys": 9},
        "t5_diagonals_backward": {"d_diagonals": np.zeros((3, 12)), "queries": 4, "keys": 9},
        "score_bias": {"scores": scores, "diagonals": random(3, 12), "out": np.empty_like(scores)},
        "score_bias_backward": {"d_o": scores, "out": np.zeros((3, 12))},
        "recurrent_positions": {"w": random(6, 6), "p0": random(2, 6), "positions": 3, "b": random(6), "out": np.empty((2, 3, 6), np.float32)},
        "recurrent_positions_backward": {"dp": p, "p": p, "w": random(6, 6), "p0": random(2, 6)},
        "relative_scores": {"q": scores, "table": random(5, 9), "keys": 7, "p_min": -2, "p_max": 2,
                            "scores": np.zeros((2, 3, 4, 7), np.float32)},
        "relative_values": {"a": scores, "table": random(5, 8), "p_min": -2, "p_max": 2, "out": np.empty((2, 3, 4, 8), np.float32)},
        "relative_backward": {"a": scores, "q": random(2, 3, 4, 8), "p_min": -2, "p_max": 2},
        "relative_shift": {"x": scores, "keys": 7, "shift": 3, "scores": np.zeros((2, 3, 4, 7), np.float32)},
        "relative_shift_backward": {"d_scores": scores, "rel": 7, "shift": 3},
        "head_bias": {"q": scores, "u": random(3, 9), "v": random(3, 9)},
        "head_bias_backward": {"d_o_u": scores, "d_o_v": scores},
        "rope": {"angles": ROPE, "x": heads, "k": heads, "table": TABLE, "positions": np.arange(6)},
        "rope_backward": {"angles": ROPE, "d_x": heads, "d_k": heads, "table": TABLE},
        "norm_rope": {"angles": ROPE, "q": heads, "k": heads, "q_weight": random(8), "k_weight": random(8), "q_bias": random(8),
                      "k_bias": random(8), "table": TABLE, "positions": np.arange(6)},
        "norm_rope_backward": {"angles": ROPE, "d_q": heads, "d_k": heads, "q": heads, "k": heads, "q_weight": random(8),
                               "k_weight": random(8), "q_bias": random(8), "k_bias": random(8), "table": TABLE},
        "qkv": {"angles": ROPE, "q": heads, "k": heads, "v": heads, "positions": np.arange(6), "slots": np.arange(6),
                "k_cache": np.empty((9, 4, 8), np.float32), "v_cache": np.empty((9, 4, 8), np.float16), "eps": 1e-6,
                "q_weight": random(8), "k_weight": random(8), "q_bias": random(8), "k_bias": random(8),
                "out": np.empty((6, 4, 8), np.float16)},
    }


def mistakes(array):
    """{what is wrong: another array}."""
    yield "a number", array.reshape(-1)[:1].reshape(())
    yield "a dimension less", array.reshape(-1)[:array.shape[-1]] if array.ndim > 1 else array[0:1].reshape(())
    yield "a dimension more", np.ascontiguousarray(np.broadcast_to(array, (2, 2, 2, *array.shape)))
    yield "no elements", array[..., :0].copy()
    yield "no rows", array[:0].copy()
    yield "longer rows", np.concatenate([array, array[..., :1]], -1)
    yield "more rows", np.concatenate([array, array[:1]])
    yield "another dtype", array.astype(np.complex64) if array.dtype.names is None else np.zeros(array.shape, np.complex64)
    if array.dtype.kind == "f":
        yield "integers", np.zeros(array.shape, np.int16)
    else:
        yield "floats", np.zeros(array.shape, np.float32)


class Mistakes(Case):
    def test_every_array(self):
        taken, wrong = 0, []
        for name, given in (of_examples() | calls()).items():
            function = getattr(nrg, name.strip())
            parameters = inspect.signature(function).parameters.keys() | given.keys() | {"ids", "table"}
            function(**given)  # which is right
            for argument, value in given.items():
                if not isinstance(value, np.ndarray):
                    continue
                for what, other in mistakes(value):
                    try:
                        function(**{**given, argument: other})
                        taken += 1
                        continue
                    except nrg.Error as error:
                        text = str(error)
                        if error.status == "NRG_ERR_POSITION":  # an id of a table that has become shorter
                            continue
                    except (ValueError, TypeError) as error:
                        text = str(error)
                    except Exception as error:  # pylint: disable=broad-exception-caught
                        text = f"{type(error).__name__}: {error}"
                    said = re.match(r"(\w+)( \(\w+\))?: (expected .*, got .*)", text, re.S)
                    if not said or said[1] not in parameters:
                        wrong.append(f"{name}, {argument} with {what}: {text}")
                    elif said[1] == argument and str(list(other.shape)) not in text:
                        wrong.append(f"{name}, {argument} with {what}, which is {other.dtype.name} {list(other.shape)}: {text}")
        self.assertFalse(wrong, "\n" + "\n".join(wrong))
        self.assertLess(taken, 120)


if __name__ == "__main__":
    import unittest
    unittest.main()
