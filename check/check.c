/* nrg check: compares every path with the scalar path, bit by bit.
 *
 * The operands of a case are in one block of memory. The scalar path works on one copy of it, the path under test on another.
 * Then both blocks must be equal, inputs and gaps included. Any NaN equals any NaN.
 *
 * SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nrg/nrg.h>

#include "../src/paths.h"
#include "../tools/cli.h"
#include "../tools/commands.h"
#include "../tools/progress.h"
#include "../tools/suggest.h"
#include "../tools/system.h"
#include "sweep.h"
#include "hash.h"

#if !defined(SIGBUS)
#define SIGBUS SIGSEGV /* Windows, which has no other */
#endif

static const char check_help[] =
    "usage: nrg check [--quick | --full] [--isa NAME] [--op NAME]\n"
    "       nrg check --hash [--cases] [--quick | --full] [--isa NAME] [--op NAME]\n"
    "\n"
    "Runs every kernel on every path that this CPU supports, and compares every byte with the scalar path.\n"
    "The cases vary lengths, dtypes, options, layouts, strides, alignments, in-place calls, shares and store\n"
    "kinds. Inputs reach from subnormal numbers to NaN.\n"
    "\n"
    "example: check this machine in a few seconds\n"
    "  nrg check --quick\n"
    "\n"
    "  --quick      fewer cases, for slow devices\n"
    "  --full       more cases: minutes\n"
    "  --isa NAME   only this path (scalar, avx2, avx512, neon, generic)\n"
    "  --op NAME    only this op; the report lists the ops\n"
    "  --hash       print a hash of the results of every op, dtype and grade, and compare nothing. It uses\n"
    "               the active path or --isa. The hashes are equal on every path and machine\n"
    "  --cases      with --hash: print the hash of every case too\n"
    "\n"
    "The first line has a digest of all results. It is equal on every machine for the same version of nrg,\n"
    "the same number of cases and the same ops.\n"
    "\n"
    "exit status: 0 no path differs; 1 a path differs, or no memory; 2 wrong arguments\n";

/* Copies of a case's memory, aligned to 64 bytes: as it was filled, as the scalar path left it, as the path left it. */
enum { FILLED, EXPECTED, RESULT, COPIES };

typedef struct memory {
    unsigned char *copies[COPIES];
    size_t room;
} memory;

static void release(memory *m)
{
    for (int i = 0; i < COPIES; i++) {
        system_free(m->copies[i]);
        m->copies[i] = NULL;
    }
    m->room = 0;
}

static int reserve(memory *m, size_t bytes)
{
    if (bytes <= m->room)
        return 1;
    release(m);
    size_t room = (bytes + bytes / 4 + 63) / 64 * 64;
    for (int i = 0; i < COPIES; i++)
        if (!(m->copies[i] = system_allocate(room))) {
            release(m);
            return 0;
        }
    m->room = room;
    return 1;
}

/* Scratch has no result in it. */
static void forget_scratch(const sweep_case *c, unsigned char *block)
{
    for (int which = SWEEP_FIRST_SCRATCH; which < SWEEP_OPERANDS; which++)
        if (c->operands[which].rows)
            memset(block + c->operands[which].offset, 0, c->operands[which].rows * c->operands[which].stride);
}

static void unify_nans(const sweep_case *c, unsigned char *block)
{
    for (int which = SWEEP_FIRST_OUTPUT; which < SWEEP_FIRST_SCRATCH; which++)
        sweep_unify_nans(&c->operands[which], block);
}

/* What is known about a path after some cases; the first differences in words. */
enum { COMPLAINTS = 3, COMPLAINT_ROOM = SWEEP_TEXT_ROOM + 128 };

typedef struct tally {
    uint64_t cases, failed;
    char complaints[COMPLAINTS][COMPLAINT_ROOM];
} tally;

/* Finds the first byte that differs and says whose it is. */
static void describe_difference(const sweep_case *c, const memory *m, char *text)
{
    const size_t room = COMPLAINT_ROOM - SWEEP_TEXT_ROOM;
    sweep_describe(c, text);
    text += strlen(text);
    for (int which = SWEEP_FIRST_SCRATCH - 1; which >= 0; which--) {
        const sweep_operand *operand = &c->operands[which];
        int size = (int)sweep_type_size(operand->type);
        for (size_t row = 0; row < operand->rows; row++)
            for (size_t i = 0; i < operand->length; i++) {
                size_t at = sweep_row(operand, row) + i * (size_t)size;
                uint64_t expected = sweep_load(operand->type, m->copies[EXPECTED] + at);
                uint64_t result = sweep_load(operand->type, m->copies[RESULT] + at);
                if (expected == result)
                    continue;
                snprintf(text, room, ": %s[%zu][%zu] is 0x%0*llx, scalar has 0x%0*llx", sweep_operand_name(c, which), row, i,
                         size * 2, (unsigned long long)result, size * 2, (unsigned long long)expected);
                return;
            }
    }
    for (size_t at = 0; at < c->bytes; at++)
        if (m->copies[EXPECTED][at] != m->copies[RESULT][at]) {
            snprintf(text, room, ": a byte of no operand has been written, at %zu of %zu", at, c->bytes);
            return;
        }
}

