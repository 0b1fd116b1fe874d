/* RMSNorm of rows whose elements are divided between ranks, as in tensor parallelism: OLMo 2's norm of q across all heads, where
 * each rank has some of the heads. With spec.centred it is LayerNorm.
 *
 *   sums of the rank's elements;  Allreduce;  statistics;  output with these statistics and the rank's elements of w
 *
 * A row is a sample of dim channels with one position, in one group. The network carries integers, NRG_CHANNEL_NORM_SUMS_WORDS
 * for each row. So the output is bit-identical to nrg_channel_norm_forward in one process that has the full rows, for each
 * division. nrg_norm_forward adds in another order, so its last bits may differ.
 *
 * The q of a rank is either a separate array, or part of rows of q, k and v. A rank's product with its columns of the three
 * matrices gives such rows. Their stride is longer than a row of q, and q is normalized in place.
 *
 *   mpirun -n 4 tensor_parallel_rms_norm_mpi
 *
 * Each rank also computes the full rows. The program fails if a bit differs.
 *
 * SPDX-License-Identifier: MIT */
#include "mpi_parts.h"

typedef struct layer {
    size_t tokens, heads, head; /* of all ranks; head: elements of one */
    nrg_dtype dtype;
    int in_qkv;
    cut parts;
} layer;

static const layer layers[] = {
    {33, 40, 128, NRG_F32, 0, EVEN},   /* a segment is what a rank has of a row */
    {17, 24, 64, NRG_BF16, 1, UNEVEN}, /* as many heads as divide every part */
    {5, 13, 80, NRG_F32, 1, UNEVEN},   /* likewise */
    {3, 256, 128, NRG_F32, 1, EVEN},   /* the longest segment, a part of what a rank has */
};

/* The rank's channels of every row; args.w is its slice of the weights, args.statistics is of all ranks. A rank with several
 * threads gives each its (ith, nth) of every call, with a barrier between calls. */
static void rms_norm_together(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args)
{
    int64_t *sums = allocate(args->samples * NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *sums);
    must(nrg_channel_norm_sums(spec, args, sums, 0, 1));
    add_over_ranks(sums, args->samples);
    must(nrg_channel_norm_statistics(spec, args, sums, 0, 1));
    nrg_channel_norm_spec given = *spec;
    given.source = NRG_STATISTICS_GIVEN;
    nrg_channel_norm_args elements = *args;
    elements.statistics_in = args->statistics;
    elements.statistics = NULL;
    must(nrg_channel_norm_forward(&given, &elements, 0, 1));
    free(sums);
}

static int run(const team *t, const layer *l)
{
    const size_t size = element_size(l->dtype), dim = l->heads * l->head, row = dim * size;
    nrg_channel_norm_spec spec = nrg_channel_norm_spec_group(l->dtype, dim, 1, 1e-6);
    spec.centred = 0;
    spec.w_dtype = NRG_F32;
    spec.segment = common_segment(t, l->heads, l->parts, l->head);

    char *x = allocate(l->tokens * row), *o = allocate(l->tokens * row);
    float *w = allocate(dim * sizeof *w), *rstd = allocate(l->tokens * sizeof *rstd);
    nrg_channel_statistics *statistics = allocate(2 * l->tokens * sizeof *statistics);
    fill(x, l->dtype, l->tokens * dim);
    fill(w, NRG_F32, dim);
    nrg_channel_norm_args alone = nrg_channel_norm_args_init(l->tokens, 1, x, w, NULL, o);
    alone.rstd = rstd;
    alone.statistics = statistics;
    must(nrg_channel_norm_forward(&spec, &alone, 0, 1));

    const size_t begin = part_begin(t, l->heads, l->parts, t->rank) * l->head;
    const size_t channels = part_begin(t, l->heads, l->parts, t->rank + 1) * l->head - begin;
    const size_t slice = channels * size, stride = l->in_qkv ? 3 * slice : slice;
    enum { K_AND_V = 0x5a };
    char *q = allocate(l->tokens * stride);
    memset(q, K_AND_V, l->tokens * stride);
    for (size_t i = 0; i < l->tokens; i++)
        memcpy(q + i * stride, x + i * row + begin * size, slice);
    nrg_channel_norm_args mine = nrg_channel_norm_args_init(l->tokens, 1, q, w + begin, NULL, q);
    mine.x_stride = mine.o_stride = stride;
    mine.statistics = statistics + l->tokens;
    spec.channels = channels;
    rms_norm_together(&spec, &mine);

    int well = same(t, "statistics", mine.statistics, alone.statistics, l->tokens * sizeof *statistics);
    for (size_t i = 0; i < l->tokens && well; i++) {
        well = same(t, "o", q + i * stride, o + i * row + begin * size, slice);
        for (size_t j = slice; j < stride && well; j++)
            if (q[i * stride + j] != K_AND_V) {
                fprintf(stderr, "rank %d of %d: k or v was written to\n", t->rank, t->ranks);
                well = 0;
            }
    }
    if (well && !is_alive(rstd, l->tokens)) {
        fprintf(stderr, "rank %d of %d: nothing came out\n", t->rank, t->ranks);
        well = 0;
    }
    well = on_all_ranks(well);
    if (t->rank == 0) {
        printf("%-4s %zu tokens%s, heads of %zu: ", nrg_dtype_name(l->dtype), l->tokens,
               l->in_qkv ? " in rows of q, k and v" : "", l->head);
        print_parts(t, l->heads, l->parts);
        printf(": %s\n", well ? "o and statistics have the bits of one process" : "FAILED");
    }
    free(x);
    free(o);
    free(w);
    free(rstd);
    free(q);
    free(statistics);
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
