/* Calls of machine code: arguments become 64-bit words, and their kinds choose the code. And functions of arrays.

   The interface is documented in `raybox.compiler.calls`; `ctypes_calls` is the same in Python. While arguments are
   laid out, no Python code runs: no address can become stale before the call. `raybox.compiler.kinds.refuse` finds
   what is wrong with them once more, and has the texts of all errors.

   On free-threaded builds, tables are read without a lock: they only grow, and each addition is published by a
   single pointer. Elsewhere the GIL guards them. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_1_25_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef Py_GIL_DISABLED
typedef PyMutex Lock;
#define LOCK(lock) PyMutex_Lock(lock)
#define UNLOCK(lock) PyMutex_Unlock(lock)
#define LOAD(pointer) _Py_atomic_load_ptr_acquire(&(pointer))
#define PUBLISH(pointer, value) _Py_atomic_store_ptr_release(&(pointer), value)
#else
typedef char Lock;
#define LOCK(lock) ((void)(lock))
#define UNLOCK(lock) ((void)(lock))
#define LOAD(pointer) (pointer)
#define PUBLISH(pointer, value) ((pointer) = (value))
#endif

#ifdef Py_LIMITED_API
#define ITEM PyTuple_GetItem
#define SIZE PyTuple_Size
#define AS_DOUBLE PyFloat_AsDouble
#if Py_LIMITED_API < 0x030C0000 /* all of it works since Python 3.9, but has a stable name since 3.12 only */
typedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *);
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#endif
#else
#define ITEM PyTuple_GET_ITEM
#define SIZE PyTuple_GET_SIZE
#define AS_DOUBLE PyFloat_AS_DOUBLE
#endif

/* An array has up to five words, all else one or none. */
enum { KINDS = 256, DIMENSIONS = 4, WORDS = (1 + DIMENSIONS) * KINDS, RESULTS = 16, CHAINS = 256, LANES = 8 };

typedef int32_t (*Code)(const int64_t *words, int64_t *results);

/* ---- Kinds ---- */

/* Kinds of numbers, and of what has parts; the latter hold a count in bits 8 to 31 and a number above. */
enum { NONE, INTEGER, DOUBLE, SINGLE, BOOLEAN, ARRAY, TUPLE, NAMED, STRUCT, PLAN };

/* In the kind of an array: of an argument, whether it is read-only; of a row, whether the code writes to it. */
#define GUARDED ((uint64_t)1 << 7)

static inline uint64_t kind_with(uint64_t tag, uint64_t count, uint64_t number) {
    return tag | count << 8 | number << 32;
}

typedef struct Known { /* a class, in a list of those with the same hash */
    struct Known *next;
    PyTypeObject *class; /* a reference: no other class can get its address */
    uint64_t kind, number;
} Known;

typedef struct {
    Known *classes[CHAINS];
    uint64_t class_count;
    PyTypeObject *plan;
    PyObject *refuse, *find_checked;
    Lock lock;
} State;

static inline Known **chain_of(State *state, const PyTypeObject *class) {
    return &state->classes[((uintptr_t)class >> 4) * 0x9E3779B1u >> 16 & (CHAINS - 1)];
}

static inline const Known *known_class(State *state, const PyTypeObject *class) {
    const Known *known = LOAD(*chain_of(state, class));
    while (known && known->class != class) known = known->next;
    return known;
}

/* Return the kind of a class, which is `kind` if the class is new; -1 and MemoryError without memory. */
static int add_class(State *state, PyTypeObject *class, uint64_t kind) {
    Known *new = PyMem_Malloc(sizeof(Known)), **chain = chain_of(state, class);
    if (!new) return PyErr_NoMemory(), -1;
    LOCK(&state->lock);
    const Known *known = known_class(state, class);
    if (!known) {
        *new = (Known){*chain, class, kind, state->class_count++};
        Py_INCREF((PyObject *)class);
        PUBLISH(*chain, new);
    }
    UNLOCK(&state->lock);
    if (known) PyMem_Free(new);
    return (int)(known ? known->kind : kind);
}

static int has_fields(PyTypeObject *class) {
    if (!PyType_IsSubtype(class, &PyTuple_Type)) return 0;
    PyObject *fields = PyObject_GetAttrString((PyObject *)class, "_fields");
    if (!fields) PyErr_Clear();
    int is_tuple = fields && PyTuple_Check(fields);
    Py_XDECREF(fields);
    return is_tuple;
}

