/* One row of a norm job: where its elements are, and how they are loaded and stored.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_ROW_H
#define NRG_TEMPLATE_NORM_NORM_ROW_H

#include "../../job/activation.h"
#include "../../job/norm.h"
#include "../step.h"

/* What is done to the rows of a job. The loops test these as they run, in one register. */
enum {
    NORM_CENTRED = 1 << 0,
    NORM_Y_F32 = 1 << 1, /* beside 16-bit x */
    NORM_R_F32 = 1 << 2,
    NORM_W_F32 = 1 << 3,
    NORM_W_OFFSET = 1 << 4, /* it is not 0 */
    NORM_PREFETCH = 1 << 5, /* the job is streamed: its inputs are not in cache either */
    NORM_STREAM_R = 1 << 6,
    NORM_STREAM_O = 1 << 7,
    /* the first pass does more than read x */
    NORM_ADD_Y = 1 << 8,       /* r = x + y */
    NORM_STORE_R = 1 << 9,     /* perhaps over x or y */
    NORM_GATE_FIRST = 1 << 10, /* p = r · a staged gate is summed, and staged */
    NORM_FIRST = NORM_ADD_Y | NORM_STORE_R | NORM_GATE_FIRST,
    NORM_RESIDUAL = NORM_ADD_Y | NORM_STORE_R | NORM_STREAM_R | NORM_PREFETCH | NORM_Y_F32 | NORM_R_F32,
    /* the passes after it: read r or p where it is stored; otherwise x and y again, and perhaps · a staged gate */
    NORM_READ_R = 1 << 11,
    NORM_GATE_AGAIN = 1 << 12,
    /* what may follow the norm */
    NORM_TIMES_GATE = 1 << 13, /* · a staged gate */
    NORM_TO_STAGE = 1 << 14,   /* the output goes, in f32, to the stage */
    NORM_AFTER = 1 << 15,      /* + y */
    NORM_LAST = NORM_TIMES_GATE | NORM_TO_STAGE | NORM_AFTER,
    NORM_ANY = (1 << 16) - 1,
    /* of a loop, not of a job: it applies another row on the way (norm_part.along); */
    NORM_ALONG = 1 << 16,
    /* steps of bf16 in pairs of vectors (step.h), and w and b as floats that lie in that order */
    NORM_PAIRS = 1 << 17,
    NORM_W_PAIRS = 1 << 18,
    /* of a loop of pairs whose operands are all bf16, or made calm as they are loaded: a NaN that they make is quiet and has 0 in
     * its lower half, so that outputs are rounded without looking for it (1x4096 add+rms 1.15 to 1.25 × with what else residuals
     * gained, rms 1.04 to 1.07) */
    NORM_CALM = 1 << 19,
    /* of a walk: r of 16 bits, which is streamed, is kept in the stage for the second pass */
    NORM_KEEP_R = 1 << 20,
    /* of a row alone: what is summed is kept as floats in the stage, and read from there again */
    NORM_KEEP_WIDE = 1 << 21,
    /* STREAM_LINES of o, f32: 8192x1004 rms 3.0 ms, and as rows 3.8 (Emerald Rapids, AVX-512). 16-bit rows, whose pieces have
     * half as many lines, take 1.2 to 1.4 times as long so */
    NORM_LINES_O = 1 << 22
};

/* What a loop with steps of G vectors is to add to its options. */
NRG_INLINE unsigned norm_pairs(int G, nrg_dtype D) { return !V_SMALL && D == NRG_BF16 && G > 1 ? NORM_PAIRS : 0; }

/* Whether a step is one of pairs: what a compiler knows of single vectors without looking at the options. */
NRG_INLINE int in_pairs(int G, unsigned how) { return !V_SMALL && G > 1 && how & NORM_PAIRS; }

typedef struct norm_options {
    size_t dim;
    float w_offset;
    unsigned how;
    int fast;                           /* the grade */
    const struct norm_half_loops *half; /* of 16-bit rows: norm_loops.h */
} norm_options;

typedef struct norm_row {
    const char *x, *y, *z, *w, *b;
    char *r, *o;
    float *stage;      /* element 0 of what is staged for the chunk at hand; of r that is kept */
    const float *gate; /* the same of its gate, for NORM_GATE_FIRST */
} norm_row;

/* Elements begin to end of some rows, which the loops over elements are called for. */
typedef struct norm_part {
    const norm_options *opt;
    const norm_row *row;
    int count;
    int fold; /* the first pass: a segment ends here, with a whole step */
    size_t begin, end;
    const struct fast_along *along; /* the first pass of the fast grade: NULL, or what becomes outputs on the way */
} norm_part;

