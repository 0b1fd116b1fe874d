/* Calls with wild pointers and sizes: every public call must return what the checker returns for its description, what its
 * `_check` returns, and what it returns for larger structs, which no precheck accepts. The kernels are stubs (stub_kernels.h), so
 * that operands need no memory. A call reaches a kernel if it is accepted and has elements to compute, and only then.
 *
 * A trial draws a sound call (sound.txt) with other sizes, strides and operands, then makes up to three changes: pointers
 * that are NULL, shifted, at the end of memory, or in and around another operand; strides, sizes, options, constants, shares.
 * Everything is drawn from the number of the trial, so that a failure can be repeated.
 *
 * Some calls compute without a kernel, or read ids and positions (sound_call.own). Those operands get memory, and an accepted
 * call is made only where they are in it.
 *
 *   --against FILE   makes each call of another version, too: a module (wild_module.h) that scripts/verdicts.sh compiles. The
 *                    statuses and the kernels that are reached must be the same
 *   --trials N       trials of each variant of a call
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/operands/check.h"
#include "../../src/operands/rope.h"
#include "../harness/support.h"
#include "sound.h"
#include "verdict.h"
#include "wild_module.h"

/* Trials: of each variant of a call. */
enum { CALLS = 100, TRIALS = 7000, CHANGES = 3, ARENA = 1 << 14, GAP = 64, LARGER = 64 };

/* Where operands lie that a call itself reads or writes. */
static _Alignas(64) unsigned char arena[ARENA], contents[ARENA];

typedef struct trial {
    const sound_call *sound;
    const wild_call *before; /* of the other version; or NULL */
    sound_size numbers[SOUND_SIZES];
    int number_count;
    _Alignas(16) unsigned char parts[NRG_PARTS][SOUND_PART_BYTES], larger[NRG_PARTS][SOUND_PART_BYTES];
    void *part[NRG_PARTS], *larger_part[NRG_PARTS];
    nrg_sizes sizes;
    verdict_operand operands[NRG_OPERANDS];
    size_t span[NRG_OPERANDS];
    uint64_t number, state;
    int variant, ith, nth, changes;
    unsigned char change[CHANGES];
} trial;

typedef struct counts {
    unsigned long calls, accepted, refused, skipped;
} counts;
static counts *counted;            /* of every function; shared by the tests' processes */
static const wild_module *earlier; /* NULL: no other version */
static size_t trials_asked;        /* 0: TRIALS */

static const nrg_call *call_of(const trial *t) { return t->sound->function->call; }
static size_t draw(trial *t, size_t n) { return test_draw(&t->state, n); }
static int one_in(trial *t, size_t n) { return draw(t, n) == 0; }

static void put(trial *t, unsigned part, size_t at, const void *from, size_t bytes) { memcpy(t->parts[part] + at, from, bytes); }

static void put_pointer(trial *t, unsigned i, uintptr_t pointer)
{
    const nrg_operand *o = &call_of(t)->operands[i];
    put(t, o->part, o->at, &pointer, sizeof pointer);
}

static uintptr_t pointer_of(const trial *t, unsigned i)
{
    const nrg_operand *o = &call_of(t)->operands[i];
    return (uintptr_t)nrg_pointer_at(t->parts[o->part], o->at);
}

static void put_number(trial *t, unsigned part, size_t at, size_t number) { put(t, part, at, &number, sizeof number); }

/* Operands as parts of this version have them. */
static void measure(trial *t, const void *const *part)
{
    const nrg_call *call = call_of(t);
    memset(t->operands, 0, sizeof t->operands);
    memset(t->span, 0, sizeof t->span);
    if (verdict_measure(call, part, &t->sizes, t->operands) == NRG_OK)
        for (unsigned i = 0; i < call->operand_count; i++)
            verdict_span(&call->operands[i], &t->operands[i], part[call->operands[i].part], &t->span[i]);
}

/* ---- a sound call ---- */

