/* Calls by their descriptions: a sound call of one of the families, of which the input changes options, sizes, strides, pointers
 * and contents. The library has to come to the verdict of tests/calls/verdict.c, which finds it by brute force; a refused call
 * writes nothing; an accepted one writes nothing but its outputs, and every path gives them the scalar path's bits.
 *
 * Input: family, call, variant, path, shares; then changes of six bytes: kind, which, four of value.
 *
 * SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/paths.h"
#include "../calls/sound.h"
#include "../calls/verdict.h"

/* The sound calls' assertions: what Check does where one fails wants a runner. */
_Noreturn void _ck_assert_failed(const char *file, int line, const char *expression, const char *message, ...);

void _ck_assert_failed(const char *file, int line, const char *expression, const char *message, ...)
{
    va_list values;
    va_start(values, message);
    fprintf(stderr, "%s:%d: %s: ", file, line, expression);
    vfprintf(stderr, message ? message : "", values);
    va_end(values);
    abort();
}

enum { ROOM = 1 << 16, GAP = 256, ROWS_MOST = 40, CHANGES_MOST = 12 };
static _Alignas(64) unsigned char memory[ROOM], before[ROOM], expected[ROOM];
static unsigned char is_output[ROOM];
static size_t room; /* bytes of memory that the call's operands stand in, with gaps */

typedef struct input {
    const uint8_t *data;
    size_t left;
} input;

static unsigned take(input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->data++;
}

static uint32_t take_word(input *in)
{
    uint32_t word = 0;
    for (int i = 0; i < 4; i++)
        word |= (uint32_t)take(in) << 8 * i;
    return word;
}

typedef struct trial {
    const sound_call *sound;
    _Alignas(16) unsigned char parts[NRG_PARTS][SOUND_PART_BYTES];
    void *part[NRG_PARTS];
    nrg_sizes sizes;
    verdict_operand operands[NRG_OPERANDS];
} trial;

static _Noreturn void fail(const trial *t, const char *what, nrg_status got, nrg_status should)
{
    fprintf(stderr, "%s: %s: %s, and not %s\n", sound_name(t->sound), what, nrg_status_string(got), nrg_status_string(should));
    abort();
}

static void put(trial *t, int part, size_t at, const void *from, size_t bytes)
{
    if (at + bytes <= SOUND_PART_BYTES)
        memcpy(t->parts[part] + at, from, bytes);
}

static unsigned char *pointer_of(const trial *t, int i)
{
    unsigned char *pointer;
    memcpy(&pointer, t->parts[t->sound->function->call->operands[i].part] + t->sound->function->call->operands[i].at,
           sizeof pointer);
    return pointer;
}

/* Dense operands, apart. 0: this variant's do not fit. */
static int set_up(trial *t, int variant)
{
    const nrg_call *call = t->sound->function->call;
    for (int i = 0; i < NRG_PARTS; i++)
        t->part[i] = t->parts[i];
    const uint32_t there = sound_set_up(t->sound, variant, t->part);
    if (verdict_measure(call, (const void *const *)t->part, &t->sizes, t->operands) != NRG_OK)
        return 0;
    size_t at = GAP;
    for (int i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        const size_t bytes = t->operands[i].row * t->operands[i].rows;
        unsigned char *const place = memory + at;
        if (!(there >> i & 1))
            continue;
        if (at + bytes + GAP > ROOM)
            return 0;
        put(t, o->part, o->at, &place, sizeof place);
        if (o->room)
            put(t, o->part, o->room, &bytes, sizeof bytes);
        at = (at + bytes + GAP + 63) / 64 * 64;
    }
    room = at;
    for (size_t i = 0; i < room; i++)
        memory[i] = i % 2 ? 0x3c : (unsigned char)(i * 2654435761u >> 13);
    sound_fill(t->sound, t->part);
    return 1;
}

/* Sizes and strides: mostly small, now and then where products leave 64 bits. */
static size_t size_of(uint32_t value)
{
    static const size_t far[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4 + 1, (size_t)1 << 32, (size_t)1 << 31, SIZE_MAX - 7};
    return value >> 24 == 0xff ? far[value % (sizeof far / sizeof far[0])] : value & 0x3ff;
}

static void change_operand(trial *t, unsigned kind, unsigned which, uint32_t value)
{
    const nrg_call *call = t->sound->function->call;
    if (!call->operand_count)
        return;
    const nrg_operand *o = &call->operands[which % call->operand_count];
    const uint16_t stride = o->level[value >> 16 & 1].stride;
    const size_t size = size_of(value);
    const uintptr_t other = (uintptr_t)pointer_of(t, (int)(value >> 8 & 0xff) % call->operand_count);
    const uintptr_t pointer = kind == 1 ? 0 : kind == 2 ? (uintptr_t)memory + value % room : other + (value & 0xff);
    if (kind != 4)
        put(t, o->part, o->at, &pointer, sizeof pointer);
    else if (value >> 17 & 1 && o->room)
        put(t, o->part, o->room, &size, sizeof size);
    else if (stride)
        put(t, o->part, stride, &size, sizeof size);
}