NRG_INLINE norm_row row_at(const nrg_norm_job *job, size_t n, nrg_dtype D)
{
    size_t group = 0;
    if (NRG_RARELY(job->groups > 1)) {
        group = n % job->groups;
        n /= job->groups;
    }
    norm_row row = {
        .x = job->x + n * job->x_stride,
        .y = job->y ? job->y + n * job->y_stride : NULL,
        .z = job->z ? job->z + n * job->z_stride : NULL,
        .w = job->w,
        .b = job->b,
        .r = job->r ? job->r + n * job->r_stride : NULL,
        .o = job->o ? job->o + n * job->o_stride : NULL,
    };
    if (NRG_RARELY(group)) {
        const size_t at = group * job->dim; /* where the group begins in the row */
        row.x += bytes_of(at, D, 0);
        row.y = row.y ? row.y + bytes_of(at, D, job->y_f32) : NULL;
        row.z = row.z ? row.z + bytes_of(at, D, 0) : NULL;
        row.w = row.w ? row.w + bytes_of(at, D, job->w_f32) : NULL;
        row.b = row.b ? row.b + bytes_of(at, D, job->w_f32) : NULL;
        row.r = row.r ? row.r + bytes_of(at, D, job->r_f32) : NULL;
        row.o = row.o ? row.o + bytes_of(at, D, job->o_f32) : NULL;
    }
    return row;
}

/* Streaming needs 16-byte alignment of every row and group, and does nothing for lines that are in cache because the row is in
 * place. */
NRG_INLINE int can_stream(const nrg_norm_job *job, const char *out, size_t stride, size_t group_bytes)
{
    return job->stream == 1 && (job->groups == 1 || group_bytes % 16 == 0) &&
           rows_stream(out, stride, job->groups * group_bytes, 0) && out != job->x && out != job->y && out != job->z;
}

enum { NORM_LINES_FROM = 256 }; /* elements: shorter rows go by loops that know no lines */

/* Whether the activation's own loop does the product: of others than SiLU, gates are staged. */
NRG_INLINE int gate_has_loop(const nrg_norm_job *job) { return job->gate == NRG_GATE_NONE || job->activation == NRG_ACT_SILU; }

/* What is streamed is of few calls, and none of them short. */
static __attribute__((noinline)) unsigned streams_of(const nrg_norm_job *job, nrg_dtype D)
{
    const size_t bytes = bytes_of(job->dim, D, 0);
    const int r = job->r && can_stream(job, job->r, job->r_stride, bytes_of(job->dim, D, job->r_f32));
    const int has_lines = D == NRG_F32 && job->o && job->stream == 1 && job->dim > NORM_LINES_FROM && job->groups == 1 &&
                          job->gate == NRG_GATE_NONE && job->activation == NRG_ACT_IDENTITY && job->o != job->x &&
                          job->o != job->y;
    const int lines = has_lines && rows_stream(job->o, job->o_stride, bytes, 1) == STREAM_LINES;
    const int o = !lines && can_stream(job, job->o, job->o_stride, bytes);
    return NORM_PREFETCH | (r ? NORM_STREAM_R : 0) | (o ? NORM_STREAM_O : 0) | (lines ? NORM_LINES_O : 0);
}

NRG_INLINE norm_options options_of(const nrg_norm_job *job, nrg_dtype D)
{
    /* what is 0 or 1 is shifted into its place, without a jump or a comparison */
    unsigned how = (unsigned)job->formula.centred * NORM_CENTRED | (unsigned)job->y_f32 * NORM_Y_F32 |
                   (unsigned)job->r_f32 * NORM_R_F32 | (unsigned)job->w_f32 * NORM_W_F32 | (unsigned)job->after * NORM_AFTER;
    how |= job->formula.w_offset != 0 ? NORM_W_OFFSET : 0;
    if (NRG_RARELY(job->stream))
        how |= streams_of(job, D);
    if (job->y)
        how |= job->after ? 0 : NORM_ADD_Y;
    if (job->r)
        how |= NORM_STORE_R | (how & NORM_STREAM_R ? 0 : NORM_READ_R);
    return (norm_options){
        .dim = job->dim, .w_offset = job->formula.w_offset, .how = how, .fast = !nrg_norm_is_exact(&job->formula, D)};
}

/* A part of a row with NORM_LINES_O: begin to end, moved back to where lines begin, but for the ends of the row. Whole lines are
 * first to last. */
