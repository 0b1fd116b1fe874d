/* The embedding layer of BERT: token + position + segment, then LayerNorm. The forward pass is one call, compared bit by bit with
 * four calls. The backward pass computes the gradients of the three tables.
 *
 *   separate  x = token[id];  x = x + position[p];  x = x + segment[s];  o = layer_norm(x)
 *   fused     o, x = embed_norm(token[id] + position[p] + segment[s])
 *   backward  dx, dw, db = norm_backward(do, x);  the tables' gradients from dx and the ids, in one call
 *
 * The batch has SEQUENCES sequences of LENGTH tokens. The program fails if a bit differs, or if a gradient differs from the sum
 * that defines it.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = 3, LENGTH = 50, TOKENS = SEQUENCES * LENGTH, DIM = 96, VOCABULARY = 300, SEGMENTS = 2 };

/* What is trained, or its gradient. */
typedef struct layer {
    float token[VOCABULARY][DIM], position[LENGTH][DIM], segment[SEGMENTS][DIM], w[DIM], b[DIM];
} layer;

static layer weights, gradient;
static int32_t token_ids[TOKENS], segment_ids[TOKENS];
static float d_o[TOKENS][DIM];

/* Multiples of 2^-15 from -1 to 1. */
static float draw(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)((int)(state >> 16) - 32768) * 0x1p-15f;
}

static void must(nrg_status status)
{
    if (status == NRG_OK)
        return;
    fprintf(stderr, "bert_embedding: %s\n", nrg_status_string(status));
    exit(1);
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        exit(1);
    return memory;
}

static void fill(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = draw();
}

static void make_inputs(void)
{
    fill(weights.token[0], (size_t)VOCABULARY * DIM);
    fill(weights.position[0], (size_t)LENGTH * DIM);
    fill(weights.segment[0], (size_t)SEGMENTS * DIM);
    fill(weights.w, DIM);
    fill(weights.b, DIM);
    fill(d_o[0], (size_t)TOKENS * DIM);
    for (int t = 0; t < TOKENS; t++) {
        const float u = draw();
        token_ids[t] = (int32_t)((VOCABULARY - 1) * u * u); /* some of them often */
        segment_ids[t] = t % LENGTH >= 20;
    }
}

static nrg_embed_table tokens(void) { return nrg_embed_table_init(VOCABULARY, weights.token, token_ids); }
static nrg_embed_table segments(void) { return nrg_embed_table_init(SEGMENTS, weights.segment, segment_ids); }

/* 0, 1, 2, … in each sequence. */
static nrg_embed_table positions(void)
{
    nrg_embed_table t = nrg_embed_table_counted(LENGTH, weights.position, 0);
    t.period = LENGTH;
    return t;
}

/* o = x + rows of one table; x may be NULL, and o may be x. */
static void add(const void *x, nrg_embed_table table, void *o)
{
    nrg_embed_args args = nrg_embed_args_init(NRG_F32, TOKENS, DIM, o);
    args.x = x;
    args.tables = &table;
    args.table_count = 1;
    must(nrg_embed_forward(&args, 0, 1));
}

static void forward_separate(const nrg_norm_spec *spec, float *x, float *o)
{
    add(NULL, tokens(), x);
    add(x, positions(), x);
    add(x, segments(), x);
    nrg_norm_args args = nrg_norm_args_init(TOKENS, x, weights.w, o);
    args.b = weights.b;
    must(nrg_norm_forward(spec, &args, 0, 1));
}

static void forward_fused(const nrg_norm_spec *spec, float *x, float *o, int nth)
{
    nrg_embed_args args = nrg_embed_args_init(NRG_F32, TOKENS, DIM, NULL);
    const nrg_embed_table tables[] = {tokens(), positions(), segments()};
    args.tables = tables;
    args.table_count = 3;
    nrg_norm_args norm = nrg_norm_args_init(TOKENS, NULL, weights.w, o);
    norm.b = weights.b;
    norm.r = x; /* kept for the backward pass */
    for (int ith = 0; ith < nth; ith++)
        must(nrg_embed_norm_forward(spec, &args, &norm, ith, nth));
}

