/* The modes, and what they share. Each returns an exit status.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_MODES_MODES_H
#define NRG_BENCH_MODES_MODES_H

#include <stdexcept>
#include <string>
#include <vector>

#include "../args.h"
#include "../measure.h"
#include "../workload.h"

namespace bench
{

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
    struct Column {
        std::string title;
        int width; /* negative: flush left */
    };
    using Cells = std::vector<std::string>;

    Table(const bench_args &args, std::vector<Column> columns) : markdown_(args.markdown), columns_(std::move(columns)) {}
    void widen(size_t column, const std::string &cell);
    void head() const;
    void row(const Cells &cells);

    /* The names of a case and its figures; or, where measuring them throws a std::runtime_error, what went wrong. */
    void row(Cells names, const std::function<Cells()> &figures);

    size_t rows() const { return rows_; }

  private:
    void print(const Cells &cells) const;

    bool markdown_;
    std::vector<Column> columns_;
    size_t rows_ = 0;
};

} // namespace bench

#endif
