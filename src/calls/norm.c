/* The public layer of row normalization: checks the arguments once, then calls through the table.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>

#include "../job/norm.h"
#include "../operands/norm.h"
#include "../operands/place.h"
#include "call.h"
#include "norm_formula.h"
#include "norm_quant.h"
#include "planes.h"
#include "quick.h"

#define NRG_MAKE_TABLES
#include "../operands/norm_calls.def"

/* tensors of the planes; bytes and their scales are those of a whole call */
enum { X, Y, Z, O, R, TENSORS, Q = TENSORS, SCALES };

/* Which operands of a call they are: of nrg_norm_forward, nrg_norm_statistics and nrg_norm_elements. */
static const unsigned char operands_of[][TENSORS] = {
    [NRG_NORM_WHOLE] = {NRG_NORM_X, NRG_NORM_Y, NRG_NORM_Z, NRG_NORM_O, NRG_NORM_R},
    [NRG_NORM_SUMS] = {NRG_NORM_STATISTICS_X, NRG_NORM_STATISTICS_Y, NRG_NORM_STATISTICS_Z, 0, NRG_NORM_STATISTICS_R},
    [NRG_NORM_APPLY] = {NRG_NORM_ELEMENTS_X, NRG_NORM_ELEMENTS_Y, NRG_NORM_ELEMENTS_Z, NRG_NORM_ELEMENTS_O, NRG_NORM_ELEMENTS_R},
};

/* A call that is sound: where its operands lie, and which they are (operands_of). */
typedef struct norm_call {
    const nrg_norm_spec *spec;
    const nrg_norm_args *args;
    const nrg_laid *laid;
    const unsigned char *at;
    enum nrg_norm_part part;
} norm_call;

static inline int is_f32(nrg_dtype own, const nrg_norm_spec *s) { return nrg_own_dtype(own, s->dtype) == NRG_F32; }

/* Checks c, for a c_mode that exists, and the weight offset, which needs a w. */
NRG_INLINE int numbers_fit(const nrg_norm_spec *s, const void *w)
{
    if (!nrg_norm_has_numbers(s))
        return 1;
    return fabs(s->c) <= (double)FLT_MAX && (s->c == 0 || s->c_mode == NRG_C_GIVEN) &&
           (s->weight_offset == 0 || (w && fabsf(s->weight_offset) <= FLT_MAX));
}

/* usual, a constant: the options are as constructors leave them. */
NRG_INLINE void fill_job(nrg_norm_job *job, const norm_call *c, int ith, int nth, int usual)
{
    const nrg_norm_spec *s = c->spec;
    const nrg_norm_args *a = c->args;
    const size_t dim = usual ? s->dim : nrg_norm_w_dim(s), groups = usual ? 1 : nrg_norm_groups(s);
    const size_t rows = usual ? a->rows : a->rows * a->rows2 * a->rows3 * s->groups;
    /* field by field: a literal clears all of it first, by a string instruction, which is half of a short row's time */
    const void *x = a->x;
    NRG_IN_REGISTER(x); /* gcc would load it and its stride as a vector, which waits for a caller's store of x alone */
    job->x = x;
    job->y = a->y;
    job->z = usual ? NULL : a->z;
    job->w = a->w;
    job->b = a->b;
    job->o = a->o;
    job->r = a->r;
    job->mean = usual ? NULL : a->mean;
    job->rstd = usual ? NULL : a->rstd;
    job->statistics = NULL;
    job->part = usual ? NRG_NORM_WHOLE : c->part;
    job->from_r = !usual && c->part == NRG_NORM_APPLY && a->r;
    job->o_f32 = 0;
    job->alike = 0;
    job->x_stride = c->laid->stride[c->at[X]][0];
    job->y_stride = c->laid->stride[c->at[Y]][0];
    job->z_stride = c->laid->stride[c->at[Z]][0];
    job->o_stride = c->laid->stride[c->at[O]][0];
    job->r_stride = c->laid->stride[c->at[R]][0];
    job->dim = groups > 1 ? dim / groups : dim;
    job->groups = groups;
    job->row_begin = nrg_share(rows, ith, nth);
    job->row_end = nrg_share(rows, ith + 1, nth);
    job->y_f32 = usual ? s->dtype == NRG_F32 : is_f32(s->y_dtype, s);
    job->r_f32 = usual ? s->dtype == NRG_F32 : is_f32(s->r_dtype, s);
    job->w_f32 = usual ? s->dtype == NRG_F32 : is_f32(s->w_dtype, s);
    job->after = !usual && s->residual_mode == NRG_RESIDUAL_AFTER;
    job->stream = nrg_wants_stream(usual ? NRG_STORE_AUTO : a->store, c->laid->bytes);
    job->gate = usual ? NRG_GATE_NONE : s->gate;
    job->activation = usual ? NRG_ACT_IDENTITY : s->activation;
    set_formula_of(&job->formula, s, usual ? dim : job->dim, usual ? NRG_EPS_MEAN : s->eps_mode);
}

