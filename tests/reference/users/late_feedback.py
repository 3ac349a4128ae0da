"""Late feedback for KL-UCB-BR and BubbleRank: several pages out at once."""

from collections.abc import Callable

from tests.reference.policies import BubbleRank, KlUcbBr, Page, _click, _update
from tests.reference.randomness import Xoshiro


class _Late:
    """Mixed into a bubble policy: pages are frozen when issued, rounds and leader counts count pages issued."""

    leader: list[int]
    counts: dict[tuple[int, ...], int]
    s: list[list[int]]
    n: list[list[int]]
    n_positions: int

    def beats(self, i: int, j: int) -> bool:
        raise NotImplementedError

    def show(self) -> Page:
        raise NotImplementedError

    def issue(self) -> Page:
        page = self.show()
        self.counts[tuple(self.leader)] = self.counts.get(tuple(self.leader), 0) + 1
        return page

    def answer(self, page: Page, clicks: list[int]) -> None:
        # The statistics are updated for the pairs as they were shown ...
        for i, j in page.compared:
            _update(self.s, self.n, i, j, _click(i, page.shown, clicks) - _click(j, page.shown, clicks))
        # ... then the pass runs on the current leader followed by the page's challenger (left out when ranked by now).
        tmp = list(self.leader)
        if page.challenger is not None and page.challenger not in self.leader:
            tmp.append(page.challenger)
        for k in range(len(tmp) - 1):
            if self.beats(tmp[k + 1], tmp[k]):
                tmp[k], tmp[k + 1] = tmp[k + 1], tmp[k]
        self.leader = tmp[: self.n_positions]


class LateKlUcbBr(_Late, KlUcbBr):
    beats = KlUcbBr.beats
    show = KlUcbBr.show


class LateBubbleRank(_Late, BubbleRank):
    beats = BubbleRank.beats
    show = BubbleRank.show


def late_policy(
    name: str, n_items: int, n_positions: int, rng: Xoshiro, decides: Callable[[int, int], bool]
) -> LateKlUcbBr | LateBubbleRank:
    kind = LateKlUcbBr if name == "kl-ucb-br" else LateBubbleRank
    return kind(n_items, n_positions, rng, decides)
