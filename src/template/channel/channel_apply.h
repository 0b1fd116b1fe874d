/* From x to o1, + y, and what an activation makes of that: elements that lie together and have the factors of one channel, and
 * rows of columns with factors of their own.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_CHANNEL_APPLY_H
#define NRG_TEMPLATE_CHANNEL_CHANNEL_APPLY_H

#include <math.h>

#include "../../exact/channel_sums.h"
#include "channel_sum.h"

enum { CHANNEL_STAGE = 512 }; /* floats: whole steps of the activations, and in L1 */

/* What becomes of o1 + y. */
typedef enum channel_finish {
    CHANNEL_STORE,      /* it is o */
    CHANNEL_STORE_RELU, /* o = max(0, it), which takes no time of its own: the one activation that is not staged */
    CHANNEL_TO_STAGE    /* it goes, in f32, to where an activation takes it from */
} channel_finish;

/* What a channel's elements are normalized with; docs/channel_norm.md, "Elements". */
typedef struct channel_factors {
    int plain;
    float hi, lo, shift, shift_lo;
    double mean, mean_low, a, b; /* where not plain */
} channel_factors;

/* Element c of w or b. */
static inline float channel_parameter(const char *p, size_t c, int is_f32, nrg_dtype D, float absent)
{
    if (!p)
        return absent;
    if (D == NRG_F32 || is_f32)
        return ((const float *)p)[c];
    float floats[VN];
    v_st_f32(floats, from_half(v_ldn_half((const uint16_t *)p + c, 1), D));
    return floats[0];
}

static inline int channel_between(double magnitude, double least, double most)
{
    return (magnitude == 0) | ((magnitude >= least) & (magnitude <= most));
}

/* Of the set alone: whether the plain way serves its channels, as far as they are concerned. */
static inline int channel_set_is_plain(const nrg_channel_statistics *stat)
{
    return (fabs(stat->mean + stat->mean_low) * stat->rstd <= 1024) & channel_between(stat->rstd, 0x1p-40, 0x1p40);
}

static inline channel_factors channel_factors_of(const nrg_channel_statistics *stat, float w, float b)
{
    const double mean = stat->mean + stat->mean_low, rstd = stat->rstd;
    const float high = (float)rstd, low = (float)(rstd - (double)high);
    channel_factors f;
    f.hi = w * high;
    f.lo = __builtin_fmaf(w, low, __builtin_fmaf(w, high, -f.hi));
    const double shift = __builtin_fma(-(mean * rstd), (double)w, (double)b);
    f.shift = (float)shift;
    f.shift_lo = (float)(shift - (double)f.shift);
    f.plain = channel_set_is_plain(stat) & channel_between(fabs((double)w), 0x1p-40, 0x1p40);
    f.mean = stat->mean;
    f.mean_low = stat->mean_low;
    f.a = rstd * (double)w;
    f.b = (double)b;
    return f;
}

/* The factors of some columns: arrays of the caller's, of `room` floats each, a multiple of VN. */
typedef struct channel_column_factors {
    float *hi, *lo, *shift, *shift_lo;
    int plain; /* all columns are */
} channel_column_factors;

/* store: 4 · room floats, aligned to 64 bytes: a vector across two lines takes twice as long to load. */
static inline channel_column_factors factors_in(float *store, size_t room)
{
    return (channel_column_factors){store, store + room, store + 2 * room, store + 3 * room, 1};
}

/* Those of the columns from k on. */
static inline channel_column_factors factors_from(const channel_column_factors *f, size_t k)
{
    return (channel_column_factors){f->hi + k, f->lo + k, f->shift + k, f->shift_lo + k, 1};
}

/* ---- elements that lie together ---- */

typedef struct channel_run {
    const char *x, *y; /* y: NULL where absent */
    char *o;           /* or a stage */
    size_t n, planes;  /* planes of n elements each, one after the other */
    int folded, stream;
    channel_finish finish;
    channel_column_factors f; /* of the planes */
} channel_run;

/* As act_relu has it: -0 stays, and NaN. */
NRG_INLINE vf channel_relu(vf a) { return v_max(v_zero(), a); }

NRG_INLINE void finish_step(vf *v, int G, const char *y, char *o, size_t i, size_t n, channel_finish finish, int stream,
                            nrg_dtype D)
{
    if (y) {
        vf more[V_APPLY];
        load_step(more, G, y, i, n, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_add(v[j], more[j]);
    }
    if (finish == CHANNEL_TO_STAGE) {
        store_f32_step(v, G, (float *)o + i, n, 0);
        return;
    }
    if (finish == CHANNEL_STORE_RELU) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = channel_relu(v[j]);
    }
    store_step(v, G, o, i, n, D, stream);
}

