"""The policy safe-blocks of docs/policies/safe-blocks.md, sentence by sentence, and the same with late feedback.

Random words: the first coin of a page is the offset of step 3, tossed always; the next ones are the stop coins of
step 2, one for each step at which there is an item above (1 = stop); the shuffles of step 4 follow, from the top.
"""

from dataclasses import dataclass
from math import floor

from .kl_index import sbb
from .policies import Page, _BubblePolicy, _click, _Coins, _update
from .randomness import shuffle_front

LARGEST_BLOCK = 5


@dataclass
class SafePage(Page):
    """A page, all its blocks in leader order from the top, and what they cost. ``compared`` has no single items."""

    blocks: list[list[int]]
    income: int
    budget: int
    spent: int


class SafeBlocks(_BubblePolicy):
    """safe-blocks: the allowance L - K/2 is a budget, certified swaps are income, blocks are bought with it."""

    income = 0  # m, the certified swaps so far
    page: Page

    def open(self, i: int, j: int) -> bool:
        """For i above j: not beats(i, j) and sbb(j, i) > 0, t = previous rounds with exactly this leader."""
        t = self.counts.get(tuple(self.leader), 0)
        return not self.beats(i, j) and sbb(self.s[j][i], self.n[j][i], t) > 0

    def budget(self) -> int:
        """B = floor(L - K/2) + m."""
        return floor(self.n_items - self.n_positions / 2) + self.income

    def choose_challenger(self) -> int | None:
        # 1. The largest sbb(x, bottom) among the unranked items whose pair with the bottom item is open.
        bottom = self.leader[-1]
        t = self.counts.get(tuple(self.leader), 0)
        best: int | None = None
        best_index = 0.0
        for x in self.unranked():
            index = sbb(self.s[x][bottom], self.n[x][bottom], t)
            if self.open(bottom, x) and (best is None or index > best_index):
                best = x
                best_index = index
        return best

    def fits_above(self, item: int, block: list[int], spent: int) -> bool:
        """All the pairs that it would form in the block are open, and the rest of the budget covers them."""
        all_open = all(self.open(item, other) for other in block)
        return all_open and len(block) <= self.budget() - spent

    def fits_below(self, item: int, block: list[int], spent: int) -> bool:
        all_open = all(self.open(other, item) for other in block)
        return all_open and len(block) <= self.budget() - spent and len(block) + 1 <= LARGEST_BLOCK

    def grown(self, block: list[int], above: list[int], spent: int, coins: _Coins) -> tuple[list[int], int]:
        """2. The challenger's block grows upward; gives the block and what is spent then."""
        above = list(above)
        while above:
            stop = coins.toss()
            if stop or not self.fits_above(above[-1], block, spent):
                break
            spent += len(block)
            block = [above.pop(), *block]
        return block, spent

    def from_the_top(self, items: list[int], offset: bool, spent: int) -> tuple[list[list[int]], int]:
        """3. The positions above form blocks; gives the blocks and what is spent then."""
        blocks: list[list[int]] = []
        for place, item in enumerate(items):
            first_of_a_block = place == 0 or (offset and place == 1)
            if not first_of_a_block and self.fits_below(item, blocks[-1], spent):
                spent += len(blocks[-1])
                blocks[-1].append(item)
            else:
                blocks.append([item])
        return blocks, spent

    def show(self) -> SafePage:
        self.round += 1
        coins = _Coins(self.rng)
        offset = coins.toss()
        x = self.choose_challenger()
        if x is None:
            blocks, spent = self.from_the_top(self.leader, offset, 0)
        else:
            start = [self.leader[-1], x]
            block, spent = self.grown(start, self.leader[:-1], self.n_items - self.n_positions, coins)
            rest = self.leader[: self.n_positions + 1 - len(block)]
            blocks, spent = self.from_the_top(rest, offset, spent)
            blocks.append(block)
        # 4. Shuffle uniformly inside each block, show the first K.
        row: list[int] = []
        for block in blocks:
            row.extend(block)
            shuffle_front(self.rng, row, len(row) - len(block), len(row), len(row))
        hidden = None if x is None else row[self.n_positions]
        compared = [block for block in blocks if len(block) > 1]
        shown = row[: self.n_positions]
        page = SafePage(shown, hidden, x, compared, blocks, self.income, self.budget(), spent)
        self.page = page
        return page

    def learn(self, page: Page, clicks: list[int]) -> None:
        """Step 4 after the clicks: the statistics, then the leader pass, in which every swap is income."""
        for block in page.compared:
            for i in block:
                for j in block:
                    if i < j:
                        _update(self.s, self.n, i, j, _click(i, page.shown, clicks) - _click(j, page.shown, clicks))
        tmp = list(self.leader)
        if page.challenger is not None and page.challenger not in self.leader:  # ranked by now: late feedback only
            tmp.append(page.challenger)
        for k in range(len(tmp) - 1):
            if self.beats(tmp[k + 1], tmp[k]):
                tmp[k], tmp[k + 1] = tmp[k + 1], tmp[k]
                self.income += 1
        self.leader = tmp[: self.n_positions]

    def count_leader(self) -> None:
        self.counts[tuple(self.leader)] = self.counts.get(tuple(self.leader), 0) + 1

    def feedback(self, clicks: list[int]) -> None:
        self.count_leader()
        self.learn(self.page, clicks)


class LateSafeBlocks(SafeBlocks):
    """The section "Late feedback": pages are frozen when issued, leader counts count pages issued."""

    def issue(self) -> SafePage:
        page = self.show()
        self.count_leader()
        return page

    def answer(self, page: Page, clicks: list[int]) -> None:
        self.learn(page, clicks)
