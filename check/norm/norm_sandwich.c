/* The cases of norm_sandwich, forward and backward, and to bytes, against two norms in turn.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/norm.h"
#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "norm.h"

/* plain: the two norms of the reference, whose tensor between them is r or, backward and where there is no r, the result. */
typedef struct sandwich_case {
    nrg_norm_spec first, second, plain_first, plain_second;
    nrg_norm_sandwich_args forward;
    nrg_norm_args ahead[2];
    nrg_norm_sandwich_backward_args backward;
    nrg_norm_backward_args back[2];
} sandwich_case;
#define AT(field) SWEEP_AT(sandwich_case, field)
enum { NONE = SWEEP_NOWHERE };

/* The first norm is the case's. */
static void draw_first(sweep_case *c, uint64_t *random)
{
    sweep_norm_draw(c, random);
    c->spec.gate = NRG_GATE_NONE;
    c->spec.activation = NRG_ACT_IDENTITY;
    c->spec.residual_mode = NRG_RESIDUAL_BEFORE;
}

/* A norm without weights has no offset of them. */
static void settle(const sweep_case *c, sandwich_case *s, int has_w1, int has_w2)
{
    norm_settle(&s->first, has_w1 && c->rows);
    norm_settle(&s->second, has_w2 && c->rows);
    s->plain_first = s->first;
    s->plain_second = s->second;
}

/* Adds a call, and the two of the reference. These cannot do it where x and r are of two dtypes: it is then the call itself. */
static void add_forward(sweep_case *c, sandwich_case *s, const sweep_call calls[3], uint32_t there)
{
    const int is_wide = c->spec.r_dtype != c->spec.dtype && c->spec.r_dtype != NRG_DTYPE_SAME;
    s->forward = nrg_norm_sandwich_args_init(c->rows / c->planes, NULL, NULL, NULL, NULL, NULL, NULL);
    s->ahead[0] = nrg_norm_args_init(c->rows / c->planes, NULL, NULL, NULL);
    s->forward.rows2 = s->ahead[0].rows2 = c->planes;
    s->ahead[1] = s->ahead[0];
    settle(c, s, there & NRG_BIT(NRG_SANDWICH_W1), there & NRG_BIT(NRG_SANDWICH_W2));
    s->plain_first.residual_mode = NRG_RESIDUAL_AFTER;
    s->plain_second.y_dtype = s->plain_second.r_dtype = NRG_DTYPE_SAME;
    sweep_add(c, is_wide ? SWEEP_ALWAYS : SWEEP_FUSED, &calls[0], there | (is_wide ? NRG_BIT(NRG_SANDWICH_R) : 0), 0);
    for (int i = 1; i < 3 && !is_wide; i++)
        sweep_add_last(c, SWEEP_PLAIN, &calls[i]);
}

/* A call and its reference, with the operands of norms in the order of their description. */
enum { X = SWEEP_IN, Y, W1, B1, W2, B2 };
enum { R = SWEEP_OUT, O, MEAN1, RSTD1, MEAN2, RSTD2 };
static const unsigned char by_r[2][NRG_NORM_OPERANDS] = {{X, Y, NONE, W1, B1, R, NONE, MEAN1, RSTD1, NONE, NONE},
                                                         {R, NONE, NONE, W2, B2, O, NONE, MEAN2, RSTD2, NONE, NONE}},
                           by_o[2][NRG_NORM_OPERANDS] = {{X, Y, NONE, W1, B1, O, NONE, MEAN1, RSTD1, NONE, NONE},
                                                         {O, NONE, NONE, W2, B2, O, NONE, MEAN2, RSTD2, NONE, NONE}};
#define SANDWICH &invoke_norm_sandwich_forward, .part = {AT(first), AT(second), AT(forward)}, .store = AT(forward.store)
#define FIRST &invoke_norm_forward, .part = {AT(plain_first), AT(ahead[0])}
#define SECOND &invoke_norm_forward, .part = {AT(plain_second), AT(ahead[1])}
static const sweep_call through_r[] = {{SANDWICH}, {FIRST, .slots = by_r[0]}, {SECOND, .slots = by_r[1]}},
                        through_o[] = {{SANDWICH}, {FIRST, .slots = by_o[0]}, {SECOND, .slots = by_o[1]}};

