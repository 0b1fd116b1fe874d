/* nrg/rope.h: rotary position embedding (RoPE), with the scalings in use; and the same fused with a norm of each head.
 *
 * A head is a vector of `dim` elements, of which 2·pairs from `offset` on are rotated in pairs, and the others are left as they
 * are. Pair p of a token at position k turns by the angle k·θ_p:
 *
 *     o0 = magnitude · (x0 · cos(k·θ_p) - x1 · sin(k·θ_p))
 *     o1 = magnitude · (x0 · sin(k·θ_p) + x1 · cos(k·θ_p))        θ_p = freq_base^(-2p/n_dims), and as scaled below
 *
 * RoPE: Su, Lu, Pan, Murtadha, Wen, Liu, arXiv:2104.09864. Three steps, of which the first two are done once:
 *
 *     nrg_rope_frequencies   θ of every pair, to 100 bits, and the magnitude: once for a model
 *     nrg_rope_table         cos and sin of every pair and position: once for a graph, or once for all positions there will be
 *     nrg_rope               rotates q and k, in all layers and heads, forward or backward
 *
 * Parameters have the names and meanings of ggml's rope call (n_dims, mode, n_ctx_orig, freq_base, freq_scale, ext_factor,
 * attn_factor, beta_fast, beta_slow, sections, and freq_factors), so that a port is a copy.
 *
 * What holds for every call: every path gives the same bits; so does any (ith, nth), any alignment and stride, in place or not.
 * cos and sin, times the magnitude, are within 0.501 ulp of f32 of the exact value, for every position an int32_t holds (exact:
 * of the formulas here, with the fields of the spec taken as the numbers they are). A rotation adds two roundings: each output is
 * within 3 · 2^-24 · (|x0| + |x1|) · magnitude of the exact one, plus 2^-148, while the
 * products stay below the largest float (2.5 with a magnitude of 1; measured: 2.2); 16-bit results are the f32 result rounded
 * once. docs/rope.md has the definition to the last bit and the measured errors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_ROPE_H
#define NRG_ROPE_H

#include "norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How pairs lie, and which position rotates them. Numbers as in ggml (GGML_ROPE_TYPE_…), but for the last.
 *
 * The two interleaved modes differ where the section of a pair is over: at pairs 61 and 62 of Qwen3-VL, whose sections are 24,
 * 20, 20 and which has 64 pairs, and nowhere in Qwen3.5 (11, 11, 10, of 32 pairs). Models were trained with IMROPE_TIME;
 * llama.cpp runs them with IMROPE and a fourth position of 0. IMROPE is IMROPE_TIME where the fourth position is the first and
 * sections have as many pairs as there are. Sources: ggml's ggml_mrope_cache_init (ggml-cpu/ops.cpp); llama.cpp's
 * llm_graph_input_pos; and apply_interleaved_mrope of transformers (models/qwen3_vl, qwen3_5, and others that share it). */
typedef enum nrg_rope_mode {
    NRG_ROPE_NORMAL = 0, /* interleaved pairs (2p, 2p + 1): the paper, Llama */
    NRG_ROPE_NEOX = 2,   /* half-split pairs (p, p + pairs): GPT-NeoX, and Llama in PyTorch's layout */
    NRG_ROPE_MROPE = 8,  /* half-split; sections of pairs, each with a position of its own: Qwen2-VL, arXiv:2409.12191 */
    /* as MROPE, with 2·n_dims rotated elements, and p counted anew in every section: 2-D positions of image patches. (ggml does
     * not count anew after a section of 0.) */
    NRG_ROPE_VISION = 24,
    /* as MROPE, with sections interleaved: pair p, counted anew after as many as all sections have, takes position p mod 3 while
     * that section lasts, then the fourth, whether there is a fourth section or not */
    NRG_ROPE_IMROPE = 40,
    /* the same as in transformers: height takes pairs 1, 4, 7, … and width 2, 5, 8, … while their sections last, and time all
     * others. The fourth section is not used. Not in ggml */
    NRG_ROPE_IMROPE_TIME = 296
} nrg_rope_mode;

