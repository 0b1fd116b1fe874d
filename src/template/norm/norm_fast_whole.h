/* Rows of 64 and 128 floats with a weight, in cache, in the fast grade: heads, and what is narrow. The loops of norm_fast_short.h
 * do the same, and take 1.17 to 1.56 times as long over rows of 64, 1.0 to 1.2 over rows of 128 (Granite Rapids): they ask of
 * each row how long it is, and of each step what else there is to do.
 *
 * Of a row that takes 20 cycles (rms, 64, AVX-512) 6 are its lanes, 5 what makes doubles of them and adds them, 2 the scalars, 9
 * the elements. Tried in vain: a root by estimate and Newton steps, with a look at how near a tie it is, which keeps the bits
 * (0.94 to 1.0); sums, totals, scalars and elements of four different lots in one turn (0.94 to 1.03). Scalars in float take 0.73
 * of the time at 64×64 in a bare loop, other bits, and nothing less at 4096×64.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FAST_WHOLE_H
#define NRG_TEMPLATE_NORM_NORM_FAST_WHOLE_H

#include "norm_rows.h"

/* Some rows' scalars. */
typedef struct whole_scalars {
    _Alignas(64) float factor[FAST_ROWS]; /* a vector in two lines takes twice as long */
    float centre[FAST_ROWS], shift[FAST_ROWS];
    int any; /* 0: none of them needs the fallback */
} whole_scalars;

/* Lanes that fast_fold leaves, of some rows. */
typedef struct whole_lanes {
    _Alignas(64) float row[8][FAST_LEAST];
} whole_lanes;

/* Rows of 128, with vectors of 16 floats. With AVX2 the loops of norm_fast_short.h are as fast: 64x128 takes 0.88 (rms) to 1.08
 * (layer) of the time there, 4096x128 the same (Emerald Rapids, gcc 12), and 8 KB less. */
enum { WHOLE_TWO = 2 * FAST_LANES, WHOLE_HAS_TWO = VN == 16 };

/* Where s² and k are between these, no condition of fast_sums_serve but that on the mean can fail: one comparison for five. */
#define WHOLE_LEAST 0x1p-60
#define WHOLE_MOST 0x1p60

NRG_INLINE int whole_serves(const nrg_norm_job *job, const norm_options *opt, nrg_dtype D)
{
    const double k = job->formula.k;
    return !V_SMALL && D == NRG_F32 && (opt->dim == FAST_LANES || (WHOLE_HAS_TWO && opt->dim == WHOLE_TWO)) && job->w &&
           !job->stream && !job->mean && !job->rstd && !(opt->how & NORM_W_OFFSET) &&
           (!(opt->how & NORM_FIRST) || (opt->how & NORM_ADD_Y && opt->how & NORM_READ_R)) &&
           job->formula.divisor == NRG_DIV_ROOT && job->row_end - job->row_begin >= FAST_ROWS && k >= 0x1p-8 && k <= 0x1p8;
}

/* Where the last FAST_ROWS rows end. */
NRG_INLINE size_t whole_lots_end(const nrg_norm_job *job) { return job->row_end - (job->row_end - job->row_begin) % FAST_ROWS; }

NRG_INLINE void whole_load(vf *v, const char *x, size_t i) { load_step(v, FAST_VECTORS, x, i, FAST_LANES, NRG_F32); }

/* r = x + y of FAST_ROWS rows. */
NRG_INLINE void whole_residual(const nrg_norm_job *job, size_t n, size_t dim)
{
    const char *x = job->x + n * job->x_stride, *y = job->y + n * job->y_stride;
    char *r = job->r + n * job->r_stride;
    for (int k = 0; k < (int)FAST_ROWS; k++) {
        for (size_t i = 0; i < dim; i += FAST_LANES) {
            vf v[FAST_VECTORS], other[FAST_VECTORS];
            whole_load(v, x, i);
            whole_load(other, y, i);
            NRG_UNROLL
            for (int j = 0; j < (int)FAST_VECTORS; j++)
                v[j] = v_add(v[j], other[j]);
            store_f32_step(v, FAST_VECTORS, (float *)r + i, FAST_LANES, 0);
        }
        x += job->x_stride;
        y += job->y_stride;
        r += job->r_stride;
    }
}

NRG_INLINE void whole_store(float *lanes, vf *v)
{
    fast_fold(v, 0);
    NRG_UNROLL
    for (int j = 0; j < (int)FAST_FOLDED; j++)
        v_st_f32(lanes + j * VN, v[j]);
}

