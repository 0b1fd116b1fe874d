/* How a .def describes a call: one text, from which description.h makes the names of its operands, the nrg_call that the
 * checker reads, and a precheck. A line of a .def is one of these words:
 *
 *   PART(ID, p, type, KIND)              a struct that the caller gives; p: its name in the lines below. KIND: VERSIONED begins
 *                                        with its size, ABSENT the same and may be NULL, OWN is the library's own
 *   FIELD(p, field, low, high, STATUS)   an enum or a reserved field of four bytes, and NRG_ERR_STATUS where it is out of range
 *   TYPE(ID, dtype)                      a dtype that operands have, and t_ID in the lines below
 *   DTYPE(ID, p, field)                  FIELD and TYPE of p->field, a dtype
 *   OWN_DTYPE(ID, p, field)              FIELD and TYPE of p->field, where 0 means p->dtype
 *   NUMBER(ID, value)                    a number that shapes are told in, and n_ID; n_ONE is 1
 *   LENGTH(ID, value)                    NUMBER, and NRG_ERR_DIM where it is 0
 *   SPACE(ID, value)                     NUMBER of a workspace's elements, and NRG_ERR_OVERFLOW where it is SIZE_MAX
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
 * above it. Before each use NRG_CALL is two words: what the names begin with (NRG_OF), and the name of the call and of its file
 * (NRG_NAME).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_DESCRIBE_H
#define NRG_OPERANDS_DESCRIBE_H

#include "../compiler.h"
#include "operand.h"

static inline enum nrg_there nrg_need_if(int is_used) { return is_used ? NRG_NEED : NRG_NOT; }
static inline enum nrg_there nrg_may_if(int is_used) { return is_used ? NRG_MAY : NRG_NOT; }

static inline void nrg_set_there(nrg_sizes *s, uint32_t bit, enum nrg_there there)
{
    s->needed |= there == NRG_NEED ? bit : 0;
    s->always |= there == NRG_ALWAYS ? bit : 0;
    s->refused |= there == NRG_NOT ? bit : 0;
    s->ignored |= there == NRG_SKIP ? bit : 0;
}

/* The dtype of an operand that may have one of its own, and whether it may be this one beside x's. */
static inline nrg_dtype nrg_own_dtype(nrg_dtype own, nrg_dtype dtype) { return own == NRG_DTYPE_SAME ? dtype : own; }
static inline int nrg_is_beside(nrg_dtype type, nrg_dtype dtype) { return type == dtype || type == NRG_F32; }

enum { NRG_REPEAT_ALL = NRG_REPEAT_ROWS | NRG_REPEAT_ROWS2 | NRG_REPEAT_ROWS3 };

#define NRG_TEXT_OF_(x) #x
#define NRG_TEXT_OF(x) NRG_TEXT_OF_(x)
#define NRG_JOIN_(a, b) a##b
#define NRG_JOIN(a, b) NRG_JOIN_(a, b)
#define NRG_OF_(of, name) of
#define NRG_NAME_(of, name) name
#define NRG_USE(macro, ...) macro(__VA_ARGS__)
#define NRG_OF NRG_USE(NRG_OF_, NRG_CALL)
#define NRG_NAME NRG_USE(NRG_NAME_, NRG_CALL)
#define NRG_DEF NRG_TEXT_OF(NRG_NAME.def)
#define NRG_OWN(name) NRG_JOIN(NRG_OF, _##name)

/* Words are made code of in passes. One that makes code has a macro for each word; one that makes a list has macros of those it
 * is made of, each of which begins with a comma. NRG_LISTED leaves out what is before it, which is a word without a macro or
 * nothing, and ends with the next comma. */
