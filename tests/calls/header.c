/* SPDX-License-Identifier: MIT */
#include "header.h"

#include <stdio.h>
#include <string.h>

#include "../harness/support.h"

#ifndef NRG_HEADERS
#error "NRG_HEADERS: the folder of the public headers"
#endif

enum { TEXT = 1 << 16, NAME = 64 };

static const char *const status_names[] = {
    [NRG_ERR_NULL] = "NRG_ERR_NULL",         [NRG_ERR_STRUCT_SIZE] = "NRG_ERR_STRUCT_SIZE",
    [NRG_ERR_DIM] = "NRG_ERR_DIM",           [NRG_ERR_OVERFLOW] = "NRG_ERR_OVERFLOW",
    [NRG_ERR_STRIDE] = "NRG_ERR_STRIDE",     [NRG_ERR_ALIGNMENT] = "NRG_ERR_ALIGNMENT",
    [NRG_ERR_OVERLAP] = "NRG_ERR_OVERLAP",   [NRG_ERR_ENUM] = "NRG_ERR_ENUM",
    [NRG_ERR_DTYPE] = "NRG_ERR_DTYPE",       [NRG_ERR_EPS] = "NRG_ERR_EPS",
    [NRG_ERR_CONSTANT] = "NRG_ERR_CONSTANT", [NRG_ERR_COMBINATION] = "NRG_ERR_COMBINATION",
    [NRG_ERR_THREAD] = "NRG_ERR_THREAD",     [NRG_ERR_WORKSPACE] = "NRG_ERR_WORKSPACE",
    [NRG_ERR_COUNT] = "NRG_ERR_COUNT",       [NRG_ERR_POSITION] = "NRG_ERR_POSITION",
};

static const char *read_header(const char *header)
{
    static char text[TEXT], path[512];
    snprintf(path, sizeof path, "%s/%s", NRG_HEADERS, header);
    FILE *file = fopen(path, "rb");
    if (!file)
        ck_abort_msg("%s cannot be read", path);
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    ck_assert_msg(bytes && bytes < sizeof text - 1, "%s is too long for this test", path);
    fclose(file);
    text[bytes] = 0;
    return text;
}

/* Where a function is declared that returns a status, or a number; NULL where it is not. */
static const char *find_declaration(const char *text, const char *function)
{
    static const char *const types[] = {"nrg_status", "size_t"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof types / sizeof types[0] && !found; i++) {
        char declaration[NAME + 16];
        snprintf(declaration, sizeof declaration, "%s %s(", types[i], function);
        found = strstr(text, declaration);
    }
    return found;
}

/* The text of the header that declares a function, one of those in nrg.h, and where it does. */
static const char *find_function(const char *function, const char **declaration)
{
    static const char include[] = "#include \"";
    static char all[TEXT];
    strcpy(all, read_header("nrg.h"));
    for (const char *p = strstr(all, include); p; p = strstr(p + 1, include)) {
        char header[NAME];
        snprintf(header, sizeof header, "%.*s", (int)strcspn(p + strlen(include), "\""), p + strlen(include));
        const char *text = read_header(header);
        *declaration = find_declaration(text, function);
        if (*declaration)
            return text;
    }
    ck_abort_msg("no header of nrg.h declares %s", function);
    return NULL;
}

/* The comments that end right before `end`, one after the other: where the first of them begins. */
static const char *comments_before(const char *text, const char *end)
{
    for (;;) {
        const char *p = end;
        while (p > text && strchr(" \n\t", p[-1]))
            p--;
        static const char *const words[] = {"NRG_API", "NRG_NODISCARD"}; /* before the type */
        size_t word = 0;
        for (size_t i = 0; i < sizeof words / sizeof words[0] && !word; i++)
            if ((size_t)(p - text) > strlen(words[i]) && memcmp(p - strlen(words[i]), words[i], strlen(words[i])) == 0)
                word = strlen(words[i]);
        if (word) {
            end = p - word;
            continue;
        }
        if (p - text < 4 || p[-1] != '/' || p[-2] != '*')
            return end;
        for (p -= 2; p > text && !(p[-1] == '/' && p[0] == '*'); p--)
            ;
        end = p > text ? p - 1 : text;
    }
}

