/* The tensors of an engine: four sizes, four strides in bytes, views of one buffer, and ops that nrg may not support.
 *
 * Each op calls `_check` once, so that all threads take the same branch. If `_check` returns an error, the op runs an ordinary
 * loop. The program compares the results of nrg with that loop, row by row.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS = 48, HEADS = 12, DIM = 64, BATCH = 2, THREADS = 3 };
static const double eps = 1e-6;

/* ne[0] elements of a row, which lie nb[0] bytes apart; rows, planes, volumes. */
typedef struct tensor {
    size_t ne[4], nb[4];
    float *data;
} tensor;

static tensor dense(float *data, size_t n0, size_t n1, size_t n2, size_t n3)
{
    const size_t row = n0 * sizeof *data;
    return (tensor){{n0, n1, n2, n3}, {sizeof *data, row, row * n1, row * n1 * n2}, data};
}

/* Dimensions 1 and 2 change their places: [tokens][heads] is seen as [heads][tokens]. */
static tensor permuted(tensor t)
{
    const size_t ne = t.ne[1], nb = t.nb[1];
    t.ne[1] = t.ne[2];
    t.nb[1] = t.nb[2];
    t.ne[2] = ne;
    t.nb[2] = nb;
    return t;
}

static float *element(const tensor *t, size_t i0, size_t i1, size_t i2, size_t i3)
{
    return (float *)(void *)((char *)t->data + i0 * t->nb[0] + i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3]);
}

/* ---- what the engine has without the library ---- */

static void plain_rms_norm(const tensor *x, const tensor *y, const tensor *w, const tensor *o)
{
    for (size_t i3 = 0; i3 < x->ne[3]; i3++)
        for (size_t i2 = 0; i2 < x->ne[2]; i2++)
            for (size_t i1 = 0; i1 < x->ne[1]; i1++) {
                double sum = 0;
                float row[DIM];
                for (size_t i = 0; i < x->ne[0]; i++) {
                    row[i] = *element(x, i, i1, i2, i3);
                    if (y) /* one for all where it has fewer */
                        row[i] += *element(y, i, i1 % y->ne[1], i2 % y->ne[2], i3 % y->ne[3]);
                    sum += (double)row[i] * (double)row[i];
                }
                for (size_t i = 0; i < x->ne[0]; i++)
                    *element(o, i, i1, i2, i3) =
                        (float)((double)row[i] / sqrt(sum / (double)x->ne[0] + eps) * (double)*element(w, i, 0, 0, 0));
            }
}

/* ---- the same through the library ---- */

/* Whether y has as many of a dimension as x, or one for all. */
static int fits(const tensor *y, const tensor *x)
{
    for (int k = 1; k < 4; k++)
        if (y->ne[k] != x->ne[k] && y->ne[k] != 1)
            return 0;
    return y->ne[0] == x->ne[0] && y->nb[0] == sizeof(float);
}

/* ne and nb as nrg/norm.h has them. Returns 0 where elements of a row are not adjacent, which the library does not take, or y
 * repeats as a part of a dimension. */
static int make_args(nrg_norm_args *args, const tensor *x, const tensor *y, const tensor *w, const tensor *o)
{
    if (x->nb[0] != sizeof(float) || o->nb[0] != sizeof(float) || w->nb[0] != sizeof(float) || (y && !fits(y, x)))
        return 0;
    *args = nrg_norm_args_init(x->ne[1], x->data, w->data, o->data);
    args->rows2 = x->ne[2];
    args->rows3 = x->ne[3];
    memcpy(args->x_stride, x->nb + 1, sizeof args->x_stride);
    memcpy(args->o_stride, o->nb + 1, sizeof args->o_stride);
    if (!y)
        return 1;
    args->y = y->data;
    memcpy(args->y_stride, y->nb + 1, sizeof args->y_stride);
    args->y_repeat = (y->ne[1] == 1 ? NRG_REPEAT_ROWS : 0u) | (y->ne[2] == 1 ? NRG_REPEAT_ROWS2 : 0u) |
                     (y->ne[3] == 1 ? NRG_REPEAT_ROWS3 : 0u);
    return 1;
}

