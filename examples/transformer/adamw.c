/* See adamw.h. Each element is independent, so the bits do not depend on threads. IEEE defines products and roots on every CPU.
 * SPDX-License-Identifier: MIT */
#include "adamw.h"

#include <math.h>

enum { PIECE = 4096, CHAINS = 8 };

size_t adamw_pieces(size_t n) { return (n + PIECE - 1) / PIECE; }

/* In double, in CHAINS sums that are added up in their order. */
static double squares(const float *g, size_t n)
{
    double sum[CHAINS] = {0}, total = 0;
    for (size_t i = 0; i < n; i++)
        sum[i % CHAINS] += (double)g[i] * (double)g[i];
    for (size_t c = 0; c < CHAINS; c++)
        total += sum[c];
    return total;
}

static double power(double x, uint64_t n)
{
    double p = 1;
    for (; n > 0; n /= 2, x *= x)
        if (n % 2 != 0)
            p *= x;
    return p;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Matrices shrink towards 0, weights of norms do not. */
static void step_of(const adamw *a, float scale, float decay, size_t n, float *w, const float *g, float *m, float *v)
{
    const float rise1 = 1 - a->beta1, rise2 = 1 - a->beta2;
    const float whole1 = (float)(1 / (1 - power((double)a->beta1, a->step)));
    const float whole2 = (float)(1 / (1 - power((double)a->beta2, a->step)));
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] * scale;
        m[i] = a->beta1 * m[i] + rise1 * d;
        v[i] = a->beta2 * v[i] + rise2 * (d * d);
        w[i] -= a->rate * (m[i] * whole1 / (sqrtf(v[i] * whole2) + a->eps) + decay * w[i]);
    }
}

/* The share of a tensor that begins at `from`, of n elements. */
static void share(const adamw *a, const float *base, const float *from, size_t n, float decay, float scale, float *w,
                  const float *g, float *m, float *v, int ith, int nth)
{
    const size_t at = (size_t)(from - base), first = n * (size_t)ith / (size_t)nth, last = n * ((size_t)ith + 1) / (size_t)nth;
    step_of(a, scale, decay, last - first, w + at + first, g + at + first, m + at + first, v + at + first);
}

float adamw_step(const adamw *a, const shape *of, float *w, const float *g, float *m, float *v, double *sums, team *t, int ith)
{
    tensors where;
    const size_t n = lay_out(of, w, &where), pieces = adamw_pieces(n), dim = of->dim;
    for (size_t i = (size_t)ith; i < pieces; i += (size_t)t->nth)
        sums[i] = squares(g + i * PIECE, smaller(PIECE, n - i * PIECE));
    team_wait(t);
    double total = 0;
    for (size_t i = 0; i < pieces; i++)
        total += sums[i];
    const float length = (float)sqrt(total), scale = length > a->most_norm ? a->most_norm / length : 1;
#define SHARE(tensor, size, decay) share(a, w, tensor, size, decay, scale, w, g, m, v, ith, t->nth)
    SHARE(where.embedding, VOCABULARY * dim, a->decay);
    SHARE(where.norm, dim, 0);
    for (size_t i = 0; i < of->layers; i++) {
        const layer_tensors *l = &where.layer[i];
        SHARE(l->norm1, dim, 0);
        SHARE(l->qkv, dim * qkv_width(of), a->decay);
        SHARE(l->q_norm, of->head, 0);
        SHARE(l->k_norm, of->head, 0);
        SHARE(l->out, q_width(of) * dim, a->decay);
        SHARE(l->norm2, dim, 0);
        SHARE(l->up, dim * 2 * of->ff, a->decay);
        SHARE(l->down, of->ff * dim, a->decay);
    }
#undef SHARE
    team_wait(t);
    return length;
}
