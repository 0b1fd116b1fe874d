/* nrg/rope.h: rotary position embedding (RoPE), with linear, NTK, YaRN, Llama 3 and LongRoPE scaling.
 *
 * A head is a vector of `dim` elements. The call rotates 2·pairs of them in pairs, from element `rotate_from` on, and copies the
 * others. Pair p of a token at position k turns by the angle k·θ_p:
 *
 *     o0 = magnitude · (x0 · cos(k·θ_p) - x1 · sin(k·θ_p))
 *     o1 = magnitude · (x0 · sin(k·θ_p) + x1 · cos(k·θ_p))        θ_p = freq_base^(-2p/n_dims), and as scaled below
 *
 * Source: Su, Lu, Pan, Murtadha, Wen, Liu, arXiv:2104.09864. There are three steps, and each has a function:
 *
 *     nrg_rope_frequencies             θ of every pair, to 90 bits, and the magnitude: once for a model
 *     nrg_rope_table                   cos and sin of every pair and position: once for a graph, or for all positions
 *     nrg_rope_forward, nrg_rope_backward   rotate q and k, in every layer
 *
 * Or call nrg_rope_positions_forward, which does all three steps and needs a workspace.
 *
 * Parameters have the names and meanings of ggml's rope call: n_dims, mode, n_ctx_orig, freq_base, freq_scale, ext_factor,
 * attn_factor, beta_fast, beta_slow, sections and freq_factors. So a port copies them.
 *
 * Results are bit-identical on every path and for any (ith, nth), alignment and stride, in place or not.
 *
 * Error bounds:
 * - The table, cos and sin times the magnitude: 0.501 ulp of f32, for every int32_t position. The bound compares with the exact
 *   value of the formulas for the numbers in the spec.
 * - A rotation adds two roundings: 3 · 2^-24 · (|x0| + |x1|) · magnitude, plus 2^-148, while the products stay below the largest
 *   float. With a magnitude of 1, the factor is 2.5 instead of 3 (measured: 2.2).
 * - A 16-bit result is the f32 result rounded once.
 *
 * docs/ops/rope.md has the definition of every bit, and the measured errors.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_ROPE_H
#define NRG_ROPE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The elements of each pair, and the position that rotates it. The numbers are those of ggml (GGML_ROPE_TYPE_…), except the last.
 *
 * The two interleaved modes differ after the end of a section. That affects pairs 61 and 62 of Qwen3-VL, which has 64 pairs in
 * sections of 24, 20 and 20. It affects no pair of Qwen3.5, which has 32 pairs in sections of 11, 11 and 10. Models were trained
 * with IMROPE_TIME; llama.cpp runs them with IMROPE and a fourth position of 0. The two modes are equal if the fourth position
 * equals the first, and the sections contain all pairs.
 *
 * Sources:
 * - ggml_mrope_cache_init of ggml (ggml-cpu/ops.cpp).
 * - llm_graph_input_pos of llama.cpp.
 * - apply_interleaved_mrope of transformers (models/qwen3_vl, qwen3_5, and others that share it). */
typedef enum nrg_rope_mode {
    NRG_ROPE_NORMAL = 0, /* interleaved pairs (2p, 2p + 1): the paper, Llama */
    NRG_ROPE_NEOX = 2,   /* half-split pairs (p, p + pairs): GPT-NeoX, and Llama in PyTorch's layout */
    NRG_ROPE_MROPE = 8,  /* half-split; each section of pairs has its own position: Qwen2-VL, arXiv:2409.12191 */
    /* As MROPE, with 2·n_dims rotated elements, and p counted from 0 in every section: 2-D positions of image patches. Difference
     * from ggml: it does not restart the count after a section of 0. */
    NRG_ROPE_VISION = 24,
    /* As MROPE, with interleaved sections. The count of pairs restarts after as many pairs as all sections have. Pair p takes
     * position p mod 3 until that section is used up. Then it takes the fourth position, even without a fourth section. */
    NRG_ROPE_IMROPE = 40,
    /* As IMROPE, but as in transformers; ggml lacks this mode. Height takes pairs 1, 4, 7, … and width takes 2, 5, 8, … until
     * their sections are used up. Time takes all others. The fourth section is ignored. */
    NRG_ROPE_IMROPE_TIME = 296
} nrg_rope_mode;

