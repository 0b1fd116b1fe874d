/* SPDX-License-Identifier: MIT */
#include "channel_norm_backward_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel_norm_sweep.h"

enum { SUBSETS = 1 << CHANNEL_BACKWARD_OUTPUTS, BLOCKS_MET = 3 };

/* Kind × layout × source; RUNNING is for sets that are channels only, and FOLDED has no backward pass. */
enum { SETS = CHANNEL_KINDS * CHANNEL_LAYOUTS * CHANNEL_SOURCES };

typedef struct account {
    unsigned sets[SETS], activation[ACTIVATIONS * CHANNEL_LAYOUTS];
    unsigned shares[CHANNEL_SHARES], shares_reduce[CHANNEL_SHARES], store[NRG_STORE_STREAM + 1], side[2], interleaved[2], gaps[2],
        pads[2], read_only[2];
    unsigned subset[SUBSETS];
    unsigned over[2][CBOPERANDS];
    unsigned saved[2], phases[CHANNEL_LAYOUTS * 2], unread[2], accumulate[2], blocks[BLOCKS_MET];
    unsigned centred[2], w[2], b[2], y[2], w_f32[2], no_samples[2];
} account;

static account *accounts;

void channel_backward_sweep_start(void)
{
    accounts = test_shared(NRG_ISA_COUNT * sizeof *accounts);
    test_note_crashes();
}

/* Blocks of one sample; of several; the last of fewer. */
static size_t block_class(size_t n) { return n <= 64 ? 0 : n % ((n + 63) / 64) == 0 ? 1 : 2; }

static void enter(nrg_isa isa, const channel_backward_problem *p, const channel_backward_layout *l)
{
    const channel_problem *f = &p->forward;
    account *a = &accounts[isa];
    const size_t kind = (size_t)f->kind * CHANNEL_LAYOUTS + (size_t)f->spec.layout;
    size_t subset = 0;
    a->no_samples[f->n == 0]++;
    if (!f->n)
        return;
    a->sets[kind * CHANNEL_SOURCES + (size_t)f->spec.statistics]++;
    a->activation[(size_t)f->spec.activation * CHANNEL_LAYOUTS + (size_t)f->spec.layout]++;
    a->shares[channel_share_class(l->nth, channel_backward_work(p))]++;
    if (f->kind != CHANNEL_BATCH)
        a->shares_reduce[channel_share_class(l->nth_reduce, f->spec.channels)]++;
    a->store[l->store]++;
    a->side[l->place[CBOP_D_O].side]++;
    a->interleaved[l->interleaved]++;
    a->gaps[l->place[CBOP_D_O].gap % 4 != 0]++;
    a->pads[l->place[CBOP_D_O].pad % 4 != 0]++;
    a->read_only[l->read_only]++;
    for (int i = 0; i < CHANNEL_BACKWARD_OUTPUTS; i++)
        subset |= (size_t)l->want[i] << i;
    a->subset[subset]++;
    for (int i = 0; i < 2; i++)
        if (l->want[i])
            a->over[i][l->over[i]]++;
    if (f->spec.statistics == NRG_STATISTICS_COMPUTE)
        a->saved[l->saved || l->in_phases]++;
    if (f->kind == CHANNEL_BATCH)
        a->phases[l->in_phases * CHANNEL_LAYOUTS + (int)f->spec.layout]++;
    else if (l->want[CBOP_DW - CBOP_DX])
        a->blocks[block_class(f->n)]++;
    a->unread[l->unread]++;
    a->accumulate[p->accumulate]++;
    a->centred[f->spec.centred]++;
    a->w[f->w != NULL]++;
    a->b[f->b != NULL]++;
    a->y[f->y != NULL]++;
    a->w_f32[f->w && f->w_dtype != f->spec.dtype]++;
}

static void stop(nrg_isa isa, const channel_backward_problem *p, const channel_backward_layout *l, const char *failure)
{
    ck_abort_msg("%s: %s\n  case: %s\n  layout: %s", nrg_isa_name(isa), failure, p->text, channel_backward_layout_text(l));
}

static void run(nrg_isa isa, const channel_backward_problem *p, const channel_backward_layout *l, channel_backward_result *result)
{
    if (nrg_isa_set(isa) != NRG_OK)
        ck_abort_msg("%s cannot be set", nrg_isa_name(isa));
    snprintf(test_note, sizeof test_note, "%s: %s; %s", nrg_isa_name(isa), p->text, channel_backward_layout_text(l));
    const char *failure = channel_backward_run(&channel_backward_library, p, l, result);
    if (failure)
        stop(isa, p, l, failure);
    enter(isa, p, l);
}

