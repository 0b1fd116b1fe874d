/* tools/position/position_bias.h: what nrg position t5 and nrg position alibi share: the bias of attention scores by distance.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_POSITION_POSITION_BIAS_H
#define NRG_TOOLS_POSITION_POSITION_BIAS_H

#include <nrg/nrg.h>

#include "../file_command.h"

typedef struct bias_request {
    nrg_score_bias_spec spec;
    float scale;
    double max_bias; /* ALiBi */
} bias_request;

/* Whether there are scores, or their shape; and an output. CLI_REFUSED after a complaint. */
int bias_require(const file_call *call);

/* heads, queries and keys from the scores, where there are any; batch is 1 where there are none. */
int bias_shape(const file_call *call, bias_request *q, size_t *batch);

/* Memory for diagonals [heads][queries + keys - 1]: the call's workspace. NULL after a complaint. */
void *bias_diagonals(file_call *call, const bias_request *q, size_t element);

/* From diagonals to o. */
int bias_add(file_call *call, const bias_request *q, size_t batch, const float *diagonals);

#endif
