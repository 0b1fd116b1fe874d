/* The loops for one type of elements: ELEMENT, with LOAD and STORE; NAME(name) is the name of a function. Included once for each.
 *
 * The options of an instance are constants, which the compiler folds: what is left of a body is the loop one would write for it.
 *
 * SPDX-License-Identifier: MIT */
#include "naive_lists.h"

/* ---- row norms ---- */

INLINE void NAME(forward_row)(naive_norm how, size_t n, float eps, const ELEMENT *restrict x, const ELEMENT *restrict y,
                              const ELEMENT *restrict z, const ELEMENT *restrict w, const ELEMENT *restrict b,
                              ELEMENT *restrict o, ELEMENT *restrict r, nrg_row_statistics *restrict statistics)
{
    /* what is normalized: r and the product with a gate are where they are written */
    const ELEMENT *p = how.gate == NRG_GATE_PRE ? o : how.add ? r : x;
    float sum = 0, squares = 0, mean = 0;
    for (size_t i = 0; i < n && how.half != 2; i++) {
        float v = LOAD(x, i);
        if (how.add) {
            STORE(r, i, v + LOAD(y, i));
            v = LOAD(r, i);
        }
        if (how.gate == NRG_GATE_PRE) {
            v *= activate(how.activation, LOAD(z, i));
            STORE(o, i, v);
        }
        sum += v;
        squares += v * v;
    }
    if (how.half == 2) {
        mean = (float)(statistics->mean + statistics->mean_low);
    } else if (how.centred) {
        mean = sum / (float)n;
        squares = 0;
        for (size_t i = 0; i < n; i++)
            squares += (LOAD(p, i) - mean) * (LOAD(p, i) - mean);
    }
    const float scale = how.half == 2 ? (float)statistics->rstd : 1 / sqrtf(squares / (float)n + eps);
    if (how.half == 1) {
        *statistics = nrg_row_statistics_init(mean, scale);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        float v = (LOAD(p, i) - mean) * scale * LOAD(w, i);
        if (how.bias)
            v += LOAD(b, i);
        if (how.gate == NRG_GATE_POST)
            v *= activate(how.activation, LOAD(z, i));
        if (how.gate == NRG_GATE_NONE)
            v = activate(how.activation, v);
        STORE(o, i, v);
    }
}

INLINE void NAME(forward)(const rival_job *job, naive_norm how)
{
    const rival_job j = *job;
    const size_t groups = how.groups ? j.groups : 1, n = j.dim / groups, planes = how.planes ? j.rows2 : 1;
    for (size_t plane = 0; plane < planes; plane++)
        for (size_t row = 0; row < j.rows; row++) {
            const size_t at = (plane * j.rows + row) * j.dim;
            const size_t x_at = how.planes ? row * j.x_stride + plane * j.x_stride2 : at;
            for (size_t c = 0; c < j.dim; c += n)
                NAME(forward_row)
            (how, n, j.eps, (const ELEMENT *)j.x + x_at + c, how.add ? (const ELEMENT *)j.y + at + c : NULL,
             how.gate != NRG_GATE_NONE ? (const ELEMENT *)j.z + at + c : NULL, (const ELEMENT *)j.w + c,
             how.bias ? (const ELEMENT *)j.b + c : NULL, (ELEMENT *)j.o + at + c, how.add ? (ELEMENT *)j.r + at + c : NULL,
             how.half ? (nrg_row_statistics *)j.r + row : NULL);
        }
}

/* A norm and + y, to r; the factor of the norm that follows. */
INLINE float NAME(sandwich_row)(size_t n, float eps, const ELEMENT *restrict x, const ELEMENT *restrict y,
                                const ELEMENT *restrict w, ELEMENT *restrict r)
{
    float squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += LOAD(x, i) * LOAD(x, i);
    const float one = 1 / sqrtf(squares / (float)n + eps);
    squares = 0;
    for (size_t i = 0; i < n; i++) {
        STORE(r, i, LOAD(y, i) + LOAD(x, i) * one * LOAD(w, i));
        squares += LOAD(r, i) * LOAD(r, i);
    }
    return 1 / sqrtf(squares / (float)n + eps);
}

