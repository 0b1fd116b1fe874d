/* Calls of the library without Python's work: nrg._replay.
 *
 * planned(function, record) returns a function with the arguments and results of `function`. The second call with arguments of some dtypes,
 * shapes, strides and options runs record(function, args, kwargs), which returns (result, plan). Further calls with such arguments replay
 * the plan: they make the arrays for results, copy the structs, set the addresses in them, and call the library without the GIL. If an
 * argument is of a type that a key does not hold, or the library returns an error, `function` runs, and raises the error.
 *
 * An array is a NumPy array, or a PyTorch tensor in CPU memory: of the types in `tensors`. A call holds the buffer of an array, but not the
 * storage of a tensor: as with PyTorch's functions, no other thread may replace or resize it meanwhile.
 *
 * A plan is False, or (code, arrays, kind, kept):
 * - code: bytes of struct code, steps, patches, results, and the structs that the calls receive.
 * - arrays: functions that make the new arrays.
 * - kind: None if the result is one array, tuple, or a subclass of tuple.
 * - kept: the objects that the key holds by address. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { MAX_ARRAYS = 24, MAX_WORDS = 384, MAX_IMAGE = 4096, MAX_PLANS = 1024, MAX_STRUCTS = 5 };
enum { KEY_OBJECT, KEY_INT, KEY_FLOAT, KEY_TUPLE, KEY_ARRAY };

struct code {
    int64_t steps, patches, results, image_size;
};
struct step {
    int64_t function, structs, offset[MAX_STRUCTS]; /* offset in the image, -1 for NULL */
};
struct patch {
    int64_t offset, array, delta; /* image[offset] = address of the array + delta */
};

/* The elements of an array lie from begin to last; view: of a NumPy array. */
struct array {
    PyObject *object;
    int64_t begin, last;
    int readonly;
    Py_buffer view;
};

/* Arrays of a call: those of its arguments, then new ones. */
struct call {
    int64_t key[MAX_WORDS];
    int words, count;
    struct array array[MAX_ARRAYS];
};

static PyObject *ndarray, *dtype, *constants, *tensors;
static _Thread_local int recording; /* other planned functions run, to be recorded too */
/* attributes and methods */
static PyObject *name_dtype, *name_shape, *name_itemsize, *name_is_cpu, *name_data_ptr, *name_stride, *name_is_neg;

static int put(struct call *c, int64_t word)
{
    if (c->words == MAX_WORDS)
        return 0;
    c->key[c->words++] = word;
    return 1;
}

static int is_tensor(PyObject *value)
{
    const int is = PySet_Contains(tensors, (PyObject *)Py_TYPE(value));
    if (is < 0)
        PyErr_Clear();
    return is == 1;
}

/* Returns 0 without an object, or with an exception. */
static int put_integer(struct call *c, PyObject *number, int64_t *value)
{
    *value = number ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    return (*value != -1 || !PyErr_Occurred()) && put(c, *value);
}

/* Appends an object by its address. The array keeps it. */
static int put_attribute(struct call *c, PyObject *array, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(array, name);
    Py_XDECREF(value);
    return value && put(c, (intptr_t)value);
}

static int add_tensor(struct call *c, PyObject *tensor)
{
    struct array *array = &c->array[c->count];
    PyObject *address = PyObject_CallMethodObjArgs(tensor, name_data_ptr, NULL);
    const unsigned long long begin = address ? PyLong_AsUnsignedLongLong(address) : 0;
    Py_XDECREF(address);
    *array = (struct array){.object = tensor, .begin = (int64_t)begin, .last = (int64_t)begin};
    c->count += begin != 0;
    return begin != 0;
}

static int add_array(struct call *c, PyObject *object)
{
    struct array *array = &c->array[c->count];
    int i;
    if (c->count == MAX_ARRAYS)
        return 0;
    if (is_tensor(object))
        return add_tensor(c, object);
    if (PyObject_GetBuffer(object, &array->view, PyBUF_STRIDES) < 0)
        return 0;
    array->object = object;
    array->readonly = array->view.readonly;
    array->begin = array->last = (intptr_t)array->view.buf;
    for (i = 0; i < array->view.ndim; i++)
        array->last += (array->view.shape[i] - 1) * array->view.strides[i];
    c->count++;
    return 1;
}

