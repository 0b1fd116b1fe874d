/* What a report says of the machine it was made on: from Linux's files where there are such; what cannot be known is left out.
 *
 * SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"
#include "internal.h"
#include "nrg/nrg.h"

enum { TEXT_MAX = 160 };

/* The first line of a file, without its end. 0: there is none. */
static int first_line(const char *path, char text[TEXT_MAX])
{
    FILE *file = fopen(path, "r");
    const int found = file && fgets(text, TEXT_MAX, file);
    if (file)
        fclose(file);
    if (found)
        text[strcspn(text, "\n")] = '\0';
    return found;
}

/* Of x86; AArch64 has numbers where the name should be, and a device tree that says more. */
static void cpu_name(char text[TEXT_MAX])
{
    static const char *const keys[] = {"model name", "Model", "uarch", "CPU part"};
    snprintf(text, TEXT_MAX, "unknown CPU");
    if (first_line("/sys/firmware/devicetree/base/model", text))
        return;
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        FILE *file = fopen("/proc/cpuinfo", "r");
        char line[TEXT_MAX];
        int found = 0;
        while (file && !found && fgets(line, sizeof line, file)) {
            const char *colon = strchr(line, ':');
            found = colon && strncmp(line, keys[k], strlen(keys[k])) == 0;
            if (found) {
                const char *name = colon + 1 + strspn(colon + 1, " \t");
                snprintf(text, TEXT_MAX, "%.*s", (int)strcspn(name, "\n"), name);
            }
        }
        if (file)
            fclose(file);
        if (found)
            return;
    }
}

/* A file of the i-th cache of the first CPU. */
static int cache_file(int i, const char *file, char text[TEXT_MAX])
{
    char path[TEXT_MAX];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, file);
    return first_line(path, text);
}

static size_t bytes_of(const char *size)
{
    char *unit;
    const size_t number = strtoul(size, &unit, 10);
    return number << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : 0);
}

size_t report_cache_bytes(int level)
{
    char text[TEXT_MAX], type[TEXT_MAX];
    for (int i = 0; cache_file(i, "level", text); i++)
        if (atoi(text) == level && cache_file(i, "type", type) && strcmp(type, "Instruction") != 0 && cache_file(i, "size", text))
            return bytes_of(text);
    return level == 2 ? nrg_l2_bytes() : 0;
}

static void pair(json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_text(w, text);
}

static void caches(json_writer *w)
{
    char text[TEXT_MAX];
    json_key(w, "caches");
    json_open(w, '[');
    for (int i = 0; cache_file(i, "level", text); i++) {
        json_open(w, '{');
        json_key(w, "level");
        json_number(w, atoi(text));
        if (cache_file(i, "type", text))
            pair(w, "type", text);
        if (cache_file(i, "size", text)) {
            json_key(w, "bytes");
            json_number(w, (double)bytes_of(text));
        }
        if (cache_file(i, "shared_cpu_list", text))
            pair(w, "shared_by", text);
        json_close(w, '}');
    }
    json_close(w, ']');
}

static void paths(json_writer *w)
{
    json_key(w, "paths");
    json_open(w, '[');
    for (int i = 0; i < NRG_ISA_COUNT; i++)
        if (nrg_isa_supported((nrg_isa)i))
            json_text(w, nrg_isa_name((nrg_isa)i));
    json_close(w, ']');
    pair(w, "active", nrg_isa_name(nrg_isa_active()));
}

void report_machine(json_writer *w)
{
    char text[TEXT_MAX];
    struct utsname system;
    const time_t now = time(NULL);
    struct tm date;
    cpu_name(text);
    pair(w, "cpu", text);
    if (uname(&system) == 0) {
        pair(w, "machine", system.machine);
        /* of a version what all call it: the rest says whose machine it is */
        snprintf(text, sizeof text, "%.60s %.*s", system.sysname, (int)strcspn(system.release, "-"), system.release);
        pair(w, "system", text);
    }
#ifdef _SC_NPROCESSORS_ONLN /* POSIX has not got it, most systems do */
    json_key(w, "cpus");
    json_number(w, (double)sysconf(_SC_NPROCESSORS_ONLN));
#endif
    caches(w);
#ifdef __clang__
    pair(w, "compiler", "clang " __clang_version__);
#else
    pair(w, "compiler", "gcc " __VERSION__);
#endif
    pair(w, "options", REPORT_OPTIONS);
    pair(w, "nrg", nrg_version());
    json_key(w, "numbers");
    json_number(w, nrg_numbers_version());
    paths(w);
    if (gmtime_r(&now, &date) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &date))
        pair(w, "date", text);
    double load[1];
    if (first_line("/proc/loadavg", text) && (load[0] = strtod(text, NULL)) >= 0) {
        json_key(w, "load");
        json_number(w, load[0]);
    }
}