/* ---- From arguments to words ---- */

typedef struct {
    State *state;
    int64_t *words;           /* from the front those in place, from the back the structs that are complete */
    size_t front, back, room; /* front <= back */
    size_t count;
    uint64_t hash;         /* the sum of all kinds */
    PyTypeObject *unknown; /* the class that stopped the walk */
    uint64_t kinds[KINDS];
} Walk;

typedef struct {
    PyObject_HEAD
    PyObject *value;
    int64_t *words; /* words[0] is the address of the struct, which is behind it */
    uint64_t *kinds, hash;
    size_t count;
} Plan;

/* These return -1 where an argument is refused, without an exception. */
static int walk(Walk *w, PyObject *value, int in_struct);

static inline int put_kind(Walk *w, uint64_t kind, uint64_t guarded) {
    if (w->count == KINDS) return -1;
    w->hash += kind;
    w->kinds[w->count++] = kind | guarded;
    return 0;
}

/* There is no room where another thread changes an array between the two walks of a Plan. */
static inline int put_word(Walk *w, int64_t word) {
    if (w->front == w->back) return -1;
    w->words[w->front++] = word;
    return 0;
}

static inline int put(Walk *w, uint64_t kind, int64_t word) {
    return put_kind(w, kind, 0) < 0 ? -1 : put_word(w, word);
}

static int put_double(Walk *w, double number) {
    int64_t word;
    memcpy(&word, &number, sizeof word);
    return put(w, DOUBLE, word);
}

static int put_single(Walk *w, float number) {
    uint32_t word;
    memcpy(&word, &number, sizeof word);
    return put(w, SINGLE, word);
}

static int put_integer(Walk *w, PyObject *value) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow ? -1 : put(w, INTEGER, number);
}

static int put_numpy_integer(Walk *w, PyObject *value) {
    PyObject *number = PyNumber_Index(value);
    if (!number) return -1;
    int status = put_integer(w, number);
    Py_DECREF(number);
    return status;
}

/* A number for each type of items; 0 for those that kernels do not have. */
enum { LONG_KIND = sizeof(long) == 4 ? 8 : 10 };
static const char ITEM_KINDS[] = {
    [NPY_DOUBLE] = 1,  [NPY_FLOAT] = 2, [NPY_BOOL] = 3,    [NPY_BYTE] = 4,        [NPY_UBYTE] = 5,      [NPY_SHORT] = 6,
    [NPY_USHORT] = 7,  [NPY_INT] = 8,   [NPY_UINT] = 9,    [NPY_LONG] = LONG_KIND, [NPY_ULONG] = LONG_KIND + 1,
    [NPY_LONGLONG] = 10, [NPY_ULONGLONG] = 11,
};

static inline int item_kind(const PyArray_Descr *dtype) {
    return (unsigned)dtype->type_num < sizeof ITEM_KINDS ? ITEM_KINDS[dtype->type_num] : 0;
}

static int walk_array(Walk *w, PyArrayObject *array) {
    const PyArray_Descr *dtype = PyArray_DESCR(array);
    int flags = PyArray_FLAGS(array), count = PyArray_NDIM(array), item = item_kind(dtype);
    int needed = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    if (!item || (flags & needed) != needed || !PyArray_ISNBO(dtype->byteorder)) return -1;
    if (count < 1 || count > DIMENSIONS) return -1;
    uint64_t guarded = flags & NPY_ARRAY_WRITEABLE ? 0 : GUARDED;
    if (put_kind(w, kind_with(ARRAY, item, count), guarded) < 0) return -1;
    if (put_word(w, (intptr_t)PyArray_DATA(array)) < 0) return -1;
    for (int k = 0; k < count; k++)
        if (put_word(w, PyArray_DIM(array, k)) < 0) return -1;
    return 0;
}

/* Move the words since `begin` to the back, and put their address in their place. */
static int close_struct(Walk *w, size_t begin) {
    size_t count = w->front - begin;
    w->back -= count;
    memmove(&w->words[w->back], &w->words[begin], count * sizeof(int64_t));
    w->front = begin;
    return put_word(w, (intptr_t)&w->words[w->back]);
}