static void drop_array(struct call *c)
{
    struct array *array = &c->array[--c->count];
    if (array->view.obj)
        PyBuffer_Release(&array->view);
}

/* Shape and strides of a tensor. */
static int put_extent(struct call *c, PyObject *tensor, int64_t *last)
{
    PyObject *shape = PyObject_GetAttr(tensor, name_shape);
    PyObject *strides = shape ? PyObject_CallMethodObjArgs(tensor, name_stride, NULL) : NULL;
    PyObject *kind = strides ? PyObject_GetAttr(tensor, name_dtype) : NULL;
    const Py_ssize_t ndim = kind ? PyTuple_Size(shape) : 0;
    int64_t size, n, stride;
    int ok = ndim > 0 && put(c, ndim) && put_integer(c, PyObject_GetAttr(kind, name_itemsize), &size);
    Py_ssize_t i;
    for (i = 0; ok && i < ndim; i++) {
        ok = put_integer(c, Py_NewRef(PyTuple_GetItem(shape, i)), &n) &&
             put_integer(c, Py_NewRef(PyTuple_GetItem(strides, i)), &stride) && n > 0;
        *last += ok ? (n - 1) * stride * size : 0;
    }
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    Py_XDECREF(kind);
    return ok;
}

static int put_tensor(struct call *c, PyObject *tensor)
{
    PyObject *negative = PyObject_CallMethodObjArgs(tensor, name_is_neg, NULL); /* of the imaginary part of a conjugate */
    Py_XDECREF(negative);
    return negative == Py_False && put(c, KEY_ARRAY) && put_attribute(c, tensor, name_dtype) &&
           put_attribute(c, tensor, name_is_cpu) && put_extent(c, tensor, &c->array[c->count - 1].last);
}

static int put_ndarray(struct call *c, PyObject *object)
{
    const Py_buffer *view = &c->array[c->count - 1].view;
    int i;
    if (view->ndim == 0 || view->len == 0 || !put(c, KEY_ARRAY | view->readonly << 8 | view->ndim << 16) ||
        !put_attribute(c, object, name_dtype))
        return 0;
    for (i = 0; i < view->ndim; i++) {
        if (view->strides[i] < 0 || !put(c, view->shape[i]) || !put(c, view->strides[i]))
            return 0;
    }
    return 1;
}

/* The key of an array holds its distance from those before that it overlaps, since an address in both has two sources; and which of them
 * it is itself, since a result is one of these objects. */
static int put_array(struct call *c, PyObject *object)
{
    const struct array *array = &c->array[c->count], *other;
    if (!add_array(c, object) || !(array->view.obj ? put_ndarray(c, object) : put_tensor(c, object)))
        return 0;
    for (other = c->array; other < array; other++) {
        if (array->begin <= other->last && other->begin <= array->last &&
            (!put(c, (other - c->array) * 2 + (other->object == object)) || !put(c, array->begin - other->begin)))
            return 0;
    }
    return put(c, -1);
}

/* inside: of a tuple */
static int put_argument(struct call *c, PyObject *value, int inside)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == (PyTypeObject *)ndarray || is_tensor(value))
        return put_array(c, value);
    if (value == Py_None || type == &PyBool_Type || type == &PyUnicode_Type)
        return put(c, KEY_OBJECT) && put(c, (intptr_t)value);
    if (type == &PyLong_Type) {
        int overflow;
        const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        return !overflow && put(c, KEY_INT) && put(c, number);
    }
    if (type == &PyFloat_Type) {
        const double number = PyFloat_AsDouble(value);
        int64_t bits;
        memcpy(&bits, &number, sizeof bits);
        return put(c, KEY_FLOAT) && put(c, bits);
    }
    if (type == &PyTuple_Type && !inside) {
        const Py_ssize_t size = PyTuple_Size(value);
        Py_ssize_t i;
        for (i = 0; i < size; i++) {
            if (!put_argument(c, PyTuple_GetItem(value, i), 1))
                return 0;
        }
        return put(c, KEY_TUPLE) && put(c, size);
    }
    if (type == &PyType_Type || PyObject_TypeCheck(value, (PyTypeObject *)dtype) ||
        PySet_Contains(constants, (PyObject *)type) == 1)
        return put(c, KEY_OBJECT) && put(c, (intptr_t)value);
    return 0;
}

