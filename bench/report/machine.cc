/* What a report says of the machine it was made on: from Linux's files where there are such; what cannot be known is left out.
 * And what memory gives: the fastest bare loops of a path over working sets that lie in L1, in L2, and further out.
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <set>
#include <sys/utsname.h>
#include <unistd.h>

#include "../limits/limits.h"
extern "C" {
#include "internal.h"
}
#include "report.h"

namespace bench
{

/* The first line of a file; "": there is none. */
static std::string first_line(const std::string &path)
{
    std::string line;
    std::getline(std::ifstream(path), line);
    return line;
}

/* Of x86; AArch64 has numbers where the name should be, and a device tree that says more. */
static std::string cpu_name()
{
    std::string line = first_line("/sys/firmware/devicetree/base/model");
    if (!line.empty())
        return line.c_str(); /* which ends in a 0 */
    for (const std::string key : {"model name", "Model", "uarch", "CPU part"})
        for (std::ifstream file("/proc/cpuinfo"); std::getline(file, line);) {
            const size_t colon = line.find(':'), name = line.find_first_not_of(" \t", colon + 1);
            if (colon != line.npos && line.compare(0, key.size(), key) == 0)
                return name == line.npos ? "" : line.substr(name);
        }
    return "unknown CPU";
}

/* "32K" */
static size_t bytes_of(const std::string &size)
{
    char *unit;
    const size_t number = strtoul(size.c_str(), &unit, 10);
    return number * (*unit == 'K' ? 1 << 10 : *unit == 'M' ? 1 << 20 : 1);
}

/* Of the first CPU: levels, and of their types, bytes and CPUs those that are known. */
static Json caches()
{
    Json found = Json::array();
    for (int i = 0;; i++) {
        const std::string at = text("/sys/devices/system/cpu/cpu0/cache/index%d/", i), level = first_line(at + "level"),
                          type = first_line(at + "type"), size = first_line(at + "size"),
                          shared_by = first_line(at + "shared_cpu_list");
        if (level.empty())
            return found;
        Json of = {{"level", strtol(level.c_str(), nullptr, 10)}};
        if (!type.empty())
            of["type"] = type;
        if (!size.empty())
            of["bytes"] = bytes_of(size);
        if (!shared_by.empty())
            of["shared_by"] = shared_by;
        found.push_back(of);
    }
}

Json report_machine()
{
    Json m = {{"cpu", cpu_name()}};
    utsname system;
    if (uname(&system) == 0) {
        const std::string release = system.release;
        m["machine"] = system.machine;
        /* of a version what all call it: the rest says whose machine it is */
        m["system"] = std::string(system.sysname) + " " + release.substr(0, release.find('-'));
    }
#ifdef _SC_NPROCESSORS_ONLN /* POSIX has not got it, most systems do */
    m["cpus"] = sysconf(_SC_NPROCESSORS_ONLN);
#endif
    m["caches"] = caches();
    m["paths"] = Json::array();
    for (int i = 0; i < NRG_ISA_COUNT; i++)
        if (nrg_isa_supported((nrg_isa)i))
            m["paths"].push_back(nrg_isa_name((nrg_isa)i));
#ifdef __clang__
    m["compiler"] = "clang " __clang_version__;
#else
    m["compiler"] = "gcc " __VERSION__;
#endif
    m["options"] = REPORT_OPTIONS;
    m["nrg"] = nrg_version();
    m["numbers"] = nrg_numbers_version();
    m["active"] = nrg_isa_name(nrg_isa_active());
    char date[32];
    const time_t now = time(nullptr);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    m["date"] = date;
    const std::string load = first_line("/proc/loadavg");
    if (!load.empty())
        m["load"] = strtod(load.c_str(), nullptr);
    return m;
}

/* ---- memory ---- */

std::vector<size_t> report_sets()
{
    size_t data[3] = {0, (size_t)32 << 10, nrg_l2_bytes() ? nrg_l2_bytes() : (size_t)512 << 10}; /* by level */
    for (const Json &c : caches())
        if (const size_t level = c["level"]; level < 3 && c.contains("bytes") && c.value("type", "") != "Instruction")
            data[level] = c["bytes"];
    return {data[1] / 2, data[2] / 2, (size_t)64 << 20, (size_t)1 << 30};
}

Json report_bandwidth(nrg_isa isa, size_t bytes, double seconds)
{
    enum { READ = 1, COPY = 2 };
    constexpr size_t ROWS = 4, PAGE = 4096;
    alignas(64) static char sum[LIMIT_ROW_STEP];
    const size_t half = bytes / 2 / (ROWS * LIMIT_ROW_STEP) * (ROWS * LIMIT_ROW_STEP);
    std::vector<char> memory(2 * half + PAGE, 1);
    char *const from = memory.data() + (PAGE - (uintptr_t)memory.data() % PAGE) % PAGE;
    std::vector<Contender> field;
    const auto add = [&](limit_run *run, char *to, size_t moved, int limit) {
        limit_job job = {};
        job.in[0] = from;
        job.out[0] = to;
        job.rows = ROWS;
        job.row_bytes = moved / ROWS;
        std::array<limit_job, BENCH_PLACEMENTS> jobs;
        jobs.fill(job);
        field.push_back({.run = batch_of(run, jobs), .limit = limit});
    };
    std::set<limit_run *> tried; /* loops that differ in their stores read alike */
    for (const limit_loop *loop = limit_loops_of(isa); loop->name; loop++) {
        if (tried.insert(loop->read[0]).second)
            add(loop->read[0], sum, 2 * half, READ);
        add(loop->run[limit_run_index(1, 0, 0)], from + half, half, COPY);
    }
    measure(field, seconds, bytes);
    double least[1 + COPY] = {};
    for (const Contender &c : field)
        least[c.limit] = least[c.limit] > 0 ? std::min(least[c.limit], c.ns) : c.ns;
    const auto speed = [&](int limit) { return report_digits(2 * (double)half / least[limit]); };
    return {{"path", nrg_isa_name(isa)}, {"bytes", bytes}, {"read", speed(READ)}, {"copy", speed(COPY)}};
}

} // namespace bench
