/* A decoder layer of an inference engine: nrg between the engine's matrix products, with a bf16 KV cache that is filled slot by
 * slot, and shares as the threads of a pool call them.
 *
 * The program checks that results are bit-identical for a prompt in one batch, the same prompt token by token, and each with
 * another number of threads. It also compares with a layer in double precision.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIM = 64, HEADS = 4, KV_HEADS = 2, HEAD = 16, FF = 96, SLOTS = 24, TOKENS = 11, MOST_THREADS = 7 };
enum { Q = HEADS * HEAD, KV = KV_HEADS * HEAD, QKV = Q + 2 * KV };
static const double eps = 1e-6, freq_base = 10000;

/* Weights as the engine has them, [in][out]. */
static float norm1[DIM], norm2[DIM], q_norm[HEAD], k_norm[HEAD];
static float w_qkv[DIM * QKV], w_out[Q * DIM], w_up[DIM * 2 * FF], w_down[FF * DIM];

/* Stays from call to call: the cache, and the workspace in which nrg_qkv_forward keeps its table. */
typedef struct context {
    uint16_t k[SLOTS][KV_HEADS][HEAD], v[SLOTS][KV_HEADS][HEAD];
    double workspace[2048];
} context;

/* Buffers of the graph. */
static float normed[TOKENS][DIM], qkv[TOKENS][QKV], scores[HEADS][TOKENS][SLOTS], heads[TOKENS][Q], stepped[TOKENS][DIM];
static float residual[TOKENS][DIM], up[TOKENS][2 * FF], gated[TOKENS][FF];

/* The engine's matrix product. Each sum has a fixed order, so it does not depend on the number of rows. */
static void multiply(size_t rows, size_t n, size_t m, const float *x, const float *w, float *o)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t j = 0; j < m; j++) {
            float sum = 0;
            for (size_t i = 0; i < n; i++)
                sum += x[row * n + i] * w[i * m + j];
            o[row * m + j] = sum;
        }
}

static float of_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

/* Computes the scores of each query head with every slot up to that of the last token. */
static void query_times_keys(const context *c, size_t tokens, size_t keys)
{
    for (size_t h = 0; h < HEADS; h++)
        for (size_t t = 0; t < tokens; t++)
            for (size_t j = 0; j < keys; j++) {
                float sum = 0;
                for (size_t i = 0; i < HEAD; i++)
                    sum += qkv[t][h * HEAD + i] * of_bf16(c->k[j][h * KV_HEADS / HEADS][i]);
                scores[h][t][j] = sum;
            }
}

/* Computes the sum of v, weighted by the scores. */
static void weights_times_values(const context *c, size_t tokens, size_t first)
{
    for (size_t h = 0; h < HEADS; h++)
        for (size_t t = 0; t < tokens; t++)
            for (size_t i = 0; i < HEAD; i++) {
                float sum = 0;
                for (size_t j = 0; j <= first + t; j++)
                    sum += scores[h][t][j] * of_bf16(c->v[j][h * KV_HEADS / HEADS][i]);
                heads[t][h * HEAD + i] = sum;
            }
}

/* ---- nodes: each validates its call first. Then every thread of the pool calls its share. Each returns the status ---- */

/* r = x + y if y is not NULL, else r = x; o = rms_norm(r) ⊙ w */
static nrg_status add_norm(size_t tokens, const float *x, const float *y, const float *w, float *r, float *o, int nth)
{
    const nrg_norm_spec spec = nrg_norm_spec_rms(NRG_F32, DIM, eps);
    nrg_norm_args args = nrg_norm_args_init(tokens, x, w, o);
    args.y = y;
    args.r = r;
    nrg_status status = nrg_norm_forward_check(&spec, &args);
    for (int ith = 0; status == NRG_OK && ith < nth; ith++)
        status = nrg_norm_forward(&spec, &args, ith, nth);
    return status;
}

