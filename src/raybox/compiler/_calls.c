/* Calls of machine code: arguments become 64-bit words, and their kinds choose the code. And functions
   of arrays that NumPy takes longer for.

   The interface is documented in `raybox.compiler.calls`; `ctypes_calls` is the same in Python. While
   arguments are laid out, no Python code runs: no address can become stale before the call. What is wrong with
   an argument is found once more by `raybox.compiler.kinds.refuse`, which has the texts of all errors.

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
enum { KINDS = 256, DIMENSIONS = 4, WORDS = (1 + DIMENSIONS) * KINDS, RESULTS = 16, CHAINS = 256, MARKS = 32 };

typedef int32_t (*Code)(const int64_t *words, int64_t *results);

/* ---- Kinds ---- */

/* Kinds of numbers, and of what has parts; the latter hold a count in bits 8 to 31 and a number above. */
enum { NONE, INTEGER, DOUBLE, SINGLE, BOOLEAN, ARRAY, TUPLE, NAMED, STRUCT, BLOCK };

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
    PyTypeObject *block, *entry;
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

/* Where the words and kinds of a value are that later calls replace. */
typedef struct {
    size_t begin, end, kind, kind_count;
    Py_ssize_t hole; /* its number */
} Mark;

typedef struct {
    State *state;
    int64_t *words;           /* from the front those in place, from the back the structs that are complete */
    size_t front, back, room; /* front <= back */
    size_t count;
    uint64_t hash;         /* the sum of all kinds */
    PyTypeObject *unknown; /* the class that stopped the walk */
    PyObject *holes;       /* a tuple of the values that are marked; NULL: none */
    size_t mark_count;
    Mark marks[MARKS];
    uint64_t kinds[KINDS];
} Walk;

typedef struct {
    PyObject_HEAD
    PyObject *value;
    int64_t *words; /* words[0] is the address of the struct, which is behind it */
    uint64_t *kinds, hash;
    size_t count;
} Block;

/* These return -1 where an argument is refused, without an exception. */
static int walk(Walk *w, PyObject *value, int in_struct);

static inline int put_kind(Walk *w, uint64_t kind, uint64_t guarded) {
    if (w->count == KINDS) return -1;
    w->hash += kind;
    w->kinds[w->count++] = kind | guarded;
    return 0;
}

/* There is no room where another thread changes an array between the two walks of a Block. */
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

/* Return a number for a type of items, 0 for those that kernels do not have. */
static inline int item_kind(const PyArray_Descr *dtype) {
    switch (dtype->type_num) {
    case NPY_DOUBLE: return 1;
    case NPY_FLOAT: return 2;
    case NPY_BOOL: return 3;
    case NPY_BYTE: return 4;
    case NPY_UBYTE: return 5;
    case NPY_SHORT: return 6;
    case NPY_USHORT: return 7;
    case NPY_INT: return 8;
    case NPY_UINT: return 9;
    case NPY_LONG: return sizeof(long) == 4 ? 8 : 10;
    case NPY_ULONG: return sizeof(long) == 4 ? 9 : 11;
    case NPY_LONGLONG: return 10;
    case NPY_ULONGLONG: return 11;
    default: return 0;
    }
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

static int walk_items(Walk *w, PyObject *tuple, Py_ssize_t size, int in_struct) {
    for (Py_ssize_t k = 0; k < size; k++)
        if (walk(w, ITEM(tuple, k), in_struct) < 0) return -1;
    return 0;
}

/* Move the words since `begin` to a block at the back, and put its address in their place. */
static int close_struct(Walk *w, size_t begin) {
    size_t count = w->front - begin;
    w->back -= count;
    memmove(&w->words[w->back], &w->words[begin], count * sizeof(int64_t));
    for (size_t k = 0; k < w->mark_count; k++) {
        Mark *mark = &w->marks[k];
        if (mark->begin < begin || mark->begin >= w->front) continue;
        mark->begin += w->back - begin;
        mark->end += w->back - begin;
    }
    w->front = begin;
    return put_word(w, (intptr_t)&w->words[w->back]);
}

/* Recursion ends: each tuple is one of KINDS kinds. */
static int walk_tuple(Walk *w, PyObject *tuple, uint64_t kind, uint64_t number, int in_struct) {
    Py_ssize_t size = SIZE(tuple);
    size_t begin = w->front;
    if (size > KINDS || put_kind(w, kind_with(kind, size, number), 0) < 0) return -1;
    if (walk_items(w, tuple, size, in_struct || kind == STRUCT) < 0) return -1;
    return kind == STRUCT ? close_struct(w, begin) : 0;
}

static int walk_block(Walk *w, const Block *block) {
    if (block->count > KINDS - w->count) return -1;
    memcpy(&w->kinds[w->count], block->kinds, block->count * sizeof(uint64_t));
    w->count += block->count;
    w->hash += block->hash;
    return put_word(w, block->words[0]);
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
    case BLOCK: return walk_block(w, (Block *)value);
    case INTEGER: return put_numpy_integer(w, value);
    case DOUBLE: return put_double(w, AS_DOUBLE(value));
    case SINGLE: return put_single(w, ((PyFloatScalarObject *)value)->obval);
    default: return put(w, BOOLEAN, ((PyBoolScalarObject *)value)->obval != 0);
    }
}

