/* The public layer of channel normalization's backward pass: checks the arguments once, then calls through the table; and the
 * second phase, which needs no kernel.
 *
 * SPDX-License-Identifier: MIT */
#include "channel_spec.h"
#include "reduce.h"

enum { ARGS_SIZE_MIN = offsetof(nrg_channel_norm_backward_args, reserved) + sizeof(uint32_t) };

enum operand {
    D_O = 1,
    X = 2,
    Y = 4,
    W = 8,
    B = 16,
    STATISTICS = 32,
    RUNNING_MEAN = 64,
    RUNNING_VAR = 128,
    SUMS_IN = 256,
    DX = 512,
    DY = 1024,
    DW = 2048,
    DB = 4096,
    WORKSPACE = 8192,
    SUMS = 16384
};

/* Samples of a block: of their number alone, so that dw and db do not depend on threads. */
static size_t block_samples(size_t n)
{
    const size_t each = n / NRG_BLOCKS_MAX + (n % NRG_BLOCKS_MAX != 0);
    return each ? each : 1;
}

static size_t block_count(size_t n)
{
    const size_t each = block_samples(n);
    return n / each + (n % each != 0);
}

static nrg_status workspace_bytes(const nrg_channel_norm_spec *s, const nrg_channel_norm_backward_args *a, size_t *bytes)
{
    const size_t sums = s->over == NRG_OVER_BATCH ? 0 : (size_t)(a->dw != NULL) + (a->db != NULL);
    return product(s->channels, sums * block_count(a->n) * sizeof(double), bytes) ? NRG_OK : NRG_ERR_OVERFLOW;
}

/* What a call is for. */
enum purpose { GRADIENTS, REDUCTION, PARTIAL_SUMS };

static nrg_status check_options(const nrg_channel_norm_spec *s, const nrg_channel_norm_backward_args *a, enum purpose purpose)
{
    const int batch = s->over == NRG_OVER_BATCH, channels = batch || (s->groups ? s->groups : 1) == s->channels;
    if (s->statistics == NRG_STATISTICS_FOLDED)
        return NRG_ERR_COMBINATION;
    if (s->statistics == NRG_STATISTICS_RUNNING) {
        if (!a->running_mean || !a->running_var)
            return NRG_ERR_NULL;
        if (!channels || !s->centred || a->statistics || a->sums || purpose == PARTIAL_SUMS)
            return NRG_ERR_COMBINATION;
    }
    if (purpose == PARTIAL_SUMS ? !batch : a->sums && (!batch || a->dw || a->db))
        return NRG_ERR_COMBINATION;
    return NRG_OK;
}

