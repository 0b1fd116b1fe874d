/* What the descriptions of nrg/channel_norm.h and nrg/channel_norm_backward.h do not say: constructors, sizes of workspaces,
 * sums of no samples, and the second phase where it has nothing to do. All bad input beside this: tests/calls/bad_input_test.c.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../harness/support.h"

enum { CHANNELS = 4, POSITIONS = 5, GROUPS = 2 };

START_TEST(constructors)
{
    const nrg_channel_norm_spec batch = nrg_channel_norm_spec_batch(NRG_F32, 6, 0.5),
                                grouped = nrg_channel_norm_spec_group(NRG_BF16, 6, 3, 0.5),
                                inference = nrg_channel_norm_spec_batch_inference(NRG_F16, 6, 0.5);
    ck_assert(batch.size == sizeof batch && batch.channels == 6 && batch.groups == 1 && batch.segment == 4096);
    ck_assert(batch.over == NRG_CHANNEL_OVER_BATCH && batch.layout == NRG_LAYOUT_NCHW && batch.source == NRG_STATISTICS_COMPUTE);
    ck_assert(batch.dtype == NRG_F32 && batch.w_dtype == NRG_DTYPE_SAME && batch.activation == NRG_ACT_IDENTITY);
    ck_assert(batch.centred && batch.eps == 0.5 && batch.momentum == 0.1);
    ck_assert(!batch.cumulative && !batch.accuracy);
    ck_assert(grouped.size == sizeof grouped && grouped.channels == 6 && grouped.groups == 3 &&
              grouped.over == NRG_CHANNEL_OVER_GROUP);
    ck_assert(grouped.centred && grouped.eps == 0.5 && grouped.layout == NRG_LAYOUT_NCHW && grouped.dtype == NRG_BF16);
    ck_assert(inference.over == NRG_CHANNEL_OVER_BATCH && inference.source == NRG_STATISTICS_RUNNING &&
              inference.dtype == NRG_F16);
    float x, w, b, o;
    const nrg_channel_norm_args a = nrg_channel_norm_args_init(3, 7, &x, &w, &b, &o);
    ck_assert(a.size == sizeof a && a.samples == 3 && a.positions == 7 && a.x == &x && a.o == &o && !a.y && a.w == &w &&
              a.b == &b && !a.mean && !a.rstd && !a.statistics && !a.running_mean && !a.running_var && !a.statistics_in &&
              !a.running_mean_in && !a.running_var_in && a.store == NRG_STORE_AUTO && !a.batches && !a.x_stride && !a.y_stride &&
              !a.o_stride);
}
END_TEST

START_TEST(workspace)
{
    static const size_t channels[] = {1, 7, 4096};
    nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(NRG_F32, CHANNELS, 1e-5);
    nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(0, 0, NULL, NULL, NULL, NULL);
    float some;
    for (size_t c = 0; c < 3; c++)
        for (size_t n = 0; n < 9000; n += n < 300 ? 1 : 97)
            for (int asked = 0; asked < 4; asked++)
                for (int over = NRG_CHANNEL_OVER_BATCH; over <= NRG_CHANNEL_OVER_GROUP; over++) {
                    const size_t each = (n + 63) / 64, blocks = n ? (n + each - 1) / each : 0;
                    const size_t sums = (size_t)(asked & 1) + (size_t)(asked >> 1);
                    size_t bytes = 1;
                    spec.channels = channels[c];
                    spec.over = (nrg_channel_over)over;
                    args.samples = n;
                    args.dw = asked & 1 ? &some : NULL;
                    args.db = asked & 2 ? &some : NULL;
                    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, &args, &bytes), NRG_OK);
                    ck_assert_uint_eq(bytes, over == NRG_CHANNEL_OVER_BATCH ? 0 : 8 * channels[c] * blocks * sums);
                    ck_assert_uint_le(blocks, 64);
                }
}
END_TEST

/* A part without samples has the sums of nothing. */
START_TEST(parts_of_no_samples)
{
    static int64_t sums[2][CHANNELS][NRG_CHANNEL_NORM_SUMS_WORDS], zero[CHANNELS][NRG_CHANNEL_NORM_SUMS_WORDS];
    static const nrg_channel_statistics statistics[CHANNELS];
    const nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(NRG_F32, CHANNELS, 1e-5);
    const nrg_channel_norm_args args = nrg_channel_norm_args_init(0, POSITIONS, NULL, NULL, NULL, NULL);
    nrg_channel_norm_backward_args back = nrg_channel_norm_backward_args_init(0, POSITIONS, NULL, NULL, NULL, NULL);
    back.statistics = statistics;
    memset(sums, 0x77, sizeof sums);
    for (int ith = 0; ith < 2; ith++) {
        ck_assert_int_eq(nrg_channel_norm_sums(&spec, &args, sums[0][0], ith, 2), NRG_OK);
        ck_assert_int_eq(nrg_channel_norm_backward_sums(&spec, &back, sums[1][0], ith, 2), NRG_OK);
    }
    ck_assert_mem_eq(sums[0], zero, sizeof zero);
    ck_assert_mem_eq(sums[1], zero, sizeof zero);
}
END_TEST