static inline int walk_value(Walk *w, PyObject *value, int in_struct) {
    PyTypeObject *class = Py_TYPE(value);
    if (class == &PyArray_Type) return walk_array(w, (PyArrayObject *)value);
    if (class == &PyLong_Type) return put_integer(w, value);
    if (class == &PyFloat_Type) return put_double(w, AS_DOUBLE(value));
    if (class == &PyTuple_Type) return walk_tuple(w, value, TUPLE, 0, in_struct);
    if (class == &PyBool_Type) return put(w, BOOLEAN, value == Py_True);
    if (value == Py_None) return put_kind(w, NONE, 0);
    return walk_known(w, value, in_struct);
}

/* Tuples are no holes: a struct's words would not stay where they are marked. */
static int walk_hole(Walk *w, PyObject *value, int in_struct, Py_ssize_t hole) {
    Mark mark = {w->front, 0, w->count, 0, hole};
    if (w->mark_count == MARKS || PyTuple_Check(value) || walk_value(w, value, in_struct) < 0) return -1;
    mark.end = w->front;
    mark.kind_count = w->count - mark.kind;
    w->marks[w->mark_count++] = mark;
    return 0;
}

static int walk(Walk *w, PyObject *value, int in_struct) {
    for (Py_ssize_t k = w->holes ? SIZE(w->holes) : 0; k > 0; k--)
        if (ITEM(w->holes, k - 1) == value) return walk_hole(w, value, in_struct, k - 1);
    return walk_value(w, value, in_struct);
}

static void start_walk(Walk *w, State *state, int64_t *words, size_t room) {
    w->state = state;
    w->words = words;
    w->room = room;
    w->holes = NULL;
    w->mark_count = 0;
}

static int walk_all(Walk *w, PyObject *const *args, Py_ssize_t count) {
    w->front = w->count = w->hash = w->mark_count = 0;
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

/* ---- Block ---- */

/* Lay out the value a second time, in memory of the size that the first walk found. */
static int fill_block(Block *block, Walk *w, PyObject *const *value) {
    w->room = w->front + (w->room - w->back);
    block->words = w->words = PyMem_Malloc((w->room + w->count) * sizeof(int64_t));
    if (!block->words) return PyErr_NoMemory(), -1;
    block->kinds = (uint64_t *)&block->words[w->room];
    block->count = w->count;
    if (walk_all(w, value, 1) < 0 || w->count != block->count) return -1;
    memcpy(block->kinds, w->kinds, w->count * sizeof(uint64_t));
    block->hash = w->hash;
    return 0;
}

static PyObject *refuse_block(State *state, PyObject *value) {
    PyObject *name = PyUnicode_FromString("Block");
    if (name) refuse(state, name, &value, 1);
    Py_XDECREF(name);
    return NULL;
}

static PyObject *block_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *value;
    State *state = PyType_GetModuleState(type);
    if (!PyArg_ParseTuple(args, "O:Block", &value)) return NULL;
    const Known *known = known_class(state, Py_TYPE(value));
    if (keywords || !known || known->kind != STRUCT)
        return PyErr_Format(PyExc_TypeError, "Block: got %R; expected one struct, whose class is registered",
                            keywords ? keywords : (PyObject *)Py_TYPE(value));
    int64_t words[WORDS];
    Walk w;
    start_walk(&w, state, words, WORDS);
    if (lay_out(&w, &value, 1) < 0) return refuse_block(state, value);
    Block *block = PyObject_GC_New(Block, type);
    if (!block) return NULL;
    Py_INCREF(value);
    block->value = value;
    block->words = NULL;
    PyObject_GC_Track(block);
    if (fill_block(block, &w, &value) == 0) return (PyObject *)block;
    Py_DECREF(block);
    return refuse_block(state, value);
}

