/* Angles, tables and rotations against the exact values, whose formulas are in rope_exact.h: the bounds that nrg/rope.h and
 * nrg/sinusoidal.h promise, and what a rotation is for: lengths stay, and a dot product depends on the distance alone.
 *
 * `rope_truth_test --report` prints the worst errors as Markdown tables and nothing else.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/rows.h"
#include "../harness/truth.h"
#include "rope_exact.h"

/* The bounds. Frequencies in 2^-90 of their value, tables in ulps. The rest in u = 2^-24, the largest part of a number that
 * rounding takes from it, and by counting: an entry of the table has half an ulp, 0.501 u at most below 1, and of itself 1.002 u;
 * a product u of itself, and the sum u.
 *
 * An output, of (|x0| + |x1|) · magnitude: 0.501 + 1 + 1, or with a magnitude 1.002 + 1 + 1. It is the second term, the one that
 * is rounded twice, that can come near. A pair as a vector, of its length: 0.501·√2 + 1 + 1 = 2.71, and that is what its length
 * can change by. Forward and back: the roundings twice, and the table's error along the pair twice, 4 + 1.42. A dot product of
 * two turned vectors, of |q||k|: 2 · 2.71, and as much again for the one it is compared with. */
static const double frequency_limit = 1, table_limit = 0.501, output_limit = 2.502, scaled_limit = 3.004, length_limit = 2.71,
                    back_limit = 5.43, dot_limit = 10.85;

/* What can be said of long vectors, whose roundings do not all go the same way. */
static const double long_dot_limit = 1;

/* ---- what is measured ---- */

enum { RUNS = 9 };

/* Positions that are looked at: from the first on; those of the last are drawn. */
static const struct {
    const char *name;
    int64_t first;
    size_t count;
} runs[RUNS] = {
    {"0 to 3000", 0, 3001},
    {"131072", 131072 - 30, 61},
    {"1000000", 1000000 - 30, 61},
    {"1048576", 1048576 - 30, 61},
    {"16777216", 16777216 - 30, 61},
    {"-5", -40, 50},
    {"INT32_MAX", INT32_MAX - 60, 61},
    {"INT32_MIN", INT32_MIN, 61},
    {"any", 0, 40},
};

enum figure { OUTPUT, OUTPUT_SCALED, LENGTH, BACK_ULP, BACK_LENGTH_ULP, BACK_LENGTH, DOT, DOT_SHORT, FIGURES };

static const char *const figure_names[FIGURES] = {
    "output, in 2^-24 · (|x0| + |x1|)",
    "output, in 2^-24 · (|x0| + |x1|) · magnitude, magnitudes from 1 to 1.5",
    "length of a pair, in 2^-24 of it",
    "forward and back, in ulp of the pair's larger element",
    "forward and back, in ulp of the pair's length",
    "forward and back, in 2^-24 of the pair's length",
    "q·k for a shift of both positions, 128 elements, in 2^-24 · |q||k|",
    "q·k for a shift of both positions, 2 elements, in 2^-24 · |q||k|",
};

enum { ANGLES = 28, SINUSOIDS = 9 };

typedef struct record {
    double frequency[ANGLES], table[ANGLES][RUNS], sinusoid[SINUSOIDS][RUNS], figure[FIGURES];
    unsigned long entries;
} record;

static record *worst;

/* Not ck_assert, which wants a test around it. */
static void accepted(nrg_status status)
{
    if (status != NRG_OK)
        truth_judge(nrg_status_string(status), NULL);
}

static void at_least(double *most, double value)
{
    if (!(value <= *most))
        *most = value;
}

/* In ulps of the exact value; that of a 0 is an ulp of the smallest number. */
static double ulps(quad exact, float got) { return fabs((double)(exact - got)) / element_ulp((double)exact, NRG_F32); }

static int64_t position_of(int run, size_t t)
{
    return run == RUNS - 1 ? (int64_t)(test_mix(t) >> 32) + INT32_MIN : runs[run].first + (int64_t)t;
}

/* The exact angle of one position after another: a step from the one before, now and then from the start, and at 0 without the
 * steps' errors. */
typedef struct walk {
    quad theta;
    quad_turned step, at;
    int64_t position;
    int steps;
} walk;

static walk walk_begin(quad theta)
{
    walk w = {theta, quad_turn(theta), {1, 0}, INT64_MIN, 0};
    return w;
}

static quad_turned walk_to(walk *w, int64_t position)
{
    if (position == w->position + 1 && position != 0 && ++w->steps < 200)
        w->at = quad_turn_on(w->at, w->step);
    else {
        w->at = quad_turn(w->theta * (quad)position);
        w->steps = 0;
    }
    w->position = position;
    return w->at;
}

/* ---- angles ---- */

static float factors[EXACT_PAIRS];

