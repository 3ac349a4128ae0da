"""How much results depend on what the paper leaves open, and on the rule: each variant beside the default.

Variants are known by their names: ``bubble-rank:all-candidates`` is a variant of a policy, ``(candidates reversed)``
behind an instance is another order for ties, and any rule other than the run's own is another decision rule.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

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
        """The differences from the default."""
        if self == default:
            return f"default ({self.rule})" if self.rule else "default"
        changes = [] if self.rule == default.rule else [f"rule {self.rule}"]
        changes += [WORDS.get(self.change, self.change)] if self.change else []
        changes += ["ties: candidates in reverse order"] if self.reversed else []
        return "; ".join(changes)


@dataclass(frozen=True)
class Row:
    """A variant under a click model: where it ended, and its regret as a share of the default's."""

    policy: str
    words: str
    is_default: bool
    curve: Pooled
    ratio: Measured | None


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
    tables = [_table(f"Sensitivity: {name}", rows, f"sensitivity-{n}") for n, (name, rows) in enumerate(made, 1)]
    return Section("sensitivity", title, [words], tables=tables, short="Sensitivity")


def study_section(run: Run, companion: Run | str) -> Section:
    """The anytime rule beside the paper's under all click models, where such runs are beside the results."""
    title, short = "Beyond the paper: a rule that holds at any time", "Anytime rule"
    if isinstance(companion, str):
        return Section("study", title, left_out=f"Left out. {companion}", short=short)
    named = run.reproduction.get("study_sets")
    found = {
        name: sensitivity_rows(varied(means), _RULES[0], varied(means.clear()), in_order(means, "model"))
        for name, means in study_sets(companion.means, named if isinstance(named, dict) else {}).items()
    }
    every = [row for rows in found.values() for row in rows]
    ratios = sorted(row.ratio.mean for row in every if row.ratio is not None)
    if not ratios:
        why = f"Left out. {companion.path.name} has no policy with both rules on the same queries."
        return Section("study", title, left_out=why, short=short)
    ends = dict.fromkeys(f"{share:.2f}" for share in (ratios[0], ratios[-1]))
    clean = all(row.curve.violations.end.mean == 0 and row.curve.wrong_in_the_end in "-0" for row in every)
    errors = "No run violated safety or decided a pair wrongly." if clean else "Not every run was free of errors."
    times = f"{' to '.join(ends)} times that with the paper rule"
    words = [f"With the anytime rule regret ends at {times}, depending on the users. {errors}"]
    if set(in_order(companion.means, "rule")) == set(_RULES):
        words.append(_SAME_LEVEL)
    tables = [_table(f"Study: {name}", rows, f"study-{n}") for n, (name, rows) in enumerate(found.items(), 1)]
    return Section("study", title, words, tables=tables, short=short)


_RULES = ("paper:1/T", "anytime:1/T")
_SAME_LEVEL = (
    "Of both rules the same probability of deciding a pair wrongly is proved: of the paper rule for the rounds of the "
    "run, of the anytime rule forever. The paper rule's actual error is far smaller than the proved one, and at the "
    "same actual error the saving vanishes: it is the part of the error that the proof of the paper rule leaves "
    "unused. The anytime rule needs no horizon."
)


def study_sets(means: DataFrame, sets: Mapping[str, object]) -> dict[str, DataFrame]:
    """Results by set of instances (the first one that names them); the rest stands under ``other instances``."""
    found: dict[str, DataFrame] = {}
    rest = means
    for name, ids in sets.items():
        if isinstance(ids, list):
            own = col("instance").is_in([id for id in ids if isinstance(id, str)])
            found[name], rest = rest.filter(own), rest.filter(~own)
    found["other instances" if found else "all instances"] = rest
    return {name: part for name, part in found.items() if len(part)}


def _table(title: str, rows: Sequence[Row], key: str) -> TextTable:
    made = []
    for row in rows:
        ends = [str(row.curve.regret.end), str(row.ratio or ""), str(row.curve.violations.end)]
        cells = [row.policy, row.words, model_name(row.curve.model), *ends, row.curve.wrong_in_the_end]
        made.append([MarkedCell(cell, DEFAULT if row.is_default else "") for cell in cells])
    columns = ["algorithm", "variant", "click model", "regret", "ratio", "violations", "wrong certificates"]
    first = rows[0].curve
    size = f"{counted(first.instances, 'query', 'queries')}, {counted(first.repetitions, 'repetition')}"
    caption = f"{title}: at the last round, averaged over queries ({size}); ± one standard error."
    return TextTable(title, columns, made, caption, names=3, key=key)


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
        cells = [(variant, own.filter(model=m), main.filter(model=m)) for variant in (default, *others) for m in models]
        rows += [_row(variant, default, played, usual) for variant, played, usual in cells]
    return [row for row in rows if row is not None]


def _row(variant: Variant, default: Variant, own: DataFrame, main: DataFrame) -> Row | None:
    """Under one click model; a default that was played in both is taken from the varied results. None: not played."""
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
    return Row(policy_name(variant.policy), variant.words(default), variant == default, curve, compared)
