/* The instances of the naive loops: F(kernel, op, name, function, options), of which kernel and op are those of the case that a
 * loop is beside. A norm and a rotation in two calls have the same loop beside them as in one.
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

/* How a gated linear unit has its inputs, and whether they have a limit of 7 and b an offset of 1. */
typedef struct naive_glu {
    nrg_activation activation;
    int pairs, limited;
} naive_glu;

/* Rows as bytes with scales: elements of a block, rows together, their chunks, bytes of a scale, sums. */
#define NAIVE_Q8_0 32, 1, 0, 2, 0
#define NAIVE_Q8_K 256, 1, 0, 4, 16
#define NAIVE_INT8(block) block, 1, 0, 0, 0
#define NAIVE_BYTES(F, kernel, name, function)                                                                                   \
    F(kernel, "q8_0", name##q8_0, function, (naive_blocks){NAIVE_Q8_0})                                                          \
    F(kernel, "q8_k", name##q8_k, function, (naive_blocks){NAIVE_Q8_K})                                                          \
    F(kernel, "q8_0-4x4", name##q8_0_4x4, function, (naive_blocks){32, 4, 4, 2, 0})                                              \
    F(kernel, "q8_0-4x8", name##q8_0_4x8, function, (naive_blocks){32, 4, 8, 2, 0})                                              \
    F(kernel, "q8_k-4x8", name##q8_k_4x8, function, (naive_blocks){256, 4, 8, 4, 16})                                            \
    F(kernel, "int8", name##int8, function, (naive_blocks){NAIVE_INT8(0)})                                                       \
    F(kernel, "int8-32", name##int8_32, function, (naive_blocks){NAIVE_INT8(32)})                                                \
    F(kernel, "int8-128", name##int8_128, function, (naive_blocks){NAIVE_INT8(128)})

/* A channel norm. batch: over the batch. */
typedef struct naive_channel {
    int nhwc, batch, add, update;
    nrg_statistics_source source;
    nrg_activation activation;
} naive_channel;

/* The most channels there are arrays for; no case has more. */
enum { NAIVE_CHANNELS = 2048 };

#define NAIVE_LAYOUTS(F, kernel, name, op, function, ...)                                                                        \
    F(kernel, op, name, function, (naive_channel){__VA_ARGS__})                                                                  \
    F(kernel, op "-nhwc", name##_nhwc, function, (naive_channel){__VA_ARGS__, .nhwc = 1})

/* A rotation, of half-split pairs or not; norm: of each head before. */
typedef struct naive_rope {
    int half_split, norm;
} naive_rope;

/* Beside these, the activations: ACTIVATION of src/template/activation/activations.def. */
#define EACH_LOOP(F)                                                                                                             \
    F("norm_forward", "rms", rms, forward, (naive_norm){.add = 0})                                                               \
    F("norm_forward", "layer", layer, forward, (naive_norm){.centred = 1, .bias = 1})                                            \
    F("norm_forward", "add+rms", add_rms, forward, (naive_norm){.add = 1})                                                       \
    F("norm_forward", "add+layer", add_layer, forward, (naive_norm){.add = 1, .centred = 1, .bias = 1})                          \
    F("norm_forward", "rms+silu-pre", rms_silu_pre, forward, (naive_norm){NAIVE_PRE(SILU)})                                      \
    F("norm_forward", "rms+silu-post", rms_silu_post, forward, (naive_norm){NAIVE_POST(SILU)})                                   \
    F("norm_forward", "add+rms+silu-post", add_rms_silu_post, forward, (naive_norm){.add = 1, NAIVE_POST(SILU)})                 \
    F("norm_forward", "layer+gelu-post", layer_gelu_post, forward, (naive_norm){.centred = 1, .bias = 1, NAIVE_POST(GELU)})      \
    F("norm_forward", "rms+silu", rms_silu, forward, (naive_norm){.activation = NRG_ACT_SILU})                                   \
    F("norm_forward", "rms-permuted", rms_permuted, forward, (naive_norm){.planes = 1})                                          \
    F("norm_forward", "rms-fused", rms_fused, forward, (naive_norm){.planes = 1})                                                \
    F("norm_forward", "layer-fused", layer_fused, forward, (naive_norm){.planes = 1, .centred = 1, .bias = 1})                   \
    F("norm_forward", "rms-statistics", rms_statistics, forward, (naive_norm){.half = 1})                                        \
    F("norm_forward", "layer-statistics", layer_statistics, forward, (naive_norm){.half = 1, .centred = 1})                      \
    F("norm_forward", "rms-elements", rms_elements, forward, (naive_norm){.half = 2})                                            \
    F("norm_forward", "layer-elements", layer_elements, forward, (naive_norm){.half = 2, .centred = 1, .bias = 1})               \
    F("norm_forward", "rms+silu-pre-g8", rms_silu_pre_g8, forward, (naive_norm){NAIVE_PRE(SILU), .groups = 1})                   \
    F("norm_forward", "rms+silu-post-g8", rms_silu_post_g8, forward, (naive_norm){NAIVE_POST(SILU), .groups = 1})                \
    F("norm_backward", "rms", rms_backward, backward, (naive_norm){.weight = 1})                                                 \
    F("norm_backward", "layer", layer_backward, backward, (naive_norm){.weight = 1, .bias = 1, .centred = 1})                    \
    F("norm_backward", "add+rms", add_rms_backward, backward, (naive_norm){.weight = 1, .add = 1})                               \
    F("norm_backward", "add+layer", add_layer_backward, backward, (naive_norm){.weight = 1, .bias = 1, .add = 1, .centred = 1})  \
    F("norm_backward", "layer-saved", layer_saved_backward, backward,                                                            \
      (naive_norm){.weight = 1, .bias = 1, .centred = 1, .saved = 1})                                                            \
    F("norm_backward", "add+layer-saved", add_layer_saved_backward, backward,                                                    \
      (naive_norm){.weight = 1, .bias = 1, .add = 1, .centred = 1, .saved = 1})                                                  \
    F("norm_backward", "rms-dx", rms_dx_backward, backward, (naive_norm){.weight = 0})                                           \
    F("norm_backward", "layer-dx", layer_dx_backward, backward, (naive_norm){.centred = 1})                                      \
    F("norm_backward", "rms+silu-post", rms_silu_post_backward, backward, (naive_norm){.weight = 1, NAIVE_POST(SILU)})           \
    F("activation_backward", "silu", silu_backward, activation_backward, NRG_ACT_SILU)                                           \
    F("activation_backward", "gelu", gelu_backward, activation_backward, NRG_ACT_GELU)                                           \
    F("activation_backward", "tanh", tanh_backward, activation_backward, NRG_ACT_TANH)                                           \
    F("activation_backward", "gelu_quick", gelu_quick_backward, activation_backward, NRG_ACT_GELU_QUICK)                         \
    F("activation_backward", "hard_swish", hard_swish_backward, activation_backward, NRG_ACT_HARD_SWISH)                         \
    F("activation_backward", "elu", elu_backward, activation_backward, NRG_ACT_ELU)                                              \
    F("activation_backward", "mish", mish_backward, activation_backward, NRG_ACT_MISH)                                           \
    F("glu", "swiglu", swiglu, glu, (naive_glu){.activation = NRG_ACT_SILU})                                                     \
    F("glu", "geglu", geglu, glu, (naive_glu){.activation = NRG_ACT_GELU})                                                       \
    F("glu", "geglu_tanh", geglu_tanh, glu, (naive_glu){.activation = NRG_ACT_GELU_TANH})                                        \
    F("glu", "reglu", reglu, glu, (naive_glu){.activation = NRG_ACT_RELU})                                                       \
    F("glu", "geglu_quick", geglu_quick, glu, (naive_glu){.activation = NRG_ACT_GELU_QUICK})                                     \
    F("glu", "swiglu-limited", swiglu_limited, glu, (naive_glu){.activation = NRG_ACT_SILU, .limited = 1})                       \
    F("glu", "swiglu_oai", swiglu_oai, glu, (naive_glu){.activation = NRG_ACT_GELU_QUICK, .limited = 1})                         \
    F("glu", "swiglu-pairs", swiglu_pairs, glu, (naive_glu){.activation = NRG_ACT_SILU, .pairs = 1})                             \
    F("glu_backward", "swiglu", swiglu_backward, glu_backward, NRG_ACT_SILU)                                                     \
    F("glu_backward", "geglu", geglu_backward, glu_backward, NRG_ACT_GELU)                                                       \
    F("glu_backward", "geglu_quick", geglu_quick_backward, glu_backward, NRG_ACT_GELU_QUICK)                                     \
    F("softmax", "softmax", softmax, softmax_rows, 0)                                                                            \
    F("softmax", "log-softmax", log_softmax, softmax_rows, 1)                                                                    \
    F("softmax_backward", "softmax", softmax_backward, softmax_rows_backward, 0)                                                 \
    F("softmax_backward", "log-softmax", log_softmax_backward, softmax_rows_backward, 1)                                         \
    NAIVE_LAYOUTS(F, "channel_norm_forward", group, "group", channel_forward, .batch = 0)                                        \
    NAIVE_LAYOUTS(F, "channel_norm_forward", group_silu, "group_silu", channel_forward, .activation = NRG_ACT_SILU)              \
    NAIVE_LAYOUTS(F, "channel_norm_forward", batch_train, "batch_train", channel_forward, .batch = 1, .update = 1)               \
    NAIVE_LAYOUTS(F, "channel_norm_forward", batch_train_relu, "batch_train_relu", channel_forward, .batch = 1, .update = 1,     \
                  .activation = NRG_ACT_RELU)                                                                                    \
    NAIVE_LAYOUTS(F, "channel_norm_forward", batch_add_relu, "batch_add_relu", channel_forward, .batch = 1, .update = 1,         \
                  .add = 1, .activation = NRG_ACT_RELU)                                                                          \
    NAIVE_LAYOUTS(F, "channel_norm_forward", batch_infer, "batch_infer", channel_forward, .batch = 1,                            \
                  .source = NRG_STATISTICS_RUNNING)                                                                              \
    NAIVE_LAYOUTS(F, "channel_norm_forward", batch_folded, "batch_folded", channel_forward, .batch = 1,                          \
                  .source = NRG_STATISTICS_FOLDED)                                                                               \
    NAIVE_LAYOUTS(F, "channel_norm_forward", instance, "instance", channel_forward, .batch = 0)                                  \
    NAIVE_LAYOUTS(F, "channel_norm_forward", layer_image, "layer", channel_forward, .batch = 0)                                  \
    NAIVE_LAYOUTS(F, "channel_norm_backward", group_backward, "group", channel_backward, .batch = 0)                             \
    NAIVE_LAYOUTS(F, "channel_norm_backward", group_silu_backward, "group_silu", channel_backward, .activation = NRG_ACT_SILU)   \
    NAIVE_LAYOUTS(F, "channel_norm_backward", batch_backward, "batch", channel_backward, .batch = 1)                             \
    NAIVE_LAYOUTS(F, "channel_norm_backward", batch_relu_backward, "batch_relu", channel_backward, .batch = 1,                   \
                  .activation = NRG_ACT_RELU)                                                                                    \
    NAIVE_LAYOUTS(F, "channel_norm_backward", instance_backward, "instance", channel_backward, .batch = 0)                       \
    F("rope", "normal", rope_normal, rope, (naive_rope){.norm = 0})                                                              \
    F("rope", "neox", rope_neox, rope, (naive_rope){.half_split = 1})                                                            \
    F("norm_rope", "norm+normal", norm_rope_normal, rope, (naive_rope){.norm = 1})                                               \
    F("norm_rope", "norm+neox", norm_rope_neox, rope, (naive_rope){.half_split = 1, .norm = 1})                                  \
    F("norm_rope", "norm,normal", norm_then_normal, rope, (naive_rope){.norm = 1})                                               \
    F("norm_rope", "norm,neox", norm_then_neox, rope, (naive_rope){.half_split = 1, .norm = 1})                                  \
    F("qkv", "llama", qkv_llama, qkv, (naive_rope){.norm = 0})                                                                   \
    F("qkv", "qwen3", qkv_qwen3, qkv, (naive_rope){.half_split = 1, .norm = 1})                                                  \
    NAIVE_BYTES(F, "quantize", to_, quantize_rows)                                                                               \
    NAIVE_BYTES(F, "dequantize", from_, dequantize_rows)                                                                         \
    F("norm_quantized", "rms-q8_0", rms_q8_0, rms_to_bytes, (naive_blocks){NAIVE_Q8_0})                                          \
    F("norm_quantized", "add+rms-q8_0", add_rms_q8_0, rms_to_bytes, (naive_blocks){NAIVE_Q8_0})                                  \
    F("norm_quantized", "add+rms-q8_k", add_rms_q8_k, rms_to_bytes, (naive_blocks){NAIVE_Q8_K})                                  \
    F("norm_quantized", "add+rms-int8", add_rms_int8, rms_to_bytes, (naive_blocks){NAIVE_INT8(0)})                               \
    F("norm_sandwich_quantized", "sandwich-q8_0", sandwich_q8_0, sandwich_to_bytes, (naive_blocks){NAIVE_Q8_0})                  \
    F("norm_sandwich_quantized", "turns-q8_0", turns_q8_0, sandwich_to_bytes, (naive_blocks){NAIVE_Q8_0})                        \
    F("norm_sandwich_quantized", "sandwich-q8_k", sandwich_q8_k, sandwich_to_bytes, (naive_blocks){NAIVE_Q8_K})                  \
    F("norm_sandwich_quantized", "sandwich-int8", sandwich_int8, sandwich_to_bytes, (naive_blocks){NAIVE_INT8(0)})               \
    F("glu_quantized", "swiglu-q8_0", swiglu_q8_0, glu_to_bytes, (naive_blocks){NAIVE_Q8_0})

#endif
