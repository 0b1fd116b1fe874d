/* What the tests of nrg/floater.h share: calls with a workspace, and an h that is not linear and depends on time.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_RECURRENT_FLOATER_DYNAMICS_H
#define NRG_TESTS_RECURRENT_FLOATER_DYNAMICS_H

#include <stdlib.h>
#include <string.h>

#include "../harness/support.h"

static inline void check(nrg_status status)
{
    if (status != NRG_OK)
        ck_abort_msg("%s", nrg_status_string(status));
}

static inline void forward(const nrg_floater_spec *spec, const void *p0, void *p, double *states)
{
    size_t bytes;
    check(nrg_floater_workspace(spec, &bytes));
    nrg_floater_args args = nrg_floater_args_init(p0, p);
    args.workspace = malloc(bytes);
    args.workspace_size = bytes;
    args.states = states;
    check(nrg_floater_forward(spec, &args, 0, 1));
    free(args.workspace);
}

static inline void backward(const nrg_floater_spec *spec, const void *p0, const double *states, const void *dp, float *d_p0)
{
    size_t bytes;
    nrg_floater_backward_args args = nrg_floater_backward_args_init(p0, dp, d_p0);
    args.states = states;
    check(nrg_floater_backward_workspace(spec, &args, &bytes));
    args.workspace = malloc(bytes);
    args.workspace_size = bytes;
    check(nrg_floater_backward(spec, &args, 0, 1));
    free(args.workspace);
}

/* h_i = a_i·p_(i+1)·(1 - p_i) + t·b_i */

enum { BENT_MOST = 64 };

typedef struct bent {
    float a[BENT_MOST], b[BENT_MOST];
    double da[BENT_MOST], db[BENT_MOST];
    unsigned long calls;
} bent;

static inline void bent_h(void *user, double t, size_t dim, const float *p, float *dp_dt)
{
    bent *x = user;
    x->calls++;
    for (size_t i = 0; i < dim; i++)
        dp_dt[i] = x->a[i] * p[(i + 1) % dim] * (1 - p[i]) + (float)t * x->b[i];
}

static inline void bent_vjp(void *user, double t, size_t dim, const float *p, const float *v, float *vt_dh_dp)
{
    bent *x = user;
    memset(vt_dh_dp, 0, dim * sizeof *vt_dh_dp);
    for (size_t i = 0; i < dim; i++) {
        const size_t next = (i + 1) % dim;
        vt_dh_dp[next] += v[i] * x->a[i] * (1 - p[i]);
        vt_dh_dp[i] -= v[i] * x->a[i] * p[next];
        x->da[i] += (double)v[i] * (double)p[next] * (1 - (double)p[i]);
        x->db[i] += (double)v[i] * t;
    }
}

static inline bent make_bent(uint64_t seed)
{
    bent x;
    uint64_t state = seed;
    memset(&x, 0, sizeof x);
    for (size_t i = 0; i < BENT_MOST; i++) {
        x.a[i] = (float)test_draw(&state, 2001) / 2000 - 0.5f;
        x.b[i] = (float)test_draw(&state, 2001) / 4000 - 0.25f;
    }
    return x;
}

static inline void fill(float *to, size_t n, uint64_t seed)
{
    uint64_t state = seed;
    for (size_t i = 0; i < n; i++)
        to[i] = (float)test_draw(&state, 20001) / 10000 - 1;
}

#endif
