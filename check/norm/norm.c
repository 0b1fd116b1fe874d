/* The cases of norms, forward and backward, and to bytes.
 *
 * Every length meets every combination of norm, residual, weight and bias (on the quick level: some of them), and every gate with
 * every activation; all else (groups, eps mode, constants, dtypes beside a 16-bit x) is drawn for each case.
 *
 * SPDX-License-Identifier: MIT */
#include "norm.h"

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
    size_t groups = (const size_t[]){2, 3, 4, 8}[sweep_draw(random, 4)];
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
    static const double constants[] = {0, 0, 1, -3.25};
    static const float offsets[] = {0, 0, 1, 0.3f};
    nrg_norm_spec *const s = &c->spec;
    s->centred = combination & SWEEP_CENTRED;
    s->eps_mode = sweep_draw(random, 2) ? NRG_EPS_MEAN : (nrg_eps_mode)sweep_draw(random, 5);
    s->eps = (const double[]){1e-6, 1e-5, 0, 1e-12, 0.5}[sweep_draw(random, 5)];
    s->c = constants[sweep_draw(random, 4)];
    s->weight_offset = offsets[sweep_draw(random, 4)];
    norm_settle(s, 1);
    sweep_draw(random, 3); /* no use: hashes depend on the number of draws */
    s->y_dtype = sweep_draw(random, 3) ? s->dtype : NRG_F32;
    s->r_dtype = sweep_draw(random, 3) ? s->dtype : NRG_F32;
    s->w_dtype = sweep_draw(random, 2) ? s->dtype : NRG_F32;
    if (combination >> SWEEP_RESIDUAL_SHIFT == SWEEP_RESIDUAL_AFTER)
        s->residual_mode = NRG_RESIDUAL_AFTER;
}

int sweep_norm_draw(sweep_case *c, uint64_t *random)
{
    const uint64_t combinations = sweep_family_of(c)->ways[c->level];
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
    /* not drawn: hashes depend on the number of draws */
    c->planes = c->n % 3 || !c->rows ? 1 : c->rows % 3 == 0 ? 3 : c->rows % 2 == 0 ? 2 : 1;
    sweep_draw_shares(random); /* no use: hashes depend on the number of draws */
    return combination;
}

void sweep_norm_fit(sweep_case *c, nrg_quant_format format)
{
    const size_t block = nrg_quant_block(format), together = nrg_quant_rows(format), most = c->rows > 9 ? 9 : c->rows;
    if (!nrg_quant_has_scales(format))
        c->spec.dim = c->large ? (c->spec.dim + block - 1) / block * block : block * (1 + c->spec.dim % 5);
    if (c->spec.dim % c->spec.groups)
        c->spec.groups = 1;
    c->planes = c->n % 3 ? 1 : 2;
    c->rows = c->planes * together * (together == 1 ? most : (most + 3) / 4);
}

void sweep_norm_describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const nrg_norm_spec *s = &c->spec;
    sweep_append(text, ", %s, eps %g (mode %d), c %g, weight offset %g, %zu groups, gate %d of %s, format %d",
                 s->centred ? "layer" : "rms", s->eps, (int)s->eps_mode, s->c, (double)s->weight_offset, s->groups, (int)s->gate,
                 nrg_activation_name(s->activation), (int)s->format);
}

/* ---- forward ---- */

/* elements: of the second half of a pass in two (nrg/norm_parts.h), which has the same bits. */
typedef struct norm_case {
    nrg_norm_args args, elements;
    nrg_norm_more more;
} norm_case;
#define AT(field) SWEEP_AT(norm_case, field)
#define SPEC offsetof(sweep_case, spec)

/* In the order of their descriptions. */
enum { NONE = SWEEP_NOWHERE, RECORDS = SWEEP_SCRATCH };
static const unsigned char whole_slots[NRG_NORM_OPERANDS] = {SWEEP_X, SWEEP_Y,    SWEEP_Z,    SWEEP_W, SWEEP_B, SWEEP_O,
                                                             SWEEP_R, SWEEP_MEAN, SWEEP_RSTD, NONE,    NONE},
                           statistics_slots[NRG_NORM_STATISTICS_OPERANDS] = {SWEEP_X,    SWEEP_Y,    SWEEP_Z, SWEEP_R,
                                                                             SWEEP_MEAN, SWEEP_RSTD, RECORDS},
                           elements_slots[NRG_NORM_ELEMENTS_OPERANDS] = {SWEEP_X, SWEEP_Y, SWEEP_Z, SWEEP_W,
                                                                         SWEEP_B, SWEEP_R, SWEEP_O, RECORDS};
