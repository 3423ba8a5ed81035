/* Calls of machine code: arguments become 64-bit words, and their kinds choose the code.

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

/* ARRAYS of five words and KINDS less ARRAYS of one word are fewer than WORDS. */
enum { WORDS = 1024, KINDS = 256, ARRAYS = 128, DIMENSIONS = 4, RESULTS = 16 };

typedef int32_t (*Code)(const int64_t *words, int64_t *results);

/* ---- Tables ---- */

/* Kinds of numbers, and of what has parts; the latter hold a count in bits 8 to 31 and a number above. */
enum { NONE, INTEGER, DOUBLE, SINGLE, BOOLEAN, ARRAY, TUPLE, NAMED, STRUCT, BLOCK };

static inline uint64_t kind_with(uint64_t tag, uint64_t count, uint64_t number) {
    return tag | count << 8 | number << 32;
}

typedef struct { /* one bit an array, in the order of the walk */
    uint64_t low, high;
} Bits;

static inline Bits shifted(Bits bits, unsigned by) {
    if (by == 0) return bits;
    if (by >= 64) return (Bits){0, by < 128 ? bits.low << (by - 64) : 0};
    return (Bits){bits.low << by, bits.high << by | bits.low >> (64 - by)};
}

typedef struct { /* kinds of arguments */
    uint64_t hash;
    size_t count;
    uint64_t *kinds;
} Key;

static uint64_t hash_of(const uint64_t *kinds, size_t count) {
    uint64_t hash = count;
    for (size_t k = 0; k < count; k++) hash += kinds[k] * (2 * k + 0x9E3779B97F4A7C15u);
    return hash;
}

static inline int equal(const Key *one, const Key *other) {
    return one->hash == other->hash && one->count == other->count &&
           !memcmp(one->kinds, other->kinds, one->count * sizeof(uint64_t));
}

typedef struct {
    PyTypeObject *class; /* a reference: no other class can get its address */
    uint64_t kind, number;
} Known;

typedef struct Classes { /* open addressing, at most half full */
    struct Classes *older;
    size_t mask, count;
    Known slots[];
} Classes;

typedef struct Layout { /* the kinds of a Block, numbered */
    struct Layout *next;
    uint64_t number;
    Key key;
} Layout;

typedef struct {
    Classes *classes;
    Layout *layouts;
    PyTypeObject *block;
    PyObject *refuse;
    Lock lock;
} State;

static inline size_t slot_of(const PyTypeObject *class) {
    return (uintptr_t)class * (size_t)0x9E3779B97F4A7C15u >> (sizeof(size_t) * 4);
}

static const Known *known_class(State *state, const PyTypeObject *class) {
    Classes *classes = LOAD(state->classes);
    for (size_t k = slot_of(class);; k++) {
        Known *slot = &classes->slots[k & classes->mask];
        const PyTypeObject *there = LOAD(slot->class);
        if (there == class) return slot;
        if (!there) return NULL;
    }
}

static void insert_class(Classes *classes, Known new) {
    size_t k = slot_of(new.class);
    while (classes->slots[k & classes->mask].class) k++;
    Known *slot = &classes->slots[k & classes->mask];
    slot->kind = new.kind;
    slot->number = new.number;
    classes->count++;
    PUBLISH(slot->class, new.class);
}

static Classes *grown(Classes *older) {
    size_t size = older ? 2 * (older->mask + 1) : 64;
    Classes *classes = PyMem_Calloc(1, sizeof(Classes) + size * sizeof(Known));
    if (!classes) return NULL;
    classes->older = older; /* readers may still be in it */
    classes->mask = size - 1;
    for (size_t k = 0; older && k <= older->mask; k++)
        if (older->slots[k].class) insert_class(classes, older->slots[k]);
    return classes;
}

