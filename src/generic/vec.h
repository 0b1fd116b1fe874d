/* The portable path: 4 floats a vector, in the vectors of GNU C, which compilers make instructions of for whatever the target
 * has. What takes its place on a CPU that has no path of its own.
 *
 * Where the target has no fused multiply-add, one is made of double arithmetic: to the bit, and a call and not a copy, since it
 * is some forty instructions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_GENERIC_VEC_H
#define NRG_GENERIC_VEC_H

/* On 32-bit x86 gcc keeps vectors of 8 bytes in MMX registers. Those are x87's, which the rest of the program returns doubles in.
 */
#if defined(__i386__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("no-mmx")
#pragma GCC diagnostic ignored "-Wpsabi" /* how such a vector is returned changes, and no function that does is anyone else's */
#endif

#include "../compiler.h"

/* Registers of 16 bytes. Elsewhere compilers take vectors apart: a dozen instructions where there was one. */
#if defined(__SSE2__) || defined(__ARM_NEON) || defined(__ALTIVEC__) || defined(__wasm_simd128__) || defined(__loongarch_sx)
#define V_HAS_VECTORS 1
#else
#define V_HAS_VECTORS 0
#endif

/* Loops over vectors stay loops: what they hold is in memory, which is little beside such an fma and such vectors. */
#if !NRG_HAS_FMA || !V_HAS_VECTORS
#define NRG_UNROLL
#define V_SMALL 1
#endif

#define V_BYTES_WRAP 1

#include "../template/vec.h"

#if NRG_HAS_FMA
#define V_CALL NRG_INLINE
#else
#define V_CALL static __attribute__((noinline, unused))
#endif

#define NRG_PATH generic

enum {
    VN = 4,
    V_SUM1 = 4,
    V_SUM2 = 4,
    V_SUM4 = 2,
    V_APPLY = 4,
    V_FAST1 = V_SMALL ? 2 : 16,
    V_FAST2 = V_SMALL ? 2 : 8,
    V_FAST_HALF = V_SMALL ? 2 : 8,
    V_FAST_ANY = V_SMALL ? 2 : 4,
    V_ACT = V_SMALL ? 2 : 4,
    V_ACT_SIDE = V_ACT,
    V_SCALE_KEEPS_NAN = 0,
    V_ROPE = V_SMALL ? 4 : 8,
};

typedef float vf __attribute__((vector_size(16)));
typedef double vd __attribute__((vector_size(16)));
typedef double v_doubles __attribute__((vector_size(32)));
typedef int32_t vm __attribute__((vector_size(16)));
typedef uint32_t v_words __attribute__((vector_size(16)));
typedef uint64_t v_longs __attribute__((vector_size(16)));
typedef uint16_t v_halves __attribute__((vector_size(16)));
typedef uint16_t vh __attribute__((vector_size(8)));
typedef v_halves vp;

/* Lanes i, j, k, l of a, where these are 0 to 3, and of b from 4 on. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define V_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#endif
#endif
#ifndef V_SHUFFLE
#define V_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (vm){i, j, k, l})
#endif

/* Where one operand of an fma is known to be the same number in all lanes, gcc does them one by one: it is not to know. */
#if NRG_HAS_FMA && defined(__aarch64__)
#define V_OPAQUE(v) __asm__("" : "+w"(v))
#elif NRG_HAS_FMA && defined(__x86_64__)
#define V_OPAQUE(v) __asm__("" : "+x"(v))
#else
#define V_OPAQUE(v) ((void)0)
#endif

NRG_INLINE vf v_zero(void) { return (vf){0}; }
NRG_INLINE vf v_set1(float f)
{
    vf all = {f, f, f, f};
    V_OPAQUE(all);
    return all;
}
NRG_INLINE vf v_constant(float f) { return v_set1(f); }
NRG_INLINE vf v_hold(vf a) { return a; }
NRG_INLINE vf v_add(vf a, vf b) { return a + b; }
NRG_INLINE vf v_sub(vf a, vf b) { return a - b; }
NRG_INLINE vf v_mul(vf a, vf b) { return a * b; }
NRG_INLINE vf v_div(vf a, vf b) { return a / b; }

