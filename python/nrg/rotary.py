"""Rotary positions (nrg/rope.h), alone, after a norm of each head (nrg/norm_rope.h), and on the way to a KV cache (nrg/qkv.h)."""
import ctypes
import functools
from typing import NamedTuple, Optional

import numpy as np

from . import _arrays as arrays
from ._library import CONSTANTS, call, enum, function, put, share, struct
from .norms import spec as norm_spec


class Rope:
    """Which angles: made once for a model.

    n_dims    rotated elements of a head, even
    mode      "neox": halves, as Llama in PyTorch's layout; "normal": neighbours; "mrope", "vision", "imrope", "imrope_time"
    base      of the frequencies: 10000
    scaling   "none", "ntk" (factor), "llama3" (factor, low_freq_factor, high_freq_factor, n_ctx_orig)
    freq_scale, ext_factor, attn_factor, beta_fast, beta_slow, n_ctx_orig   of linear scaling and YaRN, as ggml has them
    truncate        YaRN: the ramp's ends are rounded; False: as gpt-oss has it
    mscale          YaRN: attn_factor is multiplied by 1 + 0.1 · ln(1/freq_scale); False: it is taken as it is
    sections        [4] pairs for time, height, width, extra, of the modes that have them
    freq_factors    float32 [pairs], of LongRoPE

    frequencies float64 [2, pairs] and magnitude are what nrg_rope_frequencies makes of it.
    """

    def __init__(self, n_dims, *, mode="neox", base=10000.0, scaling="none", n_ctx_orig=0, freq_scale=1.0, ext_factor=0.0,
                 attn_factor=1.0, beta_fast=32.0, beta_slow=1.0, sections=(0, 0, 0, 0), factor=1.0, low_freq_factor=1.0,
                 high_freq_factor=4.0, freq_factors=None, truncate=True, mscale=True):
        self._made_of = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._made_of["freq_factors"] = None if freq_factors is None else np.array(freq_factors)
        sections = tuple(sections) + (0,) * (4 - len(sections))
        if len(sections) > 4:
            raise arrays.unexpected("sections", "at most 4 numbers of pairs", sections)
        self.spec = struct("nrg_rope_spec", n_dims=n_dims, mode=enum("nrg_rope_mode", mode, "NRG_ROPE_", "mode"), n_ctx_orig=n_ctx_orig,
                           freq_base=base, freq_scale=freq_scale, ext_factor=ext_factor, attn_factor=attn_factor, beta_fast=beta_fast,
                           beta_slow=beta_slow, scaling=enum("nrg_rope_scaling", scaling, "NRG_ROPE_SCALING_", "scaling"), factor=factor,
                           low_freq_factor=low_freq_factor, high_freq_factor=high_freq_factor,
                           yarn=(0 if truncate else CONSTANTS["NRG_ROPE_YARN_NO_TRUNCATE"]) | (0 if mscale else CONSTANTS["NRG_ROPE_YARN_NO_MSCALE"]))
        self.spec.sections[:] = sections
        self.mode = mode
        pairs = function("nrg_rope_pairs")(ctypes.byref(self.spec))
        self._freq_factors = arrays.dense(freq_factors, "freq_factors", (pairs,), np.float32)
        self.spec.freq_factors = arrays.address(self._freq_factors)
        self.frequencies = np.empty((2, max(pairs, 1)), np.float64)
        magnitude = ctypes.c_double()
        call("nrg_rope_frequencies", self.spec, arrays.address(self.frequencies), ctypes.addressof(magnitude))
        self.pairs, self.magnitude = pairs, magnitude.value

    def __reduce__(self):
        """Copies and pickles are made anew: the spec has an address in it."""
        return functools.partial(type(self), **self._made_of), ()

    @property
    def axes(self):
        """Positions of a token: 1, or one for each section."""
        if self.mode == "imrope":
            return 4
        return max((i + 1 for i, pairs in enumerate(self.spec.sections) if pairs), default=1) if self.mode not in ("neox", "normal") else 1

    def table(self, positions, *, first_position=0, out=None, threads=1):
        """cos and sin of all pairs.

        positions  a number of tokens, counted from `first_position`; or integers [tokens], of modes with sections [axes, tokens]

        Returns float32 [tokens, 2 · pairs], which rope() and norm_rope() take.
        """
        if np.ndim(positions) == 2:
            tokens = np.shape(positions)[1]
            given = arrays.integers(positions, "positions", (self.axes, tokens))
        elif self.axes > 1 and np.ndim(positions) == 1:
            raise arrays.unexpected("positions", f"integers [{self.axes}, tokens]", arrays.as_array(positions, "positions"))
        else:
            tokens, given = arrays.counted(positions, "positions")
        table = arrays.dense(arrays.output(out, "out", (tokens, 2 * self.pairs), np.float32), "out", (tokens, 2 * self.pairs), None)
        args = struct("nrg_rope_table_args", tokens=tokens, frequencies=arrays.address(self.frequencies), magnitude=self.magnitude,
                      positions=arrays.address(given), first_position=first_position, table=arrays.address(table))
        share("nrg_rope_table", self.spec, args, threads=threads)
        return table


