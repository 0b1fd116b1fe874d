/* --report DIR: everything, for a quarter of an hour, as JSON and as a page. Measures what is planned until the time is over.
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <map>
#include <tuple>
#include <unistd.h>

#include "report.h"

namespace bench
{

static constexpr double usual_seconds = 900;

/* The parts and what they have of the time. FAR has most: its calls take milliseconds each, and there are hundreds of cases. */
static const struct {
    const char *name;
    double share;
} parts[REPORT_PARTS] = {{"memory", 0.03},          {"errors", 0.09},         {"a row from L1 to memory", 0.08},
                         {"shapes in cache", 0.31}, {"portable paths", 0.08}, {"shapes out of cache", 0.39},
                         {"portable, large", 0.02}};

/* A case has at least the first, however little time there is, and no more than the second. Of what there is on average it has
 * a part: larger ones take longer than they are asked to, and the clock of a measurement does not count what other processes
 * take of the CPU. */
static constexpr double least_seconds = 0.01, most_seconds = 0.5, part_of_mean = 0.4;

/* Calls that take milliseconds jump less than short ones: the median of so many has to do. */
enum { FAR_ROUNDS = 3 };

static volatile sig_atomic_t interrupted;

/* ---- progress ---- */

void report_progress(double done, double left_seconds, const char *what)
{
    static constexpr int WIDTH = 20;
    /* where nobody sees a line change, one is printed for each of these, and once a minute */
    static constexpr double step = 0.1, minute = 60;
    static double printed = -1, printed_left;
    const int left = left_seconds > 0 ? (int)(left_seconds + 0.5) : 0, filled = (int)(std::min(done, 1.0) * WIDTH);
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r[%.*s%*s] %3.0f %%  %d:%02d left  %-24.24s", filled, "####################", WIDTH - filled, "",
                100 * done, left / 60, left % 60, what);
        fflush(stderr);
    } else if (done < printed || done >= printed + step || left_seconds <= printed_left - minute) {
        fprintf(stderr, "nrg-bench: %.0f %%, %d:%02d left: %s\n", 100 * done, left / 60, left % 60, what);
        printed = done;
        printed_left = left_seconds;
    }
}

void report_progress_end()
{
    if (isatty(STDERR_FILENO))
        fputc('\n', stderr);
}

/* ---- the parts ---- */

class Runner
{
  public:
    Runner(Report &report, const bench_args &args, double seconds) : r_(report), args_(args), total_(seconds) {}

    void run()
    {
        run_memory();
        run_errors();
        for (int part = REPORT_SWEEP; part < REPORT_PARTS; part++)
            run_tasks((Part)part);
        r_.took = since();
        if (!interrupted)
            report_progress(1, 0, "done");
        report_progress_end();
    }

  private:
    double since() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

    void begin(Part part)
    {
        part_ = part;
        part_end_ = part == REPORT_LAST ? total_ : part_end_ + parts[part].share * total_;
    }

    /* Whether there is time for it in this part, and any at all. */
    bool goes_on(double cost) const
    {
        const double t = since();
        report_progress(t / total_, total_ - t, parts[part_].name);
        return !interrupted && t + cost <= part_end_;
    }

    void measure(const Task &task, double seconds)
    {
        std::vector<bench_case> paths(task.paths.size(), task.c);
        std::vector<Loops *> known;
        std::vector<Loops> loops;
        for (size_t i = 0; i < paths.size(); i++) {
            bench_case &c = paths[i];
            c.isa = task.paths[i];
            known.push_back(&known_[{c.isa, bench_case_tensors(&c), (int)(4 * log2((double)bench_case_bytes(&c))),
                                     bench_case_read_twice(&c) != 0}]);
            loops.push_back(*known.back());
        }
        try {
            const std::vector<Share> shares =
                measure_shares(paths, seconds, task.part == REPORT_FAR || task.part == REPORT_LAST ? FAR_ROUNDS : 0, loops);
            for (size_t i = 0; i < paths.size(); i++) {
                *known[i] = loops[i];
                r_.add(paths[i], shares[i], task.part == REPORT_SWEEP);
            }
        } catch (const std::runtime_error &) {
            r_.refused++;
        }
    }

