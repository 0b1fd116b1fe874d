/* How far a report is.
 *
 * SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <unistd.h>

#include "report.h"

enum { WIDTH = 20 };

/* Where nobody sees a line change, one is printed for each of these, and once a minute. */
static const double step = 0.1, minute = 60;
static double printed = -1, printed_left;

void report_progress(double done, double left_seconds, const char *text)
{
    const int left = left_seconds > 0 ? (int)(left_seconds + 0.5) : 0, filled = done < 1 ? (int)(done * WIDTH) : WIDTH;
    if (!isatty(STDERR_FILENO)) {
        if (done >= printed + step || left_seconds <= printed_left - minute) {
            fprintf(stderr, "nrg-bench: %.0f %%, %d:%02d left: %s\n", 100 * done, left / 60, left % 60, text);
            printed = done;
            printed_left = left_seconds;
        }
        return;
    }
    fprintf(stderr, "\r[%.*s%*s] %3.0f %%  %d:%02d left  %-24.24s", filled, "####################", WIDTH - filled, "",
            100 * done, left / 60, left % 60, text);
    fflush(stderr);
}

void report_progress_end(void)
{
    if (isatty(STDERR_FILENO))
        fputc('\n', stderr);
    printed = -1;
}
