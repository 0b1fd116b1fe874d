/* Prints a hash of the library's results on every path of this machine: for embed-check.sh, which compares two builds.
 *
 * Everything that flags may change is in it: norms of all kinds, forward and backward, with gates, groups and every activation,
 * in all dtypes; channel norms over batches and groups, with statistics from every source; the activations alone; and positional
 * encodings of every kind.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include <stdio.h>
#include <string.h>

enum { ROWS = 9, DIM_MAX = 300, SIZE = ROWS * DIM_MAX, ACTIVATIONS = NRG_ACT_SOFTPLUS + 1 };
enum { X, Y, Z, D_O, DR_IN, W, B, INPUTS };
enum { O, R, DX, DY, DZ, DW, DB, OUTPUTS };

/* Room for f32; tensors of 16 bits use half of it. */
static uint32_t in[INPUTS][SIZE], out[OUTPUTS][SIZE];
static double workspace[2 * DIM_MAX]; /* one block of rows, of dw and of db; or ROWS blocks of a few channels */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

static uint32_t random_state;

/* f32: multiples of 2^-12 between -8 and 8, exact in every build. 16 bits: elements of magnitude below 2. No infinity and no NaN
 * in any dtype. */
static void fill(void *values, nrg_dtype dtype, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        random_state = random_state * 1664525u + 1013904223u;
        float value = (float)((int)(random_state >> 16) - 32768) / 4096.0f;
        uint16_t half = (uint16_t)(random_state >> 16 & 0xbfff);
        if (dtype == NRG_F32)
            memcpy((char *)values + i * sizeof value, &value, sizeof value);
        else
            memcpy((char *)values + i * sizeof half, &half, sizeof half);
    }
}

static void fill_all(nrg_dtype dtype, size_t dim)
{
    for (int i = 0; i < INPUTS; i++)
        fill(in[i], dtype, i < W ? ROWS * dim : dim);
    memset(out, 0, sizeof out);
}

/* What case n of a length computes: all gates, activations and eps modes, with and without groups and mean, in turn. */
static nrg_norm_spec make_spec(nrg_dtype dtype, size_t dim, size_t n)
{
    nrg_norm_spec spec = n % 2 ? nrg_layer_norm_spec(dim, 1e-5) : nrg_rms_norm_spec(dim, 1e-6);
    spec.dtype = dtype;
    spec.gate = (nrg_gate)(n % 3);
    spec.activation = (nrg_activation)(n / 3 % ACTIVATIONS);
    spec.eps_mode = (nrg_eps_mode)(n % 5);
    spec.groups = dim % 4 == 0 && n % 7 < 3 ? 4 : 1;
    spec.c = n % 11 ? 0 : 1;
    return spec;
}

static nrg_status forward(const nrg_norm_spec *spec)
{
    nrg_norm_args args = nrg_norm_args_init(ROWS, in[X], out[O]);
    args.y = in[Y];
    args.z = spec->gate ? in[Z] : NULL;
    args.w = in[W];
    args.b = in[B];
    args.r = out[R];
    return nrg_norm_forward(spec, &args, 0, 1);
}

static nrg_status backward(const nrg_norm_spec *spec)
{
    nrg_norm_backward_args args = nrg_norm_backward_args_init(ROWS, in[X], in[D_O], out[DX]);
    args.y = in[Y];
    args.z = spec->gate ? in[Z] : NULL;
    args.w = in[W];
    args.b = in[B];
    args.dr_in = in[DR_IN];
    args.dy = out[DY];
    args.dz = spec->gate ? out[DZ] : NULL;
    args.dw = (float *)out[DW];
    args.db = (float *)out[DB];
    args.workspace = workspace;
    args.workspace_size = sizeof workspace;
    nrg_status status = nrg_norm_backward(spec, &args, 0, 1);
    return status == NRG_OK ? nrg_norm_backward_reduce(spec, &args, 0, 1) : status;
}

static nrg_status activate(nrg_dtype dtype, size_t n)
{
    nrg_activation g = (nrg_activation)(n % ACTIVATIONS);
    nrg_status status = nrg_activation_forward(g, dtype, n, in[X], out[O], 0, 1);
    return status == NRG_OK ? nrg_activation_backward(g, dtype, n, in[X], in[D_O], out[DX], 0, 1) : status;
}

/* --- channel norms --- */

enum { CHANNELS_MAX = 9, SETS_MAX = ROWS * CHANNELS_MAX };