/* Whether operands in rows of one dtype and without gaps lie well; *l is then known. An operand that is absent lies at 0, where
 * no tensor is. */
NRG_INLINE int dense_lies_well(nrg_laid *l, const nrg_norm_spec *s, const nrg_norm_args *a, size_t row)
{
    const uintptr_t x = (uintptr_t)a->x, y = (uintptr_t)a->y, w = (uintptr_t)a->w, b = (uintptr_t)a->b, o = (uintptr_t)a->o,
                    r = (uintptr_t)a->r, any = x | y | w | b | o | r;
    const size_t bytes = a->rows * row, unit = s->dtype == NRG_F32 ? 3 : 1;
    if ((any & unit) != 0 || any >= UINTPTR_MAX / 2 || !(o == x || quick_dense_apart(o, bytes, x, bytes)) ||
        (w && !quick_dense_apart(o, bytes, w, row)) || (b && !quick_dense_apart(o, bytes, b, row)))
        return 0;
    l->bytes = 2 * bytes;
    if (y) {
        if (!(o == y || quick_dense_apart(o, bytes, y, bytes)))
            return 0;
        l->bytes += bytes;
    }
    if (r) {
        if (!(r == x || quick_dense_apart(r, bytes, x, bytes)) || !(r == y || quick_dense_apart(r, bytes, y, bytes)) ||
            !quick_dense_apart(r, bytes, o, bytes) || !quick_dense_apart(r, bytes, w, row) ||
            !quick_dense_apart(r, bytes, b, row))
            return 0;
        l->bytes += bytes;
    }
    l->stride[NRG_NORM_X][0] = l->stride[NRG_NORM_Y][0] = l->stride[NRG_NORM_O][0] = l->stride[NRG_NORM_R][0] = row;
    l->stride[NRG_NORM_Z][0] = 0;
    return 1;
}

/* Rows without gate, groups and statistics, which most calls are: all that is the same of dense and of other ones. Branches that
 * are never taken: a sum of all conditions takes half as many instructions again. */
NRG_INLINE int has_plain_options(const nrg_norm_spec *s, const nrg_norm_args *a)
{
    if (s->size != sizeof *s || a->size != sizeof *a || !a->x || a->rows - 1 >= NRG_PLACE_MOST || s->dim - 1 >= NRG_PLACE_MOST)
        return 0;
    if ((unsigned)s->residual_mode | (unsigned)s->gate | (unsigned)s->activation | (unsigned)s->format | (unsigned)s->rounding |
        s->reserved | a->y_repeat | a->z_repeat | a->reserved)
        return 0;
    if ((uintptr_t)a->packed | (uintptr_t)a->scales | (uintptr_t)a->z | (uintptr_t)a->r_in | (uintptr_t)a->mean |
        (uintptr_t)a->rstd)
        return 0;
    if (s->groups != 1 || a->rows2 != 1 || a->rows3 != 1)
        return 0;
    return (unsigned)s->dtype - NRG_F32 <= NRG_BF16 - NRG_F32 && nrg_norm_is_eps(s->eps) && numbers_fit(s, a->w);
}

/* What such rows have beside that: 0 where they are dense and of one dtype; and where the rest is what constructors leave: of 430
 * instructions of checks and job 270 are left then (callgrind, AVX2). */
NRG_INLINE size_t unlike_dense(const nrg_norm_spec *s, const nrg_norm_args *a)
{
    return (unsigned)s->y_dtype | (unsigned)s->r_dtype | (unsigned)s->w_dtype | (unsigned)a->store | a->x_stride[0] |
           a->y_stride[0] | a->o_stride[0] | a->r_stride[0];
}
NRG_INLINE size_t unlike_usual(const nrg_norm_spec *s)
{
    return (unsigned)s->eps_mode | (unsigned)s->c_mode | (unsigned)s->weights | (unsigned)s->accuracy;
}

