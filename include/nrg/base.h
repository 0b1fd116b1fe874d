/* nrg/base.h: version, rules of the API, status codes and element types. All other headers include it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BASE_H
#define NRG_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "config.h"

#define NRG_VERSION_MAJOR 0
#define NRG_VERSION_MINOR 4
#define NRG_VERSION_PATCH 0

/* The version as one number, for #if: 300 is 0.3.0, 10203 is 1.2.3. */
#define NRG_VERSION (NRG_VERSION_MAJOR * 10000 + NRG_VERSION_MINOR * 100 + NRG_VERSION_PATCH)

/* The version of the numbers. It increases when a released function returns a different bit for the same operands
 * (docs/reproducibility.md). */
#define NRG_NUMBERS_VERSION 1

/* Marks the functions of the API. Define it as empty to hide the API inside your own library. On Windows, the build of a DLL
 * defines NRG_DLL_EXPORT. A program that uses the DLL may define NRG_DLL, which saves one jump per call. */
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

/* Compilers warn if a caller ignores a status. */
#if (defined(__cplusplus) && __cplusplus >= 201703L) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
#define NRG_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define NRG_NODISCARD __attribute__((warn_unused_result))
#else
#define NRG_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The rules of the API. They hold for every header.
 *
 * Constructors. Make each struct with a constructor, nrg_<type>_init or nrg_<type>_<variant>, then change fields. The
 * constructor sets `size` and every default. The comment of a field ends with its default, unless that is 0 or a parameter.
 *
 * Growth. Later versions append fields to structs that begin with `size`; 0 is the default of such a field. A call accepts a
 * smaller struct of an earlier version. It accepts a larger one, of up to 4096 bytes, if all fields that it lacks are 0. Structs
 * without `size` never change: nrg_head_strides, nrg_row_statistics and nrg_channel_statistics.
 *
 * Zero. 0 means 0. A call returns an error if 0 makes no sense in a field. Exceptions: a stride of 0 is dense, NULL omits an
 * operand, and NRG_DTYPE_SAME is the call's dtype. "No limit" is the largest value, FLT_MAX or SIZE_MAX, which constructors set.
 *
 * Empty tensors. If a count is 0, the tensor is empty: the call validates its arguments and does nothing else. Exception: a sum
 * over an empty tensor becomes 0, or keeps its value with `accumulate`.
 *
 * Data types. The dtype is a parameter of the spec's constructor, or of the constructor of args without a spec. Exceptions: the
 * args of nrg/rope.h, nrg/qkv.h and nrg/sinusoidal.h have the dtype, although a spec precedes them.
 *
 * Shapes. [rows, dim] is the shape of a dense tensor, with the last index adjacent in memory. An operand is required unless
 * its comment allows NULL. An operand without elements may be NULL. Pointers need only the alignment of their element.
 *
 * Inputs are pointers to const. Exception: q and k of nrg/rope.h are outputs too if q_o or k_o is NULL.
 *
 * Strides are in bytes. An operand has as many as its shape has levels of rows. A single level has `size_t x_stride`. Rows in up
 * to four dimensions have `size_t x_stride[3]`: from row to row, from plane to plane, from volume to volume (see "Rows"). Heads
 * have `nrg_head_strides x_strides`.
 *
 * Specs and args. `spec` describes the computation. `args` points to the data, and describes its layout and storage. Functions
 * take the specs in the order of the data flow, then args, then ith and nth. Functions with few options have args only. Functions
 * with few operands take these directly, without args: nrg_activation_forward, nrg_t5_diagonals_forward, nrg_alibi_diagonals.
 *
 * Unused fields. A call returns NRG_ERR_COMBINATION if an operand or option is set that its other options do not use. It ignores
 * only hints, strides, dtypes and repeats of omitted operands, and fields with such a comment. Exception: functions that do
 * parts of one operation take the same args.
 *
 * Names. Functions of published methods have the method in the place of the family: nrg_t5_, nrg_alibi_, nrg_head_bias_. The
 * passes end in `_forward` and `_backward`. A `_workspace` function returns the size of a call's workspace. An `_order` function
 * sorts, before a backward pass. A `_reduce` function is the second phase of a backward pass. A `_check` function validates. The
 * gradient of x is dx; longer names begin with d_ (d_table). `_in` marks the input of a pair of input and output.
 *
 * Shortcuts. The f32 shortcuts of nrg/norm.h, such as nrg_rms_norm_f32, are exceptions to two rules. Their names do not begin
 * with nrg_norm_, and eps follows the outputs.
 *
 * Statuses. The comment of each function lists the statuses that it may return, except NRG_ERR_UNALLOCATED (below).
 *
 * Shares. A function that takes ith and nth does share ith of nth of its work; (0, 1) is all of it. From n threads, call it
 * once each with (0, n) to (n - 1, n) and the same specs and args. Shares are disjoint and need no lock.
 *
 * Bits. In the default floating-point environment (nrg/isa.h), results are bit-identical on every path. They do not depend on
 * (ith, nth), alignment, strides or aliasing.
 *
 * Rows in up to four dimensions are as in ggml's ne and nb. A plane has `rows` rows of `dim` adjacent elements, a volume has
 * `rows2` planes, and there are `rows3` volumes. Constructors set rows2 and rows3 to 1. Row i of plane j of volume k of a
 * tensor t begins at
 *
 *     t + i·t_stride[0] + j·t_stride[1] + k·t_stride[2]       bytes
 *
 * A stride of 0 is dense: it steps over the data inside its level. Strides may be in any order of size. In a tensor
 * [tokens][heads][dim], the planes may be its heads. Then t_stride[0] steps from token to token and t_stride[1] from head to
 * head. In order of size, each stride must step over the data inside its level, so that no rows meet. The stride of a level
 * with one step is ignored.
 *
 * An input may repeat over levels: one row for all rows of a plane, one plane for all volumes. A field of nrg_repeat bits
 * declares that. The stride of such a level is ignored.
 *
 * Rows are independent. A row's result is bit-identical to its result in a dense matrix of all rows, i fastest. Sums over rows
 * use that order.
 *
 * Aliasing. In a table, "yes" allows the output of the line to alias the operand of the column. Then both have the same first
 * byte, element size and strides, and neither repeats. Inputs may overlap each other.
 *
 * Any other overlap of an output's byte range with that of another operand is an error. One exception: rows at equal distances
 * may interleave if they share no byte, as slices of one buffer's rows do. Adjacent rows count as one row. So a call may read
 * and write the heads of one buffer [tokens][q, k and v heads][dim] in any order of levels. It must not do so if the buffer
 * has room for more tokens per batch than the call processes. Then the rows are not at equal distances. */

