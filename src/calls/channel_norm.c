/* The public layer of channel normalization: checks the arguments once, then calls through the table; and what needs no kernel.
 *
 * SPDX-License-Identifier: MIT */
#include "channel_spec.h"
#include "../exact/channel_sums.h"
#include "../exact/element.h"

enum { ARGS_SIZE_MIN = offsetof(nrg_channel_norm_args, o_stride) + sizeof(size_t) };

enum operand {
    X = 1,
    Y = 2,
    W = 4,
    B = 8,
    O = 16,
    MEAN = 32,
    RSTD = 64,
    STATISTICS = 128,
    RUNNING_MEAN = 256,
    RUNNING_VAR = 512,
    SUMS = 1024
};

/* Sets whose running statistics are those of one channel each. */
static int sets_are_channels(const nrg_channel_norm_spec *s)
{
    return s->over == NRG_OVER_BATCH || (s->groups ? s->groups : 1) == s->channels;
}

/* 1/(batches + 1), or the spec's momentum. */
static double momentum_of(const nrg_channel_norm_spec *s, const nrg_channel_norm_args *a)
{
    return s->cumulative ? 1 / ((double)a->batches + 1) : s->momentum;
}

/* What does not depend on the data: the options of an args that belong to other options. */
static nrg_status check_options(const nrg_channel_norm_spec *s, const nrg_channel_norm_args *a)
{
    const int running = a->running_mean || a->running_var;
    if (s->statistics == NRG_STATISTICS_RUNNING) {
        if (!a->running_mean || !a->running_var)
            return NRG_ERR_NULL;
    } else if (running && s->statistics != NRG_STATISTICS_COMPUTE)
        return NRG_ERR_COMBINATION;
    if (running && (!a->running_mean || !a->running_var || !sets_are_channels(s) || !s->centred))
        return NRG_ERR_COMBINATION;
    if (s->statistics == NRG_STATISTICS_FOLDED && (a->mean || a->rstd || a->statistics))
        return NRG_ERR_COMBINATION;
    return NRG_OK;
}

/* Statistics and running statistics that are read, and then those that are written. */
static nrg_status add_known(extents *all, const nrg_channel_norm_spec *s, const nrg_channel_norm_args *a, size_t sets)
{
    size_t none = 0;
    nrg_status status;
    if (s->statistics == NRG_STATISTICS_GIVEN)
        return add_words(all, STATISTICS, ANY_OPERAND, a->statistics, sets, sizeof *a->statistics);
    if (s->statistics != NRG_STATISTICS_RUNNING)
        return NRG_OK;
    if ((status = add_operand(all, RUNNING_MEAN, ANY_OPERAND, a->running_mean, NRG_F32, s->channels, sets != 0, &none)) != NRG_OK)
        return status;
    none = 0;
    return add_operand(all, RUNNING_VAR, ANY_OPERAND, a->running_var, NRG_F32, s->channels, sets != 0, &none);
}

static nrg_status add_statistics(extents *all, const nrg_channel_norm_spec *s, const nrg_channel_norm_args *a, size_t sets)
{
    const size_t once = sets ? 1 : 0;
    size_t none = 0;
    nrg_status status;
    if ((status = add_operand(all, MEAN, 0, a->mean, NRG_F32, sets, once, &none)) != NRG_OK ||
        (none = 0, status = add_operand(all, RSTD, 0, a->rstd, NRG_F32, sets, once, &none)) != NRG_OK)
        return status;
    if (s->statistics != NRG_STATISTICS_GIVEN &&
        (status = add_words(all, STATISTICS, 0, a->statistics, sets, sizeof *a->statistics)) != NRG_OK)
        return status;
    if (s->statistics != NRG_STATISTICS_COMPUTE)
        return NRG_OK;
    none = 0;
    if ((status = add_operand(all, RUNNING_MEAN, 0, a->running_mean, NRG_F32, s->channels, once, &none)) != NRG_OK)
        return status;
    none = 0;
    return add_operand(all, RUNNING_VAR, 0, a->running_var, NRG_F32, s->channels, once, &none);
}

