/* The embedding layer, alone and with the norm after it, and its gradients.
 *
 * SPDX-License-Identifier: MIT */
#include "embed.h"

#include <float.h>
#include <math.h>

#include "check.h"

/* numbers; table k has TABLE_ROWS + k rows and IDS_COUNT + k ids */
enum { ROWS = 1, DIM, W_DIM, STATISTICS, TABLE_ROWS, IDS_COUNT = TABLE_ROWS + NRG_EMBED_TABLES };

_Static_assert((int)NRG_EMBED_TYPE_TABLE < (int)NRG_TYPES, "room for a type beside the norm's");

#define CHOSEN(type) (NRG_ELEMENT_CHOSEN + (type))

/* ---- the tables ---- */

/* One after the other, all of the size of the first. */
static void copy_tables(unsigned char *copy, const nrg_part *part, const void *tables, size_t count)
{
    const unsigned char *from = tables;
    const size_t size = count ? nrg_size_at(from, 0) : 0;
    if (size == part->size) { /* measure_tables reads the size of each */
        memcpy(copy, from, count * size);
        return;
    }
    for (size_t k = 0; k < count; k++, copy += part->size, from += size)
        if (nrg_size_at(from, 0) != size || !nrg_copy_struct(copy, from, part)) {
            memset(copy, 0, sizeof size);
            return;
        }
}

/* The tables that can be read: none of args whose size or number of tables is wrong. */
static inline size_t readable_tables(const void *tables, size_t count) { return tables && count <= NRG_EMBED_TABLES ? count : 0; }

/* What is wrong with the number of tables, or with the sizes of this version's. */
static nrg_status measure_tables(const void *tables, size_t count, const void *copies, size_t size)
{
    if (count > NRG_EMBED_TABLES)
        return NRG_ERR_COUNT;
    if (count && !tables)
        return NRG_ERR_NULL;
    for (size_t k = 0; k < NRG_EMBED_TABLES; k++)
        if (nrg_size_at((const unsigned char *)copies + k * size, 0) != size)
            return NRG_ERR_STRUCT_SIZE;
    return NRG_OK;
}

nrg_embed_terms nrg_embed_terms_of(const nrg_embed_args *args)
{
    static const nrg_part part = {.size = sizeof(nrg_embed_table), .least = sizeof(nrg_embed_table)};
    nrg_embed_terms terms;
    const size_t count = args && args->size >= sizeof *args ? readable_tables(args->tables, args->table_count) : 0;
    for (size_t k = count; k < NRG_EMBED_TABLES; k++)
        terms.table[k] = nrg_embed_table_init(0, NULL, NULL);
    copy_tables((unsigned char *)terms.table, &part, count ? args->tables : NULL, count);
    return terms;
}

nrg_embed_gradients nrg_embed_gradients_of(const nrg_embed_backward_args *args)
{
    static const nrg_part part = {.size = sizeof(nrg_embed_gradient), .least = sizeof(nrg_embed_gradient)};
    nrg_embed_gradients gradients;
    const size_t count = args && args->size >= sizeof *args ? readable_tables(args->tables, args->table_count) : 0;
    for (size_t k = count; k < NRG_EMBED_TABLES; k++)
        gradients.table[k] = nrg_embed_gradient_init(nrg_embed_table_init(0, NULL, NULL), NULL);
    copy_tables((unsigned char *)gradients.table, &part, count ? args->tables : NULL, count);
    return gradients;
}

/* ---- what is added up ---- */

