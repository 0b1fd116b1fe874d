/* The contract of vec.h (docs/howto/adding-an-isa.md), function by function. Compiled once a path, with the path's flags, VEC_H
 * its vec.h, and VEC_PATH its name.
 *
 * Vectors are filled and looked at by memcpy: what loads and stores them is under test. The memory for that is static: locals of
 * gcc 12's AddressSanitizer have been seen at odd multiples of 32, where the copy of a vector counted on one of 64.
 *
 * SPDX-License-Identifier: MIT */
#include VEC_H

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "../harness/element.h"
#include "../harness/fence.h"
#include "../harness/support.h"
#include "vec_suite.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { LANES = 32, VD = VN / 2 };

/* What the templates take for granted. */
_Static_assert(VN == 4 || VN == 8 || VN == 16, "a vector holds 4, 8 or 16 floats");
_Static_assert(sizeof(vf) == 4 * VN && sizeof(vh) == 2 * VN && sizeof(vp) == 4 * VN && sizeof(vd) == 8 * VD,
               "vectors hold nothing but their elements");
_Static_assert(sizeof(vd8) == 64, "eight doubles");
_Static_assert(2 * V_SUM1 * VN == LANES || V_SUM1 * VN % LANES == 0, "a summing step takes half of the lanes, or all");
_Static_assert(2 * V_SUM2 * VN == LANES || V_SUM2 * VN % LANES == 0, "a summing step takes half of the lanes, or all");
_Static_assert(V_SUM2 <= V_SUM1 || V_SUM2 <= V_APPLY, "V_SUM2 is not the largest step");
_Static_assert(V_APPLY *VN >= 16, "columns of a channel norm that are done in double are a step at most");
_Static_assert(V_SUM1 > 1 && V_SUM2 > 1 && V_APPLY > 1, "a step of one vector means a part of one");
_Static_assert(V_SUM4 >= 1 && V_SUM4 <= 4, "the backward sums keep four vectors at most");
_Static_assert(V_ROPE >= 4 && V_ROPE <= 16 && V_ROPE % 4 == 0,
               "half of a rotation's vectors are first elements of pairs, the even ones and the odd");
_Static_assert(V_SUM1 <= 16 && V_SUM2 <= 16 && V_APPLY <= 16, "NRG_UNROLL unrolls 16 times");

static uint64_t state;

static uint32_t random_bits(void)
{
    state = test_mix(state);
    return (uint32_t)(state >> 32);
}

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Any float; NaN and Inf are one in 256. */
static float random_float(void) { return float_of(random_bits()); }

static uint64_t random_bits_64(void)
{
    uint64_t upper = random_bits();
    return upper << 32 | random_bits();
}

