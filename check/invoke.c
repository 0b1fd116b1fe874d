/* SPDX-License-Identifier: MIT */
#include "invoke.h"

#include "../include/nrg/nrg.h"
#include "../src/operands/channel_norm.h"
#include "../src/operands/softmax.h"
#include "../src/operands/embed.h"
#include "../src/operands/recurrent.h"
#include "../src/operands/activation.h"
#include "../src/operands/norm_rope.h"
#include "../src/operands/norm.h"
#include "../src/operands/qkv.h"
#include "../src/operands/relative.h"
#include "../src/operands/score_bias.h"
#include "../src/operands/rope.h"
#include "own_memory.h"

#define RUN(id, function, arguments)                                                                                             \
    static nrg_status run_##id(void *const *part, int ith, int nth)                                                              \
    {                                                                                                                            \
        (void)ith, (void)nth;                                                                                                    \
        return nrg_##function arguments;                                                                                         \
    }
#define ENTRY(id, described, function, ask, ask_bytes)                                                                           \
    extern const nrg_call nrg_call_##described;                                                                                  \
    const invoke_function invoke_##id = {"nrg_" #function, &nrg_call_##described, run_##id, ask, ask_bytes};

#define SHARES(id, described, function, arguments, check)                                                                        \
    RUN(id, function, arguments)                                                                                                 \
    static nrg_status ask_##id(void *const *part) { return nrg_##function##_check check; }                                       \
    ENTRY(id, described, function, ask_##id, NULL)
#define WHOLE(id, described, function, arguments)                                                                                \
    RUN(id, function, arguments)                                                                                                 \
    ENTRY(id, described, function, NULL, NULL)
#define WORKSPACE(id, described, function, arguments)                                                                            \
    static nrg_status bytes_##id(void *const *part, size_t *bytes) { return nrg_##function arguments; }                          \
    static nrg_status run_##id(void *const *part, int ith, int nth)                                                              \
    {                                                                                                                            \
        (void)ith, (void)nth;                                                                                                    \
        return bytes_##id(part, &(size_t){0});                                                                                   \
    }                                                                                                                            \
    ENTRY(id, described, function, NULL, bytes_##id)
#include "functions.def"