/* A norm, + y, and a norm of the sum; w and w2. */
static void NAME(sandwich)(const rival_job *job)
{
    const rival_job j = *job;
    const size_t n = j.dim;
    for (size_t row = 0; row < j.rows; row++) {
        const ELEMENT *restrict w2 = j.w2;
        ELEMENT *restrict r = (ELEMENT *)j.r + row * n, *restrict o = (ELEMENT *)j.o + row * n;
        const float two = NAME(sandwich_row)(n, j.eps, (const ELEMENT *)j.x + row * n, (const ELEMENT *)j.y + row * n, j.w, r);
        for (size_t i = 0; i < n; i++)
            STORE(o, i, LOAD(r, i) * two * LOAD(w2, i));
    }
}

INLINE void NAME(backward_row)(naive_norm how, size_t n, float eps, float mean, const ELEMENT *restrict x,
                               const ELEMENT *restrict z, const ELEMENT *restrict d_o, const ELEMENT *restrict dr_in,
                               const ELEMENT *restrict w, ELEMENT *restrict dx, ELEMENT *restrict dz, float *restrict dw,
                               float *restrict db)
{
    float squares = 0, sum = 0, dot = 0;
    if (how.centred && !how.saved) {
        for (size_t i = 0; i < n; i++)
            mean += LOAD(x, i);
        mean /= (float)n;
    }
    for (size_t i = 0; i < n; i++)
        squares += (LOAD(x, i) - mean) * (LOAD(x, i) - mean);
    const float scale = 1 / sqrtf(squares / (float)n + eps);
    /* the gradient of what a gate is multiplied with waits where dx will be */
    const ELEMENT *d1 = how.gate == NRG_GATE_POST ? dx : d_o;
    for (size_t i = 0; i < n; i++) {
        const float q = (LOAD(x, i) - mean) * scale;
        float d = LOAD(d_o, i);
        if (how.gate == NRG_GATE_POST) {
            STORE(dz, i, d * q * LOAD(w, i) * slope(how.activation, LOAD(z, i)));
            d *= activate(how.activation, LOAD(z, i));
            STORE(dx, i, d);
        }
        sum += d * LOAD(w, i);
        dot += d * LOAD(w, i) * q;
    }
    sum = how.centred ? sum / (float)n : 0;
    dot /= (float)n;
    for (size_t i = 0; i < n; i++) {
        const float q = (LOAD(x, i) - mean) * scale, d = LOAD(d1, i);
        float dr = scale * (d * LOAD(w, i) - sum - q * dot);
        if (how.add)
            dr += LOAD(dr_in, i);
        if (how.weight)
            dw[i] += d * q;
        if (how.bias)
            db[i] += d;
        STORE(dx, i, dr);
    }
}

INLINE void NAME(backward)(const rival_job *job, naive_norm how)
{
    const rival_job j = *job;
    const size_t n = j.dim;
    for (size_t i = 0; how.weight && i < n; i++)
        j.dw[i] = 0;
    for (size_t i = 0; how.bias && i < n; i++)
        j.db[i] = 0;
    for (size_t row = 0; row < j.rows; row++) {
        const size_t at = row * n;
        NAME(backward_row)
        (how, n, j.eps, how.saved ? j.mean[row] : 0, (const ELEMENT *)j.x + at,
         how.gate != NRG_GATE_NONE ? (const ELEMENT *)j.z + at : NULL, (const ELEMENT *)j.d_o + at,
         how.add ? (const ELEMENT *)j.dr_in + at : NULL, j.w, (ELEMENT *)j.dx + at,
         how.gate != NRG_GATE_NONE ? (ELEMENT *)j.dz + at : NULL, j.dw, j.db);
    }
}

/* ---- activations ---- */

INLINE void NAME(activation)(const rival_job *job, nrg_activation g)
{
    const size_t n = job->dim;
    const ELEMENT *restrict x = job->x;
    ELEMENT *restrict o = job->o;
    for (size_t i = 0; i < n; i++)
        STORE(o, i, activate(g, LOAD(x, i)));
}

INLINE void NAME(activation_backward)(const rival_job *job, nrg_activation g)
{
    const size_t n = job->dim;
    const ELEMENT *restrict x = job->x, *restrict d_o = job->d_o;
    ELEMENT *restrict dx = job->dx;
    for (size_t i = 0; i < n; i++)
        STORE(dx, i, LOAD(d_o, i) * slope(g, LOAD(x, i)));
}

/* ---- gated linear units ---- */

