/* SPDX-License-Identifier: MIT */
#include "call_harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

/* What a layout can have. Of the first four the account wants all combinations. */
enum mark {
    IN_PLACE,
    ODD_GAPS,
    PADDED,
    SHARED,
    COMBINED,
    FUSED = COMBINED,
    TURNED,
    LEFT_OUT,
    STRIDE_0,
    SURPLUS,
    AT_FRONT,
    AT_BACK,
    MARKS
};
static const char *const mark_names[MARKS] = {
    "in place",    "odd gaps",  "padded", "shares", "fused", "turned", "left out", "strides of 0", "more shares than work",
    "front fence", "back fence"};

enum { MOST_SHARES = 320, COMBINATIONS = 1 << COMBINED, OPS = 16, NAME = 48, OTHER_CANARY = 0x5a };

typedef struct layout {
    operand_place place[OPERANDS_MOST];
    int over[OPERANDS_MOST]; /* the operand it is in the place of, itself where apart */
    int left_out[OPERANDS_MOST], say_zero[OPERANDS_MOST];
    int fused; /* the first of those that share rows, or -1 */
    int nth;
    uint64_t order, vary; /* of the shares; for the case's vary() */
    unsigned char rubbish, canary;
} layout;

/* ---- the operands of a case ---- */

static size_t element_bytes(int type)
{
    return type == CALL_I32 ? 4 : type == CALL_I64 || type == CALL_F64 ? 8 : nrg_dtype_size((nrg_dtype)type);
}

static size_t row_bytes(const call_operand *o) { return o->dim * element_bytes(o->type); }
static size_t outer_rows(const call_operand *o) { return o->group ? o->rows / o->group : o->rows; }
static int is_given(const call_operand *o) { return o->role == CALL_INPUT || o->role == CALL_INOUT; }
static int is_result(const call_operand *o) { return o->type && (o->role == CALL_OUTPUT || o->role == CALL_INOUT); }

static int fits_over(const call_case *c, int out, int in)
{
    const call_operand *o = &c->operands[out], *x = &c->operands[in];
    return o->type && o->over & CALL_OVER(in) && x->type == o->type && x->rows == o->rows && x->dim == o->dim &&
           x->group == o->group && (o->padded || !x->padded);
}

static int fuses(const call_case *c, int which, int first)
{
    const call_operand *o = &c->operands[which];
    return o->type && o->fused && outer_rows(o) == outer_rows(&c->operands[first]);
}

static size_t work_of(const call_case *c)
{
    size_t work = c->work;
    for (int i = 0; i < c->count && !c->work; i++)
        if (is_result(&c->operands[i]) && c->operands[i].rows > work)
            work = c->operands[i].rows;
    return work;
}

/* A description that contradicts itself would be a sweep that skips things. */
static void check_case(const call_case *c)
{
    ck_assert_msg(c->count <= OPERANDS_MOST && c->op && strlen(c->op) < NAME && c->run[0],
                  "a case without op or run, or too large");
    for (int i = 0; i < c->count; i++) {
        const call_operand *o = &c->operands[i];
        if (!o->type)
            continue;
        if (!element_bytes(o->type) || !o->name || (o->group && o->rows % o->group))
            ck_abort_msg("%s: operand %d has no name, a strange type, or no whole number of groups", c->op, i);
        if ((o->over || o->optional) && o->role != CALL_OUTPUT)
            ck_abort_msg("%s: %s is in place, or optional, and no output", c->op, o->name);
        if ((o->fused && (!o->padded || element_bytes(o->type) > 4)) || (o->turned && (!o->padded || !o->group)))
            ck_abort_msg("%s: %s is fused or turned, and cannot be", c->op, o->name);
        for (int j = 0; j < OPERANDS_MOST; j++)
            if (o->over & CALL_OVER(j) && (j >= c->count || c->operands[j].role != CALL_INPUT))
                ck_abort_msg("%s: %s over an operand that is no input", c->op, o->name);
    }
}

/* ---- layouts ---- */

static int can_be_apart(const call_operand *o) { return o->type && o->padded && o->rows > 1; }
static int can_turn(const call_operand *o) { return o->type && o->turned && o->group > 1 && o->rows > o->group; }