/* Functions of the caller's are the caller's to get right: a pointer, and not to an operand. */
static int is_callback(const trial *t, unsigned part, size_t at)
{
    uintptr_t there;
    memcpy(&there, t->parts[part] + at / 8 * 8, sizeof there);
    return there >> 32 != 0 && there >> 47 == 0 && there - (uintptr_t)memory >= ROOM;
}

static void change(trial *t, unsigned kind, unsigned which, uint32_t value)
{
    const nrg_call *call = t->sound->function->call;
    const size_t size = size_of(value);
    if (kind == 0 && call->range_count) {
        const nrg_range *r = &call->ranges[which % call->range_count];
        const uint32_t option = value >> 24 == 0xff ? value : r->low + value % (r->span + 2);
        put(t, r->part, r->at, &option, sizeof option);
    } else if (kind >= 1 && kind <= 4) {
        change_operand(t, kind, which, value);
    } else if (kind == 5) {
        sound_size sizes[SOUND_SIZES];
        const unsigned count = (unsigned)sound_sizes(t->sound, sizes);
        if (count)
            put(t, sizes[which % count].part, sizes[which % count].at, &size, sizeof size);
    } else if (kind == 6) { /* the contents of operands */
        memcpy(memory + value % (room - 8), &value, sizeof value);
        memory[value % (room - 8) + 1] = (unsigned char)which;
    } else if (call->part_count) { /* any field of four bytes, but for the size that a struct begins with */
        const unsigned part = which % call->part_count;
        const size_t least = call->parts[part].least ? 8 : 0, at = least + (which / call->part_count & 63) * 4;
        if (at + 4 <= call->parts[part].size && !is_callback(t, part, at))
            put(t, (int)part, at, &value, sizeof value);
    }
}

/* Whether all that the call would follow is memory of ours, and few enough rows for brute force. */
static int measure(trial *t, int *is_small)
{
    const nrg_call *call = t->sound->function->call;
    int is_inside = 1;
    *is_small = 1;
    if (verdict_measure(call, (const void *const *)t->part, &t->sizes, t->operands) != NRG_OK)
        return 0; /* refused before anything is followed */
    for (int i = 0; i < call->operand_count; i++) {
        const verdict_operand *v = &t->operands[i];
        const uintptr_t at = (uintptr_t)pointer_of(t, i) - (uintptr_t)memory;
        size_t span;
        if (!v->is_there)
            continue;
        *is_small &= v->rows <= ROWS_MOST;
        for (unsigned k = 0; k < v->levels; k++)
            *is_small &= v->count[k] <= ROWS_MOST;
        if (!verdict_span(&call->operands[i], v, t->part[call->operands[i].part], &span) || at >= room || span > room - at)
            is_inside = 0;
    }
    return is_inside;
}

/* Which bytes the call may write: between the first and the last row of outputs. */
static void mark_outputs(const trial *t)
{
    const nrg_call *call = t->sound->function->call;
    memset(is_output, 0, room);
    for (int i = 0; i < call->operand_count; i++) {
        size_t span;
        if (!t->operands[i].is_there || !nrg_is_output(&call->operands[i], &t->sizes, (unsigned)i))
            continue;
        if (verdict_span(&call->operands[i], &t->operands[i], t->part[call->operands[i].part], &span))
            memset(is_output + (pointer_of(t, i) - memory), call->operands[i].role == NRG_SCRATCH ? 2 : 1, span);
    }
}

static void run(const trial *t, nrg_isa isa, int shares)
{
    if (nrg_isa_set(nrg_isa_supported(isa) ? isa : NRG_ISA_SCALAR) != NRG_OK) /* then in shares alone */
        abort();
    for (int ith = 0; ith < shares; ith++) {
        const nrg_status status = sound_run(t->sound, (void *const *)t->part, ith, shares);
        if (status != NRG_OK)
            fail(t, "accepted, and then", status, NRG_OK);
    }
}

