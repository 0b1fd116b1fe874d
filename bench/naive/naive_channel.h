/* Channel norms, by type of elements like naive_loops.h. Everything comes down to a factor and a summand for each channel of a
 * block: of a sample, or over the batch of the whole tensor.
 *
 * SPDX-License-Identifier: MIT */

/* Sums for the mean and the variance of a channel's elements in a block. NCHW has them in planes, NHWC side by side. */
INLINE void NAME(channel_sums)(int nhwc, size_t samples, size_t channels, size_t positions, const ELEMENT *restrict x,
                               const float *restrict mean, float *restrict sum)
{
    for (size_t c = 0; c < channels; c++)
        sum[c] = 0;
    for (size_t n = 0; n < samples; n++) {
        const ELEMENT *sample = x + n * channels * positions;
        if (nhwc)
            for (size_t p = 0; p < positions; p++)
                for (size_t c = 0; c < channels; c++) {
                    const float v = LOAD(sample, p * channels + c);
                    sum[c] += mean ? (v - mean[c]) * (v - mean[c]) : v;
                }
        else
            for (size_t c = 0; c < channels; c++) {
                float partial = 0;
                for (size_t p = 0; p < positions; p++) {
                    const float v = LOAD(sample, c * positions + p);
                    partial += mean ? (v - mean[c]) * (v - mean[c]) : v;
                }
                sum[c] += partial;
            }
    }
}

INLINE void NAME(channel_apply)(int nhwc, nrg_activation g, size_t samples, size_t channels, size_t positions,
                                const ELEMENT *restrict x, const ELEMENT *restrict y, const float *restrict factor,
                                const float *restrict summand, ELEMENT *restrict o)
{
    for (size_t n = 0; n < samples; n++)
        for (size_t row = 0; row < (nhwc ? positions : channels); row++) {
            const size_t length = nhwc ? channels : positions, at = n * channels * positions + row * length;
            for (size_t i = 0; i < length; i++) {
                const size_t c = nhwc ? i : row;
                float v = LOAD(x, at + i) * factor[c] + summand[c];
                if (y)
                    v += LOAD(y, at + i);
                STORE(o, at + i, activate(g, v));
            }
        }
}

INLINE void NAME(channel_forward)(const rival_job *job, naive_channel how)
{
    const rival_job j = *job;
    const size_t samples = how.batch ? j.rows : 1, blocks = j.rows / samples, sets = how.batch ? j.channels : j.groups;
    const size_t together = j.channels / sets;
    const float count = (float)(samples * together * j.positions);
    float mean[NAIVE_CHANNELS], sum[NAIVE_CHANNELS], factor[NAIVE_CHANNELS], summand[NAIVE_CHANNELS];
    for (size_t block = 0; block < blocks; block++) {
        const size_t at = block * j.channels * j.positions;
        const ELEMENT *x = (const ELEMENT *)j.x + at, *y = how.add ? (const ELEMENT *)j.y + at : NULL;
        if (how.source == NRG_STATISTICS_COMPUTE) {
            NAME(channel_sums)(how.nhwc, samples, j.channels, j.positions, x, NULL, sum);
            average(j.channels, together, count, sum, mean);
            NAME(channel_sums)(how.nhwc, samples, j.channels, j.positions, x, mean, sum);
            average(j.channels, together, count, sum, sum);
        }
        for (size_t c = 0; c < j.channels; c++) {
            const int folded = how.source == NRG_STATISTICS_FOLDED, running = how.source == NRG_STATISTICS_RUNNING;
            const float w = folded ? ((const float *)j.w)[c] : LOAD((const ELEMENT *)j.w, c);
            const float b = folded ? ((const float *)j.b)[c] : LOAD((const ELEMENT *)j.b, c);
            factor[c] = folded ? w : w / sqrtf((running ? j.running_var[c] : sum[c]) + j.eps);
            summand[c] = folded ? b : b - (running ? j.running_mean[c] : mean[c]) * factor[c];
            if (how.update) {
                j.running_mean[c] += j.momentum * (mean[c] - j.running_mean[c]);
                j.running_var[c] += j.momentum * (sum[c] * count / (count - 1) - j.running_var[c]);
            }
        }
        NAME(channel_apply)
        (how.nhwc, how.activation, samples, j.channels, j.positions, x, y, factor, summand, (ELEMENT *)j.o + at);
    }
}

