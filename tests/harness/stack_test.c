/* No call uses more than 16 KB of stack: measured on a stack of our own, painted before the call.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "../channel/channel_norm_backward_case.h"
#include "../norm/norm_backward_case.h"

enum { LIMIT = 16 << 10, STACK = 256 << 10, PAINT = 0x5c };

static unsigned char *stack;
static ucontext_t here, there;
static nrg_status (*the_call)(void);
static nrg_status the_status;
static size_t deliberate;

/* Uses the stack it is told to, for the test of the measurement. */
static __attribute__((noinline)) void use_stack(size_t bytes)
{
    unsigned char block[1024];
    memset(block, 1, sizeof block);
    __asm__ volatile("" : : "r"(block) : "memory"); /* read, for all the compiler knows, here and after the call */
    if (bytes > sizeof block)
        use_stack(bytes - sizeof block);
    __asm__ volatile("" : : "r"(block) : "memory");
}

static void on_stack(void)
{
    if (deliberate)
        use_stack(deliberate);
    else
        the_status = the_call();
}

/* How deep a call goes. */
static size_t depth(void)
{
    memset(stack, PAINT, STACK);
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK;
    there.uc_link = &here;
    makecontext(&there, on_stack, 0);
    ck_assert_int_eq(swapcontext(&here, &there), 0);
    size_t untouched = 0;
    while (untouched < STACK && stack[untouched] == PAINT)
        untouched++;
    return STACK - untouched;
}

static void set_up(void)
{
    stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(stack, MAP_FAILED);
}

static void tear_down(void) { munmap(stack, STACK); }

START_TEST(the_measurement_sees_depth)
{
    deliberate = 40 << 10;
    size_t deep = depth();
    deliberate = 0;
    ck_assert_uint_ge(deep, 40 << 10);
    ck_assert_uint_lt(deep, 80 << 10);
}
END_TEST

static void measure(nrg_status call(void), size_t *deepest, nrg_isa isa, const char *what)
{
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    the_call = call;
    if (*deepest == 0)
        depth(); /* the first call also resolves symbols, on the dynamic linker's account */
    size_t deep = depth();
    *deepest = deep > *deepest ? deep : *deepest;
    if (the_status != NRG_OK || deep > LIMIT)
        ck_abort_msg("%s: %zu bytes of stack, status %d; %s", nrg_isa_name(isa), deep, (int)the_status, what);
}

/* What the calls below are made with. */
static const nrg_norm_spec *the_spec;
static nrg_norm_args the_args;
static nrg_norm_backward_args the_backward_args;

static nrg_status call_forward(void) { return nrg_norm_forward(the_spec, &the_args, 0, 1); }

static nrg_status call_backward(void)
{
    nrg_status status = nrg_norm_backward(the_spec, &the_backward_args, 0, 1);
    return status == NRG_OK ? nrg_norm_backward_reduce(the_spec, &the_backward_args, 0, 1) : status;
}

static void forward(const norm_options *options, norm_problem *problem, nrg_isa isa, size_t *deepest)
{
    norm_result result;
    norm_result_make(&result, problem);
    the_spec = &problem->spec;
    the_args = nrg_norm_args_init(problem->rows, problem->x, result.o);
    the_args.y = problem->y;
    the_args.z = problem->z;
    the_args.w = problem->w;
    the_args.b = problem->b;
    the_args.r = options->residual == RESIDUAL_AFTER ? NULL : result.r;
    the_args.mean = result.mean;
    the_args.rstd = result.rstd;
    measure(call_forward, deepest, isa, problem->text);
    norm_result_free(&result);
}

