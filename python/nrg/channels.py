"""Batch, group and instance norm (nrg/channel_norm.h, nrg/channel_norm_backward.h)."""
import ctypes
from typing import NamedTuple, Optional

import numpy as np

from . import _arrays as arrays
from ._abi import STRUCTS
from ._library import enum, share, struct
from .norms import reduce

# What a set was normalized with, in double: nrg_channel_statistics as a structured dtype.
STATISTICS = np.dtype([(name, np.float64) for name, _ in STRUCTS["nrg_channel_statistics"]._fields_])
assert STATISTICS.itemsize == ctypes.sizeof(STRUCTS["nrg_channel_statistics"])


class ChannelGradients(NamedTuple):
    """dx [n, c, …]; of a residual like it; dweight and dbias float32 [c]; None for what was not given."""
    dx: np.ndarray
    dresidual: Optional[np.ndarray]
    dweight: Optional[np.ndarray]
    dbias: Optional[np.ndarray]


class _Operands:
    """Tensors [n, c, …] or, with layout "nhwc", [n, …, c], and the spec."""

    def __init__(self, x, weight, bias, over, groups, layout, dtype, eps, activation, accuracy, **spec):
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
        self.weight, self.bias = (arrays.dense(v, name, (self.channels,), None) for v, name in ((weight, "weight"), (bias, "bias")))
        number = arrays.number(self.x, "x", dtype)
        w_dtype = arrays.number_of_vectors({"weight": self.weight, "bias": self.bias}, dtype, number)
        self.spec = struct("nrg_channel_norm_spec", channels=self.channels, groups=groups, over=enum("nrg_channel_over", over, "NRG_CHANNEL_OVER_", "over"),
                           layout=int(self.last), dtype=number, w_dtype=w_dtype, eps=eps,
                           activation=enum("nrg_activation", activation, "NRG_ACT_", "activation"),
                           accuracy=enum("nrg_accuracy", accuracy, "NRG_ACCURACY_", "accuracy"), **spec)

    def stride(self, array, name):
        """Of a sample (nchw) or of a position (nhwc); what lies inside of it has to be dense."""
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
        raise ValueError(f"{name}: channels and positions do not follow each other (strides {array.strides}); np.ascontiguousarray makes "
                         "a copy where they do")

    def fill(self, args, **tensors):
        args.samples, args.positions = self.n, self.s
        args.w = arrays.address(self.weight)
        names = {"y": "residual", "o": "out", "dx": "out"}
        for name, array in tensors.items():
            if array is not None:
                setattr(args, name, arrays.address(array))
                setattr(args, name + "_stride", self.stride(array, names.get(name, name)))


def _forward(of, residual, out, stats, threads, running=(None, None), training=False, batches=0):
    residual = None if residual is None else arrays.like(residual, "residual", of.x)
    o = arrays.output(out, "out", of.x.shape, of.x.dtype)
    statistics = np.empty(of.sets, STATISTICS) if stats else None
    args = struct("nrg_channel_norm_args", b=arrays.address(of.bias), statistics=arrays.address(statistics), batches=batches,
                  running_mean_in=arrays.address(running[0]), running_var_in=arrays.address(running[1]))
    if training:
        args.running_mean, args.running_var = args.running_mean_in, args.running_var_in
    of.fill(args, x=of.x, y=residual, o=o)
    share("nrg_channel_norm_forward", of.spec, args, threads=threads)
    return (o, statistics) if stats else o


def _backward(of, d_o, residual, statistics, out, threads, running=(None, None)):
    d_o = arrays.like(d_o, "d_o", of.x)
    residual = None if residual is None else arrays.like(residual, "residual", of.x)
    statistics = arrays.dense(statistics, "statistics", (of.sets,), STATISTICS)
    dx = arrays.output(out, "out", of.x.shape, of.x.dtype)
    dy = None if residual is None else np.empty(of.x.shape, of.x.dtype)
    dw, db = (None if v is None else np.empty(of.channels, np.float32) for v in (of.weight, of.bias))
    args = struct("nrg_channel_norm_backward_args", statistics=arrays.address(statistics), dw=arrays.address(dw), db=arrays.address(db),
                  running_mean=arrays.address(running[0]), running_var=arrays.address(running[1]))
    activated = of.spec.activation != 0  # otherwise the gradients do not depend on residual and bias
    args.b = arrays.address(of.bias) if activated else None
    of.fill(args, x=of.x, y=residual if activated else None, d_o=d_o, dx=dx, dy=dy)
    reduce("nrg_channel_norm_backward", (of.spec,), args, threads, dw is not None or db is not None)
    return ChannelGradients(dx, dy, dw, db)


def _running(mean, var, channels, written):
    pair = tuple(arrays.dense(v, n, (channels,), np.float32) for v, n in ((mean, "running_mean"), (var, "running_var")))
    for v, name in zip(pair, ("running_mean", "running_var")):
        if written and v is not None:
            arrays.output(v, name, (channels,), np.float32)
    return pair


