/* nrg/norm.h: row normalization (LayerNorm, RMSNorm, L2 and their relatives), fused with a residual and a gate.
 *
 * A tensor is `rows` rows of `dim` elements, in up to four dimensions (nrg/base.h). For every row, or for every one of its groups
 * (⊙ element-wise, d = dim / groups):
 *
 *     r  = x + y         rounded to r_dtype; y absent: r = x             (residual before the norm, the default)
 *     p  = r ⊙ g(z)      rounded to f32, with NRG_GATE_PRE;  p = r otherwise
 *     m  = Σp / d        centred;  m = 0 otherwise
 *     q  = p - m
 *     σ² = Σq² / d
 *     s  = divisor       from σ and eps, by eps_mode
 *     o1 = (c/√d) · (q / s) ⊙ (w + weight_offset) + b                    w absent: factor 1; b absent: 0
 *     o  = o1 ⊙ g(z)     with NRG_GATE_POST;  o = g(o1) with NRG_GATE_NONE and an activation;  o = o1 otherwise
 *
 * g is spec.activation (nrg/activation.h). s = 0 (a constant row without eps): q/s is 0 by definition, so o1 = b. With
 * NRG_RESIDUAL_AFTER, r = x and o is y plus the above (the "post-norm" residual of Gemma 2 and OLMo 2), rounded to dtype once.
 *
 * LayerNorm: Ba, Kiros, Hinton, arXiv:1607.06450. RMSNorm: Zhang, Sennrich, arXiv:1910.07467. Gated norm in groups: Mamba-2, Dao,
 * Gu, arXiv:2405.21060 (its norm_before_gate is NRG_GATE_POST, and its default NRG_GATE_PRE).
 *
 * The backward pass is in nrg/norm_backward.h.
 *
 * What holds for every call, dtype and shape:
 *
 * - Every path gives the same bits; so does any (ith, nth), any number of rows in a call, any alignment and stride, in place or
 *   not, and whether or not r, mean and rstd are asked for. r is rounded to r_dtype before the norm sees it, stored or not. So
 *   add + norm fused has the bits of the add and the norm called in turn.
 * - Error of o1 against the exact value, by spec.accuracy, as ulps of the result:
 *
 *                        fast (0, and every 16-bit dtype)           exact (f32)
 *         o1             5.5, centred 12; a weight offset: 1 more   0.501, centred 1
 *         centred: plus  2^-21 · |c/√d · (w + weight_offset)|       2^-24 · |c/√d · (w + weight_offset)|
 *         plus           2^-149 · (1 + |w + weight_offset| + (c/√d)/s), the last only up to 2^40: what is lost below 2^-126
 *         mean           2^-24 of itself plus 7 · 2^-24 σ           1 ulp plus 2^-24 σ
 *         rstd           4 · 2^-24 of itself, centred 10            1 ulp
 *
 *   These bounds hold for every row; docs/numerics.md derives them. The stress set measured there stays within 3 ulp in the fast
 *   grade (4 with a weight offset), centred plus 2^-23 · |c/√d · (w + weight_offset)|. A row that floats cannot sum so well is
 *   computed in the exact grade. A 16-bit result is the fast f32 result rounded once: 0.51 ulp of its type, plus that f32 bound
 *   where a sum cancels. + b and + y round once more each: half an ulp of the largest term or partial sum. rstd is infinite where
 *   1/s is beyond the largest float. All this for |w + weight_offset| up to 2^60 (w must be finite), for rows of any length. A
 *   gate after the norm adds 3 ulp of g and the rounding of the product; before it, 3 ulp of every p, which the norm carries on.
 *   An activation of the output adds 3 ulp of its own to what it makes of the error of o1, |g′| times that.
 * - No spurious overflow or underflow: a row of 1e30s or of 1e-30s is normalized like a row of ones.
 * - A NaN or an infinity in r makes o, mean and rstd of that row NaN, and touches no other row.
 *
 * docs/numerics.md has the definition to the last bit, and the measured errors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NORM_H
#define NRG_NORM_H

#include <string.h>

#include "activation.h"
#include "quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The divisor s. Models differ in this by factors of d. */
typedef enum nrg_eps_mode {
    NRG_EPS_MEAN = 0,  /* √(σ² + eps): PyTorch's layer_norm and rms_norm, llama.cpp */
    NRG_EPS_SUM = 1,   /* √(Σq² + eps) / √d: the L2 norm of gated delta nets */
    NRG_EPS_SIGMA = 2, /* σ + eps: Flux.jl */
    NRG_EPS_MAX = 3,   /* max(‖q‖, eps) / √d: torch.nn.functional.normalize, ggml_l2_norm */
    NRG_EPS_NONE = 4   /* σ; eps is ignored */
} nrg_eps_mode;