/* No clear: like a tuple, a Block is part of no cycle without something else that can be cleared. */
static int block_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Block *)self)->value);
    return 0;
}

static void free_object(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_Del(self);
    Py_DECREF((PyObject *)type);
}

static void block_dealloc(PyObject *self) {
    Block *block = (Block *)self;
    PyObject_GC_UnTrack(self);
    PyMem_Free(block->words);
    Py_DECREF(block->value);
    free_object(self);
}

/* The value, or one of its attributes. Special names are those of Block: it is no tuple. */
static PyObject *block_getattro(PyObject *self, PyObject *name) {
    PyObject *value = ((Block *)self)->value;
    if (PyUnicode_GetLength(name) > 1 && PyUnicode_ReadChar(name, 0) == '_' && PyUnicode_ReadChar(name, 1) == '_')
        return PyObject_GenericGetAttr(self, name);
    return PyUnicode_CompareWithASCIIString(name, "value") ? PyObject_GetAttr(value, name) : Py_NewRef(value);
}

static PyType_Slot block_slots[] = {
    {Py_tp_doc, "Block(value): the words of a struct, laid out once; counts as the struct in any call."},
    {Py_tp_new, block_new},
    {Py_tp_traverse, block_traverse},
    {Py_tp_dealloc, block_dealloc},
    {Py_tp_getattro, block_getattro},
    {0, NULL},
};

static PyType_Spec block_spec = {
    "raybox.compiler._calls.Block", sizeof(Block), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, block_slots,
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
    PyObject_GC_UnTrack(object);
    for (Row *row = self->rows, *next; row; row = next) {
        next = row->next;
        PyMem_Free(row);
    }
    Py_XDECREF(self->dict);
    Py_DECREF(self->find);
    Py_DECREF(self->name);
    Py_DECREF(self->module);
    free_object(object);
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

/* ---- PreparedCall ---- */

/* Return -1 with TypeError for anything but an array. */
static int refuse_non_array(PyObject *value) {
    if (PyArray_Check(value)) return 0;
    PyErr_Format(PyExc_TypeError, "got %R; expected a numpy.ndarray", (PyObject *)Py_TYPE(value));
    return -1;
}

/* Return a new array of the first rows of a C-ordered one. */
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

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *args;   /* a tuple: the arrays whose addresses are laid out */
    PyObject *filled; /* a tuple: the holes, then the outputs */
    Entry *entry;     /* owns the row */
    const Row *row;
    int64_t *words;
    size_t hole_count, mark_count;
    Mark *marks;
    char is_running;
    Lock lock;
} PreparedCall;

/* Return whether the kinds of a value are those of its hole, and it can be written to if the code does. */
static int fits_hole(const Row *row, const Walk *w, const Mark *mark) {
    if (w->count != mark->kind_count) return 0;
    uint64_t wrong = 0;
    for (size_t k = 0; k < w->count; k++) {
        uint64_t kind = row->kinds[mark->kind + k];
        wrong |= ((kind ^ w->kinds[k]) & ~GUARDED) | (kind & w->kinds[k] & GUARDED);
    }
    return !wrong;
}

static int fill_holes(PreparedCall *self, PyObject *const *values) {
    Walk w;
    for (size_t k = 0; k < self->mark_count; k++) {
        const Mark *mark = &self->marks[k];
        start_walk(&w, self->entry->state, &self->words[mark->begin], mark->end - mark->begin);
        if (walk_all(&w, &values[mark->hole], 1) < 0 || !fits_hole(self->row, &w, mark)) return -1;
    }
    return 0;
}

static int set_running(PreparedCall *self, char value) {
    LOCK(&self->lock);
    int changed = self->is_running != value;
    self->is_running = value;
    UNLOCK(&self->lock);
    return changed;
}

/* Return a tuple of the first rows of the outputs, as many as the first value, which follow `values`. */
static PyObject *add_outputs(const PreparedCall *self, PyObject **values) {
    Py_ssize_t first = (Py_ssize_t)self->hole_count, count = SIZE(self->filled) - first;
    npy_intp rows = count ? PyLong_AsSsize_t(values[0]) : 0;
    PyObject *outputs = PyErr_Occurred() ? NULL : PyTuple_New(count);
    for (Py_ssize_t k = 0; outputs && k < count; k++) {
        values[first + k] = copy_rows((PyArrayObject *)ITEM(self->filled, first + k), rows);
        if (!values[first + k] || PyTuple_SetItem(outputs, k, values[first + k]) < 0) Py_CLEAR(outputs);
    }
    return outputs;
}

