/* nrg norm: nrg_norm_forward and nrg_norm_backward for .npy files.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include "../quantize/formats.h"

typedef struct request {
    nrg_norm_spec spec; /* its dim and dtypes come from the files, but for r_dtype and y_dtype where they are asked for */
    union {
        nrg_norm_args forward;
        nrg_norm_backward_args backward;
    } args; /* which begin alike */
    nrg_store store;
    int is_backward, gate; /* index of its word */
} request;

/* In the order of the library's enumerations. */
static const char *const eps_modes[] = {"mean", "sum", "sigma", "max", "none", NULL};
static const char *const residual_modes[] = {"before", "after", NULL};
static const char *const dtypes[] = {"same", "f32", "f16", NULL};
static const char *const gates[] = {"pre", "post", NULL};

#define OPTIONS_DEF "norm/norm.def"
#define COMMAND "norm"
#define OPERAND IN_X
#define REQUEST request
#define RUN command_norm
#include "../options.h"

static int ask(file_call *call)
{
    request *q = call->request;
    nrg_norm_spec *s = &q->spec;
    /* beside '<f2' any other dtype may be */
    *s = call->value[OPT_LAYER] ? nrg_norm_spec_layer(NRG_F16, 1, 1e-5)
         : call->value[OPT_L2]  ? nrg_norm_spec_l2(NRG_F16, 1, 1e-12)
                                : nrg_norm_spec_rms(NRG_F16, 1, 1e-6);
    if (!read_fields(call, q) || formats_ask(call, &s->format, &s->rounding) != CLI_DONE)
        return CLI_REFUSED;
    if (s->eps_mode == NRG_EPS_NONE && !call->value[OPT_EPS])
        s->eps = 0;
    if (call->value[OPT_C])
        s->c_mode = NRG_C_GIVEN;
    if (call->value[OPT_GATE])
        s->gate = (nrg_gate)(q->gate + 1); /* "none" is not to be said */
    s->accuracy = call->value[OPT_EXACT] ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    s->dim = s->groups * (s->format ? 256 : 1); /* a block of any format */
    if (q->is_backward) {
        q->args.backward = nrg_norm_backward_args_init(0, NULL, NULL, NULL, NULL);
        q->args.backward.store = q->store;
    } else {
        q->args.forward = nrg_norm_args_init(0, NULL, NULL, NULL);
        q->args.forward.store = q->store;
    }
    call->function = q->is_backward ? FILE_BACKWARD(norm_backward) : &invoke_norm_forward;
    call->then = q->is_backward ? FILE_BACKWARD(norm_backward_reduce) : NULL;
    call->part[0] = s;
    call->part[1] = &q->args;
    return file_ask(call);
}

/* What gives shape and dtype is x, or do where r stands for x. o takes x's place in memory, which the library allows. */
static int compute(file_call *call)
{
    request *q = call->request;
    nrg_norm_spec *s = &q->spec;
    const int first = file_in(call, IN_X) ? IN_X : IN_D_O;
    int status = file_rows(call, first, &q->args.forward.rows, &s->dim);
    if (status != CLI_DONE)
        return status;
    if (s->groups && s->dim % s->groups)
        return cli_refuse("--groups: expected a divisor of the row length %zu of %s, got %zu", s->dim, file_in(call, first),
                          s->groups);
    s->dtype = call->in[first].dtype;
    /* without the last axis; the groups of a row are an axis of their own */
    npy_shape statistics = call->in[first].shape;
    statistics.ndim -= s->groups == 1;
    if (s->groups > 1)
        statistics.dims[statistics.ndim - 1] = s->groups;
    call->shape[IN_MEAN] = call->shape[INPUTS + OUT_MEAN] = call->shape[INPUTS + OUT_RSTD] = &statistics;
    if (file_out(call, OUT_O))
        file_reuse(call, OUT_O, IN_X);
    if (s->format)
        status = formats_reserve(call, s->format, &call->in[first].shape, file_in(call, first));
    return status == CLI_DONE ? file_run(call, first) : status;
}
