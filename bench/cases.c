/* The cases, expanded from kernels.def.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "cases.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The ops of kernels that take a nrg_norm_job. */
static const bench_op norm_ops[] = {
    {"rms", 0, 0, 0},
    {"layer", 1, 0, 1},
    {"add+rms", 0, 1, 0},
    {"add+layer", 1, 1, 1},
};

/* One token (1 row), a prompt (512), far out of cache (8192), QK-norm (4096 rows of one head). 1x64 is the cost of a call. */
static const bench_shape norm_shapes[] = {
    {1, 64},     {1, 768},    {1, 2048},    {1, 4096},  {1, 8192},   {512, 768},
    {512, 4096}, {512, 8192}, {8192, 4096}, {4096, 64}, {4096, 128},
};

/* A new kind of job needs <job>_ops and <job>_shapes here: without them this does not compile. */
static const struct kernel {
    const char *name, *dtype;
    const bench_op *ops;
    size_t op_count;
    const bench_shape *shapes;
    size_t shape_count;
} kernels[] = {
#define NRG_KERNEL(op, dtype, job) {#op, #dtype, job##_ops, COUNT(job##_ops), job##_shapes, COUNT(job##_shapes)},
#include "kernels.def"
#undef NRG_KERNEL
};

static nrg_dtype dtype_of(const char *name)
{
    for (nrg_dtype dtype = NRG_F32; dtype <= NRG_BF16; dtype++)
        if (strcmp(nrg_dtype_name(dtype), name) == 0)
            return dtype;
    return NRG_DTYPE_SAME;
}

void bench_case_name(const bench_case *c, char name[BENCH_NAME_MAX])
{
    snprintf(name, BENCH_NAME_MAX, "%s/%s/%s/%s/%zux%zu", c->kernel, nrg_dtype_name(c->dtype), nrg_isa_name(c->isa), c->op->name,
             c->shape.rows, c->shape.dim);
}

void bench_each_case(void (*visit)(const bench_case *c, void *ctx), void *ctx)
{
    for (const struct kernel *k = kernels; k < kernels + COUNT(kernels); k++)
        for (int isa = 0; isa < NRG_ISA_COUNT; isa++) {
            if (!nrg_isa_supported((nrg_isa)isa))
                continue;
            for (size_t op = 0; op < k->op_count; op++)
                for (size_t shape = 0; shape < k->shape_count; shape++) {
                    bench_case c = {k->name, dtype_of(k->dtype), (nrg_isa)isa, &k->ops[op], k->shapes[shape], NRG_STORE_AUTO};
                    visit(&c, ctx);
                }
        }
}

const bench_op *bench_find_op(const char *name)
{
    for (size_t i = 0; i < COUNT(norm_ops); i++)
        if (strcmp(norm_ops[i].name, name) == 0)
            return &norm_ops[i];
    return NULL;
}

size_t bench_case_bytes(const bench_case *c)
{
    size_t row = c->shape.dim * nrg_dtype_size(c->dtype);
    return c->shape.rows * row * (c->op->add ? 4 : 2) + row * (c->op->bias ? 2 : 1);
}
