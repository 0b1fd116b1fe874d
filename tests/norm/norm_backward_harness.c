/* SPDX-License-Identifier: MIT */
#include "norm_backward_harness.h"

#include <stdio.h>
#include <string.h>

#include "norm_harness.h"

static const char *const operand_names[BOPERANDS] = {"d_o",  "dr_in", "x",  "y",  "r",  "z",  "w",        "b",
                                                     "mean", "dx",    "dy", "dz", "dw", "db", "workspace"};

/* Before the call the workspace holds NaN, which no sum that begins without clearing it hides; dw and db what no sum loses. */
enum { NAN_FILL = 0xff, HUGE_FILL = 0x71 };

const norm_backward_kernel norm_backward_library = {nrg_norm_backward, nrg_norm_backward_reduce};

const char *norm_backward_operand_name(enum norm_backward_operand which) { return operand_names[which]; }

static int is_after(const norm_backward_problem *p) { return p->forward.spec.residual_mode == NRG_RESIDUAL_AFTER; }

norm_backward_layout norm_backward_layout_plain(const norm_backward_problem *p)
{
    norm_backward_layout l;
    memset(&l, 0, sizeof l);
    for (int i = 0; i < BACKWARD_OUTPUTS; i++)
        l.want[i] = 1;
    l.want[BOP_DZ - BOP_DX] = p->forward.z != NULL;
    for (int i = 0; i < 3; i++)
        l.over[i] = (enum norm_backward_operand)(BOP_DX + i);
    l.nth = l.nth_reduce = 1;
    return l;
}

/* Whether an input is given to the call, and looked at by it. */
static int is_read(const norm_backward_problem *p, const norm_backward_layout *l, enum norm_backward_operand input)
{
    switch (input) {
    case BOP_D_O:
        return 1;
    case BOP_DR_IN:
        return p->dr_in != NULL;
    case BOP_X:
        return !l->use_r;
    case BOP_Y:
        return p->forward.y && !l->use_r && !is_after(p);
    case BOP_R:
        return l->use_r;
    default:
        return p->forward.z != NULL;
    }
}

static nrg_dtype dtype_of(const norm_backward_problem *p, enum norm_backward_operand which)
{
    switch (which) {
    case BOP_Y:
    case BOP_DY:
        return p->forward.y_dtype;
    case BOP_R:
    case BOP_DR_IN:
        return p->forward.r_dtype;
    case BOP_W:
    case BOP_B:
        return p->forward.w_dtype;
    case BOP_DW:
    case BOP_DB:
    case BOP_MEAN:
    case BOP_WORKSPACE:
        return NRG_F32;
    default:
        return p->forward.spec.dtype;
    }
}

int norm_backward_may_lie_over(const norm_backward_problem *p, const norm_backward_layout *l, enum norm_backward_operand output,
                               enum norm_backward_operand host)
{
    if (output == host)
        return 1;
    if (!l->want[output - BOP_DX] || dtype_of(p, output) != dtype_of(p, host))
        return 0;
    if (output == BOP_DZ)
        return host == BOP_Z;
    if (output == BOP_DX)
        return host < BOP_Z && host != BOP_Y && is_read(p, l, host);
    if (is_after(p)) /* dy is not dx; its place in common with d_o is not dx's as well */
        return host == BOP_D_O && l->over[0] != BOP_D_O;
    /* dx over x has no room for dy: the matrix has no dy over x */
    return host == BOP_DX ? l->want[0] && l->over[0] != BOP_X : host < BOP_Z && host != BOP_X && is_read(p, l, host);
}

norm_backward_layout norm_backward_layout_vary(const norm_backward_problem *p, uint64_t seed)
{
    static const int shares[] = {1, 1, 2, 3, 7};
    uint64_t state = seed;
    norm_backward_layout l = norm_backward_layout_plain(p);
    if (test_draw(&state, 4))
        for (int i = 0; i < BACKWARD_OUTPUTS; i++)
            l.want[i] = l.want[i] && test_draw(&state, 2);
    l.use_r = p->r && test_draw(&state, 2);
    l.want_mean = (int)test_draw(&state, 2);
    l.unread = test_draw(&state, 4) == 0;
    l.store = (nrg_store)test_draw(&state, NRG_STORE_STREAM + 1);
    for (int i = 0; i < 3 && test_draw(&state, 4); i++) {
        enum norm_backward_operand output = (enum norm_backward_operand)(BOP_DX + i), allowed[BOPERANDS];
        size_t count = 0;
        for (int host = BOP_D_O; host <= BOP_DX; host++)
            if (host != (int)output && norm_backward_may_lie_over(p, &l, output, (enum norm_backward_operand)host))
                allowed[count++] = (enum norm_backward_operand)host;
        if (count && test_draw(&state, 3))
            l.over[i] = allowed[test_draw(&state, count)];
    }
    size_t how = test_draw(&state, 6);
    l.nth = how < 5 ? shares[how] : (int)p->forward.rows + 1 + (int)test_draw(&state, 3);
    how = test_draw(&state, 6);
    l.nth_reduce = how < 5 ? shares[how] : (int)p->forward.spec.dim + 1;
    l.backwards = (int)test_draw(&state, 2);
    l.interleaved = test_draw(&state, 6) == 0;
    l.read_only = test_draw(&state, 4) == 0;
    l.spare = test_draw(&state, 2) ? 0 : 8 * test_draw(&state, 20);
    norm_places_vary(l.place, BOPERANDS, state);
    return l;
}

