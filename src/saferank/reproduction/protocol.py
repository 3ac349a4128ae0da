"""What a reproduction runs: the profiles, and the protocol that the arguments of ``saferank.reproduce`` make of one."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from saferank.errors import ArgumentError, argument, unknown, whole_number
from saferank.fitting.fit import checked_models
from saferank.instances import Instance, check_positions, load_instances
from saferank.logs import FORMATS
from saferank.logs.records import LONGEST_PAGE, RANKING_LENGTH
from saferank.policies.registry import OURS, PAPER, policies_of, policy_kind
from saferank.simulation.experiment import DEFAULT_RULE, Plan
from saferank.statistics.decision import decision_rule

EMBEDDED = "embedded"
PARTS = ("additions", "sensitivity", "study")
"""What is played besides the paper's own experiment: our own policies beside its five, and two studies."""


@dataclass(frozen=True)
class Sizes:
    """How much is played; rounds and everything else are the paper's in all profiles."""

    queries: int
    repetitions: int
    sessions: int  # of the synthetic log
    sensitivity_queries: int
    sensitivity_repetitions: int
    study_queries: int  # of each set
    study_repetitions: int


PROFILES = {
    "quick": Sizes(20, 10, 100_000, 10, 10, 10, 5),
    "paper": Sizes(100, 100, 300_000, 20, 20, 20, 20),
}


@dataclass(frozen=True)
class Protocol:
    """Everything that the results depend on, apart from the log."""

    profile: str
    sizes: Sizes
    policies: tuple[str, ...]
    models: tuple[str, ...]
    rule: str
    positions: int
    items: int
    rounds: int
    seed: int
    iterations: int
    parts: tuple[str, ...]
    page_length: int | None = None  # of the rankings; None: 10 where a query has such a page, else its most frequent

    def __post_init__(self) -> None:
        self.plan()

    def plan(self, repetitions: int | None = None, **changes: Any) -> Plan:
        """How the paper's experiment is played, or another part with these changes."""
        given = {"policies": self.policies, "rule": self.rule, **changes}
        return Plan(
            n_positions=self.positions,
            rounds=self.rounds,
            repetitions=self.sizes.repetitions if repetitions is None else repetitions,
            seed=self.seed,
            **given,
        )

    def facts(self) -> dict[str, Any]:
        """The protocol as it is kept in a file."""
        facts = asdict(self)
        return {**facts.pop("sizes"), **{key: list(v) if isinstance(v, tuple) else v for key, v in facts.items()}}


MOST = 10**6
"""The largest number of queries and of repetitions."""


