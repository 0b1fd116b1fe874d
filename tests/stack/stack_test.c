/* No call uses more than 16 KB of stack: measured on a stack of our own, painted before the call.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "../channel_norm/channel_problem.h"
#include "../norm/norm_problem.h"

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

/* The deepest of each call on each path, by dtype. */
enum { CALLS = 4 };
static size_t deepest[CALLS][NRG_ISA_COUNT][NRG_BF16 + 1];

static void report(const char *const names[], size_t calls)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    for (size_t path = 0; path < count; path++)
        for (int dtype = NRG_F32; dtype <= NRG_BF16; dtype++) {
            printf("stack, %s, %s:", nrg_isa_name(paths[path]), nrg_dtype_name((nrg_dtype)dtype));
            for (size_t i = 0; i < calls; i++) {
                printf(" %s %zu bytes%s", names[i], deepest[i][paths[path]][dtype], i + 1 < calls ? "," : "\n");
                ck_assert_uint_gt(deepest[i][paths[path]][dtype], 0);
            }
        }
    fflush(stdout);
}

static void forward(const plain_case *c, nrg_isa isa)
{
    const norm_problem p = norm_problem_of(c);
    norm_result result;
    norm_result_make(&result, &p);
    the_spec = &p.spec;
    the_args = nrg_norm_args_init(p.rows, p.x, p.w, result.o);
    the_args.y = p.y;
    the_args.z = p.z;
    the_args.b = p.b;
    the_args.r = norm_adds_after(&p) ? NULL : result.r;
    the_args.mean = result.mean;
    the_args.rstd = result.rstd;
    measure(call_forward, &deepest[p.spec.gate || p.spec.activation][isa][p.spec.dtype], isa, p.text);
    norm_result_free(&result);
}

static void backward(const plain_case *c, nrg_isa isa)
{
    norm_backward_problem p;
    norm_backward_result result;
    norm_backward_problem_make(&p, c);
    norm_backward_result_make(&result, &p);
    the_spec = &p.forward.spec;
    the_backward_args = norm_backward_args(&p, &result);
    measure(call_backward, &deepest[2][isa][the_spec->dtype], isa, p.forward.text);
    free(the_backward_args.workspace);
    norm_backward_result_free(&result);
    norm_backward_problem_free(&p);
}

START_TEST(every_call)
{
    static const char *const names[] = {"norm_forward", "with gates", "norm_backward"};
    plain_each("norm_forward", 0, 1, 1500, forward);
    plain_each("norm_backward", 0, 1, 1000, backward);
    report(names, 3);
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

static void make_sums(const channel_problem *p)
{
    channel_sums = malloc((p->sets.sets + p->spec.channels) * NRG_CHANNEL_NORM_SUMS_WORDS * sizeof *channel_sums);
    ck_assert_ptr_nonnull(channel_sums);
}

static void channel_forward_calls(const channel_problem *p, nrg_isa isa)
{
    channel_result result;
    channel_result_make(&result, p);
    channel_spec = &p->spec;
    channel_forward_args = channel_args(p, &result);
    measure(call_channel_forward, &deepest[0][isa][p->spec.dtype], isa, p->text);
    make_sums(p);
    if (p->spec.source == NRG_STATISTICS_COMPUTE)
        measure(call_channel_sums, &deepest[1][isa][p->spec.dtype], isa, p->text);
    free(channel_sums);
    channel_result_free(&result);
}

static void channel_backward_calls(const channel_problem *p, nrg_isa isa)
{
    channel_gradients result;
    channel_gradients_make(&result, p);
    channel_spec = &p->spec;
    channel_gradient_args = channel_backward_args(p, &result);
    size_t *const space = &channel_gradient_args.workspace_size;
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(channel_spec, &channel_gradient_args, space), NRG_OK);
    channel_gradient_args.workspace = malloc(*space + 1);
    ck_assert_ptr_nonnull(channel_gradient_args.workspace);
    measure(call_channel_backward, &deepest[2][isa][p->spec.dtype], isa, p->text);
    free(channel_gradient_args.workspace);
    if (p->spec.over == NRG_CHANNEL_OVER_BATCH && p->spec.source == NRG_STATISTICS_COMPUTE) {
        channel_result saved;
        channel_result_make(&saved, p);
        channel_forward(p, &saved);
        channel_gradient_args.statistics = saved.statistics;
        make_sums(p);
        measure(call_channel_backward_sums, &deepest[3][isa][p->spec.dtype], isa, p->text);
        free(channel_sums);
        channel_result_free(&saved);
    }
    channel_gradients_free(&result);
}

