/* The cases of relative_shift, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/relative.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

/* Every number of keys, as Transformer-XL and XLNet have it or with any shift, forward and backward. */
enum { TRANSFORMER_XL, XLNET, ANY, KINDS };
#ifdef NRG_NO_BACKWARD
enum { WAYS = KINDS };
#else
enum { WAYS = 2 * KINDS };
#endif

static const size_t large[][4] = {{1, 2, 70, 65},  {2, 1, 3, 1000}, {1, 3, 130, 7},
                                  {1, 1, 1, 4097}, {2, 2, 33, 129}, {1, 8, 64, 64}};
enum { LARGE = sizeof large / sizeof large[0] };

static const sweep_call forward = {&invoke_relative_shift_forward, .part = {SWEEP_STRUCTS_AT},
                                   .store = SWEEP_STRUCTS_AT + offsetof(nrg_relative_shift_args, store)};
#ifndef NRG_NO_BACKWARD
static const sweep_call backward = {&invoke_relative_shift_backward, .part = {SWEEP_STRUCTS_AT},
                                    .store = SWEEP_STRUCTS_AT + offsetof(nrg_relative_shift_args, store)};
#endif

static void draw(sweep_case *c, uint64_t *random)
{
    static const unsigned most[] = {2, 3, 9};
    nrg_relative_shift_args *a = sweep_structs(c);
    const sweep_call *call = &forward;
    const int kind = (int)(c->n % KINDS);
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, random);
    const size_t queries = shape[2], keys = shape[3];
    size_t rel = kind == TRANSFORMER_XL ? keys : queries + keys;
    int64_t shift = kind == TRANSFORMER_XL ? (int64_t)queries - 1 : (int64_t)queries;
    if (kind == ANY) {
        rel = 1 + sweep_draw(random, 2 * (unsigned)keys);
        shift = (int64_t)sweep_draw(random, 3 * (unsigned)keys) - (int64_t)keys;
    }
    uint32_t transposed = sweep_draw(random, 3) ? 0 : NRG_BIT(NRG_RELATIVE_SHIFT_IN);
    transposed |= sweep_draw(random, 3) ? 0 : NRG_BIT(NRG_RELATIVE_SHIFT_OUT);
    *a = nrg_relative_shift_args_init(c->spec.dtype, shape[0], shape[1], queries, keys, rel, shift);
    c->accumulate = a->accumulate = sweep_draw(random, 3) == 0;
    c->rows = shape[0];
#ifndef NRG_NO_BACKWARD
    if (c->way >= KINDS)
        call = &backward;
#endif
    sweep_add(c, SWEEP_ALWAYS, call, 0, transposed);
}

const sweep_family sweep_family_relative_shift = {SWEEP_LENGTHS(WAYS, 40, 140, 600, LARGE), .draw = draw};
