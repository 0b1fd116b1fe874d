/* SPDX-License-Identifier: MIT */
#include "norm_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARES = 6, OUTPUTS = 8, LONG_PLACES = 4, LONG = 2560 };

typedef struct account {
    unsigned alias[ALIASES], shares[SHARES], store[NRG_STORE_STREAM + 1], side[2], outputs[OUTPUTS], interleaved[2];
    unsigned gaps[2], pads[2];
    unsigned gated[GATES * ACTIVATIONS], gated_groups[GATES * ACTIVATIONS];
    /* rows of more elements than a kernel keeps p of on its stack: by dtype, and by what o is in the place of */
    unsigned long_pre[3 * LONG_PLACES];
} account;

static account *accounts;

void norm_sweep_start(void)
{
    accounts = test_shared(NRG_ISA_COUNT * sizeof *accounts);
    test_note_crashes();
}

static size_t share_kind(const norm_problem *p, const norm_layout *l)
{
    static const int shares[] = {1, 2, 3, 7};
    if ((size_t)l->nth > p->rows * p->groups)
        return SHARES - 1;
    for (size_t i = 0; i < 4; i++)
        if (l->nth == shares[i])
            return i;
    return SHARES - 2;
}

static void enter(nrg_isa isa, const norm_problem *p, const norm_layout *l)
{
    account *a = &accounts[isa];
    a->alias[l->alias]++;
    a->shares[share_kind(p, l)]++;
    a->store[l->store]++;
    a->side[l->place[OP_O].side]++;
    a->outputs[l->want_r | l->want_mean << 1 | l->want_rstd << 2]++;
    a->interleaved[l->interleaved]++;
    a->gaps[l->place[OP_X].gap % 4 != 0]++;
    a->pads[l->place[OP_X].pad % 4 != 0]++;
    size_t gated = (size_t)p->spec.gate * ACTIVATIONS + (size_t)p->spec.activation;
    (p->groups > 1 ? a->gated_groups : a->gated)[gated]++;
    if (p->spec.gate == NRG_GATE_PRE && p->spec.dim / p->groups > LONG) {
        enum norm_operand place = norm_alias_of_o(l->alias);
        a->long_pre[(size_t)(p->spec.dtype - NRG_F32) * LONG_PLACES + (place <= OP_Z ? (size_t)place : LONG_PLACES - 1)]++;
    }
}

static void stop(nrg_isa isa, const norm_problem *p, const norm_layout *l, const char *failure)
{
    ck_abort_msg("%s: %s\n  case: %s\n  layout: %s", nrg_isa_name(isa), failure, p->text, norm_layout_text(l));
}

static void run(nrg_isa isa, const norm_problem *p, const norm_layout *l, norm_result *result)
{
    if (nrg_isa_set(isa) != NRG_OK)
        ck_abort_msg("%s cannot be set", nrg_isa_name(isa));
    snprintf(test_note, sizeof test_note, "%s: %s; %s", nrg_isa_name(isa), p->text, norm_layout_text(l));
    const char *failure = norm_run(nrg_norm_forward, p, l, result);
    if (failure)
        stop(isa, p, l, failure);
    enter(isa, p, l);
}

void norm_sweep(const norm_problem *p, uint64_t seed, int layouts)
{
    norm_result expected, got;
    norm_result_make(&expected, p);
    norm_result_make(&got, p);
    norm_layout plain = norm_layout_plain(p);
    run(NRG_ISA_SCALAR, p, &plain, &expected);

    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    for (size_t path = 0; path < count; path++)
        for (int i = 0; i < layouts; i++) {
            uint64_t state = test_mix(seed + 1000 * path + (uint64_t)i);
            /* scalar takes most of the time and has no vectors to get wrong: a few of its layouts are enough */
            if (paths[path] == NRG_ISA_SCALAR && (i > 0 || test_draw(&state, 4)))
                continue;
            norm_layout l = norm_layout_vary(p, state);
            run(paths[path], p, &l, &got);
            const char *failure = norm_compare(p, &l, &expected, &got);
            if (failure)
                stop(paths[path], p, &l, failure);
        }
    norm_result_free(&expected);
    norm_result_free(&got);
}

static void all_met(nrg_isa isa, const char *what, const unsigned *counts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (counts[i] == 0)
            ck_abort_msg("%s has met no %s number %zu in this sweep", nrg_isa_name(isa), what, i);
}

void norm_sweep_check_coverage(int long_rows)
{
    if (getenv("CK_RUN_CASE") || getenv("CK_RUN_SUITE"))
        return; /* a part of the sweep was asked for */
    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    for (size_t i = 0; i < count; i++) {
        const account *a = &accounts[paths[i]];
        all_met(paths[i], "alias", a->alias, ALIASES);
        /* "some number of shares, not above the rows, not 1, 2, 3, 7" does not occur */
        all_met(paths[i], "number of shares", a->shares, SHARES - 2);
        all_met(paths[i], "more shares than rows", &a->shares[SHARES - 1], 1);
        all_met(paths[i], "store", a->store, NRG_STORE_STREAM + 1);
        all_met(paths[i], "side", a->side, 2);
        all_met(paths[i], "output subset", a->outputs, OUTPUTS);
        all_met(paths[i], "interleaving", a->interleaved, 2);
        all_met(paths[i], "gap", a->gaps, 2);
        all_met(paths[i], "pad", a->pads, 2);
        all_met(paths[i], "gate × activation", a->gated, GATES * ACTIVATIONS);
        all_met(paths[i], "gate × activation in groups", a->gated_groups, GATES * ACTIVATIONS);
        if (long_rows && !test_small())
            all_met(paths[i], "dtype × place of o of a long row with a pre-gate", a->long_pre, 3 * LONG_PLACES);
    }
}

size_t norm_sweep_rows(uint64_t seed, size_t dim)
{
    static const size_t rows[] = {1, 2, 3, 5, 1, 2, 8, 9, 17, 33};
    uint64_t state = seed;
    size_t n = sizeof rows / sizeof rows[0];
    return rows[test_draw(&state, dim > 2000 ? 3 : dim > 600 ? 6 : dim > 300 ? 8 : n)];
}