static const sweep_call whole = {&invoke_norm_forward, .slots = whole_slots, .part = {SPEC, AT(args)}, .store = AT(args.store)},
                        statistics = {&invoke_norm_statistics, .slots = statistics_slots, .part = {SPEC, AT(args), AT(more)}},
                        elements = {&invoke_norm_elements, .slots = elements_slots, .part = {SPEC, AT(elements), AT(more)},
                                    .store = AT(elements.store)};

static void init_args(const sweep_case *c, norm_case *n)
{
    n->args = nrg_norm_args_init(c->rows / c->planes, NULL, NULL, NULL);
    n->args.rows2 = c->planes;
    n->elements = n->args;
}

/* The operands of a combination but for outputs. */
static uint32_t inputs_of(const sweep_case *c, int combination)
{
    uint32_t there = combination >> SWEEP_RESIDUAL_SHIFT != SWEEP_RESIDUAL_NONE ? NRG_BIT(NRG_NORM_Y) : 0;
    there |= c->spec.gate ? NRG_BIT(NRG_NORM_Z) : 0;
    there |= combination & SWEEP_WEIGHT ? NRG_BIT(NRG_NORM_W) : 0;
    return there | (combination & SWEEP_BIAS ? NRG_BIT(NRG_NORM_B) : 0);
}

/* Tiles of rows that have loops of constant length, with the options of most calls. Instead of a residual after the norm: r
 * without y. */
static void draw_tiles(sweep_case *c, uint64_t *random)
{
    static const size_t dims[] = {64, 128};
    const uint64_t residual = c->way >> SWEEP_RESIDUAL_SHIFT;
    c->weights = NRG_BIT(SWEEP_W) | NRG_BIT(SWEEP_B);
    c->spec.dim = dims[c->length - 1];
    c->spec.centred = c->way & SWEEP_CENTRED;
    c->spec.eps = 1e-5;
    c->rows = 16 + sweep_draw(random, 48);
    c->planes = 1;
    init_args(c, sweep_structs(c));
    uint32_t there = inputs_of(c, (int)c->way) | NRG_BIT(NRG_NORM_O);
    if (residual == SWEEP_RESIDUAL_AFTER)
        there &= ~NRG_BIT(NRG_NORM_Y);
    there |= residual == SWEEP_RESIDUAL_R || residual == SWEEP_RESIDUAL_AFTER ? NRG_BIT(NRG_NORM_R) : 0;
    sweep_add(c, SWEEP_ALWAYS, &whole, there, 0);
}

static void draw(sweep_case *c, uint64_t *random)
{
    if (c->level == SWEEP_LOOPS) {
        draw_tiles(c, random);
        return;
    }
    const int combination = sweep_norm_draw(c, random), residual = combination >> SWEEP_RESIDUAL_SHIFT;
    init_args(c, sweep_structs(c));
    uint32_t there = inputs_of(c, combination) | NRG_BIT(NRG_NORM_O);
    /* r without y is a copy of x: rare, but allowed */
    if (residual == SWEEP_RESIDUAL_R || (residual == SWEEP_RESIDUAL_NONE && sweep_draw(random, 6) == 0))
        there |= NRG_BIT(NRG_NORM_R);
    there |= sweep_draw(random, 3) == 0 ? NRG_BIT(NRG_NORM_MEAN) : 0;
    there |= sweep_draw(random, 3) == 0 ? NRG_BIT(NRG_NORM_RSTD) : 0;
    norm_settle(&c->spec, c->rows && combination & SWEEP_WEIGHT);
    const int is_in_parts = c->n % 5 == 2;
    sweep_add(c, is_in_parts ? SWEEP_PLAIN : SWEEP_ALWAYS, &whole, there, 0);
    if (is_in_parts) {
        sweep_add(c, SWEEP_FUSED, &statistics, NRG_BIT(NRG_NORM_STATISTICS_STATISTICS), 0);
        sweep_add_last(c, SWEEP_FUSED, &elements);
    }
}