/* A channel's factors as vectors. */
typedef struct channel_vf {
    vf hi, lo, shift, shift_lo;
} channel_vf;

/* o1 of one vector. */
NRG_INLINE vf normalized(vf x, vf hi, vf lo, vf shift, vf shift_lo) { return v_add(v_fma(x, hi, shift), v_fma(x, lo, shift_lo)); }

NRG_INLINE void run_step(const channel_run *run, const channel_vf *f, int G, size_t i, size_t n, nrg_dtype D)
{
    vf v[V_APPLY];
    load_step(v, G, run->x, i, n, D);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = run->folded ? v_fma(v[j], f->hi, f->shift) : normalized(v[j], f->hi, f->lo, f->shift, f->shift_lo);
    finish_step(v, G, run->y, run->o, i, n, run->finish, run->stream, D);
}

/* Elements before the first that starts a line of o: streaming wants whole ones. */
NRG_INLINE size_t before_line(const char *o, size_t n, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), away = (64 - ((uintptr_t)o & 63)) % 64 / size;
    return away < n ? away : n;
}

NRG_INLINE void apply_run_of(const channel_run *at, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN, n = at->n, bytes = bytes_of(n, D, 0);
    channel_run run = *at;
    for (size_t plane = 0; plane < at->planes; plane++) {
        const channel_vf f = {v_set1(run.f.hi[plane]), v_set1(run.f.lo[plane]), v_set1(run.f.shift[plane]),
                              v_set1(run.f.shift_lo[plane])};
        size_t i = 0;
        if (run.stream)
            for (const size_t first = before_line(run.o, n, D); i < first;) {
                const size_t lanes = lanes_at(i, first);
                run_step(&run, &f, 1, i, lanes, D);
                i += lanes;
            }
        for (; i + step <= n; i += step)
            run_step(&run, &f, V_APPLY, i, step, D);
        for (; i < n; i += VN)
            run_step(&run, &f, 1, i, lanes_at(i, n), D);
        run.x += bytes;
        run.y = run.y ? run.y + bytes : NULL;
        run.o += run.finish == CHANNEL_TO_STAGE ? n * sizeof(float) : bytes;
    }
}

static __attribute__((noinline)) void apply_run_f32(const channel_run *run) { apply_run_of(run, NRG_F32); }
static __attribute__((noinline)) void apply_run_f16(const channel_run *run) { apply_run_of(run, NRG_F16); }
static __attribute__((noinline)) void apply_run_bf16(const channel_run *run) { apply_run_of(run, NRG_BF16); }

/* One vector in double. */
NRG_INLINE vf careful_vector(vf x, vd mean_l, vd mean_h, vd low_l, vd low_h, vd a_l, vd a_h, vd b_l, vd b_h)
{
    return v_from_vd(vd_fma(vd_sub(vd_sub(vd_low(x), mean_l), low_l), a_l, b_l),
                     vd_fma(vd_sub(vd_sub(vd_high(x), mean_h), low_h), a_h, b_h));
}

/* One plane in double. Rare: the dtype is looked up at run time. */
static __attribute__((noinline)) void apply_run_careful(const channel_run *run, const channel_factors *f, nrg_dtype D)
{
    const vd mean = vd_set1(f->mean), low = vd_set1(f->mean_low), a = vd_set1(f->a), b = vd_set1(f->b);
    for (size_t i = 0; i < run->n; i += VN) {
        const size_t n = lanes_at(i, run->n);
        vf v[V_APPLY];
        load_step(v, 1, run->x, i, n, D);
        v[0] = careful_vector(v[0], mean, mean, low, low, a, a, b, b);
        finish_step(v, 1, run->y, run->o, i, n, run->finish, 0, D);
    }
}

/* Planes that are all plain. */
static inline void apply_run(const channel_run *run, nrg_dtype D)
{
    if (D == NRG_F32)
        apply_run_f32(run);
    else if (D == NRG_F16)
        apply_run_f16(run);
    else
        apply_run_bf16(run);
}

/* ---- columns ---- */

/* The same where some are not plain: for fewer columns, since stacks are small. */
enum { CHANNEL_CAREFUL_COLUMNS = 16 };

