/* nrg/norm_backward.h: the backward pass of nrg/norm.h, for everything the forward pass can do.
 *
 * Given d_o, the gradient of o, and optionally dr_in, the gradient that arrives at r from elsewhere (the residual stream), with
 * the names of nrg/norm.h (k = c/√d, h = q/s, all per row or group):
 *
 *     do1 = d_o ⊙ g(z),   dz = d_o ⊙ o1 ⊙ g′(z)                     NRG_GATE_POST
 *     do1 = d_o ⊙ g′(o1)                                            NRG_GATE_NONE with an activation;  do1 = d_o otherwise
 *     db += Σ_rows do1
 *     dw += Σ_rows do1 ⊙ (k h)
 *     dh  = k · do1 ⊙ (w + weight_offset)
 *     dq  = (dh - h · a · (Σ dh⊙h)/d) / s                           s = 0: dq = 0
 *           a = 1;  NRG_EPS_SIGMA: s/σ, 0 where σ is 0;  NRG_EPS_MAX: 0 where eps is the larger
 *     dp  = dq - mean(dq)  centred;  dp = dq otherwise              d ≤ centred + (s = σ): dp = 0, exactly
 *     dr  = dp ⊙ g(z),    dz = dp ⊙ r ⊙ g′(z)                       NRG_GATE_PRE;  dr = dp otherwise
 *     dx  = dr + dr_in,   dy = dx                                   NRG_RESIDUAL_AFTER: dx = dr, dy = d_o
 *
 * Sources: the formulas follow from the definition in nrg/norm.h by the chain rule; for LayerNorm and RMSNorm they are those of
 * the papers named there.
 *
 * Statistics: the mean of a centred norm as the forward pass stored it, or recomputed where it is not given: the same bits, and
 * one pass over the row in cache less. (That it was rounded to f32 costs nothing: the rest of the mean is summed and taken
 * out.) 1/s is always summed again, in double, in the pass that is needed anyway: the f32 of the forward pass would enter the
 * gradient three times over with its rounding, and take no less time.
 *
 * What holds:
 * - The bits are the same on every path, for any (ith, nth), alignment, stride, in place or not, with the mean saved or
 *   recomputed, and whichever outputs are asked for. dw and db are summed over four rows in f32 and over all rows in double, in
 *   an order given by the number of rows alone.
 * - dp is rounded to f32; + dr_in is one addition in f32; 16-bit outputs are the f32 result rounded once. So fused equals
 *   unfused: dx is norm backward's dx plus dr_in.
 * - Error of every gradient, in both grades and for every input, in 2^-24 · Σ|terms| of its formula: dx 8, centred 10, and one
 *   more each for a weight offset, NRG_GATE_PRE and dr_in; dw 7, centred 8; db 4; dz as dx with NRG_GATE_PRE, 6 with
 *   NRG_GATE_POST. The stress set of docs/numerics.md stays within 4. A 16-bit one has 0.51 ulp of its type on top.
 *   Σ|terms| is the sum of the magnitudes of what is added up: of dx |dh|/s, |h| a Σ|dh⊙h|/(d s) and, centred, Σ|dh|/(d s), these
 *   times |g(z)| with NRG_GATE_PRE, and |dr_in|; of dw Σ|do1 ⊙ k h|; of db Σ|do1|; of dz what is multiplied by g′(z). An h of
 *   a centred norm counts as |h| + 2^-22 (1 + |m|/s), and a float on the way that is below 2^-126 as 2^-126. A gate adds the
 *   error of g or g′ (nrg/activation.h).
 * - A NaN or an infinity in x, y or r poisons the dx of its row or group, and dw and db of the columns; one in d_o, z or dr_in
 *   goes where the formulas take it. No other row is touched.
 * - o1 is computed again, to within its last bits: where it is within those of 0, ReLU's slope may be the one of the other side.
 *
 * On one thread, one call does all: nrg_norm_backward(&spec, &args, 0, 1). On several there are two phases, because every
 * thread's rows add to the same dw and db:
 *
 *     1. nrg_norm_backward(&spec, &args, ith, nth) on every thread: rows, and partial sums of blocks of rows into the workspace;
 *        of a single block (32 rows or fewer) dw and db themselves
 *     2. the host's barrier
 *     3. nrg_norm_backward_reduce(&spec, &args, ith, nth) on every thread: columns, from the workspace into dw and db
 *
 * nth may differ between the phases. Without dw and db the second has nothing to do, and needs no workspace. After a first phase
 * on one thread it has nothing to do either: it finds a mark in the workspace, and adds nothing, also with accumulate. examples/
 * has both phases as an OpenMP region and as two tasks of a ggml-like pool.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NORM_BACKWARD_H
#define NRG_NORM_BACKWARD_H

#include "norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the data is. nrg_norm_backward_args_init sets every field. Strides, repeats and alignment are those of nrg_norm_args; dy
 * and dz never repeat: if y or z does, the caller sums dy or dz over its repetitions. d_o, dx, z, dz have spec.dtype; y and dy
 * y_dtype; r and dr_in r_dtype; dw and db are f32 whatever the dtype.
 *
 * r or x: with r given, x and y must be NULL; otherwise r is x + y again. Every output may be NULL.
 *
 * Aliasing: an output shares no byte with another operand, except the whole operand, same first byte, same strides, same element
 * size:
 *
 *               d_o   dr_in   x     y     z     r     dx
 *        dx     yes   yes     yes   no    no    yes
 *        dy     yes   yes     no    yes   no    yes   yes, where dy = dx
 *        dz     no    no      no    no    yes   no    no
 *
 * dw, db and workspace share no byte with anything; mean none with an output. */