/* ---- all other calls ---- */

static const nrg_call *const call_of[] = {&nrg_call_norm_forward, &nrg_call_norm_statistics, &nrg_call_norm_elements};

/* Args without what a part does not look at. */
static nrg_norm_args args_of_part(const nrg_norm_spec *spec, const nrg_norm_args *args, enum nrg_norm_part part)
{
    nrg_norm_args own = *args;
    const int is_after = spec->residual_mode == NRG_RESIDUAL_AFTER;
    if (part == NRG_NORM_SUMS) {
        own.o = NULL;
        own.y = is_after ? NULL : own.y;
        own.r = is_after ? NULL : own.r;
        own.z = spec->gate == NRG_GATE_POST ? NULL : own.z;
    } else if (part == NRG_NORM_APPLY) {
        own.mean = own.rstd = NULL;
        memcpy(&own.r, &own.r_in, sizeof own.r); /* which the job reads there */
        own.x = own.r ? own.r : own.x;           /* for its place only: r is read */
        own.y = own.r && !is_after ? NULL : own.y;
    }
    return own;
}

/* Elements of a row that tiles take, and of a plane whose rows take no longer than the call of a kernel. */
enum { SHORT_ROW = 256, SHORT_PLANE = 1024 };

/* Whether the rows of a plane are the heads of a token, which lie side by side in every tensor and apart from the next token's.
 * Then one call takes all tokens, if there is no residual. Rows of 64 and 128 take 1.02 to 1.25 times as long as dense ones. With
 * a call for each head they take up to 1.3 times as long on Zen 5, and up to 2.5 times on Zen 3, whose L1 has fewer ways (AVX2, 2
 * to 8 heads). */
static int are_heads(const nrg_planes *p, const norm_call *call, const void *const tensor[TENSORS], const size_t row[TENSORS])
{
    if (p->count[1] == 1 || nrg_norm_groups(call->spec) != 1 || call->part != NRG_NORM_WHOLE ||
        call->spec->gate != NRG_GATE_NONE || call->spec->activation != NRG_ACT_IDENTITY || tensor[Y] || tensor[R] ||
        nrg_norm_w_dim(call->spec) > SHORT_ROW)
        return 0;
    for (int i = 0; i < TENSORS; i++)
        if (tensor[i] && (p->stride[i][0] != row[i] || p->stride[i][1] < p->count[0] * row[i]))
            return 0;
    return 1;
}

/* Rows in planes, or groups as rows: where they lie; the job has the strides inside of a plane then. */
NRG_OWN_FRAME void set_planes(nrg_planes *p, nrg_norm_job *job, const norm_call *call)
{
    const nrg_norm_args *a = call->args;
    const nrg_laid *l = call->laid;
    const unsigned char *at = call->at;
    const size_t dim = nrg_norm_w_dim(call->spec), own = dim * (call->spec->dtype == NRG_F32 ? 4 : 2);
    const size_t r_row = dim * (job->r_f32 ? 4 : 2), y_row = dim * (job->y_f32 ? 4 : 2);
    const size_t row[TENSORS] = {[X] = at[X] == at[R] ? r_row : own, [Y] = y_row, [Z] = own, [O] = own, [R] = r_row};
    const void *const tensor[TENSORS] = {a->x, a->y, a->z, a->o, a->r};
    planes_begin(p, nrg_norm_alike(call->spec), a->rows, a->rows2, a->rows3);
    for (unsigned i = 0; i < TENSORS; i++)
        planes_add(p, i, tensor[i], row[i], l->stride[at[i]]);
    if (call->spec->format) {
        planes_add(p, Q, a->packed, 0, l->stride[NRG_NORM_PACKED]);
        planes_add(p, SCALES, a->scales, 0, l->stride[NRG_NORM_SCALES]);
        quant_planes(p);
    } else {
        const int has_order = a->mean || a->rstd || call->part != NRG_NORM_WHOLE;
        if (!has_order)
            planes_sort(p, 0, O);
        planes_fold(p, 0);
        if (are_heads(p, call, tensor, row)) {
            job->groups = p->count[0];
            job->alike = 1;
            planes_drop(p, 0);
        } else if (!has_order && job->groups == 1 && p->count[0] * dim <= SHORT_PLANE && call->spec->gate == NRG_GATE_NONE &&
                   call->spec->activation == NRG_ACT_IDENTITY)
            planes_lengthen(p);
    }
    job->x_stride = p->stride[X][0];
    job->y_stride = p->stride[Y][0];
    job->z_stride = p->stride[Z][0];
    job->o_stride = p->stride[O][0];
    job->r_stride = p->stride[R][0];
}

