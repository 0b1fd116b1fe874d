/* What the files of calls share: frames, tables of kernels, the part of a call's work that is one thread's, and whether its
 * outputs go past the caches.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_CALL_H
#define NRG_CALLS_CALL_H

#include "../internal.h"

/* A function that is not inlined, so that its locals are on the stack only while it runs: those of a check are gone before the
 * kernel begins. */
#define NRG_OWN_FRAME static __attribute__((noinline))

/* The tables of an op, one for each dtype: a kernel for every path of the build, or the link fails. The file of a call has this
 * once for each op. A program that is linked with --gc-sections keeps the tables of what it calls, and their kernels. */
#define NRG_ENTRY(path, isa, op, dtype) nrg_##path##_##op##_##dtype,
#define NRG_TABLE(op, dtype)                                                                                                     \
    nrg_##op##_kernel *const nrg_##op##_##dtype##_kernels[NRG_PATHS] = {NRG_EACH_PATH(NRG_ENTRY, op, dtype)};
#define NRG_TABLES(op) NRG_TABLE(op, f32) NRG_TABLE(op, f16) NRG_TABLE(op, bf16)

/* Where share ith of nth of n units begins: n·ith/nth without the product, which may not fit. Most calls are one share, and a
 * division takes a tenth of a short row. */
static inline size_t nrg_share(size_t n, int ith, int nth)
{
    if (nth == 1)
        return ith ? n : 0;
    size_t i = (size_t)ith, count = (size_t)nth;
    size_t each = n / count, left = n % count;
    return each * i + (i < left ? i : left);
}

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
 * is one that keeps up with ordinary stores and has half of its room for the call. 24 MB of q, k and v beside an L3 of 32 MB that
 * other guests use too: 0.6 of the time streamed (Zen 4). */
static inline int nrg_wants_stream_past_l3(nrg_store store, size_t bytes)
{
    return nrg_wants_stream(store, bytes) && (store != NRG_STORE_AUTO || bytes > nrg_near_l3_bytes() / 2);
}

#endif
