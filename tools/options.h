/* tools/options.h: the options of a command that reads and writes .npy files, from one list of them.
 *
 * The list is a file of these rows, which is what --help prints in this order, without what the command has no place for:
 *
 *     FILE_IN(name, "option", letter, help), FILE_IDS, FILE_BYTES    an input: numbers, positions or ids, bytes; IN_name
 *     FILE_TYPED(name, "option", letter, field, help)                the same of numbers that may be '<f4' beside '<f2':
 *                                                                    the request's field for their dtype
 *     FILE_OUT(name, "option", letter, help)                         an output: OUT_name
 *     TEXT(name, "option", help), FLAG                               OPT_name, whose value the command reads, or which has none
 *     DOUBLE(name, "option", field, help), FLOAT, FINITE             a field of the request
 *     NONNEGATIVE(name, "option", field, help), POSITIVE             a double that is finite, or between 2^-400 and 2^400
 *     RANGE(name, "option", field, low, high, expected, help)        a double; expected: the range in words
 *     COUNT(name, "option", field, least, help)
 *     INT(name, "option", field, least, most, help), INT64
 *     WORD(name, "option", field, words, help)                       the index of the value in a list that ends with NULL
 *     SWITCH(name, "option", field, help)                            1 where it is given, 0 where it is not
 *     NEEDS(option, other), EXCLUDES(option, other)                  by their whole names: IN_X, INPUTS + OUT_O, OPT_EPS
 *     REQUIRED(option)
 *     FORWARD_ONLY(option)                                           not with --backward
 *     REFUSED(condition, text)                                       of GIVEN(option), and of fields q->... of rows above
 *     RULE(wrong, answer)                                            another condition, and the call that complains of it
 *     HELP(text)
 *
 * The name of a file is that of its operand in the description of the call (bind.c), in capitals.
 * --isa and --help come last. A command defines before it includes this file, and defines ask and compute (file_command.h) after:
 *
 *     OPTIONS_DEF   the list
 *     COMMAND       its name: "softmax"
 *     OPERAND       the input that an argument without an option stands for
 *     REQUEST       a struct, which is zeros at first
 *     RUN           the function that commands.h declares
 *
 * Only OPTIONS_DEF: no more than the names of the options. SPDX-License-Identifier: MIT */
#include <string.h>

#include "commands.h"
#include "file_command.h"

#define FILE_IN(name, option, letter, help) OPTION_ROW(IN, name, option, letter, CLI_VALUE, 0, , help)
#define FILE_TYPED(name, option, letter, field, help)                                                                            \
    OPTION_ROW(IN, name, option, letter, CLI_VALUE, offsetof(REQUEST, field), , help)
