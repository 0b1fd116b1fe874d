/* Version, status sentences, element types, names.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../internal.h"
#include "../job/activation.h"

#define NRG_TEXT_(x) #x
#define NRG_TEXT(x) NRG_TEXT_(x)

const char *nrg_version(void)
{
    return NRG_TEXT(NRG_VERSION_MAJOR) "." NRG_TEXT(NRG_VERSION_MINOR) "." NRG_TEXT(NRG_VERSION_PATCH);
}

int nrg_numbers_version(void) { return NRG_NUMBERS_VERSION; }

const char *nrg_status_string(nrg_status status)
{
    static const char *const sentences[] = {
        [NRG_OK] = "success",
        [NRG_ERR_NULL] = "spec, args or a required operand is NULL",
        [NRG_ERR_UNALLOCATED] = "an operand is NRG_UNALLOCATED; a _check function accepts that, a call does not",
        [NRG_ERR_STRUCT_SIZE] = "the size field of a struct is not its sizeof (use the constructor), or a field that this "
                                "version of nrg does not support is not 0",
        [NRG_ERR_ENUM] = "an enum field has an unknown value, or 0 without being optional: a dtype, mode, layout, store kind, "
                         "gate or activation",
        [NRG_ERR_DTYPE] = "the dtype of an operand (y, r, w, a bias or a table) is neither that of the call nor f32, or two "
                          "structs have different dtypes",
        [NRG_ERR_DIM] =
            "a number of elements is 0, is not a multiple of another number, or differs from that of another argument",
        [NRG_ERR_EPS] = "eps is negative, infinite or NaN",
        [NRG_ERR_CONSTANT] = "a number in spec or args is NaN, infinite or out of its range",
        [NRG_ERR_COMBINATION] =
            "conflicting options: an unused operand or field is set, one of a pair is missing, or two options exclude each other",
        [NRG_ERR_OVERFLOW] =
            "an operand would be larger than memory: a number of elements, a number of rows or a stride is too large",
        [NRG_ERR_STRIDE] = "a stride is shorter than the data that it steps over (strides are in bytes; 0 means dense)",
        [NRG_ERR_ALIGNMENT] = "a pointer or a stride is not a multiple of the element size (strides are in bytes)",
        [NRG_ERR_OVERLAP] = "an output overlaps another operand in a way that the header does not allow",
        [NRG_ERR_WORKSPACE] =
            "workspace_size is smaller than the value of the _workspace function, or the previous phase has not run",
        [NRG_ERR_COUNT] = "a set has too few elements: none, or a single one for an unbiased variance",
        [NRG_ERR_POSITION] = "a position or an id is outside its table, or out of range",
        [NRG_ERR_THREAD] = "ith is not in the range 0 to nth - 1",
        [NRG_ERR_ISA_UNKNOWN] = "no path has this name or number",
        [NRG_ERR_ISA_UNSUPPORTED] = "this build of nrg lacks the path, or this CPU or its operating system does not support it",
    };
    _Static_assert(sizeof sentences / sizeof sentences[0] == NRG_ERR_ISA_UNSUPPORTED + 1, "a sentence for each status");
    return (unsigned)status < sizeof sentences / sizeof sentences[0] ? sentences[status] : "unknown status";
}

size_t nrg_dtype_size(nrg_dtype dtype) { return dtype == NRG_F32 ? 4 : dtype == NRG_F16 || dtype == NRG_BF16 ? 2 : 0; }

const char *nrg_dtype_name(nrg_dtype dtype)
{
    static const char *const names[] = {"same", "f32", "f16", "bf16"};
    return (unsigned)dtype < sizeof names / sizeof names[0] ? names[dtype] : NULL;
}

const char *nrg_activation_name(nrg_activation g)
{
    static const char *const names[] = {"identity", "sigmoid",    "silu",     "relu",       "relu2",      "tanh",
                                        "gelu",     "gelu_tanh",  "softplus", "gelu_quick", "hard_swish", "hard_sigmoid",
                                        "elu",      "leaky_relu", "mish",     "exp",        "expm1",      "softsign"};
    _Static_assert(sizeof names / sizeof names[0] == NRG_ACTIVATION_COUNT, "a name for each");
    return (unsigned)g < NRG_ACTIVATION_COUNT ? names[g] : NULL;
}

nrg_status nrg_activation_from_name(const char *name, nrg_activation *g)
{
    if (!name || !g)
        return NRG_ERR_NULL;
    for (unsigned i = 0; i < NRG_ACTIVATION_COUNT; i++)
        if (strcmp(name, nrg_activation_name((nrg_activation)i)) == 0) {
            *g = (nrg_activation)i;
            return NRG_OK;
        }
    return NRG_ERR_ENUM;
}

float nrg_activation_alpha(nrg_activation g) { return nrg_default_alpha(g); }