/* The sums of do1 and of do1 · h, with h = (x - mean) · rstd. */
INLINE void NAME(gradient_sums)(naive_channel how, size_t samples, size_t channels, size_t positions, const ELEMENT *restrict x,
                                const ELEMENT *restrict d_o, const float *restrict mean, const float *restrict rstd,
                                const float *restrict w, const float *restrict b, float *restrict sum, float *restrict dot)
{
    for (size_t c = 0; c < channels; c++)
        sum[c] = dot[c] = 0;
    for (size_t n = 0; n < samples; n++)
        for (size_t row = 0; row < (how.nhwc ? positions : channels); row++) {
            const size_t length = how.nhwc ? channels : positions, at = n * channels * positions + row * length;
            float partial = 0, partial_dot = 0;
            for (size_t i = 0; i < length; i++) {
                const size_t c = how.nhwc ? i : row;
                const float h = (LOAD(x, at + i) - mean[c]) * rstd[c];
                const float d = LOAD(d_o, at + i) * slope(how.activation, h * w[c] + b[c]);
                if (how.nhwc) {
                    sum[c] += d;
                    dot[c] += d * h;
                } else {
                    partial += d;
                    partial_dot += d * h;
                }
            }
            if (!how.nhwc) {
                sum[row] += partial;
                dot[row] += partial_dot;
            }
        }
}

/* dx = rstd · (do1 · w - sum - h · dot), of averages over the set. */
INLINE void NAME(gradient_apply)(naive_channel how, size_t samples, size_t channels, size_t positions, const ELEMENT *restrict x,
                                 const ELEMENT *restrict d_o, const float *restrict mean, const float *restrict rstd,
                                 const float *restrict w, const float *restrict b, const float *restrict sum,
                                 const float *restrict dot, ELEMENT *restrict dx)
{
    for (size_t n = 0; n < samples; n++)
        for (size_t row = 0; row < (how.nhwc ? positions : channels); row++) {
            const size_t length = how.nhwc ? channels : positions, at = n * channels * positions + row * length;
            for (size_t i = 0; i < length; i++) {
                const size_t c = how.nhwc ? i : row;
                const float h = (LOAD(x, at + i) - mean[c]) * rstd[c];
                const float d = LOAD(d_o, at + i) * slope(how.activation, h * w[c] + b[c]);
                STORE(dx, at + i, rstd[c] * (d * w[c] - sum[c] - h * dot[c]));
            }
        }
}

INLINE void NAME(channel_backward)(const rival_job *job, naive_channel how)
{
    const rival_job j = *job;
    const size_t samples = how.batch ? j.rows : 1, blocks = j.rows / samples, sets = how.batch ? j.channels : j.groups;
    const size_t together = j.channels / sets;
    const float count = (float)(samples * together * j.positions);
    float mean[NAIVE_CHANNELS], rstd[NAIVE_CHANNELS], w[NAIVE_CHANNELS], b[NAIVE_CHANNELS];
    float sum[NAIVE_CHANNELS], dot[NAIVE_CHANNELS];
    for (size_t c = 0; c < j.channels; c++) {
        w[c] = LOAD((const ELEMENT *)j.w, c);
        b[c] = j.b ? LOAD((const ELEMENT *)j.b, c) : 0;
        j.dw[c] = j.db[c] = 0;
    }
    for (size_t block = 0; block < blocks; block++) {
        const size_t at = block * j.channels * j.positions;
        const ELEMENT *x = (const ELEMENT *)j.x + at, *d_o = (const ELEMENT *)j.d_o + at;
        for (size_t c = 0; c < j.channels; c++) {
            const nrg_channel_statistics *s = &j.statistics[block * sets + c / together];
            mean[c] = (float)s->mean;
            rstd[c] = (float)s->rstd;
        }
        NAME(gradient_sums)(how, samples, j.channels, j.positions, x, d_o, mean, rstd, w, b, sum, dot);
        for (size_t c = 0; c < j.channels; c++) {
            j.db[c] += sum[c];
            j.dw[c] += dot[c];
            sum[c] *= w[c];
            dot[c] *= w[c];
        }
        average(j.channels, together, count, sum, sum);
        average(j.channels, together, count, dot, dot);
        NAME(gradient_apply)
        (how, samples, j.channels, j.positions, x, d_o, mean, rstd, w, b, sum, dot, (ELEMENT *)j.dx + at);
    }
}
