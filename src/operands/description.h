/* What is made of a call's description. For its header the names of its parts, types, numbers (after <NRG_OF>_N_ONE) and
 * operands, and how many there are. With NRG_MAKE_TABLES, for its file of src/calls, after place.h: the table
 * nrg_call_<NRG_NAME>, and the precheck <NRG_NAME>_precheck(parts ..., ith, nth, *laid).
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
#undef NRG_PASS
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

/* The checks in a straight line, for a hot call: NRG_OK where it is plainly sound, and any other status where nrg_check has to
 * decide. */
NRG_INLINE nrg_status NRG_JOIN(NRG_NAME, _precheck)(
#define NRG_PASS NRG_PARAMS_
#include NRG_DEF
#undef NRG_PASS
    int ith, int nth, nrg_laid *laid_)
{
    nrg_status status_;
    const size_t n_ONE = 1;
    size_t space_ = 0; /* apart from the numbers, which stay in registers where none has an address */
    nrg_precheck c_;
    nrg_sizes own_, *const sizes_ = &own_;
    (void)n_ONE, (void)space_, (void)status_;
    c_.written = c_.ignored = c_.always = c_.apart = c_.outputs = 0;
    c_.bytes = c_.high = 0;
    c_.low = UINTPTR_MAX;
    if ((ith < 0) | (ith >= nth))
        return NRG_ERR_THREAD;
#define NRG_PASS NRG_GO_
#include NRG_DEF
    laid_->bytes = c_.bytes;
    return NRG_OK;
}

#endif
#include "words.h"
