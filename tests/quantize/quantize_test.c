/* Rows to blocks of bytes and back: every byte against a writer of its own, in double and integer arithmetic, that fills ggml's
 * structs by ggml's rule for interleaved ones; ties, NaN, infinities, numbers too small and too large; bounds of the error.
 * Bits over paths, shares and layouts are bits_test's.
 *
 *     quantize_test --report    the worst errors
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/rows.h"

enum { FORMATS = NRG_QUANT_INT8_128, BYTES_MOST = 1 << 16, DIM_MOST = 768, ROWS_MOST = 16 };

/* ggml-common.h's blocks, and the scales of int8. */
typedef struct format_facts {
    nrg_quant_format format;
    size_t block, rows, chunk, scale, sums; /* scale: bytes in front of a block, 0: a tensor of their own */
} format_facts;

static const format_facts facts[FORMATS] = {
    {NRG_QUANT_Q8_0, 32, 1, 32, 2, 0},      {NRG_QUANT_Q8_0_4X4, 32, 4, 4, 2, 0},   {NRG_QUANT_Q8_0_4X8, 32, 4, 8, 2, 0},
    {NRG_QUANT_Q8_0_8X4, 32, 8, 4, 2, 0},   {NRG_QUANT_Q8_0_8X8, 32, 8, 8, 2, 0},   {NRG_QUANT_Q8_K, 256, 1, 256, 4, 16},
    {NRG_QUANT_Q8_K_4X4, 256, 4, 4, 4, 16}, {NRG_QUANT_Q8_K_4X8, 256, 4, 8, 4, 16}, {NRG_QUANT_Q8_K_8X4, 256, 8, 4, 4, 16},
    {NRG_QUANT_Q8_K_8X8, 256, 8, 8, 4, 16}, {NRG_QUANT_INT8, 0, 1, 1, 0, 0},        {NRG_QUANT_INT8_32, 32, 1, 1, 0, 0},
    {NRG_QUANT_INT8_64, 64, 1, 1, 0, 0},    {NRG_QUANT_INT8_128, 128, 1, 1, 0, 0},
};

static const char *const names[FORMATS] = {"q8_0",     "q8_0_4x4", "q8_0_4x8", "q8_0_8x4", "q8_0_8x8", "q8_K",    "q8_K_4x4",
                                           "q8_K_4x8", "q8_K_8x4", "q8_K_8x8", "int8",     "int8_32",  "int8_64", "int8_128"};

/* The largest |x - d·q| of each format, in d. */
static double *worst;

/* ---- what has to come out ---- */

typedef struct block_of {
    float d, inverse;
    int q[DIM_MOST];
} block_of;

/* A quotient of doubles that hold floats is right when it is rounded to a float once more. */
static float divided(float a, float b) { return (float)((double)a / (double)b); }

static int nearest(float quotient, nrg_quant_rounding rounding)
{
    const double size = fabs((double)quotient);
    const int below = (int)size;
    const double rest = size - below;
    const int up = rest > 0.5 || (rest == 0.5 && (rounding == NRG_QUANT_ROUND_AWAY || below % 2));
    return quotient < 0 ? -(below + up) : below + up;
}

static void make_block(block_of *b, const format_facts *f, nrg_quant_rounding rounding, const float *x, size_t n)
{
    float largest = 0;
    int finite = 1;
    memset(b, 0, sizeof *b);
    for (size_t i = 0; i < n; i++) {
        finite &= isfinite(x[i]) != 0;
        largest = fabsf(x[i]) > fabsf(largest) ? x[i] : largest;
    }
    b->d = NAN;
    if (!finite)
        return;
    b->d = 0;
    if (largest == 0)
        return;
    const float d = f->sums ? 0 : divided(fabsf(largest), 127), inverse = f->sums ? divided(-127, largest) : divided(1, d);
    if (isinf(inverse))
        return;
    b->inverse = inverse;
    b->d = f->sums ? divided(1, inverse) : d;
    for (size_t i = 0; i < n; i++)
        b->q[i] = nearest((float)((double)x[i] * (double)inverse), rounding);
}