/* Recursion ends: each tuple is one of KINDS kinds. */
static int walk_tuple(Walk *w, PyObject *tuple, uint64_t kind, uint64_t number, int in_struct) {
    Py_ssize_t size = SIZE(tuple);
    size_t begin = w->front;
    if (size > KINDS || put_kind(w, kind_with(kind, size, number), 0) < 0) return -1;
    for (Py_ssize_t k = 0; k < size; k++)
        if (walk(w, ITEM(tuple, k), in_struct || kind == STRUCT) < 0) return -1;
    return kind == STRUCT ? close_struct(w, begin) : 0;
}

static int walk_plan(Walk *w, const Plan *plan) {
    if (plan->count > KINDS - w->count) return -1;
    memcpy(&w->kinds[w->count], plan->kinds, plan->count * sizeof(uint64_t));
    w->count += plan->count;
    w->hash += plan->hash;
    return put_word(w, plan->words[0]);
}

static int walk_known(Walk *w, PyObject *value, int in_struct) {
    const Known *known = known_class(w->state, Py_TYPE(value));
    if (!known) {
        w->unknown = Py_TYPE(value);
        return -1;
    }
    switch (known->kind) {
    case NAMED: return walk_tuple(w, value, in_struct ? STRUCT : NAMED, known->number, in_struct);
    case STRUCT: return walk_tuple(w, value, STRUCT, known->number, in_struct);
    case PLAN: return walk_plan(w, (Plan *)value);
    case INTEGER: return put_numpy_integer(w, value);
    case DOUBLE: return put_double(w, AS_DOUBLE(value));
    case SINGLE: return put_single(w, ((PyFloatScalarObject *)value)->obval);
    default: return put(w, BOOLEAN, ((PyBoolScalarObject *)value)->obval != 0);
    }
}

static int walk(Walk *w, PyObject *value, int in_struct) {
    PyTypeObject *class = Py_TYPE(value);
    if (class == &PyArray_Type) return walk_array(w, (PyArrayObject *)value);
    if (class == &PyLong_Type) return put_integer(w, value);
    if (class == &PyFloat_Type) return put_double(w, AS_DOUBLE(value));
    if (class == &PyTuple_Type) return walk_tuple(w, value, TUPLE, 0, in_struct);
    if (class == &PyBool_Type) return put(w, BOOLEAN, value == Py_True);
    if (value == Py_None) return put_kind(w, NONE, 0);
    return walk_known(w, value, in_struct);
}

static void start_walk(Walk *w, State *state, int64_t *words, size_t room) {
    w->state = state;
    w->words = words;
    w->room = room;
}

static int walk_all(Walk *w, PyObject *const *args, Py_ssize_t count) {
    w->front = w->count = w->hash = 0;
    w->back = w->room;
    w->unknown = NULL;
    for (Py_ssize_t k = 0; k < count; k++)
        if (walk(w, args[k], 0) < 0) return -1;
    return 0;
}

/* Lay out arguments. Reading `_fields` of a class may run any code, after which all is laid out anew. */
static int lay_out(Walk *w, PyObject *const *args, Py_ssize_t count) {
    while (walk_all(w, args, count) < 0) {
        PyTypeObject *class = w->unknown;
        if (!class) return -1;
        Py_INCREF((PyObject *)class);
        int status = has_fields(class) ? add_class(w->state, class, NAMED) : -1;
        Py_DECREF((PyObject *)class);
        if (status < 0) return -1;
    }
    return 0;
}

static PyObject *as_tuple(PyObject *const *args, Py_ssize_t count) {
    PyObject *all = PyTuple_New(count);
    for (Py_ssize_t k = 0; all && k < count; k++) PyTuple_SetItem(all, k, Py_NewRef(args[k]));
    return all;
}

/* Raise what is wrong with arguments. */
static PyObject *refuse(State *state, PyObject *name, PyObject *const *args, Py_ssize_t count) {
    PyObject *all = PyErr_Occurred() ? NULL : as_tuple(args, count);
    if (!all) return NULL;
    PyObject *none = PyObject_CallFunctionObjArgs(state->refuse, name, all, NULL);
    Py_DECREF(all);
    if (none) PyErr_SetString(PyExc_SystemError, "kinds.refuse returned");
    Py_XDECREF(none);
    return NULL;
}

/* ---- Plan ---- */