/* Scalings of θ. freq_scale, freq_factors and YaRN are separate fields. */
typedef enum nrg_rope_scaling {
    NRG_ROPE_SCALING_NONE = 0, /* θ = freq_base^(-2p/n_dims) */
    /* "NTK-aware": replaces freq_base by freq_base · factor^(n_dims/(n_dims - 2)). That stretches the slow pairs by `factor`, and
     * leaves the first pair unchanged. For dynamic NTK, set factor = s·n_ctx/n_ctx_orig - (s - 1). n_dims is at least 4. */
    NRG_ROPE_SCALING_NTK = 1,
    /* Llama 3.1, by the turns r = n_ctx_orig · θ/2π that a pair completes in the original context. The result is θ/factor if
     * r < low_freq_factor, and θ if r > high_freq_factor. In between, it is a blend of both that is linear in r. */
    NRG_ROPE_SCALING_LLAMA3 = 2
} nrg_rope_scaling;

/* Differences from ggml's YaRN: bits of nrg_rope_spec.yarn.
 *
 * Sources:
 * - _compute_yarn_parameters of transformers (modeling_rope_utils.py), whose configurations have `truncate` and
 *   `attention_factor`.
 * - RotaryEmbedding of gpt-oss (gpt_oss/torch/model.py). */
typedef enum nrg_rope_yarn {
    NRG_ROPE_YARN_NO_TRUNCATE = 1, /* low and high are not rounded, as with gpt-oss's `truncate` of false */
    NRG_ROPE_YARN_NO_MSCALE = 2    /* the magnitude is attn_factor, unscaled: a model's `attention_factor` */
} nrg_rope_yarn;

/* The angles. Make one with nrg_rope_spec_init, then change fields. The steps, in this order:
 *
 *     θ = freq_base^(-2p/n_dims)       or as nrg_rope_scaling defines
 *     θ = θ / freq_factors[p]          LongRoPE (arXiv:2402.13753): the model's long or short factors
 *     t = θ · freq_scale               linear interpolation (arXiv:2306.15595): 1/factor
 *     θ = t · (1 - mix) + θ · mix      YaRN (arXiv:2309.00071), with ext_factor ≠ 0; otherwise θ = t
 *
 *     mix  = ext_factor · (1 - clamp((p - low)/max(0.001, high - low), 0, 1))
 *     low  = max(0, ⌊c(beta_fast)⌋)                 with NRG_ROPE_YARN_NO_TRUNCATE c(beta_fast) itself,
 *     high = min(n_dims - 1, ⌈c(beta_slow)⌉)        and c(beta_slow)
 *     c(β) = n_dims · ln(n_ctx_orig/(2πβ)) / (2 ln freq_base)
 *
 *     magnitude = attn_factor          with YaRN times 1 + 0.1 · ln(1/freq_scale), unless NRG_ROPE_YARN_NO_MSCALE is set
 *
 * With NRG_ROPE_VISION, the p of the first line counts from the beginning of the pair's section.
 *
 * n_ctx_orig, beta_fast and beta_slow are parameters of ggml's call. Without YaRN and Llama 3 they are ignored. Every other field
 * that the options do not use must have its default. */
typedef struct nrg_rope_spec {
    size_t size;               /* sizeof(nrg_rope_spec) */
    size_t n_dims;             /* rotated elements of a head, or half of them with NRG_ROPE_VISION; even, at least 2 */
    nrg_rope_mode mode;        /* elements of each pair */
    int sections[4];           /* pairs of time, height, width and extra, in the modes with sections; 0 in the others */
    nrg_rope_scaling scaling;  /* of θ, in addition to freq_scale, freq_factors and YaRN */
    uint32_t yarn;             /* nrg_rope_yarn bits; 0 without YaRN */
    int n_ctx_orig;            /* context length of the training, above 0 with YaRN and Llama 3; otherwise ignored */
    double freq_base;          /* above 0; 10000 in the paper */
    double factor;             /* of the scaling. Default: 1. */
    double low_freq_factor;    /* of NRG_ROPE_SCALING_LLAMA3. Default: 1. */
    double high_freq_factor;   /* of NRG_ROPE_SCALING_LLAMA3. Default: 4. */
    double freq_scale;         /* above 0; 1/factor for linear scaling. Default: 1. */
    double ext_factor;         /* 0 disables YaRN, 1 enables it */
    double beta_fast;          /* of YaRN; otherwise ignored. Default: 32. */
    double beta_slow;          /* of YaRN; otherwise ignored. Default: 1. */
    double attn_factor;        /* magnitude of rotated vectors, not 0. Default: 1. */
    const float *freq_factors; /* [pairs] input, each above 0, or NULL: 1 */
} nrg_rope_spec;

