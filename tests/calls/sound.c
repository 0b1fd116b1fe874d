/* SPDX-License-Identifier: MIT */
#include "sound.h"

#include "../../src/operands/rope.h"
#include "../harness/support.h"
#include "verdict.h"

uint32_t sound_set_up(const sound_call *s, int variant, void *const *part)
{
    static double any;
    const nrg_call *call = s->like ? s->like : s->function->call;
    for (int i = 0; i < NRG_PARTS; i++)
        memset(part[i], 0, SOUND_PART_BYTES);
    const uint32_t optional = s->set_up(part, variant);
    uint32_t there = 0;
    for (int i = 0; i < call->operand_count; i++) {
        const nrg_operand *o = &call->operands[i];
        ck_assert_msg(o->may_be_absent || !(optional >> i & 1), "%s: %s may not be absent", sound_name(s), o->name);
        there |= !o->may_be_absent || optional >> i & 1 ? NRG_BIT(i) : 0;
        invoke_set_pointer(o, part, there >> i & 1 ? &any : NULL);
    }
    return s->like ? 0 : there;
}

/* The operand of ids that ids->operand is, the call's n-th; and how many elements it has. 0: there are no more. */
static int find_ids(const sound_call *s, void *const *part, int n, sound_ids *ids, verdict_operand *operand, size_t *count)
{
    verdict_operand operands[NRG_OPERANDS];
    nrg_sizes sizes;
    if (!s->ids || !s->ids(part, n, ids) ||
        verdict_measure(s->function->call, (const void *const *)part, &sizes, operands) != NRG_OK)
        return 0;
    *operand = operands[ids->operand];
    *count = operand->is_there && operand->has_elements ? operand->rows * operand->dim : 0;
    return 1;
}

static void set_id(const sound_call *s, void *const *part, const sound_ids *ids, const verdict_operand *operand, size_t i,
                   int32_t id)
{
    const nrg_operand *o = &s->function->call->operands[ids->operand];
    memcpy(own_memory(verdict_element(o, operand, (const void *const *)part, i)), &id, sizeof id);
}

void sound_fill(const sound_call *s, void *const *part)
{
    verdict_operand operand;
    sound_ids ids;
    size_t count;
    for (int n = 0; find_ids(s, part, n, &ids, &operand, &count); n++)
        for (size_t i = 0; ids.limit && i < count; i++)
            set_id(s, part, &ids, &operand, i, i == 1 && ids.other ? ids.other : (int32_t)(i % ids.limit));
    if (s->fill)
        s->fill(part);
}

nrg_status sound_spoil(const sound_call *s, void *const *part, int n)
{
    enum { KINDS = 5 };
    verdict_operand operand;
    sound_ids ids;
    size_t count, id = (size_t)n / KINDS;
    if (s->spoil)
        return s->spoil(part, n);
    for (int k = 0; find_ids(s, part, k, &ids, &operand, &count); k++) {
        const int32_t wrong[KINDS] = {-1, -99, INT32_MIN, (int32_t)ids.limit, INT32_MAX};
        if (id < count) {
            set_id(s, part, &ids, &operand, id, wrong[n % KINDS]);
            return NRG_ERR_POSITION;
        }
        id -= count;
    }
    return NRG_OK;
}

/* The bytes' place has to be there, and is left alone where the function refuses. */
static nrg_status run_workspace(const invoke_function *f, void *const *part)
{
    enum { NOT_SAID = 12345 }; /* no answer is odd */
    size_t bytes = NOT_SAID;
    ck_assert_int_eq(f->ask_bytes(part, NULL), NRG_ERR_NULL);
    const nrg_status status = f->ask_bytes(part, &bytes);
    ck_assert((status == NRG_OK) == (bytes != NOT_SAID));
    return status;
}

static nrg_status bytes_of_shares(const sound_call *s, void *const *part, int nth, size_t *bytes)
{
    const nrg_rope_shares shares = {.nth = nth};
    void *const asked[] = {part[0], part[1], own_memory(&shares)};
    return s->workspace->ask_bytes(asked, bytes);
}

