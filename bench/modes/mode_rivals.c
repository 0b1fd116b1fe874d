/* --rivals: whether what kernels are held against computes what they compute.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../contest.h"
#include "modes.h"

/* What is compared of larger cases has so many rows, or is a small image, since their loops are the same; a single row that is
 * longer is left out. Scalar kernels take long, and emulators (NRG_TEST_SCALE=small) as well. */
static int shrink(bench_case *c)
{
    const char *scale = getenv("NRG_TEST_SCALE");
    const int is_small = c->isa == NRG_ISA_SCALAR || (scale && strcmp(scale, "small") == 0);
    static const bench_shape image = BENCH_IMAGES(3, 64, 6, 7);
    const size_t most = is_small ? 1 << 13 : 1 << 16;
    if (c->shape.channels)
        c->shape = image;
    else if (bench_shape_elements(c->shape) > most)
        c->shape.rows = most / c->shape.dim;
    if (c->op->format)
        c->shape.rows -= c->shape.rows % nrg_quant_rows(c->op->format);
    return c->shape.rows > 0;
}

/* Of the largest number in an output. Of bf16, whose numbers are 2^-8 apart, gates before a norm are rounded in between. Bytes
 * may be a step apart, since a rounding lies between any two numbers. */
static double tolerance(nrg_dtype dtype) { return dtype == NRG_F32 ? 1e-5 : 0x1p-6; }
static const double step_of_bytes = 1.01 / 127;

struct lines {
    const bench_args *args;
    int compared, failed;
};

/* The scales that bytes beside it have. */
static int is_scales(const bench_case *c, int operand)
{
    const nrg_call *call = bench_function_of(c)->call;
    return operand < call->operand_count && call->operands[operand].role == NRG_OUT &&
           strcmp(call->operands[operand].name, "scales") == 0;
}

static int is_output(const bench_case *c, int operand)
{
    const bench_operand o = bench_operand_of(c, operand);
    return o.bytes && (o.kind == BENCH_OUT || o.kind == BENCH_ROW_OUT || o.kind == BENCH_BYTES_OUT || is_scales(c, operand));
}

static double number_at(const char *p, size_t i, nrg_dtype dtype)
{
    uint32_t bits = 0;
    float value;
    if (dtype == NRG_F32)
        memcpy(&bits, p + 4 * i, 4);
    else {
        uint16_t half;
        memcpy(&half, p + 2 * i, 2);
        bits = (uint32_t)half << 16;
    }
    memcpy(&value, &bits, 4);
    return (double)value;
}

/* The largest difference of two outputs, as a multiple of the largest number in the first. */
static double difference(const char *a, const char *b, bench_operand o)
{
    double most = 0, largest = 0;
    for (size_t i = 0; i < o.bytes / nrg_dtype_size(o.dtype); i++) {
        const double x = number_at(a, i, o.dtype), y = number_at(b, i, o.dtype);
        largest = fmax(largest, fabs(x));
        if (!(fabs(x - y) <= most))
            most = fabs(x - y);
    }
    return largest > 0 ? most / largest : most;
}

/* What bytes stand for, in floats; NULL: no memory. */
static float *numbers_of(const bench_case *c, const char *q, const char *scales)
{
    float *const o = malloc(bench_shape_elements(c->shape) * sizeof *o);
    const nrg_dequantize_args args =
        nrg_dequantize_args_init(c->op->format, NRG_F32, c->shape.rows, c->shape.dim, q, (const float *)(const void *)scales, o);
    if (o && nrg_dequantize(&args, 0, 1) == NRG_OK)
        return o;
    free(o);
    return NULL;
}

/* As a part of what bytes may be apart: so much of the tolerance. */
static double difference_of_bytes(const bench_case *c, char *const kept[BENCH_OPERANDS], const bench_memory *m, int operand)
{
    const char *kept_scales = NULL, *scales = NULL;
    double d = (double)NAN;
    for (int i = 0; i < BENCH_OPERANDS; i++)
        if (kept[i] && is_scales(c, i)) {
            kept_scales = kept[i];
            scales = bench_memory_at(m, i, BENCH_PLACEMENTS - 1);
        }
    float *const a = numbers_of(c, kept[operand], kept_scales);
    float *const b = numbers_of(c, bench_memory_at(m, operand, BENCH_PLACEMENTS - 1), scales);
    const bench_operand floats = {.dtype = NRG_F32, .bytes = bench_shape_elements(c->shape) * sizeof(float)};
    if (a && b)
        d = difference((const char *)a, (const char *)b, floats) / fmax(step_of_bytes, tolerance(c->dtype)) * tolerance(c->dtype);
    free(a);
    free(b);
    return d;
}

