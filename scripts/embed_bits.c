/* Prints a hash of the library's results on every path of this machine: for embed-check.sh, which compares two builds.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include <stdio.h>

enum { ROWS = 3, DIM_MAX = 300 };

static float x[ROWS * DIM_MAX], y[ROWS * DIM_MAX], w[DIM_MAX], b[DIM_MAX], o[ROWS * DIM_MAX], r[ROWS * DIM_MAX];
static uint16_t x_16[ROWS * DIM_MAX], y_16[ROWS * DIM_MAX], o_16[ROWS * DIM_MAX];

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

static uint32_t random_state = 1;

/* Multiples of 2^-12 between -8 and 8: exact in every build. */
static void fill(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        random_state = random_state * 1664525u + 1013904223u;
        values[i] = (float)((int)(random_state >> 16) - 32768) / 4096.0f;
    }
}

/* 16-bit elements of magnitude below 2: no infinity and no NaN, neither as f16 nor as bf16. */
static void fill_16(uint16_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        random_state = random_state * 1664525u + 1013904223u;
        values[i] = (uint16_t)(random_state >> 16 & 0xbfff);
    }
}

static uint64_t hash_path(void)
{
    uint64_t hash = 0xcbf29ce484222325u;
    random_state = 1;
    for (size_t dim = 1; dim <= DIM_MAX; dim++) {
        fill(x, ROWS * dim);
        fill(y, ROWS * dim);
        fill(w, dim);
        fill(b, dim);
        if (nrg_add_layer_norm_f32(ROWS, dim, x, y, w, b, r, o, 1e-5) != NRG_OK)
            return 0;
        hash = hash_bytes(hash, r, ROWS * dim * sizeof *r);
        hash = hash_bytes(hash, o, ROWS * dim * sizeof *o);
        if (nrg_rms_norm_f32(ROWS, dim, x, w, o, 1e-6) != NRG_OK)
            return 0;
        hash = hash_bytes(hash, o, ROWS * dim * sizeof *o);
        for (int dtype = NRG_F16; dtype <= NRG_BF16; dtype++) {
            fill_16(x_16, ROWS * dim);
            fill_16(y_16, ROWS * dim);
            nrg_norm_spec spec = nrg_layer_norm_spec(dim, 1e-5);
            spec.dtype = (nrg_dtype)dtype;
            nrg_norm_args args = nrg_norm_args_init(ROWS, x_16, o_16);
            args.y = y_16;
            if (nrg_norm_forward(&spec, &args, 0, 1) != NRG_OK)
                return 0;
            hash = hash_bytes(hash, o_16, ROWS * dim * sizeof *o_16);
        }
    }
    return hash;
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
