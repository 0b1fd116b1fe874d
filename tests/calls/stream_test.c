/* Rows that are stored past the cache, of every length below two lines and some above, from every multiple of 16 bytes in a line
 * on and from places between these, dense and with gaps of all kinds: on every path the bytes of the scalar path's ordinary
 * stores, gaps included. Tails of rows have stores of their own (src/template/step.h).
 *
 * What chooses its stores by its size alone, activations and gated linear units, is called as kernels. The ops that stream but
 * are not here (rotations, biases, relative positions) stream whole lines only, and are compared by fences_test, like these.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "../../src/job/activation.h"
#include "../../src/kernels.h"
#include "../harness/support.h"

enum { ROWS = 5, LINE = 64, MOST = 1100, TENSOR = ROWS * (MOST * 4 + 2 * LINE) + LINE, OUTPUTS = 3, INPUTS = 3 };

/* Rows of a case, and where they lie. */
typedef struct rows {
    nrg_dtype dtype;
    size_t dim, stride; /* stride: bytes */
    nrg_store store;
    const unsigned char *in[INPUTS]; /* dense from a line on, but for the stride */
    unsigned char *out[OUTPUTS];
    float *weights; /* MOST */
} rows;

typedef struct op {
    const char *name;
    nrg_status (*run)(const rows *r, int kind);
    int kinds;
} op;

/* ---- norms ---- */

enum { EXACT = 1, CENTRED = 2, RESIDUAL = 4, GATED = 8 };

static nrg_norm_spec norm_spec(const rows *r, int kind)
{
    nrg_norm_spec spec = kind & CENTRED ? nrg_norm_spec_layer(r->dtype, r->dim, 1e-5) : nrg_norm_spec_rms(r->dtype, r->dim, 1e-5);
    spec.w_dtype = NRG_F32;
    spec.accuracy = kind & EXACT ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    spec.gate = !(kind & GATED) ? NRG_GATE_NONE : kind & CENTRED ? NRG_GATE_PRE : NRG_GATE_POST;
    spec.activation = kind & GATED ? NRG_ACT_SILU : NRG_ACT_IDENTITY;
    return spec;
}

static nrg_status norm_forward(const rows *r, int kind)
{
    const nrg_norm_spec spec = norm_spec(r, kind);
    nrg_norm_args args = nrg_norm_args_init(ROWS, r->in[0], r->weights, r->out[0]);
    args.store = r->store;
    args.x_stride[0] = args.o_stride[0] = r->stride;
    if (kind & RESIDUAL) {
        args.y = r->in[1];
        args.r = r->out[1];
        args.y_stride[0] = args.r_stride[0] = r->stride;
    }
    if (kind & GATED) {
        args.z = r->in[2];
        args.z_stride[0] = r->stride;
    }
    return nrg_norm_forward(&spec, &args, 0, 1);
}

static nrg_status norm_backward(const rows *r, int kind)
{
    const nrg_norm_spec spec = norm_spec(r, kind);
    nrg_norm_backward_args args = nrg_norm_backward_args_init(ROWS, r->in[0], r->weights, r->in[1], r->out[0]);
    args.store = r->store;
    args.x_stride[0] = args.d_o_stride[0] = args.dx_stride[0] = r->stride;
    if (kind & RESIDUAL) {
        args.y = r->in[2];
        args.dy = r->out[1];
        args.y_stride[0] = args.dy_stride[0] = r->stride;
    }
    if (kind & GATED) {
        args.z = r->in[1];
        args.dz = r->out[2];
        args.z_stride[0] = args.dz_stride[0] = r->stride;
    }
    return nrg_norm_backward(&spec, &args, 0, 1);
}

/* ---- softmax ---- */

enum { CAUSAL = 1, LOG = 2 };

static nrg_status softmax(const rows *r, int kind)
{
    nrg_softmax_args args = nrg_softmax_args_init(r->dtype, 1, 1, ROWS, r->dim, r->in[0], r->out[0]);
    args.x_strides.row = args.o_strides.row = r->stride;
    args.store = r->store;
    args.causal = kind & CAUSAL;
    args.first_position = (int64_t)(r->dim / 2);
    args.log = kind & LOG;
    return nrg_softmax_forward(&args, 0, 1);
}

