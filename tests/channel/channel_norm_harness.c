/* SPDX-License-Identifier: MIT */
#include "channel_norm_harness.h"

#include <stdio.h>
#include <string.h>

#include "../norm/norm_harness.h"

static const char *const operand_names[COPERANDS] = {
    "x", "y", "w", "b", "o", "mean", "rstd", "statistics", "running_mean", "running_var", "sums"};

/* Statistics and sums as operands: elements of 4 bytes. */
enum { STATISTICS_WORDS = sizeof(nrg_channel_statistics) / sizeof(float), SUMS_WORDS = NRG_SUMS_WORDS * 2 };

/* The memory that sums take is a hundred times that of a small set. */
enum { MOST_SETS_IN_PHASES = 2048, MOST_SHARES = 300 };

const channel_kernel channel_library = {nrg_channel_norm_forward, nrg_channel_norm_sums, nrg_channel_norm_statistics};

const char *channel_operand_name(enum channel_operand which) { return operand_names[which]; }

int channel_has_phases(const channel_problem *p)
{
    return p->spec.statistics == NRG_STATISTICS_COMPUTE && p->n > 0 && p->sets <= MOST_SETS_IN_PHASES;
}

static int has_statistics(const channel_problem *p) { return p->spec.statistics != NRG_STATISTICS_FOLDED; }
static int updates(const channel_problem *p) { return p->running_mean && p->spec.statistics == NRG_STATISTICS_COMPUTE; }

size_t channel_work(const channel_problem *p)
{
    if (p->spec.statistics == NRG_STATISTICS_COMPUTE)
        return p->kind == CHANNEL_BATCH || updates(p) ? p->spec.channels : p->sets;
    return p->spec.layout == NRG_NHWC ? p->n * p->s : p->n * p->spec.channels;
}

channel_layout channel_layout_plain(const channel_problem *p)
{
    channel_layout l;
    memset(&l, 0, sizeof l);
    l.want_mean = l.want_rstd = has_statistics(p);
    l.want_statistics = has_statistics(p) && !p->statistics;
    l.over = COP_O;
    l.nth = 1;
    return l;
}

channel_layout channel_layout_vary(const channel_problem *p, uint64_t seed)
{
    static const int shares[] = {1, 1, 2, 3, 7};
    uint64_t state = seed;
    channel_layout l = channel_layout_plain(p);
    l.want_mean = l.want_mean && test_draw(&state, 2);
    l.want_rstd = l.want_rstd && test_draw(&state, 2);
    l.want_statistics = l.want_statistics && test_draw(&state, 2);
    l.in_phases = channel_has_phases(p) && test_draw(&state, 3) == 0;
    l.late = (int)test_draw(&state, 2);
    l.store = (nrg_store)test_draw(&state, NRG_STORE_STREAM + 1);
    size_t how = test_draw(&state, 6), over = test_draw(&state, 6);
    l.nth = how < 5                                    ? shares[how]
            : channel_work(p) + p->sets <= MOST_SHARES ? (int)(channel_work(p) + p->sets + 1 + test_draw(&state, 3))
                                                       : 13;
    l.backwards = (int)test_draw(&state, 2);
    l.over = over < 2 ? COP_X : over < 4 && p->y ? COP_Y : COP_O;
    l.interleaved = p->n > 0 && test_draw(&state, 6) == 0;
    l.read_only = test_draw(&state, 4) == 0;
    norm_places_vary(l.place, COPERANDS, state);
    return l;
}

const char *channel_layout_text(const channel_layout *l)
{
    static char text[OPERAND_MESSAGE];
    int n = snprintf(text, sizeof text, "o==%s%s%s%s nth %d%s store %d asks:%s%s%s; side/gap/pad", operand_names[l->over],
                     l->in_phases ? (l->late ? " in phases, mean and rstd late" : " in phases") : "",
                     l->interleaved ? " interleaved" : "", l->read_only ? " read-only" : "", l->nth,
                     l->backwards ? " backwards" : "", (int)l->store, l->want_mean ? " mean" : "", l->want_rstd ? " rstd" : "",
                     l->want_statistics ? " statistics" : "");
    for (int i = 0; i < COPERANDS && n < (int)sizeof text - 40; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %s %s/%zu/%zu", operand_names[i],
                      l->place[i].side == AT_START ? "start" : "end", l->place[i].gap, l->place[i].pad);
    return text;
}

