/* What a kernel has stored past the cache is fenced before it returns: whoever reads the result next, on this thread or on one
 * that is told through an atomic, then finds it. x86 keeps such stores back otherwise; no test of values can show it, since the
 * thread that stored always reads what it stored.
 *
 * What such stores leave is also compared with what ordinary ones do, up to the sign of a NaN.
 *
 * The paths are compiled once more for this, with count_fences.h before every file. The calls are the cases of nrg check.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "../../check/hash.h"
#include "../../check/sweep.h"
#include "../../src/internal.h"
#include "../../tools/system.h"
#include "../harness/support.h"
#include "count_fences.h"

unsigned long fences_streamed, fences_pending;

/* The ops that choose how they store. All others keep to ordinary stores: a table or a sum is read again at once. */
static const char *const streaming[] = {"norm_forward",
                                        "norm_quantized",
                                        "norm_backward",
                                        "norm_sandwich",
                                        "activation",
                                        "activation_backward",
                                        "glu",
                                        "glu_backward",
                                        "channel_norm_forward",
                                        "channel_norm_backward",
                                        "rope",
                                        "norm_rope",
                                        "qkv",
                                        "embed",
                                        "embed_backward",
                                        "relative_shift",
                                        "head_bias_pair",
                                        "head_bias_pair_backward",
                                        "score_bias",
                                        "softmax",
                                        "softmax_backward"};

static int may_stream(const char *op)
{
    for (size_t i = 0; i < sizeof streaming / sizeof streaming[0]; i++)
        if (strcmp(op, streaming[i]) == 0)
            return 1;
    return 0;
}

