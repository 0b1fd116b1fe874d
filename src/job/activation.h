/* The job of the activations, and what other kernels call of them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_ACTIVATION_H
#define NRG_JOB_ACTIVATION_H

#include "../../include/nrg/activation.h"
#include "../../include/nrg/cpu.h"
#include "../paths.h"

/* Elements begin to end for activation (o = g(x)) and activation_backward (o = d_o · g'(x)). */
typedef struct nrg_activation_job {
    const char *x, *d_o; /* d_o: NULL for activation */
    char *o;
    size_t begin, end;
    int stream;
    nrg_activation activation;
} nrg_activation_job;

/* g of n floats; in may be out. g and its slope g' likewise; none of the outputs may overlap the other. Each path has its own,
 * called once a few hundred elements by the kernels that fuse an activation. */
#define NRG_ACTIVATE(path, isa, unused)                                                                                          \
    void nrg_##path##_activate(nrg_activation g, const float *in, float *out, size_t n);                                         \
    void nrg_##path##_activate_both(nrg_activation g, const float *in, float *out, float *slope, size_t n);
NRG_EACH_PATH(NRG_ACTIVATE, )
#undef NRG_ACTIVATE

#endif
