/* The cases of position_table: the tables of rope, with every mode and scaling, and the sinusoidal ones.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/rope.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

enum { POSITIONS = SWEEP_IN, FACTORS };
enum { TABLE = SWEEP_OUT, FREQUENCIES };

/* Of the frequencies, and of the table that is made of them. A magnitude is none of the case's operands. */
static const unsigned char rope_frequencies[] = {FACTORS, FREQUENCIES, SWEEP_NOWHERE};
static const unsigned char rope_table[] = {POSITIONS, FREQUENCIES, TABLE};
static const unsigned char sinusoidal_frequencies[] = {FREQUENCIES};
static const unsigned char sinusoidal_table[] = {POSITIONS, FREQUENCIES, TABLE};

/* The ways to make a table: the modes of rope, and the layouts of a sinusoidal one. A 16-bit table is always the latter. */
static const nrg_rope_mode modes[] = {NRG_ROPE_NORMAL, NRG_ROPE_NEOX, NRG_ROPE_MROPE, NRG_ROPE_VISION, NRG_ROPE_IMROPE};
enum { MODES = sizeof modes / sizeof modes[0], WAYS = MODES + 2 };

/* Pairs beyond those from 1 up, and rows. */
static const size_t large[][2] = {{128, 33}, {257, 9}, {1025, 3}, {3, 700}, {64, 90}};
enum { LARGE = sizeof large / sizeof large[0] };

typedef struct table_case {
    nrg_sinusoidal_spec waves;
    nrg_sinusoidal_frequencies_args wave;
    nrg_sinusoidal_args sinusoidal;
    nrg_rope_spec spec;
    nrg_rope_frequencies_args turns;
    nrg_rope_table_args rope;
} table_case;
#define AT(field) SWEEP_AT(table_case, field)

/* The magnitude is the table's, which is one part more. */
static void give_magnitude(void *const *part)
{
    ((nrg_rope_frequencies_args *)part[1])->magnitude = &((nrg_rope_table_args *)part[2])->magnitude;
}
static const sweep_call turns = {&invoke_rope_frequencies, .slots = rope_frequencies, .part = {AT(spec), AT(turns), AT(rope)},
                                 .fix = give_magnitude},
                        rotations = {&invoke_rope_table, .slots = rope_table, .part = {AT(spec), AT(rope)}},
                        wave = {&invoke_sinusoidal_frequencies, .slots = sinusoidal_frequencies, .part = {AT(waves), AT(wave)}},
                        sinusoids = {&invoke_sinusoidal_table, .slots = sinusoidal_table, .part = {AT(waves), AT(sinusoidal)}};

static void draw_scaling(nrg_rope_spec *s, uint64_t *random)
{
    static const double ext_factors[] = {0, 0, 1, 0.5}, attn_factors[] = {1, 1, 0.75, 1.19};
    s->freq_base = (const double[]){10000, 10000, 500000, 1e6, 3}[sweep_draw(random, 5)];
    s->freq_scale = (const double[]){1, 1, 0.25, 0x1p-5, 1.5}[sweep_draw(random, 5)];
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

/* What has no use has its default. */
static void settle(nrg_rope_spec *s)
{
    if (s->scaling == NRG_ROPE_SCALING_NONE)
        s->factor = 1;
    if (s->mode == NRG_ROPE_NORMAL || s->mode == NRG_ROPE_NEOX)
        memset(s->sections, 0, sizeof s->sections);
}

/* Returns the first position, where they are counted. */
static int32_t draw_first(size_t rows, uint64_t *random)
{
    int32_t first = (int32_t)(sweep_draw(random, 4) ? sweep_draw(random, 5000) : sweep_draw(random, 0x7ffffff0)) -
                    (sweep_draw(random, 4) ? 0 : 100000);
    return first > INT32_MAX - (int32_t)rows ? first - (int32_t)rows : first;
}

static void draw(sweep_case *c, uint64_t *random)
{
    table_case *t = sweep_structs(c);
    size_t pairs = c->length, rows = sweep_draw(random, 24) ? 1 + sweep_draw(random, 9) : 0;
    sweep_take_large(c, large[0], 2, (size_t *const[]){&pairs, &rows});
    const nrg_sinusoidal_layout layout = (nrg_sinusoidal_layout)(c->way % 2);
    const int is_sinusoidal = c->way >= MODES || c->spec.dtype != NRG_F32;
    size_t dim = 2 * pairs;
    if (is_sinusoidal && layout == NRG_SINUSOIDAL_INTERLEAVED)
        dim -= sweep_draw(random, 2);
    t->spec = nrg_rope_spec_init(2 * pairs, c->way < MODES ? modes[c->way] : NRG_ROPE_NORMAL, 10000);
    if (t->spec.mode == NRG_ROPE_VISION)
        dim = 4 * pairs;
    draw_scaling(&t->spec, random);
    draw_sections(&t->spec, dim / 2, random);
    settle(&t->spec);
    const int has_positions = sweep_draw(random, 2) != 0, has_factors = !is_sinusoidal && sweep_draw(random, 3) == 0;
    const int32_t first = draw_first(rows, random);
    t->waves = nrg_sinusoidal_spec_vaswani(dim);
    t->waves.base = t->spec.freq_base;
    t->waves.layout = layout;
    t->sinusoidal = nrg_sinusoidal_args_init(c->spec.dtype, rows, NULL, NULL);
    t->rope = nrg_rope_table_args_init(rows, NULL, 1, NULL);
    t->sinusoidal.first_position = t->rope.first_position = has_positions ? 0 : first;
    c->rows = rows;
    if (is_sinusoidal) {
        sweep_add(c, SWEEP_ALWAYS, &sinusoids, has_positions ? NRG_BIT(NRG_SINUSOIDAL_TABLE_POSITIONS) : 0, 0);
        sweep_add_first(c, SWEEP_ALWAYS, &wave, 0);
        return;
    }
    sweep_add(c, SWEEP_ALWAYS, &rotations, has_positions ? NRG_BIT(NRG_ROPE_TABLE_POSITIONS) : 0, 0);
    sweep_add_first(c, SWEEP_ALWAYS, &turns, has_factors ? NRG_BIT(NRG_ROPE_FREQUENCIES_FACTORS) : 0);
    /* a token has four positions, however many of them the sections use; the call knows the room of these only */
    if (c->operands[POSITIONS].rows) {
        c->operands[POSITIONS].rows = c->operands[POSITIONS].run = 4;
        c->operands[POSITIONS].is_alone = 1;
    }
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    if (operand == POSITIONS)
        sweep_fill_positions(c, operand, INT32_MIN, INT32_MAX, memory, random);
    else
        sweep_fill_line(memory + c->operands[operand].offset, sizeof(float), NRG_F32, c->operands[operand].length,
                        sweep_kind_near_one(), random);
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const table_case *t = sweep_const_structs(c);
    const nrg_rope_spec *s = &t->spec;
    sweep_append(text, ", mode %d, sections %d %d %d %d, base %g, scale %g, ext_factor %g, attn_factor %g, factor %g",
                 (int)s->mode, s->sections[0], s->sections[1], s->sections[2], s->sections[3], s->freq_base, s->freq_scale,
                 s->ext_factor, s->attn_factor, s->factor);
}

const sweep_family sweep_family_position_table = {SWEEP_LENGTHS(WAYS, 40, 140, 600, LARGE), .draw = draw, .fill = fill,
                                                  .describe = describe};