typedef struct nrg_norm_backward_args {
    size_t size;        /* sizeof(nrg_norm_backward_args) */
    size_t rows;        /* rows of a plane. With 0, here or below, dw and db are 0, or keep their value with accumulate */
    size_t rows2;       /* planes of a volume. Default: 1 */
    size_t rows3;       /* volumes. Default: 1 */
    const void *x;      /* [rows3, rows2, rows, dim] as in the forward pass; NULL with r */
    size_t x_stride[3]; /* bytes; likewise below */
    const void *y;      /* as in the forward pass; NULL with r, or with NRG_RESIDUAL_AFTER */
    size_t y_stride[3];
    const void *z; /* as in the forward pass */
    size_t z_stride[3];
    uint32_t y_repeat; /* nrg_repeat bits, as in the forward pass */
    uint32_t z_repeat;
    const void *w; /* [dim], or [dim / groups], as in the forward pass */
    const void *b; /* as w; read for dz of NRG_GATE_POST and where g is applied to o1 */
    const void *r; /* r of the forward pass, or NULL; not with NRG_RESIDUAL_AFTER */
    size_t r_stride[3];
    const float *mean; /* mean of the forward pass, or NULL: recomputed; NULL if not centred */
    const void *d_o;   /* as x: gradient of o */
    size_t d_o_stride[3];
    const void *dr_in; /* as x: gradient of r from elsewhere, or NULL; not with NRG_RESIDUAL_AFTER */
    size_t dr_in_stride[3];
    nrg_store store; /* how dx, dy and dz are stored */
    int accumulate;  /* not 0: dw and db are added to what is there, in one rounding; 0: overwritten */
    void *dx;        /* as x: output, or NULL */
    size_t dx_stride[3];
    void *dy; /* as x: output, or NULL */
    size_t dy_stride[3];
    void *dz; /* as x: output, or NULL; only with NRG_GATE_PRE or NRG_GATE_POST */
    size_t dz_stride[3];
    float *dw;             /* as w, output, or NULL; also without w: the gradient of a w of ones */
    float *db;             /* as b, output, or NULL; also without b */
    void *workspace;       /* multiple of 8 bytes; NULL without dw and db */
    size_t workspace_size; /* bytes, at least those of nrg_norm_backward_workspace */
} nrg_norm_backward_args;

static inline nrg_norm_backward_args nrg_norm_backward_args_init(size_t rows, const void *x, const void *w, const void *d_o,
                                                                 void *dx)
{
    nrg_norm_backward_args args;
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
    args.r = NULL;
    args.r_stride[0] = args.r_stride[1] = args.r_stride[2] = 0;
    args.mean = NULL;
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
    args.dz = NULL;
    args.dz_stride[0] = args.dz_stride[1] = args.dz_stride[2] = 0;
    args.dw = args.db = NULL;
    args.workspace = NULL;
    args.workspace_size = 0;
    return args;
}

/* Bytes of workspace for these args: 8 for each element of dw and db and each block of rows (with NRG_WEIGHTS_GROUP, of groups of
 * rows). Blocks have 32 rows, or as many more as keep them at 64 or fewer: at most 512 bytes for each element of dw and db,
 * however many rows and threads. 0 where neither is asked for. Of args only rows, rows2, rows3, dw and db matter. Returns NRG_OK,
 * or writes nothing: NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM, NRG_ERR_OVERFLOW, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS,
 * NRG_ERR_CONSTANT, NRG_ERR_COMBINATION. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_backward_workspace(const nrg_norm_spec *spec, const nrg_norm_backward_args *args,
                                                             size_t *bytes);

/* Phase 1: the gradients of the rows of share ith of nth, and partial sums for dw and db; with nth = 1 dw and db themselves. With
 * dw or db a share is whole blocks of rows (32 rows or more: at most ⌈rows/32⌉, and at most 64, threads have work), otherwise
 * rows. At most 16 KB of stack in an optimized build.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_norm_forward, and
 *   NRG_ERR_NULL         (with rows > 0) d_o; x without r; z with a gate; workspace with dw or db
 *   NRG_ERR_COMBINATION  y, r or dr_in with NRG_RESIDUAL_AFTER; z or dz with NRG_GATE_NONE; x or y with r; mean if not centred;
 *                        a format
 *   NRG_ERR_WORKSPACE    workspace_size is smaller than needed */
NRG_NODISCARD NRG_API nrg_status nrg_norm_backward(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith,
                                                   int nth);

/* Validates the arguments of nrg_norm_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_backward_check(const nrg_norm_spec *spec, const nrg_norm_backward_args *args);

/* Phase 2, with the spec and args of phase 1: the columns of share ith of nth, workspace into dw and db. Required if phase 1 had
 * several shares; otherwise it returns NRG_OK at once. Returns the statuses of nrg_norm_backward. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_backward_reduce(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith,
                                                          int nth);

/* Validates the arguments of nrg_norm_backward_reduce. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_backward_reduce_check(const nrg_norm_spec *spec, const nrg_norm_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
