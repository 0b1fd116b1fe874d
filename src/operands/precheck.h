/* The precheck of a hot call, <NRG_NAME>_precheck(parts ..., ith, nth, *laid): whether it is plainly sound. For src/calls, after
 * place.h.
 *
 * SPDX-License-Identifier: MIT */
#include "words.h"

NRG_INLINE int NRG_JOIN(NRG_NAME, _precheck)(
#define NRG_PASS NRG_PARAMS_
#include NRG_DEF
#undef NRG_PASS
    int ith, int nth, nrg_laid *laid_)
{
    const size_t n_ONE = 1;
    nrg_precheck c_;
    nrg_sizes own_, *const sizes_ = &own_; /* where lines put a number that the one below reads */
    (void)n_ONE, (void)sizes_;
    c_.bytes = c_.written = c_.ignored = c_.always = c_.apart = c_.outputs = c_.count = 0;
    c_.low = UINTPTR_MAX;
    c_.high = c_.at[0].first = c_.at[0].end = c_.at[0].stride = 0; /* gcc does not see that the first is held against none */
    c_.at[0].index = 0;
    if ((ith < 0) | (ith >= nth))
        return 0;
#define NRG_PASS NRG_GO_
#include NRG_DEF
    laid_->bytes = c_.bytes;
    return 1;
}

#include "words.h"
#undef NRG_OF
#undef NRG_NAME
