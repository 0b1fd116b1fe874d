/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "../../src/operands/floater.h"
#include "../../src/operands/recurrent.h"
#include "../harness/support.h"
#include "sound.h"

enum { N = 3, CHAINS = 2, DIM = 5 };

/* ---- the recurrence ---- */

enum { ARGS = NRG_RECURRENT_ARGS };

/* Two chains; one of 16 bits; chains side by side, of which p0 and dw are not asked for; no positions; no chains. */
enum { USUAL, HALVES, BESIDE, NO_POSITIONS, NO_CHAINS, RECURRENT_VARIANTS };

static size_t chains_of(int variant) { return variant == HALVES ? 1 : variant == NO_CHAINS ? 0 : CHAINS; }
static size_t positions_of(int variant) { return variant == NO_POSITIONS ? 0 : N; }

static uint32_t set_up_recurrent(void *const *part, int variant)
{
    nrg_recurrent_args *args = part[ARGS];
    *args = nrg_recurrent_args_init(NRG_F32, positions_of(variant), DIM, NULL, NULL, NULL);
    args->chains = chains_of(variant);
    if (variant == BESIDE) {
        args->p_stride[0] = CHAINS * DIM * sizeof(float);
        args->p_stride[1] = DIM * sizeof(float);
    }
    if (variant == HALVES) {
        args->dtype = NRG_F16;
        args->w_dtype = NRG_F32;
        args->p0_dtype = NRG_F16;
    }
    return variant == BESIDE ? 0 : NRG_BIT(NRG_RECURRENT_B);
}

static uint32_t set_up_recurrent_backward(void *const *part, int variant)
{
    nrg_recurrent_backward_args *args = part[ARGS];
    *args = nrg_recurrent_backward_args_init(NRG_F32, positions_of(variant), DIM, NULL, NULL, NULL, NULL);
    args->chains = chains_of(variant);
    if (variant == BESIDE) {
        args->p_stride[0] = args->dp_stride[0] = CHAINS * DIM * sizeof(float);
        args->p_stride[1] = args->dp_stride[1] = DIM * sizeof(float);
    }
    if (variant == HALVES) {
        args->dtype = NRG_BF16;
        args->w_dtype = NRG_BF16;
        args->p0_dtype = NRG_F32;
    }
    return variant == BESIDE
               ? NRG_BIT(NRG_RECURRENT_BACKWARD_DB)
               : NRG_BIT(NRG_RECURRENT_BACKWARD_D_P0) | NRG_BIT(NRG_RECURRENT_BACKWARD_DW) | NRG_BIT(NRG_RECURRENT_BACKWARD_DB);
}

/* ---- the path of a dynamical system ---- */

enum { SPEC = NRG_FLOATER_SPEC, PATH = NRG_FLOATER_ARGS };

/* The caller's functions, which a refused call does not call. */
static int calls_made;

static void decay(void *user, double t, size_t dim, const float *p, float *dp_dt)
{
    (void)user;
    (void)t;
    calls_made++;
    for (size_t i = 0; i < dim; i++)
        dp_dt[i] = -p[i];
}

static void decay_vjp(void *user, double t, size_t dim, const float *p, const float *v, float *vt_dh_dp)
{
    (void)user;
    (void)t;
    (void)p;
    calls_made++;
    for (size_t i = 0; i < dim; i++)
        vt_dh_dp[i] = -v[i];
}

static void quiet(nrg_status status)
{
    ck_assert_msg(status == NRG_OK || !calls_made, "a refused call called something");
    calls_made = 0;
}

/* Even times; times, and 16 bits; from a state; from nothing to nowhere. */
enum { EVEN, TIMES, FROM_STATE, NOWHERE, FLOATER_VARIANTS };

static void set_spec(void *const *part, int variant)
{
    nrg_floater_spec *spec = part[SPEC];
    calls_made = 0; /* of another version, which has the same functions (wild_module.h) */
    *spec = nrg_floater_spec_init(NRG_F32, N, DIM, decay, decay_vjp, NULL);
    if (variant == TIMES) {
        spec->dtype = NRG_BF16;
        spec->p0_dtype = NRG_F32;
        spec->substeps = 2;
    }
    if (variant == NOWHERE)
        *spec = nrg_floater_spec_init(NRG_F32, 0, DIM, NULL, NULL, NULL);
}

static uint32_t set_up_floater(void *const *part, int variant)
{
    set_spec(part, variant);
    *(nrg_floater_args *)part[PATH] = nrg_floater_args_init(NULL, NULL);
    switch (variant) {
    case EVEN:
        return NRG_BIT(NRG_FLOATER_P0);
    case TIMES:
        return NRG_BIT(NRG_FLOATER_P0) | NRG_BIT(NRG_FLOATER_TIMES) | NRG_BIT(NRG_FLOATER_STATES);
    case FROM_STATE:
        return NRG_BIT(NRG_FLOATER_STATE0) | NRG_BIT(NRG_FLOATER_STATES);
    default:
        return 0;
    }
}

