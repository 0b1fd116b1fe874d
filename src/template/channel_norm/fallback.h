/* Elements in double, where f32 is not accurate enough: a strip of columns at a time, or a plane. Rare, so the dtype is looked up
 * at run time.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_CHANNEL_FALLBACK_H
#define NRG_TEMPLATE_CHANNEL_FALLBACK_H

#include "apply.h"
#include "scalars.h"

enum {
    STRIP_COLUMNS = 16, /* a cache line of f32 */
    STRIP_PREFETCH = 16 /* rows that are prefetched: a strip is too narrow for the hardware to find the next row */
};

/* What the columns of a strip are normalized with, in addition to channel_column_factors. */
typedef struct strip_factors {
    double mean[STRIP_COLUMNS], mean_low[STRIP_COLUMNS], a[STRIP_COLUMNS], b[STRIP_COLUMNS];
    float plain[STRIP_COLUMNS]; /* 1, or 0 where an element is computed in double */
    size_t plain_columns;
} strip_factors;

/* Columns `first` to `first` + width of a block with `per` columns a channel. */
static __attribute__((noinline, cold)) void fill_strip(strip_factors *to, const channel_block *block, size_t first, size_t width,
                                                       size_t per, nrg_dtype D)
{
    memset(to, 0, sizeof *to);
    for (size_t k = 0; k < width; k++) {
        const channel_factors f = block_factors(block, (first + k) / per, D);
        to->mean[k] = f.mean;
        to->mean_low[k] = f.mean_low;
        to->a[k] = f.a;
        to->b[k] = f.b;
        to->plain[k] = f.plain ? 1 : 0;
        to->plain_columns += f.plain != 0;
    }
}

/* x becomes o1; the strip's factors from column k on. */
NRG_INLINE vf normalized_in_double(vf x, const strip_factors *f, size_t k)
{
    const size_t h = k + VN / 2;
    return v_from_vd(
        vd_fma(vd_sub(vd_sub(vd_low(x), vd_ld(f->mean + k)), vd_ld(f->mean_low + k)), vd_ld(f->a + k), vd_ld(f->b + k)),
        vd_fma(vd_sub(vd_sub(vd_high(x), vd_ld(f->mean + h)), vd_ld(f->mean_low + h)), vd_ld(f->a + h), vd_ld(f->b + h)));
}

/* A strip, of which some columns are plain or none is; or a row of a plane, all of whose columns are alike. */
static __attribute__((noinline, cold)) void apply_strip(const channel_run *at, const strip_factors *f, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), o_size = at->finish == CHANNEL_TO_STAGE ? sizeof(float) : size;
    const apply_policy columns = {.dtype = D, .fast = at->fast};
    if (f->plain_columns == (at->planes ? STRIP_COLUMNS : at->width)) {
        apply_run(at, D);
        return;
    }
    channel_run run = *at;
    run.stream = 0;
    for (size_t row = 0; row < run.rows; row++) {
        const char *x = run.x + row * run.x_stride, *y = run.y ? run.y + row * run.y_stride : NULL;
        char *o = run.o + row * run.o_stride;
        __builtin_prefetch((const void *)((uintptr_t)x + STRIP_PREFETCH * run.x_stride));
        __builtin_prefetch((const void *)((uintptr_t)o + STRIP_PREFETCH * run.o_stride), 1);
        for (size_t k = 0; k < run.width; k += VN) {
            const size_t n = lanes_at(k, run.width), column = k % STRIP_COLUMNS;
            vf v = load_part(x, k, n, D);
            const vf in_double = normalized_in_double(v, f, column);
            if (f->plain_columns) {
                const vf plain = v_ld_f32(f->plain + column);
                const channel_row none = {.x = x}; /* of columns */
                normalize_step(&v, 1, &run, &none, k, n, columns);
                v = v_select(v_lt(v_zero(), plain), v, in_double);
            } else
                v = in_double;
            finish_o1(&v, 1, &run, y ? y + k * size : NULL, o + k * o_size, n, D);
        }
    }
}

void apply_run_fallback(const channel_run *all, const channel_block *block, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), o_size = all->finish == CHANNEL_TO_STAGE ? sizeof(float) : size;
    strip_factors f;
    for (size_t row = 0; row < all->rows && all->planes; row++) {
        const channel_run plane = some_rows(all, row, 1);
        fill_strip(&f, block, row * STRIP_COLUMNS, STRIP_COLUMNS, STRIP_COLUMNS, D);
        apply_strip(&plane, &f, D);
    }
    channel_run run = *all;
    run.stream = 0;
    run.turns = 1;
    for (size_t k = 0; k < all->width && !all->planes; k += STRIP_COLUMNS) {
        run.width = lesser(all->width - k, STRIP_COLUMNS);
        fill_strip(&f, block, k, run.width, block->per, D);
        run.f = factors_from(&all->f, k);
        apply_strip(&run, &f, D);
        run.x += run.width * size;
        run.y = run.y ? run.y + run.width * size : NULL;
        run.o += run.width * o_size;
    }
}

#endif