typedef struct norm_lines {
    size_t begin, first, last, end;
} norm_lines;

NRG_INLINE norm_lines lines_of(const norm_part *part, const char *o)
{
    enum { LINE = 64 / sizeof(float) };
    const size_t at = (uintptr_t)o / sizeof(float) % LINE; /* elements between the row and the line that it begins in */
    norm_lines l = {part->begin, 0, 0, part->end};
    if (l.begin)
        l.begin -= (at + l.begin) % LINE;
    if (l.end < part->opt->dim)
        l.end -= (at + l.end) % LINE;
    l.first = l.begin + (LINE - (at + l.begin) % LINE) % LINE;
    l.last = l.end - (at + l.end) % LINE;
    return l;
}

/* The options of a step, to be tested in the one register they are in. Otherwise the compiler makes a variable of every option
 * before it enters a loop, which takes longer than a short row, and more registers than there are. may, a constant: those there
 * can be. */
NRG_INLINE unsigned options_in_register(unsigned how, unsigned may)
{
    NRG_IN_REGISTER(how);
    return how & may;
}

/* Asks for what a step of G vectors reads 2 KB further on, in the next row where a row ends: further than the hardware looks past
 * a page. Worth 1.2 × out of cache; at 1 or 4 KB a little less, and two distances at once nothing more. Where r of 16 bits is
 * kept 1 KB: 512 rows of 4096 1.02 to 1.07 ×, 8192 alike (Granite Rapids; at 4 KB 0.93 to 1.0). */
NRG_INLINE void prefetch_step(int G, unsigned how, norm_row row, size_t i, nrg_dtype D)
{
    const size_t size = D == NRG_F32 ? 4 : 2, y_size = D == NRG_F32 || how & NORM_Y_F32 ? 4 : 2;
    const size_t ahead = how & NORM_KEEP_R ? 1024 : 2048;
    NRG_UNROLL
    for (size_t b = 0; b < (size_t)G * VN * size; b += 64)
        __builtin_prefetch((const void *)((uintptr_t)row.x + i * size + b + ahead));
    if (how & NORM_ADD_Y) {
        NRG_UNROLL
        for (size_t b = 0; b < (size_t)G * VN * 4; b += 64)
            if (b < (size_t)G * VN * y_size)
                __builtin_prefetch((const void *)((uintptr_t)row.y + i * y_size + b + ahead));
    }
}

/* A step of an operand. */
NRG_INLINE void load_operand(vf *v, int G, unsigned how, const char *p, size_t i, size_t n, nrg_dtype D, int is_f32)
{
    if (!in_pairs(G, how))
        load_step_or_f32(v, G, p, i, n, D, is_f32);
    else if (is_f32) {
        load_step(v, G, p, i, n, NRG_F32);
        order_to_pairs(v, G);
        if (how & NORM_CALM) {
            NRG_UNROLL
            for (int j = 0; j < G; j++)
                v[j] = v_calm(v[j]);
        }
    } else
        load_pairs(v, G, p, i);
}

