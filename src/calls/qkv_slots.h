/* Whether tokens have slots of their own, each; padding tokens, which have -1, have none.
 *
 * Tokens that follow each other in a sequence have slots that rise, which is seen at once. Of others, a few are compared each
 * with each; more of them mark bits on the stack, a window of slots at a time, of which those without a token are passed over: no
 * more windows than tokens.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_QKV_SLOTS_H
#define NRG_CALLS_QKV_SLOTS_H

#include <string.h>

#include "call.h"

enum { QKV_SLOTS_FEW = 48, QKV_WINDOW_WORDS = 256, QKV_WINDOW = 64 * QKV_WINDOW_WORDS };

static inline int qkv_few_slots_differ(const int64_t *slots, size_t tokens)
{
    for (size_t i = 1; i < tokens; i++) {
        int is_there = 0; /* no way out of the loop, so that it is one of vectors */
        for (size_t j = 0; j < i; j++)
            is_there |= slots[i] == slots[j];
        if (is_there && slots[i] >= 0)
            return 0;
    }
    return 1;
}

NRG_OWN_FRAME int qkv_many_slots_differ(const int64_t *slots, size_t tokens)
{
    uint64_t words[QKV_WINDOW_WORDS];
    int64_t begin = INT64_MAX;
    for (size_t t = 0; t < tokens; t++)
        begin = slots[t] >= 0 && slots[t] < begin ? slots[t] : begin;
    for (int64_t next; begin != INT64_MAX; begin = next) {
        memset(words, 0, sizeof words);
        next = INT64_MAX;
        for (size_t t = 0; t < tokens; t++) {
            const int64_t at = slots[t] - begin;
            if (at < 0)
                continue;
            if (at >= QKV_WINDOW) {
                next = slots[t] < next ? slots[t] : next;
                continue;
            }
            const uint64_t bit = UINT64_C(1) << (at % 64);
            if (words[at / 64] & bit)
                return 0;
            words[at / 64] |= bit;
        }
    }
    return 1;
}

/* Whether they follow each other, as those of a prompt do and that of one token: rows of the cache are then rows of a tensor. */
static inline int qkv_slots_are_in_turn(const int64_t *slots, size_t tokens)
{
    size_t t = 1;
    while (t < tokens && slots[t] == slots[t - 1] + 1)
        t++;
    return slots[0] >= 0 && t == tokens;
}

/* Rows are heads of tokens. Moves *begin to the first row, before end, whose token has a slot; returns where such rows end. */
static inline size_t qkv_rows_with_slots(const int64_t *slots, size_t heads, size_t *begin, size_t end)
{
    size_t token = *begin / heads;
    while (token * heads < end && slots[token] < 0)
        token++;
    if (*begin < token * heads)
        *begin = token * heads < end ? token * heads : end;
    while (token * heads < end && slots[token] >= 0)
        token++;
    return token * heads < end ? token * heads : end;
}

/* NRG_OK, or what is wrong with them. No cache has INT64_MAX slots, or the checker would have refused it. */
static inline nrg_status qkv_check_slots(const int64_t *slots, size_t tokens, size_t slot_count)
{
    int rise = 1;
    int64_t last = -1;
    for (size_t t = 0; t < tokens; t++) {
        if (slots[t] == -1)
            continue;
        if (slots[t] < 0 || (uint64_t)slots[t] >= slot_count)
            return NRG_ERR_POSITION;
        rise &= slots[t] > last;
        last = slots[t];
    }
    if (rise)
        return NRG_OK;
    const int differ = tokens <= QKV_SLOTS_FEW ? qkv_few_slots_differ(slots, tokens) : qkv_many_slots_differ(slots, tokens);
    return differ ? NRG_OK : NRG_ERR_OVERLAP;
}

#endif