static PyObject *run_prepared(PreparedCall *self, PyObject **values) {
    PyObject *outputs = add_outputs(self, values), *result = NULL, *both = NULL;
    if (outputs && fill_holes(self, values) == 0)
        result = run(self->entry, self->row, self->words);
    else if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%U: a value is of another kind than the one that it replaces",
                     self->entry->name);
    if (result) both = PyTuple_Pack(2, result, outputs);
    Py_XDECREF(result);
    Py_XDECREF(outputs);
    return both;
}

static PyObject *prepared_vectorcall(PyObject *object, PyObject *const *values, size_t count, PyObject *keywords) {
    PreparedCall *self = (PreparedCall *)object;
    PyObject *name = self->entry->name, *all[MARKS];
    count &= ~((size_t)1 << (8 * sizeof(size_t) - 1));
    if (keywords && PyTuple_Size(keywords)) return refuse_keywords(self->entry);
    if (count != self->hole_count)
        return PyErr_Format(PyExc_TypeError, "%U: got %zu values; expected %zu", name, count, self->hole_count);
    if (!set_running(self, 1)) return PyErr_Format(PyExc_RuntimeError, "%U: another thread runs this call", name);
    memcpy(all, values, count * sizeof *all);
    PyObject *result = run_prepared(self, all);
    set_running(self, 0);
    return result;
}

static PyObject *prepared_call(PyObject *self, PyObject *args, PyObject *keywords) {
    if (keywords && PyDict_Size(keywords)) return refuse_keywords(((PreparedCall *)self)->entry);
    return call_tuple(self, args, prepared_vectorcall);
}

/* Lay out the arguments a second time, in memory of the size that the first walk found. */
static int fill_prepared(PreparedCall *self, Walk *w, PyObject *const *args, Py_ssize_t count) {
    size_t kind_count = w->count, mark_count = w->mark_count, bytes = mark_count * sizeof(Mark);
    w->room = w->front + (w->room - w->back);
    self->words = w->words = PyMem_Malloc(w->room * sizeof(int64_t) + bytes);
    if (!self->words) return PyErr_NoMemory(), -1;
    int changed = walk_all(w, args, count) < 0 || w->count != kind_count || w->mark_count != mark_count;
    if (changed || !fits(self->row, w))
        return refuse(w->state, self->entry->name, args, count), -1;
    self->marks = (Mark *)&self->words[w->room];
    self->mark_count = mark_count;
    memcpy(self->marks, w->marks, bytes);
    return 0;
}

static int is_marked(const Walk *w, Py_ssize_t hole) {
    for (size_t k = 0; k < w->mark_count; k++)
        if (w->marks[k].hole == hole) return 1;
    return 0;
}

static int prepare(PreparedCall *self, PyObject *const *args, Py_ssize_t count) {
    int64_t words[WORDS];
    Walk w;
    start_walk(&w, self->entry->state, words, WORDS);
    w.holes = self->filled;
    self->row = row_of(self->entry, &w, args, count);
    if (!self->row) return -1;
    for (Py_ssize_t k = 0; k < SIZE(self->filled); k++)
        if (!is_marked(&w, k)) return PyErr_Format(PyExc_ValueError, "PreparedCall: hole %zd is no argument", k), -1;
    return fill_prepared(self, &w, args, count);
}

static int all_arrays(PyObject *values) {
    for (Py_ssize_t k = 0; k < SIZE(values); k++)
        if (refuse_non_array(ITEM(values, k)) < 0) return 0;
    return 1;
}

