/* The words of a .def, as the pass NRG_PASS has them. Included at the beginning and at the end of what makes use of a .def.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PART
#define PART(...) NRG_WORD(PART, __VA_ARGS__)
#define FIELD(...) NRG_WORD(FIELD, __VA_ARGS__)
#define TYPE(...) NRG_WORD(TYPE, __VA_ARGS__)
#define NUMBER(...) NRG_WORD(NUMBER, __VA_ARGS__)
#define RULE(...) NRG_WORD(RULE, __VA_ARGS__)
#define CHECK(...) NRG_WORD(CHECK, __VA_ARGS__)
#define MARK(...) NRG_WORD(MARK, __VA_ARGS__)
#define NAMED(...) NRG_WORD(NAMED, __VA_ARGS__)
#define DTYPE(ID, p, field) FIELD(p, field, NRG_F32, NRG_BF16, ENUM) TYPE(ID, p->field)
#define OWN_DTYPE(ID, p, field) FIELD(p, field, NRG_DTYPE_SAME, NRG_BF16, ENUM) TYPE(ID, nrg_own_dtype(p->field, p->dtype))
#define LENGTH(ID, value) RULE(DIM, value) NUMBER(ID, value)
#define SPACE(ID, value) NUMBER(ID, value) RULE(OVERFLOW, n_##ID != SIZE_MAX)
#define OPERAND(ID, p, field, ...) NAMED(ID, #field, p, field, __VA_ARGS__)
#define ON(ID) NRG_BIT(NRG_OWN(ID))
#else
#undef PART
#undef FIELD
#undef TYPE
#undef NUMBER
#undef RULE
#undef CHECK
#undef MARK
#undef NAMED
#undef DTYPE
#undef OWN_DTYPE
#undef LENGTH
#undef SPACE
#undef OPERAND
#undef ON
#undef NRG_PASS
#undef NRG_CALL
#endif
