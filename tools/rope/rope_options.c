/* The options of nrg rope.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "../commands.h"
#include "../library.h"
#include "rope.h"

static const char rope_help[] =
    "usage: nrg rope [OPTION]... X.npy --o O.npy\n"
    "       nrg rope --backward [OPTION]... DO.npy --o DX.npy\n"
    "       nrg rope --norm rms [OPTION]... X.npy --o O.npy\n"
    "       nrg rope --table --n-dims N [--tokens T] [OPTION]... --o TABLE.npy\n"
    "\n"
    "Rotary position embedding: rotates pairs of elements in each head. At position k, pair p is rotated by\n"
    "the angle k * theta_p, where theta_p = freq_base^(-2p/n_dims), scaled as below. Names are those of ggml.\n"
    "\n"
    "example: rotate the heads of tokens 0, 1, 2, ..., in pairs (p, p + n_dims/2)\n"
    "  nrg rope --mode neox --freq-base 500000 q.npy --o q_rotated.npy\n"
    "\n"
    "files\n"
    "  X.npy, -x, --x FILE    '<f4' or '<f2', in C order, of shape (tokens, heads, dim) or (tokens, dim)\n"
    "  -o, --o FILE           the result, with the shape and dtype of x (required); with --table '<f4', of\n"
    "                         shape (tokens, 2 * pairs): all cosines, then all sines, times the magnitude\n"
    "  --positions FILE       '<i4' or '<i8', of shape (tokens,) for all axes, or (axes, tokens)\n"
    "  --freq-factors FILE    '<f4', of shape (pairs,): divides theta_p\n"
    "what to compute\n"
    "  --backward             rotate back: from the gradient of the result to the gradient of x\n"
    "  --norm KIND            rms, layer or l2: normalize each head first (QK-norm)\n"
    "  --w, --b FILE          weight and bias of the norm, of shape (dim,), '<f4' or the dtype of x\n"
    "  --eps E                eps of the norm; default 1e-6, 1e-5 for layer, 1e-12 for l2\n"
    "  --weight-offset W      added to every w; default 0\n"
    "  --table                write the table of cosines and sines; without x\n"
    "  --tokens T             rows of the table, without --positions\n"
    "which elements\n"
    "  --n-dims N             elements to rotate, even (vision: half of them); default: all that remain\n"
    "  --rotate-from N        the first element to rotate in a head; default 0\n"
    "  --mode MODE            normal: pairs (2p, 2p + 1) (default); neox: pairs (p, p + n_dims/2);\n"
    "                         mrope, vision, imrope, imrope-time: as neox, with sections of pairs that\n"
    "                         have separate positions; imrope is ggml's, imrope-time transformers'\n"
    "  --sections A,B,C,D     pairs of each section; required by these four modes\n"
    "  --first-position K     position of the first token, without --positions; default 0\n"
    "  --heads-first          x has shape (heads, tokens, dim)\n"
    "angles\n"
    "  --freq-base B          default 10000\n"
    "  --freq-scale S         multiplies theta; default 1\n"
    "  --ext-factor E         1 selects YaRN; default 0\n"
    "  --attn-factor A        magnitude; default 1\n"
    "  --beta-fast, --beta-slow B  of YaRN; default 32 and 1\n"
    "  --no-truncate          YaRN: do not round the ends of the ramp (gpt-oss)\n"
    "  --no-mscale            YaRN: use --attn-factor as the magnitude, without the factor 1 - 0.1 ln S\n"
    "  --n-ctx-orig N         context length of the training, for YaRN and llama3\n"
    "  --scaling KIND         none (default), ntk (scales freq_base), llama3 (scales slow pairs)\n"
    "  --factor F             factor of --scaling; default 1\n"
    "  --low-freq-factor, --high-freq-factor F  of llama3; default 1 and 4\n"
    "  --store KIND           auto (default), keep or stream: how the kernel stores; changes no bit\n"
    "  --isa NAME             scalar, avx2, avx512, neon or generic; default: see nrg info\n"
    "\n"
    "For the gradient through --norm, run nrg rope --backward, then nrg norm --backward.\n";

enum {
    OPT_BACKWARD = ROPE_INPUTS + ROPE_OUTPUTS,
    OPT_NORM,
    OPT_EPS,
    OPT_WEIGHT_OFFSET,
    OPT_TABLE,
    OPT_TOKENS,
    OPT_N_DIMS,
    OPT_ROTATE_FROM,
    OPT_MODE,
    OPT_SECTIONS,
    OPT_FIRST,
    OPT_HEADS_FIRST,
    OPT_FREQ_BASE,
    OPT_FREQ_SCALE,
    OPT_EXT_FACTOR,
    OPT_ATTN_FACTOR,
    OPT_BETA_FAST,
    OPT_BETA_SLOW,
    OPT_NO_TRUNCATE,
    OPT_NO_MSCALE,
    OPT_N_CTX_ORIG,
    OPT_SCALING,
    OPT_FACTOR,
    OPT_LOW_FREQ_FACTOR,
    OPT_HIGH_FREQ_FACTOR,
    OPT_STORE,
    OPT_ISA,
    OPT_HELP,
    OPTIONS
};

static const cli_option options[OPTIONS + 1] = {
    [ROPE_X] = {"x", 'x', 1},
    [ROPE_POSITIONS] = {"positions", 0, 1},
    [ROPE_FREQ_FACTORS] = {"freq-factors", 0, 1},
    [ROPE_W] = {"w", 0, 1},
    [ROPE_B] = {"b", 0, 1},
    [ROPE_INPUTS + ROPE_O] = {"o", 'o', 1},
    [OPT_BACKWARD] = {"backward", 0, 0},
    [OPT_NORM] = {"norm", 0, 1},
    [OPT_EPS] = {"eps", 0, 1},
    [OPT_WEIGHT_OFFSET] = {"weight-offset", 0, 1},
    [OPT_TABLE] = {"table", 0, 0},
    [OPT_TOKENS] = {"tokens", 0, 1},
    [OPT_N_DIMS] = {"n-dims", 0, 1},
    [OPT_ROTATE_FROM] = {"rotate-from", 0, 1},
    [OPT_MODE] = {"mode", 0, 1},
    [OPT_SECTIONS] = {"sections", 0, 1},
    [OPT_FIRST] = {"first-position", 0, 1},
    [OPT_HEADS_FIRST] = {"heads-first", 0, 0},
    [OPT_FREQ_BASE] = {"freq-base", 0, 1},
    [OPT_FREQ_SCALE] = {"freq-scale", 0, 1},
    [OPT_EXT_FACTOR] = {"ext-factor", 0, 1},
    [OPT_ATTN_FACTOR] = {"attn-factor", 0, 1},
    [OPT_BETA_FAST] = {"beta-fast", 0, 1},
    [OPT_BETA_SLOW] = {"beta-slow", 0, 1},
    [OPT_NO_TRUNCATE] = {"no-truncate", 0, 0},
    [OPT_NO_MSCALE] = {"no-mscale", 0, 0},
    [OPT_N_CTX_ORIG] = {"n-ctx-orig", 0, 1},
    [OPT_SCALING] = {"scaling", 0, 1},
    [OPT_FACTOR] = {"factor", 0, 1},
    [OPT_LOW_FREQ_FACTOR] = {"low-freq-factor", 0, 1},
    [OPT_HIGH_FREQ_FACTOR] = {"high-freq-factor", 0, 1},
    [OPT_STORE] = {"store", 0, 1},
    [OPT_ISA] = {"isa", 0, 1},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

static const char *const mode_names[] = {"normal", "neox", "mrope", "vision", "imrope", "imrope-time", NULL};
static const nrg_rope_mode modes[] = {NRG_ROPE_NORMAL, NRG_ROPE_NEOX,   NRG_ROPE_MROPE,
                                      NRG_ROPE_VISION, NRG_ROPE_IMROPE, NRG_ROPE_IMROPE_TIME};
static const char *const scalings[] = {"none", "ntk", "llama3", NULL};

/* Checks which options need or exclude each other. */
static int check_combination(const file_call *call)
{
    static const struct {
        int option, other;
    } needs[] = {{ROPE_W, OPT_NORM},
                 {ROPE_B, OPT_NORM},
                 {OPT_EPS, OPT_NORM},
                 {OPT_WEIGHT_OFFSET, ROPE_W},
                 {OPT_TOKENS, OPT_TABLE},
                 {OPT_TABLE, OPT_N_DIMS},
                 {OPT_FACTOR, OPT_SCALING},
                 {OPT_NO_TRUNCATE, OPT_EXT_FACTOR},
                 {OPT_NO_MSCALE, OPT_EXT_FACTOR}},
      excludes[] = {{ROPE_POSITIONS, OPT_FIRST}, {ROPE_POSITIONS, OPT_TOKENS}, {OPT_TABLE, OPT_BACKWARD},
                    {OPT_TABLE, OPT_NORM},       {OPT_TABLE, OPT_ROTATE_FROM}, {OPT_TABLE, OPT_HEADS_FIRST},
                    {OPT_TABLE, ROPE_X},         {OPT_TABLE, OPT_STORE}};
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (file_needs(call, needs[i].option, needs[i].other) != CLI_DONE)
            return 0;
    for (size_t i = 0; i < sizeof excludes / sizeof excludes[0]; i++)
        if (file_excludes(call, excludes[i].option, excludes[i].other) != CLI_DONE)
            return 0;
    if (!call->value[OPT_TABLE] && !call->value[ROPE_X])
        file_missing(call, ROPE_X, "");
    else if (call->value[OPT_TABLE] && !call->value[OPT_TOKENS] && !call->value[ROPE_POSITIONS])
        complain("--table needs --tokens or --positions");
    else if (!call->value[ROPE_INPUTS + ROPE_O])
        file_missing(call, ROPE_INPUTS + ROPE_O, "");
    else if (call->value[OPT_BACKWARD] && call->value[OPT_NORM])
        complain("--backward and --norm cannot be combined; run nrg rope --backward, then nrg norm --backward");
    else
        return !call->value[OPT_BACKWARD] || library_holds("--backward", "backward");
    return 0;
}

