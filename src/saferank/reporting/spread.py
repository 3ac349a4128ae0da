"""What means hide: single queries, and the worst pages in clicks, beside the original ranking.

A policy is *better* or *worse* on a query when its regret differs from OriginalRank's by more than chance (Student's t
at 5 %); else they are *equal*. A single repetition does not tell. On a query where the original ranking is the best
one, OriginalRank has no regret: the share is infinite there, and every policy that explores is worse.

Safety in clicks: expected clicks beside those of the original ranking, on the worst page and summed up early on.

The measures are those of the runs: ``worst_page`` is the smallest ratio of a single page, ``clicks_relative`` the ratio
of all pages so far. Violations count pairs that are the wrong way round; this says what they cost.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from polars import DataFrame, col

from saferank.reporting.claims import SAFE
from saferank.reporting.figures.by_query import by_query_figure
from saferank.reporting.frames import ends_of
from saferank.reporting.looks import ORIGINAL, curve_name, model_name, policy_name
from saferank.reporting.numbers import Measured, counted, is_clear, listed, plainly
from saferank.reporting.pooling import tails_of
from saferank.reporting.reading import Run
from saferank.reporting.sections import Section, Studio
from saferank.table import TextTable
from saferank.verbs import Ints

_NOTHING = 1e-6
BETTER, EQUAL, WORSE = "better", "equal", "worse"


@dataclass(frozen=True)
class Share:
    """One policy on one query: its regret as a share of OriginalRank's, infinite where that has none."""

    instance: str
    share: float
    outcome: str | None  # None: a single repetition does not tell


@dataclass(frozen=True)
class Spread:
    """One policy under one click model over all queries, sorted by share."""

    policy: str
    model: str
    shares: list[Share]
    high: float | None  # regret that 99 % of the runs stay below; None without runs
    worst: float | None  # the largest regret of a run
    worst_on: str | None

    @property
    def judged(self) -> bool:
        """False where single repetitions leave everything open."""
        return all(each.outcome is not None for each in self.shares)

    def count(self, outcome: str) -> int:
        """On how many queries."""
        return sum(each.outcome == outcome for each in self.shares)

    @property
    def counts(self) -> str:
        """Better, equal, worse.

        >>> Spread("p", "cm", [Share("q", 0.5, BETTER), Share("r", 2.0, WORSE)], None, None, None).counts
        '1 / 0 / 1'
        """
        if not self.judged:
            return "-"
        return " / ".join(str(self.count(outcome)) for outcome in (BETTER, EQUAL, WORSE))

    @property
    def median(self) -> str:
        """The share in the middle."""
        return in_words(float(np.median([each.share for each in self.shares])))

    @property
    def largest(self) -> str:
        """The largest share that is finite, and how many are not."""
        finite = [each.share for each in self.shares if math.isfinite(each.share)]
        return in_words(max(finite)) if finite else "-"

    @property
    def name(self) -> str:
        """The policy's title."""
        return curve_name(self.policy)

    @property
    def tail(self) -> str:
        """Regret of the run at 99 % and of the worst run."""
        if self.high is None or self.worst is None:
            return "-"
        return f"{plainly(round(self.high, 1))} / {plainly(round(self.worst, 1))}"


def spreads(means: DataFrame, runs: DataFrame | None = None) -> dict[str, list[Spread]]:
    """By click model the spread of every policy but OriginalRank; models without OriginalRank are left out."""
    ends, tails = ends_of(means), {}
    if runs is not None:
        rows = tails_of(ends_of(runs)).iter_rows(named=True)
        tails = {(r["model"], r["policy"]): (r["quantiles"]["0.99"], r["worst"], r["worst_instance"]) for r in rows}
    original = ends.filter(policy=ORIGINAL)
    both = ends.filter(col("policy") != ORIGINAL).join(
        original, on=["model", "instance"], suffix="_original", maintain_order="left"
    )
    found: dict[str, list[Spread]] = {}
    for group in both.partition_by("model", "policy", maintain_order=True):
        model, policy = group["model"][0], group["policy"][0]
        rows = group.iter_rows(named=True)
        shares = [share_of(row["instance"], _regret(row), _regret(row, "_original")) for row in rows]
        tail = tails.get((model, policy), (None, None, None))
        found.setdefault(model, []).append(Spread(policy, model, sorted(shares, key=lambda each: each.share), *tail))
    return found


def _regret(row: Mapping[str, Any], of: str = "") -> Measured:
    return Measured(row[f"regret_mean{of}"], row[f"regret_stderr{of}"], row[f"repetitions{of}"] - 1)


def share_of(instance: str, own: Measured, base: Measured) -> Share:
    """The regret of a policy on a query beside OriginalRank's."""
    above, stderr, freedom, _ = own.minus(base)
    difference = above if abs(above) > _NOTHING else 0.0
    clear = is_clear(difference, stderr, freedom if stderr else min(own.freedom, base.freedom))
    outcome = None if clear is None else EQUAL if not clear else BETTER if difference < 0 else WORSE
    share = own.mean / base.mean if base.mean > _NOTHING else (1.0 if difference == 0 else math.inf)
    return Share(instance, share, outcome)


def in_words(share: float) -> str:
    """A share with two digits behind the point.

    >>> in_words(0.2314), in_words(math.inf)
    ('0.23', '∞')
    """
    return "∞" if math.isinf(share) else f"{share:,.2f}"