/* The placement that was made ready last: what was filled for the others may be written over. */
enum { LAST = BENCH_PLACEMENTS - 1 };

/* Runs the kernel, and then the rival over what the kernel has left. NaN: no memory. */
static double worst_difference(const bench_case *c, const bench_memory *m, bench_call *call, bench_contest *contest)
{
    char *kept[BENCH_OPERANDS] = {NULL};
    double worst = 0;
    bench_call_before(call);
    bench_call_run(call, LAST, 1);
    for (int i = 0; i < BENCH_OPERANDS; i++)
        if (is_output(c, i)) {
            const size_t bytes = bench_operand_of(c, i).bytes;
            kept[i] = malloc(bytes);
            if (!kept[i])
                worst = (double)NAN;
            else
                memcpy(kept[i], bench_memory_at(m, i, LAST), bytes);
            memset(bench_memory_at(m, i, LAST), 0xff, bytes);
        }
    bench_contest_run(contest, LAST, 1);
    for (int i = 0; i < BENCH_OPERANDS; i++) {
        const bench_operand o = bench_operand_of(c, i);
        const double d = !kept[i] || is_scales(c, i) ? 0
                         : o.kind == BENCH_BYTES_OUT ? difference_of_bytes(c, kept, m, i)
                                                     : difference(kept[i], bench_memory_at(m, i, LAST), o);
        if (!(d <= worst))
            worst = d;
    }
    for (int i = 0; i < BENCH_OPERANDS; i++)
        free(kept[i]);
    return worst;
}

static void rival_line(const bench_case *c, bench_rival rival, struct lines *lines)
{
    bench_memory memory;
    bench_call call = {0};
    bench_contest *contest = calloc(1, sizeof *contest);
    const char *wrong = "not enough memory";
    double d = (double)NAN;
    int here = 1;
    if (contest && bench_memory_make(&memory, c, 1)) {
        wrong = bench_call_bind(&call, c, &memory);
        if (!wrong && (here = bench_contest_bind(contest, rival, c, &call)))
            d = worst_difference(c, &memory, &call, contest);
        bench_call_free(&call);
        bench_memory_free(&memory);
    }
    free(contest);
    if (!here)
        return;
    char name[BENCH_NAME_MAX];
    bench_case_name(c, name);
    lines->compared++;
    if (d <= tolerance(c->dtype))
        return;
    lines->failed++;
    printf("%s/%s: %s, differs by %.3g of the largest number\n", bench_rival_name(rival), name, wrong ? wrong : "wrong", d);
}

/* Whether an earlier shape of the op shrinks to the same one, which is compared already. */
static int is_repeated(const struct lines *lines, const bench_case *of, bench_shape shrunk)
{
    bench_case c = *of;
    for (const bench_shape *s = c.op->shapes; !bench_shape_equal(*s, of->shape); s++) {
        c.shape = *s;
        if (bench_admits_case(lines->args, &c, "all", "all") && shrink(&c) && bench_shape_equal(c.shape, shrunk))
            return 1;
    }
    return 0;
}

static void rival_lines(const bench_case *of, void *ctx)
{
    struct lines *lines = ctx;
    bench_case c = *of;
    if (!bench_admits_case(lines->args, of, "all", "all") || !shrink(&c) || is_repeated(lines, of, c.shape))
        return;
    for (int rival = 0; rival < BENCH_RIVALS; rival++)
        if (bench_contest_loop((bench_rival)rival, &c))
            rival_line(&c, (bench_rival)rival, lines);
}

/* Whether some file's -ffast-math has reached the linker, and with it the whole program. */
static int subnormals_count(void)
{
    volatile float least = 0x1p-149f, two = 2;
    return least * two == 0x1p-148f;
}

int bench_rivals_mode(const bench_args *args)
{
    struct lines lines = {.args = args};
    bench_each_case(NULL, rival_lines, &lines);
    printf("%d rivals' results compared with kernels', %d differ\n", lines.compared, lines.failed);
    if (!subnormals_count())
        puts("subnormals count as zero in this program");
    return !(lines.compared && !lines.failed && subnormals_count());
}
