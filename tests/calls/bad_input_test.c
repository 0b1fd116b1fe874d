/* Bad input, from the descriptions of the calls: everything that can be wrong with a sound call gives the status it should and
 * writes nothing; what is allowed is not refused.
 *
 * From a sound call (sound.txt) each thing is made wrong by itself: structs that are missing or of another size, options,
 * shares, pointers, alignments, strides, sizes, workspaces, and every operand in every place around every other. What the call
 * should say is found by verdict.c, which reads the same descriptions and decides by brute force. That the descriptions are those
 * of the headers is looked up in these: the matrix of operands that may lie in each other's place, and the list of statuses,
 * which are those that were met.
 *
 *     bad_input_test [--against FILE] [FAMILY ...]    the calls of these; without one, of all
 *
 * --against: the statuses are those of another version, too, a module (wild_module.h) that scripts/verdicts.sh compiles.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/operands/check.h"
#include "../harness/support.h"
#include "header.h"
#include "sound.h"
#include "verdict.h"
#include "wild_module.h"

enum { CALLS_MOST = 16 };

/* Operands stand here, each with room around it for others to be moved into: before the first and behind the last one, room for
 * any of them, with wider strides, too. */
enum { ROOM = 1 << 16, GAP = 1024 };
static _Alignas(64) unsigned char memory[ROOM], before[ROOM];
static unsigned char contents[ROOM]; /* small positive ones in every dtype; what integers have to be, fill() says */

/* A call as it is being tried. */
typedef struct trial {
    const sound_call *sound;
    const wild_call *before; /* of another version, which has to return the same; or NULL */
    int variant;
    _Alignas(16) unsigned char parts[NRG_PARTS][SOUND_PART_BYTES];
    void *part[NRG_PARTS];
    nrg_sizes sizes;
    verdict_operand operands[NRG_OPERANDS];
    unsigned char *behind; /* all operands */
    size_t room;           /* bytes of memory in which this call's operands stand */
    sound_size numbers[SOUND_SIZES];
    int number_count;
    uint32_t there, settled, met; /* operands, those that some variant has or forbids; statuses that came back */
    uint32_t contents;            /* statuses that no range of the description shows: of what operands hold, above all */
} trial;

static const char *what;           /* is wrong, for messages */
static const wild_module *earlier; /* the other version */

static const nrg_call *call_of(const trial *t) { return t->sound->function->call; }

static void set_bytes(void *part, size_t at, const void *from, size_t bytes) { memcpy((char *)part + at, from, bytes); }

static void set_pointer(trial *t, int i, const void *pointer) { invoke_set_pointer(&call_of(t)->operands[i], t->part, pointer); }

static unsigned char *pointer_of(const trial *t, int i)
{
    const nrg_operand *o = &call_of(t)->operands[i];
    return own_memory(nrg_pointer_at(t->part[o->part], o->at));
}

static void set_number(trial *t, int part, size_t at, size_t number) { invoke_set_number(t->part[part], at, number); }

/* Bytes from an operand's first to its last, dense. */
static size_t extent_of(const trial *t, int i) { return t->operands[i].row * t->operands[i].rows; }

/* Everything sound: dense operands, apart, holding small numbers. */
static void set_up(trial *t)
{
    const nrg_call *call = call_of(t);
    for (int i = 0; i < NRG_PARTS; i++)
        t->part[i] = t->parts[i];
    t->there = sound_set_up(t->sound, t->variant, t->part);
    const nrg_status status = verdict_measure(call, (const void *const *)t->part, &t->sizes, t->operands);
    ck_assert_msg(status == NRG_OK, "%s variant %d: its options are wrong: %d", sound_name(t->sound), t->variant, (int)status);
    t->settled |= t->there | t->sizes.refused;
    size_t around = GAP;
    for (int i = 0; i < call->operand_count; i++)
        if (t->there >> i & 1 && 4 * extent_of(t, i) > around)
            around = (4 * extent_of(t, i) + 63) / 64 * 64;
    size_t at = around;
    for (int i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        if (!(t->there >> i & 1))
            continue;
        ck_assert_msg(at + extent_of(t, i) + GAP + around <= ROOM, "%s: operands are too large", sound_name(t->sound));
        set_pointer(t, i, memory + at);
        if (o->room)
            set_number(t, o->part, o->room, extent_of(t, i));
        at = (at + extent_of(t, i) + GAP + 63) / 64 * 64;
    }
    t->room = at + around;
    t->behind = memory + at;
    memcpy(memory, contents, t->room);
    sound_fill(t->sound, t->part);
}

static nrg_status run(trial *t, int ith, int nth)
{
    snprintf(test_note, sizeof test_note, "%s, variant %d, %s", sound_name(t->sound), t->variant, what);
    const nrg_status status = sound_run(t->sound, t->part, ith, nth);
    t->met |= NRG_BIT(status);
    return status;
}

static void complain(const trial *t, nrg_status got, nrg_status should)
{
    ck_abort_msg("%s, variant %d, %s: status %d (%s) and not %d (%s)", sound_name(t->sound), t->variant, what, (int)got,
                 nrg_status_string(got), (int)should, nrg_status_string(should));
}

/* The other version's _check, or the call itself where it has none and is refused, which writes nothing. */
static void compare(const trial *t, nrg_status should)
{
    if (!t->before || (!t->before->ask && should == NRG_OK))
        return;
    const nrg_status before_it = t->before->ask ? t->before->ask(t->part) : t->before->run(t->part, 0, 1);
    if (before_it != should)
        complain(t, should, before_it);
}

