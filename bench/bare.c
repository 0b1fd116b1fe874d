/* Bare loops over the memory of a case.
 *
 * SPDX-License-Identifier: MIT */
#include "bare.h"
#include "paths.h"

/* Nothing stands in for a path without loops: against the scalar ones its kernels would look better than they are. */
#define LOOPS_OF(path, isa, unused) [isa] = limit_loops_##path,
static const limit_loop *const loops[NRG_ISA_COUNT] = {NRG_EACH_PATH(LOOPS_OF, )};

const limit_loop *limit_loops_of(nrg_isa isa) { return (unsigned)isa < NRG_ISA_COUNT ? loops[isa] : NULL; }

/* Tensors and rows of a kind that loops have. */
enum { KINDS = BENCH_ROW_OUT + 1 };
static const int most[KINDS] = {
    [BENCH_IN] = LIMIT_INS, [BENCH_OUT] = LIMIT_OUTS, [BENCH_ROW_IN] = LIMIT_ROW_INS, [BENCH_ROW_OUT] = LIMIT_ROW_OUTS};

/* The operands of a case as a bare loop's, by kind. 0: more of a kind than there are loops for. */
static int bare_job(limit_job *job, const bench_case *c, const bench_memory *m, unsigned placement, int count[KINDS])
{
    const nrg_call *call = bench_function_of(c)->call;
    char *aside = NULL;
    for (int i = 0; i < KINDS; i++)
        count[i] = 0;
    for (int i = 0; i < BENCH_OPERANDS; i++) {
        const bench_operand o = bench_operand_of(c, i);
        char *p = bench_memory_at(m, i, placement);
        if (!o.bytes || (o.kind == BENCH_FEW && !(i < call->operand_count && call->operands[i].role == NRG_OUT)))
            continue;
        if (o.kind == BENCH_ASIDE || o.kind == BENCH_FEW) { /* slabs have a page more than is asked for */
            aside = p;
            continue;
        }
        if (o.kind == BENCH_BYTES_IN || o.kind == BENCH_BYTES_OUT) {
            if (o.kind == BENCH_BYTES_IN)
                job->bytes_in = p;
            else
                job->bytes_out = p;
            job->bytes = o.bytes;
            continue;
        }
        if (count[o.kind] == most[o.kind])
            return 0;
        int n = count[o.kind]++;
        if (o.kind == BENCH_IN)
            job->in[n] = p;
        else if (o.kind == BENCH_OUT)
            job->out[n] = p;
        else if (o.kind == BENCH_ROW_IN)
            job->row_in[n] = p;
        else
            job->row_out[n] = p;
    }
    if (job->bytes_out)
        return count[BENCH_IN] > 0 && count[BENCH_IN] <= LIMIT_BYTES_INS && count[BENCH_OUT] <= LIMIT_BYTES_OUTS;
    if (job->bytes_in)
        return !count[BENCH_IN] && count[BENCH_OUT] == 1;
    if (!count[BENCH_OUT]) { /* what is read comes to something small: the loops that only read leave their sum there */
        job->out[0] = aside;
        return aside && count[BENCH_IN] > 0 && count[BENCH_IN] <= LIMIT_FIRST_INS;
    }
    return count[BENCH_IN] > 0;
}

/* Bytes without a row of their own as four rows, which loops with four streams need, or as one. Up to a step more: slabs have
 * room for it. */
static void lay_out(limit_job *job, size_t bytes)
{
    bytes = (bytes + LIMIT_ROW_STEP - 1) / LIMIT_ROW_STEP * LIMIT_ROW_STEP;
    job->rows = bytes % (4 * LIMIT_ROW_STEP) == 0 ? 4 : 1;
    job->row_bytes = bytes / job->rows;
}

const char *bench_bare_bind(bench_bare *bare, const limit_loop *loop, const bench_case *c, const bench_memory *m)
{
    int count[KINDS];
    bare->loop = loop;
    for (unsigned p = 0; p < BENCH_PLACEMENTS; p++) {
        limit_job *job = &bare->job[p];
        *job = (limit_job){.rows = c->shape.rows, .row_out_bytes = c->shape.dim * sizeof(float)};
        job->row_bytes = c->shape.dim * nrg_dtype_size(c->dtype);
        const int is_step = job->row_bytes % LIMIT_ROW_STEP == 0;
        if (c->shape.channels || !is_step)
            lay_out(job, job->rows * job->row_bytes);
        if (!bare_job(job, c, m, p, count))
            return "no limit loop for these operands";
        if (!is_step) /* loops over all rows at once leave out w and b, which are in cache */
            count[BENCH_ROW_IN] = 0;
    }
    if (bare->job->bytes_in)
        bare->run = loop->from_bytes;
    else if (bare->job->bytes_out)
        bare->run = loop->to_bytes[limit_run_index(count[BENCH_IN], count[BENCH_OUT], count[BENCH_ROW_IN])];
    else
        bare->run = count[BENCH_OUT] ? loop->run[limit_run_index(count[BENCH_IN], count[BENCH_OUT] - 1, count[BENCH_ROW_IN])]
                                     : loop->read[count[BENCH_IN] - 1];
    return NULL;
}

void bench_bare_run(void *bare, unsigned placement, size_t calls)
{
    const bench_bare *b = bare;
    const limit_job *job = &b->job[placement];
    void (*run)(const limit_job *) = b->run;
    for (; calls; calls--)
        run(job);
}

const char *bench_bare_bind_twice(bench_bare *bare, const limit_loop *loop, const bench_case *c, const bench_memory *m)
{
    const char *wrong = bench_bare_bind(bare, loop, c, m);
    if (wrong)
        return wrong;
    size_t tensors = 0;
    for (unsigned p = 0; p < BENCH_PLACEMENTS; p++) {
        bare->first[p] = (limit_job){.out = {bare->job[p].out[0]}};
        tensors = 0;
        for (int i = 0; i < BENCH_OPERANDS; i++) {
            if (!(c->family->read_twice >> i & 1 && bench_operand_of(c, i).bytes))
                continue;
            if (tensors == LIMIT_FIRST_INS)
                return "no limit loop for these operands";
            bare->first[p].in[tensors++] = bench_memory_at(m, i, p);
        }
    }
    if (!tensors)
        return "no operand is read twice";
    bare->read = loop->read[tensors - 1];
    bare->bytes = bench_shape_elements(c->shape) * nrg_dtype_size(c->dtype);
    bare->piece = (bench_case_read_twice(c) / tensors + 4 * LIMIT_ROW_STEP - 1) / (4 * LIMIT_ROW_STEP) * (4 * LIMIT_ROW_STEP);
    return bare->piece ? NULL : "nothing is read twice";
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

void bench_bare_run_twice(void *bare, unsigned placement, size_t calls)
{
    const bench_bare *b = bare;
    for (; calls; calls--)
        for (size_t at = 0; at < b->bytes; at += b->piece) {
            size_t bytes = b->bytes - at < b->piece ? b->bytes - at : b->piece;
            limit_job first = piece_of(b->first[placement], at, bytes), job = piece_of(b->job[placement], at, bytes);
            b->read(&first);
            b->run(&job);
        }
}
