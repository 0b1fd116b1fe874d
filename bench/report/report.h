/* A report: what is planned, what was measured, how it is written.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_REPORT_REPORT_H
#define NRG_BENCH_REPORT_REPORT_H

#include <nlohmann/json_fwd.hpp>

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

struct Report {
    struct Row {
        bench_case c;
        Share share;
        bool is_sweep;
    };
    struct Error {
        bench_case c;
        bench_rival who;
        double ulp;
    };
    struct Bandwidth {
        nrg_isa isa;
        size_t bytes;      /* the working set */
        double read, copy; /* bytes/ns; of a copy what is read and what is written */
    };
    std::vector<Task> plan;
    std::vector<Row> rows;
    std::vector<Error> errors;
    std::vector<Bandwidth> bandwidths;
    double took = 0;
    size_t refused = 0; /* tasks that went wrong */

    /* Cases of every path that pass the filters: what a report with all the time it wants would have. */
    size_t cases() const;
};

/* Working sets: half of L1, half of L2, and two that are larger; ascending. */
std::vector<size_t> report_sets();
Report::Bandwidth bandwidth_of(nrg_isa isa, size_t bytes, double seconds);

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