/* A _check returns the status of the call, but accepts unallocated operands, and writes nothing. */
static void ask(trial *t, nrg_status should)
{
    compare(t, sound_has_shares(t->sound) && should == NRG_ERR_UNALLOCATED ? NRG_OK : should);
    if (!sound_has_shares(t->sound))
        return;
    should = should == NRG_ERR_UNALLOCATED ? NRG_OK : should;
    memcpy(before, memory, t->room);
    snprintf(test_note, sizeof test_note, "asking %s, variant %d, %s", sound_name(t->sound), t->variant, what);
    const nrg_status said = sound_ask(t->sound, t->part);
    if (said != should)
        ck_abort_msg("%s_check, variant %d, %s: says %d (%s), and the call %d (%s)", sound_name(t->sound), t->variant, what,
                     (int)said, nrg_status_string(said), (int)should, nrg_status_string(should));
    ck_assert_msg(memcmp(before, memory, t->room) == 0, "%s_check, variant %d, %s: wrote something", sound_name(t->sound),
                  t->variant, what);
}

/* Refused, whichever share asks, and nothing is written; then everything is right again. */
static void refused(trial *t, nrg_status status)
{
    static const int shares[][2] = {{0, 1}, {2, 3}, {99, 100}};
    ask(t, status);
    for (size_t i = 0; i < (sound_has_shares(t->sound) ? sizeof shares / sizeof shares[0] : 1); i++) {
        memcpy(before, memory, t->room);
        const nrg_status got = run(t, shares[i][0], shares[i][1]);
        if (got != status)
            complain(t, got, status);
        ck_assert_msg(memcmp(before, memory, t->room) == 0, "%s, variant %d, %s: a refused call wrote something",
                      sound_name(t->sound), t->variant, what);
    }
    set_up(t);
}

static int is_output(const trial *t, int i) { return nrg_is_output(&call_of(t)->operands[i], &t->sizes, (unsigned)i); }

/* Accepted, and what is written are outputs that are this phase's: nothing else, and each of them where `all`. They are dense. */
static void accepted_outputs(trial *t, int all)
{
    const uint32_t spared = sound_spared(t->sound, t->part);
    ask(t, NRG_OK);
    memcpy(before, memory, t->room);
    const nrg_status got = run(t, 0, 1);
    if (got != NRG_OK)
        complain(t, got, NRG_OK);
    for (int i = 0; i < call_of(t)->operand_count; i++) {
        unsigned char *const at = pointer_of(t, i);
        if (!at || !is_output(t, i) || spared >> i & 1)
            continue;
        const int is_same = memcmp(before + (at - memory), at, extent_of(t, i)) == 0;
        ck_assert_msg(!all || !is_same || !extent_of(t, i) || call_of(t)->operands[i].role == NRG_SCRATCH,
                      "%s, variant %d: does not write %s", sound_name(t->sound), t->variant, call_of(t)->operands[i].name);
        memcpy(before + (at - memory), at, extent_of(t, i));
    }
    ck_assert_msg(memcmp(before, memory, t->room) == 0, "%s, variant %d, %s: wrote what is no output of its own",
                  sound_name(t->sound), t->variant, what);
    set_up(t);
}

static void accepted(trial *t)
{
    ask(t, NRG_OK);
    const nrg_status got = run(t, 0, 1);
    if (got != NRG_OK)
        complain(t, got, NRG_OK);
    set_up(t);
}

/* As verdict.c has it. */
static void judged(trial *t)
{
    int is_open;
    const nrg_status should = verdict_of(call_of(t), (const void *const *)t->part, 0, 1, &is_open);
    if (should == NRG_OK)
        sound_fill(t->sound, t->part); /* where the ids are now */
    const nrg_status got = is_open || sound_has_contents(t->sound) ? run(t, 0, 1) : should;
    if (is_open && got == NRG_ERR_OVERLAP)
        set_up(t);
    /* inputs may overlap, and then not hold what each of them should */
    else if (should == NRG_OK && t->contents >> got & 1)
        set_up(t);
    else if (should == NRG_OK && got == NRG_OK)
        accepted(t);
    else
        refused(t, should);
}

static void refused_or_not(trial *t, nrg_status status)
{
    if (status == NRG_OK)
        accepted(t);
    else
        refused(t, status);
}

/* ---- what is made wrong ---- */

/* The verdict where a part is absent: all of it is 0. */
static nrg_status verdict_without(trial *t, int i)
{
    int is_open;
    unsigned char whole[SOUND_PART_BYTES];
    memcpy(whole, t->parts[i], sizeof whole);
    memset(t->parts[i], 0, sizeof whole);
    set_number(t, i, 0, call_of(t)->parts[i].size);
    const nrg_status status = verdict_of(call_of(t), (const void *const *)t->part, 0, 1, &is_open);
    memcpy(t->parts[i], whole, sizeof whole);
    return status;
}

static void wrong_parts(trial *t)
{
    const nrg_call *call = call_of(t);
    for (int i = 0; i < call->part_count; i++) {
        const nrg_part *p = &call->parts[i];
        if (!p->least)
            continue;
        what = "a struct is missing";
        const nrg_status missing = p->may_be_absent ? verdict_without(t, i) : NRG_ERR_NULL;
        t->part[i] = NULL;
        refused_or_not(t, missing);
        what = "a struct's size";
        const size_t bad[] = {0, 1, 8, p->least - 8u, p->least - 1u, 4097, (size_t)1 << 31, SIZE_MAX};
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
            set_number(t, i, 0, bad[k]);
            refused(t, NRG_ERR_STRUCT_SIZE);
        }
        what = "a later struct";
        for (size_t later = p->size + 1u; later <= p->size + 64u; later++) {
            set_number(t, i, 0, later);
            accepted(t);
            set_number(t, i, 0, later);
            t->parts[i][later - 1] = 1;
            refused(t, NRG_ERR_STRUCT_SIZE);
        }
    }
}

