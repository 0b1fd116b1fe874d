/* nrg/norm.h: row norms (LayerNorm, RMSNorm, L2 norm), fused with a residual, a gate and an activation.
 *
 * A tensor has `rows` rows of `dim` elements, in up to four dimensions (nrg/base.h). The call computes this for each row, or
 * for each group of a row (⊙ element-wise, d = dim / groups):
 *
 *     r  = x + y         rounded to r_dtype; without y, r = x            (residual before the norm, the default)
 *     p  = r ⊙ g(z)      rounded to f32, with NRG_GATE_PRE;  p = r otherwise
 *     m  = Σp / d        centred;  m = 0 otherwise
 *     q  = p - m
 *     σ² = Σq² / d
 *     s  = divisor       from σ and eps, by eps_mode
 *     o1 = (c/√d) · (q / s) ⊙ (w + weight_offset) + b                    without w: factor 1; without b: 0
 *     o  = o1 ⊙ g(z)     with NRG_GATE_POST;  o = g(o1) with NRG_GATE_NONE and an activation;  o = o1 otherwise
 *
 * g is spec.activation (nrg/activation.h). If s = 0 (a constant row without eps), q/s is defined as 0, so o1 = b. With
 * NRG_RESIDUAL_AFTER, r = x, and o is y plus the result above, rounded to dtype once. That is the "post-norm" residual of
 * Gemma 2 and OLMo 2.
 *
 * Sources:
 * - LayerNorm: Ba, Kiros, Hinton, arXiv:1607.06450; torch.nn.functional.layer_norm.
 * - RMSNorm: Zhang, Sennrich, arXiv:1910.07467; torch.nn.functional.rms_norm.
 * - L2 norm: torch.nn.functional.normalize; ggml_l2_norm.
 * - Gated norm in groups: Mamba-2, Dao, Gu, arXiv:2405.21060. Its norm_before_gate is NRG_GATE_POST; its default is
 *   NRG_GATE_PRE.
 *
 * nrg/norm_backward.h has the backward pass.
 *
 * Guarantees for every call, dtype and shape:
 * - Results are bit-identical on every path, for every (ith, nth), number of rows, alignment and stride, and in place. They do
 *   not depend on whether the call stores r, mean and rstd.
 * - The call rounds r to r_dtype before the norm, stored or not. So a fused add and norm is bit-identical to an add followed
 *   by a norm.
 * - No row overflows or underflows spuriously: the call normalizes a row of 1e30s or of 1e-30s like a row of ones.
 * - A NaN or an infinity in r makes o, mean and rstd of that row or group NaN, and affects no other row.
 *
 * Error bounds by spec.accuracy, in ulps of the result. They are proven for rows of every length (docs/numerics.md).
 *
 *                        fast (default, and every 16-bit dtype)     exact (f32)
 *         o1             5.5, centred 12; a weight offset: 1 more   0.501, centred 1
 *         centred: plus  2^-21 · |c/√d · (w + weight_offset)|       2^-24 · |c/√d · (w + weight_offset)|
 *         plus           2^-149 · (1 + |w + weight_offset| + (c/√d)/s), where (c/√d)/s counts up to 2^40
 *         mean           2^-24 of itself plus 7 · 2^-24 σ           1 ulp plus 2^-24 σ
 *         rstd           4 · 2^-24 of itself, centred 10            1 ulp
 *
 * - Condition: w is finite, and |w + weight_offset| is at most 2^60.
 * - The third line of o1 covers the bits lost below 2^-126.
 * - If f32 sums cannot hold a row within these bounds, the kernel computes it in the exact grade.
 * - rstd is infinite if 1/s is beyond the largest float.
 * - A 16-bit result is the fast f32 result rounded once: 0.51 ulp of its type, plus the f32 bound where a sum cancels.
 * - + b and + y round once more each: half an ulp of the largest term or partial sum.
 * - A gate after the norm adds 3 ulp of g and the rounding of the product. A gate before the norm adds 3 ulp of each p, which
 *   the norm carries on.
 * - An activation of the output adds 3 ulp of its result, and |g′| times the error of o1.
 *
 * The measured error on the stress set of docs/numerics.md is within 3 ulp in the fast grade (4 with a weight offset), centred
 * plus 2^-23 · |c/√d · (w + weight_offset)|.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NORM_H
#define NRG_NORM_H

#include "activation.h"
#include "quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The divisor s. Models differ in it by factors of d. */
typedef enum nrg_eps_mode {
    NRG_EPS_MEAN = 0,  /* √(σ² + eps): PyTorch's layer_norm and rms_norm, llama.cpp */
    NRG_EPS_SUM = 1,   /* √(Σq² + eps) / √d: the L2 norm of gated delta nets */
    NRG_EPS_SIGMA = 2, /* σ + eps: Flux.jl */
    NRG_EPS_MAX = 3,   /* max(‖q‖, eps) / √d: torch.nn.functional.normalize, ggml_l2_norm */
    NRG_EPS_NONE = 4   /* σ. The field eps must be 0 */
} nrg_eps_mode;