static int read_sections(const file_call *call, nrg_rope_spec *s)
{
    long long sections[4] = {0, 0, 0, 0};
    int has_sections = s->mode != NRG_ROPE_NORMAL && s->mode != NRG_ROPE_NEOX;
    if (has_sections != !!call->value[OPT_SECTIONS]) {
        complain(has_sections ? "--mode %s needs --sections" : "--sections and --mode %s cannot be combined",
                 call->value[OPT_MODE] ? call->value[OPT_MODE] : mode_names[0]);
        return 0;
    }
    if (!has_sections)
        return 1;
    if (!cli_integers("sections", call->value[OPT_SECTIONS], 4, 0, INT32_MAX, sections))
        return 0;
    for (int i = 0; i < 4; i++)
        s->sections[i] = (int)sections[i];
    if (!(sections[0] | sections[1] | sections[2] | sections[3])) {
        complain("--sections: expected at least one pair, got '%s'", call->value[OPT_SECTIONS]);
        return 0;
    }
    return 1;
}

/* Numbers that are above 0, and what else they may be. */
static int check_numbers(const file_call *call, const nrg_rope_spec *s)
{
    const struct {
        int option;
        double value;
    } above_zero[] = {{OPT_FREQ_BASE, s->freq_base},
                      {OPT_FREQ_SCALE, s->freq_scale},
                      {OPT_BETA_FAST, s->beta_fast},
                      {OPT_BETA_SLOW, s->beta_slow},
                      {OPT_FACTOR, s->factor}},
      finite[] = {{OPT_EXT_FACTOR, s->ext_factor}, {OPT_ATTN_FACTOR, s->attn_factor}};
    for (size_t i = 0; i < sizeof above_zero / sizeof above_zero[0]; i++)
        if (!(above_zero[i].value >= 0x1p-400 && above_zero[i].value <= 0x1p400)) {
            complain("--%s: expected a number above 0, from 2^-400 to 2^400, got '%s'", options[above_zero[i].option].name,
                     call->value[above_zero[i].option]);
            return 0;
        }
    for (size_t i = 0; i < sizeof finite / sizeof finite[0]; i++)
        if (!(fabs(finite[i].value) <= 0x1p400)) {
            complain("--%s: expected a number from -2^400 to 2^400, got '%s'", options[finite[i].option].name,
                     call->value[finite[i].option]);
            return 0;
        }
    const int is_yarn = s->ext_factor != 0 && !s->n_ctx_orig;
    if (is_yarn || (s->scaling == NRG_ROPE_SCALING_LLAMA3 && !s->n_ctx_orig))
        complain(is_yarn ? "--ext-factor (YaRN) needs --n-ctx-orig above 0" : "--scaling llama3 needs --n-ctx-orig above 0");
    else if (s->ext_factor != 0 && s->freq_base == 1)
        complain("--ext-factor (YaRN) needs a --freq-base that is not 1");
    else if (s->ext_factor == 0 && s->yarn)
        complain("--%s needs an --ext-factor that is not 0",
                 options[s->yarn & NRG_ROPE_YARN_NO_MSCALE ? OPT_NO_MSCALE : OPT_NO_TRUNCATE].name);
    else if (s->scaling != NRG_ROPE_SCALING_NONE && !call->value[OPT_FACTOR])
        complain("--scaling %s needs --factor", call->value[OPT_SCALING]);
    else if (s->scaling == NRG_ROPE_SCALING_NONE && s->factor != 1)
        complain("--factor needs --scaling ntk or llama3");
    else if (s->scaling != NRG_ROPE_SCALING_LLAMA3 && (s->low_freq_factor != 1 || s->high_freq_factor != 4))
        complain("--%s needs --scaling llama3",
                 options[s->low_freq_factor != 1 ? OPT_LOW_FREQ_FACTOR : OPT_HIGH_FREQ_FACTOR].name);
    else if (s->scaling == NRG_ROPE_SCALING_LLAMA3 &&
             !(s->low_freq_factor >= 0 && s->low_freq_factor < s->high_freq_factor && s->high_freq_factor <= 0x1p400))
        complain("--low-freq-factor: expected at least 0 and less than --high-freq-factor (%g), got %g", s->high_freq_factor,
                 s->low_freq_factor);
    else
        return 1;
    return 0;
}

