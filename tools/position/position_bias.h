/* tools/position/position_bias.h: what nrg position t5 and nrg position alibi share: the bias of attention scores by distance.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_POSITION_POSITION_BIAS_H
#define NRG_TOOLS_POSITION_POSITION_BIAS_H

#include <nrg/nrg.h>

#include "../file_command.h"

/* Of both kinds: scores at input 0, the table or slopes at input 1, o, then these options from OPT_BIAS on. */
enum { BIAS_SCORES, BIAS_TABLE, BIAS_INPUTS };
enum { BIAS_O, BIAS_OUTPUTS };
enum { BIAS_QUERIES = BIAS_INPUTS + BIAS_OUTPUTS, BIAS_KEYS, BIAS_FIRST_POSITION, BIAS_CAUSAL, BIAS_SCALE, BIAS_NEXT };

#define BIAS_OPTIONS                                                                                                             \
    [BIAS_SCORES] = {"scores", 0, 1},                                                                                            \
    [BIAS_INPUTS + BIAS_O] = {"o", 'o', 1}, [BIAS_QUERIES] = {"queries", 0, 1}, [BIAS_KEYS] = {"keys", 0, 1},                    \
    [BIAS_FIRST_POSITION] = {"first-position", 0, 1}, [BIAS_CAUSAL] = {"causal", 0, 0}, [BIAS_SCALE] = {"scale", 0, 1}

#define BIAS_HELP                                                                                                                \
    "  --scores FILE          of shape (heads, queries, keys) or (..., heads, queries, keys): o = scores * scale + bias,\n"      \
    "                         rounded once, with their shape and dtype\n"                                                        \
    "  --queries Q, --keys K  without scores: writes only the bias, '<f4', of shape (heads, Q, K)\n"                             \
    "  -o, --o FILE           the result (required)\n"                                                                           \
    "  --scale S              multiplies the scores; default 1\n"                                                                \
    "  --first-position N     position of the first query, if the first key is at 0; default: keys - queries\n"                  \
    "  --causal               the bias of keys after the query is -infinity\n"

typedef struct bias_request {
    nrg_score_bias_spec spec;
    float scale;
    double max_bias; /* ALiBi */
    size_t rows;     /* buckets of a gradient, or heads of slopes */
} bias_request;

/* Reads the options above into q, whose spec is one of T5 or ALiBi. 0 after a complaint. */
int bias_read(const file_call *call, bias_request *q);

/* Whether there are scores, or their shape; and an output. CLI_REFUSED after a complaint. */
int bias_require(const file_call *call);

/* heads, queries and keys from the scores, where there are any; batch is 1 where there are none. */
int bias_shape(const file_call *call, bias_request *q, size_t *batch);

/* From diagonals [heads][queries + keys - 1] to o. */
int bias_add(file_call *call, const bias_request *q, size_t batch, const float *diagonals);

/* Memory for them; NULL after a complaint. */
void *bias_diagonals(const bias_request *q, size_t element);

#endif
