/* SPDX-License-Identifier: MIT */
#include "norm_harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

/* CANARY is no NaN in any dtype, so that an element nobody wrote differs even from an expected NaN. */
enum { CANARY = 0xa5, SLACK = 192, MESSAGE = 512 };

/* An operand as memory. */
typedef struct placed {
    unsigned char *at; /* NULL where absent */
    nrg_dtype dtype;
    size_t dim, rows, stride;
    int host; /* whose fence it stands in */
} placed;

/* What is between a fence's pages, and what should still be there after the call. */
typedef struct region {
    fence pages;
    unsigned char *at, *expected;
    size_t bytes, capacity;
} region;

static region regions[OPERANDS];
static const char *const operand_names[OPERANDS] = {"x", "y", "w", "b", "o", "r", "mean", "rstd"};

norm_layout norm_layout_plain(const norm_problem *p)
{
    norm_layout l;
    memset(&l, 0, sizeof l);
    l.want_r = p->spec.residual_mode != NRG_RESIDUAL_AFTER;
    l.want_mean = l.want_rstd = 1;
    l.nth = 1;
    return l;
}

int norm_alias_allowed(const norm_problem *p, const norm_layout *l, enum norm_alias alias)
{
    int o_x = 1, o_y = p->y && p->y_dtype == p->spec.dtype;
    int r_x = l->want_r && p->r_dtype == p->spec.dtype, r_y = l->want_r && p->y && p->r_dtype == p->y_dtype;
    switch (alias) {
    case O_IS_X:
        return o_x;
    case O_IS_Y:
        return o_y;
    case R_IS_X:
        return r_x;
    case R_IS_Y:
        return r_y;
    case O_IS_X_R_IS_Y:
        return o_x && r_y;
    case O_IS_Y_R_IS_X:
        return o_y && r_x;
    default:
        return 1;
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
    l.nth = how < 5 ? shares[how] : (int)p->rows + 1 + (int)test_draw(&state, 3);
    l.backwards = (int)test_draw(&state, 2);
    enum norm_alias allowed[ALIASES];
    size_t count = 0;
    for (int alias = 0; alias < ALIASES; alias++)
        if (norm_alias_allowed(p, &l, (enum norm_alias)alias))
            allowed[count++] = (enum norm_alias)alias;
    l.alias = test_draw(&state, 3) ? allowed[test_draw(&state, count)] : APART;
    l.interleaved = test_draw(&state, 6) == 0;
    l.read_only = test_draw(&state, 4) == 0;
    int padded = test_draw(&state, 3) > 0, at_start = test_draw(&state, 4) == 0, gaps = test_draw(&state, 2) == 0;
    for (int i = 0; i < OPERANDS; i++) {
        /* streaming looks at alignment modulo 16, so a pad of whole vectors has to be among them */
        size_t pad = test_draw(&state, 3) ? test_draw(&state, 20) : 16;
        l.place[i].pad = padded && test_draw(&state, 4) ? pad : 0;
        l.place[i].side = at_start ? AT_START : AT_END;
        l.place[i].gap = gaps ? test_draw(&state, 20) : 0;
    }
    return l;
}

const char *norm_alias_name(enum norm_alias alias)
{
    static const char *const names[ALIASES] = {"apart", "o==x", "o==y", "r==x", "r==y", "o==x r==y", "o==y r==x"};
    return names[alias];
}

const char *norm_layout_text(const norm_layout *l)
{
    static char text[MESSAGE];
    int n =
        snprintf(text, sizeof text, "%s%s%s nth %d%s store %d asks:%s%s%s; side/gap/pad", norm_alias_name(l->alias),
                 l->interleaved ? " interleaved" : "", l->read_only ? " read-only" : "", l->nth, l->backwards ? " backwards" : "",
                 (int)l->store, l->want_r ? " r" : "", l->want_mean ? " mean" : "", l->want_rstd ? " rstd" : "");
    for (int i = 0; i < OPERANDS && n < (int)sizeof text - 40; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %s %s/%zu/%zu", operand_names[i],
                      l->place[i].side == AT_START ? "start" : "end", l->place[i].gap, l->place[i].pad);
    return text;
}

static size_t row_bytes(const placed *p) { return p->dim * nrg_dtype_size(p->dtype); }

/* Claims a fence for `bytes` bytes of an operand and fills it, slack and gap too, with canaries. */
static unsigned char *claim(int host, size_t bytes, enum fence_side side, size_t gap)
{
    region *g = &regions[host];
    unsigned char *at = fence_place(&g->pages, bytes + SLACK, side, gap);
    g->bytes = bytes + SLACK + gap;
    g->at = side == AT_END ? at : at - gap;
    memset(g->at, CANARY, g->bytes);
    return side == AT_END ? at + SLACK : at;
}

static void place_alone(placed *p, int host, const norm_layout *l)
{
    size_t element = nrg_dtype_size(p->dtype);
    int tensor = host == OP_X || host == OP_Y || host == OP_O || host == OP_R;
    p->stride = row_bytes(p) + (tensor ? l->place[host].pad * element : 0);
    p->at = claim(host, (p->rows - 1) * p->stride + row_bytes(p), l->place[host].side, l->place[host].gap * element);
    p->host = host;
}

/* The tensors side by side in every row of one buffer; f32 first, so that all are aligned. */
static void place_interleaved(placed operands[OPERANDS], const int wanted[OPERANDS], const norm_layout *l)
{
    static const int tensors[] = {OP_O, OP_X, OP_R, OP_Y};
    size_t offset[OPERANDS] = {0}, used = 0, end = 0, rows = 1;
    for (size_t element = 4; element >= 2; element -= 2)
        for (size_t i = 0; i < 4; i++) {
            int t = tensors[i];
            if (!wanted[t] || nrg_dtype_size(operands[t].dtype) != element)
                continue;
            offset[t] = used;
            end = used + row_bytes(&operands[t]);
            used = end + l->place[t].pad * element;
            rows = operands[t].rows;
        }
    size_t stride = (used + 3) / 4 * 4;
    end = (end + 3) / 4 * 4;
    unsigned char *at = claim(OP_X, (rows - 1) * stride + end, l->place[OP_X].side, l->place[OP_X].gap * 4);
    for (size_t i = 0; i < 4; i++) {
        placed *p = &operands[tensors[i]];
        if (!wanted[tensors[i]])
            continue;
        p->at = at + offset[tensors[i]];
        p->stride = stride;
        p->host = OP_X;
    }
}

static void copy_in(const placed *p, const void *from)
{
    for (size_t row = 0; row < p->rows; row++)
        memcpy(p->at + row * p->stride, (const char *)from + row * row_bytes(p), row_bytes(p));
}

/* Takes an output's rows out, and allows them to have changed. */
static void copy_out(const placed *p, void *to)
{
    region *g = &regions[p->host];
    for (size_t row = 0; row < p->rows; row++) {
        unsigned char *at = p->at + row * p->stride;
        memcpy((char *)to + row * row_bytes(p), at, row_bytes(p));
        memcpy(g->expected + (at - g->at), at, row_bytes(p));
    }
}

static void keep(region *g)
{
    if (g->capacity < g->bytes) {
        free(g->expected);
        g->capacity = g->bytes;
        g->expected = malloc(g->capacity);
        if (!g->expected)
            abort();
    }
    memcpy(g->expected, g->at, g->bytes);
}

static const char *changed(const region *g, const char *name, const placed *p)
{
    static char message[MESSAGE];
    if (memcmp(g->expected, g->at, g->bytes) == 0)
        return NULL;
    size_t i = 0;
    while (g->expected[i] == g->at[i])
        i++;
    snprintf(message, sizeof message, "byte %td of the buffer of %s, which is no output's, changed from 0x%02x to 0x%02x",
             g->at + i - p->at, name, g->expected[i], g->at[i]);
    return message;
}

static const char *call(norm_kernel *kernel, const norm_problem *p, const norm_layout *l, const nrg_norm_args *args)
{
    static char message[MESSAGE];
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
    size_t dim = p->spec.dim;
    placed operands[OPERANDS] = {
        [OP_X] = {NULL, p->spec.dtype, dim, p->rows, 0, OP_X}, [OP_Y] = {NULL, p->y_dtype, dim, p->rows, 0, OP_Y},
        [OP_W] = {NULL, p->w_dtype, dim, 1, 0, OP_W},          [OP_B] = {NULL, p->w_dtype, dim, 1, 0, OP_B},
        [OP_O] = {NULL, p->spec.dtype, dim, p->rows, 0, OP_O}, [OP_R] = {NULL, p->r_dtype, dim, p->rows, 0, OP_R},
        [OP_MEAN] = {NULL, NRG_F32, 1, p->rows, 0, OP_MEAN},   [OP_RSTD] = {NULL, NRG_F32, 1, p->rows, 0, OP_RSTD},
    };
    int o_host = l->alias == O_IS_X || l->alias == O_IS_X_R_IS_Y   ? OP_X
                 : l->alias == O_IS_Y || l->alias == O_IS_Y_R_IS_X ? OP_Y
                                                                   : OP_O;
    int r_host = l->alias == R_IS_X || l->alias == O_IS_Y_R_IS_X   ? OP_X
                 : l->alias == R_IS_Y || l->alias == O_IS_X_R_IS_Y ? OP_Y
                                                                   : OP_R;
    /* those that get memory of their own */
    const int wanted[OPERANDS] = {
        1, p->y != NULL, p->w != NULL, p->b != NULL, o_host == OP_O, l->want_r && r_host == OP_R, l->want_mean, l->want_rstd};
    if (l->interleaved)
        place_interleaved(operands, wanted, l);
    for (int i = 0; i < OPERANDS; i++)
        if (wanted[i] && !operands[i].at)
            place_alone(&operands[i], i, l);
    if (o_host != OP_O)
        operands[OP_O] = operands[o_host];
    if (l->want_r && r_host != OP_R)
        operands[OP_R] = operands[r_host];
    const void *inputs[] = {p->x, p->y, p->w, p->b};
    for (int i = OP_X; i <= OP_B; i++)
        if (inputs[i])
            copy_in(&operands[i], inputs[i]);
    int used[OPERANDS] = {0}, written[OPERANDS] = {0};
    for (int i = 0; i < OPERANDS; i++)
        if (operands[i].at) {
            used[operands[i].host] = 1;
            written[operands[i].host] |= i >= OP_O;
        }
    for (int i = 0; i < OPERANDS; i++)
        if (used[i])
            keep(&regions[i]);

    nrg_norm_args args = nrg_norm_args_init(p->rows, operands[OP_X].at, operands[OP_O].at);
    args.y = operands[OP_Y].at;
    args.w = operands[OP_W].at;
    args.b = operands[OP_B].at;
    args.r = operands[OP_R].at;
    /* element-aligned by construction; through void, as callers of 16-bit data have it */
    args.mean = (float *)(void *)operands[OP_MEAN].at;
    args.rstd = (float *)(void *)operands[OP_RSTD].at;
    const size_t dense = dim * nrg_dtype_size(p->spec.dtype);
    args.x_stride = operands[OP_X].stride == dense ? 0 : operands[OP_X].stride; /* 0 says dense as well */
    args.y_stride = operands[OP_Y].stride;
    args.o_stride = operands[OP_O].stride;
    args.r_stride = operands[OP_R].stride;

    for (int i = 0; i < OPERANDS; i++)
        if (l->read_only && used[i] && !written[i])
            fence_protect(&regions[i].pages, 1);
    const char *failure = call(kernel, p, l, &args);
    for (int i = 0; i < OPERANDS; i++)
        if (l->read_only && used[i] && !written[i])
            fence_protect(&regions[i].pages, 0);
    if (failure)
        return failure;
    void *outputs[] = {result->o, result->r, result->mean, result->rstd};
    for (int i = OP_O; i <= OP_RSTD; i++)
        if (operands[i].at)
            copy_out(&operands[i], outputs[i - OP_O]);
    for (int i = 0; i < OPERANDS && !failure; i++)
        if (used[i])
            failure = changed(&regions[i], operand_names[i], &operands[i]);
    return failure;
}

static const char *compare_tensor(const char *name, size_t rows, size_t dim, nrg_dtype dtype, const void *expected,
                                  const void *got)
{
    static char message[MESSAGE];
    if (memcmp(expected, got, rows * dim * nrg_dtype_size(dtype)) == 0)
        return NULL;
    for (size_t i = 0; i < rows * dim; i++)
        if (!element_equal(expected, got, i, dtype)) {
            snprintf(message, sizeof message, "%s: row %zu element %zu is 0x%x (%.9g) and should be 0x%x (%.9g)", name, i / dim,
                     i % dim, element_bits(got, i, dtype), (double)element_get(got, i, dtype), element_bits(expected, i, dtype),
                     (double)element_get(expected, i, dtype));
            return message;
        }
    return NULL;
}

const char *norm_compare(const norm_problem *p, const norm_layout *l, const norm_result *expected, const norm_result *got)
{
    size_t dim = p->spec.dim;
    const char *failure = NULL;
    if (l->want_r)
        failure = compare_tensor("r", p->rows, dim, p->r_dtype, expected->r, got->r);
    if (!failure && l->want_mean)
        failure = compare_tensor("mean", p->rows, 1, NRG_F32, expected->mean, got->mean);
    if (!failure && l->want_rstd)
        failure = compare_tensor("rstd", p->rows, 1, NRG_F32, expected->rstd, got->rstd);
    return failure ? failure : compare_tensor("o", p->rows, dim, p->spec.dtype, expected->o, got->o);
}
