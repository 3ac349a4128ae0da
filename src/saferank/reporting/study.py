"""Two studies from results alone: when the click model is wrong, and the anytime rule beside the paper's.

The results are those of ``saferank simulate`` with such policies and several click models: the file that was named, or
``model-study.json`` beside the main results, or the main results themselves.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from polars import DataFrame, col

from saferank.policies import POLICIES
from saferank.policies.registry import PAPER, PEER, policies_of
from saferank.reporting.data import data_of
from saferank.reporting.figures.study import model_study_figure, study_figure
from saferank.reporting.frames import in_order
from saferank.reporting.looks import model_name, policy_name
from saferank.reporting.numbers import Measured, counted, listed, ratio
from saferank.reporting.pooling import Pooled, pooled
from saferank.reporting.reading import Run, read_run
from saferank.reporting.sections import Section, Studio
from saferank.table import BEST, MarkedCell, Row, TextTable, text_of

FILE = "model-study.json"


def role_of(policy: str, model: str) -> str:
    """What a policy is under a click model: matching, foreign, agnostic, safe or original."""
    if policy == "original":
        return "original"
    if (home := made_for(policy)) is not None:
        return "matching" if home == model else "foreign"
    return "safe" if _registered(policy, "safe") else "agnostic"


def made_for(policy: str) -> str | None:
    """The click model that a policy assumes; None if it assumes none, or is a plug-in that is not loaded."""
    home: str | None = _registered(policy, "made_for")
    return home


def _registered(policy: str, part: str) -> Any:
    """A part of a policy's registration; a variant ``policy:reading`` has those of the policy."""
    return getattr(POLICIES.get(policy.partition(":")[0]), part, None)


_NOTHING = 1e-6
"""What is smaller is rounding of sums."""
_ENOUGH = (*(name for name in policies_of(PEER) if made_for(name)), *policies_of(PAPER))
_HOW = (
    "No results have policies that were made for a click model under several models. To get the study: saferank "
    "simulate embedded --policies " + ",".join(_ENOUGH) + " --out study, then "
    "saferank report RESULTS --model-study study/results.json."
)


@dataclass(frozen=True)
class ModelStudy:
    """The lines of the study by policy and click model."""

    path: Path
    data: str
    rounds: int
    models: list[str]
    policies: list[str]
    lines: dict[tuple[str, str], Pooled]
    rules: dict[str, str]  # by policy, where they differ

    def name(self, policy: str) -> str:
        """A policy's title, with its rule where rules differ."""
        rule = self.rules.get(policy)
        return policy_name(policy) + (f" ({rule})" if rule else "")

    def is_home(self, line: Pooled) -> bool:
        """True where a policy meets the click model for which it was made."""
        return role_of(line.policy, line.model) == "matching"

    def table(self, measure: str) -> TextTable:
        """By policy and click model means with both errors; those of the own click model are marked."""
        line = next(iter(self.lines.values()))
        size = f"{counted(line.instances, 'query', 'queries')} (standard error within queries, across queries)"
        what = {"regret": "Regret", "violations": "Violations a run"}[measure]
        caption = (
            f"{what} at {self.rounds:,} rounds: mean over {size}; {counted(line.repetitions, 'repetition')}. Marked: "
            "the click model for which a policy was made."
        )
        rows: list[Row] = [
            [self.name(p), *(self._cell(p, model, measure) for model in self.models)] for p in self.policies
        ]
        columns = ["algorithm", *map(model_name, self.models)]
        return TextTable(f"When the model is wrong: {what}", columns, rows, caption, key=f"model-study-{measure}")

    def _cell(self, policy: str, model: str, measure: str) -> MarkedCell:
        line = self.lines.get((policy, model))
        if line is None:
            return MarkedCell("not run")
        return MarkedCell(in_words(getattr(line, measure).end), BEST if self.is_home(line) else "")


