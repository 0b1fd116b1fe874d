/* SLEEF's reproducible functions: the same bits on every instruction set. SLEEF 3 has them under names of their own, Sleef_finz_
 * where they are made of fused multiply-adds and Sleef_cinz_ where they are not; in SLEEF 4 all functions are such, and these
 * names are gone.
 *
 * SLEEF_VECTOR: of a vector with fused multiply-adds, by function, lanes, bound and instruction set: expf8_u10avx2.
 * SLEEF_PLAIN_VECTOR: of one without: expf4_u10sse2.
 * SLEEF_DOUBLE and SLEEF_FLOAT: of one number on any CPU, by function and bound: exp, u10.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_SLEEF_SLEEF_NAMES_H
#define NRG_TESTS_SLEEF_SLEEF_NAMES_H

#include <sleef.h>

#if SLEEF_VERSION_MAJOR < 4
#define SLEEF_VECTOR(name) Sleef_finz_##name
#define SLEEF_PLAIN_VECTOR(name) Sleef_cinz_##name
#define SLEEF_DOUBLE(function, bound) Sleef_cinz_##function##d1_##bound##purec
#define SLEEF_FLOAT(function, bound) Sleef_cinz_##function##f1_##bound##purec
#else
#define SLEEF_VECTOR(name) Sleef_##name
#define SLEEF_PLAIN_VECTOR(name) Sleef_##name
#define SLEEF_DOUBLE(function, bound) Sleef_##function##_##bound
#define SLEEF_FLOAT(function, bound) Sleef_##function##f_##bound
#endif

#endif
