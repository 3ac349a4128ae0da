"""One block of memory per run.

The arrays of a state are small, and numpy takes small ones from where the last were freed: two threads would end up
writing to the same cache lines, and the processor would pass these to and fro. Here all arrays that a run writes to are
moved into one block with a margin. (Measured: two threads of BubbleRank 1.3 times as fast as one before, 1.9 after.)
"""

from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=tuple[Any, ...])

_MARGIN = 128  # two cache lines: processors fetch them in pairs
_WORD = 8


def in_one_block(parts: T) -> T:
    """The same tuples of arrays, nested as they are, with copies of the arrays side by side in one block."""
    block = np.zeros(_size(parts) + 2 * _MARGIN, np.uint8)
    return cast(T, _move(parts, block, [_MARGIN]))


def _rounded(n_bytes: int) -> int:
    return -(-n_bytes // _WORD) * _WORD


def _size(part: Any) -> int:
    if isinstance(part, tuple):
        return sum(map(_size, part))
    return _rounded(part.nbytes) if isinstance(part, np.ndarray) else 0  # plain Python may have anything


def _move(part: Any, block: NDArray[np.uint8], free: list[int]) -> Any:
    if not isinstance(part, tuple):
        return _copy(part, block, free) if isinstance(part, np.ndarray) else part
    moved = [_move(inner, block, free) for inner in part]
    return type(part)(*moved) if hasattr(part, "_fields") else tuple(moved)


def _copy(array: NDArray[Any], block: NDArray[np.uint8], free: list[int]) -> NDArray[Any]:
    start = free[0]
    free[0] += _rounded(array.nbytes)
    copy = block[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return cast(NDArray[Any], copy)
