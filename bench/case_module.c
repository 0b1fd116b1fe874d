/* The cases of nrg-bench, as a shared module.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "case_module.h"
#include "workload.h"

typedef struct named_case {
    bench_case c;
    char name[BENCH_NAME_MAX];
} named_case;

static struct {
    nrg_isa isa;
    named_case *cases;
    size_t count, room;
    const bench_function *bound;
    bench_parts parts[BENCH_PLACEMENTS];
} module;

static void add(const bench_case *c, void *unused)
{
    (void)unused;
    if (c->isa != module.isa)
        return;
    if (module.count == module.room) {
        module.room += 1024;
        module.cases = realloc(module.cases, module.room * sizeof *module.cases);
        if (!module.cases)
            abort();
    }
    named_case *new = &module.cases[module.count++];
    new->c = *c;
    bench_case_name(c, new->name);
}

static const char *open_path(const char *path)
{
    module.isa = nrg_isa_active();
    if (path && (nrg_isa_from_name(path, &module.isa) != NRG_OK || nrg_isa_set(module.isa) != NRG_OK))
        return NULL;
    module.count = 0;
    bench_each_case(NULL, add, NULL);
    return nrg_isa_name(module.isa);
}

static size_t count(void) { return module.count; }

static const char *name(size_t i) { return module.cases[i].name; }

static size_t bytes(size_t i) { return bench_case_bytes(&module.cases[i].c); }

static size_t operands(size_t i, case_operand operand[CASE_OPERANDS])
{
    static const case_role role_of[] = {
        [NRG_IN] = CASE_INPUT, [NRG_OUT] = CASE_OUTPUT, [NRG_INOUT] = CASE_OUTPUT, [NRG_SCRATCH] = CASE_WORKSPACE};
    _Static_assert((int)CASE_OPERANDS >= (int)NRG_OPERANDS, "all operands of a call have a place");
    const bench_case *c = &module.cases[i].c;
    const nrg_call *described = bench_function_of(c)->call;
    size_t n = 0;
    for (int k = 0; k < described->operand_count; k++) {
        const bench_operand o = bench_operand_of(c, k);
        if (o.bytes)
            operand[n++] = (case_operand){.name = described->operands[k].name,
                                          .part = described->operands[k].part,
                                          .role = role_of[described->operands[k].role],
                                          .is_fixed = o.kind == BENCH_ASIDE,
                                          .dtype = (int)o.dtype,
                                          .fill = (int)o.fill,
                                          .bytes = o.span};
    }
    return n;
}

static void fill(const case_operand *operand, unsigned seed, char *slab, size_t size)
{
    bench_slab_fill(slab, size, (nrg_dtype)operand->dtype, (bench_fill)operand->fill, seed);
}

static void bind(size_t i, unsigned placement, char *const at[CASE_OPERANDS])
{
    const bench_case *c = &module.cases[i].c;
    char *operand[BENCH_OPERANDS] = {NULL};
    for (int k = 0; k < bench_function_of(c)->call->operand_count; k++)
        operand[k] = bench_operand_of(c, k).bytes ? *at++ : NULL;
    bench_parts_bind(&module.parts[placement], c, operand);
    module.bound = bench_function_of(c);
}

static const char *call(unsigned placement) { return bench_try(module.bound, module.parts[placement].part); }

static void run(unsigned placement, size_t calls) { module.bound->run(module.parts[placement].part, calls); }

extern const case_module bench_case_module;
__attribute__((visibility("default"))) const case_module bench_case_module = {
    .version = CASE_MODULE_VERSION,
    .placements = BENCH_PLACEMENTS,
    .library = nrg_version,
    .open = open_path,
    .count = count,
    .name = name,
    .bytes = bytes,
    .operands = operands,
    .slab_bytes = bench_slab_bytes,
    .fill = fill,
    .place = bench_offset,
    .bind = bind,
    .call = call,
    .run = run,
};