/* The numbers of the variant, multiples of them by one factor, so that structs agree, and ones. */
static void draw_sizes(trial *t)
{
    const size_t factor = one_in(t, 2) ? 1 + draw(t, 9) : (size_t)1 << draw(t, sizeof(size_t) == 8 ? 16 : 8);
    const int grow = one_in(t, 2), shrink = one_in(t, 2);
    for (int i = 0; i < t->number_count; i++) {
        const sound_size *s = &t->numbers[i];
        size_t number;
        memcpy(&number, t->parts[s->part] + s->at, sizeof number);
        if (shrink && !one_in(t, 4))
            put_number(t, s->part, s->at, 1);
        else if (grow && one_in(t, 2))
            put_number(t, s->part, s->at, number * factor);
    }
}

/* Options that constructors leave at 0, and now and then any. */
static void draw_options(trial *t)
{
    const int simple = one_in(t, 2);
    for (unsigned i = 0; i < call_of(t)->range_count; i++) {
        const nrg_range *r = &call_of(t)->ranges[i];
        const uint32_t option = one_in(t, 24) ? r->low + (uint32_t)draw(t, r->span + 1) : r->low;
        if ((simple && one_in(t, 2)) || option != r->low)
            put(t, r->part, r->at, &option, sizeof option);
    }
}

static void draw_strides(trial *t)
{
    const nrg_call *call = call_of(t);
    for (unsigned i = 0; i < call->operand_count; i++) {
        const verdict_operand *v = &t->operands[i];
        size_t inside = v->row;
        if (!v->has_elements || one_in(t, 2))
            continue;
        for (unsigned k = 0; k < v->levels; k++) {
            const size_t stride = inside + draw(t, 3) * 8 * v->element;
            if (call->operands[i].level[k].stride)
                put_number(t, call->operands[i].part, call->operands[i].level[k].stride, stride);
            inside = stride * v->count[k];
        }
    }
}

static uintptr_t draw_place(trial *t)
{
    const unsigned bits = sizeof(uintptr_t) == 8 ? 46 : 30;
    return ((uintptr_t)1 << (16 + draw(t, bits - 16))) + draw(t, 1 << 20) * 64;
}

/* One after the other, with or without gaps; those in memory in the order of operands. */
static void draw_places(trial *t, uint32_t there)
{
    const nrg_call *call = call_of(t);
    uintptr_t place = draw_place(t), in_arena = (uintptr_t)arena + GAP;
    const size_t gap = one_in(t, 4) ? 0 : GAP;
    for (unsigned i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        uintptr_t *const at = t->sound->own >> i & 1 ? &in_arena : &place;
        if (!(there >> i & 1)) {
            put_pointer(t, i, 0);
            continue;
        }
        put_pointer(t, i, *at);
        if (o->room)
            put_number(t, o->part, o->room, t->span[i]);
        *at = (*at + t->span[i] + gap + 7) / 8 * 8;
    }
}

static void draw_contents(trial *t)
{
    const size_t kind = draw(t, 3);
    for (size_t i = 0; i < ARENA; i += sizeof(int64_t)) {
        const int64_t number = kind == 2 ? (int64_t)(i / 8 % 16) : (int64_t)kind;
        memcpy(contents + i, &number, sizeof number);
    }
}

static void draw_call(trial *t)
{
    static double any;
    const nrg_call *call = call_of(t);
    for (int i = 0; i < NRG_PARTS; i++)
        t->part[i] = t->parts[i];
    t->variant = (int)draw(t, (size_t)t->sound->variants);
    uint32_t there = sound_set_up(t->sound, t->variant, t->part);
    /* as the variant has them; without some; with any */
    const size_t how = draw(t, 3);
    for (unsigned i = 0; i < call->operand_count; i++) {
        if (call->operands[i].may_be_absent && how && one_in(t, 2))
            there = how == 1 ? there & ~NRG_BIT(i) : there ^ NRG_BIT(i);
        put_pointer(t, i, there >> i & 1 ? (uintptr_t)&any : 0);
    }
    draw_options(t);
    draw_sizes(t);
    if (t->sound->settle)
        t->sound->settle(t->part);
    measure(t, (const void *const *)t->part);
    if (t->sizes.needed & ~there || t->sizes.refused & there) { /* mostly with what these options make necessary, and no more */
        const uint32_t fitting = (there | t->sizes.needed) & ~t->sizes.refused;
        there = one_in(t, 8) ? there : fitting;
        for (unsigned i = 0; i < call->operand_count; i++)
            put_pointer(t, i, there >> i & 1 ? (uintptr_t)&any : 0);
        if (t->sound->settle)
            t->sound->settle(t->part);
        measure(t, (const void *const *)t->part);
    }
    if (one_in(t, 4)) {
        draw_strides(t);
        measure(t, (const void *const *)t->part);
    }
    draw_places(t, there);
    t->ith = 0;
    t->nth = 1;
    if (sound_has_shares(t->sound) && one_in(t, 8)) {
        t->nth = 1 + (int)draw(t, 9);
        t->ith = (int)draw(t, (size_t)t->nth);
    }
}

