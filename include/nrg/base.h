/* nrg/base.h: what every nrg header shares: version, export macro, status codes, element types.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BASE_H
#define NRG_BASE_H

#include <stddef.h>
#include <stdint.h>

#define NRG_VERSION_MAJOR 0
#define NRG_VERSION_MINOR 3
#define NRG_VERSION_PATCH 0

/* The version of the numbers: another one wherever a call of before gives another bit for the same operands, and the same one
 * while none does, whatever is added or becomes faster (docs/reproducibility.md). */
#define NRG_NUMBERS_VERSION 3

/* Define it yourself, empty, to hide the API inside a library of your own. On Windows NRG_DLL_EXPORT is defined where the files
 * of the library are compiled for a DLL. A program that takes the DLL may define NRG_DLL, which saves a jump a call, or nothing.
 */
#if defined(NRG_API)
#elif defined(_WIN32) && defined(NRG_DLL_EXPORT)
#define NRG_API __declspec(dllexport)
#elif defined(_WIN32) && defined(NRG_DLL)
#define NRG_API __declspec(dllimport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define NRG_API __attribute__((visibility("default")))
#else
#define NRG_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. Anything but NRG_OK means that nothing was written. */
typedef enum nrg_status {
    NRG_OK = 0,
    NRG_ERR_NULL = 1,             /* spec, args or a pointer the call needs is NULL */
    NRG_ERR_STRUCT_SIZE = 2,      /* a struct's size field is no size of any nrg version, or reserved is not 0 */
    NRG_ERR_DIM = 3,              /* dim, channels or s is 0, or no multiple of groups */
    NRG_ERR_OVERFLOW = 4,         /* dim, rows and stride address more bytes than a size_t counts */
    NRG_ERR_STRIDE = 5,           /* a stride is shorter than a row, or than what it steps over */
    NRG_ERR_ALIGNMENT = 6,        /* a pointer or a stride is no multiple of its element's size */
    NRG_ERR_OVERLAP = 7,          /* an output overlaps another operand in a way the header does not allow */
    NRG_ERR_ENUM = 8,             /* a dtype, mode, store kind, layout, gate, activation or set of bits is unknown */
    NRG_ERR_DTYPE = 9,            /* a known dtype that this operand may not have beside spec.dtype */
    NRG_ERR_EPS = 10,             /* eps is negative, infinite or NaN */
    NRG_ERR_CONSTANT = 11,        /* c, weight_offset or momentum is NaN or out of its range */
    NRG_ERR_COMBINATION = 12,     /* options that exclude each other */
    NRG_ERR_THREAD = 13,          /* not 0 <= ith < nth */
    NRG_ERR_ISA_UNKNOWN = 14,     /* no path of this name or number */
    NRG_ERR_ISA_UNSUPPORTED = 15, /* the path is not in this build, or this CPU or its OS cannot run it */
    NRG_ERR_WORKSPACE = 16,       /* workspace_size is smaller than the call needs, or the phase before was left out */
    NRG_ERR_COUNT = 17,           /* a set has too few elements for what is asked for */
    NRG_ERR_POSITION = 18         /* a position or an id that its table does not have, or that nothing can be computed for */
} nrg_status;

/* Four dimensions. Rows of `dim` adjacent elements may lie in up to three dimensions more, as in ggml's ne and nb: `rows` of them
 * make a plane, `rows2` planes make a volume, and there are `rows3` volumes. rows2 and rows3 of 0 stand for 1, so that who has a
 * matrix never meets them; a tensor without rows is one of rows = 0, whichever dimension it is that has none. Row i of plane j of
 * volume k of an operand t begins
 *
 *     t + i·t_stride + j·t_stride2 + k·t_stride3       bytes
 *
 * and a stride of 0 stands for dense: the stride inside of that dimension, as often as it is taken. Strides may come in any
 * order: a tensor of [tokens][heads][dim] is the planes of its heads with t_stride the bytes of a token and t_stride2 those of a
 * head. Sorted by size, each that is taken at all must step over what is inside of it, so that no row meets another. Elements of
 * a row are adjacent: where a program's are not, as in the transposed view of a matrix, it makes them so first.
 *
 * An input may repeat over dimensions: one row for all rows of a plane, one plane for all volumes. That is said, since a stride
 * of 0 means another thing, and the stride of a dimension that repeats is not looked at. nrg_repeat values are bits.
 *
 * What is computed are the rows, one as if it were alone: each has the bits that it has in a dense matrix of all of them, i
 * fastest; and where gradients are summed over rows, that is their order, too.
 *
 * Outputs over other operands: an operand in the place of another has its first byte, its element size and its strides, each that
 * is taken, and repeats nowhere. Otherwise, where the bytes from the first to the last of the two overlap, rows of both must be
 * at equal distances and share no byte, as slices of the rows of one buffer do; everything else is refused. Runs that follow
 * without a gap count as one row there. So heads of one buffer [tokens][q, k and v heads][dim] may be read and written at once,
 * in any order of dimensions; where its batches have room for more tokens than there are, rows are not at equal distances, and
 * that is refused, as is a checkerboard of two tensors. */