/* Any NaN is any other; of an element of 8, 4 or 2 bytes at a multiple of its size. */
static int is_nan_near(const unsigned char *bytes, size_t at)
{
    uint32_t word;
    uint16_t half;
    uint64_t both;
    memcpy(&both, bytes + at / 8 * 8, sizeof both);
    memcpy(&word, bytes + at / 4 * 4, sizeof word);
    memcpy(&half, bytes + at / 2 * 2, sizeof half);
    return (both & 0x7fffffffffffffff) > 0x7ff0000000000000 || (word & 0x7fffffff) > 0x7f800000 || (half & 0x7fff) > 0x7c00;
}

static void compare(const trial *t, nrg_isa isa)
{
    for (size_t i = 0; i < room; i++) {
        if (!is_output[i] && memory[i] != before[i])
            fail(t, "wrote what is no output", NRG_OK, NRG_OK);
        if (is_output[i] == 1 && memory[i] != expected[i] && !(is_nan_near(memory, i) && is_nan_near(expected, i))) {
            fprintf(stderr, "byte %zu: %02x on %s, and %02x on scalar\n", i, memory[i], nrg_isa_name(isa), expected[i]);
            fail(t, "other bits", NRG_OK, NRG_OK);
        }
    }
}

static void accepted(const trial *t, nrg_isa isa, int shares)
{
    mark_outputs(t);
    memcpy(before, memory, room);
    run(t, NRG_ISA_SCALAR, t->sound->workspace || t->sound->counts_shares ? shares : 1);
    memcpy(expected, memory, room);
    compare(t, NRG_ISA_SCALAR);
    memcpy(memory, before, room);
    run(t, isa, shares);
    compare(t, isa);
}

/* What descriptions do not say: ids and positions that are in operands, what the phase before leaves in a workspace, a number
 * that two structs have to agree on, and how far frequencies turn. */
static int is_beyond_descriptions(nrg_status status)
{
    return status == NRG_ERR_COUNT || status == NRG_ERR_POSITION || status == NRG_ERR_COMBINATION ||
           status == NRG_ERR_WORKSPACE || status == NRG_ERR_CONSTANT;
}

/* Not what reads the order that the phase before made of ids and sizes as they then were: its contents are the caller's. Not what
 * takes as many steps as it is told, which may be 2^32. And not nrg_qkv, which uses as much of a workspace as
 * it is told there is: the changes tell it of more than there is. */
static int may_run(const trial *t)
{
    const char *const function = sound_name(t->sound);
    return strcmp(function, "nrg_embed_backward") != 0 && strncmp(function, "nrg_floater_", 12) != 0 &&
           strcmp(function, "nrg_qkv") != 0;
}

static void try(trial *t, nrg_isa isa, int shares)
{
    int is_small, is_open = 0;
    const int is_inside = measure(t, &is_small);
    if (!is_small)
        return;
    const nrg_status should = verdict_of(t->sound->function->call, (const void *const *)t->part, 0, 1, &is_open);
    if (!is_inside && (should == NRG_OK || is_open))
        return; /* sound, had we that memory */
    memcpy(before, memory, room);
    const nrg_status got = sound_has_shares(t->sound) ? sound_ask(t->sound, t->part) : should;
    if (memcmp(before, memory, room) != 0)
        fail(t, "asking wrote something", got, should);
    if (should == NRG_OK && is_open && got == NRG_ERR_OVERLAP)
        return;
    if (should == NRG_OK && is_beyond_descriptions(got))
        return;
    /* of several things that are wrong, either may be named */
    if ((got == NRG_OK) != (should == NRG_OK))
        fail(t, "asked", got, should);
    if (should == NRG_OK && !may_run(t))
        return;
    if (should == NRG_OK && sound_has_shares(t->sound)) {
        accepted(t, isa, shares);
        return;
    }
    const nrg_status ran = sound_run(t->sound, t->part, 0, 1);
    if (should != NRG_OK && (sound_has_shares(t->sound) ? ran != got : ran == NRG_OK))
        fail(t, "called", ran, got);
    if (should != NRG_OK && memcmp(before, memory, room) != 0)
        fail(t, "a refused call wrote something", ran, should);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static trial t;
    input in = {data, size};
    const sound_family *family = &sound_families[take(&in) % SOUND_FAMILIES];
    memset(&t, 0, sizeof t);
    t.sound = &family->calls[take(&in) % (unsigned)family->count];
    const int variant = (int)(take(&in) % (unsigned)t.sound->variants);
    const nrg_isa isa = (nrg_isa)(take(&in) % NRG_ISA_COUNT);
    const int shares = 1 + (int)(take(&in) % 5);
    if (!set_up(&t, variant))
        return 0;
    for (int i = 0; i < CHANGES_MOST && in.left; i++) {
        const unsigned kind = take(&in) % 8, which = take(&in);
        change(&t, kind, which, take_word(&in));
    }
    try(&t, isa, shares);
    return 0;
}