def _needs_running(training, mean, var):
    for value, other, name in ((mean, var, "running_mean"), (var, mean, "running_var")):
        if value is None and (not training or other is not None):
            raise arrays.unexpected(name, "float32 [c], " + ("as with running_mean and running_var together" if training else "without training"), None)


def batch_norm(x, running_mean=None, running_var=None, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5, *, residual=None,
               activation="identity", layout="nchw", accuracy="fast", out=None, stats=False, dtype=None, threads=1):
    """activation((x - mean) / √(variance + eps) ⊙ weight + bias + residual), statistics of each channel over the batch.

    x             [n, c, …], or with layout "nhwc" [n, …, c]
    running_mean, running_var   float32 [c]: what is normalized with, or with `training` what the batch's statistics are mixed
                  into, in place; or None
    weight, bias  [c], or None
    residual      like x, added before the activation
    out           it may be x or residual
    stats         True: the statistics are returned too, nrg.STATISTICS [c], for batch_norm_backward()

    Returns an array like x, or (that, statistics).
    """
    _needs_running(training, running_mean, running_var)
    of = _Operands(x, weight, bias, "batch", 1, layout, dtype, eps, activation, accuracy, momentum=momentum,
                   source=enum("nrg_statistics_source", "compute" if training else "running", "NRG_STATISTICS_", "training"))
    return _forward(of, residual, out, stats, threads, _running(running_mean, running_var, of.channels, training), training)


def batch_norm_backward(d_o, x, running_mean=None, running_var=None, weight=None, bias=None, training=True, eps=1e-5, *, residual=None,
                        statistics=None, activation="identity", layout="nchw", accuracy="fast", out=None, dtype=None, threads=1):
    """The gradients of batch_norm(), for what it was called with.

    d_o, x      [n, c, …], or with layout "nhwc" [n, …, c]
    statistics  of the forward pass, or None: computed again
    running_mean, running_var   without training: constants
    out         where dx is written; it may be d_o or x

    Returns ChannelGradients(dx, dresidual, dweight, dbias); of the last three those of what was given.
    """
    _needs_running(training, running_mean, running_var)
    of = _Operands(x, weight, bias, "batch", 1, layout, dtype, eps, activation, accuracy,
                   source=enum("nrg_statistics_source", "compute" if training else "running", "NRG_STATISTICS_", "training"))
    running = (None, None) if training else _running(running_mean, running_var, of.channels, False)
    return _backward(of, d_o, residual, statistics, out, threads, running)


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5, *, residual=None, activation="identity", layout="nchw", accuracy="fast",
               out=None, stats=False, dtype=None, threads=1):
    """activation(the norm of each group of channels of each sample, ⊙ weight + bias + residual).

    x             [n, c, …], or with layout "nhwc" [n, …, c]
    num_groups    a divisor of c: 1 is layer norm over a sample, c instance norm
    weight, bias  [c], or None
    residual, out, stats   as of batch_norm(); statistics are [n · num_groups]

    Returns an array like x, or (that, statistics).
    """
    of = _Operands(x, weight, bias, "group", num_groups, layout, dtype, eps, activation, accuracy)
    return _forward(of, residual, out, stats, threads)


def group_norm_backward(d_o, x, num_groups, weight=None, bias=None, eps=1e-5, *, residual=None, statistics=None, activation="identity",
                        layout="nchw", accuracy="fast", out=None, dtype=None, threads=1):
    """The gradients of group_norm(), for what it was called with: as batch_norm_backward().

    d_o, x [n, c, …]  ->  ChannelGradients(dx, dresidual, dweight, dbias)
    """
    of = _Operands(x, weight, bias, "group", num_groups, layout, dtype, eps, activation, accuracy)
    return _backward(of, d_o, residual, statistics, out, threads)


def instance_norm(x, weight=None, bias=None, eps=1e-5, *, layout="nchw", **given):
    """group_norm() with a group for each channel.

    x [n, c, …]  ->  like x; options of group_norm()
    """
    return group_norm(x, _channels(x, layout), weight, bias, eps, layout=layout, **given)


def instance_norm_backward(d_o, x, weight=None, bias=None, eps=1e-5, *, layout="nchw", **given):
    """group_norm_backward() with a group for each channel.

    d_o, x [n, c, …]  ->  ChannelGradients(dx, dresidual, dweight, dbias)
    """
    return group_norm_backward(d_o, x, _channels(x, layout), weight, bias, eps, layout=layout, **given)


def _channels(x, layout):
    shape = np.shape(x)
    if len(shape) < 2:
        raise arrays.unexpected("x", "[n, c, …], or with layout 'nhwc' [n, …, c]", arrays.as_array(x, "x"))
    return shape[-1] if layout == "nhwc" else shape[1]
