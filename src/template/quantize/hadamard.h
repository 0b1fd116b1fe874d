/* The Hadamard rotation over the vectors of a path's vec.h: strides 1 to 32 in blocks of 64 elements, which lie in registers,
 * then strides from 64 on between these blocks, from a buffer in L1.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_QUANTIZE_HADAMARD_H
#define NRG_TEMPLATE_QUANTIZE_HADAMARD_H

#include "../../job/hadamard.h"
#include "../step.h"

enum { HADAMARD_BLOCK = 64, HADAMARD_VECTORS = HADAMARD_BLOCK / VN };

NRG_INLINE void hadamard_butterfly(vf *a, vf *b)
{
    const vf sum = v_add(*a, *b);
    *b = v_sub(*a, *b);
    *a = sum;
}

/* The butterflies between n vectors, from a stride of so many vectors on. */
NRG_INLINE void hadamard_vectors(vf *v, int n, int stride)
{
    NRG_UNROLL
    for (; stride < n; stride *= 2) {
        NRG_UNROLL
        for (int i = 0; i < n; i++)
            if ((i & stride) == 0)
                hadamard_butterfly(&v[i], &v[i + stride]);
    }
}

/* Strides 1 to 32 of a block. Each step takes even and odd elements apart, so that the next stride is again that of neighbours;
 * after the stride VN they lie as at first. bf16 are loaded apart. */
NRG_INLINE void hadamard_block(vf *v, const char *x, size_t first, nrg_dtype D)
{
    const int apart = D == NRG_BF16 && !V_SMALL;
    if (apart)
        load_pairs(v, HADAMARD_VECTORS, x, first);
    else
        load_step(v, HADAMARD_VECTORS, x, first, VN, D);
    NRG_UNROLL
    for (int stride = 1; stride <= VN; stride *= 2) {
        if (stride > 1 || !apart)
            order_to_pairs(v, HADAMARD_VECTORS);
        NRG_UNROLL
        for (int i = 0; i < HADAMARD_VECTORS; i += 2)
            hadamard_butterfly(&v[i], &v[i + 1]);
    }
    hadamard_vectors(v, HADAMARD_VECTORS, 2);
}

/* n vectors of a result, `apart` elements from each other. */
NRG_INLINE void hadamard_store(vf *v, int n, char *o, size_t i, size_t apart, vf scale, nrg_dtype D)
{
    NRG_UNROLL
    for (int j = 0; j < n; j++)
        store_whole(o, i + (size_t)j * apart, v_mul(v[j], scale), D, 0);
}

/* The strides between n blocks in the buffer. */
NRG_INLINE void hadamard_blocks(const float *buffer, int n, char *o, vf scale, nrg_dtype D)
{
    for (size_t i = 0; i < HADAMARD_BLOCK; i += VN) {
        vf v[NRG_HADAMARD_MOST / HADAMARD_BLOCK];
        NRG_UNROLL
        for (int j = 0; j < n; j++)
            v[j] = v_ld_f32(buffer + i + j * HADAMARD_BLOCK);
        hadamard_vectors(v, n, 1);
        hadamard_store(v, n, o, i, HADAMARD_BLOCK, scale, D);
    }
}

NRG_INLINE void hadamard_kernel(const nrg_hadamard_job *job, nrg_dtype D)
{
    _Alignas(64) float buffer[NRG_HADAMARD_MOST];
    const size_t dim = job->dim, end = job->end, x_stride = job->x_stride, o_stride = job->o_stride;
    const vf scale = v_set1(job->scale);
    const char *x = job->x + job->begin * x_stride;
    char *o = job->o + job->begin * o_stride;
    for (size_t row = job->begin; row < end; row++, x += x_stride, o += o_stride) {
        for (size_t i = 0; i < dim; i += HADAMARD_BLOCK) {
            vf v[HADAMARD_VECTORS];
            hadamard_block(v, x, i, D);
            if (dim == HADAMARD_BLOCK)
                hadamard_store(v, HADAMARD_VECTORS, o, 0, VN, scale, D);
            else
                store_f32_step(v, HADAMARD_VECTORS, buffer + i, VN, 0);
        }
        if (dim == 2 * HADAMARD_BLOCK)
            hadamard_blocks(buffer, 2, o, scale, D);
        else if (dim == 4 * HADAMARD_BLOCK)
            hadamard_blocks(buffer, 4, o, scale, D);
        else if (dim == 8 * HADAMARD_BLOCK)
            hadamard_blocks(buffer, 8, o, scale, D);
    }
}

NRG_PATH_KERNELS(hadamard, hadamard, hadamard_kernel)

#endif
