"""The protocol with one guard taken away at a time. The simulation must notice each."""

import asyncio
from typing import NamedTuple

from saferank.store.contract import ClickReport, Group, Lease, Outcome, PageRow, Publication, Written
from tests.acceptance.faults.model_server import ModelServer
from tests.acceptance.faults.network import SharedStore
from tests.store.memory import issued_at


class NoFreshnessCheck(ModelServer):
    """Explores whether it has heard from the store or not."""

    def fresh(self) -> bool:
        return True


class LeaseFromReply(ModelServer):
    """Counts the lease from when the answer came, which may be long after the store counted from."""

    def lease_from(self, sent: int, received: int) -> int:
        return received


class LeaseBeforeObeying(ModelServer):
    """Uses a lease that was renewed after a switch was thrown before it knows of the switch."""

    async def catch_up(self, newest: int) -> None:
        pass


class KillDoesNotWait(ModelServer):
    """A kill switch that returns when it is written."""

    async def obeyed_by_all(self, number: int) -> None:
        pass


class JumpUnnoticed(ModelServer):
    """Trusts a monotonic clock that stood still while the machine slept."""

    def jumped(self, now: int) -> bool:
        return False


class NoMargin(ModelServer):
    """Uses its lease to the last millisecond, though a clock may be off by less than what is noticed."""

    margin = 0


class AnswersBeforeTheCommit(ModelServer):
    """Acknowledges what is only in its memory."""

    async def feedback(self, page: PageRow, clicks: int, event_id: str | None) -> Outcome:
        report = asyncio.ensure_future(super().feedback(page, clicks, event_id))
        report.add_done_callback(lambda done: done.exception())
        return Outcome.ACCEPTED


class NumberNotCompared(SharedStore):
    """Takes a publication that is not the next one: one that comes twice replaces newer ones."""

    async def publish(self, lease: Lease, publication: Publication, *args: object, **named: object) -> None:
        self._fence(lease, publication.context)
        context = self.of_id[publication.context]
        old, context.publication = context.publication, publication
        self.on_publish(old, publication)
        self._tell()


class NoFence(NumberNotCompared):
    """Takes knowledge from any server: the epoch of the lease is not compared either."""

    def _fence(self, lease: Lease, context: int) -> None:
        pass


class NoClosedCheck(SharedStore):
    """Takes clicks until the window has ended by the clock, closed or not."""

    def _is_open(self, page: PageRow, now: int) -> bool:
        return now < page.closes_at


class NoLockWhileWriting(SharedStore):
    """Looks at ``closed_through`` without keeping it from changing until the commit."""

    atomic = False

    async def write(self, group: Group) -> Written:
        closed = {number: context.closed_through for number, context in self.of_id.items()}
        now = self.clock()
        await asyncio.sleep(self.loop.random.random() * 1.0)
        for number, context in self.of_id.items():
            context.closed_through, closed[number] = closed[number], context.closed_through
        clock, self.clock = self.clock, lambda: now
        written = await super().write(group)
        self.clock = clock
        for number, context in self.of_id.items():
            context.closed_through = closed[number]
        return written


class NoEventDigest(SharedStore):
    """An event_id that is known is a duplicate, whatever it says this time."""

    def _report(self, report: ClickReport, now: int) -> Outcome:
        outcome = super()._report(report, now)
        return Outcome.DUPLICATE if outcome == Outcome.CONFLICT else outcome


class EventsForgottenAtClosing(SharedStore):
    """Answers late to who repeats an event that was counted."""

    def _report(self, report: ClickReport, now: int) -> Outcome:
        closed = issued_at(report.page.impression) <= self.of_id[report.page.context].closed_through
        return Outcome.LATE if closed else super()._report(report, now)


class Mutant(NamedTuple):
    """A mutant, and the first seed that notices it."""

    server: type[ModelServer]
    store: type[SharedStore]
    seed: int


MUTANTS = {
    "freshness lease not checked": Mutant(NoFreshnessCheck, SharedStore, 4),
    "lease counted from the reply": Mutant(LeaseFromReply, SharedStore, 120),
    "lease used before obeying": Mutant(LeaseBeforeObeying, SharedStore, 4),
    "kill switch does not wait": Mutant(KillDoesNotWait, SharedStore, 25),
    "clock jump not noticed": Mutant(JumpUnnoticed, SharedStore, 4),
    "no margin for small jumps": Mutant(NoMargin, SharedStore, 197),
    "acknowledged before the commit": Mutant(AnswersBeforeTheCommit, SharedStore, 0),
    "no fence": Mutant(ModelServer, NoFence, 8),
    "number of a publication not compared": Mutant(ModelServer, NumberNotCompared, 211),
    "closed_through not checked": Mutant(ModelServer, NoClosedCheck, 2),
    "no lock between check and commit": Mutant(ModelServer, NoLockWhileWriting, 0),
    "event_id without digest": Mutant(ModelServer, NoEventDigest, 4),
    "event_id forgotten at closing": Mutant(ModelServer, EventsForgottenAtClosing, 6),
}
