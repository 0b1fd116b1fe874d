/* T5's buckets (nrg/score_bias.h): f(n), in exact arithmetic.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_EXACT_T5_RULE_H
#define NRG_EXACT_T5_RULE_H

#include <stdint.h>

/* B, E and M of the header. */
typedef struct t5_rule {
    int side;  /* B: buckets of one direction */
    int exact; /* E: those of one distance each */
    int max_distance;
} t5_rule;

/* 0 where the numbers are refused. */
int nrg_t5_rule_make(t5_rule *rule, int bidirectional, int buckets, int max_distance);

/* f(n) for n ≥ 0. */
int nrg_t5_rule_bucket(const t5_rule *rule, int64_t n);

/* The smallest n with f(n) ≥ bucket; INT64_MAX where there is none. */
int64_t nrg_t5_rule_first(const t5_rule *rule, int bucket);

#endif
