/* The cases of nrg check: those of each line of kernels.def in turn.
 *
 * SPDX-License-Identifier: MIT */
#include "sweep.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sweep_data.h"
#include "sweep_family.h"

const char *const sweep_operand_names[SWEEP_OPERANDS] = {
    "x",           "y",     "z",  "w",    "b",    "r",          "d_o",  "dr_in",        "running mean",
    "running var", "o",     "r",  "mean", "rstd", "statistics", "sums", "updated mean", "updated var",
    "scale",       "shift", "dx", "dy",   "dz",   "dw",         "db",   "workspace"};

size_t sweep_type_size(int type) { return type == SWEEP_F64 || type == SWEEP_I64 ? 8 : nrg_dtype_size((nrg_dtype)type); }

const char *sweep_type_name(int type)
{
    return type == SWEEP_F64 ? "f64" : type == SWEEP_I64 ? "i64" : nrg_dtype_name((nrg_dtype)type);
}

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

void sweep_fill_rows(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const sweep_operand *o = &c->operands[operand];
    for (size_t row = 0; row < o->rows; row++)
        sweep_fill_row(memory + o->offset + row * o->stride, (nrg_dtype)o->type, o->length,
                       operand == SWEEP_W || operand == SWEEP_B, random);
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
                       c->operands[i].length * sweep_type_size(c->operands[i].type));
    for (int i = 0; i < SWEEP_FIRST_OUTPUT; i++)
        if (c->operands[i].rows)
            kernels[c->kernel].family->fill(c, i, memory, &random);
}

void sweep_append(char text[SWEEP_TEXT_ROOM], const char *format, ...)
{
    size_t used = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + used, SWEEP_TEXT_ROOM - used, format, values);
    va_end(values);
}

/* Of which operand an output takes the place. */
static void describe_place(const sweep_case *c, int output, char text[SWEEP_TEXT_ROOM])
{
    for (int i = 0; i < output && output >= SWEEP_FIRST_OUTPUT; i++)
        if (c->operands[i].rows && c->operands[output].offset == c->operands[i].offset) {
            sweep_append(text, " in %s's place", sweep_operand_names[i]);
            return;
        }
}

void sweep_describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    snprintf(text, SWEEP_TEXT_ROOM, "case %llu: %s_%s", (unsigned long long)c->number, kernels[c->kernel].op,
             nrg_dtype_name(c->spec.dtype));
    kernels[c->kernel].family->describe(c, text);
    sweep_append(text, ", %d share%s", c->shares, c->shares == 1 ? "" : "s");
    if (c->reduce_shares > 1)
        sweep_append(text, " and %d", c->reduce_shares);
    sweep_append(text, "%s%s;", c->accumulate ? ", accumulate" : "", c->saved ? ", saved statistics" : "");
    for (int i = 0; i < SWEEP_OPERANDS; i++) {
        const sweep_operand *operand = &c->operands[i];
        if (operand->rows) {
            sweep_append(text, " %s %s+%zu/%zu", sweep_operand_names[i], sweep_type_name(operand->type), operand->offset % 64,
                         operand->stride);
            describe_place(c, i, text);
        }
    }
}
