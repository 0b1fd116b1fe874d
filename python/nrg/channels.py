"""Batch, group and instance norm (nrg/channel_norm.h, nrg/channel_norm_backward.h).

    normalize channels    batch_norm  group_norm  instance_norm"""
from __future__ import annotations

import ctypes
from typing import Any, Literal, NamedTuple, Optional, Tuple, overload

import numpy as np

from . import _arrays as arrays
from ._abi import STRUCTS
from ._library import enum, new, planned, share, struct
from ._types import Accuracy, Activation, Array, ArrayLike, DType, F32Array, Layout

# nrg_channel_statistics as a structured dtype: the mean, variance, … of a set, in double precision.
STATISTICS: np.dtype[Any] = np.dtype([(name, np.float64) for name, *_ in STRUCTS["nrg_channel_statistics"]._fields_])
assert STATISTICS.itemsize == ctypes.sizeof(STRUCTS["nrg_channel_statistics"])


class ChannelGradients(NamedTuple):
    """The gradients of a channel norm: dx and dresidual like x, dweight and dbias float32 [c]. None for an operand that was not given.

    >>> x = np.ones((1, 2, 3), np.float32)
    >>> nrg.group_norm_backward(x, x, 1).dweight is None
    True
    """
    dx: Array
    dresidual: Optional[Array]
    dweight: Optional[F32Array]
    dbias: Optional[F32Array]


class _Operands:
    """Tensors [n, c, …] or, with layout "nhwc", [n, …, c], and the spec."""

    def __init__(self, x: ArrayLike, weight: Any, bias: Any, over: str, groups: int, layout: str, dtype: DType, eps: float, activation: str,
                 accuracy: str, **spec: Any) -> None:
        self.x = arrays.as_array(x, "x")
        if self.x.ndim < 2:
            raise arrays.unexpected("x", "[n, c, …], or with layout 'nhwc' [n, …, c]", self.x)
        self.last = enum("nrg_layout", layout, "NRG_LAYOUT_", "layout") == 1
        self.channels = self.x.shape[-1] if self.last else self.x.shape[1]
        if self.channels == 0:
            raise arrays.unexpected("x", "one channel or more", self.x)
        groups = arrays.count(groups, "num_groups", 1)
        if self.channels % groups:
            raise arrays.unexpected("num_groups", f"a divisor of the {self.channels} channels", groups)
        positions = self.x.shape[1:-1] if self.last else self.x.shape[2:]
        self.n, self.s = self.x.shape[0], int(np.prod(positions, dtype=np.int64))
        if self.s == 0:
            raise arrays.unexpected("x", "one position or more in each channel", self.x)
        self.sets = self.channels if over == "batch" else self.n * groups
        self.weight, self.bias = (arrays.weights(v, name, (self.channels,), self.x) for v, name in ((weight, "weight"), (bias, "bias")))
        number = arrays.number(self.x, "x", dtype)
        w_dtype = arrays.number_of_vectors({"weight": self.weight, "bias": self.bias}, dtype, number)
        self.spec = struct("nrg_channel_norm_spec", channels=self.channels, groups=groups, over=enum("nrg_channel_over", over, "NRG_CHANNEL_OVER_", "over"),
                           layout=int(self.last), dtype=number, w_dtype=w_dtype, eps=eps,
                           activation=enum("nrg_activation", activation, "NRG_ACT_", "activation"),
                           accuracy=enum("nrg_accuracy", accuracy, "NRG_ACCURACY_", "accuracy"), **spec)

    def stride(self, array: Array, name: str) -> int:
        """Returns the stride of a sample (nchw) or of a position (nhwc); the elements inside must be dense."""
        if self.last:
            rows = arrays.Rows(array.shape[:-1])
            rows.add(name, array)
            dimensions = rows.dimensions()
            if len(dimensions) < 2:
                return dimensions[0][1][name] if dimensions else 0
        elif array.size == 0:
            return 0
        elif array[:1].flags.c_contiguous and (self.n < 2 or array.strides[0] > 0):
            return array.strides[0] if self.n > 1 else 0
        raise arrays.unexpected(name, f"adjacent channels and positions ({arrays.COPY})", f"{arrays.described(array)} with strides {array.strides}")

    def fill(self, args: Any, **tensors: Optional[Array]) -> None:
        args.samples, args.positions = self.n, self.s
        args.w = arrays.address(self.weight)
        names = {"y": "residual", "o": "out", "dx": "out"}
        for name, array in tensors.items():
            if array is not None:
                setattr(args, name, arrays.address(array))
                setattr(args, name + "_stride", self.stride(array, names.get(name, name)))


