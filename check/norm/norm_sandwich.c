/* The cases of norm_sandwich, forward and backward, against two norms in turn.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/norm_sandwich.h"
#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "norm.h"

/* The structs of a call, forward or backward. */
typedef struct sandwich_call {
    nrg_norm_spec first, second;
    nrg_norm_sandwich_args forward;
    nrg_norm_sandwich_backward_args backward;
} sandwich_call;
#define PARTS(call, args) ((void *const[]){&(call)->first, &(call)->second, &(call)->args})

static uint64_t draws_of(const sweep_case *c) { return ~(c->seed << 9); }

/* The first norm is the case's; the second one is drawn. */
static sandwich_call call_of(const sweep_case *c, int *is_backward)
{
    static const double eps[] = {1e-6, 0, 0.5};
    uint64_t random = draws_of(c);
    sandwich_call call = {.first = c->spec, .second = c->spec};
    nrg_norm_spec *s = &call.second;
    s->centred = sweep_draw(&random, 3) == 0;
    s->eps_mode = sweep_draw(&random, 2) ? NRG_EPS_MEAN : (nrg_eps_mode)sweep_draw(&random, 5);
    s->eps = eps[sweep_draw(&random, 3)];
    s->c = sweep_draw(&random, 4) ? 0 : 1;
    s->weight_offset = sweep_draw(&random, 2) ? 1.0f : 0.0f;
    s->w_dtype = sweep_draw(&random, 2) ? s->dtype : NRG_F32;
    norm_settle(s, 1);
    s->groups = s->dim % 2 == 0 && sweep_draw(&random, 4) == 0 ? 2 : 1;
    call.forward = nrg_norm_sandwich_args_init(c->rows / c->planes, NULL, NULL, NULL, NULL, NULL, NULL);
    call.backward = nrg_norm_sandwich_backward_args_init(c->rows / c->planes, NULL, NULL, NULL, NULL, NULL, NULL);
    call.forward.rows2 = call.backward.rows2 = c->planes;
    call.forward.store = call.backward.store = c->store;
    call.backward.accumulate = c->accumulate;
    *is_backward = sweep_draw(&random, 3) == 0;
#ifdef NRG_NO_BACKWARD
    *is_backward = 0;
#endif
    return call;
}

/* A norm without weights has no offset of them. */
static void settle(sandwich_call *call, int has_w1, int has_w2)
{
    norm_settle(&call->first, has_w1);
    norm_settle(&call->second, has_w2);
}

static int r_is_wide(const sweep_case *c) { return c->spec.r_dtype != c->spec.dtype && c->spec.r_dtype != NRG_DTYPE_SAME; }

static uint32_t some_of(uint32_t operands, int count, uint64_t *random)
{
    uint32_t there = 0;
    for (int i = 0; i < count; i++)
        there |= sweep_draw(random, 2) ? operands & NRG_BIT(i) : 0;
    return there;
}

#define FORWARD(name) NRG_BIT(NRG_SANDWICH_##name)
#define BACKWARD(name) NRG_BIT(NRG_SANDWICH_BACKWARD_##name)

static void make(sweep_case *c)
{
    uint64_t random = c->seed;
    int is_backward;
    sweep_norm_draw(c, sweep_family_norm_sandwich.ways[c->level], &random);
    c->spec.gate = NRG_GATE_NONE;
    c->spec.activation = NRG_ACT_IDENTITY;
    c->spec.residual_mode = NRG_RESIDUAL_BEFORE;
    c->reduce_shares = sweep_draw_shares(&random);
    c->accumulate = sweep_draw(&random, 3) == 0;
    sandwich_call call = call_of(c, &is_backward);
    if (is_backward) {
        const uint32_t there = some_of(BACKWARD(DR_IN) | BACKWARD(W1) | BACKWARD(W2) | BACKWARD(DY) | BACKWARD(DW1) |
                                           BACKWARD(DB1) | BACKWARD(DW2) | BACKWARD(DB2),
                                       NRG_SANDWICH_BACKWARD_OPERANDS, &random);
        c->weights = BACKWARD(W1) | BACKWARD(W2);
        settle(&call, (there & BACKWARD(W1)) != 0, (there & BACKWARD(W2)) != 0);
        sweep_add_call(c, &nrg_call_norm_sandwich_backward, PARTS(&call, backward), NULL, there, 0);
    } else {
        uint32_t there = some_of(FORWARD(W1) | FORWARD(B1) | FORWARD(W2) | FORWARD(B2) | FORWARD(R) | FORWARD(MEAN1) |
                                     FORWARD(RSTD1) | FORWARD(MEAN2) | FORWARD(RSTD2),
                                 NRG_SANDWICH_OPERANDS, &random);
        there |= FORWARD(O) | (r_is_wide(c) ? FORWARD(R) : 0);
        c->weights = FORWARD(W1) | FORWARD(B1) | FORWARD(W2) | FORWARD(B2);
        settle(&call, (there & FORWARD(W1)) != 0, (there & FORWARD(W2)) != 0);
        sweep_add_call(c, &nrg_call_norm_sandwich_forward, PARTS(&call, forward), NULL, there, 0);
    }
    sweep_lay_out(c, &random);
}

/* ---- forward ---- */