/* Return the kind of a class, which is `kind` if the class is new; -1 and MemoryError without memory. */
static int add_class(State *state, PyTypeObject *class, uint64_t kind) {
    int result = (int)kind;
    LOCK(&state->lock);
    const Known *known = known_class(state, class);
    Classes *classes = state->classes;
    if (!known && 2 * classes->count > classes->mask) {
        classes = grown(classes);
        if (classes) PUBLISH(state->classes, classes);
    }
    if (known) {
        result = (int)known->kind;
    } else if (classes) {
        Py_INCREF((PyObject *)class);
        insert_class(classes, (Known){class, kind, classes->count});
    } else {
        PyErr_NoMemory();
        result = -1;
    }
    UNLOCK(&state->lock);
    return result;
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
    size_t front, back, room; /* front <= back: all words are counted, and no more than `room` */
    size_t count;
    unsigned arrays;
    Bits read_only;
    PyTypeObject *unknown; /* the class that stopped the walk */
    uint64_t kinds[KINDS];
} Walk;

typedef struct {
    PyObject_HEAD
    PyObject *value;
    int64_t *words; /* words[0] is the address of the struct, which is behind it */
    const Layout *layout;
    unsigned arrays;
    Bits read_only;
} Block;

/* These return -1 where an argument is refused, without an exception. */
static int walk(Walk *w, PyObject *value, int in_struct);

static inline int put_kind(Walk *w, uint64_t kind) {
    if (w->count == KINDS) return -1;
    w->kinds[w->count++] = kind;
    return 0;
}

/* There is no room where another thread changes an array between the two walks of a Block. */
static inline int put_word(Walk *w, int64_t word) {
    if (w->front == w->back) return -1;
    w->words[w->front++] = word;
    return 0;
}

static inline int put(Walk *w, uint64_t kind, int64_t word) {
    return put_kind(w, kind) < 0 ? -1 : put_word(w, word);
}

static int put_arrays(Walk *w, unsigned count, Bits read_only) {
    if (count > ARRAYS - w->arrays) return -1;
    Bits bits = shifted(read_only, w->arrays);
    w->read_only.low |= bits.low;
    w->read_only.high |= bits.high;
    w->arrays += count;
    return 0;
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
    if (put_arrays(w, 1, (Bits){!(flags & NPY_ARRAY_WRITEABLE), 0}) < 0) return -1;
    if (put(w, kind_with(ARRAY, item, count), (intptr_t)PyArray_DATA(array)) < 0) return -1;
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
    w->front = begin;
    return put_word(w, (intptr_t)&w->words[w->back]);
}

/* Recursion ends: each tuple is one of KINDS kinds. */
static int walk_tuple(Walk *w, PyObject *tuple, uint64_t kind, uint64_t number, int in_struct) {
    Py_ssize_t size = SIZE(tuple);
    size_t begin = w->front;
    if (size > KINDS || put_kind(w, kind_with(kind, size, number)) < 0) return -1;
    if (walk_items(w, tuple, size, in_struct || kind == STRUCT) < 0) return -1;
    return kind == STRUCT ? close_struct(w, begin) : 0;
}

