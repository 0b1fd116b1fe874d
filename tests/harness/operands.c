/* SPDX-License-Identifier: MIT */
#include "operands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "unwritten.h"

enum { SLACK = 192 };

/* What is between a fence's pages, and what should still be there after the call. */
typedef struct region {
    fence pages;
    unsigned char *at, *expected;
    size_t bytes, capacity;
} region;

static region regions[OPERANDS_MOST];

static size_t size_of(const operand *o) { return o->is_bytes ? 1 : nrg_dtype_size(o->dtype); }
static size_t row_bytes(const operand *o) { return o->dim * size_of(o); }
static size_t step(const operand *o) { return o->unit ? o->unit : size_of(o); }
static size_t groups(const operand *o) { return o->group ? o->rows / o->group : o->rows; }

/* Bytes from the start of `rows` rows to the end of the last. */
static size_t span(size_t rows, size_t stride, size_t bytes) { return (rows ? rows - 1 : 0) * stride + bytes; }

/* Bytes of what stands in one row of a shared buffer: a row, or a group of them. */
static size_t slice_bytes(const operand *o, const operand_place *place)
{
    return span(o->group, row_bytes(o) + place->pad * step(o), row_bytes(o));
}

unsigned char *operand_row(const operand *o, size_t row)
{
    return o->group ? o->at + row / o->group * o->group_stride + row % o->group * o->stride : o->at + row * o->stride;
}

/* Claims a fence for `bytes` bytes of an operand and fills the slack and the gap with canaries, the bytes with the operand's own.
 */
static unsigned char *claim(const operand *o, int host, size_t bytes, enum fence_side side, size_t gap)
{
    region *g = &regions[host];
    unsigned char *at = fence_place(&g->pages, bytes + SLACK, side, gap);
    g->bytes = bytes + SLACK + gap;
    g->at = side == AT_END ? at : at - gap;
    memset(g->at, OPERAND_CANARY, g->bytes);
    at = side == AT_END ? at + SLACK : at;
    memset(at, o->fill ? o->fill : OPERAND_CANARY, bytes);
    return at;
}

static void place_alone(operand *o, int host, const operand_place *place)
{
    size_t pad = o->tensor ? place->pad * step(o) : 0, group_pad = o->tensor ? place->group_pad * step(o) : 0, bytes;
    o->stride = row_bytes(o) + pad;
    bytes = span(o->rows, o->stride, row_bytes(o));
    if (o->group) {
        size_t first = o->group, second = groups(o); /* counts of the rows that are closer, and of what they make */
        if (place->transposed) {
            second = first;
            first = groups(o);
        }
        size_t outer = first * o->stride + group_pad;
        bytes = span(second, outer, span(first, o->stride, row_bytes(o)));
        o->group_stride = place->transposed ? o->stride : outer;
        o->stride = place->transposed ? outer : o->stride;
    }
    o->at = claim(o, host, bytes, place->side, place->gap * step(o));
    o->host = host;
}

static int interleaves(const operand *o) { return o->wanted && o->tensor && !o->alone; }

/* The tensors side by side in every row of one buffer; f32 first, so that all are aligned. Outputs before inputs, so that not
 * only the order of the calls' structs is met. */
static void place_interleaved(operand *all, int count, const operand_place *places, int first)
{
    size_t offset[OPERANDS_MOST] = {0}, used = 0, end = 0, rows = 1;
    for (size_t element = 4; element; element /= 2)
        for (int output = 1; output >= 0; output--)
            for (int i = 0; i < count; i++) {
                if (!interleaves(&all[i]) || size_of(&all[i]) != element || all[i].output != output)
                    continue;
                offset[i] = used;
                end = used + slice_bytes(&all[i], &places[i]);
                used = end + places[i].pad * element;
                rows = groups(&all[i]);
            }
    size_t stride = (used + 3) / 4 * 4;
    end = (end + 3) / 4 * 4;
    unsigned char *at = claim(&all[first], first, span(rows, stride, end), places[first].side, places[first].gap * 4);
    for (int i = 0; i < count; i++)
        if (interleaves(&all[i])) {
            all[i].at = at + offset[i];
            all[i].stride = all[i].group ? row_bytes(&all[i]) + places[i].pad * step(&all[i]) : stride;
            all[i].group_stride = all[i].group ? stride : 0;
            all[i].host = first;
        }
}

