/* The reader of .npy files: any bytes are an array or refused, and what has been read is written as NumPy would.
 *
 * Input: which reader; then the file.
 *
 * SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../tools/cli.h"
#include "../../tools/npy/npy.h"

static int file;
static char path[64];

static void write_file(const void *head, size_t head_size, const void *body, size_t body_size)
{
    if (ftruncate(file, 0) != 0 || pwrite(file, head, head_size, 0) != (ssize_t)head_size ||
        pwrite(file, body, body_size, (off_t)head_size) != (ssize_t)body_size)
        abort();
}

/* Its own header is read again as the same array. */
static void reread(const npy_array *array, int (*read)(const char *, npy_array *))
{
    char header[NPY_HEADER_ROOM];
    const size_t bytes = array->count * npy_size(array->dtype), length = npy_header(header, array->dtype, &array->shape);
    npy_array again;
    write_file(header, length, array->data, bytes);
    if (length % 64 != 0 || read(path, &again) != CLI_DONE || again.dtype != array->dtype || again.count != array->count ||
        memcmp(&again.shape, &array->shape, sizeof again.shape) != 0 || memcmp(again.data, array->data, bytes) != 0)
        abort();
    free(again.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, npy_array *) = {npy_read, npy_read_integers, npy_read_bytes};
    npy_array array;
    if (!file) {
        file = memfd_create("npy", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (!size)
        return 0;
    const int which = data[0] % 3;
    write_file(data + 1, size - 1, NULL, 0);
    if (readers[which](path, &array) != CLI_DONE)
        return 0;
    char text[NPY_SHAPE_ROOM];
    if (strlen(npy_shape_text(text, &array.shape)) >= NPY_SHAPE_ROOM)
        abort();
    if (which != 1)
        reread(&array, readers[which]);
    free(array.data);
    return 0;
}
