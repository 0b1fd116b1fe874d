/* Bad input: every refusal norm.h lists gives its status and writes nothing; what the header allows is not refused.
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

START_TEST(struct_size)
{
    static const size_t spec_sizes[] = {0, 1, sizeof(size_t), SPEC_1 - 1, 4097, SIZE_MAX, SIZE_MAX / 2};
    static const size_t args_sizes[] = {0, 1, sizeof(size_t), ARGS_1 - 1, 4097, SIZE_MAX, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof spec_sizes / sizeof spec_sizes[0]; i++) {
        spec.size = spec_sizes[i];
        REFUSED(NRG_ERR_STRUCT_SIZE);
        args.size = args_sizes[i];
        REFUSED(NRG_ERR_STRUCT_SIZE);
    }
}
END_TEST

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

START_TEST(structs_of_a_later_version)
{
    struct {
        nrg_norm_spec spec;
        unsigned char later[32];
    } new_spec;
    struct {
        nrg_norm_args args;
        unsigned char later[32];
    } new_args;
    memset(&new_spec, 0, sizeof new_spec);
    memset(&new_args, 0, sizeof new_args);
    new_spec.spec = spec;
    new_args.args = args;
    new_spec.spec.size = sizeof new_spec;
    new_args.args.size = sizeof new_args;
    /* asked for by fields this version does not know: any byte of them */
    memcpy(before, memory, sizeof before);
    for (size_t i = 0; i < sizeof new_spec.later; i++) {
        new_spec.later[i] = 1;
        ck_assert_int_eq(nrg_norm_forward(&new_spec.spec, &args, 0, 1), NRG_ERR_STRUCT_SIZE);
        new_spec.later[i] = 0;
        new_args.later[i] = 0x80;
        ck_assert_int_eq(nrg_norm_forward(&spec, &new_args.args, 0, 1), NRG_ERR_STRUCT_SIZE);
        new_args.later[i] = 0;
    }
    ck_assert_mem_eq(before, memory, sizeof memory);
    /* zero there: nothing is asked for */
    ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, 1), NRG_OK);
    memcpy(before, memory, sizeof before);
    set_up();
    ck_assert_int_eq(nrg_norm_forward(&new_spec.spec, &new_args.args, 0, 1), NRG_OK);
    ck_assert_mem_eq(before, memory, sizeof memory);
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

START_TEST(overflow)
{
    static const size_t dims[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4 + 1, SIZE_MAX / 4};
    static const size_t rows[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / DIM, SIZE_MAX / DIM / sizeof(float) + 1,
                                  SIZE_MAX / DIM / sizeof(float)};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        spec.dim = dims[i];
        args.rows = 1;
        REFUSED(NRG_ERR_OVERFLOW);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        args.rows = rows[i];
        REFUSED(NRG_ERR_OVERFLOW);
    }
    size_t *strides[] = {&args.x_stride, &args.y_stride, &args.z_stride, &args.o_stride, &args.r_stride};
    for (size_t i = 0; i < 5; i++) {
        *strides[i] = SIZE_MAX / 4 * 4;
        REFUSED(NRG_ERR_OVERFLOW);
        *strides[i] = SIZE_MAX / 8 * 4 + 4; /* twice that, to the last row, is 4 more than SIZE_MAX counts */
        REFUSED(NRG_ERR_OVERFLOW);
    }
    /* the statistics have more bytes than a tensor of one 16-bit column */
    spec.dim = 1;
    spec.dtype = NRG_F16;
    spec.gate = NRG_GATE_NONE;
    args.rows = SIZE_MAX / 4 + 1;
    args.y = args.z = args.w = args.b = NULL;
    args.r = NULL;
    args.rstd = NULL;
    REFUSED(NRG_ERR_OVERFLOW);
}
END_TEST