void channel_backward_sweep(const channel_backward_problem *p, uint64_t seed, int layouts)
{
    channel_backward_result expected, got;
    channel_backward_result_make(&expected, p);
    channel_backward_result_make(&got, p);
    channel_backward_layout plain = channel_backward_layout_plain(p);
    run(NRG_ISA_SCALAR, p, &plain, &expected);

    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    for (size_t path = 0; path < count; path++)
        for (int i = 0; i < layouts; i++) {
            uint64_t state = test_mix(seed + 1000 * path + (uint64_t)i);
            /* scalar takes most of the time and has no vectors to get wrong: a few of its layouts are enough */
            if (paths[path] == NRG_ISA_SCALAR && (i > 0 || test_draw(&state, 3)))
                continue;
            channel_backward_layout l = channel_backward_layout_vary(p, state);
            run(paths[path], p, &l, &got);
            const char *failure = channel_backward_compare(p, &l, &expected, &got);
            if (failure)
                stop(paths[path], p, &l, failure);
        }
    channel_backward_result_free(&expected);
    channel_backward_result_free(&got);
}

static void sets_met(nrg_isa isa, const account *a)
{
    for (size_t kind = 0; kind < CHANNEL_KINDS; kind++)
        for (size_t layout = 0; layout < CHANNEL_LAYOUTS; layout++)
            for (size_t source = 0; source < NRG_STATISTICS_FOLDED; source++)
                if (!a->sets[(kind * CHANNEL_LAYOUTS + layout) * CHANNEL_SOURCES + source] &&
                    (source != NRG_STATISTICS_RUNNING || kind == CHANNEL_BATCH || kind == CHANNEL_INSTANCE))
                    ck_abort_msg("%s has met no kind %zu, layout %zu, source %zu in this sweep", nrg_isa_name(isa), kind, layout,
                                 source);
}

static void aliases_met(nrg_isa isa, const account *a)
{
    static const enum channel_backward_operand dx[] = {CBOP_D_O, CBOP_X, CBOP_Y, CBOP_DX}, dy[] = {CBOP_D_O, CBOP_Y, CBOP_DY};
    static const struct {
        const enum channel_backward_operand *over;
        size_t count;
    } lists[2] = {{dx, 4}, {dy, 3}};
    for (int i = 0; i < 2; i++)
        for (size_t n = 0; n < lists[i].count; n++)
            if (!a->over[i][lists[i].over[n]])
                ck_abort_msg("%s has met no %s==%s in this sweep", nrg_isa_name(isa),
                             channel_backward_operand_name((enum channel_backward_operand)(CBOP_DX + i)),
                             channel_backward_operand_name(lists[i].over[n]));
}

void channel_backward_sweep_check_coverage(void)
{
    if (getenv("CK_RUN_CASE") || getenv("CK_RUN_SUITE"))
        return; /* a part of the sweep was asked for */
    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    for (size_t i = 0; i < count; i++) {
        const account *a = &accounts[paths[i]];
        sets_met(paths[i], a);
        aliases_met(paths[i], a);
        channel_all_met(paths[i], "activation × layout", a->activation, ACTIVATIONS * CHANNEL_LAYOUTS);
        channel_all_met(paths[i], "number of shares", a->shares, CHANNEL_SHARES - 2);
        channel_all_met(paths[i], "more shares than sets", &a->shares[CHANNEL_SHARES - 1], 1);
        channel_all_met(paths[i], "number of shares of the reduction", a->shares_reduce, CHANNEL_SHARES - 2);
        channel_all_met(paths[i], "more shares than channels", &a->shares_reduce[CHANNEL_SHARES - 1], 1);
        channel_all_met(paths[i], "store", a->store, NRG_STORE_STREAM + 1);
        channel_all_met(paths[i], "side", a->side, 2);
        channel_all_met(paths[i], "interleaving", a->interleaved, 2);
        channel_all_met(paths[i], "gap", a->gaps, 2);
        channel_all_met(paths[i], "pad", a->pads, 2);
        channel_all_met(paths[i], "protection", a->read_only, 2);
        channel_all_met(paths[i], "output subset", a->subset, SUBSETS);
        channel_all_met(paths[i], "saved statistics", a->saved, 2);
        channel_all_met(paths[i], "phases × layout", a->phases, CHANNEL_LAYOUTS * 2);
        channel_all_met(paths[i], "operands that are not read", a->unread, 2);
        channel_all_met(paths[i], "accumulation", a->accumulate, 2);
        channel_all_met(paths[i], "number of blocks of samples", a->blocks, BLOCKS_MET);
        channel_all_met(paths[i], "centring", a->centred, 2);
        channel_all_met(paths[i], "weight", a->w, 2);
        channel_all_met(paths[i], "bias", a->b, 2);
        channel_all_met(paths[i], "residual", a->y, 2);
        channel_all_met(paths[i], "dtype of the weight", a->w_f32, 2);
        channel_all_met(paths[i], "absence of samples", a->no_samples, 2);
    }
}