/* What is done to θ beyond freq_scale, freq_factors and YaRN, which are fields of their own. */
typedef enum nrg_rope_scaling {
    NRG_ROPE_SCALING_NONE = 0,
    /* freq_base · factor^(n_dims/(n_dims - 2)) instead of freq_base, which stretches the slow pairs by `factor` and leaves the
     * first alone ("NTK-aware"). Dynamic NTK: factor = s·n_ctx/n_ctx_orig - (s - 1). n_dims at least 4. */
    NRG_ROPE_SCALING_NTK = 1,
    /* Llama 3.1: with r = n_ctx_orig · θ/2π, the turns a pair makes in the original context: θ/factor where r < low_freq_factor,
     * θ where r > high_freq_factor, and between them a blend, linear in r. */
    NRG_ROPE_SCALING_LLAMA3 = 2
} nrg_rope_scaling;

/* How YaRN is not ggml's: bits of nrg_rope_spec.yarn. Sources: _compute_yarn_parameters of transformers (modeling_rope_utils.py),
 * whose configurations have `truncate` and `attention_factor`; and RotaryEmbedding of gpt-oss (gpt_oss/torch/model.py). */
typedef enum nrg_rope_yarn {
    NRG_ROPE_YARN_NO_TRUNCATE = 1, /* low and high are not rounded: `truncate` is false, as gpt-oss has it */
    NRG_ROPE_YARN_NO_MSCALE = 2    /* the magnitude is attn_factor as it is: a model's own `attention_factor` */
} nrg_rope_yarn;

/* Which angles. Make one with nrg_rope_spec_init, then change fields. In this order:
 *
 *     θ = freq_base^(-2p/n_dims)       or as nrg_rope_scaling has it
 *     θ = θ / freq_factors[p]          LongRoPE (arXiv:2402.13753): the model's long or short factors
 *     t = θ · freq_scale               linear interpolation (arXiv:2306.15595): 1/factor
 *     θ = t · (1 - mix) + θ · mix      YaRN (arXiv:2309.00071), with ext_factor ≠ 0; otherwise θ = t
 *
 *     mix  = ext_factor · (1 - clamp((p - low)/max(0.001, high - low), 0, 1))
 *     low  = max(0, ⌊c(beta_fast)⌋)                 with NRG_ROPE_YARN_NO_TRUNCATE c(beta_fast) itself,
 *     high = min(n_dims - 1, ⌈c(beta_slow)⌉)        and c(beta_slow)
 *     c(β) = n_dims · ln(n_ctx_orig/(2πβ)) / (2 ln freq_base)
 *
 * n_ctx_orig = 0 is ln 0 = -∞ in these lines, as in ggml (ggml_rope_yarn_corr_dims and rope_yarn_ramp): mix is ext_factor for
 * pair 0 and 0 for all others; with a freq_base below 1 it is ext_factor for all pairs.
 *
 *     magnitude = attn_factor          with YaRN times 1 + 0.1 · ln(1/freq_scale), unless NRG_ROPE_YARN_NO_MSCALE is set
 *
 * With NRG_ROPE_VISION the p of the first line is counted from the beginning of the pair's section. */
typedef struct nrg_rope_spec {
    size_t size;   /* sizeof(nrg_rope_spec), set by the constructor */
    size_t n_dims; /* even, at least 2. Rotated elements of a head; with NRG_ROPE_VISION half of them */
    nrg_rope_mode mode;
    int n_ctx_orig;              /* of the training: for YaRN (0: see above) and Llama 3, otherwise unused */
    double freq_base;            /* 10000 in the paper; above 0 */
    double freq_scale;           /* 1; above 0 */
    double ext_factor;           /* 0: no YaRN; 1: YaRN */
    double attn_factor;          /* 1: magnitude of the rotated vectors */
    double beta_fast, beta_slow; /* 32 and 1 */
    int sections[4];             /* of pairs: time, height, width, extra; with the modes that have sections */
    nrg_rope_scaling scaling;
    uint32_t yarn;                            /* nrg_rope_yarn bits */
    double factor;                            /* of nrg_rope_scaling */
    double low_freq_factor, high_freq_factor; /* of NRG_ROPE_SCALING_LLAMA3: 1 and 4 */
    const float *freq_factors;                /* [pairs], each above 0, or NULL */
} nrg_rope_spec;

static inline nrg_rope_spec nrg_rope_spec_init(size_t n_dims, nrg_rope_mode mode, double freq_base)
{
    nrg_rope_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.size = sizeof spec;
    spec.n_dims = n_dims;
    spec.mode = mode;
    spec.freq_base = freq_base;
    spec.freq_scale = 1;
    spec.attn_factor = 1;
    spec.beta_fast = 32;
    spec.beta_slow = 1;
    spec.factor = 1;
    spec.low_freq_factor = 1;
    spec.high_freq_factor = 4;
    return spec;
}

