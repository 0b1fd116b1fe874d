/* Row normalization, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "norm.h"

#include "quantize.h"

#include <float.h>
#include <math.h>

/* numbers */
enum { ROWS = 1, ROWS2, ROWS3, DIM, W_DIM, STATISTICS, SUMS, SPACE = NRG_NORM_BACKWARD_SPACE, RECORD, BYTES, BYTES_ROWS, SCALES };

nrg_status nrg_norm_measure_spec(const nrg_norm_spec *s, nrg_dtype type[NRG_TYPES])
{
    type[NRG_NORM_TYPE_X] = s->dtype;
    if (s->dim == 0 || s->groups == 0 || (s->groups > 1 && s->dim % s->groups != 0))
        return NRG_ERR_DIM;
    if (nrg_beside(s->y_dtype, s->dtype, &type[NRG_NORM_TYPE_Y]) != NRG_OK ||
        nrg_beside(s->r_dtype, s->dtype, &type[NRG_NORM_TYPE_R]) != NRG_OK ||
        nrg_beside(s->w_dtype, s->dtype, &type[NRG_NORM_TYPE_W]) != NRG_OK)
        return NRG_ERR_DTYPE;
    if (!nrg_norm_is_eps(s->eps) && !(s->eps >= 0 && s->eps <= DBL_MAX))
        return NRG_ERR_EPS;
    if (nrg_norm_has_numbers(s) && !(fabs(s->c) <= (double)FLT_MAX && fabsf(s->weight_offset) <= FLT_MAX))
        return NRG_ERR_CONSTANT;
    const int unused = (s->eps_mode == NRG_EPS_NONE && s->eps != 0) || (s->c_mode == NRG_C_SQRT_DIM && s->c != 0) ||
                       (s->format == NRG_QUANT_NONE && s->rounding);
    return unused ? NRG_ERR_COMBINATION : NRG_OK;
}

/* Rows in planes. *all: of the kernel, groups that share w and b being rows. Where that does not fit, neither do tensors that
 * repeat nowhere, which there always are. Inlined, and with a short way for a matrix: a third of a call of one short row is what
 * is checked of it. */
static inline nrg_status measure_rows(nrg_sizes *s, const nrg_norm_spec *spec, size_t rows, size_t rows2, size_t rows3,
                                      uint32_t repeated, size_t *all)
{
    const size_t alike = nrg_norm_alike(spec);
    if (repeated > (NRG_REPEAT_ROWS | NRG_REPEAT_ROWS2 | NRG_REPEAT_ROWS3))
        return NRG_ERR_ENUM;
    s->n[ROWS] = rows;
    s->n[ROWS2] = rows2;
    s->n[ROWS3] = rows3;
    s->n[DIM] = spec->dim;
    *all = rows;
    if ((rows2 != 1) | (rows3 != 1) | (alike != 1)) {
        size_t each;
        if (!nrg_product(rows2, rows3, &each) || !nrg_product(each, rows, &each) || !nrg_product(each, alike, all))
            return NRG_ERR_OVERFLOW;
    }
    s->n[W_DIM] = *all ? nrg_norm_w_dim(spec) : 0;
    s->n[STATISTICS] = *all * nrg_norm_groups(spec); /* fits if rows · dim elements of x do, which come first */
    return NRG_OK;
}

/* ---- forward ---- */

static const nrg_range ranges[] = {NRG_NORM_SPEC_RANGES(NRG_NORM_SPEC),
                                   NRG_ENUM_RANGE(NRG_NORM_ARGS, nrg_norm_args, store, NRG_STORE_STREAM),
                                   NRG_RESERVED_RANGE(NRG_NORM_ARGS, nrg_norm_args, reserved)};

