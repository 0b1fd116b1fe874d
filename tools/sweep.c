/* The cases of nrg check: those of each line of kernels.def in turn.
 *
 * SPDX-License-Identifier: MIT */
#include "sweep.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sweep_data.h"
#include "sweep_family.h"

const char *const sweep_operand_names[SWEEP_OPERANDS] = {"x", "y",    "z",    "w",  "b",  "r",  "d_o", "dr_in", "o",
                                                         "r", "mean", "rstd", "dx", "dy", "dz", "dw",  "db",    "workspace"};

/* The list that kernels are made from, so that none can be left out: an op without a sweep_family, or a dtype that is not one of
 * these, does not compile. */
enum { DTYPE_f32 = NRG_F32, DTYPE_f16 = NRG_F16, DTYPE_bf16 = NRG_BF16 };

static const struct {
    const char *op;
    nrg_dtype dtype;
    const sweep_family *family;
} kernels[] = {
#define NRG_KERNEL(op, dtype, job) {#op, (nrg_dtype)DTYPE_##dtype, &sweep_family_##op},
#include "../src/kernels.def"
#undef NRG_KERNEL
};

const int sweep_kernels = sizeof kernels / sizeof kernels[0];

const char *sweep_kernel_op(int kernel) { return kernels[kernel].op; }

nrg_dtype sweep_kernel_dtype(int kernel) { return kernels[kernel].dtype; }

int sweep_make(sweep_level level, uint64_t number, sweep_case *c)
{
    uint64_t n = number;
    memset(c, 0, sizeof *c);
    c->number = number;
    while (n >= kernels[c->kernel].family->count(level)) {
        n -= kernels[c->kernel].family->count(level);
        if (++c->kernel == sweep_kernels)
            return 0;
    }
    c->spec = nrg_rms_norm_spec(1, 0);
    c->spec.dtype = kernels[c->kernel].dtype;
    c->shares = c->reduce_shares = 1;
    kernels[c->kernel].family->make(level, n, c);
    return 1;
}

nrg_status sweep_run(const sweep_case *c, unsigned char *memory) { return kernels[c->kernel].family->run(c, memory); }

/* The bit patterns of a dtype, in even steps; the lower bits, where there are any between two steps, are drawn. */
static void fill_every_value(const sweep_operand *operand, unsigned char *row, uint64_t *random)
{
    size_t size = nrg_dtype_size(operand->dtype);
    uint64_t patterns = (uint64_t)1 << (8 * size), step = patterns / operand->length;
    for (size_t i = 0; i < operand->length; i++) {
        uint64_t bits = i * step + (step > 1 ? sweep_random(random) % step : 0);
        memcpy(row + i * size, &bits, size); /* little-endian, as every host of nrg is */
    }
}

void sweep_fill(const sweep_case *c, unsigned char *memory)
{
    enum { GAP = 0xff, UNWRITTEN = 0xa5 }; /* as a number of any dtype: a NaN; something small and negative */
    uint64_t random = ~c->number;
    memset(memory, GAP, c->bytes);
    for (int i = SWEEP_FIRST_OUTPUT; i < SWEEP_FIRST_SCRATCH; i++)
        if (c->operands[i].rows)
            memset(memory + c->operands[i].offset, UNWRITTEN,
                   (c->operands[i].rows - 1) * c->operands[i].stride +
                       c->operands[i].length * nrg_dtype_size(c->operands[i].dtype));
    for (int i = 0; i < SWEEP_FIRST_OUTPUT; i++)
        for (size_t row = 0; row < c->operands[i].rows; row++) {
            const sweep_operand *operand = &c->operands[i];
            unsigned char *at = memory + operand->offset + row * operand->stride;
            if (c->every_value && i == SWEEP_X)
                fill_every_value(operand, at, &random);
            else
                sweep_fill_row(at, operand->dtype, operand->length, i == SWEEP_W || i == SWEEP_B, &random);
        }
}

static void append(char text[SWEEP_TEXT_ROOM], const char *format, ...)
{
    size_t used = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + used, SWEEP_TEXT_ROOM - used, format, values);
    va_end(values);
}

static void describe_norm(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const eps_modes[] = {"mean", "sum", "sigma", "max", "none"};
    static const char *const stores[] = {"auto", "keep", "stream"};
    static const char *const gates[] = {"none", "pre", "post"};
    const nrg_norm_spec *s = &c->spec;
    append(text, " %zux%zu %s, eps %g (%s), c %g, weight offset %g, store %s", c->rows, s->dim, s->centred ? "layer" : "rms",
           s->eps, eps_modes[s->eps_mode], s->c, (double)s->weight_offset, stores[s->store]);
    if (s->gate || s->activation)
        append(text, ", gate %s of %s", gates[s->gate], nrg_activation_name(s->activation));
    if (s->groups > 1)
        append(text, ", %zu groups", s->groups);
    if (s->residual_mode == NRG_RESIDUAL_AFTER)
        append(text, ", residual after");
}

/* Of which operand an output takes the place. */
static void describe_place(const sweep_case *c, int output, char text[SWEEP_TEXT_ROOM])
{
    for (int i = 0; i < output && output >= SWEEP_FIRST_OUTPUT; i++)
        if (c->operands[i].rows && c->operands[output].offset == c->operands[i].offset) {
            append(text, " in %s's place", sweep_operand_names[i]);
            return;
        }
}

void sweep_describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    snprintf(text, SWEEP_TEXT_ROOM, "case %llu: %s_%s", (unsigned long long)c->number, kernels[c->kernel].op,
             nrg_dtype_name(c->spec.dtype));
    if (strncmp(kernels[c->kernel].op, "norm", 4) == 0)
        describe_norm(c, text);
    else
        append(text, " %s of %zu", nrg_activation_name(c->spec.activation), c->spec.dim);
    append(text, ", %d share%s", c->shares, c->shares == 1 ? "" : "s");
    if (c->reduce_shares > 1)
        append(text, " and %d", c->reduce_shares);
    append(text, "%s%s;", c->accumulate ? ", accumulate" : "", c->saved ? ", saved mean" : "");
    for (int i = 0; i < SWEEP_OPERANDS; i++) {
        const sweep_operand *operand = &c->operands[i];
        if (operand->rows) {
            append(text, " %s %s+%zu/%zu", sweep_operand_names[i], nrg_dtype_name(operand->dtype), operand->offset % 64,
                   operand->stride);
            describe_place(c, i, text);
        }
    }
}