/* Whether all operands, as options are now, lie in the call's memory. */
static int is_in_memory(const trial *t, const verdict_operand *operands)
{
    for (int i = 0; i < call_of(t)->operand_count; i++) {
        const nrg_operand *o = &call_of(t)->operands[i];
        const size_t at = (size_t)(pointer_of(t, i) - memory);
        size_t span, room = 0;
        if (o->room)
            memcpy(&room, (char *)t->part[o->part] + o->room, sizeof room);
        if (operands[i].is_there && operands[i].has_elements &&
            (!verdict_span(o, &operands[i], t->part[o->part], &span) || at > t->room || span > t->room - at || room > span))
            return 0;
    }
    return 1;
}

/* The statuses of contents that are made wrong, in some variant; or of options, such as angles that the call computes. */
static uint32_t find_contents(trial *t)
{
    const uint32_t possible =
        NRG_BIT(NRG_ERR_COUNT) | NRG_BIT(NRG_ERR_POSITION) | NRG_BIT(NRG_ERR_WORKSPACE) | NRG_BIT(NRG_ERR_CONSTANT);
    uint32_t found = 0;
    for (t->variant = 0; t->variant < t->sound->variants; t->variant++) {
        int status = NRG_OK;
        for (int n = 0; n == 0 || status != NRG_OK; n++) {
            set_up(t);
            status = sound_spoil(t->sound, t->part, n);
            found |= NRG_BIT(status);
        }
        for (int n = 0; t->sound->wrong && status != SOUND_NO_MORE; n++) {
            set_up(t);
            status = t->sound->wrong(t->part, t->variant, n);
            found |= status == SOUND_NO_MORE ? 0 : NRG_BIT(status);
        }
    }
    return found & possible;
}

static void nothing_is_written(const trial *t)
{
    ck_assert_msg(memcmp(before, memory, t->room) == 0, "%s, variant %d: a refused call wrote something", sound_name(t->sound),
                  t->variant);
}

/* A field of another value: one share of the call refuses it or, where it may be accepted and all operands are memory, runs.
 * `before` is what the memory then holds. Refused calls are followed by a comparison before the memory is set up again. */
static void word(trial *t, int part, size_t at, const void *value, size_t bytes, int may_be_accepted)
{
    nrg_sizes sizes;
    verdict_operand operands[NRG_OPERANDS];
    uint64_t was, is = 0;
    memcpy(&was, t->parts[part] + at, bytes);
    memcpy(&is, value, bytes);
    set_bytes(t->part[part], at, value, bytes);
    const void *const *const parts = (const void *const *)t->part;
    const int options_fit = verdict_measure(call_of(t), parts, &sizes, operands) == NRG_OK,
              may_run = options_fit && may_be_accepted && is < UINT64_MAX - 4096 && /* no ignored pointer to the end of memory */
                        is_in_memory(t, operands);
    if (may_run)
        nothing_is_written(t);
    if (!options_fit || may_run) {
        static const int counts[] = {1, 3, 100};
        static unsigned turn;
        int is_open;
        const int nth = options_fit || !sound_has_shares(t->sound) ? 1 : counts[turn++ % NRG_COUNT(counts)];
        const nrg_status should = verdict_of(call_of(t), parts, nth - 1, nth, &is_open);
        const nrg_status got = run(t, nth - 1, nth), said = sound_has_shares(t->sound) ? sound_ask(t->sound, t->part) : got;
        const uint32_t allowed =
            NRG_BIT(should) | (should == NRG_OK ? t->contents : 0) | (is_open ? NRG_BIT(NRG_ERR_OVERLAP) : 0);
        if (!(allowed >> got & 1) || said != (got == NRG_ERR_UNALLOCATED ? NRG_OK : got))
            complain(t, got, should);
        compare(t, got);
        if (may_run && got != NRG_OK)
            nothing_is_written(t);
    }
    if (may_run)
        set_up(t);
    else
        set_bytes(t->part[part], at, &was, bytes);
}

static void wrong_options(trial *t)
{
    static char change[64];
    for (int n = 0; t->sound->wrong; n++) {
        const int status = t->sound->wrong(t->part, t->variant, n);
        if (status == SOUND_NO_MORE)
            return;
        snprintf(change, sizeof change, "change %d of its options", n);
        what = change;
        refused_or_not(t, (nrg_status)status);
    }
}

/* Behind the size of a struct that has one; none of the shares that a workspace is for, which others may be in. */
static size_t first_field(const trial *t, int part) { return call_of(t)->parts[part].least ? sizeof(size_t) : 0; }

static size_t end_of_fields(const trial *t, int part)
{
    return part == SOUND_SHARES && t->sound->workspace ? 0 : call_of(t)->parts[part].size;
}

/* In a field of so many bytes: small numbers, and those next to what it has. Little-endian, as every host of nrg is. */
static void small_numbers(trial *t, int part, size_t at, size_t bytes, uint64_t end)
{
    uint64_t is = 0;
    memcpy(&is, t->parts[part] + at, bytes);
    for (uint64_t n = 0; n < end + 2; n++) {
        const uint64_t value = n < end ? n : n == end ? is - 1 : is + 1;
        word(t, part, at, &value, bytes, !t->sound->repeats);
    }
}

static void values(trial *t, int part, size_t at, size_t bytes, const void *list, size_t count)
{
    for (size_t n = 0; n < count; n++)
        word(t, part, at, (const char *)list + n * bytes, bytes, !t->sound->repeats);
}

/* Whatever the fields of a struct are: options, numbers, pointers and floats in each place of four and eight bytes, at the edges
 * of what calls accept and beyond. A call that is refused writes nothing. */
