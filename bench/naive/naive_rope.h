/* Rotations of heads, by type of elements like naive_loops.h; with or without a norm of each head before.
 *
 * SPDX-License-Identifier: MIT */

INLINE void NAME(rotate)(naive_rope how, size_t pairs, float eps, const float *restrict table, const ELEMENT *restrict q,
                         const ELEMENT *restrict w, ELEMENT *restrict q_o)
{
    const size_t step = how.half_split ? 1 : 2, apart = how.half_split ? pairs : 1;
    float squares = 0;
    for (size_t i = 0; how.norm && i < 2 * pairs; i++)
        squares += LOAD(q, i) * LOAD(q, i);
    const float scale = 1 / sqrtf(squares / (float)(2 * pairs) + eps);
    for (size_t p = 0; p < pairs; p++) {
        const size_t i = step * p, k = i + apart;
        const float a = how.norm ? LOAD(q, i) * scale * LOAD(w, i) : LOAD(q, i);
        const float b = how.norm ? LOAD(q, k) * scale * LOAD(w, k) : LOAD(q, k);
        STORE(q_o, i, a * table[p] - b * table[pairs + p]);
        STORE(q_o, k, a * table[pairs + p] + b * table[p]);
    }
}

INLINE void NAME(rope)(const rival_job *job, naive_rope how)
{
    const rival_job j = *job;
    for (size_t row = 0; row < j.rows; row++)
        for (size_t i = row * j.dim; i < (row + 1) * j.dim; i += j.head_dim)
            NAME(rotate)
    (how, j.head_dim / 2, j.eps, j.table + row * j.head_dim, (const ELEMENT *)j.x + i, j.w, (ELEMENT *)j.o + i);
}

/* Heads of one token; w: after a norm of each. */
INLINE void NAME(turn_heads)(naive_rope how, size_t heads, size_t dim, float eps, const float *restrict table,
                             const float *restrict w, const ELEMENT *restrict x, ELEMENT *restrict o)
{
    for (size_t i = 0; i < heads * dim; i += dim) {
        if (!w) {
            NAME(rotate)(how, dim / 2, eps, table, x + i, NULL, o + i);
            continue;
        }
        float squares = 0;
        for (size_t j = 0; j < dim; j++)
            squares += LOAD(x, i + j) * LOAD(x, i + j);
        const float scale = 1 / sqrtf(squares / (float)dim + eps);
        for (size_t p = 0; p < dim / 2; p++) {
            const float a = LOAD(x, i + p) * scale * w[p], b = LOAD(x, i + p + dim / 2) * scale * w[p + dim / 2];
            STORE(o, i + p, a * table[p] - b * table[dim / 2 + p]);
            STORE(o, i + p + dim / 2, a * table[dim / 2 + p] + b * table[p]);
        }
    }
}

INLINE void NAME(qkv)(const rival_job *job, naive_rope how)
{
    const rival_job j = *job;
    const size_t dim = j.head_dim, row = j.k_heads * dim;
    for (size_t t = 0; t < j.rows; t++) {
        const size_t slot = (size_t)j.slots[t];
        const float *table = j.table + t * dim;
        NAME(turn_heads)
        (how, j.dim / dim, dim, j.eps, table, how.norm ? j.q_w : NULL, (const ELEMENT *)j.x + t * j.dim,
         (ELEMENT *)j.o + t * j.dim);
        NAME(turn_heads)
        (how, j.k_heads, dim, j.eps, table, how.norm ? j.k_w : NULL, (const ELEMENT *)j.k + t * row,
         (ELEMENT *)j.k_o + slot * row);
        memcpy((ELEMENT *)j.v_o + slot * row, (const ELEMENT *)j.v + t * row, row * sizeof(ELEMENT));
    }
}
