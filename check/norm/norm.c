/* What the cases of a norm's forward and backward pass have in common: shapes and specs.
 *
 * Every length meets every combination of norm, residual, weight and bias (on the quick level: some of them), and every gate with
 * every activation; all else (groups, eps mode, constants, dtypes beside a 16-bit x) is drawn for each case.
 *
 * SPDX-License-Identifier: MIT */
#include "norm.h"

#include <stdlib.h>

#include "../../src/operands/norm.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

/* Beyond the lengths from 1 up. rows: 0, drawn; else tall tensors, whose rows are worked on in several streams. */
static const struct {
    size_t dim, rows;
} large[] = {{511, 0},    {512, 0},  {513, 0},   {1024, 0},  {2048, 0},  {4095, 0},  {4096, 0},
             {4099, 0},   {6144, 0}, {8192, 0},  {12288, 0}, {16399, 0}, {65539, 0}, {64, 2500},
             {128, 1003}, {96, 517}, {256, 259}, {768, 131}, {4096, 67}, {4097, 66}, {8192, 35}};

_Static_assert(sizeof large / sizeof large[0] == SWEEP_NORM_LARGE, "sweep_norm_draw knows them all");

static size_t draw_rows(size_t dim, uint64_t *random)
{
    if (dim > 10000)
        return 1 + sweep_draw(random, 2);
    if (dim > 300)
        return 1 + sweep_draw(random, 4);
    return sweep_draw(random, 8) ? 1 + sweep_draw(random, 7) : sweep_draw(random, 80);
}

/* A third of the cases. A short length is a group's, so that groups have every one of them; longer rows are divided. */
static void draw_groups(nrg_norm_spec *s, uint64_t *random)
{
    static const size_t counts[] = {2, 3, 4, 8};
    size_t groups = counts[sweep_draw(random, 4)];
    if (sweep_draw(random, 3))
        return;
    if (s->dim <= 80)
        s->dim *= groups;
    if (s->dim % groups == 0)
        s->groups = groups;
}

/* Of 53 neighbours, which is a prime and so meets all else, 26 have each a gate and activation of their own. */
static void choose_gate(nrg_norm_spec *s, uint64_t n)
{
    enum { ACTIVATIONS = SWEEP_NORM_ACTIVATIONS, WAYS = 3 * ACTIVATIONS, PERIOD = 53 };
    uint64_t way = n % PERIOD;
    if (way < WAYS) {
        s->gate = (nrg_gate)(way / ACTIVATIONS);
        s->activation = (nrg_activation)(way % ACTIVATIONS);
    }
}

static void draw_spec(sweep_case *c, int combination, uint64_t *random)
{
    static const double eps[] = {1e-6, 1e-5, 0, 1e-12, 0.5};
    static const double constants[] = {0, 0, 1, -3.25};
    static const float offsets[] = {0, 0, 1, 0.3f};
    nrg_norm_spec *const s = &c->spec;
    s->centred = combination & SWEEP_CENTRED;
    s->eps_mode = sweep_draw(random, 2) ? NRG_EPS_MEAN : (nrg_eps_mode)sweep_draw(random, 5);
    s->eps = eps[sweep_draw(random, 5)];
    s->c = constants[sweep_draw(random, 4)];
    s->weight_offset = offsets[sweep_draw(random, 4)];
    norm_settle(s, 1);
    c->store = (nrg_store)sweep_draw(random, 3);
    s->y_dtype = sweep_draw(random, 3) ? s->dtype : NRG_F32;
    s->r_dtype = sweep_draw(random, 3) ? s->dtype : NRG_F32;
    s->w_dtype = sweep_draw(random, 2) ? s->dtype : NRG_F32;
    if (combination >> SWEEP_RESIDUAL_SHIFT == SWEEP_RESIDUAL_AFTER)
        s->residual_mode = NRG_RESIDUAL_AFTER;
}