typedef enum nrg_residual_mode {
    NRG_RESIDUAL_BEFORE = 0, /* o = f(x + y) */
    NRG_RESIDUAL_AFTER = 1   /* o = y + f(x); y is then required, and r must be NULL */
} nrg_residual_mode;

typedef enum nrg_gate {
    NRG_GATE_NONE = 0, /* no z; an activation other than identity is applied to the output: o = g(o1) */
    NRG_GATE_PRE = 1,  /* p = r ⊙ g(z), before the norm; z is then required */
    NRG_GATE_POST = 2  /* o = o1 ⊙ g(z), after it; z is then required */
} nrg_gate;

/* What one w and one b are for. */
typedef enum nrg_weights {
    NRG_WEIGHTS_ROW = 0,  /* a row: [dim]; groups have parts of them, each its own: query norms of Command R+, Mamba-2 */
    NRG_WEIGHTS_GROUP = 1 /* a group: [dim / groups], the same for all: query and key norms of Qwen 3, rows of all heads */
} nrg_weights;

/* What is computed. Make one with a constructor below, then change fields: later versions append fields, and `size` tells
 * the library which of them a compiled caller knows. By hand: zero everything, then set size, dim, dtype and eps. */
typedef struct nrg_norm_spec {
    size_t size;                     /* sizeof(nrg_norm_spec), set by the constructors */
    size_t dim;                      /* elements in a row, at least 1 */
    nrg_dtype dtype;                 /* of x, z and o */
    nrg_dtype y_dtype;               /* of y: SAME, dtype, or NRG_F32 (a residual stream kept in f32) */
    nrg_dtype r_dtype;               /* of r, stored or not: SAME, dtype, or NRG_F32 */
    nrg_dtype w_dtype;               /* of w and b: SAME, dtype, or NRG_F32 */
    int centred;                     /* not 0: subtract the mean (LayerNorm); 0: do not (RMSNorm, L2) */
    nrg_eps_mode eps_mode;           /* which divisor */
    nrg_residual_mode residual_mode; /* where y goes */
    nrg_store store;                 /* how o and r are stored */
    double eps;                      /* finite, at least 0; below 2^-600 it counts as 0 */
    double c;                        /* constant of the formula; 0 stands for √d: LayerNorm, RMSNorm. 1: unit length */
    float weight_offset;             /* added to every w: 0, or 1 as Gemma stores its weights. Without w: unused */
    nrg_weights weights;             /* what w and b are for; was reserved before 0.3 */
    nrg_gate gate;                   /* where z goes. New in 0.2, like the fields below */
    nrg_activation activation;       /* g */
    size_t groups;                   /* a row is normalized in this many equal parts; 0 stands for 1 */
    nrg_accuracy accuracy;           /* fast (0), or exact: what o1 may be off by. New in 0.3, like the field below */
    uint32_t reserved;               /* 0 */
} nrg_norm_spec;

