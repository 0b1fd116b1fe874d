/* The cases of position_table: the tables of rope, with every mode and scaling, and the sinusoidal ones.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../position.h"

enum { POSITIONS = SWEEP_IN, FACTORS };
enum { TABLE = SWEEP_OUT, FREQUENCIES };

static const char *const names[SWEEP_OPERANDS] = {
    [POSITIONS] = "positions", [FACTORS] = "freq_factors", [TABLE] = "table", [FREQUENCIES] = "frequencies"};

/* The ways to make a table: the modes of rope, and the layouts of a sinusoidal one. A 16-bit table is always the latter. */
static const nrg_rope_mode modes[] = {NRG_ROPE_NORMAL, NRG_ROPE_NEOX, NRG_ROPE_MROPE, NRG_ROPE_VISION, NRG_ROPE_IMROPE};
enum { MODES = sizeof modes / sizeof modes[0], WAYS = MODES + 2 };

/* Pairs beyond those from 1 up, and rows. */
static const struct {
    size_t pairs, rows;
} large[] = {{128, 33}, {257, 9}, {1025, 3}, {3, 700}, {64, 90}};
enum { LARGE = sizeof large / sizeof large[0] };

static const size_t small[] = {[SWEEP_QUICK] = 40, [SWEEP_DEFAULT] = 140, [SWEEP_FULL] = 600};

static uint64_t count(sweep_level level) { return WAYS * (small[level] + LARGE); }

typedef struct table_case {
    int is_sinusoidal;
    nrg_sinusoidal_layout layout;
    size_t dim, rows; /* of the table */
    nrg_rope_spec spec;
    int has_positions, has_factors;
    int32_t first;
} table_case;

static void draw_scaling(nrg_rope_spec *s, uint64_t *random)
{
    static const double bases[] = {10000, 10000, 500000, 1e6, 3}, scales[] = {1, 1, 0.25, 0x1p-5, 1.5};
    static const double ext_factors[] = {0, 0, 1, 0.5}, attn_factors[] = {1, 1, 0.75, 1.19};
    s->freq_base = bases[sweep_draw(random, 5)];
    s->freq_scale = scales[sweep_draw(random, 5)];
    s->ext_factor = ext_factors[sweep_draw(random, 4)];
    s->attn_factor = attn_factors[sweep_draw(random, 4)];
    s->n_ctx_orig = 1 + (int)sweep_draw(random, 9000);
    s->factor = 1 + sweep_draw(random, 8);
    if (sweep_draw(random, 2))
        s->scaling = s->n_dims >= 4 ? (nrg_rope_scaling)sweep_draw(random, 3) : NRG_ROPE_SCALING_LLAMA3;
}

/* Mostly all pairs, sometimes fewer, which repeat. */
static void draw_sections(nrg_rope_spec *s, size_t pairs, uint64_t *random)
{
    size_t left = sweep_draw(random, 4) ? pairs : 1 + sweep_draw(random, (unsigned)pairs);
    int axes = 1 + (int)sweep_draw(random, 4);
    for (int i = 0; i < axes; i++) {
        size_t n = i + 1 < axes ? sweep_draw(random, (unsigned)left + 1) : left;
        s->sections[i] = (int)n;
        left -= n;
    }
    if (s->sections[0] + s->sections[1] + s->sections[2] + s->sections[3] == 0)
        s->sections[1] = 1;
}

static table_case draw(const sweep_case *c)
{
    table_case t;
    uint64_t random = c->number, way = c->n % WAYS, length = c->n / WAYS;
    size_t pairs = (size_t)length + 1;
    memset(&t, 0, sizeof t);
    t.rows = sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 9) : 0;
    if (length >= small[c->level]) {
        pairs = large[length - small[c->level]].pairs;
        t.rows = large[length - small[c->level]].rows;
    }
    t.is_sinusoidal = way >= MODES || c->spec.dtype != NRG_F32;
    t.layout = (nrg_sinusoidal_layout)(way % 2);
    t.dim = 2 * pairs;
    if (t.is_sinusoidal && t.layout == NRG_SINUSOIDAL_INTERLEAVED)
        t.dim -= sweep_draw(&random, 2);
    t.spec = nrg_rope_spec_init(2 * pairs, way < MODES ? modes[way] : NRG_ROPE_NORMAL, 10000);
    if (t.spec.mode == NRG_ROPE_VISION)
        t.dim = 4 * pairs;
    draw_scaling(&t.spec, &random);
    draw_sections(&t.spec, t.dim / 2, &random);
    t.has_positions = sweep_draw(&random, 2) != 0;
    t.has_factors = !t.is_sinusoidal && sweep_draw(&random, 3) == 0;
    t.first = (int32_t)(sweep_draw(&random, 4) ? sweep_draw(&random, 5000) : sweep_draw(&random, 0x7ffffff0)) -
              (sweep_draw(&random, 4) ? 0 : 100000);
    if (t.first > INT32_MAX - (int32_t)t.rows)
        t.first -= (int32_t)t.rows;
    return t;
}

