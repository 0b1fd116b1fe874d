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

typedef struct quantize_case {
    nrg_quantize_args forward;
    nrg_dequantize_args back;
    int is_back;
} quantize_case;

/* Lengths are counted in blocks; of int8 also in elements, since its rows may have any. */
static size_t dim_of(nrg_quant_format format, size_t length, uint64_t *random)
{
    const size_t block = nrg_quant_block(format);
    if (!nrg_quant_has_scales(format))
        return length * block;
    return sweep_draw(random, 2) ? length * (block ? block : 37) : 1 + sweep_draw(random, (unsigned)(33 * length));
}

static quantize_case draw(const sweep_case *c)
{
    static const unsigned most[] = {2, 3, 4};
    const nrg_quant_format format = (nrg_quant_format)(NRG_QUANT_Q8_0 + c->way);
    uint64_t random = c->seed;
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, &random);
    const size_t dim = dim_of(format, shape[3], &random), together = nrg_quant_rows(format);
    const size_t rows = together == 1 ? shape[2] : together * ((shape[2] + 1) / 2);
    quantize_case q = {.is_back = strcmp(sweep_kernel_op(c->kernel), "dequantize") == 0};
    q.forward = nrg_quantize_args_init(format, c->spec.dtype, rows, dim, NULL, NULL, NULL);
    q.forward.rounding = sweep_draw(&random, 3) ? NRG_QUANT_ROUND_TO_EVEN : NRG_QUANT_ROUND_AWAY;
    q.forward.rows2 = shape[1];
    q.forward.rows3 = shape[0];
    q.back = nrg_dequantize_args_init(format, c->spec.dtype, q.forward.rows, dim, NULL, NULL, NULL);
    q.back.rows2 = shape[1];
    q.back.rows3 = shape[0];
    return q;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const quantize_case q = draw(c);
    sweep_append(text, " %s, %zux%zux%zux%zu%s", nrg_quant_format_name(q.forward.format), q.forward.rows3, q.forward.rows2,
                 q.forward.rows, q.forward.dim, q.forward.rounding == NRG_QUANT_ROUND_AWAY ? ", ties away" : "");
}

static void make(sweep_case *c)
{
    quantize_case q = draw(c);
    uint64_t random = ~(c->seed << 8);
    const int has_scales = nrg_quant_has_scales(q.forward.format);
    c->rows = q.forward.rows * q.forward.rows2 * q.forward.rows3;
    c->shares = sweep_draw_shares(&random);
    if (q.is_back)
        sweep_add_call(c, &nrg_call_dequantize, (void *const[]){&q.back}, NULL, has_scales ? NRG_BIT(NRG_DEQUANTIZE_SCALES) : 0,
                       0);
    else
        sweep_add_call(c, &nrg_call_quantize, (void *const[]){&q.forward}, NULL, has_scales ? NRG_BIT(NRG_QUANTIZE_SCALES) : 0,
                       0);
    sweep_lay_out(c, &random);
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

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    quantize_case q = draw(c);
    nrg_status status = NRG_OK;
    if (q.is_back) {
        sweep_bind_call(c, &nrg_call_dequantize, (void *const[]){&q.back}, NULL, memory);
        SWEEP_EACH_SHARE(status, c, c->shares, nrg_dequantize(&q.back, ith, nth));
        return status;
    }
    sweep_bind_call(c, &nrg_call_quantize, (void *const[]){&q.forward}, NULL, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_quantize(&q.forward, ith, nth));
    return status;
}

const sweep_family sweep_family_quantize = {LENGTHS, .make = make, .fill = fill, .run = run, .describe = describe};
const sweep_family sweep_family_dequantize = {LENGTHS, .make = make, .fill = fill, .run = run, .describe = describe};
