/* --scan SEED CASES: ops, types, shapes and layouts that nobody chose, each against rows that suit vectors and against AVX2.
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "../report/report.h"
#include "../scan.h"
#include "modes.h"

namespace bench
{

/* Of one case: a few dozen rounds of short calls, three of long ones. */
static constexpr double usual_seconds = 0.01;
enum { ROUNDS_MIN = 3 };

/* What a case is judged by. A ratio beyond its limit is measured twice more, and the least of the three counts: noise seldom hits
 * the same case three times. */
enum Ratio {
    LONG_ROW,   /* time per element / that of the reference; rows of at least 64 elements */
    SHORT_ROW,  /* time / that of rows of 64 elements; rows of fewer */
    OTHER_PATH, /* time / that on the other path */
    RATIOS
};
enum { REPEATS = 2, WORST = 20 };
static constexpr double limit[RATIOS] = {1.5, 1.5, 1.1};

struct Result {
    size_t number;
    double ns = 0, reference_ns = 0, other_ns = 0; /* of a call */
    double ratio[RATIOS] = {};                     /* 0: none */
};

/* A case's call, which begins each batch with the same data: fills an input again whose place an output takes. */
class Placed
{
  public:
    Placed(const bench_case &c, const bench_memory &m) : layout_(c.layout), memory_(m), call_(c, m) {}

    void before()
    {
        for (const auto &place : layout_->of)
            if (place.over)
                bench_memory_refill(&memory_, place.over - 1);
        bench_call_before(&call_);
    }

    Contender contender()
    {
        Contender c = call_.contender();
        c.before = [this] { before(); };
        return c;
    }

    /* After the measurement: a refused call would be very fast. */
    void require_ok()
    {
        before();
        for (int phase = 0; phase < bench_call_phases(&call_); phase++)
            if (const nrg_status status = bench_call_share(&call_, 0, phase, 0, 1))
                throw std::runtime_error(nrg_status_string(status));
    }

  private:
    const bench_layout *layout_;
    const bench_memory &memory_;
    Call call_;
};

/* Dense bytes of a case: elements, in which every operand counts, as few ops have matrices beside their rows. */
static double work_of(bench_case c)
{
    c.layout = nullptr;
    return (double)bench_case_bytes(&c);
}

class Scan
{
  public:
    explicit Scan(const bench_args &args) : args_(args)
    {
        if (!bench_scan_ops_make(&ops_, &args) || !ops_.count)
            throw std::runtime_error(ops_.of ? "no op has these names" : "not enough memory");
        choose_paths();
    }
    ~Scan() { free(ops_.of); }

    void run(size_t number)
    {
        bench_scan_case drawn;
        draw(drawn, number);
        try {
            Result r = measured(drawn, number);
            const auto is_beyond = [&](int i) { return r.ratio[i] > limit[i]; };
            for (int i = 0; i < REPEATS && (is_beyond(LONG_ROW) || is_beyond(SHORT_ROW) || is_beyond(OTHER_PATH)); i++) {
                const Result again = measured(drawn, number);
                for (int k = 0; k < RATIOS; k++)
                    r.ratio[k] = std::min(r.ratio[k], again.ratio[k]);
            }
            results_.push_back(r);
        } catch (const std::runtime_error &wrong) {
            printf("%zu: %s: %s\n", number, names_of(drawn, ", ").c_str(), wrong.what());
            refused_++;
        }
    }

    void print_ratios()
    {
        print_ratio(LONG_ROW,
                    "Rows of at least 64 elements: time per element / that of the next multiple of 64, dense and aligned");
        print_ratio(SHORT_ROW, "Rows of fewer: time of a row / that of a row of 64 elements, dense and aligned");
        print_ratio(OTHER_PATH, text("All: time on %s / time on %s", nrg_isa_name(best_), nrg_isa_name(other_)));
    }

    size_t print_sum(double seconds) const
    {
        printf("\n%zu cases of %zu ops in %.0f s, %zu refused\n", results_.size(), ops_.count, seconds, refused_);
        return refused_;
    }

  private:
    /* The path to compare and the one to compare it with. */
    void choose_paths()
    {
        best_ = other_ = nrg_isa_active();
        for (int isa = 0; args_.path && isa < NRG_ISA_COUNT; isa++)
            if (admits(args_, (nrg_isa)isa))
                best_ = other_ = (nrg_isa)isa;
        if (best_ == NRG_ISA_AVX512 && nrg_isa_supported(NRG_ISA_AVX2))
            other_ = NRG_ISA_AVX2;
        else
            printf("SKIP: comparison with AVX2: the path is %s, not AVX-512\n", nrg_isa_name(best_));
    }