/* A share of a call whose workspace is for one. How large a workspace is depends on nth, so that more shares may find that first;
 * then one share is asked what is wrong. */
static nrg_status run_share(const sound_call *s, void *const *part, int ith, int nth)
{
    const nrg_status status = s->function->run(part, ith, nth);
    size_t one = 0, all = 0;
    if (nth <= 1 || (status != NRG_ERR_WORKSPACE && status != NRG_ERR_OVERFLOW && status != NRG_ERR_THREAD))
        return status;
    const nrg_status of_one = bytes_of_shares(s, part, 1, &one), of_all = bytes_of_shares(s, part, nth, &all);
    if (of_one != NRG_OK || status == NRG_ERR_THREAD)
        return of_one != NRG_OK ? of_one : status;
    ck_assert(of_all == NRG_ERR_OVERFLOW || (of_all == NRG_OK && all > one));
    return s->function->run(part, 0, 1);
}

static nrg_status make(const sound_call *s, void *const *part, int asks, int ith, int nth)
{
    const invoke_function *f = s->function;
    nrg_status status = s->bind ? s->bind(part) : NRG_OK;
    if (status != NRG_OK)
        return status;
    status = asks           ? f->ask(part)
             : f->ask_bytes ? run_workspace(f, part)
             : s->workspace ? run_share(s, part, ith, nth)
                            : f->run(part, ith, nth);
    if (s->after)
        s->after(status);
    return status;
}

nrg_status sound_run(const sound_call *s, void *const *part, int ith, int nth) { return make(s, part, 0, ith, nth); }
nrg_status sound_ask(const sound_call *s, void *const *part) { return make(s, part, 1, 0, 1); }

/* Whether the description is of larger operands with twice the number in these eight bytes; or, without operands, still right. */
static int is_size(const sound_call *s, void *const *part, int i, size_t at)
{
    const nrg_call *call = s->function->call;
    nrg_sizes sizes, larger;
    verdict_operand operands[NRG_OPERANDS];
    size_t number;
    memcpy(&number, (char *)part[i] + at, sizeof number);
    for (int k = 0; k < call->range_count; k++)
        if (call->ranges[k].part == i && call->ranges[k].at / sizeof at == at / sizeof at)
            return 0; /* an option */
    if (!number || number > INT32_MAX || (i == SOUND_SHARES && s->workspace))
        return 0;
    const size_t twice = 2 * number;
    verdict_measure(call, (const void *const *)part, &sizes, operands);
    memcpy((char *)part[i] + at, &twice, sizeof twice);
    const nrg_status status = verdict_measure(call, (const void *const *)part, &larger, operands);
    memcpy((char *)part[i] + at, &number, sizeof number);
    return status == NRG_OK && (!call->operand_count || memcmp(sizes.n, larger.n, sizeof sizes.n) != 0);
}

int sound_sizes(const sound_call *s, sound_size sizes[SOUND_SIZES])
{
    static _Alignas(16) unsigned char parts[NRG_PARTS][SOUND_PART_BYTES];
    const nrg_call *call = s->function->call;
    void *const part[NRG_PARTS] = {parts[0], parts[1], parts[2], parts[3], parts[4]};
    int count = 0;
    for (int variant = 0; variant < s->variants; variant++) {
        sound_set_up(s, variant, part);
        for (int i = 0; i < call->part_count; i++)
            for (size_t at = 0; at + sizeof at <= call->parts[i].size; at += sizeof at) {
                int k = 0;
                while (k < count && (sizes[k].part != i || sizes[k].at != at))
                    k++;
                if (k == count && !(at == 0 && call->parts[i].least) && is_size(s, part, i, at)) {
                    ck_assert_int_lt(count, SOUND_SIZES);
                    sizes[count++] = (sound_size){(unsigned char)i, (uint16_t)at};
                }
            }
    }
    return count;
}