static void describe(operand *all, const channel_problem *p, const channel_layout *l)
{
    const size_t c = p->spec.channels;
    const operand tensor = {.dtype = p->spec.dtype, .dim = p->dim, .rows = p->rows, .tensor = 1},
                  weight = {.dtype = p->w_dtype, .dim = c, .rows = 1}, running = {.dtype = NRG_F32, .dim = c, .rows = 1},
                  scalar = {.dtype = NRG_F32, .dim = p->sets, .rows = 1};
    all[COP_X] = all[COP_Y] = all[COP_O] = tensor;
    all[COP_W] = all[COP_B] = weight;
    all[COP_MEAN] = all[COP_RSTD] = all[COP_STATISTICS] = all[COP_SUMS] = scalar;
    all[COP_RUNNING_MEAN] = all[COP_RUNNING_VAR] = running;
    all[COP_STATISTICS].dim *= STATISTICS_WORDS;
    all[COP_SUMS].dim *= SUMS_WORDS;
    all[COP_STATISTICS].unit = all[COP_SUMS].unit = sizeof(double);
    all[COP_X].wanted = 1;
    all[COP_Y].wanted = p->y != NULL;
    all[COP_W].wanted = p->w != NULL;
    all[COP_B].wanted = p->b != NULL;
    all[COP_O].wanted = l->over == COP_O;
    all[COP_MEAN].wanted = l->want_mean;
    all[COP_RSTD].wanted = l->want_rstd;
    all[COP_STATISTICS].wanted = l->want_statistics || l->in_phases || p->statistics;
    all[COP_RUNNING_MEAN].wanted = all[COP_RUNNING_VAR].wanted = p->running_mean != NULL;
    all[COP_SUMS].wanted = l->in_phases;
    /* without samples nothing is done, and no operand may change */
    for (int i = COP_O; i < COPERANDS && p->n; i++)
        all[i].output = 1;
    if (p->statistics)
        all[COP_STATISTICS].output = 0;
    if (!updates(p))
        all[COP_RUNNING_MEAN].output = all[COP_RUNNING_VAR].output = 0;
    for (int i = 0; i < COPERANDS; i++)
        all[i].name = operand_names[i];
}

enum phase { FORWARD, SUMS, STATISTICS };

static const char *call(const channel_kernel *kernel, enum phase phase, const nrg_channel_norm_spec *spec,
                        const nrg_channel_norm_args *args, int64_t *sums, const channel_layout *l)
{
    static const char *const names[] = {"forward", "sums", "statistics"};
    static char message[OPERAND_MESSAGE];
    for (int i = 0; i < l->nth; i++) {
        int ith = l->backwards ? l->nth - 1 - i : i;
        nrg_status status = phase == SUMS         ? kernel->sums(spec, args, sums, ith, l->nth)
                            : phase == STATISTICS ? kernel->statistics(spec, args, sums, ith, l->nth)
                                                  : kernel->forward(spec, args, ith, l->nth);
        if (status == NRG_OK)
            continue;
        snprintf(message, sizeof message, "%s: status %d (%s)", names[phase], (int)status, nrg_status_string(status));
        return message;
    }
    return NULL;
}

/* The call as three: each with no more of the args than it looks at. */
static const char *call_in_phases(const channel_kernel *kernel, const nrg_channel_norm_spec *spec,
                                  const nrg_channel_norm_args *args, int64_t *sums, const channel_layout *l)
{
    nrg_channel_norm_spec given = *spec;
    given.statistics = NRG_STATISTICS_GIVEN;
    nrg_channel_norm_args first = nrg_channel_norm_args_init(args->n, args->s, args->x, NULL), second = first, third = *args;
    first.x_stride = args->x_stride;
    second.x = NULL;
    second.s = args->s;
    second.batches = args->batches;
    second.statistics = args->statistics;
    second.running_mean = args->running_mean;
    second.running_var = args->running_var;
    third.running_mean = third.running_var = NULL;
    if (!l->late) {
        second.mean = args->mean;
        second.rstd = args->rstd;
        third.mean = third.rstd = NULL;
    }
    const char *failure = call(kernel, SUMS, spec, &first, sums, l);
    if (!failure)
        failure = call(kernel, STATISTICS, spec, &second, sums, l);
    return failure ? failure : call(kernel, FORWARD, &given, &third, NULL, l);
}

