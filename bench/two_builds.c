/* nrg-two-builds: the cases of nrg-bench with two builds of the library in one program, called alternately. Two runs of nrg-bench
 * would be two moments of a machine.
 *
 *   nrg-two-builds BEFORE.so AFTER.so [OPTION ...]     modules of case_module.c, in two files; scripts/two-builds.sh builds them
 *
 *   --path PATH        avx2, ...; the best one by default
 *   --only REGEX       cases whose names match this POSIX extended expression
 *   --seconds S        of a case (0.1). 0: compares bits only
 *   --limit X          counts cases with a speedup below X as slower (0.9)
 *   --bits-differ OP   does not compare bits of this op: KERNEL or KERNEL/OP of a case's name. Repeatable
 *   --slower FILE      runs only the cases that FILE names, if it exists, and writes the slower ones to it
 *
 * A figure is a speedup: time before / time after. Exits with 1 if bits differ.
 *
 * SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700
#include <dlfcn.h>
#include <math.h>
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_module.h"
#include "measure.h"

enum { BEFORE, AFTER, SIDES, PAGE = 4096, MOST_OPS = 32, MOST_PLACEMENTS = 16 };

static const char *const side_name[SIDES] = {"before", "after"};

typedef struct options {
    const char *path, *slower;
    int is_filtered;
    regex_t only;
    double seconds, limit;
    const char *differ[MOST_OPS];
    size_t differ_count;
} options;

typedef struct names {
    char **name;
    size_t count, room;
} names;

/* An operand of one side or both, and its memory, which both work in. */
typedef struct slot {
    const case_operand *operand;
    const case_module *module; /* whose operand this is */
    char *slab;
    size_t slab_bytes;
} slot;

/* A case that both sides have. */
typedef struct pair {
    const case_module *const *module;
    size_t index[SIDES];
    case_operand operand[SIDES][CASE_OPERANDS];
    size_t count[SIDES], slot_of[SIDES][CASE_OPERANDS];
    slot slots[2 * CASE_OPERANDS];
    size_t slot_count;
    int other_operands;
} pair;

typedef struct results {
    double *speedup;
    const char **name;
    size_t count, unequal, not_compared, not_compared_equal;
    names slower;
} results;

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "nrg-two-builds: %s: %s\n", what, why);
    exit(2);
}

static void *memory(void *p)
{
    if (!p)
        die("memory", "not enough");
    return p;
}

static void add_name(names *n, const char *name)
{
    if (n->count == n->room) {
        n->room = n->room ? 2 * n->room : 64;
        n->name = memory(realloc(n->name, n->room * sizeof *n->name));
    }
    n->name[n->count++] = memory(strdup(name));
}

static int has_name(const names *n, const char *name)
{
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->name[i], name) == 0)
            return 1;
    return 0;
}

static const case_module *load(const char *file)
{
    char *absolute = realpath(file, NULL); /* the loader searches elsewhere for a name without a slash */
    void *library = dlopen(absolute ? absolute : file, RTLD_NOW | RTLD_LOCAL);
    free(absolute);
    if (!library)
        die(file, dlerror());
    const case_module *module = dlsym(library, "bench_case_module");
    if (!module)
        die(file, "no module of cases");
    if (module->version != CASE_MODULE_VERSION || module->placements > MOST_PLACEMENTS)
        die(file, "a module of another interface");
    return module;
}

/* KERNEL or KERNEL/OP; a case's name is KERNEL/DTYPE/PATH/OP/SHAPE. */
static int is_of_op(const char *name, const char *op)
{
    const size_t kernel = strcspn(name, "/");
    if (strncmp(name, op, kernel) != 0 || (op[kernel] && op[kernel] != '/'))
        return 0;
    if (!op[kernel])
        return 1;
    const char *at = name + kernel + 1;
    for (int i = 0; i < 2; i++)
        at += strcspn(at, "/") + 1;
    const size_t length = strcspn(at, "/");
    return strncmp(at, op + kernel + 1, length) == 0 && !op[kernel + 1 + length];
}

