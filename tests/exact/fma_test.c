/* src/exact/fma.c against the CPU's own fused multiply-add, or where there is none the C library's: every bit, on numbers of all
 * kinds, above all where a sum cancels, is half-way between two numbers, is subnormal or overflows.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/support.h"
#include "internal.h"

#if defined(__x86_64__)
__attribute__((target("fma"))) static double cpu_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
__attribute__((target("fma"))) static float cpu_fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static int has_cpu_fma(void) { return (nrg_cpu_features() & NRG_CPU_FMA) != 0; }
#else
static double cpu_fma(double a, double b, double c) { return fma(a, b, c); }
static float cpu_fmaf(float a, float b, float c) { return fmaf(a, b, c); }
static int has_cpu_fma(void) { return 0; }
#endif

static double true_fma(double a, double b, double c) { return has_cpu_fma() ? cpu_fma(a, b, c) : fma(a, b, c); }
static float true_fmaf(float a, float b, float c) { return has_cpu_fma() ? cpu_fmaf(a, b, c) : fmaf(a, b, c); }

static uint64_t bits_of(double a)
{
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}
static double of_bits(uint64_t bits)
{
    double a;
    memcpy(&a, &bits, sizeof a);
    return a;
}
static float of_bits_f(uint32_t bits)
{
    float a;
    memcpy(&a, &bits, sizeof a);
    return a;
}

static void check(double a, double b, double c)
{
    const double got = nrg_fma(a, b, c), wanted = true_fma(a, b, c);
    if (bits_of(got) != bits_of(wanted) && !(isnan(got) && isnan(wanted)))
        ck_abort_msg("fma(%a, %a, %a) is %a, not %a", a, b, c, wanted, got);
}

static void check_f(float a, float b, float c)
{
    const float got = nrg_fmaf(a, b, c), wanted = true_fmaf(a, b, c);
    if (memcmp(&got, &wanted, sizeof got) != 0 && !(isnan(got) && isnan(wanted)))
        ck_abort_msg("fmaf(%a, %a, %a) is %a, not %a", (double)a, (double)b, (double)c, (double)wanted, (double)got);
}

static uint64_t calls(void) { return test_small() ? 300000 : 20000000; }

static const uint64_t edges[] = {
    0,
    1,
    2,
    0x000fffffffffffff,
    0x0010000000000000,
    0x0010000000000001,
    0x1ff0000000000000,
    0x2000000000000001,
    0x3ca0000000000000,
    0x3fefffffffffffff,
    0x3ff0000000000000,
    0x3ff0000000000001,
    0x3ff8000000000000,
    0x5fefffffffffffff,
    0x7fefffffffffffff,
    0x7ff0000000000000,
    0x7ff8000000000000,
};
enum { EDGES = sizeof edges / sizeof edges[0] };

static double edge(size_t i) { return of_bits(edges[i / 2] | (uint64_t)(i % 2) << 63); }

START_TEST(all_edges)
{
    for (size_t i = 0; i < 2 * EDGES; i++)
        for (size_t j = 0; j < 2 * EDGES; j++)
            for (size_t k = 0; k < 2 * EDGES; k++) {
                check(edge(i), edge(j), edge(k));
                check_f((float)edge(i), (float)edge(j), (float)edge(k));
            }
}
END_TEST

START_TEST(any_bits)
{
    uint64_t r = 1;
    for (uint64_t n = 0; n < calls(); n++) {
        const uint64_t a = r = test_mix(r), b = r = test_mix(r), c = r = test_mix(r);
        check(of_bits(a), of_bits(b), of_bits(c));
        check_f(of_bits_f((uint32_t)a), of_bits_f((uint32_t)b), of_bits_f((uint32_t)c));
    }
}
END_TEST

/* The addend as large as the product, or up to 2^108 larger or smaller, both with few or many bits: so that sums cancel, and end
 * at the middle between two numbers; and all of it at every place of the range, the subnormal one more often than by chance. */
START_TEST(near_each_other)
{
    static const uint64_t masks[] = {UINT64_MAX, UINT64_MAX << 26, UINT64_MAX << 45, UINT64_MAX << 51};
    uint64_t r = 2;
    for (uint64_t n = 0; n < calls(); n++) {
        const uint64_t x = r = test_mix(r), y = r = test_mix(r), z = r = test_mix(r), choice = r = test_mix(r);
        const uint64_t fraction = ((uint64_t)1 << 52) - 1, one = (uint64_t)1023 << 52;
        const double a = of_bits((x & fraction & masks[choice & 3]) | one),
                     b = of_bits((y & fraction & masks[choice >> 2 & 3]) | one);
        double c = of_bits((z & fraction & masks[choice >> 4 & 3]) | one | z >> 63 << 63);
        if (choice >> 6 & 1)
            c = of_bits(bits_of(-(a * b)) + (choice >> 7 & 3) - 1);
        const int apart = (choice >> 9 & 1) ? (int)(choice >> 10 & 255) - 128 : 0;
        const int place = (choice >> 18 & 1) ? -1074 - 10 + (int)(choice >> 19 & 127) : (int)(choice >> 19 & 2047) - 1074;
        check(ldexp(a, place / 2), ldexp(b, place - place / 2), ldexp(c, place + apart));
        const int place_f = (choice >> 18 & 1) ? -149 - 5 + (int)(choice >> 19 & 31) : (int)(choice >> 19 & 255) - 149;
        check_f((float)ldexp(a, place_f / 2), (float)ldexp(b, place_f - place_f / 2), (float)ldexp(c, place_f + apart / 2));
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
#if defined(_WIN32)
    if (!has_cpu_fma()) {
        printf("SKIP: this CPU has no fused multiply-add, and the C library's is none\n");
        return 77;
    }
#endif
    printf("against %s\n", has_cpu_fma() ? "the CPU's" : "the C library's");
    Suite *suite = suite_create("fma");
    TCase *tests = test_case(suite, "fma");
    tcase_add_test(tests, all_edges);
    tcase_add_test(tests, any_bits);
    tcase_add_test(tests, near_each_other);
    return test_run(suite);
}
