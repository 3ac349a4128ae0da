"""What a reproduction runs: its arguments, spelt once.

The fields of ``Protocol`` are the arguments of ``saferank.reproduce`` and the options of the command line, which take
their names, types and defaults from here.

What computes is imported when it is needed, so that importing this costs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank.errors import ArgumentError, argument, several, unknown, whole_number
from saferank.files import sha256_of

if TYPE_CHECKING:
    from saferank.instances import Instance
    from saferank.simulation.experiment import Plan

EMBEDDED = "embedded"
RULE = "paper:1/T"
PARTS = ("additions", "sensitivity", "study")
"""Experiments besides the paper's own: our own policies beside its five, and two studies."""
MOST = 10**6
"""The largest number of queries and of repetitions."""


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
    """Everything that the results depend on; None stands for what the profile or the log says."""

    profile: str = "quick"  # or "paper"
    log: Path | None = None  # a file, or sessions as a frame or a list of dicts; None: a synthetic log
    format: str | None = None  # of the log
    policies: Sequence[str] | None = None  # None: the paper's and, unless the additions are left out, ours
    models: Sequence[str] = ("pbm", "cm")
    rule: str = RULE
    positions: int = 5
    items: int = 10  # of a query: those of its most frequent ranking, then those that its other pages showed
    page_length: int | None = None  # of the rankings; None: 10 where a query has such a page, else its most frequent
    rounds: int = 100_000
    repetitions: int | None = None
    queries: int | None = None
    sessions: int | None = None
    iterations: int = 50  # of EM
    seed: int = 0
    without: Sequence[str] = ()  # parts to leave out: additions (our policies), sensitivity, study
    study_instances: Path | None = None  # real queries for the study, an instance file
    optimal: str | None = None  # id of the query whose ranking is optimal; None: the one that comes nearest
    none_of_best: str | None = None  # id of the query whose page has none of the best items; None: the nearest
    max_bad: float = 0.01  # the share of unreadable lines up to which the log is read
    plugins: Sequence[str] = ()  # files or modules that register policies of yours
    world: Mapping[str, Any] | Sequence[str] | None = None  # None: the paper's

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "Protocol":
        """From arguments by name, all checked."""
        known = [each.name for each in fields(cls)]
        for name in arguments:
            if name not in known:
                raise TypeError(f"reproduce() takes no {name!r}: {unknown('argument', name, known)}")
        paths = {name: Path(arguments[name]) for name in ("log", "study_instances") if arguments.get(name) is not None}
        return cls(**{**arguments, **paths}).checked()

    def checked(self) -> "Protocol":
        """The same with every argument checked, lists as tuples, and what was left out filled in."""
        from saferank.fitting.fit import checked_models
        from saferank.statistics.decision import decision_rule

        for name in (without := several(self.without, "without")):
            if name not in PARTS:
                raise ArgumentError("without", unknown("part", name, PARTS))
        numbers = {
            name: whole_number(getattr(self, name), name) for name in ("positions", "items", "rounds", "iterations")
        }
        made = replace(
            self,
            policies=self._policies(),
            models=checked_models(self.models),
            without=without,
            plugins=several(self.plugins, "plugins"),
            **numbers,  # type: ignore[arg-type]
        )
        with argument("rule"):
            decision_rule(made.rule, made.rounds)
        made._check_log()
        made._check_lengths()
        made.sizes  # noqa: B018 (checks them)
        with argument("items"):
            made.plan()
        return made

    @property
    def parts(self) -> tuple[str, ...]:
        """Experiments besides the paper's own."""
        return tuple(part for part in PARTS if part not in self.without)

    @property
    def sizes(self) -> Sizes:
        """The sizes of the profile; smaller parts shrink with the experiment, but do not grow with it."""
        if self.profile not in PROFILES:
            raise ArgumentError("profile", unknown("profile", self.profile, PROFILES))
        usual = PROFILES[self.profile]
        given = {
            name: whole_number(value, name, at_most=MOST)
            for name in ("queries", "repetitions", "sessions")
            if (value := getattr(self, name)) is not None
        }
        asked = replace(usual, **given)
        return replace(
            asked,
            sensitivity_queries=min(usual.sensitivity_queries, asked.queries),
            sensitivity_repetitions=min(usual.sensitivity_repetitions, asked.repetitions),
            study_queries=min(usual.study_queries, asked.queries),
            study_repetitions=min(usual.study_repetitions, asked.repetitions),
        )

    def plan(self, repetitions: int | None = None, **changes: Any) -> "Plan":
        """How the paper's experiment is played, or another part with these changes."""
        from saferank.simulation.experiment import Plan
        from saferank.simulation.worlds import world_of

        given = {"policies": tuple(self.policies or ()), "rule": self.rule, **world_of(self.world), **changes}
        return Plan(
            n_positions=self.positions,
            rounds=self.rounds,
            repetitions=self.sizes.repetitions if repetitions is None else repetitions,
            seed=self.seed,
            **given,
        )

    def _policies(self) -> tuple[str, ...]:
        from saferank.policies.registry import OURS, PAPER, policies_of, policy_kind

        if self.policies is not None:
            with argument("policies"):
                return tuple(policy_kind(name).name for name in several(self.policies, "policies"))
        kind_of_rule = self.rule.partition(":")[0]  # where none was asked for, every policy has its own
        ours = [name for name in policies_of(OURS) if self.rule == RULE or kind_of_rule in policy_kind(name).rules]
        return policies_of(PAPER) + (tuple(ours) if "additions" in self.parts else ())

    def _check_log(self) -> None:
        from saferank.logs import FORMATS

        if self.log is not None and self.sessions is not None:
            raise ArgumentError("sessions", "is about the synthetic log; leave it out with a log of your own")
        if self.log is not None and self.format is None:
            raise ArgumentError("log", f"needs its format: {', '.join(FORMATS)}")
        if self.log is None and self.format is not None:
            raise ArgumentError("format", "is the format of a log of your own; name the log, or leave it out")

    def _check_lengths(self) -> None:
        """Positions fit on a page and among the items; the synthetic log has pages of ten items and no others."""
        from saferank.logs.records import LONGEST_PAGE, RANKING_LENGTH

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

    def study_sets(self) -> "dict[str, list[Instance]]":
        """The instance set of ``study_instances`` by the name of its file, every one fit for the study."""
        from saferank.instances import check_positions, load_instances

        path = self.study_instances
        if path is None:
            return {}
        with argument("study_instances"):
            instances = load_instances(path)
            for instance in instances:
                check_positions(instance, self.positions, str(path))
        return {path.stem if path.stem != EMBEDDED else path.name: instances}

    def facts(self) -> dict[str, Any]:
        """Everything that results depend on, as it is kept to be compared with when a run is resumed."""
        log = self.log
        return {
            **asdict(self),
            **asdict(self.sizes),
            "world": self.plan().world,
            "log": None if log is None else log.name,
            "log_bytes": log.stat().st_size if log is not None and log.is_file() else None,
            "study_instances": None if self.study_instances is None else sha256_of(self.study_instances),
            "plugins": {name: sha256_of(Path(name)) if Path(name).is_file() else None for name in self.plugins},
        }
