/* Whether a call's outputs go past the caches.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_STREAM_H
#define NRG_CALLS_STREAM_H

#include "../internal.h"

/* What an L1 holds of a call, x86's being 32 to 48 KB. */
enum { NRG_NEAR_BYTES = 48 << 10 };

/* Whether operands come from beyond a core's own caches: the call's bytes against its L2, which is 64 KB or more. Its size is a
 * call, which short rows do without. */
static inline int nrg_is_far(size_t bytes) { return bytes > NRG_NEAR_BYTES && bytes > nrg_l2_bytes() / 2 * 3; }

/* Non-temporal stores pay when the tensor does not come from cache and will not be found there again. Measured
 * (docs/speed/rows.md): the call's bytes against the L2 of one core, since a shared L3 tells nothing about the share one gets of
 * it. */
static inline int nrg_wants_stream(nrg_store store, size_t bytes)
{
    return store != NRG_STORE_AUTO ? store == NRG_STORE_STREAM : nrg_is_far(bytes);
}

/* Bytes of a run from which on streaming pays: each ends with a fence, and where rows are padded its ends are parts of lines.
 * Rows of 64 floats with 16 more behind each, f32, AVX2 of a Zen 3, 8 MB: 443 ns a row streamed, 76 ns not. */
enum { NRG_STREAM_RUN = 4096 };

/* For kernels whose loops are the same with both kinds of store, and which ask for what they read: past an L3 only, where there
 * is one that keeps up with ordinary stores and has three quarters of its room for the call. */
static inline int nrg_wants_stream_past_l3(nrg_store store, size_t bytes)
{
    return nrg_wants_stream(store, bytes) && (store != NRG_STORE_AUTO || bytes > nrg_near_l3_bytes() / 4 * 3);
}

#endif
