/* Bad input: every refusal norm.h lists gives its status and writes nothing; what the header allows is not refused.
 * Sizes of structs, strides, alignment, overflow, shares and places come from the descriptions: tests/calls/bad_input_test.c.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/support.h"

/* A call that is right, with every operand in a zone of its own, and room around each for others to be moved into it. */
enum { DIM = 8, ROWS = 3, ZONE = 1024, FIRST = 512, ZONES = 9 };
enum { X, Y, Z, W, B, O, R, MEAN, RSTD };

static _Alignas(64) unsigned char memory[ZONES * ZONE];
static unsigned char before[ZONES * ZONE];
static nrg_norm_spec spec;
static nrg_norm_args args;

static unsigned char *zone(int operand) { return memory + operand * ZONE + FIRST; }
static float *floats(int operand) { return (float *)(void *)zone(operand); }

static void set_up(void)
{
    for (size_t i = 0; i < sizeof memory / sizeof(float); i++)
        ((float *)(void *)memory)[i] = (float)(test_mix(i) % 2000) / 1000 - 1;
    spec = nrg_layer_norm_spec(DIM, 1e-5);
    spec.gate = NRG_GATE_POST;
    spec.activation = NRG_ACT_RELU;
    args = nrg_norm_args_init(ROWS, zone(X), zone(O));
    args.y = zone(Y);
    args.z = zone(Z);
    args.w = zone(W);
    args.b = zone(B);
    args.r = zone(R);
    args.mean = floats(MEAN);
    args.rstd = floats(RSTD);
}

static void refused_share(nrg_status status, int ith, int nth, int line)
{
    memcpy(before, memory, sizeof before);
    nrg_status got = nrg_norm_forward(&spec, &args, ith, nth);
    if (got != status)
        ck_abort_msg("line %d: status %d (%s) and not %d (%s)", line, (int)got, nrg_status_string(got), (int)status,
                     nrg_status_string(status));
    if (memcmp(before, memory, sizeof before) != 0)
        ck_abort_msg("line %d: a refused call wrote something", line);
}

/* The call as it stands now is refused, whichever share asks; then everything is right again. */
static void refused(nrg_status status, int line)
{
    refused_share(status, 0, 1, line);
    refused_share(status, 2, 3, line);
    refused_share(status, 4, 5, line); /* a share without rows checks all the same */
    set_up();
}

static void accepted(int line)
{
    nrg_status got = nrg_norm_forward(&spec, &args, 0, 1);
    if (got != NRG_OK)
        ck_abort_msg("line %d: status %d (%s)", line, (int)got, nrg_status_string(got));
    set_up();
}

#define REFUSED(status) refused(status, __LINE__)
#define ACCEPTED() accepted(__LINE__)

START_TEST(right_call)
{
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
    for (int operand = 0; operand < ZONES; operand++) {
        size_t bytes = operand >= MEAN ? ROWS * sizeof(float) : ROWS * DIM * sizeof(float);
        int changed = memcmp(before + operand * ZONE, memory + operand * ZONE, ZONE) != 0;
        ck_assert_int_eq(changed, operand >= O);
        memcpy(before + operand * ZONE + FIRST, zone(operand), bytes);
    }
    ck_assert_mem_eq(before, memory, sizeof memory);
}
END_TEST

