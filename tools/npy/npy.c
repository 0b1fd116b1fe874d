/* .npy files. A header is a Python literal written by a stranger: what it claims is compared with the size of the file before any
 * memory is taken for it. Standard input has no size; memory grows there with the bytes that arrive.
 *
 * SPDX-License-Identifier: MIT */
#include "npy.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../cli.h"

/* The dict of an f4 or f2 array with 64 axes has 1,500 characters at most; what version 1.0 can hold is plenty. */
enum { HEADER_MAX = 65535 };

static const char standard_input[] = "standard input";

typedef struct header {
    char descr[32];
    int structured; /* descr is a list of fields */
    int fortran;
    npy_shape shape;
} header;

/* Where bytes come from. */
typedef struct source {
    const char *name; /* for complaints */
    FILE *file;
    uint64_t left; /* bytes that have not been read, or UNKNOWN */
} source;

#define UNKNOWN UINT64_MAX

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

/* Takes the character if it comes next, spaces aside. */
static int take(cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return 0;
    c->at++;
    return 1;
}

/* A quoted string without escapes, which no key and no descr has. A longer one than fits is cut: it is then no known one. */
static int take_string(cursor *c, char *text, size_t room)
{
    char quote = '\'';
    if (!take(c, quote)) {
        quote = '"';
        if (!take(c, quote))
            return 0;
    }
    size_t length = 0;
    for (; c->at < c->end && *c->at != quote; c->at++) {
        if (*c->at == '\\' || *c->at == '\n')
            return 0;
        if (length + 1 < room)
            text[length++] = *c->at;
    }
    text[length] = 0;
    return take(c, quote);
}

static int take_word(cursor *c, const char *word)
{
    skip_space(c);
    size_t length = strlen(word);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return 0;
    c->at += length;
    return 1;
}

/* A list of fields is not looked into: a bracket is enough to refuse it, and what follows may be anything. */
static int take_descr(cursor *c, header *h)
{
    skip_space(c);
    if (c->at < c->end && *c->at == '[') {
        h->structured = 1;
        return 1;
    }
    return take_string(c, h->descr, sizeof h->descr);
}

static int take_bool(cursor *c, int *value)
{
    *value = take_word(c, "True");
    return *value || take_word(c, "False");
}

static int take_size(cursor *c, size_t *size)
{
    skip_space(c);
    const char *first = c->at;
    *size = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        size_t digit = (size_t)(*c->at - '0');
        if (*size > (SIZE_MAX - digit) / 10)
            return 0;
        *size = *size * 10 + digit;
    }
    if (c->at == first || (*first == '0' && c->at - first > 1)) /* Python knows no 08 */
        return 0;
    if (c->at < c->end && *c->at == 'L') /* a long of Python 2 */
        c->at++;
    return 1;
}

/* (), (3,), (3, 4), (3, 4,); but (3) is a number in brackets. */
static int take_shape(cursor *c, npy_shape *shape)
{
    if (!take(c, '('))
        return 0;
    int comma = 1;
    for (shape->ndim = 0; !take(c, ')'); shape->ndim++) {
        if (!comma || shape->ndim == NPY_MAX_NDIM || !take_size(c, &shape->dims[shape->ndim]))
            return 0;
        comma = take(c, ',');
    }
    return shape->ndim != 1 || comma;
}

static int parse(const char *text, size_t length, header *h)
{
    cursor c = {text, text + length};
    int descr = 0, fortran = 0, shape = 0, comma = 1;
    memset(h, 0, sizeof *h);
    if (!take(&c, '{'))
        return 0;
    while (!take(&c, '}')) {
        char key[16];
        if (!comma || !take_string(&c, key, sizeof key) || !take(&c, ':'))
            return 0;
        if (strcmp(key, "descr") == 0 && !descr++) {
            if (!take_descr(&c, h))
                return 0;
            if (h->structured)
                return 1;
        } else if (strcmp(key, "fortran_order") == 0 && !fortran++) {
            if (!take_bool(&c, &h->fortran))
                return 0;
        } else if (strcmp(key, "shape") == 0 && !shape++) {
            if (!take_shape(&c, &h->shape))
                return 0;
        } else {
            return 0;
        }
        comma = take(&c, ',');
    }
    skip_space(&c);
    return c.at == c.end && descr && fortran && shape;
}