static void make(sweep_level level, uint64_t n, sweep_case *c)
{
    (void)level;
    table_case t = draw(c);
    uint64_t random = c->number + n;
    c->rows = t.rows;
    c->shares = sweep_draw_shares(&random);
    if (t.has_positions && t.rows)
        sweep_add_tensor(c, POSITIONS, SWEEP_I32, t.rows, t.is_sinusoidal ? 1 : 4);
    if (t.has_factors)
        sweep_add_dense(c, FACTORS, NRG_F32, t.dim / 2, 1);
    sweep_add_tensor(c, TABLE, c->spec.dtype, t.dim, t.rows);
    sweep_add_dense(c, FREQUENCIES, SWEEP_F64, (t.dim + 1) / 2, 2);
    c->operands[POSITIONS].is_alone = 1;
    sweep_lay_out(c, &random);
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    if (operand == POSITIONS)
        sweep_fill_positions(c, operand, INT32_MIN, INT32_MAX, memory, random);
    else
        sweep_fill_line(memory + c->operands[operand].offset, sizeof(float), NRG_F32, c->operands[operand].length,
                        sweep_kind_near_one(), random);
}

static nrg_status run_sinusoidal(const sweep_case *c, const table_case *t, unsigned char *memory)
{
    double *frequencies = sweep_place(c, FREQUENCIES, memory);
    nrg_sinusoidal_args args = nrg_sinusoidal_args_init(t->rows, t->dim, frequencies, sweep_place(c, TABLE, memory));
    args.dtype = c->spec.dtype;
    args.layout = t->layout;
    args.positions = sweep_place(c, POSITIONS, memory);
    args.first = t->first;
    args.table_stride = sweep_stride(c, TABLE);
    nrg_status status = nrg_sinusoidal_frequencies(t->dim, t->spec.freq_base, frequencies);
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_sinusoidal_table(&args, sweep_share(c, i, c->shares), c->shares);
    return status;
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    table_case t = draw(c);
    if (t.is_sinusoidal)
        return run_sinusoidal(c, &t, memory);
    double *frequencies = sweep_place(c, FREQUENCIES, memory), magnitude = 0;
    t.spec.freq_factors = sweep_place(c, FACTORS, memory);
    nrg_status status = nrg_rope_frequencies(&t.spec, frequencies, &magnitude);
    nrg_rope_table_args args = nrg_rope_table_args_init(t.rows, frequencies, magnitude, sweep_place(c, TABLE, memory));
    args.positions = sweep_place(c, POSITIONS, memory);
    args.positions_stride = sweep_stride(c, POSITIONS);
    args.first = t.first;
    args.table_stride = sweep_stride(c, TABLE);
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_rope_table(&t.spec, &args, sweep_share(c, i, c->shares), c->shares);
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const scalings[] = {"none", "ntk", "llama3"};
    table_case t = draw(c);
    const nrg_rope_spec *s = &t.spec;
    sweep_append(text, " %zux%zu", t.rows, t.dim);
    if (!t.has_positions)
        sweep_append(text, " from %ld", (long)t.first);
    if (t.is_sinusoidal) {
        sweep_append(text, " sinusoidal %s", t.layout == NRG_SINUSOIDAL_CONCATENATED ? "concatenated" : "interleaved");
        return;
    }
    sweep_append(text, " rope mode %d, sections %d %d %d %d, freq_base %g, freq_scale %g, ext_factor %g, attn_factor %g",
                 (int)s->mode, s->sections[0], s->sections[1], s->sections[2], s->sections[3], s->freq_base, s->freq_scale,
                 s->ext_factor, s->attn_factor);
    sweep_append(text, ", n_ctx_orig %d, scaling %s by %g", s->n_ctx_orig, scalings[s->scaling], s->factor);
}

const sweep_family sweep_family_position_table = {count, make, fill, run, describe, names};
