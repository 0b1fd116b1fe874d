/* SPDX-License-Identifier: MIT */
#include "call_layout.h"

#include <stdio.h>
#include <string.h>

#include "call_value.h"

/* Not the canary of other calls, so that an element nobody writes differs. */
enum { REFERENCE_CANARY = 0x5a };

static size_t outer_rows(const call_operand *o) { return o->group ? o->rows / o->group : o->rows; }

/* Whether an output may be in the place of an input. */
static int fits_over(const call_case *c, int out, int in)
{
    const call_operand *o = &c->operands[out], *x = &c->operands[in];
    return o->type && o->over & CALL_OVER(in) && x->type == o->type && x->rows == o->rows && x->dim == o->dim &&
           x->group == o->group && (o->padded || !x->padded);
}

/* Whether an operand may share rows with another one, or with others if `first` is itself. */
static int fuses(const call_case *c, int which, int first)
{
    const call_operand *o = &c->operands[which];
    return o->type && o->fused && outer_rows(o) == outer_rows(&c->operands[first]);
}

static size_t work_of(const call_case *c)
{
    size_t work = c->work;
    for (int i = 0; i < c->count && !c->work; i++)
        if (call_is_result(&c->operands[i]) && c->operands[i].rows > work)
            work = c->operands[i].rows;
    return work;
}

static int can_be_apart(const call_operand *o) { return o->type && o->padded && o->rows > 1; }
static int can_be_transposed(const call_operand *o) { return o->type && o->transposed && o->group > 1 && o->rows > o->group; }

unsigned call_marks_offered(const call_case *c)
{
    unsigned marks = ODD_GAPS | SHARED | AT_FRONT | AT_BACK;
    marks |= work_of(c) + 4 < CALL_MOST_SHARES ? SURPLUS : 0;
    for (int i = 0; i < c->count; i++) {
        marks |= can_be_apart(&c->operands[i]) ? PADDED | STRIDE_0 : 0;
        marks |= can_be_transposed(&c->operands[i]) ? TRANSPOSED : 0;
        marks |= c->operands[i].type && c->operands[i].optional ? LEFT_OUT : 0;
        for (int j = 0; j < c->count; j++) {
            marks |= fits_over(c, i, j) ? IN_PLACE : 0;
            marks |= j != i && fuses(c, i, i) && fuses(c, j, i) ? FUSED : 0;
        }
    }
    return marks;
}

int call_stands(const call_case *c, const call_layout *l, int i)
{
    return c->operands[i].type && l->over[i] == i && !l->left_out[i];
}

int call_is_fused(const call_case *c, const call_layout *l, int i)
{
    return l->fused >= 0 && call_stands(c, l, i) && fuses(c, i, l->fused);
}

unsigned call_marks(const call_case *c, const call_layout *l)
{
    unsigned marks = l->nth > 1 ? SHARED : 0;
    marks |= (size_t)l->nth > work_of(c) + 1 ? SURPLUS : 0;
    marks |= l->fused >= 0 ? FUSED : 0;
    for (int i = 0; i < c->count; i++) {
        const call_operand *o = &c->operands[i];
        const operand_place *p = &l->place[i];
        marks |= l->left_out[i] ? LEFT_OUT : 0;
        marks |= l->over[i] != i ? IN_PLACE : 0;
        if (!call_stands(c, l, i))
            continue;
        marks |= p->side == AT_START ? AT_FRONT : AT_BACK;
        marks |= p->gap % 2 ? ODD_GAPS : 0;
        marks |= p->pad || p->group_pad ? PADDED : 0;
        if (call_is_fused(c, l, i))
            continue;
        marks |= p->transposed ? TRANSPOSED : 0;
        marks |= l->say_zero[i] && can_be_apart(o) && !p->pad && !p->transposed ? STRIDE_0 : 0;
    }
    return marks;
}

static void draw_places(const call_case *c, call_layout *l, unsigned wanted, uint64_t *state)
{
    const enum fence_side side = test_draw(state, 2) ? AT_START : AT_END;
    const int transposed = test_draw(state, 2) == 0, alike = test_draw(state, 8) == 0;
    int padded = 0;
    for (int i = 0; i < c->count; i++) {
        const call_operand *o = &c->operands[i];
        operand_place *p = &l->place[i];
        p->side = side;
        if (wanted & ODD_GAPS)
            p->gap = i == 0 || test_draw(state, 4) ? 2 * test_draw(state, 10) + 1 : 16;
        p->transposed = transposed && can_be_transposed(o);
        if (!(wanted & PADDED) || !can_be_apart(o) || !call_stands(c, l, i) || (padded && !alike && test_draw(state, 4) == 0))
            continue;
        /* kernels look at alignment: pads of anything, of whole vectors, and up to the next cache line; calls look for tensors
         * without gaps: rows that all are half a row apart, so that no stride differs from another */
        size_t how = test_draw(state, 4);
        p->pad = alike      ? (o->dim + 1) / 2
                 : how < 2  ? test_draw(state, 19) + 1
                 : how == 2 ? 16
                            : (64 - call_row_bytes(o) % 64) / value_bytes(o->type);
        p->group_pad = o->group ? test_draw(state, 2) * (test_draw(state, 9) + 1) : 0;
        padded = 1;
    }
}