/* Returns the spec of RoPE without scaling.
 *
 * Parameters:
 * - n_dims, mode, freq_base: the fields of the same names. */
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

/* Returns the number of pairs of a head: n_dims/2, or n_dims with NRG_ROPE_VISION.
 *
 * Parameters:
 * - spec: only size, n_dims, mode and yarn are validated.
 *
 * Returns 0 on these errors of nrg_rope_forward:
 * - NRG_ERR_NULL: spec is NULL.
 * - NRG_ERR_STRUCT_SIZE: spec->size is wrong, or a field of a later version is not 0 (nrg/base.h).
 * - NRG_ERR_ENUM: mode has an unknown value, or yarn an unknown bit.
 * - NRG_ERR_DIM: n_dims is 0, odd or above 2^31. */
NRG_API size_t nrg_rope_pairs(const nrg_rope_spec *spec);

/* Computes the frequency of each pair, and the magnitude. The formulas and their sources are at nrg_rope_spec.
 *
 * Parameters:
 * - spec: the angles.
 * - frequencies: [2][pairs] output: the turns θ_p/2π of pair p from one position to the next. Each is the sum of two doubles,
 *   with 90 bits: all the higher parts come first, then all the lower parts. You may compute frequencies yourself, with lower
 *   parts of 0.
 * - magnitude: output for nrg_rope_table.
 *
 * Aliasing: frequencies, magnitude and freq_factors share no byte.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec, frequencies or magnitude is NULL.
 * - NRG_ERR_STRUCT_SIZE: spec->size is wrong, or a field of a later version is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: n_dims is 0, odd, above 2^31, or 2 with NRG_ROPE_SCALING_NTK. Or the mode has sections, and one is negative or
 *   all are 0.
 * - NRG_ERR_ENUM: mode or scaling has an unknown value, or yarn a bit that nrg_rope_yarn lacks.
 * - NRG_ERR_CONSTANT: a number of the spec or of freq_factors is NaN, infinite or out of its range:
 *   - Numbers above 0 must be between 2^-400 and 2^400.
 *   - n_ctx_orig must be above 0 with YaRN and with Llama 3.
 *   - freq_base must not be 1 with YaRN, and attn_factor must not be 0.
 *   - A pair must not turn more than 2^18 times from one position to the next.
 * - NRG_ERR_COMBINATION: an option is set that the others do not use:
 *   - A factor without its scaling: factor, low_freq_factor or high_freq_factor differs from its default.
 *   - yarn is not 0, and ext_factor is 0.
 *   - A section is not 0 in a mode without sections.
 * - NRG_ERR_ALIGNMENT: a pointer is no multiple of its element size.
 * - NRG_ERR_OVERLAP: frequencies, magnitude and freq_factors share bytes.
 * - NRG_ERR_OVERFLOW: an operand passes the end of memory. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_frequencies(const nrg_rope_spec *spec, double *frequencies, double *magnitude);

/* Returns the attention factor of LongRoPE, for attn_factor: √(1 + ln s/ln n_ctx_orig) with s = n_ctx/n_ctx_orig, or 1 if s ≤ 1.
 *
 * Parameters:
 * - n_ctx: context length of the run, above 1.
 * - n_ctx_orig: context length of the training, above 1.
 *
 * Returns 0 if an argument is not above 1. Source: arXiv:2402.13753. */
NRG_API double nrg_rope_longrope_attn_factor(int n_ctx, int n_ctx_orig);

/* Operands of nrg_rope_table. The table has one row of 2·pairs floats per token: magnitude·cos of all pairs, then magnitude·sin
 * of all pairs. Make one with nrg_rope_table_args_init, then change fields. */