static int is_name(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

/* Copies a comment as one line: a line break with its indent and star becomes a space. */
static void join_lines(const char *comment, size_t bytes, char *joined)
{
    for (size_t i = 0; i < bytes;) {
        if (comment[i] != '\n') {
            *joined++ = comment[i++];
            continue;
        }
        i += 1 + strspn(comment + i + 1, " ");
        i += comment[i] == '*' && comment[i + 1] != '/' ? 1 + strspn(comment + i + 1, " ") : 0;
        *joined++ = ' ';
    }
    *joined = 0;
}

/* The status whose name is at the beginning of a text, 0 if none. */
static size_t status_at(const char *text)
{
    for (size_t i = 0; i < sizeof status_names / sizeof status_names[0]; i++) {
        const size_t length = status_names[i] ? strlen(status_names[i]) : 0;
        if (length && strncmp(text, status_names[i], length) == 0 && !is_name(text[length]))
            return i;
    }
    return 0;
}

/* Steps over the end of an entry of a list, ", " or " and " or both. */
static const char *next_entry(const char *text)
{
    text += strspn(text, ", ");
    return strncmp(text, "and ", 4) == 0 ? text + 4 : text;
}

/* The statuses of a bullet, "- NRG_ERR_A: " or "- NRG_ERR_A, NRG_ERR_B: ", at the beginning of a text; 0 if it is none. */
static uint32_t bullet_statuses(const char *text)
{
    uint32_t statuses = 0;
    if (strncmp(text, "- ", 2) != 0)
        return 0;
    for (text += 2; status_at(text);) {
        statuses |= NRG_BIT(status_at(text));
        text += strlen(status_names[status_at(text)]);
        if (*text == ':')
            return statuses;
        text = next_entry(text);
    }
    return 0;
}

/* The statuses of a reference, "nrg_x, nrg_y and nrg_z, except NRG_ERR_A and NRG_ERR_B". *after: the end of it. */
static uint32_t referenced_statuses(const char *reference, const char **after)
{
    static const char except[] = "except ";
    uint32_t statuses = 0;
    const char *p = reference;
    while (strncmp(p, "nrg_", 4) == 0) {
        char name[NAME];
        size_t length = 0;
        for (; is_name(p[length]) && length + 1 < sizeof name; length++)
            name[length] = p[length];
        name[length] = 0;
        statuses |= header_statuses(name);
        p = next_entry(p + length);
    }
    if (strncmp(p, except, strlen(except)) == 0)
        for (p += strlen(except); status_at(p); p = next_entry(p + strlen(status_names[status_at(p)])))
            statuses &= ~NRG_BIT(status_at(p));
    *after = p;
    return statuses;
}

uint32_t header_statuses(const char *function)
{
    static const char reference[] = "he statuses of ";
    const char *end, *text = find_function(function, &end);
    const char *begin = comments_before(text, end);
    char comment[TEXT / 4];
    ck_assert_uint_lt((size_t)(end - begin), sizeof comment);
    join_lines(begin, (size_t)(end - begin), comment);
    uint32_t statuses = 0;
    for (const char *p = comment; *p;) {
        if (strncmp(p, reference, strlen(reference)) == 0) {
            statuses |= referenced_statuses(p + strlen(reference), &p);
            continue;
        }
        statuses |= bullet_statuses(p);
        p++;
    }
    return statuses;
}

/* The operand whose name stands at the beginning of a text, -1 if none. */
static int operand_at(const nrg_call *call, const char *text, size_t length)
{
    for (int i = 0; i < call->operand_count; i++)
        if (strlen(call->operands[i].name) == length && memcmp(call->operands[i].name, text, length) == 0)
            return i;
    return -1;
}

/* A line of names: which operand begins at which column. Returns how many; 0 where there is another word. */
static int read_columns(const nrg_call *call, const char *line, size_t length, int at[NRG_OPERANDS])
{
    int count = 0;
    for (int i = 0; i < NRG_OPERANDS; i++)
        at[i] = -1;
    for (size_t i = 0; i < length;) {
        size_t word = 0;
        while (i + word < length && line[i + word] != ' ')
            word++;
        if (!word || (word == 1 && line[i] == '*')) {
            i += word + 1;
            continue;
        }
        const int operand = operand_at(call, line + i, word);
        if (operand < 0)
            return 0;
        at[operand] = (int)i;
        count++;
        i += word;
    }
    return count;
}

uint32_t header_over(const char *function, const nrg_call *call, int out)
{
    const char *end, *text = find_function(function, &end), *name = call->operands[out].name;
    int columns[NRG_OPERANDS], next[NRG_OPERANDS], has_columns = 0;
    uint32_t over = 0;
    for (const char *line = text; line < end; line = strchr(line, '\n') + 1) {
        const size_t length = (size_t)(strchr(line, '\n') - line), name_length = strlen(name);
        if (read_columns(call, line, length, next) >= 2) {
            memcpy(columns, next, sizeof columns);
            has_columns = 1;
            continue;
        }
        const size_t first = strspn(line, " *"), cell = first + name_length + strspn(line + first + name_length, " ");
        if (!has_columns || cell >= length || memcmp(line + first, name, name_length) != 0 || line[first + name_length] != ' ' ||
            (memcmp(line + cell, "yes", 3) != 0 && memcmp(line + cell, "no", 2) != 0))
            continue;
        over = 0;
        for (int i = 0; i < call->operand_count; i++)
            if (columns[i] >= 0 && (size_t)columns[i] + 3 <= length && memcmp(line + columns[i], "yes", 3) == 0)
                over |= NRG_BIT(i);
    }
    return over;
}
