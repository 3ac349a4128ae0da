"""Estimation of the six click models, as the formulas stand, page after page.

A page is (items, clicks). Every parameter is a key in a dictionary: ("attraction", item), ("examination", k), ...
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator

Page = tuple[list[int], list[int]]
Values = dict[Hashable, float]
Visit = tuple[float, list[tuple[Hashable, int]]]
"""One way in which a page may have come about: its probability, and every coin tossed with how it fell."""


class Counts:
    """Numerators and denominators; a parameter without any data is 1/2."""

    def __init__(self) -> None:
        self.numerator: dict[Hashable, float] = defaultdict(lambda: 1.0)
        self.denominator: dict[Hashable, float] = defaultdict(lambda: 2.0)

    def add(self, parameter: Hashable, numerator: float, denominator: float) -> None:
        self.numerator[parameter] += numerator
        self.denominator[parameter] += denominator

    def values(self, cap: float = 1.0) -> Values:
        made: Values = defaultdict(lambda: 0.5)
        for parameter, denominator in self.denominator.items():
            made[parameter] = min(self.numerator[parameter] / denominator, cap)
        return made


def cm(pages: list[Page]) -> Values:
    counts = Counts()
    for items, clicks in pages:
        for item, click in zip(items, clicks, strict=True):
            counts.add(("attraction", item), click, 1)
            if click:
                break
    return counts.values()


def dcm(pages: list[Page]) -> Values:
    counts = Counts()
    for items, clicks in pages:
        clicked = [k for k, click in enumerate(clicks) if click]
        last = clicked[-1] if clicked else len(items) - 1
        for k in range(last + 1):
            counts.add(("attraction", items[k]), clicks[k], 1)
        for k in clicked:
            counts.add(("continuation", k), 0 if k == last else 1, 1)
    return counts.values()


def em(pages: list[Page], iterations: int, e_step: Callable[[Values, list[int], list[int], Counts], None]) -> Values:
    values: Values = defaultdict(lambda: 0.5)
    for _ in range(iterations):
        counts = Counts()
        for items, clicks in pages:
            e_step(values, items, clicks, counts)
        values = counts.values(cap=1 - 1e-6)
    return values


def _two_coins(values: Values, attraction: Hashable, examination: Hashable, click: int, counts: Counts) -> None:
    a, e = values[attraction], values[examination]
    counts.add(attraction, 1 if click else a * (1 - e) / (1 - a * e), 1)
    counts.add(examination, 1 if click else e * (1 - a) / (1 - a * e), 1)


def pbm_page(values: Values, items: list[int], clicks: list[int], counts: Counts) -> None:
    for k, item in enumerate(items):
        _two_coins(values, ("attraction", item), ("examination", k), clicks[k], counts)


def ubm_page(values: Values, items: list[int], clicks: list[int], counts: Counts) -> None:
    for r, item in enumerate(items):
        last = max([k + 1 for k in range(r) if clicks[k]], default=0)
        _two_coins(values, ("attraction", item), ("examination", r, last), clicks[r], counts)


def dbn_page(values: Values, items: list[int], clicks: list[int], counts: Counts) -> None:
    average(list(dbn_visits(values, items, clicks)), counts)


def ccm_page(values: Values, items: list[int], clicks: list[int], counts: Counts) -> None:
    average(list(ccm_visits(values, items, clicks)), counts)


def average(visits: list[Visit], counts: Counts) -> None:
    """Every toss counts with the posterior probability of its visit."""
    total = sum(probability for probability, _ in visits)
    for probability, tosses in visits:
        for coin, fell in tosses:
            counts.add(coin, fell * probability / total, probability / total)


def dbn_visits(values: Values, items: list[int], clicks: list[int], k: int = 0) -> Iterator[Visit]:
    """All visits from position k on, examined, that show these clicks. Tosses after the last position are left out."""
    item = items[k]
    for first, seen in _toss(values, ("attraction", item), only=clicks[k]):
        if k == len(items) - 1:
            yield first, seen
            continue
        for second, satisfied in _toss(values, ("satisfaction", item)) if clicks[k] else [(1.0, [])]:
            if satisfied and satisfied[0][1] == 1:
                yield from _left(first * second, seen + satisfied, clicks, k)
                continue
            for third, goes_on in _toss(values, "continuation"):
                probability, tosses = first * second * third, seen + satisfied + goes_on
                if goes_on[0][1] == 0:
                    yield from _left(probability, tosses, clicks, k)
                else:
                    for rest, others in dbn_visits(values, items, clicks, k + 1):
                        yield probability * rest, tosses + others


def ccm_visits(values: Values, items: list[int], clicks: list[int], k: int = 0) -> Iterator[Visit]:
    """All visits from position k on, examined, that show these clicks. Tosses after the last position are left out."""
    item = items[k]
    for first, seen in _toss(values, ("attraction", item), only=clicks[k]):
        if k == len(items) - 1:
            yield first, seen
            continue
        for second, relevant in _toss(values, ("attraction", item)) if clicks[k] else [(1.0, [])]:
            coin = ("nonrelevant", "relevant")[relevant[0][1]] if relevant else "no_click"
            for third, goes_on in _toss(values, coin):
                probability, tosses = first * second * third, seen + relevant + goes_on
                if goes_on[0][1] == 0:
                    yield from _left(probability, tosses, clicks, k)
                else:
                    for rest, others in ccm_visits(values, items, clicks, k + 1):
                        yield probability * rest, tosses + others


def _toss(values: Values, coin: Hashable, only: int | None = None) -> Iterator[Visit]:
    for fell in (0, 1) if only is None else (only,):
        yield (values[coin] if fell else 1 - values[coin]), [(coin, fell)]


def _left(probability: float, tosses: list[tuple[Hashable, int]], clicks: list[int], k: int) -> Iterator[Visit]:
    """The user stops after position k: possible only if nothing is clicked below."""
    if not any(clicks[k + 1 :]):
        yield probability, tosses