def model_study_section(study: ModelStudy | str, studio: Studio) -> Section:
    """Policies under their own click model and under others."""
    title = "When the model is wrong"
    if isinstance(study, str):
        return Section("model-study", title, left_out=f"Left out. {study}", short="Wrong models")
    tables = [study.table(measure) for measure in ("regret", "violations")]
    parts = [
        (model_study_figure(study, measures=(measure,)), f"{measure.capitalize()} by click model. {_flat(table)}.")
        for measure, table in zip(("regret", "violations"), tables, strict=True)
    ]
    caption = (
        f"Regret and violations a run at {study.rounds:,} rounds. A ring marks a policy under the click model for "
        "which it was made. Bars are standard errors across queries."
    )
    whole = model_study_figure(study, studio.options)
    drawing = replace(studio, data=study.data).drawing("model_study", "Figure 6", caption, whole, parts)
    words = (
        "Some policies assume a click model. Here they meet users who follow it and users who follow another, beside "
        f"policies that assume none and safe ones. Data: {study.data} ({study.path.name})."
    )
    return Section("model-study", title, [words], findings(study), drawing, tables, short="Wrong models")


def _flat(table: TextTable) -> str:
    """A table in a sentence."""
    columns = [text_of(column) for column in table.columns[1:]]
    rows = [[text_of(cell) for cell in row] for row in table.rows]
    return "; ".join(
        f"{name}: {', '.join(f'{c} {text}' for c, text in zip(columns, rest, strict=True))}" for name, *rest in rows
    )


def model_study_of(main: Run, given: Path | None) -> ModelStudy | str:
    """The study, or why there is none."""
    beside = main.path.with_name(FILE)
    run = read_run(given) if given is not None else read_run(beside) if beside.is_file() else main
    specific = [policy for policy in run.policies if made_for(policy)]
    if not specific or len(run.models) < 2:
        return _HOW
    lines = {(line.policy, line.model): line for line in pooled(run.means)}
    return ModelStudy(run.path, data_of(run).name, run.rounds, run.models, run.policies, lines, run.rules)


def in_words(found: Measured) -> str:
    """A mean and its standard errors within and across queries.

    >>> in_words(Measured(1007.3, 37.2)), in_words(Measured(0.0, 0.0, across=0.0))
    ('1,007 (37, -)', '0 (0, 0)')
    """
    return f"{_number(found.mean)} ({_number(found.stderr)}, {_number(found.across)})"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return "0" if abs(value) < _NOTHING else f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"


def findings(study: ModelStudy) -> list[str]:
    """What the lines say about safety and about regret, in a sentence each."""
    sentences = [_safety(study, ("matching", "foreign"), "Policies made for a click model")]
    sentences.append(_safety(study, ("safe",), "Safe policies"))
    sentences += [_regret(study, policy) for policy in study.policies if made_for(policy)]
    return [sentence for sentence in sentences if sentence]


def _safety(study: ModelStudy, roles: Sequence[str], who: str) -> str:
    lines = [line for (p, m), line in study.lines.items() if role_of(p, m) in roles]
    violating = [line for line in lines if line.violations.end.mean > 0]
    if not lines:
        return ""
    if not violating:
        return f"{who} violated safety in none of {len(lines)} cells of the table."
    most = max(violating, key=lambda line: line.violations.end.mean)
    where = f"{policy_name(most.policy)} under {model_name(most.model)}"
    many = f"{len(violating)} of {len(lines)} cells of the table"
    return f"{who} violated safety in {many}, most in that of {where}: {_number(most.violations.end.mean)} pages a run."


