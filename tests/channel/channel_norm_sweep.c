/* SPDX-License-Identifier: MIT */
#include "channel_norm_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUBSETS = 8, PLACES = 3, SEGMENTS = 2 };

/* Kind × layout × source: of these RUNNING is for sets that are channels only. */
enum { SETS = CHANNEL_KINDS * CHANNEL_LAYOUTS * CHANNEL_SOURCES };

typedef struct account {
    unsigned sets[SETS], update[UPDATES * CHANNEL_LAYOUTS * 2], activation[ACTIVATIONS * CHANNEL_LAYOUTS];
    unsigned over[PLACES], shares[CHANNEL_SHARES], store[NRG_STORE_STREAM + 1], side[2], subset[SUBSETS], interleaved[2], gaps[2],
        pads[2], read_only[2], phases[CHANNEL_KINDS * CHANNEL_LAYOUTS], late[2];
    unsigned centred[2], w[2], b[2], y[2], w_f32[2], segment[SEGMENTS], no_samples[2];
} account;

static account *accounts;

void channel_sweep_start(void)
{
    accounts = test_shared(NRG_ISA_COUNT * sizeof *accounts);
    test_note_crashes();
}

size_t channel_share_class(int nth, size_t work)
{
    static const int shares[] = {1, 2, 3, 7};
    if ((size_t)nth > work)
        return CHANNEL_SHARES - 1;
    for (size_t i = 0; i < 4; i++)
        if (nth == shares[i])
            return i;
    return CHANNEL_SHARES - 2;
}

static void enter(nrg_isa isa, const channel_problem *p, const channel_layout *l)
{
    account *a = &accounts[isa];
    const size_t kind = (size_t)p->kind * CHANNEL_LAYOUTS + (size_t)p->spec.layout;
    a->no_samples[p->n == 0]++;
    if (!p->n)
        return;
    a->sets[kind * CHANNEL_SOURCES + (size_t)p->spec.statistics]++;
    if (p->kind == CHANNEL_BATCH || p->kind == CHANNEL_INSTANCE) {
        enum channel_update update = !p->running_mean || p->spec.statistics != NRG_STATISTICS_COMPUTE ? UPDATE_NONE
                                     : p->spec.cumulative                                             ? UPDATE_CUMULATIVE
                                                                                                      : UPDATE_MOMENTUM;
        a->update[((size_t)update * CHANNEL_LAYOUTS + (size_t)p->spec.layout) * 2 + (p->kind == CHANNEL_BATCH)]++;
    }
    a->activation[(size_t)p->spec.activation * CHANNEL_LAYOUTS + (size_t)p->spec.layout]++;
    a->over[l->over == COP_X ? 0 : l->over == COP_Y ? 1 : 2]++;
    a->shares[channel_share_class(l->nth, channel_work(p))]++;
    a->store[l->store]++;
    a->side[l->place[COP_O].side]++;
    a->subset[l->want_mean | l->want_rstd << 1 | l->want_statistics << 2]++;
    a->interleaved[l->interleaved]++;
    a->gaps[l->place[COP_X].gap % 4 != 0]++;
    a->pads[l->place[COP_X].pad % 4 != 0]++;
    a->read_only[l->read_only]++;
    if (l->in_phases) {
        a->phases[kind]++;
        a->late[l->late]++;
    }
    a->centred[p->spec.centred]++;
    a->w[p->w != NULL]++;
    a->b[p->b != NULL]++;
    a->y[p->y != NULL]++;
    a->w_f32[p->w && p->w_dtype != p->spec.dtype]++;
    if (p->spec.statistics == NRG_STATISTICS_COMPUTE)
        a->segment[p->set_size > (p->spec.segment ? p->spec.segment : 4096)]++;
}

static void stop(nrg_isa isa, const channel_problem *p, const channel_layout *l, const char *failure)
{
    ck_abort_msg("%s: %s\n  case: %s\n  layout: %s", nrg_isa_name(isa), failure, p->text, channel_layout_text(l));
}

static void run(nrg_isa isa, const channel_problem *p, const channel_layout *l, channel_result *result)
{
    if (nrg_isa_set(isa) != NRG_OK)
        ck_abort_msg("%s cannot be set", nrg_isa_name(isa));
    snprintf(test_note, sizeof test_note, "%s: %s; %s", nrg_isa_name(isa), p->text, channel_layout_text(l));
    const char *failure = channel_run(&channel_library, p, l, result);
    if (failure)
        stop(isa, p, l, failure);
    enter(isa, p, l);
}