static double random_double(void)
{
    uint64_t bits = random_bits_64();
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* Of either sign, from 2^-range to 2^range. */
static double random_near_one(int range)
{
    int exponent = (int)test_draw(&state, (size_t)(2 * range)) - range;
    uint64_t bits = random_bits_64();
    double d = ldexp(1 + (double)(bits >> 12) * 0x1p-52, exponent);
    return bits & 1 ? -d : d;
}

/* Equal bits, or both NaN. */
static int same_float(float a, float b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }
static int same_double(double a, double b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }

/* ---- loads and stores ---- */

typedef struct load_function {
    const char *name;
    size_t element, least, most; /* bytes of an element; the smallest n, and the largest */
    void (*run)(void *lanes, const void *p, size_t n);
} load_function;

typedef struct store_function {
    const char *name;
    size_t element, least, most, alignment;
    void (*run)(void *p, const void *lanes, size_t n);
} store_function;

static void ld_f32(void *lanes, const void *p, size_t n)
{
    (void)n;
    vf v = v_ld_f32(p);
    memcpy(lanes, &v, sizeof v);
}

static void ldn_f32(void *lanes, const void *p, size_t n)
{
    vf v = v_ldn_f32(p, n);
    memcpy(lanes, &v, sizeof v);
}

static void ld_half(void *lanes, const void *p, size_t n)
{
    (void)n;
    vh v = v_ld_half(p);
    memcpy(lanes, &v, sizeof v);
}

static void ldn_half(void *lanes, const void *p, size_t n)
{
    vh v = v_ldn_half(p, n);
    memcpy(lanes, &v, sizeof v);
}

static vf vf_of(const void *lanes)
{
    vf v;
    memcpy(&v, lanes, sizeof v);
    return v;
}

static vh vh_of(const void *lanes)
{
    vh v;
    memcpy(&v, lanes, sizeof v);
    return v;
}

static void ld_pair(void *lanes, const void *p, size_t n)
{
    (void)n;
    vp v = v_ld_pair(p);
    memcpy(lanes, &v, sizeof v);
}

static vp vp_of(const void *lanes)
{
    vp v;
    memcpy(&v, lanes, sizeof v);
    return v;
}

static vd vd_of(const void *lanes)
{
    vd v;
    memcpy(&v, lanes, sizeof v);
    return v;
}

static void st_f32(void *p, const void *lanes, size_t n) { (void)n, v_st_f32(p, vf_of(lanes)); }
static void stn_f32(void *p, const void *lanes, size_t n) { v_stn_f32(p, vf_of(lanes), n); }
static void st_half(void *p, const void *lanes, size_t n) { (void)n, v_st_half(p, vh_of(lanes)); }
static void stn_half(void *p, const void *lanes, size_t n) { v_stn_half(p, vh_of(lanes), n); }

static void st_pair(void *p, const void *lanes, size_t n) { (void)n, v_st_pair(p, vp_of(lanes)); }

static void nt_f32(void *p, const void *lanes, size_t n)
{
    (void)n;
    v_nt_f32(p, vf_of(lanes));
    v_nt_fence();
}

static void nt_half(void *p, const void *lanes, size_t n)
{
    (void)n;
    v_nt_half(p, vh_of(lanes));
    v_nt_fence();
}

static void nt_pair(void *p, const void *lanes, size_t n)
{
    (void)n;
    v_nt_pair(p, vp_of(lanes));
    v_nt_fence();
}

static void nt_16(void *p, const void *bytes, size_t n)
{
    (void)n;
    v_nt_16(p, bytes);
    v_nt_fence();
}

static void nt_4(void *p, const void *bytes, size_t n)
{
    (void)n;
    v_nt_4(p, bytes);
    v_nt_fence();
}

/* A non-temporal store goes to a multiple of 16, or of its own size where that is smaller. */
enum { NT_F32 = 16, NT_HALF = 2 * VN < 16 ? 2 * VN : 16 };

static const load_function loads[] = {
    {"v_ld_f32", 4, VN, VN, ld_f32},    {"v_ldn_f32", 4, 1, VN, ldn_f32},          {"v_ld_half", 2, VN, VN, ld_half},
    {"v_ldn_half", 2, 1, VN, ldn_half}, {"v_ld_pair", 2, 2 * VN, 2 * VN, ld_pair},
};

static const store_function stores[] = {
    {"v_st_f32", 4, VN, VN, 4, st_f32},
    {"v_stn_f32", 4, 1, VN, 4, stn_f32},
    {"v_nt_f32", 4, VN, VN, NT_F32, nt_f32},
    {"v_st_half", 2, VN, VN, 2, st_half},
    {"v_stn_half", 2, 1, VN, 2, stn_half},
    {"v_nt_half", 2, VN, VN, NT_HALF, nt_half},
    {"v_st_pair", 2, 2 * VN, 2 * VN, 2, st_pair},
    {"v_nt_pair", 2, 2 * VN, 2 * VN, 16, nt_pair},
    {"v_nt_16", 16, 1, 1, 16, nt_16},
    {"v_nt_4", 4, 1, 1, 4, nt_4},
};

enum { CANARY = 0xa5, GAPS = 128, VECTOR_MAX = 64 };

/* Every byte is random and none of them is a canary or 0. */
static void random_bytes(unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        do
            bytes[i] = (unsigned char)random_bits();
        while (bytes[i] == CANARY || bytes[i] == 0);
}

/* n elements `gap` bytes from a fence, in memory that cannot be written: the lanes behind them must be 0. */
static void one_load(const load_function *f, fence *memory, size_t n, enum fence_side side, size_t gap)
{
    unsigned char expected[VECTOR_MAX] = {0}, got[VECTOR_MAX];
    snprintf(test_note, sizeof test_note, VEC_PATH ": %s, n %zu, %zu bytes from the fence %s", f->name, n, gap,
             side == AT_END ? "behind" : "in front");
    unsigned char *p = fence_place(memory, n * f->element, side, gap);
    memset(memory->first, CANARY, memory->bytes);
    random_bytes(expected, n * f->element);
    memcpy(p, expected, n * f->element);
    fence_protect(memory, 1);
    f->run(got, p, n);
    fence_protect(memory, 0);
    if (memcmp(got, expected, f->most * f->element) != 0)
        ck_abort_msg("%s: wrong lanes", test_note);
}

START_TEST(loads_read_their_elements)
{
    const load_function *f = &loads[_i];
    fence memory = {0};
    for (size_t n = f->least; n <= f->most; n++)
        for (size_t gap = 0; gap < GAPS; gap += f->element) {
            one_load(f, &memory, n, AT_END, gap);
            one_load(f, &memory, n, AT_START, gap);
        }
    fence_free(&memory);
}
END_TEST

/* n elements `gap` bytes from a fence: nothing around them may change. */
static void one_store(const store_function *f, fence *memory, size_t n, enum fence_side side, size_t gap)
{
    unsigned char lanes[VECTOR_MAX];
    snprintf(test_note, sizeof test_note, VEC_PATH ": %s, n %zu, %zu bytes from the fence %s", f->name, n, gap,
             side == AT_END ? "behind" : "in front");
    unsigned char *p = fence_place(memory, n * f->element, side, gap);
    if ((uintptr_t)p % f->alignment)
        ck_abort_msg("%s: the test does not align", test_note);
    memset(memory->first, CANARY, memory->bytes);
    random_bytes(lanes, sizeof lanes);
    f->run(p, lanes, n);
    if (memcmp(p, lanes, n * f->element) != 0)
        ck_abort_msg("%s: wrong elements", test_note);
    memset(p, CANARY, n * f->element);
    for (size_t i = 0; i < memory->bytes; i++)
        if (memory->first[i] != CANARY)
            ck_abort_msg("%s: wrote %td bytes from its first element", test_note, memory->first + i - p);
}

START_TEST(stores_write_their_elements)
{
    const store_function *f = &stores[_i];
    fence memory = {0};
    for (size_t n = f->least; n <= f->most; n++)
        for (size_t gap = 0; gap < GAPS; gap += f->alignment) {
            one_store(f, &memory, n, AT_END, gap);
            one_store(f, &memory, n, AT_START, gap);
        }
    fence_free(&memory);
}
END_TEST

/* ---- arithmetic ---- */

static const float specials[] = {
    0,
    0x1p-149f, /* the subnormals' ends */
    0x1.fffffcp-127f,
    FLT_MIN,
    0x1p-75f, /* squares below the subnormals */
    0x1p-64f,
    FLT_EPSILON,
    0.1f,
    0x1.fffffep-1f,
    1,
    0x1.000002p0f,
    3,
    0x1p63f,
    0x1p64f, /* squares beyond the largest float */
    0x1.fffffep126f,
    FLT_MAX,
    INFINITY,
    NAN,
};

enum { SPECIALS = 2 * COUNT(specials) };

/* Each with both signs. */
static float special(size_t i) { return i % 2 ? -specials[i / 2] : specials[i / 2]; }

typedef struct float_function {
    const char *name;
    vf (*vector)(vf a, vf b, vf c);
    float (*scalar)(float a, float b, float c);
} float_function;

static vf vector_add(vf a, vf b, vf c) { return (void)c, v_add(a, b); }
static vf vector_sub(vf a, vf b, vf c) { return (void)c, v_sub(a, b); }
static vf vector_mul(vf a, vf b, vf c) { return (void)c, v_mul(a, b); }
static vf vector_fma(vf a, vf b, vf c) { return v_fma(a, b, c); }
static vf vector_fms(vf a, vf b, vf c) { return v_fms(a, b, c); }
static float scalar_add(float a, float b, float c) { return (void)c, a + b; }
static float scalar_sub(float a, float b, float c) { return (void)c, a - b; }
static float scalar_mul(float a, float b, float c) { return (void)c, a * b; }
static vf vector_fnma(vf a, vf b, vf c) { return v_fnma(a, b, c); }
static vf vector_div(vf a, vf b, vf c) { return (void)c, v_div(a, b); }
static vf vector_max(vf a, vf b, vf c) { return (void)c, v_max(a, b); }
static vf vector_min(vf a, vf b, vf c) { return (void)c, v_min(a, b); }
static vf vector_relu(vf a, vf b, vf c) { return (void)b, (void)c, v_relu(a); }
/* of a NaN, either */
static vf vector_least_magnitude(vf a, vf b, vf c)
{
    (void)c;
    return v_select(v_lt(v_abs(a), v_set1(INFINITY)), v_least_magnitude(v_min(v_abs(b), v_set1(FLT_MAX)), a), v_set1(0));
}
static vf vector_abs(vf a, vf b, vf c) { return (void)b, (void)c, v_abs(a); }
static vf vector_copysign(vf a, vf b, vf c) { return (void)c, v_copysign(a, b); }
static vf vector_select(vf a, vf b, vf c) { return v_select(v_lt(a, b), c, b); }
static vf vector_negative(vf a, vf b, vf c) { return v_select(v_negative(a), b, c); }
static vf vector_mul_unless_positive(vf a, vf b, vf c) { return (void)c, v_mul_unless_positive(a, b); }
static vf vector_mirror(vf a, vf b, vf c) { return (void)c, v_mirror(a, b); }
/* of a NaN, a NaN: the cut keeps it */
static vf vector_part_of(vf a, vf b, vf c)
{
    const vf t = v_min(v_set1(0x1p80f), v_abs(a));
    return (void)b, (void)c, v_part_of(t, v_add(v_set1(1), t));
}
static float scalar_fms(float a, float b, float c) { return fmaf(a, b, -c); }
static float scalar_fnma(float a, float b, float c) { return fmaf(-a, b, c); }
static float scalar_div(float a, float b, float c) { return (void)c, a / b; }
static float scalar_max(float a, float b, float c) { return (void)c, a > b ? a : b; }
static float scalar_min(float a, float b, float c) { return (void)c, a < b ? a : b; }
/* not a < 0, which clang makes the same fmax of */
static float scalar_relu(float a, float b, float c)
{
    return (void)b, (void)c, signbit(a) && !isnan(a) && fpclassify(a) != FP_ZERO ? 0 : a;
}
static float scalar_least_magnitude(float a, float b, float c)
{
    (void)c;
    float most = fabsf(b) < FLT_MAX ? fabsf(b) : FLT_MAX;
    return fabsf(a) < INFINITY ? fabsf(a) < most ? fabsf(a) : most : 0;
}
static float scalar_abs(float a, float b, float c) { return (void)b, (void)c, fabsf(a); }
static float scalar_copysign(float a, float b, float c) { return (void)c, copysignf(a, b); }
static float scalar_select(float a, float b, float c) { return a < b ? c : b; }
static float scalar_mul_unless_positive(float a, float b, float c) { return (void)c, a > 0 ? a : a * b; }
static float scalar_mirror(float a, float b, float c) { return (void)c, signbit(b) ? a : 1 - a; }
static float scalar_part_of(float a, float b, float c)
{
    const float t = fabsf(a) > 0x1p80f ? 0x1p80f : fabsf(a);
    return (void)b, (void)c, t / (1 + t);
}
static float scalar_negative(float a, float b, float c) { return signbit(a) ? b : c; }

static const float_function float_functions[] = {
    {"v_add", vector_add, scalar_add},
    {"v_sub", vector_sub, scalar_sub},
    {"v_mul", vector_mul, scalar_mul},
    {"v_fma", vector_fma, fmaf},
    {"v_fms", vector_fms, scalar_fms},
    {"v_fnma", vector_fnma, scalar_fnma},
    {"v_div", vector_div, scalar_div},
    {"v_max", vector_max, scalar_max},
    {"v_min", vector_min, scalar_min},
    {"v_relu", vector_relu, scalar_relu},
    {"v_least_magnitude", vector_least_magnitude, scalar_least_magnitude},
    {"v_abs", vector_abs, scalar_abs},
    {"v_copysign", vector_copysign, scalar_copysign},
    {"v_select and v_lt", vector_select, scalar_select},
    {"v_select and v_negative", vector_negative, scalar_negative},
    {"v_mul_unless_positive", vector_mul_unless_positive, scalar_mul_unless_positive},
    {"v_mirror", vector_mirror, scalar_mirror},
    {"v_part_of", vector_part_of, scalar_part_of},
};

typedef struct float_lanes {
    float a[VN], b[VN], c[VN];
} float_lanes;

static void check_floats(const float_function *f, const float_lanes *in)
{
    static float got[VN];
    vf result = f->vector(vf_of(in->a), vf_of(in->b), vf_of(in->c));
    memcpy(got, &result, sizeof got);
    for (size_t l = 0; l < VN; l++) {
        float expected = f->scalar(in->a[l], in->b[l], in->c[l]);
        if (!same_float(got[l], expected))
            ck_abort_msg(VEC_PATH ": %s(%a, %a, %a) in lane %zu: %a and not %a", f->name, (double)in->a[l], (double)in->b[l],
                         (double)in->c[l], l, (double)got[l], (double)expected);
    }
}

START_TEST(float_arithmetic)
{
    const float_function *f = &float_functions[_i];
    static float_lanes in;
    /* the last vector begins again with the first triples */
    for (size_t i = 0; i < SPECIALS * SPECIALS * SPECIALS; i += VN) {
        for (size_t l = 0; l < VN; l++) {
            in.a[l] = special((i + l) % SPECIALS);
            in.b[l] = special((i + l) / SPECIALS % SPECIALS);
            in.c[l] = special((i + l) / (SPECIALS * SPECIALS) % SPECIALS);
        }
        check_floats(f, &in);
    }
    state = 1;
    for (size_t i = 0, count = test_small() ? 2000 : 200000; i < count; i++) {
        for (size_t l = 0; l < VN; l++) {
            in.a[l] = i % 2 ? random_float() : (float)random_near_one(20);
            in.b[l] = i % 2 ? random_float() : (float)random_near_one(20);
            in.c[l] = random_float();
            /* what only the rounding error of a·b is left of, and of a - b */
            if (i % 4 == 0)
                in.c[l] = random_bits() & 1 ? in.a[l] * in.b[l] : -in.a[l] * in.b[l];
            if (i % 4 == 2)
                in.b[l] = nextafterf(in.a[l], random_bits() & 1 ? INFINITY : -INFINITY);
        }
        check_floats(f, &in);
    }
}
END_TEST

static const double double_specials[] = {
    0,      0x1p-1074,      DBL_MIN, 0x1p-540, 0x1p-149, DBL_EPSILON, 0.1, 0x1.fffffffffffffp-1, 1, 3,
    0x1p52, 0x1.fffffep127, 0x1p511, 0x1p512,  DBL_MAX,  INFINITY,    NAN,
};

enum { DOUBLE_SPECIALS = 2 * COUNT(double_specials) };

static double double_special(size_t i) { return i % 2 ? -double_specials[i / 2] : double_specials[i / 2]; }

typedef struct double_function {
    const char *name;
    vd (*vector)(vd a, vd b, vd c);
    double (*scalar)(double a, double b, double c);
} double_function;

static vd vector_addd(vd a, vd b, vd c) { return (void)c, vd_add(a, b); }
static vd vector_subd(vd a, vd b, vd c) { return (void)c, vd_sub(a, b); }
static vd vector_muld(vd a, vd b, vd c) { return (void)c, vd_mul(a, b); }
static vd vector_fmad(vd a, vd b, vd c) { return vd_fma(a, b, c); }
static vd vector_divd(vd a, vd b, vd c) { return (void)c, vd_div(a, b); }
static vd vector_sqrtd(vd a, vd b, vd c) { return (void)b, (void)c, vd_sqrt(a); }
static vd vector_unless_le(vd a, vd b, vd c) { return (void)c, vd_unless_le(a, b); }
static vd vector_unless_in(vd a, vd b, vd c) { return vd_or(vd_unless_le(a, b), vd_unless_le(b, c)); }
static double scalar_addd(double a, double b, double c) { return (void)c, a + b; }
static double scalar_subd(double a, double b, double c) { return (void)c, a - b; }
static double scalar_muld(double a, double b, double c) { return (void)c, a * b; }

static double scalar_divd(double a, double b, double c) { return (void)c, a / b; }
static double scalar_sqrtd(double a, double b, double c) { return (void)b, (void)c, sqrt(a); }
static double scalar_unless_le(double a, double b, double c) { return (void)c, a <= b ? 0 : (double)NAN; }
static double scalar_unless_in(double a, double b, double c) { return a <= b && b <= c ? 0 : (double)NAN; }

static const double_function double_functions[] = {
    {"vd_add", vector_addd, scalar_addd},
    {"vd_sub", vector_subd, scalar_subd},
    {"vd_mul", vector_muld, scalar_muld},
    {"vd_fma", vector_fmad, fma},
    {"vd_div", vector_divd, scalar_divd},
    {"vd_sqrt", vector_sqrtd, scalar_sqrtd},
    {"vd_unless_le", vector_unless_le, scalar_unless_le},
    {"vd_or", vector_unless_in, scalar_unless_in},
};

typedef struct double_lanes {
    double a[VD], b[VD], c[VD];
} double_lanes;

static void check_doubles(const double_function *f, const double_lanes *in)
{
    static double got[VD];
    vd result = f->vector(vd_of(in->a), vd_of(in->b), vd_of(in->c));
    int any = 0;
    memcpy(got, &result, sizeof got);
    for (size_t l = 0; l < VD; l++) {
        double expected = f->scalar(in->a[l], in->b[l], in->c[l]);
        any |= expected != 0; /* NaN is */
        if (!same_double(got[l], expected))
            ck_abort_msg(VEC_PATH ": %s(%a, %a, %a) in lane %zu: %a and not %a", f->name, in->a[l], in->b[l], in->c[l], l, got[l],
                         expected);
    }
    if (f->vector == vector_unless_in && vd_any(result) != any)
        ck_abort_msg(VEC_PATH ": vd_any gives %d and not %d", vd_any(result), any);
}

START_TEST(double_arithmetic)
{
    const double_function *f = &double_functions[_i];
    static double_lanes in;
    for (size_t i = 0; i < DOUBLE_SPECIALS * DOUBLE_SPECIALS * DOUBLE_SPECIALS; i += VD) {
        for (size_t l = 0; l < VD; l++) {
            in.a[l] = double_special((i + l) % DOUBLE_SPECIALS);
            in.b[l] = double_special((i + l) / DOUBLE_SPECIALS % DOUBLE_SPECIALS);
            in.c[l] = double_special((i + l) / (DOUBLE_SPECIALS * DOUBLE_SPECIALS) % DOUBLE_SPECIALS);
        }
        check_doubles(f, &in);
    }
    state = 2;
    for (size_t i = 0, count = test_small() ? 2000 : 200000; i < count; i++) {
        for (size_t l = 0; l < VD; l++) {
            in.a[l] = i % 2 ? random_double() : random_near_one(40);
            in.b[l] = i % 2 ? random_double() : random_near_one(40);
            in.c[l] = random_double();
            if (i % 4 == 0)
                in.c[l] = -in.a[l] * in.b[l];
            if (i % 4 == 2)
                in.b[l] = nextafter(in.a[l], random_bits() & 1 ? INFINITY : -INFINITY);
        }
        check_doubles(f, &in);
    }
}
END_TEST

START_TEST(constants)
{
    static float floats[VN];
    static double doubles[VD];
    vf zero = v_zero();
    memcpy(floats, &zero, sizeof floats);
    for (size_t l = 0; l < VN; l++)
        ck_assert(same_float(floats[l], 0));
    for (size_t i = 0; i < SPECIALS; i++) {
        vf v = v_set1(special(i));
        memcpy(floats, &v, sizeof floats);
        for (size_t l = 0; l < VN; l++)
            ck_assert(same_float(floats[l], special(i)));
    }
    vd double_zero = vd_zero();
    memcpy(doubles, &double_zero, sizeof doubles);
    for (size_t l = 0; l < VD; l++)
        ck_assert(same_double(doubles[l], 0));
    for (size_t i = 0; i < DOUBLE_SPECIALS; i++) {
        vd v = vd_set1(double_special(i));
        memcpy(doubles, &v, sizeof doubles);
        for (size_t l = 0; l < VD; l++)
            ck_assert(same_double(doubles[l], double_special(i)));
    }
}
END_TEST

/* Doubles at any address, bit by bit, and nothing beside them. */
START_TEST(doubles_in_memory)
{
    static char from[(VD + 1) * sizeof(double)], to[(VD + 2) * sizeof(double)];
    for (size_t at = 0; at < sizeof(double); at += sizeof(double) / 2) {
        double in[VD], got[VD];
        for (size_t l = 0; l < VD; l++)
            in[l] = double_special(l % DOUBLE_SPECIALS);
        memcpy(from + at, in, sizeof in);
        memset(to, 0x5a, sizeof to);
        vd_st((double *)(void *)(to + at), vd_ld((const double *)(const void *)(from + at)));
        memcpy(got, to + at, sizeof got);
        for (size_t l = 0; l < VD; l++)
            ck_assert(same_double(got[l], in[l]));
        for (size_t i = 0; i < at; i++)
            ck_assert_int_eq(to[i], 0x5a);
        for (size_t i = at + sizeof got; i < sizeof to; i++)
            ck_assert_int_eq(to[i], 0x5a);
    }
}
END_TEST

/* Numbers times 2^n, for all n that leave a normal number; and zeros times 1. */
START_TEST(scaling_by_powers)
{
    static const int exponents[] = {-126, -64, -1, 0, 64, 127};
    static const float fractions[] = {1, 0x1.000002p0f, -0x1.921fb6p0f, 0x1.fffffep0f};
    static float z[VN], got[VN];
    for (size_t i = 0; i < COUNT(exponents) * COUNT(fractions); i++) {
        const int exponent = exponents[i / COUNT(fractions)];
        const float fraction = fractions[i % COUNT(fractions)];
        for (int first = -126; first <= 127; first += VN) {
            for (int l = 0; l < VN; l++)
                z[l] = 0x1.8p23f + (float)(first + l - exponent);
            vf result = v_scale2(v_set1(ldexpf(fraction, exponent)), vf_of(z));
            memcpy(got, &result, sizeof got);
            for (int l = 0; l < VN && first + l <= 127; l++)
                if (!same_float(got[l], ldexpf(fraction, first + l)))
                    ck_abort_msg(VEC_PATH ": v_scale2 of %a times 2^%d to 2^%d in lane %d: %a", (double)fraction, exponent,
                                 first + l, l, (double)got[l]);
        }
    }
    for (int sign = 0; sign < 2; sign++) {
        const float zero = sign ? -0.0f : 0.0f;
        vf result = v_scale2(v_set1(zero), v_set1(0x1.8p23f));
        memcpy(got, &result, sizeof got);
        for (int l = 0; l < VN; l++)
            ck_assert(same_float(got[l], zero));
    }
}
END_TEST

/* ---- for rotations ---- */

typedef struct move {
    const char *name;
    vf (*run)(vf a, vf b);
    size_t (*from)(size_t lane); /* the lane that comes there: of a, and from VN on of b */
} move;

static vf move_swap_pairs(vf a, vf b) { return (void)b, v_swap_pairs(a); }
static vf move_twice_low(vf a, vf b) { return (void)b, v_twice_low(a); }
static vf move_twice_high(vf a, vf b) { return (void)b, v_twice_high(a); }
static size_t from_neighbour(size_t lane) { return lane ^ 1; }
static size_t from_low(size_t lane) { return lane / 2; }
static size_t from_high(size_t lane) { return VN / 2 + lane / 2; }
static size_t from_even(size_t lane) { return 2 * lane; }
static size_t from_odd(size_t lane) { return 2 * lane + 1; }
static size_t from_zip_low(size_t lane) { return lane % 2 * VN + lane / 2; }
static size_t from_zip_high(size_t lane) { return lane % 2 * VN + VN / 2 + lane / 2; }

static const move moves[] = {
    {"v_swap_pairs", move_swap_pairs, from_neighbour},
    {"v_twice_low", move_twice_low, from_low},
    {"v_twice_high", move_twice_high, from_high},
    {"v_even", v_even, from_even},
    {"v_odd", v_odd, from_odd},
    {"v_zip_low", v_zip_low, from_zip_low},
    {"v_zip_high", v_zip_high, from_zip_high},
};

/* Bits are moved, a signalling NaN's as well. */
START_TEST(lanes_move)
{
    const move *m = &moves[_i];
    static float a[2 * VN], got[VN];
    state = 9;
    for (size_t i = 0; i < 20000; i++) {
        for (size_t l = 0; l < 2 * VN; l++) {
            uint32_t bits = random_bits();
            memcpy(&a[l], &bits, sizeof bits);
        }
        vf result = m->run(vf_of(a), vf_of(a + VN));
        memcpy(got, &result, sizeof got);
        for (size_t l = 0; l < VN; l++)
            if (memcmp(&got[l], &a[m->from(l)], sizeof got[l]) != 0)
                ck_abort_msg(VEC_PATH ": %s in lane %zu: 0x%08x and not 0x%08x", m->name, l, element_bits(got, l, NRG_F32),
                             element_bits(a, m->from(l), NRG_F32));
    }
}
END_TEST

typedef struct quarter_lanes {
    double cosine[VD], sine[VD], z[VD];
} quarter_lanes;

static void check_quarters(const quarter_lanes *in, const int64_t *turns)
{
    static double got_cosine[VD], got_sine[VD];
    vd c = vd_of(in->cosine), s = vd_of(in->sine);
    vd_quarter_turns(&c, &s, vd_of(in->z));
    memcpy(got_cosine, &c, sizeof got_cosine);
    memcpy(got_sine, &s, sizeof got_sine);
    for (size_t l = 0; l < VD; l++) {
        double cosine = in->cosine[l], sine = in->sine[l];
        /* one quarter turn at a time: cos(a + π/2) = -sin a, sin(a + π/2) = cos a */
        for (int64_t n = 0; n < (turns[l] % 4 + 4) % 4; n++) {
            double before = cosine;
            cosine = -sine;
            sine = before;
        }
        if (!same_double(got_cosine[l], cosine) || !same_double(got_sine[l], sine))
            ck_abort_msg(VEC_PATH ": vd_quarter_turns(%a, %a) by %lld in lane %zu: %a, %a and not %a, %a", in->cosine[l],
                         in->sine[l], (long long)turns[l], l, got_cosine[l], got_sine[l], cosine, sine);
    }
}

/* Every number of quarters within 40 in every lane, the ends, and what lies between; signs of zeros are kept. */
START_TEST(quarter_turns)
{
    static quarter_lanes in;
    static int64_t turns[VD];
    const int64_t end = (int64_t)1 << 51;
    state = 10;
    for (int64_t i = -40; i < (test_small() ? 2000 : 40000); i++) {
        for (size_t l = 0; l < VD; l++) {
            turns[l] = i < 40 ? i + (int64_t)l : (int64_t)(random_bits_64() >> (12 + test_draw(&state, 52))) - (i % 2 ? 0 : end);
            if (i == 40)
                turns[l] = l % 2 ? end - 1 - (int64_t)l : (int64_t)l - end;
            if (turns[l] >= end)
                turns[l] -= end;
            in.z[l] = 0x1.8p52 + (double)turns[l];
            in.cosine[l] = i % 3 ? random_near_one(30) : double_special(test_draw(&state, DOUBLE_SPECIALS));
            in.sine[l] = i % 3 ? random_near_one(30) : double_special(test_draw(&state, DOUBLE_SPECIALS));
        }
        check_quarters(&in, turns);
    }
}
END_TEST

/* ---- 16-bit elements ---- */

static const nrg_dtype halves[] = {NRG_F16, NRG_BF16};

START_TEST(every_half_to_float)
{
    nrg_dtype dtype = halves[_i];
    static uint16_t in[VN];
    static float got[VN];
    /* the second time each value is in another lane */
    for (unsigned shift = 0; shift < 2; shift++)
        for (unsigned first = 0; first < 65536; first += VN) {
            for (unsigned l = 0; l < VN; l++)
                in[l] = (uint16_t)(first + l + shift);
            vf v = dtype == NRG_F16 ? v_from_f16(vh_of(in)) : v_from_bf16(vh_of(in));
            memcpy(got, &v, sizeof got);
            for (unsigned l = 0; l < VN; l++)
                if (!same_float(got[l], element_get(in, l, dtype)))
                    ck_abort_msg(VEC_PATH ": %s 0x%04x in lane %u: %a and not %a", nrg_dtype_name(dtype), in[l], l,
                                 (double)got[l], (double)element_get(in, l, dtype));
        }
}
END_TEST

START_TEST(every_bf16_to_float_by_pairs)
{
    static uint16_t in[2 * VN];
    static float even[VN], odd[VN];
    for (unsigned shift = 0; shift < 2; shift++)
        for (unsigned first = 0; first < 65536; first += 2 * VN) {
            for (unsigned l = 0; l < 2 * VN; l++)
                in[l] = (uint16_t)(first + l + shift);
            vf of_even = v_even_from_bf16(vp_of(in)), of_odd = v_odd_from_bf16(vp_of(in));
            memcpy(even, &of_even, sizeof even);
            memcpy(odd, &of_odd, sizeof odd);
            for (unsigned l = 0; l < VN; l++)
                if (!same_float(even[l], element_get(in, 2 * l, NRG_BF16)) ||
                    !same_float(odd[l], element_get(in, 2 * l + 1, NRG_BF16)))
                    ck_abort_msg(VEC_PATH ": bf16 0x%04x and 0x%04x in lane %u: %a and %a", in[2 * l], in[2 * l + 1], l,
                                 (double)even[l], (double)odd[l]);
        }
}
END_TEST

/* Floats on their way to 16 bits, a vector at a time. */
typedef struct queue {
    nrg_dtype dtype;
    size_t length;
    float f[VN];
} queue;

/* What v_calm_to_bf16 promises to round: a quiet NaN with nothing in its lower half, also one whose upper half is all ones. */
static float calmed(float f)
{
    const uint32_t bits = element_bits(&f, 0, NRG_F32);
    return isnan(f) ? float_of((bits & 0xffff0000u) | 0x400000) : f;
}

static void convert_pairs(const float *f, const uint16_t *expected)
{
    static float forward[VN], backward[VN];
    static uint16_t got[2 * VN];
    static const char *const names[] = {"v_pair_to_bf16", "v_calm_to_bf16", "v_calm_to_bf16 of v_calm"};
    for (unsigned way = 0; way < COUNT(names); way++) {
        for (size_t l = 0; l < VN; l++) {
            forward[l] = way == 1 ? calmed(f[l]) : f[l];
            backward[l] = way == 1 ? calmed(f[VN - 1 - l]) : f[VN - 1 - l];
        }
        const vf even = vf_of(forward), odd = vf_of(backward);
        const vp h = way == 0   ? v_pair_to_bf16(even, odd)
                     : way == 1 ? v_calm_to_bf16(even, odd)
                                : v_calm_to_bf16(v_calm(even), v_calm(v_hold(odd)));
        memcpy(got, &h, sizeof got);
        for (size_t l = 0; l < VN; l++)
            if (!element_equal(got + 2 * l, expected + l, 0, NRG_BF16) ||
                !element_equal(got + 2 * l + 1, expected + VN - 1 - l, 0, NRG_BF16))
                ck_abort_msg(VEC_PATH ": %s of %a and %a in lane %zu: 0x%04x and 0x%04x", names[way], (double)f[l],
                             (double)backward[l], l, got[2 * l], got[2 * l + 1]);
    }
}

static void convert(queue *q)
{
    static uint16_t got[VN], expected[VN];
    vh h = q->dtype == NRG_F16 ? v_to_f16(vf_of(q->f)) : v_to_bf16(vf_of(q->f));
    memcpy(got, &h, sizeof got);
    for (size_t l = 0; l < VN; l++) {
        element_set(expected, l, q->dtype, q->f[l]);
        if (!element_equal(got, expected, l, q->dtype))
            ck_abort_msg(VEC_PATH ": %a (0x%08x) in lane %zu to %s: 0x%04x and not 0x%04x", (double)q->f[l],
                         element_bits(q->f, l, NRG_F32), l, nrg_dtype_name(q->dtype), got[l], expected[l]);
    }
    if (q->dtype == NRG_BF16)
        convert_pairs(q->f, expected);
    q->length = 0;
}

static void push(queue *q, float f)
{
    q->f[q->length++] = f;
    if (q->length == VN)
        convert(q);
}

static void push_with_neighbours(queue *q, float f)
{
    push(q, f);
    push(q, nextafterf(f, INFINITY));
    push(q, nextafterf(f, -INFINITY));
}

/* Fills the last vector with ones. */
static void finish(queue *q)
{
    while (q->length)
        push(q, 1);
}

/* Of every 16-bit number: it, what lies halfway between it and the next, and the floats beside both. */
START_TEST(every_boundary_to_half)
{
    static queue q;
    q.dtype = halves[_i];
    const unsigned infinity = q.dtype == NRG_F16 ? 0x7c00 : 0x7f80;
    const double beyond = q.dtype == NRG_F16 ? 0x1p16 : 0x1p128; /* what the next after the largest would be */
    size_t halfway_to_even = 0;
    for (unsigned h = 0; h < 0x8000; h++) {
        uint16_t pair[2] = {(uint16_t)h, (uint16_t)(h + 1)};
        float value = element_get(pair, 0, q.dtype);
        if (h >= infinity) {
            push(&q, value);
            push(&q, -value);
            continue;
        }
        double next = h + 1 == infinity ? beyond : (double)element_get(pair, 1, q.dtype), exact = (value + next) / 2;
        float halfway = (float)exact, rounded;
        ck_assert_msg((double)halfway == exact, "0x%04x: the halfway point is a float", h);
        rounded = element_round(halfway, q.dtype);
        ck_assert_msg(rounded == value || (double)rounded == next || (h + 1 == infinity && isinf(rounded)),
                      "0x%04x: the halfway point rounds to a neighbour", h);
        halfway_to_even += rounded != value;
        push_with_neighbours(&q, value);
        push_with_neighbours(&q, -value);
        push_with_neighbours(&q, halfway);
        push_with_neighbours(&q, -halfway);
    }
    finish(&q);
    ck_assert_uint_eq(halfway_to_even, infinity / 2);
}
END_TEST

START_TEST(nans_to_half)
{
    static queue q;
    q.dtype = halves[_i];
    /* payloads of one bit, of all from a bit on, and of all up to one: quiet, signalling, lost in 16 bits, and carried out by
     * an addition */
    for (unsigned bit = 0; bit < 23; bit++)
        for (unsigned sign = 0; sign < 2; sign++) {
            uint32_t infinity = sign << 31 | 0x7f800000u;
            push(&q, float_of(infinity | 1u << bit));
            push(&q, float_of(infinity | (0x7fffffu & ~((1u << bit) - 1))));
            push(&q, float_of(infinity | ((2u << bit) - 1)));
        }
    finish(&q);
    state = 3;
    for (size_t i = 0; i < 100000; i++)
        push(&q, float_of(random_bits() | 0x7f800001u));
    finish(&q);
}
END_TEST

START_TEST(floats_to_half)
{
    static queue q;
    q.dtype = halves[_i];
    /* odd strides, so that the low bits take all values */
    uint32_t stride = test_small() ? 262147 : 4099;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += stride)
        push(&q, float_of((uint32_t)bits));
    finish(&q);
}
END_TEST