int npy_count(const npy_shape *shape, size_t *count)
{
    int is_empty = 0;
    *count = 1;
    for (int i = 0; i < shape->ndim; i++) {
        size_t length = shape->dims[i] ? shape->dims[i] : 1;
        if (length > SIZE_MAX / 2 / sizeof(float) / *count)
            return 0;
        *count *= length;
        is_empty |= !shape->dims[i];
    }
    if (is_empty)
        *count = 0;
    return 1;
}

/* What is taken in one place. */
typedef struct element_type {
    char descr[4];
    nrg_dtype dtype;
    size_t size;
} element_type;

static const element_type floats[2] = {{"<f4", NRG_F32, 4}, {"<f2", NRG_F16, 2}};
static const element_type byte_types[2] = {{"|u1", (nrg_dtype)NPY_U1, 1}, {"|i1", (nrg_dtype)NPY_I1, 1}};
static const element_type integers[2] = {{"<i4", NRG_DTYPE_SAME, 4}, {"<i8", NRG_DTYPE_SAME, 8}};

/* How to convert a file. The commands round no input themselves, so that every rounding is one that the user has written. */
#define CONVERT "convert it with NumPy: python3 -c \"from numpy import *; save('new.npy', load('%s')"

/* The file to convert; standard input has no name. */
static const char *old_name(const char *path) { return strcmp(path, standard_input) == 0 ? "old.npy" : path; }

static int refuse_dtype(const char *path, const header *h, const element_type types[2])
{
    if (h->structured)
        return cli_refuse("%s: expected dtype '%s' or '%s', got a structured array", path, types[0].descr, types[1].descr);
    return cli_refuse("%s: expected dtype '%s' or '%s', got '%s'%s; " CONVERT ".astype('%s'))\"", path, types[0].descr,
                      types[1].descr, h->descr, h->descr[0] == '>' ? " (big-endian)" : "", old_name(path), types[0].descr);
}

static int wrong_length(const source *from, const npy_shape *shape, uint64_t wanted, uint64_t there)
{
    char text[NPY_SHAPE_ROOM];
    return cli_refuse("%s: %s: expected %llu bytes of data for shape %s, got %s%llu", from->name,
                      there < wanted ? "truncated" : "too long", (unsigned long long)wanted, npy_shape_text(text, shape),
                      from->left == UNKNOWN && there > wanted ? "at least " : "", (unsigned long long)there);
}

/* Turns a parsed header into an array without data; its bytes have to be exactly those that are left in the file. */
static int interpret(const source *from, const header *h, const element_type types[2], npy_array *array, uint64_t *bytes)
{
    const char *path = from->name;
    int type = strcmp(h->descr, types[0].descr) == 0 ? 0 : 1;
    if (strcmp(h->descr, types[type].descr) != 0 || h->structured)
        return refuse_dtype(path, h, types);
    if (h->fortran)
        return cli_refuse("%s: expected C order, got Fortran order; " CONVERT ".copy('C'))\"", path, old_name(path));
    array->dtype = types[type].dtype;
    array->shape = h->shape;
    char text[NPY_SHAPE_ROOM];
    size_t element = types[type].size;
    if (!npy_count(&h->shape, &array->count))
        return cli_refuse("%s: an array of shape %s does not fit in memory", path, npy_shape_text(text, &h->shape));
    *bytes = (uint64_t)array->count * element;
    return from->left == UNKNOWN || from->left == *bytes ? CLI_DONE : wrong_length(from, &h->shape, *bytes, from->left);
}

static size_t read_part(source *from, void *bytes, size_t count)
{
    errno = 0;
    const size_t got = fread(bytes, 1, count, from->file);
    if (from->left != UNKNOWN)
        from->left -= got;
    return got;
}

/* After a read that gave too little: an error, or a file that was cut meanwhile. */
static int cut_short(const source *from, const char *otherwise)
{
    return cli_refuse("%s: %s", from->name, ferror(from->file) && errno ? strerror(errno) : otherwise);
}

static int read_bytes(source *from, void *bytes, size_t count)
{
    return read_part(from, bytes, count) == count ? CLI_DONE : cut_short(from, "truncated");
}

static int no_memory(const char *path, uint64_t bytes)
{
    return cli_fail("%s: no memory for %llu bytes", path, (unsigned long long)bytes);
}