/* The marks that a layout of this case can have. */
static unsigned offered(const call_case *c)
{
    unsigned marks = 1u << ODD_GAPS | 1u << SHARED | 1u << AT_FRONT | 1u << AT_BACK;
    marks |= work_of(c) + 4 < MOST_SHARES ? 1u << SURPLUS : 0;
    for (int i = 0; i < c->count; i++) {
        marks |= can_be_apart(&c->operands[i]) ? 1u << PADDED | 1u << STRIDE_0 : 0;
        marks |= can_turn(&c->operands[i]) ? 1u << TURNED : 0;
        marks |= c->operands[i].type && c->operands[i].optional ? 1u << LEFT_OUT : 0;
        for (int j = 0; j < c->count; j++) {
            marks |= fits_over(c, i, j) ? 1u << IN_PLACE : 0;
            marks |= j != i && fuses(c, i, i) && fuses(c, j, i) ? 1u << FUSED : 0;
        }
    }
    return marks;
}

/* Whether an operand has memory of its own. */
static int stands(const call_case *c, const layout *l, int i)
{
    return c->operands[i].type && l->over[i] == i && !l->left_out[i];
}

static int is_fused(const call_case *c, const layout *l, int i)
{
    return l->fused >= 0 && stands(c, l, i) && fuses(c, i, l->fused);
}

/* Those that a layout has. */
static unsigned marks_of(const call_case *c, const layout *l)
{
    unsigned marks = l->nth > 1 ? 1u << SHARED : 0;
    marks |= (size_t)l->nth > work_of(c) + 1 ? 1u << SURPLUS : 0;
    marks |= l->fused >= 0 ? 1u << FUSED : 0;
    for (int i = 0; i < c->count; i++) {
        const call_operand *o = &c->operands[i];
        const operand_place *p = &l->place[i];
        marks |= l->left_out[i] ? 1u << LEFT_OUT : 0;
        marks |= l->over[i] != i ? 1u << IN_PLACE : 0;
        if (!stands(c, l, i))
            continue;
        marks |= p->side == AT_START ? 1u << AT_FRONT : 1u << AT_BACK;
        marks |= p->gap % 2 ? 1u << ODD_GAPS : 0;
        marks |= p->pad || p->group_pad ? 1u << PADDED : 0;
        if (is_fused(c, l, i))
            continue;
        marks |= p->turned && can_turn(o) ? 1u << TURNED : 0;
        marks |= l->say_zero[i] && can_be_apart(o) && !p->pad && !p->turned ? 1u << STRIDE_0 : 0;
    }
    return marks;
}

static void draw_places(const call_case *c, layout *l, unsigned wanted, uint64_t *state)
{
    const enum fence_side side = test_draw(state, 2) ? AT_START : AT_END;
    const int turned = test_draw(state, 2) == 0;
    int padded = 0;
    for (int i = 0; i < c->count; i++) {
        const call_operand *o = &c->operands[i];
        operand_place *p = &l->place[i];
        p->side = side;
        if (wanted & 1u << ODD_GAPS)
            p->gap = i == 0 || test_draw(state, 4) ? 2 * test_draw(state, 10) + 1 : 16;
        p->turned = turned && o->turned;
        if (!(wanted & 1u << PADDED) || !can_be_apart(o) || !stands(c, l, i) || (padded && test_draw(state, 4) == 0))
            continue;
        /* kernels look at alignment: pads of anything, of whole vectors, and up to the next cache line */
        size_t how = test_draw(state, 4);
        p->pad = how < 2 ? test_draw(state, 19) + 1 : how == 2 ? 16 : (64 - row_bytes(o) % 64) / element_bytes(o->type);
        p->group_pad = o->group ? test_draw(state, 2) * (test_draw(state, 9) + 1) : 0;
        padded = 1;
    }
}

static void draw_in_place(const call_case *c, layout *l, uint64_t *state)
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

static void draw_fused(const call_case *c, layout *l, uint64_t *state)
{
    int first = (int)test_draw(state, (size_t)c->count), n = 0;
    for (int i = 0; i < c->count && !(stands(c, l, first) && fuses(c, first, first)); i++)
        first = (first + 1) % c->count;
    for (int i = 0; i < c->count; i++)
        n += stands(c, l, i) && fuses(c, i, first);
    if (n > 1 && stands(c, l, first) && fuses(c, first, first))
        l->fused = first;
}

