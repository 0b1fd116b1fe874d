/* nrg/activation.h: the activations g that gate a norm (nrg/norm.h), and the same alone, element by element.
 *
 *     identity   x
 *     sigmoid    σ(x) = 1/(1 + e^-x)
 *     silu       x·σ(x)                        (swish; Elfwing, Uchibe, Doya, arXiv:1702.03118)
 *     relu       max(x, 0)
 *     relu2      max(x, 0)²                    (So et al., Primer, arXiv:2109.08668)
 *     tanh       tanh x
 *     gelu       x·Φ(x) = x/2·(1 + erf(x/√2))  (Hendrycks, Gimpel, arXiv:1606.08415)
 *     gelu_tanh  x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))
 *     softplus   ln(1 + e^x)
 *     gelu_quick    x·σ(α·x), α = 1.702        (OpenAI's CLIP: QuickGELU; ggml: gelu_quick)
 *     hard_swish    x·hard_sigmoid(x)          (Howard et al., MobileNetV3, arXiv:1905.02244)
 *     hard_sigmoid  min(1, max(0, (x + 3)/6))
 *     elu           x where x > 0, else α·(e^x - 1), α = 1   (Clevert, Unterthiner, Hochreiter, arXiv:1511.07289)
 *     leaky_relu    x where x > 0, else α·x, α = 0.01        (Maas, Hannun, Ng 2013)
 *     mish          x·tanh(ln(1 + e^x))        (Misra, arXiv:1908.08681)
 *     exp           e^x
 *     expm1         e^x - 1
 *     softsign      x/(1 + |x|)
 *
 * These are the functions of ggml (ggml.h: ggml_unary_op, ggml_leaky_relu; softsign is torch's alone) and of torch
 * (torch.nn.functional), which agree but for this: ggml's ELU has no α; torch's leaky_relu keeps -0, as this one does, ggml's
 * makes it 0, and a NaN too; theirs have NaN for hard_swish(-∞), this the limit. Of slopes, where g has a kink, torch's are taken
 * (ggml has none): 0 for hard_sigmoid at ±3; α for leaky_relu and elu at 0; 0 and 1 for hard_swish at -3 and 3, as torch's vector
 * loops have it (its scalar loops used to have -1/2 and 3/2 there).
 *
 * α is a parameter of nrg_activation_args and nrg_glu_args, whose constructors set what stands above; everywhere else, norms
 * included, it is that. elu and leaky_relu with an α of 0 are relu, to the bit. x·σ(α·x) with an α of 1.702 is also the
 * activation of gpt-oss (nrg/glu.h), and with any α Swish (Ramachandran et al., arXiv:1710.05941).
 *
 * The bits are the same on every path. The arithmetic is f32, a 16-bit result is the f32 result rounded once. g is within
 * 3 ulp for all inputs, subnormal results included, and g′ within 4 ulp of the largest term of its formula;
 * docs/ops/activation.md has the figures of each. An infinity gives the limit, a NaN a NaN, in g′ too. g′ of relu is 0 at 0.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_ACTIVATION_H
#define NRG_ACTIVATION_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nrg_activation {
    NRG_ACT_IDENTITY = 0,
    NRG_ACT_SIGMOID = 1,
    NRG_ACT_SILU = 2,
    NRG_ACT_RELU = 3,
    NRG_ACT_RELU2 = 4,
    NRG_ACT_TANH = 5,
    NRG_ACT_GELU = 6,
    NRG_ACT_GELU_TANH = 7,
    NRG_ACT_SOFTPLUS = 8,
    NRG_ACT_GELU_QUICK = 9,
    NRG_ACT_HARD_SWISH = 10,
    NRG_ACT_HARD_SIGMOID = 11,
    NRG_ACT_ELU = 12,
    NRG_ACT_LEAKY_RELU = 13,
    NRG_ACT_MISH = 14,
    NRG_ACT_EXP = 15,
    NRG_ACT_EXPM1 = 16,
    NRG_ACT_SOFTSIGN = 17
} nrg_activation;

/* Returns the name above ("identity", "sigmoid", ...), or NULL for any other value: iterate from 0 until NULL. */
NRG_API const char *nrg_activation_name(nrg_activation g);

/* Sets *g to the activation of this name. Returns NRG_OK; on error, returns one of these and writes nothing:
 *   NRG_ERR_NULL  name or g
 *   NRG_ERR_ENUM  no activation has this name */
NRG_NODISCARD NRG_API nrg_status nrg_activation_from_name(const char *name, nrg_activation *g);

/* Returns the α that constructors set: 1.702 of gelu_quick, 1 of elu, 0.01 of leaky_relu, 0 of those that have none. */
NRG_API float nrg_activation_alpha(nrg_activation g);

/* o = g(x): count elements of dtype, without gaps. o may be x itself, and otherwise shares no byte with it:
 *
 *               x     o
 *         o     yes
 *
 * Does share ith of nth, as nrg_norm_forward does. A count of 0 succeeds. Returns NRG_OK, or says what is wrong and writes
 * nothing:
 *   NRG_ERR_ENUM       g or dtype unknown (NRG_DTYPE_SAME included)
 *   NRG_ERR_THREAD     not 0 <= ith < nth
 *   NRG_ERR_NULL       x or o is NULL and count is not 0
 *   NRG_ERR_ALIGNMENT  a pointer that is no multiple of the element size
 *   NRG_ERR_OVERFLOW   count elements do not fit between a pointer and the end of memory
 *   NRG_ERR_OVERLAP    o overlaps x and is not x */