static void wrong_words(trial *t)
{
    static const uint32_t words[] = {48,    56,    64,         77,         0x80,       0x100,      0x108,      0x128,
                                     0x129, 0x200, 0xfffffff8, 0x7ffffffd, 0x7ffffffe, 0x7fffffff, 0x80000000, 0xffffffff},
                          short_sizes[] = {0x0fffffff, 0x10000000, 0x10000001, 0x1fffffff, 0x20000000, 0x20000001, 0x3fffffff,
                                           0x40000000, 0x40000001, 0x80000001, 0xe0000000, 0xefffffff, 0xf0000000, 0xfffffffe};
    static const uint64_t wide[] = {
        0x0000000000000020, 0x0000000000000030, 0x0000000000000040, 0x0000000000000060, 0x0000000000000400, 0x000000001ffffffe,
        0x000000001fffffff, 0x0000000040000000, 0x0000000080000000, 0x0000000080000001, 0x0000000080000002, 0x0000000100000000,
        0x0000010000000000, 0x0fffffffffffffff, 0x1000000000000000, 0x1000000000000001, 0x2000000000000000, 0x2000000000000001,
        0x4000000000000001, 0x7fffffffffffffff, 0x8000000000000000, 0xe000000000000000, 0xefffffffffffffff, 0xf000000000000000,
        0xffffffffe0000002, 0xffffffffe0000003, 0xffffffffffffffe0, 0xfffffffffffffff8, 0xfffffffffffffffe, 0xffffffffffffffff};
    static const float floats[] = {NAN,     1,        -1,       INFINITY,  -INFINITY,      FLT_MAX,         -FLT_MAX,
                                   0x1p24f, -0x1p24f, 0x1p-24f, 0x1p-140f, 0x1.000002p24f, -0x1.000002p24f, 0x1.fffffep-25f};
    static const double doubles[] = {NAN,   INFINITY, -INFINITY, 1,       -1,      2,       -1e-6,
                                     1e308, -5e-324,  DBL_MAX,   0x1p-24, 0x1p-40, 0x1p400, 0x1p-400},
                        edges[] = {0x1.fffffep127,         -0x1.fffffep127,       0x1.0000000000001p0,   0x1.fffffe0000001p127,
                                   -0x1.fffffe0000001p127, 0x1.0000000000001p400, 0x1.fffffffffffffp-401};
    what = "a field";
    memcpy(before, memory, t->room);
    for (int i = 0; i < call_of(t)->part_count; i++) {
        const size_t end = end_of_fields(t, i);
        for (size_t at = first_field(t, i); at + 4 <= end; at += 4) {
            small_numbers(t, i, at, 4, 43);
            values(t, i, at, 4, words, NRG_COUNT(words));
            values(t, i, at, 4, floats, NRG_COUNT(floats));
            if (sizeof(size_t) == 4)
                values(t, i, at, 4, short_sizes, NRG_COUNT(short_sizes));
        }
        for (size_t at = first_field(t, i); at + 8 <= end; at += 8) {
            small_numbers(t, i, at, 8, 15);
            values(t, i, at, 8, wide, NRG_COUNT(wide));
            values(t, i, at, 8, doubles, NRG_COUNT(doubles));
            values(t, i, at, 8, edges, NRG_COUNT(edges));
        }
    }
    nothing_is_written(t);
}

static void wrong_shares(trial *t)
{
    static const int shares[][2] = {{0, 0}, {1, 1}, {-1, 1}, {0, -1}, {INT_MIN, INT_MAX}, {5, 4}, {INT_MAX, INT_MAX}};
    what = "a share";
    for (size_t i = 0; i < sizeof shares / sizeof shares[0] && sound_has_shares(t->sound); i++) {
        memcpy(before, memory, t->room);
        const nrg_status got = run(t, shares[i][0], shares[i][1]);
        if (got != NRG_ERR_THREAD)
            complain(t, got, NRG_ERR_THREAD);
        ck_assert_mem_eq(before, memory, t->room);
    }
    what = "the last share of very many";
    if (sound_has_shares(t->sound) && run(t, INT_MAX - 1, INT_MAX) != NRG_OK)
        complain(t, NRG_ERR_THREAD, NRG_OK);
    set_up(t);
}

/* Without an operand: by itself, together with another one, and with a workspace as small as it may then be, or smaller. */
static void no_pointer(trial *t, int i)
{
    what = "no pointer";
    for (int j = i; j < call_of(t)->operand_count; j++) {
        set_pointer(t, i, NULL);
        set_pointer(t, j, NULL);
        judged(t);
    }
    what = "no pointer, and another workspace";
    for (int j = 0; j < call_of(t)->operand_count; j++)
        for (size_t less = 0; less < 2 && call_of(t)->operands[j].room && t->there >> j & 1; less++) {
            nrg_sizes sizes;
            verdict_operand operands[NRG_OPERANDS];
            set_pointer(t, i, NULL);
            if (verdict_measure(call_of(t), (const void *const *)t->part, &sizes, operands) == NRG_OK)
                set_number(t, call_of(t)->operands[j].part, call_of(t)->operands[j].room,
                           operands[j].row * operands[j].rows - less);
            judged(t);
        }
}

static void wrong_pointer(trial *t, int i)
{
    const nrg_operand *o = &call_of(t)->operands[i];
    const verdict_operand v = t->operands[i];
    unsigned char *const at = pointer_of(t, i);
    no_pointer(t, i);
    what = "a pointer that is not aligned";
    for (size_t off = 1; off < v.element; off *= 2) {
        set_pointer(t, i, at + off);
        judged(t);
        set_pointer(t, i, at - off);
        judged(t);
    }
    what = "the end of memory";
    set_pointer(t, i, (void *)(UINTPTR_MAX - (v.element > 1 ? v.element - 1 : 1))); /* NOLINT */
    judged(t);
    what = "an address that is not known yet";
    set_pointer(t, i, NRG_UNALLOCATED);
    judged(t);
    if (!o->room)
        return;
    what = "a workspace that is too small";
    const size_t sizes[] = {0, 1, extent_of(t, i) - 1};
    for (size_t k = 0; k < 3; k++) {
        set_number(t, o->part, o->room, sizes[k]);
        judged(t);
    }
}

