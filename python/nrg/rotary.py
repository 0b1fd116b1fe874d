"""Rotary positions (nrg/rope.h): separate, after a norm of each head (nrg/norm_rope.h), and before a KV cache (nrg/qkv.h).

    rotate positions      rope  norm_rope  qkv (no backward)  Rope (angles, tables)"""
from __future__ import annotations

import ctypes
import functools
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union, overload

import numpy as np

from . import _arrays as arrays
from ._library import CONSTANTS, Error, call, constant, enum, function, keep, new, planned, put, share, struct, thread_count
from ._types import Accuracy, Array, ArrayLike, DType, F32Array, Positions, RopeMode, RopeScaling
from .norms import _spec_of


@constant
class Rope:
    """The angles of a model's rotary positions. Create it once for a model.

    Parameters:
    - n_dims: the rotated elements of a head, even.
    - mode: "neox": halves, as Llama in PyTorch. "normal": neighbours. "mrope", "vision", "imrope", "imrope_time": with sections.
    - base: of the frequencies.
    - scaling: "none", "ntk" (factor), or "llama3" (factor, low_freq_factor, high_freq_factor, n_ctx_orig).
    - n_ctx_orig, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow: of linear scaling and YaRN, as in ggml.
    - sections: the numbers of pairs for time, height, width and extra.
    - freq_factors: float32 [pairs], of LongRoPE.
    - truncate: YaRN rounds the ends of its ramp. False for gpt-oss.
    - mscale: YaRN multiplies attn_factor by 1 + 0.1 · ln(1/freq_scale).

    Attributes: pairs, frequencies float64 [2, pairs], and magnitude, as nrg_rope_frequencies computes them.

    >>> rope = nrg.Rope(64, base=500000.0, scaling="llama3", factor=8.0, n_ctx_orig=8192)
    >>> rope.pairs
    32
    """

    def __init__(self, n_dims: int, *, mode: RopeMode = "neox", base: float = 10000.0, scaling: RopeScaling = "none", n_ctx_orig: int = 0,
                 freq_scale: float = 1.0, ext_factor: float = 0.0, attn_factor: float = 1.0, beta_fast: float = 32.0,
                 beta_slow: float = 1.0, sections: Sequence[int] = (0, 0, 0, 0), factor: float = 1.0, low_freq_factor: float = 1.0,
                 high_freq_factor: float = 4.0, freq_factors: Optional[ArrayLike] = None, truncate: bool = True,
                 mscale: bool = True) -> None:
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
        pairs = int(function("nrg_rope_pairs")(ctypes.byref(self.spec)))
        self._freq_factors = arrays.dense(freq_factors, "freq_factors", (pairs,), np.float32)
        self.spec.freq_factors = arrays.address(self._freq_factors)
        self.frequencies = np.empty((2, max(pairs, 1)), np.float64)
        magnitude = ctypes.c_double()
        call("nrg_rope_frequencies", self.spec, arrays.address(self.frequencies), ctypes.addressof(magnitude))
        self.pairs, self.magnitude = pairs, magnitude.value

    def __reduce__(self) -> Any:
        """Copies and pickles are created again: the spec contains an address."""
        return functools.partial(type(self), **self._made_of), ()

    @property
    def axes(self) -> int:
        """The positions of a token: 1, or one per section."""
        if self.mode == "imrope":
            return 4
        return max((i + 1 for i, pairs in enumerate(self.spec.sections) if pairs), default=1) if self.mode not in ("neox", "normal") else 1

    def table(self, positions: Union[int, ArrayLike], *, first_position: int = 0, out: Optional[Array] = None, threads: int = 1) -> F32Array:
        """Returns the cosines and sines of all pairs, for table= of rope() and norm_rope().

        Parameters:
        - positions: the number of tokens; or integers [tokens], in modes with sections [axes, tokens].
        - first_position: the position of the first token, if positions is a number.
        - out: the array for the result.

        Returns float32 [tokens, 2 · pairs].

        >>> nrg.Rope(2).table(2).round(4)
        array([[1.    , 0.    ],
               [0.5403, 0.8415]], dtype=float32)
        """
        if np.ndim(positions) == 2:
            tokens = np.shape(positions)[1]
            given = arrays.integers(positions, "positions", (self.axes, tokens))
        elif self.axes > 1 and np.ndim(positions) == 1:
            raise arrays.unexpected("positions", f"integers [{self.axes}, tokens]", arrays.as_array(positions, "positions"))
        else:
            tokens, given = arrays.counted(positions, "positions")
        if given is not None and first_position:
            raise arrays.unexpected("first_position", "0, since positions is an array", first_position)
        table: F32Array = arrays.dense(arrays.output(out, "out", (tokens, 2 * self.pairs), np.float32), "out", (tokens, 2 * self.pairs), None)
        args = struct("nrg_rope_table_args", tokens=tokens, frequencies=arrays.address(keep(self.frequencies)), magnitude=self.magnitude,
                      positions=arrays.address(given), first_position=first_position, table=arrays.address(table))
        share("nrg_rope_table", self.spec, args, threads=threads)
        return table


