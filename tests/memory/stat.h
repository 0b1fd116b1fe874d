/* Before every file that is compiled for MemorySanitizer (the stage memory): clang 14's does not know stat and fstat, which are
 * functions of the C library since glibc 2.33, and takes what they find for never written.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_MEMORY_STAT_H
#define NRG_TESTS_MEMORY_STAT_H

#include <sanitizer/msan_interface.h>
#include <sys/stat.h>

static inline int memory_stat_found(int result, struct stat *found)
{
    if (result == 0)
        __msan_unpoison(found, sizeof *found);
    return result;
}

#define stat(path, found) memory_stat_found(stat(path, found), found)
#define fstat(file, found) memory_stat_found(fstat(file, found), found)

#endif