NRG_INLINE vm v_lt(vf a, vf b) { return a < b; }
NRG_INLINE vf v_select(vm m, vf a, vf b) { return (vf)((m & (vm)a) | (~m & (vm)b)); }
/* Lanes with a sign. */
NRG_INLINE vm v_negative(vf a) { return (vm)a < 0; }
NRG_INLINE vf v_mul_unless_positive(vf a, vf b) { return v_select(v_lt(v_zero(), a), a, v_mul(a, b)); }
NRG_INLINE vf v_mirror(vf a, vf x) { return v_select(v_negative(x), a, v_sub(v_set1(1), a)); }
NRG_INLINE vf v_part_of(vf t, vf d) { return v_div(t, d); }
NRG_INLINE vf v_abs(vf a) { return (vf)((vm)a & INT32_MAX); }
NRG_INLINE vf v_copysign(vf a, vf sign) { return (vf)(((vm)a & INT32_MAX) | ((vm)sign & INT32_MIN)); }
NRG_INLINE vf v_max(vf a, vf b) { return v_select(a > b, a, b); }
NRG_INLINE vf v_min(vf a, vf b) { return v_select(a < b, a, b); }
NRG_INLINE vf v_least_magnitude(vf c, vf x) { return v_min(c, v_abs(x)); }
/* The zero is hidden from clang, which turns a comparison with 0 into an fmax for AArch64 and WebAssembly: that is 0 for -0. */
NRG_INLINE vf v_relu(vf a)
{
    int zero = 0;
#ifdef __clang__
    NRG_IN_REGISTER(zero);
#endif
    return v_select(a < v_set1((float)zero), v_zero(), a);
}

/* n from the lower bits of z = 1.5·2^23 + n, into the exponent of s. */
NRG_INLINE vf v_scale2(vf s, vf z) { return (vf)((v_words)s + ((v_words)z << 23)); }

/* ---- doubles: half as many a vector ---- */

/* Floats and 16-bit elements are aligned as such: where loads of words have to be, memcpy takes bytes unless it is told. */
#define V_AT(p) __builtin_assume_aligned(p, sizeof *(p))

NRG_INLINE vd vd_zero(void) { return (vd){0}; }
NRG_INLINE vd vd_set1(double d)
{
    vd all = {d, d};
    V_OPAQUE(all);
    return all;
}
NRG_INLINE vd vd_ld(const double *p)
{
    vd a;
    memcpy(&a, p, sizeof a);
    return a;
}
NRG_INLINE void vd_st(double *p, vd a) { memcpy(p, &a, sizeof a); }
NRG_INLINE vd vd_add(vd a, vd b) { return a + b; }
NRG_INLINE vd vd_sub(vd a, vd b) { return a - b; }
NRG_INLINE vd vd_mul(vd a, vd b) { return a * b; }
NRG_INLINE vd vd_div(vd a, vd b) { return a / b; }
NRG_INLINE vd vd_sqrt(vd a) { return (vd){__builtin_sqrt(a[0]), __builtin_sqrt(a[1])}; }
NRG_INLINE vd vd_or(vd a, vd b) { return (vd)((v_longs)a | (v_longs)b); }
/* a, or 0 where it is not above 0. */
NRG_INLINE vd vd_above_0(vd a) { return (vd)((v_longs)a & (v_longs)(a > 0)); }

/* 0 where a <= b; elsewhere, and where one is a NaN, a NaN. */
NRG_INLINE vd vd_unless_le(vd a, vd b) { return (vd) ~(a <= b); }

/* Of such: whether one is not 0. */
NRG_INLINE int vd_any(vd a) { return (((v_longs)a)[0] | ((v_longs)a)[1]) != 0; }

