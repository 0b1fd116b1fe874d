/* Compares ggml's ops with nrg in ggml's custom ops, for a layer of a Llama-style and a Qwen3-style model in ggml's graph.
 *
 * Prints a Markdown table of both times and of the difference between the results. Both versions run alternately in one process.
 *
 * The exit status is 1 if a difference exceeds its bound, if nrg did not support a node, or if a node failed.
 *
 *     layer [SECONDS]        seconds for each case; default 0.2
 *
 * SPDX-License-Identifier: MIT */
#include "graphs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_TOKENS = 512, RUNS = 400 };

/* As Llama 3.2 1B and Qwen3 1.7B have them. */
static const shape shapes[] = {
    {"Llama", 2048, 32, 8, 64, 8192, 0, GGML_ROPE_TYPE_NORMAL, 500000, GGML_TYPE_F16},
    {"Qwen3", 2048, 16, 8, 128, 6144, 1, GGML_ROPE_TYPE_NEOX, 1000000, GGML_TYPE_Q8_0},
};

/* Limits of the difference between both forms: its root mean square over that of ggml's result. An op differs by some roundings
 * of f32, and by ggml's angles (powers of freq_base by repeated multiplication: 1e-4 at position 1000). If the result is
 * rounded to q8_0, a number next to a tie moves by a step, which is a 127th of its block's largest. In a layer, this happens to
 * the operand of a product, whose result is rounded again: twice, a difference d grows to the root of d times a step. It stays
 * below the error of rounding to q8_0, about 1e-2. */
static const double op_bound = 1e-4, q8_bound = 1e-3, layer_bound = 1e-2;

static double bound_of(graph_op op, const shape *s)
{
    if (op == OP_LAYER)
        return layer_bound;
    return op == OP_QUANTIZE || op == OP_PRODUCTS || (op == OP_HEADS && s->k_type == GGML_TYPE_Q8_0) ? q8_bound : op_bound;
}

static const char *names[OP_COUNT] = {"`RMS_NORM`, `MUL`",
                                      "`ADD`, `RMS_NORM`, `MUL`",
                                      "",
                                      "`SOFT_MAX` with mask, scale",
                                      "`GLU` swiglu, two tensors",
                                      "`CPY` to q8_0",
                                      "three products of one operand, q8_0",
                                      "**the layer**"};

static const char *name_of(graph_op op, const shape *s)
{
    if (op != OP_HEADS)
        return names[op];
    return s->qk_norm ? "`RMS_NORM`, `MUL`, `ROPE` of q and k; `SET_ROWS` of k, q8_0" : "`ROPE` of q and k; `SET_ROWS` of k, f16";
}

/* ---- data ---- */

static void die(const char *what)
{
    fprintf(stderr, "layer: %s\n", what);
    exit(2);
}

static uint32_t drawn = 1;
static float draw(void)
{
    drawn = drawn * 1664525u + 1013904223u;
    return (float)((int)(drawn >> 16) - 32768) * 0x1p-15f;
}

/* Any type: f32 numbers, of which ggml makes what the tensor holds. */
static void fill(struct ggml_tensor *t, float middle, float width)
{
    const size_t n = (size_t)ggml_nelements(t);
    float *x = malloc(n * sizeof *x);
    char *bytes = malloc(ggml_nbytes(t));
    if (!x || !bytes)
        die("no memory");
    for (size_t i = 0; i < n; i++)
        x[i] = middle + width * draw();
    if (t->type == GGML_TYPE_F32)
        memcpy(bytes, x, n * sizeof *x);
    else
        ggml_quantize_chunk(t->type, x, bytes, 0, ggml_nrows(t), t->ne[0], NULL);
    ggml_backend_tensor_set(t, bytes, 0, ggml_nbytes(t));
    free(x);
    free(bytes);
}

