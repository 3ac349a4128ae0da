"""Arrays of evidence and plans in one block of memory, and kernels that are bound to their arrays.

Evidence and plans are nested tuples of some sixty small arrays. Two things are done to all of them at once:

* ``in_one_block`` moves them side by side. Numpy takes small arrays from where the last were freed: two threads would
  write to the same cache lines, and the processor would pass these to and fro. (Measured: two threads of BubbleRank 1.3
  times as fast as one before, 1.9 after.)
* ``bound`` makes a call of a kernel with fixed arguments. A call from Python unpacks every array: 75 microseconds, of
  which 10 are work. A bound kernel finds the addresses of its arrays in a table, from which it takes its arguments
  (``unpacked``), and is called with nothing else.

      @kernel
      def _draw_from(kinds, table):
          policy, evidence, plan, workspace = unpacked(kinds, table)
          ...

  Arguments are arrays in C order, numbers, and tuples of those. Only a view of memory is taken: the bound call keeps
  the arrays alive and sees later writes to them.
"""

import functools
import hashlib
import struct
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import extending, typeof
from numba.core import cgutils as _cgutils
from numba.core import types as _types
from numba.core.pythonapi import NativeValue
from numpy.typing import NDArray

from saferank._kernel import JIT, mentions_foreign

T = TypeVar("T", bound=tuple[Any, ...])

_WORD = ir.IntType(64)
cgutils: Any = _cgutils  # numba has few annotations
types: Any = _types
numba_extending: Any = extending

# --- nested tuples, one block ---

_MARGIN = 128  # two cache lines: processors fetch them in pairs
_ALIGNED = 16

ArrayKind = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and type of an array."""


def arrays_of(parts: tuple[Any, ...], found: list[NDArray[Any]] | None = None) -> list[NDArray[Any]]:
    """All arrays in nested tuples, in order, behind those that were ``found`` before."""
    arrays = [] if found is None else found
    for part in parts:
        if isinstance(part, np.ndarray):
            arrays.append(part)
        elif isinstance(part, tuple):
            arrays_of(part, arrays)
    return arrays


def with_arrays(parts: T, change: Callable[[NDArray[Any]], NDArray[Any]]) -> T:
    """The same tuples with another array for each; plain Python may have other things in them, which stay."""
    made = [
        change(part) if isinstance(part, np.ndarray) else with_arrays(part, change) if isinstance(part, tuple) else part
        for part in parts
    ]
    return cast(T, type(parts)(*made) if hasattr(parts, "_fields") else tuple(made))


class _Block:
    """Room for arrays of these kinds, side by side."""

    def __init__(self, kinds: tuple[ArrayKind, ...]) -> None:
        rooms = [-(-kind.itemsize * int(np.prod(shape)) // _ALIGNED) * _ALIGNED for shape, kind in kinds]
        starts = np.cumsum([_MARGIN, *rooms]).tolist()
        whole = np.zeros(starts[-1] + _MARGIN, np.uint8)
        self.bytes = whole[_MARGIN : starts[-1]]
        self.arrays = [np.ndarray(shape, kind, whole, at) for (shape, kind), at in zip(kinds, starts, strict=False)]

    def filled(self, parts: T) -> T:
        """The same tuples with arrays of the block, into which their arrays are copied."""
        for mine, array in zip(self.arrays, arrays_of(parts), strict=True):
            mine[...] = array
        free = iter(self.arrays)
        return with_arrays(parts, lambda _: next(free))


def _kinds_of(parts: tuple[Any, ...]) -> tuple[ArrayKind, ...]:
    return tuple([(array.shape, array.dtype) for array in arrays_of(parts)])


def in_one_block(parts: T) -> T:
    """The same tuples of arrays, nested as they are, with copies of the arrays side by side in one block."""
    return _Block(_kinds_of(parts)).filled(parts)


# --- kernels with fixed arguments ---


class ArgumentKinds(_types.Type):
    """The types of the arguments in a table. A value of this type holds nothing: the type says it all."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts
        names = "\0".join(map(str, parts))
        super().__init__(name=f"ArgumentKinds({hashlib.sha256(names.encode()).hexdigest()[:32]})")


numba_extending.register_model(ArgumentKinds)(numba_extending.models.OpaqueModel)


@numba_extending.unbox(ArgumentKinds)  # type: ignore[untyped-decorator]
def _unbox_nothing(kind: Any, value: Any, call: Any) -> Any:
    made: Any = NativeValue
    return made(call.context.get_dummy_value())


def _unpacked(typing: Any, kinds: Any, table: Any) -> Any:
    result = types.Tuple(kinds.parts)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words = context.make_array(signature.args[1])(context, builder, arguments[1]).data
        return _Unpacking(context, builder, words).value_of(result)

    return result(kinds, table), codegen


unpacked: Any = numba_extending.intrinsic(_unpacked)
"""``unpacked(kinds, table)``: the arguments in a table, as a tuple; for compiled code only."""


