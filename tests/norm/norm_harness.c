/* SPDX-License-Identifier: MIT */
#include "norm_harness.h"

#include <stdio.h>
#include <string.h>

static const char *const operand_names[OPERANDS] = {"x", "y", "z", "w", "b", "o", "r", "mean", "rstd"};

norm_layout norm_layout_plain(const norm_problem *p)
{
    norm_layout l;
    memset(&l, 0, sizeof l);
    l.want_r = p->spec.residual_mode != NRG_RESIDUAL_AFTER;
    l.want_mean = l.want_rstd = 1;
    l.nth = 1;
    return l;
}

static const struct {
    const char *name;
    enum norm_operand o, r;
} aliases[ALIASES] = {
    [APART] = {"apart", OP_O, OP_R},
    [O_IS_X] = {"o==x", OP_X, OP_R},
    [O_IS_Y] = {"o==y", OP_Y, OP_R},
    [O_IS_Z] = {"o==z", OP_Z, OP_R},
    [R_IS_X] = {"r==x", OP_O, OP_X},
    [R_IS_Y] = {"r==y", OP_O, OP_Y},
    [O_IS_X_R_IS_Y] = {"o==x r==y", OP_X, OP_Y},
    [O_IS_Y_R_IS_X] = {"o==y r==x", OP_Y, OP_X},
    [O_IS_Z_R_IS_X] = {"o==z r==x", OP_Z, OP_X},
    [O_IS_Z_R_IS_Y] = {"o==z r==y", OP_Z, OP_Y},
};

const char *norm_alias_name(enum norm_alias alias) { return aliases[alias].name; }
enum norm_operand norm_alias_of_o(enum norm_alias alias) { return aliases[alias].o; }
enum norm_operand norm_alias_of_r(enum norm_alias alias) { return aliases[alias].r; }

/* Whether an output of a dtype may lie over an input of that name. */
static int may_lie_over(const norm_problem *p, nrg_dtype dtype, enum norm_operand input)
{
    return input == OP_X   ? p->spec.dtype == dtype
           : input == OP_Y ? p->y && p->y_dtype == dtype
           : input == OP_Z ? p->z && p->spec.dtype == dtype
                           : 1;
}

int norm_alias_allowed(const norm_problem *p, const norm_layout *l, enum norm_alias alias)
{
    return may_lie_over(p, p->spec.dtype, aliases[alias].o) &&
           (aliases[alias].r == OP_R || (l->want_r && may_lie_over(p, p->r_dtype, aliases[alias].r)));
}

void norm_places_vary(operand_place *places, int count, uint64_t seed)
{
    uint64_t state = seed;
    int padded = test_draw(&state, 3) > 0, at_start = test_draw(&state, 4) == 0, gaps = test_draw(&state, 2) == 0;
    for (int i = 0; i < count; i++) {
        /* streaming looks at alignment modulo 16, so a pad of whole vectors has to be among them */
        size_t pad = test_draw(&state, 3) ? test_draw(&state, 20) : 16;
        places[i].pad = padded && test_draw(&state, 4) ? pad : 0;
        places[i].side = at_start ? AT_START : AT_END;
        places[i].gap = gaps ? test_draw(&state, 20) : 0;
    }
}

norm_layout norm_layout_vary(const norm_problem *p, uint64_t seed)
{
    static const int shares[] = {1, 1, 2, 3, 7};
    uint64_t state = seed;
    norm_layout l = norm_layout_plain(p);
    l.want_r = l.want_r && test_draw(&state, 2);
    l.want_mean = (int)test_draw(&state, 2);
    l.want_rstd = (int)test_draw(&state, 2);
    l.store = (nrg_store)test_draw(&state, NRG_STORE_STREAM + 1);
    size_t how = test_draw(&state, 6);
    l.nth = how < 5 ? shares[how] : (int)(p->rows * p->groups) + 1 + (int)test_draw(&state, 3);
    l.backwards = (int)test_draw(&state, 2);
    enum norm_alias allowed[ALIASES];
    size_t count = 0;
    for (int alias = 0; alias < ALIASES; alias++)
        if (norm_alias_allowed(p, &l, (enum norm_alias)alias))
            allowed[count++] = (enum norm_alias)alias;
    l.alias = test_draw(&state, 3) ? allowed[test_draw(&state, count)] : APART;
    l.interleaved = test_draw(&state, 6) == 0;
    l.read_only = test_draw(&state, 4) == 0;
    norm_places_vary(l.place, OPERANDS, state);
    return l;
}

const char *norm_layout_text(const norm_layout *l)
{
    static char text[OPERAND_MESSAGE];
    int n =
        snprintf(text, sizeof text, "%s%s%s nth %d%s store %d asks:%s%s%s; side/gap/pad", norm_alias_name(l->alias),
                 l->interleaved ? " interleaved" : "", l->read_only ? " read-only" : "", l->nth, l->backwards ? " backwards" : "",
                 (int)l->store, l->want_r ? " r" : "", l->want_mean ? " mean" : "", l->want_rstd ? " rstd" : "");
    for (int i = 0; i < OPERANDS && n < (int)sizeof text - 40; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %s %s/%zu/%zu", operand_names[i],
                      l->place[i].side == AT_START ? "start" : "end", l->place[i].gap, l->place[i].pad);
    return text;
}