static void draw_in_place(const call_case *c, call_layout *l, uint64_t *state)
{
    unsigned taken = 0;
    for (int pass = 0; pass < 2 && !taken; pass++) /* the second one leaves nothing to chance */
        for (int i = 0; i < c->count; i++) {
            int fitting[OPERANDS_MOST], n = 0;
            for (int j = 0; j < c->count; j++)
                if (fits_over(c, i, j) && !(taken & CALL_OVER(j)))
                    fitting[n++] = j;
            if (n == 0 || (pass == 0 && (l->left_out[i] || test_draw(state, 3) == 0)))
                continue;
            l->over[i] = fitting[test_draw(state, (size_t)n)];
            l->left_out[i] = 0;
            taken |= CALL_OVER(l->over[i]);
        }
}

static void draw_fused(const call_case *c, call_layout *l, uint64_t *state)
{
    int first = (int)test_draw(state, (size_t)c->count), n = 0;
    for (int i = 0; i < c->count && !(call_stands(c, l, first) && fuses(c, first, first)); i++)
        first = (first + 1) % c->count;
    for (int i = 0; i < c->count; i++)
        n += call_stands(c, l, i) && fuses(c, i, first);
    if (n > 1 && call_stands(c, l, first) && fuses(c, first, first))
        l->fused = first;
}

call_layout call_layout_plain(const call_case *c)
{
    call_layout l;
    memset(&l, 0, sizeof l);
    for (int i = 0; i < c->count; i++)
        l.over[i] = i;
    l.fused = -1;
    l.nth = 1;
    l.canary = REFERENCE_CANARY;
    l.rubbish = 0xff;
    return l;
}

call_layout call_layout_draw(const call_case *c, uint64_t seed, unsigned n)
{
    static const int shares[] = {2, 3, 7};
    static const unsigned char rubbish[] = {0xff, 0x7f, 0x01, 0xa5};
    const unsigned can = call_marks_offered(c), wanted = (unsigned)(test_mix(seed) + n) % COMBINATIONS & can;
    uint64_t state = test_mix(seed + n);
    call_layout l = call_layout_plain(c);
    l.canary = OPERAND_CANARY;
    l.rubbish = rubbish[test_draw(&state, 4)];
    for (int i = 0; i < c->count; i++) {
        l.left_out[i] = c->operands[i].optional && test_draw(&state, 3) == 0;
        l.say_zero[i] = test_draw(&state, 2) == 0;
    }
    if (wanted & IN_PLACE)
        draw_in_place(c, &l, &state);
    draw_places(c, &l, wanted, &state);
    if (can & FUSED && test_draw(&state, 4) == 0)
        draw_fused(c, &l, &state);
    if (wanted & SHARED) {
        size_t how = test_draw(&state, can & SURPLUS ? 4 : 3);
        l.nth = how < 3 ? shares[how] : (int)(work_of(c) + 2 + test_draw(&state, 3));
    }
    l.order = state;
    l.vary = test_mix(state) | 1;
    return l;
}

void call_layout_write(char *text, size_t room, const call_case *c, const call_layout *l)
{
    size_t n =
        (size_t)snprintf(text, room, "nth %d, flush with %s", l->nth, l->place[0].side == AT_START ? "the front" : "the back");
    for (int i = 0; i < c->count && n < room; i++) {
        const operand_place *p = &l->place[i];
        const char *name = c->operands[i].name;
        if (l->over[i] != i)
            n += (size_t)snprintf(text + n, room - n, "; %s over %s", name, c->operands[l->over[i]].name);
        else if (l->left_out[i])
            n += (size_t)snprintf(text + n, room - n, "; no %s", name);
        else if (c->operands[i].type)
            n += (size_t)snprintf(text + n, room - n, "; %s gap %zu%s%s%s", name, p->gap, p->transposed ? " transposed" : "",
                                  call_is_fused(c, l, i) ? " fused" : "", l->say_zero[i] && !p->pad ? " stride 0" : "");
        if (n < room && call_stands(c, l, i) && (p->pad || p->group_pad))
            n += (size_t)snprintf(text + n, room - n, " pad %zu, %zu", p->pad, p->group_pad);
    }
}
