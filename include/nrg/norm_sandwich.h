/* nrg/norm_sandwich.h: a norm of a layer's output, the residual, and the norm of the next layer's input, in one call.
 *
 * This is the sandwich of Gemma 2, 3 and 4: post-attention norm, residual, pre-feedforward norm.
 *
 *     r = y + norm1(x)         rounded to r_dtype
 *     o = norm2(r)             rounded to dtype
 *
 * Each norm is one of nrg/norm.h without gate and activation: LayerNorm, RMSNorm, L2 norm, groups of a row. It has its own
 * spec, w and b.
 *
 * Source: Gemma Team, arXiv:2408.00118; nrg/norm.h has the formula of a norm.
 *
 * Guarantee: the call is bit-identical to two calls of nrg_norm_forward: (x, y, w1, b1 -> r) with NRG_RESIDUAL_AFTER, then (r,
 * w2, b2 -> o). This holds on every path, for every (ith, nth), in place or not, and with or without r and the statistics. The
 * roundings are:
 * - norm1(x) is rounded to f32 (nrg/norm.h). + y is one addition in f32, whose result is rounded to r_dtype once.
 * - r is rounded to r_dtype before norm2, stored or not, as in nrg_norm_forward. In f32 this is no additional rounding.
 * - norm2(r) is rounded to f32, and to dtype once.
 *
 * With f16 and bf16, r_dtype NRG_F32 passes f32 values between the two norms. Then r is required, because only r has room for
 * an f32 row. Two calls of nrg_norm_forward cannot do that, because x and o have one dtype there.
 *
 * Error bounds are those of nrg/norm.h for each norm. norm2 carries on the error of r.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NORM_SANDWICH_H
#define NRG_NORM_SANDWICH_H

#include "norm.h"
#include "norm_backward.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Points to the data: rows in up to four dimensions (nrg/base.h). nrg_norm_sandwich_args_init sets every field. Statistics are
 * dense, i fastest.
 *
 * Dtypes:
 * - x, o: the dtype of both specs.
 * - y: first.y_dtype. r: first.r_dtype. The call validates second.y_dtype and second.r_dtype, but does not use them.
 * - w1, b1: first.w_dtype. w2, b2: second.w_dtype.
 *
 * Aliasing: an output may alias another operand where this table has a yes (nrg/base.h). No other output may share a byte with an
 * operand.
 *
 *               x     y     w1    b1    w2    b2    r     o     mean1 rstd1 mean2 rstd2
 *         r     yes   yes   no    no    no    no          no    no    no    no    no
 *         o     yes   yes   no    no    no    no    no          no    no    no    no
 *     mean1     no    no    no    no    no    no    no    no          no    no    no
 *     rstd1     no    no    no    no    no    no    no    no    no          no    no
 *     mean2     no    no    no    no    no    no    no    no    no    no          no
 *     rstd2     no    no    no    no    no    no    no    no    no    no    no
 *
 * With second.format, the output is packed, and scales for int8 formats (nrg/quantize.h). They share no byte with any operand.
 * o must be NULL, and r is required, because no other operand has room for it. The bytes are those of nrg_norm_forward (r, w2,
 * b2 -> packed), which quantizes o in f32 for every dtype. A share never splits rows that are packed together. A format
 * requires groups = 1 in second. */