static nrg_status softmax_backward(const rows *r, int kind)
{
    nrg_softmax_backward_args args = nrg_softmax_backward_args_init(r->dtype, 1, 1, ROWS, r->dim, r->in[0], r->in[1], r->out[0]);
    args.o_strides.row = args.d_o_strides.row = args.dx_strides.row = r->stride;
    args.store = r->store;
    args.causal = kind & CAUSAL;
    args.first_position = (int64_t)(r->dim / 2);
    return nrg_softmax_backward(&args, 0, 1);
}

/* ---- embeddings ---- */

static nrg_status embed(const rows *r, int kind)
{
    nrg_embed_args args = nrg_embed_args_init(r->dtype, ROWS, r->dim, r->out[0]);
    args.store = r->store;
    args.o_stride = args.x_stride = r->stride;
    args.x = kind ? r->in[1] : NULL;
    nrg_embed_table table = nrg_embed_table_counted(ROWS, r->in[0], 0);
    args.tables = &table;
    args.table_count = 1;
    table.table_stride = r->stride;
    return nrg_embed_forward(&args, 0, 1);
}

/* ---- channels: of NCHW, planes of some rows; of NHWC, rows of channels ---- */

static nrg_status channel_norm(const rows *r, int kind)
{
    const int last = kind & 1;
    nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(r->dtype, last ? r->dim : ROWS, 1e-5);
    nrg_channel_norm_args args = nrg_channel_norm_args_init(1, last ? ROWS : r->dim, r->in[0], NULL, NULL, r->out[0]);
    spec.layout = last ? NRG_LAYOUT_NHWC : NRG_LAYOUT_NCHW;
    args.store = r->store;
    spec.activation = kind & 2 ? NRG_ACT_SILU : NRG_ACT_IDENTITY;
    return nrg_channel_norm_forward(&spec, &args, 0, 1);
}

/* ---- kernels ---- */

static nrg_status activation(const rows *r, int kind)
{
    for (size_t at = 0; at < ROWS * r->stride; at += r->stride) {
        const nrg_activation_job job = {.x = (const char *)r->in[0] + at,
                                        .d_o = kind ? (const char *)r->in[1] + at : NULL,
                                        .o = (char *)r->out[0] + at,
                                        .end = r->dim,
                                        .stream = r->store == NRG_STORE_STREAM,
                                        .activation = NRG_ACT_GELU};
        if (kind)
            NRG_ACTIVE_KERNEL(activation_backward, r->dtype)(&job);
        else
            NRG_ACTIVE_KERNEL(activation, r->dtype)(&job);
    }
    return NRG_OK;
}

enum { PAIRS = 1, LIMITED = 2 };

static nrg_status glu_rows(const rows *r, int kind, int is_backward)
{
    const int is_pairs = kind & PAIRS;
    for (size_t at = 0; at < ROWS * r->stride; at += r->stride) {
        nrg_glu_job job = {.a = (const char *)r->in[0] + at,
                           .b = is_pairs ? NULL : (const char *)r->in[1] + at,
                           .end = is_pairs ? r->dim / 2 : r->dim,
                           .stream = r->store == NRG_STORE_STREAM,
                           .activation = NRG_ACT_SILU,
                           .limit = kind & LIMITED ? 0.5f : __builtin_inff(),
                           .b_offset = -0.0f};
        if (is_backward) {
            job.d_o = (const char *)r->in[2] + at;
            job.da = (char *)r->out[0] + at;
            job.db = is_pairs ? NULL : (char *)r->out[1] + at;
            NRG_ACTIVE_KERNEL(glu_backward, r->dtype)(&job);
        } else {
            job.o = (char *)r->out[0] + at;
            NRG_ACTIVE_KERNEL(glu, r->dtype)(&job);
        }
    }
    return NRG_OK;
}

static nrg_status glu(const rows *r, int kind) { return glu_rows(r, kind, 0); }
static nrg_status glu_backward(const rows *r, int kind) { return glu_rows(r, kind, 1); }

static const op ops[] = {{"norm_forward", norm_forward, 16},
                         {"norm_backward", norm_backward, 16},
                         {"softmax", softmax, 4},
                         {"softmax_backward", softmax_backward, 2},
                         {"embed", embed, 2},
                         {"channel_norm", channel_norm, 4},
                         {"activation", activation, 2},
                         {"glu", glu, 4},
                         {"glu_backward", glu_backward, 4}};

