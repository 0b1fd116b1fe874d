/* The cases of softmax, whole rows, parts of rows and cross-entropy, whose kernel it is, and of softmax_backward: rows of any
 * length, with and without each of the things that scores have added to them or that they are cut by.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../../src/operands/softmax.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

enum { WHOLE, LOG, PART, CROSS_ENTROPY, WAYS };

/* A row of more than one chunk, of more than a segment, and what is streamed. */
static const size_t large[][4] = {{1, 2, 70, 65},  {2, 1, 3, 1000}, {1, 3, 5, 2047},  {1, 1, 2, 2049}, {1, 1, 1, 9001},
                                  {2, 2, 33, 129}, {1, 1, 1, 4096}, {1, 2, 500, 640}, {2, 3, 5, 64},   {1, 2, 3, 1024},
                                  {1, 2, 3, 4096}, {1, 1, 2, 8200}, {1, 1, 2, 4300}};
enum { LARGE = sizeof large / sizeof large[0] };
static const unsigned most[] = {2, 4, 7};

#define LENGTHS(ways_) SWEEP_LENGTHS(ways_, 40, 140, 600, LARGE)

static void draw_cut(const size_t shape[4], int *causal, int64_t *first_position, size_t *window, uint64_t *random)
{
    const int64_t keys = (int64_t)shape[3], queries = (int64_t)shape[2];
    *causal = sweep_draw(random, 3) == 0;
    *first_position =
        sweep_draw(random, 3) ? keys - queries : (int64_t)sweep_draw(random, (unsigned)(2 * shape[3] + 8)) - keys - 4;
    *window = sweep_draw(random, 3) == 0 ? 1 + sweep_draw(random, (unsigned)shape[3] + 20) : SIZE_MAX;
}

static const float scales[] = {1, 1, 0.125f, -0.7f, 40, 0.08838835f};
static const float caps[] = {INFINITY, INFINITY, INFINITY, 30, 0.5f};

/* ---- forward ---- */

/* Softmax, whole or in parts; cross-entropy, forward and backward. */
typedef struct softmax_case {
    nrg_softmax_args args;
    nrg_softmax_state state;
    nrg_cross_entropy_args ahead, back;
} softmax_case;
#define AT(field) SWEEP_AT(softmax_case, field)

static const sweep_call whole = {&invoke_softmax_forward, .part = {AT(args)}, .store = AT(args.store)},
                        in_parts = {&invoke_softmax_part, .part = {AT(args), AT(state)}, .store = AT(args.store)};

/* Cross-entropy: rows of a head, and then their gradient. */
enum { X = SWEEP_IN, IDS, D_LOSS };
enum { LOSS = SWEEP_OUT, M, OTHERS, DX };
static const unsigned char ahead_slots[] = {X, IDS, LOSS, M, OTHERS};
static const sweep_call ahead = {&invoke_cross_entropy_forward, .slots = ahead_slots, .part = {AT(ahead)}};
#ifndef NRG_NO_BACKWARD
static const unsigned char back_slots[] = {X, IDS, M, OTHERS, D_LOSS, DX};
static const sweep_call back = {&invoke_cross_entropy_backward, .slots = back_slots, .part = {AT(back)}};
#endif

static void draw_cross_entropy(sweep_case *c, softmax_case *s, const size_t shape[4])
{
    s->ahead = nrg_cross_entropy_args_init(c->spec.dtype, c->rows, shape[3], NULL, NULL, NULL, NULL, NULL);
    s->ahead.ignore_index = c->seed % 3 ? -100 : 0;
    s->back = s->ahead;
    sweep_add(c, SWEEP_ALWAYS, &ahead, 0, 0);
#ifndef NRG_NO_BACKWARD
    sweep_add(c, SWEEP_ALWAYS, &back, 0, 0);
#endif
}

