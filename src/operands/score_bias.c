/* Attention score biases: their tables, adding them, and the gradients.
 *
 * SPDX-License-Identifier: MIT */
#include "score_bias.h"

#include "../exact/t5_rule.h"

enum { DISTANCE_MOST = 1 << 29 };

int nrg_bias_distances_fit(const nrg_score_bias_spec *s)
{
    if (s->queries > DISTANCE_MOST || s->keys > DISTANCE_MOST || s->first_position > DISTANCE_MOST ||
        s->first_position < -DISTANCE_MOST)
        return 0;
    return nrg_bias_lowest(s) >= -DISTANCE_MOST && (int64_t)(s->keys - 1) - s->first_position <= DISTANCE_MOST;
}

int nrg_t5_is_rule(const nrg_score_bias_spec *spec)
{
    t5_rule rule;
    return nrg_t5_rule_make(&rule, spec->bidirectional, spec->buckets, spec->max_distance);
}