/* What belongs to sets and channels, beside the tensors. */
static struct {
    nrg_channel_statistics statistics[SETS_MAX];
    float mean[SETS_MAX], rstd[SETS_MAX];
    float running_mean[CHANNELS_MAX], running_var[CHANNELS_MAX], scale[CHANNELS_MAX], shift[CHANNELS_MAX];
} sets;

/* Not hashed: what is made of them is. */
static int64_t sums[SETS_MAX * NRG_SUMS_WORDS];

/* What case i of a shape computes: all sets, layouts and activations, with and without mean, whole and in short segments, in
 * turn. */
static nrg_channel_norm_spec make_channel_spec(nrg_dtype dtype, size_t c, size_t i)
{
    const size_t groups = i % 3 == 0 ? c : i % 3 == 1 && c % 2 == 0 ? 2 : 1;
    nrg_channel_norm_spec spec = i % 2 ? nrg_batch_norm_spec(c, 1e-5) : nrg_group_norm_spec(c, groups, 1e-5);
    spec.dtype = dtype;
    spec.layout = i / 2 % 2 ? NRG_NHWC : NRG_NCHW;
    spec.activation = (nrg_activation)(i / 3 % ACTIVATIONS);
    spec.centred = i % 5 != 0;
    spec.segment = i % 7 < 3 ? 1 + i % 100 : 0;
    return spec;
}

static nrg_channel_norm_args make_channel_args(size_t n, size_t s)
{
    nrg_channel_norm_args args = nrg_channel_norm_args_init(n, s, in[X], out[O]);
    args.y = in[Y];
    args.w = in[W];
    args.b = in[B];
    return args;
}