static void put_float(unsigned char *to, float f)
{
    const uint32_t nan = 0x7fc00000;
    memcpy(to, isnan(f) ? (const void *)&nan : (const void *)&f, 4);
}

static void put_half(unsigned char *to, float f)
{
    const uint16_t nan = 0x7e00;
    if (isnan(f))
        memcpy(to, &nan, 2);
    else
        element_set(to, 0, NRG_F16, f);
}

/* Block k of f->rows rows that lie together, as ggml_quantize_mat_q8_0_4x4 and its like number them: byte j of the elements is of
 * row src_id and element src_offset. */
static void write_together(unsigned char *q, const format_facts *f, const block_of *rows, size_t k)
{
    unsigned char *at = q + k * f->rows * (f->scale + f->block + 2 * f->sums);
    for (size_t r = 0; r < f->rows; r++, at += f->scale)
        if (f->scale == 2)
            put_half(at, rows[r].d);
        else
            put_float(at, rows[r].d);
    for (size_t j = 0; j < f->rows * f->block; j++) {
        const size_t all = f->rows * f->chunk, src_offset = j / all * f->chunk + j % f->chunk, src_id = j % all / f->chunk;
        at[j] = (unsigned char)(signed char)rows[src_id].q[src_offset];
    }
    at += f->rows * f->block;
    int16_t sums[8 * 16] = {0};
    for (size_t j = 0; f->sums && j < f->rows * f->block; j++) {
        /* of ggml's index in repack.cpp: the row, groups of 64 elements, 16 within them */
        const size_t i = j % f->block, row = j / f->block;
        const size_t index = i / 64 * 4 * f->rows + row * 4 + i / 16 % 4;
        sums[index] = (int16_t)(sums[index] + rows[row].q[i]);
    }
    memcpy(at, sums, 2 * f->sums * f->rows);
}

static void expect(unsigned char *q, float *scales, const format_facts *f, nrg_quant_rounding rounding, const float *x,
                   size_t rows, size_t dim)
{
    static block_of blocks[8];
    const size_t block = f->block ? f->block : dim, groups = (dim + block - 1) / block;
    for (size_t row = 0; row < rows; row += f->rows)
        for (size_t k = 0; k < groups; k++) {
            const size_t n = dim - k * block < block ? dim - k * block : block;
            for (size_t r = 0; r < f->rows; r++)
                make_block(&blocks[r], f, rounding, x + (row + r) * dim + k * block, n);
            if (f->scale) {
                write_together(q + row * (dim / block) * (f->scale + block + 2 * f->sums), f, blocks, k);
                continue;
            }
            put_float((unsigned char *)&scales[row * groups + k], blocks[0].d);
            for (size_t i = 0; i < n; i++)
                q[row * dim + k * block + i] = (unsigned char)(signed char)blocks[0].q[i];
        }
}

/* ---- data ---- */

/* Rows of halves of steps, so that ties are many; of numbers at either end, of zeros of both signs, of what is none; of a largest
 * magnitude in both signs. AT_MOST: and the largest number of the dtype, once. */
enum { AT_MOST = 9, DRAWN_KINDS = 12 };

