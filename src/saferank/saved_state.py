"""Bytes that hold the state of a ranker: exact, versioned, checked, and without pickle.

    8 bytes "SAFERANK" | 2 bytes format version | body, compressed | 32 bytes SHA-256 of all before

The body is a JSON header, which lists the arrays with type and shape, followed by their raw contents. The digest tells
damage, not malice: load only what you saved yourself.
"""

import hashlib
import json
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

_GROWING = ("duels.", "leaders.")

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
    """Tables of duels and leaders may have grown since; everything else keeps its shape."""
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
    body = _checked_body(data)
    try:
        (length,) = struct.unpack_from("<I", body)
        header = json.loads(body[4 : 4 + length])
        return header["facts"], _read_arrays(header["arrays"], memoryview(body)[4 + length :])
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
    try:
        return zlib.decompress(data[head:-_DIGEST_SIZE])
    except zlib.error as problem:
        raise SavedStateError(f"the saved ranker cannot be unpacked: {problem}") from problem


def _read_arrays(listing: list[tuple[str, str, list[int]]], raw: memoryview) -> Arrays:
    arrays: Arrays = {}
    for name, kind, shape in listing:
        if kind not in _TYPES or any(size < 0 for size in shape):
            raise ValueError(f"array {name} of type {kind}, shape {shape}")
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
        if size > len(raw):
            raise ValueError(f"array {name} is longer than the data")
        arrays[name] = np.frombuffer(raw[:size], kind).reshape(shape).copy()
        raw = raw[size:]
    if len(raw):
        raise ValueError(f"{len(raw)} bytes too many")
    return arrays
