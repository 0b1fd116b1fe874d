/* How a .def describes a call: one text, from which names.h makes the names of its operands, table.h the nrg_call that the
 * checker reads, and precheck.h the checks in a straight line. A line of a .def is one of these words:
 *
 *   PART(ID, p, type, KIND)              a struct that the caller gives; p: its name in the lines below. KIND: VERSIONED begins
 *                                        with its size, ABSENT the same and may be NULL, OWN is the library's own
 *   FIELD(p, field, low, high, STATUS)   an enum or a reserved field of four bytes, and NRG_ERR_STATUS where it is out of range
 *   TYPE(ID, dtype)                      a dtype that operands have, and t_ID in the lines below
 *   NUMBER(ID, value)                    a number that shapes are told in, and n_ID; n_ONE is 1
 *   RULE(STATUS, holds)                  NRG_ERR_STATUS where it does not
 *   CHECK(status)                        the same of a function that returns a status
 *   MARK(set, bits)                      more bits of nrg_sizes: apart, written
 *   OPERAND(ID, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over)
 *     ELEMENT    F32, F64, I32, I64, BYTE, or T(ID) of a type
 *     DIM        the number of a row's elements
 *     LEVELS     LINE, ROWS, ... as below: strides and numbers from the innermost level outwards
 *     THERE      MUST and MAY be there, or WHEN(x), an expression of enum nrg_there
 *     over       ON(ID) of operands in whose place an output may be, or 0
 *   NAMED(ID, name, ...)                 an operand that has another name in the header than its field
 *
 * Ranges are checked first, then the lines in their order, then operands. An expression may use the parts, types and numbers
 * above it. Before each use NRG_NAME is the call's, which the file has too, and NRG_OF what the names begin with.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_DESCRIBE_H
#define NRG_OPERANDS_DESCRIBE_H

#include "../compiler.h"
#include "operand.h"

/* Whether an operand is there: has to be where it has elements, may be, has to be where the options say so, even where it has no
 * elements, may not be, is not looked at. */
enum nrg_there { NRG_MUST, NRG_MAY, NRG_NEED, NRG_ALWAYS, NRG_NOT, NRG_SKIP };

static inline enum nrg_there nrg_need_if(int is_used) { return is_used ? NRG_NEED : NRG_NOT; }
static inline enum nrg_there nrg_may_if(int is_used) { return is_used ? NRG_MAY : NRG_NOT; }

static inline void nrg_set_there(nrg_sizes *s, uint32_t bit, enum nrg_there there)
{
    if (there == NRG_NEED)
        s->needed |= bit;
    else if (there == NRG_NOT)
        s->refused |= bit;
    else if (there == NRG_ALWAYS)
        s->always |= bit;
    else if (there == NRG_SKIP)
        s->ignored |= bit;
}

/* The dtype of an operand that may have one of its own, and whether it may be this one beside x's. */
static inline nrg_dtype nrg_own_dtype(nrg_dtype own, nrg_dtype dtype) { return own == NRG_DTYPE_SAME ? dtype : own; }
static inline int nrg_is_beside(nrg_dtype type, nrg_dtype dtype) { return type == dtype || type == NRG_F32; }

enum { NRG_REPEAT_ALL = NRG_REPEAT_ROWS | NRG_REPEAT_ROWS2 | NRG_REPEAT_ROWS3 };

#define NRG_TEXT_OF_(x) #x
#define NRG_TEXT_OF(x) NRG_TEXT_OF_(x)
#define NRG_DEF NRG_TEXT_OF(NRG_NAME.def)
#define NRG_JOIN_(a, b) a##b
#define NRG_JOIN(a, b) NRG_JOIN_(a, b)
#define NRG_OWN(name) NRG_JOIN(NRG_OF, _##name)

/* ---- names: enums of parts, types, numbers and operands ---- */