typedef struct nrg_norm_sandwich_args {
    size_t size;        /* sizeof(nrg_norm_sandwich_args) */
    size_t rows;        /* rows of a plane. If this or one of the next two is 0, the call only validates */
    size_t rows2;       /* planes of a volume. Default: 1. */
    size_t rows3;       /* volumes. Default: 1. */
    const void *x;      /* [rows3, rows2, rows, dim] input of norm1 */
    size_t x_stride[3]; /* bytes, as all strides below */
    const void *y;      /* as x: residual */
    size_t y_stride[3];
    const void *w1;    /* [dim] weight of norm1, or NULL */
    const void *b1;    /* [dim] bias of norm1, or NULL */
    const void *w2;    /* [dim] weight of norm2, or NULL */
    const void *b2;    /* [dim] bias of norm2, or NULL */
    uint32_t y_repeat; /* nrg_repeat bits: the levels over which y repeats */
    nrg_store store;   /* how o is stored. r uses ordinary stores, because the call reads it again at once */
    void *r;           /* as x: output, y + norm1(x), or NULL. Required with a format, or if it is f32 and dtype is not */
    size_t r_stride[3];
    void *o; /* as x: output, norm2(r); NULL with a format */
    size_t o_stride[3];
    void *packed; /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] output of a format: R rows are packed together */
    size_t packed_stride[3]; /* the first steps over R rows */
    float *scales;           /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] output of int8 formats, else NULL */
    size_t scales_stride[3];
    float *mean1; /* [rows3, rows2, rows, first.groups] output: m of norm1 (0 if not centred), or NULL */
    float *rstd1; /* as mean1: output, 1/s of norm1, or NULL */
    float *mean2; /* [rows3, rows2, rows, second.groups] output: m of norm2 (0 if not centred), or NULL */
    float *rstd2; /* as mean2: output, 1/s of norm2, or NULL */
} nrg_norm_sandwich_args;

/* Returns args for dense matrices of rows, without biases and statistics.
 *
 * Parameters:
 * - rows, x, y, w1, w2, r, o: the fields of the same names. */
static inline nrg_norm_sandwich_args nrg_norm_sandwich_args_init(size_t rows, const void *x, const void *y, const void *w1,
                                                                 const void *w2, void *r, void *o)
{
    nrg_norm_sandwich_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.rows2 = args.rows3 = 1;
    args.x = x;
    args.x_stride[0] = args.x_stride[1] = args.x_stride[2] = 0;
    args.y = y;
    args.y_stride[0] = args.y_stride[1] = args.y_stride[2] = 0;
    args.w1 = w1;
    args.b1 = NULL;
    args.w2 = w2;
    args.b2 = NULL;
    args.y_repeat = NRG_REPEAT_NONE;
    args.store = NRG_STORE_AUTO;
    args.r = r;
    args.r_stride[0] = args.r_stride[1] = args.r_stride[2] = 0;
    args.o = o;
    args.o_stride[0] = args.o_stride[1] = args.o_stride[2] = 0;
    args.packed = NULL;
    args.packed_stride[0] = args.packed_stride[1] = args.packed_stride[2] = 0;
    args.scales = NULL;
    args.scales_stride[0] = args.scales_stride[1] = args.scales_stride[2] = 0;
    args.mean1 = args.rstd1 = args.mean2 = args.rstd2 = NULL;
    return args;
}

/* Computes r = y + norm1(x) and o = norm2(r) for the rows of share ith of nth. Uses at most 16 KB of stack in an optimized
 * build.
 *
 * Parameters:
 * - first: norm1.
 * - second: norm2, with the dim and dtype of first. Only second may have a format.
 * - args: the data. Required are x, y and o. A format requires packed, scales of int8, and r instead of o. r is also required
 *   if it is f32 and dtype is not.
 * - ith, nth: the share, a range of rows, as in nrg_norm_forward.
 *
 * Aliasing: as in the table of nrg_norm_sandwich_args.
 *
 * Returns the statuses of nrg_norm_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: first, second or args is NULL; or there are rows, and a required operand is NULL.
 * - NRG_ERR_DIM: also if the specs have different dims.
 * - NRG_ERR_DTYPE: also if the specs have different dtypes.
 * - NRG_ERR_COMBINATION: a spec has a gate, an activation, NRG_RESIDUAL_AFTER, or NRG_WEIGHTS_GROUP with groups. Or first has
 *   a format, or second has one with groups. Or o is set with a format. Or packed, scales or rounding is set without a format.
 *   Or scales is set with a format that stores its scales in blocks. Or eps, c or weight_offset is set as in nrg_norm_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_forward(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                           const nrg_norm_sandwich_args *args, int ith, int nth);

/* Validates the arguments of nrg_norm_sandwich_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_forward_check(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                                 const nrg_norm_sandwich_args *args);

/* ---- backward ----
 *
 * The inputs are d_o, the gradient of o, and optionally dr_in, the gradient that reaches r from other ops:
 *
 *     dr = dr_in + the gradient of norm2 at r for d_o
 *     dy = dr
 *     dx = the gradient of norm1 at x for dr
 *     dw1, db1, dw2, db2 as in nrg/norm_backward.h
 *
 * The result is bit-identical to two calls of nrg_norm_backward: (r, d_o, dr_in -> dr), then (x, d_o = dr -> dx). So dr is
 * rounded to dtype before it enters dx, which in f32 is no additional rounding. dy is rounded to y_dtype once.
 *
 * On several threads there are two phases with a barrier of the caller between them, as in nrg/norm_backward.h. No call detects
 * that a phase was left out. */

