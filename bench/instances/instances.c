/* A path's kernels of norm_forward whose instances can be left out. bench/meson.build compiles this file once a path, with the
 * flags of the path, like src/<path>/, and VEC for its vectors, src/<path>/vec.h.
 *
 * SPDX-License-Identifier: MIT */
#include VEC

#include "instances.h"

#include "../../src/job/norm.h"

#define TEXT_(word) #word
#define TEXT(word) TEXT_(word)
#define JOINED_(a, b, c) a##b##c
#define JOINED(a, b, c) JOINED_(a, b, c)

#ifdef __ELF__
/* A section for each instance: the linker defines where it begins and ends. */
#define INSTANCE(name, ...)                                                                                                      \
    static __attribute__((section(TEXT(NRG_PATH) "_" #name))) void instance_##name(const nrg_norm_job *job, unsigned options);   \
    extern const char JOINED(__start_, NRG_PATH, _##name)[] __attribute__((weak));                                               \
    extern const char JOINED(__stop_, NRG_PATH, _##name)[] __attribute__((weak));
#include "../../src/template/norm/instances.def"
#undef INSTANCE
#endif

#define NORM_LEAVES_OUT(name) bench_leaves_out(INSTANCE_##name)
#include "../../src/template/norm/plain.h"

static void norm_instances(const nrg_norm_job *job, nrg_dtype D)
{
    if (is_fast_rms(job, D))
        norm_rms(job);
    else
        norm_any(job, D);
}
NRG_PATH_KERNELS(instances, norm, norm_instances)

size_t NRG_PATH_NAME(instances_bytes)(int instance)
{
    switch (instance) {
#ifdef __ELF__
#define INSTANCE(name, ...)                                                                                                      \
    case INSTANCE_##name:                                                                                                        \
        return (size_t)((uintptr_t)JOINED(__stop_, NRG_PATH, _##name) - (uintptr_t)JOINED(__start_, NRG_PATH, _##name));
#include "../../src/template/norm/instances.def"
#undef INSTANCE
#endif
    default:
        return 0;
    }
}
