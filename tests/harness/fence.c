/* SPDX-License-Identifier: MIT */
#include "fence.h"

#include <stdlib.h>

#include "host.h"

int fence_readable(void) { return getenv("NRG_TEST_READABLE_FENCE") != NULL; }

unsigned char *fence_place(fence *f, size_t bytes, enum fence_side side, size_t gap)
{
    const size_t page = host_page(), needed = (bytes + gap + page) / page * page;
    if (needed > f->bytes) {
        fence_free(f);
        unsigned char *all = host_pages(needed + 2 * page, 0);
        host_protect(all, page, HOST_NONE);
        host_protect(all + page + needed, page, fence_readable() ? HOST_READ : HOST_NONE);
        f->first = all + page;
        f->bytes = needed;
    }
    return side == AT_END ? f->first + f->bytes - gap - bytes : f->first + gap;
}

void fence_protect(const fence *f, int read_only) { host_protect(f->first, f->bytes, read_only ? HOST_READ : HOST_WRITE); }

void fence_free(fence *f)
{
    const size_t page = host_page();
    if (f->first)
        host_free_pages(f->first - page, f->bytes + 2 * page);
    f->first = NULL;
    f->bytes = 0;
}
