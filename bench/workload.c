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

enum { PAGE = 4096, LINE = 64 };

/* Where operands begin within a page, in cache lines. A load waits for an earlier store to the same offset modulo 4096 (the CPU
 * compares the low 12 bits first), so one placement would measure one accident; operands of a user lie anywhere. Within a
 * placement the first ten that are there are at least five lines apart, so none is an accident of the worst kind; for more there
 * is no room. */
enum { PLACES = 11 };
static const unsigned char place[BENCH_PLACEMENTS][PLACES] = {
    {0, 11, 22, 33, 43, 54, 16, 38, 27, 48, 0}, {5, 37, 58, 16, 26, 47, 31, 10, 52, 21, 0},
    {61, 19, 8, 51, 30, 40, 45, 24, 56, 13, 0}, {29, 1, 44, 60, 13, 21, 7, 49, 34, 54, 0},
    {50, 27, 36, 3, 62, 10, 15, 43, 56, 20, 0},
};

char *bench_memory_at(const bench_memory *m, int operand, unsigned placement)
{
    int before = 0;
    for (int i = 0; i < operand; i++)
        before += m->slab[i] != NULL;
    return m->slab[operand] ? m->slab[operand] + place[placement][before < PLACES ? before : PLACES - 1] * LINE : NULL;
}

/* One page of numbers. Made of bits, so that the three dtypes need no conversion. */
static void fill_page(char page[PAGE], nrg_dtype dtype, bench_fill fill, uint32_t seed)
{
    for (size_t i = 0; i < PAGE / 2; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t random = seed >> 8, up = fill == BENCH_WIDE ? (random >> 12) % 5 : 0;
        uint16_t sign = fill == BENCH_POSITIVE ? 0 : (uint16_t)((random & 1) << 15), number;
        if (fill == BENCH_WIDE && dtype == NRG_F16)
            number = (uint16_t)(sign | (12 + up) << 10 | (random >> 1 & 0x3ff));
        else if (fill == BENCH_WIDE)
            number = (uint16_t)(sign | (124 + up) << 7 | (random >> 1 & 0x7f));
        else if (dtype == NRG_F16)
            number = (uint16_t)(sign | (14 << 10) | (random >> 1 & 0x7ff));
        else /* bf16, and the upper half of f32 */
            number = (uint16_t)(sign | (126 << 7) | (random >> 1 & 0xff));
        if (dtype == NRG_F32 && i % 2 == 0)
            number = (uint16_t)random; /* the lower half, on a little-endian machine */
        memcpy(page + 2 * i, &number, 2);
    }
}

/* So many pages are filled, and repeated: a prime number, or a channel whose elements lie a multiple of a page apart would have
 * the same number everywhere, and no variance. */
enum { PAGES = 31 };

static char *make_slab(size_t bytes, nrg_dtype dtype, bench_fill fill, uint32_t seed)
{
    bytes = (bytes + 2 * PAGE - 1) / PAGE * PAGE; /* a page of room for the placements */
    char *slab = aligned_alloc(PAGE, bytes);
    if (!slab)
        return NULL;
    for (size_t i = 0; i < bytes / PAGE; i++) {
        if (i < PAGES)
            fill_page(slab + i * PAGE, dtype, fill, seed + 99991u * (uint32_t)i);
        else
            memcpy(slab + i * PAGE, slab + (i - PAGES) * PAGE, PAGE);
    }
    return slab;
}

int bench_memory_make(bench_memory *m, const bench_case *c, size_t n)
{
    const bench_family *f = c->family;
    memset(m, 0, sizeof *m);
    bench_memory_of operand[BENCH_OPERANDS];
    memset(operand, 0, sizeof operand);
    for (; n; n--, c++) {
        for (int i = 0; i < BENCH_OPERANDS; i++)
            if (bench_operand_bytes(c, i) > operand[i].bytes)
                operand[i] = bench_operand_of(c, i);
        size_t scratch = f->scratch ? f->scratch(c) : 0;
        if (scratch > m->scratch)
            m->scratch = scratch;
    }
    for (int i = 0; i < BENCH_OPERANDS; i++) {
        if (!f->call && f->operand[i].kind == BENCH_SCRATCH) {
            operand[i] = bench_operand_of(&c[-1], i);
            operand[i].bytes = m->scratch;
        }
        if (!operand[i].bytes)
            continue;
        m->slab[i] = make_slab(operand[i].bytes, operand[i].dtype, operand[i].fill, 12345u + 777u * (unsigned)i);
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

static size_t bound_size(const bench_family *f) { return f->call ? sizeof(bench_parts) : f->bound_size; }

static const void *bound_at(const bench_call *call, unsigned placement)
{
    return call->bound + placement * bound_size(call->family);
}

nrg_status bench_call_share(const bench_call *call, unsigned placement, int phase, int ith, int nth)
{
    const bench_parts *parts = bound_at(call, placement);
    if (call->family->call)
        return call->family->share[phase](parts->part, ith, nth);
    return call->family->phase[phase](bound_at(call, placement), ith, nth);
}

int bench_call_phases(const bench_call *call)
{
    int n = 0;
    while (n < BENCH_PHASES && (call->family->call ? call->family->share[n] != NULL : call->family->phase[n] != NULL))
        n++;
    return n;
}

/* A call that is refused would be very fast. */
static const char *refused(bench_call *call)
{
    bench_call_before(call);
    if (nrg_isa_active() != call->isa)
        return "the path was refused";
    for (int phase = 0; phase < bench_call_phases(call); phase++) {
        nrg_status status = bench_call_share(call, 0, phase, 0, 1);
        if (status != NRG_OK)
            return nrg_status_string(status);
    }
    return NULL;
}

const char *bench_call_bind(bench_call *call, const bench_case *c, const bench_memory *m)
{
    *call = (bench_call){c->family, c->isa, calloc(BENCH_PLACEMENTS, bound_size(c->family))};
    if (!call->bound)
        return "not enough memory";
    for (unsigned p = 0; p < BENCH_PLACEMENTS; p++) {
        char *operand[BENCH_OPERANDS];
        for (int i = 0; i < BENCH_OPERANDS; i++)
            operand[i] = bench_operand_is_there(c, i) ? bench_memory_at(m, i, p) : NULL;
        if (c->family->call)
            bench_parts_bind((bench_parts *)(void *)(call->bound + p * sizeof(bench_parts)), c, operand);
        else
            c->family->bind(call->bound + p * c->family->bound_size, c, operand, m->scratch);
    }
    return refused(call);
}

void bench_call_free(bench_call *call)
{
    free(call->bound);
    call->bound = NULL;
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
    c->family->run(bound_at(c, placement), calls);
}