/* The place of the residual y. */
typedef enum nrg_residual_mode {
    NRG_RESIDUAL_BEFORE = 0, /* o = f(x + y) */
    NRG_RESIDUAL_AFTER = 1   /* o = y + f(x). Requires y, and r must be NULL */
} nrg_residual_mode;

/* The place of the gate z. */
typedef enum nrg_gate {
    NRG_GATE_NONE = 0, /* no z. An activation other than identity applies to the output: o = g(o1) */
    NRG_GATE_PRE = 1,  /* p = r ⊙ g(z), before the norm. Requires z */
    NRG_GATE_POST = 2  /* o = o1 ⊙ g(z), after the norm. Requires z */
} nrg_gate;

/* The elements that one w and one b cover. */
typedef enum nrg_weights {
    NRG_WEIGHTS_ROW = 0,  /* a row: [dim]. Each group uses its own part: query norms of Command R+, Mamba-2 */
    NRG_WEIGHTS_GROUP = 1 /* a group: [dim / groups], the same for all groups: query and key norms of Qwen 3, rows of all heads */
} nrg_weights;

/* The value of c in the formula. */
typedef enum nrg_c_mode {
    NRG_C_SQRT_DIM = 0, /* √d, so c/√d is 1: LayerNorm, RMSNorm. The field c must be 0 */
    NRG_C_GIVEN = 1     /* the field c. With 1, the L2 norm of each row is 1 */
} nrg_c_mode;

/* Describes a norm. Make one with a constructor below, then change fields. */
typedef struct nrg_norm_spec {
    size_t size;                     /* sizeof(nrg_norm_spec) */
    size_t dim;                      /* elements of a row, at least 1 */
    size_t groups;                   /* equal parts of a row, each normalized separately. Default: 1. */
    nrg_dtype dtype;                 /* of x, z and o */
    nrg_dtype y_dtype;               /* of y: SAME, dtype, or NRG_F32 (a residual stream in f32) */
    nrg_dtype r_dtype;               /* of r, stored or not: SAME, dtype, or NRG_F32 */
    nrg_dtype w_dtype;               /* of w and b: SAME, dtype, or NRG_F32 */
    nrg_residual_mode residual_mode; /* place of the residual y */
    nrg_gate gate;                   /* place of the gate z */
    nrg_activation activation;       /* g */
    int centred;                     /* not 0: subtract the mean (LayerNorm); 0: do not (RMSNorm, L2) */
    nrg_eps_mode eps_mode;           /* divisor s */
    nrg_c_mode c_mode;               /* c: √d, or the field c */
    nrg_weights weights;             /* shape of w and b */
    nrg_accuracy accuracy;           /* grade: the error bound of o1 */
    nrg_quant_format format;         /* not NONE: the output is packed and scales (nrg/quantize.h) instead of o */
    nrg_quant_rounding rounding;     /* of a format; 0 without a format */
    double eps;                      /* finite, at least 0; below 2^-600 it counts as 0. Must be 0 with NRG_EPS_NONE */
    double c;                        /* finite; 0 unless c_mode is NRG_C_GIVEN */
    float weight_offset;             /* added to each w: 0, or 1 for stored weights of Gemma. Must be 0 without w */
    uint32_t reserved;               /* 0 */
} nrg_norm_spec;

/* Points to the data: rows in up to four dimensions (nrg/base.h). nrg_norm_args_init sets every field. Statistics (mean, rstd)
 * are dense, i fastest.
 *
 * With spec.format, the output is packed, and scales for int8 formats; o must be NULL. The call quantizes o in f32, even if
 * dtype has 16 bits. So the bytes are those of nrg_quantize for an f32 tensor that holds o before its rounding to dtype. A
 * share never splits rows that are packed together. A format requires groups = 1.
 *
 * Aliasing: an output may alias another operand where this table has a yes (nrg/base.h). No other output may share a byte with an
 * operand.
 *
 *               x     y     z     w     b     o     r     mean  rstd
 *         o     yes   yes   yes   no    no          no    no    no
 *         r     yes   yes   no    no    no    no          no    no
 *      mean     no    no    no    no    no    no    no          no
 *      rstd     no    no    no    no    no    no    no    no
 *
 * The outputs packed and scales share no byte with any operand. */