INLINE void NAME(glu)(const rival_job *job, naive_glu how)
{
    const size_t n = job->rows * job->dim;
    const ELEMENT *restrict a = job->x, *restrict b = job->b;
    ELEMENT *restrict o = job->o;
    for (size_t i = 0; i < n; i++) {
        float u = how.pairs ? LOAD(a, 2 * i) : LOAD(a, i), v = how.pairs ? LOAD(a, 2 * i + 1) : LOAD(b, i);
        if (how.limited) {
            u = u < 7 ? u : 7;
            v = (v < -7 ? -7 : v > 7 ? 7 : v) + 1;
        }
        STORE(o, i, activate(how.activation, u) * v);
    }
}

INLINE void NAME(glu_backward)(const rival_job *job, nrg_activation g)
{
    const size_t n = job->rows * job->dim;
    const ELEMENT *restrict a = job->x, *restrict b = job->b, *restrict d_o = job->d_o;
    ELEMENT *restrict da = job->dx, *restrict db = job->dz;
    for (size_t i = 0; i < n; i++) {
        STORE(da, i, LOAD(d_o, i) * LOAD(b, i) * slope(g, LOAD(a, i)));
        STORE(db, i, LOAD(d_o, i) * activate(g, LOAD(a, i)));
    }
}

/* ---- softmax, of scores times 1/8 as the benchmark has them ---- */

INLINE void NAME(softmax_rows)(const rival_job *job, int is_log)
{
    const size_t n = job->dim;
    for (size_t row = 0; row < job->rows; row++) {
        const ELEMENT *restrict x = (const ELEMENT *)job->x + row * n;
        ELEMENT *restrict o = (ELEMENT *)job->o + row * n;
        float most = LOAD(x, 0) * 0.125f, sum = 0;
        for (size_t i = 0; i < n; i++) {
            const float t = LOAD(x, i) * 0.125f;
            most = t > most ? t : most;
        }
        if (is_log) {
            for (size_t i = 0; i < n; i++)
                sum += expf(LOAD(x, i) * 0.125f - most);
            most += logf(sum);
            for (size_t i = 0; i < n; i++)
                STORE(o, i, LOAD(x, i) * 0.125f - most);
            continue;
        }
        if (sizeof *o == sizeof(float)) {
            for (size_t i = 0; i < n; i++) {
                const float e = expf(LOAD(x, i) * 0.125f - most);
                STORE(o, i, e);
                sum += e;
            }
            for (size_t i = 0; i < n; i++)
                STORE(o, i, LOAD(o, i) * (1 / sum));
            continue;
        }
        for (size_t i = 0; i < n; i++)
            sum += expf(LOAD(x, i) * 0.125f - most);
        for (size_t i = 0; i < n; i++)
            STORE(o, i, expf(LOAD(x, i) * 0.125f - most) * (1 / sum));
    }
}

INLINE void NAME(softmax_rows_backward)(const rival_job *job, int is_log)
{
    const size_t n = job->dim;
    for (size_t row = 0; row < job->rows; row++) {
        const ELEMENT *restrict o = (const ELEMENT *)job->x + row * n, *restrict d_o = (const ELEMENT *)job->d_o + row * n;
        ELEMENT *restrict dx = (ELEMENT *)job->dx + row * n;
        float sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += is_log ? LOAD(d_o, i) : LOAD(o, i) * LOAD(d_o, i);
        for (size_t i = 0; i < n; i++)
            STORE(dx, i,
                  (is_log ? LOAD(d_o, i) - expf(LOAD(o, i) < 1 ? LOAD(o, i) : 1) * sum : LOAD(o, i) * (LOAD(d_o, i) - sum)) *
                      0.125f);
    }
}

/* base of nrg/softmax.h, for scores as they are here. */
INLINE float NAME(softmax_base)(float most) { return rintf(most * 1.44269504f) * 0.69314718f; }

/* A block of keys after others. */
static void NAME(softmax_part)(const rival_job *job)
{
    const ELEMENT *x = job->x;
    ELEMENT *o = job->o;
    const size_t n = job->dim;
    for (size_t row = 0; row < job->rows; row++, x += n, o += n) {
        float most = job->m_in[row], sum = 0;
        for (size_t i = 0; i < n; i++) {
            const float t = LOAD(x, i) * 0.125f;
            most = t > most ? t : most;
        }
        const float base = NAME(softmax_base)(most);
        for (size_t i = 0; i < n; i++) {
            const float e = expf(LOAD(x, i) * 0.125f - base);
            STORE(o, i, e);
            sum += e;
        }
        job->factor[row] = expf(NAME(softmax_base)(job->m_in[row]) - base);
        job->sum[row] = job->sum_in[row] * (double)job->factor[row] + (double)sum;
        job->m[row] = most;
    }
}