typedef struct channel_careful_factors {
    float plain[CHANNEL_CAREFUL_COLUMNS]; /* 1, or 0 where an element is done in double */
    double mean[CHANNEL_CAREFUL_COLUMNS], mean_low[CHANNEL_CAREFUL_COLUMNS], a[CHANNEL_CAREFUL_COLUMNS],
        b[CHANNEL_CAREFUL_COLUMNS];
} channel_careful_factors;

typedef struct channel_column_run {
    const char *x, *y;
    char *o;
    size_t x_stride, y_stride, o_stride; /* bytes from row to row */
    size_t rows, width;
    int folded, stream;
    channel_finish finish;
} channel_column_run;

NRG_INLINE void column_step(const channel_column_run *run, const channel_column_factors *f, size_t row, size_t k, int G, size_t n,
                            nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0);
    vf v[V_APPLY];
    load_step(v, G, run->x + row * run->x_stride + k * size, 0, n, D);
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        const vf hi = v_ld_f32(f->hi + k + j * VN), shift = v_ld_f32(f->shift + k + j * VN);
        v[j] = run->folded ? v_fma(v[j], hi, shift)
                           : normalized(v[j], hi, v_ld_f32(f->lo + k + j * VN), shift, v_ld_f32(f->shift_lo + k + j * VN));
    }
    const size_t o_size = run->finish == CHANNEL_TO_STAGE ? sizeof(float) : size;
    finish_step(v, G, run->y ? run->y + row * run->y_stride + k * size : NULL, run->o + row * run->o_stride + k * o_size, 0, n,
                run->finish, run->stream, D);
}

NRG_INLINE void apply_columns_of(const channel_column_run *at, const channel_column_factors *f, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN;
    const channel_column_run run = *at;
    for (size_t row = 0; row < run.rows; row++) {
        size_t k = 0;
        for (; k + step <= run.width; k += step)
            column_step(&run, f, row, k, V_APPLY, step, D);
        if (k + 2 * VN <= run.width) {
            column_step(&run, f, row, k, 2, 2 * VN, D);
            k += 2 * VN;
        }
        for (; k < run.width; k += VN)
            column_step(&run, f, row, k, 1, lanes_at(k, run.width), D);
    }
}

static __attribute__((noinline)) void apply_columns_f32(const channel_column_run *run, const channel_column_factors *f)
{
    apply_columns_of(run, f, NRG_F32);
}

static __attribute__((noinline)) void apply_columns_f16(const channel_column_run *run, const channel_column_factors *f)
{
    apply_columns_of(run, f, NRG_F16);
}

static __attribute__((noinline)) void apply_columns_bf16(const channel_column_run *run, const channel_column_factors *f)
{
    apply_columns_of(run, f, NRG_BF16);
}

static inline void apply_columns(const channel_column_run *run, const channel_column_factors *f, nrg_dtype D)
{
    if (D == NRG_F32)
        apply_columns_f32(run, f);
    else if (D == NRG_F16)
        apply_columns_f16(run, f);
    else
        apply_columns_bf16(run, f);
}

/* run: of at most CHANNEL_CAREFUL_COLUMNS columns, whose factors begin at column `first` of f. */
static __attribute__((noinline)) void apply_columns_careful(const channel_column_run *run, const channel_column_factors *f,
                                                            size_t first, const channel_careful_factors *c, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0);
    for (size_t row = 0; row < run->rows; row++)
        for (size_t k = 0; k < run->width; k += VN) {
            const size_t n = lanes_at(k, run->width), h = k + VN / 2;
            vf v[V_APPLY];
            load_step(v, 1, run->x + row * run->x_stride + k * size, 0, n, D);
            const size_t at = first + k;
            const vf plain =
                normalized(v[0], v_ld_f32(f->hi + at), v_ld_f32(f->lo + at), v_ld_f32(f->shift + at), v_ld_f32(f->shift_lo + at));
            const vf careful =
                careful_vector(v[0], vd_ld(c->mean + k), vd_ld(c->mean + h), vd_ld(c->mean_low + k), vd_ld(c->mean_low + h),
                               vd_ld(c->a + k), vd_ld(c->a + h), vd_ld(c->b + k), vd_ld(c->b + h));
            v[0] = v_select(v_lt(v_zero(), v_ld_f32(c->plain + k)), plain, careful);
            const size_t o_size = run->finish == CHANNEL_TO_STAGE ? sizeof(float) : size;
            finish_step(v, 1, run->y ? run->y + row * run->y_stride + k * size : NULL, run->o + row * run->o_stride + k * o_size,
                        0, n, run->finish, 0, D);
        }
}

#endif