/* Lay out the value a second time, in memory of the size that the first walk found. */
static int fill_plan(Plan *plan, Walk *w, PyObject *const *value) {
    w->room = w->front + (w->room - w->back);
    plan->words = w->words = PyMem_Malloc((w->room + w->count) * sizeof(int64_t));
    if (!plan->words) return PyErr_NoMemory(), -1;
    plan->kinds = (uint64_t *)&plan->words[w->room];
    plan->count = w->count;
    if (walk_all(w, value, 1) < 0 || w->count != plan->count) return -1;
    memcpy(plan->kinds, w->kinds, w->count * sizeof(uint64_t));
    plan->hash = w->hash;
    return 0;
}

static PyObject *refuse_plan(State *state, PyObject *value) {
    PyObject *name = PyUnicode_FromString("Plan");
    if (name) refuse(state, name, &value, 1);
    Py_XDECREF(name);
    return NULL;
}

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *value;
    State *state = PyType_GetModuleState(type);
    if (!PyArg_ParseTuple(args, "O:Plan", &value)) return NULL;
    const Known *known = known_class(state, Py_TYPE(value));
    if (keywords || !known || known->kind != STRUCT)
        return PyErr_Format(PyExc_TypeError, "Plan: got %R; expected one struct, whose class is registered",
                            keywords ? keywords : (PyObject *)Py_TYPE(value));
    int64_t words[WORDS];
    Walk w;
    start_walk(&w, state, words, WORDS);
    if (lay_out(&w, &value, 1) < 0) return refuse_plan(state, value);
    Plan *plan = PyObject_New(Plan, type);
    if (!plan) return NULL;
    Py_INCREF(value);
    plan->value = value;
    plan->words = NULL;
    if (fill_plan(plan, &w, &value) == 0) return (PyObject *)plan;
    Py_DECREF(plan);
    return refuse_plan(state, value);
}

/* The collector does not see a Plan: what it holds are arrays, which it does not see either. */
static void plan_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyMem_Free(((Plan *)self)->words);
    Py_DECREF(((Plan *)self)->value);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

/* The value, or one of its attributes. Special names are those of Plan: it is no tuple. */
static PyObject *plan_getattro(PyObject *self, PyObject *name) {
    PyObject *value = ((Plan *)self)->value;
    if (PyUnicode_GetLength(name) > 1 && PyUnicode_ReadChar(name, 0) == '_' && PyUnicode_ReadChar(name, 1) == '_')
        return PyObject_GenericGetAttr(self, name);
    return PyUnicode_CompareWithASCIIString(name, "value") ? PyObject_GetAttr(value, name) : Py_NewRef(value);
}

static PyType_Slot plan_slots[] = {
    {Py_tp_doc, "Plan(value): the words of a struct, laid out once; counts as the struct in any call."},
    {Py_tp_new, plan_new},
    {Py_tp_dealloc, plan_dealloc},
    {Py_tp_getattro, plan_getattro},
    {0, NULL},
};

static PyType_Spec plan_spec = {
    "raybox.compiler._calls.Plan", sizeof(Plan), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, plan_slots,
};

/* ---- Entry ---- */

typedef struct Row { /* code for arguments of these kinds */
    struct Row *next;
    Code code;
    char results[RESULTS + 3];
    uint64_t hash;
    size_t count;
    uint64_t kinds[];
} Row;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *find, *name, *dict;
    PyObject *module; /* owns the state */
    State *state;
    Row *rows;
    Lock lock;
} Entry;

/* Return whether kinds are those of a row, whose code writes to no read-only array. */
static int fits(const Row *row, const Walk *w) {
    if (row->hash != w->hash || row->count != w->count) return 0;
    uint64_t wrong = 0;
    for (size_t k = 0; k < w->count; k++)
        wrong |= ((row->kinds[k] ^ w->kinds[k]) & ~GUARDED) | (row->kinds[k] & w->kinds[k] & GUARDED);
    return !wrong;
}

static const Row *row_for(Entry *self, const Walk *w) {
    const Row *row = LOAD(self->rows);
    while (row && !fits(row, w)) row = LOAD(row->next);
    return row;
}

