/* nrg/rope.h: rotary position embedding (RoPE), with the scalings in use.
 *
 * A head is a vector of `dim` elements. 2·pairs of them, from element `rotate_from` on, are rotated in pairs; the others are
 * copied. Pair p of a token at position k turns by the angle k·θ_p:
 *
 *     o0 = magnitude · (x0 · cos(k·θ_p) - x1 · sin(k·θ_p))
 *     o1 = magnitude · (x0 · sin(k·θ_p) + x1 · cos(k·θ_p))        θ_p = freq_base^(-2p/n_dims), and as scaled below
 *
 * RoPE: Su, Lu, Pan, Murtadha, Wen, Liu, arXiv:2104.09864. Three steps, of which the first two are done once:
 *
 *     nrg_rope_frequencies             θ of every pair, to 100 bits, and the magnitude: once for a model
 *     nrg_rope_table                   cos and sin of every pair and position: once for a graph, or for all positions
 *     nrg_rope_forward, nrg_rope_backward   rotate q and k, in every layer
 *
 * nrg_rope_positions_forward takes all three in one call, with a workspace.
 *
 * Parameters have the names and meanings of ggml's rope call (n_dims, mode, n_ctx_orig, freq_base, freq_scale, ext_factor,
 * attn_factor, beta_fast, beta_slow, sections, and freq_factors), so that a port is a copy.
 *
 * What holds for every call: every path gives the same bits; so does any (ith, nth), any alignment and stride, in place or not.
 * cos and sin, times the magnitude, are within 0.501 ulp of f32 of the exact value, for every position an int32_t holds (exact:
 * of the formulas here, with the fields of the spec taken as the numbers they are). A rotation adds two roundings: each output is
 * within 3 · 2^-24 · (|x0| + |x1|) · magnitude of the exact one, plus 2^-148, while the
 * products stay below the largest float (2.5 with a magnitude of 1; measured: 2.2); 16-bit results are the f32 result rounded
 * once. docs/ops/rope.md has the definition to the last bit and the measured errors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_ROPE_H
#define NRG_ROPE_H

#include "base.h"

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
    size_t size;   /* sizeof(nrg_rope_spec) */
    size_t n_dims; /* even, at least 2. Rotated elements of a head; with NRG_ROPE_VISION half of them */
    nrg_rope_mode mode;
    int sections[4]; /* of pairs: time, height, width, extra; with the modes that have sections */
    nrg_rope_scaling scaling;
    uint32_t yarn;             /* nrg_rope_yarn bits */
    int n_ctx_orig;            /* context of the training: for YaRN (0: see above) and Llama 3, otherwise unused */
    double freq_base;          /* 10000 in the paper; above 0 */
    double factor;             /* of nrg_rope_scaling. Default: 1. */
    double low_freq_factor;    /* of NRG_ROPE_SCALING_LLAMA3, likewise below. Default: 1. */
    double high_freq_factor;   /* Default: 4. */
    double freq_scale;         /* above 0. Default: 1. */
    double ext_factor;         /* 0: no YaRN; 1: YaRN */
    double beta_fast;          /* of YaRN. Default: 32. */
    double beta_slow;          /* of YaRN. Default: 1. */
    double attn_factor;        /* magnitude of the rotated vectors, not 0. Default: 1. */
    const float *freq_factors; /* [pairs], each above 0, or NULL */
} nrg_rope_spec;

static inline nrg_rope_spec nrg_rope_spec_init(size_t n_dims, nrg_rope_mode mode, double freq_base)
{
    nrg_rope_spec spec;
    spec.size = sizeof spec;
    spec.n_dims = n_dims;
    spec.mode = mode;
    spec.sections[0] = spec.sections[1] = spec.sections[2] = spec.sections[3] = 0;
    spec.scaling = NRG_ROPE_SCALING_NONE;
    spec.yarn = 0;
    spec.n_ctx_orig = 0;
    spec.freq_base = freq_base;
    spec.factor = 1;
    spec.low_freq_factor = 1;
    spec.high_freq_factor = 4;
    spec.freq_scale = 1;
    spec.ext_factor = 0;
    spec.beta_fast = 32;
    spec.beta_slow = 1;
    spec.attn_factor = 1;
    spec.freq_factors = NULL;
    return spec;
}