void channel_sweep(const channel_problem *p, uint64_t seed, int layouts)
{
    channel_result expected, got;
    channel_result_make(&expected, p);
    channel_result_make(&got, p);
    channel_layout plain = channel_layout_plain(p);
    run(NRG_ISA_SCALAR, p, &plain, &expected);

    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    for (size_t path = 0; path < count; path++)
        for (int i = 0; i < layouts; i++) {
            uint64_t state = test_mix(seed + 1000 * path + (uint64_t)i);
            /* scalar takes most of the time and has no vectors to get wrong: a few of its layouts are enough */
            if (paths[path] == NRG_ISA_SCALAR && (i > 0 || test_draw(&state, 3)))
                continue;
            channel_layout l = channel_layout_vary(p, state);
            run(paths[path], p, &l, &got);
            const char *failure = channel_compare(p, &l, &expected, &got);
            if (failure)
                stop(paths[path], p, &l, failure);
        }
    channel_result_free(&expected);
    channel_result_free(&got);
}

void channel_all_met(nrg_isa isa, const char *what, const unsigned *counts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (counts[i] == 0)
            ck_abort_msg("%s has met no %s number %zu in this sweep", nrg_isa_name(isa), what, i);
}

static void sets_met(nrg_isa isa, const account *a)
{
    for (size_t kind = 0; kind < CHANNEL_KINDS; kind++)
        for (size_t layout = 0; layout < CHANNEL_LAYOUTS; layout++)
            for (size_t source = 0; source < CHANNEL_SOURCES; source++)
                if (!a->sets[(kind * CHANNEL_LAYOUTS + layout) * CHANNEL_SOURCES + source] &&
                    (source != NRG_STATISTICS_RUNNING || kind == CHANNEL_BATCH || kind == CHANNEL_INSTANCE))
                    ck_abort_msg("%s has met no kind %zu, layout %zu, source %zu in this sweep", nrg_isa_name(isa), kind, layout,
                                 source);
}

void channel_sweep_check_coverage(void)
{
    if (getenv("CK_RUN_CASE") || getenv("CK_RUN_SUITE"))
        return; /* a part of the sweep was asked for */
    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    for (size_t i = 0; i < count; i++) {
        const account *a = &accounts[paths[i]];
        sets_met(paths[i], a);
        channel_all_met(paths[i], "update × layout × kind", a->update, UPDATES * CHANNEL_LAYOUTS * 2);
        channel_all_met(paths[i], "activation × layout", a->activation, ACTIVATIONS * CHANNEL_LAYOUTS);
        channel_all_met(paths[i], "place of o", a->over, PLACES);
        /* "some number of shares, not above the work, not 1, 2, 3, 7" need not occur */
        channel_all_met(paths[i], "number of shares", a->shares, CHANNEL_SHARES - 2);
        channel_all_met(paths[i], "more shares than work", &a->shares[CHANNEL_SHARES - 1], 1);
        channel_all_met(paths[i], "store", a->store, NRG_STORE_STREAM + 1);
        channel_all_met(paths[i], "side", a->side, 2);
        channel_all_met(paths[i], "output subset", a->subset, SUBSETS);
        channel_all_met(paths[i], "interleaving", a->interleaved, 2);
        channel_all_met(paths[i], "gap", a->gaps, 2);
        channel_all_met(paths[i], "pad", a->pads, 2);
        channel_all_met(paths[i], "protection", a->read_only, 2);
        channel_all_met(paths[i], "phases × kind × layout", a->phases, CHANNEL_KINDS * CHANNEL_LAYOUTS);
        channel_all_met(paths[i], "late statistics", a->late, 2);
        channel_all_met(paths[i], "centring", a->centred, 2);
        channel_all_met(paths[i], "weight", a->w, 2);
        channel_all_met(paths[i], "bias", a->b, 2);
        channel_all_met(paths[i], "residual", a->y, 2);
        channel_all_met(paths[i], "dtype of the weight", a->w_f32, 2);
        channel_all_met(paths[i], "number of segments", a->segment, SEGMENTS);
        channel_all_met(paths[i], "absence of samples", a->no_samples, 2);
    }
}

const size_t channel_positions[CHANNEL_POSITIONS] = {1,  2,   3,   7,   15,  16,  31,  32,  33,   49,   63,   64,
                                                     65, 127, 128, 129, 255, 256, 257, 784, 4095, 4096, 4097, 10000};

channel_shape channel_draw_shape(size_t positions, size_t most, uint64_t seed)
{
    static const size_t channels[] = {1, 2, 3, 5, 8, 10, 16, 17, 32, 33, 64, 70, 128, 129, 300, 320, 321, 1030},
                        samples[] = {1, 2, 3, 4, 5, 33, 0};
    uint64_t state = seed;
    channel_shape shape = {.s = positions};
    do {
        shape.c = channels[test_draw(&state, sizeof channels / sizeof channels[0])];
        /* without samples there is nothing to do: seldom */
        shape.n = samples[test_draw(&state, test_draw(&state, 8) ? 6 : 7)];
    } while (shape.n * shape.c * shape.s > most && (shape.n > 1 || shape.c > 1));
    shape.groups = channel_draw_groups(shape.c, state);
    return shape;
}
