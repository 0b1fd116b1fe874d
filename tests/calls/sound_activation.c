/* SPDX-License-Identifier: MIT */
#include "../../src/operands/activation.h"
#include "sound.h"

enum { ARGS, N = 21 };

static uint32_t set_up(void *const *part, int variant)
{
    nrg_activation_args *args = part[ARGS];
    args->dtype = variant ? NRG_BF16 : NRG_F32;
    args->activation = variant ? NRG_ACT_GELU : NRG_ACT_SILU;
    args->n = N;
    return 0;
}

static nrg_status run_forward(void *const *part, int ith, int nth)
{
    const nrg_activation_args *a = part[ARGS];
    return nrg_activation_forward(a->activation, a->dtype, a->n, a->x, a->out, ith, nth);
}

static nrg_status ask_forward(void *const *part)
{
    const nrg_activation_args *a = part[ARGS];
    return nrg_activation_forward_check(a->activation, a->dtype, a->n, a->x, a->out);
}

static nrg_status run_backward(void *const *part, int ith, int nth)
{
    const nrg_activation_args *a = part[ARGS];
    return nrg_activation_backward(a->activation, a->dtype, a->n, a->x, a->d_o, a->out, ith, nth);
}

static nrg_status ask_backward(void *const *part)
{
    const nrg_activation_args *a = part[ARGS];
    return nrg_activation_backward_check(a->activation, a->dtype, a->n, a->x, a->d_o, a->out);
}

static const sound_size sizes[] = {{ARGS, NRG_AT(nrg_activation_args, n)}};

static const sound_call calls[] = {
    {&nrg_call_activation_forward, "activation.h", "nrg_activation_forward", 1, 2, set_up, NULL, run_forward, ask_forward,
     .sizes = sizes, .size_count = NRG_COUNT(sizes)},
    {&nrg_call_activation_backward, "activation.h", "nrg_activation_backward", 1, 2, set_up, NULL, run_backward, ask_backward,
     .sizes = sizes, .size_count = NRG_COUNT(sizes)},
};

const sound_family sound_activation = {"activation", calls, NRG_COUNT(calls)};
