/* The options of nrg-bench's own modes.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tools/suggest.h"
#include "args.h"

void bench_print_help(void)
{
    fputs(
        "nrg-bench: measures the kernels of nrg. It compares each with the memory roofline (the fastest loop that moves the "
        "same\n"
        "bytes) and with the plain C baseline (the obvious loop, built with -O3 -ffast-math).\n"
        "\n"
        "  nrg-bench [--benchmark_...]   all cases, through Google Benchmark; Time is the median of interleaved batches;\n"
        "                                --benchmark_min_time=<seconds> is the time for a case (0.3)\n"
        "\n"
        "Example: RMSNorm of 1 and 512 rows of 4096 elements, on every path of this CPU:\n"
        "  nrg-bench --table --kernel norm_forward --op rms --shape 1x4096,512x4096\n"
        "\n"
        "Tables:\n"
        "  --table      by path, op and shape: ns a call, elements a ns, roofline fraction, speedup over the plain C baseline;\n"
        "               activations: speedup over SLEEF, errors in ulps\n"
        "  --ratios     LayerNorm against RMSNorm, 16-bit types against f32, groups against full rows, exact against fast\n"
        "  --gates      norms with an activation against the activation only\n"
        "  --threads    two threads against one\n"
        "  --stores     ordinary against non-temporal stores, by working set\n"
        "  --short      channel norms of few positions (height times width: 1 to 64): GB/s and roofline fraction\n"
        "  --instances  what the constant loops of row norms gain over the more general ones, case by case\n"
        "  --scan SEED CASES [--only N]\n"
        "               random ops, types, shapes, offsets and gaps between rows: time against rows that suit vectors, and\n"
        "               against AVX2; --only: one of these cases; 2000 cases take three minutes\n"
        "  --rivals     compares the results of the plain C baseline and SLEEF with the kernels' results; fails if they differ\n"
        "  --errors     errors of the results in ulps; fails if a formula must be wrong\n"
        "  --selfcheck  a loop against itself: the noise of this machine now; fails beyond 5 %\n"
        "Reports:\n"
        "  --report DIR [--seconds-total N]\n"
        "               all cases, for a quarter of an hour (900 s): writes DIR/report.json and DIR/report.html\n"
        "  --compare A.json B.json [--worse-than RATIO]\n"
        "               two reports, case by case; fails if the time of a case in B is more than RATIO times that in A\n"
        "Options of tables and reports:\n"
        "  --quick      a few shapes and ops, at most half a minute\n"
        "  --markdown   tables as Markdown\n"
        "  --kernel norm_forward,rope  ops of src/kernels.def, or all\n"
        "               (default: norm_forward, in --table without gates; --threads: all; --short: both channel_norm)\n"
        "  --dtype f32|f16|bf16|all (f32; --gates: f32,bf16), --path avx2,scalar, --op rms,add+rms, --shape 1x4096\n"
        "               (channel norms: --op group_silu,batch_train-nhwc, --shape 2x640x32x32: n x c x h x w)\n"
        "  --seconds T  time for a line (0.3)\n"
        "\n"
        "For stable figures, pin it to one CPU of an idle machine: taskset -c 1 nrg-bench --table\n",
        stdout);
}

/* An option that takes a value, as "--name value" or "--name=value"; another option is none. */
static int value_of(const char *name, int argc, char **argv, int *i, const char **value)
{
    size_t length = strlen(name);
    if (strncmp(argv[*i], name, length) != 0)
        return 0;
    if (argv[*i][length] == '=') {
        *value = argv[*i] + length + 1;
        return 1;
    }
    if (argv[*i][length] != '\0' || *i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0)
        return 0;
    *value = argv[++*i];
    return 1;
}

/* 0 after an error message, unless it is a number above 0 and below `most`. */
static int read_number(const char *name, const char *text, double most, double *value)
{
    char *end;
    if (!text)
        return 1;
    *value = strtod(text, &end);
    if (!*end && *value > 0 && *value < most)
        return 1;
    fprintf(stderr, "nrg-bench: %s: expected a number above 0 and below %.0f, got '%s'\n", name, most, text);
    return 0;
}

/* 0 after an error message, unless it is a whole number above 0. */
static int read_count(const char *name, const char *text, size_t *value)
{
    char *end;
    if (!text)
        return 1;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    *value = (size_t)number;
    if (!*end && text[0] != '-' && number && number <= SIZE_MAX && !errno)
        return 1;
    fprintf(stderr, "nrg-bench: %s: expected a whole number above 0, got '%s'\n", name, text);
    return 0;
}

/* Options that Google Benchmark reads. */
static int is_of_google(const char *argument)
{
    return strncmp(argument, "--benchmark", 11) == 0 || strncmp(argument, "--v=", 4) == 0 || strcmp(argument, "--help") == 0 ||
           strcmp(argument, "--version") == 0;
}

