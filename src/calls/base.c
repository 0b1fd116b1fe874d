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

const char *nrg_status_string(nrg_status status)
{
    switch (status) {
    case NRG_OK:
        return "success";
    case NRG_ERR_NULL:
        return "a pointer that this call needs is NULL";
    case NRG_ERR_STRUCT_SIZE:
        return "the size or reserved field of a struct is wrong, or asks for what this version of nrg does not know";
    case NRG_ERR_DIM:
        return "dim, channels or s is 0 (there is at least one of each), or no multiple of groups";
    case NRG_ERR_OVERFLOW:
        return "dim, rows and stride describe more memory than can be addressed";
    case NRG_ERR_STRIDE:
        return "a row stride is shorter than a row, so that rows would overlap";
    case NRG_ERR_ALIGNMENT:
        return "a pointer or a row stride is not a multiple of its element's size";
    case NRG_ERR_OVERLAP:
        return "an output overlaps another operand in a way that is not allowed";
    case NRG_ERR_ENUM:
        return "a dtype, mode, layout, store kind, gate or activation is unknown";
    case NRG_ERR_DTYPE:
        return "the dtype of y, r or w is neither that of x nor f32";
    case NRG_ERR_EPS:
        return "eps is negative, infinite or NaN";
    case NRG_ERR_CONSTANT:
        return "c or weight_offset is NaN, infinite, or beyond the largest float; or momentum is not from 0 to 1";
    case NRG_ERR_COMBINATION:
        return "options that exclude each other, or operands that belong to another option";
    case NRG_ERR_THREAD:
        return "ith and nth do not satisfy 0 <= ith < nth";
    case NRG_ERR_ISA_UNKNOWN:
        return "no instruction set path has this name or number";
    case NRG_ERR_ISA_UNSUPPORTED:
        return "this path is not in this build of nrg, or this CPU or its operating system cannot run it";
    case NRG_ERR_WORKSPACE:
        return "the workspace is smaller than this call needs, or holds nothing from the phase before";
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
    static const char *const names[] = {"identity", "sigmoid", "silu", "relu", "relu2", "tanh", "gelu", "gelu_tanh", "softplus"};
    return (unsigned)g <= NRG_ACT_SOFTPLUS ? names[g] : "?";
}
