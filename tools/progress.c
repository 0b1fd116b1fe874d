/* A line on stderr while a command works.
 *
 * SPDX-License-Identifier: MIT */
#include "progress.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "system.h"

enum { FIRST_IN_A_LOG = 10, ROOM = 256, NOT_KNOWN = -1 };

/* Two, so that a tick never sees one that is half written. */
static char texts[2][ROOM];
static volatile sig_atomic_t current, percent = NOT_KNOWN, seconds, is_terminal, is_shown;
static volatile long long next_in_a_log; /* the ticks' own while they come */
static const char *command;
static int has_begun;

/* printf is not for signals. */
static char *append_number(char *to, long number)
{
    char digits[24];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10));
    while (count)
        *to++ = digits[--count];
    return to;
}

static char *append(char *to, const char *text)
{
    const size_t length = strlen(text);
    memcpy(to, text, length);
    return to + length;
}

static void on_tick(void)
{
    char line[ROOM + 64], *end = line;
    seconds = seconds + 1;
    if (is_terminal || seconds >= next_in_a_log) {
        next_in_a_log = 2 * (long long)seconds;
        end = append(end, is_terminal ? "\r" : "");
        end = append(end, texts[current]);
        if (percent != NOT_KNOWN)
            end = append(append_number(append(end, ", "), percent), " %");
        end = append(append_number(append(end, ", "), seconds), " s");
        end = append(end, is_terminal ? "\033[K" : "\n");
        is_shown = is_terminal;
        system_write_stderr(line, (size_t)(end - line));
    }
}

void progress_step(const char *doing, const char *what)
{
    char *text = texts[!current];
    if (!has_begun)
        return;
    snprintf(text, ROOM, "nrg %s: %s%s%s", command, doing, *what ? " " : "", what);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    percent = NOT_KNOWN;
    current = !current;
}

void progress_begin(const char *command_name)
{
    command = command_name;
    is_terminal = system_stderr_is_terminal();
    seconds = 0;
    next_in_a_log = FIRST_IN_A_LOG;
    has_begun = 1;
    progress_step("working", "");
    if (!system_start_ticks(on_tick))
        has_begun = 0;
}

void progress_part(uint64_t done, uint64_t of)
{
    if (of)
        percent = (sig_atomic_t)((double)done / (double)of * 100);
}

void progress_wipe(void)
{
    if (is_shown)
        system_write_stderr("\r\033[K", 4);
    is_shown = 0;
}

void progress_end(void)
{
    if (!has_begun)
        return;
    system_stop_ticks();
    progress_wipe();
    has_begun = 0;
}