/* Two norms: r lies where o will be, if it has no place. */
static nrg_status in_turn(const sandwich_call *call)
{
    const nrg_norm_sandwich_args *a = &call->forward;
    nrg_norm_spec first = call->first, second = call->second;
    first.residual_mode = NRG_RESIDUAL_AFTER;
    second.y_dtype = second.r_dtype = NRG_DTYPE_SAME;
    nrg_norm_args one = nrg_norm_args_init(a->rows, a->x, a->w1, a->r ? a->r : a->o),
                  two = nrg_norm_args_init(a->rows, one.o, a->w2, a->o);
    one.rows2 = two.rows2 = a->rows2;
    memcpy(one.x_stride, a->x_stride, sizeof one.x_stride);
    one.y = a->y;
    memcpy(one.y_stride, a->y_stride, sizeof one.y_stride);
    one.b = a->b1;
    one.mean = a->mean1;
    one.rstd = a->rstd1;
    one.o_stride[0] = two.x_stride[0] = a->r ? a->r_stride[0] : a->o_stride[0];
    one.o_stride[1] = two.x_stride[1] = a->r ? a->r_stride[1] : a->o_stride[1];
    memcpy(two.o_stride, a->o_stride, sizeof two.o_stride);
    two.b = a->b2;
    two.mean = a->mean2;
    two.rstd = a->rstd2;
    const nrg_status status = nrg_norm_forward(&first, &one, 0, 1);
    return status == NRG_OK ? nrg_norm_forward(&second, &two, 0, 1) : status;
}

static nrg_status run_forward(const sweep_case *c, sandwich_call *call, unsigned char *memory)
{
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_norm_sandwich_forward, PARTS(call, forward), NULL, memory);
    settle(call, call->forward.w1 != NULL, call->forward.w2 != NULL);
    if (c->recompute && !r_is_wide(c))
        return in_turn(call);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_norm_sandwich_forward(&call->first, &call->second, &call->forward, ith, nth));
    return status;
}

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

static nrg_status both_phases(const nrg_norm_spec *spec, const nrg_norm_backward_args *args)
{
    const nrg_status status = nrg_norm_backward(spec, args, 0, 1);
    return status == NRG_OK ? nrg_norm_backward_reduce(spec, args, 0, 1) : status;
}

/* Two gradients: dr lies where dx will be. */
static nrg_status backward_in_turn(const sandwich_call *call)
{
    const nrg_norm_sandwich_backward_args *a = &call->backward;
    nrg_norm_spec first = call->first, second = call->second;
    nrg_norm_backward_args one = nrg_norm_backward_args_init(a->rows, a->x, a->w1, a->dx, a->dx),
                           two = nrg_norm_backward_args_init(a->rows, NULL, a->w2, a->d_o, a->dx);
    one.rows2 = two.rows2 = a->rows2;
    one.accumulate = two.accumulate = a->accumulate;
    memcpy(one.x_stride, a->x_stride, sizeof one.x_stride);
    one.d_o_stride[0] = one.dx_stride[0] = two.dx_stride[0] = a->dx_stride[0];
    one.d_o_stride[1] = one.dx_stride[1] = two.dx_stride[1] = a->dx_stride[1];
    one.dw = a->dw1;
    one.db = a->db1;
    two.r = a->r;
    memcpy(two.r_stride, a->r_stride, sizeof two.r_stride);
    memcpy(two.d_o_stride, a->d_o_stride, sizeof two.d_o_stride);
    two.dr_in = a->dr_in;
    memcpy(two.dr_in_stride, a->dr_in_stride, sizeof two.dr_in_stride);
    two.dy = a->dy;
    memcpy(two.dy_stride, a->dy_stride, sizeof two.dy_stride);
    two.dw = a->dw2;
    two.db = a->db2;
    two.workspace = one.workspace = a->workspace;
    two.workspace_size = one.workspace_size = a->workspace_size;
    first.y_dtype = first.r_dtype = NRG_DTYPE_SAME;
    const nrg_status status = both_phases(&second, &two);
    return status == NRG_OK ? both_phases(&first, &one) : status;
}

static nrg_status run_backward(const sweep_case *c, sandwich_call *call, unsigned char *memory)
{
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_norm_sandwich_backward, PARTS(call, backward), NULL, memory);
    settle(call, call->backward.w1 != NULL, call->backward.w2 != NULL);
    if (c->recompute)
        return backward_in_turn(call);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_norm_sandwich_backward(&call->first, &call->second, &call->backward, ith, nth));
    SWEEP_EACH_SHARE(status, c, c->reduce_shares,
                     nrg_norm_sandwich_backward_reduce(&call->first, &call->second, &call->backward, ith, nth));
    return status;
}
#endif

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    int is_backward;
    sandwich_call call = call_of(c, &is_backward);
    /* the second norm takes dtypes from the first */
    call.second.y_dtype = call.first.y_dtype;
    call.second.r_dtype = call.first.r_dtype;
#ifndef NRG_NO_BACKWARD
    if (is_backward)
        return run_backward(c, &call, memory);
#endif
    return run_forward(c, &call, memory);
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    int is_backward;
    const sandwich_call call = call_of(c, &is_backward);
    sweep_norm_describe(c, text);
    sweep_append(text, ", then %s%s", call.second.centred ? "layer" : "rms", is_backward ? ", backward" : "");
}

const sweep_family sweep_family_norm_sandwich = {
    .ways = {2, 4, 16}, .small = {40, 100, 300}, .large = SWEEP_NORM_LARGE, .make = make, .run = run, .describe = describe};