/* Pairs of a head: n_dims/2, or n_dims with NRG_ROPE_VISION. 0 where nrg_rope says of the spec: NRG_ERR_NULL,
 * NRG_ERR_STRUCT_SIZE, NRG_ERR_ENUM of its mode or yarn, NRG_ERR_DIM of n_dims, which is 0, odd or beyond 2^31. */
NRG_API size_t nrg_rope_pairs(const nrg_rope_spec *spec);

/* frequencies [2][pairs]: the turns θ_p/2π that pair p makes from one position to the next, as two doubles whose sum has 90
 * bits: all the higher parts, then all the lower. magnitude: for nrg_rope_table. Frequencies of your own will
 * do as well, with lower parts of 0.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         spec, frequencies or magnitude
 *   NRG_ERR_STRUCT_SIZE  of the spec
 *   NRG_ERR_DIM          n_dims is 0, odd or beyond 2^31, or 2 with NRG_ROPE_SCALING_NTK; sections below 0, or all 0, with a mode
 *                        that has them
 *   NRG_ERR_ENUM         mode or scaling unknown; other bits in yarn than those of nrg_rope_yarn
 *   NRG_ERR_CONSTANT     a number of the spec (or of freq_factors) is NaN, infinite or out of its range: those above 0 between
 *                        2^-400 and 2^400, n_ctx_orig at least 0 with YaRN and above 0 with Llama 3, freq_base not 1 with
 *                        YaRN; or a pair turns more than 2^18 times from one position to the next
 *   NRG_ERR_ALIGNMENT    a pointer that is no multiple of its elements' size
 *   NRG_ERR_OVERLAP      frequencies, magnitude and freq_factors share bytes
 *   NRG_ERR_OVERFLOW     an operand would wrap around the end of memory */
NRG_API nrg_status nrg_rope_frequencies(const nrg_rope_spec *spec, double *frequencies, double *magnitude);

/* The attention factor of LongRoPE, √(1 + ln s/ln n_ctx_orig) with s = n_ctx/n_ctx_orig, for attn_factor; 1 where s ≤ 1. 0 where
 * an argument is not above 1. */
NRG_API double nrg_rope_longrope_attn_factor(int n_ctx, int n_ctx_orig);

/* The table: one row of 2·pairs floats a token, magnitude·cos of all pairs and then magnitude·sin of all pairs. */
typedef struct nrg_rope_table_args {
    size_t size;   /* sizeof(nrg_rope_table_args) */
    size_t tokens; /* rows; 0 is fine */
    const double *frequencies;
    double magnitude;
    const int32_t *positions; /* [axes][tokens]; NULL: token t is at first + t, on all axes. Axes: 1, or as many as there are
                                 sections up to the last that is not 0; 4 with NRG_ROPE_IMROPE */
    size_t positions_stride;  /* bytes from axis to axis; 0: 4 · tokens */
    int32_t first;            /* without positions */
    uint32_t reserved;        /* 0 */
    float *table;             /* [tokens, 2·pairs] output */
    size_t table_stride;      /* bytes; 0: dense */
} nrg_rope_table_args;

static inline nrg_rope_table_args nrg_rope_table_args_init(size_t tokens, const double *frequencies, double magnitude,
                                                           float *table)
{
    nrg_rope_table_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.tokens = tokens;
    args.frequencies = frequencies;
    args.magnitude = magnitude;
    args.table = table;
    return args;
}

/* Rows of share ith of nth. Of the spec only n_dims, mode and sections are looked at.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_rope_frequencies, and
 *   NRG_ERR_NULL       spec or args; with tokens, frequencies or table
 *   NRG_ERR_CONSTANT   magnitude NaN or infinite
 *   NRG_ERR_POSITION   first + tokens beyond what an int32_t holds
 *   NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_THREAD  as in nrg/norm.h: the table shares no
 *                      byte with anything */
NRG_API nrg_status nrg_rope_table(const nrg_rope_spec *spec, const nrg_rope_table_args *args, int ith, int nth);

