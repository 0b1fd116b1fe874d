/* A norm of every head of q and k, and their rotation.
 *
 * SPDX-License-Identifier: MIT */
#include "norm_rope.h"

#include "check.h"

/* numbers, k's after q's */
enum { ROWS = NRG_NORM_ROPE_Q_ROWS, W_DIM = NRG_NORM_ROPE_K_ROWS + 1, STATISTICS = W_DIM + 2, SUMS = STATISTICS + 2, SPACE };

enum { NORM = NRG_NORM_ROPE_NORM, SPEC = NRG_NORM_ROPE_SPEC, ARGS = NRG_NORM_ROPE_ARGS, Q_ARGS = NRG_NORM_ROPE_Q_ARGS };

/* Whether the rows of a norm are those of the rotation; or NULL, which is a struct of zeros. */
static int are_rows(size_t rows, size_t rows2, size_t rows3, size_t heads)
{
    return (rows == heads && rows2 == 1 && rows3 == 1) || !(rows | rows2 | rows3);
}

/* Whether each tensor with heads has the weights that an offset is added to. */
static int offsets_fit(const void *const *part, const void *q_w, const void *k_w)
{
    const nrg_norm_spec *norm = part[NORM];
    const nrg_rope_args *rope = part[ARGS];
    return norm->weight_offset == 0 || ((!rope->q_heads || q_w) && (!rope->k_heads || k_w));
}

/* What forward and backward say of their options. */
static nrg_status measure_specs(const void *const *part, unsigned q_o, nrg_sizes *s)
{
    const nrg_norm_spec *norm = part[NORM];
    const nrg_rope_args *rope = part[ARGS];
    const size_t heads[2] = {rope->q_heads, rope->k_heads};
    nrg_status status = nrg_norm_measure_spec(norm, s->type);
    if (status != NRG_OK)
        return status;
    if (norm->dim != rope->dim)
        return NRG_ERR_DIM;
    if (norm->dtype != rope->dtype)
        return NRG_ERR_DTYPE;
    if (norm->gate || norm->residual_mode || nrg_norm_alike(norm) > 1 || norm->format)
        return NRG_ERR_COMBINATION;
    if ((status = nrg_rope_measure(part[SPEC], rope, q_o, s)) != NRG_OK)
        return status;
    for (int k = 0; k < 2; k++) {
        if (!nrg_product(rope->tokens, heads[k], &s->n[ROWS + k]) ||
            !nrg_product(s->n[ROWS + k], s->n[NRG_ROPE_N_BATCH], &s->n[ROWS + k]))
            return NRG_ERR_OVERFLOW;
        s->n[W_DIM + k] = s->n[ROWS + k] ? norm->dim : 0;
        s->n[STATISTICS + k] =
            s->n[ROWS + k] * norm->groups; /* fits wherever rows · dim elements of q or k do, which come first */
    }
    return NRG_OK;
}

#define SPEC_PARTS [NORM] = NRG_NORM_SPEC_PART, [SPEC] = NRG_ROPE_SPEC_PART, [ARGS] = NRG_ROPE_ARGS_PART
#define SPEC_RANGES NRG_NORM_SPEC_RANGES(NORM), NRG_ROPE_RANGES(SPEC, ARGS)

#define CHOSEN(type) (NRG_ELEMENT_CHOSEN + (type))
#define LINE(k, type, field, number) .part = Q_ARGS + (k), .at = NRG_AT(type, field), .dim = (number)

/* ---- forward ---- */

/* What the rotation has is not said again. */
static int is_weights_only(const nrg_norm_args *a, size_t heads)
{
    const uintptr_t any = (uintptr_t)a->x | (uintptr_t)a->y | (uintptr_t)a->z | a->y_repeat | a->z_repeat | (unsigned)a->store |
                          (uintptr_t)a->o | (uintptr_t)a->packed | (uintptr_t)a->scales | (uintptr_t)a->r | (uintptr_t)a->r_in;
    return !any && are_rows(a->rows, a->rows2, a->rows3, heads);
}

static nrg_status measure_forward(const void *const *part, nrg_sizes *s)
{
    const nrg_norm_args *const q = part[Q_ARGS], *const k = part[Q_ARGS + 1];
    const nrg_status status = measure_specs(part, NRG_NORM_ROPE_Q_O, s);
    if (status != NRG_OK)
        return status;
    const int fits = is_weights_only(q, s->n[ROWS]) && is_weights_only(k, s->n[ROWS + 1]) && offsets_fit(part, q->w, k->w);
    return fits ? NRG_OK : NRG_ERR_COMBINATION;
}