def _forward(of: _Operands, residual: Any, out: Any, stats: bool, threads: int, running: Tuple[Any, Any] = (None, None),
             training: bool = False, batches: int = 0) -> Any:
    residual = None if residual is None else arrays.like(residual, "residual", of.x)
    o = arrays.output(out, "out", of.x.shape, of.x.dtype)
    statistics = new(of.sets, STATISTICS) if stats else None
    args = struct("nrg_channel_norm_args", b=arrays.address(of.bias), statistics=arrays.address(statistics), batches=batches,
                  running_mean_in=arrays.address(running[0]), running_var_in=arrays.address(running[1]))
    if training:
        args.running_mean, args.running_var = args.running_mean_in, args.running_var_in
    of.fill(args, x=of.x, y=residual, o=o)
    share("nrg_channel_norm_forward", of.spec, args, threads=threads)
    return (o, statistics) if stats else o


def _backward(of: _Operands, d_o: Any, residual: Any, statistics: Any, out: Any, threads: int,
              running: Tuple[Any, Any] = (None, None)) -> ChannelGradients:
    d_o = arrays.like(d_o, "d_o", of.x)
    residual = None if residual is None else arrays.like(residual, "residual", of.x)
    statistics = arrays.dense(statistics, "statistics", (of.sets,), STATISTICS)
    dx = arrays.output(out, "out", of.x.shape, of.x.dtype)
    dy = None if residual is None else new(of.x.shape, of.x.dtype)
    dw, db = (None if v is None else new(of.channels, np.float32) for v in (of.weight, of.bias))
    args = struct("nrg_channel_norm_backward_args", statistics=arrays.address(statistics), dw=arrays.address(dw), db=arrays.address(db),
                  running_mean=arrays.address(running[0]), running_var=arrays.address(running[1]))
    activated = of.spec.activation != 0  # otherwise the gradients do not depend on residual and bias
    args.b = arrays.address(of.bias) if activated else None
    of.fill(args, x=of.x, y=residual if activated else None, d_o=d_o, dx=dx, dy=dy)
    arrays.reduce("nrg_channel_norm_backward", (of.spec,), args, threads, dw is not None or db is not None)
    return ChannelGradients(dx, dy, dw, db)


def _running(mean: Any, var: Any, channels: int, written: bool) -> Tuple[Any, Any]:
    pair = arrays.dense(mean, "running_mean", (channels,), np.float32), arrays.dense(var, "running_var", (channels,), np.float32)
    for v, name in zip(pair, ("running_mean", "running_var")):
        if written and v is not None:
            arrays.output(v, name, (channels,), np.float32)
    return pair


def _needs_running(training: bool, mean: Any, var: Any) -> None:
    for value, other, name in ((mean, var, "running_mean"), (var, mean, "running_var")):
        if value is None and (not training or other is not None):
            raise arrays.unexpected(name, "float32 [c], " + ("as with running_mean and running_var together" if training else "without training"), None)


@overload
def batch_norm(x: ArrayLike, running_mean: Optional[ArrayLike] = None, running_var: Optional[ArrayLike] = None,
               weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, training: bool = False, momentum: float = 0.1,
               eps: float = 1e-5, *, residual: Optional[ArrayLike] = None, activation: Activation = "identity", layout: Layout = "nchw",
               accuracy: Accuracy = "fast", out: Optional[Array] = None, stats: Literal[False] = False, dtype: DType = None,
               threads: int = 1) -> Array:
    ...


@overload
def batch_norm(x: ArrayLike, running_mean: Optional[ArrayLike] = None, running_var: Optional[ArrayLike] = None,
               weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, training: bool = False, momentum: float = 0.1,
               eps: float = 1e-5, *, residual: Optional[ArrayLike] = None, activation: Activation = "identity", layout: Layout = "nchw",
               accuracy: Accuracy = "fast", out: Optional[Array] = None, stats: Literal[True], dtype: DType = None,
               threads: int = 1) -> Tuple[Array, Array]:
    ...


