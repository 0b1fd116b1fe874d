/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sound.h"
#include "wild_module.h"

#if defined(_WIN32)
static const void *open_module(const char *file) { return NULL; }
static const char *what_is_wrong(void) { return "no modules here"; }
#else
#include <dlfcn.h>
static const void *open_module(const char *file)
{
    void *const module = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return module ? dlsym(module, WILD_MODULE) : NULL;
}
static const char *what_is_wrong(void) { return dlerror(); }
#endif

const wild_module *wild_load(const char *file)
{
    const wild_module *const m = open_module(file);
    if (!m) {
        fprintf(stderr, "%s: %s\n", file, what_is_wrong());
        exit(2);
    }
    return m;
}

const wild_call *wild_find(const wild_module *m, const sound_call *sound)
{
    for (int n = 0; n < m->call_count; n++) {
        const wild_call *const one = &m->calls[n];
        if (strcmp(one->function, sound_name(sound)) == 0 && one->is_part == sound->is_part &&
            one->operand_count == sound->function->call->operand_count)
            return one;
    }
    return NULL;
}
