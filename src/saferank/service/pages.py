"""Pages in the log and in memory: the frozen facts, packed, and what is kept of a page while its window is open."""

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from saferank.service import identifiers
from saferank.service.arms import HOLDOUT
from saferank.verbs import NOBODY

if TYPE_CHECKING:
    from saferank.service.context import Context

_FORMAT = 1
_HEAD = struct.Struct("<BBBIIIBBBBQ8s32s")
_COUNTED, _RECOVERED, _SESSION, _WIDE = 1, 2, 4, 8
_NOBODY = 0xFF


class Facts(NamedTuple):
    """What is frozen when a page is issued. Items of ``numbers`` are numbers of the context's learner."""

    arm: int
    counted: bool
    recovered: bool
    round: int
    leader_version: int
    window_ms: int
    exchanged: int  # a bit for each group of two whose items are not in the leader's order
    n_shown: int
    numbers: tuple[int, ...]  # by place: what the learner chose; empty when it was not asked
    group_ends: tuple[int, ...]
    challenger: int | None  # its place
    session: bytes
    coins: bytes
    request_id: str | None
    names: tuple[str, ...]  # what was shown, when it is not what the learner chose


def pack(facts: Facts) -> bytes:
    """The body of a page event."""
    wide = bool(facts.numbers) and max(facts.numbers) > 0xFFFF
    flags = _COUNTED * facts.counted | _RECOVERED * facts.recovered | _SESSION * bool(facts.session) | _WIDE * wide
    head = _HEAD.pack(
        _FORMAT, facts.arm, flags, facts.round, facts.leader_version, facts.window_ms, facts.n_shown,
        len(facts.numbers), len(facts.group_ends), _NOBODY if facts.challenger is None else facts.challenger,
        facts.exchanged, facts.session, facts.coins,
    )  # fmt: skip
    row = struct.pack(f"<{len(facts.numbers)}{'I' if wide else 'H'}", *facts.numbers)
    names = "\0".join((facts.request_id or "", *facts.names))
    return head + bytes(facts.group_ends) + row + names.encode("utf-8")


def unpack(body: bytes) -> Facts:
    """What ``pack`` packed."""
    (version, arm, flags, round_, leader_version, window_ms, n_shown, n_row, n_groups, challenger, exchanged,
     session, coins) = _HEAD.unpack_from(body)  # fmt: skip
    if version != _FORMAT:
        raise ValueError(f"a page of the unknown format {version}")
    width = 4 if flags & _WIDE else 2
    row = _HEAD.size + n_groups
    end = row + n_row * width
    request_id, *names = body[end:].decode("utf-8").split("\0")
    return Facts(
        arm=arm, counted=bool(flags & _COUNTED), recovered=bool(flags & _RECOVERED), round=round_,
        leader_version=leader_version, window_ms=window_ms, exchanged=exchanged, n_shown=n_shown,
        numbers=struct.unpack_from(f"<{n_row}{'I' if width == 4 else 'H'}", body, row),
        group_ends=tuple(body[_HEAD.size : row]), challenger=None if challenger == _NOBODY else challenger,
        session=session if flags & _SESSION else b"", coins=coins, request_id=request_id or None, names=tuple(names),
    )  # fmt: skip


class Comparison(NamedTuple):
    """What learning needs of a page."""

    round: int
    numbers: tuple[int, ...]
    group_ends: bytes
    challenger: int  # the item, or NOBODY


def comparison(body: bytes) -> Comparison:
    """The part of ``unpack`` that learning needs."""
    _, _, flags, round_, _, _, _, n_row, n_groups, challenger, _, _, _ = _HEAD.unpack_from(body)
    row = _HEAD.size + n_groups
    numbers = struct.unpack_from(f"<{n_row}{'I' if flags & _WIDE else 'H'}", body, row)
    item = NOBODY if challenger == _NOBODY else numbers[challenger]
    return Comparison(round_, numbers, body[_HEAD.size : row], item)


class OpenPage:
    """A page whose window is open. There may be millions: it keeps the packed facts and little else."""

    __slots__ = (
        "arm", "body", "clicks", "closes_at", "context", "counted", "id", "last_click_seq", "leader_version",
        "recovered", "request_id", "round", "seq", "session",
    )  # fmt: skip

    def __init__(self, context: "Context", seq: int, impression: bytes, body: bytes) -> None:
        _, arm, flags, round_, version, window_ms, _, n_row, n_groups, _, _, session, _ = _HEAD.unpack_from(body)
        self.context = context
        self.seq = seq
        self.id = impression
        self.body = body
        self.arm: int = arm
        self.counted: bool = flags & _COUNTED != 0
        self.recovered: bool = flags & _RECOVERED != 0
        self.round = round_
        self.leader_version = version
        self.closes_at: int = int.from_bytes(impression[: identifiers.TIME_BYTES], "big") + window_ms
        self.session: bytes | None = session if flags & _SESSION else None
        names = _HEAD.size + n_groups + n_row * (4 if flags & _WIDE else 2)
        self.request_id = None if len(body) == names else self._request_id(names)
        self.clicks = 0  # a bit for each shown place
        self.last_click_seq = 0  # the newest event with clicks of it; 0: there was none

    def _request_id(self, start: int) -> str | None:
        body = self.body
        if body[start] == 0:
            return None
        end = body.find(b"\0", start)
        return body[start : end if end >= 0 else len(body)].decode("utf-8")

    @property
    def holds_session(self) -> bool:
        """True when a reload by its session gets this page again."""
        return self.session is not None and (self.counted or self.arm == HOLDOUT)

    @property
    def issued_at(self) -> int:
        """When it was issued."""
        return identifiers.issued_at(self.id)

    def shown(self, facts: Facts | None = None) -> tuple[str, ...]:
        """The items on it."""
        facts = facts or unpack(self.body)
        return shown_items(facts, self.context.items)


def swaps_of(exchanged: int, group_ends: Sequence[int], n_shown: int) -> int:
    """How many neighbours of the leader are shown in the other order."""
    return sum(exchanged >> group & 1 for group, end in enumerate(group_ends) if end <= n_shown)


def leader_behind(row: Sequence[str], group_ends: Sequence[int], exchanged: int, n_shown: int) -> tuple[str, ...]:
    """The leader from which a page was made, which is the page with its exchanges undone."""
    leader = list(row)
    for group, end in enumerate(group_ends):
        if exchanged >> group & 1:
            leader[end - 2], leader[end - 1] = leader[end - 1], leader[end - 2]
    return tuple(leader[:n_shown])


def shown_items(facts: Facts, items: list[str]) -> tuple[str, ...]:
    """What a page showed, given the names of the learner's items."""
    return facts.names or tuple(items[number] for number in facts.numbers[: facts.n_shown])