/* ---- floats and doubles ---- */

static void check_widening(const float *in)
{
    static double got[VN];
    for (int both = 0; both < 2; both++) {
        vd low = vd_low(vf_of(in)), high = vd_high(vf_of(in));
        if (both)
            vd_both(vf_of(in), &low, &high);
        memcpy(got, &low, sizeof low);
        memcpy(got + VD, &high, sizeof high);
        for (size_t l = 0; l < VN; l++)
            if (!same_double(got[l], (double)in[l]))
                ck_abort_msg(VEC_PATH ": %s of %a in lane %zu: %a",
                             both     ? "vd_both"
                             : l < VD ? "vd_low"
                                      : "vd_high",
                             (double)in[l], l, got[l]);
    }
}

START_TEST(float_to_double)
{
    static float in[VN];
    for (size_t i = 0; i < SPECIALS; i++) {
        for (size_t l = 0; l < VN; l++)
            in[l] = special((i + l) % SPECIALS);
        check_widening(in);
    }
    state = 4;
    for (size_t i = 0; i < 100000; i++) {
        for (size_t l = 0; l < VN; l++)
            in[l] = random_float();
        check_widening(in);
    }
}
END_TEST

START_TEST(float_to_double_from_memory)
{
    static double got[VD];
    fence memory = {0};
    state = 7;
    for (size_t i = 0; i < 20000; i++) {
        size_t gap = 4 * (i / 2 % (GAPS / 4));
        snprintf(test_note, sizeof test_note, VEC_PATH ": vd_ld_f32, %zu bytes from a fence", gap);
        float *p = (float *)(void *)fence_place(&memory, 4 * VD, i % 2 ? AT_END : AT_START, gap);
        for (size_t l = 0; l < VD; l++)
            p[l] = i % 3 ? random_float() : special((i + l) % SPECIALS);
        vd v = vd_ld_f32(p);
        memcpy(got, &v, sizeof got);
        for (size_t l = 0; l < VD; l++)
            if (!same_double(got[l], (double)p[l]))
                ck_abort_msg("%s: %a in lane %zu: %a", test_note, (double)p[l], l, got[l]);
    }
    fence_free(&memory);
}
END_TEST