/* Bytes instead of o. */
static inline void set_quant(nrg_norm_job *job, nrg_norm_quant *quant, const norm_call *call, int ith, int nth)
{
    const nrg_norm_args *const a = call->args;
    job->quant = quant;
    *quant = NRG_NORM_QUANT(call->spec, a, call->laid->stride[NRG_NORM_PACKED][0], call->laid->stride[NRG_NORM_SCALES][0]);
    quant_share(&job->row_begin, &job->row_end, call->spec->format, a->rows * a->rows2 * a->rows3, ith, nth);
}

NRG_OWN_FRAME nrg_status make_job(nrg_norm_job *job, nrg_norm_quant *quant, nrg_planes *planes, enum nrg_norm_part part,
                                  const nrg_norm_spec *s, const nrg_norm_args *args, nrg_row_statistics *statistics, int ith,
                                  int nth)
{
    nrg_laid l;
    const nrg_norm_more more = {statistics};
    const nrg_status status = nrg_lay(&l, call_of[part], (const void *const[]){s, args, &more}, ith, nth);
    if (status != NRG_OK)
        return status;
    const nrg_norm_args own = args_of_part(s, args, part);
    unsigned char at[TENSORS];
    memcpy(at, operands_of[part], sizeof at);
    if (part == NRG_NORM_APPLY && own.r)
        at[X] = at[R];
    const norm_call call = {s, &own, &l, at, part};
    planes->count[1] = 1;
    fill_job(job, &call, ith, nth, 0);
    if (!nrg_norm_is_matrix(s, args->rows2, args->rows3))
        set_planes(planes, job, &call);
    job->statistics = statistics;
    if (part == NRG_NORM_SUMS && job->gate != NRG_GATE_PRE) { /* what comes after the norm */
        job->gate = NRG_GATE_NONE;
        job->activation = NRG_ACT_IDENTITY;
    }
    job->quant = NULL;
    if (s->format)
        set_quant(job, quant, &call, ith, nth);
    return NRG_OK;
}

/* A call for each plane of the share, in a job that is made anew for each: there is no room on the stack for two. */
static void run_planes(nrg_norm_forward_kernel *norm, nrg_norm_job *job, nrg_norm_quant *quant, const nrg_planes *p)
{
    const void *const x = job->x, *const y = job->y, *const z = job->z, *const o = job->o, *const r = job->r;
    float *const mean = job->mean, *const rstd = job->rstd;
    nrg_row_statistics *const statistics = job->statistics;
    const nrg_norm_quant to = job->quant ? *job->quant : (nrg_norm_quant){.q = NULL};
    const size_t each = p->count[0] * job->groups, begin = job->row_begin, end = job->row_end;
    for (size_t plane = begin / each; plane * each < end; plane++) {
        const size_t first = plane * each;
        job->x = planes_at(x, p, X, plane);
        job->y = planes_at(y, p, Y, plane);
        job->z = planes_at(z, p, Z, plane);
        job->o = planes_at(o, p, O, plane);
        if (job->quant) {
            quant->q = planes_at(to.q, p, Q, plane);
            quant->scales = planes_at(to.scales, p, SCALES, plane);
        }
        job->r = planes_at(r, p, R, plane);
        job->mean = mean ? mean + first : NULL;
        job->rstd = rstd ? rstd + first : NULL;
        job->statistics = statistics ? statistics + first : NULL;
        job->row_begin = begin > first ? begin - first : 0;
        job->row_end = end - first < each ? end - first : each;
        norm(job);
    }
}

NRG_TABLES(norm_forward)
NRG_TABLES(norm_gated)
NRG_TABLES(norm_rms)
#ifndef NRG_NO_QUANTIZE
NRG_TABLES(norm_quantized)
#endif

/* The tables of the kernels that a function may need, by dtype. A program is linked with those of the functions it calls. */
typedef struct norm_kernels {
    nrg_norm_forward_kernel *const *plain[3], *const *gated[3], *const *bytes[3];
} norm_kernels;