/* By way of memory: VCVTPS2PD takes the shuffle port for what is in a register, and the upper half another shuffle. */
NRG_INLINE void whole_total(double *total, const whole_lanes *lanes)
{
    vd8 eight[8];
    NRG_UNROLL
    for (int i = 0; i < 8; i++) {
        NRG_UNROLL
        for (int j = 0; j < (int)FAST_FOLDED; j++)
            eight[i].v[j] = vd_add(vd_ld_f32(lanes->row[i] + j * VN / 2), vd_ld_f32(lanes->row[i] + 8 + j * VN / 2));
    }
    vd8_sum_rows(eight, total);
}

/* Of rows i to i + VN; see norm_fast_scalars.h. Returns what is 0 where none needs the fallback. */
NRG_INLINE vd whole_scalars_of(whole_scalars *s, const nrg_norm_job *job, const float *pilot, const double *t, const double *tt,
                               int i, int centred)
{
    const vd inv_dim = vd_set1(job->formula.inv_dim), eps = vd_set1(job->formula.eps), k = vd_set1(job->formula.k),
             one = vd_set1(1);
    const vf start = centred ? v_ld_f32(pilot + i) : v_zero();
    vd factor[2], from[2], offset[2], mean[2], wrong = vd_zero();
    NRG_UNROLL
    for (int half = 0; half < 2; half++) {
        const int at = i + half * (int)(VN / 2);
        vd variance = vd_mul(vd_ld(tt + at), inv_dim);
        if (centred) {
            from[half] = half ? vd_high(start) : vd_low(start);
            offset[half] = vd_mul(vd_ld(t + at), inv_dim);
            mean[half] = vd_add(from[half], offset[half]);
            const vd lost = vd_mul(offset[half], offset[half]);
            variance = vd_sub(variance, lost);
            wrong = vd_or(wrong, vd_unless_le(vd_mul(vd_set1(4), lost), variance));
        }
        const vd sum = vd_add(variance, eps);
        wrong = vd_or(wrong, vd_or(vd_unless_le(sum, vd_set1(WHOLE_MOST)), vd_unless_le(vd_set1(WHOLE_LEAST), sum)));
        factor[half] = vd_mul(k, vd_mul(vd_sqrt(sum), vd_div(one, sum)));
    }
    v_st_f32(s->factor + i, v_from_vd(factor[0], factor[1]));
    if (!centred)
        return wrong;
    const vf centre = v_from_vd(mean[0], mean[1]);
    v_st_f32(s->centre + i, centre);
    v_st_f32(s->shift + i, v_from_vd(vd_mul(vd_sub(vd_sub(vd_low(centre), from[0]), offset[0]), factor[0]),
                                     vd_mul(vd_sub(vd_sub(vd_high(centre), from[1]), offset[1]), factor[1])));
    return wrong;
}

/* Sums of FAST_ROWS rows, and their scalars. */
NRG_INLINE void whole_sums(whole_scalars *s, const nrg_norm_job *job, const char *x, size_t stride, size_t dim, int centred,
                           int far)
{
    _Alignas(64) float pilot[FAST_ROWS];
    _Alignas(64) double total_t[FAST_ROWS], total_tt[FAST_ROWS];
    if (centred)
        fast_short_pilots(pilot, x, stride, dim, FAST_ROWS, NRG_F32);
    for (int k = 0; k < (int)FAST_ROWS; k += 8) {
        whole_lanes t, tt;
        for (int i = 0; i < 8; i++) {
            vf v[FAST_VECTORS], squares[FAST_VECTORS];
            const vf start = centred ? v_set1(pilot[k + i]) : v_zero();
            if (far)
                prefetch_short(centred ? x + FAST_ROWS / 2 * stride : x, stride, dim * sizeof(float));
            whole_load(v, x, 0);
            NRG_UNROLL
            for (int j = 0; j < (int)FAST_VECTORS; j++) {
                if (centred)
                    v[j] = v_sub(v[j], start);
                squares[j] = v_mul(v[j], v[j]);
            }
            if (dim == WHOLE_TWO) {
                vf more[FAST_VECTORS];
                whole_load(more, x, FAST_LANES);
                NRG_UNROLL
                for (int j = 0; j < (int)FAST_VECTORS; j++) {
                    if (centred) {
                        more[j] = v_sub(more[j], start);
                        v[j] = v_add(v[j], more[j]);
                    }
                    squares[j] = v_fma(more[j], more[j], squares[j]);
                }
            }
            if (centred)
                whole_store(t.row[i], v);
            whole_store(tt.row[i], squares);
            x += stride;
        }
        __asm__("" : "+m"(tt));
        whole_total(total_tt + k, &tt);
        if (centred) {
            __asm__("" : "+m"(t));
            whole_total(total_t + k, &t);
        }
    }
    vd wrong = vd_zero();
    for (int i = 0; i < (int)FAST_ROWS; i += VN)
        wrong = vd_or(wrong, whole_scalars_of(s, job, pilot, total_t, total_tt, i, centred));
    s->any = vd_any(wrong);
}