enum { SPREAD = 8 }; /* elements */

/* Gives an operand strides with a gap at the end of every level. inside[k]: the bytes from the first to the last of those that
 * level k steps over. Returns 0, and the call is to be set up again, where not every level has a stride, or its surroundings are
 * too small. */
static int spread(trial *t, int i, size_t inside[NRG_LEVELS])
{
    const nrg_operand *o = &call_of(t)->operands[i];
    const verdict_operand *v = &t->operands[i];
    size_t span = v->row;
    for (unsigned k = 0; k < v->levels; k++) {
        if (!o->level[k].stride || !v->has_elements)
            return 0;
        inside[k] = span;
        set_number(t, o->part, o->level[k].stride, span + SPREAD * v->element);
        span += (v->count[k] - 1) * (span + SPREAD * v->element);
    }
    return v->levels && span <= extent_of(t, i) + GAP;
}

/* Whether a step of a level is taken, as its strides stand now: some of them make levels. */
static int is_taken(const trial *t, int i, unsigned k)
{
    nrg_sizes s;
    verdict_operand operands[NRG_OPERANDS];
    if (verdict_measure(call_of(t), (const void *const *)t->part, &s, operands) != NRG_OK)
        return 0;
    return operands[i].count[k] != 1;
}

static void wrong_strides(trial *t, int i)
{
    const nrg_operand *o = &call_of(t)->operands[i];
    const verdict_operand v = t->operands[i];
    const size_t row = v.row, e = v.element;
    what = "a stride as short as can be, or shorter";
    for (unsigned k = 0; k < v.levels; k++)
        for (size_t less = 0; less <= e; less += e) {
            size_t inside[NRG_LEVELS];
            if (spread(t, i, inside)) {
                set_number(t, o->part, o->level[k].stride, inside[k] - less);
                judged(t);
            }
            set_up(t);
        }
    for (unsigned k = 0; k < v.levels; k++) {
        const size_t strides[] = {
            row - e,           row - 1,          row, row + 1, 1, e, 2 * row - e, 2 * row, 2 * row + e / 2, SIZE_MAX / 8 * 8,
            SIZE_MAX / 16 * 8, SIZE_MAX / 64 * 8};
        what = "a stride";
        for (size_t n = 0; n < sizeof strides / sizeof strides[0] && o->level[k].stride; n++) {
            int is_open;
            if (!strides[n])
                continue;
            set_number(t, o->part, o->level[k].stride, strides[n]);
            /* only those that the call must refuse, and steps that nobody takes: the others would need room */
            if (!is_taken(t, i, k) || verdict_of(call_of(t), (const void *const *)t->part, 0, 1, &is_open) != NRG_OK)
                judged(t);
            else
                set_up(t);
        }
    }
}

/* Every other operand's place, and the bytes around its first and its last one; with its strides, and with others. */
static void wrong_places(trial *t, int i)
{
    const nrg_operand *o = &call_of(t)->operands[i];
    const ptrdiff_t own = (ptrdiff_t)extent_of(t, i), element = (ptrdiff_t)t->operands[i].element;
    for (int j = 0; j < call_of(t)->operand_count; j++) {
        if (j == i || !(t->there >> j & 1) || !extent_of(t, j))
            continue;
        const ptrdiff_t other = (ptrdiff_t)extent_of(t, j);
        const ptrdiff_t places[] = {0,           element,           -element,        other, other - element, -own, -own + element,
                                    2 * element, other / 2 / 8 * 8, -own / 2 / 8 * 8};
        for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
            unsigned char *const at = pointer_of(t, j);
            what = "a place beside another operand";
            set_pointer(t, i, at + places[k]);
            judged(t);
        }
        what = "another operand's place, with another stride";
        for (unsigned k = 0; k < t->operands[i].levels; k++) {
            if (!o->level[k].stride)
                continue;
            set_pointer(t, i, pointer_of(t, j));
            /* wider than all that is inside of it */
            size_t inside = t->operands[i].row;
            for (unsigned n = 0; n < k; n++)
                inside *= t->operands[i].count[n];
            set_number(t, o->part, o->level[k].stride, inside + (size_t)(t->operands[i].element));
            judged(t);
        }
    }
}

/* The place of an operand that it may lie over, with the same strides, and with one of them another. */
static void wrong_strides_in_place(trial *t, int i)
{
    const nrg_operand *o = &call_of(t)->operands[i];
    what = "another operand's place, with one stride another";
    for (int j = 0; j < call_of(t)->operand_count; j++)
        for (unsigned k = 0; k <= t->operands[i].levels && o->over & t->there & NRG_BIT(j); k++) {
            size_t inside[NRG_LEVELS];
            if (spread(t, j, inside) && spread(t, i, inside)) {
                set_pointer(t, i, pointer_of(t, j));
                if (k < t->operands[i].levels)
                    set_number(t, o->part, o->level[k].stride, inside[k] + (SPREAD + 1) * t->operands[i].element);
                judged(t);
            }
            set_up(t);
        }
}

/* Outputs in two places where each may be, or one of them and another operand in the same place. */
static void wrong_pairs(trial *t)
{
    const nrg_operand *o = call_of(t)->operands;
    const int count = call_of(t)->operand_count;
    what = "two operands in the places of others";
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            if (!(t->there >> i & 1) || !(o[i].over & t->there & NRG_BIT(j)))
                continue;
            for (int k = 0; k < count; k++)
                for (int l = 0; l < count; l++) {
                    if (k == i || k == l || !(t->there >> k & 1) || !(t->there >> l & 1) || !(l == j || o[k].over >> l & 1))
                        continue;
                    unsigned char *const at[] = {pointer_of(t, j), pointer_of(t, l)};
                    set_pointer(t, i, at[0]);
                    set_pointer(t, k, at[1]);
                    judged(t);
                }
        }
}