static const norm_kernels all_kernels = {.plain = {NRG_TABLES_OF(norm_forward)},
#ifndef NRG_NO_QUANTIZE
                                         .bytes = {NRG_TABLES_OF(norm_quantized)},
#endif
                                         .gated = {NRG_TABLES_OF(norm_gated)}};
/* of parts of a pass, which are never plain */
static const norm_kernels part_kernels = {.gated = {NRG_TABLES_OF(norm_gated)}};
/* of the shortcuts below, which have no gate and no format: a program of nrg_rms_norm_f32 takes 162 KB on x86, 265 with rows that
 * have a mean or are exact, and 572 with all of them */
static const norm_kernels f32_kernels = {.plain = {nrg_norm_forward_f32_kernels}},
                          rms_kernels = {.plain = {nrg_norm_rms_f32_kernels}};

static inline nrg_norm_forward_kernel *const *const *kernels_of(const nrg_norm_job *job, const norm_kernels *kernels)
{
    return job->quant && kernels->bytes[0] ? kernels->bytes : nrg_norm_is_gated(job) ? kernels->gated : kernels->plain;
}

NRG_OWN_FRAME nrg_status forward(enum nrg_norm_part part, const nrg_norm_spec *spec, const nrg_norm_args *args,
                                 nrg_row_statistics *statistics, const norm_kernels *kernels, int ith, int nth)
{
    nrg_norm_job job;
    nrg_norm_quant quant;
    nrg_planes planes;
    const nrg_status status = make_job(&job, &quant, &planes, part, spec, args, statistics, ith, nth);
    if (status != NRG_OK || job.row_begin == job.row_end)
        return status;
    nrg_norm_forward_kernel *const norm = kernels_of(&job, kernels)[spec->dtype - NRG_F32][nrg_active_path()];
    if (planes_are_one(&planes))
        norm(&job);
    else
        run_planes(norm, &job, &quant, &planes);
    return NRG_OK;
}

/* The job of rows in a matrix with any options. Returns whether they are plainly sound. */
NRG_OWN_FRAME int matrix_job(nrg_norm_job *job, nrg_norm_quant *quant, const nrg_norm_spec *s, const nrg_norm_args *a, int ith,
                             int nth)
{
    nrg_laid l;
    if (!s || !a || !nrg_norm_is_matrix(s, a->rows2, a->rows3) || norm_forward_precheck(s, a, ith, nth, &l) != NRG_OK)
        return 0;
    const norm_call call = {s, a, &l, operands_of[NRG_NORM_WHOLE], NRG_NORM_WHOLE};
    fill_job(job, &call, ith, nth, 0);
    job->quant = NULL;
    if (s->format)
        set_quant(job, quant, &call, ith, nth);
    return 1;
}

NRG_OWN_FRAME nrg_status forward_matrix(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    nrg_norm_job job;
    nrg_norm_quant quant;
    if (!matrix_job(&job, &quant, spec, args, ith, nth))
        return forward(NRG_NORM_WHOLE, spec, args, NULL, &all_kernels, ith, nth);
    if (job.row_begin != job.row_end)
        kernels_of(&job, &all_kernels)[spec->dtype - NRG_F32][nrg_active_path()](&job);
    return NRG_OK;
}

/* The job of dense rows: whether they are plainly sound. usual, a constant: with the options of constructors, which most calls
 * have. */
NRG_INLINE int dense_job_of(nrg_norm_job *job, const nrg_norm_spec *s, const nrg_norm_args *a, int ith, int nth, int usual)
{
    if (!has_plain_options(s, a) || !a->o || (usual ? unlike_dense(s, a) | unlike_usual(s) : unlike_dense(s, a)))
        return 0;
    if (!usual && ((unsigned)s->eps_mode > NRG_EPS_MAX || (unsigned)s->c_mode > NRG_C_GIVEN ||
                   (unsigned)s->weights > NRG_WEIGHTS_GROUP || (unsigned)s->accuracy > NRG_ACCURACY_EXACT))
        return 0;
    nrg_laid l; /* nobody is given its address: what is used of it stays in registers */
    if (!dense_lies_well(&l, s, a, s->dim * (s->dtype == NRG_F32 ? 4 : 2)))
        return 0;
    const norm_call call = {s, a, &l, operands_of[NRG_NORM_WHOLE], NRG_NORM_WHOLE};
    fill_job(job, &call, ith, nth, usual);
    return 1;
}