START_TEST(every_channel_call)
{
    static const char *const names[] = {"channel_norm_forward", "sums", "channel_norm_backward", "sums"};
    for (int i = 0; i < CHANNEL_PARTS; i++) {
        channel_each("channel_norm_forward", i, NULL, 0, NULL, channel_forward_calls);
        channel_each("channel_norm_backward", i, NULL, 0, NULL, channel_backward_calls);
    }
    report(names, 4);
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
    args.store = NRG_STORE_AUTO;
    return nrg_embed_norm_forward(&embed_norm_spec, &args, &embed_norm_args, 0, 1);
}

static nrg_status call_embed_backward(void)
{
    nrg_status status = nrg_embed_backward_order(&embed_backward_args);
    return status == NRG_OK ? nrg_embed_backward(&embed_backward_args, 0, 1) : status;
}

START_TEST(every_embed_call)
{
    enum { ROWS = 17, MOST = 4096 };
    static const size_t dims[] = {1, 17, 64, 96, 257, 1000, MOST};
    static float table[ROWS * MOST], o[ROWS * MOST], r[ROWS * MOST], w[MOST], mean[ROWS], rstd[ROWS];
    static int32_t ids[ROWS];
    static uint64_t workspace[2 * ROWS];
    nrg_embed_table tables[NRG_EMBED_TABLES];
    nrg_embed_gradient gradient;
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    size_t path_count = test_paths(paths), dtype_count = test_kernel_dtypes("embed", dtypes);
    for (size_t path = 0; path < path_count; path++)
        for (size_t dtype = 0; dtype < dtype_count; dtype++) {
            size_t forward_depth = 0, norm_depth = 0, backward_depth = 0;
            for (size_t n = 0; n < sizeof dims / sizeof dims[0]; n++)
                for (int i = 0; i < 8; i += test_small() ? 3 : 1) {
                    const int wide = i & 1, staged = i & 2;
                    embed_args = nrg_embed_args_init(dtypes[dtype], ROWS, dims[n], o);
                    embed_args.table_dtype = wide ? NRG_F32 : NRG_DTYPE_SAME;
                    embed_args.store = i & 4 ? NRG_STORE_STREAM : NRG_STORE_KEEP;
                    for (int k = 0; k < NRG_EMBED_TABLES; k++)
                        tables[k] = nrg_embed_table_init(ROWS, table, ids);
                    embed_args.tables = tables;
                    embed_args.table_count = NRG_EMBED_TABLES;
                    embed_norm_spec = nrg_norm_spec_layer(dtypes[dtype], dims[n], 1e-5);
                    embed_norm_spec.w_dtype = NRG_F32;
                    embed_norm_spec.activation = staged ? NRG_ACT_GELU : NRG_ACT_IDENTITY;
                    embed_norm_args = nrg_norm_args_init(ROWS, NULL, w, o);
                    embed_norm_args.store = embed_args.store;
                    embed_norm_args.b = w;
                    embed_norm_args.r = r;
                    embed_norm_args.mean = mean;
                    embed_norm_args.rstd = rstd;
                    embed_backward_args = nrg_embed_backward_args_init(dtypes[dtype], ROWS, dims[n], r);
                    embed_backward_args.table_dtype = embed_args.table_dtype;
                    embed_backward_args.store = embed_args.store;
                    gradient = nrg_embed_gradient_init(tables[0], o);
                    gradient.accumulate = staged != 0;
                    embed_backward_args.tables = &gradient;
                    embed_backward_args.table_count = 1;
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