/* ---- what is changed ---- */

/* An operand that is there, if the call has one. */
static unsigned draw_operand(trial *t)
{
    const unsigned count = call_of(t)->operand_count;
    unsigned i = (unsigned)draw(t, count);
    for (unsigned tries = 0; tries < count && !t->operands[i].is_there; tries++)
        i = (i + 1) % count;
    return i;
}

/* Most of the time an output, where there is one: inputs may lie anywhere. */
static unsigned draw_output(trial *t)
{
    unsigned i = draw_operand(t);
    for (int tries = 0; tries < 3 && call_of(t)->operands[i].role == NRG_IN; tries++)
        i = draw_operand(t);
    return i;
}

static size_t draw_far(trial *t)
{
    static const size_t far[] = {SIZE_MAX,       SIZE_MAX / 2,    SIZE_MAX / 2 + 1, SIZE_MAX / 4 + 1,      SIZE_MAX / 8,
                                 SIZE_MAX - 7,   (size_t)1 << 31, (size_t)1 << 24,  ((size_t)1 << 24) - 1, (size_t)1 << 12,
                                 (size_t)1 << 16};
    return far[draw(t, sizeof far / sizeof far[0])];
}

static void in_and_around(trial *t)
{
    const unsigned i = draw_output(t), j = draw_operand(t);
    const uintptr_t own = t->span[i], other = t->span[j], element = t->operands[i].element, row = t->operands[j].row;
    const uintptr_t places[] = {0,
                                0,
                                1,
                                element,
                                (uintptr_t)0 - element,
                                other,
                                other - element,
                                0 - own,
                                element - own,
                                other / 2 / 8 * 8,
                                (uintptr_t)0 - own / 2 / 8 * 8,
                                row,
                                row - element};
    put_pointer(t, i, pointer_of(t, j) + places[draw(t, sizeof places / sizeof places[0])]);
}

/* In the place of another operand, with its strides, or with the same ones that both can have. */
static void in_place(trial *t)
{
    const nrg_operand *const o = call_of(t)->operands;
    const unsigned i = draw_output(t);
    unsigned j = draw_operand(t);
    const int both = one_in(t, 2);
    for (int tries = 0; tries < 4 && o[i].over && !(o[i].over >> j & 1); tries++)
        j = draw_operand(t);
    put_pointer(t, i, pointer_of(t, j));
    for (unsigned k = 0; k < NRG_LEVELS; k++) {
        size_t stride;
        if (!o[i].level[k].stride || !o[j].level[k].stride)
            return;
        memcpy(&stride, t->parts[o[j].part] + o[j].level[k].stride, sizeof stride);
        if (both) {
            const size_t a = t->operands[i].row, b = t->operands[j].row;
            stride = k ? 0 : a > b ? a : b;
            put_number(t, o[j].part, o[j].level[k].stride, stride);
        }
        put_number(t, o[i].part, o[i].level[k].stride, stride);
    }
}

static void at_the_end(trial *t)
{
    const unsigned i = draw_operand(t);
    const uintptr_t e = t->operands[i].element, own = t->span[i];
    const uintptr_t before_end[] = {own, own + e, own - e, own / 2 / 8 * 8, e, 2 * e, 64, own + 64, own + 1};
    put_pointer(t, i, (uintptr_t)0 - before_end[draw(t, sizeof before_end / sizeof before_end[0])]);
}

static void change_stride(trial *t)
{
    const unsigned i = draw_operand(t);
    const nrg_operand *o = &call_of(t)->operands[i];
    const verdict_operand *v = &t->operands[i];
    const unsigned k = (unsigned)draw(t, NRG_LEVELS);
    const size_t e = v->element, row = v->row;
    const size_t strides[] = {row, row - e, row + e, row + 1, row - 1, e, 2 * row, 2 * row + e / 2, 1, 0, draw_far(t)};
    if (o->level[k].stride)
        put_number(t, o->part, o->level[k].stride, strides[draw(t, sizeof strides / sizeof strides[0])]);
}