int bench_read_args(bench_args *args, int argc, char **argv)
{
    const char *seconds = NULL, *total = NULL, *worse_than = NULL, *seed = NULL, *cases = NULL, *only = NULL;
    memset(args, 0, sizeof *args);
    const struct {
        const char *name;
        int *flag;
    } flags[] = {{"--table", &args->table},         {"--ratios", &args->ratios},     {"--gates", &args->gates},
                 {"--threads", &args->threads},     {"--stores", &args->stores},     {"--short", &args->short_sets},
                 {"--selfcheck", &args->selfcheck}, {"--rivals", &args->rivals},     {"--errors", &args->errors},
                 {"--quick", &args->quick},         {"--markdown", &args->markdown}, {"--instances", &args->instances}};
    const struct {
        const char *name;
        const char **value;
    } values[] = {
        {"--dtype", &args->dtype},   {"--path", &args->path},       {"--kernel", &args->kernel}, {"--op", &args->op},
        {"--shape", &args->shape},   {"--seconds", &seconds},       {"--report", &args->report}, {"--compare", &args->compare},
        {"--seconds-total", &total}, {"--worse-than", &worse_than}, {"--scan", &seed},           {"--only", &only}};

    /* for completion in shells; then there is no mode to run */
    if (argc == 2 && strcmp(argv[1], "--words") == 0) {
        for (size_t f = 0; f < sizeof flags / sizeof flags[0]; f++)
            puts(flags[f].name);
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
            puts(values[v].name);
        return 1;
    }

    const char *stranger = NULL;
    for (int i = 1; i < argc; i++) {
        int known = 0;
        for (size_t f = 0; f < sizeof flags / sizeof flags[0] && !known; f++)
            if (strcmp(argv[i], flags[f].name) == 0)
                known = *flags[f].flag = 1;
        for (size_t v = 0; v < sizeof values / sizeof values[0] && !known; v++)
            known = value_of(values[v].name, argc, argv, &i, values[v].value);
        if (!known && args->compare && !args->compare_to && argv[i][0] != '-')
            known = (args->compare_to = argv[i]) != NULL;
        if (!known && seed && !cases && argv[i][0] != '-')
            known = (cases = argv[i]) != NULL;
        if (!known && !stranger)
            stranger = argv[i];
    }
    const int has_mode = args->table || args->ratios || args->gates || args->threads || args->stores || args->short_sets ||
                         args->instances || args->selfcheck || args->rivals || args->errors || seed || args->report ||
                         args->compare;
    if (stranger && (has_mode || !is_of_google(stranger))) {
        suggestion nearest = {NULL, 0};
        const char *equals = strchr(stranger, '=');
        const size_t length = equals ? (size_t)(equals - stranger) : strlen(stranger);
        for (size_t f = 0; f < sizeof flags / sizeof flags[0]; f++)
            suggest(&nearest, stranger, length, flags[f].name);
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
            suggest(&nearest, stranger, length, values[v].name);
        if (nearest.word && strcmp(nearest.word, stranger) == 0)
            fprintf(stderr, "nrg-bench: %s: expected a value, got none\n", stranger);
        else if (nearest.word)
            fprintf(stderr, "nrg-bench: unknown option %s; did you mean %s?\n", stranger, nearest.word);
        else
            fprintf(stderr, "nrg-bench: unknown option %s; see nrg-bench --help\n", stranger);
        return -1;
    }
    if (!has_mode) {
        if (argc > 1 && (args->quick || args->markdown || args->dtype || args->path || args->kernel || args->op || args->shape ||
                         seconds || total || worse_than || only)) {
            fputs("nrg-bench: these options need a table or a report (--table, --report, ...); see nrg-bench --help\n", stderr);
            return -1;
        }
        return 0;
    }
    if (args->compare && !args->compare_to) {
        fputs("nrg-bench: --compare: expected two reports, got one\n", stderr);
        return -1;
    }
    args->scan = seed != NULL;
    if (args->scan && !cases) {
        fputs("nrg-bench: --scan: expected a seed and a number of cases, got only a seed\n", stderr);
        return -1;
    }
    if (!read_count("--scan", seed, &args->scan_seed) || !read_count("--scan", cases, &args->scan_cases) ||
        !read_count("--only", only, &args->scan_only))
        return -1;
    if (!read_number("--seconds", seconds, 1e4, &args->seconds) ||
        !read_number("--seconds-total", total, 1e6, &args->seconds_total) ||
        !read_number("--worse-than", worse_than, 1e6, &args->worse_than))
        return -1;
    return 1;
}

int bench_admits(const char *filter, const char *name)
{
    if (!filter || strcmp(filter, "all") == 0)
        return 1;
    size_t length = strlen(name);
    for (const char *at = filter;; at++) {
        const char *end = strchr(at, ',');
        if ((end ? (size_t)(end - at) : strlen(at)) == length && strncmp(at, name, length) == 0)
            return 1;
        if (!end)
            return 0;
        at = end;
    }
}
