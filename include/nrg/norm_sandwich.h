/* nrg/norm_sandwich.h: a norm of what a layer made, the residual, and the norm that the next layer begins with, in one call: the
 * sandwich of Gemma 2, 3 and 4 (Gemma Team, arXiv:2408.00118; post-attention norm, residual, pre-feedforward norm).
 *
 *     r = y + norm1(x)         rounded to r_dtype
 *     o = norm2(r)             rounded to dtype
 *
 * norm1 and norm2 are any norms of nrg/norm.h without gate and activation, each with its spec, w and b: LayerNorm, RMSNorm, L2,
 * groups of a row.
 *
 * What holds: the bits of two calls of nrg_norm_forward in turn, (x, y, w1, b1 -> r) with NRG_RESIDUAL_AFTER and (r, w2, b2 ->
 * o), on every path, for any (ith, nth), in place or not, and whether or not r and the statistics are asked for. All that is
 * rounded:
 *
 * - norm1(x): to f32, as nrg/norm.h says; + y is one addition in f32, whose result is rounded to r_dtype once.
 * - r is rounded to r_dtype before norm2 sees it, stored or not, as in nrg_norm_forward. In f32 that is no rounding more. With
 *   f16 and bf16, r_dtype NRG_F32 keeps what lies between the two norms in f32; r is then asked for, since a row of f32 has no
 *   place but its own. Two calls of nrg_norm_forward cannot do that: in neither are x and o of two dtypes.
 * - norm2(r): to f32, and to dtype once.
 *
 * Errors are those of nrg/norm.h, one after the other: what r is off by, norm2 carries on.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NORM_SANDWICH_H
#define NRG_NORM_SANDWICH_H

#include "norm.h"
#include "norm_backward.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the data is. Make one with nrg_norm_sandwich_args_init, then set what else there is. Row i of plane j of volume k of x is
 * at x + i·x_stride + j·x_stride2 + k·x_stride3, and so of y, r and o; y may repeat. Dtypes: x and o have the specs' dtype, y and
 * r first.y_dtype and first.r_dtype (second.y_dtype and second.r_dtype are not used), w1 and b1 first.w_dtype, w2 and b2
 * second.w_dtype. Statistics are dense, i fastest.
 *
 * Aliasing: an output shares no byte with another operand, except the whole operand, same first byte, same strides, same element
 * size:
 *
 *               x     y     w1    b1    w2    b2    r     o     mean1 rstd1 mean2 rstd2
 *         r     yes   yes   no    no    no    no          no    no    no    no    no
 *         o     yes   yes   no    no    no    no    no          no    no    no    no
 *     mean1     no    no    no    no    no    no    no    no          no    no    no
 *     rstd1     no    no    no    no    no    no    no    no    no          no    no
 *     mean2     no    no    no    no    no    no    no    no    no    no          no
 *     rstd2     no    no    no    no    no    no    no    no    no    no    no
 *
 * With a format, what would be o becomes bytes with scales (nrg/quantize.h): in q, and in scales those of int8, which share no
 * byte with anything. o is not looked at, so r is asked for: there is no other place for it. The bytes are those of
 * nrg_norm_forward (r, w2, b2 -> q), which quantizes o in f32, whatever the dtype. Shares are of rows that lie together. Not with
 * groups in second. */