static void change_size(trial *t)
{
    if (!t->number_count)
        return;
    const sound_size *s = &t->numbers[draw(t, (size_t)t->number_count)];
    size_t number;
    memcpy(&number, t->parts[s->part] + s->at, sizeof number);
    const size_t numbers[] = {0, 1, number + 1, number - 1, 2 * number, draw_far(t), draw_far(t)};
    put_number(t, s->part, s->at, numbers[draw(t, sizeof numbers / sizeof numbers[0])]);
}

/* Any field of four or eight bytes, but for the size that a struct begins with. */
static void change_field(trial *t)
{
    const unsigned part = (unsigned)draw(t, call_of(t)->part_count);
    const nrg_part *p = &call_of(t)->parts[part];
    const size_t least = p->least ? sizeof(size_t) : 0;
    if (t->sound->workspace && part == SOUND_SHARES)
        return;
    const uint32_t words[] = {0,           1,           2,           3,           UINT32_MAX, 0x80000000u,
                              0x7f800000u, 0x7fc00000u, 0xff800000u, 0x7f7fffffu, 0x3f800000u};
    const double doubles[] = {NAN, (double)INFINITY, -1, -0.0, DBL_MAX, 0x1p-600, 1, -(double)INFINITY};
    if (one_in(t, 2)) {
        const size_t at = least + draw(t, (p->size - least) / 4) * 4;
        put(t, part, at, &words[draw(t, sizeof words / sizeof words[0])], sizeof words[0]);
    } else if (p->size >= least + 8) {
        const size_t at = (least + 7) / 8 * 8 + draw(t, (p->size - least) / 8) * 8;
        if (at + 8 <= p->size)
            put(t, part, at, &doubles[draw(t, sizeof doubles / sizeof doubles[0])], sizeof doubles[0]);
    }
}

static void change_option(trial *t)
{
    if (!call_of(t)->range_count)
        return;
    const nrg_range *r = &call_of(t)->ranges[draw(t, call_of(t)->range_count)];
    const uint32_t option = r->low - 1 + (uint32_t)draw(t, r->span + 3);
    put(t, r->part, r->at, &option, sizeof option);
}

static void change_part(trial *t)
{
    const unsigned part = (unsigned)draw(t, call_of(t)->part_count);
    const nrg_part *p = &call_of(t)->parts[part];
    const size_t sizes[] = {0, p->least, p->least - 1u, p->size - 8u, p->size + 8u, 4097, SIZE_MAX};
    if (!p->least)
        return;
    if (one_in(t, 3))
        t->part[part] = NULL;
    else
        put_number(t, part, 0, sizes[draw(t, sizeof sizes / sizeof sizes[0])]);
}

static void change_share(trial *t)
{
    static const int shares[][2] = {{0, 0}, {1, 1}, {-1, 1}, {0, -1}, {INT_MIN, INT_MAX}, {5, 4}, {INT_MAX - 1, INT_MAX},
                                    {0, 2}, {2, 3}};
    const int *share = shares[draw(t, sizeof shares / sizeof shares[0])];
    if (!sound_has_shares(t->sound))
        return;
    t->ith = share[0];
    t->nth = share[1];
}

static void change_pointer(trial *t)
{
    const unsigned i = draw_operand(t);
    const nrg_operand *o = &call_of(t)->operands[i];
    const uintptr_t e = t->operands[i].element, by[] = {1, 2, e / 2, 4, e, 8, 64};
    const uintptr_t shift = by[draw(t, sizeof by / sizeof by[0])];
    const size_t kind = draw(t, 6);
    if (kind == 0)
        put_pointer(t, i, t->number % 2 ? (uintptr_t)NRG_UNALLOCATED : 0);
    else if (kind == 1)
        put_pointer(t, i, pointer_of(t, i) - shift);
    else if (kind == 2)
        put_pointer(t, (unsigned)draw(t, call_of(t)->operand_count), draw_place(t));
    else if (kind == 3 && o->room) {
        const size_t rooms[] = {0, t->span[i] - 1, t->span[i] - 8, t->span[i] + 8, SIZE_MAX};
        put_number(t, o->part, o->room, rooms[draw(t, sizeof rooms / sizeof rooms[0])]);
    } else
        put_pointer(t, i, pointer_of(t, i) + shift);
}