const char *norm_backward_layout_text(const norm_backward_layout *l)
{
    static char text[OPERAND_MESSAGE];
    int n = snprintf(text, sizeof text, "asks:");
    for (int i = 0; i < BACKWARD_OUTPUTS; i++)
        if (l->want[i]) {
            n += snprintf(text + n, sizeof text - (size_t)n, " %s", operand_names[BOP_DX + i]);
            if (i < 3 && (int)l->over[i] != BOP_DX + i)
                n += snprintf(text + n, sizeof text - (size_t)n, "==%s", operand_names[l->over[i]]);
        }
    n += snprintf(text + n, sizeof text - (size_t)n, ";%s%s%s%s%s nth %d, %d%s store %d spare %zu; side/gap/pad",
                  l->use_r ? " r given" : "", l->unread ? " unread given" : "", l->want_mean ? " mean" : "",
                  l->interleaved ? " interleaved" : "", l->read_only ? " read-only" : "", l->nth, l->nth_reduce,
                  l->backwards ? " backwards" : "", (int)l->store, l->spare);
    for (int i = 0; i < BOPERANDS && n < (int)sizeof text - 40; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %s %s/%zu/%zu", operand_names[i],
                      l->place[i].side == AT_START ? "start" : "end", l->place[i].gap, l->place[i].pad);
    return text;
}

static const char *call(norm_backward_phase *phase, const char *name, const nrg_norm_spec *spec,
                        const nrg_norm_backward_args *args, int nth, int backwards)
{
    static char message[OPERAND_MESSAGE];
    for (int i = 0; i < nth; i++) {
        nrg_status status = phase(spec, args, backwards ? nth - 1 - i : i, nth);
        if (status == NRG_OK)
            continue;
        snprintf(message, sizeof message, "%s: status %d (%s)", name, (int)status, nrg_status_string(status));
        return message;
    }
    return NULL;
}

/* What the operands are before they have places; `inputs` in the order of the enum. */
static void describe(operand *all, const norm_backward_problem *p, const norm_backward_layout *l, const void *const *inputs,
                     size_t workspace)
{
    const size_t dim = p->forward.spec.dim, rows = p->forward.rows;
    memset(all, 0, BOPERANDS * sizeof *all);
    for (int i = 0; i < BOPERANDS; i++) {
        const int vector = i == BOP_W || i == BOP_B || i >= BOP_DW;
        all[i].name = operand_names[i];
        all[i].dtype = dtype_of(p, (enum norm_backward_operand)i);
        all[i].dim = dim;
        all[i].rows = vector ? 1 : rows;
        all[i].tensor = !vector;
        all[i].output = i >= BOP_DX;
        if (i == BOP_MEAN) {
            all[i].dim = p->forward.groups;
            all[i].tensor = 0; /* dense, whatever the layout */
        }
        all[i].wanted = i < BOP_DX ? inputs[i] != NULL : i < BOP_WORKSPACE && l->want[i - BOP_DX];
    }
    for (int i = 0; i < 3; i++)
        all[BOP_DX + i].wanted = l->want[i] && (int)l->over[i] == BOP_DX + i;
    all[BOP_DW].fill = all[BOP_DB].fill = HUGE_FILL;
    all[BOP_WORKSPACE].fill = NAN_FILL;
    all[BOP_WORKSPACE].dim = workspace / sizeof(float);
    all[BOP_WORKSPACE].unit = sizeof(double);
    all[BOP_WORKSPACE].wanted = workspace != 0;
}

