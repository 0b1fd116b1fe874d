/* Not a platform's: see README.md.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_STAND_IN_MATH_H
#define NRG_STAND_IN_MATH_H

double fma(double, double, double), sqrt(double), floor(double), ceil(double), rint(double), frexp(double, int *),
    ldexp(double, int);
double fabs(double), copysign(double, double);
float fmaf(float, float, float), sqrtf(float), rintf(float), roundf(float), ldexpf(float, int), fabsf(float),
    copysignf(float, float);

/* in the words of C alone, as for a compiler without builtins */
#define INFINITY ((float)(1e300 * 1e300))
#define NAN (-(float)(INFINITY * 0.0f))
#define isnan(x) ((x) != (x))
#define isinf(x) ((x) == INFINITY || (x) == -INFINITY)
#define isfinite(x) (!isnan(x) && !isinf(x))
#define signbit(x) (copysign(1.0, (double)(x)) < 0)

#endif