/* Points to the data. nrg_norm_sandwich_backward_args_init sets every field. Dtypes: d_o, x and dx have the dtype of the
 * specs, dy has first.y_dtype, r and dr_in have first.r_dtype. Sums dw and db are f32.
 *
 * Aliasing: an output may alias another operand where this table has a yes (nrg/base.h).
 *
 *               d_o   dr_in   x     r     dx    dy
 *        dx     yes   yes     no    yes         no
 *        dy     yes   yes     no    yes   no
 *
 * Operands dw1, db1, dw2, db2 and workspace share no byte with any other. Inputs mean1 and mean2 share no byte with an output. */
typedef struct nrg_norm_sandwich_backward_args {
    size_t size;        /* sizeof(nrg_norm_sandwich_backward_args) */
    size_t rows;        /* rows of a plane. If this or one of the next two is 0, dw and db become 0, or keep their values with
                           accumulate */
    size_t rows2;       /* planes of a volume. Default: 1. */
    size_t rows3;       /* volumes. Default: 1. */
    const void *x;      /* [rows3, rows2, rows, dim] input of the forward pass */
    size_t x_stride[3]; /* bytes, as all strides below */
    const void *w1;     /* [dim] weight of norm1, or NULL */
    const void *w2;     /* [dim] weight of norm2, or NULL */
    const void *r;      /* as x: r, as the forward pass stored it */
    size_t r_stride[3];
    const float *mean1; /* [rows3, rows2, rows, first.groups] of the forward pass, or NULL: recomputed; NULL if norm1 is not
                           centred */
    const float *mean2; /* [rows3, rows2, rows, second.groups] of the forward pass, or NULL: recomputed; NULL if norm2 is not
                           centred */
    const void *d_o;    /* as x: gradient of o */
    size_t d_o_stride[3];
    const void *dr_in; /* as x: gradient that reaches r from other ops, or NULL */
    size_t dr_in_stride[3];
    nrg_store store; /* how dx is stored. dr uses ordinary stores, because the call reads it again at once */
    int accumulate;  /* not 0: adds to the values in dw and db, in one rounding; 0: overwrites them */
    void *dx;        /* as x: output. The call stores dr here temporarily if dy cannot hold it */
    size_t dx_stride[3];
    void *dy; /* as x: output, or NULL */
    size_t dy_stride[3];
    float *dw1;            /* [dim] output, or NULL. Also without w1 */
    float *db1;            /* [dim] output, or NULL */
    float *dw2;            /* [dim] output, or NULL. Also without w2 */
    float *db2;            /* [dim] output, or NULL */
    void *workspace;       /* aligned to 8 bytes; unused without dw and db */
    size_t workspace_size; /* bytes, at least the result of nrg_norm_sandwich_backward_workspace */
} nrg_norm_sandwich_backward_args;

