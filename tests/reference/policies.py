"""The policies, sentence by sentence. Positions count from 1 in names p, q, k, as in the document."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, log, sqrt
from typing import Protocol

from .decision import toprank_adds_edge
from .kl_index import sbb
from .randomness import Xoshiro, shuffle_front


@dataclass
class Page:
    """What one round shows, and in which groups of items the duels are fought."""

    shown: list[int]
    hidden: int | None
    challenger: int | None
    compared: list[list[int]]


class Policy(Protocol):
    """show and feedback are called alternately."""

    s: list[list[int]]
    n: list[list[int]]

    def show(self) -> Page: ...

    def feedback(self, clicks: list[int]) -> None: ...


def _zeros(n_items: int) -> list[list[int]]:
    return [[0] * n_items for _ in range(n_items)]


def _click(item: int, shown: list[int], clicks: list[int]) -> int:
    """The click of an item; an item that is not shown has click 0."""
    assert len(clicks) == len(shown)
    for position, other in enumerate(shown):
        if other == item:
            return clicks[position]
    return 0


def _update(s: list[list[int]], n: list[list[int]], i: int, j: int, difference: int) -> None:
    """A duel with difference click(i) - click(j): if the clicks differ, update s and n in both directions."""
    if difference != 0:
        s[i][j] += difference
        s[j][i] -= difference
        n[i][j] += 1
        n[j][i] += 1


class _Coins:
    """The coins of one page: the bits of a word from the top bit down, a new word before coin 1, 65, 129, ..."""

    def __init__(self, rng: Xoshiro) -> None:
        self.rng = rng
        self.tossed = 0
        self.word = 0

    def toss(self) -> bool:
        if self.tossed % 64 == 0:
            self.word = self.rng.word()
        bit = (self.word >> (63 - self.tossed % 64)) & 1
        self.tossed += 1
        return bit == 1


class _BubblePolicy:
    """A round of BubbleRank and KL-UCB-BR (steps 1-5 of the latter); they differ in how x is chosen."""

    def __init__(self, n_items: int, n_positions: int, rng: Xoshiro, decides: Callable[[int, int], bool]) -> None:
        self.n_items = n_items
        self.n_positions = n_positions
        self.rng = rng
        self.decides = decides
        self.s = _zeros(n_items)
        self.n = _zeros(n_items)
        self.leader = list(range(n_positions))
        self.round = 0
        self.counts: dict[tuple[int, ...], int] = {}  # finished rounds by leader
        self.page = Page([], None, None, [])
        self.tmp: list[int] = []

    def beats(self, i: int, j: int) -> bool:
        return self.n[i][j] > 0 and self.decides(self.s[i][j], self.n[i][j])

    def unranked(self) -> list[int]:
        return [item for item in range(self.n_items) if item not in self.leader]

    def choose_challenger(self) -> int | None:
        raise NotImplementedError

    def show(self) -> Page:
        # 1. h = t mod 2; x; tmp = leader + [x].
        self.round += 1
        h = self.round % 2
        x = self.choose_challenger()
        self.tmp = list(self.leader)
        if x is None:
            last_k = floor((self.n_positions - h) / 2)
        else:
            self.tmp.append(x)
            last_k = ceil((self.n_positions - h) / 2)
        # 2. In each pair, unless the upper item beats the lower one, swap with probability 1/2.
        shown = list(self.tmp)
        coins = _Coins(self.rng)
        pairs = []
        for k in range(1, last_k + 1):
            p = 2 * k - 1 + h
            q = p + 1
            swap = coins.toss()
            if swap and not self.beats(shown[p - 1], shown[q - 1]):
                shown[p - 1], shown[q - 1] = shown[q - 1], shown[p - 1]
            pairs.append([shown[p - 1], shown[q - 1]])
        hidden = None if x is None else shown[self.n_positions]
        self.page = Page(shown[: self.n_positions], hidden, x, pairs)
        return self.page

    def feedback(self, clicks: list[int]) -> None:
        # 3. Update s and n for the same pairs as shown.
        for i, j in self.page.compared:
            difference = _click(i, self.page.shown, clicks) - _click(j, self.page.shown, clicks)
            _update(self.s, self.n, i, j, difference)
        # 4. The pass: k = 1..K with a challenger, k = 1..K-1 without.
        tmp = self.tmp
        last_k = self.n_positions - 1 if self.page.challenger is None else self.n_positions
        for k in range(1, last_k + 1):
            if self.beats(tmp[k], tmp[k - 1]):  # positions k+1 and k
                tmp[k - 1], tmp[k] = tmp[k], tmp[k - 1]
        # 5. The leader's count goes up by one; the new leader is tmp[1..K].
        self.counts[tuple(self.leader)] = self.counts.get(tuple(self.leader), 0) + 1
        self.leader = tmp[: self.n_positions]


class BubbleRank(_BubblePolicy):
    """BubbleRank: x uniform among the unranked items that the bottom item does not beat; none: the base case."""

    def choose_challenger(self) -> int | None:
        bottom = self.leader[-1]
        eligible = [item for item in self.unranked() if not self.beats(bottom, item)]
        if not eligible:
            return None
        return eligible[self.rng.below(len(eligible))]


class KlUcbBr(_BubblePolicy):
    """KL-UCB-BR: x maximises sbb(x, leader[K]), t = previous rounds with exactly this leader."""

    def choose_challenger(self) -> int | None:
        bottom = self.leader[-1]
        t = self.counts.get(tuple(self.leader), 0)
        best: int | None = None
        best_index = 0.0
        for x in self.unranked():
            index = sbb(self.s[x][bottom], self.n[x][bottom], t)
            if best is None or index > best_index:
                best = x
                best_index = index
        return best


def _shuffled(rng: Xoshiro, parts: list[list[int]], n_positions: int) -> list[int]:
    """The first K places of the concatenation of the parts, each shuffled; all parts begin before place K."""
    row: list[int] = []
    for part in parts:
        start = len(row)
        end = start + len(part)
        assert start < n_positions
        row.extend(part)
        shuffle_front(rng, row, start, min(end, n_positions), end)
    return row[:n_positions]


class TopRank:
    """TopRank: blocks from the graph of edges worse -> better."""

    def __init__(self, n_items: int, n_positions: int, rng: Xoshiro, delta: float) -> None:
        self.n_items = n_items
        self.n_positions = n_positions
        self.rng = rng
        self.delta = delta
        self.s = _zeros(n_items)
        self.n = _zeros(n_items)
        self.edges: set[tuple[int, int]] = set()  # (worse, better)
        self.leader = self.blocks()
        self.page = Page([], None, None, [])

    def blocks(self) -> list[list[int]]:
        remaining = list(range(self.n_items))
        blocks = []
        while remaining:
            block = [i for i in remaining if not any((i, other) in self.edges for other in remaining)]
            if not block:
                block = list(remaining)
            blocks.append(block)
            remaining = [i for i in remaining if i not in block]
        return blocks

    def show(self) -> Page:
        compared: list[list[int]] = []
        start = 0
        for block in self.leader:
            if start < self.n_positions:
                compared.append(list(block))
            start += len(block)
        self.page = Page(_shuffled(self.rng, compared, self.n_positions), None, None, compared)
        return self.page

    def feedback(self, clicks: list[int]) -> None:
        for block in self.page.compared:
            for i in block:
                for j in block:
                    if i < j:
                        self.duel(i, j, clicks)
        self.leader = self.blocks()

    def duel(self, i: int, j: int, clicks: list[int]) -> None:
        difference = _click(i, self.page.shown, clicks) - _click(j, self.page.shown, clicks)
        if difference == 0:
            return
        _update(self.s, self.n, i, j, difference)
        if toprank_adds_edge(self.s[i][j], self.n[i][j], self.delta):
            self.edges.add((j, i))
        if toprank_adds_edge(self.s[j][i], self.n[j][i], self.delta):
            self.edges.add((i, j))


class UniRank:
    """UniRank: the leader is an ordered partition of all items."""

    def __init__(self, n_items: int, n_positions: int, rng: Xoshiro) -> None:
        self.n_items = n_items
        self.n_positions = n_positions
        self.rng = rng
        self.s = _zeros(n_items)
        self.n = _zeros(n_items)
        self.leader = [list(range(n_items))]
        self.counts: dict[tuple[tuple[int, ...], ...], int] = {}  # finished rounds by leader
        self.finished = 0
        self.page = Page([], None, None, [])

    def leader_key(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(part) for part in self.leader)

    def sbb(self, j: int, i: int) -> float:
        return sbb(self.s[j][i], self.n[j][i], self.counts.get(self.leader_key(), 0))

    def recommended(self) -> list[list[int]]:
        parts = self.leader
        recommended = []
        used = 0
        c = 0
        while used < self.n_positions and used + len(parts[c]) < self.n_positions:
            if any(self.sbb(j, i) > 0 for i in parts[c] for j in parts[c + 1]):
                recommended.append(parts[c] + parts[c + 1])
                used += len(parts[c]) + len(parts[c + 1])
                c += 2
            else:
                recommended.append(parts[c])
                used += len(parts[c])
                c += 1
        if used < self.n_positions:
            recommended.append(parts[c] + self.extra(c))
        return recommended

    def extra(self, c: int) -> list[int]:
        """At most one item j: of the first later part that has one with a positive value, the one with the largest."""
        for later in self.leader[c + 1 :]:
            best: int | None = None
            best_value = 0.0
            for j in sorted(later):
                value = max(self.sbb(j, i) for i in self.leader[c])
                if value > best_value:
                    best = j
                    best_value = value
            if best is not None:
                return [best]
        return []

    def show(self) -> Page:
        compared = self.recommended()
        self.page = Page(_shuffled(self.rng, compared, self.n_positions), None, None, compared)
        return self.page

    def feedback(self, clicks: list[int]) -> None:
        shown = self.page.shown
        for part in self.page.compared:
            for i in part:
                for j in part:
                    if i < j:
                        _update(self.s, self.n, i, j, _click(i, shown, clicks) - _click(j, shown, clicks))
        self.counts[self.leader_key()] = self.counts.get(self.leader_key(), 0) + 1
        self.finished += 1
        self.leader = self.new_leader()

    def ok(self, i: int, j: int) -> bool:
        if i == j or self.n[i][j] == 0:
            return True
        m = self.s[i][j] / self.n[i][j]
        return m + sqrt(log(log(self.finished + 3)) / self.n[i][j]) >= 0

    def new_leader(self) -> list[list[int]]:
        remaining = list(range(self.n_items))
        parts = []
        while remaining:
            part = [i for i in remaining if all(self.ok(i, j) for j in remaining)]
            if not part:
                part = list(remaining)
            parts.append(part)
            remaining = [i for i in remaining if i not in part]
        return parts


class Original:
    """Shows the original ranking for ever."""

    def __init__(self, n_items: int, n_positions: int, rng: Xoshiro) -> None:
        self.n_positions = n_positions
        self.rng = rng
        self.s = _zeros(n_items)
        self.n = _zeros(n_items)
        self.leader = list(range(n_positions))

    def show(self) -> Page:
        return Page(list(self.leader), None, None, [])

    def feedback(self, clicks: list[int]) -> None:
        assert len(clicks) == self.n_positions
