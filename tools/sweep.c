/* The cases of nrg check.
 *
 * Every length meets every dtype and every combination of norm, residual, weight and bias; all else (eps mode, constants, dtypes
 * beside a 16-bit x, alignment, strides, places shared, splits, store kind, what rows hold) is drawn for each case.
 *
 * SPDX-License-Identifier: MIT */
#include "sweep.h"

#include <stdio.h>
#include <string.h>

#include "sweep_data.h"

const char *const sweep_operand_names[SWEEP_OPERANDS] = {"x", "y", "w", "b", "o", "r", "mean", "rstd"};

enum { DTYPES = 3, COMBINATIONS = 32 };

/* Beyond the lengths from 1 up. rows: 0, drawn; else tall tensors, whose rows are worked on in several places at once. */
static const struct {
    size_t dim, rows;
} large[] = {{511, 0},    {512, 0},  {513, 0},   {1024, 0},  {2048, 0},  {4095, 0},  {4096, 0},
             {4099, 0},   {6144, 0}, {8192, 0},  {12288, 0}, {16399, 0}, {65539, 0}, {64, 2500},
             {128, 1003}, {96, 517}, {256, 259}, {768, 131}, {4096, 67}, {4097, 66}, {8192, 35}};

static const struct {
    size_t small;     /* every length from 1 to here */
    int combinations; /* of the 32, for each length and dtype */
    int rounds;       /* other draws of the same */
} levels[] = {[SWEEP_QUICK] = {130, 4, 1}, [SWEEP_DEFAULT] = {300, 16, 1}, [SWEEP_FULL] = {1100, 32, 3}};

/* A combination: bit 0 centred, bits 1-2 weight and bias, bits 3-4 the residual. */
enum { CENTRED = 1, WEIGHT = 2, BIAS = 4, RESIDUAL_SHIFT = 3 };
enum { RESIDUAL_NONE, RESIDUAL_SUM, RESIDUAL_SUM_STORED, RESIDUAL_AFTER_NORM };

static void draw_spec(sweep_case *c, uint64_t *random, int combination)
{
    static const double eps[] = {1e-6, 1e-5, 0, 1e-12, 0.5};
    static const double constants[] = {0, 0, 1, -3.25};
    static const float offsets[] = {0, 0, 1, 0.3f};
    nrg_norm_spec *s = &c->spec;
    s->centred = combination & CENTRED;
    s->eps_mode = sweep_draw(random, 2) ? NRG_EPS_MEAN : (nrg_eps_mode)sweep_draw(random, 5);
    s->eps = eps[sweep_draw(random, 5)];
    s->c = constants[sweep_draw(random, 4)];
    s->weight_offset = offsets[sweep_draw(random, 4)];
    s->store = (nrg_store)sweep_draw(random, 3);
    s->y_dtype = sweep_draw(random, 3) ? s->dtype : NRG_F32;
    s->r_dtype = sweep_draw(random, 3) ? s->dtype : NRG_F32;
    s->w_dtype = sweep_draw(random, 2) ? s->dtype : NRG_F32;
    if (combination >> RESIDUAL_SHIFT == RESIDUAL_AFTER_NORM)
        s->residual_mode = NRG_RESIDUAL_AFTER;
}

static size_t draw_rows(size_t dim, uint64_t *random)
{
    if (dim > 10000)
        return 1 + sweep_draw(random, 2);
    if (dim > 300)
        return 1 + sweep_draw(random, 4);
    return sweep_draw(random, 8) ? 1 + sweep_draw(random, 7) : sweep_draw(random, 40);
}

static void add_operand(sweep_case *c, int which, nrg_dtype dtype, size_t length, size_t rows)
{
    sweep_operand operand = {dtype, 0, length, length * nrg_dtype_size(dtype), rows};
    c->operands[which] = operand;
}

