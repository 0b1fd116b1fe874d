/* SPDX-License-Identifier: MIT */
#include "element.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "support.h"

/* Bits of significand, the hidden one included, and exponent of the smallest normal number 2^(least - 1), as frexp counts. */
static const struct {
    int digits, least;
} formats[] = {[NRG_F32] = {24, -125}, [NRG_F16] = {11, -13}, [NRG_BF16] = {8, -125}};

static double unit(double magnitude, nrg_dtype dtype)
{
    int exponent;
    frexp(magnitude, &exponent);
    if (exponent < formats[dtype].least || magnitude == 0)
        exponent = formats[dtype].least;
    return ldexp(1, exponent - formats[dtype].digits);
}

double element_ulp(double value, nrg_dtype dtype) { return unit(fabs(value), dtype); }

float element_max(nrg_dtype dtype) { return dtype == NRG_F32 ? FLT_MAX : dtype == NRG_F16 ? 65504.0f : 0x1.fep127f; }

static uint16_t to_16(float value, nrg_dtype dtype)
{
    int digits = formats[dtype].digits, least = formats[dtype].least, exponent;
    uint16_t sign = signbit(value) ? 0x8000 : 0, infinity = dtype == NRG_F16 ? 0x7c00 : 0x7f80;
    if (isnan(value))
        return (uint16_t)(sign | infinity | 1u << (digits - 2));
    double magnitude = fabs((double)value), step = unit(magnitude, dtype);
    if (magnitude + step / 2 >= ldexp(1, dtype == NRG_F16 ? 16 : 128))
        return sign | infinity;
    frexp(step, &exponent);
    /* step is 2^(e - digits) for numbers with the exponent e: a carry out of the quotient moves into the exponent field */
    unsigned field = (unsigned)(exponent - 1 + digits - least), quotient = (unsigned)rint(magnitude / step);
    return (uint16_t)(sign | ((field << (digits - 1)) + quotient));
}

static float f16_value(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                      : exponent == 0 ? (float)ldexp(fraction, -24)
                                      : (float)ldexp(1024 + fraction, exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

float element_get(const void *tensor, size_t i, nrg_dtype dtype)
{
    static float f16_values[65536];
    static int filled;
    float value;
    uint16_t h;
    if (dtype == NRG_F32) {
        memcpy(&value, (const char *)tensor + 4 * i, 4);
        return value;
    }
    memcpy(&h, (const char *)tensor + 2 * i, 2);
    if (dtype == NRG_BF16) {
        uint32_t bits = (uint32_t)h << 16;
        memcpy(&value, &bits, 4);
        return value;
    }
    if (!filled)
        for (unsigned n = 0; n < 65536; n++)
            f16_values[n] = f16_value((uint16_t)n);
    filled = 1;
    return f16_values[h];
}

void element_set(void *tensor, size_t i, nrg_dtype dtype, float value)
{
    if (dtype == NRG_F32) {
        memcpy((char *)tensor + 4 * i, &value, 4);
        return;
    }
    uint16_t h = to_16(value, dtype);
    memcpy((char *)tensor + 2 * i, &h, 2);
}

float element_round(float value, nrg_dtype dtype)
{
    float rounded;
    uint16_t h[2];
    if (dtype == NRG_F32)
        return value;
    element_set(h, 0, dtype, value);
    rounded = element_get(h, 0, dtype);
    return rounded;
}

uint32_t element_bits(const void *tensor, size_t i, nrg_dtype dtype)
{
    uint32_t bits = 0;
    uint16_t h;
    if (dtype == NRG_F32) {
        memcpy(&bits, (const char *)tensor + 4 * i, 4);
        return bits;
    }
    memcpy(&h, (const char *)tensor + 2 * i, 2);
    return h;
}

int element_equal(const void *a, const void *b, size_t i, nrg_dtype dtype)
{
    return element_bits(a, i, dtype) == element_bits(b, i, dtype) ||
           (isnan(element_get(a, i, dtype)) && isnan(element_get(b, i, dtype)));
}

void *element_stored(const float *values, size_t count, nrg_dtype dtype)
{
    if (!values)
        return NULL;
    void *tensor = test_allocate(count, nrg_dtype_size(dtype));
    for (size_t i = 0; i < count; i++)
        element_set(tensor, i, dtype, values[i]);
    return tensor;
}

void *element_tensor(size_t count, nrg_dtype dtype) { return test_allocate(count, nrg_dtype_size(dtype)); }

float *element_floats(const void *tensor, size_t count, nrg_dtype dtype)
{
    if (!tensor)
        return NULL;
    float *copy = element_tensor(count, NRG_F32);
    for (size_t i = 0; i < count; i++)
        copy[i] = element_get(tensor, i, dtype);
    return copy;
}

void *element_at(const void *tensor, size_t i, nrg_dtype dtype)
{
    return tensor ? (char *)(uintptr_t)tensor + i * nrg_dtype_size(dtype) : NULL;
}
