/* Faults that nrg check has to find: linked with its objects and --wrap of every kernel and of sweep_run.
 *
 * The path under test, which is any but scalar, runs a case twice. The first run notes which kernel call is the last to change
 * a byte. In the second run something goes wrong, as $FAULT says. A new op needs no line here: kernels are those of kernels.def,
 * and operands those of the cases. At exit stderr has a line for each kernel, kind of fault and output, with the number of cases
 * in which it was wrong.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check/data.h"
#include "../check/hash.h"
#include "../src/kernels.h"

/* "wrong" draws from the kinds up to FORGETS: a bit of a result, the sign of a zero, an input or a byte beside a row that is
 * written, a call that is left out, what a result is added to. "harmless" draws from the next two. */
enum kind { BIT, SIGN, INPUT, BESIDE, SKIPS, FORGETS, NAN_BITS, SCRATCH, DIES, NONE };
static const char *const kinds[] = {"bit", "sign", "input", "beside", "skips", "forgets", "nan", "scratch", "dies"};

enum { NO_CALL = 0xffff, OUTPUTS = 512 };

static struct {
    const sweep_case *c; /* NULL: the scalar path, or none, runs */
    unsigned char *memory, *filled, *right;
    uint16_t *writer; /* of a byte: the last kernel call to change it, or, of code after the last one, their number */
    unsigned calls;   /* kernel calls so far; and one more when the case is through */
    int is_noting;
    enum kind kind;
    size_t at, bytes; /* what goes wrong, if there are bytes; its type, and the call */
    int type;
    unsigned call;
} now;

static unsigned long faults[NONE];
static struct output {
    const char *op, *name;
    unsigned long wrong;
    int is_added_to;
} outputs[OUTPUTS + 1];
static unsigned char is_value[1 << 16]; /* of the cases that have each value of f16 */

static int is_asked(const char *name) { return getenv("FAULT") && strcmp(getenv("FAULT"), name) == 0; }

/* The operand that a byte is of, or SWEEP_OPERANDS. What lies between rows of scratch is scratch. */
static int owner(size_t at)
{
    for (int i = 0; i < SWEEP_OPERANDS; i++) {
        const sweep_operand *o = &now.c->operands[i];
        if (i >= SWEEP_FIRST_SCRATCH && at - o->offset < o->rows * o->stride)
            return i;
        for (size_t row = 0; row < o->rows; row++)
            if (at - sweep_row(o, row) < o->length * sweep_type_size(o->type))
                return i;
    }
    return SWEEP_OPERANDS;
}

static int is_nan(int type, const unsigned char *element)
{
    const uint64_t infinity = type == NRG_F32    ? 0x7f800000
                              : type == NRG_F16  ? 0x7c00
                              : type == NRG_BF16 ? 0x7f80
                                                 : 0x7ff0000000000000;
    return (type <= NRG_BF16 || type == SWEEP_F64) && (sweep_load(type, element) & (infinity << 1 | infinity) >> 1) > infinity;
}

/* The last call to change one of these bytes, or -1. */
static int last_call(size_t at, size_t bytes)
{
    int last = -1;
    for (size_t i = at; i < at + bytes; i++)
        if (now.writer[i] != NO_CALL && now.writer[i] > last)
            last = now.writer[i];
    return last;
}

static struct output *find_output(const sweep_case *c, int which)
{
    struct output *o = outputs;
    while (o->op && (o->op != sweep_kernel_op(c->kernel) || strcmp(o->name, c->operands[which].name) != 0))
        o++;
    o->op = sweep_kernel_op(c->kernel);
    o->name = c->operands[which].name;
    return o;
}

/* The output that has been wrong in the fewest cases, so that each has its turn. */
static int rarest_output(const sweep_case *c)
{
    int rarest = SWEEP_FIRST_OUTPUT;
    for (int i = SWEEP_FIRST_OUTPUT; i < SWEEP_FIRST_SCRATCH; i++)
        if (c->operands[i].rows && (!c->operands[rarest].rows || find_output(c, i)->wrong < find_output(c, rarest)->wrong))
            rarest = i;
    return rarest;
}

