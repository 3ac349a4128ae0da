"""Two studies from results alone: when the click model is wrong, and the anytime rule beside the paper's.

The results are those of ``saferank simulate`` with such policies and several click models: the file that was named, or
``model-study.json`` beside the main results, or the main results themselves.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from saferank.policies.registry import PAPER, PEER, policies_of
from saferank.reporting.claims import final_regret, final_violations
from saferank.reporting.data import data_of
from saferank.reporting.looks import model_name, policy_name
from saferank.reporting.numbers import Measured, ratio
from saferank.reporting.pooling import Pooled, pooled
from saferank.reporting.reading import Run, read_run
from saferank.simulation.model_study import Estimate, StudyLine, lines_of, made_for
from saferank.simulation.results import Result

FILE = "model-study.json"
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
    lines: dict[tuple[str, str], StudyLine]
    rules: dict[str, str]  # by policy, where they differ

    def name(self, policy: str) -> str:
        """A policy's title, with its rule where rules differ."""
        rule = self.rules.get(policy)
        return policy_name(policy) + (f" ({rule})" if rule else "")

    @property
    def queries(self) -> int:
        """How many queries every line averages."""
        return max(line.queries for line in self.lines.values())

    @property
    def repetitions(self) -> int:
        """How often each was played."""
        return max(line.repetitions for line in self.lines.values())

    def rows(self, measure: str) -> list[tuple[str, list[tuple[str, bool]]]]:
        """A policy's name, and by click model its mean with both errors and whether it was made for that model."""
        return [(self.name(p), [self._cell(p, model, measure) for model in self.models]) for p in self.policies]

    def _cell(self, policy: str, model: str, measure: str) -> tuple[str, bool]:
        line = self.lines.get((policy, model))
        return ("not run", False) if line is None else (in_words(getattr(line, measure)), line.role == "matching")


def model_study_of(main: Run, given: Path | None) -> ModelStudy | str:
    """The study, or why there is none."""
    beside = main.path.with_name(FILE)
    run = read_run(given) if given is not None else read_run(beside) if beside.is_file() else main
    specific = [policy for policy in run.policies if made_for(policy)]
    if not specific or len(run.models) < 2:
        return _HOW
    lines = {(line.policy, line.model): line for line in lines_of(run.results)}
    rounds = max(result.rounds[-1] for result in run.results)
    return ModelStudy(run.path, data_of(run).name, rounds, run.models, run.policies, lines, run.rules)


def in_words(estimate: Estimate) -> str:
    """A mean and its standard errors within and across queries.

    >>> in_words(Estimate(1007.3, 37.2, None)), in_words(Estimate(0.0, 0.0, 0.0))
    ('1,007 (37, -)', '0 (0, 0)')
    """
    return f"{_number(estimate.mean)} ({_number(estimate.within)}, {_number(estimate.across)})"


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
    lines = [line for line in study.lines.values() if line.role in roles]
    violating = [line for line in lines if line.violations.mean > 0]
    if not lines:
        return ""
    if not violating:
        return f"{who} violated safety in none of {len(lines)} cells of the table."
    most = max(violating, key=lambda line: line.violations.mean)
    where = f"{policy_name(most.policy)} under {model_name(most.model)}"
    many = f"{len(violating)} of {len(lines)} cells of the table"
    return f"{who} violated safety in {many}, most in that of {where}: {_number(most.violations.mean)} pages a run."


def _regret(study: ModelStudy, policy: str) -> str:
    """How a policy does away from its model, beside the best agnostic one there."""
    worse = []
    for model in study.models:
        own = study.lines.get((policy, model))
        rivals = [line.regret.mean for (_, m), line in study.lines.items() if m == model and line.role == "agnostic"]
        if own is not None and own.role == "foreign" and rivals and own.regret.mean > min(rivals):
            worse.append(model_name(model))
    home = made_for(policy) or ""
    others = [model for model in study.models if model != home]
    if not others or not any(line.role == "agnostic" for line in study.lines.values()):
        return ""
    under = f"under {', '.join(worse)}" if worse else "under none of the others"
    return (
        f"{policy_name(policy)} was made for {model_name(home)}; away from it, its regret exceeds that of "
        f"the best agnostic policy {under}."
    )


@dataclass(frozen=True)
class StudyOutcome:
    """The results of one rule."""

    rule: str
    regret: Measured
    violations: Measured
    wrong_certificates: float | None


@dataclass(frozen=True)
class StudyPair:
    """Both rules, for one policy under one click model, on the same queries."""

    policy: str
    model: str
    queries: int
    repetitions: int
    rounds: int
    paper: StudyOutcome
    anytime: StudyOutcome

    @property
    def same_level(self) -> bool:
        """True when as much is proved of either rule."""
        levels = [_level(outcome.rule, self.rounds) for outcome in (self.paper, self.anytime)]
        return None not in levels and math.isclose(levels[0] or 0.0, levels[1] or 0.0, rel_tol=1e-9)

    @property
    def ratio(self) -> Measured | None:
        """The anytime rule's regret as a share of the paper rule's."""
        return ratio(self.anytime.regret, self.paper.regret)


def study_pairs(run: Run, sets: Mapping[str, object]) -> dict[str, list[StudyPair]]:
    """Pairs by set of instances (the first one that names them); what is in no set stands under ``other instances``."""
    members: dict[str, set[str]] = {}
    named: set[str] = set()
    for name, ids in sets.items():
        if isinstance(ids, list):
            members[name] = {id for id in ids if isinstance(id, str)} - named
            named |= members[name]
    rest = {result.instance for result in run.results} - named
    groups = members | ({"other instances" if members else "all instances": rest} if rest else {})
    found = {name: _pairs(run, [r for r in run.results if r.instance in ids]) for name, ids in groups.items()}
    return {name: pairs for name, pairs in found.items() if pairs}


def _pairs(run: Run, results: list[Result]) -> list[StudyPair]:
    cells = [(policy, model) for policy in run.policies for model in run.models]
    pairs = [_pair([r for r in results if (r.policy, r.model) == cell]) for cell in cells]
    return [pair for pair in pairs if pair is not None]


def _pair(results: list[Result]) -> StudyPair | None:
    paper = [result for result in results if (result.rule or "").startswith("paper:")]
    anytime = [result for result in results if (result.rule or "").startswith("anytime:")]
    if not paper or {r.instance for r in paper} != {r.instance for r in anytime}:
        return None
    first = paper[0]
    return StudyPair(
        policy_name(first.policy),
        model_name(first.model),
        len(paper),
        first.repetitions,
        first.rounds[-1],
        _outcome(paper),
        _outcome(anytime),
    )


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


def _outcome(results: list[Result]) -> StudyOutcome:
    curve: Pooled
    (curve,) = pooled(results)
    wrong = None if curve.wrong_certificates is None else float(curve.wrong_certificates[-1])
    return StudyOutcome(results[0].rule or "", final_regret(curve), final_violations(curve), wrong)
