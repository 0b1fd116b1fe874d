/* The job of the Hadamard rotation.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_HADAMARD_H
#define NRG_JOB_HADAMARD_H

#include <stddef.h>

enum { NRG_HADAMARD_MOST = 512 };

typedef struct nrg_hadamard_job {
    const char *x;
    char *o; /* may be x */
    size_t x_stride, o_stride;
    size_t dim;        /* 64, 128, 256 or NRG_HADAMARD_MOST */
    size_t begin, end; /* rows */
    float scale;       /* 1/√dim */
} nrg_hadamard_job;

#endif