@planned
def batch_norm(x: ArrayLike, running_mean: Optional[ArrayLike] = None, running_var: Optional[ArrayLike] = None,
               weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, training: bool = False, momentum: float = 0.1,
               eps: float = 1e-5, *, residual: Optional[ArrayLike] = None, activation: Activation = "identity", layout: Layout = "nchw",
               accuracy: Accuracy = "fast", out: Optional[Array] = None, stats: bool = False, dtype: DType = None, threads: int = 1) -> Any:
    """Applies batch norm to each channel: g((x - mean) / √(variance + eps) ⊙ weight + bias + residual). As torch.nn.functional.batch_norm.

    Parameters:
    - x: [n, c, …], or with layout "nhwc" [n, …, c].
    - running_mean, running_var: float32 [c]. Without training, the statistics. With training, the call updates them in place.
    - weight, bias: [c].
    - training: use the statistics of the batch.
    - momentum: the weight of the batch in the running statistics.
    - eps: added to the variance.
    - residual: like x, added before the activation.
    - activation: g, any of nrg.activation.
    - layout: "nchw" or "nhwc", the place of the channels in x.
    - accuracy: "fast" or "exact" (docs/numerics.md).
    - out: the array for the result. It may be x or residual.
    - stats: True also returns the statistics, nrg.STATISTICS [c], for batch_norm_backward().

    Returns an array like x, or (result, statistics).

    >>> nrg.batch_norm(np.array([[[1, 2, 3]]], np.float32), training=True).round(4)
    array([[[-1.2247,  0.    ,  1.2247]]], dtype=float32)
    """
    _needs_running(training, running_mean, running_var)
    of = _Operands(x, weight, bias, "batch", 1, layout, dtype, eps, activation, accuracy, momentum=momentum,
                   source=enum("nrg_statistics_source", "compute" if training else "running", "NRG_STATISTICS_", "training"))
    return _forward(of, residual, out, stats, threads, _running(running_mean, running_var, of.channels, training), training)


@planned
def batch_norm_backward(d_o: ArrayLike, x: ArrayLike, running_mean: Optional[ArrayLike] = None, running_var: Optional[ArrayLike] = None,
                        weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, training: bool = True, eps: float = 1e-5, *,
                        residual: Optional[ArrayLike] = None, statistics: Optional[ArrayLike] = None, activation: Activation = "identity",
                        layout: Layout = "nchw", accuracy: Accuracy = "fast", out: Optional[Array] = None, dtype: DType = None,
                        threads: int = 1) -> ChannelGradients:
    """Returns the gradients of batch_norm(), called with the same arguments.

    Parameters:
    - d_o: like x: the gradient of the result.
    - running_mean, running_var: constants of a call without training. With training, the call ignores them.
    - statistics: the statistics of the forward pass. None: computed again.
    - out: the array for dx. It may be d_o or x.
    - the others: as in batch_norm().

    Returns ChannelGradients(dx, dresidual, dweight, dbias); None for an operand that was not given.

    >>> x, d_o = np.array([[[1, 2, 3]]], np.float32), np.array([[[1, 0, 0]]], np.float32)
    >>> nrg.batch_norm_backward(d_o, x, weight=np.ones(1, np.float32)).dweight.round(4)
    array([-1.2247], dtype=float32)
    """
    _needs_running(training, running_mean, running_var)
    of = _Operands(x, weight, bias, "batch", 1, layout, dtype, eps, activation, accuracy,
                   source=enum("nrg_statistics_source", "compute" if training else "running", "NRG_STATISTICS_", "training"))
    running = (None, None) if training else _running(running_mean, running_var, of.channels, False)
    return _backward(of, d_o, residual, statistics, out, threads, running)


@overload
def group_norm(x: ArrayLike, num_groups: int, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, eps: float = 1e-5, *,
               residual: Optional[ArrayLike] = None, activation: Activation = "identity", layout: Layout = "nchw",
               accuracy: Accuracy = "fast", out: Optional[Array] = None, stats: Literal[False] = False, dtype: DType = None,
               threads: int = 1) -> Array:
    ...


@overload
def group_norm(x: ArrayLike, num_groups: int, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, eps: float = 1e-5, *,
               residual: Optional[ArrayLike] = None, activation: Activation = "identity", layout: Layout = "nchw",
               accuracy: Accuracy = "fast", out: Optional[Array] = None, stats: Literal[True], dtype: DType = None,
               threads: int = 1) -> Tuple[Array, Array]:
    ...


@planned
def group_norm(x: ArrayLike, num_groups: int, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, eps: float = 1e-5, *,
               residual: Optional[ArrayLike] = None, activation: Activation = "identity", layout: Layout = "nchw",
               accuracy: Accuracy = "fast", out: Optional[Array] = None, stats: bool = False, dtype: DType = None, threads: int = 1) -> Any:
    """Normalizes each group of channels of each sample: g(norm ⊙ weight + bias + residual). As torch.nn.functional.group_norm.

    Parameters:
    - x: [n, c, …], or with layout "nhwc" [n, …, c].
    - num_groups: a divisor of c. 1 is a layer norm over each sample, c an instance norm.
    - weight, bias: [c].
    - eps, residual, activation, layout, accuracy, out, stats: as in batch_norm(). Statistics are [n · num_groups].

    Returns an array like x, or (result, statistics).

    >>> nrg.group_norm(np.array([[[1, 2], [3, 4]]], np.float32), 1).round(4)
    array([[[-1.3416, -0.4472],
            [ 0.4472,  1.3416]]], dtype=float32)
    """
    of = _Operands(x, weight, bias, "group", num_groups, layout, dtype, eps, activation, accuracy)
    return _forward(of, residual, out, stats, threads)


