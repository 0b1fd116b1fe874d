/* tools/npy/npy.h: NumPy's .npy format, as far as the commands need it: little-endian arrays in C order, f32 and f16, bytes with
 * and without a sign, and to be read i32 and i64.
 *
 * The format: numpy/lib/format.py, versions 1.0, 2.0 and 3.0. Data is read and written as it lies in memory, so this code is for
 * little-endian hosts, which are the only ones nrg is built for.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_NPY_NPY_H
#define NRG_TOOLS_NPY_NPY_H

#include <stddef.h>

#include <nrg/nrg.h>

enum {
    NPY_MAX_NDIM = 64, /* NumPy 2 has 64, NumPy 1 has 32 */
    NPY_HEADER_ROOM = 2048,
    NPY_SHAPE_ROOM = 128
};

/* Beside the values of nrg_dtype. */
enum { NPY_U1 = 32, NPY_I1 };

typedef struct npy_shape {
    int ndim;
    size_t dims[NPY_MAX_NDIM];
} npy_shape;

typedef struct npy_array {
    nrg_dtype dtype; /* NRG_F32 or NRG_F16, or of bytes NPY_U1 or NPY_I1; of integers NRG_DTYPE_SAME */
    npy_shape shape;
    size_t count; /* elements */
    int is_lent;  /* data is an output's, too */
    void *data;   /* from malloc; never NULL after npy_read, not even for no elements. Of integers: int32_t */
} npy_array;

/* From a file, or from standard input, which "-" stands for. Returns CLI_DONE, or complains and returns the exit status; the
 * array then needs no free. */
int npy_read(const char *path, npy_array *array);

/* The same for positions and ids, of 32 or 64 bits in the file, which have to fit 32. */
int npy_read_integers(const char *path, npy_array *array);

/* The same for bytes. */
int npy_read_bytes(const char *path, npy_array *array);

/* Writes the header of version 1.0 for an array, a multiple of 64 bytes, and returns its length. */
size_t npy_header(char header[NPY_HEADER_ROOM], nrg_dtype dtype, const npy_shape *shape);

/* The number of elements; 0 where they do not fit in memory. As in NumPy, even an array without elements has a limit: the bytes
 * of its other axes, here in f32 since outputs may be that, fit a signed size. */
int npy_count(const npy_shape *shape, size_t *count);

/* Bytes of an element; of no integers. */
size_t npy_size(nrg_dtype dtype);

/* Checks that an array has the shape of the file `beside`. Like the three below it returns CLI_DONE, or the exit status after a
 * complaint. */
int npy_check_shape(const npy_array *array, const char *name, const npy_shape *wanted, const char *beside);

/* Its f16 elements become f32. */
int npy_widen(npy_array *array);

/* Memory for an output whose dtype, shape and count are known. */
int npy_reserve(npy_array *array);

int npy_no_memory(size_t bytes);

/* "<f4", "<f2", "|u1", "|i1". */
const char *npy_descr(nrg_dtype dtype);

/* "(3, 4)"; a long one ends in "...". Returns text. */
const char *npy_shape_text(char text[NPY_SHAPE_ROOM], const npy_shape *shape);

#endif