static int read_spec(const file_call *call, rope_request *q)
{
    nrg_rope_spec *s = &q->spec;
    int mode = file_word(call, OPT_MODE, mode_names), scaling = file_word(call, OPT_SCALING, scalings);
    long long n_ctx_orig = 0;
    if (mode < 0 || scaling < 0)
        return 0;
    *s = nrg_rope_spec_init(0, modes[mode], 10000);
    s->scaling = (nrg_rope_scaling)scaling;
    s->yarn = (call->value[OPT_NO_TRUNCATE] ? NRG_ROPE_YARN_NO_TRUNCATE : 0u) |
              (call->value[OPT_NO_MSCALE] ? NRG_ROPE_YARN_NO_MSCALE : 0u);
    if (!read_sections(call, s) || !file_count(call, OPT_N_DIMS, 1, &s->n_dims) ||
        !file_double(call, OPT_FREQ_BASE, &s->freq_base) || !file_double(call, OPT_FREQ_SCALE, &s->freq_scale) ||
        !file_double(call, OPT_EXT_FACTOR, &s->ext_factor) || !file_double(call, OPT_ATTN_FACTOR, &s->attn_factor) ||
        !file_double(call, OPT_BETA_FAST, &s->beta_fast) || !file_double(call, OPT_BETA_SLOW, &s->beta_slow) ||
        !file_double(call, OPT_FACTOR, &s->factor) || !file_double(call, OPT_LOW_FREQ_FACTOR, &s->low_freq_factor) ||
        !file_double(call, OPT_HIGH_FREQ_FACTOR, &s->high_freq_factor) ||
        !file_integer(call, OPT_N_CTX_ORIG, 0, INT32_MAX, &n_ctx_orig))
        return 0;
    s->n_ctx_orig = (int)n_ctx_orig;
    if (s->n_dims % 2 || s->n_dims > (size_t)1 << 31) {
        complain("--n-dims: expected an even number up to 2^31, got %zu", s->n_dims);
        return 0;
    }
    return check_numbers(call, s);
}