#define FORWARD_PART                                                                                                             \
    {                                                                                                                            \
        .size = sizeof(nrg_norm_args), .least = sizeof(nrg_norm_args), .may_be_absent = 1                                        \
    }
static const nrg_part forward_parts[] = {SPEC_PARTS, [Q_ARGS] = FORWARD_PART, FORWARD_PART};

#define WEIGHT(k, field) NRG_IN, CHOSEN(NRG_NORM_TYPE_W), .may_be_absent = 1, LINE(k, nrg_norm_args, field, W_DIM + (k))
#define STATISTIC(k, field) NRG_OUT, NRG_ELEMENT_F32, .may_be_absent = 1, LINE(k, nrg_norm_args, field, STATISTICS + (k))

static const nrg_operand forward_operands[NRG_NORM_ROPE_OPERANDS] = {
    NRG_ROPE_INPUTS(ARGS),
    [NRG_NORM_ROPE_Q_W] = {"q's w", WEIGHT(0, w)},
    [NRG_NORM_ROPE_K_W] = {"k's w", WEIGHT(1, w)},
    [NRG_NORM_ROPE_Q_B] = {"q's b", WEIGHT(0, b)},
    [NRG_NORM_ROPE_K_B] = {"k's b", WEIGHT(1, b)},
    NRG_ROPE_OUTPUTS(ARGS, NRG_NORM_ROPE_Q_O),
    [NRG_NORM_ROPE_Q_MEAN] = {"q's mean", STATISTIC(0, mean)},
    [NRG_NORM_ROPE_K_MEAN] = {"k's mean", STATISTIC(1, mean)},
    [NRG_NORM_ROPE_Q_RSTD] = {"q's rstd", STATISTIC(0, rstd)},
    [NRG_NORM_ROPE_K_RSTD] = {"k's rstd", STATISTIC(1, rstd)},
};

static const nrg_range forward_ranges[] = {SPEC_RANGES};

const nrg_call nrg_call_norm_rope_forward = {
    .parts = forward_parts,
    .part_count = NRG_COUNT(forward_parts),
    .operands = forward_operands,
    .operand_count = NRG_NORM_ROPE_OPERANDS,
    .ranges = forward_ranges,
    .range_count = NRG_COUNT(forward_ranges),
    .measure = measure_forward,
};

/* ---- backward ---- */

static nrg_status measure_backward(const void *const *part, nrg_sizes *s)
{
    const nrg_norm_spec *norm = part[NORM];
    nrg_status status = measure_specs(part, NRG_NORM_ROPE_BACKWARD_Q_O, s);
    if (status != NRG_OK)
        return status;
    for (int k = 0; k < 2; k++) {
        const nrg_norm_backward_args *a = part[Q_ARGS + k];
        if (a->d_o || a->dx || a->y || a->r || a->z || a->dr_in || a->dy || a->dz ||
            !are_rows(a->rows, a->rows2, a->rows3, s->n[ROWS + k]))
            return NRG_ERR_COMBINATION;
        if ((status = nrg_norm_measure_space(norm, s->n[ROWS + k], a, &s->n[SPACE + k])) != NRG_OK)
            return status;
    }
    const nrg_norm_backward_args *const q = part[Q_ARGS], *const k = part[Q_ARGS + 1];
    if (!offsets_fit(part, q->w, k->w))
        return NRG_ERR_COMBINATION;
    s->n[SUMS] = norm->dim; /* written where there are no heads, too */
    if (!norm->centred)
        s->refused |= NRG_BIT(NRG_NORM_ROPE_BACKWARD_Q_MEAN) | NRG_BIT(NRG_NORM_ROPE_BACKWARD_K_MEAN);
    return NRG_OK;
}

#define BACKWARD_PART                                                                                                            \
    {                                                                                                                            \
        .size = sizeof(nrg_norm_backward_args), .least = sizeof(nrg_norm_backward_args), .may_be_absent = 1                      \
    }
_Static_assert(sizeof(nrg_norm_spec) + sizeof(nrg_rope_spec) + sizeof(nrg_rope_args) + 2 * sizeof(nrg_norm_backward_args) <=
                   NRG_COPIES,
               "copies of all structs fit");
