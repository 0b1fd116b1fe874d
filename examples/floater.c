/* Positional encodings from a learned dynamical system (FLOATER: Liu, Yu, Dhillon, Hsieh, arXiv:2003.09229).
 *
 * The dynamics are a network of two layers, h(t, p) = W2 tanh(W1 p + w t + b1) + b2. The library integrates it, forward and
 * backward, and calls two functions of this file. The program compares the gradients with finite differences.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POSITIONS = 40, DIM = 12, HIDDEN = 20, SUBSTEPS = 2 };

/* All parameters in one array would do as well; a trainer wants them so. */
typedef struct parameters {
    float w1[HIDDEN][DIM], time[HIDDEN], b1[HIDDEN], w2[DIM][HIDDEN], b2[DIM];
} parameters;

typedef struct network {
    parameters value, gradient;
} network;

static void hidden_layer(const parameters *x, double t, const float *p, float *hidden)
{
    for (size_t i = 0; i < HIDDEN; i++) {
        float sum = x->time[i] * (float)t + x->b1[i];
        for (size_t j = 0; j < DIM; j++)
            sum += x->w1[i][j] * p[j];
        hidden[i] = tanhf(sum);
    }
}

/* What nrg_floater_h asks for. */
static void dynamics(void *user, double t, size_t dim, const float *p, float *dp_dt)
{
    const parameters *x = &((const network *)user)->value;
    float hidden[HIDDEN];
    hidden_layer(x, t, p, hidden);
    for (size_t i = 0; i < dim; i++) {
        dp_dt[i] = x->b2[i];
        for (size_t j = 0; j < HIDDEN; j++)
            dp_dt[i] += x->w2[i][j] * hidden[j];
    }
}

/* What nrg_floater_vjp asks for: backward through the network from v. The gradients of its parameters are added up on the way. */
static void dynamics_backward(void *user, double t, size_t dim, const float *p, const float *v, float *vt_dh_dp)
{
    const parameters *x = &((const network *)user)->value;
    parameters *g = &((network *)user)->gradient;
    float hidden[HIDDEN];
    hidden_layer(x, t, p, hidden);
    for (size_t j = 0; j < dim; j++)
        vt_dh_dp[j] = 0;
    for (size_t i = 0; i < HIDDEN; i++) {
        float arriving = 0;
        for (size_t j = 0; j < dim; j++) {
            arriving += v[j] * x->w2[j][i];
            g->w2[j][i] += v[j] * hidden[i];
        }
        arriving *= 1 - hidden[i] * hidden[i];
        g->time[i] += arriving * (float)t;
        g->b1[i] += arriving;
        for (size_t j = 0; j < dim; j++) {
            g->w1[i][j] += arriving * p[j];
            vt_dh_dp[j] += arriving * x->w1[i][j];
        }
    }
    for (size_t j = 0; j < dim; j++)
        g->b2[j] += v[j];
}

static network net;
static float p0[DIM], p[POSITIONS][DIM], dp[POSITIONS][DIM], d_p0[DIM];
static double states[POSITIONS][DIM];

static nrg_floater_spec spec_of_path(void)
{
    nrg_floater_spec spec = nrg_floater_spec_init(NRG_F32, POSITIONS, DIM, dynamics, dynamics_backward, &net);
    spec.substeps = SUBSTEPS;
    spec.dt = 0.1; /* a position is a tenth of a unit of time: the scale is free */
    return spec;
}

/* The library allocates nothing: a workspace is asked for and handed over. */
static nrg_status forward(const nrg_floater_spec *spec)
{
    size_t bytes;
    nrg_status status = nrg_floater_workspace(spec, &bytes);
    if (status != NRG_OK)
        return status;
    nrg_floater_args args = nrg_floater_args_init(p0, p);
    args.workspace = malloc(bytes);
    args.workspace_size = bytes;
    args.states = &states[0][0]; /* kept for the backward pass, which would compute them again without */
    status = nrg_floater_forward(spec, &args, 0, 1);
    free(args.workspace);
    return status;
}

static nrg_status backward(const nrg_floater_spec *spec)
{
    size_t bytes;
    nrg_floater_backward_args args = nrg_floater_backward_args_init(p0, dp, d_p0);
    args.states = &states[0][0];
    nrg_status status = nrg_floater_backward_workspace(spec, &args, &bytes);
    if (status != NRG_OK)
        return status;
    args.workspace = malloc(bytes);
    args.workspace_size = bytes;
    memset(&net.gradient, 0, sizeof net.gradient);
    status = nrg_floater_backward(spec, &args, 0, 1);
    free(args.workspace);
    return status;
}

static float draw(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)((int)(state >> 16) - 32768) * 0x1p-15f;
}

static void draw_all(float *to, size_t n, float size)
{
    for (size_t i = 0; i < n; i++)
        to[i] = draw() * size;
}

/* A loss whose gradient with regard to p is dp: Σ dp ⊙ p, of the states in double, so that differences have digits. */
static double loss(const nrg_floater_spec *spec)
{
    double sum = 0;
    if (forward(spec) != NRG_OK)
        return (double)NAN;
    for (size_t k = 0; k < POSITIONS; k++)
        for (size_t i = 0; i < DIM; i++)
            sum += (double)dp[k][i] * (double)states[k][i];
    return sum;
}

/* How far a gradient is from the difference of two losses, beside the scale of all gradients. */
static double difference(const nrg_floater_spec *spec, float *parameter, float gradient)
{
    const float value = *parameter, step = 0x1p-7f;
    *parameter = value + step;
    double change = loss(spec), width = (double)*parameter;
    *parameter = value - step;
    change -= loss(spec);
    width -= (double)*parameter;
    *parameter = value;
    return fabs(change / width - (double)gradient) / (1 + fabs((double)gradient));
}

int main(void)
{
    draw_all(&net.value.w1[0][0], sizeof net.value.w1 / sizeof(float), 0.6f);
    draw_all(net.value.time, HIDDEN, 0.5f);
    draw_all(net.value.b1, HIDDEN, 0.5f);
    draw_all(&net.value.w2[0][0], sizeof net.value.w2 / sizeof(float), 0.4f);
    draw_all(net.value.b2, DIM, 0.1f);
    draw_all(p0, DIM, 1);
    draw_all(&dp[0][0], POSITIONS * DIM, 0.25f);

    const nrg_floater_spec spec = spec_of_path();
    nrg_status status = forward(&spec);
    if (status == NRG_OK)
        status = backward(&spec);
    if (status != NRG_OK) {
        fprintf(stderr, "floater: FAILED: %s\n", nrg_status_string(status));
        return 1;
    }

    double worst = 0;
    int compared = 0;
    float *const value = (float *)&net.value, *const gradient = (float *)&net.gradient;
    for (size_t i = 0; i < sizeof net.value / sizeof(float); i += 7, compared++)
        worst = fmax(worst, difference(&spec, &value[i], gradient[i]));
    for (size_t i = 0; i < DIM; i++, compared++)
        worst = fmax(worst, difference(&spec, &p0[i], d_p0[i]));
    const double allowed = 1e-3;
    printf("%d positions of %d, %d derivatives against differences: at most %.3g apart; %.3g is allowed\n", POSITIONS, DIM,
           compared, worst, allowed);
    if (!(worst <= allowed)) {
        fprintf(stderr, "floater: FAILED\n");
        return 1;
    }
    return 0;
}