static uint32_t set_up_floater_backward(void *const *part, int variant)
{
    set_spec(part, variant);
    *(nrg_floater_backward_args *)part[PATH] = nrg_floater_backward_args_init(NULL, NULL, NULL);
    const uint32_t starts = NRG_BIT(NRG_FLOATER_BACKWARD_D_P0) | NRG_BIT(NRG_FLOATER_BACKWARD_D_STATE0);
    switch (variant) {
    case EVEN:
        return NRG_BIT(NRG_FLOATER_BACKWARD_P0) | NRG_BIT(NRG_FLOATER_BACKWARD_D_P0);
    case TIMES:
        return starts | NRG_BIT(NRG_FLOATER_BACKWARD_P0) | NRG_BIT(NRG_FLOATER_BACKWARD_TIMES) |
               NRG_BIT(NRG_FLOATER_BACKWARD_STATES) | NRG_BIT(NRG_FLOATER_BACKWARD_D_STATE_N);
    case FROM_STATE:
        return NRG_BIT(NRG_FLOATER_BACKWARD_STATE0) | NRG_BIT(NRG_FLOATER_BACKWARD_STATES) |
               NRG_BIT(NRG_FLOATER_BACKWARD_D_STATE0);
    default:
        return starts | NRG_BIT(NRG_FLOATER_BACKWARD_D_STATE_N);
    }
}

/* Times that are no numbers; and numbers too far from each other. */
static nrg_status spoil_times(void *const *part, int n)
{
    static const double wrong[] = {NAN, INFINITY, -INFINITY};
    double *times = (double *)(uintptr_t)((nrg_floater_spec *)part[SPEC])->times;
    if (!times || n > 3 * (N + 1))
        return NRG_OK;
    if (n < 3 * (N + 1)) {
        times[n / 3] = wrong[n % 3];
    } else {
        times[0] = -1.5e308;
        times[1] = 1.5e308;
    }
    return NRG_ERR_POSITION;
}

#define NOT_LOOKED_AT(variant) WRONG_VARIANT(variant), WRONG_F64(SPEC, nrg_floater_spec, dt, NAN, NRG_OK)
static const sound_wrong wrong_floater[] = {WRONG_F64(SPEC, nrg_floater_spec, t0, NAN, NRG_ERR_POSITION),
                                            WRONG_F64(SPEC, nrg_floater_spec, t0, INFINITY, NRG_ERR_POSITION),
                                            WRONG_F64(SPEC, nrg_floater_spec, dt, -INFINITY, NRG_ERR_POSITION),
                                            WRONG_F64(SPEC, nrg_floater_spec, dt, NAN, NRG_ERR_POSITION),
                                            WRONG_F64(SPEC, nrg_floater_spec, dt, 1e308, NRG_ERR_POSITION),
                                            NOT_LOOKED_AT(TIMES),
                                            NOT_LOOKED_AT(NOWHERE),
                                            WRONG_F64(SPEC, nrg_floater_spec, t0, NAN, NRG_OK)};

static const sound_call calls[] = {
    {&invoke_recurrent_forward, RECURRENT_VARIANTS, .set_up = set_up_recurrent},
    {&invoke_recurrent_backward, RECURRENT_VARIANTS, .set_up = set_up_recurrent_backward,
     .own = NRG_BIT(NRG_RECURRENT_BACKWARD_WORKSPACE)},
    {&invoke_recurrent_backward_reduce, RECURRENT_VARIANTS, set_up_recurrent_backward,
     .spared = NRG_BIT(NRG_RECURRENT_BACKWARD_D_P0) | NRG_BIT(NRG_RECURRENT_BACKWARD_WORKSPACE),
     .own = NRG_BIT(NRG_RECURRENT_BACKWARD_WORKSPACE)},
    {&invoke_recurrent_backward_workspace, RECURRENT_VARIANTS, .set_up = set_up_recurrent_backward},
    {&invoke_floater_forward, FLOATER_VARIANTS, set_up_floater, WRONG(wrong_floater), .spoil = spoil_times, .after = quiet,
     NO_KERNEL, .repeats = 1},
    {&invoke_floater_workspace, FLOATER_VARIANTS, .set_up = set_up_floater},
    {&invoke_floater_backward, FLOATER_VARIANTS, set_up_floater_backward, WRONG(wrong_floater), .spoil = spoil_times,
     .after = quiet, NO_KERNEL, .repeats = 1},
    {&invoke_floater_backward_workspace, FLOATER_VARIANTS, .set_up = set_up_floater_backward},
};

const sound_family sound_recurrent = {"recurrent", calls, NRG_COUNT(calls)};
