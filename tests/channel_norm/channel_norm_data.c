/* SPDX-License-Identifier: MIT */
#include "channel_norm_data.h"

#include <math.h>
#include <stdlib.h>

#include "../harness/element.h"

const char *set_kind_name(int kind)
{
    switch (kind) {
    case SET_RELU:
        return "half zeros";
    case SET_MEAN_2:
        return "mean of 2 σ";
    case SET_AT_FALLBACK_LIMIT:
        return "mean of 256 σ";
    case SET_TWO_VALUES:
        return "two values, mean of 250 σ";
    case SET_AT_PLAIN_LIMIT:
        return "mean of 1024 σ";
    default:
        return row_kind_name((enum row_kind)(kind < SET_ORDINARY ? kind : kind - SET_ORDINARY + ROW_ORDINARY));
    }
}

void set_fill(float *values, size_t size, int kind, nrg_dtype dtype, uint64_t seed)
{
    static const double means[] = {
        [SET_MEAN_2] = 2, [SET_AT_FALLBACK_LIMIT] = 256, [SET_TWO_VALUES] = 250, [SET_AT_PLAIN_LIMIT] = 1024};
    uint64_t state = test_mix(seed);
    if (kind >= SET_ORDINARY) {
        row_fill(values, size, (enum row_kind)(kind - SET_ORDINARY + ROW_ORDINARY), dtype, state);
        return;
    }
    const double scale = 1 + (double)test_draw(&state, 1u << 24) / 0x1p24;
    row_fill(values, size, kind < ROW_STRESS_KINDS ? (enum row_kind)kind : ROW_NORMAL, dtype, seed);
    for (size_t i = 0; i < size && kind >= ROW_STRESS_KINDS; i++) {
        double value = (double)values[i];
        if (kind == SET_RELU)
            value = fmax(value, 0);
        else if (kind == SET_TWO_VALUES)
            value = scale * (means[kind] + (i % 2 ? 1 : -1));
        else
            value += means[kind] * (0.91 + 0.06 * scale); /* from 3 hundredths below to as much above */
        values[i] = element_round((float)value, dtype);
    }
}

const char *set_over_name(enum set_over over)
{
    static const char *const names[SET_OVERS] = {"batch", "group", "instance", "layer"};
    return names[over];
}

/* A divisor of size, of at most `most`. */
static size_t draw_divisor(size_t size, size_t most, uint64_t *state)
{
    size_t divisors[64] = {1}, count = 0;
    for (size_t n = 1; n <= size && n <= most && count < 64; n++)
        if (size % n == 0)
            divisors[count++] = n;
    return divisors[test_draw(state, count)];
}

exact_sets set_draw_shape(nrg_channel_norm_spec *spec, enum set_over over, size_t size, uint64_t *state)
{
    static const size_t batch_channels[] = {1, 2, 3, 5, 8, 17};
    const size_t parts = over == SET_INSTANCE ? 1 : draw_divisor(size, 1100, state), s = size / parts;
    size_t n = parts;
    spec->over = over == SET_BATCH ? NRG_CHANNEL_OVER_BATCH : NRG_CHANNEL_OVER_GROUP;
    spec->groups = 1;
    if (over == SET_BATCH)
        spec->channels = batch_channels[test_draw(state, size <= 300 ? 6 : size <= 25088 ? 2 : 1)];
    else {
        n = 1 + (size <= 4096 ? test_draw(state, 3) : 0);
        spec->groups = over == SET_LAYER || size > 25088 ? 1 : 1 + test_draw(state, 4);
        spec->channels = parts * spec->groups;
    }
    return exact_sets_of(spec, n, s);
}

float *set_tensor(const exact_sets *t, int kind, nrg_dtype dtype, uint64_t seed)
{
    float *tensor = test_allocate(exact_count(t), sizeof *tensor), *set = test_allocate(t->size, sizeof *set);
    for (size_t k = 0; k < t->sets; k++) {
        set_fill(set, t->size, kind, dtype, test_mix(seed + k));
        for (size_t i = 0; i < t->size; i++)
            tensor[exact_place_of(t, k, i).at] = set[i];
    }
    free(set);
    return tensor;
}

float *set_parameters(int wanted, size_t channels, nrg_dtype dtype, uint64_t seed)
{
    if (!wanted)
        return NULL;
    float *values = test_allocate(channels, sizeof *values);
    row_fill(values, channels, ROW_NORMAL, dtype, seed);
    return values;
}

void set_running(const nrg_channel_norm_spec *spec, const exact_sets *t, const float *x, float **mean, float **variance,
                 uint64_t seed)
{
    uint64_t state = seed;
    const int of_the_data = (int)test_draw(&state, 2);
    *mean = set_parameters(1, t->c, NRG_F32, test_draw(&state, 1u << 30));
    *variance = set_parameters(1, t->c, NRG_F32, test_draw(&state, 1u << 30));
    for (size_t c = 0; c < t->c; c++) {
        (*variance)[c] = fabsf((*variance)[c]) + 0.1f;
        if (of_the_data) {
            const exact_statistics exact = exact_statistics_of(spec, t, c, x);
            (*mean)[c] = (float)exact.mean;
            (*variance)[c] = (float)fmin((double)exact.variance, 1e38);
        }
    }
}
