/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

char test_note[512];
static int quick;

int test_arguments(int argc, char **argv)
{
    int left = 0;
    for (int i = 0; i < argc; i++) {
        if (i > 0 && strcmp(argv[i], "--quick") == 0)
            quick = 1;
        else
            argv[left++] = argv[i];
    }
    return left;
}

static int is_scale(const char *name)
{
    const char *scale = getenv("NRG_TEST_SCALE");
    return scale && strcmp(scale, name) == 0;
}

int test_small(void) { return quick || is_scale("small") || test_tiny(); }

int test_tiny(void) { return is_scale("tiny"); }

size_t test_paths(nrg_isa paths[NRG_ISA_COUNT])
{
    size_t n = 0;
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        if (nrg_isa_supported((nrg_isa)isa))
            paths[n++] = (nrg_isa)isa;
    return n;
}

size_t test_kernel_dtypes(const char *op, nrg_dtype dtypes[3])
{
    static const char *const ops[] = {
#define NRG_KERNEL(family, op, job) #op,
#include "../../src/kernels.def"
#undef NRG_KERNEL
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        for (int dtype = NRG_F32; dtype <= NRG_BF16 && strcmp(ops[i], op) == 0; dtype++)
            dtypes[n++] = (nrg_dtype)dtype;
    return n;
}

/* Returns how many required paths are missing. */
static int missing_paths(void)
{
    const char *required = getenv("NRG_REQUIRE_PATHS");
    char names[256];
    int missing = 0;
    if (!required)
        return 0;
    snprintf(names, sizeof names, "%s", required);
    for (char *name = strtok(names, ", "); name; name = strtok(NULL, ", ")) {
        nrg_isa isa;
        if (nrg_isa_from_name(name, &isa) == NRG_OK && nrg_isa_supported(isa))
            continue;
        printf("FAIL %s: NRG_REQUIRE_PATHS names it, and this machine cannot run it\n", name);
        missing++;
    }
    return missing;
}

TCase *test_case(Suite *suite, const char *name)
{
    TCase *tests = tcase_create(name);
    tcase_set_timeout(tests, 1200);
    suite_add_tcase(suite, tests);
    return tests;
}

int test_run(Suite *suite)
{
    int skipped = 0;
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        if (!nrg_isa_supported((nrg_isa)isa)) {
            printf("SKIP %s: %s\n", nrg_isa_name((nrg_isa)isa),
                   nrg_isa_built((nrg_isa)isa) ? "this machine cannot run it" : "not in this build");
            skipped++;
        }
    printf("paths: %d tested, %d skipped%s\n", NRG_ISA_COUNT - skipped, skipped,
           test_small() ? "; small scale: sweeps are shortened" : "");
    int missing = missing_paths();
    fflush(stdout);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner), ran = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed == 0 && missing == 0 && ran > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void *test_shared(size_t bytes) { return host_pages(bytes, 1); }

void *test_allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        abort();
    return memory;
}

void test_must_crash(int body(const void *data), const void *data)
{
    const int end = host_in_process(body, data);
    if (end != HOST_CRASHED)
        ck_abort_msg("a kernel that leaves its buffers lived, or died of something else (%d)", end);
}

static void say_note(int signal_number)
{
    host_write_stderr("\ndied of a signal in: ");
    host_write_stderr(test_note);
    host_write_stderr("\n");
    signal(signal_number, SIG_DFL); /* which ends the process when the instruction runs again */
}

void test_note_crashes(void)
{
    static const int signals[] = {
        SIGSEGV,
        SIGILL,
        SIGFPE,
#if defined(SIGBUS)
        SIGBUS
#endif
    };
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], say_note);
}

uint64_t test_mix(uint64_t seed)
{
    seed += 0x9e3779b97f4a7c15u;
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
    return seed ^ seed >> 31;
}

size_t test_draw(uint64_t *state, size_t n)
{
    *state = test_mix(*state);
    return (size_t)((*state >> 32) % n);
}

double test_uniform(uint64_t *state) { return (double)test_draw(state, 1u << 30) / (1 << 29) - 1; }
