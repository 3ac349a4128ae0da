"""Base rankings with their candidates, knowledge as a call with one of them sees it, and the views that are kept."""

import hashlib
import json
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from saferank.live.explanation import Explanation, explain
from saferank.live.learner import Learner
from saferank.live.replay import AGAIN, IF_OUTDATED, KEEP, Workspace, drawing, new_workspace
from saferank.safety import whole_allowance
from saferank.service.knowledge.knowledge import Knowledge, learner_with
from saferank.service.knowledge.page_check import CheckedCall, as_bits, checked, leader_of
from saferank.store.contract import CATALOGUE_MS
from saferank.store.page_record import COINS_SIZE, DIGEST_SIZE, ID_SIZE, Law, PageRecord, free_positions, woven
from saferank.verbs import NO_ITEM, Call, Impression

# --- base rankings with their candidates, as the store keeps them: each once, by a digest of its content ---


_CATALOGUES = 4096

Catalogue = tuple[list[str], list[str]]
"""Base ranking and candidates."""


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


def items_of(lists: tuple[Sequence[str], Sequence[str]]) -> list[str]:
    """All items of two lists, each once: of a catalogue in the order of the call."""
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
        if len(self._kept) > _CATALOGUES:
            del self._noted[self._kept.popitem(last=False)[0]]
        return new

    def get(self, digest: bytes) -> Catalogue | None:
        """A catalogue that was used lately."""
        return self._kept.get(digest)


# --- knowledge as one call sees it: its items, its base ranking. A page is a pure function of a view and of coins ---
# A page is drawn from a plan, which is derived from the evidence and from the call: its base ranking, its candidates in
# their order, its page size, without what is pinned. A *slot* has room for a plan. All calls of a context with as many
# items and places share one: the plan of another call is derived in its place, by one compiled call, and so is the plan
# of a call that was there before when the evidence has changed enough. Drawing leaves a plan as it is. So the same
# coins give the same page as long as nothing was learnt in between, on whichever server.


class Slot:
    """Room for a plan, and the kernel that derives and draws."""

    def __init__(self, learner: Learner, call: Call) -> None:
        self._n_items = len(learner.items)
        own = Call(call.base.copy(), call.candidates.copy())
        self.plan: Any = learner.kind.empty_plan(learner.policy, learner.evidence, own)
        self.workspace: Workspace = new_workspace(len(call.base), learner.places(call))
        self.holds: View | None = None  # whose plan it is
        self.folds = -1  # what was known when its age was looked at last
        self._bind(learner)

    def _bind(self, learner: Learner) -> None:
        self._policy, self._evidence = learner.policy, learner.evidence
        self.draw: Callable[[], None] = drawing(learner.policy, learner.evidence, self.plan, self.workspace)

    def fits(self, learner: Learner) -> bool:
        """True unless items have come. When tables have grown it is bound to them, and its plan stays."""
        if self._n_items != len(learner.items):
            return False
        if self._policy is not learner.policy or self._evidence is not learner.evidence:
            self._bind(learner)
        return True


class IllegalPageError(ValueError):
    """A page that must not be served, and why."""


_PAGE = PageRecord(bytes(ID_SIZE), "", "", "", 0, 0, 0, 0, 0, b"", bytes(DIGEST_SIZE), bytes(COINS_SIZE), ())
"""The record of a page without a call."""