static float drawn(uint64_t *state, int kind, size_t i)
{
    switch (kind) {
    case 0: /* ties of a step of 1, where the block has a 127 */
        return i % 32 == 5 ? (test_draw(state, 2) ? 127.0f : -127.0f) : (float)((int)test_draw(state, 509) - 254) / 2;
    case 1:
        return (float)(test_uniform(state) * 0x1p-130); /* subnormal, and below what has an inverse */
    case 2:
        return (float)(test_uniform(state) * 0x1p-120);
    case 3:
        return (float)test_uniform(state) * FLT_MAX;
    case 4:
        return (float)(test_uniform(state) * 1e-5); /* scales that are subnormal in f16, and 0 */
    case 5:
        return (float)(test_uniform(state) * 2e7); /* and infinite there */
    case 6:
        return test_draw(state, 2) ? 0.0f : -0.0f;
    case 7: /* one NaN or infinity in some hundred */
        return test_draw(state, 150) ? (float)test_uniform(state)
               : test_draw(state, 3) ? NAN
               : test_draw(state, 2) ? INFINITY
                                     : -INFINITY;
    case 8:
        return (float)test_uniform(state) * (float)ldexp(1, (int)test_draw(state, 60) - 30);
    default:
        return (float)(4 * test_uniform(state));
    }
}

typedef struct problem {
    const format_facts *f;
    nrg_dtype dtype;
    nrg_quant_rounding rounding;
    size_t rows, dim;
    float x[ROWS_MOST * DIM_MOST]; /* as they are in the dtype */
    void *stored;
} problem;

static void draw(problem *p, int format, int seed)
{
    uint64_t state = (uint64_t)seed * 1000 + (uint64_t)format;
    p->f = &facts[format];
    p->dtype = (nrg_dtype)(NRG_F32 + test_draw(&state, 3));
    p->rounding = (nrg_quant_rounding)test_draw(&state, 2);
    p->rows = p->f->rows * (1 + test_draw(&state, 16 / p->f->rows));
    p->dim = p->f->scale ? p->f->block * (1 + test_draw(&state, DIM_MOST / p->f->block)) : 1 + test_draw(&state, DIM_MOST);
    for (size_t row = 0; row < p->rows; row++) {
        const size_t kind = test_draw(&state, DRAWN_KINDS + ROW_ORDINARY_KINDS);
        float *const x = p->x + row * p->dim;
        if (kind >= DRAWN_KINDS)
            row_fill(x, p->dim, (enum row_kind)(ROW_ORDINARY + kind - DRAWN_KINDS), p->dtype, test_mix(state));
        for (size_t i = 0; i < p->dim && kind < DRAWN_KINDS; i++)
            x[i] = element_round(drawn(&state, (int)kind, i), p->dtype);
        if (kind == AT_MOST)
            x[test_draw(&state, p->dim)] = test_draw(&state, 2) ? element_max(p->dtype) : -element_max(p->dtype);
    }
    p->stored = element_stored(p->x, p->rows * p->dim, p->dtype);
}

static nrg_quantize_args args_of(const problem *p, void *q, float *scales)
{
    nrg_quantize_args args =
        nrg_quantize_args_init(p->f->format, p->dtype, p->rows, p->dim, p->stored, q, p->f->scale ? NULL : scales);
    args.rounding = p->rounding;
    return args;
}

static _Alignas(64) unsigned char got[BYTES_MOST], wanted[BYTES_MOST];
static float got_scales[BYTES_MOST], wanted_scales[BYTES_MOST];

/* ---- tests ---- */

START_TEST(bytes)
{
    static problem p;
    for (int seed = 0; seed < (test_small() ? 40 : 400); seed++) {
        draw(&p, _i, seed);
        memset(got, 0x55, sizeof got);
        memset(wanted, 0x55, sizeof wanted);
        memset(got_scales, 0x55, sizeof got_scales);
        memset(wanted_scales, 0x55, sizeof wanted_scales);
        const size_t odd = (size_t)seed % 2; /* bytes need no alignment */
        const nrg_quantize_args args = args_of(&p, got + odd, got_scales);
        ck_assert_int_eq(nrg_quantize(&args, 0, 1), NRG_OK);
        expect(wanted + odd, wanted_scales, p.f, p.rounding, p.x, p.rows, p.dim);
        for (size_t i = 0; i < sizeof got; i++)
            if (got[i] != wanted[i])
                ck_abort_msg("%s of %s, seed %d, %zux%zu: byte %zu is 0x%02x and not 0x%02x", names[_i], nrg_dtype_name(p.dtype),
                             seed, p.rows, p.dim, i - odd, got[i], wanted[i]);
        ck_assert_mem_eq(got_scales, wanted_scales, sizeof got_scales);
        free(p.stored);
    }
}
END_TEST