static nrg_status forward(const nrg_channel_norm_spec *s, const nrg_channel_norm_args *a, int ith, int nth)
{
    channel_shape shape;
    nrg_status status = check_channel_spec(s);
    if (status != NRG_OK || (status = find_shape(&shape, s, a->n, a->s)) != NRG_OK)
        return status;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    const int given = s->statistics == NRG_STATISTICS_GIVEN, folded = s->statistics == NRG_STATISTICS_FOLDED;
    const int fixed = s->statistics == NRG_STATISTICS_RUNNING;
    if (a->n && (!a->x || !a->o || (given && !a->statistics) || (folded && !a->w)))
        return NRG_ERR_NULL;
    if ((status = check_options(s, a)) != NRG_OK)
        return status;
    const int update = !fixed && a->running_mean;
    if (update && a->n && (s->over == NRG_OVER_BATCH ? shape.rows * (shape.nhwc ? 1 : a->s) : a->s) == 1)
        return NRG_ERR_COUNT;

    const nrg_dtype w_dtype = s->w_dtype ? s->w_dtype : s->dtype;
    const size_t once = a->n ? 1 : 0;
    size_t x_stride = a->x_stride, y_stride = a->y_stride, o_stride = a->o_stride, none = 0;
    extent operands[11];
    extents all = {0, operands};
    if ((status = add_operand(&all, X, ANY_OPERAND, a->x, s->dtype, shape.row, shape.rows, &x_stride)) != NRG_OK ||
        (status = add_operand(&all, Y, ANY_OPERAND, a->y, s->dtype, shape.row, shape.rows, &y_stride)) != NRG_OK ||
        (status = add_operand(&all, W, ANY_OPERAND, a->w, w_dtype, s->channels, once, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, B, ANY_OPERAND, a->b, w_dtype, s->channels, once, &none)) != NRG_OK ||
        (status = add_known(&all, s, a, a->n ? shape.sets : 0)) != NRG_OK ||
        (status = add_operand(&all, O, X | Y, a->o, s->dtype, shape.row, shape.rows, &o_stride)) != NRG_OK)
        return status;
    const int stream = wants_stream(s->store, &all);
    if ((status = add_statistics(&all, s, a, a->n ? shape.sets : 0)) != NRG_OK || (status = check_overlap(&all)) != NRG_OK ||
        !a->n)
        return status;

    nrg_channel_norm_job job = {
        .x = a->x,
        .y = a->y,
        .w = a->w,
        .b = a->b,
        .o = a->o,
        .mean = a->mean,
        .rstd = a->rstd,
        .statistics = given ? NULL : a->statistics,
        .given = given ? a->statistics : NULL,
        .fixed_mean = fixed ? a->running_mean : NULL,
        .fixed_var = fixed ? a->running_var : NULL,
        .running_mean = update ? a->running_mean : NULL,
        .running_var = update ? a->running_var : NULL,
        .n = a->n,
        .c = s->channels,
        .s = a->s,
        .groups = shape.groups,
        .group_channels = shape.group_channels,
        .x_stride = x_stride,
        .y_stride = y_stride,
        .o_stride = o_stride,
        .segment = shape.segment,
        .by_channel = !shape.groups || update,
        .nhwc = shape.nhwc,
        .folded = folded,
        .centred = s->centred != 0,
        .w_f32 = w_dtype == NRG_F32,
        .stream = stream,
        .activation = s->activation,
        .eps = shape.eps,
        .momentum = momentum_of(s, a),
    };
    /* rows · channels fits, since elements do */
    const size_t units = given || fixed || folded ? (shape.nhwc ? shape.rows : a->n * s->channels)
                         : job.by_channel         ? s->channels
                                                  : shape.sets;
    job.begin = share(units, ith, nth);
    job.end = share(units, ith + 1, nth);
    if ((given || fixed) && (a->mean || a->rstd || job.statistics)) {
        job.out_begin = share(shape.sets, ith, nth);
        job.out_end = share(shape.sets, ith + 1, nth);
    }
    if (job.begin < job.end || job.out_begin < job.out_end)
        NRG_ACTIVE_KERNEL(channel_norm_forward, s->dtype)(&job);
    return NRG_OK;
}

