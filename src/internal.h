/* What all of src/ shares: the kernels and the choice of a path. What a kernel is handed is in job/.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_INTERNAL_H
#define NRG_INTERNAL_H

#include "../include/nrg/nrg.h"
#include "kernels.h"

/* dispatch.c, for the tests: the best built path for a set of feature bits; what a start with this NRG_ISA and these
 * features would choose; the state before the constructor ran. */
nrg_isa nrg_best_isa(unsigned features);
nrg_isa nrg_choose_isa(const char *env, unsigned features, const char **reason);
void nrg_dispatch_forget(void);

/* cpu.c: L2 size in bytes as the CPU reports it, or a cautious 1 MiB: the scale of the streaming rule. */
size_t nrg_l2_bytes(void);

/* Size of an L3 that a few cores share and that ordinary stores do not slow down, or 0. */
size_t nrg_near_l3_bytes(void);

#endif