/* The lower and the upper half of a vector of floats, and back, rounded. All of it is converted, since gcc takes halves apart. */
NRG_INLINE vd vd_low(vf a)
{
    const v_doubles all = __builtin_convertvector(a, v_doubles);
    return (vd){all[0], all[1]};
}
NRG_INLINE vd vd_high(vf a)
{
    const v_doubles all = __builtin_convertvector(a, v_doubles);
    return (vd){all[2], all[3]};
}
NRG_INLINE void vd_both(vf a, vd *low, vd *high)
{
    *low = vd_low(a);
    *high = vd_high(a);
}
NRG_INLINE vf v_from_vd(vd low, vd high) { return __builtin_convertvector(((v_doubles){low[0], low[1], high[0], high[1]}), vf); }

NRG_INLINE vd vd_ld_f32(const float *p) { return (vd){(double)p[0], (double)p[1]}; }

/* ---- fused multiply-add ---- */

#if NRG_HAS_FMA
NRG_INLINE vf v_fma(vf a, vf b, vf c)
{
    return (vf){__builtin_fmaf(a[0], b[0], c[0]), __builtin_fmaf(a[1], b[1], c[1]), __builtin_fmaf(a[2], b[2], c[2]),
                __builtin_fmaf(a[3], b[3], c[3])};
}
NRG_INLINE vd vd_fma(vd a, vd b, vd c) { return (vd){__builtin_fma(a[0], b[0], c[0]), __builtin_fma(a[1], b[1], c[1])}; }
#else
typedef struct v_two {
    vd sum, error;
} v_two;

/* a + b, and what its rounding has lost (Knuth). */
NRG_INLINE v_two v_two_sum(vd a, vd b)
{
    const vd sum = a + b, part = sum - a;
    return (v_two){sum, (a - (sum - part)) + (b - part)};
}

/* The sum rounded to odd: of the two doubles around it the one whose last bit is 1. What is rounded to fewer bits afterwards is
 * then as if it had been rounded once (Boldo and Melquiond). An infinity and a NaN have an error that is a NaN, and stay as they
 * are. */
NRG_INLINE vd v_to_odd(v_two a)
{
    const vd away = (vd)((v_longs)a.error ^ ((v_longs)a.sum & (v_longs)vd_set1(-0.0)));
    const v_longs less = (v_longs)(away < 0), more = (v_longs)(away > 0);
    return (vd)(((v_longs)a.sum + less) | (less | more) >> 63);
}

/* Whether a double of the sums is half-way between two floats, as far as its last bits say, or rounds to a subnormal float, of
 * which these do not tell. */
NRG_INLINE int v_any_halfway(vd low, vd high, vf rounded)
{
    const v_words last = (v_words)V_SHUFFLE((vf)low, (vf)high, 0, 2, 4, 6) << 3;
    const v_longs any = (v_longs)((vm)(last == 0x80000000u) | (vm)(v_abs(rounded) <= 0x1p-126f));
    return (any[0] | any[1]) != 0;
}

/* A product of floats is exact in double. What is rounded once more differs only where the sum is half-way between two floats and
 * is not exact: rare enough for a branch, which takes two thirds of the time of rounding to odd always (0.97 elements/ns and
 * 0.69, a sum of squares in L1, Granite Rapids). */
static __attribute__((noinline, unused)) vf v_fma(vf a, vf b, vf c)
{
    const vd p_low = vd_low(a) * vd_low(b), p_high = vd_high(a) * vd_high(b), c_low = vd_low(c), c_high = vd_high(c);
    const vd low = p_low + c_low, high = p_high + c_high;
    const vf rounded = v_from_vd(low, high);
    if (NRG_RARELY(v_any_halfway(low, high, rounded)))
        return v_from_vd(v_to_odd(v_two_sum(p_low, c_low)), v_to_odd(v_two_sum(p_high, c_high)));
    return rounded;
}

