/* Which path runs: every set of CPU features against every NRG_ISA, forced paths, and what a process sees that starts with
 * NRG_ISA in its environment.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "../harness/control.h"
#include "../harness/host.h"
#include "../harness/support.h"

enum { FEATURE_BITS = 8 };

/* Written down again, from the header's words, and not taken from dispatch.c. */
static int runnable(nrg_isa isa, unsigned features)
{
    const unsigned avx2 = NRG_CPU_AVX2 | NRG_CPU_FMA | NRG_CPU_F16C;
    const unsigned avx512 = avx2 | NRG_CPU_AVX512F | NRG_CPU_AVX512BW | NRG_CPU_AVX512DQ | NRG_CPU_AVX512VL;
    switch (isa) {
    case NRG_ISA_SCALAR:
        return 1;
#if defined(__x86_64__) && !defined(NRG_NO_AVX2)
    case NRG_ISA_AVX2:
        return (features & avx2) == avx2;
#endif
#if defined(__x86_64__) && !defined(NRG_NO_AVX512)
    case NRG_ISA_AVX512:
        return (features & avx512) == avx512;
#endif
#if defined(__aarch64__) && !defined(NRG_NO_NEON)
    case NRG_ISA_NEON:
        return (features & NRG_CPU_NEON) != 0;
#endif
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && !defined(NRG_NO_GENERIC)
    case NRG_ISA_GENERIC:
        return 1;
#endif
    default:
        (void)features, (void)avx512;
        return 0;
    }
}

static nrg_isa best(unsigned features)
{
    static const nrg_isa order[] = {NRG_ISA_AVX512, NRG_ISA_AVX2, NRG_ISA_NEON, NRG_ISA_GENERIC, NRG_ISA_SCALAR};
    size_t i = 0;
    while (!runnable(order[i], features))
        i++;
    return order[i];
}

static const char *const values[] = {NULL,      "",         "scalar", "avx2",  "avx512", "neon",
                                     "generic", "nonsense", "AVX2",   "avx2 ", "avx",    "avx5122"};

static int names_path(const char *value, nrg_isa *isa)
{
    static const char *const names[NRG_ISA_COUNT] = {"scalar", "generic", "avx2", "avx512", "neon"};
    for (int i = 0; i < NRG_ISA_COUNT; i++)
        if (value && strcmp(value, names[i]) == 0) {
            *isa = (nrg_isa)i;
            return 1;
        }
    return 0;
}

START_TEST(every_feature_set)
{
    for (unsigned features = 0; features < 1u << FEATURE_BITS; features++) {
        ck_assert_int_eq(nrg_best_isa(features), best(features));
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            const char *value = values[i], *reason = NULL;
            nrg_isa asked, expected = best(features), chosen = nrg_choose_isa(value, features, &reason);
            int named = names_path(value, &asked), forced = named && runnable(asked, features);
            if (forced)
                expected = asked;
            if (chosen != expected || !runnable(chosen, features))
                ck_abort_msg("features 0x%x, NRG_ISA=%s: %s and not %s", features, value ? value : "(unset)",
                             nrg_isa_name(chosen), nrg_isa_name(expected));
            /* the sentence says whether NRG_ISA was followed, refused, or not there */
            ck_assert_ptr_nonnull(reason);
            int mentions = strstr(reason, "NRG_ISA") != NULL, ignored = strstr(reason, "ignored") != NULL;
            if (mentions != (value && *value) || ignored != (mentions && !forced))
                ck_abort_msg("features 0x%x, NRG_ISA=%s: reason \"%s\"", features, value ? value : "(unset)", reason);
        }
    }
}
END_TEST

