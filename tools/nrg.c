/* The command line of nrg: finds the command and runs it.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include <nrg/nrg.h>

#include "cli.h"
#include "commands.h"
#include "suggest.h"

#if defined(NRG_NO_ROPE) && defined(NRG_NO_RECURRENT) && defined(NRG_NO_EMBED) && defined(NRG_NO_RELATIVE) &&                    \
    defined(NRG_NO_SCORE_BIAS)
#define HAS_POSITIONS 0
#else
#define HAS_POSITIONS 1
#endif

static const named_command commands[] = {
    {"info", command_info, "CPU features, paths, the active path and the reason"},
    {"check", command_check, "compare every path of this CPU with the scalar path, bit by bit"},
#ifndef NRG_NO_NORM
    {"norm", command_norm, "normalize the rows of a NumPy .npy file"},
    {"sandwich", command_sandwich, "norm, residual and norm for the rows of .npy files"},
#endif
#ifndef NRG_NO_CHANNEL_NORM
    {"channel-norm", command_channel_norm, "batch, group, instance or layer norm of a .npy file with channels"},
#endif
#ifndef NRG_NO_ACTIVATION
    {"glu", command_glu, "gated linear units (SwiGLU, GEGLU) of .npy files"},
#endif
#ifndef NRG_NO_QUANTIZE
    {"quantize", command_quantize, "convert rows of a .npy file to bytes with scales: q8_0, q8_K, int8"},
    {"dequantize", command_dequantize, "convert them back"},
#endif
#ifndef NRG_NO_SOFTMAX
    {"softmax", command_softmax, "softmax of the scores or logits of a .npy file"},
#endif
#ifndef NRG_NO_ROPE
    {"rope", command_rope, "rotary position embedding of a .npy file, or its table of angles"},
#ifndef NRG_NO_NORM
    {"qkv", command_qkv, "norm, rotation and cache slots for the heads of q, k and v in .npy files"},
#endif
#endif
#if HAS_POSITIONS
    {"position", command_position, "other positional encodings of .npy files"},
#endif
    {NULL, NULL, NULL},
};

static const char usage[] = "\n"
                            "  nrg COMMAND --help, nrg --version\n"
                            "\n"
#ifndef NRG_NO_NORM
                            "example: make an array with NumPy, and normalize its rows\n"
                            "  python3 -c \"from numpy import *; save('x.npy', random.rand(8, 4096).astype('<f4'))\"\n"
                            "  nrg norm x.npy --o o.npy\n"
                            "\n"
#endif
                            "The environment variable NRG_ISA (scalar, avx2, avx512, neon, generic) selects the path.\n"
                            "Commands that take more than a second show their progress on a terminal. Otherwise they print\n"
                            "a line to stderr after 10 seconds, 20, 40 and so on.\n"
                            "\n"
                            "exit status: 0 done; 1 a check failed, an output cannot be written, or no memory; 2 wrong\n"
                            "arguments or a wrong input, and nothing was written\n";

static int print_usage(void)
{
    puts("usage: nrg COMMAND [OPTION]...\n");
    for (int i = 0; commands[i].name; i++)
        printf("  nrg %-14s %s\n", commands[i].name, commands[i].what);
    fputs(usage, stdout);
    return CLI_DONE;
}

const named_command *command_find(const named_command *list, const char *name, const char *what, const char *see)
{
    suggestion nearest = {NULL, 0};
    for (; list->name; list++) {
        if (list->run && strcmp(list->name, name) == 0)
            return list;
        if (list->run)
            suggest(&nearest, name, strlen(name), list->name);
    }
    if (nearest.word)
        complain("unknown %s '%s'; did you mean %s?", what, name, nearest.word);
    else
        complain("unknown %s '%s'; %s lists the %ss", what, name, see, what);
    return NULL;
}

static const named_command *find(const char *name) { return command_find(commands, name, "command", "nrg --help"); }

int command_is_help(const char *argument) { return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0; }

void command_print_names(const named_command *list)
{
    for (; list->name; list++)
        if (list->run)
            puts(list->name);
}

/* What may come behind the words of a command line, for completion: after a command that is not known, nothing. */
static int list_words(char **words)
{
    if (!words[0]) {
        command_print_names(commands);
        puts("help\n--help\n--version");
        return CLI_DONE;
    }
    if (strcmp(words[0], "help") == 0 && !words[1])
        command_print_names(commands);
    cli_only_list(1);
    for (int i = 0; commands[i].name; i++)
        if (strcmp(commands[i].name, words[0]) == 0)
            (void)commands[i].run(words + 1); /* refuses to do anything, having printed the list */
    cli_only_list(0);
    return CLI_DONE;
}

static int help(char **arguments)
{
    if (!arguments[0])
        return print_usage();
    if (strcmp(arguments[0], "--words") == 0)
        return list_words(arguments + 1);
    const named_command *found = find(arguments[0]);
    if (!found)
        return CLI_REFUSED;
    if (arguments[1])
        return cli_refuse("help: expected one command, got '%s' and '%s'", arguments[0], arguments[1]);
    char option[] = "--help", *only_help[] = {option, NULL};
    return found->run(only_help);
}

int nrg_command(char **arguments)
{
    if (!arguments[0])
        return cli_refuse("expected a command, got none; nrg --help lists the commands");
    if (strcmp(arguments[0], "help") == 0)
        return help(arguments + 1);
    if (command_is_help(arguments[0]) || strcmp(arguments[0], "--version") == 0) {
        if (arguments[1])
            return cli_refuse("%s takes no other arguments, got '%s'", arguments[0], arguments[1]);
        if (command_is_help(arguments[0]))
            return print_usage();
        printf("nrg %s\n", nrg_version());
        return CLI_DONE;
    }
    const named_command *found = find(arguments[0]);
    if (!found)
        return CLI_REFUSED;
    cli_set_command(found->name);
    return found->run(arguments + 1);
}