/* The scalings in use, with the numbers of models. */
static nrg_rope_spec angles_of(int i, const char **name)
{
    nrg_rope_spec s = nrg_rope_spec_init(128, NRG_ROPE_NEOX, 10000);
    const char *text = "?";
    switch (i) {
    case 0:
        text = "base 10000, 128";
        break;
    case 1:
        text = "base 1000000, 96";
        s = nrg_rope_spec_init(96, NRG_ROPE_NORMAL, 1000000);
        break;
    case 2:
        text = "base 500000, 64";
        s = nrg_rope_spec_init(64, NRG_ROPE_NORMAL, 500000);
        break;
    case 3:
        text = "base 10, 6";
        s = nrg_rope_spec_init(6, NRG_ROPE_NEOX, 10);
        break;
    case 4:
        text = "base 10000, 2";
        s = nrg_rope_spec_init(2, NRG_ROPE_NORMAL, 10000);
        break;
    case 5:
        text = "base 0.5, 20";
        s = nrg_rope_spec_init(20, NRG_ROPE_NORMAL, 0.5);
        break;
    case 6:
        text = "base 2^-20, 20: up to 2^15 turns a position";
        s = nrg_rope_spec_init(20, NRG_ROPE_NORMAL, 0x1p-20);
        break;
    case 18:
        text = "vision, four sections, and the first again";
        s = nrg_rope_spec_init(40, NRG_ROPE_VISION, 10000);
        memcpy(s.sections, (const int[4]){6, 9, 5, 11}, sizeof s.sections);
        break;
    case 19:
        text = "linear, 8";
        s.freq_scale = 0.125;
        break;
    case 7:
        text = "linear, 3";
        s.freq_scale = 1.0 / 3;
        break;
    case 8:
        text = "NTK, 4";
        s.scaling = NRG_ROPE_SCALING_NTK;
        s.factor = 4;
        break;
    case 9:
        text = "dynamic NTK, 2, at 6000 of 4096";
        s.scaling = NRG_ROPE_SCALING_NTK;
        s.factor = 2 * 6000.0 / 4096 - 1;
        break;
    case 10:
        text = "Llama 3.1";
        s = nrg_rope_spec_init(128, NRG_ROPE_NORMAL, 500000);
        s.scaling = NRG_ROPE_SCALING_LLAMA3;
        s.factor = 8;
        s.n_ctx_orig = 8192;
        break;
    case 11:
        text = "LongRoPE factors";
        s.n_dims = 96;
        for (int p = 0; p < 48; p++)
            factors[p] = 1.0f + 0.0263f * (float)(p * p);
        s.freq_factors = factors;
        s.attn_factor = nrg_rope_longrope_attn_factor(131072, 4096);
        break;
    case 12:
        text = "YaRN, 4 of 32768";
        s.freq_base = 1000000;
        s.freq_scale = 0.25;
        s.ext_factor = 1;
        s.n_ctx_orig = 32768;
        break;
    case 13:
        text = "YaRN, 40 of 4096, half, attn_factor, factors";
        s.n_dims = 64;
        s.freq_scale = 1.0 / 40;
        s.ext_factor = 0.5;
        s.n_ctx_orig = 4096;
        s.attn_factor = 0.73105;
        for (int p = 0; p < 32; p++)
            factors[p] = 1.0f + 0.1f * (float)p;
        s.freq_factors = factors;
        break;
    case 14:
        text = "M-RoPE of Qwen2-VL";
        s = nrg_rope_spec_init(128, NRG_ROPE_MROPE, 1000000);
        memcpy(s.sections, (const int[4]){16, 24, 24, 0}, sizeof s.sections);
        break;
    case 15:
        text = "vision of Qwen2-VL";
        s = nrg_rope_spec_init(40, NRG_ROPE_VISION, 10000);
        memcpy(s.sections, (const int[4]){20, 20, 20, 20}, sizeof s.sections);
        break;
    case 16:
        text = "interleaved M-RoPE of Qwen3-VL, in ggml";
        s = nrg_rope_spec_init(128, NRG_ROPE_IMROPE, 5000000);
        memcpy(s.sections, (const int[4]){24, 20, 20, 0}, sizeof s.sections);
        break;
    case 17:
        text = "interleaved M-RoPE, 11 11 10, YaRN";
        s = nrg_rope_spec_init(64, NRG_ROPE_IMROPE, 10000000);
        memcpy(s.sections, (const int[4]){11, 11, 10, 0}, sizeof s.sections);
        s.freq_scale = 0.5;
        s.ext_factor = 1;
        s.n_ctx_orig = 262144;
        break;
    case 23:
        text = "interleaved M-RoPE of Qwen3-VL, in transformers";
        s = nrg_rope_spec_init(128, NRG_ROPE_IMROPE_TIME, 5000000);
        memcpy(s.sections, (const int[4]){24, 20, 20, 0}, sizeof s.sections);
        break;
    case 24:
        text = "interleaved M-RoPE, four sections of 15, and again";
        s = nrg_rope_spec_init(64, NRG_ROPE_IMROPE, 10000);
        memcpy(s.sections, (const int[4]){2, 6, 4, 3}, sizeof s.sections);
        break;
    case 25:
        text = "interleaved M-RoPE in transformers, sections of 13 of 32";
        s = nrg_rope_spec_init(64, NRG_ROPE_IMROPE_TIME, 10000);
        memcpy(s.sections, (const int[4]){2, 4, 3, 4}, sizeof s.sections);
        break;
    case 26:
        text = "YaRN of gpt-oss, 32 of 4096, not truncated";
        s = nrg_rope_spec_init(64, NRG_ROPE_NEOX, 150000);
        s.freq_scale = 1.0 / 32;
        s.ext_factor = 1;
        s.n_ctx_orig = 4096;
        s.yarn = NRG_ROPE_YARN_NO_TRUNCATE;
        break;
    case 27:
        text = "YaRN, 40 of 4096, half, not truncated, attn_factor as it is";
        s = nrg_rope_spec_init(128, NRG_ROPE_NEOX, 10000);
        s.freq_scale = 1.0 / 40;
        s.ext_factor = 0.5;
        s.n_ctx_orig = 4096;
        s.attn_factor = 1.19;
        s.yarn = NRG_ROPE_YARN_NO_TRUNCATE | NRG_ROPE_YARN_NO_MSCALE;
        break;
    case 20:
        text = "YaRN, 8 of 4";
        s.freq_scale = 0.125;
        s.ext_factor = 1;
        s.n_ctx_orig = 4;
        break;
    case 21:
        text = "YaRN, 4 of 4, half, base 0.5";
        s = nrg_rope_spec_init(20, NRG_ROPE_NORMAL, 0.5);
        s.n_ctx_orig = 4;
        s.freq_scale = 0.25;
        s.ext_factor = 0.5;
        break;
    case 22:
        text = "YaRN, 3 of 4, vision of Qwen2-VL";
        s = nrg_rope_spec_init(40, NRG_ROPE_VISION, 10000);
        s.n_ctx_orig = 4;
        memcpy(s.sections, (const int[4]){20, 20, 0, 0}, sizeof s.sections);
        s.freq_scale = 1.0 / 3;
        s.ext_factor = 0.75;
        break;
    }
    *name = text;
    return s;
}

