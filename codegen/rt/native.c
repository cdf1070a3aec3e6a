/* One state per module object; everything below runs with the interpreter's lock held. */

#define MADE_SIZE 256 /* a power of two */
#define PASSED_SIZE 1024 /* a power of two */
#define ORDERS 8      /* a power of two */

struct made {
    struct SELC_OUT key;
    PyObject *value;
};

#if SELC_COSTLY
/* Inputs for which the costly guards hold under the tuple in force. */
struct passed {
    struct SELC_IN key;
    int used;
};
#endif

/* Keyword names of a call site that come in the order of the arguments. */
struct order {
    PyObject *kwnames;
    Py_ssize_t nargs;
};

typedef struct {
    PyObject *names;      /* identifiers of the arguments, interned */
    PyObject *name[SELC_ARGUMENTS + 1]; /* the same, borrowed */
    PyObject *choices;    /* per argument the declared values, or () */
    PyObject *constants;  /* strings, symbols and tuples by number */
    PyObject *slow;       /* the Python selector: foreign types and error texts */
    PyObject *build;      /* outputs -> the result record */
    PyObject *commitment; /* the tuple in force, as Python knows it */
    struct SELC_PINS pins;
    struct made made[MADE_SIZE];
    struct order orders[ORDERS];
#if SELC_COSTLY
    struct passed passed[PASSED_SIZE];
#endif
} selc_state;

static selc_state *state_of(PyObject *module) { return (selc_state *)PyModule_GetState(module); }

/* --- arguments; 0 means: let Python decide ------------------------------------------------- */

static inline int as_int(PyObject *o, int64_t *to) {
    int overflow = 0;
    if (!Py_IS_TYPE(o, &PyLong_Type)) return 0;
    *to = (int64_t)PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow == 0;
}

static inline int as_bool(PyObject *o, int64_t *to) {
    *to = o == Py_True;
    return o == Py_True || o == Py_False;
}

static inline int as_real(PyObject *o, double *to) {
    if (!Py_IS_TYPE(o, &PyFloat_Type)) return 0;
    *to = PyFloat_AsDouble(o);
    return 1;
}

static inline int as_choice(PyObject *o, PyObject *choices, int64_t *to) {
    const Py_ssize_t n = PyTuple_Size(choices);
    Py_ssize_t i;
    for (i = 0; i < n; ++i) {
        if (PyTuple_GetItem(choices, i) == o) {
            *to = (int64_t)i;
            return 1;
        }
    }
    if (!Py_IS_TYPE(o, &PyUnicode_Type)) return 0;
    for (i = 0; i < n; ++i) {
        PyObject *c = PyTuple_GetItem(choices, i);
        if (Py_IS_TYPE(c, &PyUnicode_Type) && PyUnicode_Compare(o, c) == 0) {
            *to = (int64_t)i;
            return 1;
        }
    }
    return 0;
}

struct span {
    int64_t lo, hi, step;
};

struct totals {
    int64_t max, min, sum, len, any, all;
};

static inline int in_span(int64_t x, struct span s) {
    return x >= s.lo && x <= s.hi && (x - s.lo) % s.step == 0;
}

/* The totals of a list or tuple of ints; the caller bounds length times size below 2**62. */
static inline int as_totals(PyObject *o, struct span length, struct span element, struct totals *to) {
    const int is_list = Py_IS_TYPE(o, &PyList_Type);
    Py_ssize_t i, n;
    if (!is_list && !Py_IS_TYPE(o, &PyTuple_Type)) return 0;
    n = is_list ? PyList_Size(o) : PyTuple_Size(o);
    if (n == 0 || !in_span((int64_t)n, length)) return 0;
    to->sum = to->any = 0;
    to->all = 1;
    to->len = (int64_t)n;
    to->max = to->min = 0;
    for (i = 0; i < n; ++i) {
        int64_t x;
        if (!as_int(is_list ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i), &x)) return 0;
        if (!in_span(x, element)) return 0;
        if (i == 0 || x > to->max) to->max = x;
        if (i == 0 || x < to->min) to->min = x;
        to->sum += x;
        to->any |= x != 0;
        to->all &= x != 0;
    }
    return 1;
}

static int read_inputs(selc_state *st, PyObject *const *a, struct SELC_IN *in);
static int read_pins(PyObject *values, struct SELC_PINS *pins);
static int write_outputs(selc_state *st, const struct SELC_OUT *out, PyObject **to);

static void put(PyObject **place, PyObject *value) {
    PyObject *old = *place;
    Py_XINCREF(value);
    *place = value;
    Py_XDECREF(old);
}

/* --- results ---------------------------------------------------------------------------------- */

static inline uint64_t mixed(uint64_t h, uint64_t word) {
    h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ (h >> 29);
}

static size_t slot_of(const struct SELC_OUT *out) {
    uint64_t words[sizeof(struct SELC_OUT) / 8];
    uint64_t h = 0;
    size_t i;
    memcpy(words, out, sizeof words);
    for (i = 0; i < sizeof words / 8; ++i) h = mixed(h, words[i]);
    return (size_t)(h & (MADE_SIZE - 1));
}