/* Status of a call. After an error, the call has written nothing. */
typedef enum nrg_status {
    NRG_OK = 0,

    /* structs and pointers */
    NRG_ERR_NULL = 1,        /* spec, args or a required operand is NULL */
    NRG_ERR_UNALLOCATED = 2, /* an operand is NRG_UNALLOCATED. Every call may return it, and no _check does */
    NRG_ERR_STRUCT_SIZE = 3, /* the size of a struct is wrong, or a reserved or unknown field is not 0 */

    /* options and numbers */
    NRG_ERR_ENUM = 4,        /* an enum or a set of bits has a value that is unknown, or that this field does not allow */
    NRG_ERR_DTYPE = 5,       /* the dtype of an operand does not fit the dtype of the call */
    NRG_ERR_DIM = 6,         /* a number of elements is 0, or no multiple of another number */
    NRG_ERR_EPS = 7,         /* eps is negative, infinite or NaN */
    NRG_ERR_CONSTANT = 8,    /* another number is NaN or out of its range */
    NRG_ERR_COMBINATION = 9, /* options exclude each other, or an unused field is set */

    /* operands in memory */
    NRG_ERR_OVERFLOW = 10,  /* an operand has more bytes than a size_t can count, or passes the end of memory */
    NRG_ERR_STRIDE = 11,    /* a stride is shorter than the data that it steps over */
    NRG_ERR_ALIGNMENT = 12, /* a pointer or a stride is no multiple of the element size */
    NRG_ERR_OVERLAP = 13,   /* an output overlaps another operand in a way that the header does not allow */
    NRG_ERR_WORKSPACE = 14, /* workspace_size is too small. nrg_embed_backward: or the workspace holds no order */

    /* contents of operands */
    NRG_ERR_COUNT = 15,    /* a set has too few elements, or there are too many tables */
    NRG_ERR_POSITION = 16, /* a position or an id is outside its table, or out of range */

    /* threads and paths */
    NRG_ERR_THREAD = 17,         /* not 0 <= ith < nth */
    NRG_ERR_ISA_UNKNOWN = 18,    /* no path has this name or number */
    NRG_ERR_ISA_UNSUPPORTED = 19 /* this build lacks the path, or this CPU or its system cannot run it */
} nrg_status;

/* The levels over which an input repeats, as bits. */
typedef enum nrg_repeat {
    NRG_REPEAT_NONE = 0,
    NRG_REPEAT_ROWS = 1,  /* the same row for all rows of a plane */
    NRG_REPEAT_ROWS2 = 2, /* the same plane for all planes of a volume */
    NRG_REPEAT_ROWS3 = 4  /* the same volume for all */
} nrg_repeat;

/* Strides of a tensor with batches and heads: bytes from one row, head or batch to the next. A row is a token, a query, a key
 * or a class of a table, and its elements are adjacent.
 *
 * The rules are those of rows. 0 is dense, any order of size is allowed, and the stride of a level with one step is ignored.
 * Dense means the order of the shape in the operand's comment. In [batch, heads, queries, keys] the rows of a head are
 * adjacent; in [batch, tokens, heads, dim] the heads of a token are. */