/* Return a row with what `find_checked` returned. */
static Row *make_row(PyObject *found, const Walk *w) {
    unsigned long long address;
    const char *results;
    PyObject *writable, *bits = NULL;
    Row *row = PyMem_Malloc(sizeof(Row) + w->count * sizeof(uint64_t));
    if (!row) return (Row *)PyErr_NoMemory();
    if (PyArg_ParseTuple(found, "KsO", &address, &results, &writable))
        bits = PyObject_CallMethod(writable, "to_bytes", "is", KINDS / 8, "little");
    if (!bits) return PyMem_Free(row), NULL;
    const char *writes = PyBytes_AsString(bits);
    *row = (Row){.code = (Code)(uintptr_t)address, .hash = w->hash, .count = w->count};
    strncpy(row->results, results, RESULTS + 2);
    for (size_t k = 0, array = 0; k < w->count; k++) {
        row->kinds[k] = w->kinds[k] & ~GUARDED;
        if ((row->kinds[k] & 0xFF) != ARRAY) continue;
        if (writes[array / 8] >> array % 8 & 1) row->kinds[k] |= GUARDED;
        array++;
    }
    Py_DECREF(bits);
    return row;
}

/* Add the row that `find` returns for arguments. The first one for some kinds stays the first. */
static int learn(Entry *self, const Walk *w, PyObject *const *args, Py_ssize_t count) {
    PyObject *all = as_tuple(args, count), *found = NULL;
    if (all) found = PyObject_CallFunctionObjArgs(self->state->find_checked, self->name, self->find, all, NULL);
    Row *row = found ? make_row(found, w) : NULL, **end = &self->rows;
    Py_XDECREF(found);
    Py_XDECREF(all);
    if (!row) return -1;
    LOCK(&self->lock);
    while (*end) end = &(*end)->next;
    PUBLISH(*end, row);
    UNLOCK(&self->lock);
    return 0;
}

static PyObject *as_result(char kind, int64_t word) {
    double number;
    memcpy(&number, &word, sizeof number);
    if (kind == 'f') return PyFloat_FromDouble(number);
    return kind == 'b' ? PyBool_FromLong(word != 0) : PyLong_FromLongLong(word);
}

static PyObject *as_results(const char *kinds, const int64_t *words) {
    if (kinds[0] == 'n') Py_RETURN_NONE;
    if (kinds[0] != '(') return as_result(kinds[0], words[0]);
    Py_ssize_t count = (Py_ssize_t)strlen(kinds) - 2;
    PyObject *results = PyTuple_New(count);
    for (Py_ssize_t k = 0; results && k < count; k++) {
        PyObject *result = as_result(kinds[k + 1], words[k]);
        if (!result || PyTuple_SetItem(results, k, result) < 0) Py_CLEAR(results);
    }
    return results;
}

static PyObject *run(Entry *self, const Row *row, const int64_t *words) {
    int64_t results[RESULTS] = {0};
    int32_t status;
    Py_BEGIN_ALLOW_THREADS
    status = row->code(words, results);
    Py_END_ALLOW_THREADS
    if (status) return PyErr_Format(PyExc_MemoryError, "%U: out of memory", self->name);
    return as_results(row->results, results);
}

/* Lay out arguments, and return the row for their kinds; NULL and an exception if there is none. */
static const Row *row_of(Entry *self, Walk *w, PyObject *const *args, Py_ssize_t count) {
    for (;;) { /* `find` may run any code, after which all is laid out anew */
        if (lay_out(w, args, count) < 0) return refuse(self->state, self->name, args, count), NULL;
        const Row *row = row_for(self, w);
        if (row) return row;
        if (learn(self, w, args, count) < 0) return NULL;
    }
}

static PyObject *call_with(Entry *self, PyObject *const *args, Py_ssize_t count) {
    int64_t words[WORDS];
    Walk w;
    start_walk(&w, self->state, words, WORDS);
    const Row *row = row_of(self, &w, args, count);
    return row ? run(self, row, words) : NULL;
}

static PyObject *refuse_keywords(Entry *self) {
    return PyErr_Format(PyExc_TypeError, "%U: arguments are positional only", self->name);
}

static PyObject *entry_vectorcall(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    if (keywords && PyTuple_Size(keywords)) return refuse_keywords((Entry *)self);
    return call_with((Entry *)self, args, (Py_ssize_t)(count & ~((size_t)1 << (8 * sizeof(size_t) - 1))));
}

/* `PyVectorcall_Call`, which Python 3.11 does not have in its stable interface. */
static PyObject *call_tuple(PyObject *self, PyObject *args, vectorcallfunc call) {
    Py_ssize_t count = PyTuple_Size(args);
    PyObject **items = PyMem_Malloc((count + 1) * sizeof(PyObject *));
    if (!items) return PyErr_NoMemory();
    for (Py_ssize_t k = 0; k < count; k++) items[k] = PyTuple_GetItem(args, k);
    PyObject *result = call(self, items, count, NULL);
    PyMem_Free(items);
    return result;
}