@functools.lru_cache(64)
def _simple(n_dims: int, base: float, mode: RopeMode) -> Rope:
    return Rope(n_dims, base=base, mode=mode)


def _angles(angles: Optional[Rope], base: Optional[float], n_dims: Optional[int], mode: Optional[RopeMode], table: Any, x: Array,
            name: str, rotate_from: int) -> Rope:
    """Returns the Rope of a call: the one given, or one for base, n_dims and mode. With a table, the base has no effect. name: of x."""
    if angles is not None:
        if not isinstance(angles, Rope):
            raise arrays.unexpected("angles", "a Rope", type(angles).__name__)
        for name, value in (("base", base), ("n_dims", n_dims), ("mode", mode)):
            if value is not None:
                raise arrays.unexpected(name, "None, since angles specifies it", value)
        return angles
    if table is not None and base is not None:
        raise arrays.unexpected("base", "None, since table contains the angles", base)
    if n_dims is None:
        n_dims = x.shape[-1] - arrays.count(rotate_from, "rotate_from") if table is None or np.ndim(table) != 2 else np.shape(table)[1]
        if table is None and rotate_from == 0 and n_dims % 2:
            raise arrays.unexpected(name, "an even head dim", x)
    return _simple(n_dims, 10000.0 if base is None else base, mode or "neox")


def _shaped(value: Any, name: str) -> Array:
    """Returns [batch, tokens, heads, dim] or [tokens, heads, dim] for these, for [tokens, dim], and for more dimensions of batches."""
    array = arrays.as_array(value, name)
    if array.ndim < 2:
        raise arrays.unexpected(name, "[..., tokens, heads, dim] or [tokens, dim]", array)
    if array.ndim == 2:
        return array[:, None]
    return array if array.ndim < 5 else arrays.joined(array, name, 0, array.ndim - 3)


def _tensor(args: Any, name: str, array: Optional[Array], argument: str) -> None:
    """Sets the address and strides of [batch, tokens, heads, dim] or [tokens, heads, dim]."""
    if array is None or array.shape[-2] == 0:  # C requires NULL for no heads
        return
    _, strides, _ = arrays.four(array, argument)
    setattr(args, name, arrays.address(array))
    to = getattr(args, name + "_strides")
    to.batch, to.row, to.head = strides


