/* The options of nrg-bench's own modes, these modes, and what they share.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_MODES_MODES_H
#define NRG_BENCH_MODES_MODES_H

#include <stdexcept>
#include <string>
#include <vector>

#include "../measure.h"
#include "../workload.h"

/* NULL: not asked for. Without a mode, Google Benchmark gets the command line. */
struct bench_args {
    const char *table, *rivals, *errors, *ratios, *gates, *threads, *stores, *short_sets, *instances, *selfcheck; /* modes */
    const char *scan, *report, *compare, *compare_to; /* more of them: the seed, the directory for a report, two reports */
    const char *quick, *markdown;
    const char *dtype, *path, *kernel, *op, *shape; /* filters, NULL: no filter; "a,b": a or b */
    const char *seconds_told, *total_told, *worse_told, *cases_told, *only_told;

    /* the numbers that these say */
    double seconds, seconds_total;           /* a case, a report; 0: the default */
    double worse_than;                       /* 0: however bad, it is no failure */
    size_t scan_seed, scan_cases, scan_only; /* only: the number of one case; 0: all */
};

void bench_print_help();

/* 1: at least one mode was asked for. 0: none, the command line is Google Benchmark's. -1: wrong, and said so. */
int bench_read_args(bench_args *args, int argc, char **argv);

/* Runs the modes asked for; the exit status. */
int bench_run_modes(const bench_args *args);

namespace bench
{

/* Each returns an exit status. */
int table_mode(const bench_args &args);
int ratios_mode(const bench_args &args);
int rivals_mode(const bench_args &args);
int errors_mode(const bench_args &args);
int gates_mode(const bench_args &args);
int threads_mode(const bench_args &args);
int stores_mode(const bench_args &args);
int short_mode(const bench_args &args);
int scan_mode(const bench_args &args);
int selfcheck_mode(const bench_args &args);
int instances_mode(const bench_args &args);
int report_mode(const bench_args &args);
int compare_mode(const bench_args &args);

/* printf to a string. */
std::string text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* 1234.5 → "1.23 us": three digits and a unit. */
std::string time_text(double ns);

/* Reports why a mode printed nothing, and returns its exit status. */
int nothing(const char *why);

/* Time for a line. */
double seconds_of(const bench_args &args);

void title(const bench_args &args, const std::string &of);

/* Calls visit for every case of every path this machine can run; family: of this one only. */
void each_case(const std::function<void(const bench_case &c)> &visit, const bench_family *family = nullptr);

std::string name_of(const bench_case &c);  /* "norm_forward/f32/avx512/add+rms/512x4096" */
std::string shape_of(const bench_case &c); /* "512x4096" */

/* The first cells of a row: path, dtype, op, shape. */
std::vector<std::string> cells_of(const bench_case &c);

/* Whether dtype, path, kernel, op and shape pass the filters; dtype, kernel: which to take where the user named none. */
bool admits(const bench_args &args, const bench_case &c, const char *dtype = "all", const char *kernel = "all");

/* A path that passes the filter, and that this CPU has. */
bool admits(const bench_args &args, nrg_isa isa);

/* Memory for n cases of one family, dtype and shape. */
struct Memory : bench_memory {
    Memory(const bench_case *c, size_t n);
    Memory(const Memory &) = delete;
    ~Memory() { bench_memory_free(this); }
};

/* A case's call; throws std::runtime_error with what the library has against it. */
struct Call : bench_call {
    Call(const bench_case &c, const bench_memory &m);
    Call(const Call &) = delete;
    ~Call() { bench_call_free(this); }
    Contender contender();
};

/* Cases take turns, about so many seconds long. They share memory where family, dtype and shape are the same. Throws as a call
 * does. */
std::vector<Contender> compare(const std::vector<bench_case> &cases, double seconds);

/* A table for people: columns of a fixed width, or Markdown. Rows are printed at once, since the next may take a while. */
class Table
{
  public:
    using Cells = std::vector<std::string>;

    /* columns: "path:-6,time:8": titles and widths, of which a negative one is flush left. Titles and notes, which are whole
     * lines, come with the first row. */
    Table(const bench_args &args, const std::string &title, const std::string &columns, const std::string &notes = "");
    void widen(size_t column, const std::string &cell);
    void row(const Cells &cells);

    /* The names of a case and its figures; or, where measuring them throws a std::runtime_error, what went wrong. */
    void row(Cells names, const std::function<Cells()> &figures);

    size_t rows() const { return rows_; }

  private:
    void print_head();
    void print(const Cells &cells) const;

    const bool markdown_;
    const std::string title_, notes_;
    Cells titles_;
    std::vector<int> widths_;
    size_t rows_ = 0;
};

} // namespace bench

#endif
