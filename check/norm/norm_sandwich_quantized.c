/* The cases of norm_sandwich_quantized, against nrg_norm_forward twice, the second time to bytes; in lengths that formats have,
 * without groups in the second norm.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/norm_sandwich.h"
#include "../../src/operands/quantize.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "norm.h"

enum { FORMATS = NRG_QUANT_INT8_128 };

typedef struct sandwich_call {
    nrg_norm_spec first, second;
    nrg_norm_sandwich_args args;
} sandwich_call;
#define PARTS(call) ((void *const[]){&(call)->first, &(call)->second, &(call)->args})

/* r is there in every case, o in none. */
static const unsigned char slots[] = {
    [NRG_SANDWICH_X] = SWEEP_X,
    [NRG_SANDWICH_Y] = SWEEP_Y,
    [NRG_SANDWICH_W1] = SWEEP_W,
    [NRG_SANDWICH_B1] = SWEEP_B,
    [NRG_SANDWICH_W2] = SWEEP_D_O,
    [NRG_SANDWICH_B2] = SWEEP_DR_IN,
    [NRG_SANDWICH_R] = SWEEP_R,
    [NRG_SANDWICH_O] = SWEEP_NOWHERE,
    [NRG_SANDWICH_MEAN1] = SWEEP_MEAN,
    [NRG_SANDWICH_RSTD1] = SWEEP_RSTD,
    [NRG_SANDWICH_MEAN2] = SWEEP_NEW_MEAN,
    [NRG_SANDWICH_RSTD2] = SWEEP_NEW_VAR,
    [NRG_SANDWICH_PACKED] = SWEEP_O,
    [NRG_SANDWICH_SCALES] = SWEEP_SUMS,
};

static nrg_quant_format format_of(const sweep_case *c) { return (nrg_quant_format)(NRG_QUANT_Q8_0 + c->n % FORMATS); }

/* The first norm is the case's; the second one is drawn. */
static sandwich_call call_of(const sweep_case *c)
{
    uint64_t random = ~(c->seed << 9);
    sandwich_call call = {.first = c->spec, .second = c->spec};
    nrg_norm_spec *s = &call.second;
    s->centred = sweep_draw(&random, 3) == 0;
    s->weight_offset = sweep_draw(&random, 2) ? 1.0f : 0.0f;
    s->w_dtype = sweep_draw(&random, 2) ? s->dtype : NRG_F32;
    s->accuracy = sweep_draw(&random, 4) ? s->accuracy : NRG_ACCURACY_EXACT;
    s->groups = 1;
    s->format = format_of(c);
    s->rounding = c->n % 5 == 0 ? NRG_QUANT_ROUND_AWAY : NRG_QUANT_ROUND_TO_EVEN;
    call.args = nrg_norm_sandwich_args_init(c->rows / c->planes, NULL, NULL, NULL, NULL, NULL, NULL);
    call.args.rows2 = c->planes;
    call.args.store = c->store;
    return call;
}

/* A norm without weights has no offset of them. */
static void settle(sandwich_call *call, int has_w1, int has_w2)
{
    norm_settle(&call->first, has_w1);
    norm_settle(&call->second, has_w2);
}

#define OPERAND(name) NRG_BIT(NRG_SANDWICH_##name)

/* Lengths of one chunk of the kernels and of several; planes of whole groups of rows; more rows than go through the first norm
 * before they go through the second, where they are long. */
static void fit(sweep_case *c)
{
    const nrg_quant_format format = format_of(c);
    const size_t block = nrg_quant_block(format), together = nrg_quant_rows(format), most = c->rows > 9 ? 9 : c->rows;
    if (!nrg_quant_has_scales(format))
        c->spec.dim = c->large ? (c->spec.dim + block - 1) / block * block : block * (1 + c->spec.dim % 5);
    if (c->spec.dim % c->spec.groups)
        c->spec.groups = 1;
    c->planes = c->n % 3 ? 1 : 2;
    c->rows = c->planes * together * (together == 1 ? most : (most + 3) / 4);
}