/* o = d·q, and how far it is from x where there is a d. */
START_TEST(back)
{
    static problem p;
    static float o[ROWS_MOST * DIM_MOST];
    for (int seed = 0; seed < (test_small() ? 40 : 400); seed++) {
        draw(&p, _i, seed);
        const nrg_quantize_args args = args_of(&p, got, got_scales);
        const nrg_dequantize_args to =
            nrg_dequantize_args_init(p.f->format, NRG_F32, p.rows, p.dim, got, p.f->scale ? NULL : got_scales, o);
        ck_assert_int_eq(nrg_quantize(&args, 0, 1), NRG_OK);
        ck_assert_int_eq(nrg_dequantize(&to, 0, 1), NRG_OK);
        const size_t block = p.f->block ? p.f->block : p.dim;
        for (size_t row = 0; row < p.rows; row++)
            for (size_t first = 0; first < p.dim; first += block) {
                static block_of b;
                const size_t n = p.dim - first < block ? p.dim - first : block;
                make_block(&b, p.f, p.rounding, p.x + row * p.dim + first, n);
                const float d = p.f->scale == 2 ? element_round(b.d, NRG_F16) : b.d;
                for (size_t i = 0; i < n; i++) {
                    const float x = p.x[row * p.dim + first + i], is = o[row * p.dim + first + i], should_be = d * (float)b.q[i];
                    if (is != should_be && !(isnan(is) && isnan(should_be)))
                        ck_abort_msg("%s, seed %d, row %zu, element %zu: %a and not %a", names[_i], seed, row, first + i,
                                     (double)is, (double)should_be);
                    if (b.inverse == 0)
                        continue;
                    const double error = fabs((double)x - (double)b.d * b.q[i]) / (double)b.d;
                    worst[_i] = fmax(worst[_i], fabs(error));
                    if (fabs(error) > 0.5 * (1 + 0x1p-15))
                        ck_abort_msg("%s, seed %d: %a is %d times %a", names[_i], seed, (double)x, b.q[i], (double)b.d);
                    if (b.d >= 0x1p-14f && b.d <= 65504 && p.f->scale == 2)
                        ck_assert_double_le(fabs((double)x - (double)is),
                                            (double)b.d / 2 * (1 + 0x1p-15) + 127 * 0x1p-11 * (double)b.d);
                }
            }
        free(p.stored);
    }
}
END_TEST

/* A result of 16 bits is that of f32, rounded. */
START_TEST(back_to_16_bits)
{
    static problem p;
    static float o[ROWS_MOST * DIM_MOST];
    static uint16_t half[ROWS_MOST * DIM_MOST];
    for (int seed = 0; seed < 30; seed++) {
        draw(&p, _i, seed);
        const nrg_quantize_args args = args_of(&p, got, got_scales);
        const float *scales = p.f->scale ? NULL : got_scales;
        const nrg_dtype dtype = seed % 2 ? NRG_F16 : NRG_BF16;
        const nrg_dequantize_args to = nrg_dequantize_args_init(p.f->format, NRG_F32, p.rows, p.dim, got, scales, o);
        const nrg_dequantize_args to_half = nrg_dequantize_args_init(p.f->format, dtype, p.rows, p.dim, got, scales, half);
        ck_assert_int_eq(nrg_quantize(&args, 0, 1), NRG_OK);
        ck_assert_int_eq(nrg_dequantize(&to, 0, 1), NRG_OK);
        ck_assert_int_eq(nrg_dequantize(&to_half, 0, 1), NRG_OK);
        for (size_t i = 0; i < p.rows * p.dim; i++) {
            const float should_be = element_round(o[i], dtype), is = element_get(half, i, dtype);
            ck_assert_msg(is == should_be || (isnan(is) && isnan(should_be)), "%s, seed %d, element %zu", names[_i], seed, i);
        }
        free(p.stored);
    }
}
END_TEST