/* Bytes of a step of the outermost level, where the inner ones are dense. */
static size_t step_of(const verdict_operand *v)
{
    size_t bytes = v->row;
    for (unsigned k = 0; k + 1 < v->levels; k++)
        bytes *= v->count[k];
    return bytes;
}

static uint16_t outer_stride(const trial *t, int i)
{
    const unsigned levels = t->operands[i].levels;
    return levels ? call_of(t)->operands[i].level[levels - 1].stride : 0;
}

/* Slices of the rows of one buffer: side by side, closer, and with strides that differ. */
static void wrong_slices(trial *t, int i)
{
    const nrg_operand *o = call_of(t)->operands;
    const int at_i = outer_stride(t, i);
    for (int j = 0; j < call_of(t)->operand_count; j++) {
        const int at_j = outer_stride(t, j);
        if (j == i || !(t->there >> j & 1) || !at_i || !at_j || !extent_of(t, i) || !extent_of(t, j))
            continue;
        const size_t step_i = step_of(&t->operands[i]), step_j = step_of(&t->operands[j]), aligned = (step_j + 7) / 8 * 8,
                     wide = (step_i + aligned + 7) / 8 * 8, element = t->operands[i].element;
        const struct {
            size_t from, stride;
        } slices[] = {{aligned, 0}, {wide - step_i, 0}, {step_j - element, 0}, {wide - step_i + element, 0}, {aligned, 8}};
        what = "slices of one buffer";
        for (size_t n = 0; n < sizeof slices / sizeof slices[0]; n++) {
            unsigned char *const at = t->behind;
            set_pointer(t, j, at);
            set_pointer(t, i, at + slices[n].from / element * element);
            set_number(t, o[i].part, (size_t)at_i, wide + slices[n].stride);
            set_number(t, o[j].part, (size_t)at_j, wide);
            judged(t);
        }
    }
}

/* What there is to do where numbers are 0. */
static void nothing_to_do(trial *t)
{
    int is_open;
    if (verdict_of(call_of(t), (const void *const *)t->part, 0, 1, &is_open) != NRG_OK) {
        judged(t);
        return;
    }
    sound_fill(t->sound, t->part);
    if (sound_has_shares(t->sound) && run(t, 1, 1) != NRG_ERR_THREAD)
        complain(t, NRG_OK, NRG_ERR_THREAD);
    verdict_measure(call_of(t), (const void *const *)t->part, &t->sizes, t->operands);
    memcpy(before, memory, t->room);
    const nrg_status got = run(t, 0, 1);
    memcpy(memory, before, t->room);
    /* ids into a table without rows, which have no order either; or the number stands in another struct as well */
    if (sound_has_contents(t->sound) && (got == NRG_ERR_POSITION || got == NRG_ERR_WORKSPACE || got == NRG_ERR_COMBINATION))
        set_up(t);
    else
        accepted_outputs(t, 0);
}

/* Operands that have no elements lose their pointers, but for one, and have strides that no tensor has. */
static void drop_empty(trial *t, int kept)
{
    nrg_sizes sizes;
    verdict_operand operands[NRG_OPERANDS];
    if (verdict_measure(call_of(t), (const void *const *)t->part, &sizes, operands) != NRG_OK)
        return;
    for (int i = 0; i < call_of(t)->operand_count; i++) {
        const nrg_operand *o = &call_of(t)->operands[i];
        if (operands[i].has_elements)
            continue;
        if (i != kept)
            set_pointer(t, i, NULL);
        for (unsigned k = 0; k < NRG_LEVELS && o->level[k].stride; k++)
            set_number(t, o->part, o->level[k].stride, 1);
    }
}

static void set_zero(trial *t, int i, int j)
{
    set_number(t, t->numbers[i].part, t->numbers[i].at, 0);
    set_number(t, t->numbers[j].part, t->numbers[j].at, 0);
}

/* Without tokens, samples, rows, or two of these: with the pointers as they are; without any; without those of operands that have
 * no elements, but for one at most. */
static void no_elements(trial *t)
{
    what = "nothing to do";
    for (int i = 0; i < t->number_count; i++) {
        for (int j = i; j < t->number_count; j++) {
            set_zero(t, i, j);
            nothing_to_do(t);
        }
        set_zero(t, i, i);
        for (int k = 0; k < call_of(t)->operand_count; k++)
            set_pointer(t, k, NULL);
        nothing_to_do(t);
        for (int kept = -1; kept < call_of(t)->operand_count; kept++) {
            set_zero(t, i, i);
            drop_empty(t, kept);
            nothing_to_do(t);
        }
    }
}

/* Options have to be right even where there is nothing to do. */
static void wrong_words_of_nothing(trial *t)
{
    static const uint32_t option = 7;
    static const double numbers[] = {0, -1, 2};
    what = "a field, and nothing to do";
    memcpy(before, memory, t->room);
    for (int n = 0; n < t->number_count; n++) {
        set_zero(t, n, n);
        for (int i = 0; i < call_of(t)->part_count; i++)
            for (size_t at = first_field(t, i); at + 4 <= end_of_fields(t, i); at += 4) {
                word(t, i, at, &option, sizeof option, 0);
                for (size_t k = 0; k < NRG_COUNT(numbers) && at % 8 == 0 && at + 8 <= end_of_fields(t, i); k++)
                    word(t, i, at, &numbers[k], sizeof numbers[k], 0);
            }
        nothing_is_written(t);
        set_up(t);
    }
}