@dataclass(frozen=True)
class ReproductionRequest:
    """The arguments of ``reproduce`` that results depend on; None stands for what the profile says."""

    profile: str = "quick"
    log: Path | None = None
    format: str | None = None
    policies: Sequence[str] | None = None
    models: Sequence[str] = ("pbm", "cm")
    rule: str = DEFAULT_RULE
    positions: int = 5
    items: int = RANKING_LENGTH
    rounds: int = 100_000
    repetitions: int | None = None
    queries: int | None = None
    sessions: int | None = None
    iterations: int = 50
    seed: int = 0
    without: Sequence[str] = ()
    study_instances: Path | None = None
    max_bad: float = 0.01
    plugins: Sequence[str] = ()
    page_length: int | None = None
    optimal: str | None = None  # ids of the paper's two special queries; None: those that come nearest
    none_of_best: str | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "ReproductionRequest":
        """From the arguments of ``reproduce`` by name: the fields of this class are those that results depend on."""
        given = {each.name: arguments[each.name] for each in fields(cls)}
        paths = {name: Path(given[name]) for name in ("log", "study_instances") if given[name] is not None}
        lists = {name: tuple(given[name]) for name in ("models", "without", "plugins")}
        numbers = {name: whole_number(given[name], name) for name in ("positions", "items", "rounds")}
        return cls(**{**given, **paths, **lists, **numbers})

    def protocol(self) -> Protocol:
        """What is run: the profile, changed by the arguments that were given."""
        parts = self._parts()
        policies = self._policies(parts)
        models = checked_models(self.models)
        with argument("rule"):
            decision_rule(self.rule, self.rounds)
        self._check_lengths()
        with argument("items"):
            return Protocol(
                profile=self.profile,
                sizes=self._sizes(),
                policies=policies,
                models=models,
                rule=self.rule,
                positions=self.positions,
                items=self.items,
                rounds=whole_number(self.rounds, "rounds"),
                seed=self.seed,
                iterations=whole_number(self.iterations, "iterations"),
                parts=parts,
                page_length=self.page_length,
            )

    def _check_lengths(self) -> None:
        """Positions fit on a page and among the items; the synthetic log has pages of ten items and no others."""
        if self.page_length is not None:
            whole_number(self.page_length, "page_length", at_most=LONGEST_PAGE)
        page = self.page_length or (RANKING_LENGTH if self.log is None else LONGEST_PAGE)
        if self.positions > page:
            raise ArgumentError("positions", f"found {self.positions}, expected at most {page}, a page of the log")
        if self.items < self.positions:
            raise ArgumentError("items", f"found {self.items}, expected at least {self.positions}, the positions")
        if self.log is None:
            for name, length in (("page_length", page), ("items", self.items)):
                if length > RANKING_LENGTH or (name == "page_length" and length < RANKING_LENGTH):
                    has = f"the synthetic log has {RANKING_LENGTH} items a query, all of them on every page"
                    raise ArgumentError(name, f"found {length}, but {has}; name a log of your own")

    def _policies(self, parts: Sequence[str]) -> tuple[str, ...]:
        """The given ones; else the paper's and, unless the additions are left out, ours."""
        if self.policies is None:
            return policies_of(PAPER) + (self._additions() if "additions" in parts else ())
        with argument("policies"):
            return tuple(policy_kind(name).name for name in self.policies)

    def _additions(self) -> tuple[str, ...]:
        """Ours that take the rule of the run; where none was asked for, every policy has its own."""
        kind_of_rule = self.rule.partition(":")[0]
        return tuple(
            name for name in policies_of(OURS) if self.rule == DEFAULT_RULE or kind_of_rule in policy_kind(name).rules
        )

    def _sizes(self) -> Sizes:
        """The sizes of the profile; smaller parts shrink with the experiment, but do not grow with it."""
        if self.profile not in PROFILES:
            raise ArgumentError("profile", unknown("profile", self.profile, PROFILES))
        usual = PROFILES[self.profile]
        queries = _given(self.queries, "queries", usual.queries)
        repetitions = _given(self.repetitions, "repetitions", usual.repetitions)
        return replace(
            usual,
            queries=queries,
            repetitions=repetitions,
            sessions=self._sessions(usual.sessions),
            sensitivity_queries=min(usual.sensitivity_queries, queries),
            sensitivity_repetitions=min(usual.sensitivity_repetitions, repetitions),
            study_queries=min(usual.study_queries, queries),
            study_repetitions=min(usual.study_repetitions, repetitions),
        )

    def _sessions(self, usual: int) -> int:
        if self.log is not None and self.sessions is not None:
            raise ArgumentError("sessions", "is about the synthetic log; leave it out with a log of your own")
        if self.log is not None and self.format is None:
            raise ArgumentError("log", f"needs its format: {', '.join(FORMATS)}")
        if self.log is None and self.format is not None:
            raise ArgumentError("format", "is the format of a log of your own; name the log, or leave it out")
        return usual if self.sessions is None else whole_number(self.sessions, "sessions")

    def _parts(self) -> tuple[str, ...]:
        for name in self.without:
            if name not in PARTS:
                raise ArgumentError("without", unknown("part", name, PARTS))
        return tuple(part for part in PARTS if part not in self.without)

    def study_sets(self) -> dict[str, list[Instance]]:
        """The instance set of ``study_instances`` by the name of its file, every one fit for the study."""
        path = self.study_instances
        if path is None:
            return {}
        with argument("study_instances"):
            instances = load_instances(path)
            for instance in instances:
                check_positions(instance, self.positions, str(path))
        return {path.stem if path.stem != EMBEDDED else path.name: instances}

    def facts(self, protocol: Protocol) -> dict[str, Any]:
        """Everything that results depend on, as it is kept to be compared with when a run is resumed."""
        log = self.log
        return {
            **protocol.facts(),
            "log": None if log is None else log.name,
            "log_bytes": log.stat().st_size if log is not None and log.is_file() else None,
            "format": self.format,
            "max_bad": self.max_bad,
            "optimal": self.optimal,
            "none_of_best": self.none_of_best,
            "study_instances": None if self.study_instances is None else _digest(self.study_instances),
            "plugins": {name: _digest(Path(name)) if Path(name).is_file() else None for name in self.plugins},
        }


def _given(value: int | None, name: str, usual: int) -> int:
    return usual if value is None else whole_number(value, name, at_most=MOST)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
