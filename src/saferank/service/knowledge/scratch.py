"""Where pages are chosen: the policy's state, an impression and the coins in one block of memory.

Choosing a page changes the state it is chosen on, and the next page must not see that. One copy of the block puts
everything back; a copy of every array for every page took a fifth of the time of a rank call. All views whose states
have the same arrays share a block: pages are chosen one at a time.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank.randomness import Words
from saferank.verbs import Impression, new_impression

EVIDENCE = "duels"
"""The part of a state that choosing never changes. It is left where it is."""

_WORDS = 4
_ALIGNED = 16


class BlockShape(NamedTuple):
    """What two states that share a block have in common."""

    arrays: tuple[tuple[tuple[int, ...], str], ...]  # shape and kind of every array of the state, without evidence
    n_positions: int
    n_places: int


class Scratch:
    """A state on which pages are chosen, one after the other, each as if it were the first."""

    def __init__(self, state: Any, n_positions: int, n_places: int) -> None:
        arrays = list(_own_arrays(state))
        shape = BlockShape(tuple([(array.shape, array.dtype.str) for array in arrays]), n_positions, n_places)
        self._block = _block_of(shape)
        self.impression, self.words = self._block.impression, self._block.words
        self.state = _moved(state, iter(self._block.arrays))
        for mine, array in zip(self._block.arrays, arrays, strict=True):
            mine[...] = array
        self._begin: NDArray[np.uint8] = self._block.state_bytes.copy()

    def restore(self) -> None:
        """Everything is as it was at first."""
        self._block.state_bytes[:] = self._begin
        self._block.page_bytes[:] = self._block.no_page


class _Block:
    """The memory."""

    def __init__(self, shape: BlockShape) -> None:
        kinds = [(size, np.dtype(kind)) for size, kind in shape.arrays]
        self.state_bytes = np.zeros(sum(_room(size, kind) for size, kind in kinds), np.uint8)
        self.arrays = list(_placed(self.state_bytes, kinds))
        empty = new_impression(shape.n_positions, shape.n_places)
        kinds = [(array.shape, array.dtype) for array in empty]
        self.page_bytes = np.zeros(sum(_room(size, kind) for size, kind in kinds), np.uint8)
        placed = list(_placed(self.page_bytes, kinds))
        for mine, array in zip(placed, empty, strict=True):
            mine[...] = array
        page = Impression(*placed)
        self.no_page = self.page_bytes.copy()
        self.impression = page._replace(shown=page.ranking[: shape.n_positions])  # a view of the first places
        self.words: Words = np.zeros(_WORDS, np.uint64)


_block_of = functools.lru_cache(maxsize=64)(_Block)


def _placed(block: NDArray[np.uint8], kinds: list[tuple[tuple[int, ...], np.dtype[Any]]]) -> Iterator[NDArray[Any]]:
    at = 0
    for size, kind in kinds:
        yield np.ndarray(size, kind, block, at)
        at += _room(size, kind)


def _room(size: tuple[int, ...], kind: np.dtype[Any]) -> int:
    entries = 1
    for length in size:
        entries *= length
    return -(-entries * kind.itemsize // _ALIGNED) * _ALIGNED


def _own_arrays(state: Any) -> Iterator[NDArray[Any]]:
    """The arrays of a state without its evidence."""
    for name, part in zip(state._fields, state, strict=True):
        if name == EVIDENCE:
            continue
        if isinstance(part, np.ndarray):
            yield part
        else:
            yield from _own_arrays(part)


def _moved(state: Any, arrays: Iterator[NDArray[Any]]) -> Any:
    parts = [
        part if name == EVIDENCE else next(arrays) if isinstance(part, np.ndarray) else _moved(part, arrays)
        for name, part in zip(state._fields, state, strict=True)
    ]
    return type(state)(*parts)
