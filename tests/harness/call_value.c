/* SPDX-License-Identifier: MIT */
#include "call_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "unwritten.h"

size_t value_bytes(int type)
{
    if (type == CALL_BYTE)
        return 1;
    return type == CALL_I32 ? 4 : type == CALL_I64 || type == CALL_F64 ? 8 : nrg_dtype_size((nrg_dtype)type);
}

static void draw_row(void *row, const call_operand *o, uint64_t seed, float *values)
{
    uint64_t state = seed;
    if (o->type == CALL_I32 || o->type == CALL_I64) {
        for (size_t i = 0; i < o->dim; i++) {
            int64_t wide = o->least < o->below ? o->least + (int64_t)test_draw(&state, (size_t)(o->below - o->least)) : 0;
            int32_t narrow = (int32_t)wide;
            if (o->type == CALL_I32)
                memcpy((char *)row + 4 * i, &narrow, 4);
            else
                memcpy((char *)row + 8 * i, &wide, 8);
        }
        return;
    }
    if (o->type == CALL_BYTE) {
        for (size_t i = 0; i < o->dim; i++)
            ((unsigned char *)row)[i] = (unsigned char)test_draw(&state, 256);
        return;
    }
    size_t how = test_draw(&state, 8);
    enum row_kind kind = how < 4   ? ROW_NORMAL
                         : how < 5 ? ROW_ANY_MAGNITUDE
                         : how < 6 ? ROW_SUBNORMAL
                                   : (enum row_kind)test_draw(&state, ROW_KINDS);
    while (o->kinds && !(o->kinds & 1u << kind))
        kind = (enum row_kind)test_draw(&state, ROW_KINDS);
    row_fill(values, o->dim, kind, o->type == CALL_F64 ? NRG_F32 : (nrg_dtype)o->type, state);
    for (size_t i = 0; i < o->dim; i++) {
        double wide = (double)values[i] * (1 + (double)test_draw(&state, 1 << 20) * 0x1p-45);
        if (o->type == CALL_F64)
            memcpy((char *)row + 8 * i, &wide, 8);
        else
            element_set(row, i, (nrg_dtype)o->type, values[i]);
    }
}

void *value_draw(const call_operand *o, uint64_t seed)
{
    const size_t bytes = value_bytes(o->type);
    unsigned char *content = malloc(o->rows * o->dim * bytes + 1);
    float *values = malloc((o->dim + 1) * sizeof *values);
    if (!content || !values)
        abort();
    for (size_t row = 0; row < o->rows && o->dim; row++)
        draw_row(content + row * o->dim * bytes, o, test_mix(seed + row), values);
    free(values);
    return content;
}

static uint64_t bits_of(const void *tensor, size_t i, int type)
{
    uint64_t wide;
    if (type == CALL_BYTE)
        return ((const unsigned char *)tensor)[i];
    if (value_bytes(type) < 8)
        return element_bits(tensor, i, type == CALL_I32 ? NRG_F32 : (nrg_dtype)type);
    memcpy(&wide, (const char *)tensor + 8 * i, 8);
    return wide;
}

static int is_nan(uint64_t bits, int type)
{
    double wide;
    memcpy(&wide, &bits, 8);
    return type == CALL_F64 && isnan(wide);
}

/* 0 of either sign. */
static int is_zero(uint64_t bits, int type)
{
    const size_t bytes = value_bytes(type);
    return type != CALL_I32 && type != CALL_I64 && type != CALL_BYTE && (bits & ~((uint64_t)1 << (8 * bytes - 1))) == 0;
}

static int are_zeros_by_valgrind(uint64_t a, uint64_t b, int type)
{
    return is_zero(a, type) && is_zero(b, type) && unwritten_by_valgrind();
}

static int equal(const void *a, const void *b, size_t i, int type)
{
    const uint64_t x = bits_of(a, i, type), y = bits_of(b, i, type);
    if (are_zeros_by_valgrind(x, y, type))
        return 1;
    if (type < CALL_I32)
        return element_equal(a, b, i, (nrg_dtype)type);
    return x == y || (is_nan(x, type) && is_nan(y, type));
}

static void write_value(char *text, size_t room, const void *tensor, size_t i, int type)
{
    uint64_t bits = bits_of(tensor, i, type);
    int64_t integer = type == CALL_I32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
    double value = 0;
    if (type == CALL_F64)
        memcpy(&value, &bits, 8);
    else if (type < CALL_I32)
        value = (double)element_get(tensor, i, (nrg_dtype)type);
    if (type == CALL_I32 || type == CALL_I64 || type == CALL_BYTE)
        snprintf(text, room, "0x%llx (%lld)", (unsigned long long)bits, (long long)integer);
    else
        snprintf(text, room, "0x%llx (%.17g)", (unsigned long long)bits, value);
}

const char *value_compare(const call_operand *o, const void *expected, const void *got)
{
    static char message[OPERAND_MESSAGE];
    char is[64], should_be[64];
    if (memcmp(expected, got, o->rows * o->dim * value_bytes(o->type)) == 0)
        return NULL;
    for (size_t i = 0; i < o->rows * o->dim; i++)
        if (!equal(expected, got, i, o->type)) {
            write_value(is, sizeof is, got, i, o->type);
            write_value(should_be, sizeof should_be, expected, i, o->type);
            snprintf(message, sizeof message, "%s: row %zu column %zu is %s and should be %s", o->name, i / o->dim, i % o->dim,
                     is, should_be);
            return message;
        }
    return NULL;
}
