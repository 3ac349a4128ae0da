"""How the process gets memory for large tables.

Tables of pairs are large and mostly 0. Memory that comes fresh from the system takes room only where it is written to.
glibc gives it out so for large requests, but stops doing that when such memory was freed once: from then on it reuses
what it has, and every new table of zeros is written as a whole. In a shop of 200 items that come and go the process was
more than twice as large.

numpy asks for huge pages for arrays of 4 MB and more, and a single number would then take 2 MB.
"""

import ctypes
from typing import Any

from numpy._core import multiarray as _multiarray

_M_MMAP_THRESHOLD = -3  # of mallopt(3)
_LARGE = 128 * 1024  # the value that glibc begins with


def take_large_tables_from_the_system() -> bool:
    """Ask the C library for fresh memory for everything large, for good; False where it cannot be asked."""
    use_huge_pages: Any = getattr(_multiarray, "_set_madvise_hugepage", None)  # or NUMPY_MADVISE_HUGEPAGE=0
    if use_huge_pages is not None:
        use_huge_pages(False)
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE))
    except (AttributeError, OSError, TypeError):  # another C library
        return False
