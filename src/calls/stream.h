/* Whether a call's outputs go past the caches.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_STREAM_H
#define NRG_CALLS_STREAM_H

#include "../internal.h"

/* Non-temporal stores pay when the tensor does not come from cache and will not be found there again. Measured (docs/speed.md):
 * the call's bytes against the L2 of one core, since a shared L3 tells nothing about the share one gets of it. */
static inline int nrg_wants_stream(nrg_store store, size_t bytes)
{
    if (store != NRG_STORE_AUTO)
        return store == NRG_STORE_STREAM;
    const size_t l2 = nrg_l2_bytes();
    return bytes > l2 + l2 / 2;
}

#endif