static layout plain(const call_case *c)
{
    layout l;
    memset(&l, 0, sizeof l);
    for (int i = 0; i < c->count; i++)
        l.over[i] = i;
    l.fused = -1;
    l.nth = 1;
    l.canary = OTHER_CANARY;
    l.rubbish = 0xff;
    return l;
}

/* Neighbouring n have different combinations of the four marks that the account wants combined. */
static layout draw_layout(const call_case *c, uint64_t seed, unsigned n)
{
    static const int shares[] = {2, 3, 7};
    static const unsigned char rubbish[] = {0xff, 0x7f, 0x01, 0xa5};
    const unsigned can = offered(c), wanted = (unsigned)(test_mix(seed) + n) % COMBINATIONS & can;
    uint64_t state = test_mix(seed + n);
    layout l = plain(c);
    l.canary = OPERAND_CANARY;
    l.rubbish = rubbish[test_draw(&state, 4)];
    for (int i = 0; i < c->count; i++) {
        l.left_out[i] = c->operands[i].optional && test_draw(&state, 3) == 0;
        l.say_zero[i] = test_draw(&state, 2) == 0;
    }
    if (wanted & 1u << IN_PLACE)
        draw_in_place(c, &l, &state);
    draw_places(c, &l, wanted, &state);
    if (can & 1u << FUSED && test_draw(&state, 4) == 0)
        draw_fused(c, &l, &state);
    if (wanted & 1u << SHARED) {
        size_t how = test_draw(&state, can & 1u << SURPLUS ? 4 : 3);
        l.nth = how < 3 ? shares[how] : (int)(work_of(c) + 2 + test_draw(&state, 3));
    }
    l.order = state;
    l.vary = test_mix(state) | 1;
    return l;
}

static void write_layout(char *text, size_t room, const call_case *c, const layout *l)
{
    size_t n = (size_t)snprintf(text, room, "nth %d, %s", l->nth, l->place[0].side == AT_START ? "front" : "back");
    for (int i = 0; i < c->count && n < room; i++) {
        const operand_place *p = &l->place[i];
        const char *name = c->operands[i].name;
        if (!c->operands[i].type)
            continue;
        if (l->over[i] != i)
            n += (size_t)snprintf(text + n, room - n, "; %s over %s", name, c->operands[l->over[i]].name);
        else if (l->left_out[i])
            n += (size_t)snprintf(text + n, room - n, "; no %s", name);
        else
            n += (size_t)snprintf(text + n, room - n, "; %s gap %zu pad %zu/%zu%s%s%s", name, p->gap, p->pad, p->group_pad,
                                  p->turned ? " turned" : "", l->say_zero[i] ? " says 0" : "", is_fused(c, l, i) ? " fused" : "");
    }
}

/* ---- contents ---- */

static void draw_row(void *row, const call_operand *o, uint64_t seed, float *values)
{
    uint64_t state = seed;
    if (o->type == CALL_I32 || o->type == CALL_I64) {
        for (size_t i = 0; i < o->dim; i++) {
            int64_t wide = o->least < o->below ? o->least + (int64_t)test_draw(&state, (size_t)(o->below - o->least)) : 0;
            int32_t narrow = (int32_t)wide;
            if (o->type == CALL_I32)
                memcpy((char *)row + 4 * i, &narrow, 4);
            else
                memcpy((char *)row + 8 * i, &wide, 8);
        }
        return;
    }
    size_t how = test_draw(&state, 8);
    enum row_kind kind = how < 4   ? ROW_NORMAL
                         : how < 5 ? ROW_ANY_MAGNITUDE
                         : how < 6 ? ROW_SUBNORMAL
                                   : (enum row_kind)test_draw(&state, ROW_KINDS);
    while (o->kinds && !(o->kinds & 1u << kind))
        kind = (enum row_kind)test_draw(&state, ROW_KINDS);
    row_fill(values, o->dim, kind, o->type == CALL_F64 ? NRG_F32 : (nrg_dtype)o->type, state);
    for (size_t i = 0; i < o->dim; i++) {
        double wide = (double)values[i] * (1 + (double)test_draw(&state, 1 << 20) * 0x1p-45);
        if (o->type == CALL_F64)
            memcpy((char *)row + 8 * i, &wide, 8);
        else
            element_set(row, i, (nrg_dtype)o->type, values[i]);
    }
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        abort();
    return memory;
}