#define NRG_PARTS_PART(ID, p, type, KIND) NRG_OWN(ID), NRG_OWN(PART_##p) = NRG_OWN(ID),
#define NRG_PARTS_FIELD(p, field, low, high, STATUS)
#define NRG_PARTS_TYPE(ID, dtype)
#define NRG_PARTS_NUMBER(ID, value)
#define NRG_PARTS_RULE(STATUS, holds)
#define NRG_PARTS_CHECK(status)
#define NRG_PARTS_MARK(set, bits)
#define NRG_PARTS_NAMED(ID, name, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over)

#define NRG_TYPES_PART(ID, p, type, KIND)
#define NRG_TYPES_FIELD(p, field, low, high, STATUS)
#define NRG_TYPES_TYPE(ID, dtype) NRG_OWN(TYPE_##ID),
#define NRG_TYPES_NUMBER(ID, value)
#define NRG_TYPES_RULE(STATUS, holds)
#define NRG_TYPES_CHECK(status)
#define NRG_TYPES_MARK(set, bits)
#define NRG_TYPES_NAMED(ID, name, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over)

#define NRG_NUMBERS_PART(ID, p, type, KIND)
#define NRG_NUMBERS_FIELD(p, field, low, high, STATUS)
#define NRG_NUMBERS_TYPE(ID, dtype)
#define NRG_NUMBERS_NUMBER(ID, value) NRG_OWN(N_##ID),
#define NRG_NUMBERS_RULE(STATUS, holds)
#define NRG_NUMBERS_CHECK(status)
#define NRG_NUMBERS_MARK(set, bits)
#define NRG_NUMBERS_NAMED(ID, name, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over)

#define NRG_OPERANDS_PART(ID, p, type, KIND)
#define NRG_OPERANDS_FIELD(p, field, low, high, STATUS)
#define NRG_OPERANDS_TYPE(ID, dtype)
#define NRG_OPERANDS_NUMBER(ID, value)
#define NRG_OPERANDS_RULE(STATUS, holds)
#define NRG_OPERANDS_CHECK(status)
#define NRG_OPERANDS_MARK(set, bits)
#define NRG_OPERANDS_NAMED(ID, name, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over) NRG_OWN(ID),

/* ---- the table ---- */

#define NRG_STRUCTS_PART(ID, p, type, KIND) typedef type NRG_OWN(struct_##p);
#define NRG_STRUCTS_FIELD(p, field, low, high, STATUS)
#define NRG_STRUCTS_TYPE(ID, dtype)
#define NRG_STRUCTS_NUMBER(ID, value)
#define NRG_STRUCTS_RULE(STATUS, holds)
#define NRG_STRUCTS_CHECK(status)
#define NRG_STRUCTS_MARK(set, bits)
#define NRG_STRUCTS_NAMED(ID, name, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over)

#define NRG_KIND_VERSIONED(type) .least = sizeof(type)
#define NRG_KIND_ABSENT(type) .least = sizeof(type), .may_be_absent = 1
#define NRG_KIND_OWN(type) .least = 0
#define NRG_SIZES_PART(ID, p, type, KIND) {.size = sizeof(type), NRG_KIND_##KIND(type)},
#define NRG_SIZES_FIELD(p, field, low, high, STATUS)
#define NRG_SIZES_TYPE(ID, dtype)
#define NRG_SIZES_NUMBER(ID, value)
#define NRG_SIZES_RULE(STATUS, holds)
#define NRG_SIZES_CHECK(status)
#define NRG_SIZES_MARK(set, bits)
#define NRG_SIZES_NAMED(ID, name, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over)