static void wrong_sizes(trial *t)
{
    const size_t numbers[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4, SIZE_MAX / 8 + 1};
    what = "a number of elements that memory does not hold";
    for (int i = 0; i < t->number_count; i++)
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
            int is_open;
            set_number(t, t->numbers[i].part, t->numbers[i].at, numbers[k]);
            if (verdict_of(call_of(t), (const void *const *)t->part, 0, 1, &is_open) == NRG_OK) {
                set_up(t); /* a single row of them would fit an address space */
                continue;
            }
            memcpy(before, memory, t->room);
            const nrg_status got = run(t, 0, 1);
            if (got == NRG_OK)
                complain(t, got, NRG_ERR_OVERFLOW);
            ck_assert_mem_eq(before, memory, t->room);
            set_up(t);
        }
}

static void wrong_contents(trial *t)
{
    what = "the contents of an operand";
    for (int n = 0;; n++) {
        const nrg_status status = sound_spoil(t->sound, t->part, n);
        if (status == NRG_OK)
            return;
        refused(t, status);
    }
}

/* No operand has an address yet: nothing is read, and only the call itself is refused. */
static void unallocated(trial *t)
{
    int has_elements = 0;
    what = "addresses that are not known yet";
    for (int i = 0; i < call_of(t)->operand_count; i++)
        if (t->there >> i & 1) {
            set_pointer(t, i, NRG_UNALLOCATED);
            has_elements |= extent_of(t, i) && !(t->sizes.ignored >> i & 1);
        }
    refused_or_not(t, has_elements ? NRG_ERR_UNALLOCATED : NRG_OK);
}

/* Operands that options or other operands forbid, also without one of these; those that are not looked at may be anything. */
static void unwanted(trial *t)
{
    const void *const elsewhere = (const void *)(uintptr_t)64; /* which no operand overlaps */
    for (int i = 0; i < call_of(t)->operand_count; i++) {
        if (t->there >> i & 1)
            continue;
        if (t->sizes.ignored >> i & 1) {
            what = "an operand that is not looked at";
            set_pointer(t, i, memory + 1);
            for (unsigned k = 0; k < t->operands[i].levels; k++)
                if (call_of(t)->operands[i].level[k].stride)
                    set_number(t, call_of(t)->operands[i].part, call_of(t)->operands[i].level[k].stride, 1);
            judged(t);
            continue;
        }
        what = "an operand that is forbidden";
        for (int j = 0; j < call_of(t)->operand_count; j++) {
            int is_open;
            set_pointer(t, j, NULL);
            set_pointer(t, i, elsewhere);
            if (verdict_of(call_of(t), (const void *const *)t->part, 0, 1, &is_open) != NRG_OK)
                judged(t);
            else
                set_up(t);
        }
    }
}

/* Those that are asked for: each a test of its own, and one that fails does not hide the others. */
static const sound_call *wanted[SOUND_FAMILIES * CALLS_MOST];
static int wanted_count;

static int want(const char *family)
{
    const int before_it = wanted_count;
    for (const sound_family *f = sound_families; f->name; f++)
        for (int n = 0; n < f->count && (!family || strcmp(f->name, family) == 0); n++)
            wanted[wanted_count++] = &f->calls[n];
    return wanted_count > before_it;
}

START_TEST(wrong_one_at_a_time)
{
    static trial t;
    const sound_call *sound = wanted[_i];
    for (size_t i = 0; i < ROOM; i++)
        contents[i] = i % 2 ? 0x3c : (unsigned char)test_mix(i);
    memset(&t, 0, sizeof t);
    t.sound = sound;
    t.before = earlier ? wild_find(earlier, sound) : NULL;
    t.number_count = sound_sizes(sound, t.numbers);
    t.contents = find_contents(&t);
    for (t.variant = 0; t.variant < sound->variants; t.variant++) {
        set_up(&t);
        what = "nothing";
        accepted_outputs(&t, 1);
        wrong_parts(&t);
        wrong_options(&t);
        wrong_words(&t);
        wrong_shares(&t);
        wrong_sizes(&t);
        no_elements(&t);
        wrong_words_of_nothing(&t);
        wrong_contents(&t);
        unallocated(&t);
        wrong_pairs(&t);
        unwanted(&t);
        for (int i = 0; i < sound->function->call->operand_count; i++) {
            if (!(t.there >> i & 1))
                continue;
            wrong_pointer(&t, i);
            wrong_strides(&t, i);
            wrong_places(&t, i);
            wrong_slices(&t, i);
            wrong_strides_in_place(&t, i);
        }
    }
    for (int i = 0; i < sound->function->call->operand_count; i++)
        ck_assert_msg(!sound->function->call->operands[i].may_be_absent || t.settled >> i & 1,
                      "%s: no variant says that %s may be absent", sound_name(sound), sound->function->call->operands[i].name);
    const uint32_t met = t.met & ~(NRG_BIT(NRG_OK) | NRG_BIT(NRG_ERR_UNALLOCATED)); /* nrg/base.h has it for all calls */
    const uint32_t listed = header_of(sound_name(sound))->statuses;
    ck_assert_msg(!(met & ~listed), "%s says %#x, which its header does not list", sound_name(sound), met & ~listed);
    ck_assert_msg(sound->is_part || !(listed & ~met), "the header lists %#x for %s, which nothing made it say", listed & ~met,
                  sound_name(sound));
}
END_TEST

/* ---- structs that grow ---- */

/* A struct of an earlier version and one of this version, for a call without operands: field `added` is new. */
typedef struct grown {
    size_t size;
    uint32_t option, reserved;
    size_t added;
} grown;

static nrg_status measure_grown(const void *const *part, nrg_sizes *s)
{
    s->n[1] = ((const grown *)part[0])->added;
    return NRG_OK;
}

