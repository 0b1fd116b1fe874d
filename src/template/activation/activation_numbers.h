/* The numbers of the activations. Polynomials are the project's own minimax fits with float coefficients, lowest power first;
 * docs/ops/activation.md has the formulas and the errors. src/scalar/activation.c has numbers of its own, so that a digit that is
 * wrong in one of the two shows in every comparison of the paths.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ACTIVATION_ACTIVATION_NUMBERS_H
#define NRG_TEMPLATE_ACTIVATION_ACTIVATION_NUMBERS_H

/* ---- e^-t = 2^n·e^-r, n = -t/ln 2 rounded, r = t + n·ln 2, |r| ≤ 0.3467. What is small carries a factor of NRG_UNIT:
 * 2^64, so that nothing underflows, and 1.6875, for which the errors were least. ---- */

#define NRG_UNIT 0x1.bp64f
#define NRG_EXP_MAGIC 0x1.8p23f /* added to a small number it leaves the nearest integer in the lower bits */
#define NRG_LOG2_E 0x1.715476p0f
#define NRG_LN2_HI 0x1.62e43p-1f
#define NRG_LN2_LO -0x1.05c61p-29f
static const float nrg_exp_c[7] = {1, -1, 0x1.fffffcp-2f, -0x1.55548cp-3f, 0x1.555858p-5f, -0x1.123da8p-7f, 0x1.6ac174p-10f};

/* ---- (e^-r - 1 + r)/r² ---- */

static const float nrg_expm1_c[5] = {0x1.fffffep-2f, -0x1.5554aap-3f, 0x1.55579ap-5f, -0x1.122c3ap-7f, 0x1.6ac018p-10f};

/* ---- 2u = c3·t·(t² + γ) of gelu_tanh: c3 = 0.044715·√(8/π), γ = 1/0.044715. r is in units of c3 ---- */

#define NRG_U_GAMMA_HI 0x1.65d26p4f /* 2^-17 divides it: γ_hi - (γ_hi + t²) is exact */
#define NRG_U_GAMMA_LO -0x1.226128p-20f
#define NRG_U_LOG2_E 0x1.a5a7dp-4f /* c3/ln 2 */
#define NRG_U_LN2_HI 0x1.36dap3f   /* ln 2/c3, 16 bits: times n it is exact */
#define NRG_U_LN2_LO -0x1.549446p-16f
#define NRG_U_C1 0x1.988454p0f
#define NRG_U_3_C3 0x1.b6676cp-3f
#define NRG_U_UNIT 0x1.cp64f
static const float nrg_exp_u[7] = {
    1, -0x1.2444f4p-4f, 0x1.4dad5ep-9f, -0x1.fbece2p-15f, 0x1.21f36p-20f, -0x1.0a4bc8p-26f, 0x1.91e2bcp-33f};

/* ---- log1p(e)/e for e from 0 to 1 ---- */

static const float nrg_log1p_c[9] = {1,
                                     -0x1.ffff14p-2f,
                                     0x1.5535dep-2f,
                                     -0x1.fd136ap-3f,
                                     0x1.884566p-3f,
                                     -0x1.19afcap-3f,
                                     0x1.447138p-4f,
                                     -0x1.eca5dcp-6f,
                                     0x1.5fa38ap-8f};

/* ---- gelu(-t) = -t·e^-h·(q(t) + p(t))/(2·(2 + t)·q(t)) for t in [0, 14.6], h = t²/2. e^-h is 2^n·e^-r, r = h + n·ln 2 but for
 * n·ln2_lo: the quotient makes that good ---- */

#define NRG_GELU_END 0x1.d3p3f       /* 14.59: beyond it everything rounds to 0 */
#define NRG_GELU_PHI 0x1.988454p-2f  /* 1/√(2π) */
#define NRG_GELU_LN2 0x1.79a8dcp-29f /* -ln2_lo/ln 2: times h, what e^-h is too large by, for the slope */
static const float nrg_gelu_p[5] = {0x1.94p0f, 0x1.ed174cp-1f, 0x1.a9eaep-3f, 0x1.a2ade8p-9f, -0x1.eda2cp-8f};
static const float nrg_gelu_q[5] = {0x1.94p0f, 0x1.e73c9cp0f, 0x1.05dbe4p0f, 0x1.1d18eep-2f, 0x1.314ac2p-5f};

/* ---- hard swish and hard sigmoid ---- */

#define NRG_SIXTH 0x1.555556p-3f
#define NRG_THIRD 0x1.555556p-2f

#endif
