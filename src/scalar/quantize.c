/* Rows to blocks of bytes and back: the definition of their bits.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/quantize.h"

#include <float.h>
#include <math.h>

#include "element.h"

enum { ROW_OF_32 = 32, BLOCK_OF_K = 256, SUM_OF = 16 };

static int is_k(nrg_quant_format format) { return format >= NRG_QUANT_Q8_K && format <= NRG_QUANT_Q8_K_8X8; }

/* Elements that lie together in an interleaved format; where rows are alone it is all the same. */
static size_t chunk_of(nrg_quant_format format)
{
    return format == NRG_QUANT_Q8_0_4X4 || format == NRG_QUANT_Q8_0_8X4 || format == NRG_QUANT_Q8_K_4X4 ||
                   format == NRG_QUANT_Q8_K_8X4
               ? 4
               : 8;
}

/* A block of one row: its number and the row's among `rows` of them. */
typedef struct place {
    size_t block, row, rows;
} place;

static place place_of(const nrg_quant_row *to, size_t first)
{
    return (place){first / (is_k(to->format) ? BLOCK_OF_K : ROW_OF_32), to->row, nrg_format_rows(to->format)};
}

/* Bytes from a group's first to a block's scale, to one of its elements, and to one of its sums. */
static size_t at_scale(nrg_quant_format format, place p)
{
    return p.block * p.rows * (is_k(format) ? 292 : 34) + p.row * (is_k(format) ? 4 : 2);
}

static size_t at_element(nrg_quant_format format, place p, size_t i)
{
    const size_t chunk = chunk_of(format), scales = p.rows * (is_k(format) ? 4 : 2);
    return p.block * p.rows * (is_k(format) ? 292 : 34) + scales + i / chunk * chunk * p.rows + p.row * chunk + i % chunk;
}

static size_t at_sum(place p, size_t s)
{
    return (p.block * 292 + 4 + BLOCK_OF_K) * p.rows + 2 * (s / 4 * 4 * p.rows + p.row * 4 + s % 4);
}

float nrg_scalar_amax(const float *x, size_t n, float so_far)
{
    for (size_t i = 0; i < n && so_far == so_far; i++)
        so_far = fabsf(x[i]) <= so_far ? so_far : fabsf(x[i]);
    return so_far;
}

static int8_t rounded(float x, float inverse, nrg_quant_rounding rounding)
{
    const float quotient = x * inverse, whole = rounding == NRG_QUANT_ROUND_AWAY ? roundf(quotient) : rintf(quotient);
    return (int8_t)(whole < 127 ? whole : 127); /* which it is, unless the thread rounds upwards */
}

/* The scale of a block: d, which is stored, and 1/d, which elements are multiplied with. largest: what becomes 127, or -127. */
typedef struct scale {
    float d, inverse;
} scale;

static scale scale_of(float largest, nrg_quant_format format)
{
    scale s = {0, 0};
    if (!(fabsf(largest) <= FLT_MAX)) {
        s.d = nrg_f32_from_bits(0x7fc00000);
    } else if (is_k(format) && largest != 0) {
        s.inverse = -127.0f / largest;
        s.d = 1 / s.inverse;
    } else if (largest != 0) {
        s.d = largest / 127;
        s.inverse = 1 / s.d;
    }
    return s.inverse <= FLT_MAX && s.inverse >= -FLT_MAX ? s : (scale){0, 0};
}

static void put(char *q, size_t at, const void *from, size_t bytes) { memcpy(q + at, from, bytes); }

static void quantize_block(const nrg_quant_row *to, const float *x, size_t first)
{
    const place p = place_of(to, first);
    const size_t n = is_k(to->format) ? BLOCK_OF_K : ROW_OF_32;
    const float amax = nrg_scalar_amax(x, n, 0);
    size_t m = 0;
    while (is_k(to->format) && m + 1 < n && fabsf(x[m]) < amax)
        m++;
    const scale s = scale_of(is_k(to->format) && amax == amax ? x[m] : amax, to->format);
    int16_t sums[BLOCK_OF_K / SUM_OF] = {0};
    for (size_t i = 0; i < n; i++) {
        const int8_t value = s.inverse != 0 ? rounded(x[i], s.inverse, to->rounding) : 0;
        put(to->q, at_element(to->format, p, i), &value, sizeof value);
        sums[i / SUM_OF] = (int16_t)(sums[i / SUM_OF] + value);
    }
    const uint16_t half = nrg_f32_to_f16(s.d);
    if (!is_k(to->format)) {
        put(to->q, at_scale(to->format, p), &half, sizeof half);
        return;
    }
    put(to->q, at_scale(to->format, p), &s.d, sizeof s.d);
    for (size_t i = 0; i < n / SUM_OF; i++)
        put(to->q, at_sum(p, i), &sums[i], sizeof sums[i]);
}