/* dw and db are sums of nothing, in the phase that has them. */
START_TEST(gradients_of_no_samples)
{
    static const float zero[CHANNELS], before[CHANNELS] = {1, 2, 3, 4};
    for (int over = NRG_CHANNEL_OVER_BATCH; over <= NRG_CHANNEL_OVER_GROUP; over++)
        for (int accumulate = 0; accumulate < 2; accumulate++)
            for (int nth = 1; nth < 7; nth++) {
                const nrg_channel_norm_spec spec = over == NRG_CHANNEL_OVER_BATCH
                                                       ? nrg_channel_norm_spec_batch(NRG_F32, CHANNELS, 1e-5)
                                                       : nrg_channel_norm_spec_group(NRG_F32, CHANNELS, GROUPS, 1e-5);
                nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(0, POSITIONS, NULL, NULL, NULL, NULL);
                float dw[CHANNELS], db[CHANNELS];
                memcpy(dw, before, sizeof dw);
                memcpy(db, before, sizeof db);
                args.dw = dw;
                args.db = db;
                args.accumulate = accumulate;
                const float *should = accumulate ? before : zero;
                for (int ith = 0; ith < nth; ith++)
                    ck_assert_int_eq(nrg_channel_norm_backward(&spec, &args, ith, nth), NRG_OK);
                const int is_done = over == NRG_CHANNEL_OVER_BATCH || nth == 1;
                ck_assert_mem_eq(dw, is_done ? should : before, sizeof dw);
                ck_assert_mem_eq(db, is_done ? should : before, sizeof db);
                for (int ith = 0; ith < nth; ith++)
                    ck_assert_int_eq(nrg_channel_norm_backward_reduce(&spec, &args, ith, nth), NRG_OK);
                ck_assert_mem_eq(dw, should, sizeof dw);
                ck_assert_mem_eq(db, should, sizeof db);
            }
}
END_TEST

/* With the args of the first phase, whatever is asked for: it does what is left, and where that is nothing, nothing. */
START_TEST(the_second_phase_in_every_case)
{
    enum { SAMPLES = 3, COUNT = SAMPLES * CHANNELS * POSITIONS };
    static float x[COUNT], d_o[COUNT], running[2][CHANNELS];
    static double space[2 * SAMPLES * CHANNELS];
    struct {
        float dx[COUNT], dw[CHANNELS], db[CHANNELS];
    } once, out, before;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(test_mix((uint64_t)i) % 2000) / 1000 - 1;
        d_o[i] = (float)(test_mix((uint64_t)i + COUNT) % 2000) / 1000 - 1;
    }
    for (int c = 0; c < CHANNELS; c++)
        running[0][c] = running[1][c] = 1;
    for (int over = 0; over < 3; over++) /* batch norm, with constant statistics as well; group norm */
        for (int asked = 0; asked < 8; asked++)
            for (nrg_dtype dtype = NRG_F32; dtype <= NRG_BF16; dtype++) {
                nrg_channel_norm_spec spec = over < 2 ? nrg_channel_norm_spec_batch(dtype, CHANNELS, 1e-5)
                                                      : nrg_channel_norm_spec_group(dtype, CHANNELS, GROUPS, 1e-5);
                nrg_channel_norm_backward_args args = nrg_channel_norm_backward_args_init(SAMPLES, POSITIONS, x, NULL, d_o, NULL);
                if (over == 1) {
                    spec.source = NRG_STATISTICS_RUNNING;
                    args.running_mean = running[0];
                    args.running_var = running[1];
                }
                args.dx = asked & 4 ? once.dx : NULL;
                args.dw = asked & 1 ? once.dw : NULL;
                args.db = asked & 2 ? once.db : NULL;
                ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, &args, &args.workspace_size), NRG_OK);
                ck_assert_uint_le(args.workspace_size, sizeof space);
                ck_assert((args.workspace_size != 0) == (over == 2 && asked & 3));
                args.workspace = args.workspace_size ? space : NULL;
                memset(&once, 0x3f, sizeof once);
                memset(&out, 0x3f, sizeof out);
                args.accumulate = asked & 1;
                ck_assert_int_eq(nrg_channel_norm_backward(&spec, &args, 0, 1), NRG_OK);
                before = once;
                ck_assert_int_eq(nrg_channel_norm_backward_reduce(&spec, &args, 0, 1), NRG_OK); /* needless, harmless */
                ck_assert_mem_eq(&once, &before, sizeof once);
                args.dx = asked & 4 ? out.dx : NULL;
                args.dw = asked & 1 ? out.dw : NULL;
                args.db = asked & 2 ? out.db : NULL;
                for (int ith = 2; ith >= 0; ith--)
                    ck_assert_int_eq(nrg_channel_norm_backward(&spec, &args, ith, 3), NRG_OK);
                memcpy(&before, &out, sizeof out);
                ck_assert_int_eq(nrg_channel_norm_backward_reduce_check(&spec, &args), NRG_OK);
                for (int ith = 1; ith >= 0; ith--)
                    ck_assert_int_eq(nrg_channel_norm_backward_reduce(&spec, &args, ith, 2), NRG_OK);
                ck_assert_mem_eq(&out, &once, sizeof out);
                ck_assert((memcmp(&out, &before, sizeof out) == 0) == (args.workspace_size == 0));
            }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("channel_norm: calls");
    TCase *tests = test_case(suite, "calls");
    tcase_add_test(tests, constructors);
    tcase_add_test(tests, workspace);
    tcase_add_test(tests, parts_of_no_samples);
    tcase_add_test(tests, gradients_of_no_samples);
    tcase_add_test(tests, the_second_phase_in_every_case);
    return test_run(suite);
}