def _tensor(args, name, array, argument):
    """[batch, tokens, heads, dim] or [tokens, heads, dim], any strides."""
    if array is None or array.shape[-2] == 0:  # to C, none have no address
        return
    _, strides, _ = arrays.four(array, argument)
    setattr(args, name, arrays.address(array))
    to = getattr(args, name + "_strides")
    to.batch, to.row, to.head = strides


def _rotation(angles, q, k, table, positions, rotate_from, out, dtype, names=("q", "k")):
    """The nrg_rope_args of a call; (args, q_o, k_o, what has to be kept alive). names: of the arguments q and k."""
    q_name, k_name = names
    q = arrays.as_array(q, q_name)
    if q.ndim not in (3, 4):
        raise arrays.unexpected(q_name, "[tokens, heads, dim] or [batch, tokens, heads, dim]", q)
    shape = batch, tokens = q.shape[0] if q.ndim == 4 else 1, q.shape[-3]
    number = arrays.number(q, q_name, dtype)
    if k is not None:
        k = arrays.as_array(k, k_name)
        if k.dtype != q.dtype or k.ndim != q.ndim or k.shape[:-2] + k.shape[-1:] != q.shape[:-2] + q.shape[-1:]:
            raise arrays.unexpected(k_name, f"{q.dtype.name} {[*q.shape[:-2], 'heads', q.shape[-1]]} beside {q_name}", k)
    table = arrays.as_array(table, "table")
    if table.ndim != 2:
        raise arrays.unexpected("table", f"float32 [positions, {2 * angles.pairs}]", table)
    table = arrays.dense(table, "table", (table.shape[0], 2 * angles.pairs), np.float32)
    args = struct("nrg_rope_args", tokens=tokens, dim=q.shape[-1], rotate_from=rotate_from, dtype=number, table=arrays.address(table),
                  table_rows=table.shape[0], batch=batch, q_heads=q.shape[-2], k_heads=0 if k is None else k.shape[-2])
    if positions is not None:
        args.shared_positions = int(np.ndim(positions) == 1)
        positions = arrays.integers(positions, "positions", shape[1:] if args.shared_positions else shape)
        args.positions = arrays.address(positions)
    if positions is None and batch and table.shape[0] < tokens:
        raise arrays.unexpected("table", f"a row for each of {tokens} tokens", table)
    q_out, k_out = arrays.pair(out) if isinstance(out, (tuple, list)) else (out, None)
    q_o = arrays.output(q_out, "out", q.shape, q.dtype)
    k_o = None if k is None else arrays.output(k_out, "out", k.shape, k.dtype)
    for name, array, argument in (("q", q, q_name), ("k", k, k_name), ("q_o", q_o, "out"), ("k_o", k_o, "out")):
        _tensor(args, name, array, argument)
    return args, q_o, k_o, (q, k, table, positions)


