/* nrg/floater.h: positional encodings as the path of a dynamical system, with dynamics of the caller's.
 *
 *     p(t_(k+1)) = p(t_k) + ∫ h(τ, p(τ)) dτ  from t_k to t_(k+1),   k = 0 … n-1
 *
 * from a given p(t_0). The encoding of position k is p_k = p(t_k), k = 1 … n; positions may lie at any times. h is a function of
 * the caller's, such as a small network that is learned; this is what goes on between its calls, forward and backward. FLOATER:
 * Liu, Yu, Dhillon, Hsieh, "Learning to Encode Position for Transformer with Continuous Dynamical Model", arXiv:2003.09229.
 *
 * The integral is taken by the classical fourth-order Runge-Kutta method, in `substeps` equal steps a position. For a step H from
 * the state x at time t:
 *
 *     k1 = h(t, x),  k2 = h(t + H/2, x + H/2·k1),  k3 = h(t + H/2, x + H/2·k2),  k4 = h(t + H, x + H·k3)
 *     x  ← x + H/6·(k1 + 2·k2 + 2·k3 + k4)
 *
 * For an h that is smooth enough, twice the substeps leave a sixteenth of the error. (Kutta, Zeitschrift für Mathematik und
 * Physik 46, 1901.)
 *
 * Gradients are those of these steps, reversed one by one, and not those of the integral they stand for: they are exact, whatever
 * the number of substeps, and what a step of gradient descent gets is the slope of the numbers the model sees.
 *
 * What holds:
 *
 * - The state is kept in double between the calls of h, which sees it rounded to f32; p is that f32, rounded once more to dtype
 *   where that has 16 bits. There are no kernels in this: the same plain arithmetic in double runs everywhere, and the bits are
 *   the same on every path and machine where those of h are.
 * - With the same calls of h: state and gradients are within a few ulp of double, and every number handed to or taken from the
 *   caller's functions is an f32. So the error is that of h, in f32, and of the method.
 * - h has no way to fail. A NaN or an infinity that it returns goes into the state, and from there into every later position;
 *   backward, into every earlier one.
 * - The state at a position, as it is kept, is an output (states), and can be the start of another call (state0); backward, the
 *   gradient with regard to it likewise (d_state0, d_state_n). So positions can be done in several calls with the bits of one.
 * - Work that depends on work before it: share 0 of nth does all of it, and the others check their arguments and return at once.
 *   h may use what threads it likes.
 *
 * docs/ops/recurrent.md has the definition to the last bit.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_FLOATER_H
#define NRG_FLOATER_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* dp_dt = h(t, p): dim floats each. Both arrays lie in the workspace, and dp_dt does not overlap p; all of dp_dt has to be
 * written. The result may depend on t and p alone, since the backward pass calls h again for the same values. */
typedef void (*nrg_floater_h)(void *user, double t, size_t dim, const float *p, float *dp_dt);

/* The vector-Jacobian product: vt_dh_dp = vᵀ ∂h/∂p at (t, p), dim floats, all of which have to be written. And the place to add
 * vᵀ ∂h/∂θ to the gradients of whatever parameters θ h has, which are kept on the caller's side: after nrg_floater_backward their
 * sum over its calls is the gradient. v holds the weight of the step already. The arrays do not overlap. */
typedef void (*nrg_floater_vjp)(void *user, double t, size_t dim, const float *p, const float *v, float *vt_dh_dp);

/* The computation. Make one with nrg_floater_spec_init, then change fields. */
typedef struct nrg_floater_spec {
    size_t size;         /* sizeof(nrg_floater_spec) */
    size_t dim;          /* elements of a vector, at least 1 */
    size_t positions;    /* n; may be 0 */
    nrg_dtype dtype;     /* of p and dp */
    nrg_dtype p0_dtype;  /* of p0: SAME, dtype, or NRG_F32 */
    nrg_floater_h h;     /* not NULL where n > 0 */
    nrg_floater_vjp vjp; /* not NULL in the backward pass where n > 0 */
    void *user;          /* the first argument of both */
    const double *times; /* [n + 1] t_0 … t_n, in any order; NULL: t_k = t0 + k·dt */
    double t0;           /* ignored with times */
    double dt;           /* likewise. Default: 1. */
    size_t substeps;     /* steps from one position to the next, at least 1. Default: 1. */
} nrg_floater_spec;

