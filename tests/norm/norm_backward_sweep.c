/* SPDX-License-Identifier: MIT */
#include "norm_backward_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARES = 6, SUBSETS = 1 << BACKWARD_OUTPUTS, ROW_KINDS_MET = 4 };

typedef struct account {
    unsigned shares[SHARES], shares_reduce[SHARES], store[NRG_STORE_STREAM + 1], side[2], interleaved[2], gaps[2], pads[2];
    unsigned subset[SUBSETS];
    unsigned over[3][BOPERANDS];
    unsigned gated[GATES * ACTIVATIONS], gated_groups[GATES * ACTIVATIONS];
    unsigned r[4], saved[2], dr_in[2], accumulate[2], blocks[ROW_KINDS_MET];
} account;

static account *accounts;

void norm_backward_sweep_start(void)
{
    accounts = test_shared(NRG_ISA_COUNT * sizeof *accounts);
    test_note_crashes();
}

static size_t share_kind(int nth, size_t work)
{
    static const int shares[] = {1, 2, 3, 7};
    if ((size_t)nth > work)
        return SHARES - 1;
    for (size_t i = 0; i < 4; i++)
        if (nth == shares[i])
            return i;
    return SHARES - 2;
}

/* One block of rows; two to the most with as few rows as there are; many rows; more than the blocks can be of. */
static size_t block_kind(size_t rows) { return rows <= 32 ? 0 : rows <= 64 ? 1 : rows <= 2048 ? 2 : 3; }

static void enter(nrg_isa isa, const norm_backward_problem *p, const norm_backward_layout *l)
{
    const norm_problem *f = &p->forward;
    account *a = &accounts[isa];
    size_t subset = 0;
    a->shares[share_kind(l->nth, f->rows)]++;
    a->shares_reduce[share_kind(l->nth_reduce, f->spec.dim)]++;
    a->store[l->store]++;
    a->side[l->place[BOP_D_O].side]++;
    a->interleaved[l->interleaved]++;
    a->gaps[l->place[BOP_D_O].gap % 4 != 0]++;
    a->pads[l->place[BOP_D_O].pad % 4 != 0]++;
    for (int i = 0; i < BACKWARD_OUTPUTS; i++)
        subset |= (size_t)l->want[i] << i;
    a->subset[subset]++;
    for (int i = 0; i < 3; i++)
        if (l->want[i])
            a->over[i][l->over[i]]++;
    size_t gated = (size_t)f->spec.gate * ACTIVATIONS + (size_t)f->spec.activation;
    (f->groups > 1 ? a->gated_groups : a->gated)[gated]++;
    a->r[l->use_r * 2 + l->unread]++;
    a->saved[l->want_mean]++;
    a->dr_in[p->dr_in != NULL]++;
    a->accumulate[p->accumulate]++;
    if (l->want[BOP_DW - BOP_DX])
        a->blocks[block_kind(f->rows)]++;
}

static void stop(nrg_isa isa, const norm_backward_problem *p, const norm_backward_layout *l, const char *failure)
{
    ck_abort_msg("%s: %s\n  case: %s\n  layout: %s", nrg_isa_name(isa), failure, p->text, norm_backward_layout_text(l));
}

static void run(nrg_isa isa, const norm_backward_problem *p, const norm_backward_layout *l, norm_backward_result *result)
{
    if (nrg_isa_set(isa) != NRG_OK)
        ck_abort_msg("%s cannot be set", nrg_isa_name(isa));
    snprintf(test_note, sizeof test_note, "%s: %s; %s", nrg_isa_name(isa), p->text, norm_backward_layout_text(l));
    const char *failure = norm_backward_run(&norm_backward_library, p, l, result);
    if (failure)
        stop(isa, p, l, failure);
    enter(isa, p, l);
}