/* Of one spec, in 2^-90. */
static double frequency_error(const nrg_rope_spec *s, const rope_exact *exact, const double *frequencies, double magnitude)
{
    double most = fabs((double)((exact->magnitude - magnitude) / exact->magnitude)) * 0x1p52;
    if (nrg_rope_pairs(s) != exact->pairs)
        truth_judge("the number of pairs", NULL);
    if (!(most <= 1))
        truth_judge("the magnitude is not within 2^-52", NULL);
    most = 0;
    for (size_t p = 0; p < exact->pairs; p++) {
        const quad turns = exact->theta[p] / (2 * QUAD_PI), got = (quad)frequencies[p] + frequencies[exact->pairs + p];
        at_least(&most, fabs((double)((got - turns) / turns)) * 0x1p90);
        if (fabs(frequencies[exact->pairs + p]) > 0x1p-52 * fabs(frequencies[p]))
            truth_judge("the lower part of a frequency is not below the higher one", NULL);
    }
    return most;
}

/* The entries of one run of positions. Axes are at positions of their own. */
static void check_run(int angles, const char *name, const nrg_rope_spec *s, const rope_exact *exact, const double *frequencies,
                      double magnitude, int run)
{
    static int32_t positions[4][3001];
    static float table[3001 * EXACT_PAIRS * 2], other[3001 * EXACT_PAIRS * 2];
    const size_t most = angles < 3 && !test_small() ? 3001 : 301, pairs = exact->pairs;
    const size_t count = runs[run].count < most ? runs[run].count : most;
    const int64_t apart = runs[run].first < 0 ? 7919 : -7919;
    for (int axis = 0; axis < 4; axis++)
        for (size_t t = 0; t < count; t++)
            positions[axis][t] = (int32_t)(position_of(run, t) + (run == RUNS - 1 ? 0 : axis * apart));
    nrg_rope_table_args args = nrg_rope_table_args_init(count, frequencies, magnitude, table);
    args.positions = positions[0];
    args.positions_stride = sizeof positions[0];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    for (size_t i = 0; i < path_count; i++) {
        args.table = i ? other : table;
        accepted(nrg_isa_set(paths[i]));
        accepted(nrg_rope_table(s, &args, 0, 1));
        if (i && memcmp(table, other, count * 2 * pairs * sizeof(float)) != 0)
            truth_judge("a path has not the bits of scalar", NULL);
    }
    for (size_t p = 0; p < pairs; p++) {
        walk w = walk_begin(exact->theta[p]);
        for (size_t t = 0; t < count; t++) {
            quad_turned turned = walk_to(&w, positions[exact->axis[p]][t]);
            turned.cosine *= exact->magnitude;
            turned.sine *= exact->magnitude;
            const float c = table[t * 2 * pairs + p], sine = table[t * 2 * pairs + pairs + p];
            const double error = fmax(ulps(turned.cosine, c), ulps(turned.sine, sine));
            at_least(&worst->table[angles][run], error);
            worst->entries += 2;
            if (error <= table_limit)
                continue;
            char text[256];
            snprintf(text, sizeof text, "%s: pair %zu at %d: cos %.9g (%.17g), sin %.9g (%.17g), off by %.5f ulp", name, p,
                     positions[exact->axis[p]][t], (double)c, (double)turned.cosine, (double)sine, (double)turned.sine, error);
            truth_judge(text, NULL);
        }
    }
}

