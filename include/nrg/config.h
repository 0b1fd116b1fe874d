/* nrg/config.h: macros for #if. NRG_HAS_<FAMILY> is 1 if the library has a family of functions, else 0. NRG_HAS_BACKWARD is 1
 * if it has their backward passes. nrg_family_name (nrg/base.h) lists the families.
 *
 * An installed copy begins with NRG_NO_<FAMILY> for each family that the build excludes. If you compile the sources yourself,
 * define the same macros for the library and for its users.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CONFIG_H
#define NRG_CONFIG_H

#ifdef NRG_NO_NORM
#define NRG_HAS_NORM 0
#else
#define NRG_HAS_NORM 1
#endif

#ifdef NRG_NO_ACTIVATION
#define NRG_HAS_ACTIVATION 0
#else
#define NRG_HAS_ACTIVATION 1
#endif

#ifdef NRG_NO_CHANNEL_NORM
#define NRG_HAS_CHANNEL_NORM 0
#else
#define NRG_HAS_CHANNEL_NORM 1
#endif

#ifdef NRG_NO_ROPE
#define NRG_HAS_ROPE 0
#else
#define NRG_HAS_ROPE 1
#endif

#ifdef NRG_NO_RECURRENT
#define NRG_HAS_RECURRENT 0
#else
#define NRG_HAS_RECURRENT 1
#endif

#ifdef NRG_NO_EMBED
#define NRG_HAS_EMBED 0
#else
#define NRG_HAS_EMBED 1
#endif

#ifdef NRG_NO_RELATIVE
#define NRG_HAS_RELATIVE 0
#else
#define NRG_HAS_RELATIVE 1
#endif

#ifdef NRG_NO_SCORE_BIAS
#define NRG_HAS_SCORE_BIAS 0
#else
#define NRG_HAS_SCORE_BIAS 1
#endif

#ifdef NRG_NO_QUANTIZE
#define NRG_HAS_QUANTIZE 0
#else
#define NRG_HAS_QUANTIZE 1
#endif

#ifdef NRG_NO_SOFTMAX
#define NRG_HAS_SOFTMAX 0
#else
#define NRG_HAS_SOFTMAX 1
#endif

#ifdef NRG_NO_BACKWARD
#define NRG_HAS_BACKWARD 0
#else
#define NRG_HAS_BACKWARD 1
#endif

#endif