/* Both structs as this version's. */
static nrg_status read_both(const nrg_channel_norm_spec **spec, nrg_channel_norm_spec *spec_copy,
                            const nrg_channel_norm_args **args, nrg_channel_norm_args *args_copy)
{
    if (!*spec || !*args)
        return NRG_ERR_NULL;
    *spec = read_struct(*spec, spec_copy, sizeof *spec_copy, CHANNEL_SPEC_SIZE_MIN);
    *args = read_struct(*args, args_copy, sizeof *args_copy, ARGS_SIZE_MIN);
    return *spec && *args ? NRG_OK : NRG_ERR_STRUCT_SIZE;
}

nrg_status nrg_channel_norm_forward(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int ith, int nth)
{
    nrg_channel_norm_spec spec_copy;
    nrg_channel_norm_args args_copy;
    nrg_status status = read_both(&spec, &spec_copy, &args, &args_copy);
    return status == NRG_OK ? forward(spec, args, ith, nth) : status;
}

nrg_status nrg_channel_norm_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int64_t *sums, int ith,
                                 int nth)
{
    nrg_channel_norm_spec spec_copy;
    nrg_channel_norm_args args_copy;
    channel_shape shape;
    nrg_status status = read_both(&spec, &spec_copy, &args, &args_copy);
    if (status != NRG_OK || (status = check_channel_spec(spec)) != NRG_OK ||
        (status = find_shape(&shape, spec, args->n, args->s)) != NRG_OK)
        return status;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    /* no samples: batch norm has as many channels nevertheless, each with the sum of nothing */
    if (shape.sets && (!sums || (args->n && !args->x)))
        return NRG_ERR_NULL;
    size_t x_stride = args->x_stride;
    extent operands[2];
    extents all = {0, operands};
    if ((status = add_operand(&all, X, ANY_OPERAND, args->x, spec->dtype, shape.row, shape.rows, &x_stride)) != NRG_OK ||
        (status = add_words(&all, SUMS, 0, sums, shape.sets, NRG_SUMS_WORDS * sizeof *sums)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    const nrg_channel_norm_job job = {
        .x = args->x,
        .sums = sums,
        .n = args->n,
        .c = spec->channels,
        .s = args->s,
        .groups = shape.groups,
        .group_channels = shape.group_channels,
        .x_stride = x_stride,
        .segment = shape.segment,
        .by_channel = !shape.groups,
        .nhwc = shape.nhwc,
        .centred = spec->centred != 0,
        .begin = share(shape.sets, ith, nth),
        .end = share(shape.sets, ith + 1, nth),
    };
    if (!args->n)
        for (size_t set = job.begin; set < job.end; set++)
            nrg_sums_clear(sums + set * NRG_SUMS_WORDS);
    else if (job.begin < job.end)
        NRG_ACTIVE_KERNEL(channel_norm_forward, spec->dtype)(&job);
    return NRG_OK;
}

nrg_status nrg_sums_add(size_t sets, int64_t *into, const int64_t *from)
{
    if (sets && (!into || !from))
        return NRG_ERR_NULL;
    extent operands[2];
    extents all = {0, operands};
    nrg_status status;
    if ((status = add_words(&all, X, ANY_OPERAND, from, sets, NRG_SUMS_WORDS * sizeof *from)) != NRG_OK ||
        (status = add_words(&all, SUMS, 0, into, sets, NRG_SUMS_WORDS * sizeof *into)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    /* wraps around, as sums may */
    for (size_t i = 0; i < sets * NRG_SUMS_WORDS; i++)
        into[i] = (int64_t)((uint64_t)into[i] + (uint64_t)from[i]);
    return NRG_OK;
}

nrg_status nrg_channel_norm_statistics(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, const int64_t *sums,
                                       int ith, int nth)
{
    nrg_channel_norm_spec spec_copy;
    nrg_channel_norm_args args_copy;
    channel_shape shape;
    nrg_status status = read_both(&spec, &spec_copy, &args, &args_copy);
    if (status != NRG_OK || (status = check_channel_spec(spec)) != NRG_OK ||
        (status = find_shape(&shape, spec, args->n, 1)) != NRG_OK)
        return status;
    if (ith < 0 || ith >= nth)
        return NRG_ERR_THREAD;
    /* batch norm's channels are there whether or not this part had samples */
    const size_t sets = shape.sets;
    if (sets && !sums)
        return NRG_ERR_NULL;
    nrg_channel_norm_spec computing = *spec;
    computing.statistics = NRG_STATISTICS_COMPUTE;
    if ((status = check_options(&computing, args)) != NRG_OK)
        return status;
    const int update = args->running_mean != NULL;
    extent operands[6];
    extents all = {0, operands};
    if ((status = add_words(&all, SUMS, ANY_OPERAND, sums, sets, NRG_SUMS_WORDS * sizeof *sums)) != NRG_OK ||
        (status = add_statistics(&all, &computing, args, sets)) != NRG_OK || (status = check_overlap(&all)) != NRG_OK)
        return status;
    for (size_t set = 0; set < sets; set++)
        if (sums[set * NRG_SUMS_WORDS] < (update ? 2 : 1)) /* the count */
            return NRG_ERR_COUNT;

    /* by channels, where those have running statistics */
    const size_t samples = sets && update && shape.groups ? args->n : 1, units = sets / samples;
    const double momentum = momentum_of(spec, args);
    for (size_t at = share(units, ith, nth); at < share(units, ith + 1, nth); at++) {
        nrg_running_sums running = {0, 0};
        for (size_t n = 0; n < samples; n++) {
            const size_t set = n * units + at;
            const nrg_set_sums value = nrg_sums_value(sums + set * NRG_SUMS_WORDS);
            const nrg_channel_statistics stat = nrg_statistics_of(&value, spec->centred != 0, shape.eps);
            nrg_running_add(&running, &stat);
            if (args->mean)
                args->mean[set] = (float)(stat.mean + stat.mean_low);
            if (args->rstd)
                args->rstd[set] = (float)stat.rstd;
            if (args->statistics)
                args->statistics[set] = stat;
        }
        if (update)
            nrg_running_update(args->running_mean + at, args->running_var + at, &running, samples, momentum);
    }
    return NRG_OK;
}

/* Element c of w or b, in double. */
static double parameter(const void *p, size_t c, nrg_dtype dtype, double absent)
{
    return p ? (double)load(p, c, dtype) : absent;
}

nrg_status nrg_channel_norm_fold(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, float *scale, float *shift)
{
    nrg_channel_norm_spec spec_copy;
    nrg_channel_norm_args args_copy;
    channel_shape shape;
    nrg_status status = read_both(&spec, &spec_copy, &args, &args_copy);
    if (status != NRG_OK || (status = check_channel_spec(spec)) != NRG_OK || (status = find_shape(&shape, spec, 1, 1)) != NRG_OK)
        return status;
    if (!args->running_mean || !args->running_var || !scale || !shift)
        return NRG_ERR_NULL;
    if (!sets_are_channels(spec) || !spec->centred)
        return NRG_ERR_COMBINATION;
    const size_t c = spec->channels;
    const nrg_dtype w_dtype = spec->w_dtype ? spec->w_dtype : spec->dtype;
    size_t none = 0;
    extent operands[6];
    extents all = {0, operands};
    if ((status = add_operand(&all, RUNNING_MEAN, ANY_OPERAND, args->running_mean, NRG_F32, c, 1, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, RUNNING_VAR, ANY_OPERAND, args->running_var, NRG_F32, c, 1, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, W, ANY_OPERAND, args->w, w_dtype, c, 1, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, B, ANY_OPERAND, args->b, w_dtype, c, 1, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, X, 0, scale, NRG_F32, c, 1, &none)) != NRG_OK ||
        (none = 0, status = add_operand(&all, Y, 0, shift, NRG_F32, c, 1, &none)) != NRG_OK ||
        (status = check_overlap(&all)) != NRG_OK)
        return status;
    for (size_t i = 0; i < c; i++) {
        const nrg_channel_statistics stat = nrg_statistics_fixed(args->running_mean[i], args->running_var[i], shape.eps);
        const double factor = stat.rstd * parameter(args->w, i, w_dtype, 1);
        scale[i] = (float)factor;
        shift[i] = (float)fma(-stat.mean, factor, parameter(args->b, i, w_dtype, 0));
    }
    return NRG_OK;
}