/* Pairs of a head: n_dims/2, or n_dims with NRG_ROPE_VISION. 0 if nrg_rope_forward refuses the spec:
 * NRG_ERR_NULL, NRG_ERR_STRUCT_SIZE, NRG_ERR_ENUM of mode or yarn, NRG_ERR_DIM of n_dims, which is 0, odd or beyond 2^31. */
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
 *                        YaRN; attn_factor is 0; or a pair turns more than 2^18 times from one position to the next
 *   NRG_ERR_ALIGNMENT    a pointer that is no multiple of its elements' size
 *   NRG_ERR_OVERLAP      frequencies, magnitude and freq_factors share bytes
 *   NRG_ERR_OVERFLOW     an operand would wrap around the end of memory */
NRG_NODISCARD NRG_API nrg_status nrg_rope_frequencies(const nrg_rope_spec *spec, double *frequencies, double *magnitude);

/* The attention factor of LongRoPE, √(1 + ln s/ln n_ctx_orig) with s = n_ctx/n_ctx_orig, for attn_factor; 1 where s ≤ 1. 0 where
 * an argument is not above 1. */
NRG_API double nrg_rope_longrope_attn_factor(int n_ctx, int n_ctx_orig);

/* The table: one row of 2·pairs floats a token, magnitude·cos of all pairs and then magnitude·sin of all pairs. */
typedef struct nrg_rope_table_args {
    size_t size;               /* sizeof(nrg_rope_table_args) */
    size_t tokens;             /* rows; 0 is fine */
    const double *frequencies; /* [2, pairs] */
    double magnitude;
    const int32_t *positions; /* [axes, tokens]; NULL: token t is at first_position + t, on all axes. Axes: 1, or as many as there
                                 are sections up to the last that is not 0; 4 with NRG_ROPE_IMROPE */
    size_t positions_stride;  /* bytes from axis to axis; 0: 4 · tokens */
    int32_t first_position;   /* without positions */
    uint32_t reserved;        /* 0 */
    float *table;             /* [tokens, 2·pairs] output */
    size_t table_stride;      /* bytes; 0: dense */
} nrg_rope_table_args;

static inline nrg_rope_table_args nrg_rope_table_args_init(size_t tokens, const double *frequencies, double magnitude,
                                                           float *table)
{
    nrg_rope_table_args args;
    args.size = sizeof args;
    args.tokens = tokens;
    args.frequencies = frequencies;
    args.magnitude = magnitude;
    args.positions = NULL;
    args.positions_stride = 0;
    args.first_position = 0;
    args.reserved = 0;
    args.table = table;
    args.table_stride = 0;
    return args;
}

/* Computes the rows of share ith of nth. Of the spec it reads only n_dims, mode, sections and yarn.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing: the statuses of nrg_rope_frequencies, and
 *   NRG_ERR_NULL       spec or args; with tokens, frequencies or table
 *   NRG_ERR_CONSTANT   magnitude NaN or infinite
 *   NRG_ERR_POSITION   first_position + tokens beyond what an int32_t holds
 *   NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_THREAD  as in nrg/norm.h: the table shares no
 *                      byte with anything */
NRG_NODISCARD NRG_API nrg_status nrg_rope_table(const nrg_rope_spec *spec, const nrg_rope_table_args *args, int ith, int nth);