/* The dense contents of an operand that has none of the test's. */
static void *draw_content(const call_operand *o, uint64_t seed)
{
    unsigned char *content = allocate(o->rows * row_bytes(o));
    float *values = allocate(o->dim * sizeof *values);
    for (size_t row = 0; row < o->rows && o->dim; row++)
        draw_row(content + row * row_bytes(o), o, test_mix(seed + row), values);
    free(values);
    return content;
}

/* ---- one call ---- */

typedef struct tensors {
    const void *given[OPERANDS_MOST];
    void *drawn[OPERANDS_MOST], *expected[OPERANDS_MOST], *got[OPERANDS_MOST];
} tensors;

static tensors make_tensors(const call_case *c)
{
    tensors t;
    memset(&t, 0, sizeof t);
    for (int i = 0; i < c->count; i++) {
        const call_operand *o = &c->operands[i];
        if (o->type && is_given(o) && !o->content)
            t.drawn[i] = draw_content(o, test_mix(c->seed + (uint64_t)i));
        t.given[i] = is_given(o) && o->type ? o->content ? o->content : t.drawn[i] : NULL;
        if (is_result(o)) {
            t.expected[i] = allocate(o->rows * row_bytes(o));
            t.got[i] = allocate(o->rows * row_bytes(o));
        }
    }
    return t;
}

static void free_tensors(tensors *t)
{
    for (int i = 0; i < OPERANDS_MOST; i++) {
        free(t->drawn[i]);
        free(t->expected[i]);
        free(t->got[i]);
    }
}

/* Elements of 8 bytes are two words of 4 for operands.h. */
static operand as_operand(const call_case *c, const layout *l, int i)
{
    const call_operand *o = &c->operands[i];
    const size_t words = element_bytes(o->type) == 8 ? 2 : 1;
    operand p;
    memset(&p, 0, sizeof p);
    p.name = o->name;
    p.dtype = o->type < CALL_I32 ? (nrg_dtype)o->type : NRG_F32;
    p.rows = o->scratch ? 1 : o->rows;
    p.dim = words * (o->scratch ? o->scratch(c->context, l->nth) : o->dim);
    p.group = o->scratch ? 0 : o->group;
    p.wanted = stands(c, l, i);
    p.tensor = o->padded;
    p.alone = !is_fused(c, l, i);
    p.output = o->role != CALL_INPUT;
    p.unit = words == 2 ? 8 : 0;
    p.fill = o->role == CALL_SCRATCH ? l->rubbish : l->canary;
    return p;
}

/* What the call is told: 0 where all is dense, or only the rows of a group are. */
static void say_strides(call_operand *o, const operand *p, int say_zero)
{
    o->at = p->at;
    o->stride = p->stride;
    o->group_stride = p->group_stride;
    if (!say_zero || p->stride != row_bytes(o))
        return;
    o->stride = 0;
    if (o->group_stride == o->group * row_bytes(o))
        o->group_stride = 0;
}