/* o = rms_norm(x + y) ⊙ w; y may be NULL. Returns whether the library did it. A pool's threads would each call their share. */
static int rms_norm(const tensor *x, const tensor *y, const tensor *w, const tensor *o)
{
    const nrg_norm_spec spec = nrg_norm_spec_rms(NRG_F32, x->ne[0], eps);
    nrg_norm_args args;
    if (!make_args(&args, x, y, w, o) || nrg_norm_forward_check(&spec, &args) != NRG_OK) {
        plain_rms_norm(x, y, w, o);
        return 0;
    }
    nrg_status status = NRG_OK;
    for (int ith = 0; status == NRG_OK && ith < THREADS; ith++)
        status = nrg_norm_forward(&spec, &args, ith, THREADS);
    return status == NRG_OK; /* the call was validated before */
}

/* ---- and that both agree ---- */

static int differ(const char *name, const tensor *a, const tensor *b)
{
    double worst = 0;
    for (size_t i3 = 0; i3 < a->ne[3]; i3++)
        for (size_t i2 = 0; i2 < a->ne[2]; i2++)
            for (size_t i1 = 0; i1 < a->ne[1]; i1++)
                for (size_t i = 0; i < a->ne[0]; i++) {
                    const double is = (double)*element(a, i, i1, i2, i3), should = (double)*element(b, i, i1, i2, i3);
                    const double error = fabs(is - should) / fmax(fabs(should), 0x1p-126);
                    if (!(error <= worst)) /* so that a NaN stays */
                        worst = error;
                }
    printf("%-32s worst error %.2f ulp\n", name, worst * 0x1p24);
    return !(worst <= 6 * 0x1p-24); /* three ulps are at most that */
}

enum { BUFFER = BATCH * TOKENS * 3 * HEADS * DIM };
static float qkv[BUFFER], results[BUFFER], expected[BUFFER], step[TOKENS * DIM], weights[DIM];

static void draw(float *to, size_t n)
{
    static uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = (float)((int)(state >> 16) - 32768) * 0x1p-13f;
    }
}

int main(void)
{
    draw(qkv, BUFFER);
    draw(step, TOKENS * DIM);
    draw(weights, DIM);
    const size_t head = DIM * sizeof(float), token = 3 * HEADS * head;
    const tensor w = dense(weights, DIM, 1, 1, 1);
    /* the query heads of [batch][tokens][q, k and v heads][dim], seen as [batch][heads][tokens][dim] */
    tensor q = permuted((tensor){{DIM, HEADS, TOKENS, BATCH}, {sizeof(float), head, token, token * TOKENS}, qkv});
    tensor q_expected = q;
    int failed = 0;

    /* into a dense tensor of [batch][heads][tokens][dim], with a vector for each token added, the same for all heads and batches
     */
    const tensor by_token = dense(step, DIM, TOKENS, 1, 1), o = dense(results, DIM, TOKENS, HEADS, BATCH),
                 o_expected = dense(expected, DIM, TOKENS, HEADS, BATCH);
    plain_rms_norm(&q, &by_token, &w, &o_expected);
    failed |= !rms_norm(&q, &by_token, &w, &o) || differ("permuted, y repeated", &o, &o_expected);

    /* in place: key and value heads stay as they are */
    memcpy(expected, qkv, sizeof qkv);
    q_expected.data = expected;
    plain_rms_norm(&q_expected, NULL, &w, &q_expected);
    failed |= !rms_norm(&q, NULL, &w, &q) || differ("one view of a buffer, in place", &q, &q_expected);
    for (size_t i = 0; i < BUFFER; i++)
        failed |= i % (3 * HEADS * DIM) >= HEADS * DIM && qkv[i] != expected[i];

    /* a transposed matrix: the library returns an error, and the engine's own loop computes it */
    const tensor on_its_side = {{DIM, TOKENS, 1, 1}, {TOKENS * sizeof(float), sizeof(float), 0, 0}, step};
    const tensor side = dense(results, DIM, TOKENS, 1, 1);
    failed |= rms_norm(&on_its_side, NULL, &w, &side);
    /* the same if results overlap inputs that are read later */
    tensor late = dense(results + 16, DIM, TOKENS, 1, 1);
    failed |= rms_norm(&side, NULL, &w, &late);

    puts(failed ? "engine_tensors: FAILED" : "engine_tensors: ok");
    return failed;
}
