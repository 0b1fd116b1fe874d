/* check/channel_norm/channel.h: the cases of channel normalization, and parts of their tensors.
 *
 * c->rows is the number of samples, c->positions that of positions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_CHANNEL_CHANNEL_H
#define NRG_CHECK_CHANNEL_CHANNEL_H

#include "../../src/operands/channel_norm.h"
#include "../sweep.h"

/* Sums of all parts, and of one. */
enum { SWEEP_TOTAL = SWEEP_WORKSPACE + 1, SWEEP_PART_SUMS };

/* The operands of nrg_channel_norm_forward and nrg_channel_norm_sums. */
extern const unsigned char sweep_channel_slots[], sweep_channel_sums_slots[];

/* The operands of a call of nrg/channel_norm.h that comes before the one a case is about; and of nrg_channel_norm_backward. */
void sweep_channel_add_before(sweep_case *c, const nrg_call *call, const unsigned char *slots, uint32_t there);
void sweep_channel_add_backward(sweep_case *c, uint32_t there);

/* A part of the tensor that sums can be taken of: whole segments, so that all parts have the sums of the whole. */
typedef struct sweep_part {
    nrg_channel_norm_spec spec;
    size_t n, s;
    size_t first_row, first_channel; /* of the operands, in which the part begins */
    size_t first_set, sets;          /* whose sums it has a part of */
} sweep_part;

/* Sets that have statistics. */
size_t sweep_channel_sets(const sweep_case *c);

/* How many parts there are: c->parts of each tensor or, where a part is a range of positions, of each sample. */
size_t sweep_channel_parts(const sweep_case *c);
sweep_part sweep_channel_part(const sweep_case *c, size_t number);

/* All of it, as one part. */
sweep_part sweep_channel_whole(const sweep_case *c);

/* Sets the pointers and strides in a call's structs to those of a part. */
void sweep_channel_bind(const sweep_case *c, const sweep_part *part, const nrg_call *call, void *const *structs,
                        const unsigned char *slots, unsigned char *memory);

#endif
