/* tools/suggest.h: the known word that is nearest to a mistyped one. A header, because nrg-bench links nothing of tools/.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_SUGGEST_H
#define NRG_TOOLS_SUGGEST_H

#include <ctype.h>
#include <stddef.h>
#include <string.h>

enum { SUGGEST_ROOM = 32 }; /* longer words have no suggestion */

typedef struct suggestion {
    const char *word; /* NULL: no word is near */
    size_t distance;
} suggestion;

/* The edit distance: insertions, deletions, substitutions and swaps of neighbours, without regard to case. */
static inline size_t suggest_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][SUGGEST_ROOM + 1], *before = rows[0], *last = rows[1], *next = rows[2];
    for (size_t j = 0; j <= b_length; j++)
        before[j] = last[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        const int c = tolower((unsigned char)a[i - 1]);
        next[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const int d = tolower((unsigned char)b[j - 1]);
            next[j] = last[j - 1] + (c != d);
            if (next[j] > last[j] + 1)
                next[j] = last[j] + 1;
            if (next[j] > next[j - 1] + 1)
                next[j] = next[j - 1] + 1;
            if (i > 1 && j > 1 && c == tolower((unsigned char)b[j - 2]) && d == tolower((unsigned char)a[i - 2]) &&
                next[j] > before[j - 2] + 1)
                next[j] = before[j - 2] + 1;
        }
        size_t *free_row = before;
        before = last;
        last = next;
        next = free_row;
    }
    return last[b_length];
}

/* Keeps the word if it is nearer than the one before. Near is a third of the typed letters, or one; a beginning of three letters
 * counts as one letter away. */
static inline void suggest(suggestion *s, const char *typed, size_t length, const char *word)
{
    const size_t word_length = strlen(word), most = length < 6 ? 1 : length / 3;
    if (!length || length > SUGGEST_ROOM || word_length > SUGGEST_ROOM)
        return;
    size_t distance = suggest_distance(typed, length, word, word_length);
    if (distance > 1 && length >= 3 && length < word_length && memcmp(typed, word, length) == 0)
        distance = 1;
    if (distance <= most && distance < word_length && (!s->word || distance < s->distance)) {
        s->word = word;
        s->distance = distance;
    }
}

#endif