NRG_OWN_FRAME int dense_job(nrg_norm_job *job, const nrg_norm_spec *s, const nrg_norm_args *a, int ith, int nth)
{
    return dense_job_of(job, s, a, ith, nth, 0);
}

nrg_status nrg_norm_forward(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    nrg_norm_job job;
    if (!(spec && args && (ith >= 0) & (ith < nth)) ||
        !(dense_job_of(&job, spec, args, ith, nth, 1) || dense_job(&job, spec, args, ith, nth)))
        return forward_matrix(spec, args, ith, nth);
    if (job.row_begin != job.row_end)
        all_kernels.plain[spec->dtype - NRG_F32][nrg_active_path()](&job);
    return NRG_OK;
}

/* A half of a pass where rows have nothing but w and b beside them: whether it is plainly sound, and then it is done. */
NRG_OWN_FRAME int run_half(enum nrg_norm_part part, const nrg_norm_spec *s, const nrg_norm_args *a,
                           nrg_row_statistics *statistics, int ith, int nth)
{
    if (!(s && a && statistics && (ith >= 0) & (ith < nth) && has_plain_options(s, a) &&
          !(unlike_dense(s, a) | unlike_usual(s)) && !a->y && !a->r))
        return 0;
    nrg_norm_job job;
    nrg_laid l;
    const norm_call call = {s, a, &l, operands_of[NRG_NORM_WHOLE], part};
    const size_t row = s->dim * (s->dtype == NRG_F32 ? 4 : 2), bytes = a->rows * row, count = a->rows * sizeof *statistics;
    const uintptr_t x = (uintptr_t)a->x, o = (uintptr_t)a->o, held = (uintptr_t)statistics;
    if (held % sizeof(double) || held >= UINTPTR_MAX / 2)
        return 0;
    if (part == NRG_NORM_APPLY) {
        if (!o || !dense_lies_well(&l, s, a, row) || !quick_dense_apart(o, bytes, held, count))
            return 0;
    } else { /* w, b and o are not looked at */
        if ((x & (s->dtype == NRG_F32 ? 3 : 1)) || x >= UINTPTR_MAX / 2 || !quick_dense_apart(held, count, x, bytes))
            return 0;
        l.stride[NRG_NORM_X][0] = row;
        l.stride[NRG_NORM_Y][0] = l.stride[NRG_NORM_Z][0] = l.stride[NRG_NORM_O][0] = l.stride[NRG_NORM_R][0] = 0;
        l.bytes = bytes;
    }
    l.bytes += count;
    fill_job(&job, &call, ith, nth, 1);
    job.part = part;
    job.statistics = statistics;
    if (part == NRG_NORM_SUMS)
        job.o = NULL;
    if (job.row_begin != job.row_end)
        part_kernels.gated[s->dtype - NRG_F32][nrg_active_path()](&job);
    return 1;
}

nrg_status nrg_norm_forward_check(const nrg_norm_spec *spec, const nrg_norm_args *args)
{
    return NRG_ASK(norm_forward, spec, args);
}

nrg_status nrg_norm_statistics(const nrg_norm_spec *spec, const nrg_norm_args *args, nrg_row_statistics *statistics, int ith,
                               int nth)
{
    return run_half(NRG_NORM_SUMS, spec, args, statistics, ith, nth)
               ? NRG_OK
               : forward(NRG_NORM_SUMS, spec, args, statistics, &part_kernels, ith, nth);
}

nrg_status nrg_norm_statistics_check(const nrg_norm_spec *spec, const nrg_norm_args *args, nrg_row_statistics *statistics)
{
    return NRG_ASK(norm_statistics, spec, args, &(nrg_norm_more){statistics});
}

nrg_status nrg_norm_elements(const nrg_norm_spec *spec, const nrg_norm_args *args, const nrg_row_statistics *statistics, int ith,
                             int nth)
{
    /* the job has one pointer for what one part writes and the other reads */
    nrg_row_statistics *const given = (nrg_row_statistics *)(uintptr_t)statistics;
    return run_half(NRG_NORM_APPLY, spec, args, given, ith, nth)
               ? NRG_OK
               : forward(NRG_NORM_APPLY, spec, args, given, &part_kernels, ith, nth);
}