static void change(trial *t)
{
    static void (*const kinds[])(trial *) = {in_and_around, in_and_around,  in_and_around,  in_place,      in_place,
                                             at_the_end,    change_pointer, change_pointer, change_stride, change_size,
                                             change_field,  change_option,  change_part,    change_share};
    const size_t kind = draw(t, sizeof kinds / sizeof kinds[0]);
    enum { OF_OPERANDS = 9 };
    t->change[t->changes++] = (unsigned char)kind;
    if (kind >= OF_OPERANDS || call_of(t)->operand_count)
        kinds[kind](t);
}

/* ---- what comes back ---- */

/* The same with zeros behind those structs that have this version's size: no precheck accepts it. */
static void make_larger(trial *t)
{
    const nrg_call *call = call_of(t);
    memcpy(t->larger, t->parts, sizeof t->larger);
    for (unsigned i = 0; i < NRG_PARTS; i++) {
        t->larger_part[i] = t->part[i] ? t->larger[i] : NULL;
        size_t size;
        memcpy(&size, t->larger[i], sizeof size);
        if (i >= call->part_count || !call->parts[i].least || size != call->parts[i].size)
            continue;
        size += 1 + draw(t, LARGER);
        memset(t->larger[i] + call->parts[i].size, 0, LARGER + 1);
        memcpy(t->larger[i], &size, sizeof size);
    }
}

static void complain(const trial *t, const char *what, nrg_status got, nrg_status should)
{
    const nrg_call *call = call_of(t);
    printf("%s, variant %d, trial %llu, share %d of %d, changes", sound_name(t->sound), t->variant, (unsigned long long)t->number,
           t->ith, t->nth);
    for (int i = 0; i < t->changes; i++)
        printf(" %d", t->change[i]);
    printf("\n");
    for (unsigned i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        printf("  %s: %#llx, %zu × %zu of %zu bytes", o->name, (unsigned long long)pointer_of(t, i), t->operands[i].rows,
               t->operands[i].dim, t->operands[i].element);
        for (unsigned k = 0; k < NRG_LEVELS && o->level[k].stride; k++) {
            size_t stride;
            memcpy(&stride, t->parts[o->part] + o->level[k].stride, sizeof stride);
            printf(", stride %#zx", stride);
        }
        printf("\n");
    }
    fflush(stdout);
    ck_abort_msg("%s, trial %llu: %s: %d (%s), and not %d (%s)", sound_name(t->sound), (unsigned long long)t->number, what,
                 (int)got, nrg_status_string(got), (int)should, nrg_status_string(should));
}

/* A call's status; what it reached is in `stub`. */
static nrg_status call(const trial *t, void *const *part)
{
    stub = (stub_calls){0};
    if (t->sound->own)
        memcpy(arena, contents, sizeof arena);
    if (setjmp(stub_end)) /* accepted, with more rows in planes than anyone waits for */
        return NRG_OK;
    return sound_run(t->sound, part, t->ith, t->nth);
}

static nrg_status ask(const trial *t, void *const *part)
{
    stub = (stub_calls){0};
    if (t->sound->own)
        memcpy(arena, contents, sizeof arena);
    const nrg_status status = sound_ask(t->sound, part);
    if (stub.count)
        complain(t, "asking reached a kernel", status, status);
    return status;
}

/* The same call of the other version, after all of this one: its status; what it reached is in its module's stub. */
static nrg_status call_before(const trial *t)
{
    *earlier->stub = (stub_calls){0};
    memcpy(arena, contents, sizeof arena);
    if (setjmp(*earlier->stub_end))
        return NRG_OK;
    return t->before->run(t->part, t->ith, t->nth);
}

static void compare(const trial *t, nrg_status got, const stub_calls *reached, nrg_status asked)
{
    const nrg_status before = call_before(t);
    const stub_calls *const was = earlier->stub;
    if (before != got)
        complain(t, "another status than before", got, before);
    /* an op may have more kernels than it had: their names are not compared */
    if (!was->count != !reached->count || (reached->count && was->column != reached->column))
        complain(t, "another kernel than before", got, before);
    memcpy(arena, contents, sizeof arena);
    const nrg_status asked_before = sound_has_shares(t->sound) ? t->before->ask(t->part) : asked;
    if (asked_before != asked)
        complain(t, "asked, another status than before", asked, asked_before);
}

