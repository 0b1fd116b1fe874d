/* What sound calls have in operands, and what else of them depends on more than their description; sound.txt names it, and the C
 * that is made of it includes this.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_CONTENTS_H
#define NRG_TESTS_CALLS_CONTENTS_H

#include <float.h>
#include <math.h>

#include "../../src/operands/activation.h"
#include "../../src/operands/channel_norm.h"
#include "../../src/operands/softmax.h"
#include "../../src/operands/embed.h"
#include "../../src/operands/recurrent.h"
#include "../../src/operands/norm_rope.h"
#include "../../src/operands/norm.h"
#include "../../src/operands/qkv.h"
#include "../../src/operands/relative.h"
#include "../../src/operands/score_bias.h"
#include "../../src/operands/rope.h"
#include "../harness/support.h"
#include "sound.h"

/* A norm's spec with constants, for one variant of each call that takes one. With weights: they have an offset. */
static void sound_constants(nrg_norm_spec *spec)
{
    spec->c_mode = NRG_C_GIVEN;
    spec->eps_mode = NRG_EPS_NONE;
    spec->eps = 0;
    spec->weight_offset = 1;
}

/* ---- channels ---- */

static size_t sets_of(const nrg_channel_norm_spec *spec, size_t samples)
{
    return spec->over == NRG_CHANNEL_OVER_BATCH ? 4 : samples * spec->groups;
}

/* Of as many elements as there can be. */
static void set_statistics(nrg_channel_statistics *statistics, size_t sets)
{
    const nrg_channel_statistics one = {0, 0, 1, 1, 7};
    for (size_t i = 0; statistics && i < sets; i++)
        statistics[i] = one;
}

static void sound_fill_statistics(void *const *part)
{
    const nrg_channel_norm_spec *spec = part[NRG_CHANNEL_SPEC];
    const nrg_channel_norm_args *args = part[NRG_CHANNEL_ARGS];
    if (spec->source == NRG_STATISTICS_GIVEN)
        set_statistics(own_memory(args->statistics_in), 4);
}

/* Sums begin with the number of elements. */
static int64_t *counts_of(void *const *part)
{
    const nrg_channel_sums *more = part[NRG_CHANNEL_SUMS_MORE];
    return own_memory(more->sums);
}

/* One element is enough where no running variance is to be unbiased. */
static void sound_fill_sums(void *const *part)
{
    const nrg_channel_norm_args *args = part[NRG_CHANNEL_ARGS];
    const size_t sets = sets_of(part[NRG_CHANNEL_SPEC], 3);
    for (size_t i = 0; counts_of(part) && i < sets * NRG_CHANNEL_NORM_SUMS_WORDS; i++)
        counts_of(part)[i] = i % NRG_CHANNEL_NORM_SUMS_WORDS ? 0 : args->running_mean ? 2 : 1;
}

static nrg_status sound_spoil_sums(void *const *part, int n)
{
    const nrg_channel_norm_args *args = part[NRG_CHANNEL_ARGS];
    const int counts = args->running_mean ? 2 : 1;
    if (n >= counts * 4)
        return NRG_OK;
    counts_of(part)[n / counts * NRG_CHANNEL_NORM_SUMS_WORDS] = n % counts;
    return NRG_ERR_COUNT;
}

static void sound_fill_channel_backward(void *const *part)
{
    const nrg_channel_norm_backward_args *args = part[NRG_CHANNEL_ARGS];
    int64_t *sums = own_memory(args->sums);
    set_statistics(own_memory(args->statistics), sets_of(part[NRG_CHANNEL_SPEC], 3));
    for (size_t set = 0; sums && set < 4; set++)
        sums[set * NRG_CHANNEL_NORM_SUMS_WORDS] = 1;
}

/* Sums, or statistics, of no elements. */
static nrg_status sound_spoil_channel_backward(void *const *part, int n)
{
    const nrg_channel_norm_backward_args *args = part[NRG_CHANNEL_ARGS];
    if (n >= 8 || !args->statistics)
        return NRG_OK;
    int64_t *sums = own_memory(args->sums);
    nrg_channel_statistics *statistics = own_memory(args->statistics);
    if (sums && n % 2)
        sums[n / 2 * NRG_CHANNEL_NORM_SUMS_WORDS] = 0;
    else
        statistics[n / 2].count = 0;
    return NRG_ERR_COUNT;
}

/* Outputs of phase 1 only. */
static uint32_t sound_spares_channel_reduce(void *const *part)
{
    const nrg_channel_norm_spec *spec = part[NRG_CHANNEL_SPEC];
    const uint32_t sums = NRG_BIT(NRG_CHANNEL_BACKWARD_DW) | NRG_BIT(NRG_CHANNEL_BACKWARD_DB);
    return NRG_BIT(NRG_CHANNEL_BACKWARD_DX) | NRG_BIT(NRG_CHANNEL_BACKWARD_DY) | NRG_BIT(NRG_CHANNEL_BACKWARD_WORKSPACE) |
           (spec->over == NRG_CHANNEL_OVER_GROUP ? 0 : sums);
}

