/* The instances of the naive loops: a name, the op whose case it is beside, and its options.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_NAIVE_NAIVE_LISTS_H
#define NRG_BENCH_NAIVE_NAIVE_LISTS_H

#include "nrg/nrg.h"

/* A norm, forward or backward. bias, weight: b, or the gradients of b and w. half: 1: no elements; 2: those alone. */
typedef struct naive_norm {
    int centred, add, bias, weight, saved, groups, planes, half;
    nrg_gate gate;
    nrg_activation activation;
} naive_norm;

#define NAIVE_PRE(g) .gate = NRG_GATE_PRE, .activation = NRG_ACT_##g
#define NAIVE_POST(g) .gate = NRG_GATE_POST, .activation = NRG_ACT_##g

#define EACH_FORWARD(F)                                                                                                          \
    F(rms, "rms", .add = 0)                                                                                                      \
    F(layer, "layer", .centred = 1, .bias = 1)                                                                                   \
    F(add_rms, "add+rms", .add = 1)                                                                                              \
    F(add_layer, "add+layer", .add = 1, .centred = 1, .bias = 1)                                                                 \
    F(rms_silu_pre, "rms+silu-pre", NAIVE_PRE(SILU))                                                                             \
    F(rms_silu_post, "rms+silu-post", NAIVE_POST(SILU))                                                                          \
    F(add_rms_silu_post, "add+rms+silu-post", .add = 1, NAIVE_POST(SILU))                                                        \
    F(layer_gelu_post, "layer+gelu-post", .centred = 1, .bias = 1, NAIVE_POST(GELU))                                             \
    F(rms_silu, "rms+silu", .activation = NRG_ACT_SILU)                                                                          \
    F(rms_permuted, "rms-permuted", .planes = 1)                                                                                 \
    F(rms_fused, "rms-fused", .planes = 1)                                                                                       \
    F(layer_fused, "layer-fused", .planes = 1, .centred = 1, .bias = 1)                                                          \
    F(rms_statistics, "rms-statistics", .half = 1)                                                                               \
    F(layer_statistics, "layer-statistics", .half = 1, .centred = 1)                                                             \
    F(rms_elements, "rms-elements", .half = 2)                                                                                   \
    F(layer_elements, "layer-elements", .half = 2, .centred = 1, .bias = 1)                                                      \
    F(rms_silu_pre_g8, "rms+silu-pre-g8", NAIVE_PRE(SILU), .groups = 1)                                                          \
    F(rms_silu_post_g8, "rms+silu-post-g8", NAIVE_POST(SILU), .groups = 1)

#define EACH_BACKWARD(F)                                                                                                         \
    F(rms_backward, "rms", .weight = 1)                                                                                          \
    F(layer_backward, "layer", .weight = 1, .bias = 1, .centred = 1)                                                             \
    F(add_rms_backward, "add+rms", .weight = 1, .add = 1)                                                                        \
    F(add_layer_backward, "add+layer", .weight = 1, .bias = 1, .add = 1, .centred = 1)                                           \
    F(layer_saved_backward, "layer-saved", .weight = 1, .bias = 1, .centred = 1, .saved = 1)                                     \
    F(add_layer_saved_backward, "add+layer-saved", .weight = 1, .bias = 1, .add = 1, .centred = 1, .saved = 1)                   \
    F(rms_dx_backward, "rms-dx", .weight = 0)                                                                                    \
    F(layer_dx_backward, "layer-dx", .centred = 1)                                                                               \
    F(rms_silu_post_backward, "rms+silu-post", .weight = 1, NAIVE_POST(SILU))

/* RMSNorm, + y, RMSNorm; the same whoever calls. */
#define EACH_SANDWICH(F)                                                                                                         \
    F(sandwich, "sandwich", 0)                                                                                                   \
    F(sandwich_turns, "turns", 0)