typedef struct nrg_rope_table_args {
    size_t size;               /* sizeof(nrg_rope_table_args) */
    size_t tokens;             /* rows of the table; may be 0 */
    const double *frequencies; /* [2, pairs] input, as nrg_rope_frequencies computes it */
    double magnitude;          /* as nrg_rope_frequencies computes it; not 0 */
    const int32_t *positions;  /* [axes, tokens] input; NULL: token t has position first_position + t on all axes. Axes: 1, or
                                 the number of sections up to the last that is not 0, or 4 with NRG_ROPE_IMROPE */
    size_t positions_stride;   /* bytes from one axis to the next; 0 is 4 · tokens */
    int32_t first_position;    /* the position of token 0; 0 with positions */
    uint32_t reserved;         /* 0 */
    float *table;              /* [tokens, 2·pairs] output */
    size_t table_stride;       /* bytes from one row to the next; 0 is dense */
} nrg_rope_table_args;

/* Returns args for a dense table of the positions 0 to tokens - 1.
 *
 * Parameters:
 * - tokens, frequencies, magnitude, table: the fields of the same names. */
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

/* Computes the table: cos and sin of every pair and token, times the magnitude.
 *
 * Parameters:
 * - spec: the call reads only n_dims, mode, yarn and, in modes that have them, sections.
 * - args: operands, described at their fields. Unless tokens is 0, frequencies and table must not be NULL.
 * - ith, nth: the share, a range of rows.
 *
 * Aliasing: the table shares no byte with another operand.
 *
 * Returns the statuses of nrg_rope_frequencies. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: spec or args is NULL; or tokens is not 0, and frequencies or table is NULL.
 * - NRG_ERR_STRUCT_SIZE: also for args->size, or if reserved is not 0.
 * - NRG_ERR_CONSTANT: magnitude is 0, NaN or infinite.
 * - NRG_ERR_COMBINATION: positions are set, and first_position is not 0.
 * - NRG_ERR_POSITION: first_position + tokens is beyond the range of an int32_t.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_STRIDE: a stride is shorter than the data that it steps over.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERLAP: the table shares a byte with another operand.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_table(const nrg_rope_spec *spec, const nrg_rope_table_args *args, int ith, int nth);

/* Validates the arguments of nrg_rope_table. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_table_check(const nrg_rope_spec *spec, const nrg_rope_table_args *args);

/* Operands of a rotation. Make one with nrg_rope_args_init, then change fields.
 *
 * The tensors q, k, q_o and k_o are [batch, tokens, heads, dim]. The row of their strides is a token. Strides are in bytes; 0 is
 * dense:
 *
 *     head h of token t of batch b begins at  q + b · q_strides.batch + t · q_strides.row + h · q_strides.head
 *     its row of the table is                 table_ids[b · tokens + t], or with table_ids_batch_stride
 *                                             table_ids[t] with shared_table_ids, in every batch
 *                                             t without table_ids, in every batch
 *
 * So q and k may be parts of the rows of one q-k-v matrix. In a tensor [batch, heads, tokens, dim], the token stride is smaller
 * than the head stride. In ggml, these are ne and nb of dim, heads, tokens and batch. Results are bit-identical to a call per
 * batch.
 *
 * If q_o is NULL, the call rotates q in place and writes it; the same holds for k.
 *
 * Aliasing: q_o may be q, and k_o may be k, with the same strides:
 *
 *               q     k
 *       q_o     yes   no
 *       k_o     no    yes
 *
 * Otherwise no output shares a byte with another operand. The rows of two tensors may interleave if their strides are equal. If
 * all heads of all tokens of all batches are at equal distances, a row is a head. Otherwise a row is everything that the largest
 * stride steps over, from its first to its last byte. */