const sweep_family sweep_family_norm_forward = {.ways = {2, 16, 32, SWEEP_COMBINATIONS},
                                                SWEEP_NORM_LENGTHS,
                                                .rounds = {1, 1, 3},
                                                .draw = draw,
                                                .describe = sweep_norm_describe};

#ifndef NRG_NO_QUANTIZE
/* ---- to bytes, in lengths that formats have, without groups ---- */

static const unsigned char bytes_slots[NRG_NORM_OPERANDS] = {SWEEP_X, SWEEP_Y,    SWEEP_Z,    SWEEP_W, SWEEP_B,   NONE,
                                                             SWEEP_R, SWEEP_MEAN, SWEEP_RSTD, SWEEP_O, SWEEP_SUMS};
static const sweep_call bytes = {&invoke_norm_forward, .slots = bytes_slots, .part = {SPEC, AT(args)}, .store = AT(args.store)};

static void draw_bytes(sweep_case *c, uint64_t *random)
{
    const int combination = sweep_norm_draw(c, random);
    const nrg_quant_format format = (nrg_quant_format)(NRG_QUANT_Q8_0 + c->n % SWEEP_FORMATS);
    c->spec.groups = 1;
    c->spec.format = format;
    c->spec.rounding = c->n % 5 == 0 ? NRG_QUANT_ROUND_AWAY : NRG_QUANT_ROUND_TO_EVEN;
    sweep_norm_fit(c, format);
    init_args(c, sweep_structs(c));
    uint32_t there = inputs_of(c, combination) | NRG_BIT(NRG_NORM_PACKED);
    there |= nrg_quant_has_scales(format) ? NRG_BIT(NRG_NORM_SCALES) : 0;
    there |= combination >> SWEEP_RESIDUAL_SHIFT == SWEEP_RESIDUAL_R ? NRG_BIT(NRG_NORM_R) : 0;
    there |= sweep_draw(random, 3) == 0 ? NRG_BIT(NRG_NORM_MEAN) | NRG_BIT(NRG_NORM_RSTD) : 0;
    norm_settle(&c->spec, c->rows && combination & SWEEP_WEIGHT);
    sweep_add(c, SWEEP_ALWAYS, &bytes, there, 0);
}

const sweep_family sweep_family_norm_quantized = {
    .ways = {2, 8, 16}, .small = {40, 80, 200}, .large = SWEEP_NORM_LARGE, .draw = draw_bytes, .describe = sweep_norm_describe};
#endif

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

/* forward: the pass that leaves what a saved case takes. */
typedef struct backward_case {
    nrg_norm_backward_args args;
    nrg_norm_args forward;
} backward_case;
#undef AT
#define AT(field) SWEEP_AT(backward_case, field)

/* Not all that is laid out is given. */
static void give_backward(void *const *part)
{
    const nrg_norm_spec *spec = part[0];
    nrg_norm_backward_args *a = part[1];
    if (a->r)
        a->x = NULL;
    if (a->r || spec->residual_mode == NRG_RESIDUAL_AFTER)
        a->y = NULL;
    if (!spec->centred)
        a->mean = NULL;
}

static const unsigned char backward_slots[NRG_NORM_BACKWARD_OPERANDS] = {SWEEP_X,  SWEEP_Y,    SWEEP_Z,        SWEEP_W,
                                                                         SWEEP_B,  SWEEP_R_IN, SWEEP_D_O,      SWEEP_DR_IN,
                                                                         NONE,     SWEEP_DX,   SWEEP_DY,       SWEEP_DZ,
                                                                         SWEEP_DW, SWEEP_DB,   SWEEP_WORKSPACE},
                           saved_slots[NRG_NORM_BACKWARD_OPERANDS] = {
                               SWEEP_X,    SWEEP_Y,  SWEEP_Z,  SWEEP_W,  SWEEP_B,  SWEEP_R,  SWEEP_D_O,      SWEEP_DR_IN,
                               SWEEP_MEAN, SWEEP_DX, SWEEP_DY, SWEEP_DZ, SWEEP_DW, SWEEP_DB, SWEEP_WORKSPACE};
#define PHASES                                                                                                                   \
    &invoke_norm_backward, &invoke_norm_backward_reduce, .part = {SPEC, AT(args)}, .store = AT(args.store), .fix = give_backward
