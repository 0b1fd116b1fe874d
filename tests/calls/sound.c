/* SPDX-License-Identifier: MIT */
#include "sound.h"

#include "../../src/operands/rope.h"
#include "../harness/support.h"

extern const sound_family sound_activation, sound_score_bias, sound_channel_norm, sound_embed, sound_norm, sound_norm_sandwich,
    sound_quantize, sound_recurrent, sound_relative, sound_rope, sound_softmax;

const sound_family *const sound_families[SOUND_FAMILIES] = {
    &sound_activation, &sound_score_bias, &sound_channel_norm, &sound_embed, &sound_norm,   &sound_norm_sandwich,
    &sound_quantize,   &sound_recurrent,  &sound_relative,     &sound_rope,  &sound_softmax};

/* The bytes' place has to be there, and is left alone where the function refuses. */
static nrg_status run_workspace(const invoke_function *f, void *const *part)
{
    enum { NOT_SAID = 12345 }; /* no answer is odd */
    size_t bytes = NOT_SAID;
    ck_assert_int_eq(f->ask_bytes(part, NULL), NRG_ERR_NULL);
    const nrg_status status = f->ask_bytes(part, &bytes);
    ck_assert((status == NRG_OK) == (bytes != NOT_SAID));
    return status;
}

static nrg_status bytes_of_shares(const sound_call *s, void *const *part, int nth, size_t *bytes)
{
    const nrg_rope_shares shares = {.nth = nth};
    void *const asked[] = {part[0], part[1], own_memory(&shares)};
    return s->workspace->ask_bytes(asked, bytes);
}

/* A share of a call whose workspace is for one. How large a workspace is depends on nth, so that more shares may find that first;
 * then one share is asked what is wrong. */
static nrg_status run_share(const sound_call *s, void *const *part, int ith, int nth)
{
    const nrg_status status = s->function->run(part, ith, nth);
    size_t one = 0, all = 0;
    if (nth <= 1 || (status != NRG_ERR_WORKSPACE && status != NRG_ERR_OVERFLOW && status != NRG_ERR_THREAD))
        return status;
    const nrg_status of_one = bytes_of_shares(s, part, 1, &one), of_all = bytes_of_shares(s, part, nth, &all);
    if (of_one != NRG_OK || status == NRG_ERR_THREAD)
        return of_one != NRG_OK ? of_one : status;
    ck_assert(of_all == NRG_ERR_OVERFLOW || (of_all == NRG_OK && all > one));
    return s->function->run(part, 0, 1);
}

static nrg_status make(const sound_call *s, void *const *part, int asks, int ith, int nth)
{
    const invoke_function *f = s->function;
    nrg_status status = s->bind ? s->bind(part) : NRG_OK;
    if (status != NRG_OK)
        return status;
    status = asks           ? f->ask(part)
             : f->ask_bytes ? run_workspace(f, part)
             : s->workspace ? run_share(s, part, ith, nth)
                            : f->run(part, ith, nth);
    if (s->after)
        s->after(status);
    return status;
}

nrg_status sound_run(const sound_call *s, void *const *part, int ith, int nth) { return make(s, part, 0, ith, nth); }
nrg_status sound_ask(const sound_call *s, void *const *part) { return make(s, part, 1, 0, 1); }
