/* What a report says of the machine it was made on.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_REPORT_MACHINE_H
#define NRG_BENCH_REPORT_MACHINE_H

#include "json.h"

/* Keys of an object: the CPU, its caches, the system, the compiler, nrg, and when. */
void report_machine(json_writer *w);

/* Bytes of the caches by level (1, 2, 3) that hold data; 0: unknown. */
size_t report_cache_bytes(int level);

#endif