#define FILE_IDS(name, option, letter, help) OPTION_ROW(IN, name, option, letter, CLI_INTEGERS, 0, , help)
#define FILE_BYTES(name, option, letter, help) OPTION_ROW(IN, name, option, letter, CLI_BYTES, 0, , help)
#define FILE_OUT(name, option, letter, help) OPTION_ROW(OUT, name, option, letter, CLI_VALUE, 0, , help)
#define FLAG(name, option, help) OPTION_ROW(OPT, name, option, 0, 0, , , help)
#define TEXT(name, option, help) OPTION_ROW(OPT, name, option, 0, CLI_VALUE, , , help)
#define SWITCH(name, option, field, help)                                                                                        \
    OPTION_ROW(OPT, name, option, 0, 0, , &&(q->field = call->value[OPT_##name] != NULL, 1), help)
#define FIELD(name, option, read, help) OPTION_ROW(OPT, name, option, 0, CLI_VALUE, , &&(!call->value[OPT_##name] || read), help)
#define DOUBLE(name, option, field, help) FIELD(name, option, cli_double(option, call->value[OPT_##name], &q->field), help)
#define RANGE(name, option, field, low, high, expected, help)                                                                    \
    FIELD(name, option, cli_range(option, call->value[OPT_##name], low, high, expected, &q->field), help)
#define NONNEGATIVE(name, option, field, help)                                                                                   \
    FIELD(name, option, cli_nonnegative(option, call->value[OPT_##name], &q->field), help)
#define POSITIVE(name, option, field, help) FIELD(name, option, cli_positive(option, call->value[OPT_##name], &q->field), help)
#define FLOAT(name, option, field, help) FIELD(name, option, cli_float(option, call->value[OPT_##name], &q->field), help)
#define FINITE(name, option, field, help) FIELD(name, option, cli_finite(option, call->value[OPT_##name], &q->field), help)
#define COUNT(name, option, field, least, help)                                                                                  \
    FIELD(name, option, cli_count(option, call->value[OPT_##name], least, &q->field), help)
#define INT(name, option, field, least, most, help)                                                                              \
    FIELD(name, option, (cli_integer(option, call->value[OPT_##name], least, most, &integer) && (q->field = (int)integer, 1)),   \
          help)
#define INT64(name, option, field, least, most, help)                                                                            \
    FIELD(name, option, (cli_integer(option, call->value[OPT_##name], least, most, &integer) && (q->field = integer, 1)), help)
#define WORD(name, option, field, words, help)                                                                                   \
    FIELD(name, option, ((word = cli_word(option, call->value[OPT_##name], words)) >= 0 && (q->field = word, 1)), help)
#define RULE(wrong, answer) OPTION_ROW(NONE, , , , , , &&(!(wrong) || answer == CLI_DONE), )
#define NEEDS(option, other) RULE(call->value[option], file_needs(call, option, other))
#define EXCLUDES(option, other) RULE(call->value[option], file_excludes(call, option, other))
#define REQUIRED(option) RULE(!call->value[option], file_missing(call, option, ""))
#define GIVEN(option) (call->value[option] != NULL)
#define REFUSED(condition, text) RULE(condition, cli_refuse(text))
#define FORWARD_ONLY(option) RULE(GIVEN(OPT_BACKWARD) && GIVEN(option), file_unusable(call, option, " with --backward"))
#define HELP(help) OPTION_ROW(NONE, , , , , , , help)

#define ONLY_IN_IN(...) __VA_ARGS__
#define ONLY_IN_OUT(...)
#define ONLY_IN_OPT(...)
#define ONLY_IN_NONE(...)
#define ONLY_OUT_IN(...)
#define ONLY_OUT_OUT(...) __VA_ARGS__
#define ONLY_OUT_OPT(...)
#define ONLY_OUT_NONE(...)
#define ONLY_OPT_IN(...)
#define ONLY_OPT_OUT(...)
#define ONLY_OPT_OPT(...) __VA_ARGS__
#define ONLY_OPT_NONE(...)

enum {
#define OPTION_ROW(where, name, option, letter, takes, own, read, help) ONLY_IN_##where(IN_##name, )
#include OPTIONS_DEF
#undef OPTION_ROW
    INPUTS
};

enum {
#define OPTION_ROW(where, name, option, letter, takes, own, read, help) ONLY_OUT_##where(OUT_##name, )
#include OPTIONS_DEF
#undef OPTION_ROW
    OUTPUTS
};

enum {
    OPT_BEFORE_ALL = INPUTS + OUTPUTS - 1,
#define OPTION_ROW(where, name, option, letter, takes, own, read, help) ONLY_OPT_##where(OPT_##name, )
#include OPTIONS_DEF
#undef OPTION_ROW
    OPT_ISA,
    OPT_HELP,
    OPTIONS
};

#ifdef COMMAND
static const cli_option options[OPTIONS + 1] = {
#define OPTION_ROW(where, name, option, letter, takes, own, read, help)                                                          \
    ONLY_IN_##where([IN_##name] = {option, letter, takes}, ) ONLY_OUT_##where([INPUTS + OUT_##name] = {option, letter, takes}, ) \
        ONLY_OPT_##where([OPT_##name] = {option, letter, takes}, )
#include OPTIONS_DEF
#undef OPTION_ROW
    [OPT_ISA] = {"isa", 0, CLI_VALUE},
    [OPT_HELP] = {"help", 'h', 0},
    [OPTIONS] = {NULL, 0, 0},
};

static const file_operand operands[INPUTS + OUTPUTS] = {
#define OPTION_ROW(where, name, option, letter, takes, own, read, help)                                                          \
    ONLY_IN_##where([IN_##name] = {#name, own}, ) ONLY_OUT_##where([INPUTS + OUT_##name] = {#name, own}, )
#include OPTIONS_DEF
#undef OPTION_ROW
};

static const char command_help[] =
#define OPTION_ROW(where, name, option, letter, takes, own, read, help) help
#include OPTIONS_DEF
#undef OPTION_ROW
    ;

/* Checks the rules and fills in the fields of the request whose options are given, and all switches, in the order of the rows.
 * 0 after a complaint. */
static inline int read_fields(const file_call *call, REQUEST *q)
{
    int word;
    long long integer;
    (void)call, (void)q, (void)word, (void)integer; /* not every command has fields */
    return 1
#define OPTION_ROW(where, name, option, letter, takes, own, read, help) read
#include OPTIONS_DEF
#undef OPTION_ROW
        ;
}

static int ask(file_call *call);
static int compute(file_call *call);

int RUN(char **arguments)
{
    static const file_command command = {COMMAND, command_help, options, operands, INPUTS,
                                         OUTPUTS, OPTIONS,      OPERAND, ask,      compute};
    REQUEST q;
    memset(&q, 0, sizeof q);
    return file_command_run(&command, &q, arguments);
}
#endif
