/* check/channel_norm/channel.h: what the cases of channel normalization's forward and backward pass have in common.
 *
 * c->rows is the number of samples, c->positions that of positions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_CHANNEL_CHANNEL_H
#define NRG_CHECK_CHANNEL_CHANNEL_H

#include "../../src/operands/channel_norm.h"
#include "../sweep.h"

/* A way: bit 0 the layout, bits 1-2 what a set is, bit 3 whether a length counts channels or positions. */
enum { SWEEP_CHANNEL_WAYS = 16 };

/* The lengths of both. */
#define SWEEP_CHANNEL_LENGTHS .small = {70, 150, 400}, .large = SWEEP_CHANNEL_LARGE
enum { SWEEP_CHANNEL_LARGE = 25 };

/* Draws shape, spec and shares of a case, of a family that goes so many of the 16 ways. */
void sweep_channel_draw(sweep_case *c, uint64_t ways, uint64_t *random);

/* Sets that have statistics. */
size_t sweep_channel_sets(const sweep_case *c);

/* Sums of all parts, and of one. */
enum { SWEEP_TOTAL = SWEEP_WORKSPACE + 1, SWEEP_PART_SUMS };

/* The operands of nrg_channel_norm_forward and nrg_channel_norm_sums. */
extern const unsigned char sweep_channel_slots[], sweep_channel_sums_slots[];

/* The operands of a call of nrg/channel_norm.h that comes before the one a case is about, running statistics, and sums of
 * parts. */
void sweep_channel_add_before(sweep_case *c, const nrg_call *call, const unsigned char *slots, uint32_t there);
void sweep_channel_add_running(sweep_case *c, int mean, int var);
void sweep_channel_add_parts(sweep_case *c);

/* The operands of nrg_channel_norm_backward. */
void sweep_channel_add_backward(sweep_case *c, uint32_t there);

/* Data of channels, of samples or of planes, and running statistics. */
void sweep_channel_fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random);

void sweep_channel_describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM]);

/* A part of the tensor that sums can be taken of: whole segments, so that all parts have the sums of the whole. */
typedef struct sweep_part {
    nrg_channel_norm_spec spec;
    size_t n, s;
    size_t first_row, first_channel; /* of the operands, in which the part begins */
    size_t first_set, sets;          /* whose sums it has a part of */
} sweep_part;

/* How many parts there are: c->parts of each tensor or, where a part is a range of positions, of each sample. */
size_t sweep_channel_parts(const sweep_case *c);
sweep_part sweep_channel_part(const sweep_case *c, size_t number);

/* All of it, as one part. */
sweep_part sweep_channel_whole(const sweep_case *c);

/* Sets the pointers and strides in a call's structs to those of a part. */
void sweep_channel_bind(const sweep_case *c, const sweep_part *part, const nrg_call *call, void *const *structs,
                        const unsigned char *slots, unsigned char *memory);

/* The operands of a forward pass over a part. */
nrg_channel_norm_args sweep_channel_args(const sweep_case *c, const sweep_part *part, unsigned char *memory);

#endif