static int walk_block(Walk *w, const Block *block) {
    if (put_arrays(w, block->arrays, block->read_only) < 0) return -1;
    return put(w, kind_with(BLOCK, 0, block->layout->number), block->words[0]);
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

static int walk(Walk *w, PyObject *value, int in_struct) {
    PyTypeObject *class = Py_TYPE(value);
    if (class == &PyArray_Type) return walk_array(w, (PyArrayObject *)value);
    if (class == &PyLong_Type) return put_integer(w, value);
    if (class == &PyFloat_Type) return put_double(w, AS_DOUBLE(value));
    if (class == &PyTuple_Type) return walk_tuple(w, value, TUPLE, 0, in_struct);
    if (class == &PyBool_Type) return put(w, BOOLEAN, value == Py_True);
    if (value == Py_None) return put_kind(w, NONE);
    return walk_known(w, value, in_struct);
}

static int walk_all(Walk *w, PyObject *const *args, Py_ssize_t count) {
    w->front = w->count = w->arrays = 0;
    w->back = w->room;
    w->read_only = (Bits){0, 0};
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

/* ---- Keys in which each Block stands as its struct ---- */

static const Layout *layout_numbered(State *state, uint64_t number) {
    const Layout *layout = LOAD(state->layouts);
    while (layout->number != number) layout = layout->next;
    return layout;
}

/* Write kinds to `to`, unless it is NULL; return how many there are. */
static size_t expand(State *state, const Walk *w, uint64_t *to) {
    size_t count = 0;
    for (size_t k = 0; k < w->count; k++) {
        const uint64_t *kinds = &w->kinds[k];
        size_t more = 1;
        if ((*kinds & 0xFF) == BLOCK) {
            const Layout *layout = layout_numbered(state, *kinds >> 32);
            kinds = layout->key.kinds;
            more = layout->key.count;
        }
        if (to) memcpy(&to[count], kinds, more * sizeof(uint64_t));
        count += more;
    }
    return count;
}

/* Return a key with memory of its own; without kinds and with MemoryError, if there is none. */
static Key expanded_key(State *state, const Walk *w) {
    size_t count = expand(state, w, NULL);
    Key key = {0, count, PyMem_Malloc((count + 1) * sizeof(uint64_t))};
    if (!key.kinds) {
        PyErr_NoMemory();
        return key;
    }
    expand(state, w, key.kinds);
    key.hash = hash_of(key.kinds, count);
    return key;
}

/* ---- Block ---- */

/* Return the layout with a key, whose memory it takes over. */
static const Layout *layout_with(State *state, Key key) {
    if (!key.kinds) return NULL;
    LOCK(&state->lock);
    Layout *first = state->layouts, *layout = first;
    while (layout && !equal(&layout->key, &key)) layout = layout->next;
    int is_new = !layout;
    if (is_new && (layout = PyMem_Malloc(sizeof(Layout)))) {
        *layout = (Layout){first, first ? first->number + 1 : 0, key};
        PUBLISH(state->layouts, layout);
    }
    UNLOCK(&state->lock);
    if (!layout) PyErr_NoMemory();
    if (!is_new || !layout) PyMem_Free(key.kinds);
    return layout;
}

/* Lay out the value a second time, in memory of the size that the first walk found. */
static int fill_block(Block *block, Walk *w, PyObject *const *value) {
    w->room = w->front + (w->room - w->back);
    block->words = w->words = PyMem_Malloc(w->room * sizeof(int64_t));
    if (!block->words) {
        PyErr_NoMemory();
        return -1;
    }
    if (walk_all(w, value, 1) < 0) return -1;
    block->arrays = w->arrays;
    block->read_only = w->read_only;
    block->layout = layout_with(w->state, expanded_key(w->state, w));
    return block->layout ? 0 : -1;
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
    w.state = state;
    w.words = words;
    w.room = WORDS;
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

static PyMemberDef block_members[] = {
    {"value", T_OBJECT, offsetof(Block, value), READONLY, "The struct."},
    {0},
};

static PyType_Slot block_slots[] = {
    {Py_tp_doc, "Block(value): the words of a struct, laid out once; counts as the struct in any call."},
    {Py_tp_new, block_new},
    {Py_tp_traverse, block_traverse},
    {Py_tp_dealloc, block_dealloc},
    {Py_tp_members, block_members},
    {0, NULL},
};

static PyType_Spec block_spec = {
    "raybox.compiler._calls.Block", sizeof(Block), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, block_slots,
};

/* ---- Entry ---- */

typedef struct Row { /* code for arguments of these kinds */
    struct Row *next;
    Key key;
    Code code;
    Bits writable;
    char results[RESULTS + 3];
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

static inline int overlap(Bits one, Bits other) {
    return (one.low & other.low) || (one.high & other.high);
}

/* Return the first row for these kinds that writes to no read-only array. */
static const Row *row_with(Entry *self, const Key *key, Bits read_only) {
    const Row *row = LOAD(self->rows);
    while (row && (!equal(&row->key, key) || overlap(row->writable, read_only))) row = LOAD(row->next);
    return row;
}

static int same_use(const Row *one, const Row *other) {
    return equal(&one->key, &other->key) && one->writable.low == other->writable.low &&
           one->writable.high == other->writable.high;
}

/* Add code for a key, whose memory the row takes over, unless another thread was faster. */
static int add_row(Entry *self, const Row *found, Key key) {
    Row *row = key.kinds ? PyMem_Malloc(sizeof(Row)) : NULL;
    if (!row) {
        PyMem_Free(key.kinds);
        PyErr_NoMemory();
        return -1;
    }
    *row = *found;
    row->next = NULL;
    row->key = key;
    LOCK(&self->lock);
    Row **end = &self->rows;
    while (*end && !same_use(*end, row)) end = &(*end)->next;
    int is_new = !*end;
    if (is_new) PUBLISH(*end, row);
    UNLOCK(&self->lock);
    if (!is_new) {
        PyMem_Free(key.kinds);
        PyMem_Free(row);
    }
    return 0;
}

static int are_results(const char *results, Py_ssize_t size) {
    if (size == 1) return strspn(results, "nifb") == 1;
    return size >= 3 && size <= RESULTS + 2 && results[0] == '(' && results[size - 1] == ')' &&
           strspn(results + 1, "ifb") == (size_t)size - 2;
}

static int read_bits(PyObject *number, Bits *bits) {
    PyObject *by = PyLong_FromLong(64), *high = NULL;
    if (by && PyLong_Check(number)) high = PyNumber_Rshift(number, by);
    Py_XDECREF(by);
    if (!high) return -1;
    bits->low = PyLong_AsUnsignedLongLongMask(number);
    bits->high = PyLong_AsUnsignedLongLong(high); /* OverflowError if negative or past 128 bits */
    Py_DECREF(high);
    return PyErr_Occurred() ? -1 : 0;
}

static int read_row(PyObject *found, Row *row) {
    if (!PyTuple_Check(found) || PyTuple_Size(found) != 3) return -1;
    PyObject *address = PyTuple_GetItem(found, 0), *results = PyTuple_GetItem(found, 1);
    if (!PyLong_Check(address) || !PyUnicode_Check(results)) return -1;
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(results, &size);
    if (!text || !are_results(text, size)) return -1;
    memcpy(row->results, text, size + 1);
    row->code = (Code)(uintptr_t)PyLong_AsUnsignedLongLong(address);
    return PyErr_Occurred() || !row->code ? -1 : read_bits(PyTuple_GetItem(found, 2), &row->writable);
}

/* Read what `find` returns for arguments. */
static int find_row(Entry *self, PyObject *const *args, Py_ssize_t count, Bits read_only, Row *row) {
    PyObject *all = as_tuple(args, count);
    PyObject *found = all ? PyObject_CallFunctionObjArgs(self->find, all, NULL) : NULL;
    Py_XDECREF(all);
    if (!found) return -1;
    int status = read_row(found, row);
    int is_wrong = status == 0 && overlap(row->writable, read_only);
    if (status < 0) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%U: find returned %R; expected Found(address, results, writable)",
                     self->name, found);
    } else if (is_wrong) {
        PyErr_Format(PyExc_ValueError, "%U: find returned code that writes to a read-only array", self->name);
    }
    Py_DECREF(found);
    return status < 0 || is_wrong ? -1 : 0;
}

static Key copied_key(const Key *key) {
    Key copy = {key->hash, key->count, PyMem_Malloc((key->count + 1) * sizeof(uint64_t))};
    if (copy.kinds) memcpy(copy.kinds, key->kinds, key->count * sizeof(uint64_t));
    return copy;
}

/* Add rows for arguments: with Blocks as structs, and as they are. */
static int learn(Entry *self, const Walk *w, const Key *key, PyObject *const *args, Py_ssize_t count) {
    Key expanded = expanded_key(self->state, w), own = copied_key(key);
    Bits read_only = w->read_only;
    Row row = {0};
    const Row *same = expanded.kinds ? row_with(self, &expanded, read_only) : NULL;
    int status = expanded.kinds && own.kinds ? 0 : -1;
    if (status == 0 && same) row = *same;
    if (status == 0 && !same) status = find_row(self, args, count, read_only, &row);
    if (status < 0) {
        PyMem_Free(expanded.kinds);
        PyMem_Free(own.kinds);
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return -1;
    }
    status = add_row(self, &row, expanded);
    return add_row(self, &row, own) < 0 ? -1 : status;
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

static PyObject *call_with(Entry *self, PyObject *const *args, Py_ssize_t count) {
    int64_t words[WORDS];
    Walk w;
    w.state = self->state;
    w.words = words;
    w.room = WORDS;
    for (;;) { /* `find` may run any code, after which all is laid out anew */
        if (lay_out(&w, args, count) < 0) return refuse(self->state, self->name, args, count);
        Key key = {hash_of(w.kinds, w.count), w.count, w.kinds};
        const Row *row = row_with(self, &key, w.read_only);
        if (row) return run(self, row, words);
        if (learn(self, &w, &key, args, count) < 0) return NULL;
    }
}

static PyObject *refuse_keywords(Entry *self) {
    return PyErr_Format(PyExc_TypeError, "%U: arguments are positional only", self->name);
}

static PyObject *entry_vectorcall(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    if (keywords && PyTuple_Size(keywords)) return refuse_keywords((Entry *)self);
    return call_with((Entry *)self, args, (Py_ssize_t)(count & ~((size_t)1 << (8 * sizeof(size_t) - 1))));
}

static PyObject *entry_call(PyObject *self, PyObject *args, PyObject *keywords) {
    if (keywords && PyDict_Size(keywords)) return refuse_keywords((Entry *)self);
    Py_ssize_t count = PyTuple_Size(args);
    PyObject **items = PyMem_Malloc((count + 1) * sizeof(PyObject *));
    if (!items) return PyErr_NoMemory();
    for (Py_ssize_t k = 0; k < count; k++) items[k] = PyTuple_GetItem(args, k);
    PyObject *result = call_with((Entry *)self, items, count);
    PyMem_Free(items);
    return result;
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
        PyMem_Free(row->key.kinds);
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

/* Take the errors' texts from `raybox.compiler.kinds`, and make Block known there. */
static int connect_kinds(State *state) {
    PyObject *kinds = PyImport_ImportModule("raybox.compiler.kinds");
    if (!kinds) return -1;
    state->refuse = PyObject_GetAttrString(kinds, "refuse");
    PyObject *classes = PyObject_GetAttrString(kinds, "BLOCK_CLASSES");
    int status = state->refuse && classes ? PySet_Add(classes, (PyObject *)state->block) : -1;
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
    PyTypeObject *entry = NULL;
    if (_import_array() < 0) return -1;
    state->classes = grown(NULL);
    if (!state->classes) return -1;
    int status = add_type(module, "Entry", &entry_spec, &entry);
    Py_XDECREF((PyObject *)entry);
    if (status < 0 || add_type(module, "Block", &block_spec, &state->block) < 0) return -1;
    if (add_class(state, state->block, BLOCK) < 0 || add_numpy_classes(state) < 0) return -1;
    return connect_kinds(state);
}

static void free_state(void *module) {
    State *state = PyModule_GetState(module);
    if (!state) return;
    for (size_t k = 0; state->classes && k <= state->classes->mask; k++)
        Py_XDECREF((PyObject *)state->classes->slots[k].class);
    for (Classes *classes = state->classes, *older; classes; classes = older) {
        older = classes->older;
        PyMem_Free(classes);
    }
    for (Layout *layout = state->layouts, *next; layout; layout = next) {
        next = layout->next;
        PyMem_Free(layout->key.kinds);
        PyMem_Free(layout);
    }
    Py_XDECREF((PyObject *)state->block);
    Py_XDECREF(state->refuse);
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
