/* The cases of head_bias_pair and its gradient.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/relative.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

enum { WAYS = 3 }; /* for every length of a head */

static const size_t large[][4] = {{1, 8, 20, 64}, {2, 3, 100, 16}, {1, 2, 3, 513}, {1, 1, 2, 4100}, {3, 16, 5, 40}};
enum { LARGE = sizeof large / sizeof large[0] };

#define LENGTHS SWEEP_LENGTHS(WAYS, 40, 140, 600, LARGE)

/* Of the two outputs or, backward, inputs one is there. */
typedef struct pair_layout {
    int by_head[2], q_by_head, has[2], has_dq, has_sums[2];
} pair_layout;

/* A vector whose output is left out is, too. */
static void give_vectors(void *const *part)
{
    nrg_head_bias_args *a = part[0];
    a->u = a->o_u ? a->u : NULL;
    a->v = a->o_v ? a->v : NULL;
}
static const sweep_call forward = {&invoke_head_bias_forward, .part = {SWEEP_STRUCTS_AT},
                                   .store = SWEEP_STRUCTS_AT + offsetof(nrg_head_bias_args, store), .fix = give_vectors};

static pair_layout draw(sweep_case *c, int is_backward, uint64_t *random)
{
    static const unsigned most[] = {2, 5, 6};
    nrg_head_bias_args *a = sweep_structs(c);
    pair_layout p;
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, random);
    c->rows = shape[0];
    *a = nrg_head_bias_args_init(c->spec.dtype, shape[0], shape[1], shape[2], shape[3]);
    const nrg_dtype bias_dtype = sweep_draw(random, 2) ? NRG_F32 : c->spec.dtype;
    a->bias_dtype = is_backward ? NRG_DTYPE_SAME : bias_dtype;
    p.q_by_head = sweep_draw(random, 3) == 0;
    p.has[0] = sweep_draw(random, 5) != 0;
    p.has[1] = !p.has[0] || sweep_draw(random, 5) != 0;
    for (int i = 0; i < 2; i++) {
        p.by_head[i] = sweep_draw(random, 3) == 0;
        p.has_sums[i] = sweep_draw(random, 3) != 0;
    }
    p.has_dq = sweep_draw(random, 4) != 0;
    c->accumulate = a->accumulate = sweep_draw(random, 3) == 0 && is_backward;
    if (sweep_draw(random, 3) == 0) /* as it has to be in place */
        p.by_head[!p.has[0]] = p.q_by_head;
    return p;
}

static void draw_forward(sweep_case *c, uint64_t *random)
{
    const pair_layout p = draw(c, 0, random);
    uint32_t there = 0, transposed = p.q_by_head ? NRG_BIT(NRG_HEAD_BIAS_Q) : 0;
    for (int i = 0; i < 2; i++) {
        there |= p.has[i] ? NRG_BIT(NRG_HEAD_BIAS_U + i) | NRG_BIT(NRG_HEAD_BIAS_O_U + i) : 0;
        transposed |= p.by_head[i] ? NRG_BIT(NRG_HEAD_BIAS_O_U + i) : 0;
    }
    sweep_add(c, SWEEP_ALWAYS, &forward, there, transposed);
}

const sweep_family sweep_family_head_bias_pair = {LENGTHS, .draw = draw_forward};

#ifndef NRG_NO_BACKWARD
static const sweep_call backward = {&invoke_head_bias_backward, .part = {SWEEP_STRUCTS_AT},
                                    .store = SWEEP_STRUCTS_AT + offsetof(nrg_head_bias_args, store)};

static void draw_backward(sweep_case *c, uint64_t *random)
{
    const pair_layout p = draw(c, 1, random);
    uint32_t there = p.has_dq ? NRG_BIT(NRG_HEAD_BIAS_BACKWARD_DQ) : 0,
             transposed = p.q_by_head ? NRG_BIT(NRG_HEAD_BIAS_BACKWARD_DQ) : 0;
    for (int i = 0; i < 2; i++) {
        there |= p.has[i] ? NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_U + i) : 0;
        there |= p.has_sums[i] ? NRG_BIT(NRG_HEAD_BIAS_BACKWARD_DU + i) : 0;
        transposed |= p.by_head[i] ? NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_U + i) : 0;
    }
    c->weights = NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_U) | NRG_BIT(NRG_HEAD_BIAS_BACKWARD_D_O_V);
    sweep_add(c, SWEEP_ALWAYS, &backward, there, transposed);
}

const sweep_family sweep_family_head_bias_pair_backward = {LENGTHS, .draw = draw_backward};
#endif