START_TEST(stride)
{
    static const size_t shorter[] = {DIM * sizeof(float) - sizeof(float), sizeof(float)};
    for (size_t i = 0; i < 2; i++) {
        args.x_stride = shorter[i];
        REFUSED(NRG_ERR_STRIDE);
        args.y_stride = shorter[i];
        REFUSED(NRG_ERR_STRIDE);
        args.z_stride = shorter[i];
        REFUSED(NRG_ERR_STRIDE);
        args.o_stride = shorter[i];
        REFUSED(NRG_ERR_STRIDE);
        args.r_stride = shorter[i];
        REFUSED(NRG_ERR_STRIDE);
    }
    args.x_stride = args.y_stride = args.z_stride = args.o_stride = args.r_stride = DIM * sizeof(float);
    ACCEPTED();
    args.x_stride = (DIM + 1) * sizeof(float);
    args.o_stride = (DIM + 2) * sizeof(float);
    ACCEPTED();
    /* in the operand's own dtype: enough for 16 bits is not enough for 32 */
    spec.dtype = NRG_BF16;
    spec.r_dtype = NRG_F32;
    args.x_stride = args.o_stride = DIM * sizeof(uint16_t);
    args.r_stride = DIM * sizeof(uint16_t);
    REFUSED(NRG_ERR_STRIDE);
}
END_TEST