#define EACH_ACTIVATION(F)                                                                                                       \
    F(identity, "identity", NRG_ACT_IDENTITY)                                                                                    \
    F(sigmoid, "sigmoid", NRG_ACT_SIGMOID)                                                                                       \
    F(silu, "silu", NRG_ACT_SILU)                                                                                                \
    F(relu, "relu", NRG_ACT_RELU)                                                                                                \
    F(relu2, "relu2", NRG_ACT_RELU2)                                                                                             \
    F(tanh_, "tanh", NRG_ACT_TANH)                                                                                               \
    F(gelu, "gelu", NRG_ACT_GELU)                                                                                                \
    F(gelu_tanh, "gelu_tanh", NRG_ACT_GELU_TANH)                                                                                 \
    F(softplus, "softplus", NRG_ACT_SOFTPLUS)                                                                                    \
    F(gelu_quick, "gelu_quick", NRG_ACT_GELU_QUICK)                                                                              \
    F(hard_swish, "hard_swish", NRG_ACT_HARD_SWISH)                                                                              \
    F(hard_sigmoid, "hard_sigmoid", NRG_ACT_HARD_SIGMOID)                                                                        \
    F(elu, "elu", NRG_ACT_ELU)                                                                                                   \
    F(leaky_relu, "leaky_relu", NRG_ACT_LEAKY_RELU)                                                                              \
    F(mish, "mish", NRG_ACT_MISH)                                                                                                \
    F(exp_, "exp", NRG_ACT_EXP)                                                                                                  \
    F(expm1_, "expm1", NRG_ACT_EXPM1)                                                                                            \
    F(softsign, "softsign", NRG_ACT_SOFTSIGN)

#define EACH_SLOPE(F)                                                                                                            \
    F(silu_backward, "silu", NRG_ACT_SILU)                                                                                       \
    F(gelu_backward, "gelu", NRG_ACT_GELU)                                                                                       \
    F(tanh_backward, "tanh", NRG_ACT_TANH)                                                                                       \
    F(gelu_quick_backward, "gelu_quick", NRG_ACT_GELU_QUICK)                                                                     \
    F(hard_swish_backward, "hard_swish", NRG_ACT_HARD_SWISH)                                                                     \
    F(elu_backward, "elu", NRG_ACT_ELU)                                                                                          \
    F(mish_backward, "mish", NRG_ACT_MISH)

/* How a gated linear unit has its inputs, and whether they have a limit of 7 and b an offset of 1. */
typedef struct naive_glu {
    nrg_activation activation;
    int pairs, limited;
} naive_glu;

#define EACH_GLU(F)                                                                                                              \
    F(swiglu, "swiglu", .activation = NRG_ACT_SILU)                                                                              \
    F(geglu, "geglu", .activation = NRG_ACT_GELU)                                                                                \
    F(geglu_tanh, "geglu_tanh", .activation = NRG_ACT_GELU_TANH)                                                                 \
    F(reglu, "reglu", .activation = NRG_ACT_RELU)                                                                                \
    F(geglu_quick, "geglu_quick", .activation = NRG_ACT_GELU_QUICK)                                                              \
    F(swiglu_limited, "swiglu-limited", .activation = NRG_ACT_SILU, .limited = 1)                                                \
    F(swiglu_oai, "swiglu_oai", .activation = NRG_ACT_GELU_QUICK, .limited = 1)                                                  \
    F(swiglu_pairs, "swiglu-pairs", .activation = NRG_ACT_SILU, .pairs = 1)
#define EACH_GLU_BACKWARD(F)                                                                                                     \
    F(swiglu_backward, "swiglu", NRG_ACT_SILU)                                                                                   \
    F(geglu_backward, "geglu", NRG_ACT_GELU)                                                                                     \
    F(geglu_quick_backward, "geglu_quick", NRG_ACT_GELU_QUICK)

/* Rows as bytes with scales: elements of a block, rows together, their chunks, bytes of a scale, sums. */
#define NAIVE_Q8_0 32, 1, 0, 2, 0
#define NAIVE_Q8_K 256, 1, 0, 4, 16
#define NAIVE_INT8(block) block, 1, 0, 0, 0
#define EACH_BYTES(F)                                                                                                            \
    F(q8_0, "q8_0", NAIVE_Q8_0)                                                                                                  \
    F(q8_k, "q8_k", NAIVE_Q8_K)                                                                                                  \
    F(q8_0_4x4, "q8_0-4x4", 32, 4, 4, 2, 0)                                                                                      \
    F(q8_0_4x8, "q8_0-4x8", 32, 4, 8, 2, 0)                                                                                      \
    F(q8_k_4x8, "q8_k-4x8", 256, 4, 8, 4, 16)                                                                                    \
    F(int8, "int8", NAIVE_INT8(0))                                                                                               \
    F(int8_32, "int8-32", NAIVE_INT8(32))                                                                                        \
    F(int8_128, "int8-128", NAIVE_INT8(128))
