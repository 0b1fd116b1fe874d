/* Shapes, the layout of tensors, initial weights. See model.h. SPDX-License-Identifier: MIT */
#include "model.h"

#include <math.h>
#include <nrg/nrg.h>
#include <stdio.h>
#include <stdlib.h>

void require(nrg_status status, const char *what)
{
    if (status == NRG_OK)
        return;
    fprintf(stderr, "transformer: %s: %s\n", what, nrg_status_string(status));
    exit(1);
}

const char *shape_complaint(const shape *s)
{
    if (s->layers < 1 || s->layers > MOST_LAYERS)
        return "layers are from 1 to 32";
    if (s->dim < 1 || s->dim > 8192 || s->ff < 1 || s->ff > 32768)
        return "dim is from 1 to 8192, and ff from 1 to 32768";
    if (s->kv_heads < 1 || s->heads < s->kv_heads || s->heads > 256 || s->heads % s->kv_heads != 0)
        return "heads are at most 256, and a multiple of kv-heads";
    if (s->head < 2 || s->head > 1024 || s->head % 2 != 0)
        return "head is even, and from 2 to 1024";
    if (s->context < 2 || s->context > 65536)
        return "context is from 2 to 65536";
    return NULL;
}

static float *take(float **at, size_t *total, size_t size)
{
    float *taken = *at;
    *total += size;
    if (taken != NULL)
        *at += size;
    return taken;
}

size_t lay_out(const shape *s, float *base, tensors *t)
{
    tensors unused;
    size_t total = 0;
    if (t == NULL)
        t = &unused;
    t->embedding = take(&base, &total, (size_t)VOCABULARY * s->dim);
    t->norm = take(&base, &total, s->dim);
    for (size_t i = 0; i < s->layers; i++) {
        layer_tensors *l = &t->layer[i];
        l->norm1 = take(&base, &total, s->dim);
        l->qkv = take(&base, &total, s->dim * qkv_width(s));
        l->q_norm = take(&base, &total, s->head);
        l->k_norm = take(&base, &total, s->head);
        l->out = take(&base, &total, q_width(s) * s->dim);
        l->norm2 = take(&base, &total, s->dim);
        l->up = take(&base, &total, (size_t)s->dim * 2 * s->ff);
        l->down = take(&base, &total, (size_t)s->ff * s->dim);
    }
    return total;
}

uint64_t drawn(uint64_t seed, uint64_t n)
{
    uint64_t z = seed * 0xd1342543de82ef95u + (n + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t hash_of(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

/* Evenly between ± width. */
static void scatter(float *to, size_t n, float width, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)((int32_t)(drawn(seed, i) >> 40) - (1 << 23)) * 0x1p-23f * width;
}

static void fill(float *to, size_t n, float with)
{
    for (size_t i = 0; i < n; i++)
        to[i] = with;
}

/* Widths are √3 times the deviation: 1/√inputs, and those that add to the residual less by the root of how many they are. */
void draw_weights(const shape *s, float *base, uint64_t seed)
{
    tensors t;
    lay_out(s, base, &t);
    const float root3 = 1.7320508f, less = sqrtf(1.0f / (float)(2 * s->layers));
    scatter(t.embedding, (size_t)VOCABULARY * s->dim, root3 * sqrtf(1.0f / (float)s->dim), drawn(seed, 0));
    fill(t.norm, s->dim, 1);
    for (size_t i = 0; i < s->layers; i++) {
        const layer_tensors *l = &t.layer[i];
        fill(l->norm1, s->dim, 1);
        fill(l->norm2, s->dim, 1);
        fill(l->q_norm, s->head, 1);
        fill(l->k_norm, s->head, 1);
        scatter(l->qkv, s->dim * qkv_width(s), root3 * sqrtf(1.0f / (float)s->dim), drawn(seed, 4 * i + 1));
        scatter(l->out, q_width(s) * s->dim, root3 * less * sqrtf(1.0f / (float)q_width(s)), drawn(seed, 4 * i + 2));
        scatter(l->up, (size_t)s->dim * 2 * s->ff, root3 * sqrtf(1.0f / (float)s->dim), drawn(seed, 4 * i + 3));
        scatter(l->down, (size_t)s->ff * s->dim, root3 * less * sqrtf(1.0f / (float)s->ff), drawn(seed, 4 * i + 4));
    }
}