static PyObject *entry_call(PyObject *self, PyObject *args, PyObject *keywords) {
    if (keywords && PyDict_Size(keywords)) return refuse_keywords((Entry *)self);
    return call_tuple(self, args, entry_vectorcall);
}

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"find", "name", NULL};
    PyObject *find, *name;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OU:Entry", names, &find, &name)) return NULL;
    if (!PyCallable_Check(find)) return PyErr_Format(PyExc_TypeError, "Entry: find must be callable");
    Entry *self = PyObject_GC_New(Entry, type);
    if (!self) return NULL;
    memset((char *)self + offsetof(Entry, call), 0, sizeof(Entry) - offsetof(Entry, call));
    self->call = entry_vectorcall;
    self->find = Py_NewRef(find);
    self->name = Py_NewRef(name);
    self->module = Py_NewRef(PyType_GetModule(type));
    self->state = PyModule_GetState(self->module);
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

/* No clear: `find`, `dict` and `module` break their circles, and an entry can be called until it is freed. */
static int entry_traverse(PyObject *object, visitproc visit, void *arg) {
    Entry *self = (Entry *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->find);
    Py_VISIT(self->dict);
    Py_VISIT(self->module);
    return 0;
}

static void entry_dealloc(PyObject *object) {
    Entry *self = (Entry *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    for (Row *row = self->rows, *next; row; row = next) {
        next = row->next;
        PyMem_Free(row);
    }
    Py_XDECREF(self->dict);
    Py_DECREF(self->find);
    Py_DECREF(self->name);
    Py_DECREF(self->module);
    PyObject_GC_Del(object);
    Py_DECREF((PyObject *)type);
}

static PyMemberDef entry_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Entry, call), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(Entry, dict), READONLY, NULL},
    {0},
};

static PyGetSetDef entry_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {0},
};

static PyType_Slot entry_slots[] = {
    {Py_tp_doc, "Entry(find, name): machine code for each combination of kinds, found at the first call."},
    {Py_tp_new, entry_new},
    {Py_tp_call, entry_call},
    {Py_tp_traverse, entry_traverse},
    {Py_tp_dealloc, entry_dealloc},
    {Py_tp_members, entry_members},
    {Py_tp_getset, entry_getset},
    {0, NULL},
};

static PyType_Spec entry_spec = {
    "raybox.compiler._calls.Entry", sizeof(Entry), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE, entry_slots,
};

/* ---- Arrays ---- */

/* Return -1 with TypeError for anything but an array. */
static int refuse_non_array(PyObject *value) {
    if (PyArray_Check(value)) return 0;
    PyErr_Format(PyExc_TypeError, "got %R; expected a numpy.ndarray", (PyObject *)Py_TYPE(value));
    return -1;
}

static PyObject *copy_rows(PyArrayObject *rows, npy_intp count) {
    npy_intp shape[DIMENSIONS];
    int dimensions = PyArray_NDIM(rows);
    int is_plain = (PyArray_FLAGS(rows) & NPY_ARRAY_C_CONTIGUOUS) && item_kind(PyArray_DESCR(rows));
    if (!is_plain || dimensions < 1 || dimensions > DIMENSIONS || count < 0 || count > PyArray_DIM(rows, 0))
        return PyErr_Format(PyExc_ValueError, "first_rows: expected C-ordered arrays with so many rows");
    memcpy(shape, PyArray_DIMS(rows), dimensions * sizeof *shape);
    shape[0] = count;
    PyObject *copy = PyArray_SimpleNew(dimensions, shape, PyArray_TYPE(rows));
    if (copy) memcpy(PyArray_DATA((PyArrayObject *)copy), PyArray_DATA(rows), PyArray_NBYTES((PyArrayObject *)copy));
    return copy;
}

static PyObject *freeze(PyObject *module, PyObject *const *arrays, Py_ssize_t count) {
    (void)module;
    for (Py_ssize_t k = 0; k < count; k++) {
        if (refuse_non_array(arrays[k]) < 0) return NULL;
        PyArray_CLEARFLAGS((PyArrayObject *)arrays[k], NPY_ARRAY_WRITEABLE);
    }
    Py_RETURN_NONE;
}