static void check_narrowing(const double *in, const float *expected)
{
    static float got[VN];
    vf v = v_from_vd(vd_of(in), vd_of(in + VD));
    memcpy(got, &v, sizeof got);
    for (size_t l = 0; l < VN; l++)
        if (!same_float(got[l], expected[l]))
            ck_abort_msg(VEC_PATH ": v_from_vd of %a in lane %zu: %a and not %a", in[l], l, (double)got[l], (double)expected[l]);
}

START_TEST(double_to_float)
{
    static double in[VN];
    static float expected[VN];
    for (size_t i = 0; i < DOUBLE_SPECIALS; i++) {
        for (size_t l = 0; l < VN; l++) {
            in[l] = double_special((i + l) % DOUBLE_SPECIALS);
            expected[l] = (float)in[l];
        }
        check_narrowing(in, expected);
    }
    state = 5;
    for (size_t i = 0; i < 100000; i++) {
        for (size_t l = 0; l < VN; l++) {
            uint32_t bits = random_bits() & 0x7fffffffu;
            /* every other vector has subnormals, or the largest, whose next is 2^128, among it */
            if (i % 2 == 0)
                bits = l % 4 == 0 ? 0x7f7fffffu : l % 4 == 1 ? bits & 0x7fffffu : bits;
            if (bits >= 0x7f800000u)
                bits ^= 0x40000000u;
            float lower = float_of(bits), upper = float_of(bits + 1);
            double halfway = ((double)lower + (isinf(upper) ? 0x1p128 : (double)upper)) / 2;
            unsigned kind = random_bits() % 4;
            in[l] = kind == 0   ? halfway
                    : kind == 1 ? nextafter(halfway, 0)
                    : kind == 2 ? nextafter(halfway, INFINITY)
                                : (double)lower;
            expected[l] = kind == 0 ? (bits & 1 ? upper : lower) : kind == 2 ? upper : lower;
            if (random_bits() & 1) {
                in[l] = -in[l];
                expected[l] = -expected[l];
            }
        }
        check_narrowing(in, expected);
    }
}
END_TEST

