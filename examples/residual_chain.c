/* The residual chain of a pre-norm Transformer, x_k = f_k(norm(x_{k-1})) + x_{k-1}, in two bit-identical forms.
 *
 *   naive   forward:   x_{k-1} is a tensor;  q_k = norm(x_{k-1}),  p_k = f_k(q_k),  x_k = p_k + x_{k-1}
 *           backward:  dq_k from f_k,  the norm's gradient from dq_k,  and one more pass to add the gradient of x_k
 *   fused   forward:   r_k, q_k = add_norm(p_{k-1}, r_{k-1})   one call computes, stores and normalizes the sum
 *           backward:  dp_{k-1}, dr_{k-1} = backward(dq_k, dr_in = dr_k)   one call adds the gradient that skips the layer
 *
 * The program runs in f32, and in bf16 with the residual stream and its gradient in f32. It fails if a bit differs.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 24, ROWS = 37, DIM = 48, SIZE = ROWS * DIM };

/* Everything that a form of the chain computes, which is all that is compared. Tensors of the model's dtype have room for f32. */
typedef struct chain {
    float r[LAYERS][SIZE];    /* the residual stream before each norm: x_0 … x_{n-1} */
    float q[LAYERS][SIZE];    /* norm's output, in the model's dtype */
    float out[SIZE];          /* x_n */
    float dx[SIZE], dr[SIZE]; /* the gradient of x_0: in the model's dtype, and in f32 */
    float dw[LAYERS][DIM], db[LAYERS][DIM];
} chain;

static chain naive, fused;

/* What both are given. */
static float x0[SIZE], d_out[SIZE], w[LAYERS][DIM], b[LAYERS][DIM], matrix[LAYERS][DIM][DIM];
static double workspace[2 * 2 * DIM]; /* two blocks of rows, of dw and of db */

static float load(const void *tensor, nrg_dtype dtype, size_t i)
{
    uint32_t bits;
    uint16_t half;
    float value;
    if (dtype == NRG_F32) {
        memcpy(&value, (const char *)tensor + i * sizeof value, sizeof value);
        return value;
    }
    memcpy(&half, (const char *)tensor + i * sizeof half, sizeof half);
    bits = (uint32_t)half << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* bf16: rounds to nearest, ties to even. There are no NaNs here. */
static void store(void *tensor, nrg_dtype dtype, size_t i, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t half = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    if (dtype == NRG_F32)
        memcpy((char *)tensor + i * sizeof value, &value, sizeof value);
    else
        memcpy((char *)tensor + i * sizeof half, &half, sizeof half);
}

static void convert(void *to, nrg_dtype to_dtype, const void *from, nrg_dtype from_dtype)
{
    for (size_t i = 0; i < SIZE; i++)
        store(to, to_dtype, i, load(from, from_dtype, i));
}

/* f_k: a matrix product; its gradient is the product with the transposed matrix. */
static void f(int k, nrg_dtype dtype, const void *q, void *p)
{
    for (size_t row = 0; row < ROWS; row++)
        for (size_t i = 0; i < DIM; i++) {
            float sum = 0;
            for (size_t j = 0; j < DIM; j++)
                sum += matrix[k][i][j] * load(q, dtype, row * DIM + j);
            store(p, dtype, row * DIM + i, sum);
        }
}

static void f_backward(int k, nrg_dtype dtype, const void *dp, void *dq)
{
    for (size_t row = 0; row < ROWS; row++)
        for (size_t j = 0; j < DIM; j++) {
            float sum = 0;
            for (size_t i = 0; i < DIM; i++)
                sum += matrix[k][i][j] * load(dp, dtype, row * DIM + i);
            store(dq, dtype, row * DIM + j, sum);
        }
}

static void must(nrg_status status)
{
    if (status == NRG_OK)
        return;
    fprintf(stderr, "residual_chain: %s\n", nrg_status_string(status));
    exit(1);
}

static nrg_norm_spec make_spec(int centred, nrg_dtype dtype)
{
    nrg_norm_spec spec = centred ? nrg_norm_spec_layer(NRG_F32, DIM, 1e-5) : nrg_norm_spec_rms(NRG_F32, DIM, 1e-6);
    spec.dtype = dtype;
    spec.y_dtype = spec.r_dtype = spec.w_dtype = NRG_F32;
    return spec;
}

/* Both phases of the backward pass of norm k. */
static void norm_backward(const nrg_norm_spec *spec, nrg_norm_backward_args *args, int k, chain *c)
{
    args->r = c->r[k];
    args->w = w[k];
    args->dw = c->dw[k];
    args->db = c->db[k];
    args->workspace = workspace;
    args->workspace_size = sizeof workspace;
    must(nrg_norm_backward(spec, args, 0, 1));
    must(nrg_norm_backward_reduce(spec, args, 0, 1));
}

static void run_naive(chain *c, int centred, nrg_dtype dtype)
{
    static float p[SIZE], o[SIZE], dp[SIZE], dq[SIZE], d_norm[SIZE];
    /* the stream is f32, and so is the norm of it; its result is rounded to the model's dtype afterwards */
    nrg_norm_spec spec = make_spec(centred, NRG_F32);
    convert(c->r[0], NRG_F32, x0, dtype);
    for (int k = 0; k < LAYERS; k++) {
        nrg_norm_args args = nrg_norm_args_init(ROWS, c->r[k], w[k], o);
        args.b = b[k];
        must(nrg_norm_forward(&spec, &args, 0, 1));
        convert(c->q[k], dtype, o, NRG_F32);
        f(k, dtype, c->q[k], p);
        float *next = k + 1 < LAYERS ? c->r[k + 1] : c->out;
        for (size_t i = 0; i < SIZE; i++)
            next[i] = load(p, dtype, i) + c->r[k][i];
    }

    spec = make_spec(centred, dtype);
    convert(c->dr, NRG_F32, d_out, NRG_F32);
    for (int k = LAYERS; k-- > 0;) {
        /* x_k = p_k + x_{k-1}: both get the gradient of x_k */
        convert(dp, dtype, c->dr, NRG_F32);
        f_backward(k, dtype, dp, dq);
        nrg_norm_backward_args args = nrg_norm_backward_args_init(ROWS, NULL, NULL, dq, NULL);
        args.dy = d_norm; /* f32: what is added has not been rounded to the model's dtype */
        norm_backward(&spec, &args, k, c);
        for (size_t i = 0; i < SIZE; i++)
            c->dr[i] = d_norm[i] + c->dr[i];
    }
    convert(c->dx, dtype, c->dr, NRG_F32);
}

static void run_fused(chain *c, int centred, nrg_dtype dtype)
{
    static float p[SIZE], dq[SIZE];
    nrg_norm_spec spec = make_spec(centred, dtype);
    for (int k = 0; k < LAYERS; k++) {
        /* the first norm has nothing to add to x_0 */
        nrg_norm_args args = nrg_norm_args_init(ROWS, k ? p : x0, w[k], c->q[k]);
        args.y = k ? c->r[k - 1] : NULL;
        args.r = c->r[k];
        args.b = b[k];
        must(nrg_norm_forward(&spec, &args, 0, 1));
        f(k, dtype, c->q[k], p);
    }
    for (size_t i = 0; i < SIZE; i++)
        c->out[i] = load(p, dtype, i) + c->r[LAYERS - 1][i];

    convert(c->dr, NRG_F32, d_out, NRG_F32);
    convert(c->dx, dtype, d_out, NRG_F32);
    for (int k = LAYERS; k-- > 0;) {
        f_backward(k, dtype, c->dx, dq);
        nrg_norm_backward_args args = nrg_norm_backward_args_init(ROWS, NULL, NULL, dq, c->dx);
        args.dr_in = c->dr;
        args.dy = c->dr; /* in place */
        norm_backward(&spec, &args, k, c);
    }
}

/* Multiples of 2^-16 from -1/2 to 1/2. */
static float draw(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)((int)(state >> 16) - 32768) * 0x1p-16f;
}