    void run_tasks(Part part)
    {
        begin(part);
        auto left = std::count_if(r_.plan.begin(), r_.plan.end(), [&](const Task &t) { return t.part == part; });
        for (const Task &task : r_.plan) {
            if (task.part != part)
                continue;
            const double mean = (part_end_ - since()) / (double)left--;
            if (goes_on(task.cost()))
                measure(task, std::min(std::max(part_of_mean * mean, least_seconds), most_seconds));
        }
    }

    void run_memory()
    {
        begin(REPORT_MEMORY);
        for (const size_t bytes : report_sets())
            for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
                if (admits(args_, (nrg_isa)isa) && goes_on(0.02 + 3e-9 * (double)bytes))
                    r_.memory.push_back(report_bandwidth((nrg_isa)isa, bytes, 0.05));
    }

    void run_error(bench_case c, nrg_isa isa, bench_rival who)
    {
        const nrg_isa before = nrg_isa_active();
        c.isa = isa;
        if ((who != BENCH_RIVALS && !rival_of(who, c)) || !goes_on(0.2))
            return;
        const double ulp = error_of(c, who);
        bench_require(nrg_isa_set(before));
        if (ulp > 0)
            r_.add_error(c, who, ulp);
    }

    /* nrg first, whose bits are the same on every path, so that the active one stands for all; then the rivals, of every path.
     * Errors do not depend on the shape: the first one serves. Those of rivals are of f32. */
    void run_errors()
    {
        begin(REPORT_ACCURACY);
        for (const bool of_rivals : {false, true})
            for (const Task &task : r_.plan) {
                const bench_case &c = task.c;
                if (task.part == REPORT_SWEEP || (of_rivals && c.dtype != NRG_F32) ||
                    !bench_shape_equal(c.shape, c.op->shapes[0]))
                    continue;
                for (const nrg_isa isa : task.paths) {
                    if (of_rivals)
                        for (bench_rival who : {BENCH_NAIVE, BENCH_SLEEF})
                            run_error(c, isa, who);
                    else if (isa == nrg_isa_active())
                        run_error(c, isa, BENCH_RIVALS);
                }
            }
    }

    Report &r_;
    const bench_args &args_;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    const double total_;
    Part part_ = REPORT_MEMORY;
    double part_end_ = 0;

    /* The loops that were near the fastest by path, tensors, the logarithm of bytes in steps of a quarter octave, and whether
     * some are read twice. */
    std::map<std::tuple<nrg_isa, size_t, int, bool>, Loops> known_;
};

int report_mode(const bench_args &args)
try {
    report_try_directory(args.report);
    Report r;
    r.plan = report_plan(args);
    if (r.plan.empty())
        return nothing("no case has these names");

    /* a second one ends it at once; what is measured is in memory until all is */
    struct sigaction soft = {}, before[2];
    soft.sa_handler = [](int) { interrupted = 1; };
    soft.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &soft, &before[0]);
    sigaction(SIGTERM, &soft, &before[1]);
    const nrg_isa active = nrg_isa_active();
    Runner(r, args, args.seconds_total > 0 ? args.seconds_total : usual_seconds).run();
    bench_require(nrg_isa_set(active)); /* which the report names */
    sigaction(SIGINT, &before[0], nullptr);
    sigaction(SIGTERM, &before[1], nullptr);
    if (interrupted) {
        fputs("nrg-bench: interrupted: nothing is written\n", stderr);
        return 130;
    }
    report_write(r, args.report);
    printf("%zu rows, of the %zu cases and of sweeps: %s/report.html, %s/report.json\n", r.rows.size() + r.sweep.size(),
           r.cases(), args.report, args.report);
    return 0;
} catch (const std::runtime_error &wrong) {
    return nothing(text("%s: %s", args.report, wrong.what()).c_str());
}

} // namespace bench