static uint32_t some_of(uint32_t operands, int count, uint64_t *random)
{
    uint32_t there = 0;
    for (int i = 0; i < count; i++)
        there |= sweep_draw(random, 2) ? operands & NRG_BIT(i) : 0;
    return there;
}

#define FORWARD(name) NRG_BIT(NRG_SANDWICH_##name)

static void draw_forward(sweep_case *c, sandwich_case *s, uint64_t *random)
{
    uint32_t there = FORWARD(W1) | FORWARD(B1) | FORWARD(W2) | FORWARD(B2) | FORWARD(R) | FORWARD(MEAN1) | FORWARD(RSTD1) |
                     FORWARD(MEAN2) | FORWARD(RSTD2);
    there = some_of(there, NRG_SANDWICH_OPERANDS, random) | FORWARD(O);
    c->weights = FORWARD(W1) | FORWARD(B1) | FORWARD(W2) | FORWARD(B2);
    c->accumulate = 0;
    add_forward(c, s, there & FORWARD(R) ? through_r : through_o, there);
}

#ifndef NRG_NO_BACKWARD
enum { BACK_X = SWEEP_IN, BACK_R, D_O, DR_IN, BACK_W1, BACK_W2 };
enum { DX = SWEEP_OUT, DY, DW1, DB1, DW2, DB2 };
static const unsigned char back_slots[2][NRG_NORM_BACKWARD_OPERANDS] = {
    {NONE, NONE, NONE, BACK_W2, NONE, BACK_R, D_O, DR_IN, NONE, DX, DY, NONE, DW2, DB2, SWEEP_SCRATCH},
    {BACK_X, NONE, NONE, BACK_W1, NONE, NONE, DX, NONE, NONE, DX, NONE, NONE, DW1, DB1, SWEEP_SCRATCH}};
#define NORM_BACKWARD &invoke_norm_backward, &invoke_norm_backward_reduce
static const sweep_call backward = {&invoke_norm_sandwich_backward, &invoke_norm_sandwich_backward_reduce,
                                    .part = {AT(first), AT(second), AT(backward)}, .store = AT(backward.store)},
                        back[] = {{NORM_BACKWARD, .slots = back_slots[0], .part = {AT(plain_second), AT(back[0])}},
                                  {NORM_BACKWARD, .slots = back_slots[1], .part = {AT(plain_first), AT(back[1])}}};

#define BACKWARD(name) NRG_BIT(NRG_SANDWICH_BACKWARD_##name)

static void draw_backward(sweep_case *c, sandwich_case *s, uint64_t *random)
{
    const uint32_t there = some_of(BACKWARD(DR_IN) | BACKWARD(W1) | BACKWARD(W2) | BACKWARD(DY) | BACKWARD(DW1) | BACKWARD(DB1) |
                                       BACKWARD(DW2) | BACKWARD(DB2),
                                   NRG_SANDWICH_BACKWARD_OPERANDS, random);
    c->weights = BACKWARD(W1) | BACKWARD(W2);
    s->backward = nrg_norm_sandwich_backward_args_init(c->rows / c->planes, NULL, NULL, NULL, NULL, NULL, NULL);
    s->back[0] = nrg_norm_backward_args_init(c->rows / c->planes, NULL, NULL, NULL, NULL);
    s->backward.rows2 = s->back[0].rows2 = c->planes;
    s->backward.accumulate = s->back[0].accumulate = c->accumulate;
    s->back[1] = s->back[0];
    settle(c, s, (there & BACKWARD(W1)) != 0, (there & BACKWARD(W2)) != 0);
    s->plain_first.y_dtype = s->plain_first.r_dtype = NRG_DTYPE_SAME;
    sweep_add(c, SWEEP_FUSED, &backward, there, 0);
    sweep_add_last(c, SWEEP_PLAIN, &back[0]);
    sweep_add_last(c, SWEEP_PLAIN, &back[1]);
}
#endif