def finding(found: Mapping[str, Sequence[Spread]], policies: Sequence[str]) -> list[str]:
    """For each of these policies and click models on how many queries it is worse, in a sentence."""
    sentences = []
    for policy in policies:
        own = [each for of_model in found.values() for each in of_model if each.policy == policy and each.judged]
        each = [f"{s.count(WORSE)} of {len(s.shares)} under {s.model.upper()}" for s in own]
        if each:
            sentences.append(f"{curve_name(policy)} has more regret than {policy_name(ORIGINAL)} on {listed(each)}.")
    return sentences


def by_query_section(run: Run, runs: DataFrame | str, studio: Studio) -> Section:
    """Every policy beside OriginalRank on every query."""
    found = spreads(run.means, None if isinstance(runs, str) else runs)
    original, title = policy_name(ORIGINAL), "Query by query"
    if not found:
        return Section(
            "by-query", title, left_out=f"Left out. There are no results of another policy beside {original}."
        )
    found = {model: found[model] for model in run.models if model in found}
    caption = (
        f"Regret of each policy on each query at the last round, as a share of {original}'s on the same query; each "
        f"dot is a query, sorted. Dots on the shaded side are queries on which the policy has more regret than showing "
        f"the original ranking forever. Triangles at the edge lie beyond it; there {original} has no regret, or hardly "
        "any."
    )
    parts = [(by_query_figure({model: own}), _in_one_breath(model, own)) for model, own in found.items()]
    drawing = studio.drawing("by_query", "Figure 4", caption, by_query_figure(found, studio.options), parts)
    hidden = "Means over queries hide the queries on which a policy costs clicks."
    words = " ".join([hidden, *finding(found, [policy for policy in run.policies if policy in SAFE])])
    return Section("by-query", title, [words], drawing=drawing, tables=[_by_query_table(found, runs)])


def _by_query_table(found: Mapping[str, Sequence[Spread]], runs: DataFrame | str) -> TextTable:
    original = policy_name(ORIGINAL)
    single = "" if all(each.judged for own in found.values() for each in own) else "; a single repetition does not tell"
    last = f"Single runs are left out: {runs}" if isinstance(runs, str) else "The last columns are about single runs."
    caption = (
        f"Queries on which a policy is better or worse: its regret differs from {original}'s by more than chance "
        f"(Student's t at 5 %){single}. A share is regret divided by {original}'s on the same query; ∞ where that has "
        f"none. {last}"
    )
    tail = [] if isinstance(runs, str) else ["99 % / worst run", "worst on query"]
    columns = ["model", "policy", "better / equal / worse", "median share", "largest finite share", *tail]
    rows = [
        [
            model_name(model),
            each.name,
            each.counts,
            each.median,
            each.largest,
            *[each.tail, each.worst_on or ""][: len(tail)],
        ]
        for model, own in found.items()
        for each in own
    ]
    return TextTable("Query by query", columns, rows, caption, names=2, key="by-query")


def _in_one_breath(model: str, spreads: Sequence[Spread]) -> str:
    each = "; ".join(f"{spread.name} {spread.counts}, median share {spread.median}" for spread in spreads)
    head = f"{model_name(model)}. Queries on which a policy is better than {policy_name(ORIGINAL)}, equal, worse"
    return f"{head}: {each}."


PAGES = (100, 1_000, 10_000)


def clicks_section(runs: DataFrame | str, models: Sequence[str], policies: Sequence[str]) -> Section:
    """Clicks relative to the original's: of the worst page, and of the first pages."""
    title = "Safety in clicks"
    if isinstance(runs, str):
        return Section("clicks", title, left_out=f"Left out. {runs}", short="Clicks")
    rounds = runs["round"].unique().sort().to_numpy()
    early = [int(rounds[place]) for place in early_places(rounds)]
    ratios = [("worst_page", int(rounds[-1])), *(("clicks_relative", each) for each in early)]
    values = [col(name).filter(col("round") == each) for name, each in ratios]
    found = runs.group_by("model", "policy").agg(
        each.alias(f"{place}") for place, each in enumerate(e for v in values for e in (v.mean(), v.min()))
    )
    ends = {(model, policy): list(zip(row[::2], row[1::2], strict=True)) for model, policy, *row in found.rows()}
    rows = [
        [model_name(model), curve_name(policy), *(f"{mean:.3f} ({low:.3f})" for mean, low in ends[model, policy])]
        for model in models
        for policy in policies
        if (model, policy) in ends
    ]
    words = (
        "Violations count pages with too many pairs the wrong way round. This table is about clicks: those expected, "
        "divided by those of the original ranking, of the worst single page of a run, and of all pages up to a round. "
        "Below 1 is a loss."
    )
    caption = "Expected clicks relative to the original ranking's: mean over all runs and queries (lowest run)."
    columns = ["model", "policy", "worst page", *(f"first {counted(each, 'page')}" for each in early)]
    table = TextTable(title, columns, rows, caption, names=2, key="clicks")
    return Section("clicks", title, [words], tables=[table], short="Clicks")


def early_places(rounds: Ints) -> list[int]:
    """The kept checkpoints nearest to 100, 1,000 and 10,000 pages that the run has, and the last one.

    >>> early_places(np.array([10, 121, 1000, 5000])), early_places(np.array([40]))
    ([1, 2, 3], [0])
    """
    wanted = [pages for pages in PAGES if pages <= rounds[-1]]
    nearest = [int(np.argmin(np.abs(np.log(rounds / pages)))) for pages in wanted]
    return list(dict.fromkeys([*nearest, len(rounds) - 1]))
