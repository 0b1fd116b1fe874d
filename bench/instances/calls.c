/* The calls of src/calls/norm.c under other names, over kernels whose instances can be left out.
 *
 * SPDX-License-Identifier: MIT */
#define nrg_norm_forward bench_instances_forward
#define nrg_norm_forward_check bench_instances_forward_check
#define nrg_norm_statistics bench_instances_statistics
#define nrg_norm_statistics_check bench_instances_statistics_check
#define nrg_norm_elements bench_instances_elements
#define nrg_norm_elements_check bench_instances_elements_check
#define nrg_rms_norm_f32 bench_instances_rms_f32
#define nrg_add_rms_norm_f32 bench_instances_add_rms_f32
#define nrg_layer_norm_f32 bench_instances_layer_f32
#define nrg_add_layer_norm_f32 bench_instances_add_layer_f32
#define nrg_l2_norm_f32 bench_instances_l2_f32
#define nrg_call_norm_forward bench_instances_call_forward
#define nrg_call_norm_statistics bench_instances_call_statistics
#define nrg_call_norm_elements bench_instances_call_elements
#define nrg_norm_forward_f32_kernels bench_instances_f32_kernels
#define nrg_norm_rms_f32_kernels bench_instances_f32_kernels
#define nrg_norm_forward_f16_kernels bench_instances_f16_kernels
#define nrg_norm_forward_bf16_kernels bench_instances_bf16_kernels
#include "instances.h"

#include "../../src/calls/call.h"
#undef NRG_TABLES
#define NRG_TABLES(op) /* the library's, but for those below */
#include "../../src/calls/norm.c"
#undef nrg_call_norm_forward
extern const nrg_call nrg_call_norm_forward; /* the library's, as in all cases */

uint64_t bench_left_out;
int bench_accepted;

/* Paths without instances have their own kernels. */
#define KERNEL_scalar(dtype) nrg_scalar_norm_forward_##dtype
#define KERNEL_generic(dtype) nrg_generic_norm_forward_##dtype
#define KERNEL_avx2(dtype) nrg_avx2_instances_##dtype
#define KERNEL_avx512(dtype) nrg_avx512_instances_##dtype
#define KERNEL_neon(dtype) nrg_neon_instances_##dtype
#define ENTRY(path, isa, dtype) KERNEL_##path(dtype),
nrg_norm_forward_kernel *const bench_instances_f32_kernels[NRG_PATHS] = {NRG_EACH_PATH(ENTRY, f32)};
nrg_norm_forward_kernel *const bench_instances_f16_kernels[NRG_PATHS] = {NRG_EACH_PATH(ENTRY, f16)};
nrg_norm_forward_kernel *const bench_instances_bf16_kernels[NRG_PATHS] = {NRG_EACH_PATH(ENTRY, bf16)};

BENCH_SHARE(share, bench_instances_forward(part[NRG_NORM_SPEC], part[NRG_NORM_ARGS], ith, nth))
BENCH_RUN(run, share(part, 0, 1))
const bench_function bench_instances = {&nrg_call_norm_forward, {share}, run};
