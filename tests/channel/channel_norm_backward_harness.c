/* SPDX-License-Identifier: MIT */
#include "channel_norm_backward_harness.h"

#include <stdio.h>
#include <string.h>

#include "../norm/norm_harness.h"

static const char *const operand_names[CBOPERANDS] = {"d_o",         "x",  "y",  "w",  "b",  "statistics", "running_mean",
                                                      "running_var", "dx", "dy", "dw", "db", "sums",       "workspace"};

/* Statistics and sums as operands: elements of 4 bytes. */
enum { STATISTICS_WORDS = sizeof(nrg_channel_statistics) / sizeof(float), SUMS_WORDS = NRG_SUMS_WORDS * 2 };

/* Before the call the workspace holds NaN, which no sum that begins without clearing it hides; dw and db what no sum loses. */
enum { NAN_FILL = 0xff, HUGE_FILL = 0x71 };

/* More calls than this are no more of a test. */
enum { MOST_SHARES = 300 };

const channel_backward_kernel channel_backward_library = {nrg_channel_norm_backward, nrg_channel_norm_backward_reduce,
                                                          nrg_channel_norm_backward_sums};

const char *channel_backward_operand_name(enum channel_backward_operand which) { return operand_names[which]; }

static int is_running(const channel_backward_problem *p) { return p->forward.spec.statistics == NRG_STATISTICS_RUNNING; }

int channel_backward_has_phases(const channel_backward_problem *p)
{
    return p->forward.kind == CHANNEL_BATCH && !is_running(p) && p->forward.n > 0;
}

size_t channel_backward_work(const channel_backward_problem *p) { return p->forward.sets; }

channel_backward_layout channel_backward_layout_plain(const channel_backward_problem *p)
{
    channel_backward_layout l;
    memset(&l, 0, sizeof l);
    for (int i = 0; i < CHANNEL_BACKWARD_OUTPUTS; i++)
        l.want[i] = 1;
    for (int i = 0; i < 2; i++)
        l.over[i] = (enum channel_backward_operand)(CBOP_DX + i);
    l.saved = p->forward.statistics != NULL;
    l.nth = l.nth_reduce = 1;
    return l;
}

/* Whether an input is given to the call. */
static int is_given(const channel_backward_problem *p, const channel_backward_layout *l, enum channel_backward_operand input)
{
    const channel_problem *f = &p->forward;
    const int reads = f->spec.activation != NRG_ACT_IDENTITY || l->unread;
    switch (input) {
    case CBOP_Y:
        return f->y && reads;
    case CBOP_B:
        return f->b && reads;
    case CBOP_W:
        return f->w != NULL;
    case CBOP_STATISTICS:
        return p->statistics && (l->saved || l->in_phases);
    case CBOP_RUNNING_MEAN:
    case CBOP_RUNNING_VAR:
        return is_running(p);
    default:
        return input <= CBOP_X;
    }
}

int channel_backward_may_lie_over(const channel_backward_problem *p, const channel_backward_layout *l,
                                  enum channel_backward_operand output, enum channel_backward_operand host)
{
    if (output == host)
        return 1;
    if (!l->want[output - CBOP_DX] || host > CBOP_Y || !is_given(p, l, host))
        return 0;
    return output == CBOP_DX || (host != CBOP_X && !(l->want[0] && l->over[0] == host));
}

channel_backward_layout channel_backward_layout_vary(const channel_backward_problem *p, uint64_t seed)
{
    static const int shares[] = {1, 1, 2, 3, 7};
    const size_t work = channel_backward_work(p), channels = p->forward.spec.channels;
    uint64_t state = seed;
    channel_backward_layout l = channel_backward_layout_plain(p);
    if (test_draw(&state, 4))
        for (int i = 0; i < CHANNEL_BACKWARD_OUTPUTS; i++)
            l.want[i] = (int)test_draw(&state, 2);
    l.saved = l.saved || (p->statistics && test_draw(&state, 2));
    l.in_phases = channel_backward_has_phases(p) && test_draw(&state, 3) == 0;
    l.unread = test_draw(&state, 4) == 0;
    l.store = (nrg_store)test_draw(&state, NRG_STORE_STREAM + 1);
    for (int i = 0; i < 2; i++) {
        enum channel_backward_operand output = (enum channel_backward_operand)(CBOP_DX + i), allowed[CBOPERANDS];
        size_t count = 0;
        for (int host = CBOP_D_O; host <= CBOP_Y; host++)
            if (channel_backward_may_lie_over(p, &l, output, (enum channel_backward_operand)host))
                allowed[count++] = (enum channel_backward_operand)host;
        if (count && test_draw(&state, 2))
            l.over[i] = allowed[test_draw(&state, count)];
    }
    size_t how = test_draw(&state, 6);
    l.nth = how < 5 ? shares[how] : work <= MOST_SHARES ? (int)work + 1 + (int)test_draw(&state, 3) : 13;
    how = test_draw(&state, 6);
    l.nth_reduce = how < 5 ? shares[how] : channels <= MOST_SHARES ? (int)channels + 1 : 13;
    l.backwards = (int)test_draw(&state, 2);
    l.interleaved = p->forward.n > 0 && test_draw(&state, 6) == 0;
    l.read_only = test_draw(&state, 4) == 0;
    l.spare = test_draw(&state, 2) ? 0 : 8 * test_draw(&state, 20);
    norm_places_vary(l.place, CBOPERANDS, state);
    return l;
}

