/* The cases of quantize and dequantize: every format, in rows of any length it has.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/quantize.h"

#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"

enum { FORMATS = NRG_QUANT_INT8_128 };

/* Rows, of so many times the format's own, and their length, likewise. */
static const size_t large[][4] = {{1, 1, 2, 17}, {1, 2, 3, 9}, {1, 1, 5, 33}, {1, 1, 1, 130}};
enum { LARGE = sizeof large / sizeof large[0] };

#define LENGTHS SWEEP_LENGTHS(FORMATS, 6, 20, 60, LARGE)

/* Lengths are counted in blocks; of int8 also in elements, since its rows may have any. */
static size_t dim_of(nrg_quant_format format, size_t length, uint64_t *random)
{
    const size_t block = nrg_quant_block(format);
    if (!nrg_quant_has_scales(format))
        return length * block;
    return sweep_draw(random, 2) ? length * (block ? block : 37) : 1 + sweep_draw(random, (unsigned)(33 * length));
}

static const sweep_call quantize = {&invoke_quantize, .part = {SWEEP_STRUCTS_AT}},
                        dequantize = {&invoke_dequantize, .part = {SWEEP_STRUCTS_AT}};

static nrg_quant_format format_of(const sweep_case *c) { return (nrg_quant_format)(NRG_QUANT_Q8_0 + c->way); }

/* Volumes, planes, rows and elements. */
static void draw_shape(sweep_case *c, size_t shape[4], uint64_t *random)
{
    static const unsigned most[] = {2, 3, 4};
    sweep_draw_shape(c, most, large, shape, random);
    shape[3] = dim_of(format_of(c), shape[3], random);
    const size_t together = nrg_quant_rows(format_of(c));
    if (together > 1)
        shape[2] = together * ((shape[2] + 1) / 2);
    c->rows = shape[0] * shape[1] * shape[2];
}

static void draw_quantize(sweep_case *c, uint64_t *random)
{
    nrg_quantize_args *q = sweep_structs(c);
    size_t shape[4];
    draw_shape(c, shape, random);
    *q = nrg_quantize_args_init(format_of(c), c->spec.dtype, shape[2], shape[3], NULL, NULL, NULL);
    q->rows2 = shape[1];
    q->rows3 = shape[0];
    q->rounding = sweep_draw(random, 3) ? NRG_QUANT_ROUND_TO_EVEN : NRG_QUANT_ROUND_AWAY;
    sweep_add(c, SWEEP_ALWAYS, &quantize, nrg_quant_has_scales(q->format) ? NRG_BIT(NRG_QUANTIZE_SCALES) : 0, 0);
}

static void draw_dequantize(sweep_case *c, uint64_t *random)
{
    nrg_dequantize_args *q = sweep_structs(c);
    size_t shape[4];
    draw_shape(c, shape, random);
    *q = nrg_dequantize_args_init(format_of(c), c->spec.dtype, shape[2], shape[3], NULL, NULL, NULL);
    q->rows2 = shape[1];
    q->rows3 = shape[0];
    sweep_add(c, SWEEP_ALWAYS, &dequantize, nrg_quant_has_scales(q->format) ? NRG_BIT(NRG_DEQUANTIZE_SCALES) : 0, 0);
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    sweep_append(text, ", %s", nrg_quant_format_name(format_of(c)));
}

/* Halves of elements that lie between two bytes: ties, as no drawn row has them. */
static void fill_ties(unsigned char *row, nrg_dtype dtype, size_t length, uint64_t *random)
{
    for (size_t i = 0; i < length; i++) {
        const int halves = i % 32 == 0 ? 254 : (int)sweep_draw(random, 509) - 254;
        const float value = (float)halves / 2;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        /* at most 8 bits of significand, and exponents that f16 has */
        const uint32_t f16 = halves ? (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112 << 10)) : 0;
        const uint16_t half = (uint16_t)(dtype == NRG_F16 ? f16 : bits >> 16);
        if (dtype == NRG_F32)
            memcpy(row + 4 * i, &bits, 4);
        else
            memcpy(row + 2 * i, &half, 2);
    }
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    const sweep_operand *o = &c->operands[operand];
    if (o->type != SWEEP_BYTE && sweep_draw(random, 4)) {
        sweep_fill_rows(c, operand, memory, random);
        return;
    }
    for (size_t row = 0; row < o->rows; row++) {
        unsigned char *at = memory + sweep_row(o, row);
        if (o->type != SWEEP_BYTE)
            fill_ties(at, (nrg_dtype)o->type, o->length, random);
        for (size_t i = 0; o->type == SWEEP_BYTE && i < o->length; i++)
            at[i] = (unsigned char)(sweep_random(random) >> 40);
    }
}

const sweep_family sweep_family_quantize = {LENGTHS, .draw = draw_quantize, .fill = fill, .describe = describe};
const sweep_family sweep_family_dequantize = {LENGTHS, .draw = draw_dequantize, .fill = fill, .describe = describe};