class View:
    """What a call sees. The first ``k`` items of ``base`` are production's page; ``pins`` are bits of positions."""

    def __init__(
        self,
        knowledge: Knowledge,
        base: Sequence[str],
        candidates: Sequence[str],
        k: int,
        pins: int = 0,
    ) -> None:
        self._knowledge, self._folds, self.certified = knowledge, knowledge.folds, knowledge.certified
        learner, items = knowledge.learner, items_of((base, candidates))
        numbers: Any = list(map(learner.index.get, items))
        if None in numbers:
            learner = learner_with(learner, items)
            numbers = [learner.index[item] for item in items]
        self._learner, self._own = learner, learner is knowledge.learner
        self._production, self._pins = tuple(base[:k]), pins
        ranked, others = numbers[: len(self._production)], numbers[len(self._production) :]
        if pins:
            ranked = [ranked[position] for position in free_positions(len(ranked), pins)]
        self._call = Call(np.array(ranked, np.uint32), np.array(others, np.uint32))
        self._checked = CheckedCall(tuple(ranked), as_bits([*ranked, *others]), self.certified)
        self.leader = self._woven([str(learner.items[number]) for number in leader_of(self._checked)])

    def is_useful(self, knowledge: Knowledge) -> bool:
        """True when a call may look through it: it was made from the certificates that hold, and sees all evidence."""
        same = knowledge is self._knowledge and self.certified is knowledge.certified
        if self._own:
            return same and self._learner is knowledge.learner
        return same and self._folds == knowledge.folds

    def page(self, coins: bytes, asked: PageRecord = _PAGE) -> PageRecord:
        """The page of these coins for whom a record says; IllegalPageError when it must not be served."""
        impression, items = self._drawn(coins), cast(list[str], self._learner.items)
        places, challenger = int(impression.places[0]), int(impression.challenger[0])
        numbers: list[int] = impression.ranking[:places].tolist()
        shown = numbers[: len(self._call.base)]
        fault, used = checked(self._checked, shown)
        if fault is not None:
            raise IllegalPageError(fault)
        row = tuple(map(items.__getitem__, numbers))
        return asked._replace(
            k=len(self._production),
            coins=coins,
            round=int(impression.round[0]),
            row=row,
            instead=(),
            law=_law(impression, places),
            challenger=None if challenger == NO_ITEM else numbers.index(challenger),
            base=self._production,
            used=used,
            is_leader=self._woven(row[: len(shown)]) == self.leader,
            pins=self._pins,
        )

    def _woven(self, row: Sequence[str]) -> tuple[str, ...]:
        """A ranking with the pinned items where production has them."""
        return woven(tuple(row), self._production, self._pins)

    def _drawn(self, coins: bytes) -> Impression:
        """The page as the policy gives it; it holds until the next one is drawn."""
        slot, folds = self._slot(), self._knowledge.folds
        workspace = slot.workspace
        workspace.issued[0] = self._round_before(coins)
        workspace.issued[1] = AGAIN if slot.holds is not self else KEEP if slot.folds == folds else IF_OUTDATED
        if slot.holds is not self:
            slot.plan.base[:], slot.plan.candidates[:], slot.holds = *self._call, self
        slot.folds = folds
        workspace.words[:] = np.frombuffer(coins, np.uint64)
        slot.draw()
        return workspace.impression

    def _slot(self) -> Slot:
        key, slots = (len(self._call.base), len(self._call.candidates)), self._learner.slots
        slot: Slot | None = slots.get(key)
        if slot is None or not slot.fits(self._learner):
            slot = slots[key] = Slot(self._learner, self._call)
        return slot

    def explain(self) -> Explanation:
        """What the next page would try."""
        self._drawn(bytes(range(COINS_SIZE)))  # derives the plan by the kernel that is compiled for pages
        learner, plan, sizes = self._learner, self._slot().plan, (len(self._call.base), len(self._call.candidates))
        allowance = whole_allowance(sum(sizes), sizes[0])
        return explain(learner, plan, self._knowledge.issued, self._names, allowance)

    def _names(self, row: Sequence[int]) -> tuple[str, ...]:
        return self._woven([str(self._learner.items[number]) for number in row])

    def _round_before(self, coins: bytes) -> int:
        """The next page is number n + 1, or n + 2 when the coins want the other parity.

        The parity of bubble policies is drawn: base rankings that alternate cannot alias with it.
        """
        wanted = hashlib.blake2b(coins, digest_size=1, person=b"parity").digest()[0] & 1
        return self._knowledge.issued + ((self._knowledge.pages + 1) & 1 ^ wanted)


def _law(impression: Impression, places: int) -> Law:
    start, end = bytes(impression.start[:places].tolist()), bytes(impression.end[:places].tolist())
    weight = impression.weight[:places].tobytes()
    is_drawn = weight.count(0) < len(weight)
    return Law(start, end, weight + impression.exchanges[:places].tobytes() if is_drawn else b"")


# --- the views that calls look through, kept while they are up to date ---


_VIEWS = 512

Key = tuple[int, int, bytes, int]
"""Number of the context, page size, digest of the catalogue, bits of pinned positions."""


class Views:
    """The newest views by context, page size, catalogue and pins."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, View] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def view(
        self,
        context: int,
        knowledge: Knowledge,
        digest: bytes,
        lists: Catalogue,
        k: int,
        pins: int = 0,
    ) -> View:
        """The view of a call."""
        key = (context, k, digest, pins)
        view = self._kept.get(key)
        if view is None or not view.is_useful(knowledge):
            view = self._kept[key] = View(knowledge, *lists, k, pins)
            self._kept.move_to_end(key)
            if len(self._kept) > _VIEWS:
                self._kept.popitem(last=False)
        return view

    def forget(self, context: int) -> None:
        """Drop the views of a context that is put away."""
        for key in [key for key in self._kept if key[0] == context]:
            del self._kept[key]
