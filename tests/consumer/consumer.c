/* What a project that uses the library has: scripts/consumers.sh builds it in every way in which one can. C99.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>
#include <stdio.h>

int main(void)
{
    const float x[4] = {3, -3, 3, -3}, w[4] = {1, 2, 3, 4}, wanted[4] = {1, -2, 3, -4};
    float o[4];
    const nrg_status status = nrg_rms_norm_f32(1, 4, x, w, o, 0.0);
    if (status != NRG_OK) {
        fprintf(stderr, "%s\n", nrg_status_string(status));
        return 1;
    }
    for (int i = 0; i < 4; i++)
        if (o[i] != wanted[i])
            return 1;
    printf("nrg on %s\n", nrg_isa_name(nrg_isa_active()));
    return 0;
}