typedef struct nrg_norm_sandwich_args {
    size_t size;    /* sizeof(nrg_norm_sandwich_args), set by nrg_norm_sandwich_args_init */
    size_t rows;    /* 0 is fine: the call checks what it was given, and does nothing */
    const void *x;  /* [rows, dim] what norm1 normalizes */
    const void *y;  /* [rows, dim] residual */
    const void *w1; /* [dim] weight of norm1, or NULL */
    const void *b1; /* [dim] bias, or NULL */
    const void *w2; /* [dim] the same of norm2 */
    const void *b2;
    void *r;      /* [rows, dim] output: y + norm1(x), or NULL, but for an r of f32 beside 16 bits */
    void *o;      /* [rows, dim] output: norm2(r); with a format not looked at */
    float *mean1; /* [rows, first.groups] output: m of norm1 (0 where not centred), or NULL */
    float *rstd1; /* [rows, first.groups] output: 1/s of norm1, or NULL */
    float *mean2; /* [rows, second.groups] the same of norm2 */
    float *rstd2;
    size_t x_stride; /* bytes; 0: dense; likewise below */
    size_t y_stride;
    size_t r_stride;
    size_t o_stride;
    size_t rows2; /* planes of rows, and volumes of planes; 0 stands for 1 */
    size_t rows3;
    size_t x_stride2; /* bytes from plane to plane */
    size_t x_stride3; /* bytes from volume to volume */
    size_t y_stride2;
    size_t y_stride3;
    size_t r_stride2;
    size_t r_stride3;
    size_t o_stride2;
    size_t o_stride3;
    uint32_t y_repeat;       /* nrg_repeat bits: where y is one for all */
    uint32_t reserved;       /* 0 */
    nrg_quant_format format; /* not NONE: bytes with scales (nrg/quantize.h) instead of o */
    nrg_quant_rounding rounding;
    void *q;         /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] output: bytes. R rows lie together */
    float *scales;   /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] output of int8; else NULL */
    size_t q_stride; /* bytes, from R rows to the next R */
    size_t q_stride2;
    size_t q_stride3;
    size_t scales_stride;
    size_t scales_stride2;
    size_t scales_stride3;
} nrg_norm_sandwich_args;

static inline nrg_norm_sandwich_args nrg_norm_sandwich_args_init(size_t rows, const void *x, const void *y, void *r, void *o)
{
    nrg_norm_sandwich_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.rows = rows;
    args.x = x;
    args.y = y;
    args.r = r;
    args.o = o;
    return args;
}

/* The rows of share ith of nth, as nrg_norm_forward. second.store says how o is stored, and first.store nothing: r is read again
 * at once. At most 16 KB of stack in an optimized build.
 *
 * Returns NRG_OK, or says what is wrong as nrg_norm_forward does, and writes nothing: NRG_ERR_STRUCT_SIZE, NRG_ERR_OVERFLOW,
 * NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_ENUM, NRG_ERR_EPS, NRG_ERR_CONSTANT, NRG_ERR_THREAD, and
 *   NRG_ERR_NULL         first, second, args, or (with rows > 0) x, y or o (with a format r, q, or scales of int8); r where it is
 *                        of f32 beside 16 bits
 *   NRG_ERR_DIM          dim is 0, no multiple of groups, or not the same in both; with a format, as in nrg_quantize
 *   NRG_ERR_DTYPE        y_dtype, r_dtype or w_dtype neither dtype nor f32, or another dtype in second than in first
 *   NRG_ERR_COMBINATION  a gate, an activation, NRG_RESIDUAL_AFTER, or NRG_WEIGHTS_GROUP with groups, in either spec; a format
 *                        with groups in second; q or scales without it */
NRG_API nrg_status nrg_norm_sandwich_forward(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                             const nrg_norm_sandwich_args *args, int ith, int nth);

/* What nrg_norm_sandwich_forward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_norm_sandwich_forward_check(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                   const nrg_norm_sandwich_args *args);

/* ---- backward ----
 *
 * Given d_o, the gradient of o, and optionally dr_in, the gradient that arrives at r from elsewhere:
 *
 *     dr = dr_in + the gradient of norm2 at r for d_o
 *     dy = dr
 *     dx = the gradient of norm1 at x for dr
 *     dw1, db1, dw2, db2 as in nrg/norm_backward.h
 *
 * The bits are those of two calls of nrg_norm_backward: (r, d_o, dr_in -> dr), then (x, d_o = dr -> dx). So dr is rounded to
 * dtype where dx is made of it, which in f32 is no rounding more; dy is rounded to y_dtype once.
 *
 * There are two phases with the host's barrier between them, as nrg/norm_backward.h says. */

/* Where the data is. Zero everything, set size (nrg_norm_sandwich_backward_args_init does), then what there is. Dtypes: d_o, x
 * and dx have the specs' dtype, dy first.y_dtype, r and dr_in first.r_dtype; dw and db are f32.
 *
 * Aliasing:
 *
 *               d_o   dr_in   x     r     dx    dy
 *        dx     yes   yes     no    yes         no
 *        dy     yes   yes     no    yes   no
 *
 * dw1, db1, dw2, db2 and workspace share no byte with anything; mean1 and mean2 none with an output. */