static int read_norm(const file_call *call, rope_request *q)
{
    nrg_norm_spec *s = &q->norm;
    int store = file_word(call, OPT_STORE, library_stores);
    if (store < 0 || !file_norm(call, OPT_NORM, OPT_EPS, s))
        return 0;
    q->store = (nrg_store)store;
    q->has_norm = call->value[OPT_NORM] != NULL;
    return file_float(call, OPT_WEIGHT_OFFSET, &s->weight_offset);
}

static int rope_ask(file_call *call)
{
    rope_request *q = call->request;
    long long first = 0;
    memset(q, 0, sizeof *q);
    if (!check_combination(call) || !read_spec(call, q) || !read_norm(call, q) ||
        !file_count(call, OPT_ROTATE_FROM, 0, &q->rotate_from) || !file_count(call, OPT_TOKENS, 0, &q->tokens) ||
        !file_integer(call, OPT_FIRST, INT32_MIN, INT32_MAX, &first))
        return CLI_REFUSED;
    q->first = (int32_t)first;
    q->is_table = call->value[OPT_TABLE] != NULL;
    q->backward = call->value[OPT_BACKWARD] != NULL;
    q->heads_first = call->value[OPT_HEADS_FIRST] != NULL;
    if (isfinite(q->norm.weight_offset))
        return CLI_DONE;
    complain("--weight-offset: expected a finite number, got '%s'", call->value[OPT_WEIGHT_OFFSET]);
    return CLI_REFUSED;
}

int command_rope(char **arguments)
{
    static const file_command command = {
        "rope", rope_help, options, ROPE_INPUTS, ROPE_OUTPUTS, OPTIONS, ROPE_X, 1u << ROPE_POSITIONS, rope_ask, rope_compute};
    rope_request q;
    return file_command_run(&command, &q, arguments);
}
