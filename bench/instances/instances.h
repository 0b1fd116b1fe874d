/* A second copy of nrg_norm_forward whose kernels can leave out instances (src/template/norm/instances.def), for --instances.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_INSTANCES_INSTANCES_H
#define NRG_BENCH_INSTANCES_INSTANCES_H

#include <stddef.h>
#include <stdint.h>

#include "../../src/internal.h"
#include "../family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
#define INSTANCE(name, ...) INSTANCE_##name,
#include "../../src/template/norm/instances.def"
#undef INSTANCE
    INSTANCES /* also: the general loops */
};

/* Bit i: instance i computes nothing. */
extern uint64_t bench_left_out;

/* The instance that the dispatcher accepted last, left out or not; the caller sets it to INSTANCES before a call. */
extern int bench_accepted;

static inline int bench_leaves_out(int instance)
{
    bench_accepted = instance;
    return (int)(bench_left_out >> instance & 1);
}

/* nrg_norm_forward over these kernels. */
extern const bench_function bench_instances;

/* What the copy of a path consists of. The size of an instance is 0 if the linker does not report it, or if the path lacks it. */
#define BENCH_INSTANCES_OF(path)                                                                                                 \
    nrg_norm_forward_kernel nrg_##path##_instances_f32, nrg_##path##_instances_f16, nrg_##path##_instances_bf16;                 \
    size_t nrg_##path##_instances_bytes(int instance);
NRG_WITH_AVX2(BENCH_INSTANCES_OF(avx2))
NRG_WITH_AVX512(BENCH_INSTANCES_OF(avx512))
NRG_WITH_NEON(BENCH_INSTANCES_OF(neon))
#undef BENCH_INSTANCES_OF

#ifdef __cplusplus
}
#endif

#endif