static void draw(sweep_case *c, uint64_t *random)
{
    softmax_case *s = sweep_structs(c);
    nrg_softmax_args *a = &s->args;
    uint32_t there = 0;
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, random);
    c->rows = shape[0] * shape[1] * shape[2];
    if (c->way == CROSS_ENTROPY) {
        draw_cross_entropy(c, s, shape);
        return;
    }
    *a = nrg_softmax_args_init(c->spec.dtype, shape[0], shape[1], shape[2], shape[3], NULL, NULL);
    s->state = nrg_softmax_state_init(NULL, NULL, NULL);
    draw_cut(shape, &a->causal, &a->first_position, &a->window, random);
    a->log = c->way == LOG;
    a->scale = scales[sweep_draw(random, NRG_COUNT(scales))];
    a->cap = caps[sweep_draw(random, NRG_COUNT(caps))];
    a->mask_dtype = (nrg_dtype)sweep_draw(random, 4);
    if (c->way != PART && sweep_draw(random, 3) == 0) { /* scores and nothing else, which have a walk of their own */
        a->scale = fabsf(a->scale);
        a->cap = INFINITY;
        a->causal = 0;
        a->window = SIZE_MAX;
    } else {
        if (sweep_draw(random, 2)) {
            there |= NRG_BIT(NRG_SOFTMAX_MASK);
            there |= sweep_draw(random, 3) ? 0 : NRG_BIT(NRG_SOFTMAX_SLOPES);
        }
        there |= sweep_draw(random, 3) ? 0 : NRG_BIT(NRG_SOFTMAX_DIAGONALS);
        there |= sweep_draw(random, 3) ? 0 : NRG_BIT(NRG_SOFTMAX_SINKS);
    }
    if (c->way == PART)
        there |= sweep_draw(random, 4) ? NRG_BIT(NRG_SOFTMAX_PART_M_IN) | NRG_BIT(NRG_SOFTMAX_PART_SUM_IN) : 0;
    sweep_add(c, SWEEP_ALWAYS, c->way == PART ? &in_parts : &whole, there, 0);
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const softmax_case *s = sweep_const_structs(c);
    if (c->way == CROSS_ENTROPY && operand == IDS)
        sweep_fill_positions(c, operand, 0, (int32_t)s->ahead.classes - 1, memory, random);
    else
        sweep_fill_rows(c, operand, memory, random);
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const kinds[] = {"", " log", " part ", " cross-entropy"};
    const softmax_case *s = sweep_const_structs(c);
    const nrg_softmax_args *a = &s->args;
    sweep_append(text, ",%s times %g, cap %g, position %ld, window %zu%s", kinds[c->way], (double)a->scale, (double)a->cap,
                 (long)a->first_position, a->window, a->causal ? ", causal" : "");
}

const sweep_family sweep_family_softmax = {LENGTHS(WAYS), .draw = draw, .fill = fill, .describe = describe};

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

static const sweep_call backward = {&invoke_softmax_backward, .part = {SWEEP_STRUCTS_AT},
                                    .store = SWEEP_STRUCTS_AT + offsetof(nrg_softmax_backward_args, store)};

static void draw_backward(sweep_case *c, uint64_t *random)
{
    nrg_softmax_backward_args *a = sweep_structs(c);
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, random);
    *a = nrg_softmax_backward_args_init(c->spec.dtype, shape[0], shape[1], shape[2], shape[3], NULL, NULL, NULL);
    c->rows = shape[0] * shape[1] * shape[2];
    draw_cut(shape, &a->causal, &a->first_position, &a->window, random);
    a->log = c->way == LOG;
    a->scale = scales[sweep_draw(random, NRG_COUNT(scales))];
    a->cap = caps[sweep_draw(random, NRG_COUNT(caps))];
    sweep_add(c, SWEEP_ALWAYS, &backward, isfinite(a->cap) ? NRG_BIT(NRG_SOFTMAX_BACKWARD_X) : 0, 0);
}

const sweep_family sweep_family_softmax_backward = {LENGTHS(2), .draw = draw_backward};
#endif
