/* The cases of nrg-bench with one build of the library, as a shared module. nrg-two-builds loads the modules of two builds.
 *
 * No struct of the library crosses this interface, so the two builds may disagree about all of them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_CASE_MODULE_H
#define NRG_BENCH_CASE_MODULE_H

#include <stddef.h>

enum { CASE_MODULE_VERSION = 1, CASE_OPERANDS = 32 };

typedef enum case_role {
    CASE_INPUT,
    CASE_OUTPUT,   /* written, and perhaps read before: its bits are compared */
    CASE_WORKSPACE /* its contents after a call do not count */
} case_role;

typedef struct case_operand {
    const char *name; /* as in the header; name and part identify an operand of a call */
    int part;
    case_role role;
    int is_fixed; /* stays in one place: its family fills it in bind() */
    int dtype, fill;
    size_t bytes; /* from its first byte to its last */
} case_operand;

typedef struct case_module {
    int version; /* CASE_MODULE_VERSION; the fields below belong to this version */
    unsigned placements;
    const char *(*library)(void); /* the version of the library */

    /* Selects a path by its name, or the best one (NULL), and lists its cases. Returns the name of the path; NULL: this build or
     * this CPU lacks it. */
    const char *(*open)(const char *path);
    size_t (*count)(void);
    const char *(*name)(size_t i);
    size_t (*bytes)(size_t i); /* that a call moves */

    /* Writes the operands that case i has. Returns their number. */
    size_t (*operands)(size_t i, case_operand operand[CASE_OPERANDS]);

    /* Memory of an operand: bytes of its slab, its contents, and where in the slab the nth operand begins. */
    size_t (*slab_bytes)(size_t bytes);
    void (*fill)(const case_operand *operand, unsigned seed, char *slab, size_t bytes);
    size_t (*place)(size_t nth, unsigned placement);

    /* Binds case i in one placement to memory, in the order of operands(). One case at a time is bound. */
    void (*bind)(size_t i, unsigned placement, char *const at[CASE_OPERANDS]);

    /* Makes one call. Returns NULL, or what the library has against it. */
    const char *(*call)(unsigned placement);
    void (*run)(unsigned placement, size_t calls);
} case_module;

#endif