/* ---- reductions ---- */

static vd8 vd8_of(const double *lanes)
{
    static vd8 s;
    for (size_t i = 0; i < 8 / VD; i++)
        s.v[i] = vd_of(lanes + i * VD);
    return s;
}

/* Lane l takes l+4, then l+2, then l+1. */
static double fold(const double *lanes)
{
    double s[8];
    memcpy(s, lanes, sizeof s);
    for (size_t half = 4; half; half /= 2)
        for (size_t l = 0; l < half; l++)
            s[l] += s[l + half];
    return s[0];
}

/* Of eight rows, those whose sum shows its order: another one gives other bits. */
static size_t check_sums(double rows[8][8], double *sums)
{
    static vd8 s[8];
    size_t telling = 0;
    for (size_t row = 0; row < 8; row++)
        s[row] = vd8_of(rows[row]);
    vd8_sum_rows(s, sums);
    for (size_t row = 0; row < 8; row++) {
        double expected = fold(rows[row]), alone = vd8_sum(&s[row]), in_order = 0, pairs = 0;
        if (!same_double(alone, expected))
            ck_abort_msg(VEC_PATH ": vd8_sum gives %a and not %a", alone, expected);
        if (!same_double(sums[row], expected))
            ck_abort_msg(VEC_PATH ": vd8_sum_rows gives %a and not %a for row %zu", sums[row], expected, row);
        for (size_t l = 0; l < 8; l++)
            in_order += rows[row][l];
        for (size_t l = 0; l < 8; l += 4)
            pairs += (rows[row][l] + rows[row][l + 1]) + (rows[row][l + 2] + rows[row][l + 3]);
        telling += !same_double(in_order, expected) && !same_double(pairs, expected);
    }
    return telling;
}

