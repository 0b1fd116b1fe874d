"""nrg for PyTorch: functions with gradients for CPU tensors, modules, and operators of torch.ops.nrg.

Import it by name; `import nrg` needs no PyTorch.

>>> import torch, nrg.torch
>>> x, weight = torch.ones(2, 4, requires_grad=True), torch.ones(4)
>>> nrg.torch.rms_norm(x, (4,), weight).sum().backward()
>>> x.grad.shape
torch.Size([2, 4])

    normalize     rms_norm  layer_norm (residual= fuses the addition)
    gate          glu  swiglu  geglu
    rotate        rope
    attend        softmax  log_softmax
    loss          cross_entropy
    modules       RMSNorm  LayerNorm  replace_norms

Tensors are float32, float16 or bfloat16, in CPU memory. A tensor that nrg cannot read in place is copied. Gradients are functions of
torch.ops.nrg, so torch.compile can trace them. There are no second derivatives. A call uses torch.get_num_threads() threads if its
tensors are large; results are bit-identical for every number.
"""
from typing import Any, List, Optional, Tuple, Union

try:
    import torch  # type: ignore[import]
except ImportError as error:
    raise ImportError("nrg.torch: expected PyTorch, which is not installed: pip install torch") from error

import nrg

from . import _library as library

__all__ = ["LayerNorm", "RMSNorm", "cross_entropy", "geglu", "glu", "layer_norm", "log_softmax", "replace_norms", "rms_norm", "rope", "softmax",
           "swiglu"]

Tensor = Any  # torch.Tensor, or Any for programs that are checked without PyTorch

_SERIAL = 1 << 16  # elements up to which one thread is faster than the pool


# ---- tensors as arrays ----

def _array(tensor: Tensor) -> Any:
    """Returns the memory of a tensor as an array; bfloat16 as uint16. None for None."""
    if tensor is None:
        return None
    tensor = tensor.detach()
    return tensor.view(torch.uint16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()


def _rows(tensor: Tensor, name: str = "x") -> Any:
    """Returns a tensor as an array that nrg reads in place, or a copy that it does."""
    if tensor is None:
        return None
    if tensor.device.type != "cpu":
        raise ValueError(f"{name}: expected a tensor in CPU memory, got one on {tensor.device}")
    strides = tensor.stride()
    in_place = tensor.is_contiguous() or (len(strides) in (2, 3, 4) and strides[-1] == 1 and 0 not in strides)
    return _array(tensor if in_place else tensor.contiguous())


def _new(like: Tensor, shape: Any = None, dtype: Any = None) -> Tensor:
    made: Tensor = library.make(torch.empty, like.shape if shape is None else shape, dtype=dtype or like.dtype, device=like.device)
    return made


def _options(x: Tensor) -> Any:
    """The arguments dtype and threads of a call."""
    return {"dtype": "bf16" if x.dtype == torch.bfloat16 else None, "threads": torch.get_num_threads() if x.numel() > _SERIAL else 1}


# ---- operators ----
# Each has an implementation for the CPU, one that returns shapes for torch.compile, and a formula for its gradient.

_operators = torch.library.Library("nrg", "DEF")
_NONE: List[int] = [0]  # the shape of a gradient that does not exist: schemas have no optional results


def _define(schema: str, implementation: Any, fake: Any) -> None:
    _operators.define(schema)
    name = schema.split("(")[0]
    _operators.impl(name, implementation, "CPU")
    torch.library.register_fake(f"nrg::{name}", fake, lib=_operators)


def _norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float, centred: bool) -> Tensor:
    o = _new(x)
    nrg.norm(_rows(x), _rows(weight, "weight"), _rows(bias, "bias"), eps=eps, centred=centred, out=_array(o), **_options(x))
    return o