def rope(angles, q, k=None, *, table, positions=None, rotate_from=0, out=None, dtype=None, threads=1):
    """Rotates the heads of q, and of k.

    angles     a Rope
    q, k       [batch, tokens, heads, dim] or [tokens, heads, dim]; k may have another number of heads, or be None. Any strides:
               q.transpose(0, 2, 1, 3) of what lies as [batch, heads, tokens, dim] is as good
    table      of angles.table()
    positions  integers [tokens] or [batch, tokens]: the table's row of each token; None: token t has row t
    rotate_from  the first rotated element of a head
    out        of q; or (of q, of k). They may be q and k

    Returns q's result, or with k both.
    """
    args, q_o, k_o, _held = _rotation(angles, q, k, table, positions, rotate_from, out, dtype)
    share("nrg_rope_forward", angles.spec, args, threads=threads)
    return q_o if k is None else (q_o, k_o)


def rope_backward(angles, d_q, d_k=None, *, table, positions=None, rotate_from=0, out=None, dtype=None, threads=1):
    """The gradients of q and k from those of rope()'s results.

    d_q, d_k [batch, tokens, heads, dim]  ->  the same
    """
    args, dq, dk, _held = _rotation(angles, d_q, d_k, table, positions, rotate_from, out, dtype, ("d_q", "d_k"))
    share("nrg_rope_backward", angles.spec, args, threads=threads)
    return dq if d_k is None else (dq, dk)


def norm_rope(angles, q, k=None, q_weight=None, k_weight=None, *, table, positions=None, rotate_from=0, eps=1e-6, centred=False, q_bias=None,
              k_bias=None, weight_offset=0.0, accuracy="fast", out=None, dtype=None, threads=1):
    """A norm of every head, then its rotation: the QK-norm of Qwen 3 and Gemma 3, in one pass.

    q, k                [batch, tokens, heads, dim] or [tokens, heads, dim]
    q_weight, k_weight  [dim], or None; q_bias and k_bias likewise
    The norm is an RMSNorm, or with centred a LayerNorm; all else as in rope().

    Returns q's result, or with k both; the bits are those of rms_norm() and rope() in turn.
    """
    args, q_o, k_o, held = _rotation(angles, q, k, table, positions, rotate_from, out, dtype)
    vectors = {name: arrays.dense(v, name, (args.dim,), None) for name, v in
               (("q_weight", q_weight), ("q_bias", q_bias), ("k_weight", k_weight), ("k_bias", k_bias))}
    w_dtype = arrays.number_of_vectors(vectors, dtype, args.dtype, "q")
    vectors = list(vectors.values())
    norm = norm_spec(args.dim, args.dtype, eps=eps, centred=centred, weight_offset=weight_offset, accuracy=accuracy,
                     w_dtype=w_dtype)
    norms = [struct("nrg_norm_args", w=arrays.address(w), b=arrays.address(b)) for w, b in (vectors[:2], vectors[2:])]
    share("nrg_norm_rope_forward", norm, angles.spec, args, norms[0], norms[1] if held[1] is not None else None, threads=threads)
    return q_o if k is None else (q_o, k_o)


class NormRopeGradients(NamedTuple):
    """dq and dk like q and k; of the weights and biases float32 [dim]; None for what was not given."""
    dq: np.ndarray
    dk: Optional[np.ndarray]
    dq_weight: Optional[np.ndarray]
    dk_weight: Optional[np.ndarray]
    dq_bias: Optional[np.ndarray]
    dk_bias: Optional[np.ndarray]


