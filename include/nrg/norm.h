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
    NRG_EPS_NONE = 4   /* σ; the field eps must be 0 */
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

/* What c is in the formula. */
typedef enum nrg_c_mode {
    NRG_C_SQRT_DIM = 0, /* √d, so c/√d is 1: LayerNorm, RMSNorm. The field c must be 0 */
    NRG_C_GIVEN = 1     /* the field c. With 1, rows have length 1 */
} nrg_c_mode;

/* What is computed. A constructor below sets every field. */
typedef struct nrg_norm_spec {
    size_t size;                     /* sizeof(nrg_norm_spec) */
    size_t dim;                      /* elements in a row, at least 1 */
    size_t groups;                   /* equal parts of a row, each normalized by itself. Default: 1 */
    nrg_dtype dtype;                 /* of x, z and o */
    nrg_dtype y_dtype;               /* of y: SAME, dtype, or NRG_F32 (a residual stream kept in f32) */
    nrg_dtype r_dtype;               /* of r, stored or not: SAME, dtype, or NRG_F32 */
    nrg_dtype w_dtype;               /* of w and b: SAME, dtype, or NRG_F32 */
    nrg_residual_mode residual_mode; /* where y goes */
    nrg_gate gate;                   /* where z goes */
    nrg_activation activation;       /* g */
    int centred;                     /* not 0: subtract the mean (LayerNorm); 0: do not (RMSNorm, L2) */
    nrg_eps_mode eps_mode;           /* which divisor */
    nrg_c_mode c_mode;               /* √d, or the field c */
    nrg_weights weights;             /* what one w and one b are for */
    nrg_accuracy accuracy;           /* fast, or exact: the error bound of o1 */
    nrg_quant_format format;         /* not NONE: the output is packed and scales (nrg/quantize.h), not o */
    nrg_quant_rounding rounding;     /* of a format; 0 without it */
    double eps;                      /* finite, at least 0; below 2^-600 it counts as 0. 0 with NRG_EPS_NONE */
    double c;                        /* finite; 0 without NRG_C_GIVEN */
    float weight_offset;             /* added to every w: 0, or 1 as Gemma stores its weights; 0 without w */
    uint32_t reserved;               /* 0 */
} nrg_norm_spec;

/* Where the data is. nrg_norm_args_init sets every field. Pointers need the alignment of their element only. Strides are in
 * bytes: from row to row, from plane to plane, from volume to volume; 0 selects dense (nrg/base.h). Row i of plane j of volume k
 * of x:
 *
 *     x + i·x_stride[0] + j·x_stride[1] + k·x_stride[2]
 *
 * y, z, o and r likewise. y and z may repeat over each of the three (y_repeat, z_repeat). mean and rstd are dense, i fastest.
 *
 * With spec.format, packed receives bytes, and scales those of int8; o must be NULL. The call quantizes o in f32, also if dtype
 * has 16 bits: the bytes are those of nrg_quantize for an f32 tensor that holds o before it is rounded to dtype. Shares consist
 * of rows that are packed together. Groups exclude a format.
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
 * packed and scales share no byte with anything.
 *
 * Rows of two operands may interleave without touching (slices of one buffer) when their strides are equal. With planes, the rule
 * is that of nrg/base.h. */
typedef struct nrg_norm_args {
    size_t size;        /* sizeof(nrg_norm_args) */
    size_t rows;        /* rows of a plane. With 0, here or below, the call checks its arguments and does nothing */
    size_t rows2;       /* planes of a volume. Default: 1 */
    size_t rows3;       /* volumes. Default: 1 */
    const void *x;      /* [rows3, rows2, rows, dim] */
    size_t x_stride[3]; /* bytes; likewise below */
    const void *y;      /* as x: the residual, or NULL */
    size_t y_stride[3];
    const void *z; /* as x: the gate; NULL with NRG_GATE_NONE */
    size_t z_stride[3];
    uint32_t y_repeat; /* nrg_repeat bits: the dimensions over which y repeats */
    uint32_t z_repeat; /* the same of z */
    const void *w;     /* [dim] weight, or NULL; [dim / groups] with NRG_WEIGHTS_GROUP */
    const void *b;     /* as w: bias, or NULL */
    nrg_store store;   /* how o and r are stored */
    uint32_t reserved; /* 0 */
    void *o;           /* as x: the output; NULL with a format */
    size_t o_stride[3];
    void *packed; /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] output of a format: R rows are packed together */
    size_t packed_stride[3]; /* the first: from R rows to the next R */
    float *scales;           /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] output of int8, else NULL */
    size_t scales_stride[3];
    void *r; /* as x, output: the residual sum in r_dtype, or NULL */
    size_t r_stride[3];
    float *mean; /* [rows3, rows2, rows, groups] output: m (0 if not centred), or NULL */
    float *rstd; /* as mean, output: 1/s (0 where s = 0), or NULL */
} nrg_norm_args;

/* RMSNorm: not centred, √(mean square + eps). */
static inline nrg_norm_spec nrg_norm_spec_rms(nrg_dtype dtype, size_t dim, double eps)
{
    nrg_norm_spec spec;
    spec.size = sizeof spec;
    spec.dim = dim;
    spec.groups = 1;
    spec.dtype = dtype;
    spec.y_dtype = spec.r_dtype = spec.w_dtype = NRG_DTYPE_SAME;
    spec.residual_mode = NRG_RESIDUAL_BEFORE;
    spec.gate = NRG_GATE_NONE;
    spec.activation = NRG_ACT_IDENTITY;
    spec.centred = 0;
    spec.eps_mode = NRG_EPS_MEAN;
    spec.c_mode = NRG_C_SQRT_DIM;
    spec.weights = NRG_WEIGHTS_ROW;
    spec.accuracy = NRG_ACCURACY_FAST;
    spec.format = NRG_QUANT_NONE;
    spec.rounding = NRG_QUANT_ROUND_TO_EVEN;
    spec.eps = eps;
    spec.c = 0;
    spec.weight_offset = 0;
    spec.reserved = 0;
    return spec;
}

