/* Not a platform's: see README.md.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_STAND_IN_STDLIB_H
#define NRG_STAND_IN_STDLIB_H

#include <stddef.h>

char *getenv(const char *);

#endif
