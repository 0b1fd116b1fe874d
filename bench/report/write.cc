/* A report as JSON, and as a page that holds the same JSON.
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "report.h"

/* The page that a report is put into: what stands before its JSON and after it. Made by page.py. */
extern "C" const unsigned char report_page_head[], report_page_tail[];

namespace bench
{

/* Rows are arrays, since names of columns would be half of the file. */
static const Json columns = {"kernel", "op",       "dtype", "path",     "shape",    "elements", "bytes",
                             "ns",     "limit_ns", "loop",  "twice_ns", "naive_ns", "sleef_ns"};

static Json names_of(const bench_case &c)
{
    return {bench_kernel_of(c.family), c.op->name, nrg_dtype_name(c.dtype), nrg_isa_name(c.isa)};
}

double report_digits(double value) { return strtod(text("%.4g", value).c_str(), nullptr); }

static Json time_or_null(double ns) { return ns > 0 ? Json(report_digits(ns)) : Json(); }

void Report::add(const bench_case &c, const Share &s, bool is_sweep)
{
    const auto loop = std::find(loops.begin(), loops.end(), s.loop) - loops.begin();
    if (loop == (ptrdiff_t)loops.size())
        loops.push_back(s.loop);
    Json cells = names_of(c);
    for (const Json &cell :
         {Json(shape_of(c)), Json((uint64_t)s.elements), Json((uint64_t)s.bytes), time_or_null(s.ns), time_or_null(s.limit_ns),
          Json(loop), time_or_null(s.twice_ns), time_or_null(s.rival_ns[BENCH_NAIVE]), time_or_null(s.rival_ns[BENCH_SLEEF])})
        cells.push_back(cell);
    (is_sweep ? sweep : rows).push_back(std::move(cells));
}

void Report::add_error(const bench_case &c, bench_rival who, double ulp)
{
    Json cells = names_of(c);
    cells.push_back(who == BENCH_RIVALS ? "nrg" : rival_name(who));
    cells.push_back(report_digits(ulp));
    errors.push_back(std::move(cells));
}

/* No text of it can end the script element of a page that holds it. */
static std::string text_of(const Report &r)
{
    Json json = {{"format", "nrg-bench report 1"}};
    json.update(report_machine());
    json.update({{"seconds", report_digits(r.took)},
                 {"cases", r.cases()},
                 {"measured", r.rows.size()},
                 {"refused", r.refused},
                 {"memory", r.memory},
                 {"columns", columns},
                 {"errors", r.errors},
                 {"sweep", r.sweep},
                 {"rows", r.rows},
                 {"loops", r.loops}});
    std::string text = json.dump();
    for (size_t at = 0; (at = text.find('<', at)) != text.npos;)
        text.replace(at, 1, "\\u003c");
    return text + '\n';
}

static const char *const files[] = {"report.json", "report.html"};

static std::string part_of(const std::string &directory, const char *file) { return directory + "/" + file + ".part"; }

static void write_part(const std::string &directory, const char *file, std::initializer_list<std::string> texts)
{
    std::ofstream to(part_of(directory, file), std::ios::binary);
    for (const std::string &text : texts)
        to << text;
    to.close();
    if (!to)
        throw std::system_error(errno, std::generic_category());
}

static void remove_parts(const std::string &directory)
{
    for (const char *file : files)
        remove(part_of(directory, file).c_str());
}

void report_try_directory(const std::string &directory)
{
    std::filesystem::create_directory(directory);
    for (const char *file : files)
        write_part(directory, file, {});
    remove_parts(directory);
}

void report_write(const Report &report, const std::string &directory)
try {
    const std::string json = text_of(report);
    write_part(directory, files[0], {json});
    write_part(directory, files[1], {(const char *)report_page_head, json, (const char *)report_page_tail});
    for (const char *file : files)
        std::filesystem::rename(part_of(directory, file), directory + "/" + file);
} catch (const std::runtime_error &) {
    remove_parts(directory);
    throw;
}

} // namespace bench
