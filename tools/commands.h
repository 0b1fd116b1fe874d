/* tools/commands.h: the commands. Each takes the arguments behind its name (ending with NULL) and returns the exit status.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_COMMANDS_H
#define NRG_TOOLS_COMMANDS_H

/* The command that the first argument names, or what there is instead. */
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

extern const char info_help[], check_help[], norm_help[], channel_norm_help[], glu_help[], sandwich_help[];
extern const char quantize_help[], dequantize_help[];
extern const char rope_help[], qkv_help[], position_help[], softmax_help[];

#endif