/* Whether all that an accepted call touches by itself is memory. Parts: of this version, as below. */
static int may_be_called(const trial *t, const void *const *part)
{
    const nrg_call *call = call_of(t);
    if (t->sound->repeats && t->changes)
        return 0;
    for (unsigned i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        const uintptr_t at = (uintptr_t)nrg_pointer_at(part[o->part], o->at) - (uintptr_t)arena;
        const size_t bytes = o->room ? nrg_size_at(part[o->part], o->room) : t->span[i];
#if defined(TEST_SANITIZED) /* which knows that no tensor has so many bytes, and stops where an offset into it has a sign */
        if (t->span[i] > PTRDIFF_MAX)
            return 0;
#endif
        if (t->sound->own >> i & 1 && t->operands[i].is_there && (at > ARENA || bytes > ARENA - at))
            return 0;
    }
    return 1;
}

/* What there is to do. An output or a workspace has elements; so has an output that is not another phase's; so has every input
 * that cannot be left out. */
enum { HAS_WORK = 1, HAS_OUTPUTS = 2, HAS_INPUTS = 4 };

static int work_of_operands(const trial *t, const void *const *part)
{
    const nrg_call *call = call_of(t);
    void *own[NRG_PARTS];
    for (unsigned i = 0; i < call->part_count; i++)
        own[i] = own_memory(part[i]);
    const uint32_t spared = sound_spared(t->sound, own);
    int work = HAS_INPUTS;
    for (unsigned i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        const verdict_operand *v = &t->operands[i];
        const int is_input = !nrg_is_output(o, &t->sizes, (unsigned)i);
        if (is_input && !o->may_be_absent && !v->has_elements)
            work &= ~HAS_INPUTS;
        if (!is_input && v->is_there && v->has_elements)
            work |= o->role == NRG_SCRATCH || spared >> i & 1 ? HAS_WORK : HAS_WORK | HAS_OUTPUTS;
    }
    return work;
}

/* What the call should say where its workspace is checked for all of its shares, and not for one as sound_run does. */
static nrg_status check_all_shares(const trial *t)
{
    nrg_checked c;
    const nrg_rope_shares *one = (const nrg_rope_shares *)t->parts[SOUND_SHARES], all = {t->nth, one->backward};
    const void *part[NRG_PARTS];
    memcpy(part, t->part, sizeof part);
    part[SOUND_SHARES] = &all;
    return nrg_check(&c, call_of(t), part, t->ith, t->nth);
}

static void try(trial *t, counts *n)
{
    nrg_checked c;
    const nrg_call *d = call_of(t);
    const void *const *part = (const void *const *)t->part;
    const nrg_status should = d->operand_count || sound_has_shares(t->sound) ? nrg_check(&c, d, part, t->ith, t->nth)
                                                                             : nrg_check_options(&c, d, part),
                     of_one = should == NRG_ERR_THREAD || t->nth != 1 ? nrg_check(&c, d, part, 0, 1) : should,
                     should_ask = nrg_asked(of_one);
    const int is_called = should != NRG_OK && of_one != NRG_OK;
    if (!is_called) {
        measure(t, c.part);
        if (!may_be_called(t, c.part)) {
            n->skipped++;
            return;
        }
    }
    make_larger(t);
    nrg_status asked = should_ask;
    if (sound_has_shares(t->sound)) {
        asked = ask(t, t->part);
        if (asked != should_ask && (should_ask != NRG_OK || !t->sound->own))
            complain(t, "asked", asked, should_ask);
        const nrg_status larger = ask(t, t->larger_part);
        if (larger != asked)
            complain(t, "asked with larger structs", larger, asked);
    }
    const nrg_status got = call(t, t->part);
    const stub_calls reached = stub;
    const int is_of_all = got != should && t->sound->workspace && t->nth > 1 && got == check_all_shares(t);
    if (got != should && !is_of_all && (should != NRG_OK || !t->sound->own || (sound_has_shares(t->sound) && got != asked)))
        complain(t, "called", got, should);
    if (got != NRG_OK && reached.count)
        complain(t, "refused, and it reached a kernel", got, got);
    const nrg_status larger = call(t, t->larger_part);
    if (larger != got)
        complain(t, "called with larger structs", larger, got);
    if (!stub.count != !reached.count || stub.op != reached.op || stub.column != reached.column)
        complain(t, "with larger structs it reaches another kernel", larger, got);
    if (t->before)
        compare(t, got, &reached, asked);
    n->calls += 2;
    *(got == NRG_OK ? &n->accepted : &n->refused) += 1;
    if (got != NRG_OK || t->nth != 1)
        return;
    const int work = t->sound->has_no_kernel ? 0 : work_of_operands(t, c.part);
    if (reached.count && !(work & HAS_WORK) && !t->sound->always)
        complain(t, "it reached a kernel, with nothing to do", got, got);
    if (!reached.count && work & HAS_OUTPUTS && work & HAS_INPUTS)
        complain(t, "it reached no kernel", got, got);
}

