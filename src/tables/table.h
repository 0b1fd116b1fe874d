/* The kernel tables of one family. The including file defines NRG_TABLES_<family> as NRG_TABLE; every kernel of that family must
 * then exist on every path of the build. Each table is a symbol of its own: the linker keeps those that are used.
 *
 * SPDX-License-Identifier: MIT */
#include "../kernels.h"

#ifndef NRG_TABLES_norm
#define NRG_TABLES_norm(op)
#endif
#ifndef NRG_TABLES_activation
#define NRG_TABLES_activation(op)
#endif
#ifndef NRG_TABLES_channel
#define NRG_TABLES_channel(op)
#endif
#ifndef NRG_TABLES_rope
#define NRG_TABLES_rope(op)
#endif
#ifndef NRG_TABLES_recurrent
#define NRG_TABLES_recurrent(op)
#endif
#ifndef NRG_TABLES_embed
#define NRG_TABLES_embed(op)
#endif
#ifndef NRG_TABLES_relative
#define NRG_TABLES_relative(op)
#endif
#ifndef NRG_TABLES_bias
#define NRG_TABLES_bias(op)
#endif

#define NRG_ROW(path, isa, op) {nrg_##path##_##op##_f32, nrg_##path##_##op##_f16, nrg_##path##_##op##_bf16},
#define NRG_TABLE(op) nrg_##op##_kernel *const nrg_##op##_kernels[NRG_PATHS][3] = {NRG_EACH_PATH(NRG_ROW, op)};

#define NRG_KERNEL(family, op, job) NRG_TABLES_##family(op)
#include "../kernels.def"