void operands_place(operand *all, int count, const operand_place *places, int interleaved, int first)
{
    if (interleaved)
        place_interleaved(all, count, places, first);
    for (int i = 0; i < count; i++)
        if (all[i].wanted && !all[i].at)
            place_alone(&all[i], i, &places[i]);
}

void operand_over(operand *all, int which, int host)
{
    all[which].at = all[host].at;
    all[which].stride = all[host].stride;
    all[which].group_stride = all[host].group_stride;
    all[which].host = all[host].host;
}

void operand_copy_in(const operand *o, const void *dense)
{
    for (size_t row = 0; row < o->rows; row++)
        memcpy(operand_row(o, row), (const char *)dense + row * row_bytes(o), row_bytes(o));
}

void operand_forget(const operand *o)
{
    for (size_t row = 0; row < o->rows; row++)
        unwritten_forget(operand_row(o, row), row_bytes(o));
}

void operand_accept(const operand *o)
{
    for (size_t row = 0; row < o->rows; row++)
        unwritten_accept(operand_row(o, row), row_bytes(o));
}

void operand_copy_out(const operand *o, void *to)
{
    region *g = &regions[o->host];
    for (size_t row = 0; row < o->rows; row++) {
        unsigned char *at = operand_row(o, row);
        if (to)
            memcpy((char *)to + row * row_bytes(o), at, row_bytes(o));
        memcpy(g->expected + (at - g->at), at, row_bytes(o));
    }
}

static void keep(region *g)
{
    if (g->capacity < g->bytes) {
        free(g->expected);
        g->capacity = g->bytes;
        g->expected = malloc(g->capacity);
        if (!g->expected)
            abort();
    }
    memcpy(g->expected, g->at, g->bytes);
}

/* 1 for an operand that is the first one in its pages, and so names them. */
static int names_region(const operand *all, int i)
{
    if (!all[i].at)
        return 0;
    for (int j = 0; j < i; j++)
        if (all[j].at && all[j].host == all[i].host)
            return 0;
    return 1;
}

void operands_keep(const operand *all, int count)
{
    for (int i = 0; i < count; i++)
        if (names_region(all, i))
            keep(&regions[all[i].host]);
}

void operands_protect(const operand *all, int count, int read_only)
{
    int written[OPERANDS_MOST] = {0};
    for (int i = 0; i < count; i++)
        if (all[i].at)
            written[all[i].host] |= all[i].output;
    for (int i = 0; i < count; i++)
        if (names_region(all, i) && !written[all[i].host])
            fence_protect(&regions[all[i].host].pages, read_only);
}

const char *operands_changed(const operand *all, int count)
{
    static char message[OPERAND_MESSAGE];
    for (int n = 0; n < count; n++) {
        const region *g = &regions[all[n].host];
        if (!names_region(all, n) || memcmp(g->expected, g->at, g->bytes) == 0)
            continue;
        size_t i = 0;
        while (g->expected[i] == g->at[i])
            i++;
        snprintf(message, sizeof message, "byte %td of the buffer of %s, which is no output's, changed from 0x%02x to 0x%02x",
                 g->at + i - all[n].at, all[n].name, g->expected[i], g->at[i]);
        return message;
    }
    return NULL;
}

const char *operand_compare(const char *name, size_t rows, size_t dim, nrg_dtype dtype, const void *expected, const void *got)
{
    static char message[OPERAND_MESSAGE];
    if (memcmp(expected, got, rows * dim * nrg_dtype_size(dtype)) == 0)
        return NULL;
    for (size_t i = 0; i < rows * dim; i++)
        if (!element_equal(expected, got, i, dtype)) {
            snprintf(message, sizeof message, "%s: row %zu element %zu is 0x%x (%.9g) and should be 0x%x (%.9g)", name, i / dim,
                     i % dim, element_bits(got, i, dtype), (double)element_get(got, i, dtype), element_bits(expected, i, dtype),
                     (double)element_get(expected, i, dtype));
            return message;
        }
    return NULL;
}

size_t operand_stride(const operand *o, int say_zero) { return say_zero && o->stride == row_bytes(o) ? 0 : o->stride; }
