/* The precheck of a hot call, <NRG_NAME>_precheck(parts ..., ith, nth, *laid): NRG_OK where it is plainly sound, and any other
 * status where nrg_check has to decide. For src/calls, after place.h.
 *
 * SPDX-License-Identifier: MIT */
#include "words.h"

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

#include "words.h"