/* Validates the arguments of nrg_rope_table. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_table_check(const nrg_rope_spec *spec, const nrg_rope_table_args *args);

/* The tensors q, k, q_o and k_o are [batch, tokens, heads, dim]. The row of their strides is a token:
 *
 *     head h of token t of batch b begins at  q + b · q_strides.batch + t · q_strides.row + h · q_strides.head
 *     its row of the table is                 positions[b · tokens + t], or with positions_batch_stride
 *                                             positions[t] with shared_positions, in every batch
 *                                             t without positions, in every batch
 *
 * So q and k may be parts of the rows of one q-k-v matrix. A tensor [batch, heads, tokens, dim] has token strides that are less
 * than its head strides. In ggml: ne and nb of dim, heads, tokens, batch. The bits are those of a call for each batch.
 *
 * In place: if q_o is NULL, q is rotated in place and written; k likewise.
 *
 * Aliasing: q_o may be q, and k_o may be k, with the same strides:
 *
 *               q     k
 *       q_o     yes   no
 *       k_o     no    yes
 *
 * Otherwise outputs share no byte with anything. The rows of two tensors may interleave if their strides are equal. Rows are
 * heads if all heads of all tokens of all batches lie at equal distances. Otherwise they are what the largest stride steps over,
 * from its first to its last byte. */
typedef struct nrg_rope_args {
    size_t size;                   /* sizeof(nrg_rope_args) */
    size_t batch;                  /* Default: 1. */
    size_t tokens;                 /* 0 is fine */
    size_t q_heads, k_heads;       /* 0: none; the pointers are then NULL */
    size_t dim;                    /* elements of a head */
    size_t rotate_from;            /* the first rotated element of a head */
    nrg_dtype dtype;               /* of q, k and their outputs */
    nrg_store store;               /* how outputs are stored */
    const float *table;            /* [table_rows, 2·pairs], of nrg_rope_table */
    size_t table_stride;           /* bytes; 0: dense */
    size_t table_rows;             /* Default: tokens. */
    const int32_t *positions;      /* [batch, tokens] the table's row of each token; NULL: token t has row t, in every batch */
    size_t positions_batch_stride; /* bytes; 0: 4 · tokens */
    int shared_positions;          /* not 0: positions are [tokens], the same for every batch */
    uint32_t reserved;             /* 0 */
    const void *q;                 /* written if q_o is NULL */
    nrg_head_strides q_strides;
    const void *k; /* written if k_o is NULL */
    nrg_head_strides k_strides;
    void *q_o; /* NULL: q, with its strides */
    nrg_head_strides q_o_strides;
    void *k_o; /* NULL: k, with its strides */
    nrg_head_strides k_o_strides;
} nrg_rope_args;

static inline nrg_rope_args nrg_rope_args_init(nrg_dtype dtype, size_t tokens, size_t dim, const float *table)
{
    nrg_rope_args args;
    args.size = sizeof args;
    args.batch = 1;
    args.tokens = tokens;
    args.q_heads = args.k_heads = 0;
    args.dim = dim;
    args.rotate_from = 0;
    args.dtype = dtype;
    args.store = NRG_STORE_AUTO;
    args.table = table;
    args.table_stride = 0;
    args.table_rows = tokens;
    args.positions = NULL;
    args.positions_batch_stride = 0;
    args.shared_positions = 0;
    args.reserved = 0;
    args.q = args.k = NULL;
    args.q_strides.row = args.q_strides.head = args.q_strides.batch = 0;
    args.k_strides = args.q_strides;
    args.q_o = args.k_o = NULL;
    args.q_o_strides = args.q_strides;
    args.k_o_strides = args.q_strides;
    return args;
}

/* Rotates share ith of nth: of all heads of all tokens of all batches of q, then of k. Of the spec it reads only n_dims, mode and
 * yarn.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         spec or args; with tokens and heads, table, q or k
 *   NRG_ERR_STRUCT_SIZE  as in nrg/norm.h
 *   NRG_ERR_DIM          n_dims 0 or odd; rotate_from + 2·pairs beyond dim
 *   NRG_ERR_ENUM         mode, dtype or store unknown; other bits in yarn than those of nrg_rope_yarn
 *   NRG_ERR_COMBINATION  q or q_o although q_heads is 0; k or k_o although k_heads is 0
 *   NRG_ERR_POSITION     a position that is not below table_rows, or below 0; the call reads all of them before it writes
 *   NRG_ERR_STRIDE       heads, tokens or batches of a tensor lie over each other
 *   NRG_ERR_OVERFLOW, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_THREAD  as in nrg/norm.h */