typedef struct nrg_head_strides {
    size_t row, head, batch;
} nrg_head_strides;

/* How outputs are stored. A hint that never changes a bit. */
typedef enum nrg_store {
    NRG_STORE_AUTO = 0,  /* the library decides by the bytes of the call */
    NRG_STORE_KEEP = 1,  /* ordinary stores, for an output that is read again soon */
    NRG_STORE_STREAM = 2 /* non-temporal stores, if rows start at multiples of 16 bytes */
} nrg_store;

/* Validation. Each function that takes ith and nth has a `_check` with the same other parameters. It has nth too if the size of
 * the workspace depends on it. It returns the status that every share of the call returns. It computes and writes nothing.
 * Validate before you start threads, so that all of them take the same branch. Like the call, a `_check` reads positions, ids,
 * slots, counts of elements and marks in a workspace. So these must be in place.
 *
 * An operand is NRG_UNALLOCATED while its address is not known yet, as in an engine that plans its memory. A `_check` then
 * validates options, shapes, dtypes and strides. It ignores alignment and overlap of such an operand, and reads no contents of
 * any operand. The call itself returns NRG_ERR_UNALLOCATED. Do not add offsets to this pointer. In C++, cast it for a typed
 * pointer: (float *)NRG_UNALLOCATED. */
#define NRG_UNALLOCATED ((void *)UINTPTR_MAX)

/* Returns a sentence that describes a status, in static storage. Never returns NULL.
 *
 * Parameters:
 * - status: any value; unknown values have a sentence too. */
NRG_API const char *nrg_status_string(nrg_status status);

/* Returns the version of the linked library, "0.4.0", in static storage. NRG_VERSION is the version of the header. */
NRG_API const char *nrg_version(void);

/* Returns the NRG_NUMBERS_VERSION of the linked library. */
NRG_API int nrg_numbers_version(void);

/* Element types. All arithmetic is f32, and double for the scalars of a row. A dtype affects only loads and stores. A 16-bit
 * result is the f32 result rounded once, to nearest, ties to even. */
typedef enum nrg_dtype {
    NRG_DTYPE_SAME = 0, /* of some operands: the call's dtype */
    NRG_F32 = 1,        /* IEEE binary32 */
    NRG_F16 = 2,        /* IEEE binary16 */
    NRG_BF16 = 3        /* bfloat16: the upper half of a binary32 */
} nrg_dtype;

/* Enums are fields of structs. If an option such as -fshort-enums changes their size, the layouts of caller and library
 * differ. */
typedef char nrg_dtype_has_four_bytes[sizeof(nrg_dtype) == 4 ? 1 : -1];

/* The grade of ops that have a choice (a field `accuracy` of the spec). Each grade is bit-identical on every path. The op's
 * header has the error bounds. */
typedef enum nrg_accuracy {
    NRG_ACCURACY_FAST = 0, /* f32 sums of short blocks */
    NRG_ACCURACY_EXACT = 1 /* f32 results within an ulp; 16-bit results are those of fast */
} nrg_accuracy;

/* Returns the bytes of an element: 4 or 2. Returns 0 for NRG_DTYPE_SAME and unknown values.
 *
 * Parameters:
 * - dtype: any value. */
NRG_API size_t nrg_dtype_size(nrg_dtype dtype);

/* Returns the name of a dtype: "same", "f32", "f16" or "bf16". Returns NULL for unknown values, so a loop from 0 ends there.
 *
 * Parameters:
 * - dtype: any value. */
NRG_API const char *nrg_dtype_name(nrg_dtype dtype);

/* Returns the name of a family of functions. A build may exclude families (nrg/config.h). Programs that call an excluded
 * function fail to link.
 *
 *     norm          norm.h, norm_parts.h, norm_backward.h, norm_sandwich.h
 *     activation    activation.h, glu.h
 *     channel_norm  channel_norm.h, channel_norm_backward.h
 *     rope          rope.h, sinusoidal.h; with norm also norm_rope.h and qkv.h
 *     recurrent     recurrent.h, floater.h
 *     embed         embed.h; nrg_embed_norm_forward() with norm only
 *     relative      relative.h, relative_shift.h
 *     score_bias    score_bias.h
 *     quantize      quantize.h
 *     softmax       softmax.h, cross_entropy.h
 *
 * Parameters:
 * - i: index of the family, from 0. The function returns NULL beyond the last one, so a loop from 0 ends there. */
NRG_API const char *nrg_family_name(unsigned i);

/* Returns 1 if this build has the family, else 0.
 *
 * Parameters:
 * - name: name of the family. For unknown names and NULL, the function returns 0. */
NRG_API int nrg_family_built(const char *name);

/* Returns 1 if this build has the backward passes of its families, else 0. These are all functions with "backward" in their
 * names. */
NRG_API int nrg_backward_built(void);

#ifdef __cplusplus
}
#endif
#endif
