/* The bare loops of the scalar path: plain C, with whatever vectors the compiler makes of it for the base instruction set.
 * C has no non-temporal stores.
 *
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

#include "limits.h"

#define INLINE static inline __attribute__((always_inline))

static const char *in_at(const char *p, size_t bytes) { return p ? p + bytes : NULL; }
static char *out_at(char *p, size_t bytes) { return p ? p + bytes : NULL; }

typedef void words(size_t n, const uint32_t *restrict a, const uint32_t *restrict b, const uint32_t *restrict c,
                   const uint32_t *restrict d, const uint32_t *restrict v, const uint32_t *restrict w, uint32_t *restrict r,
                   uint32_t *restrict o);

INLINE void piece(words *loop, const limit_job *j, int outs, size_t at, size_t c, size_t bytes)
{
    const uint32_t *in[LIMIT_INS], *row_in[LIMIT_ROW_INS];
    for (int i = 0; i < LIMIT_INS; i++)
        in[i] = (const uint32_t *)in_at(j->in[i], at);
    for (int i = 0; i < LIMIT_ROW_INS; i++)
        row_in[i] = (const uint32_t *)in_at(j->row_in[i], c);
    uint32_t *last = (uint32_t *)out_at(j->out[outs - 1], at);
    uint32_t *first = outs == 2 ? (uint32_t *)out_at(j->out[0], at) : NULL;
    loop(bytes / 4, in[0], in[1], in[2], in[3], row_in[0], row_in[1], first, last);
}

static void write_rows(const limit_job *j)
{
    for (int i = 0; i < LIMIT_ROW_OUTS && j->row_out[i]; i++)
        for (size_t word = 0; word < j->row_out_bytes / 4; word++)
            ((uint32_t *)j->row_out[i])[word] = 1;
}

INLINE void keep(words *loop, const limit_job *j, int outs)
{
    for (size_t row = 0; row < j->rows; row++)
        piece(loop, j, outs, row * j->row_bytes, 0, j->row_bytes);
    write_rows(j);
}

/* The quarters of the tensor in turn, a piece of a row each. */
INLINE void keep_4(words *loop, const limit_job *j, int outs)
{
    enum { PIECE = 512 };
    size_t quarter = j->rows / 4;
    for (size_t row = 0; row < quarter; row++)
        for (size_t c = 0; c < j->row_bytes; c += PIECE)
            for (size_t p = 0; p < 4; p++)
                piece(loop, j, outs, (p * quarter + row) * j->row_bytes + c, c,
                      j->row_bytes - c < PIECE ? j->row_bytes - c : PIECE);
    for (size_t row = 4 * quarter; row < j->rows; row++)
        piece(loop, j, outs, row * j->row_bytes, 0, j->row_bytes);
    write_rows(j);
}

/* Tensors that are read only. */
static void read_all(const limit_job *j, int ins, size_t streams)
{
    enum { PIECE = 512 };
    const size_t bytes = j->rows * j->row_bytes, part = bytes / streams / PIECE * PIECE;
    uint32_t sum = 0;
    for (size_t c = 0; c < part; c += PIECE)
        for (size_t p = 0; p < streams; p++)
            for (int in = 0; in < ins; in++) {
                const uint32_t *at = (const uint32_t *)(j->in[in] + p * part + c);
                for (size_t i = 0; i < PIECE / 4; i++)
                    sum += at[i];
            }
    for (size_t c = streams * part; c < bytes; c += 4)
        for (int in = 0; in < ins; in++)
            sum += *(const uint32_t *)(j->in[in] + c);
    *(uint32_t *)j->out[0] = sum;
}

static void read_1(const limit_job *j) { read_all(j, 1, 1); }
static void read_2(const limit_job *j) { read_all(j, 2, 1); }
static void read_4_1(const limit_job *j) { read_all(j, 1, 4); }
static void read_4_2(const limit_job *j) { read_all(j, 2, 4); }

/* n words of a row. A function of its own for each set of operands: the compiler sees a loop without a choice in it, and believes
 * in restrict where it is a parameter. */
#define INSTANCE(ins, outs, row_ins)                                                                                             \
    static void words_##ins##outs##row_ins(size_t n, const uint32_t *restrict a, const uint32_t *restrict b,                     \
                                           const uint32_t *restrict c, const uint32_t *restrict d, const uint32_t *restrict v,   \
                                           const uint32_t *restrict w, uint32_t *restrict r, uint32_t *restrict o)               \
    {                                                                                                                            \
        for (size_t i = 0; i < n; i++) {                                                                                         \
            uint32_t sum = a[i] + (ins > 1 ? b[i] : 0) + (ins > 2 ? c[i] : 0) + (ins > 3 ? d[i] : 0);                            \
            if (outs == 2)                                                                                                       \
                r[i] = sum;                                                                                                      \
            o[i] = sum + (row_ins > 0 ? v[i] : 0) + (row_ins > 1 ? w[i] : 0);                                                    \
        }                                                                                                                        \
    }                                                                                                                            \
    static void keep_##ins##outs##row_ins(const limit_job *j) { keep(words_##ins##outs##row_ins, j, outs); }                     \
    static void keep_4_##ins##outs##row_ins(const limit_job *j) { keep_4(words_##ins##outs##row_ins, j, outs); }
LIMIT_INSTANCES(INSTANCE)

const limit_loop limit_loops_scalar[] = {
    {.name = "ordinary stores", .run = LIMIT_TABLE(keep), .read = {read_1, read_2}},
    {.name = "ordinary stores, 4 streams", .run = LIMIT_TABLE(keep_4), .read = {read_4_1, read_4_2}},
    {.name = NULL},
};
