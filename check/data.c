/* What rows, and other lines of elements, hold in nrg check.
 *
 * SPDX-License-Identifier: MIT */
#include "data.h"

#include <string.h>

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. */
static inline uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t sweep_random(uint64_t *state) { return next(state); }

unsigned sweep_draw(uint64_t *state, unsigned n) { return (unsigned)((sweep_random(state) >> 32) * n >> 32); }

int sweep_draw_shares(uint64_t *state)
{
    static const int shares[] = {1, 1, 2, 3, 7};
    return shares[sweep_draw(state, 5)];
}

/* Near N(0,1), every value exact in f32: the sum of four 16-bit numbers that z consists of. */
static inline float normal(uint64_t z)
{
    int sum = (int)((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
    return (float)(sum - 2 * 0xffff) * 0x1p-15f;
}

static inline uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* f32 to f16 by cutting the fraction, and finite values too large to the largest: data need not be rounded well. */
static uint32_t to_f16(float f)
{
    uint32_t bits = bits_of(f), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    int exponent = (int)(magnitude >> 23) - 127 + 15;
    uint32_t fraction = magnitude & 0x7fffff;
    if (magnitude >= 0x7f800000)
        return sign | (fraction ? 0x7e00 : 0x7c00);
    if (exponent > 30)
        return sign | 0x7bff;
    if (exponent < -10)
        return sign;
    if (exponent < 1)
        return sign | (fraction | 0x800000) >> (14 - exponent);
    return sign | (uint32_t)exponent << 10 | fraction >> 13;
}

static inline uint32_t to_dtype(float f, nrg_dtype dtype)
{
    return dtype == NRG_F32 ? bits_of(f) : dtype == NRG_F16 ? to_f16(f) : bits_of(f) >> 16;
}

typedef struct format {
    uint32_t sign, exponent, fraction; /* masks */
    float large, small;                /* where squares leave f32, and for f16 near the ends of its range */
} format;

static format format_of(nrg_dtype dtype)
{
    static const format f32 = {0x80000000, 0x7f800000, 0x7fffff, 0x1p100f, 0x1p-100f};
    static const format f16 = {0x8000, 0x7c00, 0x3ff, 0x1p13f, 0x1p-13f};
    static const format bf16 = {0x8000, 0x7f80, 0x7f, 0x1p100f, 0x1p-100f};
    return dtype == NRG_F32 ? f32 : dtype == NRG_F16 ? f16 : bf16;
}

enum kind {
    NORMAL,
    WEIGHTS, /* near 1 */
    GENTLE,  /* near 0 */
    SHIFTED, /* mean 1e3, deviation 1 */
    FAR,     /* mean 1e4, deviation 1/100 */
    LARGE,
    SMALL,
    LARGEST, /* up to the end of the range */
    SUBNORMAL,
    ZEROS, /* of both signs */
    CONSTANT,
    SORTED,
    OUTLIER,     /* one */
    OTHER_START, /* the first 64 elements unlike the rest */
    ALTERNATING, /* large, of alternating sign */
    ANY_FINITE,  /* random bits */
    INFINITE,    /* one element */
    NOT_A_NUMBER /* likewise */
};

/* What every row of x and y may be. NORMAL is drawn more often than the others. */
static const enum kind row_kinds[] = {NORMAL,   NORMAL, NORMAL,  NORMAL,      NORMAL,      SHIFTED,
                                      FAR,      LARGE,  SMALL,   LARGEST,     SUBNORMAL,   ZEROS,
                                      CONSTANT, SORTED, OUTLIER, OTHER_START, ALTERNATING, ANY_FINITE};
static const enum kind weight_kinds[] = {WEIGHTS, WEIGHTS, WEIGHTS, WEIGHTS,   NORMAL,
                                         NORMAL,  ZEROS,   OUTLIER, SUBNORMAL, ANY_FINITE};

sweep_kind sweep_draw_kind(int is_weight, uint64_t *random)
{
    enum kind kind = is_weight ? weight_kinds[sweep_draw(random, sizeof weight_kinds / sizeof weight_kinds[0])]
                               : row_kinds[sweep_draw(random, sizeof row_kinds / sizeof row_kinds[0])];
    sweep_kind drawn = {kind, normal(sweep_random(random))};
    return drawn;
}

sweep_kind sweep_kind_near_one(void)
{
    sweep_kind kind = {WEIGHTS, 0};
    return kind;
}

sweep_kind sweep_kind_gentle(void)
{
    sweep_kind kind = {GENTLE, 0};
    return kind;
}

sweep_kind sweep_draw_poison(uint64_t *random)
{
    sweep_kind drawn = {sweep_draw(random, 2) ? INFINITE : NOT_A_NUMBER, 0};
    return drawn;
}

typedef struct line_data {
    sweep_kind kind;
    nrg_dtype dtype;
    format format;
    size_t length, special; /* the one element that is unlike the others */
} line_data;

static inline uint32_t element(const line_data *data, size_t i, uint64_t *random)
{
    const format *f = &data->format;
    uint64_t z = next(random);
    float v = normal(z);
    uint32_t any = (uint32_t)(z >> 32);
    int is_special = i == data->special;
    switch ((enum kind)data->kind.kind) {
    case NORMAL:
        break;
    case WEIGHTS:
        v = 1 + v * 0.25f;
        break;
    case GENTLE:
        v = v * 0x1p-4f;
        break;
    case SHIFTED:
        v = v + 1000;
        break;
    case FAR:
        v = v * 0x1p-7f + 10000;
        break;
    case LARGE:
        v = v * f->large;
        break;
    case SMALL:
        v = v * f->small;
        break;
    case LARGEST:
        /* the exponent one below infinity's, any fraction */
        return (any & (f->sign | f->fraction)) | (f->exponent & ~(f->fraction + 1));
    case SUBNORMAL:
        return any & (f->sign | f->fraction);
    case ZEROS:
        return any & f->sign;
    case CONSTANT:
        v = data->kind.constant;
        break;
    case SORTED:
        v = ((float)i - (float)(data->length / 2)) * 0x1p-4f;
        break;
    case OUTLIER:
        v = is_special ? 10000 : v;
        break;
    case OTHER_START:
        v = i < 64 ? v + 500 : v;
        break;
    case ALTERNATING:
        v = i & 1 ? -f->large : f->large;
        break;
    case ANY_FINITE:
        /* no exponent of all ones */
        any &= f->sign | f->exponent | f->fraction;
        return (any & f->exponent) == f->exponent ? any & ~(f->fraction + 1) : any;
    case INFINITE:
        if (is_special)
            return f->exponent | (any & f->sign);
        break;
    case NOT_A_NUMBER:
        if (is_special)
            return f->exponent | (any & f->sign) | (f->fraction + 1) >> 1;
        break;
    }
    return to_dtype(v, data->dtype);
}

/* Of a size that compilers know. Little-endian, as every host of nrg is. */
static inline void fill(unsigned char *first, size_t step, size_t size, const line_data *data, uint64_t *random)
{
    uint64_t state = *random;
    for (size_t i = 0; i < data->length; i++) {
        uint32_t bits = element(data, i, &state);
        memcpy(first + i * step, &bits, size);
    }
    *random = state;
}

void sweep_fill_line(unsigned char *first, size_t step, nrg_dtype dtype, size_t length, sweep_kind kind, uint64_t *random)
{
    const line_data data = {kind, dtype, format_of(dtype), length, (size_t)(sweep_random(random) % length)};
    if (dtype == NRG_F32)
        fill(first, step, 4, &data, random);
    else
        fill(first, step, 2, &data, random);
}

/* One row in 40 is poisoned: in a short tensor that leaves most neighbours whole. */
void sweep_fill_row(unsigned char *row, nrg_dtype dtype, size_t length, int is_weight, uint64_t *random)
{
    sweep_kind kind = sweep_draw(random, 40) ? sweep_draw_kind(is_weight, random) : sweep_draw_poison(random);
    sweep_fill_line(row, nrg_dtype_size(dtype), dtype, length, kind, random);
}