START_TEST(null)
{
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(nrg_norm_forward(NULL, &args, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_norm_forward(&spec, NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_norm_forward(NULL, NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_mem_eq(before, memory, sizeof memory);
    args.x = NULL;
    REFUSED(NRG_ERR_NULL);
    args.o = NULL;
    REFUSED(NRG_ERR_NULL);
    args.z = NULL;
    REFUSED(NRG_ERR_NULL);
    spec.gate = NRG_GATE_PRE;
    args.z = NULL;
    REFUSED(NRG_ERR_NULL);
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    args.r = NULL;
    args.y = NULL;
    REFUSED(NRG_ERR_NULL);
    args.y = args.w = args.b = NULL;
    args.r = NULL;
    args.mean = args.rstd = NULL;
    ACCEPTED();
}
END_TEST

START_TEST(null_in_shortcuts)
{
    float *x = floats(X), *y = floats(Y), *o = floats(O), *r = floats(R);
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(nrg_rms_norm_f32(ROWS, DIM, NULL, NULL, o, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_rms_norm_f32(ROWS, DIM, x, NULL, NULL, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_layer_norm_f32(ROWS, DIM, NULL, NULL, NULL, o, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_layer_norm_f32(ROWS, DIM, x, NULL, NULL, NULL, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_l2_norm_f32(ROWS, DIM, NULL, o, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_l2_norm_f32(ROWS, DIM, x, NULL, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_add_rms_norm_f32(ROWS, DIM, x, NULL, NULL, r, o, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_add_rms_norm_f32(ROWS, DIM, NULL, y, NULL, r, o, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_add_layer_norm_f32(ROWS, DIM, x, NULL, NULL, NULL, r, o, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_add_layer_norm_f32(ROWS, DIM, x, y, NULL, NULL, r, NULL, 1e-5), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_rms_norm_f32(ROWS, 0, x, NULL, o, 1e-5), NRG_ERR_DIM);
    ck_assert_int_eq(nrg_add_layer_norm_f32(ROWS, DIM, x, y, NULL, NULL, o, o, 1e-5), NRG_ERR_OVERLAP);
    ck_assert_int_eq(nrg_l2_norm_f32(ROWS, DIM, x, o, -1), NRG_ERR_EPS);
    ck_assert_mem_eq(before, memory, sizeof memory);
    ck_assert_int_eq(nrg_rms_norm_f32(0, DIM, NULL, NULL, NULL, 1e-5), NRG_OK);
    ck_assert_int_eq(nrg_add_rms_norm_f32(0, DIM, NULL, NULL, NULL, NULL, NULL, 1e-5), NRG_OK);
    ck_assert_int_eq(nrg_layer_norm_f32(0, DIM, NULL, NULL, NULL, NULL, 1e-5), NRG_OK);
    ck_assert_int_eq(nrg_add_layer_norm_f32(0, DIM, NULL, NULL, NULL, NULL, NULL, NULL, 1e-5), NRG_OK);
    ck_assert_int_eq(nrg_l2_norm_f32(0, DIM, NULL, NULL, 1e-5), NRG_OK);
    ck_assert_mem_eq(before, memory, sizeof memory);
}
END_TEST

/* The structs of the first version end where gates begin. */
enum {
    SPEC_1 = offsetof(nrg_norm_spec, reserved) + sizeof(uint32_t),
    ARGS_1 = offsetof(nrg_norm_args, r_stride) + sizeof(size_t)
};

/* What a struct of the first version has behind it is not the caller's. A gate is then none, groups are 1, and z is not there. */
START_TEST(structs_of_the_first_version)
{
    unsigned char old_spec[sizeof spec], old_args[sizeof args];
    spec.gate = NRG_GATE_NONE;
    spec.activation = NRG_ACT_IDENTITY;
    args.z = NULL;
    ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
    memcpy(before, memory, sizeof before);
    for (int old = 1; old < 4; old++) {
        set_up();
        spec.gate = NRG_GATE_NONE;
        spec.activation = NRG_ACT_IDENTITY;
        args.z = NULL;
        spec.size = old & 1 ? SPEC_1 : sizeof spec;
        args.size = old & 2 ? ARGS_1 : sizeof args;
        memcpy(old_spec, &spec, sizeof spec);
        memcpy(old_args, &args, sizeof args);
        memset(old_spec + spec.size, 0xa5, sizeof spec - spec.size);
        memset(old_args + args.size, 0xa5, sizeof args - args.size);
        memcpy(&spec, old_spec, sizeof spec);
        memcpy(&args, old_args, sizeof args);
        ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
        ck_assert_mem_eq(before, memory, sizeof memory);
    }
    /* a gate needs a z, which an old struct of pointers cannot give */
    set_up();
    args.size = ARGS_1;
    REFUSED(NRG_ERR_NULL);
}
END_TEST

START_TEST(reserved)
{
    spec.reserved = 1;
    REFUSED(NRG_ERR_STRUCT_SIZE);
}
END_TEST

START_TEST(dim)
{
    spec.dim = 0;
    REFUSED(NRG_ERR_DIM);
    spec.dim = 1;
    ACCEPTED();
    static const size_t divide[] = {0, 1, 2, 4, 8}, do_not[] = {3, 5, 6, 7, 9, 16, SIZE_MAX};
    for (size_t i = 0; i < sizeof divide / sizeof divide[0]; i++) {
        spec.groups = divide[i];
        ACCEPTED();
    }
    for (size_t i = 0; i < sizeof do_not / sizeof do_not[0]; i++) {
        spec.groups = do_not[i];
        REFUSED(NRG_ERR_DIM);
    }
    args.rows = 0;
    spec.groups = 3;
    REFUSED(NRG_ERR_DIM);
}
END_TEST

START_TEST(enums)
{
    static const int values[] = {-1, 4, 5, 99, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        spec.dtype = (nrg_dtype)values[i];
        REFUSED(NRG_ERR_ENUM);
        spec.y_dtype = (nrg_dtype)values[i];
        REFUSED(NRG_ERR_ENUM);
        spec.r_dtype = (nrg_dtype)values[i];
        REFUSED(NRG_ERR_ENUM);
        spec.w_dtype = (nrg_dtype)values[i];
        REFUSED(NRG_ERR_ENUM);
        spec.store = (nrg_store)values[i];
        REFUSED(NRG_ERR_ENUM);
        spec.residual_mode = (nrg_residual_mode)values[i];
        REFUSED(NRG_ERR_ENUM);
        spec.gate = (nrg_gate)values[i];
        REFUSED(NRG_ERR_ENUM);
        if ((unsigned)values[i] > NRG_ACT_SOFTPLUS) {
            spec.activation = (nrg_activation)values[i];
            REFUSED(NRG_ERR_ENUM);
        }
        if (values[i] != NRG_EPS_NONE) {
            spec.eps_mode = (nrg_eps_mode)values[i];
            REFUSED(NRG_ERR_ENUM);
        }
    }
    spec.dtype = NRG_DTYPE_SAME; /* the same as what? */
    REFUSED(NRG_ERR_ENUM);
    spec.store = (nrg_store)3;
    REFUSED(NRG_ERR_ENUM);
    spec.gate = (nrg_gate)3;
    REFUSED(NRG_ERR_ENUM);
    spec.activation = (nrg_activation)(NRG_ACT_SOFTPLUS + 1);
    REFUSED(NRG_ERR_ENUM);
    spec.residual_mode = (nrg_residual_mode)2;
    REFUSED(NRG_ERR_ENUM);
}
END_TEST

START_TEST(dtypes)
{
    for (int dtype = NRG_F32; dtype <= NRG_BF16; dtype++)
        for (int other = NRG_DTYPE_SAME; other <= NRG_BF16; other++) {
            nrg_status status = other == NRG_DTYPE_SAME || other == NRG_F32 || other == dtype ? NRG_OK : NRG_ERR_DTYPE;
            for (int field = 0; field < 3; field++) {
                spec.dtype = (nrg_dtype)dtype;
                *(field == 0 ? &spec.y_dtype : field == 1 ? &spec.r_dtype : &spec.w_dtype) = (nrg_dtype)other;
                if (status == NRG_OK)
                    ACCEPTED();
                else
                    REFUSED(status);
            }
        }
}
END_TEST

START_TEST(constants)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        spec.eps = bad[i];
        REFUSED(NRG_ERR_EPS);
        spec.c = bad[i];
        REFUSED(NRG_ERR_CONSTANT);
        spec.weight_offset = (float)bad[i];
        REFUSED(NRG_ERR_CONSTANT);
    }
    spec.eps = -1e-5;
    REFUSED(NRG_ERR_EPS);
    spec.eps = -5e-324;
    REFUSED(NRG_ERR_EPS);
    spec.eps = 0;
    ACCEPTED();
    spec.eps = 1e300;
    ACCEPTED();
    spec.c = -3;
    spec.weight_offset = -1;
    ACCEPTED();
    for (int sign = -1; sign <= 1; sign += 2) {
        spec.c = sign * nextafter(FLT_MAX, INFINITY);
        REFUSED(NRG_ERR_CONSTANT);
        spec.c = sign * (double)FLT_MAX;
        spec.weight_offset = (float)-sign * FLT_MAX;
        ACCEPTED();
    }
}
END_TEST

START_TEST(combination)
{
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    REFUSED(NRG_ERR_COMBINATION);
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    args.r = NULL;
    ACCEPTED();
    spec.gate = NRG_GATE_NONE;
    REFUSED(NRG_ERR_COMBINATION);
    spec.gate = NRG_GATE_NONE;
    args.z = NULL;
    ACCEPTED();
    for (int activation = NRG_ACT_IDENTITY; activation <= NRG_ACT_SOFTPLUS; activation++)
        for (int gate = NRG_GATE_NONE; gate <= NRG_GATE_POST; gate++) {
            spec.gate = (nrg_gate)gate;
            spec.activation = (nrg_activation)activation;
            args.z = gate ? args.z : NULL;
            ACCEPTED();
        }
}
END_TEST

/* Statistics of groups are longer. */
START_TEST(overlap_of_groups)
{
    unsigned char *behind = zone(MEAN) + 4 * ROWS * sizeof(float);
    spec.groups = 4;
    args.rstd = (float *)(void *)behind;
    ACCEPTED();
    spec.groups = 4;
    args.rstd = (float *)(void *)(behind - sizeof(float));
    REFUSED(NRG_ERR_OVERLAP);
    spec.groups = 4;
    args.o = behind - sizeof(float);
    REFUSED(NRG_ERR_OVERLAP);
}
END_TEST

START_TEST(overlap_of_three)
{
    args.z = args.x;
    args.o = zone(X);
    ACCEPTED();
    args.o = args.r = zone(Z);
    REFUSED(NRG_ERR_OVERLAP);
    args.o = zone(X);
    args.r = zone(Y);
    ACCEPTED();
    args.o = zone(Y);
    args.r = zone(X);
    ACCEPTED();
    args.o = args.r = zone(X);
    REFUSED(NRG_ERR_OVERLAP);
    args.o = args.r = zone(Y);
    REFUSED(NRG_ERR_OVERLAP);
    args.y = args.w = args.b = args.x; /* inputs may be one another */
    ACCEPTED();
    args.y = args.x;
    args.o = zone(X);
    ACCEPTED();
    args.y = zone(X) + DIM * sizeof(float); /* o is x, and y overlaps both by two rows */
    args.o = zone(X);
    REFUSED(NRG_ERR_OVERLAP);
    args.w = zone(X);
    args.o = zone(X);
    REFUSED(NRG_ERR_OVERLAP);
}
END_TEST

START_TEST(slices_of_one_buffer)
{
    const size_t row = DIM * sizeof(float), wide = 3 * row;
    /* rows of x, o and r, one behind the other */
    for (int order = 0; order < 2; order++) {
        args.x = zone(O) + (order ? row : 0);
        args.o = zone(O) + (order ? 0 : row);
        args.r = zone(O) + 2 * row;
        args.x_stride = args.o_stride = args.r_stride = wide;
        ACCEPTED();
    }
    /* slices that start rows apart */
    args.x = zone(O) + wide;
    args.o = zone(O) + row;
    args.x_stride = args.o_stride = wide;
    ACCEPTED();
    /* one element too close, from either side */
    for (int side = -1; side <= 1; side += 2) {
        args.x = zone(O);
        args.o = zone(O) + (side < 0 ? row - sizeof(float) : wide - row + sizeof(float));
        args.x_stride = args.o_stride = wide;
        REFUSED(NRG_ERR_OVERLAP);
        args.o = zone(O);
        args.x = zone(O) + (side < 0 ? row - sizeof(float) : wide - row + sizeof(float));
        args.x_stride = args.o_stride = wide;
        REFUSED(NRG_ERR_OVERLAP);
    }
    /* no room for two rows in a stride */
    args.x = zone(O);
    args.o = zone(O) + row;
    args.x_stride = args.o_stride = 2 * row - sizeof(float);
    REFUSED(NRG_ERR_OVERLAP);
    /* strides that differ: refused even where no byte is shared, as the header says */
    args.x = zone(O);
    args.o = zone(O) + row;
    args.x_stride = wide;
    args.o_stride = wide + row;
    REFUSED(NRG_ERR_OVERLAP);
}
END_TEST

START_TEST(no_rows)
{
    args.rows = 0;
    refused_share(NRG_OK, 0, 1, __LINE__);
    refused_share(NRG_OK, 1, 3, __LINE__);
    args = nrg_norm_args_init(0, NULL, NULL); /* not even z for the gate */
    refused_share(NRG_OK, 0, 1, __LINE__);
    spec.residual_mode = NRG_RESIDUAL_AFTER;
    refused_share(NRG_OK, 0, 1, __LINE__);
    /* what is wrong without rows is wrong */
    set_up();
    args.rows = 0;
    spec.dim = 0;
    refused_share(NRG_ERR_DIM, 0, 1, __LINE__);
    set_up();
    args.rows = 0;
    spec.eps = -1;
    refused_share(NRG_ERR_EPS, 0, 1, __LINE__);
    set_up();
    args.rows = 0;
    refused_share(NRG_ERR_THREAD, 1, 1, __LINE__);
}
END_TEST

START_TEST(strings)
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
    ck_assert_str_eq(nrg_dtype_name(NRG_DTYPE_SAME), "?");
    ck_assert_str_eq(nrg_dtype_name((nrg_dtype)4), "?");
}
END_TEST

/* The general call's memory, kept in `before`; then everything is as it was. */
static void general(nrg_norm_spec general_spec, const float *y, const float *w, const float *b, float *r)
{
    spec = general_spec;
    args.y = y;
    args.z = NULL;
    args.w = w;
    args.b = b;
    args.r = r;
    args.mean = args.rstd = NULL;
    ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
    memcpy(before, memory, sizeof before);
    set_up();
}

/* A shortcut has been called: the memory must be the same. */
static void shortcut(nrg_status status)
{
    ck_assert_int_eq(status, NRG_OK);
    ck_assert_mem_eq(before, memory, sizeof memory);
    set_up();
}

START_TEST(shortcuts_are_the_general_call)
{
    float *x = floats(X), *y = floats(Y), *o = floats(O);
    nrg_norm_spec rms = nrg_rms_norm_spec(DIM, 1e-3), layer = nrg_layer_norm_spec(DIM, 1e-3);
    for (int with = 0; with < 8; with++) {
        float *w = with & 1 ? floats(W) : NULL, *b = with & 2 ? floats(B) : NULL, *r = with & 4 ? floats(R) : NULL;
        general(rms, NULL, w, NULL, NULL);
        shortcut(nrg_rms_norm_f32(ROWS, DIM, x, w, o, 1e-3));
        general(rms, y, w, NULL, r);
        shortcut(nrg_add_rms_norm_f32(ROWS, DIM, x, y, w, r, o, 1e-3));
        general(layer, NULL, w, b, NULL);
        shortcut(nrg_layer_norm_f32(ROWS, DIM, x, w, b, o, 1e-3));
        general(layer, y, w, b, r);
        shortcut(nrg_add_layer_norm_f32(ROWS, DIM, x, y, w, b, r, o, 1e-3));
        general(nrg_l2_norm_spec(DIM, 1e-3), NULL, NULL, NULL, NULL);
        shortcut(nrg_l2_norm_f32(ROWS, DIM, x, o, 1e-3));
    }
    /* r in the place of x or y, as the header allows */
    general(rms, y, NULL, NULL, x);
    shortcut(nrg_add_rms_norm_f32(ROWS, DIM, x, y, NULL, x, o, 1e-3));
    general(layer, y, NULL, NULL, y);
    shortcut(nrg_add_layer_norm_f32(ROWS, DIM, x, y, NULL, NULL, y, o, 1e-3));
}
END_TEST

START_TEST(constructors)
{
    nrg_norm_spec rms = nrg_rms_norm_spec(7, 0.5), layer = nrg_layer_norm_spec(7, 0.5), l2 = nrg_l2_norm_spec(7, 0.5);
    ck_assert_uint_eq(rms.size, sizeof rms);
    ck_assert_uint_eq(rms.dim, 7);
    ck_assert(rms.eps == 0.5 && rms.c == 0 && rms.weight_offset == 0 && rms.dtype == NRG_F32);
    ck_assert(!rms.centred && rms.eps_mode == NRG_EPS_MEAN && rms.store == NRG_STORE_AUTO);
    ck_assert(rms.gate == NRG_GATE_NONE && rms.activation == NRG_ACT_IDENTITY && rms.groups == 0);
    ck_assert(layer.centred && layer.eps_mode == NRG_EPS_MEAN && layer.c == 0 && layer.dim == 7 && layer.eps == 0.5);
    ck_assert(!l2.centred && l2.eps_mode == NRG_EPS_MAX && l2.c == 1 && l2.dim == 7 && l2.eps == 0.5);
    nrg_norm_args a = nrg_norm_args_init(3, &rms, &layer);
    ck_assert(a.size == sizeof a && a.rows == 3 && a.x == &rms && a.o == &layer && !a.y && !a.w && !a.b && !a.r && !a.mean &&
              !a.rstd && !a.x_stride && !a.y_stride && !a.o_stride && !a.r_stride && !a.z && !a.z_stride);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("bad input");
    TCase *tests = test_case(suite, "bad input");
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, right_call);
    tcase_add_test(tests, null);
    tcase_add_test(tests, null_in_shortcuts);
    tcase_add_test(tests, structs_of_the_first_version);
    tcase_add_test(tests, reserved);
    tcase_add_test(tests, dim);
    tcase_add_test(tests, enums);
    tcase_add_test(tests, dtypes);
    tcase_add_test(tests, constants);
    tcase_add_test(tests, combination);
    tcase_add_test(tests, overlap_of_groups);
    tcase_add_test(tests, overlap_of_three);
    tcase_add_test(tests, slices_of_one_buffer);
    tcase_add_test(tests, no_rows);
    tcase_add_test(tests, strings);
    tcase_add_test(tests, shortcuts_are_the_general_call);
    tcase_add_test(tests, constructors);
    return test_run(suite);
}