/* FNV-1a over 8 bytes at a time: blocks are multiples of 64. */
static uint64_t digest(uint64_t hash, const unsigned char *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word;
        memcpy(&word, block + i, sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* What to say if a path dies of a signal, an illegal instruction above all. */
static char last_words[128];

static void on_death(int signal_number)
{
    system_write_stderr(last_words, strlen(last_words));
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static nrg_status run_on(nrg_isa isa, const sweep_case *c, unsigned char *block)
{
    snprintf(last_words, sizeof last_words, "nrg check: FAIL: the %s path died in case %llu\n", nrg_isa_name(isa),
             (unsigned long long)c->number);
    nrg_status status = nrg_isa_set(isa);
    if (status == NRG_OK)
        status = sweep_run(c, block);
    forget_scratch(c, block);
    return status;
}

static nrg_status make_expected(const sweep_case *c, const memory *m)
{
    const sweep_case plain = sweep_plain(c);
    sweep_fill(c, m->copies[FILLED]);
    memcpy(m->copies[EXPECTED], m->copies[FILLED], c->bytes);
    nrg_status status = run_on(NRG_ISA_SCALAR, &plain, m->copies[EXPECTED]);
    unify_nans(c, m->copies[EXPECTED]);
    return status;
}

/* An output the reference has left as it was filled, -1 if none. A kernel that does nothing would equal any other that does. */
static int find_unwritten(const sweep_case *c, const memory *m)
{
    for (int which = SWEEP_FIRST_OUTPUT; which < SWEEP_FIRST_SCRATCH; which++) {
        const sweep_operand *out = &c->operands[which];
        size_t size = out->length * sweep_type_size(out->type);
        int is_in_place = 0;
        for (int i = 0; i < SWEEP_OPERANDS; i++)
            is_in_place |= i != which && c->operands[i].rows && c->operands[i].offset == out->offset;
        /* fewer bytes may be a result by chance; and nothing may be what there is to add */
        if (size < 8 || out->may_stay || is_in_place || !c->rows)
            continue;
        for (size_t row = 0; row < out->rows; row++) {
            size_t at = sweep_row(out, row);
            if (memcmp(m->copies[EXPECTED] + at, m->copies[FILLED] + at, size) == 0)
                return which;
        }
    }
    return -1;
}

/* A case on one path, against that. */
static nrg_status check_path(nrg_isa isa, const sweep_case *c, const memory *m, tally *path)
{
    /* the reference itself: only what makes it another call */
    if (isa == NRG_ISA_SCALAR && c->shares == 1 && c->reduce_shares == 1 && !c->saved && !c->fused)
        return NRG_OK;
    memcpy(m->copies[RESULT], m->copies[FILLED], c->bytes);
    nrg_status status = run_on(isa, c, m->copies[RESULT]);
    if (status != NRG_OK)
        return status;
    path->cases++;
    if (memcmp(m->copies[EXPECTED], m->copies[RESULT], c->bytes) == 0)
        return NRG_OK;
    unify_nans(c, m->copies[RESULT]);
    if (memcmp(m->copies[EXPECTED], m->copies[RESULT], c->bytes) != 0) {
        if (path->failed < COMPLAINTS)
            describe_difference(c, m, path->complaints[path->failed]);
        path->failed++;
    }
    return NRG_OK;
}

static int complain_of_case(const sweep_case *c, const char *before, const char *word, const char *after)
{
    char text[SWEEP_TEXT_ROOM];
    sweep_describe(c, text);
    return cli_fail("FAIL: %s%s%s: %s", before, word, after, text);
}

enum {
    KERNELS = SWEEP_EXACT_KERNELS /* at most */
#define NRG_KERNEL(family, op, job) +3
#include "../src/kernels.def"
#undef NRG_KERNEL
};

typedef struct sweep_result {
    tally paths[NRG_ISA_COUNT];
    uint64_t cases, bytes, digest;
    uint64_t kernel_cases[KERNELS];
} sweep_result;

static int is_checked(int isa, int only) { return nrg_isa_supported((nrg_isa)isa) && (only < 0 || isa == only); }

/* The scalar path takes as long as all others together, and on the quick level repeats one case in three only. */
static int is_left_out(sweep_level level, uint64_t number) { return level == SWEEP_QUICK && number % 3 != 0; }

static int is_asked_for(int kernel, const char *op) { return !op || strcmp(sweep_kernel_op(kernel), op) == 0; }

/* All cases on all paths; only >= 0: on one; op not NULL: of one operation. */
static int sweep(sweep_level level, int only, const char *op, memory *m, sweep_result *result)
{
    const uint64_t all = sweep_first(level, sweep_kernels);
    sweep_case c;
    for (uint64_t number = 0; sweep_make(level, number, &c); number++) {
        progress_part(number, all);
        if (!is_asked_for(c.kernel, op))
            continue;
        if (!reserve(m, c.bytes))
            return cli_fail("no memory for %zu bytes", c.bytes);
        nrg_status status = make_expected(&c, m);
        for (int i = 0; i < NRG_ISA_COUNT && status == NRG_OK; i++)
            if (is_checked(i, only) && !(i == NRG_ISA_SCALAR && is_left_out(level, number)))
                status = check_path((nrg_isa)i, &c, m, &result->paths[i]);
        int unwritten = status == NRG_OK ? find_unwritten(&c, m) : -1;
        if (status != NRG_OK)
            return complain_of_case(&c, "the library refuses a case: ", nrg_status_string(status), "");
        if (unwritten >= 0)
            return complain_of_case(&c, "scalar leaves ", sweep_operand_name(&c, unwritten), " unwritten");
        result->cases++;
        result->kernel_cases[c.kernel]++;
        result->bytes += c.bytes;
        result->digest = digest(result->digest, m->copies[EXPECTED], c.bytes);
    }
    for (int i = 0; i < sweep_kernels; i++)
        if (!result->kernel_cases[i] && is_asked_for(i, op))
            return cli_fail("FAIL: no case runs %s_%s%s", sweep_kernel_op(i), nrg_dtype_name(sweep_kernel_dtype(i)),
                            sweep_kernel_grade(i));
    return CLI_DONE;
}

static void print_path(nrg_isa isa, const tally *path)
{
    printf("%-7s ", nrg_isa_name(isa));
    if (path->failed) {
        printf("FAIL: %llu of %llu cases differ from scalar; the first:\n", (unsigned long long)path->failed,
               (unsigned long long)path->cases);
        for (uint64_t i = 0; i < COMPLAINTS && i < path->failed; i++)
            printf("        %s\n", path->complaints[i]);
    } else if (isa == NRG_ISA_SCALAR) {
        printf("pass: %llu cases in shares, fused or with saved statistics, all bit-identical\n",
               (unsigned long long)path->cases);
    } else {
        printf("pass: %llu cases, all bit-identical to scalar\n", (unsigned long long)path->cases);
    }
}

/* How many cases there were, a line for each op. */
static void print_kernels(const sweep_result *result)
{
    const char *last = NULL;
    for (int i = 0; i < sweep_kernels; i++) {
        if (!result->kernel_cases[i])
            continue; /* another operation was asked for */
        int is_new = !last || strcmp(sweep_kernel_op(i), last) != 0;
        if (is_new)
            printf("%s  %-23s", last ? "\n" : "", sweep_kernel_op(i));
        last = sweep_kernel_op(i);
        printf("%s%s%s %llu", is_new ? " " : ", ", nrg_dtype_name(sweep_kernel_dtype(i)), sweep_kernel_grade(i),
               (unsigned long long)result->kernel_cases[i]);
    }
    printf("\n");
}

/* Prints a line for every path. Returns the exit status. */
static int report(int only, const sweep_result *result)
{
    int passed = 0, failed = 0, skipped = 0, others = 0;
    if (nrg_fp_environment() != 0)
        printf("floating point: %s\n", nrg_fp_environment_string(nrg_fp_environment()));
    printf("%llu cases, %llu MB of operands; digest of the scalar results %016llx\n", (unsigned long long)result->cases,
           (unsigned long long)(result->bytes / 1000000), (unsigned long long)result->digest);
    print_kernels(result);
    for (int i = 0; i < NRG_ISA_COUNT; i++) {
        nrg_isa isa = (nrg_isa)i;
        const char *why = only >= 0 && i != only    ? "not selected by --isa"
                          : !nrg_isa_built(isa)     ? "not in this build"
                          : !nrg_isa_supported(isa) ? "this CPU or its operating system does not support it (nrg info)"
                                                    : NULL;
        if (why) {
            printf("%-7s SKIP: %s\n", nrg_isa_name(isa), why);
            skipped++;
            continue;
        }
        print_path(isa, &result->paths[i]);
        others += isa != NRG_ISA_SCALAR;
        passed += result->paths[i].failed == 0;
        failed += result->paths[i].failed != 0;
    }
    if (!others && only < 0)
        printf("only the scalar path runs here: nothing to compare it with\n");
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? CLI_FAILED : CLI_DONE;
}

static int check_paths(sweep_level level, int only, const char *op)
{
    static const int deaths[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE};
    static sweep_result result;
    memory m = {{NULL}, 0};
    result.digest = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++)
        signal(deaths[i], on_death);
    progress_begin("check");
    progress_step("comparing", "");
    int status = sweep(level, only, op, &m, &result);
    progress_end();
    release(&m);
    return status == CLI_DONE ? report(only, &result) : status;
}

/* One share at a time and in the layout of the case, on one path: the results, and nothing else. */
static int hash_case(nrg_isa isa, const sweep_case *c, memory *m, uint64_t *hash)
{
    if (!reserve(m, c->bytes))
        return cli_fail("no memory for %zu bytes", c->bytes);
    sweep_fill(c, m->copies[RESULT]);
    const nrg_status status = run_on(isa, c, m->copies[RESULT]);
    if (status != NRG_OK)
        return complain_of_case(c, "the library refuses a case: ", nrg_status_string(status), "");
    *hash = sweep_hash(c, m->copies[RESULT], *hash);
    return CLI_DONE;
}

/* A line for each kernel: its name, cases and hash. By case: one before it for each of its cases. */
static int print_hashes(sweep_level level, int only, const char *op, int by_case)
{
    memory m = {{NULL}, 0};
    const nrg_isa isa = only >= 0 ? (nrg_isa)only : nrg_isa_active();
    const uint64_t all = sweep_first(level, sweep_kernels);
    int status = CLI_DONE;
    progress_begin("check");
    progress_step("hashing", "");
    for (int kernel = 0; kernel < sweep_kernels && status == CLI_DONE && !ferror(stdout); kernel++) {
        const char *name = sweep_kernel_op(kernel), *dtype = nrg_dtype_name(sweep_kernel_dtype(kernel)),
                   *grade = sweep_kernel_grade(kernel);
        const uint64_t first = sweep_first(level, kernel), end = sweep_first(level, kernel + 1);
        uint64_t hash = SWEEP_HASH_START;
        if (first == end || !is_asked_for(kernel, op))
            continue;
        for (uint64_t n = first; n < end && status == CLI_DONE; n++) {
            sweep_case c;
            uint64_t own = SWEEP_HASH_START;
            progress_part(n, all);
            sweep_make(level, n, &c);
            status = hash_case(isa, &c, &m, &own);
            hash = (hash ^ own) * 0x100000001b3u;
            if (by_case) {
                progress_wipe();
                printf("%s_%s%s#%llu %016llx\n", name, dtype, grade, (unsigned long long)c.n, (unsigned long long)own);
            }
        }
        if (status == CLI_DONE) {
            progress_wipe();
            printf("%s_%s%s %llu %016llx\n", name, dtype, grade, (unsigned long long)(end - first), (unsigned long long)hash);
            fflush(stdout);
        }
    }
    progress_end();
    release(&m);
    return status;
}

/* 0 after a complaint. */
static int find_op(const char *name)
{
    suggestion nearest = {NULL, 0};
    for (int i = 0; i < sweep_kernels; i++) {
        if (is_asked_for(i, name))
            return 1;
        suggest(&nearest, name, strlen(name), sweep_kernel_op(i));
    }
    if (nearest.word)
        complain("--op: expected an op of nrg check --quick, got '%s'; did you mean %s?", name, nearest.word);
    else
        complain("--op: expected an op of nrg check --quick, got '%s'", name);
    return 0;
}

int command_check(char **arguments)
{
    enum { QUICK, FULL, ISA, OP, HASH, CASES, HELP, OPTIONS };
    static const cli_option options[] = {{"quick", 0, 0}, {"full", 0, 0},  {"isa", 0, 1},    {"op", 0, 1},
                                         {"hash", 0, 0},  {"cases", 0, 0}, {"help", 'h', 0}, {NULL, 0, 0}};
    const char *value[OPTIONS] = {NULL};
    nrg_isa isa = NRG_ISA_SCALAR;
    const int status = cli_collect(arguments, options, CLI_NO_OPERAND, value);
    if (status == CLI_HELP_GIVEN)
        fputs(check_help, stdout);
    if (status != CLI_DONE)
        return status == CLI_HELP_GIVEN ? CLI_DONE : status;
    if ((value[ISA] && !cli_isa(value[ISA], &isa)) || (value[OP] && !find_op(value[OP])))
        return CLI_REFUSED;
    if (value[CASES] && !value[HASH])
        return cli_refuse("--cases needs --hash");
    const sweep_level level = value[FULL] ? SWEEP_FULL : value[QUICK] ? SWEEP_QUICK : SWEEP_DEFAULT;
    const int only = value[ISA] ? (int)isa : -1;
    return value[HASH] ? print_hashes(level, only, value[OP], value[CASES] != NULL) : check_paths(level, only, value[OP]);
}