class _Unpacking:
    """Makes values of the words of a table, one after the other."""

    def __init__(self, context: Any, builder: Any, words: Any) -> None:
        self._context, self._builder, self._words, self._at = context, builder, words, 0

    def value_of(self, kind: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            return self._context.make_tuple(self._builder, kind, [self.value_of(part) for part in kind.types])
        if isinstance(kind, types.Array):
            return self._array(kind)
        if isinstance(kind, types.Float):
            return self._builder.bitcast(self._word(), ir.DoubleType())
        return self._builder.trunc(self._word(), self._context.get_value_type(kind))

    def _word(self) -> Any:
        place = self._builder.gep(self._words, [ir.Constant(_WORD, self._at)])
        self._at += 1
        return self._builder.load(place)

    def _array(self, kind: Any) -> Any:
        builder, array = self._builder, cgutils.create_struct_proxy(kind)(self._context, self._builder)
        entry = self._context.get_data_type(kind.dtype)
        size = ir.Constant(_WORD, self._context.get_abi_sizeof(entry))
        array.data = builder.inttoptr(self._word(), entry.as_pointer())
        shape = [self._word() for _ in range(kind.ndim)]
        strides: list[Any] = []
        step = size
        for length in reversed(shape):
            strides.insert(0, step)
            step = builder.mul(step, length)
        array.shape, array.strides = cgutils.pack_array(builder, shape), cgutils.pack_array(builder, strides)
        array.itemsize, array.nitems = size, builder.sdiv(step, size)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)  # nothing is counted: see _nrt in _kernel.py
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()


def _take(parts: tuple[Any, ...], words: list[int], kinds: list[Any]) -> None:
    """Add to the words of a table, and to what the types of its arguments depend on."""
    kinds.append(type(parts))
    for part in parts:
        if isinstance(part, np.ndarray):
            known = _facts.get(id(part))
            if known is None or known[0]() is not part:
                known = _facts_of(part)
            kinds.append(known[1])
            words += known[2]
        elif isinstance(part, tuple):
            _take(part, words, kinds)
        else:
            kinds.append(type(part))
            words.append(_bits_of(part))


def _bits_of(number: Any) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0]) if isinstance(number, float) else int(number)


_facts: dict[int, tuple["weakref.ref[NDArray[Any]]", int, tuple[int, ...]]] = {}
"""By id of an array that lives: itself, the number of its kind, its address and shape. Numpy takes long to tell."""

_kind_numbers: dict[tuple[Any, ...], int] = {}


def _facts_of(array: NDArray[Any]) -> tuple["weakref.ref[NDArray[Any]]", int, tuple[int, ...]]:
    number, kind = id(array), (array.dtype, array.ndim, array.flags.num)
    found = (
        weakref.ref(array, lambda _: _facts.pop(number, None)),
        _kind_numbers.setdefault(kind, len(_kind_numbers)),
        (array.ctypes.data, *array.shape),
    )
    _facts[number] = found
    return found


_entries: dict[tuple[Any, ...], Callable[..., None] | None] = {}
"""By kernel and kinds of arguments: the compiled code, or None for the types of a plug-in."""


def bound(entry: Callable[..., None], plain: Callable[..., None], *arguments: Any) -> Callable[[], None]:
    """A function without arguments that does what ``plain(*arguments)`` does, by compiled code for a table.

    ``entry`` is the kernel that takes the arguments out of a table. What is interpreted, or works on types of a
    plug-in, calls ``plain`` itself.
    """
    if not JIT:
        return functools.partial(plain, *arguments)
    words: list[int] = []
    kinds: list[Any] = [entry]
    _take(arguments, words, kinds)
    key = tuple(kinds)
    if key not in _entries:
        _entries[key] = _compiled(entry, arguments)
    compiled = _entries[key]
    if compiled is None:
        return functools.partial(plain, *arguments)
    call = _Bound(compiled, None, np.array(words, np.int64))
    call.arguments = arguments
    return call


class _Bound(functools.partial[None]):
    """A call that is ready to be made; it keeps the arrays alive whose addresses are in the table."""

    arguments: tuple[Any, ...]


def _compiled(entry: Any, arguments: tuple[Any, ...]) -> Callable[..., None] | None:
    kind_of: Any = typeof
    parts = tuple(kind_of(argument) for argument in arguments)
    if any(map(mentions_foreign, parts)):
        return None
    for part in parts:
        _check(part)
    code: Callable[..., None] = entry.compile((ArgumentKinds(parts), types.int64[::1]))
    return code


def _check(kind: Any) -> None:
    if isinstance(kind, types.BaseTuple):
        for part in kind.types:
            _check(part)
    elif not (
        kind.layout == "C" and kind.aligned
        if isinstance(kind, types.Array)
        else kind in (types.float64, types.int64, types.boolean)
    ):
        raise TypeError(f"a bound kernel takes aligned arrays in C order, int, float and bool, not {kind}")