START_TEST(floats_fold_by_halves)
{
    state = 7;
    for (size_t i = 0; i < 10000; i++) {
        float in[VN], s[VN];
        for (size_t l = 0; l < VN; l++)
            in[l] = s[l] = (float)random_near_one(l % 2 ? 20 : 3);
        for (size_t half = VN / 2; half; half /= 2)
            for (size_t l = 0; l < half; l++)
                s[l] += s[l + half];
        const float got = v_fold(v_ld_f32(in));
        if (got != s[0])
            ck_abort_msg(VEC_PATH ": v_fold gives %a and not %a", (double)got, (double)s[0]);
    }
}
END_TEST

START_TEST(rows_fold_side_by_side)
{
    state = 8;
    for (size_t i = 0; i < 10000; i++) {
        float in[VN][VN], got[VN];
        vf rows[VN];
        for (size_t k = 0; k < VN; k++) {
            for (size_t l = 0; l < VN; l++)
                in[k][l] = (float)random_near_one(l % 2 ? 20 : 3);
            rows[k] = v_ld_f32(in[k]);
        }
        v_st_f32(got, v_fold_rows(rows));
        for (size_t k = 0; k < VN; k++) {
            const float one = v_fold(rows[k]);
            if (got[k] != one)
                ck_abort_msg(VEC_PATH ": v_fold_rows gives %a and not %a for row %zu", (double)got[k], (double)one, k);
        }
    }
}
END_TEST