@planned
def group_norm_backward(d_o: ArrayLike, x: ArrayLike, num_groups: int, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None,
                        eps: float = 1e-5, *, residual: Optional[ArrayLike] = None, statistics: Optional[ArrayLike] = None,
                        activation: Activation = "identity", layout: Layout = "nchw", accuracy: Accuracy = "fast",
                        out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> ChannelGradients:
    """Returns the gradients of group_norm(), called with the same arguments.

    Parameters:
    - d_o: like x: the gradient of the result.
    - x, num_groups, weight, bias and options: as in group_norm(). statistics and out: as in batch_norm_backward().

    Returns ChannelGradients(dx, dresidual, dweight, dbias), dx like x [n, c, …].

    >>> x, d_o = np.array([[[1, 2], [3, 4]]], np.float32), np.ones((1, 2, 2), np.float32)
    >>> nrg.group_norm_backward(d_o, x, 1, bias=np.zeros(2, np.float32)).dbias
    array([2., 2.], dtype=float32)
    """
    of = _Operands(x, weight, bias, "group", num_groups, layout, dtype, eps, activation, accuracy)
    return _backward(of, d_o, residual, statistics, out, threads)


@overload
def instance_norm(x: ArrayLike, *, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, eps: float = 1e-5,
                  residual: Optional[ArrayLike] = None, activation: Activation = "identity", layout: Layout = "nchw",
                  accuracy: Accuracy = "fast", out: Optional[Array] = None, stats: Literal[False] = False, dtype: DType = None,
                  threads: int = 1) -> Array:
    ...


@overload
def instance_norm(x: ArrayLike, *, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, eps: float = 1e-5,
                  residual: Optional[ArrayLike] = None, activation: Activation = "identity", layout: Layout = "nchw",
                  accuracy: Accuracy = "fast", out: Optional[Array] = None, stats: Literal[True], dtype: DType = None,
                  threads: int = 1) -> Tuple[Array, Array]:
    ...


@planned
def instance_norm(x: ArrayLike, *, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None, eps: float = 1e-5,
                  residual: Optional[ArrayLike] = None, activation: Activation = "identity", layout: Layout = "nchw",
                  accuracy: Accuracy = "fast", out: Optional[Array] = None, stats: bool = False, dtype: DType = None,
                  threads: int = 1) -> Any:
    """Normalizes each channel of each sample, as group_norm() with one group per channel and torch.nn.functional.instance_norm.

    Parameters:
    - x: [n, c, …], or with layout "nhwc" [n, …, c].
    - weight, bias: [c], by name.
    - options: as in group_norm().

    Returns an array like x, or (result, statistics).

    >>> nrg.instance_norm(np.array([[[1, 3], [5, 9]]], np.float32)).round(4)
    array([[[-1.,  1.],
            [-1.,  1.]]], dtype=float32)
    """
    of = _Operands(x, weight, bias, "group", _channels(x, layout), layout, dtype, eps, activation, accuracy)
    return _forward(of, residual, out, stats, threads)


@planned
def instance_norm_backward(d_o: ArrayLike, x: ArrayLike, *, weight: Optional[ArrayLike] = None, bias: Optional[ArrayLike] = None,
                           eps: float = 1e-5, residual: Optional[ArrayLike] = None, statistics: Optional[ArrayLike] = None,
                           activation: Activation = "identity", layout: Layout = "nchw", accuracy: Accuracy = "fast",
                           out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> ChannelGradients:
    """Returns the gradients of instance_norm(), called with the same arguments.

    Parameters:
    - d_o, x: [n, c, …]: the gradient of the result, and the input.
    - options: as in group_norm_backward().

    Returns ChannelGradients(dx, dresidual, dweight, dbias).

    >>> x, d_o = np.array([[[1, 3]]], np.float32), np.ones((1, 1, 2), np.float32)
    >>> nrg.instance_norm_backward(d_o, x, bias=np.zeros(1, np.float32)).dbias
    array([2.], dtype=float32)
    """
    of = _Operands(x, weight, bias, "group", _channels(x, layout), layout, dtype, eps, activation, accuracy)
    return _backward(of, d_o, residual, statistics, out, threads)


def _channels(x: ArrayLike, layout: str) -> int:
    shape = np.shape(x)
    if len(shape) < 2:
        raise arrays.unexpected("x", "[n, c, …], or with layout 'nhwc' [n, …, c]", arrays.as_array(x, "x"))
    return max(int(shape[-1] if layout == "nhwc" else shape[1]), 1)