NRG_NODISCARD NRG_API nrg_status nrg_rope_forward(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth);

/* Validates the arguments of nrg_rope_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_forward_check(const nrg_rope_spec *spec, const nrg_rope_args *args);

/* Rotates by -k·θ, the transposed rotation: q and k are the gradients of the outputs of nrg_rope_forward, q_o and k_o become the
 * gradients of its q and k. The statuses of nrg_rope_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_backward(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth);

/* Validates the arguments of nrg_rope_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_backward_check(const nrg_rope_spec *spec, const nrg_rope_args *args);

/* From positions to rotated q and k in one call: frequencies, table and rotation, with the bits of the three calls. Tensors are
 * as in nrg_rope_args. Positions are the same in every batch; sequences with positions of their own are tokens of one batch.
 *
 * Shares never wait for each other: each computes the frequencies and the table of its tokens, in its slice of the workspace.
 *
 * With keep, a share computes again only what has changed since the previous call: frequencies if the numbers of the spec or its
 * freq_factors differ, the table if the positions differ. So the first layer of a graph makes the table for all layers. The
 * workspace then belongs to these calls: it begins as zeros, nothing else writes to it, and its place and size, n_dims and mode
 * stay. If nth changes, all is computed again. A model with two specs takes two workspaces. Without keep, the call reads nothing
 * that was in the workspace before.
 *
 * Aliasing: as in nrg_rope_args; the workspace shares no byte with anything. Two calls at the same time need two workspaces.
 *
 *               q     k
 *       q_o     yes   no
 *       k_o     no    yes */
typedef struct nrg_rope_positions_args {
    size_t size;              /* sizeof(nrg_rope_positions_args) */
    size_t batch;             /* Default: 1. */
    size_t tokens;            /* 0 is fine */
    size_t q_heads, k_heads;  /* 0: none; the pointers are then NULL */
    size_t dim;               /* elements of a head */
    size_t rotate_from;       /* the first rotated element of a head */
    nrg_dtype dtype;          /* of q, k and their outputs */
    nrg_store store;          /* how outputs are stored */
    const int32_t *positions; /* [axes, tokens], as in nrg_rope_table_args; NULL: token t is at first_position + t, on all axes */
    size_t positions_stride;  /* bytes from axis to axis; 0: 4 · tokens */
    int32_t first_position;   /* without positions */
    int keep;                 /* not 0: frequencies and table are kept from call to call */
    const void *q;            /* written if q_o is NULL */
    nrg_head_strides q_strides;
    const void *k; /* written if k_o is NULL */
    nrg_head_strides k_strides;
    void *q_o; /* NULL: q, with its strides */
    nrg_head_strides q_o_strides;
    void *k_o; /* NULL: k, with its strides */
    nrg_head_strides k_o_strides;
    void *workspace; /* of nrg_rope_positions_workspace bytes or more, 8-byte aligned */
    size_t workspace_size;
} nrg_rope_positions_args;

static inline nrg_rope_positions_args nrg_rope_positions_args_init(nrg_dtype dtype, size_t tokens, size_t dim,
                                                                   const int32_t *positions)
{
    nrg_rope_positions_args args;
    args.size = sizeof args;
    args.batch = 1;
    args.tokens = tokens;
    args.q_heads = args.k_heads = 0;
    args.dim = dim;
    args.rotate_from = 0;
    args.dtype = dtype;
    args.store = NRG_STORE_AUTO;
    args.positions = positions;
    args.positions_stride = 0;
    args.first_position = 0;
    args.keep = 0;
    args.q = args.k = NULL;
    args.q_strides.row = args.q_strides.head = args.q_strides.batch = 0;
    args.k_strides = args.q_strides;
    args.q_o = args.k_o = NULL;
    args.q_o_strides = args.q_strides;
    args.k_o_strides = args.q_strides;
    args.workspace = NULL;
    args.workspace_size = 0;
    return args;
}

