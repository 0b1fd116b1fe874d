/* Everything about a call that must not change a bit of its results, drawn from a seed.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_CALL_LAYOUT_H
#define NRG_TESTS_HARNESS_CALL_LAYOUT_H

#include "call_harness.h"

/* What a layout can have, for the account, which wants all combinations of the first four. */
enum call_mark {
    IN_PLACE = 1 << 0,
    ODD_GAPS = 1 << 1,
    PADDED = 1 << 2,
    SHARED = 1 << 3,
    COMBINATIONS = 1 << 4, /* of these */
    FUSED = 1 << 4,
    TRANSPOSED = 1 << 5,
    LEFT_OUT = 1 << 6,
    STRIDE_0 = 1 << 7,
    SURPLUS = 1 << 8,
    AT_FRONT = 1 << 9,
    AT_BACK = 1 << 10,
    CALL_MARKS = 11 /* how many */
};

enum { CALL_MOST_SHARES = 320 };

typedef struct call_layout {
    operand_place place[OPERANDS_MOST];
    int over[OPERANDS_MOST]; /* the operand it is in the place of, itself where apart */
    int left_out[OPERANDS_MOST], say_zero[OPERANDS_MOST];
    int fused; /* the first of those that share rows, or -1 */
    int nth;
    uint64_t order; /* of the shares */
    uint64_t vary;  /* for the case's vary() */
    unsigned char rubbish, canary;
} call_layout;

/* Dense, apart, one share: the reference. */
call_layout call_layout_plain(const call_case *c);

/* Layout n of a case. Neighbouring n have different combinations of the first four marks. */
call_layout call_layout_draw(const call_case *c, uint64_t seed, unsigned n);

void call_layout_write(char *text, size_t room, const call_case *c, const call_layout *l);

/* Whether an operand has memory of its own, and whether that is a slice of shared rows. */
int call_stands(const call_case *c, const call_layout *l, int i);
int call_is_fused(const call_case *c, const call_layout *l, int i);

/* The marks that layouts of a case can have; those that a layout has. */
unsigned call_marks_offered(const call_case *c);
unsigned call_marks(const call_case *c, const call_layout *l);

#endif