typedef enum nrg_repeat {
    NRG_REPEAT_NONE = 0,
    NRG_REPEAT_ROWS = 1,  /* the same row for all rows of a plane */
    NRG_REPEAT_ROWS2 = 2, /* the same plane for all planes of a volume */
    NRG_REPEAT_ROWS3 = 4  /* the same volume for all */
} nrg_repeat;

/* Strides of a tensor with batches and heads: bytes from one row, head or batch to the next. A row is a token, a query, a key or
 * a class of a table, and its elements are adjacent.
 *
 * A stride of 0 is dense: the stride inside of that level times its count, in the order of the shape that the operand's comment
 * gives. In [batch, heads, queries, keys] the rows of a head follow each other, in [batch, tokens, heads, dim] the heads of a
 * token. Other strides may come in any order of size; sorted, each must step over all that is inside of it. The stride of a level
 * with one step is not read. */
typedef struct nrg_head_strides {
    size_t row, head, batch;
} nrg_head_strides;

/* How outputs are stored. A hint: it never changes a bit. */
typedef enum nrg_store {
    NRG_STORE_AUTO = 0,  /* by the bytes the whole call touches */
    NRG_STORE_KEEP = 1,  /* ordinary stores: the output is read again soon, keep it in cache */
    NRG_STORE_STREAM = 2 /* non-temporal stores past the cache, where rows start at a multiple of 16 bytes */
} nrg_store;

/* Asking first. Every function that takes (ith, nth), the share of a thread, has one beside it whose name ends in _check and that
 * takes the same without them. It returns what each share of the call would return at this moment, NRG_ERR_THREAD aside, and
 * writes and computes nothing: so threads that must all decide alike may each ask, or one for all of them, before the first
 * begins; and a program that has code of its own for what is refused knows before anything is changed. It looks into operands
 * where the call does before it writes: positions, ids, counts of elements, and whether a phase before has left its workspace,
 * so these have to be there. A function without (ith, nth) is for one thread, and its own status comes before the others begin.
 */

/* A sentence for a status: static storage, never NULL, unknown values included. */
NRG_API const char *nrg_status_string(nrg_status status);

/* "0.3.0", the version of the library that is linked (the macros above: of the header). */
NRG_API const char *nrg_version(void);

/* NRG_NUMBERS_VERSION of the library that is linked. */
NRG_API int nrg_numbers_version(void);

/* Element types. All arithmetic is f32 (row scalars: double); a dtype exists in loads and stores only.
 * A 16-bit result is the f32 result rounded once, to nearest, ties to even. */
typedef enum nrg_dtype {
    NRG_DTYPE_SAME = 0, /* for the optional operands: the dtype of x */
    NRG_F32 = 1,        /* IEEE binary32 */
    NRG_F16 = 2,        /* IEEE binary16 */
    NRG_BF16 = 3        /* bfloat16: the upper half of a binary32 */
} nrg_dtype;

/* How many of a result's last bits are asked for, of an op that has a choice (a field `accuracy` of its spec). Either gives the
 * same bits on every path; the op's own header says what each may be off by. */
typedef enum nrg_accuracy {
    NRG_ACCURACY_FAST = 0, /* f32 sums of short blocks, few operations an element; the op's header has the bounds */
    NRG_ACCURACY_EXACT = 1 /* f32 results within an ulp. For 16-bit results it is the same as fast */
} nrg_accuracy;

/* 4 or 2; 0 for NRG_DTYPE_SAME and for values that are no dtype. */
NRG_API size_t nrg_dtype_size(nrg_dtype dtype);

/* "f32", "f16", "bf16"; "?" for any other value. */
NRG_API const char *nrg_dtype_name(nrg_dtype dtype);

/* Families of functions, each of which a build may leave out; a call of a function that is not there does not link.
 *
 *   norm        norm.h, norm_parts.h, norm_backward.h, norm_sandwich.h
 *   activation  activation.h, glu.h
 *   channel     channel_norm.h, channel_norm_backward.h
 *   rope        rope.h, sinusoidal.h; and norm_rope.h and qkv.h, where norm is there too
 *   recurrent   recurrent.h, floater.h
 *   embed       embed.h; nrg_embed_norm_forward() where norm is there too
 *   relative    relative.h, relative_shift.h
 *   bias        score_bias.h
 *   quantize    quantize.h
 *   softmax     softmax.h, cross_entropy.h
 *
 * The name of family i (0-based), or NULL past the last: iterate from 0 until NULL. */
NRG_API const char *nrg_family_name(unsigned i);

/* 1 if this build holds the family of that name, else 0, also for a name that is none and for NULL. */
NRG_API int nrg_family_built(const char *name);

/* 1 if this build holds the backward passes of its families: every function whose name has "backward" in it. Else 0. */
NRG_API int nrg_backward_built(void);

#ifdef __cplusplus
}
#endif
#endif