static PyObject *make_result(selc_state *st, const struct SELC_OUT *out) {
    struct made *slot = &st->made[slot_of(out)];
    PyObject *items[SELC_OUTPUTS + 1];
    PyObject *args;
    PyObject *value;
    PyObject *old;
    Py_ssize_t i;
    if (slot->value != NULL && memcmp(&slot->key, out, sizeof *out) == 0) {
        Py_INCREF(slot->value);
        return slot->value;
    }
    if (!write_outputs(st, out, items)) return NULL;
    args = PyTuple_New(SELC_OUTPUTS);
    for (i = 0; i < SELC_OUTPUTS; ++i) {
        if (args == NULL || PyTuple_SetItem(args, i, items[i]) < 0) return NULL;
    }
    value = PyObject_CallObject(st->build, args);
    Py_DECREF(args);
    if (value == NULL) return NULL;
    slot = &st->made[slot_of(out)];
    old = slot->value;
    Py_INCREF(value);
    slot->value = value;
    slot->key = *out;
    Py_XDECREF(old);
    return value;
}

/* Select; costly guards that passed for the same inputs and tuple are not asked again. */
static inline int run(selc_state *st, const struct SELC_IN *in, struct SELC_OUT *out) {
#if SELC_COSTLY
    uint64_t words[sizeof(struct SELC_IN) / 8];
    uint64_t h = 0;
    struct passed *at;
    size_t i;
    int known, code;
    memcpy(words, in, sizeof words);
    for (i = 0; i < sizeof words / 8; ++i) h = mixed(h, words[i]);
    at = &st->passed[h & (PASSED_SIZE - 1)];
    known = at->used && memcmp(&at->key, in, sizeof *in) == 0;
    code = SELC_RUN(in, &st->pins, out, NULL, 0, known);
    if (code == 0 && !known) {
        at->key = *in;
        at->used = 1;
    }
    return code;
#else
    return SELC_SELECT(in, &st->pins, out, NULL, 0);
#endif
}

/* --- calls -------------------------------------------------------------------------------------- */

/* The same call in Python, under the tuple that was in force when it began. */
static PyObject *call_slow(
    selc_state *st, PyObject *commitment, int refused, PyObject *const *args, Py_ssize_t nargs,
    PyObject *kwnames) {
    const Py_ssize_t nkw = kwnames == NULL ? 0 : PyTuple_Size(kwnames);
    PyObject *positional = PyTuple_New(nargs);
    PyObject *named = PyDict_New();
    PyObject *result = NULL;
    Py_ssize_t i;
    if (positional == NULL || named == NULL) goto done;
    for (i = 0; i < nargs; ++i) {
        Py_INCREF(args[i]);
        if (PyTuple_SetItem(positional, i, args[i]) < 0) goto done;
    }
    for (i = 0; i < nkw; ++i) {
        if (PyDict_SetItem(named, PyTuple_GetItem(kwnames, i), args[nargs + i]) < 0) goto done;
    }
    result = PyObject_CallFunctionObjArgs(
        st->slow, commitment, refused ? Py_True : Py_False, positional, named, NULL);
done:
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return result;
}

/* The place of a keyword, looked for by identity from where it most likely is; -1 if unknown. */
static inline Py_ssize_t place_of(PyObject *const *names, PyObject *name, Py_ssize_t guess) {
    Py_ssize_t i;
    if (guess < SELC_ARGUMENTS && names[guess] == name) return guess;
    for (i = 0; i < SELC_ARGUMENTS; ++i) {
        if (names[i] == name) return i;
    }
    return -1;
}

/* The arguments in order, which is how they stand in the call unless keywords say otherwise; NULL
   if Python has to sort them out. */
static inline PyObject *const *in_order(
    selc_state *st, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **values) {
    struct order *order;
    Py_ssize_t i, nkw;
    int straight = 1;
    if (kwnames == NULL) return nargs == SELC_ARGUMENTS ? args : NULL;
    order = &st->orders[((uintptr_t)kwnames >> 4) & (ORDERS - 1)];
    if (order->kwnames == kwnames && order->nargs == nargs) return args;
    nkw = PyTuple_Size(kwnames);
    if (nargs + nkw != SELC_ARGUMENTS) return NULL;
    for (i = 0; i < nargs; ++i) values[i] = args[i];
    for (i = 0; i < nkw; ++i) {
        const Py_ssize_t at = place_of(st->name, PyTuple_GetItem(kwnames, i), nargs + i);
        if (at < 0 || values[at] != NULL) return NULL;
        values[at] = args[nargs + i];
        straight &= at == nargs + i;
    }
    if (straight) {
        put(&order->kwnames, kwnames);
        order->nargs = nargs;
    }
    return values;
}