    /* A drawn case points to its own layout, so that it cannot be a result. */
    void draw(bench_scan_case &drawn, size_t number) const
    {
        bench_scan_draw(&drawn, &ops_, &args_, args_.scan_seed, number);
        drawn.c.isa = drawn.reference.isa = best_;
    }

    static std::string names_of(const bench_scan_case &drawn, const char *between)
    {
        char layout[BENCH_LAYOUT_MAX];
        bench_scan_layout_name(&drawn, layout);
        return name_of(drawn.c) + between + layout;
    }

    Result measured(const bench_scan_case &drawn, size_t number) const
    {
        /* the case on either path shares memory; the reference has its own, since a family fills some operands to suit a shape */
        const Memory memory(&drawn.c, 1), reference_memory(&drawn.reference, 1);
        std::vector<std::unique_ptr<Placed>> calls;
        std::vector<Contender> field;
        calls.push_back(std::make_unique<Placed>(drawn.c, memory));
        calls.push_back(std::make_unique<Placed>(drawn.reference, reference_memory));
        if (other_ != best_) {
            bench_case on_other = drawn.c;
            on_other.isa = other_;
            calls.push_back(std::make_unique<Placed>(on_other, memory));
        }
        for (const auto &call : calls)
            field.push_back(call->contender());
        measure(field, args_.seconds > 0 ? args_.seconds : usual_seconds, bench_case_bytes(&drawn.c), ROUNDS_MIN);
        for (const auto &call : calls)
            call->require_ok();

        Result r = {.number = number, .ns = field[0].ns, .reference_ns = field[1].ns};
        if (drawn.row < BENCH_SCAN_STEP)
            r.ratio[SHORT_ROW] = ratio(field[0], field[1]);
        else
            r.ratio[LONG_ROW] = ratio(field[0], field[1]) * work_of(drawn.reference) / work_of(drawn.c);
        if (other_ != best_) {
            r.other_ns = field[2].ns;
            r.ratio[OTHER_PATH] = ratio(field[0], field[2]);
        }
        return r;
    }

    void print_ratio(Ratio which, const std::string &of)
    {
        std::vector<Result> r;
        std::copy_if(results_.begin(), results_.end(), std::back_inserter(r),
                     [&](const Result &x) { return x.ratio[which] > 0; });
        std::sort(r.begin(), r.end(), [&](const Result &a, const Result &b) { return a.ratio[which] > b.ratio[which]; });
        const size_t n = r.size();
        if (!n)
            return;
        const auto quantile = [&](double part) { return r[std::min((size_t)((1 - part) * (double)n), n - 1)].ratio[which]; };
        const auto beyond = [&](double most) {
            const auto count = std::count_if(r.begin(), r.end(), [&](const Result &x) { return x.ratio[which] > most; });
            return text("%zu (%.1f %%) beyond %.1f", (size_t)count, 100.0 * (double)count / (double)n, most);
        };
        title(args_, of);
        printf("%zu cases: median %.2f, 90 %% %.2f, 99 %% %.2f, worst %.2f; %s, %s\n", n, quantile(0.5), quantile(0.9),
               quantile(0.99), r[0].ratio[which], beyond(1.1).c_str(), beyond(1.5).c_str());
        puts(" ratio    case      time   against");
        for (size_t i = 0; i < n && i < WORST; i++) {
            const double against = which == OTHER_PATH ? r[i].other_ns : r[i].reference_ns;
            bench_scan_case drawn;
            draw(drawn, r[i].number);
            printf("%6.2f  %6zu  %8s  %8s  %s\n", r[i].ratio[which], r[i].number, time_text(r[i].ns).c_str(),
                   time_text(against).c_str(), names_of(drawn, "  ").c_str());
        }
    }

    const bench_args &args_;
    bench_scan_ops ops_ = {};
    nrg_isa best_, other_; /* the same: there is no other */
    std::vector<Result> results_;
    size_t refused_ = 0;
};

int scan_mode(const bench_args &args)
try {
    using clock = std::chrono::steady_clock;
    Scan scan(args);
    const size_t cases = args.scan_only ? 1 : args.scan_cases;
    const auto begun = clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(clock::now() - begun).count(); };
    for (size_t i = 0; i < cases; i++) {
        const double done = (double)i / (double)cases;
        report_progress(done, done > 0 ? seconds() * (1 - done) / done : 0, "scan");
        scan.run(args.scan_only ? args.scan_only : i + 1);
    }
    report_progress_end();
    scan.print_ratios();
    return scan.print_sum(seconds()) != 0;
} catch (const std::runtime_error &wrong) {
    return nothing(wrong.what());
}

} // namespace bench
