"""Base rankings with their candidates as the store keeps them: each once, by a digest of its content."""

import hashlib
import json
import zlib
from collections import OrderedDict

from saferank.store.contract import CATALOGUE_MS
from saferank.store.page_record import DIGEST_SIZE

Catalogue = tuple[list[str], list[str]]
"""Base ranking and candidates."""

_KEPT = 4096


def digest_of(lists: Catalogue) -> bytes:
    """What identifies a catalogue."""
    text = "\0".join(lists[0]) + "\1" + "\0".join(lists[1])
    return hashlib.blake2b(text.encode("utf-8"), digest_size=DIGEST_SIZE).digest()


def pack_catalogue(lists: Catalogue) -> bytes:
    """The body that the store keeps."""
    return zlib.compress(json.dumps(lists, ensure_ascii=False, separators=(",", ":")).encode("utf-8"), 1)


def unpack_catalogue(body: bytes) -> Catalogue:
    """Base ranking and candidates."""
    base, candidates = json.loads(zlib.decompress(body))
    return base, candidates


def items_of(lists: Catalogue) -> list[str]:
    """All items, each once, in the order of the call."""
    return list(dict.fromkeys([*lists[0], *lists[1]]))


class Catalogues:
    """The newest catalogues by digest, those that were written lately."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Catalogue] = OrderedDict()
        self._noted: dict[bytes, float] = {}  # when it was to be written last, by digest

    def note(self, digest: bytes, lists: Catalogue, now: float) -> bool:
        """Keep a catalogue; True when it is to be written: it was not kept before, or was written a day ago.

        ``now`` is in seconds.
        """
        new = digest not in self._kept or now - self._noted[digest] >= CATALOGUE_MS / 1000
        self._kept[digest] = lists
        self._kept.move_to_end(digest)
        if new:
            self._noted[digest] = now
        if len(self._kept) > _KEPT:
            del self._noted[self._kept.popitem(last=False)[0]]
        return new

    def get(self, digest: bytes) -> Catalogue | None:
        """A catalogue that was used lately."""
        return self._kept.get(digest)