static void check_angles(int i)
{
    const char *name;
    const nrg_rope_spec s = angles_of(i, &name);
    const rope_exact exact = rope_exact_of(&s);
    double frequencies[2 * EXACT_PAIRS], magnitude;
    accepted(nrg_rope_frequencies(&s, frequencies, &magnitude));
    worst->frequency[i] = frequency_error(&s, &exact, frequencies, magnitude);
    if (!(worst->frequency[i] <= frequency_limit))
        truth_judge(name, NULL);
    for (int run = 0; run < RUNS; run++)
        check_run(i, name, &s, &exact, frequencies, magnitude, run);
}

/* Any base and scaling, up to the ends of what is allowed. */
static void check_any_frequencies(void)
{
    const int cases = test_small() ? 20 : 300;
    uint64_t state = 7;
    int allowed = 0;
    for (int i = 0; i < cases; i++) {
        const double range = i % 3 ? 24 : 400;
        nrg_rope_spec s = nrg_rope_spec_init(4 + 2 * test_draw(&state, 62), NRG_ROPE_NEOX, 1);
        s.freq_base = exp2(range * ((double)test_draw(&state, 2001) / 1000 - 1));
        s.scaling = (nrg_rope_scaling)test_draw(&state, 3);
        s.factor = 1 + (double)test_draw(&state, 1000) / 64;
        s.n_ctx_orig = s.scaling != NRG_ROPE_SCALING_LLAMA3 && i % 4 == 0 ? 0 : 1 << test_draw(&state, 20);
        s.freq_scale = test_draw(&state, 2) ? 1 / (1 + (double)test_draw(&state, 1000) / 16) : 1;
        s.ext_factor = s.freq_base != 1 && test_draw(&state, 2) ? (double)test_draw(&state, 5) / 4 : 0;
        s.yarn = (uint32_t)test_draw(&state, 4);
        if (s.scaling == NRG_ROPE_SCALING_NONE)
            s.factor = 1;
        if (s.ext_factor == 0)
            s.yarn = 0;
        else if (!s.n_ctx_orig)
            s.n_ctx_orig = 4096;
        double frequencies[2 * EXACT_PAIRS], magnitude;
        const nrg_status status = nrg_rope_frequencies(&s, frequencies, &magnitude);
        const rope_exact exact = rope_exact_of(&s);
        int fast = 0;
        for (size_t p = 0; p < exact.pairs; p++)
            fast |= quad_abs(exact.theta[p]) > (quad)0x1p18 * 2 * QUAD_PI;
        if (status != (fast ? NRG_ERR_CONSTANT : NRG_OK))
            truth_judge("a pair that turns too fast, or does not, and the status does not say so", NULL);
        if (fast || status != NRG_OK)
            continue;
        allowed++;
        if (!(frequency_error(&s, &exact, frequencies, magnitude) <= frequency_limit)) {
            char text[200];
            snprintf(text, sizeof text, "base %a, n_dims %zu, scaling %d by %g, context %d, scale %g, ext %g: %.3f · 2^-90",
                     s.freq_base, s.n_dims, (int)s.scaling, s.factor, s.n_ctx_orig, s.freq_scale, s.ext_factor,
                     frequency_error(&s, &exact, frequencies, magnitude));
            truth_judge(text, NULL);
        }
    }
    if (allowed < cases / 4)
        truth_judge("few specs were allowed", NULL);
}