static nrg_status measure_terms(const nrg_embed_args *args, const nrg_embed_terms *terms, nrg_sizes *s)
{
    int has_table = 0;
    const nrg_status status = measure_tables(args->tables, args->table_count, terms, sizeof terms->table[0]);
    if (status != NRG_OK)
        return status;
    if (args->dim == 0)
        return NRG_ERR_DIM;
    if (nrg_beside(args->table_dtype, args->dtype, &s->type[NRG_EMBED_TYPE_TABLE]) != NRG_OK)
        return NRG_ERR_DTYPE;
    s->n[ROWS] = args->rows;
    s->n[DIM] = args->dim;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const nrg_embed_table *t = &terms->table[k];
        if (!(fabsf(t->scale) <= FLT_MAX) || !t->period)
            return NRG_ERR_CONSTANT;
        s->n[TABLE_ROWS + k] = t->rows;
        s->n[IDS_COUNT + k] = nrg_embed_ids_count(args->rows, t->period);
        has_table |= t->table != NULL;
        if (t->rows)
            s->needed |= NRG_BIT(NRG_EMBED_TABLE + k);
        if (t->ids)
            s->always |= NRG_BIT(NRG_EMBED_TABLE + k);
        if (t->first_position)
            s->refused |= NRG_BIT(NRG_EMBED_IDS + k);
    }
    /* there is at least one term */
    if (!has_table)
        s->needed |= NRG_BIT(NRG_EMBED_X);
    return NRG_OK;
}

#define EMBED_PART                                                                                                               \
    {                                                                                                                            \
        .size = sizeof(nrg_embed_args), .least = sizeof(nrg_embed_args)                                                          \
    }
#define TERMS_PART                                                                                                               \
    {                                                                                                                            \
        .size = sizeof(nrg_embed_terms)                                                                                          \
    }
#define EMBED_RANGES                                                                                                             \
    NRG_DTYPE_RANGE(NRG_EMBED_ARGS, nrg_embed_args, dtype), NRG_OTHER_DTYPE_RANGE(NRG_EMBED_ARGS, nrg_embed_args, table_dtype),  \
        NRG_ENUM_RANGE(NRG_EMBED_ARGS, nrg_embed_args, store, NRG_STORE_STREAM),                                                 \
        NRG_RESERVED_RANGE(NRG_EMBED_ARGS, nrg_embed_args, reserved)

#define TENSOR(index, type, field, field_stride)                                                                                 \
    .part = (index), .at = NRG_AT(type, field), .dim = DIM, .level = {{NRG_AT(type, field_stride), ROWS}}
#define TABLE(k, table_name, ids_name)                                                                                           \
    [NRG_EMBED_TABLE + (k)] = {table_name,                                                                                       \
                               NRG_IN,                                                                                           \
                               CHOSEN(NRG_EMBED_TYPE_TABLE),                                                                     \
                               .part = NRG_EMBED_TERMS_PART,                                                                     \
                               .may_be_absent = 1,                                                                               \
                               .at = NRG_AT(nrg_embed_terms, table[k].table),                                                    \
                               .dim = DIM,                                                                                       \
                               .level = {{NRG_AT(nrg_embed_terms, table[k].table_stride), TABLE_ROWS + (k)}}},                   \
                       [NRG_EMBED_IDS + (k)] = {ids_name,                                                                        \
                                                NRG_IN,                                                                          \
                                                NRG_ELEMENT_I32,                                                                 \
                                                .part = NRG_EMBED_TERMS_PART,                                                    \
                                                .may_be_absent = 1,                                                              \
                                                .at = NRG_AT(nrg_embed_terms, table[k].ids),                                     \
                                                .dim = IDS_COUNT + (k)}
#define TERMS                                                                                                                    \
    [NRG_EMBED_X] = {"x", NRG_IN, CHOSEN(NRG_NORM_TYPE_X), TENSOR(NRG_EMBED_ARGS, nrg_embed_args, x, x_stride),                  \
                     .may_be_absent = 1},                                                                                        \
    TABLE(0, "tables[0].table", "tables[0].ids"), TABLE(1, "tables[1].table", "tables[1].ids"),                                  \
    TABLE(2, "tables[2].table", "tables[2].ids")
_Static_assert(NRG_EMBED_TABLES == 3, "TERMS and backward_operands have them all");

/* ---- alone ---- */

static nrg_status measure_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_embed_args *args = part[NRG_EMBED_ARGS];
    s->type[NRG_NORM_TYPE_X] = args->dtype;
    return measure_terms(args, part[NRG_EMBED_TERMS_PART], s);
}

static const nrg_part forward_parts[] = {EMBED_PART, TERMS_PART};
static const nrg_range forward_ranges[] = {EMBED_RANGES};

