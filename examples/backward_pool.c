/* A training step on a thread pool like ggml's: each worker goes through the same list of nodes, computes share ith of nth of
 * each, and waits at a spin barrier before the next. The backward pass has two phases. They are two nodes, so the pool's barrier
 * separates them.
 *
 * Nodes: r, o = add_norm(x, y);  d_o = o - target, a loss;  phase 1;  phase 2. Results are bit-identical for any number of
 * workers.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 700, DIM = 200, WORKERS_MAX = 16 };

static float x[ROWS][DIM], y[ROWS][DIM], target[ROWS][DIM], w[DIM];

/* What a step computes. */
typedef struct step {
    float o[ROWS][DIM], r[ROWS][DIM], d_o[ROWS][DIM];
    float dx[ROWS][DIM], dw[DIM], db[DIM];
} step;

static step alone, together;

/* --- the graph: the same for every worker, and read only
 * ------------------------------------------------------------------------ */

typedef struct graph {
    nrg_norm_spec spec;
    nrg_norm_args forward;
    nrg_norm_backward_args backward;
    step *result;
} graph;

typedef nrg_status node(const graph *g, int ith, int nth);

static nrg_status forward(const graph *g, int ith, int nth) { return nrg_norm_forward(&g->spec, &g->forward, ith, nth); }

static nrg_status loss(const graph *g, int ith, int nth)
{
    for (int i = ROWS * ith / nth; i < ROWS * (ith + 1) / nth; i++)
        for (int j = 0; j < DIM; j++)
            g->result->d_o[i][j] = g->result->o[i][j] - target[i][j];
    return NRG_OK;
}

static nrg_status backward_rows(const graph *g, int ith, int nth) { return nrg_norm_backward(&g->spec, &g->backward, ith, nth); }

static nrg_status backward_columns(const graph *g, int ith, int nth)
{
    return nrg_norm_backward_reduce(&g->spec, &g->backward, ith, nth);
}

static node *const nodes[] = {forward, loss, backward_rows, backward_columns};
enum { NODES = sizeof nodes / sizeof nodes[0] };

/* --- the pool
 * ------------------------------------------------------------------------------------------------------------------- */

typedef struct pool {
    const graph *graph;
    int nth;
    atomic_int arrived, round;
} pool;

typedef struct worker {
    pool *pool;
    int ith;
} worker;

/* The last to arrive opens the barrier for the others. What was written before it is seen behind it. */
static void barrier(pool *p)
{
    int round = atomic_load(&p->round);
    if (atomic_fetch_add(&p->arrived, 1) == p->nth - 1) {
        atomic_store(&p->arrived, 0);
        atomic_fetch_add(&p->round, 1);
    } else {
        while (atomic_load(&p->round) == round)
            sched_yield(); /* there may be more workers than CPUs */
    }
}

static void *work(void *argument)
{
    worker *self = argument;
    for (int i = 0; i < NODES; i++) {
        nodes[i](self->pool->graph, self->ith, self->pool->nth); /* it was asked */
        barrier(self->pool);
    }
    return NULL;
}

/* What the calls will say, before the first worker starts: so none of them is left to decide by itself. */
static nrg_status ask(const graph *g)
{
    nrg_status status = nrg_norm_forward_check(&g->spec, &g->forward);
    if (status == NRG_OK)
        status = nrg_norm_backward_check(&g->spec, &g->backward);
    return status == NRG_OK ? nrg_norm_backward_reduce_check(&g->spec, &g->backward) : status;
}

static nrg_status run(const graph *g, int nth)
{
    const nrg_status status = ask(g);
    if (status != NRG_OK)
        return status;
    pthread_t threads[WORKERS_MAX];
    worker workers[WORKERS_MAX];
    pool p;
    p.graph = g;
    p.nth = nth;
    atomic_init(&p.arrived, 0);
    atomic_init(&p.round, 0);
    for (int i = 0; i < nth; i++) {
        workers[i].pool = &p;
        workers[i].ith = i;
        if (i && pthread_create(&threads[i], NULL, work, &workers[i]) != 0) {
            fprintf(stderr, "backward_pool: no thread\n");
            exit(1);
        }
    }
    work(&workers[0]); /* the caller is a worker, too */
    for (int i = 1; i < nth; i++)
        pthread_join(threads[i], NULL);
    return NRG_OK;
}

/* --- the step, on one thread and on many
 * ---------------------------------------------------------------------------------------- */

static graph make_graph(step *result)
{
    graph g;
    g.result = result;
    g.spec = nrg_norm_spec_rms(NRG_F32, DIM, 1e-6);
    g.forward = nrg_norm_args_init(ROWS, x, w, result->o);
    g.forward.y = y;
    g.forward.r = result->r;
    g.backward = nrg_norm_backward_args_init(ROWS, NULL, w, result->d_o, result->dx);
    g.backward.r = result->r;
    g.backward.dw = result->dw;
    g.backward.db = result->db;
    return g;
}

static float draw(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)((int)(state >> 16) - 32768) * 0x1p-14f;
}

int main(void)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < DIM; j++) {
            x[i][j] = draw();
            y[i][j] = draw();
            target[i][j] = draw();
        }
    for (int j = 0; j < DIM; j++)
        w[j] = draw();

    graph one = make_graph(&alone), many = make_graph(&together);
    size_t bytes = 0;
    nrg_status status = nrg_norm_backward_workspace(&one.spec, &one.backward, &bytes);
    void *workspace = malloc(bytes);
    one.backward.workspace = many.backward.workspace = workspace;
    one.backward.workspace_size = many.backward.workspace_size = bytes;
    for (int i = 0; i < NODES && status == NRG_OK; i++)
        status = nodes[i](&one, 0, 1);

    static const int counts[] = {1, 2, 3, 4, 7, WORKERS_MAX};
    int failed = status != NRG_OK;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && !failed; i++) {
        memset(&together, 0xff, sizeof together);
        status = run(&many, counts[i]);
        failed = status != NRG_OK || memcmp(&alone, &together, sizeof alone) != 0;
        if (!failed)
            printf("%2d workers: o, r, dx, dw and db of %d rows of %d have the bits of one thread\n", counts[i], ROWS, DIM);
    }
    if (failed)
        fprintf(stderr, "backward_pool: FAILED: %s\n", status != NRG_OK ? nrg_status_string(status) : "the bits differ");
    free(workspace);
    return failed;
}