class _Rotation:
    """The nrg_rope_args of a call, its results, and the arrays that it points to. names: of the arguments q and k."""

    def __init__(self, given: Any, positions: Positions, k: Any, *, base: Optional[float], n_dims: Optional[int], mode: Optional[RopeMode],
                 angles: Optional[Rope], table: Any, rotate_from: int, out: Any, dtype: DType, names: Tuple[str, str]) -> None:
        q_name, k_name = names
        given = arrays.as_array(given, q_name)
        q = _shaped(given, q_name)
        self.dim = q.shape[-1]
        self.angles = _angles(angles, base, n_dims, mode, table, given, q_name, rotate_from)
        batch, tokens = q.shape[0] if q.ndim == 4 else 1, q.shape[-3]
        number = arrays.number(q, q_name, dtype)
        k_given = None if k is None else arrays.as_array(k, k_name)
        k = None if k is None else _shaped(k_given, k_name)
        if k is not None and (k.dtype != q.dtype or k.ndim != q.ndim or k.shape[:-2] + k.shape[-1:] != q.shape[:-2] + q.shape[-1:]):
            raise arrays.unexpected(k_name, f"{q.dtype.name} {arrays.sizes(*q.shape[:-2], 'heads', q.shape[-1])}, since {q_name} is {arrays.described(given)}",
                                    k_given)
        self.table: Any = table
        positions = self.positions(positions, given.shape, batch, tokens)
        width = 2 * self.angles.pairs
        self.table = arrays.as_array(self.table, "table")
        if self.table.ndim != 2:
            raise arrays.unexpected("table", f"float32 [positions, {width}]", self.table)
        self.table = arrays.dense(self.table, "table", (self.table.shape[0], width), np.float32)
        self.args = args = struct("nrg_rope_args", tokens=tokens, dim=self.dim, rotate_from=rotate_from, dtype=number,
                                  table=arrays.address(self.table), table_rows=self.table.shape[0], batch=batch, q_heads=q.shape[-2],
                                  k_heads=0 if k is None else k.shape[-2])
        if positions is None and batch and self.table.shape[0] < tokens:
            raise arrays.unexpected("table", f"a row for each of {tokens} tokens", self.table)
        if positions is not None:
            args.shared_table_ids = int(np.ndim(positions) == 1)
            positions = arrays.integers(positions, "positions", (tokens,) if args.shared_table_ids else (batch, tokens),
                                        of="[tokens]" if args.shared_table_ids else "[batch, tokens]")
            args.table_ids = arrays.address(positions)
        q_out, k_out = arrays.pair(out) if isinstance(out, (tuple, list)) else (out, None)
        self.q_o = arrays.output(q_out, "out", given.shape, q.dtype)
        self.k_o = None if k_given is None else arrays.output(k_out, "out", k_given.shape, k_given.dtype)
        self.q, self.k, self.q_given, self.k_given = q, k, given, k_given
        self.held: Any = positions
        keep(self.angles._freq_factors)  # pylint: disable=protected-access
        for name, array, argument in (("q", q, q_name), ("k", k, k_name), ("q_o", _shaped(self.q_o, "out"), "out"),
                                      ("k_o", None if self.k_o is None else _shaped(self.k_o, "out"), "out")):
            _tensor(args, name, array, argument)

    def positions(self, positions: Any, shape: Tuple[int, ...], batch: int, tokens: int) -> Any:
        """Sets the table, and returns the row of each token or None for rows in order."""
        if np.ndim(positions) == 2 and np.shape(positions)[0] == 1 and batch > 1 and self.angles.axes == 1:  # position_ids of PyTorch
            positions = arrays.as_array(positions, "positions")[0]
        if positions is not None and np.ndim(positions) > 2:
            if np.shape(positions) != shape[:-2]:
                raise arrays.unexpected("positions", f"integers {[*shape[:-2]]} or [{tokens}]", arrays.as_array(positions, "positions"))
            positions = np.reshape(positions, (batch, tokens))
        if self.table is not None:
            return positions
        rows = None
        if positions is None or np.ndim(positions) == 0:
            first = 0 if positions is None else positions.item() if isinstance(positions, np.ndarray) else positions
            if not hasattr(first, "__index__"):
                raise arrays.unexpected("positions", f"integers [{tokens}], or the first position", positions)
            self.table = self.angles.table(tokens, first_position=first)
        elif self.angles.axes > 1 or np.ndim(positions) == 1:
            wanted = (self.angles.axes, tokens) if self.angles.axes > 1 else (tokens,)
            self.table = self.angles.table(arrays.integers(positions, "positions", wanted, of="[axes, tokens]" if len(wanted) == 2 else "[tokens]"))
        else:
            self.table = self.angles.table(arrays.integers(positions, "positions", (batch, tokens), of="[batch, tokens]").reshape(-1))
            rows = np.arange(batch * tokens, dtype=np.int32).reshape(batch, tokens)
        return rows

    def run(self, name: str, *arguments: Any, threads: int) -> None:
        try:
            share(name, *arguments, threads=threads)
        except Error as error:
            raise (error if self.held is None else arrays.explained(error, "positions", self.held, self.args.table_rows)) from None

    def results(self) -> Any:
        return self.q_o if self.k_o is None else (self.q_o, self.k_o)