START_TEST(this_machine)
{
    unsigned features = nrg_cpu_features();
    ck_assert_uint_eq(features >> FEATURE_BITS, 0);
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        ck_assert_int_eq(nrg_isa_supported((nrg_isa)isa), runnable((nrg_isa)isa, features));
    ck_assert_int_eq(nrg_isa_supported(NRG_ISA_SCALAR), 1);
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        ck_assert_int_eq(nrg_isa_built((nrg_isa)isa), runnable((nrg_isa)isa, UINT_MAX));
#if defined(__x86_64__)
    ck_assert_uint_eq(features & NRG_CPU_NEON, 0);
    /* the compiler's own look at this CPU: __builtin_cpu_supports heeds XCR0 as well */
    __builtin_cpu_init();
    ck_assert_int_eq((features & NRG_CPU_AVX2) != 0, __builtin_cpu_supports("avx2") != 0);
    ck_assert_int_eq((features & NRG_CPU_FMA) != 0, __builtin_cpu_supports("fma") != 0);
    ck_assert_int_eq((features & NRG_CPU_AVX512F) != 0, __builtin_cpu_supports("avx512f") != 0);
    ck_assert_int_eq((features & NRG_CPU_AVX512BW) != 0, __builtin_cpu_supports("avx512bw") != 0);
    ck_assert_int_eq((features & NRG_CPU_AVX512DQ) != 0, __builtin_cpu_supports("avx512dq") != 0);
    ck_assert_int_eq((features & NRG_CPU_AVX512VL) != 0, __builtin_cpu_supports("avx512vl") != 0);
#elif defined(__aarch64__)
    ck_assert_uint_eq(features, NRG_CPU_NEON);
#endif
    ck_assert_uint_gt(nrg_l2_bytes(), 0);
    ck_assert_uint_eq(nrg_l2_bytes(), nrg_l2_bytes());
    ck_assert_uint_eq(nrg_near_l3_bytes(), nrg_near_l3_bytes());
    ck_assert_msg(!nrg_near_l3_bytes() || nrg_near_l3_bytes() > nrg_l2_bytes(), "an L3 is larger than an L2");
}
END_TEST

START_TEST(names)
{
    static const char *const features[FEATURE_BITS] = {"avx2",     "fma",      "f16c",     "avx512f",
                                                       "avx512bw", "avx512dq", "avx512vl", "neon"};
    for (unsigned i = 0; i < FEATURE_BITS; i++)
        ck_assert_str_eq(nrg_cpu_feature_name(i), features[i]);
    ck_assert_ptr_null(nrg_cpu_feature_name(FEATURE_BITS));
    ck_assert_ptr_null(nrg_cpu_feature_name(~0u));
    for (int i = 0; i < NRG_ISA_COUNT; i++) {
        nrg_isa isa = (nrg_isa)NRG_ISA_COUNT;
        ck_assert_int_eq(nrg_isa_from_name(nrg_isa_name((nrg_isa)i), &isa), NRG_OK);
        ck_assert_int_eq(isa, i);
    }
    nrg_isa isa = NRG_ISA_AVX512;
    ck_assert_int_eq(nrg_isa_from_name("sse2", &isa), NRG_ERR_ISA_UNKNOWN);
    ck_assert_int_eq(nrg_isa_from_name("", &isa), NRG_ERR_ISA_UNKNOWN);
    ck_assert_int_eq(nrg_isa_from_name(NULL, &isa), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_isa_from_name("avx2", NULL), NRG_ERR_NULL);
    ck_assert_int_eq(isa, NRG_ISA_AVX512);
    ck_assert_ptr_null(nrg_isa_name((nrg_isa)NRG_ISA_COUNT));
    ck_assert_ptr_null(nrg_isa_name((nrg_isa)-1));
    ck_assert_int_eq(nrg_isa_built((nrg_isa)NRG_ISA_COUNT), 0);
    ck_assert_int_eq(nrg_isa_supported((nrg_isa)NRG_ISA_COUNT), 0);
    ck_assert_int_eq(nrg_isa_supported((nrg_isa)-1), 0);
    ck_assert_str_eq(nrg_version(), "0.4.0");
    ck_assert_int_eq(nrg_numbers_version(), NRG_NUMBERS_VERSION);
}
END_TEST