static PyObject *native_select(
    PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    selc_state *st = state_of(module);
    PyObject *values[SELC_ARGUMENTS + 1] = {NULL};
    PyObject *const *ordered;
    struct SELC_IN in;
    struct SELC_OUT out;
    PyObject *commitment;
    PyObject *result;
    int code = 0;
#if SELC_COSTLY
    memset(&in, 0, sizeof in);
#endif
    if (st->commitment == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the native selector was not bound to its package");
        return NULL;
    }
    ordered = in_order(st, args, nargs, kwnames, values);
    if (ordered != NULL && read_inputs(st, ordered, &in)) {
        memset(&out, 0, sizeof out);
        code = run(st, &in, &out);
        if (code == 0) return make_result(st, &out);
    }
    commitment = st->commitment;
    Py_INCREF(commitment);
    result = call_slow(st, commitment, code != 0, args, nargs, kwnames);
    Py_DECREF(commitment);
    return result;
}

static PyObject *native_bind(PyObject *module, PyObject *args) {
    selc_state *st = state_of(module);
    PyObject *names, *choices, *constants, *slow, *build, *interned;
    Py_ssize_t i;
    if (!PyArg_ParseTuple(
            args, "O!O!O!OO", &PyTuple_Type, &names, &PyTuple_Type, &choices, &PyTuple_Type, &constants,
            &slow, &build)) {
        return NULL;
    }
    if (PyTuple_Size(names) != SELC_ARGUMENTS || PyTuple_Size(choices) != SELC_ARGUMENTS) {
        PyErr_SetString(PyExc_ValueError, "the package and its native module do not match");
        return NULL;
    }
    interned = PyTuple_New(SELC_ARGUMENTS);
    if (interned == NULL) return NULL;
    for (i = 0; i < SELC_ARGUMENTS; ++i) {
        PyObject *name = PyTuple_GetItem(names, i);
        Py_INCREF(name);
        PyUnicode_InternInPlace(&name);
        st->name[i] = name;
        if (PyTuple_SetItem(interned, i, name) < 0) return NULL;
    }
    for (i = 0; i < ORDERS; ++i) Py_CLEAR(st->orders[i].kwnames);
    put(&st->names, interned);
    Py_DECREF(interned);
    put(&st->choices, choices);
    put(&st->constants, constants);
    put(&st->slow, slow);
    put(&st->build, build);
    Py_RETURN_NONE;
}

static PyObject *native_install(PyObject *module, PyObject *args) {
    selc_state *st = state_of(module);
    PyObject *commitment, *values;
    struct SELC_PINS pins;
    if (!PyArg_ParseTuple(args, "OO!", &commitment, &PyTuple_Type, &values)) return NULL;
    memset(&pins, 0, sizeof pins);
    if (PyTuple_Size(values) != SELC_PARAMETERS || !read_pins(values, &pins)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "not a tuple of this selector");
        return NULL;
    }
    if (SELC_CHECK(&pins) != 0 && SELC_CHECK_IS_COMPLETE) {
        PyErr_SetString(PyExc_ValueError, "not a legal tuple of this selector");
        return NULL;
    }
    pins.checked = SELC_CHECKED;
    st->pins = pins;
#if SELC_COSTLY
    memset(st->passed, 0, sizeof st->passed);
#endif
    put(&st->commitment, commitment);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"select", (PyCFunction)(void (*)(void))native_select, METH_FASTCALL | METH_KEYWORDS, SELC_DOC},
    {"bind", native_bind, METH_VARARGS, "Connect the module to its package."},
    {"install", native_install, METH_VARARGS, "Put a legal tuple in force."},
    {NULL, NULL, 0, NULL},
};

static int native_exec(PyObject *module) {
    memset(state_of(module), 0, sizeof(selc_state));
    return PyModule_AddStringConstant(module, "KEY", SELC_KEY);
}

static int native_traverse(PyObject *module, visitproc visit, void *arg) {
    selc_state *st = state_of(module);
    size_t i;
    if (st == NULL) return 0;
    Py_VISIT(st->names);
    Py_VISIT(st->choices);
    Py_VISIT(st->constants);
    Py_VISIT(st->slow);
    Py_VISIT(st->build);
    Py_VISIT(st->commitment);
    for (i = 0; i < MADE_SIZE; ++i) Py_VISIT(st->made[i].value);
    for (i = 0; i < ORDERS; ++i) Py_VISIT(st->orders[i].kwnames);
    return 0;
}

static int native_clear(PyObject *module) {
    selc_state *st = state_of(module);
    size_t i;
    if (st == NULL) return 0;
    Py_CLEAR(st->names);
    Py_CLEAR(st->choices);
    Py_CLEAR(st->constants);
    Py_CLEAR(st->slow);
    Py_CLEAR(st->build);
    Py_CLEAR(st->commitment);
    for (i = 0; i < MADE_SIZE; ++i) Py_CLEAR(st->made[i].value);
    for (i = 0; i < ORDERS; ++i) Py_CLEAR(st->orders[i].kwnames);
    return 0;
}

static void native_free(void *module) { (void)native_clear((PyObject *)module); }

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)native_exec},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", SELC_DOC, sizeof(selc_state), methods, slots,
    native_traverse, native_clear, native_free,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