def _regret(study: ModelStudy, policy: str) -> str:
    """How a policy does away from its model, beside the best agnostic one there."""
    worse = []
    for model in study.models:
        own = study.lines.get((policy, model))
        others = [line for (p, m), line in study.lines.items() if m == model and role_of(p, m) == "agnostic"]
        rivals = [line.regret.end.mean for line in others]
        foreign = role_of(policy, model) == "foreign"
        if own is not None and foreign and rivals and own.regret.end.mean > min(rivals):
            worse.append(model_name(model))
    home = made_for(policy) or ""
    away = [model for model in study.models if model != home]
    if not away or not any(role_of(*cell) == "agnostic" for cell in study.lines):
        return ""
    under = f"under {', '.join(worse)}" if worse else "under none of the others"
    return (
        f"{policy_name(policy)} was made for {model_name(home)}; away from it, its regret exceeds that of "
        f"the best agnostic policy {under}."
    )


def study_section(run: Run, companion: Run | str, studio: Studio) -> Section:
    """The anytime rule beside the paper's, where such runs are beside the results."""
    title, short = "Beyond the paper: a rule that holds at any time", "Anytime rule"
    if isinstance(companion, str):
        return Section("study", title, left_out=f"Left out. {companion}", short=short)
    named = run.reproduction.get("study_sets")
    sets = study_pairs(companion, named if isinstance(named, dict) else {})
    if not sets:
        why = f"Left out. {companion.path.name} has no policy with both rules on the same queries."
        return Section("study", title, left_out=why, short=short)
    parts = [(study_figure({name: pairs}), _set_in_words(name, pairs)) for name, pairs in sets.items()]
    caption = "Regret at the end under either rule; bars reach two standard errors to either side. The set called "
    caption += "embedded comes with saferank and is synthetic."
    drawing = replace(studio, data="").drawing("study", "Figure 5", caption, study_figure(sets), parts)
    level = _SAME_LEVEL if all(pair.same_level for pairs in sets.values() for pair in pairs) else _OTHER_LEVEL
    tables = [_set_table(name, pairs, f"study-{n}") for n, (name, pairs) in enumerate(sets.items(), 1)]
    return Section("study", title, [_finding(sets), level], drawing=drawing, tables=tables, short=short)


_SAME_LEVEL = (
    "Of both rules the same probability of deciding a pair wrongly is proved: of the paper rule for the rounds of the "
    "run, of the anytime rule forever. The paper rule's actual error is far smaller than the proved one, and at the "
    "same actual error the saving vanishes: it is the part of the error that the proof of the paper rule leaves "
    "unused. The anytime rule needs no horizon."
)
_OTHER_LEVEL = "The two rules are not set to the same provable error, so the ratio also shows that difference."


def _set_in_words(name: str, pairs: "Sequence[StudyPair]") -> str:
    ends = [(pair.model, pair.paper.regret.end, pair.anytime.regret.end) for pair in pairs]
    each = ", ".join(f"{model} {paper} with the paper rule, {anytime} anytime" for model, paper, anytime in ends)
    return f"{name}. Regret: {each}."


def _set_table(name: str, pairs: "Sequence[StudyPair]", key: str) -> TextTable:
    first = pairs[0]
    size = f"{counted(first.paper.instances, 'query', 'queries')}, {counted(first.paper.repetitions, 'repetition')}"
    rules = f"{first.policy}, {first.rules[0]} beside {first.rules[1]}"
    rows = [
        [
            pair.model, str(pair.paper.regret.end), str(pair.anytime.regret.end), str(pair.ratio or "-"),
            pair.paper.wrong_in_the_end, pair.anytime.wrong_in_the_end,
            str(pair.paper.violations.end), str(pair.anytime.violations.end),
        ]
        for pair in pairs
    ]  # fmt: skip
    groups = [("", 1), ("regret", 3), ("wrong certificates", 2), ("violations a run", 2)]
    columns = ["click model", "paper", "anytime", "ratio", "paper", "anytime", "paper", "anytime"]
    return TextTable(
        f"Study: {name}", columns, rows, f"{name}: {rules}; {size}; ± one standard error.", groups, key=key
    )


