/* Rows to bytes with scales and back, by type of elements like naive_loops.h; alone, or after a norm or a gated linear unit,
 * whose row goes through a buffer of floats.
 *
 * SPDX-License-Identifier: MIT */

INLINE void NAME(quantize_rows)(const rival_job *job, naive_blocks how)
{
    const rival_job j = *job;
    float row[NAIVE_ROW];
    for (size_t n = 0; n < j.rows; n++) {
        const ELEMENT *restrict x = (const ELEMENT *)j.x + n * j.dim;
        for (size_t i = 0; i < j.dim; i++)
            row[i] = LOAD(x, i);
        put_row(how, n, j.dim, row, j.q, j.scales);
    }
}

INLINE void NAME(dequantize_rows)(const rival_job *job, naive_blocks how)
{
    const rival_job j = *job;
    const size_t block = how.block ? how.block : j.dim, blocks = j.dim / block;
    for (size_t n = 0; n < j.rows; n++) {
        const size_t row = n % how.together;
        for (size_t k = 0; k < blocks; k++) {
            const signed char *restrict q =
                (const signed char *)j.q +
                (how.block ? ((n - row) * blocks + k * how.together) * bytes_of_block(how) : n * j.dim);
            const float d = scale_of(how, row, q, j.scales + n * blocks + k);
            ELEMENT *restrict o = (ELEMENT *)j.o + n * j.dim + k * block;
            const signed char *restrict from = q + how.scale * how.together;
            for (size_t i = 0; i < block; i++)
                STORE(o, i, d * (float)from[place_of(how, row, i)]);
        }
    }
}

INLINE void NAME(rms_to_bytes)(const rival_job *job, naive_blocks how)
{
    const rival_job j = *job;
    float o[NAIVE_ROW];
    for (size_t n = 0; n < j.rows; n++) {
        const ELEMENT *restrict x = (const ELEMENT *)j.x + n * j.dim, *restrict w = j.w;
        ELEMENT *restrict r = j.y ? (ELEMENT *)j.r + n * j.dim : NULL;
        const ELEMENT *p = j.y ? r : x;
        float squares = 0;
        if (j.y) {
            const ELEMENT *restrict y = (const ELEMENT *)j.y + n * j.dim;
            for (size_t i = 0; i < j.dim; i++)
                STORE(r, i, LOAD(x, i) + LOAD(y, i));
        }
        for (size_t i = 0; i < j.dim; i++)
            squares += LOAD(p, i) * LOAD(p, i);
        const float scale = 1 / sqrtf(squares / (float)j.dim + j.eps);
        for (size_t i = 0; i < j.dim; i++)
            o[i] = LOAD(p, i) * scale * LOAD(w, i);
        put_row(how, n, j.dim, o, j.q, j.scales);
    }
}

INLINE void NAME(sandwich_to_bytes)(const rival_job *job, naive_blocks how)
{
    const rival_job j = *job;
    float o[NAIVE_ROW];
    for (size_t n = 0; n < j.rows; n++) {
        const ELEMENT *restrict w2 = j.w2;
        ELEMENT *restrict r = (ELEMENT *)j.r + n * j.dim;
        const float scale =
            NAME(sandwich_row)(j.dim, j.eps, (const ELEMENT *)j.x + n * j.dim, (const ELEMENT *)j.y + n * j.dim, j.w, r);
        for (size_t i = 0; i < j.dim; i++)
            o[i] = LOAD(r, i) * scale * LOAD(w2, i);
        put_row(how, n, j.dim, o, j.q, j.scales);
    }
}

/* Rows that follow each other without a gap are a single one to blocks that follow each other. */
INLINE void NAME(glu_to_bytes)(const rival_job *job, naive_blocks how)
{
    const rival_job j = *job;
    float o[256];
    const ELEMENT *restrict a = j.x, *restrict b = j.b;
    for (size_t at = 0; at < j.rows * j.dim; at += how.block) {
        for (size_t i = 0; i < how.block; i++)
            o[i] = activate(NRG_ACT_SILU, LOAD(a, at + i)) * LOAD(b, at + i);
        put_block(how, 0, how.block, o, (signed char *)j.q + at / how.block * bytes_of_block(how), NULL);
    }
}