START_TEST(sums_fold_by_halves)
{
    static double rows[8][8];
    fence memory = {0};
    /* sums need the alignment of a double, and end where the memory ends */
    double *sums = (double *)(void *)fence_place(&memory, 64, AT_END, _i ? 8 : 0);
    size_t telling = 0, count = test_small() ? 1000 : 100000;
    snprintf(test_note, sizeof test_note, VEC_PATH ": vd8_sum_rows");
    state = 6;
    for (size_t i = 0; i < count; i++) {
        for (size_t row = 0; row < 8; row++) {
            for (size_t l = 0; l < 8; l++)
                rows[row][l] = random_near_one(row % 2 ? 60 : 3);
            /* cancellation: one lane takes away what another one holds */
            size_t from = test_draw(&state, 8), to = test_draw(&state, 8);
            rows[row][to] = -rows[row][from];
        }
        telling += check_sums(rows, sums);
    }
    ck_assert_msg(telling > count, "few rows show the order of additions: %zu", telling);

    for (size_t i = 0; i < 8; i++)
        for (size_t l = 0; l < 8; l++) {
            /* minus zero survives; NaN, Inf and Inf - Inf stay in their row, whichever it is */
            for (size_t row = 0; row < 8; row++)
                for (size_t k = 0; k < 8; k++)
                    rows[row][k] = row == (i + 1) % 8 ? -0.0 : 1.0;
            rows[i][l] = NAN;
            check_sums(rows, sums);
            rows[i][l] = INFINITY;
            check_sums(rows, sums);
            rows[i][(l + 3) % 8] = -INFINITY;
            check_sums(rows, sums);
            rows[i][(l + 3) % 8] = DBL_MAX;
            check_sums(rows, sums);
        }
    fence_free(&memory);
}
END_TEST

