/* Not a platform's: see ../README.md. In Android's C library since API level 18.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_STAND_IN_AUXV_H
#define NRG_STAND_IN_AUXV_H

enum { AT_HWCAP = 16 };
unsigned long getauxval(unsigned long);

#endif