static PyObject *prepared_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *entry, *given, *holes, *outputs, *items[KINDS];
    State *state = PyType_GetModuleState(type);
    if (keywords) return PyErr_Format(PyExc_TypeError, "PreparedCall: arguments are positional only");
    if (!PyArg_ParseTuple(args, "O!O!O!O!:PreparedCall", state->entry, &entry, &PyTuple_Type, &given, &PyTuple_Type,
                          &holes, &PyTuple_Type, &outputs))
        return NULL;
    if (!all_arrays(outputs)) return NULL;
    if (SIZE(outputs) && !SIZE(holes))
        return PyErr_Format(PyExc_TypeError, "PreparedCall: outputs need a hole, which counts their rows");
    if (SIZE(holes) + SIZE(outputs) > MARKS)
        return PyErr_Format(PyExc_TypeError, "PreparedCall: more than %d holes and outputs", MARKS);
    if (SIZE(given) > KINDS) return PyErr_Format(PyExc_TypeError, "PreparedCall: more than %d arguments", KINDS);
    PreparedCall *self = PyObject_GC_New(PreparedCall, type);
    if (!self) return NULL;
    memset((char *)self + offsetof(PreparedCall, call), 0, sizeof(PreparedCall) - offsetof(PreparedCall, call));
    self->call = prepared_vectorcall;
    self->args = Py_NewRef(given);
    self->entry = (Entry *)Py_NewRef(entry);
    self->filled = PySequence_Concat(holes, outputs);
    self->hole_count = (size_t)SIZE(holes);
    PyObject_GC_Track(self);
    for (Py_ssize_t k = 0; k < SIZE(given); k++) items[k] = ITEM(given, k);
    if (!self->filled || prepare(self, items, SIZE(given)) < 0) Py_CLEAR(self);
    return (PyObject *)self;
}

/* No clear: like a tuple, a PreparedCall is part of no cycle without something else that can be cleared. */
static int prepared_traverse(PyObject *object, visitproc visit, void *arg) {
    PreparedCall *self = (PreparedCall *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->args);
    Py_VISIT(self->filled);
    Py_VISIT((PyObject *)self->entry);
    return 0;
}

static void prepared_dealloc(PyObject *object) {
    PreparedCall *self = (PreparedCall *)object;
    PyObject_GC_UnTrack(object);
    PyMem_Free(self->words);
    Py_DECREF(self->args);
    Py_XDECREF(self->filled);
    Py_DECREF((PyObject *)self->entry);
    free_object(object);
}

static PyMemberDef prepared_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PreparedCall, call), READONLY, NULL},
    {0},
};

static PyType_Slot prepared_slots[] = {
    {Py_tp_doc, "PreparedCall(entry, args, holes, outputs): a call whose arguments are laid out once, but for these."},
    {Py_tp_new, prepared_new},
    {Py_tp_call, prepared_call},
    {Py_tp_traverse, prepared_traverse},
    {Py_tp_dealloc, prepared_dealloc},
    {Py_tp_members, prepared_members},
    {0, NULL},
};

static PyType_Spec prepared_spec = {
    "raybox.compiler._calls.PreparedCall", sizeof(PreparedCall), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE, prepared_slots,
};

/* ---- Arrays ---- */

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

/* Eight sums side by side, which compilers turn into vectors. */
enum { LANES = 8 };

static int has_only_finite(const double *numbers, npy_intp count) {
    double sums[LANES] = {0}, total = 0.0; /* x - x is NaN for NaN and for infinities, and stays in a sum */
    npy_intp k = 0;
    for (; k + LANES <= count; k += LANES)
        for (int lane = 0; lane < LANES; lane++) sums[lane] += numbers[k + lane] - numbers[k + lane];
    for (; k < count; k++) total += numbers[k] - numbers[k];
    for (int lane = 0; lane < LANES; lane++) total += sums[lane];
    return total == 0.0;
}

/* Return a C-ordered, read-only copy of a plain array of float64 vectors of 2 or 3 coordinates, or NULL. */
static PyObject *copy_vectors(PyObject *value) {
    PyArrayObject *array = (PyArrayObject *)value;
    int dimensions = PyArray_NDIM(array);
    npy_intp width = dimensions ? PyArray_DIM(array, dimensions - 1) : 0;
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
        int finite = copy && has_only_finite(PyArray_DATA((PyArrayObject *)copy), PyArray_SIZE((PyArrayObject *)copy));
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

static int has_only_below(double limit, const double *numbers, npy_intp count) {
    for (npy_intp k = 0; k < count; k++)
        if (!(fabs(numbers[k]) < limit)) return 0;
    return 1;
}

static PyObject *all_below(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    double limit = count ? PyFloat_AsDouble(args[0]) : 0.0;
    int below = 1;
    if (PyErr_Occurred()) return NULL;
    for (Py_ssize_t k = 1; k < count; k++) {
        if (refuse_non_array(args[k]) < 0) return NULL;
        PyArrayObject *array = (PyArrayObject *)args[k];
        int needed = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
        if (PyArray_TYPE(array) != NPY_DOUBLE || (PyArray_FLAGS(array) & needed) != needed ||
            !PyArray_ISNBO(PyArray_DESCR(array)->byteorder))
            return PyErr_Format(PyExc_TypeError, "all_below: expected a limit and C-ordered arrays of float64");
        const double *numbers = PyArray_DATA(array);
        npy_intp size = PyArray_SIZE(array);
        below &= isinf(limit) ? has_only_finite(numbers, size) : has_only_below(limit, numbers, size);
    }
    return PyBool_FromLong(below);
}

/* ---- The processor ---- */

#if defined(__x86_64__) || defined(_M_X64)
#ifdef _MSC_VER
#include <intrin.h>
static void cpuid(uint32_t leaf, uint32_t out[4]) { __cpuidex((int *)out, (int)leaf, 0); }
static uint64_t enabled_state(void) { return _xgetbv(0); }
#else
#include <cpuid.h>
static void cpuid(uint32_t leaf, uint32_t out[4]) {
    __cpuid_count(leaf, 0, out[0], out[1], out[2], out[3]);
}
static uint64_t enabled_state(void) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}
#endif