/* ---- bytes ---- */

START_TEST(bytes_and_back)
{
    for (int first = -254; first <= 254; first++) {
        float in[32], out[32];
        int8_t bytes[33];
        vf v[V_BYTES], again[V_BYTES];
        bytes[32] = 99;
        for (int i = 0; i < 32; i++)
            in[i] = (float)((first + 254 + i) % 509 - 254) / 2 * (i % 3 == 2 ? 0x1.fffffep-1f : 1);
        for (int i = 0; i < V_BYTES; i++)
            v[i] = v_ld_f32(in + i * VN);
        v_st_bytes(bytes, v);
        v_ld_bytes(again, bytes);
        for (int i = 0; i < V_BYTES; i++)
            v_st_f32(out + i * VN, again[i]);
        for (int i = 0; i < 32; i++)
            if (bytes[i] != (int8_t)rint((double)in[i]) || out[i] != (float)bytes[i])
                ck_abort_msg(VEC_PATH ": %a becomes %d, and %a", (double)in[i], bytes[i], (double)out[i]);
        ck_assert_int_eq(bytes[32], 99);
    }
}
END_TEST

START_TEST(largest_magnitude)
{
    static const float others[] = {0, 1, 0x1p-149f, FLT_MAX, (float)INFINITY, (float)NAN};
    for (size_t l = 0; l < VN; l++)
        for (size_t n = 0; n < COUNT(others); n++)
            for (int sign = 0; sign < 2; sign++) {
                float in[VN];
                for (size_t i = 0; i < VN; i++)
                    in[i] = i == l ? (sign ? -others[n] : others[n]) : i % 2 ? 0x1p-149f : -0.0f;
                const float wanted = others[n] > 0x1p-149f || isnan(others[n]) ? others[n] : 0x1p-149f;
                const float got = v_fold_max(v_max_abs(v_zero(), v_ld_f32(in)));
                if (got != wanted && !(isnan(got) && isnan(wanted)))
                    ck_abort_msg(VEC_PATH ": %a and not %a", (double)got, (double)wanted);
            }
}
END_TEST

START_TEST(largest_side_by_side)
{
    state = 9;
    for (int i = 0; i < 1000; i++) {
        vf rows[VN];
        float got[VN];
        for (size_t k = 0; k < VN; k++) {
            float in[VN];
            for (size_t l = 0; l < VN; l++)
                in[l] = fabsf((float)random_near_one(20));
            rows[k] = v_ld_f32(in);
        }
        v_st_f32(got, v_fold_max_rows(rows));
        for (size_t k = 0; k < VN; k++)
            ck_assert_float_eq(got[k], v_fold_max(rows[k]));
    }
}
END_TEST

Suite *vec_suite(void)
{
    Suite *suite = suite_create("vec.h of " VEC_PATH);
    TCase *memory = test_case(suite, "loads and stores");
    tcase_add_loop_test(memory, loads_read_their_elements, 0, COUNT(loads));
    tcase_add_loop_test(memory, stores_write_their_elements, 0, COUNT(stores));
    TCase *arithmetic = test_case(suite, "arithmetic");
    tcase_add_test(arithmetic, constants);
    tcase_add_test(arithmetic, doubles_in_memory);
    tcase_add_loop_test(arithmetic, float_arithmetic, 0, COUNT(float_functions));
    tcase_add_test(arithmetic, scaling_by_powers);
    tcase_add_loop_test(arithmetic, double_arithmetic, 0, COUNT(double_functions));
    TCase *rotations = test_case(suite, "rotations");
    tcase_add_loop_test(rotations, lanes_move, 0, COUNT(moves));
    tcase_add_test(rotations, quarter_turns);
    TCase *conversions = test_case(suite, "conversions");
    tcase_add_loop_test(conversions, every_half_to_float, 0, COUNT(halves));
    tcase_add_test(conversions, every_bf16_to_float_by_pairs);
    tcase_add_loop_test(conversions, every_boundary_to_half, 0, COUNT(halves));
    tcase_add_loop_test(conversions, nans_to_half, 0, COUNT(halves));
    tcase_add_loop_test(conversions, floats_to_half, 0, COUNT(halves));
    tcase_add_test(conversions, float_to_double);
    tcase_add_test(conversions, float_to_double_from_memory);
    tcase_add_test(conversions, double_to_float);
    TCase *reductions = test_case(suite, "reductions");
    tcase_add_test(reductions, floats_fold_by_halves);
    tcase_add_test(reductions, rows_fold_side_by_side);
    tcase_add_loop_test(reductions, sums_fold_by_halves, 0, 2);
    TCase *of_bytes = test_case(suite, "bytes");
    tcase_add_test(of_bytes, bytes_and_back);
    tcase_add_test(of_bytes, largest_magnitude);
    tcase_add_test(of_bytes, largest_side_by_side);
    return suite;
}