static int may_differ(const options *o, const char *name)
{
    for (size_t i = 0; i < o->differ_count; i++)
        if (is_of_op(name, o->differ[i]))
            return 1;
    return 0;
}

/* The slot of an operand that the other side has as well; otherwise a new one. */
static size_t slot_for(pair *p, int side, const case_operand *operand)
{
    for (size_t k = 0; side == AFTER && k < p->count[BEFORE]; k++)
        if (strcmp(p->operand[BEFORE][k].name, operand->name) == 0 && p->operand[BEFORE][k].part == operand->part) {
            slot *s = &p->slots[p->slot_of[BEFORE][k]];
            p->other_operands |= operand->role != CASE_WORKSPACE && s->operand->bytes != operand->bytes;
            if (operand->bytes > s->operand->bytes)
                *s = (slot){.operand = operand, .module = p->module[side]};
            return p->slot_of[BEFORE][k];
        }
    p->other_operands |= side == AFTER && operand->role != CASE_WORKSPACE;
    p->slots[p->slot_count] = (slot){.operand = operand, .module = p->module[side]};
    return p->slot_count++;
}

static void pair_make(pair *p)
{
    p->slot_count = 0;
    p->other_operands = 0;
    size_t tensors[SIDES] = {0, 0};
    for (int side = 0; side < SIDES; side++) {
        p->count[side] = p->module[side]->operands(p->index[side], p->operand[side]);
        for (size_t i = 0; i < p->count[side]; i++) {
            p->slot_of[side][i] = slot_for(p, side, &p->operand[side][i]);
            tensors[side] += p->operand[side][i].role != CASE_WORKSPACE;
        }
    }
    p->other_operands |= tensors[BEFORE] != tensors[AFTER];
    for (size_t k = 0; k < p->slot_count; k++) {
        slot *s = &p->slots[k];
        s->slab_bytes = s->module->slab_bytes(s->operand->bytes);
        s->slab = memory(aligned_alloc(PAGE, s->slab_bytes));
    }
}

static void pair_free(pair *p)
{
    for (size_t k = 0; k < p->slot_count; k++)
        free(p->slots[k].slab);
}

static void bind(const pair *p, int side)
{
    for (unsigned placement = 0; placement < p->module[side]->placements; placement++) {
        char *at[CASE_OPERANDS];
        for (size_t i = 0; i < p->count[side]; i++) {
            const size_t k = p->slot_of[side][i];
            at[i] = p->slots[k].slab + p->module[AFTER]->place(k, p->operand[side][i].is_fixed ? 0 : placement);
        }
        p->module[side]->bind(p->index[side], placement, at);
    }
}

/* Runs both sides once, from the same contents of memory. Returns whether their outputs are equal. */
static int have_equal_bits(pair *p)
{
    char *result[2 * CASE_OPERANDS] = {NULL};
    int equal = !p->other_operands;
    for (int side = 0; side < SIDES; side++) {
        for (size_t k = 0; k < p->slot_count; k++)
            p->slots[k].module->fill(p->slots[k].operand, 12345u + 777u * (unsigned)k, p->slots[k].slab, p->slots[k].slab_bytes);
        bind(p, side);
        const char *wrong = p->module[side]->call(0);
        if (wrong)
            die(p->module[side]->name(p->index[side]), wrong);
        for (size_t k = 0; k < p->slot_count; k++) {
            const slot *s = &p->slots[k];
            if (s->operand->role != CASE_OUTPUT)
                continue;
            if (side == BEFORE) {
                result[k] = memory(malloc(s->slab_bytes));
                memcpy(result[k], s->slab, s->slab_bytes);
            } else {
                equal &= memcmp(result[k], s->slab, s->slab_bytes) == 0;
                free(result[k]);
            }
        }
    }
    return equal;
}

