"""The study beyond the paper: the anytime rule beside the paper's, at the same provable error, by click model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from saferank.reporting.claims.questions import final_regret, final_violations
from saferank.reporting.looks import model_name, policy_name
from saferank.reporting.numbers import Measured, ratio
from saferank.reporting.pooling import Pooled, pooled
from saferank.reporting.reading import Run
from saferank.simulation.results import Result


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
