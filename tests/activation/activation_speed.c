/* The activations beside the same made of SLEEF's functions: elements a nanosecond, on 4096 floats in L1, and ulps. Not a test,
 * and not part of the build. Needs AVX-512 and SLEEF (Debian: libsleef-dev).
 *
 *     gcc -O2 -march=native -ffp-contract=off -Iinclude -Isrc tests/activation/activation_speed.c build/libnrg.a -lsleef -lm
 *     taskset -c 1 ./a.out
 *
 * All contenders take turns; the figure is the median of the turns. The sum of twelve uniform numbers, doubled, is the input:
 * N(0, 4) nearly.
 *
 * SPDX-License-Identifier: MIT */
#include <immintrin.h>
#include <math.h>
#include <sleef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job/activation.h"

enum { N = 4096, TURNS = 301, REPEATS = 10 };

/* SLEEF's finz_ functions give the same bits on all machines, as ours do; u10: within 1.0 ulp. */
#define LOOP(name, type, lanes, load, store, expression)                                                                         \
    static void name(nrg_activation g, const float *in, float *out, size_t n)                                                    \
    {                                                                                                                            \
        (void)g;                                                                                                                 \
        for (size_t i = 0; i < n; i += lanes) {                                                                                  \
            type x = load(in + i);                                                                                               \
            store(out + i, expression);                                                                                          \
        }                                                                                                                        \
    }
#define LOOP16(name, expression) LOOP(name, __m512, 16, _mm512_loadu_ps, _mm512_storeu_ps, expression)
#define LOOP8(name, expression) LOOP(name, __m256, 8, _mm256_loadu_ps, _mm256_storeu_ps, expression)
#define SET16 _mm512_set1_ps
#define SET8 _mm256_set1_ps

LOOP16(silu16, _mm512_div_ps(x, _mm512_add_ps(SET16(1), Sleef_finz_expf16_u10avx512f(_mm512_sub_ps(SET16(0), x)))))
LOOP8(silu8, _mm256_div_ps(x, _mm256_add_ps(SET8(1), Sleef_finz_expf8_u10avx2(_mm256_sub_ps(SET8(0), x)))))
LOOP16(tanh16, Sleef_finz_tanhf16_u10avx512f(x))
LOOP8(tanh8, Sleef_finz_tanhf8_u10avx2(x))
LOOP16(gelu16, _mm512_mul_ps(_mm512_mul_ps(x, SET16(0.5f)),
                             _mm512_add_ps(SET16(1), Sleef_finz_erff16_u10avx512f(_mm512_mul_ps(x, SET16(0.70710678f))))))
LOOP8(gelu8, _mm256_mul_ps(_mm256_mul_ps(x, SET8(0.5f)),
                           _mm256_add_ps(SET8(1), Sleef_finz_erff8_u10avx2(_mm256_mul_ps(x, SET8(0.70710678f))))))

static const struct {
    nrg_activation activation;
    void (*avx512[2])(nrg_activation g, const float *in, float *out, size_t n); /* ours, SLEEF's */
    void (*avx2[2])(nrg_activation g, const float *in, float *out, size_t n);
} contests[] = {
    {NRG_ACT_SILU, {nrg_avx512_activate, silu16}, {nrg_avx2_activate, silu8}},
    {NRG_ACT_TANH, {nrg_avx512_activate, tanh16}, {nrg_avx2_activate, tanh8}},
    {NRG_ACT_GELU, {nrg_avx512_activate, gelu16}, {nrg_avx2_activate, gelu8}},
};

static double nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double exact(nrg_activation g, double x)
{
    return g == NRG_ACT_TANH ? tanh(x) : g == NRG_ACT_SILU ? x / (1 + exp(-x)) : x / 2 * erfc(-x * 0.70710678118654752);
}

/* The largest error over one in 61 of the floats from -80 to 80. */
static double largest_error(nrg_activation g, void (*run)(nrg_activation g, const float *in, float *out, size_t n))
{
    static float in[N], out[N];
    double worst = 0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32;) {
        for (size_t i = 0; i < N; i++, bits += 61) {
            uint32_t u = (uint32_t)bits;
            memcpy(&in[i], &u, sizeof u);
            in[i] = fabsf(in[i]) <= 80 ? in[i] : 0;
        }
        run(g, in, out, N);
        for (size_t i = 0; i < N; i++) {
            double e = exact(g, in[i]), ulp = fmax(ldexp(1, ilogb(e == 0 ? 1 : e) - 23), 0x1p-149);
            worst = fmax(worst, fabs((double)out[i] - e) / ulp);
        }
    }
    return worst;
}

int main(void)
{
    static float in[N], out[N];
    static double times[4][TURNS];
    for (size_t i = 0; i < N; i++)
        for (int j = 0; j < 12; j++)
            in[i] += 2 * (float)(drand48() - 0.5);
    printf("| elements/ns | AVX-512 | SLEEF | AVX2 | SLEEF | ulp | SLEEF |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (size_t c = 0; c < sizeof contests / sizeof contests[0]; c++) {
        const nrg_activation g = contests[c].activation;
        for (size_t turn = 0; turn < TURNS; turn++)
            for (size_t who = 0; who < 4; who++) {
                void (*run)(nrg_activation, const float *, float *, size_t) =
                    who < 2 ? contests[c].avx512[who] : contests[c].avx2[who - 2];
                double start = nanoseconds();
                for (int i = 0; i < REPEATS; i++) {
                    run(g, in, out, N);
                    __asm__ volatile("" : : "r"(out) : "memory");
                }
                times[who][turn] = nanoseconds() - start;
            }
        printf("| %s |", nrg_activation_name(g));
        for (size_t who = 0; who < 4; who++) {
            qsort(times[who], TURNS, sizeof times[who][0], by_size);
            printf(" %.2f |", (double)N * REPEATS / times[who][TURNS / 2]);
        }
        printf(" %.2f | %.3g |\n", largest_error(g, contests[c].avx512[0]), largest_error(g, contests[c].avx512[1]));
    }
    return 0;
}
