/* --scan SEED CASES: ops, types, shapes and layouts that nobody chose, each against rows that suit vectors and against AVX2.
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>

#include "../report/report.h"
extern "C" {
#include "../../check/data.h"
}
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

/* ---- drawing ---- */

enum { ROW_MIN = 32, STEP = 64, BYTES_MIN = 8 << 10, BYTES_MAX = 50 << 20, LINE = 64 };

/* An activation in place of its input shrinks its data with each call of a batch, and subnormal numbers are slow. So only calls
 * that are too long for a batch of many have it. */
enum { ACTIVATED_BYTES_MIN = 512 << 10 };

/* An op to draw, and the types that pass the filters. */
struct Choice {
    const bench_family *family;
    const bench_op *op;
    bool has(const bench_args &args, int dtype) const
    {
        return bench_op_has(op, (nrg_dtype)dtype) && bench_admits(args.dtype, nrg_dtype_name((nrg_dtype)dtype));
    }
};

static std::vector<Choice> choices(const bench_args &args)
{
    std::vector<Choice> found;
    for (size_t i = 0; const bench_family *f = bench_family_at(i); i++)
        for (const bench_op *op = f->ops; op < f->ops + f->op_count; op++) {
            const Choice choice = {f, op};
            if (bench_admits(args.kernel, bench_kernel_of(f)) && bench_admits(args.op, op->name) &&
                (choice.has(args, NRG_F32) || choice.has(args, NRG_F16) || choice.has(args, NRG_BF16)))
                found.push_back(choice);
        }
    return found;
}

static size_t up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }
static size_t least_of(size_t n, size_t most) { return most ? std::min(n, most) : n; }

/* The shape of about so many rows of about so many elements that the op accepts, with the numbers that it has come to. */
static bench_shape shape_for(const bench_case &c, size_t &row, size_t &rows)
{
    if (c.family->scan_shape)
        return c.family->scan_shape(c.op, &row, &rows);
    if (const size_t heads = c.family->scan_heads) {
        row = std::min(up(row, 2), (size_t)BENCH_HEAD_MAX);
        rows = up(rows, heads);
        return BENCH_IMAGES(rows / heads, heads, 1, row);
    }
    if (c.family->flat) {
        row *= rows;
        rows = 1;
    }
    /* whole groups and blocks, and whole sets of interleaved rows */
    const nrg_quant_format format = c.op->format;
    const size_t block = format && !nrg_quant_has_scales(format) ? nrg_quant_block(format) : 1;
    row = up(least_of(row, c.family->scan_row_most), std::max({c.op->row_step, c.op->groups, block}));
    rows = up(least_of(rows, c.family->scan_rows_most), std::max(c.op->rows_step, format ? nrg_quant_rows(format) : 1));
    return BENCH_ROWS(rows, row);
}

/* A case, and the one that it is compared with: its rows are of the next multiple of STEP elements, dense and aligned. What is in
 * place in one is so in the other. The same seed and number give the same case. */
class Drawn
{
  public:
    bench_case c = {}, reference = {};
    size_t row = 1; /* elements */

    Drawn(const std::vector<Choice> &from, const bench_args &args, size_t number, nrg_isa isa)
    {
        uint64_t state = args.scan_seed;
        random_ = sweep_random(&state) ^ number;
        const Choice &choice = from[draw(from.size())];
        c.family = choice.family;
        c.op = choice.op;
        c.dtype = NRG_F32;
        c.isa = isa;
        c.store = NRG_STORE_AUTO;
        const size_t first = draw(3);
        for (int i = 2; i >= 0; i--)
            if (const int dtype = NRG_F32 + (int)(first + i) % 3; choice.has(args, dtype))
                c.dtype = (nrg_dtype)dtype;
        draw_shapes(args.quick);
        draw_places();
        draw_layout();
        c.layout = &layout_;
        reference.layout = &reference_layout_;
    }
    Drawn(const Drawn &) = delete;

    /* The case's name and "x+4 w+12 o=x y/4100": bytes after a cache line's start; an output in an input's place; the stride of
     * rows. */
    std::string names(const char *between) const
    {
        const nrg_call *call = bench_function_of(&c)->call;
        std::string layout;
        for (int i = 0; i < call->operand_count; i++) {
            const auto &place = layout_.of[i];
            if (!place.offset && !place.stride && !place.over)
                continue;
            layout += text("%s%s", layout.empty() ? "" : " ", call->operands[i].name);
            if (place.over)
                layout += text("=%s", call->operands[place.over - 1].name);
            if (place.offset)
                layout += text("+%zu", place.offset);
            if (place.stride && !place.over)
                layout += text("/%zu", place.stride);
        }
        return name_of(c) + between + (layout.empty() ? "dense" : layout);
    }

  private:
    unsigned draw(size_t below) { return sweep_draw(&random_, (unsigned)below); }

    /* Every power of two is as likely. */
    size_t draw_size(size_t least, unsigned octaves)
    {
        const size_t from = least << draw(octaves);
        return from + draw(from);
    }