/* The ends of gpt-oss's ramp, from the shares of the two frequencies that pairs between them have. */
static void check_ramp_ends(void)
{
    nrg_rope_spec s = nrg_rope_spec_init(64, NRG_ROPE_NEOX, 150000), plain = s;
    double f[64], unscaled[64], magnitude, share[2];
    s.freq_scale = 1.0 / 32;
    s.ext_factor = 1;
    s.n_ctx_orig = 4096;
    s.yarn = NRG_ROPE_YARN_NO_TRUNCATE;
    accepted(nrg_rope_frequencies(&plain, unscaled, &magnitude));
    accepted(nrg_rope_frequencies(&s, f, &magnitude));
    for (int i = 0; i < 2; i++) {
        const int pair = i ? 17 : 9;
        share[i] = (1 - f[pair] / unscaled[pair]) / (1 - s.freq_scale);
    }
    const double width = 8 / (share[1] - share[0]), low = 9 - share[0] * width;
    if (!(fabs(low - 8.0928) < 5e-5 && fabs(low + width - 17.3980) < 5e-5))
        truth_judge("the ends of gpt-oss's ramp", NULL);
    /* its factor of magnitude, as ggml has it and as a model says it itself */
    if (!(fabs(magnitude - 1.3465735902799727) < 1e-15))
        truth_judge("the magnitude of gpt-oss", NULL);
    s.attn_factor = 1.25;
    s.yarn = NRG_ROPE_YARN_NO_MSCALE;
    accepted(nrg_rope_frequencies(&s, f, &magnitude));
    if (magnitude != 1.25)
        truth_judge("a magnitude that is taken as it is", NULL);
}

static void check_longrope_factor(void)
{
    static const int contexts[][2] = {{131072, 4096}, {8192, 4096}, {4097, 4096}, {INT32_MAX, 2}, {262144, 100}, {7, 3}};
    for (size_t i = 0; i < sizeof contexts / sizeof contexts[0]; i++) {
        const quad ratio = (quad)contexts[i][0] / contexts[i][1];
        const quad exact = quad_sqrt(1 + quad_log(ratio) / quad_log(contexts[i][1]));
        const double got = nrg_rope_longrope_attn_factor(contexts[i][0], contexts[i][1]);
        if (!(fabs((double)(exact - got)) <= 0x1p-51 * (double)exact))
            truth_judge("LongRoPE's attention factor", NULL);
    }
}

/* ---- rotations ---- */

/* Everything about pairs is measured on heads of one pair a head: as many heads as there are pairs of numbers, at one angle. */
enum { HEADS = 64 };

typedef struct turning {
    nrg_rope_spec spec;
    float table[2];
    quad_turned exact; /* with the magnitude */
    double magnitude;
} turning;

static turning turning_at(int32_t position, double magnitude)
{
    turning t;
    double frequencies[2], unused;
    t.spec = nrg_rope_spec_init(2, NRG_ROPE_NORMAL, 10000);
    t.magnitude = magnitude;
    accepted(nrg_rope_frequencies(&t.spec, frequencies, &unused));
    nrg_rope_table_args args = nrg_rope_table_args_init(1, frequencies, magnitude, t.table);
    args.first_position = position;
    accepted(nrg_rope_table(&t.spec, &args, 0, 1));
    t.exact = quad_turn(position); /* θ of the first pair is 1 */
    t.exact.cosine *= magnitude;
    t.exact.sine *= magnitude;
    return t;
}

static void turn_heads(const turning *t, size_t dim, const float *table, size_t heads, const float *x, float *o, int backward)
{
    nrg_rope_spec spec = t->spec;
    spec.n_dims = dim;
    nrg_rope_args args = nrg_rope_args_init(NRG_F32, 1, dim, table);
    args.q_heads = heads;
    args.q = x;
    args.q_o = o;
    accepted((backward ? nrg_rope_backward : nrg_rope_forward)(&spec, &args, 0, 1));
}

/* Numbers of like size, of any sizes, and such that one is just beyond a power of two and the other one about its last place:
 * there all the roundings can be at their largest. */
static void draw_pair(float x[2], uint64_t *state)
{
    const size_t how = test_draw(state, 4);
    for (int i = 0; i < 2; i++) {
        x[i] = 1 + (float)test_draw(state, 1 << 23) * 0x1p-23f;
        if (how == 1)
            x[i] = ldexpf(x[i], (int)test_draw(state, 30) - 15);
        if (how > 1)
            x[i] = 1 + (float)test_draw(state, 1 << 15) * 0x1p-23f;
        if (test_draw(state, 2))
            x[i] = -x[i];
    }
    if (how > 1)
        x[how - 2] *= 0x1p-24f * (float)test_draw(state, 2000) * 1e-3f;
}

/* Pairs of draw_pair, or ordinary ones of a kind of row. */
enum { DRAWN_PAIRS = -1 };