typedef struct nrg_norm_sandwich_backward_args {
    size_t size;        /* sizeof(nrg_norm_sandwich_backward_args) */
    size_t rows;        /* 0 is fine: dw and db are then 0, or keep their value with accumulate */
    const void *d_o;    /* [rows, dim] gradient of o */
    const void *dr_in;  /* [rows, dim] gradient of r from elsewhere, or NULL */
    const void *x;      /* [rows, dim] as in the forward pass */
    const void *r;      /* [rows, dim] as the forward pass stored it */
    const void *w1;     /* [dim] as in the forward pass, or NULL */
    const void *w2;     /* [dim] as in the forward pass, or NULL */
    const float *mean1; /* as the forward pass stored it, or NULL: recomputed. Not read unless centred */
    const float *mean2; /* the same of norm2 */
    void *dx;           /* [rows, dim] output; dr lies here on the way where dy cannot hold it */
    void *dy;           /* [rows, dim] output, or NULL */
    float *dw1;         /* [dim] output, or NULL; also without w1 */
    float *db1;         /* [dim] output, or NULL */
    float *dw2;         /* the same of norm2 */
    float *db2;
    void *workspace;       /* multiple of 8 bytes; NULL where no dw or db is asked for */
    size_t workspace_size; /* bytes, at least what nrg_norm_sandwich_backward_workspace says */
    size_t d_o_stride;     /* bytes; 0: dense; likewise below */
    size_t dr_in_stride;
    size_t x_stride;
    size_t r_stride;
    size_t dx_stride;
    size_t dy_stride;
    int accumulate;    /* not 0: dw and db are added to what is there, in one rounding; 0: overwritten */
    uint32_t reserved; /* 0 */
    size_t rows2;      /* planes of rows, and volumes of planes; 0 stands for 1 */
    size_t rows3;
    size_t d_o_stride2; /* bytes from plane to plane */
    size_t d_o_stride3; /* bytes from volume to volume */
    size_t dr_in_stride2;
    size_t dr_in_stride3;
    size_t x_stride2;
    size_t x_stride3;
    size_t r_stride2;
    size_t r_stride3;
    size_t dx_stride2;
    size_t dx_stride3;
    size_t dy_stride2;
    size_t dy_stride3;
} nrg_norm_sandwich_backward_args;

static inline nrg_norm_sandwich_backward_args nrg_norm_sandwich_backward_args_init(size_t rows, const void *x, const void *r,
                                                                                   const void *d_o, void *dx)
{
    nrg_norm_sandwich_backward_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.rows = rows;
    args.x = x;
    args.r = r;
    args.d_o = d_o;
    args.dx = dx;
    return args;
}

/* Bytes of workspace for these args: what nrg_norm_backward_workspace says of either norm, added. Of args only rows, rows2,
 * rows3, dw1, db1, dw2 and db2 matter. Returns NRG_OK, or writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM,
 * NRG_ERR_OVERFLOW, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS, NRG_ERR_CONSTANT, NRG_ERR_COMBINATION. */
NRG_API nrg_status nrg_norm_sandwich_backward_workspace(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                        const nrg_norm_sandwich_backward_args *args, size_t *bytes);

/* Phase 1: the gradients of the rows of share ith of nth, and partial sums for dw and db, in the shares of nrg_norm_backward. At
 * most 16 KB of stack in an optimized build.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_norm_sandwich_forward, and
 *   NRG_ERR_NULL         first, second, args, or (with rows > 0) d_o, x, r or dx; workspace with a dw or db
 *   NRG_ERR_WORKSPACE    workspace_size is smaller than needed */
NRG_API nrg_status nrg_norm_sandwich_backward(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                              const nrg_norm_sandwich_backward_args *args, int ith, int nth);

/* What nrg_norm_sandwich_backward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_norm_sandwich_backward_check(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                    const nrg_norm_sandwich_backward_args *args);

/* Phase 2, with the arguments of phase 1: the columns of share ith of nth, workspace into dw and db. Always call it; where
 * nothing is left it returns NRG_OK at once. The statuses of nrg_norm_sandwich_backward. */
NRG_API nrg_status nrg_norm_sandwich_backward_reduce(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                     const nrg_norm_sandwich_backward_args *args, int ith, int nth);

/* What nrg_norm_sandwich_backward_reduce would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_norm_sandwich_backward_reduce_check(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                           const nrg_norm_sandwich_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
