"""Lessons: pages that count, laid out for the compiled fold, without the comparisons that do not count.

One compiled pass reads the columns of the records, watches the orders of clicked pages, notes the votes of their
visitors, and takes out what they have voted on before (``visits.py``). How a comparison is taken out depends on the law
of its page:

* a page that was drawn names by place the exchanges that are learnt: the bits of the two places go;
* in groups a clicked item wins over every item of its group that was not clicked. An item of which no comparison is
  left gets a group of its own, which settles groups of two. If some comparisons of a larger group go and others stay,
  the page becomes one lesson for each clicked item, with those at the front that it still is compared with: within a
  group learning does not look at the order.

Which comparisons go depends on earlier pages of the visitor alone. To leave out a whole group would be wrong: whether
it holds a comparison that is known depends on which of its items was clicked, and so on the sign of the others.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel
from saferank.live.learner import Learner
from saferank.live.replay import Pages, Workspace, lay_out, new_pages, new_workspace
from saferank.service.knowledge.visits import MarkTable, OrderBets, OrderWatch, Votes, item_hash, mark_of, vote, watch
from saferank.store.page_record import DRAWN, NO_CHALLENGER, SOURCE, VISITOR, PageRecord
from saferank.store.record_columns import (
    CHALLENGER,
    FLAGS,
    LAST_OF_ID,
    PINNED_PLACES,
    PLACES,
    ROUND,
    SOURCE_KEY,
    TEXTS,
    VISITOR_KEY,
    ClosedPages,
    Columns,
    K,
    clicks_beyond,
    is_clicked,
    is_pinned,
)
from saferank.verbs import NO_ITEM, Flags, Floats, Ints, Items

Words = NDArray[np.uint64]

ENOUGH, NEW_ITEM, NO_ROOM, TOO_MANY = range(4)
"""Why the pass ended: all lessons are laid out, or as many as there is room for; the next one has an item without a
number; there is no room for its votes; there are too many marks."""

_AT_ONCE = 512
"""Lessons that are laid out together."""


class Room:
    """Where lessons are laid out. It grows; nothing stays in it, so that the contexts of a server share one."""

    def __init__(self) -> None:
        self._make(1, 1, 1)

    def make(self, lessons: int, positions: int, places: int) -> None:
        """For lessons of this size."""
        asked = (lessons, positions, max(positions, places))
        needed = np.maximum(self._size, asked).tolist()
        if needed != self._size:
            self._make(*needed)

    def _make(self, lessons: int, positions: int, places: int) -> None:
        self._size = [lessons, positions, places]
        self.pages, self.workspace = new_pages(lessons, positions, places), new_workspace(positions, places)
        self.lesson = np.zeros(lessons, np.int64)  # by page: the number of its lesson
        self.won = np.zeros((lessons, 2), np.int64)  # by page: the slots of items whose bets won, or -1
        self.gone = np.zeros((positions, places), np.bool_)
        self.row = np.zeros(places, np.uint32)


class ItemFacts(NamedTuple):
    """By the number of an item."""

    hash: Words  # that stands for it in marks
    slot: Ints  # of its bets, or -1


class Numbered:
    """The items of a learner, as the pass knows them."""

    def __init__(self) -> None:
        self._items: Sequence[object] | None = None
        self.facts = ItemFacts(np.zeros(0, np.uint64), np.zeros(0, np.int64))

    def follow(self, learner: Learner, orders: OrderWatch) -> None:
        """Take in items that are new, or all of them when the learner is another one."""
        known = len(self.facts.hash) if learner.items is self._items else 0
        if known < len(learner.items) or learner.items is not self._items:
            new = [str(item) for item in learner.items[known:]]
            slots = {name: slot for slot, name in enumerate(orders.names)}
            self.facts = ItemFacts(
                np.concatenate([self.facts.hash[:known], np.array([item_hash(item) for item in new], np.uint64)]),
                np.concatenate([self.facts.slot[:known], np.array([slots.get(item, -1) for item in new], np.int64)]),
            )
            self._items = learner.items


class LessonPart(NamedTuple):
    """Some lessons, laid out in a room."""

    begin: int
    end: int  # the number of the next lesson
    rows: int  # pages in the room, of lessons that can be learnt
    is_new: bool  # the next lesson has items without numbers
    room: Room


class Lessons:
    """Closed pages that count, in display order."""

    def __init__(self, pages: ClosedPages, index: Mapping[str, int]) -> None:
        self.pages = pages
        columns, texts = pages.columns, pages.texts
        self._weight = columns.weight.view(np.float64)
        self._known = np.array([index.get(text, -1) for text in texts], np.int64)  # by text

    def __len__(self) -> int:
        return len(self.pages)

    def record(self, number: int) -> PageRecord:
        """The record of one of them."""
        return self.pages.record(number)

    def know(self, number: int, learner: Learner) -> None:
        """The items of a lesson get numbers."""
        columns, at, row = self.pages.columns, int(self.pages.at[number]), self.record(number).row
        learner.know(row)
        begin = int(columns.begin[at]) + TEXTS
        self._known[columns.codes[begin : begin + len(row)]] = [learner.index[item] for item in row]

    def lay_out(self, begin: int, items: Numbered, votes: Votes, orders: OrderWatch, room: Room) -> LessonPart:
        """Lay out lessons from ``begin`` on, until one has an item without a number, or enough of them."""
        columns, positions = self.pages.columns, self.pages.columns.base.shape[1]
        room.make(min(len(self) - begin, _AT_ONCE) + positions, positions, columns.start.shape[1])
        progress = np.array([begin, 0, 0])
        while True:
            why = _lay_out_next(
                columns, self._weight, self.pages.words, self.pages.at, self._known, items.facts, votes.table,
                orders.table, room.pages, room.workspace, room.lesson, room.won, room.gone, room.row, progress,
            )  # fmt: skip
            if why == NO_ROOM:
                votes.make_room(int(progress[2]))
            elif why == TOO_MANY:
                votes.halve()
            else:
                return LessonPart(begin, int(progress[0]), int(progress[1]), why == NEW_ITEM, room)


@kernel
def _lay_out_next(
    columns: Columns,
    weight: Floats,
    words: Words,
    at: Ints,
    known: Ints,
    items: ItemFacts,
    marks: MarkTable,
    bets: OrderBets,
    pages: Pages,
    workspace: Workspace,
    lesson: Ints,
    won: Ints,
    gone: Flags,
    order: Items,
    progress: Ints,
) -> int:
    """Lay out lessons from number ``progress[0]`` on, behind ``progress[1]`` pages; why it ended.

    ``progress[2]`` is how many votes the next lesson may have.
    """
    for number in range(progress[0], len(at)):
        record = at[number]
        head, row = columns.numbers[record], progress[1]
        if not _has_numbers(columns, record, known):
            return NEW_ITEM
        if head[PLACES] > 0 and not clicks_beyond(words[record], head[K]):
            if row + max(1, head[K]) > len(lesson):
                return ENOUGH
            clicked = _lay_out_record(columns, weight, words[record], record, known, pages, row)
            progress[2] = clicked * head[PLACES] if head[FLAGS] & (SOURCE | VISITOR) else 0
            if 2 * (marks.facts[0] + progress[2]) > len(marks.slots):
                return NO_ROOM
            lesson[row], won[row, 0], won[row, 1] = number, -1, -1
            if clicked and pages.drawn[row]:
                lay_out(pages, row, workspace.impression)
                first = _first_click(pages, row)
                watch(bets, items.slot, workspace.impression, first, pages.positions[row], head[LAST_OF_ID], won[row])
            rows = 1
            if progress[2]:
                who = np.uint64(head[SOURCE_KEY] if head[FLAGS] & SOURCE else head[VISITOR_KEY])
                if _note_votes(marks, items.hash, pages, row, who, gone):
                    rows = _leave_out(pages, row, gone, order)
            for more in range(1, rows):
                lesson[row + more], won[row + more, 0], won[row + more, 1] = number, -1, -1
            progress[1] += rows
        progress[0] = number + 1
        if marks.facts[0] > marks.facts[2]:
            return TOO_MANY
    return ENOUGH


@kernel
def _has_numbers(columns: Columns, record: int, known: Ints) -> bool:
    begin, found = columns.begin[record] + TEXTS, True
    for place in range(columns.numbers[record, PLACES]):
        found &= known[columns.codes[begin + place]] >= 0
    return found


@kernel
def _lay_out_record(
    columns: Columns, weight: Floats, words: Words, record: int, known: Ints, pages: Pages, row: int
) -> int:
    """Fill a row of pages; how many positions that are not pinned were clicked."""
    head, begin = columns.numbers[record], columns.begin[record] + TEXTS
    pages.round[row], pages.places[row] = head[ROUND], head[PLACES]
    pages.positions[row] = head[K] - head[PINNED_PLACES]
    pages.drawn[row] = int(head[FLAGS] & DRAWN != 0)
    for place in range(head[PLACES]):
        pages.ranking[row, place] = known[columns.codes[begin + place]]
        pages.start[row, place], pages.end[row, place] = columns.start[record, place], columns.end[record, place]
        pages.weight[row, place] = weight[record, place]
        pages.exchanges[row, place] = np.int64(columns.exchanges[record, place])
    alone = head[CHALLENGER] == NO_CHALLENGER
    pages.challenger[row] = NO_ITEM if alone else np.int64(pages.ranking[row, head[CHALLENGER]])
    free, clicked = 0, 0
    for position in range(head[K]):
        if not is_pinned(columns, record, position):
            pages.clicks[row, free] = int(is_clicked(words, position))
            clicked += pages.clicks[row, free]
            free += 1
    for position in range(free, pages.clicks.shape[1]):
        pages.clicks[row, position] = 0
    return clicked


@kernel
def _first_click(pages: Pages, row: int) -> int:
    first = 0
    while not pages.clicks[row, first]:
        first += 1
    return first


@kernel
def _compares(pages: Pages, row: int, winner: int, loser: int) -> bool:
    """True when a page compares a clicked place with another, which was not clicked."""
    if loser < pages.positions[row] and pages.clicks[row, loser]:
        return False
    if pages.drawn[row]:
        return bool(loser < 62 and pages.exchanges[row, winner] >> loser & 1)
    return bool(pages.start[row, winner] <= loser < pages.end[row, winner])


@kernel
def _note_votes(marks: MarkTable, hashes: Words, pages: Pages, row: int, who: np.uint64, gone: Flags) -> bool:
    """Note what a visitor has voted on; True when some of it does not count, by clicked and other place."""
    found = False
    for winner in range(pages.positions[row]):
        if pages.clicks[row, winner]:
            for loser in range(pages.places[row]):
                gone[winner, loser] = False
                if _compares(pages, row, winner, loser):
                    pair = hashes[pages.ranking[row, winner]] + hashes[pages.ranking[row, loser]]
                    gone[winner, loser] = not vote(marks, mark_of(who, pair))
                    found |= gone[winner, loser]
    return found


@kernel
def _leave_out(pages: Pages, row: int, gone: Flags, order: Items) -> int:
    """Take out comparisons that do not count; how many pages it takes to say the rest."""
    if pages.drawn[row]:
        for winner in range(pages.positions[row]):
            for loser in range(pages.places[row] if pages.clicks[row, winner] else 0):
                if gone[winner, loser]:
                    pages.exchanges[row, winner] &= ~(1 << loser)
                    pages.exchanges[row, loser] &= ~(1 << winner)
        return 1
    some_stay, winners = False, 0
    for winner in range(pages.positions[row]):
        if pages.clicks[row, winner]:
            left, before = _left_of(pages, row, winner, gone)
            if before and not left:
                pages.start[row, winner], pages.end[row, winner] = winner, winner + 1
            some_stay |= 0 < left < before
            winners += int(left > 0)
    if not some_stay:
        return 1
    winner, to = pages.positions[row], row + winners
    while to > row:  # the page itself comes last, and is written over
        winner -= 1
        if pages.clicks[row, winner] and _left_of(pages, row, winner, gone)[0]:
            to -= 1
            if to > row:
                _copy(pages, row, to)
            _win(pages, to, winner, gone, order)
    return winners


@kernel
def _left_of(pages: Pages, row: int, winner: int, gone: Flags) -> tuple[int, int]:
    """Comparisons of a clicked place that count, and all of them."""
    left, before = 0, 0
    for loser in range(pages.places[row]):
        if _compares(pages, row, winner, loser):
            before += 1
            left += int(not gone[winner, loser])
    return left, before


@kernel
def _copy(pages: Pages, row: int, to: int) -> None:
    pages.round[to], pages.places[to], pages.positions[to] = pages.round[row], pages.places[row], pages.positions[row]
    pages.drawn[to], pages.challenger[to] = pages.drawn[row], pages.challenger[row]
    for place in range(pages.places[row]):
        pages.ranking[to, place] = pages.ranking[row, place]
        pages.start[to, place], pages.end[to, place] = pages.start[row, place], pages.end[row, place]
        pages.weight[to, place], pages.exchanges[to, place] = pages.weight[row, place], pages.exchanges[row, place]
    for position in range(pages.clicks.shape[1]):
        pages.clicks[to, position] = pages.clicks[row, position]


@kernel
def _win(pages: Pages, row: int, winner: int, gone: Flags, order: Items) -> None:
    """A page on which one item was clicked, with those right behind it that it is compared with."""
    begin, end = pages.start[row, winner], pages.end[row, winner]
    order[begin], next_one, behind = pages.ranking[row, winner], begin + 1, begin + 1
    for others in (True, False):
        for place in range(begin, end):
            if place != winner and others == (_compares(pages, row, winner, place) and not gone[winner, place]):
                order[next_one] = pages.ranking[row, place]
                next_one += 1
        behind = next_one if others else behind
    for place in range(begin, end):
        pages.ranking[row, place] = order[place]
    for position in range(pages.positions[row]):
        pages.clicks[row, position] = 0
    pages.clicks[row, begin] = 1
    pages.start[row, begin], pages.end[row, begin] = begin, behind
