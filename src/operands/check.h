/* The one checker of all calls.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_OPERANDS_CHECK_H
#define NRG_OPERANDS_CHECK_H

#include "operand.h"

enum { NRG_COPIES = 1280 };

/* Where the operands of a sound call lie, for its job. */
typedef struct nrg_laid {
    size_t bytes;                            /* of all operands, as often as they are there; at most SIZE_MAX */
    size_t stride[NRG_OPERANDS][NRG_LEVELS]; /* in bytes, where the caller may have 0; only levels of the description are set */
} nrg_laid;

/* A call whose arguments are sound. */
typedef struct nrg_checked {
    const void *part[NRG_PARTS]; /* the caller's structs, as this version's */
    nrg_sizes sizes;
    nrg_laid laid;
    _Alignas(double) unsigned char copy[NRG_COPIES]; /* of structs of other versions */
} nrg_checked;

/* A caller's struct of another version, as this version's: fields that it does not have are 0, which is their default; fields
 * that this library does not have must be 0. NULL is a struct without fields. Returns 0 for a size that no version has. */
int nrg_copy_struct(void *copy, const void *of, const nrg_part *part);

/* Checks everything that can be said without looking into operands: parts, struct sizes, ranges, options, share ith of nth,
 * operands, overlaps. Writes nothing but *c, which is complete where NRG_OK comes back. NRG_ERR_UNALLOCATED: nothing else is
 * wrong, but operands are NRG_UNALLOCATED, so no contents can be read. */
nrg_status nrg_check(nrg_checked *c, const nrg_call *call, const void *const *part, int ith, int nth);

/* The same for a job that is made of the caller's structs, which have what the first version of them has, and of where operands
 * lie. Without what checking takes, which shall not lie below the kernel. NRG_LAY: of share ith of nth. */
nrg_status nrg_lay(nrg_laid *laid, const nrg_call *call, const void *const *part, int ith, int nth);
#define NRG_LAY(laid, name, ...) nrg_lay((laid), &nrg_call_##name, (const void *const[]){__VA_ARGS__}, ith, nth)

/* The status of a _check for that of nrg_check and of all that comes after it: operands may be unallocated. */
static inline nrg_status nrg_asked(nrg_status status) { return status == NRG_ERR_UNALLOCATED ? NRG_OK : status; }

/* The _check of a call that nrg_check alone decides about: NRG_ASK(name of its description, parts ...). */
nrg_status nrg_ask(const nrg_call *call, const void *const *part);
#define NRG_ASK(name, ...) nrg_ask(&nrg_call_##name, (const void *const[]){__VA_ARGS__})

/* Only parts, struct sizes, ranges and options. */
nrg_status nrg_check_options(nrg_checked *c, const nrg_call *call, const void *const *part);

/* What a question about a call's workspace needs: those, and number `space` of the description in units of so many bytes. */
nrg_status nrg_ask_bytes(size_t *bytes, const nrg_call *call, const void *const *part, unsigned space, size_t unit);

#endif
