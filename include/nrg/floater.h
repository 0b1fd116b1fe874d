/* nrg/floater.h: positional encodings as the path of a dynamical system (FLOATER), with the caller's dynamics h.
 *
 *     p(t_(k+1)) = p(t_k) + ∫ h(τ, p(τ)) dτ  from t_k to t_(k+1),   k = 0 … n-1
 *
 * from a given p(t_0). The encoding of position k is p_k = p(t_k), k = 1 … n. Positions may have any times. h is a function of
 * the caller, such as a small learned network. This header is the code between its calls, forward and backward.
 *
 * Source: Liu, Yu, Dhillon, Hsieh, "Learning to Encode Position for Transformer with Continuous Dynamical Model",
 * arXiv:2003.09229.
 *
 * The classical fourth-order Runge-Kutta method computes the integral, in `substeps` equal steps per position. For a step H from
 * the state x at time t:
 *
 *     k1 = h(t, x),  k2 = h(t + H/2, x + H/2·k1),  k3 = h(t + H/2, x + H/2·k2),  k4 = h(t + H, x + H·k3)
 *     x  ← x + H/6·(k1 + 2·k2 + 2·k3 + k4)
 *
 * If h is smooth enough, twice the substeps leave a sixteenth of the error. Source: Kutta, Zeitschrift für Mathematik und Physik
 * 46, 1901.
 *
 * The gradients are those of these steps, reversed one by one, and not those of the integral. So they are exact for any number of
 * substeps: gradient descent gets the slope of the numbers that the model reads.
 *
 * For every call:
 * - The state stays in double between the calls of h. The input of h is the state rounded to f32. The output p is that f32,
 *   rounded once more to a 16-bit dtype.
 * - There are no kernels. The same double arithmetic runs everywhere, so results are bit-identical on every path and machine if
 *   those of h are.
 * - With the same calls of h, state and gradients are within a few ulp of double. Every number passed to or from the caller's
 *   functions is f32. So the error is that of h, in f32, and that of the method.
 * - h cannot fail. A NaN or an infinity that it returns enters the state and every later position; backward, every earlier one.
 * - The state at a position is an output (states), and can be the start of another call (state0). Backward, so is its gradient
 *   (d_state0, d_state_n). So several calls for ranges of positions are bit-identical to one call.
 * - The work is sequential. Share 0 of nth does all of it. The others validate their arguments and return. h may use any threads.
 *
 * docs/ops/recurrent.md has the definition of every bit.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_FLOATER_H
#define NRG_FLOATER_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The caller's h: dp_dt = h(t, p).
 *
 * Parameters:
 * - user: the pointer in the spec.
 * - t: time.
 * - dim: elements of p and dp_dt.
 * - p: [dim] input, in the workspace.
 * - dp_dt: [dim] output, in the workspace. It does not overlap p. The function must write all of it.
 *
 * The result may depend only on t and p, because the backward pass calls h again for the same values. */
typedef void (*nrg_floater_h)(void *user, double t, size_t dim, const float *p, float *dp_dt);

/* The caller's vector-Jacobian product: vt_dh_dp = vᵀ ∂h/∂p at (t, p). It also adds vᵀ ∂h/∂θ to the gradients of the parameters θ
 * of h, which the caller stores. Their sum over all calls of one nrg_floater_backward is the gradient.
 *
 * Parameters:
 * - user: the pointer in the spec.
 * - t: time.
 * - dim: elements of each array.
 * - p: [dim] input.
 * - v: [dim] input. It includes the weight of the step.
 * - vt_dh_dp: [dim] output. The function must write all of it.
 *
 * The arrays do not overlap. */
typedef void (*nrg_floater_vjp)(void *user, double t, size_t dim, const float *p, const float *v, float *vt_dh_dp);

/* The computation. Make one with nrg_floater_spec_init, then change fields. */
typedef struct nrg_floater_spec {
    size_t size;         /* sizeof(nrg_floater_spec) */
    size_t positions;    /* n, positions after t_0; may be 0 */
    size_t dim;          /* elements of a vector, at least 1 */
    nrg_dtype dtype;     /* of p and dp */
    nrg_dtype p0_dtype;  /* of p0: SAME, dtype or NRG_F32 */
    nrg_floater_h h;     /* not NULL unless n is 0 */
    nrg_floater_vjp vjp; /* not NULL in the backward pass unless n is 0 */
    void *user;          /* the first argument of h and vjp */
    const double *times; /* [n + 1] input: t_0 … t_n, in any order; NULL: t_k = t0 + k·dt */
    double t0;           /* 0 with times */
    double dt;           /* ignored with times. Default: 1. */
    size_t substeps;     /* steps from one position to the next, at least 1. Default: 1. */
} nrg_floater_spec;