typedef struct nrg_rope_args {
    size_t size;              /* sizeof(nrg_rope_args) */
    size_t batch;             /* Default: 1. */
    size_t tokens;            /* tokens of a batch; may be 0 */
    size_t q_heads, k_heads;  /* 0: there is no such tensor, and its pointers are NULL */
    size_t dim;               /* elements of a head */
    size_t rotate_from;       /* the first rotated element of a head */
    nrg_dtype dtype;          /* of q, k and their outputs */
    uint32_t reserved;        /* 0 */
    const float *table;       /* [table_rows, 2·pairs] input, as nrg_rope_table computes it */
    size_t table_stride;      /* bytes from one row to the next; 0 is dense */
    size_t table_rows;        /* rows of table. Default: tokens. */
    const int32_t *table_ids; /* [batch, tokens] input: the table's row of each token; NULL: token t has row t, in every batch */
    size_t table_ids_batch_stride; /* bytes from one batch to the next; 0 is 4 · tokens */
    const void *q;                 /* [batch, tokens, q_heads, dim] input; output too if q_o is NULL */
    nrg_head_strides q_strides;
    const void *k; /* [batch, tokens, k_heads, dim] input; output too if k_o is NULL */
    nrg_head_strides k_strides;
    int shared_table_ids; /* not 0: table_ids is [tokens], the same for every batch */
    nrg_store store;      /* how outputs are stored; never changes a bit */
    void *q_o;            /* [batch, tokens, q_heads, dim] output; NULL is q, with its strides */
    nrg_head_strides q_o_strides;
    void *k_o; /* [batch, tokens, k_heads, dim] output; NULL is k, with its strides */
    nrg_head_strides k_o_strides;
} nrg_rope_args;

/* Returns args for one batch, with a dense table that has a row for each token. Set q_heads and q, or k_heads and k, or both.
 *
 * Parameters:
 * - dtype, tokens, dim, table: the fields of the same names. */
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
    args.reserved = 0;
    args.table = table;
    args.table_stride = 0;
    args.table_rows = tokens;
    args.table_ids = NULL;
    args.table_ids_batch_stride = 0;
    args.q = args.k = NULL;
    args.q_strides.row = args.q_strides.head = args.q_strides.batch = 0;
    args.k_strides = args.q_strides;
    args.shared_table_ids = 0;
    args.store = NRG_STORE_AUTO;
    args.q_o = args.k_o = NULL;
    args.q_o_strides = args.q_strides;
    args.k_o_strides = args.q_strides;
    return args;
}

/* Rotates all heads of q and k.
 *
 * Parameters:
 * - spec: the call reads only n_dims, mode and yarn.
 * - args: operands, described at their fields.
 * - ith, nth: the share, a range of heads: all heads of all tokens and batches of q, then of k.
 *
 * Aliasing: as the matrix at nrg_rope_args allows.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec or args is NULL; or there are tokens and heads, and table, q or k is NULL.
 * - NRG_ERR_STRUCT_SIZE: the size of a struct is wrong, or a reserved or unknown field is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: n_dims is 0, odd or above 2^31, or rotate_from + 2·pairs is above dim.
 * - NRG_ERR_ENUM: mode, dtype or store has an unknown value, or yarn a bit that nrg_rope_yarn lacks.
 * - NRG_ERR_COMBINATION: q or q_o is set, and q_heads is 0; or k or k_o is set, and k_heads is 0. Or shared_table_ids is set
 *   without table_ids.
 * - NRG_ERR_POSITION: an id of table_ids is negative, or not below table_rows. The call reads all ids before it writes.
 * - NRG_ERR_STRIDE: heads, tokens or batches of a tensor overlap.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERLAP: operands overlap in a way that the matrix at nrg_rope_args does not allow.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_forward(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth);

/* Validates the arguments of nrg_rope_forward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_forward_check(const nrg_rope_spec *spec, const nrg_rope_args *args);

/* Computes the gradients of q and k: rotates by -k·θ, the transposed rotation.
 *
 * Parameters:
 * - spec: as in nrg_rope_forward.
 * - args: as in nrg_rope_forward, with the gradients of its outputs in q and k. The call writes the gradients of its q and k to
 *   q_o and k_o.
 * - ith, nth: as in nrg_rope_forward.
 *
 * Aliasing: as in nrg_rope_forward.
 *
 * Returns the statuses of nrg_rope_forward. On error, writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_backward(const nrg_rope_spec *spec, const nrg_rope_args *args, int ith, int nth);

/* Validates the arguments of nrg_rope_backward. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_backward_check(const nrg_rope_spec *spec, const nrg_rope_args *args);

/* Operands of nrg_rope_positions_forward, which computes frequencies, table and rotation in one call. Results are bit-identical
 * to the three calls. Make one with a constructor below, then change fields.
 *
 * Tensors are as in nrg_rope_args. Positions are the same in every batch. For sequences with different positions, pass all their
 * tokens as one batch.
 *
 * Shares never wait for each other. Each share computes the frequencies and the table of its tokens, in its own part of the
 * workspace.
 *
 * With `keep`, a share computes again only what changed since the previous call:
 * - The frequencies, if the numbers of the spec or its freq_factors differ.
 * - The table, if the positions differ.
 * - Both, if nth differs.
 *
 * So the first layer of a graph computes the table for all layers. With `keep`, the workspace belongs to these calls:
 * - It is all zeros before the first call, and nothing else writes to it.
 * - Its address and size, n_dims and mode do not change.
 * - A model with two specs needs two workspaces.
 *
 * Without `keep`, the call does not read previous contents of the workspace. Two concurrent calls need two workspaces.
 *
 * Aliasing: as in nrg_rope_args. The workspace shares no byte with an operand.
 *
 *               q     k
 *       q_o     yes   no
 *       k_o     no    yes */
