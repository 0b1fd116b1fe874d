/* Functions that only say how large a workspace is.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_SOUND_WORKSPACE_H
#define NRG_TESTS_CALLS_SOUND_WORKSPACE_H

#include "../harness/support.h"
#include "sound.h"

/* No answer: none is odd. */
enum { NOT_SAID = 12345 };

/* A run() of such a function, with its arguments but for the last one, which is the answer's place. It has to be there, and is
 * left alone where the function refuses. */
#define RUN_WORKSPACE(name, function, ...)                                                                                       \
    static nrg_status name(void *const *part, int ith, int nth)                                                                  \
    {                                                                                                                            \
        size_t bytes = NOT_SAID;                                                                                                 \
        (void)ith;                                                                                                               \
        (void)nth;                                                                                                               \
        ck_assert_int_eq(function(__VA_ARGS__, NULL), NRG_ERR_NULL);                                                             \
        const nrg_status status = function(__VA_ARGS__, &bytes);                                                                 \
        ck_assert((status == NRG_OK) == (bytes != NOT_SAID));                                                                    \
        return status;                                                                                                           \
    }

#endif