static const sweep_call backward = {PHASES, .slots = backward_slots}, saved_backward = {PHASES, .slots = saved_slots},
                        saving = {&invoke_norm_forward, .slots = whole_slots, .part = {SPEC, AT(forward)}};

#define OPERAND(name) NRG_BIT(NRG_NORM_BACKWARD_##name)

static uint32_t draw_inputs(const sweep_case *c, int combination, uint64_t *random)
{
    const int residual = combination >> SWEEP_RESIDUAL_SHIFT;
    uint32_t there = residual == SWEEP_RESIDUAL_R ? OPERAND(R) : 0;
    /* laid out, so that all that is drawn after them stays what it is, and not given */
    const int unread = residual == SWEEP_RESIDUAL_R && sweep_draw(random, 8) == 0;
    there |= residual != SWEEP_RESIDUAL_R || unread ? OPERAND(X) : 0;
    if (residual == SWEEP_RESIDUAL_SUM || unread || (residual == SWEEP_RESIDUAL_AFTER && sweep_draw(random, 2)))
        there |= OPERAND(Y);
    if (residual != SWEEP_RESIDUAL_AFTER && sweep_draw(random, 2))
        there |= OPERAND(DR_IN);
    there |= c->spec.gate ? OPERAND(Z) : 0;
    there |= combination & SWEEP_WEIGHT ? OPERAND(W) : 0;
    there |= combination & SWEEP_BIAS ? OPERAND(B) : 0;
    return there;
}

/* Mostly all of them; dy also where there was no y, dw and db where there was no w or b. */
static uint32_t draw_outputs(sweep_case *c, uint64_t *random)
{
    uint32_t there = sweep_draw(random, 8) ? OPERAND(DX) : 0;
    there |= sweep_draw(random, 2) ? OPERAND(DY) : 0;
    there |= c->spec.gate && sweep_draw(random, 4) ? OPERAND(DZ) : 0;
    there |= sweep_draw(random, 3) ? OPERAND(DW) : 0;
    there |= sweep_draw(random, 3) ? OPERAND(DB) : 0;
    c->accumulate = sweep_draw(random, 3) == 0;
    return there;
}

static void draw_backward(sweep_case *c, uint64_t *random)
{
    backward_case *b = sweep_structs(c);
    const int combination = sweep_norm_draw(c, random);
    sweep_draw_shares(random); /* no use: hashes depend on the number of draws */
    uint32_t there = draw_inputs(c, combination, random);
    there |= draw_outputs(c, random);
    b->args = nrg_norm_backward_args_init(c->rows / c->planes, NULL, NULL, NULL, NULL);
    b->args.rows2 = c->planes;
    b->args.accumulate = c->accumulate;
    b->forward = nrg_norm_args_init(c->rows / c->planes, NULL, NULL, NULL);
    b->forward.rows2 = c->planes;
    norm_settle(&c->spec, c->rows && combination & SWEEP_WEIGHT);
    /* with what a forward pass saved, where one can be run: it has the same inputs */
    const int is_after = c->spec.residual_mode == NRG_RESIDUAL_AFTER, has_r = c->rows && there & OPERAND(R),
              has_y = c->rows && there & OPERAND(Y);
    c->saved = sweep_draw(random, 3) == 0 && !has_r && (!is_after || has_y);
    sweep_add(c, c->saved ? SWEEP_PLAIN : SWEEP_ALWAYS, &backward, there, 0);
    c->operands[SWEEP_DW].is_read = c->operands[SWEEP_DB].is_read = 0; /* what there is before them is not drawn */
    if (!c->saved)
        return;
    uint32_t saved = NRG_BIT(NRG_NORM_O) | NRG_BIT(NRG_NORM_MEAN) | (there & OPERAND(W) ? NRG_BIT(NRG_NORM_W) : 0);
    saved |= !is_after && sweep_draw(random, 2) ? NRG_BIT(NRG_NORM_R) : 0;
    sweep_add_first(c, SWEEP_ALWAYS, &saving, saved);
    sweep_add_last(c, SWEEP_FUSED, &saved_backward);
}

const sweep_family sweep_family_norm_backward = {
    .ways = {1, 4, 32}, SWEEP_NORM_LENGTHS, .rounds = {1, 1, 2}, .draw = draw_backward, .describe = sweep_norm_describe};
#endif