static const nrg_operand forward_operands[NRG_EMBED_OPERANDS] = {
    TERMS,
    [NRG_EMBED_O] = {"o", NRG_OUT, CHOSEN(NRG_NORM_TYPE_X), TENSOR(NRG_EMBED_ARGS, nrg_embed_args, o, o_stride),
                     .over = NRG_BIT(NRG_EMBED_X)},
};

const nrg_call nrg_call_embed_forward = {
    .parts = forward_parts,
    .part_count = NRG_COUNT(forward_parts),
    .operands = forward_operands,
    .operand_count = NRG_EMBED_OPERANDS,
    .ranges = forward_ranges,
    .range_count = NRG_COUNT(forward_ranges),
    .measure = measure_forward,
};

/* ---- with the norm ---- */

static nrg_status measure_norm(const void *const *part, nrg_sizes *s)
{
    const nrg_embed_args *args = part[NRG_EMBED_ARGS];
    const nrg_norm_spec *spec = part[NRG_EMBED_NORM_SPEC];
    const nrg_norm_args *norm = part[NRG_EMBED_NORM_ARGS];
    nrg_status status = measure_terms(args, part[NRG_EMBED_TERMS_PART], s);
    if (status != NRG_OK || (status = nrg_norm_measure_spec(spec, s->type)) != NRG_OK)
        return status;
    if (args->dim != spec->dim)
        return NRG_ERR_DIM;
    if (args->dtype != spec->dtype)
        return NRG_ERR_DTYPE;
    if (args->rows != norm->rows || args->store || norm->rows2 != 1 || norm->rows3 != 1 || norm->packed || norm->scales ||
        norm->r_in || !nrg_norm_offset_fits(spec, norm->w) || spec->format || spec->gate ||
        spec->residual_mode != NRG_RESIDUAL_BEFORE || nrg_norm_alike(spec) > 1)
        return NRG_ERR_COMBINATION;
    s->n[W_DIM] = args->rows ? args->dim : 0;
    /* fits wherever the elements of o do, and is looked at after them */
    s->n[STATISTICS] = args->rows * spec->groups;
    s->refused |= NRG_BIT(NRG_EMBED_NORM_X) | NRG_BIT(NRG_EMBED_NORM_Y) | NRG_BIT(NRG_EMBED_NORM_Z) | NRG_BIT(NRG_EMBED_NORM_SUM);
    return NRG_OK;
}

static const nrg_part norm_parts[] = {EMBED_PART, TERMS_PART, NRG_NORM_SPEC_PART, NRG_NORM_ARGS_PART};
static const nrg_range norm_ranges[] = {EMBED_RANGES, NRG_NORM_SPEC_RANGES(NRG_EMBED_NORM_SPEC),
                                        NRG_ENUM_RANGE(NRG_EMBED_NORM_ARGS, nrg_norm_args, store, NRG_STORE_STREAM),
                                        NRG_RESERVED_RANGE(NRG_EMBED_NORM_ARGS, nrg_norm_args, reserved)};

#define NORM_TENSOR(field) TENSOR(NRG_EMBED_NORM_ARGS, nrg_norm_args, field, field##_stride[0])
#define NORM_LINE(field, number) .part = NRG_EMBED_NORM_ARGS, .at = NRG_AT(nrg_norm_args, field), .dim = (number)