static const sound_call *all_calls[CALLS];
static const wild_call *calls_before[CALLS];
static int call_count;

START_TEST(wild_calls)
{
    static trial t;
    t.sound = all_calls[_i];
    t.before = calls_before[_i];
    const size_t trials = (size_t)t.sound->variants * (trials_asked ? trials_asked : test_small() ? TRIALS / 8 : TRIALS);
    t.number_count = sound_sizes(t.sound, t.numbers);
    draw_contents(&t);
    for (uint64_t n = 0; n < trials; n++) {
        t.number = n;
        t.state = test_mix((uint64_t)_i << 32 | n);
        t.changes = 0;
        if (t.sound->own && n % 64 == 0)
            draw_contents(&t);
        draw_call(&t);
        for (size_t k = one_in(&t, 2) ? 1 : draw(&t, CHANGES + 1); k > 0; k--)
            change(&t);
        snprintf(test_note, sizeof test_note, "%s, trial %llu", sound_name(t.sound), (unsigned long long)n);
        try(&t, &counted[_i]);
    }
    const counts *n = &counted[_i];
    ck_assert_msg(n->accepted >= trials / 32 || !n->refused, "%s: of %zu trials only %lu are accepted", sound_name(t.sound),
                  trials, n->accepted);
    ck_assert_msg(n->refused >= trials / 32, "%s: of %zu trials only %lu are refused", sound_name(t.sound), trials, n->refused);
}
END_TEST

/* The calls of norm.h without a struct, which are nrg_norm_forward of dense floats. */
static nrg_status shortcut(int which, const nrg_norm_spec *spec, const nrg_norm_args *a)
{
    if (setjmp(stub_end))
        return NRG_OK;
    switch (which) {
    case 0:
        return nrg_rms_norm_f32(a->rows, spec->dim, a->x, a->w, a->o, spec->eps);
    case 1:
        return nrg_add_rms_norm_f32(a->rows, spec->dim, a->x, a->y, a->w, a->r, a->o, spec->eps);
    case 2:
        return nrg_layer_norm_f32(a->rows, spec->dim, a->x, a->w, a->b, a->o, spec->eps);
    case 3:
        return nrg_add_layer_norm_f32(a->rows, spec->dim, a->x, a->y, a->w, a->b, a->r, a->o, spec->eps);
    default:
        return nrg_l2_norm_f32(a->rows, spec->dim, a->x, a->o, spec->eps);
    }
}