static void draw_operands(sweep_case *c, uint64_t *random, int combination)
{
    const nrg_norm_spec *s = &c->spec;
    int residual = combination >> RESIDUAL_SHIFT;
    add_operand(c, SWEEP_X, s->dtype, s->dim, c->rows);
    add_operand(c, SWEEP_O, s->dtype, s->dim, c->rows);
    if (residual != RESIDUAL_NONE)
        add_operand(c, SWEEP_Y, s->y_dtype, s->dim, c->rows);
    /* r without y is a copy of x: rare, but allowed */
    if (residual == RESIDUAL_SUM_STORED || (residual == RESIDUAL_NONE && sweep_draw(random, 6) == 0))
        add_operand(c, SWEEP_R, s->r_dtype, s->dim, c->rows);
    if (combination & WEIGHT)
        add_operand(c, SWEEP_W, s->w_dtype, s->dim, 1);
    if (combination & BIAS)
        add_operand(c, SWEEP_B, s->w_dtype, s->dim, 1);
    if (sweep_draw(random, 3) == 0)
        add_operand(c, SWEEP_MEAN, NRG_F32, 1, c->rows);
    if (sweep_draw(random, 3) == 0)
        add_operand(c, SWEEP_RSTD, NRG_F32, 1, c->rows);
}

/* Gives the operands their places: dense and aligned to 64 bytes; rows at odd multiples of 16 bytes; or anywhere. */
static void lay_out(sweep_case *c, uint64_t *random)
{
    unsigned alignment = sweep_draw(random, 3);
    size_t at = 64;
    for (int i = 0; i < SWEEP_OPERANDS; i++) {
        sweep_operand *operand = &c->operands[i];
        size_t element = nrg_dtype_size(operand->dtype);
        if (!operand->rows)
            continue;
        int is_tensor = i == SWEEP_X || i == SWEEP_Y || i == SWEEP_O || i == SWEEP_R;
        at = (at + 63) / 64 * 64;
        if (alignment == 1) {
            at += 16 * sweep_draw(random, 4);
            if (is_tensor)
                operand->stride = (operand->stride + 15) / 16 * 16 + 16 * sweep_draw(random, 3);
        } else if (alignment == 2) {
            at += element * sweep_draw(random, 32);
            if (is_tensor)
                operand->stride += element * sweep_draw(random, 12);
        }
        operand->offset = at;
        at += operand->rows * operand->stride + 64;
    }
    c->bytes = (at + 63) / 64 * 64;
}

static int share_place(sweep_case *c, int output, int input)
{
    sweep_operand *to = &c->operands[output];
    const sweep_operand *from = &c->operands[input];
    if (!to->rows || !from->rows || nrg_dtype_size(to->dtype) != nrg_dtype_size(from->dtype))
        return 0;
    to->offset = from->offset;
    to->stride = from->stride;
    return 1;
}

/* In place, as the matrix in norm.h allows. */
static void draw_places(sweep_case *c, uint64_t *random)
{
    switch (sweep_draw(random, 12)) {
    case 0:
    case 1:
        share_place(c, SWEEP_O, SWEEP_X);
        break;
    case 2:
        share_place(c, SWEEP_O, SWEEP_Y);
        break;
    case 3:
        share_place(c, SWEEP_R, SWEEP_X);
        break;
    case 4:
        share_place(c, SWEEP_R, SWEEP_Y);
        break;
    case 5:
        share_place(c, SWEEP_O, SWEEP_X);
        share_place(c, SWEEP_R, SWEEP_Y);
        break;
    case 6:
        share_place(c, SWEEP_O, SWEEP_Y);
        share_place(c, SWEEP_R, SWEEP_X);
        break;
    default:
        break;
    }
}

