/* The cases of nrg check: those of each line of kernels.def in turn, dtype by dtype.
 *
 * SPDX-License-Identifier: MIT */
#include "sweep.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "family.h"
#include "layout.h"

size_t sweep_type_size(int type)
{
    return type == SWEEP_F64 || type == SWEEP_I64 ? 8
           : type == SWEEP_I32                    ? 4
           : type == SWEEP_BYTE                   ? 1
                                                  : nrg_dtype_size((nrg_dtype)type);
}

const char *sweep_type_name(int type)
{
    return type == SWEEP_F64    ? "f64"
           : type == SWEEP_I64  ? "i64"
           : type == SWEEP_I32  ? "i32"
           : type == SWEEP_BYTE ? "byte"
                                : nrg_dtype_name((nrg_dtype)type);
}

size_t sweep_row(const sweep_operand *operand, size_t row)
{
    return operand->offset + row / operand->run * operand->run_stride + row % operand->run * operand->stride;
}

/* The list that kernels are made from, so that none can be left out: an op without a sweep_family does not compile. */
static const struct {
    const char *op;
    nrg_dtype dtype;
    const sweep_family *family;
    nrg_accuracy accuracy;
} kernels[] = {
#define NRG_KERNEL(family, op, job)                                                                                              \
    {#op, NRG_F32, &sweep_family_##op, NRG_ACCURACY_FAST}, {#op, NRG_F16, &sweep_family_##op, NRG_ACCURACY_FAST},                \
        {#op, NRG_BF16, &sweep_family_##op, NRG_ACCURACY_FAST},
#include "../src/kernels.def"
#undef NRG_KERNEL
/* the ops that have a choice, again: after all others, so that these keep their numbers */
#define EXACT(op) {#op, NRG_F32, &sweep_family_##op, NRG_ACCURACY_EXACT},
#ifndef NRG_NO_NORM
    EXACT(norm_forward)
#ifndef NRG_NO_BACKWARD
        EXACT(norm_backward)
#endif
#ifndef NRG_NO_ROPE
            EXACT(norm_rope)
#endif
#endif
#ifndef NRG_NO_CHANNEL_NORM
                EXACT(channel_norm_forward)
#ifndef NRG_NO_BACKWARD
                    EXACT(channel_norm_backward)
#endif
#endif
#ifndef NRG_NO_NORM
                        EXACT(norm_sandwich)
#endif
#undef EXACT
};

const int sweep_kernels = sizeof kernels / sizeof kernels[0];

const char *sweep_kernel_op(int kernel) { return kernels[kernel].op; }

nrg_dtype sweep_kernel_dtype(int kernel) { return kernels[kernel].dtype; }

const char *sweep_kernel_grade(int kernel) { return kernels[kernel].accuracy == NRG_ACCURACY_EXACT ? "-exact" : ""; }

const sweep_family *sweep_family_of(const sweep_case *c) { return kernels[c->kernel].family; }

const char *sweep_operand_name(const sweep_case *c, int operand) { return c->operands[operand].name; }

static uint64_t lengths(const sweep_family *family, sweep_level level)
{
    return family->small[level] + (level == SWEEP_LOOPS ? 0 : family->large);
}

static uint64_t count(const sweep_family *family, sweep_level level)
{
    const uint64_t rounds = family->rounds[level] ? family->rounds[level] : 1;
    return rounds * lengths(family, level) * family->ways[level];
}

uint64_t sweep_first(sweep_level level, int kernel)
{
    uint64_t first = 0;
    for (int i = 0; i < kernel; i++)
        first += count(kernels[i].family, level);
    return first;
}

/* Of the op's name (FNV-1a, 24 bits), the dtype and the grade; then of the case. */
static uint64_t seed_of(int kernel, uint64_t n)
{
    uint32_t hash = 2166136261u;
    for (const char *name = kernels[kernel].op; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return (uint64_t)(hash & 0xffffff) << 36 | (uint64_t)kernels[kernel].dtype << 33 | (uint64_t)kernels[kernel].accuracy << 32 |
           n;
}

static void draw(sweep_case *c, const sweep_family *family)
{
    uint64_t random = c->seed;
    family->draw(c, &random);
    random = ~(c->seed << 7);
    c->shares = sweep_draw_shares(&random);
    int has_phases = 0;
    for (int i = 0; i < c->call_count; i++) {
        has_phases |= c->calls[i]->reduce != NULL;
        if (c->calls[i]->store)
            c->store = (nrg_store)(c->n / 5 % 3);
    }
    if (has_phases)
        c->reduce_shares = sweep_draw_shares(&random);
    sweep_lay_out(c, &random);
}

int sweep_make(sweep_level level, uint64_t number, sweep_case *c)
{
    const sweep_family *family = kernels[0].family;
    memset(c, 0, sizeof *c);
    c->number = c->n = number;
    c->level = level;
    while (c->n >= count(family, level)) {
        c->n -= count(family, level);
        if (++c->kernel == sweep_kernels)
            return 0;
        family = kernels[c->kernel].family;
    }
    c->seed = seed_of(c->kernel, c->n);
    c->way = c->n % family->ways[level];
    c->length = (size_t)(c->n / family->ways[level] % lengths(family, level)) + 1;
    c->large = c->length > family->small[level] ? c->length - (size_t)family->small[level] : 0;
    c->spec = nrg_norm_spec_rms(kernels[c->kernel].dtype, 1, 0);
    c->spec.accuracy = kernels[c->kernel].accuracy;
    c->reduce_shares = 1;
    draw(c, family);
    return 1;
}

nrg_status sweep_run(const sweep_case *c, unsigned char *memory)
{
    const sweep_family *family = sweep_family_of(c);
    return (family->run ? family->run : sweep_run_calls)(c, memory);
}

sweep_case sweep_plain(const sweep_case *c)
{
    sweep_case plain = *c;
    plain.store = NRG_STORE_KEEP;
    plain.shares = plain.reduce_shares = plain.recompute = 1;
    return plain;
}

int sweep_share(const sweep_case *c, int i, int shares)
{
    if (!c->order)
        return i;
    uint64_t random = c->order;
    const int first = (int)sweep_draw(&random, (unsigned)shares);
    int step = shares > 2 ? 1 + (int)sweep_draw(&random, (unsigned)shares - 1) : 1;
    /* one that has no divisor in common with their number goes through all of them */
    for (int a = step, b = shares; b;) {
        const int rest = a % b;
        a = b;
        b = rest;
        if (!b && a != 1)
            step = 1;
    }
    return (int)((first + (int64_t)i * step) % shares);
}

/* Numbers that f32 holds: in the lower half of the row at first, from whose end they are spread over all of it. */
static void fill_f64_row(unsigned char *row, size_t length, int is_weight, uint64_t *random)
{
    sweep_fill_row(row, NRG_F32, length, is_weight, random);
    for (size_t i = length; i-- > 0;) {
        float narrow;
        memcpy(&narrow, row + i * sizeof narrow, sizeof narrow);
        const double wide = (double)narrow;
        memcpy(row + i * sizeof wide, &wide, sizeof wide);
    }
}

void sweep_fill_rows(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const sweep_operand *o = &c->operands[operand];
    const int is_weight = (int)(c->weights >> operand & 1);
    for (size_t row = 0; row < o->rows; row++) {
        unsigned char *first = memory + sweep_row(o, row);
        if (o->type == SWEEP_F64)
            fill_f64_row(first, o->length, is_weight, random);
        else if (!nrg_dtype_size((nrg_dtype)o->type))
            abort(); /* integers: the family has to say which */
        else
            sweep_fill_row(first, (nrg_dtype)o->type, o->length, is_weight, random);
    }
}

void sweep_fill_positions(const sweep_case *c, int operand, int32_t least, int32_t most, unsigned char *memory, uint64_t *random)
{
    const sweep_operand *o = &c->operands[operand];
    uint64_t span = (uint64_t)((int64_t)most - least) + 1;
    /* of a wide range, mostly a part in which there are positions of texts */
    uint64_t near_zero = least < 0 && span > 1 << 20 && sweep_draw(random, 3) ? 1 << 20 : 0;
    for (size_t row = 0; row < o->rows; row++)
        for (size_t i = 0; i < o->length; i++) {
            uint64_t drawn = sweep_random(random), end = drawn >> 40 & 15;
            int32_t position = end == 0    ? least
                               : end == 1  ? most
                               : near_zero ? (int32_t)(drawn % near_zero)
                                           : (int32_t)(least + (int64_t)((drawn & 0xffffffff) * span >> 32));
            memcpy(memory + sweep_row(o, row) + i * sizeof position, &position, sizeof position);
        }
}

void sweep_take_large(const sweep_case *c, const size_t *shapes, size_t columns, size_t *const *numbers)
{
    for (size_t i = 0; c->large && i < columns; i++)
        *numbers[i] = shapes[(c->large - 1) * columns + i];
}

void sweep_draw_shape(const sweep_case *c, const unsigned most[3], const size_t (*large)[4], size_t shape[4], uint64_t *random)
{
    shape[0] = sweep_draw(random, 24) ? 1 + sweep_draw(random, most[0]) : 0;
    shape[1] = 1 + sweep_draw(random, most[1]);
    shape[2] = 1 + sweep_draw(random, most[2]);
    shape[3] = c->length;
    if (c->large)
        memcpy(shape, large[c->large - 1], sizeof *large);
}

void sweep_fill(const sweep_case *c, unsigned char *memory)
{
    enum { GAP = 0xff, UNWRITTEN = 0xa5 }; /* as a number of any dtype: a NaN; something small and negative */
    const sweep_family *family = sweep_family_of(c);
    uint64_t random = ~c->seed;
    memset(memory, GAP, c->bytes);
    for (int i = SWEEP_FIRST_OUTPUT; i < SWEEP_FIRST_SCRATCH; i++)
        if (c->operands[i].rows)
            memset(memory + c->operands[i].offset, UNWRITTEN,
                   sweep_row(&c->operands[i], c->operands[i].rows - 1) - c->operands[i].offset +
                       c->operands[i].length * sweep_type_size(c->operands[i].type));
    for (int i = 0; i < SWEEP_FIRST_SCRATCH; i++)
        if (c->operands[i].rows && (i < SWEEP_FIRST_OUTPUT || c->operands[i].is_read))
            (family->fill ? family->fill : sweep_fill_rows)(c, i, memory, &random);
}

void sweep_append(char text[SWEEP_TEXT_ROOM], const char *format, ...)
{
    size_t used = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + used, SWEEP_TEXT_ROOM - used, format, values);
    va_end(values);
}

void sweep_describe_norm(const nrg_norm_spec *s, char text[SWEEP_TEXT_ROOM])
{
    sweep_append(text, ", %s norm, eps %g, %zu groups, %s", s->centred ? "layer" : "rms", s->eps, s->groups,
                 nrg_activation_name(s->activation));
}

/* Runs of rows of elements; how far it is from 64 bytes; the strides; and of which operand an output takes the place. */
static void describe_operand(const sweep_case *c, int operand, char text[SWEEP_TEXT_ROOM])
{
    const sweep_operand *o = &c->operands[operand];
    sweep_append(text, " %s %s %zux%zux%zu+%zu/%zu", o->name, sweep_type_name(o->type), o->rows / o->run, o->run, o->length,
                 o->offset % 64, o->stride);
    if (o->run < o->rows)
        sweep_append(text, "/%zu", o->run_stride);
    for (int i = 0; i < operand && operand >= SWEEP_FIRST_OUTPUT; i++)
        if (c->operands[i].rows && o->offset == c->operands[i].offset) {
            sweep_append(text, " in %s's place", c->operands[i].name);
            return;
        }
}

void sweep_describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const stores[] = {"auto", "keep", "stream"};
    const sweep_family *family = sweep_family_of(c);
    snprintf(text, SWEEP_TEXT_ROOM, "case %llu: %s_%s%s", (unsigned long long)c->number, kernels[c->kernel].op,
             nrg_dtype_name(c->spec.dtype), sweep_kernel_grade(c->kernel));
    for (int i = 0; i < c->call_count; i++)
        if (c->when[i] != SWEEP_PLAIN)
            sweep_append(text, " %s", c->calls[i]->run->name);
    if (family->describe)
        family->describe(c, text);
    sweep_append(text, ", store %s, %d shares", stores[c->store], c->shares);
    if (c->reduce_shares > 1)
        sweep_append(text, " and %d", c->reduce_shares);
    sweep_append(text, "%s%s;", c->accumulate ? ", accumulate" : "", c->saved ? ", saved statistics" : "");
    for (int i = 0; i < SWEEP_OPERANDS; i++)
        if (c->operands[i].rows)
            describe_operand(c, i, text);
}
