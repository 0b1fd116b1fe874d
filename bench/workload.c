/* The memory a case works on, and its calls.
 *
 * Memory is what aligned_alloc gives, without madvise: what a user's tensors live in, on small pages unless the system decides
 * otherwise. Every operand has an allocation of its own, made for the case and freed after it.
 *
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

enum { X, Y, W, B, R, O };
enum { PAGE = 4096, LINE = 64 };

/* Where operands begin within a page, in cache lines. A load waits for an earlier store to the same offset modulo 4096 (the CPU
 * compares the low 12 bits first), so one placement would measure one accident; operands of a user lie anywhere. Within a
 * placement all are at least five lines apart, so none is an accident of the worst kind. */
static const unsigned char place[BENCH_PLACEMENTS][BENCH_OPERANDS] = {
    [0] = {[X] = 0, [Y] = 11, [W] = 22, [B] = 33, [R] = 43, [O] = 54},
    [1] = {[X] = 5, [Y] = 37, [W] = 58, [B] = 16, [R] = 26, [O] = 47},
    [2] = {[X] = 61, [Y] = 19, [W] = 8, [B] = 51, [R] = 30, [O] = 40},
    [3] = {[X] = 29, [Y] = 1, [W] = 44, [B] = 60, [R] = 13, [O] = 21},
    [4] = {[X] = 50, [Y] = 27, [W] = 36, [B] = 3, [R] = 62, [O] = 10},
};

static char *at(const bench_memory *m, int operand, unsigned placement)
{
    return m->slab[operand] ? m->slab[operand] + place[placement][operand] * LINE : NULL;
}

/* One page of numbers with magnitudes in [0.5, 2) and either sign. Made of bits, so that the three dtypes need no conversion. */
static void fill_page(char page[PAGE], nrg_dtype dtype, uint32_t seed)
{
    for (size_t i = 0; i < PAGE / 2; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t random = seed >> 8;
        uint16_t sign = (uint16_t)((random & 1) << 15), number;
        if (dtype == NRG_F16)
            number = (uint16_t)(sign | (14 << 10) | (random >> 1 & 0x7ff));
        else /* bf16, and the upper half of f32 */
            number = (uint16_t)(sign | (126 << 7) | (random >> 1 & 0xff));
        if (dtype == NRG_F32 && i % 2 == 0)
            number = (uint16_t)random; /* the lower half, on a little-endian machine */
        memcpy(page + 2 * i, &number, 2);
    }
}

static char *make_slab(size_t bytes, nrg_dtype dtype, uint32_t seed)
{
    char page[PAGE];
    bytes = (bytes + 2 * PAGE - 1) / PAGE * PAGE; /* a page of room for the placements */
    char *slab = aligned_alloc(PAGE, bytes);
    if (!slab)
        return NULL;
    fill_page(page, dtype, seed);
    for (size_t i = 0; i < bytes; i += PAGE)
        memcpy(slab + i, page, PAGE);
    return slab;
}

int bench_memory_make(bench_memory *m, bench_shape shape, nrg_dtype dtype, int add, int bias)
{
    memset(m, 0, sizeof *m);
    m->row_bytes = shape.dim * nrg_dtype_size(dtype);
    m->tensor_bytes = m->row_bytes * shape.rows;
    for (int i = 0; i < BENCH_OPERANDS; i++) {
        if ((!add && (i == Y || i == R)) || (!bias && i == B))
            continue;
        m->slab[i] = make_slab(i == W || i == B ? m->row_bytes : m->tensor_bytes, dtype, 12345u + 777u * (unsigned)i);
        if (!m->slab[i]) {
            bench_memory_free(m);
            return 0;
        }
    }
    return 1;
}

void bench_memory_free(bench_memory *m)
{
    for (int i = 0; i < BENCH_OPERANDS; i++)
        free(m->slab[i]);
    memset(m, 0, sizeof *m);
}

void bench_call_bind(bench_call *call, const bench_case *c, const bench_memory *m)
{
    call->isa = c->isa;
    call->spec = c->op->centred ? nrg_layer_norm_spec(c->shape.dim, 1e-5) : nrg_rms_norm_spec(c->shape.dim, 1e-6);
    call->spec.dtype = c->dtype;
    call->spec.store = c->store;
    for (unsigned p = 0; p < BENCH_PLACEMENTS; p++) {
        nrg_norm_args *args = &call->args[p];
        *args = nrg_norm_args_init(c->shape.rows, at(m, X, p), at(m, O, p));
        args->w = at(m, W, p);
        args->b = c->op->bias ? at(m, B, p) : NULL;
        args->y = c->op->add ? at(m, Y, p) : NULL;
        args->r = c->op->add ? at(m, R, p) : NULL;
    }
}

void bench_call_before(void *call)
{
    nrg_isa isa = ((const bench_call *)call)->isa;
    if (nrg_isa_active() != isa)
        nrg_isa_set(isa);
}

void bench_call_run(void *call, unsigned placement, size_t calls)
{
    const bench_call *c = call;
    const nrg_norm_args *args = &c->args[placement];
    for (; calls; calls--)
        nrg_norm_forward(&c->spec, args, 0, 1);
}

void bench_bare_bind(bench_bare *bare, const limit_loop *loop, const bench_case *c, const bench_memory *m)
{
    bare->loop = loop;
    for (unsigned p = 0; p < BENCH_PLACEMENTS; p++)
        bare->job[p] = (limit_job){
            .x = at(m, X, p),
            .y = c->op->add ? at(m, Y, p) : NULL,
            .w = at(m, W, p),
            .b = c->op->bias ? at(m, B, p) : NULL,
            .r = c->op->add ? at(m, R, p) : NULL,
            .o = at(m, O, p),
            .rows = c->shape.rows,
            .row_bytes = m->row_bytes,
        };
}

void bench_bare_run(void *bare, unsigned placement, size_t calls)
{
    const bench_bare *b = bare;
    const limit_job *job = &b->job[placement];
    void (*run)(const limit_job *) = b->loop->run;
    for (; calls; calls--)
        run(job);
}
