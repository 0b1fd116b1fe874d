/* SPDX-License-Identifier: MIT */
#include "trial.h"

#include <stdlib.h>
#include <string.h>

#include "../harness/control.h"
#include "../harness/element.h"
#include "../harness/support.h"

int environments(environment all[ENVIRONMENTS_MOST])
{
    static const environment known[] = {
        {"results flushed", CONTROL_RESULTS, 1, CONTROL_RESULTS == CONTROL_OPERANDS, 0},
        {"operands flushed", CONTROL_OPERANDS, CONTROL_RESULTS == CONTROL_OPERANDS, 1, 0},
        {"results and operands flushed", CONTROL_RESULTS | CONTROL_OPERANDS, 1, 1, 0},
        {"results, operands and halves flushed", CONTROL_RESULTS | CONTROL_OPERANDS | CONTROL_HALVES, 1, 1, 0},
        {"upwards", CONTROL_UP, 0, 0, 1},
        {"downwards", CONTROL_DOWN, 0, 0, 1},
        {"towards zero", CONTROL_ZERO, 0, 0, 1},
        {"flushed, upwards", CONTROL_RESULTS | CONTROL_OPERANDS | CONTROL_UP, 1, 1, 1},
    };
    int count = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const int flushes = known[i].flushes_results || known[i].flushes_operands;
        int is_new = known[i].control != 0 && (!flushes || CONTROL_RESULTS != 0);
        for (int j = 0; j < count; j++)
            is_new &= all[j].control != known[i].control;
        if (is_new)
            all[count++] = known[i];
    }
    return count;
}

/* ---- elements ---- */

int trial_is_number(int type) { return type == NRG_F32 || type == NRG_F16 || type == NRG_BF16 || type == SWEEP_F64; }

double trial_number(int type, uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return type == SWEEP_F64 ? d : (double)element_get(&bits, 0, (nrg_dtype)type); /* little-endian, as every host of nrg is */
}

static int fraction_bits(int type) { return type == NRG_F32 ? 23 : type == NRG_F16 ? 10 : 7; }

static uint64_t sign_bit(int type) { return (uint64_t)1 << (8 * sweep_type_size(type) - 1); }

/* From 1/2 to 2, drawn. */
static uint64_t ordinary(int type, uint64_t was, uint64_t drawn)
{
    const int shift = fraction_bits(type);
    const uint64_t one = type == NRG_F16 ? 15 : 127;
    return (was & sign_bit(type)) | (one - (drawn >> 63)) << shift | (drawn & (((uint64_t)1 << shift) - 1));
}

/* The same without its exponent, or nothing but its sign. */
static uint64_t without_exponent(int type, uint64_t bits, int is_zero)
{
    return bits & (sign_bit(type) | (is_zero ? 0 : ((uint64_t)1 << fraction_bits(type)) - 1));
}

/* ---- a case ---- */

int trial_make(trial *t, uint64_t number, size_t most)
{
    sweep_make(SWEEP_QUICK, number, &t->c);
    if (t->c.bytes > most)
        return 0;
    t->plain = sweep_plain(&t->c);
    sweep_describe(&t->c, t->text);
    if (t->c.bytes > t->room) {
        t->room = t->c.bytes * 2;
        for (int i = 0; i < TRIAL_COPIES; i++) {
            free(t->memory[i]);
            t->memory[i] = test_allocate(t->room, 1);
        }
        free(t->is_own);
        t->is_own = test_allocate(t->room, 1);
    }
    memset(t->is_own, 0, t->c.bytes);
    for (int slot = SWEEP_FIRST_OUTPUT; slot < SWEEP_OPERANDS; slot++)
        TRIAL_EACH(&t->c.operands[slot], at)
    memset(t->is_own + at, 1, sweep_type_size(t->c.operands[slot].type));
    return 1;
}

void trial_free(trial *t)
{
    for (int i = 0; i < TRIAL_COPIES; i++)
        free(t->memory[i]);
    free(t->is_own);
    fence_free(&t->pages);
}

/* Not of doubles, statistics that belong to other operands; nor where calls refuse what a number would make of a frequency. */
static int is_given(const sweep_operand *o, int slot)
{
    return trial_is_number(o->type) && o->type != SWEEP_F64 && (slot < SWEEP_FIRST_OUTPUT || o->is_read) &&
           strcmp(o->name, "freq_factors") != 0;
}

void trial_fill(trial *t, trial_data data)
{
    uint64_t drawn = t->c.seed;
    sweep_fill(&t->c, t->memory[TRIAL_FILLED]);
    for (int slot = 0; slot < SWEEP_FIRST_SCRATCH && data != TRIAL_ANY; slot++) {
        const sweep_operand *o = &t->c.operands[slot];
        if (!is_given(o, slot))
            continue;
        TRIAL_EACH(o, at)
        {
            drawn = test_mix(drawn + 1);
            uint64_t bits = ordinary(o->type, sweep_load(o->type, t->memory[TRIAL_FILLED] + at), drawn);
            if (data != TRIAL_ORDINARY && i_ % 4 == 0 && o->type != NRG_F16)
                bits = without_exponent(o->type, bits, data == TRIAL_ZEROS);
            memcpy(t->memory[TRIAL_FILLED] + at, &bits, sweep_type_size(o->type));
        }
    }
}

void trial_run(trial *t, const sweep_case *c, nrg_isa isa, const environment *in, trial_copy to)
{
    unsigned char *at = fence_place(&t->pages, t->c.bytes, t->side++ % 2 ? AT_START : AT_END, 0);
    const unsigned usual = control(), wanted = usual | (in ? in->control : 0);
    memcpy(at, t->memory[TRIAL_FILLED], t->c.bytes);
    ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
    set_control(wanted);
    const unsigned before = control(); /* a CPU may lack a bit */
    const nrg_status status = sweep_run(c, at);
    const unsigned after = control();
    set_control(usual);
    memcpy(t->memory[to], at, t->c.bytes);
    ck_assert_msg(status == NRG_OK, "%s: %s", test_note, nrg_status_string(status));
    ck_assert_msg((before & ~(unsigned)CONTROL_FLAGS) == (after & ~(unsigned)CONTROL_FLAGS),
                  "%s: the control word was 0x%x, and is 0x%x", test_note, before, after);
    unsigned strange = 0;
    for (size_t i = 0; i < t->c.bytes; i++)
        strange |= !t->is_own[i] & (at[i] != t->memory[TRIAL_FILLED][i]);
    for (size_t i = 0; strange && i < t->c.bytes; i++)
        if (!t->is_own[i] && at[i] != t->memory[TRIAL_FILLED][i])
            ck_abort_msg("%s: byte %zu is not the call's, and was written", test_note, i);
}
