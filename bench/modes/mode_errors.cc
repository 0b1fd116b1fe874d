/* --errors: how far results are from what is exact.
 *
 * SPDX-License-Identifier: MIT */
#include <cstdio>
#include <cstring>

#include "../share.h"
#include "modes.h"

/* Beyond these a formula is wrong, the library's or the truth's, which is what this is to find: what is promised is in the
 * headers, and tests hold it to the worst inputs. 16 bits are rounded once; a norm before a rotation is rounded for itself. */
static double limit_of(const bench_case &c)
{
    if (c.dtype == NRG_F32)
        return 5;
    return strcmp(bench_kernel_of(c.family), "norm_rope") == 0 ? 1.01 : 0.51;
}

int bench::errors_mode(const bench_args &args)
{
    Table table(args, "Errors of results, in ulps of their type", "kernel:-24,type:-4,op:-24,ulp:8");
    int wrong = 0;
    each_case([&](const bench_case &c) {
        if (c.isa != nrg_isa_active() || !bench_shape_equal(c.shape, c.op->shapes[0]) || !admits(args, c))
            return;
        const nrg_isa before = nrg_isa_active();
        const double ulp = error_of(c, BENCH_RIVALS);
        bench_require(nrg_isa_set(before));
        if (ulp == 0)
            return;
        const bool is_wrong = !(ulp <= limit_of(c));
        table.row(
            {bench_kernel_of(c.family), nrg_dtype_name(c.dtype), c.op->name, is_wrong ? text("%.3g !", ulp) : text("%.3f", ulp)});
        wrong += is_wrong;
    });
    printf("\n%zu looked at, %d wrong\n", table.rows(), wrong);
    return !(table.rows() && !wrong);
}
