"""The policy safe-order of docs/policies/safe-order.md, sentence by sentence, and the same with late feedback.

Random words: a new plan takes one for the coin of step 1c if there is an anchor, one for the direction of step 1f
always, then those of the boundaries' shuffle if they are shuffled; every page takes those of its blocks' shuffles, from
the top, each beginning from the plan's own order.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from math import floor

from .kl_index import _DIGITS, largest_within
from .policies import Page, _BubblePolicy, _click, _update
from .randomness import shuffle_front
from .safe_blocks import SafePage

PAGES_OF_A_PLAN = 16
FIRST_LEVEL = 3
"""There is a level, log(t) / 2, from this page on."""


def settled_at(s: int, n: int, t: int) -> bool:
    """s > 0 and n kl((1 + s/n) / 2, 1/2) >= log(t) / 2, in whole numbers: exp of the double of both sides, times n^2n.

    Exact because both sides can be equal: all n duels won, t = 4^n.
    """
    if t < FIRST_LEVEL or s <= 0:
        return False
    wins, losses = (n + s) // 2, (n - s) // 2
    left: int = 4**n * wins ** (2 * wins) * losses ** (2 * losses)
    right: int = t * n ** (2 * n)
    return left >= right


def index_at(s: int, n: int, t: int) -> float:
    """The largest double q in [mu, 1] with n kl(mu, q) <= log(t) / 2, mu = (1 + s/n) / 2."""
    if n in (0, s) or t < FIRST_LEVEL:
        return 1.0
    with localcontext() as context:
        context.prec = _DIGITS
        mu = Decimal((n + s) // 2) / Decimal(n)
        return largest_within(mu, n, Decimal(t).ln() / 2)


@dataclass
class Plan:
    """The blocks from the top, of K + 1 items the last place is hidden; the price and m when it was made."""

    blocks: list[list[int]]
    challenger: int | None
    price: int
    income: int
    served: int = 0

    def row(self) -> list[int]:
        return [item for block in self.blocks for item in block]


class SafeOrder(_BubblePolicy):
    """safe-order: the page follows a working order as far as the account covers its worst case."""

    income = 0  # m, the certified exchanges so far
    page: Page
    plan: Plan | None = None

    def budget(self) -> int:
        """B = floor(L - K/2) + m."""
        return floor(self.n_items - self.n_positions / 2) + self.income

    def settled(self, i: int, j: int) -> bool:
        return settled_at(self.s[i][j], self.n[i][j], self.round)

    def place(self, item: int) -> int:
        """pos: the place in the leader from 0, K for unranked items."""
        return self.leader.index(item) if item in self.leader else self.n_positions

    def undecided(self, i: int, j: int) -> bool:
        return not self.beats(i, j) and not self.beats(j, i)

    def price_above(self, j: int, i: int) -> int:
        """What placing j above i adds at most to V, compared with the leader."""
        if self.beats(j, i):
            return -1 if self.place(i) < self.place(j) else 0
        return 0 if self.place(j) < self.place(i) else 1

    def price_of_pairs(self, blocks: list[list[int]]) -> int:
        """Pairs of the row: 1 in the same block, else the price of the upper item above the lower one."""
        price = 0
        for b, block in enumerate(blocks):
            price += len(block) * (len(block) - 1) // 2
            price += sum(self.price_above(j, i) for j in block for below in blocks[b + 1 :] for i in below)
        return price

    def price_of_newcomers(self, blocks: list[list[int]], has_hidden: bool) -> int:
        """Each unranked item that can be shown at once, with each unranked item outside the row."""
        unranked = [sum(item not in self.leader for item in block) for block in blocks]
        in_row = sum(unranked)
        in_last = unranked[-1] if has_hidden else 0
        shown_of_last = len(blocks[-1]) - 1
        at_once = in_row - in_last + min(in_last, shown_of_last)
        return at_once * (self.n_items - self.n_positions - in_row)

    def price_of_left_out(self, blocks: list[list[int]], has_hidden: bool) -> int:
        """The leader items outside the row, each with all that is shown: all the row but one item of the last block."""
        row = [item for block in blocks for item in block]
        price = 0
        for i in self.leader:
            if i not in row:
                price += sum(self.price_above(j, i) for j in row)
                if has_hidden:
                    price -= min(self.price_above(j, i) for j in blocks[-1])
        return price

    def price(self, blocks: list[list[int]]) -> int:
        """An upper bound of V(page) - V(leader) over all pages of the plan."""
        has_hidden = sum(len(block) for block in blocks) == self.n_positions + 1
        of_shown = self.price_of_pairs(blocks) + self.price_of_newcomers(blocks, has_hidden)
        return of_shown + self.price_of_left_out(blocks, has_hidden)

    def affordable(self, blocks: list[list[int]]) -> bool:
        return self.price(blocks) <= self.budget()

    def entered(self, work: list[int], candidates: list[int], a: int) -> bool:
        """Candidate a takes the lowest place where it is settled above the item there and B covers it, if any."""
        for p in range(self.n_positions - 1, -1, -1):
            if self.settled(candidates[a], work[p]):
                candidates[a], work[p] = work[p], candidates[a]
                if self.affordable([[item] for item in work]):
                    return True
                candidates[a], work[p] = work[p], candidates[a]
        return False

    def exchanged(self, work: list[int], p: int) -> bool:
        """The items at places p and p + 1 change places if that is settled and B covers it."""
        if self.settled(work[p + 1], work[p]):
            work[p], work[p + 1] = work[p + 1], work[p]
            if self.affordable([[item] for item in work]):
                return True
            work[p], work[p + 1] = work[p + 1], work[p]
        return False

    def working_order(self) -> list[int]:
        """1a and 1b."""
        work = list(self.leader)
        previous = [] if self.plan is None else self.plan.row()
        candidates = [item for item in previous if item not in self.leader]
        for _ in range(self.n_positions):
            entries = [self.entered(work, candidates, a) for a in range(len(candidates))]
            exchanges = [self.exchanged(work, p) for p in range(self.n_positions - 1)]
            if not any(entries + exchanges):
                break
        return work

    def challenger_of(self, work: list[int]) -> int | None:
        bottom = work[-1]
        # 1c. The anchor: the first leader item left out whose pair with the bottom item is undecided.
        anchors = [i for i in self.leader if i not in work and self.undecided(i, bottom)]
        if anchors and self.rng.word() >> 63 == 1:
            return anchors[0]
        # 1d. The largest index over the bottom item, above 1/2.
        best: int | None = None
        best_index = 0.5
        for j in range(self.n_items):
            if j not in work and self.undecided(j, bottom) and not self.settled(bottom, j):
                index = index_at(self.s[j][bottom], self.n[j][bottom], self.round)
                if index > best_index:
                    best = j
                    best_index = index
        return best

    def boundaries(self, last: int) -> list[int]:
        """1f. Shuffled with probability 1/4, else from the bottom."""
        ascending = list(range(1, last + 1))
        if self.rng.word() >> 62 != 0:
            return ascending[::-1]
        shuffle_front(self.rng, ascending, 0, last, last)
        return ascending

    def may_share(self, i: int, j: int) -> bool:
        """i of the upper and j of the lower block: undecided, and not settled unless the leader has j above i."""
        paid = self.place(j) < self.place(i)
        return self.undecided(i, j) and (paid or not self.settled(i, j))

    def merged(self, blocks: list[list[int]], boundary: int, challenger: int | None) -> list[list[int]]:
        """1g. The blocks after the attempt to merge those that meet at the boundary."""
        if boundary == self.n_positions:
            assert challenger is not None
            blocks_with_both = [*blocks, [challenger]]
        else:
            blocks_with_both = blocks
        starts = [sum(len(block) for block in blocks_with_both[:b]) for b in range(len(blocks_with_both))]
        b = starts.index(boundary)
        upper, lower = blocks_with_both[b - 1], blocks_with_both[b]
        after = [*blocks_with_both[: b - 1], upper + lower, *blocks_with_both[b + 1 :]]
        if all(self.may_share(i, j) for i in upper for j in lower) and self.affordable(after):
            return after
        return blocks

    def new_plan(self) -> Plan:
        work = self.working_order()
        challenger = self.challenger_of(work)
        # 1e. Each place is a block of its own.
        blocks = [[item] for item in work]
        for boundary in self.boundaries(self.n_positions - (challenger is None)):
            blocks = self.merged(blocks, boundary, challenger)
        joined = any(challenger in block for block in blocks)
        return Plan(blocks, challenger if joined else None, self.price(blocks), self.income)

    def show(self) -> SafePage:
        self.round += 1
        # 1. Plan anew at the start, when the leader moved (every exchange is income), after 16 pages.
        if self.plan is None or self.plan.income != self.income or self.plan.served == PAGES_OF_A_PLAN:
            self.plan = self.new_plan()
        self.plan.served += 1
        # 2. Shuffle uniformly inside each block, show the first K.
        row: list[int] = []
        for block in self.plan.blocks:
            row.extend(block)
            shuffle_front(self.rng, row, len(row) - len(block), len(row), len(row))
        shown = row[: self.n_positions]
        hidden = row[self.n_positions] if len(row) > self.n_positions else None
        blocks = [list(block) for block in self.plan.blocks]
        compared = [block for block in blocks if len(block) > 1]
        account = (self.income, self.budget(), self.plan.price)
        page = SafePage(shown, hidden, self.plan.challenger, compared, blocks, *account)
        self.page = page
        return page

    def record(self, page: Page, clicks: list[int]) -> list[tuple[int, int]]:
        """3. The statistics of every pair of a block with different clicks; gives the pairs (winner, loser)."""
        wins = []
        for block in page.compared:
            for i in block:
                for j in block:
                    if _click(i, page.shown, clicks) > _click(j, page.shown, clicks):
                        _update(self.s, self.n, i, j, 1)
                        wins.append((i, j))
        return wins

    def exchanged_if_sure(self, pool: list[int], p: int, q: int) -> int:
        """The items at places p and q, p above q, change places if the lower one beats the upper one; 1 if so."""
        if not self.beats(pool[q], pool[p]):
            return 0
        pool[p], pool[q] = pool[q], pool[p]
        return 1

    def adjacent_exchanges(self, pool: list[int]) -> int:
        """A sweep over neighbours of the leader, then over the bottom item and each item outside; how many."""
        made = sum(self.exchanged_if_sure(pool, p, p + 1) for p in range(self.n_positions - 1))
        return made + sum(
            self.exchanged_if_sure(pool, self.n_positions - 1, q) for q in range(self.n_positions, len(pool))
        )

    def distant_exchange(self, pool: list[int]) -> int:
        """One exchange of the first two places, from the top, of which the lower item beats the upper one; 1 or 0."""
        for p in range(self.n_positions):
            for q in range(p + 1, len(pool)):
                if self.exchanged_if_sure(pool, p, q):
                    return 1
        return 0

    def sorted_pool(self, pool: list[int]) -> tuple[list[int], int] | None:
        """Adjacent exchanges first, a distant one only when none is left; None when it comes to no end.

        An exchange of a better item upwards removes a wrong pair of the pool, so no more exchanges than it has pairs of
        which one is in the leader can be right.
        """
        pool, made = list(pool), 0
        pairs = self.n_positions * (self.n_positions - 1) // 2 + self.n_positions * (len(pool) - self.n_positions)
        while made <= pairs:
            more = self.adjacent_exchanges(pool)
            if more == 0:
                more = self.distant_exchange(pool)
            if more == 0:
                return pool, made
            made += more
        return None

    def learn(self, page: Page, clicks: list[int]) -> None:
        wins = self.record(page, clicks)
        if not any(self.beats(winner, loser) for winner, loser in wins):
            return
        row = page.shown if page.hidden is None else [*page.shown, page.hidden]
        pool = self.leader + [item for item in row if item not in self.leader]
        result = self.sorted_pool(pool)
        if result is not None:
            pool, made = result
            self.leader = pool[: self.n_positions]
            self.income += made

    def feedback(self, clicks: list[int]) -> None:
        self.learn(self.page, clicks)


class LateSafeOrder(SafeOrder):
    """The section "Late feedback": pages are frozen when issued, time counts pages issued."""

    def issue(self) -> SafePage:
        return self.show()

    def answer(self, page: Page, clicks: list[int]) -> None:
        self.learn(page, clicks)
