/* Bare loops over the memory of a case.
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <stdexcept>

#include "share.h"
#include "paths.h"

/* Nothing stands in for a path without loops: against the scalar ones its kernels would look better than they are. */
const limit_loop *limit_loops_of(nrg_isa isa)
{
#define LOOPS_OF(path, value, unused)                                                                                            \
    if (isa == (value))                                                                                                          \
        return limit_loops_##path;
    NRG_EACH_PATH(LOOPS_OF, )
    return nullptr;
}

namespace bench
{

/* The operands of a case as a bare loop's, in every placement, and how many there are of a kind. */
enum { KINDS = BENCH_ROW_OUT + 1 };
struct Jobs {
    std::array<limit_job, BENCH_PLACEMENTS> of{};
    int count[KINDS] = {};
};

static const std::runtime_error no_loop("no limit loop for these operands");

/* In one placement. */
static void add_operands(limit_job *job, int count[KINDS], const bench_case &c, const bench_memory &m, unsigned placement)
{
    const nrg_call *call = bench_function_of(&c)->call;
    char *aside = nullptr;
    std::fill(count, count + KINDS, 0);
    for (int i = 0; i < BENCH_OPERANDS; i++) {
        const bench_operand o = bench_operand_of(&c, i);
        char *const p = bench_memory_at(&m, i, placement);
        if (!o.bytes || (o.kind == BENCH_FEW && !(i < call->operand_count && call->operands[i].role == NRG_OUT)))
            continue;
        const auto put = [&](auto *place, int most) {
            if (count[o.kind] == most)
                throw no_loop;
            place[count[o.kind]++] = p;
        };
        if (o.kind == BENCH_IN)
            put(job->in, LIMIT_INS);
        else if (o.kind == BENCH_OUT)
            put(job->out, LIMIT_OUTS);
        else if (o.kind == BENCH_ROW_IN)
            put(job->row_in, LIMIT_ROW_INS);
        else if (o.kind == BENCH_ROW_OUT)
            put(job->row_out, LIMIT_ROW_OUTS);
        else if (o.kind == BENCH_BYTES_IN)
            job->bytes_in = p;
        else if (o.kind == BENCH_BYTES_OUT)
            job->bytes_out = p;
        else /* slabs have a page more than is asked for */
            aside = p;
        if (o.kind == BENCH_BYTES_IN || o.kind == BENCH_BYTES_OUT)
            job->bytes = o.bytes;
    }
    const int ins = count[BENCH_IN], outs = count[BENCH_OUT];
    bool fits = ins > 0;
    if (job->bytes_out)
        fits = ins > 0 && ins <= LIMIT_BYTES_INS && outs <= LIMIT_BYTES_OUTS;
    else if (job->bytes_in)
        fits = !ins && outs == 1;
    else if (!outs) { /* what is read comes to something small: the loops that only read leave their sum there */
        job->out[0] = aside;
        fits = aside && ins > 0 && ins <= LIMIT_FIRST_INS;
    }
    if (!fits)
        throw no_loop;
}

/* Bytes without a row of their own as four rows, which loops with four streams need, or as one. Up to a step more: slabs have
 * room for it. */
static void lay_out(limit_job *job, size_t bytes)
{
    bytes = (bytes + LIMIT_ROW_STEP - 1) / LIMIT_ROW_STEP * LIMIT_ROW_STEP;
    job->rows = bytes % (4 * LIMIT_ROW_STEP) == 0 ? 4 : 1;
    job->row_bytes = bytes / job->rows;
}

static Jobs jobs_of(const bench_case &c, const bench_memory &m)
{
    Jobs jobs;
    for (unsigned p = 0; p < BENCH_PLACEMENTS; p++) {
        limit_job *job = &jobs.of[p];
        job->rows = c.shape.rows;
        job->row_bytes = c.shape.dim * nrg_dtype_size(c.dtype);
        job->row_out_bytes = c.shape.dim * sizeof(float);
        const bool is_step = job->row_bytes % LIMIT_ROW_STEP == 0;
        if (c.shape.channels || !is_step)
            lay_out(job, job->rows * job->row_bytes);
        add_operands(job, jobs.count, c, m, p);
        if (!is_step) /* loops over all rows at once leave out w and b, which are in cache */
            jobs.count[BENCH_ROW_IN] = 0;
    }
    return jobs;
}

/* The loop's instance for these operands; NULL: it has none. */
static limit_run *instance_of(const limit_loop *loop, const Jobs &jobs)
{
    const int ins = jobs.count[BENCH_IN], outs = jobs.count[BENCH_OUT], row_ins = jobs.count[BENCH_ROW_IN];
    if (jobs.of[0].bytes_in)
        return loop->from_bytes;
    if (jobs.of[0].bytes_out)
        return loop->to_bytes[limit_run_index(ins, outs, row_ins)];
    return outs ? loop->run[limit_run_index(ins, outs - 1, row_ins)] : loop->read[ins - 1];
}

/* What is read twice, in every placement: a piece of it, then the same piece of everything; and so on. */
struct Twice {
    std::array<limit_job, BENCH_PLACEMENTS> of{};
    size_t tensors = 0, bytes = 0, piece = 0; /* bytes: of a tensor */
};

static Twice twice_of(const bench_case &c, const bench_memory &m, const Jobs &jobs)
{
    const nrg_call *call = bench_function_of(&c)->call;
    Twice t;
    for (unsigned p = 0; p < BENCH_PLACEMENTS; p++) {
        t.of[p].out[0] = jobs.of[p].out[0];
        t.tensors = 0;
        for (int i = 0; i < call->operand_count; i++)
            if (bench_names(c.family->read_twice, &call->operands[i]) && bench_operand_of(&c, i).bytes) {
                if (t.tensors == LIMIT_FIRST_INS)
                    throw no_loop;
                t.of[p].in[t.tensors++] = bench_memory_at(&m, i, p);
            }
    }
    if (!t.tensors)
        throw std::runtime_error("no operand is read twice");
    t.bytes = bench_shape_elements(c.shape) * nrg_dtype_size(c.dtype);
    t.piece = (bench_case_read_twice(&c) / t.tensors + 4 * LIMIT_ROW_STEP - 1) / (4 * LIMIT_ROW_STEP) * (4 * LIMIT_ROW_STEP);
    return t;
}

/* `bytes` bytes of a job's tensors, from byte `at`. */
static limit_job piece_of(limit_job job, size_t at, size_t bytes)
{
    for (int i = 0; i < LIMIT_INS && job.in[i]; i++)
        job.in[i] += at;
    for (int i = 0; i < LIMIT_OUTS && job.out[i]; i++)
        job.out[i] += at;
    lay_out(&job, bytes);
    return job;
}

static Batch twice_batch(limit_run *read, const Twice &t, limit_run *run, const Jobs &jobs)
{
    return [=, jobs = jobs.of](unsigned placement, size_t calls) {
        for (; calls; calls--)
            for (size_t at = 0; at < t.bytes; at += t.piece) {
                const size_t bytes = std::min(t.bytes - at, t.piece);
                const limit_job first = piece_of(t.of[placement], at, bytes), job = piece_of(jobs[placement], at, bytes);
                read(&first);
                run(&job);
            }
    };
}

std::vector<Bare> bare_loops(const bench_case &c, const bench_memory &m, bool twice, unsigned among)
{
    const limit_loop *loops = limit_loops_of(c.isa);
    if (!loops)
        throw std::runtime_error("no limit loops for this path");
    const Jobs jobs = jobs_of(c, m);
    const Twice t = twice ? twice_of(c, m, jobs) : Twice();
    std::vector<Bare> found;
    for (const limit_loop *loop = loops; loop->name; loop++) {
        limit_run *const run = instance_of(loop, jobs);
        if (run && (!among || among >> (loop - loops) & 1))
            found.push_back({loop, twice ? twice_batch(loop->read[t.tensors - 1], t, run, jobs) : batch_of(run, jobs.of)});
    }
    if (found.empty())
        throw no_loop;
    return found;
}

} // namespace bench