/* Returns a spec with one substep per position, and positions at the times 0, 1, 2 and so on.
 *
 * Parameters:
 * - dtype, positions, dim, h, vjp, user: the fields of the same names. */
static inline nrg_floater_spec nrg_floater_spec_init(nrg_dtype dtype, size_t positions, size_t dim, nrg_floater_h h,
                                                     nrg_floater_vjp vjp, void *user)
{
    nrg_floater_spec spec;
    spec.size = sizeof spec;
    spec.positions = positions;
    spec.dim = dim;
    spec.dtype = dtype;
    spec.p0_dtype = NRG_DTYPE_SAME;
    spec.h = h;
    spec.vjp = vjp;
    spec.user = user;
    spec.times = NULL;
    spec.t0 = 0;
    spec.dt = 1;
    spec.substeps = 1;
    return spec;
}

/* Operands of nrg_floater_forward. Make one with nrg_floater_args_init, then change fields. p needs only the alignment of its
 * element, and arrays of doubles that of a double.
 *
 * Aliasing: no output shares a byte with another operand, nor does the workspace. */
typedef struct nrg_floater_args {
    size_t size;           /* sizeof(nrg_floater_args) */
    const void *p0;        /* [dim] input: p(t_0); NULL with state0 */
    const double *state0;  /* [dim] input: the same in double, from states of another call; or NULL */
    void *p;               /* [n, dim] output: p_1 … p_n */
    size_t p_stride;       /* bytes from one position to the next; 0 is dense */
    double *states;        /* [n, dim] output: the same in double, for the backward pass or another call; or NULL */
    void *workspace;       /* aligned to 8 bytes; no data stays in it after the call */
    size_t workspace_size; /* bytes; nrg_floater_workspace computes the minimum */
} nrg_floater_args;

/* Returns args that start at p0, with a dense p. Set the workspace.
 *
 * Parameters:
 * - p0, p: the fields of the same names. */
static inline nrg_floater_args nrg_floater_args_init(const void *p0, void *p)
{
    nrg_floater_args args;
    args.size = sizeof args;
    args.p0 = p0;
    args.state0 = NULL;
    args.p = p;
    args.p_stride = 0;
    args.states = NULL;
    args.workspace = NULL;
    args.workspace_size = 0;
    return args;
}

/* Computes the bytes of the workspace: 24 · dim.
 *
 * Parameters:
 * - spec: the call reads only dim.
 * - bytes: output.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec or bytes is NULL.
 * - NRG_ERR_STRUCT_SIZE: spec->size is wrong, or a field of a later version is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: dim is 0.
 * - NRG_ERR_OVERFLOW: the workspace has more bytes than a size_t can count. */
NRG_NODISCARD NRG_API nrg_status nrg_floater_workspace(const nrg_floater_spec *spec, size_t *bytes);

/* Computes p from p0 or state0.
 *
 * It calls h 4 · substeps · n times: for all positions, their substeps and the four stages of each, all in ascending order. It
 * uses a few hundred bytes of stack, in addition to those of h.
 *
 * Parameters:
 * - spec: the computation.
 * - args: operands, described at their fields. Unless n is 0, p, workspace and one of p0 and state0 must be set.
 * - ith, nth: the share. Share 0 does all work.
 *
 * Aliasing: no output shares a byte with another operand, nor does the workspace.
 *
 * Returns NRG_OK. On error, returns one of these, writes nothing and does not call h:
 * - NRG_ERR_NULL: spec or args is NULL. Or n is not 0, and spec->h, p, workspace, or both of p0 and state0 are NULL.
 * - NRG_ERR_STRUCT_SIZE: the size of a struct is wrong, or a field of a later version is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: dim is 0.
 * - NRG_ERR_CONSTANT: substeps is 0.
 * - NRG_ERR_COMBINATION: p0 and state0 are both set. Or times is set, and t0 is not 0.
 * - NRG_ERR_POSITION: a time, or the difference of two adjacent times, is infinite or NaN.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_STRIDE: a stride is shorter than a vector.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERLAP: an output or the workspace overlaps another operand.
 * - NRG_ERR_ENUM: a dtype has an unknown value.
 * - NRG_ERR_DTYPE: p0_dtype is neither dtype nor f32.
 * - NRG_ERR_WORKSPACE: workspace_size is smaller than needed.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_floater_forward(const nrg_floater_spec *spec, const nrg_floater_args *args, int ith,
                                                     int nth);

/* Validates the arguments of nrg_floater_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_floater_forward_check(const nrg_floater_spec *spec, const nrg_floater_args *args);

/* Operands of nrg_floater_backward. Make one with nrg_floater_backward_args_init, then change fields.
 *
 * Aliasing: d_state0 may be d_state_n. Otherwise no output shares a byte with another operand, nor does the workspace.
 *
 *               states d_state_n
 *   d_state0    no     yes */
