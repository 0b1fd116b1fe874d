/* Of the commit in scripts/baseline: its sound.h has the struct that is read here.
 *
 * SPDX-License-Identifier: MIT */
#include "wild_module.h"

#include "sound_families.h"

extern wild_module nrg_wild_module;
__attribute__((visibility("default"))) wild_module nrg_wild_module = {.stub = &stub, .stub_end = &stub_end};

__attribute__((constructor)) static void list_calls(void)
{
    wild_module *m = &nrg_wild_module;
    for (int f = 0; f < FAMILIES; f++)
        for (int n = 0; n < families[f]->count; n++) {
            const sound_call *c = &families[f]->calls[n];
            m->calls[m->call_count++] = (wild_call){c->function, c->is_part, c->call->operand_count, c->run, c->ask};
        }
}
