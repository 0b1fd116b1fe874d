/* A library with stubs for its kernels, as a module: wild_calls_test --against FILE makes each call of it, too.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_WILD_MODULE_H
#define NRG_TESTS_CALLS_WILD_MODULE_H

#include "sound.h"
#include "stub_kernels.h"

typedef struct wild_module {
    const sound_family *const *families;
    int family_count;
    stub_calls *stub;
    jmp_buf *stub_end;
} wild_module;

#define WILD_MODULE "nrg_wild_module" /* the name of the module's own */

#endif