/* ---- embeddings ---- */

/* The args with the tables of the other part, unless theirs are missing or too many. */
static nrg_status sound_bind_tables(void *const *part)
{
    nrg_embed_args *args = part[NRG_EMBED_ARGS];
    if (args && args->size >= sizeof *args && args->tables)
        args->tables = ((nrg_embed_terms *)part[NRG_EMBED_TERMS_PART])->table;
    if (args && args->size >= sizeof *args && args->table_count < NRG_EMBED_TABLES)
        args->table_count = NRG_EMBED_TABLES;
    return NRG_OK;
}

static nrg_status sound_bind_gradients(void *const *part)
{
    nrg_embed_backward_args *args = part[NRG_EMBED_ARGS];
    if (args && args->size >= sizeof *args && args->tables)
        args->tables = ((nrg_embed_gradients *)part[NRG_EMBED_TERMS_PART])->table;
    if (args && args->size >= sizeof *args && args->table_count < NRG_EMBED_TABLES)
        args->table_count = NRG_EMBED_TABLES;
    return NRG_OK;
}

/* Phase 2 wants phase 1 to have been there. */
static void sound_fill_order(void *const *part)
{
    const nrg_status status = sound_bind_gradients(part) == NRG_OK ? nrg_embed_backward_order(part[NRG_EMBED_ARGS]) : NRG_OK;
    (void)status; /* wrong arguments have no order */
}

/* Of each table that has an order, another one. */
static nrg_status sound_spoil_order(void *const *part, int n)
{
    nrg_embed_backward_args *args = part[NRG_EMBED_ARGS];
    const nrg_embed_gradients *gradients = part[NRG_EMBED_TERMS_PART];
    uint64_t *at = args->workspace;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        if (!gradients->table[k].ids)
            continue;
        if (n < 2) {
            at[n] ^= 1;
            return NRG_ERR_WORKSPACE;
        }
        n -= 2;
        at += nrg_embed_order_doubles(args->rows, gradients->table[k].rows);
    }
    return NRG_OK;
}

/* ---- sums that are another phase's: a single block's are the gradients themselves ---- */

static int is_one_block(size_t rows) { return nrg_norm_block_count(rows) == 1; }

#define OPERAND(name) NRG_BIT(NRG_NORM_BACKWARD_##name)
static uint32_t sound_spares_norm_reduce(void *const *part)
{
    const nrg_norm_backward_args *a = part[NRG_NORM_ARGS];
    const size_t rows = a->rows * a->rows2 * a->rows3 * nrg_norm_alike(part[NRG_NORM_SPEC]);
    return OPERAND(DX) | OPERAND(DY) | OPERAND(DZ) | OPERAND(WORKSPACE) | (is_one_block(rows) ? OPERAND(DW) | OPERAND(DB) : 0);
}
#undef OPERAND

#define OPERAND(name) NRG_BIT(NRG_SANDWICH_BACKWARD_##name)
static uint32_t sound_spares_sandwich_reduce(void *const *part)
{
    const nrg_norm_sandwich_backward_args *a = part[NRG_SANDWICH_ARGS];
    const uint32_t sums = OPERAND(DW1) | OPERAND(DB1) | OPERAND(DW2) | OPERAND(DB2);
    return OPERAND(DX) | OPERAND(DY) | OPERAND(WORKSPACE) | (is_one_block(a->rows * a->rows2 * a->rows3) ? sums : 0);
}
#undef OPERAND

#define OPERAND(name) NRG_BIT(NRG_NORM_ROPE_BACKWARD_##name)
static uint32_t rope_of_one_block(void *const *part)
{
    const nrg_norm_backward_args *q = part[NRG_NORM_ROPE_Q_ARGS], *k = part[NRG_NORM_ROPE_K_ARGS];
    return (is_one_block(q->rows) ? OPERAND(Q_DW) | OPERAND(Q_DB) : 0) |
           (is_one_block(k->rows) ? OPERAND(K_DW) | OPERAND(K_DB) : 0);
}

static uint32_t sound_spares_rope_rows(void *const *part)
{
    return (OPERAND(Q_DW) | OPERAND(Q_DB) | OPERAND(K_DW) | OPERAND(K_DB)) & ~rope_of_one_block(part);
}

static uint32_t sound_spares_rope_reduce(void *const *part)
{
    return NRG_BIT(NRG_ROPE_Q) | NRG_BIT(NRG_ROPE_K) | OPERAND(Q_O) | OPERAND(K_O) | OPERAND(Q_WORKSPACE) | OPERAND(K_WORKSPACE) |
           rope_of_one_block(part);
}
#undef OPERAND