def norm_rope_backward(angles, d_q, d_k, q, k=None, q_weight=None, k_weight=None, *, table, positions=None, rotate_from=0, eps=1e-6,
                       centred=False, q_bias=None, k_bias=None, weight_offset=0.0, accuracy="fast", out=None, dtype=None, threads=1):
    """The gradients of norm_rope(), for what it was called with.

    d_q, d_k  like q and k, [batch, tokens, heads, dim] or [tokens, heads, dim]: the gradients of the results; d_k is None without k
    out       for dq; or (for dq, for dk). They may be d_q and d_k

    Returns NormRopeGradients(dq, dk, dq_weight, dk_weight, dq_bias, dk_bias).
    """
    args, dq, dk, held = _rotation(angles, d_q, d_k, table, positions, rotate_from, out, dtype, ("d_q", "d_k"))
    vectors = {name: arrays.dense(v, name, (args.dim,), None) for name, v in
               (("q_weight", q_weight), ("q_bias", q_bias), ("k_weight", k_weight), ("k_bias", k_bias))}
    norm = norm_spec(args.dim, args.dtype, eps=eps, centred=centred, weight_offset=weight_offset, accuracy=accuracy,
                     w_dtype=arrays.number_of_vectors(vectors, dtype, args.dtype, "q"))
    given, results, memories = [], [], []
    for name, x, gradient in (("q", q, held[0]), ("k", k, held[1])):
        weight, bias = vectors[name + "_weight"], vectors[name + "_bias"]
        if gradient is None:
            if x is not None:
                raise arrays.unexpected("d_k", "an array, since k is given", None)
            given.append(None)
            results.append((None, None))
            continue
        x = arrays.like(x, name, gradient, "d_" + name)
        (_, _, heads), strides, _ = arrays.four(x, name)
        dw, db = (None if v is None else np.empty(args.dim, np.float32) for v in (weight, bias))
        of = struct("nrg_norm_backward_args", rows=args.batch * args.tokens * heads, x=arrays.address(x), w=arrays.address(weight),
                    b=arrays.address(bias), dw=arrays.address(dw), db=arrays.address(db), x_stride=tuple(reversed(strides)))
        size = ctypes.c_size_t()
        call("nrg_norm_backward_workspace", norm, of, ctypes.addressof(size))
        memory = arrays.workspace(size.value)
        of.workspace, of.workspace_size = arrays.address(memory), size.value
        given.append(of)
        results.append((dw, db))
        memories += [x, weight, bias, memory]
    share("nrg_norm_rope_backward", norm, angles.spec, args, *given, threads=threads)
    share("nrg_norm_rope_backward_reduce", norm, angles.spec, args, *given, threads=threads)
    return NormRopeGradients(dq, dk, results[0][0], results[1][0], results[0][1], results[1][1])


