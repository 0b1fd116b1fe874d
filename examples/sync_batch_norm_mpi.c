/* Synchronized batch norm over MPI. The samples of a batch are divided between ranks, and all ranks normalize with the statistics
 * of all samples. The layers are those of ResNet: batch norm + ReLU, and batch norm + residual + ReLU, forward and backward.
 *
 *   forward    sums of the rank's samples;  Allreduce;  statistics;  output with these statistics
 *   backward   sums of the rank's samples;  Allreduce;  dx and dy with these sums.  dw and db: Allreduce of each rank's sums
 *
 * The network carries integers, NRG_CHANNEL_NORM_SUMS_WORDS for each channel. So o, dx, dy, the statistics and the running
 * statistics are bit-identical to one process that has all samples, for each division of the samples.
 *
 * dw and db are added in f32 and in MPI's order, as data-parallel frameworks do. They are as accurate, but their last bits depend
 * on the ranks.
 *
 *   mpirun -n 4 sync_batch_norm_mpi
 *
 * Each rank also computes the full batch. The program fails if a bit differs.
 *
 * SPDX-License-Identifier: MIT */
#include "mpi_parts.h"

#include <math.h>

typedef struct layer {
    size_t n, c, s; /* of all ranks */
    nrg_layout layout;
    nrg_dtype dtype;
    int residual;
    cut parts;
} layer;

static const layer layers[] = {
    {32, 40, 49, NRG_LAYOUT_NCHW, NRG_F32, 0, EVEN},     /* a segment is a rank's samples */
    {20, 24, 196, NRG_LAYOUT_NHWC, NRG_BF16, 1, UNEVEN}, /* as many samples as divide every part */
    {12, 8, 784, NRG_LAYOUT_NHWC, NRG_F32, 0, UNEVEN},   /* likewise */
    {6, 8, 3136, NRG_LAYOUT_NCHW, NRG_F32, 1, UNEVEN},   /* a sample; of four ranks one has none */
    {4, 4, 12544, NRG_LAYOUT_NCHW, NRG_BF16, 1, EVEN},   /* 4096 positions of a sample */
    {3, 16, 49, NRG_LAYOUT_NCHW, NRG_F32, 1, EVEN},      /* the end of an epoch, with fewer samples than four ranks */
};

/* The batch of one process: some samples, or all. */
typedef struct batch {
    size_t n, s;
    const char *x, *y, *d_o; /* y: NULL without a residual */
    const float *w, *b;
    char *o, *dx, *dy; /* dy: NULL without a residual */
    nrg_channel_statistics *statistics;
    float *running_mean, *running_var, *dw, *db;
} batch;

static nrg_channel_norm_args forward_args(const batch *t)
{
    nrg_channel_norm_args args = nrg_channel_norm_args_init(t->n, t->s, t->x, t->w, t->b, t->o);
    args.y = t->y;
    args.statistics = t->statistics;
    args.running_mean_in = args.running_mean = t->running_mean;
    args.running_var_in = args.running_var = t->running_var;
    return args;
}

static nrg_channel_norm_backward_args backward_args(const batch *t)
{
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(t->n, t->s, t->x, t->w, t->d_o, t->dx);
    args.y = t->y;
    args.b = t->b;
    args.statistics = t->statistics;
    args.dy = t->dy;
    args.dw = t->dw;
    args.db = t->db;
    return args;
}

/* A training step of one process. */
static void step_alone(const nrg_channel_norm_spec *spec, const batch *t)
{
    nrg_channel_norm_args forward = forward_args(t);
    must(nrg_channel_norm_forward(spec, &forward, 0, 1));
    nrg_channel_norm_backward_args backward = backward_args(t);
    must(nrg_channel_norm_backward(spec, &backward, 0, 1));
}

/* The same with the samples of all ranks. A rank with several threads gives each its (ith, nth) of every call, with a barrier
 * between calls. */
static void step_together(const nrg_channel_norm_spec *spec, const batch *t, int64_t *sums)
{
    nrg_channel_norm_args forward = forward_args(t);
    must(nrg_channel_norm_sums(spec, &forward, sums, 0, 1));
    add_over_ranks(sums, spec->channels);
    must(nrg_channel_norm_statistics(spec, &forward, sums, 0, 1)); /* updates the running statistics, alike on all ranks */

    nrg_channel_norm_spec given = *spec;
    given.source = NRG_STATISTICS_GIVEN;
    forward.statistics_in = t->statistics;
    forward.statistics = NULL;
    forward.running_mean = forward.running_var = NULL;
    forward.running_mean_in = forward.running_var_in = NULL;
    must(nrg_channel_norm_forward(&given, &forward, 0, 1));

    nrg_channel_norm_backward_args backward = backward_args(t);
    must(nrg_channel_norm_backward_sums(&given, &backward, sums, 0, 1)); /* and the rank's own dw and db, for add_gradients */
    add_over_ranks(sums, spec->channels);
    backward.sums = sums;
    backward.dw = backward.db = NULL;
    must(nrg_channel_norm_backward(&given, &backward, 0, 1));
}

/* The ranks' own gradients, added up in place. Returns how far that is from one process's, as a multiple of what is allowed: the
 * ranks' values are rounded to f32, each addition rounds, and so does the one process. */