/* Rows whose id is ignored need no kernel. */
static uint32_t sound_spares_ignored(void *const *part)
{
    const nrg_cross_entropy_args *a = part[NRG_CROSS_ENTROPY_ARGS];
    const int32_t *ids = a->ids;
    size_t n = 0;
    while (ids && n < a->rows && ids[n] == a->ignore_index)
        n++;
    return n < a->rows ? 0 : UINT32_MAX;
}

/* ---- the path of a dynamical system ---- */

/* The caller's functions, which a refused call does not call, and how often they were called. */
static int calls_made;

static void sound_decay(void *user, double t, size_t dim, const float *p, float *dp_dt)
{
    (void)user;
    (void)t;
    calls_made++;
    for (size_t i = 0; i < dim; i++)
        dp_dt[i] = -p[i];
}

static void sound_decay_vjp(void *user, double t, size_t dim, const float *p, const float *v, float *vt_dh_dp)
{
    (void)p;
    sound_decay(user, t, dim, v, vt_dh_dp);
}

static void sound_after_quiet(nrg_status status)
{
    ck_assert_msg(status == NRG_OK || !calls_made, "a refused call called something");
    calls_made = 0;
}

/* Times that are no numbers; and numbers too far from each other. */
static nrg_status sound_spoil_times(void *const *part, int n)
{
    enum { TIMES = 4 };
    static const double wrong[] = {NAN, INFINITY, -INFINITY};
    double *times = own_memory(((nrg_floater_spec *)part[NRG_FLOATER_SPEC])->times);
    if (!times || n > 3 * TIMES)
        return NRG_OK;
    if (n < 3 * TIMES) {
        times[n / 3] = wrong[n % 3];
    } else {
        times[0] = -1.5e308;
        times[1] = 1.5e308;
    }
    return NRG_ERR_POSITION;
}

/* ---- rotations ---- */

/* It has no status, and is 0 where nrg_rope_forward, of no tokens, has one. */
static nrg_status run_pairs(void *const *part, int ith, int nth)
{
    const nrg_rope_args nothing = nrg_rope_args_init(NRG_F32, 0, SIZE_MAX, NULL);
    const nrg_status status = nrg_rope_forward(part[NRG_ROPE_SPEC], &nothing, 0, 1);
    (void)ith;
    (void)nth;
    ck_assert((nrg_rope_pairs(part[NRG_ROPE_SPEC]) != 0) == (status == NRG_OK));
    return status;
}

static const invoke_function invoke_rope_pairs = {"nrg_rope_pairs", &nrg_call_rope_pairs, run_pairs, NULL, NULL};

/* One for each pair. The spec is the first part of each call that has it. */
enum { PAIRS = 4 };

static void sound_fill_factors(void *const *part)
{
    float *factors = own_memory(((nrg_rope_spec *)part[0])->freq_factors);
    for (int p = 0; factors && p < PAIRS; p++)
        factors[p] = 2;
}

/* A pair's factor: no number above 0, or one that makes it too fast. */
static nrg_status sound_spoil_factors(void *const *part, int n)
{
    static const float wrong[] = {0, -0.0f, -1, NAN, INFINITY, -INFINITY, 0x1p-60f};
    const int count = NRG_COUNT(wrong);
    float *factors = own_memory(((nrg_rope_spec *)part[0])->freq_factors);
    if (!factors || n >= PAIRS * count)
        return NRG_OK;
    factors[n / count] = wrong[n % count];
    return NRG_ERR_CONSTANT;
}

/* What belongs to slots and positions, where they are and where they are not. */
enum { SLOTS = 7, TOKENS = 3 };

static void sound_settle_qkv(void *const *part)
{
    nrg_qkv_args *args = part[NRG_QKV_ARGS];
    args->slot_count = args->slots ? SLOTS : 0;
    args->first_position = args->positions ? 0 : args->first_position;
}

static void sound_fill_qkv(void *const *part)
{
    const nrg_qkv_args *args = part[NRG_QKV_ARGS];
    int64_t *slots = own_memory(args->slots);
    for (size_t t = 0; slots && t < args->tokens; t++)
        slots[t] = SLOTS - 1 - 2 * (int64_t)t;
    sound_fill_factors(part);
}

static nrg_status sound_spoil_qkv(void *const *part, int n)
{
    static const int64_t wrong[] = {-2, INT64_MIN, SLOTS, INT64_MAX};
    int64_t *slots = own_memory(((const nrg_qkv_args *)part[NRG_QKV_ARGS])->slots);
    if (!slots)
        return sound_spoil_factors(part, n);
    if (n > 4 * TOKENS)
        return NRG_OK;
    if (n == 4 * TOKENS) {
        slots[TOKENS - 1] = slots[0];
        return NRG_ERR_OVERLAP;
    }
    slots[n / 4] = wrong[n % 4];
    return NRG_ERR_POSITION;
}

/* Without a norm it is the next description's call. */
static nrg_status sound_bind_has_norm(void *const *part) { return part[NRG_QKV_NORM] ? NRG_OK : NRG_ERR_NULL; }

#endif
