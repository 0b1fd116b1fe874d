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

/* Where the data is. nrg_norm_sandwich_args_init sets every field. Strides and repeats are those of nrg_norm_args. Dtypes: x and
 * o have the specs' dtype, y and r first.y_dtype and first.r_dtype (second.y_dtype and second.r_dtype are not used), w1 and b1
 * first.w_dtype, w2 and b2 second.w_dtype. Statistics are dense, i fastest.
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
 * With second.format, packed receives bytes, and scales those of int8 (nrg/quantize.h); they share no byte with anything. o must
 * be NULL, and r is required: there is no other place for it. The bytes are those of nrg_norm_forward (r, w2, b2 -> packed),
 * which quantizes o in f32, whatever the dtype. Shares consist of rows that are packed together. Groups in second exclude a
 * format. */
typedef struct nrg_norm_sandwich_args {
    size_t size;        /* sizeof(nrg_norm_sandwich_args) */
    size_t rows;        /* rows of a plane. With 0, here or below, the call checks its arguments and does nothing */
    size_t rows2;       /* planes of a volume. Default: 1 */
    size_t rows3;       /* volumes. Default: 1 */
    const void *x;      /* [rows3, rows2, rows, dim] input of norm1 */
    size_t x_stride[3]; /* bytes; likewise below */
    const void *y;      /* as x: residual */
    size_t y_stride[3];
    const void *w1; /* [dim] weight of norm1, or NULL */
    const void *b1; /* [dim] bias, or NULL */
    const void *w2; /* [dim] the same of norm2 */
    const void *b2;
    uint32_t y_repeat; /* nrg_repeat bits: the dimensions over which y repeats */
    nrg_store store;   /* how o is stored; the call reads r again at once */
    void *r;           /* as x, output: y + norm1(x), or NULL; required with a format, or if it is f32 and dtype is not */
    size_t r_stride[3];
    void *o; /* as x, output: norm2(r); NULL with a format */
    size_t o_stride[3];
    void *packed; /* [rows3, rows2, rows / R, nrg_quant_bytes(format, dim)] output of a format: R rows are packed together */
    size_t packed_stride[3]; /* the first: from R rows to the next R */
    float *scales;           /* [rows3, rows2, rows, nrg_quant_scales(format, dim)] output of int8, else NULL */
    size_t scales_stride[3];
    float *mean1; /* [rows3, rows2, rows, first.groups] output: m of norm1 (0 if not centred), or NULL */
    float *rstd1; /* as mean1, output: 1/s of norm1, or NULL */
    float *mean2; /* [rows3, rows2, rows, second.groups] the same of norm2 */
    float *rstd2;
} nrg_norm_sandwich_args;

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

/* The rows of share ith of nth, as nrg_norm_forward. At most 16 KB of stack in an optimized build.
 *
 * Returns NRG_OK, or says what is wrong as nrg_norm_forward does, and writes nothing: NRG_ERR_STRUCT_SIZE, NRG_ERR_OVERFLOW,
 * NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_ENUM, NRG_ERR_EPS, NRG_ERR_CONSTANT, NRG_ERR_THREAD, and
 *   NRG_ERR_NULL         first, second, args, or (with rows > 0) x, y or o (with a format r, packed, or scales of int8); r if it
 *                        is f32 and dtype is not
 *   NRG_ERR_DIM          dim or groups is 0, dim no multiple of groups, or not the same in both; with a format, as in
 *                        nrg_quantize
 *   NRG_ERR_DTYPE        y_dtype, r_dtype or w_dtype neither dtype nor f32, or another dtype in second than in first
 *   NRG_ERR_COMBINATION  a gate, an activation, NRG_RESIDUAL_AFTER, or NRG_WEIGHTS_GROUP with groups, in either spec; a format
 *                        in first, or with o or with groups in second; packed, scales or rounding without it; eps, c or
 *                        weight_offset as in nrg_norm_forward */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_forward(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                           const nrg_norm_sandwich_args *args, int ith, int nth);