static void check_pairs(int32_t position, double magnitude, int kind)
{
    static float x[2 * HEADS], o[2 * HEADS], back[2 * HEADS];
    const turning t = turning_at(position, magnitude);
    const double limit = magnitude == 1 ? output_limit : scaled_limit;
    uint64_t state = test_mix((uint64_t)position * 8 + (uint64_t)(magnitude * 1024));
    for (size_t i = 0; i < HEADS && kind == DRAWN_PAIRS; i++)
        draw_pair(&x[2 * i], &state);
    if (kind != DRAWN_PAIRS)
        row_fill(x, sizeof x / sizeof x[0], (enum row_kind)kind, NRG_F32, test_mix(state + (uint64_t)kind));
    turn_heads(&t, 2, t.table, HEADS, x, o, 0);
    turn_heads(&t, 2, t.table, HEADS, o, back, 1);
    for (size_t i = 0; i < HEADS; i++) {
        const quad x0 = x[2 * i], x1 = x[2 * i + 1], o0 = o[2 * i], o1 = o[2 * i + 1];
        const quad exact0 = x0 * t.exact.cosine - x1 * t.exact.sine, exact1 = x0 * t.exact.sine + x1 * t.exact.cosine;
        const double size = (double)(quad_abs(x0) + quad_abs(x1)) * magnitude * 0x1p-24;
        const double output = fmax(fabs((double)(exact0 - o0)), fabs((double)(exact1 - o1))) / size;
        at_least(&worst->figure[magnitude == 1 ? OUTPUT : OUTPUT_SCALED], output);
        if (!(output <= limit))
            truth_judge("an output is not within its bound", NULL);
        if (magnitude != 1)
            continue;
        const quad length = quad_sqrt(x0 * x0 + x1 * x1);
        const double change = fabs((double)((quad_sqrt(o0 * o0 + o1 * o1) - length) / length)) * 0x1p24;
        const quad b0 = back[2 * i] - x0, b1 = back[2 * i + 1] - x1;
        const double distance = (double)(quad_sqrt(b0 * b0 + b1 * b1) / length) * 0x1p24;
        const double larger = fmax(fabs((double)x0), fabs((double)x1));
        at_least(&worst->figure[LENGTH], change);
        at_least(&worst->figure[BACK_LENGTH], distance);
        at_least(&worst->figure[BACK_LENGTH_ULP], distance * (double)length * 0x1p-24 / element_ulp((double)length, NRG_F32));
        at_least(&worst->figure[BACK_ULP], fmax(fabs((double)b0), fabs((double)b1)) / element_ulp(larger, NRG_F32));
        if (!(change <= length_limit) || !(distance <= back_limit))
            truth_judge("a pair's length, or what comes back of it, is not within its bound", NULL);
    }
}

static void check_rotations(int chunk)
{
    static const double magnitudes[] = {1, 1, 1, 1.0000001, 1.01, 1.1386294361, 1.5};
    const int count = test_small() ? 20 : 400;
    uint64_t state = (uint64_t)chunk + 1;
    for (int i = 0; i < count; i++)
        for (size_t m = 0; m < sizeof magnitudes / sizeof magnitudes[0]; m++)
            check_pairs((int32_t)test_draw(&state, m % 2 ? 2000 : 2000000), magnitudes[m], DRAWN_PAIRS);
    for (int i = 0; i < count / 4; i++)
        for (int kind = ROW_ORDINARY; kind < ROW_ALL_KINDS; kind++)
            check_pairs((int32_t)test_draw(&state, 2000000), magnitudes[2 + i % 5], kind);
}

static quad dot(const float *a, const float *b, size_t dim)
{
    quad sum = 0;
    for (size_t i = 0; i < dim; i++)
        sum += (quad)a[i] * b[i];
    return sum;
}

/* q at position m and k at n, and both shifted by δ. */
static void check_distance(size_t dim, enum figure figure, uint64_t seed)
{
    static float x[2][128], turned[2][2][128], table[128];
    uint64_t state = seed;
    double frequencies[128], unused;
    turning t;
    t.spec = nrg_rope_spec_init(dim, test_draw(&state, 2) ? NRG_ROPE_NEOX : NRG_ROPE_NORMAL, 10000);
    accepted(nrg_rope_frequencies(&t.spec, frequencies, &unused));
    const int32_t at[2] = {(int32_t)test_draw(&state, 2000), (int32_t)test_draw(&state, 2000)};
    const int32_t shift = (int32_t)test_draw(&state, 998001);
    for (int i = 0; i < 2; i++)
        row_fill(x[i], dim, (enum row_kind)(ROW_ORDINARY + test_draw(&state, ROW_ORDINARY_KINDS)), NRG_F32,
                 test_mix(state + (uint64_t)i));
    for (int shifted = 0; shifted < 2; shifted++)
        for (int i = 0; i < 2; i++) {
            nrg_rope_table_args args = nrg_rope_table_args_init(1, frequencies, 1, table);
            args.first_position = at[i] + (shifted ? shift : 0);
            accepted(nrg_rope_table(&t.spec, &args, 0, 1));
            turn_heads(&t, dim, table, 1, x[i], turned[shifted][i], 0);
        }
    const double size = (double)quad_sqrt(dot(x[0], x[0], dim) * dot(x[1], x[1], dim));
    const quad difference = dot(turned[1][0], turned[1][1], dim) - dot(turned[0][0], turned[0][1], dim);
    const double error = fabs((double)difference) / size * 0x1p24;
    at_least(&worst->figure[figure], error);
    if (!(error <= (figure == DOT ? long_dot_limit : dot_limit)))
        truth_judge("a dot product does not depend on the distance alone", NULL);
}

