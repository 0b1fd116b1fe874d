/* SPDX-License-Identifier: MIT */
#include "header.h"

#include <stdio.h>
#include <string.h>

#include "../harness/support.h"

const header_function *header_of(const char *function)
{
    const header_function *f = header_functions;
    while (f->name && strcmp(f->name, function) != 0)
        f++;
    ck_assert_msg(f->name != NULL, "no header of nrg.h declares %s", function);
    return f;
}

/* Bits of the operands that are among the names; 0 where one of these is no operand. */
static uint32_t bits_of(const nrg_call *call, const char *names)
{
    uint32_t bits = 0;
    size_t length = 1;
    for (int i = 0; i < call->operand_count; i++) {
        char name[64];
        const int bytes = snprintf(name, sizeof name, " %s ", call->operands[i].name);
        if (strstr(names, name)) {
            bits |= NRG_BIT(i);
            length += (size_t)bytes - 1;
        }
    }
    return length == strlen(names) ? bits : 0;
}

uint32_t header_over(const char *function, const nrg_call *call, int out)
{
    const header_function *f = header_of(function);
    uint32_t over = 0;
    for (int i = 0; i < f->row_count; i++)
        if (strcmp(f->rows[i].output, call->operands[out].name) == 0 && bits_of(call, f->rows[i].names))
            over = bits_of(call, f->rows[i].over);
    return over;
}