nrg_status nrg_norm_measure_quant(nrg_sizes *s, const nrg_norm_spec *spec, size_t rows, const nrg_quant_operands *of)
{
    nrg_quant_sizes q;
    if (spec->format == NRG_QUANT_NONE) {
        s->needed |= NRG_BIT(of->o);
        s->refused |= NRG_BIT(of->packed) | NRG_BIT(of->scales);
        return NRG_OK;
    }
#ifdef NRG_NO_QUANTIZE
    return NRG_ERR_ENUM;
#endif
    const nrg_status status = nrg_measure_quant(spec->format, spec->dim, rows, &q);
    if (status != NRG_OK)
        return status;
    s->n[of->bytes] = q.bytes;
    s->n[of->rows] = q.rows;
    s->n[of->scale_count] = q.scales;
    s->refused |= NRG_BIT(of->o);
    s->needed |= NRG_BIT(of->packed);
    if (nrg_format_has_scales(spec->format))
        s->needed |= NRG_BIT(of->scales);
    else
        s->refused |= NRG_BIT(of->scales);
    return spec->groups > 1 ? NRG_ERR_COMBINATION : NRG_OK;
}

static nrg_status measure_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_norm_spec *spec = part[NRG_NORM_SPEC];
    const nrg_norm_args *args = part[NRG_NORM_ARGS];
    size_t rows;
    nrg_status status = nrg_norm_measure_spec(spec, s->type);
    if (status == NRG_OK)
        status = measure_rows(s, spec, args->rows, args->rows2, args->rows3, args->y_repeat | args->z_repeat, &rows);
    if (status != NRG_OK)
        return status;
    if (spec->residual_mode == NRG_RESIDUAL_AFTER) {
        s->needed |= NRG_BIT(NRG_NORM_Y);
        s->refused |= NRG_BIT(NRG_NORM_R);
    }
    if (spec->gate)
        s->needed |= NRG_BIT(NRG_NORM_Z);
    else
        s->refused |= NRG_BIT(NRG_NORM_Z);
    if (!nrg_norm_offset_fits(spec, args->w) || args->r_in)
        return NRG_ERR_COMBINATION;
    static const nrg_quant_operands quant = {NRG_NORM_O, NRG_NORM_PACKED, NRG_NORM_SCALES, BYTES, BYTES_ROWS, SCALES};
    return nrg_norm_measure_quant(s, spec, args->rows, &quant);
}

static const nrg_part forward_parts[] = {NRG_NORM_SPEC_PART, NRG_NORM_ARGS_PART};