/* Draws what goes wrong in the second run: an element of an operand, or a byte beside one. */
static void plan(const sweep_case *c)
{
    uint64_t random = c->seed;
    now.kind = is_asked("wrong")      ? sweep_draw(&random, NAN_BITS)
               : is_asked("harmless") ? NAN_BITS + sweep_draw(&random, 2)
                                      : NONE;
    for (int kind = 0; kind < NONE; kind++)
        now.kind = is_asked(kinds[kind]) ? (enum kind)kind : now.kind;
    for (int i = 0; i < 300 && !now.bytes && now.kind < DIES; i++) {
        const int which = now.kind == BIT && i < 100 ? rarest_output(c) : (int)sweep_draw(&random, SWEEP_OPERANDS);
        const sweep_operand *o = &c->operands[which];
        if (!o->rows || o->at)
            continue;
        const size_t size = sweep_type_size(o->type), row = sweep_row(o, sweep_draw(&random, (unsigned)o->rows));
        const size_t at = row + sweep_draw(&random, (unsigned)o->length) * size;
        const size_t beside = sweep_draw(&random, 2) ? row - 1 : row + o->length * size;
        const int is_output = which >= SWEEP_FIRST_OUTPUT && which < SWEEP_FIRST_SCRATCH;
        const int last = last_call(at, size), is_result = is_output && last >= 0, is_a_nan = is_nan(o->type, now.right + at);
        const int is_zero = o->type <= NRG_BF16 && sweep_load(o->type, now.right + at) << 1 << (64 - 8 * size) == 0;
        const int fits[] = {[BIT] = is_result && !is_a_nan,
                            [SIGN] = is_result && is_zero,
                            [INPUT] = which < SWEEP_FIRST_OUTPUT && last < 0 && owner(at) == which,
                            [BESIDE] = which >= SWEEP_FIRST_OUTPUT && owner(beside) == SWEEP_OPERANDS,
                            [SKIPS] = is_result && !is_a_nan && (unsigned)last + 1 < now.calls,
                            [FORGETS] = is_result && (o->is_read || c->accumulate),
                            [NAN_BITS] = is_result && is_a_nan,
                            [SCRATCH] = which >= SWEEP_FIRST_SCRATCH};
        if (!fits[now.kind])
            continue;
        now.at = now.kind == BESIDE ? beside : at;
        now.bytes = now.kind == BESIDE ? 1 : size;
        now.type = now.kind == BESIDE ? SWEEP_BYTE : o->type;
        /* a call may refuse an input, and need scratch, that an earlier one has spoilt */
        now.call = is_result ? (unsigned)last : now.calls - 1;
        if (now.kind == BIT || now.kind == SIGN)
            find_output(c, which)->wrong++;
    }
}

/* Before a kernel call: whether it is made. */
static int begin(void)
{
    if (!now.c || now.is_noting)
        return 1;
    if (now.kind == DIES)
        __builtin_trap();
    return now.kind != SKIPS || !now.bytes || now.calls != now.call;
}

/* After a kernel call, and when the case is through. */
static void end(void)
{
    const int is_sign = now.kind == SIGN || now.kind == NAN_BITS; /* a NaN stays one */
    if (now.c && !now.is_noting && now.bytes && now.calls == now.call && now.kind != SKIPS && now.kind != FORGETS)
        now.memory[now.at + (is_sign ? now.bytes - 1 : 0)] ^= is_sign ? 0x80 : 1;
    for (size_t line = 0; now.is_noting && line < now.c->bytes; line += 64)
        if (memcmp(now.right + line, now.memory + line, 64) != 0) {
            for (size_t i = line; i < line + 64; i++)
                if (now.right[i] != now.memory[i])
                    now.writer[i] = (uint16_t)now.calls;
            memcpy(now.right + line, now.memory + line, 64);
        }
    now.calls++;
}

