/* SPDX-License-Identifier: MIT */
#include "wild_module.h"

#include "sound_families.h"

extern const wild_module nrg_wild_module;
__attribute__((visibility("default"))) const wild_module nrg_wild_module = {families, FAMILIES, &stub, &stub_end};