/* Normalizes and rotates the heads of q in place, and of k into the cache. Copies v into the cache. Rows are [q | k | v]. */
static nrg_status rotate(context *c, size_t tokens, size_t first, int nth)
{
    const nrg_rope_spec rope = nrg_rope_spec_init(HEAD, NRG_ROPE_NEOX, freq_base);
    const nrg_norm_spec norm = nrg_norm_spec_rms(NRG_F32, HEAD, eps);
    int64_t slots[TOKENS];
    for (size_t t = 0; t < tokens; t++)
        slots[t] = (int64_t)(first + t);
    nrg_qkv_args args = nrg_qkv_args_init(NRG_F32, tokens, HEAD);
    args.keep = 1; /* no other code uses the workspace, and it began as zeros */
    args.workspace = c->workspace;
    args.workspace_size = sizeof c->workspace;
    args.first_position = (int32_t)first;
    args.slots = slots;
    args.slot_count = SLOTS;
    args.q_heads = HEADS;
    args.k_heads = args.v_heads = KV_HEADS;
    args.q = args.q_o = &qkv[0][0];
    args.k = &qkv[0][Q];
    args.v = &qkv[0][Q + KV];
    args.q_strides.row = args.q_o_strides.row = args.k_strides.row = args.v_strides.row = sizeof qkv[0];
    args.k_o = c->k;
    args.v_o = c->v;
    args.k_o_dtype = args.v_o_dtype = NRG_BF16;
    args.q_w = q_norm;
    args.k_w = k_norm;
    nrg_status status = nrg_qkv_forward_check(&norm, &rope, &args, nth);
    for (int ith = 0; status == NRG_OK && ith < nth; ith++)
        status = nrg_qkv_forward(&norm, &rope, &args, ith, nth); /* all shares return the same status */
    return status;
}

/* Softmax of the scores, with a causal limit. Rows of the buffer have gaps, so both strides are set. */
static nrg_status weigh(size_t tokens, size_t first, int nth)
{
    nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, HEADS, tokens, first + tokens, scores, scores);
    args.scale = 1 / sqrtf(HEAD);
    args.causal = 1;
    args.x_strides.row = args.o_strides.row = sizeof scores[0][0];
    args.x_strides.head = args.o_strides.head = sizeof scores[0];
    nrg_status status = nrg_softmax_forward_check(&args);
    for (int ith = 0; status == NRG_OK && ith < nth; ith++)
        status = nrg_softmax_forward(&args, ith, nth);
    return status;
}

/* silu of the first half of a row times its second half */
static nrg_status swiglu(size_t tokens, int nth)
{
    const nrg_glu_args args = nrg_glu_args_halves(NRG_ACT_SILU, NRG_F32, tokens, FF, up, 0, gated);
    nrg_status status = nrg_glu_forward_check(&args);
    for (int ith = 0; status == NRG_OK && ith < nth; ith++)
        status = nrg_glu_forward(&args, ith, nth);
    return status;
}

/* Runs the layer. The tokens of x have positions from `first` on, and slots of the same numbers. The next layer adds o to r. */
static nrg_status layer(context *c, size_t tokens, size_t first, const float *x, float *r, float *o, int nth)
{
    nrg_status status = add_norm(tokens, x, NULL, norm1, NULL, normed[0], nth);
    multiply(tokens, DIM, QKV, normed[0], w_qkv, qkv[0]);
    if (status == NRG_OK)
        status = rotate(c, tokens, first, nth);
    query_times_keys(c, tokens, first + tokens);
    if (status == NRG_OK)
        status = weigh(tokens, first, nth);
    weights_times_values(c, tokens, first);
    multiply(tokens, Q, DIM, heads[0], w_out, stepped[0]);
    if (status == NRG_OK)
        status = add_norm(tokens, x, stepped[0], norm2, r, normed[0], nth);
    multiply(tokens, DIM, 2 * FF, normed[0], w_up, up[0]);
    if (status == NRG_OK)
        status = swiglu(tokens, nth);
    multiply(tokens, FF, DIM, gated[0], w_down, o);
    return status;
}

/* ---- the same layer in double, from the formulas ---- */

static void plain_norm(size_t n, const double *x, const float *w, double *o)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        o[i] = x[i] / sqrt(sum / (double)n + eps) * (double)w[i];
}

static void plain_multiply(size_t n, size_t m, const double *x, const float *w, double *o)
{
    for (size_t j = 0; j < m; j++) {
        o[j] = 0;
        for (size_t i = 0; i < n; i++)
            o[j] += x[i] * (double)w[i * m + j];
    }
}

static void plain_rope(double *head, size_t position)
{
    for (size_t p = 0; p < HEAD / 2; p++) {
        const double angle = (double)position * pow(freq_base, -2.0 * (double)p / HEAD), a = head[p], b = head[p + HEAD / 2];
        head[p] = a * cos(angle) - b * sin(angle);
        head[p + HEAD / 2] = a * sin(angle) + b * cos(angle);
    }
}