static void same_bytes(struct ggml_tensor *to, const struct ggml_tensor *from)
{
    char *bytes = malloc(ggml_nbytes(from));
    if (!bytes)
        die("no memory");
    ggml_backend_tensor_get(from, bytes, 0, ggml_nbytes(from));
    ggml_backend_tensor_set(to, bytes, 0, ggml_nbytes(from));
    free(bytes);
}

/* Rows of [keys] for each token: what the token may not see. */
static void fill_positions(const model *m)
{
    const int keys = m->first + m->tokens;
    static float mask[MOST_TOKENS * SLOTS];
    static int32_t positions[MOST_TOKENS];
    static int64_t rows[MOST_TOKENS];
    for (int t = 0; t < m->tokens; t++) {
        positions[t] = m->first + t;
        rows[t] = m->first + t;
        for (int j = 0; j < keys; j++)
            mask[t * keys + j] = j <= m->first + t ? 0 : -INFINITY;
    }
    ggml_backend_tensor_set(m->positions, positions, 0, ggml_nbytes(m->positions));
    ggml_backend_tensor_set(m->rows, rows, 0, ggml_nbytes(m->rows));
    ggml_backend_tensor_set(m->mask, mask, 0, ggml_nbytes(m->mask));
}

static struct ggml_tensor *weight(struct ggml_context *c, int in, int out)
{
    return ggml_new_tensor_2d(c, GGML_TYPE_Q8_0, in, out);
}

static struct ggml_tensor *floats(struct ggml_context *c, int n0, int n1, int n2)
{
    return ggml_new_tensor_3d(c, GGML_TYPE_F32, n0, n1, n2);
}

static void make_model(model *m, const shape *s, int tokens, struct ggml_context *c, ggml_backend_t backend)
{
    const int kv = s->kv_heads * s->head;
    memset(m, 0, sizeof *m);
    m->s = s;
    m->tokens = tokens;
    m->first = SLOTS - tokens; /* so that either batch sees as many keys */
    m->norm1 = floats(c, s->dim, 1, 1), m->norm2 = floats(c, s->dim, 1, 1);
    m->q_norm = floats(c, s->head, 1, 1), m->k_norm = floats(c, s->head, 1, 1);
    m->wq = weight(c, s->dim, s->heads * s->head), m->wk = weight(c, s->dim, kv), m->wv = weight(c, s->dim, kv);
    m->wo = weight(c, s->heads * s->head, s->dim);
    m->gate = weight(c, s->dim, s->ff), m->up = weight(c, s->dim, s->ff), m->down = weight(c, s->ff, s->dim);
    for (int i = 0; i < CACHES; i++) {
        m->k_cache[i] = ggml_new_tensor_2d(c, s->k_type, kv, SLOTS);
        m->v_cache[i] = ggml_new_tensor_2d(c, GGML_TYPE_F16, SLOTS, kv);
        m->scores[i] = floats(c, SLOTS, tokens, s->heads);
    }
    m->x = floats(c, s->dim, tokens, 1), m->y = floats(c, s->dim, tokens, 1);
    m->q = floats(c, s->head, s->heads, tokens), m->k = floats(c, s->head, s->kv_heads, tokens);
    m->a = floats(c, s->ff, tokens, 1), m->b = floats(c, s->ff, tokens, 1);
    m->mask = floats(c, SLOTS, tokens, 1);
    m->positions = ggml_new_tensor_1d(c, GGML_TYPE_I32, tokens), m->rows = ggml_new_tensor_1d(c, GGML_TYPE_I64, tokens);
    if (!ggml_backend_alloc_ctx_tensors(c, backend))
        die("no memory for a model");

    struct ggml_tensor *norms[] = {m->norm1, m->norm2, m->q_norm, m->k_norm};
    struct ggml_tensor *weights[] = {m->wq, m->wk, m->wv, m->wo, m->gate, m->up, m->down};
    struct ggml_tensor *others[] = {m->x, m->y, m->q, m->k, m->a, m->b, m->k_cache[0], m->v_cache[0], m->scores[0]};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        fill(norms[i], 1, 0.2f);
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        fill(weights[i], 0, sqrtf(3 / (float)weights[i]->ne[0])); /* products keep the size of what goes in */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        fill(others[i], 0, 2);
    same_bytes(m->k_cache[1], m->k_cache[0]);
    same_bytes(m->v_cache[1], m->v_cache[0]);
    same_bytes(m->scores[1], m->scores[0]);
    fill_positions(m);
}