/* Elements `first` to first + n, of one scale that is number `group`. */
static void quantize_int8(const nrg_quant_row *to, const float *x, size_t first, size_t n, float amax, size_t group)
{
    const scale s = scale_of(amax, to->format);
    to->scales[group] = s.d;
    for (size_t i = 0; i < n; i++) {
        const int8_t value = s.inverse != 0 ? rounded(x[i], s.inverse, to->rounding) : 0;
        put(to->q, first + i, &value, sizeof value);
    }
}

void nrg_scalar_quantize_floats(const nrg_quant_row *to, const float *x, size_t first, size_t n, float amax)
{
    const size_t block = nrg_format_block(to->format);
    if (!block) {
        quantize_int8(to, x, first, n, amax >= 0 || amax != amax ? amax : nrg_scalar_amax(x, n, 0), 0);
        return;
    }
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < block ? n - i : block;
        if (nrg_format_has_scales(to->format))
            quantize_int8(to, x + i, first + i, some, nrg_scalar_amax(x + i, some, 0), (first + i) / block);
        else
            quantize_block(to, x + i, first + i);
    }
}

/* A row in parts of a block; with one scale for all of it, the largest magnitude comes first. */
static void quantize_row(const nrg_quantize_job *job, const nrg_quant_row *to, const char *x, nrg_dtype dtype)
{
    float part[BLOCK_OF_K], amax = 0;
    for (int pass = nrg_format_block(job->format) ? 1 : 0; pass < 2; pass++)
        for (size_t i = 0, n; i < job->dim; i += n) {
            n = job->dim - i < BLOCK_OF_K ? job->dim - i : BLOCK_OF_K;
            for (size_t j = 0; j < n; j++)
                part[j] = load(x, i + j, dtype);
            if (pass == 0)
                amax = nrg_scalar_amax(part, n, amax);
            else
                nrg_scalar_quantize_floats(to, part, i, n, amax);
        }
}

static void quantize(const nrg_quantize_job *job, nrg_dtype dtype)
{
    const size_t rows = nrg_format_rows(job->format);
    for (size_t group = job->begin; group < job->end; group++)
        for (size_t r = 0; r < rows; r++) {
            const size_t row = group * rows + r;
            const nrg_quant_row to = {.q = job->q + group * job->q_stride,
                                      .scales = job->scales ? (float *)(job->scales + row * job->scales_stride) : NULL,
                                      .row = r,
                                      .format = job->format,
                                      .rounding = job->rounding};
            quantize_row(job, &to, job->x + row * job->x_stride, dtype);
        }
}

SCALAR_KERNELS(quantize, quantize, quantize)

static float dequantized(const nrg_quantize_job *job, size_t group, size_t r, size_t i)
{
    const char *q = job->q_in + group * job->q_stride;
    int8_t value;
    uint16_t half;
    float d;
    if (nrg_format_has_scales(job->format)) {
        const size_t block = nrg_format_block(job->format), row = group * nrg_format_rows(job->format) + r;
        d = ((const float *)(job->scales_in + row * job->scales_stride))[block ? i / block : 0];
        memcpy(&value, q + i, sizeof value);
    } else {
        const size_t n = is_k(job->format) ? BLOCK_OF_K : ROW_OF_32;
        const place p = {i / n, r, nrg_format_rows(job->format)};
        if (is_k(job->format)) {
            memcpy(&d, q + at_scale(job->format, p), sizeof d);
        } else {
            memcpy(&half, q + at_scale(job->format, p), sizeof half);
            d = nrg_f16_to_f32(half);
        }
        memcpy(&value, q + at_element(job->format, p, i % n), sizeof value);
    }
    return d * (float)value;
}

static void dequantize(const nrg_quantize_job *job, nrg_dtype dtype)
{
    const size_t rows = nrg_format_rows(job->format);
    for (size_t group = job->begin; group < job->end; group++)
        for (size_t r = 0; r < rows; r++)
            for (size_t i = 0; i < job->dim; i++)
                store(job->o + (group * rows + r) * job->x_stride, i, dtype, dequantized(job, group, r, i));
}

SCALAR_KERNELS(dequantize, quantize, dequantize)
