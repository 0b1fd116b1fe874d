/* nrg/activation.h: the activations g, element by element. They also gate norms (nrg/norm.h) and linear units (nrg/glu.h).
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
 * Sources: the papers above, ggml (ggml.h: ggml_unary_op, ggml_leaky_relu) and torch (torch.nn.functional). Only torch has
 * softsign. The functions agree with both, except:
 * - ggml's ELU has no α.
 * - leaky_relu keeps -0, as torch's does. ggml's makes it 0, and a NaN too.
 * - hard_swish(-∞) is the limit here, and NaN in both.
 * - At a kink of g, the slope is torch's; ggml has none. It is 0 for hard_sigmoid at ±3, and α for leaky_relu and elu at 0.
 *   For hard_swish it is 0 at -3 and 1 at 3, as in torch's vector loops. Older scalar loops of torch had -1/2 and 3/2 there.
 *
 * α is a parameter of nrg_activation_args and nrg_glu_args. Their constructors set the value above. All other calls, norms
 * included, use that value. With an α of 0, elu and leaky_relu are bit-identical to relu. The function x·σ(α·x) with an α of
 * 1.702 is also the activation of gpt-oss (nrg/glu.h). With any α it is Swish (Ramachandran et al., arXiv:1710.05941).
 *
 * Guarantees: results are bit-identical on every path. The arithmetic is f32, and a 16-bit result is the f32 result rounded
 * once. An infinity gives the limit, and a NaN gives NaN, in g′ too. g′ of relu is 0 at 0.
 *
 * Errors: for all inputs, subnormal results included, g is within 3 ulp. Its slope g′ is within 4 ulp of the largest term of
 * its formula. For the measured errors of each, see docs/ops/activation.md.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_ACTIVATION_H
#define NRG_ACTIVATION_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Activations: those above, by name. */
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

/* Returns the name of an activation, as above: "identity", "sigmoid", .... Returns NULL for other values, so a loop from 0
 * ends there.
 *
 * Parameters:
 * - g: any value. */
NRG_API const char *nrg_activation_name(nrg_activation g);

/* Finds an activation by its name.
 *
 * Parameters:
 * - name: one of the names above.
 * - g: output: the activation.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: name or g is NULL.
 * - NRG_ERR_ENUM: no activation has this name. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_from_name(const char *name, nrg_activation *g);

/* Returns the α that constructors set: 1.702 for gelu_quick, 1 for elu, 0.01 for leaky_relu, 0 for activations without α.
 *
 * Parameters:
 * - g: the activation. */
NRG_API float nrg_activation_alpha(nrg_activation g);

