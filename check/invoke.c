/* SPDX-License-Identifier: MIT */
#include "invoke.h"

#include "../include/nrg/nrg.h"
#include "../src/operands/channel_norm_backward.h"
#include "../src/operands/cross_entropy.h"
#include "../src/operands/embed.h"
#include "../src/operands/floater.h"
#include "../src/operands/glu.h"
#include "../src/operands/norm_rope.h"
#include "../src/operands/norm_sandwich.h"
#include "../src/operands/qkv.h"
#include "../src/operands/recurrent.h"
#include "../src/operands/relative_shift.h"
#include "../src/operands/score_bias.h"
#include "../src/operands/sinusoidal.h"
#include "own_memory.h"

#define RUN(id, ...)                                                                                                             \
    static nrg_status run_##id(void *const *part, int ith, int nth)                                                              \
    {                                                                                                                            \
        (void)ith, (void)nth;                                                                                                    \
        return nrg_##__VA_ARGS__;                                                                                                \
    }
#define ASK(id, ...)                                                                                                             \
    static nrg_status ask_##id(void *const *part) { return nrg_##__VA_ARGS__; }
#define ENTRY(id, described, function, ask, bytes)                                                                               \
    extern const nrg_call nrg_call_##described;                                                                                  \
    const invoke_function invoke_##id = {"nrg_" #function, &nrg_call_##described, run_##id, ask, bytes};

#define COUNTED(id, described, function, ...)                                                                                    \
    RUN(id, function(__VA_ARGS__, ith, nth))                                                                                     \
    ASK(id, function##_check(__VA_ARGS__, PART(nrg_rope_shares, 2)->nth))                                                        \
    ENTRY(id, described, function, ask_##id, NULL)
#define SHARES_OF(described, function, ...)                                                                                      \
    RUN(function, function(__VA_ARGS__, ith, nth))                                                                               \
    ASK(function, function##_check(__VA_ARGS__))                                                                                 \
    ENTRY(function, described, function, ask_##function, NULL)
#define WHOLE(described, function, ...)                                                                                          \
    RUN(function, function(__VA_ARGS__))                                                                                         \
    ENTRY(function, described, function, NULL, NULL)
#define WORKSPACE(function, ...)                                                                                                 \
    static nrg_status bytes_##function(void *const *part, size_t *bytes) { return nrg_##function(__VA_ARGS__, bytes); }          \
    RUN(function, function(__VA_ARGS__, &(size_t){0}))                                                                           \
    ENTRY(function, function, function, NULL, bytes_##function)
#include "functions.def"
