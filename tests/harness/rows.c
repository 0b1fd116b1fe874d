/* SPDX-License-Identifier: MIT */
#include "rows.h"

#include <math.h>
#include <stdlib.h>

#include "element.h"

const char *row_kind_name(enum row_kind kind)
{
    static const char *const names[ROW_ALL_KINDS] = {
        [ROW_NORMAL] = "N(0,1)",
        [ROW_MEAN_1E3] = "mean 1e3, std 1",
        [ROW_MEAN_1E4] = "mean 1e4, std 1e-2",
        [ROW_OUTLIER] = "one outlier of 1e4",
        [ROW_EQUAL] = "all equal",
        [ROW_ALTERNATING] = "alternating ±1e30",
        [ROW_1E_20] = "1e-20 scale",
        [ROW_1E_30] = "1e-30 scale",
        [ROW_NEAR_MAX] = "near the largest number",
        [ROW_SUBNORMAL] = "subnormals",
        [ROW_EXTREMES] = "largest and smallest mixed",
        [ROW_SORTED] = "sorted",
        [ROW_FIRST_64] = "first 64 unlike the rest",
        [ROW_NEARLY_EQUAL] = "all equal but one ulp",
        [ROW_HUGE] = "1e30 scale",
        [ROW_ZEROS] = "zeros of both signs",
        [ROW_ONE_INF] = "one infinity",
        [ROW_ONE_NAN] = "one NaN",
        [ROW_LAST_OUTLIER] = "outlier at the end",
        [ROW_ANY_MAGNITUDE] = "any magnitude",
        [ROW_AT_QUIET_LIMIT] = "mean square at a limit",
        [ROW_AT_MEAN_LIMIT] = "mean of half σ",
        [ROW_LARGE_MEAN] = "mean of 2^8 σ and more",
        [ROW_LEVELS] = "pieces of one value",
        [ROW_SCALES] = "pieces of any scale",
        [ROW_SD_1] = "N(0,1), in numbers",
        [ROW_SD_4] = "σ = 4",
        [ROW_SD_10] = "σ = 10",
        [ROW_UNIFORM] = "uniform",
        [ROW_OF_BF16] = "N(0,1) in bf16",
    };
    return names[kind];
}

