"""Replay: the log folded from its beginning, without snapshots, and compared with everything derived from it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from saferank.folding import ISSUED
from saferank.service.context import Context, SavedContext
from saferank.service.learning import Operation
from saferank.service.recovery import (
    CLICKS,
    DAMAGE,
    PAGE,
    find_catalogue,
    reopen,
    rollbacks_are_in_snapshots,
    without_garbage_collection,
)
from saferank.service.snapshots import pack_context, read_snapshot, restored
from saferank.service.state import Catalogue, State
from saferank.store.events import Event, Kind, LeaderRow, SnapshotRow
from saferank.store.sqlite import ReadableStore, Reader

_AT_ONCE = 4096
"""Operations of a context that are folded in one compiled call."""


class DifferenceError(ValueError):
    """The first thing in a store that its log does not give."""


@dataclass
class Report:
    """What a replay went through, and found to be as the log says."""

    events: int = 0
    contexts: int = 0
    pages: int = 0
    counted: int = 0
    learnt: int = 0
    leaders: int = 0
    snapshots: int = 0
    rollbacks: int = 0
    contradictions: int = 0

    def sentences(self) -> list[str]:
        """For people."""
        return [
            f"folded {self.events} events of {self.contexts} contexts from the beginning, without snapshots: "
            f"{self.pages} pages, {self.counted} counted, clicks of {self.learnt} learnt",
            "no event is missing; every counted page has the round and the leader version that the fold gives, and has "
            "clicks only while open",
            f"all {self.leaders} leaders follow from the log, with their evidence ({self.rollbacks} rollbacks, "
            f"{self.contradictions} contradictions)",
            f"all {self.snapshots} snapshots are equal to the fold, bit for bit",
        ]


class Comparer:
    """Watches a fold and compares."""

    def __init__(self, reader: Reader, rollback_targets: set[tuple[int, int]]) -> None:
        self._reader, self._targets = reader, rollback_targets
        self.report = Report()
        self.saved: dict[tuple[int, int], SavedContext] = {}
        self.unwritten: set[int] = set()  # contexts that contradict themselves without an event so far
        self.state: State | None = None
        self.newest = 0  # time of the newest event

    def leader_changed(self, row: LeaderRow) -> None:
        """Compare with the table of leaders; keep the state if somebody went back to it."""
        written = self._reader.row("leader_of_version", row.context, row.version)
        if written is None or LeaderRow(*written) != row:
            raise DifferenceError(
                f"version {row.version} of context {row.context} is {row} by the log, but {written} is written"
            )
        self.report.leaders += 1
        if (row.context, row.version) in self._targets:
            self._targets.discard((row.context, row.version))
            assert self.state is not None
            self.saved[row.context, row.version] = saved_context(self.state.contexts[row.context])

    def frozen(self, context: Context, at: int) -> None:
        """An event must say so."""
        self.report.contradictions += 1
        self.unwritten.add(context.number)

    def folded(self, context: Context, operations: Sequence[Operation]) -> None:
        """Rounds and versions of pages are those of the fold."""
        issued = [operation.page for operation in operations if operation.kind == ISSUED]
        self.report.learnt += len(operations) - len(issued)
        first = context.learner.round - len(issued) + 1
        for round_, page in enumerate(issued, first):
            if not page.recovered and (page.round, page.leader_version) != (round_, context.version):
                raise DifferenceError(
                    f"event {page.seq}: the page has round {page.round} and leader version {page.leader_version}; "
                    f"by the log they are {round_} and {context.version}"
                )


@dataclass
class _Catalogues:
    """The catalogues of the log, with the newest kept at hand: they alternate often."""

    reader: Reader
    known: dict[bytes, Catalogue] = field(default_factory=dict)

    def __call__(self, digest: bytes) -> Catalogue:
        if digest not in self.known:
            if len(self.known) >= 256:
                self.known.clear()
            self.known[digest] = find_catalogue(self.reader, digest)
        return self.known[digest]


def verify(store: ReadableStore, progress: Callable[[int], None] = lambda seq: None) -> Report:
    """Fold the whole log and compare; DifferenceError names the first difference."""
    try:
        return _compared(store, progress)
    except DifferenceError:
        raise
    except DAMAGE as problem:
        raise DifferenceError(f"the file is damaged: {problem!r}") from problem


def _compared(store: ReadableStore, progress: Callable[[int], None]) -> Report:
    with store.reading() as reader, reader.at_one_moment(), without_garbage_collection():
        comparer = Comparer(reader, _rollback_targets(reader))
        state = State(comparer, _Catalogues(reader), lambda context, version: comparer.saved[context.number, version])
        comparer.state = state
        snapshots = iter([SnapshotRow(*row) for row in reader.rows("snapshots")])
        due = next(snapshots, None)
        for event in map(Event._make, reader.rows("events_from", 0)):
            while due is not None and due.seq < event.seq:
                _compare_snapshot(state, due, comparer.report)
                due = next(snapshots, None)
            _carry_out(state, comparer, event)
            if event.seq % _AT_ONCE == 0:
                progress(event.seq)
        while due is not None:
            _compare_snapshot(state, due, comparer.report)
            due = next(snapshots, None)
        _finish(state, comparer, reader)
        return comparer.report


def _rollback_targets(reader: Reader) -> set[tuple[int, int]]:
    return {
        (number, json.loads(row[5])["version"])
        for number, _, _ in reader.rows("contexts")
        for row in reader.rows("rare_events", number, Kind.ROLLBACK)
    }


def _carry_out(state: State, comparer: Comparer, event: Event) -> None:
    report = comparer.report
    report.events += 1
    if event.seq != report.events or event.at < comparer.newest:
        raise DifferenceError(f"event {report.events} is missing, or event {event.seq} is older than the one before it")
    comparer.newest = event.at
    try:
        if event.kind == PAGE:
            page = state.page(event)
            report.pages += 1
            report.counted += page.counted
        elif event.kind == CLICKS:
            state.clicks(event)
            return
        else:
            _carry_out_rare(state, comparer, event)
    except DifferenceError:
        raise
    except DAMAGE as problem:
        raise DifferenceError(
            f"event {event.seq} cannot be carried out, the log does not hold all: {problem!r}"
        ) from problem
    context = state.contexts.get(event.context)
    if context is not None and context.waiting >= _AT_ONCE:
        context.settle()


def _carry_out_rare(state: State, comparer: Comparer, event: Event) -> None:
    state.apply(event)
    if event.kind == Kind.FROZEN:
        comparer.unwritten.discard(event.context)
    comparer.report.rollbacks += event.kind == Kind.ROLLBACK


def _compare_snapshot(state: State, row: SnapshotRow, report: Report) -> None:
    context = state.contexts[row.context]
    context.settle()
    by_log, written = read_snapshot(pack_context(context)).comparable(), read_snapshot(row.body).comparable()
    if by_log != written:
        names = [name for name, value in by_log[0].items() if written[0].get(name) != value] or ["learner"]
        raise DifferenceError(
            f"the snapshot of context {row.context} after event {row.seq} differs from the log in {', '.join(names)}"
        )
    report.snapshots += 1


def _finish(state: State, comparer: Comparer, reader: Reader) -> None:
    state.settle()
    comparer.report.contexts = len(state.contexts)
    if comparer.unwritten:
        raise DifferenceError(f"contexts {sorted(comparer.unwritten)} contradict themselves and no event says so")
    written = reader.value("count_leaders")
    if written != comparer.report.leaders:
        raise DifferenceError(f"{written} leaders are written, the log gives {comparer.report.leaders}")


# --- a context as it was ---


def saved_context(context: Context) -> SavedContext:
    """What a rollback needs of a context."""
    return SavedContext(context.learner.save(), context.base, context.candidates)


class _Reached(Exception):  # noqa: N818 (nothing went wrong)
    """The version that was looked for is there."""


class _Seeker:
    """Watches a fold until a version comes."""

    def __init__(self, version: int) -> None:
        self._version = version

    def leader_changed(self, row: LeaderRow) -> None:
        """Stop at the version."""
        if row.version == self._version:
            raise _Reached

    def frozen(self, context: Context, at: int) -> None:
        """Not of interest."""

    def folded(self, context: Context, operations: Sequence[Operation]) -> None:
        """Not of interest."""


def context_at_version(store: ReadableStore, number: int, version: int) -> SavedContext:
    """A context as it was at the moment at which a version became its leader."""
    with store.reading() as reader:
        leader = LeaderRow(*reader.row("leader_of_version", number, version) or ())
        after = leader.seq + (leader.cause == "rollback")  # a rollback has a snapshot of its own moment
        body = reader.row("snapshot_before", number, after)
        state = State(_Seeker(version), _Catalogues(reader), rollbacks_are_in_snapshots)
        end, oldest = 0, 0
        if body is not None:
            context, snapshot = restored(number, body[2], state.watcher, state.open_pages)
            state.add(context)
            end, oldest = body[1], snapshot.oldest_open or body[1] + 1
            if leader.cause == "rollback":
                return saved_context(context)
        return _sought(state, reader, number, end, oldest)


def _sought(state: State, reader: Reader, number: int, end: int, oldest: int) -> SavedContext:
    try:
        for row in reader.rows("events_of_context_from", oldest, number):
            event = Event(*row)
            if event.seq > end:
                state.apply(event)
                state.settle()
            else:
                reopen(state, event)
    except _Reached:
        pass
    return saved_context(state.contexts[number])