/* ---- in one call with what comes before ---- */

enum { FUSED_ROWS = 8, FUSED_DIM = 1536, FUSED = FUSED_ROWS * FUSED_DIM };

/* Numbers of a dtype, and the same as floats. */
typedef struct both {
    void *stored;
    float *wide;
} both;

static both draw_both(uint64_t *state, nrg_dtype dtype, size_t n)
{
    both b = {NULL, element_tensor(n, NRG_F32)};
    for (size_t i = 0; i < n; i++)
        b.wide[i] = element_round((float)(4 * test_uniform(state)), dtype);
    b.stored = element_stored(b.wide, n, dtype);
    return b;
}

static void free_both(both b)
{
    free(b.stored);
    free(b.wide);
}

static void quantize_floats(nrg_quant_format format, nrg_quant_rounding rounding, const float *o)
{
    nrg_quantize_args args = nrg_quantize_args_init(format, NRG_F32, FUSED_ROWS, FUSED_DIM, o, wanted,
                                                    nrg_quant_has_scales(format) ? wanted_scales : NULL);
    args.rounding = rounding;
    ck_assert_int_eq(nrg_quantize(&args, 0, 1), NRG_OK);
}

static void clear_results(void)
{
    memset(got, 0x55, sizeof got);
    memset(wanted, 0x55, sizeof wanted);
    memset(got_scales, 0x55, sizeof got_scales);
    memset(wanted_scales, 0x55, sizeof wanted_scales);
}

static void must_be_equal(const char *what, int format, nrg_dtype dtype, nrg_isa isa)
{
    if (memcmp(got, wanted, sizeof got) || memcmp(got_scales, wanted_scales, sizeof got_scales))
        ck_abort_msg("%s to %s, %s on %s: not the bytes of two calls", what, names[format], nrg_dtype_name(dtype),
                     nrg_isa_name(isa));
}

/* Norm, residual, gate of every kind, then bytes: those of nrg_quantize for the same norm in f32. */
START_TEST(norm_fused_is_unfused)
{
    const nrg_quant_format format = facts[_i / 3].format;
    const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + _i % 3);
    nrg_isa paths[NRG_ISA_COUNT];
    uint64_t state = (uint64_t)_i;
    const both x = draw_both(&state, dtype, FUSED), y = draw_both(&state, dtype, FUSED), z = draw_both(&state, dtype, FUSED),
               w = draw_both(&state, dtype, FUSED_DIM);
    float *const o = element_tensor(FUSED, NRG_F32), *const r = element_tensor(FUSED, NRG_F32);
    void *const r_too = element_tensor(FUSED, NRG_F32);
    for (size_t path = test_paths(paths); path-- > 0;)
        for (int gate = 0; gate < 3; gate++) {
            nrg_norm_spec spec =
                gate == 1 ? nrg_norm_spec_layer(NRG_F32, FUSED_DIM, 1e-5) : nrg_norm_spec_rms(NRG_F32, FUSED_DIM, 1e-6);
            nrg_norm_args args = nrg_norm_args_init(FUSED_ROWS, x.wide, w.wide, o);
            spec.gate = (nrg_gate)gate;
            spec.activation = gate ? NRG_ACT_SILU : NRG_ACT_IDENTITY;
            args.y = y.wide;
            args.z = gate ? z.wide : NULL;
            args.r = r; /* x + y in f32, as below */
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
            clear_results();
            quantize_floats(format, (nrg_quant_rounding)(gate % 2), o);
            spec.dtype = dtype;
            spec.r_dtype = NRG_F32;
            args.x = x.stored;
            args.y = y.stored;
            args.w = w.stored;
            args.z = gate ? z.stored : NULL;
            args.o = NULL;
            args.r = r_too;
            spec.format = format;
            spec.rounding = (nrg_quant_rounding)(gate % 2);
            args.packed = got;
            args.scales = nrg_quant_has_scales(format) ? got_scales : NULL;
            for (int ith = 0; ith < 3; ith++)
                ck_assert_int_eq(nrg_norm_forward(&spec, &args, ith, 3), NRG_OK);
            must_be_equal("norm", _i / 3, dtype, paths[path]);
            ck_assert_mem_eq(r, r_too, FUSED * sizeof *r);
        }
    free(r_too);
    free(r);
    free(o);
    free_both(x);
    free_both(y);
    free_both(z);
    free_both(w);
}
END_TEST

