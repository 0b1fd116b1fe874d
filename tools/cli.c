/* Error messages and options.
 *
 * Not getopt_long, because it accepts abbreviations: every new option could then break a command line.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"
#include "suggest.h"

static const char *command;

/* Set: cli_collect prints the options and reads nothing. */
static int only_list;

void cli_set_command(const char *name) { command = name; }

void cli_only_list(int on) { only_list = on; }

int cli_only_lists(void) { return only_list; }

int complain(const char *format, ...)
{
    char line[1024];
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (length >= (int)sizeof line)
        memcpy(line + sizeof line - 4, "...", 4);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    progress_wipe();
    fprintf(stderr, "nrg%s%s: %s\n", command ? " " : "", command ? command : "", line);
    return 0;
}

/* One option had two names in 0.3, by command; each command takes both. */
static const char *const twins[][2] = {{"act", "activation"}, {"first", "first-position"}};

/* What next_argument finds instead of an option. ERROR: there was a complaint. */
enum { END = -2, OPERAND = -3, ERROR = -4 };

static int is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

static int find_option(const cli_option *options, const char *name, size_t length)
{
    const char *twin = NULL;
    for (size_t i = 0; i < 2 * sizeof twins / sizeof twins[0]; i++)
        if (is_name(twins[i / 2][i % 2], name, length))
            twin = twins[i / 2][!(i % 2)];
    for (int i = 0; options[i].name; i++)
        if (is_name(options[i].name, name, length) || (twin && strcmp(options[i].name, twin) == 0))
            return i;
    return ERROR;
}

static int find_letter(const cli_option *options, char letter)
{
    for (int i = 0; options[i].name; i++)
        if (options[i].letter == letter)
            return i;
    return ERROR;
}

/* An option with one dash is compared too: -mask is near to --mask. */
static void refuse_option(const cli_option *options, const char *argument, const char *equals)
{
    suggestion nearest = {NULL, 0};
    const char *name = argument + 1 + (argument[1] == '-');
    for (int i = 0; options[i].name; i++)
        suggest(&nearest, name, equals ? (size_t)(equals - name) : strlen(name), options[i].name);
    if (nearest.word)
        complain("unknown option %s; did you mean --%s?", argument, nearest.word);
    else
        complain("unknown option %s; see nrg %s --help", argument, command ? command : "COMMAND");
}

typedef struct argument_reader {
    char **next;
    int only_operands;
} argument_reader;

/* The index of the next argument's option, or one of those above. *value: its value, or the operand. */
static int next_argument(argument_reader *reader, const cli_option *options, const char **value)
{
    const char *argument = *reader->next;
    *value = argument;
    if (!argument)
        return END;
    reader->next++;
    if (reader->only_operands || argument[0] != '-' || !argument[1])
        return OPERAND;
    if (strcmp(argument, "--") == 0) {
        reader->only_operands = 1;
        return next_argument(reader, options, value);
    }
    const char *equals = NULL;
    int found = ERROR;
    if (argument[1] == '-') {
        equals = strchr(argument, '=');
        found = find_option(options, argument + 2, equals ? (size_t)(equals - argument - 2) : strlen(argument + 2));
    } else if (!argument[2]) {
        found = find_letter(options, argument[1]);
    }
    if (found == ERROR) {
        refuse_option(options, argument, equals);
    } else if (!options[found].takes_value && equals) {
        complain("--%s: expected no value, got '%s'", options[found].name, equals + 1);
        return ERROR;
    } else if (equals) {
        *value = equals + 1;
    } else if (options[found].takes_value) {
        *value = *reader->next;
        if (!*value) {
            complain("%s: expected a value, got none", argument);
            return ERROR;
        }
        reader->next++;
    }
    return found;
}

int cli_collect(char **arguments, const cli_option *options, int operand, const char **value)
{
    argument_reader reader = {arguments, 0};
    for (int i = 0; only_list && options[i].name; i++)
        printf("--%s\n", options[i].name);
    while (!only_list) {
        const char *text;
        int found = next_argument(&reader, options, &text);
        if (found == END)
            return CLI_DONE;
        if (found == ERROR)
            break;
        if (found == OPERAND)
            found = operand;
        if (found == CLI_NO_OPERAND)
            return cli_refuse("expected no arguments, got '%s'", text);
        if (!options[found + 1].name)
            return CLI_HELP_GIVEN;
        if (value[found]) {
            if (options[found].takes_value)
                return cli_refuse("--%s: expected once, got '%s' and '%s'", options[found].name, value[found], text);
            return cli_refuse("--%s: expected once, got twice", options[found].name);
        }
        value[found] = text;
    }
    return CLI_REFUSED;
}

int cli_is_standard(const char *name) { return strcmp(name, "-") == 0; }