static int has(uint32_t bits, uint32_t needed) { return (bits & needed) == needed; }

/* Levels of the x86-64 psABI; the operating system must save the registers. */
static const char *processor_level(void) {
    uint32_t top[4], one[4], seven[4] = {0}, far_top[4], far[4] = {0};
    cpuid(0, top);
    cpuid(1, one);
    if (top[0] >= 7) cpuid(7, seven);
    cpuid(0x80000000u, far_top);
    if (far_top[0] >= 0x80000001u) cpuid(0x80000001u, far);
    uint32_t v2 = 1u << 0 | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23; /* SSE3 to 4.2, CX16, POPCNT */
    uint32_t v3 = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29;          /* FMA MOVBE OSXSAVE AVX F16C */
    uint32_t v3_seven = 1u << 3 | 1u << 5 | 1u << 8;                             /* BMI1 AVX2 BMI2 */
    uint32_t v4_seven = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;    /* AVX512 F DQ CD BW VL */
    if (!has(one[2], v2) || !has(far[2], 1u << 0)) return "baseline";            /* LAHF */
    if (!has(one[2], v3) || !has(seven[1], v3_seven) || !has(far[2], 1u << 5)) return "v2"; /* LZCNT */
    uint64_t state = enabled_state();
    if ((state & 0x06) != 0x06) return "v2";
    return has(seven[1], v4_seven) && (state & 0xE6) == 0xE6 ? "v4" : "v3";
}
#elif defined(__aarch64__) || defined(_M_ARM64)
static const char *processor_level(void) { return "generic"; }
#else
static const char *processor_level(void) { return "baseline"; }
#endif

/* ---- Module ---- */

static PyObject *level(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyUnicode_FromString(processor_level());
}

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
     "Return whether all magnitudes in C-ordered float64 arrays are below a limit, the first argument."},
    {"level", level, METH_NOARGS, "Return the level of this processor: v4, v3, v2, baseline or generic."},
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

/* Take checks and texts of errors from `raybox.compiler.kinds`, and make Block known there. */
static int connect_kinds(State *state) {
    PyObject *kinds = PyImport_ImportModule("raybox.compiler.kinds");
    if (!kinds) return -1;
    state->refuse = PyObject_GetAttrString(kinds, "refuse");
    state->find_checked = PyObject_GetAttrString(kinds, "find_checked");
    PyObject *classes = PyObject_GetAttrString(kinds, "BLOCK_CLASSES");
    int is_complete = state->refuse && state->find_checked && classes;
    int status = is_complete ? PySet_Add(classes, (PyObject *)state->block) : -1;
    Py_XDECREF(classes);
    Py_DECREF(kinds);
    return status;
}

static int add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **type) {
    PyObject *made = PyType_FromModuleAndSpec(module, spec, NULL);
    if (!made) return -1;
    *type = (PyTypeObject *)made;
    return PyModule_AddObjectRef(module, name, made);
}

static int execute(PyObject *module) {
    State *state = PyModule_GetState(module);
    PyTypeObject *prepared = NULL;
    if (_import_array() < 0) return -1;
    int status = add_type(module, "PreparedCall", &prepared_spec, &prepared);
    Py_XDECREF((PyObject *)prepared);
    if (status < 0 || add_type(module, "Entry", &entry_spec, &state->entry) < 0) return -1;
    if (add_type(module, "Block", &block_spec, &state->block) < 0) return -1;
    if (add_class(state, state->block, BLOCK) < 0 || add_numpy_classes(state) < 0) return -1;
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
    Py_XDECREF((PyObject *)state->block);
    Py_XDECREF((PyObject *)state->entry);
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