/* The gradient of the sum, and of the norm's weights. */
static void norm_backward(const nrg_norm_spec *spec, const float *x, float *dx)
{
    nrg_norm_backward_args args = nrg_norm_backward_args_init(TOKENS, NULL, weights.w, d_o, dx);
    args.r = x;
    args.dw = gradient.w;
    args.db = gradient.b;
    must(nrg_norm_backward_workspace(spec, &args, &args.workspace_size));
    void *workspace = args.workspace = allocate(args.workspace_size);
    must(nrg_norm_backward(spec, &args, 0, 1));
    must(nrg_norm_backward_reduce(spec, &args, 0, 1));
    free(workspace);
}

/* The gradients of the three tables. With threads there is a barrier after the order, and each thread takes a share. */
static void tables_backward(const float *dx, int nth)
{
    nrg_embed_backward_args args = nrg_embed_backward_args_init(NRG_F32, TOKENS, DIM, dx);
    const nrg_embed_gradient tables[] = {nrg_embed_gradient_init(tokens(), gradient.token),
                                         nrg_embed_gradient_init(positions(), gradient.position),
                                         nrg_embed_gradient_init(segments(), gradient.segment)};
    args.tables = tables;
    args.table_count = 3;
    must(nrg_embed_backward_workspace(&args, &args.workspace_size));
    void *workspace = args.workspace = allocate(args.workspace_size);
    must(nrg_embed_backward_order(&args));
    for (int ith = 0; ith < nth; ith++)
        must(nrg_embed_backward(&args, ith, nth));
    free(workspace);
}

/* What the header says that a table's gradient is. */
static int is_the_sum(const char *name, const float *dx, nrg_embed_table table, const float *d_table)
{
    for (size_t k = 0; k < table.rows; k++)
        for (size_t i = 0; i < DIM; i++) {
            double sum = 0;
            for (size_t t = 0; t < TOKENS; t++)
                if ((table.ids ? (size_t)table.ids[t] : t % LENGTH) == k)
                    sum += (double)dx[t * DIM + i];
            if (d_table[k * DIM + i] != (float)sum) {
                fprintf(stderr, "bert_embedding: FAILED: the gradient of the %s table, row %zu\n", name, k);
                return 0;
            }
        }
    return 1;
}

int main(void)
{
    static float x[2][TOKENS * DIM], o[2][TOKENS * DIM], dx[TOKENS * DIM];
    const nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, DIM, 1e-12);
    int failed = 0;
    make_inputs();
    forward_separate(&spec, x[0], o[0]);
    for (int nth = 1; nth <= 4; nth++) {
        memset(x[1], 0xff, sizeof x[1]);
        memset(o[1], 0xff, sizeof o[1]);
        forward_fused(&spec, x[1], o[1], nth);
        failed |= memcmp(x[0], x[1], sizeof x[0]) != 0 || memcmp(o[0], o[1], sizeof o[0]) != 0;
    }
    if (failed)
        fputs("bert_embedding: FAILED: fused and separate differ\n", stderr);
    else
        printf("forward: %d tokens of %d: fused and separate have the same bits, in any number of shares\n", TOKENS, DIM);

    norm_backward(&spec, x[1], dx);
    for (int nth = 1; nth <= 5 && !failed; nth += 2) {
        memset(&gradient, 0xff, offsetof(layer, w)); /* the tables alone */
        tables_backward(dx, nth);
        failed |= !is_the_sum("token", dx, tokens(), gradient.token[0]) ||
                  !is_the_sum("position", dx, positions(), gradient.position[0]) ||
                  !is_the_sum("segment", dx, segments(), gradient.segment[0]);
    }
    if (!failed)
        puts("backward: the gradients of the three tables are the sums over their tokens, rounded once");
    return failed;
}