const char *cli_file_name(const char *name, const char *standard) { return name && cli_is_standard(name) ? standard : name; }

static int complain_of(const char *option, const char *expected, const char *text)
{
    return complain("--%s: expected %s, got '%s'", option, expected, text);
}

int cli_double(const char *option, const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return (end != text && !*end) || complain_of(option, "a number", text);
}

int cli_range(const char *option, const char *text, double low, double high, const char *expected, double *number)
{
    return cli_double(option, text, number) && ((*number >= low && *number <= high) || complain_of(option, expected, text));
}

int cli_nonnegative(const char *option, const char *text, double *number)
{
    return cli_range(option, text, 0, DBL_MAX, "a finite number of at least 0", number);
}

int cli_positive(const char *option, const char *text, double *number)
{
    return cli_range(option, text, 0x1p-400, 0x1p400, "a number above 0, from 2^-400 to 2^400", number);
}

int cli_float(const char *option, const char *text, float *number)
{
    char *end;
    *number = strtof(text, &end);
    return (end != text && !*end) || complain_of(option, "a number", text);
}

int cli_finite(const char *option, const char *text, float *number)
{
    return cli_float(option, text, number) && (isfinite(*number) || complain_of(option, "a finite number", text));
}

int cli_count(const char *option, const char *text, size_t least, size_t *number)
{
    size_t value = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++) {
        size_t digit = (size_t)(*c - '0');
        if (value > (SIZE_MAX - digit) / 10)
            break;
        value = value * 10 + digit;
    }
    *number = value;
    if (c != text && !*c && value >= least)
        return 1;
    return complain("--%s: expected a whole number of at least %zu, got '%s'", option, least, text);
}

/* Up to the end, or to a comma. */
static const char *parse_integer(const char *text, long long least, long long most, long long *number)
{
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    int is_number = end != text && (*text == '-' || (*text >= '0' && *text <= '9')) && (!*end || *end == ',');
    return is_number && !errno && *number >= least && *number <= most ? end : NULL;
}

int cli_integer(const char *option, const char *text, long long least, long long most, long long *number)
{
    const char *end = parse_integer(text, least, most, number);
    if (end && !*end)
        return 1;
    return complain("--%s: expected a whole number from %lld to %lld, got '%s'", option, least, most, text);
}

int cli_integers(const char *option, const char *text, int room, long long least, long long most, long long *numbers)
{
    const char *at = text;
    for (int i = 0; i < room; i++) {
        at = parse_integer(at, least, most, &numbers[i]);
        if (!at)
            break;
        if (!*at)
            return 1;
        at++;
    }
    return complain("--%s: expected at most %d whole numbers from %lld to %lld, such as 16,24,24; got '%s'", option, room, least,
                    most, text);
}

int cli_word(const char *option, const char *text, const char *const *words)
{
    char list[256] = "";
    suggestion nearest = {NULL, 0};
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0)
            return i;
        suggest(&nearest, text, strlen(text), words[i]);
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", words[i]);
    }
    if (nearest.word)
        complain("--%s: expected one of %s; got '%s', did you mean %s?", option, list, text, nearest.word);
    else
        complain("--%s: expected one of %s; got '%s'", option, list, text);
    return -1;
}

const char *const cli_stores[] = {"auto", "keep", "stream", NULL};
const char *const cli_activations[] = {
    "identity",   "sigmoid",      "silu", "relu",       "relu2", "tanh", "gelu",  "gelu_tanh", "softplus", "gelu_quick",
    "hard_swish", "hard_sigmoid", "elu",  "leaky_relu", "mish",  "exp",  "expm1", "softsign",  NULL};

int cli_isa(const char *text, nrg_isa *isa)
{
    enum { ROOM = 16 };
    const char *names[ROOM + 1] = {NULL};
    if (nrg_isa_from_name(text, isa) != NRG_OK) {
        for (int i = 0; i < ROOM && nrg_isa_name((nrg_isa)i); i++)
            names[i] = nrg_isa_name((nrg_isa)i);
        (void)cli_word("isa", text, names);
    } else if (!nrg_isa_built(*isa)) {
        complain("--isa: expected a path of this build, got '%s'; nrg info lists the paths", text);
    } else if (!nrg_isa_supported(*isa)) {
        complain("--isa: expected a path that this CPU supports, got '%s'; nrg info lists the paths", text);
    } else {
        return 1;
    }
    return 0;
}

int cli_build_has(const char *option, const char *what)
{
    const int is_backward = strcmp(what, "backward") == 0;
    if (is_backward ? nrg_backward_built() : nrg_family_built(what))
        return 1;
    return complain("%s: expected a build of nrg with %s, got one without", option, is_backward ? "backward passes" : what);
}
