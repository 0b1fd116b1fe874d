/* nrg/hadamard.h: the Hadamard rotation of rows, which spreads outliers over all elements of a row before it is quantized.
 *
 *     forward     o = x · H / √d            backward    dx = d_o · H / √d
 *
 * d is the length of a row: 64, 128, 256 or 512. H is the Hadamard matrix in Sylvester's order: H[i][j] is 1 if i & j has an even
 * number of bits, else -1. H / √d is symmetric and orthonormal. So the rotation is its own inverse, and its own backward pass.
 *
 * Sources:
 * - Sylvester, "Thoughts on inverse orthogonal matrices", Philosophical Magazine 34, 1867: H.
 * - Ashkboos et al., "QuaRot", arXiv:2404.00456, and Liu et al., "SpinQuant", arXiv:2405.16406: activations and KV caches.
 * - The function equals hadamard_transform(x, 1/√d) of the library fast-hadamard-transform, up to rounding.
 *
 * Order of operations, which defines the bits. All arithmetic is f32, for 16-bit dtypes too:
 *
 *     for s = 1, 2, 4, …, d/2, for each i without the bit s:     v[i], v[i + s] = v[i] + v[i + s], v[i] - v[i + s]
 *     o[i] = v[i]·c, rounded to the dtype
 *
 * c is 1/√d, rounded to f32. It is a power of two for d = 64 (2^-3) and d = 256 (2^-4), so the product is exact unless it is
 * subnormal. For d = 128 and d = 512, c and the product are rounded once each.
 *
 * Error bounds, for finite rows with Σ|x| below the largest float. n is 6 for d = 64, 9 for 128, 8 for 256 and 11 for 512, and
 * e is (1 + 2^-24)^n - 1, about n·2^-24. In f32:
 * - Each element of o is off by at most e · Σ|x| / √d + 2^-150.
 * - The vector of a row's errors has at most the length e · |x| + 2^-150·√d. |x| is the length of the row, and of the exact o.
 * - A 16-bit result is the f32 result, rounded once more.
 *
 * If Σ|x| exceeds the largest float, results may be infinite or NaN. One infinity in a row makes all of its results infinite; a
 * NaN, or several infinities, can make all of them NaN. Other rows are not affected.
 *
 * Results are bit-identical on every path and for any (ith, nth), alignment and stride, in place or not.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_HADAMARD_H
#define NRG_HADAMARD_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Points to the data of either pass. Make one with nrg_hadamard_args_init, then change fields. */
typedef struct nrg_hadamard_args {
    size_t size;       /* sizeof(nrg_hadamard_args) */
    size_t rows;       /* if 0, the call only validates */
    size_t dim;        /* elements of a row: 64, 128, 256 or 512 */
    nrg_dtype dtype;   /* of x and o */
    uint32_t reserved; /* 0 */
    const void *x;     /* [rows, dim] input; backward: the gradient of o */
    size_t x_stride;   /* bytes from row to row; 0: dense */
    void *o;           /* [rows, dim] output; backward: the gradient of x */
    size_t o_stride;
} nrg_hadamard_args;

/* Returns args for a dense matrix of rows.
 *
 * Parameters:
 * - dtype, rows, dim, x, o: the fields of the same names. */
static inline nrg_hadamard_args nrg_hadamard_args_init(nrg_dtype dtype, size_t rows, size_t dim, const void *x, void *o)
{
    nrg_hadamard_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.dim = dim;
    args.dtype = dtype;
    args.reserved = 0;
    args.x = x;
    args.x_stride = 0;
    args.o = o;
    args.o_stride = 0;
    return args;
}

/* Rotates each row: o = x · H / √dim.
 *
 * Parameters:
 * - args: the data. Required are x and o.
 * - ith, nth: the share, a range of rows.
 *
 * Aliasing: o may be x, with the same stride. Otherwise it shares no byte with x.
 *
 *               x     o
 *         o     yes
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: args is NULL; or there are rows, and x or o is NULL.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, a field of a later version is not 0 (nrg/base.h), or reserved is not 0.
 * - NRG_ERR_ENUM: dtype has an unknown value, or is NRG_DTYPE_SAME.
 * - NRG_ERR_DIM: dim is not 64, 128, 256 or 512.
 * - NRG_ERR_STRIDE: a stride is shorter than a row.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_OVERLAP: o overlaps x otherwise than the table allows.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_hadamard_forward(const nrg_hadamard_args *args, int ith, int nth);

/* Validates the arguments of nrg_hadamard_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_hadamard_forward_check(const nrg_hadamard_args *args);

/* Computes the gradient of x from the gradient of o, which is the same rotation. Applied to rotated rows, it is also the inverse.
 *
 * Parameters:
 * - args: the data. x is the gradient of o, and o receives the gradient of x.
 * - ith, nth: the share, a range of rows.
 *
 * Aliasing: as in nrg_hadamard_forward.
 *
 * Returns the statuses of nrg_hadamard_forward. On error, writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_hadamard_backward(const nrg_hadamard_args *args, int ith, int nth);

/* Validates the arguments of nrg_hadamard_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_hadamard_backward_check(const nrg_hadamard_args *args);

#ifdef __cplusplus
}
#endif
#endif
