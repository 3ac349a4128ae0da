"""What breaks the confidence argument: how often two *equal* items are declared decided when clicks are not as assumed.

    python benchmarks/policies/equal_items.py [--runs 1000] [--draws 1000] [--only-draws]

The argument needs the sign of every informative comparison to be a fair coin, given the past. Each row of the table
violates that in one way that production has, beside what the service does about it. Every run is folded by the same
compiled code that a live context learns with; a run is false when it holds a certificate, in whichever direction, after
its last click (the trial's row about users counts one direction only, which is half as often or a little more).

A second table has the false certificates of safe-draw where nothing is violated (``equal_draws.py``), and those of a
mutant that bets at even odds.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from equal_draws import SURPRISE, table

from saferank.live.learner import Learner
from saferank.live.replay import Pages, new_pages, new_workspace
from saferank.verbs import NO_ITEM, Flags

INFORMATIVE = 10_000
UPPER_WINS = 0.7
"""Position bias: of the pages on which exactly one of the two was clicked, how often it was the upper one."""

Random = np.random.Generator


class Visits(NamedTuple):
    """Informative pages in the order in which they were shown."""

    swapped: Flags  # the second item was shown above the first
    second_won: Flags


def fair_visits(random: Random, size: int = INFORMATIVE) -> Visits:
    """Two equal items, shown in random order to users who prefer the upper place."""
    swapped = random.random(size) < 0.5
    return Visits(swapped, swapped == (random.random(size) < UPPER_WINS))


def biased_visits(random: Random, first_wins: float) -> Visits:
    """Events reach us as if the first item won with this probability."""
    swapped = random.random(INFORMATIVE) < 0.5
    return Visits(swapped, random.random(INFORMATIVE) >= first_wins)


def crowds(random: Random, clicks_each: int) -> Visits:
    """Users who contribute several clicks in a row, all for the item they happen to like."""
    users = fair_visits(random, -(-INFORMATIVE // clicks_each))
    return Visits(*(np.repeat(column, clicks_each)[:INFORMATIVE] for column in users))


def in_order_of_arrival(visits: Visits, delay: int) -> Visits:
    """The order in which clicks come in when those of the second item are ``delay`` informative pages late."""
    order = np.argsort(np.arange(len(visits.swapped)) + delay * visits.second_won, kind="stable")
    return Visits(visits.swapped[order], visits.second_won[order])


def in_windows(visits: Visits, delay: int, window: int) -> Visits:
    """What the service makes of the same clicks: in order of display; what comes after the window is never counted."""
    in_time = delay * visits.second_won <= window
    return Visits(visits.swapped[in_time], visits.second_won[in_time])


def as_pages(visits: Visits) -> Pages:
    """The pages as a log that a learner folds."""
    pages = new_pages(len(visits.swapped), 2, 3)
    pages.places[:], pages.end[:, :2], pages.challenger[:] = 2, 2, NO_ITEM
    pages.round[:] = 2 * np.arange(1, len(visits.swapped) + 1)  # the first two places are a pair in even rounds
    pages.ranking[:, 0], pages.ranking[:, 1] = visits.swapped, ~visits.swapped
    upper_won = visits.swapped == visits.second_won
    pages.clicks[:, 0], pages.clicks[:, 1] = upper_won, ~upper_won
    return pages


def decided(visits: Visits, rule: str) -> bool:
    """True when a learner declares the pair decided at any time, in either direction."""
    learner = Learner("kl-ucb-br", original=["first", "second"], rule=rule, horizon=INFORMATIVE)
    pages, workspace, done = as_pages(visits), new_workspace(2, 3), 0
    while done < len(visits.swapped) and not learner.certificates():
        done = learner.fold(pages, workspace, done)
    return bool(learner.certificates())


def false_rate(draw: Callable[[Random], Visits], *, rule: str = "paper:1e-5", runs: int = 1000, seed: int = 1) -> float:
    """The share of runs in which two equal items were declared decided."""
    streams = np.random.SeedSequence(seed).spawn(runs)
    return float(np.mean([decided(draw(np.random.default_rng(each)), rule) for each in streams]))


def late(delay: int) -> tuple[Callable[[Random], Visits], Callable[[Random], Visits]]:
    """Item-dependent delay, counted in order of arrival and in windows that are longer than the delay."""
    return (
        lambda random: in_order_of_arrival(fair_visits(random), delay),
        lambda random: in_windows(fair_visits(random), delay, window=2 * delay),
    )


def repeated(clicks_each: int) -> tuple[Callable[[Random], Visits], Callable[[Random], Visits]]:
    """One user with several clicks, all counted, and one counted page for each user (session and window)."""
    users = -(-INFORMATIVE // clicks_each)
    return lambda random: crowds(random, clicks_each), lambda random: fair_visits(random, users)


def rows() -> list[tuple[str, Callable[[Random], Visits], Callable[[Random], Visits] | None]]:
    """What goes wrong, how the clicks come then, and how they are counted by the service if it has a remedy."""
    table: list[tuple[str, Callable[[Random], Visits], Callable[[Random], Visits] | None]] = [
        (f"clicks of one item come {delay} informative pages late", *late(delay)) for delay in (100, 200)
    ]
    table += [(f"every user clicks {times} times, for one item", *repeated(times)) for times in (5, 10, 20)]
    for lost in (0.1, 0.2):
        table.append((f"one item loses {lost:.0%} of its clicks", _biased(1 / (2 - lost)), None))
    for spam in (0.05, 0.1):
        table.append((f"{spam:.0%} of the clicks are spam for one item", _biased((1 + spam) / 2), None))
    return table


def _biased(first_wins: float) -> Callable[[Random], Visits]:
    return lambda random: biased_visits(random, first_wins)


def print_breaches(runs: int, rule: str) -> None:
    """Print the table of docs/reference/service-figures.md, measured here."""
    print(f"false certification of two equal items within {INFORMATIVE:,} informative clicks, rule {rule},")
    print(f"{runs} runs each (standard error at most {0.5 / runs**0.5:.3f})\n")
    print(f"{'what breaks it':55s} {'counted as it comes':>20s} {'by the service':>15s}")
    for what, raw, remedy in rows():
        found = false_rate(raw, rule=rule, runs=runs)
        kept = "no remedy" if remedy is None else f"{false_rate(remedy, rule=rule, runs=runs):.3f}"
        print(f"{what:55s} {found:20.3f} {kept:>15s}", flush=True)


def print_draws(runs: int) -> None:
    """Print the table of docs/algorithms/evidence.md, measured here."""
    print("\nfalse certification of equal items by safe-draw; runs that certified an ordered pair chosen beforehand;")
    print(f"a policy that keeps alpha exceeds what is allowed with probability at most {SURPRISE:g};")
    print("then the share of all ordered pairs of equal items that were certified (standard error over runs)\n")
    for line in table(runs):
        print(line, flush=True)


def main() -> None:
    """Print the tables of docs/reference/service-figures.md and docs/algorithms/evidence.md, measured here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rule", default="paper:1e-5")
    parser.add_argument("--draws", type=int, default=1000, help="runs of safe-draw for each model and level")
    parser.add_argument("--only-draws", action="store_true")
    options = parser.parse_args()
    if not options.only_draws:
        print_breaches(options.runs, options.rule)
    print_draws(options.draws)


if __name__ == "__main__":
    main()
