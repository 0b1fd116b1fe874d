/* What the calls of a suite have met, in memory that its processes share: a sweep must not skip anything silently.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_CALL_ACCOUNT_H
#define NRG_TESTS_HARNESS_CALL_ACCOUNT_H

#include "call_layout.h"

enum { CALL_OP_NAME = 48 };

/* After a call. */
void call_account_enter(const call_case *c, nrg_isa isa, const call_layout *l);

#endif
