/* nrg/norm_parts.h: statistics, then elements, are nrg_norm_forward; statistics from elsewhere serve, too. That every path has
 * the same bits, and all layouts, is with the cases of norm_forward: every fifth of them goes in parts.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "../../check/norm/settle.h"
#include "../harness/support.h"
#include "norm_exact.h"

enum { ROWS = 9, MOST = 5000, PARTS = 3 };

static float x[ROWS * MOST], y[ROWS * MOST], z[ROWS * MOST], w[MOST], b[MOST], o[ROWS * MOST], expected[ROWS * MOST];
static float r[ROWS * MOST];
static nrg_row_statistics statistics[ROWS], merged[ROWS];

/* Rows of all kinds: plain, a far mean, huge, tiny, subnormal, constant, zero, one outlier, a NaN. */
static void set_up(size_t dim)
{
    for (size_t n = 0; n < ROWS; n++)
        for (size_t i = 0; i < dim; i++) {
            const double u = (double)(test_mix(n * dim + i + 1) % 65536) / 32768 - 1;
            static const double scale[ROWS] = {1, 1e-2, 1e30, 1e-25, 1e-41, 0, 0, 1, 1};
            x[n * dim + i] = (float)(u * scale[n] + (n == 1 ? 1e4 : n == 5 ? 3.7 : 0));
            y[n * dim + i] = (float)(u * u * scale[n]);
            z[n * dim + i] = (float)(1 - u);
        }
    x[7 * dim + dim / 2] = 1e9f;
    x[8 * dim + dim / 3] = NAN;
    for (size_t i = 0; i < dim; i++) {
        w[i] = (float)(test_mix(i + 77) % 512) / 256;
        b[i] = (float)(test_mix(i + 99) % 512) / 256 - 1;
    }
}

static void expect_parts(const nrg_norm_spec *spec, nrg_norm_args args)
{
    float mean[ROWS], rstd[ROWS], own_mean[ROWS], own_rstd[ROWS];
    args.o = expected;
    args.mean = mean;
    args.rstd = rstd;
    ck_assert_int_eq(nrg_norm_forward(spec, &args, 0, 1), NRG_OK);
    args.o = o;
    args.mean = own_mean;
    args.rstd = own_rstd;
    memset(statistics, 0xff, sizeof statistics);
    memset(o, 0xff, sizeof o);
    for (int ith = 0; ith < 2; ith++)
        ck_assert_int_eq(nrg_norm_statistics(spec, &args, statistics, ith, 2), NRG_OK);
    for (int ith = 0; ith < 3; ith++)
        ck_assert_int_eq(nrg_norm_elements(spec, &args, statistics, ith, 3), NRG_OK);
    for (size_t i = 0; i < ROWS * spec->dim; i++)
        ck_assert(memcmp(&o[i], &expected[i], sizeof *o) == 0 || (isnan(o[i]) && isnan(expected[i])));
    for (size_t n = 0; n < ROWS; n++) {
        ck_assert(mean[n] == own_mean[n] || (isnan(mean[n]) && isnan(own_mean[n])));
        ck_assert(rstd[n] == own_rstd[n] || (isnan(rstd[n]) && isnan(own_rstd[n])));
        ck_assert(mean[n] == (float)(statistics[n].mean + statistics[n].mean_low) || isnan(mean[n]));
        ck_assert(rstd[n] == (float)statistics[n].rstd || isnan(rstd[n]));
    }
    /* the same without mean and rstd: a call with no more than x, w and b goes a shorter way */
    nrg_row_statistics again[ROWS];
    args.mean = args.rstd = NULL;
    memset(again, 0xff, sizeof again);
    memset(o, 0xff, sizeof o);
    for (int ith = 0; ith < 3; ith++)
        ck_assert_int_eq(nrg_norm_statistics(spec, &args, again, ith, 3), NRG_OK);
    for (int ith = 0; ith < 2; ith++)
        ck_assert_int_eq(nrg_norm_elements(spec, &args, again, ith, 2), NRG_OK);
    for (size_t i = 0; i < ROWS * spec->dim; i++)
        ck_assert(memcmp(&o[i], &expected[i], sizeof *o) == 0 || (isnan(o[i]) && isnan(expected[i])));
    for (size_t n = 0; n < ROWS; n++)
        ck_assert(again[n].opaque == statistics[n].opaque && (again[n].rstd == statistics[n].rstd || isnan(statistics[n].rstd)));
    /* and from the sum that the statistics were made of */
    args.r = r;
    ck_assert_int_eq(nrg_norm_statistics(spec, &args, again, 0, 1), NRG_OK);
    args.r_in = r;
    args.r = NULL;
    args.x = args.y = NULL;
    memset(o, 0xff, sizeof o);
    ck_assert_int_eq(nrg_norm_elements(spec, &args, again, 0, 1), NRG_OK);
    for (size_t i = 0; i < ROWS * spec->dim; i++)
        ck_assert(memcmp(&o[i], &expected[i], sizeof *o) == 0 || (isnan(o[i]) && isnan(expected[i])));
}