static void backward(norm_backward_problem *problem, nrg_isa isa, size_t *deepest)
{
    norm_backward_result result;
    norm_backward_result_make(&result, problem);
    the_spec = &problem->forward.spec;
    nrg_norm_backward_args args = nrg_norm_backward_args_init(problem->forward.rows, problem->forward.x, problem->d_o, result.dx);
    args.y = problem->forward.y;
    args.z = problem->forward.z;
    args.w = problem->forward.w;
    args.b = problem->forward.b;
    args.dr_in = problem->dr_in;
    args.dy = result.dy;
    args.dz = args.z ? result.dz : NULL;
    args.dw = result.dw;
    args.db = result.db;
    args.accumulate = 0;
    ck_assert_int_eq(nrg_norm_backward_workspace(the_spec, &args, &args.workspace_size), NRG_OK);
    args.workspace = malloc(args.workspace_size);
    ck_assert_ptr_nonnull(args.workspace);
    the_backward_args = args;
    measure(call_backward, deepest, isa, problem->text);
    free(args.workspace);
    norm_backward_result_free(&result);
}

START_TEST(every_call)
{
    static const size_t dims[] = {1, 17, 64, 80, 96, 128, 256, 257, 1000, 4096, 12289};
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    size_t path_count = test_paths(paths), dtype_count = test_kernel_dtypes("norm_forward", dtypes);
    for (size_t path = 0; path < path_count; path++)
        for (size_t dtype = 0; dtype < dtype_count; dtype++) {
            size_t plain = 0, gated = 0, back = 0;
            for (size_t n = 0; n < sizeof dims / sizeof dims[0]; n++)
                for (size_t number = 0; number < norm_option_count(); number += test_small() ? 211 : dims[n] > 300 ? 101 : 19) {
                    norm_options options;
                    if (!norm_options_at(&options, number, dtypes[dtype]))
                        continue;
                    norm_options_draw_gate(&options, dims[n], number);
                    norm_backward_problem problem;
                    norm_backward_problem_make(&problem, &options, dims[n], dims[n] > 300 ? 2 : 33, NULL, 0, number);
                    problem.forward.spec.store = (nrg_store)(number % 3);
                    forward(&options, &problem.forward, paths[path], norm_options_gated(&options) ? &gated : &plain);
                    backward(&problem, paths[path], &back);
                    norm_backward_problem_free(&problem);
                }
            printf("stack, %s, %s: norm_forward %zu bytes, with gates %zu, norm_backward %zu\n", nrg_isa_name(paths[path]),
                   nrg_dtype_name(dtypes[dtype]), plain, gated, back);
            ck_assert(plain && gated && back);
        }
    fflush(stdout);
}
END_TEST

static const nrg_channel_norm_spec *channel_spec;
static nrg_channel_norm_args channel_forward_args;
static nrg_channel_norm_backward_args channel_gradient_args;
static int64_t *channel_sums;

static nrg_status call_channel_forward(void) { return nrg_channel_norm_forward(channel_spec, &channel_forward_args, 0, 1); }

static nrg_status call_channel_sums(void)
{
    nrg_status status = nrg_channel_norm_sums(channel_spec, &channel_forward_args, channel_sums, 0, 1);
    return status == NRG_OK ? nrg_channel_norm_statistics(channel_spec, &channel_forward_args, channel_sums, 0, 1) : status;
}

static nrg_status call_channel_backward(void)
{
    nrg_status status = nrg_channel_norm_backward(channel_spec, &channel_gradient_args, 0, 1);
    return status == NRG_OK ? nrg_channel_norm_backward_reduce(channel_spec, &channel_gradient_args, 0, 1) : status;
}

static nrg_status call_channel_backward_sums(void)
{
    return nrg_channel_norm_backward_sums(channel_spec, &channel_gradient_args, channel_sums, 0, 1);
}