const char *channel_run(const channel_kernel *kernel, const channel_problem *p, const channel_layout *l, channel_result *result)
{
    nrg_channel_norm_spec spec = p->spec;
    spec.store = l->store;
    operand all[COPERANDS];
    describe(all, p, l);
    operands_place(all, COPERANDS, l->place, l->interleaved, COP_X);
    if (l->over != COP_O)
        operand_over(all, COP_O, (int)l->over);
    const void *inputs[COPERANDS] = {p->x, p->y, p->w, p->b};
    inputs[COP_STATISTICS] = p->statistics;
    inputs[COP_RUNNING_MEAN] = p->running_mean;
    inputs[COP_RUNNING_VAR] = p->running_var;
    for (int i = 0; i < COPERANDS; i++)
        if (inputs[i])
            operand_copy_in(&all[i], inputs[i]);
    operands_keep(all, COPERANDS);

    /* aligned to their elements by construction; through void, as callers of 16-bit data have it */
    nrg_channel_norm_args args = nrg_channel_norm_args_init(p->n, p->s, all[COP_X].at, all[COP_O].at);
    args.y = all[COP_Y].at;
    args.w = all[COP_W].at;
    args.b = all[COP_B].at;
    args.mean = (float *)(void *)all[COP_MEAN].at;
    args.rstd = (float *)(void *)all[COP_RSTD].at;
    args.statistics = (nrg_channel_statistics *)(void *)all[COP_STATISTICS].at;
    args.running_mean = (float *)(void *)all[COP_RUNNING_MEAN].at;
    args.running_var = (float *)(void *)all[COP_RUNNING_VAR].at;
    args.batches = p->batches;
    args.x_stride = operand_stride(&all[COP_X], 1); /* 0 says dense as well */
    args.y_stride = operand_stride(&all[COP_Y], l->nth > 1);
    args.o_stride = operand_stride(&all[COP_O], 0);

    if (l->read_only)
        operands_protect(all, COPERANDS, 1);
    const char *failure = l->in_phases ? call_in_phases(kernel, &spec, &args, (int64_t *)(void *)all[COP_SUMS].at, l)
                                       : call(kernel, FORWARD, &spec, &args, NULL, l);
    if (l->read_only)
        operands_protect(all, COPERANDS, 0);
    if (failure)
        return failure;
    void *outputs[COPERANDS] = {NULL};
    outputs[COP_O] = result->o;
    outputs[COP_MEAN] = result->mean;
    outputs[COP_RSTD] = result->rstd;
    outputs[COP_STATISTICS] = result->statistics;
    outputs[COP_RUNNING_MEAN] = result->running_mean;
    outputs[COP_RUNNING_VAR] = result->running_var;
    for (int i = 0; i < COPERANDS; i++)
        if (all[i].at && all[i].output)
            operand_copy_out(&all[i], outputs[i]);
    return operands_changed(all, COPERANDS);
}

static const char *compare_statistics(const channel_problem *p, const nrg_channel_statistics *expected,
                                      const nrg_channel_statistics *got)
{
    static char message[OPERAND_MESSAGE];
    for (size_t i = 0; i < p->sets; i++)
        if (!channel_statistics_equal(&expected[i], &got[i])) {
            snprintf(message, sizeof message,
                     "statistics: set %zu has mean %.17g + %.17g, variance %.17g, rstd %.17g, count %g and should have %.17g + "
                     "%.17g, %.17g, %.17g, %g",
                     i, got[i].mean, got[i].mean_low, got[i].variance, got[i].rstd, got[i].count, expected[i].mean,
                     expected[i].mean_low, expected[i].variance, expected[i].rstd, expected[i].count);
            return message;
        }
    return NULL;
}

const char *channel_compare(const channel_problem *p, const channel_layout *l, const channel_result *expected,
                            const channel_result *got)
{
    const char *failure = NULL;
    if (!p->n)
        return NULL; /* channel_run has seen that nothing was written */
    if (l->want_statistics)
        failure = compare_statistics(p, expected->statistics, got->statistics);
    if (!failure && l->want_mean)
        failure = operand_compare("mean", p->sets, 1, NRG_F32, expected->mean, got->mean);
    if (!failure && l->want_rstd)
        failure = operand_compare("rstd", p->sets, 1, NRG_F32, expected->rstd, got->rstd);
    if (!failure && updates(p))
        failure = operand_compare("running_mean", 1, p->spec.channels, NRG_F32, expected->running_mean, got->running_mean);
    if (!failure && updates(p))
        failure = operand_compare("running_var", 1, p->spec.channels, NRG_F32, expected->running_var, got->running_var);
    return failure ? failure : operand_compare("o", p->rows, p->dim, p->spec.dtype, expected->o, got->o);
}