/* ---- comparing ---- */

static float *values(const struct ggml_tensor *t)
{
    const size_t n = (size_t)ggml_nelements(t);
    float *x = malloc(n * sizeof *x);
    char *bytes = malloc(ggml_nbytes(t));
    if (!x || !bytes)
        die("no memory");
    ggml_backend_tensor_get(t, bytes, 0, ggml_nbytes(t));
    if (t->type == GGML_TYPE_F32)
        memcpy(x, bytes, n * sizeof *x);
    else
        ggml_get_type_traits(t->type)->to_float(bytes, x, (int64_t)n);
    free(bytes);
    return x;
}

/* NaN where either has one. */
static double difference(const struct ggml_tensor *ours, const struct ggml_tensor *theirs)
{
    float *a = values(ours), *b = values(theirs);
    double of_difference = 0, of_theirs = 0;
    for (int64_t i = 0; i < ggml_nelements(theirs); i++) {
        of_difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        of_theirs += (double)b[i] * (double)b[i];
    }
    free(a);
    free(b);
    return sqrt(of_difference / of_theirs);
}

/* ---- timing ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Microseconds. */
static double run(ggml_backend_t backend, const graph *g)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (ggml_backend_graph_compute(backend, g->g) != GGML_STATUS_SUCCESS)
        die("a graph was not computed");
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) * 1e-3;
}

typedef struct cell {
    double us[2]; /* of ggml's, of nrg's */
} cell;

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_size);
    return x[n / 2];
}

/* Both ways in turn, each first every other time. */
static cell time_both(ggml_backend_t backend, graph *both, double seconds, int times)
{
    static double took[2][RUNS];
    const int64_t begin = ggml_time_us();
    int n = 0;
    while (n < 3 || (n < RUNS && (double)(ggml_time_us() - begin) < seconds * 1e6)) {
        took[n % 2][n] = run(backend, &both[n % 2]);
        took[1 - n % 2][n] = run(backend, &both[1 - n % 2]);
        n++;
    }
    return (cell){{median(took[0], n) / times, median(took[1], n) / times}};
}

static void print_cell(const cell *c)
{
    static const char *const units[] = {"µs", "ms", "s"};
    double scale = 1;
    int unit = 0;
    for (; unit < 2 && c->us[0] * scale >= 999.5; unit++)
        scale *= 1e-3;
    printf(" %.3g → %.3g %s, %.2f |", c->us[0] * scale, c->us[1] * scale, units[unit], c->us[0] / c->us[1]);
}

/* One op or layer with one number of tokens: times with one thread and two, and the worst difference. */
static int measure(ggml_backend_t backend, ggml_backend_set_n_threads_t set_threads, const model *m, const nrg_ggml_rope *rope,
                   graph_op op, int q8, double seconds, cell *cells, double *worst)
{
    const int times =
        op == OP_LAYER || op == OP_PRODUCTS || m->tokens > 1 ? 1 : 64; /* what starting a graph costs is not the op's */
    int wrong = 0;
    graph both[2];
    for (int way = 0; way < 2; way++)
        if (graph_build(&both[way], m, backend, rope, op, times, way, q8))
            die("no memory for a graph");
    for (int threads = 1; threads <= 2; threads++) {
        set_threads(backend, threads);
        run(backend, &both[0]);
        run(backend, &both[1]);
        double apart = difference(both[1].out[0], both[0].out[0]);
        if (both[0].out[1])
            apart = fmax(apart, difference(both[1].out[1], both[0].out[1]));
        if (op == OP_HEADS || op == OP_LAYER)
            apart = fmax(apart, difference(m->k_cache[1], m->k_cache[0]));
        if (!(apart <= *worst)) /* so that a NaN stays */
            *worst = apart;
        cells[threads - 1] = time_both(backend, both, seconds, times);
    }
    if (both[1].fallbacks || both[1].nrg.failed) {
        fprintf(stderr, "layer: %s: %d nodes not served; a node that ran said: %s\n", name_of(op, m->s), both[1].fallbacks,
                nrg_status_string((nrg_status)both[1].nrg.failed));
        wrong = 1;
    }
    graph_free(&both[0]);
    graph_free(&both[1]);
    return wrong;
}

