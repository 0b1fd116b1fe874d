/* SPDX-License-Identifier: MIT */
#include "norm_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"

enum { EPS_MODES = NRG_EPS_NONE + 1, CONSTANTS = 3 };

size_t norm_option_count(void) { return (size_t)3 * 2 * 2 * 3 * 2 * 2 * 2 * EPS_MODES * CONSTANTS; }

static int digit(size_t *number, size_t base)
{
    int value = (int)(*number % base);
    *number /= base;
    return value;
}

int norm_options_at(norm_options *options, size_t number, nrg_dtype dtype)
{
    norm_options o;
    memset(&o, 0, sizeof o);
    o.dtype = dtype;
    o.residual = (enum norm_residual)digit(&number, 3);
    o.y_f32 = digit(&number, 2);
    o.r_f32 = digit(&number, 2);
    int weight = digit(&number, 3);
    o.w = weight > 0;
    o.offset = weight > 1;
    o.b = digit(&number, 2);
    o.w_f32 = digit(&number, 2);
    o.centred = digit(&number, 2);
    o.eps_mode = (nrg_eps_mode)digit(&number, EPS_MODES);
    o.c = digit(&number, CONSTANTS);
    *options = o;
    if (dtype == NRG_F32)
        return !o.y_f32 && !o.r_f32 && !o.w_f32;
    return (o.residual != NO_RESIDUAL || !o.y_f32) && (o.residual != RESIDUAL_AFTER || !o.r_f32) && (o.w || o.b || !o.w_f32);
}

int norm_options_gated(const norm_options *o) { return o->gate != NRG_GATE_NONE || o->activation != NRG_ACT_IDENTITY; }

void norm_options_draw_gate(norm_options *o, size_t dim, uint64_t seed)
{
    uint64_t state = test_mix(seed);
    if (test_draw(&state, 2))
        return;
    o->gate = (nrg_gate)test_draw(&state, GATES);
    o->activation = (nrg_activation)test_draw(&state, ACTIVATIONS);
    if (test_draw(&state, 5) < 2)
        return;
    /* the few divisors there are, each as likely as the others */
    size_t divisors[8], count = 0;
    for (size_t groups = 0; groups <= 8; groups++)
        if (groups != 1 && (groups == 0 || dim % groups == 0))
            divisors[count++] = groups;
    o->groups = divisors[test_draw(&state, count)];
}

void *norm_tensor(size_t rows, size_t dim, nrg_dtype dtype)
{
    size_t bytes = rows * dim * nrg_dtype_size(dtype);
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        abort();
    return memory;
}

void norm_put_row(void *to, size_t row, size_t dim, nrg_dtype dtype, const float *from)
{
    for (size_t i = 0; i < dim; i++)
        element_set(to, row * dim + i, dtype, from[i]);
}

void norm_fill_y(float *y, const float *x, size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t seed)
{
    uint64_t state = seed;
    size_t how = test_draw(&state, 8);
    if (how == 0) {
        for (size_t i = 0; i < dim; i++)
            y[i] = isfinite(x[i]) ? -x[i] : 1;
        return;
    }
    row_fill(y, dim, how < 5 ? kind : how < 7 ? ROW_NORMAL : ROW_ANY_MAGNITUDE, dtype, test_mix(seed));
    if (how == 1)
        for (size_t i = 0; i < dim; i++)
            y[i] = isfinite(x[i]) ? 0x1p-8f * y[i] - x[i] : 1;
}

void norm_fill_weight(float *w, size_t dim, nrg_dtype dtype, uint64_t seed)
{
    static const float odd[] = {0.0f, -0.0f, 1.0f, -1.0f, 3e38f, 1e-40f, -1e-38f, INFINITY, NAN, 0x1p79f};
    uint64_t state = seed;
    size_t how = test_draw(&state, 8);
    row_fill(w, dim, how == 7 ? ROW_ANY_MAGNITUDE : ROW_NORMAL, dtype, seed);
    if (how == 6)
        for (size_t i = 0; i < dim; i += 1 + test_draw(&state, 5))
            w[i] = odd[test_draw(&state, sizeof odd / sizeof odd[0])];
}

/* z: where activations bend, or now and then anything. */
static void fill_z(float *z, size_t dim, enum row_kind kind, nrg_dtype dtype, uint64_t seed)
{
    uint64_t state = seed;
    size_t how = test_draw(&state, 8);
    row_fill(z, dim, how == 0 ? kind : how == 1 ? ROW_ANY_MAGNITUDE : how == 2 ? ROW_ZEROS : ROW_NORMAL, dtype, test_mix(seed));
    if (how > 4)
        for (size_t i = 0; i < dim; i++)
            z[i] = element_round(5 * z[i], dtype);
}