int sweep_make(sweep_level level, uint64_t number, sweep_case *c)
{
    static const nrg_dtype dtypes[DTYPES] = {NRG_F32, NRG_F16, NRG_BF16};
    const uint64_t combinations = (uint64_t)levels[level].combinations;
    const uint64_t lengths = levels[level].small + sizeof large / sizeof large[0];
    uint64_t rest = number / combinations, random = number;
    if (rest >= (uint64_t)levels[level].rounds * lengths * DTYPES)
        return 0;
    size_t length = (size_t)(rest / DTYPES % lengths);
    /* where not all combinations are run, neighbours run different ones */
    int combination = (int)((number % combinations * (COMBINATIONS / combinations) + rest) % COMBINATIONS);

    memset(c, 0, sizeof *c);
    c->number = number;
    c->spec = nrg_rms_norm_spec(length < levels[level].small ? length + 1 : large[length - levels[level].small].dim, 0);
    c->spec.dtype = dtypes[rest % DTYPES];
    c->rows = length < levels[level].small ? 0 : large[length - levels[level].small].rows;
    if (!c->rows)
        c->rows = draw_rows(c->spec.dim, &random);
    else if (number % combinations % 4 != 0) /* tall tensors take time: a quarter of the combinations */
        c->rows = draw_rows(c->spec.dim, &random);
    draw_spec(c, &random, combination);
    draw_operands(c, &random, combination);
    lay_out(c, &random);
    draw_places(c, &random);
    static const int shares[] = {1, 1, 2, 3, 7};
    c->shares = shares[sweep_draw(&random, 5)];
    return 1;
}

void sweep_fill(const sweep_case *c, unsigned char *memory)
{
    enum { GAP = 0xff, UNWRITTEN = 0xa5 }; /* as a number of any dtype: a NaN; something small and negative */
    uint64_t random = ~c->number;
    memset(memory, GAP, c->bytes);
    for (int i = SWEEP_O; i < SWEEP_OPERANDS; i++)
        if (c->operands[i].rows)
            memset(memory + c->operands[i].offset, UNWRITTEN,
                   (c->operands[i].rows - 1) * c->operands[i].stride +
                       c->operands[i].length * nrg_dtype_size(c->operands[i].dtype));
    for (int i = SWEEP_X; i < SWEEP_O; i++)
        for (size_t row = 0; row < c->operands[i].rows; row++)
            sweep_fill_row(memory + c->operands[i].offset + row * c->operands[i].stride, c->operands[i].dtype,
                           c->operands[i].length, i == SWEEP_W || i == SWEEP_B, &random);
}

static const char *shared_with(const sweep_case *c, int output)
{
    for (int i = SWEEP_X; i <= SWEEP_Y; i++)
        if (c->operands[output].rows && c->operands[i].rows && c->operands[output].offset == c->operands[i].offset)
            return i == SWEEP_X ? " in x's place" : " in y's place";
    return "";
}

void sweep_describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const eps_modes[] = {"mean", "sum", "sigma", "max", "none"};
    static const char *const stores[] = {"auto", "keep", "stream"};
    const nrg_norm_spec *s = &c->spec;
    size_t used = (size_t)snprintf(
        text, SWEEP_TEXT_ROOM, "case %llu: %s %s %zux%zu, eps %g (%s), c %g, weight offset %g, store %s, %d share%s;",
        (unsigned long long)c->number, s->centred ? "layer" : "rms", nrg_dtype_name(s->dtype), c->rows, s->dim, s->eps,
        eps_modes[s->eps_mode], s->c, (double)s->weight_offset, stores[s->store], c->shares, c->shares == 1 ? "" : "s");
    if (s->residual_mode == NRG_RESIDUAL_AFTER)
        used += (size_t)snprintf(text + used, SWEEP_TEXT_ROOM - used, " residual after;");
    for (int i = 0; i < SWEEP_OPERANDS && used < SWEEP_TEXT_ROOM; i++) {
        const sweep_operand *operand = &c->operands[i];
        if (operand->rows)
            used += (size_t)snprintf(text + used, SWEEP_TEXT_ROOM - used, " %s %s+%zu/%zu%s", sweep_operand_names[i],
                                     nrg_dtype_name(operand->dtype), operand->offset % 64, operand->stride,
                                     i == SWEEP_O || i == SWEEP_R ? shared_with(c, i) : "");
    }
}