static void *allocate(size_t bytes)
{
    void *memory = system_allocate((bytes + 63) / 64 * 64);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static void must_be_fenced(nrg_status status, const char *text)
{
    if (status != NRG_OK || fences_pending)
        ck_abort_msg("%s: %lu stores past the cache after the last fence, status %d; %s", nrg_isa_name(nrg_isa_active()),
                     fences_pending, (int)status, text);
}

static void must_be_equal(const void *streamed, const void *kept, size_t bytes, const char *text)
{
    ck_assert_msg(memcmp(streamed, kept, bytes) == 0, "%s: other bytes with stores past the cache; %s",
                  nrg_isa_name(nrg_isa_active()), text);
}

/* Stores past the cache by line of kernels.def. One share each, so that no other call's fence hides that one is missing. What
 * they leave is what ordinary stores leave. */
static void run_cases(nrg_isa isa, unsigned long *streamed)
{
    unsigned char *memory = NULL, *kept = NULL;
    size_t room = 0;
    sweep_case c;
    for (uint64_t number = 0; sweep_make(SWEEP_QUICK, number, &c); number++) {
        c.store = NRG_STORE_STREAM;
        c.shares = c.reduce_shares = 1;
        if (c.bytes > room) {
            system_free(memory);
            system_free(kept);
            room = c.bytes + c.bytes / 4;
            memory = allocate(room);
            kept = allocate(room);
        }
        sweep_fill(&c, memory);
        fences_pending = 0;
        const unsigned long before = fences_streamed;
        const nrg_status status = sweep_run(&c, memory);
        char text[SWEEP_TEXT_ROOM];
        sweep_describe(&c, text);
        must_be_fenced(status, text);
        streamed[c.kernel] += fences_streamed - before;
        c.store = NRG_STORE_KEEP;
        sweep_fill(&c, kept);
        ck_assert_int_eq(sweep_run(&c, kept), NRG_OK);
        if (sweep_hash(&c, memory, SWEEP_HASH_START) != sweep_hash(&c, kept, SWEEP_HASH_START))
            ck_abort_msg("%s: another result with stores past the cache; %s", nrg_isa_name(isa), text);
    }
    system_free(memory);
    system_free(kept);
}

/* The activations have no field to ask for it: only tensors that are too large for the cache are streamed. */
static void run_activation(const char *op, nrg_dtype dtype)
{
    const size_t bytes = 2 * nrg_l2_bytes(), n = bytes / nrg_dtype_size(dtype);
    const int backward = strcmp(op, "activation_backward") == 0;
    unsigned char *x = allocate(bytes), *o = allocate(bytes);
    for (size_t i = 0; i < bytes; i++)
        x[i] = (unsigned char)(i % 251 % 0x40); /* of any dtype a finite number */
    for (size_t off = 0; off < 2; off++) {      /* from a line on, and from the element after its first */
        unsigned char *const from = o + off * nrg_dtype_size(dtype);
        fences_pending = 0;
        must_be_fenced(backward ? nrg_activation_backward(NRG_ACT_SILU, dtype, n - off, x, x, from, 0, 1)
                                : nrg_activation_forward(NRG_ACT_SILU, dtype, n - off, x, from, 0, 1),
                       op);
        /* pieces that are small enough for the cache; of other lengths than vectors */
        for (size_t at = 0, most = bytes / 64 - 3; at < n - off; at += most) {
            const size_t count = n - off - at < most ? n - off - at : most, skip = at * nrg_dtype_size(dtype);
            static unsigned char kept[1 << 21];
            ck_assert_uint_le(count * nrg_dtype_size(dtype), sizeof kept);
            ck_assert_int_eq(backward ? nrg_activation_backward(NRG_ACT_SILU, dtype, count, x + skip, x + skip, kept, 0, 1)
                                      : nrg_activation_forward(NRG_ACT_SILU, dtype, count, x + skip, kept, 0, 1),
                             NRG_OK);
            must_be_equal(from + skip, kept, count * nrg_dtype_size(dtype), op);
        }
    }
    system_free(x);
    system_free(o);
}

/* Nor have gated linear units: two tensors, and pairs. */
static void run_glu(const char *op, nrg_dtype dtype)
{
    const size_t bytes = 2 * nrg_l2_bytes(), n = bytes / nrg_dtype_size(dtype);
    const int backward = strcmp(op, "glu_backward") == 0;
    unsigned char *x = allocate(2 * bytes), *out = allocate(2 * bytes);
    for (size_t i = 0; i < 2 * bytes; i++)
        x[i] = (unsigned char)(i % 251 % 0x40); /* of any dtype a finite number */
    for (int pairs = 0; pairs < 2; pairs++) {
        nrg_glu_args args = nrg_glu_args_init(NRG_ACT_SILU, dtype, 1, n, pairs ? NULL : x, pairs ? NULL : x + bytes, out);
        args.x = pairs ? x : NULL;
        if (backward) {
            args.o = NULL;
            args.d_o = x;
            args.da = pairs ? NULL : out;
            args.db = pairs ? NULL : out + bytes;
            args.dx = pairs ? out : NULL;
        }
        fences_pending = 0;
        must_be_fenced(backward ? nrg_glu_backward(&args, 0, 1) : nrg_glu_forward(&args, 0, 1), op);
    }
    system_free(x);
    system_free(out);
}

/* Only rows that are whole lines are streamed here, and hardly a case has such. is_normed: after a norm of each head. */
static void run_rope(nrg_dtype dtype, int is_normed)
{
    enum { TOKENS = 5, HEADS = 3, DIM = 128, ELEMENTS = TOKENS * HEADS * DIM };
    static float table[TOKENS * DIM], ones[DIM];
    static _Alignas(64) unsigned char q[ELEMENTS * sizeof(float)], o[ELEMENTS * sizeof(float)], kept[ELEMENTS * sizeof(float)];
    nrg_norm_spec norm = nrg_norm_spec_rms(NRG_F32, DIM, 1e-5);
    nrg_rope_args args = nrg_rope_args_init(dtype, TOKENS, DIM, table);
    const nrg_rope_spec spec = nrg_rope_spec_init(DIM, NRG_ROPE_NEOX, 10000);
    nrg_norm_args w = nrg_norm_args_init(TOKENS * HEADS, NULL, ones, NULL);
    for (size_t i = 0; i < DIM; i++)
        ones[i] = 1;
    for (size_t i = 0; i < TOKENS * DIM; i++)
        table[i] = (float)(i % 17) / 16;
    for (size_t i = 0; i < sizeof q; i++)
        q[i] = (unsigned char)(i % 251 % 0x40);
    norm.w_dtype = NRG_F32;
    norm.dtype = dtype;
    args.store = NRG_STORE_STREAM;
    args.q_heads = HEADS;
    args.q = q;
    args.q_o = o;
    fences_pending = 0;
    must_be_fenced(is_normed ? nrg_norm_rope_forward(&norm, &spec, &args, &w, NULL, 0, 1) : nrg_rope_forward(&spec, &args, 0, 1),
                   is_normed ? "norm_rope" : "rope");
    args.store = NRG_STORE_KEEP;
    args.q_o = kept;
    ck_assert_int_eq(
        is_normed ? nrg_norm_rope_forward(&norm, &spec, &args, &w, NULL, 0, 1) : nrg_rope_forward(&spec, &args, 0, 1), NRG_OK);
    must_be_equal(o, kept, sizeof o, is_normed ? "norm_rope" : "rope");
}

/* Rows are streamed here where all of them begin at lines, and hardly a case has such. */
static void run_softmax_backward(nrg_dtype dtype)
{
    enum { ROWS = 3, KEYS = 256, ELEMENTS = ROWS * KEYS };
    static _Alignas(64) unsigned char o[ELEMENTS * sizeof(float)], dx[ELEMENTS * sizeof(float)], kept[ELEMENTS * sizeof(float)];
    for (size_t i = 0; i < sizeof o; i++)
        o[i] = (unsigned char)(i % 251 % 0x40); /* of any dtype a finite number */
    nrg_softmax_backward_args args = nrg_softmax_backward_args_init(dtype, 1, 1, ROWS, KEYS, o, o, dx);
    args.store = NRG_STORE_STREAM;
    fences_pending = 0;
    must_be_fenced(nrg_softmax_backward(&args, 0, 1), "softmax_backward");
    args.store = NRG_STORE_KEEP;
    args.dx = kept;
    ck_assert_int_eq(nrg_softmax_backward(&args, 0, 1), NRG_OK);
    must_be_equal(dx, kept, ELEMENTS * nrg_dtype_size(dtype), "softmax_backward");
}

static void run_path(nrg_isa isa)
{
    enum { MOST = 512 };
    unsigned long streamed[MOST] = {0};
    ck_assert_int_le(sweep_kernels, MOST);
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    run_cases(isa, streamed);
    for (int kernel = 0; kernel < sweep_kernels; kernel++) {
        const char *op = sweep_kernel_op(kernel);
        const nrg_dtype dtype = sweep_kernel_dtype(kernel);
        const unsigned long before = fences_streamed;
        if (strncmp(op, "activation", 10) == 0)
            run_activation(op, dtype);
        else if (strncmp(op, "glu", 3) == 0 && strcmp(op, "glu_quantized") != 0)
            run_glu(op, dtype);
        else if (strcmp(op, "norm_rope") == 0 || strcmp(op, "rope") == 0)
            run_rope(dtype, op[0] == 'n');
        else if (strcmp(op, "softmax_backward") == 0)
            run_softmax_backward(dtype);
        streamed[kernel] += fences_streamed - before;
        if ((streamed[kernel] != 0) != may_stream(op))
            ck_abort_msg("%s: %s_%s: %lu stores past the cache", nrg_isa_name(isa), op, nrg_dtype_name(dtype), streamed[kernel]);
    }
}

/* Of paths that are compiled for it. Neither C nor GNU C has such stores. */
static int is_counted(nrg_isa isa)
{
    switch (isa) {
#ifdef COUNTED_AVX2
    case NRG_ISA_AVX2:
        return 1;
#endif
#ifdef COUNTED_AVX512
    case NRG_ISA_AVX512:
        return 1;
#endif
    default:
        return 0;
    }
}

START_TEST(kernels_end_with_a_fence)
{
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t i = test_paths(paths); i-- > 0;)
        if (is_counted(paths[i]))
            run_path(paths[i]);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("stores past the cache are fenced");
    tcase_add_test(test_case(suite, "fences"), kernels_end_with_a_fence);
    return test_run(suite);
}
