/* nrg/norm_backward.h: the backward pass of nrg/norm.h, for all options of the forward pass.
 *
 * The inputs are d_o, the gradient of o, and optionally dr_in, the gradient that reaches r from the residual stream. Names are
 * those of nrg/norm.h, with k = c/√d and h = q/s. For each row or group:
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
 * Sources: the formulas follow from the definition in nrg/norm.h by the chain rule. For LayerNorm and RMSNorm they are those
 * of the papers named there.
 *
 * Statistics. A centred norm takes the mean that the forward pass stored, or recomputes it if it is not given. Both are
 * bit-identical; a given mean saves one pass over the row in cache. Its rounding to f32 costs no accuracy: the call sums the
 * remainder of the mean and subtracts it. The call always sums 1/s again, in double, in a pass that it needs in any case. The
 * f32 value of the forward pass would add its rounding error to the gradient three times, and save no time.
 *
 * Guarantees:
 * - Results are bit-identical on every path, for every (ith, nth), alignment and stride, and in place. They do not depend on
 *   whether mean is given, or on which outputs are requested. The call sums dw and db over four rows in f32 and over all rows
 *   in double. Only the number of rows determines the order.
 * - dp is rounded to f32. Adding dr_in is one addition in f32. A 16-bit output is the f32 result rounded once. So a fused call
 *   is bit-identical to separate ones: dx is the norm's dx plus dr_in.
 * - A NaN or an infinity in x, y or r makes dx of its row or group NaN, and dw and db of its columns. One in d_o, z or dr_in
 *   spreads as the formulas define. No other row is affected.
 * - The call recomputes o1 to within its last bits. If these decide the sign of o1, ReLU's slope may be that of the other
 *   side.
 *
 * Error bounds of every gradient, proven for both grades and every input, in 2^-24 · Σ|terms| of its formula:
 *
 *         dx      8, centred 10; one more each for a weight offset, NRG_GATE_PRE and dr_in
 *         dw      7, centred 8
 *         db      4
 *         dz      as dx with NRG_GATE_PRE, 6 with NRG_GATE_POST
 *
 * A 16-bit gradient adds 0.51 ulp of its type. A gate adds the error of g or g′ (nrg/activation.h). The measured error on the
 * stress set of docs/numerics.md is within 4. Σ|terms| is the sum of these magnitudes:
 * - dx: |dh|/s, |h| a Σ|dh⊙h|/(d s) and, centred, Σ|dh|/(d s). NRG_GATE_PRE multiplies these by |g(z)|. dr_in adds |dr_in|.
 * - dw: Σ|do1 ⊙ k h|. db: Σ|do1|. dz: the factor of g′(z).
 * - h of a centred norm counts as |h| + 2^-22 (1 + |m|/s). An intermediate f32 value below 2^-126 counts as 2^-126.
 *
 * Threads. On one thread, one call computes everything: nrg_norm_backward(&spec, &args, 0, 1). Several threads need two
 * phases, because the rows of each thread add to the same dw and db:
 *
 * 1. Each thread calls nrg_norm_backward(&spec, &args, ith, nth). It computes rows, and writes partial sums of blocks of rows
 *    to the workspace. A single block (32 rows or fewer) writes dw and db directly.
 * 2. All threads wait at a barrier of the caller.
 * 3. Each thread calls nrg_norm_backward_reduce(&spec, &args, ith, nth). It adds columns of the workspace to dw and db.
 *
 * The phases may use different nth. Without dw and db, the second phase has no work, and the call needs no workspace. After a
 * first phase on one thread, the second has no work either. It then finds a mark in the workspace and adds nothing, also with
 * accumulate. No call detects that a phase was left out. The folder examples/ has both phases as an OpenMP region and as two
 * tasks of a ggml-like pool.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NORM_BACKWARD_H
#define NRG_NORM_BACKWARD_H

#include "norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Points to the data: rows in up to four dimensions (nrg/base.h). nrg_norm_backward_args_init sets every field. Outputs dy and dz
 * never repeat: if y or z does, the caller sums dy or dz over its repetitions.
 *
 * Dtypes: d_o, x, z, dx and dz have spec.dtype; y and dy have y_dtype; r and dr_in have r_dtype. Sums dw and db are always
 * f32.
 *
 * Give either r or x. With r, x and y must be NULL. Without r, the call recomputes r = x + y. Every output may be NULL.
 *
 * Aliasing: an output may alias another operand where this table has a yes (nrg/base.h). No other output may share a byte with an
 * operand.
 *
 *               d_o   dr_in   x     y     z     r     dx
 *        dx     yes   yes     yes   no    no    yes
 *        dy     yes   yes     no    yes   no    yes   yes, where dy = dx
 *        dz     no    no      no    no    yes   no    no
 *
 * Operands dw, db and workspace share no byte with any other. Input mean shares no byte with an output. */