/* LayerNorm: centred, √(variance + eps). */
static inline nrg_norm_spec nrg_norm_spec_layer(nrg_dtype dtype, size_t dim, double eps)
{
    nrg_norm_spec spec = nrg_norm_spec_rms(dtype, dim, eps);
    spec.centred = 1;
    return spec;
}

/* L2 norm: rows of length 1, x / max(‖x‖, eps). */
static inline nrg_norm_spec nrg_norm_spec_l2(nrg_dtype dtype, size_t dim, double eps)
{
    nrg_norm_spec spec = nrg_norm_spec_rms(dtype, dim, eps);
    spec.eps_mode = NRG_EPS_MAX;
    spec.c_mode = NRG_C_GIVEN;
    spec.c = 1;
    return spec;
}

static inline nrg_norm_args nrg_norm_args_init(size_t rows, const void *x, const void *w, void *o)
{
    nrg_norm_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.rows2 = args.rows3 = 1;
    args.x = x;
    args.x_stride[0] = args.x_stride[1] = args.x_stride[2] = 0;
    args.y = NULL;
    args.y_stride[0] = args.y_stride[1] = args.y_stride[2] = 0;
    args.z = NULL;
    args.z_stride[0] = args.z_stride[1] = args.z_stride[2] = 0;
    args.y_repeat = args.z_repeat = NRG_REPEAT_NONE;
    args.w = w;
    args.b = NULL;
    args.store = NRG_STORE_AUTO;
    args.reserved = 0;
    args.o = o;
    args.o_stride[0] = args.o_stride[1] = args.o_stride[2] = 0;
    args.packed = NULL;
    args.packed_stride[0] = args.packed_stride[1] = args.packed_stride[2] = 0;
    args.scales = NULL;
    args.scales_stride[0] = args.scales_stride[1] = args.scales_stride[2] = 0;
    args.r = NULL;
    args.r_stride[0] = args.r_stride[1] = args.r_stride[2] = 0;
    args.mean = args.rstd = NULL;
    return args;
}

/* Normalizes the rows of share ith of nth: (0, 1) does all; from n threads, call it once each with (0, n) … (n-1, n) and the same
 * spec and args. Shares are contiguous, as equal as can be, and disjoint, so they need no lock. At most 16 KB of stack in an
 * optimized build.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         spec, args, or (with rows > 0) x or o (with a format packed, or scales of int8); y with
 *                        NRG_RESIDUAL_AFTER, or in the add_ shortcuts; z with a gate
 *   NRG_ERR_STRUCT_SIZE  a size that is smaller than the struct, or larger and not zero beyond it, or over 4096; reserved not 0
 *   NRG_ERR_DIM          dim or groups is 0, or dim no multiple of groups; with a format, as in nrg_quantize
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_STRIDE       a stride shorter than a row, or than what lies inside of it
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERLAP      operands overlap in a way the matrix above does not allow
 *   NRG_ERR_ENUM         an unknown value of an enum; y_repeat or z_repeat over 7
 *   NRG_ERR_DTYPE        y_dtype, r_dtype or w_dtype neither dtype nor f32
 *   NRG_ERR_EPS          eps negative, infinite or NaN
 *   NRG_ERR_CONSTANT     c or weight_offset NaN, or beyond the largest float
 *   NRG_ERR_COMBINATION  eps with NRG_EPS_NONE; c without NRG_C_GIVEN; weight_offset without w; r with NRG_RESIDUAL_AFTER (the
 *                        sum is o itself); z with NRG_GATE_NONE; o or groups with a format; packed, scales or rounding without it
 *   NRG_ERR_THREAD       not 0 <= ith < nth */
NRG_NODISCARD NRG_API nrg_status nrg_norm_forward(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth);

/* Validates the arguments of nrg_norm_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_forward_check(const nrg_norm_spec *spec, const nrg_norm_args *args);

/* The usual cases in one line: dense f32 tensors, the whole job, statuses as above. w and b may be NULL. They are fast; for half
 * an ulp make a spec by its constructor, set accuracy = NRG_ACCURACY_EXACT, and call nrg_norm_forward. */

/* o = rms_norm(x) ⊙ w */
NRG_NODISCARD NRG_API nrg_status nrg_rms_norm_f32(size_t rows, size_t dim, const float *x, const float *w, float *o, double eps);

/* r = x + y, o = rms_norm(r) ⊙ w; r may be NULL, x or y */
NRG_NODISCARD NRG_API nrg_status nrg_add_rms_norm_f32(size_t rows, size_t dim, const float *x, const float *y, const float *w,
                                                      float *r, float *o, double eps);

/* o = layer_norm(x) ⊙ w + b */
NRG_NODISCARD NRG_API nrg_status nrg_layer_norm_f32(size_t rows, size_t dim, const float *x, const float *w, const float *b,
                                                    float *o, double eps);

/* r = x + y, o = layer_norm(r) ⊙ w + b; r may be NULL, x or y */
NRG_NODISCARD NRG_API nrg_status nrg_add_layer_norm_f32(size_t rows, size_t dim, const float *x, const float *y, const float *w,
                                                        const float *b, float *r, float *o, double eps);

/* o = x / max(‖x‖, eps) */
NRG_NODISCARD NRG_API nrg_status nrg_l2_norm_f32(size_t rows, size_t dim, const float *x, float *o, double eps);

#ifdef __cplusplus
}
#endif
#endif