/* A standard normal number, by Box and Muller. */
static double draw_normal(uint64_t *state)
{
    double u = ((double)test_draw(state, (size_t)1 << 31) + 0.5) / 0x1p31;
    double v = (double)test_draw(state, (size_t)1 << 31) / 0x1p31;
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

/* One of a pool of them. */
enum { POOL = 1 << 16 };

static float normal(size_t n)
{
    static float pool[POOL];
    static int filled;
    if (!filled) {
        uint64_t state = 1;
        for (size_t i = 0; i < POOL; i++)
            pool[i] = (float)draw_normal(&state);
        filled = 1;
    }
    return pool[n % POOL];
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* A power of two whose multiples by numbers near 1 the dtype has. */
static double draw_scale(uint64_t *state, nrg_dtype dtype)
{
    const int low = dtype == NRG_F16 ? -20 : -140, high = dtype == NRG_F16 ? 12 : 120;
    return ldexp(1, low + (int)test_draw(state, (size_t)(high - low + 1)));
}

static float clamped(double v, nrg_dtype dtype)
{
    const double largest = (double)element_max(dtype);
    return element_round((float)fmax(-largest, fmin(largest, v)), dtype);
}

static void fill_large_mean(float *row, size_t dim, nrg_dtype dtype, uint64_t state)
{
    const size_t start = test_draw(&state, POOL);
    const double mean = draw_scale(&state, dtype) * (test_draw(&state, 2) ? 1 : -1) * (1 + (double)normal(start) / 16);
    const double sigma = ldexp(mean, -(int)(8 + test_draw(&state, 23)));
    for (size_t i = 0; i < dim; i++)
        row[i] = clamped(mean + sigma * (double)normal(start + i), dtype);
}

static void fill_pieces(float *row, size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t state)
{
    for (size_t i = 0, end; i < dim; i = end) {
        const size_t most = test_draw(&state, 2) ? dim : 300, length = 1 + test_draw(&state, most);
        const size_t start = test_draw(&state, POOL);
        const double scale = draw_scale(&state, dtype);
        end = length < dim - i ? i + length : dim;
        for (size_t k = i; k < end; k++)
            row[k] = clamped(scale * (double)normal(kind == ROW_LEVELS ? start : start + k), dtype);
    }
}

static void fill_ordinary(float *row, size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t state)
{
    const double scale = kind == ROW_SD_4 ? 4 : kind == ROW_SD_10 ? 10 : 1;
    for (size_t i = 0; i < dim; i++) {
        const float value = (float)(kind == ROW_UNIFORM ? test_uniform(&state) : scale * draw_normal(&state));
        row[i] = element_round(kind == ROW_OF_BF16 ? element_round(value, NRG_BF16) : value, dtype);
    }
}

void row_fill(float *row, size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t seed)
{
    if (kind >= ROW_ORDINARY) {
        fill_ordinary(row, dim, kind, dtype, seed);
        return;
    }
    if (kind == ROW_LARGE_MEAN) {
        fill_large_mean(row, dim, dtype, seed);
        return;
    }
    if (kind == ROW_LEVELS || kind == ROW_SCALES) {
        fill_pieces(row, dim, kind, dtype, seed);
        return;
    }
    int f16 = dtype == NRG_F16;
    uint64_t state = seed;
    size_t start = test_draw(&state, POOL), step = 2 * test_draw(&state, 1000) + 1, place = test_draw(&state, dim);
    float largest = element_max(dtype), smallest = f16 ? 0x1p-24f : dtype == NRG_BF16 ? 0x1p-133f : 0x1p-149f;
    float offset = 0, scale = 1, param = normal(test_draw(&state, POOL));
    switch (kind) {
    case ROW_MEAN_1E3:
        offset = 1e3f;
        break;
    case ROW_MEAN_1E4:
        offset = 1e4f;
        scale = 1e-2f;
        break;
    case ROW_EQUAL:
    case ROW_NEARLY_EQUAL:
        offset = param;
        scale = 0;
        break;
    case ROW_1E_20:
        scale = f16 ? 1e-3f : 1e-20f;
        break;
    case ROW_1E_30:
        scale = f16 ? 1e-5f : 1e-30f;
        break;
    case ROW_SUBNORMAL:
        scale = f16 ? 2e-5f : 2e-39f;
        break;
    case ROW_HUGE:
        scale = f16 ? 1e4f : 1e30f;
        break;
    case ROW_AT_QUIET_LIMIT:
        scale = (float)ldexp(1 + 0.05 * param, f16 ? 0 : test_draw(&state, 2) ? 40 : -40);
        break;
    case ROW_AT_MEAN_LIMIT:
        offset = 0.45f + 0.02f * param;
        break;
    default:
        break;
    }
    for (size_t i = 0; i < dim; i++) {
        float n = normal(start + i * step + i / POOL * 12345), v = offset + scale * n;
        switch (kind) {
        case ROW_NEARLY_EQUAL:
            v = element_round(v, dtype);
            v = i == place ? (float)(v - element_ulp(v, dtype)) : v;
            break;
        case ROW_ALTERNATING:
            v = (i % 2 ? -1 : 1) * (f16 ? 3e4f : 1e30f);
            break;
        case ROW_NEAR_MAX:
            v = copysignf(largest * (1 - 0.01f * fabsf(n) / 6), n);
            break;
        case ROW_EXTREMES:
            v = copysignf(i % 3 ? largest : smallest * (1 + (float)(i % 5)), n);
            break;
        case ROW_FIRST_64:
            v = i < 64 ? 1e3f + n : n;
            break;
        case ROW_ZEROS:
            v = copysignf(0, n);
            break;
        case ROW_ANY_MAGNITUDE:
            v = copysignf((float)ldexp(fabs((double)n), f16 ? (int)(i * step % 38) - 23 : (int)(i * step % 270) - 145), n);
            break;
        default:
            break;
        }
        if (fabsf(v) > largest)
            v = copysignf(largest, v);
        row[i] = element_round(v, dtype);
    }
    switch (kind) {
    case ROW_OUTLIER:
        row[place] = element_round(1e4f, dtype);
        break;
    case ROW_LAST_OUTLIER:
        row[dim - 1] = element_round(-1e4f, dtype);
        break;
    case ROW_ONE_INF:
        row[place] = copysignf(INFINITY, param);
        break;
    case ROW_ONE_NAN:
        row[place] = NAN;
        break;
    case ROW_SORTED:
        qsort(row, dim, sizeof *row, ascending);
        break;
    default:
        break;
    }
}

float *row_new(size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t seed)
{
    float *row = test_allocate(dim, sizeof *row);
    row_fill(row, dim, kind, dtype, seed);
    return row;
}
