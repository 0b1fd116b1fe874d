/* JSON as a tree.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "json.h"

/* Reports are four deep; a file of brackets is not to overrun the stack. */
enum { DEPTH_MAX = 64 };

static const char *space(const char *p) { return p + strspn(p, " \t\r\n"); }

/* Four digits of \u: as UTF-8, a half of a surrogate pair as '?'. */
static const char *code_point(const char *p, char **to)
{
    char digits[5] = {0}, *end;
    for (int i = 0; i < 4; i++)
        if (!(digits[i] = p[i]))
            return NULL;
    const unsigned long code = strtoul(digits, &end, 16);
    if (*end)
        return NULL;
    if (code < 0x80)
        *(*to)++ = (char)(code ? code : '?');
    else if (code >= 0xd800 && code < 0xe000)
        *(*to)++ = '?';
    else {
        if (code < 0x800)
            *(*to)++ = (char)(0xc0 | code >> 6);
        else {
            *(*to)++ = (char)(0xe0 | code >> 12);
            *(*to)++ = (char)(0x80 | (code >> 6 & 0x3f));
        }
        *(*to)++ = (char)(0x80 | (code & 0x3f));
    }
    return p + 4;
}

/* At the quote; NULL: no string. */
static const char *read_text(const char *p, char **text)
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *end = p + 1;
    while (*end && *end != '"')
        end += *end == '\\' && end[1] ? 2 : 1;
    char *to = *text = malloc((size_t)(end - p) + 1);
    if (!to || *p != '"' || *end != '"')
        return NULL;
    for (p++; p < end;) {
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        const char *escape = strchr(escapes, p[1]);
        if (p[1] == 'u')
            p = code_point(p + 2, &to);
        else if (escape) {
            *to++ = meant[escape - escapes];
            p += 2;
        } else
            p = NULL;
        if (!p)
            return NULL;
    }
    *to = '\0';
    return end + 1;
}

static const char *read_value(const char *p, json_value *v, int depth, const char **wrong);

static const char *read_members(const char *p, json_value *v, char close, int depth, const char **wrong)
{
    json_value **place = &v->first;
    for (p = space(p + 1); *p != close; v->count++) {
        if (v->count) {
            if (*p != ',')
                break;
            p = space(p + 1);
        }
        json_value *member = *place = calloc(1, sizeof *member);
        if (!member)
            break;
        place = &member->next;
        if (close == '}') {
            *wrong = p;
            p = read_text(p, &member->key);
            if (!p || *(p = space(p)) != ':')
                return NULL;
            p = space(p + 1);
        }
        p = read_value(p, member, depth + 1, wrong);
        if (!p)
            return NULL;
        p = space(p);
    }
    *wrong = p;
    return *p == close ? p + 1 : NULL;
}

static const char *read_value(const char *p, json_value *v, int depth, const char **wrong)
{
    static const struct {
        const char *word;
        json_kind kind;
    } words[] = {{"null", JSON_NULL}, {"false", JSON_FALSE}, {"true", JSON_TRUE}};
    *wrong = p;
    if (depth > DEPTH_MAX)
        return NULL;
    if (*p == '{' || *p == '[') {
        v->kind = *p == '{' ? JSON_OBJECT : JSON_ARRAY;
        return read_members(p, v, *p == '{' ? '}' : ']', depth, wrong);
    }
    if (*p == '"') {
        v->kind = JSON_TEXT;
        return read_text(p, &v->text);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp(p, words[i].word, strlen(words[i].word)) == 0) {
            v->kind = words[i].kind;
            return p + strlen(words[i].word);
        }
    char *end;
    v->kind = JSON_NUMBER;
    v->number = strtod(p, &end);
    return *p && strchr("-0123456789", *p) && end > p ? end : NULL;
}

json_value *json_read(const char *text, const char **wrong_at)
{
    json_value *all = calloc(1, sizeof *all);
    const char *end = all ? read_value(space(text), all, 0, wrong_at) : NULL;
    if (end && *(end = space(end))) {
        *wrong_at = end;
        end = NULL;
    }
    if (end)
        return all;
    json_free(all);
    return NULL;
}

static void clear(json_value *value)
{
    for (json_value *member = value->first, *next; member; member = next) {
        next = member->next;
        clear(member);
        free(member);
    }
    free(value->text);
    free(value->key);
}

void json_free(json_value *value)
{
    if (!value)
        return;
    clear(value);
    free(value);
}

const json_value *json_get(const json_value *object, const char *key)
{
    static const json_value nothing;
    for (const json_value *member = object->first; member; member = member->next)
        if (member->key && strcmp(member->key, key) == 0)
            return member;
    return &nothing;
}

const char *json_text_of(const json_value *value, const char *otherwise)
{
    return value->kind == JSON_TEXT ? value->text : otherwise;
}
