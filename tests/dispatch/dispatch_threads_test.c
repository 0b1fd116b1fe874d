/* Many threads at first use, and while another thread changes the path: the bits stay the same, and under ThreadSanitizer
 * there is no race.
 *
 * SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <string.h>

#include "internal.h"
#include "../harness/support.h"

enum { THREADS = 8, ROWS = 16, DIM = 200 };

static float x[ROWS * DIM], o[ROWS * DIM], expected[ROWS * DIM];
static nrg_isa seen[THREADS];
static const char *reasons[THREADS];
static pthread_barrier_t barrier;
static int rounds, set_paths;

/* One share of the tensor in each round; between rounds thread 0 takes the choice back. */
static void *worker(void *number)
{
    int ith = *(const int *)number;
    nrg_norm_spec spec = nrg_norm_spec_layer(NRG_F32, DIM, 1e-5);
    nrg_norm_args args = nrg_norm_args_init(ROWS, x, NULL, o);
    nrg_isa paths[NRG_ISA_COUNT];
    size_t count = test_paths(paths), wrong = 0;
    for (int round = 0; round < rounds; round++) {
        if (ith == 0) {
            memset(o, 0, sizeof o);
            nrg_dispatch_forget();
        }
        pthread_barrier_wait(&barrier);
        if (set_paths && ith % 2)
            wrong += nrg_isa_set(paths[(size_t)(round + ith) % count]) != NRG_OK;
        wrong += nrg_norm_forward(&spec, &args, ith, THREADS) != NRG_OK;
        seen[ith] = nrg_isa_active();
        reasons[ith] = nrg_isa_reason();
        pthread_barrier_wait(&barrier);
        if (ith == 0) {
            wrong += memcmp(o, expected, sizeof o) != 0;
            for (int i = 0; i < THREADS; i++)
                wrong += (!set_paths && seen[i] != seen[0]) || !nrg_isa_supported(seen[i]) || !*reasons[i];
        }
    }
    return wrong ? o : NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    rounds = test_small() ? 50 : 2000;
    for (size_t i = 0; i < ROWS * DIM; i++)
        x[i] = (float)(test_mix(i) % 1000) / 100;
    ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
    ck_assert_int_eq(nrg_layer_norm_f32(ROWS, DIM, x, NULL, NULL, expected, 1e-5), NRG_OK);
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, worker, &numbers[i]), 0);
    }
    int wrong = 0;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        wrong += result != NULL;
    }
    pthread_barrier_destroy(&barrier);
    ck_assert_int_eq(wrong, 0);
}

START_TEST(first_use)
{
    set_paths = 0;
    run_threads();
}
END_TEST

START_TEST(first_use_while_others_set_paths)
{
    set_paths = 1;
    run_threads();
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("dispatch in threads");
    TCase *tests = test_case(suite, "threads");
    tcase_add_test(tests, first_use);
    tcase_add_test(tests, first_use_while_others_set_paths);
    return test_run(suite);
}