/* Computes o = g(x) for adjacent elements.
 *
 * Parameters:
 * - g: the activation.
 * - dtype: of x and o.
 * - count: number of elements; 0 is allowed.
 * - x: [count] input. May be NULL if count is 0.
 * - o: [count] output. May be NULL if count is 0.
 * - ith, nth: the share, a range of elements.
 *
 * Aliasing: o may be x. Otherwise they share no byte.
 *
 *               x     o
 *         o     yes
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_ENUM: g or dtype has an unknown value, or dtype is NRG_DTYPE_SAME.
 * - NRG_ERR_THREAD: not 0 <= ith < nth.
 * - NRG_ERR_NULL: count is not 0, and x or o is NULL.
 * - NRG_ERR_ALIGNMENT: a pointer is no multiple of the element size.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_OVERLAP: o overlaps x and is not x. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_forward(nrg_activation g, nrg_dtype dtype, size_t count, const void *x, void *o,
                                                        int ith, int nth);

/* Validates the arguments of nrg_activation_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_forward_check(nrg_activation g, nrg_dtype dtype, size_t count, const void *x,
                                                              void *o);

/* Computes dx = d_o ⊙ g′(x), where d_o is the gradient of g(x), for adjacent elements.
 *
 * Parameters:
 * - g: the activation.
 * - dtype: of x, d_o and dx.
 * - count: number of elements; 0 is allowed.
 * - x: [count] input of the forward pass. May be NULL if count is 0.
 * - d_o: [count] input. May be NULL if count is 0.
 * - dx: [count] output. May be NULL if count is 0.
 * - ith, nth: the share, a range of elements.
 *
 * Aliasing: dx may be x or d_o. Otherwise it shares no byte with them.
 *
 *               x     d_o
 *        dx     yes   yes
 *
 * Returns the statuses of nrg_activation_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: count is not 0, and x, d_o or dx is NULL.
 * - NRG_ERR_OVERLAP: dx overlaps an input and is not that input. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_backward(nrg_activation g, nrg_dtype dtype, size_t count, const void *x,
                                                         const void *d_o, void *dx, int ith, int nth);

/* Validates the arguments of nrg_activation_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_backward_check(nrg_activation g, nrg_dtype dtype, size_t count, const void *x,
                                                               const void *d_o, void *dx);

/* Points to the data: rows in up to four dimensions (nrg/base.h). Make one with nrg_activation_args_init, then change fields. */
typedef struct nrg_activation_args {
    size_t size;       /* sizeof(nrg_activation_args) */
    size_t rows;       /* rows of a plane. If this or one of the next two is 0, the call only validates */
    size_t rows2;      /* planes of a volume. Default: 1. */
    size_t rows3;      /* volumes. Default: 1. */
    size_t dim;        /* elements of a row, at least 1 */
    nrg_dtype dtype;   /* of all tensors */
    uint32_t reserved; /* 0 */
    const void *x;     /* [rows3, rows2, rows, dim] input */
    size_t x_stride[3];
    const void *d_o; /* backward: as x, gradient of g(x); forward: NULL */
    size_t d_o_stride[3];
    nrg_activation activation; /* g */
    /* α of gelu_quick, from 2^-24 to 2^24; of elu and leaky_relu, up to ±2^24; of others 0. Default:
     * nrg_activation_alpha(activation). */
    float alpha;
    void *o; /* forward: as x, output; backward: NULL */
    size_t o_stride[3];
    void *dx; /* backward: as x, output; forward: NULL */
    size_t dx_stride[3];
} nrg_activation_args;

/* Returns args for the forward pass of a dense matrix of rows. For the backward pass, pass NULL for o, and set d_o and dx.
 *
 * Parameters:
 * - g: the field activation.
 * - dtype, rows, dim, x, o: the fields of the same names. */
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

/* Computes o = g(x), row by row. The result is bit-identical to nrg_activation_forward.
 *
 * Parameters:
 * - args: the data. Required are x and o.
 * - ith, nth: the share, a range of elements in the order of the rows of o.
 *
 * Aliasing: o may be x, with the same strides. Otherwise they share no byte.
 *
 *               x     o
 *         o     yes
 *
 * Returns the statuses of nrg_activation_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: args is NULL; or there are rows, and a required operand is NULL.
 * - NRG_ERR_STRUCT_SIZE: args->size is wrong, a field of a later version is not 0 (nrg/base.h), or reserved is not 0.
 * - NRG_ERR_DIM: dim is 0.
 * - NRG_ERR_CONSTANT: alpha is infinite, NaN or out of its range.
 * - NRG_ERR_STRIDE: a stride is shorter than a row, or than the data inside its level.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_COMBINATION: d_o or dx is set. Or alpha is set, and g has no alpha. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_rows_forward(const nrg_activation_args *args, int ith, int nth);

/* Validates the arguments of nrg_activation_rows_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_rows_forward_check(const nrg_activation_args *args);

/* Computes dx = d_o ⊙ g′(x), row by row. The result is bit-identical to nrg_activation_backward.
 *
 * Parameters:
 * - args: the data. Required are x, d_o and dx.
 * - ith, nth: the share, a range of elements.
 *
 * Aliasing: dx may be x or d_o, with the same strides. Otherwise it shares no byte with them.
 *
 *               x     d_o
 *        dx     yes   yes
 *
 * Returns the statuses of nrg_activation_rows_forward. On error, writes nothing. Differences:
 * - NRG_ERR_COMBINATION: o is set. Or alpha is set, and g has no alpha. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_rows_backward(const nrg_activation_args *args, int ith, int nth);

/* Validates the arguments of nrg_activation_rows_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_activation_rows_backward_check(const nrg_activation_args *args);

#ifdef __cplusplus
}
#endif
#endif
