"""What the parts of the engine share: the state, the journal, the clock, the keys, and what there is to count."""

import logging
from collections import Counter
from collections.abc import Sequence

from saferank.policies import policy_kind
from saferank.service.clock import Clock
from saferank.service.context import Context, why_frozen
from saferank.service.journal import Journal
from saferank.service.json_logs import log
from saferank.service.learning import Operation
from saferank.service.recovery import DAMAGE, find_catalogue, restore, rollbacks_are_in_snapshots
from saferank.service.settings import Settings
from saferank.service.snapshots import pack_context
from saferank.service.state import State, to_json
from saferank.service.tokens import Tokens
from saferank.store.events import ALL, Batch, Event, Kind, LeaderRow, SnapshotRow
from saferank.store.sqlite import Store, StoreError

_LONGEST_TAIL = 100_000
"""A start reads at most about so many events behind the oldest snapshot."""


class Core:
    """The state of a running service, and the one way to change it: ``write`` an event and carry it out."""

    journal: Journal

    def __init__(self, settings: Settings, store: Store, tokens: Tokens, clock: Clock) -> None:
        if policy_kind(settings.policy).rebuild is None:
            raise StoreError(f"policy {settings.policy} gives no promise for a single page; kl-ucb-br does")
        self.settings, self.store, self.tokens = settings, store, tokens
        self.window_ms = max(1, round(settings.window_seconds * 1000))
        self.reader = store.reader()  # for look-ups on the event loop
        self.session_key: bytes = self.reader.value("meta", "session_key")
        self.state = State(self, lambda digest: find_catalogue(self.reader, digest), rollbacks_are_in_snapshots)
        self.counts: Counter[str] = Counter()
        self.deliveries: dict[tuple[str, str], tuple[bytes, int]] = {}  # event ids that are not on disk yet
        self._clock, self._now, self._ahead = clock, 0, 0
        self._changed: dict[int, int] = {}  # context -> its first event since its snapshot, oldest first
        self._since_snapshot: Counter[int] = Counter()
        self._restoring = False

    def restore(self) -> None:
        """Become what the log says; from here on events are written."""
        self._restoring = True
        try:
            last_seq, last_at = self.reader.row("last_event") or (0, 0)
            restore(self.state, self.reader)
        except DAMAGE as problem:
            raise StoreError(
                f"{self.store.path}: the log is damaged and cannot be restored ({problem!r}); "
                "`saferank replay` names the place, a backup brings it back"
            ) from problem
        self._restoring, self._ahead = False, max(0, last_at - self._clock())
        if self._ahead:
            log(logging.WARNING, "the clock is behind the log; the service's own goes on from there", ms=self._ahead)
        self.journal = Journal(self.store, last_seq)
        self.journal.committed = self._committed  # type: ignore[method-assign]
        clean = int(self.reader.value("meta", "clean") or 0)
        if last_seq > clean:  # whoever wrote since: all are due for a snapshot
            self._changed = dict.fromkeys(self.state.contexts, clean + 1)

    def now(self) -> int:
        """Milliseconds; they never go back, also over a restart, and they always go on: windows must end."""
        self._now = max(self._now, self._clock() + self._ahead)
        return self._now

    @property
    def overloaded(self) -> bool:
        """True while new events should not be made: the disk refuses them, or too many wait for it."""
        return self.journal.failing is not None or self.journal.pending > self.settings.max_pending

    def write(
        self, kind: int, context: int, at: int, impression: bytes | None = None, body: bytes | None = None
    ) -> Event:
        """The next event of the log; the caller carries it out in the same step."""
        event = self.journal.add(kind, context, at, impression, body)
        if context != ALL:  # the switches of tenants are in no snapshot: a start reads all of them
            self._changed.setdefault(context, event.seq)
            self._since_snapshot[context] += 1
        return event

    def close_due(self, context: Context, now: int) -> None:
        """Close what is due in a context and learn from it."""
        if context.queue and context.queue[0].closes_at <= now:
            event = self.write(Kind.CLOSED, context.number, now)
            self.counts["pages_closed_total"] += self.state.closed(event)
            context.settle()

    # --- what carrying out an event brought about ---

    def leader_changed(self, row: LeaderRow) -> None:
        """Write it down."""
        if not self._restoring:
            self.counts["leader_changes_total"] += 1
            self.journal.batch.leaders.append(row)

    def frozen(self, context: Context, at: int) -> None:
        """Write it down."""
        if not self._restoring:
            self.alarm("contradiction", context, why_frozen(context.contradiction))
            self.write(Kind.FROZEN, context.number, at, body=to_json({"cycle": context.contradiction}))

    def alarm(self, kind: str, context: Context, detail: str) -> None:
        """Something that must not happen: counted, and told to whoever reads the logs."""
        self.counts["alarms_total"] += 1
        log(logging.ERROR, "alarm", kind=kind, tenant=context.tenant, context=context.name, detail=detail)

    def folded(self, context: Context, operations: Sequence[Operation]) -> None:
        """Nothing to do: the page said what the state is."""

    # --- snapshots ---

    def snapshot(self, context: Context) -> None:
        """Have the present state of a context written, together with the events up to here."""
        batch = self.journal.batch
        batch.snapshots.append(SnapshotRow(context.number, self.journal.seq, pack_context(context)))
        self._changed.pop(context.number, None)
        self._since_snapshot.pop(context.number, None)
        batch.clean = min(self._changed.values(), default=self.journal.seq + 1) - 1
        self.journal.hurry()

    def snapshots_due(self) -> list[Context]:
        """Contexts with many events since their snapshot, and those that would make a start long."""
        busy = [number for number, size in self._since_snapshot.items() if size >= self.settings.snapshot_every]
        tail = self.journal.seq - _LONGEST_TAIL
        old = [number for number, first in self._changed.items() if first < tail and number not in busy]
        return [self.state.contexts[number] for number in [*old, *busy] if number in self.state.contexts]

    def changed_contexts(self) -> list[Context]:
        """Contexts whose snapshot is not of now."""
        return [self.state.contexts[number] for number in self._changed if number in self.state.contexts]

    def _committed(self, batch: Batch) -> None:
        for delivery in batch.deliveries:
            self.deliveries.pop((delivery.tenant, delivery.event_id), None)
