/* Planes that are too long for a chunk, whose statistics are known and whose output goes past the cache, are streamed four at a
 * time (planes.h): planes in fours and what is left of them, of one dtype and of another, from where lines begin and from
 * elsewhere, in one share and in several.
 *
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/support.h"

/* Channels: two times four, and three; of two samples. Positions: more than a chunk, whole steps of every path, and not. */
enum { SAMPLES = 2, CHANNELS = 11, WHOLE = 4096 + 64, LINE = 64 };
static const size_t positions[] = {WHOLE, WHOLE + 1};

enum { SHIFTS = 2 }; /* of the output: a line's begin, an element further */

typedef struct planes {
    nrg_channel_norm_spec spec;
    size_t s, count;
    void *x, *y; /* y: NULL where absent */
    float w[CHANNELS], b[CHANNELS], mean[CHANNELS], variance[CHANNELS];
    nrg_channel_statistics statistics[CHANNELS];
} planes;

static void make_planes(planes *p, nrg_dtype dtype, size_t s, int has_y)
{
    uint64_t random = s + (uint64_t)dtype;
    p->spec = nrg_channel_norm_spec_batch(NRG_F32, CHANNELS, 1e-5);
    p->spec.dtype = dtype;
    p->spec.w_dtype = NRG_F32;
    p->s = s;
    p->count = SAMPLES * CHANNELS * s;
    p->x = element_tensor(p->count, dtype);
    p->y = has_y ? element_tensor(p->count, dtype) : NULL;
    for (size_t i = 0; i < p->count; i++) {
        element_set(p->x, i, dtype, (float)test_uniform(&random));
        if (has_y)
            element_set(p->y, i, dtype, (float)test_uniform(&random));
    }
    for (size_t c = 0; c < CHANNELS; c++) {
        p->w[c] = (float)(1.5 + test_uniform(&random));
        p->b[c] = (float)test_uniform(&random);
        p->mean[c] = (float)test_uniform(&random);
        p->variance[c] = (float)(1.5 + test_uniform(&random));
        p->statistics[c] = (nrg_channel_statistics){p->mean[c], 0x1p-60, p->variance[c], 1 + 0.01 * (double)c, 1000};
    }
}

/* All shares of a call, into o. */
static void normalize(planes *p, nrg_isa isa, void *o, int nth)
{
    nrg_channel_norm_args args = nrg_channel_norm_args_init(SAMPLES, p->s, p->x, p->w, p->b, o);
    args.y = p->y;
    args.store = isa == NRG_ISA_SCALAR ? NRG_STORE_KEEP : NRG_STORE_STREAM;
    if (p->spec.source == NRG_STATISTICS_GIVEN)
        args.statistics_in = p->statistics;
    else if (p->spec.source == NRG_STATISTICS_RUNNING) {
        args.running_mean_in = p->mean;
        args.running_var_in = p->variance;
    }
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    for (int ith = 0; ith < nth; ith++)
        ck_assert_int_eq(nrg_channel_norm_forward(&p->spec, &args, ith, nth), NRG_OK);
}

static void must_be_as_scalar(planes *p)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t size = p->spec.dtype == NRG_F32 ? 4 : 2, bytes = p->count * size, path_count = test_paths(paths);
    unsigned char *const expected = test_allocate(bytes, 1), *const memory = test_allocate(bytes + 3 * LINE, 1);
    unsigned char *const line = memory + LINE - (uintptr_t)memory % LINE;
    normalize(p, NRG_ISA_SCALAR, expected, 1);
    for (size_t path = 1; path < path_count; path++)
        for (size_t shift = 0; shift < SHIFTS; shift++)
            for (int nth = 1; nth <= 3; nth += 2) {
                unsigned char *const o = line + shift * size;
                memset(memory, 0x55, bytes + 3 * LINE);
                normalize(p, paths[path], o, nth);
                ck_assert_msg(memcmp(o, expected, bytes) == 0,
                              "%s: dtype %d, s %zu, statistics %d, activation %d, y %d, %d shares", nrg_isa_name(paths[path]),
                              (int)p->spec.dtype, p->s, (int)p->spec.source, (int)p->spec.activation, p->y != NULL, nth);
                for (unsigned char *at = memory; at < o; at++)
                    ck_assert_int_eq(*at, 0x55);
                for (unsigned char *at = o + bytes; at < memory + bytes + 3 * LINE; at++)
                    ck_assert_int_eq(*at, 0x55);
            }
    free(expected);
    free(memory);
}

START_TEST(planes_in_turn)
{
    static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};
    static const nrg_statistics_source sources[] = {NRG_STATISTICS_GIVEN, NRG_STATISTICS_RUNNING, NRG_STATISTICS_FOLDED};
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++)
        for (int has_y = 0; has_y < 2; has_y++) {
            planes p;
            make_planes(&p, dtypes[_i], positions[i], has_y);
            for (size_t source = 0; source < sizeof sources / sizeof sources[0]; source++) {
                p.spec.source = sources[source];
                p.spec.activation = source == 1 ? NRG_ACT_RELU : NRG_ACT_IDENTITY;
                must_be_as_scalar(&p);
            }
            free(p.x);
            free(p.y);
        }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("channel_norm: planes in turn");
    TCase *tests = test_case(suite, "planes");
    tcase_add_loop_test(tests, planes_in_turn, 0, 3);
    return test_run(suite);
}