/* Both parts of 26 bits; the product of two such is exact (Veltkamp). */
NRG_INLINE v_two v_split(vd a)
{
    const vd scaled = a * vd_set1(0x1p27 + 1), high = scaled - (scaled - a);
    return (v_two){high, a - high};
}

NRG_INLINE vd vd_abs(vd a) { return (vd)((v_longs)a & (UINT64_MAX >> 1)); }
NRG_INLINE int v_all(v_longs m) { return (m[0] & m[1]) != 0; }

/* Exact products, of floats above all, are most of them. For what is left: Dekker's product, and Boldo and Melquiond's sum of
 * three; for numbers at the ends of the range, the library's. */
static __attribute__((noinline, unused)) vd vd_fma(vd a, vd b, vd c)
{
    const vd product = a * b, size = vd_abs(product);
    const v_longs middle = (v_longs)((size >= 0x1p-960) & (size <= 0x1p960));
    const v_longs is_float = (v_longs)((((v_longs)a | (v_longs)b) << 35) == 0);
    if (v_all(((v_longs)(a == 0) | (v_longs)(b == 0)) | (middle & is_float)))
        return product + c;
    const v_longs fits = (v_longs)((vd_abs(a) <= 0x1p990) & (vd_abs(b) <= 0x1p990) & (vd_abs(c) <= 0x1p1000));
    if (!v_all(middle & fits))
        return (vd){fma(a[0], b[0], c[0]), fma(a[1], b[1], c[1])};
    const v_two x = v_split(a), y = v_split(b);
    const vd rest = ((x.sum * y.sum - product) + x.sum * y.error + x.error * y.sum) + x.error * y.error;
    const v_two lower = v_two_sum(c, rest), upper = v_two_sum(product, lower.sum);
    const vd result = upper.sum + v_to_odd(v_two_sum(lower.error, upper.error));
    const v_longs zero = (v_longs)(result == 0); /* whose sign is that of the sum */
    return (vd)((zero & (v_longs)(product + c)) | (~zero & (v_longs)result));
}
#endif

NRG_INLINE vf v_fms(vf a, vf b, vf c) { return v_fma(a, b, -c); }
NRG_INLINE vf v_fnma(vf a, vf b, vf c) { return v_fma(-a, b, c); }

/* ---- f32 ---- */

NRG_INLINE vf v_ld_f32(const float *p)
{
    vf a;
    memcpy(&a, V_AT(p), sizeof a);
    return a;
}
NRG_INLINE void v_st_f32(float *p, vf a) { memcpy(V_AT(p), &a, sizeof a); }

/* GNU C has no stores past the cache. */
NRG_INLINE void v_nt_f32(float *p, vf a) { v_st_f32(p, a); }
NRG_INLINE void v_nt_16(void *p, const void *from) { memcpy(p, from, 16); }
NRG_INLINE void v_nt_4(void *p, const void *from) { memcpy(p, from, 4); }
NRG_INLINE void v_nt_fence(void) {}

/* ---- 16-bit elements, as they are in memory ---- */

NRG_INLINE vh v_ld_half(const uint16_t *p)
{
    vh h;
    memcpy(&h, V_AT(p), sizeof h);
    return h;
}
NRG_INLINE void v_st_half(uint16_t *p, vh h) { memcpy(V_AT(p), &h, sizeof h); }
#include "../template/vec_tails.h"
NRG_INLINE void v_nt_half(uint16_t *p, vh h) { v_st_half(p, h); }

/* In the upper halves of words. */
NRG_INLINE v_words v_raise(vh h)
{
#if defined(__SSE2__) && !defined(__clang__)
    /* one instruction, where gcc 12 takes five and a shift for the conversion */
    return (v_words)__builtin_shuffle((v_halves){0}, (v_halves)((v_longs){(uint64_t)h, 0}), (v_halves){0, 8, 1, 9, 2, 10, 3, 11});
#else
    return __builtin_convertvector(h, v_words) << 16;
#endif
}
NRG_INLINE vh v_narrow(v_words a) { return __builtin_convertvector(a, vh); }
NRG_INLINE v_words v_where(vm m, uint32_t bits) { return (v_words)m & bits; }