static void run(void *ctx, unsigned placement, size_t calls) { ((const case_module *)ctx)->run(placement, calls); }

static void print_columns(const char *name, const double ns[SIDES], double speedup, const char *remark)
{
    printf("%-56s", name);
    if (speedup > 0)
        printf("  %11.1f  %11.1f  %6.3f", ns[BEFORE], ns[AFTER], speedup);
    printf("%s%s\n", *remark ? "  " : "", remark);
    fflush(stdout);
}

static void line(pair *p, const options *o, results *r)
{
    const char *name = p->module[AFTER]->name(p->index[AFTER]);
    double ns[SIDES] = {0, 0}, speedup = 0;
    pair_make(p);
    const int equal = have_equal_bits(p), differ = may_differ(o, name);
    r->unequal += !equal && !differ;
    r->not_compared += differ;
    r->not_compared_equal += differ && equal;
    if (o->seconds > 0) {
        bench_contender c[SIDES];
        for (int side = 0; side < SIDES; side++) {
            const union {
                const case_module *from;
                void *to;
            } module = {p->module[side]};
            c[side] = (bench_contender){.run = run, .ctx = module.to};
        }
        bench_measure(c, SIDES, o->seconds, p->module[AFTER]->bytes(p->index[AFTER]));
        for (int side = 0; side < SIDES; side++)
            ns[side] = c[side].ns;
        speedup = bench_ratio(&c[BEFORE], &c[AFTER]);
        if (speedup < o->limit)
            add_name(&r->slower, name);
    }
    pair_free(p);
    r->speedup[r->count] = speedup;
    r->name[r->count++] = name;
    print_columns(name, ns, speedup,
                  equal               ? ""
                  : p->other_operands ? "other operands"
                  : differ            ? "other bits, as expected"
                                      : "OTHER BITS");
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_summary(results *r, const options *o)
{
    if (o->seconds > 0 && r->count) {
        double logs = 0;
        size_t worst = 0, best = 0;
        for (size_t i = 0; i < r->count; i++) {
            logs += log(r->speedup[i]);
            worst = r->speedup[i] < r->speedup[worst] ? i : worst;
            best = r->speedup[i] > r->speedup[best] ? i : best;
        }
        printf("worst  %.3f  %s\nbest   %.3f  %s\n", r->speedup[worst], r->name[worst], r->speedup[best], r->name[best]);
        qsort(r->speedup, r->count, sizeof *r->speedup, by_value);
        const double median = (r->speedup[(r->count - 1) / 2] + r->speedup[r->count / 2]) / 2;
        printf("%zu cases: geometric mean %.3f, median %.3f, %zu below %g\n", r->count, exp(logs / (double)r->count), median,
               r->slower.count, o->limit);
    }
    printf("%zu of %zu cases have other bits", r->unequal, r->count - r->not_compared);
    if (r->not_compared)
        printf("; not compared: %zu, of which %zu have the same bits", r->not_compared, r->not_compared_equal);
    putchar('\n');
}

static double number(const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0))
        die(text, "not a number");
    return value;
}

static void parse(options *o, char **argv)
{
    *o = (options){.seconds = 0.1, .limit = 0.9};
    for (; *argv; argv += 2) {
        const char *option = argv[0], *value = argv[1];
        if (!value)
            die(option, "no such option, or no value");
        if (strcmp(option, "--path") == 0)
            o->path = value;
        else if (strcmp(option, "--slower") == 0)
            o->slower = value;
        else if (strcmp(option, "--seconds") == 0)
            o->seconds = number(value);
        else if (strcmp(option, "--limit") == 0)
            o->limit = number(value);
        else if (strcmp(option, "--bits-differ") == 0 && o->differ_count < MOST_OPS)
            o->differ[o->differ_count++] = value;
        else if (strcmp(option, "--only") == 0 && !o->is_filtered) {
            if (regcomp(&o->only, value, REG_EXTENDED | REG_NOSUB) != 0)
                die(value, "not a regular expression");
            o->is_filtered = 1;
        } else
            die(option, "no such option");
    }
}

