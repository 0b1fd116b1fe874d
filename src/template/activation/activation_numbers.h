/* The numbers of the activations. Polynomials are the project's own minimax fits with float coefficients, lowest power first;
 * docs/activations.md has the formulas and the errors. src/scalar/activation.c has numbers of its own, so that a digit that is
 * wrong in one of the two shows in every comparison of the paths.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ACTIVATION_ACTIVATION_NUMBERS_H
#define NRG_TEMPLATE_ACTIVATION_ACTIVATION_NUMBERS_H

/* ---- e^h = 2^n · (1 + m), m = e^r - 1 = r + r²·q(r), |r| ≤ 0.3467 ---- */

#define NRG_EXP_MAGIC 0x1.8p23f /* added to a small number it leaves the nearest integer in the lower bits */
#define NRG_LOG2_E 0x1.715476p0f
#define NRG_LN2_HI 0x1.62e4p-1f /* 15 bits: times an n of 8 bits it is exact */
#define NRG_LN2_LO 0x1.7f7d1cp-20f
static const float nrg_exp_q[5] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.123a1ep-7f, 0x1.6a23d4p-10f};

/* ---- 2u = x·(c1 + c3·x²) of gelu_tanh: c1 = √(8/π), c3 = 0.044715·c1 ---- */

#define NRG_U_C1_HI 0x1.98846p0f /* 20 bits: c1_hi - (c1_hi + c3·x²) is exact */
#define NRG_U_C1_LO -0x1.985794p-21f
#define NRG_U_C3_HI 0x1.2444f2p-4f
#define NRG_U_C3_LO 0x1.49b16ap-29f
#define NRG_U_2_C3 0x1.2444f2p-3f

/* ---- log1p(e)/e for e in [0, 1], a polynomial in e - centre. The centre is where c[0] is log1p(e)/e to 2^-29 ---- */

#define NRG_LOG1P_CENTRE 0x1.1ap-1f
static const float nrg_log1p_c[10] = {0x1.97dd8p-1f,   -0x1.1a2d7ap-2f, 0x1.f7256p-4f,   -0x1.f1a69ep-5f, 0x1.04bf2p-5f,
                                      -0x1.1c8a4cp-6f, 0x1.3862c8p-7f,  -0x1.436cb6p-8f, 0x1.eae126p-9f,  -0x1.a7a69cp-9f};

/* ---- (1/t²)·(tanh(t)/t - 1) for t below the bound, a polynomial in t² ---- */

#define NRG_TANH_BOUND 0x1.194p-1f /* 0.549: tanh of it is 1/2 */
static const float nrg_tanh_c[5] = {-0x1.55554ap-2f, 0x1.110dp-3f, -0x1.b92372p-5f, 0x1.591a86p-6f, -0x1.9a8a7ep-8f};

/* ---- gelu(-t)·e^(t²/2) and gelu′(-t)·e^(t²/2) for t in [0, 14.6] ----
 *
 * Eight intervals, from 0, 0.5, 1, 2, 3, 5, 7 and 11 on: halves of the octaves of 1 + t. In column k is the one for which bits 22
 * to 24 of 1 + t are k. Polynomials in t - centre, where gelu(-t)·e^(t²/2) is very near a float. The first interval (column 6)
 * has the functions themselves, without the exponential, and lacks the term -t/2 of gelu: it is added last, exactly. -2^-100 is
 * in the place of its factor, for the sign of gelu(-0). */

