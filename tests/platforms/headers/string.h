/* Not a platform's: see README.md.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_STAND_IN_STRING_H
#define NRG_STAND_IN_STRING_H

#include <stddef.h>

void *memcpy(void *, const void *, size_t), *memmove(void *, const void *, size_t), *memset(void *, int, size_t);
int memcmp(const void *, const void *, size_t), strcmp(const char *, const char *);

#endif