/* Heads of q and k that are dense, and are rotated in place. */
static inline nrg_rope_positions_args nrg_rope_positions_args_in_place(nrg_dtype dtype, size_t tokens, size_t q_heads,
                                                                       size_t k_heads, size_t dim, const int32_t *positions,
                                                                       void *q, void *k)
{
    nrg_rope_positions_args args = nrg_rope_positions_args_init(dtype, tokens, dim, positions);
    args.q_heads = q_heads;
    args.k_heads = k_heads;
    args.q = q;
    args.k = k;
    return args;
}

/* Bytes of the workspace for calls with nth shares and as many tokens as args has, or fewer: for each share 20 bytes a pair for
 * the frequencies, and 8 a pair and token of its share for the table. Reads no pointer to operands, no workspace_size.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         spec, args or bytes
 *   NRG_ERR_THREAD       nth is below 1
 *   NRG_ERR_STRUCT_SIZE, NRG_ERR_ENUM, NRG_ERR_DIM, NRG_ERR_CONSTANT, NRG_ERR_POSITION, NRG_ERR_OVERFLOW
 *                        as in nrg_rope_positions_forward, for the fields of both structs that are no pointers to operands */
NRG_NODISCARD NRG_API nrg_status nrg_rope_positions_workspace(const nrg_rope_spec *spec, const nrg_rope_positions_args *args,
                                                              int nth, size_t *bytes);

/* Share ith of nth: of the heads of all tokens, a token's q and k of all batches together.
 *
 * Returns NRG_OK, or says what is wrong and writes nothing:
 *   NRG_ERR_NULL         spec or args; with tokens and heads, q, k or the workspace
 *   NRG_ERR_STRUCT_SIZE  as in nrg/norm.h
 *   NRG_ERR_DIM          n_dims 0, odd, beyond 2^31, or 2 with NRG_ROPE_SCALING_NTK; rotate_from + 2·pairs beyond dim; sections
 *                        below 0, or all 0, with a mode that has them
 *   NRG_ERR_ENUM         mode, scaling, dtype or store unknown; other bits in yarn than those of nrg_rope_yarn
 *   NRG_ERR_CONSTANT     as in nrg_rope_frequencies
 *   NRG_ERR_COMBINATION  q or q_o although q_heads is 0; k or k_o although k_heads is 0
 *   NRG_ERR_POSITION     first_position + tokens beyond what an int32_t holds
 *   NRG_ERR_WORKSPACE    workspace_size is less than nrg_rope_positions_workspace says for nth
 *   NRG_ERR_STRIDE       heads, tokens or batches of a tensor lie over each other
 *   NRG_ERR_OVERFLOW, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_THREAD  as in nrg/norm.h */
NRG_NODISCARD NRG_API nrg_status nrg_rope_positions_forward(const nrg_rope_spec *spec, const nrg_rope_positions_args *args,
                                                            int ith, int nth);

/* Validates the arguments of nrg_rope_positions_forward, with a workspace for one share. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_positions_forward_check(const nrg_rope_spec *spec, const nrg_rope_positions_args *args);

/* Rotates by -k·θ, as nrg_rope_backward. The statuses of nrg_rope_positions_forward. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_positions_backward(const nrg_rope_spec *spec, const nrg_rope_positions_args *args,
                                                             int ith, int nth);

/* Validates the arguments of nrg_rope_positions_backward, with a workspace for one share. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_positions_backward_check(const nrg_rope_spec *spec,
                                                                   const nrg_rope_positions_args *args);

#ifdef __cplusplus
}
#endif
#endif
