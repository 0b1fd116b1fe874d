/* --report DIR: everything, for a quarter of an hour, as JSON and as a page.
 *
 * SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "../modes/modes.h"
#include "report.h"

static const double usual_seconds = 900;

static volatile int interrupted;
static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

int bench_report_mode(const bench_args *args)
{
    report r = {.args = args, .seconds = args->seconds_total > 0 ? args->seconds_total : usual_seconds};
    int status = 1;
    const char *wrong = report_try_directory(args->report);
    if (wrong)
        fprintf(stderr, "nrg-bench: %s: %s\n", args->report, wrong);
    else if (!report_plan_make(&r.plan, args))
        fputs("nrg-bench: not enough memory\n", stderr);
    else if (!r.plan.count)
        fputs("nrg-bench: no case has these names\n", stderr);
    else {
        /* a second one ends it at once; what is measured is in memory until all is */
        const struct sigaction soft = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
        struct sigaction before[2];
        sigaction(SIGINT, &soft, &before[0]);
        sigaction(SIGTERM, &soft, &before[1]);
        const nrg_isa active = nrg_isa_active();
        const int whole = report_run(&r, &interrupted);
        bench_require(nrg_isa_set(active)); /* which the report names */
        sigaction(SIGINT, &before[0], NULL);
        sigaction(SIGTERM, &before[1], NULL);
        wrong = whole ? report_write(&r, args->report) : NULL;
        if (!whole)
            fprintf(stderr, "nrg-bench: %s: nothing is written\n", interrupted ? "interrupted" : "not enough memory");
        else if (wrong)
            fprintf(stderr, "nrg-bench: %s: %s\n", args->report, wrong);
        else {
            printf("%zu rows, of the %zu cases and of sweeps: %s/report.html, %s/report.json\n", r.rows,
                   report_plan_cases(&r.plan), args->report, args->report);
            status = 0;
        }
    }
    free(r.row);
    free(r.error);
    free(r.bandwidth);
    free(r.plan.task);
    return interrupted ? 130 : status;
}