/* Lines of these numbers begin a tensor: multiples of 16, and places between them. */
static const size_t places[] = {0, 16, 32, 48, 4, 36};

/* Bytes behind a row, whose stride is then a multiple of 16 or of 64, or anything. */
enum { DENSE, TO_16, TO_64, TO_64_AND_MORE, ANY_GAP, GAPS };

static size_t stride_of(size_t bytes, size_t element, int gap)
{
    switch (gap) {
    case TO_16:
        return (bytes + 15) / 16 * 16 + 16;
    case TO_64:
        return (bytes + 63) / 64 * 64;
    case TO_64_AND_MORE:
        return (bytes + 63) / 64 * 64 + 64;
    case ANY_GAP:
        return bytes + 3 * element;
    default:
        return bytes;
    }
}

static size_t dim_at(size_t i)
{
    return i < 66 ? i + 1 : i == 66 ? 127 : i == 67 ? 136 : i == 68 ? 250 : i == 69 ? 267 : i == 70 ? 520 : 1012;
}

enum { DIMS = 72 };

static _Alignas(64) unsigned char input[INPUTS][TENSOR], expected[OUTPUTS][TENSOR], got[OUTPUTS][TENSOR];

static void run(const op *o, rows *r, int kind, nrg_isa isa, nrg_store store, unsigned char to[OUTPUTS][TENSOR], size_t place)
{
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    r->store = store;
    for (int i = 0; i < OUTPUTS; i++) {
        memset(to[i], 0xa5, TENSOR);
        r->out[i] = to[i] + place;
    }
    const nrg_status status = o->run(r, kind);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", o->name, nrg_status_string(status));
}

/* _i: of ops. */
START_TEST(rows_past_the_cache)
{
    static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};
    const op *o = &ops[_i];
    static float weights[MOST];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    uint64_t random = 7;
    for (size_t i = 0; i < MOST; i++)
        weights[i] = 0.5f + (float)(i % 61) / 61;
    for (size_t d = 0; d < 3; d++) {
        rows r = {.dtype = dtypes[d], .weights = weights};
        const size_t element = nrg_dtype_size(r.dtype);
        for (int i = 0; i < INPUTS; i++) {
            for (size_t at = 0; at < TENSOR; at += 2) { /* of any dtype numbers near 1 or -1, whose lower halves are any */
                const uint16_t any = (uint16_t)test_draw(&random, 1 << 16), top = r.dtype == NRG_F16 ? 0x3800 : 0x3f80;
                const uint16_t half = r.dtype == NRG_F32 && at % 4 == 0 ? any : (uint16_t)(top | (any & 0x807f));
                memcpy(&input[i][at], &half, 2);
            }
            r.in[i] = input[i];
        }
        /* as many combinations as there are, in some thousands of turns: each has its own dim, gap, place and kind */
        for (size_t dim = 0; dim < DIMS; dim++)
            for (int gap = 0; gap < GAPS; gap++)
                for (int kind = 0; kind < o->kinds; kind++) {
                    const size_t place = places[(dim + (size_t)gap * 5 + (size_t)kind * 7) % (sizeof places / sizeof *places)];
                    if (test_small() && (dim + (size_t)kind) % 8)
                        continue;
                    r.dim = dim_at(dim);
                    r.stride = stride_of(r.dim * element, element, gap);
                    run(o, &r, kind, NRG_ISA_SCALAR, NRG_STORE_KEEP, expected, place);
                    for (size_t p = 1; p < count; p++) {
                        run(o, &r, kind, paths[p], NRG_STORE_STREAM, got, place);
                        for (int i = 0; i < OUTPUTS; i++)
                            if (memcmp(expected[i], got[i], TENSOR) != 0)
                                ck_abort_msg("%s %s, %s: rows of %zu, %zu bytes apart, from byte %zu of a line on, kind %d: "
                                             "output %d is not the scalar path's, or what lies between rows",
                                             o->name, nrg_dtype_name(r.dtype), nrg_isa_name(paths[p]), r.dim, r.stride, place,
                                             kind, i);
                    }
                }
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("rows past the cache");
    TCase *tests = test_case(suite, "rows");
    tcase_add_loop_test(tests, rows_past_the_cache, 0, sizeof ops / sizeof ops[0]);
    return test_run(suite);
}
