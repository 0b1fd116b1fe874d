/* What is made of a call's description. For its header the names of its parts, types, numbers (after <NRG_OF>_N_ONE) and
 * operands, and how many there are; with NRG_MAKE_TABLES, for its file of src/calls, the table nrg_call_<NRG_NAME>.
 *
 * SPDX-License-Identifier: MIT */
#include "words.h"

#ifndef NRG_MAKE_TABLES
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

#else
#define NRG_PASS NRG_STRUCTS_
#include NRG_DEF
#undef NRG_PASS

static const nrg_part NRG_JOIN(NRG_NAME, _call_parts)[] = {
#define NRG_PASS NRG_SIZES_
#include NRG_DEF
#undef NRG_PASS
};

static const nrg_range NRG_JOIN(NRG_NAME, _call_ranges)[] = {
#define NRG_PASS NRG_RANGES_
#include NRG_DEF
#undef NRG_PASS
    {.part = 0} /* not counted: there may be none */
};

static const nrg_operand NRG_JOIN(NRG_NAME, _call_operands)[] = {
#define NRG_PASS NRG_ENTRY_
#include NRG_DEF
#undef NRG_PASS
    [NRG_OWN(OPERANDS)] = {.part = 0} /* not counted */
};

static nrg_status NRG_JOIN(NRG_NAME, _call_measure)(const void *const *part_, nrg_sizes *sizes_)
{
    nrg_status status_ = NRG_OK;
    const size_t n_ONE = 1;
    size_t space_ = 0;                                    /* that a CHECK measures */
    (void)part_, (void)sizes_, (void)n_ONE, (void)space_; /* not every call has them */
#define NRG_PASS NRG_MEASURE_
#include NRG_DEF
    return status_;
}

const nrg_call NRG_JOIN(nrg_call_, NRG_NAME) = {
    .parts = NRG_JOIN(NRG_NAME, _call_parts),
    .operands = NRG_JOIN(NRG_NAME, _call_operands),
    .ranges = NRG_JOIN(NRG_NAME, _call_ranges),
    .part_count = NRG_OWN(PARTS),
    .operand_count = NRG_OWN(OPERANDS),
    .range_count = NRG_COUNT(NRG_JOIN(NRG_NAME, _call_ranges)) - 1,
    .measure = NRG_JOIN(NRG_NAME, _call_measure),
};

#endif
#include "words.h"