/* Magic, version and length of the header. */
static int read_prefix(source *from, size_t *length)
{
    unsigned char prefix[12];
    static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    const char *path = from->name;
    if (read_part(from, prefix, 8) < 8)
        return cut_short(from, "not a .npy file");
    if (memcmp(prefix, magic, sizeof magic) != 0)
        return cli_refuse("%s: not a .npy file", path);
    if (prefix[6] < 1 || prefix[6] > 3 || prefix[7] != 0)
        return cli_refuse("%s: expected .npy version 1.0, 2.0 or 3.0, got %d.%d", path, prefix[6], prefix[7]);
    const size_t digits = prefix[6] == 1 ? 2 : 4;
    const int status = read_bytes(from, prefix + 8, digits);
    if (status != CLI_DONE)
        return status;
    *length = prefix[8] | (size_t)prefix[9] << 8;
    if (digits == 4)
        *length |= (size_t)prefix[10] << 16 | (size_t)prefix[11] << 24;
    if (*length > from->left || *length > HEADER_MAX)
        return cli_refuse("%s: %s: the header claims %zu bytes", path, *length > from->left ? "truncated" : "broken", *length);
    return CLI_DONE;
}

static int read_header(source *from, header *h)
{
    size_t length = 0;
    int status = read_prefix(from, &length);
    if (status != CLI_DONE)
        return status;
    char *text = malloc(length + 1);
    if (!text)
        return no_memory(from->name, length + 1);
    status = read_bytes(from, text, length);
    if (status == CLI_DONE && !parse(text, length, h)) {
        complain("%s: broken .npy header", from->name);
        status = CLI_REFUSED;
    }
    free(text);
    return status;
}

/* 64-bit integers to 32 bits, into the lower half of the same memory. */
static int narrow(const char *path, npy_array *array)
{
    for (size_t i = 0; i < array->count; i++) {
        int64_t wide;
        memcpy(&wide, (char *)array->data + i * sizeof wide, sizeof wide);
        if (wide < INT32_MIN || wide > INT32_MAX)
            return cli_refuse("%s: expected integers of 32 bits, got %lld at index %zu", path, (long long)wide, i);
        int32_t element = (int32_t)wide;
        memcpy((char *)array->data + i * sizeof element, &element, sizeof element);
    }
    return CLI_DONE;
}

/* From standard input as much memory as twice what has come, at least FIRST_ROOM; from a file all at once. */
static int read_data(source *from, size_t bytes, npy_array *array)
{
    enum { FIRST_ROOM = 1 << 20 };
    const int is_known = from->left != UNKNOWN;
    size_t room = is_known || bytes < FIRST_ROOM ? bytes : FIRST_ROOM, got = 0;
    for (;;) {
        void *data = realloc(array->data, room ? room : 1);
        if (!data)
            return no_memory(from->name, room);
        array->data = data;
        got += read_part(from, (char *)data + got, room - got);
        if (got < room && (is_known || ferror(from->file)))
            return cut_short(from, "truncated while it was read");
        if (got < room)
            return wrong_length(from, &array->shape, bytes, got);
        if (got == bytes)
            break;
        room = room > bytes / 2 ? bytes : 2 * room;
    }
    return is_known || getc(from->file) == EOF ? CLI_DONE : wrong_length(from, &array->shape, bytes, bytes + 1);
}

static int read_array(source *from, const element_type types[2], npy_array *array)
{
    header h;
    uint64_t bytes = 0;
    int status = read_header(from, &h);
    if (status == CLI_DONE)
        status = interpret(from, &h, types, array, &bytes);
    if (status == CLI_DONE)
        status = read_data(from, (size_t)bytes, array);
    if (status == CLI_DONE && strcmp(h.descr, "<i8") == 0)
        status = narrow(from->name, array);
    if (status != CLI_DONE) {
        free(array->data);
        array->data = NULL;
    }
    return status;
}

/* Opens a regular file and says how long it is; NULL after a complaint. */
static FILE *open_file(const char *path, uint64_t *size)
{
    /* looked at before it is opened: opening a pipe would wait for its other end */
    struct stat found;
    FILE *file = NULL;
    if (stat(path, &found) != 0 || (S_ISREG(found.st_mode) && !(file = fopen(path, "rb"))))
        complain("%s: %s", path, strerror(errno));
    else if (!file)
        complain("%s: not a regular file; a file named - is standard input", path);
    else if (fstat(fileno(file), &found) == 0 && S_ISREG(found.st_mode)) {
        *size = (uint64_t)found.st_size;
        return file;
    } else
        complain("%s: changed while it was opened", path);
    if (file)
        fclose(file);
    return NULL;
}

