/* The library, as the commands use it.
 *
 * SPDX-License-Identifier: MIT */
#include "library.h"

#include <string.h>

#include "cli.h"

const char *const library_stores[] = {"auto", "keep", "stream", NULL};
const char *const library_activations[] = {
    "identity",   "sigmoid",      "silu", "relu",       "relu2", "tanh", "gelu",  "gelu_tanh", "softplus", "gelu_quick",
    "hard_swish", "hard_sigmoid", "elu",  "leaky_relu", "mish",  "exp",  "expm1", "softsign",  NULL};

int library_set_isa(const char *name)
{
    nrg_isa isa;
    if (!cli_isa(name, &isa))
        return CLI_REFUSED;
    const nrg_status status = nrg_isa_set(isa);
    return status == NRG_OK ? CLI_DONE : cli_refuse("%s", nrg_status_string(status));
}

int library_holds(const char *option, const char *what)
{
    const int is_backward = strcmp(what, "backward") == 0;
    if (is_backward ? nrg_backward_built() : nrg_family_built(what))
        return 1;
    return complain("%s: expected a build of nrg with %s, got one without", option, is_backward ? "backward passes" : what);
}