/* Validates the arguments of nrg_norm_sandwich_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_forward_check(const nrg_norm_spec *first, const nrg_norm_spec *second,
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
 * On several threads there are two phases with the host's barrier between them, as nrg/norm_backward.h says. */

/* Where the data is. nrg_norm_sandwich_backward_args_init sets every field. Dtypes: d_o, x and dx have the specs' dtype, dy
 * first.y_dtype, r and dr_in first.r_dtype; dw and db are f32.
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
    size_t rows;        /* rows of a plane. With 0, here or below, dw and db are 0, or keep their value with accumulate */
    size_t rows2;       /* planes of a volume. Default: 1 */
    size_t rows3;       /* volumes. Default: 1 */
    const void *x;      /* [rows3, rows2, rows, dim] as in the forward pass */
    size_t x_stride[3]; /* bytes; likewise below */
    const void *w1;     /* [dim] as in the forward pass, or NULL */
    const void *w2;     /* [dim] as in the forward pass, or NULL */
    const void *r;      /* as the forward pass stored it */
    size_t r_stride[3];
    const float *mean1; /* mean1 of the forward pass, or NULL: recomputed; NULL if norm1 is not centred */
    const float *mean2; /* the same of norm2 */
    const void *d_o;    /* as x: gradient of o */
    size_t d_o_stride[3];
    const void *dr_in; /* as x: gradient of r from elsewhere, or NULL */
    size_t dr_in_stride[3];
    nrg_store store; /* how dx is stored; the call reads dr again at once */
    int accumulate;  /* not 0: dw and db are added to what is there, in one rounding; 0: overwritten */
    void *dx;        /* as x: output; dr lies here on the way where dy cannot hold it */
    size_t dx_stride[3];
    void *dy; /* as x: output, or NULL */
    size_t dy_stride[3];
    float *dw1; /* [dim] output, or NULL; also without w1 */
    float *db1; /* [dim] output, or NULL */
    float *dw2; /* the same of norm2 */
    float *db2;
    void *workspace;       /* multiple of 8 bytes; NULL without dw and db */
    size_t workspace_size; /* bytes, at least those of nrg_norm_sandwich_backward_workspace */
} nrg_norm_sandwich_backward_args;

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

/* Bytes of workspace for these args: what nrg_norm_backward_workspace says of either norm, added. Of args only rows, rows2,
 * rows3, dw1, db1, dw2 and db2 matter. Returns NRG_OK, or writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM,
 * NRG_ERR_OVERFLOW, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS, NRG_ERR_CONSTANT, NRG_ERR_COMBINATION. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_backward_workspace(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                                      const nrg_norm_sandwich_backward_args *args, size_t *bytes);

/* Phase 1: the gradients of the rows of share ith of nth, and partial sums for dw and db, in the shares of nrg_norm_backward;
 * with nth = 1 dw and db themselves. At most 16 KB of stack in an optimized build.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_norm_sandwich_forward, and
 *   NRG_ERR_NULL         first, second, args, or (with rows > 0) d_o, x, r or dx; workspace with a dw or db
 *   NRG_ERR_WORKSPACE    workspace_size is smaller than needed */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_backward(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                            const nrg_norm_sandwich_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_norm_sandwich_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_backward_check(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                                  const nrg_norm_sandwich_backward_args *args);

/* Phase 2, with the arguments of phase 1: the columns of share ith of nth, workspace into dw and db. Required if
 * phase 1 had several shares; otherwise it returns NRG_OK at once. The statuses of nrg_norm_sandwich_backward. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_backward_reduce(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                                   const nrg_norm_sandwich_backward_args *args, int ith, int nth);

/* Validates the arguments of nrg_norm_sandwich_backward_reduce. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_sandwich_backward_reduce_check(const nrg_norm_spec *first, const nrg_norm_spec *second,
                                                                         const nrg_norm_sandwich_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