typedef struct nrg_norm_args {
    size_t size;        /* sizeof(nrg_norm_args) */
    size_t rows;        /* rows of a plane. If this or one of the next two is 0, the call only validates */
    size_t rows2;       /* planes of a volume. Default: 1. */
    size_t rows3;       /* volumes. Default: 1. */
    const void *x;      /* [rows3, rows2, rows, dim] input */
    size_t x_stride[3]; /* bytes, as all strides below */
    const void *y;      /* as x: residual, or NULL */
    size_t y_stride[3];
    const void *r_in; /* as x: input of nrg_norm_elements, the sum x + y in r_dtype, or NULL; NULL in other calls */
    size_t r_in_stride[3];
    const void *z; /* as x: input of the gate; NULL with NRG_GATE_NONE */
    size_t z_stride[3];
    uint32_t y_repeat; /* nrg_repeat bits: the levels over which y repeats */
    uint32_t z_repeat; /* nrg_repeat bits: the levels over which z repeats */
    const void *w;     /* [dim] weight, or NULL; [dim / groups] with NRG_WEIGHTS_GROUP */
    const void *b;     /* as w: bias, or NULL */
    nrg_store store;   /* how o and r are stored */
    uint32_t reserved; /* 0 */
    void *o;           /* as x: output; NULL with a format */
    size_t o_stride[3];
    void *packed; /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] output of a format: R rows are packed together */
    size_t packed_stride[3]; /* the first steps over R rows */
    float *scales;           /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] output of int8 formats, else NULL */
    size_t scales_stride[3];
    void *r; /* as x: output, the sum x + y in r_dtype, or NULL */
    size_t r_stride[3];
    float *mean; /* [rows3, rows2, rows, groups] output: m (0 if not centred), or NULL */
    float *rstd; /* as mean: output, 1/s (0 where s = 0), or NULL */
} nrg_norm_args;

/* Returns the spec of an RMSNorm: not centred, divisor √(mean square + eps), fast grade.
 *
 * Parameters:
 * - dtype: of x, z and o, and of y, r, w and b.
 * - dim: elements of a row.
 * - eps: as in nrg_norm_spec. */
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

/* Returns the spec of a LayerNorm: centred, divisor √(variance + eps), fast grade.
 *
 * Parameters:
 * - dtype: of x, z and o, and of y, r, w and b.
 * - dim: elements of a row.
 * - eps: as in nrg_norm_spec. */
static inline nrg_norm_spec nrg_norm_spec_layer(nrg_dtype dtype, size_t dim, double eps)
{
    nrg_norm_spec spec = nrg_norm_spec_rms(dtype, dim, eps);
    spec.centred = 1;
    return spec;
}

/* Returns the spec of an L2 norm: rows of length 1, x / max(‖x‖, eps), fast grade.
 *
 * Parameters:
 * - dtype: of x, z and o, and of y, r, w and b.
 * - dim: elements of a row.
 * - eps: as in nrg_norm_spec. */
static inline nrg_norm_spec nrg_norm_spec_l2(nrg_dtype dtype, size_t dim, double eps)
{
    nrg_norm_spec spec = nrg_norm_spec_rms(dtype, dim, eps);
    spec.eps_mode = NRG_EPS_MAX;
    spec.c_mode = NRG_C_GIVEN;
    spec.c = 1;
    return spec;
}

/* Returns args for a dense matrix of rows, without residual, gate, bias and statistics.
 *
 * Parameters:
 * - rows, x, w, o: the fields of the same names. */
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
    args.r_in = NULL;
    args.r_in_stride[0] = args.r_in_stride[1] = args.r_in_stride[2] = 0;
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