static const nrg_operand norm_operands[NRG_EMBED_NORM_OPERANDS] = {
    TERMS,
    [NRG_EMBED_NORM_W] = {"w", NRG_IN, CHOSEN(NRG_NORM_TYPE_W), NORM_LINE(w, W_DIM), .may_be_absent = 1},
    [NRG_EMBED_NORM_B] = {"b", NRG_IN, CHOSEN(NRG_NORM_TYPE_W), NORM_LINE(b, W_DIM), .may_be_absent = 1},
    [NRG_EMBED_NORM_O] = {"o", NRG_OUT, CHOSEN(NRG_NORM_TYPE_X), NORM_TENSOR(o), .over = NRG_BIT(NRG_EMBED_X)},
    [NRG_EMBED_NORM_R] = {"r", NRG_OUT, CHOSEN(NRG_NORM_TYPE_R), NORM_TENSOR(r), .may_be_absent = 1,
                          .over = NRG_BIT(NRG_EMBED_X)},
    [NRG_EMBED_NORM_MEAN] = {"mean", NRG_OUT, NRG_ELEMENT_F32, NORM_LINE(mean, STATISTICS), .may_be_absent = 1},
    [NRG_EMBED_NORM_RSTD] = {"rstd", NRG_OUT, NRG_ELEMENT_F32, NORM_LINE(rstd, STATISTICS), .may_be_absent = 1},
    [NRG_EMBED_NORM_X] = {"norm.x", NRG_IN, CHOSEN(NRG_NORM_TYPE_X), NORM_TENSOR(x), .may_be_absent = 1},
    [NRG_EMBED_NORM_Y] = {"norm.y", NRG_IN, CHOSEN(NRG_NORM_TYPE_Y), NORM_TENSOR(y), .may_be_absent = 1},
    [NRG_EMBED_NORM_Z] = {"norm.z", NRG_IN, CHOSEN(NRG_NORM_TYPE_X), NORM_TENSOR(z), .may_be_absent = 1},
    [NRG_EMBED_NORM_SUM] = {"args.o", NRG_OUT, CHOSEN(NRG_NORM_TYPE_X), TENSOR(NRG_EMBED_ARGS, nrg_embed_args, o, o_stride),
                            .may_be_absent = 1},
};

const nrg_call nrg_call_embed_norm_forward = {
    .parts = norm_parts,
    .part_count = NRG_COUNT(norm_parts),
    .operands = norm_operands,
    .operand_count = NRG_EMBED_NORM_OPERANDS,
    .ranges = norm_ranges,
    .range_count = NRG_COUNT(norm_ranges),
    .measure = measure_norm,
};

/* ---- gradients ---- */

/* numbers; table k has D_ROWS + k rows and D_IDS + k ids */
enum { TOKENS = NRG_EMBED_BACKWARD_SPACE + 1, D_DIM, D_ROWS, D_IDS = D_ROWS + NRG_EMBED_TABLES };

static nrg_status find_space(const void *const *part, nrg_sizes *s)
{
    const nrg_embed_backward_args *args = part[NRG_EMBED_ARGS];
    const nrg_embed_gradients *gradients = part[NRG_EMBED_TERMS_PART];
    uint64_t doubles = 0;
    const nrg_status status = measure_tables(args->tables, args->table_count, gradients, sizeof gradients->table[0]);
    if (status != NRG_OK)
        return status;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const nrg_embed_gradient *t = &gradients->table[k];
        if (!t->ids)
            continue;
        if (args->rows >= UINT32_MAX || t->rows >= UINT32_MAX)
            return NRG_ERR_OVERFLOW;
        doubles += nrg_embed_order_doubles(args->rows, t->rows);
    }
    s->n[NRG_EMBED_BACKWARD_SPACE] = (size_t)doubles;
    return doubles <= SIZE_MAX / sizeof(double) ? NRG_OK : NRG_ERR_OVERFLOW;
}

static nrg_status measure_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_embed_backward_args *args = part[NRG_EMBED_ARGS];
    const nrg_embed_gradients *gradients = part[NRG_EMBED_TERMS_PART];
    const nrg_status status = measure_tables(args->tables, args->table_count, gradients, sizeof gradients->table[0]);
    if (status != NRG_OK)
        return status;
    s->type[NRG_EMBED_BACKWARD_TYPE_X] = args->dtype;
    if (args->dim == 0)
        return NRG_ERR_DIM;
    if (nrg_beside(args->table_dtype, args->dtype, &s->type[NRG_EMBED_BACKWARD_TYPE_TABLE]) != NRG_OK)
        return NRG_ERR_DTYPE;
    s->n[TOKENS] = args->rows;
    s->n[D_DIM] = args->dim;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        const nrg_embed_gradient *t = &gradients->table[k];
        if (t->reserved)
            return NRG_ERR_STRUCT_SIZE;
        if (!(fabsf(t->scale) <= FLT_MAX) || !t->period)
            return NRG_ERR_CONSTANT;
        s->n[D_ROWS + k] = t->rows;
        s->n[D_IDS + k] = nrg_embed_ids_count(args->rows, t->period);
        if (t->rows)
            s->needed |= NRG_BIT(NRG_EMBED_BACKWARD_D_TABLE + k);
        if (t->ids)
            s->always |= NRG_BIT(NRG_EMBED_BACKWARD_D_TABLE + k);
        if (t->first_position)
            s->refused |= NRG_BIT(NRG_EMBED_BACKWARD_IDS + k);
    }
    return find_space(part, s);
}