/* deepest: of the forward pass, of its sums, of the backward pass, of its sums. */
static void channel_calls(const channel_options *options, const channel_shape *shape, nrg_isa isa, uint64_t seed,
                          size_t deepest[4])
{
    channel_problem problem;
    channel_backward_problem back;
    channel_result result;
    channel_backward_result gradients;
    channel_problem_make(&problem, options, shape, NULL, 0, seed);
    channel_result_make(&result, &problem);
    problem.spec.store = (nrg_store)(seed % 3);
    channel_spec = &problem.spec;
    channel_forward_args = channel_args(&problem, &result);
    measure(call_channel_forward, &deepest[0], isa, problem.text);
    channel_sums = malloc((problem.sets + shape->c) * NRG_SUMS_WORDS * sizeof *channel_sums);
    ck_assert_ptr_nonnull(channel_sums);
    if (problem.spec.statistics == NRG_STATISTICS_COMPUTE)
        measure(call_channel_sums, &deepest[1], isa, problem.text);
    channel_result_free(&result);
    channel_problem_free(&problem);

    channel_backward_problem_make(&back, options, shape, NULL, 0, seed);
    channel_backward_result_make(&gradients, &back);
    back.accumulate = 0;
    back.forward.spec.store = (nrg_store)(seed % 3);
    channel_spec = &back.forward.spec;
    nrg_channel_norm_backward_args args = channel_backward_args(&back, &gradients);
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(channel_spec, &args, &args.workspace_size), NRG_OK);
    args.workspace = args.workspace_size ? malloc(args.workspace_size) : NULL;
    ck_assert(args.workspace || !args.workspace_size);
    channel_gradient_args = args;
    measure(call_channel_backward, &deepest[2], isa, back.text);
    if (options->kind == CHANNEL_BATCH && back.statistics) {
        channel_gradient_args.statistics = back.statistics;
        measure(call_channel_backward_sums, &deepest[3], isa, back.text);
    }
    free(args.workspace);
    free(channel_sums);
    channel_backward_result_free(&gradients);
    channel_backward_problem_free(&back);
}

START_TEST(every_channel_call)
{
    static const channel_shape shapes[] = {{.n = 2, .c = 6, .s = 1, .groups = 2},     {.n = 3, .c = 70, .s = 7, .groups = 7},
                                           {.n = 2, .c = 64, .s = 49, .groups = 8},   {.n = 5, .c = 10, .s = 130, .groups = 5},
                                           {.n = 2, .c = 33, .s = 257, .groups = 11}, {.n = 1, .c = 300, .s = 64, .groups = 10},
                                           {.n = 1, .c = 3, .s = 9000, .groups = 1},  {.n = 2, .c = 1030, .s = 9, .groups = 10}};
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    size_t path_count = test_paths(paths), dtype_count = test_kernel_dtypes("channel_norm_forward", dtypes);
    for (size_t path = 0; path < path_count; path++)
        for (size_t dtype = 0; dtype < dtype_count; dtype++) {
            size_t deepest[4] = {0};
            for (size_t shape = 0; shape < sizeof shapes / sizeof shapes[0]; shape++)
                for (uint64_t i = 0; i < (test_small() ? 16 : 64); i++) {
                    channel_options options;
                    channel_options_draw(&options, &shapes[shape], dtypes[dtype], test_mix(shape * 4096 + i));
                    channel_calls(&options, &shapes[shape], paths[path], i, deepest);
                }
            printf("stack, %s, %s: channel_norm_forward %zu bytes, sums %zu, channel_norm_backward %zu, sums %zu\n",
                   nrg_isa_name(paths[path]), nrg_dtype_name(dtypes[dtype]), deepest[0], deepest[1], deepest[2], deepest[3]);
            ck_assert(deepest[0] && deepest[1] && deepest[2] && deepest[3]);
        }
    fflush(stdout);
}
END_TEST

static nrg_embed_args embed_args;
static nrg_norm_spec embed_norm_spec;
static nrg_norm_args embed_norm_args;
static nrg_embed_backward_args embed_backward_args;

static nrg_status call_embed(void) { return nrg_embed_forward(&embed_args, 0, 1); }

static nrg_status call_embed_norm(void)
{
    nrg_embed_args args = embed_args;
    args.o = NULL;
    return nrg_embed_norm_forward(&args, &embed_norm_spec, &embed_norm_args, 0, 1);
}

static nrg_status call_embed_backward(void)
{
    nrg_status status = nrg_embed_backward_order(&embed_backward_args);
    return status == NRG_OK ? nrg_embed_backward(&embed_backward_args, 0, 1) : status;
}