nrg_status nrg_norm_elements_check(const nrg_norm_spec *spec, const nrg_norm_args *args, const nrg_row_statistics *statistics)
{
    return NRG_ASK(norm_elements, spec, args, &(nrg_norm_more){statistics});
}

/* ---- the shortcuts: dense f32, all rows ---- */

enum shortcut { RMS, LAYER, L2 };

typedef struct f32_pointers {
    const float *x, *y, *w, *b;
    float *r, *o;
} f32_pointers;

static inline nrg_norm_spec spec_of(enum shortcut kind, size_t dim, double eps)
{
    return kind == RMS     ? nrg_norm_spec_rms(NRG_F32, dim, eps)
           : kind == LAYER ? nrg_norm_spec_layer(NRG_F32, dim, eps)
                           : nrg_norm_spec_l2(NRG_F32, dim, eps);
}

static inline nrg_norm_args args_of(size_t rows, const f32_pointers *p)
{
    nrg_norm_args args = nrg_norm_args_init(rows, p->x, p->w, p->o);
    args.y = p->y;
    args.b = p->b;
    args.r = p->r;
    return args;
}

/* Where a shortcut is not plainly sound, or has other options. */
NRG_OWN_FRAME nrg_status other_f32(enum shortcut kind, size_t rows, size_t dim, double eps, const f32_pointers *p,
                                   const norm_kernels *kernels)
{
    nrg_norm_job job;
    const nrg_norm_spec spec = spec_of(kind, dim, eps);
    const nrg_norm_args args = args_of(rows, p);
    if (!dense_job(&job, &spec, &args, 0, 1))
        return forward(NRG_NORM_WHOLE, &spec, &args, NULL, kernels, 0, 1);
    if (job.row_begin != job.row_end)
        kernels->plain[0][nrg_active_path()](&job);
    return NRG_OK;
}

/* Structs that are never in memory: nobody but the checks looks at them, which have to be inlined (flatten): nrg_layer_norm_f32
 * takes 32 ns, and 57 where one is not (EPYC, AVX-512). */
NRG_INLINE nrg_status forward_f32(enum shortcut kind, size_t rows, size_t dim, double eps, f32_pointers p)
{
    nrg_norm_job job;
    const nrg_norm_spec spec = spec_of(kind, dim, eps);
    const nrg_norm_args args = args_of(rows, &p);
    const norm_kernels *kernels = kind == LAYER ? &f32_kernels : &rms_kernels;
    if (!dense_job_of(&job, &spec, &args, 0, 1, 1))
        return other_f32(kind, rows, dim, eps, &(f32_pointers){p.x, p.y, p.w, p.b, p.r, p.o}, kernels);
    if (job.row_begin != job.row_end)
        kernels->plain[0][nrg_active_path()](&job);
    return NRG_OK;
}

__attribute__((flatten)) nrg_status nrg_rms_norm_f32(size_t rows, size_t dim, const float *x, const float *w, float *o,
                                                     double eps)
{
    return forward_f32(RMS, rows, dim, eps, (f32_pointers){.x = x, .w = w, .o = o});
}

__attribute__((flatten)) nrg_status nrg_add_rms_norm_f32(size_t rows, size_t dim, const float *x, const float *y, const float *w,
                                                         float *r, float *o, double eps)
{
    return rows && !y ? NRG_ERR_NULL : forward_f32(RMS, rows, dim, eps, (f32_pointers){.x = x, .y = y, .w = w, .r = r, .o = o});
}

__attribute__((flatten)) nrg_status nrg_layer_norm_f32(size_t rows, size_t dim, const float *x, const float *w, const float *b,
                                                       float *o, double eps)
{
    return forward_f32(LAYER, rows, dim, eps, (f32_pointers){.x = x, .w = w, .b = b, .o = o});
}

__attribute__((flatten)) nrg_status nrg_add_layer_norm_f32(size_t rows, size_t dim, const float *x, const float *y,
                                                           const float *w, const float *b, float *r, float *o, double eps)
{
    return rows && !y ? NRG_ERR_NULL
                      : forward_f32(LAYER, rows, dim, eps, (f32_pointers){.x = x, .y = y, .w = w, .b = b, .r = r, .o = o});
}

nrg_status nrg_l2_norm_f32(size_t rows, size_t dim, const float *x, float *o, double eps)
{
    return other_f32(L2, rows, dim, eps, &(f32_pointers){.x = x, .o = o}, &rms_kernels);
}