static const nrg_part backward_parts[] = {SPEC_PARTS, [Q_ARGS] = BACKWARD_PART, BACKWARD_PART};

#define X(k)                                                                                                                     \
    NRG_IN, CHOSEN(NRG_NORM_TYPE_X), LINE(k, nrg_norm_backward_args, x, NRG_ROPE_N_DIM),                                         \
        .level = NRG_ROW_LEVELS(nrg_norm_backward_args, x_stride, NRG_ROPE_N_Q_HEADS + (k), NRG_ROPE_N_TOKENS, NRG_ROPE_N_BATCH)
#define INPUT(k, type, field, number) NRG_IN, type, .may_be_absent = 1, LINE(k, nrg_norm_backward_args, field, (number) + (k))
#define SUM(k, field) NRG_INOUT, NRG_ELEMENT_F32, .may_be_absent = 1, LINE(k, nrg_norm_backward_args, field, SUMS)
#define WORKSPACE(k)                                                                                                             \
    NRG_SCRATCH, NRG_ELEMENT_F64, LINE(k, nrg_norm_backward_args, workspace, SPACE + (k)),                                       \
        .room = NRG_AT(nrg_norm_backward_args, workspace_size)

static const nrg_operand backward_operands[NRG_NORM_ROPE_BACKWARD_OPERANDS] = {
    NRG_ROPE_INPUTS(ARGS),
    [NRG_NORM_ROPE_BACKWARD_Q_X] = {"q's x", X(0)},
    [NRG_NORM_ROPE_BACKWARD_K_X] = {"k's x", X(1)},
    [NRG_NORM_ROPE_BACKWARD_Q_W] = {"q's w", INPUT(0, CHOSEN(NRG_NORM_TYPE_W), w, W_DIM)},
    [NRG_NORM_ROPE_BACKWARD_K_W] = {"k's w", INPUT(1, CHOSEN(NRG_NORM_TYPE_W), w, W_DIM)},
    [NRG_NORM_ROPE_BACKWARD_Q_B] = {"q's b", INPUT(0, CHOSEN(NRG_NORM_TYPE_W), b, W_DIM)},
    [NRG_NORM_ROPE_BACKWARD_K_B] = {"k's b", INPUT(1, CHOSEN(NRG_NORM_TYPE_W), b, W_DIM)},
    [NRG_NORM_ROPE_BACKWARD_Q_MEAN] = {"q's mean", INPUT(0, NRG_ELEMENT_F32, mean, STATISTICS)},
    [NRG_NORM_ROPE_BACKWARD_K_MEAN] = {"k's mean", INPUT(1, NRG_ELEMENT_F32, mean, STATISTICS)},
    NRG_ROPE_OUTPUTS(ARGS, NRG_NORM_ROPE_BACKWARD_Q_O),
    [NRG_NORM_ROPE_BACKWARD_Q_DW] = {"q's dw", SUM(0, dw)},
    [NRG_NORM_ROPE_BACKWARD_K_DW] = {"k's dw", SUM(1, dw)},
    [NRG_NORM_ROPE_BACKWARD_Q_DB] = {"q's db", SUM(0, db)},
    [NRG_NORM_ROPE_BACKWARD_K_DB] = {"k's db", SUM(1, db)},
    [NRG_NORM_ROPE_BACKWARD_Q_WORKSPACE] = {"q's workspace", WORKSPACE(0)},
    [NRG_NORM_ROPE_BACKWARD_K_WORKSPACE] = {"k's workspace", WORKSPACE(1)},
};

/* There is no y and no z that could repeat, and dx is read again at once. */
#define UNUSED(k, field)                                                                                                         \
    {                                                                                                                            \
        .part = Q_ARGS + (k), .status = NRG_ERR_COMBINATION, .at = NRG_AT(nrg_norm_backward_args, field)                         \
    }
static const nrg_range backward_ranges[] = {SPEC_RANGES,         UNUSED(0, y_repeat), UNUSED(0, z_repeat), UNUSED(1, y_repeat),
                                            UNUSED(1, z_repeat), UNUSED(0, store),    UNUSED(1, store)};

const nrg_call nrg_call_norm_rope_backward = {
    .parts = backward_parts,
    .part_count = NRG_COUNT(backward_parts),
    .operands = backward_operands,
    .operand_count = NRG_NORM_ROPE_BACKWARD_OPERANDS,
    .ranges = backward_ranges,
    .range_count = NRG_COUNT(backward_ranges),
    .measure = measure_backward,
};
