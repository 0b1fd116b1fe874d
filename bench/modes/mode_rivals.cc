/* --rivals: whether what kernels are held against computes what they compute.
 *
 * SPDX-License-Identifier: MIT */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../share.h"
#include "modes.h"

namespace bench
{

/* What is compared of larger cases has so many rows, or is a small image, since their loops are the same; a single row that is
 * longer is left out. Scalar kernels take long, and emulators (NRG_TEST_SCALE=small) as well. */
static bool shrink(bench_case &c)
{
    const char *scale = getenv("NRG_TEST_SCALE");
    const bool is_small = c.isa == NRG_ISA_SCALAR || (scale && strcmp(scale, "small") == 0);
    const size_t most = is_small ? 1 << 13 : 1 << 16;
    if (c.shape.channels)
        c.shape = BENCH_IMAGES(3, 64, 6, 7);
    else if (bench_shape_elements(c.shape) > most)
        c.shape.rows = most / c.shape.dim;
    if (c.op->format)
        c.shape.rows -= c.shape.rows % nrg_quant_rows(c.op->format);
    return c.shape.rows > 0;
}

/* Of the largest number in an output. Of bf16, whose numbers are 2^-8 apart, gates before a norm are rounded in between. Bytes
 * may be a step apart, since a rounding lies between any two numbers. */
static double tolerance(nrg_dtype dtype) { return dtype == NRG_F32 ? 1e-5 : 0x1p-6; }
static constexpr double step_of_bytes = 1.01 / 127;

using Bytes = std::vector<char>;

/* The scales that bytes beside it have. */
static bool is_scales(const bench_case &c, int operand)
{
    const nrg_call *call = bench_function_of(&c)->call;
    return operand < call->operand_count && call->operands[operand].role == NRG_OUT &&
           strcmp(call->operands[operand].name, "scales") == 0;
}

static std::vector<double> numbers_of(const char *p, size_t bytes, nrg_dtype dtype)
{
    const size_t size = nrg_dtype_size(dtype);
    std::vector<double> numbers(bytes / size);
    for (size_t i = 0; i < numbers.size(); i++) {
        uint32_t bits = 0;
        float value;
        memcpy((char *)&bits + 4 - size, p + size * i, size); /* bf16 is the upper half of a float */
        memcpy(&value, &bits, 4);
        numbers[i] = (double)value;
    }
    return numbers;
}

/* Of rows as bytes: the numbers that they stand for. */
static std::vector<double> numbers_of_blocks(const bench_case &c, const char *packed, const char *scales)
{
    std::vector<float> o(bench_shape_elements(c.shape));
    const nrg_dequantize_args args = nrg_dequantize_args_init(c.op->format, NRG_F32, c.shape.rows, c.shape.dim, packed,
                                                              (const float *)(const void *)scales, o.data());
    bench_require(nrg_dequantize(&args, 0, 1));
    return {o.begin(), o.end()};
}

/* The largest difference of two outputs, as a multiple of the largest number in the first. */
static double difference(const std::vector<double> &a, const std::vector<double> &b)
{
    double most = 0, largest = 0;
    for (size_t i = 0; i < a.size(); i++) {
        largest = fmax(largest, fabs(a[i]));
        if (!(fabs(a[i] - b[i]) <= most))
            most = fabs(a[i] - b[i]);
    }
    return largest > 0 ? most / largest : most;
}

/* The placement that was made ready last: what was filled for the others may be written over. */
enum { LAST = BENCH_PLACEMENTS - 1 };

static bool is_output(const bench_case &c, int operand)
{
    const bench_operand o = bench_operand_of(&c, operand);
    return o.bytes && (o.kind == BENCH_OUT || o.kind == BENCH_ROW_OUT || o.kind == BENCH_BYTES_OUT || is_scales(c, operand));
}

/* Runs the kernel, and then the rival over what the kernel has left. */
static double worst_difference(const bench_case &c, const bench_memory &m, const Contender &kernel, const Batch &rival)
{
    Bytes kept[BENCH_OPERANDS];
    const char *kept_scales = nullptr, *scales = nullptr;
    double worst = 0;
    kernel.before();
    kernel.run(LAST, 1);
    for (int i = 0; i < BENCH_OPERANDS; i++)
        if (is_output(c, i)) {
            char *const at = bench_memory_at(&m, i, LAST);
            kept[i] = Bytes(at, at + bench_operand_of(&c, i).bytes);
            memset(at, 0xff, kept[i].size());
            if (is_scales(c, i)) {
                kept_scales = kept[i].data();
                scales = at;
            }
        }
    rival(LAST, 1);
    for (int i = 0; i < BENCH_OPERANDS; i++) {
        const bench_operand o = bench_operand_of(&c, i);
        const char *at = bench_memory_at(&m, i, LAST);
        double d = 0;
        if (o.kind == BENCH_BYTES_OUT && !kept[i].empty()) /* as a part of what bytes may be apart: so much of the tolerance */
            d = difference(numbers_of_blocks(c, kept[i].data(), kept_scales), numbers_of_blocks(c, at, scales)) /
                fmax(step_of_bytes, tolerance(c.dtype)) * tolerance(c.dtype);
        else if (!kept[i].empty() && !is_scales(c, i))
            d = difference(numbers_of(kept[i].data(), o.bytes, o.dtype), numbers_of(at, o.bytes, o.dtype));
        if (!(d <= worst))
            worst = d;
    }
    return worst;
}

/* Whether an earlier shape of the op shrinks to the same one, which is compared already. */
static bool is_repeated(const bench_args &args, const bench_case &of, bench_shape shrunk)
{
    bench_case c = of;
    for (const bench_shape *s = c.op->shapes; !bench_shape_equal(*s, of.shape); s++) {
        c.shape = *s;
        if (admits(args, c) && shrink(c) && bench_shape_equal(c.shape, shrunk))
            return true;
    }
    return false;
}

/* Whether some file's -ffast-math has reached the linker, and with it the whole program. */
static bool subnormals_count()
{
    volatile float least = 0x1p-149f, two = 2;
    return least * two == 0x1p-148f;
}

int rivals_mode(const bench_args &args)
{
    int compared = 0, failed = 0;
    const auto line = [&](const bench_case &c, bench_rival rival) {
        double d = (double)NAN;
        std::string wrong = "wrong";
        try {
            const Memory memory(&c, 1);
            Call call(c, memory);
            const Batch batch = rival_batch(rival, c, call);
            if (!batch)
                return;
            d = worst_difference(c, memory, call.contender(), batch);
        } catch (const std::runtime_error &why) {
            wrong = why.what();
        }
        compared++;
        if (d <= tolerance(c.dtype))
            return;
        failed++;
        printf("%s/%s: %s, differs by %.3g of the largest number\n", rival_name(rival), name_of(c).c_str(), wrong.c_str(), d);
    };
    each_case([&](const bench_case &of) {
        bench_case c = of;
        if (!admits(args, of) || !shrink(c) || is_repeated(args, of, c.shape))
            return;
        for (bench_rival rival : {BENCH_NAIVE, BENCH_SLEEF})
            if (rival_of(rival, c))
                line(c, rival);
    });
    printf("%d rivals' results compared with kernels', %d differ\n", compared, failed);
    if (!subnormals_count())
        puts("subnormals count as zero in this program");
    return !(compared && !failed && subnormals_count());
}

} // namespace bench