START_TEST(structs_grow)
{
    static const nrg_part parts[] = {{.size = sizeof(grown), .least = NRG_AT(grown, added)}};
    static const nrg_range ranges[] = {{.status = NRG_ERR_ENUM, .at = NRG_AT(grown, option), .span = 3},
                                       {.status = NRG_ERR_STRUCT_SIZE, .at = NRG_AT(grown, reserved)}};
    static const nrg_call call = {.parts = parts,
                                  .ranges = ranges,
                                  .part_count = NRG_COUNT(parts),
                                  .range_count = NRG_COUNT(ranges),
                                  .measure = measure_grown};
    enum { MOST = 4096 };
    static _Alignas(grown) unsigned char caller[MOST + 8];
    const void *const part[] = {caller};
    for (size_t size = 0; size <= MOST + 8; size++) {
        const grown full = {.size = size, .option = 3, .added = SIZE_MAX};
        nrg_checked c;
        memset(caller, 0, sizeof caller);
        memcpy(caller, &full, sizeof full);
        const int is_known = size >= parts[0].least && size <= MOST;
        ck_assert_int_eq(nrg_check(&c, &call, part, 0, 1), is_known ? NRG_OK : NRG_ERR_STRUCT_SIZE);
        if (!is_known)
            continue;
        /* bytes of `added` beyond the caller's struct are garbage, and count as 0 */
        size_t added = 0;
        memcpy(&added, &full.added, size < sizeof full ? size - parts[0].least : sizeof added);
        ck_assert_uint_eq(c.sizes.n[1], added);
        ck_assert_uint_eq(((const grown *)c.part[0])->option, 3);
        ck_assert_uint_eq(((const grown *)c.part[0])->size, sizeof full);
        /* a field that this version lacks must be 0 */
        if (size > sizeof full) {
            caller[size - 1] = 1;
            ck_assert_int_eq(nrg_check(&c, &call, part, 0, 1), NRG_ERR_STRUCT_SIZE);
            caller[size - 1] = 0;
        }
        const uint32_t wrong = 4;
        memcpy(caller + NRG_AT(grown, option), &wrong, sizeof wrong);
        ck_assert_int_eq(nrg_check(&c, &call, part, 0, 1), NRG_ERR_ENUM);
    }
    ck_assert_int_eq(nrg_check(&(nrg_checked){0}, &call, (const void *const[]){NULL}, 0, 1), NRG_ERR_NULL);
}
END_TEST

START_TEST(places_are_the_headers)
{
    const sound_call *sound = wanted[_i];
    for (int i = 0; i < sound->function->call->operand_count; i++) {
        const nrg_operand *o = &sound->function->call->operands[i];
        const uint32_t over = o->role == NRG_IN ? 0 : header_over(sound_name(sound), sound->function->call, i);
        ck_assert_msg(o->over == over, "%s: %s may lie over %#x, and in the header's matrix over %#x", sound_name(sound), o->name,
                      o->over, over);
    }
}
END_TEST

static int is_value(const header_field *f, uint32_t value)
{
    for (int i = 0; i < f->value_count; i++)
        if ((uint32_t)f->values[i] == value)
            return 1;
    return 0;
}

/* A field of a part that is an enum has all of its values but for 0, which some calls refuse; other values are wrong, and so are
 * reserved fields other than 0. A call may have no use for any but 0. A query of a workspace looks at few fields. */
static void option(trial *t, int part, const header_field *f)
{
    enum { VALUES = 320 };
    static const uint32_t far[] = {0x7fffffff, 0x80000000, 0xffffffff};
    char name[64];
    snprintf(name, sizeof name, "%s.%s", f->structure, f->name);
    const int is_unread = t->sound->function->ask_bytes || (t->sound->unread && strstr(t->sound->unread, name));
    for (uint32_t n = 0; n < VALUES + NRG_COUNT(far); n++) {
        const uint32_t value = n < VALUES ? n : far[n - VALUES];
        set_up(t);
        set_bytes(t->part[part], f->at, &value, sizeof value);
        const nrg_status got = sound_has_shares(t->sound) ? sound_ask(t->sound, t->part) : run(t, 0, 1);
        ck_assert_msg(is_value(f, value) ? got != f->status || !value
                                         : got == f->status || got == NRG_ERR_COMBINATION || is_unread,
                      "%s: %s: status %d for %u", sound_name(t->sound), name, (int)got, value);
    }
}

START_TEST(options_are_the_headers)
{
    static trial t;
    memset(&t, 0, sizeof t);
    t.sound = wanted[_i];
    what = "an option of the header";
    for (int i = 0; i < call_of(&t)->part_count; i++)
        for (const header_field *f = header_fields; f->structure; f++)
            if (strcmp(f->structure, t.sound->structs[i]) == 0)
                option(&t, i, f);
}
END_TEST

int main(int argc, char **argv)
{
    argc = test_arguments(argc, argv);
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--against") == 0) {
        earlier = wild_load(argv[2]);
        first = 3;
    }
    for (int i = first; i < argc; i++)
        if (i >= first + SOUND_FAMILIES || !want(argv[i])) {
            fprintf(stderr, "bad_input_test: no family %s, or too many\n", argv[i]);
            return EXIT_FAILURE;
        }
    if (argc == first)
        want(NULL);
    test_note_crashes();
    Suite *suite = suite_create("calls: bad input");
    TCase *all = test_case(suite, "one thing wrong at a time");
    tcase_add_loop_test(all, wrong_one_at_a_time, 0, wanted_count);
    tcase_add_loop_test(all, places_are_the_headers, 0, wanted_count);
    tcase_add_loop_test(all, options_are_the_headers, 0, wanted_count);
    tcase_add_test(all, structs_grow);
    return test_run(suite);
}