/* A sandwich whose result is bytes: those of its second norm alone, of r as it was stored. */
START_TEST(sandwich_fused_is_unfused)
{
    const nrg_quant_format format = facts[_i / 3].format;
    const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + _i % 3);
    nrg_isa paths[NRG_ISA_COUNT];
    uint64_t state = (uint64_t)_i + 2000;
    const both x = draw_both(&state, dtype, FUSED), y = draw_both(&state, dtype, FUSED), w1 = draw_both(&state, dtype, FUSED_DIM),
               w2 = draw_both(&state, dtype, FUSED_DIM);
    void *const r = element_tensor(FUSED, NRG_F32);
    for (size_t path = test_paths(paths); path-- > 0;)
        for (int centred = 0; centred < 2; centred++) {
            const nrg_norm_spec first = nrg_norm_spec_rms(dtype, FUSED_DIM, 1e-6);
            nrg_norm_spec second = centred ? nrg_norm_spec_layer(dtype, FUSED_DIM, 1e-5) : first;
            nrg_norm_sandwich_args args =
                nrg_norm_sandwich_args_init(FUSED_ROWS, x.stored, y.stored, w1.stored, w2.stored, r, NULL);
            nrg_norm_args alone = nrg_norm_args_init(FUSED_ROWS, r, w2.stored, NULL);
            second.format = format;
            second.rounding = (nrg_quant_rounding)centred;
            args.packed = got;
            alone.packed = wanted;
            args.scales = nrg_quant_has_scales(format) ? got_scales : NULL;
            alone.scales = nrg_quant_has_scales(format) ? wanted_scales : NULL;
            clear_results();
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            for (int ith = 0; ith < 3; ith++)
                ck_assert_int_eq(nrg_norm_sandwich_forward(&first, &second, &args, ith, 3), NRG_OK);
            ck_assert_int_eq(nrg_norm_forward(&second, &alone, 0, 1), NRG_OK);
            must_be_equal("sandwich", _i / 3, dtype, paths[path]);
        }
    free(r);
    free_both(x);
    free_both(y);
    free_both(w1);
    free_both(w2);
}
END_TEST

START_TEST(glu_fused_is_unfused)
{
    const nrg_quant_format format = facts[_i / 3].format;
    const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + _i % 3);
    nrg_isa paths[NRG_ISA_COUNT];
    uint64_t state = (uint64_t)_i + 1000;
    const both a = draw_both(&state, dtype, FUSED), b = draw_both(&state, dtype, FUSED);
    float *const o = element_tensor(FUSED, NRG_F32);
    for (size_t path = test_paths(paths); path-- > 0;)
        for (int limited = 0; limited < 2; limited++) {
            nrg_glu_args args = nrg_glu_args_init(NRG_ACT_SILU, NRG_F32, FUSED_ROWS, FUSED_DIM, a.wide, b.wide, o);
            args.limit = limited ? 2 : 0;
            args.b_offset = limited ? 1 : 0;
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            ck_assert_int_eq(nrg_glu_forward(&args, 0, 1), NRG_OK);
            clear_results();
            quantize_floats(format, (nrg_quant_rounding)limited, o);
            args.dtype = dtype;
            args.a = a.stored;
            args.b = b.stored;
            args.o = NULL;
            args.format = format;
            args.rounding = (nrg_quant_rounding)limited;
            args.packed = got;
            args.scales = nrg_quant_has_scales(format) ? got_scales : NULL;
            for (int ith = 0; ith < 3; ith++)
                ck_assert_int_eq(nrg_glu_forward(&args, ith, 3), NRG_OK);
            must_be_equal("glu", _i / 3, dtype, paths[path]);
        }
    free(o);
    free_both(a);
    free_both(b);
}
END_TEST