static void make_inputs(nrg_dtype dtype)
{
    for (size_t i = 0; i < SIZE; i++) {
        store(x0, dtype, i, 4 * draw());
        d_out[i] = draw();
    }
    for (int k = 0; k < LAYERS; k++)
        for (size_t i = 0; i < DIM; i++) {
            w[k][i] = 1 + draw();
            b[k][i] = draw();
            for (size_t j = 0; j < DIM; j++)
                matrix[k][i][j] = draw() / 4;
        }
}

/* memcmp, and where the first difference is. */
static int same(const char *what, const void *a, const void *b_, size_t bytes)
{
    const unsigned char *left = a, *right = b_;
    for (size_t i = 0; i < bytes; i++)
        if (left[i] != right[i]) {
            fprintf(stderr, "residual_chain: %s differs at byte %zu of %zu\n", what, i, bytes);
            return 0;
        }
    return 1;
}

static int is_alive(const float *values, size_t n)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i] * values[i];
    return sum > 0 && sum < 1e30f; /* a NaN is neither */
}

static int run(int centred, nrg_dtype dtype)
{
    const char *norm = centred ? "LayerNorm" : "RMSNorm";
    memset(&naive, 0, sizeof naive);
    memset(&fused, 0, sizeof fused);
    make_inputs(dtype);
    run_naive(&naive, centred, dtype);
    run_fused(&fused, centred, dtype);
    if (!same("r", naive.r, fused.r, sizeof naive.r) || !same("q", naive.q, fused.q, sizeof naive.q) ||
        !same("x_n", naive.out, fused.out, sizeof naive.out) || !same("dx", naive.dx, fused.dx, sizeof naive.dx) ||
        !same("dr", naive.dr, fused.dr, sizeof naive.dr) || !same("dw", naive.dw, fused.dw, sizeof naive.dw) ||
        !same("db", naive.db, fused.db, sizeof naive.db)) {
        fprintf(stderr, "residual_chain: FAILED: %s in %s\n", norm, nrg_dtype_name(dtype));
        return 1;
    }
    /* zeros would be equal, too */
    if (!is_alive(fused.out, SIZE) || !is_alive(fused.dr, SIZE) || !is_alive(fused.dw[0], DIM) || !is_alive(fused.db[0], DIM)) {
        fprintf(stderr, "residual_chain: FAILED: %s in %s: nothing came out\n", norm, nrg_dtype_name(dtype));
        return 1;
    }
    printf(
        "%-9s %-4s %d layers, %d rows of %d: naive and fused have the same bits in every r, q, dw, db, in x_n, dx_0 and dr_0\n",
        norm, nrg_dtype_name(dtype), LAYERS, ROWS, DIM);
    return 0;
}

int main(void) { return run(0, NRG_F32) | run(1, NRG_F32) | run(0, NRG_BF16) | run(1, NRG_BF16); }
