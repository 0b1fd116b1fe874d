/* check/channel/channel.h: what the cases of channel normalization's forward and backward pass have in common.
 *
 * c->rows is the number of samples, c->positions that of positions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_CHANNEL_CHANNEL_H
#define NRG_CHECK_CHANNEL_CHANNEL_H

#include "../sweep.h"

/* A way: bit 0 the layout, bits 1-2 what a set is, bit 3 whether a length counts channels or positions. */
enum { SWEEP_CHANNEL_WAYS = 16 };

/* Every length and some large shapes in `ways` of the 16, and all that `rounds` times with other draws. */
uint64_t sweep_channel_count(sweep_level level, uint64_t ways, uint64_t rounds);

/* Draws shape, spec and shares of case n of those. */
void sweep_channel_draw(sweep_level level, uint64_t ways, uint64_t n, sweep_case *c, uint64_t *random);

/* Whether running statistics make sense: sets are channels, less their mean. */
int sweep_channel_may_run(const sweep_case *c);

/* Sets that have statistics. */
size_t sweep_channel_sets(const sweep_case *c);

/* An operand of x's shape; w and b, each drawn; statistics of all sets. */
void sweep_channel_add_tensor(sweep_case *c, int operand);
void sweep_channel_add_weights(sweep_case *c, uint64_t *random);
void sweep_channel_add_statistics(sweep_case *c);

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

/* Where an operand of x's shape, or a weight, begins in a part; NULL where absent. */
void *sweep_part_tensor(const sweep_case *c, const sweep_part *part, int operand, unsigned char *memory);
void *sweep_part_weight(const sweep_case *c, const sweep_part *part, int operand, unsigned char *memory);

/* The stride of an operand of x's shape, as a call with that part is told it. */
size_t sweep_part_stride(const sweep_case *c, const sweep_part *part, int operand);

/* All of it, as one part. */
sweep_part sweep_channel_whole(const sweep_case *c);

/* The operands of a forward pass over a part, statistics aside. */
nrg_channel_norm_args sweep_channel_args(const sweep_case *c, const sweep_part *part, unsigned char *memory);

#endif
