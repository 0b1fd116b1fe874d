/* What this build holds, as kernels.def has it.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../kernels.h"

const char *nrg_family_name(unsigned i)
{
    static const char *const names[] = {"norm",  "activation", "channel_norm", "rope",     "recurrent",
                                        "embed", "relative",   "score_bias",   "quantize", "softmax"};
    return i < sizeof names / sizeof names[0] ? names[i] : NULL;
}

int nrg_family_built(const char *name)
{
    static const char *const built[] = {
#define NRG_KERNEL(family, op, job) #family,
#include "../kernels.def"
#undef NRG_KERNEL
        NULL};
    for (size_t i = 0; name && built[i]; i++)
        if (strcmp(built[i], name) == 0)
            return 1;
    return 0;
}

int nrg_backward_built(void)
{
#ifdef NRG_NO_BACKWARD
    return 0;
#else
    return 1;
#endif
}
