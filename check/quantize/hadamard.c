/* The cases of hadamard, forward and backward: rows of each length it has.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/quantize.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

enum { DIMS = 4 };

static const size_t large[][4] = {{1, 1, 70, 0}, {1, 1, 33, 0}};
enum { LARGE = sizeof large / sizeof large[0] };

static const sweep_call forward = {&invoke_hadamard_forward, .part = {SWEEP_STRUCTS_AT}};
#ifdef NRG_NO_BACKWARD
#define backward forward
#else
static const sweep_call backward = {&invoke_hadamard_backward, .part = {SWEEP_STRUCTS_AT}};
#endif

static void draw(sweep_case *c, uint64_t *random)
{
    static const unsigned most[] = {1, 1, 9};
    nrg_hadamard_args *args = sweep_structs(c);
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, random);
    c->rows = shape[0] * shape[2];
    *args = nrg_hadamard_args_init(c->spec.dtype, c->rows, (size_t)64 << c->way, NULL, NULL);
    sweep_add(c, SWEEP_ALWAYS, c->n / DIMS % 2 ? &backward : &forward, 0, 0);
}

const sweep_family sweep_family_hadamard = {SWEEP_LENGTHS(DIMS, 12, 40, 160, LARGE), .draw = draw};