static PyObject *first_rows(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    npy_intp rows = count ? PyLong_AsSsize_t(args[0]) : 0;
    if (PyErr_Occurred()) return NULL;
    PyObject *copies = PyTuple_New(count ? count - 1 : 0);
    for (Py_ssize_t k = 1; copies && k < count; k++) {
        PyObject *copy = refuse_non_array(args[k]) < 0 ? NULL : copy_rows((PyArrayObject *)args[k], rows);
        if (!copy || PyTuple_SetItem(copies, k - 1, copy) < 0) Py_CLEAR(copies);
    }
    return copies;
}

/* Sums side by side, which become vectors: x - x is NaN for NaN and infinities. What reaches a limit overflows. */
static int has_only_below(double limit, const double *numbers, npy_intp count) {
    double sums[LANES] = {0}, total = 0.0, up = isinf(limit) ? 1.0 : ldexp(1.0 / limit, 1024);
    npy_intp k = 0;
    for (; k + LANES <= count; k += LANES)
        for (int lane = 0; lane < LANES; lane++) sums[lane] += numbers[k + lane] * up - numbers[k + lane] * up;
    for (; k < count; k++) total += numbers[k] * up - numbers[k] * up;
    for (int lane = 0; lane < LANES; lane++) total += sums[lane];
    return total == 0.0;
}

/* Return a C-ordered, read-only copy of a plain array of float64 vectors of 2 or 3 coordinates, or NULL. */
static PyObject *copy_vectors(PyObject *value) {
    PyArrayObject *array = (PyArrayObject *)value;
    npy_intp width = PyArray_NDIM(array) ? PyArray_DIM(array, PyArray_NDIM(array) - 1) : 0;
    PyObject *copy = width == 2 || width == 3 ? PyArray_NewCopy(array, NPY_CORDER) : NULL;
    if (copy) PyArray_CLEARFLAGS((PyArrayObject *)copy, NPY_ARRAY_WRITEABLE);
    return copy;
}

static int is_plain(PyObject *value) {
    if (Py_TYPE(value) != &PyArray_Type) return 0;
    const PyArray_Descr *dtype = PyArray_DESCR((PyArrayObject *)value);
    return dtype->type_num == NPY_DOUBLE && PyArray_ISNBO(dtype->byteorder);
}

static PyObject *finite_vectors(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 3) return PyErr_Format(PyExc_TypeError, "finite_vectors: expected a limit and two arrays");
    Py_ssize_t limit = PyLong_AsSsize_t(args[0]);
    if (PyErr_Occurred()) return NULL;
    if (!is_plain(args[1]) || !is_plain(args[2])) Py_RETURN_NONE;
    PyArrayObject *one = (PyArrayObject *)args[1], *other = (PyArrayObject *)args[2];
    if (!PyArray_SAMESHAPE(one, other) || PyArray_SIZE(one) >= limit) Py_RETURN_NONE;
    PyObject *copies = PyTuple_New(2);
    for (int k = 0; copies && k < 2; k++) {
        PyObject *copy = copy_vectors(args[1 + k]);
        PyArrayObject *made = (PyArrayObject *)copy;
        int finite = copy && has_only_below(INFINITY, PyArray_DATA(made), PyArray_SIZE(made));
        if (copy && finite) {
            PyTuple_SetItem(copies, k, copy);
        } else {
            Py_XDECREF(copy);
            Py_CLEAR(copies);
        }
    }
    if (!copies && !PyErr_Occurred()) Py_RETURN_NONE;
    return copies;
}

static PyObject *all_below(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    int below = 1, needed = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    double limit = count ? PyFloat_AsDouble(args[0]) : 0.0;
    for (Py_ssize_t k = 1; k < count && !PyErr_Occurred(); k++) {
        PyArrayObject *array = (PyArrayObject *)args[k];
        if (!is_plain(args[k]) || (PyArray_FLAGS(array) & needed) != needed)
            return PyErr_Format(PyExc_TypeError, "all_below: expected a limit and C-ordered arrays of float64");
        below &= has_only_below(limit, PyArray_DATA(array), PyArray_SIZE(array));
    }
    return PyErr_Occurred() ? NULL : PyBool_FromLong(below);
}

/* ---- Module ---- */