const char *channel_backward_layout_text(const channel_backward_layout *l)
{
    static char text[OPERAND_MESSAGE];
    int n = snprintf(text, sizeof text, "asks:");
    for (int i = 0; i < CHANNEL_BACKWARD_OUTPUTS; i++)
        if (l->want[i]) {
            n += snprintf(text + n, sizeof text - (size_t)n, " %s", operand_names[CBOP_DX + i]);
            if (i < 2 && (int)l->over[i] != CBOP_DX + i)
                n += snprintf(text + n, sizeof text - (size_t)n, "==%s", operand_names[l->over[i]]);
        }
    n += snprintf(text + n, sizeof text - (size_t)n, ";%s%s%s%s%s nth %d, %d%s store %d spare %zu; side/gap/pad",
                  l->saved ? " saved" : "", l->in_phases ? " in phases" : "", l->unread ? " unread given" : "",
                  l->interleaved ? " interleaved" : "", l->read_only ? " read-only" : "", l->nth, l->nth_reduce,
                  l->backwards ? " backwards" : "", (int)l->store, l->spare);
    for (int i = 0; i < CBOPERANDS && n < (int)sizeof text - 40; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %s %s/%zu/%zu", operand_names[i],
                      l->place[i].side == AT_START ? "start" : "end", l->place[i].gap, l->place[i].pad);
    return text;
}

static void describe(operand *all, const channel_backward_problem *p, const channel_backward_layout *l, size_t workspace)
{
    const channel_problem *f = &p->forward;
    memset(all, 0, CBOPERANDS * sizeof *all);
    for (int i = 0; i < CBOPERANDS; i++) {
        const int tensor = i <= CBOP_Y || i == CBOP_DX || i == CBOP_DY;
        all[i].name = operand_names[i];
        all[i].dtype = tensor ? f->spec.dtype : i == CBOP_W || i == CBOP_B ? f->w_dtype : NRG_F32;
        all[i].dim = tensor ? f->dim : f->spec.channels;
        all[i].rows = tensor ? f->rows : 1;
        all[i].tensor = tensor;
        all[i].output = i >= CBOP_DX;
        all[i].wanted = i < CBOP_DX    ? is_given(p, l, (enum channel_backward_operand)i)
                        : i < CBOP_DW  ? l->want[i - CBOP_DX] && (int)l->over[i - CBOP_DX] == i
                        : i <= CBOP_DB ? l->want[i - CBOP_DX]
                                       : 0;
    }
    all[CBOP_STATISTICS].dim = f->sets * STATISTICS_WORDS;
    all[CBOP_SUMS].dim = f->spec.channels * SUMS_WORDS;
    all[CBOP_WORKSPACE].dim = workspace / sizeof(float);
    all[CBOP_STATISTICS].unit = all[CBOP_SUMS].unit = all[CBOP_WORKSPACE].unit = sizeof(double);
    all[CBOP_SUMS].wanted = l->in_phases;
    all[CBOP_WORKSPACE].wanted = workspace != 0;
    all[CBOP_DW].fill = all[CBOP_DB].fill = HUGE_FILL;
    all[CBOP_WORKSPACE].fill = NAN_FILL;
}

enum phase { BACKWARD, REDUCE, SUMS };

static const char *call(const channel_backward_kernel *kernel, enum phase phase, const nrg_channel_norm_spec *spec,
                        const nrg_channel_norm_backward_args *args, int64_t *sums, const channel_backward_layout *l)
{
    static const char *const names[] = {"backward", "reduce", "sums"};
    static char message[OPERAND_MESSAGE];
    const int nth = phase == REDUCE ? l->nth_reduce : l->nth;
    for (int i = 0; i < nth; i++) {
        int ith = l->backwards ? nth - 1 - i : i;
        nrg_status status = phase == SUMS     ? kernel->sums(spec, args, sums, ith, nth)
                            : phase == REDUCE ? kernel->reduce(spec, args, ith, nth)
                                              : kernel->backward(spec, args, ith, nth);
        if (status == NRG_OK)
            continue;
        snprintf(message, sizeof message, "%s: status %d (%s)", names[phase], (int)status, nrg_status_string(status));
        return message;
    }
    return NULL;
}

static const char *call_all(const channel_backward_kernel *kernel, const nrg_channel_norm_spec *spec,
                            const nrg_channel_norm_backward_args *args, int64_t *sums, const channel_backward_layout *l)
{
    const char *failure;
    if (l->in_phases) {
        nrg_channel_norm_backward_args with_sums = *args;
        with_sums.sums = sums;
        with_sums.dw = with_sums.db = NULL;
        failure = call(kernel, SUMS, spec, args, sums, l);
        return failure ? failure : call(kernel, BACKWARD, spec, &with_sums, NULL, l);
    }
    failure = call(kernel, BACKWARD, spec, args, NULL, l);
    return failure ? failure : call(kernel, REDUCE, spec, args, NULL, l);
}