void norm_backward_sweep(const norm_backward_problem *p, uint64_t seed, int layouts)
{
    norm_backward_result expected, got;
    norm_backward_result_make(&expected, p);
    norm_backward_result_make(&got, p);
    norm_backward_layout plain = norm_backward_layout_plain(p);
    run(NRG_ISA_SCALAR, p, &plain, &expected);

    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    for (size_t path = 0; path < count; path++)
        for (int i = 0; i < layouts; i++) {
            uint64_t state = test_mix(seed + 1000 * path + (uint64_t)i);
            /* scalar takes most of the time and has no vectors to get wrong: a few of its layouts are enough */
            if (paths[path] == NRG_ISA_SCALAR && (i > 0 || test_draw(&state, 3)))
                continue;
            norm_backward_layout l = norm_backward_layout_vary(p, state);
            run(paths[path], p, &l, &got);
            const char *failure = norm_backward_compare(p, &l, &expected, &got);
            if (failure)
                stop(paths[path], p, &l, failure);
        }
    norm_backward_result_free(&expected);
    norm_backward_result_free(&got);
}

static void all_met(nrg_isa isa, const char *what, const unsigned *counts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (counts[i] == 0)
            ck_abort_msg("%s has met no %s number %zu in this sweep", nrg_isa_name(isa), what, i);
}

static void aliases_met(nrg_isa isa, const account *a)
{
    static const enum norm_backward_operand dx[] = {BOP_D_O, BOP_DR_IN, BOP_X, BOP_R, BOP_DX},
                                            dy[] = {BOP_D_O, BOP_DR_IN, BOP_Y, BOP_R, BOP_DX, BOP_DY}, dz[] = {BOP_Z, BOP_DZ};
    static const struct {
        const enum norm_backward_operand *over;
        size_t count;
    } lists[3] = {{dx, 5}, {dy, 6}, {dz, 2}};
    for (int i = 0; i < 3; i++)
        for (size_t n = 0; n < lists[i].count; n++)
            if (!a->over[i][lists[i].over[n]])
                ck_abort_msg("%s has met no %s==%s in this sweep", nrg_isa_name(isa),
                             norm_backward_operand_name((enum norm_backward_operand)(BOP_DX + i)),
                             norm_backward_operand_name(lists[i].over[n]));
}

void norm_backward_sweep_check_coverage(void)
{
    if (getenv("CK_RUN_CASE") || getenv("CK_RUN_SUITE"))
        return; /* a part of the sweep was asked for */
    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    for (size_t i = 0; i < count; i++) {
        const account *a = &accounts[paths[i]];
        all_met(paths[i], "number of shares", a->shares, SHARES - 2);
        all_met(paths[i], "more shares than rows", &a->shares[SHARES - 1], 1);
        all_met(paths[i], "number of shares of the reduction", a->shares_reduce, SHARES - 2);
        all_met(paths[i], "more shares than columns", &a->shares_reduce[SHARES - 1], 1);
        all_met(paths[i], "store", a->store, NRG_STORE_STREAM + 1);
        all_met(paths[i], "side", a->side, 2);
        all_met(paths[i], "interleaving", a->interleaved, 2);
        all_met(paths[i], "gap", a->gaps, 2);
        all_met(paths[i], "pad", a->pads, 2);
        all_met(paths[i], "output subset", a->subset, SUBSETS);
        all_met(paths[i], "gate × activation", a->gated, GATES * ACTIVATIONS);
        all_met(paths[i], "gate × activation in groups", a->gated_groups, GATES * ACTIVATIONS);
        all_met(paths[i], "r given or not", a->r, 4);
        all_met(paths[i], "saved mean", a->saved, 2);
        all_met(paths[i], "dr_in", a->dr_in, 2);
        all_met(paths[i], "accumulation", a->accumulate, 2);
        all_met(paths[i], "number of blocks of rows", a->blocks, ROW_KINDS_MET);
        aliases_met(paths[i], a);
    }
}

size_t norm_backward_sweep_rows(uint64_t seed, size_t dim)
{
    static const size_t rows[] = {1, 3, 4, 5, 2, 1, 8, 9, 31, 32, 33, 5, 64, 65, 100, 3};
    static const size_t few[] = {1, 3, 4, 5, 9}; /* of long rows: one batch, its end, and the next while the first goes on */
    uint64_t state = seed;
    if (dim > 2000)
        return few[test_draw(&state, sizeof few / sizeof few[0])];
    size_t draw = test_draw(&state, dim > 600 ? 6 : dim > 200 ? 11 : sizeof rows / sizeof rows[0]);
    return rows[draw];
}