/* f16: a number's bits, with the exponent's bias of a float. Below 2^-14 that exponent is one too low, and a float has a leading
 * 1 that the half has not: 2^-14 mends both. A subnormal float times 2^112 would be shorter, and 0 where a thread flushes it. */
V_CALL vf v_from_f16(vh h)
{
    const v_words u = v_raise(h), size = u & 0x7fff0000;
    const vf biased = (vf)((size >> 3) + 0x38000000);
    const v_words least = v_where(biased < 0x1p-14f, 0x38800000);
    const vf number = (vf)((v_words)biased | least) - (vf)least;
    return (vf)((v_words)number | v_where((vm)size > 0x7bff0000, 0x7f800000) | (u ^ size));
}
/* Below 2^-14 a number is a multiple of 2^-24. Adding 0.5 puts that unit at the last place of an f32, and so rounds to it. */
V_CALL vh v_to_f16(vf a)
{
    const v_words u = (v_words)a, sign = u & 0x80000000u;
    const vf size = v_min((vf)(u ^ sign), v_set1(0x1p16f)); /* which rounds to infinity */
    const v_words normal = ((v_words)size - 0x38000000u + 0xfff + ((v_words)size >> 13 & 1)) >> 13;
    const v_words small = (v_words)(size + 0.5f) - 0x3f000000u;
    const v_words number = (v_words)v_select(size < 0x1p-14f, (vf)small, (vf)normal);
    return v_narrow(number | sign >> 16 | v_where(a != a, 0x7e00));
}

/* bf16 */
NRG_INLINE vf v_from_bf16(vh h) { return (vf)v_raise(h); }
/* Rounded to the upper half, of which a calm NaN stays one. */
NRG_INLINE v_words v_rounded_bf16(vf a)
{
    const v_words u = (v_words)a;
    return u + 0x7fff + (u >> 16 & 1);
}
NRG_INLINE vf v_calm(vf a) { return v_select(a == a, a, (vf)((v_words){0} + 0x7fc00000u)); }
V_CALL vh v_to_bf16(vf a) { return v_narrow(v_rounded_bf16(v_calm(a)) >> 16); }

/* bf16 by pairs: see src/avx2/vec.h. */
NRG_INLINE vp v_ld_pair(const uint16_t *p)
{
    vp h;
    memcpy(&h, V_AT(p), sizeof h);
    return h;
}
NRG_INLINE void v_st_pair(uint16_t *p, vp h) { memcpy(V_AT(p), &h, sizeof h); }
NRG_INLINE void v_nt_pair(uint16_t *p, vp h) { v_st_pair(p, h); }
NRG_INLINE vf v_even_from_bf16(vp h) { return (vf)((v_words)h << 16); }
NRG_INLINE vf v_odd_from_bf16(vp h) { return (vf)((v_words)h & 0xffff0000u); }
V_CALL vp v_calm_to_bf16(vf even, vf odd) { return (vp)(v_rounded_bf16(even) >> 16 | (v_rounded_bf16(odd) & 0xffff0000u)); }
NRG_INLINE vp v_pair_to_bf16(vf even, vf odd) { return v_calm_to_bf16(v_calm(even), v_calm(odd)); }

/* ---- reductions: eight lanes of double, folded by halves ---- */

typedef struct vd8 {
    vd v[4];
} vd8;

NRG_INLINE double vd8_sum(const vd8 *s)
{
    const vd two = (s->v[0] + s->v[2]) + (s->v[1] + s->v[3]);
    return two[0] + two[1];
}

NRG_INLINE void vd8_sum_rows(const vd8 s[8], double sums[8])
{
    for (int row = 0; row < 8; row++)
        sums[row] = vd8_sum(&s[row]);
}