/* Of structs of a first version, so that the calls have copies of them on their stack. */
START_TEST(every_embed_call)
{
    enum { ROWS = 17, MOST = 4096 };
    static const size_t dims[] = {1, 17, 64, 96, 257, 1000, MOST};
    static float table[ROWS * MOST], o[ROWS * MOST], r[ROWS * MOST], w[MOST], mean[ROWS], rstd[ROWS];
    static int32_t ids[ROWS];
    static uint64_t workspace[2 * ROWS];
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    size_t path_count = test_paths(paths), dtype_count = test_kernel_dtypes("embed", dtypes);
    for (size_t path = 0; path < path_count; path++)
        for (size_t dtype = 0; dtype < dtype_count; dtype++) {
            size_t forward_depth = 0, norm_depth = 0, backward_depth = 0;
            for (size_t n = 0; n < sizeof dims / sizeof dims[0]; n++)
                for (int i = 0; i < 8; i += test_small() ? 3 : 1) {
                    const int wide = i & 1, staged = i & 2;
                    embed_args = nrg_embed_args_init(ROWS, dims[n], o);
                    embed_args.dtype = dtypes[dtype];
                    embed_args.table_dtype = wide ? NRG_F32 : NRG_DTYPE_SAME;
                    embed_args.store = i & 4 ? NRG_STORE_STREAM : NRG_STORE_KEEP;
                    for (int k = 0; k < NRG_EMBED_TABLES; k++)
                        embed_args.tables[k] = nrg_embed_by_ids(table, ROWS, ids);
                    embed_norm_spec = nrg_layer_norm_spec(dims[n], 1e-5);
                    embed_norm_spec.size = offsetof(nrg_norm_spec, groups);
                    embed_norm_spec.dtype = dtypes[dtype];
                    embed_norm_spec.w_dtype = NRG_F32;
                    embed_norm_spec.activation = staged ? NRG_ACT_GELU : NRG_ACT_IDENTITY;
                    embed_norm_spec.store = embed_args.store;
                    embed_norm_args = nrg_norm_args_init(ROWS, NULL, o);
                    embed_norm_args.size = offsetof(nrg_norm_args, z);
                    embed_norm_args.w = embed_norm_args.b = w;
                    embed_norm_args.r = r;
                    embed_norm_args.mean = mean;
                    embed_norm_args.rstd = rstd;
                    embed_backward_args = nrg_embed_backward_args_init(ROWS, dims[n], r, ROWS, o);
                    embed_backward_args.dtype = dtypes[dtype];
                    embed_backward_args.table_dtype = embed_args.table_dtype;
                    embed_backward_args.store = embed_args.store;
                    embed_backward_args.accumulate = staged != 0;
                    embed_backward_args.ids = ids;
                    embed_backward_args.workspace = workspace;
                    embed_backward_args.workspace_size = sizeof workspace;
                    measure(call_embed, &forward_depth, paths[path], "embed");
                    measure(call_embed_norm, &norm_depth, paths[path], "embed_norm");
                    measure(call_embed_backward, &backward_depth, paths[path], "embed_backward");
                }
            printf("stack, %s, %s: embed %zu bytes, embed_norm %zu, embed_backward %zu\n", nrg_isa_name(paths[path]),
                   nrg_dtype_name(dtypes[dtype]), forward_depth, norm_depth, backward_depth);
        }
    fflush(stdout);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
#ifdef TEST_SANITIZED
    printf("SKIP stack use: a sanitizer's instrumentation uses more than the code it watches\n");
    return 77; /* meson's word for skipped */
#endif
#ifndef __OPTIMIZE__
    printf("SKIP stack use: in unoptimized code every value has a place of its own, and the limit is not for that\n");
    return 77;
#endif
    Suite *suite = suite_create("stack use");
    TCase *tests = test_case(suite, "stack");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_measurement_sees_depth);
    tcase_add_test(tests, every_call);
    tcase_add_test(tests, every_channel_call);
    tcase_add_test(tests, every_embed_call);
    return test_run(suite);
}
