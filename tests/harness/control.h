/* What the calling thread's arithmetic does otherwise than nrg is made for: MXCSR of x86, FPCR of AArch64. Elsewhere the
 * rounding, which is all that C can set.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_CONTROL_H
#define NRG_TESTS_HARNESS_CONTROL_H

#include <stdint.h>

/* Bits of a control word; 0 for what a CPU does not have. CONTROL_FLAGS are no settings: arithmetic raises them. */
#if defined(__x86_64__)
#include <xmmintrin.h>
enum {
    CONTROL_RESULTS = 0x8000,
    CONTROL_OPERANDS = 0x40,
    CONTROL_HALVES = 0,
    CONTROL_DOWN = 0x2000,
    CONTROL_UP = 0x4000,
    CONTROL_ZERO = 0x6000,
    CONTROL_FLAGS = 0x3f
};
static inline unsigned control(void) { return _mm_getcsr(); }
static inline void set_control(unsigned word) { _mm_setcsr(word); }
#elif defined(__aarch64__)
/* FZ is one bit for results and operands. FZ16 is arithmetic in f16, of which nrg has none, and stays 0 on a CPU without it. */
enum {
    CONTROL_RESULTS = 1 << 24,
    CONTROL_OPERANDS = 1 << 24,
    CONTROL_HALVES = 1 << 19,
    CONTROL_UP = 1 << 22,
    CONTROL_DOWN = 2 << 22,
    CONTROL_ZERO = 3 << 22,
    CONTROL_FLAGS = 0 /* in a register of their own */
};
static inline unsigned control(void)
{
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return (unsigned)word;
}
static inline void set_control(unsigned word) { __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)word) : "memory"); }
#else
#include <fenv.h>
#ifndef FE_UPWARD
#define FE_UPWARD 0
#endif
#ifndef FE_DOWNWARD
#define FE_DOWNWARD 0
#endif
#ifndef FE_TOWARDZERO
#define FE_TOWARDZERO 0
#endif
/* The usual rounding is 0 wherever nrg runs, so that these can be added to it. */
enum {
    CONTROL_RESULTS,
    CONTROL_OPERANDS = 0,
    CONTROL_HALVES = 0,
    CONTROL_DOWN = FE_DOWNWARD,
    CONTROL_UP = FE_UPWARD,
    CONTROL_ZERO = FE_TOWARDZERO,
    CONTROL_FLAGS = 0
};
static inline unsigned control(void) { return (unsigned)fegetround(); }
static inline void set_control(unsigned word) { fesetround((int)word); }
#endif

#endif