/* Floats to r or the stage. */
NRG_INLINE void store_f32_operand(const vf *v, int G, unsigned how, float *p, size_t n, int stream)
{
    vf ordered[NORM_STEP];
    if (!in_pairs(G, how)) {
        store_f32_step(v, G, p, n, stream);
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        ordered[j] = v[j];
    pairs_to_order(ordered, G);
    store_f32_step(ordered, G, p, n, stream);
}

/* A step of w or b. */
NRG_INLINE void load_weights(vf *v, int G, unsigned how, const char *p, size_t i, size_t n, nrg_dtype D)
{
    if (how & NORM_W_PAIRS)
        load_step(v, G, p, i, n, NRG_F32);
    else
        load_operand(v, G, how, p, i, n, D, how & NORM_W_F32);
}

/* v + y */
NRG_INLINE void add_y(vf *v, int G, unsigned how, norm_row row, size_t i, size_t n, nrg_dtype D)
{
    vf y[NORM_STEP];
    load_operand(y, G, how, row.y, i, n, D, how & NORM_Y_F32);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = v_add(v[j], y[j]);
}

/* v · the staged gate */
NRG_INLINE void multiply_gate(vf *v, int G, unsigned how, const float *staged, size_t i, size_t n)
{
    vf gate[NORM_STEP];
    load_operand(gate, G, how, (const char *)staged, i, n, NRG_F32, 1);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = v_mul(v[j], gate[j]);
}

/* What the first pass over a row sums: x, or r, rounded to its dtype and stored where it is asked for, or p = r · gate, staged.
 * Lanes that do not exist are 0. */
NRG_INLINE void load_first(vf *v, int G, unsigned how, norm_row row, size_t i, size_t n, nrg_dtype D)
{
    load_operand(v, G, how, row.x, i, n, D, 0);
    if (!(how & NORM_FIRST))
        return;
    if (how & NORM_ADD_Y)
        add_y(v, G, how, row, i, n, D);
    if (D == NRG_F32 || how & NORM_R_F32) {
        if (how & NORM_STORE_R)
            store_f32_operand(v, G, how, (float *)row.r + i, n, how & NORM_STREAM_R);
    } else if (in_pairs(G, how)) {
        if (how & (NORM_STORE_R | NORM_ADD_Y)) {
            vp h[NORM_STEP];
            round_pairs(h, v, G, (how & NORM_CALM) != 0);
            widen_pairs(v, h, G);
            if (how & NORM_KEEP_R)
                store_pair_step(h, G, (uint16_t *)row.stage + i, 0);
            if (how & NORM_STORE_R)
                store_pair_step(h, G, (uint16_t *)row.r + i, how & NORM_STREAM_R);
        }
    } else if (how & (NORM_STORE_R | NORM_ADD_Y)) {
        vh h[NORM_STEP];
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            h[j] = to_half(v[j], D);
            v[j] = from_half(h[j], D);
        }
        if (how & NORM_KEEP_R)
            store_half_step(h, G, (uint16_t *)row.stage + i, n, 0);
        if (how & NORM_STORE_R)
            store_half_step(h, G, (uint16_t *)row.r + i, n, how & NORM_STREAM_R);
    }
    if (NRG_RARELY(how & NORM_GATE_FIRST)) {
        multiply_gate(v, G, how, row.gate, i, n);
        store_f32_operand(v, G, how, row.stage + i, n, 0);
    }
}

/* The same for the passes after it. */
NRG_INLINE void load_again(vf *v, int G, unsigned how, norm_row row, size_t i, size_t n, nrg_dtype D)
{
    if (how & NORM_KEEP_WIDE)
        load_step(v, G, (const char *)row.stage, i, n, NRG_F32);
    else if (how & NORM_READ_R)
        load_operand(v, G, how, row.r, i, n, D, how & NORM_R_F32);
    else {
        load_operand(v, G, how, row.x, i, n, D, 0);
        if (NRG_RARELY(how & NORM_ADD_Y)) {
            add_y(v, G, how, row, i, n, D);
            if (in_pairs(G, how) && !(how & NORM_R_F32)) {
                vp h[NORM_STEP];
                round_pairs(h, v, G, (how & NORM_CALM) != 0);
                widen_pairs(v, h, G);
            } else if (D != NRG_F32 && !(how & NORM_R_F32)) {
                NRG_UNROLL
                for (int j = 0; j < G; j++)
                    v[j] = from_half(to_half(v[j], D), D);
            }
        }
    }
    if (NRG_RARELY(how & NORM_GATE_AGAIN))
        multiply_gate(v, G, how, row.stage, i, n);
}

NRG_INLINE void add_b(vf *v, int G, unsigned how, norm_row row, size_t i, size_t n, nrg_dtype D)
{
    if (!row.b)
        return;
    vf b[NORM_STEP];
    load_weights(b, G, how, row.b, i, n, D);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = v_add(v[j], b[j]);
}

/* What follows the norm, of either grade, and the store: + b, the gate, + y. */
NRG_INLINE void finish_o1(vf *v, int G, unsigned how, norm_row row, size_t i, size_t n, nrg_dtype D)
{
    add_b(v, G, how, row, i, n, D);
    if (NRG_RARELY(how & NORM_LAST)) {
        if (how & NORM_TIMES_GATE)
            multiply_gate(v, G, how, row.stage, i, n);
        if (how & NORM_TO_STAGE) {
            store_f32_operand(v, G, how, row.stage + i, n, 0);
            return;
        }
        if (how & NORM_AFTER)
            add_y(v, G, how, row, i, n, D);
    }
    if (in_pairs(G, how)) {
        vp h[NORM_STEP];
        round_pairs(h, v, G, (how & NORM_CALM) != 0);
        store_pair_step(h, G, (uint16_t *)row.o + i, how & NORM_STREAM_O);
    } else
        store_step(v, G, row.o, i, n, D, how & NORM_STREAM_O);
}

#endif
