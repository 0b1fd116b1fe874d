/* tools/file_command.h: a command that reads .npy files, computes, and writes .npy files. All such commands use this order:
 *
 *     read the arguments → check them (ask) → check the output files → read the input files → compute → write all outputs or none
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_FILE_COMMAND_H
#define NRG_TOOLS_FILE_COMMAND_H

#include "../check/invoke.h"
#include "cli.h"
#include "npy/npy.h"
#include "npy/output.h"

enum { FILE_INPUTS = 9, FILE_OUTPUTS = OUTPUT_MAX, FILE_OPTIONS = 40 };

typedef struct file_call file_call;

/* The operand that a file is for. */
typedef struct file_operand {
    const char *name; /* in capitals */
    size_t dtype_at;  /* of an input that may have a dtype of its own: where the request has it; else 0 */
} file_operand;

typedef struct file_command {
    const char *name, *help;    /* --help prints a section on files and exit statuses after it */
    const cli_option *options;  /* inputs, then outputs, then all others, of which the last two are --isa and --help; no name */
    const file_operand *files;  /* of inputs and outputs */
    int inputs, outputs, count; /* of inputs and outputs, and of all */
    int operand;                /* which option an argument without one stands for */
    /* Each returns CLI_DONE, or complains and returns the exit status. ask sees the options; compute fills in the outputs that
     * were asked for. */
    int (*ask)(file_call *call);
    int (*compute)(file_call *call);
} file_command;

struct file_call {
    const file_command *command;
    void *request;                     /* the command's own */
    const char *value[FILE_OPTIONS];   /* of options: NULL where not given, itself where it takes none */
    npy_array *in, *out;               /* of all options that are files, in their order: outputs follow inputs */
    const char *operand[FILE_OPTIONS]; /* of files that are for another operand than their command says, or "": none; else NULL */
    const npy_shape *shape[FILE_OPTIONS];   /* of files whose shape the description does not tell; else NULL */
    const invoke_function *function, *then; /* of the library, and of the same structs; or NULL */
    void *part[NRG_PARTS], *workspace;
};

int file_command_run(const file_command *command, void *request, char **arguments);

/* The name of an input's or output's file, for complaints; NULL: absent. */
const char *file_in(const file_call *call, int input);
const char *file_out(const file_call *call, int which);

/* The option of this name, or -1. */
int file_option(const file_call *call, const char *name);

/* CLI_REFUSED after a complaint if the option needs, or excludes, another; else CLI_DONE. */
int file_needs(const file_call *call, int option, int other);
int file_excludes(const file_call *call, int option, int other);

/* Whether an output is wanted, from which on all are gradients. */
int file_has_gradient(const file_call *call, int which);

/* Error messages that several commands use. Each returns CLI_REFUSED. when: "", or for example " with --backward". */
int file_missing(const file_call *call, int option, const char *when);
int file_unusable(const file_call *call, int option, const char *when);
/* expected: "shape ...", or what a shape has to have. */
PRINTF_LIKE(3, 4) int file_wrong(const file_call *call, int input, const char *expected, ...);

/* beside: the file or operand that has the expected dtype, or NULL. */
int file_wrong_dtype(const file_call *call, int input, nrg_dtype expected, const char *beside);

/* CLI_DONE, or CLI_REFUSED after the sentence of the library's status and the options that were given. */
int file_answer(const file_call *call, nrg_status status);

/* Takes memory for an output: dense, of this shape. */
int file_reserve(file_call *call, int which, nrg_dtype dtype, const npy_shape *shape);

/* The input's memory becomes the output's, which has its shape and dtype. */
void file_reuse(file_call *call, int which, int input);

/* The spec of a norm by its name, which option `norm` has (the first of them where it has none), and its eps. 0 after a
 * complaint. */
int file_norm(const file_call *call, int norm, int eps, nrg_norm_spec *spec);

npy_shape file_shape(int ndim, const size_t *dims);

/* Rows and columns, or heads, rows and columns: the last two or three axes of a shape, or 1 where it has fewer; what stands
 * before them is a batch. */
typedef struct file_axes {
    size_t batch, heads, rows, columns;
} file_axes;
file_axes file_last_axes(const npy_shape *shape, int axes);

/* What rows of an input's last axis there are, of one element or more. */
int file_rows(const file_call *call, int input, size_t *rows, size_t *dim);

/* Holds the structs, and which files are given, against the description, before files are read: complains of a file
 * that the function has no operand for, and of one that it needs. */
int file_ask(const file_call *call);

/* Checks the inputs against input `first`, by the description; takes memory for outputs and a workspace; sets the operands. */
int file_bind(file_call *call, int first);

/* Calls the function, and the one after it (`then`), if there is one. */
int file_invoke(const file_call *call);

/* file_bind, then file_invoke. */
int file_run(file_call *call, int first);

/* A backward pass, which a build may be without; --backward is refused there before anything asks for it. */
#ifdef NRG_NO_BACKWARD
#define FILE_BACKWARD(function) NULL
#else
#define FILE_BACKWARD(function) (&invoke_##function)
#endif

#endif
