/* SPDX-License-Identifier: MIT */
#include "fence.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

int fence_readable(void) { return getenv("NRG_TEST_READABLE_FENCE") != NULL; }

unsigned char *fence_place(fence *f, size_t bytes, enum fence_side side, size_t gap)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), needed = (bytes + gap + page) / page * page;
    if (needed > f->bytes) {
        fence_free(f);
        unsigned char *all = mmap(NULL, needed + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(all != MAP_FAILED, "mmap");
        must(mprotect(all, page, PROT_NONE) == 0, "mprotect");
        must(mprotect(all + page + needed, page, fence_readable() ? PROT_READ : PROT_NONE) == 0, "mprotect");
        f->first = all + page;
        f->bytes = needed;
    }
    return side == AT_END ? f->first + f->bytes - gap - bytes : f->first + gap;
}

void fence_protect(const fence *f, int read_only)
{
    must(mprotect(f->first, f->bytes, read_only ? PROT_READ : PROT_READ | PROT_WRITE) == 0, "mprotect");
}

void fence_free(fence *f)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (f->first)
        munmap(f->first - page, f->bytes + 2 * page);
    f->first = NULL;
    f->bytes = 0;
}
