/* The words of a .def, as the pass NRG_PASS has them. Included at the beginning and at the end of what makes use of a .def.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PART
#define PART(...) NRG_JOIN(NRG_PASS, PART)(__VA_ARGS__)
#define FIELD(...) NRG_JOIN(NRG_PASS, FIELD)(__VA_ARGS__)
#define TYPE(...) NRG_JOIN(NRG_PASS, TYPE)(__VA_ARGS__)
#define NUMBER(...) NRG_JOIN(NRG_PASS, NUMBER)(__VA_ARGS__)
#define RULE(...) NRG_JOIN(NRG_PASS, RULE)(__VA_ARGS__)
#define CHECK(...) NRG_JOIN(NRG_PASS, CHECK)(__VA_ARGS__)
#define MARK(...) NRG_JOIN(NRG_PASS, MARK)(__VA_ARGS__)
#define NAMED(...) NRG_JOIN(NRG_PASS, NAMED)(__VA_ARGS__)
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
#undef OPERAND
#undef ON
#undef NRG_PASS
#endif