/* Where the data is. Make one with nrg_norm_args_init, then set what else there is. Pointers need the alignment of their
 * element only. Strides are in bytes; 0 stands for dense. Row i of plane j of volume k of x, of rows, rows2 and rows3 of them:
 *
 *     x + i·x_stride + j·x_stride2 + k·x_stride3
 *
 * and so for y, z, o and r. y and z may repeat over each of the three (y_repeat, z_repeat). mean and rstd are dense, i fastest.
 *
 * With a format, what would be o becomes bytes with scales (nrg/quantize.h): in q, and in scales those of int8. o is not looked
 * at. What is quantized is o in f32, also where dtype is one of 16 bits: the bytes are those of nrg_quantize for an f32 tensor
 * that holds o before it is rounded to dtype. Shares are of rows that lie together. Not with groups.
 *
 * Aliasing. Inputs may overlap each other as they like. An output shares no byte with another operand, except: the whole
 * operand, same first byte, same strides, same element size, as in this matrix.
 *
 *               x     y     z     w     b     o     r     mean  rstd
 *         o     yes   yes   yes   no    no          no    no    no
 *         r     yes   yes   no    no    no    no          no    no
 *      mean     no    no    no    no    no    no    no          no
 *      rstd     no    no    no    no    no    no    no    no
 *
 * q and scales share no byte with anything.
 *
 * Rows of two operands may interleave without touching (slices of one buffer) when their strides are equal. With planes, the rule
 * is that of nrg/base.h. */
typedef struct nrg_norm_args {
    size_t size;     /* sizeof(nrg_norm_args), set by nrg_norm_args_init */
    size_t rows;     /* 0 is fine: the call checks what it was given, and does nothing */
    const void *x;   /* [rows, dim] input */
    const void *y;   /* [rows, dim] residual, or NULL */
    const void *w;   /* [dim] weight, or NULL; [dim / groups] with NRG_WEIGHTS_GROUP */
    const void *b;   /* bias, or NULL; as w */
    void *o;         /* [rows, dim] output */
    void *r;         /* [rows, dim] output: the residual sum in r_dtype, or NULL */
    float *mean;     /* [rows, groups] output: m (0 where not centred), or NULL */
    float *rstd;     /* [rows, groups] output: 1/s (0 where s = 0), or NULL */
    size_t x_stride; /* bytes; likewise below */
    size_t y_stride;
    size_t o_stride;
    size_t r_stride;
    const void *z; /* [rows, dim] gate; NULL with NRG_GATE_NONE. New in 0.2 */
    size_t z_stride;
    size_t rows2; /* planes of rows, and volumes of planes; 0 stands for 1. New in 0.3, like the fields below */
    size_t rows3;
    size_t x_stride2; /* bytes from plane to plane; 0: dense; likewise below */
    size_t x_stride3; /* bytes from volume to volume */
    size_t y_stride2;
    size_t y_stride3;
    size_t z_stride2;
    size_t z_stride3;
    size_t o_stride2;
    size_t o_stride3;
    size_t r_stride2;
    size_t r_stride3;
    uint32_t y_repeat;       /* nrg_repeat bits: where y is one for all */
    uint32_t z_repeat;       /* the same of z */
    nrg_quant_format format; /* not NONE: bytes with scales (nrg/quantize.h) instead of o, which is not looked at */
    nrg_quant_rounding rounding;
    void *q;         /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] output: bytes. R rows lie together */
    float *scales;   /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] output of int8; else NULL */
    size_t q_stride; /* bytes, from R rows to the next R */
    size_t q_stride2;
    size_t q_stride3;
    size_t scales_stride;
    size_t scales_stride2;
    size_t scales_stride3;
} nrg_norm_args;

/* RMSNorm: not centred, √(mean square + eps), f32. */
static inline nrg_norm_spec nrg_rms_norm_spec(size_t dim, double eps)
{
    nrg_norm_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.size = sizeof spec;
    spec.dim = dim;
    spec.dtype = NRG_F32;
    spec.eps = eps;
    return spec;
}

/* LayerNorm: centred, √(variance + eps), f32. */
static inline nrg_norm_spec nrg_layer_norm_spec(size_t dim, double eps)
{
    nrg_norm_spec spec = nrg_rms_norm_spec(dim, eps);
    spec.centred = 1;
    return spec;
}

