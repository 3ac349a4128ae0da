"""How much results depend on what the paper leaves open: each variant beside the default.

Variants are known by their names: ``bubble-rank:all-candidates`` is a variant of a policy, ``(candidates reversed)``
behind an instance is another order for ties, and any rule other than the run's own is another decision rule.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polars import DataFrame, Expr, col, concat, lit

from saferank.reporting.claims import ALL, PHRASES, Place
from saferank.reporting.frames import in_order
from saferank.reporting.looks import model_name, policy_name
from saferank.reporting.numbers import Measured, counted, ratio
from saferank.reporting.pooling import Pooled, pooled
from saferank.reporting.reading import Run
from saferank.reporting.readings import WORDS
from saferank.reporting.sections import Section
from saferank.table import DEFAULT, MarkedCell, TextTable

REVERSED = " (candidates reversed)"


@dataclass(frozen=True)
class Variant:
    """One way to fill what the paper leaves open, for one policy."""

    policy: str
    change: str | None
    rule: str | None
    reversed: bool

    def words(self, default: "Variant") -> str:
        """What is different from the default."""
        if self == default:
            return f"default ({self.rule})" if self.rule else "default"
        changes = [] if self.rule == default.rule else [f"rule {self.rule}"]
        changes += [WORDS.get(self.change, self.change)] if self.change else []
        changes += ["ties: candidates in reverse order"] if self.reversed else []
        return "; ".join(changes)


class Ending(NamedTuple):
    """A variant under one click model: where it ended, and its regret as a share of the default's."""

    curve: Pooled
    ratio: Measured | None


@dataclass(frozen=True)
class Row:
    """A variant under every click model; None where it was not run."""

    policy: str
    words: str
    is_default: bool
    endings: list[Ending | None]


def sensitivity_section(
    run: Run, companion: Run | str, without: Collection[str], places: Mapping[str, Place]
) -> Section:
    """Each variant beside the default, where such runs are beside the results."""
    title = "Sensitivity to what the paper leaves open"
    if isinstance(companion, str):
        return Section("sensitivity", title, left_out=f"Left out. {companion}", short="Sensitivity")
    kept = companion.means.filter(~col("policy").str.splitn(":", 2).struct.field("field_0").is_in(list(without)))
    part = Run(companion.path, kept, companion.provenance)
    made = sensitivity_tables(part, run.rule, run.means, places) if len(kept) else []
    if not made:
        return Section("sensitivity", title, left_out="Left out. There is nothing to compare.", short="Sensitivity")
    words = (
        "The decision rule and its parameter, the order in which ties are broken, which unranked items BubbleRank may "
        "try, and whether an item that is not shown can lose a duel. Each row changes one thing; the ratio is to the "
        "default on the same queries."
    )
    tables = [_table(name, rows, part.models, f"sensitivity-{n}") for n, (name, rows) in enumerate(made, 1)]
    return Section("sensitivity", title, [words], tables=tables, short="Sensitivity")


def _table(title: str, rows: Sequence[Row], models: Sequence[str], key: str) -> TextTable:
    def texts(ending: Ending | None) -> list[str]:
        if ending is None:
            return ["not run", "", "", ""]
        curve, ratio = ending
        return [str(curve.regret.end), str(ratio or ""), str(curve.violations.end), curve.wrong_in_the_end]

    columns = ["algorithm", "variant", *["regret", "ratio", "violations", "wrong certificates"] * len(models)]
    made = []
    for row in rows:
        cells = [row.policy, row.words, *(text for ending in row.endings for text in texts(ending))]
        made.append([MarkedCell(cell, DEFAULT if row.is_default else "") for cell in cells])
    caption = f"{title[:1].upper()}{title[1:]}: at the last round, averaged over queries; ± one standard error."
    groups = [("", 2), *((model_name(model), 4) for model in models)]
    return TextTable(f"Sensitivity: {title}", columns, made, caption, groups, names=2, key=key)


def varied(means: DataFrame) -> DataFrame:
    """The results with what they are a variant of: ``base``, the policy; ``query``; ``change`` and ``reversed``."""
    parts = col("policy").str.splitn(":", 2).struct.rename_fields(["base", "change"])
    return means.with_columns(
        parts.struct.unnest(),
        query=col("instance").str.strip_suffix(REVERSED),
        reversed=col("instance").str.ends_with(REVERSED),
    )


def _of(variant: Variant) -> Expr:
    """Which rows of ``varied`` results are of a variant."""
    return (
        (col("base") == variant.policy)
        & col("change").eq_missing(lit(variant.change))
        & col("rule").eq_missing(lit(variant.rule))
        & (col("reversed") == variant.reversed)
    )


def sensitivity_tables(
    run: Run, default_rule: str | None, main: DataFrame, places: Mapping[str, Place]
) -> list[tuple[str, list[Row]]]:
    """All queries that were varied together, then each special query alone: a title and rows for each."""
    own = varied(run.means)
    queries = in_order(own, "query")
    together = f"{counted(len(queries), 'query', 'queries')} together"
    tables: list[tuple[str, Sequence[str], Collection[str]]] = [(together, queries, run.models)]
    for key, place in places.items():
        proper = [model for model in run.models if model not in place.lapses]
        if key != ALL and place.instance in queries and proper:
            tables.append((f"{PHRASES[key]} alone".removeprefix("on "), [place.instance or ""], proper))
    made = []
    for title, wanted, models in tables:
        part = own.filter(col("query").is_in(wanted), col("model").is_in(list(models)))
        usual = varied(main).filter(col("query").is_in(wanted))
        made.append((title, sensitivity_rows(part, default_rule, usual, run.models)))
    return [(title, rows) for title, rows in made if rows]


def sensitivity_rows(own: DataFrame, default_rule: str | None, main: DataFrame, models: Sequence[str]) -> list[Row]:
    """The table of varied results, defaults first; what they lack as a default is looked up in the ``main`` results."""
    there = own.select("base", "change", "rule", "reversed").unique(maintain_order=True)
    variants, rows = [Variant(*row) for row in there.rows()], []
    for policy in dict.fromkeys(variant.policy for variant in variants):
        rules = {variant.rule for variant in variants if variant.policy == policy}
        default = Variant(policy, None, default_rule if rules != {None} else None, reversed=False)
        others = [variant for variant in variants if variant.policy == policy and variant != default]
        rows += [_row(variant, default, own, main, models) for variant in (default, *others)]
    return [row for row in rows if any(row.endings)]


def _row(variant: Variant, default: Variant, own: DataFrame, main: DataFrame, models: Sequence[str]) -> Row:
    endings = [_ending(variant, default, own.filter(model=model), main.filter(model=model)) for model in models]
    return Row(policy_name(variant.policy), variant.words(default), variant == default, endings)


def _ending(variant: Variant, default: Variant, own: DataFrame, main: DataFrame) -> Ending | None:
    """Under one click model; where a default was played in both, it is taken from the varied results."""
    found, again = own.filter(_of(variant)), own.filter(_of(default))
    usual = concat([main.filter(_of(default), ~col("query").is_in(in_order(again, "query"))), again])
    if variant == default:
        found = usual.filter(col("query").is_in(in_order(own.filter(base=variant.policy), "query")))
    if found.is_empty():
        return None
    (curve,) = pooled(found.with_columns(policy="base"))
    compared, queries = None, in_order(found, "query")
    if variant != default and set(queries) <= set(in_order(usual, "query")):
        (base,) = pooled(usual.filter(col("query").is_in(queries)))
        compared = ratio(curve.regret.end, base.regret.end) if curve.rounds[-1] == base.rounds[-1] else None
    return Ending(curve, compared)