/* Normalizes the rows of share ith of nth. Uses at most 16 KB of stack in an optimized build.
 *
 * Parameters:
 * - spec: the norm.
 * - args: the data. Required are x and o; y with NRG_RESIDUAL_AFTER; z with a gate; packed, and scales of int8, with a format.
 * - ith, nth: the share, a range of rows. Shares are contiguous and as equal as possible. (0, 1) is all rows.
 *
 * Aliasing: as in the table of nrg_norm_args.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec or args is NULL; or there are rows, and a required operand is NULL.
 * - NRG_ERR_STRUCT_SIZE: the size of a struct is wrong, or a reserved or unknown field is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: dim or groups is 0, or dim is no multiple of groups. With a format, also as in nrg_quantize.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_STRIDE: a stride is shorter than a row, or than the data inside its level.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERLAP: an output overlaps another operand in a way that the table does not allow.
 * - NRG_ERR_ENUM: an enum has an unknown value, or y_repeat or z_repeat is above 7. Or format is set in a build without the
 *   family quantize.
 * - NRG_ERR_DTYPE: y_dtype, r_dtype or w_dtype is neither dtype nor f32.
 * - NRG_ERR_EPS: eps is negative, infinite or NaN.
 * - NRG_ERR_CONSTANT: c or weight_offset is NaN, or beyond the largest float.
 * - NRG_ERR_COMBINATION: eps is set with NRG_EPS_NONE, c without NRG_C_GIVEN, or weight_offset without w. Or r is set with
 *   NRG_RESIDUAL_AFTER (o is the sum), or z with NRG_GATE_NONE. Or r_in is set, which only nrg_norm_elements reads. Or packed,
 *   scales or rounding is set without a format. Or o is set, or groups is above 1, with a format. Or scales is set with a format
 *   that stores its scales in blocks.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_forward(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth);

/* Validates the arguments of nrg_norm_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_forward_check(const nrg_norm_spec *spec, const nrg_norm_args *args);

/* Shortcuts for dense f32 tensors, in the fast grade, on one thread. For the exact grade, make a spec with its constructor,
 * set accuracy = NRG_ACCURACY_EXACT, and call nrg_norm_forward. */

/* Computes o = rms_norm(x) ⊙ w.
 *
 * Parameters:
 * - rows: number of rows; 0 is allowed.
 * - dim: elements of a row, at least 1.
 * - x: [rows, dim] input.
 * - w: [dim] weight, or NULL: 1.
 * - o: [rows, dim] output.
 * - eps: finite, at least 0.
 *
 * Aliasing: o may be x.
 *
 * Returns the statuses of nrg_norm_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_rms_norm_f32(size_t rows, size_t dim, const float *x, const float *w, float *o, double eps);

/* Computes r = x + y and o = rms_norm(r) ⊙ w.
 *
 * Parameters:
 * - rows: number of rows; 0 is allowed.
 * - dim: elements of a row, at least 1.
 * - x: [rows, dim] input.
 * - y: [rows, dim] residual. Must not be NULL unless rows is 0.
 * - w: [dim] weight, or NULL: 1.
 * - r: [rows, dim] output: the sum, or NULL.
 * - o: [rows, dim] output.
 * - eps: finite, at least 0.
 *
 * Aliasing: o and r may each be x or y, but not the same one.
 *
 * Returns the statuses of nrg_norm_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_add_rms_norm_f32(size_t rows, size_t dim, const float *x, const float *y, const float *w,
                                                      float *r, float *o, double eps);

/* Computes o = layer_norm(x) ⊙ w + b.
 *
 * Parameters:
 * - rows: number of rows; 0 is allowed.
 * - dim: elements of a row, at least 1.
 * - x: [rows, dim] input.
 * - w: [dim] weight, or NULL: 1.
 * - b: [dim] bias, or NULL: 0.
 * - o: [rows, dim] output.
 * - eps: finite, at least 0.
 *
 * Aliasing: o may be x.
 *
 * Returns the statuses of nrg_norm_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_layer_norm_f32(size_t rows, size_t dim, const float *x, const float *w, const float *b,
                                                    float *o, double eps);

/* Computes r = x + y and o = layer_norm(r) ⊙ w + b.
 *
 * Parameters:
 * - rows: number of rows; 0 is allowed.
 * - dim: elements of a row, at least 1.
 * - x: [rows, dim] input.
 * - y: [rows, dim] residual. Must not be NULL unless rows is 0.
 * - w: [dim] weight, or NULL: 1.
 * - b: [dim] bias, or NULL: 0.
 * - r: [rows, dim] output: the sum, or NULL.
 * - o: [rows, dim] output.
 * - eps: finite, at least 0.
 *
 * Aliasing: o and r may each be x or y, but not the same one.
 *
 * Returns the statuses of nrg_norm_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_add_layer_norm_f32(size_t rows, size_t dim, const float *x, const float *y, const float *w,
                                                        const float *b, float *r, float *o, double eps);

/* Computes o = x / max(‖x‖, eps).
 *
 * Parameters:
 * - rows: number of rows; 0 is allowed.
 * - dim: elements of a row, at least 1.
 * - x: [rows, dim] input.
 * - o: [rows, dim] output.
 * - eps: finite, at least 0.
 *
 * Aliasing: o may be x.
 *
 * Returns the statuses of nrg_norm_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_l2_norm_f32(size_t rows, size_t dim, const float *x, float *o, double eps);

#ifdef __cplusplus
}
#endif
#endif
