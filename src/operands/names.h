/* The names of a call: of its parts, types, numbers (after <NRG_OF>_N_ONE) and operands, and how many operands there are. For its
 * header, which declares its nrg_call, too.
 *
 * SPDX-License-Identifier: MIT */
#include "words.h"

enum {
#define NRG_PASS NRG_PARTS_
#include NRG_DEF
    NRG_OWN(PARTS)
};
enum {
#undef NRG_PASS
#define NRG_PASS NRG_TYPES_
#include NRG_DEF
    NRG_OWN(TYPES)
};
enum {
    NRG_OWN(N_ONE),
#undef NRG_PASS
#define NRG_PASS NRG_NUMBERS_
#include NRG_DEF
    NRG_OWN(NUMBERS)
};
enum {
#undef NRG_PASS
#define NRG_PASS NRG_OPERANDS_
#include NRG_DEF
    NRG_OWN(OPERANDS)
};
_Static_assert((int)NRG_OWN(PARTS) <= (int)NRG_PARTS && (int)NRG_OWN(TYPES) <= (int)NRG_TYPES &&
                   (int)NRG_OWN(NUMBERS) <= (int)NRG_NUMBERS && (int)NRG_OWN(OPERANDS) <= (int)NRG_OPERANDS,
               "nrg_checked has room");

extern const nrg_call NRG_JOIN(nrg_call_, NRG_NAME);

#include "words.h"