static nrg_ggml_rope make_rope(const shape *s)
{
    nrg_ggml_rope rope;
    memset(&rope, 0, sizeof rope);
    rope.spec = nrg_rope_spec_init((size_t)s->head, (nrg_rope_mode)s->rope_mode, s->freq_base);
    rope.threads = 2;
    rope.workspace_size = nrg_ggml_rope_workspace(&rope, (size_t)s->head, (size_t)s->heads, (size_t)s->kv_heads, MOST_TOKENS);
    rope.workspace = calloc(1, rope.workspace_size);
    if (!rope.workspace)
        die("no memory for a table of cosines");
    return rope;
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 0.2;
    int wrong = 0;
    ggml_time_init();
    ggml_backend_load_all();
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_t backend = device ? ggml_backend_dev_init(device, NULL) : NULL;
    if (!backend)
        die("ggml has no CPU backend here");
    ggml_backend_set_n_threads_t set_threads = (ggml_backend_set_n_threads_t)ggml_backend_reg_get_proc_address(
        ggml_backend_dev_backend_reg(device), "ggml_backend_set_n_threads");
    if (!set_threads)
        die("the backend's number of threads cannot be set");
    const int q8 = graph_takes_q8(backend);
    printf("ggml %s, %s; products %s an operand of q8_0. ggml → nrg, and ggml's time over nrg's.\n", ggml_version(),
           ggml_backend_dev_description(device), q8 ? "take" : "do not take");

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *s = &shapes[i];
        static cell cells[OP_COUNT][4];
        double worst[OP_COUNT] = {0};
        nrg_ggml_rope rope = make_rope(s);
        for (int batch = 0; batch < 2; batch++) {
            const struct ggml_init_params params = {64 * ggml_tensor_overhead(), NULL, true};
            struct ggml_context *c = ggml_init(params);
            model m;
            make_model(&m, s, batch ? MOST_TOKENS : 1, c, backend);
            ggml_backend_buffer_t buffer = m.x->buffer;
            for (int op = 0; op < OP_COUNT; op++)
                wrong |= measure(backend, set_threads, &m, &rope, (graph_op)op, q8, seconds, &cells[op][2 * batch], &worst[op]);
            ggml_backend_buffer_free(buffer);
            ggml_free(c);
        }
        free(rope.workspace);

        printf("\n| %s: dim %d, %d/%d heads of %d, ff %d | 1 token, 1 thread | 2 threads | 512 tokens, 1 thread | 2 threads | "
               "differ by |\n"
               "| --- | --- | --- | --- | --- | --- |\n",
               s->name, s->dim, s->heads, s->kv_heads, s->head, s->ff);
        for (int op = 0; op < OP_COUNT; op++) {
            const double bound = bound_of((graph_op)op, s);
            printf("| %s |", name_of((graph_op)op, s));
            for (int j = 0; j < 4; j++)
                print_cell(&cells[op][j]);
            printf(" %.1e |\n", worst[op]);
            if (!(worst[op] <= bound)) {
                fprintf(stderr, "layer: %s, %s: beyond the bound of %g\n", s->name, name_of((graph_op)op, s), bound);
                wrong = 1;
            }
        }
    }
    ggml_backend_free(backend);
    return wrong;
}