/* By hand: the rule in a few bytes that nobody computes. */
START_TEST(by_hand)
{
    static const signed char even[8] = {127, 0, 2, 2, 0, -2, -2, 1}, away[8] = {127, 1, 2, 3, -1, -2, -3, 1};
    const float first[8] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.75f};
    static float x[256];
    unsigned char q[292];
    memset(x, 0, sizeof x);
    memcpy(x, first, sizeof first);
    for (int rounding = 0; rounding < 2; rounding++) {
        nrg_quantize_args args = nrg_quantize_args_init(NRG_QUANT_Q8_0, NRG_F32, 1, 32, x, q, NULL);
        args.rounding = (nrg_quant_rounding)rounding;
        ck_assert_int_eq(nrg_quantize(&args, 0, 1), NRG_OK);
        ck_assert(q[0] == 0x00 && q[1] == 0x3c); /* 1 in f16 */
        ck_assert_mem_eq(q + 2, rounding ? away : even, sizeof even);
        /* q8_K turns the largest to -127 */
        args = nrg_quantize_args_init(NRG_QUANT_Q8_K, NRG_F32, 1, 256, x, q, NULL);
        args.rounding = (nrg_quant_rounding)rounding;
        ck_assert_int_eq(nrg_quantize(&args, 0, 1), NRG_OK);
        float d;
        int16_t sum;
        memcpy(&d, q, 4);
        memcpy(&sum, q + 4 + 256, 2);
        ck_assert_float_eq(d, -1);
        for (int i = 0; i < 8; i++)
            ck_assert_int_eq((signed char)q[4 + i], -(rounding ? away : even)[i]);
        ck_assert_int_eq(sum, -128); /* what ties gain above zero they lose below */
    }
}
END_TEST

/* A byte that depends on the factor: 58 · (1 / (116 / 127)) is above the tie at 63.5, and 58 · (127 / 116) below it. ggml's
 * reference multiplies by the first, its AVX code by the second (docs/ops/quantize.md). */
START_TEST(next_to_a_tie)
{
    static const float x[32] = {116, 58};
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t path = test_paths(paths); path-- > 0;)
        for (int rounding = 0; rounding < 2; rounding++) {
            const nrg_quant_rounding ties = (nrg_quant_rounding)rounding;
            unsigned char q[34];
            ck_assert_int_eq(nearest(58 * divided(1, divided(116, 127)), ties), 64);
            ck_assert_int_eq(nearest(58 * divided(127, 116), ties), 63);
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            nrg_quantize_args args = nrg_quantize_args_init(NRG_QUANT_Q8_0, NRG_F32, 1, 32, x, q, NULL);
            args.rounding = ties;
            ck_assert_int_eq(nrg_quantize(&args, 0, 1), NRG_OK);
            ck_assert_int_eq(q[2], 127);
            ck_assert_int_eq(q[3], 64);
        }
}
END_TEST