/* Everything that is checked, and the job without a share. */
static nrg_status make_job(nrg_channel_norm_backward_job *job, channel_shape *shape, const nrg_channel_norm_spec *s,
                           const nrg_channel_norm_backward_args *a, int64_t *sums, int ith, int nth, enum purpose purpose)
{
    nrg_status status = check_channel_spec(s);
    if (status != NRG_OK)
        return status;
    if (a->reserved)
        return NRG_ERR_STRUCT_SIZE;
    if ((status = find_shape(shape, s, a->n, a->s)) != NRG_OK)
        return status;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    const int running = s->statistics == NRG_STATISTICS_RUNNING, partial = purpose == PARTIAL_SUMS;
    /* a part's sums are around the mean of all parts */
    const int needs_statistics = s->statistics == NRG_STATISTICS_GIVEN || partial || (a->sums && purpose == GRADIENTS);
    if (a->n && (!a->d_o || !a->x || (needs_statistics && !running && !a->statistics)))
        return NRG_ERR_NULL;
    if (partial && !sums)
        return NRG_ERR_NULL;
    if ((status = check_options(s, a, purpose)) != NRG_OK)
        return status;
    size_t space;
    if ((status = workspace_bytes(s, a, &space)) != NRG_OK)
        return status;
    if (space && !a->workspace)
        return NRG_ERR_NULL;
    if (space > a->workspace_size)
        return NRG_ERR_WORKSPACE;

    const nrg_dtype w_dtype = s->w_dtype ? s->w_dtype : s->dtype;
    const size_t row = shape->row, rows = shape->rows, c = s->channels, once = a->n ? 1 : 0, sets = a->n ? shape->sets : 0;
    /* what is not read or written is not looked at */
    const float *running_mean = running ? a->running_mean : NULL, *running_var = running ? a->running_var : NULL;
    const void *y = s->activation ? a->y : NULL, *b = s->activation ? a->b : NULL;
    const int64_t *sums_in = partial ? NULL : a->sums;
    void *dx = partial ? NULL : a->dx, *dy = partial ? NULL : a->dy;
    size_t d_o_stride = a->d_o_stride, x_stride = a->x_stride, y_stride = a->y_stride, dx_stride = a->dx_stride,
           dy_stride = a->dy_stride, none = 0;
    extent operands[15];
    extents all = {0, operands};
    if ((status = add_operand(&all, D_O, ANY_OPERAND, a->d_o, s->dtype, row, rows, &d_o_stride)) != NRG_OK ||
        (status = add_operand(&all, X, ANY_OPERAND, a->x, s->dtype, row, rows, &x_stride)) != NRG_OK ||
        (status = add_operand(&all, Y, ANY_OPERAND, y, s->dtype, row, rows, &y_stride)) != NRG_OK ||
        (status = add_operand(&all, W, ANY_OPERAND, a->w, w_dtype, c, once, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, B, ANY_OPERAND, b, w_dtype, c, once, &none)) != NRG_OK ||
        (status = add_words(&all, STATISTICS, ANY_OPERAND, a->statistics, sets, sizeof *a->statistics)) != NRG_OK ||
        (none = 0, status = add_operand(&all, RUNNING_MEAN, ANY_OPERAND, running_mean, NRG_F32, c, once, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, RUNNING_VAR, ANY_OPERAND, running_var, NRG_F32, c, once, &none)) != NRG_OK ||
        (status = add_words(&all, SUMS_IN, ANY_OPERAND, sums_in, sets, NRG_SUMS_WORDS * sizeof *sums_in)) != NRG_OK ||
        (status = add_operand(&all, DX, D_O | X | Y, dx, s->dtype, row, rows, &dx_stride)) != NRG_OK ||
        (status = add_operand(&all, DY, D_O | Y, dy, s->dtype, row, rows, &dy_stride)) != NRG_OK)
        return status;
    const int stream = wants_stream(s->store, &all);
    if (/* dw and db are written where there are no samples, too */
        (none = 0, status = add_operand(&all, DW, 0, a->dw, NRG_F32, c, 1, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, DB, 0, a->db, NRG_F32, c, 1, &none)) != NRG_OK ||
        (status = add_words(&all, WORKSPACE, 0, space ? a->workspace : NULL, space / 8, 8)) != NRG_OK ||
        (status = add_words(&all, SUMS, 0, partial ? sums : NULL, c, NRG_SUMS_WORDS * sizeof *sums)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    for (size_t set = 0; set < sets; set++)
        if ((sums_in && sums_in[set * NRG_SUMS_WORDS] < 1) || (a->statistics && a->statistics[set].count < 1))
            return NRG_ERR_COUNT;

    double *blocks = a->workspace;
    *job = (nrg_channel_norm_backward_job){
        .d_o = a->d_o,
        .x = a->x,
        .y = y,
        .w = a->w,
        .b = b,
        .dx = dx,
        .dy = dy,
        .dw = shape->groups ? NULL : a->dw,
        .db = shape->groups ? NULL : a->db,
        .block_dw = shape->groups && a->dw ? blocks : NULL,
        .block_db = shape->groups && a->db ? (a->dw ? blocks + block_count(a->n) * c : blocks) : NULL,
        .given = a->statistics,
        .fixed_mean = running_mean,
        .fixed_var = running_var,
        .given_sums = sums_in,
        .sums = partial ? sums : NULL,
        .n = a->n,
        .c = c,
        .s = a->s,
        .groups = shape->groups,
        .group_channels = shape->group_channels,
        .d_o_stride = d_o_stride,
        .x_stride = x_stride,
        .y_stride = y_stride,
        .dx_stride = dx_stride,
        .dy_stride = dy_stride,
        .segment = shape->segment,
        .block_samples = shape->groups && (a->dw || a->db) ? block_samples(a->n) : 1,
        .by_channel = !shape->groups,
        .nhwc = shape->nhwc,
        .centred = s->centred != 0,
        .w_f32 = w_dtype == NRG_F32,
        .stream = stream,
        .accumulate = a->accumulate != 0,
        .activation = s->activation,
        .eps = shape->eps,
    };
    return NRG_OK;
}

static nrg_status read_both(const nrg_channel_norm_spec **spec, nrg_channel_norm_spec *spec_copy,
                            const nrg_channel_norm_backward_args **args, nrg_channel_norm_backward_args *args_copy)
{
    if (!*spec || !*args)
        return NRG_ERR_NULL;
    *spec = read_struct(*spec, spec_copy, sizeof *spec_copy, CHANNEL_SPEC_SIZE_MIN);
    *args = read_struct(*args, args_copy, sizeof *args_copy, ARGS_SIZE_MIN);
    return *spec && *args ? NRG_OK : NRG_ERR_STRUCT_SIZE;
}

nrg_status nrg_channel_norm_backward_workspace(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                               size_t *bytes)
{
    nrg_channel_norm_spec spec_copy;
    nrg_channel_norm_backward_args args_copy;
    if (!bytes)
        return NRG_ERR_NULL;
    nrg_status status = read_both(&spec, &spec_copy, &args, &args_copy);
    if (status != NRG_OK || (status = check_channel_spec(spec)) != NRG_OK)
        return status;
    return args->reserved ? NRG_ERR_STRUCT_SIZE : workspace_bytes(spec, args, bytes);
}

/* Channels begin to end of dw and db where there are no samples. */
static void clear_gradients(float *dw, float *db, size_t begin, size_t end)
{
    for (size_t c = begin; c < end; c++) {
        if (dw)
            dw[c] = 0;
        if (db)
            db[c] = 0;
    }
}

static nrg_status backward(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int64_t *sums, int ith,
                           int nth, enum purpose purpose)
{
    nrg_channel_norm_spec spec_copy;
    nrg_channel_norm_backward_args args_copy;
    nrg_channel_norm_backward_job job;
    channel_shape shape;
    nrg_status status = read_both(&spec, &spec_copy, &args, &args_copy);
    if (status != NRG_OK || (status = make_job(&job, &shape, spec, args, sums, ith, nth, purpose)) != NRG_OK)
        return status;
    const size_t units = job.by_channel ? job.c : block_count(job.n) * job.groups;
    const size_t all = job.block_samples == 1 && !job.by_channel ? job.n * job.groups : units;
    job.begin = share(all, ith, nth);
    job.end = share(all, ith + 1, nth);
    if (!job.n) {
        if (job.by_channel && !job.accumulate)
            clear_gradients(job.dw, job.db, job.begin, job.end);
        for (size_t c = job.begin; c < job.end && job.sums; c++)
            memset(job.sums + c * NRG_SUMS_WORDS, 0, NRG_SUMS_WORDS * sizeof *job.sums);
        return NRG_OK;
    }
    if (job.begin == job.end || !(job.dx || job.dy || job.dw || job.db || job.block_dw || job.block_db || job.sums))
        return NRG_OK;
    NRG_ACTIVE_KERNEL(channel_norm_backward, spec->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_channel_norm_backward(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith,
                                     int nth)
{
    return backward(spec, args, NULL, ith, nth, GRADIENTS);
}

nrg_status nrg_channel_norm_backward_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                          int64_t *sums, int ith, int nth)
{
    return backward(spec, args, sums, ith, nth, PARTIAL_SUMS);
}

nrg_status nrg_channel_norm_backward_reduce(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args,
                                            int ith, int nth)
{
    nrg_channel_norm_spec spec_copy;
    nrg_channel_norm_backward_args args_copy;
    nrg_channel_norm_backward_job job;
    channel_shape shape;
    nrg_status status = read_both(&spec, &spec_copy, &args, &args_copy);
    if (status != NRG_OK || (status = make_job(&job, &shape, spec, args, NULL, ith, nth, REDUCTION)) != NRG_OK)
        return status;
    const size_t begin = share(job.c, ith, nth), end = share(job.c, ith + 1, nth), blocks = block_count(job.n);
    /* no samples, no blocks, no workspace: the sums are 0 */
    if (job.groups && args->dw)
        reduce(job.block_dw, job.c, blocks, begin, end, args->dw, 1, args->accumulate);
    if (job.groups && args->db)
        reduce(job.block_db, job.c, blocks, begin, end, args->db, 1, args->accumulate);
    return NRG_OK;
}