@overload
def rope(x: ArrayLike, positions: Positions = None, *, k: None = None, base: Optional[float] = None, n_dims: Optional[int] = None,
         mode: Optional[RopeMode] = None, angles: Optional[Rope] = None, table: Optional[ArrayLike] = None, rotate_from: int = 0,
         out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Array:
    ...


@overload
def rope(x: ArrayLike, positions: Positions = None, *, k: ArrayLike, base: Optional[float] = None, n_dims: Optional[int] = None,
         mode: Optional[RopeMode] = None, angles: Optional[Rope] = None, table: Optional[ArrayLike] = None, rotate_from: int = 0,
         out: Optional[Tuple[Array, Array]] = None, dtype: DType = None, threads: int = 1) -> Tuple[Array, Array]:
    ...


@planned
def rope(x: ArrayLike, positions: Positions = None, *, k: Optional[ArrayLike] = None, base: Optional[float] = None,
         n_dims: Optional[int] = None, mode: Optional[RopeMode] = None, angles: Optional[Rope] = None, table: Optional[ArrayLike] = None,
         rotate_from: int = 0, out: Any = None, dtype: DType = None, threads: int = 1) -> Any:
    """Rotates each head of x, and of k, by the position of its token.

    Parameters:
    - x: [..., tokens, heads, dim] or [tokens, dim], with any strides. For [batch, heads, tokens, dim], pass x.transpose(0, 2, 1, 3).
    - positions: integers [tokens], [..., tokens] or [1, tokens], or the position of token 0. In modes with sections [axes, tokens]. None: 0, 1, …
    - k: a second tensor, which may have another number of heads.
    - base: of the frequencies. None: 10000.
    - n_dims: the rotated elements of a head. None: all from rotate_from.
    - mode: "neox" (halves, the default), "normal" (neighbours), or a mode with sections.
    - angles: a Rope, in place of base, n_dims and mode.
    - table: of angles.table(), to compute it once for many calls. positions then selects its rows.
    - rotate_from: the first rotated element of a head.
    - out: the array for the result, or with k two. They may be x and k.

    Returns an array like x, or with k two.

    >>> x = np.array([[1, 0], [1, 0]], np.float32)
    >>> nrg.rope(x, [0, 1], base=10000.0).round(4)
    array([[1.    , 0.    ],
           [0.5403, 0.8415]], dtype=float32)
    """
    of = _Rotation(x, positions, k, base=base, n_dims=n_dims, mode=mode, angles=angles, table=table, rotate_from=rotate_from, out=out,
                   dtype=dtype, names=("x", "k"))
    of.run("nrg_rope_forward", of.angles.spec, of.args, threads=threads)
    return of.results()


@overload
def rope_backward(d_x: ArrayLike, positions: Positions = None, *, d_k: None = None, base: Optional[float] = None,
                  n_dims: Optional[int] = None, mode: Optional[RopeMode] = None, angles: Optional[Rope] = None,
                  table: Optional[ArrayLike] = None, rotate_from: int = 0, out: Optional[Array] = None, dtype: DType = None,
                  threads: int = 1) -> Array:
    ...


@overload
def rope_backward(d_x: ArrayLike, positions: Positions = None, *, d_k: ArrayLike, base: Optional[float] = None,
                  n_dims: Optional[int] = None, mode: Optional[RopeMode] = None, angles: Optional[Rope] = None,
                  table: Optional[ArrayLike] = None, rotate_from: int = 0, out: Optional[Tuple[Array, Array]] = None, dtype: DType = None,
                  threads: int = 1) -> Tuple[Array, Array]:
    ...


@planned
def rope_backward(d_x: ArrayLike, positions: Positions = None, *, d_k: Optional[ArrayLike] = None, base: Optional[float] = None,
                  n_dims: Optional[int] = None, mode: Optional[RopeMode] = None, angles: Optional[Rope] = None,
                  table: Optional[ArrayLike] = None, rotate_from: int = 0, out: Any = None, dtype: DType = None, threads: int = 1) -> Any:
    """Returns the gradients of rope(), called with the same options.

    Parameters:
    - d_x, d_k: [..., tokens, heads, dim] or [tokens, dim]: the gradients of the results.
    - positions and options: as in rope().

    Returns an array like d_x, or with d_k two.

    >>> x = np.array([[1, 0], [1, 0]], np.float32)
    >>> nrg.rope_backward(nrg.rope(x)).round(4)
    array([[1., 0.],
           [1., 0.]], dtype=float32)
    """
    of = _Rotation(d_x, positions, d_k, base=base, n_dims=n_dims, mode=mode, angles=angles, table=table, rotate_from=rotate_from, out=out,
                   dtype=dtype, names=("d_x", "d_k"))
    of.run("nrg_rope_backward", of.angles.spec, of.args, threads=threads)
    return of.results()


@planned
def norm_rope(q: ArrayLike, k: Optional[ArrayLike] = None, q_weight: Optional[ArrayLike] = None, k_weight: Optional[ArrayLike] = None, *,
              positions: Positions = None, base: Optional[float] = None, n_dims: Optional[int] = None, mode: Optional[RopeMode] = None,
              angles: Optional[Rope] = None, table: Optional[ArrayLike] = None, rotate_from: int = 0, eps: Optional[float] = 1e-6,
              centred: bool = False, q_bias: Optional[ArrayLike] = None, k_bias: Optional[ArrayLike] = None, weight_offset: float = 0.0,
              accuracy: Accuracy = "fast", out: Any = None, dtype: DType = None, threads: int = 1) -> Any:
    """Normalizes each head, then rotates it: the QK-norm of Qwen 3 and Gemma 3, in one pass.

    Parameters:
    - q, k: [..., tokens, heads, dim] or [tokens, dim].
    - q_weight, k_weight, q_bias, k_bias: [dim].
    - eps, weight_offset, accuracy: as in rms_norm().
    - centred: a LayerNorm in place of an RMSNorm.
    - the others: as in rope().

    Returns an array like q, or with k two. They are bit-identical with rms_norm() followed by rope().

    >>> q = np.array([[3, 3], [3, 3]], np.float32)
    >>> nrg.norm_rope(q, positions=[0, 1]).round(4)
    array([[ 1.    ,  1.    ],
           [-0.3012,  1.3818]], dtype=float32)
    """
    of = _Rotation(q, positions, k, base=base, n_dims=n_dims, mode=mode, angles=angles, table=table, rotate_from=rotate_from, out=out,
                   dtype=dtype, names=("q", "k"))
    vectors, norm = _norm(of, {"q_weight": q_weight, "q_bias": q_bias, "k_weight": k_weight, "k_bias": k_bias}, dtype, eps, centred,
                          weight_offset, accuracy)
    rows = of.args.batch * of.args.tokens
    norms = [struct("nrg_norm_args", rows=rows * heads, w=arrays.address(vectors[name + "_weight"]), b=arrays.address(vectors[name + "_bias"]))
             for name, heads in (("q", of.args.q_heads), ("k", of.args.k_heads))]
    of.run("nrg_norm_rope_forward", norm, of.angles.spec, of.args, norms[0], norms[1] if of.k is not None else None, threads=threads)
    return of.results()


def _norm(of: _Rotation, vectors: Dict[str, Any], dtype: DType, eps: Optional[float], centred: bool, weight_offset: float,
          accuracy: str) -> Tuple[Dict[str, Any], Any]:
    vectors = {name: arrays.dense(value, name, (of.dim,), None) for name, value in vectors.items()}
    number = of.args.dtype
    return vectors, _spec_of(of.dim, number, eps=eps, centred=centred, weight_offset=weight_offset, accuracy=accuracy,
                              w_dtype=arrays.number_of_vectors(vectors, dtype, number, "q"))


class NormRopeGradients(NamedTuple):
    """The gradients of norm_rope(): dq and dk like q and k; of weights and biases float32 [dim]; None for what was not given.

    >>> q = np.ones((1, 2), np.float32)
    >>> nrg.norm_rope_backward(q, None, q).dk is None
    True
    """
    dq: Array
    dk: Optional[Array]
    dq_weight: Optional[F32Array]
    dk_weight: Optional[F32Array]
    dq_bias: Optional[F32Array]
    dk_bias: Optional[F32Array]


@planned
def norm_rope_backward(d_q: ArrayLike, d_k: Optional[ArrayLike], q: ArrayLike, k: Optional[ArrayLike] = None,
                       q_weight: Optional[ArrayLike] = None, k_weight: Optional[ArrayLike] = None, *, positions: Positions = None,
                       base: Optional[float] = None, n_dims: Optional[int] = None, mode: Optional[RopeMode] = None,
                       angles: Optional[Rope] = None, table: Optional[ArrayLike] = None, rotate_from: int = 0,
                       eps: Optional[float] = 1e-6, centred: bool = False, q_bias: Optional[ArrayLike] = None,
                       k_bias: Optional[ArrayLike] = None, weight_offset: float = 0.0, accuracy: Accuracy = "fast", out: Any = None,
                       dtype: DType = None, threads: int = 1) -> NormRopeGradients:
    """Returns the gradients of norm_rope(), called with the same arguments.

    Parameters:
    - d_q, d_k: [..., tokens, heads, dim] or [tokens, dim]: the gradients of the results. d_k is None without k.
    - q, k and options: as in norm_rope().
    - out: the array for dq, or with k two. They may be d_q and d_k.

    Returns NormRopeGradients(dq, dk, dq_weight, dk_weight, dq_bias, dk_bias).

    >>> q, w = np.ones((1, 2), np.float32), np.ones(2, np.float32)
    >>> nrg.norm_rope_backward(q, None, q, None, w).dq_weight.round(4)
    array([1., 1.], dtype=float32)
    """
    rotation = _Rotation(d_q, positions, d_k, base=base, n_dims=n_dims, mode=mode, angles=angles, table=table, rotate_from=rotate_from,
                         out=out, dtype=dtype, names=("d_q", "d_k"))
    args = rotation.args
    vectors, norm = _norm(rotation, {"q_weight": q_weight, "q_bias": q_bias, "k_weight": k_weight, "k_bias": k_bias}, dtype, eps, centred,
                          weight_offset, accuracy)
    given: List[Any] = []
    results: List[Tuple[Any, Any]] = []
    memories: List[Any] = []
    for name, x, gradient in (("q", q, rotation.q_given), ("k", k, rotation.k_given)):
        weight, bias = vectors[name + "_weight"], vectors[name + "_bias"]
        if gradient is None:
            if x is not None:
                raise arrays.unexpected("d_k", "an array, since k is given", None)
            given.append(None)
            results.append((None, None))
            continue
        if x is None:
            raise arrays.unexpected(name, f"an array like d_{name}", None)
        x = _shaped(arrays.like(x, name, gradient, "d_" + name), name)
        (_, _, heads), strides, _ = arrays.four(x, name)
        dw, db = (None if v is None else new(args.dim, np.float32) for v in (weight, bias))
        of = struct("nrg_norm_backward_args", rows=args.batch * args.tokens * heads, x=arrays.address(x), w=arrays.address(weight),
                    b=arrays.address(bias), dw=arrays.address(dw), db=arrays.address(db), x_stride=tuple(reversed(strides)))
        size = ctypes.c_size_t()
        call("nrg_norm_backward_workspace", norm, of, ctypes.addressof(size))
        memory = arrays.workspace(size.value)
        of.workspace, of.workspace_size = arrays.address(memory), size.value
        given.append(of)
        results.append((dw, db))
        memories += [x, memory]
    rotation.run("nrg_norm_rope_backward", norm, rotation.angles.spec, args, *given, threads=threads)
    share("nrg_norm_rope_backward_reduce", norm, rotation.angles.spec, args, *given, threads=threads)
    return NormRopeGradients(rotation.q_o, rotation.k_o, results[0][0], results[1][0], results[0][1], results[1][1])


@planned
def qkv(q: ArrayLike, k: Optional[ArrayLike], v: Optional[ArrayLike], *, positions: Union[int, ArrayLike] = 0,
        slots: Optional[ArrayLike] = None, k_cache: Optional[Array] = None, v_cache: Optional[Array] = None,
        base: Optional[float] = None, n_dims: Optional[int] = None, mode: Optional[RopeMode] = None, angles: Optional[Rope] = None,
        q_weight: Optional[ArrayLike] = None, k_weight: Optional[ArrayLike] = None, eps: Optional[float] = None,
        q_bias: Optional[ArrayLike] = None, k_bias: Optional[ArrayLike] = None, centred: bool = False, weight_offset: float = 0.0,
        rotate_from: int = 0, out: Optional[Array] = None, dtype: DType = None, threads: int = 1) -> Any:
    """Normalizes heads, rotates them, and writes k and v to a KV cache: an engine's step between projections and attention.

    Parameters:
    - q, k, v: [tokens, heads, dim] of one dtype, each with its own number of heads. v may have another dim. k and v may be None.
    - positions: integers [tokens], in modes with sections [axes, tokens]; or the position of token 0.
    - slots: integers [tokens], the row of the caches for each token, all different. -1 for a padding token, whose k and v the call does
      not write. None: row t.
    - k_cache, v_cache: [rows, heads, dim] of any dtype; or uint8 [rows, heads, dim/32·34] for q8_0. None: new arrays.
    - base, n_dims, mode, angles, rotate_from: as in rope().
    - q_weight, k_weight, q_bias, k_bias: float32 [dim].
    - eps: of the norm. None: no norm.
    - centred, weight_offset: as in norm_rope().
    - out: the array for q's result, of any dtype. It may be q.

    Returns (q's result, k_cache, v_cache).

    >>> q, k, v = (np.ones((1, 1, 2), np.float32) for _ in range(3))
    >>> k_cache, v_cache = np.zeros((4, 1, 2), np.float32), np.zeros((4, 1, 2), np.float16)
    >>> _ = nrg.qkv(q, k, v, positions=7, slots=[2], k_cache=k_cache, v_cache=v_cache)
    >>> v_cache[:, 0, 0]
    array([0., 0., 1., 0.], dtype=float16)
    """
    tensors = {name: None if value is None else arrays.as_array(value, name) for name, value in (("q", q), ("k", k), ("v", v))}
    first = tensors["q"]
    if first is None or first.ndim != 3 or first.shape[-1] == 0:
        raise arrays.unexpected("q", "[tokens, heads, dim] with one element or more", first)
    tokens, dim = first.shape[0], first.shape[-1]
    angles = _angles(angles, base, n_dims, mode, None, first, "q", rotate_from)
    keep(angles._freq_factors)  # pylint: disable=protected-access
    args = struct("nrg_qkv_args", tokens=tokens, dim=dim, rotate_from=rotate_from, dtype=arrays.number(first, "q", dtype))
    for name, array in tensors.items():
        if array is None:
            continue
        if array.ndim != 3 or array.dtype != first.dtype or array.shape[0] != tokens or (name == "k" and array.shape[-1] != dim) \
                or array.shape[-1] == 0:
            raise arrays.unexpected(name, f"{first.dtype.name} {arrays.sizes(tokens, 'heads', 'dim' if name == 'v' else dim)}, since q is {arrays.described(first)}",
                                    array)
    if tensors["v"] is not None:
        args.v_dim = tensors["v"].shape[-1]
    slots = arrays.integers(slots, "slots", (tokens,), np.int64)
    caches: Dict[str, Any] = {"q": arrays.output(out, "out", first.shape, first.dtype if out is None else out.dtype), "k": k_cache, "v": v_cache}
    for name in ("k", "v"):
        array, cache = tensors[name], caches[name]
        if array is None:
            if cache is not None:
                raise arrays.unexpected(name + "_cache", f"None without {name}", cache)
            continue
        if cache is None:
            if slots is not None:
                raise arrays.unexpected(name + "_cache", "an array with slots", None)
            cache = caches[name] = new(array.shape, array.dtype)
        if not isinstance(cache, np.ndarray):
            raise TypeError(f"{name}_cache: expected an ndarray, got {type(cache).__name__}")
        quantized = cache.dtype == np.uint8
        if quantized and array.shape[2] % 32:
            raise arrays.unexpected(name, "heads of a multiple of 32 elements for a cache of q8_0", array)
        wanted = (cache.shape[0] if slots is not None and cache.ndim else tokens, array.shape[1],
                  array.shape[2] // 32 * 34 if quantized else array.shape[2])
        if cache.shape != wanted:
            raise arrays.unexpected(name + "_cache", f"{'uint8 ' if quantized else ''}{arrays.sizes('rows' if slots is not None else wanted[0], *wanted[1:])}",
                                    cache)
        arrays.output(cache, name + "_cache", wanted, cache.dtype)
        setattr(args, name + "_o_format", enum("nrg_quant_format", "q8_0" if quantized else "none", "NRG_QUANT_", name + "_cache"))
    rows = {caches[name].shape[0] for name in ("k", "v") if caches[name] is not None}
    if len(rows) > 1:
        raise arrays.unexpected("v_cache", f"{caches['k'].shape[0]} rows like k_cache", caches["v"])
    args.slot_count = rows.pop() if rows and slots is not None else 0
    args.slots = arrays.address(slots)
    for name in ("q", "k", "v"):
        array = tensors[name]
        if array is None:
            continue
        setattr(args, name + "_heads", array.shape[1])
        if caches[name].dtype != np.uint8:
            setattr(args, name + "_o_dtype", arrays.kind_of(caches[name], "out" if name == "q" else name + "_cache", dtype))
        if array.shape[1] == 0:  # C requires NULL for no heads
            continue
        for field, tensor, argument in ((name, array, name), (name + "_o", caches[name], "out" if name == "q" else name + "_cache")):
            _, (_, token, head), _ = arrays.four(tensor, argument)
            setattr(args, field, arrays.address(tensor))
            to = getattr(args, field + "_strides")
            to.row, to.head = token, head
    if np.ndim(positions) == 0:
        put(args, first_position=positions)
    else:
        positions = arrays.integers(positions, "positions", (tokens,) if angles.axes == 1 else (angles.axes, tokens))
        args.positions = arrays.address(positions)
    vectors = {name: arrays.dense(value, name, (dim,), np.float32) for name, value in
               (("q_weight", q_weight), ("k_weight", k_weight), ("q_bias", q_bias), ("k_bias", k_bias))}
    for name, vector in vectors.items():
        if getattr(args, name[0] + "_heads"):
            setattr(args, name[:3], arrays.address(vector))
    norm = None
    if eps is not None:
        norm = _spec_of(dim, arrays.F32, eps=eps, centred=centred, weight_offset=weight_offset)
    size = ctypes.c_size_t()
    call("nrg_qkv_workspace", angles.spec, args, thread_count(threads), ctypes.addressof(size))
    memory = arrays.workspace(size.value)
    args.workspace, args.workspace_size = arrays.address(memory), size.value
    share("nrg_qkv_forward", norm, angles.spec, args, threads=threads)
    return caches["q"], caches["k"], caches["v"]
