/* nrg-two-builds: the cases of nrg-bench with two builds of the library in one program, called alternately. Two runs of nrg-bench
 * would be two moments of a machine.
 *
 *   nrg-two-builds BEFORE.so AFTER.so [OPTION ...]     modules of case_module.c, in two files; scripts/two-builds.sh builds them
 *
 *   --path PATH        avx2, ...; the best one by default
 *   --only REGEX       cases whose names match this POSIX extended expression
 *   --seconds S        of a case (0.1). 0: compares bits only
 *   --limit X          counts cases with a speedup below X as slower (0.9)
 *   --bits-differ OP   does not compare bits of this op: KERNEL or KERNEL/OP of a case's name. Repeatable
 *   --slower FILE      runs only the cases that FILE names, if it exists, and writes the slower ones to it
 *
 * A figure is a speedup: time before / time after. Exits with 1 if bits differ.
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <string>

#include "case_module.h"
#include "measure.h"

enum { BEFORE, AFTER, SIDES, PAGE = 4096, MOST_PLACEMENTS = 16 };

static const char *const side_name[SIDES] = {"before", "after"};

[[noreturn]] static void die(const std::string &what, const char *why)
{
    fprintf(stderr, "nrg-two-builds: %s: %s\n", what.c_str(), why);
    exit(2);
}

/* ---- options ---- */

struct Options {
    const char *path = nullptr, *slower = nullptr;
    std::optional<std::regex> only;
    double seconds = 0.1, limit = 0.9;
    std::set<std::string> differ;
    std::optional<std::set<std::string>> names; /* those in the file */
};

static double number(const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0))
        die(text, "not a number");
    return value;
}

static Options parse(char **argv)
{
    Options o;
    const std::map<std::string, std::function<void(const char *value)>> known = {
        {"--path", [&](const char *value) { o.path = value; }},
        {"--slower", [&](const char *value) { o.slower = value; }},
        {"--seconds", [&](const char *value) { o.seconds = number(value); }},
        {"--limit", [&](const char *value) { o.limit = number(value); }},
        {"--bits-differ", [&](const char *value) { o.differ.insert(value); }},
        {"--only",
         [&](const char *value) {
             if (o.only)
                 die(value, "--only is given twice");
             try {
                 o.only.emplace(value, std::regex::extended | std::regex::nosubs);
             } catch (const std::regex_error &) {
                 die(value, "not a regular expression");
             }
         }},
    };
    for (; *argv; argv += 2) {
        const auto option = known.find(argv[0]);
        if (option == known.end() || !argv[1])
            die(argv[0], "no such option, or no value");
        option->second(argv[1]);
    }
    if (std::ifstream file(o.slower ? o.slower : ""); file.is_open())
        o.names.emplace(std::istream_iterator<std::string>(file), std::istream_iterator<std::string>());
    return o;
}

static bool is_chosen(const Options &o, const std::string &name)
{
    return (!o.only || std::regex_search(name, *o.only)) && (!o.names || o.names->count(name));
}

/* A case's name is KERNEL/DTYPE/PATH/OP/SHAPE. */
static bool may_differ(const Options &o, const std::string &name)
{
    const size_t kernel = name.find('/'), op = name.find('/', name.find('/', kernel + 1) + 1), shape = name.find('/', op + 1);
    return o.differ.count(name.substr(0, kernel)) || o.differ.count(name.substr(0, kernel) + name.substr(op, shape - op));
}

/* ---- a case that both sides have ---- */