void norm_problem_make(norm_problem *p, const norm_options *o, size_t dim, size_t rows, const enum row_kind *kinds,
                       size_t kind_count, uint64_t seed)
{
    static const double eps[] = {1e-5, 1e-6, 1e-12, 0, 1e-5, 1e-38, 300};
    uint64_t state = seed;
    memset(p, 0, sizeof *p);
    p->spec = o->centred ? nrg_layer_norm_spec(dim, 0) : nrg_rms_norm_spec(dim, 0);
    p->spec.eps = eps[test_draw(&state, sizeof eps / sizeof eps[0])];
    p->spec.dtype = o->dtype;
    p->spec.eps_mode = o->eps_mode;
    p->spec.residual_mode = o->residual == RESIDUAL_AFTER ? NRG_RESIDUAL_AFTER : NRG_RESIDUAL_BEFORE;
    p->spec.c = o->c == 2 ? -2.7 : o->c;
    p->spec.weight_offset = o->offset ? (test_draw(&state, 4) ? 1.0f : 0.3f) : 0;
    p->spec.gate = o->gate;
    p->spec.activation = o->activation;
    p->spec.groups = o->groups;
    p->groups = o->groups ? o->groups : 1;
    p->y_dtype = o->y_f32 ? NRG_F32 : o->dtype;
    p->r_dtype = o->r_f32 ? NRG_F32 : o->dtype;
    p->w_dtype = o->w_f32 ? NRG_F32 : o->dtype;
    /* SAME and the dtype by name are the same thing, and both should be tried */
    int by_name = (int)test_draw(&state, 2);
    p->spec.y_dtype = o->y_f32 || by_name ? p->y_dtype : NRG_DTYPE_SAME;
    p->spec.r_dtype = o->r_f32 || by_name ? p->r_dtype : NRG_DTYPE_SAME;
    p->spec.w_dtype = o->w_f32 || by_name ? p->w_dtype : NRG_DTYPE_SAME;
    p->rows = rows;

    float *x_row = norm_tensor(1, dim, NRG_F32), *y_row = norm_tensor(1, dim, NRG_F32);
    p->x = norm_tensor(rows, dim, o->dtype);
    p->y = o->residual != NO_RESIDUAL ? norm_tensor(rows, dim, p->y_dtype) : NULL;
    p->z = o->gate != NRG_GATE_NONE ? norm_tensor(rows, dim, o->dtype) : NULL;
    for (size_t row = 0; row < rows; row++) {
        /* ordinary rows must not lack neighbours: batches of rows are where a poisoned one could leak */
        size_t draw = test_draw(&state, 2) ? 0 : test_draw(&state, kinds ? kind_count : (size_t)ROW_KINDS);
        enum row_kind kind = kinds ? kinds[draw] : (enum row_kind)draw;
        row_fill(x_row, dim, kind, o->dtype, test_draw(&state, 1u << 30));
        norm_put_row(p->x, row, dim, o->dtype, x_row);
        if (p->y) {
            norm_fill_y(y_row, x_row, dim, kind, p->y_dtype, test_draw(&state, 1u << 30));
            norm_put_row(p->y, row, dim, p->y_dtype, y_row);
        }
        if (p->z) {
            fill_z(y_row, dim, kind, o->dtype, test_draw(&state, 1u << 30));
            norm_put_row(p->z, row, dim, o->dtype, y_row);
        }
    }
    if (o->w) {
        p->w = norm_tensor(1, dim, p->w_dtype);
        norm_fill_weight(x_row, dim, p->w_dtype, test_draw(&state, 1u << 30));
        norm_put_row(p->w, 0, dim, p->w_dtype, x_row);
    }
    if (o->b) {
        p->b = norm_tensor(1, dim, p->w_dtype);
        norm_fill_weight(x_row, dim, p->w_dtype, test_draw(&state, 1u << 30));
        norm_put_row(p->b, 0, dim, p->w_dtype, x_row);
    }
    free(x_row);
    free(y_row);
    static const char *const residuals[] = {"", " y before", " y after"},
                             *const modes[] = {"mean", "sum", "sigma", "max", "none"}, *const gates[] = {"", " pre", " post"};
    snprintf(p->text, sizeof p->text, "%s%s%s%s%s%s%s%s%s %s groups %zu eps %s %g c %g offset %g dim %zu rows %zu seed 0x%llx",
             nrg_dtype_name(o->dtype), o->centred ? " centred" : "", residuals[o->residual], o->y_f32 ? " (y f32)" : "",
             o->w ? " w" : "", o->b ? " b" : "", o->w_f32 ? " (f32)" : "", o->r_f32 ? " r f32" : "", gates[o->gate],
             nrg_activation_name(o->activation), o->groups, modes[o->eps_mode], p->spec.eps, p->spec.c,
             (double)p->spec.weight_offset, dim, rows, (unsigned long long)seed);
}

void norm_problem_free(norm_problem *p)
{
    free(p->x);
    free(p->y);
    free(p->z);
    free(p->w);
    free(p->b);
}

void norm_result_make(norm_result *result, const norm_problem *p)
{
    result->o = norm_tensor(p->rows, p->spec.dim, p->spec.dtype);
    result->r = norm_tensor(p->rows, p->spec.dim, p->r_dtype);
    result->mean = norm_tensor(p->rows, p->groups, NRG_F32);
    result->rstd = norm_tensor(p->rows, p->groups, NRG_F32);
}

void norm_result_free(norm_result *result)
{
    free(result->o);
    free(result->r);
    free(result->mean);
    free(result->rstd);
}