def qkv(angles, q, k, v, *, positions=0, slots=None, k_cache=None, v_cache=None, q_weight=None, k_weight=None, eps=None, q_bias=None,
        k_bias=None, centred=False, weight_offset=0.0, rotate_from=0, out=None, dtype=None, threads=1):
    """What an engine does between projections and attention: norm of heads, rotation, and k and v to their slots of a KV cache.

    q, k, v            [tokens, heads, dim] of one dtype, each with its own number of heads; v may have another dim; k or v may be None
    positions          integers [tokens] (of modes with sections [axes, tokens]), or the position of the first token
    slots              integers [tokens]: the row of the caches for each token, no two alike; -1: of a padding token, whose k and v
                       are not written, while its q is; None: row t
    k_cache, v_cache   [rows, heads, dim] of any dtype, written in place; or uint8 [rows, heads, dim/32·34], which becomes q8_0;
                       None: new arrays like k and v
    q_weight, k_weight, q_bias, k_bias   float32 [dim] of the norm; there is a norm where eps is not None
    out                of q, any dtype; it may be q

    Returns (q's result, k_cache, v_cache).
    """
    tensors = {name: None if value is None else arrays.as_array(value, name) for name, value in (("q", q), ("k", k), ("v", v))}
    q = tensors["q"]
    if q is None or q.ndim != 3 or q.shape[-1] == 0:
        raise arrays.unexpected("q", "[tokens, heads, dim] with one element or more", q)
    tokens, dim = q.shape[0], q.shape[-1]
    args = struct("nrg_qkv_args", tokens=tokens, dim=dim, rotate_from=rotate_from, dtype=arrays.number(q, "q", dtype))
    for name, array in tensors.items():
        if array is None:
            continue
        if array.ndim != 3 or array.dtype != q.dtype or array.shape[0] != tokens or (name == "k" and array.shape[-1] != dim) \
                or array.shape[-1] == 0:
            raise arrays.unexpected(name, f"{q.dtype.name} {[tokens, 'heads', 'dim' if name == 'v' else dim]} beside q", array)
    if tensors["v"] is not None:
        args.v_dim = tensors["v"].shape[-1]
    slots = arrays.integers(slots, "slots", (tokens,), np.int64)
    caches = {"q": arrays.output(out, "out", q.shape, q.dtype if out is None else out.dtype), "k": k_cache, "v": v_cache}
    for name in ("k", "v"):
        array, cache = tensors[name], caches[name]
        if array is None:
            if cache is not None:
                raise arrays.unexpected(name + "_cache", f"None without {name}", cache)
            continue
        if cache is None:
            if slots is not None:
                raise arrays.unexpected(name + "_cache", "an array with slots", None)
            cache = caches[name] = np.empty(array.shape, array.dtype)
        if not isinstance(cache, np.ndarray):
            raise TypeError(f"{name}_cache: expected an ndarray, got {type(cache).__name__}")
        quantized = cache.dtype == np.uint8
        if quantized and array.shape[2] % 32:
            raise arrays.unexpected(name, "heads of a multiple of 32 elements for a cache of q8_0", array)
        wanted = (cache.shape[0] if slots is not None and cache.ndim else tokens, array.shape[1],
                  array.shape[2] // 32 * 34 if quantized else array.shape[2])
        if cache.shape != wanted:
            raise arrays.unexpected(name + "_cache", f"{'uint8 ' if quantized else ''}{['rows', *wanted[1:]] if slots is not None else list(wanted)}",
                                    cache)
        arrays.output(cache, name + "_cache", wanted, cache.dtype)
        setattr(args, name + "_o_format", enum("nrg_quant_format", "q8_0" if quantized else "none", "NRG_QUANT_", name + "_cache"))
    rows = {caches[name].shape[0] for name in ("k", "v") if caches[name] is not None}
    if len(rows) > 1:
        raise arrays.unexpected("v_cache", f"{caches['k'].shape[0]} rows like k_cache", caches["v"])
    args.slot_count = rows.pop() if rows and slots is not None else 0
    args.slots = arrays.address(slots)
    for name in ("q", "k", "v"):
        if tensors[name] is None:
            continue
        setattr(args, name + "_heads", tensors[name].shape[1])
        if caches[name].dtype != np.uint8:
            setattr(args, name + "_o_dtype", arrays.kind_of(caches[name], "out" if name == "q" else name + "_cache", dtype))
        if tensors[name].shape[1] == 0:  # to C, none have no address
            continue
        for field, array, argument in ((name, tensors[name], name), (name + "_o", caches[name], "out" if name == "q" else name + "_cache")):
            _, (_, token, head), _ = arrays.four(array, argument)
            setattr(args, field, arrays.address(array))
            to = getattr(args, field + "_strides")
            to.row, to.head = token, head
    if np.ndim(positions) == 0:
        put(args, first_position=positions)
        positions = None
    else:
        positions = arrays.integers(positions, "positions", (tokens,) if angles.axes == 1 else (angles.axes, tokens))
        args.positions = arrays.address(positions)
    vectors = {name: arrays.dense(value, name, (dim,), np.float32) for name, value in
               (("q_weight", q_weight), ("k_weight", k_weight), ("q_bias", q_bias), ("k_bias", k_bias))}
    for name, array in vectors.items():
        if getattr(args, name[0] + "_heads"):
            setattr(args, name[:3], arrays.address(array))
    norm = None
    if eps is not None:
        norm = norm_spec(dim, arrays.F32, eps=eps, centred=centred, weight_offset=weight_offset)
    size = ctypes.c_size_t()
    call("nrg_qkv_workspace", angles.spec, args, threads, ctypes.addressof(size))
    memory = arrays.workspace(size.value)
    args.workspace, args.workspace_size = arrays.address(memory), size.value
    share("nrg_qkv_forward", norm, angles.spec, args, threads=threads)
    return caches["q"], caches["k"], caches["v"]
