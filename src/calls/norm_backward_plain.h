/* What nrg_norm_backward makes of its arguments, and a way past the checker for the calls that most are: see quick.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_NORM_BACKWARD_PLAIN_H
#define NRG_CALLS_NORM_BACKWARD_PLAIN_H

#include "../operands/norm.h"
#include "quick.h"
#include "quick_norm.h"

/* Sound arguments: real strides inside of a plane, dtypes, bytes in all. */
typedef struct backward_call {
    const nrg_norm_spec *spec;
    const nrg_norm_backward_args *args;
    size_t d_o_stride, dr_in_stride, x_stride, y_stride, z_stride, dx_stride, dy_stride,
        dz_stride;      /* x: r, where that is given */
    size_t bytes, rows; /* rows: of the kernel */
    nrg_dtype x_dtype, y_dtype, r_dtype, w_dtype;
} backward_call;

/* Rows without gate, groups, planes and y, of one dtype but for w, with dx as the one gradient of rows. Whether they are plainly
 * sound; *c is then complete. */
static inline int backward_is_plain(backward_call *c, const nrg_norm_spec *s, const nrg_norm_backward_args *a)
{
    if (a->size != sizeof *a || !quick_norm_is_plain(s, a->w))
        return 0;
    const nrg_dtype dtype = s->dtype, w_dtype = s->w_dtype == NRG_DTYPE_SAME ? dtype : s->w_dtype;
    const int options =
        quick_is_same(s->y_dtype, dtype) & quick_is_same(s->r_dtype, dtype) & ((w_dtype == dtype) | (w_dtype == NRG_F32));
    const int sizes = (s->dim - 1 < QUICK_MOST) & (a->rows - 1 < QUICK_MOST) & ((unsigned)a->store <= NRG_STORE_STREAM) &
                      !((a->rows2 - 1) | (a->rows3 - 1) | a->y_repeat | a->z_repeat | (uintptr_t)a->y | (uintptr_t)a->z |
                        (uintptr_t)a->dy | (uintptr_t)a->dz);
    const char *const x = a->r ? a->r : a->x;
    if (!(options & sizes & (x != NULL) & (a->d_o != NULL) & (a->dx != NULL)) || (a->r && a->x) || (a->mean && !s->centred))
        return 0;
    enum { X, D_O, DR_IN, W, B, MEAN, INPUTS };
    enum { DX, DW, DB, SPACE, OUTPUTS };
    const size_t rows = a->rows, dim = s->dim, element = dtype == NRG_F32 ? 4 : 2, w_element = w_dtype == NRG_F32 ? 4 : 2;
    const size_t row = dim * element, sums = ((size_t)(a->dw != NULL) + (a->db != NULL)) * nrg_norm_block_count(rows);
    quick_operand in[INPUTS], out[OUTPUTS];
    int sound = quick_rows(&in[X], x, a->r ? a->r_stride[0] : a->x_stride[0], rows, row, element - 1) &
                quick_rows(&in[D_O], a->d_o, a->d_o_stride[0], rows, row, element - 1) &
                quick_rows(&in[DR_IN], a->dr_in, a->dr_in_stride[0], rows, row, element - 1) &
                quick_rows(&in[W], a->w, 0, 1, dim * w_element, w_element - 1) &
                quick_rows(&in[B], a->b, 0, 1, dim * w_element, w_element - 1) &
                quick_rows(&in[MEAN], a->mean, 0, 1, rows * sizeof(float), sizeof(float) - 1) &
                quick_rows(&out[DX], a->dx, a->dx_stride[0], rows, row, element - 1) &
                quick_rows(&out[DW], a->dw, 0, 1, dim * sizeof(float), sizeof(float) - 1) &
                quick_rows(&out[DB], a->db, 0, 1, dim * sizeof(float), sizeof(float) - 1) &
                quick_rows(&out[SPACE], sums ? a->workspace : NULL, 0, 1, sums * dim * sizeof(double), sizeof(double) - 1);
    sound &= (sums == 0) | ((a->workspace != NULL) & (a->workspace_size >= sums * dim * sizeof(double)));
    for (int i = 0; i < INPUTS; i++) {
        if (in[i].first == in[i].end) /* what is not there has no bytes, and lies apart from everything */
            continue;
        sound &= quick_apart(&out[DX], &in[i], i <= DR_IN);
        if (sums)
            sound &= quick_apart(&out[DW], &in[i], 0) & quick_apart(&out[DB], &in[i], 0) & quick_apart(&out[SPACE], &in[i], 0);
    }
    if (sums)
        sound &= quick_apart(&out[DX], &out[DW], 0) & quick_apart(&out[DX], &out[DB], 0) & quick_apart(&out[DX], &out[SPACE], 0) &
                 quick_apart(&out[DW], &out[DB], 0) & quick_apart(&out[DW], &out[SPACE], 0) &
                 quick_apart(&out[DB], &out[SPACE], 0);
    c->spec = s;
    c->args = a;
    c->x_stride = in[X].stride;
    c->d_o_stride = in[D_O].stride;
    c->dr_in_stride = in[DR_IN].stride;
    c->dx_stride = out[DX].stride;
    c->y_stride = c->z_stride = c->dy_stride = c->dz_stride = 0;
    /* all that is there, as the checker counts it: rms of 64x4096 is on the edge of what is streamed */
    c->bytes = rows * row * (a->dr_in ? 4 : 3) + dim * w_element * ((a->w != NULL) + (size_t)(a->b != NULL)) +
               rows * sizeof(float) * (a->mean != NULL) + dim * sizeof(float) * ((a->dw != NULL) + (size_t)(a->db != NULL)) +
               sums * dim * sizeof(double);
    c->rows = rows;
    c->x_dtype = c->y_dtype = c->r_dtype = dtype;
    c->w_dtype = w_dtype;
    return sound;
}

#endif
