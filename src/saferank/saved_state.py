"""Bytes that hold the state of a ranker: exact, versioned, checked, and without pickle.

    8 bytes "SAFERANK" | 2 bytes format version | body, compressed | 32 bytes SHA-256 of all before

The body is a JSON header, which lists the arrays with type and shape, followed by their raw contents. The digest
detects damage, not malice: load only what you saved yourself.
"""

import hashlib
import json
import mmap
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"SAFERANK"
FORMAT_VERSION = 1
_DIGEST_SIZE = hashlib.sha256().digest_size
_TYPES = ("int64", "uint32", "uint64", "float64", "bool", "uint8")

_BLOCK = 4096
"""Bytes that the operating system gives out at a time."""
_PIECE = 65536
_MAPPED = 32768
"""Arrays from this size on have memory of their own."""
_MOST_PACKED = 1100
"""zlib packs no more bytes than this into one."""

_GROWING = ("duels.", "leaders.", "closure.")

Arrays = dict[str, NDArray[Any]]


class SavedStateError(ValueError):
    """Why bytes cannot be loaded."""


def flatten(state: Any, path: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays of a NamedTuple, nested ones included, by dotted names."""
    for name, part in zip(state._fields, state, strict=True):
        if isinstance(part, tuple):
            yield from flatten(part, f"{path}{name}.")
        else:
            yield f"{path}{name}", part


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
    listing = [[name, str(array.dtype), list(array.shape)] for name, array in arrays.items()]
    header = json.dumps({"facts": facts, "arrays": listing}).encode()
    raw = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    body = zlib.compress(struct.pack("<I", len(header)) + header + raw, level=3)
    head = MAGIC + struct.pack("<H", FORMAT_VERSION)
    return head + body + hashlib.sha256(head + body).digest()


def from_bytes(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Unpack what ``to_bytes`` made; SavedStateError says what is wrong with anything else."""
    body = _Body(_checked_body(data))
    try:
        (length,) = struct.unpack("<I", body.read(4))
        header = json.loads(body.read(length))
        arrays = {name: _read_array(body, name, kind, shape) for name, kind, shape in header["arrays"]}
        body.end()
        return header["facts"], arrays
    except zlib.error as problem:
        raise SavedStateError(f"the saved ranker cannot be unpacked: {problem}") from problem
    except (struct.error, ValueError, KeyError, TypeError) as problem:
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
    if version > FORMAT_VERSION:
        raise SavedStateError(
            f"the ranker was saved in format {version}; this saferank reads formats up to {FORMAT_VERSION}: upgrade it"
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
        """So many bytes, or fewer at the end."""
        found = self._ready[self._place : self._place + size]
        self._place += len(found)
        while len(found) < size and self._unpack():
            more = self._ready[: size - len(found)]
            self._place = len(more)
            found += more
        return found

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


def _read_array(body: _Body, name: str, kind: str, shape: list[int]) -> NDArray[Any]:
    """An array. Parts of it that are 0 are not written to.

    The operating system gives memory out when it is written to. Tables for hundreds of items are mostly 0: a plain copy
    took twenty times the memory of the state that was saved.
    """
    if kind not in _TYPES or any(size < 0 for size in shape):
        raise ValueError(f"array {name} of type {kind}, shape {shape}")
    if np.prod(shape, dtype=np.float64) * np.dtype(kind).itemsize > body.most:
        raise ValueError(f"array {name} is longer than the data")
    array = _zeros(shape, kind)
    target = array.reshape(-1).view(np.uint8)
    for start in range(0, len(target), _BLOCK):
        place = target[start : start + _BLOCK]
        block = body.read(len(place))
        if len(block) < len(place):
            raise ValueError(f"array {name} is longer than the data")
        if block.count(0) < len(block):
            place[:] = np.frombuffer(block, np.uint8)
    return array


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
