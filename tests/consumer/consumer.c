/* What a project that uses the library has: scripts/consumers.sh builds it in every way in which one can. C99.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>
#include <stdio.h>

/* nrg/config.h agrees with the library. */
static int config_is_of_the_library(void)
{
    const struct {
        const char *name;
        int has;
    } families[] = {{"norm", NRG_HAS_NORM},         {"activation", NRG_HAS_ACTIVATION}, {"channel_norm", NRG_HAS_CHANNEL_NORM},
                    {"rope", NRG_HAS_ROPE},         {"recurrent", NRG_HAS_RECURRENT},   {"embed", NRG_HAS_EMBED},
                    {"relative", NRG_HAS_RELATIVE}, {"score_bias", NRG_HAS_SCORE_BIAS}, {"quantize", NRG_HAS_QUANTIZE},
                    {"softmax", NRG_HAS_SOFTMAX}};
    const unsigned count = sizeof families / sizeof families[0];
    for (unsigned i = 0; i < count; i++)
        if (nrg_family_built(families[i].name) != families[i].has)
            return 0;
    return nrg_family_name(count - 1) && !nrg_family_name(count) && nrg_backward_built() == NRG_HAS_BACKWARD;
}

int main(void)
{
    const float x[4] = {3, -3, 3, -3}, w[4] = {1, 2, 3, 4}, wanted[4] = {1, -2, 3, -4};
    float o[4];
    const nrg_status status = nrg_rms_norm_f32(1, 4, x, w, o, 0.0);
    if (status != NRG_OK) {
        fprintf(stderr, "%s\n", nrg_status_string(status));
        return 1;
    }
    if (!config_is_of_the_library()) {
        fputs("nrg/config.h is of another build\n", stderr);
        return 1;
    }
    for (int i = 0; i < 4; i++)
        if (o[i] != wanted[i])
            return 1;
    printf("nrg on %s\n", nrg_isa_name(nrg_isa_active()));
    return 0;
}