/* The names in the file; 0: there is no file. */
static int read_names(names *n, const char *file)
{
    FILE *f = file ? fopen(file, "r") : NULL;
    char name[256];
    while (f && fgets(name, sizeof name, f)) {
        name[strcspn(name, "\n")] = '\0';
        add_name(n, name);
    }
    if (f)
        fclose(f);
    return f != NULL;
}

static void write_names(const names *n, const char *file)
{
    FILE *f = fopen(file, "w");
    if (!f)
        die(file, "cannot be written");
    for (size_t i = 0; i < n->count; i++)
        fprintf(f, "%s\n", n->name[i]);
    if (fclose(f) != 0)
        die(file, "cannot be written");
}

typedef struct choice {
    const options *options;
    int has_names;
    names names;
} choice;

static int is_chosen(const choice *c, const char *name)
{
    return (!c->options->is_filtered || regexec(&c->options->only, name, 0, NULL, 0) == 0) &&
           (!c->has_names || has_name(&c->names, name));
}

/* Prints the cases that one side lacks. Returns their number. */
static size_t print_lacking(const case_module *const *module, const choice *c, int side)
{
    const case_module *own = module[side], *other = module[!side];
    size_t lacking = 0;
    for (size_t i = 0, k; i < own->count(); i++) {
        for (k = 0; k < other->count() && strcmp(own->name(i), other->name(k)) != 0; k++)
            ;
        if (k == other->count() && is_chosen(c, own->name(i))) {
            printf("%-56s  only %s\n", own->name(i), side_name[side]);
            lacking++;
        }
    }
    return lacking;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        die("usage", "nrg-two-builds BEFORE.so AFTER.so [OPTION ...]");
    options o;
    parse(&o, argv + 3);
    choice chosen = {.options = &o};
    chosen.has_names = read_names(&chosen.names, o.slower);

    const case_module *module[SIDES];
    const char *path[SIDES];
    for (int side = 0; side < SIDES; side++) {
        module[side] = load(argv[1 + side]);
        path[side] = module[side]->open(o.path);
        if (!path[side])
            die(argv[1 + side], "this build or this CPU lacks the path");
    }
    if (module[BEFORE] == module[AFTER])
        die(argv[2], "the same module twice: give two files");
    if (strcmp(path[BEFORE], path[AFTER]) != 0)
        die(argv[2], "has another best path: give --path");

    const size_t most = module[AFTER]->count();
    results r = {.speedup = memory(calloc(most, sizeof *r.speedup)), .name = memory(calloc(most, sizeof *r.name))};
    printf("%s: before %s, after %s\n%-56s", path[BEFORE], module[BEFORE]->library(), module[AFTER]->library(), "");
    if (o.seconds > 0)
        printf("  %11s  %11s  %s", "before, ns", "after, ns", "speedup");
    putchar('\n');
    static pair p;
    p.module = module;
    for (size_t i = 0; i < most; i++) {
        if (!is_chosen(&chosen, module[AFTER]->name(i)))
            continue;
        for (size_t k = 0; k < module[BEFORE]->count(); k++)
            if (strcmp(module[BEFORE]->name(k), module[AFTER]->name(i)) == 0) {
                p.index[BEFORE] = k;
                p.index[AFTER] = i;
                line(&p, &o, &r);
                break;
            }
    }
    for (int side = 0; side < SIDES; side++) {
        const size_t lacking = print_lacking(module, &chosen, side);
        if (lacking)
            printf("%zu cases only %s\n", lacking, side_name[side]);
    }
    if (!r.count)
        die("cases", "none is chosen");
    print_summary(&r, &o);
    if (o.slower)
        write_names(&r.slower, o.slower);
    return r.unequal != 0;
}