static void check_distances(void)
{
    const uint64_t count = test_small() ? 100 : 3000;
    for (uint64_t i = 0; i < count; i++) {
        check_distance(128, DOT, test_mix(i));
        for (uint64_t j = 0; j < 8; j++)
            check_distance(2, DOT_SHORT, test_mix(i * 8 + j + 100000));
    }
}

/* ---- the sinusoidal table ---- */

static const struct {
    size_t dim;
    double base;
    nrg_sinusoidal_spread spread;
} sinusoids[SINUSOIDS] = {
    {64, 10000, NRG_SINUSOIDAL_BELOW_BASE},  {65, 10000, NRG_SINUSOIDAL_BELOW_BASE}, {1, 10000, NRG_SINUSOIDAL_BELOW_BASE},
    {512, 10000, NRG_SINUSOIDAL_BELOW_BASE}, {30, 100, NRG_SINUSOIDAL_BELOW_BASE},   {33, 2.5, NRG_SINUSOIDAL_BELOW_BASE},
    {64, 10000, NRG_SINUSOIDAL_TO_BASE},     {512, 10000, NRG_SINUSOIDAL_TO_BASE},   {2, 10000, NRG_SINUSOIDAL_TO_BASE}};

/* What turns pair p, from the formulas of the header: the paper's, and tensor2tensor's timescales from 1 to the base. */
static quad sinusoid_theta(int which, size_t p)
{
    const quad log_base = quad_log(sinusoids[which].base), half = (quad)sinusoids[which].dim / 2;
    if (sinusoids[which].spread == NRG_SINUSOIDAL_BELOW_BASE)
        return quad_exp(-(quad)p / half * log_base);
    return p ? quad_exp(-(quad)p / (half - 1) * log_base) : 1;
}

static void check_sinusoid(int which, int layout, int run)
{
    enum { ROWS = 1500, WIDTH = 512 };
    static float table[ROWS * WIDTH];
    static uint16_t halves[ROWS * WIDTH];
    static int32_t positions[ROWS];
    const size_t dim = sinusoids[which].dim, pairs = (dim + 1) / 2, most = dim < 100 && !test_small() ? ROWS : 101;
    const size_t count = runs[run].count < most ? runs[run].count : most;
    double frequencies[WIDTH];
    nrg_sinusoidal_spec spec = nrg_sinusoidal_spec_vaswani(dim);
    spec.base = sinusoids[which].base;
    spec.spread = sinusoids[which].spread;
    spec.layout = (nrg_sinusoidal_layout)layout;
    accepted(nrg_sinusoidal_frequencies(&spec, frequencies));
    nrg_sinusoidal_args args = nrg_sinusoidal_args_init(NRG_F32, count, frequencies, table);
    for (size_t t = 0; t < count; t++)
        positions[t] = (int32_t)position_of(run, t);
    args.positions = run % 2 ? NULL : positions;
    args.first_position = args.positions ? 0 : (int32_t)runs[run].first;
    accepted(nrg_sinusoidal_table(&spec, &args, 0, 1));
    for (size_t p = 0; p < pairs; p++) {
        const quad theta = sinusoid_theta(which, p);
        walk w = walk_begin(theta);
        const quad got = (quad)frequencies[p] + frequencies[pairs + p];
        if (!(fabs((double)(got * 2 * QUAD_PI / theta - 1)) <= frequency_limit * 0x1p-90))
            truth_judge("a frequency of a sinusoidal table", NULL);
        for (size_t t = 0; t < count; t++) {
            const quad_turned turned = walk_to(&w, position_of(run, t));
            const int apart = layout != NRG_SINUSOIDAL_INTERLEAVED;
            const float *row = table + t * dim;
            const float *sines = layout == NRG_SINUSOIDAL_COSINES_FIRST ? row + pairs : row;
            const float *cosines = layout == NRG_SINUSOIDAL_CONCATENATED ? row + pairs : apart ? row : row + 1;
            double error = ulps(turned.sine, sines[apart ? p : 2 * p]);
            if (apart || 2 * p + 1 < dim)
                error = fmax(error, ulps(turned.cosine, cosines[apart ? p : 2 * p]));
            at_least(&worst->sinusoid[which][run], error);
            worst->entries += 2;
            if (!(error <= table_limit))
                truth_judge("an entry of a sinusoidal table is not within its bound", NULL);
        }
    }
    for (int dtype = NRG_F16; dtype <= NRG_BF16; dtype++) {
        args.dtype = (nrg_dtype)dtype;
        args.table = halves;
        accepted(nrg_sinusoidal_table(&spec, &args, 0, 1));
        for (size_t i = 0; i < count * dim; i++)
            if (element_get(halves, i, args.dtype) != element_round(table[i], args.dtype))
                truth_judge("a 16-bit entry is not the f32 one rounded", NULL);
    }
}