/* Returns args for dense matrices of rows, without dy and gradients of weights.
 *
 * Parameters:
 * - rows, x, w1, w2, r, d_o, dx: the fields of the same names. */
static inline nrg_norm_sandwich_backward_args nrg_norm_sandwich_backward_args_init(size_t rows, const void *x, const void *w1,
                                                                                   const void *w2, const void *r, const void *d_o,
                                                                                   void *dx)
{
    nrg_norm_sandwich_backward_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.rows2 = args.rows3 = 1;
    args.x = x;
    args.x_stride[0] = args.x_stride[1] = args.x_stride[2] = 0;
    args.w1 = w1;
    args.w2 = w2;
    args.r = r;
    args.r_stride[0] = args.r_stride[1] = args.r_stride[2] = 0;
    args.mean1 = args.mean2 = NULL;
    args.d_o = d_o;
    args.d_o_stride[0] = args.d_o_stride[1] = args.d_o_stride[2] = 0;
    args.dr_in = NULL;
    args.dr_in_stride[0] = args.dr_in_stride[1] = args.dr_in_stride[2] = 0;
    args.store = NRG_STORE_AUTO;
    args.accumulate = 0;
    args.dx = dx;
    args.dx_stride[0] = args.dx_stride[1] = args.dx_stride[2] = 0;
    args.dy = NULL;
    args.dy_stride[0] = args.dy_stride[1] = args.dy_stride[2] = 0;
    args.dw1 = args.db1 = args.dw2 = args.db2 = NULL;
    args.workspace = NULL;
    args.workspace_size = 0;
    return args;
}

/* Computes the size of the workspace for these args: the sum of nrg_norm_backward_workspace for both norms.
 *
 * Parameters:
 * - first, second: the norms.
 * - args: of the data, only rows, rows2, rows3, dw1, db1, dw2 and db2 affect the size.
 * - bytes: output: the size.
 *
 * Returns the statuses of nrg_norm_sandwich_forward, except NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP and
 * NRG_ERR_THREAD. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: first, second, args or bytes is NULL.
 * - NRG_ERR_COMBINATION: also if second has a format. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_backward_workspace(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                                      const nrg_norm_sandwich_backward_args *args, size_t *bytes);

/* Computes the gradients of the rows of share ith of nth, and partial sums for dw and db (phase 1). With nth = 1, it computes
 * dw and db too. Uses at most 16 KB of stack in an optimized build.
 *
 * Parameters:
 * - first, second: the norms, as in the forward pass. A format is not allowed.
 * - args: the data. Required are d_o, x, r and dx, and a workspace with a dw or db.
 * - ith, nth: the share, as in nrg_norm_backward.
 *
 * Aliasing: as in the table of nrg_norm_sandwich_backward_args.
 *
 * Returns the statuses of nrg_norm_sandwich_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: first, second or args is NULL; or a required operand is NULL.
 * - NRG_ERR_COMBINATION: also if second has a format, or if the mean of a norm is set that is not centred.
 * - NRG_ERR_WORKSPACE: workspace_size is smaller than the result of nrg_norm_sandwich_backward_workspace. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_backward(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                            const nrg_norm_sandwich_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_norm_sandwich_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_backward_check(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                                  const nrg_norm_sandwich_backward_args *args);

/* Adds the partial sums of the workspace to dw and db (phase 2). Required if phase 1 had several shares; otherwise it returns
 * NRG_OK at once.
 *
 * Parameters:
 * - first, second, args: those of phase 1.
 * - ith, nth: the share, a range of columns.
 *
 * Aliasing: as in the table of nrg_norm_sandwich_backward_args.
 *
 * Returns the statuses of nrg_norm_sandwich_backward. On error, writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_backward_reduce(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                                   const nrg_norm_sandwich_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_norm_sandwich_backward_reduce. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_backward_reduce_check(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                                         const nrg_norm_sandwich_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