static void draw(sweep_case *c, uint64_t *random)
{
    uint64_t of_second = ~(c->seed << 9);
    sandwich_case *s = sweep_structs(c);
    draw_first(c, random);
    sweep_draw_shares(random); /* no use: hashes depend on the number of draws */
    c->accumulate = sweep_draw(random, 3) == 0;
    s->first = s->second = c->spec;
    s->second.centred = sweep_draw(&of_second, 3) == 0;
    s->second.eps_mode = sweep_draw(&of_second, 2) ? NRG_EPS_MEAN : (nrg_eps_mode)sweep_draw(&of_second, 5);
    s->second.eps = (const double[]){1e-6, 0, 0.5}[sweep_draw(&of_second, 3)];
    s->second.c = sweep_draw(&of_second, 4) ? 0 : 1;
    s->second.weight_offset = sweep_draw(&of_second, 2) ? 1.0f : 0.0f;
    s->second.w_dtype = sweep_draw(&of_second, 2) ? c->spec.dtype : NRG_F32;
    s->second.groups = c->spec.dim % 2 == 0 && sweep_draw(&of_second, 4) == 0 ? 2 : 1;
#ifndef NRG_NO_BACKWARD
    if (sweep_draw(&of_second, 3) == 0) {
        draw_backward(c, s, random);
        return;
    }
#endif
    draw_forward(c, s, random);
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const sandwich_case *s = sweep_const_structs(c);
    sweep_norm_describe(c, text);
    sweep_append(text, ", then %s", s->second.centred ? "layer" : "rms");
}

const sweep_family sweep_family_norm_sandwich = {
    .ways = {2, 4, 16}, .small = {40, 100, 300}, .large = SWEEP_NORM_LARGE, .draw = draw, .describe = describe};

#ifndef NRG_NO_QUANTIZE
/* ---- to bytes, in lengths that formats have, without groups in the second norm; r is there in every case ---- */

static const unsigned char bytes_slots[NRG_SANDWICH_OPERANDS] = {SWEEP_X,        SWEEP_Y,       SWEEP_W, SWEEP_B,    SWEEP_D_O,
                                                                 SWEEP_DR_IN,    SWEEP_R,       NONE,    SWEEP_MEAN, SWEEP_RSTD,
                                                                 SWEEP_NEW_MEAN, SWEEP_NEW_VAR, SWEEP_O, SWEEP_SUMS};
static const unsigned char by_bytes[2][NRG_NORM_OPERANDS] = {
    {SWEEP_X, SWEEP_Y, NONE, SWEEP_W, SWEEP_B, SWEEP_R, NONE, SWEEP_MEAN, SWEEP_RSTD, NONE, NONE},
    {SWEEP_R, NONE, NONE, SWEEP_D_O, SWEEP_DR_IN, NONE, NONE, SWEEP_NEW_MEAN, SWEEP_NEW_VAR, SWEEP_O, SWEEP_SUMS}};
static const sweep_call to_bytes[] = {
    {SANDWICH, .slots = bytes_slots}, {FIRST, .slots = by_bytes[0]}, {SECOND, .slots = by_bytes[1]}};

static void draw_bytes(sweep_case *c, uint64_t *random)
{
    uint64_t of_second = ~(c->seed << 9);
    sandwich_case *s = sweep_structs(c);
    const nrg_quant_format format = (nrg_quant_format)(NRG_QUANT_Q8_0 + c->n % SWEEP_FORMATS);
    draw_first(c, random);
    sweep_norm_fit(c, format);
    s->first = s->second = c->spec;
    s->second.centred = sweep_draw(&of_second, 3) == 0;
    s->second.weight_offset = sweep_draw(&of_second, 2) ? 1.0f : 0.0f;
    s->second.w_dtype = sweep_draw(&of_second, 2) ? c->spec.dtype : NRG_F32;
    s->second.accuracy = sweep_draw(&of_second, 4) ? c->spec.accuracy : NRG_ACCURACY_EXACT;
    s->second.groups = 1;
    s->second.format = format;
    s->second.rounding = c->n % 5 == 0 ? NRG_QUANT_ROUND_AWAY : NRG_QUANT_ROUND_TO_EVEN;
    uint32_t there = FORWARD(R) | FORWARD(PACKED) | (nrg_quant_has_scales(format) ? FORWARD(SCALES) : 0);
    static const uint32_t optional[] = {
        FORWARD(W1), FORWARD(B1), FORWARD(W2), FORWARD(B2), FORWARD(MEAN1) | FORWARD(RSTD1), FORWARD(MEAN2) | FORWARD(RSTD2)};
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
        there |= sweep_draw(random, 2) ? optional[i] : 0;
    add_forward(c, s, to_bytes, there);
}

const sweep_family sweep_family_norm_sandwich_quantized = {
    .ways = {2, 4, 16}, .small = {40, 80, 200}, .large = SWEEP_NORM_LARGE, .draw = draw_bytes, .describe = describe};
#endif
