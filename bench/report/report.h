/* A report: what is planned, what was measured, how it is written.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_REPORT_REPORT_H
#define NRG_BENCH_REPORT_REPORT_H

#include <nlohmann/json.hpp>

#include "../modes/modes.h"
#include "../share.h"

namespace bench
{

using Json = nlohmann::ordered_json; /* keys in the order of the text */

/* Parts of a report, in the order they are done. Each has its share of the time; what one leaves goes to the next. */
enum Part {
    REPORT_MEMORY,   /* bandwidth by working set */
    REPORT_ACCURACY, /* errors */
    REPORT_SWEEP,    /* a row from L1 to memory */
    REPORT_NEAR,     /* the paths for this CPU, up to near_most elements */
    REPORT_PORTABLE, /* scalar and generic, small shapes */
    REPORT_FAR,      /* the rest of the former */
    REPORT_LAST,     /* the rest of the latter */
    REPORT_PARTS
};

/* One case on some paths, which take turns on the same memory. */
struct Task {
    bench_case c;
    Part part;
    unsigned rank; /* within the part: which comes first */
    std::vector<nrg_isa> paths;

    /* Seconds that it takes at least, roughly: so that none is begun that would not end in time. */
    double cost() const;
};

std::vector<Task> report_plan(const bench_args &args);

/* What was measured, as it is written. */
struct Report {
    std::vector<Task> plan;
    Json memory = Json::array(), errors = memory, sweep = memory, rows = memory;
    Json loops = memory; /* what stands as a limit's loop, each text once: there are a dozen for thousands of rows */
    double took = 0;
    size_t refused = 0; /* tasks that went wrong */

    void add(const bench_case &c, const Share &share, bool is_sweep);
    void add_error(const bench_case &c, bench_rival who, double ulp);

    /* Cases of every path that pass the filters: what a report with all the time it wants would have. */
    size_t cases() const;
};

/* Four digits: more would be noise, and half of the file. */
double report_digits(double value);

/* Working sets: half of L1, half of L2, and two that are larger; ascending. And an entry of memory: the bytes of such a set, and
 * bytes/ns that are read, or in a copy read and written. */
std::vector<size_t> report_sets();
Json report_bandwidth(nrg_isa isa, size_t bytes, double seconds);

/* The CPU, its caches, the system, the compiler, nrg, and when. */
Json report_machine();

/* Makes a directory and sees that files can be made in it, before time is spent on them; writes report.json and report.html into
 * such a one, each under another name until it is complete. Throw std::system_error. */
void report_try_directory(const std::string &directory);
void report_write(const Report &report, const std::string &directory);

/* A line on the standard error that says how far it is: of a terminal always the same one, otherwise one now and then. */
void report_progress(double done, double left_seconds, const char *text);
void report_progress_end();

} // namespace bench

#endif