def _finding(sets: "Mapping[str, Sequence[StudyPair]]") -> str:
    """The study in two sentences."""
    pairs = [pair for of_set in sets.values() for pair in of_set]
    shares = sorted(pair.ratio.mean for pair in pairs if pair.ratio is not None)
    outcomes = [outcome for pair in pairs for outcome in (pair.paper, pair.anytime)]
    clean = all(outcome.violations.end.mean == 0 and outcome.wrong_in_the_end in "-0" for outcome in outcomes)
    safety = (
        "No run violated safety or decided a pair wrongly." if clean else "Not every run was free of errors: see below."
    )
    if not shares:
        return safety
    ends = list(dict.fromkeys(f"{share:.2f}" for share in (shares[0], shares[-1])))
    span = ends[0] if len(ends) == 1 else f"between {listed(ends)}"
    head = f"With the anytime rule regret ends at {span} times that with the paper rule, depending on the users."
    return f"{head} {safety}"


@dataclass(frozen=True)
class StudyPair:
    """Both rules, for one policy under one click model, on the same queries."""

    policy: str
    model: str
    rules: tuple[str, str]  # the paper's and the anytime one
    paper: Pooled
    anytime: Pooled

    @property
    def same_level(self) -> bool:
        """True when as much is proved of either rule."""
        levels = [_level(rule, int(self.paper.rounds[-1])) for rule in self.rules]
        return None not in levels and math.isclose(levels[0] or 0.0, levels[1] or 0.0, rel_tol=1e-9)

    @property
    def ratio(self) -> Measured | None:
        """The anytime rule's regret as a share of the paper rule's."""
        return ratio(self.anytime.regret.end, self.paper.regret.end)


def study_pairs(run: Run, sets: Mapping[str, object]) -> dict[str, list[StudyPair]]:
    """Pairs by set of instances (the first one that names them); what is in no set stands under ``other instances``."""
    members: dict[str, set[str]] = {}
    named: set[str] = set()
    for name, ids in sets.items():
        if isinstance(ids, list):
            members[name] = {id for id in ids if isinstance(id, str)} - named
            named |= members[name]
    rest = set(run.means["instance"]) - named
    groups = members | ({"other instances" if members else "all instances": rest} if rest else {})
    found = {name: _pairs(run.means.filter(col("instance").is_in(list(ids)))) for name, ids in groups.items()}
    return {name: pairs for name, pairs in found.items() if pairs}


def _pairs(means: DataFrame) -> list[StudyPair]:
    pairs = [
        _pair(means.filter(policy=policy, model=model))
        for policy in in_order(means, "policy")
        for model in in_order(means, "model")
    ]
    return [pair for pair in pairs if pair is not None]


def _pair(means: DataFrame) -> StudyPair | None:
    paper, anytime = (means.filter(col("rule").str.starts_with(kind)) for kind in ("paper:", "anytime:"))
    if paper.is_empty() or set(paper["instance"]) != set(anytime["instance"]):
        return None
    (first,), (second,) = pooled(paper), pooled(anytime)
    rules = paper["rule"][0], anytime["rule"][0]
    return StudyPair(policy_name(first.policy), model_name(first.model), rules, first, second)


def _level(rule: str, rounds: int) -> float | None:
    """The probability of deciding a pair wrongly within these rounds that is proved of a rule.

    The paper rule's lead of 2 sqrt(n log(1/delta)) is passed by chance with probability delta^2 at most at any one n
    (Hoeffding), so rounds * delta^2 in all, which is 1/T for delta = 1/T. What is proved of the anytime rule is alpha.

    >>> _level("paper:1/T", 1000), _level("anytime:1e-3", 1000), _level("paper:0.01", 1000), _level("mine", 1)
    (0.001, 0.001, 0.1, None)
    """
    kind, _, parameter = rule.partition(":")
    try:
        level = 1 / rounds if parameter == "1/T" else float(parameter)
    except ValueError:
        return None
    return min(1.0, rounds * level**2) if kind == "paper" else level