NRG_INLINE void whole_elements(const nrg_norm_job *job, const whole_scalars *s, const char *x, size_t x_stride, size_t n,
                               size_t dim, int centred, int biased, int far)
{
    norm_row row = {.x = x, .w = job->w, .b = biased ? job->b : NULL, .o = job->o + n * job->o_stride};
    if (!row.w || !row.b != !biased)
        __builtin_unreachable();
    for (int k = 0; k < (int)FAST_ROWS; k++) {
        if (far)
            prefetch_short(row.o, job->o_stride, dim * sizeof(float));
        const fast_factors f = {v_set1(s->factor[k]), v_set1(s->centre[k]), v_set1(s->shift[k])};
        for (size_t i = 0; i < dim; i += FAST_LANES)
            fast_apply_step(FAST_VECTORS, centred ? NORM_CENTRED : 0, NULL, row, &f, i, FAST_LANES, NRG_F32);
        row.x += x_stride;
        row.o += job->o_stride;
    }
}

/* The loops that know more, for some rows: those one of which may need the fallback, and what is too few. r is there. */
static __attribute__((noinline)) void whole_any(const nrg_norm_job *job, const norm_options *opt, size_t n)
{
    fast_some some;
    const fast_short_weights weights = {job->w, job->b};
    if (opt->how & NORM_FIRST) {
        some.x = job->r + n * job->r_stride;
        some.x_stride = job->r_stride;
        short_sums_of(&some, job, n, FAST_ROWS, NRG_F32);
    } else
        short_sums(&some, job, n, FAST_ROWS, NRG_F32);
    fast_short_elements(&some, job, opt, &weights, NRG_F32);
}

static __attribute__((noinline)) void whole_rest(const nrg_norm_job *job, const norm_options *opt, size_t n)
{
    nrg_norm_job rest = *job;
    rest.row_begin = n;
    if (opt->how & NORM_FIRST)
        short_residual_rows(&rest, opt);
    else
        short_fast_rows(&rest, opt, NRG_F32);
}

NRG_INLINE void whole_rows_of(const nrg_norm_job *job, const norm_options *opt, size_t dim, int centred)
{
    const int residual = (opt->how & NORM_FIRST) != 0;
    const size_t end = whole_lots_end(job), stride = residual ? job->r_stride : job->x_stride;
    const char *const x = residual ? job->r : job->x;
    /* from beyond L1, rows and outputs that lie ahead are asked for: 4096 rows of 64, rms 1.12 × (AVX-512) and 1.27 (AVX2), layer
     * 1.26 and 1.15 */
    const int far = (job->row_end - job->row_begin) * dim > (32 << 10);
    whole_scalars both[2];
    size_t n = job->row_begin;
    for (int turn = 0;; turn ^= 1) {
        if (n != end) {
            if (residual)
                whole_residual(job, n, dim);
            whole_sums(&both[turn], job, x + n * stride, stride, dim, centred, far);
        }
        if (n != job->row_begin) {
            const size_t before = n - FAST_ROWS;
            const whole_scalars *const s = &both[turn ^ 1];
            if (NRG_RARELY(s->any))
                whole_any(job, opt, before);
            else if (job->b)
                whole_elements(job, s, x + before * stride, stride, before, dim, centred, 1, far);
            else
                whole_elements(job, s, x + before * stride, stride, before, dim, centred, 0, far);
        }
        if (n == end)
            break;
        n += FAST_ROWS;
    }
}

static __attribute__((noinline)) void whole_rms(const nrg_norm_job *job, const norm_options *opt)
{
    whole_rows_of(job, opt, FAST_LANES, 0);
}

static __attribute__((noinline)) void whole_centred(const nrg_norm_job *job, const norm_options *opt)
{
    whole_rows_of(job, opt, FAST_LANES, 1);
}

static __attribute__((noinline)) void whole_rms_two(const nrg_norm_job *job, const norm_options *opt)
{
    whole_rows_of(job, opt, WHOLE_TWO, 0);
}

static __attribute__((noinline)) void whole_centred_two(const nrg_norm_job *job, const norm_options *opt)
{
    whole_rows_of(job, opt, WHOLE_TWO, 1);
}

static void whole_rows(const nrg_norm_job *job, const norm_options *opt)
{
    const int centred = opt->how & NORM_CENTRED;
    const int two = WHOLE_HAS_TWO && opt->dim == WHOLE_TWO;
    if (two && centred)
        whole_centred_two(job, opt);
    else if (two)
        whole_rms_two(job, opt);
    else if (centred)
        whole_centred(job, opt);
    else
        whole_rms(job, opt);
    /* not from within those: their stack is theirs alone */
    if (whole_lots_end(job) != job->row_end)
        whole_rest(job, opt, whole_lots_end(job));
}

#endif
