/* tools/cli.h: exit statuses, error messages and options, which all commands share.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_CLI_H
#define NRG_TOOLS_CLI_H

#include <stddef.h>

#include <nrg/nrg.h>

#include "printf_like.h"

/* Every command's exit status. */
enum {
    CLI_DONE = 0,
    CLI_FAILED = 1, /* nrg check found a difference; an output cannot be written; no memory */
    CLI_REFUSED = 2 /* an argument or an input is wrong; nothing was written */
};

/* The command that error messages begin with: "nrg norm: ". Static storage; NULL: only "nrg: ". */
void cli_set_command(const char *name);

/* Prints one line to stderr. Control characters become '?', since file names and file contents are part of it. An error names the
 * argument, the expected value and the given one. Returns 0. */
PRINTF_LIKE(1, 2) int complain(const char *format, ...);

/* The same, with the exit status. */
#define cli_refuse(...) (complain(__VA_ARGS__), CLI_REFUSED)
#define cli_fail(...) (complain(__VA_ARGS__), CLI_FAILED)

/* What an option takes: 0 is nothing. The last two are files for file_command.h: of positions or ids, of bytes. */
enum { CLI_VALUE = 1, CLI_INTEGERS, CLI_BYTES };

typedef struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* 0: no short form */
    char takes_value;
} cli_option;

/* While `on`, cli_collect reads no argument: it prints the options of the command, one a line, and returns CLI_REFUSED.
 * Completion in shells uses this, so that it has the list of the parser. */
void cli_only_list(int on);
int cli_only_lists(void);

/* Sorts all arguments, which end with NULL: value[i] is that of options[i] (--name VALUE, --name=VALUE, -n VALUE), for those
 * without a value the option itself; an operand is the value of options[operand], or refused. The last of the options, before an
 * entry without a name, is --help. Nothing may be given twice, since one of the two would have no effect. Returns CLI_DONE,
 * CLI_REFUSED after a complaint, or CLI_HELP_GIVEN as soon as --help comes. */
enum { CLI_HELP_GIVEN = -1, CLI_NO_OPERAND = -1 };
int cli_collect(char **arguments, const cli_option *options, int operand, const char **value);

/* Whether the name of a file stands for standard input or output. */
int cli_is_standard(const char *name);

/* The name of a file in a complaint: itself, or the given one where it stands for standard input or output; NULL for NULL. */
const char *cli_file_name(const char *name, const char *standard);

/* A whole argument as a number; 0 after a complaint. */
int cli_double(const char *option, const char *text, double *number);
int cli_nonnegative(const char *option, const char *text, double *number);
/* "Above 0" is from 2^-400 to 2^400. */
int cli_positive(const char *option, const char *text, double *number);
int cli_range(const char *option, const char *text, double low, double high, const char *expected, double *number);
int cli_float(const char *option, const char *text, float *number);
int cli_finite(const char *option, const char *text, float *number);
int cli_count(const char *option, const char *text, size_t least, size_t *number);

int cli_integer(const char *option, const char *text, long long least, long long most, long long *number);

/* Up to `room` numbers with commas between them; those that are not there stay as they are. */
int cli_integers(const char *option, const char *text, int room, long long least, long long most, long long *numbers);

/* The index of text in words, which end with NULL; -1 after a complaint that lists them and suggests the nearest. */
int cli_word(const char *option, const char *text, const char *const *words);

/* The library's enumerations as words, in their order. */
extern const char *const cli_stores[], *const cli_activations[];

/* The path of --isa, if it can run here; 0 after a complaint. */
int cli_isa(const char *text, nrg_isa *isa);

/* Whether this build contains `what` (a family, or "backward"), which an option requires; 0 after a complaint. */
int cli_build_has(const char *option, const char *what);

#endif
