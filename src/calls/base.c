/* Version, status sentences, element types, names.
 *
 * SPDX-License-Identifier: MIT */
#include "../internal.h"

#define NRG_TEXT_(x) #x
#define NRG_TEXT(x) NRG_TEXT_(x)

const char *nrg_version(void)
{
    return NRG_TEXT(NRG_VERSION_MAJOR) "." NRG_TEXT(NRG_VERSION_MINOR) "." NRG_TEXT(NRG_VERSION_PATCH);
}

int nrg_numbers_version(void) { return NRG_NUMBERS_VERSION; }

const char *nrg_status_string(nrg_status status)
{
    switch (status) {
    case NRG_OK:
        return "success";
    case NRG_ERR_NULL:
        return "a pointer that this call needs is NULL: spec, args, or an operand that the options ask for";
    case NRG_ERR_STRUCT_SIZE:
        return "a struct's size field is not its sizeof, which its constructor sets; or reserved, or a field that this version "
               "of nrg does not know, is not 0";
    case NRG_ERR_DIM:
        return "a number of elements (dim, channels, s, n_dims) is 0, is no multiple of groups or of 2, or is not that of "
               "another argument";
    case NRG_ERR_OVERFLOW:
        return "an operand is larger than memory can be: a number of elements or rows, or a stride, is far too large";
    case NRG_ERR_STRIDE:
        return "a stride is shorter than what it steps over (strides are in bytes, and 0 is dense), or distances differ where "
               "they may not";
    case NRG_ERR_ALIGNMENT:
        return "a pointer or a stride is not a multiple of its element's size (strides are in bytes)";
    case NRG_ERR_OVERLAP:
        return "an output overlaps another operand in a way that is not allowed";
    case NRG_ERR_ENUM:
        return "an enum has a value that is unknown, or 0 where one has to be chosen: a dtype, mode, layout, store kind, gate or "
               "activation";
    case NRG_ERR_DTYPE:
        return "an operand's dtype (of y, r, w, a bias or a table) is neither that of the call nor f32, or two structs have "
               "different dtypes";
    case NRG_ERR_EPS:
        return "eps is negative, infinite or NaN";
    case NRG_ERR_CONSTANT:
        return "a constant is NaN, infinite or out of its range: c, weight_offset, scale, momentum (0 to 1), or another number "
               "of the spec";
    case NRG_ERR_COMBINATION:
        return "an operand or a field is set that the other options have no use for (leave it NULL or 0), one of a pair is "
               "missing, or options exclude each other";
    case NRG_ERR_THREAD:
        return "ith is not from 0 to nth - 1";
    case NRG_ERR_ISA_UNKNOWN:
        return "no instruction set path has this name or number";
    case NRG_ERR_ISA_UNSUPPORTED:
        return "this CPU or its operating system cannot run this path, or it is not in this build of nrg";
    case NRG_ERR_WORKSPACE:
        return "workspace_size is smaller than this call needs (a function whose name ends in _workspace says how much), or the "
               "phase before was left out";
    case NRG_ERR_COUNT:
        return "a set has too few elements: none, or a single one where an unbiased variance is asked for";
    case NRG_ERR_POSITION:
        return "a position or an id lies outside its table, or beyond what can be computed";
    }
    return "unknown status";
}

size_t nrg_dtype_size(nrg_dtype dtype) { return dtype == NRG_F32 ? 4 : dtype == NRG_F16 || dtype == NRG_BF16 ? 2 : 0; }

const char *nrg_dtype_name(nrg_dtype dtype)
{
    switch (dtype) {
    case NRG_F32:
        return "f32";
    case NRG_F16:
        return "f16";
    case NRG_BF16:
        return "bf16";
    case NRG_DTYPE_SAME:
        break;
    }
    return "?";
}

const char *nrg_activation_name(nrg_activation g)
{
    static const char *const names[] = {"identity", "sigmoid",    "silu",     "relu",       "relu2",      "tanh",
                                        "gelu",     "gelu_tanh",  "softplus", "gelu_quick", "hard_swish", "hard_sigmoid",
                                        "elu",      "leaky_relu", "mish",     "exp",        "expm1",      "softsign"};
    _Static_assert(sizeof names / sizeof names[0] == NRG_ACTIVATION_COUNT, "a name for each");
    return (unsigned)g < NRG_ACTIVATION_COUNT ? names[g] : "?";
}