START_TEST(alignment)
{
    for (int bytes = 1; bytes < 4; bytes++) {
        args.x = zone(X) + bytes;
        REFUSED(NRG_ERR_ALIGNMENT);
        args.y = zone(Y) + bytes;
        REFUSED(NRG_ERR_ALIGNMENT);
        args.z = zone(Z) + bytes;
        REFUSED(NRG_ERR_ALIGNMENT);
        args.w = zone(W) + bytes;
        REFUSED(NRG_ERR_ALIGNMENT);
        args.b = zone(B) + bytes;
        REFUSED(NRG_ERR_ALIGNMENT);
        args.o = zone(O) + bytes;
        REFUSED(NRG_ERR_ALIGNMENT);
        args.r = zone(R) + bytes;
        REFUSED(NRG_ERR_ALIGNMENT);
        args.mean = (float *)(uintptr_t)((uintptr_t)zone(MEAN) + (unsigned)bytes);
        REFUSED(NRG_ERR_ALIGNMENT);
        args.rstd = (float *)(uintptr_t)((uintptr_t)zone(RSTD) + (unsigned)bytes);
        REFUSED(NRG_ERR_ALIGNMENT);
        size_t *strides[] = {&args.x_stride, &args.y_stride, &args.z_stride, &args.o_stride, &args.r_stride};
        for (size_t i = 0; i < 5; i++) {
            *strides[i] = DIM * sizeof(float) + (size_t)bytes;
            REFUSED(NRG_ERR_ALIGNMENT);
        }
    }
    spec.dtype = NRG_F16;
    args.x = zone(X) + 1;
    REFUSED(NRG_ERR_ALIGNMENT);
    /* an element's alignment is enough */
    spec.dtype = NRG_F16;
    args.x = zone(X) + 2;
    args.w = zone(W) + 2;
    args.o = zone(O) + 6;
    args.x_stride = DIM * 2 + 2;
    ACCEPTED();
    /* beside f16, f32 operands have their own */
    spec.dtype = NRG_F16;
    spec.y_dtype = NRG_F32;
    args.y = zone(Y) + 2;
    REFUSED(NRG_ERR_ALIGNMENT);
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

START_TEST(shares)
{
    static const int bad[][2] = {{-1, 1},
                                 {1, 1},
                                 {0, 0},
                                 {0, -1},
                                 {5, 3},
                                 {3, 3},
                                 {-1, 0},
                                 {-1, -1},
                                 {-2, -1},
                                 {INT_MIN, 1},
                                 {INT_MAX, INT_MAX},
                                 {0, INT_MIN},
                                 {INT_MIN, INT_MIN}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused_share(NRG_ERR_THREAD, bad[i][0], bad[i][1], __LINE__);
    refused_share(NRG_OK, INT_MAX - 1, INT_MAX, __LINE__); /* a share without rows */
    ck_assert_int_eq(nrg_norm_forward(&spec, &args, 0, INT_MAX), NRG_OK);
}
END_TEST

static size_t bytes_of(int operand)
{
    return operand >= MEAN                ? ROWS * sizeof(float)
           : operand == W || operand == B ? DIM * sizeof(float)
                                          : ROWS * DIM * sizeof(float);
}

static void move(int operand, unsigned char *to)
{
    switch (operand) {
    case O:
        args.o = to;
        break;
    case R:
        args.r = to;
        break;
    case MEAN:
        args.mean = (float *)(void *)to;
        break;
    default:
        args.rstd = (float *)(void *)to;
        break;
    }
}

static int allowed(int output, int other)
{
    return (output == O && other == Z) || ((output == O || output == R) && (other == X || other == Y));
}

START_TEST(overlap_matrix)
{
    for (int output = O; output <= RSTD; output++)
        for (int other = X; other <= RSTD; other++) {
            if (other == output)
                continue;
            move(output, zone(other));
            if (allowed(output, other))
                ACCEPTED();
            else
                REFUSED(NRG_ERR_OVERLAP);
            /* by one element, at either end, and somewhere inside: never */
            move(output, zone(other) + bytes_of(other) - sizeof(float));
            REFUSED(NRG_ERR_OVERLAP);
            move(output, zone(other) - bytes_of(output) + sizeof(float));
            REFUSED(NRG_ERR_OVERLAP);
            move(output, zone(other) + sizeof(float));
            REFUSED(NRG_ERR_OVERLAP);
            /* side by side: always */
            move(output, zone(other) + bytes_of(other));
            ACCEPTED();
            move(output, zone(other) - bytes_of(output));
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

START_TEST(overlap_needs_the_same_layout)
{
    args.o = zone(X);
    args.o_stride = (DIM + 1) * sizeof(float);
    REFUSED(NRG_ERR_OVERLAP);
    args.o = zone(Z);
    args.z_stride = (DIM + 1) * sizeof(float);
    REFUSED(NRG_ERR_OVERLAP);
    args.r = zone(Y);
    args.y_stride = (DIM + 1) * sizeof(float);
    REFUSED(NRG_ERR_OVERLAP);
    args.o = zone(X);
    args.o_stride = args.x_stride = (DIM + 1) * sizeof(float);
    ACCEPTED();
    args.o = zone(X);
    args.x_stride = DIM * sizeof(float); /* 0 says the same */
    ACCEPTED();
    /* element sizes: f32 r cannot stand in the place of 16-bit x, nor 16-bit o in that of f32 y */
    spec.dtype = NRG_BF16;
    spec.r_dtype = NRG_F32;
    args.r = zone(X);
    args.x_stride = args.r_stride = DIM * sizeof(float);
    REFUSED(NRG_ERR_OVERLAP);
    spec.dtype = NRG_BF16;
    spec.y_dtype = NRG_F32;
    args.o = zone(Y);
    args.o_stride = args.y_stride = DIM * sizeof(float);
    REFUSED(NRG_ERR_OVERLAP);
    /* r_dtype f32 and y_dtype f32 fit */
    spec.dtype = NRG_BF16;
    spec.y_dtype = spec.r_dtype = NRG_F32;
    args.r = zone(Y);
    ACCEPTED();
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
    tcase_add_test(tests, struct_size);
    tcase_add_test(tests, structs_of_the_first_version);
    tcase_add_test(tests, reserved);
    tcase_add_test(tests, structs_of_a_later_version);
    tcase_add_test(tests, dim);
    tcase_add_test(tests, overflow);
    tcase_add_test(tests, stride);
    tcase_add_test(tests, alignment);
    tcase_add_test(tests, enums);
    tcase_add_test(tests, dtypes);
    tcase_add_test(tests, constants);
    tcase_add_test(tests, combination);
    tcase_add_test(tests, shares);
    tcase_add_test(tests, overlap_matrix);
    tcase_add_test(tests, overlap_of_groups);
    tcase_add_test(tests, overlap_of_three);
    tcase_add_test(tests, overlap_needs_the_same_layout);
    tcase_add_test(tests, slices_of_one_buffer);
    tcase_add_test(tests, no_rows);
    tcase_add_test(tests, strings);
    tcase_add_test(tests, shortcuts_are_the_general_call);
    tcase_add_test(tests, constructors);
    return test_run(suite);
}