/* Operands that a shortcut has beside x and o. */
START_TEST(shortcuts)
{
    static const struct {
        int y, w, b;
    } has[] = {{0, 1, 0}, {1, 1, 0}, {0, 1, 1}, {1, 1, 1}, {0, 0, 0}};
    static const double eps[] = {1e-6, 0, -1, NAN, (double)INFINITY};
    static const size_t far[] = {0, 1, SIZE_MAX, SIZE_MAX / 4 + 1, (size_t)1 << 24, (size_t)1 << 31};
    uint64_t state = (uint64_t)_i;
    for (int n = 0; n < (test_small() ? TRIALS / 4 : TRIALS); n++) {
        const size_t rows = test_draw(&state, 12) ? test_draw(&state, 20) : far[test_draw(&state, 6)],
                     dim = test_draw(&state, 12) ? 1 + test_draw(&state, 40) : far[test_draw(&state, 6)];
        nrg_norm_spec spec = _i < 2   ? nrg_norm_spec_rms(NRG_F32, dim, 0)
                             : _i < 4 ? nrg_norm_spec_layer(NRG_F32, dim, 0)
                                      : nrg_norm_spec_l2(NRG_F32, dim, 0);
        spec.eps = eps[test_draw(&state, 4) ? 0 : test_draw(&state, 5)];
        const float *at[6]; /* x, y, w, b, r, o */
        const size_t bytes = rows * dim * sizeof(float);
        for (int i = 0; i < 6; i++) {
            uintptr_t place = ((uintptr_t)1 << 29) + (uintptr_t)i * (bytes < 4096 ? 4096 : bytes);
            const size_t how = test_draw(&state, 24);
            if (how == 0)
                place = 0;
            else if (how == 1)
                place = (uintptr_t)0 - (test_draw(&state, 2) ? bytes : 64);
            else if (how == 2)
                place += 1 + test_draw(&state, 3);
            else if (how < 7 && i > 0)
                place = (uintptr_t)at[test_draw(&state, (size_t)i)] +
                        (how == 3   ? 0
                         : how == 4 ? bytes
                         : how == 5 ? (uintptr_t)0 - bytes
                                    : dim * sizeof(float)) -
                        test_draw(&state, 2) * 4;
            memcpy(&at[i], &place, sizeof place);
        }
        nrg_norm_args args = nrg_norm_args_init(rows, at[0], has[_i].w ? at[2] : NULL, own_memory(at[5]));
        args.y = has[_i].y ? at[1] : NULL;
        args.r = has[_i].y ? own_memory(at[4]) : NULL;
        args.b = has[_i].b ? at[3] : NULL;
        nrg_status should = nrg_norm_forward_check(&spec, &args);
        if (has[_i].y && rows && !args.y)
            should = NRG_ERR_NULL; /* which is looked at first */
        stub = (stub_calls){0};
        const nrg_status got = shortcut(_i, &spec, &args);
        ck_assert_msg(got == should && (stub.count > 0) == (should == NRG_OK && rows > 0),
                      "shortcut %d, trial %d, %zu × %zu: %d and not %d; %zu kernels", _i, n, rows, dim, (int)got, (int)should,
                      stub.count);
    }
}
END_TEST

START_TEST(totals)
{
    counts all = {0, 0, 0, 0};
    int compared = 0;
    for (int i = 0; i < call_count; i++) {
        all.calls += counted[i].calls;
        all.accepted += counted[i].accepted;
        all.refused += counted[i].refused;
        all.skipped += counted[i].skipped;
        compared += calls_before[i] != NULL;
    }
    printf(
        "%lu calls of %d functions: %lu trials accepted, %lu refused; %lu accepted ones left out, whose operands are no memory\n",
        all.calls, call_count, all.accepted, all.refused, all.skipped);
    if (earlier) {
        printf("%d functions have the statuses of the other version\n", compared);
        ck_assert_msg(compared && compared == earlier->call_count, "%d of its functions are compared with none",
                      earlier->call_count - compared);
    }
    fflush(stdout);
}
END_TEST

int main(int argc, char **argv)
{
    argc = test_arguments(argc, argv);
    const char *against = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--against") == 0)
            against = argv[i + 1];
        else if (strcmp(argv[i], "--trials") == 0)
            trials_asked = (size_t)strtoul(argv[i + 1], NULL, 10);
        else
            return 2;
    }
    for (const sound_family *f = sound_families; f->name; f++)
        for (int n = 0; n < f->count; n++)
            all_calls[call_count++] = &f->calls[n];
    earlier = against ? wild_load(against) : NULL;
    for (int i = 0; i < call_count && earlier; i++)
        calls_before[i] = wild_find(earlier, all_calls[i]);
    counted = test_shared(CALLS * sizeof *counted);
    test_note_crashes();
    Suite *suite = suite_create("calls: wild pointers and sizes");
    TCase *all = test_case(suite, "calls");
    tcase_add_loop_test(all, wild_calls, 0, call_count);
    tcase_add_loop_test(all, shortcuts, 0, 5);
    tcase_add_test(test_case(suite, "totals"), totals);
    return test_run(suite);
}
