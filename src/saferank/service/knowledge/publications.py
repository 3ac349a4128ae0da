"""A publication: the knowledge of a context, as bytes that end with their CRC-32."""

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from saferank.live.learner import Learner
from saferank.saved_state import bytes_in_use
from saferank.service.knowledge.arms import ShadowCounts, compared_arms
from saferank.service.knowledge.fold import Fold, NewestPage
from saferank.service.knowledge.knowledge import Knowledge, Terms
from saferank.service.knowledge.lessons import Room
from saferank.service.knowledge.visits import OrderWatch, SourceCounts, Visitors, Votes
from saferank.store.contract import DamagedStoreError, Publication
from saferank.store.page_record import CHECKSUM_SIZE, is_whole

_LENGTH = struct.Struct("<I")
_COPIED = (
    "version", "changed_at", "tallies", "rolled_back_at", "rollback_version", "alarms", "epoch",
    "learnt", "checked", "worst",
)  # fmt: skip


def pack(fold: Fold) -> bytes:
    """The body of a publication. Visitors are not in it: a server that continues reads the pages of the newest window.

    Votes and sources are: they go back further.
    """
    known = fold.knowledge
    learner = known.learner.save()
    marks, sources = fold.votes.marks.tobytes(), fold.sources.packed()
    facts = {
        "catalogue": fold.catalogue.hex(),
        "leader": fold.leader(),
        "look": fold.look,
        "race": known.race(),
        "knowledge": [known.epoch, known.pages, len(learner)],
        "compared": fold.compared.facts(),
        "shadow": fold.shadow,
        "votes": [fold.votes.epoch, fold.votes.level, len(marks)],
        "sources": [fold.sources.day, len(sources)],
        "watch": fold.orders.bets,
        "window": fold.visitors.window,
        **{name: getattr(fold, name) for name in _COPIED},
    }
    if fold.terms != fold.opened_terms:  # by a reset; otherwise they are those of the context's row
        facts["terms"], facts["terms_version"] = fold.terms._asdict(), fold.terms_version
    head = json.dumps(facts, ensure_ascii=False).encode()
    body = b"".join((_LENGTH.pack(len(head)), head, learner, marks, sources))
    return body + _LENGTH.pack(zlib.crc32(body))


_OVERHEAD, _ITEM = 200_000, 1500
"""Bytes of a context beside its tables, and of an item, as measured."""


def memory_of(fold: Fold) -> int:
    """About how many bytes a fold takes in memory."""
    learner = fold.knowledge.learner
    return _OVERHEAD + bytes_in_use(learner.evidence) + _ITEM * len(learner.items) + fold.votes.table.slots.nbytes


def read_head(body: bytes) -> dict[str, Any]:
    """The facts of a publication, without its knowledge; DamagedStoreError unless it is as it was written."""
    if not is_whole(body):
        raise DamagedStoreError("a publication is damaged: its checksum is wrong. Restore the store from a backup")
    (length,) = _LENGTH.unpack_from(body)
    facts: dict[str, Any] = json.loads(body[4 : 4 + length])
    return facts


def _parts(body: bytes, facts: dict[str, Any]) -> tuple[bytes, bytes, bytes]:
    """What follows the facts: the evidence, still packed, marks of votes and counts of sources."""
    begin = 4 + _LENGTH.unpack_from(body)[0]
    marks = begin + int(facts["knowledge"][-1])
    sources = marks + int(facts["votes"][-1])
    end = sources + int(facts["sources"][-1])
    if end + CHECKSUM_SIZE != len(body):
        raise ValueError("a publication is longer or shorter than it says")
    return body[begin:marks], body[marks:sources], body[sources:end]


def terms_in(head: dict[str, Any]) -> Terms | None:
    """The terms that a reset gave a context, by the facts of a publication; None: it has those of its row."""
    return Terms(**head["terms"]) if "terms" in head else None


def restored(
    publication: Publication, terms: Terms, room: Room | None = None, head: dict[str, Any] | None = None
) -> Fold:
    """The fold that was published; ``terms`` are those of the context's row, ``head`` the facts if they were read."""
    facts, fold = head or read_head(publication.body), Fold(publication.context, terms, room)
    fold.terms, fold.terms_version = terms_in(facts) or terms, facts.get("terms_version", 0)
    epoch, pages, _ = facts["knowledge"]
    learner, marks, sources = _parts(publication.body, facts)
    fold.knowledge = Knowledge.restored(fold.terms, epoch, pages, learner)
    base, items = map(tuple, facts["look"])
    fold.look = NewestPage(base, items)
    fold.catalogue, fold.compared = bytes.fromhex(facts["catalogue"]), compared_arms(facts["compared"])
    fold.shadow = ShadowCounts(*facts["shadow"])
    fold.through, fold.operation = publication.through, publication.operation
    for name in _COPIED:
        setattr(fold, name, facts[name])
    (epoch, level, _), (day, _) = facts["votes"], facts["sources"]
    fold.votes, fold.sources = Votes(epoch, level, marks), SourceCounts(fold.terms.source_daily_pages, day, sources)
    fold.orders, fold.visitors = OrderWatch(facts["watch"]), Visitors(facts["window"])
    return fold


def comparable(body: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Equal for two bodies exactly when they hold the same knowledge."""
    facts = read_head(body)
    learner, *visits = _parts(body, facts)
    facts["knowledge"].pop()
    facts.pop("race")  # follows from the knowledge
    return facts, [Learner.load(learner).save(), *visits]


def differences(one: bytes, other: bytes) -> Sequence[str]:
    """The names of what differs in two bodies."""
    if one == other:
        return []
    (facts, parts), (others, other_parts) = comparable(one), comparable(other)
    names = [name for name, value in facts.items() if others.get(name) != value]
    return names or (["knowledge"] if parts != other_parts else [])