/* Returns 0 if a key does not hold these arguments. */
static int make_key(struct call *c, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    Py_ssize_t i;
    c->words = 0;
    for (i = 0; i < nargs + named; i++) {
        if ((i >= nargs && !put(c, (intptr_t)PyTuple_GetItem(names, i - nargs))) || !put_argument(c, args[i], 0))
            return 0;
    }
    return put(c, nargs);
}

static int run_step(const struct step *step, char *image)
{
    const intptr_t f = (intptr_t)step->function;
    const void *p[MAX_STRUCTS];
    int i;
    for (i = 0; i < step->structs; i++)
        p[i] = step->offset[i] < 0 ? NULL : image + step->offset[i];
    switch (step->structs) {
    case 1:
        return ((int (*)(const void *, int, int))f)(p[0], 0, 1);
    case 2:
        return ((int (*)(const void *, const void *, int, int))f)(p[0], p[1], 0, 1);
    case 3:
        return ((int (*)(const void *, const void *, const void *, int, int))f)(p[0], p[1], p[2], 0, 1);
    case 4:
        return ((int (*)(const void *, const void *, const void *, const void *, int, int))f)(p[0], p[1], p[2], p[3], 0, 1);
    default:
        return ((int (*)(const void *, const void *, const void *, const void *, const void *, int, int))f)(p[0], p[1], p[2],
                                                                                                            p[3], p[4], 0, 1);
    }
}

/* Returns NULL without an exception if the library returns an error. */
static PyObject *replay(struct call *c, PyObject *plan)
{
    const struct code *code = (const struct code *)PyBytes_AsString(PyTuple_GetItem(plan, 0));
    const struct step *steps = (const struct step *)(code + 1);
    const struct patch *patches = (const struct patch *)(steps + code->steps);
    const int64_t *results = (const int64_t *)(patches + code->patches);
    PyObject *new_arrays = PyTuple_GetItem(plan, 1), *kind = PyTuple_GetItem(plan, 2), *result = NULL, *made;
    const int given = c->count;
    union {
        char bytes[MAX_IMAGE];
        double align;
    } image;
    Py_ssize_t i;
    PyThreadState *thread;
    int status = 0;
    for (i = 0; i < PyTuple_Size(new_arrays); i++) {
        PyObject *array = PyObject_CallNoArgs(PyTuple_GetItem(new_arrays, i));
        if (!array || !add_array(c, array)) {
            Py_XDECREF(array);
            goto done;
        }
    }
    for (i = 0; i < code->results; i++) {
        if (results[i] >= 0 && c->array[results[i]].readonly)
            goto done;
    }
    memcpy(image.bytes, results + code->results, (size_t)code->image_size);
    for (i = 0; i < code->patches; i++) {
        const char *address = (const char *)(intptr_t)(c->array[patches[i].array].begin + patches[i].delta);
        memcpy(image.bytes + patches[i].offset, &address, sizeof address);
    }
    thread = PyEval_SaveThread();
    for (i = 0; i < code->steps && !status; i++)
        status = run_step(&steps[i], image.bytes);
    PyEval_RestoreThread(thread);
    if (status)
        goto done;
    if (kind == Py_None) {
        result = Py_NewRef(c->array[results[0]].object);
        goto done;
    }
    made = PyTuple_New((Py_ssize_t)code->results);
    for (i = 0; made && i < code->results; i++)
        PyTuple_SetItem(made, i, Py_NewRef(results[i] < 0 ? Py_None : c->array[results[i]].object));
    result = made && kind != (PyObject *)&PyTuple_Type ? PyObject_CallObject(kind, made) : Py_XNewRef(made);
    Py_XDECREF(made);
done:
    while (c->count > given) {
        drop_array(c);
        Py_DECREF(c->array[c->count].object);
    }
    return result;
}