START_TEST(floating_point_environment)
{
    ck_assert_uint_eq(nrg_fp_environment(), 0);
    const unsigned usual = control();
    for (unsigned wanted = 0; wanted < 8; wanted++) {
        const unsigned flush = (wanted & 1 ? CONTROL_RESULTS : 0) | (wanted & 2 ? CONTROL_OPERANDS : 0);
        const int both = CONTROL_RESULTS == CONTROL_OPERANDS && flush != 0; /* Arm has one bit for the two */
        if ((wanted & 3 && !flush) || (wanted & 4 && !CONTROL_UP))
            continue;
        set_control(usual | flush | (wanted & 4 ? CONTROL_UP : 0));
        const unsigned found = nrg_fp_environment();
        set_control(usual);
        ck_assert_uint_eq(found, both ? wanted | 3 : wanted);
    }
    for (unsigned i = 0; i < 8; i++)
        for (unsigned j = 0; j < i; j++)
            ck_assert_str_ne(nrg_fp_environment_string(i), nrg_fp_environment_string(j));
    ck_assert_str_eq(nrg_fp_environment_string(8), "?");
}
END_TEST

START_TEST(forced_paths)
{
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++) {
        nrg_isa before = nrg_isa_active();
        const char *reason = nrg_isa_reason();
        if (nrg_isa_supported((nrg_isa)isa)) {
            ck_assert_int_eq(nrg_isa_set((nrg_isa)isa), NRG_OK);
            ck_assert_int_eq(nrg_isa_active(), isa);
            ck_assert_ptr_nonnull(strstr(nrg_isa_reason(), "nrg_isa_set"));
        } else {
            ck_assert_int_eq(nrg_isa_set((nrg_isa)isa), NRG_ERR_ISA_UNSUPPORTED);
            ck_assert_int_eq(nrg_isa_active(), before);
            ck_assert_str_eq(nrg_isa_reason(), reason);
        }
    }
    nrg_isa before = nrg_isa_active();
    ck_assert_int_eq(nrg_isa_set((nrg_isa)NRG_ISA_COUNT), NRG_ERR_ISA_UNKNOWN);
    ck_assert_int_eq(nrg_isa_set((nrg_isa)-1), NRG_ERR_ISA_UNKNOWN);
    ck_assert_int_eq(nrg_isa_active(), before);
}
END_TEST

