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

size_t bench_offset(size_t nth, unsigned placement) { return (size_t)place[placement][nth < PLACES ? nth : PLACES - 1] * LINE; }

char *bench_memory_at(const bench_memory *m, int operand, unsigned placement)
{
    size_t before = 0;
    for (int i = 0; i < operand; i++)
        before += m->slab[i] != NULL;
    return m->slab[operand] ? m->slab[operand] + bench_offset(before, placement) : NULL;
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

size_t bench_slab_bytes(size_t bytes) { return (bytes + 2 * PAGE - 1) / PAGE * PAGE; }

void bench_slab_fill(char *slab, size_t bytes, nrg_dtype dtype, bench_fill fill, unsigned seed)
{
    for (size_t i = 0; i < bytes / PAGE; i++) {
        if (i < PAGES)
            fill_page(slab + i * PAGE, dtype, fill, seed + 99991u * (uint32_t)i);
        else
            memcpy(slab + i * PAGE, slab + (i - PAGES) * PAGE, PAGE);
    }
}

void bench_memory_refill(const bench_memory *m, int operand)
{
    const bench_operand *o = &m->operand[operand];
    bench_slab_fill(m->slab[operand], bench_slab_bytes(o->span), o->dtype, o->fill, 12345u + 777u * (unsigned)operand);
}

static int is_in_another(const bench_case *c, int operand) { return c->layout && c->layout->of[operand].over; }

int bench_memory_make(bench_memory *m, const bench_case *c, size_t n)
{
    memset(m, 0, sizeof *m);
    for (int i = 0; i < BENCH_OPERANDS; i++) {
        bench_operand largest = {0};
        for (size_t k = 0; k < n; k++) {
            const bench_operand o = bench_operand_of(&c[k], i);
            if (o.span > largest.span && !is_in_another(&c[k], i))
                largest = o;
        }
        if (!largest.span)
            continue;
        m->operand[i] = largest;
        m->slab[i] = aligned_alloc(PAGE, bench_slab_bytes(largest.span));
        if (!m->slab[i]) {
            bench_memory_free(m);
            return 0;
        }
        bench_memory_refill(m, i);
    }
    return 1;
}

void bench_memory_free(bench_memory *m)
{
    for (int i = 0; i < BENCH_OPERANDS; i++)
        free(m->slab[i]);
    memset(m, 0, sizeof *m);
}

const char *bench_try(const bench_function *function, void *const *part)
{
    nrg_status status = NRG_OK;
    for (int phase = 0; status == NRG_OK && phase < BENCH_PHASES && function->share[phase]; phase++)
        status = function->share[phase](part, 0, 1);
    return status == NRG_OK ? NULL : nrg_status_string(status);
}

/* A call that is refused would be very fast. */
static const char *refused(bench_call *call, unsigned placements)
{
    const char *wrong = NULL;
    bench_call_before(call);
    if (nrg_isa_active() != call->isa)
        return "the path was refused";
    for (unsigned p = 0; !wrong && p < placements; p++)
        wrong = bench_try(call->function, call->parts[p].part);
    return wrong;
}

const char *bench_call_bind(bench_call *call, const bench_case *c, const bench_memory *m)
{
    *call = (bench_call){bench_function_of(c), c->isa, calloc(BENCH_PLACEMENTS, sizeof(bench_parts))};
    if (!call->parts)
        return "not enough memory";
    for (unsigned p = 0; p < BENCH_PLACEMENTS; p++) {
        char *operand[BENCH_OPERANDS];
        for (int i = 0; i < BENCH_OPERANDS; i++) {
            const bench_operand o = bench_operand_of(c, i);
            /* what a family fills itself stays where it is, or one placement's numbers would lie across another's */
            operand[i] = o.bytes ? bench_memory_at(m, i, o.kind == BENCH_ASIDE ? 0 : p) : NULL;
            if (c->layout && operand[i])
                operand[i] += c->layout->of[i].offset;
        }
        for (int i = 0; i < BENCH_OPERANDS; i++)
            if (is_in_another(c, i))
                operand[i] = operand[c->layout->of[i].over - 1];
        bench_parts_bind(&call->parts[p], c, operand);
    }
    return refused(call, c->layout ? 1 : BENCH_PLACEMENTS); /* a drawn case is one of many, and short of time */
}

void bench_call_free(bench_call *call)
{
    free(call->parts);
    call->parts = NULL;
}

void bench_call_before(void *call)
{
    nrg_isa isa = ((const bench_call *)call)->isa;
    if (nrg_isa_active() != isa)
        bench_require(nrg_isa_set(isa));
}

void bench_call_run(void *call, unsigned placement, size_t calls)
{
    const bench_call *c = call;
    c->function->run(c->parts[placement].part, calls);
}