static int read_types(const char *path, const element_type types[2], npy_array *array)
{
    memset(array, 0, sizeof *array);
    const int is_standard = cli_is_standard(path);
    source from = {cli_file_name(path, standard_input), stdin, UNKNOWN};
    if (!is_standard && !(from.file = open_file(path, &from.left)))
        return CLI_REFUSED;
    const int status = read_array(&from, types, array);
    if (!is_standard)
        fclose(from.file);
    return status;
}

int npy_read(const char *path, npy_array *array) { return read_types(path, floats, array); }

int npy_read_integers(const char *path, npy_array *array) { return read_types(path, integers, array); }

int npy_read_bytes(const char *path, npy_array *array) { return read_types(path, byte_types, array); }

size_t npy_size(nrg_dtype dtype) { return (int)dtype >= NPY_U1 ? 1 : nrg_dtype_size(dtype); }

const char *npy_descr(nrg_dtype dtype)
{
    return (int)dtype == NPY_U1 ? "|u1" : (int)dtype == NPY_I1 ? "|i1" : dtype == NRG_F32 ? "<f4" : "<f2";
}

/* "(3, 4)"; where the room does not suffice it ends in "...)". Returns its length. */
static size_t print_shape(char *text, size_t room, const npy_shape *shape)
{
    size_t length = (size_t)snprintf(text, room, "(");
    for (int i = 0; i < shape->ndim; i++) {
        if (room - length < 32)
            return length + (size_t)snprintf(text + length, room - length, "...)");
        length += (size_t)snprintf(text + length, room - length, "%zu%s", shape->dims[i],
                                   shape->ndim == 1      ? ","
                                   : i + 1 < shape->ndim ? ", "
                                                         : "");
    }
    return length + (size_t)snprintf(text + length, room - length, ")");
}

size_t npy_header(char header_text[NPY_HEADER_ROOM], nrg_dtype dtype, const npy_shape *shape)
{
    size_t length = 10;
    const size_t room = NPY_HEADER_ROOM;
    length += (size_t)snprintf(header_text + length, room - length,
                               "{'descr': '%s', 'fortran_order': False, 'shape': ", npy_descr(dtype));
    length += print_shape(header_text + length, room - length, shape);
    length += (size_t)snprintf(header_text + length, room - length, ", }");
    /* at most 10 + 50 + 64 · 22 + 4 characters: there is room for the spaces and the newline */
    while ((length + 1) % 64)
        header_text[length++] = ' ';
    header_text[length++] = '\n';
    memcpy(header_text, "\x93NUMPY\1\0", 8);
    header_text[8] = (char)((length - 10) & 255);
    header_text[9] = (char)((length - 10) >> 8);
    return length;
}

const char *npy_shape_text(char text[NPY_SHAPE_ROOM], const npy_shape *shape)
{
    print_shape(text, NPY_SHAPE_ROOM, shape);
    return text;
}

static int same_shape(const npy_shape *a, const npy_shape *b)
{
    return a->ndim == b->ndim && memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof a->dims[0]) == 0;
}

int npy_check_shape(const npy_array *array, const char *name, const npy_shape *wanted, const char *beside)
{
    char has[NPY_SHAPE_ROOM], wants[NPY_SHAPE_ROOM];
    if (same_shape(&array->shape, wanted))
        return CLI_DONE;
    return cli_refuse("%s: expected shape %s to match %s, got %s", name, npy_shape_text(wants, wanted), beside,
                      npy_shape_text(has, &array->shape));
}

static float widen(uint16_t half)
{
    int exponent = half >> 10 & 31, mantissa = half & 0x3ff;
    float magnitude = exponent == 31  ? mantissa ? NAN : INFINITY
                      : exponent == 0 ? ldexpf((float)mantissa, -24)
                                      : ldexpf((float)(mantissa + 1024), exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

int npy_widen(npy_array *array)
{
    const uint16_t *halves = array->data;
    /* an input's bytes fit, and so do as many in f32: npy.c */
    float *wide = malloc(array->count ? array->count * sizeof *wide : 1);
    if (!wide)
        return npy_no_memory(array->count * sizeof *wide);
    for (size_t i = 0; i < array->count; i++)
        wide[i] = widen(halves[i]);
    free(array->data);
    array->data = wide;
    array->dtype = NRG_F32;
    return CLI_DONE;
}

int npy_reserve(npy_array *array)
{
    size_t bytes = array->count * npy_size(array->dtype);
    array->data = malloc(bytes ? bytes : 1);
    return array->data ? CLI_DONE : npy_no_memory(bytes);
}

int npy_no_memory(size_t bytes) { return cli_fail("no memory for %zu bytes", bytes); }