static double add_gradients(const team *t, float *mine, const float *alone, size_t c)
{
    double *magnitude = allocate(c * sizeof *magnitude), worst = 0;
    for (size_t i = 0; i < c; i++)
        magnitude[i] = fabs((double)mine[i]);
    MPI_Allreduce(MPI_IN_PLACE, magnitude, (int)c, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, mine, (int)c, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < c; i++) {
        double allowed = (t->ranks + 2) * 0x1p-24 * magnitude[i];
        double error = fabs((double)mine[i] - (double)alone[i]) / fmax(allowed, 0x1p-126);
        if (!(error <= worst)) /* so that a NaN stays */
            worst = error;
    }
    free(magnitude);
    return worst;
}

static void allocate_results(batch *t, size_t bytes, size_t c, int residual)
{
    t->o = allocate(bytes);
    t->dx = allocate(bytes);
    t->dy = residual ? allocate(bytes) : NULL;
    t->statistics = allocate(c * sizeof *t->statistics);
    t->running_mean = allocate(c * sizeof(float));
    t->running_var = allocate(c * sizeof(float));
    t->dw = allocate(c * sizeof(float));
    t->db = allocate(c * sizeof(float));
    for (size_t i = 0; i < c; i++) { /* as a new layer has them */
        t->running_mean[i] = 0;
        t->running_var[i] = 1;
    }
}

static void free_results(const batch *t)
{
    free(t->o);
    free(t->dx);
    free(t->dy);
    free(t->statistics);
    free(t->running_mean);
    free(t->running_var);
    free(t->dw);
    free(t->db);
}

/* The rank's results with those of the one process, of whose tensors they are `bytes` bytes from `begin` on. */
static int compare(const team *t, const layer *l, const batch *mine, const batch *alone, size_t begin, size_t bytes)
{
    const size_t floats = l->c * sizeof(float);
    int well = same(t, "o", mine->o, alone->o + begin, bytes) && same(t, "dx", mine->dx, alone->dx + begin, bytes) &&
               (!l->residual || same(t, "dy", mine->dy, alone->dy + begin, bytes)) &&
               same(t, "statistics", mine->statistics, alone->statistics, l->c * sizeof *mine->statistics) &&
               same(t, "running_mean", mine->running_mean, alone->running_mean, floats) &&
               same(t, "running_var", mine->running_var, alone->running_var, floats);
    /* every rank has a part in this, whatever it has found */
    const double dw = add_gradients(t, mine->dw, alone->dw, l->c), db = add_gradients(t, mine->db, alone->db, l->c);
    if (!(dw <= 1 && db <= 1)) {
        fprintf(stderr, "rank %d of %d: dw, db: %.3g, %.3g times as far from one process's as is allowed\n", t->rank, t->ranks,
                dw, db);
        well = 0;
    }
    if (!is_alive(alone->running_mean, l->c) || !is_alive(alone->running_var, l->c) || !is_alive(alone->dw, l->c) ||
        !is_alive(alone->db, l->c)) {
        fprintf(stderr, "rank %d of %d: nothing came out\n", t->rank, t->ranks);
        well = 0;
    }
    return well;
}

static int run(const team *t, const layer *l)
{
    nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(l->dtype, l->c, 1e-5);
    spec.layout = l->layout;
    spec.w_dtype = NRG_F32;
    spec.activation = NRG_ACT_RELU;
    spec.segment = common_segment(t, l->n, l->parts, l->s);

    const size_t sample = l->c * l->s * element_size(l->dtype), whole = l->n * sample;
    char *tensors = allocate(3 * whole);
    float *weights = allocate(2 * l->c * sizeof *weights);
    fill(tensors, l->dtype, 3 * l->n * l->c * l->s);
    fill(weights, NRG_F32, 2 * l->c);
    batch alone = {.n = l->n, .s = l->s, .x = tensors, .d_o = tensors + whole, .w = weights, .b = weights + l->c};
    alone.y = l->residual ? tensors + 2 * whole : NULL;
    allocate_results(&alone, whole, l->c, l->residual);
    step_alone(&spec, &alone);

    const size_t first = part_begin(t, l->n, l->parts, t->rank), end = part_begin(t, l->n, l->parts, t->rank + 1);
    const size_t begin = first * sample, bytes = (end - first) * sample;
    batch mine = alone; /* its inputs, from `begin` on */
    mine.n = end - first;
    mine.x += begin;
    mine.d_o += begin;
    mine.y = l->residual ? mine.y + begin : NULL;
    allocate_results(&mine, bytes, l->c, l->residual);
    int64_t *sums = allocate(l->c * NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *sums);
    step_together(&spec, &mine, sums);

    const int well = on_all_ranks(compare(t, l, &mine, &alone, begin, bytes));
    if (t->rank == 0) {
        printf("%s %-4s %zu channels of %zu, samples: ", l->layout == NRG_LAYOUT_NCHW ? "NCHW" : "NHWC", nrg_dtype_name(l->dtype),
               l->c, l->s);
        print_parts(t, l->n, l->parts);
        printf(": %s%s%s\n", well ? "o, dx, " : "FAILED", well && l->residual ? "dy, " : "",
               well ? "statistics and running statistics have the bits of one process; dw and db are as accurate" : "");
    }
    free(sums);
    free_results(&mine);
    free_results(&alone);
    free(tensors);
    free(weights);
    return well;
}

int main(int argc, char **argv)
{
    const team t = join(&argc, &argv);
    int well = 1;
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        well &= run(&t, &layers[i]);
    MPI_Finalize();
    return !well;
}