const char *norm_backward_run(const norm_backward_kernel *kernel, const norm_backward_problem *p, const norm_backward_layout *l,
                              norm_backward_result *result)
{
    const norm_problem *f = &p->forward;
    nrg_norm_spec spec = f->spec;
    spec.store = l->store;
    const void *inputs[BOP_DX] = {p->d_o, p->dr_in, f->x, f->y, p->r, f->z, f->w, f->b, l->want_mean ? p->mean : NULL};
    if (!l->use_r)
        inputs[BOP_R] = NULL;
    else if (!l->unread)
        inputs[BOP_X] = inputs[BOP_Y] = NULL;
    if (is_after(p) && !l->unread)
        inputs[BOP_Y] = NULL;

    nrg_norm_backward_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.rows = f->rows;
    args.dw = l->want[BOP_DW - BOP_DX] ? result->dw : NULL; /* only whether they are there counts here */
    args.db = l->want[BOP_DB - BOP_DX] ? result->db : NULL;
    size_t bytes = 0;
    if (nrg_norm_backward_workspace(&spec, &args, &bytes) != NRG_OK)
        return "the size of the workspace cannot be had";
    if (bytes % sizeof(double) || (bytes != 0) != (args.dw || args.db))
        return "the size of the workspace is none";

    operand all[BOPERANDS];
    describe(all, p, l, inputs, bytes);
    operands_place(all, BOPERANDS, l->place, l->interleaved, BOP_D_O);
    for (int i = 0; i < 3; i++)
        if (l->want[i] && (int)l->over[i] != BOP_DX + i)
            operand_over(all, BOP_DX + i, (int)l->over[i]);
    for (int i = 0; i < BOP_DX; i++)
        if (inputs[i])
            operand_copy_in(&all[i], inputs[i]);
    if (p->accumulate && args.dw)
        operand_copy_in(&all[BOP_DW], p->dw);
    if (p->accumulate && args.db)
        operand_copy_in(&all[BOP_DB], p->db);
    operands_keep(all, BOPERANDS);

    args.d_o = all[BOP_D_O].at;
    args.dr_in = all[BOP_DR_IN].at;
    args.x = all[BOP_X].at;
    args.y = all[BOP_Y].at;
    args.r = all[BOP_R].at;
    args.z = all[BOP_Z].at;
    args.w = all[BOP_W].at;
    args.b = all[BOP_B].at;
    args.mean = (const float *)(const void *)all[BOP_MEAN].at;
    args.dx = all[BOP_DX].at;
    args.dy = all[BOP_DY].at;
    args.dz = all[BOP_DZ].at;
    args.dw = (float *)(void *)all[BOP_DW].at;
    args.db = (float *)(void *)all[BOP_DB].at;
    args.workspace = all[BOP_WORKSPACE].at;
    args.workspace_size = bytes + (bytes ? l->spare : 0); /* what is said to be there beyond, and must not be touched */
    args.accumulate = p->accumulate;
    size_t *strides[BOPERANDS] = {[BOP_D_O] = &args.d_o_stride, [BOP_DR_IN] = &args.dr_in_stride, [BOP_X] = &args.x_stride,
                                  [BOP_Y] = &args.y_stride,     [BOP_R] = &args.r_stride,         [BOP_Z] = &args.z_stride,
                                  [BOP_DX] = &args.dx_stride,   [BOP_DY] = &args.dy_stride,       [BOP_DZ] = &args.dz_stride};
    for (int i = 0; i <= BOP_DZ; i++)
        if (strides[i])
            *strides[i] = operand_stride(&all[i], l->nth % 2);

    if (l->read_only)
        operands_protect(all, BOPERANDS, 1);
    const char *failure = call(kernel->rows, "rows", &spec, &args, l->nth, l->backwards);
    if (!failure)
        failure = call(kernel->reduce, "reduce", &spec, &args, l->nth_reduce, l->backwards);
    if (l->read_only)
        operands_protect(all, BOPERANDS, 0);
    if (failure)
        return failure;
    void *outputs[] = {result->dx, result->dy, result->dz, result->dw, result->db};
    for (int i = BOP_DX; i <= BOP_DB; i++)
        if (all[i].at)
            operand_copy_out(&all[i], outputs[i - BOP_DX]);
    if (all[BOP_WORKSPACE].at)
        operand_copy_out(&all[BOP_WORKSPACE], NULL);
    return operands_changed(all, BOPERANDS);
}

const char *norm_backward_compare(const norm_backward_problem *p, const norm_backward_layout *l,
                                  const norm_backward_result *expected, const norm_backward_result *got)
{
    const void *const want[] = {expected->dx, expected->dy, expected->dz, expected->dw, expected->db};
    const void *const have[] = {got->dx, got->dy, got->dz, got->dw, got->db};
    const char *failure = NULL;
    for (int i = 0; i < BACKWARD_OUTPUTS && !failure; i++)
        if (l->want[i])
            failure = operand_compare(operand_names[BOP_DX + i], BOP_DX + i >= BOP_DW ? 1 : p->forward.rows, p->forward.spec.dim,
                                      dtype_of(p, (enum norm_backward_operand)(BOP_DX + i)), want[i], have[i]);
    return failure;
}
