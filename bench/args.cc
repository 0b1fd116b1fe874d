/* The options of nrg-bench's own modes.
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <cerrno>
#include <cstdint>

extern "C" {
#include "../tools/suggest.h"
}
#include "modes/modes.h"

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

/* Options of nrg-bench. Those of modes come first, in the order in which modes run. */
static const struct option {
    const char *name;
    const char *bench_args::*told;
    bool has_value;
    int (*mode)(const bench_args &args); /* NULL: not a mode */
} options[] = {
    {"--selfcheck", &bench_args::selfcheck, false, bench::selfcheck_mode},
    {"--table", &bench_args::table, false, bench::table_mode},
    {"--rivals", &bench_args::rivals, false, bench::rivals_mode},
    {"--errors", &bench_args::errors, false, bench::errors_mode},
    {"--ratios", &bench_args::ratios, false, bench::ratios_mode},
    {"--gates", &bench_args::gates, false, bench::gates_mode},
    {"--threads", &bench_args::threads, false, bench::threads_mode},
    {"--stores", &bench_args::stores, false, bench::stores_mode},
    {"--short", &bench_args::short_sets, false, bench::short_mode},
    {"--instances", &bench_args::instances, false, bench::instances_mode},
    {"--scan", &bench_args::scan, true, bench::scan_mode},
    {"--report", &bench_args::report, true, bench::report_mode},
    {"--compare", &bench_args::compare, true, bench::compare_mode},
    {"--quick", &bench_args::quick, false, nullptr},
    {"--markdown", &bench_args::markdown, false, nullptr},
    {"--dtype", &bench_args::dtype, true, nullptr},
    {"--path", &bench_args::path, true, nullptr},
    {"--kernel", &bench_args::kernel, true, nullptr},
    {"--op", &bench_args::op, true, nullptr},
    {"--shape", &bench_args::shape, true, nullptr},
    {"--seconds", &bench_args::seconds_told, true, nullptr},
    {"--seconds-total", &bench_args::total_told, true, nullptr},
    {"--worse-than", &bench_args::worse_told, true, nullptr},
    {"--only", &bench_args::only_told, true, nullptr},
};

/* Reads the value of an option, as "--name value" or "--name=value"; returns false for another option. */
static bool value_of(const char *name, int argc, char **argv, int *i, const char **value)
{
    const size_t length = strlen(name);
    if (strncmp(argv[*i], name, length) != 0)
        return false;
    if (argv[*i][length] == '=') {
        *value = argv[*i] + length + 1;
        return true;
    }
    if (argv[*i][length] != '\0' || *i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0)
        return false;
    *value = argv[++*i];
    return true;
}

/* False after an error message, unless it is a number above 0 and below `most`. */
static bool read_number(const char *name, const char *text, double most, double *value)
{
    char *end;
    if (!text)
        return true;
    *value = strtod(text, &end);
    if (!*end && *value > 0 && *value < most)
        return true;
    fprintf(stderr, "nrg-bench: %s: expected a number above 0 and below %.0f, got '%s'\n", name, most, text);
    return false;
}

/* False after an error message, unless it is a whole number above 0. */
static bool read_count(const char *name, const char *text, size_t *value)
{
    char *end;
    if (!text)
        return true;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    *value = (size_t)number;
    if (!*end && text[0] != '-' && number && number <= SIZE_MAX && !errno)
        return true;
    fprintf(stderr, "nrg-bench: %s: expected a whole number above 0, got '%s'\n", name, text);
    return false;
}

/* Options that Google Benchmark reads. */
static bool is_of_google(const char *argument)
{
    return strncmp(argument, "--benchmark", 11) == 0 || strncmp(argument, "--v=", 4) == 0 || strcmp(argument, "--help") == 0 ||
           strcmp(argument, "--version") == 0;
}

/* Says what is wrong with the command line. */
static int wrong(const std::string &what)
{
    fprintf(stderr, "nrg-bench: %s\n", what.c_str());
    return -1;
}

static int unknown(const char *stranger)
{
    suggestion nearest = {nullptr, 0};
    for (const option &o : options)
        suggest(&nearest, stranger, strcspn(stranger, "="), o.name);
    if (nearest.word && strcmp(nearest.word, stranger) == 0)
        return wrong(bench::text("%s: expected a value, got none", stranger));
    if (nearest.word)
        return wrong(bench::text("unknown option %s; did you mean %s?", stranger, nearest.word));
    return wrong(bench::text("unknown option %s; see nrg-bench --help", stranger));
}

int bench_read_args(bench_args *args, int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--words") == 0) { /* for completion in shells; then there is no mode to run */
        for (const option &o : options)
            puts(o.name);
        return 1;
    }

    const char *stranger = nullptr;
    for (int i = 1; i < argc; i++) {
        const auto is_this = [&](const option &o) {
            if (o.has_value)
                return value_of(o.name, argc, argv, &i, &(args->*o.told));
            return strcmp(argv[i], o.name) == 0 && (args->*o.told = o.name);
        };
        if (std::any_of(std::begin(options), std::end(options), is_this))
            continue;
        if (args->compare && !args->compare_to && argv[i][0] != '-')
            args->compare_to = argv[i];
        else if (args->scan && !args->cases_told && argv[i][0] != '-')
            args->cases_told = argv[i];
        else if (!stranger)
            stranger = argv[i];
    }
    const auto is_told = [&](bool of_mode) {
        return std::any_of(std::begin(options), std::end(options),
                           [&](const option &o) { return (o.mode != nullptr) == of_mode && args->*o.told; });
    };
    if (stranger && (is_told(true) || !is_of_google(stranger)))
        return unknown(stranger);
    if (!is_told(true))
        return is_told(false) ? wrong("these options need a table or a report (--table, --report, ...); see nrg-bench --help")
                              : 0;
    if (args->compare && !args->compare_to)
        return wrong("--compare: expected two reports, got one");
    if (args->scan && !args->cases_told)
        return wrong("--scan: expected a seed and a number of cases, got only a seed");
    const bool is_right = read_count("--scan", args->scan, &args->scan_seed) &&
                          read_count("--scan", args->cases_told, &args->scan_cases) &&
                          read_count("--only", args->only_told, &args->scan_only) &&
                          read_number("--seconds", args->seconds_told, 1e4, &args->seconds) &&
                          read_number("--seconds-total", args->total_told, 1e6, &args->seconds_total) &&
                          read_number("--worse-than", args->worse_told, 1e6, &args->worse_than);
    return is_right ? 1 : -1;
}

int bench_run_modes(const bench_args *args)
{
    const nrg_isa before = nrg_isa_active();
    int status = 0;
    for (const option &o : options)
        if (o.mode && args->*o.told)
            status |= o.mode(*args);
    bench_require(nrg_isa_set(before));
    return status;
}