typedef struct nrg_rope_positions_args {
    size_t size;             /* sizeof(nrg_rope_positions_args) */
    size_t batch;            /* Default: 1. */
    size_t tokens;           /* tokens of a batch; may be 0 */
    size_t q_heads, k_heads; /* 0: there is no such tensor, and its pointers are NULL */
    size_t dim;              /* elements of a head */
    size_t rotate_from;      /* the first rotated element of a head */
    nrg_dtype dtype;         /* of q, k and their outputs */
    int32_t first_position;  /* the position of token 0; 0 with positions */
    /* [axes, tokens] input, as in nrg_rope_table_args; NULL: token t has first_position + t on all axes */
    const int32_t *positions;
    size_t positions_stride; /* bytes from one axis to the next; 0 is 4 · tokens */
    const void *q;           /* [batch, tokens, q_heads, dim] input; output too if q_o is NULL */
    nrg_head_strides q_strides;
    const void *k; /* [batch, tokens, k_heads, dim] input; output too if k_o is NULL */
    nrg_head_strides k_strides;
    nrg_store store; /* how outputs are stored; never changes a bit */
    int keep;        /* not 0: frequencies and table stay valid from call to call */
    void *q_o;       /* [batch, tokens, q_heads, dim] output; NULL is q, with its strides */
    nrg_head_strides q_o_strides;
    void *k_o; /* [batch, tokens, k_heads, dim] output; NULL is k, with its strides */
    nrg_head_strides k_o_strides;
    void *workspace;       /* aligned to 8 bytes */
    size_t workspace_size; /* bytes; nrg_rope_positions_workspace computes the minimum */
} nrg_rope_positions_args;

/* Returns args for one batch of tokens at these positions. Set q_heads and q, or k_heads and k, or both, and the workspace.
 *
 * Parameters:
 * - dtype, tokens, dim, positions: the fields of the same names. */
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
    args.first_position = 0;
    args.positions = positions;
    args.positions_stride = 0;
    args.q = args.k = NULL;
    args.q_strides.row = args.q_strides.head = args.q_strides.batch = 0;
    args.k_strides = args.q_strides;
    args.store = NRG_STORE_AUTO;
    args.keep = 0;
    args.q_o = args.k_o = NULL;
    args.q_o_strides = args.q_strides;
    args.k_o_strides = args.q_strides;
    args.workspace = NULL;
    args.workspace_size = 0;
    return args;
}

/* Returns args that rotate dense heads of q and k in place. Set the workspace.
 *
 * Parameters:
 * - dtype, tokens, q_heads, k_heads, dim, positions, q, k: the fields of the same names. */
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