/* The numbers of the header's functions, and dense rows by them. */
START_TEST(sizes)
{
    static const size_t of_256[FORMATS] = {8 * 34,  4 * 8 * 34, 4 * 8 * 34, 8 * 8 * 34, 8 * 8 * 34, 292, 4 * 292,
                                           4 * 292, 8 * 292,    8 * 292,    256,        256,        256, 256};
    static const size_t scales[FORMATS] = {[10] = 1, 8, 4, 2};
    for (int i = 0; i < FORMATS; i++) {
        ck_assert_int_eq(nrg_quant_rows(facts[i].format), facts[i].rows);
        ck_assert_int_eq(nrg_quant_block(facts[i].format), facts[i].block);
        ck_assert_int_eq(nrg_quant_has_scales(facts[i].format), !facts[i].scale);
        ck_assert_int_eq(nrg_quant_bytes(facts[i].format, 256), of_256[i]);
        ck_assert_int_eq(nrg_quant_scales(facts[i].format, 256), scales[i]);
        ck_assert_int_eq(nrg_quant_size(facts[i].format, 16, 256), 16 / facts[i].rows * of_256[i]);
        ck_assert_int_eq(nrg_quant_size(facts[i].format, 0, 256), 0);
        ck_assert_int_eq(nrg_quant_size(facts[i].format, 17, 256), facts[i].rows == 1 ? 17 * of_256[i] : 0);
        ck_assert_int_eq(nrg_quant_size(facts[i].format, 8, 33), facts[i].scale ? 0 : 8 * 33);
        ck_assert_int_eq(nrg_quant_size(facts[i].format, SIZE_MAX / 256 * 8, 256), 0);
    }
    ck_assert_int_eq(nrg_quant_scales(NRG_QUANT_INT8_64, 65), 2);
    for (int i = -1; i <= NRG_QUANT_INT8_128 + 1; i += i < 0 ? 1 : NRG_QUANT_INT8_128 + 1) {
        const nrg_quant_format none = (nrg_quant_format)i;
        ck_assert(!nrg_quant_rows(none) && !nrg_quant_block(none) && !nrg_quant_has_scales(none));
        ck_assert(!nrg_quant_bytes(none, 256) && !nrg_quant_scales(none, 256) && !nrg_quant_size(none, 8, 256));
    }
}
END_TEST

START_TEST(format_names)
{
    for (int i = 0; i < FORMATS; i++)
        ck_assert_str_eq(nrg_quant_format_name(facts[i].format), names[i]);
    ck_assert_str_eq(nrg_quant_format_name(NRG_QUANT_NONE), "none");
    ck_assert_ptr_null(nrg_quant_format_name((nrg_quant_format)(NRG_QUANT_INT8_128 + 1)));
    ck_assert_ptr_null(nrg_quant_format_name((nrg_quant_format)-1));
}
END_TEST

int main(int argc, char **argv)
{
    argc = test_arguments(argc, argv);
    test_note_crashes();
    worst = test_shared(FORMATS * sizeof *worst);
    Suite *suite = suite_create("rows to blocks of bytes");
    TCase *all = test_case(suite, "quantize");
    tcase_add_loop_test(all, bytes, 0, FORMATS);
    tcase_add_loop_test(all, back, 0, FORMATS);
    tcase_add_loop_test(all, back_to_16_bits, 0, FORMATS);
    tcase_add_loop_test(all, norm_fused_is_unfused, 0, 3 * FORMATS);
    tcase_add_loop_test(all, sandwich_fused_is_unfused, 0, 3 * FORMATS);
    tcase_add_loop_test(all, glu_fused_is_unfused, 0, 3 * FORMATS);
    tcase_add_test(all, by_hand);
    tcase_add_test(all, next_to_a_tie);
    tcase_add_test(all, sizes);
    tcase_add_test(all, format_names);
    const int status = test_run(suite);
    if (argc > 1 && strcmp(argv[1], "--report") == 0)
        for (int i = 0; i < FORMATS; i++)
            printf("| %s | %.9f |\n", names[i], worst[i]);
    return status;
}