/* Statistics from x, in one call and by way of the sums. */
static nrg_status channel_computed(const nrg_channel_norm_spec *spec, size_t n, size_t s)
{
    const int channels = spec->over == NRG_OVER_BATCH || spec->groups == spec->channels;
    const size_t count = spec->over == NRG_OVER_BATCH ? n * s : s;
    nrg_channel_norm_spec given = *spec;
    nrg_channel_norm_args args = make_channel_args(n, s);
    args.statistics = sets.statistics;
    args.mean = sets.mean;
    args.rstd = sets.rstd;
    if (channels && spec->centred && count > 1) {
        args.running_mean = sets.running_mean;
        args.running_var = sets.running_var;
    }
    nrg_status status = nrg_channel_norm_forward(spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_channel_norm_sums(spec, &args, sums, 0, 1);
    if (status == NRG_OK)
        status = nrg_channel_norm_statistics(spec, &args, sums, 0, 1);
    given.statistics = NRG_STATISTICS_GIVEN;
    args.running_mean = args.running_var = NULL;
    args.o = out[R];
    return status == NRG_OK ? nrg_channel_norm_forward(&given, &args, 0, 1) : status;
}

/* The inference of batch norm, with running statistics as they are and folded. */
static nrg_status channel_running(nrg_channel_norm_spec spec, size_t n, size_t s)
{
    nrg_channel_norm_args args = make_channel_args(n, s);
    args.running_mean = sets.running_mean;
    args.running_var = sets.running_var;
    spec.statistics = NRG_STATISTICS_RUNNING;
    nrg_status status = nrg_channel_norm_forward(&spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_channel_norm_fold(&spec, &args, sets.scale, sets.shift);
    spec.statistics = NRG_STATISTICS_FOLDED;
    spec.w_dtype = NRG_F32;
    args = make_channel_args(n, s);
    args.w = sets.scale;
    args.b = sets.shift;
    args.o = out[R];
    return status == NRG_OK ? nrg_channel_norm_forward(&spec, &args, 0, 1) : status;
}

/* All gradients; and those of batch norm by way of the sums. */
static nrg_status channel_backward(const nrg_channel_norm_spec *spec, size_t n, size_t s)
{
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(n, s, in[X], in[D_O], out[DX]);
    args.y = in[Y];
    args.w = in[W];
    args.b = in[B];
    args.statistics = sets.statistics;
    args.dy = out[DY];
    args.dw = (float *)out[DW];
    args.db = (float *)out[DB];
    args.workspace = workspace;
    args.workspace_size = sizeof workspace;
    nrg_status status = nrg_channel_norm_backward(spec, &args, 0, 1);
    if (status == NRG_OK)
        status = nrg_channel_norm_backward_reduce(spec, &args, 0, 1);
    if (status != NRG_OK || spec->over != NRG_OVER_BATCH)
        return status;
    status = nrg_channel_norm_backward_sums(spec, &args, sums, 0, 1);
    args.sums = sums;
    args.dw = args.db = NULL;
    args.dx = out[DZ];
    return status == NRG_OK ? nrg_channel_norm_backward(spec, &args, 0, 1) : status;
}

static uint64_t hash_sets(uint64_t hash)
{
    hash = hash_bytes(hash, out, sizeof out);
    return hash_bytes(hash, &sets, sizeof sets);
}

/* All shapes of channel norms; 0 where a call is refused. */
static uint64_t hash_channel_norms(uint64_t hash)
{
    static const size_t positions[] = {1, 5, 49, 290}; /* the last in lanes for batch norm, too */
    size_t i = 0;
    for (size_t c = 1; c <= CHANNELS_MAX; c++)
        for (size_t k = 0; k < 8 * sizeof positions / sizeof positions[0]; k++)
            for (int dtype = NRG_F32; dtype <= NRG_BF16; dtype++, i++) {
                const size_t s = positions[k / 8], most = SIZE / (c * s), n = most < ROWS ? most : ROWS;
                const nrg_channel_norm_spec spec = make_channel_spec((nrg_dtype)dtype, c, i);
                memset(out, 0, sizeof out);
                memset(&sets, 0, sizeof sets);
                for (int input = 0; input < INPUTS; input++)
                    fill(in[input], spec.dtype, input < W ? n * c * s : c);
                fill(sets.running_mean, NRG_F32, c);
                fill(sets.running_var, NRG_F32, c);
                for (size_t j = 0; j < c; j++)
                    sets.running_var[j] *= sets.running_var[j];
                if (channel_computed(&spec, n, s) != NRG_OK || channel_backward(&spec, n, s) != NRG_OK)
                    return 0;
                hash = hash_sets(hash);
                if (spec.over == NRG_OVER_BATCH && spec.centred) {
                    if (channel_running(spec, n, s) != NRG_OK)
                        return 0;
                    hash = hash_sets(hash);
                }
            }
    return hash;
}

/* --- positional encodings --- */

enum { HEADS = 3, TOKENS = 4, HEAD_MOST = 96, CLASSES = 9 };

static int32_t ids[TOKENS] = {2, 0, 2, 1};
static double frequencies[2 * HEAD_MOST];
static float table[TOKENS * 2 * HEAD_MOST], slots[2][HEADS * HEAD_MOST]; /* the latter: du and dv */

/* Rotations of heads of dim elements, alone and after a norm, and back. */
static nrg_status rotate(nrg_dtype dtype, size_t dim, nrg_rope_mode mode)
{
    nrg_rope_spec rope = nrg_rope_spec_init(dim / 2 * 2, mode, 10000);
    nrg_norm_spec norm = nrg_rms_norm_spec(dim, 1e-6);
    double magnitude;
    if (mode == NRG_ROPE_VISION)
        rope.n_dims = dim / 4 * 2;
    rope.sections[0] = rope.sections[1] = rope.sections[2] = 2;
    rope.n_ctx_orig = 4096;
    rope.ext_factor = dim % 3 == 0;
    rope.freq_scale = dim % 3 == 0 ? 0.25 : 1;
    rope.scaling = dim % 5 == 0 ? NRG_ROPE_SCALING_LLAMA3 : NRG_ROPE_SCALING_NONE;
    rope.factor = 8;
    norm.dtype = dtype;
    nrg_status status = nrg_rope_frequencies(&rope, frequencies, &magnitude);
    nrg_rope_table_args rows = nrg_rope_table_args_init(TOKENS, frequencies, magnitude, table);
    rows.first = 100000;
    if (status == NRG_OK)
        status = nrg_rope_table(&rope, &rows, 0, 1);
    nrg_rope_args args = nrg_rope_args_init(TOKENS, dim, table);
    args.dtype = dtype;
    args.positions = ids;
    args.q_heads = HEADS;
    args.k_heads = 1;
    args.q = in[X];
    args.k = in[Y];
    args.q_o = out[O];
    args.k_o = out[R];
    if (status == NRG_OK)
        status = nrg_rope(&rope, &args, 0, 1);
    args.q_o = out[DX];
    args.k_heads = 0;
    nrg_norm_args weights = nrg_norm_args_init(0, NULL, NULL);
    weights.w = in[W];
    if (status == NRG_OK)
        status = nrg_norm_rope_forward(&norm, &rope, &args, &weights, NULL, 0, 1);
    nrg_norm_backward_args gradients = nrg_norm_backward_args_init(TOKENS * HEADS, in[X], NULL, NULL);
    gradients.w = in[W];
    gradients.dw = (float *)out[DW];
    gradients.workspace = workspace;
    gradients.workspace_size = sizeof workspace;
    args.q = in[D_O];
    args.q_o = out[DY];
    if (status == NRG_OK)
        status = nrg_norm_rope_backward(&norm, &rope, &args, &gradients, NULL, 0, 1);
    return status == NRG_OK ? nrg_norm_rope_backward_reduce(&norm, &rope, &args, &gradients, NULL, 0, 1) : status;
}

static nrg_status embed(nrg_dtype dtype, size_t dim)
{
    const nrg_norm_spec norm = nrg_layer_norm_spec(dim, 1e-5);
    nrg_sinusoidal_args rows = nrg_sinusoidal_args_init(TOKENS, dim, frequencies, out[DZ]);
    rows.dtype = dtype;
    nrg_status status = nrg_sinusoidal_frequencies(dim, 10000, frequencies);
    if (status == NRG_OK)
        status = nrg_sinusoidal_table(&rows, 0, 1);
    nrg_embed_args args = nrg_embed_args_init(TOKENS, dim, NULL);
    args.dtype = dtype;
    args.tables[0] = nrg_embed_by_ids(in[Y], TOKENS, ids);
    args.tables[1] = nrg_embed_counted(out[DZ], TOKENS, 0);
    nrg_norm_args to = nrg_norm_args_init(TOKENS, NULL, out[O]);
    nrg_norm_spec of = norm;
    of.dtype = dtype;
    if (status == NRG_OK)
        status = nrg_embed_norm_forward(&args, &of, &to, 0, 1);
    static double order[64];
    nrg_embed_backward_args back = nrg_embed_backward_args_init(TOKENS, dim, in[D_O], TOKENS, out[DX]);
    back.dtype = dtype;
    back.ids = ids;
    back.workspace = order;
    back.workspace_size = sizeof order;
    if (status == NRG_OK)
        status = nrg_embed_backward_order(&back);
    return status == NRG_OK ? nrg_embed_backward(&back, 0, 1) : status;
}

/* Scores of HEADS heads, TOKENS queries and `keys` keys. */
static nrg_status bias(nrg_dtype dtype, size_t keys)
{
    static float slopes[HEADS], diagonals[HEADS * (TOKENS + HEAD_MOST)];
    static double gradients[HEADS * (TOKENS + HEAD_MOST)];
    nrg_bias_spec spec = nrg_bias_spec_init(HEADS, TOKENS, keys);
    spec.query_offset = (int64_t)keys / 2;
    nrg_score_bias_args args = nrg_score_bias_args_init(dtype, 1, HEADS, TOKENS, keys, in[X], diagonals, out[O]);
    nrg_status status = nrg_t5_diagonals(&spec, dtype, in[Y], 0, diagonals, 0, 0, 1);
    if (status == NRG_OK)
        status = nrg_score_bias_forward(&args, 0, 1);
    if (status == NRG_OK)
        status = nrg_alibi_slopes(HEADS, 8, slopes);
    if (status == NRG_OK)
        status = nrg_alibi_diagonals(&spec, slopes, diagonals, 0, 0, 1);
    args.o = out[R];
    if (status == NRG_OK)
        status = nrg_score_bias_forward(&args, 0, 1);
    const nrg_score_bias_backward_args back =
        nrg_score_bias_backward_args_init(dtype, 1, HEADS, TOKENS, keys, in[D_O], gradients);
    if (status == NRG_OK)
        status = nrg_score_bias_backward(&back, 0, 1);
    return status == NRG_OK ? nrg_t5_backward(&spec, gradients, 0, (float *)out[DW], 0, 0, 0, 1) : status;
}

static nrg_status relative(nrg_dtype dtype, size_t dim)
{
    nrg_relative_args args = nrg_relative_args_init(1, HEADS, TOKENS, 2 * TOKENS, dim, 1 - CLASSES / 2, CLASSES / 2);
    args.dtype = dtype;
    args.accumulate = 0;
    args.q = in[X];
    args.a = in[Y];
    args.table = in[Z];
    args.scores = out[O];
    args.o = out[R];
    args.d_table = (float *)out[DX];
    nrg_status status = nrg_relative_scores(&args, 0, 1);
    if (status == NRG_OK)
        status = nrg_relative_values(&args, 0, 1);
    if (status == NRG_OK)
        status = nrg_relative_backward(&args, 0, 1);
    nrg_relative_shift_args shift = nrg_xlnet_shift_args(1, HEADS, TOKENS, TOKENS);
    shift.dtype = dtype;
    shift.x = in[X];
    shift.scores = out[DY];
    if (status == NRG_OK)
        status = nrg_relative_shift(&shift, 0, 1);
    nrg_head_bias_args pair = nrg_head_bias_args_init(1, HEADS, TOKENS, dim);
    pair.dtype = dtype;
    pair.q = pair.d_o_u = in[X];
    pair.d_o_v = in[Y];
    pair.u = in[W];
    pair.v = in[B];
    pair.o_u = out[DZ];
    pair.o_v = out[DB];
    if (status == NRG_OK)
        status = nrg_head_bias_pair(&pair, 0, 1);
    pair.dq = out[DW];
    pair.du = slots[0];
    pair.dv = slots[1];
    return status == NRG_OK ? nrg_head_bias_pair_backward(&pair, 0, 1) : status;
}

static nrg_status recur(nrg_dtype dtype, size_t dim)
{
    nrg_recurrent_args args = nrg_recurrent_args_init(dim, TOKENS, in[X], in[Y], out[O]);
    args.dtype = dtype;
    nrg_status status = nrg_recurrent_forward(&args, 0, 1);
    nrg_recurrent_backward_args back = nrg_recurrent_backward_args_init(dim, TOKENS, in[X], in[Y], out[O], in[D_O]);
    static double g[TOKENS * HEAD_MOST];
    back.dtype = dtype;
    back.dw = (float *)out[DX];
    back.dp0 = (float *)out[DB];
    back.workspace = g;
    back.workspace_size = sizeof g;
    if (status == NRG_OK)
        status = nrg_recurrent_backward(&back, 0, 1);
    return status == NRG_OK ? nrg_recurrent_backward_reduce(&back, 0, 1) : status;
}

static uint64_t hash_positions(uint64_t hash)
{
    static const nrg_rope_mode modes[] = {NRG_ROPE_NORMAL, NRG_ROPE_NEOX, NRG_ROPE_MROPE, NRG_ROPE_VISION, NRG_ROPE_IMROPE};
    size_t n = 0;
    for (size_t dim = 4; dim <= HEAD_MOST; dim += dim < 24 ? 1 : 8)
        for (int dtype = NRG_F32; dtype <= NRG_BF16; dtype++, n++) {
            nrg_status (*const calls[])(nrg_dtype, size_t) = {embed, bias, relative};
            const nrg_rope_mode mode = modes[n % 5];
            fill_all((nrg_dtype)dtype, DIM_MAX);
            if (rotate((nrg_dtype)dtype, dim, mode) != NRG_OK)
                return 0;
            hash = hash_bytes(hash, out, sizeof out);
            for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
                memset(out, 0, sizeof out);
                memset(slots, 0, sizeof slots);
                if (calls[i]((nrg_dtype)dtype, dim) != NRG_OK)
                    return 0;
                hash = hash_bytes(hash, out, sizeof out);
                hash = hash_bytes(hash, slots, sizeof slots);
            }
            memset(out, 0, sizeof out);
            if (dim <= 48 && recur((nrg_dtype)dtype, dim) != NRG_OK) /* W is a square */
                return 0;
            hash = hash_bytes(hash, out, sizeof out);
        }
    return hash;
}

/* 0 where a call is refused. */
static uint64_t hash_path(void)
{
    uint64_t hash = 0xcbf29ce484222325u;
    random_state = 1;
    for (size_t n = 0, dim = 1; dim <= DIM_MAX; dim++)
        for (int dtype = NRG_F32; dtype <= NRG_BF16; dtype++, n++) {
            nrg_norm_spec spec = make_spec((nrg_dtype)dtype, dim, n);
            fill_all(spec.dtype, dim);
            if (forward(&spec) != NRG_OK || backward(&spec) != NRG_OK)
                return 0;
            hash = hash_bytes(hash, out, sizeof out);
            if (activate(spec.dtype, dim) != NRG_OK)
                return 0;
            hash = hash_bytes(hash, out, sizeof out);
            if (dtype == NRG_F32) { /* and plainly: x and w alone */
                if (nrg_rms_norm_f32(ROWS, dim, (float *)in[X], (float *)in[W], (float *)out[O], 1e-6) != NRG_OK)
                    return 0;
                hash = hash_bytes(hash, out[O], sizeof out[O]);
            }
        }
    return hash_positions(hash_channel_norms(hash));
}

int main(void)
{
    uint64_t first = 0;
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++) {
        if (nrg_isa_set((nrg_isa)isa) != NRG_OK)
            continue;
        uint64_t hash = hash_path();
        printf("%-8s %016llx\n", nrg_isa_name((nrg_isa)isa), (unsigned long long)hash);
        if (isa == NRG_ISA_SCALAR)
            first = hash;
        if (hash != first || hash == 0)
            return 1;
    }
    return 0;
}