#define NRG_REST(first, ...) __VA_ARGS__
#define NRG_SECOND(first, second, ...) second
#define NRG_LISTED(...) NRG_REST(__VA_ARGS__, )
#define NRG_WORD(word, ...) NRG_JOIN(NRG_PASS, WORD)(NRG_JOIN(NRG_PASS, word)(__VA_ARGS__))
#define NRG_PARTS_WORD NRG_LISTED
#define NRG_TYPES_WORD NRG_LISTED
#define NRG_NUMBERS_WORD NRG_LISTED
#define NRG_OPERANDS_WORD NRG_LISTED
#define NRG_SIZES_WORD NRG_LISTED
#define NRG_RANGES_WORD NRG_LISTED
#define NRG_ENTRY_WORD NRG_LISTED
#define NRG_PARAMS_WORD NRG_LISTED
#define NRG_STRUCTS_WORD(...) NRG_SECOND(__VA_ARGS__, , )
#define NRG_MEASURE_WORD(...) __VA_ARGS__
#define NRG_GO_WORD(...) __VA_ARGS__

/* ---- names: enums of parts, types, numbers and operands ---- */

#define NRG_PARTS_PART(ID, p, type, KIND) , NRG_OWN(ID), NRG_OWN(PART_##p) = NRG_OWN(ID)

#define NRG_TYPES_TYPE(ID, dtype) , NRG_OWN(TYPE_##ID)
#define NRG_NUMBERS_NUMBER(ID, value) , NRG_OWN(N_##ID)
#define NRG_OPERANDS_NAMED(ID, name, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over) , NRG_OWN(ID)

/* ---- the table ---- */

#define NRG_STRUCTS_PART(ID, p, type, KIND) , typedef type NRG_OWN(struct_##p);

