/* tools/commands.h: the commands. Each takes the arguments after its name (NULL ends them) and returns the exit status.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_COMMANDS_H
#define NRG_TOOLS_COMMANDS_H

/* A list of commands ends with NULL; what: for --help. One without a function is a heading there. */
typedef struct named_command {
    const char *name;
    int (*run)(char **arguments);
    const char *what;
} named_command;

/* NULL after a complaint: an unknown `what`, "command" or "kind"; `see` lists them. */
const named_command *command_find(const named_command *list, const char *name, const char *what, const char *see);

/* Whether an argument asks for help. */
int command_is_help(const char *argument);

/* Prints the names, a line each, for completion in shells. */
void command_print_names(const named_command *list);

/* Runs the command that the first argument names. */
int nrg_command(char **arguments);

int command_info(char **arguments);
int command_check(char **arguments);
int command_norm(char **arguments);
int command_channel_norm(char **arguments);
int command_glu(char **arguments);
int command_quantize(char **arguments);
int command_dequantize(char **arguments);
int command_sandwich(char **arguments);
int command_softmax(char **arguments);
int command_rope(char **arguments);
int command_qkv(char **arguments);
int command_position(char **arguments);

#endif
