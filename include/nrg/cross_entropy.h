/* nrg/cross_entropy.h: the loss of classifiers and language models, and its gradient, without a tensor of probabilities between:
 *
 *     lse = log Σ e^x        loss = lse - x[id]        dx = (e^(x - lse) - [j = id]) · d_loss
 *
 * a row of logits x and a class each. A row whose id is ignore_index has the loss 0 and the gradient 0, as in torch;
 * ignore_index may be one of the classes. The program computes torch's reductions, mean and sum: d_loss is one number a row.
 *
 * What is rounded: Σ e^x is that of nrg/softmax.h, and lse is kept in double, within 2^-22 of the truth; loss is lse - x[id] in
 * double, rounded to f32. e^(x - lse) · d_loss is a power of e, off by less than an ulp and a quarter, times one factor a row,
 * which is rounded: within 3 ulp, and then rounded to a 16-bit dtype; the element of the row's class is computed in double and
 * rounded once, so that little is lost where e^(x - lse) is near 1. (d_loss below 2^-62 loses bits.) A NaN or +infinity among
 * logits, or a row of -infinity, makes the row's results NaN.
 *
 * The bits are the same on every path and for any (ith, nth), stride and alignment, in place or not.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CROSS_ENTROPY_H
#define NRG_CROSS_ENTROPY_H

#include <string.h>

#include "softmax.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the data is. Make one with nrg_cross_entropy_args_init, then change fields. Strides are in bytes, 0 for dense. */
typedef struct nrg_cross_entropy_args {
    size_t size;          /* sizeof(nrg_cross_entropy_args) */
    size_t rows;          /* 0 is fine */
    size_t classes;       /* at least 1 */
    nrg_dtype dtype;      /* of x and dx */
    int32_t ignore_index; /* rows with this id are ignored; any number, a class too */
    const void *x;        /* [rows, classes] logits, input */
    const int32_t *ids;   /* [rows] input */
    float *loss;          /* forward: [rows] output; backward: NULL */
    double *lse;          /* forward: [rows] output; backward: NULL */
    const double *lse_in; /* backward: [rows] input, lse of the forward pass; forward: NULL */
    const float *d_loss;  /* backward: [rows] input; forward: NULL */
    void *dx;             /* backward: [rows, classes] output; forward: NULL */
    size_t x_stride;
    size_t dx_stride;
} nrg_cross_entropy_args;

/* Forward, with torch's ignore_index of -100. For the backward pass loss and lse are NULL; lse_in, d_loss and dx are set. */
static inline nrg_cross_entropy_args nrg_cross_entropy_args_init(nrg_dtype dtype, size_t rows, size_t classes, const void *x,
                                                                 const int32_t *ids, float *loss, double *lse)
{
    nrg_cross_entropy_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.rows = rows;
    args.classes = classes;
    args.dtype = dtype;
    args.ignore_index = -100;
    args.x = x;
    args.ids = ids;
    args.loss = loss;
    args.lse = lse;
    return args;
}

/* loss and lse of the rows of share ith of nth. Ids are looked at, those of all rows, before anything is written.
 *
 *               x     ids   loss
 *        loss   no    no
 *        lse    no    no    no
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_ENUM         dtype unknown
 *   NRG_ERR_THREAD       not 0 <= ith < nth
 *   NRG_ERR_NULL         args, or (with something to do) x, ids, loss or lse
 *   NRG_ERR_STRUCT_SIZE  as in nrg_norm_forward
 *   NRG_ERR_DIM          classes is 0
 *   NRG_ERR_POSITION     an id that is neither ignore_index nor from 0 to classes - 1
 *   NRG_ERR_STRIDE       a stride shorter than a row
 *   NRG_ERR_ALIGNMENT    a pointer or stride that is no multiple of the element size
 *   NRG_ERR_OVERFLOW     an operand's bytes do not fit a size_t, or wrap around the end of memory
 *   NRG_ERR_OVERLAP      an output shares a byte with another operand
 *   NRG_ERR_COMBINATION  an operand of the backward pass is there */
NRG_API nrg_status nrg_cross_entropy_forward(const nrg_cross_entropy_args *args, int ith, int nth);

/* What nrg_cross_entropy_forward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_cross_entropy_forward_check(const nrg_cross_entropy_args *args);

/* dx of the rows of share ith of nth. dx may be x, with its stride:
 *
 *               x     ids   lse_in d_loss
 *        dx     yes   no    no     no
 *
 * Returns the statuses of nrg_cross_entropy_forward: NRG_OK, NRG_ERR_ENUM, NRG_ERR_THREAD, NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE,
 * NRG_ERR_DIM, NRG_ERR_POSITION, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERFLOW, NRG_ERR_OVERLAP; NRG_ERR_COMBINATION where
 * loss or lse is there. */
NRG_API nrg_status nrg_cross_entropy_backward(const nrg_cross_entropy_args *args, int ith, int nth);

/* What nrg_cross_entropy_backward would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_cross_entropy_backward_check(const nrg_cross_entropy_args *args);

#ifdef __cplusplus
}
#endif
#endif