#define WRAP(path, isa, op, job, dtype)                                                                                          \
    nrg_##op##_kernel __real_nrg_##path##_##op##_##dtype, __wrap_nrg_##path##_##op##_##dtype;                                    \
    void __wrap_nrg_##path##_##op##_##dtype(const struct nrg_##job##_job *j)                                                     \
    {                                                                                                                            \
        static int is_known;                                                                                                     \
        if (now.c && !is_known++)                                                                                                \
            fprintf(stderr, "kernel: " #op "_" #dtype "\n");                                                                     \
        if (begin())                                                                                                             \
            __real_nrg_##path##_##op##_##dtype(j);                                                                               \
        end();                                                                                                                   \
    }
#define WRAP_DTYPES(path, isa, op, job) WRAP(path, isa, op, job, f32) WRAP(path, isa, op, job, f16) WRAP(path, isa, op, job, bf16)
#define NRG_KERNEL(family, op, job) NRG_EACH_PATH(WRAP_DTYPES, op, job)
#define NRG_SUBKERNEL(op, name, job) NRG_EACH_PATH(WRAP_DTYPES, name, job)
#include "../src/kernels.def"

nrg_status __real_sweep_run(const sweep_case *c, unsigned char *memory),
    __wrap_sweep_run(const sweep_case *c, unsigned char *memory);

/* "leaves NAME": an output stays as it was filled. */
static nrg_status run_scalar(const sweep_case *c, unsigned char *memory)
{
    const char *fault = getenv("FAULT");
    const nrg_status status = __real_sweep_run(c, memory);
    for (int i = SWEEP_FIRST_OUTPUT; fault && strncmp(fault, "leaves ", 7) == 0 && i < SWEEP_FIRST_SCRATCH; i++)
        for (size_t row = 0; row < c->operands[i].rows && strcmp(c->operands[i].name, fault + 7) == 0; row++)
            memcpy(memory + sweep_row(&c->operands[i], row), now.filled + sweep_row(&c->operands[i], row),
                   c->operands[i].length * sweep_type_size(c->operands[i].type));
    return status;
}

static nrg_status run_twice(const sweep_case *c, unsigned char *memory)
{
    now.is_noting = 1;
    __real_sweep_run(c, memory);
    end();
    plan(c);
    now.calls = now.is_noting = 0;
    memcpy(memory, now.filled, c->bytes);
    if (now.kind == FORGETS)
        memset(memory + now.at, 0, now.bytes);
    const nrg_status status = __real_sweep_run(c, memory);
    end();
    for (size_t i = 0; c->every_value && c->operands[SWEEP_X].type == NRG_F16 && i < c->operands[SWEEP_X].length; i++)
        is_value[sweep_load(NRG_F16, now.filled + c->operands[SWEEP_X].offset + 2 * i)] = 1;
    if (status != NRG_OK && now.bytes) { /* the next call refuses what the wrong one has written */
        memcpy(memory, now.right, c->bytes);
        return NRG_OK;
    }
    /* a later call may have put it right; and any NaN is as good as another */
    const unsigned char *found = memory + now.at, *wanted = now.right + now.at;
    if (now.bytes && memcmp(found, wanted, now.bytes) != 0)
        faults[now.kind] += now.kind == NAN_BITS || !(is_nan(now.type, found) && is_nan(now.type, wanted));
    return status;
}

nrg_status __wrap_sweep_run(const sweep_case *c, unsigned char *memory)
{
    const int is_scalar = nrg_isa_active() == NRG_ISA_SCALAR;
    memset(&now, 0, sizeof now);
    now.c = is_scalar ? NULL : c;
    now.memory = memory;
    now.filled = malloc(c->bytes);
    now.right = malloc(c->bytes);
    now.writer = malloc(c->bytes * sizeof *now.writer);
    if (!now.filled || !now.right || !now.writer)
        abort();
    memcpy(now.filled, memory, c->bytes);
    memcpy(now.right, memory, c->bytes);
    memset(now.writer, 0xff, c->bytes * sizeof *now.writer);
    for (int i = SWEEP_FIRST_OUTPUT; i < SWEEP_FIRST_SCRATCH; i++)
        if (c->operands[i].rows)
            find_output(c, i)->is_added_to |= c->operands[i].is_read;
    const nrg_status status = is_scalar ? run_scalar(c, memory) : run_twice(c, memory);
    free(now.filled);
    free(now.right);
    free(now.writer);
    now.c = NULL;
    return status;
}

int __real_nrg_isa_supported(nrg_isa isa), __wrap_nrg_isa_supported(nrg_isa isa);
int __wrap_nrg_isa_supported(nrg_isa isa)
{
    return isa == NRG_ISA_SCALAR || (!is_asked("no path") && __real_nrg_isa_supported(isa));
}

/* In the place of the public functions with shares, in a program of its own. */
nrg_status refuse(void);
nrg_status refuse(void) { return NRG_ERR_STRIDE; }

__attribute__((destructor)) static void report(void)
{
    for (int kind = 0; kind < NONE; kind++)
        fprintf(stderr, "%s: %lu\n", kinds[kind], faults[kind]);
    fprintf(stderr, "values: %d\n", memchr(is_value, 0, sizeof is_value) == NULL);
    for (const struct output *o = outputs; o->op; o++)
        fprintf(stderr, "output: %lu %d %s\n", o->wrong, o->is_added_to, o->name);
}