START_TEST(parts_are_the_whole)
{
    static const size_t dims[] = {1, 7, 64, 300, 768, 4096, 4999};
    for (size_t d = 0; d < sizeof dims / sizeof dims[0]; d++) {
        set_up(dims[d]);
        for (int way = 0; way < 32; way++) {
            nrg_norm_spec spec = nrg_norm_spec_rms(NRG_F32, dims[d], way & 16 ? 0 : 1e-6);
            spec.centred = way & 1;
            spec.accuracy = way & 2 ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
            spec.gate = (nrg_gate)(way % 3);
            spec.activation = spec.gate ? NRG_ACT_SILU : way & 8 ? NRG_ACT_TANH : NRG_ACT_IDENTITY;
            spec.weight_offset = way & 8 ? 1.0f : 0.0f;
            spec.c = way & 4 ? 0 : 1;
            norm_settle(&spec, way & 4);
            nrg_norm_args args = nrg_norm_args_init(ROWS, x, way & 4 ? w : NULL, o);
            args.b = way & 8 ? b : NULL;
            args.y = way & 4 ? y : NULL;
            args.z = spec.gate ? z : NULL;
            expect_parts(&spec, args);
        }
    }
}
END_TEST

/* Of a row that floats serve, an RMSNorm needs no more than the float of 1/s. */
START_TEST(floats_serve_rms)
{
    enum { DIM = 1000, SERVED = 1 };
    set_up(DIM);
    const nrg_norm_spec spec = nrg_norm_spec_rms(NRG_F32, DIM, 1e-6);
    nrg_norm_args args = nrg_norm_args_init(SERVED, x, w, expected);
    float rstd[SERVED];
    args.rstd = rstd;
    ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
    statistics[0] = nrg_row_statistics_init(0, rstd[0]);
    args.o = o;
    ck_assert_int_eq(nrg_norm_elements(&spec, &args, statistics, 0, 1), NRG_OK);
    ck_assert_mem_eq(o, expected, SERVED * DIM * sizeof *o);
}
END_TEST

/* All paths change from float to double at the same given statistics. */
START_TEST(given_on_a_line)
{
    enum { DIM = 1024 };
    static const double rstds[] = {1, 0x1p40, 0x1.0000000000001p40, 0x1.8p40};
    static const double constants[] = {1, 0x1p-40, 0x1.fffffffffffffp-41, 0x1.8p-41, 0x1p40, 0x1.0000000000001p40, 0x1.8p40};
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    set_up(DIM);
    for (size_t n = 0; n < 4 * 7 * 2; n++) {
        nrg_norm_spec spec = n % 2 ? nrg_norm_spec_layer(NRG_F32, DIM, 1e-6) : nrg_norm_spec_rms(NRG_F32, DIM, 1e-6);
        const double rstd = rstds[n / 2 % 4];
        spec.c_mode = NRG_C_GIVEN;
        spec.c = 32 * constants[n / 8]; /* √1024 is 32 */
        statistics[0] = nrg_row_statistics_init(n % 2 ? 0.25f : 0, 0);
        statistics[0].rstd = rstd;
        for (size_t path = 0; path < count; path++) {
            const nrg_norm_args args = nrg_norm_args_init(1, x, w, path ? o : expected);
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            ck_assert_int_eq(nrg_norm_elements(&spec, &args, statistics, 0, 1), NRG_OK);
            if (path && memcmp(o, expected, DIM * sizeof *o) != 0)
                ck_abort_msg("%s: case %zu, 1/s %a, c/√d %a", nrg_isa_name(paths[path]), n, rstd, constants[n / 8]);
        }
    }
}
END_TEST

