/* The cases, expanded from kernels.def.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "internal.h"

/* An op without a family under its own name does not compile: see family.h. */
static const struct kernel {
    const char *name;
    const bench_family *family;
} kernels[] = {
#define NRG_KERNEL(family, op, job) {#op, &bench_##op},
#include "kernels.def"
#undef NRG_KERNEL
};

const char *bench_kernel_of(const bench_family *family)
{
    for (const struct kernel *k = kernels; k < kernels + NRG_COUNT(kernels); k++)
        if (k->family == family)
            return k->name;
    abort(); /* a family that kernels.def does not have */
}

void bench_shape_name(const bench_family *family, bench_shape shape, char name[BENCH_SHAPE_MAX])
{
    if (family->flat)
        snprintf(name, BENCH_SHAPE_MAX, "%zu", shape.dim);
    else if (shape.channels)
        snprintf(name, BENCH_SHAPE_MAX, "%zux%zux%zux%zu", shape.rows, shape.channels, shape.height, shape.width);
    else
        snprintf(name, BENCH_SHAPE_MAX, "%zux%zu", shape.rows, shape.dim);
}

void bench_case_name(const bench_case *c, char name[BENCH_NAME_MAX])
{
    char shape[BENCH_SHAPE_MAX];
    bench_shape_name(c->family, c->shape, shape);
    snprintf(name, BENCH_NAME_MAX, "%s/%s/%s/%s/%s", bench_kernel_of(c->family), nrg_dtype_name(c->dtype), nrg_isa_name(c->isa),
             c->op->name, shape);
}

const bench_family *bench_family_at(size_t i) { return i < NRG_COUNT(kernels) ? kernels[i].family : NULL; }

int bench_op_has(const bench_op *op, nrg_dtype dtype) { return !op->exact || dtype == NRG_F32; }

void bench_each_case(const bench_family *family, void (*visit)(const bench_case *c, void *ctx), void *ctx)
{
    for (const struct kernel *k = kernels; k < kernels + NRG_COUNT(kernels); k++)
        for (int dtype = NRG_F32; (!family || k->family == family) && dtype <= NRG_BF16; dtype++)
            for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
                for (const bench_op *op = k->family->ops; op < k->family->ops + k->family->op_count; op++)
                    for (size_t shape = 0; shape < op->shape_count; shape++) {
                        bench_case c = {k->family, (nrg_dtype)dtype, (nrg_isa)isa, op, op->shapes[shape], NRG_STORE_AUTO, NULL};
                        if (bench_op_has(op, c.dtype) && nrg_isa_supported(c.isa))
                            visit(&c, ctx);
                    }
}

bench_case bench_case_of(const char *kernel, const char *op, nrg_dtype dtype, nrg_isa isa, bench_shape shape)
{
    for (const struct kernel *k = kernels; k < kernels + NRG_COUNT(kernels); k++)
        for (size_t i = 0; strcmp(k->name, kernel) == 0 && i < k->family->op_count; i++)
            if (strcmp(k->family->ops[i].name, op) == 0)
                return (bench_case){k->family, dtype, isa, &k->family->ops[i], shape, NRG_STORE_AUTO, NULL};
    fprintf(stderr, "nrg-bench: no op of this name: %s/%s\n", kernel, op);
    exit(2);
}

size_t bench_case_bytes(const bench_case *c)
{
    size_t sum = 0;
    for (int i = 0; i < BENCH_OPERANDS; i++) {
        const bench_operand o = bench_operand_of(c, i);
        sum += o.kind == BENCH_ASIDE ? 0 : o.bytes;
    }
    return sum;
}

size_t bench_case_tensors(const bench_case *c)
{
    size_t n = 0;
    for (int i = 0; i < BENCH_OPERANDS; i++) {
        const bench_operand o = bench_operand_of(c, i);
        n += o.bytes && (o.kind == BENCH_IN || o.kind == BENCH_OUT);
    }
    return n;
}

size_t bench_shape_elements(bench_shape shape) { return shape.rows * shape.dim; }

int bench_shape_equal(bench_shape a, bench_shape b)
{
    return a.rows == b.rows && a.dim == b.dim && a.channels == b.channels && a.height == b.height && a.width == b.width;
}

size_t bench_case_read_twice(const bench_case *c)
{
    const nrg_call *call = bench_function_of(c)->call;
    size_t tensors = 0;
    for (int i = 0; i < call->operand_count; i++)
        tensors += (size_t)bench_names(c->family->read_twice, &call->operands[i]);
    size_t bytes = c->family->set_elements ? tensors * c->family->set_elements(c) * nrg_dtype_size(c->dtype) : 0;
    return bytes > nrg_l2_bytes() ? bytes : 0;
}

bench_shape bench_scan_scores(const bench_op *op, size_t *row, size_t *rows)
{
    (void)op;
    enum { QUERIES_MAX = 32, HEADS_MAX = 8 };
    const size_t queries = *rows < QUERIES_MAX ? *rows : QUERIES_MAX, groups = *rows / queries,
                 heads = groups < HEADS_MAX ? groups : HEADS_MAX, batch = groups / heads;
    *rows = batch * heads * queries;
    return (bench_shape)BENCH_IMAGES(batch, heads, queries, *row);
}

int bench_admits(const char *filter, const char *name)
{
    const size_t length = strlen(name);
    if (!filter || strcmp(filter, "all") == 0)
        return 1;
    for (const char *at = filter; at; at = strchr(at, ','), at += at != NULL)
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return 1;
    return 0;
}