/* Computes r + o of all tokens. It does not round k and v to bf16, which causes most of the difference. */
static void plain_layer(const float *x, double (*sum)[DIM])
{
    static double rows[TOKENS][QKV];
    for (size_t t = 0; t < TOKENS; t++) {
        double wide[DIM], row[2 * FF], head[HEAD];
        for (size_t i = 0; i < DIM; i++)
            wide[i] = (double)x[t * DIM + i];
        plain_norm(DIM, wide, norm1, row);
        plain_multiply(DIM, QKV, row, w_qkv, rows[t]);
        for (size_t h = 0; h < HEADS + KV_HEADS; h++) {
            plain_norm(HEAD, rows[t] + h * HEAD, h < HEADS ? q_norm : k_norm, head);
            plain_rope(head, t);
            memcpy(rows[t] + h * HEAD, head, sizeof head);
        }
        double all[Q] = {0}, step[DIM];
        for (size_t h = 0; h < HEADS; h++) {
            double weight[TOKENS], total = 0;
            const size_t of = h * KV_HEADS / HEADS * HEAD;
            for (size_t j = 0; j <= t; j++) {
                double score = 0;
                for (size_t i = 0; i < HEAD; i++)
                    score += rows[t][h * HEAD + i] * rows[j][Q + of + i];
                weight[j] = exp(score / sqrt(HEAD));
                total += weight[j];
            }
            for (size_t j = 0; j <= t; j++)
                for (size_t i = 0; i < HEAD; i++)
                    all[h * HEAD + i] += weight[j] / total * rows[j][Q + KV + of + i];
        }
        plain_multiply(Q, DIM, all, w_out, step);
        for (size_t i = 0; i < DIM; i++)
            wide[i] += step[i];
        double inner[DIM], product[FF];
        plain_norm(DIM, wide, norm2, inner);
        plain_multiply(DIM, 2 * FF, inner, w_up, row);
        for (size_t i = 0; i < FF; i++)
            product[i] = row[i] / (1 + exp(-row[i])) * row[FF + i];
        plain_multiply(FF, DIM, product, w_down, step);
        for (size_t i = 0; i < DIM; i++)
            sum[t][i] = wide[i] + step[i];
    }
}

static void draw(float *to, size_t n, float middle, float width)
{
    static uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = middle + width * ((float)((int)(state >> 16) - 32768) * 0x1p-15f);
    }
}

int main(void)
{
    static float x[TOKENS][DIM], batch_r[TOKENS][DIM], batch[TOKENS][DIM], one[TOKENS][DIM];
    static double plain[TOKENS][DIM];
    draw(x[0], sizeof x / sizeof x[0][0], 0, 2);
    draw(norm1, DIM, 1, 0.2f);
    draw(norm2, DIM, 1, 0.2f);
    draw(q_norm, HEAD, 1, 0.2f);
    draw(k_norm, HEAD, 1, 0.2f);
    draw(w_qkv, DIM * QKV, 0, 0.2f);
    draw(w_out, Q * DIM, 0, 0.2f);
    draw(w_up, DIM * 2 * FF, 0, 0.2f);
    draw(w_down, FF * DIM, 0, 0.2f);

    int wrong = 0;
    for (int nth = 1; nth <= MOST_THREADS; nth += 2) {
        static context together, single;
        memset(&together, 0, sizeof together);
        memset(&single, 0, sizeof single);
        nrg_status status = layer(&together, TOKENS, 0, x[0], residual[0], one[0], nth);
        if (nth == 1) {
            memcpy(batch_r, residual, sizeof batch_r);
            memcpy(batch, one, sizeof batch);
        }
        int differ = memcmp(residual, batch_r, sizeof batch_r) || memcmp(one, batch, sizeof batch);
        for (size_t t = 0; t < TOKENS && status == NRG_OK; t++)
            status = layer(&single, 1, t, x[t], residual[t], one[t], nth);
        differ |= memcmp(residual, batch_r, sizeof batch_r) || memcmp(one, batch, sizeof batch) ||
                  memcmp(together.k, single.k, sizeof single.k) || memcmp(together.v, single.v, sizeof single.v);
        printf("%d threads: %s; in one batch and token by token %s\n", nth, nrg_status_string(status),
               differ ? "other bits" : "the same bits");
        wrong |= differ || status != NRG_OK;
    }

    double worst = 0;
    plain_layer(x[0], plain);
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < DIM; i++) {
            const double error = fabs((double)batch_r[t][i] + (double)batch[t][i] - plain[t][i]);
            if (!(error <= worst)) /* also true for a NaN */
                worst = error;
        }
    printf("worst difference to double precision %.2g, of elements near 3; the bf16 cache rounds by up to 2^-9\n", worst);
    return wrong || !(worst <= 0x1p-7);
}
