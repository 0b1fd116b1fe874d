/* The cases of activation and activation_backward: every activation with every short length and some long ones, and with all
 * values a 16-bit number has, or as many of the f32 ones.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../norm/norm.h"

enum { ACTIVATIONS = NRG_ACT_SOFTPLUS + 1 };

static const size_t large[] = {255, 256, 257, 1000, 4097, 70001};
enum { LARGE = sizeof large / sizeof large[0] };

/* Every length from 1 to small, in steps of step; the first so many of those above; and f32 values. */
static const struct {
    size_t small, step, large, values;
} levels[] = {[SWEEP_QUICK] = {67, 3, LARGE - 1, 1 << 14},
              [SWEEP_DEFAULT] = {130, 1, LARGE, 1 << 19}, /* which is memory enough to be streamed */
              [SWEEP_FULL] = {600, 1, LARGE, 1 << 24}};

static uint64_t lengths(sweep_level level) { return (levels[level].small + levels[level].step - 1) / levels[level].step; }

static uint64_t count(sweep_level level) { return ACTIVATIONS * (lengths(level) + levels[level].large + 1); }

/* The three operands, in one row each: x, the other input where there is one, the output. */
static void make_one(sweep_level level, uint64_t n, sweep_case *c, int other, int output)
{
    uint64_t random = c->number, length = n / ACTIVATIONS, few = lengths(level);
    c->spec.activation = (nrg_activation)(n % ACTIVATIONS);
    c->rows = 1;
    if (length < few)
        /* with steps, each activation has lengths of its own */
        c->spec.dim = (size_t)length * levels[level].step + 1 + c->spec.activation % levels[level].step;
    else if (length < few + levels[level].large)
        c->spec.dim = large[length - few];
    else {
        c->spec.dim = c->spec.dtype == NRG_F32 ? levels[level].values : 1 << 16;
        c->every_value = 1;
    }
    sweep_add(c, SWEEP_X, c->spec.dtype, c->spec.dim, 1);
    if (other != output)
        sweep_add(c, other, c->spec.dtype, c->spec.dim, 1);
    sweep_add(c, output, c->spec.dtype, c->spec.dim, 1);
    sweep_lay_out(c, &random);
    if (sweep_draw(&random, 3) == 0)
        sweep_share_place(c, output, SWEEP_X);
    else if (sweep_draw(&random, 3) == 0)
        sweep_share_place(c, output, other);
    c->shares = sweep_draw_shares(&random);
}

static void make_forward(sweep_level level, uint64_t n, sweep_case *c) { make_one(level, n, c, SWEEP_O, SWEEP_O); }

/* The bit patterns of a dtype, in even steps; the lower bits, where there are any between two steps, are drawn. */
static void fill_every_value(const sweep_operand *operand, unsigned char *row, uint64_t *random)
{
    size_t size = sweep_type_size(operand->type);
    uint64_t patterns = (uint64_t)1 << (8 * size), step = patterns / operand->length;
    for (size_t i = 0; i < operand->length; i++) {
        uint64_t bits = i * step + (step > 1 ? sweep_random(random) % step : 0);
        memcpy(row + i * size, &bits, size); /* little-endian, as every host of nrg is */
    }
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    if (c->every_value && operand == SWEEP_X)
        fill_every_value(&c->operands[SWEEP_X], memory + c->operands[SWEEP_X].offset, random);
    else
        sweep_fill_rows(c, operand, memory, random);
}

static nrg_status run_forward(const sweep_case *c, unsigned char *memory)
{
    nrg_status status = NRG_OK;
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_activation_forward(c->spec.activation, c->spec.dtype, c->spec.dim, sweep_place(c, SWEEP_X, memory),
                                        sweep_place(c, SWEEP_O, memory), sweep_share(c, i, c->shares), c->shares);
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    sweep_append(text, " %s of %zu", nrg_activation_name(c->spec.activation), c->spec.dim);
}

const sweep_family sweep_family_activation = {count, make_forward, fill, run_forward, describe, NULL};

#ifndef NRG_NO_BACKWARD
static void make_backward(sweep_level level, uint64_t n, sweep_case *c) { make_one(level, n, c, SWEEP_D_O, SWEEP_DX); }

static nrg_status run_backward(const sweep_case *c, unsigned char *memory)
{
    nrg_status status = NRG_OK;
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_activation_backward(c->spec.activation, c->spec.dtype, c->spec.dim, sweep_place(c, SWEEP_X, memory),
                                         sweep_place(c, SWEEP_D_O, memory), sweep_place(c, SWEEP_DX, memory),
                                         sweep_share(c, i, c->shares), c->shares);
    return status;
}

const sweep_family sweep_family_activation_backward = {count, make_backward, fill, run_backward, describe, NULL};
#endif