static const case_module *load(const char *file)
{
    const std::unique_ptr<char, void (*)(void *)> absolute(realpath(file, nullptr),
                                                           free); /* a name without a slash is searched elsewhere */
    void *library = dlopen(absolute ? absolute.get() : file, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        die(file, dlerror());
    const auto *module = static_cast<const case_module *>(dlsym(library, "bench_case_module"));
    if (!module)
        die(file, "no module of cases");
    if (module->version != CASE_MODULE_VERSION || module->placements > MOST_PLACEMENTS)
        die(file, "a module of another interface");
    return module;
}

/* An operand of one side or both, and its memory, which both work in. */
struct Slot {
    case_operand operand;
    const case_module *module; /* whose operand this is */
    std::unique_ptr<char, void (*)(void *)> slab{nullptr, free};
    size_t slab_bytes = 0;
};

class Pair
{
  public:
    Pair(const case_module *const module[SIDES], size_t before, size_t after)
        : module_{module[BEFORE], module[AFTER]}, index_{before, after}
    {
        size_t tensors[SIDES] = {0, 0};
        for (int side = 0; side < SIDES; side++) {
            case_operand operand[CASE_OPERANDS];
            const size_t count = module_[side]->operands(index_[side], operand);
            for (size_t i = 0; i < count; i++) {
                own_[side].push_back({slot_for(side, operand[i]), operand[i].is_fixed});
                tensors[side] += operand[i].role != CASE_WORKSPACE;
            }
        }
        other_operands_ |= tensors[BEFORE] != tensors[AFTER];
        for (Slot &s : slots_) {
            s.slab_bytes = s.module->slab_bytes(s.operand.bytes);
            s.slab.reset(static_cast<char *>(aligned_alloc(PAGE, s.slab_bytes)));
            if (!s.slab)
                die("memory", "not enough");
        }
    }

    bool has_other_operands() const { return other_operands_; }

    /* Runs both sides once, from the same contents of memory. Returns whether their outputs are equal. */
    bool has_equal_bits() const
    {
        std::vector<std::string> result[SIDES];
        for (int side = 0; side < SIDES; side++) {
            for (size_t k = 0; k < slots_.size(); k++)
                slots_[k].module->fill(&slots_[k].operand, 12345u + 777u * (unsigned)k, slots_[k].slab.get(),
                                       slots_[k].slab_bytes);
            bind(side);
            if (const char *wrong = module_[side]->call(0))
                die(module_[side]->name(index_[side]), wrong);
            for (const Slot &s : slots_)
                if (s.operand.role == CASE_OUTPUT)
                    result[side].emplace_back(s.slab.get(), s.slab_bytes);
        }
        return !other_operands_ && result[BEFORE] == result[AFTER];
    }

    std::vector<bench::Contender> measure(double seconds) const
    {
        std::vector<bench::Contender> both = {{.run = module_[BEFORE]->run}, {.run = module_[AFTER]->run}};
        bench::measure(both, seconds, module_[AFTER]->bytes(index_[AFTER]));
        return both;
    }

  private:
    /* The slot of an operand that the other side has as well; otherwise a new one. */
    size_t slot_for(int side, const case_operand &operand)
    {
        const bool is_tensor = operand.role != CASE_WORKSPACE;
        for (size_t k = 0; side == AFTER && k < slots_.size(); k++) {
            case_operand &other = slots_[k].operand;
            if (slots_[k].module != module_[BEFORE] || strcmp(other.name, operand.name) != 0 || other.part != operand.part)
                continue;
            other_operands_ |= is_tensor && other.bytes != operand.bytes;
            if (operand.bytes > other.bytes)
                slots_[k] = {operand, module_[side]};
            return k;
        }
        other_operands_ |= side == AFTER && is_tensor;
        slots_.push_back({operand, module_[side]});
        return slots_.size() - 1;
    }

    void bind(int side) const
    {
        for (unsigned placement = 0; placement < module_[side]->placements; placement++) {
            char *at[CASE_OPERANDS];
            for (size_t i = 0; i < own_[side].size(); i++) {
                const auto [k, is_fixed] = own_[side][i];
                at[i] = slots_[k].slab.get() + module_[AFTER]->place(k, is_fixed ? 0 : placement);
            }
            module_[side]->bind(index_[side], placement, at);
        }
    }

    const case_module *module_[SIDES];
    size_t index_[SIDES];
    std::vector<Slot> slots_;
    std::vector<std::pair<size_t, int>> own_[SIDES]; /* a side's operands: slots, and whether they are fixed */
    bool other_operands_ = false;
};

/* ---- the lines ---- */

struct Results {
    std::vector<std::pair<double, std::string>> speedups;
    std::vector<std::string> slower;
    size_t unequal = 0, not_compared = 0, not_compared_equal = 0;
};

static void line(const Pair &p, const std::string &name, const Options &o, Results &r)
{
    double speedup = 0;
    const bool equal = p.has_equal_bits(), differ = may_differ(o, name);
    r.unequal += !equal && !differ;
    r.not_compared += differ;
    r.not_compared_equal += differ && equal;
    printf("%-56s", name.c_str());
    if (o.seconds > 0) {
        const std::vector<bench::Contender> by = p.measure(o.seconds);
        speedup = bench::ratio(by[BEFORE], by[AFTER]);
        if (speedup < o.limit)
            r.slower.push_back(name);
        printf("  %11.1f  %11.1f  %6.3f", by[BEFORE].ns, by[AFTER].ns, speedup);
    }
    r.speedups.emplace_back(speedup, name);
    puts(equal ? "" : p.has_other_operands() ? "  other operands" : differ ? "  other bits, as expected" : "  OTHER BITS");
    fflush(stdout);
}

static void print_summary(Results &r, const Options &o)
{
    const size_t count = r.speedups.size();
    if (o.seconds > 0) {
        double logs = 0;
        std::vector<double> speedups;
        for (const auto &[speedup, name] : r.speedups) {
            logs += log(speedup);
            speedups.push_back(speedup);
        }
        const auto [worst, best] = std::minmax_element(r.speedups.begin(), r.speedups.end());
        printf("worst  %.3f  %s\nbest   %.3f  %s\n", worst->first, worst->second.c_str(), best->first, best->second.c_str());
        printf("%zu cases: geometric mean %.3f, median %.3f, %zu below %g\n", count, exp(logs / (double)count),
               bench::median(speedups), r.slower.size(), o.limit);
    }
    printf("%zu of %zu cases have other bits", r.unequal, count - r.not_compared);
    if (r.not_compared)
        printf("; not compared: %zu, of which %zu have the same bits", r.not_compared, r.not_compared_equal);
    putchar('\n');
}

static void write_names(const std::vector<std::string> &names, const char *file)
{
    std::ofstream to(file);
    for (const std::string &name : names)
        to << name << '\n';
    to.close();
    if (!to)
        die(file, "cannot be written");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        die("usage", "nrg-two-builds BEFORE.so AFTER.so [OPTION ...]");
    const Options o = parse(argv + 3);
    const case_module *module[SIDES];
    const char *path[SIDES];
    std::map<std::string, size_t> index[SIDES];
    for (int side = 0; side < SIDES; side++) {
        module[side] = load(argv[1 + side]);
        path[side] = module[side]->open(o.path);
        if (!path[side])
            die(argv[1 + side], "this build or this CPU lacks the path");
        for (size_t i = 0; i < module[side]->count(); i++)
            index[side].emplace(module[side]->name(i), i);
    }
    if (module[BEFORE] == module[AFTER])
        die(argv[2], "the same module twice: give two files");
    if (strcmp(path[BEFORE], path[AFTER]) != 0)
        die(argv[2], "has another best path: give --path");

    printf("%s: before %s, after %s\n%-56s", path[BEFORE], module[BEFORE]->library(), module[AFTER]->library(), "");
    if (o.seconds > 0)
        printf("  %11s  %11s  %s", "before, ns", "after, ns", "speedup");
    putchar('\n');
    Results r;
    for (size_t i = 0; i < module[AFTER]->count(); i++) {
        const std::string name = module[AFTER]->name(i);
        const auto before = index[BEFORE].find(name);
        if (before != index[BEFORE].end() && is_chosen(o, name))
            line(Pair(module, before->second, i), name, o, r);
    }
    for (int side = 0; side < SIDES; side++) { /* the cases that one side lacks */
        size_t lacking = 0;
        for (size_t i = 0; i < module[side]->count(); i++) {
            const std::string name = module[side]->name(i);
            if (index[!side].count(name) || !is_chosen(o, name))
                continue;
            printf("%-56s  only %s\n", name.c_str(), side_name[side]);
            lacking++;
        }
        if (lacking)
            printf("%zu cases only %s\n", lacking, side_name[side]);
    }
    if (r.speedups.empty())
        die("cases", "none is chosen");
    print_summary(r, o);
    if (o.slower)
        write_names(r.slower, o.slower);
    return r.unequal != 0;
}