typedef struct nrg_floater_backward_args {
    size_t size;             /* sizeof(nrg_floater_backward_args) */
    const void *p0;          /* [dim] input, as in the forward pass */
    const double *state0;    /* [dim] input, as in the forward pass */
    const double *states;    /* [n, dim] input, as the forward pass stored them; NULL: computed again, into the workspace */
    const void *dp;          /* [n, dim] input: gradient of p_1 … p_n */
    size_t dp_stride;        /* bytes from one position to the next; 0 is dense */
    const double *d_state_n; /* [dim] input: gradient of the last state from later positions, or NULL */
    float *d_p0;             /* [dim] output: gradient of p(t_0), or NULL */
    double *d_state0;        /* [dim] output: the same in double, or NULL */
    void *workspace;         /* aligned to 8 bytes; no data stays in it after the call */
    size_t workspace_size;   /* bytes; nrg_floater_backward_workspace computes the minimum */
} nrg_floater_backward_args;

/* Returns args for d_p0, with a dense dp and without states. Set the workspace.
 *
 * Parameters:
 * - p0, dp, d_p0: the fields of the same names. */
static inline nrg_floater_backward_args nrg_floater_backward_args_init(const void *p0, const void *dp, float *d_p0)
{
    nrg_floater_backward_args args;
    args.size = sizeof args;
    args.p0 = p0;
    args.state0 = args.states = NULL;
    args.dp = dp;
    args.dp_stride = 0;
    args.d_state_n = NULL;
    args.d_p0 = d_p0;
    args.d_state0 = NULL;
    args.workspace = NULL;
    args.workspace_size = 0;
    return args;
}

/* Computes the bytes of the workspace: (32 + 16 · substeps) · dim, and 8 · n · dim more without states.
 *
 * Parameters:
 * - spec: the call reads only dim, positions and substeps.
 * - args: the call reads only states.
 * - bytes: output.
 *
 * Returns the statuses of nrg_floater_workspace. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: also if args is NULL.
 * - NRG_ERR_CONSTANT: substeps is 0. */
NRG_NODISCARD NRG_API nrg_status nrg_floater_backward_workspace(const nrg_floater_spec *spec,
                                                                const nrg_floater_backward_args *args, size_t *bytes);

/* Computes the gradient with respect to p(t_0) and, through spec->vjp, to the parameters of h. It is the gradient of the function
 * whose gradients at the positions are dp and d_state_n.
 *
 * The calls, in this order:
 * - Without states: h as in the forward pass, up to position n - 1.
 * - For each position, from the last to the first, for the interval before it:
 *   - h for the substeps in ascending order, stages 1 to 4. Stage 4 of the last substep is left out, because no result depends on
 *     it.
 *   - vjp for the substeps in descending order, stages 4 to 1.
 *
 * If n is 0, the gradient is d_state_n, or 0.
 *
 * Parameters:
 * - spec: the computation. Unless n is 0, h and vjp must not be NULL.
 * - args: operands, described at their fields. Unless n is 0, dp, workspace and one of p0 and state0 must be set.
 * - ith, nth: the share. Share 0 does all work.
 *
 * Aliasing: as the table at nrg_floater_backward_args allows.
 *
 * Returns the statuses of nrg_floater_forward. On error, writes nothing and calls neither h nor vjp. Differences:
 * - NRG_ERR_NULL: spec or args is NULL. Or n is not 0, and spec->h, spec->vjp, dp, workspace, or both of p0 and state0 are NULL.
 * - NRG_ERR_OVERLAP: an output or the workspace overlaps another operand in a way that the table does not allow. */
NRG_NODISCARD NRG_API nrg_status nrg_floater_backward(const nrg_floater_spec *spec, const nrg_floater_backward_args *args,
                                                      int ith, int nth);

/* Validates the arguments of nrg_floater_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_floater_backward_check(const nrg_floater_spec *spec, const nrg_floater_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