/* What nrg_rope_table would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_rope_table_check(const nrg_rope_spec *spec, const nrg_rope_table_args *args);

/* What is rotated. A tensor is [batch, tokens, heads, dim] in any layout whose strides are given in bytes:
 *
 *     head h of token t of batch b begins at  q + b · q_batch_stride + t · q_token_stride + h · q_head_stride
 *     its token has the table's row           positions[b · tokens + t], or with positions_batch_stride
 *                                             positions[t] with shared_positions, in every batch
 *                                             t without positions, in every batch
 *
 * and likewise k, q_o and k_o. A stride of 0 stands for dense: a head stride of dim elements, a token stride of heads of them, a
 * batch stride of everything inside of it. So q and k may be slices of the rows of one q-k-v matrix, or [batch, heads, tokens,
 * dim], whose token strides are less than the head strides. In ggml: ne and nb of dim, heads, tokens, batch, in this order. The
 * bits are those of a call for each batch.
 *
 * Aliasing: q_o may be q, and k_o may be k, with the same strides:
 *
 *               q     k
 *       q_o     yes   no
 *       k_o     no    yes
 *
 * Otherwise outputs share no byte with anything. Two tensors are seen as rows: heads, where all heads of all tokens of all
 * batches lie at equal distances; otherwise what the largest stride steps over (a batch, a token or all tokens of a head), from
 * its first to its last byte. Such rows of two tensors may interleave where their strides are equal. */
typedef struct nrg_rope_args {
    size_t size;              /* sizeof(nrg_rope_args) */
    size_t tokens;            /* 0 is fine */
    size_t dim;               /* elements of a head */
    size_t offset;            /* of the first rotated element in a head */
    nrg_dtype dtype;          /* of q, k and their outputs */
    nrg_store store;          /* how outputs are stored, as in nrg/norm.h */
    const float *table;       /* of nrg_rope_table */
    size_t table_stride;      /* bytes; 0: dense */
    size_t table_rows;        /* 0: as many as tokens */
    const int32_t *positions; /* [batch, tokens] the table's row of each token; NULL: token t has row t, in every batch */
    size_t q_heads, k_heads;  /* 0: none, and pointers are not looked at */
    const void *q, *k;
    void *q_o, *k_o;
    size_t q_token_stride, q_head_stride; /* bytes, likewise below */
    size_t k_token_stride, k_head_stride;
    size_t q_o_token_stride, q_o_head_stride;
    size_t k_o_token_stride, k_o_head_stride;
    int backward;         /* not 0: the transposed rotation, by -k·θ: gradients of q and k from those of q_o and k_o */
    int shared_positions; /* not 0: positions are [tokens], the same for every batch */
    size_t batch;         /* 0: 1 */
    size_t q_batch_stride, k_batch_stride;
    size_t q_o_batch_stride, k_o_batch_stride;
    size_t positions_batch_stride; /* 0: 4 · tokens */
} nrg_rope_args;

/* Rotation of q (and k) in place, [tokens, heads, dim], f32. */
static inline nrg_rope_args nrg_rope_args_init(size_t tokens, size_t dim, const float *table)
{
    nrg_rope_args args;
    memset(&args, 0, sizeof args);
    args.size = sizeof args;
    args.tokens = tokens;
    args.dim = dim;
    args.dtype = NRG_F32;
    args.table = table;
    return args;
}

/* Share ith of nth: of all heads of all tokens of all batches of q, then of k. Of the spec only n_dims and mode are looked at.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         spec or args; with tokens and heads, table, q, q_o, k or k_o
 *   NRG_ERR_STRUCT_SIZE  as in nrg/norm.h
 *   NRG_ERR_DIM          n_dims 0 or odd; offset + 2·pairs beyond dim
 *   NRG_ERR_ENUM         mode, dtype or store unknown; other bits in yarn than those of nrg_rope_yarn
 *   NRG_ERR_POSITION     a position that is not below table_rows, or below 0 (all are looked at before anything is written)
 *   NRG_ERR_STRIDE       heads, tokens or batches of a tensor lie over each other
 *   NRG_ERR_OVERFLOW, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_THREAD  as in nrg/norm.h */
NRG_API nrg_status nrg_rope(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth);

/* What nrg_rope would say: asking first, nrg/base.h. */
NRG_API nrg_status nrg_rope_check(const nrg_rope_spec *spec, const nrg_rope_args *args);

#ifdef __cplusplus
}
#endif
#endif
