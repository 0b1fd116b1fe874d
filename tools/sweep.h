/* tools/sweep.h: the cases nrg check runs: what is asked for, where the operands lie, and what is in them.
 *
 * Cases and data are made with integers and exact floating-point operations only, so they are the same on every machine.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_SWEEP_H
#define NRG_TOOLS_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include <nrg/nrg.h>

typedef enum sweep_level { SWEEP_QUICK, SWEEP_DEFAULT, SWEEP_FULL } sweep_level;

enum { SWEEP_X, SWEEP_Y, SWEEP_W, SWEEP_B, SWEEP_O, SWEEP_R, SWEEP_MEAN, SWEEP_RSTD, SWEEP_OPERANDS };
extern const char *const sweep_operand_names[SWEEP_OPERANDS];

/* Where an operand lies in the case's memory. Absent: no rows. */
typedef struct sweep_operand {
    nrg_dtype dtype;
    size_t offset, length, stride, rows; /* length in elements, the others in bytes and rows */
} sweep_operand;

typedef struct sweep_case {
    uint64_t number; /* from 0 */
    nrg_norm_spec spec;
    size_t rows;
    int shares; /* nth; the reference always takes one */
    sweep_operand operands[SWEEP_OPERANDS];
    size_t bytes; /* of memory, all operands and the gaps around them */
} sweep_case;

/* Makes the case of this number; 0 when there are no more. */
int sweep_make(sweep_level level, uint64_t number, sweep_case *c);

/* Fills c->bytes of memory, aligned to 64 bytes: inputs as the case has them, NaNs in every gap, so that what is read from there
 * shows; something finite in outputs, so that what is not written shows. */
void sweep_fill(const sweep_case *c, unsigned char *memory);

/* One line about a case. */
enum { SWEEP_TEXT_ROOM = 512 };
void sweep_describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM]);

#endif