static PyObject *register_struct(PyObject *module, PyObject *class) {
    if (!PyType_Check(class) || !has_fields((PyTypeObject *)class))
        return PyErr_Format(PyExc_TypeError, "register_struct: got %R; expected a class of named tuples", class);
    int kind = add_class(PyModule_GetState(module), (PyTypeObject *)class, STRUCT);
    if (kind < 0) return NULL;
    if (kind != STRUCT)
        return PyErr_Format(PyExc_TypeError, "register_struct: instances of %R were passed before", class);
    return Py_NewRef(class);
}

static PyMethodDef methods[] = {
    {"freeze", (PyCFunction)(void (*)(void))freeze, METH_FASTCALL, "Set arrays read-only."},
    {"finite_vectors", (PyCFunction)(void (*)(void))finite_vectors, METH_FASTCALL,
     "Return read-only copies of two arrays of vectors that are smaller than a limit, the first argument, if both are "
     "of float64, finite and of one shape, else None."},
    {"first_rows", (PyCFunction)(void (*)(void))first_rows, METH_FASTCALL,
     "Return copies of the first rows of C-ordered arrays; how many is the first argument."},
    {"all_below", (PyCFunction)(void (*)(void))all_below, METH_FASTCALL,
     "Return whether all magnitudes in C-ordered float64 arrays are below a limit: infinity, or 2, 4, 8, ..."},
    {"register_struct", register_struct, METH_O, "Return a class of named tuples, now passed by address."},
    {0},
};

static int add_numpy_classes(State *state) {
    PyTypeObject *integers[] = {
        &PyByteArrType_Type, &PyShortArrType_Type, &PyIntArrType_Type, &PyLongArrType_Type,
        &PyLongLongArrType_Type, &PyUByteArrType_Type, &PyUShortArrType_Type, &PyUIntArrType_Type,
        &PyULongArrType_Type, &PyULongLongArrType_Type,
    };
    for (size_t k = 0; k < sizeof integers / sizeof *integers; k++)
        if (add_class(state, integers[k], INTEGER) < 0) return -1;
    if (add_class(state, &PyBoolArrType_Type, BOOLEAN) < 0) return -1;
    if (add_class(state, &PyFloatArrType_Type, SINGLE) < 0) return -1;
    return add_class(state, &PyDoubleArrType_Type, DOUBLE) < 0 ? -1 : 0;
}

/* Take checks and texts of errors from `raybox.compiler.kinds`, and make Plan known there. */
static int connect_kinds(State *state) {
    PyObject *kinds = PyImport_ImportModule("raybox.compiler.kinds");
    if (!kinds) return -1;
    state->refuse = PyObject_GetAttrString(kinds, "refuse");
    state->find_checked = PyObject_GetAttrString(kinds, "find_checked");
    PyObject *classes = PyObject_GetAttrString(kinds, "PLAN_CLASSES");
    int is_complete = state->refuse && state->find_checked && classes;
    int status = is_complete ? PySet_Add(classes, (PyObject *)state->plan) : -1;
    Py_XDECREF(classes);
    Py_DECREF(kinds);
    return status;
}

/* Return a new type, which is in the module, too; NULL and an exception without. */
static PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec) {
    PyObject *made = PyType_FromModuleAndSpec(module, spec, NULL);
    if (made && PyModule_AddObjectRef(module, name, made) < 0) Py_CLEAR(made);
    return (PyTypeObject *)made;
}

static int execute(PyObject *module) {
    State *state = PyModule_GetState(module);
    if (_import_array() < 0) return -1;
    PyTypeObject *entry = add_type(module, "Entry", &entry_spec);
    Py_XDECREF((PyObject *)entry);
    state->plan = entry ? add_type(module, "Plan", &plan_spec) : NULL;
    if (!state->plan || add_class(state, state->plan, PLAN) < 0 || add_numpy_classes(state) < 0) return -1;
    return connect_kinds(state);
}

static void free_state(void *module) {
    State *state = PyModule_GetState(module);
    if (!state) return;
    for (size_t k = 0; k < CHAINS; k++)
        for (Known *known = state->classes[k], *next; known; known = next) {
            next = known->next;
            Py_DECREF((PyObject *)known->class);
            PyMem_Free(known);
        }
    Py_XDECREF((PyObject *)state->plan);
    Py_XDECREF(state->refuse);
    Py_XDECREF(state->find_checked);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_calls", "Calls of machine code; see raybox.compiler.calls.", sizeof(State), methods,
    slots, NULL, NULL, free_state,
};

PyMODINIT_FUNC PyInit__calls(void) { return PyModuleDef_Init(&definition); }