/* Computes the bytes of the workspace for calls with nth shares and at most args->tokens tokens. Each share needs 20 bytes per
 * pair for the frequencies, and 8 bytes per pair and token of the share for the table.
 *
 * Parameters:
 * - spec: the angles.
 * - args: the call ignores the operands, the workspace and workspace_size.
 * - nth: the number of shares, at least 1.
 * - bytes: output.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec, args or bytes is NULL.
 * - NRG_ERR_THREAD: nth is below 1.
 * - NRG_ERR_STRUCT_SIZE, NRG_ERR_ENUM, NRG_ERR_DIM, NRG_ERR_CONSTANT, NRG_ERR_COMBINATION, NRG_ERR_POSITION, NRG_ERR_OVERFLOW:
 *   as in nrg_rope_positions_forward, for all fields except pointers to operands. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_positions_workspace(const nrg_rope_spec *spec, const nrg_rope_positions_args *args,
                                                              int nth, size_t *bytes);

/* Computes frequencies and table of the positions, and rotates q and k.
 *
 * Parameters:
 * - spec: the angles.
 * - args: operands, described at their fields. The workspace has at least nrg_rope_positions_workspace bytes.
 * - ith, nth: the share, a range of heads of all tokens. The heads of q and k of a token, in all batches, are adjacent in this
 *   order.
 *
 * Aliasing: as the matrix at nrg_rope_positions_args allows.
 *
 * Returns NRG_OK. On error, returns one of these and writes nothing:
 * - NRG_ERR_NULL: spec or args is NULL; or there are tokens and heads, and q, k or workspace is NULL.
 * - NRG_ERR_STRUCT_SIZE: the size of a struct is wrong, or a reserved or unknown field is not 0 (nrg/base.h).
 * - NRG_ERR_DIM: n_dims is 0, odd, above 2^31, or 2 with NRG_ROPE_SCALING_NTK. Or rotate_from + 2·pairs is above dim. Or the mode
 *   has sections, and one is negative or all are 0.
 * - NRG_ERR_ENUM: mode, scaling, dtype or store has an unknown value, or yarn a bit that nrg_rope_yarn lacks.
 * - NRG_ERR_CONSTANT: as in nrg_rope_frequencies.
 * - NRG_ERR_COMBINATION: one of these:
 *   - An option of spec is set that the others do not use, as in nrg_rope_frequencies.
 *   - positions are set, and first_position is not 0.
 *   - q or q_o is set, and q_heads is 0; or k or k_o is set, and k_heads is 0.
 * - NRG_ERR_POSITION: first_position + tokens is beyond the range of an int32_t.
 * - NRG_ERR_WORKSPACE: workspace_size is less than nrg_rope_positions_workspace returns for nth.
 * - NRG_ERR_STRIDE: heads, tokens or batches of a tensor overlap.
 * - NRG_ERR_OVERFLOW: an operand has more bytes than a size_t can count, or passes the end of memory.
 * - NRG_ERR_ALIGNMENT: a pointer or a stride is no multiple of the element size.
 * - NRG_ERR_OVERLAP: operands overlap in a way that the matrix at nrg_rope_positions_args does not allow.
 * - NRG_ERR_THREAD: not 0 <= ith < nth. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_positions_forward(const nrg_rope_spec *spec, const nrg_rope_positions_args *args,
                                                            int ith, int nth);

/* Validates the arguments of nrg_rope_positions_forward. Computes and writes nothing.
 *
 * Parameters:
 * - nth: the number of shares, which the size of the workspace depends on. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_positions_forward_check(const nrg_rope_spec *spec, const nrg_rope_positions_args *args,
                                                                  int nth);

/* Computes the gradients of q and k in one call: rotates by -k·θ, as nrg_rope_backward does.
 *
 * Parameters:
 * - spec: the angles.
 * - args: as in nrg_rope_positions_forward, with the gradients of its outputs in q and k. The call writes the gradients of its q
 *   and k to q_o and k_o.
 * - ith, nth: as in nrg_rope_positions_forward.
 *
 * Aliasing: as the matrix at nrg_rope_positions_args allows.
 *
 * Returns the statuses of nrg_rope_positions_forward. On error, writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_positions_backward(const nrg_rope_spec *spec, const nrg_rope_positions_args *args,
                                                             int ith, int nth);

/* Validates the arguments of nrg_rope_positions_backward. Computes and writes nothing.
 *
 * Parameters:
 * - nth: the number of shares, which the size of the workspace depends on. */
NRG_NODISCARD NRG_API nrg_status nrg_rope_positions_backward_check(const nrg_rope_spec *spec, const nrg_rope_positions_args *args,
                                                                   int nth);

#ifdef __cplusplus
}
#endif
#endif