static void check_sinusoids(int which)
{
    for (int run = 0; run < RUNS; run++)
        for (int layout = 0; layout < (sinusoids[which].dim % 2 ? 1 : NRG_SINUSOIDAL_COSINES_FIRST + 1); layout++)
            check_sinusoid(which, layout, run);
}

/* ---- what comes out ---- */

enum { CHUNKS = 4 };

static void print_worst(void)
{
    printf("| angles | frequency, log2 |");
    for (int run = 0; run < RUNS; run++)
        printf(" %s |", runs[run].name);
    printf("\n| --- | ---: |");
    for (int run = 0; run < RUNS; run++)
        printf(" ---: |");
    for (int i = 0; i < ANGLES; i++) {
        const char *name;
        (void)angles_of(i, &name);
        printf("\n| %s | %.1f |", name, log2(worst->frequency[i]) - 90);
        for (int run = 0; run < RUNS; run++)
            printf(" %.5f |", worst->table[i][run]);
    }
    for (int i = 0; i < SINUSOIDS; i++) {
        printf("\n| sinusoidal, base %g%s, %zu | |", sinusoids[i].base,
               sinusoids[i].spread == NRG_SINUSOIDAL_TO_BASE ? " reached" : "", sinusoids[i].dim);
        for (int run = 0; run < RUNS; run++)
            printf(" %.5f |", worst->sinusoid[i][run]);
    }
    printf("\n\n| rotation | worst |\n| --- | ---: |\n");
    for (int i = 0; i < FIGURES; i++)
        printf("| %s | %.3f |\n", figure_names[i], worst->figure[i]);
    fflush(stdout);
}

START_TEST(angles) { check_angles(_i); }
END_TEST

START_TEST(any_frequencies)
{
    check_any_frequencies();
    check_ramp_ends();
    check_longrope_factor();
}
END_TEST

START_TEST(rotations) { check_rotations(_i); }
END_TEST

START_TEST(distances) { check_distances(); }
END_TEST

START_TEST(sinusoidal) { check_sinusoids(_i); }
END_TEST

START_TEST(worst_cases)
{
    printf("worst errors, tables in ulp; %lu entries of tables:\n", worst->entries);
    print_worst();
    if (getenv("CK_RUN_CASE"))
        return;
    for (int i = 0; i < ANGLES; i++)
        for (int run = 0; run < RUNS; run++)
            /* correctly rounded would be below 0.5: what was never measured is 0 */
            ck_assert_msg(worst->table[i][run] > 0.3, "angles %d at %s were never measured", i, runs[run].name);
    for (int i = 0; i < FIGURES; i++)
        ck_assert_msg(worst->figure[i] > 0.1, "%s: never measured", figure_names[i]);
}
END_TEST

static void report(void)
{
    for (int i = 0; i < ANGLES; i++)
        check_angles(i);
    check_any_frequencies();
    check_ramp_ends();
    check_longrope_factor();
    for (int i = 0; i < CHUNKS; i++)
        check_rotations(i);
    check_distances();
    for (int i = 0; i < SINUSOIDS; i++)
        check_sinusoids(i);
    print_worst();
}

static Suite *make_suite(void)
{
    Suite *suite = suite_create("rope: against the exact value");
    tcase_add_loop_test(test_case(suite, "angles"), angles, 0, ANGLES);
    tcase_add_test(test_case(suite, "any frequencies"), any_frequencies);
    tcase_add_loop_test(test_case(suite, "rotations"), rotations, 0, CHUNKS);
    tcase_add_test(test_case(suite, "distances"), distances);
    tcase_add_loop_test(test_case(suite, "sinusoidal"), sinusoidal, 0, SINUSOIDS);
    tcase_add_test(test_case(suite, "worst cases"), worst_cases);
    return suite;
}

int main(int argc, char **argv)
{
    worst = test_shared(sizeof *worst);
    return truth_main(argc, argv, report, make_suite);
}
