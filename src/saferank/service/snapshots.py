"""A context as bytes, for a quick start. Its open pages are not in it: they are read from the log again."""

import json
import struct
from dataclasses import dataclass
from typing import Any

from saferank.learner import Learner
from saferank.service.context import Context, Opening, Switch, Watcher
from saferank.service.learning import certificates_given
from saferank.service.pages import OpenPage

_LENGTH = struct.Struct("<I")
_COPIED = (
    "version", "changed_at", "tallies", "pages", "closed_to", "rolled_back_at", "rolled_back_seq", "alarms",
)  # fmt: skip


def pack_context(context: Context) -> bytes:
    """The snapshot of a context whose operations are settled."""
    facts = {
        "tenant": context.tenant,
        "name": context.name,
        "opening": context.opening,
        "base": context.base,
        "candidates": context.candidates,
        "version": context.version,
        "changed_at": context.changed_at,
        "tallies": context.tallies,
        "pages": context.pages,
        "closed_to": context.closed_to,
        "rolled_back_at": context.rolled_back_at,
        "rolled_back_seq": context.rolled_back_seq,
        "killed": context.killed,
        "contradiction": context.contradiction,
        "alarms": context.alarms,
        "oldest_open": min((page.seq for page in context.queue), default=None),
    }
    head = json.dumps(facts, ensure_ascii=False).encode()
    return _LENGTH.pack(len(head)) + head + context.learner.save()


@dataclass(frozen=True)
class Snapshot:
    """What a snapshot says."""

    facts: dict[str, Any]
    learner: bytes

    @property
    def oldest_open(self) -> int | None:
        """The event of the oldest page that was open, if one was."""
        oldest: int | None = self.facts["oldest_open"]
        return oldest

    def comparable(self) -> tuple[dict[str, Any], bytes]:
        """Equal for two snapshots exactly when they are of the same state."""
        return self.facts, Learner.load(self.learner).canonical()


def read_snapshot(body: bytes) -> Snapshot:
    """A snapshot's content."""
    (length,) = _LENGTH.unpack_from(body)
    return Snapshot(json.loads(body[4 : 4 + length]), body[4 + length :])


def restored(number: int, body: bytes, watcher: Watcher, open_pages: dict[bytes, OpenPage]) -> tuple[Context, Snapshot]:
    """The context of a snapshot, without its open pages."""
    snapshot = read_snapshot(body)
    facts, learner = snapshot.facts, Learner.load(snapshot.learner)
    context = Context(number, facts["tenant"], facts["name"], Opening(*facts["opening"]), learner, watcher, open_pages)
    context.set_catalogue(facts["base"], facts["candidates"])
    context.leader = tuple(str(item) for item in learner.leader())
    context.certificates = certificates_given(learner)
    context.killed = None if facts["killed"] is None else Switch(*facts["killed"])
    context.contradiction = None if facts["contradiction"] is None else tuple(facts["contradiction"])
    for name in _COPIED:
        setattr(context, name, facts[name])
    return context, snapshot