#define EACH_NORM_BYTES(F)                                                                                                       \
    F(rms_q8_0, "rms-q8_0", NAIVE_Q8_0)                                                                                          \
    F(add_rms_q8_0, "add+rms-q8_0", NAIVE_Q8_0)                                                                                  \
    F(add_rms_q8_k, "add+rms-q8_k", NAIVE_Q8_K)                                                                                  \
    F(add_rms_int8, "add+rms-int8", NAIVE_INT8(0))
#define EACH_SANDWICH_BYTES(F)                                                                                                   \
    F(sandwich_q8_0, "sandwich-q8_0", NAIVE_Q8_0)                                                                                \
    F(turns_q8_0, "turns-q8_0", NAIVE_Q8_0)                                                                                      \
    F(sandwich_q8_k, "sandwich-q8_k", NAIVE_Q8_K)                                                                                \
    F(sandwich_int8, "sandwich-int8", NAIVE_INT8(0))
#define EACH_GLU_BYTES(F) F(swiglu_q8_0, "swiglu-q8_0", NAIVE_Q8_0)

#define EACH_SOFTMAX(F)                                                                                                          \
    F(softmax, "softmax", 0)                                                                                                     \
    F(log_softmax, "log-softmax", 1)
#define EACH_SOFTMAX_BACKWARD(F)                                                                                                 \
    F(softmax_backward, "softmax", 0)                                                                                            \
    F(log_softmax_backward, "log-softmax", 1)

/* A channel norm. batch: over the batch. */
typedef struct naive_channel {
    int nhwc, batch, add, update;
    nrg_statistics_source source;
    nrg_activation activation;
} naive_channel;

/* The most channels there are arrays for; no case has more. */
enum { NAIVE_CHANNELS = 2048 };

#define NAIVE_LAYOUTS(F, name, op, ...) F(name, op, __VA_ARGS__) F(name##_nhwc, op "-nhwc", __VA_ARGS__, .nhwc = 1)

#define EACH_CHANNEL_FORWARD(F)                                                                                                  \
    NAIVE_LAYOUTS(F, group, "group", .batch = 0)                                                                                 \
    NAIVE_LAYOUTS(F, group_silu, "group_silu", .activation = NRG_ACT_SILU)                                                       \
    NAIVE_LAYOUTS(F, batch_train, "batch_train", .batch = 1, .update = 1)                                                        \
    NAIVE_LAYOUTS(F, batch_train_relu, "batch_train_relu", .batch = 1, .update = 1, .activation = NRG_ACT_RELU)                  \
    NAIVE_LAYOUTS(F, batch_add_relu, "batch_add_relu", .batch = 1, .update = 1, .add = 1, .activation = NRG_ACT_RELU)            \
    NAIVE_LAYOUTS(F, batch_infer, "batch_infer", .batch = 1, .source = NRG_STATISTICS_RUNNING)                                   \
    NAIVE_LAYOUTS(F, batch_folded, "batch_folded", .batch = 1, .source = NRG_STATISTICS_FOLDED)                                  \
    NAIVE_LAYOUTS(F, instance, "instance", .batch = 0)                                                                           \
    NAIVE_LAYOUTS(F, layer_image, "layer", .batch = 0)

#define EACH_CHANNEL_BACKWARD(F)                                                                                                 \
    NAIVE_LAYOUTS(F, group_backward, "group", .batch = 0)                                                                        \
    NAIVE_LAYOUTS(F, group_silu_backward, "group_silu", .activation = NRG_ACT_SILU)                                              \
    NAIVE_LAYOUTS(F, batch_backward, "batch", .batch = 1)                                                                        \
    NAIVE_LAYOUTS(F, batch_relu_backward, "batch_relu", .batch = 1, .activation = NRG_ACT_RELU)                                  \
    NAIVE_LAYOUTS(F, instance_backward, "instance", .batch = 0)

/* Rotations; 1: of half-split pairs. A norm and a rotation in two calls have the same loop beside them as in one. */
#define EACH_ROPE(F)                                                                                                             \
    F(rope_normal, "normal", 0)                                                                                                  \
    F(rope_neox, "neox", 1)
#define EACH_NORM_ROPE(F)                                                                                                        \
    F(norm_rope_normal, "norm+normal", 0)                                                                                        \
    F(norm_rope_neox, "norm+neox", 1)                                                                                            \
    F(norm_then_normal, "norm,normal", 0)                                                                                        \
    F(norm_then_neox, "norm,neox", 1)

/* q, k and v to a cache; 1: half-split pairs after a norm of each head. */
#define EACH_QKV(F)                                                                                                              \
    F(qkv_llama, "llama", 0)                                                                                                     \
    F(qkv_qwen3, "qwen3", 1)

#endif
