"""When the click model is wrong: policies that were made for one, under it and under others.

The results are those of ``saferank simulate`` with such policies and several click models: the file that was named, or
``model-study.json`` beside the main results, or the main results themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from saferank.policies import POLICIES
from saferank.policies.registry import PAPER, PEER, policies_of
from saferank.reporting.data import data_of
from saferank.reporting.figures.study import model_study_figure
from saferank.reporting.looks import model_name, policy_name
from saferank.reporting.numbers import Measured, counted
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
"""Smaller differences are rounding of sums."""
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
    drawing = replace(studio, data=study.data).drawing("model_study", "Figure 5", caption, whole, parts)
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