    /* About so many bytes: an op may round the rows up. */
    void draw_shapes(bool is_quick)
    {
        static constexpr unsigned char multiples[] = {1, 1, 8, STEP};
        row = draw_size(ROW_MIN, 9);
        row = up(row, multiples[draw(sizeof multiples)]);
        const size_t bytes = std::min(draw_size(BYTES_MIN, is_quick ? 5 : 13), (size_t)BYTES_MAX);
        size_t rows = 1;
        c.shape = shape_for(c, row, rows);
        rows = std::max(bytes / (bench_case_bytes(&c) / rows), (size_t)1);
        c.shape = shape_for(c, row, rows);
        reference = c;
        size_t reference_row = up(row, STEP);
        reference.shape = shape_for(c, reference_row, rows);
    }

    void draw_places()
    {
        unsigned taken = 0;
        if (draw(2) || (c.op->activation && bench_case_bytes(&c) < ACTIVATED_BYTES_MIN))
            return;
        for (int out = 0; out < BENCH_OPERANDS; out++)
            for (int in = 0; in < BENCH_OPERANDS; in++)
                if (!(taken >> in & 1) && !layout_.of[out].over && bench_fits_over(&c, out, in) && draw(2)) {
                    layout_.of[out].over = reference_layout_.of[out].over = in + 1;
                    taken |= 1u << in;
                }
    }

    /* Offsets as malloc has them, or any; strides that let rows start anywhere, or at cache lines, as in a view of wider rows. */
    void draw_layout()
    {
        const bool has_offsets = draw(2), is_malloc = draw(2), has_gaps = draw(2), is_view = draw(2);
        const unsigned gap = 1 + draw(STEP - 1);
        for (int i = 0; i < BENCH_OPERANDS; i++) {
            const bench_operand o = bench_operand_of(&c, i);
            if (!o.bytes || !bench_may_move(&c, i))
                continue;
            const size_t unit = is_malloc ? 16 : o.element;
            if (has_offsets)
                layout_.of[i].offset = unit * draw(LINE / unit);
            if (has_gaps && bench_has_stride(&c, i))
                layout_.of[i].stride = is_view ? up(o.row + 1 + draw(o.row), LINE) : o.row + gap * o.element;
        }
        for (auto &place : layout_.of)
            if (place.over)
                place = {0, layout_.of[place.over - 1].stride, place.over};
    }

    uint64_t random_;
    bench_layout layout_ = {}, reference_layout_ = {};
};

/* ---- measuring ---- */

/* A case's call, which begins each batch with the same data: fills an input again whose place an output takes. */
struct Placed : Call {
    const bench_layout *layout;
    const bench_memory &memory;

    Placed(const bench_case &c, const bench_memory &m) : Call(c, m), layout(c.layout), memory(m) {}

    void before()
    {
        for (const auto &place : layout->of)
            if (place.over)
                bench_memory_refill(&memory, place.over - 1);
        bench_call_before(this);
    }

    Contender timed()
    {
        Contender c = contender();
        c.before = [this] { before(); };
        return c;
    }

    /* After the measurement: a refused call would be very fast. */
    void require_ok()
    {
        before();
        if (const char *wrong = bench_try(function, parts[0].part))
            throw std::runtime_error(wrong);
    }
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
    explicit Scan(const bench_args &args) : args_(args), ops_(choices(args))
    {
        if (ops_.empty())
            throw std::runtime_error("no op has these names");
        choose_paths();
    }

    void run(size_t number)
    {
        const Drawn drawn(ops_, args_, number, best_);
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
            printf("%zu: %s: %s\n", number, drawn.names(", ").c_str(), wrong.what());
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
        printf("\n%zu cases of %zu ops in %.0f s, %zu refused\n", results_.size(), ops_.size(), seconds, refused_);
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

    Result measured(const Drawn &drawn, size_t number) const
    {
        /* the case on either path shares memory; the reference has its own, since a family fills some operands to suit a shape */
        const Memory memory(&drawn.c, 1), reference_memory(&drawn.reference, 1);
        std::deque<Placed> calls;
        std::vector<Contender> field;
        calls.emplace_back(drawn.c, memory);
        calls.emplace_back(drawn.reference, reference_memory);
        if (other_ != best_) {
            bench_case on_other = drawn.c;
            on_other.isa = other_;
            calls.emplace_back(on_other, memory);
        }
        for (Placed &call : calls)
            field.push_back(call.timed());
        measure(field, args_.seconds > 0 ? args_.seconds : usual_seconds, bench_case_bytes(&drawn.c), ROUNDS_MIN);
        for (Placed &call : calls)
            call.require_ok();

        Result r = {.number = number, .ns = field[0].ns, .reference_ns = field[1].ns};
        if (drawn.row < STEP)
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
            const Drawn drawn(ops_, args_, r[i].number, best_);
            printf("%6.2f  %6zu  %8s  %8s  %s\n", r[i].ratio[which], r[i].number, time_text(r[i].ns).c_str(),
                   time_text(against).c_str(), drawn.names("  ").c_str());
        }
    }

    const bench_args &args_;
    const std::vector<Choice> ops_;
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