static const char *call(norm_kernel *kernel, const norm_problem *p, const norm_layout *l, const nrg_norm_args *args)
{
    static char message[OPERAND_MESSAGE];
    nrg_norm_spec spec = p->spec;
    spec.store = l->store;
    for (int i = 0; i < l->nth; i++) {
        nrg_status status = kernel(&spec, args, l->backwards ? l->nth - 1 - i : i, l->nth);
        if (status == NRG_OK)
            continue;
        snprintf(message, sizeof message, "status %d (%s)", (int)status, nrg_status_string(status));
        return message;
    }
    return NULL;
}

const char *norm_run(norm_kernel *kernel, const norm_problem *p, const norm_layout *l, norm_result *result)
{
    const size_t dim = p->spec.dim;
    const enum norm_operand o_host = norm_alias_of_o(l->alias), r_host = norm_alias_of_r(l->alias);
    operand all[OPERANDS] = {
        [OP_X] = {.dtype = p->spec.dtype, .dim = dim, .rows = p->rows, .tensor = 1, .wanted = 1},
        [OP_Y] = {.dtype = p->y_dtype, .dim = dim, .rows = p->rows, .tensor = 1, .wanted = p->y != NULL},
        [OP_Z] = {.dtype = p->spec.dtype, .dim = dim, .rows = p->rows, .tensor = 1, .wanted = p->z != NULL},
        [OP_W] = {.dtype = p->w_dtype, .dim = dim, .rows = 1, .wanted = p->w != NULL},
        [OP_B] = {.dtype = p->w_dtype, .dim = dim, .rows = 1, .wanted = p->b != NULL},
        [OP_O] = {.dtype = p->spec.dtype, .dim = dim, .rows = p->rows, .tensor = 1, .output = 1, .wanted = o_host == OP_O},
        [OP_R] =
            {.dtype = p->r_dtype, .dim = dim, .rows = p->rows, .tensor = 1, .output = 1, .wanted = l->want_r && r_host == OP_R},
        [OP_MEAN] = {.dtype = NRG_F32, .dim = p->groups, .rows = p->rows, .output = 1, .wanted = l->want_mean},
        [OP_RSTD] = {.dtype = NRG_F32, .dim = p->groups, .rows = p->rows, .output = 1, .wanted = l->want_rstd},
    };
    for (int i = 0; i < OPERANDS; i++)
        all[i].name = operand_names[i];
    operands_place(all, OPERANDS, l->place, l->interleaved, OP_X);
    if (o_host != OP_O)
        operand_over(all, OP_O, (int)o_host);
    if (l->want_r && r_host != OP_R)
        operand_over(all, OP_R, (int)r_host);
    const void *inputs[] = {p->x, p->y, p->z, p->w, p->b};
    for (int i = OP_X; i <= OP_B; i++)
        if (inputs[i])
            operand_copy_in(&all[i], inputs[i]);
    operands_keep(all, OPERANDS);

    nrg_norm_args args = nrg_norm_args_init(p->rows, all[OP_X].at, all[OP_O].at);
    args.y = all[OP_Y].at;
    args.z = all[OP_Z].at;
    args.w = all[OP_W].at;
    args.b = all[OP_B].at;
    args.r = all[OP_R].at;
    /* element-aligned by construction; through void, as callers of 16-bit data have it */
    args.mean = (float *)(void *)all[OP_MEAN].at;
    args.rstd = (float *)(void *)all[OP_RSTD].at;
    args.x_stride = operand_stride(&all[OP_X], 1); /* 0 says dense as well */
    args.y_stride = operand_stride(&all[OP_Y], 0);
    args.z_stride = operand_stride(&all[OP_Z], l->nth > 1);
    args.o_stride = operand_stride(&all[OP_O], 0);
    args.r_stride = operand_stride(&all[OP_R], 0);

    if (l->read_only)
        operands_protect(all, OPERANDS, 1);
    const char *failure = call(kernel, p, l, &args);
    if (l->read_only)
        operands_protect(all, OPERANDS, 0);
    if (failure)
        return failure;
    void *outputs[] = {result->o, result->r, result->mean, result->rstd};
    for (int i = OP_O; i <= OP_RSTD; i++)
        if (all[i].at)
            operand_copy_out(&all[i], outputs[i - OP_O]);
    return operands_changed(all, OPERANDS);
}

const char *norm_compare(const norm_problem *p, const norm_layout *l, const norm_result *expected, const norm_result *got)
{
    size_t dim = p->spec.dim;
    const char *failure = NULL;
    if (l->want_r)
        failure = operand_compare("r", p->rows, dim, p->r_dtype, expected->r, got->r);
    if (!failure && l->want_mean)
        failure = operand_compare("mean", p->rows, p->groups, NRG_F32, expected->mean, got->mean);
    if (!failure && l->want_rstd)
        failure = operand_compare("rstd", p->rows, p->groups, NRG_F32, expected->rstd, got->rstd);
    return failure ? failure : operand_compare("o", p->rows, dim, p->spec.dtype, expected->o, got->o);
}