/* The lanes of a vector of floats, folded by halves. */
NRG_INLINE float v_fold(vf a) { return (a[0] + a[2]) + (a[1] + a[3]); }

/* The same for four rows. */
NRG_INLINE vf v_fold_rows(const vf rows[VN]) { return (vf){v_fold(rows[0]), v_fold(rows[1]), v_fold(rows[2]), v_fold(rows[3])}; }

/* ---- pairs of lanes, and quarter turns ---- */

NRG_INLINE vf v_swap_pairs(vf a) { return V_SHUFFLE(a, a, 1, 0, 3, 2); }
NRG_INLINE vf v_twice_low(vf a) { return V_SHUFFLE(a, a, 0, 0, 1, 1); }
NRG_INLINE vf v_twice_high(vf a) { return V_SHUFFLE(a, a, 2, 2, 3, 3); }

NRG_INLINE void vd_quarter_turns(vd *cosine, vd *sine, vd z)
{
    const v_longs n = (v_longs)z, odd = -(n & 1), sign = (v_longs)vd_set1(-0.0);
    const v_longs c = (v_longs)*cosine, s = (v_longs)*sine, exchanged = (c ^ s) & odd;
    *cosine = (vd)(c ^ exchanged ^ ((n + 1) << 62 & sign));
    *sine = (vd)(s ^ exchanged ^ (n << 62 & sign));
}

NRG_INLINE vf v_even(vf a, vf b) { return V_SHUFFLE(a, b, 0, 2, 4, 6); }
NRG_INLINE vf v_odd(vf a, vf b) { return V_SHUFFLE(a, b, 1, 3, 5, 7); }
NRG_INLINE vf v_zip_low(vf even, vf odd) { return V_SHUFFLE(even, odd, 0, 4, 1, 5); }
NRG_INLINE vf v_zip_high(vf even, vf odd) { return V_SHUFFLE(even, odd, 2, 6, 3, 7); }

/* ---- to bytes and back: 32 elements, V_BYTES vectors ---- */

enum { V_BYTES = 32 / VN };

/* The larger of m and |a|, where m has no sign; a NaN is larger than any number. */
NRG_INLINE vf v_max_abs(vf m, vf a)
{
    const vm x = (vm)m, y = (vm)a & INT32_MAX, more = x > y;
    return (vf)((more & x) | (~more & y));
}
/* The largest lane of such. */
NRG_INLINE float v_fold_max(vf m)
{
    const vf two = v_max_abs(m, V_SHUFFLE(m, m, 2, 3, 0, 1));
    return v_max_abs(two, V_SHUFFLE(two, two, 1, 0, 3, 2))[0];
}
/* The largest lanes of VN such, side by side. */
NRG_INLINE vf v_fold_max_rows(const vf rows[VN])
{
    return (vf){v_fold_max(rows[0]), v_fold_max(rows[1]), v_fold_max(rows[2]), v_fold_max(rows[3])};
}
/* Rounded to nearest, ties to even, by the bits of 1.5·2^23 + a. */
typedef int8_t v_four_bytes __attribute__((vector_size(4)));
NRG_INLINE void v_st_bytes(int8_t *p, const vf v[V_BYTES])
{
    NRG_UNROLL
    for (int i = 0; i < V_BYTES; i++) {
        const v_four_bytes bytes = __builtin_convertvector((vm)(v[i] + 0x1.8p23f), v_four_bytes);
        memcpy(p + i * VN, &bytes, sizeof bytes);
    }
}
NRG_INLINE void v_ld_bytes(vf v[V_BYTES], const int8_t *p)
{
    NRG_UNROLL
    for (int i = 0; i < V_BYTES; i++) {
        v_four_bytes bytes;
        memcpy(&bytes, p + i * VN, sizeof bytes);
        v[i] = __builtin_convertvector(bytes, vf);
    }
}

#endif