const char *channel_backward_run(const channel_backward_kernel *kernel, const channel_backward_problem *p,
                                 const channel_backward_layout *l, channel_backward_result *result)
{
    const channel_problem *f = &p->forward;
    nrg_channel_norm_spec spec = f->spec;
    spec.store = l->store;
    nrg_channel_norm_backward_args args;
    memset(&args, 0, sizeof args); /* only these are looked at for the workspace, and of dw and db whether they are there */
    args.size = sizeof args;
    args.n = f->n;
    args.dw = l->want[CBOP_DW - CBOP_DX] ? result->dw : NULL;
    args.db = l->want[CBOP_DB - CBOP_DX] ? result->db : NULL;
    size_t bytes = 0;
    if (nrg_channel_norm_backward_workspace(&spec, &args, &bytes) != NRG_OK)
        return "the size of the workspace cannot be had";
    if (bytes % sizeof(double) || (bytes != 0) != (f->kind != CHANNEL_BATCH && f->n && (args.dw || args.db)))
        return "the size of the workspace is none";

    operand all[CBOPERANDS];
    describe(all, p, l, bytes);
    operands_place(all, CBOPERANDS, l->place, l->interleaved, CBOP_D_O);
    for (int i = 0; i < 2; i++)
        if (l->want[i] && (int)l->over[i] != CBOP_DX + i)
            operand_over(all, CBOP_DX + i, (int)l->over[i]);
    const void *inputs[CBOPERANDS] = {p->d_o, f->x, f->y, f->w, f->b, p->statistics, f->running_mean, f->running_var};
    if (p->accumulate) {
        inputs[CBOP_DW] = p->dw;
        inputs[CBOP_DB] = p->db;
    }
    for (int i = 0; i < CBOPERANDS; i++)
        if (inputs[i] && all[i].at)
            operand_copy_in(&all[i], inputs[i]);
    operands_keep(all, CBOPERANDS);

    args.s = f->s;
    args.d_o = all[CBOP_D_O].at;
    args.x = all[CBOP_X].at;
    args.y = all[CBOP_Y].at;
    args.w = all[CBOP_W].at;
    args.b = all[CBOP_B].at;
    args.statistics = (const nrg_channel_statistics *)(const void *)all[CBOP_STATISTICS].at;
    args.running_mean = (const float *)(const void *)all[CBOP_RUNNING_MEAN].at;
    args.running_var = (const float *)(const void *)all[CBOP_RUNNING_VAR].at;
    args.dx = all[CBOP_DX].at;
    args.dy = all[CBOP_DY].at;
    args.dw = (float *)(void *)all[CBOP_DW].at;
    args.db = (float *)(void *)all[CBOP_DB].at;
    args.workspace = all[CBOP_WORKSPACE].at;
    args.workspace_size = bytes + (bytes ? l->spare : 0); /* what is said to be there beyond, and must not be touched */
    args.accumulate = p->accumulate;
    size_t *strides[] = {&args.d_o_stride, &args.x_stride, &args.y_stride, &args.dx_stride, &args.dy_stride};
    const int tensors[] = {CBOP_D_O, CBOP_X, CBOP_Y, CBOP_DX, CBOP_DY};
    for (int i = 0; i < 5; i++)
        if (all[tensors[i]].at)
            *strides[i] = operand_stride(&all[tensors[i]], l->nth % 2);

    if (l->read_only)
        operands_protect(all, CBOPERANDS, 1);
    const char *failure = call_all(kernel, &spec, &args, (int64_t *)(void *)all[CBOP_SUMS].at, l);
    if (l->read_only)
        operands_protect(all, CBOPERANDS, 0);
    if (failure)
        return failure;
    void *outputs[CBOPERANDS] = {[CBOP_DX] = result->dx, [CBOP_DY] = result->dy, [CBOP_DW] = result->dw, [CBOP_DB] = result->db};
    for (int i = CBOP_DX; i < CBOPERANDS; i++)
        if (all[i].at)
            operand_copy_out(&all[i], outputs[i]);
    return operands_changed(all, CBOPERANDS);
}

const char *channel_backward_compare(const channel_backward_problem *p, const channel_backward_layout *l,
                                     const channel_backward_result *expected, const channel_backward_result *got)
{
    const channel_problem *f = &p->forward;
    const void *const want[] = {expected->dx, expected->dy, expected->dw, expected->db};
    const void *const have[] = {got->dx, got->dy, got->dw, got->db};
    const char *failure = NULL;
    for (int i = 0; i < CHANNEL_BACKWARD_OUTPUTS && !failure; i++)
        if (l->want[i])
            failure = i < 2 ? operand_compare(operand_names[CBOP_DX + i], f->rows, f->dim, f->spec.dtype, want[i], have[i])
                            : operand_compare(operand_names[CBOP_DX + i], 1, f->spec.channels, NRG_F32, want[i], have[i]);
    return failure;
}
