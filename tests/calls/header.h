/* What a public header says of a call: the statuses it lists, its matrix of operands that may lie in each other's place, and the
 * values of options.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_HEADER_H
#define NRG_TESTS_CALLS_HEADER_H

#include "../../src/operands/operand.h"

/* A row of a matrix: an output; names, each between spaces, that are above the row, and those with a yes. */
typedef struct header_row {
    const char *output, *names, *over;
} header_row;

/* A function, the bits of the statuses that it lists, and the rows of its header that are above it. The last one has no name. */
typedef struct header_function {
    const char *name;
    uint32_t statuses;
    const header_row *rows;
    int row_count;
} header_function;

/* A field of a struct that is an enum, or reserved: its values, and the status of all others. The last one has no name. */
typedef struct header_field {
    const char *structure, *name;
    uint16_t at;
    nrg_status status;
    const int *values;
    int value_count;
} header_field;

/* headers.py makes them. */
extern const header_function header_functions[];
extern const header_field header_fields[];

/* The function of this name, which has to be there. */
const header_function *header_of(const char *function);

/* Bits of the operands in whose place operand `out` may be, by the last row for it with names of the call. */
uint32_t header_over(const char *function, const nrg_call *call, int out);

#endif