/* L2 norm: rows of length 1, x / max(‖x‖, eps), f32. */
static inline nrg_norm_spec nrg_l2_norm_spec(size_t dim, double eps)
{
    nrg_norm_spec spec = nrg_rms_norm_spec(dim, eps);
    spec.eps_mode = NRG_EPS_MAX;
    spec.c = 1.0;
    return spec;
}

static inline nrg_norm_args nrg_norm_args_init(size_t rows, const void *x, void *o)
{
    nrg_norm_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.rows = rows;
    args.x = x;
    args.o = o;
    return args;
}

/* Normalizes the rows of share ith of nth: (0, 1) does all; from n threads, call it once each with (0, n) … (n-1, n) and the same
 * spec and args. Shares are contiguous, as equal as can be, and disjoint, so they need no lock. At most 16 KB of stack in an
 * optimized build.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         spec, args, or (with rows > 0) x or o (with a format q, or scales of int8); y with NRG_RESIDUAL_AFTER,
 *                        or in the add_ shortcuts; z with a gate
 *   NRG_ERR_STRUCT_SIZE  a size smaller than the first version's struct, larger than this one's and not zero there, or over 4096;
 *                        reserved not 0
 *   NRG_ERR_DIM          dim is 0, or no multiple of groups; with a format, as in nrg_quantize
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_STRIDE       a stride shorter than a row, or than what lies inside of it
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERLAP      operands overlap in a way the matrix above does not allow
 *   NRG_ERR_ENUM         dtype, eps_mode, residual_mode, store, weights, gate, activation or accuracy, format or rounding
 *                        unknown; y_repeat or z_repeat over 7
 *   NRG_ERR_DTYPE        y_dtype, r_dtype or w_dtype neither dtype nor f32
 *   NRG_ERR_EPS          eps negative, infinite or NaN
 *   NRG_ERR_CONSTANT     c or weight_offset NaN, or beyond the largest float
 *   NRG_ERR_COMBINATION  r asked for with NRG_RESIDUAL_AFTER (the sum is o itself); z given with NRG_GATE_NONE; a format with
 *                        groups; q or scales without it
 *   NRG_ERR_THREAD       not 0 <= ith < nth */
NRG_API nrg_status nrg_norm_forward(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth);

/* What nrg_norm_forward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_norm_forward_check(const nrg_norm_spec *spec, const nrg_norm_args *args);

/* The usual cases in one line: dense f32 tensors, the whole job, statuses as above. w and b may be NULL. They are fast; for half
 * an ulp make a spec by its constructor, set accuracy = NRG_ACCURACY_EXACT, and call nrg_norm_forward. */

/* o = rms_norm(x) ⊙ w */
NRG_API nrg_status nrg_rms_norm_f32(size_t rows, size_t dim, const float *x, const float *w, float *o, double eps);

/* r = x + y, o = rms_norm(r) ⊙ w; r may be NULL, x or y */
NRG_API nrg_status nrg_add_rms_norm_f32(size_t rows, size_t dim, const float *x, const float *y, const float *w, float *r,
                                        float *o, double eps);

/* o = layer_norm(x) ⊙ w + b */
NRG_API nrg_status nrg_layer_norm_f32(size_t rows, size_t dim, const float *x, const float *w, const float *b, float *o,
                                      double eps);

/* r = x + y, o = layer_norm(r) ⊙ w + b; r may be NULL, x or y */
NRG_API nrg_status nrg_add_layer_norm_f32(size_t rows, size_t dim, const float *x, const float *y, const float *w, const float *b,
                                          float *r, float *o, double eps);

/* o = x / max(‖x‖, eps) */
NRG_API nrg_status nrg_l2_norm_f32(size_t rows, size_t dim, const float *x, float *o, double eps);

#ifdef __cplusplus
}
#endif
#endif