#define NRG_RANGES_PART(ID, p, type, KIND)
#define NRG_RANGES_FIELD(p, field_, low_, high, STATUS)                                                                          \
    {.part = NRG_OWN(PART_##p),                                                                                                  \
     .status = NRG_ERR_##STATUS,                                                                                                 \
     .at = NRG_AT(NRG_OWN(struct_##p), field_),                                                                                  \
     .low = (low_),                                                                                                              \
     .span = (uint32_t)(high) - (uint32_t)(low_)},
#define NRG_RANGES_TYPE(ID, dtype)
#define NRG_RANGES_NUMBER(ID, value)
#define NRG_RANGES_RULE(STATUS, holds)
#define NRG_RANGES_CHECK(status)
#define NRG_RANGES_MARK(set, bits)
#define NRG_RANGES_NAMED(ID, name, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over)

#define NRG_ENTRY_F32 NRG_ELEMENT_F32
#define NRG_ENTRY_F64 NRG_ELEMENT_F64
#define NRG_ENTRY_I32 NRG_ELEMENT_I32
#define NRG_ENTRY_I64 NRG_ELEMENT_I64
#define NRG_ENTRY_BYTE NRG_ELEMENT_BYTE
#define NRG_ENTRY_T(ID) NRG_ELEMENT_CHOSEN + NRG_OWN(TYPE_##ID)
#define NRG_ENTRY_MUST 0
#define NRG_ENTRY_MAY 1
#define NRG_ENTRY_WHEN(there) 1

/* LEVELS: none; rows with a stride; rows, planes and volumes, which may repeat; chains; [batch, heads, rows] and [batch, rows,
 * heads] with an nrg_head_strides; levels without strides, which are dense; a workspace, and where its size is. */
#define NRG_LEVEL(p, field, N)                                                                                                   \
    {                                                                                                                            \
        .stride = NRG_AT(NRG_OWN(struct_##p), field), .count = NRG_OWN(N_##N)                                                    \
    }
#define NRG_ENTRY_LINE .room = 0
#define NRG_ENTRY_ROWS(p, field, N) .level = {NRG_LEVEL(p, field, N)}
#define NRG_ENTRY_LEVELS(p, field, N, N2, N3)                                                                                    \
    .level = {NRG_LEVEL(p, field##_stride[0], N), NRG_LEVEL(p, field##_stride[1], N2), NRG_LEVEL(p, field##_stride[2], N3)}
#define NRG_ENTRY_PLANES(p, field, N) NRG_ENTRY_LEVELS(p, field, N, ROWS2, ROWS3)
#define NRG_ENTRY_REPEATED(p, field, N) NRG_ENTRY_PLANES(p, field, N), .repeat = NRG_AT(NRG_OWN(struct_##p), field##_repeat)
#define NRG_ENTRY_HEADS(p, field, BATCH, HEADS, ROWS)                                                                            \
    .level = {NRG_LEVEL(p, field##_strides.row, ROWS), NRG_LEVEL(p, field##_strides.head, HEADS),                                \
              NRG_LEVEL(p, field##_strides.batch, BATCH)}
#define NRG_ENTRY_REPEATED_HEADS(p, field, BATCH, HEADS, ROWS)                                                                   \
    NRG_ENTRY_HEADS(p, field, BATCH, HEADS, ROWS), .repeat = NRG_AT(NRG_OWN(struct_##p), field##_repeat)
#define NRG_ENTRY_TOKENS(p, field, BATCH, HEADS, ROWS)                                                                           \
    .level = {NRG_LEVEL(p, field##_strides.head, HEADS), NRG_LEVEL(p, field##_strides.row, ROWS),                                \
              NRG_LEVEL(p, field##_strides.batch, BATCH)}
#define NRG_ENTRY_CHAINS(p, field, N, N2) .level = {NRG_LEVEL(p, field[0], N), NRG_LEVEL(p, field[1], N2)}
#define NRG_ENTRY_DENSE(N, N2, N3) .level = {{.count = NRG_OWN(N_##N)}, {.count = NRG_OWN(N_##N2)}, {.count = NRG_OWN(N_##N3)}}
#define NRG_ENTRY_ROOM(p, field) .room = NRG_AT(NRG_OWN(struct_##p), field)

#define NRG_ENTRY_PART(ID, p, type, KIND)
#define NRG_ENTRY_FIELD(p, field, low, high, STATUS)
#define NRG_ENTRY_TYPE(ID, dtype)
#define NRG_ENTRY_NUMBER(ID, value)
#define NRG_ENTRY_RULE(STATUS, holds)
#define NRG_ENTRY_CHECK(status)
#define NRG_ENTRY_MARK(set, bits)
#define NRG_ENTRY_NAMED(ID, name_, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over_)                                           \
    [NRG_OWN(ID)] = {.name = (name_),                                                                                            \
                     .role = NRG_##ROLE,                                                                                         \
                     .element = NRG_ENTRY_##ELEMENT,                                                                             \
                     .part = NRG_OWN(PART_##p),                                                                                  \
                     .may_be_absent = NRG_ENTRY_##THERE,                                                                         \
                     .dim = NRG_OWN(N_##DIM),                                                                                    \
                     .at = NRG_AT(NRG_OWN(struct_##p), field),                                                                   \
                     .over = (over_),                                                                                            \
                     NRG_ENTRY_##LEVELS},

/* ---- what a call's options make of its operands: nrg_call.measure ---- */

#define NRG_THERE_MUST NRG_MUST
#define NRG_THERE_MAY NRG_MAY
#define NRG_THERE_WHEN(there) (there)

#define NRG_MEASURE_PART(ID, p, type, KIND)                                                                                      \
    const type *const p = part_[NRG_OWN(ID)];                                                                                    \
    (void)p;
#define NRG_MEASURE_FIELD(p, field, low, high, STATUS)
#define NRG_MEASURE_TYPE(ID, dtype_)                                                                                             \
    const nrg_dtype t_##ID = sizes_->type[NRG_OWN(TYPE_##ID)] = (dtype_);                                                        \
    (void)t_##ID;
#define NRG_MEASURE_NUMBER(ID, value)                                                                                            \
    const size_t n_##ID = sizes_->n[NRG_OWN(N_##ID)] = (value);                                                                  \
    (void)n_##ID;
#define NRG_MEASURE_RULE(STATUS, holds)                                                                                          \
    if (!(holds))                                                                                                                \
        return NRG_ERR_##STATUS;
#define NRG_MEASURE_CHECK(call)                                                                                                  \
    if ((status_ = (call)) != NRG_OK)                                                                                            \
        return status_;
#define NRG_MEASURE_MARK(set, bits) sizes_->set |= (bits);
#define NRG_MEASURE_NAMED(ID, name, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over)                                           \
    nrg_set_there(sizes_, NRG_BIT(NRG_OWN(ID)), NRG_THERE_##THERE);

/* ---- checks in a straight line (precheck.h) ---- */

#define NRG_PARAMS_PART(ID, p, type, KIND) const type *const p,
#define NRG_PARAMS_FIELD(p, field, low, high, STATUS)
#define NRG_PARAMS_TYPE(ID, dtype)
#define NRG_PARAMS_NUMBER(ID, value)
#define NRG_PARAMS_RULE(STATUS, holds)
#define NRG_PARAMS_CHECK(status)
#define NRG_PARAMS_MARK(set, bits)
#define NRG_PARAMS_NAMED(ID, name, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over)

#define NRG_BYTES_F32 4
#define NRG_BYTES_F64 8
#define NRG_BYTES_I32 4
#define NRG_BYTES_I64 8
#define NRG_BYTES_BYTE 1
#define NRG_BYTES_T(ID) (t_##ID == NRG_F32 ? 4u : 2u)

#define NRG_STEPS_LINE                                                                                                           \
    {                                                                                                                            \
        .levels = 0                                                                                                              \
    }
#define NRG_STEPS_ROWS(p, field, N)                                                                                              \
    {                                                                                                                            \
        .levels = 1, .count = {n_##N}, .given = { p->field }                                                                     \
    }
#define NRG_STEPS_CHAINS(p, field, N, N2)                                                                                        \
    {                                                                                                                            \
        .levels = 2, .count = {n_##N, n_##N2, 1}, .given = { p->field[0], p->field[1] }                                          \
    }
#define NRG_STEPS_PLANES(p, field, N)                                                                                            \
    {                                                                                                                            \
        .levels = 3, .count = {n_##N, n_ROWS2, n_ROWS3}, .given = {                                                              \
            p->field##_stride[0],                                                                                                \
            p->field##_stride[1],                                                                                                \
            p->field##_stride[2]                                                                                                 \
        }                                                                                                                        \
    }
#define NRG_STEPS_REPEATED(p, field, N)                                                                                          \
    {                                                                                                                            \
        .levels = 3, .count = {n_##N, n_ROWS2, n_ROWS3}, .repeat = p->field##_repeat, .given = {                                 \
            p->field##_stride[0],                                                                                                \
            p->field##_stride[1],                                                                                                \
            p->field##_stride[2]                                                                                                 \
        }                                                                                                                        \
    }
#define NRG_STEPS_HEADS(p, field, BATCH, HEADS, ROWS)                                                                            \
    {                                                                                                                            \
        .levels = 3, .count = {n_##ROWS, n_##HEADS, n_##BATCH}, .given = {                                                       \
            p->field##_strides.row,                                                                                              \
            p->field##_strides.head,                                                                                             \
            p->field##_strides.batch                                                                                             \
        }                                                                                                                        \
    }
#define NRG_STEPS_REPEATED_HEADS(p, field, BATCH, HEADS, ROWS)                                                                   \
    {                                                                                                                            \
        .levels = 3, .count = {n_##ROWS, n_##HEADS, n_##BATCH}, .repeat = p->field##_repeat, .given = {                          \
            p->field##_strides.row,                                                                                              \
            p->field##_strides.head,                                                                                             \
            p->field##_strides.batch                                                                                             \
        }                                                                                                                        \
    }
#define NRG_STEPS_TOKENS(p, field, BATCH, HEADS, ROWS)                                                                           \
    {                                                                                                                            \
        .levels = 3, .count = {n_##HEADS, n_##ROWS, n_##BATCH}, .given = {                                                       \
            p->field##_strides.head,                                                                                             \
            p->field##_strides.row,                                                                                              \
            p->field##_strides.batch                                                                                             \
        }                                                                                                                        \
    }
#define NRG_STEPS_DENSE(N, N2, N3)                                                                                               \
    {                                                                                                                            \
        .levels = 3, .count = { n_##N, n_##N2, n_##N3 }                                                                          \
    }
#define NRG_STEPS_ROOM(p, field)                                                                                                 \
    {                                                                                                                            \
        .levels = 0, .has_room = 1, .room = p->field                                                                             \
    }

#define NRG_GO_VERSIONED(p)                                                                                                      \
    if (!p || p->size != sizeof *p)                                                                                              \
        return 0;
#define NRG_GO_ABSENT(p) NRG_GO_VERSIONED(p)
#define NRG_GO_OWN(p)
#define NRG_GO_PART(ID, p, type, KIND) NRG_GO_##KIND(p)
#define NRG_GO_FIELD(p, field, low, high, STATUS)                                                                                \
    if ((uint32_t)p->field - (uint32_t)(low) > (uint32_t)(high) - (uint32_t)(low))                                               \
        return 0;
#define NRG_GO_TYPE(ID, dtype_)                                                                                                  \
    const nrg_dtype t_##ID = (dtype_);                                                                                           \
    (void)t_##ID;
#define NRG_GO_NUMBER(ID, value)                                                                                                 \
    const size_t n_##ID = (value);                                                                                               \
    (void)n_##ID;
#define NRG_GO_RULE(STATUS, holds)                                                                                               \
    if (!(holds))                                                                                                                \
        return 0;
#define NRG_GO_CHECK(call)                                                                                                       \
    if ((call) != NRG_OK)                                                                                                        \
        return 0;
#define NRG_GO_MARK(set, bits) c_.set |= (bits);
#define NRG_GO_NAMED(ID, name, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over)                                                \
    if (!nrg_place(&c_, laid_, NRG_OWN(ID), p->field, NRG_##ROLE, NRG_BYTES_##ELEMENT, n_##DIM, (nrg_steps)NRG_STEPS_##LEVELS,   \
                   NRG_THERE_##THERE, (over)))                                                                                   \
        return 0;

#endif