def _add_norm(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor, eps: float, centred: bool) -> Tuple[Tensor, Tensor]:
    o, r = _new(x), _new(residual, x.shape)
    nrg.norm(_rows(x), _rows(weight, "weight"), _rows(bias, "bias"), residual=_rows(residual, "residual"), eps=eps, centred=centred, out=_array(o),
             residual_out=_array(r), **_options(x))
    return o, r


def _norm_backward(d_o: Tensor, x: Tensor, weight: Tensor, bias: Tensor, eps: float, centred: bool) -> Tuple[Tensor, Tensor, Tensor]:
    dx = _new(d_o)
    gradients = nrg.norm_backward(_rows(d_o, "d_o"), _rows(x), _rows(weight, "weight"), _rows(bias, "bias"), eps=eps, centred=centred, out=_array(dx),
                                  **_options(x))
    return dx, _sum(x, weight, gradients.dweight), _sum(x, bias, gradients.dbias)


def _add_norm_backward(d_o: Tensor, r: Tensor, weight: Tensor, bias: Tensor, d_r: Tensor, eps: float,
                       centred: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """d_r: the gradient of r from elsewhere. dresidual is dx, unless r is float32 and x is not."""
    dx, stream = _new(d_o), _rows(r, "r")
    # with r, the call reads neither x nor the residual: any arrays of their dtypes do
    gradients = nrg.norm_backward(_rows(d_o, "d_o"), _rows(d_o, "d_o"), _rows(weight, "weight"), _rows(bias, "bias"), residual=stream, r=stream,
                                  d_r=_rows(d_r, "d_r"), eps=eps, centred=centred, out=_array(dx), **_options(d_o))
    dresidual = _new(r, _NONE) if r.dtype == d_o.dtype else torch.from_numpy(gradients.dresidual)
    return dx, dresidual, _sum(r, weight, gradients.dweight), _sum(r, bias, gradients.dbias)


def _sum(like: Tensor, parameter: Tensor, gradient: Any) -> Tensor:
    """The gradient of a parameter, in its dtype."""
    return _new(like, _NONE) if parameter is None else torch.from_numpy(gradient).to(parameter.dtype)


def _fake_sums(like: Tensor, weight: Tensor, bias: Tensor) -> Tuple[Tensor, Tensor]:
    return _new(like, _NONE) if weight is None else _new(weight), _new(like, _NONE) if bias is None else _new(bias)


_define("norm(Tensor x, Tensor? weight, Tensor? bias, float eps, bool centred) -> Tensor", _norm, lambda x, *_: _new(x))
_define("add_norm(Tensor x, Tensor residual, Tensor? weight, Tensor? bias, float eps, bool centred) -> (Tensor, Tensor)", _add_norm,
        lambda x, residual, *_: (_new(x), _new(residual, x.shape)))
_define("norm_backward(Tensor d_o, Tensor x, Tensor? weight, Tensor? bias, float eps, bool centred) -> (Tensor, Tensor, Tensor)",
        _norm_backward, lambda d_o, x, weight, bias, *_: (_new(d_o), *_fake_sums(x, weight, bias)))
_define("add_norm_backward(Tensor d_o, Tensor r, Tensor? weight, Tensor? bias, Tensor? d_r, float eps, bool centred)"
        " -> (Tensor, Tensor, Tensor, Tensor)", _add_norm_backward,
        lambda d_o, r, weight, bias, *_: (_new(d_o), _new(r, _NONE) if r.dtype == d_o.dtype else _new(r), *_fake_sums(r, weight, bias)))


def _save_norm(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, ctx.eps, ctx.centred = inputs
    ctx.save_for_backward(x, weight, bias)


def _differentiate_norm(ctx: Any, d_o: Tensor) -> Any:
    x, weight, bias = ctx.saved_tensors
    dx, dw, db = torch.ops.nrg.norm_backward(d_o, x, weight, bias, ctx.eps, ctx.centred)
    return dx, None if weight is None else dw, None if bias is None else db, None, None


def _save_add_norm(ctx: Any, inputs: Any, output: Any) -> None:
    x, residual, weight, bias, ctx.eps, ctx.centred = inputs
    ctx.dtype, ctx.shape = x.dtype, residual.shape
    ctx.set_materialize_grads(False)  # no zeros for a result that the loss does not use
    ctx.save_for_backward(output[1], weight, bias)


def _differentiate_add_norm(ctx: Any, d_o: Tensor, d_r: Tensor) -> Any:
    r, weight, bias = ctx.saved_tensors
    d_o = torch.zeros_like(r, dtype=ctx.dtype) if d_o is None else d_o
    dx, dy, dw, db = torch.ops.nrg.add_norm_backward(d_o, r, weight, bias, d_r, ctx.eps, ctx.centred)
    dy = (dx if r.dtype == ctx.dtype else dy).sum_to_size(ctx.shape)
    return dx, dy, None if weight is None else dw, None if bias is None else db, None, None


def _glu(a: Tensor, b: Tensor, activation: str, swapped: bool) -> Tensor:
    o = _new(a, a.shape if b is not None else (*a.shape[:-1], a.shape[-1] // 2))
    nrg.glu(_rows(a, "a"), _rows(b, "b"), activation=activation, swapped=swapped, out=_array(o), **_options(a))  # type: ignore[call-overload]
    return o


def _glu_backward(d_o: Tensor, a: Tensor, b: Tensor, activation: str, swapped: bool) -> Tuple[Tensor, Tensor]:
    da, db = _new(a), _new(a, _NONE) if b is None else _new(b)
    nrg.glu_backward(_rows(d_o, "d_o"), _rows(a, "a"), _rows(b, "b"), activation=activation, swapped=swapped,  # type: ignore[arg-type]
                     out=_array(da) if b is None else (_array(da), _array(db)), **_options(a))
    return da, db


_define("glu(Tensor a, Tensor? b, str activation, bool swapped) -> Tensor", _glu,
        lambda a, b, *_: _new(a, a.shape if b is not None else (*a.shape[:-1], a.shape[-1] // 2)))
_define("glu_backward(Tensor d_o, Tensor a, Tensor? b, str activation, bool swapped) -> (Tensor, Tensor)", _glu_backward,
        lambda d_o, a, b, *_: (_new(a), _new(a, _NONE) if b is None else _new(b)))


def _save_glu(ctx: Any, inputs: Any, output: Any) -> None:
    a, b, ctx.activation, ctx.swapped = inputs
    ctx.save_for_backward(a, b)


def _differentiate_glu(ctx: Any, d_o: Tensor) -> Any:
    a, b = ctx.saved_tensors
    da, db = torch.ops.nrg.glu_backward(d_o, a, b, ctx.activation, ctx.swapped)
    return da, None if b is None else db, None, None


def _rotate(function: Any, x: Tensor, positions: Tensor, base: float, n_dims: int, mode: str, rotate_from: int) -> Tensor:
    o = _new(x)
    function(_rows(x), _array(positions), base=base, n_dims=n_dims or None, mode=mode, rotate_from=rotate_from, out=_array(o), **_options(x))
    return o


_define("rope(Tensor x, Tensor? positions, float base, int n_dims, str mode, int rotate_from) -> Tensor",
        lambda x, *given: _rotate(nrg.rope, x, *given), lambda x, *_: _new(x))
_define("rope_backward(Tensor d_o, Tensor? positions, float base, int n_dims, str mode, int rotate_from) -> Tensor",
        lambda d_o, *given: _rotate(nrg.rope_backward, d_o, *given), lambda d_o, *_: _new(d_o))


def _save_rope(ctx: Any, inputs: Any, output: Any) -> None:
    _, positions, *ctx.options = inputs
    ctx.save_for_backward(positions)


def _differentiate_rope(ctx: Any, d_o: Tensor) -> Any:
    return torch.ops.nrg.rope_backward(d_o, *ctx.saved_tensors, *ctx.options), None, None, None, None, None


def _softmax(x: Tensor, mask: Tensor, scale: float, causal: bool, log: bool) -> Tensor:
    o = _new(x)
    mask = mask if mask is None or mask.stride(-1) == 1 or mask.shape[-1] == 1 else mask.contiguous()
    if mask is not None and mask.shape[-1] == 1 and x.shape[-1] > 1:
        mask = mask.expand(*mask.shape[:-1], x.shape[-1]).contiguous()
    nrg.softmax(_rows(x), mask=_array(mask), scale=scale, causal=causal, log=log, out=_array(o), **_options(x))
    return o


def _softmax_backward(d_o: Tensor, o: Tensor, scale: float, causal: bool, log: bool) -> Tensor:
    dx = _new(o)
    nrg.softmax_backward(_rows(d_o, "d_o"), _rows(o, "o"), scale=scale, causal=causal, log=log, out=_array(dx), **_options(o))
    return dx


_define("softmax(Tensor x, Tensor? mask, float scale, bool causal, bool log) -> Tensor", _softmax, lambda x, *_: _new(x))
_define("softmax_backward(Tensor d_o, Tensor o, float scale, bool causal, bool log) -> Tensor", _softmax_backward, lambda d_o, o, *_: _new(o))


def _save_softmax(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, *ctx.options = inputs
    ctx.save_for_backward(output)


def _differentiate_softmax(ctx: Any, d_o: Tensor) -> Any:
    return torch.ops.nrg.softmax_backward(d_o, *ctx.saved_tensors, *ctx.options), None, None, None, None


def _cross_entropy(x: Tensor, target: Tensor, ignore_index: int, reduction: str) -> Tuple[Tensor, Tensor, Tensor]:
    loss, m, others = nrg.cross_entropy(_dense(x), _array(target), ignore_index=ignore_index, reduction=reduction,  # type: ignore[call-overload]
                                        stats=True, **_options(x))
    return torch.as_tensor(loss), torch.from_numpy(m), torch.from_numpy(others)


def _cross_entropy_backward(d_loss: Tensor, x: Tensor, target: Tensor, m: Tensor, others: Tensor, ignore_index: int, reduction: str) -> Tensor:
    dx = _new(x)
    nrg.cross_entropy_backward(_array(d_loss.contiguous()) if reduction == "none" else float(d_loss), _dense(x), _array(target), _array(m),
                               _array(others), ignore_index=ignore_index, reduction=reduction,  # type: ignore[arg-type]
                               out=_array(dx), **_options(x))
    return dx


def _dense(x: Tensor) -> Any:
    return _rows(x.contiguous())


_define("cross_entropy(Tensor x, Tensor target, int ignore_index, str reduction) -> (Tensor, Tensor, Tensor)", _cross_entropy,
        lambda x, target, _, reduction: (_new(x, target.shape if reduction == "none" else (), torch.float32),
                                         _new(x, target.shape, torch.float32), _new(x, target.shape, torch.float64)))
_define("cross_entropy_backward(Tensor d_loss, Tensor x, Tensor target, Tensor m, Tensor others, int ignore_index, str reduction) -> Tensor",
        _cross_entropy_backward, lambda d_loss, x, *_: _new(x))


def _save_cross_entropy(ctx: Any, inputs: Any, output: Any) -> None:
    x, target, *ctx.options = inputs
    ctx.save_for_backward(x, target, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _differentiate_cross_entropy(ctx: Any, d_loss: Tensor, *_: Any) -> Any:
    return torch.ops.nrg.cross_entropy_backward(d_loss, *ctx.saved_tensors, *ctx.options), None, None, None


for _name, _backward, _save in (("norm", _differentiate_norm, _save_norm), ("add_norm", _differentiate_add_norm, _save_add_norm),
                                ("glu", _differentiate_glu, _save_glu), ("rope", _differentiate_rope, _save_rope),
                                ("softmax", _differentiate_softmax, _save_softmax),
                                ("cross_entropy", _differentiate_cross_entropy, _save_cross_entropy)):
    torch.library.register_autograd(f"nrg::{_name}", _backward, setup_context=_save, lib=_operators)


# ---- calls ----

def _caller(name: str, implementation: Any) -> Any:
    """Returns what calls an operator: by PyTorch's dispatcher, or its implementation directly where the dispatcher has nothing to do. The
    dispatcher takes longer than the norm of a short row. It is for gradients, torch.compile, and modes that watch operators."""
    operator = getattr(torch.ops.nrg, name).default
    # threads: a plan is for one thread, or there is none
    direct: Any = library.planned_as(lambda threads, *args: operator(*args), lambda threads, *args: implementation(*args), torch.Tensor, torch.nn.Parameter)

    def call(*args: Any) -> Any:
        if (torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None or
                torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack() or
                torch.is_grad_enabled() and any(isinstance(value, torch.Tensor) and value.requires_grad for value in args)):
            return operator(*args)
        return direct(torch.get_num_threads(), *args)

    return call


_call_norm, _call_add_norm = _caller("norm", _norm), _caller("add_norm", _add_norm)
_call_glu, _call_softmax = _caller("glu", _glu), _caller("softmax", _softmax)
_call_rope = _caller("rope", lambda x, *given: _rotate(nrg.rope, x, *given))


# ---- functions ----

def _normalized(x: Tensor, shape: Any, weight: Tensor, bias: Tensor, residual: Tensor, eps: float, centred: bool) -> Any:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    whole = x.shape
    if not shape or whole[-len(shape):] != shape:
        raise ValueError(f"x: expected [..., {', '.join(map(str, shape))}], as normalized_shape specifies, got {list(whole)}")
    if len(shape) > 1:
        x, weight, bias, residual = (v if v is None else v.flatten(-len(shape)) for v in (x, weight, bias, residual))
    results = _call_norm(x, weight, bias, eps, centred) if residual is None else _call_add_norm(x, residual, weight, bias, eps, centred)
    if len(shape) == 1:
        return results
    return results.view(whole) if residual is None else tuple(v.view(whole) for v in results)


def rms_norm(x: Tensor, normalized_shape: Union[int, Tuple[int, ...]], weight: Optional[Tensor] = None, eps: Optional[float] = None, *,
             residual: Optional[Tensor] = None) -> Any:
    """Applies RMSNorm, as torch.nn.functional.rms_norm.

    Parameters:
    - x: [..., dim].
    - normalized_shape: the last dimensions, a tuple or an int.
    - weight: of that shape.
    - eps: added to the mean square. None: the machine epsilon of x's dtype.
    - residual: like x; may broadcast. The norm is of r = x + residual.

    Returns a tensor like x, or with a residual (result, r).

    >>> x = torch.tensor([[3.0, 4.0]])
    >>> o, r = nrg.torch.rms_norm(x, 2, residual=x)
    >>> r
    tensor([[6., 8.]])
    """
    return _normalized(x, normalized_shape, weight, None, residual, torch.finfo(x.dtype).eps if eps is None else eps, False)


def layer_norm(x: Tensor, normalized_shape: Union[int, Tuple[int, ...]], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               eps: float = 1e-5, *, residual: Optional[Tensor] = None) -> Any:
    """Applies LayerNorm, as torch.nn.functional.layer_norm.

    Parameters:
    - x: [..., dim].
    - normalized_shape: the last dimensions, a tuple or an int.
    - weight, bias: of that shape.
    - eps: added to the variance.
    - residual: like x; may broadcast. The norm is of r = x + residual.

    Returns a tensor like x, or with a residual (result, r).

    >>> nrg.torch.layer_norm(torch.tensor([[1.0, 3.0]]), (2,)).round(decimals=2)
    tensor([[-1.,  1.]])
    """
    return _normalized(x, normalized_shape, weight, bias, residual, eps, True)


def glu(a: Tensor, b: Optional[Tensor] = None, *, activation: str = "sigmoid", swapped: Optional[bool] = None) -> Tensor:
    """Returns g(a) ⊙ b. glu(x) is torch.nn.functional.glu(x).

    Parameters:
    - a, b: [..., dim]. Or only a, [..., 2·dim], whose rows have both.
    - activation: g, any of nrg.activation.
    - swapped: a row is b, then a. None: True for sigmoid without b, as in PyTorch; otherwise False.

    Returns a tensor [..., dim].

    >>> nrg.torch.glu(torch.tensor([[4.0, 0.0]]))
    tensor([[2.]])
    """
    return _call_glu(a, b, activation, b is None and activation == "sigmoid" if swapped is None else swapped)


def swiglu(a: Tensor, b: Optional[Tensor] = None) -> Tensor:
    """Returns silu(a) ⊙ b.

    Parameters:
    - a, b: [..., dim]. Or only a, [..., 2·dim]: each row has the gate, then the other half.

    Returns a tensor [..., dim].

    >>> nrg.torch.swiglu(torch.tensor([[0.0, 1.0]]))
    tensor([[0.]])
    """
    return _call_glu(a, b, "silu", False)


def geglu(a: Tensor, b: Optional[Tensor] = None, *, approximate: str = "none") -> Tensor:
    """Returns gelu(a) ⊙ b.

    Parameters:
    - a, b: [..., dim]. Or only a, [..., 2·dim]: each row has the gate, then the other half.
    - approximate: "none" or "tanh", as in torch.nn.functional.gelu.

    Returns a tensor [..., dim].

    >>> nrg.torch.geglu(torch.tensor([[0.0, 1.0]]))
    tensor([[0.]])
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate: expected 'none' or 'tanh', got {approximate!r}")
    return _call_glu(a, b, "gelu" if approximate == "none" else "gelu_tanh", False)


def rope(x: Tensor, positions: Optional[Tensor] = None, *, base: float = 10000.0, n_dims: int = 0, mode: str = "neox",
         rotate_from: int = 0) -> Tensor:
    """Rotates each head of x by the position of its token.

    Parameters:
    - x: [batch, tokens, heads, dim], [tokens, heads, dim] or [tokens, dim]. For [batch, heads, tokens, dim], pass x.transpose(1, 2).
    - positions: integers [tokens] or [batch, tokens]. None: 0, 1, …
    - base: of the frequencies.
    - n_dims: the rotated elements of a head. 0: all from rotate_from.
    - mode: "neox" (halves) or "normal" (neighbours).
    - rotate_from: the first rotated element of a head.

    Returns a tensor like x.

    >>> nrg.torch.rope(torch.tensor([[1.0, 0.0], [1.0, 0.0]])).round(decimals=2)
    tensor([[1.0000, 0.0000],
            [0.5400, 0.8400]])
    """
    return _call_rope(x, positions, base, n_dims, mode, rotate_from)


def _attention(x: Tensor, dim: int, mask: Optional[Tensor], scale: float, causal: bool, log: bool) -> Tensor:
    if mask is not None and mask.requires_grad:
        raise ValueError("mask: expected a tensor without requires_grad, since nrg computes no gradient of it")
    if dim in (-1, x.dim() - 1):
        return _call_softmax(x, mask, scale, causal, log)
    if mask is not None or causal:
        raise ValueError(f"dim: expected the last dimension with a mask or causal, -1 or {x.dim() - 1}, got {dim}")
    return _call_softmax(x.movedim(dim, -1), None, scale, False, log).movedim(-1, dim)


def softmax(x: Tensor, dim: int = -1, *, mask: Optional[Tensor] = None, scale: float = 1.0, causal: bool = False) -> Tensor:
    """Applies softmax, as torch.nn.functional.softmax, with the options of attention.

    Parameters:
    - x: [..., queries, keys].
    - dim: the dimension that sums to 1. Another one than the last is copied.
    - mask: float, added to x · scale; may broadcast. It has no gradient.
    - scale: multiplies x.
    - causal: query i reads keys up to keys - queries + i.

    Returns a tensor like x.

    >>> nrg.torch.softmax(torch.zeros(2, 2), causal=True)
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    return _attention(x, dim, mask, scale, causal, False)


def log_softmax(x: Tensor, dim: int = -1, *, mask: Optional[Tensor] = None, scale: float = 1.0, causal: bool = False) -> Tensor:
    """Applies log-softmax, as torch.nn.functional.log_softmax.

    Parameters:
    - x, dim, mask, scale, causal: as in softmax().

    Returns a tensor like x.

    >>> nrg.torch.log_softmax(torch.zeros(1, 2)).exp().round(decimals=2)
    tensor([[0.5000, 0.5000]])
    """
    return _attention(x, dim, mask, scale, causal, True)


def cross_entropy(x: Tensor, target: Tensor, *, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """Returns the cross-entropy loss, as torch.nn.functional.cross_entropy with classes last.

    Parameters:
    - x: [..., classes], logits.
    - target: integers [...].
    - ignore_index: a target with loss 0, which "mean" does not count.
    - reduction: "mean" or "sum" for one number, "none" for the loss of each row.

    Returns the loss, float32.

    >>> nrg.torch.cross_entropy(torch.zeros(3, 1), torch.tensor([0, 0, 0]))
    tensor(0.)
    """
    return torch.ops.nrg.cross_entropy(x, target, ignore_index, reduction)[0]


# ---- modules ----

class RMSNorm(torch.nn.RMSNorm):  # type: ignore[misc]
    """torch.nn.RMSNorm that nrg computes: the same parameters, state_dict and repr.

    >>> norm = nrg.torch.RMSNorm(4)
    >>> norm(torch.ones(2, 4)).shape
    torch.Size([2, 4])
    """

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Any:
        """Returns the norm of x; with a residual (result, x + residual).

        >>> o, r = nrg.torch.RMSNorm(4)(torch.ones(2, 4), torch.ones(2, 4))
        >>> r[0].tolist()
        [2.0, 2.0, 2.0, 2.0]
        """
        return rms_norm(x, self.normalized_shape, self.weight, self.eps, residual=residual)


class LayerNorm(torch.nn.LayerNorm):  # type: ignore[misc]
    """torch.nn.LayerNorm that nrg computes: the same parameters, state_dict and repr.

    >>> norm = nrg.torch.LayerNorm(4)
    >>> norm(torch.ones(2, 4)).shape
    torch.Size([2, 4])
    """

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Any:
        """Returns the norm of x; with a residual (result, x + residual).

        >>> o, r = nrg.torch.LayerNorm(4)(torch.ones(2, 4), torch.ones(2, 4))
        >>> r[0].tolist()
        [2.0, 2.0, 2.0, 2.0]
        """
        return layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps, residual=residual)


def replace_norms(model: Any) -> Any:
    """Replaces each torch.nn.RMSNorm and LayerNorm in a model, in place. Parameters, buffers and hooks stay.

    Parameters:
    - model: a torch.nn.Module.

    Returns the model.

    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4))
    >>> type(nrg.torch.replace_norms(model)[1]) is nrg.torch.LayerNorm
    True
    """
    kinds = {torch.nn.RMSNorm: RMSNorm, torch.nn.LayerNorm: LayerNorm}
    for module in model.modules():
        if type(module) in kinds:  # pylint: disable=unidiomatic-typecheck
            module.__class__ = kinds[type(module)]  # which adds no state, so parameters stay as they are
    return model