/* Rows over machines: sums of parts as channel norms have them, then elements of each part. */
static void expect_split(nrg_norm_spec spec, double bound)
{
    enum { DIM = 3000, EACH = DIM / PARTS };
    static float part[ROWS * EACH];
    static int64_t sums[2][ROWS * NRG_CHANNEL_NORM_SUMS_WORDS];
    static nrg_channel_statistics of_channels[ROWS];
    static quad p[DIM];
    set_up(DIM);
    memset(sums, 0, sizeof sums);
    nrg_channel_norm_spec channels = nrg_channel_norm_spec_group(NRG_F32, EACH, 1, spec.eps);
    channels.centred = spec.centred;
    channels.accuracy = spec.accuracy;
    for (size_t k = 0; k < PARTS; k++) {
        for (size_t n = 0; n < ROWS; n++)
            memcpy(part + n * EACH, x + n * DIM + k * EACH, EACH * sizeof *part);
        nrg_channel_norm_args args = nrg_channel_norm_args_init(ROWS, 1, part, NULL, NULL, NULL);
        ck_assert_int_eq(nrg_channel_norm_sums(&channels, &args, sums[1], 0, 1), NRG_OK);
        ck_assert_int_eq(nrg_channel_norm_sums_add(ROWS, sums[0], sums[1]), NRG_OK);
    }
    nrg_channel_norm_args all = nrg_channel_norm_args_init(ROWS, 1, NULL, NULL, NULL, NULL);
    all.statistics = of_channels;
    ck_assert_int_eq(nrg_channel_norm_statistics(&channels, &all, sums[0], 0, 1), NRG_OK);
    memset(merged, 0, sizeof merged);
    for (size_t n = 0; n < ROWS; n++) {
        merged[n].mean = of_channels[n].mean;
        merged[n].mean_low = of_channels[n].mean_low;
        merged[n].variance = of_channels[n].variance;
        merged[n].rstd = of_channels[n].rstd;
    }
    spec.dim = EACH;
    for (size_t k = 0; k < PARTS; k++) {
        nrg_norm_args args = nrg_norm_args_init(ROWS, x + k * EACH, w + k * EACH, o + k * EACH);
        args.x_stride[0] = args.o_stride[0] = DIM * sizeof *x;
        ck_assert_int_eq(nrg_norm_elements(&spec, &args, merged, 0, 1), NRG_OK);
    }
    for (size_t n = 0; n + 1 < ROWS; n++) {
        for (size_t i = 0; i < DIM; i++)
            p[i] = (quad)x[n * DIM + i];
        const norm_exact exact = norm_exact_of(&spec, DIM, p);
        for (size_t i = 0; i < DIM; i++) {
            const quad true_o = exact.s > 0 ? (p[i] - exact.mean) / exact.s * (quad)w[i] : 0;
            const double wrong = fabs((double)((quad)o[n * DIM + i] - true_o)),
                         unit = fabs((double)true_o) + (spec.centred ? fabs((double)w[i]) : 0);
            ck_assert_msg(wrong <= bound * 0x1p-24 * unit + 0x1p-140, "row %zu: %g, not %g", n, (double)o[n * DIM + i],
                          (double)true_o);
        }
    }
    ck_assert(isnan(o[8 * DIM]));
}

START_TEST(rows_over_machines)
{
    nrg_norm_spec spec = nrg_norm_spec_rms(NRG_F32, 1, 1e-6);
    expect_split(spec, 6);
    spec.centred = 1;
    expect_split(spec, 6);
    spec.accuracy = NRG_ACCURACY_EXACT;
    expect_split(spec, 2);
    spec.centred = 0;
    expect_split(spec, 2);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("norm: parts");
    TCase *tests = test_case(suite, "parts");
    tcase_add_test(tests, parts_are_the_whole);
    tcase_add_test(tests, floats_serve_rms);
    tcase_add_test(tests, given_on_a_line);
    tcase_add_test(tests, rows_over_machines);
    return test_run(suite);
}