#define CHOSEN(type) (NRG_ELEMENT_CHOSEN + (type))
#define TENSOR(field, args_type)                                                                                                 \
    .part = NRG_NORM_ARGS, .at = NRG_AT(args_type, field), .dim = DIM,                                                           \
    .level = NRG_ROW_LEVELS(args_type, field##_stride, ROWS, ROWS2, ROWS3)
#define REPEATS(field, args_type) .repeat = NRG_AT(args_type, field##_repeat)
#define LINE(field, args_type, number) .part = NRG_NORM_ARGS, .at = NRG_AT(args_type, field), .dim = (number)

#define QUANT(field, dim_, rows_)                                                                                                \
    .part = NRG_NORM_ARGS, .at = NRG_AT(nrg_norm_args, field), .dim = (dim_),                                                    \
    .level = NRG_ROW_LEVELS(nrg_norm_args, field##_stride, rows_, ROWS2, ROWS3)

static const nrg_operand forward_operands[NRG_NORM_OPERANDS] = {
    [NRG_NORM_X] = {"x", NRG_IN, CHOSEN(NRG_NORM_TYPE_X), TENSOR(x, nrg_norm_args)},
    [NRG_NORM_Y] = {"y", NRG_IN, CHOSEN(NRG_NORM_TYPE_Y), .may_be_absent = 1, TENSOR(y, nrg_norm_args),
                    REPEATS(y, nrg_norm_args)},
    [NRG_NORM_Z] = {"z", NRG_IN, CHOSEN(NRG_NORM_TYPE_X), .may_be_absent = 1, TENSOR(z, nrg_norm_args),
                    REPEATS(z, nrg_norm_args)},
    [NRG_NORM_W] = {"w", NRG_IN, CHOSEN(NRG_NORM_TYPE_W), .may_be_absent = 1, LINE(w, nrg_norm_args, W_DIM)},
    [NRG_NORM_B] = {"b", NRG_IN, CHOSEN(NRG_NORM_TYPE_W), .may_be_absent = 1, LINE(b, nrg_norm_args, W_DIM)},
    [NRG_NORM_O] = {"o", NRG_OUT, CHOSEN(NRG_NORM_TYPE_X), .may_be_absent = 1, TENSOR(o, nrg_norm_args),
                    .over = NRG_BIT(NRG_NORM_X) | NRG_BIT(NRG_NORM_Y) | NRG_BIT(NRG_NORM_Z)},
    [NRG_NORM_R] = {"r", NRG_OUT, CHOSEN(NRG_NORM_TYPE_R), .may_be_absent = 1, TENSOR(r, nrg_norm_args),
                    .over = NRG_BIT(NRG_NORM_X) | NRG_BIT(NRG_NORM_Y)},
    [NRG_NORM_MEAN] = {"mean", NRG_OUT, NRG_ELEMENT_F32, .may_be_absent = 1, LINE(mean, nrg_norm_args, STATISTICS)},
    [NRG_NORM_RSTD] = {"rstd", NRG_OUT, NRG_ELEMENT_F32, .may_be_absent = 1, LINE(rstd, nrg_norm_args, STATISTICS)},
    [NRG_NORM_PACKED] = {"packed", NRG_OUT, NRG_ELEMENT_BYTE, .may_be_absent = 1, QUANT(packed, BYTES, BYTES_ROWS)},
    [NRG_NORM_SCALES] = {"scales", NRG_OUT, NRG_ELEMENT_F32, .may_be_absent = 1, QUANT(scales, SCALES, ROWS)},
};

const nrg_call nrg_call_norm_forward = {
    .parts = forward_parts,
    .part_count = NRG_COUNT(forward_parts),
    .operands = forward_operands,
    .operand_count = NRG_NORM_OPERANDS,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure_forward,
};

/* ---- statistics alone, and elements from them ---- */

static nrg_status measure_part(const void *const *part, nrg_sizes *s)
{
    const nrg_norm_spec *spec = part[NRG_NORM_SPEC];
    const nrg_norm_args *args = part[NRG_NORM_ARGS];
    size_t rows;
    const nrg_status status = nrg_norm_measure_spec(spec, s->type);
    s->n[RECORD] = sizeof(nrg_row_statistics) / sizeof(double);
    if (status != NRG_OK)
        return status;
    if (spec->format || args->packed || args->scales)
        return NRG_ERR_COMBINATION;
    return measure_rows(s, spec, args->rows, args->rows2, args->rows3, args->y_repeat | args->z_repeat, &rows);
}

static nrg_status measure_statistics(const void *const *part, nrg_sizes *s)
{
    const nrg_norm_spec *spec = part[NRG_NORM_SPEC];
    const nrg_norm_args *args = part[NRG_NORM_ARGS];
    const nrg_status status = measure_part(part, s);
    if (spec->residual_mode == NRG_RESIDUAL_AFTER)
        s->ignored |= NRG_BIT(NRG_NORM_STATISTICS_Y) | NRG_BIT(NRG_NORM_STATISTICS_R);
    if (spec->gate == NRG_GATE_PRE)
        s->needed |= NRG_BIT(NRG_NORM_STATISTICS_Z);
    else if (spec->gate == NRG_GATE_POST)
        s->ignored |= NRG_BIT(NRG_NORM_STATISTICS_Z);
    else
        s->refused |= NRG_BIT(NRG_NORM_STATISTICS_Z);
    return status == NRG_OK && args->r_in ? NRG_ERR_COMBINATION : status;
}

static nrg_status measure_elements(const void *const *part, nrg_sizes *s)
{
    const nrg_norm_spec *spec = part[NRG_NORM_SPEC];
    const nrg_norm_args *args = part[NRG_NORM_ARGS];
    nrg_status status = measure_part(part, s);
    if (status == NRG_OK && !nrg_norm_offset_fits(spec, args->w))
        status = NRG_ERR_COMBINATION;
    const int is_after = spec->residual_mode == NRG_RESIDUAL_AFTER;
    if (is_after) {
        s->needed |= NRG_BIT(NRG_NORM_ELEMENTS_Y);
        s->refused |= NRG_BIT(NRG_NORM_ELEMENTS_R);
    }
    if (spec->gate)
        s->needed |= NRG_BIT(NRG_NORM_ELEMENTS_Z);
    else
        s->refused |= NRG_BIT(NRG_NORM_ELEMENTS_Z);
    if (!args->r_in)
        s->needed |= NRG_BIT(NRG_NORM_ELEMENTS_X);
    else if (!is_after)
        s->ignored |= NRG_BIT(NRG_NORM_ELEMENTS_X) | NRG_BIT(NRG_NORM_ELEMENTS_Y);
    return status;
}

static const nrg_part parts_with_statistics[] = {NRG_NORM_SPEC_PART, NRG_NORM_ARGS_PART, {.size = sizeof(nrg_norm_more)}};

#define RECORDS(role)                                                                                                            \
    "statistics", role, NRG_ELEMENT_F64, .part = NRG_NORM_MORE, .at = NRG_AT(nrg_norm_more, statistics), .dim = RECORD,          \
                                         .level = {{.count = STATISTICS}}

static const nrg_operand statistics_operands[NRG_NORM_STATISTICS_OPERANDS] = {
    [NRG_NORM_STATISTICS_X] = {"x", NRG_IN, CHOSEN(NRG_NORM_TYPE_X), TENSOR(x, nrg_norm_args)},
    [NRG_NORM_STATISTICS_Y] = {"y", NRG_IN, CHOSEN(NRG_NORM_TYPE_Y), .may_be_absent = 1, TENSOR(y, nrg_norm_args),
                               REPEATS(y, nrg_norm_args)},
    [NRG_NORM_STATISTICS_Z] = {"z", NRG_IN, CHOSEN(NRG_NORM_TYPE_X), .may_be_absent = 1, TENSOR(z, nrg_norm_args),
                               REPEATS(z, nrg_norm_args)},
    [NRG_NORM_STATISTICS_R] = {"r", NRG_OUT, CHOSEN(NRG_NORM_TYPE_R), .may_be_absent = 1, TENSOR(r, nrg_norm_args),
                               .over = NRG_BIT(NRG_NORM_STATISTICS_X) | NRG_BIT(NRG_NORM_STATISTICS_Y)},
    [NRG_NORM_STATISTICS_MEAN] = {"mean", NRG_OUT, NRG_ELEMENT_F32, .may_be_absent = 1, LINE(mean, nrg_norm_args, STATISTICS)},
    [NRG_NORM_STATISTICS_RSTD] = {"rstd", NRG_OUT, NRG_ELEMENT_F32, .may_be_absent = 1, LINE(rstd, nrg_norm_args, STATISTICS)},
    [NRG_NORM_STATISTICS_STATISTICS] = {RECORDS(NRG_OUT), .may_be_absent = 1},
};

const nrg_call nrg_call_norm_statistics = {
    .parts = parts_with_statistics,
    .part_count = NRG_COUNT(parts_with_statistics),
    .operands = statistics_operands,
    .operand_count = NRG_NORM_STATISTICS_OPERANDS,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure_statistics,
};

static const nrg_operand elements_operands[NRG_NORM_ELEMENTS_OPERANDS] = {
    [NRG_NORM_ELEMENTS_X] = {"x", NRG_IN, CHOSEN(NRG_NORM_TYPE_X), .may_be_absent = 1, TENSOR(x, nrg_norm_args)},
    [NRG_NORM_ELEMENTS_Y] = {"y", NRG_IN, CHOSEN(NRG_NORM_TYPE_Y), .may_be_absent = 1, TENSOR(y, nrg_norm_args),
                             REPEATS(y, nrg_norm_args)},
    [NRG_NORM_ELEMENTS_Z] = {"z", NRG_IN, CHOSEN(NRG_NORM_TYPE_X), .may_be_absent = 1, TENSOR(z, nrg_norm_args),
                             REPEATS(z, nrg_norm_args)},
    [NRG_NORM_ELEMENTS_W] = {"w", NRG_IN, CHOSEN(NRG_NORM_TYPE_W), .may_be_absent = 1, LINE(w, nrg_norm_args, W_DIM)},
    [NRG_NORM_ELEMENTS_B] = {"b", NRG_IN, CHOSEN(NRG_NORM_TYPE_W), .may_be_absent = 1, LINE(b, nrg_norm_args, W_DIM)},
    [NRG_NORM_ELEMENTS_R] = {"r_in", NRG_IN, CHOSEN(NRG_NORM_TYPE_R), .may_be_absent = 1, TENSOR(r_in, nrg_norm_args)},
    [NRG_NORM_ELEMENTS_O] = {"o", NRG_OUT, CHOSEN(NRG_NORM_TYPE_X), TENSOR(o, nrg_norm_args),
                             .over = NRG_BIT(NRG_NORM_ELEMENTS_X) | NRG_BIT(NRG_NORM_ELEMENTS_Y) | NRG_BIT(NRG_NORM_ELEMENTS_Z) |
                                     NRG_BIT(NRG_NORM_ELEMENTS_R)},
    [NRG_NORM_ELEMENTS_STATISTICS] = {RECORDS(NRG_IN)},
};

const nrg_call nrg_call_norm_elements = {
    .parts = parts_with_statistics,
    .part_count = NRG_COUNT(parts_with_statistics),
    .operands = elements_operands,
    .operand_count = NRG_NORM_ELEMENTS_OPERANDS,
    .ranges = ranges,
    .range_count = NRG_COUNT(ranges),
    .measure = measure_elements,
};

/* ---- backward ---- */

/* rows: of the kernel. */
static inline nrg_status measure_space(const nrg_norm_spec *spec, size_t rows, const nrg_norm_backward_args *args,
                                       size_t *doubles)
{
    const size_t sums = ((size_t)(args->dw != NULL) + (args->db != NULL)) * nrg_norm_block_count(rows);
    const size_t columns = nrg_norm_w_dim(spec);
    size_t bytes;
    *doubles = columns * sums;
    return nrg_product(columns, sums * sizeof(double), &bytes) ? NRG_OK : NRG_ERR_OVERFLOW;
}

nrg_status nrg_norm_measure_space(const nrg_norm_spec *spec, size_t rows, const nrg_norm_backward_args *args, size_t *doubles)
{
    return measure_space(spec, rows * nrg_norm_alike(spec), args, doubles);
}

static nrg_status measure_workspace(const void *const *part, nrg_sizes *s)
{
    const nrg_norm_spec *spec = part[NRG_NORM_SPEC];
    const nrg_norm_backward_args *args = part[NRG_NORM_ARGS];
    size_t rows;
    nrg_status status = nrg_norm_measure_spec(spec, s->type);
    if (status == NRG_OK)
        status = measure_rows(s, spec, args->rows, args->rows2, args->rows3, args->y_repeat | args->z_repeat, &rows);
    if (status == NRG_OK)
        status = measure_space(spec, rows, args, &s->n[SPACE]);
    return status == NRG_OK && spec->format ? NRG_ERR_COMBINATION : status;
}

static nrg_status measure_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_norm_spec *spec = part[NRG_NORM_SPEC];
    const nrg_norm_backward_args *args = part[NRG_NORM_ARGS];
    const nrg_status status = measure_workspace(part, s);
    if (status != NRG_OK)
        return status;
    if (!nrg_norm_offset_fits(spec, args->w))
        return NRG_ERR_COMBINATION;
    s->n[SUMS] = nrg_norm_w_dim(spec); /* written where there are no rows, too */
    if (args->r)
        s->refused |= NRG_BIT(NRG_NORM_BACKWARD_X) | NRG_BIT(NRG_NORM_BACKWARD_Y);
    else
        s->needed |= NRG_BIT(NRG_NORM_BACKWARD_X);
    if (spec->residual_mode == NRG_RESIDUAL_AFTER) {
        s->refused |= NRG_BIT(NRG_NORM_BACKWARD_Y) | NRG_BIT(NRG_NORM_BACKWARD_R) | NRG_BIT(NRG_NORM_BACKWARD_DR_IN);
        s->apart |= NRG_BIT(NRG_NORM_BACKWARD_DY); /* dy is d_o then, and not dx */
    }
    if (!spec->centred)
        s->refused |= NRG_BIT(NRG_NORM_BACKWARD_MEAN);
    if (spec->gate)
        s->needed |= NRG_BIT(NRG_NORM_BACKWARD_Z);
    else
        s->refused |= NRG_BIT(NRG_NORM_BACKWARD_Z) | NRG_BIT(NRG_NORM_BACKWARD_DZ);
    return NRG_OK;
}

static const nrg_part backward_parts[] = {NRG_NORM_SPEC_PART, NRG_NORM_BACKWARD_ARGS_PART};

#define IN(field, type) #field, NRG_IN, CHOSEN(type), .may_be_absent = 1, TENSOR(field, nrg_norm_backward_args)
#define OUT(field, type) #field, NRG_OUT, CHOSEN(type), .may_be_absent = 1, TENSOR(field, nrg_norm_backward_args)
#define OPERAND(name) NRG_BIT(NRG_NORM_BACKWARD_##name)

static const nrg_operand backward_operands[NRG_NORM_BACKWARD_OPERANDS] = {
    [NRG_NORM_BACKWARD_X] = {IN(x, NRG_NORM_TYPE_X)},
    [NRG_NORM_BACKWARD_Y] = {IN(y, NRG_NORM_TYPE_Y), REPEATS(y, nrg_norm_backward_args)},
    [NRG_NORM_BACKWARD_Z] = {IN(z, NRG_NORM_TYPE_X), REPEATS(z, nrg_norm_backward_args)},
    [NRG_NORM_BACKWARD_W] = {"w", NRG_IN, CHOSEN(NRG_NORM_TYPE_W), .may_be_absent = 1, LINE(w, nrg_norm_backward_args, W_DIM)},
    [NRG_NORM_BACKWARD_B] = {"b", NRG_IN, CHOSEN(NRG_NORM_TYPE_W), .may_be_absent = 1, LINE(b, nrg_norm_backward_args, W_DIM)},
    [NRG_NORM_BACKWARD_R] = {IN(r, NRG_NORM_TYPE_R)},
    [NRG_NORM_BACKWARD_D_O] = {"d_o", NRG_IN, CHOSEN(NRG_NORM_TYPE_X), TENSOR(d_o, nrg_norm_backward_args)},
    [NRG_NORM_BACKWARD_DR_IN] = {IN(dr_in, NRG_NORM_TYPE_R)},
    [NRG_NORM_BACKWARD_MEAN] = {"mean", NRG_IN, NRG_ELEMENT_F32, .may_be_absent = 1,
                                LINE(mean, nrg_norm_backward_args, STATISTICS)},
    [NRG_NORM_BACKWARD_DX] = {OUT(dx, NRG_NORM_TYPE_X), .over = OPERAND(D_O) | OPERAND(DR_IN) | OPERAND(X) | OPERAND(R)},
    [NRG_NORM_BACKWARD_DY] = {OUT(dy, NRG_NORM_TYPE_Y),
                              .over = OPERAND(D_O) | OPERAND(DR_IN) | OPERAND(Y) | OPERAND(R) | OPERAND(DX)},
    [NRG_NORM_BACKWARD_DZ] = {OUT(dz, NRG_NORM_TYPE_X), .over = OPERAND(Z)},
    [NRG_NORM_BACKWARD_DW] = {"dw", NRG_INOUT, NRG_ELEMENT_F32, .may_be_absent = 1, LINE(dw, nrg_norm_backward_args, SUMS)},
    [NRG_NORM_BACKWARD_DB] = {"db", NRG_INOUT, NRG_ELEMENT_F32, .may_be_absent = 1, LINE(db, nrg_norm_backward_args, SUMS)},
    [NRG_NORM_BACKWARD_WORKSPACE] = {"workspace", NRG_SCRATCH, NRG_ELEMENT_F64, LINE(workspace, nrg_norm_backward_args, SPACE),
                                     .room = NRG_AT(nrg_norm_backward_args, workspace_size)},
};

static const nrg_range backward_ranges[] = {NRG_NORM_SPEC_RANGES(NRG_NORM_SPEC),
                                            NRG_ENUM_RANGE(NRG_NORM_ARGS, nrg_norm_backward_args, store, NRG_STORE_STREAM)};

const nrg_call nrg_call_norm_backward = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .operands = backward_operands,
    .operand_count = NRG_NORM_BACKWARD_OPERANDS,
    .ranges = backward_ranges,
    .range_count = NRG_COUNT(backward_ranges),
    .measure = measure_backward,
};

const nrg_call nrg_call_norm_backward_workspace = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .ranges = backward_ranges,
    .range_count = NRG_COUNT(backward_ranges),
    .measure = measure_workspace,
};
