/* SLEEF's reproducible functions: the same bits on every instruction set. SLEEF 3 has them under names of their own, Sleef_finz_
 * where they are made of fused multiply-adds and Sleef_cinz_ where they are not; in SLEEF 4 all are such, and the names are gone.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_SLEEF_SLEEF_NAMES_H
#define NRG_TESTS_SLEEF_SLEEF_NAMES_H

#include <sleef.h>

#if SLEEF_VERSION_MAJOR < 4
#define SLEEF_FUSED(name) Sleef_finz_##name
#define SLEEF_UNFUSED(name) Sleef_cinz_##name
#else
#define SLEEF_FUSED(name) Sleef_##name
#define SLEEF_UNFUSED(name) Sleef_##name
#endif

#endif