/* One substep, positions at 0, 1, 2 and so on. */
static inline nrg_floater_spec nrg_floater_spec_init(nrg_dtype dtype, size_t dim, size_t positions, nrg_floater_h h,
                                                     nrg_floater_vjp vjp, void *user)
{
    nrg_floater_spec spec;
    spec.size = sizeof spec;
    spec.dim = dim;
    spec.positions = positions;
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

/* Where the data is. p needs the alignment of its element only, arrays of doubles that of a double. No output, nor the workspace,
 * shares a byte with another operand. */
typedef struct nrg_floater_args {
    size_t size;           /* sizeof(nrg_floater_args) */
    const void *p0;        /* [dim] p(t_0); NULL where state0 is given */
    const double *state0;  /* [dim] the same as states of another call had it, or NULL */
    void *p;               /* [n, dim] output: p_1 … p_n */
    size_t p_stride;       /* bytes; 0: dense */
    double *states;        /* [n, dim] output: the same in double, for the backward pass or another call; or NULL */
    void *workspace;       /* multiple of 8 bytes; free for others after the call */
    size_t workspace_size; /* bytes, at least what nrg_floater_workspace returns */
} nrg_floater_args;

static inline nrg_floater_args nrg_floater_args_init(const void *p0, void *p, void *workspace, size_t workspace_size)
{
    nrg_floater_args args;
    args.size = sizeof args;
    args.p0 = p0;
    args.state0 = NULL;
    args.p = p;
    args.p_stride = 0;
    args.states = NULL;
    args.workspace = workspace;
    args.workspace_size = workspace_size;
    return args;
}

/* Bytes of workspace: 24 · dim. Reads only dim of spec. Returns NRG_OK, or writes nothing: NRG_ERR_NULL,
 * NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM, NRG_ERR_OVERFLOW. */
NRG_NODISCARD NRG_API nrg_status nrg_floater_workspace(const nrg_floater_spec *spec, size_t *bytes);

/* p from p0 or state0. Calls h 4 · substeps · n times: positions, their substeps and the four stages of each, all in ascending
 * order. Besides what h needs, a few hundred bytes of stack.
 *
 * Returns NRG_OK, or says what is wrong, writes nothing and calls nothing:
 *   NRG_ERR_NULL         spec or args; (with n > 0) spec.h, p, workspace, or both of p0 and state0
 *   NRG_ERR_STRUCT_SIZE  a size smaller than this struct's, larger and not zero beyond it, or over 4096
 *   NRG_ERR_DIM          dim is 0
 *   NRG_ERR_CONSTANT     substeps is 0
 *   NRG_ERR_COMBINATION  both of p0 and state0
 *   NRG_ERR_POSITION     a time, or what lies between two of them, that is infinite or NaN
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_STRIDE       a stride shorter than a vector
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERLAP      an output, or the workspace, overlaps another operand
 *   NRG_ERR_ENUM         a dtype unknown
 *   NRG_ERR_DTYPE        p0_dtype neither dtype nor f32
 *   NRG_ERR_WORKSPACE    workspace_size is smaller than needed
 *   NRG_ERR_THREAD       not 0 <= ith < nth */
NRG_NODISCARD NRG_API nrg_status nrg_floater_forward(const nrg_floater_spec *spec, const nrg_floater_args *args, int ith,
                                                     int nth);

/* Validates the arguments of nrg_floater_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_floater_forward_check(const nrg_floater_spec *spec, const nrg_floater_args *args);

/* Aliasing: d_state0 may be d_state_n:
 *
 *               states d_state_n
 *   d_state0    no     yes
 *
 * Otherwise no output, nor the workspace, shares a byte with another operand. */
typedef struct nrg_floater_backward_args {
    size_t size;             /* sizeof(nrg_floater_backward_args) */
    const void *p0;          /* [dim] as in the forward pass */
    const double *state0;    /* [dim] as in the forward pass */
    const double *states;    /* [n, dim] as the forward pass stored them; NULL: they are computed again, into the workspace */
    const void *dp;          /* [n, dim] gradient that arrives at p_1 … p_n */
    size_t dp_stride;        /* bytes; 0: dense */
    const double *d_state_n; /* [dim] gradient that arrives at the last state from later positions, or NULL */
    float *d_p0;             /* [dim] output: gradient of p(t_0), or NULL */
    double *d_state0;        /* [dim] output: the same in double, or NULL */
    void *workspace;         /* multiple of 8 bytes; free for others after the call */
    size_t workspace_size;   /* bytes, at least what nrg_floater_backward_workspace returns */
} nrg_floater_backward_args;

static inline nrg_floater_backward_args nrg_floater_backward_args_init(const void *p0, const void *dp, float *d_p0,
                                                                       void *workspace, size_t workspace_size)
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
    args.workspace = workspace;
    args.workspace_size = workspace_size;
    return args;
}

/* Bytes of workspace: (32 + 16 · substeps) · dim, and 8 · n · dim more without states. Reads only dim, positions and
 * substeps of spec and states of args. Returns the statuses of nrg_floater_workspace, and NRG_ERR_CONSTANT if substeps is 0. */
NRG_NODISCARD NRG_API nrg_status nrg_floater_backward_workspace(const nrg_floater_spec *spec,
                                                                const nrg_floater_backward_args *args, size_t *bytes);

/* The gradient of what dp and d_state_n are gradients of, with regard to p(t_0) and, through spec.vjp, to the parameters of h.
 *
 * The calls, in this order:
 *   - without states: h as in the forward pass, up to position n - 1;
 *   - for each position, the last one first, by way of its interval:
 *       h for the substeps in ascending order, stages 1 to 4, but for stage 4 of the last substep, which nothing depends on;
 *       vjp for the substeps in descending order, stages 4 to 1.
 *
 * n = 0: d_state_n, or 0, is the gradient. Returns the statuses of nrg_floater_forward, and
 *   NRG_ERR_NULL         spec or args; (with n > 0) spec.h, spec.vjp, dp, workspace, or both of p0 and state0 */
NRG_NODISCARD NRG_API nrg_status nrg_floater_backward(const nrg_floater_spec *spec, const nrg_floater_backward_args *args,
                                                      int ith, int nth);

/* Validates the arguments of nrg_floater_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_floater_backward_check(const nrg_floater_spec *spec, const nrg_floater_backward_args *args);

#ifdef __cplusplus
}
#endif
#endif
