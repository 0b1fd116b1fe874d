/* The functions that families call, from the list of how each public function is called with the parts of its description.
 *
 * SPDX-License-Identifier: MIT */
#include "family.h"

#include "../src/operands/channel_norm.h"
#include "../src/operands/qkv.h"
#include "../src/operands/score_bias.h"

#define SHARES(id, described, function, arguments, check)                                                                        \
    extern const nrg_call nrg_call_##described;                                                                                  \
    BENCH_SHARE(id##_share, nrg_##function arguments)                                                                            \
    BENCH_RUN(id##_run, id##_share(part, 0, 1))                                                                                  \
    const bench_function call_##id = {&nrg_call_##described, {id##_share}, id##_run};
#define WHOLE(...)
#define WORKSPACE(...)
#include "functions.def"
