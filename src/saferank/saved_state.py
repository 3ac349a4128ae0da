"""Bytes that hold the state of a ranker: exact, versioned, checked, and without pickle.

    8 bytes "SAFERANK" | 2 bytes format version | body, compressed | 32 bytes SHA-256 of all before

The body is a JSON header, which lists the arrays with type and shape, followed by their contents. Tables of pairs are
mostly 0. So a large array is cut into cells of 64 bytes, and only the cells that are not 0 are saved: their numbers
(uint32, ascending), the cells, and what is left at the end of the array. Saving costs one pass that looks for them, and
the rest in proportion to what was learnt.

The digest detects damage, not malice: load only what you saved yourself.
"""

import hashlib
import json
import mmap
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"SAFERANK"
FORMAT_VERSION = 4
_DIGEST_SIZE = hashlib.sha256().digest_size
_TYPES = ("int64", "uint32", "uint64", "float64", "bool", "uint8")
_NAMES = {np.dtype(name): name for name in _TYPES}  # numpy takes long to spell them

_BLOCK = 4096
"""Bytes that the operating system gives out at a time."""
_CELL = 64
"""Bytes that are saved or left out together: a power of two that divides a block."""
_CELLS = _BLOCK // _CELL
_LEVEL = 1
"""Of zlib. What is not 0 is mostly logarithms: higher levels take longer and save hardly anything."""
_LARGEST = 1 << 30
"""Maximum bytes of an array that is mostly left out, however short the saved data are."""
_PIECE = 65536
_MAPPED = 32768
"""Arrays from this size on have memory of their own."""
_MOST_PACKED = 1100
"""zlib packs no more bytes than this into one."""

_GROWING = ("duels.", "leaders.", "closure.")

Arrays = dict[str, NDArray[Any]]


class SavedStateError(ValueError):
    """Why bytes cannot be loaded."""


IMPOSSIBLE = (KeyError, TypeError, ValueError, IndexError, OverflowError, MemoryError)
"""What Python raises where the content of saved bytes makes no sense."""


def flatten(state: Any, path: str = "") -> list[tuple[str, NDArray[Any]]]:
    """The arrays of a NamedTuple, nested ones included, by dotted names."""
    found: list[tuple[str, NDArray[Any]]] = []
    for name, part in zip(state._fields, state, strict=True):
        found += flatten(part, f"{path}{name}.") if isinstance(part, tuple) else [(f"{path}{name}", part)]
    return found