NRG_NODISCARD NRG_API nrg_status nrg_activation_forward(nrg_activation g, nrg_dtype dtype, size_t count, const void *x, void *o,
                                                        int ith, int nth);

/* Validates the arguments of nrg_activation_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_forward_check(nrg_activation g, nrg_dtype dtype, size_t count, const void *x,
                                                              void *o);

/* dx = d_o ⊙ g′(x), where d_o is the gradient of g(x). dx may be x or d_o itself:
 *
 *               x     d_o
 *        dx     yes   yes
 *
 * Returns the statuses of nrg_activation_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_backward(nrg_activation g, nrg_dtype dtype, size_t count, const void *x,
                                                         const void *d_o, void *dx, int ith, int nth);

/* Validates the arguments of nrg_activation_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_backward_check(nrg_activation g, nrg_dtype dtype, size_t count, const void *x,
                                                               const void *d_o, void *dx);

/* Where the data is: rows in up to four dimensions (nrg/base.h), with strides in bytes from row to row, from plane to plane and
 * from volume to volume; 0 is dense. Make one with nrg_activation_args_init, then change fields. */
typedef struct nrg_activation_args {
    size_t size;       /* sizeof(nrg_activation_args) */
    size_t rows;       /* rows of a plane; 0 of any of these three is none */
    size_t rows2;      /* planes of a volume. Default: 1. */
    size_t rows3;      /* volumes. Default: 1. */
    size_t dim;        /* elements of a row, at least 1 */
    nrg_dtype dtype;   /* of all tensors */
    uint32_t reserved; /* 0 */
    const void *x;     /* [rows3, rows2, rows, dim] input */
    size_t x_stride[3];
    const void *d_o; /* backward: gradient of g(x); forward: NULL */
    size_t d_o_stride[3];
    nrg_activation activation; /* g */
    float alpha;               /* α of gelu_quick, from 2^-24 to 2^24; of elu and leaky_relu, up to ±2^24; of others 0.
                            Default: nrg_activation_alpha(activation). */
    void *o;                   /* forward: output; backward: NULL */
    size_t o_stride[3];
    void *dx; /* backward: output; forward: NULL */
    size_t dx_stride[3];
} nrg_activation_args;

/* Forward; for the backward pass, o is NULL, and d_o and dx are set. */
static inline nrg_activation_args nrg_activation_args_init(nrg_activation g, nrg_dtype dtype, size_t rows, size_t dim,
                                                           const void *x, void *o)
{
    nrg_activation_args args;
    args.size = sizeof args;
    args.rows = rows;
    args.rows2 = args.rows3 = 1;
    args.dim = dim;
    args.dtype = dtype;
    args.reserved = 0;
    args.x = x;
    args.x_stride[0] = args.x_stride[1] = args.x_stride[2] = 0;
    args.d_o = NULL;
    args.d_o_stride[0] = args.d_o_stride[1] = args.d_o_stride[2] = 0;
    args.activation = g;
    args.alpha = nrg_activation_alpha(g);
    args.o = o;
    args.o_stride[0] = args.o_stride[1] = args.o_stride[2] = 0;
    args.dx = NULL;
    args.dx_stride[0] = args.dx_stride[1] = args.dx_stride[2] = 0;
    return args;
}

/* o = g(x), row by row, the bits of nrg_activation_forward. o may be x, with its strides, and otherwise shares no byte with it:
 *
 *               x     o
 *         o     yes
 *
 * Share ith of nth: elements, in the order in which rows lie in o. Returns the statuses of nrg_activation_forward, and
 *   NRG_ERR_NULL         args
 *   NRG_ERR_STRUCT_SIZE  as in nrg_norm_forward; reserved is not 0
 *   NRG_ERR_DIM          dim is 0
 *   NRG_ERR_CONSTANT     alpha infinite, NaN or out of its range
 *   NRG_ERR_STRIDE       a stride shorter than a row, or than what lies inside of it
 *   NRG_ERR_COMBINATION  d_o or dx is there; alpha is not 0, and g has none */
NRG_NODISCARD NRG_API nrg_status nrg_activation_rows_forward(const nrg_activation_args *args, int ith, int nth);

/* Validates the arguments of nrg_activation_rows_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_rows_forward_check(const nrg_activation_args *args);

/* dx = d_o ⊙ g′(x), row by row, the bits of nrg_activation_backward. dx may be x or d_o, with its strides:
 *
 *               x     d_o
 *        dx     yes   yes
 *
 * Returns the statuses of nrg_activation_rows_forward; NRG_ERR_COMBINATION where o is there. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_rows_backward(const nrg_activation_args *args, int ith, int nth);

/* Validates the arguments of nrg_activation_rows_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_rows_backward_check(const nrg_activation_args *args);

#ifdef __cplusplus
}
#endif
#endif