static const nrg_part backward_parts[] = {{.size = sizeof(nrg_embed_backward_args), .least = sizeof(nrg_embed_backward_args)},
                                          {.size = sizeof(nrg_embed_gradients)}};

static const nrg_range backward_ranges[] = {NRG_DTYPE_RANGE(0, nrg_embed_backward_args, dtype),
                                            NRG_OTHER_DTYPE_RANGE(0, nrg_embed_backward_args, table_dtype),
                                            NRG_ENUM_RANGE(0, nrg_embed_backward_args, store, NRG_STORE_STREAM),
                                            NRG_RESERVED_RANGE(0, nrg_embed_backward_args, reserved)};

#define AT(field) .at = NRG_AT(nrg_embed_backward_args, field)
#define GRADIENT(k, table_name, ids_name)                                                                                        \
    [NRG_EMBED_BACKWARD_IDS + (k)] = {ids_name,                                                                                  \
                                      NRG_IN,                                                                                    \
                                      NRG_ELEMENT_I32,                                                                           \
                                      .part = NRG_EMBED_TERMS_PART,                                                              \
                                      .at = NRG_AT(nrg_embed_gradients, table[k].ids),                                           \
                                      .may_be_absent = 1,                                                                        \
                                      .dim = D_IDS + (k)},                                                                       \
                              [NRG_EMBED_BACKWARD_D_TABLE +                                                                      \
                                  (k)] = {table_name,                                                                            \
                                          NRG_INOUT,                                                                             \
                                          CHOSEN(NRG_EMBED_BACKWARD_TYPE_TABLE),                                                 \
                                          .part = NRG_EMBED_TERMS_PART,                                                          \
                                          .at = NRG_AT(nrg_embed_gradients, table[k].d_table),                                   \
                                          .may_be_absent = 1,                                                                    \
                                          .dim = D_DIM,                                                                          \
                                          .level = {{NRG_AT(nrg_embed_gradients, table[k].d_table_stride), D_ROWS + (k)}}}

static const nrg_operand backward_operands[NRG_EMBED_BACKWARD_OPERANDS] = {
    [NRG_EMBED_BACKWARD_D_O] = {"d_o", NRG_IN, CHOSEN(NRG_EMBED_BACKWARD_TYPE_X), AT(d_o), .dim = D_DIM,
                                .level = {{NRG_AT(nrg_embed_backward_args, d_o_stride), TOKENS}}},
    GRADIENT(0, "tables[0].d_table", "tables[0].ids"),
    GRADIENT(1, "tables[1].d_table", "tables[1].ids"),
    GRADIENT(2, "tables[2].d_table", "tables[2].ids"),
    [NRG_EMBED_BACKWARD_WORKSPACE] = {"workspace", NRG_SCRATCH, NRG_ELEMENT_F64, AT(workspace), .dim = NRG_EMBED_BACKWARD_SPACE,
                                      .room = NRG_AT(nrg_embed_backward_args, workspace_size)},
};

const nrg_call nrg_call_embed_backward = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .operands = backward_operands,
    .operand_count = NRG_EMBED_BACKWARD_OPERANDS,
    .ranges = backward_ranges,
    .range_count = NRG_COUNT(backward_ranges),
    .measure = measure_backward,
};

const nrg_call nrg_call_embed_backward_workspace = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .measure = find_space,
};