/* The entry of a path: what a call goes through once the path is set. */
START_TEST(rows_of_paths)
{
#define ROW_OF(path, isa, unused)                                                                                                \
    if (nrg_isa_supported(isa)) {                                                                                                \
        ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);                                                                              \
        ck_assert(NRG_ACTIVE_KERNEL(norm_forward, NRG_F32) == nrg_##path##_norm_forward_f32);                                    \
        ck_assert(NRG_ACTIVE_KERNEL(norm_forward, NRG_F16) == nrg_##path##_norm_forward_f16);                                    \
        ck_assert(NRG_ACTIVE_KERNEL(norm_forward, NRG_BF16) == nrg_##path##_norm_forward_bf16);                                  \
    }
    NRG_EACH_PATH(ROW_OF, )
#undef ROW_OF
}
END_TEST

/* Every family has a name, and is there where one of its kernels is. */
START_TEST(families)
{
    static const char *const expected[] = {"norm",  "activation", "channel_norm", "rope",     "recurrent",
                                           "embed", "relative",   "score_bias",   "quantize", "softmax"};
    enum { FAMILIES = sizeof expected / sizeof expected[0] };
    int built[FAMILIES] = {0}, backward = 0;
    for (unsigned i = 0; i < FAMILIES; i++) {
        ck_assert_str_eq(nrg_family_name(i), expected[i]);
#define NRG_KERNEL(family, op, job)                                                                                              \
    built[i] |= strcmp(#family, expected[i]) == 0;                                                                               \
    backward |= strstr(#op, "backward") != NULL;
#include "kernels.def"
#undef NRG_KERNEL
        ck_assert_int_eq(nrg_family_built(expected[i]), built[i]);
    }
    ck_assert_ptr_null(nrg_family_name(FAMILIES));
    ck_assert_ptr_null(nrg_family_name(~0u));
    ck_assert_int_eq(nrg_family_built("nor"), 0);
    ck_assert_int_eq(nrg_family_built(""), 0);
    ck_assert_int_eq(nrg_family_built(NULL), 0);
    ck_assert_int_eq(nrg_backward_built(), backward);
}
END_TEST

typedef void any_kernel(void);

/* Every op has a function for every path and dtype of this build, and no two are the same. */
START_TEST(full_tables)
{
    enum {
        OPS = 0
#define NRG_KERNEL(family, op, job) +1
#define NRG_SUBKERNEL(op, name, job) +1
#include "kernels.def"
#undef NRG_KERNEL
    };
    any_kernel *all[OPS * NRG_PATHS * 3];
    size_t count = 0;
#define TAKE(op)                                                                                                                 \
    for (int dtype = NRG_F32; dtype <= NRG_BF16; dtype++)                                                                        \
        for (size_t path = 0; path < NRG_PATHS; path++)                                                                          \
            all[count++] = (any_kernel *)NRG_KERNEL_ON(path, op, dtype);
#define NRG_KERNEL(family, op, job) TAKE(op)
#define NRG_SUBKERNEL(op, name, job) TAKE(name)
#include "kernels.def"
#undef NRG_KERNEL
#undef TAKE
    ck_assert_uint_eq(count, OPS * NRG_PATHS * 3);
    for (size_t i = 0; i < count; i++) {
        ck_assert(all[i] != NULL);
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(all[i] != all[j], "kernels %zu and %zu are the same function", j, i);
    }
}
END_TEST

START_TEST(forgotten_choice_is_made_again)
{
    const char *given = getenv("NRG_ISA");
    char kept[64];
    snprintf(kept, sizeof kept, "%s", given ? given : "");
    host_set_variable("NRG_ISA", NULL);
    ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
    nrg_dispatch_forget();
    ck_assert_int_eq(nrg_isa_active(), nrg_best_isa(nrg_cpu_features()));
    ck_assert_ptr_null(strstr(nrg_isa_reason(), "NRG_ISA"));
    nrg_dispatch_forget();
    ck_assert_ptr_nonnull(strstr(nrg_isa_reason(), "best"));
    host_set_variable("NRG_ISA", "scalar");
    ck_assert_int_eq(nrg_isa_active(), nrg_best_isa(nrg_cpu_features())); /* read at load, not at every call */
    nrg_dispatch_forget();
    ck_assert_int_eq(nrg_isa_active(), NRG_ISA_SCALAR);
    ck_assert_str_eq(nrg_isa_reason(), "selected by NRG_ISA");
    /* the first thing a process does may be nrg_isa_set: first use must not undo it */
    nrg_dispatch_forget();
    nrg_isa best_here = nrg_best_isa(nrg_cpu_features());
    ck_assert_int_eq(nrg_isa_set(best_here), NRG_OK);
    ck_assert_int_eq(nrg_isa_active(), best_here);
    ck_assert_ptr_nonnull(strstr(nrg_isa_reason(), "nrg_isa_set"));
    host_set_variable("NRG_ISA", given ? kept : NULL); /* for tests after this, where they are of this process */
}
END_TEST

/* In a process of its own: prints what main found, see there. */
static void start_with(const char *value, char *line, size_t size)
{
    ck_assert_msg(host_run_self("--say-path", "NRG_ISA", value, line, size), "the child failed");
}

/* What main found, before any test. */
static nrg_isa isa_at_start;
static const char *reason_at_start;

START_TEST(this_process)
{
    const char *reason;
    ck_assert_int_eq(isa_at_start, nrg_choose_isa(getenv("NRG_ISA"), nrg_cpu_features(), &reason));
    ck_assert_str_eq(reason_at_start, reason);
}
END_TEST

START_TEST(new_processes)
{
    if (test_small()) {
        /* an emulator cannot be told here to run a new program; tests/meson.build starts this one with several NRG_ISA */
        printf("SKIP starting processes: small scale\n");
        fflush(stdout);
        return;
    }
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char line[256], expected[256];
        const char *reason;
        nrg_isa isa = nrg_choose_isa(values[i], nrg_cpu_features(), &reason);
        start_with(values[i], line, sizeof line);
        snprintf(expected, sizeof expected, "%s: %s\n", nrg_isa_name(isa), reason);
        ck_assert_str_eq(line, expected);
    }
}
END_TEST

/* More bytes than the cache holds, which is when NRG_STORE_AUTO streams: the bits of ordinary stores. */
START_TEST(larger_than_the_cache)
{
    enum { DIM = 4096 };
    size_t rows = nrg_l2_bytes() / (DIM * sizeof(float)) + 1, bytes = rows * DIM * sizeof(float);
    float *x = malloc(bytes), *o = malloc(bytes), *expected = malloc(bytes);
    ck_assert(x && o && expected);
    for (size_t i = 0; i < rows * DIM; i++)
        x[i] = (float)(test_mix(i) % 1000) / 100;
    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths);
    for (size_t path = 0; path < count; path++) {
        const nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, DIM, 1e-5);
        nrg_norm_args args = nrg_norm_args_init(rows, x, NULL, expected);
        ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
        args.store = NRG_STORE_KEEP;
        ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
        args.store = NRG_STORE_AUTO;
        args.o = o;
        memset(o, 0xff, bytes);
        ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
        if (memcmp(o, expected, bytes) != 0)
            ck_abort_msg("%s: streaming changes the bits", nrg_isa_name(paths[path]));
    }
    free(x);
    free(o);
    free(expected);
}
END_TEST

START_TEST(strings_of_statuses_and_dtypes)
{
    for (int a = NRG_OK; a <= NRG_ERR_POSITION; a++) {
        const char *text = nrg_status_string((nrg_status)a);
        ck_assert_ptr_nonnull(text);
        ck_assert_uint_gt(strlen(text), 1);
        for (int b = NRG_OK; b < a; b++)
            ck_assert_str_ne(text, nrg_status_string((nrg_status)b));
        ck_assert_str_ne(text, nrg_status_string((nrg_status)999));
    }
    static const int unknown[] = {-1, NRG_ERR_POSITION + 1, 999, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        ck_assert_uint_gt(strlen(nrg_status_string((nrg_status)unknown[i])), 1);
    ck_assert_uint_eq(nrg_dtype_size(NRG_F32), 4);
    ck_assert_uint_eq(nrg_dtype_size(NRG_F16), 2);
    ck_assert_uint_eq(nrg_dtype_size(NRG_BF16), 2);
    ck_assert_uint_eq(nrg_dtype_size(NRG_DTYPE_SAME), 0);
    ck_assert_uint_eq(nrg_dtype_size((nrg_dtype)-1), 0);
    ck_assert_uint_eq(nrg_dtype_size((nrg_dtype)4), 0);
    ck_assert_str_eq(nrg_dtype_name(NRG_F32), "f32");
    ck_assert_str_eq(nrg_dtype_name(NRG_F16), "f16");
    ck_assert_str_eq(nrg_dtype_name(NRG_BF16), "bf16");
    ck_assert_str_eq(nrg_dtype_name(NRG_DTYPE_SAME), "same");
    ck_assert_ptr_null(nrg_dtype_name((nrg_dtype)4));
}
END_TEST

int main(int argc, char **argv)
{
    argc = test_arguments(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--say-path") == 0) {
        printf("%s: %s\n", nrg_isa_name(nrg_isa_active()), nrg_isa_reason());
        return EXIT_SUCCESS;
    }
    isa_at_start = nrg_isa_active();
    reason_at_start = nrg_isa_reason();
    Suite *suite = suite_create("dispatch");
    TCase *tests = test_case(suite, "dispatch");
    tcase_add_test(tests, every_feature_set);
    tcase_add_test(tests, this_machine);
    tcase_add_test(tests, names);
    tcase_add_test(tests, strings_of_statuses_and_dtypes);
    tcase_add_test(tests, floating_point_environment);
    tcase_add_test(tests, forced_paths);
    tcase_add_test(tests, families);
    tcase_add_test(tests, rows_of_paths);
    tcase_add_test(tests, full_tables);
    tcase_add_test(tests, forgotten_choice_is_made_again);
    tcase_add_test(tests, this_process);
    tcase_add_test(tests, new_processes);
    tcase_add_test(tests, larger_than_the_cache);
    return test_run(suite);
}