def below(path: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin with this path, by the rest of their names."""
    return {name.removeprefix(f"{path}."): array for name, array in arrays.items() if name.startswith(f"{path}.")}


def check_shape(name: Any, model: Any) -> None:
    """SavedStateError unless arrays were saved as this kind of NamedTuple."""
    if name != type(model).__name__:
        raise SavedStateError(f"it was saved as {name}, and this saferank reads {type(model).__name__}")


def rebuild(model: Any, arrays: Arrays, path: str = "") -> Any:
    """A NamedTuple in the form of ``model`` with these arrays; SavedStateError when they do not fit it."""
    parts = {}
    for name, part in zip(model._fields, model, strict=True):
        key = f"{path}{name}"
        parts[name] = rebuild(part, arrays, f"{key}.") if isinstance(part, tuple) else _fitting(key, part, arrays)
    return type(model)(**parts)


def _fitting(key: str, model: NDArray[Any], arrays: Arrays) -> NDArray[Any]:
    if key not in arrays:
        raise SavedStateError(f"the saved state has no {key}; it was saved by another version of its policy")
    array = arrays[key]
    if array.dtype != model.dtype or not _fits(array.shape, model.shape, key):
        raise SavedStateError(f"{key} of the saved state is {array.dtype} of shape {array.shape}, not as expected")
    return array


def _fits(shape: tuple[int, ...], model: tuple[int, ...], key: str) -> bool:
    """Tables of duels, leaders and certified items may have grown since; everything else keeps its shape."""
    if key.startswith(_GROWING) and len(shape) == len(model) and model[0] > 1:
        return shape[0] >= model[0] and shape[1:] == model[1:]
    return shape == model


def to_bytes(facts: dict[str, Any], arrays: Arrays) -> bytes:
    """Pack facts (JSON) and arrays."""
    listing: list[list[Any]] = []
    contents: list[bytes] = []
    for name, array in arrays.items():
        form = [name, _NAMES.get(array.dtype) or str(array.dtype), array.shape]
        raw = None if array.nbytes < _BLOCK else np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        cells = None if raw is None else _cells_in_use(raw)
        if raw is None or cells is None:
            listing.append(form)
            contents.append(array.tobytes())
        else:
            listing.append([*form, len(cells)])
            contents += [cells.tobytes(), _as_cells(raw)[cells].tobytes(), raw[len(raw) // _BLOCK * _BLOCK :].tobytes()]
    header = json.dumps({"facts": facts, "arrays": listing}).encode()
    body = zlib.compress(b"".join((struct.pack("<I", len(header)), header, *contents)), level=_LEVEL)
    head = MAGIC + struct.pack("<H", FORMAT_VERSION)
    return head + body + hashlib.sha256(head + body).digest()


def _as_cells(raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The cells of the whole blocks."""
    return raw[: len(raw) // _BLOCK * _BLOCK].reshape(-1, _CELL)


def _blocks_in_use(raw: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """By whole block: it is not 0. Bits are looked at, so that a number that equals 0 and is another one stays."""
    return np.asarray(_as_words(raw).max(axis=1) > 0)


def _as_words(raw: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The whole blocks, by block."""
    return raw[: len(raw) // _BLOCK * _BLOCK].view(np.uint64).reshape(-1, _BLOCK // 8)


def _cells_in_use(raw: NDArray[np.uint8]) -> NDArray[np.uint32] | None:
    """The numbers of the cells that are not 0; None for an array of which most are not."""
    blocks = np.flatnonzero(_blocks_in_use(raw))
    cells = np.flatnonzero(_as_words(raw)[blocks]) // (_CELL // 8)
    cells = cells[np.diff(cells, prepend=-1) > 0]
    if 2 * len(cells) * _CELL > len(raw):
        return None
    return np.asarray(blocks[cells // _CELLS] * _CELLS + cells % _CELLS, np.uint32)


def from_bytes(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Unpack what ``to_bytes`` made; SavedStateError says what is wrong with anything else."""
    body = _Body(_checked_body(data))
    try:
        (length,) = struct.unpack("<I", body.read(4))
        header = json.loads(body.read(length))
        arrays = {name: _read_array(body, name, *form) for name, *form in header["arrays"]}
        body.end()
        return header["facts"], arrays
    except zlib.error as problem:
        raise SavedStateError(f"the saved ranker cannot be unpacked: {problem}") from problem
    except (struct.error, *IMPOSSIBLE) as problem:
        raise SavedStateError(f"the saved ranker has an impossible content: {problem}") from problem


def _checked_body(data: bytes) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SavedStateError(f"expected the bytes of a saved ranker, not {type(data).__name__}")
    data = bytes(data)
    if not data.startswith(MAGIC):
        raise SavedStateError("these are not the bytes of a saved ranker: they do not begin with SAFERANK")
    head = len(MAGIC) + 2
    if len(data) < head + _DIGEST_SIZE:
        raise SavedStateError(f"the saved ranker is cut off after {len(data)} bytes")
    (version,) = struct.unpack_from("<H", data, len(MAGIC))
    if version != FORMAT_VERSION:
        raise SavedStateError(
            f"the ranker was saved in format {version}; this saferank reads format {FORMAT_VERSION} only"
        )
    if hashlib.sha256(data[:-_DIGEST_SIZE]).digest() != data[-_DIGEST_SIZE:]:
        raise SavedStateError("the saved ranker is damaged or cut off: its checksum does not match")
    return data[head:-_DIGEST_SIZE]


class _Body:
    """Unpacks as much as is asked for, so that a large body is never in memory as a whole."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._unpacker = zlib.decompressobj()
        self._ready, self._place = b"", 0  # what is unpacked, and how much of it was read
        self.most = _MOST_PACKED * len(data)  # bytes that may be in it

    def read(self, size: int) -> bytes:
        """The next bytes, this number of them, or fewer at the end."""
        pieces, missing = [self._ready[self._place : self._place + size]], size
        self._place += len(pieces[0])
        missing -= len(pieces[0])
        while missing and self._unpack():
            pieces.append(self._ready[:missing])
            self._place = len(pieces[-1])
            missing -= len(pieces[-1])
        return b"".join(pieces)

    def end(self) -> None:
        """ValueError unless everything was read."""
        if self.read(1):
            raise ValueError("it has bytes too many")

    def _unpack(self) -> bool:
        """Have more bytes ready; False at the end."""
        self._ready, self._place = b"", 0
        while not self._ready and not self._unpacker.eof:
            packed = self._unpacker.unconsumed_tail
            if not packed:
                packed, self._at = self._data[self._at : self._at + _PIECE], self._at + _PIECE
            if not packed:
                raise ValueError("it ends too early")
            self._ready = self._unpacker.decompress(packed, _PIECE)
        return bool(self._ready)


def _read_array(body: _Body, name: str, kind: str, shape: list[int], cells: int | None = None) -> NDArray[Any]:
    """An array, of which this number of cells was saved (None: all of it). Parts of it that are 0 are not written to.

    The operating system gives memory out when it is written to. Tables for hundreds of items are mostly 0: a plain copy
    took twenty times the memory of the state that was saved.
    """
    if kind not in _TYPES or any(size < 0 for size in shape):
        raise ValueError(f"array {name} of type {kind}, shape {shape}")
    size = np.prod(shape, dtype=np.float64) * np.dtype(kind).itemsize
    if size > (body.most if cells is None else max(body.most, _LARGEST)):
        raise ValueError(f"array {name} is longer than the data")
    array = _zeros(shape, kind)
    target = array.reshape(-1).view(np.uint8)
    if cells is None:
        _read_blocks(body, name, target)
    else:
        _read_cells(body, name, target, cells)
    return array


def _read_blocks(body: _Body, name: str, target: NDArray[np.uint8]) -> None:
    for start in range(0, len(target), _BLOCK):
        place = target[start : start + _BLOCK]
        block = _read_all(body, name, len(place))
        if block.count(0) < len(block):
            place[:] = np.frombuffer(block, np.uint8)


def _read_cells(body: _Body, name: str, target: NDArray[np.uint8], cells: int) -> None:
    places = _as_cells(target)
    if not 0 <= cells <= len(places):
        raise ValueError(f"array {name} has {cells} cells of {len(places)}")
    numbers = np.frombuffer(_read_all(body, name, 4 * cells), np.uint32)
    if cells and (int(numbers[-1]) >= len(places) or (numbers[1:] <= numbers[:-1]).any()):
        raise ValueError(f"array {name} has cells that are not there")
    places[numbers] = np.frombuffer(_read_all(body, name, _CELL * cells), np.uint8).reshape(-1, _CELL)
    rest = target[len(target) // _BLOCK * _BLOCK :]
    rest[:] = np.frombuffer(_read_all(body, name, len(rest)), np.uint8)


def _read_all(body: _Body, name: str, size: int) -> bytes:
    data = body.read(size)
    if len(data) < size:
        raise ValueError(f"array {name} is longer than the data")
    return data


def _zeros(shape: list[int], kind: str) -> NDArray[Any]:
    """An array of 0 that takes memory only where it is written to.

    numpy's own does not when it gets memory that was used before, which is what happens when many states are loaded.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
    if size < _MAPPED or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.zeros(shape, kind)
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:  # too many of them
        return np.zeros(shape, kind)
    return np.frombuffer(memory, kind).reshape(shape)


def bytes_in_use(state: Any) -> int:
    """How much memory the arrays of a state take."""
    return sum([array.nbytes for _, array in flatten(state)])
