/* The modes, and what they share.
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <deque>
#include <sstream>

#include "modes.h"

namespace bench
{

std::string text(const char *format, ...)
{
    char buffer[512];
    va_list list;
    va_start(list, format);
    vsnprintf(buffer, sizeof buffer, format, list);
    va_end(list);
    return buffer;
}

std::string time_text(double ns)
{
    const char *unit = "ns";
    if (ns >= 999.5e3) {
        ns /= 1e6;
        unit = "ms";
    } else if (ns >= 999.5) {
        ns /= 1e3;
        unit = "us"; /* not µs: printf counts bytes, and columns would shift */
    }
    return text("%.*f %s", ns >= 99.95 ? 0 : ns >= 9.995 ? 1 : 2, ns, unit);
}

int nothing(const char *why)
{
    fprintf(stderr, "nrg-bench: %s\n", why);
    return 1;
}

double seconds_of(const bench_args &args) { return args.seconds > 0 ? args.seconds : args.quick ? 0.15 : 0.3; }

void title(const bench_args &args, const std::string &of) { printf(args.markdown ? "\n**%s**\n\n" : "\n%s\n\n", of.c_str()); }

void each_case(const std::function<void(const bench_case &c)> &visit, const bench_family *family)
{
    bench_each_case(
        family, [](const bench_case *c, void *ctx) { (*static_cast<decltype(&visit)>(ctx))(*c); },
        const_cast<std::function<void(const bench_case &)> *>(&visit));
}

std::string name_of(const bench_case &c)
{
    char name[BENCH_NAME_MAX];
    bench_case_name(&c, name);
    return name;
}

std::string shape_of(const bench_case &c)
{
    char shape[BENCH_SHAPE_MAX];
    bench_shape_name(c.family, c.shape, shape);
    return shape;
}

std::vector<std::string> cells_of(const bench_case &c)
{
    return {nrg_isa_name(c.isa), nrg_dtype_name(c.dtype), c.op->name, shape_of(c)};
}

bool admits(const bench_args &args, const bench_case &c, const char *dtype, const char *kernel)
{
    return bench_admits(args.dtype ? args.dtype : dtype, nrg_dtype_name(c.dtype)) &&
           bench_admits(args.path, nrg_isa_name(c.isa)) &&
           bench_admits(args.kernel ? args.kernel : kernel, bench_kernel_of(c.family)) && bench_admits(args.op, c.op->name) &&
           bench_admits(args.shape, shape_of(c).c_str());
}

bool admits(const bench_args &args, nrg_isa isa) { return nrg_isa_supported(isa) && bench_admits(args.path, nrg_isa_name(isa)); }

Memory::Memory(const bench_case *c, size_t n)
{
    if (!bench_memory_make(this, c, n))
        throw std::runtime_error("not enough memory");
}

Call::Call(const bench_case &c, const bench_memory &m)
{
    if (const char *wrong = bench_call_bind(this, &c, &m)) {
        bench_call_free(this);
        throw std::runtime_error(wrong);
    }
}

Contender Call::contender()
{
    return {.run = [this](unsigned placement, size_t n) { bench_call_run(this, placement, n); },
            .before = [this] { bench_call_before(this); }};
}

static bool are_alike(const bench_case &a, const bench_case &b)
{
    return a.family == b.family && a.dtype == b.dtype && bench_shape_equal(a.shape, b.shape);
}

std::vector<Contender> compare(const std::vector<bench_case> &cases, double seconds)
{
    std::deque<Memory> memory;
    std::deque<Call> calls;
    std::vector<Contender> field;
    const bool shared = std::all_of(cases.begin(), cases.end(), [&](const bench_case &c) { return are_alike(c, cases[0]); });
    for (const bench_case &c : cases) {
        if (memory.empty() || !shared)
            memory.emplace_back(&c, shared ? cases.size() : 1);
        field.push_back(calls.emplace_back(c, memory.back()).contender());
    }
    measure(field, seconds, bench_case_bytes(&cases[0]));
    return field;
}

Table::Table(const bench_args &args, const std::string &title, const std::string &columns, const std::string &notes)
    : markdown_(args.markdown), title_(title), notes_(notes)
{
    std::istringstream all(columns);
    for (std::string column; std::getline(all, column, ',');) {
        titles_.push_back(column.substr(0, column.find(':')));
        widths_.push_back(atoi(column.c_str() + column.find(':') + 1));
    }
}

void Table::widen(size_t column, const std::string &cell) { widths_[column] = std::min(widths_[column], -(int)cell.size()); }

void Table::print(const Cells &cells) const
{
    for (size_t i = 0; i < widths_.size(); i++) {
        const char *cell = i < cells.size() ? cells[i].c_str() : "";
        if (markdown_)
            printf("| %s ", cell);
        else
            printf("%s%*s", i ? "  " : "", widths_[i], cell);
    }
    puts(markdown_ ? "|" : "");
    fflush(stdout);
}

void Table::print_head()
{
    if (rows_)
        return;
    printf(markdown_ ? "\n**%s**\n\n" : "\n%s\n\n", title_.c_str());
    fputs(notes_.c_str(), stdout);
    print(titles_);
    for (const int width : widths_)
        if (markdown_)
            fputs(width < 0 ? "| --- " : "| ---: ", stdout);
    if (markdown_)
        puts("|");
}

void Table::row(const Cells &cells)
{
    print_head();
    print(cells);
    rows_++;
}

void Table::row(Cells names, const std::function<Cells()> &figures)
{
    print_head(); /* before it takes a while */
    try {
        for (std::string &cell : figures())
            names.push_back(std::move(cell));
    } catch (const std::runtime_error &wrong) {
        names.push_back(wrong.what());
    }
    print(names);
    rows_++;
}

} // namespace bench
