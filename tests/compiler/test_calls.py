"""Calls of machine code: words, kinds, results, errors, threads and memory, in C and with ctypes.

What code receives is read back by a callback, which follows the arguments as Python sees them.
"""

import ctypes
import functools
import gc
import importlib.util
import runpy
import shutil
import subprocess
import sys
import sysconfig
import threading
import weakref
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from random import Random

import numpy as np
import pytest

import raybox as rb
from raybox.compiler import ctypes_calls
from raybox.compiler.calls import Found
from raybox.compiler.kinds import kind_of

SOURCES = Path(__file__).parents[2] / "src" / "raybox" / "compiler"
build_calls = runpy.run_path(str(SOURCES / "build_calls.py"))["build_calls"]  # wheels do not have it

CODE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int64))
COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]
NO_COMPILER = "needs a C compiler"
HAS_COMPILER = sys.platform == "win32" or shutil.which(COMPILER) is not None


Inner = namedtuple("Inner", "lower number")  # no struct, unless it is in one
Outer = namedtuple("Outer", "inner rows pair")  # a struct with a named tuple in it
Holder = namedtuple("Holder", "outer time")  # a struct of structs
Plain = namedtuple("Plain", "first second")  # passed in place
STRUCTS = (Outer, Holder)


def load(path):
    spec = importlib.util.spec_from_file_location("_calls", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Return the C module's file."""
    if not HAS_COMPILER:
        pytest.skip(NO_COMPILER)
    return build_calls(tmp_path_factory.mktemp("calls"))


@functools.cache
def loaded(path):
    module = load(path)
    for cls in STRUCTS:
        module.register_struct(cls)
    return module


@pytest.fixture(params=["c", "ctypes"])
def api(request):
    """Return an implementation, with the structs of this file registered."""
    if request.param == "c":
        return loaded(request.getfixturevalue("built"))
    for cls in STRUCTS:
        ctypes_calls.register_struct(cls)
    return ctypes_calls


class Words:
    """Words of an address, one after the other."""

    def __init__(self, address):
        self.address = address

    def next(self):
        self.address += 8
        return ctypes.c_int64.from_address(self.address - 8).value


def check(words, value, in_struct=False):
    """Assert that the next words are those of a value."""
    value = value.value if type(value).__name__ == "Plan" else value
    if isinstance(value, np.ndarray):
        assert words.next() == value.ctypes.data
        assert [words.next() for _ in value.shape] == list(value.shape)
    elif isinstance(value, tuple):
        by_address = type(value) in STRUCTS or (in_struct and type(value) is not tuple)
        inner = Words(words.next()) if by_address else words
        for item in value:
            check(inner, item, in_struct or by_address)
    elif isinstance(value, np.float32):
        assert words.next() == value.view(np.uint32)
    elif isinstance(value, float):
        assert words.next() == np.float64(value).view(np.int64)
    elif value is not None:
        assert words.next() == int(value)


class Machine:
    """An entry whose code calls a Python function; counts calls of `find`.

    run: a function of the words' address and of the results.
    """

    def __init__(self, api, run, results="n", writable=0):
        self.finds, self.wrong, self.run = [], [], run
        self.code = CODE(self._call)
        self.found = Found(ctypes.cast(self.code, ctypes.c_void_p).value, results, writable)
        self.entry = api.Entry(self.find, "machine")

    def _call(self, words, results):
        try:
            return self.run(ctypes.addressof(words.contents), results) or 0
        except BaseException as error:
            self.wrong.append(error)
            return 0

    def find(self, args):
        self.finds.append(kind_of(args))
        return self.found

    def __call__(self, *args):
        result = self.entry(*args)
        if self.wrong:
            raise self.wrong[0]
        return result


def reader(api, args, results="n"):
    """Return a machine that checks the words of these arguments."""
    run_count = []

    def run(address, _results):
        run_count.append(1)
        words = Words(address)
        for value in args:
            check(words, value)

    machine = Machine(api, run, results)
    machine.run_count = run_count
    return machine


def array(shape=(3,), dtype="f8"):
    return np.zeros(shape, dtype)


def outer(**fields):
    inner = Inner(array((2, 3)), 7)
    return Outer(inner, array((4, 1), "i4"), (array(2, "f4"), inner))._replace(**fields)


DTYPES = ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
NUMBERS = (
    *(0, -1, 2**63 - 1, -(2**63), 0.5, -0.0, float("nan"), float("inf"), True, False, None),
    *(np.float64(2.5), np.float32(-1.5), np.float32("nan"), np.bool_(True), np.bool_(False)),
    *(np.dtype(code).type(100) for code in "bhilqBHILQ"),
    np.int8(-128),
    np.uint64(2**63 - 1),
)


def everything():
    """Yield argument lists."""
    yield ()
    yield NUMBERS
    yield tuple(array((1, 2, 3, 4)[:ndim], dtype) for dtype in DTYPES for ndim in (1, 2, 3, 4))
    yield (array(0), array((3, 0, 2)), np.zeros((5, 1, 5))[:, :, ::1], np.zeros(9)[2:7])
    yield ((), ((),), (1, (2.0, (array(), None)), True))
    yield (Plain(array(), 5), Plain(Plain(1, 2), (3, Inner(4.0, array()))))
    yield (outer(), 8, outer(pair=((((1.5,),),), ())))
    yield (1, Holder(outer(), 0.25), Plain(outer(), Holder(outer(inner=Inner(None, None)), array())))


@pytest.mark.parametrize("args", [*everything()], ids=kind_of)
def test_code_receives_the_words_of_everything(api, args):
    machine = reader(api, args)
    assert machine(*args) is machine(*args) is None
    assert machine.finds == [kind_of(args)]
    assert len(machine.run_count) == 2


def with_plans(api):
    """Yield argument lists, with Plans and with structs."""
    one = outer()
    plan = api.Plan(one)
    holder, rows, other = Holder(plan, 0.25), array(), outer()
    yield (plan, 3), (one, 3)
    yield (Plain(plan, (plan, rows)),), (Plain(one, (one, rows)),)
    pairs = [other._replace(pair=(given, 1)) for given in (plan, one)]
    yield (1.0, holder, pairs[0]), (1.0, Holder(one, 0.25), pairs[1])
    yield (api.Plan(holder), plan), (Holder(one, 0.25), one)


def test_plans_count_as_their_structs(api):
    for args, plain in with_plans(api):
        for order in ((args, args, plain, args), (plain, args, plain, args)):
            machine = reader(api, args)
            for given in order:
                machine(*given)
            assert machine.finds == [kind_of(plain)] == [kind_of(args)]
            assert len(machine.run_count) == 4


def test_a_plan_owns_words_and_value(api):
    rows = np.arange(12.0).reshape(4, 3)
    alive = weakref.ref(rows)
    plan = api.Plan(outer(rows=rows))
    value = plan.value
    assert value.rows is plan.rows is rows
    assert plan._replace(rows=1).rows == 1
    assert not isinstance(plan, tuple)
    del rows, value
    gc.collect()
    assert alive() is not None
    machine = reader(api, (plan,))
    machine(plan)
    for name in ("value", "words", "address"):
        with pytest.raises(AttributeError):
            setattr(plan, name, 1)
    del plan, machine
    gc.collect()
    assert alive() is None


def test_plans_are_made_of_registered_structs_alone(api):
    for wrong in (Plain(1, 2), (1, 2), 3, api.Plan(outer()), outer):
        with pytest.raises(TypeError, match="expected one struct, whose class is registered"):
            api.Plan(wrong)
    for wrong in ((), (outer(), outer())):
        with pytest.raises(TypeError):
            api.Plan(*wrong)
    with pytest.raises(TypeError, match=r"Plan: argument 1, field \.pair\[1\]\.lower: got list"):
        api.Plan(outer(pair=(1, Inner([], 2))))


def test_kinds_are_text():
    read_only = array()
    read_only.flags.writeable = False
    args = (array((2, 2)), read_only, 1, 2.0, np.float32(1), True, None, (1, ()), Plain(outer(), np.int8(3)))
    assert kind_of(args) == (
        "f8:2,f8:1r,i,f,g,b,n,(i,()),test_calls.Plain(test_calls.Outer(test_calls.Inner(f8:2,i),i4:2,"
        "(f4:1,test_calls.Inner(f8:2,i))),i)"
    )
    assert kind_of((rb.Rays([0, 0], [1, 0])._rows(),)).startswith("RayRows(f8:2r,")  # raybox's own
    assert kind_of((array(1, "?"), array(1, "u2"))) == "b1:1,u2:1"


BITS = int(np.float64(-2.5).view(np.int64))
RESULTS = {
    "n": ((), None),
    "i": ((-5,), -5),
    "f": ((BITS,), -2.5),
    "b": ((2,), True),
    "(i)": ((3,), (3,)),
    "(ifbb)": ((2**63 - 1, BITS, 1, 0), (2**63 - 1, -2.5, True, False)),
    f"({'i' * 16})": (tuple(range(16)), tuple(range(16))),
}


@pytest.mark.parametrize("kinds", RESULTS)
def test_results_have_their_kinds(api, kinds):
    words, expected = RESULTS[kinds]

    def run(_address, results):
        for k, word in enumerate(words):
            results[k] = word

    result = Machine(api, run, kinds)(1)
    assert result == expected
    flat = (result, expected) if isinstance(expected, tuple) else ((result,), (expected,))
    assert [*map(type, flat[0])] == [*map(type, flat[1])]


def test_a_status_is_an_error_of_memory(api):
    with pytest.raises(MemoryError, match="machine: out of memory"):
        Machine(api, lambda *_: 1)(1)


def test_code_is_found_once_for_each_combination_of_kinds(api):
    machine = Machine(api, lambda *_: None)
    lists = [(), (1,), (1.0,), (array(),), (array((1, 1)),), ((1,),), (Plain(1, 2),), (outer(),), (1, 1.0)]
    lists += [(1, np.float32(1), 1), (1.0, 1.0, 1.0), (1.0, 1)]  # with equal sums of kinds
    lists += [((1, 2), 3), ((1, 2, 3),), ((1,), 2, 3), (Plain(1, 2), 3), (tuple.__new__(Plain, (1,)), 2, 3)]
    for _ in range(3):
        for args in lists:
            machine(*args)
    assert machine.finds == [*map(kind_of, lists)]
    other = namedtuple("Plain", "first second")  # of the same name
    machine(other(1, 2))
    assert len(machine.finds) == len(lists) + 1


def test_numbers_of_numpy_have_the_kinds_of_python(api):
    machine = Machine(api, lambda *_: None)
    integers = [np.dtype(code).type(1) for code in "bhilqBHILQ"]
    for own, others in ((1, integers), (1.0, [np.float64(1)]), (True, [np.bool_(True)])):
        machine.finds.clear()
        machine(own)
        assert machine.finds == [kind_of((own,))]
        assert all(machine(given) is None for given in others)
        assert len(machine.finds) == 1
    machine(np.float32(1))
    assert machine.finds[1:] == ["g"]


def test_errors_of_find_pass_and_store_nothing(api):
    machine = Machine(api, lambda *_: None)
    errors = [KeyError("one"), KeyboardInterrupt()]

    def find(args):
        if errors:
            raise errors.pop()
        return machine.find(args)

    entry = api.Entry(find, "entry")
    with pytest.raises(KeyboardInterrupt):
        entry(1)
    with pytest.raises(KeyError):
        entry(1)
    assert entry(1) is None is entry(1)
    assert machine.finds == ["i"]


def read_only_array():
    made = array()
    made.flags.writeable = False
    return made


def test_read_only_arrays_need_code_of_their_own(api):
    """Where the code writes; the first code that was found stays the one for writable arrays."""
    machine = Machine(api, lambda *_: 0, "i", writable=0b10)
    other = Machine(api, lambda _, results: results.__setitem__(0, 1), "i")
    entry = api.Entry(lambda args: (machine if args[1].flags.writeable else other).find(args), "entry")
    for _ in range(2):
        assert entry(read_only_array(), array()) == 0 == entry(array(), array())
        assert entry(array(), read_only_array()) == 1 == entry(read_only_array(), read_only_array())
    assert (machine.finds, other.finds) == (["f8:1r,f8:1"], ["f8:1,f8:1r"])


def test_code_never_gets_a_read_only_array_that_it_writes_to(api):
    machine = Machine(api, lambda *_: 0, writable=1)
    for given in (read_only_array(), outer(rows=read_only_array(), inner=None)):
        for args in ((given,), (Plain(1, given),)):
            with pytest.raises(ValueError, match="find returned code that writes to a read-only array"):
                machine(*args)
    refusing = Machine(api, lambda *_: 0)

    def find(args):
        if not args[0].flags.writeable:
            raise TypeError("only for writable arrays")
        return machine.find(args)

    refusing.entry = api.Entry(find, "entry")
    refusing(array())
    with pytest.raises(TypeError, match="only for writable arrays"):
        refusing(read_only_array())
    refusing(array())


@pytest.mark.parametrize("at", [0, 1, 2, 63, 64, 65, 127, 200])
def test_each_array_has_a_bit(api, at):
    """Also those after and in Plans."""
    block_at = max(0, at - 4)
    for is_plan in (False, True):
        arrays = [array(1) for _ in range(201)]
        machine = Machine(api, lambda *_: 0)
        machine.found = machine.found._replace(writable=1 << at)

        def args(arrays, is_plan=is_plan):
            struct = Outer(tuple(arrays[block_at : block_at + 9]), None, None)
            given = api.Plan(struct) if is_plan else struct
            return tuple(arrays[:block_at]), given, tuple(arrays[block_at + 9 :])

        machine(*args(arrays))
        for k in range(201):
            changed = [read_only_array() if k == j else one for j, one in enumerate(arrays)]
            with pytest.raises(ValueError, match="read-only") if k == at else nullcontext():
                machine(*args(changed))
        assert len(machine.finds) == 2


def test_limits(api):
    machine = Machine(api, lambda *_: 0)
    machine(*range(256))
    machine(*((array((1, 1, 1, 1)),) * 256))
    machine(*((array(1),) * 252), api.Plan(Outer(array(1), array(1), 1)))
    nested = ()
    for _ in range(10000):
        nested = (nested,)
    api.Plan(Outer(tuple(range(252)), 1, 2))
    with pytest.raises(TypeError, match="Plan: more than 256 numbers"):
        api.Plan(Outer(tuple(range(253)), 1, 2))
    with_plan = (*((array(1),) * 253), api.Plan(Outer(array(1), array(1), 1)))
    many = range(257), ((1,) * 256,), ((1,) * 100000,), range(100000), (nested,), (array(1),) * 257
    for args in (*many, with_plan):
        for _ in range(2):
            with pytest.raises(TypeError, match="machine: more than 256 numbers"):
                machine(*args)
            with pytest.raises(TypeError, match="machine: more than"):
                type(machine.entry).__call__(machine.entry, *args)
    machine(*range(256))


class List(tuple):
    """A tuple's subclass without fields."""

    __slots__ = ()


class Hostile(type):
    """A metaclass whose classes have no fields, and say so in a bad way."""

    def __getattr__(cls, name):
        raise RuntimeError(name) if name == "_fields" else AttributeError(name)


class HostileTuple(tuple, metaclass=Hostile):
    __slots__ = ()

    def __len__(self):
        return 10**9

    def __iter__(self):
        raise RuntimeError


class Lying(Plain):
    """A named tuple that lies about itself."""

    _fields = 5

    def __len__(self):
        return 10**9


class Subclass(np.ndarray):
    pass


class Index:
    def __index__(self):
        return 1

    __float__ = __index__


class Number(int):
    pass


def misaligned():
    return np.zeros(41, "u1")[1:].view("f8")


# Values that nothing admits.
REFUSED = (
    *([1, 2], "text", b"text", {}, set(), object(), Index(), Number(1), 1j, 2**63, -(2**63) - 1, 10**400),
    *(np.uint64(2**63), np.float16(1), np.longdouble(1), np.complex64(1), np.str_("x"), Plain, np.float64),
    *(List((1, 2)), HostileTuple((1, 2)), Lying(1, 2), np.datetime64(1, "s"), np.ma.masked_array([1.0])),
    *(array().view(Subclass), array((1, 1)).view(np.recarray), array((1,) * 5), array((3, 3))[:, :2]),
    *(misaligned(), np.zeros(()), np.zeros((4, 4)).T, np.zeros(8)[::2], np.zeros(8)[::-1]),
    *(np.broadcast_to(1.0, (3, 3)), array().astype(">f8"), array().astype(">i2"), array(2, [("x", "f8")])),
    *(array(2, dtype) for dtype in ("c16", "f2", "O", "S3", "U3", "M8[s]", "V8", "g")),
)
# Values that are admitted, and differ in kind from those in their place.
OTHER = (
    *(None, np.float32(1), array((1, 2, 3)), array(1, "u2"), (), ((1,),), Plain(1, 2), Inner(1, 2)),
    *(tuple.__new__(Plain, (1,)), tuple.__new__(Outer, (1, 2, 3, 4)), Holder(1, 2)),
)


def right(api):
    plan = api.Plan(outer())
    rows = Plain(array(2, "i4"), (True, Inner(3.0, 4)))
    return array(), 1, 2.0, rows, outer(), Holder(outer(), 1.0), plan


def spoiled(random, value, other):
    """Return a value with one part, at any depth, replaced."""
    if isinstance(value, tuple) and value and random.random() < 0.8:
        k = random.randrange(len(value))
        items = [spoiled(random, item, other) if j == k else item for j, item in enumerate(value)]
        return tuple.__new__(type(value), items)
    return other


def wrong_arguments(random, args):
    """Return a wrong argument list, and whether its values are admitted."""
    args, choice, k = list(args), random.randrange(10), random.randrange(len(args))
    if choice == 0:
        del args[k]
    elif choice == 1:
        args.insert(k, random.choice([1, array(), None, outer()]))
    elif choice == 2:
        other = (k + random.randrange(1, len(args))) % len(args)
        args[k], args[other] = args[other], args[k]
        return args, None if {k, other} == {4, 6} else True  # a Plan for its struct is right
    elif choice <= 4:
        args[k] = spoiled(random, args[k], random.choice(OTHER))
    else:
        args[k] = spoiled(random, args[k], random.choice(REFUSED))
        return args, False
    return args, True


class NoCode(Exception):
    pass


@pytest.mark.parametrize("seed", range(4))
def test_a_wrong_call_is_an_error(api, seed):
    """2,500 wrong calls of each seed: none reaches code, and right ones between them do."""
    random, args = Random(seed), right(api)
    machine = reader(api, args)
    kinds, refused, unknown = kind_of(args), 0, 0

    def find(given):
        if kind_of(given) != kinds:
            raise NoCode
        return machine.found

    entry = api.Entry(find, "entry")
    while refused + unknown < 2500:
        wrong, is_admitted = wrong_arguments(random, args)
        if is_admitted is None:
            continue
        if is_admitted:
            unknown += 1
            with pytest.raises(NoCode):
                entry(*wrong)
        else:
            refused += 1
            with pytest.raises((TypeError, OverflowError, RuntimeError)) as caught:
                entry(*wrong)
            assert caught.type is RuntimeError or str(caught.value).startswith("entry: argument ")
        if (refused + unknown) % 50 == 0:
            entry(*args)
            assert not machine.wrong
    assert len(machine.run_count) == 50
    assert refused > 1000
    assert unknown > 700


def test_errors_name_the_place_and_what_came(api):
    machine = Machine(api, lambda *_: 0)
    wrong = np.zeros((2, 3), ">f4").T
    with pytest.raises(TypeError) as error:
        machine(1, outer(pair=(0, Inner(wrong, 1))))
    assert str(error.value) == (
        "machine: argument 2, field .pair[1].lower: got an array of >f4, shape (3, 2), strides (4, 12); "
        "expected a C-contiguous, aligned array in native byte order, of 1 to 4 dimensions, of float64, "
        "float32, bool or integers; numpy.ascontiguousarray makes one"
    )
    with pytest.raises(OverflowError, match="machine: argument 3: got an integer beyond int64"):
        machine(1, 2, 2**63)
    with pytest.raises(TypeError, match=r"argument 1: got list; expected a numpy\.ndarray \(no subclass\)"):
        machine([])
    with pytest.raises(TypeError, match=r"positional only|unexpected keyword"):
        machine.entry(1, name=2)
    with pytest.raises(TypeError, match=r"strides \(8,\), not aligned"):
        machine(misaligned())


def test_plans_of_another_implementation_are_refused(built):
    module = loaded(built)
    ctypes_calls.register_struct(Outer)
    for api, other in ((module, ctypes_calls), (ctypes_calls, module), (module, load(built))):
        other.register_struct(Outer)
        with pytest.raises(TypeError):
            Machine(api, lambda *_: 0)(other.Plan(outer()))


def test_structs_are_registered_before_they_are_passed(api):
    for wrong in (tuple, int, List, 5, Lying, None):
        with pytest.raises(TypeError, match="expected a class of named tuples"):
            api.register_struct(wrong)
    late = namedtuple("late", "x")
    Machine(api, lambda *_: 0)(late(1))
    with pytest.raises(TypeError, match="were passed before"):
        api.register_struct(late)
    assert api.register_struct(Outer) is Outer


def test_many_classes_are_distinct(api):
    made = [namedtuple(f"N{k}", "x") for k in range(300)]
    machine = Machine(api, lambda *_: 0)
    for cls in made[::2]:
        api.register_struct(cls)
    for _ in range(2):
        for cls in made:
            reader_words = []
            machine.run = lambda address, _, words=reader_words: words.append(Words(address).next())
            machine(cls(5))
            assert (reader_words[0] == 5) == (cls not in made[::2])
    assert len(machine.finds) == 300


def test_an_entry_can_wrap_a_function(api):
    def function(x: int) -> int:
        """Say something."""

    entry = Machine(api, lambda *_: 0).entry
    function.extra = 5
    assert functools.update_wrapper(entry, function) is entry
    assert (entry.__wrapped__, entry.__name__, entry.__doc__) == (function, "function", "Say something.")
    assert (entry.__module__, entry.__qualname__, entry.extra) == (__name__, function.__qualname__, 5)
    assert entry.__call__(1) is functools.partial(entry, 1)() is type(entry).__call__(entry, 1) is None
    assert entry(*[1], **{}) is None
    for wrong in ((1, "name"), (len, 5), (len,)):
        with pytest.raises(TypeError):
            api.Entry(*wrong)


def test_circles_are_collected(api):
    class Mark:
        pass

    machine = Machine(api, lambda *_: 0)
    mark, found = Mark(), machine.found
    entry = api.Entry(lambda _, mark=mark: found, "entry")
    entry(1)
    entry.itself = entry
    alive = weakref.ref(mark)
    del entry, mark
    gc.collect()
    assert alive() is None


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Return functions in C: they run without the GIL, as no callback does."""
    if sys.platform == "win32" or not HAS_COMPILER:
        pytest.skip(NO_COMPILER)
    folder = tmp_path_factory.mktemp("library")
    (folder / "code.c").write_text(
        "#include <stdint.h>\n#include <time.h>\n"
        "int32_t wait(const int64_t *words, int64_t *results) {\n"
        "    volatile int64_t *flag = (volatile int64_t *)words[0];\n"
        "    for (time_t end = time(0) + 20; !*flag && time(0) < end;) {}\n"
        "    results[0] = *flag;\n    return 0;\n}\n"
        "int32_t add(const int64_t *words, int64_t *results) {\n"
        "    results[0] = words[0] + ((const int64_t *)words[1])[2];\n    return 0;\n}\n"
    )
    subprocess.run([COMPILER, "-O1", "-shared", "-fPIC", "-o", "code.so", "code.c"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "code.so"))


def found_in(library, name, results="i"):
    return Found(ctypes.cast(getattr(library, name), ctypes.c_void_p).value, results, 0)


def entry_of(api, library, name, results="i"):
    return api.Entry(lambda _: found_in(library, name, results), name)


def test_other_threads_run_during_a_call(api, library):
    flag = array(1, "i8")
    entry = entry_of(api, library, "wait")
    thread = threading.Timer(0.05, lambda: flag.__setitem__(0, 9))
    thread.start()
    assert entry(flag) == 9
    thread.join()


def run_in_threads(function, count=4):
    with ThreadPoolExecutor(count) as pool:
        return [*pool.map(function, range(count))]


def test_several_threads_call_one_entry(api, library):
    entry = entry_of(api, library, "add")

    def run(k):
        for n in range(800):
            struct = Outer(5, (6,), 10 * k)
            extra = (1.0,) * (n % 40)
            if entry(n, api.Plan(struct) if n % 2 else struct, extra) != n + 10 * k:
                return False
        return True

    assert all(run_in_threads(run))


def test_two_threads_find_code_at_once(api, library):
    barrier, found = threading.Barrier(2), found_in(library, "add")
    entry = api.Entry(lambda _: barrier.wait(20) < 2 and found, "add")
    struct = Outer(5, (6,), 30)
    assert sorted(run_in_threads(lambda k: entry(k, struct), 2)) == [30, 31]


def test_find_may_change_arrays(api):
    """It may run any code: the words are those after it."""
    rows = array(4)
    machine = reader(api, (rows,))

    def find(args):
        args[0].resize(100000, refcheck=False)
        return machine.found

    api.Entry(find, "entry")(rows)
    assert len(machine.run_count) == 1
    assert not machine.wrong


def allocations_after(call, count):
    """Return how many more pieces of memory are allocated after so many calls."""
    for _ in range(300):
        call()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(count):
        call()
    gc.collect()
    return sys.getallocatedblocks() - before


@pytest.mark.long
def test_memory_does_not_grow(api, library):
    inner = array(2)
    args = (1, outer(inner=5, rows=(6,), pair=inner), Plain(np.int64(2**40), np.float32(3)))
    plan = api.Plan(Outer(5, (6,), 7))
    entry = entry_of(api, library, "add", "(ifb)")
    failing = api.Entry(lambda _: 1 / 0, "failing")

    def fail(entry, *args):
        with pytest.raises((TypeError, ZeroDivisionError, OverflowError, ValueError)):
            entry(*args)

    calls = [
        lambda: entry(*args),
        lambda: entry(1, plan),
        lambda: api.Plan(args[1]),
        lambda: fail(api.Plan, outer(rows=[])),
        lambda: fail(failing, *args),
        lambda: fail(failing, 1, plan),
        lambda: fail(entry, 1, outer(rows=2**70)),
        lambda: fail(entry, [1]),
        lambda: entry_of(api, library, "add")(1, plan),
    ]
    counted = (inner, args, plan, plan.value, Outer, api.Entry, api.Plan, entry, failing)
    counts = [*map(sys.getrefcount, counted)]
    for call in calls:
        assert allocations_after(call, 12_000) < 600
    assert all(abs(sys.getrefcount(one) - count) < 100 for one, count in zip(counted, counts, strict=True))


@pytest.mark.skipif(not HAS_COMPILER, reason=NO_COMPILER)
def test_builds_are_equal_and_without_warnings(tmp_path):
    flags = () if sys.platform == "win32" else ("-Werror",)
    one, other = (build_calls(tmp_path / name, *flags) for name in ("one", "another"))
    assert one.read_bytes() == other.read_bytes()
    assert str(tmp_path).encode() not in one.read_bytes()