static void NAME(softmax_merge)(const rival_job *job)
{
    for (size_t row = 0; row < job->rows; row++) {
        float most = job->m_in[row];
        for (size_t p = 1; p < job->groups; p++) {
            const float t = job->m_in[p * job->rows + row];
            most = t > most ? t : most;
        }
        const float base = NAME(softmax_base)(most);
        double sum = 0;
        for (size_t p = 0; p < job->groups; p++) {
            const size_t i = p * job->rows + row;
            sum += job->sum_in[i] * (double)expf(NAME(softmax_base)(job->m_in[i]) - base);
        }
        job->m[row] = most;
        job->sum[row] = sum;
        job->inverse[row] = (float)(1 / sum);
    }
}

static void NAME(cross_entropy)(const rival_job *job)
{
    const ELEMENT *x = job->x;
    for (size_t row = 0; row < job->rows; row++, x += job->dim) {
        float most = LOAD(x, 0), sum = 0;
        for (size_t i = 0; i < job->dim; i++)
            most = LOAD(x, i) > most ? LOAD(x, i) : most;
        for (size_t i = 0; i < job->dim; i++)
            sum += expf(LOAD(x, i) - most);
        const float at_class = LOAD(x, job->ids[row]);
        job->m[row] = most;
        job->others[row] = (double)(sum - expf(at_class - most));
        job->loss[row] = most + logf(sum) - at_class;
    }
}

static void NAME(cross_entropy_backward)(const rival_job *job)
{
    const ELEMENT *x = job->x;
    ELEMENT *dx = job->dx;
    for (size_t row = 0; row < job->rows; row++, x += job->dim, dx += job->dim) {
        const float at_class = LOAD(x, job->ids[row]), m = job->m_in[row], d = job->d_loss[row];
        const float all = m + logf(expf(at_class - m) + (float)job->others_in[row]);
        for (size_t i = 0; i < job->dim; i++)
            STORE(dx, i, expf(LOAD(x, i) - all) * d);
        STORE(dx, job->ids[row], (expf(at_class - all) - 1) * d);
    }
}

/* A row of floats on the stack, and a pass over it for each stride. */
static void NAME(hadamard)(const rival_job *job)
{
    const ELEMENT *x = job->x;
    ELEMENT *o = job->o;
    const size_t n = job->dim;
    const float scale = 1 / sqrtf((float)n);
    for (size_t row = 0; row < job->rows; row++, x += n, o += n) {
        float v[512];
        for (size_t i = 0; i < n; i++)
            v[i] = LOAD(x, i);
        for (size_t stride = 1; stride < n; stride *= 2)
            for (size_t i = 0; i < n; i += 2 * stride)
                for (size_t j = i; j < i + stride; j++) {
                    const float a = v[j], b = v[j + stride];
                    v[j] = a + b;
                    v[j + stride] = a - b;
                }
        for (size_t i = 0; i < n; i++)
            STORE(o, i, v[i] * scale);
    }
}

/* Loops of one instance: the kernel and the op of its case, and its name. */
#define EACH_OTHER(F)                                                                                                            \
    F("hadamard", "hadamard", hadamard)                                                                                          \
    F("norm_sandwich", "sandwich", sandwich)                                                                                     \
    F("norm_sandwich", "turns", sandwich)                                                                                        \
    F("softmax", "part", softmax_part)                                                                                           \
    F("softmax", "merge", softmax_merge)                                                                                         \
    F("softmax", "cross-entropy", cross_entropy)                                                                                 \
    F("softmax_backward", "cross-entropy", cross_entropy_backward)

#include "naive_bytes.h"
#include "naive_channel.h"
#include "naive_rope.h"

#define LOOP(kernel, op, name, function, ...)                                                                                    \
    static void NAME(name)(const rival_job *job) { NAME(function)(job, __VA_ARGS__); }
EACH_LOOP(LOOP)
#define ACTIVATION(g, name, ...) LOOP(, , g, activation, NRG_ACT_##g)
#include "../../src/template/activation/activations.def"
#undef LOOP
