/* Memory between two pages that nobody may touch: an access past a buffer's end, or before its start, ends the process.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_FENCE_H
#define NRG_TESTS_HARNESS_FENCE_H

#include <stddef.h>

typedef struct fence {
    unsigned char *first; /* of the pages between the forbidden ones */
    size_t bytes;         /* of them */
} fence;

enum fence_side { AT_END, AT_START };

/* A buffer of `bytes` bytes, `gap` bytes away from the forbidden page on that side. The pages grow as needed; what was in them
 * is lost. */
unsigned char *fence_place(fence *f, size_t bytes, enum fence_side side, size_t gap);

/* 1 where the page after the buffers may be read: NRG_TEST_READABLE_FENCE is set, for emulators that read all 32 bytes of an AVX2
 * masked load. Writes there, and everything before a buffer, are forbidden all the same. */
int fence_readable(void);

/* Makes the pages between readable only, or writable again. */
void fence_protect(const fence *f, int read_only);

void fence_free(fence *f);

#endif