typedef struct nrg_norm_backward_args {
    size_t size;        /* sizeof(nrg_norm_backward_args) */
    size_t rows;        /* rows of a plane. If this or one of the next two is 0, dw and db become 0, or keep their values with
                           accumulate */
    size_t rows2;       /* planes of a volume. Default: 1. */
    size_t rows3;       /* volumes. Default: 1. */
    const void *x;      /* [rows3, rows2, rows, dim] input of the forward pass; NULL with r */
    size_t x_stride[3]; /* bytes, as all strides below */
    const void *y;      /* as x: residual of the forward pass, or NULL; NULL with r, or with NRG_RESIDUAL_AFTER */
    size_t y_stride[3];
    const void *z; /* as x: input of the gate; NULL with NRG_GATE_NONE */
    size_t z_stride[3];
    uint32_t y_repeat; /* nrg_repeat bits, as in the forward pass */
    uint32_t z_repeat; /* nrg_repeat bits, as in the forward pass */
    const void *w;     /* [dim], or [dim / groups] with NRG_WEIGHTS_GROUP: weight of the forward pass, or NULL */
    const void *b;     /* as w: bias, or NULL. The call reads it for dz of NRG_GATE_POST, and if g applies to o1 */
    const void *r;     /* as x: r of the forward pass, or NULL; NULL with NRG_RESIDUAL_AFTER */
    size_t r_stride[3];
    const float *mean; /* [rows3, rows2, rows, groups] mean of the forward pass, or NULL: recomputed; NULL if not centred */
    const void *d_o;   /* as x: gradient of o */
    size_t d_o_stride[3];
    const void *dr_in; /* as x: gradient that reaches r from other ops, or NULL; NULL with NRG_RESIDUAL_AFTER */
    size_t dr_in_stride[3];
    nrg_store store; /* how dx, dy and dz are stored */
    int accumulate;  /* not 0: adds to the values in dw and db, in one rounding; 0: overwrites them */
    void *dx;        /* as x: output, or NULL */
    size_t dx_stride[3];
    void *dy; /* as x: output, or NULL */
    size_t dy_stride[3];
    void *dz; /* as x: output, or NULL; NULL with NRG_GATE_NONE */
    size_t dz_stride[3];
    float *dw;             /* as w: output, or NULL. Also without w: then it is the gradient of a w of ones */
    float *db;             /* as b: output, or NULL. Also without b */
    void *workspace;       /* aligned to 8 bytes; unused without dw and db */
    size_t workspace_size; /* bytes, at least the result of nrg_norm_backward_workspace */
} nrg_norm_backward_args;

/* Returns args for a dense matrix of rows, without residual, gate, and gradients of w and b.
 *
 * Parameters:
 * - rows, x, w, d_o, dx: the fields of the same names. */
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

/* Computes the size of the workspace for these args: 8 bytes for each element of dw and db and each block of rows. With
 * NRG_WEIGHTS_GROUP, these are blocks of groups of rows. A block has 32 rows, or as many more as limit the blocks to 64. So an
 * element of dw or db takes at most 512 bytes, for every number of rows and threads.
 *
 * Parameters:
 * - spec: the norm.
 * - args: of the data, only rows, rows2, rows3, dw and db affect the size.
 * - bytes: output: the size, 0 without dw and db.
 *
 * Returns the statuses of nrg_norm_forward, except NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP and NRG_ERR_THREAD. On
 * error, writes nothing. Differences:
 * - NRG_ERR_NULL: spec, args or bytes is NULL.
 * - NRG_ERR_COMBINATION: spec has a format. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_backward_workspace(const nrg_norm_spec *spec, const nrg_norm_backward_args *args,
                                                             size_t *bytes);

/* Computes the gradients of the rows of share ith of nth, and partial sums for dw and db (phase 1). With nth = 1, it computes
 * dw and db too. Uses at most 16 KB of stack in an optimized build.
 *
 * Parameters:
 * - spec: the norm, as in the forward pass. A format is not allowed.
 * - args: the data. Required are d_o, x or r, z with a gate, and a workspace with dw or db.
 * - ith, nth: the share. With dw or db, a share is a range of blocks of 32 rows or more. So at most ⌈rows/32⌉ threads, and at
 *   most 64, have work. Without them, a share is a range of rows.
 *
 * Aliasing: as in the table of nrg_norm_backward_args.
 *
 * Returns the statuses of nrg_norm_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: spec or args is NULL; or a required operand is NULL.
 * - NRG_ERR_COMBINATION: y, r or dr_in is set with NRG_RESIDUAL_AFTER, z or dz with NRG_GATE_NONE, or x or y with r. Or mean
 *   is set, and the norm is not centred. Or spec has a format.
 * - NRG_ERR_WORKSPACE: workspace_size is smaller than the result of nrg_norm_backward_workspace. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_backward(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith,
                                                   int nth);

/* Validates the arguments of nrg_norm_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_backward_check(const nrg_norm_spec *spec, const nrg_norm_backward_args *args);

/* Adds the partial sums of the workspace to dw and db (phase 2). Required if phase 1 had several shares; otherwise it returns
 * NRG_OK at once.
 *
 * Parameters:
 * - spec, args: those of phase 1.
 * - ith, nth: the share, a range of columns. Its nth may differ from that of phase 1.
 *
 * Aliasing: as in the table of nrg_norm_backward_args.
 *
 * Returns the statuses of nrg_norm_backward. On error, writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_backward_reduce(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith,
                                                          int nth);

/* Validates the arguments of nrg_norm_backward_reduce. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_backward_reduce_check(const nrg_norm_spec *spec, const nrg_norm_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