#define NRG_GELU_END 0x1.d3p3f /* 14.59: beyond it everything rounds to 0 */
#define NRG_GELU_FIRST 1.5f    /* 1 + t below it: the first interval */
static const float nrg_gelu_centre[8] = {0x1.7ep0f, 0x1.31p1f, 0x1.f4p1f, 0x1.848p2f, 0x1.2b8p3f, 0x1.99p3f, 0, 0x1.88p-1f};
static const float nrg_gelu[8][8] = {
    {-0x1.3b8386p-2f, -0x1.665d32p-2f, -0x1.81cb8cp-2f, -0x1.8e3ac2p-2f, -0x1.94012ep-2f, -0x1.960f8ep-2f, 0, -0x1.d28a1cp-3f},
    {-0x1.22a9a4p-4f, -0x1.ee3fbcp-6f, -0x1.4035c4p-7f, -0x1.93dee2p-9f, -0x1.ddfdf6p-11f, -0x1.829f7ap-12f, -0x1p-100f,
     -0x1.5502bp-3f},
    {0x1.364daep-5f, 0x1.ab30cap-7f, 0x1.96c284p-9f, 0x1.6be494p-11f, 0x1.25b28p-13f, 0x1.62916ap-15f, 0x1.98845cp-2f,
     0x1.b7e70cp-4f},
    {-0x1.10a444p-6f, -0x1.35e356p-8f, -0x1.bb1f44p-11f, -0x1.1db9dep-13f, -0x1.3de914p-16f, -0x1.1f6706p-18f, -0x1.5a149ap-18f,
     -0x1.c97d58p-5f},
    {0x1.a457c2p-8f, 0x1.909198p-10f, 0x1.b5446p-13f, 0x1.9c8af8p-16f, 0x1.3f0418p-19f, 0x1.b13db4p-22f, -0x1.1011c8p-4f,
     0x1.9b6016p-6f},
    {-0x1.2600d6p-9f, -0x1.dc4c46p-12f, -0x1.95cfa4p-15f, -0x1.17eeep-18f, -0x1.267306p-22f, -0x1.39334ep-25f, -0x1.a6d194p-12f,
     -0x1.4b2e26p-7f},
    {0x1.8c9826p-11f, 0x1.0eee64p-13f, 0x1.79639ap-17f, 0x1.7d37e2p-21f, 0x1.23b2f8p-25f, 0x1.dfd298p-29f, 0x1.6f47e4p-7f,
     0x1.ef53dep-9f},
    {-0x1.de32c2p-13f, -0x1.fdd11cp-16f, -0x1.14ce4cp-19f, -0x1.0845b8p-23f, -0x1.8766acp-28f, -0x1.39b66ep-32f, -0x1.f0e672p-10f,
     -0x1.6ae4p-10f},
};
static const float nrg_gelu_slope[7][8] = {
    {-0x1.8e23d8p-2f, -0x1.9b830ap-1f, -0x1.76405cp0f, -0x1.2dc71ep1f, -0x1.d88982p1f, -0x1.445962p2f, 0x1p-1f, -0x1.02f0d2p-7f},
    {-0x1.f58526p-2f, -0x1.caab74p-2f, -0x1.af3d1ep-2f, -0x1.a2cde6p-2f, -0x1.9d0778p-2f, -0x1.9af918p-2f, -0x1.988478p-1f,
     -0x1.23e1ccp-1f},
    {0x1.22a9bap-5f, 0x1.ee3706p-7f, 0x1.403836p-8f, 0x1.93e02ep-10f, 0x1.de43aap-12f, 0x1.81a18ap-13f, 0x1.5b849cp-15f,
     0x1.5502b2p-4f},
    {-0x1.9d967cp-7f, -0x1.1cca2cp-8f, -0x1.0eee6ap-10f, -0x1.e4e3fep-13f, -0x1.87728cp-15f, -0x1.d93846p-17f, 0x1.0fcd8p-2f,
     -0x1.25439p-5f},
    {0x1.10762ep-8f, 0x1.385d3ap-10f, 0x1.bb3be8p-13f, 0x1.1d4b7ep-15f, 0x1.32d7b6p-18f, 0x1.829684p-20f, 0x1.9cdc2cp-9f,
     0x1.c95e7p-7f},
    {-0x1.5baaf6p-10f, -0x1.4558e6p-12f, -0x1.71aebap-15f, -0x1.593abep-18f, -0x1.0b643ap-21f, -0x1.4c166ap-24f, -0x1.1c95c2p-4f,
     -0x1.4bd64p-8f},
    {0x1.9925c6p-12f, 0x1.ca94b4p-15f, 0x1.0cd09ap-17f, 0x1.8e70aep-21f, 0x1.415f04p-24f, -0x1.23b24ap-24f, 0x1.e7e1fp-7f,
     0x1.ce41a4p-10f},
};

#endif
