"""Kernels with fixed arguments, whose arrays are unpacked once instead of in every call.

A policy's state is some sixty arrays, and a call of compiled code from Python unpacks all of them: choosing and
freezing a page takes 75 microseconds, of which 10 are work. ``bound`` writes the addresses of the arrays into a table.
The kernel takes its arguments out of the table (``unpacked``) and is called with nothing else.

    @kernel
    def _issue_from(kinds, table):
        policy, state, rng, impression = unpacked(kinds, table)
        ...

Arguments are arrays in C order, numbers, and NamedTuples of those. Only a view of memory is taken: whoever is bound
keeps the arrays alive and sees what is written to them.
"""

import functools
import hashlib
import struct
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, typeof
from numba.core import cgutils as _cgutils
from numba.core import types as _types
from numba.core.pythonapi import NativeValue
from numpy.typing import NDArray

from saferank._kernel import JIT, mentions_foreign

_WORD = ir.IntType(64)
cgutils: Any = _cgutils  # numba has few annotations
types: Any = _types
numba_extending: Any = extending


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


class _Leaves:
    """The arrays and numbers among arguments, in order, and what their types depend on."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.words: list[int] = []
        self.kinds: list[Any] = []
        self._take(arguments)

    def _take(self, parts: tuple[Any, ...]) -> None:
        self.kinds.append(type(parts))
        for part in parts:
            if isinstance(part, np.ndarray):
                self.kinds.append((part.dtype, part.ndim, part.flags.num))
                self.words.append(_address_of(part))
                self.words += part.shape
            elif isinstance(part, tuple):
                self._take(part)
            else:
                self.kinds.append(type(part))
                self.words.append(_bits_of(part))


def _bits_of(number: Any) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0]) if isinstance(number, float) else int(number)


_addresses: dict[int, tuple["weakref.ref[NDArray[Any]]", int]] = {}
"""By id of an array: the array, while it lives, and its address. Asking numpy takes a microsecond and a half."""


def _address_of(array: NDArray[Any]) -> int:
    number = id(array)
    known = _addresses.get(number)
    if known is not None and known[0]() is array:
        return known[1]
    address = array.ctypes.data
    _addresses[number] = (weakref.ref(array, lambda _: _addresses.pop(number, None)), address)
    return address


_entries: dict[tuple[Any, ...], Callable[..., None] | None] = {}
"""By kernel and kinds of arguments: the compiled code, or None where it cannot be bound."""


def bound(entry: Callable[..., None], plain: Callable[..., None], *arguments: Any) -> Callable[[], None]:
    """A function without arguments that does what ``plain(*arguments)`` does, by compiled code for a table if it can.

    ``entry`` is the kernel that takes the arguments out of a table.
    """
    if not JIT:
        return functools.partial(plain, *arguments)
    leaves = _Leaves(arguments)
    key = (entry, *leaves.kinds)
    if key not in _entries:
        _entries[key] = _compiled(entry, arguments)
    compiled = _entries[key]
    if compiled is None:
        return functools.partial(plain, *arguments)
    return _Bound(compiled, np.array(leaves.words, np.int64), arguments)


class _Bound:
    """A call that is ready to be made; it keeps the arrays alive whose addresses are in the table."""

    __slots__ = ("_arguments", "_compiled", "_table")

    def __init__(self, compiled: Callable[..., None], table: NDArray[np.int64], arguments: tuple[Any, ...]) -> None:
        self._compiled, self._table, self._arguments = compiled, table, arguments

    def __call__(self) -> None:
        self._compiled(None, self._table)


def _compiled(entry: Any, arguments: tuple[Any, ...]) -> Callable[..., None] | None:
    kind_of: Any = typeof
    parts = tuple(kind_of(argument) for argument in arguments)
    if not all(_fits(part) and not mentions_foreign(part) for part in parts):
        return None
    code: Callable[..., None] = entry.compile((ArgumentKinds(parts), types.int64[::1]))
    return code


def _fits(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return all(map(_fits, kind.types))
    if isinstance(kind, types.Array):
        return bool(kind.layout == "C" and kind.aligned)
    return kind in (types.float64, types.int64, types.boolean)
