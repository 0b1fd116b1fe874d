/* Tensors in up to four dimensions, made into as few calls of a kernel as can be: dimensions that follow each other without a gap
 * in every tensor become one.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_PLANES_H
#define NRG_CALLS_PLANES_H

#include "../job/planes.h"
#include "../operands/check.h"

/* inner: groups of a row that are rows to the kernel, or 1; or the elements of a row. */
static inline void planes_begin(nrg_planes *p, size_t inner, size_t rows, size_t rows2, size_t rows3)
{
    memset(p, 0, sizeof *p);
    p->count[0] = inner;
    p->count[1] = rows;
    p->count[2] = rows2;
    p->count[3] = rows3;
}

/* One tensor: the bytes of an inner row, and the strides as they were checked. Nothing where it is not there. */
static inline void planes_add(nrg_planes *p, unsigned tensor, const void *pointer, size_t inner_bytes, const size_t *stride)
{
    if (!pointer)
        return;
    p->stride[tensor][0] = inner_bytes;
    for (int k = 1; k < NRG_PLANE_LEVELS; k++)
        p->stride[tensor][k] = p->count[k] > 1 ? stride[k - 1] : 0;
}

/* Whether level k follows level k - 1 in every tensor. */
static inline int planes_follow(const nrg_planes *p, int k)
{
    for (int i = 0; i < NRG_PLANE_TENSORS; i++)
        if (p->stride[i][k] != p->count[k - 1] * p->stride[i][k - 1])
            return 0;
    return 1;
}

static inline void planes_drop(nrg_planes *p, int k)
{
    for (; k + 1 < NRG_PLANE_LEVELS; k++) {
        p->count[k] = p->count[k + 1];
        for (int i = 0; i < NRG_PLANE_TENSORS; i++)
            p->stride[i][k] = p->stride[i][k + 1];
    }
    p->count[k] = 1;
    for (int i = 0; i < NRG_PLANE_TENSORS; i++)
        p->stride[i][k] = 0;
}

/* Makes levels one that can be, in the order they have. Those below `kept` stay even where they take no step. Outermost levels
 * with one step have no strides, and stay: a matrix costs 500 instructions less (nrg_quantize of 1x768, callgrind). */
static inline void planes_fold(nrg_planes *p, int kept)
{
    int top = NRG_PLANE_LEVELS - 1;
    while (top > 0 && p->count[top] == 1)
        top--;
    for (int k = top; k >= kept; k--)
        if (p->count[k] == 1)
            planes_drop(p, k);
    for (int k = top; k > 0; k--)
        if (planes_follow(p, k)) {
            p->count[k - 1] *= p->count[k];
            planes_drop(p, k);
        }
}

static inline void planes_swap(nrg_planes *p, int j, int k)
{
    const size_t count = p->count[j];
    p->count[j] = p->count[k];
    p->count[k] = count;
    for (int i = 0; i < NRG_PLANE_TENSORS; i++) {
        const size_t stride = p->stride[i][j];
        p->stride[i][j] = p->stride[i][k];
        p->stride[i][k] = stride;
    }
}

/* Where rows need no order: levels from `kept` on as a tensor has them in memory, so that more of them follow each other. */
static inline void planes_sort(nrg_planes *p, int kept, unsigned tensor)
{
    for (int k = kept + 1; k < NRG_PLANE_LEVELS; k++)
        for (int j = k; j > kept && p->count[j] > 1 && (p->count[j - 1] == 1 || p->stride[tensor][j] < p->stride[tensor][j - 1]);
             j--)
            planes_swap(p, j - 1, j);
}

/* Where rows need no order: the level that has the most steps becomes the innermost. Two heads of each of 1000 tokens take two
 * calls of a kernel instead of 1000. */
static inline void planes_lengthen(nrg_planes *p)
{
    int most = 0;
    for (int k = 1; k < NRG_PLANE_LEVELS; k++)
        if (p->count[k] > p->count[most])
            most = k;
    planes_swap(p, 0, most);
}

/* Whether one call of a kernel does. */
static inline int planes_are_one(const nrg_planes *p) { return p->count[1] == 1; }

/* Bytes from a tensor's first plane to plane n, a plane being what is inside of level 1. */
static inline size_t planes_offset(const nrg_planes *p, unsigned tensor, size_t n)
{
    size_t bytes = 0;
    for (int k = 1; k < NRG_PLANE_LEVELS; k++) {
        if (n < p->count[k]) /* divisions take as long as a short row */
            return bytes + n * p->stride[tensor][k];
        bytes += n % p->count[k] * p->stride[tensor][k];
        n /= p->count[k];
    }
    return bytes;
}

/* A tensor's plane n; NULL where it is absent. */
static inline void *planes_at(const void *tensor, const nrg_planes *p, unsigned which, size_t n)
{
    return tensor ? (char *)(uintptr_t)tensor + planes_offset(p, which, n) : NULL;
}

#endif
