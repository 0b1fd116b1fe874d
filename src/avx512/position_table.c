/* Tables of cosines and sines: the template over this path's vectors.
 *
 * SPDX-License-Identifier: MIT */
#include "vec.h"

#include "../template/rope/position_table.h"

void nrg_avx512_position_table_f32(const nrg_position_table_job *job) { position_table(job, NRG_F32); }
void nrg_avx512_position_table_f16(const nrg_position_table_job *job) { position_table(job, NRG_F16); }
void nrg_avx512_position_table_bf16(const nrg_position_table_job *job) { position_table(job, NRG_BF16); }