static void make(sweep_case *c)
{
    uint64_t random = c->seed;
    sweep_norm_draw(c, sweep_family_norm_sandwich_quantized.ways[c->level], &random);
    c->spec.gate = NRG_GATE_NONE;
    c->spec.activation = NRG_ACT_IDENTITY;
    c->spec.residual_mode = NRG_RESIDUAL_BEFORE;
    c->spec.weights = NRG_WEIGHTS_ROW;
    fit(c);
    sandwich_call call = call_of(c);
    uint32_t there = OPERAND(R) | OPERAND(PACKED) | (nrg_quant_has_scales(call.second.format) ? OPERAND(SCALES) : 0);
    static const uint32_t optional[] = {
        OPERAND(W1), OPERAND(B1), OPERAND(W2), OPERAND(B2), OPERAND(MEAN1) | OPERAND(RSTD1), OPERAND(MEAN2) | OPERAND(RSTD2)};
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
        there |= sweep_draw(&random, 2) ? optional[i] : 0;
    settle(&call, (there & OPERAND(W1)) != 0, (there & OPERAND(W2)) != 0);
    sweep_add_call(c, &nrg_call_norm_sandwich_forward, PARTS(&call), slots, there, 0);
    sweep_lay_out(c, &random);
}

/* Two norms. Where x and r are of two dtypes they cannot: then it is the call itself, as in the other shares. */
static nrg_status in_turn(const sandwich_call *call)
{
    const nrg_norm_sandwich_args *a = &call->args;
    nrg_norm_spec first = call->first, second = call->second;
    first.residual_mode = NRG_RESIDUAL_AFTER;
    second.y_dtype = second.r_dtype = NRG_DTYPE_SAME;
    nrg_norm_args one = nrg_norm_args_init(a->rows, a->x, a->w1, a->r), two = nrg_norm_args_init(a->rows, a->r, a->w2, NULL);
    one.rows2 = two.rows2 = a->rows2;
    memcpy(one.x_stride, a->x_stride, sizeof one.x_stride);
    one.y = a->y;
    memcpy(one.y_stride, a->y_stride, sizeof one.y_stride);
    one.b = a->b1;
    one.mean = a->mean1;
    one.rstd = a->rstd1;
    one.o_stride[0] = two.x_stride[0] = a->r_stride[0];
    one.o_stride[1] = two.x_stride[1] = a->r_stride[1];
    two.b = a->b2;
    two.mean = a->mean2;
    two.rstd = a->rstd2;
    two.packed = a->packed;
    memcpy(two.packed_stride, a->packed_stride, sizeof two.packed_stride);
    two.scales = a->scales;
    memcpy(two.scales_stride, a->scales_stride, sizeof two.scales_stride);
    const nrg_status status = nrg_norm_forward(&first, &one, 0, 1);
    return status == NRG_OK ? nrg_norm_forward(&second, &two, 0, 1) : status;
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    sandwich_call call = call_of(c);
    nrg_status status = NRG_OK;
    const int r_is_wide = c->spec.r_dtype != c->spec.dtype && c->spec.r_dtype != NRG_DTYPE_SAME;
    sweep_bind_call(c, &nrg_call_norm_sandwich_forward, PARTS(&call), slots, memory);
    settle(&call, call.args.w1 != NULL, call.args.w2 != NULL);
    if (c->recompute && !r_is_wide)
        return in_turn(&call);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_norm_sandwich_forward(&call.first, &call.second, &call.args, ith, nth));
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    sweep_norm_describe(c, text);
    sweep_append(text, ", then %s, format %d", call_of(c).second.centred ? "layer" : "rms", (int)format_of(c));
}

const sweep_family sweep_family_norm_sandwich_quantized = {
    .ways = {2, 4, 16}, .small = {40, 80, 200}, .large = SWEEP_NORM_LARGE, .make = make, .run = run, .describe = describe};