int sweep_norm_draw(sweep_case *c, uint64_t combinations, uint64_t *random)
{
    /* where not all combinations are run, neighbours run different ones */
    int combination = (int)((c->way * (SWEEP_COMBINATIONS / combinations) + c->n / combinations) % SWEEP_COMBINATIONS);
    size_t rows = 0;
    c->weights = NRG_BIT(SWEEP_W) | NRG_BIT(SWEEP_B);
    c->spec.dim = c->length;
    if (c->large) {
        c->spec.dim = large[c->large - 1].dim;
        /* tall tensors take time: a quarter of the combinations, or, with few of those, of the lengths, others for each dtype */
        uint64_t turn = c->way + (combinations < 4 ? c->length - 1 + 3 * c->spec.dtype : 0);
        rows = turn % 4 == 0 ? large[c->large - 1].rows : 0;
    }
    draw_spec(c, combination, random);
    choose_gate(&c->spec, c->n);
    if (rows) {
        c->spec.groups = sweep_draw(random, 2) && c->spec.dim % 4 == 0 ? 4 : 1;
        c->rows = rows;
    } else {
        draw_groups(&c->spec, random);
        c->rows = draw_rows(c->spec.dim, random);
    }
    /* not drawn: what there was before there were planes keeps its numbers, and its hash */
    c->planes = c->n % 3 || !c->rows ? 1 : c->rows % 3 == 0 ? 3 : c->rows % 2 == 0 ? 2 : 1;
    c->shares = sweep_draw_shares(random);
    return combination;
}

nrg_norm_args sweep_norm_args(const sweep_case *c)
{
    nrg_norm_args args = nrg_norm_args_init(c->rows / c->planes, NULL, NULL, NULL);
    args.rows2 = c->planes;
    args.store = c->store;
    return args;
}

void sweep_norm_describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const eps_modes[] = {"mean", "sum", "sigma", "max", "none"};
    static const char *const gates[] = {"none", "pre", "post"};
    const nrg_norm_spec *s = &c->spec;
    sweep_append(text, " %zux%zu %s, eps %g (%s), c %g, weight offset %g", c->rows, s->dim, s->centred ? "layer" : "rms", s->eps,
                 eps_modes[s->eps_mode], s->c, (double)s->weight_offset);
    if (s->gate || s->activation)
        sweep_append(text, ", gate %s of %s", gates[s->gate], nrg_activation_name(s->activation));
    if (s->groups > 1)
        sweep_append(text, ", %zu groups", s->groups);
    if (c->planes > 1)
        sweep_append(text, ", %zu planes", c->planes);
    if (s->residual_mode == NRG_RESIDUAL_AFTER)
        sweep_append(text, ", residual after");
}

const unsigned char sweep_norm_slots[] = {
    [NRG_NORM_X] = SWEEP_X,
    [NRG_NORM_Y] = SWEEP_Y,
    [NRG_NORM_Z] = SWEEP_Z,
    [NRG_NORM_W] = SWEEP_W,
    [NRG_NORM_B] = SWEEP_B,
    [NRG_NORM_O] = SWEEP_O,
    [NRG_NORM_R] = SWEEP_R,
    [NRG_NORM_MEAN] = SWEEP_MEAN,
    [NRG_NORM_RSTD] = SWEEP_RSTD,
    [NRG_NORM_PACKED] = SWEEP_NOWHERE,
    [NRG_NORM_SCALES] = SWEEP_NOWHERE,
};

/* The two halves of a forward pass in turn (nrg/norm_parts.h): the same bits. */
static nrg_status run_in_parts(const sweep_case *c, int shares, const nrg_norm_spec *spec, const nrg_norm_args *args)
{
    nrg_status status = NRG_OK;
    nrg_row_statistics *statistics = malloc((c->rows * spec->groups + 1) * sizeof *statistics);
    if (!statistics)
        return NRG_ERR_WORKSPACE;
    SWEEP_EACH_SHARE(status, c, shares, nrg_norm_statistics(spec, args, statistics, ith, nth));
    nrg_norm_args elements = *args;
    elements.r_in = args->r;
    memcpy(elements.r_in_stride, args->r_stride, sizeof elements.r_in_stride);
    if (status == NRG_OK)
        SWEEP_EACH_SHARE(status, c, shares, nrg_norm_elements(spec, &elements, statistics, ith, nth));
    free(statistics);
    return status;
}

nrg_status sweep_norm_run(const sweep_case *c, int shares, unsigned char *memory)
{
    nrg_norm_spec spec = c->spec;
    nrg_norm_args args = sweep_norm_args(c);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_norm_forward, (void *const[]){&spec, &args}, sweep_norm_slots, memory);
    norm_settle(&spec, args.w != NULL);
    if (c->n % 5 == 2 && c->level != SWEEP_LOOPS)
        return run_in_parts(c, shares, &spec, &args);
    SWEEP_EACH_SHARE(status, c, shares, nrg_norm_forward(&spec, &args, ith, nth));
    return status;
}
