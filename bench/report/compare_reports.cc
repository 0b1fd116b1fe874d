/* --compare A.json B.json: two reports side by side, of two machines or of two commits.
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>

#include "report.h"

namespace bench
{

using Times = std::map<std::string, double>; /* by the name of a case */

static std::string string_of(const Json &json, const char *otherwise)
{
    return json.is_string() ? json.get<std::string>() : otherwise;
}

/* The time of a row is added to times, under a name that is made of its columns. */
static bool read_row(const Json &columns, const Json &row, Times &times)
{
    std::map<std::string, Json> cell;
    for (size_t i = 0; row.is_array() && i < std::min(columns.size(), row.size()); i++)
        cell[string_of(columns[i], "")] = row[i];
    std::string name;
    for (const char *part : {"kernel", "dtype", "path", "op", "shape"}) {
        if (!cell[part].is_string())
            return false;
        name += name.empty() ? "" : "/";
        name += cell[part].get<std::string>();
    }
    const double ns = cell["ns"].is_number() ? cell["ns"].get<double>() : 0;
    return ns > 0 && (times[name] = ns) > 0;
}

static Json read_report(const char *file, Times &times)
{
    std::ifstream stream(file, std::ios::binary);
    if (!stream.is_open())
        throw std::runtime_error(text("%s: cannot read this file", file));
    Json json;
    try {
        json = Json::parse(stream);
    } catch (const Json::parse_error &wrong) {
        throw std::runtime_error(text("%s: expected JSON, got an error at byte %zu", file, wrong.byte));
    }
    if (!json.is_object() || json["format"] != "nrg-bench report 1" || !json["rows"].is_array() || !json["columns"].is_array())
        throw std::runtime_error(text("%s: expected a report of nrg-bench --report, got other JSON", file));
    for (size_t i = 0; i < json["rows"].size(); i++)
        if (!read_row(json["columns"], json["rows"][i], times))
            throw std::runtime_error(text("%s: row %zu has no name or no time", file, i + 1));
    return json;
}

int compare_mode(const bench_args &args)
try {
    Times a, b;
    Json reports[2] = {read_report(args.compare, a), read_report(args.compare_to, b)};
    for (const char *key : {"cpu", "system", "compiler", "nrg", "date"})
        for (int i = 0; i < 2; i++)
            printf("%c %-9s %s\n", 'A' + i, key, string_of(reports[i][key], "unknown").c_str());

    std::vector<double> ratios;
    int widest = 4;
    size_t worse = 0;
    double logarithms = 0;
    for (const auto &[name, ns] : a)
        widest = std::max(widest, (int)name.size());
    printf("\n%-*s  %10s  %10s  B as fast\n", widest, "case", "A ns", "B ns");
    for (const auto &[name, from] : a) {
        if (!b.count(name))
            continue;
        const double to = b[name];
        const bool is_worse = args.worse_than > 0 && to > from * args.worse_than;
        printf("%-*s  %10.4g  %10.4g  %.3f%s\n", widest, name.c_str(), from, to, from / to, is_worse ? "  worse" : "");
        worse += is_worse;
        logarithms += log(from / to);
        ratios.push_back(from / to);
    }
    const size_t both = ratios.size();
    printf("\n%zu cases in both, %zu in A alone, %zu in B alone\n", both, a.size() - both, b.size() - both);
    if (!both)
        throw std::runtime_error("the reports have no case in common");
    std::sort(ratios.begin(), ratios.end());
    printf("B is %.3f times as fast as A (geometric mean; median %.3f, least %.3f, most %.3f)\n", exp(logarithms / (double)both),
           ratios[both / 2], ratios[0], ratios[both - 1]);
    if (args.worse_than > 0)
        printf("%zu take more than %g times as long\n", worse, args.worse_than);
    return worse != 0;
} catch (const std::runtime_error &wrong) {
    nothing(wrong.what());
    return 2;
}

} // namespace bench