static const char *call_shares(const call_case *c, const layout *l, const call_operand *all)
{
    static char message[OPERAND_MESSAGE];
    int order[MOST_SHARES];
    uint64_t state = l->order;
    for (int i = 0; i < l->nth; i++) {
        int j = (int)test_draw(&state, (size_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int phase = 0; phase < CALL_PHASES && c->run[phase]; phase++)
        for (int i = 0; i < l->nth; i++) {
            nrg_status status = c->run[phase](c->context, all, order[i], l->nth);
            if (status == NRG_OK)
                continue;
            snprintf(message, sizeof message, "share %d of %d of phase %d: status %d (%s)", order[i], l->nth, phase, (int)status,
                     nrg_status_string(status));
            return message;
        }
    return NULL;
}

static const char *call(const call_case *c, const layout *l, const tensors *t, void *const *results)
{
    operand placed[OPERANDS_MOST];
    call_operand all[OPERANDS_MOST];
    for (int i = 0; i < c->count; i++)
        placed[i] = as_operand(c, l, i);
    operands_place(placed, c->count, l->place, l->fused >= 0, l->fused);
    for (int i = 0; i < c->count; i++)
        if (l->over[i] != i)
            operand_over(placed, i, l->over[i]);
    for (int i = 0; i < c->count; i++) {
        if (t->given[i])
            operand_copy_in(&placed[i], t->given[i]);
        all[i] = c->operands[i];
        say_strides(&all[i], &placed[i], l->say_zero[i]);
    }
    operands_keep(placed, c->count);
    if (c->vary)
        c->vary(c->context, l->vary);

    operands_protect(placed, c->count, 1);
    const char *failure = call_shares(c, l, all);
    operands_protect(placed, c->count, 0);
    for (int i = 0; i < c->count && !failure; i++)
        if (placed[i].at && placed[i].output)
            operand_copy_out(&placed[i], results[i]);
    return failure ? failure : operands_changed(placed, c->count);
}

/* ---- results ---- */

static uint64_t bits_of(const void *tensor, size_t i, int type)
{
    uint64_t wide;
    if (element_bytes(type) < 8)
        return element_bits(tensor, i, type == CALL_I32 ? NRG_F32 : (nrg_dtype)type);
    memcpy(&wide, (const char *)tensor + 8 * i, 8);
    return wide;
}

static int is_nan(uint64_t bits, int type)
{
    double wide;
    memcpy(&wide, &bits, 8);
    return type == CALL_F64 && isnan(wide);
}

static int equal(const void *a, const void *b, size_t i, int type)
{
    if (type < CALL_I32)
        return element_equal(a, b, i, (nrg_dtype)type);
    uint64_t x = bits_of(a, i, type), y = bits_of(b, i, type);
    return x == y || (is_nan(x, type) && is_nan(y, type));
}

static void write_value(char *text, size_t room, const void *tensor, size_t i, int type)
{
    uint64_t bits = bits_of(tensor, i, type);
    int64_t integer = type == CALL_I32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
    double value = 0;
    if (type == CALL_F64)
        memcpy(&value, &bits, 8);
    else if (type < CALL_I32)
        value = (double)element_get(tensor, i, (nrg_dtype)type);
    if (type == CALL_I32 || type == CALL_I64)
        snprintf(text, room, "0x%llx (%lld)", (unsigned long long)bits, (long long)integer);
    else
        snprintf(text, room, "0x%llx (%.17g)", (unsigned long long)bits, value);
}

static const char *compare(const call_operand *o, const void *expected, const void *got)
{
    static char message[OPERAND_MESSAGE];
    char is[64], should_be[64];
    if (memcmp(expected, got, o->rows * row_bytes(o)) == 0)
        return NULL;
    for (size_t i = 0; i < o->rows * o->dim; i++)
        if (!equal(expected, got, i, o->type)) {
            write_value(is, sizeof is, got, i, o->type);
            write_value(should_be, sizeof should_be, expected, i, o->type);
            snprintf(message, sizeof message, "%s: row %zu column %zu is %s and should be %s", o->name, i / o->dim, i % o->dim,
                     is, should_be);
            return message;
        }
    return NULL;
}

/* ---- the account ---- */

typedef struct tally {
    unsigned met[COMBINATIONS], marks[MARKS];
} tally;

typedef struct entry {
    char op[NAME];
    unsigned offered[NRG_BF16 + 1],
        combinations[NRG_BF16 + 1]; /* by dtype: marks; a bit for each combination of the first four */
    tally of[NRG_ISA_COUNT][NRG_BF16 + 1];
} entry;

static entry *account;

void call_start(void)
{
    account = test_shared(OPS * sizeof *account);
    test_note_crashes();
}

static entry *find(const char *op)
{
    for (int i = 0; account && i < OPS; i++) {
        if (!account[i].op[0])
            snprintf(account[i].op, NAME, "%s", op);
        if (strcmp(account[i].op, op) == 0)
            return &account[i];
    }
    ck_abort_msg("%s: call_start() was not called, or there are too many ops", op);
    return NULL;
}

static void offer(const call_case *c)
{
    entry *e = find(c->op);
    e->offered[c->dtype] |= offered(c);
    for (unsigned n = 0; n < COMBINATIONS; n++)
        if (!(n & ~offered(c)))
            e->combinations[c->dtype] |= 1u << n;
}

static void enter(const call_case *c, nrg_isa isa, const layout *l)
{
    tally *t = &find(c->op)->of[isa][c->dtype];
    const unsigned marks = marks_of(c, l);
    t->met[marks % COMBINATIONS]++;
    for (int i = 0; i < MARKS; i++)
        t->marks[i] += marks >> i & 1;
}

static const char *judge(const entry *e, nrg_isa isa, nrg_dtype dtype)
{
    static char message[OPERAND_MESSAGE];
    const tally *t = &e->of[isa][dtype];
    unsigned calls = 0;
    int n = snprintf(message, sizeof message, "%s %s on %s: ", e->op, nrg_dtype_name(dtype), nrg_isa_name(isa));
    char *rest = message + n;
    const size_t room = sizeof message - (size_t)n;
    for (unsigned i = 0; i < COMBINATIONS; i++) {
        calls += t->met[i];
        if (!(e->combinations[dtype] >> i & 1) || t->met[i] || test_small())
            continue;
        snprintf(rest, room, "no call was%s in place,%s with odd gaps,%s padded,%s in shares", i >> IN_PLACE & 1 ? "" : " not",
                 i >> ODD_GAPS & 1 ? "" : " not", i >> PADDED & 1 ? "" : " not", i >> SHARED & 1 ? "" : " not");
        return message;
    }
    for (int i = 0; i < MARKS; i++)
        if (e->offered[dtype] >> i & 1 && (!t->marks[i] || (i < COMBINED && t->marks[i] == calls))) {
            snprintf(rest, room, "%s: %s call of %u", mark_names[i], t->marks[i] ? "every" : "no", calls);
            return message;
        }
    snprintf(rest, room, "never called");
    return calls ? NULL : message;
}

const char *call_account_verdict(const char *op)
{
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    const size_t path_count = test_paths(paths), listed = test_kernel_dtypes(op, dtypes);
    const entry *e = find(op);
    const char *failure = NULL;
    size_t dtype_count = listed;
    for (int dtype = NRG_F32; dtype <= NRG_BF16 && !listed; dtype++)
        if (e->offered[dtype])
            dtypes[dtype_count++] = (nrg_dtype)dtype;
    for (size_t p = 0; p < path_count; p++)
        for (size_t d = 0; d < dtype_count && !failure; d++)
            failure = judge(e, paths[p], dtypes[d]);
    return dtype_count ? failure : "an op that is not in kernels.def, and was never called";
}

void call_check_account(const char *op)
{
    const char *failure =
        getenv("CK_RUN_CASE") || getenv("CK_RUN_SUITE") ? NULL /* a part was asked for */ : call_account_verdict(op);
    if (failure)
        ck_abort_msg("%s", failure);
}

/* ---- the sweep ---- */

static const char *run(const call_case *c, nrg_isa isa, const layout *l, const tensors *t, void *const *results)
{
    static char message[4 * OPERAND_MESSAGE];
    char where[OPERAND_MESSAGE], how[OPERAND_MESSAGE];
    if (nrg_isa_set(isa) != NRG_OK)
        ck_abort_msg("%s cannot be set", nrg_isa_name(isa));
    write_layout(how, sizeof how, c, l);
    snprintf(where, sizeof where, "%s %s on %s%s%s", c->op, nrg_dtype_name(c->dtype), nrg_isa_name(isa), c->text ? ", " : "",
             c->text ? c->text : "");
    snprintf(test_note, sizeof test_note, "%.150s; %.350s", where, how);
    const char *failure = call(c, l, t, results);
    for (int i = 0; i < c->count && !failure; i++)
        if (results == t->got && is_result(&c->operands[i]) && !l->left_out[i])
            failure = compare(&c->operands[i], t->expected[i], t->got[i]);
    if (!failure)
        return NULL;
    snprintf(message, sizeof message, "%s: %s\n  layout: %s", where, failure, how);
    return message;
}

const char *call_verdict(const call_case *c)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    check_case(c);
    offer(c);
    tensors t = make_tensors(c);
    const layout reference = plain(c);
    const char *failure = run(c, NRG_ISA_SCALAR, &reference, &t, t.expected);
    for (size_t p = 0; p < path_count; p++)
        for (int i = 0; i < (c->layouts ? c->layouts : CALL_LAYOUTS) && !failure; i++) {
            const layout l = draw_layout(c, test_mix(c->seed + 1000 * p), (unsigned)i);
            failure = run(c, paths[p], &l, &t, t.got);
            if (!failure)
                enter(c, paths[p], &l);
        }
    free_tensors(&t);
    return failure;
}

void call_sweep(const call_case *c)
{
    const char *failure = call_verdict(c);
    if (failure)
        ck_abort_msg("%s", failure);
}
