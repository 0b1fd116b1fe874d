/* SPDX-License-Identifier: MIT */
#include "plain_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check/layout.h"

static void make(plain_case *p, sweep_level level, uint64_t number)
{
    size_t at = 0;
    sweep_make(level, number, &p->c);
    for (int i = 0; i < SWEEP_OPERANDS; i++) {
        sweep_operand *o = &p->c.operands[i];
        o->stride = o->length * sweep_type_size(o->type);
        o->run_stride = o->run * o->stride;
        o->offset = at;
        at += (o->rows * o->stride + 63) / 64 * 64;
    }
    p->c.bytes = at ? at : 64;
    p->memory = malloc(p->c.bytes);
    ck_assert_ptr_nonnull(p->memory);
    sweep_fill(&p->c, p->memory);
    sweep_describe(&p->c, p->text);
}

void *plain_array(const plain_case *p, int operand) { return sweep_place(&p->c, operand, p->memory); }

void plain_each(const char *op, int i, int parts, uint64_t most, plain_body *body)
{
    const sweep_level level = test_small() ? SWEEP_QUICK : SWEEP_DEFAULT;
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    plain_case p;
    for (int kernel = 0; kernel < sweep_kernels; kernel++) {
        const uint64_t first = sweep_first(level, kernel), end = sweep_first(level, kernel + 1);
        /* odd, as the numbers of options that take turns are mostly even */
        const uint64_t step = (end - first) / (test_small() ? most / 20 + 1 : most) | 1;
        if (strcmp(sweep_kernel_op(kernel), op) != 0)
            continue;
        for (uint64_t n = first + (uint64_t)i * step; n < end; n += (uint64_t)parts * step) {
            make(&p, level, n);
            for (size_t path = 0; path < path_count; path++) {
                snprintf(test_note, sizeof test_note, "%s: %.400s", nrg_isa_name(paths[path]), p.text);
                ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                body(&p, paths[path]);
            }
            free(p.memory);
        }
    }
}