#define NRG_KIND_VERSIONED(type) .least = sizeof(type)
#define NRG_KIND_ABSENT(type) .least = sizeof(type), .may_be_absent = 1
#define NRG_KIND_OWN(type) .least = 0
#define NRG_SIZES_PART(ID, p, type, KIND)                                                                                        \
    , { .size = sizeof(type), NRG_KIND_##KIND(type) }

#define NRG_RANGES_FIELD(p, field_, low_, high, STATUS)                                                                          \
    ,                                                                                                                            \
    {                                                                                                                            \
        .part = NRG_OWN(PART_##p), .status = NRG_ERR_##STATUS, .at = NRG_AT(NRG_OWN(struct_##p), field_), .low = (low_),         \
        .span = (uint32_t)(high) - (uint32_t)(low_)                                                                              \
    }

#define NRG_ELEMENT_T(ID) NRG_ELEMENT_CHOSEN + NRG_OWN(TYPE_##ID)
#define NRG_ENTRY_MUST 0
#define NRG_ENTRY_MAY 1
#define NRG_ENTRY_WHEN(there) 1

/* LEVELS: none; rows with a stride; rows, planes and volumes, which may repeat; chains; [batch, heads, rows] and [batch, rows,
 * heads] with an nrg_head_strides; levels without strides, which are dense; a workspace, and where its size is. A pass has
 * numbers and fields as places in the tables (NRG_ENTRY_) or as values (NRG_GO_). */
#define NRG_ENTRY_COUNT(N) NRG_OWN(N_##N)
#define NRG_ENTRY_OF(p, field) NRG_AT(NRG_OWN(struct_##p), field)
#define NRG_GO_COUNT(N) n_##N
#define NRG_GO_OF(p, field) p->field
#define NRG_COUNT_OF(N) NRG_JOIN(NRG_PASS, COUNT)(N)
#define NRG_VALUE_OF(p, field) NRG_JOIN(NRG_PASS, OF)(p, field)
#define NRG_LEVEL(p, field, N)                                                                                                   \
    {                                                                                                                            \
        NRG_VALUE_OF(p, field), NRG_COUNT_OF(N)                                                                                  \
    }
#define NRG_LEVELS_LINE .levels = 0
#define NRG_LEVELS_ROWS(p, field, N) .levels = 1, .level = {NRG_LEVEL(p, field, N)}
#define NRG_LEVELS_CHAINS(p, field, N, N2) .levels = 2, .level = {NRG_LEVEL(p, field[0], N), NRG_LEVEL(p, field[1], N2)}
#define NRG_LEVELS_LEVELS(p, field, N, N2, N3)                                                                                   \
    .levels = 3,                                                                                                                 \
    .level = {NRG_LEVEL(p, field##_stride[0], N), NRG_LEVEL(p, field##_stride[1], N2), NRG_LEVEL(p, field##_stride[2], N3)}
#define NRG_LEVELS_PLANES(p, field, N) NRG_LEVELS_LEVELS(p, field, N, ROWS2, ROWS3)
#define NRG_LEVELS_REPEATED(p, field, N) NRG_LEVELS_PLANES(p, field, N), .repeat = NRG_VALUE_OF(p, field##_repeat)
#define NRG_LEVELS_HEADS(p, field, BATCH, HEADS, ROWS)                                                                           \
    .levels = 3, .level = {NRG_LEVEL(p, field##_strides.row, ROWS), NRG_LEVEL(p, field##_strides.head, HEADS),                   \
                           NRG_LEVEL(p, field##_strides.batch, BATCH)}
#define NRG_LEVELS_REPEATED_HEADS(p, field, BATCH, HEADS, ROWS)                                                                  \
    NRG_LEVELS_HEADS(p, field, BATCH, HEADS, ROWS), .repeat = NRG_VALUE_OF(p, field##_repeat)
#define NRG_LEVELS_TOKENS(p, field, BATCH, HEADS, ROWS)                                                                          \
    .levels = 3, .nests = 1,                                                                                                     \
    .level = {NRG_LEVEL(p, field##_strides.head, HEADS), NRG_LEVEL(p, field##_strides.row, ROWS),                                \
              NRG_LEVEL(p, field##_strides.batch, BATCH)}
#define NRG_LEVELS_DENSE(N, N2, N3) .levels = 3, .level = {{0, NRG_COUNT_OF(N)}, {0, NRG_COUNT_OF(N2)}, {0, NRG_COUNT_OF(N3)}}
#define NRG_LEVELS_ROOM(p, field) .room = NRG_VALUE_OF(p, field)

#define NRG_ENTRY_NAMED(ID, name_, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over_)                                           \
    , [NRG_OWN(ID)] = {.name = (name_),                                                                                          \
                       .role = NRG_##ROLE,                                                                                       \
                       .element = NRG_ELEMENT_##ELEMENT,                                                                         \
                       .part = NRG_OWN(PART_##p),                                                                                \
                       .may_be_absent = NRG_ENTRY_##THERE,                                                                       \
                       .dim = NRG_OWN(N_##DIM),                                                                                  \
                       .at = NRG_AT(NRG_OWN(struct_##p), field),                                                                 \
                       .over = (over_),                                                                                          \
                       NRG_LEVELS_##LEVELS}

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

/* ---- checks in a straight line: the precheck ---- */

#define NRG_PARAMS_PART(ID, p, type, KIND) , const type *const p

#define NRG_GO_VERSIONED(p)                                                                                                      \
    if (!p || p->size != sizeof *p)                                                                                              \
        return NRG_ERR_STRUCT_SIZE;
#define NRG_GO_ABSENT(p) NRG_GO_VERSIONED(p)
#define NRG_GO_OWN(p)
#define NRG_GO_PART(ID, p, type, KIND) NRG_GO_##KIND(p)
#define NRG_GO_FIELD(p, field, low, high, STATUS)                                                                                \
    if ((uint32_t)p->field - (uint32_t)(low) > (uint32_t)(high) - (uint32_t)(low))                                               \
        return NRG_ERR_##STATUS;
#define NRG_GO_TYPE NRG_MEASURE_TYPE
#define NRG_GO_NUMBER NRG_MEASURE_NUMBER
#define NRG_GO_RULE NRG_MEASURE_RULE
#define NRG_GO_CHECK NRG_MEASURE_CHECK
#define NRG_GO_MARK(set, bits) c_.set |= (bits);
#define NRG_GO_NAMED(ID, name, p, field, ROLE, ELEMENT, DIM, LEVELS, THERE, over)                                                \
    if (!nrg_place(&c_, laid_, NRG_OWN(ID), p->field, NRG_##ROLE, nrg_element_bytes(NRG_ELEMENT_##ELEMENT, sizes_), n_##DIM,     \
                   (nrg_steps){NRG_LEVELS_##LEVELS}, NRG_THERE_##THERE, (over)))                                                 \
        return NRG_ERR_OVERLAP;

#endif
