// Registers the cases with Google Benchmark: <case> and limit/<case> for each, naive/<case> and sleef/<case> where there are
// such.
//
// A case is measured by the harness (measure.cc), which interleaves kernel, limit and rivals. Google Benchmark does names,
// filters, repetitions and formats. Its own clock would time that whole measurement, and its manual time would append
// "/manual_time" to every name. So the harness's medians travel in the counter "ns" and replace the clock's times on their way to
// the reporter.
//
// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "modes/modes.h"
#include "share.h"

namespace
{

double seconds = 0.3; // spent on a case

// What an entry is about: a rival of the kernel's, or one of these.
enum { KERNEL = BENCH_RIVALS, LIMIT, ENTRIES };

// One measurement serves the kernel's entry and those beside it; a repetition of any asks for a new one.
struct Case {
    bench_case c;
    bench::Share share = {};
    std::string wrong;
    bool fresh[ENTRIES] = {};

    explicit Case(const bench_case &of) : c(of) {}

    void measure(int who)
    {
        if (!fresh[who])
            try {
                std::fill(fresh, fresh + ENTRIES, true);
                wrong.clear();
                share = bench::measure_share(c, seconds);
            } catch (const std::runtime_error &error) {
                wrong = error.what();
            }
        fresh[who] = false;
    }
};

void run(benchmark::State &state, Case &one, int who)
{
    one.measure(who);
    if (!one.wrong.empty()) {
        state.SkipWithError(one.wrong.c_str());
        return;
    }
    const bench::Share &s = one.share;
    const double ns = who == KERNEL ? s.ns : who == LIMIT ? s.limit_ns : s.rival_ns[who];
    if (ns == 0) {
        state.SkipWithError(who == LIMIT ? s.loop : "not in this build");
        return;
    }
    for (auto _ : state) {
    }
    state.counters["ns"] = ns;
    state.counters["elements/ns"] = s.elements / ns;
    state.counters["bytes/ns"] = s.bytes / ns;
    if (who != LIMIT) {
        double ulp = bench::ulp_of(one.c, static_cast<bench_rival>(who));
        if (ulp > 0)
            state.counters["ulp"] = ulp;
    }
    if (who == KERNEL && s.rival_ns[BENCH_NAIVE] > 0)
        state.counters["x_naive"] = s.rival_ns[BENCH_NAIVE] / ns;
    if (s.limit_ns > 0)
        state.counters["share"] = s.limit_ns / ns;
    if (s.twice_ns > 0) // of two reads and one write
        state.counters["share2"] = s.twice_ns / ns;
    state.SetLabel(std::string(who == LIMIT ? "" : "limit: ") + s.loop);
}

// Hands runs on with the harness's times.
class Medians : public benchmark::BenchmarkReporter
{
  public:
    explicit Medians(benchmark::BenchmarkReporter *to) : to_(to) {}

    bool ReportContext(const Context &context) override
    {
        to_->SetOutputStream(&GetOutputStream());
        to_->SetErrorStream(&GetErrorStream());
        return to_->ReportContext(context);
    }

    void ReportRuns(const std::vector<Run> &runs) override
    {
        std::vector<Run> changed = runs;
        for (Run &r : changed) {
            auto ns = r.counters.find("ns");
            if (ns == r.counters.end())
                continue;
            // times are for all iterations together, in seconds; an aggregate like cv is neither
            bool time = r.run_type != Run::RT_Aggregate || r.aggregate_unit == benchmark::kTime;
            double scale = time ? 1e-9 * static_cast<double>(r.iterations) : 1;
            r.real_accumulated_time = r.cpu_accumulated_time = ns->second.value * scale;
        }
        to_->ReportRuns(changed);
    }

    void Finalize() override { to_->Finalize(); }

  private:
    std::unique_ptr<benchmark::BenchmarkReporter> to_;
};

void add(Case &one)
{
    const std::string name = bench::name_of(one.c);
    auto entry = [&one](const std::string &title, int who) {
        benchmark::RegisterBenchmark(title.c_str(), [&one, who](benchmark::State &state) { run(state, one, who); });
    };
    entry(name, KERNEL);
    entry("limit/" + name, LIMIT);
    for (bench_rival rival : {BENCH_NAIVE, BENCH_SLEEF})
        if (bench::rival_of(rival, one.c))
            entry(std::string(bench::rival_name(rival)) + "/" + name, rival);
}

const char *option(const char *arg, const char *name)
{
    size_t length = std::strlen(name);
    return std::strncmp(arg, name, length) == 0 ? arg + length : nullptr;
}

// --benchmark_out writes a second report, which needs the harness's times as well.
benchmark::BenchmarkReporter *file_reporter(const std::string &format)
{
    if (format == "console")
        return new benchmark::ConsoleReporter(benchmark::ConsoleReporter::OO_None);
    BENCHMARK_DISABLE_DEPRECATED_WARNING
    if (format == "csv")
        return new benchmark::CSVReporter;
    BENCHMARK_RESTORE_DEPRECATED_WARNING
    return new benchmark::JSONReporter;
}

} // namespace

int main(int argc, char **argv)
{
#ifdef QUICK_RIVALS
    std::fputs("nrg-bench: built with -Dquick_rivals=true: rooflines and baselines are hardly optimized; ignore ratios to them\n",
               stderr);
#endif
    bench_args args = {};
    int own = bench_read_args(&args, argc, argv);
    if (own)
        return own < 0 ? 2 : bench_run_modes(&args);

    // Google Benchmark is to run each case once, however long: the harness knows by itself when it has measured enough. Without a
    // filter it allocates its list anew for each of the cases, which takes minutes.
    char once[] = "--benchmark_min_time=0", all[] = "--benchmark_filter=.+";
    std::vector<char *> passed = {argv[0], once, all};
    bool to_file = false;
    std::string format = "json";
    for (int i = 1; i < argc; i++) {
        if (const char *value = option(argv[i], "--benchmark_min_time=")) {
            char *end;
            seconds = std::strtod(value, &end); // newer versions write "0.5s"
            if (end == value || !(seconds > 0)) {
                std::fprintf(stderr, "nrg-bench: --benchmark_min_time: expected seconds above 0, got '%s'\n", value);
                return 2;
            }
            continue;
        }
        if (option(argv[i], "--benchmark_out="))
            to_file = true;
        else if (const char *value = option(argv[i], "--benchmark_out_format="))
            format = value;
        passed.push_back(argv[i]);
    }
    passed.push_back(nullptr);
    int count = static_cast<int>(passed.size()) - 1;
    benchmark::Initialize(&count, passed.data(), [] {
        bench_print_help();
        std::fputs("\nGoogle Benchmark's options:\n\n", stdout);
        benchmark::PrintDefaultHelp();
    });
    if (benchmark::ReportUnrecognizedArguments(count, passed.data()))
        return 2;

    std::deque<Case> cases;
    bench::each_case([&](const bench_case &c) { add(cases.emplace_back(c)); });
    benchmark::AddCustomContext("nrg", nrg_version());
    Medians display(benchmark::CreateDefaultDisplayReporter()), file(file_reporter(format));
    if (to_file)
        benchmark::RunSpecifiedBenchmarks(&display, &file);
    else
        benchmark::RunSpecifiedBenchmarks(&display);
    benchmark::Shutdown();
    return 0;
}