/* Runs the Python function. recorded: under record(), which makes a plan for the key. */
static PyObject *run(PyObject *self, PyObject *key, int recorded, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *plans = PyTuple_GetItem(self, 0), *function = PyTuple_GetItem(self, 1), *record = PyTuple_GetItem(self, 2);
    PyObject *positional = PyTuple_New(nargs), *named = PyDict_New(), *result = NULL, *pair = NULL;
    Py_ssize_t i;
    for (i = 0; positional && i < nargs; i++)
        PyTuple_SetItem(positional, i, Py_NewRef(args[i]));
    for (i = 0; named && names && i < PyTuple_Size(names); i++) {
        if (PyDict_SetItem(named, PyTuple_GetItem(names, i), args[nargs + i]) < 0)
            Py_CLEAR(named);
    }
    if (positional && named && !recorded)
        result = PyObject_Call(function, positional, named);
    else if (positional && named) {
        recording = 1;
        pair = PyObject_CallFunctionObjArgs(record, function, positional, named, NULL);
        recording = 0;
    }
    if (pair && PyDict_SetItem(plans, key, PyTuple_GetItem(pair, 1)) == 0)
        result = Py_NewRef(PyTuple_GetItem(pair, 0));
    Py_XDECREF(pair);
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return result;
}

/* The dictionary has a plan for a key; None after one call, which may be the only one of its kind; or False if there is no plan. */
static PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct call c;
    int is_new = 0;
    PyObject *plans = PyTuple_GetItem(self, 0), *key = NULL, *plan = NULL, *result = NULL;
    c.count = 0;
    if (!recording && make_key(&c, args, nargs, names) &&
        (key = PyBytes_FromStringAndSize((const char *)c.key, (Py_ssize_t)sizeof c.key[0] * c.words))) {
        plan = Py_XNewRef(PyDict_GetItemWithError(plans, key));
        is_new = !plan;
        if (plan && plan != Py_None && plan != Py_False)
            result = replay(&c, plan);
    }
    while (c.count)
        drop_array(&c);
    if (!result) {
        PyErr_Clear(); /* the Python function raises it */
        result = run(self, key, plan == Py_None, args, nargs, names);
        if (result && is_new) { /* what fails is not recorded */
            if (PyDict_Size(plans) >= MAX_PLANS)
                PyDict_Clear(plans);
            if (PyDict_SetItem(plans, key, Py_None) < 0)
                PyErr_Clear();
        }
    }
    Py_XDECREF(key);
    Py_XDECREF(plan);
    return result;
}

static PyObject *planned(PyObject *module, PyObject *args)
{
    static PyMethodDef method = {"planned", (PyCFunction)(void (*)(void))call, METH_FASTCALL | METH_KEYWORDS, NULL};
    PyObject *function, *record, *self, *result;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &function, &record) || !(self = Py_BuildValue("{}OO", function, record)))
        return NULL;
    result = PyCFunction_NewEx(&method, self, NULL);
    Py_DECREF(self);
    return result;
}

PyMODINIT_FUNC PyInit__replay(void)
{
    static PyMethodDef methods[] = {{"planned", planned, METH_VARARGS, "planned(function, record)"}, {NULL, NULL, 0, NULL}};
    static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "nrg._replay", NULL, -1, methods, NULL, NULL, NULL, NULL};
    const struct {
        PyObject **name;
        const char *text;
    } names[] = {{&name_dtype, "dtype"},   {&name_shape, "shape"},       {&name_itemsize, "itemsize"}, {&name_is_cpu, "is_cpu"},
                 {&name_stride, "stride"}, {&name_data_ptr, "data_ptr"}, {&name_is_neg, "is_neg"}};
    PyObject *numpy = PyImport_ImportModule("numpy"), *module = NULL;
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!(*names[i].name = PyUnicode_InternFromString(names[i].text)))
            return NULL;
    }
    if (numpy && (ndarray = PyObject_GetAttrString(numpy, "ndarray")) && (dtype = PyObject_GetAttrString(numpy, "dtype")) &&
        (constants = PySet_New(NULL)) && (tensors = PySet_New(NULL)))
        module = PyModule_Create(&definition);
    if (module &&
        (PyModule_AddObjectRef(module, "constants", constants) < 0 || PyModule_AddObjectRef(module, "tensors", tensors) < 0))
        Py_CLEAR(module);
    Py_XDECREF(numpy);
    return module;
}
